"""How long a user waits while looking at a network: the sample denoiser on a photograph of 512 x 512.

`make bench` measures at full size; an ordinary test run goes through the same code once, small.
"""

from __future__ import annotations

import os
import subprocess
from time import perf_counter

import numpy as np
import pytest
from bench_kit import medians_in_turns

import samples
from app.process import module_command
from designer.files.document import read_document
from designer.files.weights import load_weights, required_weights
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.images import read_image, read_npy, write_image
from designer.runtime.machine import physical_cores
from designer.runtime.network import passes_through
from designer.runtime.plan import PartStep
from designer.runtime.session import Session

pytest.importorskip("pytest_benchmark")
ort = pytest.importorskip("onnxruntime")
PAIRS = 9


@pytest.fixture(scope="module")
def analysis_registry():
    return load(entry_points=False)


@pytest.fixture
def photograph(benchmark, tmp_path):
    side = 64 if benchmark.disabled else 512
    picture = read_image(sorted(samples.PHOTOGRAPHS.glob("*.[jp][pn]g"))[0])[:, :, :side, :side]
    write_image(tmp_path / "photograph.png", np.ascontiguousarray(picture))
    return tmp_path / "photograph.png"


def session_of(registry, photograph, name="denoiser_analyze.xml") -> Session:
    graph = read_document(samples.path(name)).graph
    needed = required_weights(Inference(graph, registry))
    session = Session(graph, registry, load_weights(samples.path("weights/denoiser"), needed), RunOptions())
    (layer,) = (item.name for item in graph if item.type == "input")
    session.set_input_file(layer, photograph)
    session.run()
    return session


def compare(benchmark, report, what, ours, peer, peer_name, target) -> None:
    mine, theirs = medians_in_turns(ours, peer, 1 if benchmark.disabled else PAIRS)
    report.ratio(what, mine, "ms", peer=theirs, peer_name=peer_name, target=target)
    benchmark.pedantic(ours, rounds=1)


def full(session, captures=()):
    def work():
        session.results.clear()
        return session.run(captures)

    return work


def test_mix_beside_a_full_run(benchmark, report, analysis_registry, photograph):
    session = session_of(analysis_registry, photograph)
    count = 0

    def drag():
        nonlocal count
        count += 1
        session.set_param("mix_0", "amount", f"{count % 997 / 997:.5f}")
        return session.run()

    assert [s.layers for s in drag().steps if not s.cached] == [("mix_0",)]
    session.results.clear()
    session.run()

    def plain():
        session.results.clear()
        session.run()

    compare(benchmark, report, "Mix amount changed", drag, plain, "full run", 1 / 50)


def test_noise_beside_the_plain_engine(benchmark, report, analysis_registry, photograph):
    """What a move of Noise costs: noise, the network and Mix, against the network alone in plain ONNX Runtime."""
    session = session_of(analysis_registry, photograph)
    step = next(s for s in session.plan().steps if isinstance(s, PartStep))
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = physical_cores(), 1
    options.log_severity_level = 3
    model = serialized(build_model(session.inference, step.part, step.wanted, session.weights))
    plain = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (feed,) = step.part.feeds
    array = session.run([feed]).captures[feed]
    count = 0

    def drag():
        nonlocal count
        count += 1
        session.set_param("noise_0", "scale", f"{0.01 + count / 10_000:.5f}")
        return session.run()

    compare(
        benchmark, report, "Noise scale changed", drag, lambda: plain.run(None, {str(feed): array}),
        "ONNX Runtime, network alone", 1.05,
    )  # fmt: skip


def hidden(session) -> list[Source]:
    step = next(s for s in session.plan().steps if isinstance(s, PartStep))
    names = [name for name in step.part.layers if not passes_through(session.inference, name)]
    return [source for name in names for source in session.inference.tensors(name)]


def test_one_hidden_layer_captured(benchmark, report, analysis_registry, photograph):
    session = session_of(analysis_registry, photograph)
    layers = hidden(session)
    one = layers[len(layers) // 2 :][:1]
    compare(benchmark, report, "one hidden layer captured", full(session, one), full(session), "run without", 1.10)


def test_all_hidden_layers_captured(benchmark, report, analysis_registry, photograph):
    session = session_of(analysis_registry, photograph)
    layers = hidden(session)
    assert len(layers) > 5
    what = f"all {len(layers)} hidden layers captured"
    compare(benchmark, report, what, full(session, layers), full(session), "run without", 1.5)


def test_first_image_after_opening_a_photograph(benchmark, report, analysis_registry, photograph):
    session = session_of(analysis_registry, photograph)
    (layer,) = (item.name for item in session.graph if item.type == "input")

    def opened():
        session.set_input_file(layer, photograph)
        session.run()

    compare(benchmark, report, "photograph opened and run", opened, full(session), "full run", 1.5)


def test_a_large_image_in_automatic_tiles(benchmark, report, tmp_path):
    """24 megapixels through `layerwright run`, each run in a process of its own."""
    height, width = (96, 128) if benchmark.disabled else (4000, 6000)
    photograph = read_image(samples.PHOTOGRAPHS / "coffee.jpg")
    repeated = np.tile(photograph, (1, 1, -(-height // photograph.shape[2]), -(-width // photograph.shape[3])))
    write_image(tmp_path / "large.png", repeated[:, :, :height, :width])
    seconds, memory = run_in_tiles(tmp_path, "auto")
    peer, _ = run_in_tiles(tmp_path, "1024")
    megapixels = f"{height * width / 1e6:.0f} megapixels in automatic tiles"
    report.ratio(megapixels, seconds, "s", peer=peer, peer_name="--tile 1024", target=1.12)
    report.value(f"{megapixels}, peak memory", memory, "MB", target=2500)
    benchmark.pedantic(lambda: None, rounds=1)
    np.testing.assert_allclose(read_npy(tmp_path / "auto.npy"), read_npy(tmp_path / "1024.npy"), atol=1e-5)


def run_in_tiles(folder, tile) -> tuple[float, float]:
    """Seconds and peak memory in MB of a run of the sample denoiser on `large.png`."""
    command = ["run", str(samples.path("denoiser.xml")), "--tile", tile,
               "--input", f"input_image={folder / 'large.png'}", "--output", f"output_image={folder / tile}.npy"]  # fmt: skip
    started = perf_counter()
    process = subprocess.Popen(module_command("app.main", *command), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return perf_counter() - started, used.ru_maxrss * 1024 / 1e6
