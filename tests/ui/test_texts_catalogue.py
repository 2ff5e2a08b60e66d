"""Texts are found in sources and tables; what a translation could not reach is an error."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("PySide6")
from mo_kit import compiled

from app.checks import texts_catalogue
from app.checks.texts_catalogue import Catalogue, collect, main, quoted
from designer import texts

pytestmark = pytest.mark.gui


@cache
def collected() -> Catalogue:
    """The texts of the program, which do not change in between: reading its sources takes seconds."""
    return collect()


def read(source: str) -> Catalogue:
    catalogue = Catalogue()
    catalogue.read(source, "a.py")
    return catalogue


def test_texts_of_calls_and_tables() -> None:
    found = read('tr("One"); trn("{count} layer", "{count} layers", n); X = {"a": mark("Two")}; tr_data(X["a"])')
    assert not found.faults
    assert {text: entry.plural for text, entry in found.texts.items()} == {
        "One": "",
        "{count} layer": "{count} layers",
        "Two": "",
    }
    everything = collected()
    assert not everything.faults
    assert all(
        t in everything.texts for t in ("&Open...", "Channel Inspector", "no network is open", "Time\nms", "&File")
    )


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("tr(name)", "not a literal"),
        ('tr(f"Saved {name}")', "not a literal"),
        ('trn("{count} layer", many, n)', "not a literal"),
        ("mark(NAMES[0])", "not a literal"),
        ('tr("Saved {name}", file=name)', "places"),
        ('tr("Saved", file=name)', "places"),
        ('trn("{count} of {all}", "{count} of {all}", n)', "places"),
        ('trn("a layer", "layers", n); trn("a layer", "more layers", n)', "two plurals"),
        ('label.setText("Nothing here")', "without tr"),
        ('QPushButton(f"Save {name}")', "without tr"),
    ],
)
def test_what_cannot_be_translated(source: str, what: str) -> None:
    (fault,) = read(source).faults
    assert what in fault


def test_data_is_not_taken_for_words() -> None:
    assert not read(
        'QLabel(f"<b>{layer}</b>"); field.setSuffix(" ×"); label.setText(f"{a} x {b}"); label.setText(name)'
    ).faults


def test_writing_of_texts() -> None:
    assert quoted('say "a\\b"') == '"say \\"a\\\\b\\""'
    assert quoted("one\ntwo") == '""\n"one\\n"\n"two"'


def test_the_file_is_written_and_compared(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(texts_catalogue, "collect", collected)
    path = tmp_path / "new" / "window.pot"
    assert main([str(path), "--check"]) == 1
    assert "make texts" in capsys.readouterr().err
    assert main([str(path)]) == 0
    assert main([str(path), "--check"]) == 0
    path.write_text(path.read_text(encoding="utf-8").replace("no network is open", "nothing is open"), encoding="utf-8")
    assert main([str(path), "--check"]) == 1


def test_a_language(tmp_path) -> None:
    file = texts.file(tmp_path, "de")
    file.parent.mkdir(parents=True)
    file.write_bytes(
        compiled(
            {
                "": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n",
                "Saved {name}": "{name} gesichert",
                "{count} layer\0{count} layers": "{count} Schicht\0{count} Schichten",
                "&Open...": "&Öffnen …",
                "Redo": "Wieder {her}",
            }
        )
    )
    before = texts.take(texts.gettext.NullTranslations())
    try:
        assert texts.use(tmp_path, "de")
        assert texts.tr("Saved {name}", name="x.xml") == "x.xml gesichert"
        assert [texts.trn("{count} layer", "{count} layers", n) for n in (1, 2)] == ["1 Schicht", "2 Schichten"]
        assert texts.tr_data("&Open...") == "&Öffnen …"
        assert texts.tr("Not there {a}", a=1) == "Not there 1"
        file.write_bytes(b"\xde\x12\x04\x95 broken")
        assert not texts.use(tmp_path, "de")
        assert texts.tr("Saved {name}", name="x.xml") == "x.xml gesichert"
        assert not texts.use(tmp_path, "fr")
    finally:
        texts.take(before)


def test_every_text_can_be_filled_in() -> None:
    """A brace that is none of Python's would raise where the text is shown."""
    import string

    for text, entry in collected().texts.items():
        for one in (text, entry.plural):
            assert all(name is None or name.isidentifier() for _, name, _, _ in string.Formatter().parse(one)), one
