"""Group normalization."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.library.normalization._affine import affine_onnx, affine_weights
from designer.operators.shapes import divisible, known
from designer.texts import tr


class GroupNormalization(
    op.Operator,
    type="group_normalization",
    title="Group normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("groupnorm", "gn", "group norm"),
):
    """Normalize each group of channels of a sample to mean 0 and variance 1, then scale and shift each channel."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    groups: int = op.param(default=8, min=1, max=65536, doc="Number of groups; must divide the number of channels.")
    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance to avoid division by 0.")
    affine: bool = op.param(default=True, doc="Apply a learned scale and bias.")
    examples = (
        op.Example((op.image(6, 3, 4),), {"groups": 2}),
        op.Example((op.TensorType((op.BATCH, 6)),), {"groups": 3, "affine": False}, "table"),
        op.Example((op.TensorType((op.BATCH, 4, 5)),), {"groups": 1}, "one group"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        channels = known(x, 1)
        divisible("channels", channels, self.groups, "groups")
        if channels // self.groups * prod(known(x, axis) for axis in range(2, x.rank)) == 1:
            raise op.ShapeError(
                tr("a group with a single value cannot be normalized"), port="x", remedy=tr("use fewer groups")
            )
        return x

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {"num_groups": self.groups, "num_channels": inputs[0].dim(1), "eps": self.epsilon}
        if not self.affine:
            kwargs["affine"] = False
        return op.TorchModule("torch.nn.GroupNorm", kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x = inputs[0]
        rows = op.OnnxNode("Reshape", (op.OnnxInput(0), op.int64(0, self.groups, -1)))
        unchanged = affine_onnx(self.groups, learned=False)
        even = op.OnnxNode("InstanceNormalization", (rows, *unchanged), {"epsilon": self.epsilon})
        result = op.OnnxNode("Reshape", (even, op.OnnxNode("Shape")))
        if not self.affine:
            return result
        column = op.int64(-1, *(1,) * (x.rank - 2))
        scale = op.OnnxNode("Reshape", (op.OnnxWeight("scale"), column))
        bias = op.OnnxNode("Reshape", (op.OnnxWeight("bias"), column))
        return op.OnnxNode("Add", (op.OnnxNode("Mul", (result, scale)), bias))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        return affine_weights((inputs[0].dim(1),)) if self.affine else ()

    def summary(self) -> str:
        return f"{self.groups} groups"
