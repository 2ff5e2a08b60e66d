"""Side by Side, the dialogs of training and precision, and the panels of runs with content are made as they were recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from made_widgets import made, receivers
from profile_kit import RUN, context, profile_of, profiling
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QComboBox, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from side_kit import network, photograph
from training_kit import Runs, project_context
from window_kit import shown

from app.ui.compare.variants import VariantChoice
from app.ui.compare.vote_page import VotePage
from app.ui.compare.window import SideWindow
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import ProfilingController, profiling_of
from app.ui.engine.run_health import run_health_of
from app.ui.engine.size_rules import size_rules_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import StartRequest, training_of
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.color_bar import ColorBar
from app.ui.inspector.enlarged import EnlargedPage
from app.ui.inspector.histogram_strip import HistogramStrip
from app.ui.inspector.legend import Legend
from app.ui.inspector.matrix_view import MatrixView
from app.ui.inspector.subject_bar import SubjectBar
from app.ui.precision import variants_panel
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.channel_pairs import ChannelPairs
from app.ui.precision.number_formats_panel import FormatChip, NumberFormatsPanel
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.precision_dialog import TARGETS, PrecisionDialog
from app.ui.precision.size_plot import SizePlot
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.profile.advice_panel import AdvicePanel
from app.ui.profile.charts import PLOTS, ChartsPanel
from app.ui.profile.dialogs import open_profile, save_profile_as
from app.ui.profile.operator_table import OperatorTablePanel
from app.ui.profile.run_differences import RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel
from app.ui.profile.utilization import UtilizationPanel
from app.ui.profile.what_if_panel import WhatIfPanel
from app.ui.train import place_choice, sweep_dialog
from app.ui.train.health_panel import HealthPanel
from app.ui.train.run_dialogs import NotesDialog
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.samples_dialog import SamplesDialog
from app.ui.train.sweep_dialog import SweepDialog
from app.ui.train.training_panel import TrainingPanel
from app.ui.train.validation_panel import ValidationPanel
from app.ui.widgets import run_choices, theme
from app.ui.widgets.run_choices import Choice
from designer.files.variants import Variant
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.training.run_folder import Notes

__all__ = ["context", "profiling"]
CONTROLLERS: tuple[Callable[[Context], QObject], ...] = (
    analysis_of,
    number_formats_of,
    profiling_of,
    training_of,
    run_health_of,
    time_machine_of,
    size_rules_of,
    weight_surgery_of,
)


@pytest.fixture
def host(qtbot: QtBot) -> QWidget:
    """What contexts and dialogs belong to."""
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


@pytest.fixture(autouse=True)
def equal_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines, devices, hosts and libraries are those of every machine."""
    monkeypatch.setattr(run_choices, "engines", lambda: (Choice("one", "One"), Choice("two", "Two", "is missing")))
    monkeypatch.setattr(run_choices, "devices", lambda engine: (Choice("cpu", f"CPU of {engine}"),))
    monkeypatch.setattr(
        run_choices, "precisions", lambda engine, device: (Choice("fp32", f"FP32 of {engine} on {device}"),)
    )
    monkeypatch.setattr(place_choice, "configured_hosts", lambda: ["here", "there"])
    monkeypatch.setattr(sweep_dialog, "find_spec", lambda name: None)


def recorded(name: str, make: Callable[[], QWidget], *owners: Context) -> None:
    """Compare how a widget is made, and how many slots it connects to its context and to the theme."""
    before = receivers((*owners, theme.changes()))
    widget = make()
    after = receivers((*owners, theme.changes()))
    more = [
        f"listens to {signal}: {count - before[signal]}" for signal, count in after.items() if count != before[signal]
    ]
    compare(f"made_{name}", [*made(widget), *more])


def test_controllers_of_a_context_are_made_as_recorded(host: QWidget) -> None:
    """Their timers and children, and what they listen to of the context, its document and the controllers before them."""
    context = Context(default_registry(), host)
    graph = Graph([Layer("image", "input"), Layer("result", "output", inputs=(Source("image"),))])
    context.set_document(Document(graph, context.registry, parent=context))
    found: list[str] = []
    for controller_of in CONTROLLERS:
        before = receivers((context, theme.changes()))
        controller = controller_of(context)
        assert controller_of(context) is controller, "there is one of a window"
        after = receivers((context, theme.changes()))
        found += [f"# {type(controller).__name__}", *timers(controller)]
        found += [f"{signal}: {count - before[signal]}" for signal, count in after.items() if count != before[signal]]
    compare("made_controllers", found)


