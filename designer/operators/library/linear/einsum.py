"""Einstein summation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

from designer.operators import api as op
from designer.texts import tr

_EQUATION = re.compile(r"[a-zA-Z]*(,[a-zA-Z]*)*->[a-zA-Z]*\Z")


class Einsum(
    op.Operator,
    type="einsum",
    title="Einstein sum",
    category=op.Category.LINEAR,
    synonyms=("einsum", "tensor contraction", "tensordot", "batched product"),
):
    """Multiply tensors and sum over the axes whose letters are not in the result: "bij,bjk->bik" is a matrix product."""

    equation: str = op.param(default="bij,bjk->bik", doc="Letters of the axes of each input, then of the result.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 3, 4)), op.TensorType((op.BATCH, 4, 5)))),
        op.Example((op.TensorType((op.BATCH, 3, 4)),), {"equation": "bij->bji"}, "transposed"),
        op.Example((op.image(2, 3, 4), op.TensorType((2, 5))), {"equation": "bchw,cd->bdhw"}, "over the channels"),
    )

    def _terms(self) -> list[str]:
        return self.equation.partition("->")[0].split(",")

    def input_ports(self) -> tuple[op.Port, ...]:
        return tuple(op.Port(f"x{n + 1}", dtypes=op.FLOATS) for n in range(min(64, len(self._terms()))))

    def faults(self) -> Iterable[op.Fault]:
        remedy = tr("enter the letters of the axes, as in bij,bjk->bik")
        left, _, right = self.equation.partition("->")
        if not _EQUATION.match(self.equation) or len(self._terms()) > 64:
            yield op.Fault("equation", tr("'{equation}' is not an equation", equation=self.equation[:80]), remedy)
        elif len(set(right)) != len(right) or not set(right) <= set(left):
            yield op.Fault(
                "equation", tr("the letters of the result must be different and occur in the inputs"), remedy
            )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        sizes: dict[str, op.Dim] = {}
        for port, term, kind in zip(self.input_ports(), self._terms(), inputs, strict=True):
            if kind.rank != len(term):
                raise op.ShapeError(
                    tr(
                        "'{term}' has {count} letters but {kind} has {rank} axes",
                        term=term,
                        count=len(term),
                        kind=kind,
                        rank=kind.rank,
                    ),
                    port=port.name,
                    remedy=tr("enter one letter for each axis"),
                )
            for letter, size in zip(term, kind.shape, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise op.ShapeError(
                        tr(
                            "the axis '{letter}' has the sizes {one} and {size}",
                            letter=letter,
                            one=sizes[letter],
                            size=size,
                        ),
                        port=port.name,
                        remedy=tr("use another letter, or make the sizes equal"),
                    )
        return inputs[0].with_shape(*(sizes[letter] for letter in self.equation.partition("->")[2]))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.einsum", (self.equation, *(op.TorchInput(i) for i in range(len(inputs)))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Einsum", tuple(op.OnnxInput(i) for i in range(len(inputs))), {"equation": self.equation})

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        """Pairs from left to right, each as one matrix product."""
        terms = self._terms()
        sizes = {
            k: n for term, kind in zip(terms, inputs, strict=True) for k, n in zip(term, kind.concrete(), strict=True)
        }
        total, present = 0, set(terms[0])
        for place, term in enumerate(terms[1:], 1):
            present |= set(term)
            total += 2 * prod(sizes[letter] for letter in present)
            present &= set("".join(terms[place + 1 :]) + self.equation.partition("->")[2])
        return total

    def summary(self) -> str:
        return self.equation[:40]
