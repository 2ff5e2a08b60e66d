"""Differences between two networks: layers, parameters, links, positions, templates, frames and properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """One value that differs. None means absent.

    `name` is a parameter, "type", "activation", "activation.<parameter>", "input <number>", or the name of a preserved
    foreign element.
    """

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name}: {shown(self.after)} is new"
        if self.after is None:
            return f"{self.name}: {shown(self.before)} is gone"
        return f"{self.name}: {shown(self.before)} → {shown(self.after)}"


@dataclass(frozen=True)
class NetworkComparison:
    """The differences between two networks. Layers have their names in the second one, removed layers those in the first.

    A layer can be in `renamed` (before -> after), `changed`, `rewired` and `moved` at once. `templates` compares the
    contents of each template that exists in both.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, tuple[ValueDifference, ...]] = field(default_factory=dict)
    rewired: Mapping[str, tuple[ValueDifference, ...]] = field(default_factory=dict)
    moved: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)
    properties: tuple[ValueDifference, ...] = ()
    frames: tuple[ValueDifference, ...] = ()
    templates_added: tuple[str, ...] = ()
    templates_removed: tuple[str, ...] = ()
    templates: Mapping[str, NetworkComparison] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)  # layer types, of `added` and `removed`

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.moved or self.templates) or self.means

    @property
    def means(self) -> bool:
        """Whether anything but positions differs."""
        own = (self.added, self.removed, self.renamed, self.changed, self.rewired, self.properties, self.frames)
        inside = any(template.means for template in self.templates.values())
        return any(own) or bool(self.templates_added or self.templates_removed or inside)

    def without_moves(self) -> NetworkComparison:
        """The same comparison without differences in position, also inside templates."""
        inside = {name: template.without_moves() for name, template in self.templates.items() if template.means}
        return replace(self, moved={}, templates=inside)

    def summary(self) -> str:
        """The counts of differences in one line."""
        counts = (
            ("added", len(self.added)),
            ("removed", len(self.removed)),
            ("renamed", len(self.renamed)),
            ("changed", len(self.changed.keys() | self.rewired.keys())),
            ("moved", len(self.moved)),
        )
        parts = [f"{number} {what}" for what, number in counts if number]
        others = len(self.templates_added) + len(self.templates_removed) + len(self.templates)
        texts = [f"layers: {', '.join(parts)}"] if parts else []
        for what, number in (("template", others), ("frame", len(self.frames)), ("property", len(self.properties))):
            if number:
                plural = "properties" if what == "property" else f"{what}s"
                texts.append(f"{number} {what if number == 1 else plural}")
        return "; ".join(texts) or "no differences"

    def text(self) -> str:
        """All differences, one per line. Empty if there are none."""
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> list[str]:
        found = [f"+ {name} ({self.types.get(name, '?')})" for name in self.added]
        found += [f"- {name} ({self.types.get(name, '?')})" for name in self.removed]
        found += [f"= {old} renamed to {new}" for old, new in self.renamed.items()]
        for name in sorted(self.changed.keys() | self.rewired.keys()):
            found.append(f"~ {name}")
            found += [f"    {difference}" for difference in (*self.changed.get(name, ()), *self.rewired.get(name, ()))]
        for name, (before, after) in self.moved.items():
            found.append(f"> {name} moved from {before[0]},{before[1]} to {after[0]},{after[1]}")
        found += [f"+ template {name}" for name in self.templates_added]
        found += [f"- template {name}" for name in self.templates_removed]
        for name, inside in self.templates.items():
            found.append(f"~ template {name}")
            found += [f"    {line}" for line in inside.lines()]
        found += [f"~ frame {difference}" for difference in self.frames]
        found += [f"~ {difference}" for difference in self.properties]
        return found


