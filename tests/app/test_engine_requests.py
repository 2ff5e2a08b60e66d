"""Requests answered in this process: which values reach the domain, in which order and unit, and what comes back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from app.engine import sweep_process, worker
from app.engine.protocol import (
    Asked,
    BitsRequest,
    BlameRequest,
    CompareTensorRequest,
    GradientRequest,
    MeasureVariantsRequest,
    NonfiniteShare,
    OpenRequest,
    PingRequest,
    PredictRequest,
    ProfileRequest,
    ReceptiveFieldRequest,
    RunRequest,
    SetFormatsRequest,
    SetInputTensorRequest,
    SetParamRequest,
    SetWeightsRequest,
    TraceNonfiniteRequest,
    UpdateRequest,
    WeightsRequest,
)
from app.engine.worker import Worker
from designer.files.document import write_document
from designer.files.variants import Variant
from designer.files.weight_files import save_weights
from designer.files.weights import WeightKey, WeightStatus
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.profiling import measure
from designer.profiling.peaks import Peaks
from designer.profiling.quantities import measured
from designer.runtime.shared import SharedFolder
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunState

pytest.importorskip("torch")
RNG = np.random.default_rng(6)
IMAGE = RNG.random((1, 3, 4, 6), np.float32)
TENSORS = {
    WeightKey("conv", "kernel"): RNG.normal(0, 0.5, (2, 3, 3, 1)).astype(np.float32),
    WeightKey("conv", "bias"): np.array([0.5, -0.25], np.float32),
}


def document(**conv) -> str:
    """A convolution over three rows and one column."""
    layers = [
        Layer("image", "input", params={"dims": "6x4x3", "scale": "2"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x3", **conv}),
        Layer("root", "unary", inputs=(Source("conv"),), params={"function": "sqrt"}),
        Layer("result", "output", inputs=(Source("root"),)),
    ]
    return write_document(Graph(layers, name="net")).decode()


def expected(scale=2.0) -> np.ndarray:
    """The convolution with zeros around."""
    kernel, bias = TENSORS.values()
    padded = np.pad(IMAGE * scale, ((0, 0), (0, 0), (1, 1), (0, 0)))
    rows = np.stack([padded[:, :, row : row + 4] for row in range(3)], axis=-1)
    return np.einsum("nchwk,ock->nohw", rows, kernel[..., 0]) + bias[:, None, None]


class Peer:
    """A worker with a network and its input."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.shared = SharedFolder(folder)
        self.worker = Worker(self.shared, lambda event: None)

    def ask(self, request):
        return self.worker.answer(Asked(1, request))

    def array(self, handle) -> np.ndarray:
        return np.array(self.shared.get(handle))


@pytest.fixture
def weights(tmp_path) -> str:
    save_weights(tmp_path / "w.safetensors", TENSORS)
    return str(tmp_path / "w.safetensors")


@pytest.fixture
def peer(tmp_path, weights) -> Peer:
    made = Peer(tmp_path / "shared")
    made.ask(OpenRequest(document(), weights, engine="torch", threads=1))
    made.ask(SetInputTensorRequest("image", made.shared.put(IMAGE), is_image=True))
    return made


def test_every_option_reaches_the_session(tmp_path, weights):
    made = Peer(tmp_path / "shared")
    reply = made.ask(
        OpenRequest(
            document(), weights, engine="torch", layout="nhwc", threads=3, tile=512, agreed=("b" * 64, "a" * 64)
        )
    )
    options = made.worker.session.options
    assert (options.engine, options.precision, options.layout, options.device) == ("torch", "fp32", "nhwc", "cpu")
    assert (options.threads, options.tile, options.agreed, options.formats) == (3, 512, ("a" * 64, "b" * 64), ())
    assert {(status.layer, status.tensor, status.needed) for status in reply.report} == {
        ("conv", "kernel", (2, 3, 3, 1)), ("conv", "bias", (2,))
    }  # fmt: skip
    assert reply.note == ""
    assert made.ask(PingRequest()).pid == os.getpid()


