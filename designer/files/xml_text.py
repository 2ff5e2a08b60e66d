"""XML as text: escaping as in the 2022 tool, and serialization of preserved elements."""

from __future__ import annotations

import re

from designer.files.xml_tree import Element, Markup, Text

_ATTRIBUTE = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#09;", "\n": "&#10;", "\r": "&#13;"}
_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE_SPECIAL = re.compile(r'[&<>"\t\n\r]')
_TEXT_SPECIAL = re.compile(r"[&<>\r]")


def attribute(text: str) -> str:
    """`text` escaped for an attribute value in double quotes."""
    return _ATTRIBUTE_SPECIAL.sub(lambda m: _ATTRIBUTE[m[0]], text)


def content(text: str) -> str:
    """`text` escaped as character data."""
    return _TEXT_SPECIAL.sub(lambda m: _TEXT[m[0]], text)


def serialize(item: Element | Text | Markup) -> str:
    """The item as XML, including its white space. Parsing the result gives an equal item."""
    if isinstance(item, Markup):
        return item.xml
    if isinstance(item, Text):
        return f"<![CDATA[{item.text}]]>" if item.cdata else content(item.text)
    start = "".join([f"<{item.name}", *(f' {k}="{attribute(v)}"' for k, v in item.attributes.items())])
    if not item.children:
        return f"{start} />"
    inside = "".join(serialize(child) for child in item.children)
    return f"{start}>{inside}</{item.name}>"
