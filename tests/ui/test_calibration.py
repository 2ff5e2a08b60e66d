"""INT8 in the window: calibration in a dialog, the variant with its reasons, kept layers on the canvas, changes by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytest.importorskip("torch")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QFileDialog
from restoration_networks import restoring_unet

from app.engine.protocol import ChoosePrecisionReply
from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.precision.precision_dialog import INT8_FP16, PrecisionDialog
from app.ui.precision.variants_panel import STATUS, VariantsPanel
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.operators.registry import load
from designer.runtime.images import write_image

PATIENCE = 100_000  # the engine imports torch
KEPT = {"enc_0_a": "first layer", "last": "last layer", "sum": "residual addition"}


@pytest.fixture
def context(qapp):
    made = Context(load(entry_points=False))
    document = Document(restoring_unet(4, 32), made.registry, parent=made)
    document.change_settings(random_seed=0, input_files={"image": "pattern:edges"})
    made.set_document(document)
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def panel(qtbot, context):
    made = VariantsPanel(context)
    qtbot.addWidget(made)
    made.resize(1200, 300)
    made.show()
    return made


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    random = np.random.default_rng(0)
    for name in "ab":
        write_image(folder / f"{name}.png", random.random((1, 3, 32, 32), np.float32))
    (folder / "broken.png").write_bytes(b"")
    write_image(folder / "small.png", random.random((1, 3, 8, 8), np.float32))
    return folder


def find(qtbot, dialog: PrecisionDialog) -> None:
    with qtbot.waitSignal(dialog.chosen, timeout=PATIENCE):
        qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)


def rows(dialog: PrecisionDialog) -> dict[str, object]:
    items = [dialog.layers.topLevelItem(index) for index in range(dialog.layers.topLevelItemCount())]
    return {item.text(0): item for item in items}


def test_a_calibration_becomes_a_variant_with_its_report(qtbot, context, panel, images, tmp_path, monkeypatch):
    dialog = panel.find_precision("int8")
    dialog.folder.setText(str(images))
    dialog.method.setCurrentIndex(dialog.method.findData("percentile"))
    assert dialog.percentile.isEnabled()
    find(qtbot, dialog)
    text = dialog.status.text()
    assert "dB against FP32 on 2 images" in text
    assert "2 files were skipped (broken.png:" in text
    assert "8 x 8 pixels are fewer than 32 x 32" in text
    found = rows(dialog)
    assert {name: item.text(1) for name, item in found.items() if item.checkState(0) is Qt.CheckState.Checked} == KEPT
    sensitive = found["dec_0_b"]
    dialog.layers.scrollToItem(sensitive)
    place = dialog.layers.visualItemRect(sensitive).center()
    with qtbot.waitSignal(context.reveal_requested) as shown:
        qtbot.mouseClick(dialog.layers.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert shown.args == ["dec_0_b"]
    assert float(sensitive.text(2)) > 10
    assert float(sensitive.text(3)) > 10
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "report.json"), ""))
    qtbot.mouseClick(dialog.save, Qt.MouseButton.LeftButton)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["calibration"]["method"] == "percentile"
    assert [entry["layer"] for entry in report["kept"]] == list(KEPT)
    sensitive.setCheckState(0, Qt.CheckState.Checked)
    qtbot.mouseClick(dialog.add, Qt.MouseButton.LeftButton)
    (variant,) = context.root.settings.variants
    assert variant.calibration == CalibrationRecipe(str(images), method="percentile", form="onnxruntime")
    assert variant.reasons == {**KEPT, "dec_0_b": BY_HAND}
    assert set(variant.formats.items()) == {(name, "float32") for name in (*KEPT, "dec_0_b")}
    with qtbot.waitSignal(panel.measured, timeout=PATIENCE):
        panel.launch()
    row = panel.table.topLevelItem(1)
    assert "changed by hand" in row.text(1)
    assert row.text(STATUS) == "measured"
    assert float(row.text(3)) > 25
    assert float(row.text(7)) > 0


def test_a_calibration_is_stopped_and_errors_are_shown(qtbot, context, panel, images, tmp_path):
    dialog = panel.find_precision(INT8_FP16)
    dialog.folder.setText(str(images))
    before = context.root.settings
    qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
    assert dialog.search.text() == "Stop"
    qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
    assert dialog.status.text() == "Stopped. Nothing was changed."
    assert not dialog.add.isEnabled()
    for folder, size, words in ((tmp_path, "", "the folder has no images"), (images, "big", "'big' is not a size")):
        dialog.folder.setText(str(folder))
        dialog.pixels.setText(size)
        qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda words=words: words in dialog.status.text(), timeout=PATIENCE)
    dialog.reject()
    assert context.root.settings == before


def test_a_result_of_other_choices_is_not_kept(context, panel):
    dialog = panel.find_precision("int8")
    dialog.folder.setText("a")
    for change in (
        lambda: dialog.folder.setText("b"),
        lambda: dialog.count.setValue(3),
        lambda: dialog.pixels.setText("64x64"),
        lambda: dialog.method.setCurrentIndex(1),
        lambda: dialog.percentile.setValue(99.0),
        lambda: dialog.runtime.setCurrentIndex(1),
        lambda: dialog.budget.setValue(50.0),
    ):
        dialog._done(ChoosePrecisionReply("int8", 40.0, True, {"last": "last layer"}, 2))
        assert dialog.add.isEnabled()
        change()
        assert not dialog.add.isEnabled()
        assert (dialog.layers.topLevelItemCount(), dialog.status.text()) == (0, "")
    dialog.reject()


def test_kept_layers_are_marked_on_the_canvas_and_changed_by_hand(qtbot, context):
    formats = dict.fromkeys(KEPT, "float32")
    found = Variant("INT8", "int8", formats, reasons=KEPT, calibration=CalibrationRecipe("images"))
    context.root.change_settings(variants=(found,), variant="INT8")
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(900, 600)
    canvas.show()
    marks = canvas.formats.item

    def tips() -> list[str]:
        canvas.formats.refresh()
        return sorted(badge.tip for badge in marks.badges)

    assert tips() == ["FP32: first layer", "FP32: last layer", "FP32: residual addition"]
    badge = next(each for each in marks.badges if "first" in each.tip)
    assert marks.tip_at(badge.rect.center()) == "FP32: first layer"
    assert not marks.tip_at(QPointF(-1e6, 0))
    number_formats_of(context).set_format("int8", ["last"])
    number_formats_of(context).set_format("float16", ["dec_0_a"])
    (variant,) = context.root.settings.variants
    assert variant.reasons == {**KEPT, "last": BY_HAND, "dec_0_a": BY_HAND}
    assert "last" not in variant.formats
    assert tips() == [
        "FP16: changed by hand", "FP32: first layer", "FP32: residual addition", "INT8: changed by hand",
    ]  # fmt: skip
    context.root.undo()
    context.root.undo()
    assert context.root.settings.variants == (found,)
    context.root.change_settings(variant="")
    assert not tips()


def test_a_changed_variant_is_measured_again(qtbot, context, panel):
    reasons = {"last": "last layer"}
    found = Variant("half", "fp16", {"last": "float32"}, reasons=reasons)
    context.root.change_settings(variants=(found,), variant="half")
    with qtbot.waitSignal(panel.measured, timeout=PATIENCE):
        panel.launch()
    before = panel.table.topLevelItem(1).text(3)
    with qtbot.waitSignal(panel.measured, timeout=PATIENCE):
        number_formats_of(context).set_format("int4", ["last"])
        assert panel.table.topLevelItem(1).text(3) == "-"
    after = panel.table.topLevelItem(1).text(3)
    assert float(after) < float(before)
    assert "changed by hand" in panel.table.topLevelItem(1).text(1)
