"""Two tensors in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    Operator,
    Option,
    Port,
    Role,
    ShapeError,
    TensorType,
    image,
    param,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

SELECTIONS = ("v_split", "h_split", "blend", "difference", "custom")
FIRST_RECIPE = "a * (1 - alpha) + b * alpha"


class Mix(
    Operator,
    type="mix",
    title="Mix",
    category=Category.ANALYSIS,
    role=Role.ANALYSIS,
    synonyms=("compare", "split view", "blend", "before after", "difference"),
):
    """Compare two tensors of the same size in one picture.

    V split shows a at the left and b at the right of a line at `amount` of the width, H split a above and b below;
    blend is a * (1 - amount) + b * amount, difference is |a - b|, custom computes the recipe, where `alpha` is the amount.
    """

    inputs = (Port("a", dtypes=FLOATS), Port("b", dtypes=FLOATS))

    selection: str = param(default="v_split", choices=SELECTIONS, doc="How the two are put together.")
    amount: float = param(
        default=0.5, min=0.0, max=1.0, step=0.01, doc="Where the line is, or the share of b; `alpha` in recipes."
    )
    recipe: str = param(
        default=FIRST_RECIPE,
        visible_when=("selection", "custom"),
        doc="A formula over a, b and alpha, for instance alpha * (a - b).",
    )
    examples = (
        Example((image(), image())),
        Example((image(), image()), {"selection": "h_split", "amount": 0.3}),
        Example((image(), image(1)), {"selection": "blend", "amount": 0.25}, "gray against colour"),
        Example((image(), image()), {"selection": "difference"}),
        Example((image(), image()), {"selection": "custom", "recipe": "alpha * (a - b)"}),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        from analysis_layers.recipe import RecipeError, parse

        a, b = inputs
        same = a.rank == b.rank and a.shape[:1] == b.shape[:1] and a.shape[2:] == b.shape[2:]
        if not same or (a.rank > 1 and a.shape[1] != b.shape[1] and 1 not in (a.shape[1], b.shape[1])):
            raise ShapeError(
                f"a of {a} and b of {b} must have the same size",
                port="b",
                remedy="connect tensors of equal size; the channels may also be 1",
            )
        if self.selection in ("v_split", "h_split") and a.rank < 3:
            raise ShapeError(f"a split needs height and width, not {a}", port="a", remedy="choose blend")
        if self.selection == "custom":
            try:
                parse(self.recipe)
            except RecipeError as error:
                raise ShapeError(str(error), remedy=error.remedy) from None
        return b if a.rank > 1 and a.shape[1] == 1 else a

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        from analysis_layers.recipe import parse

        a, b = inputs
        if self.selection == "v_split":
            return (split(a, b, self.amount, axis=-1),)
        if self.selection == "h_split":
            return (split(a, b, self.amount, axis=-2),)
        alpha = np.float32(self.amount)
        if self.selection == "blend":
            return (a * (1 - alpha) + b * alpha,)
        if self.selection == "difference":
            return (np.abs(a - b),)
        result = parse(self.recipe)(a=a, b=b, alpha=self.amount)
        shape = np.broadcast_shapes(a.shape, b.shape)
        return (np.ascontiguousarray(np.broadcast_to(result, shape)),)

    def options(self) -> tuple[Option, ...]:
        chosen = (
            Option("selection", "choice", "Selection", choices=SELECTIONS),
            Option("amount", "float", "Amount", min=0.0, max=1.0, step=0.01),
        )
        return (*chosen, Option("recipe", "text", "Recipe")) if self.selection == "custom" else chosen

    def summary(self) -> str:
        return self.recipe if self.selection == "custom" else f"{self.selection.replace('_', ' ')} {self.amount:g}"


def split(a: Array, b: Array, amount: float, axis: int) -> Array:
    """`a` where the position along `axis` is below amount x size, `b` elsewhere."""
    import numpy as np

    shape = np.broadcast_shapes(a.shape, b.shape)
    line = min(shape[axis], ceil(amount * shape[axis]))
    result = np.array(np.broadcast_to(b, shape), np.float32)
    # views with the axis in front: writing to them writes to the result
    np.moveaxis(result, axis, 0)[:line] = np.moveaxis(np.broadcast_to(a, shape), axis, 0)[:line]
    return result
