"""Queries on a network with inferred shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import TensorType
from designer.operators.api import Activation, OnnxInput, OnnxItem, OnnxNode, OnnxValue, Operator, Role
from designer.operators.registry import Read
from designer.runtime.api import Array
from designer.texts import tr


def operator_of(inference: Inference, layer: str) -> Operator:
    """The typed operator of a layer. Raises DiagnosticError if its parameters are invalid."""
    read = cast(Read, inference.read(layer))
    if read.operator is None:
        raise DiagnosticError(errors(read.diagnostics) or read.diagnostics)
    return read.operator


def activation_of(inference: Inference, layer: str) -> Activation | None:
    return cast(Read, inference.read(layer)).activation


def role_of(inference: Inference, layer: str) -> Role | None:
    """The role of a layer; None if its type is unknown or its parameters are invalid."""
    operator = cast(Read, inference.read(layer)).operator
    return operator.role if operator is not None else None


def type_of(inference: Inference, source: Source) -> TensorType:
    """The inferred type of a tensor. Raises DiagnosticError if it is unknown."""
    found = inference.type_of(inference.tensor(source))
    if found is None:
        raise not_runnable(inference, source.layer)
    return found


def inputs_of(inference: Inference, layer: Layer) -> tuple[Source, ...]:
    """The tensors that a layer reads, one per connected port."""
    return tuple(inference.tensor(source) for source in layer.inputs if source is not None)


def passes_through(inference: Inference, name: str) -> bool:
    """Whether a layer passes its first input through unchanged, so that nothing needs to run."""
    layer = inference.graph[name]
    if layer.activation is not None:
        return False
    operator = operator_of(inference, name)
    if operator.role not in (Role.COMPUTE, Role.OUTPUT) or len(operator.output_ports()) != 1:
        return False
    state = inference.states[name]
    if state.outputs is None or not state.inputs or state.outputs[0] != state.inputs[0]:
        return False
    try:
        data = operator.onnx(state.inputs)
    except NotImplementedError:
        return operator.role is Role.OUTPUT
    value: OnnxValue | None = data[0] if isinstance(data, tuple) else data
    while isinstance(value, OnnxNode) and value.op == "Identity" and not value.domain:
        value = value.inputs[0]
    return isinstance(value, OnnxInput) and value.index == 0


def output_layers(inference: Inference) -> tuple[str, ...]:
    """The output layers of the network by name, as in a saved document: undo and renaming change the order of a graph's layers."""
    return tuple(sorted(name for name in inference.graph.layers if role_of(inference, name) is Role.OUTPUT))


def input_layers(graph: Graph, inference: Inference) -> tuple[str, ...]:
    """The input layers of the network by name, see `output_layers`."""
    return tuple(sorted(name for name in graph.layers if role_of(inference, name) is Role.INPUT))


def check_runnable(inference: Inference, names: Iterable[str]) -> None:
    """Raise DiagnosticError that names the layers that prevent `names` from running."""
    causes: dict[str, None] = {}
    for name in names:
        state = inference.states[name]
        if state.outputs is None:
            causes[state.because_of or name] = None
    if causes:
        raise DiagnosticError(tuple(d for cause in causes for d in not_runnable(inference, cause).diagnostics))


def not_runnable(inference: Inference, name: str) -> DiagnosticError:
    """The error for a network that cannot run because of layer `name`, with the reason."""
    state = inference.states.get(name)
    if state is not None and state.because_of is not None and state.because_of in inference.states:
        return not_runnable(inference, state.because_of)
    found = errors(state.diagnostics) if state is not None else ()
    reason = found[0].message if found else tr("its shape is unknown")
    remedy = found[0].remedy if found else tr("see the problems under Type Checking")
    return DiagnosticError.of(
        found[0].code if found else "not-runnable",
        tr("the network cannot run because of '{name}': {reason}", name=name, reason=reason),
        layer=name,
        port=found[0].port if found else None,
        parameter=found[0].parameter if found else None,
        remedy=remedy,
    )


def evaluate(inference: Inference, layer: str, inputs: Sequence[Array]) -> dict[Source, Array]:
    """The outputs of an analysis layer, float32. Any exception of its code becomes a DiagnosticError that names it."""
    operator = operator_of(inference, layer)
    try:
        made = operator.evaluate(inputs)
    except DiagnosticError as error:  # a layer does not know its own name
        raise DiagnosticError(replace(d, layer=d.layer or layer) for d in error.diagnostics) from error
    except Exception as error:  # a plugin may raise anything
        raise DiagnosticError.of(
            "analysis-failed",
            tr(
                "the analysis layer '{layer}' failed: {name}: {error}",
                layer=layer,
                name=type(error).__name__,
                error=error,
            ),
            layer=layer,
            remedy=tr("change its parameters, or remove it"),
        ) from error
    arrays = (np.ascontiguousarray(array, dtype=np.float32) for array in made)
    return dict(zip(inference.tensors(layer), arrays, strict=True))


def onnx_nodes(operator: Operator, types: Sequence[TensorType]) -> list[OnnxNode]:
    """The nodes of an operator in ONNX, that of the first output first; none if it cannot be expressed there."""
    try:
        made = operator.onnx(types)
    except NotImplementedError:
        return []
    waiting: list[OnnxValue] = [*reversed(made)] if isinstance(made, tuple) else [made]
    found: dict[int, OnnxNode] = {}
    while waiting:
        value = waiting.pop()
        node = value.node if isinstance(value, OnnxItem) else value
        if isinstance(node, OnnxNode) and id(node) not in found:
            found[id(node)] = node
            waiting += [read for read in node.inputs if read is not None]
    return list(found.values())
