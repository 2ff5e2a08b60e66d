"""Embedding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from designer.operators import api as op
from designer.texts import tr


class Embedding(
    op.Operator,
    type="embedding",
    title="Embedding",
    category=op.Category.LINEAR,
    synonyms=("lookup table", "token embedding", "vocabulary"),
):
    """Replace each integer by a learned vector, along a new last axis."""

    inputs = (op.Port("x", dtypes=op.INTEGERS),)

    vocabulary: int = op.param(default=256, min=2, max=10_000_000, doc="Number of different integers, starting at 0.")
    features: int = op.param(default=64, min=1, max=65536, doc="Size of the vectors.")
    padding_idx: int = op.param(
        default=-1,
        min=-1,
        max=9_999_999,
        extension=True,
        doc="Integer that pads short inputs: its vector is initialized with zeros and not trained; -1: none.",
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5), op.DataType.INT64),), {"vocabulary": 7, "features": 4}),
        op.Example((op.TensorType((op.BATCH,), op.DataType.INT32),), {"vocabulary": 2, "features": 3}, "one number"),
        op.Example(
            (op.TensorType((op.BATCH, 5), op.DataType.INT64),),
            {"vocabulary": 7, "features": 4, "padding_idx": 1},
            "filled up with ones",
        ),
    )

    def faults(self) -> Iterable[op.Fault]:
        if self.padding_idx >= self.vocabulary:
            yield op.Fault(
                "padding_idx",
                tr(
                    "the padding index {padding_idx} is not one of the {vocabulary} integers",
                    padding_idx=self.padding_idx,
                    vocabulary=self.vocabulary,
                ),
                tr("choose a number from 0 to {last}, or -1 for none", last=self.vocabulary - 1),
            )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return op.TensorType((*inputs[0].shape, self.features))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {"num_embeddings": self.vocabulary, "embedding_dim": self.features}
        if self.padding_idx >= 0:
            kwargs["padding_idx"] = self.padding_idx
        return op.TorchModule("torch.nn.Embedding", kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Gather", (op.OnnxWeight("table"), op.OnnxInput(0)))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        init = "normal" if self.padding_idx < 0 else f"normal_but:{self.padding_idx}"
        return (op.Weight("table", (self.vocabulary, self.features), "weight", init=init),)

    def summary(self) -> str:
        return f"{self.vocabulary} · {self.features}"
