"""The lines of a recovery journal: one JSON object each behind its checksum, and graphs as plain data.

A record holds the state after a change of whatever the change touched, not the change itself. So a record stands on its own:
one that is damaged takes only its own values with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from zlib import crc32

from designer.files import limits
from designer.files.settings import ENGINE_NAME, LAYOUTS, PRECISIONS, Settings
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source, check_layer_name
from designer.graph.template import Template, check_template_name

T = TypeVar("T")
FORMAT = 1
_DEFAULTS = Settings()
_CHOICES = {"precision": PRECISIONS, "layout": LAYOUTS}


def line(data: Mapping[str, Any]) -> bytes:
    """One record as it stands in the file."""
    return checked(_dense(data))


def checked(text: str) -> bytes:
    body = text.encode("ascii")
    return b"%08x %s\n" % (crc32(body), body)


def read_line(data: bytes) -> dict[str, Any] | None:
    """The record in a line; None for one that is torn or damaged."""
    if len(data) < 11 or data[8:9] != b" " or not data.endswith(b"\n"):
        return None
    body = data[9:-1]
    try:
        if int(data[:8], 16) != crc32(body):
            return None
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


@dataclass(frozen=True)
class Snapshot:
    """The parts of a graph at one moment. Taking it only collects references, for layers never change."""

    layers: tuple[Layer, ...]
    properties: dict[str, str]
    attributes: dict[str, str] = field(default_factory=dict)
    foreign: tuple[Foreign, ...] = ()
    frames: tuple[Frame, ...] = ()
    templates: tuple[Template, ...] = ()

    @classmethod
    def of(cls, graph: Graph) -> Snapshot:
        return cls(
            tuple(graph),
            dict(graph.properties),
            dict(graph.attributes),
            graph.foreign,
            tuple(graph.frames.values()),
            tuple(graph.templates.values()),
        )

    @property
    def empty(self) -> bool:
        """Whether it is a new network: nothing needs to be kept of it."""
        return not (self.layers or self.attributes or self.foreign or self.frames or self.templates)

    def line(self, at: int, settings: Mapping[str, Any] | None = None) -> bytes:
        """The record that stands for the whole graph, and the settings that are not saved, after record `at`.

        A thread does this, and gives way to the window's thread again and again.
        """
        head = {
            "base": at,
            "properties": self.properties,
            "attributes": self.attributes,
            "foreign": [item.xml for item in self.foreign],
            "frames": {frame.id: _frame_data(frame) for frame in self.frames},
            "templates": {template.name: _template_data(template) for template in self.templates},
            "settings": dict(settings or {}),
        }
        return checked(_joined(head, {layer.name: layer for layer in self.layers}, gently=True))


@dataclass(frozen=True)
class Change:
    """The values that are there after a change, None for what is gone. Collecting them takes no time, writing them does."""

    layers: Mapping[str, Layer | None]
    moved: Mapping[str, tuple[int, int]]
    properties: Mapping[str, str | None]
    frames: Mapping[str, Frame | None]
    templates: Mapping[str, Template | None]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, graph: Graph, change: ChangeSet) -> Change:
        """What `change`, which was just made to `graph`, touched."""
        whole = change.added | change.rewired | change.reconfigured | change.redrawn
        return cls(
            {n: graph.get(n) for n in sorted(whole | change.removed)},
            {n: graph[n].position for n in sorted(change.moved - whole) if n in graph},
            {k: graph.properties.get(k) for k in sorted(change.properties)},
            {k: graph.frames.get(k) for k in sorted(change.frames)},
            {k: graph.templates.get(k) for k in sorted(change.templates)},
            settings_data(change.settings),
        )

    def __bool__(self) -> bool:
        return any((self.layers, self.moved, self.properties, self.frames, self.templates, self.settings))

    @property
    def weight(self) -> int:
        """How many layers have to be written; a place is little beside one."""
        inside = sum(len(template.layers) for template in self.templates.values() if template is not None)
        return inside + sum(layer is not None for layer in self.layers.values()) + len(self.moved) // 32

    def line(self, number: int, *, gently: bool = False) -> bytes:
        """The record with this number. `gently`: in a thread, see `Snapshot.line`."""
        data = {
            "moved": self.moved,
            "properties": self.properties,
            "frames": {k: None if frame is None else _frame_data(frame) for k, frame in self.frames.items()},
            "templates": {k: None if t is None else _template_data(t) for k, t in self.templates.items()},
            "settings": self.settings,
        }
        head = {"n": number, "time": round(time.time(), 2), **{key: part for key, part in data.items() if part}}
        return checked(_joined(head, self.layers, gently=gently))


def _joined(head: Mapping[str, Any], layers: Mapping[str, Layer | None], *, gently: bool) -> str:
    """The JSON of a record that has `head` and these layers."""
    parts = []
    for number, (name, layer) in enumerate(layers.items()):
        if gently and number % 16 == 0:
            time.sleep(0)
        parts.append(f"{json.dumps(name)}:{'null' if layer is None else _dense(_layer_data(layer))}")
    text = _dense(head)
    return f'{text[:-1]},"layers":{{{",".join(parts)}}}}}' if parts else text


def _dense(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


class State:
    """A graph as it is put together from records. What a record holds is checked before any of it is taken over."""

    def __init__(self) -> None:
        self.layers: dict[str, Layer] = {}
        self.properties: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.foreign: tuple[Foreign, ...] = ()
        self.frames: dict[str, Frame] = {}
        self.templates: dict[str, Template] = {}
        self.settings: dict[str, Any] = {}  # fields of the document's settings that were changed

    def start(self, graph: Graph) -> None:
        """Begin with this graph."""
        self.layers = dict(graph.layers)
        self.properties, self.attributes = dict(graph.properties), dict(graph.attributes)
        self.foreign, self.frames, self.templates = graph.foreign, dict(graph.frames), dict(graph.templates)

    def base(self, record: Mapping[str, Any]) -> None:
        """Begin with the graph of a base record. Raises ValueError for one that is not as we write it."""
        fresh = State()
        fresh.attributes = _texts(record.get("attributes"))
        fresh.foreign = tuple(Foreign(_text(item)) for item in _list(record.get("foreign")))
        fresh.apply(record)
        self.__dict__.update(fresh.__dict__)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Make a record's values true. Raises ValueError for one that is not as we write it; nothing is changed then."""
        layers = _entries(record, "layers", _read_layer, _layer_name)
        moved = _entries(record, "moved", lambda _, v: _numbers(v, 2), _layer_name)
        properties = _entries(record, "properties", lambda _, v: _text(v), _text)
        frames = _entries(record, "frames", _read_frame, _text)
        templates = _entries(record, "templates", _read_template, _template_name)
        settings = {key: _setting(key, value) for key, value in _map(record.get("settings")).items()}
        if len(self.layers) + len(layers) > 2 * limits.MAX_LAYERS:
            raise ValueError("too many layers")
        _put(self.layers, layers)
        for name, place in moved.items():
            if place is not None and name in self.layers:
                old = self.layers[name]
                self.layers[name] = Layer(
                    name,
                    old.type,
                    (place[0], place[1]),
                    old.inputs,
                    old.params,
                    old.activation,
                    old.attributes,
                    old.children,
                )
        _put(self.properties, properties)
        _put(self.frames, frames)
        _put(self.templates, templates)
        self.settings.update(settings)

    def graph(self) -> Graph:
        made = Graph(
            self.layers.values(),
            attributes=self.attributes,
            foreign=self.foreign,
            frames=self.frames.values(),
            templates=self.templates.values(),
        )
        made.properties = {"name": "network", **self.properties}
        return made


