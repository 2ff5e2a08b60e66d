"""The profiling panels with profiles, as users work with them: table, bars, charts, heat, list of runs, files."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("PySide6")

from pseudo_kit import OPEN, Pseudo
from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QToolButton
from window_kit import empty, shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, State, profiling_of
from app.ui.profile.charts import PLOTS, ChartsPanel
from app.ui.profile.columns import COLUMNS
from app.ui.profile.dialogs import file_stem
from app.ui.profile.operator_table import OperatorTablePanel, column_of
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.table_model import HEAT, SORT
from app.ui.profile.utilization import UtilizationPanel
from app.ui.widgets import theme
from designer import texts
from designer.files.document import read_document
from designer.operators.registry import load
from designer.profiling.cost import cost_table
from designer.profiling.heat import METRICS, critical_path, heat
from designer.profiling.machine import Machine
from designer.profiling.profile_files import save_profile
from designer.profiling.quantities import ValueSource, measured, modelled, unavailable
from designer.profiling.schema import (
    LARGEST,
    SMALLEST,
    OperatorProfile,
    PeakMemory,
    Profile,
    ProfileRun,
    RunPeaks,
    TrainingStep,
)
from designer.units import digits

pytestmark = pytest.mark.gui
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def profiling_operators():
    return load(entry_points=False)


@pytest.fixture
def context(qapp: QApplication, profiling_operators) -> Iterator[Context]:
    theme.apply(qapp, "dark")
    made = Context(profiling_operators)
    graph = read_document(ROOT / "samples" / "denoiser.xml").graph
    assert graph is not None
    made.set_document(Document(graph, profiling_operators, parent=made))
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def profile(context: Context) -> Profile:
    """A profile with made-up times: the n-th step takes n milliseconds; two layers ran as one."""
    rows = cost_table(context.document.inference).rows
    names = [name for name, row in rows.items() if row.sources and row.type != "output"]
    steps = [tuple(names[:2]), *((name,) for name in names[2:])]
    operators = tuple(
        OperatorProfile(
            layers,
            " + ".join(dict.fromkeys(rows[name].type for name in layers)),
            time_ms=float(number),
            spread_ms=0.1,
            summary=rows[layers[0]].summary,
            parameters={name: dict(rows[name].parameters) for name in layers},
            inputs=tuple(str(shape) for shape in rows[layers[0]].inputs),
            outputs=tuple(str(shape) for shape in rows[layers[-1]].outputs),
            flops=sum(rows[name].flops for name in layers),
            bytes=1000 * number,
            memory_bytes=2**20 * number,
            bound="compute" if number % 2 else "memory",
            roof_ms=number / 2,
            saving_ms=number / 2,
            memory_throughput=modelled(10.0 * number % 100, "achieved over peak"),
            compute_throughput=modelled(50.0, "achieved over peak"),
            tensor_core=unavailable("only NVIDIA GPUs have Tensor Cores"),
            occupancy=unavailable("only NVIDIA GPUs have SMs"),
        )
        for number, layers in enumerate(steps, 1)
    )
    peaks = RunPeaks(measured(100e9), measured(20e9), measured(80e9), 1 << 20, note="measured on a busy machine")
    run = ProfileRun(
        "onnxruntime", "fp32", "nchw", "cpu", 1, "256x256", 500.0, 4.0, operators, threads=2, iterations=2, warmup=1,
        inputs={"input_image": "1 x 3 x 256 x 256"}, flops=sum(row.flops for row in operators), peaks=peaks,
        weights="random weights (seed 0)", peak_memory=PeakMemory(2**21, 3, {names[0]: 2**20}),
        notes=("measured on a busy machine",),
    )  # fmt: skip
    return Profile(Machine("Test CPU", 2), "denoiser", (run,))


@pytest.fixture
def run(profile: Profile) -> ProfileRun:
    return profile.runs[0]


@pytest.fixture
def table(qtbot, context: Context) -> OperatorTablePanel:
    panel = OperatorTablePanel(context)
    qtbot.addWidget(panel)
    panel.resize(1100, 320)
    panel.show()
    return panel


def cells(table: OperatorTablePanel, key: str, role: int = Qt.ItemDataRole.DisplayRole) -> list:
    """The cells of a column from top to bottom."""
    return [index.siblingAtColumn(column_of(key)).data(role) for index in table.rows()]


def click_header(qtbot, view, column: int) -> None:
    header = view.header()
    place = QPoint(header.sectionViewportPosition(column) + 10, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)


def select_row(table: OperatorTablePanel, number: int) -> None:
    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    table.tree.selection().select(table.rows()[number], flags)


def test_without_a_run_the_panel_says_what_fills_it(qtbot, context, table):
    assert empty(table).isVisibleTo(table)
    with qtbot.waitSignal(context.inference_requested):
        qtbot.mouseClick(table.findChild(QPushButton, "operator_table.empty.action"), Qt.MouseButton.LeftButton)


def test_rows_are_in_the_order_of_the_saving(qtbot, context, table, profile):
    run = profile.runs[0]
    profiling_of(context).add(profile)
    assert cells(table, "layers") == [row.name for row in run.by_saving()]
    header = table.tree.table.header()
    assert header.sortIndicatorSection() == -1
    savings = [row.saving_ms for row in run.by_saving()]
    for expected in (sorted(savings, reverse=True), sorted(savings), savings):  # the third click restores the order
        click_header(qtbot, table.tree.table, column_of("saving"))
        assert cells(table, "saving", SORT) == expected
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    totals = [table.proxy.row_of(table.proxy.index(row, 0)) for row in range(table.proxy.rowCount())]
    assert totals[0].saving_ms == max(total.saving_ms for total in totals)


def test_the_first_click_sorts_values_descending_and_names_ascending(qtbot, context, table, profile):
    profiling_of(context).add(profile)
    click_header(qtbot, table.tree.table, column_of("time"))
    times = cells(table, "time", SORT)
    assert times == sorted(times, reverse=True)
    click_header(qtbot, table.tree.table, column_of("time"))
    assert cells(table, "time", SORT) == sorted(times)
    click_header(qtbot, table.tree.frozen, 0)
    names = cells(table, "layers", SORT)
    assert names == sorted(names)


def test_the_first_column_stays_in_view_while_the_others_scroll(qtbot, context, table, profile):
    profiling_of(context).add(profile)
    bar = table.tree.table.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    frozen = table.tree.frozen
    first = table.rows()[0]
    assert frozen.visualRect(first).intersects(frozen.viewport().rect())
    down = table.tree.table.verticalScrollBar()
    down.setValue(down.maximum())
    last = table.rows()[-1]
    left = frozen.visualRect(last)
    right = table.tree.table.visualRect(last.siblingAtColumn(1))
    assert (left.top(), left.height()) == (right.top(), right.height())


def test_cells_say_where_they_come_from(context, table, profile):
    profiling_of(context).add(profile)
    first = table.rows()[0]
    time = first.siblingAtColumn(column_of("time"))
    assert "measured" in time.data(Qt.ItemDataRole.ToolTipRole)
    assert time.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert "modelled" in first.siblingAtColumn(column_of("flops")).data(Qt.ItemDataRole.ToolTipRole)
    cores = first.siblingAtColumn(column_of("tensor_core"))
    assert cores.data() == "-"
    assert "Tensor Cores" in cores.data(Qt.ItemDataRole.ToolTipRole)
    assert any("features" in tip for tip in cells(table, "summary", Qt.ItemDataRole.ToolTipRole))
    assert max(cells(table, "share", HEAT)) == 1.0
    assert all("\n" in c.header for c in COLUMNS if c.value is not None and not c.whole)  # the unit is below the name


def test_values_and_shapes_are_in_the_fixed_width_font(context, table, profile):
    profiling_of(context).add(profile)
    (fonts,) = {
        tuple(row.siblingAtColumn(n).data(Qt.ItemDataRole.FontRole) for n in range(len(COLUMNS)))
        for row in table.rows()[:1]
    }
    fixed = {column.key for column, font in zip(COLUMNS, fonts, strict=True) if font is not None}
    assert fixed == {"inputs", "outputs"} | {column.key for column in COLUMNS if column.value is not None}
    assert {font for font in fonts if font is not None} == {theme.mono_font()}


def test_the_sum_of_the_rows_and_the_shares_have_one_base(context, table, profile, run):
    profiling_of(context).add(profile)
    assert sum(cells(table, "share", SORT)) == pytest.approx(100.0)
    total = sum(row.time_ms for row in run.operators)
    assert f"sum of rows {total:.0f} ms" in table.summary.text()
    assert f"{digits(100 * total / 500)} % of the run's 500 ms" in table.summary.text()


def test_the_summary_of_a_filtered_table_is_that_of_the_shown_steps(qtbot, context, table, profile, run):
    profiling_of(context).add(profile)
    whole = table.summary.text()
    rows = [row for row in run.operators if "conv" in row.type]
    assert 0 < len(rows) < len(run.operators)
    for grouping in ("", "type"):
        table.grouping.setCurrentIndex(table.grouping.findData(grouping))
        qtbot.keyClicks(table.filter, rows[0].layers[0])
        shown = [row for row in run.operators if rows[0].layers[0] in " ".join(row.layers)]
        time = sum(row.time_ms for row in shown)
        assert f"{len(shown)} of {len(run.operators)} shown" in table.summary.text()
        assert f"{digits(time)} ms ({digits(100 * time / run.rows_ms)} %)" in table.summary.text()
        table.filter.setText("no step has this")
        assert table.summary.text() == f"0 of {len(run.operators)} shown"
        table.filter.clear()
        assert table.summary.text() == whole


def test_a_fused_step_is_one_row(context, table, profile):
    profiling_of(context).add(profile)
    assert sum(" + " in name for name in cells(table, "layers")) == 1


def test_selecting_rows_selects_layers_and_back(qtbot, context, table, run, profile):
    profiling_of(context).add(profile)
    view = table.tree.table
    index = table.rows()[1]
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index.siblingAtColumn(2)).center())
    assert context.selection == table.proxy.row_of(index).layers
    assert "1 selected" in table.summary.text()
    fused = next(row for row in run.operators if len(row.layers) == 2)
    context.select((fused.layers[1],))
    assert [row.layers for row in table.selected()] == [fused.layers]
    assert context.selection == (fused.layers[1],)  # following does not extend the selection
    context.select(())
    assert table.selected() == []


@pytest.mark.parametrize("words", ["convolution enc", "memory enc", "leaky 3x3"])
def test_the_filter_looks_at_all_columns(qtbot, context, table, run, profile, words):
    profiling_of(context).add(profile)
    every = [" ".join(str(i.siblingAtColumn(c).data()) for c in range(len(COLUMNS))).lower() for i in table.rows()]
    qtbot.keyClicks(table.filter, words)
    expected = [text for text in every if all(word in text for word in words.split())]
    assert len(table.rows()) == len(expected)
    table.filter.clear()
    assert len(table.rows()) == len(run.operators)


def test_rows_are_grouped_by_type_with_their_sums(qtbot, context, table, run, profile):
    profiling_of(context).add(profile)
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    tops = [table.proxy.index(row, 0) for row in range(table.proxy.rowCount())]
    totals = {table.proxy.row_of(top).type: table.proxy.row_of(top) for top in tops}
    for kind, total in totals.items():
        members = [row for row in run.operators if row.type == kind]
        assert total.time_ms == pytest.approx(sum(row.time_ms for row in members))
        assert total.flops == sum(row.flops for row in members)
    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    table.tree.selection().select(tops[0], flags)
    assert {row.type for row in table.selected()} == {table.proxy.row_of(tops[0]).type}
    qtbot.keyClicks(table.filter, run.operators[5].layers[0])
    assert any(row.layers == run.operators[5].layers for row in map(table.proxy.row_of, table.rows()))


def test_groups_are_opened_by_the_user_and_by_a_filter_that_finds_rows_in_them(context, table, profile):
    profiling_of(context).add(profile)

    def opened() -> set[bool]:
        groups = [table.proxy.index(row, 0) for row in range(table.proxy.rowCount())]
        views = (table.tree.frozen, table.tree.table)
        return {view.isExpanded(index) for view in views for index in groups if table.proxy.hasChildren(index)}

    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    assert opened() == {False}
    table.filter.setText("conv")
    assert opened() == {True}
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    assert opened() == {True}
    table.filter.clear()
    table.grouping.setCurrentIndex(table.grouping.findData("type"))
    assert opened() == {False}


@pytest.mark.parametrize("grouping", ["", "type"])
def test_sorting_keeps_the_selection_and_sorts_inside_groups(context, table, profile, run, grouping):
    profiling_of(context).add(profile)
    table.grouping.setCurrentIndex(table.grouping.findData(grouping))
    chosen = run.operators[3]
    context.select(chosen.layers)
    for key, order in (("time", Qt.SortOrder.AscendingOrder), ("layers", Qt.SortOrder.DescendingOrder)):
        table.tree.sort_by(column_of(key), order)
        assert table.selected() == [chosen]
        assert context.selection == chosen.layers
        for parent in [QModelIndex(), *(index for index in table.rows() if table.proxy.rowCount(index))]:
            rows = [
                table.proxy.index(row, column_of(key), parent).data(SORT) for row in range(table.proxy.rowCount(parent))
            ]
            assert rows == sorted(rows, reverse=order is Qt.SortOrder.DescendingOrder)


def test_equal_values_keep_their_order(context, table, profile, run):
    profiling_of(context).add(profile)
    table.tree.sort_by(column_of("time"), Qt.SortOrder.DescendingOrder)
    table.tree.sort_by(column_of("bound"), Qt.SortOrder.AscendingOrder)
    times = [index.siblingAtColumn(column_of("time")).data(SORT) for index in table.rows()]
    half = sum(row.bound == "compute" for row in run.operators)
    assert times[:half] == sorted(times[:half], reverse=True)
    assert times[half:] == sorted(times[half:], reverse=True)


def test_a_removed_run_is_released(context, table, bars, charts, profile):
    profiling = profiling_of(context)
    profiling.add(profile)
    profiling.add(replace(profile, runs=(replace(profile.runs[0]),)))
    run = weakref.ref(profiling.entries[-1].run)
    QApplication.processEvents()
    profiling.remove(profiling.entries[-1])
    QApplication.processEvents()
    gc.collect()
    assert run() is None


def test_rows_are_grouped_by_frame(qtbot, context, table, run, profile):
    from designer.graph.frames import set_frame
    from designer.graph.model import Frame

    layer = run.operators[4].layers[0]
    x, y = context.document.graph[layer].position
    frame = Frame("f1", "Encoder", rect=(x - 5, y - 5, 20, 20))
    context.document.do(lambda graph: set_frame(graph, "f1", frame))
    profiling_of(context).add(profile)
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    tops = [table.proxy.index(row, 0) for row in range(table.proxy.rowCount())]
    assert sorted(top.data() for top in tops) == ["Encoder (1 step)", f"in no frame ({len(run.operators) - 1} steps)"]
    context.document.do(lambda graph: set_frame(graph, "f1", Frame("f1", "Decoder", rect=frame.rect)))
    wanted = ["Decoder (1 step)", f"in no frame ({len(run.operators) - 1} steps)"]
    qtbot.waitUntil(lambda: sorted(table.proxy.index(n, 0).data() for n in range(table.proxy.rowCount())) == wanted)


def test_frames_of_one_title_are_groups_of_their_own(context, table, run, profile):
    from designer.graph.frames import set_frame
    from designer.graph.model import Frame

    profiling_of(context).add(profile)
    layers = [context.document.graph[row.layers[0]] for row in run.operators if row.layers][:2]
    for number, layer in enumerate(layers):
        x, y = layer.position
        frame = Frame(f"f{number}", "Block", rect=(x - 5, y - 5, 10, 10))
        context.document.do(lambda graph, frame=frame: set_frame(graph, frame.id, frame))
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    tops = [table.proxy.index(number, 0).data() for number in range(table.proxy.rowCount())]
    assert {"Block (f0) (1 step)", "Block (f1) (1 step)"} <= set(tops)


def test_rows_are_copied_with_headers(qtbot, context, table, profile):
    profiling_of(context).add(profile)
    select_row(table, 0)
    table.tree.table.setFocus()
    qtbot.keyClick(table.tree.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(table.tree.table, Qt.Key.Key_Escape)  # Qt remembers the modifiers of the last key
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 2
    assert lines[0].split("\t")[column_of("time")] == "Time / ms"
    before = texts.take(Pseudo())
    table.copy_rows()
    texts.take(before)
    assert all(OPEN in title for title in QGuiApplication.clipboard().text().splitlines()[0].split("\t"))


def test_a_layer_that_is_gone_does_not_disturb(context, table, profile):
    from designer.graph.commands import remove_layers

    profiling_of(context).add(profile)
    gone = table.proxy.row_of(table.rows()[0]).layers
    context.document.do(lambda graph: remove_layers(graph, gone))
    select_row(table, 0)
    assert context.selection == ()


def test_many_operators_open_and_are_selected_quickly(context, table, profile, run):
    rows = tuple(replace(run.operators[2], layers=(f"layer_{n}",), time_ms=1.0 + n % 7) for n in range(3000))
    profiling_of(context).add(replace(profile, runs=(replace(run, operators=rows, peak_memory=None),)))
    assert len(table.rows()) == 3000


# --- the list of runs -------------------------------------------------------------------------------------------


@pytest.fixture
def logger(qtbot, context: Context) -> RunLoggerPanel:
    panel = RunLoggerPanel(context)
    qtbot.addWidget(panel)
    panel.resize(420, 500)
    panel.show()
    return panel


def test_runs_are_listed_and_chosen(context, logger, table, profile):
    profiling = profiling_of(context)
    profiling.add(profile)
    profiling.add(profile)
    assert logger.model.rowCount() == 2
    assert logger.chosen() == [profiling.entries[1]]
    logger.table.selectRow(0)
    assert profiling.current is profiling.entries[0]
    details = logger.details.text()
    assert "random weights (seed 0)" in details
    assert "busy machine" in details
    assert "500 ms" in details


def test_columns_of_settings_that_all_runs_share_are_hidden(context, logger, profile, run):
    def hidden():
        model = logger.model
        headers = (model.headerData(n, Qt.Orientation.Horizontal) for n in range(model.columnCount()))
        return {header for n, header in enumerate(headers) if logger.table.isColumnHidden(n)}

    profiling_of(context).add(profile)
    assert hidden() == set()
    profiling_of(context).add(replace(profile, runs=(replace(run, layout="nhwc"),)))
    assert hidden() == {"Batch", "Size", "Engine", "Precision", "Chip", "Source", "Network"}
    profiling_of(context).add(replace(profile, runs=(replace(run, source=ValueSource.MODELLED, batch=2),)))
    assert hidden() == {"Size", "Engine", "Precision", "Chip", "Network"}
    fonts = [logger.model.index(row, 1).data(Qt.ItemDataRole.FontRole) for row in range(3)]
    assert [font.italic() for font in fonts] == [False, False, True]


def test_two_runs_are_compared(context, logger, profile):
    profiling_of(context).add(profile)
    profiling_of(context).add(profile)
    logger.table.selectAll()
    assert "#2 takes 1.00 x of #1" in logger.details.text()
    before = profile.runs[0]
    slower = tuple(replace(row, time_ms=row.time_ms + 1500.0) for row in before.operators[:1])
    outside = OperatorProfile((), "", 2000.0, 0.1)
    profiling_of(context).add(
        replace(profile, runs=(replace(before, operators=(*slower, *before.operators[1:], outside)),))
    )
    profiling_of(context).compare((profiling_of(context).entries[0], profiling_of(context).entries[-1]))
    lines = logger.details.text().splitlines()
    assert lines[1:3] == ["outside of operators: +2.00 s", f"{slower[0].name}: +1.50 s"]


def test_runs_are_removed(qtbot, context, logger, profile):
    profiling = profiling_of(context)
    profiling.add(profile)
    profiling.add(profile)
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.remove"), Qt.MouseButton.LeftButton)
    assert len(profiling.entries) == 1
    assert profiling.current is profiling.entries[0]
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.remove"), Qt.MouseButton.LeftButton)
    assert profiling.current is None
    assert empty(logger).isVisibleTo(logger)


@pytest.mark.parametrize(
    ("network", "stem"),
    [("net.v2", "net_v2-torch-fp32-2026-01-02"), ("Ü/b", "b-torch-fp32-2026-01-02"), ("", "torch-fp32-2026-01-02")],
)
def test_the_proposed_file_name_has_no_dot_before_the_suffix(profile, network, stem):
    run = replace(profile.runs[0], engine="torch", precision="fp32", date="2026-01-02T03:04:05+00:00")
    assert file_stem(Entry(1, replace(profile, network=network), run)) == stem


def test_a_profile_is_saved_and_opened_by_dialogs(qtbot, context, logger, profile, tmp_path):
    profiling = profiling_of(context)
    profiling.add(profile)
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.save"), Qt.MouseButton.LeftButton)
    dialog = logger.findChild(QFileDialog, "run_logger.save_dialog")
    path = tmp_path / "run.json"
    dialog.fileSelected.emit(str(path))
    dialog.reject()
    assert json.loads(path.read_text())["schema"] == "layerwright-profile"
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.open"), Qt.MouseButton.LeftButton)
    dialog = logger.findChild(QFileDialog, "run_logger.open_dialog")
    dialog.fileSelected.emit(str(path))
    dialog.reject()
    assert [e.path for e in profiling.entries] == [None, path]
    assert profiling.entries[1].run == profile.runs[0]
    profiling.save_file(tmp_path / "run.csv", profiling.entries[0])
    assert (tmp_path / "run.csv").read_text().startswith("layers,")


def test_a_bad_profile_is_reported_and_changes_nothing(qtbot, context, logger, profile, tmp_path):
    profiling = profiling_of(context)
    profiling.add(profile)
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "other"}')
    with qtbot.waitSignal(context.message):
        assert not profiling.open_file(bad)
    assert len(profiling.entries) == 1
    assert "bad.json" in logger.status.text()
    assert "gpu-check" in logger.status.text()


def test_a_profile_with_layers_of_another_network_is_shown(context, logger, table, profile, tmp_path):
    stranger = replace(profile.runs[0].operators[0], layers=("stranger",))
    path = tmp_path / "other.json"
    save_profile(path, replace(profile, runs=(replace(profile.runs[0], operators=(stranger,), peak_memory=None),)))
    said = []
    context.message.connect(lambda kind, text: said.append(text))
    assert profiling_of(context).open_file(path)
    assert said == ["1 step of this profile is not in the open network: stranger"]
    select_row(table, 0)
    assert context.selection == ()


def test_a_file_of_gpu_check_with_two_runs_is_opened(context, logger, table, profile, tmp_path):
    machine = Machine("Test CPU", 8, "NVIDIA Test", versions={"cuda": "13.0"})
    runs = tuple(
        replace(profile.runs[0], device="cuda", precision=precision, layout=layout)
        for precision, layout in (("fp32", "nchw"), ("fp16", "nhwc"))
    )
    path = tmp_path / "gpu-test-2026-01-01.json"
    save_profile(path, replace(profile, machine=machine, runs=runs))
    assert profiling_of(context).open_file(path)
    shown = [[logger.model.index(r, c).data() for c in range(logger.model.columnCount())] for r in range(2)]
    assert ["NVIDIA Test" in row for row in shown] == [True, True]
    assert [row[5:7] for row in shown] == [["fp32", "nchw"], ["fp16", "nhwc"]]
    assert shown[0][-1] == path.name


# --- bars -------------------------------------------------------------------------------------------------------


@pytest.fixture
def bars(qtbot, context: Context) -> UtilizationPanel:
    return shown(qtbot, UtilizationPanel(context), 464, 420)


def test_bars_of_the_network_and_of_the_selection(qtbot, context, bars, profile, run):
    profiling_of(context).add(profile)
    assert bars.chart.keys == ("compute_throughput", "memory_throughput")  # a processor has no Tensor Cores
    assert bars.chart.selected is None
    total = sum(row.time_ms for row in run.operators)
    mean = sum(row.time_ms * (row.memory_throughput.value or 0.0) for row in run.operators) / total
    assert bars.chart.whole["memory_throughput"].value == pytest.approx(mean)
    context.select(run.operators[0].layers[:1])
    assert bars.chart.selected is not None
    assert bars.chart.selected["memory_throughput"].value == 10.0
    assert run.operators[0].name in bars.reasons.text()
    assert "busy machine" in bars.reasons.text()
    context.select(())
    assert bars.chart.selected is None


def test_a_gpu_has_bars_for_tensor_cores_memory_and_occupancy(context, bars, profile, run):
    rows = tuple(
        replace(
            row,
            tensor_core=measured(0.0 if "upsample" in row.type else 62.5),
            occupancy=measured(40.0),
            memory_throughput=measured(134.0),
        )
        for row in run.operators
    )
    profiling_of(context).add(replace(profile, runs=(replace(run, device="cuda", operators=rows),)))
    assert bars.chart.keys == ("tensor_core", "memory_throughput", "occupancy")
    assert bars.chart.whole["memory_throughput"].value == pytest.approx(134.0)
    upsampling = next(row for row in rows if "upsample" in row.type)
    context.select(upsampling.layers)
    assert bars.chart.selected is not None
    assert bars.chart.selected["tensor_core"].value == 0.0
    assert "0 %, measured" in bars.reasons.text()


def test_a_gpu_without_counters_has_the_modelled_bars_and_the_reason(context, bars, profile, run):
    why = "ncu was not found; install NVIDIA Nsight Compute"
    profiling_of(context).add(replace(profile, runs=(replace(run, device="cuda", counters=why),)))
    assert bars.chart.keys == ("compute_throughput", "memory_throughput")
    assert all(bars.chart.whole[key].value is not None for key in bars.chart.keys)
    assert why in bars.reasons.text()


def test_bars_follow_the_theme(qapp, context, bars, profile):
    profiling_of(context).add(profile)
    dark = bars.chart.grab().toImage()
    theme.apply(qapp, "light")
    assert bars.chart.grab().toImage() != dark
    theme.apply(qapp, "dark")


# --- charts and heat --------------------------------------------------------------------------------------------


@pytest.fixture
def charts(qtbot, context: Context) -> ChartsPanel:
    return shown(qtbot, ChartsPanel(context), 700, 400)


def test_the_roofline_has_a_point_for_each_step_with_operations(qtbot, context, charts, profile, run):
    profiling_of(context).add(profile)
    points = charts.plot().points.points()
    counted = [row for row in run.operators if row.flops]
    assert len(points) == len(counted)
    row = counted[2]
    point = next(p for p in points if run.operators[p.data()] is row)
    assert 10 ** point.pos().y() == pytest.approx(row.flops / row.time_ms * 1e3)
    assert 10 ** point.pos().x() == pytest.approx(row.flops / row.bytes)
    keys = [label.text for _, label in charts.plot().legend.items]
    assert len(keys) == len(set(keys))
    charts.plot().rows_clicked.emit([row])
    assert context.selection == row.layers
    charts.plot().redraw()
    assert [label.text for _, label in charts.plot().legend.items] == keys


def test_the_training_step_is_a_chart_with_its_verdict(context, charts, profile, run):
    profiling = profiling_of(context)
    profiling.add(profile)
    charts.tabs.setCurrentIndex([name for name, _ in PLOTS].index("training"))
    assert charts.facts.text().startswith("Launch with Training step checked")
    step = TrainingStep(
        16, 100.0, 30.0, 50.0, 5.0, 10.0, 5.0, "compute", "operations at the peak take 40 ms, bytes 9 ms"
    )
    profiling.add(replace(profile, runs=(replace(run, training=step),)))
    assert "compute-bound: operations at the peak take 40 ms" in charts.facts.text()
    assert "backward 50.0 ms" in charts.facts.text()
    (bars,) = (item for item in charts.plot().listDataItems() if item.opts.get("width") is not None)
    assert bars.opts["width"] == [10.0, 30.0, 50.0, 5.0, 5.0]


def test_a_click_in_the_timeline_selects_the_step(qtbot, context, charts, table, profile, run):
    profiling_of(context).add(profile)
    charts.tabs.setCurrentIndex(1)
    plot = charts.plot()
    bar = max(plot.bars.bars, key=lambda b: b.rect.width())
    place = plot.mapFromScene(plot.getViewBox().mapViewToScene(bar.rect.center()))
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert context.selection == run.operators[bar.row].layers
    assert [row.layers for row in table.selected()] == [run.operators[bar.row].layers]


def test_the_memory_plot_names_the_peak_and_what_exists_then(context, charts, profile, run):
    profiling_of(context).add(profile)
    charts.tabs.setCurrentIndex(2)
    assert "2.00 MiB" in charts.facts.text()
    assert run.operators[3].name in charts.facts.text()
    assert next(iter(run.peak_memory.tensors)) in charts.facts.text()
    assert charts.plot().row_at(0.5) == 0


@pytest.mark.parametrize(
    ("number", "suffix"), [(0, "svg"), (0, "pdf"), *((number, "png") for number in range(len(PLOTS)))]
)
def test_every_chart_is_saved(qtbot, context, charts, profile, tmp_path, number, suffix):
    profiling_of(context).add(profile)
    charts.tabs.setCurrentIndex(number)
    charts.save()
    path = tmp_path / f"chart.{suffix}"
    dialog = charts.findChild(QFileDialog, "charts.save_dialog")
    dialog.fileSelected.emit(str(path))
    dialog.reject()
    assert path.read_bytes().startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])


def test_a_chart_with_another_suffix_is_refused(context, charts, profile, tmp_path, qtbot):
    profiling_of(context).add(profile)
    charts.save()
    with qtbot.waitSignal(context.message) as said:
        charts.findChild(QFileDialog, "charts.save_dialog").fileSelected.emit(str(tmp_path / "chart.xyz"))
    assert "'chart.xyz' is not a .png, .svg or .pdf file" in said.args[1]


def test_heat_adds_up_what_an_instance_contains(run):
    rows = (
        replace(run.operators[0], layers=("group.a",), time_ms=2.0, roof_ms=1.0),
        replace(run.operators[1], layers=("group.b",), time_ms=3.0, roof_ms=1.0),
        replace(run.operators[2], layers=("other",), time_ms=1.0, roof_ms=None),
    )
    part = replace(run, operators=rows, peak_memory=None)
    found = heat(part, METRICS["time"], lambda path: path.partition(".")[0])
    assert found.values == {"group": pytest.approx(5e-3), "other": pytest.approx(1e-3)}
    assert found.text(found.values["group"]) == "5.00 ms"
    assert found.share("other") == pytest.approx(0.2)
    distance = heat(part, METRICS["roof"], lambda path: path.partition(".")[0])
    assert distance.values == {"group": 3.0}  # a distance is not a sum


def test_the_critical_path_is_the_longest_chain_of_dependent_layers(context, run):
    from itertools import pairwise

    graph = context.document.graph
    path = critical_path(run, graph)
    for before, after in pairwise(path):
        assert any(source is not None and source.layer == before for source in graph[after].inputs) or any(
            {before, after} <= set(row.layers) for row in run.operators
        )
    time_of = {layer: row.time_ms for row in run.operators for layer in row.layers if len(row.layers) == 1}

    def longest(name: str) -> float:
        ends = [longest(source.layer) for source in graph[name].inputs if source is not None]
        return time_of.get(name, 0.0) + max(ends, default=0.0)

    total = max(longest(layer.name) for layer in graph)
    assert sum(time_of.get(name, 0.0) for name in path) >= total - run.operators[0].time_ms


def test_plotting_is_imported_only_when_a_chart_is_shown():
    code = """
