"""OpenVINO as an engine: FP32 on the CPU, from the ONNX models of `onnx_model.py`."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import DataType, Symbol, TensorType
from designer.runtime.engine_api import (
    Compiled,
    Engine,
    EngineDescriptor,
    Part,
    Sample,
    StepTimer,
    Tensor,
    requires,
)
from designer.runtime.engines.fusion import Node, kernel_groups, layer_of
from designer.runtime.engines.kernels import onnx_kernels
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.interrupt import current
from designer.runtime.machine import threads
from designer.runtime.network import activation_of, inputs_of, operator_of, passes_through, type_of
from designer.runtime.nonfinite_probes import MAKERS
from designer.texts import tr

TELEMETRY = "openvino_telemetry"
REMEDY = "choose another engine in Network Settings"
NO_WORK = ("Input", "Output", "Const")
MISPLACED = {
    "ConvTranspose": ("Pad",),
    "PRelu": ("Add", "Gemm", "MatMul"),
    "Reduce": ("Unsqueeze", "Reshape"),
}  # nodes, and those that are merged into them
IN_PLACE = ("Conv", "ConvTranspose", "MaxPool", "Relu")  # nodes that are right behind the max pooling of a convolution
UNCHECKED = ("GatherElements", "ScatterElements")  # nodes that read or write outside of a tensor for wrong indices
SATURATING = ("Add", "Sub", "Mul", "BitShift")
WIDE = (DataType.INT64, DataType.UINT64, DataType.UINT32)  # computed as int32
INT32 = np.iinfo(np.int32)
DROP_NAN = frozenset({
    "ArgMax", "ArgMin", "Cast", "Celu", "Clip", "Exp", "Greater", "GreaterOrEqual", "GridSample", "HardSigmoid", "Hardmax",
    "LogSoftmax", "Max", "MaxPool", "Min", "RNN", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "Relu", "Softmax", "TopK",
})  # fmt: skip


class OpenVinoEngine(Engine):
    """OpenVINO on the CPU. Layers that it cannot convert, or computes differently from ONNX, are rejected by name."""

    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        return self.prepare(part, wanted, {})

    def prepare(self, part: Part, wanted: Sequence[Source], more: Mapping[str, Any]) -> OpenVinoCompiled:
        """Compile with additional properties of the CPU plugin."""
        self._check_reads(part)
        model = build_model(self.inference, part, wanted, self.weights)
        self._check_results(model)
        _keep_apart(model)
        attached = {
            str(self.inference.tensors(n)[0]) for n in part.layers if activation_of(self.inference, n) is not None
        }
        _keep_nan(model, attached)
        properties = {**_properties(threads(self.options)), **more}
        if _attends_and_branches(model):
            properties["SNIPPETS_MODE"] = "DISABLE"
        try:
            indices = list(self._indices(model, part))
            return OpenVinoCompiled(self.inference, part, wanted, serialized(model), properties, indices)
        except RuntimeError as error:
            found = [] if len(part.layers) == 1 else list(self._refusals(part))
            raise DiagnosticError(found or [_refused(part.layers[0], _reason(error))]) from error

    def _check_reads(self, part: Part) -> None:
        """Raise DiagnosticError for layers that compute with values which OpenVINO would not round."""
        why = tr("it computes with numbers of half precision as if they were not rounded")
        reads = {name: self.inference.states[name].inputs for name in part.layers}
        found = [name for name, kinds in reads.items() if any(kind.dtype is DataType.FLOAT16 for kind in kinds)]
        found = [name for name in found if not passes_through(self.inference, name)]
        if found:
            raise DiagnosticError([_refused(name, why) for name in found])

    def _check_results(self, model: Any) -> None:
        """Raise DiagnosticError for layers that OpenVINO computes otherwise than ONNX defines them."""
        kernels = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
        producers = {name: node for node in model.graph.node for name in node.output}
        found = {}
        for node in model.graph.node:
            name = layer_of(node.name)
            why = _difference(node)
            if _reads_one_channel(node, kernels) and type_of(self.inference, Source(name)).shape[-1] == 1:
                why = tr("its convolution of one channel is wrong where the result is one pixel wide")
            if _normalizes_a_reduction(node, producers):
                why = tr("its group normalization of a reduction is wrong")
            if _rounds_a_quotient(node, producers, kernels):
                why = tr("its quotients are rounded, so the remainder of a multiple can be the divisor instead of 0")
            if node.op_type in UNCHECKED and node.input[1] in producers:
                why = tr("it crashes where a computed index is out of range")
            why = why or self._integer_difference(node, name)
            if why:
                found[name] = why
        if found:
            raise DiagnosticError(_refused(name, why) for name, why in sorted(found.items()))

    def _integer_difference(self, node: Any, layer: str) -> str:
        """How OpenVINO's result of a layer of integers differs from ONNX; sizes that are computed inside of layers are small."""
        results = {str(source): type_of(self.inference, source).dtype for source in self.inference.tensors(layer)}
        dtype = results.get(node.output[0])
        if node.op_type in SATURATING and dtype in (DataType.INT8, DataType.UINT8):
            return tr("its arithmetic of 8-bit integers saturates instead of wrapping around")
        if node.op_type == "Mod" and dtype in (DataType.INT32, DataType.INT64):
            return tr("its remainder of large integers is wrong")
        return ""

    def _indices(self, model: Any, part: Part) -> Iterator[_Indices]:
        """Inputs of a part with indices: where one is out of range, OpenVINO crashes or gives zeros."""
        feeds = {str(source): source for source in part.feeds}
        constants = {tensor.name: TensorType(tuple(tensor.dims)) for tensor in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type in ("Gather", *UNCHECKED) and node.input[1] in feeds:
                layer = layer_of(node.name)
                reads = inputs_of(self.inference, self.inference.graph[layer])
                kinds = constants | {str(source): type_of(self.inference, source) for source in reads}
                axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
                if node.input[0] in kinds:
                    yield _Indices(layer, feeds[node.input[1]], kinds[node.input[0]], axis)

    def _refusals(self, part: Part) -> Iterator[Diagnostic]:
        """Find the layers that cannot be compiled, one by one, because OpenVINO's message names none."""
        for name in part.layers:
            feeds = tuple(dict.fromkeys(inputs_of(self.inference, self.inference.graph[name])))
            try:
                self.prepare(Part((name,), feeds), (Source(name),), {})
            except DiagnosticError as error:
                yield from error.diagnostics


@dataclass(frozen=True, slots=True)
class _Indices:
    """An input of positions along an axis of a tensor."""

    layer: str
    source: Source
    kind: TensorType
    axis: int

    def check(self, array: Tensor, batch: int) -> None:
        """Raise DiagnosticError if an index is out of range."""
        size = self.kind.concrete(batch)[self.axis]
        wrong = array[(array < -size) | (array >= size)]
        if wrong.size:
            raise DiagnosticError(
                Diagnostic(
                    "engine-failed",
                    tr("index {index} is out of range: the axis has {size} values", index=wrong.flat[0], size=size),
                    layer=self.layer,
                    remedy=tr("use indices from {first} to {last}", first=-size, last=size - 1),
                )
            )


class OpenVinoCompiled:
    """A part compiled for the batch size of each run, because known shapes make it faster."""

    def __init__(
        self,
        inference: Inference,
        part: Part,
        wanted: Sequence[Source],
        model: bytes,
        properties: Mapping[str, Any],
        indices: Sequence[_Indices] = (),
    ) -> None:
        self._indices = indices
        self._feeds = [(feed, type_of(inference, feed)) for feed in part.feeds]
        self._results = [(inference.tensor(source), type_of(inference, source)) for source in wanted]
        self._model = _core().read_model(model)
        self._properties = dict(properties)
        self._requests: dict[int, Any] = {}
        self.request(1)

    def request(self, batch: int) -> Any:
        """The inference request for a batch of this size."""
        found = self._requests.get(batch)
        if found is None:
            inputs = {name: value for value in self._model.inputs for name in value.names}
            self._model.reshape(
                {inputs[str(s)]: _partial_shape(kind, batch) for s, kind in self._feeds if str(s) in inputs}
            )
            compiled = _core().compile_model(self._model, "CPU", self._properties)
            found = self._requests[batch] = compiled.create_infer_request()
        return found

    def batch(self, feeds: Mapping[Source, Tensor]) -> int:
        """The size of the batch in `feeds`."""
        return next((len(feeds[s]) for s, kind in self._feeds if kind.shape and isinstance(kind.shape[0], Symbol)), 1)

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        shared = partial(_openvino().Tensor, shared_memory=True)
        batch = self.batch(feeds)
        request = self.request(batch)
        names = {name for value in request.model_inputs for name in value.names}
        for found in self._indices:
            found.check(feeds[found.source], batch)
        held = []  # a tensor with shared memory does not keep its array alive
        for source, kind in self._feeds:
            if kind.dtype in WIDE:
                _check_range(source.layer, feeds[source])
            if str(source) in names:  # an input of which only the shape is used is folded away
                held.append(np.require(feeds[source], kind.dtype.value, ("C", "W")))
                request.set_tensor(str(source), shared(held[-1]))
        made: dict[Source, Tensor] = {}
        for index, (source, kind) in enumerate(self._results):
            made[source] = np.empty(kind.concrete(batch), kind.dtype.value)
            request.set_output_tensor(index, shared(made[source]))
        with current().hook(request.cancel):
            request.infer()
        return made


class OpenVinoTimer(StepTimer):
    """Times kernels with OpenVINO's counters, which have a resolution of a microsecond."""

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        assert isinstance(self.engine, OpenVinoEngine)
        compiled = self.engine.prepare(self.part, self.wanted, {"PERF_COUNT": True})
        request = compiled.request(compiled.batch(self.feeds))
        seconds: dict[str, list[float]] = {}
        for number in range(warmup + runs):
            compiled.run(self.feeds)
            if number >= warmup:
                for kernel in request.profiling_info:
                    if kernel.status == kernel.Status.EXECUTED:
                        seconds.setdefault(kernel.node_name, []).append(kernel.real_time.total_seconds())
            tick()
        kernels, ran = self._kernels(request, set(seconds))
        samples = []
        for group in kernel_groups(kernels, ran):
            timed = [seconds[name] for name in group.kernels if name in seconds]
            if timed:
                times = [sum(run) for run in zip(*timed, strict=True)]
                samples.append(Sample(group.layers, times, ", ".join(group.ops)))
        return samples

    def _kernels(self, request: Any, executed: Collection[str]) -> tuple[list[Node], list[dict[str, None]]]:
        """The kernels in execution order, and the layers of each, whose names OpenVINO keeps when it fuses."""
        kernels, ran = [], []
        for node in request.get_compiled_model().get_runtime_model().get_ordered_ops():
            info = node.get_rt_info()
            kind, name = info["layerType"].astype(str), node.get_friendly_name()
            if kind not in NO_WORK:
                reads = tuple(value.get_source_output().get_node().get_friendly_name() for value in node.inputs())
                kernels.append(Node(kind, name, reads, (name,)))
                fused = [layer_of(original) for original in info["originalLayersNames"].astype(str).split(",")]
                ran.append({layer: None for layer in fused if layer in self.part.layers})
        self._join_renamed(kernels, ran, executed)
        return kernels, ran

    def _join_renamed(self, kernels: Sequence[Node], ran: Sequence[dict[str, None]], executed: Collection[str]) -> None:
        """Time layers whose names OpenVINO lost (decomposed or moved) together with a neighbor."""
        inference = self.engine.inference
        moved = any(k.name in executed and k.op != "Reorder" and not own for k, own in zip(kernels, ran, strict=True))
        named = {layer for layers in ran for layer in layers}
        readers: dict[str, dict[str, None]] = {}  # by kernel: the layers of the first one that reads from it
        for kernel, layers in reversed(list(zip(kernels, ran, strict=True))):
            layers.update(layers or readers.get(kernel.name, {}))
            if layers:
                readers.update(dict.fromkeys(kernel.inputs, layers))
        by_layer = {
            layer: own for k, own in zip(kernels, ran, strict=True) if k.name in executed for layer in list(own)
        }
        for name in self.part.layers:
            works = moved or name not in named or bool(_weights(inference, name))  # others run in place
            if name in by_layer or not works or passes_through(inference, name) or not inference.graph[name].inputs:
                continue
            near = [*_nearest(inference, name, by_layer, down=True), *_nearest(inference, name, by_layer, down=False)]
            if near:
                by_layer[near[0]][name] = None


def _weights(inference: Inference, name: str) -> Sequence[object]:
    return operator_of(inference, name).weights(inference.states[name].inputs)


def _nearest(inference: Inference, name: str, among: Collection[str], *, down: bool) -> Iterator[str]:
    """Layers of `among` downstream or upstream of `name`, the nearest first."""
    graph = inference.graph
    seen, queue = {name}, deque([name])
    while queue:
        at = queue.popleft()
        for other in graph.consumers(at) if down else graph[at].producers():
            if other not in seen:
                seen.add(other)
                queue.append(other)
                if other in among:
                    yield other


def _properties(count: int) -> dict[str, Any]:
    """The properties without which the CPU plugin computes in bfloat16 if possible and selects threads itself."""
    return {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": count,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
        "ENABLE_HYPER_THREADING": True,
    }


@lru_cache(maxsize=1)
def _core() -> Any:
    return _openvino().Core()


@lru_cache(maxsize=1)
def _openvino() -> Any:
    """The package without its telemetry, which would report the import to Google Analytics unless the user opted out.

    OpenVINO uses its own stub if the telemetry package is not installed, and keeps the stub once imported.
    """
    hidden = sys.modules.get(TELEMETRY)
    sys.modules[TELEMETRY] = None  # type: ignore[assignment]
    try:
        import openvino
    finally:
        if hidden is None:
            del sys.modules[TELEMETRY]
        else:
            sys.modules[TELEMETRY] = hidden
    return openvino


def _partial_shape(kind: TensorType, batch: int) -> Any:
    return _openvino().PartialShape(list(kind.concrete(batch)))


def _check_range(layer: str, array: Tensor) -> None:
    """Raise DiagnosticError for integers that OpenVINO would truncate."""
    if array.size and not INT32.min <= int(array.min()) <= int(array.max()) <= INT32.max:
        raise DiagnosticError([_refused(layer, tr("it computes with 32 bits, and the integers exceed them"))])


def _keep_apart(model: Any) -> None:
    """Add values to the outputs that OpenVINO otherwise merges incorrectly with what reads them.

    These are reductions before constants, axes that are inserted before a reduction, padding before transposed convolutions,
    whose padding crops instead, products of matrices before a PReLU, whose slopes are taken along the last axis, and maxima of
    windows before functions: behind a convolution OpenVINO applies these first, also where they do not keep the order of values.
    """
    from onnx import helper

    known = {value.name for value in model.graph.output}
    producers = {name: node for node in model.graph.node for name in node.output}
    moved = {name for node in model.graph.node if node.op_type not in IN_PLACE for name in node.input}
    names = [node.output[0] for node in model.graph.node if node.op_type.startswith("Reduce")]
    names += [node.output[0] for node in model.graph.node if node.op_type == "MaxPool" and node.output[0] in moved]
    for node in model.graph.node:
        merged = MISPLACED.get("Reduce" if node.op_type.startswith("Reduce") else node.op_type, ())
        if merged:
            names += [name for name in _unchanged_from(node.input[0], producers) if producers[name].op_type in merged]
    fresh = (name for name in dict.fromkeys(names) if name not in known)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in fresh)


