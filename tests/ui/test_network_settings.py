"""Network Settings: what is chosen lands in the document's settings, what is impossible says why, weights are reported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QLineEdit, QTableWidget, QToolButton, QWidget
from window_kit import empty, shown

from app.ui.canvas.canvas import Canvas
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.design.weights_report import WeightsCheck
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.context import Context
from app.ui.shell.files import Files
from app.ui.shell.model_import import ModelImport
from app.ui.shell.tabs import Tabs
from app.ui.widgets import run_choices
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.number_field import NumberField
from designer.files.document import read_document, save_document
from designer.files.settings import (
    MAX_ITERATIONS,
    MAX_SEED,
    MAX_THREADS,
    Settings,
    read_settings,
    save_settings,
    settings_path,
)
from designer.files.variants import Variant
from designer.graph import commands
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template, make_template
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.plugins import plugin_folder
from designer.runtime.engine_registry import default_engines


def small_graph() -> Graph:
    return Graph(
        [
            Layer("input_0", "input", params={"dims": "32x32x3"}),
            Layer("conv_0", "convolution", inputs=(Source("input_0"),), params={"features": "8"}),
            Layer("output_0", "output", inputs=(Source("conv_0"),)),
        ]
    )


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    context.set_document(Document(small_graph(), context.registry))
    return context


@pytest.fixture
def panel(qtbot, context):
    return shown(qtbot, NetworkSettingsPanel(context), 340, 640)


@pytest.fixture
def weights(tmp_path):
    np.save(tmp_path / "conv_0_kernel.npy", np.zeros((8, 3, 3, 3), np.float32))
    np.save(tmp_path / "conv_0_bias.npy", np.zeros(8, np.float32))
    return tmp_path


def get(panel, kind, name):
    found = panel.findChild(kind, f"network_settings.{name}")
    assert found is not None, name
    return found


def summary(panel) -> str:
    return get(panel, QLabel, "weights.summary").text()


def test_reports_of_weights_that_are_not_chosen_any_more_are_dropped(qapp, context, monkeypatch, tmp_path):
    check = WeightsCheck(qapp)
    shown, refused = [], []
    check.found.connect(shown.append)
    check.failed.connect(refused.append)
    monkeypatch.setattr(check._background, "start", lambda work: None)
    for answer in (check._done, check._failed):
        check.check(context.document, tmp_path)
        check.forget()
        answer(("old",))
    assert (shown, refused) == ([], [])
    check.check(context.document, tmp_path)
    check.forget()
    check.check(context.document, tmp_path / "other")
    check._done(("old",))  # the other folder is read now
    assert shown == []
    check._done(("new",))
    check.check(context.document, tmp_path)
    check._failed(("why",))
    assert (shown, refused) == ([("new",)], [("why",)])


def test_choosing_an_engine_changes_the_settings(qtbot, panel, context):
    box = get(panel, ChoiceBox, "engine")
    box.setFocus()
    with qtbot.waitSignal(context.document.settings_changed):
        qtbot.keyClick(box, Qt.Key.Key_Down)
    assert context.document.settings.engine == box.itemData(1) != "onnxruntime"
    assert context.document.history.undo_title == "Change engine"


def test_every_engine_is_a_choice_and_one_that_is_not_installed_says_how_to_get_it(qtbot, context, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "openvino" else found(name, *more)
    )
    panel = NetworkSettingsPanel(context)
    qtbot.addWidget(panel)
    box = get(panel, ChoiceBox, "engine")
    shown = {box.itemData(i): (box.itemText(i), box.model().item(i).isEnabled()) for i in range(box.count())}
    assert shown["onnxruntime"] == ("ONNX Runtime", True)
    assert shown["torch"] == ("PyTorch", True)
    text, enabled = shown["openvino"]
    assert not enabled
    assert 'pip install "layerwright[openvino]"' in text


def test_an_engine_plugin_that_is_broken_is_a_problem_with_its_name_and_reason(qtbot, context):
    folder = plugin_folder()
    folder.mkdir(parents=True)
    (folder / "fast_engine.py").write_text("raise RuntimeError('no licence')")
    default_engines.cache_clear()
    try:
        panel = NetworkSettingsPanel(context)
        qtbot.addWidget(panel)
        text = get(panel, QLabel, "engines.message").text()
        assert "fast_engine.py" in text
        assert "RuntimeError: no licence" in text
        box = get(panel, ChoiceBox, "engine")
        assert box.model().item(box.findData("torch")).isEnabled()
    finally:
        default_engines.cache_clear()


def test_what_an_engine_does_not_offer_says_which_one_does(panel, context):
    context.document.change_settings(engine="openvino")
    layout, device = get(panel, ChoiceBox, "layout"), get(panel, ChoiceBox, "device")
    assert not layout.model().item(layout.findData("nhwc")).isEnabled()
    assert "PyTorch on CUDA" in device.model().item(device.findData("cuda:0")).toolTip()


def test_what_is_impossible_is_disabled_with_the_reason(panel):
    box = get(panel, ChoiceBox, "precision")
    half = box.model().item(box.findData("fp16"))
    assert not half.isEnabled()
    assert "CUDA" in half.toolTip()
    assert box.model().item(box.findData("fp32")).isEnabled()


def test_settings_of_another_machine_are_shown_with_the_reason(panel, context):
    context.document.change_settings(engine="torch", device="cuda:7", precision="fp16")
    text = get(panel, QLabel, "choices.message").text()
    assert "cuda:7" in text
    assert get(panel, ChoiceBox, "device").currentData() == "cuda:7"


def test_half_precision_is_possible_on_a_cuda_device():
    assert [c.reason for c in run_choices.precisions("torch", "cuda:0")] == ["", "", ""]
    assert run_choices.precisions("onnxruntime", "cpu")[1].reason


@pytest.mark.parametrize(
    ("name", "field", "typed", "value"),
    [("threads", "threads", "3", 3), ("iterations", "iterations", "250", 250)],
)
def test_numbers_are_typed(qtbot, panel, context, name, field, typed, value):
    widget = get(panel, NumberField, name)
    widget.setFocus()
    widget.selectAll()
    qtbot.keyClicks(widget, typed)
    assert getattr(context.document.settings, field) == value


def test_a_wrong_number_says_the_rule_and_is_not_taken(qtbot, panel, context):
    widget = get(panel, NumberField, "iterations")
    widget.setFocus()
    widget.selectAll()
    qtbot.keyClicks(widget, "0")
    assert "from 1 to" in get(panel, QLabel, "iterations.message").text()
    assert context.document.settings.iterations == Settings().iterations


@pytest.mark.parametrize(("name", "low"), [("threads", 0), ("iterations", 1), ("seed", 0)])
def test_a_number_is_taken_within_its_bounds_only(qtbot, panel, context, name, low):
    context.document.change_settings(random_seed=7, threads=7, iterations=7)
    field, key = get(panel, NumberField, name), "random_seed" if name == "seed" else name
    high = {"threads": MAX_THREADS, "iterations": MAX_ITERATIONS, "seed": MAX_SEED}[name]
    for text, taken in (
        *((str(number), low <= number <= high) for number in (low - 1, low, low + 1, high - 1, high, high + 1)),
        ("٣", False), ("1.0", False), ("", False), (f" {high} ", True), ("2" * 12, False), ("1e2", False), ("²", False),
    ):  # fmt: skip
        context.document.change_settings(**{key: 7})
        field.set_text("")
        field.edited.emit(text)
        assert getattr(context.document.settings, key) == (int(text) if taken else 7), text
        assert bool(get(panel, QLabel, f"{key}.message").text()) is not taken


def test_random_weights_are_chosen_explicitly(qtbot, panel, context):
    seed = get(panel, NumberField, "seed")
    assert context.document.settings.random_seed is None
    assert not seed.isEnabled()
    qtbot.keyClick(get(panel, QCheckBox, "random"), Qt.Key.Key_Space)
    assert context.document.settings.random_seed == 0
    seed.setFocus()
    seed.selectAll()
    qtbot.keyClicks(seed, "41")
    assert context.document.settings.random_seed == 41
    qtbot.keyClick(get(panel, QCheckBox, "random"), Qt.Key.Key_Space)
    assert context.document.settings.random_seed is None


def test_weights_in_nobody_s_folder_are_a_name_like_another(qtbot, panel, context):
    line = get(panel, QLineEdit, "weights")
    line.setFocus()
    qtbot.keyClicks(line, "~nobody-of-that-name")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert context.document.settings.weights.endswith("~nobody-of-that-name")


def test_typed_weights_are_a_place_from_the_home_folder_the_document_or_the_root(qtbot, context, tmp_path, monkeypatch):
    """A document without a file has its home in the user's; an imported one has no file of its own."""
    home, folder = tmp_path / "home", tmp_path / "nets"
    monkeypatch.setenv("HOME", str(home))
    panel = shown(qtbot, NetworkSettingsPanel(context), 340, 640)
    line = get(panel, QLineEdit, "weights")
    for path, imported, base in ((None, False, home), (folder / "net.xml", False, folder), (None, True, home)):
        document = Document(small_graph(), context.registry, path, parent=context)
        if imported:
            document.imported = ImportRecord(folder / "model.onnx", ImportReport("model"), document)
        context.set_document(document)
        for text, place in (
            ("w.npz", base / "w.npz"), (" a/w.npz ", base / "a" / "w.npz"), ("~/w.npz", home / "w.npz"), (f"{tmp_path}/w.npz", tmp_path / "w.npz"),
        ):  # fmt: skip
            line.setFocus()
            line.selectAll()
            qtbot.keyClicks(line, text)
            qtbot.keyClick(line, Qt.Key.Key_Return)
            assert document.settings.weights == line.text() == str(place)
            changes = []
            document.settings_changed.connect(lambda changes=changes: changes.append(1))
            qtbot.keyClick(line, Qt.Key.Key_Return)
            assert not changes, "it is the same place"
        line.clear()
        assert document.settings.weights == ""
        document.undo()
        assert line.text() == document.settings.weights != ""


