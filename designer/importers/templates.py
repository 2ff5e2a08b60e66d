"""Modules as templates: equal ones become instances of one template, also inside of other templates.

Each instance has weights of its own; calls of one module share a set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile

import msgspec

from designer.files.weights import WeightKey
from designer.graph.model import Layer, Source
from designer.graph.naming import free_identifier, identifier
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, Template, enclosing
from designer.importers.report import NodeOutcome

Scope = tuple[str, ...]
SMALLEST = 3  # layers of a template
PORTS = (INPUT, OUTPUT, "input", "tensor_input", "output")
DOCUMENT = ""  # the room of the layers that are in no template


@dataclass(frozen=True)
class ModuleClass:
    """A class whose modules are instances of a template even if there is only one.

    `inputs` and `output` name the ports, `arguments` are the variables of the call around, `result` the one it is assigned to.
    """

    name: str
    inputs: tuple[str, ...] = ()
    output: str = ""
    arguments: tuple[str, ...] = ()
    result: str = ""


@dataclass(frozen=True)
class Tensors:
    """The learned tensors of a layer: their names and shapes, and their names in the original if it has them all."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    origins: tuple[str, ...] = ()


@dataclass
class Templated:
    """A network with templates.

    `moved` maps layers to their names inside of instances, `<instance>.<layer>`, and `owners` to the names of their weights.
    """

    layers: dict[str, Layer]
    scopes: dict[str, Scope]
    templates: list[Template] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # template -> instances
    renamed: dict[Source, Source] = field(default_factory=dict)  # outputs of replaced layers -> those of instances


def with_templates(
    layers: Mapping[str, Layer],
    scopes: Mapping[str, Scope],
    tensors: Mapping[str, Tensors],
    classes: Mapping[Scope, ModuleClass] | None = None,
) -> Templated:
    """Replace equal scopes by instances of templates, the largest first. `layers` are in topological order."""
    return _Replacement(layers, scopes, tensors, classes or {}).made()


@dataclass
class _Room:
    """The layers of the document or of a template in topological order, with what is known about them.

    Scopes are those in the document; the first `depth` parts of them are around the template.
    """

    layers: dict[str, Layer]
    scopes: dict[str, Scope]
    shapes: dict[str, Hashable]
    origins: dict[str, tuple[str, ...]]
    depth: int = 0
    renamed: dict[Source, Source] = field(default_factory=dict)


@dataclass(frozen=True)
class _Step:
    """One of the instances around a layer of the original, from the outside."""

    instance: str
    template: str
    shared: bool


def _path(steps: Sequence[_Step]) -> str:
    return "".join(f"{step.instance}." for step in steps)


def _owner(steps: Sequence[_Step]) -> str:
    """The prefix of the names of weights: shared ones are named after their template."""
    owner = ""
    for step in steps:
        owner = f"{step.template}." if step.shared else f"{owner}{step.instance}."
    return owner


@dataclass(frozen=True)
class _Occurrence:
    """The layers of one scope, in order, what they read from outside, and which of their outputs are read outside."""

    room: str
    scope: Scope
    layers: tuple[str, ...]
    reads: tuple[Source, ...]
    results: tuple[Source, ...]
    label: str = ""  # the name of its instance


