"""Padding to the sizes that a network accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designer.operators import api as op
from designer.texts import tr


class PadToValidSize(
    op.Operator,
    type="pad_to_valid_size",
    title="Pad to valid size",
    category=op.Category.SHAPE,
    synonyms=("align size", "reflect", "any size", "tiling", "pad to minimum"),
):
    """Pad on the right and bottom by reflection to the next size that is valid.

    A size is valid if it is `multiple` times a number plus `remainder`, and at least `minimum`. Images smaller than the padding
    are reflected more than once. `crop_padding` removes the padding from a result.
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    multiple: op.Size2D = op.param(
        default=op.Size2D(16, 16), min=1, max=4096, unit="pixels", doc="Width and height become a multiple of this."
    )
    remainder: op.Size2D = op.param(
        default=op.Size2D(0, 0), min=0, max=4095, unit="pixels", doc="Added to the multiple."
    )
    minimum: op.Size2D = op.param(
        default=op.Size2D(1, 1), min=1, max=65536, unit="pixels", doc="Smallest width and height."
    )
    examples = (
        op.Example((op.image(2, 5, 8),), {"multiple": op.Size2D(4, 4)}),
        op.Example((op.image(2, 2, 3),), {"multiple": op.Size2D(8, 9)}, "reflected several times"),
        op.Example((op.image(2, 1, 6),), {"multiple": op.Size2D(4, 4), "remainder": op.Size2D(1, 3)}, "a remainder"),
        op.Example((op.image(2, 5, 5),), {"multiple": op.Size2D(1, 2), "minimum": op.Size2D(7, 9)}, "a minimum"),
    )

    def faults(self) -> Iterable[op.Fault]:
        if self.remainder.width >= self.multiple.width or self.remainder.height >= self.multiple.height:
            yield op.Fault(
                "remainder",
                tr(
                    "the remainder {remainder} must be smaller than the multiple {multiple}",
                    remainder=self.remainder,
                    multiple=self.multiple,
                ),
                tr("reduce it"),
            )

    def _axes(self) -> Sequence[tuple[int, int, int, int]]:
        """(axis, multiple, remainder, minimum) of height and width."""
        numbers = zip(self.multiple.hw, self.remainder.hw, self.minimum.hw, strict=True)
        return [(axis, *values) for axis, values in zip((2, 3), numbers, strict=True) if values[0] > 1 or values[2] > 1]

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        padded = inputs[0]
        x = padded.image()
        for axis, multiple, remainder, minimum in self._axes():
            least = max((x.h, x.w)[axis - 2], minimum)
            padded = padded.with_dim(axis, least + (remainder - least) % multiple)
        return padded

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        x: op.TorchExpr = op.TorchInput(0)
        for axis, multiple, remainder, minimum in self._axes():
            size = op.TorchCall("torch.tensor", (op.TorchMethod("size", op.TorchInput(0), (axis,)),))
            least = op.TorchCall("torch.clamp", (size,), {"min": minimum})
            behind = op.TorchCall("torch.sub", (op.TorchCall("torch.tensor", (remainder,)), least))
            padded = op.TorchCall("torch.add", (least, op.TorchCall("torch.remainder", (behind, multiple))))
            ones = op.TorchMethod("new_ones", op.TorchInput(0), ((padded,),), {"dtype": op.TorchName("torch.int64")})
            places = op.TorchCall("torch.sub", (op.TorchMethod("cumsum", ones, (0,)), 1))
            last = op.TorchCall("torch.sub", (size, 1))
            period = op.TorchCall("torch.clamp", (op.TorchCall("torch.mul", (last, 2)),), {"min": 1})
            turned = op.TorchCall("torch.sub", (op.TorchCall("torch.remainder", (places, period)), last))
            index = op.TorchCall("torch.sub", (last, op.TorchCall("torch.abs", (turned,))))
            x = op.TorchCall("torch.index_select", (x, axis, index))
        return x

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x: op.OnnxValue = op.OnnxInput(0)
        for axis, multiple, remainder, minimum in self._axes():
            size = op.OnnxNode("Shape", (op.OnnxInput(0),), {"start": axis, "end": axis + 1})
            least = op.OnnxNode("Max", (size, op.int64(minimum)))
            missing = op.OnnxNode("Mod", (op.OnnxNode("Sub", (op.int64(remainder), least)), op.int64(multiple)))
            end = op.OnnxNode("Squeeze", (op.OnnxNode("Add", (least, missing)),))
            start = op.OnnxNode("Squeeze", (op.int64(0),))
            places = op.OnnxNode("Range", (start, end, op.OnnxNode("Squeeze", (op.int64(1),))))
            last = op.OnnxNode("Sub", (size, op.int64(1)))
            period = op.OnnxNode("Max", (op.OnnxNode("Mul", (last, op.int64(2))), op.int64(1)))
            turned = op.OnnxNode("Sub", (op.OnnxNode("Mod", (places, period)), last))
            # last - |turned|, without Abs: OpenVINO 2026 leaves negative integers as they are
            index = op.OnnxNode("Min", (op.OnnxNode("Sub", (last, turned)), op.OnnxNode("Add", (last, turned))))
            x = op.OnnxNode("Gather", (x, index), {"axis": axis})
        return x if isinstance(x, op.OnnxNode) else op.OnnxNode("Identity")

    def summary(self) -> str:
        parts = [f"multiple of {self.multiple}" if self.multiple != op.Size2D(1, 1) else ""]
        parts.append(f"≥ {self.minimum}" if self.minimum != op.Size2D(1, 1) else "")
        return " · ".join(part for part in parts if part)