def test_typed_weights_are_reported_and_follow_the_network(qtbot, panel, context, weights):
    line = get(panel, QLineEdit, "weights")
    line.setFocus()
    qtbot.keyClicks(line, str(weights))
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert context.document.settings.weights == str(weights)
    qtbot.waitUntil(lambda: summary(panel) == "2 of 2 tensors bound.")
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "9"}}))
    qtbot.waitUntil(lambda: summary(panel) == "0 of 2 tensors bound, 2 wrong shape.")
    qtbot.mouseClick(get(panel, QToolButton, "weights.details"), Qt.MouseButton.LeftButton)
    table = get(panel, QTableWidget, "weights.tensors")
    assert table.isVisible()
    assert [table.item(0, c).text() for c in range(4)] == ["conv_0.bias", "wrong shape", "9", "8"]


def test_weights_of_the_same_place_are_reported_anew_for_another_document(qtbot, panel, context, weights):
    """Not for a setting that has nothing to do with them."""
    view = panel._report
    asked = []
    view._check.check = lambda document, path: asked.append((document, path))
    other = Document(small_graph(), context.registry, parent=context)
    for document in (other, context.document):
        context.set_document(document)
        document.change_settings(weights=str(weights))
        assert asked.pop() == (document, weights)
        asked.clear()
        document.change_settings(threads=3)
        assert asked == []
    context.set_document(other)
    assert asked == [(other, weights)]


