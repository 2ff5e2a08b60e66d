"""The part of an input that one pixel of a tensor depends on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import TensorType
from designer.operators.api import Operator, Role
from designer.operators.torch_data import TorchInput
from designer.runtime.network import activation_of, operator_of, role_of, tensor, tensors, type_of
from designer.runtime.reach import Found, Places, UnknownReachError, back, obstacle, window

if TYPE_CHECKING:
    from designer.runtime.session import Session

Box = tuple[int, int, int, int]  # left, top, right, bottom; the last two are the first pixels outside


@dataclass(frozen=True, slots=True)
class Receptive:
    """`source` is "computed" (from the operators) or "measured" (from the gradient at the present values)."""

    box: Box
    source: str
    note: str = ""


def receptive(session: Session, of: Source, y: int, x: int, layer: str) -> Receptive:
    """The box of pixels of what was fed to `layer` that the pixel (y, x) of `of` depends on, in any channel."""
    session.input_operator(layer)
    source = session.source(of)
    kind = type_of(session.inference, source)
    sizes = kind.concrete(1)
    if len(sizes) != 4 or not (0 <= y < sizes[2] and 0 <= x < sizes[3]):
        raise DiagnosticError(
            Diagnostic(
                "outside",
                f"'{of}' of {kind} has no pixel at x {x}, y {y}",
                layer=of.layer,
                remedy="choose a pixel of a tensor with height and width",
            )
        )
    height, width = session.fed(layer).extent
    try:
        rows, whole = reached(session.inference, source, 0, np.array([y]))
        columns, _ = reached(session.inference, source, 1, np.array([x]))
    except UnknownReachError as error:
        return _measured(session, of, y, x, layer, f"how far '{error}' reaches is not known")
    found = Source(layer)
    if found not in rows or found not in columns:
        return Receptive((0, 0, 0, 0), "computed", f"the pixel does not depend on '{layer}'")
    top, bottom, left, right = (int(n) for p in (rows[found], columns[found]) for n in (p[0], p[-1]))
    # What is behind the picture repeats its edge.
    box = (min(left, width - 1), min(top, height - 1), min(right + 1, width), min(bottom + 1, height))
    note = f"'{whole}' reads the whole picture" if whole else ""
    return Receptive(box, "computed", note)


def _measured(session: Session, of: Source, y: int, x: int, layer: str, why: str) -> Receptive:
    made = session.gradient(of, layer, (None, y, x)).array
    rows = np.flatnonzero((made != 0).any(axis=(0, 1, 3)))
    columns = np.flatnonzero((made != 0).any(axis=(0, 1, 2)))
    note = f"{why}; pixels that change nothing at the present values are not counted"
    if not rows.size:
        return Receptive((0, 0, 0, 0), "measured", note)
    return Receptive((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1), "measured", note)


def reached(
    inference: Inference, of: Source, axis: int, places: Places, ends: Collection[Source] = ()
) -> tuple[dict[Source, Places], str]:
    """What `places` of `of` depend on along an axis (0: rows): places by tensor, and a layer that reads whole pictures or "".

    Goes no farther than the tensors in `ends`. Raises UnknownReachError with the name of the layer of which it is not known.
    """
    found: dict[Source, Places] = {tensor(inference, of): places}
    whole = ""
    for name in reversed(inference.graph.order()[0]):
        if role_of(inference, name) is Role.INPUT:
            continue
        for index, source in enumerate(tensors(inference, name)):
            if source not in found or source in ends:
                continue
            reads = layer_reach(inference, name, index, axis, found[source])
            whole = name if reads.whole else whole
            for port, part in reads.places.items():
                read = _read(inference, name, port)
                found[read] = np.union1d(found[read], part) if read in found else part
    return found, whole


def layer_reach(inference: Inference, name: str, output: int, axis: int, places: Places) -> Found:
    """What one output of a layer reads of its inputs; UnknownReachError names the layer."""
    operator, state = operator_of(inference, name), inference.states[name]
    sizes = [_size(kind, axis) for kind in state.inputs]
    if operator.role is Role.ANALYSIS:
        return _analysis(operator, name, places, sizes)
    try:
        attached = activation_of(inference, name)
        whole = ""
        if attached is not None and output == 0 and state.before_activation is not None:
            types = (state.before_activation,)
            found = back(attached.torch(types), axis, places, [_size(types[0], axis)])
            places, whole = found.places.get(0, places), found.whole
        made = operator.torch(state.inputs)
        root = made[output] if isinstance(made, tuple) else made
        found = back(root, axis, places, sizes)
    except (UnknownReachError, NotImplementedError):
        raise UnknownReachError(name) from None
    return replace(found, whole=whole) if whole else found


def piecewise(inference: Inference, name: str) -> str:
    """Why a layer cannot be run on pieces of a picture although it only reads what is near; "" when it can."""
    made = operator_of(inference, name).torch(inference.states[name].inputs)
    return obstacle(made)


def _analysis(operator: Operator, name: str, places: Places, sizes: Sequence[int | None]) -> Found:
    reach = operator.reach()
    if reach is None:
        raise UnknownReachError(name)
    around = window(2 * reach + 1, 1, reach, 1).back(places)
    parts = [back(TorchInput(index), 0, around, sizes) for index, size in enumerate(sizes) if size is not None]
    return Found(
        {index: part for found in parts for index, part in found.places.items()},
        {index: step for found in parts for index, step in found.steps.items()},
    )


def _read(inference: Inference, name: str, port: int) -> Source:
    connected = [source for source in inference.graph[name].inputs if source is not None]
    return tensor(inference, connected[port])


def _size(kind: TensorType, axis: int) -> int | None:
    return kind.concrete(1)[2 + axis] if kind.rank == 4 else None