def test_a_run_and_what_is_not_finite(peer):
    reply = peer.ask(RunRequest(("conv",)))
    np.testing.assert_allclose(peer.array(reply.captures["conv"]), expected(), atol=1e-5)
    root = peer.array(reply.outputs["result"])
    negative = int((expected() < 0).sum())
    assert 0 < negative < 48
    assert np.isnan(root).sum() == negative
    assert reply.nonfinite["result"] == NonfiniteShare(negative, 0, negative / 48)
    assert (reply.coarse, reply.emulated) == (0, False)
    again = peer.ask(RunRequest(("conv",), ("conv",)))
    assert (again.same, again.captures) == (("conv",), {})
    trace = peer.ask(TraceNonfiniteRequest())
    assert (trace.layer, trace.kind, trace.share) == ("root", "nan", negative / 48)
    assert trace.checked == ("image", "conv", "root")
    peer.ask(SetParamRequest("root", "function", "square"))
    peer.ask(SetParamRequest("image", "scale", "1"))
    reply = peer.ask(RunRequest())
    np.testing.assert_allclose(peer.array(reply.outputs["result"]), expected(1.0) ** 2, atol=1e-5)
    trace = peer.ask(TraceNonfiniteRequest())
    assert (trace.layer, trace.kind, trace.share) == (None, "", 0.0)


def test_questions_about_a_pixel(peer):
    found = peer.ask(ReceptiveFieldRequest("conv", y=2, x=5, input="image"))
    assert (found.box, found.source) == ((5, 1, 6, 4), "computed")
    kernel = TENSORS[WeightKey("conv", "kernel")]
    slope = peer.array(peer.ask(GradientRequest("conv", "image", (1, 2, 5))).gradient)
    np.testing.assert_allclose(slope[0, :, 1:4, 5], kernel[1, :, :, 0], atol=1e-6)
    assert np.count_nonzero(slope) == 9
    total = peer.array(peer.ask(GradientRequest("conv", "image")).gradient)
    np.testing.assert_allclose(total[0, :, 1, 3], kernel.sum(axis=(0, 2, 3)), atol=1e-5)
    held = peer.ask(WeightsRequest("conv")).tensors
    assert {name: peer.array(handle).shape for name, handle in held.items()} == {"kernel": (2, 3, 3, 1), "bias": (2,)}


def test_weights_are_read_again_where_the_network_needs_others(peer, weights, tmp_path):
    held = peer.worker.session.weights
    peer.ask(UpdateRequest(document(stride="1x2")))
    assert peer.worker.session.weights is held
    reply = peer.ask(UpdateRequest(document(kernel="1x1")))
    assert {status.status for status in reply.report if status.tensor == "kernel"} == {WeightStatus.WRONG_SHAPE}
    peer.ask(UpdateRequest(document()))
    double = {key: 2 * array for key, array in TENSORS.items()}
    save_weights(tmp_path / "double.safetensors", double)
    peer.ask(SetWeightsRequest(str(tmp_path / "double.safetensors")))
    reply = peer.ask(RunRequest(("conv",)))
    np.testing.assert_allclose(peer.array(reply.captures["conv"]), 2 * expected(), atol=1e-5)
    peer.ask(UpdateRequest(document(apply_bias="false")))  # the weights are those of the same file
    reply = peer.ask(RunRequest(("conv",)))
    bias = TENSORS[WeightKey("conv", "bias")][:, None, None]
    np.testing.assert_allclose(peer.array(reply.captures["conv"]), 2 * (expected() - bias), atol=1e-5)
    peer.ask(UpdateRequest(document()))
    save_weights(tmp_path / "part.safetensors", {key: array for key, array in TENSORS.items() if key.tensor == "bias"})
    with pytest.raises(DiagnosticError, match="does not have the weights of conv"):
        peer.ask(SetWeightsRequest(str(tmp_path / "part.safetensors")))