def test_a_changed_setting_is_an_unsaved_change_until_it_is_undone(qtbot, context):
    document = context.document
    for change in (lambda: document.change_settings(threads=3), document.undo):
        with qtbot.waitSignal(document.clean_changed) as told:
            change()
        assert told.args == [document.history.is_clean]


def test_settings_that_are_set_without_an_undo_step_are_shown(panel, context, weights):
    """As by an import whose weights come after the network."""
    context.document.restore_settings(weights=str(weights))
    assert get(panel, QLineEdit, "weights").text() == str(weights)
    assert context.document.history.undo_title is None


def test_missing_and_unexpected_tensors_are_counted(qtbot, panel, context, weights):
    (weights / "conv_0_bias.npy").rename(weights / "other_bias.npy")
    context.document.change_settings(weights=str(weights))
    qtbot.waitUntil(lambda: summary(panel) == "1 of 2 tensors bound, 1 missing, 1 unexpected.")


def test_a_location_that_is_none_says_so(qtbot, panel, context, tmp_path):
    context.document.change_settings(weights=str(tmp_path / "nowhere"))
    qtbot.waitUntil(lambda: "nowhere" in summary(panel))
    context.document.change_settings(weights="")
    assert summary(panel).startswith("No weights selected")


def test_a_folder_is_chosen_in_the_dialog(qtbot, panel, context, weights, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(weights))
    qtbot.mouseClick(get(panel, QToolButton, "weights.folder"), Qt.MouseButton.LeftButton)
    assert context.document.settings.weights == str(weights)
    qtbot.waitUntil(lambda: summary(panel).startswith("2 of 2"))


