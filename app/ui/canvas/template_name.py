"""The dialog for the name of a template. It shows the rule that a name breaks below the field."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import sentence
from designer.graph.graph import Graph
from designer.graph.template import check_template_name
from designer.texts import tr


class TemplateNameDialog(GrowingDialog):
    """Calls `given` with a valid name when the user accepts."""

    def __init__(
        self,
        graph: Graph,
        title: str,
        text: str,
        agree: str,
        name: str,
        given: Callable[[str], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._graph = graph
        self._old = name if name in graph.templates else ""
        self._given = given
        self.setObjectName("template_name")
        self.setAccessibleName(title)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(420)
        explained = QLabel(text)
        explained.setWordWrap(True)
        explained.setTextFormat(Qt.TextFormat.PlainText)
        label = QLabel(tr("&Name of the template"))
        self.line = QLineEdit(name)
        self.line.setObjectName("template_name.name")
        self.line.setAccessibleName(tr("Name of the template"))
        self.line.selectAll()
        self.line.textChanged.connect(self._check)
        label.setBuddy(self.line)
        self.message = Message("template_name.message")
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.ok = self.buttons.addButton(agree, QDialogButtonBox.ButtonRole.AcceptRole)
        self.ok.setObjectName("template_name.ok")
        self.ok.setDefault(True)
        for button in self.buttons.buttons():
            button.setAutoDefault(button is self.ok)  # type: ignore[attr-defined]  # Enter never means Cancel
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        without_icons(self.buttons)
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 16, 16, 16)
        box.setSpacing(8)
        for widget in (explained, label, self.line, self.message):
            box.addWidget(widget)
        box.addStretch(1)
        box.addWidget(self.buttons)
        self._check(name)

    def _check(self, text: str) -> None:
        rule = check_template_name(text.strip())
        if rule is None and text.strip() in self._graph.templates and text.strip() != self._old:
            rule = tr("a template '{name}' already exists; choose another name", name=text.strip())
        self.message.show_message(sentence(rule) if rule else "")
        self.ok.setEnabled(rule is None)

    def accept(self) -> None:
        if self.ok.isEnabled():
            name = self.line.text().strip()
            super().accept()
            self._given(name)