import sys
from PySide6.QtWidgets import QApplication
app = QApplication([])
from app.ui.engine.context import Context
from designer.operators.registry import load
context = Context(load(entry_points=False))
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.utilization import UtilizationPanel
from app.ui.profile.charts import ChartsPanel
panels = [p(context) for p in (RunLoggerPanel, OperatorTablePanel, UtilizationPanel, ChartsPanel)]
assert not {"matplotlib", "pyqtgraph", "torch", "onnx", "onnxruntime"} & set(sys.modules), sorted(sys.modules)
panels[-1].show()
assert "pyqtgraph" not in sys.modules
while "app.ui.profile.plots" not in sys.modules:  # without a run
    app.processEvents()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"QT_QPA_PLATFORM": "offscreen", "HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_widget_has_its_names(logger, table, bars, charts):
    from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QLineEdit, QSpinBox

    for panel in (logger, table, bars, charts):
        for kind in (QAbstractButton, QAbstractItemView, QLineEdit, QSpinBox):
            for widget in panel.findChildren(kind):
                if widget.isVisibleTo(panel) and not widget.objectName().startswith("qt_") and widget.objectName():
                    assert widget.accessibleName() or widget.objectName().endswith("empty.action")


def test_panels_work_without_a_document(qtbot, profiling_operators):
    empty = Context(profiling_operators)
    for cls in (RunLoggerPanel, OperatorTablePanel, UtilizationPanel, ChartsPanel):
        panel = cls(empty)
        qtbot.addWidget(panel)
        panel.show()
    profiling_of(empty).launch()
    assert profiling_of(empty).state is State.IDLE


