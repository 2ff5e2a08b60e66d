"""The lines of a recovery journal: a checksum and a JSON object each, with graphs as plain data.

A record stores the values after a change of everything that the change touched, not the change itself. Records are therefore
independent: a damaged one loses only its own values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Annotated, Any, TypeVar
from zlib import crc32

import msgspec
from msgspec import Meta, Struct, field

from designer.files import limits
from designer.files.json_text import decode, encode
from designer.files.settings import ENGINE_NAME, LAYOUTS, PRECISIONS, Settings
from designer.files.variants import Variant
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source, check_layer_name
from designer.graph.template import Template, check_template_name

R = TypeVar("R")
T = TypeVar("T")
FORMAT = 1
_DEFAULTS = Settings()
_CHOICES = {"precision": PRECISIONS, "layout": LAYOUTS}


Text = Annotated[str, Meta(max_length=limits.MAX_TEXT)]
Texts = dict[str, Text]
Position = Annotated[int, Meta(ge=-limits.MAX_POSITION, le=limits.MAX_POSITION)]
Count = Annotated[int, Meta(ge=0)]


class _Foreign(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Unknown parts of a document."""

    attributes: Texts = {}
    children: tuple[Text, ...] = ()


class ActivationRecord(_Foreign, frozen=True, kw_only=True, omit_defaults=True):
    type: Text
    params: Texts = {}


class LayerRecord(_Foreign, frozen=True, kw_only=True, omit_defaults=True):
    type: Text
    at: tuple[Position, Position]
    inputs: tuple[Text | None, ...] = field(name="in", default=())
    params: Texts = {}
    act: ActivationRecord | None = None


class FrameRecord(Struct, frozen=True, array_like=True):
    title: Text
    text: Text
    color: Text
    rect: tuple[Position, Position, Position, Position]
    collapsed: bool = False
    folded: Text = ""


class TemplateRecord(_Foreign, frozen=True, kw_only=True, omit_defaults=True):
    layers: dict[str, LayerRecord] = {}
    frames: dict[str, FrameRecord] = {}


class StateRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The values after a change; None means removed. Settings are checked by `GraphReplay`."""

    properties: dict[str, Text | None] = {}
    moved: dict[str, tuple[Position, Position] | None] = {}
    frames: dict[str, FrameRecord | None] = {}
    templates: dict[str, TemplateRecord | None] = {}
    settings: dict[str, Any] = {}
    layers: dict[str, LayerRecord | None] = {}


class BaseRecord(StateRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A whole graph and the unsaved settings, after record number `base`."""

    base: Count
    attributes: Texts = {}
    foreign: tuple[Text, ...] = ()


class ChangeRecord(StateRecord, frozen=True, kw_only=True, omit_defaults=True):
    n: Count
    time: float = 0.0


class Header(Struct, frozen=True, kw_only=True):
    """The first record."""

    format: int = field(name="layerwright-journal")
    path: str | None = None
    name: str = ""
    digest: str = ""
    empty: bool = False
    opened: float = 0.0
    pid: int = 0


Record = Header | BaseRecord | ChangeRecord


class _Kind(Struct, frozen=True):
    """The kind of a record."""

    format: Any = field(name="layerwright-journal", default=None)
    base: Any = None
    n: Any = None


_KIND = msgspec.json.Decoder(_Kind)
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "format": msgspec.json.Decoder(Header),
    "base": msgspec.json.Decoder(BaseRecord),
    "n": msgspec.json.Decoder(ChangeRecord),
}


def line(record: Record) -> bytes:
    """One record as a line of the file."""
    return checked(encode(record))


def checked(body: bytes) -> bytes:
    return b"%08x %s\n" % (crc32(body), body)


def read_line(data: bytes) -> Record | None:
    """The record in a line; None if it is incomplete, damaged or invalid."""
    if len(data) < 11 or data[8:9] != b" " or not data.endswith(b"\n"):
        return None
    body = data[9:-1]
    try:
        if int(data[:8], 16) != crc32(body):
            return None
        kind = decode(body, _KIND)
        name = next((name for name in _DECODERS if getattr(kind, name) is not None), None)
        record: Record | None = decode(body, _DECODERS[name]) if name is not None else None
    except (ValueError, RecursionError):
        return None
    return record


