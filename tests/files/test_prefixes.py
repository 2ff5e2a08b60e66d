"""Prefixes of XML namespaces: each means what the innermost declaration says, and ours is declared wherever it is used."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from designer.files.document import parse_document, write_document
from designer.files.reader import NAMESPACE
from designer.files.xml_tree import Element, parse_xml
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer

NOTE = (Foreign("<lw:Note>n</lw:Note>"),)
USES = {  # where a document can use the prefix
    "an attribute of a layer": Graph([Layer("a", "identity", attributes={"lw:x": "1"})]),
    "a parameter": Graph([Layer("a", "identity", params={"lw:x": "1"})]),
    "an element of a layer": Graph([Layer("a", "identity", children=NOTE)]),
    "an attribute of an activation": Graph(
        [Layer("a", "identity", activation=ActivationSpec("relu", attributes={"lw:x": "1"}))]
    ),
    "a parameter of an activation": Graph([Layer("a", "identity", activation=ActivationSpec("relu", {"lw:x": "1"}))]),
    "an element of an activation": Graph([Layer("a", "identity", activation=ActivationSpec("relu", children=NOTE))]),
    "a frame": Graph([Layer("a", "identity")], frames=[Frame("f", "part", rect=(0, 0, 10, 10))]),
}


@pytest.mark.parametrize("graph", USES.values(), ids=USES)
def test_the_prefix_is_declared_where_it_is_used(graph: Graph) -> None:
    data = write_document(graph)
    ET.fromstring(data)  # refuses prefixes that are not declared
    assert f'xmlns:lw="{NAMESPACE}"'.encode() in data
    assert parse_document(data).graph == graph


def test_the_prefix_is_not_declared_where_nothing_uses_it() -> None:
    assert b"xmlns" not in write_document(Graph([Layer("a", "identity", activation=ActivationSpec("relu"))]))


def test_namespaces_are_those_of_the_innermost_declaration() -> None:
    root, _ = parse_xml(
        b'<r xmlns="urn:1" xmlns:p="urn:p1"><p:a xmlns:p="urn:p2"><p:b /><c xmlns="" /></p:a><p:d /><e /></r>'
    )

    def namespaces(element: Element) -> dict[str, str]:
        found = {element.local: element.namespace}
        for child in element.children:
            if isinstance(child, Element):
                found |= namespaces(child)
        return found

    assert namespaces(root) == {"r": "urn:1", "a": "urn:p2", "b": "urn:p2", "c": "", "d": "urn:p1", "e": "urn:1"}
