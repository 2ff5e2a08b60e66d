"""Converts the XML tree of a model file into a graph, with a diagnostic for every broken rule of the format.

The meaning of operators (types, parameters, ports, links to missing layers) is checked by inference, not here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from designer.files import limits
from designer.files.xml_text import content, serialize
from designer.files.xml_tree import SPACE, Element, Markup, Text
from designer.graph.arrangement import assumed_box
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.layout import arrange
from designer.graph.model import MAX_NAME, ActivationSpec, Foreign, Frame, Layer, Source, check_layer_name
from designer.graph.template import Template, check_template_name
from designer.texts import tr

T = TypeVar("T")

NAMESPACE = "urn:layerwright:1"
PREFIX = "lw"
ROOT = "NetworkModel"
VERSION = "2"
ROOT_PROPERTIES = ("name", "user_version_tag")
MENDED_BY_SAVING = frozenset({"missing-name", "missing-position", "bad-position"})  # codes of warnings

_POSITION = re.compile(r"\s*(-?\d{1,10})(?:\.\d*)?\s*,\s*(-?\d{1,10})(?:\.\d*)?\s*\Z")
_RECT = re.compile(r"(-?\d{1,10}),(-?\d{1,10}),(\d{1,10}),(\d{1,10})\Z")


@dataclass
class Records:
    """The content of a tree: a graph, unless there is an error, and the lines of its layers.

    The line of a template has the key `<template>/`, those of its layers `<template>/<layer>`.
    """

    graph: Graph | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        code: str,
        message: str,
        line: int,
        *,
        remedy: str,
        layer: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        shown = layer if layer is None or len(layer) <= MAX_NAME else f"{layer[:40]}..."
        self.diagnostics.append(Diagnostic(code, message, severity, layer=shown, line=line, remedy=remedy))


def check_root(root: Element) -> Diagnostic | None:
    """Why the tree is not a model file of a supported version; None if it is."""
    if not root.is_plain(ROOT):
        found = f"'{root.name[:80]}'" if root.name != ROOT else f"a '{ROOT}' of another namespace"
        return Diagnostic(
            "no-root",
            tr(
                "the root element is {found}, but a model file has '{ROOT}' without a namespace", found=found, ROOT=ROOT
            ),
            line=root.line,
            remedy=tr("choose a model file"),
        )
    version = root.attributes.get("version")
    if version != VERSION:
        found = "is missing" if version is None else f"is '{version[:40]}'"
        return Diagnostic(
            "wrong-version",
            tr(
                "the version of the file {found}, but this program reads version {VERSION}",
                found=found,
                VERSION=VERSION,
            ),
            line=root.line,
            remedy=tr("save it as version 2 with the program that wrote it, or use a newer Layerwright"),
        )
    if root.attributes.get(f"xmlns:{PREFIX}", NAMESPACE) != NAMESPACE:
        return Diagnostic(
            "reserved-prefix",
            tr("the prefix '{PREFIX}' must be bound to {NAMESPACE}", PREFIX=PREFIX, NAMESPACE=NAMESPACE),
            line=root.line,
            remedy=tr("choose another prefix for that namespace"),
        )
    return None


def read_records(root: Element, outside: Iterable[Markup] = ()) -> Records:
    """The graph of a tree. `outside` are comments before and after the root; they are kept inside the root."""
    found = Records()
    properties: dict[str, str] = {}
    frames: dict[str, Frame] = {}
    templates: dict[str, Template] = {}
    layers: dict[str, Layer] = {}
    foreign: list[Element | Text | Markup] = list(outside)
    for child in root.children:
        if isinstance(child, Element) and child.is_plain("Layer"):
            _layer(child, layers, found)
        elif isinstance(child, Element) and child.namespace == NAMESPACE and child.local == "Template":
            _template(child, templates, found)
        elif (
            isinstance(child, Element) and child.namespace == NAMESPACE and _extension(child, properties, frames, found)
        ):
            pass
        else:
            foreign.append(child)
    _check_size([layers.values(), *(template.layers for template in templates.values())], root, found)
    _root_properties(root, properties, found)
    if any(d.severity is Severity.ERROR for d in found.diagnostics):
        return found
    own = {*ROOT_PROPERTIES, "version", f"xmlns:{PREFIX}"}
    graph = Graph(
        _placed(layers, root.line, found),
        attributes={k: v for k, v in root.attributes.items() if k not in own},
        foreign=_foreign(foreign, "\t"),
        frames=frames.values(),
        templates=templates.values(),
    )
    graph.properties = properties
    found.graph = graph
    return found


def _check_size(groups: Iterable[Collection[Layer]], root: Element, found: Records) -> None:
    """Check the limits on layers and links; `groups` are the layers of the network and of each template."""
    layers = [layer for group in groups for layer in group]
    if len(layers) > limits.MAX_LAYERS:
        found.add(
            "too-large",
            tr("the network has {count} layers, the limit is {limit}", count=len(layers), limit=limits.MAX_LAYERS),
            root.line,
            remedy=tr("split the network"),
        )
    links = sum(len(layer.inputs) for layer in layers)
    if links > limits.MAX_LINKS:
        found.add(
            "too-large",
            tr("the layers have {links} inputs in total, the limit is {limit}", links=links, limit=limits.MAX_LINKS),
            root.line,
            remedy=tr("split the network"),
        )


def _root_properties(root: Element, properties: dict[str, str], found: Records) -> None:
    for key in ROOT_PROPERTIES:
        if key in root.attributes:
            properties[key] = root.attributes[key]
    if "name" not in properties:
        properties["name"] = "network"
        found.add(
            "missing-name",
            tr("the network has no name; it is named 'network'"),
            root.line,
            remedy=tr("name it in the network's settings"),
            severity=Severity.WARNING,
        )


def _layer(element: Element, layers: dict[str, Layer], found: Records) -> None:
    """Read one `Layer` into `layers`; broken rules are added to `found`."""
    attributes = dict(element.attributes)
    name = attributes.pop("name", None)
    kind = attributes.pop("type", None)
    if name is None:
        found.add("missing-name", tr("a layer has no name"), element.line, remedy=tr("give it a unique name"))
        return
    rule = check_layer_name(name)
    if rule is not None:
        found.add(
            "bad-name", rule, element.line, layer=name, remedy=tr("choose another name, also where it is an input")
        )
        return
    if name in layers:
        first = found.lines[name]
        found.add(
            "duplicate-name",
            tr("two layers have the name '{name}', the first in line {first}", name=name, first=first),
            element.line,
            layer=name,
            remedy=tr("rename one of them"),
        )
        return
    found.lines[name] = element.line
    if not _is_type(kind):
        _bad_type(kind, "layer", element.line, name, found)
        return
    assert kind is not None
    position = _position(attributes.pop("edit_pos", None), element.line, name, found)
    inputs = _sources(attributes.pop("input", ""))
    if len(inputs) > limits.MAX_PORTS:
        found.add(
            "too-large",
            tr("the layer has {count} inputs, the limit is {limit}", count=len(inputs), limit=limits.MAX_PORTS),
            element.line,
            layer=name,
            remedy=tr("concatenate or add them in several steps"),
        )
    params: dict[str, str] | None = None
    activation: ActivationSpec | None = None
    foreign: list[Element | Text | Markup] = []
    for child in element.children:
        if isinstance(child, Element) and child.is_plain("Parameters"):
            params = _once("Parameters", params, _params(child, foreign), child, name, found)
        elif isinstance(child, Element) and child.is_plain("Activation"):
            activation = _once("Activation", activation, _activation(child, name, found), child, name, found)
        else:
            foreign.append(child)
    layers[name] = Layer(name, kind, position, inputs, params or {}, activation, attributes, _foreign(foreign, "\t\t"))


def _placed(layers: dict[str, Layer], line: int, found: Records) -> Collection[Layer]:
    """The layers, arranged from left to right if none of several has a position, which is common in files written by a script."""
    others = [d for d in found.diagnostics if d.code != "missing-position" or d.layer is None]
    if len(found.diagnostics) - len(others) < len(layers) or not 1 < len(layers) <= limits.MAX_ARRANGED:
        return layers.values()
    places = arrange(Graph(layers.values()), {name: assumed_box(layer) for name, layer in layers.items()})
    found.diagnostics = others
    found.add(
        "missing-position",
        tr("no layer has a position; they are arranged from left to right"),
        line,
        remedy=tr("save the file to keep the positions"),
        severity=Severity.INFO,
    )
    return [replace(layer, position=places[name]) for name, layer in layers.items()]


def _template(element: Element, templates: dict[str, Template], found: Records) -> None:
    """Read one `lw:Template` into `templates`; broken rules are added to `found`."""
    attributes = dict(element.attributes)
    attributes.pop(f"xmlns:{element.name.partition(':')[0]}", None)
    name = attributes.pop("name", None)
    if name is None:
        found.add("missing-name", tr("a template has no name"), element.line, remedy=tr("give it a unique name"))
        return
    rule = check_template_name(name)
    if rule is not None:
        found.add("bad-name", rule, element.line, remedy=tr("choose another name, also where the template is used"))
        return
    if name in templates:
        first = found.lines[f"{name}/"]
        message = tr("two templates have the name '{name}', the first in line {first}", name=name, first=first)
        found.add("duplicate-name", message, element.line, remedy=tr("rename one of them"))
        return
    found.lines[f"{name}/"] = element.line
    inside = Records()
    layers: dict[str, Layer] = {}
    frames: dict[str, Frame] = {}
    foreign: list[Element | Text | Markup] = []
    for child in element.children:
        if isinstance(child, Element) and child.is_plain("Layer"):
            _layer(child, layers, inside)
        elif isinstance(child, Element) and _is_frame(child) and _frame(child, frames, inside):
            pass
        else:
            foreign.append(child)
    placed = _placed(layers, element.line, inside)
    found.lines.update({f"{name}/{layer}": line for layer, line in inside.lines.items()})
    found.diagnostics.extend(
        replace(d, message=f"in the template '{name}': {d.message}", layer=None, template=name, inner=d.layer)
        for d in inside.diagnostics
    )
    made = Template(name, tuple(placed), _foreign(foreign, "\t\t"), attributes, tuple(frames.values()))
    for count, ports in ((len(made.inputs), "inputs"), (len(made.outputs), "outputs")):
        if count > limits.MAX_PORTS:
            message = tr(
                "the template '{name}' has {count} {ports}, the limit is {limit}",
                name=name,
                count=count,
                ports=ports,
                limit=limits.MAX_PORTS,
            )
            found.add("too-large", message, element.line, remedy=tr("split the template"))
    templates[name] = made


def _once(what: str, old: T | None, new: T, element: Element, layer: str, found: Records) -> T:
    if old is not None:
        found.add(
            "duplicate-element",
            tr("the layer has more than one '{what}'", what=what),
            element.line,
            layer=layer,
            remedy=tr("keep one '{what}'", what=what),
        )
    return new


def _activation(element: Element, layer: str, found: Records) -> ActivationSpec:
    attributes = dict(element.attributes)
    kind = attributes.pop("type", None)
    if not _is_type(kind):
        _bad_type(kind, "activation", element.line, layer, found)
    params: dict[str, str] | None = None
    foreign: list[Element | Text | Markup] = []
    for child in element.children:
        if isinstance(child, Element) and child.is_plain("Parameters"):
            params = _once("Parameters", params, _params(child, foreign), child, layer, found)
        else:
            foreign.append(child)
    return ActivationSpec(kind or "", params or {}, attributes, _foreign(foreign, "\t\t\t"))


def _params(element: Element, foreign: list[Element | Text | Markup]) -> dict[str, str]:
    """The attributes of a `Parameters` element. Its other content is added to `foreign`."""
    foreign.extend(element.children)
    return dict(element.attributes)


def _is_type(kind: str | None) -> bool:
    return kind is not None and bool(kind.strip()) and len(kind) <= MAX_NAME


def _bad_type(kind: str | None, what: str, line: int, layer: str, found: Records) -> None:
    if kind is not None and kind.strip():
        found.add(
            "bad-type",
            tr(
                "the type of the {what} has {count} characters, the limit is {MAX_NAME}",
                what=what,
                count=len(kind),
                MAX_NAME=MAX_NAME,
            ),
            line,
            layer=layer,
            remedy=tr("shorten it"),
        )
    else:
        found.add(
            "missing-type", tr("the {what} has no type", what=what), line, layer=layer, remedy=tr('write type="..."')
        )


def _position(text: str | None, line: int, layer: str, found: Records) -> tuple[int, int]:
    match = _POSITION.match(text) if text is not None else None
    if match is not None:
        x, y = int(match[1]), int(match[2])
        if max(abs(x), abs(y)) <= limits.MAX_POSITION:
            return x, y
    what = "the layer has no position" if text is None else f"the position '{text[:40]}' is not two numbers as in 16,32"
    found.add(
        "missing-position" if text is None else "bad-position",
        tr("{what}; it is placed at 0,0", what=what),
        line,
        layer=layer,
        remedy=tr("move the layer and save"),
        severity=Severity.WARNING,
    )
    return 0, 0


def _sources(text: str) -> tuple[Source | None, ...]:
    parts = [part.strip() for part in text.split(",")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(Source.parse(part) if part else None for part in parts)


def _extension(element: Element, properties: dict[str, str], frames: dict[str, Frame], found: Records) -> bool:
    """Read an element of our namespace. Returns False if it is unknown or invalid, and therefore preserved as foreign."""
    if element.local == "Document":
        return _document(element, properties)
    return _is_frame(element) and _frame(element, frames, found)


def _is_frame(element: Element) -> bool:
    return element.namespace == NAMESPACE and element.local == "Frame"


def _frame(element: Element, frames: dict[str, Frame], found: Records) -> bool:
    """Read a comment frame. Returns False if it is invalid."""
    attributes = dict(element.attributes)
    attributes.pop(f"xmlns:{element.name.partition(':')[0]}", None)
    match = _RECT.match(attributes.pop("rect", ""))
    name = attributes.pop("id", "")
    title, color = attributes.pop("title", ""), attributes.pop("color", "")
    collapsed = attributes.get("collapsed") == "true" and bool(attributes.pop("collapsed"))
    folded = attributes.pop("folded", "")
    plain = all(isinstance(child, Text) for child in element.children)
    rect = (int(match[1]), int(match[2]), int(match[3]), int(match[4])) if match is not None else None
    far = rect is not None and max(map(abs, rect)) > limits.MAX_POSITION
    if rect is None or far or not name or name in frames or attributes or not plain:
        found.add(
            "bad-frame",
            tr("the comment frame '{title}' is invalid; it is preserved but not shown", title=title[:40]),
            element.line,
            remedy=tr(
                "give it a unique id and a rect as x,y,width,height, each within {limit:,}, and nothing else",
                limit=limits.MAX_POSITION,
            ),
            severity=Severity.WARNING,
        )
        return False
    frames[name] = Frame(name, title, element.text(), color, rect, collapsed, folded)
    return True


def _document(element: Element, properties: dict[str, str]) -> bool:
    """Read `lw:Document`: properties of the document in addition to those of the root."""
    read: dict[str, str] = {}
    for child in element.children:
        if isinstance(child, Text) and not child.text.strip(SPACE):
            continue
        if not isinstance(child, Element) or child.namespace != NAMESPACE or child.local != "Property":
            return False
        name = child.attributes.get("name", "")
        known = set(child.attributes) == {"name"} and all(isinstance(c, Text) for c in child.children)
        if not known or not name or name in ROOT_PROPERTIES or name in read or name in properties:
            return False
        read[name] = child.text()
    if element.attributes.keys() - {f"xmlns:{element.name.partition(':')[0]}"}:
        return False
    properties.update(read)
    return True


def _foreign(items: Iterable[Element | Text | Markup], indent: str) -> tuple[Foreign, ...]:
    """What is kept as it was. White space between is dropped; texts that follow each other become one."""
    kept: list[Foreign] = []
    text: list[str] = []
    for item in items:
        if isinstance(item, Text) and not item.cdata:
            stripped = content(item.text.strip(SPACE))
            if stripped:
                text.append(stripped)
            continue
        if text:
            kept.append(Foreign(f"\n{indent}".join(text)))
            text.clear()
        kept.append(Foreign(serialize(item)))
    if text:
        kept.append(Foreign(f"\n{indent}".join(text)))
    return tuple(kept)
