"""What the actions of the window, apart from those of the canvas, do to the same network: the document, the settings and their dialogs."""

from __future__ import annotations

import difflib
from dataclasses import fields

import pytest

pytest.importorskip("PySide6")
pytestmark = [pytest.mark.gui, pytest.mark.timeout(300)]

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QMenu, QWidget
from recorded_state import compare, lines
from shown_state import named, of_menu, of_tree
from window_kit import settle, show

from app.ui.canvas.actions import ACTIONS as CANVAS
from app.ui.shell.actions import ACTIONS as SHELL
from app.ui.shell.window import MainWindow
from designer.files.document import write_document
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template

LOOK = 20  # ms between two looks for a dialog
ELSEWHERE = (  # other tests cover these: they start processes, open windows or other documents
    "file.new",
    "file.reopen",
    "file.close",
    "file.quit",
    "file.save",
    "file.open",
    "file.compare",
    "run.",
    "analysis.",
    "workspace.",
    "tools.",
    "help.tour",
    "help.docs",
    "help.about",
    "view.theme",
    "tab.",
    *(action.id for group in CANVAS for action in group.actions),  # test_recorded_commands.py
)
SELECTIONS = {"nothing": (), "a layer": ("first",)}


def network() -> Graph:
    inner = (
        Layer("inner", "convolution", (160, 0), (Source("x"),), {"features": "4"}),
        Layer("x", "template_input", params={"index": "0"}),
        Layer("y", "template_output", (320, 0), (Source("inner"),), {"index": "0"}),
        Layer("z", "template_output", (320, 160), (Source("x"),), {"index": "1"}),
    )
    return Graph(
        [
            Layer("image", "input", (0, 0), params={"dims": "32x24x3"}),
            Layer("first", "convolution", (200, 0), (Source("image"),), {"features": "4"}, ActivationSpec("relu")),
            Layer("norm", "batch_normalization", (400, 0), (Source("first"),)),
            Layer("second", "convolution", (600, 40), (Source("norm"),), {"features": "4", "kernel": "5x5"}),
            Layer("block", "template", (600, 240), (Source("norm"),), {"template": "part"}),
            Layer("sum", "element_wise", (840, 100), (Source("second"), Source("block")), {"operation": "add"}),
            Layer("aside", "identity", (840, 400), (Source("image"),)).folded_into("g"),
            Layer("result", "output", (1080, 100), (Source("sum"),)),
        ],
        name="workshop",
        frames=[
            Frame("f", "Body", rect=(180, -60, 600, 260)),
            Frame("g", "Rest", rect=(820, 340, 240, 160), collapsed=True),
        ],
        templates=[Template("part", inner)],
    )


class Opened:
    """Reads dialogs, menus and searches that are opened, and closes them."""

    def __init__(self, window: MainWindow, rows: bool) -> None:
        self.window = window
        self.rows = rows
        self.read: list[str] = []
        self._timer = QTimer(window, interval=LOOK, timeout=self.look)
        self._timer.start()

    def look(self) -> None:
        for widget in QApplication.topLevelWidgets():
            if widget is not self.window and widget.isVisible() and widget.windowType() != Qt.WindowType.ToolTip:
                self.read.append(f"opens {type(widget).__name__} '{widget.windowTitle() or widget.accessibleName()}'")
                self.read += (f"    {line}" for line in self.lines(widget))
                widget.close()

    def lines(self, widget: QWidget) -> list[str]:
        if isinstance(widget, QFileDialog):
            return [f"{widget.fileMode().name} {widget.acceptMode().name} {widget.nameFilters()}"]
        if isinstance(widget, QMenu):
            return lines(named("menu", of_menu(widget, "")))
        return (
            lines(named("", of_tree(widget)), (" picture.size",)) if self.rows and isinstance(widget, QDialog) else []
        )


def state(window: MainWindow) -> list[str]:
    """What an action can change in a window that shows a network."""
    root, view = window.context.root, window.canvas.viewer
    frames = sorted(item.frame.id for item in view.selected_frames())
    return [
        *write_document(root.graph).decode().replace("\t", "  ").splitlines(),
        *(f"setting {field.name} {getattr(root.settings, field.name)!r}" for field in fields(root.settings)),
        f"inside {[step.template for step in window.context.scope]}",
        f"selected {sorted(window.context.selection)}, frames {frames}, links {len(view.selected_links())}",
        f"undoes {root.history.undo_title!r}",
        f"message {window.status.currentMessage()!r}",
        *(
            f"{name} {'on' if action.isChecked() else 'off'}"
            for name, action in actions(window)
            if action.isCheckable()
        ),
    ]


def prepare(window: MainWindow, selection: str) -> None:
    show(window, network())
    window.context.select(SELECTIONS[selection])
    settle(window)
    window.status.clearMessage()


def actions(window: MainWindow) -> list[tuple[str, QAction]]:
    return [(name, window.actions_[name]) for name in window.actions_.declared if not name.startswith(ELSEWHERE)]


def undo_all(window: MainWindow) -> None:
    while window.actions_["edit.undo"].isEnabled():
        window.undo()
        QApplication.processEvents()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_what_an_action_does(selection: str, window: MainWindow) -> None:
    found, before = [], [""]
    opened = Opened(window, rows=selection == "nothing")
    for name in [name for name, _ in actions(window)]:
        window.status.clearMessage()
        if state(window) != before:
            prepare(window, selection)
            before = state(window)
        action = window.actions_[name]
        if not action.isEnabled():
            found.append(f"[{name}] disabled: {action.toolTip()}".replace("\n", " "))
            continue
        action.trigger()
        for _ in range(3):
            QApplication.processEvents()
        opened.look()
        settle(window)
        changes = difflib.unified_diff(before, state(window), lineterm="", n=0)
        found.append(f"[{name}] {action.text()}")
        found += [f"    {line}" for line in opened.read]
        found += [f"    {line}" for line in changes if not line.startswith(("---", "+++", "@@"))]
        opened.read.clear()
        undo_all(window)
        assert write_document(window.context.root.graph) == write_document(network()), name
    compare(f"actions_{selection.replace(' ', '_')}", found)


def test_actions_are_declared_as_recorded(window: MainWindow) -> None:
    """Where each one is, its keys, and where they work: on the canvas only, or anywhere."""
    found = []
    for group in (*SHELL, *CANVAS):
        for action in group.actions:
            made = window.actions_[action.id]
            keys = [key.toString() for key in made.shortcuts()]
            needs = [need.reason for need in action.needs]
            place = "canvas" if action.on_canvas else "window"
            found.append(
                f"{action.id}: {made.text()!r} {action.tip!r} in {' '.join(action.menus)}, keys {keys} of the {place} "
                f"{made.shortcutContext().name}, needs {needs}, icon {action.icon!r}, checkable {made.isCheckable()}"
            )
    compare("actions_declared", found)
