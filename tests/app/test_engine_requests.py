"""Requests answered in this process: which values reach the domain, in which order and unit, and what comes back."""

from __future__ import annotations

import itertools
import json
import os
import threading
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from reached import ReachedError, reach

from app.engine import queries, sweep_process, worker
from app.engine.counted_run import count
from app.engine.protocol import (
    Asked,
    BitsRequest,
    BlameRequest,
    ChoosePrecisionReply,
    ChoosePrecisionRequest,
    CompareTensorRequest,
    ExportVideoReply,
    ExportVideoRequest,
    GradientRequest,
    LayerSensitivity,
    MeasureVariantsRequest,
    NonfiniteShare,
    OpenRequest,
    PassesRequest,
    PassRow,
    PingRequest,
    PredictRequest,
    ProfiledNetwork,
    ProfileRequest,
    ReceptiveFieldRequest,
    RemeasureRequest,
    RunRequest,
    SetFormatsRequest,
    SetInputRequest,
    SetInputTensorRequest,
    SetParamRequest,
    SetWeightsRequest,
    TraceNonfiniteRequest,
    UpdateRequest,
    VariantRow,
    WeightsRequest,
)
from app.engine.video_job import VideoJob
from app.engine.worker import Worker
from designer.files.document import write_document
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.files.weights import WeightKey, WeightStatus
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.types import Size2D
from designer.operators.code_text import digest
from designer.operators.library.development.custom import Custom
from designer.operators.registry import default_registry
from designer.passes.effect import PassEffect
from designer.passes.passes import PassResult, Traffic
from designer.precision.int8 import Sensitivity
from designer.precision.measure import VariantMeasurement
from designer.precision.mixed import PrecisionResult
from designer.profiling import measure
from designer.profiling.configurations import Grid
from designer.profiling.machine import Machine
from designer.profiling.peaks import Peaks
from designer.profiling.profile_files import load_profile
from designer.profiling.quantities import measured
from designer.profiling.schema import Profile, ProfileRun, TrainingStep
from designer.runtime.edit_effect import EditEffect
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


def test_seeded_weights_fill_what_is_missing(tmp_path, weights):
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
    part = tmp_path / "part.safetensors"
    save_weights(part, {key: array for key, array in TENSORS.items() if key.tensor == "bias"})
    for file, note in ((weights, ""), (str(part), "1 of 2 tensors random (seed 1)")):
        reply = made.ask(OpenRequest(document(), file, 1, engine="torch"))
        assert (reply.note, {status.status for status in reply.report}) == (note, {WeightStatus.BOUND})
        found = made.worker.session.weights.tensors
        kernel = seeds[1][0] if note else TENSORS[WeightKey("conv", "kernel")]
        np.testing.assert_array_equal(found[WeightKey("conv", "kernel")], kernel)
        np.testing.assert_array_equal(found[WeightKey("conv", "bias")], TENSORS[WeightKey("conv", "bias")])


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


# --- what requests ask for, and what is answered -----------------------------------------------------------------


def reached(peer: Peer, monkeypatch: pytest.MonkeyPatch, target: str, request: object) -> Any:
    """The arguments with which a request calls a function."""
    with monkeypatch.context() as patch:
        reach(patch, target)
        with pytest.raises(ReachedError) as found:
            peer.ask(request)
    return found.value.args[0]


def test_every_field_of_a_profile_request_is_measured(peer, monkeypatch, tmp_path):
    target, partial = "designer.profiling.measure.profile_session", tmp_path / "partial.json"
    request = ProfileRequest(
        7, (2, 5), ((8, 4), (6, 10)), ("onnxruntime",), ("fp16",), ("nhwc",), counters=True, partial=str(partial)
    )
    call = reached(peer, monkeypatch, target, request)
    sizes = (Size2D(8, 4), Size2D(6, 10))
    assert (call.session, call.iterations) == (peer.worker.session, 7)
    assert replace(call.grid, sizes=tuple(call.grid.sizes)) == Grid(
        ("onnxruntime",), ("fp16",), ("nhwc",), (2, 5), sizes
    )
    assert call.more["counters"] is count
    made = Profile(Machine("Test CPU", 2), "net", (ProfileRun("torch", "fp32", "nchw", "cpu", 1, "6x4", 8.0, 0.0, ()),))
    call.on_profile(made)
    assert load_profile(partial) == made
    call = reached(peer, monkeypatch, target, ProfileRequest(counters=False))
    assert (call.iterations, replace(call.grid, sizes=()), call.more["counters"], call.on_profile) == (
        10,
        Grid(),
        None,
        None,
    )
    step = TrainingStep(4, 15.0, 5.0, 4.0, 3.0, 2.0, 1.0, "compute", "the device is never idle")
    monkeypatch.setattr(target, lambda *_, **__: made)
    monkeypatch.setattr("app.engine.training_profile.profile_training", lambda *_: step)
    for training in (False, True):
        (run,) = peer.ask(ProfileRequest(training=training)).profile.runs
        assert run.training == (step if training else None)