def test_seeded_weights_fill_what_is_missing(tmp_path):
    made = Peer(tmp_path / "shared")
    seeds = {}
    for seed in (1, 2, 1):
        reply = made.ask(OpenRequest(document(), seed=seed, engine="torch"))
        assert f"seed {seed}" in reply.note
        seeds.setdefault(seed, []).append(made.worker.session.weights.tensors[WeightKey("conv", "kernel")])
    np.testing.assert_array_equal(*seeds[1])
    assert not np.array_equal(seeds[1][0], seeds[2][0])
    reply = made.ask(OpenRequest(document(), engine="torch"))
    assert {status.status for status in reply.report} == {WeightStatus.MISSING}


def test_a_prediction_for_another_machine(peer):
    reply = peer.ask(PredictRequest("T4", "fp16", 5, (10, 8), "sgd with momentum"))
    (run,) = reply.profile.runs
    assert (run.device, run.precision, run.batch, run.size) == ("T4", "fp16", 5, "10x8")
    assert run.flops == 2 * 5 * 80 * 2 * 3 * 3
    rows = {row.layer: row for row in reply.training}
    learned = 4 * (18 + 2)
    assert (rows["conv"].weights, rows["conv"].gradients, rows["conv"].optimizer) == (learned, learned, learned)
    assert rows["conv"].activations == 4 * 5 * 2 * 80
    assert reply.profile.network == "net"
    assert peer.ask(PredictRequest("T4")).profile.runs[0].size == "6x4"


def test_a_profile_of_every_batch_and_size(peer, tmp_path, monkeypatch):
    peaks = Peaks(*[measured(1e15)] * 3, 1 << 20, measured(0.0), "", "torch", "fp32", 1)
    monkeypatch.setattr(measure, "measure_peaks", lambda options: peaks)
    partial = tmp_path / "partial.json"
    reply = peer.ask(
        ProfileRequest(2, (1, 2), ((8, 4), (6, 10)), layouts=("nhwc",), counters=False, partial=str(partial))
    )
    found = [(run.batch, run.size, run.layout, run.iterations) for run in reply.profile.runs]
    assert sorted(found) == sorted(
        (batch, size, layout, 2) for batch in (1, 2) for size in ("8x4", "6x10") for layout in ("nchw", "nhwc")
    )
    assert partial.is_file()


def test_comparisons_of_layers_in_other_formats(peer):
    peer.ask(SetParamRequest("root", "function", "square"))
    reply = peer.ask(CompareTensorRequest("conv", "fp32", "fp16"))
    single, half = peer.array(reply.a), peer.array(reply.b)
    np.testing.assert_allclose(single, expected(), atol=1e-5)
    np.testing.assert_array_equal(half, half.astype(np.float16).astype(np.float32))
    assert 0 < np.abs(single - half).max() < 0.01
    blamed = peer.ask(BlameRequest("fp32", "fp16"))
    assert [item.layer for item in blamed.operators] == ["conv", "root"]
    assert sum(item.share for item in blamed.operators) == pytest.approx(1, abs=1e-6)
    bits = peer.ask(BitsRequest())
    assert [(item.layer, item.weights) for item in bits.layers] == [("conv", 20)]
    # 18 weights of the kernel, and two biases that have 32 bits in integer formats.
    assert [point.bytes for point in bits.points] == [80, 40, 26, 22, 17, 13]
    rows = peer.ask(MeasureVariantsRequest((Variant("half", "fp16"), Variant("bad", "fp31")), "torch", threads=1)).rows
    assert [(row.name, row.bytes, row.emulated) for row in rows] == [
        ("", 80, False),
        ("half", 40, True),
        ("bad", 0, False),
    ]
    assert rows[1].psnr > 40
    assert (rows[1].milliseconds, rows[0].psnr) == (None, None)
    assert "fp31" in rows[2].error


