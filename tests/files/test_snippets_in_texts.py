"""The model that is found in a text, character by character."""

from __future__ import annotations

import pytest

from designer.files.snippets import model_text

ROOT = '<NetworkModel name="n" version="2">'


LAYER = '<Layer name="a" type="t" edit_pos="0,0" />'


WRAPPED = f'<NetworkModel name="part" version="2" xmlns:lw="urn:layerwright:1">\n{LAYER}\n</NetworkModel>'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"x {ROOT}{LAYER}</NetworkModel> y", f"{ROOT}{LAYER}</NetworkModel>"),
        (f"x {ROOT}{LAYER}</NetworkModel> {ROOT}</NetworkModel>", f"{ROOT}{LAYER}</NetworkModel>"),
        ('x <NetworkModel name="n" version="2" /> y />', '<NetworkModel name="n" version="2" />'),
        (f"x {ROOT}{LAYER}", f"{ROOT}{LAYER}"),
        (f"x {LAYER} y", WRAPPED),
        (f"x {LAYER}{LAYER} y <br/> z", WRAPPED.replace(LAYER, f"{LAYER}{LAYER} y <br/>")),
        (
            "x <Layer name='a'><Parameters k='1' /></Layer> y",
            WRAPPED.replace(LAYER, "<Layer name='a'><Parameters k='1' /></Layer>"),
        ),
        ("x <Layer name='a'> y", WRAPPED.replace(LAYER, "<Layer ")),
        (f"> x\n> {LAYER}\n> y", WRAPPED),
        (f"\t>> {ROOT}\n\t>>\t{LAYER}\n\t>> </NetworkModel>", f"{ROOT}\n{LAYER}\n</NetworkModel>"),
        (f"> {ROOT}\r\n> {LAYER}\r\n> </NetworkModel>", f"{ROOT}\n{LAYER}\n</NetworkModel>"),
        (f"{ROOT}\r\n{LAYER}</NetworkModel>", f"{ROOT}\r\n{LAYER}</NetworkModel>"),
        ("&lt;Layer name=&quot;a&quot; type=&quot;t&quot; edit_pos=&quot;0,0&quot; /&gt;", WRAPPED),
        ("&lt;NetworkModel name=&quot;a&amp;amp;b&quot; version='2'/&gt;", "<NetworkModel name=\"a&amp;b\" version='2'/>"),
        (LAYER.replace(" ", "\u00a0").replace("type", "\u200btype\ufeff"), None),
        (LAYER.replace(" type", "\u00a0\u2007type\u202f\u200b\ufeff"), WRAPPED.replace(" type", "  type ")),
        (LAYER.replace('"', "“"), WRAPPED),
        (LAYER.replace('="', "=„").replace('"', "‟"), WRAPPED),
        (LAYER.replace('"a"', '"„a“"'), WRAPPED.replace('"a"', '"„a“"')),
        ("<Layered>", None),
        ("<Layer/>", None),
    ],
)  # fmt: skip
def test_the_model_in_a_text(text: str, found: str | None) -> None:
    assert model_text(text) == found


def test_only_the_beginning_of_a_text_is_searched_for_layers() -> None:
    assert model_text(" " * 65_000 + LAYER) == WRAPPED
    assert model_text(" " * 65_536 + LAYER) is None


def test_longer_texts_than_the_limit_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("designer.files.snippets.MOST", len(LAYER))
    assert model_text(LAYER) == WRAPPED
    assert model_text(f"{LAYER} ") is None
