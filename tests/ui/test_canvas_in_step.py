"""The canvas keeps in step: what is shown while something is dragged, what is painted far out, and which actions can be done."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from window_kit import press, settle, show

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.heat_overlay import HeatOverlay
from app.ui.canvas.node_look import node_look
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView
from app.ui.engine.profiling import profiling_of
from designer.graph import commands, frames, routes
from designer.graph.diagnostics import Severity
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.profiling.heat import METRICS, Heat, Metric
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

NO_KEYS = Qt.KeyboardModifier.NoModifier


# --- while something is dragged ------------------------------------------------------------------------------------


@pytest.fixture
def canvas(qtbot):
    """A canvas at 100 % with a frame around `conv`, two notes in it, two collapsed frames, and two links with points."""
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 60)
    document = canvas.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Encoder", "", "", (272, -64, 304, 160))))
    document.do(frames.set_frame(document.graph, "n", Frame("n", "Note", "", "", (288, -32, 16, 16))))
    document.do(frames.set_frame(document.graph, "m", Frame("m", "More", "", "", (304, 64, 16, 16))))
    document.do(frames.set_frame(document.graph, "c", Frame("c", "Shut", "", "", (704, 256, 304, 160))))
    document.do(frames.set_frame(document.graph, "d", Frame("d", "Shut too", "", "", (704, 480, 304, 160))))
    document.do(lambda g: commands.add_layer(g, Layer("hidden", "identity", (736, 304))))
    document.do(lambda g: frames.collapse(g, [], ["c", "d"], canvas.projection.members))
    assert canvas.projection.hides("hidden")
    document.do(lambda g: routes.set_route(g, "cat", 1, [(304, 240), (560, 240)], "Bend"))
    document.do(lambda g: routes.set_route(g, "cat", 0, [(608, -48)], "Bend"))
    return canvas


def look(canvas) -> dict[str, object]:
    """Where everything is on the canvas."""
    items = canvas.projection
    found: dict[str, object] = {name: items[name].pos().toTuple() for name in items.layers if not items.hides(name)}
    found |= {item.frame.id: item.rect.getRect() for item in canvas.viewer.scene().items() if hasattr(item, "grip")}
    for edge in list(items.links):
        link = items.link(*edge.key)
        found[f"link {edge.key}"] = [point.toTuple() for point in link.points]
        assert link.path().pointAtPercent(0) == link.source.center()
        assert link.path().pointAtPercent(1) == link.target.center()
    return found


def far_look(canvas) -> tuple[object, ...]:
    """What the far view has: blocks, the frames, and the ends of the links."""
    items = canvas.projection
    far = items.collect_far()
    while not items.collect_blocks():
        pass
    blocks = sorted(rect.getRect() for rects in far.blocks.values() for rect in rects)
    lines = [far.links.elementAt(n) for n in range(far.links.elementCount())]
    starts = sorted((at.x, at.y) for at in lines if at.isMoveTo())
    return blocks, starts, sorted(rect.getRect() for rect in far.selected)


def far_wanted(canvas) -> tuple[object, ...]:
    """The same from the items."""
    items = canvas.projection
    shown = [items[name] for name in items.layers if not items.hides(name)]
    blocks = [item.layout.block.translated(item.pos()) for item in shown]
    blocks += [frame.seen for frame in items.collapsed_frames]
    tabs = [item.layout.tab.translated(item.pos()) for item in shown if item.look.activation]
    links = [items.link(*edge.key) for edge in list(items.links)]
    selected = [item.layout.block.translated(item.pos()) for item in shown if item.isSelected()]
    return (
        sorted(rect.getRect() for rect in (*blocks, *tabs)),
        sorted(link.source.center().toTuple() for link in links),
        sorted(rect.getRect() for rect in selected),
    )


def moved(before: Graph, after: Graph, name: str) -> tuple[int, int]:
    """How far a layer or a frame was moved."""
    one, other = (g.frames[name].rect if name in g.frames else g[name].position for g in (before, after))
    return other[0] - one[0], other[1] - one[1]


DRAGS = {
    "a layer": ((), "conv", (90, 50)),
    "selected layers": (("conv", "input"), "conv", (-35, 75)),
    "all that a link joins": (("cat", "input"), "cat", (45, 60)),
    "all that two links join": (("cat", "input", "conv"), "cat", (45, 60)),
    "a frame by its title": ((), (420, -56), (70, 41)),
    "the right edge of a frame": ((), (576, 60), (53, 0)),
    "the left edge of a frame": ((), (272, 60), (-53, 0)),
    "the upper edge of a frame": ((), (500, -64), (0, -40)),
    "the lower edge of a frame": ((), (500, 96), (0, 40)),
    "a corner of a frame": ((), (576, 96), (40, 25)),
    "a point of a link": ((), (560, 240), (37, 45)),
    "a collapsed frame": ((), (740, 268), (60, 35)),
    "two collapsed frames": (("c", "d"), (740, 268), (60, 35)),
    "a layer and a collapsed frame": (("cat", "c"), "cat", (60, 35)),
    "a collapsed frame and layers": (("cat", "input", "c"), (740, 268), (60, 35)),
}


def choose(canvas, names: tuple[str, ...]) -> None:
    """Select layers and frames."""
    canvas.context.select(tuple(name for name in names if name in canvas.context.document.graph))
    for name in names:
        item = canvas.projection.frame(name)
        if item is not None:
            item.setSelected(True)


def begin(canvas: Canvas, name: str) -> tuple[QPoint, QPoint]:
    """Begin one of the drags: where it begins, and how far it goes."""
    selected, start, run = DRAGS[name]
    choose(canvas, selected)
    place = kit.node(canvas, start) if isinstance(start, str) else kit.at(canvas, QPointF(*start))
    QTest.mousePress(canvas.viewer.viewport(), kit.LEFT, NO_KEYS, place)
    return place, QPoint(*run)


@pytest.mark.parametrize("name", DRAGS)
def test_what_is_shown_while_something_is_dragged_is_what_is_left_after_it(canvas, name):
    document, view = canvas.context.document, canvas.viewer.viewport()
    before, at_first = look(canvas), document.graph.copy()
    press_at, run = begin(canvas, name)
    seen = []
    for share in (0.3, 0.7, 1.0):
        QTest.mouseMove(view, press_at + run * share)
        seen.append(look(canvas))
        assert far_look(canvas) == far_wanted(canvas)
    assert document.graph == at_first
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, press_at + run)
    assert seen[-1] != before
    assert seen[0] != seen[-1]
    assert look(canvas) == seen[-1]
    assert document.graph != at_first
    assert moved(at_first, document.graph, "hidden") == moved(at_first, document.graph, "c")
    assert canvas.projection["hidden"].pos().toTuple() == document.graph["hidden"].position
    assert far_look(canvas) == far_wanted(canvas)
    document.undo()
    assert look(canvas) == before
    assert document.graph == at_first
    assert far_look(canvas) == far_wanted(canvas)


@pytest.mark.parametrize("name", DRAGS)
def test_escape_leaves_what_is_dragged_where_it_was(canvas, name):
    document, view = canvas.context.document, canvas.viewer.viewport()
    title, before, at_first = document.history.undo_title, look(canvas), document.graph.copy()
    press_at, run = begin(canvas, name)
    for share in (0.5, 1.0):
        QTest.mouseMove(view, press_at + run * share)
    assert look(canvas) != before
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    for end in (press_at + run, press_at + QPoint(40, 40)):
        assert look(canvas) == before
        QTest.mouseMove(view, end)
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, press_at + QPoint(40, 40))
    assert look(canvas) == before
    assert document.graph == at_first
    assert document.history.undo_title == title
    assert far_look(canvas) == far_wanted(canvas)


@pytest.mark.parametrize("name", DRAGS)
def test_what_is_dragged_away_and_back_changes_nothing(canvas, name):
    document, view = canvas.context.document, canvas.viewer.viewport()
    title, before, at_first = document.history.undo_title, look(canvas), document.graph.copy()
    press_at, run = begin(canvas, name)
    for share in (0.5, 1.0, 0.5, 0.0):
        QTest.mouseMove(view, press_at + run * share)
    assert look(canvas) == before
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, press_at)
    assert look(canvas) == before
    assert document.graph == at_first
    assert document.history.undo_title == title


# --- which actions can be done -------------------------------------------------------------------------------------


@pytest.fixture
def window(empty_window):
    window = show(empty_window, kit.small_graph())
    document = window.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Encoder", "", "", (272, 300, 304, 160))))
    document.do(lambda g: routes.set_route(g, "cat", 1, [(304, 240), (560, 240)], "Bend"))
    window.canvas.viewer.zoom_by(1 / window.canvas.viewer.zoom)
    window.canvas.viewer.centerOn(480, 200)
    settle(window)
    return window


def states(window) -> dict[str, tuple[bool, str]]:
    return {
        name: (window.actions_[name].isEnabled(), window.actions_[name].toolTip()) for name in window.actions_.declared
    }


def collapse_everything(window) -> None:
    """All layers hidden in one collapsed frame."""
    document = window.context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "All", "", "", (-100, -100, 1300, 600))))
    members = window.canvas.projection.members
    document.do(lambda g: frames.collapse(g, [], ["f"], members))
    window.context.select(())


def link_of(window):
    return window.canvas.projection.link("conv", 0)


WAYS = {
    "a click on a layer": lambda w: kit.click(w.canvas, kit.node(w.canvas, "conv")),
    "a second layer": lambda w: [
        kit.click(w.canvas, kit.node(w.canvas, "conv")),
        kit.click(w.canvas, kit.node(w.canvas, "free"), Qt.KeyboardModifier.ShiftModifier),
    ],
    "a click on a frame": lambda w: kit.click(w.canvas, kit.at(w.canvas, QPointF(400, 310))),
    "a click on a link": lambda w: kit.click(w.canvas, kit.at(w.canvas, link_of(w).path().pointAtPercent(0.25))),
    "a click on a point of a link": lambda w: kit.click(w.canvas, kit.at(w.canvas, QPointF(560, 240))),
    "a rubber band": lambda w: kit.drag(
        w.canvas, kit.at(w.canvas, QPointF(300, 270)), kit.at(w.canvas, QPointF(500, -20))
    ),
    "select all": lambda w: press(w, "Ctrl+A"),
    "select all of what is collapsed": lambda w: [collapse_everything(w), settle(w), press(w, "Ctrl+A")],
    "a panel": lambda w: w.context.select(("conv", "cat", "out")),
    "a click on nothing": lambda w: [w.context.select(("conv",)), settle(w), kit.click(w.canvas, QPoint(8, 8))],
    "deletion": lambda w: [w.context.select(("conv",)), settle(w), press(w, "Del")],
    "undo of a deletion": lambda w: [w.context.select(("conv",)), press(w, "Del"), settle(w), press(w, "Ctrl+Z")],
    "a note": lambda w: [press(w, "N"), kit.write(w, "a note")],
    "another document": lambda w: [w.context.select(("conv",)), settle(w), w.files.new()],
}


@pytest.mark.parametrize("way", WAYS)
def test_the_actions_follow_every_way_to_select(window, way):
    before = states(window)
    WAYS[way](window)
    settle(window)
    shown = states(window)
    window._refresh()
    assert shown == states(window)
    assert way in ("a click on nothing", "undo of a deletion") or shown != before


# --- problems ------------------------------------------------------------------------------------------------------


def test_a_node_is_marked_with_the_worst_of_its_problems_and_not_with_notes(qapp):
    """Every layer of the tests' networks, in the file and in a template that was opened by name."""
    ports = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("y", "template_output", (320, 0), (Source("x"),)),
    )
    conv = {"features": "8"}
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "64x48x3"}),
            Layer("open", "convolution", (320, 0), (), conv),
            Layer("after", "convolution", (640, 0), (Source("open"),), {**conv, "strange": "1"}),
            Layer("surplus", "convolution", (320, 300), (Source("image"), Source("image")), {**conv, "strange": "1"}),
            Layer("odd", "convolution", (640, 300), (Source("image"),), {**conv, "strange": "1"}),
        ],
        templates=[Template("pair", ports)],
    )
    root = Document(graph, default_registry())
    inside = TemplateView(root, ScopeStep("", "pair"))
    severities = set()
    both = root.inference.states["after"]
    assert both.because_of == "open"
    assert {finding.severity for finding in both.diagnostics} == {Severity.WARNING}
    for document in (root, inside):
        for name, state in document.inference.states.items():
            found = {finding.severity for finding in state.diagnostics}
            severities |= found
            problem = node_look(document, name).problem
            if Severity.ERROR in found:
                assert problem == "error", name
            elif state.because_of is not None:
                assert problem == "unknown", name
            else:
                assert problem == ("warning" if Severity.WARNING in found else ""), name
    assert severities == set(Severity)
    inside.deleteLater()
    root.deleteLater()


