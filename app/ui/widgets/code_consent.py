"""The question before Python code of the user or of a document runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QPlainTextEdit, QTabWidget, QVBoxLayout, QWidget

from app.ui.widgets import theme
from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.highlighter import PythonHighlighter
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr, visible


class CodeConsent(GrowingDialog):
    """Shows the code, one tab for each of `sources` (title, text). `agreed` is called when the user agrees.

    If it raises DiagnosticError, the dialog stays open and shows why.
    """

    def __init__(
        self,
        name: str,
        sentence: str,
        sources: Sequence[tuple[str, str]],
        agreed: Callable[[], None],
        parent: QWidget | None,
        *,
        action: str,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(tr("Run this code?"))
        self.setWindowTitle(tr("Run This Code?"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._agreed = agreed
        head = QLabel(sentence)
        head.setObjectName(f"{name}.sentence")
        head.setWordWrap(True)
        self._tabs = QTabWidget()
        self._tabs.setObjectName(f"{name}.layers")
        self._tabs.setAccessibleName(tr("Code"))
        self._tabs.setDocumentMode(True)
        for number, (title, text) in enumerate(sources):
            view = QPlainTextEdit(visible(text))
            view.setObjectName(f"{name}.source_{number}")
            view.setAccessibleName(tr("Source of {layer}", layer=title))
            view.setReadOnly(True)
            view.setFont(theme.mono_font())
            view.setTabChangesFocus(True)
            PythonHighlighter(view.document())
            self._tabs.addTab(view, title.replace("&", "&&"))
        self._problem = Message(f"{name}.problem")
        buttons = QDialogButtonBox()
        agree_button = buttons.addButton(action, QDialogButtonBox.ButtonRole.AcceptRole)
        agree_button.setObjectName(f"{name}.agree")
        later = buttons.addButton(tr("&Not Now"), QDialogButtonBox.ButtonRole.RejectRole)
        later.setObjectName(f"{name}.later")
        buttons.accepted.connect(self._agree)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(self._tabs, 1)
        self._tabs.setVisible(bool(sources))
        box.addWidget(self._problem)
        box.addWidget(buttons)
        later.setDefault(True)
        agree_button.setAutoDefault(False)
        later.setFocus()
        self.resize(680, 460 if sources else 160)

    def _agree(self) -> None:
        try:
            self._agreed()
        except DiagnosticError as error:
            self._problem.show_message("\n".join(finding_text(d) for d in error.diagnostics))
            return
        self.accept()
