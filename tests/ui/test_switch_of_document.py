"""State that belongs to a document: what the window shows after a switch is what a window shows that had nothing else open."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = [
    pytest.mark.gui,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

from onnx_models import saved, small_network
from PySide6.QtWidgets import QLineEdit, QTableView, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines
from shown_state import WAIT, Shown, at_rest, differences, shown
from training_kit import make_run
from window_kit import open_window

from app.engine.protocol import BitsReply, LayerBits, PredictReply, SizePoint, TrainingMemoryRow
from app.ui.engine.analysis import analysis_of
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import profiling_of
from app.ui.engine.result import Phase
from app.ui.engine.training import training_of
from app.ui.inspector.subject import Kind
from app.ui.shell.window import MainWindow
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.graph import commands, template_commands
from designer.graph.frames import set_frame
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.precision.bits import LADDER
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.runtime.images import write_image

STAYS = (  # what a window keeps when another document is shown, by design
    "tabs ",  # both documents have a tab
    "action tab.",
    "menu &View > &Documents",
    "menu &File > Open &Recent",  # recent files
    "action file.reopen",  # documents that were closed
    "menu &File > &Reopen",
    "status status",  # the last message
    "status status.engine",  # whether the engine process runs
)
MEASURED = (  # times of this machine, and what depends on the room that their digits take
    "analysis analysis.output.output.zoom",
    "variants variants.table row 0 column 7",
    "analysis analysis.status",
    "network_overview network_overview.summary",
    "network_overview network_overview.legend",
    *(f"network_overview network_overview.steps row {row} column 1" for row in (*range(8), "2.0", "2.1")),
)
INSTALLED = (  # engines and devices of this machine
    *(f"network_settings network_settings.{name} item" for name in ("engine", "device", "precision")),
    "blame blame.a item",
    "blame blame.b item",
)
FROM_HISTORY = ("action edit.undo", "action edit.redo", "menu &Edit > &Undo", "menu &Edit > &Redo")


def layer(name: str, kind: str, x: int, *inputs: str, activation: str = "", **params: str) -> Layer:
    spec = ActivationSpec(activation) if activation else None
    return Layer(name, kind, (x, 0), tuple(Source(i) for i in inputs), params, spec)


def small() -> Graph:
    return Graph(
        [
            layer("input_image", "input", 0, dims="20x12x2"),
            layer("first", "convolution", 200, "input_image", features="5", activation="relu"),
            layer("second", "convolution", 400, "first", features="1"),
            layer("output", "output", 600, "second"),
        ],
        name="small",
    )


def large() -> Graph:
    """Noise, a mix, a branch and a frame; input and output are called as in the small network."""
    return Graph(
        [
            layer("input_image", "input", 0, dims="24x16x3"),
            layer("noise", "noise", 200, "input_image", scale="0.1"),
            layer("encode", "convolution", 400, "noise", features="4", kernel="3x3"),
            layer("decode", "convolution", 600, "encode", features="3", kernel="3x3"),
            Layer("side", "identity", (600, 240), (Source("encode"),)),
            layer("mix", "mix", 800, "noise", "decode"),
            layer("output", "output", 1000, "mix"),
        ],
        name="large",
        frames=[Frame("f", "part", rect=(380, -100, 400, 300))],
    )


def written(folder: Path, graph: Graph, settings: Settings | None = None) -> Path:
    path = folder / f"{graph.name}.xml"
    save_document(graph, path)
    if settings is not None:
        save_settings(settings, settings_path(path))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The documents, with a photo for the large one."""
    folder = tmp_path / "documents"
    folder.mkdir()
    photo = folder / "photo.png"
    write_image(photo, np.random.default_rng(1).random((1, 3, 16, 24), np.float32))
    ready = {"random_seed": 1, "threads": 1}
    written(folder, large(), Settings(input_files={"input_image": str(photo)}, **ready))
    written(folder, small(), Settings(**ready))
    return folder


