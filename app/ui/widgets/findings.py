"""A dialog that lists findings, which can be copied as text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.widgets import theme
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import ICONS
from designer.graph.diagnostics import Diagnostic
from designer.texts import tr


class FindingsDialog(GrowingDialog):
    """A sentence that says what failed, then each finding with its location, rule and remedy."""

    def __init__(self, title: str, sentence: str, findings: Sequence[Diagnostic], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName("findings")
        self.setAccessibleName(title)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._findings = tuple(findings)
        head = QLabel(sentence)
        head.setObjectName("findings.sentence")
        head.setWordWrap(True)
        self.list = QListWidget()
        self.list.setObjectName("findings.list")
        self.list.setAccessibleName(tr("Findings"))
        self.list.setWordWrap(True)
        self.list.setAlternatingRowColors(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for finding in findings:
            role: theme.RoleName = finding.severity.value
            item = QListWidgetItem(theme.icon(ICONS[role], role), located_finding(finding))
            item.setToolTip(tr("code: {code}", code=finding.code))
            self.list.addItem(item)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        copy = buttons.addButton(tr("&Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.setObjectName("findings.copy")
        copy.setToolTip(tr("Copy the findings as text"))
        copy.clicked.connect(self.copy)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(self.list)
        box.addWidget(buttons)
        self.resize(560, 280)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(str(f) for f in self._findings))


def located_finding(finding: Diagnostic) -> str:
    """A finding on several lines: location, message and remedy."""
    location = []
    if finding.line is not None:
        location.append(tr("line {line}", line=finding.line))
    if finding.layer is not None:
        location.append(tr("layer '{layer}'", layer=finding.layer))
    where = f"{', '.join(location)}: " if location else ""
    remedy = "\n" + tr("What to do: {remedy}", remedy=finding.remedy) if finding.remedy else ""
    return f"{where}{finding.message}{remedy}"


def without_icons(buttons: QDialogButtonBox) -> None:
    """Remove the style's icons, which are dark on dark."""
    for button in buttons.buttons():
        button.setIcon(QIcon())


def show_findings(title: str, sentence: str, findings: Sequence[Diagnostic], parent: QWidget | None) -> FindingsDialog:
    """Open the dialog without blocking."""
    dialog = FindingsDialog(title, sentence, findings, parent)
    dialog.open()
    return dialog