def test_variants_are_measured_with_the_options_of_the_request(peer, monkeypatch):
    variants = (Variant("half", "fp16"), Variant("coarse", "int8"))
    target, said = "designer.precision.measure.measure_variants", []
    call = reached(peer, monkeypatch, target, MeasureVariantsRequest(variants, "onnxruntime", "nhwc", "cuda", 3))
    assert (call.session, call.variants) == (peer.worker.session, variants)
    opened = peer.worker.session.options
    assert call.base == replace(opened, engine="onnxruntime", layout="nhwc", device="cuda", threads=3)
    rows = (
        VariantMeasurement("", 80, nan, nan, 20.125, 0.25, 12.5),
        VariantMeasurement("half", 40, inf, 1.0, -inf, 0.5, nan, emulated=True),
        VariantMeasurement("coarse", error="it cannot run"),
    )

    def measured_here(fed, base, asked, export, progress):
        progress(1, "half")
        return rows

    monkeypatch.setattr(target, measured_here)
    found = queries.measure(peer.worker.session, MeasureVariantsRequest(variants), lambda *each: said.append(each))
    assert said == [(1, 3, "half")]
    assert found.rows == (
        VariantRow("", 80, None, None, 20.125, 0.25, 12.5),
        VariantRow("half", 40, 999.0, 1.0, -inf, 0.5, None, True),
        VariantRow("coarse", error="it cannot run"),
    )


def test_a_precision_is_chosen_as_the_request_says(peer, monkeypatch, tmp_path):
    validation = SimpleNamespace(images={"a": 1, "b": 2}, skipped={"c.txt": "not an image"})
    seen = []
    monkeypatch.setattr(
        "designer.precision.mixed.validate", lambda emulation, folder, _: seen.append(folder) or validation
    )
    request = ChoosePrecisionRequest("mixed", str(tmp_path), 33.5)
    call = reached(peer, monkeypatch, "designer.precision.mixed.choose_precision", request)
    assert (call.validation, call.target, call.budget_db, call.keep) == (validation, "mixed", 33.5, ())
    assert seen == [tmp_path]
    for psnr, shown, bf16 in ((41.25, 41.25, 38.5), (inf, None, inf), (41.25, 41.25, None)):
        chosen = PrecisionResult("mixed", psnr, 33.5, {"conv": "it overflows"}, {"conv": 7e4}, bf16_db=bf16)
        monkeypatch.setattr("designer.precision.mixed.choose_precision", lambda *_, chosen=chosen, **__: chosen)
        assert peer.ask(request) == ChoosePrecisionReply(
            chosen.precision, shown, True, {"conv": "it overflows"}, 2, {"c.txt": "not an image"}, overflow={"conv": 7e4},
            bf16_db=38.5 if bf16 == 38.5 else None,
        )  # fmt: skip