def test_the_dialogs_for_weights_begin_at_the_generated_project(qtbot, panel, context, tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *given: begun.append(given[2]) or "")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *given: (begun.append(given[2]), ("", ""))[1])
    context.set_document(Document(small_graph(), context.registry, tmp_path / "net.xml"))

    def begins() -> str:
        begun.clear()
        for button in ("weights.folder", "weights.file"):
            qtbot.mouseClick(get(panel, QToolButton, button), Qt.MouseButton.LeftButton)
        assert len(set(begun)) == 1
        return begun[0]

    assert begins() == str(tmp_path)
    (tmp_path / f"{small_graph().name}_pytorch").mkdir()
    assert begins() == str(tmp_path / f"{small_graph().name}_pytorch")
    (tmp_path / "elsewhere" / "weights").mkdir(parents=True)
    context.document.project = tmp_path / "elsewhere"
    assert begins() == str(tmp_path / "elsewhere" / "weights")
    context.document.change_settings(weights=str(tmp_path / "elsewhere" / "weights" / "best.pt"))
    assert begins() == str(tmp_path / "elsewhere" / "weights")


def test_settings_beside_a_document_are_read_with_it(qtbot, panel, context, tmp_path):
    path = tmp_path / "net.xml"
    save_document(small_graph(), path)
    save_settings(Settings(iterations=77, threads=2, random_seed=5), settings_path(path))
    context.set_document(Document(small_graph(), context.registry, path))
    assert get(panel, NumberField, "iterations").text() == "77"
    assert get(panel, NumberField, "threads").text() == "2"
    assert get(panel, QCheckBox, "random").isChecked()


def test_without_a_document_it_says_what_will_stand_here(qtbot):
    panel = NetworkSettingsPanel(Context(default_registry()))
    qtbot.addWidget(panel)
    assert empty(panel).text().startswith("Open or create")


def files_of(qtbot, window, context, folder) -> Files:
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    tabs = Tabs(context, canvas, window)
    qtbot.addWidget(tabs.bar)
    models = ModelImport(window, context, tabs)
    return Files(window, context, QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat), tabs, models)


def test_changed_settings_are_saved_beside_the_document(qtbot, context, tmp_path):
    path = tmp_path / "net.xml"
    save_document(small_graph(), path)
    window = QWidget()
    qtbot.addWidget(window)
    files = files_of(qtbot, window, context, tmp_path)
    assert files.open(path)
    context.document.change_settings(iterations=33, weights=str(tmp_path / "weights"))
    assert not settings_path(path).exists()
    assert files.save()
    assert read_settings(settings_path(path)).settings.iterations == 33
    assert files.open(path)
    assert context.document.settings.weights == str(tmp_path / "weights")
    assert files.save_to(tmp_path / "copy.xml")
    assert read_settings(settings_path(tmp_path / "copy.xml")).settings.iterations == 33


