"""After any steps, what the analysis shows was computed by an engine that has what the document has; a model of the engine says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import analysis_kit as kit
import msgspec
import numpy as np
import pytest

pytest.importorskip("PySide6")
from engine_kit import ScriptedEngine
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.protocol import (
    EmptyReply,
    OpenReply,
    OpenRequest,
    Request,
    RunReply,
    RunRequest,
    SetFormatsRequest,
    SetInputReply,
    SetInputRequest,
    SetParamRequest,
    SetWeightsRequest,
    TensorStatus,
    UpdateRequest,
)
from app.ui.document.document import Document
from app.ui.engine.requests import open_variant
from app.ui.engine.result import Phase
from designer.files.document import parse_document, write_document
from designer.files.variants import Variant
from designer.files.weights import WeightStatus
from designer.graph.bypass import bypass
from designer.graph.commands import add_layer, remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.model import Layer, Source
from designer.runtime.number_formats import FORMATS

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go
OTHER = next(name for name in FORMATS if FORMATS[name].is_integer)
STEPS = 70


@dataclass
class Held:
    """What the engine has: the request that opened the network, its text, and what was set since."""

    opening: OpenRequest | None = None
    text: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    weights: str = ""
    sent: dict[str, tuple[object, ...]] = field(
        default_factory=dict
    )  # of what the tensors that were brought were computed

    def state(self) -> tuple[object, ...]:
        return self.text, dict(self.inputs), dict(self.formats), self.weights


class Model(kit.Launched):
    """The analysis with a model of the engine that answers as an engine would."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.engine = ScriptedEngine()
        super().__init__(qtbot, self.engine)  # type: ignore[arg-type]
        self.images = [str(kit.picture(folder, f"{name}.png")) for name in "ab"]
        self.documents: list[Document] = []
        for features in (8, 4):
            self.documents.append(self.open(kit.small_network(features)))
            self.document.change_settings(input_files={"input_0": self.images[0]}, random_seed=3)
        self.held = Held()
        self.weights = ""  # of the time machine
        self.computed: dict[float, tuple[object, ...]] = {}  # what the engine had, by the number of the run
        self.opened: dict[float, OpenRequest | None] = {}
        self.messages: list[str] = []
        self.context.message.connect(lambda level, text: self.messages.append(text))
        self.analysis._rest.setInterval(0)

    @property
    def document(self) -> Document:
        return self.context.root

    def reply(self, request: Request[Any], *, awaited: bool) -> object:
        """Carry out one request, also one whose answer is of no use any more."""
        held = self.held
        match request:
            case OpenRequest():
                self.held = Held(request, request.document, {}, dict(request.formats), request.weights or "")
                if request.seed is None and not request.weights:
                    return OpenReply((TensorStatus("conv_0", "kernel", WeightStatus.MISSING, (3, 8, 3, 3)),))
                return OpenReply()
            case UpdateRequest():
                held.text = request.document
                return OpenReply()
            case SetParamRequest():
                graph = parse_document(held.text.encode()).graph
                assert graph is not None
                assert request.param in graph[request.layer].params
                graph.apply(set_params(graph, {request.layer: {request.param: request.text}}))
                held.text = write_document(graph).decode()
            case SetFormatsRequest():
                held.formats = dict(request.formats)
            case SetWeightsRequest():
                held.weights = request.path
            case SetInputRequest():
                held.inputs[request.layer] = request.path
                return SetInputReply((1, 3, 16, 24))
            case RunRequest():
                graph = parse_document(held.text.encode()).graph
                assert graph is not None
                number = float(len(self.computed) + 1)
                self.computed[number], self.opened[number] = held.state(), held.opening
                image = np.full((1, 3, 16, 24), number, np.float32)
                assert {name.partition(":")[0] for name in request.capture} <= graph.layers.keys(), (
                    "a tensor of another network"
                )
                result = self.analysis.result
                known = (
                    set(request.capture) & held.sent.keys() & (result.captures.keys() if result is not None else set())
                )
                assert set(request.have) == known or not awaited, (
                    "the window says that it has what it was brought of this network"
                )
                same = tuple(name for name in request.have if held.sent.get(name) == held.state())
                captures = {
                    name: self.engine.give(f"{name} {number}", image) for name in request.capture if name not in same
                }
                held.sent |= dict.fromkeys(request.capture, held.state())
                return RunReply({"output_0": self.engine.give(f"out {number}", image)}, captures, same)
        return EmptyReply()

    def answer(self, most: int = 1000) -> int:
        """Answer the oldest requests; returns how many."""
        count = 0
        while self.engine.calls and count < most:
            call = self.engine.next(Request)
            call.finish(self.reply(call.request, awaited=call.wanted))
            count += 1
        return count

    def settle(self) -> None:
        """Answer until nothing is asked any more."""
        for _ in range(60):
            QApplication.processEvents()
            if not self.answer() and not self.analysis._rest.isActive() and not self.engine.calls:
                QApplication.processEvents()
                if not self.engine.calls:
                    return
        raise AssertionError("it goes on asking")

    def wanted(self) -> tuple[object, ...]:
        """What the engine must have for the open document."""
        opening = open_variant(self.document, Path(self.weights) if self.weights else None)
        inputs = {layer: str(self.analysis.inputs.path(layer)) for layer in self.analysis.inputs.layers()}
        return opening.document, inputs, dict(opening.formats), opening.weights or ""

    def check(self) -> None:
        """Nothing is asked, and what is shown was computed from what the document has now."""
        analysis = self.analysis
        assert not self.engine.calls
        assert not analysis._dim.isActive(), "it would be dimmed later"
        assert not analysis.capture or analysis.capture in self.document.graph
        if analysis.phase is Phase.WEIGHTS:
            assert self.document.settings.random_seed is None
            assert not self.weights
            assert analysis.message.startswith("1 weight is missing")
            assert analysis.stale is (analysis.result is not None)
            return
        if analysis.phase is not Phase.READY:
            assert analysis.stale is (analysis.result is not None)
            assert analysis.phase in (Phase.IDLE, Phase.STOPPED, Phase.FAILED, Phase.BLOCKED), analysis.message
            return
        assert not analysis.stale
        assert analysis.result is not None
        number = float(analysis.result.outputs["output_0"].flat[0])
        assert number == max(self.computed), "a result that came before is shown"
        assert self.computed[number] == self.wanted()
        opening = open_variant(self.document, Path(self.weights) if self.weights else None)
        made = self.opened[number]
        assert made is not None
        opened = msgspec.structs.replace(
            made, document=opening.document, weights=opening.weights, formats=opening.formats
        )
        assert opened == opening, "it was opened with other settings"
        if analysis.capture:
            brought = float(analysis.result.captures[analysis.capture].flat[0])
            assert self.computed[brought] == self.computed[number]
            assert self.opened[brought] == self.opened[number]


