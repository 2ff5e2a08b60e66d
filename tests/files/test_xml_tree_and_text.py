"""Bytes as trees of elements: what is parsed, what is refused in which line, and the text of an element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest
from recorded import check_recorded

from designer.files.xml_text import serialize
from designer.files.xml_tree import Element, Markup, Text, XmlError, parse_xml


def test_a_document_of_exactly_the_largest_size_is_parsed() -> None:
    assert parse_xml(b"<a />", 5)[0].name == "a"
    with pytest.raises(XmlError, match="the file has 5 bytes, the limit is 4") as caught:
        parse_xml(b"<a />", 4)
    assert (caught.value.code, caught.value.line) == ("file-too-large", None)


BOM = b"\xef\xbb\xbf"


BYTES = {
    "nothing": b"",
    "white space": b" \n\t",
    "a byte order mark": BOM + b"<a />",
    "latin 1": b'<?xml version="1.0" encoding="ISO-8859-1"?>\n<a b="\xe4" />',
    "windows": b'<?xml version="1.0" encoding="Windows-1252"?>\n<a b="\x84" />',
    "ascii": b'<?xml version="1.0" encoding="us-ascii"?>\n<a b="x" />',
    "utf-16": '<?xml version="1.0" encoding="UTF-16"?>\n<a b="ä" />'.encode("utf-16"),
    "other letters as utf-8": b'<a>\n<b c="\xe4\xf6" /></a>',
    "other letters as declared utf-8": b'<?xml version="1.0" encoding="UTF-8"?>\n<a>\n<b c="\xe4\xf6" /></a>',
    "other letters after a byte order mark": BOM + b'<a>\n<b c="\xe4\xf6" /></a>',
    "other letters as ascii": b'<?xml version="1.0" encoding="us-ascii"?>\n<a b="\xe4" />',
    "an unknown encoding": b'<?xml version="1.0" encoding="utf-7"?>\n<a />',
    "a long encoding": b'<?xml version="1.0" encoding="' + b"x" * 60 + b'"?>\n<a />',
    "utf-16 that is utf-8": b'<?xml version="1.0" encoding="utf-16"?>\n<a />',
    "a faulty tag in valid utf-8": "<a>\n<ä ö= /></a>".encode(),
    "binary": b"\x89PNG\r\n\x1a\n\0\0",
    "text": b"hello",
    "an equals sign": b"<a>\n<b = /></a>",
    "cut off in a tag": b"<a>\n<b",
    "cut off in an element": b"<a>\n<b />\n",
    "cut off in CDATA": b"<a>\n<![CDATA[ x",
    "cut off in a letter": b"<a>\n\xc3",
    "cut off in a comment": b"<a>\n<!-- x",
    "only a comment": b"\n<!-- x -->\n",
    "two roots": b"<a />\n<b />",
    "an attribute twice": b'<a>\n<b c="1" c="2" /></a>',
    "wrong order of ends": b"<a>\n<b></a></b>",
    "an unknown entity": b"<a>\n&nbsp;</a>",
    "a document type": b"\n<!DOCTYPE a>\n<a />",
    "an entity": b'<!DOCTYPE a [\n<!ENTITY x "y">]>\n<a>&x;</a>',
    "an external entity": b'<!DOCTYPE a SYSTEM "file:///etc/passwd">\n<a />',
    "line ends": b"<a b='1\r\n2\r3\n4\t5'>\r\n1\r2</a>",
    "references": b"<a b='&#13;&#10;&#9;&quot;&apos;&lt;&gt;&amp;'>&#13;&#10;&#9;&quot;&lt;&gt;&amp;]]&gt;</a>",
    "texts": b"<!-- 0 --><a> 1 <![CDATA[2 <]]> 3 <![CDATA[4]]><![CDATA[5]]>6<!-- 7 --><?eight 9?><?ten?></a><!-- 11 --><?twelve?>",
    "namespaces": b'<a xmlns="urn:d" xmlns:p="urn:p"><b xmlns="" xmlns:q="urn:q"><p:c q:d="1" /><xml:e /><r:f /></b><p:g /></a>',
}


def tree(item: Element | Text | Markup) -> Iterator[str]:
    if not isinstance(item, Element):
        yield repr(item)
        return
    yield f"{item.line}: {item.name} {item.attributes} {item.namespace!r} {item.local!r} {item.is_plain(item.name)} {item.text()!r}"
    for child in item.children:
        yield from (f"  {line}" for line in tree(child))


def same(a: object, b: object) -> bool:
    """Whether two parts of trees are equal but for their lines."""
    if isinstance(a, Element) and isinstance(b, Element):
        mine = (a.name, a.attributes, a.scope, len(a.children))
        theirs = (b.name, b.attributes, b.scope, len(b.children))
        return mine == theirs and all(map(same, a.children, b.children))
    return [getattr(a, f.name) for f in fields(a)[:-1]] == [getattr(b, f.name) for f in fields(b)[:-1]]  # type: ignore[arg-type]


def test_bytes_are_parsed_and_refused_as_recorded() -> None:
    found = []
    for title, data in BYTES.items():
        found.append(title)
        try:
            root, outside = parse_xml(data)
        except XmlError as error:
            found += [f"{error.code}, line {error.line}: {error.message} - {error.remedy}", ""]
            continue
        found += [*tree(root), *map(repr, outside), serialize(root), ""]
        assert same(parse_xml(serialize(root).encode())[0], root), title
    check_recorded("documents/xml.txt", "\n".join(found))


def test_prefixes_are_bound_though_the_file_does_not_declare_them() -> None:
    root, _ = parse_xml(b'<a><p:b /><p:c xmlns:p="urn:other" /><xml:d /></a>', prefixes={"p": "urn:p"})
    assert [child.namespace for child in root.children if isinstance(child, Element)] == [
        "urn:p",
        "urn:other",
        "http://www.w3.org/XML/1998/namespace",
    ]
