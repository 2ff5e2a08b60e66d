"""What the gestures about templates and folding ask of a document, as functions that give an edit or refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.ui.document.document import Document
from app.ui.widgets.texts import tr, trn
from designer.graph import commands, template_commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer
from designer.graph.naming import unique_name
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, Template
from designer.operators.api import Role


def make_template(document: Document, names: Sequence[str], name: str) -> Edit:
    """A template of these layers. Refuses those that belong to the whole network."""
    for layer in names:
        cls = document.registry.get(document.graph[layer].type)
        if cls is not None and cls.role in (Role.INPUT, Role.OUTPUT):
            raise DiagnosticError(
                Diagnostic(
                    "not-in-template",
                    tr("'{layer}' feeds or shows the whole network and cannot go into a template", layer=layer),
                    layer=layer,
                    remedy=tr("leave it out of the selection"),
                )
            )
    return template_commands.make_template(document.graph, names, name)


def dissolve(document: Document, names: Sequence[str]) -> Edit:
    """Copies of the layers of a template in the place of each instance."""
    if len(names) == 1:
        return template_commands.dissolve(document.graph, names[0])
    graph = document.graph.copy()
    total = Edit(trn("Dissolve {count} instance", "Dissolve {count} instances", len(names)))
    for name in names:
        edit = template_commands.dissolve(graph, name)
        graph.apply(edit)
        total = total.then(edit)
    return total


def instance(graph: Graph, template: str, place: tuple[int, int]) -> Layer:
    """A new instance of a template under a free name."""
    return Layer(unique_name(template[:120].rstrip(), graph.layers), INSTANCE, place, params={PARAMETER: template})


def port(graph: Graph, kind: str, place: tuple[int, int], texts: dict[str, str]) -> Layer:
    """A port behind those that the template has."""
    name = unique_name("in" if kind == INPUT else "out", graph.layers)
    last = max((_index(layer) for layer in graph if layer.type == kind), default=-1)
    return Layer(name, kind, place, params={**texts, "index": str(last + 1)})


def move_port(document: Document, name: str, step: int) -> Edit:
    """Another place of a port among the ports of its kind; instances stay connected by the names of ports."""
    graph = document.graph
    layer = graph[name]
    template = Template("", tuple(graph))
    ports = list(template.inputs if layer.type == INPUT else template.outputs)
    place = ports.index(name)
    goal = min(max(place + step, 0), len(ports) - 1)
    ports.insert(goal, ports.pop(place))
    texts = {port: {"index": str(number)} for number, port in enumerate(ports) if _index(graph[port]) != number}
    if goal == place or not texts:
        return Edit(tr("Move port"))
    title = tr("Move port {name} up", name=name) if step < 0 else tr("Move port {name} down", name=name)
    return replace(commands.set_params(graph, texts), title=title)


Members = Callable[[str], tuple[list[str], list[str]]]  # of a frame: the layers and the frames in it


def collapse(graph: Graph, names: Sequence[str], frames: Sequence[str], members: Members) -> Edit:
    """Fold layers and frames to their titles; where all are folded, open them."""
    fold = not (all(graph[n].collapsed for n in names) and all(graph.frames[f].collapsed for f in frames))
    edit = commands.collapse(graph, names, fold)
    changed: dict[str, tuple[Frame | None, Frame | None]] = {}
    layers = dict(edit.layers)
    for key in frames:
        if graph.frames[key].collapsed == fold:
            continue
        changed[key] = (graph.frames[key], replace(graph.frames[key], collapsed=fold))
        inside, others = members(key)
        into = key if fold else ""
        for name in inside:
            layer = layers.get(name, (None, graph[name]))[1]
            assert layer is not None
            kept = {k: v for k, v in layer.attributes.items() if k != FOLDED}
            layers[name] = (graph[name], replace(layer, attributes={**kept, FOLDED: into} if into else kept))
        for other in others:
            changed[other] = (
                graph.frames[other],
                replace(changed.get(other, (None, graph.frames[other]))[1] or graph.frames[other], folded=into),
            )
    edit = replace(edit, layers=layers)
    if not names and len(frames) == 1:
        edit = replace(edit, title=tr("Collapse frame") if fold else tr("Expand frame"))
    elif not names:
        count = len(frames)
        folded = trn("Collapse {count} frame", "Collapse {count} frames", count)
        edit = replace(edit, title=folded if fold else trn("Expand {count} frame", "Expand {count} frames", count))
    return replace(edit, frames=changed)


def is_port(layer: Layer) -> bool:
    return layer.type in (INPUT, OUTPUT)


def _index(layer: Layer) -> int:
    text = layer.params.get("index", "0").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