def refusal(code: str) -> tuple[Diagnostic, ...]:
    severity = Severity.INFO if code == "cancelled" else Severity.ERROR
    return (Diagnostic(code, "it cannot be done", severity),)


def crash(model: Model) -> None:
    calls, model.engine.calls, model.engine.opened = model.engine.calls, [], None
    model.engine.crashed.emit("It died.")
    for call in calls:
        call.fail(refusal("engine-crashed"))


def refuse(model: Model, last: bool) -> None:
    calls = model.engine.calls
    if calls:
        call = calls.pop(-1 if last else 0)
        call.fail(refusal("out-of-memory"))


def steal(model: Model) -> None:
    """Another panel opens its own network in the engine."""
    other = open_variant(model.documents[1])
    model.engine.ask(other, model.context)


def steps(dice: Random, model: Model) -> dict[str, Callable[[], object]]:
    document, analysis = model.document, model.analysis
    graph = document.graph
    value, number = f"0.{dice.randrange(1, 9)}", dice.randrange(1000)
    layers = list(graph.layers)
    some, present = dice.choice(layers), document.settings.input_files.get("input_0", "")
    half = Variant("half", "fp16", formats={"conv_0": OTHER})
    plain = Variant("plain", "fp32", formats={"conv_0": OTHER} if number % 2 else {})

    def show(path: str) -> None:
        model.weights = path
        analysis.show_weights(Path(path) if path else None)

    def go(other: int) -> None:
        model.weights = ""
        model.context.set_document(model.documents[other])

    noise = next((name for name in layers if graph[name].type == "noise"), some)
    return {
        "scale": lambda: document.do(lambda g: set_params(g, {noise: {"scale": value}})) if noise != some else None,
        "seed": lambda: document.do(lambda g: set_params(g, {noise: {"seed": str(number)}})) if noise != some else None,
        "amount": lambda: document.do(lambda g: set_params(g, {"mix_0": {"amount": value}})),
        "kernel": lambda: document.do(lambda g: set_params(g, {"conv_0": {"kernel": dice.choice(("3x3", "5x5"))}})),
        "rename": lambda: document.do(lambda g: rename_layer(g, noise, f"noise_{number}")),
        "add": lambda: document.do(
            lambda g: add_layer(g, Layer(f"more_{number}", "output", inputs=(Source("conv_0"),)))
        ),
        "remove": lambda: (
            document.do(lambda g: remove_layers(g, [some], heal=True)) if some.startswith("more") else None
        ),
        "bypass": lambda: document.do(lambda g: bypass(g, document.inference, [noise])),
        "break": lambda: document.do(lambda g: set_params(g, {"conv_0": {"kernel": "none"}})),
        "undo": document.undo,
        "redo": document.redo,
        "undo again": document.undo,
        "image": lambda: document.change_settings(input_files={"input_0": dice.choice(model.images)}),
        "the same image": lambda: analysis.inputs.set_file("input_0", Path(present)) if present else None,
        "threads": lambda: document.change_settings(threads=1 + number % 3),
        "variant": lambda: document.change_settings(variants=(half, plain), variant=dice.choice(("half", "plain", ""))),
        "capture": lambda: analysis.set_capture(dice.choice(("conv_0", noise, "conv_h"))),
        "no capture": lambda: analysis.set_capture(""),
        "a step of a run": lambda: show(f"/runs/{number % 3}.safetensors"),
        "the weights of the document": lambda: show(""),
        "no random weights": lambda: document.change_settings(random_seed=None),
        "random weights": lambda: document.change_settings(random_seed=3),
        "agree to random weights": lambda: analysis.launch_random(3),
        "stop": analysis.stop,
        "launch": analysis.launch,
        "launch again": analysis.launch,
        "launch once more": analysis.launch,
        "again": analysis.again,
        "other document": lambda: go(1),
        "first document": lambda: go(0),
        "crash": lambda: crash(model),
        "refuse the run": lambda: refuse(model, True),
        "refuse what comes first": lambda: refuse(model, False),
        "another panel": lambda: steal(model),
        "one answer": lambda: model.answer(1),
        "two answers": lambda: model.answer(2),
    }


