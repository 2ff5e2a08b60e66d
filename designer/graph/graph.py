"""The network: layers by name, their links, and the order in which layers can run.

A `Graph` is changed only by applying an `Edit` (see edits.py), and only `History` does that in the program.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from designer.graph.edits import ChangeSet, Edit
from designer.graph.model import Foreign, Frame, Layer
from designer.graph.template import INSTANCE, PARAMETER, Template, closure

Value = TypeVar("Value")


class Graph:
    """Layers by name with an index of consumers. Equality compares everything that a file stores."""

    def __init__(
        self,
        layers: Iterable[Layer] = (),
        *,
        name: str = "network",
        user_version_tag: str = "1",
        attributes: Mapping[str, str] | None = None,
        foreign: Iterable[Foreign] = (),
        frames: Iterable[Frame] = (),
        templates: Iterable[Template] = (),
    ) -> None:
        self.properties: dict[str, str] = {"name": name, "user_version_tag": user_version_tag}
        self.attributes: dict[str, str] = dict(attributes or {})
        self.foreign: tuple[Foreign, ...] = tuple(foreign)
        self.frames: dict[str, Frame] = {frame.id: frame for frame in frames}
        self.templates: dict[str, Template] = {template.name: template for template in templates}
        self._layers: dict[str, Layer] = {}
        self._consumers: dict[str, dict[str, None]] = {}
        self._types: Counter[str] = Counter()  # of layers, without zeros
        for layer in layers:
            if layer.name in self._layers:
                raise ValueError(f"layer name '{layer.name}' is used twice")
            self._put(layer)

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.properties["name"]

    @property
    def layers(self) -> Mapping[str, Layer]:
        """Layers by name, in the order in which they were added. Read-only."""
        return self._layers

    @property
    def types(self) -> Mapping[str, int]:
        """The number of layers of each type that the network has. Read-only."""
        return self._types

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers.values())

    def __contains__(self, name: object) -> bool:
        return name in self._layers

    def __getitem__(self, name: str) -> Layer:
        return self._layers[name]

    def get(self, name: str) -> Layer | None:
        return self._layers.get(name)

    def inside(self, template: str) -> Graph:
        """The contents of a template as a network, which can use the same templates and XML prefixes."""
        item, templates = self.templates[template], self.templates.values()
        declared = {key: value for key, value in self.attributes.items() if key.startswith("xmlns:")}
        return Graph(item.layers, name=template, attributes=declared, frames=item.frames, templates=templates)

    def instance_counts(self) -> Counter[str]:
        """The number of instances of each template; an instance inside a template counts once."""
        found = Counter(layer.params.get(PARAMETER, "") for layer in self if layer.type == INSTANCE)
        for template in self.templates.values():
            found.update(template.uses())
        return found

    def instances_using(self, templates: Iterable[str]) -> frozenset[str]:
        """The layers that are instances of these templates, or of templates that use them."""
        changed = set(templates)
        touched = {t: not changed.isdisjoint(closure(self.templates, t)) for t in {*self.templates, *changed}}
        return frozenset(x.name for x in self if x.type == INSTANCE and touched.get(x.params.get(PARAMETER, ""), False))

    def consumers(self, name: str) -> tuple[str, ...]:
        """Names of the layers that read from `name`, sorted. `name` itself need not exist."""
        return tuple(sorted(self._consumers.get(name, ())))

    def links(self) -> Iterator[tuple[str, str, str, int]]:
        """Every link as (producer, output port or "", consumer, input index)."""
        for layer in self:
            for index, source in enumerate(layer.inputs):
                if source is not None:
                    yield source.layer, source.port, layer.name, index

    def upstream(self, names: Iterable[str]) -> set[str]:
        """`names` and everything they depend on."""
        found = {n for n in names if n in self._layers}
        waiting = list(found)
        while waiting:
            for source in self._layers[waiting.pop()].inputs:
                if source is not None and source.layer not in found and source.layer in self._layers:
                    found.add(source.layer)
                    waiting.append(source.layer)
        return found

    def downstream(self, names: Iterable[str]) -> set[str]:
        """`names` and everything that depends on them."""
        found = {n for n in names if n in self._layers}
        waiting = list(found)
        while waiting:
            for reader in self._consumers.get(waiting.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    waiting.append(reader)
        return found

    def order(self, names: Iterable[str] | None = None) -> tuple[list[str], list[str]]:
        """(sorted, cyclic): the layers in topological order, and those on or downstream of a cycle.

        With `names`, only these layers and the links between them count. Ties are broken by name, so that equal graphs
        have the same order.
        """
        chosen = sorted(self._layers if names is None else {n for n in names if n in self._layers})
        members = set(chosen)
        waiting = {n: sum(1 for p in self._layers[n].producers() if p in members) for n in chosen}
        ready = deque(n for n in chosen if waiting[n] == 0)
        result: list[str] = []
        while ready:
            name = ready.popleft()
            result.append(name)
            for consumer in sorted(self._consumers.get(name, ())):
                if consumer in members:
                    waiting[consumer] -= 1
                    if waiting[consumer] == 0:
                        ready.append(consumer)
        done = set(result)
        return result, [n for n in chosen if n not in done]

    def loops(self, names: Iterable[str]) -> set[str]:
        """Those of `names` that depend on their own output through links between `names`."""
        members = {n for n in names if n in self._layers}
        found: set[str] = set()
        placed: set[str] = set()
        for start in reversed(self._finished(members)):  # Kosaraju's components, without recursion
            if start in placed:
                continue
            placed.add(start)
            component = [start]
            for name in component:  # it grows during the iteration
                fresh = [p for p in self._layers[name].producers() if p in members and p not in placed]
                placed.update(fresh)
                component += fresh
            if len(component) > 1 or start in self._layers[start].producers():
                found.update(component)
        return found

    def _finished(self, members: set[str]) -> list[str]:
        """`members` in postorder of a depth-first search along the links."""
        seen: set[str] = set()
        done: list[str] = []
        for start in members:
            work = [(start, iter(self._inside(start, members)))] if start not in seen else []
            seen.add(start)
            while work:
                name, rest = work[-1]
                step = next((n for n in rest if n not in seen), None)
                if step is None:
                    done.append(name)
                    work.pop()
                else:
                    seen.add(step)
                    work.append((step, iter(self._inside(step, members))))
        return done

    def _inside(self, name: str, members: set[str]) -> list[str]:
        return [n for n in self._consumers.get(name, ()) if n in members]

    def reaches(self, start: str, goal: str) -> bool:
        """Whether a path of links leads from `start` to `goal` (a layer reaches itself)."""
        seen = {start}
        stack = [start]
        while stack:
            name = stack.pop()
            if name == goal:
                return True
            for consumer in self._consumers.get(name, ()):
                if consumer not in seen:
                    seen.add(consumer)
                    stack.append(consumer)
        return False

    def copy(self) -> Graph:
        """An independent graph; layers are immutable and shared."""
        other = Graph(
            attributes=self.attributes,
            foreign=self.foreign,
            frames=self.frames.values(),
            templates=self.templates.values(),
        )
        other.properties = dict(self.properties)
        other._layers = dict(self._layers)
        other._types = self._types.copy()
        other._consumers = {name: dict(readers) for name, readers in self._consumers.items()}
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self._layers == other._layers
            and self.properties == other.properties
            and self.attributes == other.attributes
            and self.foreign == other.foreign
            and self.frames == other.frames
            and self.templates == other.templates
        )

    __hash__ = None  # type: ignore[assignment]

    # --- changing ----------------------------------------------------------------------------------------------

    def apply(self, edit: Edit) -> ChangeSet:
        """Apply `edit` and return what changed. Raises ValueError if a `before` value of the edit is not the current one."""
        self._check(edit)
        for name, (before, after) in edit.layers.items():
            if after is not None:
                self._put(after)
            elif before is not None:
                self._drop(name)
        _replace(self.properties, edit.properties)
        _replace(self.frames, edit.frames)
        _replace(self.templates, edit.templates)
        return ChangeSet.of(edit)

    def _check(self, edit: Edit) -> None:
        for name, (before, after) in edit.layers.items():
            if self._layers.get(name) != before:
                raise ValueError(f"edit '{edit.title}' cannot be applied: layer '{name}' has changed since")
            if after is not None and after.name != name:
                raise ValueError(f"edit '{edit.title}' stores layer '{after.name}' under '{name}'")
        for name, (template, _) in edit.templates.items():
            if self.templates.get(name) != template:
                raise ValueError(f"edit '{edit.title}' cannot be applied: template '{name}' has changed since")

    def _put(self, layer: Layer) -> None:
        old = self._layers.get(layer.name)
        if old is not None:
            self._unlink(old)
        self._layers[layer.name] = layer
        self._types[layer.type] += 1
        for producer in sorted(layer.producers()):
            self._consumers.setdefault(producer, {})[layer.name] = None

    def _drop(self, name: str) -> None:
        self._unlink(self._layers.pop(name))

    def _unlink(self, layer: Layer) -> None:
        self._types[layer.type] -= 1
        if not self._types[layer.type]:
            del self._types[layer.type]
        for producer in layer.producers():
            readers = self._consumers[producer]
            del readers[layer.name]
            if not readers:
                del self._consumers[producer]


def _replace(present: dict[str, Value], changed: Mapping[str, tuple[Value | None, Value | None]]) -> None:
    """Store the `after` values of an edit; None removes a key."""
    for key, (_, value) in changed.items():
        if value is None:
            present.pop(key, None)
        else:
            present[key] = value
