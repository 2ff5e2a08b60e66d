"""Edits of templates and their instances.

A template is edited like a network: a command on `graph.inside(name)` returns an edit, which `edit_template` converts into an
edit of the document that updates the instances when ports change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from designer.graph import routes
from designer.graph.commands import paste, set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FROZEN, GRID, MAX_NAME, Frame, Layer, Source, check_layer_name
from designer.graph.naming import unique_name
from designer.graph.template import (
    INPUT,
    INSTANCE,
    OUTPUT,
    PARAMETER,
    Template,
    check_template_name,
    port_index,
    recursion,
)
from designer.texts import tr

STEP = 10 * GRID  # distance of ports from the layers that they feed
Layers = dict[str, tuple[Layer | None, Layer | None]]
Placing = Callable[[Graph], Mapping[str, tuple[int, int]]]
Templates = dict[str, tuple[Template | None, Template | None]]


def set_template(graph: Graph, template: Template, *, renamed: Mapping[str, str] | None = None) -> Edit:
    """Add or replace a template. `renamed` maps old to new names of its layers.

    Instances stay connected to ports of the same name. Raises DiagnosticError for a template that would use itself.
    """
    before = graph.templates.get(template.name)
    if before is None:
        _check_name(graph, template.name)
    after = {**graph.templates, template.name: template}
    path = recursion(after, template.name)
    if path:
        raise DiagnosticError.of(
            "recursive-template",
            tr("the template '{name}' would use itself: {path}", name=template.name, path=" > ".join(path)),
            remedy=tr("a template must not use itself, directly or through other templates"),
            template=template.name,
        )
    edits: Templates = {template.name: (before, template)}
    layers: Layers = {}
    if before is not None:
        follow = _Ports(before, template, renamed or {})
        layers = {layer.name: (layer, other) for layer, other in follow.among(graph.layers) if other != layer}
        for name, other in graph.templates.items():
            inside = {layer.name: layer for layer in other.layers}
            changed = tuple(made for _, made in follow.among(inside))
            if name != template.name and changed != other.layers:
                edits[name] = (other, replace(other, layers=changed))
    title = (
        tr("Change template {name}", name=template.name)
        if before is not None
        else tr("Add template {name}", name=template.name)
    )
    return Edit(title, layers, templates=edits, renamed_inside={template.name: renamed} if renamed else {})


def edit_template(graph: Graph, name: str, edit: Edit) -> Edit:
    """Convert an edit of `graph.inside(name)` into an edit of the document, including templates that it adds."""
    template = _check_exists(graph, name)
    inside = graph.inside(name)
    inside.apply(edit)
    after = replace(template, layers=tuple(inside), frames=tuple(inside.frames.values()))
    if edit.templates:
        brought = Edit(tr("Add templates"), templates=edit.templates)
        with_them = graph.copy()
        with_them.apply(brought)
        made = brought.then(set_template(with_them, after, renamed=edit.renamed))
    else:
        made = set_template(graph, after, renamed=edit.renamed)
    merge = f"{name}/{edit.merge_key}" if edit.merge_key else ""
    return replace(made, title=tr("{title} in {name}", title=edit.title, name=name), merge_key=merge)


def remove_template(graph: Graph, name: str) -> Edit:
    """Remove a template that has no instances."""
    template = _check_exists(graph, name)
    users = [layer.name for layer in graph if _is_of(layer, name)]
    users += [f"{other.name} > {layer.name}" for other in graph.templates.values() for layer in other.layers
              if other.name != name and _is_of(layer, name)]  # fmt: skip
    if users:
        raise DiagnosticError.of(
            "template-in-use",
            f"the template '{name}' is used by '{users[0]}'" + (f" and {len(users) - 1} more" if users[1:] else ""),
            remedy=tr("remove or dissolve its instances first"),
            template=name,
        )
    return Edit(tr("Delete template {name}", name=name), templates={name: (template, None)})


def rename_template(graph: Graph, old: str, new: str) -> Edit:
    """Rename a template; its instances follow."""
    template = _check_exists(graph, old)
    if old == new:
        return Edit(tr("Rename template"))
    _check_name(graph, new)
    layers: Layers = {x.name: (x, x.with_param(PARAMETER, new)) for x in graph if _is_of(x, old)}
    templates: Templates = {old: (template, None)}
    for name, other in graph.templates.items():
        inner = tuple(x.with_param(PARAMETER, new) if _is_of(x, old) else x for x in other.layers)
        if name == old:
            templates[new] = (None, replace(other, name=new, layers=inner))
        elif inner != other.layers:
            templates[name] = (other, replace(other, layers=inner))
    return Edit(
        tr("Rename template {old} to {new}", old=old, new=new),
        layers,
        templates=templates,
        renamed_templates={old: new},
    )


def make_template(
    graph: Graph, names: Iterable[str], name: str, *, whole: Collection[str] = (), placed: Placing | None = None
) -> Edit:
    """Move layers into a new template and put an instance of it in their place, called `name` with a number.

    Tensors that they read from other layers become the template's inputs; tensors that other layers or no layers read become
    its outputs. Afterwards the names of the weights start with the instance's name. Raises DiagnosticError for layers of
    `whole`, which belong to the whole network, and for a selection whose instance would depend on itself. `placed` gives the
    positions of the layers in the template.
    """
    chosen = [n for n in dict.fromkeys(names) if n in graph]
    _check_name(graph, name)
    if not chosen:
        raise DiagnosticError.of("nothing-selected", tr("no layer is selected"), remedy=tr("select layers first"))
    members = set(chosen)
    outer = next((n for n in chosen if n in whole), None)
    if outer is not None:
        raise DiagnosticError.of(
            "not-in-template",
            tr("'{outer}' is an input or output of the whole network and cannot be part of a template", outer=outer),
            layer=outer,
            remedy=tr("leave it out of the selection"),
        )
    ports = [n for n in chosen if graph[n].type in (INPUT, OUTPUT)]
    if ports:
        raise DiagnosticError.of(
            "port-selected",
            tr("'{ports}' is a port of the enclosing template and cannot be part of another", ports=ports[0]),
            layer=ports[0],
            remedy=tr("leave it out of the selection"),
        )
    between = graph.downstream(members) & graph.upstream(members) - members
    if between:
        raise DiagnosticError.of(
            "cycle",
            tr(
                "'{layer}' reads from the selection and feeds it: the instance would depend on itself",
                layer=min(between),
            ),
            layer=min(between),
            remedy=tr("select '{layer}' too", layer=min(between)),
        )
    instance = unique_name(name[: MAX_NAME - 8].rstrip(), graph.layers)
    order = [n for n in graph.order()[0] if n in members] + sorted(members.intersection(graph.order()[1]))
    reads = dict.fromkeys(s for n in order for s in graph[n].inputs if s is not None and s.layer not in members)
    outside = [(c, s) for c in _readers(graph, order) for s in graph[c].inputs if s is not None and s.layer in members]
    results = dict.fromkeys(s for _, s in outside)
    results |= dict.fromkeys(Source(n) for n in order if not graph.consumers(n))
    taken = set(members)
    inputs = {source: _port(graph, source, "x", taken) for source in reads}
    outputs = {source: _port(graph, source, "y", taken) for source in results}
    left = min(graph[n].position[0] for n in order)
    right = max(graph[n].position[0] for n in order)
    top = min(graph[n].position[1] for n in order)
    layers = [
        Layer(port, INPUT, (left - STEP, top + number * STEP), params={"index": str(number)})
        for number, port in enumerate(inputs.values())
    ]
    layers += [
        Layer(port, OUTPUT, (right + STEP, top + number * STEP), (source,), {"index": str(number)})
        for number, (source, port) in enumerate(outputs.items())
    ]
    for member in order:
        moved = tuple(Source(inputs[s]) if s in inputs else s for s in graph[member].inputs)
        layers.append(routes.rewired(graph[member], moved))
    edits: Layers = {n: (graph[n], None) for n in order}
    edits[instance] = (
        None,
        Layer(instance, INSTANCE, graph[order[0]].position, tuple(inputs), {PARAMETER: name}),
    )
    first = next(iter(outputs), None)
    for consumer in dict.fromkeys(c for c, _ in outside):
        layer = graph[consumer]
        sources = tuple(_read(s, outputs, instance, first) for s in layer.inputs)
        edits[consumer] = (layer, routes.rewired(layer, sources))
    frames = [frame for frame in graph.frames.values() if _holds_only(frame, graph, members)]
    made = Template(name, tuple(layers), frames=tuple(frames))
    if placed is not None and not frames:  # frames are around where the layers are
        places = placed(Graph(made.layers, name=name, templates=graph.templates.values()))
        made = replace(made, layers=tuple(replace(x, position=places.get(x.name, x.position)) for x in made.layers))
    gone = {frame.id: (frame, None) for frame in frames}
    return Edit(
        tr("Make template {name}", name=name),
        edits,
        frames=gone,
        renamed={member: f"{instance}.{member}" for member in order},
        templates={name: (None, made)},
    )


def dissolve(graph: Graph, instance: str) -> Edit:
    """Replace an instance by copies of its template's layers, named `<instance>.<layer>` like their weights.

    An activation attached to the instance or to a port of the template is kept on an identity layer, and the layers of a
    frozen instance are frozen. Raises DiagnosticError for a bypassed instance: its layers would compute again.
    """
    layer = graph.get(instance)
    template = graph.templates.get(layer.params.get(PARAMETER, "")) if layer is not None else None
    if layer is None or layer.type != INSTANCE or template is None:
        raise DiagnosticError.of(
            "no-instance",
            tr("'{instance}' is not an instance of a template", instance=instance),
            layer=instance,
            remedy=tr("choose a layer of the type 'template' whose template exists"),
        )
    if layer.bypassed:
        message = tr("'{instance}' is bypassed: its layers would compute again", instance=instance)
        raise DiagnosticError.of("bypass", message, layer=instance, remedy=tr("end the bypass first"))
    copies = _Copies(graph, layer, template)
    edits: Layers = {instance: (layer, None), **{copy.name: (None, copy) for copy in copies.layers()}}
    results = {port: copies.outer(Source(port)) for port in template.outputs}
    first = template.outputs[0] if template.outputs else ""
    if layer.activation is not None:
        source = results.get(first)
        inputs = (source,) if source is not None else ()
        edits[instance] = (layer, replace(layer, type="identity", params={}, inputs=inputs))
        results[first] = Source(instance)
    for consumer in graph.consumers(instance):
        reader = graph[consumer]
        sources = tuple(
            results.get(s.port or first) if s is not None and s.layer == instance else s for s in reader.inputs
        )
        edits[consumer] = (reader, routes.rewired(reader, _trim(sources)))
    return Edit(tr("Dissolve {instance}", instance=instance), edits, frames=copies.frames())


class _Copies:
    """The layers and frames of a template that replace one of its instances."""

    def __init__(self, graph: Graph, instance: Layer, template: Template) -> None:
        self._graph = graph
        self._instance = instance
        self._template = template
        self._inside = {item.name: item for item in template.layers}
        self._ports = template.inputs
        self._right = instance.position[0] - min((item.position[0] for item in template.layers), default=0)
        self._down = instance.position[1] - min((item.position[1] for item in template.layers), default=0)
        self._frames: dict[str, str] = {}  # new ids of the template's frames
        for frame in template.frames:
            self._frames[frame.id] = unique_name("frame", {*graph.frames, *self._frames.values()})

    def outer(self, source: Source | None, kept: bool = True) -> Source | None:
        """The source outside for a source inside the template. Ports with an activation are `kept` as layers."""
        seen = set()
        while source is not None and source.layer in self._inside and source.layer not in seen:
            seen.add(source.layer)
            item = self._inside[source.layer]
            if item.type not in (INPUT, OUTPUT):
                return Source(self._name(item), source.port)
            if item.activation is not None and kept:
                return Source(self._name(item))
            if item.type == INPUT:
                index = self._ports.index(item.name)
                return self._instance.inputs[index] if index < len(self._instance.inputs) else None
            source = item.inputs[0] if item.inputs else None
        return None

    def layers(self) -> Iterator[Layer]:
        """Copies of all layers. Ports are left out, but become identity layers if they have an activation.

        Raises DiagnosticError for a name that is too long or taken.
        """
        for item in self._template.layers:
            if item.type not in (INPUT, OUTPUT):
                yield self._copy(item)
            elif item.activation is not None:
                yield replace(self._copy(item), type="identity", params={})

    def frames(self) -> dict[str, tuple[Frame | None, Frame | None]]:
        found: dict[str, tuple[Frame | None, Frame | None]] = {}
        for frame in self._template.frames:
            frame_id = self._frames[frame.id]
            rect = (frame.rect[0] + self._right, frame.rect[1] + self._down, *frame.rect[2:])
            found[frame_id] = (None, replace(frame, id=frame_id, rect=rect, folded=self._into(frame.folded)))
        return found

    def _into(self, folded: str) -> str:
        """The collapsed frame outside that hides a layer or frame; `folded` is the one inside the template."""
        return self._frames.get(folded, "") or self._instance.folded

    def _copy(self, item: Layer) -> Layer:
        name = self._name(item)
        rule = check_layer_name(name)
        if rule is not None:
            remedy = tr("rename the instance first")
            raise DiagnosticError.of("bad-name", rule, layer=self._instance.name, remedy=remedy)
        if name in self._graph:
            message = tr("the name '{name}' is taken", name=name)
            raise DiagnosticError.of("duplicate-name", message, layer=name, remedy=tr("rename that layer first"))
        read = [Source(item.name)] if item.type == INPUT else item.inputs
        inputs = tuple(self.outer(source, kept=item.type != INPUT) for source in read)
        place = (item.position[0] + self._right, item.position[1] + self._down)
        moved = routes.moved(item, (self._right, self._down)).folded_into(self._into(item.folded))
        if self._instance.frozen:
            moved = replace(moved, attributes={**moved.attributes, FROZEN: "true"})
        return routes.renamed(moved, replace(moved, name=name, inputs=_trim(inputs), position=place))

    def _name(self, item: Layer) -> str:
        return f"{self._instance.name}.{item.name}"


def dissolve_all(graph: Graph, names: Sequence[str]) -> Edit:
    """Dissolve several instances in one step."""
    if len(names) == 1:
        return dissolve(graph, names[0])
    present = graph.copy()
    total = Edit(tr("Dissolve {count} instances", count=len(names)))
    for name in names:
        edit = dissolve(present, name)
        present.apply(edit)
        total = total.then(edit)
    return total


def new_instance(graph: Graph, template: str, position: tuple[int, int]) -> Layer:
    """An instance of a template, under an unused name."""
    name = unique_name(template[: MAX_NAME - 8].rstrip(), graph.layers)
    return Layer(name, INSTANCE, position, params={PARAMETER: template})


def new_port(graph: Graph, kind: str, position: tuple[int, int], params: Mapping[str, str]) -> Layer:
    """The next input or output port of a template, under an unused name; `graph` is the contents of the template."""
    last = max((port_index(layer) for layer in graph if layer.type == kind), default=-1)
    name = unique_name("in" if kind == INPUT else "out", graph.layers)
    return Layer(name, kind, position, params={**params, "index": str(last + 1)})


def move_port(graph: Graph, name: str, step: int) -> Edit:
    """Move a port by `step` positions among those of its kind; `graph` is the contents of the template.

    Instances stay connected to ports by name.
    """
    kind = graph[name].type
    template = Template("", tuple(graph))
    ports = list(template.inputs if kind == INPUT else template.outputs)
    place = ports.index(name)
    ports.insert(min(max(place + step, 0), len(ports) - 1), ports.pop(place))
    texts = {port: {"index": str(number)} for number, port in enumerate(ports) if port_index(graph[port]) != number}
    if ports.index(name) == place or not texts:
        return Edit(tr("Move port"))
    title = tr("Move port {name} up", name=name) if step < 0 else tr("Move port {name} down", name=name)
    return replace(set_params(graph, texts), title=title)


def paste_with_templates(
    graph: Graph,
    layers: Iterable[Layer],
    templates: Iterable[Template],
    offset: tuple[int, int] = (32, 32),
    *,
    keep_links: bool = False,
) -> Edit:
    """Paste layers of another document, including the templates that they use.

    A template that the document already has is not added again; a different one of the same name is renamed.
    """
    brought = {template.name: _undeclared(graph, template) for template in templates}
    names: dict[str, str] = {}
    taken = {*graph.templates, *brought}
    changed = True
    while changed:  # a template that uses a renamed template differs too
        changed = False
        for name, template in brought.items():
            present = graph.templates.get(name)
            other = present is not None and present != template
            if name not in names and (other or any(used in names for used in template.uses())):
                names[name] = _numbered(name, taken)
                changed = True

    def renamed(layer: Layer) -> Layer:
        used = layer.params.get(PARAMETER, "")
        return layer.with_param(PARAMETER, names[used]) if layer.type == INSTANCE and used in names else layer

    edit = paste(graph, map(renamed, layers), offset, keep_links=keep_links)
    added: Templates = {}
    for name, template in brought.items():
        new = names.get(name, name)
        if new not in graph.templates:
            added[new] = (None, replace(template, name=new, layers=tuple(map(renamed, template.layers))))
    return replace(edit, templates=added)


def _undeclared(graph: Graph, template: Template) -> Template:
    """The template without the declarations of XML prefixes that the document's root already has."""
    kept = {k: v for k, v in template.attributes.items() if not k.startswith("xmlns:") or graph.attributes.get(k) != v}
    return replace(template, attributes=kept) if kept != template.attributes else template


