"""One tensor becomes several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designer.operators.api import (
    Category,
    Example,
    Fault,
    OnnxInput,
    OnnxItem,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    image,
    int64,
    param,
)
from designer.operators.shapes import axis_of, divisible, known
from designer.texts import tr

MAX_PARTS = 64


class Split(
    Operator,
    type="split",
    title="Split",
    category=Category.SHAPE,
    synonyms=("chunk", "divide", "separate channels", "unpack"),
):
    """Cut a tensor into parts along one axis: equal parts, or parts of the sizes that are given."""

    outputs = (Port("y0"), Port("y1"))

    parts: int = param(default=2, min=1, max=MAX_PARTS, doc="Number of equal parts.")
    sizes: tuple[int, ...] = param(
        default=(), min=1, max=1_000_000, doc="Sizes of the parts, which add up to the axis; empty: equal parts."
    )
    axis: int = param(default=1, min=-8, max=7, doc="The axis that is cut; 1 is the channels.")
    examples = (
        Example((image(6),)),
        Example((image(6),), {"sizes": (1, 3, 2)}, "own sizes"),
        Example((image(3, 4, 9),), {"axis": -1, "parts": 3}, "columns"),
    )

    def faults(self) -> Iterable[Fault]:
        if len(self.sizes) > MAX_PARTS:
            yield Fault("sizes", f"{len(self.sizes)} parts are too many, the limit is {MAX_PARTS}", "split in steps")

    def output_ports(self) -> tuple[Port, ...]:
        return tuple(Port(f"y{index}") for index in range(len(self.sizes) or self.parts))

    def _sizes(self, x: TensorType) -> tuple[int, ...]:
        axis = axis_of(self.axis, x)
        size = known(x, axis)
        if not self.sizes:
            divisible(f"places of axis {axis}", size, self.parts, "parts")
            return (size // self.parts,) * self.parts
        if sum(self.sizes) != size:
            shown = " + ".join(str(part) for part in self.sizes)
            raise ShapeError(
                tr(
                    "the parts {shown} do not add up to the {size} places of axis {axis}",
                    shown=shown,
                    size=size,
                    axis=axis,
                ),
                port="x",
                remedy=tr("change 'sizes' so that they add up"),
            )
        return self.sizes

    def infer(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        axis = axis_of(self.axis, inputs[0])
        return tuple(inputs[0].with_dim(axis, size) for size in self._sizes(inputs[0]))

    def torch(self, inputs: Sequence[TensorType]) -> tuple[TorchExpr, ...]:
        cut: TorchExpr
        if self.sizes:
            cut = TorchCall("torch.split", (TorchInput(0), self.sizes), {"dim": self.axis})
        else:
            cut = TorchCall("torch.chunk", (TorchInput(0), self.parts), {"dim": self.axis})
        return tuple(TorchItem(cut, index) for index in range(len(self.output_ports())))

    def onnx(self, inputs: Sequence[TensorType]) -> tuple[OnnxValue, ...]:
        count = len(self._sizes(inputs[0]))
        if self.sizes:
            node = OnnxNode("Split", (OnnxInput(0), int64(*self.sizes)), {"axis": self.axis}, outputs=count)
        else:
            node = OnnxNode("Split", (OnnxInput(0),), {"axis": self.axis, "num_outputs": count}, outputs=count)
        return tuple(OnnxItem(node, index) for index in range(count))

    def summary(self) -> str:
        return f"{len(self.output_ports())} parts"
