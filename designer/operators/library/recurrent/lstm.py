"""LSTM."""

from __future__ import annotations

from designer.operators import api as op
from designer.operators.library.recurrent._recurrent import Recurrent


class Lstm(
    Recurrent,
    type="lstm",
    title="LSTM",
    category=op.Category.RECURRENT,
    synonyms=("long short-term memory", "recurrent"),
):
    """A recurrent layer with a cell state and input, forget and output gates (long short-term memory)."""

    outputs = (
        op.Port("y", doc="Outputs of the last layer for all steps."),
        op.Port("hidden", doc="Hidden state after the last step."),
        op.Port("cell", doc="Cell state after the last step."),
    )
    module = "torch.nn.LSTM"
    onnx_op = "LSTM"
    gates = (0, 3, 1, 2)  # torch: input, forget, cell, output; ONNX: input, output, forget, cell
