"""Inferred facts about the selected layers: input and output shapes, parameters, FLOPs, memory and findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.ui.document.document import Document
from app.ui.widgets import theme
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from designer.graph.diagnostics import Diagnostic
from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.operators import links
from designer.operators.api import Operator
from designer.operators.live_cost import LiveCost, Total
from designer.operators.registry import Read
from designer.texts import mark, tr, tr_data, trn
from designer.units import binary, count, modelled, si

UNKNOWN = mark("unknown")
PORTS = 16  # maximum number of input and of output shapes
AT_ONCE = 1000  # layers whose cost is counted between two events
FINDINGS = 20  # maximum number shown: thousands of selected layers have thousands


class LayerFacts(QWidget):
    """A table of facts with findings below it. `link_activated` carries the name of a layer that a finding links to."""

    link_activated = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._name = name
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._timer = QTimer(self, interval=0, singleShot=True, timeout=self._count)
        self._because = QLabel()
        self._because.setObjectName(f"{name}.because")
        self._because.setWordWrap(True)
        self._because.setTextFormat(Qt.TextFormat.RichText)
        self._because.linkActivated.connect(self.link_activated)
        theme.changes().changed.connect(self._draw_link)
        self._findings: list[Message] = []
        self._more = QLabel()
        self._more.setObjectName(f"{name}.more")
        self._more.hide()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(4)
        self._layout.addLayout(self._grid)
        self._layout.addWidget(self._because)
        self._layout.addWidget(self._more)

    def facts(self) -> dict[str, str]:
        """The shown facts, label to text."""
        return {label.text(): value.text() for label, value in self._rows if not value.isHidden()}

    def show_layers(self, document: Document, names: Sequence[str], shown_params: Collection[str] = ()) -> None:
        """Show all facts of one layer, or the sums of several. Findings about `shown_params` are shown at their fields."""
        states = {n: document.inference.states.get(n, LayerState()) for n in names}
        facts: list[tuple[str, str]] = []
        training = [n for n in names if n in document.training]
        if training:
            where = tr("part of the training branch, not used in inference")
            if len(training) != len(names):
                where = tr("{count} of {total} layers: {where}", count=len(training), total=len(names), where=where)
            facts.append((tr("Training"), where))
        if len(names) == 1:
            layer, state = document.graph[names[0]], states[names[0]]
            facts += _shapes(cast(Read, document.inference.read(names[0])).operator, layer, state)
        self._first, self._names = facts, names
        self._cost: LiveCost | None = LiveCost(document.inference, names)
        if self._count():
            self._show([*facts, (tr("Parameters"), "…"), (tr("FLOPs, batch size 1"), "…")])
        cause = next((s.because_of for s in states.values() if s.because_of is not None), None)
        self._because.setVisible(cause is not None)
        if cause is not None:
            shown = cause.replace("&", "&amp;").replace("<", "&lt;")
            href = shown.replace('"', "&quot;")
            self._because.setText(
                tr('Unknown because of <a href="{href}">{shown}</a>, which has a problem.', href=href, shown=shown)
            )
        found = [d for s in states.values() for d in s.diagnostics if d.code != "unknown-operator"]
        self._show_findings([d for d in found if not (d.code == "bad-parameter" and d.parameter in shown_params)])

    def _draw_link(self) -> None:
        """The color of a link is that of the palette when the text was set."""
        text = self._because.text()
        self._because.clear()
        self._because.setText(text)

    def _count(self) -> bool:
        """Count a slice of the layers, and show the sums of all after the last one. Returns whether some are left."""
        if self._cost is not None and self._cost.count(AT_ONCE):
            self._timer.start()
            return True
        self._timer.stop()
        if self._cost is not None:
            self._show([*self._first, *_sums(self._cost.total(names=self._names))])
            self._cost = None  # it keeps the network, also of a closed document
        return False

    def _show(self, facts: Sequence[tuple[str, str]]) -> None:
        while len(self._rows) < len(facts):
            label, value = QLabel(), QLabel()
            value.setFont(theme.mono_font())
            value.setTextFormat(Qt.TextFormat.PlainText)
            higher = value.fontMetrics().ascent() - label.fontMetrics().ascent()
            label.setContentsMargins(0, max(0, higher), 0, 0)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            value.setWordWrap(True)
            value.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            row = len(self._rows)
            self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(value, row, 1)
            self._rows.append((label, value))
        for index, (label, value) in enumerate(self._rows):
            on = index < len(facts)
            if on:
                label.setText(facts[index][0])
                value.setText(facts[index][1])
                value.setAccessibleName(": ".join(facts[index]))
            label.setVisible(on)
            value.setVisible(on)

    def _show_findings(self, found: Sequence[Diagnostic]) -> None:
        while len(self._findings) < min(len(found), FINDINGS):
            message = Message(f"{self._name}.finding_{len(self._findings)}")
            self._layout.insertWidget(self._layout.count() - 1, message)
            self._findings.append(message)
        for index, message in enumerate(self._findings):
            if index >= len(found):
                message.show_message("")
                continue
            message.show_message(finding_text(found[index]), found[index].severity.value)
        left = len(found) - FINDINGS
        more = trn("{count} more problem: see Type Checking.", "{count} more problems: see Type Checking.", left)
        self._more.setText(more if left > 0 else "")
        self._more.setVisible(left > 0)


def _shapes(operator: Operator | None, layer: Layer, state: LayerState) -> list[tuple[str, str]]:
    ports = operator.input_ports() if operator is not None else ()
    facts = []
    connected = [i for i, source in enumerate(layer.inputs) if source is not None]
    for position, index in enumerate(connected[:PORTS]):
        last = len(ports) - 1
        port = links.port_name(ports[min(index, last)], max(0, index - last)) if ports else str(index)
        label = tr("Input {port}", port=port) if len(connected) > 1 or len(ports) > 1 else tr("Input")
        shape = str(state.inputs[position]) if position < len(state.inputs) else tr_data(UNKNOWN)
        facts.append((label, tr("{shape}\nfrom {source}", shape=shape, source=layer.inputs[index])))
    if len(connected) > PORTS:
        facts.append((tr("Inputs"), tr("{count} more", count=len(connected) - PORTS)))
    outputs = operator.output_ports() if operator is not None else ()
    for index, out in enumerate(outputs[:PORTS]):
        label = tr("Output {name}", name=out.name) if len(outputs) > 1 else tr("Output")
        known = state.outputs is not None and index < len(state.outputs)
        facts.append((label, str(state.outputs[index]) if known and state.outputs is not None else tr_data(UNKNOWN)))
    if len(outputs) > PORTS:
        facts.append((tr("Outputs"), tr("{count} more", count=len(outputs) - PORTS)))
    return facts


def _sums(total: Total) -> list[tuple[str, str]]:
    if total.unknown:
        return [(tr("Parameters"), tr_data(UNKNOWN)), (tr("FLOPs, batch size 1"), tr_data(UNKNOWN))]
    memory = tr(
        "{weights} weights, {outputs} outputs",
        weights=modelled(total.weights, binary(total.weights)),
        outputs=modelled(total.outputs, binary(total.outputs)),
    )
    return [
        (tr("Parameters"), count(total.learned)),
        (tr("FLOPs, batch size 1"), modelled(total.flops, si(total.flops, "FLOP"))),
        (tr("Memory, FP32"), memory),
    ]
