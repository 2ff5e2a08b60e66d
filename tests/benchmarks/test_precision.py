"""What number formats save and cost. Ratios are taken in one run, because a busy machine disturbs both sides."""

from __future__ import annotations

import numpy as np
import pytest
from bench_kit import medians_in_turns
from restoration_networks import restoring_unet, restoring_weights

from designer.operators.registry import load
from designer.precision.int8 import Judge, Quantizer, quantize
from designer.runtime.api import RunOptions
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.images import read_image
from designer.runtime.machine import physical_cores
from designer.runtime.plan import PartStep
from designer.runtime.session import Session
from samples import PHOTOGRAPHS

pytest.importorskip("pytest_benchmark")
pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

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
    session.run()
    (step,) = (step for step in session.plan().steps if isinstance(step, PartStep))
    model = build_model(session.inference, step.part, step.wanted, session.weights)
    feeds = [{"image": np.ascontiguousarray(photo)} for photo in photos]
    quantizer = Quantizer(model, feeds)
    found = quantize(quantizer, Judge(model, feeds), BUDGET)
    int8 = inference_session(found.model.SerializeToString(), physical_cores())

    def full_run():
        session.invalidate()
        return session.run()

    pairs = 1 if benchmark.disabled else PAIRS
    mine, theirs = medians_in_turns(lambda: int8.run(None, feeds[0]), full_run, pairs)
    what = f"U-Net of 472 k parameters in INT8, {found.psnr_db:.1f} dB against FP32"
    report.ratio(what, mine, "ms", peer=theirs, peer_name="torch, FP32", target=1 / 2.5)
    report.value("RMS error of INT8, range 0..1", 10 ** (-found.psnr_db / 20), "", target=10 ** (-BUDGET / 20))
    benchmark.pedantic(lambda: int8.run(None, feeds[0]), rounds=1)
