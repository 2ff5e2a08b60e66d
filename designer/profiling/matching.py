"""Matches the rows of a profile with the layers of a network, which may have changed since or be another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from designer.graph.inference import Inference
from designer.graph.types import TensorType
from designer.profiling.schema import OperatorProfile, ProfileRun


@dataclass(frozen=True)
class RowMatching:
    """`rows` by layer path; `others` are rows whose layers, types or shapes differ from those of the network."""

    rows: Mapping[str, OperatorProfile]
    others: tuple[OperatorProfile, ...]


def match_rows(run: ProfileRun, inference: Inference) -> RowMatching:
    """Match rows by layer and shape. `inference` is of the inlined network, at any image size.

    A row matches if all its layers exist with these types, and its first input and last output have the same number of axes and of
    channels: a profile at another image size is still of the same network.
    """
    rows: dict[str, OperatorProfile] = {}
    others = []
    for row in run.operators:
        if not row.layers:
            continue
        if _fits(row, inference):
            rows.update(dict.fromkeys(row.layers, row))
        else:
            others.append(row)
    return RowMatching(rows, tuple(others))


def _fits(row: OperatorProfile, inference: Inference) -> bool:
    graph = inference.graph
    if any(name not in graph for name in row.layers):
        return False
    types = {graph[name].type for name in row.layers}
    if row.type and not types <= set(row.type.split(" + ")):
        return False
    first, outputs = _first_input(row.layers, inference), inference.states[row.layers[-1]].outputs
    pairs = ((first, row.inputs), (outputs[0] if outputs else None, row.outputs))
    return all(kind is None or not known or _channels(str(kind)) == _channels(known[0]) for kind, known in pairs)


def _first_input(layers: Sequence[str], inference: Inference) -> TensorType | None:
    """The type of the first tensor that a row reads; None if it is not known."""
    state, source = inference.states[layers[0]], next(iter(inference.graph[layers[0]].inputs), None)
    return state.inputs[0] if state.inputs and source is not None and source.layer not in layers else None


def _channels(shape: str) -> tuple[int, str]:
    """Number of axes, and the size of axis 1, of a shape such as `N x 48 x 64 x 64`."""
    axes = shape.split(" x ")
    return len(axes), axes[1] if len(axes) > 1 else ""
