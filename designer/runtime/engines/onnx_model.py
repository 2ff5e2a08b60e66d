"""Builds ONNX models from a part of a network, by walking the operators' ONNX data.

Names are scoped and cannot clash: layer names contain neither slash nor colon, so a tensor is `layer` or `layer:port`, and
weights and nodes of a layer are `layer/kernel`, `layer/Conv`. Several nodes of one type are `layer/Conv`, `layer/Conv_1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import DataType, ShapeError, Symbol, TensorType
from designer.operators.api import (
    OnnxConstant,
    OnnxGraph,
    OnnxInput,
    OnnxItem,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
)
from designer.operators.onnx_data import OPSET
from designer.runtime.api import Part
from designer.runtime.network import activation_of, inputs_of, not_runnable, operator_of, type_of
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto

PRODUCER = "layerwright"
MAX_BYTES = 2**31 - 1  # protobuf's limit for one message


@dataclass
class _Builder:
    """Collects nodes and initializers of one model."""

    inference: Inference
    weights: Weights
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    names: dict[Source, str] = field(default_factory=dict)  # tensor -> value name in the model
    weight_names: dict[WeightKey, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    opsets: dict[str, int] = field(default_factory=lambda: {"": OPSET})  # domain -> version

    def require(self, domain: str, version: int) -> None:
        """Note that a node needs at least this version of its domain."""
        domain = "" if domain == "ai.onnx" else domain
        self.opsets[domain] = max(self.opsets.get(domain, 1), version)

    def fresh(self, base: str) -> str:
        name, number = base, 1
        while name in self.taken:
            name = f"{base}_{number}"
            number += 1
        self.taken.add(name)
        return name

    def node(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], name: str, domain: str = "", **kw: Any
    ) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), name=name, domain=domain or None, **kw))

    def initializer(self, name: str, array: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))  # keeps rank 0
        return name

    # --- layers --------------------------------------------------------------------------------------------------

    def layer(self, name: str) -> None:
        """Add the nodes of one layer and of the activation attached to it."""
        graph_layer = self.inference.graph[name]
        state = self.inference.states[name]
        if state.outputs is None:
            raise not_runnable(self.inference, name)
        operator = operator_of(self.inference, name)
        reads = [self.names[source] for source in inputs_of(self.inference, graph_layer)]
        results = self.inference.tensors(name)
        roots = list(_data(operator, state.inputs, name))
        activation = activation_of(self.inference, name)
        wanted = [str(result) for result in results]
        if activation is None:
            values = _Walk(self, name, operator, state.inputs, reads).emit(roots, wanted)
        else:
            values = _Walk(self, name, operator, state.inputs, reads).emit(roots, ["", *wanted[1:]])
            before = state.before_activation
            assert before is not None
            ends = _Walk(self, name, activation, (before,), [values[0]], activation.weight_prefix)
            values = [*ends.emit(_data(activation, (before,), name), wanted[:1]), *values[1:]]
        for result, value in zip(results, values, strict=True):
            self.names[result] = value


class _Walk:
    """Emits one operator's data. `reads` are the value names of its inputs."""

    def __init__(
        self,
        builder: _Builder,
        layer: str,
        operator: Operator,
        types: Sequence[TensorType],
        reads: Sequence[str],
        prefix: str = "",
    ) -> None:
        self.builder = builder
        self.layer = layer
        self.reads = reads
        self.prefix = prefix
        self.shapes = {weight.name: weight.shape for weight in operator.weights(types)}
        self.done: dict[int, list[str]] = {}
        self.preset: dict[tuple[int, int], str] = {}

    def emit(self, roots: Sequence[OnnxValue], wanted: Sequence[str]) -> list[str]:
        """Value names of `roots`; a node's output gets the name in `wanted` unless that is empty."""
        for root, name in zip(roots, wanted, strict=True):
            key = _place(root)
            if name and key is not None and key not in self.preset:
                self.preset[key] = name
        return [self.value(root) for root in roots]

    def value(self, value: OnnxValue) -> str:
        if isinstance(value, OnnxInput):
            return self.reads[value.index]
        if isinstance(value, OnnxNode | OnnxGraph):
            return self._outputs(value)[0]
        if isinstance(value, OnnxItem):
            return self._outputs(value.node)[value.index]
        known = self.done.get(id(value))
        if known is None:
            known = self.done[id(value)] = [self._leaf(value)]
        return known[0]

    def _leaf(self, value: OnnxValue) -> str:
        if isinstance(value, OnnxConstant):
            name = self.builder.fresh(f"{self.layer}/constant")
            return self.builder.initializer(name, np.array(value.values, dtype=value.dtype))
        if isinstance(value, OnnxWeight):
            key = WeightKey(self.builder.inference.graph[self.layer].weights_name, self.prefix + value.name)
            array = weight(self.builder.weights, key, self.shapes.get(value.name))
            if key not in self.builder.weight_names:
                name = self.builder.fresh(f"{key.layer}/{key.tensor}")
                self.builder.weight_names[key] = self.builder.initializer(name, array)
            return self.builder.weight_names[key]
        raise TypeError(f"layer '{self.layer}': {value!r} is not ONNX data")

    def _outputs(self, node: OnnxNode | OnnxGraph) -> list[str]:
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = self._node(node) if isinstance(node, OnnxNode) else self._graph(node)
        return known

    def _graph(self, data: OnnxGraph) -> list[str]:
        """Add the nodes and initializers of a model; all its names get those of the layer in front."""
        from onnx import load_model_from_string

        model = load_model_from_string(data.model)
        for entry in model.opset_import:
            self.builder.require(entry.domain, entry.version)
        prefix = self.builder.fresh(f"{self.layer}/graph")
        renamed = {entry.name: self.value(value) for entry, value in zip(model.graph.input, data.inputs, strict=True)}
        outputs = []
        for index, entry in enumerate(model.graph.output):
            name = self.preset.get((id(data), index)) or f"{prefix}/{entry.name}"
            renamed[entry.name] = name
            outputs.append(name)
        rename_values(model.graph, renamed, prefix)
        self.builder.nodes.extend(model.graph.node)
        self.builder.initializers.extend(model.graph.initializer)
        return outputs

    def _node(self, node: OnnxNode) -> list[str]:
        self.builder.require(node.domain, node.opset)
        inputs = ["" if value is None else self.value(value) for value in node.inputs]
        name = self.builder.fresh(f"{self.layer}/{node.op}")
        outputs = [
            self.preset.get((id(node), i)) or (f"{name}:{i}" if node.outputs > 1 else f"{name}:y")
            for i in range(node.outputs)
        ]
        attributes = {key: _attribute(value) for key, value in node.attributes.items() if value is not None}
        self.builder.node(node.op, inputs, outputs, name, node.domain, **attributes)
        return outputs