# --- comparing runs and sweeps ----------------------------------------------------------------------------------


def test_two_selected_runs_are_compared_step_by_step(qtbot, context, logger, table, profile, run):
    panel = RunDifferencesPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    assert empty(panel).isVisibleTo(panel)
    rows = (
        replace(run.operators[0], time_ms=9.0),
        replace(run.operators[1], time_ms=2.01),
        *run.operators[2:14],
        replace(run.operators[14], time_ms=3.0),
        *run.operators[15:],
    )
    profiling_of(context).add(profile)
    profiling_of(context).add(replace(profile, runs=(replace(run, operators=rows, time_ms=508.0),)))
    logger.table.selectAll()
    shown = {
        panel.proxy.index(row, 0).data(): [panel.proxy.index(row, column).data() for column in range(1, 6)]
        for row in range(panel.proxy.rowCount())
    }
    assert shown[run.operators[0].name][:3] == ["1.00", "9.00", "+8.00"]
    assert shown[run.operators[0].name][4] == "slower"
    assert shown[run.operators[1].name][4] == "none"  # within the noise of 0.1 ms
    bars = [panel.proxy.index(row, 3).data(HEAT) for row in range(panel.proxy.rowCount())]
    assert bars[:2] == pytest.approx([-1.0, 8 / 12])  # the largest difference is first, in either direction
    assert not any(bars[2:])  # differences within the noise have no bar
    assert "500 ms" in panel.summary.text()
    assert "508 ms" in panel.summary.text()
    panel.tree.selection().select(
        panel.proxy.index(1, 0),
        QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows,
    )
    assert context.selection == run.operators[0].layers
    logger.table.selectRow(0)
    assert empty(panel).isVisibleTo(panel)


