"""Cross-entropy loss."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.training._loss import Loss
from designer.operators.shapes import known
from designer.texts import tr


class CrossEntropyLoss(
    Loss,
    type="cross_entropy_loss",
    title="Cross-entropy loss",
    synonyms=("classification", "softmax loss", "nll", "segmentation"),
):
    """Negative log-likelihood of the target class under a softmax over the channels.

    x has the logits of the classes along axis 1; the target has the class index of each position.
    """

    inputs = (
        op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS, doc="Logits of the classes, along axis 1."),
        op.Port("target", rank=(1, 2, 3, 4), dtypes=(op.DataType.INT64,), doc="Class indices, starting at 0."),
    )

    label_smoothing: float = op.param(
        default=0.0,
        min=0.0,
        max=1.0,
        step=0.05,
        doc="Label smoothing: part of the target that is distributed over all classes.",
    )
    ignore_index: int = op.param(default=-100, min=-1_000_000, max=1_000_000, doc="Target index that is ignored.")
    class_weights: tuple[float, ...] = op.param(
        default=(),
        min=0.0,
        max=1e6,
        extension=True,
        doc="Weight of each class; the mean is weighted too. Empty: equal weights.",
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5)), op.TensorType((op.BATCH,), op.DataType.INT64))),
        op.Example(
            (op.image(4, 3, 5), op.TensorType((op.BATCH, 3, 5), op.DataType.INT64)),
            {"label_smoothing": 0.1, "ignore_index": 1, "reduction": "sum"},
            "segmentation",
        ),
        op.Example(
            (op.TensorType((op.BATCH, 3)), op.TensorType((op.BATCH,), op.DataType.INT64)),
            {"class_weights": (0.5, 2.0, 1.0), "label_smoothing": 0.1},
            "weighted classes",
        ),
    )

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        x, target = inputs
        classes = known(x, 1)
        if target.shape != (x.shape[0], *x.shape[2:]):
            raise op.ShapeError(
                tr("the target {target} must have the shape of x, {x}, without axis 1", target=target, x=x),
                port="target",
                remedy=tr("remove the class axis of the target, for instance with Squeeze"),
            )
        if self.class_weights and len(self.class_weights) != classes:
            raise op.ShapeError(
                tr(
                    "{count} class weights do not fit {classes} classes", count=len(self.class_weights), classes=classes
                ),
                port="x",
                remedy=tr("enter {classes} numbers, or none", classes=classes),
            )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {
            "reduction": self.reduction,
            "label_smoothing": self.label_smoothing,
            "ignore_index": self.ignore_index,
        }
        if self.class_weights:
            shape = (len(self.class_weights),)
            weights = op.TorchParameter("class_weights", shape, self.class_weights, trainable=False, persistent=False)
            arguments = (op.TorchInput(0), op.TorchInput(1))
            return op.TorchCall("torch.nn.functional.cross_entropy", arguments, {"weight": weights, **kwargs})
        return op.TorchModule("torch.nn.CrossEntropyLoss", kwargs, (op.TorchInput(0), op.TorchInput(1)))