def test_int8_is_calibrated_as_the_request_says(peer, monkeypatch):
    recipe = CalibrationRecipe("/images", 9, "48x32", "percentile", 99.5, "tensorrt")
    request = ChoosePrecisionRequest("int8+fp16", "/images", 33.5, recipe, "float16")
    call = reached(peer, monkeypatch, "exporters.int8.quantize_network", request)
    session = peer.worker.session
    assert (call.graph, call.registry, call.weights) == (session.graph, session.registry, session.weights)
    assert (call.recipe, call.budget_db, call.format) == (recipe, 33.5, "float16")
    sensitivity = (Sensitivity("none", inf, 20.0), Sensitivity("less", 50.0, 30.0), Sensitivity("conv", 31.25, inf))
    result = SimpleNamespace(psnr_db=41.25, met=False, kept={"conv": "first layer"}, sensitivity=sensitivity)
    images = SimpleNamespace(names=("a", "b"), skipped={"c.txt": "not an image"})
    report = SimpleNamespace(result=result, images=images, bytes=1024, bytes_fp32=4096, as_dict=lambda: {"bytes": 1024})
    monkeypatch.setattr("exporters.int8.quantize_network", lambda *_, **__: (b"", report))
    found = peer.ask(request)
    assert json.loads(found.report) == {"bytes": 1024}
    assert msgspec.structs.replace(found, report="") == ChoosePrecisionReply(
        "int8", 41.25, False, {"conv": "first layer"}, 2, {"c.txt": "not an image"}, "float16",
        sensitivity=(LayerSensitivity("conv", 31.25, 999.0), LayerSensitivity("less", 50.0, 30.0), LayerSensitivity("none", 999.0, 20.0)),
        bytes=1024, bytes_fp32=4096,
    )  # fmt: skip
    result.psnr_db = inf
    assert peer.ask(request) == msgspec.structs.replace(found, psnr_db=None)


def test_passes_are_answered_with_their_effects(peer, monkeypatch):
    target = "designer.passes.effect.pass_effects"
    call = reached(peer, monkeypatch, target, PassesRequest(("fold_constants",)))
    assert (call.session, call.names) == (peer.worker.session, ("fold_constants",))
    effects = [
        PassEffect(PassResult("a", 2, Traffic(9, 4096), Traffic(7, 3072)), True, EditEffect(0.25, False)),
        PassEffect(PassResult("b", 1, Traffic(7, 3072), Traffic(6, 1024)), False, EditEffect(inf, False)),
        PassEffect(PassResult("c", 0, Traffic(6, 1024), Traffic(6, 1024)), False, None),
        PassEffect(PassResult("d", 3, Traffic(6, 1024), Traffic(5, 512)), True, EditEffect(0.0, True)),
    ]
    monkeypatch.setattr(target, lambda *_: effects)
    assert peer.ask(PassesRequest(())).rows == (
        PassRow("a", True, 2, (9, 7), (4096, 3072), 0.25, False),
        PassRow("b", False, 1, (7, 6), (3072, 1024), None, False),
        PassRow("c", False, 0, (6, 6), (1024, 1024), None, True),
        PassRow("d", True, 3, (6, 5), (1024, 512), 0.0, True),
    )


def test_every_field_of_an_exported_video_is_in_its_job(peer, monkeypatch):
    files = ({"image": "/a.mp4"}, {"result": "/b.mkv"})
    request = ExportVideoRequest(*files, 2, 9, 12.5, "mjpeg", 80, ".npy", "0f")
    call = reached(peer, monkeypatch, "app.engine.video_job.process", request)
    paths = ({"image": Path("/a.mp4")}, {"result": Path("/b.mkv")})
    assert (call.session, call.job) == (peer.worker.session, VideoJob(*paths, 2, 9, 12.5, "mjpeg", 80, ".npy", "0f"))
    done = SimpleNamespace(frames=7, fps=12.5, seconds=1.5, notes=("a note",))
    monkeypatch.setattr("app.engine.video_job.process", lambda *_: done)
    assert peer.ask(request) == ExportVideoReply(7, 12.5, 1.5, ("a note",))


def test_a_network_is_opened_as_its_variant(peer, weights, monkeypatch):
    deployed = Variant("coarse", "int8", calibration=CalibrationRecipe("/images"))
    request = OpenRequest(document(), weights, engine="torch", deployed=deployed, formats={"conv": "float16"})
    call = reached(peer, monkeypatch, "app.engine.worker.variant_session", request)
    assert (call.variant, call.options.formats) == (deployed, (("conv", "float16"),))
    with pytest.raises(DiagnosticError, match="no network is open"):
        peer.ask(RunRequest())  # not the one of before
    for passes in ((), ("fold_constants",)):
        peer.ask(OpenRequest(document(), weights, engine="torch", passes=passes))
        assert (peer.worker._optimized is not None) is bool(passes)
    for sparsity in ("dense", "2:4"):
        reach_sparse = []
        monkeypatch.setattr(
            "app.engine.worker.sparse_weights", lambda *each, seen=reach_sparse: seen.append(each) or each[-1]
        )
        peer.ask(OpenRequest(document(), weights, engine="torch", sparsity=sparsity))
        peer.ask(SetWeightsRequest(weights))
        assert len(reach_sparse) == (2 if sparsity == "2:4" else 0)


