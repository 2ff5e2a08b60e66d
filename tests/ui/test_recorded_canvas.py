"""A session over what lies on the canvas: heat, number formats, differences, the path into templates, tips and marks, step by step."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = [pytest.mark.gui, pytest.mark.timeout(300)]

import re
from collections.abc import Callable, Iterator

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QToolButton, QTreeWidget
from recorded_state import compare
from window_kit import press, settle, show, without_pauses

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.node_layout import fonts
from app.ui.document.document import Document
from app.ui.engine.profiling import profiling_of
from app.ui.shell.window import MainWindow
from app.ui.widgets.search_popup import SearchPopup
from designer.files.variants import BY_HAND, Variant
from designer.graph import commands, frames, routes
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template, rename_template
from designer.profiling.heat import Heat, Metric
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

FORMATS = {"first": "fp16", "block_1.pair.a": "int8", "block_2": "bf16", "conv": "fp16", "loss": "fp16", "gone": "int8"}
REASONS = {"first": "sensitive", "conv": BY_HAND, "block_2": BY_HAND}
TIMES = {
    **{"image": 0.01, "first": 2.0, "conv": 8.0, "block_1.in.x": 0.5, "block_1.pair.a": 3.0, "block_1.pair.b": 1.0},
    **{"block_1.last": 0.25, "block_2.pair.a": 1.5, "block_2.pair.b": 0.75, "block_2.last": 0.125, "hidden": 6.0},
    **{"out": 0.02},
}
ELSEWHERE = re.compile("heat of|format of|mark of|breadcrumb|check of")  # what lies on the layers of every scope
GIVEN = Heat(
    Metric("blame", "Share of the error", "%", lambda row: None, extensive=False),
    {"first": 4.0, "block_1.pair.b": 12.0, "block_2.last": 3.0},
)


def network() -> Graph:
    """Two instances of a template with another one in it, a loss, a layer that is bypassed and one in a collapsed frame."""
    conv = {"features": "4", "kernel": "3x3", "padding": "same"}
    pair = (
        Layer("p", "template_input"),
        Layer("a", "convolution", (320, 0), (Source("p"),), conv),
        Layer("b", "convolution", (640, 0), (Source("a"),), conv),
        Layer("q", "template_output", (960, 0), (Source("b"),)),
    )
    block = (
        Layer("x", "template_input"),
        Layer("pair", "template", (320, 0), (Source("x"),), {"template": "pair"}),
        Layer("last", "convolution", (640, 0), (Source("pair"),), conv),
        Layer("y", "template_output", (960, 0), (Source("last"),)),
        Layer("z", "template_output", (960, 160), (Source("pair"),), {"index": "1"}),
    )
    layers = [
        Layer("image", "input", (0, 0), params={"dims": "32x24x3"}),
        Layer("first", "convolution", (320, 0), (Source("image"),), conv, ActivationSpec("relu")),
        Layer("conv", "convolution", (640, 0), (Source("first"),), conv, None, {"lw:frozen": "true"}),
        Layer("block_1", "template", (960, 0), (Source("conv"),), {"template": "block"}),
        Layer("block_2", "template", (1280, 0), (Source("block_1", "z"),), {"template": "block"}),
        Layer("out", "output", (1600, 0), (Source("block_2"),)),
        Layer("same", "convolution", (640, 320), (Source("first"),), conv, None, {"lw:bypassed": "true"}),
        Layer("hidden", "convolution", (960, 320), (Source("same"),), conv).folded_into("f"),
        Layer("more", "convolution", (1280, 320), (Source("hidden"),), conv),
        Layer("target", "input", (1280, 640), params={"dims": "32x24x4"}),
        Layer("loss", "l1_loss", (1600, 640), (Source("block_2", "z"), Source("target"))),
        Layer("strange", "convolution", (0, 640), (), {**conv, "kernel": "0x0"}),
    ]
    return Graph(
        layers,
        name="session",
        frames=[
            Frame("f", "Shut", "in it", "", (940, 260, 280, 200), collapsed=True),
            Frame("n", "Note", "first line\nsecond", "", (-320, 900, 240, 128)),
        ],
        templates=[Template("pair", pair), Template("block", block)],
    )


def run(times: dict[str, float], precision: str = "fp32") -> ProfileRun:
    rows = tuple(
        OperatorProfile((name,), "convolution", time_ms=time, flops=int(1e6 * time), bytes=int(1e4 * time))
        for name, time in times.items()
    )
    return ProfileRun("torch", precision, "nchw", "cpu", 1, "32x24", sum(times.values()), 0.1, rows)


class Session:
    """Takes steps and writes down what each changes on the canvas and around it."""

    def __init__(self, window: MainWindow) -> None:
        self.window, self.canvas, self.context = window, window.canvas, window.context
        self.canvas.context = window.context
        self.said: list[str] = []
        self.context.message.connect(lambda severity, text: self.said.append(f"{severity}: {text}"))
        without_pauses(window)
        self.lines: list[str] = []
        self._before: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._here: tuple[object, ...] = ()

    def step(self, what: str, act: Callable[[], object]) -> None:
        self.said.clear()
        act()
        settle(self.window)
        while self.canvas.projection.busy:
            QApplication.processEvents()
        settle(self.window)
        seen = dict(self._state())
        kinds = list(dict.fromkeys(place.split()[0] for place in seen))
        now = {place: seen[place] for place in sorted(seen, key=lambda place: (kinds.index(place.split()[0]), place))}
        changed = [f"{place}: {text}" for place, text in now.items() if self._before.get(place) != text]
        here = (self.context.root, self.context.scope)
        left = sorted(self._last.keys() - now.keys())
        gone = [place for place in left if here == self._here or ELSEWHERE.match(place)]
        self._before |= now  # what another scope shows has not changed
        for place in gone:
            del self._before[place]
        lines = (*changed, *(f"{place}: (gone)" for place in gone), *self.said)
        self.lines += ["", f"# {what}", *(line.replace("\n", "\\n") for line in lines)]
        self._here, self._last = here, now

    def do(self, what: str, edit: Callable[[Graph], object], *, root: bool = False) -> None:
        document = self.context.root if root else self.context.document
        self.step(what, lambda: document.do(edit))

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.step(f"press {key}", lambda key=key: press(self.window, key))

    def action(self, name: str) -> None:
        assert self.window.actions_[name].isEnabled(), name
        self.step(name, self.window.actions_[name].trigger)

    def _state(self) -> Iterator[tuple[str, str]]:
        canvas, context = self.canvas, self.context
        items = canvas.projection
        bar = self.window.structure.breadcrumb
        yield "scope", "/".join(f"{step.instance}:{step.template}" for step in context.scope)
        yield "selected", " ".join(context.selection)
        yield "selected here", " ".join(sorted(canvas.viewer.selected_names()))
        yield "path", bar.accessibleDescription() if bar.isVisible() else "hidden"
        for part in bar.findChildren(QToolButton) if bar.isVisible() else ():
            if part.objectName():
                yield part.objectName(), f"{part.text()} | {part.accessibleName()} | {part.toolTip()}"
        note = bar.findChild(QLabel, "breadcrumb.note")
        yield "note", note.text() if note is not None and bar.isVisible() else ""
        for name in items.layers:
            item = items[name]
            look = item.look
            marks = ("training" * look.training, "bypassed" * look.bypassed, "title alone" * look.collapsed)
            yield f"place of {name}", f"{item.x():g} {item.y():g} {'' if item.isVisible() else 'hidden'}"
            tip = item.toolTip().split("<br>")  # the second line is the operator's documentation
            yield f"layer {name}", " | ".join((look.summary, look.under, look.problem, *marks, tip[0], *tip[2:]))
            for dot in (*item.inputs, *item.outputs):
                kind = "input" if dot.is_input else "output"
                yield f"{kind} {name}.{dot.look.name}", f"{dot.toolTip()} | {dot.carried()} | {len(dot.links)} links"
        for edge in list(items.links):
            link = items.link(*edge.key)
            if link is not None:
                state = ("on path" if link.on_path else "", "" if link.isVisible() else "hidden", str(len(link.points)))
                yield f"link {edge.source} to {edge.key[0]} {edge.key[1]}", " | ".join((link.label, *state))
        places = {name: items.entry(name).area() for name in items.layers if not items.hides(name)}
        places |= {f"frame {item.frame.id}": item.seen for item in items.collapsed_frames}

        def at(rect: QRectF) -> str:
            return next((name for name, area in places.items() if area == rect), "nowhere")

        heat = canvas.heat
        yield "heat", f"{heat.metric!r} {'critical' if heat.critical else ''}"
        for cell in heat.item.cells if heat.item.isVisible() else ():
            yield f"heat of {at(cell.rect)}", f"{cell.share:.3f} {cell.label} {'problem' if cell.problem else ''}"
        yield "critical path", " > ".join(map(at, heat.item.path)) if heat.item.isVisible() else ""
        yield "legend", "hidden" if heat.legend.isHidden() else heat.legend.accessibleDescription()
        for badge in canvas.formats.item.badges if canvas.formats.item.isVisible() else ():
            under = [
                name
                for name, area in places.items()
                if area.left() < badge.rect.left() < area.right() and badge.rect.center().y() == area.bottom()
            ]
            wide = fonts().mono_metrics.horizontalAdvance(badge.text) < badge.rect.width()
            tip = canvas.formats.item.tip_at(badge.rect.center())
            yield f"format of {' '.join(under)}", f"{badge.text} | {tip} | {badge.by_hand} {wide}"
        for mark in canvas.differences.item.marks if canvas.differences.item.isVisible() else ():
            yield f"mark of {mark.ghost or at(mark.rect)}", f"{mark.sign}{' ghost' if mark.ghost else ''}"
        boxes = [item for item in canvas.viewer.scene().items() if isinstance(item, FrameItem)]
        for item in boxes:
            what = (item.frame.title, item.toolTip(), " ".join(sorted(item.members)), str(item.isVisible()))
            yield f"frame {item.frame.id}", " | ".join((*what, "selected" * item.isSelected()))
        yield "fits", str(canvas.viewer.place().fitted_from)
        if not context.scope:  # how much of a template fits depends on fonts
            yield "zoom", f"{canvas.viewer.zoom:.2f}"
        for name in ("template.enter", "template.leave", "template.rename", "template.port_up", "template.dissolve"):
            action = self.window.actions_[name]
            yield f"action {name}", "" if action.isEnabled() else action.statusTip().partition(" - ")[2]
        for name in self.window.actions_.declared:
            if name.startswith(("view.heat", "view.critical")) and self.window.actions_[name].isChecked():
                yield f"check of {name}", "yes"
        yield "problems", self.window.status.problems.text()


@pytest.fixture
def session(empty_window: MainWindow) -> Session:
    window = show(empty_window, network())
    window.canvas.viewer.pointer = lambda: QPointF(400, 900)  # where the pointer is depends on the screen
    window.canvas.viewer.zoom_by(0.4 / window.canvas.viewer.zoom)
    session = Session(window)
    session.step("at first", lambda: None)
    return session


def test_what_lies_on_the_canvas_follows_scopes_edits_and_files(session: Session) -> None:
    window, context = session.window, session.context
    profiling, document = profiling_of(context), context.root
    variants = (Variant("small", formats=FORMATS, reasons=REASONS), Variant("other", formats={"more": "int8"}))
    session.step("formats", lambda: document.change_settings(variants=variants, variant="small"))
    session.step("a run", lambda: profiling.add(Profile(Machine("Test CPU", 2), "session", (run(TIMES),))))
    for name in ("time", "flops", "memory"):
        session.action(f"view.heat_{name}")
    session.action("view.critical_path")
    session.step("select an instance", lambda: context.select(("block_1",)))
    session.keys("Return")
    session.step("another instance of what is inside", lambda: document.do(lambda g: commands.add_layer(
        g, Layer("alone", "template", (320, 320), (Source("image"),), {"template": "pair"})
    )))  # fmt: skip
    session.step("take it back", document.undo)
    session.step("select the one inside", lambda: context.select(("pair",)))
    session.keys("Return")
    session.do("change it", lambda g: commands.set_params(g, {"a": {"features": "6"}}))
    session.action("view.heat_none")
    session.action("view.critical_path")
    session.step("a panel's heat", lambda: context.heat_requested.emit(GIVEN))
    session.keys("Backspace", "Backspace")
    session.step("another variant", lambda: document.change_settings(variant="other"))
    session.step("the first variant", lambda: document.change_settings(variant="small"))
    session.do("rename an instance", lambda g: commands.rename_layer(g, "block_1", "front"))
    session.do("rename a template", lambda g: rename_template(g, "pair", "two"), root=True)
    session.keys("Ctrl+Z", "Ctrl+Z")
    session.do("move", lambda g: commands.move_layers(g, {"first": (320, -160)}))
    session.do("another instance", lambda g: commands.add_layer(
        g, Layer("block_3", "template", (1600, 320), (Source("more"),), {"template": "block"})
    ))  # fmt: skip
    session.do("remove it", lambda g: commands.remove_layers(g, ["block_3", "conv"], heal=True))
    session.keys("Ctrl+Z")
    session.do("expand the frame", lambda g: frames.collapse(g, [], ["f"], session.canvas.projection.members))
    session.do("bend", lambda g: routes.set_route(g, "loss", 0, [(1440, 480)], "Bend"))
    saved = document.graph.copy()
    session.step("compare", lambda: context.comparison.with_graph(saved, "before"))
    session.do("edit inside", lambda g: edit_template(
        g, "pair", commands.set_params(g.inside("pair"), {"b": {"kernel": "5x5"}})
    ))  # fmt: skip
    session.do("a new layer", lambda g: commands.add_layer(g, Layer("new", "identity", (320, 640), (Source("image"),))))
    session.do("no more", lambda g: commands.remove_layers(g, ["more"]))
    session.do("move a little", lambda g: commands.move_layers(g, {"out": (1680, 0)}))
    session.step("into the template", lambda: context.enter("block_2"))
    session.step("into the other", lambda: context.enter("pair"))
    session.do("one more inside", lambda g: commands.add_layer(g, Layer("c", "identity", (640, 160), (Source("a"),))))
    session.keys("Ctrl+Z")
    session.step("by name", lambda: context.set_scope(()) and context.enter("block"))
    session.keys("Backspace")
    session.step("compare no more", context.comparison.stop)
    other = network()
    other.apply(commands.set_params(other, {"conv": {"features": "8"}}))
    session.step("another file", lambda: show(window, other))
    session.step("the first one", lambda: context.set_document(document))
    session.step("heat again", lambda: context.heat_requested.emit(GIVEN))
    session.step("an empty file", lambda: context.set_document(Document(Graph(), context.registry, parent=context)))
    compare("canvas_overlays", session.lines)


def test_what_keys_reach_in_templates_and_frames(session: Session) -> None:
    """Arrow keys, searches and problems; the path above the canvas has the focus at the end."""
    window, context, canvas = session.window, session.context, session.canvas
    session.step("zoom", lambda: canvas.viewer.zoom_by(0.55 / canvas.viewer.zoom))
    session.keys("Right", "Right", "Right", "Down", "Left", "Shift+Right", "Shift+Down", "Alt+Down", "Alt+Down")
    session.keys("Ctrl+Z", "[", "]", "Escape")
    session.step("select what is before the frame", lambda: context.select(("same",)))
    session.keys("Right", "Left", "Up", "Left", "H", "H")
    session.do("a fault inside", lambda g: edit_template(
        g, "pair", commands.set_params(g.inside("pair"), {"b": {"strange": "1"}})
    ))  # fmt: skip
    session.do("another", lambda g: commands.set_params(g, {"more": {"features": "-1"}}))
    session.step("begin at nothing", lambda: context.select(()))
    session.keys("F8", "F8", "F8", "F8", "Shift+F8", "Shift+F8")
    session.step("from another layer", lambda: (context.set_scope(()), context.select(("more",))))
    session.keys("Shift+F8", "F8")
    session.step("the file", lambda: context.set_scope(()))
    session.keys("Ctrl+Z", "Ctrl+Z")
    session.step("a panel selects what is hidden", lambda: context.select(("hidden",)))
    session.keys("F2", "M", "Del", "L", "Alt+Right", "Ctrl+C", "W")

    def find(text: str) -> None:
        press(window, "Ctrl+F")
        popup = canvas.findChild(SearchPopup, "find")
        line = popup.findChild(QLineEdit)
        QTest.keyClicks(line, text)
        QApplication.processEvents()
        session.lines += ["", f"# find {text}"]
        rows = popup.findChild(QTreeWidget)
        for row in range(rows.topLevelItemCount()):
            item = rows.topLevelItem(row)
            session.lines.append(f"{item.text(0)} | {item.text(1)} | {item.toolTip(0)}")
        QTest.keyClick(line, Qt.Key.Key_Return)

    for text in ("kernel=3x3 conv", "4x24x32", "activation=relu", "template_input"):
        session.step(f"go to {text}", lambda text=text: find(text))
        session.keys("F3", "F3", "Shift+F3")
    session.step("to the file", lambda: context.set_scope(()))
    session.step("into", lambda: context.enter("block_1"))
    session.step("and further", lambda: context.enter("pair"))
    session.keys("1", "Ctrl+1")
    session.step("to the file", lambda: context.set_scope(()))
    session.keys("1")
    session.do("without it", lambda g: commands.remove_layers(g, ["block_1"]), root=True)
    session.keys("1", "Ctrl+Z", "1")

    def crumb(*keys: Qt.Key) -> None:
        for key in keys:
            window.activateWindow()
            focused = QApplication.focusWidget()
            QTest.keyClick(focused, key)
            QApplication.processEvents()

    def focus(name: str) -> None:
        window.structure.breadcrumb.findChild(QToolButton, name).setFocus()

    session.do("rename a template", lambda g: rename_template(g, "pair", "two"), root=True)
    focus("breadcrumb.1")
    session.step("take it back with the focus on the path", window.actions_["edit.undo"].trigger)
    session.lines += [f"focus {QApplication.focusWidget().objectName()}"]
    session.step("left on the path, then Return", lambda: crumb(Qt.Key.Key_Left, Qt.Key.Key_Return))
    focus("breadcrumb.0")
    session.step("Return there while an instance is selected", lambda: crumb(Qt.Key.Key_Return))
    session.lines += [f"focus {QApplication.focusWidget().objectName()}"]
    compare("canvas_keys", session.lines)
