"""Translation of texts: which catalogue is used, and what happens if a translation is damaged."""

from __future__ import annotations

import gettext
from collections.abc import Iterator
from pathlib import Path

import pytest

from designer import texts


class Table(gettext.NullTranslations):
    """A catalogue with German plurals: one text for 1, another for all other numbers."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__()
        self.known = known

    def gettext(self, message: str) -> str:
        return self.known.get(message, message)

    def ngettext(self, one: str, many: str, n: int) -> str:
        return self.gettext(one if n == 1 else many)


@pytest.fixture
def catalogue() -> Iterator[Table]:
    made = Table(
        {
            "One {name}": "Eins {name}", "{count} layer of {name}": "{count} Schicht von {name}",
            "{count} layers of {name}": "{count} Schichten von {name}", "key": "{other}", "index": "{0}", "attribute": "{name.no}",
            "format": "{name:.2f}", "brace": "{name", "Braces {}": "Klammern {}", "bad {name}": "falsch {nome}",
            "worse {name}": "falsch {0}", "odd {name}": "falsch {name.no}", "wrong {name}": "falsch {name:d}",
            "open {name}": "falsch {name", "{count} a": "{count} {x} a", "{count} b": "{count} {x} b", "": "header",
        }
    )  # fmt: skip
    before = texts.take(made)
    yield made
    assert texts.take(before) is made


def test_texts_are_translated_with_their_values(catalogue: Table) -> None:
    assert texts.tr("One {name}", name="x") == "Eins x"
    assert texts.tr("Two {name}", name=3) == "Two 3"
    assert texts.tr("One {name}") == "Eins {name}"  # without values, braces are kept
    assert texts.tr("Braces {}") == "Klammern {}"
    assert texts.trn("{count} layer of {name}", "{count} layers of {name}", 1, name="x") == "1 Schicht von x"
    assert texts.trn("{count} layer of {name}", "{count} layers of {name}", 12345, name="x") == "12,345 Schichten von x"
    assert texts.trn("{count} layer of {name}", "{count} layers of {name}", 0, name="x") == "0 Schichten von x"
    assert texts.trn("{count} thing", "{count} things", 1) == "1 thing"
    assert texts.trn("{count} thing", "{count} things", 2000) == "2,000 things"
    assert texts.trn("{count} thing", "{count} things", 2, count="two") == "two things"
    assert texts.tr_data("One {name}") == "Eins {name}"
    assert texts.tr_data("") == ""
    assert texts.mark("One {name}") == "One {name}"


@pytest.mark.parametrize("text", ["bad {name}", "worse {name}", "odd {name}", "wrong {name}", "open {name}"])
def test_a_damaged_translation_shows_the_english_text(catalogue: Table, text: str) -> None:
    assert texts.tr(text, name="value") == text.replace("{name}", "value")


def test_a_damaged_plural_shows_the_english_one(catalogue: Table) -> None:
    assert texts.trn("{count} a", "{count} b", 1) == "1 a"
    assert texts.trn("{count} a", "{count} b", 5000) == "5,000 b"


def test_the_catalogue_that_was_taken_last_is_the_only_one() -> None:
    one, other = Table({"a": "1"}), Table({"a": "2"})
    first = texts.take(one)
    try:
        assert texts.tr("a") == "1"
        assert texts.take(other) is one
        assert texts.tr("a") == "2"
        assert texts.take(one) is other
        assert len(texts._catalogues) == 1
    finally:
        texts.take(first)


def test_characters_that_hide_others_are_escapes() -> None:
    cases = {
        "plain\n\ttext": "plain\n\ttext", "a\r\nb": "a\nb", "a\rb": "a\\u000db", "a\u202eb": "a\\u202eb", "\x00": "\\u0000",
        "\U000e0041": "\\U000e0041", "\uffff": "\\uffff", "ä €": "ä €", "\x7f": "\\u007f",
    }  # fmt: skip
    assert {text: texts.visible(text) for text in cases} == cases


def compiled(folder: Path, language: str, pairs: dict[str, str]) -> Path:
    """A compiled catalogue (GNU gettext, .mo)."""
    import struct

    entries = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **pairs}.items())
    keys = [key.encode() for key, _ in entries]
    values = [value.encode() for _, value in entries]
    count, start = len(entries), 28 + 16 * len(entries)
    table, body, at = [], b"", start
    for text in (*keys, *values):
        table.append(struct.pack("<II", len(text), at))
        body += text + b"\0"
        at += len(text) + 1
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    path = texts.file(folder, language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + b"".join(table) + body)
    return path


def test_a_compiled_catalogue_is_used_if_it_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = texts.take(gettext.NullTranslations())
    try:
        path = compiled(tmp_path, "de", {"Open": "Öffnen"})
        assert path == tmp_path / "de" / "LC_MESSAGES" / "layerwright.mo"
        assert texts.use(tmp_path, "fr") is False
        assert texts.tr("Open") == "Open"
        assert texts.use(tmp_path, "de") is True
        assert texts.tr("Open") == "Öffnen"
        whole = path.read_bytes()
        other_bytes, other_charset = whole.replace(b"\xc3\x96", b"\xff\xff"), whole.replace(b"UTF-8", b"none!")
        for damage in (b"", whole[:4], b"no catalogue", whole[:40], whole[:-30], other_bytes, other_charset):
            file = texts.file(tmp_path, "xx")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(damage)
            assert texts.use(tmp_path, "xx") is False, damage
            assert texts.tr("Open") == "Öffnen"  # a refusal changes nothing
        texts.take(gettext.NullTranslations())
        monkeypatch.setattr(texts, "FOLDER", tmp_path)
        compiled(tmp_path, "sr@latin", {"Open": "Otvori"})
        compiled(tmp_path / "de" / "..", "de x", {"Open": "other"})
        for language, text in (
            ("", "Open"),
            ("../de", "Open"),
            ("de x", "Open"),
            ("de\n", "Open"),
            ("sr@latin", "Otvori"),
            ("de", "Öffnen"),
        ):
            texts.take(gettext.NullTranslations())
            monkeypatch.setenv(texts.VARIABLE, language)
            texts.use_environment()
            assert texts.tr("Open") == text, language
        monkeypatch.delenv(texts.VARIABLE)
        texts.take(gettext.NullTranslations())
        texts.use_environment()
        assert texts.tr("Open") == "Open"
    finally:
        texts.take(before)
