"""Links with points, curved and at right angles, and texts under nodes; with real mouse events on the real window."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QLineF, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QPainterPath, QPolygonF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from recorded import check_lines
from window_kit import open_window, show

from app.ui.canvas import link_paths, node_metrics
from app.ui.canvas.links import AIR
from app.ui.canvas.node_layout import PORT_RADIUS
from designer.graph import commands
from designer.graph.model import Layer, Source
from designer.graph.routes import routes_of, set_route

NONE, ALT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.AltModifier
LINK = ("cat", 1)  # from the input past the convolution
PLACE = (416, 224)


@pytest.fixture
def window(empty_window):
    graph = kit.small_graph()
    graph.apply(commands.remove_layers(graph, ["free"]))
    yield show(empty_window, graph)
    link_paths.set_style(link_paths.CURVED)
    node_metrics.show(node_metrics.SHAPES)


def link(window, key=LINK):
    return window.canvas.projection.link(*key)


def points(window, key=LINK) -> tuple:
    return routes_of(window.context.document.graph[key[0]]).get(key[1], ())


def on_link(window, share: float, key=LINK) -> QPoint:
    return kit.at(window.canvas, link(window, key).path().pointAtPercent(share))


def double_click(window, place: QPoint, keys=ALT) -> None:
    QTest.mouseDClick(window.canvas.viewer.viewport(), kit.LEFT, keys, place)


def with_point(window, *places) -> None:
    window.context.document.do(lambda g: set_route(g, *LINK, places or [PLACE]))


def menu_on(window, place: QPoint) -> QMenu:
    view = window.canvas.viewer.viewport()
    QTest.mouseClick(view, Qt.MouseButton.RightButton, NONE, place)
    QApplication.sendEvent(view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.mapToGlobal(place)))
    return window.findChild(QMenu, "canvas.menu")


def test_alt_and_a_double_click_add_a_point_and_take_it_away(window):
    place = on_link(window, 0.4)
    double_click(window, place)
    (point,) = points(window)
    assert point[0] % 16 == 0
    assert point[1] % 16 == 0
    assert abs(QPointF(*point).x() - window.canvas.viewer.mapToScene(place).x()) <= 8
    assert window.context.document.history.undo_title == "Add reroute point"
    assert link(window).path().contains(QPointF(*point)) or link(window).shape().contains(QPointF(*point))
    double_click(window, kit.at(window.canvas, QPointF(*point)))
    assert points(window) == ()
    window.context.document.undo()
    assert points(window) == (point,)
    window.context.document.undo()
    assert points(window) == ()


def test_a_plain_double_click_still_inserts(window):
    double_click(window, on_link(window, 0.4), NONE)
    from app.ui.canvas.quick_add import QuickAdd

    popup = window.findChild(QuickAdd)
    assert popup.isVisible()
    popup.hide()


def test_a_point_is_dragged_in_one_step_and_escape_takes_it_back(window):
    with_point(window)
    view, start = window.canvas.viewer.viewport(), kit.at(window.canvas, QPointF(*PLACE))
    kit.drag(window.canvas, start, start + QPoint(40, 33))
    (moved,) = points(window)
    assert moved != PLACE
    assert moved[0] % 16 == 0
    assert link(window).shape().contains(QPointF(*moved))
    assert window.context.document.history.undo_title == "Move reroute point"
    window.context.document.undo()
    assert points(window) == (PLACE,)
    assert link(window).points == [QPointF(*PLACE)]
    QTest.mousePress(view, kit.LEFT, NONE, start)
    QTest.mouseMove(view, start + QPoint(60, 60))
    assert link(window).points != [QPointF(*PLACE)]
    QTest.keyClick(window.canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, NONE, start + QPoint(60, 60))
    assert points(window) == (PLACE,)
    assert link(window).points == [QPointF(*PLACE)]


def test_a_click_on_a_point_selects_the_link(window):
    with_point(window)
    kit.click(window.canvas, kit.at(window.canvas, QPointF(*PLACE)))
    assert window.canvas.viewer.selected_links() == [link(window)]
    window.activateWindow()
    window.canvas.viewer.setFocus()
    QApplication.processEvents()  # actions follow with the next turn
    QTest.keyClick(window.canvas.viewer, Qt.Key.Key_Delete)
    assert window.context.document.graph["cat"].inputs == (Source("conv"),)


@pytest.mark.parametrize("zoom", [0.6, 1.6])
def test_a_point_that_is_pressed_with_a_trembling_hand_stays_where_it_is(window, zoom):
    """Anywhere on the canvas: the distance that counts is one on the screen."""
    with_point(window)
    viewer = window.canvas.viewer
    viewer.zoom_by(zoom / viewer.zoom)
    for center in (QPointF(*PLACE), QPointF(PLACE[0] - 90, PLACE[1] + 60)):
        viewer.go(center)
        viewer.select_items([])
        view, start = viewer.viewport(), kit.at(window.canvas, QPointF(*PLACE))
        QTest.mousePress(view, kit.LEFT, NONE, start)
        QTest.mouseMove(view, start + QPoint(1, 2))
        assert link(window).points == [QPointF(*PLACE)]
        QTest.mouseRelease(view, kit.LEFT, NONE, start + QPoint(1, 2))
        assert points(window) == (PLACE,)
        assert viewer.selected_links() == [link(window)]


def test_points_keep_their_order_along_the_link(window):
    with_point(window, (224, 208), (544, 208))
    double_click(window, kit.at(window.canvas, link(window).path().pointAtPercent(0.5)))
    assert [x for x, _ in points(window)] == sorted(x for x, _ in points(window))
    assert len(points(window)) == 3


def test_the_menu_of_a_link_adds_and_removes_points(window):
    menu = menu_on(window, on_link(window, 0.5))
    assert window.canvas.viewer.selected_links() == [link(window)]
    window.actions_["edit.add_reroute"].trigger()
    menu.close()
    assert len(points(window)) == 1
    with_point(window, (224, 208), (544, 208))
    menu = menu_on(window, kit.at(window.canvas, QPointF(544, 208)))
    window.actions_["edit.remove_reroute"].trigger()
    menu.close()
    assert points(window) == ((224, 208),)
    window.actions_["edit.straighten"].trigger()
    assert points(window) == ()


def test_the_actions_say_why_they_cannot(window):
    QApplication.processEvents()
    action = window.actions_["edit.add_reroute"]
    assert not action.isEnabled()
    assert "select exactly one link" in action.toolTip()


def test_points_go_along_while_both_ends_are_dragged(window):
    with_point(window)
    window.context.select(("input", "cat"))
    view, start = window.canvas.viewer.viewport(), kit.node(window.canvas, "cat")
    QTest.mousePress(view, kit.LEFT, NONE, start)
    for step in (20, 64):
        QTest.mouseMove(view, start + QPoint(0, step))
    shown = link(window).points[0]
    assert shown.y() > PLACE[1]
    QTest.mouseRelease(view, kit.LEFT, NONE, start + QPoint(0, 64))
    assert points(window) == ((round(shown.x()), round(shown.y())),)
    window.context.document.undo()
    assert points(window) == (PLACE,)
    assert link(window).points == [QPointF(*PLACE)]


@pytest.mark.parametrize("selected", [("input", "cat"), ("cat",), ("conv",)], ids="+".join)
def test_escape_while_layers_are_dragged_brings_links_and_points_back(window, selected):
    """The points move only with both ends; layers without points, and links without, come back too."""
    with_point(window)
    window.context.select(selected)
    view, start = window.canvas.viewer.viewport(), kit.node(window.canvas, selected[-1])

    def drawn() -> list[QPainterPath]:
        edges = [(name, port) for name, count in (("conv", 1), ("cat", 2), ("out", 1)) for port in range(count)]
        return [window.canvas.projection.link(*edge).path() for edge in edges]

    before = drawn()
    QTest.mousePress(view, kit.LEFT, NONE, start)
    for step in (20, 64):
        QTest.mouseMove(view, start + QPoint(0, step))
    assert drawn() != before
    QTest.keyClick(window.canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, NONE, start + QPoint(0, 64))
    assert drawn() == before
    assert points(window) == (PLACE,)
    assert link(window).points == [QPointF(*PLACE)]


def test_deleting_healing_and_copying(window):
    document = window.context.document
    with_point(window)
    window.context.select(("input", "conv", "cat"))
    window.canvas.duplicate_selection()
    copy = next(n for n in window.context.selection if document.graph[n].type == "concatenation")
    places = document.graph[copy].position, document.graph["cat"].position
    run = (places[0][0] - places[1][0], places[0][1] - places[1][1])
    assert routes_of(document.graph[copy]) == {1: ((PLACE[0] + run[0], PLACE[1] + run[1]),)}
    assert window.canvas.projection.link(copy, 1).points
    document.undo()
    document.do(lambda g: commands.remove_layers(g, ["input"]))
    assert points(window) == ()
    document.undo()
    assert points(window) == (PLACE,)
    assert link(window).points == [QPointF(*PLACE)]


def test_laying_out_straightens_links(window):
    with_point(window)
    window.canvas.arrange(everything=True)
    assert points(window) == ()
    window.context.document.undo()
    assert points(window) == (PLACE,)


def test_right_angles_are_chosen_in_the_menu_and_remembered(window, qtbot, tmp_path):
    curved = link(window).path()
    window.actions_["view.links_angled"].trigger()
    path = link(window).path()
    assert path != curved
    corners = link_paths.angled(link(window).source.center(), link(window).target.center())
    assert all(a.x() == b.x() or a.y() == b.y() for a, b in pairwise(corners))
    assert window.actions_["view.links_angled"].isChecked()
    assert not window.actions_["view.links_curved"].isChecked()
    link_paths.set_style(link_paths.CURVED)  # as at another start
    other = show(open_window(qtbot, tmp_path), kit.small_graph())
    assert other.actions_["view.links_angled"].isChecked()


@pytest.mark.parametrize("end", [QPointF(300, 80), QPointF(-300, 80), QPointF(10, -200), QPointF(0, 0)])
@pytest.mark.parametrize("places", [[], [QPointF(50, 300)], [QPointF(-80, 10), QPointF(-80, 400)]])
def test_every_line_reaches_its_ends(end, places):
    start = QPointF(0, 0)
    for style in link_paths.STYLES:
        path = link_paths.link_path(start, end, points=places, shape=style)
        assert path.pointAtPercent(0) == start
        last = path.currentPosition()
        assert (round(last.x(), 6), round(last.y(), 6)) == (end.x(), end.y())
        near = [path.pointAtPercent(share / 400) for share in range(401)]
        assert all(min((place - other).manhattanLength() for other in near) < 12 for place in places), style
    corners = link_paths.angled(start, end, points=places)
    assert all(a.x() == b.x() or a.y() == b.y() for a, b in pairwise(corners))
    assert all(any(c == p for c in corners) for p in places)


def test_figures_under_nodes(window):
    item = window.canvas.projection["conv"]
    assert item.look.under == "8 x 48 x 64"
    for name, text in (("parameters", "224"), ("flops", "~1.33 MFLOP"), ("memory", "~96.9 KiB")):
        window.actions_[f"view.figure_{name}"].trigger()
        assert item.look.under == text
        assert window.actions_[f"view.figure_{name}"].isChecked()
    assert window.canvas.projection["out"].look.under.startswith("~")
    assert link(window).label == "3 x 48 x 64"  # links keep the shapes
    window.context.document.do(lambda g: commands.set_params(g, {"conv": {"features": "many"}}))
    assert item.look.under == "-"
    window.actions_["view.figure_shapes"].trigger()
    assert window.canvas.projection["input"].look.under == "3 x 48 x 64"


def test_the_tip_of_a_port_tells_shape_and_type(window):
    dot = window.canvas.projection["conv"].inputs[0]
    QTest.mouseMove(window.canvas.viewer.viewport(), kit.port(window.canvas, "conv") - QPoint(40, 40))
    QTest.mouseMove(window.canvas.viewer.viewport(), kit.port(window.canvas, "conv"))
    QApplication.processEvents()
    assert dot.carried() == "3 x 48 x 64 float32"
    assert window.canvas.projection["conv"].outputs[0].carried() == "8 x 48 x 64 float32"
    assert "224 parameters, ~1.33 MFLOP, ~96.9 KiB" in window.canvas.projection["conv"].toolTip()


def test_a_shape_is_not_written_where_it_would_touch_a_port(window):
    """Ports extend beyond their nodes, so a label between two nodes needs space on both sides."""
    item = link(window, ("out", 0))
    start = item.source.node.box().right()
    wide = item.label_box.width()
    for gap, fits in ((wide + 2 * AIR + 1, True), (wide + 2 * AIR - 1, False), (wide + 1, False), (wide - 1, False)):
        target = window.canvas.projection["out"]
        target.setPos(start + gap, target.pos().y())
        item.redraw()
        ends = item.source.center(), item.target.center()
        assert item.label_fits is fits
        if fits:
            assert item.label_box.left() > ends[0].x() + PORT_RADIUS
            assert item.label_box.right() < ends[1].x() - PORT_RADIUS


SHORT = {
    "long pieces": [(0, 0), (100, 0), (100, 80), (300, 80)],
    "a piece shorter than two corners": [(0, 0), (100, 0), (100, 10), (300, 10)],
    "two pieces shorter than two corners": [(0, 0), (12, 0), (12, 9), (300, 9)],
    "only short pieces": [(0, 0), (6, 0), (6, 6), (14, 6), (14, 0), (18, 0)],
    "a piece of no length": [(0, 0), (100, 0), (100, 0), (300, 0)],
    "there and back": [(0, 0), (24, 0), (24, 40), (-60, 40), (-60, 80), (-20, 80)],
}


@pytest.mark.parametrize("name", SHORT)
def test_rounded_corners_make_a_line_shorter_and_leave_its_pieces_where_they_are(name):
    places = [QPointF(*place) for place in SHORT[name]]
    path = link_paths.rounded(places)
    pieces = [QLineF(a, b) for a, b in pairwise(places)]
    assert path.length() <= sum(piece.length() for piece in pieces) + 1e-6
    assert (path.pointAtPercent(0), path.pointAtPercent(1)) == (places[0], places[-1])
    around = QPolygonF(places).boundingRect().adjusted(-1e-6, -1e-6, 1e-6, 1e-6)
    on_path = [path.pointAtPercent(share / 500) for share in range(501)]
    assert all(around.contains(place) for place in on_path)
    for piece in pieces:  # the middle is never cut off
        assert min(QLineF(piece.center(), place).length() for place in on_path) < 1
    for corner, (before, after) in zip(places[1:], pairwise(pieces), strict=False):
        room = min(link_paths.CORNER, before.length() / 2, after.length() / 2)
        assert min(QLineF(corner, place).length() for place in on_path) <= room + 1


# --- one link through all its states ---------------------------------------------------------------------------------


def straight(window, key=LINK) -> list[tuple[float, float]]:
    """The corners of a link as the far view of a large network paints it."""
    path = QPainterPath()
    link(window, key).add_lines(path)
    return [(path.elementAt(n).x, path.elementAt(n).y) for n in range(path.elementCount())]


def test_a_link_leads_around_layers_or_through_its_points_or_straight(window):
    """Points take the place of the lane, and the lane comes back without them, in the line, from afar and with its label."""
    document, items = window.context.document, window.canvas.projection
    two = [(224, 208), (544, 240)]

    def ends() -> tuple[tuple[float, float], tuple[float, float]]:
        item = link(window)
        return item.source.center().toTuple(), item.target.center().toTuple()

    def seen(kind: str) -> None:
        item, (start, end) = link(window), ends()
        box, lines = items["conv"].box(), straight(window)
        assert item.points == [QPointF(*place) for place in points(window)]
        assert (lines[0], lines[-1]) == (start, end)
        if kind == "around":
            (first, lane), (last, same) = lines[1:-1]
            assert lane == same
            assert start[0] < first < last < end[0]
            assert not box.top() <= lane <= box.bottom()
            assert not any(box.contains(item.path().pointAtPercent(share / 50)) for share in range(51))
            assert item.label_box.center().y() == pytest.approx(lane)
        elif kind == "points":
            assert lines[1:-1] == two
            pieces = [QLineF(QPointF(*a), QPointF(*b)) for a, b in pairwise(lines)]
            longest = max(pieces, key=lambda piece: abs(piece.dx()) + abs(piece.dy()))
            middle = item.label_box.center()
            assert middle.toTuple() == pytest.approx(longest.center().toTuple())
        else:
            assert lines == [start, end]
            assert item.label_box.center().toTuple() == pytest.approx(
                ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            )
        assert item.label == "3 x 48 x 64"
        assert item.boundingRect().contains(item.path().boundingRect().united(item.label_box))

    seen("around")
    with_point(window, *two)
    seen("points")
    document.do(lambda g: commands.move_layers(g, {"conv": (320, 640)}))
    seen("points")
    window.canvas.viewer.select_link(link(window))
    window.canvas.routes.straighten()
    seen("straight")
    document.undo()
    document.undo()
    seen("points")
    document.undo()
    seen("around")
    document.redo()
    seen("points")
    document.undo()
    document.do(lambda g: commands.move_layers(g, {"conv": (320, 640)}))
    seen("straight")
    document.do(lambda g: commands.add_layer(g, Layer("in the way", "identity", (320, 0))))
    assert len(straight(window)) == 4
    document.undo()
    seen("straight")
    document.do(lambda g: commands.move_layers(g, {"conv": (320, 0)}))
    seen("around")
    document.do(lambda g: commands.set_params(g, {"conv": {"kernel": "3x3"}}))
    document.do(lambda g: commands.rename_layer(g, "input", "photo"))
    seen("around")
    document.do(lambda g: commands.move_layers(g, {"cat": (240, 320)}))  # too near for a lane
    assert straight(window) == list(ends())
    document.do(lambda g: commands.move_layers(g, {"conv": (80, 200)}))
    document.do(lambda g: commands.move_layers(g, {"cat": (-400, 0)}))  # backwards
    assert straight(window) == list(ends())
    for _ in range(3):
        document.undo()
    seen("around")


@pytest.mark.parametrize(("share", "slot"), [(0.08, 0), (0.5, 1), (0.92, 2)])
def test_a_point_is_added_to_the_piece_that_is_clicked(window, share, slot):
    with_point(window, (224, 208), (544, 208))
    before = points(window)
    double_click(window, on_link(window, share))
    after = points(window)
    assert len(after) == 3
    assert (*after[:slot], *after[slot + 1 :]) == before


@pytest.mark.parametrize("style", link_paths.STYLES)
@pytest.mark.parametrize(
    "places",
    [
        ((224, 208), (544, 208)),
        ((720, 240), (416, 480), (80, 320)),
        ((800, -160), (800, 320), (400, 400)),
        ((100, 300), (500, 120), (300, -200), (640, 240)),
    ],
)
def test_points_are_added_in_their_order_along_a_link_wherever_it_leads(window, places, style):
    """Also where it runs backwards, up or across itself."""
    link_paths.set_style(style)
    with_point(window, *places)
    window.canvas.projection.redraw_links()
    item = link(window)
    path, shares = item.path(), [0.0]
    for place in places:
        later = [step / 400 for step in range(401) if step / 400 > shares[-1]]
        shares.append(min(later, key=lambda share: QLineF(path.pointAtPercent(share), QPointF(*place)).length()))
    for slot, (a, b) in enumerate(pairwise((*shares, 1.0))):
        assert item.slot_at(path.pointAtPercent((a + b) / 2)) == slot


@pytest.mark.parametrize(("zoom", "near"), [(0.4, 7.0 / 0.4), (1.0, 7.0), (2.5, 5.5)])
def test_a_point_is_grasped_as_far_as_it_can_be_seen(window, zoom, near):
    """`near` in canvas units: 7 pixels, but the whole point at least."""
    with_point(window, (224, 208), (416, 224), (544, 208))
    item = link(window)
    for number, place in enumerate(item.points):
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1)):
            run = QPointF(x, y)
            assert item.point_at(place + run * (near - 0.4), zoom) == number
            assert item.point_at(place + run * (near + 0.4), zoom) is None


@pytest.mark.parametrize("place", [(230, 212), (400, 230), (548, 200)])
def test_the_menu_acts_on_the_point_nearest_to_the_pointer(window, place):
    three = [(224, 208), (416, 224), (544, 208)]
    with_point(window, *three)
    window.canvas.viewer.select_link(link(window))
    window.canvas.viewer.menu_place = QPointF(*place)
    window.canvas.routes.remove()
    nearest = min(three, key=lambda point: abs(point[0] - place[0]) + abs(point[1] - place[1]))
    assert points(window) == tuple(point for point in three if point != nearest)
    window.context.document.undo()
    window.canvas.viewer.menu_place = None  # by the keyboard: the last one
    window.canvas.viewer.select_link(link(window))
    window.canvas.routes.remove()
    assert points(window) == tuple(three[:-1])


def test_a_point_is_added_in_the_middle_unless_the_menu_was_opened_on_the_link(window):
    item = link(window)
    window.canvas.viewer.select_link(item)
    middle, near = item.path().pointAtPercent(0.5), item.path().pointAtPercent(0.2)
    aside = item.boundingRect().topLeft() + QPointF(1, 1)
    for place in (None, QPointF(5000, 5000), aside, near + QPointF(0, 24), near, near + QPointF(0, 4)):
        window.canvas.viewer.menu_place = place
        window.canvas.routes.add()
        (point,) = points(window)
        wanted = place if place is not None and (place - near).manhattanLength() < 5 else middle
        assert max(abs(point[0] - wanted.x()), abs(point[1] - wanted.y())) <= 8
        window.context.document.undo()
        window.canvas.viewer.select_link(link(window))


@pytest.mark.parametrize(
    ("place", "fits"), [((1256, 40), False), ((-472, 40), False), ((416, 224), True), ((392, 640), True)]
)
def test_a_shape_is_written_where_it_covers_neither_end(window, place, fits):
    """The longest piece can pass over the layer that it comes from, or over the one that it leads to."""
    with_point(window, place)
    item = link(window)
    label = item.label_box.adjusted(-AIR, 0, AIR, 0)
    covered = [end for end in ("input", "cat") if label.intersects(window.canvas.projection[end].box())]
    assert covered == ([] if fits else ["cat"] if place[0] > 0 else ["input"])
    assert item.label_fits is fits


def test_a_port_tells_the_element_type_of_its_tensor_once(window):
    """Tensors of whole numbers have their type in their shape already."""
    document, items = window.context.document, window.canvas.projection
    document.do(lambda g: commands.add_layer(g, Layer("best", "top_k", (640, 320), (Source("conv"),), {"count": "2"})))
    document.do(lambda g: commands.add_layer(g, Layer("places", "identity", (960, 320), (Source("best", "indices"),))))
    values, places = (dot.carried() for dot in items["best"].outputs)
    assert values.endswith(" float32")
    assert places == values.replace("float32", "int64")
    assert items["places"].inputs[0].carried() == places
    assert items["conv"].inputs[0].carried() == "3 x 48 x 64 float32"
    document.do(lambda g: commands.set_params(g, {"conv": {"kernel": "0x0"}}))
    assert [dot.carried() for dot in (*items["best"].outputs, *items["places"].inputs)] == ["", "", ""]
    assert items["conv"].inputs[0].carried() == "3 x 48 x 64 float32"
    document.undo()
    assert items["best"].outputs[1].carried() == places
    document.do(lambda g: commands.remove_layers(g, ["best"]))
    assert items["places"].inputs[0].carried() == ""


@pytest.mark.parametrize("dx", [-300, -10, 0, 10, 40, 48, 60, 300])
@pytest.mark.parametrize("dy", [-120, 0, 80])
def test_a_line_at_right_angles_leaves_and_arrives_to_the_right(dx, dy):
    """With a piece that can be seen at both ends, also where the layers are too near for a simple step."""
    corners = link_paths.angled(QPointF(0, 0), QPointF(dx, dy))
    first, last = corners[1].x(), dx - corners[-2].x()
    assert first == last == (dx / 2 if dx >= 2 * link_paths.STUB else link_paths.STUB)
    assert all(a.x() == b.x() or a.y() == b.y() for a, b in pairwise(corners))


def test_the_label_of_a_link_is_on_its_lane_also_at_zero():
    start, end = QPointF(0, 40), QPointF(600, 80)
    for lane in (-200.0, 0.0, 300.0):
        assert link_paths.label_place(start, end, lane, ()) == QPointF(300, lane)
    assert link_paths.label_place(start, end, None, ()) == QPointF(300, 60)


def test_an_unknown_style_of_links_is_curved():
    try:
        for name, style in (("angled", "angled"), ("wavy", "curved"), ("angled", "angled"), ("curved", "curved")):
            link_paths.set_style(name)
            assert link_paths.style() == style
    finally:
        link_paths.set_style(link_paths.CURVED)


def test_a_label_that_is_wider_than_its_link_is_inside_the_bounds_of_the_item(window):
    """Else parts of it would stay on the canvas, or be cut off, when the link moves."""
    try:
        for style in link_paths.STYLES:
            link_paths.set_style(style)
            for place in ((200, 640), (160, -900), (100, 480)):
                window.context.document.do(lambda g, place=place: commands.move_layers(g, {"cat": place}))
                item = link(window)
                item.redraw()
                assert item.label_box.width() > 40
                assert item.boundingRect().contains(item.label_box)
                assert item.boundingRect().contains(item.path().boundingRect())
    finally:
        link_paths.set_style(link_paths.CURVED)


def path_text(path: QPainterPath) -> str:
    """The pieces of a path; three that belong together are a curve."""
    pieces = [path.elementAt(n) for n in range(path.elementCount())]
    return " ".join(f"{piece.type.name.removesuffix('Element')[:5]} {piece.x:.1f},{piece.y:.1f}" for piece in pieces)


def test_paths_are_as_recorded(qapp):
    """Both styles, to the right, to the left, level and steep, direct, along lanes, and through one point or several."""
    found = []
    for style in link_paths.STYLES:
        link_paths.set_style(style)
        for dx, dy in ((300, 120), (300, 0), (40, -80), (0, 0), (-10, 60), (-400, -200), (3000, 40)):
            start, end = QPointF(20, 40), QPointF(20 + dx, 40 + dy)
            for lane in (None, 0.0, 40.0, 40.0 + dy, -300.0):
                place = link_paths.label_place(start, end, lane, ())
                text = path_text(link_paths.link_path(start, end, lane))
                found.append(f"{style} {dx} {dy} lane {lane}: {text}; label {place.x():.1f} {place.y():.1f}")
            for points in ([(120, 300)], [(10, 0), (500, -90)], [(400, 40), (380, 200), (-60, 200)]):
                via = [QPointF(*point) for point in points]
                place = link_paths.label_place(start, end, -50.0, via)
                text = path_text(link_paths.link_path(start, end, -50.0, via))
                found.append(f"{style} {dx} {dy} through {points}: {text}; label {place.x():.1f} {place.y():.1f}")
    link_paths.set_style(link_paths.CURVED)
    other = link_paths.link_path(QPointF(0, 0), QPointF(300, 120), shape=link_paths.ANGLED)
    found.append(f"angled while curved: {path_text(other)}")
    check_lines("canvas/link_paths.txt", found)
