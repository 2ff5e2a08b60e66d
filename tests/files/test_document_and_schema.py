"""Files that are not read, digests of readings, and what only the schema finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.files import limits
from designer.files.document import parse_document, read_document
from designer.files.schema import check_schema
from designer.files.writer import ROOT, write_tree
from designer.graph.diagnostics import Severity


def test_files_that_are_not_read_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, null, large = tmp_path / "folder.xml", tmp_path / "null.xml", tmp_path / "large.xml"
    folder.mkdir()
    null.symlink_to("/dev/null")
    large.write_bytes(b"<a />")
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 4)
    cases = {
        folder: ("cannot-read", f"{folder} is a folder", "choose a file"),
        null: ("cannot-read", f"{null} is not a regular file", "choose a file"),
        tmp_path / "none.xml": (
            "cannot-read",
            f"{tmp_path / 'none.xml'} cannot be read: No such file or directory",
            "check the path and your permissions",
        ),
        Path("a\0b.xml"): (
            "cannot-read",
            "a\0b.xml cannot be read: embedded null byte",
            "check the path and your permissions",
        ),
        large: (
            "file-too-large",
            f"{large} has 5 bytes, the limit is 4",
            "this is not a Layerwright file; choose another",
        ),
        tmp_path / "net.txt": (
            "unknown-format",
            "net.txt: networks cannot be read from '.txt' files",
            "use .xml or .nv-neural-model",
        ),
    }
    for path, expected in cases.items():
        reading = read_document(path)
        assert (reading.graph, reading.lines, reading.digest, reading.file) == (None, {}, "", str(path))
        [found] = reading.diagnostics
        assert (found.code, found.message, found.remedy) == expected
        assert (found.file, found.line, found.severity.value) == (str(path), None, "error")


def test_a_reading_has_the_digest_of_the_bytes(tmp_path: Path) -> None:
    from hashlib import sha256

    for name, data in (("a.xml", b'<NetworkModel name="n" version="2" />'), ("b.xml", b"<a />"), ("c.xml", b"")):
        (tmp_path / name).write_bytes(data)
        assert read_document(tmp_path / name).digest == sha256(data).hexdigest()
    assert parse_document(b"<a />").digest == ""


SCHEMA = """<?xml version="1.0"?>
<NetworkModel name="n" version="2">
\t<Group>
\t\t<Layer name="a" edit_pos="0,0" />
\t</Group>
\t<Layer type="t" />
</NetworkModel>
"""


def test_the_schema_adds_only_what_is_wrong_in_other_lines() -> None:
    found = parse_document(SCHEMA.encode(), "net.xml").diagnostics
    assert [(d.code, d.line, d.file) for d in found] == [("missing-name", 6, "net.xml"), ("schema", 4, "net.xml")]
    schema = found[1]
    assert schema.message.startswith("the file violates the schema: Element 'Layer'")
    assert schema.remedy == "see resources/schema/network_model.xsd"
    only = SCHEMA.replace('\t<Layer type="t" />\n', "").encode()
    checked, plain = parse_document(only), parse_document(only, validate=False)
    assert checked.graph is None
    assert [d.code for d in checked.diagnostics] == ["schema"]
    assert plain.graph is not None
    assert plain.diagnostics == ()


def test_the_schema_is_heard_in_a_line_with_a_warning() -> None:
    """The root has no name, which is a warning, and a layer that only the schema knows stands in the same line."""
    text = (
        SCHEMA.replace('\t<Layer type="t" />\n', "").replace(' name="n"', "").replace(">\n\t<Group>\n\t\t", "><Group>")
    )
    found = parse_document(text.encode(), "net.xml")
    assert [(d.code, d.severity, d.line) for d in found.diagnostics] == [
        ("missing-name", Severity.WARNING, 2),
        ("schema", Severity.ERROR, 2),
    ]
    assert found.graph is None


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1", "UTF-16", "windows-1252"])
def test_the_schema_names_every_line_that_breaks_it(encoding: str) -> None:
    lines = [
        f'<?xml version="1.0" encoding="{encoding}"?>',
        f'<{ROOT} name="größer" version="1.0">',
        '\t<Layer name="a" type="input" edit_pos="0,0" />',
        '\t<Layer name="b" edit_pos="0,0" />',
        '\t<Layer type="relu" edit_pos="0,0" />',
        f"</{ROOT}>",
    ]
    found = check_schema("\n".join(lines).encode(encoding))
    assert [each.line for each in found] == [2, 4, 5, 5]
    named = ["'version'", "'type' is required", "'name' is required", "'layerByName'"]
    assert all(name in each.message for name, each in zip(named, found, strict=True))
    assert {(each.code, each.severity) for each in found} == {("schema", Severity.ERROR)}


def test_equal_comments_and_elements_are_all_kept_in_their_order() -> None:
    def twice(depth: int) -> list[str]:
        return [
            "\t" * depth + text for text in ("<!-- note -->", '<Extra a="1" />', "<!-- note -->", '<Extra a="1" />')
        ]

    lines = [
        '<?xml version="1.0"?>',
        f'<{ROOT} name="n" version="2">',
        *twice(1),
        '\t<Layer name="a" type="input" edit_pos="0,0">',
        *twice(2),
        "\t</Layer>",
        '\t<Layer name="b" type="relu" edit_pos="16,0" input="a">',
        '\t\t<Activation type="tanh">',
        *twice(3),
        "\t\t</Activation>",
        *twice(2),
        "\t</Layer>",
        f"</{ROOT}>",
        "",
    ]
    text = "\n".join(lines)
    assert write_tree(parse_document(text.encode()).graph) == text
