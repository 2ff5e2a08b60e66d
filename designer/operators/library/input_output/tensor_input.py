"""An input of any shape and element type."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.units import dims_text


class TensorInput(
    op.Operator,
    type="tensor_input",
    title="Tensor input",
    category=op.Category.INPUT_OUTPUT,
    role=op.Role.INPUT,
    synonyms=("tokens", "sequence", "vector", "placeholder", "integer input", "label"),
):
    """A tensor of any shape and element type as input of the network, for instance token ids; fed from .npy files."""

    inputs = ()

    shape: tuple[int, ...] = op.param(
        default=(16,), min=1, max=1_000_000_000, doc="Shape without the batch, outermost dimension first."
    )
    batch: bool = op.param(default=True, doc="Put a batch of any size before the shape.")
    dtype: str = op.param(default="float32", choices=op.ARRAY_TYPES, doc="Element type.")
    examples = (
        op.Example((), {"shape": (5, 7)}),
        op.Example((), {"shape": (6,), "dtype": "int64"}, "token ids"),
        op.Example((), {"shape": (2, 3, 4), "batch": False}, "fixed shape"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        shape: tuple[op.Dim, ...] = (op.BATCH, *self.shape) if self.batch else self.shape
        return op.TensorType(shape, op.DataType(self.dtype))

    def summary(self) -> str:
        return dims_text(self.shape) if self.dtype == "float32" else f"{dims_text(self.shape)} {self.dtype}"
