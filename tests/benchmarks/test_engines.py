"""What the engines and the session cost compared with the plain libraries.

`make bench` measures at full size; an ordinary test run goes through the same code once, small.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from bench_kit import medians_in_turns
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


def compare(benchmark, report, what, ours, plain, peer_name, target, pairs=PAIRS) -> None:
    mine, theirs = medians_in_turns(ours, plain, 1 if benchmark.disabled else pairs)
    report.ratio(what, mine, "ms", peer=theirs, peer_name=peer_name, target=target)
    benchmark.pedantic(ours, rounds=1)


def session_and_part(benchmark, registry, engine, layout="nchw", make=unet, threads=0, side=256):
    features, side = (4, 32) if benchmark.disabled else (FEATURES, side)
    weights = unet_weights(features)
    session = Session(
        make(features=features), registry, weights, RunOptions(engine=engine, layout=layout, threads=threads)
    )
    array = pixels(side, side)
    session.set_input("image", array, is_image=False)
    session.run()
    step = next(s for s in session.plan().steps if isinstance(s, PartStep))
    return session, step, weights, array


def full_run(session):
    def work():
        session.invalidate()
        return session.run()

    return work


def test_onnx_runtime_engine_beside_plain_onnx_runtime(benchmark, report, bench_registry):
    session, step, weights, array = session_and_part(benchmark, bench_registry, "onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = physical_cores(), 1
    model = serialized(build_model(session.inference, step.part, step.wanted, weights))
    plain = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(plain.run(None, {"image": array})[0], session.run().outputs["result"])
    compare(
        benchmark, report, "U-Net, engine onnxruntime", full_run(session), lambda: plain.run(None, {"image": array}),
        "ONNX Runtime", 1.10,
    )  # fmt: skip


def test_openvino_engine_beside_plain_openvino(benchmark, report, bench_registry):
    if find_spec("openvino") is None:  # importing it here would start its telemetry
        pytest.skip("OpenVINO is not installed")
    session, step, weights, array = session_and_part(benchmark, bench_registry, "openvino")
    openvino = sys.modules["openvino"]  # the engine imported it, without its telemetry
    core = openvino.Core()
    model = core.read_model(serialized(build_model(session.inference, step.part, step.wanted, weights)))
    model.reshape(list(array.shape))
    properties = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": physical_cores(),
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(model, "CPU", properties).create_infer_request()

    def plain():
        return request.infer({"image": array})[0]

    np.testing.assert_allclose(plain(), session.run().outputs["result"], atol=1e-5)
    compare(benchmark, report, "U-Net, engine openvino", full_run(session), plain, "OpenVINO", 1.10)


def test_torch_engine_beside_plain_torch_channels_last(benchmark, report, bench_registry):
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
        compare(benchmark, report, "U-Net, engine torch, NHWC", full_run(session), plain, "torch", 1.05)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_changing_mix_beside_a_full_run(benchmark, report, bench_registry, engine):
    session, *_ = session_and_part(benchmark, bench_registry, engine, make=analysed, side=512)
    count = 0

    def drag():
        nonlocal count
        count += 1
        session.set_param("mix", "amount", f"{0.1 + count / 10_000:.4f}")
        return session.run()

    assert [s.cached for s in drag().steps] == [True, True, False]
    compare(benchmark, report, f"Mix amount changed, {engine}", drag, full_run(session), "full run", 1 / 50, pairs=5)


def test_capturing_a_layer_beside_a_run_without(benchmark, report, bench_registry):
    session, *_ = session_and_part(benchmark, bench_registry, "onnxruntime")
    captures = [Source("enc 1")]

    def capture():
        session.invalidate()
        return session.run(captures)

    compare(benchmark, report, "one layer captured", capture, full_run(session), "run without", 1.10)
