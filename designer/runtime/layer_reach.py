"""What the layers of a network read of their inputs: `reach.py` applied to a network whose shapes were inferred."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import TensorType
from designer.operators.api import Operator, Role
from designer.operators.torch_data import TorchInput
from designer.runtime.network import activation_of, operator_of, role_of
from designer.runtime.reach import Found, Places, UnknownReachError, back, obstacle, window


def reached(
    inference: Inference, of: Source, axis: int, places: Places, ends: Collection[Source] = ()
) -> tuple[dict[Source, Places], str]:
    """What `places` of `of` depend on along an axis (0: rows): places by tensor, and a layer that reads whole pictures or "".

    Goes no farther than the tensors in `ends`. Raises UnknownReachError with the name of the layer of which it is not known.
    """
    found: dict[Source, Places] = {inference.tensor(of): places}
    whole = ""
    for name in reversed(inference.graph.order()[0]):
        if role_of(inference, name) is Role.INPUT:
            continue
        for index, source in enumerate(inference.tensors(name)):
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
    return inference.tensor(connected[port])


def _size(kind: TensorType, axis: int) -> int | None:
    return kind.concrete(1)[2 + axis] if kind.rank == 4 else None
