"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.graph.model import Source
from designer.graph.types import Size2D
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.learned import window_pads
from designer.importers.onnx.nodes.table import converts
from designer.operators.params import Value

_KINDS = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}


@converts(*_KINDS)
def pooling(c: Conversion, op: OnnxOp) -> None:
    if len(op.outputs) > 1:
        raise UnsupportedError("the positions of its maxima are used")
    if op.attribute("storage_order", 0):
        raise UnsupportedError("it counts positions column by column")
    kernel = list(op.attribute("kernel_shape"))
    rank = len(kernel)
    strides = list(op.attribute("strides", [1] * rank))
    dilations = list(op.attribute("dilations", [1] * rank))
    pads = window_pads(c, op, kernel, strides, dilations)
    if rank == 1 and c.type_of(op.inputs[0]).rank == 3:
        (image,) = c.add("unsqueeze", [op.inputs[0]], {"axis": 2})
        made = _pool(c, op, image, [1, *kernel], [1, *strides], [1, *dilations], [(0, 0), *pads])
        (made,) = c.add("squeeze", [made], {"axes": (2,)})
        c.finish(made)
        return
    if rank != 2:
        raise UnsupportedError(f"it has {rank} spatial axes")
    c.finish(_pool(c, op, op.inputs[0], kernel, strides, dilations, pads))


def _pool(
    c: Conversion,
    op: OnnxOp,
    x: str | Source,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Source:
    kind = _KINDS[op.op_type]
    if kind != "max" and max(dilations) > 1:
        raise UnsupportedError("its window is dilated")
    even = all(before == after and 2 * before <= size for (before, after), size in zip(pads, kernel, strict=True))
    ceil = bool(op.attribute("ceil_mode", 0))
    if not even:
        if (kind == "average" and not op.attribute("count_include_pad", 0)) or ceil:
            raise UnsupportedError("its borders are uneven")
        before, after = zip(*pads, strict=True)
        value = -3.4028234663852886e38 if kind == "max" else 0.0
        border: dict[str, Value] = {"before": (0, 0, *before), "after": (0, 0, *after), "value": value}
        (x,) = c.add("pad_tensor", [x], border)
        pads = [(0, 0)] * len(pads)
    params: dict[str, Value] = {
        "operation": kind,
        "size": Size2D(kernel[1], kernel[0]),
        "stride": Size2D(strides[1], strides[0]),
        "padding": Size2D(pads[1][0], pads[0][0]),
        "ceil_mode": ceil,
    }
    if kind == "max":
        params["dilation"] = Size2D(dilations[1], dilations[0])
    elif kind == "average":
        params["count_include_pad"] = bool(op.attribute("count_include_pad", 0)) or not any(map(any, pads))
    else:
        params["norm"] = op.attribute("p", 2)
    return c.add("pooling", [x], params)[0]


@converts("GlobalAveragePool", "GlobalMaxPool")
def global_pooling(c: Conversion, op: OnnxOp) -> None:
    kind = "average" if op.op_type == "GlobalAveragePool" else "max"
    if c.type_of(op.inputs[0]).rank > 5:
        raise UnsupportedError("it has more than three spatial axes")
    c.one("global_pooling", op.inputs, {"operation": kind})


@converts("GlobalLpPool")
def global_lp_pooling(c: Conversion, op: OnnxOp) -> None:
    names = {1: "l1_norm", 2: "norm"}
    if op.attribute("p", 2) not in names:
        raise UnsupportedError("its exponent is neither 1 nor 2")
    rank = c.type_of(op.inputs[0]).rank
    c.one("reduce", op.inputs, {"operation": names[op.attribute("p", 2)], "axes": tuple(range(2, rank))})
