"""Edits of layers, links and parameters. Each function returns an `Edit` and leaves the graph unchanged.

A request that breaks a rule raises DiagnosticError, which names the rule and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from designer.graph import routes
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import (
    COLLAPSED,
    MAX_NAME,
    ROUTES,
    ActivationSpec,
    Layer,
    Source,
    check_layer_name,
    unwritable,
)
from designer.graph.template import Template
from designer.texts import tr, trn

MAX_INPUTS = 1024  # of one layer; only variadic ports come close
Layers = dict[str, tuple[Layer | None, Layer | None]]
Key = tuple[str, int]  # a link: the consumer and the index of its input


def add_layer(graph: Graph, layer: Layer) -> Edit:
    """Add `layer`. Its name must be legal and unused."""
    _check_free(graph, layer.name)
    _check_texts(layer)
    return Edit(tr("Add {name}", name=layer.name), {layer.name: (None, layer)})


def remove_layers(graph: Graph, names: Iterable[str], *, heal: bool = False) -> Edit:
    """Remove layers and their links. `heal` reconnects each consumer to the source of the removed layer's first input."""
    gone = [n for n in dict.fromkeys(names) if n in graph]
    removed = set(gone)
    edits: Layers = {n: (graph[n], None) for n in gone}
    for name in gone:
        for consumer in graph.consumers(name):
            if consumer in edits:
                continue
            layer = graph[consumer]
            inputs = tuple(_healed(graph, s, removed) if heal else _kept(s, removed) for s in layer.inputs)
            edits[consumer] = (layer, routes.rewired(layer, _trim(inputs)))
    return Edit(
        tr("Delete {gone}", gone=gone[0]) if len(gone) == 1 else tr("Delete {count} layers", count=len(gone)), edits
    )


def delete(
    graph: Graph,
    layers: Sequence[str],
    links: Sequence[Key],
    *,
    variadic: Callable[[str, int], bool],
    heal: bool = False,
) -> Edit:
    """Delete layers and links together. At `variadic` inputs the later links move up."""
    edit = remove_layers(graph, layers, heal=heal)
    gone = set(layers)
    edits = dict(edit.layers)
    for consumer, index in sorted(links, reverse=True):
        if consumer not in gone:
            before, layer = edits.get(consumer, (graph[consumer], graph[consumer]))
            assert layer is not None
            edits[consumer] = (before, _without_input(layer, index, close_gap=variadic(consumer, index)))
    title = edit.title if layers else trn("Delete link", "Delete {count} links", len(links))
    return replace(edit, title=title, layers=edits)


def connect(graph: Graph, source: Source, consumer: str, index: int) -> Edit:
    """Connect `source` to input `index` of `consumer`, replacing its link. Raises DiagnosticError for a cycle."""
    _check_exists(graph, source.layer)
    layer = _check_exists(graph, consumer)
    if not 0 <= index < MAX_INPUTS:
        raise DiagnosticError.of(
            "no-such-port",
            tr("'{consumer}' has no input {index}", consumer=consumer, index=index),
            layer=consumer,
            remedy=tr("use an input from 0 to {MAX_INPUTS}", MAX_INPUTS=MAX_INPUTS - 1),
        )
    if graph.reaches(consumer, source.layer):
        raise DiagnosticError.of(
            "cycle",
            tr("connecting '{layer}' to '{consumer}' would create a loop", layer=source.layer, consumer=consumer),
            layer=consumer,
            remedy=tr("a network must not contain loops; connect to a layer that does not feed the producer"),
        )
    return Edit(
        tr("Connect {source} to {consumer}", source=source, consumer=consumer),
        {consumer: (layer, _with_input(layer, index, source))},
    )


def disconnect(graph: Graph, consumer: str, index: int, *, close_gap: bool = False) -> Edit:
    """Remove the link at input `index`; with `close_gap` (variadic ports) later inputs move up."""
    layer = _check_exists(graph, consumer)
    if not 0 <= index < len(layer.inputs):
        return Edit(tr("Disconnect"))
    return Edit(
        tr("Disconnect {consumer}", consumer=consumer),
        {consumer: (layer, _without_input(layer, index, close_gap=close_gap))},
    )


def _without_input(layer: Layer, index: int, *, close_gap: bool) -> Layer:
    if index >= len(layer.inputs):
        return layer
    if not close_gap:
        return _with_input(layer, index, None)
    origins = [i for i in range(len(layer.inputs)) if i != index]
    return routes.rewired(layer, _trim(tuple(layer.inputs[i] for i in origins)), origins)