# --- heat ----------------------------------------------------------------------------------------------------------


def run_of(times: dict[str, float]) -> ProfileRun:
    rows = tuple(
        OperatorProfile((name,), "convolution", time_ms=time, flops=int(1e6 * time), bytes=int(1e3 / time))
        for name, time in times.items()
    )
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", sum(times.values()), 0.1, rows)


@pytest.fixture
def heated(window):
    """A window with two runs of its network."""
    profiling = profiling_of(window.context)
    for times in ({"conv": 1.0, "cat": 4.0}, {"conv": 3.0, "cat": 2.0}):
        profiling.add(Profile(Machine("Test CPU", 2), "small", (run_of(times),)))
    return window


GIVEN = Heat(Metric("blame", "Share of the error", "%", lambda row: None, extensive=False), {"conv": 4.0})
STEPS = {
    **{f"show {metric}": lambda w, metric=metric: w.canvas.heat.show_metric(metric) for metric in METRICS},
    "show the difference": lambda w: w.canvas.heat.show_metric("difference"),
    "show nothing": lambda w: w.canvas.heat.show_metric(""),
    "the critical path": lambda w: w.canvas.heat.toggle_critical_path(),
    "a panel": lambda w: w.context.heat_requested.emit(GIVEN),
    "the panel ends": lambda w: w.context.heat_requested.emit(None),
    "compare": lambda w: profiling_of(w.context).compare(tuple(profiling_of(w.context).entries[:2])),
    "compare no more": lambda w: profiling_of(w.context).compare(None),
    "another run": lambda w: profiling_of(w.context).show(profiling_of(w.context).entries[0]),
    "no run": lambda w: profiling_of(w.context).show(None),
    "the last run": lambda w: profiling_of(w.context).show(profiling_of(w.context).entries[-1]),
    "move a layer": lambda w: w.context.document.do(
        lambda g: commands.move_layers(g, {"conv": (g["conv"].position[0] + 16, 64)})
    ),
}


