"""The sizes that the network accepts, with the layers that cause the rules and the button that makes every size work."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.engine.size_rules import size_rules_of
from app.ui.widgets.message import Message
from app.ui.widgets.tooltips import plain_tip
from designer.operators.size_contract import InputSizes, SizeContract, SizeRule
from designer.operators.size_fix import is_free, obstacle
from designer.texts import tr

MOST_CAUSES = 3


class SizeRulesView(QWidget):
    """Computes the rules while it is visible."""

    def __init__(self, context: Context, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rules = size_rules_of(context)
        self._text = QLabel()
        self._text.setObjectName(f"{name}.text")
        self._text.setAccessibleName(tr("Input sizes"))
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)  # it contains names of layers
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._causes = Message(f"{name}.causes")
        self._fix = QPushButton(tr("Accept Every Size"))
        self._fix.setObjectName(f"{name}.fix")
        self._fix.setAccessibleName(tr("Accept Every Size"))
        self._fix.setToolTip(tr("Add layers that pad the inputs by reflection and crop the outputs"))
        self._fix.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._fix.clicked.connect(lambda: self._rules.fix())  # noqa: PLW0108 - `clicked` has an argument
        self._compute = QPushButton(tr("Compute Input Sizes"))
        self._compute.setObjectName(f"{name}.compute")
        self._compute.setAccessibleName(tr("Compute Input Sizes"))
        self._compute.setToolTip(tr("This takes some seconds for a large network"))
        self._compute.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._compute.clicked.connect(lambda: self._rules.request(asked=True))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._text)
        layout.addWidget(self._causes)
        layout.addWidget(self._fix)
        layout.addWidget(self._compute)
        self._rules.changed.connect(self._show)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._rules.request()

    def _show(self) -> None:
        contract = self._rules.contract
        if contract is None:
            self._text.setText(self._rules.error or ("" if self._rules.large else tr("Computing ...")))
            self._causes.show_message("")
            if self.isVisible():
                self._rules.request()
        elif contract.problem is not None:
            self._text.setText(tr("No size works."))
            self._causes.show_message(f"{contract.problem.layer}: {contract.problem.message}", "warning")
        else:
            self._text.setText("\n".join(_rule_text(item) for item in contract.inputs) or tr("No input is an image."))
            self._causes.show_message(_cause_text(contract), "info")
        self._text.setVisible(bool(self._text.text()))
        self._compute.setVisible(contract is None and self._rules.large)
        self._fix.setVisible(contract is not None and not is_free(contract) and bool(contract.inputs))
        reason = obstacle(contract) if contract is not None else ""
        self._fix.setEnabled(not reason)
        tip = tr("Add layers that pad the inputs by reflection and crop the outputs")
        self._fix.setToolTip(plain_tip(reason or tip))


def _rule_text(item: InputSizes) -> str:
    if item.height == item.width or str(item.height) == str(item.width):
        text = tr("{layer}: {rule}", layer=item.layer, rule=item.height)
    else:
        text = tr("{layer}: width {width}; height {height}", layer=item.layer, width=item.width, height=item.height)
    if item.with_inputs:
        others = ", ".join(item.with_inputs)
        text = tr("{text}; the same size as {others}", text=text, others=others)
    return text


def _cause_text(contract: SizeContract) -> str:
    """Why other sizes fail, one line for each rule, and which sizes depend on each other."""
    lines = [tr("Except {sizes}", sizes=", ".join(f"{w} x {h}" for h, w in contract.exceptions))] * bool(
        contract.exceptions
    )
    lines += [f"{message} ({layer})" for layer, message in contract.coupled[:1]]
    for item in contract.inputs:
        rules: tuple[SizeRule, ...] = (item.height, item.width)
        seen: dict[tuple[str, str], str] = {}
        for rule in rules:
            for cause in rule.causes:
                text = tr(
                    "{size} fails at '{layer}': {message}", size=cause.size, layer=cause.layer, message=cause.message
                )
                seen.setdefault((cause.rule, cause.layer), text)
        lines += list(seen.values())[:MOST_CAUSES]
    return "\n".join(lines)
