"""TensorRT as an engine: FP32 on NVIDIA GPUs, from the ONNX models of `onnx_model.py`. Memory and streams are those of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.model import Source
from designer.graph.types import Symbol
from designer.runtime.engine_api import Compiled, Device, Engine, EngineDescriptor, Part, Sample, StepTimer, Tensor
from designer.runtime.engines import trt
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.engines.pytorch import cuda_devices
from designer.runtime.engines.trt_build import BuiltEngine, ShapeRange, build_engine
from designer.runtime.network import type_of
from designer.texts import tr

if TYPE_CHECKING:
    import torch


class TensorRtEngine(Engine):
    """Builds one engine for every batch size that runs, because known shapes make it faster."""

    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        return TensorRtCompiled(self, part, wanted)


class TensorRtCompiled:
    """A part compiled for the batch sizes that ran; the first one is built at once, so that refused layers are reported early."""

    def __init__(self, engine: TensorRtEngine, part: Part, wanted: Sequence[Source]) -> None:
        inference = engine.inference
        model = build_model(inference, part, wanted, engine.weights)
        self._model = serialized(model)
        self._device = engine.options.device
        self._feeds = [(feed, type_of(inference, feed)) for feed in part.feeds]
        names = [output.name for output in model.graph.output]
        self._results = [(inference.tensor(s), name) for s, name in zip(wanted, names, strict=True)]
        self._contexts: dict[int, tuple[BuiltEngine, Any]] = {}
        self.context(1)

    def batch(self, feeds: Mapping[Source, Tensor]) -> int:
        """The size of the batch in `feeds`."""
        return next((len(feeds[s]) for s, kind in self._feeds if kind.shape and isinstance(kind.shape[0], Symbol)), 1)

    def context(self, batch: int) -> tuple[BuiltEngine, Any]:
        """The engine for a batch of this size, and its execution context."""
        if batch not in self._contexts:
            shapes = {str(source): kind.concrete(batch) for source, kind in self._feeds}
            built = build_engine(self._model, {name: ShapeRange(shape, shape, shape) for name, shape in shapes.items()})
            self._contexts[batch] = built, engine_context(built)
        return self._contexts[batch]

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        import torch

        device = torch.device(self._device)
        _, context = self.context(self.batch(feeds))
        stream = torch.cuda.current_stream(device)
        held = []  # the context has only addresses, so the tensors must stay alive until the end of the run
        for source, kind in self._feeds:
            array = np.require(feeds[source], kind.dtype.value, ("C", "W"))
            tensor = torch.from_numpy(array).to(device)
            context.set_input_shape(str(source), tuple(tensor.shape))
            context.set_tensor_address(str(source), tensor.data_ptr())
            held.append(tensor)
        made: dict[Source, torch.Tensor] = {}
        for source, name in self._results:
            shape = tuple(context.get_tensor_shape(name))
            made[source] = torch.empty(shape, dtype=torch_type(context.engine.get_tensor_dtype(name)), device=device)
            context.set_tensor_address(name, made[source].data_ptr())
        if not context.execute_async_v3(stream.cuda_stream):
            raise _failed(tr("TensorRT did not run the network"))
        stream.synchronize()
        return {source: tensor.cpu().numpy() for source, tensor in made.items()}


class TensorRtTimer(StepTimer):
    """Times the engine's layers with its profiler."""

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        compiled = self.engine.compile(self.part, self.wanted)
        assert isinstance(compiled, TensorRtCompiled)
        built, context = compiled.context(compiled.batch(self.feeds))
        profiler = context.profiler = _profiler()
        for number in range(warmup + runs):
            if number == warmup:
                profiler.seconds.clear()
            compiled.run(self.feeds)
            tick()
        known = {layer.name: layer for layer in built.layers}
        samples = []
        for name, seconds in profiler.seconds.items():
            layer = known.get(name)
            inside = tuple(n for n in layer.layers if n in self.part.layers) if layer is not None else ()
            samples.append(Sample(inside, seconds, layer.kind if layer is not None else name))
        return samples


def engine_context(built: BuiltEngine) -> Any:
    """The execution context of an engine that this process built. Raises DiagnosticError where no GPU runs it."""
    library = trt.library()
    log = trt.collector(library)
    engine = library.Runtime(log).deserialize_cuda_engine(built.data)
    context = engine.create_execution_context() if engine is not None else None
    if context is None:
        raise _failed(tr("TensorRT cannot run the engine on this machine: {reason}", reason=trt.reason_of(log)))
    return context


def _profiler() -> Any:
    library: Any = trt.library()
    base: Any = library.IProfiler

    class Profiler(base):  # type: ignore[misc]
        """Seconds of each run by the name of the engine's layer."""

        def __init__(self) -> None:
            super().__init__()
            self.seconds: dict[str, list[float]] = {}

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            self.seconds.setdefault(layer_name, []).append(ms / 1000)

    return Profiler()


def torch_type(kind: Any) -> torch.dtype:
    import torch

    return {"FLOAT": torch.float32, "INT64": torch.int64, "INT32": torch.int32, "BOOL": torch.bool}[kind.name]


def _unavailable() -> Diagnostic | None:
    """Why engines cannot run here; building them needs no GPU."""
    missing = trt.unavailable()
    if missing is not None or cuda_devices()[0]:
        return missing
    reason = tr("there is no NVIDIA GPU that PyTorch can use")
    return Diagnostic("engine-unavailable", reason, remedy=tr("choose another engine"))


def _failed(message: str) -> DiagnosticError:
    return DiagnosticError.of("engine-failed", message, remedy=tr("choose another engine in Network Settings"))


TENSORRT = EngineDescriptor(
    name=trt.NAME,
    title="TensorRT",
    package=trt.package(),
    engine=TensorRtEngine,
    step_timer=TensorRtTimer,
    kernels={},
    available=_unavailable,
    devices=(Device("cuda", ("fp32",), cuda_devices),),
    stand_in="torch",
)
