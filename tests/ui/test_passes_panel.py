"""Graph Passes: what each pass does, on and off as part of the current variant, equal results on the current input."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("torch")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from runtime_networks import RELU, layer

from app.engine.protocol import PassRow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.precision.passes_panel import NAME, RESULT, PassesPanel, result_text
from designer.graph.graph import Graph
from designer.operators.registry import load

PATIENCE = 100_000  # the engine imports torch


@pytest.fixture
def context(qapp):
    made = Context(load(entry_points=False))
    graph = Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("conv", "convolution", "image", features=4),
            layer("norm", "batch_normalization", "conv"),
            layer("act", "activation", "norm", RELU),
            layer("result", "output", "act"),
        ],
        name="block",
    )
    document = Document(graph, made.registry, parent=made)
    document.change_settings(random_seed=0, input_files={"image": "pattern:edges"})
    made.set_document(document)
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def panel(qtbot, context):
    made = PassesPanel(context)
    qtbot.addWidget(made)
    made.resize(900, 320)
    made.show()
    return made


def item(panel: PassesPanel, name: str):
    items = [panel.table.topLevelItem(index) for index in range(panel.table.topLevelItemCount())]
    return next(each for each in items if each.data(0, NAME) == name)


def test_passes_are_tried_and_switched_on(qtbot, context, panel):
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    fold, fuse = (item(panel, name) for name in ("fold_normalizations", "fuse_activations"))
    qtbot.waitUntil(lambda: fold.text(1) == "1", timeout=PATIENCE)
    assert fold.text(2) == "6 → 4"
    assert fold.text(RESULT).startswith("equal")
    assert fuse.text(1) == "0"  # a normalization is in between
    assert fuse.text(RESULT) == "nothing to do"
    assert not panel.total.isVisible()
    fold.setCheckState(0, Qt.CheckState.Checked)
    assert context.root.settings.current_variant.passes == ("fold_normalizations",)
    qtbot.waitUntil(lambda: fuse.text(2) == "4 → 2", timeout=PATIENCE)  # tried again by itself
    fuse.setCheckState(0, Qt.CheckState.Checked)
    qtbot.waitUntil(lambda: "6 → 2 tensor accesses" in panel.total.text(), timeout=PATIENCE)
    fold.setCheckState(0, Qt.CheckState.Unchecked)
    assert context.root.settings.current_variant.passes == ("fuse_activations",)
    context.root.undo()
    assert fold.checkState(0) is Qt.CheckState.Checked
    qtbot.waitUntil(lambda: not number_formats_of(context).busy, timeout=PATIENCE)


def test_results_that_differ_are_named():
    row = PassRow("x", True, 2, (4, 2), (40, 20), 0.25, False)
    assert result_text(row) == "differs by up to 0.25"