class _Replacement:
    def __init__(
        self,
        layers: Mapping[str, Layer],
        scopes: Mapping[str, Scope],
        tensors: Mapping[str, Tensors],
        classes: Mapping[Scope, ModuleClass],
    ) -> None:
        self.classes = classes
        self.rooms = {
            DOCUMENT: _Room(
                dict(layers),
                dict(scopes),
                {name: item.shapes for name, item in tensors.items()},
                {name: item.origins for name, item in tensors.items() if item.origins},
            )
        }
        self.places: dict[str, tuple[_Step, ...]] = dict.fromkeys(layers, ())
        self.present: dict[tuple[str, str], list[str]] = {(DOCUMENT, name): [name] for name in layers}
        self.single = {DOCUMENT}  # rooms whose layers have one set of weights
        self.names: set[str] = set()
        self.reserved = {
            around for name in layers for around in enclosing(name)[1:]
        }  # no instance can have these names
        self.taken = {DOCUMENT: {*layers, *self.reserved}}

    def made(self) -> Templated:
        found = True
        while found:
            found = False
            for whole, shared in list(self._groups()):
                group = self._without_loops(whole)
                if group == whole or len(group) > 1:
                    self._apply(group, shared & {item.scope for item in group})
                    found = True
        top = self.rooms[DOCUMENT]
        inner = {old: name for (room, name), olds in self.present.items() if room != DOCUMENT for old in olds}
        rooms = {name: room for name, room in self.rooms.items() if name != DOCUMENT}
        everywhere = (layer for room in self.rooms.values() for layer in room.layers.values())
        counts = Counter(layer.params[PARAMETER] for layer in everywhere if layer.type == INSTANCE)
        return Templated(
            top.layers,
            top.scopes,
            [Template(name, tuple(room.layers.values())) for name, room in rooms.items()],
            {old: f"{_path(self.places[old])}{name}" for old, name in inner.items()},
            {old: f"{_owner(self.places[old])}{name}" for old, name in inner.items()},
            {name: counts[name] for name in rooms},
            top.renamed,
        )

    # --- search ----------------------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[tuple[list[_Occurrence], frozenset[Scope]]]:
        """Equal scopes, the largest first, and those of them that share their weights; no layer is in two groups."""
        found: dict[tuple[str, Hashable], list[_Occurrence]] = defaultdict(list)
        for name, room in self.rooms.items():
            for item in _occurrences(name, room, self.classes):
                kind = self.classes.get(item.scope)
                found[kind.name if kind is not None else "", _signature(item, room)].append(item)
        used: set[tuple[str, str]] = set()
        for (named, _), group in sorted(found.items(), key=lambda entry: -len(entry[1][0].layers)):
            free = [item for item in group if used.isdisjoint((item.room, name) for name in item.layers)]
            for part, shared in self._by_weights(free):
                single = bool(part[0].label)
                if shared or (not single and (len(part) > 1 or named)):
                    used.update((item.room, name) for item in part for name in item.layers)
                    yield part, shared

    def _by_weights(self, group: Sequence[_Occurrence]) -> Iterator[tuple[list[_Occurrence], frozenset[Scope]]]:
        """A template has at most one set of shared weights, the same everywhere.

        So calls of one module cannot share it inside of a template whose instances have weights of their own.
        """
        sets: dict[Hashable, list[_Occurrence]] = defaultdict(list)
        for number, item in enumerate(group):
            origins = self.rooms[item.room].origins
            tensors = tuple(origins.get(name, ()) for name in item.layers)
            sets[(item.room, tensors) if any(tensors) and item.room in self.single else number].append(item)
        rest = [item for items in sets.values() if len(items) == 1 for item in items]
        for items in sets.values():
            if len(items) > 1:
                members = rest + items if not items[0].label else items
                yield sorted(members, key=group.index), frozenset(item.scope for item in items)
                rest = []
        if rest:
            yield rest, frozenset()

    def _without_loops(self, group: list[_Occurrence]) -> list[_Occurrence]:
        """The occurrences that can become instances together. An instance reads all that any of its layers reads: that can be a loop."""
        if not _has_loop(self.rooms, group):
            return group
        kept: list[_Occurrence] = []
        for item in group:
            if not _has_loop(self.rooms, [*kept, item]):
                kept.append(item)
        return kept

    # --- replacement -----------------------------------------------------------------------------------------------

    def _apply(self, group: Sequence[_Occurrence], shared: frozenset[Scope]) -> None:
        group = [self._present(item) for item in group]
        first = group[0]
        room = self.rooms[first.room]
        kind = self.classes.get(first.scope)
        name = free_identifier(kind.name if kind is not None else _title(first), self._unavailable(group, shared))
        self.names.add(name)
        order, ports = self._inputs(first, room, kind)
        ends = _numbered("y", len(first.results))
        if kind is not None and kind.output and len(ends) == 1:
            ends = [kind.output]
        inner = _inner_names(first, room, {*ports, *ends})
        self.rooms[name] = self._room(first, room, inner, [first.reads[place] for place in order], ports, ends)
        self.taken[name] = {*ports, *ends, *inner}
        owned = [item for item in group if item.scope not in shared]
        if len(owned) + bool(shared) == 1 and self.single.issuperset(item.room for item in group):
            self.single.add(name)
        around: dict[str, dict[str, Layer]] = defaultdict(dict)  # room -> last layer of an occurrence -> its instance
        for item in group:
            own = self.rooms[item.room]
            instance = self._kept(item) or free_identifier(self._label(item), self.taken[item.room])
            params = {PARAMETER: name} | ({"shared_weights": "true"} if item.scope in shared else {})
            inputs = tuple(item.reads[place] for place in order)
            around[item.room][item.layers[-1]] = Layer(instance, INSTANCE, inputs=inputs, params=params)
            for number, source in enumerate(item.results):
                own.renamed[source] = Source(instance, ends[number] if number else "")
            own.shapes[instance] = tuple(own.shapes.get(layer, ()) for layer in item.layers)
            own.origins[instance] = tuple(text for layer in item.layers for text in own.origins.get(layer, ()))
            own.scopes[instance] = item.scope if item.label else item.scope[:-1]
            self._move(item, instance, name, inner, item.scope in shared)
        if shared:
            self.taken[DOCUMENT].add(name)
        for key, placed in around.items():
            gone = {layer for item in group if item.room == key for layer in item.layers}
            _replace(self.rooms[key], gone, placed)

    def _unavailable(self, group: Sequence[_Occurrence], shared: frozenset[Scope]) -> set[str]:
        """Names that a template cannot have: shared weights are named after it, so that only their instances can have its name."""
        if not shared:
            return set(self.names)
        taken = self.taken[DOCUMENT]
        own: set[str] = set()
        others: set[str] = set()
        for item in group:
            if item.room == DOCUMENT:
                kept = self._kept(item)
                label = identifier(kept or self._label(item))
                free = bool(kept) or label not in taken
                (own if item.scope in shared and free else others).add(label)
        return self.names | ((taken | others) - (own - others))

    def _kept(self, item: _Occurrence) -> str:
        """The name of a single layer if its instance can have it."""
        return "" if item.room == DOCUMENT and item.label in self.reserved else item.label

    def _label(self, item: _Occurrence) -> str:
        """A name for an instance: the variable of its result, or the path of its module."""
        path, kind = item.scope[self.rooms[item.room].depth :], self.classes.get(item.scope)
        return kind.result if kind is not None and kind.result and len(path) == 1 else "_".join(path)

    def _present(self, item: _Occurrence) -> _Occurrence:
        """The occurrence after what it reads became outputs of instances."""
        renamed = self.rooms[item.room].renamed
        return replace(item, reads=tuple(renamed.get(source, source) for source in item.reads))

    def _move(self, item: _Occurrence, instance: str, template: str, inner: Sequence[str], shared: bool) -> None:
        step, layers = _Step(instance, template, shared), self.rooms[item.room].layers
        for name, short in zip(item.layers, inner, strict=True):
            for old in self.present.pop((item.room, name), ()):
                self.places[old] += (step,)
                self.present.setdefault((template, short), []).append(old)
            if layers[name].type == INSTANCE:
                self._move_inside(item.room, name, short, step)

    def _move_inside(self, room: str, name: str, short: str, step: _Step) -> None:
        """The instance `name` of a room went into another one, where it is called `short`."""
        for old, steps in self.places.items():
            rooms = (DOCUMENT, *(each.template for each in steps))
            for depth, (around, inner) in enumerate(zip(rooms, steps, strict=False)):
                if (around, inner.instance) == (room, name):
                    moved = replace(inner, instance=short)
                    self.places[old] = (*steps[:depth], step, moved, *steps[depth + 1 :])
                    break

    def _inputs(self, item: _Occurrence, room: _Room, kind: ModuleClass | None) -> tuple[list[int], list[str]]:
        """The order of the inputs of a template, and their names."""
        count = len(item.reads)
        plain = list(range(count)), _numbered("x", count)
        if kind is None or len(kind.inputs) != count:
            return plain
        if count == 1:
            return [0], list(kind.inputs)
        variables = [_variable(source, item.scope, room) for source in item.reads]
        if sorted(variables) != sorted(kind.arguments) or len(set(variables)) != count:
            return plain
        return [variables.index(text) for text in kind.arguments], list(kind.inputs)

    def _room(
        self,
        item: _Occurrence,
        room: _Room,
        inner: Sequence[str],
        reads: Sequence[Source],
        ports: Sequence[str],
        ends: Sequence[str],
    ) -> _Room:
        """The layers of a template: those of `item` between its ports."""
        renamed = dict(zip(item.layers, inner, strict=True))
        slots = dict(zip(reads, ports, strict=True))

        def moved(source: Source) -> Source:
            return Source(renamed[source.layer], source.port) if source.layer in renamed else Source(slots[source])

        layers = [Layer(port, INPUT, params={"index": str(number)}) for number, port in enumerate(ports)]
        for name in item.layers:
            layer = room.layers[name]
            now = [room.renamed.get(s, s) if s is not None else None for s in layer.inputs]
            inputs = tuple(moved(s) if s is not None else None for s in now)
            layers.append(replace(layer, name=renamed[name], inputs=inputs))
        for number, (end, source) in enumerate(zip(ends, item.results, strict=True)):
            layers.append(Layer(end, OUTPUT, inputs=(moved(source),), params={"index": str(number)}))
        return _Room(
            {layer.name: layer for layer in layers},
            {renamed[name]: room.scopes[name] for name in item.layers},
            {renamed[name]: room.shapes[name] for name in item.layers if name in room.shapes},
            {renamed[name]: room.origins[name] for name in item.layers if name in room.origins},
            len(item.scope),
        )


