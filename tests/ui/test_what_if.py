"""The What If panel with the real engine: predictions from data sheets, and the memory of a training step."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.what_if_panel import WhatIfPanel
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import Profile, ProfileRun
from designer.units import digits

pytestmark = pytest.mark.gui
PATIENCE = 60_000


@pytest.fixture
def context(qapp):
    registry = load(entry_points=False)
    made = Context(registry)
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "32x32x3"}),
            Layer("conv", "convolution", params={"features": "16"}, inputs=(Source("image"),)),
            Layer("result", "output", inputs=(Source("conv"),)),
        ],
        name="small",
    )
    made.set_document(Document(graph, registry, parent=made))
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def panel(qtbot, context) -> WhatIfPanel:
    made = WhatIfPanel(context)
    qtbot.addWidget(made)
    made.resize(340, 500)
    made.show()
    return made


def predict(qtbot, context, panel) -> None:
    with qtbot.waitSignal(profiling_of(context).entries_changed, timeout=PATIENCE):
        qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)


def test_another_machine_is_predicted_and_marked_modelled(qtbot, context, panel):
    panel.machine.setCurrentText("H100")
    panel.precision.setCurrentIndex(panel.precision.findData("fp16"))
    panel.batch.setValue(4)
    panel.size_.setText("64x48")
    predict(qtbot, context, panel)
    run = profiling_of(context).entries[0].run
    assert (run.device, run.precision, run.batch, run.size) == ("H100", "fp16", 4, "64x48")
    assert run.source is ValueSource.MODELLED
    assert "H100, FP16, batch 4, 64x48" in panel.result.text()
    assert "modelled" in panel.result.text()
    assert panel.predict.isEnabled()


def test_the_prediction_names_the_machine_that_was_asked_about(qtbot, context, panel):
    panel.machine.setCurrentText("H100")
    with qtbot.waitSignal(profiling_of(context).entries_changed, timeout=PATIENCE):
        qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
        panel.machine.setCurrentText("T4")
        panel.batch.setValue(9)
    assert panel.result.text().startswith("H100, FP32, batch 1, 32x32")


def test_a_prediction_is_compared_with_a_measured_run_of_the_same_size(qtbot, context, panel):
    def measured_run(size, time_ms):
        run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, size, time_ms, 0.1, ())
        profiling_of(context).add(Profile(Machine("a processor", 2), context.document.graph.name, (run,)))

    panel.machine.setCurrentText("H100")
    panel.size_.setText("64x48")
    measured_run("128x96", 9.0)
    predict(qtbot, context, panel)
    assert "images per second" not in panel.result.text()
    measured_run("64x48", 5.0)
    measured_run("32x32", 1.0)
    predict(qtbot, context, panel)  # run #5, after the prediction #2
    factor = 5.0 / profiling_of(context).entries[-1].run.time_ms
    assert f"{digits(factor)} x the images per second of run #3 (measured)" in panel.result.text()


def test_the_memory_of_a_training_step_adds_up(qtbot, context, panel):
    panel.machine.setCurrentText("A100")
    predict(qtbot, context, panel)
    rows = {
        panel.memory.topLevelItem(i).text(0): panel.memory.topLevelItem(i)
        for i in range(panel.memory.topLevelItemCount())
    }
    learned = (3 * 9 * 16 + 16) * 4
    shown = [rows["conv"].text(column) for column in range(2, 6)]
    assert shown == [f"{learned / 1024:.2f} KiB"] * 2 + [f"{2 * learned / 1024:.2f} KiB", "64.0 KiB"]


def test_a_prediction_is_stopped(qtbot, context, panel):
    qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
    assert panel.predict.text() == "Stop"
    qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
    assert panel.status.text() == "Stopped."
    assert panel.predict.text() == "Predict"
    assert profiling_of(context).entries == []
    panel.machine.setCurrentText("H100")
    predict(qtbot, context, panel)
    assert len(profiling_of(context).entries) == 1


def test_another_document_ends_the_prediction(qtbot, context, panel):
    qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
    assert panel.predict.text() == "Stop"
    context.set_document(Document(Graph(name="other"), context.registry, parent=context))
    assert panel.predict.text() == "Predict"
    assert panel.status.text() == ""
    assert not panel.memory.isVisible()


def test_a_prediction_of_the_network_before_an_edit_is_not_shown(qtbot, context, panel):
    panel.machine.setCurrentText("H100")
    predict(qtbot, context, panel)
    assert panel.memory.isVisible()
    context.root.do(lambda graph: set_params(graph, {"conv": {"features": "5"}}))
    assert (panel.result.text(), panel.memory.isVisible()) == ("", False)
    with qtbot.waitSignal(profiling_of(context).entries_changed, timeout=PATIENCE):
        qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
        context.root.do(lambda graph: set_params(graph, {"conv": {"features": "6"}}))
    assert panel.result.text() == ""
    assert "Predict again" in panel.status.text()


def test_a_bad_size_is_reported(qtbot, context, panel):
    panel.size_.setText("64 by 48")
    qtbot.mouseClick(panel.predict, Qt.MouseButton.LeftButton)
    assert "cannot be read" in panel.status.text()
    assert profiling_of(context).entries == []
