"""A learned product of two inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

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
    TorchInput,
    TorchModule,
    Weight,
    int64,
    param,
)
from designer.operators.shapes import known
from designer.texts import tr


class Bilinear(Operator, type="bilinear", title="Bilinear", category=Category.LINEAR, synonyms=("bilinear form",)):
    """Every output is a learned weighted sum of all products of a value of a and a value of b, along the last axis."""

    inputs = (Port("a", rank=(2, 3, 4), dtypes=FLOATS), Port("b", rank=(2, 3, 4), dtypes=FLOATS))
    exceptions: ClassVar[Mapping[str, str]] = {
        "flops": "torch's counter does not see its bilinear kernel; hand-computed in the tests"
    }

    features: int = param(default=32, min=1, max=65536, doc="Number of outputs.")
    apply_bias: bool = param(default=True, doc="Add a learned number to every output.")
    examples = (
        Example((TensorType((BATCH, 3)), TensorType((BATCH, 4))), {"features": 5}),
        Example(
            (TensorType((BATCH, 2, 3)), TensorType((BATCH, 2, 4))), {"features": 2, "apply_bias": False}, "sequence"
        ),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        if a.shape[:-1] != b.shape[:-1]:
            raise ShapeError(
                tr("a of {a} and b of {b} may differ in the last axis only", a=a, b=b),
                port="b",
                remedy=tr("make the other axes equal, for instance with Reshape or Permute"),
            )
        known(a, -1, "a")
        known(b, -1, "b")
        return a.with_dim(-1, self.features)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {
            "in1_features": inputs[0].dim(-1),
            "in2_features": inputs[1].dim(-1),
            "out_features": self.features,
            "bias": self.apply_bias,
        }
        return TorchModule("torch.nn.Bilinear", kwargs, (TorchInput(0), TorchInput(1)))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        # No Einsum: engines compute it differently behind some products.
        first, second = (kind.dim(-1) for kind in inputs)
        turned = OnnxNode("Transpose", (OnnxWeight("kernel"),), {"perm": (1, 0, 2)})
        matrix = OnnxNode("Reshape", (turned, int64(first, self.features * second)))
        front = (0,) * (inputs[0].rank - 1)
        rows = OnnxNode("Reshape", (OnnxNode("MatMul", (OnnxInput(0), matrix)), int64(*front, self.features, second)))
        terms = OnnxNode("Mul", (rows, OnnxNode("Unsqueeze", (OnnxInput(1), int64(-2)))))
        product = OnnxNode("ReduceSum", (terms, int64(-1)), {"keepdims": 0})
        return OnnxNode("Add", (product, OnnxWeight("bias"))) if self.apply_bias else product

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        first = inputs[0].dim(-1)
        kernel = Weight("kernel", (self.features, first, inputs[1].dim(-1)), "weight", fan_in=first)
        return (kernel, Weight("bias", (self.features,), "bias", fan_in=first)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        return 2 * outputs[0].elements() * inputs[0].dim(-1) * (inputs[1].dim(-1) + 1)

    def summary(self) -> str:
        return str(self.features)
