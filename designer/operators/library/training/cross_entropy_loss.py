"""The right class."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    FLOATS,
    DataType,
    Example,
    Port,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchModule,
    TorchParameter,
    image,
    param,
)
from designer.operators.library.training._loss import Loss
from designer.operators.shapes import known
from designer.texts import tr


class CrossEntropyLoss(
    Loss,
    type="cross_entropy_loss",
    title="Cross-entropy loss",
    synonyms=("classification", "softmax loss", "nll", "segmentation"),
):
    """Minus the logarithm of the share that a softmax over the channels gives to the right class.

    x holds a score for every class along axis 1, the target the number of the right class for every place.
    """

    inputs = (
        Port("x", rank=(2, 3, 4, 5), dtypes=FLOATS, doc="A score for every class, along axis 1."),
        Port("target", rank=(1, 2, 3, 4), dtypes=(DataType.INT64,), doc="Numbers of classes, from 0 on."),
    )

    label_smoothing: float = param(
        default=0.0, min=0.0, max=1.0, step=0.05, doc="Share of the target that is spread over all classes."
    )
    ignore_index: int = param(default=-100, min=-1_000_000, max=1_000_000, doc="Places with this number do not count.")
    class_weights: tuple[float, ...] = param(
        default=(),
        min=0.0,
        max=1e6,
        extension=True,
        doc="How much each class counts, one number a class; the mean is weighted, too. Empty: all the same.",
    )
    examples = (
        Example((TensorType((BATCH, 5)), TensorType((BATCH,), DataType.INT64))),
        Example(
            (image(4, 3, 5), TensorType((BATCH, 3, 5), DataType.INT64)),
            {"label_smoothing": 0.1, "ignore_index": 1, "reduction": "sum"},
            "segmentation",
        ),
        Example(
            (TensorType((BATCH, 3)), TensorType((BATCH,), DataType.INT64)),
            {"class_weights": (0.5, 2.0, 1.0), "label_smoothing": 0.1},
            "weighted classes",
        ),
    )

    def check(self, inputs: Sequence[TensorType]) -> None:
        x, target = inputs
        classes = known(x, 1)
        if target.shape != (x.shape[0], *x.shape[2:]):
            raise ShapeError(
                tr("the target {target} does not fit scores of {x}: only axis 1 goes", target=target, x=x),
                port="target",
                remedy=tr("take the axis of the classes out of the target, for instance with Squeeze"),
            )
        if self.class_weights and len(self.class_weights) != classes:
            raise ShapeError(
                tr(
                    "{count} class weights do not fit {classes} classes", count=len(self.class_weights), classes=classes
                ),
                port="x",
                remedy=tr("give {classes} numbers, or none", classes=classes),
            )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs = {
            "reduction": self.reduction,
            "label_smoothing": self.label_smoothing,
            "ignore_index": self.ignore_index,
        }
        if self.class_weights:
            shape = (len(self.class_weights),)
            weights = TorchParameter("class_weights", shape, self.class_weights, trainable=False, persistent=False)
            arguments = (TorchInput(0), TorchInput(1))
            return TorchCall("torch.nn.functional.cross_entropy", arguments, {"weight": weights, **kwargs})
        return TorchModule("torch.nn.CrossEntropyLoss", kwargs, (TorchInput(0), TorchInput(1)))
