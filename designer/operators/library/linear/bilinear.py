"""Bilinear layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr


class Bilinear(
    op.Operator, type="bilinear", title="Bilinear", category=op.Category.LINEAR, synonyms=("bilinear form",)
):
    """Compute learned weighted sums of all products of a value of a and a value of b, along the last axis."""

    inputs = (op.Port("a", rank=(2, 3, 4), dtypes=op.FLOATS), op.Port("b", rank=(2, 3, 4), dtypes=op.FLOATS))
    exceptions: ClassVar[Mapping[str, str]] = {
        "flops": "torch's FLOP counter does not support its bilinear kernel; computed by hand in the tests"
    }

    features: int = op.param(default=32, min=1, max=65536, doc="Number of outputs.")
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 3)), op.TensorType((op.BATCH, 4))), {"features": 5}),
        op.Example(
            (op.TensorType((op.BATCH, 2, 3)), op.TensorType((op.BATCH, 2, 4))),
            {"features": 2, "apply_bias": False},
            "sequence",
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        a, b = inputs
        if a.shape[:-1] != b.shape[:-1]:
            raise op.ShapeError(
                tr("a of {a} and b of {b} must be equal except along the last axis", a=a, b=b),
                port="b",
                remedy=tr("make the other axes equal, for instance with Reshape or Permute"),
            )
        known(a, -1, "a")
        known(b, -1, "b")
        return a.with_dim(-1, self.features)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {
            "in1_features": inputs[0].dim(-1),
            "in2_features": inputs[1].dim(-1),
            "out_features": self.features,
            "bias": self.apply_bias,
        }
        return op.TorchModule("torch.nn.Bilinear", kwargs, (op.TorchInput(0), op.TorchInput(1)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        # No Einsum: engines disagree on it after some products.
        first, second = (kind.dim(-1) for kind in inputs)
        turned = op.OnnxNode("Transpose", (op.OnnxWeight("kernel"),), {"perm": (1, 0, 2)})
        matrix = op.OnnxNode("Reshape", (turned, op.int64(first, self.features * second)))
        front = (0,) * (inputs[0].rank - 1)
        rows = op.OnnxNode(
            "Reshape", (op.OnnxNode("MatMul", (op.OnnxInput(0), matrix)), op.int64(*front, self.features, second))
        )
        terms = op.OnnxNode("Mul", (rows, op.OnnxNode("Unsqueeze", (op.OnnxInput(1), op.int64(-2)))))
        product = op.OnnxNode("ReduceSum", (terms, op.int64(-1)), {"keepdims": 0})
        return op.OnnxNode("Add", (product, op.OnnxWeight("bias"))) if self.apply_bias else product

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        first = inputs[0].dim(-1)
        kernel = op.Weight("kernel", (self.features, first, inputs[1].dim(-1)), "weight", fan_in=first)
        return (kernel, op.Weight("bias", (self.features,), "bias", fan_in=first)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * outputs[0].elements() * inputs[0].dim(-1) * (inputs[1].dim(-1) + 1)

    def summary(self) -> str:
        return str(self.features)