@dataclass(frozen=True)
class GraphSnapshot:
    """The parts of a graph at one moment. Taking it only copies references, because layers are immutable."""

    layers: tuple[Layer, ...]
    properties: dict[str, str]
    attributes: dict[str, str] = dataclass_field(default_factory=dict)
    foreign: tuple[Foreign, ...] = ()
    frames: tuple[Frame, ...] = ()
    templates: tuple[Template, ...] = ()

    @classmethod
    def of(cls, graph: Graph) -> GraphSnapshot:
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
        """Whether it is a new network without anything to record."""
        return not (self.layers or self.attributes or self.foreign or self.frames or self.templates)

    def line(self, at: int, settings: Mapping[str, Any] | None = None) -> bytes:
        """The record of the whole graph and the unsaved settings, after record `at`.

        Runs in a thread and yields to the GUI thread repeatedly.
        """
        return line(
            BaseRecord(
                base=at,
                properties=dict(self.properties),
                attributes=self.attributes,
                foreign=tuple(item.xml for item in self.foreign),
                frames={frame.id: _frame_record(frame) for frame in self.frames},
                templates={template.name: _template_record(template) for template in self.templates},
                settings=dict(settings or {}),
                layers=_layer_records({layer.name: layer for layer in self.layers}, gently=True),
            )
        )


@dataclass(frozen=True)
class Change:
    """The values after a change, None for removed ones. Collecting them is fast, serializing them is not."""

    layers: Mapping[str, Layer | None]
    moved: Mapping[str, tuple[int, int]]
    properties: Mapping[str, str | None]
    frames: Mapping[str, Frame | None]
    templates: Mapping[str, Template | None]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, graph: Graph, change: ChangeSet) -> Change:
        """The values of `graph` that `change`, which was just applied, touched."""
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
        """The number of layers to write; positions are negligible."""
        inside = sum(len(template.layers) for template in self.templates.values() if template is not None)
        return inside + sum(layer is not None for layer in self.layers.values()) + len(self.moved) // 32

    def line(self, number: int, *, gently: bool = False) -> bytes:
        """The record with this number. `gently`: in a thread that yields, see `GraphSnapshot.line`."""
        return line(
            ChangeRecord(
                n=number,
                time=round(time.time(), 2),
                moved=dict(self.moved),
                properties=dict(self.properties),
                frames={k: None if frame is None else _frame_record(frame) for k, frame in self.frames.items()},
                templates={k: None if t is None else _template_record(t) for k, t in self.templates.items()},
                settings=dict(self.settings),
                layers=_layer_records(self.layers, gently=gently),
            )
        )


def _layer_records(layers: Mapping[str, Layer | None], *, gently: bool) -> dict[str, LayerRecord | None]:
    found: dict[str, LayerRecord | None] = {}
    for number, (name, layer) in enumerate(layers.items()):
        if gently and number % 16 == 0:
            time.sleep(0)
        found[name] = None if layer is None else _layer_record(layer)
    return found


