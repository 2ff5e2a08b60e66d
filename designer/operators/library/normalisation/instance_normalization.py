"""Normalisation of every channel of a sample."""

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
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchModule,
    Weight,
    image,
    param,
)
from designer.operators.library.normalisation._affine import affine_onnx, affine_weights
from designer.operators.shapes import known

_MODULES = {3: "torch.nn.InstanceNorm1d", 4: "torch.nn.InstanceNorm2d", 5: "torch.nn.InstanceNorm3d"}


class InstanceNormalization(
    Operator,
    type="instance_normalization",
    title="Instance normalization",
    category=Category.NORMALISATION,
    synonyms=("instancenorm", "style transfer", "contrast normalization"),
):
    """Bring every channel of every sample to mean 0 and variance 1."""

    inputs = (Port("x", rank=(3, 4, 5), dtypes=FLOATS),)

    epsilon: float = param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance, so that nothing divides by 0.")
    affine: bool = param(default=False, doc="Scale and shift by learned numbers.")
    examples = (
        Example((image(3, 4, 5),)),
        Example((TensorType((BATCH, 4, 5)),), {"affine": True, "epsilon": 0.01}, "sequence"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        known(x, 1)
        if prod(known(x, axis) for axis in range(2, x.rank)) == 1:
            raise ShapeError("a channel of a single value cannot be normalised", port="x", remedy="use a larger input")
        return x

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {"num_features": inputs[0].dim(1), "eps": self.epsilon, "affine": self.affine}
        return TorchModule(_MODULES[inputs[0].rank], kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        affine = affine_onnx(inputs[0].dim(1), self.affine)
        return OnnxNode("InstanceNormalization", (OnnxInput(0), *affine), {"epsilon": self.epsilon})

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        return affine_weights((inputs[0].dim(1),)) if self.affine else ()
