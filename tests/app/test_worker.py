"""The engine process, spoken to as the window does: lines through real pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise

import msgspec
import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from engine_peer import ROOT, Peer

from app.engine.protocol import (
    MAX_LINE,
    VERSION,
    DescribeInputRequest,
    EmptyReply,
    FailedEvent,
    GradientRequest,
    HelloRequest,
    InterruptRequest,
    NonfiniteShare,
    OpenRequest,
    PingReply,
    PingRequest,
    ProfiledNetwork,
    ProfileRequest,
    ProgressEvent,
    QuitRequest,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    RemeasureRequest,
    RunReply,
    RunRequest,
    SetInputReply,
    SetInputRequest,
    SetInputTensorRequest,
    SetParamRequest,
    SupersededEvent,
    TraceNonfiniteRequest,
    UpdateRequest,
    WeightsRequest,
    asked,
    done_line,
    line_of,
    read_event,
)
from designer.files.weights import WeightStatus
from designer.profiling.profile_files import load_profile
from designer.runtime.images import write_image

DOCUMENT = """<?xml version="1.0"?>
<NetworkModel name="little" version="2" user_version_tag="1">
	<Layer name="conv" type="convolution" edit_pos="320,0" input="noise">
		<Parameters apply_bias="true" features="3" kernel="3x3" padding="same" padding_tuple="0x0" stride="1x1" />
	</Layer>
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="16x16x3" rgba="false" scale="1.0" shift="0.0" tiling="0" />
	</Layer>
	<Layer name="mix" type="mix" edit_pos="480,0" input="conv,noise">
		<Parameters amount="0.5" recipe="a * (1 - alpha) + b * alpha" selection="blend" />
	</Layer>
	<Layer name="noise" type="noise" edit_pos="160,0" input="image">
		<Parameters kind="gaussian" mean="0.0" mono="false" scale="0.1" seed="0" />
	</Layer>
	<Layer name="result" type="output" edit_pos="640,0" input="mix" />
