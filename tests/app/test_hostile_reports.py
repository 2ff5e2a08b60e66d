"""Names and texts of a document stay text in pages and tables."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile_networks import NAME, VALUE

from app.reports.page import Page
from designer.files.tables import as_cells


class Elements(HTMLParser):
    """The elements of a page and the addresses that it would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [text or "" for key, text in attrs if key in ("src", "href") or key.startswith("on")]


def page(text: str, path: Path) -> Elements:
    made = Page(text)
    made.heading(text)
    made.text(text)
    made.code(text)
    made.picture_inside(b"\x89PNG", text)
    made.table([text, "values"], [[text, "1"]], numbers=[1])
    made.write(path)
    found = Elements()
    found.feed(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("text", [NAME, VALUE])
def test_a_page_of_hostile_text_has_the_elements_of_a_harmless_one(text: str, tmp_path: Path) -> None:
    made, plain = page(text, tmp_path / "hostile.html"), page("plain", tmp_path / "plain.html")
    assert made.tags == plain.tags
    assert "script" not in made.tags
    assert not any("canary" in source for source in made.sources)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "\n="])
def test_no_cell_of_a_table_is_a_formula(start: str) -> None:
    (cell,) = as_cells([f"{start}1+1"])
    assert str(cell).startswith("'")
