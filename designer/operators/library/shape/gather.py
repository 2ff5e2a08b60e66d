"""Values picked by a tensor of places."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    DataType,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
    int64,
    param,
)
from designer.operators.shapes import axis_of
from designer.texts import tr


class Gather(
    Operator, type="gather", title="Gather", category=Category.SHAPE, synonyms=("take", "index select", "lookup")
):
    """Pick values along an axis by a tensor of places.

    "slices": a vector of places picks whole slices. "elements": every element of the places picks one value; the places
    have the shape of the result (torch's gather).
    """

    inputs = (Port("x"), Port("index", dtypes=(DataType.INT64,)))

    axis: int = param(default=1, min=-8, max=7, doc="The axis that is picked from.")
    mode: str = param(default="slices", choices=("slices", "elements"), doc="What one place picks.")
    examples = (
        Example((image(4), TensorType((3,), DataType.INT64))),
        Example(
            (TensorType((BATCH, 4, 5)), TensorType((BATCH, 2, 5), DataType.INT64)),
            {"mode": "elements"},
            "single values",
        ),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, index = inputs
        axis = axis_of(self.axis, x)
        if self.mode == "slices":
            if index.rank != 1:
                raise ShapeError(
                    tr("slices are picked by a vector of places, not {index}", index=index),
                    port="index",
                    remedy=tr("flatten the places, or choose another mode"),
                )
            return x.with_shape(*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
        if index.rank != x.rank:
            raise ShapeError(
                tr("the places {index} must have the rank of {x}", index=index, x=x),
                port="index",
                remedy=tr("put a Reshape or Unsqueeze before the places, or choose another mode"),
            )
        for place, (size, wanted) in enumerate(zip(x.shape, index.shape, strict=True)):
            small = isinstance(size, int) and isinstance(wanted, int) and wanted <= size
            if place != axis and size != wanted and not small:
                raise ShapeError(
                    tr("the places {index} reach beyond {x} in axis {place}", index=index, x=x, place=place),
                    port="index",
                    remedy=tr("use places of at most the size of the tensor"),
                )
        return x.with_shape(*index.shape)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        path = "torch.index_select" if self.mode == "slices" else "torch.gather"
        return TorchCall(path, (TorchInput(0), self.axis, TorchInput(1)))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        if self.mode == "slices":
            return OnnxNode("Gather", (OnnxInput(0), OnnxInput(1)), {"axis": self.axis})
        # ONNX wants equal dimensions beside the axis, torch takes the front part of larger ones
        axis = axis_of(self.axis, inputs[0])
        x: OnnxValue = OnnxInput(0)
        for place, (size, wanted) in enumerate(zip(inputs[0].shape, inputs[1].shape, strict=True)):
            if place != axis and size != wanted and isinstance(wanted, int):
                x = OnnxNode("Slice", (x, int64(0), int64(wanted), int64(place)))
        return OnnxNode("GatherElements", (x, OnnxInput(1)), {"axis": self.axis})

    def summary(self) -> str:
        return f"{self.mode} · axis {self.axis}"
