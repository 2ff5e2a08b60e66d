"""Input sizes in Network Settings, and images of an invalid size in Analysis, with the edit that makes every size work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import analysis_kit as kit
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.result import Phase
from app.ui.engine.size_rules import size_rules_of
from designer.graph.commands import move_layers, set_params, set_property, set_settings
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template
from designer.operators.registry import default_registry
from designer.operators.size_contract import Cause, Failure, InputSizes, SizeRule, size_contract

engine_is_let_go = kit.engine_is_let_go


def blocks(size: int = 4) -> Graph:
    return Graph(
        [
            Layer("input_0", "input", params={"dims": "32x32x3"}),
            Layer("blocks", "space_to_depth", (0, 0), (Source("input_0"),), {"block_size": str(size)}),
            Layer("back", "depth_to_space", (0, 0), (Source("blocks"),), {"block_size": str(size)}),
            Layer("output_0", "output", inputs=(Source("back"),)),
        ]
    )


def text(panel: QWidget, name: str) -> str:
    label = panel.findChild(QLabel, name)
    assert isinstance(label, QLabel)
    return label.text()


@pytest.fixture
def panel(qtbot: QtBot) -> NetworkSettingsPanel:
    context = Context(default_registry())
    context.set_document(Document(blocks(), context.registry))
    panel = NetworkSettingsPanel(context)
    panel.context_kept_alive = context  # type: ignore[attr-defined]
    qtbot.addWidget(panel)
    panel.resize(340, 900)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def test_network_settings_show_the_rule_and_follow_edits(qtbot: QtBot, panel: NetworkSettingsPanel) -> None:
    name = "network_settings.sizes.text"
    qtbot.waitUntil(lambda: text(panel, name) == "input_0: multiples of 4")
    assert "5 fails at 'blocks': an image of 5x32 cannot be divided" not in text(panel, "network_settings.sizes.causes")
    assert "5 fails at 'blocks'" in text(panel, "network_settings.sizes.causes")
    panel._context.document.do(lambda g: set_params(g, {n: {"block_size": "2"} for n in ("blocks", "back")}))
    qtbot.waitUntil(lambda: text(panel, name) == "input_0: multiples of 2")


def test_the_rule_follows_edits_after_which_every_shape_is_the_same(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the network and in a template; other edits leave it."""
    monkeypatch.setattr("app.ui.engine.size_rules._PAUSE_MS", 1)
    conv = Layer("conv", "convolution", (0, 0), (Source("x"),), {"kernel": "3x3", "padding_mode": "reflect"})
    part = Template(
        "part", (Layer("x", "template_input"), conv, Layer("y", "template_output", inputs=(Source("conv"),)))
    )
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "32x32x3"}),
            replace(conv, name="first", inputs=(Source("image"),)),
            Layer("use", "template", inputs=(Source("first"),), params={"template": "part"}),
            Layer("result", "output", inputs=(Source("use"),)),
        ],
        templates=[part],
    )
    context = Context(default_registry())
    document = Document(graph, context.registry, parent=context)
    context.set_document(document)
    rules = size_rules_of(context)

    def least() -> int:
        rules.request()
        qtbot.waitUntil(lambda: rules.contract is not None)
        assert rules.contract is not None
        (sizes,) = rules.contract.inputs
        assert str(sizes.width) == str(sizes.height)
        return sizes.width.minimum

    assert least() == 2
    for edit, size in (
        (lambda g: set_params(g, {"first": {"kernel": "9x9"}}), 5),
        (lambda g: edit_template(g, "part", set_params(g.inside("part"), {"conv": {"kernel": "15x15"}})), 8),
        (lambda g: set_params(g, {"first": {"padding_mode": "zeros"}}), 8),
        (lambda g: edit_template(g, "part", set_params(g.inside("part"), {"conv": {"padding_mode": "zeros"}})), 1),
    ):
        states = dict(document.inference.states)
        assert document.do(edit)
        assert document.inference.states == states
        assert rules.contract is None
        assert least() == size
    for other in (
        lambda g: move_layers(g, {"first": (64, 0)}),
        lambda g: set_property(g, "comment", "text"),
        lambda g: set_settings({"threads": 0}, {"threads": 3}),
    ):
        assert document.do(other)
        assert rules.contract is not None