@pytest.fixture
def opened(qtbot: QtBot, tmp_path: Path) -> Callable[..., MainWindow]:
    """Opens windows with their own settings and engine."""

    def window(*paths: Path) -> MainWindow:
        settings = tmp_path / str(len(list(tmp_path.iterdir())))
        settings.mkdir()
        made = open_window(qtbot, settings)
        made.start_engine_client()
        for path in paths:
            assert made.files.open(path)
        return made

    return window


def profile() -> Profile:
    """Two runs of the large network with made-up times."""

    def run(scale: float) -> ProfileRun:
        rows = tuple(
            OperatorProfile((name,), kind, time_ms=scale * time, spread_ms=0.01, flops=1000, bytes=100, bound="compute")
            for name, kind, time in (
                ("encode", "convolution", 3.0),
                ("decode", "convolution", 1.0),
                ("mix", "mix", 0.5),
            )
        )
        return ProfileRun(
            "onnxruntime", "fp32", "nchw", "cpu", 1, "24x16", 5.0 * scale, 0.1, rows, source=ValueSource.MEASURED
        )

    return Profile(Machine("Test CPU", 2), "large", (run(1.0), run(2.0)))


PROFILE = profile()


def choices(window: MainWindow) -> None:
    """Choices of the user about panels, not about a document: they stay."""
    docks = window.docks
    for panel, name, text in (
        ("operator_table", "operator_table.filter", "co"),
        ("type_checking", "type_checking.filter", "co"),
        ("palette", "palette.search", "con"),
        ("run_logger", "run_logger.batches", "1,2"),
        ("what_if", "what_if.size", "64x64"),
        ("import_report", "import_report.filter", "conv"),
    ):
        field = docks.panel(panel).findChild(QLineEdit, name)
        assert field is not None, name
        field.setText(text)
    table = docks.panel("operator_table")
    table.grouping.setCurrentIndex(table.grouping.findData("frame"))
    docks.panel("charts").tabs.setCurrentIndex(1)
    docks.panel("what_if").machine.setCurrentText("H100")
    docks.panel("channel_inspector").look_at(Kind.WEIGHTS)
    docks.panel("channel_inspector").probe.show_input.setChecked(True)


def with_runs(window: MainWindow) -> None:
    """The profiled runs of a session are compared across documents: the list is that of the window."""
    profiling = profiling_of(window.context)
    profiling.add(PROFILE)
    profiling.compare(tuple(profiling.entries))


def click(window: MainWindow, panel: str, name: str) -> None:
    button = window.docks.panel(panel).findChild(QWidget, name)
    assert button is not None, name
    assert button.isEnabled(), name
    button.click()


