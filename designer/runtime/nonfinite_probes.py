"""Tensors that a run checks for NaN and infinity, because their layer can make these from finite values.

A maximum, a comparison or an exponential behind such a layer may turn them into numbers, so that the outputs look right.
"""

from __future__ import annotations

from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import OnnxInput
from designer.runtime.api import Part
from designer.runtime.network import onnx_nodes, operator_of

# ONNX operators that are not defined for all numbers, or whose result overflows for small ones.
MAKERS = frozenset({
    "Acos", "Acosh", "Asin", "Atanh", "Cosh", "Div", "Exp", "Log", "Mod", "Pow", "Reciprocal", "ReduceLogSum", "Sinh", "Sqrt",
})  # fmt: skip


class NonfiniteProbes:
    """Lists these tensors for the parts of a plan. Layers that guard such an operator, as normalizations do, have none."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._found: dict[str, tuple[Source, ...]] = {}  # by the form of the part

    def of(self, part: Part, form: str) -> tuple[Source, ...]:
        """The tensors of a part to check."""
        if form not in self._found:
            makers = [name for name in part.layers if self._makes(name)]
            self._found[form] = tuple(self._inference.tensors(name)[0] for name in makers)
        return self._found[form]

    def _makes(self, layer: str) -> bool:
        state = self._inference.states[layer]
        if state.outputs is None or not state.outputs[0].dtype.is_float:
            return False
        nodes = onnx_nodes(operator_of(self._inference, layer), state.inputs)
        direct = nodes[:1] if nodes and nodes[0].op in MAKERS else []
        return any(isinstance(value, OnnxInput) for node in direct for value in node.inputs) or any(
            node.op == "Div" and isinstance(node.inputs[1], OnnxInput) for node in nodes
        )
