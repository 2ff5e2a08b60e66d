"""Comparison of two tensors in one image."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from designer.operators import api as op
from designer.texts import tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

SELECTIONS = (
    "v_split",
    "h_split",
    "checkerboard",
    "blend",
    "difference",
    "signed_difference",
    "amplified_difference",
    "flicker",
    "custom",
)
DIFFERENCES = ("signed_difference", "amplified_difference")
WITH_AMOUNT = ("v_split", "h_split", "blend", "custom")
FIRST_RECIPE = "a * (1 - alpha) + b * alpha"


class Mix(
    op.Operator,
    type="mix",
    title="Mix",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("compare", "split view", "blend", "before after", "difference"),
):
    """Compare two tensors of the same size in one image.

    V split shows a to the left and b to the right of a line at `amount` of the width, H split a above and b below;
    checkerboard alternates them in squares of `cell` pixels, blend is a * (1 - amount) + b * amount, difference is
    |a - b|, signed difference 0.5 + gain * (a - b) / 2, amplified difference gain * |a - b|. Flicker alternates a and b
    in the window, and shows a elsewhere. Custom evaluates the recipe, where `alpha` is the amount, and x and y range from 0
    at the left and top to 1 at the right and bottom.
    """

    inputs = (op.Port("a", dtypes=op.FLOATS), op.Port("b", dtypes=op.FLOATS))

    selection: str = op.param(default="v_split", choices=SELECTIONS, doc="How the tensors are combined.")
    amount: float = op.param(
        default=0.5, min=0.0, max=1.0, step=0.01, doc="Position of the line, or weight of b; `alpha` in recipes."
    )
    cell: int = op.param(
        default=32,
        min=1,
        max=4096,
        visible_when=("selection", "checkerboard"),
        extension=True,
        doc="Size of a square.",
    )
    gain: float = op.param(
        default=8.0, min=0.0, max=1e4, step=0.5, visible_when=("selection", DIFFERENCES), extension=True, doc="Factor."
    )
    rate: float = op.param(
        default=1.0,
        min=0.1,
        max=3.0,
        step=0.1,
        unit="1/s",
        visible_when=("selection", "flicker"),
        extension=True,
        doc="Changes per second of flicker; more than three flashes per second can trigger seizures.",
    )
    phase: bool = op.param(
        default=False,
        visible_when=("selection", "flicker"),
        extension=True,
        doc="Flicker shows b; toggled by the window.",
    )
    recipe: str = op.param(
        default=FIRST_RECIPE,
        visible_when=("selection", "custom"),
        doc="A formula over a, b, alpha, x and y, for instance where(x < alpha, a, abs(a - b)).",
    )
    examples = (
        op.Example((op.image(), op.image())),
        op.Example((op.image(), op.image()), {"selection": "h_split", "amount": 0.3}),
        op.Example((op.image(), op.image(1)), {"selection": "blend", "amount": 0.25}, "gray against color"),
        op.Example((op.image(), op.image()), {"selection": "difference"}),
        op.Example((op.image(), op.image()), {"selection": "checkerboard", "cell": 3}),
        op.Example((op.image(), op.image()), {"selection": "signed_difference"}),
        op.Example((op.image(), op.image()), {"selection": "amplified_difference", "gain": 2.0}),
        op.Example((op.image(), op.image()), {"selection": "flicker"}),
        op.Example((op.image(), op.image()), {"selection": "custom", "recipe": "alpha * (a - b)"}),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        from analysis_layers.recipe import NAMES, RecipeError, parse

        a, b = inputs
        same = a.rank == b.rank and a.shape[:1] == b.shape[:1] and a.shape[2:] == b.shape[2:]
        if not same or (a.rank > 1 and a.shape[1] != b.shape[1] and 1 not in (a.shape[1], b.shape[1])):
            raise op.ShapeError(
                tr("a of {a} and b of {b} must have the same size", a=a, b=b),
                port="b",
                remedy=tr("connect tensors of the same size; one channel is broadcast"),
            )
        if self.selection in ("v_split", "h_split", "checkerboard") and a.rank < 3:
            raise op.ShapeError(
                tr("{replace} requires height and width, not {a}", replace=self.selection.replace("_", " "), a=a),
                port="a",
                remedy=tr("choose blend"),
            )
        if self.selection == "custom":
            try:
                used = parse(self.recipe, NAMES).names
            except RecipeError as error:
                raise op.ShapeError(str(error), remedy=error.remedy) from None
            if a.rank < 3 and used & {"x", "y"}:
                raise op.ShapeError(
                    tr("x and y require height and width, not {a}", a=a), port="a", remedy=tr("use a, b and alpha")
                )
        return b if a.rank > 1 and a.shape[1] == 1 else a

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        from analysis_layers.recipe import NAMES, parse

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
        shape = np.broadcast_shapes(a.shape, b.shape)
        if self.selection == "flicker":
            return (np.ascontiguousarray(np.broadcast_to(b if self.phase else a, shape)),)
        if self.selection == "checkerboard":
            odd = (np.arange(shape[-2])[:, None] // self.cell + np.arange(shape[-1]) // self.cell) % 2
            return (np.where(odd, b, a).astype(np.float32, copy=False),)
        if self.selection in DIFFERENCES:
            error: Array = (a - b) * np.float32(self.gain)
            if self.selection == "signed_difference":
                return (error * np.float32(0.5) + np.float32(0.5),)
            return (np.abs(error),)
        recipe = parse(self.recipe, NAMES)
        places = {
            name: np.linspace(0, 1, shape[axis], dtype=np.float32).reshape(-1, *[1] * (-1 - axis))
            for name, axis in (("x", -1), ("y", -2))
            if name in recipe.names
        }
        result = recipe(a=a, b=b, alpha=self.amount, **places)
        return (np.ascontiguousarray(np.broadcast_to(result, shape)),)

    def reach(self) -> int:
        return 0

    def scaled_down(self, factor: int) -> dict[str, int]:
        return {"cell": max(1, self.cell // factor)} if self.selection == "checkerboard" else {}

    def options(self) -> tuple[op.Option, ...]:
        found = [op.Option("selection", "choice", "Mix Selection", choices=SELECTIONS)]
        if self.selection in WITH_AMOUNT:
            found.append(op.Option("amount", "float", "Mix Amount", min=0.0, max=1.0, step=0.01))
        if self.selection == "checkerboard":
            found.append(op.Option("cell", "int", "Square", min=1, max=256, step=1))
        if self.selection in DIFFERENCES:
            found.append(op.Option("gain", "float", "Gain", min=0.0, max=50.0, step=0.5))
        if self.selection == "flicker":
            found.append(op.Option("rate", "float", "Changes per second", min=0.1, max=3.0, step=0.1))
        if self.selection == "custom":
            found.append(op.Option("recipe", "text", "Mix Recipe"))
        return tuple(found)

    def summary(self) -> str:
        if self.selection == "custom":
            return self.recipe
        name = self.selection.replace("_", " ")
        return f"{name} {self.amount:g}" if self.selection in WITH_AMOUNT else name


def split(a: Array, b: Array, amount: float, axis: int) -> Array:
    """`a` where the position along `axis` is below amount x size, `b` otherwise."""
    import numpy as np

    shape = np.broadcast_shapes(a.shape, b.shape)
    line = min(shape[axis], ceil(amount * shape[axis]))
    result = np.array(np.broadcast_to(b, shape), np.float32)
    # views with the axis first; writing to them changes the result
    np.moveaxis(result, axis, 0)[:line] = np.moveaxis(np.broadcast_to(a, shape), axis, 0)[:line]
    return result
