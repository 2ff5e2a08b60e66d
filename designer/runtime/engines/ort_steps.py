"""Each kernel of a model that ONNX Runtime optimized by itself: a session with that node alone, on random tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from math import prod
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.runtime.engine_api import PreparedStep, SingleStep
from designer.runtime.engines.fusion import KernelGroup
from designer.runtime.engines.ort import runtime, session_options

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

CALLS = 50
SHORTEST = 1e-7  # s


@dataclass(frozen=True)
class Value:
    """The shape and element type of a tensor, as ONNX Runtime inferred them."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def random(self) -> np.ndarray[Any, Any]:
        """Random numbers; zeros for integers."""
        if self.dtype.kind != "f":
            return np.zeros(self.shape, self.dtype)
        return np.random.default_rng(0).random(self.shape, np.float32).astype(self.dtype, copy=False)


def single_steps(
    model: ModelProto, found: Sequence[KernelGroup], sizes: Mapping[str, int], threads: int
) -> list[SingleStep]:
    """The kernels of an optimized model with the layers of their groups, and the overhead of a run. `sizes` are symbolic dimensions."""
    layers = {kernel: group.layers for group in found for kernel in group.kernels}
    values = _values(model, sizes)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    steps = [SingleStep((), "", "run", 0, partial(_idle, threads))]
    for node in model.graph.node:
        reads = [name for name in dict.fromkeys(node.input) if name and name not in constants]
        own = {name: constants[name] for name in dict.fromkeys(node.input) if name in constants}
        touched = [values[name] for name in (*reads, *node.output) if name in values]
        steps.append(
            SingleStep(
                layers=layers.get(node.name, ()),
                what=node.op_type,
                key=_key(node, own, values),
                bytes=sum(value.bytes for value in touched),
                prepare=partial(_prepared, model, node, reads, own, values, threads),
            )
        )
    return steps


def _values(model: ModelProto, sizes: Mapping[str, int]) -> dict[str, Value]:
    """All tensors of a model whose shapes ONNX Runtime infers. Nothing runs."""
    from onnx import ModelProto, ValueInfoProto

    every = ModelProto()
    every.CopyFrom(model)
    known = {value.name for value in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if name and name not in known]
    every.graph.output.extend(ValueInfoProto(name=name) for name in made)
    session = _session(every, 1, sizes)
    found = {}
    for value in (*session.get_inputs(), *session.get_outputs()):
        if all(isinstance(size, int) for size in value.shape) and value.type in _dtypes():
            found[value.name] = Value(tuple(value.shape), _dtypes()[value.type])
    return found


@lru_cache(maxsize=1)
def _dtypes() -> dict[str, np.dtype[Any]]:
    names = {"float": "float32", "double": "float64"} | {
        name: name for name in ("float16", "int8", "uint8", "int16", "int32", "int64", "bool")
    }
    return {f"tensor({name})": np.dtype(dtype) for name, dtype in names.items()}


def _key(node: NodeProto, constants: Mapping[str, TensorProto], values: Mapping[str, Value]) -> str:
    """Operator, attributes, types of what it reads, and small constants such as shapes and axes."""
    parts = [node.domain, node.op_type, *sorted(str(attribute) for attribute in node.attribute)]
    for name in node.input:
        if name in constants:
            constant = constants[name]
            small = constant.data_type != constant.FLOAT
            parts.append(f"{constant.data_type} {tuple(constant.dims)}" + (f" {_digest(constant)}" if small else ""))
        else:
            parts.append(str(values.get(name)))
    return "\n".join(parts)


def _digest(constant: TensorProto) -> str:
    from onnx import numpy_helper

    return sha256(numpy_helper.to_array(constant).tobytes()).hexdigest()


def _prepared(
    model: ModelProto,
    node: NodeProto,
    reads: Sequence[str],
    constants: Mapping[str, TensorProto],
    values: Mapping[str, Value],
    threads: int,
) -> PreparedStep:
    """Raises KeyError for a tensor whose shape is only known when the network runs."""
    from onnx import ValueInfoProto, helper

    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
        for name in reads
    ]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "step", inputs, outputs, list(constants.values()))
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    arrays = {name: values[name].random() for name in (*reads, *node.output) if name}
    run, overhead = _call(_session(alone, threads), arrays), _overhead(threads)
    return PreparedStep(lambda: max(run() - overhead, SHORTEST), lambda: [arrays[name].sum() for name in reads])


def _idle(threads: int) -> PreparedStep:
    """A run of a session that has next to nothing to do."""
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "idle", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    arrays = {name: np.ones(1, np.float32) for name in ("x", "y")}
    return PreparedStep(_call(_session(model, threads), arrays), lambda: None)


@lru_cache(maxsize=4)
def _overhead(threads: int) -> float:
    """The median time of an idle run in s."""
    run = _idle(threads).run
    return median(run() for _ in range(CALLS))


def _session(model: ModelProto, threads: int, sizes: Mapping[str, int] | None = None) -> Any:
    """A session that leaves the model as it is."""
    ort = runtime()
    options = session_options(3)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, size in (sizes or {}).items():
        options.add_free_dimension_override_by_name(name, size)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _call(session: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Callable[[], float]:
    """A call that runs `session` once on its inputs and outputs in `arrays` and returns the time in s."""
    binding = session.io_binding()
    bind = dict.fromkeys((value.name for value in session.get_inputs()), binding.bind_input)
    bind |= dict.fromkeys((value.name for value in session.get_outputs()), binding.bind_output)
    for name, add in bind.items():
        array = arrays[name]
        add(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def run() -> float:
        _ = arrays  # the binding has only their addresses
        began = perf_counter()
        session.run_with_iobinding(binding)
        return perf_counter() - began

    return run
