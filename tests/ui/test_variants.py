"""The Variants panel with the real engine: edits of the list, undo, measurements, and the current variant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt

from app.engine.protocol import ProgressEvent
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.requests import difference, open_request, open_variant, run_settings, variant_options
from app.ui.precision.variants_panel import HEADERS, STATUS, VariantsPanel, precision_text
from designer.files.settings import Settings
from designer.files.variants import Variant
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image

pytestmark = pytest.mark.gui
PATIENCE = 240_000  # the engine imports torch


@pytest.fixture
def context(qapp):
    registry = load(entry_points=False)
    made = Context(registry)
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "16x12x3"}),
            Layer("conv", "convolution", params={"features": "3"}, inputs=(Source("image"),)),
            Layer("result", "output", inputs=(Source("conv"),)),
        ],
        name="small",
    )
    document = Document(graph, registry, parent=made)
    document.change_settings(random_seed=0, input_files={"image": "pattern:edges"})
    made.set_document(document)
    yield made
    if made.engine is not None:
        made.engine.close()


@pytest.fixture
def panel(qtbot, context) -> VariantsPanel:
    made = VariantsPanel(context)
    qtbot.addWidget(made)
    made.resize(900, 240)
    made.show()
    return made


def texts(panel: VariantsPanel) -> list[list[str]]:
    rows = [panel.table.topLevelItem(index) for index in range(panel.table.topLevelItemCount())]
    return [[row.text(column) for column in range(len(HEADERS))] for row in rows]


def add(panel: VariantsPanel, precision: str) -> None:
    action = next(a for a in panel.add.menu().actions() if a.objectName() == f"variants.add.{precision}")
    action.trigger()


def test_other_formats_of_layers_and_their_reasons_do_not_open_the_network_again() -> None:
    before = Variant("v", formats={"a": "int8"}, reasons={"a": "measured"})
    after = Variant("w", formats={"a": "float16"}, reasons={"a": "by hand"})
    settings = Settings(variants=(before,), variant="v")
    assert difference(settings, replace(settings, variants=(after,), variant="w")) == (False, set())
    for other in (replace(after, precision="fp16"), replace(after, formats={}), replace(after, passes=("fold",))):
        assert difference(settings, replace(settings, variants=(other,), variant="w")) == (True, set())


def test_variants_are_added_renamed_copied_and_deleted_with_undo(qtbot, context, panel):
    document = context.root
    add(panel, "fp16")
    add(panel, "fp16")
    assert [variant.name for variant in document.settings.variants] == ["FP16", "FP16 2"]
    assert panel.selected == "FP16 2"
    panel.table.currentItem().setText(0, "FP16")
    assert "already a variant 'FP16'" in panel.status.text()
    assert panel.table.currentItem().text(0) == "FP16 2"
    panel.table.currentItem().setText(0, "second")
    assert panel.selected == "second"
    qtbot.mouseClick(panel.duplicate, Qt.MouseButton.LeftButton)
    assert panel.selected == "second 2"
    qtbot.mouseClick(panel.delete, Qt.MouseButton.LeftButton)
    assert [variant.name for variant in document.settings.variants] == ["FP16", "second"]
    document.undo()
    assert [row[0] for row in texts(panel)[1:]] == ["FP16", "second", "second 2"]


def test_the_current_variant_is_marked_and_follows_its_name(qtbot, context, panel):
    document = context.root
    add(panel, "bf16")
    assert not panel.table.topLevelItem(0).icon(0).isNull()
    qtbot.mouseClick(panel.current, Qt.MouseButton.LeftButton)
    assert document.settings.variant == "BF16"
    assert texts(panel)[1][STATUS].startswith("current")
    assert not panel.current.isEnabled()
    panel.table.currentItem().setText(0, "brain")
    assert document.settings.variant == "brain"
    qtbot.mouseClick(panel.delete, Qt.MouseButton.LeftButton)
    assert (document.settings.variant, document.settings.variants) == ("", ())


def test_variants_are_measured_on_the_input(qtbot, context, panel):
    analysis_of(context)
    for precision in ("fp16", "int8", "fp32"):
        add(panel, precision)
    context.root.change_settings(
        variants=(*context.root.settings.variants, Variant("later", "fp8")),
    )
    with qtbot.waitSignal(panel.measured, timeout=PATIENCE):
        qtbot.mouseClick(panel.measure, Qt.MouseButton.LeftButton)
    itself, half, coarse, single, later = texts(panel)
    assert float(itself[7]) > 0
    assert float(half[3]) > float(coarse[3]) > 20
    assert single[3] == "equal"
    assert half[2] == "168 B"
    assert itself[2] == "336 B"
    assert "emulated" in half[STATUS]
    assert half[7] == "-"
    assert "'fp8', which is not known" in later[STATUS]
    with qtbot.waitSignal(context.root.changed):
        context.root.do(graph_with_more_features)
    assert texts(panel)[1][STATUS] == "not measured"


def graph_with_more_features(graph):
    from designer.graph.commands import set_params

    return set_params(graph, {"conv": {"features": "4"}})


def test_graph_passes_of_a_variant_are_chosen(qtbot, context, panel):
    add(panel, "fp32")
    actions = {action.objectName(): action for action in panel.passes.menu().actions()}
    actions["variants.passes.fuse_activations"].trigger()
    actions["variants.passes.fold_constants"].trigger()
    assert context.root.settings.variants[0].passes == ("fold_constants", "fuse_activations")
    assert texts(panel)[1][1] == "FP32, 2 passes"
    actions["variants.passes.fold_constants"].trigger()
    assert context.root.settings.variants[0].passes == ("fuse_activations",)


def test_formats_of_layers_are_counted():
    variant = Variant("x", "fp16", {"a": "float32", "b": "float32", "c": "int4"}, "2:4")
    assert precision_text(variant) == "FP16, 2 layers FP32, 1 layer int4, 2:4"


def test_layers_that_stay_in_float32_are_found_with_reasons_and_changed_by_hand(qtbot, context, panel, tmp_path):
    layers = [
        Layer("image", "input", params={"dims": "16x12x3"}),
        Layer("up", "scale_shift", params={"scale": "1e5"}, inputs=(Source("image"),)),
        Layer("down", "scale_shift", params={"scale": "1e-5"}, inputs=(Source("up"),)),
        Layer("dim", "scale_shift", params={"scale": "0.9"}, inputs=(Source("down"),)),
        Layer("result", "output", inputs=(Source("dim"),)),
    ]
    context.set_document(Document(Graph(layers, name="large"), context.registry, parent=context))
    write_image(tmp_path / "a.png", np.random.default_rng(0).random((1, 3, 12, 16), np.float32))
    (tmp_path / "broken.png").write_bytes(b"")
    dialog = panel.find_precision("mixed")
    assert not dialog.search.isEnabled()
    dialog.folder.setText(str(tmp_path))
    with qtbot.waitSignal(dialog.chosen, timeout=PATIENCE):
        qtbot.mouseClick(dialog.search, Qt.MouseButton.LeftButton)
    rows = [dialog.layers.topLevelItem(index) for index in range(dialog.layers.topLevelItemCount())]
    assert {row.text(0) for row in rows} == {"up", "down"}
    assert "65504" in rows[0].text(1)
    assert "1 file was skipped" in dialog.status.text()
    assert "BF16" in dialog.status.text()
    kept = rows[0].text(0)
    rows[1].setCheckState(0, Qt.CheckState.Unchecked)
    qtbot.mouseClick(dialog.add, Qt.MouseButton.LeftButton)
    (variant,) = context.root.settings.variants
    assert (variant.name, variant.precision) == ("Mixed", "fp16")
    assert variant.formats == {kept: "float32"}


def test_progress_counts_from_the_first_variant_to_the_last(panel):
    for done, text in ((0, "Running FP16 (1 of 2) ..."), (1, "Running FP16 (2 of 2) ...")):
        panel._advance(ProgressEvent(1, done, 2, "FP16"))
        assert panel.status.text() == text


# --- how the network is opened -------------------------------------------------------------------------------------

OTHERS = {  # another value than the usual one for every setting that the engine gets
    "weights": "/w", "random_seed": 7, "engine": "torch", "precision": "fp16", "layout": "nhwc", "device": "cuda", "threads": 3,
    "tile": 512,
}  # fmt: skip
IN_REQUEST = {"random_seed": "seed"}


def test_every_setting_of_the_engine_is_in_the_request_and_opens_the_network_again() -> None:
    plain = open_request(Settings(), "text")
    assert plain.document == "text"
    for name, value in OTHERS.items():
        other = Settings(**{name: value})
        expected = msgspec.structs.replace(plain, **{IN_REQUEST.get(name, name): value})
        assert open_request(other, "text") == expected != plain, name
        assert difference(Settings(), other) == (True, set()), name
        assert run_settings(other) != run_settings(Settings()), name
    assert plain.weights is None
    files = Settings(input_files={"a": "1", "b": "2"})
    for other, changed in (
        ({"a": "1"}, {"b"}),
        ({"a": "3", "b": "2"}, {"a"}),
        ({"c": "4", **files.input_files}, {"c"}),
    ):
        found = replace(files, input_files=other)
        assert difference(files, found) == (False, changed)
        assert run_settings(files) != run_settings(found)
    for name in ("iterations", "project", "task"):
        value = {"iterations": 7}.get(name, "other")
        other = Settings(**{name: value})
        assert difference(Settings(), other) == (False, set()), name
        assert run_settings(other) == run_settings(Settings()), name


@pytest.mark.parametrize("chosen", [None, "/chosen"])
@pytest.mark.parametrize("own", ["", "/own"])
def test_a_variant_is_opened_with_everything_that_it_has(context, chosen: str | None, own: str) -> None:
    document = context.root
    document.change_settings(**OTHERS)
    assert variant_options(document) == RunOptions("torch", "fp16", "nhwc", "cuda", 3, tile=512)
    document.change_settings(precision="fp32", device="cpu", layout="nchw")
    variant = Variant("v", "fp32", {"conv": "float16"}, "2:4", passes=("fold_constants",), weights=own)
    document.change_settings(variants=(variant,), variant="v")
    request = open_variant(document, Path(chosen) if chosen else None)
    options = variant_options(document)
    assert (request.weights, request.seed, request.threads, request.tile) == (chosen or own or "/w", 7, 3, 512)
    assert (request.engine, request.precision, request.layout, request.device) == (
        options.engine, options.precision, options.layout, options.device
    )  # fmt: skip
    assert (options.engine, options.threads, options.tile) == ("emulated", 3, 512)
    assert (request.formats, request.passes, request.sparsity) == ({"conv": "float16"}, ("fold_constants",), "2:4")
    document.change_settings(variant="")
    plain = open_variant(document)
    assert (plain.weights, plain.engine, plain.formats, plain.passes, plain.sparsity) == (
        "/w",
        "torch",
        {},
        (),
        "dense",
    )
