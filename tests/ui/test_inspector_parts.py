"""Parts of the Channel Inspector with values that no engine has to compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from pseudo_kit import Pseudo
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.receptive_field import ReceptiveField
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.color_bar import LINE
from app.ui.inspector.input_pane import InputPane
from app.ui.inspector.order import Order, order_of
from app.ui.inspector.subject import Kind
from app.ui.inspector.subject_bar import SubjectBar
from app.ui.widgets.feature_view import FeatureView
from designer import texts
from designer.graph.commands import rename_layer, set_params
from designer.graph.edits import Edit
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


@pytest.fixture
def panel(qtbot: QtBot) -> ChannelInspectorPanel:
    """On the hidden convolution of a network that does not run."""
    context = Context(default_registry())
    context.set_document(Document(kit.small_network(8), context.registry))
    made = ChannelInspectorPanel(context)
    context.setParent(made)
    qtbot.addWidget(made)
    made.show()
    made.inspect("conv_h")
    return made


def show(panel: ChannelInspectorPanel, value: np.ndarray) -> None:
    panel.subject.value = value
    panel.subject.changed.emit()


def test_other_numbers_of_channels_are_in_the_chosen_order(panel: ChannelInspectorPanel) -> None:
    panel.subjects.order.setCurrentIndex(list(Order).index(Order.ENERGY))
    rng = np.random.default_rng(0)
    for count in (8, 16, 4):
        value = rng.standard_normal((1, count, 6, 5)).astype(np.float32)
        show(panel, value)
        assert list(panel.grid.order) == order_of(value[0], Order.ENERGY)


@pytest.mark.parametrize("width", [720, 1000, 1200])
def test_the_text_about_a_pixel_is_whole(panel: ChannelInspectorPanel, width: int) -> None:
    show(panel, np.random.default_rng(0).standard_normal((1, 8, 60, 80)).astype(np.float32))
    panel.resize(width, 500)
    panel.probe._set_hover((3, 10, 20))
    label = panel.probe.status
    for _ in range(2):  # a layout that changes is arranged again
        QApplication.processEvents()
    assert panel.width() == width
    assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width()
    assert panel.legend.width() == panel.legend.sizeHint().width()


def test_longer_texts_of_another_language_wrap(qtbot: QtBot) -> None:
    before = texts.take(Pseudo())
    try:
        bar = SubjectBar()
    finally:
        texts.take(before)
    qtbot.addWidget(bar)
    bar.show_tensors([("weight", "weight  64 x 64 x 3 x 3")], "weight")
    bar.show_items(3, 0)
    assert bar.minimumSizeHint().width() <= LINE


def test_a_range_that_was_set_stays_with_the_weights_of_a_renamed_layer(panel: ChannelInspectorPanel) -> None:
    panel.look_at(Kind.WEIGHTS)
    panel.subject.tensor = "weight"
    weights = np.random.default_rng(0).standard_normal((8, 3, 5, 5)).astype(np.float32)
    show(panel, weights)
    panel.bar.set_look(3.0, 0.5)
    panel.bar.look_touched.emit()
    document = panel._context.document
    assert document.do(lambda g: rename_layer(g, "conv_h", "first"))
    assert panel.subject.title == "first weight"
    show(panel, weights + 1)
    assert (panel.bar.look.gain, panel.bar.look.shift) == (3.0, 0.5)


def test_kernels_of_a_transposed_convolution_are_shown_also_while_its_groups_are_wrong(
    panel: ChannelInspectorPanel,
) -> None:
    document = panel._context.document
    layer = document.graph["conv_h"]
    wrong = replace(layer, type="transposed_convolution", params={**layer.params, "groups": "2"})
    assert document.do(lambda g: Edit("Another type", {"conv_h": (layer, wrong)}))
    panel.look_at(Kind.WEIGHTS)
    panel.subject.tensor = "weight"
    kernel = np.arange(3 * 8, dtype=np.float32).reshape(3, 8, 1, 1).repeat(3, 2).repeat(3, 3)
    for groups, channels in (("2", 3), ("x", 3), ("3", 24), ("1", 8)):
        assert document.do(lambda g, text=groups: set_params(g, {"conv_h": {"groups": text}})) or groups == "2"
        show(panel, kernel.copy())
        assert panel.grid.channels == channels


def test_the_input_is_the_item_of_the_batch_that_is_inspected(qtbot: QtBot) -> None:
    analysis = analysis_of(Context(default_registry()))
    pane = InputPane(ReceptiveField(analysis, analysis))
    qtbot.addWidget(pane)
    batch = np.zeros((2, 1, 4, 6), np.float32)
    batch[1] = 1
    for item, light in ((0, 0), (1, 255), (0, 0)):
        pane.show_input("input_0", batch, item)
        assert QColor(pane.view.image.pixel(2, 1)).red() == light


def test_values_that_are_not_finite_are_named_so(qtbot: QtBot) -> None:
    view = FeatureView("features", "Values")
    qtbot.addWidget(view)
    view.resize(600, 200)
    for values, top in (
        ((1.0, np.nan, 3.0, np.inf), [3, 2, 0, 1]),
        ((np.nan,) * 3, [0, 1, 2]),
        ((-np.inf, -2.0), [1, 0]),
        ((np.inf,), [0]),
        ((0.25, 0.75), [1, 0]),
    ):
        view.show_values(np.array([values], np.float32))
        assert view.top() == top
        np.testing.assert_array_equal(view._values, np.array(values, np.float32))
        assert np.isfinite(view._drawn).all()
        assert np.abs(view._drawn).max() <= 3
        finite = [value for value in values if np.isfinite(value)] or [0.0]
        assert view.range == (min(finite), max(finite))
        assert not view.grab().isNull()
