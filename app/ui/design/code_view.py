"""Code View: the PyTorch source of the selected layers or of the whole network, updated while editing."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.background import Background
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.highlighter import PythonHighlighter
from app.ui.widgets.message import Message
from app.ui.widgets.param_section import tool_button
from app.ui.widgets.sentences import finding_text
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.operators.training_branch import training_branch
from designer.texts import mark, tr, tr_data, trn

_NO_DOCUMENT = mark("Open or create a network to see its PyTorch code here.")
_NO_LAYERS = mark("Add layers from the Layer Palette to see their PyTorch code here.")
_WRITING = mark("Generating code...")
_PAUSE_MS = 150  # delay after the last edit, so that typing and dragging stay responsive


class CodeViewPanel(QWidget):
    panel_id = "code_view"
    title = "Code View"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("code_view")
        self._context = context
        self._document: Document | None = None
        self._stale = True  # the text is out of date
        self._busy = False
        self._lane = Background(self)
        self._lane.done.connect(self._on_done)
        self._lane.failed.connect(self._on_failed)
        self._scope = QLabel()
        self._scope.setObjectName("code_view.scope")
        self._only_selection = QCheckBox(tr("Selection only"))
        self._only_selection.setObjectName("code_view.only_selection")
        self._only_selection.setAccessibleName(tr("Show the code of the selected layers only"))
        self._only_selection.setToolTip(tr("If nothing is selected, the whole network is shown"))
        self._only_selection.setChecked(True)
        self._only_selection.toggled.connect(self._schedule)
        self._copy = tool_button("code_view.copy", "content-copy", tr("Copy the code"), tr("Copy the code"))
        self._copy.clicked.connect(self._copy_all)
        self._problem = Message("code_view.problem")
        self._text = QPlainTextEdit()
        self._text.setObjectName("code_view.source")
        self._text.setAccessibleName(tr("PyTorch source"))
        self._text.setReadOnly(True)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setFont(theme.mono_font())
        self._highlighter = PythonHighlighter(self._text.document())
        self._empty = EmptyState("code_view", "code-braces", tr_data(_NO_DOCUMENT))
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._text)
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self._scope, 1)
        bar.addWidget(self._only_selection)
        bar.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(bar)
        layout.addWidget(self._problem)
        layout.addWidget(self._stack, 1)
        self._later = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._later.timeout.connect(self._generate)
        context.document_changed.connect(self._watch)
        context.selection_changed.connect(self._schedule)
        self._watch(context.document if context.has_document else None)

    def source(self) -> str:
        """The code that is shown, or "" if there is none."""
        return self._text.toPlainText() if self._stack.currentWidget() is self._text else ""

    # --- following the document --------------------------------------------------------------------------------

    def _watch(self, document: object) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
        self._text.clear()
        if isinstance(document, Document):
            self._document = document
            document.changed.connect(self._on_change)
        self._schedule()

    def _on_change(self, change: object) -> None:
        if isinstance(change, ChangeSet) and (change.computed or change.removed or change.properties):
            self._schedule()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._generate()

    def _schedule(self, *_anything: object) -> None:
        self._stale = True
        if self._document is None or not len(self._document.graph):
            self._stale = False
            self._later.stop()
            self._show_empty(tr_data(_NO_DOCUMENT) if self._document is None else tr_data(_NO_LAYERS))
        else:
            if not self._text.toPlainText():
                self._show_empty(tr_data(_WRITING))
            if self.isVisible():
                self._later.start()

    def _generate(self) -> None:
        """Generate the source in a thread; edits made in the meantime trigger another run."""
        if self._document is None or not len(self._document.graph) or self._busy:
            return
        self._stale = False
        self._busy = True
        if self._context.scope:
            self._generate_template(self._document.root, self._context.scope[-1].template)
            return
        graph, registry = self._document.graph.copy(), self._document.registry
        chosen = tuple(n for n in self._context.selection if n in graph) if self._only_selection.isChecked() else ()
        self._lane.start(lambda: (_scope(chosen), *_generate_code(graph, registry, chosen)))

    def _generate_template(self, file: Document, template: str) -> None:
        """Generate the class of the shown template, whatever is selected."""
        graph, registry, scope = file.graph.copy(), file.registry, tr("Template {name}", name=template)
        self._lane.start(lambda: (scope, *_generate_code(graph, registry, (), template)))

    def _on_done(self, result: object) -> None:
        self._busy = False
        if self._stale:  # the result is out of date
            self._schedule()
        elif isinstance(result, tuple) and self._document is not None and len(self._document.graph):
            self._show(*result)

    def _on_failed(self, found: object) -> None:
        text = "; ".join(finding_text(d) for d in found) if isinstance(found, tuple) else ""
        self._on_done(("", "", tr("No code generated. {text}", text=text)))

    def _show(self, scope: str, source: str, problem: str) -> None:
        old = self._text.toPlainText()
        if problem and not old:
            self._show_empty(problem)
            return
        self._problem.show_message(problem, "warning")
        self._text.setEnabled(not problem)  # the previous text stays, disabled, until the network is valid again
        self._copy.setEnabled(not problem)
        if not problem:
            self._scope.setText(scope)
        if not problem and source != old:
            place = (self._text.verticalScrollBar().value(), self._text.horizontalScrollBar().value())
            self._text.setPlainText(source)
            self._text.verticalScrollBar().setValue(place[0])
            self._text.horizontalScrollBar().setValue(place[1])
        self._stack.setCurrentWidget(self._text)

    def _show_empty(self, text: str) -> None:
        self._scope.setText("")
        self._problem.show_message("")
        self._copy.setEnabled(False)
        self._text.clear()
        self._empty.show_text(text)
        self._stack.setCurrentWidget(self._empty)

    def _copy_all(self) -> None:
        QApplication.clipboard().setText(self._text.toPlainText())
        self._context.message.emit("info", tr("Code copied to the clipboard"))


def _generate_code(graph: Graph, registry: Registry, chosen: tuple[str, ...], template: str = "") -> tuple[str, str]:
    """Return (source, problem), one of which is empty. Layers of the training branch give the code of the losses module."""
    from exporters.pytorch import generate_losses, generate_source, generate_template

    try:
        if template:
            return generate_template(graph, registry, template), ""
        if chosen and training_branch(graph, registry).issuperset(chosen):
            return generate_losses(graph, registry), ""
        return generate_source(graph, registry, graph.name, chosen or None), ""
    except DiagnosticError as error:
        finding = error.diagnostics[0]
        where = f"{finding.layer}: " if finding.layer else ""
        more = (
            " " + trn("({count} more problem)", "({count} more problems)", len(error.diagnostics) - 1)
            if len(error.diagnostics) > 1
            else ""
        )
        return "", tr(
            "No code generated. {where}{finding}{more}", where=where, finding=finding_text(finding), more=more
        )


def _scope(chosen: tuple[str, ...]) -> str:
    if not chosen:
        return tr("Whole network")
    return chosen[0] if len(chosen) == 1 else trn("{count} selected layer", "{count} selected layers", len(chosen))