def test_only_captured_layers_are_those_of_the_document_before_the_passes(peer, weights, monkeypatch):
    """Runs, profiles with their training step, networks measured in turns and videos are of the network after the passes."""
    made = []

    def optimized(session, names):
        made.append(SimpleNamespace(graph="g", registry="r", options="o", of=session, names=names))
        return SimpleNamespace(current=lambda: made[-1])

    monkeypatch.setattr("app.engine.worker.OptimizedSession", optimized)
    opened = OpenRequest(document(), weights, engine="torch", passes=("drop_identities",))
    peer.ask(opened)
    (after,) = made
    assert (after.of, after.names) == (peer.worker.session, ("drop_identities",))
    runs = peer.worker._runs
    with monkeypatch.context() as patch:
        patch.setattr(runs, "run", lambda session_of, request, progress: session_of())
        assert peer.ask(RunRequest()) is after
        assert peer.ask(RunRequest(("conv",))) is peer.worker.session
    for request, target in (
        (ProfileRequest(), "designer.profiling.measure.profile_session"),
        (ExportVideoRequest({}, {}), "app.engine.video_job.process"),
    ):
        assert reached(peer, monkeypatch, target, request).session is after
    with monkeypatch.context() as patch:
        patch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: "found")
        patch.setattr("app.engine.training_profile.with_training_step", lambda *each: each)
        assert peer.ask(ProfileRequest(training=True)).profile == ("found", "g", "r", "o")
    again = RemeasureRequest((ProfiledNetwork(opened, 1, None),), 1)
    call = reached(peer, monkeypatch, "designer.profiling.measure.configurations", again)
    assert call.session is made[-1]
    assert made[-1] is not after


def test_weights_that_are_missing_are_reported_before_they_are_pruned(peer, weights, tmp_path):
    save_weights(tmp_path / "part.safetensors", {key: array for key, array in TENSORS.items() if key.tensor == "bias"})
    for path in (None, str(tmp_path / "part.safetensors")):
        reply = peer.ask(OpenRequest(document(), path, engine="torch", sparsity="2:4"))
        assert {each.status for each in reply.report if each.tensor == "kernel"} == {WeightStatus.MISSING}
    with pytest.raises(DiagnosticError, match="no layer can be pruned"):
        peer.ask(OpenRequest(document(), weights, engine="torch", sparsity="2:4"))


def test_a_network_is_opened_with_the_problems_of_its_file_of_plugins_and_of_its_layers(tmp_path, monkeypatch):
    """Those of plugins are reported once, when it is opened."""
    known = default_registry()
    plugin = Diagnostic("plugin", "a plugin is broken", severity=Severity.WARNING)
    registry = replace(known, diagnostics=[plugin])
    monkeypatch.setattr("app.engine.worker.default_registry", lambda: registry)
    made = Peer(tmp_path / "shared")
    text = document(unknown="3").replace(' edit_pos="0,0"', "", 1)
    opened = made.ask(OpenRequest(text, engine="torch", seed=1)).diagnostics
    assert [d.code for d in opened] == ["missing-position", "plugin", "unknown-parameter"]
    assert opened[1] == plugin
    again = made.ask(UpdateRequest(text)).diagnostics
    assert [d.code for d in again] == ["missing-position", "unknown-parameter"]


