"""Help > Tour: five hints over a sample, each of which continues when the user has done what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.document.document import Document
from app.ui.document.locations import sample_files
from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.shell.panels import ANALYSIS, DESIGN
from app.ui.widgets import theme
from designer.graph.edits import ChangeSet
from designer.texts import tr

if TYPE_CHECKING:
    from app.ui.shell.window import MainWindow

WIDTH, EDGE = 340, 16  # of a hint, and its distance from the edges of the canvas, in pixels


@dataclass(frozen=True, slots=True)
class TourStep:
    """One hint. `done` checks an edit, or the state of the window if it is called without one."""

    title: str
    text: str
    done: Callable[[MainWindow, ChangeSet | None], bool]


def tour_steps() -> tuple[TourStep, ...]:
    """The steps, in order."""
    return (
        TourStep(
            tr("Select a layer"),
            tr("Click a layer on the canvas. The Layer Editor then shows its parameters, shapes and cost."),
            lambda window, _edit: bool(window.context.selection),
        ),
        TourStep(
            tr("Add a layer"),
            tr(
                "Press Space on the canvas, type “identity”, and press Return. The new layer is connected to the "
                "selected one."
            ),
            lambda _window, edit: edit is not None and bool(edit.added - set(edit.renamed.values())),
        ),
        TourStep(
            tr("Change a parameter"),
            tr("Select a convolution and change “Features” in the Layer Editor. The shapes after it follow."),
            lambda _window, edit: edit is not None and bool(edit.reconfigured),
        ),
        TourStep(
            tr("Undo"),
            tr("Press Ctrl+Z until the title no longer marks the network as changed, so that its weights fit again."),
            lambda window, _edit: window.context.root.history.is_clean,
        ),
        TourStep(
            tr("Run it on a photo"),
            tr("Press F5. The Analysis panel shows the output; double-click a layer to see its channels."),
            lambda window, _edit: (
                window.docks.workspace == ANALYSIS and analysis_of(window.context).phase is Phase.READY
            ),
        ),
    )


class TourHint(QFrame):
    """The current hint, in the lower left corner of the canvas."""

    next_asked = Signal()
    end_asked = Signal()

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setObjectName("tour")
        self.setAccessibleName(tr("Tour"))
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self._canvas = canvas
        self._count = QLabel()
        self._count.setObjectName("tour.count")
        self._title = QLabel()
        self._title.setObjectName("tour.title")
        bold = QFont(self._title.font())
        bold.setBold(True)
        self._title.setFont(bold)
        self._text = QLabel()
        self._text.setObjectName("tour.text")
        self._text.setWordWrap(True)
        self._next = _button("tour.next")
        self._next.clicked.connect(self.next_asked)
        self._end = _button("tour.end")
        self._end.clicked.connect(self.end_asked)
        buttons = QHBoxLayout()
        buttons.addWidget(self._end)
        buttons.addStretch(1)
        buttons.addWidget(self._next)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        for label in (self._count, self._title, self._text):
            column.addWidget(label)
        column.addLayout(buttons)
        canvas.installEventFilter(self)
        theme.changes().changed.connect(self._apply_color)
        self._apply_color()

    def show_step(self, number: int, steps: tuple[TourStep, ...]) -> None:
        """Show a step, or the end of the tour after the last one."""
        over = number == len(steps)
        self._count.setText(tr("Step {number} of {count}", number=number + 1, count=len(steps)))
        self._count.setHidden(over)
        self._title.setText(steps[number].title if not over else tr("This was the tour"))
        self._text.setText(
            steps[number].text
            if not over
            else tr("File > New From offers networks to start from, and Help > Documentation describes the program.")
        )
        self._next.setText(tr("Skip Step"))
        self._next.setHidden(over)
        self._end.setText(tr("Close") if over else tr("End Tour"))
        self.place()
        self.show()
        self.raise_()

    def place(self) -> None:
        """Move to the lower left corner of the canvas, no wider than it."""
        width = min(WIDTH, self._canvas.width() - 2 * EDGE)
        self.setFixedWidth(width)
        height = self._column.totalHeightForWidth(width)
        self.resize(width, height)
        self.move(EDGE, max(0, self._canvas.height() - height - EDGE))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self.place()
        return super().eventFilter(watched, event)

    def _apply_color(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, theme.color("raised"))
        self.setPalette(palette)
        palette.setColor(QPalette.ColorRole.WindowText, theme.color("muted"))
        self._count.setPalette(palette)


def _button(name: str) -> QPushButton:
    button = QPushButton()
    button.setObjectName(name)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keyboard with the canvas
    return button


class Tour(QObject):
    """Guides through the steps in the window's own panels. Deletes itself at the end."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setObjectName("tour.guide")
        self._window = window
        self._steps = tour_steps()
        self._number = 0
        self._document: Document | None = None
        window.files.open(sample_files()[0])
        window.docks.set_workspace(DESIGN)
        window.context.select(())
        self._hint = TourHint(window.canvas)
        self._hint.next_asked.connect(self._advance)
        self._hint.end_asked.connect(self.end)
        context = window.context
        context.selection_changed.connect(self._check)
        context.root_changed.connect(self._follow)
        analysis_of(context).phase_changed.connect(self._check)
        window.docks.workspace_changed.connect(self._check)
        self._follow(context.root)
        self._hint.show_step(0, self._steps)
        window.canvas.setFocus()

    def _follow(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._check)
            self._document.clean_changed.disconnect(self._check)
        self._document = document
        document.changed.connect(self._check)
        document.clean_changed.connect(self._check)

    def _check(self, found: object = None) -> None:
        edit = found if isinstance(found, ChangeSet) else None
        if self._number < len(self._steps) and self._steps[self._number].done(self._window, edit):
            self._advance()

    def _advance(self) -> None:
        self._number += 1
        self._hint.show_step(self._number, self._steps)
        self._check()  # a step can be done already

    def end(self) -> None:
        """Hide the hint."""
        self._hint.hide()
        self._hint.deleteLater()
        self.deleteLater()
