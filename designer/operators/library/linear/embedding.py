"""Whole numbers become learned vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from designer.operators.api import (
    BATCH,
    INTEGERS,
    Category,
    DataType,
    Example,
    Fault,
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
    param,
)


class Embedding(
    Operator,
    type="embedding",
    title="Embedding",
    category=Category.LINEAR,
    synonyms=("lookup table", "token embedding", "vocabulary"),
):
    """Replace every whole number by a learned vector, which becomes a new last axis."""

    inputs = (Port("x", dtypes=INTEGERS),)

    vocabulary: int = param(default=256, min=2, max=10_000_000, doc="How many different numbers there are, from 0 on.")
    features: int = param(default=64, min=1, max=65536, doc="Length of the vectors.")
    padding_idx: int = param(
        default=-1,
        min=-1,
        max=9_999_999,
        extension=True,
        doc="The number that fills up short inputs: its vector starts as zeros and is not trained; -1: none.",
    )
    examples = (
        Example((TensorType((BATCH, 5), DataType.INT64),), {"vocabulary": 7, "features": 4}),
        Example((TensorType((BATCH,), DataType.INT32),), {"vocabulary": 2, "features": 3}, "one number"),
        Example(
            (TensorType((BATCH, 5), DataType.INT64),),
            {"vocabulary": 7, "features": 4, "padding_idx": 1},
            "filled up with ones",
        ),
    )

    def faults(self) -> Iterable[Fault]:
        if self.padding_idx >= self.vocabulary:
            yield Fault(
                "padding_idx",
                f"the padding {self.padding_idx} is none of the {self.vocabulary} numbers",
                f"choose a number from 0 to {self.vocabulary - 1}, or -1 for none",
            )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType((*inputs[0].shape, self.features))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs: dict[str, Any] = {"num_embeddings": self.vocabulary, "embedding_dim": self.features}
        if self.padding_idx >= 0:
            kwargs["padding_idx"] = self.padding_idx
        return TorchModule("torch.nn.Embedding", kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Gather", (OnnxWeight("table"), OnnxInput(0)))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        init = "normal" if self.padding_idx < 0 else f"normal_but:{self.padding_idx}"
        return (Weight("table", (self.vocabulary, self.features), "weight", init=init),)

    def summary(self) -> str:
        return f"{self.vocabulary} · {self.features}"
