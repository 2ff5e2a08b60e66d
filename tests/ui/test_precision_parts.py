"""Panels of precision without an engine: what they show of an answer, what a click asks for, and what an edit clears."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.engine.protocol import BlamedOperator, BlameReply, PassesReply, PassRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.passes_panel import NAME, PassesPanel
from app.ui.widgets import theme
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    made = Context(default_registry())
    convolutions = (("conv", "convolution", {"features": 4}), ("last", "convolution", {"features": 3}))
    made.set_document(Document(chain(*convolutions, size="16x8x3"), made.registry, parent=made))
    return made


def texts(table: QTreeWidget) -> list[list[str]]:
    items = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
    return [[item.text(column) for column in range(table.columnCount())] for item in items if item is not None]


def middle(table: QTreeWidget, row: int) -> QPoint:
    return table.visualItemRect(table.topLevelItem(row)).center()


def test_blame_shows_the_answer_until_an_edit(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, asked, heat = number_formats_of(context), [], []
    reply = BlameReply((BlamedOperator("conv", -0.25, 0.5), BlamedOperator("last", 1.25, 0.125)), 0.03, "conv")
    monkeypatch.setattr(formats, "blame", lambda a, b, done, say: (asked.append((a, b)), done(reply)))
    monkeypatch.setattr(formats, "compare_tensor", lambda layer, a, b, done, say: asked.append((layer, a, b)))
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    panel.resize(600, 500)
    panel.show()
    context.heat_requested.connect(heat.append)
    table, left = panel.table, Qt.MouseButton.LeftButton

    def empty() -> bool:
        controls = (table.isVisible(), panel.first.isVisible(), panel.channels.isEnabled(), panel.status.isVisible())
        return not any(controls) and not texts(table)

    assert empty()
    qtbot.mouseClick(panel.causes, left)
    assert asked.pop() == ("fp32", "int8")
    assert texts(table) == [["last", "125.0", "0.125"], ["conv", "-25.0", "0.500"]]  # the largest share first
    assert panel.status.text() == f"{panel.a.currentText()} and {panel.b.currentText()} differ by 0.03 RMS."
    assert {layer: heat[-1].label(layer) for layer in ("last", "conv")} == {"last": "125 %", "conv": "-25 %"}
    assert heat[-1].values == {"last": 125.0, "conv": 0.0}
    assert not panel.channels.isEnabled()
    with qtbot.waitSignal(context.reveal_requested) as told:
        qtbot.mouseClick(table.viewport(), left, pos=middle(table, 1))
    assert told.args == ["conv"]
    qtbot.mouseClick(panel.channels, left)
    assert asked.pop() == ("conv", "fp32", "int8")
    qtbot.mouseClick(table.viewport(), left, pos=middle(table, 0))
    qtbot.mouseDClick(table.viewport(), left, pos=middle(table, 0))
    assert asked.pop() == ("last", "fp32", "int8")
    qtbot.mouseClick(panel.first, left)
    assert asked.pop() == ("conv", "fp32", "int8")
    context.root.do(lambda g: set_params(g, {"conv": {"kernel": "5x5"}}))
    assert empty()
    assert heat[-1] is None
    reply = BlameReply((BlamedOperator("conv", 0.0, 0.0),), 2e-8, None)
    qtbot.mouseClick(panel.causes, left)
    assert panel.status.text().endswith("differ by 2e-08 RMS; no operator deviates by more than rounding.")
    assert not panel.first.isVisible()
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert empty()


def test_passes_show_the_answer_until_an_edit(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, panel = number_formats_of(context), PassesPanel(context)
    qtbot.addWidget(panel)
    panel.resize(900, 320)
    panel.show()
    table = panel.table
    items = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
    names = [item.data(0, NAME) for item in items if item is not None]
    on = names[:2]
    for name in on:
        formats.set_pass(name, True)

    def item(row: int) -> QTreeWidgetItem:
        found = table.topLevelItem(row)
        assert found is not None
        return found

    checked = [item(row).checkState(0) is Qt.CheckState.Checked for row in range(len(names))]
    assert checked == [name in on for name in names]
    reply = PassesReply(
        (
            PassRow(names[0], True, 2, (10, 8), (4096, 3072), 0.0),
            PassRow(names[1], True, 1, (8, 4), (3072, 1024), 0.25, equal=False),
            PassRow(names[2], False, 3, (4, 3), (1024, 512), None, equal=False),
        )
    )
    monkeypatch.setattr(formats, "measure_passes", lambda done, say: done(reply))
    unknown = [["-"] * 5 for _ in names]
    assert [row[1:] for row in texts(table)] == unknown
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    assert [row[1:] for row in texts(table)] == [
        ["2", "10 → 8", "4.00 KiB → 3.00 KiB", "25.0 %", "equal (difference 0)"],
        ["1", "8 → 4", "3.00 KiB → 1.00 KiB", "66.7 %", "differs by up to 0.25"],
        ["3", "4 → 3", "1.00 KiB → 512 B", "50.0 %", "outputs have other shapes, or values that are not finite"],
        *unknown[3:],
    ]
    colors = [item(row).foreground(1).color() for row in range(3)]
    assert colors == [theme.color("text"), theme.color("text"), theme.color("muted")]
    together = "Together: 10 → 4 tensor accesses, 4.00 KiB → 1.00 KiB of memory traffic (75.0 % less, modelled)"
    assert panel.total.text() == together
    assert panel.total.isVisible()
    context.root.do(lambda g: set_params(g, {"conv": {"kernel": "5x5"}}))
    assert [row[1:] for row in texts(table)] == unknown
    assert not panel.total.isVisible()
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert [row[1:] for row in texts(table)] == unknown
    assert "has no passes" in panel.subject.text()
    assert not any(item(row).checkState(0) is Qt.CheckState.Checked for row in range(len(names)))
