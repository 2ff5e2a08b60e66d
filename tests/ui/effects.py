"""What a command or a gesture changes in a window, as lines of text: the document, the selection, the view, and what opens."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QToolButton,
)
from window_kit import settle

from app.ui.canvas import layer_clipboard
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.shell import session
from app.ui.shell.window import MainWindow
from app.ui.widgets.search_popup import SearchPopup
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph

State = dict[str, str]
OPENED = (SearchPopup, InlineEditor, QDialog)


class Effects:
    """Compares the states of one window. `said` collects its messages."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.said: list[str] = []
        window.context.message.connect(lambda severity, text: self.said.append(f"{severity}: {text}"))

    def of(self, act: Callable[[], object], *, sized: bool = False) -> list[str]:
        """What `act` changes, one line for each place. With `sized`, numbers that depend on the sizes of fonts are left out."""
        self.said.clear()
        before = self.state()
        act()
        settle(self.window)
        after = self.state()
        changed = {place: "" for place in sorted(before | after) if before.get(place) != after.get(place)}
        for place in changed:
            measured = sized and place.rpartition(" ")[2] in ("position", "rect", "center", "zoom")
            if not (measured and (place not in before or place not in after)):
                changed[place] = f"{before.get(place, '(none)')} -> {after.get(place, '(none)')}"
                changed[place] = "changes" if measured else changed[place]
        return [*(f"{place}: {text}" for place, text in changed.items() if text), *self.said]

    def state(self) -> State:
        window, canvas, context = self.window, self.window.canvas, self.window.context
        viewer = canvas.viewer
        history = context.root.history
        found = graph_state(context.root.graph)
        found["undo"] = str(history.undo_title)
        found["selection"] = " ".join(context.selection)
        found["selected links"] = str(sorted(link.key for link in viewer.selected_links()))
        found["selected frames"] = str(sorted(item.frame.id for item in viewer.selected_frames()))
        found["scope"] = "/".join(step.instance or step.template for step in context.scope)
        found["path"] = " ".join(crumb.text() for crumb in window.structure.breadcrumb.findChildren(QLabel))
        center = viewer.visible_center()
        found["center"] = f"{round(center.x() / 8)} {round(center.y() / 8)}"
        found["zoom"] = f"{viewer.zoom:.2f}"
        found |= {f"check of {n}": "yes" for n in window.actions_.declared if window.actions_[n].isChecked()}
        found["clipboard"] = _clipboard()
        found["opened"] = ", ".join(_opened(window))
        found["saved"] = str(history.is_clean)
        return found

    def close(self) -> None:
        """Close what was opened."""
        for kind in OPENED:
            for widget in self.window.findChildren(kind):
                if isinstance(widget, InlineEditor):
                    widget.discard()
                else:
                    widget.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


class SessionEffects(Effects):
    """Also what the window shows around the canvas, its settings, and the files in a folder. Answers questions."""

    def __init__(self, window: MainWindow, folder: Path) -> None:
        super().__init__(window)
        self._folder = folder

    def of(self, act: Callable[[], object], *answers: str, sized: bool = False) -> list[str]:
        """`answers` are the texts of the buttons to press in the dialogs that appear; "-x" first unchecks the box x."""
        waiting = list(answers)
        asked: list[str] = []
        poll = QTimer(self.window, interval=15)
        poll.timeout.connect(lambda: _answer(poll, waiting, asked))
        if waiting:
            poll.start()
        lines = super().of(act, sized=sized)
        poll.stop()
        poll.deleteLater()
        assert not waiting, f"nobody asked {waiting}"
        found = [*asked, *lines, *(f"opened {_texts(d)}" for d in self.window.findChildren(QDialog) if d.isVisible())]
        self.close()
        return found

    def state(self) -> State:
        window, root = self.window, self.window.context.root
        shown = {"title": window.windowTitle(), "modified": str(window.isWindowModified())}
        bar = window.tabs.bar
        for index in range(bar.count()):
            texts = (bar.tabText(index), bar.tabToolTip(index), bar.accessibleTabName(index))
            shown[f"tab {index}"] = " | ".join(texts)
        shown["tab"] = bar.tabText(bar.currentIndex())
        shown["scope"] = "/".join(f"{step.instance}:{step.template}" for step in window.context.scope)
        shown["path"] = window.structure.breadcrumb.accessibleDescription() if window.context.scope else ""
        shown["document"] = f"{root.path.name if root.path else None} {sorted(root.graph.layers)}"
        shown |= {f"property {key}": text for key, text in root.graph.properties.items()}
        shown["iterations"] = str(root.settings.iterations)
        shown["undo"] = f"{root.history.undo_title} {root.history.redo_title}"
        shown["selection"] = " ".join(window.context.selection)
        shown["canvas"] = " ".join(sorted(window.canvas.projection.layers))
        viewer = window.canvas.viewer
        shown["zoom"] = "fitted" if viewer.place().fitted_from is not None else f"{viewer.zoom:.2f}"
        shown["problems"] = window.status.problems.text()
        while window._totals._timer.isActive():
            QApplication.processEvents()
        totals = window.status._totals
        shown["totals"] = totals.text() if totals.isVisible() else ""
        shown["recent"] = " ".join(path.name for path in window.files.recent())
        shown["closed"] = str(window.files.closed)
        shown["stored tabs"] = str([(path.name, now) for path, now in session.stored_tabs(window.settings)])
        if window.disk.bar.isVisible():
            buttons = [b for b in window.disk.bar.findChildren(QToolButton) if not b.isHidden()]
            shown["notice"] = f"{window.disk.bar.text()} {[b.text() for b in buttons]}"
        docks = (dock for dock in window.docks.all if not dock.isHidden())
        shown["panels"] = f"{window.docks.workspace}: {' '.join(dock.objectName()[5:] for dock in docks)}"
        for key in window.settings.allKeys():
            value = window.settings.value(key)
            if isinstance(value, str | bool | int) and "panels" not in key and not key.startswith(("recent", "tab")):
                shown[f"setting {key}"] = str(value)
        for name in window.actions_.declared:
            action = window.actions_[name]
            shown[f"action {name}"] = "" if action.isEnabled() else action.statusTip().partition(" - ")[2]
            if action.isChecked():
                shown[f"check of {name}"] = "yes"
        for path in self._folder.rglob("*.xml"):
            shown[f"file {'.'.join(path.relative_to(self._folder).parts)}"] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()[:12]
        return shown