def use(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    """Fill every panel with something about the large network, and leave it with edits, a selection and errors."""
    context, docks = window.context, window.docks
    root = context.root
    docks.show("differences")
    context.comparison.with_saved()
    root.do(lambda g: commands.set_params(g, {"encode": {"kernel": "5x5"}}))
    root.do(lambda g: commands.remove_layers(g, ["side"], heal=True))
    root.undo()
    launch(qtbot, window)
    docks.show("analysis")
    click(window, "analysis", "analysis.output.output.adjust")
    docks.panel("analysis")._outputs["output"].display_bar.exposure.box.setValue(2.0)
    docks.show("channel_inspector")
    inspector = docks.panel("channel_inspector")
    inspector.look_at(Kind.OUTPUT)
    context.select(("encode",))
    inspector.inspect("encode")
    qtbot.waitUntil(lambda: inspector.page is not None, timeout=WAIT)
    inspector.enlarge(2)
    inspector.probe.toggle((2, 3, 4))
    at_rest(qtbot, window)
    inspector.look_at(Kind.WEIGHTS)
    at_rest(qtbot, window)
    with_runs(window)
    bits = dict.fromkeys(LADDER, 40.0)
    docks.show("number_formats")
    number_formats_of(context).set_format("int8", ["decode"])
    docks.panel("number_formats")._on_found(
        BitsReply((LayerBits("encode", 112, bits), LayerBits("decode", 111, bits)), (SizePoint(500, 40.0, {}),))
    )
    blame = docks.panel("blame")
    blame.a.setCurrentIndex(1)
    blame.compare_with_file(tmp_path / "exported.onnx")
    blame.b.setCurrentIndex(2)
    click(window, "blame", "blame.find")
    at_rest(qtbot, window)
    docks.show("graph_passes")
    click(window, "graph_passes", "graph_passes.compare")
    at_rest(qtbot, window)
    docks.show("variants")
    docks.panel("variants").add_variant(Variant("FP16", "fp16"))
    click(window, "variants", "variants.measure")
    at_rest(qtbot, window)
    reply = PredictReply(
        Profile(PROFILE.machine, "large", PROFILE.runs[:1]), (TrainingMemoryRow("encode", 1, 2, 3, 4),)
    )
    docks.panel("what_if")._show(reply, "H100")
    profiling_of(context).remove(profiling_of(context).entries[-1])
    profiling_of(context).compare(tuple(profiling_of(context).entries))
    train(qtbot, window, tmp_path)
    for panel in ("number_formats", "graph_passes", "variants", "what_if"):
        docks.panel(panel).status.show_message("the engine failed", "error")
    context.message.emit("error", "something failed")
    at_rest(qtbot, window)


def launch(qtbot: QtBot, window: MainWindow) -> None:
    window.run_analysis()
    qtbot.waitUntil(lambda: analysis_of(window.context).phase is Phase.READY, timeout=WAIT)


def train(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    """A finished run in the table, and a command that was refused."""
    window.context.root.project = project = tmp_path / "project"
    if not project.exists():
        run = make_run(project, "run", settings={"lr": 0.1})
        images = run.path / "validation" / "step_000020"
        images.mkdir(parents=True)
        write_image(images / "photo.png", np.full((1, 3, 4, 8), 0.5, np.float32))
    training = training_of(window.context)
    training.look()
    qtbot.waitUntil(lambda: len(training.runs) == 1, timeout=WAIT)
    training.use_weights(training.runs[0])
    qtbot.waitUntil(lambda: bool(training.problem), timeout=WAIT)


def same(before: Shown, after: Shown, *stays: str) -> None:
    found = differences(before, after, (*STAYS, *stays))
    assert not found, "\n".join(["", *found])


def test_a_document_is_shown_as_in_a_window_that_had_nothing_else_open(qtbot, opened, folder, tmp_path):
    small, large = folder / "small.xml", folder / "large.xml"
    window = opened(small)
    choices(window)
    with_runs(window)
    alone = shown(qtbot, window)
    recorded("small", alone)
    window.close_now()

    window = opened(large)
    choices(window)
    use(qtbot, window, tmp_path)
    recorded("large", shown(qtbot, window), alone)
    window.files.open(small)
    same(alone, shown(qtbot, window))

    window.files.open(broken(folder))
    find_problems(qtbot, window)
    recorded("broken", shown(qtbot, window), alone)
    window.files.open(small)
    same(alone, shown(qtbot, window))

    window.files.open(saved(small_network(), tmp_path))
    look_at_import(qtbot, window)
    recorded("imported", shown(qtbot, window), alone)
    window.files.open(small)
    same(alone, shown(qtbot, window))

    come_back(qtbot, window, large)
    predict_and_leave(qtbot, window, small)
    same(alone, shown(qtbot, window))

    come_back(qtbot, window, large)
    assert window.files.save_to(large)
    again = shown(qtbot, window)
    window.close_now()

    window = opened(large)
    choices(window)
    with_runs(window)
    train(qtbot, window, tmp_path)
    window.docks.panel("channel_inspector").inspect("encode")  # what was inspected and selected belongs to the document
    launch(qtbot, window)
    window.context.select(("encode",))
    same(shown(qtbot, window), again, *FROM_HISTORY, *MEASURED)


def recorded(name: str, now: Shown, since: Shown | None = None) -> None:
    compare(name, lines(now, (*MEASURED, *INSTALLED), since))


def look_at_import(qtbot: QtBot, window: MainWindow) -> None:
    """Wait for the report of an import and for its comparison with the original."""
    qtbot.waitUntil(lambda: window.context.root.imported is not None, timeout=WAIT)
    record = window.context.root.imported
    assert record is not None
    qtbot.waitUntil(lambda: not record.comparing and window.docks["import_report"].isVisible(), timeout=WAIT)


def come_back(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    """Show a document again that was left while it was analyzed."""
    window.files.open(path)
    qtbot.waitUntil(lambda: analysis_of(window.context).phase is Phase.READY, timeout=WAIT)


def predict_and_leave(qtbot: QtBot, window: MainWindow, other: Path) -> None:
    """Ask the engine for a prediction, and show another document before it answers."""
    entries = list(profiling_of(window.context).entries)
    click(window, "what_if", "what_if.predict")
    window.files.open(other)
    at_rest(qtbot, window)
    assert profiling_of(window.context).entries == entries


def broken(folder: Path) -> Path:
    """A network with two errors."""
    graph = large()
    graph.apply(commands.set_params(graph, {"encode": {"features": "-1"}, "input_image": {"dims": "nothing"}}))
    graph.properties["name"] = "broken"
    return written(folder, graph)


def find_problems(qtbot: QtBot, window: MainWindow) -> None:
    """Look at the second problem and its fixes, and try to run the network."""
    window.docks.show("type_checking")
    at_rest(qtbot, window)
    table = window.docks.panel("type_checking").findChild(QTableView, "type_checking.findings")
    assert table is not None
    table.selectRow(1)
    window.context.analysis_requested.emit()
    window.context.inference_requested.emit()
    at_rest(qtbot, window)


def test_edits_leave_nothing_behind(qtbot, opened, folder):
    """An edited document is shown as in a window that opens it so, and after undo as before."""
    path = folder / "large.xml"
    window = opened(path)
    root, context = window.context.root, window.context
    choices(window)
    with_runs(window)
    window.docks.show("advice")
    before = shown(qtbot, window)
    formats = number_formats_of(context)
    edits: list[Callable[[], object]] = [
        lambda: root.do(lambda g: commands.set_params(g, {"encode": {"kernel": "5x5"}, "noise": {"scale": "0.3"}})),
        lambda: root.do(lambda g: commands.set_activation(g, ["encode"], ActivationSpec("relu"))),
        lambda: root.do(lambda g: commands.remove_layers(g, ["decode"], heal=True)),
        lambda: root.do(lambda g: commands.add_layer(g, layer("new", "convolution", 900, features="-1"))),
        lambda: root.do(lambda g: commands.rename_layer(g, "side", "renamed")),
        lambda: root.do(lambda g: commands.set_property(g, "author_notes", "Mine")),
        lambda: root.do(lambda g: set_frame(g, "f", None)),
        lambda: root.do(lambda g: template_commands.make_template(g, ["renamed"], "part")),
        lambda: formats.set_format("int8", ["encode"]),
        lambda: root.change_settings(engine="torch", task="denoising"),
        lambda: root.change_settings(variants=(Variant("FP16", "fp16"),), variant="FP16"),
    ]
    for edit in edits:
        edit()
        at_rest(qtbot, window)
    assert window.files.save_to(path)
    edited = shown(qtbot, window)
    while window.actions_["edit.undo"].isEnabled():
        window.undo()
        at_rest(qtbot, window)
    added = "palette palette.operators"  # a search prefers types that were added recently
    same(before, shown(qtbot, window), *FROM_HISTORY, added, "title")
    window.close_now()

    window = opened(path)
    choices(window)
    with_runs(window)
    same(shown(qtbot, window), edited, *FROM_HISTORY, added)


def test_another_engine_and_back_and_reopening_leave_nothing_behind(qtbot, opened, folder, tmp_path):
    path = folder / "large.xml"
    window = opened(path)
    choices(window)
    launch(qtbot, window)
    before = shown(qtbot, window)
    use(qtbot, window, tmp_path)
    while window.context.root.undo() is not None:
        pass
    window.context.root.change_settings(engine="torch")
    at_rest(qtbot, window)
    window.undo()
    at_rest(qtbot, window)
    window.context.root.project = None
    assert window.files.close()
    window.actions_["file.reopen"].trigger()
    assert window.context.root.path == path
    for entry in list(profiling_of(window.context).entries):
        profiling_of(window.context).remove(entry)
    launch(qtbot, window)
    same(before, shown(qtbot, window), *MEASURED, "analysis analysis.output.output.zoom")
