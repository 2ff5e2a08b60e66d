"""Asks for agreement before Python code of a document runs for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QPlainTextEdit, QTabWidget, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.highlighter import PythonHighlighter
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from designer.files.agreements import agree, not_agreed
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr, visible


class AgreeDialog(GrowingDialog):
    """Shows the sources of custom layers, one tab each. Agreements are stored on this machine for exactly these texts.

    `texts` maps each source to its layer. `then` is called after the user agreed.
    """

    def __init__(self, texts: Mapping[str, str], then: Callable[[], None], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName("agree_custom")
        self.setAccessibleName(tr("Run this code?"))
        self.setWindowTitle(tr("Run This Code?"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._texts, self._then = texts, then
        many = len(texts) > 1
        head = QLabel(
            (
                tr("This network contains custom layers written in Python.")
                if many
                else tr("This network contains a custom layer written in Python.")
            )
            + " "
            + tr(
                "Running the network executes this code on your machine with your permissions. Read it first, and agree only "
                "if you trust it. If the code changes, you are asked again."
            )
        )
        head.setObjectName("agree_custom.sentence")
        head.setWordWrap(True)
        self._tabs = QTabWidget()
        self._tabs.setObjectName("agree_custom.layers")
        self._tabs.setAccessibleName(tr("Custom layers"))
        self._tabs.setDocumentMode(True)
        for number, (text, layer) in enumerate(texts.items()):
            view = QPlainTextEdit(visible(text))
            view.setObjectName(f"agree_custom.source_{number}")
            view.setAccessibleName(tr("Source of {layer}", layer=layer))
            view.setReadOnly(True)
            view.setFont(theme.mono_font())
            view.setTabChangesFocus(True)
            PythonHighlighter(view.document())
            self._tabs.addTab(view, layer)
        self._problem = Message("agree_custom.problem")
        buttons = QDialogButtonBox()
        agree_button = buttons.addButton(tr("&Agree and Run"), QDialogButtonBox.ButtonRole.AcceptRole)
        agree_button.setObjectName("agree_custom.agree")
        later = buttons.addButton(tr("&Not Now"), QDialogButtonBox.ButtonRole.RejectRole)
        later.setObjectName("agree_custom.later")
        buttons.accepted.connect(self._agree)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(self._tabs, 1)
        box.addWidget(self._problem)
        box.addWidget(buttons)
        later.setDefault(True)
        agree_button.setAutoDefault(False)
        later.setFocus()
        self.resize(680, 460)

    def _agree(self) -> None:
        try:
            agree(self._texts)
        except DiagnosticError as error:
            self._problem.show_message("\n".join(finding_text(d) for d in error.diagnostics))
            return
        self.accept()
        self._then()


def ask_agreement(context: Context, then: Callable[[], None], parent: QWidget) -> AgreeDialog | None:
    """Show the code of the open document that needs agreement, without blocking. None if there is none."""
    if not context.has_document:
        return None
    document = context.root
    texts = not_agreed(document.graph, document.registry)
    if not texts:
        return None
    open_one = parent.findChild(AgreeDialog)
    if open_one is not None:
        open_one.raise_()
        return open_one
    dialog = AgreeDialog(texts, then, parent)
    dialog.open()
    return dialog
