"""Values of another run, variant or document are not shown as those of the present one."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pytestqt.qtbot import QtBot

from app.engine.protocol import MeasureVariantsReply, PassesReply, PassRow, VariantRow
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import profiling_of
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.variants_panel import STATUS, VariantsPanel
from designer.files.variants import Variant
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    """An open network, which no engine runs."""
    made = Context(default_registry())
    made.set_document(Document(network(), made.registry, parent=made))
    return made


def network() -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
            Layer("output", "output", inputs=(Source("conv"),)),
        ]
    )


def test_the_rows_of_a_selected_layer_are_those_of_the_shown_run(context: Context) -> None:
    def run(time: float) -> ProfileRun:
        rows = (OperatorProfile(("conv",), "convolution", time_ms=time),)
        return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "16x8", time, 0.0, rows)

    profiling = profiling_of(context)
    context.select(("conv",))
    profiling.add(Profile(Machine("Test CPU", 2), "net", (run(1.0), run(2.0))))
    for entry in (profiling.entries[0], profiling.entries[1]):
        profiling.show(entry)
        assert [row.time_ms for row in profiling.chosen_rows] == [entry.run.time_ms]


def test_shapes_that_were_fed_to_another_document_are_forgotten(context: Context) -> None:
    inputs = analysis_of(context).inputs
    inputs.was_fed("image", (1, 3, 9, 9))
    assert inputs.shapes
    context.set_document(Document(network(), context.registry, parent=context))
    assert not inputs.shapes


def test_numbers_of_other_passes_are_forgotten_while_the_panel_is_hidden(context: Context, qtbot: QtBot) -> None:
    panel = PassesPanel(context)
    qtbot.addWidget(panel)
    names = [panel.table.topLevelItem(row).data(0, 256) for row in range(panel.table.topLevelItemCount())]
    panel._on_found(PassesReply(tuple(PassRow(name, False, 3, (9, 6), (90, 60), 0.0) for name in names)))
    assert panel.table.topLevelItem(0).text(1) == "3"
    number_formats_of(context).set_pass(names[0], True)
    assert panel.table.topLevelItem(0).text(1) == "-"


def test_a_variant_that_was_changed_is_not_measured(context: Context, qtbot: QtBot) -> None:
    panel = VariantsPanel(context)
    qtbot.addWidget(panel)
    panel.add_variant(Variant("FP16", "fp16"))
    panel._judged["FP16"] = panel.variants[0]
    panel._done(MeasureVariantsReply((VariantRow("FP16", 100),)))
    assert panel.table.topLevelItem(1).text(STATUS) == "measured"
    context.root.change_settings(variants=(Variant("FP16", "bf16"),))
    assert panel.table.topLevelItem(1).text(STATUS) == "not measured"