@pytest.mark.parametrize("seed", range(16))
def test_what_is_shown_was_computed_from_what_the_document_has(qtbot: QtBot, tmp_path: Path, seed: int) -> None:
    dice, model, log = Random(seed), Model(qtbot, tmp_path), list[str]()
    model.context.set_document(model.documents[0])
    model.analysis.launch()
    for _ in range(STEPS):
        choices = steps(dice, model)
        name = dice.choice(list(choices))
        log.append(name)
        choices[name]()
        if dice.random() < 0.4:
            model.settle()
            try:
                model.check()
            except AssertionError as error:
                raise AssertionError(f"after {log}: {error}") from error
    model.settle()
    while model.document.undo():  # what was broken is mended
        pass
    model.document.change_settings(random_seed=3)
    model.analysis.launch()
    model.settle()
    assert model.analysis.phase is Phase.READY, (model.analysis.message, log)
    model.check()


SITUATIONS = {
    "not launched": (lambda model: None, False),
    "while it is opened": (lambda model: model.analysis.launch(), True),
    "while it runs": (lambda model: (model.analysis.launch(), model.answer(1)), True),
    "when it has run": (lambda model: (model.analysis.launch(), model.settle()), True),
    "after a stop": (lambda model: (model.analysis.launch(), model.settle(), model.analysis.stop()), False),
    "after a refusal": (lambda model: (model.analysis.launch(), refuse(model, True)), True),
    "in another document": (
        lambda model: (model.analysis.launch(), model.settle(), model.context.set_document(model.documents[0])),
        False,
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_crash_is_said_where_something_was_launched(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    """An engine can die while nothing of ours runs: what is launched does not follow edits any more then."""
    begin, said = SITUATIONS[name]
    model = Model(qtbot, tmp_path)
    begin(model)
    before = (model.analysis.phase, model.analysis.message)
    shown = model.analysis.result is not None
    crash(model)
    assert model.messages == (["It died."] if said else [])
    assert (model.analysis.phase, model.analysis.message) == ((Phase.FAILED, "It died.") if said else before)
    assert model.analysis.stale is (shown and before[0] is not Phase.IDLE)
    model.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.7"}}))
    QApplication.processEvents()
    assert model.engine.calls == []
    crash(model)
    assert model.messages == (["It died."] if said else [])
    model.analysis.launch()
    assert [request.method for request in model.engine.requests()] == ["open"]
    model.settle()
    assert model.analysis.phase is Phase.READY
    model.check()


@pytest.mark.parametrize("problem", ["missing", "cannot-read", "weights-missing", "out-of-memory"])
def test_what_is_chosen_while_the_network_is_opened_counts_when_that_fails(
    qtbot: QtBot, tmp_path: Path, problem: str
) -> None:
    """The engine answers about settings that are others now: it is asked again, and the user is not."""
    model = Model(qtbot, tmp_path)
    model.document.change_settings(random_seed=None, weights=str(tmp_path / "missing"))

    def answer() -> None:
        call = model.engine.next(OpenRequest)
        if problem == "missing":
            call.finish(OpenReply((TensorStatus("conv_0", "kernel", WeightStatus.MISSING, (3, 8, 3, 3)),)))
        else:
            call.fail(refusal(problem))

    model.analysis.launch()
    model.document.change_settings(random_seed=3, weights="")
    answer()
    assert model.analysis.phase is Phase.RUNNING
    assert model.engine.requests() == [open_variant(model.document)]
    model.settle()
    assert model.analysis.phase is Phase.READY
    model.check()
    model.analysis.launch()
    answer()
    assert model.engine.calls == [], "nothing has changed meanwhile"
    assert model.analysis.phase is (Phase.FAILED if problem == "out-of-memory" else Phase.WEIGHTS)