def test_runs_at_several_batches_are_a_sweep(context, charts, profile, run, tmp_path):
    runs = tuple(
        replace(run, batch=batch, time_ms=time) for batch, time in ((1, 10.0), (2, 12.0), (4, 14.0), (8, 28.0))
    )
    profiling_of(context).add(replace(profile, runs=runs))
    charts.tabs.setCurrentIndex(4)
    assert "knee at batch 4 with 286 images/s" in charts.facts.text()
    curves = charts.plot().getPlotItem().listDataItems()
    assert list(curves[0].xData) == [1, 2, 4, 8]
    assert curves[0].yData[0] == pytest.approx(100.0)
    scale = charts.plot().getAxis("right").scale  # of the right axis, which has the latencies
    assert [value * scale for value in curves[1].yData] == pytest.approx([10.0, 12.0, 14.0, 28.0])
    profiling_of(context).add(replace(profile, runs=(replace(run, size="512x512", time_ms=30.0),)))
    charts.tabs.setCurrentIndex(5)
    assert "knee at size 512x512" in charts.facts.text()


@pytest.mark.parametrize(("time", "size"), [(SMALLEST, "1x1"), (LARGEST, "9999999999x9999999999"), (0.0, "?")])
def test_extreme_numbers_of_a_file_are_shown(qtbot, context, charts, table, bars, profile, run, time, size):
    first = replace(run.operators[0], time_ms=time, flops=10**18, bytes=1, roof_ms=SMALLEST)
    peaks = RunPeaks(measured(SMALLEST), measured(LARGEST), measured(SMALLEST))
    extreme = replace(run, time_ms=time, size=size, operators=(first,), peaks=peaks, peak_memory=None)
    profiling_of(context).add(replace(profile, runs=(run, replace(extreme, batch=int(LARGEST)), extreme)))
    for number in range(len(PLOTS)):
        charts.tabs.setCurrentIndex(number)
        for panel in (charts, table, bars):
            assert not panel.grab().isNull()


