"""The Advice panel: cards for what can be changed, one click that undo reverts, and the measured saving after the next run."""

from __future__ import annotations

from dataclasses import replace
from weakref import ref

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from window_kit import empty

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.engine.requests import open_variant
from app.ui.profile.advice_panel import AdvicePanel
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.profiling.cost import cost_table
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

pytestmark = pytest.mark.gui


@pytest.fixture
def context(qapp):
    registry = load(entry_points=False)
    made = Context(registry)
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "32x32x3"}),
            Layer("first", "convolution", params={"features": "30"}, inputs=(Source("image"),)),
            Layer("wide", "convolution", params={"features": "32", "kernel": "5x5"}, inputs=(Source("first"),)),
            Layer("result", "output", inputs=(Source("wide"),)),
        ]
    )
    made.set_document(Document(graph, registry, parent=made))
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def panel(qtbot, context) -> AdvicePanel:
    made = AdvicePanel(context)
    qtbot.addWidget(made)
    made.resize(320, 500)
    made.show()
    return made


def profile_of(context, milliseconds: float = 10.0) -> Profile:
    rows = tuple(
        OperatorProfile(
            (name,),
            row.type,
            milliseconds,
            spread_ms=0.01,
            flops=row.flops,
            bytes=1000,
            bound="compute",
            inputs=tuple(str(shape) for shape in row.inputs),
        )
        for name, row in cost_table(context.document.inference).rows.items()
        if row.sources and row.type != "output"
    )
    total = milliseconds * len(rows)
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "32x32", total, 0.01, rows, iterations=20)
    return Profile(Machine("Test CPU", 2), "net", (run,))


def titles(panel: AdvicePanel) -> list[str]:
    return [advice.message for advice in panel.advice]


def click(qtbot, panel, name: str) -> None:
    qtbot.mouseClick(panel.findChild(QPushButton, name), Qt.MouseButton.LeftButton)


def test_without_a_run_the_panel_says_what_fills_it(panel):
    assert empty(panel).isVisibleTo(panel)


def test_advice_is_applied_in_one_step_and_measured_by_the_next_run(qtbot, context, panel):
    profiling_of(context).add(profile_of(context))
    assert titles(panel)[0] == "wide is a 5x5 convolution of 30 to 32 channels"
    assert "2.56 ms (modelled: 74" in panel.findChild(QLabel, "advice.0.saving").text()
    click(qtbot, panel, "advice.0.reveal")
    assert context.selection == ("wide",)
    click(qtbot, panel, "advice.0.apply")
    assert len(context.document.graph.layers) == 5
    assert not context.document.diagnostics()
    assert panel.findChild(QLabel, "advice.applied.saving").text() == "not measured yet"
    after = profile_of(context, 4.0)
    predicted = replace(after.runs[0], source=ValueSource.MODELLED, time_ms=1.0)
    profiling_of(context).add(replace(after, runs=(predicted,)))
    assert panel.findChildren(QLabel, "advice.applied.saving")[-1].text() == "not measured yet"
    profiling_of(context).add(replace(after, runs=(replace(after.runs[0], load=measured(30.0)),)))
    text = panel.findChildren(QLabel, "advice.applied.saving")[-1].text()
    assert text.startswith("measured 8.00 ms\n")
    assert "30 % of the cores" in text
    context.undo()
    assert len(context.document.graph.layers) == 4
    assert context.document.graph["wide"].params["kernel"] == "5x5"


def test_a_run_from_before_the_advice_was_applied_does_not_measure_it(qtbot, context, panel):
    profiling = profiling_of(context)
    profiling.add(profile_of(context))
    profiling.add(profile_of(context, 4.0))
    profiling.show(profiling.entries[0])
    click(qtbot, panel, "advice.0.apply")
    assert panel.findChildren(QLabel, "advice.applied.saving")[-1].text() == "not measured yet"


def test_advice_that_was_undone_is_offered_again(qtbot, context, panel):
    profiling_of(context).add(profile_of(context))
    offered = titles(panel)
    click(qtbot, panel, "advice.0.apply")
    assert panel.findChild(QLabel, "advice.applied.saving") is not None

    def cards() -> tuple[int, int]:
        every = (panel._cards.itemAt(number).widget().objectName() for number in range(panel._cards.count()))
        names = list(every)
        return names.count("advice.applied"), sum(name != "advice.applied" for name in names)

    context.undo()
    qtbot.waitUntil(lambda: cards() == (0, len(offered)))
    context.redo()
    qtbot.waitUntil(lambda: cards()[0] == 1)


def test_a_saving_within_the_noise_is_not_called_a_saving(qtbot, context, panel):
    profiling_of(context).add(profile_of(context))
    click(qtbot, panel, "advice.0.apply")
    again = profile_of(context)
    profiling_of(context).add(replace(again, runs=(replace(again.runs[0], time_ms=20.001),)))
    assert "no difference beyond the noise" in panel.findChildren(QLabel, "advice.applied.saving")[-1].text()


def test_settings_are_advice_too(qtbot, context, panel):
    slow = profile_of(context)
    fast = replace(slow, runs=(replace(slow.runs[0], engine="onnxruntime", time_ms=5.0),))
    profiling_of(context).add(fast)
    profiling_of(context).add(slow)
    number = [advice.rule for advice in panel.advice].index("better-engine")
    assert (
        "(measured: noise" in panel.findChildren(QLabel, f"advice.{number}.saving")[-1].text()
    )  # the first is deleted later
    click(qtbot, panel, f"advice.{number}.apply")
    assert context.root.settings.engine == "onnxruntime"


def test_a_run_of_another_document_gives_no_advice_for_this_one(context, panel):
    first, profiling = context.root, profiling_of(context)
    slow = profile_of(context)
    faster = replace(slow, runs=(replace(slow.runs[0], engine="onnxruntime", time_ms=5.0),))

    def add(profile: Profile, document: Document) -> None:
        profiling.add(profile, openings=(open_variant(document),), documents=(ref(document),))

    add(slow, first)
    offered = titles(panel)
    assert offered
    second = Document(Graph(list(first.graph)), context.registry, parent=context)
    context.set_document(second)
    assert panel.advice == []
    assert "Run #1 is of another document" in panel.findChildren(QLabel, "advice.nothing")[-1].text()
    add(faster, second)
    context.set_document(first)
    profiling.show(profiling.entries[0])
    assert titles(panel) == offered  # not the engine that was faster for the other document


def test_a_good_network_needs_no_advice(qtbot, context, panel):
    from designer.graph.commands import set_params

    context.document.do(lambda graph: set_params(graph, {"first": {"features": "32"}, "wide": {"kernel": "3x3"}}))
    profiling_of(context).add(profile_of(context))
    assert panel.advice == []
    qtbot.waitUntil(panel.findChild(QLabel, "advice.nothing").isVisible)
