"""The weights that a layer uses, for display."""

from __future__ import annotations

from collections.abc import Sequence

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.types import TensorType
from designer.operators.api import Operator
from designer.runtime.api import Array
from designer.runtime.engines.onnx_model import weight
from designer.runtime.network import activation_of, not_runnable, operator_of
from designer.runtime.session import Session
from designer.texts import tr


def weights_of(session: Session, layer: str) -> dict[str, Array]:
    """Weight tensors of a layer by name, axes in torch's order; an instance has those of its layers as `<layer>.<name>`.

    Empty for a layer without weights. Never write to the arrays.
    """
    graph = session.inference.graph
    if layer not in graph:
        raise DiagnosticError.of(
            "no-such-layer", tr("there is no layer '{layer}'", layer=layer), remedy=tr("choose an existing layer")
        )
    found = dict(_of(session.inference, session.weights, layer))
    inside = f"{layer}."
    for other in graph:
        if other.name.startswith(inside):
            short = other.name.removeprefix(inside)
            of_other = _of(session.inference, session.weights, other.name)
            found |= {f"{short}.{name}": array for name, array in of_other.items()}
    return found


def _of(inference: Inference, weights: Weights, layer: str) -> dict[str, Array]:
    state = inference.states[layer]
    if state.outputs is None:
        raise not_runnable(inference, layer)
    owner = inference.graph[layer].weights_name
    wanted = _declared(operator_of(inference, layer), "", state.inputs)
    attached = activation_of(inference, layer)
    if attached is not None and state.before_activation is not None:
        wanted |= _declared(attached, attached.weight_prefix, (state.before_activation,))
    return {name: weight(weights, WeightKey(owner, name), shape) for name, shape in wanted.items()}


def _declared(operator: Operator, prefix: str, inputs: Sequence[TensorType]) -> dict[str, tuple[int, ...]]:
    return {prefix + w.name: tuple(w.shape) for w in operator.weights(inputs)}