def compare(before: Graph, after: Graph) -> NetworkComparison:
    """Compare two networks.

    A removed and an added layer count as one renamed layer if they are equal except for the name and no other pair is.
    """
    renamed = _renamed(before, after)
    gone = [n for n in before.layers if n not in after and n not in renamed]
    fresh = set(renamed.values())
    new = [n for n in after.layers if n not in before and n not in fresh]
    changed: dict[str, tuple[ValueDifference, ...]] = {}
    rewired: dict[str, tuple[ValueDifference, ...]] = {}
    moved: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
    for old in before:
        layer = after.get(renamed.get(old.name, old.name))
        if layer is None:
            continue
        values = _values(old, layer)
        if values:
            changed[layer.name] = values
        links = _links(old.inputs, layer.inputs, renamed)
        if links:
            rewired[layer.name] = links
        if old.position != layer.position:
            moved[layer.name] = (old.position, layer.position)
    insides = {
        name: inside
        for name in sorted(before.templates.keys() & after.templates.keys())
        if (inside := _inside(before, after, name))
    }
    return NetworkComparison(
        tuple(sorted(new)),
        tuple(sorted(gone)),
        dict(sorted(renamed.items())),
        dict(sorted(changed.items())),
        dict(sorted(rewired.items())),
        dict(sorted(moved.items())),
        (
            *_texts(before.properties, after.properties),
            *_texts(before.attributes, after.attributes),
            *_lists("kept element", [f.xml for f in before.foreign], [f.xml for f in after.foreign]),
        ),
        _frames(before, after),
        tuple(sorted(after.templates.keys() - before.templates.keys())),
        tuple(sorted(before.templates.keys() - after.templates.keys())),
        insides,
        {**{n: before[n].type for n in gone}, **{n: after[n].type for n in new}},
    )


def shown(text: str | None) -> str:
    """A value for display: one line, shortened, and visible if empty."""
    if not text:
        return "(empty)"
    line = text.replace("\n", "⏎")
    return line if len(line) <= 60 else f"{line[:57]}..."


def _renamed(before: Graph, after: Graph) -> dict[str, str]:
    """Renamed layers (before -> after): equal layers at the same position, then those with equal inputs, repeatedly."""
    gone = {layer.name: layer for layer in before if layer.name not in after}
    new = {layer.name: layer for layer in after if layer.name not in before}
    found: dict[str, str] = {}
    olds, news = _Keyed(), _Keyed()
    for layers, keyed in ((gone, olds), (new, news)):
        for layer in layers.values():
            keyed.put(layer.name, (_meaning(layer), layer.position))
    for key in olds.fresh():
        _pair(olds, news, key, found)
    olds, news, come = _Keyed(), _Keyed(), set(found.values())
    for layer in new.values():
        if layer.name not in come:
            news.put(layer.name, (_meaning(layer), layer.inputs))
    waiting = [name for name in gone if name not in found]
    while waiting:  # each match can make the inputs of its consumers equal
        for name in waiting:
            olds.put(name, (_meaning(gone[name]), _mapped(gone[name].inputs, found)))
        paired = [old for key in olds.fresh() if (old := _pair(olds, news, key, found)) is not None]
        readers = dict.fromkeys(reader for old in paired for reader in before.consumers(old))
        waiting = [name for name in readers if name in gone and name not in found]
    return found


class _Keyed:
    """Names by key, and the keys added since `fresh` was called last."""

    def __init__(self) -> None:
        self.names: dict[Hashable, set[str]] = defaultdict(set)
        self._keys: dict[str, Hashable] = {}
        self._fresh: dict[Hashable, None] = {}

    def put(self, name: str, key: Hashable) -> None:
        if name in self._keys:
            self.names[self._keys[name]].discard(name)
            self._fresh[self._keys[name]] = None
        self._keys[name] = key
        self.names[key].add(name)
        self._fresh[key] = None

    def fresh(self) -> list[Hashable]:
        """Keys whose names have changed."""
        keys, self._fresh = list(self._fresh), {}
        return keys


def _pair(olds: _Keyed, news: _Keyed, key: Hashable, found: dict[str, str]) -> str | None:
    """Record the pair of layers if exactly one on each side has `key`. Returns the old name, or None."""
    if key not in news.names or len(olds.names[key]) != 1 or len(news.names[key]) != 1:
        return None
    old = olds.names[key].pop()
    found[old] = news.names[key].pop()
    return old


def _meaning(layer: Layer) -> Hashable:
    spec = layer.activation
    activation = (spec.type, _items(spec.params), _items(spec.attributes), spec.children) if spec is not None else None
    return layer.type, _items(layer.params), activation, _items(layer.attributes), layer.children


