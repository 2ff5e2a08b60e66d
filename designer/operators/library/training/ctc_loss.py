"""A sequence without knowing where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

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
    TorchItem,
    TorchMethod,
    TorchModule,
    param,
)
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
    """Minus the logarithm of the probability that the steps spell the target, wherever its symbols lie.

    x is N x steps x classes, scores before the softmax; the target is N x symbols, none of them the blank. Lengths that
    are not connected are the full ones.
    """

    inputs = (
        Port("x", rank=3, dtypes=FLOATS, doc="N x steps x classes, scores before the softmax."),
        Port("target", rank=2, dtypes=(DataType.INT64,), doc="N x symbols."),
        Port("steps", rank=1, dtypes=(DataType.INT64,), optional=True, doc="How many steps of each sample count."),
        Port("symbols", rank=1, dtypes=(DataType.INT64,), optional=True, doc="How many symbols each target has."),
    )
    exceptions: ClassVar[Mapping[str, str]] = {**LOSS_EXCEPTIONS, "meta": _META, "flops": _META, "random": _META}

    blank: int = param(default=0, min=0, max=1_000_000, doc="The class that stands for no symbol.")
    zero_infinity: bool = param(default=False, doc="Count targets that cannot be spelled as 0 rather than infinity.")
    examples = (
        Example((TensorType((BATCH, 9, 5)), TensorType((BATCH, 3), DataType.INT64)), {"blank": 4}),
        Example(
            (
                TensorType((BATCH, 9, 5)),
                TensorType((BATCH, 3), DataType.INT64),
                *(TensorType((BATCH,), DataType.INT64),) * 2,
            ),
            {"blank": 2, "reduction": "sum", "zero_infinity": True},
            "with lengths",
        ),
    )

    def check(self, inputs: Sequence[TensorType]) -> None:
        x, target = inputs[:2]
        steps, classes = known(x, 1), known(x, 2)
        if self.blank >= classes:
            raise ShapeError(
                tr("the blank {blank} is none of the {classes} classes", blank=self.blank, classes=classes),
                port="x",
                remedy=tr("choose a blank from 0 to the last class"),
            )
        if known(target, 1, "target") > steps:
            raise ShapeError(
                tr("{dim} symbols cannot be spelled in {steps} steps", dim=target.dim(1), steps=steps),
                port="target",
                remedy=tr("use a longer input or a shorter target"),
            )
        for port, other in zip(("target", "steps", "symbols"), inputs[1:], strict=False):
            if other.shape[0] != x.shape[0]:
                raise ShapeError(
                    tr("{port} {other} has another batch than x {x}", port=port, other=other, x=x),
                    port=port,
                    remedy=tr("connect layers of the same batch"),
                )

    def value(self, inputs: Sequence[TensorType]) -> TorchExpr:
        shares = TorchCall("torch.log_softmax", (TorchInput(0),), {"dim": 2})
        first = TorchItem(TorchInput(1), (slice(None), 0))
        lengths: list[TorchExpr] = [
            TorchInput(index)
            if len(inputs) > index
            else TorchCall("torch.full_like", (first, TorchMethod("size", TorchInput(whole), (1,))))
            for index, whole in ((2, 0), (3, 1))
        ]
        kwargs = {"blank": self.blank, "reduction": self.reduction, "zero_infinity": self.zero_infinity}
        arguments = (TorchMethod("transpose", shares, (0, 1)), TorchInput(1), *lengths)
        return TorchModule("torch.nn.CTCLoss", kwargs, arguments)