def test_one_click_makes_every_size_work_and_undo_takes_it_back(qtbot: QtBot, panel: NetworkSettingsPanel) -> None:
    name = "network_settings.sizes.text"
    qtbot.waitUntil(lambda: text(panel, name) == "input_0: multiples of 4")
    button = panel.findChild(QPushButton, "network_settings.sizes.fix")
    assert isinstance(button, QPushButton)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    document = panel._context.document
    assert "pad_to_valid_size_0" in document.graph
    qtbot.waitUntil(lambda: text(panel, name) == "input_0: any size")
    assert not button.isVisible()
    document.undo()
    assert document.graph == blocks()


def test_a_large_network_waits_for_the_user(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ui.engine.size_rules.AUTOMATIC", 3)
    context = Context(default_registry())
    context.set_document(Document(blocks(), context.registry))
    panel = NetworkSettingsPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    button = panel.findChild(QPushButton, "network_settings.sizes.compute")
    assert isinstance(button, QPushButton)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: text(panel, "network_settings.sizes.text") == "input_0: multiples of 4")
    assert not button.isVisible()


def test_the_rule_is_of_the_network_that_is_open_and_only_when_it_is_wanted(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ui.engine.size_rules._PAUSE_MS", 1)
    context = Context(default_registry())
    first = Document(blocks(), context.registry, parent=context)
    context.set_document(first)
    rules, told = size_rules_of(context), []
    assert size_rules_of(context) is rules
    rules.request()
    first.do(lambda g: set_params(g, {n: {"block_size": "2"} for n in ("blocks", "back")}))
    qtbot.waitUntil(lambda: not rules._later.isActive())
    assert not rules._background.running  # it was wanted of the network before the edit
    assert rules.contract is None
    rules.request()
    qtbot.waitUntil(lambda: rules.contract is not None)
    assert "multiples of 2" in str(rules.contract.of("input_0").width)
    rules.changed.connect(lambda: told.append(rules.contract))
    context.set_document(Document(blocks(8), context.registry, parent=context))
    assert told == [None]
    rules.request()
    qtbot.waitUntil(lambda: rules.contract is not None)
    assert "multiples of 8" in str(rules.contract.of("input_0").width)
    assert len(told) == 2
    first.do(lambda g: set_params(g, {"blocks": {"block_size": "4"}}))  # nobody watches it any more
    assert rules.contract is not None


def test_an_image_of_an_invalid_size_is_offered_the_edit(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    document = bench.open(blocks())
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path, size=(25, 18)))
    bench.analysis.launch()
    bench.wait(Phase.FAILED)
    button = panel.findChild(QPushButton, "analysis.notice.sizes")
    assert isinstance(button, QPushButton)
    qtbot.waitUntil(button.isVisible)
    assert "'input_0' is 25 x 18; width: multiples of 4, height: multiples of 4 (because of blocks)" in text(
        panel, "analysis.notice.text"
    )
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    bench.wait(Phase.READY)
    assert bench.analysis.result is not None
    assert bench.analysis.result.outputs["output_0"].shape == (1, 3, 18, 25)
    assert document.history.undo_title == "Accept Every Size"


