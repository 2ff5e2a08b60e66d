"""Normalisation over groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators.api import (
    BATCH,
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchModule,
    Weight,
    image,
    int64,
    param,
)
from designer.operators.library.normalisation._affine import affine_onnx, affine_weights
from designer.operators.shapes import divisible, known
from designer.texts import tr


class GroupNormalization(
    Operator,
    type="group_normalization",
    title="Group normalization",
    category=Category.NORMALISATION,
    synonyms=("groupnorm", "gn", "group norm"),
):
    """Bring every group of channels of a sample to mean 0 and variance 1, then scale and shift each channel."""

    inputs = (Port("x", rank=(2, 3, 4, 5), dtypes=FLOATS),)

    groups: int = param(default=8, min=1, max=65536, doc="Number of groups; the channels are a multiple of it.")
    epsilon: float = param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance, so that nothing divides by 0.")
    affine: bool = param(default=True, doc="Scale and shift by learned numbers.")
    examples = (
        Example((image(6, 3, 4),), {"groups": 2}),
        Example((TensorType((BATCH, 6)),), {"groups": 3, "affine": False}, "table"),
        Example((TensorType((BATCH, 4, 5)),), {"groups": 1}, "one group"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        channels = known(x, 1)
        divisible("channels", channels, self.groups, "groups")
        if channels // self.groups * prod(known(x, axis) for axis in range(2, x.rank)) == 1:
            raise ShapeError(
                tr("a group of a single value cannot be normalised"), port="x", remedy=tr("use fewer groups")
            )
        return x

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {"num_groups": self.groups, "num_channels": inputs[0].dim(1), "eps": self.epsilon}
        if not self.affine:
            kwargs["affine"] = False
        return TorchModule("torch.nn.GroupNorm", kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        x = inputs[0]
        rows = OnnxNode("Reshape", (OnnxInput(0), int64(0, self.groups, -1)))
        unchanged = affine_onnx(self.groups, learned=False)
        even = OnnxNode("InstanceNormalization", (rows, *unchanged), {"epsilon": self.epsilon})
        result = OnnxNode("Reshape", (even, OnnxNode("Shape")))
        if not self.affine:
            return result
        column = int64(-1, *(1,) * (x.rank - 2))
        scale = OnnxNode("Reshape", (OnnxWeight("scale"), column))
        bias = OnnxNode("Reshape", (OnnxWeight("bias"), column))
        return OnnxNode("Add", (OnnxNode("Mul", (result, scale)), bias))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        return affine_weights((inputs[0].dim(1),)) if self.affine else ()

    def summary(self) -> str:
        return f"{self.groups} groups"