def _numbered(name: str, taken: set[str]) -> str:
    base, number = name[: MAX_NAME - 8].rstrip(), 2
    while f"{base}_{number}" in taken:
        number += 1
    taken.add(f"{base}_{number}")
    return f"{base}_{number}"


class _Ports:
    """Updates instances of a template when its ports change."""

    def __init__(self, before: Template, after: Template, renamed: Mapping[str, str]) -> None:
        self.name = before.name
        self.places = [renamed.get(port, port) for port in before.inputs]
        self.inputs = after.inputs
        self.first = before.outputs[0] if before.outputs else ""
        self.outputs = {port: renamed.get(port, port) for port in before.outputs}
        self.now = after.outputs

    def among(self, layers: Mapping[str, Layer]) -> list[tuple[Layer, Layer]]:
        """Each layer, with its updated version."""
        instances = {name for name, layer in layers.items() if _is_of(layer, self.name)}
        return [(layer, self._follow(layer, instances) if instances else layer) for layer in layers.values()]

    def _follow(self, layer: Layer, instances: set[str]) -> Layer:
        if layer.name in instances and tuple(self.places) != self.inputs:
            origins = {port: i for i, port in enumerate(self.places[: len(layer.inputs)])}
            surplus = range(len(self.places), len(layer.inputs))
            moved = [*(origins.get(port) for port in self.inputs), *surplus]
            layer = routes.rewired(
                layer, _trim(tuple(layer.inputs[i] if i is not None else None for i in moved)), moved
            )
        inputs = tuple(self._source(s) if s is not None and s.layer in instances else s for s in layer.inputs)
        return layer if inputs == layer.inputs else routes.renamed(layer, replace(layer, inputs=inputs))

    def _source(self, source: Source) -> Source:
        port = source.port or self.first
        new = self.outputs.get(port, port)
        if self.now and new == self.now[0]:
            return Source(source.layer)
        return Source(source.layer, new)  # a removed port keeps its name, so that no other output replaces it silently


