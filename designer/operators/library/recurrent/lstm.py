"""Long short-term memory."""

from __future__ import annotations

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    Port,
    TensorType,
)
from designer.operators.library.recurrent._recurrent import Recurrent


class Lstm(
    Recurrent, type="lstm", title="LSTM", category=Category.RECURRENT, synonyms=("long short-term memory", "recurrent")
):
    """A recurrent layer with a memory cell, which gates write, clear and read."""

    outputs = (
        Port("y", doc="Every step of the last layer."),
        Port("hidden", doc="The state after the last step."),
        Port("cell", doc="The memory after the last step."),
    )
    module = "torch.nn.LSTM"
    onnx_op = "LSTM"
    gates = (0, 3, 1, 2)  # torch: input, forget, cell, output; ONNX: input, output, forget, cell

    examples = (
        Example((TensorType((BATCH, 5, 3)),), {"hidden": 4}),
        Example(
            (TensorType((BATCH, 4, 3)),), {"hidden": 2, "layers": 2, "bidirectional": True, "dropout": 0.5}, "deep"
        ),
        Example((TensorType((BATCH, 4, 3)),), {"hidden": 2, "apply_bias": False, "bidirectional": True}, "both ways"),
    )