def _unchanged_from(name: str, producers: Mapping[str, Any]) -> Iterator[str]:
    """A computed value, and those before it that OpenVINO takes as the same."""
    while (node := producers.get(name)) is not None:
        yield name
        if node.op_type not in ("Identity", "Dropout"):
            return
        name = node.input[0]


def _keep_nan(model: Any, attached: Collection[str]) -> None:
    """Return NaN that an operator makes where its attached activation drops them; no other tensor of a run shows these.

    `attached` are the results of activations.
    """
    from onnx import helper

    makers = {node.output[0] for node in model.graph.node if node.op_type in MAKERS}
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type in DROP_NAN and node.input[0] in makers and node.output[0] in attached:
            before, result = node.input[0], node.output[0]
            dropped, missing = f"{node.name}:dropped", f"{node.name}:nan"
            node.output[:] = [dropped]
            nodes.append(helper.make_node("IsNaN", [before], [missing], f"{node.name}/nan"))
            nodes.append(helper.make_node("Where", [missing, before, dropped], [result], f"{node.name}/kept"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _difference(node: Any) -> str:
    """How OpenVINO's result of a node differs from ONNX; "" if it does not."""
    if node.op_type == "Resize" and any(a.name == "antialias" and a.i for a in node.attribute):
        return tr("it ignores the antialiasing of Resize")
    if node.op_type == "LRN" and any(a.name == "bias" and a.f != 1.0 for a in node.attribute):
        return tr("its local response normalization is wrong for constants other than 1")
    if node.op_type == "Mod" and any(a.name == "fmod" and a.i for a in node.attribute):
        return tr("its remainder exceeds the divisor where the quotient is large")
    return ""


def _rounds_a_quotient(node: Any, producers: Mapping[str, Any], constants: Collection[str]) -> bool:
    """Whether a node rounds down a quotient of two tensors of the same layer, as remainders of floating-point numbers do."""
    before = producers.get(node.input[0]) if node.op_type == "Floor" else None
    if before is None or before.op_type != "Div" or before.input[1] in constants:
        return False
    return layer_of(before.name) == layer_of(node.name)


def _reads_one_channel(node: Any, kernels: Mapping[str, Sequence[int]]) -> bool:
    """Whether a node is a convolution of one channel."""
    if node.op_type != "Conv":
        return False
    _, channels, *_ = kernels.get(node.input[1], (1, 0))
    return channels == 1 and not any(a.name == "group" and a.i > 1 for a in node.attribute)


def _normalizes_a_reduction(node: Any, producers: Mapping[str, Any]) -> bool:
    """Whether a node normalizes a reshaped reduction without the reduced axis, which are merged incorrectly."""
    reshape = producers.get(node.input[0]) if node.op_type == "InstanceNormalization" else None
    source = producers.get(reshape.input[0]) if reshape is not None and reshape.op_type == "Reshape" else None
    if source is None or not source.op_type.startswith("Reduce"):
        return False
    return any(a.name == "keepdims" and not a.i for a in source.attribute)


def _attends_and_branches(model: Any) -> bool:
    """Whether a model has an attention, and a difference or quotient of which the result or the first operand is read twice.

    Where one follows the other, OpenVINO's compiler of fused nodes crashes, together with the process.
    """
    reads = Counter(name for node in model.graph.node for name in node.input)
    kinds = {node.op_type for node in model.graph.node}
    branching = (node for node in model.graph.node if node.op_type in ("Sub", "Div"))
    return kinds >= {"MatMul", "Softmax"} and any(reads[n.input[0]] > 1 or reads[n.output[0]] > 1 for n in branching)


def _refused(layer: str, reason: str) -> Diagnostic:
    message = tr("OpenVINO cannot run '{layer}': {reason}", layer=layer, reason=reason)
    return Diagnostic("not-in-engine", message, layer=layer, remedy=REMEDY)


def _reason(error: RuntimeError) -> str:
    """The informative part of OpenVINO's message, which begins with positions in its source code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    informative = [
        line for line in lines if not line.startswith(("Exception from", "Check '", "FrontEnd API", "Model wasn't"))
    ]
    return (informative or lines or [type(error).__name__])[0][:300]


def _run(model: bytes, feeds: dict[str, NDArray[np.float32]], count: int) -> Callable[[], object]:
    compiled = _core().compile_model(_core().read_model(model), "CPU", _properties(count))
    request = compiled.create_infer_request()
    return lambda: request.infer(feeds)


OPENVINO = EngineDescriptor(
    name="openvino",
    title="OpenVINO",
    package="openvino",
    engine=OpenVinoEngine,
    step_timer=OpenVinoTimer,
    kernels=onnx_kernels(_run),
    available=requires("openvino", "onnx", remedy='pip install "layerwright[openvino]"'),
    skips_nan=DROP_NAN,
)