def test_formats_of_single_layers_are_emulated(tmp_path, weights):
    made = Peer(tmp_path / "shared")
    made.ask(OpenRequest(document(), weights, engine="emulated", formats={"conv": "float16"}))
    made.ask(SetInputTensorRequest("image", made.shared.put(IMAGE), is_image=True))
    reply = made.ask(RunRequest(("conv",)))
    half = made.array(reply.captures["conv"])
    assert reply.emulated
    np.testing.assert_array_equal(half, half.astype(np.float16).astype(np.float32))
    made.ask(SetFormatsRequest({}))
    reply = made.ask(RunRequest(("conv",)))
    np.testing.assert_allclose(made.array(reply.captures["conv"]), expected(), atol=1e-5)
    assert not np.array_equal(made.array(reply.captures["conv"]), half)


def test_nothing_is_answered_before_a_network_is_open(tmp_path):
    with pytest.raises(DiagnosticError, match="no network is open"):
        Peer(tmp_path / "shared").ask(RunRequest())
    assert worker._partial_file("") is None


# --- sweeps ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    made = Sweep(tmp_path, trials([Axis("lr", ("0.1", "0.2", "0.3"))]))
    made.job.path.mkdir(parents=True, exist_ok=True)
    return made


def test_trials_that_failed_are_named_in_the_status(sweep, monkeypatch):
    seen = []

    def here(found, waiting, parallel, ended):
        seen.append((found, [trial.number for trial in waiting], parallel))
        for trial, state in zip(waiting, (RunState.FINISHED, RunState.FAILED), strict=True):
            ended(trial, state, "why")

    monkeypatch.setattr(sweep_process, "run_here", here)
    ended = []
    chosen = list(sweep.trials)[1:]
    sweep_process.conduct(sweep, chosen, sweep_process.Place(2), lambda *each: ended.append(each))
    assert seen == [(sweep, [trial.number for trial in chosen], 2)]
    assert [(trial.number, state) for trial, state, _ in ended] == [
        (chosen[0].number, RunState.FINISHED), (chosen[1].number, RunState.FAILED)
    ]  # fmt: skip
    status = (sweep.job.path / "status.json").read_text()
    assert '"finished"' in status
    assert f"1 trial failed: {chosen[1].name}" in status


@pytest.mark.parametrize(
    ("error", "state", "message"),
    [
        (DiagnosticError.of("x", "no space", remedy="free some"), "failed", "no space. free some"),
        (KeyboardInterrupt(), "stopped", ""),
    ],
)
def test_a_sweep_that_ends_early_says_why(sweep, monkeypatch, error, state, message):
    def fails(*_):
        raise error

    monkeypatch.setattr(sweep_process, "run_here", fails)
    with pytest.raises(type(error)):
        sweep_process.conduct(sweep, list(sweep.trials), sweep_process.Place(), lambda *_: None)
    status = (sweep.job.path / "status.json").read_text()
    assert f'"{state}"' in status
    assert message in status


def test_the_place_of_a_sweep(sweep):
    assert sweep_process.read_place(sweep) == sweep_process.Place(1, "")
    (sweep.folder / "place.json").write_text('{"parallel": 3, "cluster": "here:1"}')
    assert sweep_process.read_place(sweep) == sweep_process.Place(3, "here:1")
    (sweep.folder / "place.json").write_text("{")
    assert sweep_process.read_place(sweep) == sweep_process.Place()


def test_tensors_stay_unscaled_in_comparisons(tmp_path, weights):
    made = Peer(tmp_path / "shared")
    made.ask(OpenRequest(document(), weights, engine="torch", threads=1))
    made.ask(SetInputTensorRequest("image", made.shared.put(IMAGE), is_image=False))
    reply = made.ask(CompareTensorRequest("conv", "fp32", "fp16"))
    np.testing.assert_allclose(made.array(reply.a), expected(1.0), atol=1e-5)