def heat_shown(overlay: HeatOverlay) -> tuple[object, ...]:
    legend = overlay.legend
    shown = not legend.isHidden()
    cells = [(cell.rect.getRect(), cell.share, cell.label, cell.signed, cell.problem) for cell in overlay.item.cells]
    path = [area.getRect() for area in overlay.item.path]
    return cells, path, shown, legend.accessibleDescription() if shown else "", overlay.item.isVisible()


@pytest.mark.parametrize("seed", range(4))
def test_the_heat_does_not_depend_on_what_was_shown_before(heated, seed):
    """After each of many steps the heat is what a new overlay shows that gets the same choices."""
    canvas, numbers = heated.canvas, Random(seed)
    overlay, seen = canvas.heat, set()
    for _ in range(25):
        step = numbers.choice(list(STEPS))
        STEPS[step](heated)
        settle(heated)
        fresh = HeatOverlay(heated.context, canvas.viewer, canvas.projection)
        fresh.metric, fresh.critical, fresh._given = overlay.metric, overlay.critical, overlay._given
        fresh.refresh()
        found = heat_shown(overlay)
        assert found == heat_shown(fresh), step
        assert found[2] is bool(found[0]), f"after {step} the legend is shown without heat, or heat without the legend"
        seen.add((bool(found[0]), bool(found[1]), found[3].partition(":")[0]))
        canvas.viewer.overlays.remove(fresh.item)
        canvas.viewer.scene().removeItem(fresh.item)
        fresh.legend.deleteLater()
        fresh.deleteLater()
    assert len(seen) > 4


