"""The output of a network."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxNode,
    Operator,
    Role,
    Size3D,
    TensorType,
    TorchExpr,
    TorchInput,
    image,
    param,
)


class Output(
    Operator,
    type="output",
    title="Output",
    category=Category.INPUT_OUTPUT,
    role=Role.OUTPUT,
    synonyms=("result", "sink", "target"),
):
    """A result that the person sees. The tensor passes through unchanged; the parameters say how to show it.

    The image view shows values clipped to 0..1. A size of 0 means the full size.
    """

    analysis_view: str = param(default="image", choices=("image", "labels", "tensor"), doc="How the analysis shows it.")
    width: int = param(default=0, min=0, max=1_000_000, unit="pixels", doc="Width of the part shown; 0 shows all.")
    height: int = param(default=0, min=0, max=1_000_000, unit="pixels", doc="Height of the part shown; 0 shows all.")
    channels: int = param(default=0, min=0, max=1_000_000, doc="Number of channels shown; 0 shows all.")
    offset: Size3D = param(
        default=Size3D(0, 0, 0), min=0, max=1_000_000, doc="Where the part shown begins: x, y and channel."
    )
    label_path: str = param(
        default="",
        visible_when=("analysis_view", "labels"),
        doc="Text file with one label a line, for the labels view.",
    )
    examples = (
        Example((image(),)),
        Example((TensorType((2, 10)),), {"analysis_view": "labels"}, "class scores"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchInput(0)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxNode:
        return OnnxNode("Identity")

    def summary(self) -> str:
        return "" if self.analysis_view == "image" else self.analysis_view