def _occurrences(name: str, room: _Room, classes: Mapping[Scope, ModuleClass]) -> Iterator[_Occurrence]:
    """The scopes of a room that can be replaced, and single layers that share their weights."""
    order = {layer: place for place, layer in enumerate(room.layers)}
    readers: dict[str, list[str]] = defaultdict(list)
    for layer in room.layers.values():
        for producer in layer.producers():
            readers[producer].append(layer.name)
    for scope, inside in _members(room).items():
        small = len(inside) < SMALLEST and scope not in classes
        if not small and not any(room.layers[layer].type in PORTS for layer in inside):
            item = _occurrence(name, scope, inside, room, readers, order)
            if item is not None:
                yield item
    for label in _repeated(room):
        item = _occurrence(name, (*room.scopes.get(label, ()), label), [label], room, readers, order)
        if item is not None:
            yield replace(item, label=label)


def _members(room: _Room) -> dict[Scope, list[str]]:
    found: dict[Scope, list[str]] = defaultdict(list)
    for name in room.layers:
        scope = room.scopes.get(name, ())
        for depth in range(room.depth + 1, len(scope) + 1):
            found[scope[:depth]].append(name)
    return found


def _repeated(room: _Room) -> list[str]:
    """The layers whose weights another layer has too."""
    owners: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, origins in room.origins.items():
        if origins and name in room.layers and room.layers[name].type != INSTANCE:
            owners[origins].append(name)
    return [name for names in owners.values() if len(names) > 1 for name in names]