</NetworkModel>
"""


@pytest.fixture(scope="module")
def shared_peer(tmp_path_factory):
    peer = Peer(tmp_path_factory.mktemp("shared"))
    yield peer
    peer.close()


@pytest.fixture
def peer(shared_peer):
    return shared_peer


@pytest.fixture
def own_peer(tmp_path):
    peer = Peer(tmp_path)
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    write_image(path, np.random.default_rng(0).random((1, 3, 12, 20), np.float32))
    return path


def test_the_whole_conversation(peer, photo):
    assert peer.ask(HelloRequest(VERSION)) == EmptyReply()
    opened = peer.open(DOCUMENT)
    assert {found.status for found in opened.report} == {WeightStatus.MISSING} or opened.note
    assert "random" in opened.note
    assert opened.diagnostics == ()
    assert peer.ask(SetInputRequest("image", str(photo))) == SetInputReply((1, 3, 12, 20))
    first = peer.ask(RunRequest(("conv", "noise")))
    assert [s.layers for s in first.steps] == [("noise",), ("conv",), ("mix",)]
    assert [s.engine for s in first.steps] == ["numpy", "onnxruntime", "numpy"]
    assert "random" in first.note
    result, conv, noise = (peer.take(h) for h in (first.outputs["result"], *first.captures.values()))
    assert list(first.captures) == ["conv", "noise"]
    np.testing.assert_allclose(result, conv * np.float32(0.5) + noise * np.float32(0.5), atol=1e-6)
    peer.ask(SetParamRequest("mix", "amount", "0.0"))
    second = peer.ask(RunRequest(("conv", "noise")))
    assert [s.cached for s in second.steps] == [True, True, False]
    np.testing.assert_array_equal(peer.take(second.outputs["result"]), conv)
    for handle in second.captures.values():
        peer.take(handle)
    assert peer.ask(UpdateRequest(DOCUMENT.replace('input="mix"', 'input="noise"'))).diagnostics == ()
    third = peer.ask(RunRequest())
    np.testing.assert_array_equal(peer.take(third.outputs["result"]), noise)
    assert list(peer.shared.path.iterdir()) == []


def run(peer) -> np.ndarray:
    return peer.take(peer.ask(RunRequest()).outputs["result"])


def test_an_edit_that_needs_other_weights(peer, photo):
    peer.open(DOCUMENT)
    peer.ask(SetInputRequest("image", str(photo)))
    run(peer)
    assert peer.ask(UpdateRequest(DOCUMENT.replace('kernel="3x3"', 'kernel="5x5"'))).report
    assert run(peer).shape == (1, 3, 12, 20)


def test_an_array_as_input(peer):
    peer.open(DOCUMENT)
    array = np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
    request = SetInputTensorRequest("image", peer.shared.put(array), is_image=False)
    assert peer.ask(request) == SetInputReply((2, 3, 8, 8))
    assert list(peer.shared.path.iterdir()) == []
    found = peer.ask(RunRequest(("image",)))
    np.testing.assert_array_equal(peer.take(found.captures["image"]), array)
    peer.take(found.outputs["result"])


def test_profile(peer, photo):
    peer.open(DOCUMENT)
    peer.ask(SetInputRequest("image", str(photo)))
    profile = peer.ask(ProfileRequest(2)).profile
    assert profile.network == "little"
    (run,) = profile.runs
    assert run.iterations == 2
    assert run.time_ms > 0
    assert run.rows_ms == pytest.approx(run.time_ms, rel=0.05)
    swept = peer.ask(ProfileRequest(1, batches=(1, 2), sizes=((16, 8),))).profile
    assert [(found.batch, found.size) for found in swept.runs] == [(1, "16x8"), (2, "16x8")]


def test_what_was_profiled_so_far_is_in_a_file(peer, tmp_path):
    peer.open(DOCUMENT)
    partial = tmp_path / "partial.json"
    profile = peer.ask(ProfileRequest(4, batches=(1, 2), partial=str(partial))).profile
    kept = load_profile(partial)
    assert [run.batch for run in kept.runs] == [run.batch for run in profile.runs]
    assert all(run.partial and run.time_ms for run in kept.runs)


def test_two_networks_are_measured_in_turns_and_the_open_one_stays(peer):
    peer.open(DOCUMENT)
    other = DOCUMENT.replace('kernel="3x3"', 'kernel="5x5"')
    assert other != DOCUMENT
    networks = tuple(ProfiledNetwork(OpenRequest(text, seed=0), 2, (16, 8)) for text in (DOCUMENT, other))
    before, after = peer.ask(RemeasureRequest(networks, 4)).profile.runs
    assert (before.batch, before.size, after.size) == (2, "16x8", "16x8")
    assert after.flops > before.flops
    assert before.turns == after.turns != ""
    (run,) = peer.ask(ProfileRequest(1)).profile.runs
    assert run.flops != after.flops
    assert run.batch == 1


def test_what_goes_wrong_is_reported_and_the_process_lives_on(peer, photo, tmp_path):
    assert peer.refused(OpenRequest("<nonsense")).severity == "error"
    assert peer.refused(RunRequest()).code == "nothing-open"
    peer.open(DOCUMENT, seed=None)
    assert peer.refused(RunRequest()).code == "no-input"
    peer.ask(SetInputRequest("image", str(photo)))
    assert peer.refused(RunRequest()).code == "missing-weight"
    assert peer.refused(SetInputRequest("image", str(tmp_path / "none.png"))).code == "cannot-read"
    assert peer.refused(SetInputRequest("nobody", str(photo))).code == "no-such-input"
    assert peer.refused(SetParamRequest("mix", "amount", "2.5")).code == "bad-parameter"
    assert peer.refused(RunRequest(("nobody",))).code == "no-such-layer"
    assert peer.refused(OpenRequest(DOCUMENT, precision="fp16")).code == "precision-unavailable"
    assert peer.refused(OpenRequest(DOCUMENT, weights=str(tmp_path / "none"))).severity == "error"
    assert peer.ask(PingRequest()) == PingReply(peer.process.pid)


def bad(request: str) -> bytes:
    return f'{{"id": 7, "request": {request}}}\n'.encode()


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("line", "number", "named"),
    [
        (b"no json\n", None, "malformed"),
        (b"[1, 2]\n", None, "expected object, got array"),
        (b'{"id": 7}\n', 7, "missing required field request"),
        (b"\xff\xfe\n", None, "malformed"),
        (b"[" * 100_000 + b"\n", None, "object"),
        (b'{"id": 7, "request": {"method": "open", "docum\n', None, "malformed"),  # cut off
        (b'{"id": -1, "request": {"method": "ping"}}\n', None, "id: expected int >= 0"),
        (bad("3"), 7, "request: expected object, got int"),
        (bad('{"method": "dance"}'), 7, "request.method: invalid value 'dance'"),
        (bad('{"method": "set_param", "layer": "mix"}'), 7, "missing required field param"),
        (bad('{"method": "run", "capture": "conv"}'), 7, "request.capture: expected array, got str"),
        (bad('{"method": "open", "document": "", "threads": "x"}'), 7, "request.threads: expected int, got str"),
        (bad(f'{{"method": "open", "document": "", "threads": {HUGE}}}'), 7, "request.threads"),
        (bad('{"method": "profile", "iterations": 1e300}'), 7, "request.iterations"),
        (bad('{"method": "gradient", "of": "a", "input": "b", "at": [1, 2]}'), 7, "array of length 3"),
        (bad('{"method": "receptive_field", "of": "a", "y": -1, "x": 0, "input": "b"}'), 7, "request.y"),
        (
            bad('{"method": "set_input_tensor", "layer": "a", "handle": {"file": "../x", "shape": [], "dtype": "bool"}}'),
            7,
            "request.handle.file",
        ),
    ],
)  # fmt: skip
def test_a_request_that_does_not_decode_is_named(peer, line, number, named):
    peer.raw(line)
    event = peer.answer(number)
    assert isinstance(event, FailedEvent)
    assert event.error[0].code == "bad-request"
    assert named in event.error[0].message.replace("JSON is ", "")
    assert peer.ask(PingRequest()) == PingReply(peer.process.pid)


def test_a_line_that_is_too_long_is_one_bad_request(peer):
    peer.raw(b"x" * (MAX_LINE + 5) + b"\n")
    event = peer.answer(None)
    assert isinstance(event, FailedEvent)
    assert "256 MiB" in event.error[0].message
    assert peer.ask(PingRequest()) == PingReply(peer.process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_file_names_that_are_not_text_go_both_ways(peer, photo):
    peer.open(DOCUMENT)
    odd = photo.with_name(os.fsdecode(b"b\xfcro \xe2\x82\xac.png"))
    odd.write_bytes(photo.read_bytes())
    assert peer.ask(SetInputRequest("image", str(odd))).shape == (1, 3, 12, 20)
    odd.unlink()
    found = peer.refused(SetInputRequest("image", str(odd)))
    assert (found.code, found.file) == ("cannot-read", str(odd))
    folder = photo.parent / "frames"
    folder.mkdir()
    write_image(folder / "b.png", np.zeros((1, 3, 4, 4), np.float32))
    (folder / "b.png").rename(folder / odd.name)
    assert peer.ask(DescribeInputRequest(str(folder), preview=False)).info.names == (odd.name,)
    assert peer.ask(PingRequest()) == PingReply(peer.process.pid)


def test_another_protocol_version_is_refused_with_both(peer):
    found = peer.refused(HelloRequest(VERSION + 1))
    assert found.code == "other-protocol"
    assert f"version {VERSION} " in found.message
    assert f"version {VERSION + 1}" in found.message
    assert "install the same version" in found.remedy


def test_older_runs_in_a_queue_are_superseded(peer, photo):
    peer.open(DOCUMENT)
    peer.ask(SetInputRequest("image", str(photo)))
    # A slow request first, so that all the others are there when the first run's turn comes.
    requests = [ProfileRequest(1)]
    for amount in ("0.1", "0.2", "0.3"):
        requests += [SetParamRequest("mix", "amount", amount), RunRequest()]
    requests += [PingRequest()]  # another request in the queue does not end a run
    numbers = list(range(peer.number + 1, peer.number + 1 + len(requests)))
    peer.number = numbers[-1]
    peer.raw(b"".join(line_of(asked(n, r)) for n, r in zip(numbers, requests, strict=True)))
    events = [peer.answer(number) for number in numbers]
    assert [n for n, event in enumerate(events) if isinstance(event, SupersededEvent)] == [2, 4]
    peer.take(msgspec.json.decode(events[-2].result, type=RunReply).outputs["result"])


def test_progress_is_reported_when_it_takes_long(peer, photo):
    peer.open(DOCUMENT)
    peer.ask(SetInputRequest("image", str(photo)))
    peer.progress.clear()
    peer.ask(ProfileRequest(3000))
    assert peer.progress
    assert all(e.id == peer.number and 0 <= e.done <= e.total for e in peer.progress)


def test_quit(own_peer):
    assert own_peer.ask(QuitRequest()) == EmptyReply()
    assert own_peer.process.wait(10) == 0


def test_the_end_of_the_requests_ends_the_process_after_the_replies(own_peer):
    own_peer.open(DOCUMENT)
    number = own_peer.send(PingRequest())
    own_peer.process.stdin.close()
    assert own_peer.answer(number)
    assert own_peer.process.wait(10) == 0


def test_a_dead_window_ends_the_process_in_the_middle_of_work(own_peer, photo):
    own_peer.open(DOCUMENT)
    own_peer.ask(SetInputRequest("image", str(photo)))
    own_peer.send(ProfileRequest(10_000_000))
    assert isinstance(own_peer.event(), ProgressEvent)  # it is at work
    own_peer.process.stdin.close()
    own_peer.process.stdout.close()
    assert own_peer.process.wait(20) in (0, 1)


def test_what_is_printed_never_disturbs_the_protocol(tmp_path):
    code = (
        "import os, sys, app.engine.worker as w\n"
        "class Loud(w.Worker):\n"
        "    def answer(self, asked):\n"
        "        print('loud'); os.write(1, b'louder\\n'); return super().answer(asked)\n"
        "w.Worker = Loud\n"
        f"w.main(['--shared', {str(tmp_path)!r}])\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        input=line_of(asked(1, PingRequest())) + line_of(asked(2, QuitRequest())),
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    ready, ping, quitting = made.stdout.splitlines(keepends=True)
    assert ping == done_line(1, PingReply(read_event(ready).pid))
    assert quitting == done_line(2, EmptyReply())
    assert made.stderr.split() == [b"loud", b"louder"] * 2


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_it_quietly(own_peer):
    own_peer.ask(PingRequest())  # it waits for requests
    own_peer.process.send_signal(signal.SIGINT)
    assert own_peer.process.wait(10) == 130
    assert b"Traceback" not in own_peer.process.stderr.read()


def test_importing_the_worker_loads_no_engine():
    code = "import sys, app.engine.worker; print([m for m in ('torch', 'onnx', 'onnxruntime', 'PySide6') if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=True)
    assert made.stdout.strip() == b"[]"


def test_looking_into_the_network(own_peer, photo):
    """Weights, gradients, receptive fields and not-a-numbers travel over the pipe."""
    own_peer.open(DOCUMENT)
    own_peer.ask(SetInputRequest("image", str(photo)))
    weights = own_peer.ask(WeightsRequest("conv")).tensors
    assert list(weights) == ["kernel", "bias"]
    kernel = own_peer.take(weights["kernel"])
    assert kernel.shape == (3, 3, 3, 3)
    own_peer.take(weights["bias"])
    made = own_peer.ask(GradientRequest("conv", "image", (0, 5, 6)))
    gradient = own_peer.take(made.gradient)
    assert gradient.shape == (1, 3, 12, 20)
    np.testing.assert_allclose(gradient[0, :, 4:7, 5:8], kernel[0], atol=1e-6)  # what a filter is, by definition
    assert np.count_nonzero(gradient) == np.count_nonzero(kernel[0])
    assert "'noise'" in made.note
    assert own_peer.take(own_peer.ask(GradientRequest("conv", "image")).gradient).any()
    seen = own_peer.ask(ReceptiveFieldRequest("conv", 0, 6, "image"))
    assert seen == ReceptiveFieldReply((5, 0, 8, 2), "computed")
    traced = own_peer.ask(TraceNonfiniteRequest())
    assert (traced.layer, traced.kind, traced.share) == (None, "", 0.0)
    assert set(traced.checked) == {"image", "noise", "conv", "mix", "result"}
    assert own_peer.refused(GradientRequest("conv", "image", (0, 99, 0))).code == "outside"
    assert own_peer.refused(WeightsRequest("none")).code == "no-such-layer"
    assert list(own_peer.shared.path.iterdir()) == []


def test_a_run_says_which_results_are_not_finite(own_peer, tmp_path):
    own_peer.open(DOCUMENT)
    array = np.zeros((1, 3, 8, 8), np.float32)
    np.save(tmp_path / "fine.npy", array)
    array[0, 0, 4, 4] = np.nan
    np.save(tmp_path / "broken.npy", array)
    own_peer.ask(SetInputRequest("image", str(tmp_path / "fine.npy")))
    assert own_peer.ask(RunRequest(("noise",))).nonfinite == {}
    own_peer.ask(SetInputRequest("image", str(tmp_path / "broken.npy")))
    found = own_peer.ask(RunRequest(("noise", "conv"))).nonfinite
    assert found["noise"] == NonfiniteShare(1, 0, 1 / 192)
    assert found["conv"].nan == 9 * 3
    assert found["result"].nan == 9 * 3
    again = own_peer.ask(RunRequest(("noise", "conv"), ("noise", "conv")))
    assert again.same == ("noise", "conv")
    assert again.nonfinite == found
    traced = own_peer.ask(TraceNonfiniteRequest())
    assert (traced.layer, traced.kind, traced.note) == ("image", "nan", "the input data already contains them")


def test_a_coarse_picture_first_where_the_full_one_takes_longer(own_peer, tmp_path):
    own_peer.open(DOCUMENT)
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random((1, 3, 512, 512), np.float32))
    own_peer.ask(SetInputRequest("image", str(tmp_path / "large.npy")))
    first = own_peer.ask(RunRequest(budget=1))
    assert first.coarse == 0  # nothing is known about its time yet
    own_peer.ask(SetParamRequest("noise", "scale", "0.3"))
    coarse = own_peer.ask(RunRequest(("conv",), budget=1))
    assert coarse.coarse in (2, 4, 8)
    assert coarse.note.startswith(f"preview at 1/{coarse.coarse} of the size")
    picture = own_peer.take(coarse.outputs["result"])
    assert picture.shape == (1, 3, 512, 512)
    np.testing.assert_array_equal(picture[..., 0, 0], picture[..., 1, 1])
    own_peer.take(coarse.captures["conv"])
    full = own_peer.ask(RunRequest(("conv",), ("conv",)))
    assert (full.coarse, full.same) == (0, ())
    assert own_peer.ask(RunRequest(budget=1)).coarse == 0  # all of it is kept
    own_peer.ask(SetParamRequest("noise", "scale", "0.2"))
    assert own_peer.ask(RunRequest(budget=10_000_000)).coarse == 0


def test_a_run_is_given_up_when_asked(own_peer, tmp_path):
    layers = ["image", *(f"c{n}" for n in range(10)), "noise", *(f"c{n}" for n in range(10, 30)), "result"]
    chain = "".join(
        f'<Layer name="{name}" type="convolution" input="{before}"><Parameters features="32" kernel="5x5" /></Layer>'
        for before, name in pairwise(layers)
        if name.startswith("c")
    )
    own_peer.open(
        '<NetworkModel name="slow" version="2"><Layer name="image" type="input"><Parameters dims="16x16x3" /></Layer>'
        f'<Layer name="noise" type="noise" input="c9" />{chain}<Layer name="result" type="output" input="c29" />'
        "</NetworkModel>"
    )
    np.save(tmp_path / "large.npy", np.zeros((1, 3, 512, 512), np.float32))
    own_peer.ask(SetInputRequest("image", str(tmp_path / "large.npy")))
    run = own_peer.send(RunRequest())
    assert isinstance(own_peer.event(), ProgressEvent)  # the first ten layers are done
    interrupt = own_peer.send(InterruptRequest())
    assert own_peer.answer(run) == SupersededEvent(run)
    assert own_peer.answer(interrupt).id == interrupt
    waiting, again, last = (own_peer.send(r) for r in (RunRequest(), InterruptRequest(), PingRequest()))
    assert own_peer.answer(waiting) == SupersededEvent(waiting)
    assert own_peer.answer(again).id == again
    assert own_peer.answer(last) == read_event(done_line(last, PingReply(own_peer.process.pid)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report the addresses in use")
def test_the_memory_limit_counts_from_the_start_of_the_process():
    lines = (
        "import mmap, resource",
        "from app.engine.worker import _limit_memory",
        "taken = mmap.mmap(-1, 1 << 30)",
        "_limit_memory(256 << 20)",
        "assert min(resource.getrlimit(resource.RLIMIT_AS)) > (1 << 30) + (256 << 20)",
        "mmap.mmap(-1, 64 << 20)",
        "try:",
        "    mmap.mmap(-1, 512 << 20)",
        "except OSError:",
        "    print('refused')",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr
