"""What the reader makes of model files: every diagnostic with its place, the lines of layers, and the file as it is saved again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded import check_recorded

from designer.files import limits
from designer.files.document import Reading, parse_document, read_document, write_document
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.graph.template import Template

DATA = Path(__file__).parents[1] / "data"


FILES = [
    *sorted((DATA / "bad").glob("*.xml")),
    *sorted((DATA / "hostile").glob("*.xml")),
    *sorted((DATA / "good" / "loose").iterdir()),
    DATA / "good" / "everything.xml",
    DATA / "good" / "templates.xml",
]


LONG = "n" * 150


PARTS = {
    "position": [
        f'<Layer name="a" type="t" edit_pos="{text}" />'
        for text in (
            "16,32",
            " 16 , -32 ",
            "1.5,2.75",
            "-1.,2.",
            "16;32",
            "16",
            "16,32,48",
            "1e3,0",
            "1000000000,-1000000000",
            "1000000001,0",
            "0,1000000001",
            "0,-1000000001",
            "-1000000001,0",
            "12345678901,0",
            "words " * 20,
        )
    ]
    + [
        '<Layer name="a" type="t" />',
        '<Layer name="a" type="t" edit_pos="" />',
        '<Layer name="a" type="t" edit_pos="1,2&#10;" />',
    ],
    "input": [
        f'<Layer name="a" type="t" edit_pos="0,0" input="{text}" />'
        for text in ("", ",", "b", " b , c:x ", "b,,c", ",b", "b,,", "b:", ":x", "b:x:y", "b c", " , , d , ")
    ],
    "names and types": [
        '<Layer type="t" />',
        '<Layer name="" type="t" />',
        '<Layer name=" " type="t" />',
        '<Layer name=" a" type="t" />',
        '<Layer name="a,b" type="t" />',
        '<Layer name="a:b" type="t" />',
        '<Layer name="." type="t" />',
        f'<Layer name="{LONG}" type="t" />',
        f'<Layer name="{LONG[:128]}" type="t" edit_pos="1,2" />',
        f'<Layer name="{LONG[:129]}" type="t" edit_pos="1,2" />',
        '<Layer name="a" />',
        '<Layer name="a" type="" />',
        '<Layer name="a" type="  " />',
        '<Layer name="a" type=" t " edit_pos="0,0" />',
        f'<Layer name="a" type="{LONG[:128]}" edit_pos="0,0" />',
        f'<Layer name="a" type="{LONG}" edit_pos="0,0" />',
        '<Layer name="a" type="t" edit_pos="0,0" />\n<Layer name="b" type="t" />\n<Layer name="a" type="u" />',
        '<Layer name="a" />\n<Layer name="a" type="t" />',
        '<Layer name="a" type="t" edit_pos="0,0"><Activation /></Layer>',
        '<Layer name="a" type="t" edit_pos="0,0"><Activation type=" " /></Layer>',
        f'<Layer name="a" type="t" edit_pos="0,0"><Activation type="{LONG}" /></Layer>',
        '<lw:Layer name="a" type="t" />',
        '<Layer xmlns="urn:other" name="a" type="t" />',
        '<x:Layer name="a" type="t" />',
    ],
    "inside a layer": [
        f'<Layer name="a" type="t" edit_pos="0,0" z="1" xmlns:q="urn:q" b="2" q:x="3">{text}</Layer>'
        for text in (
            "",
            " \n ",
            '<Parameters z="1" b="2" /><Activation type="relu" />',
            '<Activation type="relu" z="1" b="2"><Parameters y="1" x="2" /></Activation><Parameters k="" />',
            "<Parameters />",
            '<Parameters k="1">text<b /><!-- c --></Parameters>',
            '<Activation type="relu">text\n more<b>inside</b>last<Parameters k="1"> <i />x</Parameters></Activation>',
            '<Parameters a="1" />\n<Parameters b="2" />\n<Parameters c="3" />',
            '<Activation type="relu" />\n<Activation type="elu" />',
            '<Activation type="relu"><Parameters a="1" />\n<Parameters b="2" /></Activation>',
            " one <Odd a='1'> two </Odd> three <!-- c --> four <![CDATA[ five < ]]> six <?go on?> seven <?stop?>",
            "one<![CDATA[]]>two<![CDATA[ ]]>",
            '<lw:Parameters a="1" /><lw:Activation type="relu" />',
            'one<Parameters k="1" />two<Activation type="relu">three<Parameters k="1" />four</Activation>five',
            "&lt;a&gt; &amp; &quot;b&quot; &#13; &#9;|",
        )
    ],
    "frames": [
        f"<lw:Frame{text}"
        for text in (
            ' id="f" title="T" color="#fff" rect="-1,-2,3,4" />',
            ' id="f" title="T" color="#fff" rect="1,2,3,4"> some text\n </lw:Frame>',
            ' id="f" rect="1,2,3,4" />',
            ' id="" title="T" rect="1,2,3,4" />',
            ' title="T" rect="1,2,3,4" />',
            ' id="f" title="T" />',
            ' id="f" title="T" rect="1,2,-3,4" />',
            ' id="f" title="T" rect="1,2,3,-4" />',
            ' id="f" title="T" rect="1, 2,3,4" />',
            ' id="f" title="T" rect="1,2,3" />',
            ' id="f" title="T" rect="1,2,3,4,5" />',
            ' id="f" title="T" rect="1.0,2,3,4" />',
            ' id="f" title="T" rect="1000000000,-1000000000,1000000000,1000000000" />',
            *(
                f' id="f" title="T" rect="{rect}" />'
                for rect in ("1000000001,0,1,1", "0,-1000000001,1,1", "0,0,1000000001,1", "0,0,1,1000000001")
            ),
            ' id="f" title="T" rect="1,2,3,4" collapsed="true" folded="g" />',
            ' id="f" title="T" rect="1,2,3,4" folded="g" />',
            ' id="f" title="T" rect="1,2,3,4" collapsed="false" />',
            ' id="f" title="T" rect="1,2,3,4" collapsed="" />',
            ' id="f" title="T" rect="1,2,3,4" new="1" />',
            ' id="f" title="T" rect="1,2,3,4"><b /></lw:Frame>',
            ' id="f" title="T" rect="1,2,3,4">text<!-- c --></lw:Frame>',
            ' id="f" title="T" rect="1,2,3,4"><![CDATA[a < b]]></lw:Frame>',
            ' xmlns:lw="urn:layerwright:1" id="f" title="T" rect="1,2,3,4" />',
            f' id="f" title="{"long " * 20}" rect="" />',
            ' id="f" title="one" rect="1,2,3,4" />\n<lw:Frame id="g" rect="0,0,1,1" />\n<lw:Frame id="f" rect="5,6,7,8" />',
        )
    ]
    + [
        '<Frame id="f" title="T" rect="1,2,3,4" />',
        '<p:Frame xmlns:p="urn:layerwright:1" id="f" title="T" rect="1,2,3,4" />',
        '<p:Frame xmlns:p="urn:other" id="f" title="T" rect="1,2,3,4" />',
    ],
    "templates": [
        "<lw:Template />",
        '<lw:Template name="" />',
        '<lw:Template name="a.b" />',
        '<lw:Template name="t" />',
        '<lw:Template name="t" note="1" about="2" />',
        '<lw:Template name="t" />\n<lw:Template name="u" />\n<lw:Template name="t" />',
        '<p:Template xmlns:p="urn:layerwright:1" xmlns:q="urn:q" name="t"><p:Frame id="f" rect="1,2,3,4" /></p:Template>',
        '<Template name="t" />',
        '<lw:Template name="t">\n<Layer name="z" type="template_input" edit_pos="0,0" />\n'
        '<Layer name="b" type="template_output" input="z" edit_pos="1,1" />\n'
        '<lw:Frame id="g" rect="1,2,3,4" /><lw:Frame id="f" rect="1,2,3,4" />\n'
        "stray<!-- c --><lw:Other />\n</lw:Template>",
        '<lw:Template name="t">\n<Layer name="a" />\n<Layer name="b" type="t" />\n<Layer name="b" type="t" />\n'
        '<lw:Frame id="" title="F" rect="1,2,3,4" />\n<Layer type="t" />\n<Layer name="c" type="t"><Activation /></Layer>\n'
        "</lw:Template>",
        '<lw:Template name="t">one<Layer name="a" type="x" edit_pos="0,0" />two</lw:Template>',
        'one<Layer name="a" type="x" edit_pos="0,0" />two<lw:Template name="t" />three',
        '<lw:Template name="t"><lw:Template name="u" /><lw:Document /></lw:Template>',
        '<lw:Template name="t"><Frame id="f" rect="1,2,3,4" /></lw:Template>',
        '<lw:Template name="t"><Layer name="a" type="x" edit_pos="0,0" lw:fold="1" /></lw:Template>'
        '<Layer name="a" type="x" edit_pos="0,0" />',
    ],
    "properties": [
        f"<lw:Document{text}"
        for text in (
            " />",
            '>\n<lw:Property name="b">two\nlines </lw:Property>\n<lw:Property name="a" />\n</lw:Document>',
            ' xmlns:lw="urn:layerwright:1"><lw:Property name="a">1</lw:Property></lw:Document>',
            '><lw:Property name="a">1</lw:Property><!-- c --></lw:Document>',
            '><lw:Property name="a"><![CDATA[x < y]]></lw:Property></lw:Document>',
            '><lw:Property name="a">1</lw:Property></lw:Document><lw:Document><lw:Property name="b">2</lw:Property></lw:Document>',
            '><lw:Property name="a">1</lw:Property></lw:Document><lw:Document><lw:Property name="a">2</lw:Property></lw:Document>',
            '><lw:Property name="user_version_tag">1</lw:Property></lw:Document>',
            '><p:Property xmlns:p="urn:layerwright:1" name="a">1</p:Property></lw:Document>',
        )
    ]
    + ["<Document />", '<lw:New a="1">text<b /></lw:New>'],
}


WHOLE = {
    "a tag": '<NetworkModel name="n" user_version_tag="v1" version="2" />',
    "an empty tag": '<NetworkModel name="n" user_version_tag="" version="2" />',
    "no name": '\n<NetworkModel version="2" />',
    "an empty name": '<NetworkModel name="" version="2" />',
    "other attributes": '<NetworkModel z="1" xmlns:b="urn:b" b:x="2" xmlns:a="urn:a" a="3" name="n" version="2" />',
    "our prefix in an attribute": '<NetworkModel name="n" version="2" xmlns:lw="urn:layerwright:1" lw:x="1" />',
    "our prefix unused": '<NetworkModel name="n" version="2" xmlns:lw="urn:layerwright:1" />',
    "our prefix for another": '\n<NetworkModel name="n" version="2" xmlns:lw="urn:other" />',
    "a default namespace of nothing": '<NetworkModel name="n" version="2" xmlns="" />',
    "a default namespace": '\n\n<NetworkModel name="n" version="2" xmlns="urn:other" />',
    "a prefix": '<x:NetworkModel xmlns:x="urn:layerwright:1" name="n" version="2" />',
    "another root": f"\n<{'Root' * 40} />",
    "no version": '\n<NetworkModel name="n" />',
    "an empty version": '<NetworkModel name="n" version="" />',
    "a later version": f'<NetworkModel name="n" version="{"3." * 40}" />',
    **{
        f"the version {version!r}": f'<NetworkModel name="n" version="{version}" />'
        for version in ("1", "2.0", "2.1", "20", "02", "12", "2 ", " 2", "2a", "&#x662;")
    },
    "comments around": '<!-- one --><?two?><NetworkModel name="n" version="2"><!-- three --></NetworkModel><!-- four -->',
    "texts around": '<NetworkModel name="n" version="2">a\n b <Layer name="x" type="t" edit_pos="0,0" /> c <!-- d --> e </NetworkModel>',
    "order": '<NetworkModel name="n" version="2"><Layer name="b" type="t" edit_pos="0,0" /><lw:Frame id="g" rect="0,0,1,1" />'
    '<Odd /><lw:Frame id="" /><lw:Template name="v" /><Layer name="B" type="t" edit_pos="0,0" /><lw:Document>'
    '<lw:Property name="p">1</lw:Property></lw:Document><lw:Template name="u" /><lw:Frame id="f" rect="0,0,1,1" />'
    '<Layer name="a" type="t" edit_pos="0,0" /></NetworkModel>',
}


def told(found: Diagnostic) -> str:
    """Every field of a diagnostic that is set."""
    named = ("line", "layer", "template", "inner", "port", "parameter", "file")
    places = [f"{name} {getattr(found, name)!r}" for name in named if getattr(found, name) is not None]
    where = f" ({', '.join(places)})" if places else ""
    return f"{found.severity.value} {found.code}{where}: {found.message} - {found.remedy}"


def shortened(text: str) -> str:
    return text.replace(str(DATA), "...").replace("n" * 128, "<128 n>").replace("n" * 40, "<40 n>")


def described(reading: Reading) -> Iterator[str]:
    """All that was read: diagnostics, lines, properties, and the file as it is saved again."""
    yield from map(told, reading.diagnostics)
    if reading.lines:
        yield f"lines: {dict(reading.lines)}"
    graph = reading.graph
    if graph is None:
        yield "not opened"
        return
    yield from written(graph)


def written(graph: Graph) -> Iterator[str]:
    data = write_document(graph)
    again = parse_document(data, validate=False)
    assert again.graph is not None, again.diagnostics
    assert again.graph == graph
    assert again.graph.properties == graph.properties
    assert again.graph.attributes == graph.attributes
    yield from (f"  | {line}" for line in data.decode().split("\n"))


def test_files_are_read_and_refused_as_recorded() -> None:
    found = []
    for path in FILES:
        read = read_document(path)
        if path.name.startswith("schema"):  # its messages are those of libxml2
            assert [d.code for d in read.diagnostics] == ["schema"]
        text = [*map(told, read.diagnostics), f"lines: {dict(read.lines)}"] if len(read.lines) <= 40 else []
        found += ["", path.relative_to(DATA).as_posix(), *map(shortened, text)]
        if read.graph is not None and path.stat().st_size < 20_000:
            found += written(read.graph)
    check_recorded("documents/files.txt", "\n".join(found[1:]) + "\n")


@pytest.mark.parametrize("subject", PARTS)
def test_parts_of_files_are_read_and_written_as_recorded(subject: str) -> None:
    found = []
    for part in PARTS[subject]:
        text = f'<NetworkModel name="n" version="2" xmlns:lw="urn:layerwright:1">\n{part}\n</NetworkModel>\n'
        reading = parse_document(text.encode(), validate=False)
        found += [*part.split("\n"), *described(reading), ""]
    check_recorded(f"documents/{subject.replace(' ', '_')}.txt", shortened("\n".join(found)))


def test_roots_are_read_and_written_as_recorded() -> None:
    found = []
    for title, text in WHOLE.items():
        found += [title, *described(parse_document(text.encode(), "net.xml", validate=False)), ""]
    check_recorded("documents/roots.txt", "\n".join(found))


def layers(count: int, inputs: str = "", kind: str = "t") -> str:
    return "".join(f'<Layer name="l{n}" type="{kind}" edit_pos="0,0" input="{inputs}" />' for n in range(count))


def template(inside: str) -> str:
    return f'<lw:Template name="t">{inside}</lw:Template>'


LIMITS: list[tuple[str, str, str, str]] = [
    ("MAX_LAYERS", layers(3), layers(4), "the network has 4 layers, the limit is 3"),
    (
        "MAX_LAYERS",
        layers(1) + template(layers(2)),
        layers(2) + template(layers(2)),
        "the network has 4 layers, the limit is 3",
    ),
    ("MAX_LINKS", layers(1, "l0,,l0"), layers(1, "l0,,l0,l0"), "the layers have 4 inputs in total, the limit is 3"),
    (
        "MAX_LINKS",
        layers(1, "l0,l0") + template(layers(1, "l0")),
        layers(1, "l0,l0") + template(layers(2, "l0")),
        "the layers have 4 inputs in total, the limit is 3",
    ),
    ("MAX_PORTS", layers(1, "l0,l0,l0"), layers(1, "l0,l0,l0,l0"), "the layer has 4 inputs, the limit is 3"),
    *(
        (
            "MAX_PORTS",
            template(layers(3, "", f"template_{kind}")),
            template(layers(4, "", f"template_{kind}")),
            f"the template 't' has 4 {kind}s, the limit is 3",
        )
        for kind in ("input", "output")
    ),
    ("MAX_ELEMENTS", "<a /><!-- b -->", "<a /><!-- b --><?c?>", "the file has more than 3 elements"),
    ("MAX_ELEMENTS", "<a />text", "<a />text<b />", "the file has more than 3 elements"),
    ("MAX_DEPTH", "<a><b /></a>", "<a><b><c /></b></a>", "elements are nested more than 3 levels deep"),
    (
        "MAX_ATTRIBUTES",
        '<a b="1" c="2" d="3" />',
        '<a b="1" c="2" d="3" e="4" />',
        "an element has more than 3 attributes",
    ),
    (
        "MAX_NAMESPACES",
        '<a xmlns="urn:a" /><a xmlns:a="urn:a" xmlns:b="urn:b" xmlnsx="1" />',
        '<a xmlns="urn:a" /><a xmlns:a="urn:a" xmlns:b="urn:b" xmlns:c="urn:c" />',
        "the file declares more than 3 namespaces",
    ),
    (
        "MAX_TEXT",
        f'<a {"k" * 100}="{"x" * 18}" />',
        f'<a {"k" * 100}="{"x" * 19}" />',
        f"the attribute '{'k' * 80}' has 19 characters, the limit is 18",
    ),
]


@pytest.mark.parametrize(("name", "good", "bad", "message"), LIMITS)
def test_what_is_at_a_limit_is_read_and_what_exceeds_it_is_refused(
    name: str, good: str, bad: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, name, 18 if name == "MAX_TEXT" else 3)

    def parsed(text: str) -> Reading:
        root = '<NetworkModel name="n" version="2">'
        return parse_document(f"{root}{text}</NetworkModel>".encode(), validate=False)

    read, refused = parsed(good), parsed(bad)
    assert read.graph is not None
    assert read.diagnostics == ()
    assert refused.graph is None
    [found] = refused.diagnostics
    assert (found.code, found.message) == ("too-deep" if name == "MAX_DEPTH" else "too-large", message)
    assert found.line == 1
    assert found.remedy


BAD = "x\x01y"


@pytest.mark.parametrize(
    ("graph", "what", "layer"),
    [
        (Graph([Layer("a", BAD)]), "type", "a"),
        (Graph([Layer("a", "t", inputs=(Source("b", BAD),))]), "input", "a"),
        (Graph([Layer("a", "t", attributes={"note": BAD})]), "note", "a"),
        (Graph([Layer("a", "t", params={"k": BAD})]), "k", "a"),
        (Graph([Layer("a", "t", activation=ActivationSpec(BAD))]), "type", "a"),
        (Graph([Layer("a", "t", activation=ActivationSpec("relu", {"k": BAD}))]), "k", "a"),
        (Graph([Layer("a", "t", activation=ActivationSpec("relu", {}, {"note": BAD}))]), "note", "a"),
        (Graph(templates=(Template("t", (Layer("a", "t", params={"k": BAD}),)),)), "k", "a"),
        (Graph(templates=(Template("t", attributes={"note": BAD}),)), "note", None),
        (Graph(frames=(Frame("f", BAD, rect=(0, 0, 1, 1)),)), "title", None),
        (Graph(frames=(Frame("f", "Title", BAD, rect=(0, 0, 1, 1)),)), "Title", None),
        (Graph(frames=(Frame("f", "Title", "", BAD, (0, 0, 1, 1)),)), "color", None),
        (Graph(name=BAD), "name", None),
        (Graph(attributes={"note": BAD}), "note", None),
    ],
)
def test_a_character_that_xml_cannot_store_is_named_with_its_place(graph: Graph, what: str, layer: str | None) -> None:
    with pytest.raises(DiagnosticError) as caught:
        write_document(graph)
    [found] = caught.value.diagnostics
    where = f" (layer 'a', parameter '{what}')" if layer else ""
    message = f"'{what}' contains the character U+0001, which XML cannot store"
    assert told(found) == f"error unwritable-text{where}: {message} - remove the character"


def test_a_property_that_xml_cannot_store_is_named() -> None:
    graph = Graph()
    for key, value, what in (("p", BAD, "p"), (BAD, "1", "name"), ("user_version_tag", BAD, "user_version_tag")):
        graph.properties = {"name": "n", key: value}
        with pytest.raises(DiagnosticError) as caught:
            write_document(graph)
        [found] = caught.value.diagnostics
        assert (found.message, found.layer, found.parameter) == (
            f"'{what}' contains the character U+0001, which XML cannot store",
            None,
            None,
        )


def test_a_network_without_anything_is_one_element() -> None:
    graph = Graph()
    graph.properties = {"name": "n"}
    assert write_document(graph) == b'<?xml version="1.0"?>\n<NetworkModel name="n" version="2" />\n'
    graph.properties = {"empty": ""}
    lines = write_document(graph).decode().splitlines()
    assert lines[2:-1] == ["\t<lw:Document>", '\t\t<lw:Property name="empty" />', "\t</lw:Document>"]
    assert lines[1] == '<NetworkModel name="" version="2" xmlns:lw="urn:layerwright:1">'


def test_a_foreign_part_that_uses_our_prefix_declares_it() -> None:
    for graph in (Graph(foreign=(Foreign("<lw:New />"),)), Graph(foreign=(Foreign("<a lw:b='1' />"),))):
        assert b'xmlns:lw="urn:layerwright:1"' in write_document(graph)
    assert b"xmlns:lw" not in write_document(Graph(foreign=(Foreign("<New />"),)))


ROOT = '<NetworkModel name="n" version="2">'


LAYER = '<Layer name="a" type="t" edit_pos="0,0" />'


def test_what_surrounds_an_inner_line_is_kept_in_lines_of_the_file() -> None:
    """`lines` are those of the file, also for layers of templates."""
    text = f'{ROOT}\n\n{LAYER}\n<lw:Template name="t">\n{LAYER}\n\n<Layer\nname="b" type="t" edit_pos="0,0" />\n</lw:Template></NetworkModel>'
    assert dict(parse_document(text.encode(), validate=False).lines) == {"a": 3, "t/": 4, "t/a": 5, "t/b": 7}


CHAIN = '<Layer name="b" type="t" input="a" /><Layer name="a" type="t" /><Layer name="c" type="t" input="a,b" />'


def placed(text: str) -> tuple[dict[str, tuple[int, int]], list[str]]:
    read = parse_document(f"{ROOT}\n{text}\n</NetworkModel>".encode(), validate=False)
    assert read.graph is not None
    templates = [layer for template in read.graph.templates.values() for layer in template.layers]
    found = [f"{d.severity} {d.code} {d.line} {d.template or d.layer}" for d in read.diagnostics]
    return {layer.name: layer.position for layer in (*read.graph.layers.values(), *templates)}, found


def test_a_network_without_positions_is_arranged_from_left_to_right(monkeypatch: pytest.MonkeyPatch) -> None:
    positions, found = placed(CHAIN)
    assert list(positions) == ["b", "a", "c"]
    assert positions["a"][0] + 240 < positions["b"][0] < positions["c"][0] - 240
    assert found == ["info missing-position 1 None"]
    template = f'<lw:Template xmlns:lw="urn:layerwright:1" name="block">{CHAIN}</lw:Template>'
    assert placed(template) == (positions, ["info missing-position 2 block"])
    assert placed(template + CHAIN) == (positions, ["info missing-position 2 block", "info missing-position 1 None"])
    one = "warning missing-position 2 "
    assert placed(CHAIN.replace('"a" type="t"', '"a" type="t" edit_pos="16,32"')) == (
        {"b": (0, 0), "a": (16, 32), "c": (0, 0)},
        [one + "b", one + "c"],
    )
    assert placed('<Layer name="a" type="t" />') == ({"a": (0, 0)}, [one + "a"])
    monkeypatch.setattr(limits, "MAX_ARRANGED", 2)
    assert placed(CHAIN) == ({"b": (0, 0), "a": (0, 0), "c": (0, 0)}, [one + "b", one + "a", one + "c"])
