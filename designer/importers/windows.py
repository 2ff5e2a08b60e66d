"""Parameters of layers with windows: sizes of two or three axes, and borders."""

from __future__ import annotations

from collections.abc import Sequence

from designer.graph.types import Size2D, Size3D
from designer.operators.params import Value


def size(values: Sequence[int]) -> Size2D | Size3D | int:
    """The values of one to three axes, outermost first, as a parameter."""
    if len(values) == 1:
        return values[0]
    return Size2D(values[1], values[0]) if len(values) == 2 else Size3D(values[2], values[1], values[0])


def padding(
    pads: Sequence[tuple[int, int]], kernel: Sequence[int], dilations: Sequence[int]
) -> dict[str, Value] | None:
    """The padding parameters of a convolution, from (before, after) of each axis; None if they cannot express the borders."""
    if not any(map(any, pads)):
        return {"padding": "valid"}
    totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    if [(total // 2, total - total // 2) for total in totals] == list(pads):
        return {"padding": "same"}
    if all(before == after for before, after in pads):
        return {"padding": "tuple", "padding_tuple": size([before for before, _ in pads])}
    return None
