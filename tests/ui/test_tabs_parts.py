"""Tabs without a canvas: names and tips of documents, which one is shown, and what each keeps while another is shown."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from light_shell import LightShell, network
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.open_document import OpenDocument
from app.ui.shell.tab_bar import MOST
from app.ui.widgets import garbage
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import set_template
from designer.importers.report import ImportReport

LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[LightShell]:
    made = LightShell(qtbot, tmp_path)
    yield made
    for tab in made.tabs.all:
        tab.document.history.mark_clean()


def saved(shell: LightShell, path: Path) -> OpenDocument:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_document(network(), path)
    return shell.add(network(), path)


def edit(tab: OpenDocument) -> None:
    assert tab.document.do(lambda g: commands.set_property(g, "author_notes", "x"))


def tips(shell: LightShell) -> list[str]:
    bar = shell.tabs.bar
    return [bar.tabToolTip(index) for index in range(bar.count())]


def spoken(shell: LightShell) -> list[tuple[str, str]]:
    """The accessible names of each tab and of its button."""
    bar = shell.tabs.bar
    return [
        (bar.accessibleTabName(i), bar.tabButton(i, QTabBar.ButtonPosition.RightSide).accessibleName())
        for i in range(bar.count())
    ]


def test_equal_names_are_told_apart_by_folder_or_number(shell, tmp_path) -> None:
    one = saved(shell, tmp_path / "a" / "net.xml")
    assert shell.names == ["[net.xml]"]
    two = saved(shell, tmp_path / "b" / "net.xml")
    other = saved(shell, tmp_path / "b" / "other & more.xml")
    assert shell.names == ["a/net.xml", "b/net.xml", "[other && more.xml]"]
    new = [shell.add(network(name=name)) for name in ("fresh", "fresh", "net.xml", "fresh")]
    assert shell.names[3:] == ["fresh", "fresh (2)", "net.xml", "[fresh (3)]"]
    assert [shell.tabs.title(tab) for tab in (one, two, other, *new)] == [
        "a/net.xml", "b/net.xml", "other & more.xml", "fresh (unsaved)", "fresh (2) (unsaved)", "net.xml (unsaved)", "fresh (3) (unsaved)",
    ]  # fmt: skip
    shell.tabs.remove(two)
    assert shell.names[:2] == ["a/net.xml", "other && more.xml"], "the network without a file has the name too"
    shell.tabs.remove(new[2])
    shell.tabs.remove(new[0])
    assert shell.names == ["net.xml", "other && more.xml", "fresh", "[fresh (2)]"]
    new[1].document.do(lambda g: commands.set_property(g, "name", "mine"))
    assert shell.names == ["net.xml", "other && more.xml", "● mine", "[fresh]"]
    one.document.mark_saved(tmp_path / "c" / "last.xml")
    assert shell.names[0] == "last.xml"


def test_marks_and_tips_of_a_document(shell, tmp_path) -> None:
    path = tmp_path / "net.xml"
    tab = saved(shell, path)
    new = shell.add(network(name="fresh"))
    model = shell.add(network(name="model"))
    model.document.imported = ImportRecord(None, ImportReport("package.module:Net"), model.document)
    shell.tabs._label()
    imported = "Imported from package.module:Net\nNot saved yet"
    assert (shell.names, tips(shell)) == (["net.xml", "fresh", "[model]"], [str(path), "Not saved yet", imported])
    assert spoken(shell) == [("net.xml", "Close net.xml"), ("fresh", "Close fresh"), ("model", "Close model")]
    assert list(map(shell.tabs.title, (tab, new, model))) == ["net.xml", "fresh (unsaved)", "model (unsaved)"]
    for each in (tab, new, model):
        edit(each)
    more = "\nUnsaved changes"
    assert shell.names == ["● net.xml", "● fresh", "[● model]"]
    assert tips(shell) == [f"{path}{more}", f"Not saved yet{more}", f"{imported}{more}"]
    assert spoken(shell)[0] == ("net.xml, unsaved", "Close net.xml")
    save_document(network("8x8x3"), path)
    tab.check_disk()
    assert tips(shell)[0] == f"{path}{more}\nChanged by another program"
    path.unlink()
    tab.check_disk()
    assert tips(shell)[0] == f"{path}{more}\nThe file no longer exists"
    tab.document.undo()
    assert tips(shell)[0] == f"{path}\nThe file no longer exists"
    tab.accept_disk()
    assert (shell.names[0], tips(shell)[0]) == ("net.xml", str(path))
    markup = saved(shell, tmp_path / "a <b>.xml")
    assert tips(shell)[-1] == f"<p>{str(markup.document.path).replace('<', '&lt;').replace('>', '&gt;')}</p>"


def test_the_tip_of_a_tab_in_every_state_of_its_document(shell, tmp_path) -> None:
    """An import that was saved is a document like others."""
    path = tmp_path / "net.xml"
    for has_file, imported in product((False, True), repeat=2):
        tab = shell.add(network(), path if has_file else None)
        if imported:
            tab.document.imported = ImportRecord(Path("/models/net.onnx"), ImportReport("net.onnx"), tab.document)
        first = str(path) if has_file else "Imported from net.onnx\nNot saved yet" if imported else "Not saved yet"
        for unsaved in (False, True):
            if unsaved:
                edit(tab)
            for disk, last in (
                ("same", ""),
                ("changed", "Changed by another program"),
                ("gone", "The file no longer exists"),
            ):
                tab.disk = disk
                tab.disk_changed.emit()
                lines = (first, "Unsaved changes" * unsaved, last)
                assert tips(shell)[-1] == "\n".join(filter(None, lines))
        tab.document.history.mark_clean()
        tab.disk = "same"
    tab.document.do(lambda g: commands.set_property(g, "name", "other"))
    model = shell.add(network(name="model"))
    model.document.imported = ImportRecord(None, ImportReport("net.onnx"), model.document)
    model.document.mark_saved(tmp_path / "model.xml")
    assert (shell.names[-1], tips(shell)[-1]) == ("[model.xml]", str(tmp_path / "model.xml"))


def test_a_file_is_found_through_links_and_a_document_by_itself(shell, tmp_path) -> None:
    tab = saved(shell, tmp_path / "a" / "net.xml")
    shell.add(network())
    (tmp_path / "link.xml").symlink_to(tmp_path / "a" / "net.xml")
    (tmp_path / "folder").symlink_to(tmp_path / "a")
    for path in ("a/net.xml", "link.xml", "folder/net.xml", "a/../a/net.xml"):
        assert shell.tabs.find(tmp_path / path) is tab, path
    assert shell.tabs.find(tmp_path / "net.xml") is None
    assert shell.tabs.of(tab.document) is tab
    assert shell.tabs.of(Document(network(), shell.context.registry, parent=shell)) is None
    assert len(shell.tabs) == 2


def test_each_document_keeps_its_view_and_selection(shell, tmp_path) -> None:
    one, two = saved(shell, tmp_path / "one.xml"), saved(shell, tmp_path / "two.xml")
    heard: list[str] = []
    shell.tabs.changed.connect(lambda: heard.append(shell.context.root.path.stem))
    shell.viewer.view = "second"
    shell.context.select(("conv", "out"))
    shell.tabs.show(one)
    assert (shell.context.selection, shell.context.root) == ((), one.document)
    assert heard == ["one"]
    shell.viewer.view = "first"
    shell.context.select(("in",))
    two.document.do(lambda g: commands.remove_layers(g, ["out"]))
    shell.tabs.show(two)
    assert (shell.viewer.view, shell.context.selection) == ("second", ("conv",)), "what is gone is not selected"
    heard.clear()
    shell.tabs.show(two)
    assert heard == []
    shell.tabs.show(one)
    assert (shell.viewer.view, shell.context.selection) == ("first", ("in",))
    assert shell.tabs.shown is one
    layers = (Layer("x", "template_input"), Layer("inner", "identity", inputs=(Source("x"),)))
    part = Template("part", (*layers, Layer("y", "template_output", inputs=(Source("inner"),))))
    assert one.document.do(lambda g: set_template(g, part))
    assert shell.context.enter("part")
    shell.context.select(("inner", "y"))
    shell.tabs.show(two)
    assert shell.context.selection == ("conv",)
    shell.tabs.show(one)
    assert [step.template for step in shell.context.scope] == ["part"]
    assert shell.context.selection == ("inner", "y"), "the layers of what is shown of it"


def test_steps_go_around(shell, tmp_path) -> None:
    shell.tabs.step(1)
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "abcd"]
    seen = []
    for by in (1, 1, -1, -1, -1, 2, 5):
        shell.tabs.step(by)
        seen.append("abcd"[tabs.index(shell.tabs.shown)])
    assert "".join(seen) == "abadcab"
    shell.tabs.bar.moveTab(0, 3)
    shell.tabs.step(1)
    assert shell.tabs.all == [*tabs[1:], tabs[0]]
    assert shell.tabs.shown is tabs[2]
    for tab in tabs[1:]:
        shell.tabs.remove(tab)
    shell.tabs.step(1)
    assert shell.names == ["[a.xml]"]


@pytest.mark.parametrize(("closed", "shows"), [(0, 1), (1, 2), (2, 1)])
def test_the_next_document_is_shown_after_the_shown_one_is_closed(shell, tmp_path, closed, shows) -> None:
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "abc"]
    shell.tabs.show(tabs[closed])
    shell.tabs.remove(tabs[closed])
    assert shell.tabs.shown is tabs[shows]
    assert shell.context.root is tabs[shows].document
    assert shell.names == [f"[{t.document.path.name}]" if t is tabs[shows] else t.document.path.name for t in tabs if t is not tabs[closed]]  # fmt: skip


def test_closing_a_document_in_the_background_shows_nothing_else(shell, tmp_path) -> None:
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "abc"]
    shell.viewer.view = "kept"
    shell.tabs.remove(tabs[0])
    assert (shell.tabs.shown, shell.viewer.view, shell.names) == (tabs[2], "kept", ["b.xml", "[c.xml]"])


def test_a_blank_document_makes_room_for_one_that_is_shown_only(shell, tmp_path) -> None:
    blank = shell.add(Graph())
    assert blank.is_blank
    saved_in_background = OpenDocument(Document(network(), shell.context.registry, tmp_path / "a.xml"))
    shell.tabs.add(saved_in_background, show=False)
    assert shell.tabs.shown is blank
    assert len(shell.tabs) == 2
    shown = saved(shell, tmp_path / "b.xml")
    assert shell.tabs.all == [saved_in_background, shown]
    used = shell.add(Graph())
    edit(used)
    assert not used.is_blank
    saved(shell, tmp_path / "c.xml")
    assert used in shell.tabs.all
    first = LightShell.add(shell, Graph(), show=False)
    assert first in shell.tabs.all
    assert shell.tabs.shown is not first


@pytest.mark.parametrize("current", [True, False])
def test_a_replaced_document_keeps_place_view_and_selection(shell, tmp_path, current) -> None:
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "abc"]
    shell.tabs.show(tabs[1])
    shell.viewer.view = "of b"
    shell.context.select(("conv",))
    if not current:
        shell.tabs.show(tabs[2])
        shell.viewer.view = "of c"
    other = OpenDocument(Document(network("8x8x3"), shell.context.registry, tmp_path / "b.xml"))
    shell.tabs.replace(tabs[1], other)
    assert shell.tabs.all == [tabs[0], other, tabs[2]]
    assert shell.tabs.shown is (other if current else tabs[2])
    assert shell.names == (["a.xml", "[b.xml]", "c.xml"] if current else ["a.xml", "b.xml", "[c.xml]"])
    assert shell.viewer.view == ("of b" if current else "of c")
    shell.tabs.show(other)
    assert (shell.viewer.view, shell.context.selection) == ("of b", ("conv",))


def test_a_document_that_is_set_elsewhere_has_a_tab(shell, tmp_path) -> None:
    first = saved(shell, tmp_path / "a.xml")
    shell.viewer.view = "of a"
    shell.context.select(("in",))
    document = Document(network(), shell.context.registry, tmp_path / "b.xml", parent=shell.context)
    shell.context.set_document(document)
    assert shell.names == ["a.xml", "[b.xml]"]
    assert shell.tabs.shown.document is document
    assert (first.view, first.selection) == ("of a", ("in",))
    shell.context.set_document(first.document)
    assert (shell.tabs.shown, shell.names) == (first, ["[a.xml]", "b.xml"])
    for known in (False, True):
        blank = shell.add(Graph())
        assert (shell.tabs.shown, blank.is_blank) == (blank, True)
        before = [tab for tab in shell.tabs.all if tab is not blank]
        other = Document(network(), shell.context.registry, tmp_path / "c.xml", parent=shell.context)
        shell.context.set_document(first.document if known else other)
        assert shell.tabs.shown.document is (first.document if known else other)
        assert [tab for tab in shell.tabs.all if tab.document is not other or known] == before
        assert blank not in shell.tabs.all, "it makes room"


def test_large_documents_are_exempt_from_collections_while_any_is_open(shell, monkeypatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(garbage, "exempt", lambda: heard.append("exempt"))
    monkeypatch.setattr(garbage, "restore", lambda: heard.append("restore"))
    monkeypatch.setattr(garbage, "LARGE", 3)
    shell.add(network())
    assert heard == ["exempt"]
    monkeypatch.setattr(garbage, "LARGE", 4)
    tab = shell.add(network())
    assert heard == ["exempt"]
    shell.tabs.remove(tab)
    assert heard == ["exempt", "restore"]


# --- the bar ---------------------------------------------------------------------------------------------------------


def test_the_button_and_the_middle_button_ask_to_close_their_own_tab(shell, qtbot, tmp_path) -> None:
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "abc"]
    bar, asked = shell.tabs.bar, []
    bar.resize(600, 40)
    bar.show()
    shell.tabs.close_asked.connect(asked.append)
    bar.moveTab(2, 0)
    for index, tab in ((1, tabs[0]), (2, tabs[1]), (0, tabs[2])):
        button = bar.tabButton(index, QTabBar.ButtonPosition.RightSide)
        assert button.toolTip() == "Close"
        button.click()
        assert asked == [tab]
        asked.clear()
        QTest.mouseClick(bar, MIDDLE, pos=bar.tabRect(index).center())
        assert asked == [tab]
        asked.clear()
    QTest.mousePress(bar, MIDDLE, pos=bar.tabRect(0).center())
    QTest.mouseRelease(bar, MIDDLE, pos=bar.tabRect(1).center())
    QTest.mousePress(bar, MIDDLE, pos=QPoint(599, 5))
    QTest.mouseRelease(bar, MIDDLE, pos=QPoint(599, 5))
    assert asked == []
    assert shell.tabs.shown is tabs[2], "the middle button shows nothing"
    QTest.mouseClick(bar, LEFT, pos=bar.tabRect(1).center() - QPoint(10, 0))
    assert shell.tabs.shown is tabs[0]


def test_the_menu_of_a_tab_is_that_of_the_place_or_of_the_current_one(shell, tmp_path) -> None:
    tabs = [saved(shell, tmp_path / f"{name}.xml") for name in "ab"]
    bar, asked = shell.tabs.bar, []
    bar.resize(600, 40)
    bar.show()
    shell.tabs.menu_asked.connect(lambda tab, place: asked.append((tab, bar.mapFromGlobal(place))))
    place = bar.tabRect(0).center()
    QApplication.sendEvent(bar, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, bar.mapToGlobal(place)))
    assert asked == [(tabs[0], place)]
    outside = QPoint(599, 5)
    QApplication.sendEvent(bar, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, outside, bar.mapToGlobal(outside)))
    assert asked[1] == (tabs[1], bar.tabRect(1).center())


def test_long_names_do_not_make_wide_tabs(shell, tmp_path) -> None:
    saved(shell, tmp_path / "a.xml")
    saved(shell, tmp_path / f"{'long_' * 30}.xml")
    bar = shell.tabs.bar
    assert bar.tabSizeHint(0).width() < MOST
    assert bar.tabSizeHint(1).width() == MOST
    assert bar.minimumTabSizeHint(1) == bar.tabSizeHint(1)
    assert bar.elideMode() is Qt.TextElideMode.ElideMiddle
    assert bar.index(99) == -1
    bar.remove(99)
    assert bar.count() == 2
