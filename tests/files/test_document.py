"""The model file: a corpus of good files that must come back as they were, and of bad ones with their expected code."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from designer.files import limits
from designer.files.document import (
    Reading,
    is_canonical,
    parse_document,
    read_bounded,
    read_document,
    save_document,
    write_document,
)
from designer.files.json_text import problem_of
from designer.files.locations import located
from designer.files.schema import check_schema
from designer.files.xml_tree import XmlError
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.operators.registry import Registry, load

DATA = Path(__file__).parent.parent / "data"
GOOD = sorted(p for p in (DATA / "good").iterdir() if p.suffix in (".xml", ".nv-neural-model"))
LOOSE = sorted((DATA / "good" / "loose").iterdir())
BAD = sorted((DATA / "bad").glob("*.xml"))
OPENS_ALL_THE_SAME = {"missing-position", "bad-position", "bad-frame"}
OF_THE_NETWORK = {
    "cycle",
    "unknown-source",
    "unknown-port",
    "unknown-operator",
    "unknown-activation",
    "bad-parameter",
    "unknown-parameter",
    "missing-input",
    "shape-mismatch",
    "recursive-template",
    "unknown-template",
    "template-without-output",
    "template-too-large",
    "not-in-template",
    "outside-template",
    "template-name-clash",
    "activation-on-port",
    "shared-shape",
}


@pytest.fixture(scope="module")
def library() -> Registry:
    return load(entry_points=False)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.name)
def test_a_file_that_nobody_edited_is_saved_back_byte_for_byte(path: Path, tmp_path: Path) -> None:
    reading = read_document(path)
    assert reading.diagnostics == ()
    assert reading.graph is not None
    save_document(reading.graph, tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", [*GOOD, *LOOSE], ids=lambda p: p.name)
def test_writing_and_reading_again_gives_an_equal_graph(path: Path) -> None:
    first = read_document(path)
    assert first.graph is not None, first.diagnostics
    written = write_document(first.graph)
    second = parse_document(written)
    assert second.graph == first.graph
    assert write_document(first.graph.copy()) == written


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_a_bad_file_ends_in_its_finding(path: Path, library: Registry) -> None:
    code = path.name.partition("__")[0]
    reading = read_document(path)
    found = reading.diagnostics
    if reading.graph is not None:
        found += located(Inference(reading.graph, library).diagnostics(), reading)
    assert code in {d.code for d in found}, [str(d) for d in found]
    for finding in found:
        assert finding.file == str(path)
        assert len(finding.message) < 400
        assert finding.remedy or finding.severity is not Severity.ERROR
    assert (reading.graph is not None) == (code in OPENS_ALL_THE_SAME | OF_THE_NETWORK)
    named = next(d for d in found if d.code == code)
    assert named.line is not None or code == "empty-file"
    if path.stem.endswith("in_a_template"):  # the line of the layer inside, not of what uses the template
        lines = path.read_text("utf-8").splitlines()
        begin, end = (next(n for n, text in enumerate(lines, 1) if tag in text) for tag in ("<lw:Tem", "</lw:Tem"))
        assert begin < named.line < end


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_the_schema_is_a_second_net_and_not_the_only_one(path: Path) -> None:
    """Without lxml the same files open, except what only the schema knows."""
    with_schema, without = read_document(path), parse_document(path.read_bytes(), validate=False)
    if not path.name.startswith("schema"):
        assert (with_schema.graph is None) == (without.graph is None)


@pytest.mark.parametrize(
    "name",
    [
        "duplicate-name__two_layers",
        "bad-name__path",
        "bad-name__comma",
        "bad-name__ten_thousand_characters",
        "missing-name__layer",
        "missing-type__layer",
        "missing-type__activation",
        "bad-type__long",
        "wrong-version__three",
        "wrong-version__none",
        "no-root__html",
        "schema__nested_layer",
    ],
)
def test_the_schema_alone_finds_what_breaks_the_envelope(name: str) -> None:
    assert check_schema((DATA / "bad" / f"{name}.xml").read_bytes())


def test_a_root_of_another_namespace_is_told_from_ours() -> None:
    [found] = read_document(DATA / "bad" / "no-root__other_namespace.xml").diagnostics
    assert (
        found.message
        == "the root element is a 'NetworkModel' of another namespace, but a model file has 'NetworkModel' without a namespace"
    )


def test_what_we_write_keeps_the_schema() -> None:
    """So a file that is byte for byte what we would write needs no check, and opening it loads no lxml."""
    for path in [*GOOD, *LOOSE, *BAD]:
        graph = parse_document(path.read_bytes(), validate=False).graph
        if graph is not None and is_canonical(graph, write_document(graph)):
            assert check_schema(write_document(graph)) == [], path.name


def test_the_schema_lets_pass_what_only_operators_know() -> None:
    for path in BAD:
        if path.name.partition("__")[0] in OF_THE_NETWORK:
            assert check_schema(path.read_bytes()) == []


def test_the_schema_is_loaded_only_where_it_can_find_something(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    monkeypatch.setattr("designer.files.document.check_schema", lambda data: checked.append(data) or ())
    canonical = write_document(Graph([Layer("a", "input", params={"dims": "8x8x3"})]))
    parse_document(canonical)
    parse_document(canonical + b"\n", validate=False)
    assert checked == []
    parse_document(canonical + b"\n")
    assert checked == [canonical + b"\n"]


def test_what_opens_in_spite_of_a_problem_is_kept_when_it_is_saved() -> None:
    for path in BAD:
        reading = read_document(path)
        code = path.name.partition("__")[0]
        if reading.graph is not None and code in OF_THE_NETWORK:
            again = parse_document(write_document(reading.graph)).graph
            assert again == reading.graph


def test_everything_in_the_file_reaches_the_graph() -> None:
    graph = read_document(DATA / "good" / "everything.xml").graph
    assert graph is not None
    assert graph["gap"].inputs == (None, Source("from_port"))
    assert graph["from_port"].inputs == (Source("big", "y1"),)
    assert graph["mystery"].params["strange"] == 'text with "quotes", <angles>, tab\tand line\nbreak'
    assert graph["mystery"].activation is not None
    assert graph["mystery"].activation.attributes == {"note:x": "1"}
    assert graph["big"].attributes == {"lw:fold": "true", "note:mark": "red"}
    assert len(graph["big"].children) == 2
    assert graph["picture"].params["scale"] == "2.50"
    assert graph.frames["frame_0"].text == "What this part does.\nIt has two lines."
    assert graph.frames["frame_0"].rect == (-32, 16, 640, 320)
    assert graph.properties["author_notes"].startswith("first line\nsecond")
    assert graph.properties["user_version_tag"] == "v1.7-beta"
    assert [f.xml[:12] for f in graph.foreign] == ["<!-- A comme", "<note:Histor"]
    assert [layer.name for layer in graph.templates["block"].layers] == ["in", "out"]


@pytest.mark.parametrize(
    "element",
    [
        '<lw:Document><lw:Property name="view.1">5</lw:Property></lw:Document>',
        '<lw:Document><lw:Property name="new">5</lw:Property><lw:Property name="new">6</lw:Property></lw:Document>',
        "<lw:Document><lw:Property>5</lw:Property></lw:Document>",
        '<lw:Document><lw:Property name="">5</lw:Property></lw:Document>',
        '<lw:Document><lw:Property name="name">5</lw:Property></lw:Document>',
        '<lw:Document><lw:Property name="new" kind="number">5</lw:Property></lw:Document>',
        '<lw:Document><lw:Property name="new"><b /></lw:Property></lw:Document>',
        '<lw:Document><lw:Other name="new">5</lw:Other></lw:Document>',
        '<lw:Document><Property name="new">5</Property></lw:Document>',
        '<lw:Document>text<lw:Property name="new">5</lw:Property></lw:Document>',
        '<lw:Document kind="new"><lw:Property name="new">5</lw:Property></lw:Document>',
        '<lw:Frame id="f" title="new" color="" rect="5,5,5,5" />',
    ],
)
def test_properties_that_are_not_as_ours_are_kept_as_they_are(element: str) -> None:
    first = '<lw:Document><lw:Property name="view.1">1,2,0.5</lw:Property></lw:Document>'
    first += '<lw:Frame id="f" title="first" color="" rect="0,0,320,160" />'
    graph = parse_document(
        f'<NetworkModel name="n" version="2" xmlns:lw="urn:layerwright:1">{first}{element}</NetworkModel>'.encode()
    ).graph
    assert graph is not None
    assert graph.frames["f"].title == "first"
    assert graph.properties["view.1"] == "1,2,0.5"
    assert graph.properties["name"] == "n"
    assert "new" not in graph.properties
    assert element in [foreign.xml for foreign in graph.foreign]
    again = parse_document(write_document(graph)).graph
    assert again is not None
    assert (again.properties, again.frames, again.foreign) == (graph.properties, graph.frames, graph.foreign)


def test_what_stands_around_the_layers_is_kept() -> None:
    graph = read_document(DATA / "good" / "loose" / "untidy.xml").graph
    assert graph is not None
    kept = "\n".join(f.xml for f in graph.foreign)
    for part in ("<!-- before -->", "<!-- after -->", "stray text", "more text", "<![CDATA[a < b]]>", "<?go now?>"):
        assert part in kept
    assert graph["b"].children[0].xml == "<!-- in b -->"
    assert graph["b"].position == (16, 32)
    assert graph["b"].inputs == (Source("a"),)
    assert graph["a"].children[0].xml == "<Odd />"


def test_the_extension_is_declared_only_where_it_is_used() -> None:
    graph = Graph([Layer("a", "identity")], name="n")
    assert b"layerwright" not in write_document(graph)
    graph.frames["f"] = Frame("f", "title", "some text", "#fff", (0, 0, 10, 10))
    assert write_document(graph).count(b'xmlns:lw="urn:layerwright:1"') == 1


@pytest.mark.parametrize(
    "layer",
    [
        Layer("a", "identity", attributes={"lw:mark": "1"}),
        Layer("a", "identity", params={"lw:mark": "1"}),
        Layer("a", "identity", children=(Foreign("<lw:Mark />"),)),
        Layer("a", "identity", activation=ActivationSpec("relu", attributes={"lw:mark": "1"})),
        Layer("a", "identity", activation=ActivationSpec("relu", {"lw:mark": "1"})),
        Layer("a", "identity", activation=ActivationSpec("relu", children=(Foreign("<lw:Mark />"),))),
    ],
)
def test_the_extension_is_declared_wherever_in_a_layer_its_prefix_stands(layer: Layer) -> None:
    assert write_document(Graph([layer], name="n")).count(b'xmlns:lw="urn:layerwright:1"') == 1


def test_the_innermost_declaration_of_a_prefix_counts() -> None:
    frame = '<p:Frame{} id="{}" title="t" color="" rect="0,0,320,160" />'
    other, ours = ' xmlns:p="urn:other"', ' xmlns:p="urn:layerwright:1"'
    for outer, inner, plain in ((other, ours, ""), (ours, other, "plain")):
        inside = frame.format(inner, "inner") + frame.format("", "plain")
        graph = parse_document(f'<NetworkModel name="n" version="2"{outer}>{inside}</NetworkModel>'.encode()).graph
        assert graph is not None
        assert list(graph.frames) == [plain or "inner"]


def test_equal_graphs_give_equal_bytes_whatever_the_order_of_making() -> None:
    a = Layer("a", "t", params={"x": "1", "y": "2"}, attributes={"p": "1", "q": "2"})
    b = Layer("b", "t", inputs=(Source("a"),), activation=ActivationSpec("relu", {"alpha": "0.0"}))
    a2 = Layer("a", "t", params={"y": "2", "x": "1"}, attributes={"q": "2", "p": "1"})
    assert Graph([a, b]) == Graph([b, a2])
    assert write_document(Graph([a, b])) == write_document(Graph([b, a2]))


def test_text_that_xml_cannot_hold_is_refused_when_saving(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(b"old")
    with pytest.raises(DiagnosticError) as caught:
        save_document(Graph([Layer("a", "t", params={"p": "a\x00b"})]), path)
    finding = caught.value.diagnostics[0]
    assert (finding.code, finding.layer, finding.parameter) == ("unwritable-text", "a", "p")
    assert path.read_bytes() == b"old"


def test_two_hundred_megabytes_of_nesting_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "deep.xml"
    with path.open("wb") as stream:
        for _ in range(200):
            stream.write(b"<abcdefgh>" * 104858)
    reading = read_document(path)
    assert reading.graph is None
    assert reading.diagnostics[0].code == "file-too-large"


def test_nesting_below_the_size_limit_stops_at_the_depth_limit() -> None:
    reading = parse_document(b'<NetworkModel name="x" version="2">' + b"<a>" * 5_000_000)
    assert [d.code for d in reading.diagnostics] == ["too-deep"]


def test_too_many_layers_and_elements_and_too_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LAYERS", 3)
    layers = "".join(f'<Layer name="l{i}" type="t" edit_pos="0,0"/>' for i in range(4))
    text = f'<NetworkModel name="x" version="2">{layers}</NetworkModel>'.encode()
    assert [d.code for d in parse_document(text).diagnostics] == ["too-large"]
    monkeypatch.setattr(limits, "MAX_ELEMENTS", 2)
    assert [d.code for d in parse_document(text).diagnostics] == ["too-large"]
    long = b'<NetworkModel name="%s" version="2"/>' % (b"x" * (limits.MAX_TEXT + 1))
    assert [d.code for d in parse_document(long).diagnostics] == ["too-large"]


def test_namespaces_without_end() -> None:
    declared = " ".join(f'xmlns:p{i}="urn:{i}"' for i in range(200))
    text = f'<NetworkModel name="x" version="2">{f"<a {declared}>" * 20}'.encode()
    assert [d.code for d in parse_document(text).diagnostics] == ["too-large"]


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    folder, null = tmp_path / "folder.xml", tmp_path / "null.xml"
    folder.mkdir()
    null.symlink_to("/dev/null")
    for path in (folder, tmp_path / "none.xml", null, Path("a\0b.xml")):
        reading = read_document(path)
        assert reading.graph is None
        assert reading.diagnostics[0].code == "cannot-read"


def test_an_unknown_layer_keeps_parameters_edges_and_text() -> None:
    graph = read_document(DATA / "good" / "everything.xml").graph
    assert graph is not None
    layer = graph["mystery"]
    assert layer.type == "type_of_another_program"
    assert layer.inputs == (Source("gap"), Source("nobody"))
    assert layer.params["a_size"] == "1.50"


def test_a_layer_is_found_in_its_line() -> None:
    reading = read_document(DATA / "good" / "unet_2022.nv-neural-model")
    text = (DATA / "good" / "unet_2022.nv-neural-model").read_text("utf-8").splitlines()
    for name, line in reading.lines.items():
        assert f'name="{name}"' in text[line - 1]


@pytest.mark.parametrize("element", ["Parameters", "Activation"])
def test_a_layer_with_two_of_an_element_is_reported(element: str) -> None:
    layer = Layer("a", "convolution", params={"features": "8"}, activation=ActivationSpec("elu", {"alpha": "2"}))
    text = write_document(Graph([layer])).decode()
    found = re.search(rf"<{element}\b[^>]*/>|<{element}\b.*?</{element}>", text, re.DOTALL)
    assert found is not None
    once = found[0]
    assert not parse_document(text.encode(), validate=False).diagnostics
    twice = parse_document(text.replace(once, once + once, 1).encode(), validate=False)
    assert [d.layer for d in twice.diagnostics if element in d.message] == ["a"]


def test_findings_get_the_line_of_their_layer_or_of_the_layer_inside_the_template() -> None:
    reading = Reading(None, (), {"a": 3, "use": 4, "block/": 7, "block/x": 8}, "net.xml")
    cases = {
        Diagnostic("c", "m", layer="a"): (3, "net.xml"),
        Diagnostic("c", "m", layer="use", template="block", inner="x"): (8, "net.xml"),
        Diagnostic("c", "m", layer="use", template="block"): (7, "net.xml"),
        Diagnostic("c", "m", layer="use", template="other", inner="y"): (4, "net.xml"),
        Diagnostic("c", "m", layer="a", line=9, file="other.xml"): (9, "other.xml"),
        Diagnostic("c", "m", layer="gone"): (None, None),
        Diagnostic("c", "m"): (None, None),
    }
    found = located(tuple(cases), reading)
    assert [(each.line, each.file) for each in found] == list(cases.values())
    assert located(tuple(cases), replace(reading, file=""))[0].file is None


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(XmlError, match="has 5 bytes, the limit is 4"):
        read_bounded(path, 4)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("Expected `int`, got `str` - at `$.threads`", "threads: expected int, got str"),
        ("Expected `int`, got `str`", "expected int, got str"),
        ("JSON is malformed: trailing characters (byte 3)", "JSON is malformed: trailing characters (byte 3)"),
        ("Object missing required field `n` - at `$.layers[0]`", "layers[0]: object missing required field n"),
    ],
)
def test_errors_of_json_as_sentences(error: str, text: str) -> None:
    assert problem_of(ValueError(error)) == text
    assert problem_of(RecursionError("x")) == "it is nested too deeply"