def rename_values(graph: Any, renamed: Mapping[str, str], prefix: str) -> None:
    """Rename all values of an ONNX graph and of the graphs in it: as in `renamed`, others get `prefix` in front.

    Names are unique across a graph and the graphs in it, so equal names are the same value.
    """

    def name_of(name: str) -> str:
        return renamed.get(name) or (f"{prefix}/{name}" if name else "")

    for entry in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        entry.name = name_of(entry.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = name_of(sparse.values.name)
    for node in graph.node:
        node.name = f"{prefix}/{node.name}" if node.name else ""
        node.input[:] = [name_of(name) for name in node.input]
        node.output[:] = [name_of(name) for name in node.output]
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                rename_values(inner, renamed, prefix)


def _place(value: OnnxValue) -> tuple[int, int] | None:
    if isinstance(value, OnnxNode | OnnxGraph):
        return id(value), 0
    if isinstance(value, OnnxItem):
        return id(value.node), value.index
    return None


def _data(operator: Operator, types: Sequence[TensorType], layer: str) -> tuple[OnnxValue, ...]:
    try:
        data = operator.onnx(types)
    except NotImplementedError:
        raise DiagnosticError.of(
            "not-in-onnx",
            tr("'{layer}' ({title}) cannot be expressed in ONNX", layer=layer, title=operator.title),
            layer=layer,
            remedy=tr("run the network with the torch engine, or export it as a PyTorch project"),
        ) from None
    except ShapeError as error:
        raise DiagnosticError.of("not-in-onnx", error.message, layer=layer, remedy=error.remedy) from None
    return data if isinstance(data, tuple) else (data,)


def _attribute(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, np.ndarray):
        from onnx import numpy_helper

        return numpy_helper.from_array(value)
    return list(value) if isinstance(value, tuple) else value


def weight(weights: Weights, key: WeightKey, shape: tuple[int, ...] | None) -> NDArray[np.float32]:
    """One tensor of the weights. Raises DiagnosticError if it is missing or its shape is not `shape`."""
    array = weights.tensors.get(key)
    if array is None:
        raise DiagnosticError.of(
            "missing-weight",
            f"the weights of '{key.layer}' lack '{key.tensor}'"
            + (f" of shape {_dims(shape)}" if shape is not None else ""),
            layer=key.layer,
            remedy=tr("choose a weights folder that has it, or random weights with a seed"),
        )
    if shape is not None and tuple(array.shape) != tuple(shape):
        raise DiagnosticError.of(
            "wrong-weight-shape",
            tr(
                "'{tensor}' of '{layer}' has the shape {shape}, but the layer needs {needed}",
                tensor=key.tensor,
                layer=key.layer,
                shape=_dims(array.shape),
                needed=_dims(shape),
            ),
            layer=key.layer,
            remedy=tr("choose the weights that belong to this network, or change the layer's parameters back"),
        )
    return array


def _dims(shape: Sequence[int]) -> str:
    return dims_text(shape)


def build_model(
    inference: Inference,
    part: Part,
    wanted: Sequence[Source],
    weights: Weights,
    *,
    layout: str = "nchw",
    metadata: Mapping[str, str] | None = None,
    producer_version: str = "",
) -> ModelProto:
    """A model whose inputs are the feeds of `part` and whose outputs are `wanted`, in that order.

    Inputs and outputs are named like the tensors (`layer` or `layer:port`). With the layout "nhwc" tensors of rank 4 arrive and leave as N x H x W x C; inside, everything is N x C x H x W. Raises
    DiagnosticError for layers that ONNX cannot express and for weights that are missing.
    """
    builder = _Builder(inference, weights)
    return _packed(builder, *_ends(builder, part, wanted, layout), metadata, producer_version)


def build_model_of_weights(
    inference: Inference, part: Part, wanted: Sequence[Source], weights: Weights, *, layout: str = "nchw"
) -> tuple[ModelProto, dict[str, WeightKey]]:
    """As `build_model`, with the weights as inputs after the feeds. The second value maps their names to tensors of `weights`."""
    from onnx import helper

    builder = _Builder(inference, weights)
    inputs, outputs = _ends(builder, part, wanted, layout)
    keys = {name: key for key, name in builder.weight_names.items()}
    for tensor in builder.initializers:
        if tensor.name in keys:
            inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    builder.initializers = [tensor for tensor in builder.initializers if tensor.name not in keys]
    return _packed(builder, inputs, outputs), keys


def _ends(builder: _Builder, part: Part, wanted: Sequence[Source], layout: str) -> tuple[list[Any], list[Any]]:
    """Add the layers of a part; returns the inputs and outputs of the model."""
    inference = builder.inference
    inputs, outputs = [], []
    for feed in part.feeds:
        kind = type_of(inference, feed)
        name = builder.fresh(str(feed))
        builder.names[feed] = name
        inputs.append(_value_info(name, kind, layout))
        if _is_nhwc(kind, layout):
            inner = f"{name}/nchw"
            builder.node("Transpose", [name], [inner], f"{name}/to_nchw", perm=[0, 3, 1, 2])
            builder.names[feed] = inner
    for layer in part.layers:
        builder.layer(layer)
    made = {name for node in builder.nodes for name in node.output}
    used: set[str] = set()
    for source in wanted:
        key = inference.tensor(source)
        kind = type_of(inference, key)
        value = builder.names[key]
        name = str(key)
        if _is_nhwc(kind, layout):
            name = f"{name}/nhwc" if name == value else name
            builder.node("Transpose", [value], [name], f"{name}/to_nhwc", perm=[0, 2, 3, 1])
        elif name != value or value not in made or value in used:
            name = f"{name}/output" if name in made or name in builder.taken else name
            builder.node("Identity", [value], [name], f"{name}/identity")
        used.add(name)
        outputs.append(_value_info(name, kind, layout))
    return inputs, outputs


def _packed(
    builder: _Builder,
    inputs: list[Any],
    outputs: list[Any],
    metadata: Mapping[str, str] | None = None,
    producer_version: str = "",
) -> ModelProto:
    from onnx import helper

    title = builder.inference.graph.name or "network"
    graph = helper.make_graph(builder.nodes, title, inputs, outputs, builder.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in sorted(builder.opsets.items())]
    model: ModelProto = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
        producer_name=PRODUCER,
        producer_version=producer_version,
    )
    if metadata:
        helper.set_model_props(model, dict(metadata))
    return model


