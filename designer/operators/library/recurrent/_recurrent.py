"""Shared parts of recurrent layers. Weights have the names, shapes and order of torch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from designer.operators import api as op
from designer.operators.shapes import known


class Recurrent(op.Operator):
    """A recurrent layer over N x L x features. The first output has all steps, the others the final state."""

    inputs = (op.Port("x", rank=3, dtypes=op.FLOATS),)
    outputs: ClassVar[tuple[op.Port, ...]] = (
        op.Port("y", doc="Outputs of the last layer for all steps."),
        op.Port("hidden", doc="Hidden state after the last step."),
    )
    module: ClassVar[str] = ""
    onnx_op: ClassVar[str] = ""
    gates: ClassVar[tuple[int, ...]] = (0,)  # indices of ONNX's gates in torch's order

    hidden: int = op.param(default=64, min=1, max=65536, doc="Size of the hidden state.")
    layers: int = op.param(default=1, min=1, max=16, doc="Number of stacked layers.")
    bidirectional: bool = op.param(default=False, doc="Also process the sequence backwards; results are concatenated.")
    apply_bias: bool = op.param(default=True, doc="Use learned biases.")
    dropout: float = op.param(
        default=0.0, min=0.0, max=1.0, step=0.05, doc="Dropout probability between layers in training."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5, 3)),), {"hidden": 4}),
        op.Example(
            (op.TensorType((op.BATCH, 4, 3)),),
            {"hidden": 2, "layers": 2, "bidirectional": True, "dropout": 0.5},
            "deep",
        ),
        op.Example(
            (op.TensorType((op.BATCH, 4, 3)),), {"hidden": 2, "apply_bias": False, "bidirectional": True}, "both ways"
        ),
    )

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        n, length, _ = inputs[0].shape
        known(inputs[0], 1)
        known(inputs[0], 2)
        state = op.TensorType((self.layers * self._directions(), n, self.hidden))
        y = op.TensorType((n, length, self.hidden * self._directions()))
        return (y, *(state for _ in self.output_ports()[1:]))

    def kwargs(self, x: op.TensorType) -> dict[str, Any]:
        made: dict[str, Any] = {"input_size": x.dim(2), "hidden_size": self.hidden}
        if self.layers > 1:
            made["num_layers"] = self.layers
        if not self.apply_bias:
            made["bias"] = False
        made["batch_first"] = True
        if self.dropout and self.layers > 1:
            made["dropout"] = self.dropout
        if self.bidirectional:
            made["bidirectional"] = True
        return made

    def torch(self, inputs: Sequence[op.TensorType]) -> tuple[op.TorchExpr, ...]:
        both = op.TorchModule(self.module, self.kwargs(inputs[0]))
        state = op.TorchItem(both, 1)
        count = len(self.output_ports()) - 1
        states = (state,) if count == 1 else tuple(op.TorchItem(state, index) for index in range(count))
        return (op.TorchItem(both, 0), *states)

    def onnx_attributes(self) -> dict[str, Any]:
        return {}

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        names = ("forward", "bidirectional")[self.bidirectional]
        attributes = {"hidden_size": self.hidden, "direction": names, **self.onnx_attributes()}
        count = len(self.output_ports())
        x: op.OnnxValue = op.OnnxNode("Transpose", attributes={"perm": (1, 0, 2)})
        states: list[list[op.OnnxValue]] = [[] for _ in range(count - 1)]
        for layer in range(self.layers):
            tails = [f"l{layer}", f"l{layer}_reverse"][: self._directions()]
            w = _joined([self._gates(op.OnnxWeight(f"weight_ih_{tail}")) for tail in tails])
            r = _joined([self._gates(op.OnnxWeight(f"weight_hh_{tail}")) for tail in tails])
            b = None
            if self.apply_bias:
                sides = [[self._gates(op.OnnxWeight(f"bias_{kind}_{tail}")) for kind in ("ih", "hh")] for tail in tails]
                b = _joined([op.OnnxNode("Concat", tuple(side), {"axis": 0}) for side in sides])
            node = op.OnnxNode(self.onnx_op, (x, w, r, b) if b is not None else (x, w, r), attributes, outputs=count)
            for index in range(count - 1):
                states[index].append(op.OnnxItem(node, index + 1))
            # L x directions x N x hidden becomes L x N x directions * hidden
            moved = op.OnnxNode("Transpose", (op.OnnxItem(node, 0),), {"perm": (0, 2, 1, 3)})
            x = op.OnnxNode("Reshape", (moved, op.int64(0, 0, -1)))
        ends = [parts[0] if len(parts) == 1 else op.OnnxNode("Concat", tuple(parts), {"axis": 0}) for parts in states]
        return (op.OnnxNode("Transpose", (x,), {"perm": (1, 0, 2)}), *ends)

    def _gates(self, weight: op.OnnxValue) -> op.OnnxValue:
        """A weight with the gates along its first axis, in ONNX's order."""
        if len(self.gates) == 1:
            return weight
        count = len(self.gates)
        parts = op.OnnxNode("Split", (weight,), {"axis": 0, "num_outputs": count}, outputs=count)
        return op.OnnxNode("Concat", tuple(op.OnnxItem(parts, index) for index in self.gates), {"axis": 0})

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        rows = len(self.gates) * self.hidden
        found = []
        for layer in range(self.layers):
            size = inputs[0].dim(2) if layer == 0 else self.hidden * self._directions()
            for tail in [f"l{layer}", f"l{layer}_reverse"][: self._directions()]:
                found.append(op.Weight(f"weight_ih_{tail}", (rows, size), f"weight_ih_{tail}", fan_in=self.hidden))
                found.append(
                    op.Weight(f"weight_hh_{tail}", (rows, self.hidden), f"weight_hh_{tail}", fan_in=self.hidden)
                )
                if self.apply_bias:
                    names = (f"bias_ih_{tail}", f"bias_hh_{tail}")
                    found.extend(op.Weight(name, (rows,), name, fan_in=self.hidden) for name in names)
        return tuple(found)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        rows = len(self.gates) * self.hidden * self._directions()
        total = 0
        for layer in range(self.layers):
            size = inputs[0].dim(2) if layer == 0 else self.hidden * self._directions()
            total += 2 * prod(inputs[0].concrete()[:2]) * rows * (size + self.hidden)
        return total

    def summary(self) -> str:
        return f"{self.hidden}{' x 2' if self.bidirectional else ''}{f' · {self.layers} layers' if self.layers > 1 else ''}"


def _joined(parts: Sequence[op.OnnxValue]) -> op.OnnxValue:
    """Stack the directions along a new first axis."""
    wide = tuple(op.OnnxNode("Unsqueeze", (part, op.int64(0))) for part in parts)
    return wide[0] if len(wide) == 1 else op.OnnxNode("Concat", wide, {"axis": 0})
