"""The Analysis workspace step by step: what moves by itself, what is repainted, and which layer is blamed, over runs and edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from analysis_kit import SILENT
from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QIcon
from PySide6.QtWidgets import QPushButton, QTabWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from analysis_layers.noise import KINDS, RANDOM
from app.engine.protocol import RunStep, SetParamRequest, TraceReply
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.display import Display, DisplayMode
from app.ui.analysis.faults import Faults
from app.ui.analysis.flicker import Flicker
from app.ui.analysis.input_row import InputRow
from app.ui.analysis.layer_infos import LayerInfo, LayerInfos, layer_infos
from app.ui.analysis.options import OptionsArea
from app.ui.analysis.output_view import OutputView
from app.ui.analysis.overview_model import COUNT, HEAT, OverviewModel
from app.ui.analysis.recipe_edit import RecipeEdit
from app.ui.document.document import Document
from app.ui.engine.analysis import AnalysisController, analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.playback import Track
from app.ui.engine.result import AnalysisResult, Phase
from designer.graph.bypass import bypass
from designer.graph.commands import add_layer, remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import Category
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
ROLE = Qt.ItemDataRole
WAIT = 5000


class Call:
    def __init__(self, request: object, done: Any, failed: Any) -> None:
        self.request, self.done, self.failed, self.cancelled = request, done, failed, False

    def cancel(self) -> None:
        self.cancelled = True


class Engine:
    """In place of the client of an engine: the test answers."""

    opened = object()

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def ask(self, request: object, _owner: object, done: Any, failed: Any, *, superseded: Any = None) -> Call:
        self.calls.append(Call(request, done, failed))
        return self.calls[-1]

    def taken(self) -> list[Any]:
        """The requests since the last time."""
        found = [call.request for call in self.calls]
        self.calls.clear()
        return found


class Analysis(QObject):
    """In place of the controller of the analysis."""

    result_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.engine, self.phase = Engine(), Phase.READY
        self.result: AnalysisResult | None = None
        self.runs: list[bool] = []  # whether each run that was asked for is one of a movement

    def again(self, *, animated: bool = False) -> None:
        self.runs.append(animated)

    def run(self, **kept: Any) -> None:
        self.result = AnalysisResult(**kept)
        self.result_changed.emit()


# --- what moves by itself ----------------------------------------------------------------------------------------------


class Moving:
    def __init__(self, **mixes: dict[str, str]) -> None:
        registry = default_registry()
        layers = [Layer("a", "input", params={"dims": "8x8x3"})]
        layers += [
            Layer(
                name, "noise" if name.startswith("noise") else "mix", inputs=(Source("a"), Source("a")), params=params
            )
            for name, params in mixes.items()
        ]
        self.document = Document(Graph(layers), registry)
        self.analysis = Analysis()
        self.document.setParent(self.analysis)
        self.flicker = Flicker(self.analysis, self.analysis)  # type: ignore[arg-type]

    def follow(self, visible: bool = True) -> None:
        self.flicker.follow(self.document, visible)

    def set(self, layer: str, **params: str) -> None:
        assert self.document.do(lambda graph: set_params(graph, {layer: params}))
        self.follow()

    def sent(self) -> tuple[list[tuple[str, str, str]], list[bool]]:
        """What the engine was given since the last time, and the runs that were asked for."""
        requests = self.analysis.engine.taken()
        assert all(isinstance(request, SetParamRequest) for request in requests)
        runs, self.analysis.runs = self.analysis.runs, []
        return [(request.layer, request.param, request.text) for request in requests], runs


def test_mixes_take_turns_as_fast_as_the_fastest_and_end_on_their_first_input(qtbot: QtBot) -> None:
    moving = Moving(slow={"selection": "flicker", "rate": "1.0"}, fast={"selection": "flicker", "rate": "2.0"})
    flicker, analysis = moving.flicker, moving.analysis
    moving.follow(False)
    assert (flicker.running, moving.sent()) == (False, ([], []))
    moving.follow()
    assert (flicker.running, flicker.interval) == (True, 500)
    moving.set("slow", rate="2.5")
    assert (flicker.running, flicker.interval) == (True, 400)
    flicker._turn()
    second = [("slow", "phase", "true"), ("fast", "phase", "true")]
    assert moving.sent() == (second, [True])
    analysis.phase = Phase.RUNNING
    flicker._turn()
    assert moving.sent() == ([], [])  # the next turn is soon enough
    analysis.phase = Phase.READY
    moving.follow(False)
    first = [("slow", "phase", "false"), ("fast", "phase", "false")]
    assert (flicker.running, moving.sent()) == (False, (first, [False]))
    moving.follow(False)
    assert moving.sent() == ([], [])
    moving.follow()
    flicker._turn()
    flicker._turn()
    assert moving.sent() == (second + first, [True, True])
    moving.follow(False)
    assert moving.sent() == ([], [])  # they show the first input already
    moving.follow()
    moving.set("slow", selection="blend")
    assert flicker.interval == 500
    flicker._turn()
    assert moving.sent() == ([("fast", "phase", "true")], [True])
    moving.document.do(lambda graph: bypass(graph, moving.document.inference, ["fast"]))
    moving.follow()
    assert not flicker.running
    moving.document.undo()
    moving.follow()
    assert flicker.running
    analysis.engine.taken()
    flicker._turn()
    analysis.engine.calls[-1].failed((Diagnostic("engine-crashed", "it ended"),))
    assert not flicker.running


@pytest.mark.parametrize("rates", [("0.1",), ("0.25", "0.5"), ("0.9", "1.0"), ("2.5", "0.2", "3.0")])
def test_mixes_of_every_rate_take_turns(qtbot: QtBot, rates: tuple[str, ...]) -> None:
    moving = Moving(**{f"mix_{number}": {"selection": "flicker", "rate": rate} for number, rate in enumerate(rates)})
    moving.follow()
    assert moving.flicker.running
    assert moving.flicker.interval == round(1000 / max(map(float, rates)))
    moving.flicker._turn()
    assert [request[0] for request in moving.sent()[0]] == [f"mix_{number}" for number in range(len(rates))]
    for number in range(len(rates)):
        moving.set(f"mix_{number}", selection="a")
    assert not moving.flicker.running


def test_animated_noise_counts_its_seed_up_and_gets_it_back(qtbot: QtBot) -> None:
    moving = Moving(
        noise={"animate": "true", "seed": "5"}, noise_2={"animate": "true", "seed": "9"}, noise_3={"seed": "1"}
    )
    flicker = moving.flicker
    moving.follow()
    assert flicker.running
    flicker._next_frame()
    assert moving.sent() == ([("noise", "seed", "6"), ("noise_2", "seed", "10")], [True])
    flicker._next_frame()
    assert moving.sent()[0] == [("noise", "seed", "7"), ("noise_2", "seed", "11")]
    moving.set("noise", animate="false")
    assert moving.sent() == ([("noise", "seed", "5")], [False])
    assert flicker.running
    moving.follow()
    assert moving.sent() == ([], [])
    flicker._next_frame()
    assert moving.sent()[0] == [("noise_2", "seed", "12")]
    moving.follow(False)
    assert (flicker.running, moving.sent()) == (False, ([("noise_2", "seed", "9")], [False]))
    moving.analysis.phase = Phase.RUNNING
    moving.follow()
    flicker._next_frame()
    assert moving.sent() == ([], [])
    moving.analysis.phase = Phase.READY
    moving.set("noise_2", seed=str(2**31 - 1))
    flicker._next_frame()
    ((layer, name, text),) = moving.sent()[0]
    assert (layer, name) == ("noise_2", "seed")
    assert 0 <= int(text) < 2**31 - 1  # it begins again
    flicker.follow(None, True)
    assert not flicker.running


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("hidden", [True, False])
def test_what_moved_gets_the_values_of_the_document_again_if_the_engine_has_the_network(
    qtbot: QtBot, phase: Phase, hidden: bool
) -> None:
    """Hidden, or changed so that nothing moves any more; most often while a run goes on."""
    moving = Moving(mix={"selection": "flicker"}, noise={"animate": "true", "seed": "5"})
    moving.follow()
    moving.flicker._turn()
    moving.flicker._next_frame()
    assert moving.sent() == ([("mix", "phase", "true"), ("noise", "seed", "6")], [True, True])
    moving.analysis.phase = phase
    there = phase in (Phase.READY, Phase.RUNNING)
    if hidden:
        moving.follow(False)
        expected = [("mix", "phase", "false"), ("noise", "seed", "5")]
    else:
        moving.set("noise", animate="false")
        expected = [("noise", "seed", "5")]
    assert moving.sent() == ((expected, [False] * len(expected)) if there else ([], []))
    assert moving.flicker.running is not hidden


@pytest.mark.parametrize("refused", ["phase", "seed"])
def test_nothing_moves_any_more_after_a_value_was_refused(qtbot: QtBot, refused: str) -> None:
    moving = Moving(mix={"selection": "flicker"}, noise={"animate": "true", "seed": "5"})
    moving.follow()
    moving.flicker._turn()
    moving.flicker._next_frame()
    (call,) = [call for call in moving.analysis.engine.calls if call.request.param == refused]
    call.failed((Diagnostic("bad-parameter", "it is refused"),))
    assert not moving.flicker.running
    moving.follow()
    assert moving.flicker.running


# --- values that are not finite ------------------------------------------------------------------------------------------


def test_the_layer_that_is_blamed_is_that_of_the_present_values(qtbot: QtBot) -> None:
    analysis = Analysis()
    faults, engine = Faults(analysis, analysis), analysis.engine  # type: ignore[arg-type]
    changes: list[str] = []
    faults.changed.connect(lambda: changes.append(faults.text))
    fine = ("", "", {})
    looking = "Values that are NaN or infinite were computed. The layer that made them is being looked for."

    def state() -> tuple[str, str, dict[str, str]]:
        return faults.culprit, faults.text, faults.layers

    def ask() -> Call:
        qtbot.waitUntil(lambda: bool(engine.calls), timeout=WAIT)
        return engine.calls.pop()

    def share(percent: str) -> str:
        return f"{percent} % of its values are NaN or infinite"

    analysis.run()
    assert (state(), changes) == (fine, [])
    analysis.run(nonfinite={"y": 0.5})
    assert state() == ("", looking, {"y": share("50.0")})
    first = ask()
    analysis.run(nonfinite={"y": 0.25})  # a slider moved meanwhile
    assert state() == ("", looking, {"y": share("25.0")})
    first.done(TraceReply("conv", "nan", 0.125, ()))
    found = f"NaN is first made by 'conv': {share('12.5')}."
    assert state() == ("conv", found, {"y": share("25.0"), "conv": share("12.5")})
    analysis.run(nonfinite={"y": 0.25}, coarse=4)  # the full result follows
    assert state()[1] == found
    analysis.run(nonfinite={"z": 1.0})
    assert state() == ("conv", found, {"z": share("100"), "conv": share("12.5")})  # until it is asked again
    ask().failed((Diagnostic("engine-crashed", "the engine ended"),))
    assert state()[:2] == ("conv", found)
    analysis.run(nonfinite={"z": 1.0})
    ask().failed((Diagnostic("unsupported", "It cannot be traced", remedy="Use another engine."),))
    assert state()[:2] == ("", "It cannot be traced. Use another engine.")
    analysis.run(nonfinite={"z": 1.0})
    late = ask()
    analysis.run()
    assert state() == fine
    assert late.cancelled
    late.done(TraceReply("conv", "inf", 0.5, ()))
    assert state() == fine  # they are finite by now
    analysis.run(nonfinite={"y": 0.5})
    assert state() == ("", looking, {"y": share("50.0")})
    analysis.result = None
    analysis.result_changed.emit()
    assert state() == fine
    assert not faults._rest.isActive()
    count = len(changes)
    analysis.result_changed.emit()
    assert len(changes) == count  # nothing is said twice


# --- the overview ----------------------------------------------------------------------------------------------------------


class Told:
    """Everything that a view knows of a model: cells are read again only when the model says so."""

    ROLES = (ROLE.DisplayRole, ROLE.ForegroundRole, ROLE.FontRole, ROLE.DecorationRole, ROLE.ToolTipRole, HEAT)

    def __init__(self, model: OverviewModel) -> None:
        self.model = model
        self.cells = self.read()
        model.dataChanged.connect(self._changed)
        model.modelReset.connect(self._all)
        model.layoutChanged.connect(self._all)

    def _all(self, *_args: object) -> None:
        self.cells = self.read()

    def _changed(self, first: QModelIndex, last: QModelIndex, roles: object = ()) -> None:
        for row in range(first.row(), last.row() + 1):
            for column in range(first.column(), last.column() + 1):
                index = self.model.index(row, column, first.parent())
                self.cells |= self._cell(index, [ROLE(role) if role != HEAT else HEAT for role in roles] or self.ROLES)  # type: ignore[union-attr, call-overload, attr-defined]

    def _cell(self, index: QModelIndex, roles: Any) -> dict[tuple[object, ...], object]:
        place = (index.parent().row(), index.row(), index.column())
        return {(*place, str(role)): _plain(index.data(role)) for role in roles}

    def read(self, parent: QModelIndex | None = None) -> dict[tuple[object, ...], object]:
        found: dict[tuple[object, ...], object] = {}
        parent = parent or QModelIndex()
        for row in range(self.model.rowCount(parent)):
            for column in range(COUNT):
                found |= self._cell(self.model.index(row, column, parent), self.ROLES)
            if not parent.isValid():
                found |= self.read(self.model.index(row, 0, parent))
        return found


def _plain(value: object) -> object:
    if isinstance(value, QIcon):
        return value.cacheKey()
    if isinstance(value, QColor):
        return value.name()
    return value.toString() if isinstance(value, QFont) else value


def steps(*changes: tuple[str, float, bool]) -> tuple[RunStep, ...]:
    """Input, noise, a group of two, and a mix, some with another time or kept."""
    times = {"noise": 2.0, "first": 10.0, "mix": 0.5} | {name: time for name, time, _ in changes}
    kept = {name for name, _, cached in changes if cached}
    groups = (("input_0",), ("noise",), ("first", "second"), ("mix",))
    return tuple(
        RunStep(group, "-" if group == ("input_0",) else "torch", times.get(group[0], 0.0), group[0] in kept)
        for group in groups
    )


def infos(factor: int = 1) -> dict[str, LayerInfo]:
    return {
        "input_0": LayerInfo("input", "Input", "N x 3", Category.INPUT_OUTPUT, 1000 * factor),
        "noise": LayerInfo("noise", "Noise", f"N x {factor}", Category.ANALYSIS, 5000 * factor),
        "first": LayerInfo("convolution", "Convolution", "N x 5", Category.CONVOLUTION, 30000, weight=1.0 * factor),
        "second": LayerInfo("relu", "ReLU", "N x 6", Category.ACTIVATION, 400, weight=4.0),
        "mix": LayerInfo("mix", "Mix", "N x 7", Category.ANALYSIS, 20000),
    }


def test_every_cell_that_changes_is_painted_again(qtbot: QtBot) -> None:
    model = OverviewModel()
    told = Told(model)
    known = infos()
    acts: dict[str, Callable[[], object]] = {
        "first run": lambda: model.show(steps(), known),
        "other times": lambda: model.show(steps(("noise", 3.0, False)), known),
        "kept": lambda: model.show(steps(("noise", 0.0, True), ("first", 0.0, True)), known),
        "run again": lambda: model.show(steps(("first", 11.0, False)), known),
        "the hottest": lambda: model.show(steps(("mix", 99.0, False)), known),
        "not so hot": lambda: model.show(steps(("mix", 1.0, False)), known),
        "inspected": lambda: model.mark("first"),
        "another one": lambda: model.mark("mix:0"),
        "fault": lambda: model.show_faults({"noise": "50 % are NaN", "second": "1 % are NaN"}),
        "another fault": lambda: model.show_faults({"second": "2 % are NaN", "first": "1 % are NaN"}),
        "other infos": lambda: model.show(steps(("mix", 1.0, False)), infos(3)),
        "and times": lambda: model.show(steps(("mix", 2.0, False), ("noise", 7.0, False)), infos(2)),
        "sorted": lambda: model.sort(1, Qt.SortOrder.DescendingOrder),
        "sorted, other times": lambda: model.show(steps(("noise", 70.0, False)), known),
        "sorted, kept": lambda: model.show(steps(("noise", 0.0, True)), known),
        "no faults": lambda: model.show_faults({}),
        "nothing": lambda: model.mark(""),
        "unsorted": lambda: model.sort(-1, Qt.SortOrder.AscendingOrder),
        "fewer steps": lambda: model.show(steps()[:3], known),
        "none": lambda: model.show((), {}),
        "again": lambda: model.show(steps(("noise", 0.0, True)), known),
    }
    for what, act in acts.items():
        before = dict(told.cells)
        act()
        assert told.cells == told.read(), what
        assert what in ("nothing", "inspected") or told.cells != before, what


def test_times_of_kept_steps_are_those_that_they_cost(qtbot: QtBot) -> None:
    """Also after another set of steps, in every order."""
    model = OverviewModel()

    def times() -> dict[str, str]:
        return {model.layer_at(model.index(row, 0)): model.index(row, 1).data() for row in range(model.rowCount())}

    model.show(steps(), infos())
    assert times() == {"input_0": "-", "noise": "2", "second": "10", "mix": "0.5"}
    model.show(steps(("noise", 0.25, True), ("first", 0.0, True)), infos())
    assert times() == {"input_0": "-", "noise": "2", "second": "10", "mix": "0.5"}
    model.sort(1, Qt.SortOrder.DescendingOrder)
    assert list(times()) == ["second", "noise", "mix", "input_0"]
    model.show(steps(("noise", 0.25, True), ("mix", 44.0, False))[1:], infos())  # the input is not listed
    assert times() == {"second": "10", "noise": "2", "mix": "44"}
    model.show(steps(("noise", 5.0, False)), infos())
    assert times() == {"input_0": "-", "noise": "5", "second": "10", "mix": "0.5"}
    model.sort(2, Qt.SortOrder.DescendingOrder)  # a group by the memory of all its layers
    assert list(times())[:2] == ["second", "mix"]
    known = infos()
    known["second"] = LayerInfo("relu", "ReLU", "N x 6", None, 10)
    known["first"] = LayerInfo("convolution", "Convolution", "N x 5", None, 19990)
    model.show((), {})
    model.show(steps(), known)
    model.sort(2, Qt.SortOrder.AscendingOrder)
    assert list(times()) == ["input_0", "noise", "second", "mix"]


def test_the_infos_are_those_of_the_present_document_precision_and_size(qtbot: QtBot, monkeypatch: Any) -> None:
    registry = default_registry()
    graph = Graph(
        [
            Layer("a", "input", params={"dims": "8x8x3"}),
            Layer("conv", "convolution", inputs=(Source("a"),), params={"features": "4"}),
            Layer("y", "output", inputs=(Source("conv"),)),
        ]
    )
    owner = QObject()
    document, other = Document(graph, registry, parent=owner), Document(graph.copy(), registry, parent=owner)
    other.do(lambda g: set_params(g, {"conv": {"features": "9"}}))
    found = LayerInfos(owner)

    def expect(shown: Document, fed: dict[str, tuple[int, ...]]) -> None:
        assert found.infos == layer_infos(shown.graph, registry, fed, shown.settings.precision)

    fed = {"a": (1, 3, 8, 8)}
    found.ask(document, fed, 0)
    expect(document, fed)
    memory = found.infos["conv"].memory
    for larger in ({"a": (1, 3, 16, 24)}, {"a": (2, 3, 8, 8)}):
        found.ask(document, larger, 0)
        expect(document, larger)
        assert found.infos["conv"].memory != memory
    found.ask(document, fed, 0)
    document.change_settings(precision="fp16")
    found.ask(document, fed, 0)
    expect(document, fed)
    assert found.infos["conv"].memory == (memory or 0) // 2
    document.do(lambda g: set_params(g, {"conv": {"features": "5"}}))
    found.ask(document, fed, 1)
    expect(document, fed)
    found.ask(other, fed, 1)
    expect(other, fed)
    before = found.infos
    found.ask(other, fed, 1)
    assert found.infos is before  # nothing is computed again
    changes: list[int] = []
    found.changed.connect(lambda: changes.append(1))
    monkeypatch.setattr("app.ui.analysis.layer_infos.FEW", 2)
    found.ask(document, fed, 2)  # in a thread
    found.ask(document, {"a": (1, 3, 32, 32)}, 2)  # after it
    assert found.infos is before
    monkeypatch.setattr("app.ui.analysis.layer_infos.FEW", 64)
    found.ask(other, fed, 3)
    found._background.wait()
    qtbot.waitUntil(lambda: not found._background.running, timeout=WAIT)
    expect(other, fed)  # what comes late is not of it
    assert changes == []
    monkeypatch.setattr("app.ui.analysis.layer_infos.FEW", 2)
    for revision in (4, 5):
        document.do(lambda g, r=revision: set_params(g, {"conv": {"features": str(r)}}))
        found.ask(document, fed, revision)
    qtbot.waitUntil(lambda: bool(changes) and not found._background.running, timeout=WAIT)
    expect(document, fed)
    assert changes == [1]


# --- the panel ----------------------------------------------------------------------------------------------------------------


class Stage:
    """The panel of a network that does not run; the test brings results."""

    def __init__(self, qtbot: QtBot) -> None:
        self.context = Context(default_registry())
        self.engine = self.context.engine = EngineClient(command=SILENT)
        self.documents = [self.document("v_split"), self.document("h_split")]
        self.context.set_document(self.documents[0])
        self.analysis: AnalysisController = analysis_of(self.context)
        self.panel = shown(qtbot, AnalysisPanel(self.context), 900, 600)
        self.context.setParent(self.panel)
        self.tabs = self.panel.findChild(QTabWidget, "analysis.outputs")

    def document(self, selection: str) -> Document:
        layers = [
            Layer("a", "input", params={"dims": "16x8x3"}),
            Layer("b", "input", params={"dims": "16x8x3"}),
            Layer("mix", "mix", inputs=(Source("a"), Source("b")), params={"selection": selection, "amount": "0.25"}),
            Layer("y", "output", inputs=(Source("mix"),)),
            Layer("z", "output", inputs=(Source("b"),)),
        ]
        return Document(Graph(layers), self.context.registry, parent=self.context)

    def view(self, layer: str) -> OutputView:
        return self.panel._outputs[layer]

    def run(self, note: str = "", **outputs: np.ndarray) -> None:
        self.analysis.result = AnalysisResult(outputs, note=note)
        self.analysis.result_changed.emit()

    def phase(self, phase: Phase, message: str = "") -> None:
        self.analysis.phase, self.analysis.message = phase, message
        self.analysis.phase_changed.emit(phase)

    def notice(self) -> tuple[str, set[str]]:
        notice = self.panel._notice
        buttons = notice.findChildren(QPushButton)
        names = {each.objectName().rpartition(".")[2] for each in buttons if each.isVisible()}
        return notice.text if notice.isVisible() else "", names

    def buttons(self) -> tuple[bool, bool, str]:
        """Whether one can launch and stop, and the status."""
        return self.panel._launch.isEnabled(), self.panel._stop.isEnabled(), self.panel._status.text()


@pytest.fixture
def stage(qtbot: QtBot) -> Iterator[Stage]:
    made = Stage(qtbot)
    yield made
    made.engine.close(kill=True)


def test_views_of_outputs_belong_to_their_document(stage: Stage) -> None:
    tabs, context = stage.tabs, stage.context
    image = np.full((1, 3, 8, 16), 0.25, np.float32)
    stage.run("random weights", y=image, z=image)
    display = Display(DisplayMode.MAP, exposure=1.0, mark=True)
    stage.view("y").display_bar.show_display(display)
    stage.view("y")._adjust.setChecked(True)
    tabs.setCurrentIndex(1)
    first = stage.view("y")
    assert first.view.split.value == "v_split"
    context.set_document(stage.documents[1])
    assert [tabs.tabText(tab) for tab in range(tabs.count())] == ["y", "z"]
    view = stage.view("y")
    assert view is not first
    assert (view.display_bar.display, view._adjust.isChecked(), tabs.currentIndex()) == (Display(), False, 0)
    assert (view.view.split.value, view.view.image, view.view.note, stage.panel._outputs.keys()) == (
        "h_split",
        None,
        "",
        {"y", "z"},
    )
    stage.documents[0].do(lambda g: remove_layers(g, ["y"]))  # of the document that is not shown
    assert list(stage.panel._outputs) == ["y", "z"]
    document = stage.documents[1]
    view.display_bar.show_display(display)
    view._adjust.setChecked(True)
    document.do(lambda g: rename_layer(g, "y", "renamed"))
    view = stage.view("renamed")
    assert (view.display_bar.display, view._adjust.isChecked(), tabs.currentWidget() is view) == (display, True, True)
    before = document.history.undo_title
    for amount, text in ((0.5, "0.5"), (0.625, "0.625")):
        view.view.split_moved.emit(amount)
        assert document.graph["mix"].params["amount"] == text
    view.view.split_released.emit()
    view.view.split_moved.emit(0.125)
    document.undo()
    assert document.graph["mix"].params["amount"] == "0.625"  # each drag is a step
    document.undo()
    assert (document.graph["mix"].params["amount"], document.history.undo_title) == ("0.25", before)
    for act, split in (
        (lambda: document.do(lambda g: bypass(g, document.inference, ["mix"])), ""),
        (document.undo, "h_split"),
        (lambda: document.do(lambda g: remove_layers(g, ["mix"])), ""),
        (document.undo, "h_split"),
    ):
        act()
        assert stage.view("renamed").view.split.value == split
    document.do(lambda g: remove_layers(g, ["renamed", "z"]))
    assert (tabs.count(), tabs.tabText(0), list(stage.panel._outputs)) == (1, "none", [])
    document.undo()
    assert {tabs.tabText(tab) for tab in range(tabs.count())} == {"renamed", "z"}
    document.do(lambda g: add_layer(g, Layer("new", "output", inputs=(Source("a"),))))
    assert stage.view("new").view.split.value == ""


def test_status_buttons_and_notice_follow_the_phase(stage: Stage) -> None:
    stage.phase(Phase.IDLE)
    assert (stage.buttons(), stage.notice()) == ((True, False, "Not launched"), ("", set()))
    stage.phase(Phase.RUNNING, "Opening …")
    assert (stage.buttons(), stage.notice()) == ((True, True, "Opening …"), ("", set()))
    stage.phase(Phase.WEIGHTS, "There are no weights.")
    assert stage.buttons() == (True, False, "")
    text, names = stage.notice()
    assert "There are no weights. Choose weights, or look at it with random ones." in text
    assert names == {"weights", "file", "random"}
    stage.phase(Phase.FAILED, "It broke.")
    assert stage.buttons() == (True, False, "")
    text, names = stage.notice()
    assert (text.endswith("It broke."), names) == (True, {"restart"})
    stage.phase(Phase.BLOCKED, "The input b has no image.")
    text, names = stage.notice()
    assert (stage.buttons(), text.endswith("The input b has no image."), names) == ((True, False, ""), True, set())
    stage.phase(Phase.RUNNING, "Running …")
    assert (stage.buttons(), stage.notice()) == ((True, True, "Running …"), ("", set()))
    stage.run(y=np.zeros((1, 3, 8, 16), np.float32))
    summary = stage.analysis.result.summary()  # type: ignore[union-attr]
    stage.phase(Phase.READY, summary)
    assert stage.buttons() == (True, False, summary)
    stage.phase(Phase.RUNNING, "Running …")  # it only lasts a moment
    assert stage.buttons() == (True, False, summary)
    for stale, shown_now in ((True, (True, True, "Running …")), (False, (True, False, summary))):  # it lasts longer
        stage.analysis.stale = stale
        stage.analysis.stale_changed.emit(stale)
        assert stage.buttons() == shown_now
    stage.analysis.result = replace(stage.analysis.result, coarse=2)  # type: ignore[type-var]
    stage.phase(Phase.RUNNING, "the full image")
    assert stage.buttons() == (True, True, stage.analysis.result.summary())  # type: ignore[union-attr]
    stage.phase(Phase.STOPPED, "Stopped")
    assert (stage.buttons(), stage.notice()) == ((True, False, "Stopped"), ("", set()))
    document = stage.context.document
    document.do(lambda g: set_params(g, {"mix": {"selection": "custom", "recipe": "a +"}}))
    problem = stage.panel._options._groups["mix"].problem
    assert problem
    stage.phase(Phase.BLOCKED, problem)  # it is displayed where the recipe is typed
    assert (stage.buttons()[2], stage.notice()) == ("Not run: mix has a problem", ("", set()))
    document.undo()
    stage.phase(Phase.READY, "")
    assert stage.panel._options._groups["mix"].problem == ""


def test_the_row_of_an_input_is_about_its_present_file(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    row = stage.panel.findChild(InputRow, "analysis.input.a")
    playback = stage.analysis.playback
    monkeypatch.setattr(playback, "look", lambda layer, path: None)
    photo, other, clip = Path("x/photo.png"), Path("x/other.png"), Path("x/clip.mp4")
    image = np.zeros((4, 8, 3), np.uint8)

    def state() -> tuple[str, str, str, str]:
        """Name, size, what was fed and the problem."""
        problem = row._problem.text() if row._problem.isVisible() else ""
        return row._file.text(), row._size.text(), row._size._tip, problem

    row.show_file(photo, "")
    playback.looked.emit("a", photo, (image, "8 x 4", True))
    row.show_fed((1, 3, 4, 8))
    assert state() == ("photo.png", "8 x 4 · opacity is not used", "fed as 1 x 3 x 4 x 8", "")
    row.show_file(photo, "It is damaged.")
    assert state()[2:] == ("fed as 1 x 3 x 4 x 8", "It is damaged.")
    row.show_file(photo, "")
    assert state()[3] == ""
    row.show_file(other, "")
    assert state()[2:] == ("", "")
    playback.looked.emit("a", other, (image, "9 x 9", False))
    assert state()[:2] == ("other.png", "9 x 9")
    playback.looked.emit("a", photo, (image, "8 x 4", True))  # late
    assert state()[:2] == ("other.png", "9 x 9")
    row.show_fed((1, 3, 9, 9))
    assert state()[1] == "9 x 9"
    playback.tracks["a"] = Track(clip, "video", 40, 25.0, 64, 48, "h264", error="It cannot be decoded.")
    row.show_file(clip, "")
    assert (state()[0], state()[2:]) == ("clip.mp4", ("", "It cannot be decoded."))
    del playback.tracks["a"]
    row.show_file(photo, "")
    assert (state()[0], state()[2:]) == ("photo.png", ("", ""))
    row.show_file(None, "")
    assert state() == ("", "no image chosen", "", "")


def test_labels_and_notes_of_values_are_those_of_their_output_in_the_document_that_is_shown(
    stage: Stage, tmp_path: Path
) -> None:
    context = stage.context
    for name, words in (("cats", "tabby\nmanx"), ("dogs", "pug\nboxer\nhusky")):
        (tmp_path / f"{name}.txt").write_text(words)
    layers = [
        Layer("a", "input", params={"dims": "16x8x3"}),
        Layer("y", "output", inputs=(Source("a"),), params={"label_path": "cats.txt"}),
        Layer("z", "output", inputs=(Source("a"),), params={"label_path": str(tmp_path / "dogs.txt")}),
        Layer("n", "output", inputs=(Source("a"),)),
    ]
    document = Document(Graph(layers), context.registry, tmp_path / "net.xml", parent=context)
    context.set_document(document)
    values = np.arange(3, dtype=np.float32)[None]
    stage.analysis.result = AnalysisResult({"y": values, "z": values + 1}, note="random", nonfinite={"z": 0.5})
    stage.analysis.result_changed.emit()

    def shown_of(layer: str) -> tuple[tuple[str, ...], str, list[float]]:
        features = stage.view(layer).features
        return (
            tuple(features._labels),
            features.note,
            features._values.tolist() if stage.view(layer)._array is not None else [],
        )

    broken = "random; 50.0 % of the values are NaN or infinite"
    assert shown_of("y") == (("tabby", "manx"), "random", [0, 1, 2])
    assert shown_of("z") == (("pug", "boxer", "husky"), broken, [1, 2, 3])
    assert shown_of("n")[0::2] == ((), [])
    document.do(lambda g: set_params(g, {"y": {"label_path": "dogs.txt"}, "z": {"label_path": ""}}))
    stage.run(y=values, n=values)
    assert shown_of("y") == (("pug", "boxer", "husky"), "", [0, 1, 2])
    assert shown_of("z")[0::2] == ((), [])
    assert shown_of("n") == ((), "", [0, 1, 2])
    context.set_document(stage.documents[0])
    stage.run(y=values)
    assert shown_of("y") == ((), "", [0, 1, 2])


def test_options_show_what_applies_and_what_is_wrong(qtbot: QtBot, stage: Stage) -> None:
    document = stage.context.document
    area = stage.panel.findChild(OptionsArea, "analysis.options")

    def state() -> tuple[list[str], str]:
        mine = area._groups["mix"]
        rows = [row.option.param for row in mine._rows if mine._form.isRowVisible(row.widget)]
        return rows, mine.problem

    at_first = state()
    assert at_first[1] == ""
    seen = {}
    for selection in ("custom", "blend", "flicker", "difference", "v_split", "custom"):
        document.do(lambda g, s=selection: set_params(g, {"mix": {"selection": s}}))
        assert seen.setdefault(selection, state()) == state()
        assert ("recipe" in state()[0]) is (selection == "custom")
        assert ("rate" in state()[0]) is (selection == "flicker")
    assert seen["v_split"] == at_first
    edit = area._groups["mix"].findChild(RecipeEdit, "analysis.mix.recipe")
    assert edit is not None
    for text, problem in (("a - b", False), ("a - nothing", True), ("a -", True), ("a + b", False)):
        document.do(lambda g, t=text: set_params(g, {"mix": {"recipe": t}}))
        assert edit.text() == text
        assert bool(state()[1]) is problem
        assert bool(edit.problem) is problem
    document.do(lambda g: set_params(g, {"mix": {"recipe": "a - nothing"}}))
    assert edit.problem == (4, 11)  # the whole word
    document.undo()
    assert (edit.text(), edit.problem, state()[1]) == ("a + b", None, "")
    document.undo()


def test_an_option_that_does_not_apply_comes_back(qtbot: QtBot) -> None:
    layers = [
        Layer("a", "input", params={"dims": "8x8x3"}),
        Layer("noise", "noise", inputs=(Source("a"),)),
        Layer("y", "output", inputs=(Source("noise"),)),
    ]
    document = Document(Graph(layers), default_registry())
    area = shown(qtbot, OptionsArea(), 400, 400)
    document.setParent(area)
    area.show_document(document)
    document.changed.connect(area.follow)

    def rows() -> list[str]:
        group = area._groups["noise"]
        return [row.option.param for row in group._rows if group._form.isRowVisible(row.widget)]

    seen: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for kind in ("gaussian", *KINDS, *reversed(KINDS), "gaussian"):
        document.do(lambda g, k=kind: set_params(g, {"noise": {"kind": k}}))
        assert ("seed" in rows()) is (kind in RANDOM), kind
        seen[kind in RANDOM].add(tuple(rows()))
        document.undo()
        document.redo()
        assert ("seed" in rows()) is (kind in RANDOM), kind
    assert seen[True]
    assert seen[False]