def test_settings_of_a_new_document_wait_for_its_first_saving(qtbot, context, tmp_path):
    window = QWidget()
    qtbot.addWidget(window)
    files = files_of(qtbot, window, context, tmp_path)
    files.new()
    context.document.change_settings(threads=2)
    assert files.save_to(tmp_path / "new.xml")
    assert read_settings(settings_path(tmp_path / "new.xml")).settings.threads == 2


def test_settings_are_steps_of_the_one_history(context, tmp_path):
    document = context.document
    document.history.mark_clean()
    document.change_settings(precision="bf16")
    document.do(lambda g: commands.set_property(g, "name", "other"))
    document.change_settings(iterations=2)
    document.change_settings(iterations=25)
    assert not document.history.is_clean
    assert document.history.undo_title == "Change iterations"
    document.undo()
    assert (document.settings.iterations, document.settings.precision) == (Settings().iterations, "bf16")
    document.undo()
    document.undo()
    assert document.settings == Settings()
    assert document.history.is_clean
    document.redo()
    assert document.settings.precision == "bf16"


def test_files_follow_the_name_of_their_layer_in_one_step(context):
    document = context.document
    name = next(iter(document.graph.layers))
    document.change_settings(input_files={name: "/tmp/a.png"})
    document.do(lambda g: commands.rename_layer(g, name, "photo"))
    assert dict(document.settings.input_files) == {"photo": "/tmp/a.png"}
    document.undo()
    assert dict(document.settings.input_files) == {name: "/tmp/a.png"}
    assert document.history.redo_title == f"Rename {name} to photo"


def test_number_formats_follow_the_names_of_their_layers():
    """Also those inside of templates; formats and files of deleted layers do not pass to a layer that gets their name."""
    port, inner = Layer("x", "template_input"), Layer("conv", "convolution", inputs=(Source("x"),))
    template = Template("block", (port, inner, Layer("y", "template_output", inputs=(Source("conv"),))))
    layers = [Layer(name, "template", params={"template": "block"}) for name in ("a", "b")]
    document = Document(Graph([*layers, Layer("c", "convolution")], templates=[template]), default_registry())
    formats = {"a.conv": "int8", "b.conv": "float16", "c": "bfloat16", "gone": "int8", "gone.conv": "int8"}
    document.change_settings(
        variants=(Variant("v", formats=formats, reasons=dict(formats)),), input_files={"gone": "/a.png", "c": "/c.png"}
    )
    before = document.settings
    document.do(lambda g: commands.rename_layer(g, "a", "gone"))
    document.do(lambda g: commands.rename_layer(g, "c", "d.e"))
    document.do(lambda g: edit_template(g, "block", commands.rename_layer(g.inside("block"), "conv", "core")))
    (variant,) = document.settings.variants
    assert variant.formats == variant.reasons == {"gone.core": "int8", "b.core": "float16", "d.e": "bfloat16"}
    assert document.settings.input_files == {"d.e": "/c.png"}
    for _ in range(3):
        document.undo()
    assert document.settings == before


def test_tiles_are_chosen_and_an_own_size_of_a_file_is_kept(context, panel) -> None:
    box = get(panel, ChoiceBox, "tile")
    assert box.currentText() == "automatic"
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Down)
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert context.document.settings.tile == 256
    context.document.change_settings(tile=100)
    assert box.currentText() == "100 x 100 pixels"


