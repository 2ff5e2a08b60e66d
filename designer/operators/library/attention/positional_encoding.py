"""Where in a sequence a value stands."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    FLOATS,
    Category,
    Example,
    OnnxConstant,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchParameter,
    Weight,
    int64,
    param,
)
from designer.operators.shapes import divisible, known
from designer.texts import tr


class PositionalEncoding(
    Operator,
    type="positional_encoding",
    title="Positional encoding",
    category=Category.ATTENTION,
    synonyms=("position embedding", "sinusoidal", "position"),
):
    """Add to every step of N x length x features a vector that tells its place: waves of many lengths, or learned ones."""

    inputs = (Port("x", rank=3, dtypes=FLOATS),)

    kind: str = param(default="sinusoidal", choices=("sinusoidal", "learned"), doc="Waves, or learned vectors.")
    base: float = param(
        default=10000.0, min=2.0, max=1e9, visible_when=("kind", "sinusoidal"), doc="Ratio of longest to shortest wave."
    )
    max_length: int = param(
        default=512, min=1, max=1_000_000, visible_when=("kind", "learned"), doc="Number of places that are learned."
    )
    examples = (
        Example((TensorType((BATCH, 5, 6)),)),
        Example((TensorType((BATCH, 5, 3)),), {"kind": "learned", "max_length": 7}, "learned"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        length, features = known(inputs[0], 1), known(inputs[0], 2)
        if self.kind == "sinusoidal":
            divisible("features", features, 2, "halves for sine and cosine")
        elif length > self.max_length:
            raise ShapeError(
                tr(
                    "a sequence of {length} is longer than the {max_length} learned places",
                    length=length,
                    max_length=self.max_length,
                ),
                port="x",
                remedy=tr("raise max_length"),
            )
        return inputs[0]

    def _speeds(self, features: int) -> tuple[float, ...]:
        """Angle from one place to the next, for every pair of features."""
        return tuple(self.base ** (-pair / features) for pair in range(0, features, 2))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        features = inputs[0].dim(2)
        everything = slice(None)
        if self.kind == "learned":
            table = TorchParameter("table", (1, self.max_length, features))
            length = TorchMethod("size", TorchInput(0), (1,))
            return TorchCall("torch.add", (TorchInput(0), TorchCall("torch.narrow", (table, 1, 0, length))))
        # 0, 1, 2, ... of any length and on any device
        ones = TorchCall("torch.ones_like", (TorchItem(TorchInput(0), (everything, everything, slice(None, 1))),))
        places = TorchCall("torch.sub", (TorchMethod("cumsum", ones, (1,)), 1))
        speeds = TorchParameter("speeds", (features // 2,), self._speeds(features), trainable=False, persistent=False)
        angles = TorchCall("torch.mul", (places, speeds))
        waves = TorchCall("torch.stack", ((TorchMethod("sin", angles), TorchMethod("cos", angles)),), {"dim": -1})
        return TorchCall("torch.add", (TorchInput(0), TorchMethod("flatten", waves, (2,))))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        features = inputs[0].dim(2)
        length = OnnxNode("Shape", attributes={"start": 1, "end": 2})
        if self.kind == "learned":
            part = OnnxNode("Slice", (OnnxWeight("table"), int64(0), length, int64(1)))
            return OnnxNode("Add", (OnnxInput(0), part))
        numbers = OnnxNode(
            "Range", (OnnxConstant(0, "int64"), OnnxNode("Squeeze", (length,)), OnnxConstant(1, "int64"))
        )
        places = OnnxNode("Unsqueeze", (OnnxNode("Cast", (numbers,), {"to": 1}), int64(1)))
        angles = OnnxNode("Mul", (places, OnnxConstant(self._speeds(features))))
        waves = [OnnxNode("Unsqueeze", (OnnxNode(op, (angles,)), int64(-1))) for op in ("Sin", "Cos")]
        flat = OnnxNode("Reshape", (OnnxNode("Concat", tuple(waves), {"axis": -1}), int64(-1, features)))
        return OnnxNode("Add", (OnnxInput(0), flat))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        if self.kind == "sinusoidal":
            return ()
        return (Weight("table", (1, self.max_length, inputs[0].dim(2)), "table", init="zeros"),)

    def summary(self) -> str:
        return self.kind
