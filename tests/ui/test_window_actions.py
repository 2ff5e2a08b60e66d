"""What actions do that do not change the network: runs that open their panels and are stopped, windows, docks that float."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt, qVersion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMessageBox, QToolButton
from window_kit import action, network, press, settle, show

from app.ui.shell import about
from app.ui.shell.export.video import VideoExportDialog
from app.ui.shell.panels import ANALYSIS, DESIGN, PANELS, PROFILE, TRAIN
from designer.graph import commands
from designer.graph.model import Layer


@pytest.fixture
def quiet(window, monkeypatch):
    """The window with a network; requests to run it are counted, and nothing runs."""
    window.requests = []
    show(window, network())
    for name in ("analysis_requested", "inference_requested"):
        getattr(window.context, name).connect(lambda name=name: window.requests.append(name))
    return window


@pytest.mark.parametrize(
    ("method", "workspace", "panels", "requests"),
    [
        ("run_analysis", ANALYSIS, ("analysis", "network_overview"), ["analysis_requested"]),
        ("run_inference", PROFILE, ("run_logger", "operator_table", "utilisation"), ["inference_requested"]),
        ("train", TRAIN, ("training",), []),
    ],
)
def test_a_run_opens_its_panels_also_where_they_were_closed(quiet, method, workspace, panels, requests):
    docks = quiet.docks
    docks.set_workspace(workspace)
    for name in panels:
        docks[name].close()
    docks.set_workspace(DESIGN)
    getattr(quiet, method)()
    assert docks.workspace == workspace
    assert [name for name in panels if docks[name].isHidden()] == []
    assert quiet.requests == requests


def test_stop_and_escape_cancel_what_the_engine_does(window, monkeypatch, qtbot):
    window.start_engine_client()
    cancelled = []
    monkeypatch.setattr(window.context.engine, "cancel", lambda: cancelled.append(1))
    button = window.status.findChild(QToolButton, "status.stop")
    assert not action(window, "run.stop").isEnabled()
    press(window, "Shift+F5", "Esc")
    assert not cancelled
    window.status.show_busy(True)
    qtbot.waitUntil(action(window, "run.stop").isEnabled)
    press(window, "Shift+F5")
    assert len(cancelled) == 1
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert len(cancelled) == 2
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert len(cancelled) == 3
    window.status.show_busy(False)
    qtbot.waitUntil(lambda: not action(window, "run.stop").isEnabled())
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert len(cancelled) == 3
    monkeypatch.undo()


def test_without_an_engine_stop_does_nothing(window):
    assert window.context.engine is None
    window.stop()


def test_a_reset_workspace_docks_what_floats_and_closes_what_is_not_its_own(window):
    docks = window.docks
    docks.set_workspace(PROFILE)
    docks["charts"].setFloating(True)
    docks.show("blame")
    docks["advice"].close()
    action(window, "view.reset_layout").trigger()
    QApplication.processEvents()
    own = {spec.id for spec in PANELS if PROFILE in spec.workspaces}
    assert {spec.id for spec in PANELS if not docks[spec.id].isHidden()} == own
    assert not docks["charts"].isFloating()
    assert docks.workspace == PROFILE


@pytest.mark.parametrize("panel", [spec.id for spec in PANELS])
def test_a_panel_is_opened_from_the_view_menu_where_its_side_is(window, panel):
    docks = window.docks
    docks[panel].toggleViewAction().trigger()
    if docks[panel].isHidden():
        docks[panel].toggleViewAction().trigger()
    spec = next(spec for spec in PANELS if spec.id == panel)
    side = {"left": Qt.DockWidgetArea.LeftDockWidgetArea, "right": Qt.DockWidgetArea.RightDockWidgetArea}
    assert window.dockWidgetArea(docks[panel]) is side.get(spec.area, Qt.DockWidgetArea.BottomDockWidgetArea)
    QApplication.processEvents()
    assert not docks[panel].visibleRegion().isEmpty(), "it is in front"
    assert docks[panel].toggleViewAction().isChecked()


@pytest.mark.parametrize(
    ("name", "panel"),
    [
        ("tools.network_settings", "network_settings"),
        ("tools.type_checking", "type_checking"),
        ("tools.run_logger", "run_logger"),
    ],
)
def test_the_tools_show_their_panels_in_any_workspace(window, name, panel):
    for place in (TRAIN, PROFILE, DESIGN):
        window.docks.set_workspace(place)
        window.docks[panel].close()
        action(window, name).trigger()
        QApplication.processEvents()
        assert not window.docks[panel].visibleRegion().isEmpty(), place
        assert window.docks.workspace == place


def test_the_tools_menu_has_the_names_of_the_2022_tool(window):
    menu = next(a.menu() for a in window.menuBar().actions() if a.text() == "&Tools")
    titles = [entry.text().replace("&", "") for entry in menu.actions()]
    assert titles == ["Network Settings", "Type Checking", "Inference Run Logger"]


def test_the_dialog_for_videos_names_the_missing_input_and_asks_for_the_kind_of_target(window, monkeypatch):
    show(window, network())
    asked = []
    monkeypatch.setattr(
        "app.ui.shell.export.video.QFileDialog.getSaveFileName",
        lambda _parent, *rest: (asked.append(rest), (f"{asked[-1][1]}.part", ""))[1],
    )
    dialog = VideoExportDialog(window.context, window)
    dialog.show()
    assert dialog.message.text().startswith("No input is a folder or a video")
    assert not dialog.export.isEnabled()
    for number, kind in enumerate(dialog._kinds):
        dialog.kind.setCurrentIndex(number)
        dialog.target.setText(f"/tmp/some{kind.suffix}")
        dialog.browse()
        assert asked[-1][1] == f"/tmp/some{kind.suffix}"
        assert asked[-1][2:] == ((f"{kind.title} (*{kind.suffix})",) if kind.suffix else ())
        assert dialog.target.text() == (f"/tmp/some{kind.suffix}{kind.suffix}" if kind.suffix else "/tmp/some")
    monkeypatch.setattr("app.ui.shell.export.video.QFileDialog.getSaveFileName", lambda *a: ("", ""))
    dialog.browse()
    assert dialog.target.text() == "/tmp/some"
    dialog.close()


def test_about_says_that_the_program_runs_from_its_source(window, monkeypatch):
    def none(name: str) -> str:
        raise about.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(about.metadata, "version", none)
    action(window, "help.about").trigger()
    box = window.findChild(QMessageBox, "about")
    assert "not installed, run from source" in box.text()
    box.close()
    monkeypatch.setattr(about.metadata, "version", lambda name: f"1.2 <{name}>")
    QApplication.processEvents()
    action(window, "help.about").trigger()
    box = window.findChildren(QMessageBox, "about")[-1]
    assert "1.2 &lt;layerwright&gt;" in box.text()
    licenses = f"MIT license. Qt {qVersion()} under the LGPL, NodeGraphQt under the MIT license."
    assert box.informativeText() == licenses
    box.close()


def test_a_click_on_a_link_of_the_welcome_leaves_the_keyboard_with_the_canvas(window):
    window.activateWindow()
    window.canvas.viewer.setFocus()
    link = window.findChild(QToolButton, "welcome.file.new_denoiser")
    QTest.mouseClick(link, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert window.context.root.graph.name == "denoiser"
    assert window.canvas.isAncestorOf(QApplication.focusWidget()) or QApplication.focusWidget() is window.canvas.viewer


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("lay out", "Lay Out Everything"),  # not About Layerwright, which has both parts of the text
        ("layout", "Lay Out Everything"),
        ("work", "Reset Workspace"),  # not Network Settings
        ("dark", "Theme: Dark"),
        ("dark theme", "Theme: Dark"),
        ("undo", "Undo"),
        ("workspaces", "Workspaces: Analysis"),
    ],
)
def test_the_command_palette_begins_with_names_that_have_what_was_typed(window, typed, first):
    show(window, network())
    window.context.document.do(lambda graph: commands.set_property(graph, "author_notes", "x"))
    QApplication.processEvents()
    found = [match.text for match in window.commands._commands(typed)]
    assert found[0] == first
    assert len(set(found)) == len(found)
    assert window.commands._commands(f"  {typed.upper()} ").__next__().text == first


def test_the_command_palette_ends_with_what_is_unavailable(window):
    found = list(window.commands._commands("e"))
    enabled = [match.enabled for match in found]
    assert enabled == sorted(enabled, reverse=True)
    assert {match.key for match in found if not match.enabled} == {
        match.key for match in found if not action(window, match.key).isEnabled()
    }
    assert all(match.tip == action(window, match.key).toolTip() for match in found)
    assert "help.commands" not in {match.key for match in window.commands._commands("")}
    assert len(list(window.commands._commands(""))) == len(window.actions_.declared) - 1


def test_a_document_that_is_set_elsewhere_is_shown_in_its_tab_and_the_other_keeps_its_view(window):
    window.files.new_from("denoiser")
    first = window.tabs.shown
    window.files.new_from("dncnn")
    second = window.tabs.shown
    viewer = window.canvas.viewer
    viewer.zoom_by(0.5)
    name = next(iter(second.document.graph.layers))
    window.context.select((name,))
    zoom = viewer.zoom
    window.context.set_document(first.document)
    assert window.tabs.shown is first
    assert window.tabs.bar.currentIndex() == window.tabs.all.index(first)
    viewer.zoom_by(3)
    window.tabs.show(second)
    assert viewer.zoom == pytest.approx(zoom)
    assert window.context.selection == (name,)


def test_totals_are_those_of_the_shown_document_while_another_changes(window):
    window.files.new_from("denoiser")
    first = window.context.root
    window.files.new_from("dncnn")
    totals = window.status.findChild(QLabel, "status.totals")
    settle(window)
    QApplication.processEvents()
    before = totals.text()
    assert before
    first.do(lambda graph: commands.add_layer(graph, Layer("more", "input", params={"dims": "512x512x3"})))
    window.context.root.do(lambda graph: commands.set_property(graph, "author_notes", "x"))
    for _ in range(5):
        QApplication.processEvents()
    assert totals.text() == before
    assert window._totals.total is not None


@pytest.mark.parametrize(("length", "shown"), [(27, 27), (28, 28), (29, 28), (60, 28)])
def test_the_welcome_shortens_names_of_more_than_28_characters(window, tmp_path, length, shown):
    path = tmp_path / f"{'n' * (length - 4)}.xml"
    path.write_text("<NetworkModel/>")
    window.files.remember(path)
    window.files.new_from("denoiser")
    press(window, "Ctrl+W")  # the welcome is shown again
    (link,) = [each for each in window.findChildren(QToolButton, "welcome.recent") if each.isVisible()]
    assert len(link.text()) == shown
    assert link.text().endswith("…") == (length > 28)
    assert str(path) in link.toolTip()


def test_the_names_of_layouts_are_sorted_whatever_their_case(window):
    for name in ("beta", "Alpha", "Gamma", "delta / 100 %", "a&b"):
        window.layouts.save(name)
    assert window.layouts.names() == ["a&b", "Alpha", "beta", "delta / 100 %", "Gamma"]
    window.layouts.delete("delta / 100 %")
    assert window.layouts.names() == ["a&b", "Alpha", "beta", "Gamma"]


def test_the_command_palette_does_what_is_chosen(window):
    press(window, "Ctrl+P")
    line = window.commands.findChild(QLineEdit)
    QTest.keyClicks(line, "workspaces: profile")
    QTest.keyClick(line, Qt.Key.Key_Return)
    QApplication.processEvents()
    assert window.docks.workspace == PROFILE
    assert not window.commands.isVisible()


def test_undo_and_redo_are_offered_as_long_as_there_is_something(window):
    show(window, network())

    def offered() -> tuple[bool, bool]:
        settle(window)
        return action(window, "edit.undo").isEnabled(), action(window, "edit.redo").isEnabled()

    assert offered() == (False, False)
    for text in ("x", "y"):
        window.context.document.do(lambda graph, text=text: commands.set_property(graph, "author_notes", text))
    assert offered() == (True, False)
    window.undo()
    assert offered() == (True, True)
    assert action(window, "edit.redo").toolTip().startswith("Redo: ")
    window.undo()
    assert offered() == (False, True)
    assert action(window, "edit.undo").toolTip().endswith("Unavailable: there is nothing to undo")
    window.redo()
    window.redo()
    assert offered() == (True, False)