def _with_input(layer: Layer, index: int, source: Source | None) -> Layer:
    """`Layer.with_input`; waypoints of its other links stay with them."""
    inputs = layer.with_input(index, source).inputs
    if index < len(layer.inputs) and source == layer.inputs[index]:
        return routes.rewired(layer, inputs)
    return routes.rewired(layer, inputs, [i if i != index else None for i in range(len(inputs))])


def move_link(graph: Graph, old: Key, source: Source, consumer: str, index: int, *, close_gap: bool = False) -> Edit:
    """Move the link that ends at `old`: it runs from `source` to input `index` of `consumer`.

    With `close_gap` (variadic ports) the links after `old` move up.
    """
    connected = connect(graph, source, consumer, index)
    if old == (consumer, index):
        return connected
    if old[0] != consumer:
        title = tr("Move link to {consumer}", consumer=consumer)
        return connected.then(disconnect(graph, *old, close_gap=close_gap), title)
    layer = graph[consumer]
    origins: list[int | None] = list(range(max(len(layer.inputs), index + 1, old[1] + 1)))
    origins[index] = old[1]
    inputs: list[Source | None] = [*layer.inputs, *[None] * (len(origins) - len(layer.inputs))]
    inputs[index], inputs[old[1]] = source, None
    if close_gap:
        del inputs[old[1]], origins[old[1]]
    moved = routes.rewired(layer, _trim(tuple(inputs)), origins)
    return Edit(tr("Move link of {consumer}", consumer=consumer), {consumer: (layer, moved)})


def add_connected(graph: Graph, layer: Layer, source: Source | None, consumer: Key | None) -> Edit:
    """Add a layer connected to `source`, or to the input `consumer`."""
    if source is not None:
        return add_layer(graph, layer.with_input(0, source))
    edit = add_layer(graph, layer)
    if consumer is None:
        return edit
    name, index = consumer
    return Edit(edit.title, {**edit.layers, name: (graph[name], _with_input(graph[name], index, Source(layer.name)))})


def insert_on_link(graph: Graph, layer: Layer, consumer: str, index: int) -> Edit:
    """Insert `layer` into the link to input `index` of `consumer`. A layer already in the graph must have no links."""
    target = _check_exists(graph, consumer)
    source = target.inputs[index] if 0 <= index < len(target.inputs) else None
    if source is None:
        raise DiagnosticError.of(
            "no-link",
            tr("input {index} of '{consumer}' has no link", index=index, consumer=consumer),
            layer=consumer,
            remedy=tr("connect it first"),
        )
    if layer.name not in graph:
        add_layer(graph, layer)  # refuses what cannot be added
    inserted = {layer.name: (graph.get(layer.name), layer.with_input(0, source))}
    wired = _with_input(target, index, Source(layer.name))
    return Edit(tr("Insert {name}", name=layer.name), {**inserted, consumer: (target, wired)})


def name_rule(graph: Graph, name: str) -> str | None:
    """The rule that a name for a new or renamed layer breaks, or None."""
    if name in graph:
        return tr("the name '{name}' is used by another layer", name=name)
    return check_layer_name(name)


def rename_layer(graph: Graph, old: str, new: str) -> Edit:
    """Rename a layer; its links follow."""
    layer = _check_exists(graph, old)
    if old == new:
        return Edit(tr("Rename"))
    _check_free(graph, new)
    edits: Layers = {old: (layer, None)}
    for reader in (layer, *(graph[consumer] for consumer in graph.consumers(old) if consumer != old)):
        inputs = tuple(Source(new, s.port) if s is not None and s.layer == old else s for s in reader.inputs)
        after = routes.renamed(reader, replace(reader, inputs=inputs))
        if reader is layer:
            edits[new] = (None, replace(after, name=new))
        else:
            edits[reader.name] = (reader, after)
    return Edit(tr("Rename {old} to {new}", old=old, new=new), edits, renamed={old: new})


def move_layers(graph: Graph, positions: Mapping[str, tuple[int, int]]) -> Edit:
    """Move layers to positions in canvas units. Waypoints of links between layers moved by the same offset follow."""
    edits: Layers = {}
    runs: dict[str, routes.Point] = {}
    for name, position in positions.items():
        x, y = _check_exists(graph, name).position
        runs[name] = (position[0] - x, position[1] - y)
    alike: dict[routes.Point, set[str]] = {}
    for name, run in runs.items():
        alike.setdefault(run, set()).add(name)
    for name, position in positions.items():
        layer, run = graph[name], runs[name]
        if run != (0, 0):
            along = routes.moved(layer, run, alike[run]) if ROUTES in layer.attributes else layer
            edits[name] = (layer, replace(along, position=position))
    return Edit(trn("Move", "Move {count} layers", len(edits)), edits)


