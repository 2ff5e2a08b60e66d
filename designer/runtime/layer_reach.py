"""The reach of the layers of a network: `reach.py` applied to a network with inferred shapes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import TensorType
from designer.operators.api import Operator, Role
from designer.operators.torch_data import TorchInput
from designer.runtime.network import activation_of, operator_of, role_of
from designer.runtime.reach import (
    CHANNELS,
    COLUMNS,
    ROWS,
    Positions,
    Reach,
    Size,
    UnknownReachError,
    back,
    obstacle,
    window,
)

ReadBox = dict[int, Positions]  # positions by axis; without CHANNELS, all channels


def reached(inference: Inference, of: Source, y: int, x: int) -> tuple[dict[Source, ReadBox], str]:
    """What the pixel (y, x) of `of` depends on: a box by tensor, and a layer that reads whole images, or "".

    Raises UnknownReachError with the name of the layer whose reach is unknown.
    """
    found: dict[Source, ReadBox] = {inference.tensor(of): {ROWS: np.array([y]), COLUMNS: np.array([x])}}
    whole = ""
    for name in reversed(inference.graph.order()[0]):
        if role_of(inference, name) is Role.INPUT:
            continue
        for index, source in enumerate(inference.tensors(name)):
            if source not in found:
                continue
            for port, box, reads_all in _layer_box(inference, name, index, found[source]):
                whole = name if reads_all else whole
                read = _read(inference, name, port)
                found[read] = _union(found[read], box) if read in found else box
    return found, whole


def _layer_box(inference: Inference, name: str, output: int, places: ReadBox) -> list[tuple[int, ReadBox, bool]]:
    """What one output of a layer reads: port, box, and whether it reads whole images."""
    parts = [layer_reach(inference, name, output, axis, places[axis]) for axis in (ROWS, COLUMNS)]
    if CHANNELS in places:
        with suppress(UnknownReachError):  # then all channels
            parts.append(layer_reach(inference, name, output, CHANNELS, places[CHANNELS]))
    found = []
    for port in set(parts[0].places) & set(parts[1].places):
        size = _size(inference.states[name].inputs[port])
        box: ReadBox = {axis: np.arange(size[axis]) for axis in (ROWS, COLUMNS)} if size is not None else {}
        box |= {part.axes[port]: part.places[port] for part in parts if port in part.places}
        found.append((port, box, any(part.whole for part in parts)))
    return found


def _union(one: ReadBox, other: ReadBox) -> ReadBox:
    return {axis: np.union1d(one[axis], other[axis]) for axis in one.keys() & other.keys()}


def layer_reach(inference: Inference, name: str, output: int, axis: int, places: Positions) -> Reach:
    """What one output of a layer reads of its inputs. Raises UnknownReachError with the name of the layer."""
    operator, state = operator_of(inference, name), inference.states[name]
    sizes = [_size(kind) for kind in state.inputs]
    if operator.role is Role.ANALYSIS:
        return _analysis(operator, name, axis, places, sizes)
    try:
        attached = activation_of(inference, name)
        whole = ""
        if attached is not None and output == 0 and state.before_activation is not None:
            types = (state.before_activation,)
            found = back(attached.torch(types), axis, places, [_size(types[0])])
            places, whole = found.places.get(0, places), found.whole
        made = operator.torch(state.inputs)
        root = made[output] if isinstance(made, tuple) else made
        found = back(root, axis, places, sizes)
    except (UnknownReachError, NotImplementedError):
        raise UnknownReachError(name) from None
    return replace(found, whole=whole) if whole else found


def piecewise(inference: Inference, name: str) -> str:
    """Why a layer cannot run on crops of an image although its reach is local; "" if it can."""
    made = operator_of(inference, name).torch(inference.states[name].inputs)
    return obstacle(made)


def _analysis(operator: Operator, name: str, axis: int, places: Positions, sizes: Sequence[Size | None]) -> Reach:
    reach = operator.reach()
    if reach is None:
        raise UnknownReachError(name)
    around = places if axis == CHANNELS else window(2 * reach + 1, 1, reach, 1).back(places)
    parts = [back(TorchInput(index), axis, around, sizes) for index, size in enumerate(sizes) if size is not None]
    return Reach(
        {index: part for found in parts for index, part in found.places.items()},
        {index: step for found in parts for index, step in found.steps.items()},
        axes={index: axis for found in parts for index in found.places},
    )


def _read(inference: Inference, name: str, port: int) -> Source:
    connected = [source for source in inference.graph[name].inputs if source is not None]
    return inference.tensor(connected[port])


def _size(kind: TensorType) -> Size | None:
    if kind.rank != 4:
        return None
    _, channels, rows, columns = kind.concrete(1)
    return rows, columns, channels