def _occurrence(
    name: str,
    scope: Scope,
    inside: Sequence[str],
    room: _Room,
    readers: Mapping[str, Sequence[str]],
    order: Mapping[str, int],
) -> _Occurrence | None:
    """The scope as a block; None if something outside lies between its layers, or nothing reads it."""
    layers = room.layers
    own = set(inside)
    reads: dict[Source, None] = {}
    results: dict[Source, None] = {}
    for layer in inside:
        reads.update(dict.fromkeys(s for s in layers[layer].inputs if s is not None and s.layer not in own))
    outside = [reader for layer in inside for reader in readers.get(layer, ()) if reader not in own]
    for reader in outside:
        results.update(dict.fromkeys(s for s in layers[reader].inputs if s is not None and s.layer in own))
    first = order[inside[0]]
    after: set[str] = set()  # layers outside that depend on the block
    waiting = list(outside)
    last = max((order[source.layer] for source in reads), default=first)
    while waiting:
        layer = waiting.pop()
        if layer not in after and order[layer] <= last:
            after.add(layer)
            waiting.extend(readers.get(layer, ()))
    if not results or any(source.layer in after for source in reads):
        return None
    places = sorted(results, key=lambda source: (order[source.layer], source.port))
    return _Occurrence(name, scope, tuple(inside), tuple(reads), tuple(places))


