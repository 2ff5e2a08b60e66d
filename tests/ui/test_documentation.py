"""Menu paths that the documentation and the program's own texts name, such as File > New From, are in the window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtGui import QAction

from app.ui.shell.window import MainWindow

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "samples")
    for path in folder.glob("*.md")
    if path.name != "CHANGELOG.md"
)
STEP = r"[A-Z][\w:-]*(?: [A-Za-z0-9][\w:-]*)*"
WRITTEN = re.compile(rf"\*({STEP}(?: > {STEP})+)(?:\.\.\.|…)?\*")  # in pages, in italics
SAID = re.compile(rf"\b({STEP}(?: > {STEP})+)")  # in texts of the program


def paths(actions: list[QAction], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Titles from the menu bar to each entry."""
    for action in actions:
        if not action.isSeparator():
            path = (*before, re.sub(r"&(?!&)|\.\.\.$|…$", "", action.text()))
            yield path
            menu = action.menu()
            if menu is not None:
                menu.aboutToShow.emit()
                yield from paths(menu.actions(), path)


def test_menu_paths_of_the_pages_exist(empty_window: MainWindow) -> None:
    known = {" > ".join(path) for path in paths(empty_window.menuBar().actions())}
    menus = {path.partition(" > ")[0] for path in known}
    texts = (ROOT / "resources" / "languages" / "layerwright.pot").read_text(encoding="utf-8")
    named = {(page.name, path) for page in PAGES for path in WRITTEN.findall(page.read_text(encoding="utf-8"))}
    named |= {("a text of the program", path) for path in SAID.findall(texts)}
    wanted = {(where, path) for where, path in named if path.partition(" > ")[0] in menus}
    assert len(wanted) > 20
    assert [f"{where}: {path}" for where, path in sorted(wanted) if not any(is_in(path, own) for own in known)] == []


def is_in(path: str, own: str) -> bool:
    """Whether a path is that of an entry; a text of the program may go on after it."""
    return path == own or (path.startswith(f"{own} ") and not path.startswith(f"{own} >"))
