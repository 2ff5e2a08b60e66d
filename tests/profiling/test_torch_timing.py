"""The GPU's way of timing, with a stand-in for CUDA: no machine of the tests has one."""

from __future__ import annotations

import time

import numpy as np
import pytest

from designer.files.document import write_document
from designer.graph.model import Source
from designer.runtime.api import RunOptions

torch = pytest.importorskip("torch")

from app.engine import counted_run
from designer.profiling import gpu
from designer.profiling.network_part import whole_part
from designer.runtime.engines import torch_timing
from designer.runtime.engines.torch_engine import TorchEngine
from designer.runtime.engines.torch_timing import TorchTimer


class FakeEvent:
    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other.at - self.at) * 1e3


@pytest.fixture
def fake_cuda(monkeypatch):
    """CUDA's calls that timing uses, noted in order."""
    calls: list[str] = []
    monkeypatch.setattr(torch_timing, "new_event", FakeEvent)
    monkeypatch.setattr(gpu, "new_event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: calls.append("sync"))
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: calls.append("sleep"), raising=False)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: calls.append(f"push {name}"))
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: calls.append("pop"))
    monkeypatch.setattr(torch.cuda.profiler, "start", lambda: calls.append("start"))
    monkeypatch.setattr(torch.cuda.profiler, "stop", lambda: calls.append("stop"))
    return calls


@pytest.fixture
def timer(small_inference, small_weights):
    part, wanted, _ = whole_part(small_inference)
    feeds = {Source("image"): np.zeros((1, 3, 24, 32), np.float32)}
    options = RunOptions(engine="torch", layout="nhwc", threads=1)
    return TorchTimer(TorchEngine(small_inference, small_weights, options), part, wanted, feeds)


LAYERS = {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}


def test_events_stand_between_the_steps_and_the_queue_is_filled_first(timer, fake_cuda):
    timer.device = torch.device("cuda")
    samples = timer.layers(runs=1, warmup=0, tick=lambda: None)
    assert {layer for sample in samples for layer in sample.layers} == LAYERS
    assert all(seconds >= 0 for sample in samples for seconds in sample.seconds)
    assert fake_cuda == ["sync", "sleep", "sync"]


def test_a_layer_of_several_steps_has_the_sum_of_their_times(timer, monkeypatch):
    seconds = {"a": [1.0, 4.0, 0.5], "b": [2.0], "": [8.0, 8.0]}
    marks = [("a", 1.0), ("b", 2.0), ("a", 4.0), ("", 8.0), ("a", 0.5), ("", 8.0)]
    for device, name in (("cpu", "_cpu_run"), ("cuda", "_cuda_run")):
        timer.device = torch.device(device)
        monkeypatch.setattr(timer, name, lambda: marks)
        samples = timer.layers(runs=2, warmup=1, tick=lambda: None)
        assert {sample.layers[0]: sample.seconds for sample in samples} == {
            layer: [sum(parts)] * 2 for layer, parts in seconds.items()
        }


def test_a_counted_run_has_one_open_range_at_a_time(timer, fake_cuda):
    timer.counted("lw:{}".format)
    assert fake_cuda[:2] == ["sync", "start"]
    assert fake_cuda[-2:] == ["sync", "stop"]
    ranges = fake_cuda[2:-2]
    samples = timer.layers(runs=1, warmup=0, tick=lambda: None)
    assert list(dict.fromkeys(ranges[::2])) == [f"push lw:{sample.layers[0]}" for sample in samples]
    assert ranges[1::2] == ["pop"] * len(ranges[::2])


def test_the_process_that_ncu_watches_numbers_the_layers(small_graph, tmp_path, fake_cuda):
    document = tmp_path / "network.xml"
    document.write_bytes(write_document(small_graph))
    assert counted_run.main([str(document), "--device=cpu", "--batch=2"]) == 0
    assert next(c for c in fake_cuda if c.startswith("push")) == "push lw0"
    assert {c.removeprefix("push lw") for c in fake_cuda if c.startswith("push")} == {
        str(n) for n in range(len(LAYERS))
    }


@pytest.mark.parametrize(("options", "reason"), [({}, "NVIDIA GPU"), ({"device": "cuda"}, "engine torch only")])
def test_why_a_run_is_not_counted(small_inference, options, reason):
    assert reason in counted_run.count(small_inference, RunOptions(**options), 1).reason


def test_gpu_peaks_with_a_stand_in(monkeypatch, fake_cuda):
    def properties(where):
        return type("Properties", (), {"L2_cache_size": 1 << 20})()

    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    monkeypatch.setattr(gpu, "nvidia_smi", lambda field, gpu: "7")
    peaks = gpu.measure_gpu("cpu", "fp32", size=64, copy_bytes=1 << 20)
    assert peaks.compute.value > 0
    assert peaks.others.keys() == {"tf32", "fp16", "bf16"}
    assert peaks.memory.value > 0
    assert peaks.cache.value > 0
    assert peaks.foreign.value == 7.0
    assert peaks.busy


def test_fp32_stays_fp32_while_timing_and_settings_come_back(timer):
    def check() -> None:
        assert torch.backends.cuda.matmul.allow_tf32 is False
        assert torch.backends.cudnn.allow_tf32 is False
        assert torch.is_inference_mode_enabled()

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        timer.whole(runs=1, warmup=0, tick=check)
        assert torch.backends.cuda.matmul.allow_tf32 is True
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def test_rates_of_a_gpu_are_work_by_the_time_of_one_run(monkeypatch):
    """A matrix product has two operations for each of n^3 values; a copy reads and writes each byte of half the memory."""
    done = []

    def seconds(work, runs, repeat=1):
        work()
        done.append((runs, repeat))
        return 0.5

    monkeypatch.setattr(gpu, "best_seconds", seconds)
    product = gpu._matmul_peak(torch.device("cpu"), torch.float32, False, 64)
    assert product.value == 2 * 64**3 / 0.5
    copy = gpu._copy(torch.device("cpu"), 1 << 20, repeat=50)
    assert copy.value == (1 << 20) / 0.5
    assert "copy of 1 MiB" in copy.reason
    assert done[1] == (10, 50)
    assert gpu._copy(torch.device("cpu"), 16).value == 8 * 1024 / 0.5  # at least 1024 values
