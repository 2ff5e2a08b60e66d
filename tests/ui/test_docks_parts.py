"""Panels, workspaces and layouts over a plain window with panels of this test: what is open, where, and what is stored."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings, Qt
from PySide6.QtWidgets import QComboBox, QInputDialog, QLabel, QMainWindow, QMenu, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.ui.engine.context import Context
from app.ui.shell import docks as docks_module
from app.ui.shell.docks import Docks
from app.ui.shell.layouts import Layouts
from app.ui.shell.panels import PANELS, WORKSPACES, PanelSpec
from designer.operators.registry import default_registry

SPECS = (
    PanelSpec("a", "Panel A", "m.a", "A", "left", ("Design",)),
    PanelSpec("b", "Panel B", "m.b", "B", "left", ("Design", "Train")),
    PanelSpec("c", "Panel C", "m.c", "C", "right", ("Design",)),
    PanelSpec("d", "Panel D", "m.d", "D", "bottom", ("Analysis", "Design")),
    PanelSpec("e", "Panel E", "m.e", "E", "right", ("Analysis",)),
    PanelSpec("f", "Panel F", "m.f", "F", "bottom", ()),
    PanelSpec("g", "Panel G", "m.g", "G", "left", ()),
)
SIZE = (1200, 800)
AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}


class Shell:
    """Docks and layouts of one window. `made` are the panels in the order in which they were created."""

    def __init__(
        self, qtbot: QtBot, settings: QSettings, monkeypatch: pytest.MonkeyPatch, *, shown: bool = True
    ) -> None:
        self.made: list[str] = []
        self.said: list[tuple[str, str]] = []
        monkeypatch.setattr(docks_module, "PANELS", SPECS)
        monkeypatch.setattr(Docks, "_build", lambda _docks, spec: (self.made.append(spec.id), QLabel(spec.title))[1])
        self.window = QMainWindow()
        self.window.setDockNestingEnabled(True)
        self.context = Context(default_registry(), self.window)
        self.context.message.connect(lambda severity, text: self.said.append((severity, text)))
        self.window.setCentralWidget(QWidget())
        self.docks = Docks(self.window, self.context, settings)
        self.layouts = Layouts(self.window, self.context, self.docks, settings)
        self.heard: list[str] = []
        self.docks.workspace_changed.connect(self.heard.append)
        qtbot.addWidget(self.window)
        self.window.resize(*SIZE)
        if shown:
            self.window.show()
            qtbot.waitExposed(self.window)

    def open(self) -> dict[str, set[str]]:
        """The open panels of each side, and those that float."""
        found: dict[str, set[str]] = {}
        for spec in SPECS:
            dock = self.docks[spec.id]
            if not dock.isHidden():
                area = self.window.dockWidgetArea(dock)
                side = next((name for name, each in AREAS.items() if each is area), "nowhere")
                found.setdefault("floating" if dock.isFloating() else side, set()).add(spec.id)
        return found

    def front(self) -> set[str]:
        """The panels in front of others."""
        return {spec.id for spec in SPECS if self.docks[spec.id].isVisible() and not self.docks[spec.id].visibleRegion().isEmpty()}  # fmt: skip


DESIGN = {"left": {"a", "b"}, "right": {"c"}, "bottom": {"d"}}
ANALYSIS = {"right": {"e"}, "bottom": {"d"}}
TRAIN = {"left": {"b"}}


@pytest.fixture
def shell(qtbot: QtBot, settings: QSettings, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(qtbot, settings, monkeypatch)


def test_each_workspace_has_its_panels_on_their_sides(shell, qtbot) -> None:
    assert shell.open() == {}
    assert shell.made == []
    for name, expected in (("Design", DESIGN), ("Analysis", ANALYSIS), ("Profile", {}), ("Train", TRAIN)):
        shell.docks.set_workspace(name)
        qtbot.wait(1)
        assert shell.open() == expected
        assert shell.docks.workspace == name
    assert shell.heard == ["Design", "Analysis", "Profile", "Train"]
    shell.docks.set_workspace("Train")
    assert len(shell.heard) == 4
    assert set(shell.made) == {"a", "b", "c", "d", "e"}
    assert len(shell.made) == 5, "each is made once"


def test_the_first_panel_of_a_side_is_in_front_and_sides_have_their_shares(shell, qtbot) -> None:
    shell.docks.set_workspace("Design")
    qtbot.waitUntil(lambda: shell.front() == {"a", "c", "d"})
    assert shell.made[0] == "a"
    shares = docks_module._SHARES["Design"]
    width, height = shell.window.width(), shell.window.height()
    qtbot.waitUntil(lambda: shell.docks["a"].width() == pytest.approx(shares["left"] * width, abs=3))
    assert shell.docks["c"].width() == pytest.approx(shares["right"] * width, abs=3)
    assert shell.docks["d"].height() == pytest.approx(shares["bottom"] * height, abs=3)
    assert (width, height) == SIZE
    shell.window.resize(1000, 700)
    shell.docks.settle()
    qtbot.waitUntil(lambda: shell.docks["a"].width() == pytest.approx(shares["left"] * 1000, abs=3))
    assert shell.docks["d"].height() == pytest.approx(shares["bottom"] * 700, abs=3)


def test_every_workspace_has_shares_for_every_side_on_which_it_has_panels() -> None:
    for spec in PANELS:
        for workspace in spec.workspaces:
            assert 0 < docks_module._SHARES[workspace][spec.area] < 0.5


def test_a_panel_is_made_when_it_is_seen_and_keeps_its_name(shell) -> None:
    dock = shell.docks["f"]
    assert (dock.windowTitle(), dock.accessibleName(), dock.objectName()) == ("Panel F", "Panel F", "dock.f")
    placeholder = dock.widget()
    assert shell.docks.fill("f")
    assert dock.widget() is not placeholder
    assert not shell.docks.fill("f")
    assert shell.docks.panel("f") is dock.widget()
    assert shell.made == ["f"]
    assert isinstance(shell.docks.panel("g"), QLabel)
    assert shell.made == ["f", "g"]
    assert [each.objectName() for each in shell.docks.all] == [f"dock.{spec.id}" for spec in SPECS]


def test_a_panel_opens_next_to_those_of_its_side_and_in_front(shell, qtbot) -> None:
    shell.docks.set_workspace("Analysis")
    shell.docks.show("f")
    qtbot.waitUntil(lambda: "f" in shell.front())
    assert shell.open() == {"right": {"e"}, "bottom": {"d", "f"}}
    assert shell.docks["f"] in shell.window.tabifiedDockWidgets(shell.docks["d"])
    shell.docks.show("d")
    qtbot.waitUntil(lambda: "d" in shell.front() and "f" not in shell.front())
    shell.docks.show("g")
    qtbot.waitUntil(lambda: "g" in shell.front())
    assert shell.open() == {"left": {"g"}, "right": {"e"}, "bottom": {"d", "f"}}
    shell.docks["e"].close()
    shell.docks["d"].setFloating(True)
    shell.window.addDockWidget(AREAS["left"], shell.docks["f"])
    shell.docks.show("f")
    assert shell.open() == {"left": {"f", "g"}, "floating": {"d"}}, "it stays where the user put it"
    shell.docks.show("c")
    assert shell.open()["right"] == {"c"}
    assert shell.docks["c"] not in shell.window.tabifiedDockWidgets(shell.docks["e"]), "a closed neighbor is not joined"


def test_a_floating_panel_is_not_joined(shell, qtbot) -> None:
    shell.docks.set_workspace("Analysis")
    shell.docks["d"].setFloating(True)
    shell.docks.show("f")
    assert shell.open() == {"right": {"e"}, "floating": {"d"}, "bottom": {"f"}}
    assert shell.window.tabifiedDockWidgets(shell.docks["f"]) == []


def test_the_usual_layout_comes_back_with_all_panels_docked_and_the_first_ones_in_front(shell, qtbot) -> None:
    shell.docks.set_workspace("Design")
    shell.docks.show("b")
    qtbot.waitUntil(lambda: "b" in shell.front())
    shell.docks["d"].setFloating(True)
    shell.docks["c"].close()
    shell.docks.show("g")
    shell.docks.arrange()
    assert shell.open() == DESIGN
    qtbot.waitUntil(lambda: shell.front() == {"a", "c", "d"})
    assert not shell.docks["d"].isFloating()


def test_a_panel_of_the_view_menu_opens_on_its_side(shell) -> None:
    shell.docks.set_workspace("Train")
    shell.docks["e"].toggleViewAction().trigger()
    assert shell.open() == {**TRAIN, "right": {"e"}}
    shell.docks["e"].toggleViewAction().trigger()
    assert shell.open() == TRAIN
    assert shell.made.count("e") == 1


def test_each_workspace_comes_back_as_it_was_left(shell, qtbot, settings, monkeypatch) -> None:
    docks = shell.docks
    docks.set_workspace("Design")
    docks["b"].close()
    docks.show("f")
    mine = {"left": {"a"}, "right": {"c"}, "bottom": {"d", "f"}}
    docks.set_workspace("Analysis")
    assert shell.open() == ANALYSIS
    docks["e"].close()
    docks.set_workspace("Design")
    assert shell.open() == mine
    docks.set_workspace("Analysis")
    assert shell.open() == {"bottom": {"d"}}
    docks["d"].setFloating(True)
    docks.set_workspace("Train")
    assert shell.open() == TRAIN
    docks.set_workspace("Design")
    docks.remember()
    settings.sync()
    other = Shell(qtbot, settings, monkeypatch)
    assert other.docks.last_workspace() == "Design"
    other.docks.set_workspace(other.docks.last_workspace())
    assert other.open() == mine
    other.docks.arrange()
    assert other.open() == DESIGN
    other.docks.set_workspace("Train")
    other.docks.remember()
    assert other.docks.last_workspace() == "Train"


@pytest.mark.parametrize("what", ["closed", "floating", "of another side", "alone"])
def test_a_panel_joins_the_first_one_that_is_seen_at_its_side(shell, qtbot, what) -> None:
    """Not one that was closed, that floats, or that the user moved to another side; without any, it has the side to itself."""
    docks, window = shell.docks, shell.window
    docks.set_workspace("Design")
    window.removeDockWidget(docks["a"])
    window.addDockWidget(AREAS["left"], docks["a"])  # next to the other, as those of a tab would be in the way
    docks["a"].show()
    assert window.tabifiedDockWidgets(docks["a"]) == []
    if what in ("closed", "alone"):
        docks["a"].close()
    elif what == "floating":
        docks["a"].setFloating(True)
    else:
        window.addDockWidget(AREAS["right"], docks["a"])
    if what == "alone":
        docks["b"].close()
    docks.show("g")
    others = {dock for dock in window.tabifiedDockWidgets(docks["g"]) if not dock.isHidden()}
    assert others == (set() if what == "alone" else {docks["b"]})
    assert window.dockWidgetArea(docks["g"]) is AREAS["left"]
    qtbot.waitUntil(lambda: "g" in shell.front())
    if what != "alone":
        assert "b" not in shell.front()


@pytest.mark.parametrize("last", ["Design", "Analysis", "Train"])
def test_a_window_that_is_not_shown_yet_has_the_panels_of_its_last_workspace_alone(
    shell, qtbot, settings, monkeypatch, last
) -> None:
    """Also after all workspaces were used: the state of Qt then has the panels of the others too."""
    for name in ("Design", "Analysis", "Train", "Analysis", "Design"):
        shell.docks.set_workspace(name)
        shell.docks.show("f")
    shell.docks.set_workspace("Profile")
    shell.docks.set_workspace(last)
    mine = shell.open()
    assert "f" in mine["bottom"]
    shell.docks.remember()
    settings.sync()
    other = Shell(qtbot, settings, monkeypatch, shown=False)
    other.docks.set_workspace(other.docks.last_workspace())
    assert other.docks.workspace == last
    assert other.open() == mine
    other.window.show()
    qtbot.waitExposed(other.window)
    other.docks.settle()
    assert other.open() == mine
    assert (other.window.width(), other.window.height()) == SIZE


@pytest.mark.parametrize("stored", [None, "", "Nowhere", 3, "design"])
def test_an_unknown_workspace_of_the_last_session_is_design(shell, settings, stored) -> None:
    if stored is not None:
        settings.setValue("workspace", stored)
    assert shell.docks.last_workspace() == "Design"
    for name in WORKSPACES:
        settings.setValue("workspace", name)
        assert shell.docks.last_workspace() == name


def test_a_stored_layout_that_is_no_layout_gives_way_to_the_usual_one(shell, settings) -> None:
    for stored in ("text", QByteArray(b"garbage"), None):
        settings.setValue("workspaces/Design", stored)
        settings.setValue("panels/Design", "a:1:1")
        shell.docks.workspace = ""
        shell.docks.set_workspace("Design")
        assert shell.open() == DESIGN


def test_sizes_that_the_user_chose_come_back(shell, qtbot) -> None:
    shell.docks.set_workspace("Design")
    qtbot.waitUntil(lambda: shell.front() == {"a", "c", "d"})
    shell.window.resizeDocks([shell.docks["a"], shell.docks["c"]], [310, 190], Qt.Orientation.Horizontal)
    shell.window.resizeDocks([shell.docks["d"]], [333], Qt.Orientation.Vertical)
    qtbot.waitUntil(lambda: shell.docks["d"].height() == 333)
    panels = dict(entry.split(":", 1) for entry in shell.docks.arrangement().panels.split(","))
    assert {name: panels[name].split(":")[0] for name in ("a", "c")} == {"a": "310", "c": "190"}
    assert (panels["d"].split(":")[1], panels["b"]) == ("333", "0:0"), "b is behind a"
    assert panels.keys() == {"a", "b", "c", "d"}
    shell.docks.set_workspace("Analysis")
    shell.docks.set_workspace("Design")
    qtbot.waitUntil(lambda: shell.docks["d"].height() == 333)
    assert (shell.docks["a"].width(), shell.docks["c"].width()) == (310, 190)
    assert (shell.window.width(), shell.window.height()) == SIZE


def test_titles_of_tabs_are_whole(shell, qtbot) -> None:
    shell.docks.set_workspace("Design")
    qtbot.waitUntil(lambda: shell.front() == {"a", "c", "d"})
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    for act in (lambda: None, lambda: shell.docks.show("f"), lambda: shell.docks.set_workspace("Train")):
        act()
        bars = shell.window.findChildren(QTabBar, options=direct)
        assert bars
        assert {(bar.elideMode(), bar.usesScrollButtons()) for bar in bars} == {(Qt.TextElideMode.ElideNone, True)}


def test_titles_of_tabs_are_whole_in_a_layout_that_is_shown_again_in_its_workspace(shell, qtbot) -> None:
    shell.docks.set_workspace("Design")
    qtbot.waitUntil(lambda: shell.front() == {"a", "c", "d"})
    kept = shell.docks.arrangement()
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    for bar in shell.window.findChildren(QTabBar, options=direct):
        bar.setElideMode(Qt.TextElideMode.ElideRight)
        bar.setUsesScrollButtons(False)
    shell.docks.show("f")
    shell.docks.arrange()
    for bar in shell.window.findChildren(QTabBar, options=direct):
        bar.setElideMode(Qt.TextElideMode.ElideRight)
        bar.setUsesScrollButtons(False)
    assert shell.docks.restore(kept)
    assert shell.heard == ["Design"], "the workspace is the same"
    bars = shell.window.findChildren(QTabBar, options=direct)
    assert bars
    assert {(bar.elideMode(), bar.usesScrollButtons()) for bar in bars} == {(Qt.TextElideMode.ElideNone, True)}


@pytest.mark.parametrize("restored", [False, True])
def test_panels_that_need_more_room_do_not_enlarge_the_window_for_good(shell, qtbot, restored) -> None:
    shell.docks.set_workspace("Train")
    shell.window.resize(500, 400)
    if restored:
        shell.docks.set_workspace("Design")
        shell.docks.set_workspace("Train")
    size = shell.window.size()
    taken = shell.docks._clear
    shell.docks._clear = lambda: (taken(), shell.window.resize(900, 700))[0]  # as panels with large minimum sizes do
    shell.docks.set_workspace("Design")
    assert shell.window.size() == size
    shell.docks._clear = taken


# --- layouts ---------------------------------------------------------------------------------------------------------


def entries(shell: Shell) -> list[tuple[str, str, bool]]:
    """The entries of the menu of layouts and of its submenu."""
    menu = QMenu(shell.window)
    shell.layouts.fill(menu)
    found = []
    for action in menu.actions():
        if action.menu() is not None:
            found += [
                (f"Delete > {each.text()}", each.objectName(), each.isEnabled()) for each in action.menu().actions()
            ]
        elif not action.isSeparator():
            found.append((action.text(), action.objectName(), action.isEnabled()))
    return found


def press(shell: Shell, text: str) -> None:
    menu = QMenu(shell.window)
    shell.layouts.fill(menu)
    under, _, title = text.rpartition(" > ")
    actions = next(a.menu().actions() for a in menu.actions() if a.menu() is not None) if under else menu.actions()
    next(action for action in actions if action.text() == title).trigger()


def test_layouts_are_shown_replaced_and_deleted_by_their_names(shell) -> None:
    assert entries(shell) == [("No saved layouts", "", False)]
    shell.docks.set_workspace("Design")
    shell.docks["c"].close()
    shell.layouts.save("b/1 & 100 %")
    shell.docks.set_workspace("Analysis")
    shell.docks.show("g")
    shell.layouts.save("A")
    assert shell.said == [("info", "Saved layout “b/1 & 100 %”"), ("info", "Saved layout “A”")]
    assert entries(shell) == [
        ("A", "layout.show_0", True),
        ("b/1 && 100 %", "layout.show_1", True),
        ("Delete > A", "layout.delete_0", True),
        ("Delete > b/1 && 100 %", "layout.delete_1", True),
    ]
    shell.docks.set_workspace("Train")
    press(shell, "b/1 && 100 %")
    assert (shell.docks.workspace, shell.open()) == ("Design", {"left": {"a", "b"}, "bottom": {"d"}})
    shell.docks.show("f")
    press(shell, "A")
    assert (shell.docks.workspace, shell.open()) == ("Analysis", {**ANALYSIS, "left": {"g"}})
    shell.docks.set_workspace("Design")
    assert shell.open() == {"left": {"a", "b"}, "bottom": {"d", "f"}}, "the layout replaced only the other workspace"
    shell.layouts.save("A")
    shell.docks.set_workspace("Train")
    assert shell.open() == TRAIN
    press(shell, "A")
    assert shell.open() == {"left": {"a", "b"}, "bottom": {"d", "f"}}
    shell.said.clear()
    press(shell, "Delete > b/1 && 100 %")
    assert shell.said == [("info", "Deleted layout “b/1 & 100 %”")]
    assert shell.layouts.names() == ["A"]
    for name in ("B", "a2"):
        shell.layouts.save(name)
    assert shell.layouts.names() == ["A", "a2", "B"]
    for name in ("B", "A", "a2"):
        press(shell, f"Delete > {name}")
    assert entries(shell) == [("No saved layouts", "", False)]


def test_a_layout_that_cannot_be_shown_or_has_no_name_is_explained(shell) -> None:
    shell.docks.set_workspace("Design")
    shell.layouts.save("")
    assert shell.said.pop() == ("error", "The layout was not saved because it has no name. Enter one.")
    assert shell.layouts.names() == []
    shell.layouts.show("gone")
    assert shell.said.pop() == ("error", "Layout “gone” cannot be read. Delete it and save it again.")
    assert (shell.docks.workspace, shell.open()) == ("Design", DESIGN)


def test_the_dialog_offers_the_names_and_saves_under_the_typed_one(shell) -> None:
    shell.docks.set_workspace("Design")
    for name in ("two", "One"):
        shell.layouts.save(name)
    shell.said.clear()
    for typed, said in (
        (" three ", ("info", "Saved layout “three”")),
        ("  ", None),
        ("two", ("info", "Saved layout “two”")),
    ):
        shell.layouts.ask_name()
        dialog = next(each for each in shell.window.findChildren(QInputDialog) if each.isVisible())
        assert dialog.windowTitle() == "Save Layout"
        assert dialog.labelText() == "Layout name (an existing layout of that name is replaced)"
        assert dialog.okButtonText() == "Save"
        assert dialog.comboBoxItems() == shell.layouts.names()
        field = dialog.findChild(QComboBox, "layout_name.text")
        assert (field.currentText(), field.accessibleName()) == ("", "Layout name")
        field.setEditText(typed)
        dialog.accept()
        assert shell.said.pop() == (said or ("error", "The layout was not saved because it has no name. Enter one."))
    assert shell.layouts.names() == ["One", "three", "two"]


def test_settings_of_a_layout_are_in_a_group_of_its_name(shell, settings: QSettings, tmp_path: Path) -> None:
    shell.docks.set_workspace("Design")
    shell.layouts.save("a/b")
    settings.beginGroup("layouts")
    assert settings.childGroups() == ["a%2Fb"]
    settings.endGroup()
    assert settings.value("layouts/a%2Fb/workspace") == "Design"
    assert settings.value("layouts/a%2Fb/panels") == shell.docks.arrangement().panels
    assert isinstance(settings.value("layouts/a%2Fb/state"), QByteArray)
