"""Times of dense and 2:4 sparse weights by batch size: TensorRT in FP16, on a GPU with sparse Tensor Cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.runtime.engines import trt
from designer.runtime.engines.pytorch import cuda_devices
from designer.runtime.engines.tensorrt_engine import engine_context, torch_type
from designer.runtime.engines.trt_build import BuiltEngine, ShapeRange, build_engine
from designer.texts import tr
from exporters.interface import interface_of
from exporters.onnx import export_onnx
from exporters.variants import variant_conversion

BATCHES = (1, 4, 16)
AMPERE = (8, 0)  # compute capability of the first sparse Tensor Cores
RUNS, WARMUP = 20, 5

Shapes = Mapping[str, tuple[int, ...]]
Timer = Callable[[BuiltEngine, Shapes], float]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """Milliseconds of a batch."""

    batch: int
    dense: float
    sparse: float


def no_sweep() -> str:
    """Why the hardware has no sparse kernels that could be timed; empty if it has."""
    missing = trt.unavailable()
    count, reason = cuda_devices()
    if not count:
        return tr("times by batch size need a GPU with sparse Tensor Cores ({reason})", reason=reason)
    if missing is not None:
        return tr("times by batch size need TensorRT: {remedy}", remedy=missing.remedy)
    import torch

    capability = torch.cuda.get_device_capability()
    if capability >= AMPERE:
        return ""
    found = ".".join(map(str, capability))
    return tr("times by batch size need sparse Tensor Cores: compute capability 8.0, not {found}", found=found)


def sparse_sweep(
    graph: Graph,
    registry: Registry,
    dense: Weights,
    sparse: Weights,
    batches: Sequence[int] = BATCHES,
    timer: Timer | None = None,
) -> list[SweepRow]:
    """Build engines for both weights and every batch size, and time them. Raises DiagnosticError if TensorRT refuses the network."""
    time = timer or milliseconds
    columns = []
    for weights, kernels in ((dense, False), (sparse, True)):
        with TemporaryDirectory() as folder:
            convert = variant_conversion(Variant("", "fp16"), graph, registry, tensorrt=True)
            report = export_onnx(graph, registry, weights, Path(folder) / "model.onnx", convert)
            inputs = interface_of(report, graph, registry).inputs
            model = report.path.read_bytes()
        times = []
        for batch in batches:
            shapes = {entry.name: (batch, *entry.drawn[1:]) for entry in inputs}
            ranges = {name: ShapeRange(shape, shape, shape) for name, shape in shapes.items()}
            times.append(time(build_engine(model, ranges, sparse=kernels), shapes))
        columns.append(times)
    return [SweepRow(*row) for row in zip(batches, *columns, strict=True)]


def milliseconds(built: BuiltEngine, shapes: Shapes) -> float:
    """The median time of runs of an engine on the GPU, on tensors that are there already."""
    import torch

    context = engine_context(built)
    for name, shape in shapes.items():
        context.set_input_shape(name, shape)
    names = [context.engine.get_tensor_name(index) for index in range(context.engine.num_io_tensors)]
    held = []  # the context has only addresses
    for name in names:
        kind = torch_type(context.engine.get_tensor_dtype(name))
        held.append(torch.zeros(tuple(context.get_tensor_shape(name)), dtype=kind, device="cuda"))
        context.set_tensor_address(name, held[-1].data_ptr())
    stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    times = []
    for number in range(WARMUP + RUNS):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record(stream)
        context.execute_async_v3(stream.cuda_stream)
        ended.record(stream)
        ended.synchronize()
        if number >= WARMUP:
            times.append(began.elapsed_time(ended))
    return float(median(times))