def settings_data(settings: Mapping[str, object]) -> dict[str, Any]:
    """Fields of the document's settings as plain data."""
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in settings.items()}


# --- writing ---------------------------------------------------------------------------------------------------------


def _layer_data(layer: Layer) -> dict[str, Any]:
    data: dict[str, Any] = {"type": layer.type, "at": layer.position}
    if layer.inputs:
        data["in"] = [str(source) if source is not None else None for source in layer.inputs]
    if layer.params:
        data["params"] = dict(layer.params)
    if layer.activation is not None:
        spec = layer.activation
        data["act"] = {"type": spec.type, "params": dict(spec.params)}
        data["act"].update(_foreign_data(spec.attributes, spec.children))
    data.update(_foreign_data(layer.attributes, layer.children))
    return data


def _foreign_data(attributes: Mapping[str, str], children: Iterable[Foreign]) -> dict[str, Any]:
    data: dict[str, Any] = {"attributes": dict(attributes)} if attributes else {}
    inside = [item.xml for item in children]
    return {**data, "children": inside} if inside else data


def _frame_data(frame: Frame) -> list[Any]:
    return [
        frame.title,
        frame.text,
        frame.color,
        frame.rect,
        *([frame.collapsed, frame.folded] if frame.collapsed or frame.folded else []),
    ]


