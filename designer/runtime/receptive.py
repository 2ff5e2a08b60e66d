"""Receptive fields: the part of an input that one pixel of a tensor depends on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.operators.api import Role
from designer.runtime.gradient import gradient
from designer.runtime.layer_reach import reached
from designer.runtime.network import operator_of, role_of, type_of
from designer.runtime.reach import COLUMNS, ROWS, UnknownReachError
from designer.runtime.session import Session
from designer.texts import tr

Box = tuple[int, int, int, int]  # left, top, right, bottom; the last two are exclusive


@dataclass(frozen=True, slots=True)
class Receptive:
    """`source` is "computed" (from the operators) or "measured" (from the gradient at the current values)."""

    box: Box
    source: Literal["computed", "measured"]
    note: str = ""


def receptive(session: Session, of: Source, y: int, x: int, layer: str) -> Receptive:
    """The box of pixels of the input `layer` that the pixel (y, x) of `of` depends on, in any channel."""
    session.input_operator(layer)
    source = session.source(of)
    kind = type_of(session.inference, source)
    sizes = kind.concrete(1)
    if len(sizes) != 4 or not (0 <= y < sizes[2] and 0 <= x < sizes[3]):
        raise DiagnosticError.of(
            "outside",
            tr("'{of}' of {kind} has no pixel at x {x}, y {y}", of=of, kind=kind, x=x, y=y),
            layer=of.layer,
            remedy=tr("choose a pixel of a tensor with height and width"),
        )
    height, width = session.fed(layer).extent
    try:
        boxes, whole = reached(session.inference, source, y, x)
    except UnknownReachError as error:
        return _measured(session, of, y, x, layer, f"the receptive field of '{error}' is unknown")
    found = Source(layer)
    if found not in boxes:
        return Receptive((0, 0, 0, 0), "computed", f"the pixel does not depend on '{layer}'")
    top, bottom, left, right = (int(n) for p in (boxes[found][ROWS], boxes[found][COLUMNS]) for n in (p[0], p[-1]))
    # Padding up to `tiling` repeats the edge of the image.
    box = (min(left, width - 1), min(top, height - 1), min(right + 1, width), min(bottom + 1, height))
    note = tr("'{whole}' reads the whole image", whole=whole) if whole else ""
    return Receptive(box, "computed", note)


def _measured(session: Session, of: Source, y: int, x: int, layer: str, why: str) -> Receptive:
    made = gradient(session, of, layer, (None, y, x)).array
    rows = np.flatnonzero((made != 0).any(axis=(0, 1, 3)))
    columns = np.flatnonzero((made != 0).any(axis=(0, 1, 2)))
    note = tr("{why}; pixels without influence at the current values are not counted", why=why)
    if not rows.size:
        return Receptive((0, 0, 0, 0), "measured", note)
    # The gradient passes through analysis layers pixel by pixel, whatever their reach.
    (above, aside), (height, width) = _around_analysis(session, of, layer), made.shape[2:]
    top, left = max(int(rows[0]) - above, 0), max(int(columns[0]) - aside, 0)
    bottom, right = min(int(rows[-1]) + 1 + above, height), min(int(columns[-1]) + 1 + aside, width)
    return Receptive((left, top, right, bottom), "measured", note)


def _around_analysis(session: Session, of: Source, layer: str) -> tuple[int, int]:
    """The total reach, in rows and columns of the input, of the analysis layers between it and `of`."""
    inference, (height, width) = session.inference, session.fed(layer).extent
    rows = columns = 0
    between = inference.graph.downstream([layer]) & inference.graph.upstream([session.source(of).layer])
    for name in between:
        if role_of(inference, name) is Role.ANALYSIS:
            reach, shape = operator_of(inference, name).reach(), type_of(inference, Source(name)).concrete(1)
            if reach is None or len(shape) != 4:
                return height, width
            rows, columns = rows + ceil(reach * height / shape[2]), columns + ceil(reach * width / shape[3])
    return rows, columns
