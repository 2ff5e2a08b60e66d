"""Positional encoding."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import divisible, known
from designer.texts import tr


class PositionalEncoding(
    op.Operator,
    type="positional_encoding",
    title="Positional encoding",
    category=op.Category.ATTENTION,
    synonyms=("position embedding", "sinusoidal", "position"),
):
    """Add a vector for its position to each step of N x length x features: sinusoids of many wavelengths, or learned vectors."""

    inputs = (op.Port("x", rank=3, dtypes=op.FLOATS),)

    kind: str = op.param(default="sinusoidal", choices=("sinusoidal", "learned"), doc="Sinusoids, or learned vectors.")
    base: float = op.param(
        default=10000.0,
        min=2.0,
        max=1e9,
        visible_when=("kind", "sinusoidal"),
        doc="Ratio of the longest to the shortest wavelength.",
    )
    max_length: int = op.param(
        default=512, min=1, max=1_000_000, visible_when=("kind", "learned"), doc="Number of learned positions."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5, 6)),)),
        op.Example((op.TensorType((op.BATCH, 5, 3)),), {"kind": "learned", "max_length": 7}, "learned"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        length, features = known(inputs[0], 1), known(inputs[0], 2)
        if self.kind == "sinusoidal":
            divisible("features", features, 2, "halves for sine and cosine")
        elif length > self.max_length:
            raise op.ShapeError(
                tr(
                    "a sequence of {length} is longer than the {max_length} learned positions",
                    length=length,
                    max_length=self.max_length,
                ),
                port="x",
                remedy=tr("increase max_length"),
            )
        return inputs[0]

    def _speeds(self, features: int) -> tuple[float, ...]:
        """Angle between adjacent positions, for each pair of features."""
        return tuple(self.base ** (-pair / features) for pair in range(0, features, 2))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        features = inputs[0].dim(2)
        everything = slice(None)
        if self.kind == "learned":
            table = op.TorchParameter("table", (1, self.max_length, features))
            length = op.TorchMethod("size", op.TorchInput(0), (1,))
            return op.TorchCall("torch.add", (op.TorchInput(0), op.TorchCall("torch.narrow", (table, 1, 0, length))))
        # 0, 1, 2, ... of any length, on any device
        ones = op.TorchCall(
            "torch.ones_like", (op.TorchItem(op.TorchInput(0), (everything, everything, slice(None, 1))),)
        )
        places = op.TorchCall("torch.sub", (op.TorchMethod("cumsum", ones, (1,)), 1))
        speeds = op.TorchParameter(
            "speeds", (features // 2,), self._speeds(features), trainable=False, persistent=False
        )
        angles = op.TorchCall("torch.mul", (places, speeds))
        waves = op.TorchCall(
            "torch.stack", ((op.TorchMethod("sin", angles), op.TorchMethod("cos", angles)),), {"dim": -1}
        )
        return op.TorchCall("torch.add", (op.TorchInput(0), op.TorchMethod("flatten", waves, (2,))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        features = inputs[0].dim(2)
        length = op.OnnxNode("Shape", attributes={"start": 1, "end": 2})
        if self.kind == "learned":
            part = op.OnnxNode("Slice", (op.OnnxWeight("table"), op.int64(0), length, op.int64(1)))
            return op.OnnxNode("Add", (op.OnnxInput(0), part))
        numbers = op.OnnxNode(
            "Range", (op.OnnxConstant(0, "int64"), op.OnnxNode("Squeeze", (length,)), op.OnnxConstant(1, "int64"))
        )
        places = op.OnnxNode("Unsqueeze", (op.OnnxNode("Cast", (numbers,), {"to": 1}), op.int64(1)))
        angles = op.OnnxNode("Mul", (places, op.OnnxConstant(self._speeds(features))))
        waves = [op.OnnxNode("Unsqueeze", (op.OnnxNode(wave, (angles,)), op.int64(-1))) for wave in ("Sin", "Cos")]
        flat = op.OnnxNode("Reshape", (op.OnnxNode("Concat", tuple(waves), {"axis": -1}), op.int64(-1, features)))
        return op.OnnxNode("Add", (op.OnnxInput(0), flat))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        if self.kind == "sinusoidal":
            return ()
        return (op.Weight("table", (1, self.max_length, inputs[0].dim(2)), "table", init="zeros"),)

    def summary(self) -> str:
        return self.kind
