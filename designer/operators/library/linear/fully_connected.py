"""Fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.shapes import known


class FullyConnected(
    op.Operator,
    type="fully_connected",
    title="Fully connected",
    category=op.Category.LINEAR,
    synonyms=("linear", "dense", "fc", "perceptron", "gemm"),
):
    """Compute learned weighted sums of all inputs.

    All axes after the batch are flattened first; without `flatten` only the last axis is transformed, as for sequences.
    """

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    features: int = op.param(default=64, min=1, max=1_000_000, doc="Number of outputs.")
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output.")
    flatten: bool = op.param(
        default=True, extension=True, doc="Use all values of a sample instead of those along the last axis."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5)),), {"features": 4}),
        op.Example((op.image(2, 3, 4),), {"features": 6}, "image"),
        op.Example((op.TensorType((op.BATCH, 7, 5)),), {"features": 4, "flatten": False}, "sequence"),
        op.Example(
            (op.image(2, 3, 4),), {"features": 6, "apply_bias": False, "flatten": False}, "last axis of an image"
        ),
    )

    def _flat(self, x: op.TensorType) -> bool:
        return self.flatten and x.rank > 2

    def _fan_in(self, x: op.TensorType) -> int:
        return prod(x.dim(axis) for axis in range(1, x.rank)) if self.flatten else x.dim(-1)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        for axis in range(1, x.rank) if self.flatten else (x.rank - 1,):
            known(x, axis)
        return x.with_shape(x.shape[0], self.features) if self.flatten else x.with_dim(-1, self.features)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        x: op.TorchExpr = op.TorchInput(0)
        if self._flat(inputs[0]):
            x = op.TorchMethod("flatten", x, (1,))
        kwargs = {
            "in_features": self._fan_in(inputs[0]),
            "out_features": self.features,
            "bias": self.apply_bias,
        }
        return op.TorchModule("torch.nn.Linear", kwargs, (x,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x: op.OnnxValue = op.OnnxInput(0)
        bias = (op.OnnxWeight("bias"),) if self.apply_bias else ()
        if self.flatten:
            if self._flat(inputs[0]):
                x = op.OnnxNode("Flatten", (x,), {"axis": 1})
            return op.OnnxNode("Gemm", (x, op.OnnxWeight("kernel"), *bias), {"transB": 1})
        product = op.OnnxNode("MatMul", (x, op.OnnxNode("Transpose", (op.OnnxWeight("kernel"),), {"perm": (1, 0)})))
        return op.OnnxNode("Add", (product, *bias)) if bias else product

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        fan_in = self._fan_in(inputs[0])
        kernel = op.Weight("kernel", (self.features, fan_in), "weight", fan_in=fan_in)
        return (kernel, op.Weight("bias", (self.features,), "bias", fan_in=fan_in)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * outputs[0].elements() * self._fan_in(inputs[0])

    def summary(self) -> str:
        return str(self.features)
