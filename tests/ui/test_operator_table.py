"""The profiling panels with records, as a person uses them: table, bars, list of runs, files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QToolButton
from window_kit import empty

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import State, profiling_of
from app.ui.profile.columns import COLUMNS
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.table_model import HEAT, SORT
from app.ui.profile.utilization import UtilizationPanel
from app.ui.widgets import theme
from designer.files.document import read_document
from designer.operators.registry import load
from designer.profiling.assemble import Run, assemble
from designer.profiling.cost import cost_table
from designer.profiling.figures import measured
from designer.profiling.machine import Machine
from designer.profiling.peaks import Peaks
from designer.profiling.report import Record, save_records
from designer.runtime.engine_api import Sample

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
def record(context: Context) -> Record:
    """A record with made-up times: the n-th layer takes n milliseconds; two layers ran as one."""
    table = cost_table(context.document.inference)
    names = [n for n, row in table.rows.items() if row.sources and row.type != "output"]
    samples = [Sample((n,), [i * 1e-3, i * 1e-3], "Conv") for i, n in enumerate(names[2:], 1)]
    samples.append(Sample(tuple(names[:2]), [0.1, 0.1], "Conv, Add"))
    peaks = Peaks(
        measured(100e9, "FLOP/s"),
        measured(80e9, "B/s"),
        measured(20e9, "B/s"),
        1 << 20,
        measured(60.0, "%"),
        "2026-01-01T00:00:00+00:00",
        "onnxruntime",
        "fp32",
        2,
    )
    options = {"engine": "onnxruntime", "precision": "fp32", "layout": "nchw", "device": "cpu", "threads": "2"}
    run = Run("denoiser", options, 2, 1, {"input_image": "1 x 3 x 256 x 256"}, "random weights (seed 0)")
    return assemble(table, samples, [0.5, 0.5], peaks, Machine("Test CPU", 2), run)


@pytest.fixture
def table(qtbot, context: Context) -> OperatorTablePanel:
    panel = OperatorTablePanel(context)
    qtbot.addWidget(panel)
    panel.resize(1100, 320)
    panel.show()
    return panel


def column_(key: str) -> int:
    return next(i for i, column in enumerate(COLUMNS) if column.key == key)


def test_without_a_run_the_panel_says_what_fills_it(qtbot, context, table):
    assert empty(table).isVisibleTo(table)
    with qtbot.waitSignal(context.inference_requested):
        qtbot.mouseClick(table.findChild(QPushButton, "operator_table.empty.action"), Qt.MouseButton.LeftButton)


def test_rows_are_sorted_by_saving_and_by_value(qtbot, context, table, record):
    profiling_of(context).add(record)
    saving = [table.proxy.index(r, column_("saving")).data(SORT) for r in range(table.proxy.rowCount())]
    assert saving == sorted(saving, reverse=True)
    header = table.table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(column_("time")) + 10, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    times = [table.proxy.index(r, column_("time")).data(SORT) for r in range(table.proxy.rowCount())]
    assert times in (sorted(times), sorted(times, reverse=True))
    assert len(set(times)) > 5


def test_cells_say_where_they_come_from(context, table, record):
    profiling_of(context).add(record)
    cell = table.proxy.index(0, column_("time"))
    assert "measured" in cell.data(Qt.ItemDataRole.ToolTipRole)
    assert cell.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert table.proxy.index(0, column_("compute_rate")).data().startswith("~")
    cores = table.proxy.index(0, column_("tensor_cores"))
    assert cores.data() == "-"
    assert "Tensor Cores" in cores.data(Qt.ItemDataRole.ToolTipRole)
    assert "features" in table.proxy.index(0, column_("summary")).data(Qt.ItemDataRole.ToolTipRole)
    assert max(table.proxy.index(r, column_("share")).data(HEAT) for r in range(table.proxy.rowCount())) == 1.0
    assert all("\n" in c.header for c in COLUMNS if c.figure is not None)  # the unit stands under the name


def test_a_fused_step_is_one_row(context, table, record):
    profiling_of(context).add(record)
    names = [table.proxy.index(r, 0).data() for r in range(table.proxy.rowCount())]
    assert sum(" + " in n for n in names) == 1


def test_selecting_rows_selects_layers_and_back(qtbot, context, table, record):
    profiling_of(context).add(record)
    view = table.table
    place = view.visualRect(table.proxy.index(1, 0)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert context.selection == table.proxy.group_at(1).layers
    assert "1 selected" in table.summary.text()
    fused = next(g for g in record.groups if len(g.layers) == 2)
    context.select((fused.layers[1],))
    assert [g.layers for g in table.selected()] == [fused.layers]
    assert context.selection == (fused.layers[1],)  # following does not widen the person's selection
    context.select(())
    assert table.selected() == []


def test_filter(qtbot, context, table, record):
    profiling_of(context).add(record)
    qtbot.keyClicks(table.filter, "convolution enc")
    names = [table.proxy.index(r, 0).data() for r in range(table.proxy.rowCount())]
    assert names
    assert all("enc" in n for n in names)
    table.filter.clear()
    assert table.proxy.rowCount() == len(record.groups)


def test_rows_are_copied_with_headers(qtbot, context, table, record):
    profiling_of(context).add(record)
    table.table.selectRow(0)
    table.table.setFocus()
    table.copy_rows()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 2
    assert lines[0].split("\t")[column_("time")] == "Time / ms"


def test_a_layer_that_is_gone_does_not_disturb(context, table, record):
    from designer.graph.commands import remove_layers

    profiling_of(context).add(record)
    gone = table.proxy.group_at(0).layers
    context.document.do(lambda graph: remove_layers(graph, gone))
    table.table.selectRow(0)
    assert context.selection == ()


# --- the list of runs -------------------------------------------------------------------------------------------


@pytest.fixture
def logger(qtbot, context: Context) -> RunLoggerPanel:
    panel = RunLoggerPanel(context)
    qtbot.addWidget(panel)
    panel.resize(420, 500)
    panel.show()
    return panel


def test_runs_are_listed_and_chosen(context, logger, table, record):
    profiling = profiling_of(context)
    profiling.add(record)
    profiling.add(record)
    assert logger.model.rowCount() == 2
    assert logger.chosen() == [profiling.entries[1]]
    logger.table.selectRow(0)
    assert profiling.current is profiling.entries[0]
    details = logger.details.text()
    assert "random weights (seed 0)" in details
    assert "busy machine" in details
    assert "500 ms" in details


def test_two_runs_are_compared(context, logger, record):
    profiling_of(context).add(record)
    profiling_of(context).add(record)
    logger.table.selectAll()
    assert "#2 takes 1.00 x of #1" in logger.details.text()


def test_runs_are_removed(qtbot, context, logger, record):
    profiling = profiling_of(context)
    profiling.add(record)
    profiling.add(record)
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.remove"), Qt.MouseButton.LeftButton)
    assert len(profiling.entries) == 1
    assert profiling.current is profiling.entries[0]
    qtbot.mouseClick(logger.findChild(QToolButton, "run_logger.remove"), Qt.MouseButton.LeftButton)
    assert profiling.current is None
    assert empty(logger).isVisibleTo(logger)


def test_a_record_is_saved_and_opened_by_dialogs(qtbot, context, logger, record, tmp_path):
    profiling = profiling_of(context)
    profiling.add(record)
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
    assert profiling.entries[1].record == record
    profiling.save_file(tmp_path / "run.csv", profiling.entries[0])
    assert (tmp_path / "run.csv").read_text().startswith("layers,")


def test_a_bad_record_is_told_and_changes_nothing(qtbot, context, logger, record, tmp_path):
    profiling = profiling_of(context)
    profiling.add(record)
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "other"}')
    with qtbot.waitSignal(context.message):
        assert not profiling.open_file(bad)
    assert len(profiling.entries) == 1
    assert "bad.json" in logger.status.text()
    assert "gpu-check" in logger.status.text()


def test_a_record_with_layers_of_another_network_is_shown(context, logger, table, record, tmp_path):
    from dataclasses import replace

    other = replace(record, groups=(replace(record.groups[0], layers=("stranger",)),))
    path = tmp_path / "other.json"
    save_records(path, [other])
    assert profiling_of(context).open_file(path)
    table.table.selectRow(0)
    assert context.selection == ()


def test_a_file_of_gpu_check_with_two_runs_is_opened(context, logger, table, record, tmp_path):
    from dataclasses import replace

    machine = Machine("Test CPU", 8, "NVIDIA Test", versions={"cuda": "13.0"})
    runs = [
        replace(record, machine=machine, options={**record.options, "device": "cuda", "precision": p, "layout": layout})
        for p, layout in (("fp32", "nchw"), ("fp16", "nhwc"))
    ]
    path = tmp_path / "gpu-test-2026-01-01.json"
    save_records(path, runs)
    assert profiling_of(context).open_file(path)
    shown = [[logger.model.index(r, c).data() for c in range(logger.model.columnCount())] for r in range(2)]
    assert ["NVIDIA Test" in row for row in shown] == [True, True]
    assert [row[6:8] for row in shown] == [["fp32", "nchw"], ["fp16", "nhwc"]]
    assert shown[0][-1] == path.name


# --- bars -------------------------------------------------------------------------------------------------------


@pytest.fixture
def bars(qtbot, context: Context) -> UtilizationPanel:
    panel = UtilizationPanel(context)
    qtbot.addWidget(panel)
    panel.resize(464, 420)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def words_of(panel: UtilizationPanel) -> list[str]:
    axes = panel.chart.plot.axes[0]
    return [t.get_text().strip() for t in axes.texts]


def test_bars_of_the_network_and_of_the_selection(qtbot, context, bars, record):
    profiling_of(context).add(record)
    assert words_of(bars).count("unavailable") == 2
    assert sum(w.endswith("modelled") for w in words_of(bars)) == 2
    assert "only NVIDIA GPUs have Tensor Cores" in bars.reasons.text()
    context.select(record.groups[0].layers[:1])
    qtbot.waitUntil(lambda: words_of(bars).count("unavailable") == 4)
    assert len(bars.chart.plot.axes[0].patches) == 4
    assert record.groups[0].name in bars.reasons.text()
    assert "busy machine" in bars.reasons.text()
    context.select(())
    qtbot.waitUntil(lambda: len(bars.chart.plot.axes[0].patches) == 2)


def test_measured_bars_are_filled_and_above_the_peak_is_shown(context, bars, record):
    from dataclasses import replace

    figures = {**record.utilisation, "tensor_cores": measured(62.5, "%"), "memory": measured(134.0, "%")}
    profiling_of(context).add(replace(record, utilisation=figures))
    assert "62.5 % measured" in words_of(bars)
    assert "134 % measured" in words_of(bars)
    widths = [p.get_width() for p in bars.chart.plot.axes[0].patches]
    assert 134.0 in widths
    hatches = [p.get_hatch() for p in bars.chart.plot.axes[0].patches]
    assert sorted(h or "" for h in hatches) == ["", "", "////"]


def test_bars_follow_the_theme(qapp, context, bars, record):
    profiling_of(context).add(record)
    dark = bars.chart.plot.get_facecolor()
    theme.apply(qapp, "light")
    assert bars.chart.plot.get_facecolor() != dark
    theme.apply(qapp, "dark")


def test_matplotlib_is_imported_only_when_bars_are_shown():
    code = """