def _has_loop(rooms: Mapping[str, _Room], group: Sequence[_Occurrence]) -> bool:
    """Whether layers would depend on their own outputs if each occurrence were one layer."""
    for room in {item.room for item in group}:
        layers = rooms[room].layers
        whole = {name: item.layers[0] for item in group if item.room == room for name in item.layers}
        before: dict[str, set[str]] = defaultdict(set)
        for layer in layers.values():
            own = whole.get(layer.name, layer.name)
            before[own] |= {whole.get(producer, producer) for producer in layer.producers()} - {own}
        try:
            TopologicalSorter(before).prepare()
        except CycleError:
            return True
    return False


def _signature(item: _Occurrence, room: _Room) -> Hashable:
    """What two scopes must have in common to be instances of one template."""
    place = {name: number for number, name in enumerate(item.layers)}
    slot = {source: number for number, source in enumerate(item.reads)}
    rows = []
    for name in item.layers:
        layer = room.layers[name]
        inputs = tuple(
            None if s is None else (place[s.layer], s.port) if s.layer in place else slot[s] for s in layer.inputs
        )
        spec = layer.activation
        function = (spec.type, tuple(sorted(spec.params.items()))) if spec is not None else None
        inner = tuple(_plain(part) for part in room.scopes.get(name, ())[len(item.scope) :])
        rows.append(
            (inner, layer.type, tuple(sorted(layer.params.items())), function, inputs, room.shapes.get(name, ()))
        )
    return tuple(rows), tuple((place[source.layer], source.port) for source in item.results)


def _replace(room: _Room, gone: set[str], placed: Mapping[str, Layer]) -> None:
    """Put instances at the places of the last layers of their occurrences."""
    layers: dict[str, Layer] = {}
    for name, layer in room.layers.items():
        if name in placed:
            layers[placed[name].name] = placed[name]
        if name not in gone:
            layers[name] = layer
        else:
            room.scopes.pop(name, None)
    for name, layer in layers.items():
        inputs = tuple(room.renamed.get(s, s) if s is not None else None for s in layer.inputs)
        if inputs != layer.inputs:
            layers[name] = replace(layer, inputs=inputs)
    room.layers = layers


def _inner_names(item: _Occurrence, room: _Room, taken: set[str]) -> list[str]:
    """The names of the layers without that of the module."""
    if item.label:
        return [free_identifier(room.layers[item.layers[0]].type, taken)]
    names = [_short(name, item.scope[room.depth :]) for name in item.layers]
    if tuple(names) == item.layers:  # the layers are not named after the module
        same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
        shared = "".join(letters[0] for letters in same)
        names = [name.removeprefix(shared[: shared.rfind("_") + 1]) for name in names]
    return [free_identifier(name, taken) for name in names]


def _short(name: str, scope: Scope) -> str:
    """A name without the path of modules before it."""
    while scope:
        before = f"{identifier('.'.join(map(_plain, scope)))}_"
        if name.startswith(before) and name != before:
            return name.removeprefix(before)
        scope = scope[1:]
    return name


def _variable(source: Source, scope: Scope, room: _Room) -> str:
    """The variable of generated code that holds a tensor where the module of `scope` is called."""
    around = scope[:-1]
    own = room.scopes.get(source.layer, ())
    if len(own) > len(around) and own[: len(around)] == around:
        return own[len(around)]
    name = _short(source.layer, around[room.depth :])
    return f"{name}_{source.port}" if source.port else name


def _numbered(letter: str, count: int) -> list[str]:
    return [letter] if count == 1 else [f"{letter}{number + 1}" for number in range(count)]


def _plain(part: str) -> str:
    """A part of a path without the number of the call."""
    return part.partition("@")[0]


def _title(item: _Occurrence) -> str:
    """A name for a template: the last part of the path that is not a number."""
    words = [part for part in ".".join(map(_plain, item.scope)).replace("_", ".").split(".") if not part.isdigit()]
    return (words[-1] if words else "block").rstrip("0123456789") or "block"


def moved_key(key: WeightKey, owners: Mapping[str, str]) -> WeightKey:
    """The key of a weight after its layer went into an instance."""
    return WeightKey(owners.get(key.layer, key.layer), key.tensor)


def moved_outcome(item: NodeOutcome, moved: Mapping[str, str]) -> NodeOutcome:
    """What became of a node after its layers went into instances."""
    if moved.keys().isdisjoint(item.layers):
        return item
    return msgspec.structs.replace(item, layers=tuple(moved.get(name, name) for name in item.layers))
