"""What the canvas's gestures ask of the document, as functions from the graph to an edit, and why a link is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.ui.canvas import template_wishes
from app.ui.document.document import Document
from app.ui.document.template_view import PREFIX
from app.ui.widgets.texts import tr, trn
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, GRID, ActivationSpec, Frame, Layer, Source
from designer.graph.naming import unique_name
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER
from designer.graph.types import TensorType
from designer.operators.api import Operator, Port

Place = tuple[int, int]  # canvas units, on the grid


def on_grid(x: float, y: float) -> Place:
    """The nearest grid point."""
    return (round(x / GRID) * GRID, round(y / GRID) * GRID)


def new_layer(document: Document, type_name: str, place: Place) -> Layer | None:
    """A layer of an operator type, or of an activation's, with defaults and a free name; None when the type is unknown.

    `template:<name>` is an instance of that template of the document.
    """
    if type_name.startswith(PREFIX):
        template = type_name.removeprefix(PREFIX)
        known = template in document.graph.templates
        return template_wishes.instance(document.graph, template, place) if known else None
    cls = document.registry.get(type_name)
    attached: ActivationSpec | None = None
    if cls is None:
        activation = document.registry.activations.get(type_name)
        cls = document.registry.get("activation")
        if activation is None or cls is None:
            return None
        attached = ActivationSpec(type_name, activation().texts(all=False))
    elif cls.type == "activation" and "relu" in document.registry.activations:
        attached = ActivationSpec("relu", document.registry.activations["relu"]().texts(all=False))
    name = unique_name(type_name, document.graph.layers)
    texts = cls().texts(all=False)
    if cls.type in (INPUT, OUTPUT):
        return template_wishes.port(document.graph, cls.type, place, texts)
    if cls.type == INSTANCE and len(document.graph.templates) == 1:
        texts[PARAMETER] = next(iter(document.graph.templates))
    return Layer(name, cls.type, place, params=texts, activation=attached)


def is_variadic(document: Document, layer: str, index: int) -> bool:
    """Whether input `index` of a layer belongs to a port that takes any number of links."""
    port = declared_port(document, layer, index)
    return port is not None and port.variadic


def declared_port(document: Document, layer: str, index: int) -> Port | None:
    """The declaration of the port that input `index` belongs to; None for unknown operators and surplus inputs."""
    ports = _ports(document, layer)
    if index < len(ports):
        return ports[index]
    return ports[-1] if ports and ports[-1].variadic else None


def _ports(document: Document, layer: str) -> Sequence[Port]:
    operator = document.inference.read(layer).operator
    if isinstance(operator, Operator):
        return operator.input_ports()
    cls = document.registry.get(document.graph[layer].type)
    return cls.inputs if cls is not None else ()


def refusal(document: Document, source: Source, consumer: str, index: int, *, closes_loop: bool) -> str:
    """Why input `index` of `consumer` cannot read `source`; empty when it can. Shapes that do not fit are no refusal."""
    if closes_loop:
        return tr("the connection would close a loop")
    port = declared_port(document, consumer, index)
    if port is None:
        return tr("this layer takes no more inputs")
    state = document.inference.states.get(source.layer)
    if state is None or state.outputs is None:
        return ""
    operator = document.inference.read(source.layer).operator
    names = [p.name for p in operator.output_ports()] if operator is not None else []
    number = names.index(source.port) if source.port in names else 0
    tensor = state.outputs[min(number, len(state.outputs) - 1)]
    ranks = (port.rank,) if isinstance(port.rank, int) else port.rank
    if ranks is not None and tensor.rank not in ranks:
        return tr(
            "'{name}' needs rank {ranks}, not {tensor} (rank {rank})",
            name=port.name,
            ranks=tr(" or ").join(str(r) for r in ranks),
            tensor=tensor,
            rank=tensor.rank,
        )
    if port.dtypes and tensor.dtype not in port.dtypes:
        return tr(
            "'{name}' needs {types}, not {other}",
            name=port.name,
            types=tr(" or ").join(d.value for d in port.dtypes),
            other=tensor.dtype.value,
        )
    return ""


def disconnect(document: Document, consumer: str, index: int) -> Edit:
    """Remove a link; later links of a variadic port move up."""
    return commands.disconnect(document.graph, consumer, index, close_gap=is_variadic(document, consumer, index))


def move_link(document: Document, old: tuple[str, int], source: Source, consumer: str, index: int) -> Edit:
    """Let a link that ended at `old` (consumer, input index) now run from `source` to input `index` of `consumer`."""
    graph = document.graph
    if old == (consumer, index):
        return commands.connect(graph, source, consumer, index)
    connected = commands.connect(graph, source, consumer, index)
    if old[0] != consumer:
        return connected.then(disconnect(document, *old), tr("Move link to {consumer}", consumer=consumer))
    layer = connected.layers[consumer][1]
    assert layer is not None
    if is_variadic(document, *old):
        inputs = layer.inputs[: old[1]] + layer.inputs[old[1] + 1 :]
    else:
        inputs = layer.with_input(old[1], None).inputs
    return Edit(
        tr("Move link of {consumer}", consumer=consumer), {consumer: (graph[consumer], replace(layer, inputs=inputs))}
    )


def delete(document: Document, layers: Sequence[str], links: Sequence[tuple[str, int]], *, heal: bool = False) -> Edit:
    """Delete layers and links together. Links are (consumer, input index)."""
    edit = commands.remove_layers(document.graph, layers, heal=heal)
    gone = set(layers)
    by_consumer: dict[str, list[int]] = {}
    for consumer, index in links:
        if consumer not in gone:
            by_consumer.setdefault(consumer, []).append(index)
    for consumer, indices in by_consumer.items():
        for index in sorted(indices, reverse=True):
            before, layer = edit.layers.get(consumer, (document.graph[consumer], document.graph[consumer]))
            assert layer is not None
            cut = _without(layer, index, close_gap=is_variadic(document, consumer, index))
            edit = replace(edit, layers={**edit.layers, consumer: (before, cut)})
    if not layers:
        count = len(links)
        edit = replace(
            edit, title=tr("Delete link") if count == 1 else trn("Delete {count} link", "Delete {count} links", count)
        )
    return edit


def _without(layer: Layer, index: int, *, close_gap: bool) -> Layer:
    if not close_gap or index >= len(layer.inputs):
        return layer.with_input(index, None) if index < len(layer.inputs) else layer
    return replace(layer, inputs=layer.inputs[:index] + layer.inputs[index + 1 :])


def add_connected(graph: Graph, layer: Layer, source: Source | None, consumer: tuple[str, int] | None) -> Edit:
    """Add a layer that reads `source`, or that `consumer` (layer, input index) reads."""
    if source is not None:
        return commands.add_layer(graph, layer.with_input(0, source))
    edit = commands.add_layer(graph, layer)
    if consumer is None:
        return edit
    name, index = consumer
    reader = graph[name]
    wired = reader.with_input(index, Source(layer.name))
    return Edit(edit.title, {**edit.layers, name: (reader, wired)})


def bypass(document: Document, names: Sequence[str]) -> Edit:
    """Put an identity in the place of layers. Refuses those whose output has another shape than their first input."""
    edits: dict[str, tuple[Layer | None, Layer | None]] = {}
    for name in names:
        layer, state = document.graph[name], document.inference.states.get(name)
        source = layer.inputs[0] if layer.inputs else None
        before = document.inference.states.get(source.layer) if source is not None else None
        if layer.type == "identity" and layer.activation is None:
            continue
        if source is None or not before or not before.outputs or not state or not state.outputs:
            why, remedy = tr("its first input or its output has no known shape"), tr("connect it first")
        elif len(state.outputs) != 1 or _tensor(document, source) != state.outputs[0]:
            why, remedy = (
                tr("its output has another shape than its first input"),
                tr("delete it with Ctrl+Delete to heal its links"),
            )
        else:
            edits[name] = (layer, Layer(name, "identity", layer.position, (source,)))
            continue
        raise DiagnosticError(
            Diagnostic(
                "bypass", tr("'{name}' cannot be bypassed: {why}", name=name, why=why), layer=name, remedy=remedy
            )
        )
    return Edit(
        tr("Bypass {layer}", layer=next(iter(edits)))
        if len(edits) == 1
        else trn("Bypass {count} layer", "Bypass {count} layers", len(edits)),
        edits,
    )


def _tensor(document: Document, source: Source) -> TensorType | None:
    """What flows out of a port, where it is known."""
    state = document.inference.states.get(source.layer)
    operator = document.inference.read(source.layer).operator
    if state is None or not state.outputs or not isinstance(operator, Operator):
        return None
    names = [p.name for p in operator.output_ports()]
    number = names.index(source.port) if source.port in names else 0
    return state.outputs[number] if number < len(state.outputs) else None


def add_frame(graph: Graph, rect: tuple[int, int, int, int]) -> Edit:
    """A comment frame under a free id."""
    frame_id = unique_name("frame", graph.frames)
    return replace(
        commands.set_frame(graph, frame_id, Frame(frame_id, tr("Comment"), rect=rect)), title=tr("Add frame")
    )


def drag_frame(graph: Graph, frame_id: str, rect: tuple[int, int, int, int], places: Mapping[str, Place]) -> Edit:
    """Another place for a frame, and for the layers that go with it."""
    edit = commands.set_frame(graph, frame_id, replace(graph.frames[frame_id], rect=rect))
    old = graph.frames[frame_id].rect
    dx, dy = rect[0] - old[0], rect[1] - old[1]
    inside = {frame_id} if graph.frames[frame_id].collapsed else set()
    while more := {key for key, frame in graph.frames.items() if frame.folded in inside} - inside:
        inside |= more
    inner = {
        key: (graph.frames[key], replace(graph.frames[key], rect=(x + dx, y + dy, width, height)))
        for key in inside - {frame_id}
        for x, y, width, height in (graph.frames[key].rect,)
    }
    return replace(commands.move_layers(graph, places), title=tr("Move frame"), frames={**edit.frames, **inner})


def remove_frames(graph: Graph, ids: Sequence[str]) -> Edit:
    """Take frames away; the layers in them stay."""
    frames = {i: (graph.frames[i], None) for i in ids}
    held = {layer.name: layer for layer in graph if layer.folded in frames}
    shown = {
        name: (x, replace(x, attributes={k: v for k, v in x.attributes.items() if k != FOLDED}))
        for name, x in held.items()
    }
    return Edit(
        tr("Delete frame") if len(frames) == 1 else trn("Delete {count} frame", "Delete {count} frames", len(frames)),
        shown,
        frames=frames,
    )
