"""Padding of any axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designer.operators import api as op
from designer.texts import tr


class PadTensor(
    op.Operator,
    type="pad_tensor",
    title="Pad axes",
    category=op.Category.SHAPE,
    synonyms=("pad", "border", "zero pad", "constant pad", "crop axes"),
):
    """Pad any axes with a constant. Negative amounts remove values instead."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS),)

    before: tuple[int, ...] = op.param(
        default=(0, 0, 1, 1), min=-65536, max=65536, doc="Values added at the start of each axis, outermost first."
    )
    after: tuple[int, ...] = op.param(
        default=(0, 0, 1, 1), min=-65536, max=65536, doc="Values added at the end of each axis."
    )
    value: float = op.param(default=0.0, doc="The constant.")
    examples = (
        op.Example((op.image(),)),
        op.Example((op.TensorType((op.BATCH, 3)),), {"before": (0, 1), "after": (0, 2), "value": 0.5}, "vector"),
        op.Example((op.image(),), {"before": (0, 0, 0, -2), "after": (0, 1, 2, 0)}, "negative amounts"),
    )

    def faults(self) -> Iterable[op.Fault]:
        if len(self.before) != len(self.after):
            yield op.Fault(
                "after",
                tr("before and after must have one number for each axis"),
                tr("enter one number for each axis, including the batch"),
            )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        if len(self.before) != x.rank:
            raise op.ShapeError(
                tr("{count} amounts do not fit {x} (rank {rank})", count=len(self.before), x=x, rank=x.rank),
                port="x",
                remedy=tr("enter one number for each axis"),
            )
        dims: list[op.Dim] = []
        for axis, (start, end) in enumerate(zip(self.before, self.after, strict=True)):
            size: op.Dim = x.shape[axis] if start == end == 0 else x.dim(axis) + start + end
            gone = max(0, -start) + max(0, -end)
            if isinstance(size, int) and start | end and (size < 1 or gone >= x.dim(axis)):
                raise op.ShapeError(
                    tr("nothing is left of axis {axis} of {x}", axis=axis, x=x), port="x", remedy=tr("remove less")
                )
            dims.append(size)
        return x.with_shape(*dims)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        flat = tuple(n for pair in zip(reversed(self.before), reversed(self.after), strict=True) for n in pair)
        return op.TorchCall("torch.nn.functional.pad", (op.TorchInput(0), flat), {"value": self.value})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axes = op.int64(*range(inputs[0].rank))  # listed for the same reason as in onnx_pad
        return op.OnnxNode("Pad", (op.OnnxInput(0), op.int64(*self.before, *self.after), op.scalar(self.value), axes))

    def summary(self) -> str:
        return f"{','.join(map(str, self.before))} · {','.join(map(str, self.after))}"
