"""Equal modules as templates: each becomes one template, its occurrences instances with weights of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import msgspec

from designer.files.weights import WeightKey
from designer.graph.model import Layer, Source
from designer.graph.naming import free_identifier
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, Template
from designer.importers.report import NodeOutcome

Scope = tuple[str, ...]
Shapes = Mapping[str, tuple[tuple[str, tuple[int, ...]], ...]]  # layer -> names and shapes of its tensors
SMALLEST = 3  # layers of a template
PORTS = (INPUT, OUTPUT, "input", "tensor_input", "output")


@dataclass(frozen=True)
class Occurrence:
    """The layers of one scope, in order, what they read from outside, and which of their outputs are read outside."""

    scope: Scope
    layers: tuple[str, ...]
    reads: tuple[Source, ...]
    results: tuple[Source, ...]


@dataclass
class Templated:
    """A network with templates. `moved` maps layers to their names inside of an instance: `<instance>.<layer>`."""

    layers: dict[str, Layer]
    scopes: dict[str, Scope]
    templates: list[Template] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # template -> instances
    renamed: dict[Source, Source] = field(default_factory=dict)  # outputs of replaced layers -> those of instances


def with_templates(layers: Mapping[str, Layer], scopes: Mapping[str, Scope], shapes: Shapes) -> Templated:
    """Replace equal scopes by instances of templates, the largest first. `layers` are in topological order."""
    made = Templated(dict(layers), dict(scopes))
    taken = set(layers)
    names: set[str] = set()
    for group in _groups(layers, scopes, shapes):
        _Replacement(made, taken, names).apply(group)
    return made


def _groups(layers: Mapping[str, Layer], scopes: Mapping[str, Scope], shapes: Shapes) -> Iterable[list[Occurrence]]:
    """Equal scopes, the largest first; no layer is in two of them."""
    order = {name: place for place, name in enumerate(layers)}
    readers: dict[str, list[str]] = {}
    for layer in layers.values():
        for producer in layer.producers():
            readers.setdefault(producer, []).append(layer.name)
    members: dict[Scope, list[str]] = {}
    for name in layers:
        scope = scopes.get(name, ())
        for depth in range(1, len(scope) + 1):
            members.setdefault(scope[:depth], []).append(name)
    found: dict[object, list[Occurrence]] = {}
    for scope, inside in members.items():
        if len(inside) < SMALLEST or any(layers[name].type in PORTS for name in inside):
            continue
        item = _occurrence(scope, inside, layers, readers, order)
        if item is not None:
            found.setdefault(_signature(item, layers, scopes, shapes), []).append(item)
    used: set[str] = set()
    for group in sorted(found.values(), key=lambda items: -len(items[0].layers)):
        free = [item for item in group if used.isdisjoint(item.layers)]
        if len(free) > 1:
            used.update(name for item in free for name in item.layers)
            yield free


def _occurrence(
    scope: Scope,
    inside: Sequence[str],
    layers: Mapping[str, Layer],
    readers: Mapping[str, Sequence[str]],
    order: Mapping[str, int],
) -> Occurrence | None:
    """The scope as a block; None if something outside lies between its layers, or nothing reads it."""
    own = set(inside)
    reads: dict[Source, None] = {}
    results: dict[Source, None] = {}
    for name in inside:
        reads.update(dict.fromkeys(s for s in layers[name].inputs if s is not None and s.layer not in own))
    outside = [reader for name in inside for reader in readers.get(name, ()) if reader not in own]
    for reader in outside:
        results.update(dict.fromkeys(s for s in layers[reader].inputs if s is not None and s.layer in own))
    first = order[inside[0]]
    after: set[str] = set()  # layers outside that depend on the block
    waiting = list(outside)
    last = max((order[source.layer] for source in reads), default=first)
    while waiting:
        name = waiting.pop()
        if name not in after and order[name] <= last:
            after.add(name)
            waiting.extend(readers.get(name, ()))
    if not results or any(source.layer in after for source in reads):
        return None
    places = sorted(results, key=lambda source: (order[source.layer], source.port))
    return Occurrence(scope, tuple(inside), tuple(reads), tuple(places))


def _signature(item: Occurrence, layers: Mapping[str, Layer], scopes: Mapping[str, Scope], shapes: Shapes) -> object:
    """What two scopes must have in common to be instances of one template."""
    place = {name: number for number, name in enumerate(item.layers)}
    slot = {source: number for number, source in enumerate(item.reads)}
    rows = []
    for name in item.layers:
        layer = layers[name]
        inputs = tuple(
            None if s is None else (place[s.layer], s.port) if s.layer in place else slot[s] for s in layer.inputs
        )
        spec = layer.activation
        function = (spec.type, tuple(sorted(spec.params.items()))) if spec is not None else None
        inner = scopes.get(name, ())[len(item.scope) :]
        rows.append((inner, layer.type, tuple(sorted(layer.params.items())), function, inputs, shapes.get(name, ())))
    return tuple(rows), tuple((place[source.layer], source.port) for source in item.results)


class _Replacement:
    """Replaces the occurrences of one template."""

    def __init__(self, made: Templated, taken: set[str], names: set[str]) -> None:
        self.made = made
        self.taken = taken
        self.names = names

    def apply(self, group: Sequence[Occurrence]) -> None:
        first = group[0]
        name = free_identifier(_title(first.scope), self.names)
        inner = self._inner_names(first)
        ports = ["x" if len(first.reads) == 1 else f"x{number + 1}" for number in range(len(first.reads))]
        ends = ["y" if len(first.results) == 1 else f"y{number + 1}" for number in range(len(first.results))]
        self.made.templates.append(Template(name, tuple(self._body(first, inner, ports, ends))))
        self.made.counts[name] = len(group)
        placed: dict[str, Layer] = {}  # the last layer of an occurrence -> its instance
        for item in group:
            instance = free_identifier("_".join(item.scope), self.taken)
            placed[item.layers[-1]] = Layer(instance, INSTANCE, inputs=item.reads, params={PARAMETER: name})
            for number, source in enumerate(item.results):
                self.made.renamed[source] = Source(instance, ends[number] if number else "")
            for layer, short in zip(item.layers, inner, strict=True):
                self.made.moved[layer] = f"{instance}.{short}"
                self.made.scopes.pop(layer, None)
            self.made.scopes[instance] = item.scope[:-1]
        self._replace({name for item in group for name in item.layers}, placed)

    def _replace(self, gone: set[str], placed: Mapping[str, Layer]) -> None:
        layers: dict[str, Layer] = {}
        for name, layer in self.made.layers.items():
            if name in placed:
                layers[placed[name].name] = placed[name]
            if name not in gone:
                layers[name] = layer
        renamed = self.made.renamed
        for name, layer in layers.items():
            inputs = tuple(renamed.get(s, s) if s is not None else None for s in layer.inputs)
            if inputs != layer.inputs:
                layers[name] = replace(layer, inputs=inputs)
        self.made.layers = layers

    def _inner_names(self, item: Occurrence) -> list[str]:
        """The names of the layers without what they have in common: the name of the module."""
        shared = "".join(c for c, *rest in takewhile(lambda t: len(set(t)) == 1, zip(*item.layers, strict=False)))
        shared = shared[: shared.rfind("_") + 1]
        taken = {"x", "y", *(f"{letter}{number}" for letter in "xy" for number in range(64))}
        return [free_identifier(name.removeprefix(shared), taken) for name in item.layers]

    def _body(
        self, item: Occurrence, inner: Sequence[str], ports: Sequence[str], ends: Sequence[str]
    ) -> Iterable[Layer]:
        renamed = dict(zip(item.layers, inner, strict=True))
        slots = {self.made.renamed.get(s, s): port for s, port in zip(item.reads, ports, strict=True)}

        def moved(source: Source) -> Source:
            return Source(renamed[source.layer], source.port) if source.layer in renamed else Source(slots[source])

        for number, port in enumerate(ports):
            yield Layer(port, INPUT, params={"index": str(number)})
        for name in item.layers:
            layer = self.made.layers[name]
            inputs = tuple(moved(s) if s is not None else None for s in layer.inputs)
            yield replace(layer, name=renamed[name], inputs=inputs)
        for number, (end, source) in enumerate(zip(ends, item.results, strict=True)):
            yield Layer(end, OUTPUT, inputs=(moved(source),), params={"index": str(number)})


def _title(scope: Scope) -> str:
    """A name for a template: the last part of the path that is not a number."""
    words = [part for part in ".".join(scope).replace("_", ".").split(".") if not part.isdigit()]
    return (words[-1] if words else "block").rstrip("0123456789") or "block"


def moved_key(key: WeightKey, moved: Mapping[str, str]) -> WeightKey:
    """The key of a weight after its layer went into an instance."""
    return WeightKey(moved.get(key.layer, key.layer), key.tensor)


def moved_outcome(item: NodeOutcome, moved: Mapping[str, str]) -> NodeOutcome:
    """What became of a node after its layers went into instances."""
    if moved.keys().isdisjoint(item.layers):
        return item
    return msgspec.structs.replace(item, layers=tuple(moved.get(name, name) for name in item.layers))


def moved_name(text: str, moved: Mapping[str, str]) -> str:
    """`<layer>.<tensor>` after the layer went into an instance."""
    layer, _, tensor = text.rpartition(".")
    return f"{moved.get(layer, layer)}.{tensor}"