def _texts(dialog: QDialog) -> str:
    """The title, texts, entries and buttons of a dialog."""
    texts = [dialog.objectName(), dialog.windowTitle()]
    texts += [label.text() for label in dialog.findChildren(QLabel) if label.text()]
    for entries in dialog.findChildren(QListWidget):
        texts += [entries.item(row).text() for row in range(entries.count())]
    texts += [field.text() for field in dialog.findChildren(QLineEdit)]
    texts += [button.text() for button in dialog.findChildren(QAbstractButton) if button.text()]
    return " | ".join(texts)


def _answer(poll: QTimer, waiting: list[str], asked: list[str]) -> None:
    """Press the next button of `waiting` once a dialog is active."""
    dialog = QApplication.activeModalWidget()
    if not isinstance(dialog, QDialog) or not dialog.isActiveWindow():
        return
    asked.append(f"asked {_texts(dialog)}")
    while waiting:
        wanted = waiting.pop(0)
        buttons = {button.text().replace("&", ""): button for button in dialog.findChildren(QAbstractButton)}
        button = buttons[wanted.removeprefix("-")]
        if isinstance(button, QCheckBox):
            button.setChecked(False)
            continue
        if not waiting:
            poll.stop()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        return


def graph_state(graph: Graph, *, inside: bool = False) -> State:
    """The fields of all layers and frames of a network with its templates, or of one template."""
    found: State = {}
    for layer in graph:
        spec = layer.activation
        found[f"layer {layer.name} type"] = layer.type
        found[f"layer {layer.name} position"] = str(layer.position)
        found[f"layer {layer.name} inputs"] = " ".join(map(str, layer.inputs))
        found[f"layer {layer.name} params"] = str(dict(layer.params))
        found[f"layer {layer.name} activation"] = f"{spec.type} {dict(spec.params)}" if spec is not None else ""
        found[f"layer {layer.name} attributes"] = str(dict(layer.attributes))
    for frame in graph.frames.values():
        found[f"frame {frame.id} text"] = f"{frame.title!r} {frame.text!r}"
        found[f"frame {frame.id} rect"] = str(frame.rect)
        found[f"frame {frame.id} collapsed"] = f"{frame.collapsed} {frame.folded}"
    if not inside:
        for name in graph.templates:
            places = graph_state(graph.inside(name), inside=True)
            found |= {f"template {name} {place}": text for place, text in places.items()}
        found |= {f"property {key}": text for key, text in graph.properties.items()}
    return found


def _clipboard() -> str:
    try:
        return " ".join(sorted(layer_clipboard.pasted().layers))
    except DiagnosticError:
        return QApplication.clipboard().text()


def _opened(window: MainWindow) -> list[str]:
    """The names of popups, text fields on the canvas and dialogs that are open, with the texts of the fields."""
    found = []
    for kind in OPENED:
        for widget in window.findChildren(kind):
            if isinstance(widget, QDialog) and widget.isVisible():
                found.append(_texts(widget))
            elif widget.isVisible():
                field = widget.findChild(QPlainTextEdit)
                found.append(f"{widget.objectName()}{f' {field.toPlainText()!r}' if field is not None else ''}")
    return found