def test_settings_of_the_2022_tool_say_how_the_network_runs_instead(qtbot, tmp_path):
    """Half precision on a GPU became fp16 by ONNX Runtime on the CPU, which no run accepts."""
    data = Path(__file__).parent.parent / "data" / "good"
    model = tmp_path / "unet_2022.nv-neural-model"
    model.write_bytes((data / "unet_2022.nv-neural-model").read_bytes())
    model.with_suffix(".nv-editor-cfg").write_bytes((data / "unet_2022.nv-editor-cfg").read_bytes())
    graph = read_document(model).graph
    context = Context(default_registry())
    document = Document(graph, context.registry, model, parent=context)
    assert "settings-adapted" in {d.code for d in document.diagnostics()}
    context.set_document(document)
    panel = NetworkSettingsPanel(context)
    qtbot.addWidget(panel)
    message = panel.findChild(QLabel, "network_settings.engines.message")
    assert "fp16 cuda 0" in message.text()
    assert document.settings.precision == "fp32"
    document.change_settings(engine="torch")
    assert "fp16" not in message.text()


def test_number_formats_follow_layers_into_a_template_and_back():
    layers = [Layer(name, "convolution", inputs=(Source(read),)) for name, read in (("a", "in"), ("b", "a"))]
    document = Document(Graph([Layer("in", "input"), *layers]), default_registry())
    document.change_settings(variants=(Variant("v", formats={"a": "int8", "b": "float16", "in": "float16"}),))
    before = document.settings
    document.do(lambda g: make_template(g, ["a", "b"], "pair"))
    (variant,) = document.settings.variants
    assert variant.formats == {"pair_0.a": "int8", "pair_0.b": "float16", "in": "float16"}
    document.undo()
    assert document.settings == before


def test_the_message_about_a_wrong_number_goes_with_a_right_one(qtbot, panel, context):
    iterations, message = get(panel, NumberField, "iterations"), get(panel, QLabel, "iterations.message")
    for text, wrong in (("0", True), ("12", False), ("x", True), ("12", False)):
        iterations.setFocus()
        iterations.selectAll()
        qtbot.keyClicks(iterations, text)
        qtbot.keyClick(iterations, Qt.Key.Key_Return)
        assert bool(message.text()) is wrong
    assert context.root.settings.iterations == 12


@pytest.mark.parametrize(
    ("name", "key"), [("threads", "threads"), ("iterations", "iterations"), ("seed", "random_seed")]
)
def test_a_wrong_number_stays_with_its_message_while_others_change(qtbot, panel, context, name, key):
    context.document.change_settings(random_seed=3)
    field = get(panel, NumberField, name)
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "x9")
    for focus in (True, False):
        if not focus:
            get(panel, QLineEdit, "weights").setFocus()
        before = context.document.settings.tile
        context.document.change_settings(tile=256 if before != 256 else 512)
        assert field.text() == "x9"
        assert get(panel, QLabel, f"{key}.message").text().startswith("'x9' must be")
        assert [
            get(panel, QLabel, f"{each}.message").text() for each in {"threads", "iterations", "random_seed"} - {key}
        ] == ["", ""]


@pytest.mark.parametrize("engine", [engine.name for engine in default_engines()])
def test_a_device_is_possible_if_the_chosen_engine_has_it_whatever_others_lack(engine, monkeypatch):
    registry = default_engines()
    real = type(registry).devices

    def devices(self, descriptor):
        why = "" if descriptor.name == engine else "another engine is not installed"
        return [(device, count, why) for device, count, _ in real(self, descriptor)]

    monkeypatch.setattr(type(registry), "devices", devices)
    own = {device.kind for device, _, _ in registry.devices(registry.engines[engine])}
    assert own
    for choice in run_choices.devices(engine):
        assert (choice.reason == "") is (choice.value.partition(":")[0] in own), choice


def test_a_file_of_weights_is_chosen_in_the_dialog(qtbot, panel, context, weights, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: (str(weights / "all.npz"), ""))
    panel._ask_file()
    assert context.root.settings.weights == str(weights / "all.npz")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: ("", ""))
    panel._ask_file()
    assert context.root.settings.weights == str(weights / "all.npz")