# --- the inspected layer -------------------------------------------------------------------------------------------

CHANGES = {
    "delete": (lambda g: commands.delete(g, ["second"], [], variadic=lambda *_: False), ""),
    "rename": (lambda g: commands.rename_layer(g, "second", "other"), "other"),
    "set a parameter": (lambda g: commands.set_params(g, {"second": {"features": "3"}}), "second"),
    "delete what it reads": (lambda g: commands.delete(g, ["conv"], [], variadic=lambda *_: False), "second"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("around", [False, True])
def test_the_mark_of_the_inspected_layer_follows_every_change(empty_window, name, around):
    """`around`: after a look into a template and back, which changes who hears of a change first."""
    request, left = CHANGES[name]
    ports = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("y", "template_output", (320, 0), (Source("x"),)),
    )
    conv = {"features": "8"}
    layers = [
        Layer("image", "input", params={"dims": "16x16x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), conv),
        Layer("second", "convolution", (640, 0), (Source("conv"),), conv),
        Layer("block", "template", (960, 0), (Source("second"),), {"template": "pair"}),
    ]
    window = show(empty_window, Graph(layers, templates=[Template("pair", ports)]))
    context, document = window.context, window.context.document
    window.canvas.context = context  # for the checks
    window.docks.panel("channel_inspector").inspect("second")
    if around:
        assert context.enter("block")
        assert context.leave()

    def marked() -> list[str]:
        items = window.canvas.projection
        return [n for n in items.layers if items[n].look.inspected]

    assert marked() == ["second"]
    assert document.do(request)
    settle(window)
    assert marked() == ([left] if left else [])
    kit.check(window.canvas, document)
    document.undo()
    settle(window)
    assert marked() == (["second"] if left else [])
    kit.check(window.canvas, document)
    document.redo()
    settle(window)
    assert marked() == ([left] if left else [])
    kit.check(window.canvas, document)


# --- what is left of a gesture -------------------------------------------------------------------------------------


def end_on_a_port(canvas, view) -> None:
    QTest.mouseMove(view, kit.port(canvas, "free"))
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.port(canvas, "free"))
    canvas.context.document.undo()


def end_on_nothing(canvas, view) -> None:
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.at(canvas, QPointF(500, 300)))
    canvas._quick_add.hide()


def end_with_escape(canvas, view) -> None:
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.at(canvas, QPointF(500, 300)))


