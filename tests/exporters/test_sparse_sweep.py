"""Times of dense and sparse weights without a GPU: what is built for which batch, and why nothing is timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx import numpy_helper
from runtime_networks import unet, unet_weights

from designer.graph.diagnostics import Diagnostic
from designer.operators.registry import Registry
from designer.runtime.engines.trt_build import ShapeRange
from exporters import sparse_sweep as sweep


def test_every_batch_has_an_engine_of_its_own_for_each_of_the_weights(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, timed = [], []

    def build(model: bytes, ranges: dict[str, ShapeRange], *, sparse: bool) -> int:
        constants = {tensor.name: tensor for tensor in onnx.load_from_string(model).graph.initializer}
        name = next(name for name in constants if "kernel" in name)
        built.append((float(numpy_helper.to_array(constants[name]).flat[0]), ranges, sparse))
        return len(built)

    def timer(engine: Any, shapes: Any) -> float:
        timed.append((engine, dict(shapes)))
        return 10.0 * engine

    monkeypatch.setattr(sweep, "build_engine", build)
    rows = sweep.sparse_sweep(unet(), registry, unet_weights(), unet_weights(seed=1), (1, 3), timer)
    assert rows == [sweep.SweepRow(1, 10.0, 30.0), sweep.SweepRow(3, 20.0, 40.0)]
    assert [sparse for _, _, sparse in built] == [False, False, True, True]
    assert built[0][0] == built[1][0] != built[2][0] == built[3][0]
    sizes = [(batch, *timed[0][1]["image"][1:]) for batch in (1, 3, 1, 3)]
    assert timed == [(number, {"image": size}) for number, size in enumerate(sizes, 1)]
    assert [ranges for _, ranges, _ in built] == [{"image": ShapeRange(size, size, size)} for size in sizes]
    assert sweep.sparse_sweep(unet(), registry, unet_weights(), unet_weights(), timer=timer)[2].batch == 16


@pytest.mark.parametrize(
    ("gpus", "missing", "capability", "reason"),
    [
        ((0, "no driver"), None, (9, 0), "times by batch size need a GPU with sparse Tensor Cores (no driver)"),
        ((0, "no driver"), "pip install it", (7, 5), "times by batch size need a GPU with sparse Tensor Cores (no driver)"),
        ((1, ""), "pip install it", (9, 0), "times by batch size need TensorRT: pip install it"),
        ((1, ""), None, (7, 5), "times by batch size need sparse Tensor Cores: compute capability 8.0, not 7.5"),
        ((1, ""), None, (8, 0), ""),
        ((2, ""), None, (8, 9), ""),
        ((1, ""), None, (10, 0), ""),
    ],
)  # fmt: skip
def test_why_nothing_is_timed(
    gpus: tuple[int, str],
    missing: str | None,
    capability: tuple[int, int],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    problem = Diagnostic("engine-unavailable", "TensorRT is not installed", remedy=missing) if missing else None
    monkeypatch.setattr(sweep, "cuda_devices", lambda: gpus)
    monkeypatch.setattr(sweep.trt, "unavailable", lambda: problem)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert sweep.no_sweep() == reason


class Clock:
    """An event of a GPU that takes 100, 99, 98, ... milliseconds from one run to the next."""

    runs = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: Any) -> None:
        pass

    def synchronize(self) -> None:
        Clock.runs += 1

    def elapsed_time(self, end: Any) -> float:
        return 101.0 - Clock.runs


def test_the_time_is_the_median_of_the_runs_after_the_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    names, shapes, addresses, streams = ["image", "y"], {}, {}, []
    engine = SimpleNamespace(
        num_io_tensors=2, get_tensor_name=names.__getitem__, get_tensor_dtype=lambda name: SimpleNamespace(name="FLOAT")
    )
    context = SimpleNamespace(
        engine=engine,
        set_input_shape=shapes.__setitem__,
        get_tensor_shape=lambda name: (*shapes["image"], 2) if name == "y" else shapes[name],
        set_tensor_address=addresses.__setitem__,
        execute_async_v3=streams.append,
    )
    made: list[Any] = []
    zeros = torch.zeros

    def on_the_cpu(shape: Any, *, dtype: Any, device: str) -> Any:
        assert device == "cuda"
        made.append(zeros(shape, dtype=dtype))
        return made[-1]

    monkeypatch.setattr(sweep, "engine_context", lambda built: context)
    monkeypatch.setattr(torch, "zeros", on_the_cpu)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(cuda_stream=7))
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(Clock, "runs", 0)
    built: Any = None
    assert sweep.milliseconds(built, {"image": (4, 3)}) == 101 - 15.5  # the median of the 6th to the 25th run
    assert streams == [7] * 25
    assert [tuple(tensor.shape) for tensor in made] == [(4, 3), (4, 3, 2)]
    assert addresses == {name: tensor.data_ptr() for name, tensor in zip(names, made, strict=True)}