def test_controllers_that_are_made_while_a_template_is_shown_follow_the_whole_network(host: QWidget) -> None:
    inside = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    layers = [
        Layer("image", "input"),
        Layer("part", "template", inputs=(Source("image"),), params={"template": "block"}),
        Layer("result", "output", inputs=(Source("part"),)),
    ]
    followed: dict[bool, list[tuple[str, dict[str, int]]]] = {}
    for inner in (False, True):
        context = Context(default_registry(), host)
        whole = Document(Graph(layers, templates=[Template("block", inside)]), context.registry, parent=context)
        context.set_document(whole)
        assert not inner or context.enter("part")
        view = receivers((context.document,)) if inner else Counter[str]()
        followed[inner] = []
        for controller_of in CONTROLLERS:
            before = receivers((whole,))
            controller = controller_of(context)
            found = {name: count - before[name] for name, count in receivers((whole,)).items() if count != before[name]}
            followed[inner].append((type(controller).__name__, found))
        assert not inner or receivers((context.document,)) == view
    assert followed[True] == followed[False]


def timers(owner: QObject) -> list[str]:
    named = {id(value): name for name, value in vars(owner).items()}
    return [
        f"{named.get(id(timer), type(timer.parent()).__name__)}: {'once' if timer.isSingleShot() else 'repeats'} "
        f"{timer.interval()} ms{', runs' if timer.isActive() else ''}"
        for timer in owner.findChildren(QTimer)
    ]


# --- Side by Side ----------------------------------------------------------------------------------------------------


def test_side_by_side_is_made_as_recorded(host: QWidget, qtbot: QtBot, tmp_path: Path) -> None:
    context = Context(default_registry(), host)
    graph = Graph([Layer("image", "input"), Layer("result", "output", inputs=(Source("image"),))])
    document = Document(graph, context.registry, tmp_path / "open.xml", parent=context)
    document.change_settings(engine="two", device="cpu", variants=(Variant("half", "fp16"),))
    context.set_document(document)

    def window() -> QWidget:
        made_ = SideWindow(context, lambda: [document])
        qtbot.addWidget(made_)
        made_.model.choices = [VariantChoice(document), VariantChoice(network(tmp_path, "other"), weights="random")]
        made_.model.picture = photograph(tmp_path / "photo.png")
        made_.setup.show_choices()
        made_.setup.show_picture()
        made_.bar.refresh()
        return made_

    recorded("side", window, context)


def test_the_page_of_a_vote_is_made_as_recorded(qtbot: QtBot) -> None:
    def page() -> QWidget:
        made_ = VotePage()
        qtbot.addWidget(made_)
        return made_

    recorded("vote", page)


# --- the Channel Inspector -------------------------------------------------------------------------------------------


def test_parts_of_the_channel_inspector_are_made_as_recorded(qtbot: QtBot) -> None:
    found: list[str] = []
    for part in (
        SubjectBar(),
        ColorBar(),
        EnlargedPage(),
        ChannelGrid("grid", "Channels"),
        MatrixView("matrix", "Map"),
        HistogramStrip(),
        Legend(),
    ):
        qtbot.addWidget(part)
        completers = [
            f"{box.objectName()} completes: {each.filterMode().name} {each.completionMode().name} {each.caseSensitivity().name}"
            for box in part.findChildren(QComboBox)
            if (each := box.completer()) is not None
        ]
        found += [f"# {type(part).__name__}", *made(part), *completers, ""]
    compare("made_inspector_parts", found)


def test_the_channel_inspector_of_a_network_is_made_as_recorded(qtbot: QtBot, context: Context) -> None:
    def panel() -> QWidget:
        made_ = ChannelInspectorPanel(context)
        qtbot.addWidget(made_)
        made_.inspect("body")
        return made_

    recorded("channel_inspector_filled", panel, context)


# --- precision and training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [value for value, _ in TARGETS])
def test_the_dialog_that_finds_a_precision_is_made_as_recorded(
    host: QWidget, qtbot: QtBot, context: Context, target: str
) -> None:
    recorded(f"dialog_precision_{target}", lambda: PrecisionDialog(context, target, host), context)


def test_pairs_of_channels_are_made_as_recorded(host: QWidget) -> None:
    a, b = (np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4) * share for share in (1, pi))
    recorded("dialog_channel_pairs", lambda: ChannelPairs("conv", ("one", "two"), a, b, host))


FILLED: dict[str, Callable[[Context], QWidget]] = {
    "variants": VariantsPanel,
    "number_formats": NumberFormatsPanel,
    "blame": BlamePanel,
    "graph_passes": PassesPanel,
}


@pytest.mark.parametrize("name", FILLED)
def test_a_panel_of_precision_is_made_for_a_network_as_recorded(qtbot: QtBot, context: Context, name: str) -> None:
    context.root.change_settings(variants=(Variant("half", "fp16"), Variant("small", "int8")), variant="half")

    def panel() -> QWidget:
        made_ = FILLED[name](context)
        shown(qtbot, made_, 900, 600)
        return made_

    recorded(f"{name}_filled", panel, context)


