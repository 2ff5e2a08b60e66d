"""The output of a network."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Output(
    op.Operator,
    type="output",
    title="Output",
    category=op.Category.INPUT_OUTPUT,
    role=op.Role.OUTPUT,
    synonyms=("result", "sink"),
):
    """An output of the network. The tensor passes through unchanged; the parameters control how it is displayed.

    The image view clips values to 0..1. A size of 0 means the full size.
    """

    analysis_view: str = op.param(
        default="image", choices=("image", "labels", "tensor"), doc="How the analysis view displays it."
    )
    width: int = op.param(default=0, min=0, max=1_000_000, unit="pixels", doc="Width of the displayed region; 0: all.")
    height: int = op.param(
        default=0, min=0, max=1_000_000, unit="pixels", doc="Height of the displayed region; 0: all."
    )
    channels: int = op.param(default=0, min=0, max=1_000_000, doc="Number of displayed channels; 0: all.")
    offset: op.Size3D = op.param(
        default=op.Size3D(0, 0, 0), min=0, max=1_000_000, doc="Start of the displayed region: x, y and channel."
    )
    label_path: str = op.param(
        default="",
        visible_when=("analysis_view", "labels"),
        doc="Text file with one label per line, for the labels view.",
    )
    examples = (
        op.Example((op.image(),)),
        op.Example((op.TensorType((2, 10)),), {"analysis_view": "labels"}, "class scores"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchInput(0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxNode:
        return op.OnnxNode("Identity")

    def summary(self) -> str:
        return "" if self.analysis_view == "image" else self.analysis_view
