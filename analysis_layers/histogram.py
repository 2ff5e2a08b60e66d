"""Histogram."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from designer.operators import api as op
from designer.texts import tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Histogram(
    op.Operator,
    type="histogram",
    title="Histogram",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("distribution", "bins", "range"),
):
    """Count the values in ranges of equal width. The tensor passes through unchanged.

    Values below and above are counted in the first and last range; NaN is not counted.
    """

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),)
    outputs = (op.Port("y"), op.Port("shares", doc="Fraction of the values in each range, N x 1 x 1 x ranges."))

    ranges: int = op.param(default=64, min=1, max=4096, doc="Number of ranges.")
    low: float = op.param(default=0.0, doc="Start of the first range.")
    high: float = op.param(default=1.0, doc="End of the last range.")
    examples = (
        op.Example((op.image(),)),
        op.Example((op.TensorType((op.BATCH, 5)),), {"ranges": 8, "low": -2.0, "high": 2.0}, "table"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        if self.low >= self.high:
            raise op.ShapeError(
                tr("the end of the ranges, {high:g}, must be above their start, {low:g}", high=self.high, low=self.low),
                remedy=tr("swap them"),
            )
        return (inputs[0], inputs[0].with_shape(inputs[0].shape[0], 1, 1, self.ranges))

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        x = inputs[0]
        shares = np.zeros((len(x), 1, 1, self.ranges), np.float32)
        for sample, values in enumerate(x.reshape(len(x), -1)):
            counted = values[~np.isnan(values)].astype(np.float64)
            places = np.floor((counted - self.low) * (self.ranges / (self.high - self.low)))
            counts = np.bincount(np.clip(places, 0, self.ranges - 1).astype(np.int64), minlength=self.ranges)
            shares[sample, 0, 0] = counts / max(1, counted.size)
        return (x, shares)

    def labels(self, port: str) -> Sequence[str]:
        if port != "shares" or self.low >= self.high:
            return ()
        step = (self.high - self.low) / self.ranges
        ends = [f"{self.low + step * place:.4g}" for place in range(self.ranges + 1)]
        return tuple(f"[{low}, {high})" for low, high in pairwise(ends))

    def options(self) -> tuple[op.Option, ...]:
        return (
            op.Option("ranges", "int", "Ranges", min=1, max=256, step=1),
            op.Option("low", "float", "From", step=0.1),
            op.Option("high", "float", "To", step=0.1),
        )

    def summary(self) -> str:
        return f"{self.ranges} · {self.low:g}..{self.high:g}"