def test_small_parts_of_precision_are_made_as_recorded(qtbot: QtBot) -> None:
    found: list[str] = []
    for part in (FormatChip("int8"), SizePlot(), variants_panel.tool_button("name", "plus", "Text", "Tip")):
        qtbot.addWidget(part)
        found += [f"# {type(part).__name__}", *made(part), ""]
    compare("made_precision_parts", found)


def test_the_dialog_of_a_sweep_is_made_as_recorded(host: QWidget, context: Context, tmp_path: Path) -> None:
    document = Document(context.root.graph, context.registry, tmp_path / "net.xml", parent=context)
    base = StartRequest(tmp_path / "net_pytorch", {"steps": "12"}, "denoising")
    recorded("dialog_sweep", lambda: SweepDialog(document, base, host))


@pytest.fixture
def runs(qtbot: QtBot, tmp_path: Path) -> Runs:
    made_ = Runs(qtbot, project_context(tmp_path))
    first = made_.add("a", seed=1, noise=25)
    made_.add("b", seed=2, noise=25)
    made_.validate(first, 5, cat="#101010")
    made_.training.choose((first,))
    return made_


TRAINING: dict[str, Callable[[Context], QWidget]] = {
    "training": TrainingPanel,
    "training_runs": TrainingRunsPanel,
    "validation": ValidationPanel,
    "network_health": HealthPanel,
}


@pytest.mark.parametrize("name", TRAINING)
def test_a_panel_of_training_with_runs_is_made_as_recorded(qtbot: QtBot, runs: Runs, name: str) -> None:
    context = runs.training.context

    def panel() -> QWidget:
        made_ = TRAINING[name](context)
        shown(qtbot, made_, 900, 600)
        return made_

    recorded(f"{name}_filled", panel, context)


def test_dialogs_of_runs_are_made_as_recorded(host: QWidget, runs: Runs, tmp_path: Path) -> None:
    run = runs.training.runs[0]
    run.folder.write_notes(Notes("a name", "some notes"))
    run.read()
    recorded("dialog_run_notes", lambda: NotesDialog(run.snapshot, host))
    image = QImage(6, 4, QImage.Format.Format_RGB32)
    image.fill(0)
    assert image.save(str(tmp_path / "page.png"))
    recorded("dialog_samples", lambda: SamplesDialog(tmp_path / "page.png", host))


# --- profiles --------------------------------------------------------------------------------------------------------

PROFILES: dict[str, Callable[[Context], QWidget]] = {
    "run_logger": RunLoggerPanel,
    "operator_table": OperatorTablePanel,
    "run_differences": RunDifferencesPanel,
    "utilisation": UtilizationPanel,
    "advice": AdvicePanel,
    "what_if": WhatIfPanel,
    "charts": ChartsPanel,
}


@pytest.mark.parametrize("name", PROFILES)
def test_a_panel_of_a_profile_is_made_as_recorded(
    qtbot: QtBot, context: Context, profiling: ProfilingController, name: str
) -> None:
    profiling.add(profile_of(RUN, replace(RUN, precision="fp32", time_ms=30.0), network=context.root.graph.name))
    profiling.compare(tuple(profiling.entries))

    def panel() -> QWidget:
        made_ = PROFILES[name](context)
        shown(qtbot, made_, 900, 600)
        if isinstance(made_, ChartsPanel):
            for tab in range(len(PLOTS)):
                made_.tabs.setCurrentIndex(tab)
        return made_

    recorded(f"{name}_filled", panel, context)


def test_dialogs_of_profiles_open_and_save_as_recorded(
    qtbot: QtBot, host: QWidget, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of())
    found = []
    for dialog in (open_profile(host, profiling), save_profile_as(host, profiling, profiling.entries[0])):
        found += [
            dialog.objectName(),
            dialog.windowTitle(),
            *dialog.nameFilters(),
            f"{dialog.fileMode().name} {dialog.acceptMode().name} {dialog.defaultSuffix()}",
            *(Path(name).name for name in dialog.selectedFiles()),
        ]
        for name in dialog.nameFilters():
            dialog.filterSelected.emit(name)
            found.append(dialog.defaultSuffix())
        dialog.close()
    compare("made_dialog_profiles", found)


# --- documents that were left -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FILLED, *TRAINING, *PROFILES, "channel_inspector"])
def test_a_panel_follows_only_the_document_that_is_open(qtbot: QtBot, context: Context, name: str) -> None:
    """One that was left has as many listeners as one that was never open, however often it is opened again."""
    first = context.root
    second, third = (Document(first.graph.copy(), context.registry, parent=context) for _ in range(2))
    kind = ({**FILLED, **TRAINING, **PROFILES, "channel_inspector": ChannelInspectorPanel})[name]
    shown(qtbot, kind(context), 900, 600)
    never, opened = receivers((third,)), receivers((first,))
    assert opened != never
    for _ in range(2):
        for left, now in ((first, second), (second, first)):
            context.set_document(now)
            assert receivers((left,)) == never
            assert receivers((now,)) == opened