def test_a_rule_that_is_found_after_an_edit_is_not_that_of_the_network(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is computed again, when it is wanted again."""
    monkeypatch.setattr("app.ui.engine.size_rules._PAUSE_MS", 1)
    go_on, begun = Event(), Event()

    def slowly(*words: object) -> object:
        begun.set()
        assert go_on.wait(30)
        return size_contract(*words)  # type: ignore[arg-type]

    monkeypatch.setattr("app.ui.engine.size_rules.size_contract", slowly)
    context = Context(default_registry())
    document = Document(blocks(), context.registry, parent=context)
    context.set_document(document)
    rules = size_rules_of(context)
    for change in (
        lambda: document.do(lambda g: set_params(g, {n: {"block_size": "2"} for n in ("blocks", "back")})),
        lambda: context.set_document(Document(blocks(8), context.registry, parent=context)),
    ):
        go_on.clear()
        begun.clear()
        document.do(lambda g: set_params(g, {n: {"block_size": "4"} for n in ("blocks", "back")}))
        rules.request()
        qtbot.waitUntil(begun.is_set)
        change()
        go_on.set()
        qtbot.waitUntil(lambda: not rules._background.running)
        assert (rules.contract, rules.error) == (None, "")
        begun.clear()
        rules.request()
        qtbot.waitUntil(lambda: rules.contract is not None)
    assert "multiples of 8" in str(rules.contract.of("input_0").width)


@pytest.mark.parametrize(
    ("height", "width", "refused"), [(8, 12, False), (7, 12, True), (8, 10, True), (12, 8, True), (7, 10, True)]
)
def test_a_size_is_refused_with_the_rules_of_its_width_and_of_its_height(
    qtbot: QtBot, height: int, width: int, refused: bool
) -> None:
    """Sizes are height and width, and their rules are two."""
    context = Context(default_registry())
    context.set_document(Document(blocks(), context.registry, parent=context))
    rules = size_rules_of(context)
    sizes = InputSizes(
        "input_0",
        SizeRule(8, causes=(Cause("multiple_of", "tall", 7, "it does not fit"),)),
        SizeRule(6, causes=(Cause("multiple_of", "wide", 7, "it does not fit"),)),
    )

    class Contract:
        inputs = (sizes,)

        def of(self, layer: str) -> InputSizes | None:
            return sizes if layer == "input_0" else None

        def refusal(self, given: dict[str, tuple[int, int]]) -> Failure | None:
            tall, wide = given["input_0"]
            return Failure("back", "it does not fit") if tall % 8 or wide % 6 else None

    rules.contract = Contract()  # type: ignore[assignment]
    text = rules.refusal({"input_0": (height, width), "unknown": (1, 1)})
    if refused:
        rule = f"'input_0' is {width} x {height}; width: multiples of 6, height: multiples of 8 (because of wide, tall)"
        assert text == rule
    else:
        assert text == ""
    assert rules.refusal({"unknown": (1, 1)}) == ""


def test_only_the_inputs_whose_size_is_refused_are_named(qtbot: QtBot) -> None:
    """Where each input has a size of its own that is valid, the failure itself is said."""
    context = Context(default_registry())
    context.set_document(Document(blocks(), context.registry, parent=context))
    rules = size_rules_of(context)

    def of_input(name: str, step: int) -> InputSizes:
        return InputSizes(name, *(SizeRule(step, causes=(Cause("multiple_of", "blocks", 7, "it"),)) for _ in range(2)))

    known = {name: of_input(name, step) for name, step in (("a", 8), ("b", 4))}

    class Contract:
        inputs: tuple[InputSizes, ...] = tuple(known.values())
        of = staticmethod(known.get)

        def refusal(self, given: dict[str, tuple[int, int]]) -> Failure | None:
            return Failure("sum", "the images differ in size") if len(given) > 1 else None

    rules.contract = contract = Contract()  # type: ignore[assignment]
    rule = "'{}' is {} x {}; width: multiples of {step}, height: multiples of {step} (because of blocks)"
    refused = {"a": rule.format("a", 12, 16, step=8), "b": rule.format("b", 6, 8, step=4)}
    for a, b, said in (
        ((16, 12), (8, 8), refused["a"]),
        ((16, 16), (8, 6), refused["b"]),
        ((16, 12), (8, 6), f"{refused['a']}; {refused['b']}"),
        ((16, 16), (8, 8), "sum: the images differ in size"),
    ):
        assert rules.refusal({"a": a, "b": b, "unknown": (1, 1)}) == said
        assert rules.refusal({"a": a}) == ""
    contract.inputs = ()
    assert rules.refusal({"a": (1, 1), "b": (1, 1)}) == ""


class Rules:
    """The sizes of the open network with a thread and a pause that end when the test says so, and what is expected of them."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rules = rules = size_rules_of(context)
        rules._later.setInterval(10**6)
        rules._background = self  # type: ignore[assignment]
        self.work: Any = None
        self.changed = self.busy = 0
        rules.changed.connect(self._count)
        self.contract, self.error, self.wanted, self.pause = "", "", False, False
        self.job, self.is_of_the_network, self.expected_changes = "", False, 0

    def _count(self) -> None:
        self.changed += 1

    @property
    def running(self) -> bool:
        return self.work is not None

    def start(self, work: Any) -> None:
        assert self.work is None, "the previous work has not finished"
        self.work = work

    def size(self) -> str:
        return self.context.root.graph["blocks"].params["block_size"]

    # --- steps: each is done with the object, and then with what is expected

    def edit(self, rng: Random) -> None:
        size = rng.choice([size for size in SIZES if size != self.size()])
        self.context.root.do(lambda g: set_params(g, {n: {"block_size": size} for n in ("blocks", "back")}))
        self._forgotten()

    def edit_without_sizes(self, rng: Random) -> None:
        self.context.root.do(lambda g: move_layers(g, {"blocks": (rng.randrange(999), 7)}))

    def switch(self, rng: Random) -> None:
        extra = Layer("extra", "identity", inputs=(Source("input_0"),))
        graph = Graph([*blocks(int(rng.choice(SIZES))), *([extra] if rng.random() < 0.4 else [])])
        self.context.set_document(Document(graph, self.context.registry, parent=self.context))
        self._forgotten()

    def _forgotten(self) -> None:
        self.contract, self.error, self.wanted, self.is_of_the_network = "", "", False, False
        self.expected_changes += 1

    def ask(self, rng: Random) -> None:
        asked = rng.random() < 0.3
        self.rules.request(asked=asked)
        large = len(self.context.root.graph) > 4
        assert self.rules.large is large
        if not self.contract and not self.error and not self.wanted and (asked or not large):
            self.wanted = self.pause = True

    def pass_time(self, rng: Random) -> None:
        if self.rules._later.isActive():
            self.rules._later.stop()
            self.rules._start()
        if self.pause and self.wanted and self.job:
            self.busy += 1  # a look again later
        elif self.pause:
            self.pause = False
            if self.wanted:
                self.job, self.is_of_the_network = self.size(), True

    def finish(self, rng: Random) -> None:
        work, self.work = self.work, None
        if work is not None:
            try:
                found = work()
            except DiagnosticError as error:
                self.rules._arrived(None, error.diagnostics[0].message)
            else:
                self.rules._done(found)
        if self.job and self.is_of_the_network:
            fails = self.job == "8"
            self.contract, self.error = ("", "eight") if fails else (f"multiples of {self.job}", "")
            self.wanted = False
            self.expected_changes += 1
        self.job = ""

    def check(self) -> None:
        rules = self.rules
        assert ("" if rules.contract is None else str(rules.contract.inputs[0].width)) == self.contract
        assert (rules.error, rules._later.isActive(), self.running) == (self.error, self.pause, bool(self.job))
        assert self.changed == self.expected_changes


SIZES = ("2", "4", "8")


@pytest.mark.parametrize("seed", range(3))
def test_the_sizes_in_every_order_of_edits_requests_and_answers(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """An answer is that of the network when the work began, and is dropped when it has changed since."""

    def computed(graph: Graph, registry: Any) -> Any:
        if graph["blocks"].params["block_size"] == "8":
            raise DiagnosticError.of("no-size", "eight")
        return size_contract(graph, registry)

    monkeypatch.setattr("app.ui.engine.size_rules.size_contract", computed)
    monkeypatch.setattr("app.ui.engine.size_rules.AUTOMATIC", 4)
    context = Context(default_registry())
    context.set_document(Document(blocks(), context.registry, parent=context))
    rules, rng = Rules(context), Random(seed)
    ways = [rules.edit, rules.edit_without_sizes, rules.switch, rules.finish, *[rules.ask, rules.pass_time] * 3]
    taken = []
    for _ in range(200):
        way = rng.choice(ways)
        taken.append(way.__name__)
        way(rng)
        rules.check()
    assert {"switch", "finish"} <= set(taken)
    assert rules.busy >= 1, "the sizes are wanted while those of an earlier network are computed"
