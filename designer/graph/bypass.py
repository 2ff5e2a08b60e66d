"""Bypassed layers keep their links, parameters and weights but pass through the first input that fits their output."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, Layer
from designer.graph.template import INPUT, OUTPUT
from designer.texts import tr


def bypass(graph: Graph, inference: Inference, names: Sequence[str], *, ends: Collection[str] = ()) -> Edit:
    """Bypass layers, or end the bypass if all of them are bypassed.

    Raises DiagnosticError for a layer of `ends` (inputs and outputs of the network) and for a layer without an input of
    its output's type.
    """
    on = not all(graph[n].bypassed for n in names)
    for name in names if on else ():
        why, remedy = _refusal(inference, name, ends)
        if why:
            message = tr("'{name}' cannot be bypassed: {why}", name=name, why=why)
            raise DiagnosticError.of("bypass", message, layer=name, remedy=remedy)
    edits = {n: (graph[n], _bypassed(graph[n], on)) for n in names}
    what = names[0] if len(names) == 1 else f"{len(names)} layers"
    return Edit(tr("Bypass {what}", what=what) if on else tr("End bypass of {what}", what=what), edits)


def _bypassed(layer: Layer, on: bool) -> Layer:
    kept = {k: v for k, v in layer.attributes.items() if k != BYPASSED}
    return replace(layer, attributes={**kept, BYPASSED: "true"} if on else kept)


def _refusal(inference: Inference, name: str, ends: Collection[str]) -> tuple[str, str]:
    """Why a layer cannot be bypassed, and the remedy; both empty if it can."""
    if name in ends or inference.graph[name].type in (INPUT, OUTPUT):
        return tr("it is an input or output of the network"), tr("bypass a layer between inputs and outputs")
    state = inference.states[name]
    if state.outputs is None:
        return tr("its output shape is unknown"), tr("connect its inputs first")
    if len(state.outputs) != 1:
        return tr("it has {count} outputs", count=len(state.outputs)), tr("bypass the layers that read it")
    if inference.passed_input(name) is None:
        return tr("no input has its output shape"), tr("delete it with Ctrl+Delete, which reconnects its consumers")
    return "", ""
