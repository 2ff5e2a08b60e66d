"""Every panel, dialog and shared widget is made as it was recorded: properties, layouts, tab order and connections."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from made_widgets import made, receivers
from PySide6.QtCore import QCoreApplication, QEvent, QSettings, QTimer
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from shown_state import differences, named, of_tree
from window_kit import network, open_window, show

from app.ui.analysis.heat import HeatLegend
from app.ui.analysis.input_row import InputRow
from app.ui.analysis.output_view import OutputView
from app.ui.analysis.transport import Transport
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.template_name import TemplateNameDialog
from app.ui.design.custom_agreement import AgreeDialog
from app.ui.design.layer_facts import LayerFacts
from app.ui.design.name_field import NameField
from app.ui.design.raw_params import RawParams
from app.ui.design.weights_report import WeightsReportView
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.recovery_dialog import DifferencesDialog, RecoveryDialog
from app.ui.document.unsaved import UnsavedDialog
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.playback import Playback
from app.ui.engine.training import training_of
from app.ui.shell.docs_viewer import DocsViewer
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.export.video import VideoExportDialog
from app.ui.shell.guided_tour import TourHint
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.panels import PANELS, PanelSpec
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.shell.status import StatusBar
from app.ui.shell.window import declared_actions
from app.ui.widgets import theme
from app.ui.widgets.background import Background
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.code_consent import CodeConsent
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.findings import FindingsDialog
from app.ui.widgets.frozen_tree import FrozenTree
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.message import Message
from app.ui.widgets.notice import Notice
from app.ui.widgets.notice_bar import NoticeBar
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.size_field import SizeField
from app.ui.widgets.slider import NumberSlider
from designer.files.recovery import Unfinished
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.runtime.engines import trt


def listening(before: Counter[str], after: Counter[str]) -> list[str]:
    return [
        f"listens to {signal}: {count - before[signal]}" for signal, count in after.items() if count != before[signal]
    ]


@pytest.fixture
def host(qtbot: QtBot) -> QWidget:
    """What contexts belong to: one that is only dropped takes its parts along in any order."""
    made = QWidget()
    qtbot.addWidget(made)
    return made


# --- panels and the window -------------------------------------------------------------------------------------------


def made_panel(spec: PanelSpec, context: Context, qtbot: QtBot) -> tuple[QWidget, list[str]]:
    kind = getattr(importlib.import_module(f"app.ui.{spec.module}"), spec.class_name)
    qtbot.addWidget(kind(context))  # makes what all panels share
    owners = (context, theme.changes())
    before = receivers(owners)
    panel = kind(context)
    qtbot.addWidget(panel)
    return panel, [*made(panel), *listening(before, receivers(owners))]


@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.id)
def test_a_panel_is_made_as_recorded(spec: PanelSpec, host: QWidget, qtbot: QtBot) -> None:
    compare(f"made_{spec.id}", made_panel(spec, Context(default_registry(), host), qtbot)[1])


def many_kinds() -> Graph:
    part = (
        Layer("x", "template_input"),
        Layer("inner", "convolution", (160, 0), (Source("x"),), {"features": "3"}),
        Layer("y", "template_output", (320, 0), (Source("inner"),)),
    )
    graph = network()
    return Graph(
        [*graph, Layer("block", "template", (480, 200), (Source("noise"),), {"template": "part"})],
        name="many kinds",
        templates=[Template("part", part)],
    )


FILLED = (
    "palette",
    "network_overview",
    "parameters",
    "analysis",
    "type_checking",
    "code_view",
    "differences",
    "import_report",
)


@pytest.mark.parametrize("name", FILLED)
def test_a_panel_is_made_for_a_network_as_recorded(
    name: str, host: QWidget, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Playback, "look", lambda *_: None)  # starts the engine
    context = Context(default_registry(), host)
    context.set_document(Document(many_kinds(), context.registry, parent=context))
    context.select(("conv",))
    panel, found = made_panel(next(spec for spec in PANELS if spec.id == name), context, qtbot)
    for names in (("noise",), ("conv", "mix"), ("strange",), ("block",)) if name == "parameters" else ():
        context.select(names)
        before = set(found)
        found += ["", f"# {' '.join(names)}", *(line for line in made(panel) if line not in before)]
    compare(f"made_{name}_filled", found)


OPENED_LATE = (*FILLED[1:], "network_settings")


@pytest.mark.parametrize("name", OPENED_LATE)
def test_a_panel_that_is_opened_late_shows_what_it_would_have_shown(
    name: str, host: QWidget, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panels are made when they are first shown: with a network open, imported from a model and compared, and layers selected."""
    monkeypatch.setattr(Playback, "look", lambda *_: None)  # starts the engine
    spec = next(spec for spec in PANELS if spec.id == name)
    kind = getattr(importlib.import_module(f"app.ui.{spec.module}"), spec.class_name)
    context = Context(default_registry(), host)
    row = QHBoxLayout(host)
    host.resize(1600, 700)
    early = kind(context)
    row.addWidget(early)
    host.show()
    qtbot.waitExposed(host)
    document = Document(many_kinds(), context.registry, parent=context)
    document.imported = ImportRecord(None, ImportReport("model.onnx", "a program", 17), document)
    context.set_document(document)
    document.do(lambda g: commands.set_params(g, {"conv": {"features": "5"}}))
    context.comparison.with_graph(network(), "other")
    context.select(("conv",))
    late = kind(context)
    row.addWidget(late)
    late.show()
    host.resize(1610, 700)

    def rest() -> bool:
        QApplication.processEvents()
        timers = (timer for part in (context, host) for timer in part.findChildren(QTimer))
        jobs = (job.running for part in (context, host) for job in part.findChildren(Background))
        return not any(t.isActive() and t.isSingleShot() and t.interval() <= 1000 for t in timers) and not any(jobs)

    qtbot.waitUntil(lambda: rest() and rest(), timeout=30_000)
    facts, others = (dict(named("", of_tree(panel))) for panel in (early, late))
    assert len(facts) > 3
    assert differences(facts, others) == []