def _template_data(template: Template) -> dict[str, Any]:
    return {
        "layers": {layer.name: _layer_data(layer) for layer in template.layers},
        **({"frames": {frame.id: _frame_data(frame) for frame in template.frames}} if template.frames else {}),
        **_foreign_data(template.attributes, template.foreign),
    }


# --- reading ---------------------------------------------------------------------------------------------------------


def _entries(
    record: Mapping[str, Any], key: str, read: Callable[[str, Any], T], name: Callable[[Any], str]
) -> dict[str, T | None]:
    return {name(k): None if v is None else read(k, v) for k, v in _map(record.get(key)).items()}


def _put(target: dict[str, T], values: Mapping[str, T | None]) -> None:
    for key, value in values.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _read_layer(name: str, value: Any) -> Layer:
    data = _map(value)
    x, y = _numbers(data.get("at"), 2)
    sources = tuple(None if s is None else Source.parse(_text(s)) for s in _list(data.get("in")))
    spec = data.get("act")
    activation = None
    if spec is not None:
        inner = _map(spec)
        activation = ActivationSpec(_text(inner.get("type")), _texts(inner.get("params")), *_read_foreign(inner))
    params, foreign = _texts(data.get("params")), _read_foreign(data)
    return Layer(name, _text(data.get("type")), (x, y), sources, params, activation, *foreign)


def _read_foreign(data: Mapping[str, Any]) -> tuple[dict[str, str], tuple[Foreign, ...]]:
    return _texts(data.get("attributes")), tuple(Foreign(_text(item)) for item in _list(data.get("children")))


def _read_frame(key: str, value: Any) -> Frame:
    values = _list(value)
    title, text, color, rect, collapsed, folded = _list([*values, False, ""] if len(values) == 4 else values, 6)
    x, y, width, height = _numbers(rect, 4)
    return Frame(key, _text(title), _text(text), _text(color), (x, y, width, height), collapsed is True, _text(folded))


def _read_template(name: str, value: Any) -> Template:
    data = _map(value)
    layers = tuple(_read_layer(_layer_name(k), v) for k, v in _map(data.get("layers")).items())
    attributes, foreign = _read_foreign(data)
    frames = tuple(_read_frame(_text(k), v) for k, v in _map(data.get("frames")).items())
    return Template(name, layers, foreign, attributes, frames)


def _layer_name(value: Any) -> str:
    return _named(value, check_layer_name)


def _template_name(value: Any) -> str:
    return _named(value, check_template_name)


def _named(value: Any, check: Callable[[str], str | None]) -> str:
    rule = check(_text(value))
    if rule is not None:
        raise ValueError(rule)
    return str(value)


def _setting(key: str, value: Any) -> Any:
    """A field of the settings, of the kind that it has there; its meaning is judged where it is used."""
    default = getattr(_DEFAULTS, key)  # AttributeError: there is no such field
    if key == "random_seed":
        fits = value is None or type(value) is int
    elif key == "engine":
        fits = isinstance(value, str) and ENGINE_NAME.fullmatch(value) is not None
    elif isinstance(default, Mapping):
        kind = bool if key == "profiling_sections" else str
        fits = isinstance(value, dict) and all(type(v) is kind for v in value.values())
    else:
        fits = type(value) is type(default) and value in _CHOICES.get(key, (value,))
    if not fits:
        raise ValueError(f"not a value of the setting {key}")
    return value


def _map(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _list(value: Any, length: int | None = None) -> list[Any]:
    found = [] if value is None else value
    if not isinstance(found, list) or (length is not None and len(found) != length):
        raise ValueError("not a list as it should be")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > limits.MAX_TEXT:
        raise ValueError("not a text")
    return value


def _texts(value: Any) -> dict[str, str]:
    return {k: _text(v) for k, v in _map(value).items()}


def _numbers(value: Any, length: int) -> list[int]:
    found = _list(value, length)
    if not all(type(v) is int and abs(v) <= limits.MAX_POSITION for v in found):
        raise ValueError("not whole numbers")
    return found


def lines(data: bytes) -> Iterator[bytes]:
    """The lines of a journal with their ends; the last one may have none."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end
