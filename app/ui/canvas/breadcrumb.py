"""The path from the open file to the template that is shown, above the canvas. Each part is a button that goes to its level."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFont, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.texts import tr

LONGEST = 32  # characters of one part


class _Crumb(QToolButton):
    """One part of the path. It handles its keys itself, because they are shortcuts on the canvas."""

    OWN = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Left, Qt.Key.Key_Right)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in self.OWN:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.focusNextPrevChild(event.key() == Qt.Key.Key_Right)
        else:
            super().keyPressEvent(event)


class Breadcrumb(QFrame):
    """Hidden while the whole network is shown, because the tab has its name. Tab and the arrow keys move between parts, Enter and Space activate one."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("breadcrumb")
        self.setAccessibleName(tr("Path in the document"))
        self._context = context
        self._document: Document | None = None
        self._crumbs: list[QToolButton] = []
        self._widgets: list[QWidget] = []  # the parts and the separators between them
        self._shown: tuple[object, ...] | None = None
        self._parts = QHBoxLayout()
        self._parts.setSpacing(2)
        self._note = QLabel()
        self._note.setObjectName("breadcrumb.note")
        self._note.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.setSpacing(8)
        row.addLayout(self._parts)
        row.addWidget(self._note, 1)
        theme.changes().changed.connect(self._update_colors)
        context.document_changed.connect(self._watch)
        if context.has_document:
            self._watch(context.document)
        self._update_colors()

    def _watch(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
        self._document = document.root
        self._document.changed.connect(self._on_change)
        self._show()

    def _on_change(self, change: ChangeSet) -> None:
        if change.templates or change.renamed or change.properties or change.removed or change.added:
            self._show()

    def _show(self) -> None:
        """Create the parts of the current path."""
        root, scope = self._context.root, self._context.scope
        shown = (root, root.graph.name, scope)
        if shown != self._shown:
            self._shown = shown
            had_focus = any(crumb.hasFocus() for crumb in self._crumbs)
            for widget in self._widgets:
                self._parts.removeWidget(widget)
                widget.hide()
                widget.setObjectName("")
                widget.deleteLater()
            self._widgets.clear()
            self._crumbs = [self._crumb(0, root.graph.name, tr("the whole network"), last=not scope)]
            for number, step in enumerate(scope, 1):
                self._separate()
                what = tr("an instance of {template}", template=step.template) if step.instance else tr("a template")
                self._crumbs.append(self._crumb(number, _text(step), what, last=number == len(scope)))
            if had_focus:
                self._crumbs[-1].setFocus()
        self.setAccessibleDescription(" > ".join([root.graph.name, *map(_text, scope)]))
        self._note.setText(_note(root.graph, scope))
        self.setVisible(bool(scope))

    def _crumb(self, depth: int, text: str, what: str, *, last: bool) -> QToolButton:
        button = _Crumb()
        button.setObjectName(f"breadcrumb.{depth}")
        button.setText((text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…").replace("&", "&&"))
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        here = tr("current level") if last else tr("go to this level")
        button.setAccessibleName(f"{text}, {what}, {here}")
        button.setToolTip(plain_tip(f"{text}: {what}" if last else tr("Go to {name}", name=text)))
        font = QFont(button.font())
        font.setBold(last)
        button.setFont(font)
        button.clicked.connect(lambda: self._context.set_scope(self._context.scope[:depth]))
        self._parts.addWidget(button)
        self._widgets.append(button)
        return button

    def _separate(self) -> None:
        mark = QLabel("›")
        mark.setAccessibleName("")
        self._parts.addWidget(mark)
        self._widgets.append(mark)

    def _update_colors(self) -> None:
        palette = self._note.palette()
        palette.setColor(palette.ColorRole.WindowText, theme.color("muted"))
        self._note.setPalette(palette)


def _text(step: ScopeStep) -> str:
    return f"{step.instance} ({step.template})" if step.instance else step.template


def _note(graph: Graph, scope: tuple[ScopeStep, ...]) -> str:
    if not scope:
        return ""
    count = graph.instance_counts()[scope[-1].template]
    if count > 1:
        return tr("An edit here changes every instance ({count}).", count=count)
    if not scope[-1].instance:
        return tr("Types are unknown here: open the template through an instance to infer them.")
    return ""
