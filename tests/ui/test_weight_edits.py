"""Edits of a layer together with its weights, in the window: one undo step each that says what it did to the result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import analysis_kit as kit
from engine_kit import ScriptedEngine
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QLabel, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.engine.protocol import SurgeryRequest
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.weight_edits import WeightEdits
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.profile.advice_panel import AdvicePanel
from app.ui.widgets.number_field import NumberField
from designer.files.weight_versions import is_version, weight_versions
from designer.files.weights import load_weights, random_weights, required_weights, save_weights
from designer.graph.commands import replace_layers
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.surgery.sparsity import violations

engine_is_let_go = kit.engine_is_let_go


def network() -> Graph:
    """A noisy image through two convolutions, so that results are measured against the clean image."""

    def conv(name: str, source: str, features: int) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params={"features": str(features)})

    return Graph(
        [
            Layer("input_0", "input", params={"dims": "24x16x3"}),
            Layer("noise_0", "noise", inputs=(Source("input_0"),), params={"scale": "0.1"}),
            conv("conv_0", "noise_0", 6),
            conv("conv_1", "conv_0", 3),
            Layer("output_0", "output", inputs=(Source("conv_1"),)),
        ]
    )


class Bench(kit.Launched):
    """A document with weights in a file of the user."""

    def __init__(self, qtbot: QtBot, engine: EngineClient, folder: Path, graph: Graph | None = None) -> None:
        super().__init__(qtbot, engine)
        self.document: Document = self.open(graph or network())
        self.weights = folder / "trained.safetensors"
        save_weights(self.weights, random_weights(required_weights(self.document.inference), 3).tensors)
        self.document.change_settings(weights=str(self.weights), input_files={"input_0": str(kit.picture(folder))})
        self.original = self.weights.read_bytes()
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.edits = WeightEdits(self.context, self.window)
        self.surgery = weight_surgery_of(self.context)

    @property
    def title(self) -> str:
        return self.document.history.undo_title or ""

    def done(self) -> object:
        return self.qtbot.waitSignal(self.surgery.done, timeout=kit.WAIT)


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Bench(qtbot, engine, tmp_path)


def test_widening_says_that_the_function_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.context.select(("conv_0",))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *args: (9, True))
    with bench.done():  # type: ignore[attr-defined]
        bench.edits.set_channels()
    assert bench.title.startswith("Widen conv_0 by 3: function kept (difference ")
    assert bench.document.graph["conv_0"].params["features"] == "9"
    version = Path(bench.document.settings.weights)
    assert is_version(version)
    assert load_weights(version, required_weights(bench.document.inference)).complete
    bench.document.undo()
    assert bench.document.graph == network()
    assert bench.document.settings.weights == str(bench.weights)
    assert bench.weights.read_bytes() == bench.original
    bench.document.redo()
    assert bench.document.settings.weights == str(version)


def test_removing_a_channel_says_what_it_costs(bench: Bench, qtbot: QtBot) -> None:
    inspector = ChannelInspectorPanel(bench.context)
    qtbot.addWidget(inspector)
    inspector.show()
    inspector.inspect("conv_0")
    bench.analysis.launch()
    qtbot.waitUntil(lambda: inspector.page is not None, timeout=kit.WAIT)
    inspector.enlarge(2)
    button = inspector.findChild(QWidget, "channel_inspector.remove_channel")
    assert button.isVisible()
    with bench.done():  # type: ignore[attr-defined]
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert bench.title.startswith("Remove channel 2 of conv_0: changed: ")
    assert bench.title.endswith(" dB on this image")
    assert bench.document.graph["conv_0"].params["features"] == "5"
    before = load_weights(bench.weights, required_weights(Document(network(), bench.context.registry).inference))
    after = load_weights(Path(bench.document.settings.weights), required_weights(bench.document.inference))
    for key, tensor in after.tensors.items():
        axis = {"conv_0": 0, "conv_1": 1}[key.layer] if (key.layer, key.tensor) != ("conv_1", "bias") else None
        expected = before.tensors[key] if axis is None else np.delete(before.tensors[key], 2, axis)
        np.testing.assert_array_equal(tensor, expected)


@pytest.mark.parametrize(
    ("operation", "layer", "title"),
    [
        ("split", "conv_1", "Split conv_1: function kept"),
        ("identity", "conv_1", "Insert identity convolution_0: function"),
    ],
)
def test_other_operations_keep_the_function(bench: Bench, operation: str, layer: str, title: str) -> None:
    bench.context.select((layer,))
    with bench.done():  # type: ignore[attr-defined]
        {"split": bench.edits.split, "identity": bench.edits.insert_identity}[operation]()
    assert bench.title.startswith(title)


def test_saving_writes_where_the_user_wants(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.context.select(("conv_1",))
    with bench.done():  # type: ignore[attr-defined]
        bench.edits.split()
    target = tmp_path / "split.safetensors"
    asked = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: asked.append(args) or (str(target), ""))
    bench.document.mark_saved(tmp_path / "denoise.xml")
    bench.edits.save_weights()
    assert asked[0][2] == str(tmp_path / "denoise.safetensors")
    assert bench.document.settings.weights == str(target)
    assert load_weights(target, required_weights(bench.document.inference)).complete
    assert bench.surgery.unsaved() is None
    assert bench.weights.read_bytes() == bench.original
    bench.document.undo()  # the edited weights, which have no place yet
    unsaved = bench.surgery.unsaved()
    assert unsaved is not None
    assert (str(unsaved), unsaved.is_file()) == (bench.document.settings.weights, True)
    for weights in (str(bench.weights), str(tmp_path), ""):
        bench.document.change_settings(weights=weights)
        assert bench.surgery.unsaved() is None
    assert weight_surgery_of(Context(bench.context.registry)).unsaved() is None  # without a document


FILES = {  # of the document and of the model that it was imported from: what is proposed
    "saved": ("here/net.xml", None, "here/net.safetensors"),
    "imported": (None, "models/resnet.onnx", "models/small.safetensors"),
    "imported and saved": ("here/net.xml", "models/resnet.onnx", "here/net.safetensors"),
    "new": (None, None, "home/small.safetensors"),
}


@pytest.mark.parametrize("case", FILES)
def test_the_proposed_file_of_weights_is_where_the_document_comes_from(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path, source, expected = FILES[case]
    context = Context(default_registry())
    document = Document(Graph(list(network()), name="small"), context.registry, parent=context)
    document.change_settings(weights=str(tmp_path / "weights.npz"))
    context.set_document(document)
    if source is not None:
        document.imported = ImportRecord(tmp_path / source, ImportReport(source), document)
    if path is not None:
        document.mark_saved(tmp_path / path)
    asked: list[str] = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: asked.append(args[2]) or ("", ""))
    window = QWidget()
    qtbot.addWidget(window)
    WeightEdits(context, window).save_weights()
    assert asked == [str(tmp_path / expected)]


def test_a_layer_that_cannot_be_edited_says_why(bench: Bench, qtbot: QtBot) -> None:
    bench.context.select(("conv_1",))
    with qtbot.waitSignal(bench.context.message, check_params_cb=lambda kind, text: kind == "error") as blocker:
        bench.surgery.operate("features", "conv_1", features=4)
    assert "he channels of 'conv_1' cannot change: 'output_0' (Output) needs all of them" in blocker.args[1]
    assert bench.document.graph == network()
    assert not weight_versions().exists()


def test_without_weights_the_remedy_is_named(bench: Bench, qtbot: QtBot) -> None:
    bench.document.change_settings(weights="")
    with qtbot.waitSignal(bench.context.message) as blocker:
        bench.surgery.operate("split", "conv_1")
    assert blocker.args == ["error", "The network has no trained weights. Choose them in Network Settings."]


def features_field(bench: Bench, layer: str) -> NumberField:
    panel = ParametersPanel(bench.context, bench.window)
    panel.show()
    bench.context.select((layer,))
    return panel.findChild(NumberField, "parameters.features")


def type_in(field: NumberField, text: str) -> None:
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def test_the_layer_editor_changes_channels_with_their_weights_in_one_step(bench: Bench) -> None:
    field = features_field(bench, "conv_0")
    with bench.done():  # type: ignore[attr-defined]
        type_in(field, "12")
        field.finished.emit()  # again, since the focus leaves the field
    assert bench.title.startswith("Widen conv_0 by 6: function kept (difference ")
    assert bench.document.graph["conv_0"].params["features"] == "12"
    with bench.done():  # type: ignore[attr-defined]
        type_in(field, "5")
    assert bench.title.startswith("Narrow conv_0 to 5: ")
    version = Path(bench.document.settings.weights)
    assert load_weights(version, required_weights(bench.document.inference)).complete
    bench.document.undo()
    bench.document.undo()
    assert bench.document.graph == network()
    assert bench.document.settings.weights == str(bench.weights)
    assert field.text() == "6"


def test_typing_changes_nothing_until_it_ends(bench: Bench) -> None:
    field = features_field(bench, "conv_0")
    field.selectAll()
    QTest.keyClicks(field, "6*2")
    assert bench.document.graph == network()
    with bench.done():  # type: ignore[attr-defined]
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert bench.title.startswith("Widen conv_0 by 6: function kept (difference ")


def test_a_number_of_channels_that_is_typed_during_an_edit_follows_it(bench: Bench, qtbot: QtBot) -> None:
    field = features_field(bench, "conv_0")
    with bench.done():  # type: ignore[attr-defined]
        type_in(field, "12")
        type_in(field, "9")
        type_in(field, "8")
    assert bench.title.startswith("Widen conv_0 by 6: ")
    with bench.done():  # type: ignore[attr-defined]
        pass
    assert bench.title.startswith("Narrow conv_0 to 8: ")
    assert load_weights(Path(bench.document.settings.weights), required_weights(bench.document.inference)).complete
    assert field.text() == "8"
    bench.document.undo()
    bench.document.undo()
    assert bench.document.graph == network()


def test_the_layer_editor_says_why_weights_do_not_follow(bench: Bench, qtbot: QtBot) -> None:
    field = features_field(bench, "conv_1")
    with qtbot.waitSignal(bench.context.message, check_params_cb=lambda kind, text: kind == "warning") as blocker:
        type_in(field, "4")
    assert "The weights do not follow: the channels of 'conv_1' cannot change" in blocker.args[1]
    assert bench.document.graph["conv_1"].params["features"] == "4"
    assert bench.document.settings.weights == str(bench.weights)


def test_a_layer_inside_a_template_is_edited_in_every_instance(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    graph = network()
    graph.apply(make_template(graph, ["conv_0"], "block"))
    bench = Bench(qtbot, engine, tmp_path, graph)
    assert bench.context.enter("block_0")
    field = features_field(bench, "conv_0")
    with bench.done():  # type: ignore[attr-defined]
        type_in(field, "8")
    assert bench.title.startswith("Widen block_0.conv_0 by 2: function kept")
    assert bench.document.graph.inside("block")["conv_0"].params["features"] == "8"
    assert load_weights(Path(bench.document.settings.weights), required_weights(bench.document.inference)).complete
    bench.document.undo()
    assert bench.document.graph == graph
    bench.context.select(("conv_0",))
    monkeypatch.setattr(QInputDialog, "getInt", lambda *args: (9, True))
    with bench.done():  # type: ignore[attr-defined]
        bench.edits.set_channels()
    assert bench.title.startswith("Widen block_0.conv_0 by 3: function kept")


def test_a_channel_selected_inside_a_template_is_removed_from_every_instance(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    graph = network()
    graph.apply(make_template(graph, ["conv_0"], "block"))
    second = replace(graph["block_0"], name="block_1", inputs=(Source("block_0"),))
    reader = replace(graph["conv_1"], inputs=(Source("block_1"),))
    graph.apply(replace_layers(graph, {"block_1": second, "conv_1": reader}, "", {}))
    bench = Bench(qtbot, engine, tmp_path, graph)
    inspector = ChannelInspectorPanel(bench.context)
    qtbot.addWidget(inspector)
    inspector.show()
    assert bench.context.enter("block_1")
    bench.context.inspect_requested.emit("block_1.conv_0")
    bench.analysis.launch()
    qtbot.waitUntil(lambda: inspector.page is not None, timeout=kit.WAIT)
    inspector.enlarge(5)
    before = load_weights(bench.weights, required_weights(bench.document.inference))
    with bench.done():  # type: ignore[attr-defined]
        inspector.remove_channel()
    assert bench.title.startswith("Remove channel 5 of block_1.conv_0: changed: ")
    assert [step.instance for step in bench.context.scope] == ["block_1"]
    assert bench.document.graph.inside("block")["conv_0"].params["features"] == "5"
    after = load_weights(Path(bench.document.settings.weights), required_weights(bench.document.inference))
    assert after.complete
    for key, tensor in after.tensors.items():
        expected = before.tensors[key]
        if key.layer != "conv_1":
            expected = np.delete(expected, 5, 0)
        if key.tensor == "kernel" and key.layer != "block_0.conv_0":
            expected = np.delete(expected, 5, 1)
        np.testing.assert_array_equal(tensor, expected)
    qtbot.waitUntil(lambda: inspector.page is not None and len(inspector.page.values) == 5, timeout=kit.WAIT)
    bench.document.undo()
    assert bench.document.graph == graph
    assert bench.document.settings.weights == str(bench.weights)


def test_advice_folds_a_batch_normalization_in_one_click(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    graph = network()
    normalization = Layer("norm_0", "batch_normalization", inputs=(Source("conv_0"),))
    graph.apply(
        replace_layers(
            graph, {"norm_0": normalization, "conv_1": replace(graph["conv_1"], inputs=(Source("norm_0"),))}, "", {}
        )
    )
    bench = Bench(qtbot, engine, tmp_path, graph)
    panel = AdvicePanel(bench.context, bench.window)
    qtbot.addWidget(panel)
    panel.show()
    row = OperatorProfile(("norm_0",), "batch_normalization", 9.0, 0.1)
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "24x16", 10.0, 0.1, (row,), iterations=3)
    profiling_of(bench.context).add(Profile(Machine("Test CPU", 2), "net", (run,)))
    number = [advice.rule for advice in panel.advice].index("unfolded-normalization")
    button = panel.findChildren(QPushButton, f"advice.{number}.apply")[-1]
    with bench.done():  # type: ignore[attr-defined]
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert "norm_0" not in bench.document.graph
    assert "function kept" in bench.title
    assert panel.findChild(QLabel, "advice.applied.saving").text() == "not measured yet"
    bench.document.undo()
    assert bench.document.graph == graph
    assert bench.document.settings.weights == str(bench.weights)


def test_pruning_says_first_that_it_gains_nothing_here(bench: Bench) -> None:
    def answer(button: int) -> None:
        box = next(box for box in bench.window.findChildren(QMessageBox, "prune") if box.isVisible())
        assert "gains no speed here" in box.text()
        QTest.mouseClick(box.buttons()[button], Qt.MouseButton.LeftButton)

    graph = network()
    wide = replace(graph["conv_0"], params={"features": "8"})
    bench.document.do(lambda graph: replace_layers(graph, {"conv_0": wide}, "Widen", {}))
    save_weights(bench.weights, random_weights(required_weights(bench.document.inference), 3).tensors)
    QTimer.singleShot(0, lambda: answer(1))
    bench.edits.prune()
    assert bench.title == "Widen"
    QTimer.singleShot(0, lambda: answer(0))
    with bench.done():  # type: ignore[attr-defined]
        bench.edits.prune()
    assert bench.title.startswith("Prune to 2:4 sparsity: changed: ")
    kernel = load_weights(Path(bench.document.settings.weights), required_weights(bench.document.inference))
    (conv,) = [tensor for key, tensor in kernel.tensors.items() if (key.layer, key.tensor) == ("conv_1", "kernel")]
    assert violations(conv) == 0
    bench.document.undo()
    assert bench.document.settings.weights == str(bench.weights)


def test_a_number_of_channels_for_a_document_that_was_left_is_not_set_in_another_one(
    qtbot: QtBot, tmp_path: Path
) -> None:
    engine = ScriptedEngine()
    context = Context(default_registry())
    context.engine = engine  # type: ignore[assignment]
    documents = [Document(network(), context.registry, parent=context) for _ in range(2)]
    for document in documents:
        document.change_settings(weights=str(tmp_path / "weights.npz"))
    context.set_document(documents[0])
    surgery = weight_surgery_of(context)
    for leave in (False, True):
        for features in (3, 4, 5):  # the first is carried out, and the last one follows
            surgery.operate("features", "conv_0", features=features)
        (asked,) = engine.requests(SurgeryRequest)
        assert asked.features == 3
        if leave:
            context.set_document(documents[1])
        engine.next(SurgeryRequest).fail((Diagnostic("no-surgery", "it cannot be done"),))
        done: list[None] = []
        QTimer.singleShot(0, lambda done=done: done.append(None))
        qtbot.waitUntil(lambda done=done: bool(done))
        assert [request.features for request in engine.requests(SurgeryRequest)] == ([] if leave else [5])
        if not leave:
            engine.next(SurgeryRequest).fail((Diagnostic("no-surgery", "it cannot be done"),))
