"""Adding layers makes room: on links, behind the selected layer, at the pointer; nothing is covered."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QByteArray, QMimeData, QPointF, QRectF, Qt
from PySide6.QtGui import QCursor, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from window_kit import press, show

from app.ui.canvas.placement import AIR, free_rect
from app.ui.canvas.viewer import OPERATOR_MIME
from app.ui.design.fixes import apply
from designer.graph import commands, frames
from designer.graph.arrangement import GAP
from designer.graph.graph import Graph
from designer.graph.model import GRID, Frame, Layer, Source
from designer.graph.template import Template
from designer.operators.fixes import fixes
from designer.profiling.advice import split_kernel


@pytest.fixture
def window(shared_window):
    window = show(shared_window, kit.small_graph())
    window.canvas.viewer.zoom_by(0.6 / window.canvas.viewer.zoom)
    window.canvas.viewer.centerOn(520, 200)
    QApplication.processEvents()
    return window


def covered(canvas) -> list[tuple[str, str]]:
    """Pairs of layers that lie on each other."""
    areas = {n: canvas.projection.entry(n).area() for n in canvas.projection.layers}
    names = sorted(areas)
    return [(a, b) for a in names for b in names if a < b and areas[a].intersects(areas[b])]


def drop(canvas, type_name: str, place: QPointF) -> None:
    """An operator of the palette, dropped."""
    data = QMimeData()
    data.setData(OPERATOR_MIME, QByteArray(type_name.encode()))
    event = QDropEvent(
        QPointF(kit.at(canvas, place)),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    canvas.viewer.dropEvent(event)


def search(window, text: str) -> None:
    """Space, a search and Return."""
    press(window, "Space")
    line = window.findChild(QLineEdit, "quick_add.text")
    QTest.keyClicks(line, text)
    QTest.keyClick(line, Qt.Key.Key_Return)
    QApplication.processEvents()


def test_a_dropped_operator_is_centred_on_the_pointer(window):
    drop(window.canvas, "pooling", QPointF(480, 400))
    box = window.canvas.projection["pooling_0"].box()
    assert (box.center() - QPointF(480, 400)).manhattanLength() <= 16


def test_an_operator_dropped_on_a_link_is_centred_on_it_and_pushes_what_is_behind(window):
    graph = window.context.document.graph
    link = window.canvas.projection.link("cat", 0)
    middle = link.path().pointAtPercent(0.5)
    before = {n: graph[n].position for n in graph.layers}
    drop(window.canvas, "identity", middle)
    items = window.canvas.projection
    assert graph["cat"].inputs[0] == Source("identity_0")
    assert abs(items["identity_0"].box().center().y() - middle.y()) <= 8
    assert not covered(window.canvas)
    assert items["identity_0"].box().left() > items["conv"].box().right()
    assert items["cat"].box().left() > items["identity_0"].box().right()
    run = graph["cat"].position[0] - before["cat"][0]
    assert run > 0
    assert graph["out"].position == (before["out"][0] + run, before["out"][1])
    assert graph["free"].position == before["free"]
    window.context.undo()
    assert {n: graph[n].position for n in graph.layers} == before  # one step


def test_a_free_layer_dropped_on_a_link_makes_room_too(window):
    canvas = window.canvas
    link = canvas.projection.link("cat", 0)
    centre = canvas.projection["free"].box().center()
    middle = link.path().pointAtPercent(0.5)
    grip = kit.node(canvas, "free")
    kit.drag(canvas, grip, grip + kit.at(canvas, middle) - kit.at(canvas, centre))
    assert window.context.document.graph["cat"].inputs[0] == Source("free")
    assert not covered(window.canvas)
    assert abs(canvas.projection["free"].box().center().y() - middle.y()) <= 8


def test_frames_grow_with_what_is_pushed_in_them(window):
    document = window.context.document
    frame = Frame("f", "End", rect=(600, -64, 560, 240))
    document.do(lambda g: frames.set_frame(g, "f", frame))
    drop(window.canvas, "identity", window.canvas.projection.link("cat", 0).path().pointAtPercent(0.5))
    run = document.graph["cat"].position[0] - 640
    assert document.graph.frames["f"].rect == (600 + run, -64, 560, 240)


def test_the_search_connects_to_the_selected_layer(window):
    QCursor.setPos(0, 0)
    window.context.select(("free",))
    search(window, "pool")
    graph = window.context.document.graph
    assert graph["pooling_0"].inputs == (Source("free"),)
    assert window.context.selection == ("pooling_0",)
    assert not covered(window.canvas)
    window.context.select(("free",))
    search(window, "pool")
    assert graph["pooling_1"].inputs == (Source("free"),)
    assert not covered(window.canvas)


def test_the_search_goes_into_the_link_under_the_pointer(window):
    canvas = window.canvas
    middle = canvas.projection.link("out", 0).path().pointAtPercent(0.5)
    QCursor.setPos(canvas.viewer.viewport().mapToGlobal(kit.at(canvas, middle)))
    window.context.select(("free",))
    search(window, "identity")
    assert window.context.document.graph["out"].inputs == (Source("identity_0"),)
    assert not covered(window.canvas)


def test_copies_are_pasted_at_the_pointer_and_cover_nothing(window):
    canvas = window.canvas
    window.context.select(("conv", "cat"))
    press(window, "Ctrl+C")
    place = QPointF(480, 400)
    QCursor.setPos(canvas.viewer.viewport().mapToGlobal(kit.at(canvas, place)))
    press(window, "Ctrl+V")
    first = window.context.selection
    assert set(first) == {"conv_0", "cat_0"}
    boxes = [canvas.projection[n].box() for n in first]
    assert (boxes[0].united(boxes[1]).center() - place).manhattanLength() <= 32
    press(window, "Ctrl+V")
    press(window, "Ctrl+D")
    assert len(window.context.document.graph) == 5 + 2 + 2 + 2
    assert not covered(window.canvas)
    press(window, "Ctrl+Z")
    assert len(window.context.document.graph) == 9


@pytest.mark.parametrize("step", [160, 208, 272])
@pytest.mark.parametrize("skips", ["b", "a"])
def test_a_fix_that_inserts_a_layer_covers_nothing(window, step, skips):
    """Also where the link that it goes into runs over other layers, and the layers are close together."""
    inputs = (Source("conv"), Source("in")) if skips == "b" else (Source("in"), Source("conv"))
    graph = Graph(
        [
            Layer("in", "input", (0, 0), params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (step, 0), (Source("in"),), {"features": "8"}),
            Layer("add", "element_wise", (2 * step, 0), inputs),
            Layer("out", "output", (3 * step, 0), (Source("add"),)),
        ]
    )
    show(window, graph)
    document = window.context.document
    (finding,) = document.inference.states["add"].diagnostics
    found = fixes(document.graph, document.registry, document.inference, finding)
    inserting = [fix for fix in found if "1x1" in fix.title]
    assert inserting
    for fix in inserting:
        apply(window.context, fix)
        assert len(document.graph) == 5
        assert not covered(window.canvas)
        press(window, "Ctrl+Z")  # one step
        assert set(document.graph.layers) == {"in", "conv", "add", "out"}


def test_advice_and_edits_of_weights_insert_layers_where_nothing_is(window):
    show(window, kit.small_graph())
    document = window.context.document
    for request in (
        lambda graph: split_kernel(graph, "conv"),
        lambda graph: commands.insert_on_link(
            graph, Layer("same", "identity", graph["conv"].position), "out", graph["out"].inputs.index(Source("cat"))
        ),
    ):
        assert document.insert(request)
        assert not covered(window.canvas)
        press(window, "Ctrl+Z")
        assert len(document.graph) == 5


def test_an_input_for_a_losss_target_gets_the_size_of_the_prediction(window):
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "24x16x5"}),
        Layer("loss", "l1_loss", (400, 0), (Source("in"),)),
    ]
    show(window, Graph(layers))
    canvas = window.canvas
    kit.drag(canvas, kit.port(canvas, "loss", 1), kit.at(canvas, QPointF(200, 240)))
    line = window.findChild(QLineEdit, "quick_add.text")
    QTest.keyClicks(line, "input")
    QTest.keyClick(line, Qt.Key.Key_Return)
    document = window.context.document
    assert document.graph["loss"].inputs == (Source("in"), Source("input_0"))
    assert document.graph["input_0"].params["dims"] == "24x16x5"
    assert document.inference.states["loss"].ok


def test_selected_layers_are_aligned_and_distributed(window):
    graph = window.context.document.graph
    window.context.select(("conv", "free", "out"))
    QApplication.processEvents()
    window.actions_["edit.align_left"].trigger()
    assert {graph[n].position[0] for n in ("conv", "free", "out")} == {320}
    kit.click(window.canvas, kit.node(window.canvas, "cat"))
    QApplication.processEvents()
    assert not window.actions_["edit.align_left"].isEnabled()
    window.context.undo()
    window.context.select(("conv", "cat", "out"))
    QApplication.processEvents()
    window.actions_["edit.distribute_horizontal"].trigger()
    boxes = [window.canvas.projection.entry(n).box() for n in ("conv", "cat", "out")]
    gaps = [b.left() - a.right() for a, b in pairwise(boxes)]
    assert abs(gaps[0] - gaps[1]) <= 16


@pytest.mark.parametrize("shift", range(0, 16, 3))
def test_a_free_place_has_the_whole_space_to_what_is_above(window, shift):
    """Positions of layers need not be on the grid; steps of the grid are rounded away from them."""
    window.context.document.do(lambda g: commands.move_layers(g, {"free": (320, 160 + shift)}))
    projection = window.canvas.projection
    wanted = QRectF(330, 160, 160, 64)
    free = free_rect(projection, wanted)
    assert not projection.within(free.adjusted(0, 1 - AIR, 0, 0))
    run = free.topLeft() - wanted.topLeft()
    assert (run.x(), run.y() % GRID) == (0, 0)
    assert projection.entry("free").area().bottom() + AIR <= free.top()


@pytest.mark.parametrize("names", [("near", "far"), ("far", "near"), ("near",), ("far",), ()])
def test_a_copy_that_keeps_its_links_is_placed_after_all_that_it_reads(qtbot, names):
    layers = [
        Layer("near", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("far", "input", (480, 160), params={"dims": "64x48x3"}),
        Layer("cat", "concatenation", (960, 0), tuple(map(Source, names))),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers))
    items = canvas.projection
    for x in (0, 1200):
        canvas.viewer.pointer = lambda x=x: QPointF(x, 400)
        canvas.context.select(("cat",))
        canvas.copy_selection()
        canvas.paste(keep_links=True)
        (copy,) = canvas.context.selection
        assert canvas.context.document.graph[copy].inputs == tuple(map(Source, names))
        box = items.entry(copy).box()
        least = max((items.entry(name).box().right() + GAP for name in names), default=-1000.0)
        assert abs(box.left() - max(least, x - box.width() / 2)) <= GRID
        assert abs(box.center().y() - 400) <= GRID
        assert canvas.context.document.graph["cat"].position == (960, 0)
        canvas.context.document.undo()


@pytest.mark.parametrize(
    ("zigzag", "row", "shift"),
    [(zigzag, 320, shift) for zigzag in (0, 320) for shift in (-160, -16, 0, 16, 160)]
    + [(320, row, shift) for row, shift in ((-80, 16), (0, 64), (80, 128), (0, 256))],
)
def test_layers_behind_an_inserted_one_move_together_from_its_left_edge_on(qtbot, zigzag, row, shift):
    """As far as the one that needs it most: what reads the new layer, or what lies in its place."""
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("reader", "identity", (336, zigzag), (Source("in"),)),
        Layer("behind", "identity", (224 + shift, row + zigzag if row == 320 else row), (Source("reader"),)),
        Layer("last", "concatenation", (608, 1100), (Source("reader"), Source("behind"))),
        Layer("other", "identity", (640, 800), (Source("in"),)),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers))
    graph = canvas.context.document.graph
    before = {n: graph[n].position for n in graph.layers}
    boxes = {n: canvas.projection.entry(n).box() for n in before}
    canvas.viewer.operator_dropped.disconnect(canvas._on_dropped)
    canvas._on_place("batch_normalization", QPointF(250, 60), canvas.projection.link("reader", 0))
    (added,) = set(graph.layers) - set(before)
    box = canvas.projection.entry(added).box()
    assert graph[added].inputs == (Source("in"),)
    assert graph["reader"].inputs == (Source(added),)
    assert box.left() >= boxes["in"].right() + GAP
    runs = {n: graph[n].position[0] - x for n, (x, _) in before.items()}
    assert {n: graph[n].position[1] for n in before} == {n: y for n, (_, y) in before.items()}
    moved = {"reader", *(n for n in ("behind", "last") if before[n][0] >= box.left())}
    near = box.adjusted(0, -AIR, GAP, AIR)
    needed = max(
        box.right() + GAP - boxes[n].left()
        for n in boxes
        if n == "reader" or (n in moved and near.intersects(boxes[n]))
    )
    assert runs == {n: -(-needed // GRID) * GRID if n in moved else 0 for n in before}
    canvas.context.document.undo()
    assert {n: graph[n].position for n in graph.layers} == before


SIDES = {  # whether it has inputs and outputs
    "identity": (True, True),
    "concatenation": (True, True),
    "input": (False, True),
    "template:pair": (True, True),
    "template:given": (False, True),
    "template:sink": (True, False),
    "template:alone": (False, False),
}


def with_templates() -> Graph:
    """in -> largest (two outputs) -> end; instances and layers with other ports."""
    port_in, port_out = Layer("x", "template_input"), Layer("y", "template_output", (320, 0))
    given, middle = Layer("i", "input"), Layer("m", "identity", (160, 0))
    templates = [
        Template("pair", (port_in, replace(port_out, inputs=(Source("x"),)))),
        Template("given", (given, replace(port_out, inputs=(Source("i"),)))),
        Template("sink", (port_in, replace(middle, inputs=(Source("x"),)))),
        Template("alone", (given, replace(middle, inputs=(Source("i"),)))),
    ]
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("largest", "top_k", (320, 0), (Source("in"),)),
        Layer("sink", "template", (320, 240), (Source("in"),), {"template": "sink"}),
        Layer("end", "identity", (640, 0), (Source("largest"),)),
        Layer("open", "identity", (640, 240)),
    ]
    return Graph(layers, templates=templates)


@pytest.mark.parametrize("way", ["palette", "search"])
def test_an_added_operator_reads_the_first_output_of_the_layer_selected_last_if_both_have_such_a_port(qtbot, way):
    """Else it is added without a link, after the selected layer, or in the middle if none is selected."""
    canvas = kit.open_canvas(qtbot, with_templates())
    context, items, document = canvas.context, canvas.projection, canvas.context.document
    canvas.viewer.pointer = lambda: None
    before = document.graph.copy()
    cases = [(selected, name) for selected in ((), ("in", "largest"), ("sink",)) for name in SIDES]
    cases += [(selected, "identity") for selected in (("in",), ("largest", "in"), ("end",))]
    for selected, type_name in cases:
        reads = SIDES[type_name][0]
        context.select(selected)
        canvas.viewer.go(QPointF(480, 800))
        if way == "palette":
            context.add_requested.emit(type_name)
        else:
            canvas.quick_add()
            canvas._quick_add.chosen.emit(type_name)
        (name,) = set(document.graph.layers) - set(before.layers)
        wanted = (Source(selected[-1]),) if reads and selected and items[selected[-1]].outputs else ()
        assert document.graph[name].inputs == wanted, (selected, type_name)
        assert {n: document.graph[n] for n in before.layers if n != "end"} == {
            n: before[n] for n in before.layers if n != "end"
        }
        assert document.graph["end"].inputs == before["end"].inputs
        assert context.selection == (name,)
        box = items.entry(name).box()
        if selected:
            last = items.entry(selected[-1]).box()
            assert last.right() + GAP <= box.left() <= last.right() + 3 * GAP
            assert box.bottom() > last.top()
        else:
            assert (box.center() - QPointF(480, 800)).manhattanLength() <= 2 * GRID
        assert canvas.viewer.seen().contains(box)
        assert not covered(canvas)
        document.undo()
        assert document.graph == before
    assert canvas.messages == []


@pytest.mark.parametrize("way", ["drop", "search", "from an output", "from an input"])
def test_only_what_has_an_input_and_an_output_goes_into_a_link_and_no_end_is_linked_to_nothing(qtbot, way):
    """Other layers are added without a link, and the link stays."""
    canvas = kit.open_canvas(qtbot, with_templates())
    document, link = canvas.context.document, ("largest", 0)
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.go(QPointF(480, 200))
    before = document.graph.copy()
    for type_name, (reads, gives) in SIDES.items():
        middle = canvas.projection.link(*link).path().pointAtPercent(0.5)
        if way == "drop":
            drop(canvas, type_name, middle)
        else:
            if way == "search":
                canvas.viewer.pointer = lambda middle=middle: middle
                canvas.quick_add()
            else:
                start = kit.output(canvas, "largest", 1) if way == "from an output" else kit.port(canvas, "open")
                kit.drag(canvas, start, kit.at(canvas, QPointF(480, 480)))
            canvas._quick_add.chosen.emit(type_name)
        (name,) = set(document.graph.layers) - set(before.layers)
        links = {n: document.graph[n].inputs for n in before.layers}
        wanted, own = {n: before[n].inputs for n in before.layers}, ()
        if way == "from an output":
            own = (Source("largest", "indices"),) if reads else ()
        elif way == "from an input":
            wanted["open"] = (Source(name),) if gives else ()
        elif reads and gives:
            own, wanted["largest"] = (Source("in"),), (Source(name),)
        assert (document.graph[name].inputs, links) == (own, wanted), type_name
        assert canvas.context.selection == (name,)
        assert not covered(canvas)
        document.undo()
        assert document.graph == before


@pytest.mark.parametrize("place", [(440, 200), (400, 130), (300, 150), (470, 60), (1290, 300)])
def test_an_operator_dropped_on_the_canvas_lies_where_it_is_dropped_even_on_other_layers(qtbot, place):
    canvas = kit.open_canvas(qtbot, kit.small_graph())
    graph = canvas.context.document.graph
    before, seen = graph.copy(), canvas.viewer.visible_center()
    drop(canvas, "pooling", QPointF(*place))
    box = canvas.projection.entry("pooling_0").box()
    assert (box.center() - QPointF(*place)).manhattanLength() <= GRID
    assert graph["pooling_0"].inputs == ()
    assert {n: graph[n] for n in before.layers} == before.layers
    assert canvas.viewer.visible_center() == seen
    assert canvas.context.selection == ("pooling_0",)
