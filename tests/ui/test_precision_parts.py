"""Panels of precision without an engine: what they show of an answer, what a click asks for, and what an edit clears."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import msgspec
import numpy as np
import pytest
from analysis_kit import silent_engine

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
from pyqtgraph import ScatterPlotItem
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDrag, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QTreeWidget, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.computations import variant_name
from app.engine.protocol import (
    BitsReply,
    BlamedOperator,
    BlameReply,
    ChoosePrecisionReply,
    ChoosePrecisionRequest,
    LayerBits,
    LayerSensitivity,
    MeasureVariantsReply,
    MeasureVariantsRequest,
    PassesReply,
    PassRow,
    SizePoint,
    VariantRow,
)
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.number_formats import TITLES, number_formats_of
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.channel_pairs import ChannelPairs
from app.ui.precision.number_formats_panel import FORMAT_MIME, MEASURED, REASON, FormatChip, NumberFormatsPanel
from app.ui.precision.passes_panel import NAME, PassesPanel
from app.ui.precision.precision_dialog import PrecisionDialog
from app.ui.precision.variants_panel import STATUS, VariantsPanel
from app.ui.widgets import theme
from app.ui.widgets.render import PALETTES, signed_pixels, to_image
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.graph.commands import rename_layer, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.operators.registry import default_registry
from designer.runtime.number_formats import FORMATS
from designer.texts import tr_data
from designer.units import binary, digits

pytestmark = pytest.mark.gui
__all__ = ["silent_engine"]


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    made = Context(default_registry())
    convolutions = (("conv", "convolution", {"features": 4}), ("last", "convolution", {"features": 3}))
    made.set_document(Document(chain(*convolutions, size="16x8x3"), made.registry, parent=made))
    return made


def texts(table: QTreeWidget) -> list[list[str]]:
    items = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
    return [[item.text(column) for column in range(table.columnCount())] for item in items if item is not None]


def middle(table: QTreeWidget, row: int) -> QPoint:
    return table.visualItemRect(table.topLevelItem(row)).center()


def test_blame_shows_the_answer_until_an_edit(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, asked, heat = number_formats_of(context), [], []
    reply = BlameReply((BlamedOperator("conv", -0.25, 0.5), BlamedOperator("last", 1.25, 0.125)), 0.03, "conv")
    monkeypatch.setattr(formats, "blame", lambda a, b, done, say: (asked.append((a, b)), done(reply)))
    monkeypatch.setattr(formats, "compare_tensor", lambda layer, a, b, done, say: asked.append((layer, a, b)))
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    panel.resize(600, 500)
    panel.show()
    context.heat_requested.connect(heat.append)
    table, left = panel.table, Qt.MouseButton.LeftButton

    def empty() -> bool:
        controls = (table.isVisible(), panel.first.isVisible(), panel.channels.isEnabled(), panel.status.isVisible())
        return not any(controls) and not texts(table)

    assert empty()
    qtbot.mouseClick(panel.causes, left)
    assert asked.pop() == ("fp32", "int8")
    assert texts(table) == [["last", "125.0", "0.125"], ["conv", "-25.0", "0.500"]]  # the largest share first
    assert panel.status.text() == f"{panel.a.currentText()} and {panel.b.currentText()} differ by 0.03 RMS."
    assert {layer: heat[-1].label(layer) for layer in ("last", "conv")} == {"last": "125 %", "conv": "-25 %"}
    assert heat[-1].values == {"last": 125.0, "conv": 0.0}
    assert not panel.channels.isEnabled()
    with qtbot.waitSignal(context.reveal_requested) as told:
        qtbot.mouseClick(table.viewport(), left, pos=middle(table, 1))
    assert told.args == ["conv"]
    qtbot.keyClick(table, Qt.Key.Key_Up)
    with qtbot.waitSignal(context.reveal_requested) as told:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert told.args == ["last"]
    qtbot.keyClick(table, Qt.Key.Key_Down)
    qtbot.mouseClick(panel.channels, left)
    assert asked.pop() == ("conv", "fp32", "int8")
    qtbot.mouseClick(table.viewport(), left, pos=middle(table, 0))
    qtbot.mouseDClick(table.viewport(), left, pos=middle(table, 0))
    assert asked.pop() == ("last", "fp32", "int8")
    qtbot.mouseClick(panel.first, left)
    assert asked.pop() == ("conv", "fp32", "int8")
    context.root.do(lambda g: set_params(g, {"conv": {"kernel": "5x5"}}))
    assert empty()
    assert heat[-1] is None
    reply = BlameReply((BlamedOperator("conv", 0.0, 0.0),), 2e-8, None)
    qtbot.mouseClick(panel.causes, left)
    assert panel.status.text().endswith("differ by 2e-08 RMS; no operator deviates by more than rounding.")
    assert not panel.first.isVisible()
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert empty()


def test_passes_show_the_answer_until_an_edit(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, panel = number_formats_of(context), PassesPanel(context)
    qtbot.addWidget(panel)
    panel.resize(900, 320)
    panel.show()
    table = panel.table
    items = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
    names = [item.data(0, NAME) for item in items if item is not None]
    on = names[:2]
    for name in on:
        formats.set_pass(name, True)

    def item(row: int) -> QTreeWidgetItem:
        found = table.topLevelItem(row)
        assert found is not None
        return found

    checked = [item(row).checkState(0) is Qt.CheckState.Checked for row in range(len(names))]
    assert checked == [name in on for name in names]
    reply = PassesReply(
        (
            PassRow(names[0], True, 2, (10, 8), (4096, 3072), 0.0),
            PassRow(names[1], True, 1, (8, 4), (3072, 1024), 0.25, equal=False),
            PassRow(names[2], False, 3, (4, 3), (1024, 512), None, equal=False),
        )
    )
    monkeypatch.setattr(formats, "measure_passes", lambda done, say: done(reply))
    unknown = [["-"] * 5 for _ in names]
    assert [row[1:] for row in texts(table)] == unknown
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    assert [row[1:] for row in texts(table)] == [
        ["2", "10 → 8", "4.00 KiB → 3.00 KiB", "25.0 %", "equal (difference 0)"],
        ["1", "8 → 4", "3.00 KiB → 1.00 KiB", "66.7 %", "differs by up to 0.25"],
        ["3", "4 → 3", "1.00 KiB → 512 B", "50.0 %", "outputs have other shapes, or values that are not finite"],
        *unknown[3:],
    ]
    colors = [item(row).foreground(1).color() for row in range(3)]
    assert colors == [theme.color("text"), theme.color("text"), theme.color("muted")]
    together = "Together: 10 → 4 tensor accesses, 4.00 KiB → 1.00 KiB of memory traffic (75.0 % less, modelled)"
    assert panel.total.text() == together
    assert panel.total.isVisible()
    context.root.do(lambda g: set_params(g, {"conv": {"kernel": "5x5"}}))
    assert [row[1:] for row in texts(table)] == unknown
    assert not panel.total.isVisible()
    qtbot.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert [row[1:] for row in texts(table)] == unknown
    assert "has no passes" in panel.subject.text()
    assert not any(item(row).checkState(0) is Qt.CheckState.Checked for row in range(len(names)))


# --- variants ------------------------------------------------------------------------------------------------------


@pytest.fixture
def variants(qtbot: QtBot, context: Context) -> VariantsPanel:
    made = VariantsPanel(context)
    qtbot.addWidget(made)
    made.resize(1200, 300)
    made.show()
    return made


def choose(panel: VariantsPanel, name: str) -> None:
    """Click the row of a variant; the one of the network has an empty name."""
    rows = ["", *(variant.name for variant in panel.variants)]
    place = panel.table.visualItemRect(panel.table.topLevelItem(rows.index(name))).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def action(menu: QMenu, name: str) -> QAction:
    return next(each for each in menu.actions() if each.objectName() == name)


def test_every_column_of_a_measured_variant_is_its_value(context: Context, variants: VariantsPanel) -> None:
    names = ("full", "exact", "infinite", "broken", "later")
    context.root.change_settings(variants=tuple(Variant(name, "fp16") for name in names), variant="exact")
    variants._judged = {variant.name: variant for variant in variants.variants}
    rows = (
        VariantRow("", 4096, None, None, 20.125, 0.25, 12.5),
        VariantRow("full", 2048, 41.236, 0.98765, 31.124, 0.87654, 7.5, emulated=True),
        VariantRow("exact", 1024, 999.0, 1.0, 999.0, 1.0, 0.25),
        VariantRow("infinite", 512, nan, nan, -inf, nan, None),
        VariantRow("broken", 256, 1.0, 1.0, 1.0, 1.0, 1.0, error="it has no weights"),
    )
    variants._done(MeasureVariantsReply(rows))
    assert texts(variants.table) == [
        ["network (FP32)", "FP32", "4.00 KiB", "-", "-", "20.12", "0.2500", "12.5", "measured"],
        ["full", "FP16", "2.00 KiB", "41.24", "0.9877", "31.12", "0.8765", "7.50", "emulated"],
        ["exact", "FP16", "1.00 KiB", "equal", "1.0000", "equal", "1.0000", "0.250", "current, measured"],
        ["infinite", "FP16", "512 B", "-", "-", "-", "-", "-", "measured"],
        ["broken", "FP16", *["-"] * 6, "it has no weights"],
        ["later", "FP16", *["-"] * 6, "not measured"],
    ]
    tips = [variants.table.topLevelItem(row).toolTip(STATUS) for row in range(6)]
    assert tips[1] == "emulated: results are those of the format, times are not"
    assert tips[2:5] == ["current, measured", "measured", "it has no weights"]


def test_every_entry_of_the_menu_adds_its_variant(
    context: Context, variants: VariantsPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "add.fp16": Variant("FP16", "fp16"), "add.bf16": Variant("BF16", "bf16"), "add.int8": Variant("INT8", "int8"),
        "add.fp32": Variant("FP32", "fp32"), "add.sparse": Variant("2:4 sparse", sparsity="2:4"),
    }  # fmt: skip
    opened: list[str] = []
    monkeypatch.setattr(variants, "find_precision", opened.append)
    for each in variants.add.menu().actions():
        if each.objectName():
            each.trigger()
    assert variants.variants == tuple(expected.values())
    assert opened == ["mixed", "int8"]
    assert {each.objectName() for each in variants.add.menu().actions() if each.objectName()} == {
        *(f"variants.{name}" for name in expected), "variants.find", "variants.calibrate"
    }  # fmt: skip


def test_the_current_variant_stays_when_another_one_is_deleted_or_renamed(
    qtbot: QtBot, context: Context, variants: VariantsPanel
) -> None:
    context.root.change_settings(variants=(Variant("a", "fp16"), Variant("b", "bf16"), Variant("c")), variant="b")
    for name, left, current in (("a", ["b", "c"], "b"), ("c", ["b"], "b"), ("b", [], "")):
        choose(variants, name)
        qtbot.mouseClick(variants.delete, Qt.MouseButton.LeftButton)
        settings = context.root.settings
        assert ([variant.name for variant in settings.variants], settings.variant) == (left, current)
    context.root.undo()
    context.root.undo()
    choose(variants, "c")
    variants.table.currentItem().setText(0, "new")
    assert context.root.settings.variant == "b"


def test_a_renamed_variant_keeps_what_was_measured(context: Context, variants: VariantsPanel) -> None:
    context.root.change_settings(variants=(Variant("a", "fp16"), Variant("b", "bf16")))
    variants._judged = {variant.name: variant for variant in variants.variants}
    variants._done(MeasureVariantsReply((VariantRow("a", 2048, 41.236), VariantRow("b", 1024, 30.5))))
    before = texts(variants.table)
    choose(variants, "a")
    variants.table.currentItem().setText(0, "  other ")
    expected = [before[0], ["other", *before[1][1:]], before[2]]
    assert texts(variants.table) == expected
    variants.refresh()
    assert texts(variants.table) == expected
    variants.table.topLevelItem(1).setText(STATUS, "not a name")  # not an edit
    assert [variant.name for variant in variants.variants] == ["other", "b"]


def test_variants_are_measured_with_the_options_of_the_document(
    qtbot: QtBot, context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    chosen = (Variant("a", "fp16"), Variant("b", "bf16", {"conv": "int4"}))
    options = {"engine": "torch", "layout": "nhwc", "threads": 3, "precision": "fp16"}
    context.root.change_settings(variants=chosen, **options)
    qtbot.mouseClick(variants.measure, Qt.MouseButton.LeftButton)
    opening, *_, asked = (call.request for call in variants._question._calls)
    assert asked == MeasureVariantsRequest(chosen, "torch", "nhwc", "cpu", 3)
    assert opening.precision == "fp32"
    assert variants.status.text() == "Running the network ..."
    context.root.change_settings(variants=(chosen[0], replace(chosen[1], formats={})))  # while it is measured
    assert variants._question.busy
    variants._question._calls[-1].finish(MeasureVariantsReply((VariantRow("a", 8), VariantRow("b", 8))))
    assert [row[STATUS] for row in texts(variants.table)[1:]] == ["measured", "not measured"]


def test_a_variant_that_is_changed_while_it_is_measured_has_no_value_of_before(
    qtbot: QtBot, context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    found = Variant("a", "fp16", {"conv": "float32"}, reasons={"conv": "it overflows"})
    context.root.change_settings(variants=(found,))
    variants._judged = {"a": found}
    variants._done(MeasureVariantsReply((VariantRow("a", 8),)))
    qtbot.mouseClick(variants.measure, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(
        variants._again.timeout
    ):  # changed formats are measured again, but not while the engine works
        context.root.change_settings(variants=(replace(found, formats={"conv": "bfloat16"}),))
    variants._question._calls[-1].finish(MeasureVariantsReply((VariantRow("a", 16),)))
    assert texts(variants.table)[1][STATUS] == "not measured"
    qtbot.waitUntil(lambda: variants._question.busy)
    assert variants._question._calls[-1].request.variants == context.root.settings.variants


def test_what_can_be_done_with_a_variant_is_enabled(
    qtbot: QtBot, context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    passes = ("fold_constants", "fuse_activations")
    assert variants.status.text().startswith("Add a variant, such as FP16")
    context.root.change_settings(variants=(Variant("a", passes=passes), Variant("b", passes=passes[1:])), variant="b")
    assert not variants.status.isVisible()
    buttons = ("add", "duplicate", "delete", "passes", "current", "measure")

    def enabled() -> set[str]:
        return {name for name in buttons if getattr(variants, name).isEnabled()}

    def checked() -> list[str]:
        menu = variants.passes.menu()
        return [each.objectName().rpartition(".")[2] for each in menu.actions() if each.isChecked()]

    expected = {
        "": ({"add", "current", "measure"}, ()),
        "a": ({*buttons}, passes),
        "b": ({*buttons} - {"current"}, passes[1:]),
    }
    for name, (usable, used) in expected.items():
        choose(variants, name)
        assert (enabled(), checked()) == (usable, list(used)), name
    choose(variants, "a")
    for busy in (True, False):
        qtbot.mouseClick(variants.measure, Qt.MouseButton.LeftButton)
        assert enabled() == ({"measure"} if busy else {*buttons})
        assert variants.measure.text() == ("Stop" if busy else "Measure")
        assert variants._question.busy is busy
    assert not variants.status.isVisible()
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert enabled() == {"add", "measure"}
    assert [row[0] for row in texts(variants.table)] == ["network (FP32)"]


REASON_KEPT = {"conv": "it overflows"}


def found_by_search(name: str, kept: str = "float32") -> Variant:
    """A variant whose formats were found, so that it is measured again when it is changed."""
    return Variant(name, "fp16", {"conv": kept}, reasons=REASON_KEPT)


def asked_variants(panel: VariantsPanel) -> list[str]:
    """The names in the request that waits, or none."""
    calls = panel._question._calls
    return [each.name for each in calls[-1].request.variants] if calls else []


def test_only_found_formats_that_were_changed_are_measured_again(
    context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    root, again = context.root, variants._again
    names = ("first", "second", "third")
    plain = Variant("plain", "bf16")
    root.change_settings(variants=(*map(found_by_search, names), plain))
    assert not again.isActive(), "nothing was measured before"
    variants._judged = {variant.name: variant for variant in variants.variants}
    rows = tuple(VariantRow(name, 1024, 40.0, 0.9, None, None, 1.0) for name in ("", *names[:2], "plain"))
    variants._done(MeasureVariantsReply(rows))
    assert not again.isActive()

    def statuses() -> list[str]:
        return [row[STATUS] for row in texts(variants.table)]

    assert statuses() == ["current, measured", "measured", "measured", "not measured", "measured"]
    root.change_settings(variants=(*map(found_by_search, names), replace(plain, precision="int8")))
    assert statuses() == ["current, measured", "measured", "measured", "not measured", "not measured"]
    assert not again.isActive(), "a variant without found formats waits for the user"
    changed = (found_by_search("first", "float16"), *map(found_by_search, names[1:]), plain)
    root.change_settings(variants=changed)
    assert statuses()[1:] == ["not measured", "measured", "not measured", "not measured"]
    assert again.isActive()
    assert again.isSingleShot()
    assert asked_variants(variants) == [], "the user may go on changing it"
    again.stop()
    again.timeout.emit()
    assert asked_variants(variants) == ["first", "third"]
    assert variants.status.text() == "Running the network ..."
    again.timeout.emit()
    assert len(variants._question._calls) == len(set(variants._question._calls)), "one measurement at a time"
    variants.stop()
    variants.hide()
    again.timeout.emit()
    assert asked_variants(variants) == [], "a hidden panel does not keep the engine busy"
    variants.show()
    variants._done(MeasureVariantsReply(rows[1:2]))
    assert statuses()[1:] == ["measured", "measured", "not measured", "not measured"]
    variants._judged = {variant.name: variant for variant in variants.variants}
    variants._done(MeasureVariantsReply(rows[1:]))
    assert statuses()[1:] == ["measured", "measured", "not measured", "measured"]
    root.change_settings(
        variants=(*changed[:1], found_by_search("second", "int8"), changed[2], replace(plain, precision="int8"))
    )
    assert statuses()[1:] == ["measured", "not measured", "not measured", "not measured"]
    assert again.isActive(), "one of two that were changed at once has found formats"


def test_a_measurement_that_waits_is_not_begun_for_another_one(
    context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    context.root.change_settings(variants=(found_by_search("first"), Variant("plain", "bf16")))
    variants.launch([variants.variants[1]])
    assert asked_variants(variants) == ["plain"]
    calls = list(variants._question._calls)
    variants._again.timeout.emit()
    assert variants._question._calls == calls
    variants.stop()
    assert variants.status.text() == ""


def test_a_measurement_that_fails_says_why(
    qtbot: QtBot, context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    qtbot.mouseClick(variants.measure, Qt.MouseButton.LeftButton)
    variants._question._calls[0].fail((Diagnostic("cannot-read", "the file of weights cannot be read"),))
    assert variants.status.text() == "The file of weights cannot be read."
    assert variants.measure.text() == "Measure"


# --- the precision dialog ------------------------------------------------------------------------------------------


@pytest.fixture
def dialog(qtbot: QtBot, context: Context, silent_engine: EngineClient) -> PrecisionDialog:
    made = PrecisionDialog(context, "mixed")
    qtbot.addWidget(made)
    made.show()
    return made


def fill(dialog: PrecisionDialog) -> None:
    """Another value than the usual one in every field."""
    dialog.folder.setText("/images")
    dialog.count.setValue(9)
    dialog.pixels.setText(" 48x32 ")
    dialog.method.setCurrentIndex(dialog.method.findData("percentile"))
    dialog.percentile.setValue(99.5)
    dialog.runtime.setCurrentIndex(dialog.runtime.findData("tensorrt"))


@pytest.mark.parametrize(
    ("target", "kept_in", "budget"),
    [
        ("mixed", "", 50.0),
        ("fp16", "", 50.0),
        ("bf16", "", 50.0),
        ("int8", "float32", 40.0),
        ("int8+fp16", "float16", 40.0),
    ],
)
def test_every_field_of_the_precision_dialog_is_in_its_request(
    qtbot: QtBot, dialog: PrecisionDialog, target: str, kept_in: str, budget: float
) -> None:
    dialog.target.setCurrentIndex(dialog.target.findData(target))
    rows = {"size": dialog.pixels, "count": dialog.count, "method": dialog.method, "runtime": dialog.runtime}
    assert {name for name, field in rows.items() if field.isVisible()} == ({*rows} if kept_in else set())
    assert dialog.budget.value() == budget
    fill(dialog)
    recipe = CalibrationRecipe("/images", 9, "48x32", "percentile", 99.5, "tensorrt") if kept_in else None
    for chosen, asked in ((budget, budget), (33.5, 33.5), (0.0, None)):
        dialog.budget.setValue(chosen)
        qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
        request = dialog._question._calls[-1].request
        assert request == ChoosePrecisionRequest(target, "/images", asked, recipe, kept_in or "float32")
        assert (dialog.search.text(), dialog.bar.isVisible()) == ("Stop", True)
        qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
        assert dialog.status.text() == "Stopped. Nothing was changed."
        assert (dialog.search.text(), dialog.bar.isVisible()) == ("Find", False)
    qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
    dialog.reject()
    assert not dialog._question.busy


REPLY = ChoosePrecisionReply(
    "int8", 41.236, True, {"conv": "first layer"}, 7, format="float16",
    sensitivity=(LayerSensitivity("conv", 31.25, 52.75), LayerSensitivity("last", 33.5, 51.5)),
    bytes=1024, bytes_fp32=4096, report="{}",
)  # fmt: skip


def test_the_precision_dialog_shows_every_value_of_the_answer(dialog: PrecisionDialog) -> None:
    dialog._done(REPLY)
    header = dialog.layers.headerItem()
    assert [header.text(column) for column in range(dialog.layers.columnCount())] == [
        "Layer in FP16", "Reason", "PSNR alone\nin INT8, dB", "PSNR of all\nothers, dB"
    ]  # fmt: skip
    assert texts(dialog.layers) == [["conv", "first layer", "31.2", "52.8"], ["last", "", "33.5", "51.5"]]
    rows = [dialog.layers.topLevelItem(row) for row in range(2)]
    assert [row.checkState(0) is Qt.CheckState.Checked for row in rows] == [True, False]
    assert dialog.status.text() == "41.24 dB against FP32 on 7 images. 1.00 KiB instead of 4.00 KiB."
    assert (dialog.status._role, dialog.add.isEnabled(), dialog.save.isVisible()) == ("info", True, True)
    dialog._forget()
    overflow = {"conv": 70000.0, "last": 99999.0}
    skipped = {"a.txt": "not an image", "b.png": "it is empty"}
    other = ChoosePrecisionReply(
        "fp16", 41.236, False, {"conv": "it overflows"}, 7, skipped, "float32", overflow, 38.126
    )
    dialog._done(other)
    assert [header.text(column) for column in range(dialog.layers.columnCount())] == ["Layer in FP32", "Reason"]
    assert texts(dialog.layers) == [["conv", "it overflows"]]
    assert dialog.status.text() == (
        "41.24 dB against FP32 on 7 images. The budget is not met: this is the best that was found. 'last' overflows: values up to 1e+05. "
        "BF16 has the range of FP32 and reaches 38.13 dB. 2 files were skipped (a.txt: not an image; b.png: it is empty)."
    )
    assert (dialog.status._role, dialog.save.isVisible()) == ("warning", False)
    dialog._forget()
    dialog._done(ChoosePrecisionReply("bf16", None, True, {}, 1))
    assert dialog.status.text() == "Equal to FP32 on 1 images."


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("target", ["float32", "float16"])
@pytest.mark.parametrize("checked", [(), ("conv",), ("last",), ("conv", "last")])
def test_the_variant_of_the_dialog_has_the_layers_with_a_check_mark(
    dialog: PrecisionDialog, checked: tuple[str, ...], target: str, calibrated: bool
) -> None:
    precision = "int8" if calibrated else "bf16"
    dialog._recipe = CalibrationRecipe("/images") if calibrated else None
    dialog._done(msgspec.structs.replace(REPLY, precision=precision, format=target))
    for row in (dialog.layers.topLevelItem(number) for number in range(2)):
        row.setCheckState(0, Qt.CheckState.Checked if row.text(0) in checked else Qt.CheckState.Unchecked)
    made: list[Variant] = []
    dialog.accepted_variant.connect(made.append)
    dialog.add.click()
    reasons = {name: reason for name, reason in REPLY.kept.items() if name in checked}
    reasons |= {name: BY_HAND for name in ("conv", "last") if (name in checked) != (name in REPLY.kept)}
    name = {"float16": "INT8 + FP16", "float32": "INT8"}[target] if calibrated else "Mixed" if checked else "BF16"
    expected = Variant(name, precision, dict.fromkeys(checked, target), reasons=reasons, calibration=dialog._recipe)
    assert made == [expected]


# --- number formats ------------------------------------------------------------------------------------------------


def psnr_of(layer: int) -> dict[str, float]:
    """Another PSNR for each format."""
    return {name: 20.0 + 10 * layer + number for number, name in enumerate(MEASURED)}


BITS = BitsReply(
    (LayerBits("conv", 1000, psnr_of(0), 8), LayerBits("last", 500, psnr_of(1) | {"int4": 999.0}, 4)),
    (SizePoint(6000, 999.0, {}), SizePoint(3072, 50.5, {"conv": "int8"}), SizePoint(1536, 30.5, {"conv": "int4", "last": "int8"})),
)  # fmt: skip


def test_measured_bits_are_the_heat_of_their_format_until_an_edit(qtbot: QtBot, context: Context) -> None:
    panel, heat = NumberFormatsPanel(context), []
    qtbot.addWidget(panel)
    context.heat_requested.connect(heat.append)
    panel._on_found(BITS)
    assert panel.heat.currentData() == "int4"
    for row, name in enumerate(MEASURED, 1):
        panel.heat.setCurrentIndex(row)
        for layer, bits in zip(("conv", "last"), BITS.layers, strict=True):
            psnr = bits.psnr[name]
            assert heat[-1].values[layer] == pytest.approx(100 * 10 ** (-psnr / 20))
            assert heat[-1].label(layer) == ("∞ dB" if psnr == 999 else f"{psnr:.1f} dB")
    panel._on_found(BITS)
    assert panel.heat.currentData() == MEASURED[-1]  # what was chosen stays
    panel.heat.setCurrentIndex(0)
    assert heat[-1] is None
    panel.heat.setCurrentIndex(1)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert (panel.heat.currentIndex(), heat[-1], panel.plot.isHidden()) == (0, None, True)


def test_the_size_of_the_weights_is_that_of_the_chosen_formats(qtbot: QtBot, context: Context) -> None:
    panel, formats = NumberFormatsPanel(context), number_formats_of(context)
    qtbot.addWidget(panel)
    panel._on_found(BITS)
    for chosen in ({}, {"conv": "float16"}, {"conv": "int8", "last": "float16"}, {"conv": "int4", "last": "int2"}):
        formats.set_formats(chosen)
        bits = 0
        for item in BITS.layers:
            found = FORMATS[chosen.get(item.layer, "float32")]
            bits += found.weight_bits((item.vectors,)) + found.weight_bits((1, item.weights - item.vectors))
        assert panel.size_text.text() == f"Weights: {binary(-(-bits // 8))} instead of {binary(1500 * 4)}"
        assert [panel.table.topLevelItem(row).text(1) for row in (0, 1)] == [
            tr_data(TITLES[chosen.get(name, "float32")]) for name in ("conv", "last")
        ]


def test_layers_have_the_reasons_of_their_formats(qtbot: QtBot, context: Context) -> None:
    panel = NumberFormatsPanel(context)
    qtbot.addWidget(panel)
    found = Variant("a", "fp16", {"conv": "float32", "last": "int8"}, reasons={"conv": "it overflows", "last": BY_HAND})
    context.root.change_settings(variants=(found,), variant="a")
    rows = [panel.table.topLevelItem(row) for row in range(2)]
    assert [row.text(REASON) for row in rows] == ["it overflows", "changed by hand"]
    assert [row.text(1) for row in rows] == ["FP32", "INT8"]


def test_a_click_on_a_point_of_the_curve_chooses_its_formats(qtbot: QtBot, context: Context) -> None:
    panel = NumberFormatsPanel(context)
    qtbot.addWidget(panel)
    panel.resize(500, 700)
    panel.show()
    panel._on_found(BITS)
    plot = panel.plot
    assert plot is not None
    plot.grab()  # it finds its range when it is painted
    (spots,) = (item for item in plot.getPlotItem().items if isinstance(item, ScatterPlotItem))
    assert sorted(zip(*spots.getData(), strict=True)) == [(1.5, 30.5), (3.0, 50.5)]
    for point in BITS.points[1:]:
        where = plot.getViewBox().mapViewToScene(QPointF(point.bytes / 1024, point.psnr))
        qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=plot.mapFromScene(where))
        assert number_formats_of(context).formats == point.formats


def test_channel_pairs_show_every_channel_with_b_minus_a(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    a = np.zeros((1, 3, 2, 4), np.float32)
    b = a.copy()
    a[0, :, 0, 0] = 8.0  # the range of the values is larger than that of the differences
    b[0, :, 0, 0] = 8.0
    for channel, change in enumerate((0.25, -1.0, 0.5)):
        b[0, channel, 0, 1] = change
        b[0, channel, 1, 3] = -change / 2
    pairs = ChannelPairs("conv", ("FP32", "INT8"), a, b, window)
    assert (pairs.channel.minimum(), pairs.channel.maximum()) == (1, 3)
    colors = {
        sign: to_image(signed_pixels(np.array([[sign]], np.float32), PALETTES[0], 1.0)).pixelColor(0, 0)
        for sign in (1, -1)
    }
    for place, (channel, sign) in enumerate(((1, -1), (2, 1), (0, 1)), 1):
        pairs.channel.setValue(place)
        largest = abs(b[0, channel, 0, 1])
        assert pairs.text.text().startswith(f"Channel {channel}, from ")
        assert pairs.text.text().endswith(f"the largest difference is {digits(float(largest))}")
        image = pairs.views[2].image
        assert image.pixelColor(1, 0) == colors[sign]
        assert image.pixelColor(3, 1) not in (*colors.values(), image.pixelColor(2, 0))  # half as much


def test_blame_keeps_the_chosen_computations_and_files_until_another_document(qtbot: QtBot, context: Context) -> None:
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    assert (panel.a.currentData(), panel.b.currentData()) == ("fp32", "int8")
    panel.a.setCurrentIndex(panel.a.findData("bf16"))
    panel.compare_with_file(Path("/models/net.onnx"))
    context.root.change_settings(variants=(Variant("mine", "fp16"),))
    assert (panel.a.currentData(), panel.b.currentText()) == ("bf16", "net.onnx")
    assert panel.a.findText("net.onnx") < 0
    assert panel.a.findData(variant_name("mine")) >= 0
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert (panel.a.currentData(), panel.b.currentData()) == ("fp32", "int8")
    assert panel.b.findText("net.onnx") < 0


def test_an_answer_of_blame_names_what_was_asked_whatever_is_chosen_later(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Titles and names of the question are those of the summary and of the channels, first A and then B."""
    formats, waiting, opened = number_formats_of(context), [], []
    monkeypatch.setattr(formats, "blame", lambda a, b, done, say: waiting.append((a, b, done)))
    monkeypatch.setattr(
        formats, "compare_tensor", lambda layer, a, b, done, say: (opened.append((layer, a, b)), done("left", "right"))
    )

    class Pairs:
        def __init__(self, layer: str, titles: tuple[str, str], a: object, b: object, window: QWidget) -> None:
            opened.append((layer, titles, a, b, window))

        def show(self) -> None:
            opened.append("shown")

    monkeypatch.setattr("app.ui.precision.blame_panel.ChannelPairs", Pairs)
    context.root.change_settings(variants=(Variant("mine", "fp16"),))
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    panel.show()
    panel.a.setCurrentIndex(panel.a.findData("bf16"))
    panel.b.setCurrentIndex(panel.b.findData(variant_name("mine")))
    titles = (panel.a.currentText(), panel.b.currentText())
    assert len(set(titles)) == 2
    panel.causes.click()
    ((a, b, done),) = waiting
    assert (a, b) == ("bf16", variant_name("mine"))
    panel.a.setCurrentIndex(panel.a.findData("fp32"))
    panel.b.setCurrentIndex(panel.b.findData("int8"))
    done(BlameReply((BlamedOperator("conv", 0.25, 0.5), BlamedOperator("last", 0.75, 0.125)), 0.03, "conv"))
    summary = f"{titles[0]} and {titles[1]} differ by 0.03 RMS."
    assert panel.status.text() == summary
    assert panel.first.text() == "First deviating operator: conv"
    panel.status.show_message("Comparing ...", "info")
    panel.first.click()
    assert opened == [
        ("conv", "bf16", variant_name("mine")),
        ("conv", titles, "left", "right", panel.window()),
        "shown",
    ]
    assert panel.status.text() == summary
    done(BlameReply((), 0.5, None))
    assert panel.status.text() == (
        f"{titles[0]} and {titles[1]} differ by 0.5 RMS; no operator deviates by more than rounding."
    )
    assert not panel.first.isVisible()
    context.root.change_settings(variants=(Variant("mine", "bf16"),))
    assert panel.status.text() == ""
    done(BlameReply((BlamedOperator("conv", 1.0, 0.5),), 0.03, "conv"))
    assert panel.status.text() == "The variant was changed in the meantime. Repeat the measurement."
    assert texts(panel.table) == []


