"""The text below a node: its shapes, or one of its metrics."""

from __future__ import annotations

from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.operators.live_cost import layer_work
from designer.operators.registry import Read
from designer.texts import tr, trn
from designer.units import MODELLED_SIGN, binary, short_count, si

SHAPES, PARAMETERS, FLOPS, MEMORY = "shapes", "parameters", "flops", "memory"
METRICS = (SHAPES, PARAMETERS, FLOPS, MEMORY)
NONE = "-"  # for an unknown layer, or one without a value
_current = [SHAPES]  # for all canvases of the program, as the user chose it


def shown() -> str:
    return _current[0]


def show(name: str) -> None:
    """Show this metric below the nodes from now on. The caller refreshes the nodes."""
    _current[0] = name if name in METRICS else SHAPES


def metric(layer: Layer, read: Read, state: LayerState, name: str) -> str:
    """The text of one metric of a layer; empty for its shapes, which the node has already."""
    if name == SHAPES:
        return ""
    work = layer_work(layer, read, state)
    if work is None:
        return NONE
    if name == PARAMETERS:
        return short_count(work.learned) if work.learned else NONE
    if name == FLOPS:
        return MODELLED_SIGN + si(work.flops, "FLOP") if work.flops else NONE
    return MODELLED_SIGN + binary(work.weights + work.outputs)


def summary(layer: Layer, read: Read, state: LayerState) -> str:
    """All metrics of a layer in one line; empty if they are unknown."""
    work = layer_work(layer, read, state)
    if work is None:
        return ""
    parts = (
        [trn("{number} parameter", "{number} parameters", work.learned, number=short_count(work.learned))]
        if work.learned
        else []
    )
    parts += [MODELLED_SIGN + si(work.flops, "FLOP")] if work.flops else []
    return ", ".join(
        [
            *parts,
            tr(
                "{memory} of weights and outputs",
                memory=MODELLED_SIGN + binary(work.weights + work.outputs),
            ),
        ]
    )