def set_params(graph: Graph, texts: Mapping[str, Mapping[str, str | None]], *, merge_key: str = "") -> Edit:
    """Set parameters of layers, {layer: {parameter: canonical text}}; None removes a parameter."""
    edits: Layers = {}
    for name, params in texts.items():
        layer = _check_exists(graph, name)
        for parameter, text in params.items():
            check_text(text or "", parameter, name)
        merged = {**layer.params, **params}
        edits[name] = (layer, replace(layer, params={p: text for p, text in merged.items() if text is not None}))
    names = sorted({p for params in texts.values() for p in params})
    where = next(iter(texts)) if len(texts) == 1 else f"{len(texts)} layers"
    return Edit(tr("Change {names} of {where}", names=", ".join(names), where=where), edits, merge_key=merge_key)


def set_activation(graph: Graph, names: Iterable[str], spec: ActivationSpec | None, *, merge_key: str = "") -> Edit:
    """Attach an activation to layers; None removes it."""
    edits: Layers = {}
    for name in names:
        layer = _check_exists(graph, name)
        after = replace(layer, activation=spec)
        _check_texts(after)
        edits[name] = (layer, after)
    return Edit(tr("Set activation") if spec is not None else tr("Remove activation"), edits, merge_key=merge_key)


def set_activation_param(graph: Graph, names: Sequence[str], name: str, text: str) -> Edit:
    """Set a parameter of the activations attached to layers."""
    edits: Layers = {}
    for layer in (_check_exists(graph, n) for n in names):
        if layer.activation is not None:
            check_text(text, name, layer.name)
            spec = replace(layer.activation, params={**layer.activation.params, name: text})
            edits[layer.name] = (layer, replace(layer, activation=spec))
    where = names[0] if len(names) == 1 else f"{len(names)} layers"
    key = f"activation parameter {name} of {', '.join(names)}"
    return Edit(tr("Change {name} of the activation of {where}", name=name, where=where), edits, merge_key=key)


def reset_params(
    graph: Graph, params: Mapping[str, Mapping[str, str]], activations: Mapping[str, Mapping[str, str]]
) -> Edit:
    """Replace all parameters of layers and of their attached activations by these defaults, {layer: texts}."""
    edits: Layers = {}
    for name in dict.fromkeys((*params, *activations)):
        layer = after = _check_exists(graph, name)
        if name in params:
            after = replace(after, params=params[name])
        if name in activations and layer.activation is not None:
            after = replace(after, activation=replace(layer.activation, params=activations[name]))
        if after != layer:
            edits[name] = (layer, after)
    where = next(iter(edits)) if len(edits) == 1 else f"{len(edits)} layers"
    return Edit(tr("Reset parameters of {where}", where=where), edits)


def set_settings(before: Mapping[str, object], after: Mapping[str, object]) -> Edit:
    """Set fields of the document's settings. Consecutive edits of the same numbers merge into one undo step."""
    changed = {key: (before[key], value) for key, value in after.items() if before[key] != value}
    numbers = all(isinstance(value, int) for pair in changed.values() for value in pair)
    names = " and ".join(sorted(key.replace("_", " ") for key in changed))
    return Edit(tr("Change {names}", names=names), merge_key=f"settings {names}" if numbers else "", settings=changed)


def set_property(graph: Graph, key: str, text: str | None) -> Edit:
    """Set a property of the document, such as `name`; None removes it."""
    check_text(text or "", key, None)
    return Edit(tr("Change {key}", key=key), properties={key: (graph.properties.get(key), text)})


def replace_layers(
    graph: Graph,
    changed: Mapping[str, Layer | None],
    title: str,
    settings: Mapping[str, tuple[object, object]],
    templates: Mapping[str, Template] | None = None,
) -> Edit:
    """Put other layers in place of layers (None removes one) and of templates, and set fields of the document's settings."""
    for name, layer in changed.items():
        if layer is not None:
            if name not in graph:
                _check_free(graph, name)
            _check_texts(layer)
    return Edit(
        title,
        {name: (graph.get(name), layer) for name, layer in changed.items()},
        templates={name: (graph.templates.get(name), template) for name, template in (templates or {}).items()},
        settings=settings,
    )


