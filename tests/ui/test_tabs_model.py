"""Tabs after any steps: their order, their names and marks, and which one is shown, as a list of the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtWidgets import QApplication

from app.ui.document.open_document import OpenDocument
from app.ui.shell import session
from app.ui.shell.tab_bar import UNSAVED
from app.ui.shell.window import MainWindow
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

STEPS = 45


@dataclass(eq=False)
class Tab:
    """What a tab must show. `opened` is set when the step is done."""

    path: Path | None
    dirty: bool = False
    selected: tuple[str, ...] = ()
    opened: OpenDocument | None = None

    @property
    def blank(self) -> bool:
        return self.path is None and not self.dirty


class Model:
    """The tabs of a window as a list; each method does a step in the window and in the list."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        window.files.new()
        self.tabs = [Tab(None)]
        self.current = self.tabs[0]
        self.closed: list[Path] = []
        self.recent: list[Path] = []

    def _added(self, tab: Tab, *, show: bool = True) -> None:
        blank = self.current if self.current.blank else None
        self.tabs.append(tab)
        if show:
            self.current = tab
            if blank is not None:
                self.tabs.remove(blank)

    def new(self) -> None:
        self.window.files.new()
        self._added(Tab(None))

    def open(self, path: Path, *, show: bool = True) -> None:
        assert self.window.files.open(path, show=show)
        self._opened(path, show=show)

    def _opened(self, path: Path, *, show: bool = True) -> None:
        file = path.resolve()
        known = next((tab for tab in self.tabs if tab.path is not None and tab.path.resolve() == file), None)
        if known is None:
            self._added(Tab(path), show=show)
            self.closed = [each for each in self.closed if each.resolve() != file]
            self.recent = [file, *(each for each in self.recent if each != file)]
        elif show:
            self.current = known

    def show(self, tab: Tab) -> None:
        assert tab.opened is not None
        self.window.tabs.show(tab.opened)
        self.current = tab

    def step(self, by: int) -> None:
        self.window.tabs.step(by)
        self.current = self.tabs[(self.tabs.index(self.current) + by) % len(self.tabs)]

    def close(self, tab: Tab) -> None:
        if tab.dirty:
            return
        done = self.window.files.close(None if tab is self.current else tab.opened)
        alone = len(self.tabs) == 1
        assert done is not (alone and tab.blank)
        if not done:
            return
        if tab.path is not None:
            self.closed = [*(path for path in self.closed if path != tab.path), tab.path]
        if alone:
            self.tabs.append(Tab(None))
        place = self.tabs.index(tab)
        if tab is self.current:
            self.current = self.tabs[place + 1] if place + 1 < len(self.tabs) else self.tabs[place - 1]
        self.tabs.remove(tab)

    def close_others(self, tab: Tab) -> None:
        if any(other.dirty for other in self.tabs if other is not tab):
            return
        self.window.files.close_others(tab.opened)
        self.closed += [other.path for other in self.tabs if other is not tab and other.path is not None]
        self.tabs, self.current = [tab], tab

    def reopen(self) -> None:
        self.window.files.reopen()
        if self.closed:
            self._opened(self.closed.pop())

    def drag(self, start: int, end: int) -> None:
        self.window.tabs.bar.moveTab(start, end)
        self.tabs.insert(end, self.tabs.pop(start))

    def select(self, names: tuple[str, ...]) -> None:
        graph = self.window.context.document.graph
        self.current.selected = tuple(name for name in names if name in graph)
        self.window.context.select(self.current.selected)

    def change(self) -> None:
        document = self.window.context.root
        if self.current.dirty:
            document.undo()
        else:
            document.do(lambda g: commands.add_layer(g, Layer("more", "identity")))
        self.current.dirty = not self.current.dirty
        self.current.selected = self.window.context.selection

    def check(self) -> None:
        window, bar = self.window, self.window.tabs.bar
        QApplication.processEvents()
        opened = window.tabs.all
        assert len(opened) == len(self.tabs) == bar.count() == len(window.tabs)
        for tab, each in zip(self.tabs, opened, strict=True):
            assert tab.opened in (None, each), "another document is in this tab"
            tab.opened = each
        assert [each.document.path for each in opened] == [tab.path for tab in self.tabs]
        assert window.context.comparison.open_documents() == [each.document for each in opened]
        assert bar.currentIndex() == self.tabs.index(self.current)
        assert window.tabs.shown is self.current.opened
        assert window.context.root is self.current.opened.document
        assert set(window.canvas.projection.layers) == set(window.context.root.graph.layers)
        assert window.context.selection == self.current.selected
        assert sorted(window.canvas.viewer.selected_names()) == sorted(self.current.selected)
        assert window.isWindowModified() is self.current.dirty
        names = []
        unnamed = 0
        for tab in sorted(self.tabs, key=lambda tab: list(window.tabs._files.values()).index(tab.opened)):
            if tab.path is None:
                unnamed += 1
                names.append((tab, "network" if unnamed == 1 else f"network ({unnamed})"))
            else:
                same = [other for other in self.tabs if other.path is not None and other.path.name == tab.path.name]
                name = f"{tab.path.resolve().parent.name}/{tab.path.name}" if len(same) > 1 else tab.path.name
                names.append((tab, name))
        for tab, name in names:
            index = self.tabs.index(tab)
            assert bar.tabText(index) == f"{UNSAVED if tab.dirty else ''}{name}"
            assert bar.tabButton(index, bar.ButtonPosition.RightSide).accessibleName() == f"Close {name}"
            tip = bar.tabToolTip(index)
            assert ("Unsaved changes" in tip) is tab.dirty
            assert (str(tab.path) if tab.path is not None else "Not saved yet") in tip
        assert window.files.closed == len(self.closed)
        assert window.actions_["file.reopen"].isEnabled() is bool(self.closed)
        assert window.actions_["tab.next"].isEnabled() is (len(self.tabs) > 1)
        assert window.files.recent() == self.recent[:10]
        stored = session.stored_tabs(window.settings)
        assert [path for path, _ in stored] == [tab.path for tab in self.tabs if tab.path is not None]
        assert [shown for _, shown in stored] == [tab is self.current for tab in self.tabs if tab.path is not None]


