"""Copied layers bring the declarations of their foreign XML prefixes along, wherever they are used in a layer or a template."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.canvas import layer_clipboard
from designer.files.document import parse_document, write_document
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Layer
from designer.graph.template import Template
from designer.graph.template_commands import paste_with_templates

CHILD = (Foreign("<x:note>text</x:note>"),)
PLACES = {
    "an attribute": lambda layer: replace(layer, attributes={**layer.attributes, "x:color": "red"}),
    "a parameter": lambda layer: layer.with_param("x:color", "red"),
    "an element": lambda layer: replace(layer, children=CHILD),
    "an attribute of the activation": lambda layer: replace(layer, activation=ActivationSpec("relu", {}, {"x:a": "1"})),
    "a parameter of the activation": lambda layer: replace(layer, activation=ActivationSpec("relu", {"x:a": "1"})),
    "an element of the activation": lambda layer: replace(layer, activation=ActivationSpec("relu", {}, {}, CHILD)),
}
OTHERS = {
    "nothing": {},
    "the same": {"xmlns:x": "urn:root"},
    "something else": {"xmlns:x": "urn:other", "xmlns:z": "z"},
}


def meaning(own: Layer | Template, root: Graph, *around: Template) -> str | None:
    """What the prefix stands for in a layer or a template."""
    declared = (each.attributes.get("xmlns:x") for each in (own, *around, root))
    return next((urn for urn in declared if urn is not None), None)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("own", ["", "urn:own"])
def test_a_prefix_means_the_same_after_pasting(qapp, place, others, own):
    """In a layer, in a layer of a template and in the template itself; `own`: declared there, against that of the root."""
    declared = {"xmlns:x": own} if own else {}
    used = PLACES[place](Layer("used", "identity", attributes=declared))
    inside = PLACES[place](Layer("inside", "identity", attributes=declared))
    plain = Layer("plain", "identity")
    marked = Template("marked", (plain,), CHILD, declared)
    holding = Template("holding", (inside, Layer("deep", "template", params={"template": "marked"})))
    root = Graph(
        [used, plain, Layer("one", "template", params={"template": "holding"})],
        attributes={"xmlns:x": "urn:root", "xmlns:unused": "urn:unused", "kept": "here"},
        templates=[holding, marked],
    )
    wanted = own or "urn:root"
    layer_clipboard.copy(root, ["used", "plain", "one"])
    assert "unused" not in layer_clipboard.QGuiApplication.clipboard().text()
    part = layer_clipboard.pasted()
    target = Graph([], attributes=OTHERS[others])
    target.apply(paste_with_templates(target, list(part), part.templates.values()))
    reading = parse_document(write_document(target))
    assert reading.graph is not None, reading.diagnostics
    for graph in (target, reading.graph):
        brought = graph.templates["holding"]
        layer = next(each for each in brought.layers if each.name == "inside")
        assert meaning(graph["used"], graph) == wanted
        assert meaning(layer, graph, brought) == wanted
        assert meaning(graph.templates["marked"], graph) == wanted
        assert "xmlns:x" not in graph["plain"].attributes
    redundant = OTHERS[others].get("xmlns:x") == wanted
    assert ("xmlns:x" in target["used"].attributes) is not redundant
    assert ("xmlns:x" in target.templates["marked"].attributes) is not redundant
    again = paste_with_templates(root, list(part), part.templates.values())  # where they came from
    assert not again.templates
