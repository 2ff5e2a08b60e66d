"""What stands under a node: its shapes, or one of its figures."""

from __future__ import annotations

from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.operators.live_cost import layer_work
from designer.operators.registry import Read
from designer.texts import tr, trn
from designer.units import MODELLED_SIGN, binary, short_count, si

SHAPES, PARAMETERS, FLOPS, MEMORY = "shapes", "parameters", "flops", "memory"
FIGURES = (SHAPES, PARAMETERS, FLOPS, MEMORY)
NONE = "-"  # for a layer that is not known, or has none
_present = [SHAPES]  # on the program's canvases, as the user chose it


def shown() -> str:
    return _present[0]


def show(name: str) -> None:
    """Have this figure under the nodes from now on; they have to be looked at again."""
    _present[0] = name if name in FIGURES else SHAPES


def figure(layer: Layer, read: Read, state: LayerState, name: str) -> str:
    """The text of a figure of one layer; empty for its shapes, which are known anyway."""
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
    """All figures of one layer in a line; empty while they are unknown."""
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
