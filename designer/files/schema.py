"""XSD validation: the structure of a model file and the uniqueness of its names."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from designer.graph.diagnostics import Diagnostic
from designer.texts import tr


@lru_cache(maxsize=1)
def _schema() -> Any:
    from lxml import etree

    text = resources.files("resources").joinpath("schema/network_model.xsd").read_bytes()
    return etree.XMLSchema(etree.fromstring(text, _parser()))


def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


def check_schema(data: bytes) -> list[Diagnostic]:
    """Validate against the XSD; diagnostics have the code "schema". `data` has passed `parse_xml`, so it is safe to parse.

    Returns nothing if lxml is not installed, or for the rare document that expat accepts and libxml2 does not (an undeclared
    prefix): the reader checks everything that it relies on.
    """
    try:
        from lxml import etree
    except ImportError:
        return []
    try:
        tree = etree.fromstring(data, _parser())
    except etree.XMLSyntaxError:
        return []
    schema = _schema()
    if schema.validate(tree):
        return []
    return [
        Diagnostic(
            "schema",
            tr("the file violates the schema: {message}", message=entry.message),
            line=entry.line,
            remedy=tr("see resources/schema/network_model.xsd"),
        )
        for entry in schema.error_log
    ]
