"""Ways through a network without the mouse: the path above the canvas, arrow keys, and the search for a connection."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

import canvas_kit as kit
import template_networks
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.canvas.breadcrumb import LONGEST, Breadcrumb
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.connect_search import ConnectSearch
from app.ui.canvas.remembered_views import RememberedViews
from app.ui.canvas.walker import Direction, Walker
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from designer.graph.commands import remove_layers, rename_layer
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, PARAMETER

pytestmark = pytest.mark.gui
CONV = {"features": "8", "kernel": "3x3", "padding": "same"}


# --- the path above the canvas ----------------------------------------------------------------------------------------


def parts(path: Breadcrumb) -> list[tuple[str, str, str, bool]]:
    """Text, accessible name, tip and whether it is bold, of each part that is visible."""
    QApplication.processEvents()
    found = [button for button in path.findChildren(QToolButton) if not button.isHidden()]
    found.sort(key=lambda button: button.objectName())
    assert [button.objectName() for button in found] == [f"breadcrumb.{n}" for n in range(len(found))]
    return [(b.text(), b.accessibleName(), b.toolTip(), b.font().bold()) for b in found]


def test_each_level_of_the_path_says_what_it_is_and_goes_there(qtbot: QtBot) -> None:
    canvas = kit.open_canvas(qtbot, template_networks.nested())
    context = canvas.context
    path = Breadcrumb(context, canvas)
    name = context.root.graph.name
    whole = f"{name}, the whole network, "
    assert parts(path) == [(name, f"{whole}current level", f"{name}: the whole network", True)]
    assert path.isHidden()
    graph = context.root.graph
    inner = next(
        (ScopeStep(outer.name, around), ScopeStep(layer.name, layer.params[PARAMETER]))
        for outer in graph
        if (around := outer.params.get(PARAMETER, "")) in graph.templates
        for layer in graph.templates[around].layers
        if layer.type == INSTANCE
    )
    first, second = (f"{step.instance} ({step.template})" for step in inner)
    templates = [f"an instance of {step.template}" for step in inner]
    assert context.set_scope(inner)
    assert not path.isHidden()
    assert parts(path) == [
        (name, f"{whole}go to this level", f"Go to {name}", False),
        (first, f"{first}, {templates[0]}, go to this level", f"Go to {first}", False),
        (second, f"{second}, {templates[1]}, current level", f"{second}: {templates[1]}", True),
    ]
    assert path.accessibleDescription() == f"{name} > {first} > {second}"
    separators = [
        label.text() for label in path.findChildren(QLabel) if label.isVisibleTo(path) and label.text() == "›"
    ]
    assert len(separators) == 2
    path.findChild(QToolButton, "breadcrumb.1").click()
    assert context.scope == inner[:1]
    assert [part[0] for part in parts(path)] == [name, first]
    path.findChild(QToolButton, "breadcrumb.0").click()
    assert context.scope == ()
    assert path.isHidden()
    alone = (ScopeStep("", inner[1].template),)
    assert context.set_scope(alone)
    assert parts(path)[1] == (
        inner[1].template,
        f"{inner[1].template}, a template, current level",
        f"{inner[1].template}: a template",
        True,
    )


def test_the_note_at_the_path_counts_instances_or_says_that_types_are_unknown(qtbot: QtBot) -> None:
    canvas = kit.open_canvas(qtbot, template_networks.nested())
    context, path = canvas.context, Breadcrumb(canvas.context, canvas)
    note = path.findChild(QLabel, "breadcrumb.note")
    counts = context.root.graph.instance_counts()
    seen = set()
    for template in context.root.graph.templates:
        for scope in (context.way_to(template), (ScopeStep("", template),)):
            assert context.set_scope(scope)
            count, led = counts[template], bool(scope[-1].instance)
            many = f"An edit here changes every instance ({count})."
            unknown = "Types are unknown here: open the template through an instance to infer them."
            expected = many if count > 1 else "" if led else unknown
            assert note.text() == expected
            seen.add(expected)
    assert len(seen) == 3
    context.set_scope(())
    assert note.text() == ""


def test_a_long_name_is_cut_in_the_path_and_follows_the_document(qtbot: QtBot) -> None:
    graph = template_networks.nested()
    canvas = kit.open_canvas(qtbot, graph)
    context, path = canvas.context, Breadcrumb(canvas.context, canvas)
    way = context.way_to("residual")[:1]
    assert context.set_scope(way)
    assert len(parts(path)) == 2
    instance = way[0].instance
    context.root.do(lambda g: rename_layer(g, instance, "b" * 40))
    text = f"{'b' * 40} ({way[0].template})"
    assert [(part[0], part[1].partition(",")[0]) for part in parts(path)][1] == (f"{text[: LONGEST - 1]}…", text)
    context.root.undo()
    assert parts(path)[1][0] == f"{instance} ({way[0].template})"
    other = Document(Graph([Layer("x", "input")], name="R&D"), context.registry, parent=context)
    context.set_document(other)
    assert parts(path)[0][:2] == ("R&&D", "R&D, the whole network, current level")
    context.set_document(context.root)


# --- arrow keys -------------------------------------------------------------------------------------------------------


@pytest.fixture
def canvas(qtbot: QtBot) -> Canvas:
    """Columns 320 apart: image; three convolutions of it at other heights; their sum; output. `alone` is far below."""
    layers = [
        Layer("image", "input", (0, 320), params={"dims": "64x48x3"}),
        Layer("high", "convolution", (320, 0), (Source("image"),), CONV),
        Layer("middle", "convolution", (320, 300), (Source("image"),), CONV),
        Layer("low", "convolution", (320, 640), (Source("image"),), CONV),
        Layer("sum", "element_wise", (640, 600), (Source("high"), Source("middle"), Source("low"))),
        Layer("out", "output", (960, 600), (Source("sum"),)),
        Layer("alone", "pooling", (0, 960)),
    ]
    return kit.open_canvas(qtbot, Graph(layers))


def test_arrows_go_along_links_and_to_the_nearest_layer_above_or_below(canvas: Canvas) -> None:
    context, walker = canvas.context, Walker(canvas.context, canvas)
    steps = {
        "image": {"RIGHT": "middle", "DOWN": "alone", "UP": "middle"},
        "high": {"LEFT": "image", "RIGHT": "sum", "DOWN": "middle"},
        "middle": {"LEFT": "image", "RIGHT": "sum", "UP": "high", "DOWN": "low"},
        "low": {"LEFT": "image", "RIGHT": "sum", "UP": "middle"},
        "sum": {"LEFT": "low", "RIGHT": "out"},
        "out": {"LEFT": "sum"},
        "alone": {"UP": "image"},
    }
    centers = {name: canvas.projection.entry(name).box().center() for name in steps}
    for name, known in steps.items():
        for direction in Direction:
            if direction in (Direction.UP, Direction.DOWN):  # twice as far aside as ahead, by hand
                way = direction.value[1]
                runs = {n: centers[n] - centers[name] for n in steps}
                ahead = {n: run for n, run in runs.items() if run.y() * way > 8}
                nearest = min(ahead, key=lambda n: (abs(ahead[n].y()) + 2 * abs(ahead[n].x()), n), default=name)
                expected = nearest
            else:
                expected = known.get(direction.name, name)
            context.select((name,))
            walker.step(direction)
            assert context.selection == (expected,), (name, direction)
            context.select(("out", name) if name != "out" else ("image", name))
            before = context.selection
            walker.step(direction, extend=True)
            assert context.selection == (
                before if expected == name else (*(n for n in before if n != expected), expected)
            )
    context.select(())
    walker.step(Direction.LEFT)
    assert context.selection == ("image",)  # the leftmost, and of two the higher one
    context.document.do(lambda g: remove_layers(g, list(g.layers)))
    context.select(())
    walker.step(Direction.LEFT)
    assert context.selection == ()


def test_a_layer_straight_below_is_nearer_than_one_aside(qtbot: QtBot) -> None:
    places = {"spot": (0, 0), "below": (0, 480), "wide": (240, 160), "level": (400, 0), "right": (960, 80)}
    canvas = kit.open_canvas(qtbot, Graph([Layer(name, "pooling", place) for name, place in places.items()]))
    context, walker = canvas.context, Walker(canvas.context, canvas)
    for name, direction, expected in (
        ("spot", Direction.DOWN, "below"),
        ("below", Direction.UP, "spot"),
        ("right", Direction.UP, "level"),
        ("level", Direction.DOWN, "wide"),
        ("spot", Direction.UP, "spot"),
        ("spot", Direction.RIGHT, "spot"),  # only links lead there
    ):
        context.select((name,))
        walker.step(direction)
        assert context.selection == (expected,), (name, direction)


def test_selecting_what_is_before_or_behind_keeps_what_was_selected(canvas: Canvas) -> None:
    context, walker = canvas.context, Walker(canvas.context, canvas)
    for start, up, down in (
        (("sum",), ("high", "image", "low", "middle", "sum"), ("out", "sum")),
        (("low", "high"), ("image", "low", "high"), ("out", "sum", "low", "high")),
        (("alone",), ("alone",), ("alone",)),
    ):
        context.select(start)
        walker.upstream()
        assert context.selection == up
        context.select(start)
        walker.downstream()
        assert context.selection == down


# --- the search for a connection --------------------------------------------------------------------------------------


def offers(search: ConnectSearch, text: str = "") -> list[tuple[str, str, bool]]:
    return [(match.text, match.detail, match.enabled) for match in search._found(text)]


def test_each_port_that_can_be_connected_is_offered_once(canvas: Canvas) -> None:
    search = ConnectSearch(canvas)
    document = canvas.context.document
    place = QPoint(10, 10)
    search.open_for(document, "high", place, outgoing=True)
    found = offers(search)
    assert {text.partition(" · ")[0] for text, _, _ in found} == {"middle", "low", "sum", "out", "alone"}
    assert found[0][0].startswith("alone · ")  # an open input comes first
    details = {text.partition(" · ")[0]: detail for text, detail, _ in found}
    assert details["alone"] == ""
    assert details["out"] == "replaces sum"
    assert details["low"] == "replaces image"
    near = [text.partition(" · ")[0] for text, _, _ in found if "replaces" in details[text.partition(" · ")[0]]]
    assert near.index("middle") < near.index("low") < near.index("out")
    for number, offer in enumerate(search._offers):
        assert search.offer(str(number)) == offer
        assert offer.source == Source("high")
        inputs = document.graph[offer.consumer].inputs
        assert offer.replaces == (inputs[offer.at] if offer.at < len(inputs) else None)
        assert offer.replaces != offer.source
    assert [text for text, _, _ in offers(search, "LOW")] == [text for text, _, _ in found if "low" in text]
    assert offers(search, "nobody") == []
    search.open_for(document, "out", place, outgoing=False)
    texts = [text for text, _, _ in offers(search)]
    assert {text.partition(" · ")[0] for text in texts} == {"image", "high", "middle", "low", "alone"}
    assert all(" > " in text for text in texts)
    for offer in search._offers:
        assert (offer.consumer, offer.at, offer.replaces) == ("out", 0, Source("sum"))
    search.close()


# --- views that come back ---------------------------------------------------------------------------------------------


def test_a_view_is_remembered_for_each_document_and_scope(canvas: Canvas) -> None:
    viewer, document = canvas.viewer, canvas.context.root
    other = Document(Graph([Layer("x", "input")]), canvas.context.registry, parent=canvas.context)
    views = RememberedViews(viewer)
    assert not views.restore()
    inside = (ScopeStep("a", "t"),)
    places = {}
    keys = [(document, ()), (document, inside), (document, (*inside, ScopeStep("b", "u"))), (other, ())]
    views.leave(*keys[0])
    for number, key in enumerate(keys):
        assert not views.restore()
        viewer.zoom_by((0.5 + number / 4) / viewer.zoom)
        viewer.go(canvas.projection.entry("image").pos() * (number + 1))
        places[key] = viewer.place()
        views.leave(*keys[(number + 1) % 4])
    assert len({str(place) for place in places.values()}) == 4
    assert views.restore()
    assert viewer.place() == places[keys[0]]
    for key in (keys[3], keys[1], keys[2], keys[0]):
        views.leave(*key)
        assert views.restore()
        assert viewer.place() == places[key]
