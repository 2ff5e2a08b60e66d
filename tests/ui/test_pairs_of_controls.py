"""The controls of dialogs and panels are used in every order of two; what each use changes is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

import analysis_kit
from control_walk import ControlWalk
from profile_kit import RUN, context, profile_of, profiling
from PySide6.QtCore import QSettings
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QFileDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from side_kit import network, photograph
from test_recorded_design import workshop
from training_kit import Runs, project_context
from window_kit import shown

from app.ui.canvas.canvas import Canvas
from app.ui.compare.variants import VariantChoice
from app.ui.compare.window import SideWindow
from app.ui.design.code_view import CodeViewPanel
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.design.palette import PalettePanel
from app.ui.design.type_checking import TypeCheckingPanel
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController
from app.ui.engine.training import StartRequest
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.number_formats_panel import NumberFormatsPanel
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.precision_dialog import TARGETS, PrecisionDialog
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.profile.charts import ChartsPanel
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.utilization import UtilizationPanel
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.shell.window import declared_actions
from app.ui.train import place_choice, sweep_dialog
from app.ui.train.health_panel import HealthPanel
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.sweep_dialog import SweepDialog
from app.ui.train.training_panel import TrainingPanel
from app.ui.train.validation_panel import ValidationPanel
from app.ui.widgets import run_choices
from app.ui.widgets.run_choices import Choice
from designer.files.variants import Variant
from designer.operators.registry import default_registry

__all__ = ["context", "profiling"]


@pytest.fixture(autouse=True)
def equal_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines and devices are those of every machine, and dialogs that wait for an answer are cancelled."""
    monkeypatch.setattr(run_choices, "engines", lambda: (Choice("one", "One"), Choice("two", "Two")))
    monkeypatch.setattr(run_choices, "devices", lambda engine: (Choice("cpu", f"CPU of {engine}"),))
    monkeypatch.setattr(run_choices, "precisions", lambda engine, device: (Choice("fp32", "FP32"),))
    for name, nothing in (
        ("getOpenFileName", ("", "")),
        ("getOpenFileNames", ([], "")),
        ("getSaveFileName", ("", "")),
        ("getExistingDirectory", ""),
    ):
        monkeypatch.setattr(QFileDialog, name, lambda *_args, nothing=nothing: nothing)
    monkeypatch.setattr(QFileDialog, "open", lambda dialog: dialog.deleteLater())
    for kind in (QDialog, QMessageBox):
        monkeypatch.setattr(kind, "exec", lambda _dialog: 0)


def record(name: str, walk: ControlWalk, most: int = 10_000) -> None:
    assert len(walk.acts) > 1
    compare(f"pairs_{name}", walk.walk(most))


def test_shortcuts(qtbot: QtBot, tmp_path: Path) -> None:
    settings = QSettings(str(tmp_path / "keys.ini"), QSettings.Format.IniFormat)
    dialog = ShortcutsDialog(Shortcuts(settings, declared_actions()), None)
    shown(qtbot, dialog, 700, 600)
    keys = iter(["Ctrl+Alt+J", "Ctrl+S", "F9"] * 100)
    acts = {
        "a key": lambda: dialog.editor.setKeySequence(QKeySequence(next(keys))),
        "save": lambda: dialog.select("file.save"),
        "open": lambda: dialog.select("file.open"),
    }
    record("shortcuts", ControlWalk(qtbot, dialog, without=("shortcuts.close", "shortcuts.list"), acts=acts))


@pytest.fixture
def design(qtbot: QtBot, tmp_path: Path) -> Context:
    made = Context(default_registry())
    made.set_document(Document(workshop(), made.registry, tmp_path / "net.xml", parent=made))
    return made


DESIGN = {
    "type_checking": TypeCheckingPanel,
    "network_settings": NetworkSettingsPanel,
    "palette": PalettePanel,
    "parameters": ParametersPanel,
}