def end_at_home(canvas, view) -> None:
    QTest.mouseMove(view, kit.node(canvas, "conv"))
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.node(canvas, "conv"))


def end_where_it_is_refused(canvas, view) -> None:
    kit.settle(canvas)
    QTest.mouseMove(view, kit.port(canvas, "conv"))
    QTest.mouseMove(view, kit.node(canvas, "input"))
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.node(canvas, "input"))


def end_with_another_change(canvas, view) -> None:
    document = canvas.context.document
    document.do(lambda g: commands.move_layers(g, {"out": (1200, 0)}))
    QTest.mouseRelease(view, kit.LEFT, NO_KEYS, kit.at(canvas, QPointF(500, 300)))
    document.undo()


ENDS = {
    function.__name__.replace("_", " "): function
    for function in (end_on_a_port, end_on_nothing, end_with_escape, end_at_home, end_where_it_is_refused)
} | {"end with another change": end_with_another_change}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_a_link_that_was_dragged(canvas, end):
    document, view = canvas.context.document, canvas.viewer.viewport()
    canvas.viewer.zoom_by(0.5 / canvas.viewer.zoom)
    canvas.viewer.centerOn(480, 60)

    def state() -> tuple[object, ...]:
        dots = [
            dot
            for name in canvas.projection.layers
            for dot in (*canvas.projection[name].inputs, *canvas.projection[name].outputs)
        ]
        links = [canvas.projection.link(*edge.key) for edge in list(canvas.projection.links)]
        shown = [(link.key, link.isVisible(), link.label) for link in links]
        ports = [(dot.look.name, dot.grayed, dot.toolTip()) for dot in dots]
        return (
            len(canvas.viewer.scene().items()),
            list(canvas.viewer.overlays),
            shown,
            ports,
            canvas.viewer.busy,
            canvas.links.waiting,
        )

    graph, before = document.graph.copy(), state()
    QTest.mousePress(view, kit.LEFT, NO_KEYS, kit.output(canvas, "conv"))
    QTest.mouseMove(view, kit.at(canvas, QPointF(520, 200)))
    QTest.mouseMove(view, kit.at(canvas, QPointF(500, 300)))
    assert state() != before
    ENDS[end](canvas, view)
    assert document.graph == graph
    assert state() == before