class GraphReplay:
    """Rebuilds a graph from records. A record is checked completely before any of it is applied."""

    def __init__(self) -> None:
        self.layers: dict[str, Layer] = {}
        self.properties: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.foreign: tuple[Foreign, ...] = ()
        self.frames: dict[str, Frame] = {}
        self.templates: dict[str, Template] = {}
        self.settings: dict[str, Any] = {}  # changed fields of the document's settings

    def start(self, graph: Graph) -> None:
        """Start from this graph."""
        self.layers = dict(graph.layers)
        self.properties, self.attributes = dict(graph.properties), dict(graph.attributes)
        self.foreign, self.frames, self.templates = graph.foreign, dict(graph.frames), dict(graph.templates)

    def base(self, record: BaseRecord) -> None:
        """Start from the graph of a base record. Raises ValueError for an invalid record."""
        fresh = GraphReplay()
        fresh.attributes = dict(record.attributes)
        fresh.foreign = tuple(Foreign(item) for item in record.foreign)
        fresh.apply(record)
        self.__dict__.update(fresh.__dict__)

    def apply(self, record: StateRecord) -> None:
        """Apply the values of a record. Raises ValueError for an invalid record and changes nothing then."""
        for name in (*record.layers, *record.moved):
            _check(name, check_layer_name)
        for name in record.templates:
            _check(name, check_template_name)
        layers = _each(record.layers, _layer)
        frames = _each(record.frames, _frame)
        templates = _each(record.templates, _template)
        settings = {key: _setting(key, value) for key, value in record.settings.items()}
        if len(self.layers) + len(layers) > 2 * limits.MAX_LAYERS:
            raise ValueError("too many layers")
        _put(self.layers, layers)
        for name, place in record.moved.items():
            if place is not None and name in self.layers:
                self.layers[name] = replace(self.layers[name], position=place)
        _put(self.properties, record.properties)
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
    return {key: msgspec.to_builtins(value) for key, value in settings.items()}


# --- writing ---------------------------------------------------------------------------------------------------------


def _layer_record(layer: Layer) -> LayerRecord:
    spec = layer.activation
    act = None
    if spec is not None:
        act = ActivationRecord(
            type=spec.type, params=dict(spec.params), attributes=dict(spec.attributes), children=_xml(spec.children)
        )
    return LayerRecord(
        type=layer.type,
        at=layer.position,
        inputs=tuple(None if source is None else str(source) for source in layer.inputs),
        params=dict(layer.params),
        act=act,
        attributes=dict(layer.attributes),
        children=_xml(layer.children),
    )


def _xml(children: Iterable[Foreign]) -> tuple[str, ...]:
    return tuple(item.xml for item in children)


def _frame_record(frame: Frame) -> FrameRecord:
    return FrameRecord(frame.title, frame.text, frame.color, frame.rect, frame.collapsed, frame.folded)


def _template_record(template: Template) -> TemplateRecord:
    return TemplateRecord(
        layers={layer.name: _layer_record(layer) for layer in template.layers},
        frames={frame.id: _frame_record(frame) for frame in template.frames},
        attributes=dict(template.attributes),
        children=_xml(template.foreign),
    )


# --- reading ---------------------------------------------------------------------------------------------------------


def _each(records: Mapping[str, R | None], made: Callable[[str, R], T]) -> dict[str, T | None]:
    return {name: None if record is None else made(name, record) for name, record in records.items()}


def _put(target: dict[str, T], values: Mapping[str, T | None]) -> None:
    for key, value in values.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _layer(name: str, record: LayerRecord) -> Layer:
    inputs = tuple(None if source is None else Source.parse(source) for source in record.inputs)
    act = record.act
    activation = ActivationSpec(act.type, act.params, act.attributes, _foreign(act)) if act is not None else None
    return Layer(name, record.type, record.at, inputs, record.params, activation, record.attributes, _foreign(record))


def _foreign(record: _Foreign) -> tuple[Foreign, ...]:
    return tuple(Foreign(item) for item in record.children)


def _frame(key: str, record: FrameRecord) -> Frame:
    return Frame(key, record.title, record.text, record.color, record.rect, record.collapsed, record.folded)


def _template(name: str, record: TemplateRecord) -> Template:
    for layer in record.layers:
        _check(layer, check_layer_name)
    layers = tuple(_layer(key, layer) for key, layer in record.layers.items())
    frames = tuple(_frame(key, frame) for key, frame in record.frames.items())
    return Template(name, layers, _foreign(record), record.attributes, frames)


def _check(name: str, check: Callable[[str], str | None]) -> None:
    rule = check(name)
    if rule is not None:
        raise ValueError(rule)


def _setting(key: str, value: Any) -> Any:
    """A field of the settings, checked against its type; its meaning is checked where it is used."""
    default = getattr(_DEFAULTS, key)  # AttributeError for an unknown field
    if key == "variants":
        return msgspec.convert(value, tuple[Variant, ...])
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


def lines(data: bytes) -> Iterator[bytes]:
    """The lines of a journal with their line ends; the last one may have none."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end
