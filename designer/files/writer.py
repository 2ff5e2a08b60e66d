"""Writes a graph as a model file in canonical form: equal graphs give equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from designer.files.reader import NAMESPACE, PREFIX, ROOT, ROOT_PROPERTIES, VERSION
from designer.files.xml_text import attribute, content
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, unwritable
from designer.graph.template import Template
from designer.texts import tr


def write_tree(graph: Graph) -> str:
    """The document as text. Raises DiagnosticError for characters that XML cannot store."""
    extra = {k: v for k, v in graph.properties.items() if k not in ROOT_PROPERTIES}
    foreign = [f"\t{item.xml}\n" for item in graph.foreign]
    invalid = [text for text in foreign if text.startswith(f"\t<{PREFIX}:")]  # a second frame of an id stays the second
    body = [text for text in foreign if text not in invalid]
    body.extend(_template(graph.templates[key]) for key in sorted(graph.templates))
    if extra:
        body.append(_document(extra))
    body.extend(_frame(graph.frames[key], "\t") for key in sorted(graph.frames))
    body.extend(invalid)
    body.extend(_layer(layer, "\t") for layer in sorted(graph, key=lambda layer: layer.name))
    root = [("name", graph.properties.get("name", "")), ("version", VERSION)]
    if "user_version_tag" in graph.properties:
        root.append(("user_version_tag", graph.properties["user_version_tag"]))
    if _uses_extension(graph, bool(extra)):
        root.append((f"xmlns:{PREFIX}", NAMESPACE))
    root.extend(_sorted_foreign(graph.attributes))
    start = f"<{ROOT}{_attributes(root, None)}"
    if not body:
        return f'<?xml version="1.0"?>\n{start} />\n'
    return "".join(['<?xml version="1.0"?>\n', start, ">\n", *body, f"</{ROOT}>\n"])


def _uses_extension(graph: Graph, extra: bool) -> bool:
    """Whether the prefix must be declared, for our elements or for foreign parts that use it."""
    if extra or graph.frames or graph.templates:
        return True
    prefix = f"{PREFIX}:"
    if any(prefix in item.xml for item in graph.foreign) or any(k.startswith(prefix) for k in graph.attributes):
        return True
    return any(_layer_uses(layer, prefix) for layer in graph)


def _layer_uses(layer: Layer, prefix: str) -> bool:
    activation = layer.activation
    names = [*layer.attributes, *layer.params]
    children = layer.children
    if activation is not None:
        names += [*activation.attributes, *activation.params]
        children += activation.children
    return any(n.startswith(prefix) for n in names) or any(prefix in item.xml for item in children)


def _layer(layer: Layer, indent: str) -> str:
    pairs = [("name", layer.name), ("type", layer.type), ("edit_pos", f"{layer.position[0]},{layer.position[1]}")]
    if layer.inputs:
        pairs.append(("input", ",".join("" if s is None else str(s) for s in layer.inputs)))
    pairs.extend(_sorted_foreign(layer.attributes))
    start = f"{indent}<Layer{_attributes(pairs, layer.name)}"
    body = _params(layer.params, f"{indent}\t", layer.name)
    if layer.activation is not None:
        body += _activation(layer.activation, f"{indent}\t", layer.name)
    body += _foreign(layer.children, f"{indent}\t")
    return f"{start}>\n{body}{indent}</Layer>\n" if body else f"{start} />\n"


def _activation(spec: ActivationSpec, indent: str, layer: str) -> str:
    start = f"{indent}<Activation{_attributes([('type', spec.type), *_sorted_foreign(spec.attributes)], layer)}"
    body = _params(spec.params, f"{indent}\t", layer) + _foreign(spec.children, f"{indent}\t")
    return f"{start}>\n{body}{indent}</Activation>\n" if body else f"{start} />\n"


def _params(params: Mapping[str, str], indent: str, layer: str) -> str:
    return f"{indent}<Parameters{_attributes(sorted(params.items()), layer)} />\n" if params else ""


def _foreign(items: Iterable[Foreign], indent: str) -> str:
    return "".join(f"{indent}{item.xml}\n" for item in items)


def _document(properties: Mapping[str, str]) -> str:
    lines = []
    for name, text in sorted(properties.items()):
        tag = f"{PREFIX}:Property"
        start = f"\t\t<{tag}{_attributes([('name', name)], None)}"
        lines.append(f"{start}>{_content(text, name)}</{tag}>\n" if text else f"{start} />\n")
    return f"\t<{PREFIX}:Document>\n{''.join(lines)}\t</{PREFIX}:Document>\n"


def _frame(frame: Frame, indent: str) -> str:
    rect = ",".join(str(v) for v in frame.rect)
    pairs = [("id", frame.id), ("title", frame.title), ("color", frame.color), ("rect", rect)]
    if frame.collapsed:
        pairs.append(("collapsed", "true"))
    if frame.folded:
        pairs.append(("folded", frame.folded))
    start = f"{indent}<{PREFIX}:Frame{_attributes(pairs, None)}"
    if not frame.text:
        return f"{start} />\n"
    return f"{start}>{_content(frame.text, frame.title)}</{PREFIX}:Frame>\n"


def _template(template: Template) -> str:
    pairs = [("name", template.name), *_sorted_foreign(template.attributes)]
    start = f"\t<{PREFIX}:Template{_attributes(pairs, None)}"
    body = _foreign(template.foreign, "\t\t") + "".join(_frame(frame, "\t\t") for frame in template.frames)
    body += "".join(_layer(layer, "\t\t") for layer in template.layers)
    return f"{start}>\n{body}\t</{PREFIX}:Template>\n" if body else f"{start} />\n"


def _sorted_foreign(attributes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Namespace declarations first, then by name, so that the order does not depend on the graph's history."""
    return sorted(attributes.items(), key=lambda item: (not item[0].startswith("xmlns"), item[0]))


def _attributes(pairs: Iterable[tuple[str, str]], layer: str | None) -> str:
    parts = []
    for key, value in pairs:
        _check(value, key, layer)
        parts.append(f' {key}="{attribute(value)}"')
    return "".join(parts)


def _content(text: str, what: str) -> str:
    _check(text, what, None)
    return content(text)


def _check(text: str, what: str, layer: str | None) -> None:
    bad = unwritable(text)
    if bad is not None:
        raise DiagnosticError.of(
            "unwritable-text",
            tr("'{what}' contains the character {bad}, which XML cannot store", what=what, bad=bad),
            layer=layer,
            parameter=what if layer is not None else None,
            remedy=tr("remove the character"),
        )