def test_sources_that_nobody_agreed_to_are_refused_all_at_once_also_after_an_edit(tmp_path):
    """Of the layers that the outputs need, in the order of their names, before anything runs."""
    source = "class Gain(nn.Module):\n    def forward(self, x):\n        return x * 2\n"

    def text(*texts):
        layers = [Layer("image", "input", params={"dims": "6x4x3"})]
        for name, own in zip("bac", texts, strict=True):
            read = layers[-1].name if name != "c" else "image"
            layers.append(Layer(name, "custom", inputs=(Source(read),), params={"source": own, "class_name": "Gain"}))
        layers.append(Layer("result", "output", inputs=(Source("a"),)))
        return write_document(Graph(layers, name="net")).decode()

    def refused(request):
        with pytest.raises(DiagnosticError) as caught:
            made.ask(request)
        return [(found.code, found.layer) for found in caught.value.diagnostics]

    other = source.replace("2", "3")
    made = Peer(tmp_path / "shared")
    agreed = (digest(Custom(source=source, class_name="Gain").agreement),)
    assert refused(OpenRequest(text(source, source, source), engine="torch")) == [("not-agreed", n) for n in "ab"]
    assert refused(OpenRequest(text(source, other, other), engine="torch", agreed=agreed)) == [("not-agreed", "a")]
    made.ask(OpenRequest(text(source, source, other), engine="torch", agreed=agreed))
    made.ask(SetInputTensorRequest("image", made.shared.put(IMAGE), is_image=True))
    assert refused(UpdateRequest(text(other, other, source))) == [("not-agreed", n) for n in "ab"]
    assert refused(UpdateRequest(text(other, source, source))) == [("not-agreed", "b")]
    made.ask(UpdateRequest(text(source, source, source)))
    found = made.shared.get(made.ask(RunRequest()).outputs["result"])
    np.testing.assert_allclose(found, 4 * IMAGE, rtol=1e-6)


@pytest.mark.parametrize("refused", [False, True])
def test_nothing_of_the_network_before_is_left(peer, weights, monkeypatch, tmp_path, refused):
    """Neither that its previews failed, nor what it was fed with, nor its weights, seed, formats and passes."""
    tried, held = [], []

    class Failing:
        def __init__(self, full, factor):
            self.full, self.factor = full, factor

        def run(self, sources, progress):
            tried.append(self.full)
            raise DiagnosticError.of("too-small", "the network needs a larger image")

    def run():
        monkeypatch.setattr(peer.worker.session, "expected", lambda sources: 1000.0)
        return peer.ask(RunRequest(("conv",), ("conv",), budget=10))

    monkeypatch.setattr("app.engine.runs.Preview", Failing)
    monkeypatch.setattr("app.engine.worker.sparse_weights", lambda graph, registry, weights: weights)
    monkeypatch.setattr(peer.worker._playing._sources, "release", held.append)
    np.save(tmp_path / "image.npy", IMAGE)
    path = str(tmp_path / "image.npy")
    peer.ask(SetInputRequest("image", path))
    first = peer.worker.session
    run()
    assert (run().same, tried) == (("conv",), [first])  # a preview that failed is not tried again
    other = document().replace("image", "picture")
    if refused:
        with pytest.raises(DiagnosticError):
            peer.ask(OpenRequest("<", weights))
        with pytest.raises(DiagnosticError, match="no network is open"):
            peer.ask(RunRequest())
    peer.ask(OpenRequest(document(), weights, engine="torch"))
    assert held == [frozenset({path})]
    peer.ask(SetInputRequest("image", path))
    assert run().same == ()
    assert tried == [first, peer.worker.session]
    peer.ask(OpenRequest(other, seed=4, sparsity="2:4", engine="torch", passes=("fold_constants",)))
    assert held[1:] == [frozenset()]
    reply = peer.ask(OpenRequest(document(), engine="torch"))
    made = peer.worker
    assert (made._seed, made._weights_path, made._sparse, made._optimized) == (None, None, False, None)
    assert {status.status for status in reply.report} == {WeightStatus.MISSING}


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


def test_a_sweep_is_interrupted_once(sweep, monkeypatch):
    """A second interrupt would end it before its trials have saved their checkpoints."""
    commands, interrupts = itertools.chain(["", "pause"], itertools.repeat("stop")), []
    others = set(threading.enumerate())
    monkeypatch.setattr(sweep_process, "LOOK", 0.001)
    monkeypatch.setattr(
        sweep_process, "_thread", SimpleNamespace(interrupt_main=lambda: interrupts.append(next(commands)))
    )
    monkeypatch.setattr(sweep_process.mirror, "command", lambda job: next(commands))
    with sweep_process._stopped_by_command(sweep.job):
        for watcher in set(threading.enumerate()) - others:  # it may have ended already
            watcher.join(5)
        assert set(threading.enumerate()) <= others
    assert interrupts == ["stop"]


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