import sys
from PySide6.QtWidgets import QApplication
app = QApplication([])
from app.ui.engine.context import Context
from designer.operators.registry import load
context = Context(load(entry_points=False))
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.utilization import UtilizationPanel
panels = [p(context) for p in (RunLoggerPanel, OperatorTablePanel, UtilizationPanel)]
assert not {"matplotlib", "torch", "onnx", "onnxruntime"} & set(sys.modules), sorted(sys.modules)
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


def test_every_widget_has_its_names(logger, table, bars):
    from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QLineEdit, QSpinBox

    for panel in (logger, table, bars):
        for kind in (QAbstractButton, QAbstractItemView, QLineEdit, QSpinBox):
            for widget in panel.findChildren(kind):
                if widget.isVisibleTo(panel) and not widget.objectName().startswith("qt_") and widget.objectName():
                    assert widget.accessibleName() or widget.objectName().endswith("empty.action")


def test_panels_work_without_a_document(qtbot, profiling_operators):
    empty = Context(profiling_operators)
    for cls in (RunLoggerPanel, OperatorTablePanel, UtilizationPanel):
        panel = cls(empty)
        qtbot.addWidget(panel)
        panel.show()
    profiling_of(empty).launch()
    assert profiling_of(empty).state is State.IDLE


def test_selection_flags_used_by_the_table_select_whole_rows(context, table, record):
    profiling_of(context).add(record)
    flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    table.table.selectionModel().select(table.proxy.index(0, 3), flags)
    assert len(table.selected()) == 1