def _items(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


def _mapped(inputs: Iterable[Source | None], renamed: Mapping[str, str]) -> tuple[Source | None, ...]:
    return tuple(s if s is None else Source(renamed.get(s.layer, s.layer), s.port) for s in inputs)


def _values(before: Layer, after: Layer) -> tuple[ValueDifference, ...]:
    """Differences in type, parameters, activation and foreign elements."""
    found = [] if before.type == after.type else [ValueDifference("type", before.type, after.type)]
    found += _texts(before.params, after.params)
    one, other = before.activation, after.activation
    if one != other:
        if (one.type if one else None) != (other.type if other else None):
            found.append(ValueDifference("activation", one.type if one else None, other.type if other else None))
        else:
            none = ActivationSpec("")
            found += _texts((one or none).params, (other or none).params, "activation.")
            found += _texts((one or none).attributes, (other or none).attributes, "activation.")
            found += _pieces("activation: kept element", one, other)
    found += _texts(before.attributes, after.attributes)
    return (*found, *_pieces("kept element", before, after))


def _links(
    before: tuple[Source | None, ...], after: tuple[Source | None, ...], renamed: Mapping[str, str]
) -> tuple[ValueDifference, ...]:
    """Inputs with another source; a renamed producer is the same source."""
    found = []
    mapped = _mapped(before, renamed)
    for index in range(max(len(mapped), len(after))):
        one = mapped[index] if index < len(mapped) else None
        other = after[index] if index < len(after) else None
        if one != other:
            old = before[index] if index < len(before) else None
            found.append(
                ValueDifference(f"input {index + 1}", str(old) if old else None, str(other) if other else None)
            )
    return tuple(found)


def _texts(before: Mapping[str, str], after: Mapping[str, str], prefix: str = "") -> tuple[ValueDifference, ...]:
    return tuple(
        ValueDifference(prefix + key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    )


def _pieces(
    what: str, before: Layer | ActivationSpec | None, after: Layer | ActivationSpec | None
) -> tuple[ValueDifference, ...]:
    old = [item.xml for item in before.children] if before is not None else []
    new = [item.xml for item in after.children] if after is not None else []
    return _lists(what, old, new)


def _lists(what: str, old: Sequence[str], new: Sequence[str]) -> tuple[ValueDifference, ...]:
    gone = [ValueDifference(what, text, None) for text in old if text not in new]
    fresh = [ValueDifference(what, None, text) for text in new if text not in old]
    if not gone and not fresh and list(old) != list(new):
        return (ValueDifference(what, "\n".join(old), "\n".join(new)),)
    return (*gone, *fresh)


def _frames(before: Graph, after: Graph) -> tuple[ValueDifference, ...]:
    found: list[ValueDifference] = []
    for key in sorted(before.frames.keys() | after.frames.keys()):
        one, other = before.frames.get(key), after.frames.get(key)
        if one == other:
            continue
        if one is None or other is None:
            frame = one or other
            title = (frame.title if frame is not None else "") or key
            found.append(ValueDifference(title, "frame" if one else None, "frame" if other else None))
            continue
        name = one.title or key
        texts = (("title", one.title, other.title), ("text", one.text, other.text), ("color", one.color, other.color))
        found += [ValueDifference(f"{name}, {part}", old, new) for part, old, new in texts if old != new]
        if one.rect != other.rect:
            found.append(ValueDifference(f"{name}, place", _rect(one), _rect(other)))
        if one.collapsed != other.collapsed:
            found.append(ValueDifference(f"{name}, collapsed", _yes_no(one.collapsed), _yes_no(other.collapsed)))
    return tuple(found)


def _yes_no(on: bool) -> str:
    return "yes" if on else "no"


def _rect(frame: Frame) -> str:
    x, y, width, height = frame.rect
    return f"{x},{y} {width}x{height}"


def _inside(before: Graph, after: Graph, name: str) -> NetworkComparison | None:
    """The comparison of a template's contents; None if they are equal."""
    one, other = before.templates[name], after.templates[name]
    if one == other:
        return None
    return compare(
        Graph(one.layers, name=name, attributes=one.attributes, foreign=one.foreign, frames=one.frames),
        Graph(other.layers, name=name, attributes=other.attributes, foreign=other.foreign, frames=other.frames),
    )


def edit_between(before: Graph, after: Graph, title: str, renamed: Mapping[str, str] | None = None) -> Edit | None:
    """The edit that turns `before` into `after`; None if they differ in foreign elements, which no edit can change.

    Renamed layers are matched by their contents unless `renamed` (before -> after) is given.
    """
    if (before.attributes, before.foreign) != (after.attributes, after.foreign):
        return None
    return Edit(
        title,
        _steps(before.layers, after.layers),
        _steps(before.properties, after.properties),
        _steps(before.frames, after.frames),
        renamed=_renamed(before, after) if renamed is None else renamed,
        templates=_steps(before.templates, after.templates),
    )


def _steps(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, tuple[T | None, T | None]]:
    names = [*before, *(name for name in after if name not in before)]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
