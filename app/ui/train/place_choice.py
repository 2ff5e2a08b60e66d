"""Where a run trains: this machine, or a host of the user's SSH configuration."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit

from designer.texts import tr
from designer.training.ssh_host import configured_hosts

DEFAULT_PYTHON = "python3"


class PlaceChoice(QObject):
    """Two rows of a form. The host can also be typed; the Python there is asked for hosts only."""

    def __init__(self, form: QFormLayout) -> None:
        super().__init__(form)
        self._form = form
        self.box = QComboBox()
        self.box.setObjectName("training.where")
        self.box.setAccessibleName(tr("Where the run trains"))
        self.box.setToolTip(
            tr(
                "This machine, or a host of your SSH configuration. Project and data are sent there, and the files of the run come back "
                "while it trains. The connection may break; the run goes on."
            )
        )
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(8)
        self.box.editTextChanged.connect(self._show_python)
        self.python_line = QLineEdit()
        self.python_line.setObjectName("training.where.python")
        self.python_line.setAccessibleName(tr("Python on the host"))
        self.python_line.setToolTip(
            tr("The Python on the host that has the packages of the project, such as ~/venv/bin/python")
        )
        self.python_line.setPlaceholderText(tr("the host's python3"))
        self.python_line.setMinimumWidth(60)
        self._form.addRow(tr("Where"), self.box)
        self._form.addRow(tr("Python"), self.python_line)
        self.refresh()

    def refresh(self) -> None:
        """List the hosts again; the choice stays."""
        text = self.box.currentText()
        self.box.clear()
        self.box.addItems([tr("This machine"), *configured_hosts()])
        self.box.setCurrentText(text or tr("This machine"))
        self._show_python()

    def _show_python(self, *_: object) -> None:
        self._form.setRowVisible(self.python_line, bool(self.host()))

    def host(self) -> str:
        """The host; empty for this machine."""
        text = self.box.currentText().strip()
        return "" if text == tr("This machine") else text

    def python(self) -> str:
        return self.python_line.text().strip() or DEFAULT_PYTHON