def test_a_bad_batch_is_reported_before_anything_runs(qtbot, context, logger):
    qtbot.keyClicks(logger.batches, "1,x")
    qtbot.keyClick(logger.batches, Qt.Key.Key_Return)
    assert profiling_of(context).state is State.FAILED
    assert "'1,x' cannot be read" in logger.status.text()
    assert "1,4,16" in logger.status.text()
    logger.batches.clear()
    qtbot.keyClicks(logger.engines, "steam")
    qtbot.keyClick(logger.engines, Qt.Key.Key_Return)
    assert "Engine 'steam' cannot be read" in logger.status.text()
    assert "onnxruntime" in logger.status.text()


def test_heat_of_a_difference_is_signed_and_noise_is_zero(run):
    from designer.profiling.difference import difference
    from designer.profiling.heat import difference_heat

    slower = replace(run.operators[2], time_ms=run.operators[2].time_ms + 4.0)
    faster = replace(run.operators[6], time_ms=run.operators[6].time_ms - 2.0)
    rows = (*run.operators[:2], slower, *run.operators[3:6], faster, *run.operators[7:])
    found = difference_heat(difference(run, replace(run, operators=rows)))
    assert found.values[slower.layers[0]] == pytest.approx(4e-3)
    assert found.share(faster.layers[0]) == pytest.approx(-0.5)
    assert found.values[run.operators[4].layers[0]] == 0.0
    assert found.text(found.values[slower.layers[0]]) == "+4.00 ms"
    assert found.text(found.values[faster.layers[0]]) == "-2.00 ms"
