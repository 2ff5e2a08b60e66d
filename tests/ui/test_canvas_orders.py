"""What is done on the canvas after something else: what each step changes there and in the document is recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from control_walk import digest
from effects import Effects, State
from PySide6.QtCore import QPointF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from recorded_state import compare, plain
from test_recorded_commands import network, select
from window_kit import show, without_pauses

from app.ui.canvas import layer_clipboard
from app.ui.shell.window import MainWindow
from designer.graph import commands, frames
from designer.profiling.heat import METRICS, Heat

MOST = 14  # lines that are kept of a step


class CanvasEffects(Effects):
    """Also how the layers and links are drawn, and which commands can be used."""

    def state(self) -> State:
        found = super().state()
        projection = self.window.canvas.projection
        for name in sorted(projection.layers):
            item = projection[name]
            look = item.look
            words = [word for word in ("inspected", "training", "collapsed", "bypassed") if getattr(look, word)]
            ports = [f"{port.name}:{port.tip}" for port in (*look.inputs, *look.outputs)]
            facts = (look.problem, look.title, look.summary, look.activation, look.under, look.tip, *ports)
            seen = f"{'seen' if item.isVisible() else 'hidden'} {'selected' if item.isSelected() else ''}"
            found[f"drawn {name}"] = f"{seen} {' '.join(words)} {' | '.join(facts)}".replace("\n", " ")
            for link in item.links():
                found[f"link {link.key}"] = f"{link.isVisible()} {link.label} {link.on_path} {link.isSelected()}"
        found["commands"] = digest(*(n for n in self.window.actions_.declared if self.window.actions_[n].isEnabled()))
        return found


SELECTIONS: dict[str, tuple[object, ...]] = {
    "conv": ("conv",),
    "low and sum": ("low", "sum"),
    "an instance": ("block_1",),
    "a link": ("link", "sum", 1),
    "a frame": ("frame", "f"),
    "what is bypassed": ("same",),
    "a collapsed frame": ("frame", "g"),
}
COMMANDS = (
    *("edit.delete", "edit.delete_heal", "edit.bypass", "edit.freeze", "edit.collapse", "edit.frame"),
    *("edit.duplicate", "edit.copy", "edit.paste", "edit.straighten", "edit.undo", "template.make"),
    *("template.dissolve", "template.enter", "select.downstream", "view.critical_path"),
)

ALL = (*COMMANDS, "heat", "change", "inspect")


class OnCanvas:
    """What is done on the canvas of a window."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.context, self.count = window, window.context, 0
        self.acts: dict[str, Callable[[], object]] = {name: window.actions_[name].trigger for name in COMMANDS}
        self.acts |= {"heat": self.heat, "change": self.change, "inspect": self.inspect}

    def select(self, what: tuple[object, ...]) -> bool:
        """Select what is there; False if nothing of it is."""
        projection, graph = self.window.canvas.projection, self.context.document.graph
        self.context.select(())
        if what[0] == "frame" and what[1] not in graph.frames:
            return False
        if what[0] == "link" and (what[1] not in graph or projection.link(*what[1:]) is None):
            return False
        if what[0] not in ("link", "frame") and not any(name in graph for name in what):
            return False
        select(self.window, what)
        return True

    def heat(self) -> None:
        self.count += 1
        values = {"conv": 10.0, "sum": 30.0 + self.count % 3} if self.count % 2 else None
        labels = {name: f"{value} ms" for name, value in (values or {}).items()}
        self.context.heat_requested.emit(Heat(METRICS["time"], values, labels) if values else None)

    def change(self) -> None:
        document = self.context.document
        name = next((name for name in ("conv", "i") if name in document.graph), "")
        if name:
            key, text = ("kernel", "5x5") if name == "conv" else ("operation", "max")
            document.do(lambda graph: commands.set_params(graph, {name: {key: text}}))

    def inspect(self) -> None:
        self.context.inspected.emit("sum" if self.context.inspected_layer != "sum" else "")

    def back(self, steps: int) -> None:
        """To the network as it was."""
        self.context.set_scope(())
        while self.context.root.history.steps > steps:
            self.context.root.undo()
        self.context.heat_requested.emit(None)
        if self.context.inspected_layer:
            self.context.inspected.emit("")
        self.context.select(())
        QApplication.processEvents()


@pytest.fixture
def on_canvas(empty_window: MainWindow) -> OnCanvas:
    """The network of the commands, with a collapsed frame."""
    window = show(empty_window, network())
    document = window.context.document
    document.do(lambda g: frames.collapse(g, [], ["g"], window.canvas.projection.members))
    show(window, document.graph.copy())
    window.canvas.context = window.context
    window.canvas.viewer.pointer = lambda: QPointF(400, 900)  # where the pointer is depends on the screen
    window.setUpdatesEnabled(False)  # painting and pauses would take most of the time
    without_pauses(window)
    return OnCanvas(window)


@pytest.mark.parametrize("first", ALL[::6])  # all of them take 17 s
def test_what_is_done_after(on_canvas: OnCanvas, first: str) -> None:
    window, context = on_canvas.window, on_canvas.context
    layer_clipboard.copy(network(), ["conv"])
    copied = QGuiApplication.clipboard().text()
    effects = CanvasEffects(window)
    base, steps, places = context.root.graph.copy(), context.root.history.steps, list(SELECTIONS)
    lines = []
    for number, second in enumerate(ALL):
        for turn, name in enumerate((first, second)):
            place = places[(ALL.index(first) + number * (turn + 1) + turn) % len(places)]
            there = on_canvas.select(SELECTIONS[place])
            found = effects.of(on_canvas.acts[name], sized=True)
            effects.close()
            kit.check(window.canvas, context.document)
            lines.append(f"# {name}: {place if there else 'nothing'}")
            lines += [plain(line)[:300] for line in found[:MOST]]
            lines += [f"and {len(found) - MOST} more"] if found[MOST:] else []
        on_canvas.back(steps)
        assert context.root.graph == base
        QGuiApplication.clipboard().setText(copied)
    compare(f"canvas_after_{first}", lines)