def test_an_onnx_file_of_the_dialog_is_compared_and_a_cancelled_dialog_changes_nothing(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked, formats = ["", "/models/net.onnx", "/other/net.onnx"], [], number_formats_of(context)

    def ask(parent: object, title: str, start: str, kinds: str) -> tuple[str, str]:
        asked.append((start, kinds))
        return answers.pop(0), ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", ask)
    begun: list[tuple[str, str]] = []
    monkeypatch.setattr(formats, "blame", lambda a, b, done, say: begun.append((a, b)))
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    left, choices = Qt.MouseButton.LeftButton, panel.b.count()
    for expected in ("int8", "/models/net.onnx", "/other/net.onnx"):
        qtbot.mouseClick(panel.file, left)
        qtbot.mouseClick(panel.causes, left)
        assert begun.pop() == ("fp32", expected)
    assert panel.b.count() == choices + 2
    assert panel.a.count() == choices
    assert asked == [(str(Path.home()), "ONNX models (*.onnx)")] * 3


def test_a_chip_that_is_dragged_far_enough_carries_its_format(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = NumberFormatsPanel(context)
    qtbot.addWidget(panel)
    panel.resize(600, 400)
    panel.show()
    carried, chosen = [], []

    def carry(drag: QDrag, action: Qt.DropAction) -> Qt.DropAction:
        carried.append((bytes(drag.mimeData().data(FORMAT_MIME).data()).decode(), drag.pixmap().isNull(), action))
        return action

    monkeypatch.setattr(QDrag, "exec", carry)
    monkeypatch.setattr(number_formats_of(context), "set_format", chosen.append)
    far = QApplication.startDragDistance() + 1
    for name in FORMATS:
        chip = panel.findChild(FormatChip, f"number_formats.{name}")
        assert chip is not None
        begin = QPoint(4, 6)
        QTest.mouseMove(chip, begin + QPoint(far, far))  # without a button
        QTest.mousePress(chip, Qt.MouseButton.LeftButton, pos=begin)
        _move(chip, begin + QPoint(2, 1))
        assert not carried
        assert chip.isDown()
        _move(chip, begin + QPoint(-far, 0))
        assert carried.pop() == (name, False, Qt.DropAction.CopyAction)
        assert not chip.isDown()
        QTest.mouseRelease(chip, Qt.MouseButton.LeftButton, pos=begin)
        assert not chosen
        QTest.mouseClick(chip, Qt.MouseButton.LeftButton, pos=begin)
        assert chosen.pop() == name
        assert str(FORMATS[name].bits) in chip.toolTip()


def test_renamed_and_exchanged_layers_are_listed_by_their_names(qtbot: QtBot, context: Context) -> None:
    panel = NumberFormatsPanel(context)
    qtbot.addWidget(panel)
    panel._rest.setInterval(0)
    for edit, names in (
        (lambda g: rename_layer(g, "conv", "first"), ["first", "last"]),
        (lambda g: rename_layer(g, "last", "second"), ["first", "second"]),
    ):
        context.root.do(edit)
        qtbot.waitUntil(lambda names=names: [row[0] for row in texts(panel.table)] == names, timeout=2000)
        context.root.undo()
        context.root.redo()
        qtbot.waitUntil(lambda: not panel._rest.isActive())
        assert [row[0] for row in texts(panel.table)] == names


def test_shares_of_another_network_go_also_while_something_else_is_measured(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats = number_formats_of(context)
    reply = BlameReply((BlamedOperator("conv", 0.25, 0.5), BlamedOperator("last", 0.75, 0.125)), 0.03, "conv")
    monkeypatch.setattr(formats, "blame", lambda a, b, done, say: done(reply))
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    busy = [False]
    monkeypatch.setattr(type(formats), "busy", property(lambda _: busy[0]))
    for busy[0] in (False, True):
        panel.results.setCurrentIndex(0)
        panel._clear()
        now, busy[0] = busy[0], False
        panel.causes.click()
        busy[0] = now
        assert len(texts(panel.table)) == 2
        kernel = "3x3" if context.root.graph["conv"].params.get("kernel") == "5x5" else "5x5"
        context.root.do(lambda g, kernel=kernel: set_params(g, {"conv": {"kernel": kernel}}))
        assert texts(panel.table) == []
        assert panel.results.currentIndex() == 0
        assert panel.first.isHidden()


def test_of_several_changed_variants_those_with_found_formats_are_measured_again(
    context: Context, variants: VariantsPanel, silent_engine: EngineClient
) -> None:
    root, again = context.root, variants._again
    plain = Variant("plain", "bf16")
    root.change_settings(variants=(found_by_search("first"), plain, found_by_search("third")))
    variants._judged = {variant.name: variant for variant in variants.variants}
    names = ("", "first", "plain", "third")
    variants._done(MeasureVariantsReply(tuple(VariantRow(n, 1024, 40.0, 0.9, None, None, 1.0) for n in names)))
    assert not again.isActive()
    root.change_settings(
        variants=(found_by_search("first", "float16"), replace(plain, precision="int8"), found_by_search("third"))
    )
    assert again.isActive()
    again.stop()
    again.timeout.emit()
    assert asked_variants(variants) == ["first"]
    variants.stop()


def _move(widget: QWidget, place: QPoint) -> None:
    """With the left button down."""
    at, left = QPointF(place), Qt.MouseButton.LeftButton
    event = QMouseEvent(
        QEvent.Type.MouseMove, at, widget.mapToGlobal(at), Qt.MouseButton.NoButton, left, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(widget, event)
