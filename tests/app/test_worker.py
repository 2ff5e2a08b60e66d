"""The engine process, spoken to as the window does: JSON lines through real pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from designer.runtime.images import write_image
from designer.runtime.shared import SharedFolder

ROOT = Path(__file__).parents[2]
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


class Peer:
    """A worker and the pipes to it."""

    def __init__(self, folder: Path) -> None:
        self.shared = SharedFolder(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.engine.worker", "--shared", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.number = 0
        self.events: list[dict] = []
        ready = self.line()
        assert ready["event"] == "ready"
        assert ready["pid"] == self.process.pid

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def line(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def raw(self, text: bytes) -> None:
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def send(self, method: str, **params) -> int:
        self.number += 1
        self.raw(json.dumps({"id": self.number, "method": method, "params": params}).encode() + b"\n")
        return self.number

    def reply(self, number: int) -> dict:
        while True:
            message = self.line()
            if "event" not in message:
                assert message["id"] == number
                return message
            self.events.append(message)

    def ask(self, method: str, **params) -> dict:
        reply = self.reply(self.send(method, **params))
        assert "error" not in reply, reply
        return reply["result"]

    def refused(self, method: str, **params) -> dict:
        return self.reply(self.send(method, **params))["error"][0]

    def open(self, document=DOCUMENT, **params) -> dict:
        return self.ask("open", **{"document": document, "weights": None, "seed": 0, "threads": 1, **params})

    def take(self, handle: dict) -> np.ndarray:
        array = np.array(self.shared.get(handle))
        self.shared.free(handle)
        return array


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
    opened = peer.open()
    assert {r["status"] for r in opened["report"]} == {"missing"} or opened["note"]
    assert "random" in opened["note"]
    assert opened["diagnostics"] == []
    assert peer.ask("set_input", layer="image", path=str(photo)) == {"shape": [1, 3, 12, 20]}
    first = peer.ask("run", capture=["conv", "noise"])
    assert [s["layers"] for s in first["steps"]] == [["noise"], ["conv"], ["mix"]]
    assert [s["engine"] for s in first["steps"]] == ["numpy", "onnxruntime", "numpy"]
    assert "random" in first["note"]
    result, conv, noise = (peer.take(h) for h in (first["outputs"]["result"], *first["captures"].values()))
    assert list(first["captures"]) == ["conv", "noise"]
    np.testing.assert_allclose(result, conv * np.float32(0.5) + noise * np.float32(0.5), atol=1e-6)
    assert peer.ask("set_param", layer="mix", param="amount", text="0.0") == {}
    second = peer.ask("run", capture=["conv", "noise"])
    assert [s["cached"] for s in second["steps"]] == [True, True, False]
    np.testing.assert_array_equal(peer.take(second["outputs"]["result"]), conv)
    for handle in second["captures"].values():
        peer.take(handle)
    changed = DOCUMENT.replace('input="mix"', 'input="noise"')
    assert peer.ask("update", document=changed)["diagnostics"] == []
    third = peer.ask("run")
    np.testing.assert_array_equal(peer.take(third["outputs"]["result"]), noise)
    assert list(peer.shared.path.iterdir()) == []


def test_an_edit_that_needs_other_weights(peer, photo):
    peer.open()
    peer.ask("set_input", layer="image", path=str(photo))
    peer.take(peer.ask("run")["outputs"]["result"])
    assert peer.ask("update", document=DOCUMENT.replace('kernel="3x3"', 'kernel="5x5"'))["report"]
    assert peer.take(peer.ask("run")["outputs"]["result"]).shape == (1, 3, 12, 20)


def test_an_array_as_input(peer):
    peer.open()
    array = np.random.default_rng(1).random((2, 3, 8, 8), np.float32)
    handle = peer.shared.put(array)
    assert peer.ask("set_input", layer="image", handle=handle, picture=False) == {"shape": [2, 3, 8, 8]}
    assert list(peer.shared.path.iterdir()) == []
    captured = peer.ask("run", capture=["image"])
    np.testing.assert_array_equal(peer.take(captured["captures"]["image"]), array)
    peer.take(captured["outputs"]["result"])


def test_profile(peer, photo):
    peer.open()
    peer.ask("set_input", layer="image", path=str(photo))
    record = peer.ask("profile", iterations=2)
    assert record["iterations"] == 2
    json.dumps(record, allow_nan=False)


def test_what_goes_wrong_is_told_and_the_process_lives_on(peer, photo, tmp_path):
    assert peer.refused("open", document="<nonsense")["severity"] == "error"
    assert peer.refused("run")["code"] == "nothing-open"
    peer.open(seed=None)
    assert peer.refused("run")["code"] == "no-input"
    peer.ask("set_input", layer="image", path=str(photo))
    assert peer.refused("run")["code"] == "missing-weight"
    assert peer.refused("set_input", layer="image", path=str(tmp_path / "none.png"))["code"] == "cannot-read"
    assert peer.refused("set_input", layer="nobody", path=str(photo))["code"] == "no-such-input"
    assert peer.refused("set_param", layer="mix", param="amount", text="2.5")["code"] == "bad-parameter"
    assert peer.refused("set_param", layer="mix")["code"] == "bad-request"
    assert peer.refused("run", capture=["nobody"])["code"] == "no-such-layer"
    assert peer.refused("run", capture="conv")["code"] == "bad-request"
    assert peer.refused("dance")["code"] == "bad-request"
    assert peer.refused("open", document=DOCUMENT, precision="fp16")["code"] == "precision-unavailable"
    assert peer.refused("open", document=DOCUMENT, weights=str(tmp_path / "none"))["severity"] == "error"
    for line in (
        b"no json\n",
        b"[1, 2]\n",
        b'{"id": 7}\n',
        b'{"id": 7, "method": "ping", "params": 3}\n',
        b"\xff\xfe\n",
    ):
        peer.raw(line)
        assert peer.line()["error"][0]["code"] == "bad-request"
    peer.raw(b"[" * 100_000 + b"\n\n")
    assert peer.line()["error"][0]["code"] == "bad-request"
    assert peer.ask("ping") == {"pid": peer.process.pid}


def test_older_runs_in_a_queue_are_superseded(peer, photo):
    peer.open()
    peer.ask("set_input", layer="image", path=str(photo))
    lines = []
    for amount in ("0.1", "0.2", "0.3"):
        params = {"layer": "mix", "param": "amount", "text": amount}
        lines += [{"method": "set_param", "params": params}, {"method": "run", "params": {}}]
    numbers = []
    for request in lines:
        peer.number += 1
        request["id"] = peer.number
        numbers.append(peer.number)
    # A slow request first, so that all the others are there when the first run's turn comes.
    profile = {"id": 10_000, "method": "profile", "params": {"iterations": 1}}
    peer.raw(b"".join(json.dumps(r).encode() + b"\n" for r in [profile, *lines]))
    peer.reply(10_000)
    replies = [peer.reply(number)["result"] for number in numbers]
    assert replies[1] == replies[3] == {"superseded": True}
    assert replies[0] == replies[2] == replies[4] == {}
    peer.take(replies[5]["outputs"]["result"])


def test_progress_is_told_when_it_takes_long(peer, photo):
    peer.open()
    peer.ask("set_input", layer="image", path=str(photo))
    peer.events.clear()
    number = peer.send("profile", iterations=3000)
    peer.reply(number)
    assert peer.events
    assert all(e["event"] == "progress" and e["id"] == number and 0 <= e["done"] <= e["total"] for e in peer.events)


def test_quit(own_peer):
    assert own_peer.ask("quit") == {}
    assert own_peer.process.wait(10) == 0


def test_the_end_of_the_requests_ends_the_process_after_the_replies(own_peer):
    own_peer.open()
    number = own_peer.send("ping")
    own_peer.process.stdin.close()
    assert own_peer.reply(number)["result"]
    assert own_peer.process.wait(10) == 0


def test_a_dead_window_ends_the_process_in_the_middle_of_work(own_peer, photo):
    own_peer.open()
    own_peer.ask("set_input", layer="image", path=str(photo))
    own_peer.send("profile", iterations=10_000_000)
    time.sleep(0.3)
    own_peer.process.stdin.close()
    own_peer.process.stdout.close()
    assert own_peer.process.wait(20) in (0, 1)


def test_what_is_printed_never_disturbs_the_protocol(tmp_path):
    code = (
        "import os, sys, app.engine.worker as w\n"
        "class Loud(w.Worker):\n"
        "    def _ping(self, number, params):\n"
        "        print('loud'); os.write(1, b'louder\\n'); return {'said': True}\n"
        "w.Worker = Loud\n"
        f"w.main(['--shared', {str(tmp_path)!r}])\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        input=b'{"id": 1, "method": "ping"}\n{"id": 2, "method": "quit"}\n',
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert [json.loads(line) for line in made.stdout.splitlines()][1:] == [
        {"id": 1, "result": {"said": True}},
        {"id": 2, "result": {}},
    ]
    assert made.stderr.split() == [b"loud", b"louder"]


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_it_quietly(own_peer):
    own_peer.process.send_signal(signal.SIGINT)
    assert own_peer.process.wait(10) == 130
    assert b"Traceback" not in own_peer.process.stderr.read()


def test_importing_the_worker_loads_no_engine():
    code = "import sys, app.engine.worker; print([m for m in ('torch', 'onnx', 'onnxruntime', 'PySide6') if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=True)
    assert made.stdout.strip() == b"[]"


def test_looking_into_the_network(own_peer, photo):
    """Weights, gradients, receptive fields and not-a-numbers travel over the pipe."""
    own_peer.open()
    own_peer.ask("set_input", layer="image", path=str(photo))
    weights = own_peer.ask("weights_of", layer="conv")["tensors"]
    assert list(weights) == ["kernel", "bias"]
    kernel = own_peer.take(weights["kernel"])
    assert kernel.shape == (3, 3, 3, 3)
    own_peer.take(weights["bias"])
    made = own_peer.ask("gradient", of="conv", at=[0, 5, 6], input="image")
    gradient = own_peer.take(made["gradient"])
    assert gradient.shape == (1, 3, 12, 20)
    np.testing.assert_allclose(gradient[0, :, 4:7, 5:8], kernel[0], atol=1e-6)  # what a filter is, by definition
    assert np.count_nonzero(gradient) == np.count_nonzero(kernel[0])
    assert "'noise'" in made["note"]
    whole = own_peer.ask("gradient", of="conv", at=None, input="image")
    assert own_peer.take(whole["gradient"]).any()
    seen = own_peer.ask("receptive", of="conv", y=0, x=6, input="image")
    assert seen == {"box": [5, 0, 8, 2], "source": "computed", "note": ""}
    traced = own_peer.ask("trace_nonfinite")
    assert (traced["layer"], traced["kind"], traced["share"]) == (None, "", 0.0)
    assert set(traced["checked"]) == {"image", "noise", "conv", "mix", "result"}
    assert own_peer.refused("gradient", of="conv", at=[0, 99, 0], input="image")["code"] == "outside"
    assert own_peer.refused("gradient", of="conv", at=[1, 2], input="image")["code"] == "bad-request"
    assert own_peer.refused("receptive", of="conv", y=-1, x=0, input="image")["code"] == "bad-request"
    assert own_peer.refused("weights_of", layer="none")["code"] == "no-such-layer"
    assert list(own_peer.shared.path.iterdir()) == []


def test_a_run_says_which_results_are_not_finite(own_peer, tmp_path):
    own_peer.open()
    array = np.zeros((1, 3, 8, 8), np.float32)
    np.save(tmp_path / "fine.npy", array)
    array[0, 0, 4, 4] = np.nan
    np.save(tmp_path / "broken.npy", array)
    own_peer.ask("set_input", layer="image", path=str(tmp_path / "fine.npy"))
    assert own_peer.ask("run", capture=["noise"])["nonfinite"] == {}
    own_peer.ask("set_input", layer="image", path=str(tmp_path / "broken.npy"))
    found = own_peer.ask("run", capture=["noise", "conv"])["nonfinite"]
    assert found["noise"] == {"nan": 1, "inf": 0, "share": 1 / 192}
    assert found["conv"]["nan"] == 9 * 3
    assert found["result"]["nan"] == 9 * 3
    again = own_peer.ask("run", capture=["noise", "conv"], have=["noise", "conv"])
    assert again["same"] == ["noise", "conv"]
    assert again["nonfinite"] == found
    traced = own_peer.ask("trace_nonfinite")
    assert (traced["layer"], traced["kind"], traced["note"]) == ("image", "nan", "what was fed holds them already")


def test_a_coarse_picture_first_where_the_full_one_takes_longer(own_peer, tmp_path):
    own_peer.open()
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random((1, 3, 512, 512), np.float32))
    own_peer.ask("set_input", layer="image", path=str(tmp_path / "large.npy"))
    first = own_peer.ask("run", budget=1)
    assert first["coarse"] == 0  # nothing is known about its time yet
    own_peer.ask("set_param", layer="noise", param="scale", text="0.3")
    coarse = own_peer.ask("run", budget=1, capture=["conv"])
    assert coarse["coarse"] in (2, 4, 8)
    assert coarse["note"].startswith(f"preview at 1/{coarse['coarse']} of the size")
    picture = own_peer.take(coarse["outputs"]["result"])
    assert picture.shape == (1, 3, 512, 512)
    np.testing.assert_array_equal(picture[..., 0, 0], picture[..., 1, 1])
    own_peer.take(coarse["captures"]["conv"])
    full = own_peer.ask("run", capture=["conv"], have=["conv"])
    assert (full["coarse"], full["same"]) == (0, [])
    assert own_peer.ask("run", budget=1)["coarse"] == 0  # all of it is kept
    own_peer.ask("set_param", layer="noise", param="scale", text="0.2")
    assert own_peer.ask("run", budget=10_000_000)["coarse"] == 0


def test_a_run_is_given_up_when_asked(own_peer, tmp_path):
    chain = "".join(
        f'<Layer name="c{n}" type="convolution" input="{f"c{n - 1}" if n else "image"}">'
        '<Parameters features="32" kernel="5x5" /></Layer>'
        for n in range(30)
    )
    own_peer.open(
        '<NetworkModel name="slow" version="2"><Layer name="image" type="input"><Parameters dims="16x16x3" /></Layer>'
        f'{chain}<Layer name="result" type="output" input="c29" /></NetworkModel>'
    )
    np.save(tmp_path / "large.npy", np.zeros((1, 3, 512, 512), np.float32))
    own_peer.ask("set_input", layer="image", path=str(tmp_path / "large.npy"))
    run = own_peer.send("run")
    time.sleep(0.3)
    interrupt = own_peer.send("interrupt")
    assert own_peer.reply(run)["result"] == {"superseded": True}
    assert own_peer.reply(interrupt)["result"] == {}
    waiting, again, last = own_peer.send("run"), own_peer.send("interrupt"), own_peer.send("ping")
    assert own_peer.reply(waiting)["result"] == {"superseded": True}
    assert own_peer.reply(again)["result"] == {}
    assert own_peer.reply(last)["result"]["pid"] == own_peer.process.pid