def serialized(model: ModelProto) -> bytes:
    """The model as bytes; DiagnosticError when it is larger than one ONNX file can be."""
    size = model.ByteSize()
    if size > MAX_BYTES:
        raise DiagnosticError.of(
            "model-too-large",
            tr(
                "the network takes {size:.1f} GB as ONNX, more than the 2.1 GB that one file can hold",
                size=size / 1e9,
            ),
            remedy=tr("run it with the torch engine"),
        )
    data: bytes = model.SerializeToString()
    return data


def _is_nhwc(kind: TensorType, layout: str) -> bool:
    return layout == "nhwc" and kind.rank == 4


def _value_info(name: str, kind: TensorType, layout: str) -> Any:
    from onnx import helper

    dims = [d.name if isinstance(d, Symbol) else d for d in kind.shape]
    if _is_nhwc(kind, layout):
        dims = [dims[0], dims[2], dims[3], dims[1]]
    return helper.make_tensor_value_info(name, _element(kind.dtype), dims)


def _element(dtype: DataType) -> int:
    from onnx import TensorProto

    names = {DataType.FLOAT32: "FLOAT", DataType.FLOAT64: "DOUBLE"}
    code: int = TensorProto.DataType.Value(names.get(dtype, dtype.value.upper()))
    return code