@pytest.mark.parametrize("name", DESIGN)
def test_design(qtbot: QtBot, design: Context, name: str) -> None:
    panel = DESIGN[name](design)
    shown(qtbot, panel, 400, 700)
    acts = {
        f"select {' and '.join(names) or 'nothing'}": lambda names=names: design.select(names)
        for names in (("first",), ("second",), ("first", "second"), ("block",), ())
    }
    acts["undo"] = design.document.undo
    record(
        name,
        ControlWalk(
            qtbot,
            panel,
            (design,),
            acts=acts,
            without=("network_settings.weights",),
            unread=("network_settings.sizes",),
        ),
        300,
    )


EXPORTS = {
    "onnx": OnnxExportDialog,
    "pytorch": PyTorchExportDialog,
    "deploy": DeployExportDialog,
    "tensorrt": TensorRtExportDialog,
}


@pytest.mark.parametrize("kind", EXPORTS)
def test_exports(qtbot: QtBot, context: Context, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    context.root.restore_settings(
        variants=(Variant("half", "fp16"), Variant("plain")),
        weights=str(tmp_path / "own.pt"),
        project="",
        input_files={},
    )
    dialog = EXPORTS[kind](context)
    shown(qtbot, dialog, 700, 500)
    record(f"export_{kind}", ControlWalk(qtbot, dialog, (context,), (f"export_{kind}.export", f"export_{kind}.cancel")))


PROFILES = {
    "run_logger": RunLoggerPanel,
    "operator_table": OperatorTablePanel,
    "run_differences": RunDifferencesPanel,
    "utilisation": UtilizationPanel,
    "charts": ChartsPanel,
}


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(qtbot: QtBot, context: Context, profiling: ProfilingController, name: str) -> None:
    network = context.root.graph.name
    profiling.add(profile_of(RUN, replace(RUN, precision="fp32", time_ms=30.0), network=network))
    profiling.add(profile_of(replace(RUN, engine="torch", time_ms=10.0), network=network))
    panel = PROFILES[name](context)
    shown(qtbot, panel, 700, 500)
    acts = {
        "run 1": lambda: profiling.show(profiling.entries[0] if profiling.entries else None),
        "run 2": lambda: profiling.show(profiling.entries[-1] if profiling.entries else None),
        "two runs": lambda: profiling.compare(
            (entries[0], entries[1]) if len(entries := profiling.entries) > 1 else None
        ),
        "add": lambda: profiling.add(profile_of(replace(RUN, engine="torch", time_ms=10.0), network=network)),
        "select": lambda: context.select(("body",)),
    }
    record(
        name,
        ControlWalk(
            qtbot, panel, (context,), acts=acts, without=("run_logger.launch", "run_logger.open", "run_logger.save")
        ),
        300,
    )


TRAINING = {
    "training": TrainingPanel,
    "training_runs": TrainingRunsPanel,
    "validation": ValidationPanel,
    "network_health": HealthPanel,
}


@pytest.mark.parametrize("name", TRAINING)
def test_training(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    runs = Runs(qtbot, project_context(tmp_path))
    first = runs.add("a", seed=1, noise=25)
    second = runs.add("b", seed=2, noise=25)
    for step in (5, 10):
        runs.validate(first, step, cat="#101010")
        runs.validate(second, step, cat="#202020")
    context = runs.training.context
    panel = TRAINING[name](context)
    shown(qtbot, panel, 900, 700)
    acts = {
        "run a": lambda: runs.training.choose((first,)),
        "both": lambda: runs.training.choose((first, second)),
        "none": lambda: runs.training.choose(()),
    }
    without = ("training.start", "training.samples", "training.sweep", "training.project", "training_runs.delete")
    record(name, ControlWalk(qtbot, panel, (context,), without, acts), 30 if name == "training" else 300)


def test_side_by_side(qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = context.root
    document.change_settings(variants=(Variant("half", "fp16"),))
    window = SideWindow(context, lambda: [document])
    monkeypatch.setattr(window.model, "compare", lambda: None)
    shown(qtbot, window, 1000, 700)
    window.model.choices = [VariantChoice(document), VariantChoice(network(tmp_path, "other"), weights="random")]
    window.setup.show_choices()
    window.setup.set_picture(photograph(tmp_path / "here.png"))
    record("side", ControlWalk(qtbot, window, of=(window.setup, window.bar)), 400)


def test_the_channel_inspector(qtbot: QtBot) -> None:
    context = Context(default_registry())
    context.set_document(Document(analysis_kit.small_network(8), context.registry))
    panel = ChannelInspectorPanel(context)
    context.setParent(panel)
    shown(qtbot, panel, 700, 500)
    panel.inspect("conv_h")
    values = np.random.default_rng(0).standard_normal((2, 8, 6, 5)).astype(np.float32)

    def show(value: np.ndarray[Any, Any]) -> None:
        panel.subject.value = value
        panel.subject.changed.emit()

    show(values)
    acts = {
        "another image": lambda: show(values[::-1] * 2),
        "enlarge": lambda: panel.enlarge(3),
        "layer": lambda: panel.inspect("conv_h"),
    }
    record("channel_inspector", ControlWalk(qtbot, panel, acts=acts), 300)


def test_variants(qtbot: QtBot, context: Context) -> None:
    context.root.change_settings(variants=(Variant("half", "fp16"), Variant("small", "int8")), variant="half")
    panel = VariantsPanel(context)
    shown(qtbot, panel, 700, 400)
    record("variants", ControlWalk(qtbot, panel, (context,), without=("variants.measure",)), 300)


PRECISION = {
    "number_formats": NumberFormatsPanel,
    "blame": BlamePanel,
    "graph_passes": PassesPanel,
    "code_view": CodeViewPanel,
}


@pytest.mark.parametrize("name", PRECISION)
def test_precision(qtbot: QtBot, context: Context, name: str) -> None:
    context.root.change_settings(variants=(Variant("half", "fp16"), Variant("small", "int8")), variant="half")
    panel = PRECISION[name](context)
    shown(qtbot, panel, 700, 500)
    acts = {
        "select": lambda: context.select(("body",)),
        "select two": lambda: context.select(("stem", "body")),
        "select none": lambda: context.select(()),
    }
    without = (
        "blame.find",
        "number_formats.measure",
        "number_formats.find",
        "graph_passes.measure",
        "graph_passes.find",
    )
    record(name, ControlWalk(qtbot, panel, (context,), without, acts), 300)


@pytest.mark.parametrize("target", [value for value, _ in TARGETS])
def test_finding_a_precision(qtbot: QtBot, context: Context, target: str) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    dialog = PrecisionDialog(context, target, host)
    dialog.show()  # it is closed with its host
    without = ("precision.find", "precision.use", "precision.close", "precision.cancel")
    record(f"precision_{target}", ControlWalk(qtbot, dialog, (context,), without))


def test_a_module(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("class One:\n    pass\n\n\ndef build(size=3):\n    return One()\n")
    settings = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)
    dialog = ModuleDialog(settings, tmp_path, lambda _source: None, None)
    shown(qtbot, dialog, 600, 500)
    dialog.module.setText(str(tmp_path / "net.py"))
    without = ("import_module.import", "import_module.cancel", "import_module.module")
    acts = {
        "a file": lambda: dialog.module.setText(str(tmp_path / "net.py")),
        "none": lambda: dialog.module.setText(""),
    }
    record("module", ControlWalk(qtbot, dialog, (), without, acts))


def test_a_picture(qtbot: QtBot, context: Context) -> None:
    canvas = Canvas(context)
    shown(qtbot, canvas, 600, 400)
    dialog = PictureDialog(context, canvas)
    shown(qtbot, dialog, 600, 500)
    record("picture", ControlWalk(qtbot, dialog, (context,), ("picture.export", "picture.cancel", "picture.copy")))


def test_a_sweep(qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_choice, "configured_hosts", lambda: ["here", "there"])
    monkeypatch.setattr(sweep_dialog, "find_spec", lambda name: None)
    host = QWidget()
    qtbot.addWidget(host)
    document = Document(context.root.graph, context.registry, tmp_path / "net.xml", parent=context)
    base = StartRequest(tmp_path / "net_pytorch", {"steps": "12"}, "denoising")
    dialog = SweepDialog(document, base, host)
    dialog.show()
    record("sweep", ControlWalk(qtbot, dialog, (context,), ("sweep.start", "sweep.cancel")))
