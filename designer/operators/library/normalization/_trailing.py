"""Shared parts of normalizations over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from designer.operators import api as op
from designer.operators.library.normalization._affine import affine_weights
from designer.operators.shapes import axis_of, known


class TrailingNormalization(op.Operator):
    """Normalize over all axes starting at `axis`, or over the channels (axis 1) at each position of an image."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)
    module: ClassVar[str] = ""
    with_bias: ClassVar[bool] = False

    over: str = op.param(
        default="last_axes",
        choices=("last_axes", "channels"),
        doc="Normalize over the axes starting at `axis`, or over the channels.",
    )
    axis: int = op.param(
        default=-1,
        min=-8,
        max=7,
        visible_when=("over", "last_axes"),
        doc="First of the normalized axes.",
    )
    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to the mean square to avoid division by 0.")
    affine: bool = op.param(default=True, doc="Apply a learned scale.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 5, 6)),)),
        op.Example((op.image(3, 4, 5),), {"axis": 1, "epsilon": 0.01}, "everything but the batch"),
        op.Example((op.image(6, 3, 4),), {"over": "channels"}, "channels"),
        op.Example((op.TensorType((op.BATCH, 7)),), {"affine": False}, "without scale"),
    )

    def shape(self, x: op.TensorType) -> tuple[int, ...]:
        """The normalized dimensions."""
        if self.over == "channels":
            return (known(x, 1),)
        return tuple(known(x, axis) for axis in range(axis_of(self.axis, x), x.rank))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        self.shape(inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {"normalized_shape": self.shape(inputs[0]), "eps": self.epsilon}
        if not self.affine:
            kwargs["elementwise_affine"] = False
        if self.over == "last_axes":
            return op.TorchModule(self.module, kwargs)
        moved = op.TorchMethod("movedim", op.TorchInput(0), (1, -1))
        return op.TorchMethod("movedim", op.TorchModule(self.module, kwargs, (moved,)), (-1, 1))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        rank = inputs[0].rank
        if self.over == "last_axes":
            return self.normalized(op.OnnxInput(0), inputs[0], axis_of(self.axis, inputs[0]) - rank)
        moved = op.OnnxNode("Transpose", attributes={"perm": (0, *range(2, rank), 1)})
        result = self.normalized(moved, inputs[0], -1)
        return op.OnnxNode("Transpose", (result,), {"perm": (0, rank - 1, *range(1, rank - 1))})

    def normalized(self, x: op.OnnxValue, kind: op.TensorType, axis: int) -> op.OnnxValue:
        """`x` normalized over the axes starting at `axis` (negative); `kind` is the type of the layer's input."""
        raise NotImplementedError

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        if not self.affine:
            return ()
        scale, bias = affine_weights(self.shape(inputs[0]))
        return (scale, bias) if self.with_bias else (scale,)

    def summary(self) -> str:
        return "channels" if self.over == "channels" else f"axis {self.axis}"
