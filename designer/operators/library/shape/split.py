"""Split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, divisible, known
from designer.texts import tr

MAX_PARTS = 64


class Split(
    op.Operator,
    type="split",
    title="Split",
    category=op.Category.SHAPE,
    synonyms=("chunk", "divide", "separate channels", "unpack"),
):
    """Split a tensor along an axis into equal parts or parts of given sizes."""

    outputs = (op.Port("y0"), op.Port("y1"))

    parts: int = op.param(default=2, min=1, max=MAX_PARTS, doc="Number of equal parts.")
    sizes: tuple[int, ...] = op.param(
        default=(),
        min=1,
        max=1_000_000,
        doc="Sizes of the parts, with the size of the axis as their sum; empty: equal parts.",
    )
    axis: int = op.param(default=1, min=-8, max=7, doc="Axis that is cut; 1 is the channels.")
    examples = (
        op.Example((op.image(6),)),
        op.Example((op.image(6),), {"sizes": (1, 3, 2)}, "own sizes"),
        op.Example((op.image(3, 4, 9),), {"axis": -1, "parts": 3}, "columns"),
    )

    def faults(self) -> Iterable[op.Fault]:
        if len(self.sizes) > MAX_PARTS:
            yield op.Fault(
                "sizes",
                tr("{count} parts are more than the limit of {MAX_PARTS}", count=len(self.sizes), MAX_PARTS=MAX_PARTS),
                tr("split in steps"),
            )

    def output_ports(self) -> tuple[op.Port, ...]:
        return tuple(op.Port(f"y{index}") for index in range(len(self.sizes) or self.parts))

    def _sizes(self, x: op.TensorType) -> tuple[int, ...]:
        axis = axis_of(self.axis, x)
        size = known(x, axis)
        if not self.sizes:
            divisible(f"values along axis {axis}", size, self.parts, "parts")
            return (size // self.parts,) * self.parts
        if sum(self.sizes) != size:
            shown = " + ".join(str(part) for part in self.sizes)
            raise op.ShapeError(
                tr(
                    "the parts {shown} do not add up to the size {size} of axis {axis}",
                    shown=shown,
                    size=size,
                    axis=axis,
                ),
                port="x",
                remedy=tr("change 'sizes' so that they add up"),
            )
        return self.sizes

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        axis = axis_of(self.axis, inputs[0])
        return tuple(inputs[0].with_dim(axis, size) for size in self._sizes(inputs[0]))

    def torch(self, inputs: Sequence[op.TensorType]) -> tuple[op.TorchExpr, ...]:
        cut: op.TorchExpr
        if self.sizes:
            cut = op.TorchCall("torch.split", (op.TorchInput(0), self.sizes), {"dim": self.axis})
        else:
            cut = op.TorchCall("torch.chunk", (op.TorchInput(0), self.parts), {"dim": self.axis})
        return tuple(op.TorchItem(cut, index) for index in range(len(self.output_ports())))

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        count = len(self._sizes(inputs[0]))
        if self.sizes:
            node = op.OnnxNode("Split", (op.OnnxInput(0), op.int64(*self.sizes)), {"axis": self.axis}, outputs=count)
        else:
            node = op.OnnxNode("Split", (op.OnnxInput(0),), {"axis": self.axis, "num_outputs": count}, outputs=count)
        return tuple(op.OnnxItem(node, index) for index in range(count))

    def summary(self) -> str:
        return f"{len(self.output_ports())} parts"
