"""Normalisation over the batch."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    TensorType,
    TorchExpr,
    TorchModule,
    Weight,
    image,
    param,
)
from designer.operators.library.normalisation._affine import affine_onnx, affine_weights
from designer.operators.shapes import known

_MODULES = {2: "torch.nn.BatchNorm1d", 3: "torch.nn.BatchNorm1d", 4: "torch.nn.BatchNorm2d", 5: "torch.nn.BatchNorm3d"}


class BatchNormalization(
    Operator,
    type="batch_normalization",
    title="Batch normalization",
    category=Category.NORMALISATION,
    synonyms=("batchnorm", "batchnorm2d", "bn", "batch norm"),
):
    """Bring every channel to mean 0 and variance 1, then scale and shift it by learned numbers.

    Training uses the statistics of the batch and remembers their running mean; inference uses what was remembered.
    """

    inputs = (Port("x", rank=(2, 3, 4, 5), dtypes=FLOATS),)

    epsilon: float = param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance, so that nothing divides by 0.")
    momentum: float = param(
        default=0.1, min=0.0, max=1.0, doc="Share of the newest batch in the running statistics; training only."
    )
    affine: bool = param(default=True, doc="Scale and shift by learned numbers.")
    examples = (
        Example((image(4),)),
        Example((TensorType((5, 3)),), {"epsilon": 0.01}, "table"),
        Example((image(4),), {"affine": False}, "without scale and shift"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        known(inputs[0], 1)
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {"num_features": inputs[0].dim(1), "eps": self.epsilon, "momentum": self.momentum}
        if not self.affine:
            kwargs["affine"] = False
        return TorchModule(_MODULES[inputs[0].rank], kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        affine = affine_onnx(inputs[0].dim(1), self.affine)
        tensors = (OnnxInput(0), *affine, OnnxWeight("mean"), OnnxWeight("variance"))
        return OnnxNode("BatchNormalization", tensors, {"epsilon": self.epsilon})

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        shape = (inputs[0].dim(1),)
        return (
            *(affine_weights(shape) if self.affine else ()),
            Weight("mean", shape, "running_mean", init="zeros", trainable=False),
            Weight("variance", shape, "running_var", init="ones", trainable=False),
        )
