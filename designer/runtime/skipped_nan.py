"""NaN that an engine drops: a maximum that skips NaN gives a finite result for data or weights that are damaged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from designer.files.weights import Weights
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import TensorType
from designer.operators.api import Operator
from designer.runtime.api import Part, Tensor
from designer.runtime.engine_api import EngineDescriptor
from designer.runtime.finite import nonfinite
from designer.runtime.network import activation_of, onnx_nodes, operator_of
from designer.texts import tr, tr_data


class SkippedNan:
    """Finds the layers of parts in which an engine drops NaN of the inputs or the weights."""

    def __init__(self, inference: Inference, engine: EngineDescriptor) -> None:
        self._inference = inference
        self._engine = engine
        self._skipping: dict[str, list[str]] = {}  # by the form of the part
        self.set_weights(Weights())

    def set_weights(self, weights: Weights) -> None:
        self._weights = weights
        self._damaged: dict[str, list[str]] = {}  # layers whose weights have NaN, by the form of the part

    def note(self, part: Part, form: str, feeds: Mapping[Source, Tensor]) -> str:
        """A sentence that names the cause and the first layer that may drop its NaN, or an empty text."""
        if not self._engine.skips_nan:
            return ""
        if form not in self._skipping:
            self._skipping[form] = [name for name in part.layers if drops_nan(self._inference, name, self._engine)]
        skipping = self._skipping[form]
        if not skipping:
            return ""
        if form not in self._damaged:
            self._damaged[form] = self._with_nan(part)
        graph = self._inference.graph
        for cause in [*self._damaged[form], *(source.layer for source, array in feeds.items() if _has_nan(array))]:
            reached = graph.downstream([cause])
            dropped = next((name for name in skipping if name in reached), None)
            if dropped is not None:
                return tr(
                    "{engine} may drop the NaN of '{cause}' in '{dropped}': finite results can be wrong",
                    engine=tr_data(self._engine.title),
                    cause=cause,
                    dropped=dropped,
                )
        return ""

    def _with_nan(self, part: Part) -> list[str]:
        """The layers of a part whose weights have NaN."""
        owners = {self._inference.graph[name].weights_name for name in part.layers}
        found = {
            key.layer for key in self._weights.tensors if key.layer in owners and _has_nan(self._weights.tensors[key])
        }
        return [name for name in part.layers if self._inference.graph[name].weights_name in found]


def drops_nan(inference: Inference, layer: str, engine: EngineDescriptor) -> bool:
    """Whether an engine may drop NaN in a layer or in the activation attached to it."""
    state = inference.states[layer]
    activation, before = activation_of(inference, layer), state.before_activation
    found = _computes(operator_of(inference, layer), state.inputs, engine.skips_nan)
    return found or (
        activation is not None and before is not None and _computes(activation, (before,), engine.skips_nan)
    )


def _computes(operator: Operator, types: Sequence[TensorType], nodes: Collection[str]) -> bool:
    """Whether an operator is one of these, or has one of these ONNX nodes."""
    return operator.type in nodes or any(node.op in nodes for node in onnx_nodes(operator, types))


def _has_nan(array: Tensor) -> bool:
    found = nonfinite(array)
    return found is not None and found.nan > 0