def test_the_window_is_made_as_recorded(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    window.files.new()
    qtbot.waitUntil(training_of(window.context)._timer.isActive)  # the runs were looked for
    show(window, network())
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    compare("made_window", [*made(window), *listening(Counter(), receivers((window.context, theme.changes())))])


# --- dialogs and other parts -----------------------------------------------------------------------------------------


def context_of(folder: Path, host: QWidget) -> Context:
    context = Context(default_registry(), host)
    context.set_document(Document(many_kinds(), context.registry, folder / "many.xml", parent=context))
    return context


def settings_of(folder: Path) -> QSettings:
    return QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat)


def unfinished(folder: Path) -> list[Unfinished]:
    return [
        Unfinished(
            folder / "1.journal", folder / "a.xml", "a & b", 0.0, 1e9, "", Graph(), "changed", Graph(), {}, (), -1
        ),
        Unfinished(folder / "2.journal", None, "lost", 0.0, 1e9, "", None, "none", None, {}, (), -1),
    ]


def agreed() -> None:
    """Is never called."""


def picture_dialog(context: Context, host: QWidget) -> PictureDialog:
    canvas = Canvas(context)
    canvas.setParent(host)
    return PictureDialog(context, canvas)


FINDINGS = [Diagnostic("code", "message", Severity.WARNING, remedy="remedy"), Diagnostic("other", "text")]
DIALOGS: dict[str, Callable[[Path, QWidget], QWidget]] = {
    "export_onnx": lambda folder, host: OnnxExportDialog(context_of(folder, host)),
    "export_deploy": lambda folder, host: DeployExportDialog(context_of(folder, host)),
    "export_tensorrt": lambda folder, host: TensorRtExportDialog(context_of(folder, host)),
    "export_pytorch": lambda folder, host: PyTorchExportDialog(context_of(folder, host)),
    "export_video": lambda folder, host: VideoExportDialog(context_of(folder, host)),
    "module": lambda folder, host: ModuleDialog(settings_of(folder), folder, lambda _: None, None),
    "shortcuts": lambda folder, host: ShortcutsDialog(Shortcuts(settings_of(folder), declared_actions()), None),
    "recovery": lambda folder, host: RecoveryDialog(unfinished(folder), None),
    "recovery_differences": lambda *_: DifferencesDialog("title", "told", "text", None),
    "unsaved": lambda *_: UnsavedDialog(["a.xml", "b & c.xml"], None),
    "agree": lambda *_: AgreeDialog({"": "conv", "x = 1": "mix"}, agreed, None),
    "consent": lambda *_: CodeConsent(
        "consent", "Run it?", [("conv", "x = 1"), ("b", "y")], agreed, None, action="&Run"
    ),
    "findings": lambda *_: FindingsDialog("Not Opened", "It could not be opened.", FINDINGS, None),
    "documentation": lambda _, host: DocsViewer(host),
    "tour": lambda _, host: TourHint(host),
    "picture": lambda folder, host: picture_dialog(context_of(folder, host), host),
    "template_name": lambda *_: TemplateNameDialog(many_kinds(), "Title", "Text", "Agree", "part", lambda _: None),
}
PARTS: dict[str, Callable[[QWidget], QWidget]] = {
    "output_view": lambda _: OutputView("y", lambda: None),  # type: ignore[arg-type,return-value]
    "transport": lambda host: Transport("x", analysis_of(Context(default_registry(), host)).playback),
    "heat_legend": lambda _: HeatLegend("heat"),
    "layer_facts": lambda _: LayerFacts("facts"),
    "name_field": lambda _: NameField("name", "Name", lambda _: None),
    "raw_params": lambda _: RawParams("raw"),
    "weights_report": lambda _: WeightsReportView("weights"),
    "status": lambda _: StatusBar(),
    "choice_box": lambda _: ChoiceBox("choice", "Choice", "tip"),
    "elided": lambda _: ElidedLabel(),
    "empty_state": lambda _: EmptyState("panel", "magnify", "Nothing is here.", "Open"),
    "export_button": lambda _: ExportButton("view", statistics=True),
    "feature_view": lambda _: FeatureView("values", "Values"),
    "frozen_tree": lambda _: FrozenTree("tree", "Layers"),
    "image_view": lambda _: ImageView("view", "Image", "Nothing."),
    "message": lambda _: Message("message"),
    "notice": lambda _: Notice("notice", "Notice"),
    "notice_bar": lambda _: NoticeBar("bar"),
    "whole": lambda _: NumberField("whole", "Whole", low=1, high=9),
    "fraction": lambda _: NumberField("fraction", "Fraction", whole=False),
    "size": lambda _: SizeField("size", "Size", 2, low=1, high=9),
    "optional": lambda _: SizeField("optional", "Optional", 3, optional=True),
    "slider": lambda _: NumberSlider("slider", "Slider", 0, 2),
    "whole_slider": lambda _: NumberSlider("whole_slider", "Whole", 1, 90, whole=True),
    "logarithmic": lambda _: NumberSlider("logarithmic", "Logarithmic", 0.01, 100, logarithmic=True, significant=3),
    "input_row": lambda host: InputRow("x", analysis_of(Context(default_registry(), host)).playback),
}


@pytest.mark.parametrize("name", DIALOGS)
def test_a_dialog_is_made_as_recorded(
    name: str, host: QWidget, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    before = receivers((theme.changes(),))
    dialog = DIALOGS[name](tmp_path, host)
    qtbot.addWidget(dialog)
    compare(f"made_dialog_{name}", [*made(dialog), *listening(before, receivers((theme.changes(),)))])


def test_shared_parts_are_made_as_recorded(host: QWidget, qtbot: QtBot) -> None:
    found = []
    for name, make in PARTS.items():
        before = receivers((theme.changes(),))
        part = make(host)
        qtbot.addWidget(part)
        found += [f"# {name}", *made(part), *listening(before, receivers((theme.changes(),))), ""]
    compare("made_parts", found)