def collapse_layers(graph: Graph, names: Iterable[str], collapsed: bool) -> Edit:
    """Collapse layers to their titles, or expand them."""
    edits: Layers = {}
    for name in names:
        layer = _check_exists(graph, name)
        kept = {k: v for k, v in layer.attributes.items() if k != COLLAPSED}
        edits[name] = (layer, replace(layer, attributes={**kept, COLLAPSED: "true"} if collapsed else kept))
    what = next(iter(edits)) if len(edits) == 1 else tr("{count} layers", count=len(edits))
    return Edit(tr("Collapse {what}", what=what) if collapsed else tr("Expand {what}", what=what), edits)


def paste(
    graph: Graph, layers: Iterable[Layer], offset: tuple[int, int] = (32, 32), *, keep_links: bool = False
) -> Edit:
    """Add copies of `layers` under unused names. Links between them are copied, links from other layers only with `keep_links`.

    Copies of layers that a collapsed frame hides are visible.
    """
    copies = list(layers)
    taken = set(graph.layers)
    names: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for layer in copies:
        new = layer.name if layer.name not in taken else _numbered(_base(layer), taken, numbers)
        names[layer.name] = new
        taken.add(new)
    edits: Layers = {}
    for layer in copies:
        _check_texts(layer)
        inputs = tuple(_pasted(graph, s, names, keep_links) for s in layer.inputs)
        x, y = layer.position
        name = names[layer.name]
        position = (x + offset[0], y + offset[1])
        plain = routes.moved(_plain(graph, layer), offset).folded_into("")  # the frame is not copied
        edits[name] = (None, routes.renamed(plain, replace(plain, name=name, inputs=_trim(inputs), position=position)))
    return Edit(trn("Paste layer", "Paste {count} layers", len(edits)), edits)


def _plain(graph: Graph, layer: Layer) -> Layer:
    """The layer without the declarations of XML prefixes that the document's root already has."""
    said = {k for k, v in layer.attributes.items() if k.startswith("xmlns:") and graph.attributes.get(k) == v}
    return replace(layer, attributes={k: v for k, v in layer.attributes.items() if k not in said}) if said else layer


def _base(layer: Layer) -> str:
    """The stem of a copy's name: the name without its number, short enough to append another."""
    return (layer.name.rstrip("0123456789").rstrip("_") or layer.type)[: MAX_NAME - 8].rstrip()


def _numbered(base: str, taken: set[str], numbers: dict[str, int]) -> str:
    """`unique_name` for many names; `numbers` keeps the next number of each base."""
    number = numbers.get(base, 0)
    while f"{base}_{number}" in taken:
        number += 1
    numbers[base] = number + 1
    return f"{base}_{number}"


def _pasted(graph: Graph, source: Source | None, names: Mapping[str, str], keep_links: bool) -> Source | None:
    if source is None:
        return None
    if source.layer in names:
        return Source(names[source.layer], source.port)
    return source if keep_links and source.layer in graph else None


def _healed(graph: Graph, source: Source | None, removed: set[str]) -> Source | None:
    seen = set()
    while source is not None and source.layer in removed and source.layer not in seen:
        seen.add(source.layer)
        inputs = graph[source.layer].inputs
        source = next((s for s in inputs if s is not None), None)
    return _kept(source, removed)


def _kept(source: Source | None, removed: set[str]) -> Source | None:
    return None if source is None or source.layer in removed else source


def _trim(inputs: tuple[Source | None, ...]) -> tuple[Source | None, ...]:
    end = len(inputs)
    while end and inputs[end - 1] is None:
        end -= 1
    return inputs[:end]


def _check_exists(graph: Graph, name: str) -> Layer:
    layer = graph.get(name)
    if layer is None:
        raise DiagnosticError.of(
            "no-such-layer",
            tr("there is no layer '{name}'", name=name),
            layer=name,
            remedy=tr("choose an existing layer"),
        )
    return layer


def check_text(text: str, what: str, layer: str | None) -> None:
    bad = unwritable(text)
    if bad is not None:
        raise DiagnosticError.of(
            "unwritable-text",
            tr("'{what}' cannot hold the character {bad}, which XML cannot store", what=what, bad=bad),
            layer=layer,
            parameter=what if layer is not None else None,
            remedy=tr("remove the character"),
        )


def _check_texts(layer: Layer) -> None:
    for texts in (layer.params, layer.activation.params if layer.activation is not None else {}):
        for parameter, text in texts.items():
            check_text(text, parameter, layer.name)


def _check_free(graph: Graph, name: str) -> None:
    rule = check_layer_name(name)
    if rule is not None:
        raise DiagnosticError.of("bad-name", rule, layer=name, remedy=tr("choose another name"))
    if name in graph:
        raise DiagnosticError.of(
            "duplicate-name",
            tr("the name '{name}' is taken", name=name),
            layer=name,
            remedy=tr("choose another name"),
        )
