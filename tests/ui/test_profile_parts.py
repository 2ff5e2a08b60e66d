"""The profiling panels value by value: what each column, line, bar and button shows of a run of which every field is different."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("PySide6")
from profile_kit import RUN, context, profile_of, profiling, steps
from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QStyleOptionViewItem, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import OpenRequest, PredictReply, PredictRequest, TrainingMemoryRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, ProfilingController, State
from app.ui.profile.columns import COLUMNS, bound_text
from app.ui.profile.dialogs import open_profile, save_profile_as
from app.ui.profile.heat_bar import MARGIN, DifferenceBarDelegate, HeatBarDelegate
from app.ui.profile.operator_table import OperatorTablePanel, column_of
from app.ui.profile.run_differences import DIFFERENCE, RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.run_model import RUN_COLUMNS
from app.ui.profile.table_model import HEAT
from app.ui.profile.what_if_panel import WhatIfPanel
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import Frame
from designer.graph.template_commands import make_template
from designer.profiling.devices import DEVICES
from designer.profiling.profile_files import load_profile
from designer.profiling.quantities import ValueSource, measured, unavailable
from designer.profiling.schema import (
    Bound,
    Energy,
    OperatorProfile,
    ProfileRun,
    mean_utilization,
)
from designer.units import digits

pytestmark = pytest.mark.gui
__all__ = ["context", "profiling"]
ROLE = Qt.ItemDataRole
LEFT, ASCENDING, DESCENDING = Qt.MouseButton.LeftButton, Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


def header(model: Any, column: int, role: ROLE = ROLE.DisplayRole) -> Any:
    return model.headerData(column, Qt.Orientation.Horizontal, role)


def select(tree: Any, *indexes: QModelIndex) -> None:
    """Select rows, in this order."""
    tree.selection().clear()
    for index in indexes:
        tree.selection().select(
            index, QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        )


# --- the table of operators --------------------------------------------------------------------------------------


@pytest.fixture
def table(qtbot: QtBot, context: Context) -> OperatorTablePanel:
    return shown(qtbot, OperatorTablePanel(context), 1100, 320)


def column(table: OperatorTablePanel, key: str, role: ROLE | int = ROLE.DisplayRole) -> list[Any]:
    return [index.siblingAtColumn(column_of(key)).data(role) for index in table.rows()]


MIB = 2**20
CELLS: dict[str, tuple[str, list[str], list[str]]] = {  # header, texts and tooltips of the rows
    "layers": ("Layers", ["stem + body", "head", "tail", "outside of operators"], []),
    "summary": (
        "Hyperparameters",
        ["3x3, 8 features", "2x", "", ""],
        ["stem: features 8, kernel 3x3\nbody: no parameters", "head: mode nearest", "", ""],
    ),
    "time": (
        "Time\nms",
        ["4.00", "2.00", "0", "10.0"],
        [
            "measured: median of 7 runs",
            "modelled: measured by itself, not in the network",
            *["measured: median of 7 runs"] * 2,
        ],
    ),
    "share": ("Share\n%", ["25.0", "12.5", "0", "62.5"], ["modelled: of the sum of all rows"] * 4),
    "saving": (
        "Saving\nms",
        ["3.00", "0", "-", "-"],
        [
            *["modelled: time minus the time at the roof"] * 2,
            *["unavailable: the peaks of the machine are unknown"] * 2,
        ],
    ),
    "bound": ("Bound by", ["compute", "memory, at roof", "launch", "-"], []),
    "distance": (
        "Roof\nx",
        ["4.00", "1.00", "-", "-"],
        [
            *["modelled: time over the time at the roof"] * 2,
            *["unavailable: the peaks of the machine are unknown"] * 2,
        ],
    ),
    "flops": ("Work\nMFLOP", ["12.0", "0.600", "0", "0"], ["modelled: counted from the operator declarations"] * 4),
    "bytes": (
        "Moved\nMiB",
        ["3.00", "7.00", "0", "0"],
        ["modelled: inputs, weights and outputs, each moved once"] * 4,
    ),
    "flops_per_s": (
        "Rate\nGFLOP/s",
        ["3.00", "0.300", "-", "0"],
        [
            *["modelled: over the measured time"] * 2,
            "unavailable: the time was too short to measure",
            "modelled: over the measured time",
        ],
    ),
    "bytes_per_s": ("Flow\nGB/s", [digits(3 * MIB / 4e6), digits(7 * MIB / 2e6), "-", "0"], []),
    "compute_throughput": (
        "Compute\n%",
        ["44.0", "4.00", "-", "-"],
        [*["modelled: achieved over peak"] * 2, *["unavailable: not part of this profile"] * 2],
    ),
    "memory_throughput": ("Memory\n%", ["22.0", "2.00", "-", "-"], []),
    "tensor_core": ("Tensor Cores\n%", ["11.0", "1.00", "-", "-"], ["measured: counted"] * 2),
    "occupancy": ("Occupancy\n%", ["33.0", "3.00", "-", "-"], []),
    "memory": (
        "Held\nMiB",
        ["5.00", "9.00", "-", "-"],
        [*["modelled: from the running order"] * 2, *["unavailable: not part of this profile"] * 2],
    ),
    "learned": ("Learned", ["1,234", "0", "0", "0"], ["modelled: counted from the operator declarations"] * 4),
    "types": ("Type", ["convolution + relu", "upsample", "Custom", ""], []),
    "inputs": ("Input", ["N x 3 x 8 x 16, N x 1 x 8 x 16", "N x 8 x 8 x 16", "", ""], []),
    "outputs": ("Output", ["N x 8 x 8 x 16", "N x 8 x 16 x 32", "", ""], []),
    "spread": (
        "±\nms",
        ["0.250", "0.500", "-", "-"],
        [*["measured: of the timed runs"] * 2, *["unavailable: one run has no spread"] * 2],
    ),
    "kernels": ("Kernels", ["Fused_Kernel", "copy", "", ""], []),
}


def test_every_column_shows_its_own_value_of_each_step(
    table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    assert [each.key for each in COLUMNS] == list(CELLS)
    rows = {table.proxy.row_of(index).name: number for number, index in enumerate(table.rows())}
    order = [rows[row.name] for row in RUN.operators]
    muted = theme.color("muted")
    for number, (key, (title, texts, tips)) in enumerate(CELLS.items()):
        shown_texts, shown_tips = column(table, key), column(table, key, ROLE.ToolTipRole)
        assert (key, [shown_texts[row] for row in order]) == (key, texts)
        if tips:
            assert (key, [shown_tips[row] for row in order][: len(tips)]) == (key, tips)
        elif COLUMNS[number].value is None:
            assert (key, shown_tips) == (key, shown_texts)  # a text that is cut is whole in the tooltip
        inks = [column(table, key, ROLE.ForegroundRole)[row] for row in order]
        numeric = COLUMNS[number].value is not None
        assert (key, inks) == (key, [muted if numeric and text == "-" else None for text in texts])
        model = table.proxy
        assert header(model, number) == title
        assert header(model, number, ROLE.ToolTipRole) == COLUMNS[number].tip
        side = Qt.AlignmentFlag.AlignRight if numeric else Qt.AlignmentFlag.AlignLeft
        assert header(model, number, ROLE.TextAlignmentRole) & side
        assert set(column(table, key, ROLE.TextAlignmentRole)) == {side | Qt.AlignmentFlag.AlignVCenter}
        first = DESCENDING if numeric else ASCENDING
        assert header(model, number, ROLE.InitialSortOrderRole) == first.value
        shares = [10.0, 4.0, 2.0, 0.0] if key == "share" else [None] * 4
        heat = [column(table, key, HEAT)[row] for row in order]
        assert sorted(heat, key=str) == sorted((s / 10.0 if s is not None else None for s in shares), key=str)
    assert len({each.tip for each in COLUMNS}) == len(COLUMNS)


@pytest.mark.parametrize(
    ("change", "tip"),
    [
        ({"source": ValueSource.MODELLED}, "modelled: predicted, not run"),
        ({"iterations": 0}, "measured: median"),
    ],
)
def test_the_time_says_how_it_was_found(
    table: OperatorTablePanel, profiling: ProfilingController, change: dict[str, Any], tip: str
) -> None:
    profiling.add(profile_of(replace(RUN, **change)))
    tips = dict(zip(column(table, "layers"), column(table, "time", ROLE.ToolTipRole), strict=True))
    assert tips["stem + body"] == tip
    assert tips["head"] == "modelled: measured by itself, not in the network"


def test_each_bound_has_its_name() -> None:
    row = OperatorProfile(("a",), "x", 1.0, roof_ms=1.0, saving_ms=0.5)
    for bound in get_args(Bound):
        assert bound_text(replace(row, bound=bound)) == (bound or "-")
        assert bound_text(replace(row, bound=bound, saving_ms=0.0)) == (f"{bound}, at roof" if bound else "-")


def expected_key(key: str, row: OperatorProfile) -> float | str:
    """What a row is sorted by, computed from its fields."""
    lowest = float("-inf")
    texts = {
        "layers": row.name or "outside of operators",
        "summary": row.summary,
        "types": row.type,
        "inputs": ", ".join(row.inputs),
        "outputs": ", ".join(row.outputs),
        "kernels": row.kernels,
        "bound": {"memory": "memory, at roof", "": "-"}.get(row.bound, row.bound),
    }
    if key in texts:
        return texts[key].lower()
    own = {
        "time": "time_ms",
        "share": "time_ms",
        "saving": "saving_ms",
        "memory": "memory_bytes",
        "spread": "spread_ms",
    }
    value = getattr(row, own.get(key, key))
    value = getattr(value, "value", value)
    return lowest if value is None else float(value)


@pytest.mark.parametrize("grouping", ["", "type"])
def test_every_column_sorts_by_what_it_shows(
    table: OperatorTablePanel, profiling: ProfilingController, grouping: str
) -> None:
    kinds = {"convolution + relu": "a", "upsample": "a"}
    rows = tuple(replace(row, type=kinds.get(row.type, "b")) for row in steps())
    profiling.add(profile_of(replace(RUN, operators=rows if grouping else steps())))
    table.grouping.setCurrentIndex(table.grouping.findData(grouping))
    for number, each in enumerate(COLUMNS):
        for order in (ASCENDING, DESCENDING):
            table.tree.sort_by(number, order)
            tops = [index for index in table.rows() if not index.parent().isValid()]
            lists = [tops] if not grouping else [[top.model().index(i, 0, top) for i in range(2)] for top in tops]
            for indexes in lists:
                keys = [expected_key(each.key, table.proxy.row_of(index)) for index in indexes]
                assert (each.key, keys) == (each.key, sorted(keys, reverse=order is DESCENDING))


def test_without_a_sorted_column_the_order_is_that_of_the_priority_in_every_list(
    table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    rows = tuple(
        OperatorProfile((f"l{number}",), "ab"[number % 2], 5.0, flops=number, saving_ms=float(saving))
        for number, saving in enumerate((1, 2, 4, 3, 3, 1))
    )
    profiling.add(profile_of(replace(RUN, operators=rows)))
    assert column(table, "layers") == ["l2", "l3", "l4", "l1", "l0", "l5"]
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    assert column(table, "layers") == ["a (3 steps)", "l2", "l4", "l0", "b (3 steps)", "l3", "l1", "l5"]
    table.tree.sort_by(column_of("time"), DESCENDING)
    assert column(table, "layers")[0] == "a (3 steps)"
    table.tree.sort_by(-1, DESCENDING)  # there is no descending priority
    assert column(table, "layers") == ["a (3 steps)", "l2", "l4", "l0", "b (3 steps)", "l3", "l1", "l5"]


def test_sums_of_a_group_are_those_of_its_steps_in_every_column(
    table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    rows = tuple(replace(row, type="all") for row in steps()[:2])
    profiling.add(profile_of(replace(RUN, operators=rows)))
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    top = table.rows()[0]
    texts = {each.key: top.siblingAtColumn(number).data() for number, each in enumerate(COLUMNS)}
    whole = mean_utilization(rows)
    assert texts == {
        "layers": "all (2 steps)",
        "time": "6.00",
        "share": "100",
        "saving": "3.00",
        "bound": "compute",
        "distance": "2.00",
        "flops": "12.6",
        "bytes": "10.0",
        "flops_per_s": "2.10",
        "bytes_per_s": digits(10 * MIB / 6e6),
        "memory": "9.00",
        "learned": "1,234",
        "types": "all",
        "spread": "-",
        **dict.fromkeys(("summary", "inputs", "outputs", "kernels"), ""),
        **{key: digits(found.value or 0.0) for key, found in whole.items()},
    }
    assert column(table, "share", HEAT) == pytest.approx([1.0, 4 / 6, 2 / 6])


def groups(table: OperatorTablePanel) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for index in table.rows():
        if index.parent().isValid():
            found[index.parent().data()].append(index.data())
        else:
            found[index.data()] = []
    return {title: sorted(members) for title, members in found.items()}


def test_groups_follow_the_open_document(
    qtbot: QtBot, table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    rows = tuple(replace(steps()[0], layers=(name,)) for name in ("stem", "body", "head", "gone"))
    profiling.add(profile_of(replace(RUN, operators=rows)))
    document = context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Start", rect=(310, -50, 500, 300))))
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    nowhere = "in no frame (2 steps)"
    assert groups(table) == {"Start (2 steps)": ["body", "stem"], nowhere: ["gone", "head"]}
    document.do(frames.set_frame(document.graph, "f", replace(document.graph.frames["f"], title="")))
    qtbot.waitUntil(lambda: groups(table) == {"f (2 steps)": ["body", "stem"], nowhere: ["gone", "head"]})
    document.do(frames.remove_frames(document.graph, ["f"]))
    qtbot.waitUntil(lambda: list(groups(table)) == ["in no frame (4 steps)"])
    table.grouping.setCurrentIndex(table.grouping.findData("template"))
    assert list(groups(table)) == ["in no template (4 steps)"]
    document.do(lambda g: make_template(g, ["stem", "body"], "Pair"))
    (instance,) = (name for name, layer in document.graph.layers.items() if layer.type == "template")
    inside = tuple(replace(row, layers=(f"{instance}.{row.name}",)) for row in rows[:2])
    profiling.add(profile_of(replace(RUN, operators=(*inside, *rows[2:]))))
    assert groups(table) == {
        "Pair (2 steps)": [f"{instance}.body", f"{instance}.stem"],
        "in no template (2 steps)": ["gone", "head"],
    }
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert list(groups(table)) == ["in no template (4 steps)"]
    table.grouping.setCurrentIndex(0)
    assert not any(members for members in groups(table).values())


def test_an_edit_that_changes_no_group_keeps_them_open(
    qtbot: QtBot, table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    tree = table.tree.frozen
    assert tree.rootIsDecorated()
    tree.expand(table.rows()[0])
    document = context.document
    with qtbot.waitSignal(table._rest.timeout):
        document.do(lambda g: commands.set_params(g, {"tail": {"features": "5"}}))
    assert tree.isExpanded(table.rows()[0])
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Start", rect=(310, -50, 500, 300))))
    qtbot.waitUntil(lambda: "Start (1 step)" in groups(table))
    table.grouping.setCurrentIndex(0)
    assert not tree.rootIsDecorated()


def test_what_the_filter_finds_is_seen_in_groups_too(
    qtbot: QtBot, table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    tree = table.tree.frozen

    def seen() -> list[str]:
        return [index.data() for index in table.rows() if tree.visualRect(index).isValid()]

    qtbot.keyClicks(table.filter, "UPSAMPLE head")
    assert seen() == ["head"]
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    assert seen() == ["upsample (1 step)", "head"]
    profiling.add(profile_of())  # another run
    assert seen() == ["upsample (1 step)", "head"]
    table.filter.setText("upsample stem")  # in no row are both
    assert seen() == []
    table.filter.setText("upsample (1")  # the title of a group is not a step
    assert seen() == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, "3 steps  ·  sum of rows 16.0 ms = 80.0 % of the run's 20.0 ms  ·  12.6 MFLOP  ·  630 MFLOP/s"),
        ({"time_ms": None}, "3 steps  ·  sum of rows 16.0 ms  ·  12.6 MFLOP"),
        (
            {"operators": steps()[:2]},
            "2 steps  ·  sum of rows 6.00 ms = 30.0 % of the run's 20.0 ms  ·  12.6 MFLOP  ·  630 MFLOP/s  ·  roofline 3.00 ms",
        ),
        (
            {"operators": steps()[:1], "flops": 0},
            "1 step  ·  sum of rows 4.00 ms = 20.0 % of the run's 20.0 ms  ·  0 FLOP  ·  roofline 1.00 ms",
        ),
    ],
)
def test_the_summary_of_a_run_is_of_its_values(
    table: OperatorTablePanel, profiling: ProfilingController, change: dict[str, Any], text: str
) -> None:
    profiling.add(profile_of(replace(RUN, **change)))
    assert (table.summary.text(), table.summary.toolTip()) == (text, text)


def test_the_summary_follows_selection_filter_and_run(
    table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    whole = table.summary.text()
    by_name = {table.proxy.row_of(index).name: index for index in table.rows()}
    select(table.tree, by_name["head"], by_name["stem + body"])
    assert table.summary.text() == table.summary.toolTip() == "2 selected  ·  6.00 ms (37.5 %)  ·  12.6 MFLOP"
    table.filter.setText("head")
    assert table.summary.text() == "1 selected  ·  2.00 ms (12.5 %)  ·  600 kFLOP"  # the other one is not shown
    table.tree.selection().clear()
    assert table.summary.text() == "1 of 4 shown  ·  2.00 ms (12.5 %)  ·  600 kFLOP"
    table.filter.setText(" ")
    assert table.summary.text() == whole
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    group = next(index for index in table.rows() if index.data() == "upsample (1 step)")
    select(table.tree, group, table.proxy.index(0, 0, group))
    assert table.summary.text() == "1 selected  ·  2.00 ms (12.5 %)  ·  600 kFLOP"  # each step counts once
    table.tree.selection().clear()
    profiling.add(profile_of(replace(RUN, time_ms=40.0)))
    assert "40.0 % of the run's 40.0 ms" in table.summary.text()
    for entry in list(profiling.entries):
        profiling.remove(entry)
    assert table.summary.text() == ""
    assert not table.tree.isVisible()


def test_rows_are_copied_as_they_are_shown(table: OperatorTablePanel, profiling: ProfilingController) -> None:
    profiling.add(profile_of())

    def copied() -> list[list[str]]:
        table.copy_rows()
        return [line.split("\t") for line in QGuiApplication.clipboard().text().split("\n")]

    table.tree.sort_by(column_of("layers"), ASCENDING)
    cells = [[index.siblingAtColumn(number).data() for number in range(len(COLUMNS))] for index in table.rows()]
    titles = [each.header.replace("\n", " / ") for each in COLUMNS]
    assert copied() == [titles, *cells]
    select(table.tree, table.rows()[3], table.rows()[0])
    assert copied() == [titles, cells[0], cells[3]]  # from top to bottom
    table.tree.selection().clear()
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    assert [line[0] for line in copied()[1:]] == column(table, "layers")


def test_the_menu_of_the_table_reveals_copies_and_saves(
    qtbot: QtBot, table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    by_name = {table.proxy.row_of(index).name: index for index in table.rows()}

    def menu(*names: str) -> dict[str, Any]:
        select(table.tree, *(by_name[name] for name in names))
        place = table.tree.table.visualRect(by_name["head"].siblingAtColumn(2)).center()
        table.tree.table.customContextMenuRequested.emit(place)
        (made,) = (each for each in table.findChildren(QMenu) if each.isVisible())
        made.close()
        return {action.text(): action for action in made.actions()}

    assert not menu("")["Show on Canvas"].isEnabled()  # time outside of operators has no layer
    assert not menu()["Show on Canvas"].isEnabled()
    actions = menu("", "stem + body")
    assert list(actions) == ["Show on Canvas", "Copy Rows", "Save..."]
    with qtbot.waitSignal(context.reveal_requested) as told:
        actions["Show on Canvas"].trigger()
    assert told.args == ["stem"]
    menu("head")["Copy Rows"].trigger()
    assert QGuiApplication.clipboard().text().split("\n")[1].startswith("head\t")
    menu("head")["Save..."].trigger()
    dialog = table.findChild(object, "run_logger.save_dialog")
    assert dialog is not None
    dialog.reject()
    place = table.tree.table.visualRect(by_name["head"].siblingAtColumn(2)).center()
    qtbot.mouseClick(table.tree.table.viewport(), LEFT, pos=place)
    with qtbot.waitSignal(context.reveal_requested, timeout=5000) as told:
        qtbot.mouseDClick(table.tree.table.viewport(), LEFT, pos=place)
    assert told.args == ["head"]
    for view in table.tree.views:
        with qtbot.waitSignal(context.reveal_requested, timeout=5000) as told:
            qtbot.keyClick(view, Qt.Key.Key_Return)
        assert told.args == ["head"]


def test_the_rows_of_the_selected_layers_are_selected_in_every_grouping_and_run(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    for grouping in ("", "type", "frame", "template"):
        table.grouping.setCurrentIndex(table.grouping.findData(grouping))
        for layers, names in ((("body",), {"stem + body"}), (("head", "tail"), {"head", "tail"}), ((), set())):
            context.select(layers)
            assert {row.name for row in table.selected()} == names
            assert context.selection == layers
    context.select(("head",))
    profiling.add(profile_of(replace(RUN, operators=steps()[::-1])))
    assert [row.name for row in table.selected()] == ["head"]
    assert table.selected()[0] is profiling.entries[1].run.operators[2]
    assert context.selection == ("head",)


@pytest.mark.parametrize(
    ("delegate", "part", "start", "width", "role"),
    [
        (HeatBarDelegate, 1.0, 0.0, 1.0, "accent"),
        (HeatBarDelegate, 0.25, 0.0, 0.25, "accent"),
        (HeatBarDelegate, 0.0, 0.0, 0.0, "accent"),
        (HeatBarDelegate, None, 0.0, 0.0, "accent"),
        (DifferenceBarDelegate, 1.0, 0.5, 0.5, "negative"),
        (DifferenceBarDelegate, 0.5, 0.5, 0.25, "negative"),
        (DifferenceBarDelegate, -0.5, 0.25, 0.25, "positive"),
        (DifferenceBarDelegate, -1.0, 0.0, 0.5, "positive"),
    ],
)
def test_a_bar_is_as_long_as_its_share(
    qtbot: QtBot,
    table: OperatorTablePanel,
    delegate: type[HeatBarDelegate],
    part: float | None,
    start: float,
    width: float,
    role: theme.RoleName,
) -> None:
    from PySide6.QtGui import QStandardItem, QStandardItemModel

    model = QStandardItemModel(1, 1)
    item = QStandardItem("")
    item.setData(part, HEAT)
    model.setItem(0, 0, item)
    image = QImage(204, 28, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    option = QStyleOptionViewItem()
    option.rect = QRect(0, 0, 204, 28)
    delegate(table).paint(painter, option, model.index(0, 0))
    painter.end()
    color = theme.color(role)
    painted = [x for x in range(204) if image.pixelColor(x, 25) == color]
    assert len(painted) == pytest.approx(200 * width, abs=1)
    if painted:
        assert painted[0] == pytest.approx(MARGIN + 200 * start, abs=2)
        assert painted == list(range(painted[0], painted[0] + len(painted)))
    assert image.pixelColor(4, 2) == QColor("black")  # the number stays readable


# --- the list of runs --------------------------------------------------------------------------------------------


@pytest.fixture
def logger(qtbot: QtBot, context: Context) -> RunLoggerPanel:
    return shown(qtbot, RunLoggerPanel(context), 420, 600)


def local(date: str, form: str) -> str:
    return datetime.fromisoformat(date).astimezone().strftime(form)


def test_every_column_of_a_run_shows_its_own_value(
    logger: RunLoggerPanel, profiling: ProfilingController, tmp_path: Path
) -> None:
    today = datetime.now().astimezone().replace(microsecond=0).isoformat()
    old = "2024-05-06T23:50:00-14:00"
    second = replace(
        RUN, engine="onnxruntime", precision="fp32", layout="nchw", device="cuda", batch=8, size="", time_ms=None,
        iterations=0, date=old, weights="random weights (seed 5)", partial="it was stopped",
    )  # fmt: skip
    third = replace(RUN, source=ValueSource.MODELLED, device="H100", date="someday")
    profiling.add(profile_of(replace(RUN, date=today), network="<i>net</i>"))
    profiling.add(profile_of(second, third, network="other"), tmp_path / "a.json")
    titles = ["#", "Median\nms", "Batch", "Size", "Engine", "Precision", "Layout", "Chip", "Source", "Network"]
    titles += ["Time", "Runs", "Weights", "From"]
    model = logger.model
    assert [header(model, number) for number in range(model.columnCount())] == titles
    texts = [[model.index(row, number).data() for number in range(len(titles))] for row in range(3)]
    assert [row[:10] for row in texts] == [
        ["1", "20.0", "3", "16x8", "torch", "fp16", "nhwc", "Test CPU", "measured", "<i>net</i>"],
        ["2", "-", "8", "", "onnxruntime", "fp32", "nchw", "Test GPU", "partial", "other"],
        ["3", "20.0", "3", "16x8", "torch", "fp16", "nhwc", "H100", "modelled", "other"],
    ]
    assert [row[10:] for row in texts] == [
        [local(today, "%H:%M:%S"), "7", "from file", "this session"],
        [local(old, "%Y-%m-%d"), "0", "random weights (seed 5)", "a.json"],
        ["someday", "7", "from file", "a.json"],
    ]
    numbers = {"#", "Median\nms", "Batch", "Runs"}
    for number, (title, *_) in enumerate(RUN_COLUMNS):
        side = Qt.AlignmentFlag.AlignRight if title in numbers else Qt.AlignmentFlag.AlignLeft
        assert header(model, number, ROLE.TextAlignmentRole) & side
        fonts = []
        for row in range(3):
            index = model.index(row, number)
            assert index.data(ROLE.TextAlignmentRole) & side
            fonts.append(index.data(ROLE.FontRole))
            tip = index.data(ROLE.ToolTipRole)
            assert ("a.json" in tip) is (row > 0)
            assert "<i>" not in tip  # a name is not markup
        assert fonts[0] == fonts[1] == (theme.mono_font() if title in numbers else None)
        assert fonts[2].italic()
        assert (fonts[2].family() == theme.mono_font().family()) is (title in numbers)
    assert model.index(0, 0).data(ROLE.ToolTipRole) == plain_tip(profiling.entries[0].title)


@pytest.mark.parametrize(
    "field", ["batch", "size", "engine", "precision", "layout", "device", "source", "network", "time_ms", "weights"]
)
def test_only_settings_that_all_runs_share_are_hidden(
    logger: RunLoggerPanel, profiling: ProfilingController, field: str
) -> None:
    shared = {"Batch", "Size", "Engine", "Precision", "Layout", "Chip", "Source", "Network"}
    other = {"batch": 9, "source": ValueSource.MODELLED, "time_ms": 1.0, "device": "cuda"}
    profiling.add(profile_of())
    run = RUN if field == "network" else replace(RUN, **{field: other.get(field, "another")})
    profiling.add(profile_of(run, network="another" if field == "network" else "net"))

    def hidden() -> set[str]:
        return {title for number, (title, *_) in enumerate(RUN_COLUMNS) if logger.table.isColumnHidden(number)}

    differs = {"device": "Chip"}.get(field, field.capitalize())
    assert hidden() == shared - {differs}
    profiling.remove(profiling.entries[1])
    assert hidden() == set()


DETAILS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {},
        [
            "net, torch fp16 nhwc batch 3 16x8 on Test CPU, 2 threads",
            "median 20.0 ms ± 500 µs of 7 runs",
            "input image 3 x 3 x 8 x 16",
        ],
    ),
    (
        {"threads": 0, "time_ms": None, "inputs": {}, "partial": "it was stopped"},
        ["net, torch fp16 nhwc batch 3 16x8 on Test CPU", "no time measured", "partial: it was stopped"],
    ),
    (
        {
            "source": ValueSource.MODELLED,
            "threads": 0,
            "inputs": {"a": "1 x 3", "b": "2 x 4"},
            "operators": steps()[:2],
        },
        [
            "net, torch fp16 nhwc batch 3 16x8 on Test CPU",
            "predicted 20.0 ms",
            "input a 1 x 3, b 2 x 4",
            "roofline of the machine 3.00 ms",
        ],
    ),
    (
        {
            "threads": 0,
            "inputs": {},
            "spread_ms": None,
            "weights": "random weights (seed 0)",
            "energy": Energy(measured(2.5), measured(125.0), measured(5e9)),
            "checks": {"largest difference": measured(0.000123, "of fp32"), "mean": unavailable("not measured")},
            "notes": ("first", "second"),
        },
        [
            "net, torch fp16 nhwc batch 3 16x8 on Test CPU",
            "median 20.0 ms ± 0 s of 7 runs",
            "weights: random weights (seed 0)",
            "energy: 2.50 J per run, 125 W, 5.00 GFLOP/s per watt",
            "largest difference: 1.23e-04 (of fp32)",
            "note: first",
            "note: second",
        ],
    ),
    (
        {
            "threads": 0,
            "inputs": {},
            "energy": Energy(unavailable("no sensor"), unavailable("no watts"), measured(1.0)),
        },
        [
            "net, torch fp16 nhwc batch 3 16x8 on Test CPU",
            "median 20.0 ms ± 500 µs of 7 runs",
            "energy: unavailable (no sensor)",
        ],
    ),
    (
        {"threads": 0, "inputs": {}, "energy": Energy(measured(1.0), unavailable("no watts"), measured(1.0))},
        [
            "net, torch fp16 nhwc batch 3 16x8 on Test CPU",
            "median 20.0 ms ± 500 µs of 7 runs",
            "energy: unavailable (no watts)",
        ],
    ),
]


@pytest.mark.parametrize(("change", "lines"), DETAILS)
def test_the_details_of_a_run_are_of_its_values(
    logger: RunLoggerPanel, profiling: ProfilingController, change: dict[str, Any], lines: list[str]
) -> None:
    profiling.add(profile_of(replace(RUN, **change)))
    assert logger.details.text().split("\n") == lines


def test_buttons_and_panels_follow_the_selected_runs(
    qtbot: QtBot, logger: RunLoggerPanel, profiling: ProfilingController, tmp_path: Path
) -> None:
    save, remove = (logger.findChild(QToolButton, f"run_logger.{name}") for name in ("save", "remove"))
    assert save is not None
    assert remove is not None
    runs = [replace(RUN, time_ms=time) for time in (10.0, 15.0, 40.0)]
    assert (save.isEnabled(), remove.isEnabled(), logger.table.isVisible()) == (False, False, False)
    profiling.add(profile_of(*runs))
    first, second, third = profiling.entries
    assert profiling.current is third

    def choose(*rows: int) -> tuple[bool, bool]:
        logger.table.clearSelection()
        for row in rows:
            index = logger.model.index(row, 0)
            flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
            logger.table.selectionModel().select(index, flags)
        return save.isEnabled(), remove.isEnabled()

    assert choose(1) == (True, True)
    assert profiling.current is second
    assert "median 15.0 ms" in logger.details.text()
    qtbot.mouseClick(save, LEFT)
    dialog = logger.findChild(QFileDialog, "run_logger.save_dialog")
    dialog.fileSelected.emit(str(tmp_path / "run.json"))
    dialog.reject()
    assert load_profile(tmp_path / "run.json").runs == (second.run,)
    assert choose(2, 0) == (False, True)
    assert profiling.compared == (first, third)  # the upper one is the one before
    assert profiling.current is third  # it was the only one for a moment
    assert logger.details.text().split("\n")[0] == "#1 10.0 ms, #3 40.0 ms: #3 takes 4.00 x of #1"
    assert choose(2, 1, 0) == (False, True)
    assert profiling.current is third
    assert (profiling.compared, logger.details.text()) == (None, "")
    assert choose() == (False, False)
    assert choose(0, 2) == (False, True)
    qtbot.mouseClick(remove, LEFT)
    assert profiling.entries == [second]
    assert profiling.compared is None
    assert logger.chosen() == [second]
    profiling.add(profile_of(RUN))
    assert [logger.model.index(row, 0).data() for row in range(2)] == ["2", "4"]  # numbers are not given again
    assert logger.chosen() == [profiling.entries[1]]
    profiling.show(second)
    assert logger.chosen() == [second]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (
            {"operators": (OperatorProfile(("a",), "x", 4.0), OperatorProfile(("b",), "x", 1.0))},
            {"time_ms": 30.0, "operators": (OperatorProfile(("a",), "x", 1.0), OperatorProfile(("b",), "x", 1.001))},
            ["#1 20.0 ms, #2 30.0 ms: #2 takes 1.50 x of #1", "a: -3.00 ms"],
        ),
        (
            {"operators": tuple(OperatorProfile((name,), "x", 1.0) for name in "abcde")},
            {
                "time_ms": 20.04,
                "operators": tuple(OperatorProfile((name,), "x", 2.0 + n) for n, name in enumerate("abcde")),
            },
            [
                "#1 20.0 ms, #2 20.0 ms: #2 takes 1.00 x of #1",
                *("e: +5.00 ms", "d: +4.00 ms", "c: +3.00 ms", "b: +2.00 ms"),
                "The difference of the whole run is within the noise.",
            ],
        ),
        ({"time_ms": None}, {}, ["one of the two runs has no time"]),
        ({}, {"time_ms": None}, ["one of the two runs has no time"]),
    ],
)
def test_two_runs_are_compared_in_the_order_of_the_list(
    logger: RunLoggerPanel,
    profiling: ProfilingController,
    before: dict[str, Any],
    after: dict[str, Any],
    lines: list[str],
) -> None:
    profiling.add(profile_of(replace(RUN, **before)))
    profiling.add(profile_of(replace(RUN, **after)))
    logger.table.selectAll()
    assert logger.details.text().split("\n") == lines


def test_each_field_of_a_launch_is_its_own(
    qtbot: QtBot, logger: RunLoggerPanel, context: Context, profiling: ProfilingController, monkeypatch: Any
) -> None:
    launched = []
    monkeypatch.setattr(profiling, "launch", lambda: launched.append(dict(profiling.grid)))
    texts = {"batches": "1,2", "sizes": "8x8", "engines": "torch", "precisions": "fp16", "layouts": "nhwc"}
    for name, text in texts.items():
        field = getattr(logger, name)
        qtbot.keyClicks(field, text)
        qtbot.keyClick(field, Qt.Key.Key_Return)
        assert field.accessibleName().lower() == name
    assert launched[-1] == texts
    assert [len(each) for each in launched] == [1, 2, 3, 4, 5]
    logger.batches.clear()
    assert profiling.grid["batches"] == ""
    qtbot.mouseClick(logger.training, LEFT, pos=QPoint(8, 8))
    assert profiling.training
    qtbot.mouseClick(logger.training, LEFT, pos=QPoint(8, 8))
    assert not profiling.training
    assert logger.launch.isEnabled()
    assert logger.launch.toolTip() == "Run the network, time every operator, and list the run"


def test_a_training_step_is_measured_while_its_box_is_checked(
    qtbot: QtBot, logger: RunLoggerPanel, profiling: ProfilingController
) -> None:
    assert not profiling.training
    for checked in (True, False, True, False):
        logger.training.setChecked(checked)
        assert profiling.training is checked


@pytest.mark.parametrize(
    ("state", "button", "status", "notice"),
    [
        (State.IDLE, "Launch Inference", "why", ""),
        (State.RUNNING, "Stop", "why", ""),
        (State.FAILED, "Launch Inference", "why", ""),
        (
            State.WEIGHTS,
            "Launch Inference",
            "",
            "Attention: why Choose weights, or measure the network with random weights.",
        ),
    ],
)
def test_what_is_said_and_offered_follows_the_state(
    qtbot: QtBot,
    logger: RunLoggerPanel,
    profiling: ProfilingController,
    monkeypatch: Any,
    state: State,
    button: str,
    status: str,
    notice: str,
) -> None:
    done = []
    monkeypatch.setattr(profiling, "launch", lambda: done.append("launch"))
    monkeypatch.setattr(profiling, "stop", lambda: done.append("stop"))
    profiling._set_state(state, "why")
    assert (logger.launch.text(), logger.status.text(), logger._notice.text) == (button, status, notice)
    assert logger._notice.isVisible() is bool(notice)
    assert ("Stop" in logger.launch.toolTip()) is (state is State.RUNNING)
    qtbot.mouseClick(logger.launch, LEFT)
    assert done == ["stop" if state is State.RUNNING else "launch"]
    for later in (State.RUNNING, State.FAILED, State.IDLE):
        profiling._set_state(state, "why")
        profiling._set_state(later, "" if later is State.IDLE else "other")
        assert not logger._notice.isVisible(), later
        assert logger.status.text() == ("" if later is State.IDLE else "other")
    assert not logger.status.isVisible()


# --- the difference of two runs ----------------------------------------------------------------------------------


@pytest.fixture
def differences(qtbot: QtBot, context: Context) -> RunDifferencesPanel:
    return shown(qtbot, RunDifferencesPanel(context), 700, 400)


def pair(
    profiling: ProfilingController, before: ProfileRun, after: ProfileRun, **documents: Any
) -> tuple[Entry, Entry]:
    for run in (before, after):
        profiling.add(profile_of(run), **documents)
    profiling.compare((profiling.entries[-2], profiling.entries[-1]))
    return profiling.entries[-2], profiling.entries[-1]


def timed(**times: float) -> tuple[OperatorProfile, ...]:
    return tuple(OperatorProfile((name,) if name != "rest" else (), "x", time) for name, time in times.items())


BEFORE = replace(RUN, operators=timed(stem=4.0, body=1.0, head=2.0, image=3.0, rest=0.5), spread_ms=0.0)
AFTER = replace(RUN, operators=timed(stem=1.0, body=3.0, head=2.01, tail=5.0, rest=0.5), time_ms=25.0, spread_ms=0.0)
DIFFERENT = [  # sorted by the size of the difference
    ["tail", "-", "5.00", "+5.00", "0.0500", "only after"],
    ["stem", "4.00", "1.00", "-3.00", "0.0400", "faster"],
    ["image", "3.00", "-", "-3.00", "0.0300", "only before"],
    ["body", "1.00", "3.00", "+2.00", "0.0300", "slower"],
    ["head", "2.00", "2.01", "+0.0100", "0.0201", "none"],
    ["outside of operators", "0.500", "0.500", "0", "0.00500", "none"],
]


def cells(panel: RunDifferencesPanel, role: ROLE | int = ROLE.DisplayRole) -> list[list[Any]]:
    return [
        [panel.proxy.index(row, number).data(role) for number in range(panel.proxy.columnCount())]
        for row in range(panel.proxy.rowCount())
    ]


def test_every_column_of_a_difference_shows_its_own_value(
    differences: RunDifferencesPanel, profiling: ProfilingController
) -> None:
    pair(profiling, BEFORE, AFTER)
    titles = ["Layers", "Before\nms", "After\nms", "Difference\nms", "Noise\nms", "Verdict"]
    assert [header(differences.proxy, number) for number in range(6)] == titles
    assert cells(differences) == DIFFERENT
    heat = [row[DIFFERENCE] for row in cells(differences, HEAT)]
    assert heat == pytest.approx([1.0, -0.6, -0.6, 0.4, None, None])
    colors = {
        row[-1]: brush for row, (*_, brush) in zip(DIFFERENT, cells(differences, ROLE.ForegroundRole), strict=True)
    }
    assert colors["faster"].color() == theme.color("positive")
    assert colors["slower"].color() == theme.color("negative")
    assert (colors["none"], colors["only after"], colors["only before"]) == (None, None, None)
    for number in range(6):
        right = 0 < number < 5
        assert (
            bool((header(differences.proxy, number, ROLE.TextAlignmentRole) or 0) & Qt.AlignmentFlag.AlignRight)
            is right
        )
        for row in cells(differences, ROLE.TextAlignmentRole):
            assert bool((row[number] or 0) & int(Qt.AlignmentFlag.AlignRight)) is right
    for number in range(6):
        for order in (ASCENDING, DESCENDING):
            differences.tree.sort_by(number, order)
            keys = [row[number] for row in cells(differences)]
            if 0 < number < 5:
                keys = [abs(float(text)) if text != "-" else float("-inf") for text in keys]
            assert keys == sorted(keys, reverse=order is DESCENDING)
    assert differences.summary.text().split("\n") == [
        "#1 net, torch fp16 nhwc batch 3 16x8 on Test CPU: 20.0 ms",
        "#2 net, torch fp16 nhwc batch 3 16x8 on Test CPU: 25.0 ms",
        "Difference +5.00 ms (1.25 x), noise ±250 µs: slower",
        "note: the runs were not measured in turns, so a change of clock rate or load between them counts as a difference",
    ]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({}, {"time_ms": 10.0}, "Difference -15.0 ms (0.400 x), noise ±250 µs: faster"),
        ({}, {"time_ms": 25.1}, "Difference +100 µs (1.00 x), noise ±251 µs: none"),
        ({"time_ms": None}, {}, "One of the two runs has no time."),
        ({}, {"time_ms": None}, "One of the two runs has no time."),
    ],
)
def test_the_summary_of_a_difference_is_of_both_runs(
    differences: RunDifferencesPanel,
    profiling: ProfilingController,
    before: dict[str, Any],
    after: dict[str, Any],
    line: str,
) -> None:
    base = replace(BEFORE, time_ms=25.0, turns="x")
    pair(profiling, replace(base, **before), replace(base, **after))
    assert differences.summary.text().split("\n")[-1] == line
    assert cells(differences)


def test_a_row_of_a_difference_selects_its_layers_until_the_user_selects_others(
    differences: RunDifferencesPanel, context: Context, profiling: ProfilingController
) -> None:
    first, second = pair(profiling, BEFORE, AFTER)
    rows = {differences.proxy.index(row, 0).data(): differences.proxy.index(row, 0) for row in range(6)}
    select(differences.tree, rows["stem"], rows["head"])
    assert context.selection == ("stem", "head")
    select(differences.tree, rows["outside of operators"])
    assert context.selection == ()
    select(differences.tree, rows["stem"])
    profiling.compare((second, first))  # other rows: what is selected on the canvas stays
    assert context.selection == ("stem",)
    assert cells(differences)[1][:3] == ["stem", "1.00", "4.00"]
    profiling.compare(None)
    assert context.selection == ("stem",)
    assert not differences.tree.isVisible()


def test_measuring_in_turns_is_possible_for_two_runs_of_this_session(
    qtbot: QtBot, differences: RunDifferencesPanel, context: Context, profiling: ProfilingController, monkeypatch: Any
) -> None:
    asked: list[tuple[Entry, Entry]] = []
    monkeypatch.setattr(profiling, "remeasure", asked.append)
    tip = "Measure the networks of both runs again, block by block in turns, so that both see the same clock rate and load"
    assert (differences.again.isEnabled(), differences.again.toolTip()) == (False, tip)
    first, second = pair(profiling, BEFORE, AFTER, openings=(OpenRequest("text", "w"),))
    assert (differences.again.isEnabled(), differences.again.toolTip()) == (True, tip)
    qtbot.mouseClick(differences.again, LEFT)
    assert asked == [(first, second)]
    for state, can in ((State.RUNNING, False), (State.IDLE, True), (State.FAILED, True)):
        profiling._set_state(state, "")
        assert differences.again.isEnabled() is can
    profiling.add(profile_of())
    profiling.compare((first, profiling.entries[-1]))
    assert not differences.again.isEnabled()
    assert differences.again.toolTip() == "#3 was not measured in this session."
    profiling.compare(None)
    assert not differences.again.isEnabled()


def test_verdicts_have_the_colors_of_the_theme(
    qapp: QApplication, differences: RunDifferencesPanel, profiling: ProfilingController
) -> None:
    pair(profiling, BEFORE, AFTER)
    select(differences.tree, differences.proxy.index(1, 0))
    theme.apply(qapp, "light")
    try:
        assert cells(differences, ROLE.ForegroundRole)[1][-1].color() == theme.color("positive")
        assert [index.data() for index in differences.tree.selected_rows()] == ["stem"]
    finally:
        theme.apply(qapp, "dark")


# --- files -------------------------------------------------------------------------------------------------------


def test_a_run_is_saved_in_the_format_that_is_chosen(
    qtbot: QtBot, logger: RunLoggerPanel, profiling: ProfilingController, tmp_path: Path
) -> None:
    runs = [replace(RUN, engine=engine, date="2026-01-02T03:04:05+00:00") for engine in ("torch", "onnxruntime")]
    profiling.add(profile_of(*runs))
    dialog = save_profile_as(logger, profiling, profiling.entries[0])
    assert [Path(path).name for path in dialog.selectedFiles()] == ["net-torch-fp16-2026-01-02.json"]
    assert {dialog.defaultSuffix()} == {"json"}
    suffixes = {}
    for chosen in dialog.nameFilters():
        dialog.filterSelected.emit(chosen)
        suffixes[chosen] = dialog.defaultSuffix()
    assert all(f"*.{suffix}" in chosen for chosen, suffix in suffixes.items())
    assert {"json", "csv"} <= set(suffixes.values())
    dialog.fileSelected.emit(str(tmp_path / "one.json"))
    dialog.reject()
    dialog = open_profile(logger, profiling)
    dialog.fileSelected.emit(str(tmp_path / "one.json"))
    dialog.reject()
    assert [entry.run.engine for entry in profiling.entries] == ["torch", "onnxruntime", "torch"]  # that run alone
    assert profiling.entries[2].path == tmp_path / "one.json"


# --- what if -----------------------------------------------------------------------------------------------------


def test_what_if_asks_for_what_is_chosen_and_shows_the_answer(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: Any
) -> None:
    panel = shown(qtbot, WhatIfPanel(context), 360, 600)
    asked: list[PredictRequest] = []
    answers: list[Any] = []
    monkeypatch.setattr(
        profiling, "predict", lambda ask, done, failed: (asked.append(ask), answers.append((done, failed)))
    )

    def ask() -> Any:
        qtbot.mouseClick(panel.predict, LEFT)
        return asked[-1]

    assert ask() == PredictRequest("", "fp32", 1, None, "adam")
    assert (panel.predict.text(), panel.status.text()) == ("Stop", "Predicting …")
    answers[-1][1]("it failed")
    assert (panel.predict.text(), panel.status.text()) == ("Predict", "it failed")
    for box in (panel.machine, panel.precision, panel.optimizer):
        box.setCurrentIndex(box.count() - 1)
    panel.batch.setValue(6)
    panel.size_.setText("64x48")
    assert ask() == PredictRequest(DEVICES[-1].name, "bf16", 6, (64, 48), "rmsprop")
    predicted = replace(RUN, precision="bf16", batch=6, size="64x48", source=ValueSource.MODELLED, notes=("first",))
    rows = (TrainingMemoryRow("stem", 1024, 2048, 4096, 8192), TrainingMemoryRow("body", 1, 2, 4, 2**20))
    profiling.add(profile_of(replace(RUN, batch=2, size="64x48", time_ms=10.0)))
    answers[-1][0](PredictReply(profile_of(predicted), rows))
    assert panel.result.text().split("\n") == [
        f"{DEVICES[-1].name}, BF16, batch 6, 64x48: 20.0 ms (modelled)",
        "1.50 x the images per second of run #1 (measured)",
        "memory of a training step: 1.01 MiB (modelled)",
        "note: first",
    ]
    assert not panel.status.text()
    shown_rows = [panel.memory.topLevelItem(row) for row in range(2)]
    assert [[item.text(column) for column in range(6)] for item in shown_rows if item is not None] == [
        ["body", "1.00 MiB", "1.00 B", "2.00 B", "4.00 B", "1.00 MiB"],
        ["stem", "15.0 KiB", "1.00 KiB", "2.00 KiB", "4.00 KiB", "8.00 KiB"],
    ]
    titles = [panel.memory.headerItem().text(column) for column in range(6)]
    assert titles == ["Layer", "Total", "Weights", "Gradients", "Optimizer", "Activations"]
    with qtbot.waitSignal(context.reveal_requested) as told:
        place = panel.memory.visualItemRect(shown_rows[1]).center()
        qtbot.mouseClick(panel.memory.viewport(), LEFT, pos=place)
    assert told.args == ["stem"]
    with qtbot.waitSignal(context.reveal_requested) as told:
        qtbot.keyClick(panel.memory, Qt.Key.Key_Return)
    assert told.args == ["stem"]
    assert [entry.run.source for entry in profiling.entries] == [ValueSource.MEASURED, ValueSource.MODELLED]
    for state, can in ((State.RUNNING, False), (State.IDLE, True)):
        profiling._set_state(state, "")
        assert panel.predict.isEnabled() is can
    tips = [panel.machine.itemData(row, ROLE.ToolTipRole) for row in range(1, panel.machine.count())]
    assert tips == [device.source for device in DEVICES]
