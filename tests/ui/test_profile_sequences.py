"""The profiling panels after random sequences of runs, selections, edits and other documents: they show what new panels show."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
from profile_kit import NAMES, RUN, context, profiling, steps
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QTimer
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from shown_state import of_tree

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.profile.advice_panel import AdvicePanel
from app.ui.profile.charts import PLOTS, ChartsPanel
from app.ui.profile.columns import COLUMNS
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.table_model import HEAT, SORT
from app.ui.profile.utilization import UtilizationPanel
from designer.graph import commands, frames
from designer.graph.model import Frame
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, PeakMemory, Profile, ProfileRun

pytestmark = pytest.mark.gui
__all__ = ["context", "profiling"]
MIB = 2**20
FILTERS = ("", "", "conv", "head", "tail outside", "5x5", " ")


class Life:
    """Panels that live through a sequence of steps; after each, what they show is compared with new panels."""

    def __init__(self, qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int) -> None:
        self.qtbot, self.context, self.profiling = qtbot, context, profiling
        self.random = random.Random(seed)
        context.root.do(lambda g: commands.set_params(g, {name: {"kernel": "5x5"} for name in NAMES[:2]}))
        other = Document(context.root.graph.copy(), context.registry, parent=context)
        self.documents = [context.root, other]
        self.table = self.open(OperatorTablePanel)
        self.charts = self.open(ChartsPanel)
        self.bars = self.open(UtilizationPanel)
        self.differences = self.open(RunDifferencesPanel)
        self.advice = self.open(AdvicePanel)

    def open(self, kind: Callable[[Context], QWidget]) -> Any:
        panel = kind(self.context)
        self.qtbot.addWidget(panel)
        panel.resize(900, 600)
        for timer in panel.findChildren(QTimer):
            if timer.isSingleShot():
                timer.setInterval(0)
        panel.show()
        return panel

    def rest(self) -> None:
        panels = (self.table, self.charts, self.advice)
        for _ in range(20):
            QCoreApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if not any(panel._rest.isActive() for panel in panels):
                return

    # --- steps -----------------------------------------------------------------------------------------------------

    def run(self) -> ProfileRun:
        pick = self.random.choice
        slow = tuple(
            OperatorProfile(
                (name,),
                "convolution",
                pick((1.0, 10.0, 40.0)),
                0.01,
                flops=10**9,
                bytes=1000,
                bound=pick(("compute", "memory", "")),
                inputs=("N x 16 x 64 x 64",),
                outputs=("N x 16 x 64 x 64",),
                precision=pick(("", "int8")),
            )
            for name in self.random.sample(NAMES, 3)
        )
        rows = pick((steps(), steps()[:2], slow, slow, (*slow, steps()[3])))
        peak = PeakMemory(pick((3, 9)) * MIB, len(rows) - 1, {"stem": MIB}) if pick((True, False)) else None
        return replace(
            RUN,
            engine=pick(("torch", "onnxruntime")),
            precision=pick(("fp32", "fp16")),
            batch=pick((1, 2, 4)),
            time_ms=pick((20.0, 30.0, None)),
            source=pick((ValueSource.MEASURED, ValueSource.MEASURED, ValueSource.MODELLED)),
            operators=rows,
            peak_memory=peak,
            device=pick(("cpu", "cuda")),
            counters=pick(("", "no counters")),
        )

    def add(self) -> None:
        pick = self.random.choice
        profile = Profile(Machine(pick(("A", "A", "A", "B")), 4), pick(("net", "net", "other")), (self.run(),))
        if pick((True, False)):
            document = pick(self.documents)
            opening = OpenRequest(str(self.random.randrange(3)), "w")
            self.profiling.add(profile, openings=(opening,), documents=(ref(document),))
        else:
            self.profiling.add(profile, pick((None, Path("/tmp/a.json"))))

    def remove(self) -> None:
        if len(self.profiling.entries) > 1 or self.random.random() < 0.3:
            self.on_entry(self.profiling.remove)

    def on_entry(self, act: Callable[[Entry], object]) -> None:
        if self.profiling.entries:
            act(self.random.choice(self.profiling.entries))

    def compare(self) -> None:
        two = self.random.sample(self.profiling.entries, 2) if len(self.profiling.entries) > 1 else None
        self.profiling.compare((two[0], two[1]) if two and self.random.random() < 0.8 else None)

    def select(self) -> None:
        self.context.select(tuple(self.random.sample((*NAMES, "image"), self.random.randrange(3))))

    def choose(self) -> None:
        if self.profiling.current is not None:
            rows = self.profiling.current.run.operators
            self.profiling.choose_rows(self.random.sample(rows, min(len(rows), self.random.randrange(3))))

    def filter(self) -> None:
        self.table.filter.setText(self.random.choice(FILTERS))

    def group(self) -> None:
        self.table.grouping.setCurrentIndex(self.random.randrange(4))

    def sort(self) -> None:
        order = self.random.choice((Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder))
        self.table.tree.sort_by(self.random.randrange(-1, len(COLUMNS)), order)

    def edit(self) -> None:
        layer, kernel = self.random.choice(NAMES[:2]), self.random.choice(("3x3", "5x5", "7x7"))
        self.context.root.do(lambda g: commands.set_params(g, {layer: {"kernel": kernel}}))

    def frame(self) -> None:
        graph = self.context.root.graph
        if graph.frames and self.random.random() < 0.5:
            self.context.root.do(frames.remove_frames(graph, list(graph.frames)[:1]))
            return
        number, title = self.random.randrange(2), self.random.choice(("Start", "End", ""))
        made = Frame(f"f{number}", title, rect=(310 + 640 * number, -50, 500, 300))
        self.context.root.do(frames.set_frame(graph, made.id, made))

    def history(self) -> None:
        self.random.choice((self.context.root.undo, self.context.root.redo))()

    def settings(self) -> None:
        self.context.root.change_settings(engine=self.random.choice(("torch", "onnxruntime")))

    def document(self) -> None:
        self.context.set_document(self.random.choice(self.documents))

    def tab(self) -> None:
        self.charts.tabs.setCurrentIndex(self.random.randrange(len(PLOTS)))

    def apply(self) -> None:
        buttons = [each for each in self.advice.findChildren(QPushButton) if each.objectName().endswith(".apply")]
        if buttons:
            self.random.choice(buttons).click()

    def hide(self) -> None:
        """Panels that are hidden for a while show what happened when they are seen again."""
        panels = (self.charts, self.advice)
        for panel in panels:
            panel.hide()
        for _ in range(2):
            self.random.choice((self.add, self.edit, self.select, self.history, self.document))()
        for panel in panels:
            panel.show()

    # --- what is shown ---------------------------------------------------------------------------------------------

    def of_table(self, panel: OperatorTablePanel) -> dict[str, Any]:
        """All cells; the order of rows with equal values is that before they were sorted, so it is left out."""
        header = panel.tree.table.header()
        column = header.sortIndicatorSection()
        cells, keys = [], {}
        for index in panel.rows():
            group = str(index.parent().data()) if index.parent().isValid() else ""
            row = [index.siblingAtColumn(number) for number in range(len(COLUMNS))]
            cells.append([group, *(str(cell.data(role)) for cell in row for role in (0, 3, SORT, HEAT))])
            place = panel.model._ranks[id(panel.proxy.row_of(index))] if column < 0 else row[column].data(SORT)
            keys.setdefault(group, []).append(place)
        return {
            "summary": list(of_tree(panel.summary)) if panel.summary.isVisible() else [],
            "selected": sorted(row.layers for row in panel.selected()),
            "cells": sorted(cells),
            "order": keys,
            "grouped": panel.tree.frozen.rootIsDecorated(),
            "visible": panel.tree.isVisible(),
            "sorted": (column, header.sortIndicatorOrder()),
        }

    def of_charts(self, panel: ChartsPanel) -> list[Any]:
        plot = panel.plot()
        found: list[Any] = [each for each in of_tree(panel) if "can be" not in each[0]]
        if plot is not None and panel.tabs.isVisible():
            items = [type(item).__name__ for item in plot.getPlotItem().items]
            found += [items, plot.accessibleDescription(), [label.text for _, label in plot.legend.items]]
            if plot.isVisible():
                found.append((plot.run is self.profiling.current.run if self.profiling.current else None, plot.chosen))
        return found

    def cards(self, panel: AdvicePanel) -> list[Any]:
        cards = [panel._cards.itemAt(number).widget() for number in range(panel._cards.count())]
        texts = [
            [each.text() for each in (card, *card.findChildren(QLabel), *card.findChildren(QPushButton)) if hasattr(each, "text")]
            for card in cards
        ]  # fmt: skip
        page = panel.findChild(QWidget, "advice.page")
        assert page is not None
        return [[card.objectName() for card in cards], texts, [a.message for a in panel.advice], len(page.children())]

    def check(self, *panels: QWidget) -> None:
        """New panels with the same filter, order, tab and applied advice show the same."""
        self.rest()
        new = {panel: self.open(type(panel)) for panel in panels}
        if self.table in new:
            table = new[self.table]
            table.grouping.setCurrentIndex(self.table.grouping.currentIndex())
            header = self.table.tree.table.header()
            table.tree.sort_by(header.sortIndicatorSection(), header.sortIndicatorOrder())
            table.filter.setText(self.table.filter.text())
        if self.charts in new:
            new[self.charts].tabs.setCurrentIndex(self.charts.tabs.currentIndex())
        if self.advice in new:
            new[self.advice]._applied = list(self.advice._applied)
            new[self.advice]._show()
        self.rest()
        read: dict[QWidget, Callable[[Any], Any]] = {
            self.table: self.of_table,
            self.charts: self.of_charts,
            self.bars: lambda panel: list(of_tree(panel)),
            self.differences: lambda panel: list(of_tree(panel)),
            self.advice: self.cards,
        }
        for panel, other in new.items():
            assert (panel.objectName(), read[panel](panel)) == (panel.objectName(), read[panel](other))
            other.close()
            other.setParent(None)
            other.deleteLater()


@pytest.mark.parametrize("seed", [1])
def test_panels_that_lived_through_a_sequence_show_what_new_ones_show(
    qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int
) -> None:
    life = Life(qtbot, context, profiling, seed)
    table, charts, bars, differences, advice = life.table, life.charts, life.bars, life.differences, life.advice
    concerned: dict[Callable[[], object], tuple[QWidget, ...]] = {
        life.add: (table, charts, bars, advice),
        life.remove: (table, charts, bars, differences, advice),
        (lambda: life.on_entry(profiling.show)): (table, charts, bars, advice),
        life.compare: (differences,),
        life.select: (table, charts, bars),
        life.choose: (table, charts, bars),
        life.filter: (table,),
        life.group: (table,),
        life.sort: (table,),
        life.frame: (table,),
        life.edit: (advice,),
        life.settings: (advice,),
        life.history: (table, advice),
        life.document: (table, charts, bars, advice),
        life.tab: (charts,),
        life.apply: (advice,),
        life.hide: (charts, advice),
    }
    for step in (life.add, *life.random.choices(list(concerned), k=24)):
        step()
        life.check(*concerned[step])
    life.check(table, charts, bars, differences, advice)
