"""The Operators table after any steps: rows, groups, selection, sums and what is copied are compared with a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import NAMES, RUN, check_launch, context, profile_of, profiling
from PySide6.QtCore import QCoreApplication, QItemSelectionModel, QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from random_steps import play
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController
from app.ui.profile.columns import COLUMNS
from app.ui.profile.operator_table import OperatorTablePanel
from designer.graph import commands, frames
from designer.graph.model import Frame
from designer.graph.template_commands import make_template
from designer.profiling.schema import OperatorProfile
from designer.units import quantity

__all__ = ["context", "profiling"]
SELECT = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
ROOT = QModelIndex()
PRIORITY = -1  # the order before a header is clicked
PLACES = {"stem": 320, "body": 640, "head": 960, "tail": 1280}
NONE = {"type": "outside of operators", "template": "in no template", "frame": "in no frame"}


class Table:
    def __init__(self, qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int) -> None:
        self.random = random.Random(seed)
        self.context, self.profiling = context, profiling
        other = Document(context.root.graph.copy(), context.registry, parent=context)
        other.do(lambda g: make_template(g, ["head", "tail"], "Pair"))
        (self.instance,) = (name for name, layer in other.graph.layers.items() if layer.type == "template")
        self.documents = [context.root, other]
        self.panel = shown(qtbot, OperatorTablePanel(context), 1000, 400)
        assert self.panel._stack.currentIndex() == 0
        check_launch(self.panel, context)
        self.panel._rest.setInterval(0)
        self.words = ""
        self.kind = ""
        self.column, self.down = PRIORITY, False
        self.revealed: list[str] = []
        context.reveal = self.revealed.append  # type: ignore[method-assign]  # also of a layer that is gone

    # --- steps -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        pick = self.random.choice
        roofs = pick(((None, 0.25), (0.25, 0.5)))
        layers: list[tuple[str, ...]] = [
            (), ("stem",), ("stem", "body"), ("body",), ("head",), (f"{self.instance}.head",),
            (f"{self.instance}.tail", "tail"), ("tail",), ("gone",),
        ]  # fmt: skip
        rows = tuple(
            OperatorProfile(
                names, pick(("convolution", "relu", "Pool")) if names else "", pick((0.5, 1.0, 2.0, 4.0)), 0.1,
                pick(("3x3, 8 features", "2x")), flops=pick((10**6, 5 * 10**6)), bytes=pick((1 << 10, 3 << 20)),
                saving_ms=pick((None, 0.25, 1.0)), roof_ms=pick(roofs), kernels=pick(("Fused", "copy")),
            )
            for names in self.random.sample(layers, pick((3, 6, 9)))
        )  # fmt: skip
        more: dict[str, Any] = pick(({}, {"time_ms": None}, {"time_ms": 9.0}))
        self.profiling.add(profile_of(replace(RUN, operators=rows, **more)))

    def show(self) -> None:
        if self.profiling.entries:
            self.profiling.show(self.random.choice((None, *self.profiling.entries, *self.profiling.entries)))

    def filter(self) -> None:
        self.words = self.random.choice(("", "  ", "conv", "STEM", "fused 3x3", "copy relu", "nothing of this", "e"))
        self.panel.filter.setText(self.words)

    def group(self) -> None:
        row = self.random.randrange(4)
        self.kind = ("", "type", "template", "frame")[row]
        self.panel.grouping.setCurrentIndex(row)

    def sort(self) -> None:
        self.column, self.down = self.random.randrange(len(COLUMNS)), self.random.random() < 0.5
        self.panel.tree.sort_by(self.column, Qt.SortOrder.DescendingOrder if self.down else Qt.SortOrder.AscendingOrder)

    def select(self) -> None:
        """Select some rows of the table: the layers of their steps are selected."""
        table, model = self.panel, self.panel.tree.selection()
        indexes = table.rows()
        if not indexes:
            return
        model.clear()
        wanted: dict[int, OperatorProfile] = {}
        for index in self.random.sample(indexes, min(len(indexes), self.random.choice((1, 1, 2, 3)))):
            model.select(index, SELECT)
            inner = [table.proxy.index(row, 0, index) for row in range(table.proxy.rowCount(index))]
            wanted |= {id(row): row for row in map(table.proxy.row_of, inner or [index])}
        chosen = self.profiling.chosen_rows
        assert {id(row) for row in chosen} == wanted.keys()
        assert len(chosen) == len(wanted)
        order = [id(row) for row in self.panel._shown() if id(row) in wanted]
        assert [id(row) for row in chosen] == order, "from top to bottom"
        sight = self.context.in_sight
        assert self.context.selection == tuple(
            dict.fromkeys(name for row in chosen for layer in row.layers if (name := sight(layer)))
        )

    def select_layers(self) -> None:
        names = list(self.context.document.graph.layers)
        chosen = self.random.sample(names, self.random.choice((0, 1, 2)))
        if tuple(chosen) == self.context.selection:  # no news
            return
        self.context.select(tuple(chosen))
        paths = set(self.context.paths(chosen))
        entry = self.profiling.current
        assert [id(row) for row in self.profiling.chosen_rows] == [
            id(row)
            for row in (entry.run.operators if entry is not None else ())
            if any(layer == path or layer.startswith(f"{path}.") for layer in row.layers for path in paths)
        ]

    def reveal(self) -> None:
        indexes = self.panel.rows()
        if indexes:
            index = self.random.choice(indexes)
            row = self.panel.proxy.row_of(index)
            self.panel.tree.activated.emit(index)
            assert self.revealed == list(row.layers[:1])
            self.revealed.clear()

    def copy(self) -> None:
        """The selected rows, else all, with all cells and one line of headers."""
        model = self.panel.tree.selection()
        indexes = self.panel.rows()
        chosen = [index for index in indexes if model.isSelected(index)] or indexes
        self.panel.copy_rows()
        lines = QGuiApplication.clipboard().text().split("\n")
        assert lines[0] == "\t".join(column.header.replace("\n", " / ") for column in COLUMNS)
        assert lines[1:] == [
            "\t".join(str(index.siblingAtColumn(column).data()) for column in range(len(COLUMNS))) for index in chosen
        ]

    def go(self) -> None:
        self.context.set_document(self.random.choice(self.documents))

    def edit(self) -> None:
        name = self.random.choice(NAMES[:2])
        features = str(self.random.randrange(3, 6))
        self.context.root.do(lambda g: commands.set_params(g, {name: {"features": features}}))

    def frame(self) -> None:
        """A frame around the place of a layer gets another title, or is made."""
        document, layer = self.context.root, self.random.choice(NAMES[:2])
        title = self.random.choice(("", "Same", "Own"))
        rect = (PLACES[layer] - 10, -50, 200, 300)
        document.do(frames.set_frame(document.graph, f"f_{layer}", Frame(f"f_{layer}", title, rect=rect)))

    # --- what is shown -------------------------------------------------------------------------------------------------

    def key(self, row: OperatorProfile) -> str:
        graph = self.context.root.graph
        if self.kind == "type":
            return row.type or NONE["type"]
        for layer in row.layers[:1]:
            top = layer.split(".")[0]
            if self.kind == "template" and top in graph and graph[top].type == "template":
                return "Pair"
            frame = graph.frames.get(f"f_{top}")
            if self.kind == "frame" and frame is not None and top in graph:
                alike = [each for each in graph.frames.values() if each.title == frame.title]
                return f"{frame.title} ({frame.id})" if frame.title and len(alike) > 1 else frame.title or frame.id
        return NONE[self.kind]

    def check(self) -> None:
        for _ in range(2):
            QCoreApplication.processEvents()
        panel, entry = self.panel, self.profiling.current
        assert panel._stack.currentIndex() == int(entry is not None)
        if entry is None:
            assert panel.summary.text() == ""
            assert panel.rows() == []
            return
        run, proxy = entry.run, panel.proxy
        words = self.words.lower().split()

        def cells(index: QModelIndex) -> str:
            return " ".join(str(index.siblingAtColumn(column).data()) for column in range(len(COLUMNS))).lower()

        # rows and groups
        found: dict[str, list[int]] = {}
        levels = [[proxy.index(row, 0, ROOT) for row in range(proxy.rowCount(ROOT))]]
        leaves = levels[0]
        if self.kind:
            leaves = []
            for top in levels[0]:
                inside = [proxy.index(row, 0, top) for row in range(proxy.rowCount(top))]
                levels.append(inside)
                leaves += inside
                found[str(top.data())] = [id(proxy.row_of(index)) for index in inside]
                if words:
                    assert panel.tree.frozen.isExpanded(top)
        by_row = {id(proxy.row_of(index)): index for index in leaves}
        if not words:
            assert by_row.keys() == {id(row) for row in run.operators}
        assert all(all(word in cells(index) for word in words) for index in leaves)
        if self.kind:
            groups: dict[str, set[int]] = {}
            for row in run.operators:
                groups.setdefault(self.key(row), set()).add(id(row))
            titles = {
                f"{name} ({len(rows)} step{'s' if len(rows) > 1 else ''})": rows & by_row.keys()
                for name, rows in groups.items()
                if rows & by_row.keys()
            }
            assert {name: set(rows) for name, rows in found.items()} == titles
        elif words:  # in the model without the filter
            source = panel.model
            kept = [source.index(row, 0) for row in range(source.rowCount())]
            assert by_row.keys() == {
                id(source.row_of(index)) for index in kept if all(word in cells(index) for word in words)
            }
        # their order
        for level in levels:
            if self.column == PRIORITY:
                order = [id(row) for row in run.by_saving()]
                if not self.kind:
                    assert [id(proxy.row_of(index)) for index in level] == [row for row in order if row in by_row]
                continue
            column = COLUMNS[self.column]
            if column.value is None:
                keys: list[Any] = [str(index.siblingAtColumn(self.column).data()).lower() for index in level]
            else:
                values = [column.value(run, proxy.row_of(index)).value for index in level]
                keys = [float("-inf") if value is None else value for value in values]
            assert keys == sorted(keys, reverse=self.down)
        # the selection, and the summary
        chosen = [row for row in self.profiling.chosen_rows if id(row) in by_row]
        assert {id(row) for row in panel.selected()} == {id(row) for row in chosen}
        shown_rows = [proxy.row_of(index) for index in leaves]

        def sums(rows: list[OperatorProfile]) -> str:
            time, flops = sum(row.time_ms for row in rows), sum(row.flops for row in rows)
            share = quantity(100 * time / sum(row.time_ms for row in run.operators), "%")
            return f"{quantity(time / 1e3, 's')} ({share})  ·  {quantity(flops, 'FLOP')}"

        text = panel.summary.text()
        if chosen:
            assert text == f"{len(chosen)} selected  ·  {sums(chosen)}"
        elif words:
            of = f"{len(shown_rows)} of {len(run.operators)} shown"
            assert text == (f"{of}  ·  {sums(shown_rows)}" if shown_rows else of)
        else:
            total, steps = sum(row.time_ms for row in run.operators), sum(bool(row.layers) for row in run.operators)
            parts = [f"{steps} step{'s' if steps != 1 else ''}", f"sum of rows {quantity(total / 1e3, 's')}"]
            if run.time_ms:
                ratio = quantity(100 * total / run.time_ms, "%")
                parts[1] += f" = {ratio} of the run's {quantity(run.time_ms / 1e3, 's')}"
            parts.append(quantity(run.flops, "FLOP"))
            if run.time_ms:
                parts.append(quantity(run.flops / run.time_ms * 1e3, "FLOP/s"))
            if run.roof_ms is not None:
                parts.append(f"roofline {quantity(run.roof_ms / 1e3, 's')}")
            assert text == "  ·  ".join(parts)


@pytest.mark.parametrize("seed", range(4))
def test_the_table_has_the_steps_of_the_run_as_they_are_filtered_grouped_and_sorted(
    qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int
) -> None:
    made = Table(qtbot, context, profiling, seed)
    steps: list[Callable[[], None]] = [
        made.run, made.show, made.filter, made.filter, made.group, made.group, made.sort, made.select, made.select,
        made.select_layers, made.reveal, made.copy, made.go, made.edit, made.frame, made.frame,
    ]  # fmt: skip
    play(made, steps, 70)
