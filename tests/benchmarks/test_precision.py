"""What number formats save and cost. Ratios are taken in one run, because a busy machine disturbs both sides."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np
import pytest
from bench_kit import medians_in_turns
from restoration_networks import restoring_unet, restoring_weights

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

import samples
from app.engine.protocol import RunRequest
from app.engine.runs import Runs
from app.ui.engine.coarse_to_fine import BUDGET as BUDGET_MS
from designer.files.document import read_document
from designer.files.weights import load_weights, required_weights
from designer.graph.inference import Inference
from designer.operators.registry import load
from designer.precision.int8 import Fidelity, Quantizer, quantize
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.engines.rounded_torch import EMULATED
from designer.runtime.images import read_image
from designer.runtime.machine import physical_cores
from designer.runtime.plan import PartStep
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder
from exporters.mixed import formatted
from exporters.onnx import export_onnx
from samples import PHOTOGRAPHS, path

PAIRS = 15
FEATURES = 32  # 472,387 parameters
BUDGET = 40.0


@pytest.fixture(scope="module")
def bench_registry():
    return load(entry_points=False)


def test_int8_beside_torch(benchmark, report, bench_registry):
    features, side, count = (4, 32, 2) if benchmark.disabled else (FEATURES, 256, 8)
    graph = restoring_unet(features, side)
    session = Session(graph, bench_registry, restoring_weights(graph, bench_registry), RunOptions(engine="torch"))
    photos = [read_image(path)[:, :, :side, :side] for path in sorted(PHOTOGRAPHS.glob("*.jpg"))[:count]]
    session.set_input("image", photos[0], is_image=True)
    (step,) = (step for step in session.plan().steps if isinstance(step, PartStep))
    model = build_model(session.inference, step.part, step.wanted, session.weights)
    feeds = [{"image": np.ascontiguousarray(photo)} for photo in photos]
    quantizer = Quantizer(model, feeds)
    found = quantize(quantizer, Fidelity(model, feeds), BUDGET)
    int8 = inference_session(found.model.SerializeToString(), physical_cores())
    eager = session.engine.compile(step.part, step.wanted)
    image = dict.fromkeys(step.part.feeds, feeds[0]["image"])
    pairs = 1 if benchmark.disabled else PAIRS
    mine, theirs = medians_in_turns(lambda: int8.run(None, feeds[0]), lambda: eager.run(image), pairs)
    what = f"U-Net of 472 k parameters in INT8, {found.psnr_db:.1f} dB against FP32"
    report.ratio(what, mine, "ms", peer=theirs, peer_name="torch, FP32", target=1 / 2.5)
    report.value("RMS error of INT8, range 0..1", 10 ** (-found.psnr_db / 20), "", target=10 ** (-BUDGET / 20))
    benchmark.pedantic(lambda: int8.run(None, feeds[0]), rounds=1)


@pytest.mark.bench
def test_live_number_format(benchmark, report, bench_registry, tmp_path):
    """From another format of one layer to the image, as the engine process answers while a user tries formats."""
    side, rounds = (64, 1) if benchmark.disabled else (512, 3)
    graph = read_document(samples.path("denoiser.xml")).graph
    weights = load_weights(samples.weights("denoiser"), required_weights(Inference(graph, bench_registry)))
    emulated = next(engine.name for engine in default_engines() if engine.formats)
    layers = [key.layer for key in weights.tensors if key.tensor == "kernel"]
    layers = layers[:3] if benchmark.disabled else layers
    session = Session(graph, bench_registry, weights, RunOptions(emulated, formats=((layers[0], "int8"),)))
    photo = read_image(PHOTOGRAPHS / "astronaut.jpg")[:, :, :side, :side]
    session.set_input("input_image", np.ascontiguousarray(photo), is_image=True)
    shared = SharedFolder(tmp_path)
    runs = Runs(shared)

    def change(layer: str, name: str) -> float:
        began = perf_counter()
        session.set_formats({layer: name})
        reply = runs.run(lambda: session, RunRequest(budget=BUDGET_MS), lambda *_: None)
        taken = (perf_counter() - began) * 1000
        for handle in reply.outputs.values():
            shared.free(handle)
        return taken

    session.run()
    for layer in layers:  # every layer once before: the first runs also build what they need
        change(layer, "int4")
    times = [change(layer, f"int{bits}") for bits in (6, 5, 3)[:rounds] for layer in layers]
    report.value("format of one layer to the image, sample denoiser 512 x 512", median(times), "ms", target=100)
    report.value("the same, slowest layer", max(times), "ms", target=100)
    benchmark.pedantic(lambda: change(layers[-1], "int8"), rounds=1)


def sample_denoiser(registry):
    graph = read_document(path("denoiser.xml")).graph
    return graph, load_weights(path("weights/denoiser"), required_weights(Inference(graph, registry)))


def test_emulated_half_precision_beside_single_precision(benchmark, report, bench_registry):
    graph, weights = sample_denoiser(bench_registry)
    side = 64 if benchmark.disabled else 256
    image = np.random.default_rng(0).random((1, 3, side, side), np.float32)
    sessions = []
    for options in (RunOptions(EMULATED.name, "fp16"), RunOptions("torch")):
        session = Session(graph, bench_registry, weights, options)
        session.set_input("input_image", image, is_image=True)
        sessions.append(session)

    def run(session):
        session.invalidate()
        return session.run()

    pairs = 1 if benchmark.disabled else PAIRS
    mine, theirs = medians_in_turns(lambda: run(sessions[0]), lambda: run(sessions[1]), pairs)
    report.ratio("sample denoiser, emulated FP16", mine, "ms", peer=theirs, peer_name="torch, FP32", target=5)
    benchmark.pedantic(lambda: run(sessions[0]), rounds=1)


def test_export_and_check_of_the_sample_denoiser(benchmark, report, bench_registry, tmp_path):
    graph, weights = sample_denoiser(bench_registry)

    def export():
        export_onnx(
            graph, bench_registry, weights, tmp_path / "x.onnx", lambda model: formatted(model, "fp16", {}).model
        )

    export()
    began = perf_counter()
    export()
    report.value("sample denoiser, export to FP16 and check", perf_counter() - began, "s", target=2)
    benchmark.pedantic(export, rounds=1)