def steps(dice: Random, model: Model, files: list[Path], link: Path) -> dict[str, Callable[[], None]]:
    """One of each kind of step, for tabs and files at random."""
    some, path = dice.choice(model.tabs), dice.choice(files)
    other = dice.randrange(len(model.tabs))
    return {
        "new": model.new,
        "open": lambda: model.open(path),
        "open another": lambda: model.open(dice.choice(files)),
        "open through a link": lambda: model.open(link / dice.choice(("one.xml", "three.xml"))),
        "open behind": lambda: model.open(path, show=False),
        "show": lambda: model.show(some),
        "next": lambda: model.step(1),
        "previous": lambda: model.step(-1),
        "close": lambda: model.close(model.current),
        "close one": lambda: model.close(some),
        "close others": lambda: model.close_others(some),
        "reopen": model.reopen,
        "drag": lambda: model.drag(dice.randrange(len(model.tabs)), other),
        "select": lambda: model.select(dice.choice((("in",), ("in", "one"), ("three",), ()))),
        "change": model.change,
        "change back": model.change,
    }


@pytest.mark.parametrize("seed", range(5))
def test_tabs_after_any_steps(empty_window: MainWindow, tmp_path: Path, seed: int) -> None:
    dice, files = Random(seed), []
    for folder, name in (("a", "one"), ("a", "two"), ("b", "one"), ("b", "three")):
        path = tmp_path / folder / f"{name}.xml"
        path.parent.mkdir(exist_ok=True)
        save_document(Graph([Layer("in", "input"), Layer(name, "identity", (320, 0), (Source("in"),))]), path)
        files.append(path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "b", target_is_directory=True)
    model = Model(empty_window)
    model.check()
    log = []
    for _ in range(STEPS):
        acts = steps(dice, model, files, link)
        name = dice.choice(list(acts))
        log.append(name)
        acts[name]()
        try:
            model.check()
        except AssertionError as error:
            raise AssertionError(f"after {log}: {error}") from error
