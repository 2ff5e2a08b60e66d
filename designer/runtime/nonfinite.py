"""NaN and infinite values: which layer produces them first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.operators.api import Role
from designer.runtime.api import Tensor
from designer.runtime.finite import NonFinite, nonfinite
from designer.runtime.layer_weights import weights_of
from designer.runtime.network import role_of, type_of
from designer.runtime.session import Session
from designer.texts import tr

TOGETHER = 1 << 28  # bytes of tensors that are checked in one run


@dataclass(frozen=True, slots=True)
class Trace:
    """The first layer, in execution order, that produces NaN or infinite values from finite ones; None if there is none.

    `checked` are the layers that were checked, `note` is the cause if it is known.
    """

    layer: str | None
    found: NonFinite | None
    checked: tuple[str, ...]
    note: str = ""


def trace_nonfinite(session: Session) -> Trace:
    """Check every tensor of the network in topological order, a few per run, until the first layer that produces them."""
    inference = session.inference
    needed = inference.graph.upstream(session.output_layers())
    order = [name for name in inference.graph.order()[0] if name in needed]
    checked: list[str] = []
    for group in _groups(session, order):
        values = _values(session, group)
        for layer in group:
            checked.append(layer)
            made = [found for source in inference.tensors(layer) if (found := nonfinite(values[source]))]
            if made:  # its inputs were checked before
                return Trace(layer, made[0], tuple(checked), _cause(session, layer))
    return Trace(None, None, tuple(checked))


def _groups(session: Session, order: list[str]) -> Iterator[list[str]]:
    group: list[str] = []
    room = TOGETHER
    for layer in order:
        size = sum(4 * prod(type_of(session.inference, s).concrete(1)) for s in session.inference.tensors(layer))
        if group and size > room:
            yield group
            group, room = [], TOGETHER
        group.append(layer)
        room -= size
    if group:
        yield group


def _values(session: Session, group: list[str]) -> dict[Source, Tensor]:
    inference = session.inference
    inputs = [layer for layer in group if role_of(inference, layer) is Role.INPUT]
    sources = [source for layer in group if layer not in inputs for source in inference.tensors(layer)]
    found: dict[Source, Tensor] = dict(session.run(sources).captures) if sources else {}
    return found | {Source(layer): session.fed_input(layer)[1] for layer in inputs}


def _cause(session: Session, layer: str) -> str:
    if role_of(session.inference, layer) is Role.INPUT:
        return tr("the input data already contains them")
    try:
        weights = weights_of(session, layer)
    except DiagnosticError:
        return ""
    names = [name for name, array in weights.items() if nonfinite(array)]
    return tr("not all of its weights are finite: {names}", names=", ".join(names)) if names else ""
