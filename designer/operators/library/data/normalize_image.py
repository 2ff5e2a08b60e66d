"""Image normalization."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class NormalizeImage(
    op.Operator,
    type="normalize_image",
    title="Normalize image",
    category=op.Category.DATA,
    synonyms=("standardize", "imagenet", "mean", "whiten", "preprocess"),
):
    """(x - mean) / deviation, with a number for each channel or a single one. The defaults are those of ImageNet."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    mean: tuple[float, ...] = op.param(default=(0.485, 0.456, 0.406), doc="Mean of each channel.")
    deviation: tuple[float, ...] = op.param(
        default=(0.229, 0.224, 0.225), min=1e-6, doc="Standard deviation of each channel."
    )
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.image(4, 4, 5),), {"mean": (0.5,), "deviation": (2.0,)}, "one number for all"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        channels = inputs[0].image().c
        for name, values in (("mean", self.mean), ("deviation", self.deviation)):
            if len(values) not in (1, channels):
                raise op.ShapeError(
                    tr(
                        "{count} numbers of {name} do not fit {channels} channels",
                        count=len(values),
                        name=name,
                        channels=channels,
                    ),
                    port="x",
                    remedy=tr("enter one number, or one for each channel"),
                )
        return inputs[0]

    def _columns(self) -> tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]:
        return tuple(tuple(((value,),) for value in values) for values in (self.mean, self.deviation))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        tensors = [
            op.TorchParameter(name, (len(values), 1, 1), values, trainable=False, persistent=False)
            for name, values in (("mean", self.mean), ("deviation", self.deviation))
        ]
        return op.TorchCall("torch.div", (op.TorchCall("torch.sub", (op.TorchInput(0), tensors[0])), tensors[1]))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        mean, deviation = (op.OnnxConstant(values) for values in self._columns())
        return op.OnnxNode("Div", (op.OnnxNode("Sub", (op.OnnxInput(0), mean)), deviation))