def _holds_only(frame: Frame, graph: Graph, members: set[str]) -> bool:
    """Whether a frame contains layers, all of them among `members`."""
    x, y, width, height = frame.rect
    held = {item.name for item in graph if x <= item.position[0] <= x + width and y <= item.position[1] <= y + height}
    return bool(held) and held <= members


def _is_of(layer: Layer, template: str) -> bool:
    return layer.type == INSTANCE and layer.params.get(PARAMETER) == template


def _readers(graph: Graph, names: Sequence[str]) -> list[str]:
    members = set(names)
    return [c for c in dict.fromkeys(c for n in names for c in graph.consumers(n)) if c not in members]


def _port(graph: Graph, source: Source, plain: str, taken: set[str]) -> str:
    """An unused name for a port: that of the producing layer, or `plain` if the layer has a default name."""
    layer = graph.get(source.layer)
    base = re.sub(r"_\d+$", "", source.layer)[:100].strip()
    if layer is None or base in ("", layer.type, *layer.params.values()):
        base = plain
    if source.port:
        base = f"{base}_{source.port}"
    name, number = base, 2
    while name in taken:
        name = f"{base}_{number}"
        number += 1
    taken.add(name)
    return name


def _read(source: Source | None, outputs: Mapping[Source, str], instance: str, first: Source | None) -> Source | None:
    if source is None or source not in outputs:
        return source
    return Source(instance) if source == first else Source(instance, outputs[source])


def _trim(inputs: tuple[Source | None, ...]) -> tuple[Source | None, ...]:
    end = len(inputs)
    while end and inputs[end - 1] is None:
        end -= 1
    return inputs[:end]


def _check_exists(graph: Graph, name: str) -> Template:
    template = graph.templates.get(name)
    if template is None:
        raise DiagnosticError.of(
            "unknown-template",
            tr("there is no template '{name}'", name=name),
            remedy=tr("choose an existing template"),
        )
    return template


def _check_name(graph: Graph, name: str) -> None:
    rule = check_template_name(name)
    if rule is not None:
        raise DiagnosticError.of("bad-name", rule, remedy=tr("choose another name"))
    if name in graph.templates:
        raise DiagnosticError.of(
            "duplicate-name",
            tr("a template '{name}' already exists", name=name),
            remedy=tr("choose another name"),
        )
