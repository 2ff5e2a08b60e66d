"""CTC loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.library.training._loss import LOSS_EXCEPTIONS, Loss
from designer.operators.shapes import known
from designer.texts import tr

_META = "torch has no CTC on meta tensors; a worked example is in the tests"


class CtcLoss(
    Loss,
    type="ctc_loss",
    title="CTC loss",
    synonyms=("connectionist temporal classification", "speech", "handwriting", "ocr"),
):
    """Connectionist temporal classification: negative log-likelihood of the target sequence over all alignments.

    x is N x steps x classes, before the softmax; the target is N x symbols, without blanks. Lengths that
    are not connected default to the full lengths.
    """

    inputs = (
        op.Port("x", rank=3, dtypes=op.FLOATS, doc="N x steps x classes, logits."),
        op.Port("target", rank=2, dtypes=(op.DataType.INT64,), doc="N x symbols."),
        op.Port("steps", rank=1, dtypes=(op.DataType.INT64,), optional=True, doc="Number of steps of each sample."),
        op.Port("symbols", rank=1, dtypes=(op.DataType.INT64,), optional=True, doc="Number of symbols of each target."),
    )
    exceptions: ClassVar[Mapping[str, str]] = {**LOSS_EXCEPTIONS, "meta": _META, "flops": _META, "random": _META}

    blank: int = op.param(default=0, min=0, max=1_000_000, doc="Class of the blank symbol.")
    zero_infinity: bool = op.param(
        default=False, doc="Use a loss of 0 instead of infinity for targets that are too long."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 9, 5)), op.TensorType((op.BATCH, 3), op.DataType.INT64)), {"blank": 4}),
        op.Example(
            (
                op.TensorType((op.BATCH, 9, 5)),
                op.TensorType((op.BATCH, 3), op.DataType.INT64),
                *(op.TensorType((op.BATCH,), op.DataType.INT64),) * 2,
            ),
            {"blank": 2, "reduction": "sum", "zero_infinity": True},
            "with lengths",
        ),
    )

    def check(self, inputs: Sequence[op.TensorType]) -> None:
        x, target = inputs[:2]
        steps, classes = known(x, 1), known(x, 2)
        if self.blank >= classes:
            raise op.ShapeError(
                tr("the blank {blank} is not one of the {classes} classes", blank=self.blank, classes=classes),
                port="x",
                remedy=tr("choose a blank from 0 to the last class"),
            )
        if known(target, 1, "target") > steps:
            raise op.ShapeError(
                tr(
                    "a target of {dim} symbols requires at least as many steps, not {steps}",
                    dim=target.dim(1),
                    steps=steps,
                ),
                port="target",
                remedy=tr("use a longer input or a shorter target"),
            )
        for port, other in zip(("target", "steps", "symbols"), inputs[1:], strict=False):
            if other.shape[0] != x.shape[0]:
                raise op.ShapeError(
                    tr("{port} is {other} but must have the batch size of x, {x}", port=port, other=other, x=x),
                    port=port,
                    remedy=tr("connect layers with the same batch size"),
                )

    def value(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        shares = op.TorchCall("torch.log_softmax", (op.TorchInput(0),), {"dim": 2})
        first = op.TorchItem(op.TorchInput(1), (slice(None), 0))
        lengths: list[op.TorchExpr] = [
            op.TorchInput(index)
            if len(inputs) > index
            else op.TorchCall("torch.full_like", (first, op.TorchMethod("size", op.TorchInput(whole), (1,))))
            for index, whole in ((2, 0), (3, 1))
        ]
        kwargs = {"blank": self.blank, "reduction": self.reduction, "zero_infinity": self.zero_infinity}
        arguments = (op.TorchMethod("transpose", shares, (0, 1)), op.TorchInput(1), *lengths)
        return op.TorchModule("torch.nn.CTCLoss", kwargs, arguments)
