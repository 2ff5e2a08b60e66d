"""GRU."""

from __future__ import annotations

from typing import Any

from designer.operators import api as op
from designer.operators.library.recurrent._recurrent import Recurrent


class Gru(
    Recurrent, type="gru", title="GRU", category=op.Category.RECURRENT, synonyms=("gated recurrent unit", "recurrent")
):
    """A recurrent layer with reset and update gates (gated recurrent unit)."""

    module = "torch.nn.GRU"
    onnx_op = "GRU"
    gates = (1, 0, 2)  # torch: reset, update, new; ONNX: update, reset, new

    def onnx_attributes(self) -> dict[str, Any]:
        return {"linear_before_reset": 1}
