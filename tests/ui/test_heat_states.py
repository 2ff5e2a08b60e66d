"""What colors the layers of the canvas in any state: the heat of a panel, a run, a comparison or a training run, and the critical path.

A small model says what is shown after each of many random steps.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QRectF
from pytestqt.qtbot import QtBot
from random_steps import play

from app.ui.document.document import Document
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer, Source
from designer.graph.template import Template
from designer.profiling.heat import Heat, Metric
from designer.profiling.schema import OperatorProfile, ProfileRun

PROBLEMS = (("i.x", "dead since step 3"), ("gone", "lost since step 4"), ("hidden", "too large since step 5"))
BLAME = Metric("blame", "Share of the error", "%", lambda row: None, extensive=False)
EMPTY, GIVEN = Heat(BLAME, {}), Heat(BLAME, {"a": 4.0, "i.x": 12.0, "hidden": 3.0, "gone": 5.0})
NO_RUN = "No run to show yet. Launch inference in the Profile workspace, then the layers are colored."

# what is shown of each kind in the whole network: name, share, label; the legend. `hidden` is seen in a collapsed frame.
SHOWN: dict[str, tuple[list[tuple[str, float, str]], str]] = {
    "time": (
        [("in", 0.25, "1.00 ms"), ("a", 1.0, "4.00 ms"), ("hidden", 0.5, "2.00 ms"), ("i", 0.75, "3.00 ms")],
        "Time: 0 - 4.00 ms",
    ),
    "flops": (
        [("in", 0.0, "0 FLOP"), ("a", 0.5, "2.00 MFLOP"), ("hidden", 0.0, "0 FLOP"), ("i", 1.0, "4.00 MFLOP")],
        "FLOPs: 0 - 4.00 MFLOP",
    ),
    "difference": (
        [("a", 1.0, "+2.00 ms"), ("i", -0.5, "-1.00 ms")],
        "Difference of the compared runs: -2.00 ms - +2.00 ms",
    ),
    "given": (
        [("a", 1 / 3, "4.00 %"), ("i", 1.0, "12.0 %"), ("hidden", 0.25, "3.00 %")],
        "Share of the error: 0 - 12.0 %",
    ),
}
PATH = ["in", "a", "hidden", "i"]  # the output takes no time


def network() -> Graph:
    inner = (
        Layer("p", "template_input"),
        Layer("x", "identity", (320, 0), (Source("p"),)),
        Layer("q", "template_output", (640, 0), (Source("x"),)),
    )
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "16x16x3"}),
        Layer("a", "identity", (320, 0), (Source("in"),)),
        Layer("hidden", "identity", (640, 0), (Source("a"),), attributes={FOLDED: "f"}),
        Layer("i", "template", (960, 0), (Source("hidden"),), {"template": "t"}),
        Layer("out", "output", (1280, 0), (Source("i"),)),
    ]
    frame = Frame("f", "Shut", rect=(600, -60, 240, 200), collapsed=True)
    return Graph(layers, frames=(frame,), templates=(Template("t", inner),))


def run() -> ProfileRun:
    rows = tuple(
        OperatorProfile((name,), "identity", time_ms=time, flops=flops)
        for name, time, flops in (
            ("in", 1.0, 0),
            ("a", 4.0, 2_000_000),
            ("hidden", 2.0, 0),
            ("i.x", 3.0, 4_000_000),
            ("gone", 9.0, 0),
        )
    )
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "16x16", 10.0, 0.1, rows)


class Bench:
    """A canvas whose runs are given by the test, and what it must show."""

    def __init__(self, qtbot: QtBot, seed: int) -> None:
        self.random = Random(seed)
        self.canvas = kit.open_canvas(qtbot, network())
        self.context, self.heat = self.canvas.context, self.canvas.heat
        rows = [
            SimpleNamespace(verdict=verdict, difference_ms=ms, layers=(name,))
            for name, ms, verdict in (("in", 0.5, "none"), ("a", 2.0, "slower"), ("i.x", -1.0, "faster"))
        ]
        self.profiling = SimpleNamespace(current=None, found=None, difference=lambda: self.profiling.found)
        self.health = SimpleNamespace(health=None, metric="")
        self.differs = SimpleNamespace(rows=rows)
        self.measured = SimpleNamespace(
            layers={"a": {"gradient": 2.0}, "hidden": {"gradient": 8.0}, "out": {"gradient": None}},
            problems=tuple(SimpleNamespace(layer=layer, text=text) for layer, text in PROBLEMS),
        )
        self.heat._profiling, self.heat._health = self.profiling, self.health
        self.metric, self.critical, self.given = "", False, None
        self.changes, self.expected_changes = 0, 0
        self.said: list[str] = []
        self.heat.changed.connect(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    # --- steps ---------------------------------------------------------------------------------------------------

    def choose(self) -> None:
        self.metric, self.given = self.random.choice(("", "time", "flops", "difference")), None
        self.expected_changes += 1
        if self.metric and self.profiling.current is None:
            self.said.append(NO_RUN)
        self.heat.show_metric(self.metric)

    def critical_path(self) -> None:
        self.critical = not self.critical
        self.expected_changes += 1
        self.heat.toggle_critical_path()

    def give(self) -> None:
        found = self.random.choice((None, None, GIVEN, EMPTY))
        if found is not self.given:
            self.expected_changes += 1
            self.metric = self.metric if found is None else ""
        self.given = found
        self.context.heat_requested.emit(found)

    def measure(self) -> None:
        self.profiling.current = self.random.choice((None, SimpleNamespace(run=run())))
        self.heat.refresh()

    def compare(self) -> None:
        self.profiling.found = self.random.choice((None, self.differs))
        self.heat.refresh()

    def train(self) -> None:
        self.health.health = self.random.choice((None, self.measured))
        self.health.metric = self.random.choice(("", "gradient", "problems"))
        self.heat.refresh()

    def another_file(self) -> None:
        """It has the same layers; only what a panel gave goes."""
        self.expected_changes += self.given is not None
        self.given = None
        self.context.set_document(Document(network(), self.context.registry, parent=self.context))

    # --- the model -----------------------------------------------------------------------------------------------

    def area(self, name: str) -> QRectF:
        return self.canvas.projection.entry(name).area()

    def wanted(self) -> tuple[list[tuple[str, float, str]], list[str], str | None]:
        """The cells, the path and the legend; None if it is hidden."""
        if self.given is not None:
            return (*self._kind("given", []),) if self.given is GIVEN else ([], [], None)
        if self.health.health is not None and self.health.metric and not self.metric and not self.critical:
            shown = [("i", "dead since step 3"), ("hidden", "too large since step 5")]
            if self.health.metric == "problems":
                return [(name, 0.0, text) for name, text in shown], [], None
            cells = [
                ("a", self._log(2.0), "2.00"),
                ("hidden", 1.0, "too large since step 5"),
                ("i", 0.0, "dead since step 3"),
            ]
            return cells, [], "Gradient norm: 2.00 - 8.00"
        if self.profiling.current is None or not (self.metric or self.critical):
            return [], [], None
        path = PATH if self.critical else []
        if not self.metric or (self.metric == "difference" and self.profiling.found is None):
            return [], path, None
        return self._kind(self.metric, path)

    @staticmethod
    def _kind(kind: str, path: list[str]) -> tuple[list[tuple[str, float, str]], list[str], str]:
        cells, legend = SHOWN[kind]
        return cells, path, legend

    @staticmethod
    def _log(value: float) -> float:
        return 0.0

    def check(self) -> None:
        heat, item = self.heat, self.heat.item
        cells, path, legend = self.wanted()
        found = [(cell.rect, cell.share, cell.label) for cell in item.cells]
        assert found == [(self.area(name), pytest.approx(share), label) for name, share, label in cells]
        assert {cell.signed for cell in item.cells} <= {self.metric == "difference" and self.given is None}
        assert [cell.label for cell in item.cells if cell.problem] == [x for _, _, x in cells if "since" in x]
        assert item.path == [self.area(name) for name in path]
        assert item.isVisible() is bool(cells or path)
        assert heat.legend.isHidden() is (legend is None)
        if legend is not None:
            assert heat.legend.accessibleDescription() == legend
        assert (heat.metric, heat.critical) == (self.metric, self.critical)
        assert self.changes == self.expected_changes
        assert [text for _, text in self.canvas.messages] == self.said


@pytest.mark.parametrize("seed", range(2))
def test_what_colors_the_layers_after_any_steps(qtbot: QtBot, seed: int) -> None:
    bench = Bench(qtbot, seed)
    steps = (bench.choose, bench.choose, bench.critical_path, bench.give, bench.measure, bench.compare, bench.train)
    play(bench, (*steps, bench.another_file), 70)
