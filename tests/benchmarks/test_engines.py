"""How much the engines and the session cost beside the plain libraries, as ratios of interleaved pairs.

`make bench` measures at full size; an ordinary test run goes through the same code once, small. Absolute times are
recorded and never judged: the machine may be busy.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np
import pytest
from runtime_networks import analysed, pixels, plain_torch_unet, unet, unet_weights

from designer.graph.model import Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.machine import physical_cores
from designer.runtime.plan import PartStep
from designer.runtime.session import Session

pytest.importorskip("pytest_benchmark")
torch = pytest.importorskip("torch")
ort = pytest.importorskip("onnxruntime")

PAIRS = 15
FEATURES = 24


@pytest.fixture(scope="module")
def bench_registry():
    return load(entry_points=False)


def seconds(work) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def compare(benchmark, ours, plain, pairs=PAIRS) -> float:
    """Median over pairs of ours / plain, run in turns; recorded beside the benchmark's own times of `ours`."""
    pairs = 1 if benchmark.disabled else pairs
    for work in (ours, plain):
        work()
    times = []
    for number in range(pairs):
        first, second = (ours, plain) if number % 2 == 0 else (plain, ours)
        one, two = seconds(first), seconds(second)
        times.append((one, two) if first is ours else (two, one))
    ratio = median(a / b for a, b in times)
    best = min(a for a, _ in times) / min(b for _, b in times)
    benchmark.extra_info.update(ratio=round(ratio, 4), best=round(best, 4), pairs=pairs)
    benchmark.pedantic(ours, rounds=1 if benchmark.disabled else 5)
    if not benchmark.disabled:
        print(f"\n{benchmark.name}: {ratio:.4f} x plain (median of {pairs} pairs), {best:.4f} x of the best times")
    return best


def session_and_part(benchmark, registry, engine, layout="nchw", make=unet, threads=0, side=256):
    features, side = (4, 32) if benchmark.disabled else (FEATURES, side)
    weights = unet_weights(features)
    session = Session(
        make(features=features), registry, weights, RunOptions(engine=engine, layout=layout, threads=threads)
    )
    array = pixels(side, side)
    session.set_input("image", array, picture=False)
    session.run()
    step = next(s for s in session.plan().steps if isinstance(s, PartStep))
    return session, step, weights, array


def full_run(session):
    def work():
        session.invalidate()
        return session.run()

    return work


def test_onnx_runtime_engine_beside_plain_onnx_runtime(benchmark, bench_registry):
    session, step, weights, array = session_and_part(benchmark, bench_registry, "onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = physical_cores(), 1
    model = serialized(build_model(session.inference, step.part, step.wanted, weights))
    plain = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(plain.run(None, {"image": array})[0], session.run().outputs["result"])
    best = compare(benchmark, full_run(session), lambda: plain.run(None, {"image": array}))
    assert benchmark.disabled or best <= 1.10


def test_torch_engine_beside_plain_torch_channels_last(benchmark, bench_registry):
    session, _, weights, array = session_and_part(benchmark, bench_registry, "torch", "nhwc")
    before = torch.get_num_threads()
    torch.set_num_threads(physical_cores())
    try:
        module = plain_torch_unet(weights).eval().to(memory_format=torch.channels_last)

        def plain():
            with torch.inference_mode():
                x = torch.from_numpy(array).contiguous(memory_format=torch.channels_last)
                return module(x).contiguous().numpy()

        np.testing.assert_allclose(plain(), session.run().outputs["result"], atol=1e-4)
        best = compare(benchmark, full_run(session), plain)
    finally:
        torch.set_num_threads(before)
    assert benchmark.disabled or best <= 1.10  # the aim is 1.05; the rest is for a busy machine


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_changing_mix_beside_a_full_run(benchmark, bench_registry, engine):
    session, *_ = session_and_part(benchmark, bench_registry, engine, make=analysed, side=512)
    count = 0

    def drag():
        nonlocal count
        count += 1
        session.set_param("mix", "amount", f"{0.1 + count / 10_000:.4f}")
        return session.run()

    assert [s.cached for s in drag().steps] == [True, True, False]
    best = compare(benchmark, drag, full_run(session), pairs=5)
    assert benchmark.disabled or best <= 1 / 50


def test_capturing_a_layer_beside_a_run_without(benchmark, bench_registry):
    session, *_ = session_and_part(benchmark, bench_registry, "onnxruntime")
    captures = [Source("enc 1")]

    def capture():
        session.invalidate()
        return session.run(captures)

    compare(benchmark, capture, full_run(session))
