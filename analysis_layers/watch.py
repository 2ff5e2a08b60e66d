"""Checks of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.graph.diagnostics import DiagnosticError
from designer.operators import api as op
from designer.texts import tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Watch(
    op.Operator,
    type="watch",
    title="Watch",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("assert", "nan", "infinity", "overflow", "guard", "alarm"),
):
    """Stop the run if a value is NaN, infinite or out of bounds. Otherwise the tensor passes through unchanged."""

    inputs = (op.Port("x", dtypes=op.FLOATS),)

    finite: bool = op.param(default=True, doc="Stop at NaN and infinity.")
    bounds: bool = op.param(default=False, doc="Stop at values out of bounds.")
    low: float = op.param(default=-1e4, visible_when=("bounds", True), doc="Lower bound.")
    high: float = op.param(default=1e4, visible_when=("bounds", True), doc="Upper bound.")
    examples = (
        op.Example((op.image(),)),
        op.Example((op.image(),), {"bounds": True, "low": -50.0, "high": 50.0}, "bounds"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.bounds and self.low > self.high:
            raise op.ShapeError(
                tr("the lower bound {low:g} must not exceed the upper bound {high:g}", low=self.low, high=self.high),
                remedy=tr("swap them"),
            )
        return inputs[0]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        x = inputs[0]
        if self.finite and not np.isfinite(x).all():
            self._stop(x, ~np.isfinite(x), "is NaN or infinite")
        if self.bounds:
            with np.errstate(invalid="ignore"):
                outside = (x < self.low) | (x > self.high)
            if outside.any():
                self._stop(x, outside, f"is outside {self.low:g}..{self.high:g}")
        return (x,)

    def _stop(self, x: Array, bad: NDArray[np.bool_], what: str) -> None:
        import numpy as np

        place = tuple(int(index) for index in np.argwhere(bad)[0])
        many = int(bad.sum())
        others = f", and {many - 1} more" if many > 1 else ""
        raise DiagnosticError.of(
            "watch-stopped",
            tr(
                "the value {float:g} at {place} {what}{others}",
                float=float(x[place]),
                place=place,
                what=what,
                others=others,
            ),
            remedy=tr("check the layers before it, or change the bounds"),
        )

    def options(self) -> tuple[op.Option, ...]:
        return (
            op.Option("finite", "bool", "Stop at NaN and infinity"),
            op.Option("bounds", "bool", "Stop out of bounds"),
        )

    def summary(self) -> str:
        return f"{self.low:g}..{self.high:g}" if self.bounds else "finite"
