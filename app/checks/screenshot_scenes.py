"""What the images show next to the workspaces and panels: templates, problems, differences, inspector, comparison, dialogs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QDialog, QTableView

import samples
from app.checks.screenshots import Photographer, pause, wait
from app.opened_network import load_weights_for, open_network
from app.ui.compare.pictures import ViewMode
from app.ui.document.recovery_dialog import RecoveryDialog
from app.ui.document.unsaved import UnsavedDialog
from app.ui.engine.analysis import analysis_of
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.training import StartRequest, training_of
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.subject import Kind
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.number_formats_panel import NumberFormatsPanel
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.panels import ANALYSIS, DESIGN, TRAIN
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.train.training_panel import TrainingPanel
from designer.files.disk_watch import digest_of
from designer.files.document import parse_document
from designer.files.journal import Journal
from designer.files.recovery import unfinished
from designer.files.variants import Variant
from designer.graph import commands, frames
from designer.graph.model import Frame
from designer.training.watched_run import RunState, WatchedRun
from exporters.onnx import export_onnx

SIDE = (1280, 820)  # of the window Side by Side; photographs make large files
PLACE = (1, 86, 56)  # channel, x, y: at the eye


@contextmanager
def readable_folder() -> Iterator[Path]:
    """A temporary folder with a name that images may show."""
    home = Path(tempfile.gettempdir(), "networks")
    home.mkdir()
    try:
        yield home
    finally:
        shutil.rmtree(home)


def alone(at: Photographer, name: str) -> None:
    """Open a sample and take all other tabs away, with what was changed in them."""
    window = at.window
    before = window.tabs.all
    assert window.files.open(samples.path(name))
    for opened in before:
        if opened is not window.tabs.shown and opened in window.tabs.all:
            window.tabs.remove(opened)
    window.docks.set_workspace(DESIGN)
    window.docks.show("parameters")


def inspector(at: Photographer) -> None:
    """Channels, filters, a gradient, and one channel with a pinned place; the overview next to it."""
    context, docks = at.window.context, at.window.docks
    docks.set_workspace(ANALYSIS)
    docks.show("channel_inspector")
    panel = docks.panel("channel_inspector")
    assert isinstance(panel, ChannelInspectorPanel)
    analysis = analysis_of(context)
    wait(lambda: panel.page is not None and not analysis.stale)
    panel.look_at(Kind.WEIGHTS)
    wait(lambda: panel.page is not None)
    pause(600)
    at.keep(panel, "inspector_weights")
    panel.look_at(Kind.OUTPUT)
    wait(lambda: panel.page is not None)
    panel.enlarge(PLACE[0])
    panel.probe.toggle(PLACE)
    wait(lambda: panel.probe.field.box is not None)
    pause(600)
    at.keep(panel, "inspector_probe")
    panel.look_at(Kind.GRADIENT)
    wait(lambda: panel.page is not None)
    pause(600)
    at.keep(panel, "inspector_gradient")
    panel.look_at(Kind.OUTPUT)
    panel.probe.unpin()
    panel.probe.show_input.setChecked(False)
    wait(lambda: panel.page is not None)


def playing(at: Photographer) -> None:
    """A folder as input, with what plays it."""
    window, context = at.window, at.window.context
    analysis = analysis_of(context)
    analysis.inputs.set_file("input_image", samples.PHOTOGRAPHS)
    wait(lambda: window.playback.ends and not analysis.stale)
    before = analysis.result
    window.playback.step_all(1)
    wait(lambda: analysis.result is not before and not analysis.stale)
    pause(500)
    at.keep(window.docks.panel("analysis"), "panel_analysis_playlist")


def templates(at: Photographer) -> None:
    """Instances and a collapsed frame outside, the path above the canvas inside."""
    window, context = at.window, at.window.context
    alone(at, "residual_blocks.xml")
    window.files.open(samples.path("oidn_like.xml"))
    window.tabs.step(-1)
    frame = Frame("tail", title="The noise", rect=(690, 100, 440, 300))
    context.root.do(lambda g: frames.set_frame(g, frame.id, frame))
    members = window.canvas.projection.members
    context.root.do(lambda g: frames.collapse(g, [], [frame.id], members))
    context.select(("group_1",))
    window.canvas.frame_all()
    pause(500)
    at.keep(window, "window_template")
    context.enter("group_1")
    context.enter("block_1")
    window.canvas.frame_all()
    context.select(("conv_1",))
    pause(500)
    at.keep(window, "window_inside")
    context.set_scope(())


def differences(at: Photographer) -> None:
    """Compared with the saved version: what was added, changed and removed, in the list and on the canvas."""
    window, context = at.window, at.window.context
    alone(at, "dncnn.xml")
    graph = context.root.graph
    first, *_, last = [n for n in graph.order()[0] if graph[n].type == "convolution"]
    context.root.do(lambda g: commands.set_params(g, {first: {"kernel": "5x5", "features": "32"}}))
    context.root.do(lambda g: commands.remove_layers(g, [g.order()[0][4]], heal=True))
    layer = replace(graph[last], name="conv_new", position=(graph[last].position[0], 320))
    context.root.do(lambda g: commands.add_layer(g, layer))
    window.docks.show("differences")
    context.comparison.with_saved()
    context.select((first,))
    window.canvas.frame_all()
    pause(600)
    at.keep(window, "window_differences")
    context.comparison.stop()
    window.docks["differences"].hide()


def problems(at: Photographer) -> None:
    """A network with a rule broken, and the fixes for it."""
    window, context = at.window, at.window.context
    alone(at, "denoiser.xml")
    context.root.do(lambda g: commands.set_params(g, {"conv_down_1": {"stride": "3x3"}}))
    window.docks.show("type_checking")
    table = window.docks.panel("type_checking").findChild(QTableView, "type_checking.findings")
    wait(lambda: table.model().rowCount() > 0)
    table.selectRow(0)
    context.select(("concat_3",))
    window.canvas.frame_all()
    pause(800)
    at.keep(window, "window_problems")


def side_by_side(at: Photographer) -> None:
    """Two networks on the same noisy image, over a folder, and in a blind vote."""
    window = at.window
    window.context.root.undo()
    window.files.open(samples.path("dncnn.xml"))
    window.tabs.step(-1)
    side = window.compare_side_by_side()
    side.resize(*SIDE)
    wait(lambda: not side.model.busy and side.model.measured.figures)
    pause(500)
    at.keep(side, "side_grid")
    side.bar.set_mode(ViewMode.SPLIT)
    at.keep(side, "side_split")
    side.bar.set_mode(ViewMode.DIFFERENCE)
    side.figures.step(1)
    at.keep(side, "side_difference")
    side.pictures.mark_region(None, "")
    side.bar.set_mode(ViewMode.GRID)
    side.bar.zoom(0.0)
    side.tabs.setCurrentWidget(side.folder)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "photographs"
        folder.mkdir()
        for path in sorted(samples.PHOTOGRAPHS.glob("*.jpg"))[:6]:
            (folder / path.name).symlink_to(path)
        side.folder.folder.setText(str(folder))
        side.folder.start()
        wait(lambda: not side.folder_run.running and len(side.folder_run.rows) == 6, 300)
        pause(1500)
        side.folder.folder.setText("photographs")
        at.keep(side, "side_folder")
    side.tabs.setCurrentWidget(side.voting)
    side.voting.count.setValue(6)
    side.voting.start()
    at.keep(side, "side_vote")
    side.close()


def documents(at: Photographer) -> None:
    """Tabs, a file that another program changed, and what is asked after a crash and before changes are lost."""
    window = at.window
    with readable_folder() as home:
        paths = [home / name for name in ("oidn_like.xml", "dncnn.xml", "denoiser.xml")]
        for path in paths:
            path.write_bytes(samples.path(path.name).read_bytes())
        crash(paths[2])
        alone(at, "residual_blocks.xml")
        window.files.open_all(paths[:2])
        window.context.root.do(lambda g: commands.set_property(g, "author_notes", "mine"))
        paths[0].write_bytes(paths[0].read_bytes().replace(b"3x3", b"5x5"))
        window.disk.check()
        at.keep(window, "window_documents")
        left = unfinished()
        show(at, RecoveryDialog(left, window))
        show(at, UnsavedDialog([path.name for path in paths], window))
        show(at, ShortcutsDialog(window.actions_.shortcuts, window))
        show(at, PictureDialog(window.context, window.canvas, ".png", window))
        for item in left:
            item.discard()


def imported(at: Photographer) -> None:
    """An ONNX file with its report, and what is asked before a module is imported."""
    window = at.window
    alone(at, "residual_blocks.xml")
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "residual_blocks.onnx"
        network = open_network(samples.path("residual_blocks.xml"))
        export_onnx(network.graph, network.registry, load_weights_for(network, None, 1), path)
        before = window.tabs.all
        window.files.open(path)
        wait(lambda: (record := window.context.root.imported) is not None and not record.comparing)
        for opened in before:
            window.tabs.remove(opened)
        window.docks.panel("import_report")
        window.context.select((next(iter(window.context.root.graph.layers)),))
        window.canvas.frame_all()
        pause(800)
        at.keep(window, "window_import")
        source = Path(home) / "models.py"
        source.write_text("class Denoiser(nn.Module):\n    pass\n")
        dialog = ModuleDialog(window.settings, Path(home), lambda _source: None, window)
        dialog.module.setText("models.py")
        show(at, dialog)
    window.docks["import_report"].hide()


def precisions(at: Photographer) -> None:
    """Variants measured on a photo, number formats of layers with their heat, and the operators that cause a difference."""
    window, context, docks = at.window, at.window.context, at.window.docks
    alone(at, "dncnn.xml")
    analysis_of(context).inputs.set_file("input_image", samples.HELD_OUT)
    docks.show("variants")
    variants = docks.panel("variants")
    assert isinstance(variants, VariantsPanel)
    for variant in (Variant("FP16", "fp16"), Variant("BF16", "bf16"), Variant("INT8", "int8")):
        variants.add_variant(variant)
    measured: list[bool] = []
    variants.measured.connect(lambda: measured.append(True))
    variants.launch()
    wait(lambda: measured, 600)
    at.keep(variants, "panel_variants_measured")

    docks.show("number_formats")
    formats = number_formats_of(context)
    formats.set_formats({"conv_3": "int8", "conv_4": "int8", "conv_5": "float16"})
    panel = docks.panel("number_formats")
    assert isinstance(panel, NumberFormatsPanel)
    panel.measure.click()
    wait(lambda: not formats.busy, 900)
    panel.heat.setCurrentIndex(1)
    window.canvas.frame_all()
    pause(800)
    at.keep(window, "window_number_formats")
    panel.heat.setCurrentIndex(0)

    docks.show("blame")
    blame = docks.panel("blame")
    assert isinstance(blame, BlamePanel)
    blame.causes.click()
    wait(lambda: not formats.busy, 900)
    pause(800)
    at.keep(window, "window_blame")
    context.heat_requested.emit(None)
    for name in ("blame", "number_formats", "variants"):
        docks[name].hide()


def training(at: Photographer) -> None:
    """Two short runs of a small network: their curves and validation images."""
    window, context, docks = at.window, at.window.context, at.window.docks
    before = window.tabs.all
    with readable_folder() as home:
        document = home / "denoiser.xml"
        shutil.copy(samples.starting_point("denoiser"), document)
        assert window.files.open(document)
        for opened in before:
            window.tabs.remove(opened)
        docks.set_workspace(TRAIN)
        photos = home / "photos"
        shutil.copytree(samples.PHOTOGRAPHS, photos)
        panel = docks.panel("training")
        assert isinstance(panel, TrainingPanel)
        panel.form.set_text("data", str(photos))
        controller = training_of(context)

        def finished() -> list[WatchedRun]:
            return [run for run in controller.runs if run.snapshot.state is RunState.FINISHED]

        def trained(count: int) -> bool:
            return len(finished()) == count

        for number, rate in enumerate(("0.003", "0.001"), 1):
            options = {
                "data": str(photos),
                "steps": "60",
                "validate_every": "15",
                "batch": "4",
                "patch": "32",
                "lr": rate,
            }
            controller.start(StartRequest(controller.project(), options, "denoising"))
            wait(partial(trained, number), 600)
        controller.choose(finished())
        window.canvas.frame_all()
        pause(1500)
        at.keep(window, "window_train")
        docks.set_workspace(DESIGN)
        alone(at, "residual_blocks.xml")


def show(at: Photographer, dialog: QDialog) -> None:
    """A dialog alone."""
    dialog.show()
    pause(400)
    at.keep(dialog, f"dialog_{dialog.objectName()}")
    dialog.close()


def crash(path: Path) -> None:
    """Leave a journal as a process does that ends before it saves."""
    data = path.read_bytes()
    graph = parse_document(data).graph
    assert graph is not None
    journal = Journal(graph, path, digest_of(data))
    journal.record(graph.apply(commands.remove_layers(graph, [list(graph.layers)[3]], heal=True)))
    journal.abandon()


SCENES = (
    inspector,
    playing,
    templates,
    differences,
    problems,
    side_by_side,
    documents,
    imported,
    precisions,
    training,
)
