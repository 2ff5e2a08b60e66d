"""Every output sees every input."""

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
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    TorchModule,
    Weight,
    image,
    param,
)
from designer.operators.shapes import known


class FullyConnected(
    Operator,
    type="fully_connected",
    title="Fully connected",
    category=Category.LINEAR,
    synonyms=("linear", "dense", "fc", "perceptron", "gemm"),
):
    """Every output is a learned weighted sum of all inputs.

    Everything behind the batch is flattened first; without `flatten` only the last axis is replaced, as for sequences.
    """

    inputs = (Port("x", rank=(2, 3, 4, 5), dtypes=FLOATS),)

    features: int = param(default=64, min=1, max=1_000_000, doc="Number of outputs.")
    apply_bias: bool = param(default=True, doc="Add a learned number to every output.")
    flatten: bool = param(
        default=True, extension=True, doc="Use all values of a sample at once rather than those along the last axis."
    )
    examples = (
        Example((TensorType((BATCH, 5)),), {"features": 4}),
        Example((image(2, 3, 4),), {"features": 6}, "image"),
        Example((TensorType((BATCH, 7, 5)),), {"features": 4, "flatten": False}, "sequence"),
        Example((image(2, 3, 4),), {"features": 6, "apply_bias": False, "flatten": False}, "last axis of an image"),
    )

    def _flat(self, x: TensorType) -> bool:
        return self.flatten and x.rank > 2

    def _fan_in(self, x: TensorType) -> int:
        return prod(x.dim(axis) for axis in range(1, x.rank)) if self.flatten else x.dim(-1)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        for axis in range(1, x.rank) if self.flatten else (x.rank - 1,):
            known(x, axis)
        return x.with_shape(x.shape[0], self.features) if self.flatten else x.with_dim(-1, self.features)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        x: TorchExpr = TorchInput(0)
        if self._flat(inputs[0]):
            x = TorchMethod("flatten", x, (1,))
        kwargs = {
            "in_features": self._fan_in(inputs[0]),
            "out_features": self.features,
            "bias": self.apply_bias,
        }
        return TorchModule("torch.nn.Linear", kwargs, (x,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        x: OnnxValue = OnnxInput(0)
        bias = (OnnxWeight("bias"),) if self.apply_bias else ()
        if self.flatten:
            if self._flat(inputs[0]):
                x = OnnxNode("Flatten", (x,), {"axis": 1})
            return OnnxNode("Gemm", (x, OnnxWeight("kernel"), *bias), {"transB": 1})
        product = OnnxNode("MatMul", (x, OnnxNode("Transpose", (OnnxWeight("kernel"),), {"perm": (1, 0)})))
        return OnnxNode("Add", (product, *bias)) if bias else product

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        fan_in = self._fan_in(inputs[0])
        kernel = Weight("kernel", (self.features, fan_in), "weight", fan_in=fan_in)
        return (kernel, Weight("bias", (self.features,), "bias", fan_in=fan_in)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        return 2 * outputs[0].elements() * self._fan_in(inputs[0])

    def summary(self) -> str:
        return str(self.features)
