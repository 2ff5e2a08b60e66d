"""Elman RNN."""

from __future__ import annotations

from typing import Any

from designer.operators import api as op
from designer.operators.library.recurrent._recurrent import Recurrent


class Rnn(Recurrent, type="rnn", title="RNN", category=op.Category.RECURRENT, synonyms=("recurrent", "elman")):
    """A simple recurrent layer (Elman): h = tanh(W x + b + R h + c)."""

    module = "torch.nn.RNN"
    onnx_op = "RNN"

    nonlinearity: str = op.param(default="tanh", choices=("tanh", "relu"), doc="Activation function of each step.")
    examples = (
        *Recurrent.examples[:2],
        op.Example(
            (op.TensorType((op.BATCH, 4, 3)),),
            {"hidden": 2, "nonlinearity": "relu", "apply_bias": False, "bidirectional": True},
            "both ways",
        ),
    )

    def kwargs(self, x: op.TensorType) -> dict[str, Any]:
        made = super().kwargs(x)
        return {**made, "nonlinearity": self.nonlinearity} if self.nonlinearity != "tanh" else made

    def onnx_attributes(self) -> dict[str, Any]:
        return {"activations": ("Tanh" if self.nonlinearity == "tanh" else "Relu",) * (2 if self.bidirectional else 1)}
