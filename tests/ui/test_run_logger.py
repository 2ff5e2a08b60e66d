"""Launch Inference with the real engine process: from the button to the table and the bars."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import State, profiling_of
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.widgets import theme
from app.ui.widgets.notice import Notice
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import load

pytestmark = pytest.mark.gui
PATIENCE = 60_000


def small_network(broken: bool = False) -> Graph:
    return Graph(
        [
            Layer("picture", "input", params={"dims": "16x16x3"}),
            Layer(
                "conv",
                "convolution",
                inputs=(Source("picture"),),
                params={"features": "4", "kernel": "3x3"},
                activation=ActivationSpec("relu", {"alpha": "0.0"}),
            ),
            Layer("pool", "pooling", inputs=() if broken else (Source("conv"),), params={"operation": "max"}),
            Layer("result", "output", inputs=(Source("pool"),)),
        ],
        name="small",
    )


def random_document(context: Context) -> Document:
    """The small network, for which random weights were agreed to."""
    document = Document(small_network(), context.registry, parent=context)
    document.change_settings(random_seed=0)
    return document


@pytest.fixture
def run_context(qapp: QApplication) -> Iterator[Context]:
    theme.apply(qapp, "dark")
    registry = load(entry_points=False)
    context = Context(registry)
    context.set_document(random_document(context))
    yield context
    if context.engine is not None:
        context.engine.close()


@pytest.fixture
def run_panel(qtbot, run_context: Context) -> RunLoggerPanel:
    panel = RunLoggerPanel(run_context)
    qtbot.addWidget(panel)
    panel.show()
    return panel


def test_a_run_from_the_button_to_the_table(qtbot, run_context, run_panel):
    table = OperatorTablePanel(run_context)
    qtbot.addWidget(table)
    table.show()
    profiling = profiling_of(run_context)
    run_panel.iterations.setValue(3)
    with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
        qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
        assert profiling.running
        assert run_panel.launch.text() == "Stop"
    entry = profiling.entries[0]
    run = entry.run
    assert entry.profile.network == "small"
    assert run.iterations == 3
    assert run.engine == "onnxruntime"
    assert run.weights == "random weights (seed 0)"
    assert {name for row in run.operators for name in row.layers} == {"conv", "pool"}
    assert run.time_ms > 0
    assert run.rows_ms == pytest.approx(run.time_ms, rel=0.05)
    assert table.proxy.rowCount() == len(run.operators)
    assert run_panel.launch.text() == "Launch Inference"
    assert run_panel.model.index(0, 9).data() == "small"
    # a second one in the engine that is running now
    with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
        run_context.inference_requested.emit()
    assert len(profiling.entries) == 2


def test_iterations_are_the_documents_setting(run_context, run_panel):
    assert run_panel.iterations.value() == run_context.document.settings.iterations
    run_context.document.change_settings(iterations=7)
    assert run_panel.iterations.value() == 7
    run_panel.iterations.setValue(9)
    assert run_context.document.settings.iterations == 9
    run_context.set_document(Document(small_network(), run_context.registry, parent=run_context))
    assert run_panel.iterations.value() == 10
    assert run_context.document.settings.iterations == 10


def test_the_settings_of_the_document_are_used(qtbot, run_context, run_panel):
    run_context.document.change_settings(engine="torch", layout="nhwc", threads=1, random_seed=5, iterations=2)
    qtbot.keyClicks(run_panel.engines, "onnxruntime")
    qtbot.keyClicks(run_panel.layouts, "nchw")
    with qtbot.waitSignal(profiling_of(run_context).current_changed, timeout=PATIENCE):
        qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    run = profiling_of(run_context).entries[0].run
    assert (run.engine, run.layout, run.threads) == ("torch", "nhwc", 1)
    assert run.weights == "random weights (seed 5)"
    assert run.iterations == 2
    runs = [entry.run for entry in profiling_of(run_context).entries]
    assert [(run.engine, run.layout) for run in runs] == [
        ("torch", "nhwc"),
        ("torch", "nchw"),
        ("onnxruntime", "nhwc"),
        ("onnxruntime", "nchw"),
    ]
    assert len({run.turns for run in runs}) == 1


def test_two_networks_of_this_session_are_measured_again_in_turns(qtbot, run_context, run_panel, tmp_path):
    from designer.graph.commands import set_params

    panel = RunDifferencesPanel(run_context)
    qtbot.addWidget(panel)
    panel.show()
    profiling, document = profiling_of(run_context), run_context.document
    document.change_settings(iterations=4)
    for features in ("4", "8"):
        document.do(lambda graph, features=features: set_params(graph, {"conv": {"features": features}}))
        with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
            profiling.launch()
    run_panel.table.selectAll()
    assert profiling.compared == tuple(profiling.entries)
    assert panel.again.isEnabled()
    with qtbot.waitSignal(profiling.entries_changed, timeout=PATIENCE):
        qtbot.mouseClick(panel.again, Qt.MouseButton.LeftButton)
        assert profiling.running
        assert not panel.again.isEnabled()
    first, second, *again = profiling.entries
    assert [entry.run.flops for entry in again] == [first.run.flops, second.run.flops]
    assert again[0].run.turns == again[1].run.turns != ""
    assert profiling.compared == tuple(again)
    assert run_panel.chosen() == again
    assert "not measured in turns" not in profiling.difference().doubt
    assert document.graph["conv"].params["features"] == "8"
    profiling.save_file(tmp_path / "run.json", second)
    assert profiling.open_file(tmp_path / "run.json")
    profiling.compare((first, profiling.entries[-1]))
    assert not panel.again.isEnabled()
    assert panel.again.toolTip() == "#5 was not measured in this session."


def test_profiling_between_two_analyses_disturbs_neither(qtbot, run_context, run_panel, tmp_path):
    from app.ui.engine.analysis import analysis_of
    from designer.graph.commands import set_params
    from designer.runtime.images import write_image

    picture = tmp_path / "picture.png"
    write_image(picture, np.random.default_rng(0).random((1, 3, 16, 16), np.float32))
    run_context.document.change_settings(random_seed=0, iterations=1)
    analysis = analysis_of(run_context)
    analysis.inputs.set_file("picture", picture)
    with qtbot.waitSignal(analysis.result_changed, timeout=PATIENCE):
        analysis.launch()
    with qtbot.waitSignal(profiling_of(run_context).current_changed, timeout=PATIENCE):
        run_context.inference_requested.emit()
    run = profiling_of(run_context).entries[0].run
    assert not any("noise" in note for note in run.notes)  # the picture of the analysis was used
    with qtbot.waitSignal(analysis.result_changed, timeout=PATIENCE):
        run_context.document.do(lambda graph: set_params(graph, {"conv": {"features": "5"}}))
    assert analysis.result is not None


def test_stop_kills_the_run_and_the_next_one_works(qtbot, run_context, run_panel):
    profiling = profiling_of(run_context)
    run_panel.iterations.setValue(1200)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: run_context.engine.running, timeout=PATIENCE)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    assert profiling.state is State.IDLE
    assert "Stopped" in run_panel.status.text()
    assert not profiling.entries
    run_panel.iterations.setValue(1)
    with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
        qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    assert len(profiling.entries) == 1


def test_missing_weights_are_never_filled_in_silence(qtbot, run_context, run_panel, tmp_path, monkeypatch):
    profiling = profiling_of(run_context)
    run_context.document.change_settings(random_seed=None, iterations=1)
    notice, random = (
        run_panel.findChild(Notice, "run_logger.notice"),
        run_panel.findChild(QPushButton, "run_logger.notice.random"),
    )
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: profiling.state is State.WEIGHTS, timeout=PATIENCE)
    assert "2 weights are missing" in notice.text
    assert random.isVisible()
    assert not run_panel.status.isVisible()
    assert run_panel.launch.text() == "Launch Inference"
    with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
        qtbot.mouseClick(random, Qt.MouseButton.LeftButton)
    assert not notice.isVisible()
    assert run_context.document.settings.random_seed == 0
    assert profiling.entries[0].run.weights == "random weights (seed 0)"
    # the other way out: a folder that holds them
    run_context.document.change_settings(random_seed=None)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: profiling.state is State.WEIGHTS, timeout=PATIENCE)
    np.save(tmp_path / "conv_kernel.npy", np.ones((4, 3, 3, 3), np.float32))
    np.save(tmp_path / "conv_bias.npy", np.ones(4, np.float32))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *a, **k: str(tmp_path))
    with qtbot.waitSignal(profiling.current_changed, timeout=PATIENCE):
        qtbot.mouseClick(run_panel.findChild(QPushButton, "run_logger.notice.weights"), Qt.MouseButton.LeftButton)
    assert profiling.entries[1].run.weights == ""
    assert run_context.document.settings.weights == str(tmp_path)
    run_context.document.change_settings(weights="")
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: profiling.state is State.WEIGHTS, timeout=PATIENCE)
    run_context.set_document(random_document(run_context))
    assert profiling.state is State.IDLE
    assert not notice.isVisible()


def test_a_network_that_cannot_run_is_told_with_its_remedy(qtbot, run_context, run_panel):
    registry = run_context.registry
    run_context.set_document(Document(small_network(broken=True), registry, parent=run_context))
    profiling = profiling_of(run_context)
    with qtbot.waitSignal(run_context.message, timeout=PATIENCE) as reported:
        qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    assert reported.args[0] == "error"
    assert profiling.state is State.FAILED
    assert "pool" in run_panel.status.text()
    assert not profiling.entries
    assert run_panel.launch.text() == "Launch Inference"


def test_a_stopped_run_keeps_what_was_measured(qtbot, run_context, run_panel):
    profiling = profiling_of(run_context)
    run_panel.iterations.setValue(1200)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(profiling.partial_file.exists, timeout=PATIENCE)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    assert [bool(entry.run.partial) for entry in profiling.entries] == [True]
    assert {name for row in profiling.entries[0].run.operators for name in row.layers} <= {"conv", "pool"}
    assert "partial" in run_panel.details.text()
    assert not profiling.partial_file.exists()


def test_a_killed_engine_leaves_what_was_measured(qtbot, run_context, run_panel):
    from app.ui.engine.analysis import analysis_of

    profiling = profiling_of(run_context)
    run_panel.iterations.setValue(1200)
    qtbot.mouseClick(run_panel.launch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(profiling.partial_file.exists, timeout=PATIENCE)
    with qtbot.waitSignal(profiling.entries_changed, timeout=PATIENCE):
        os.kill(analysis_of(run_context).engine.pid, signal.SIGKILL)
    assert profiling.entries[0].run.partial
    assert profiling.state is State.FAILED
