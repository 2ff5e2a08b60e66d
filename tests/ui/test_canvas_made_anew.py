"""After any edits the canvas shows what a canvas shows on which the same network is opened anew."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from random import Random

import canvas_kit as kit
from PySide6.QtCore import QEvent, QPointF
from PySide6.QtWidgets import QGraphicsSceneHoverEvent

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from designer.graph import commands, frames, routes
from designer.graph.bypass import bypass
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template

STEPS = 50
KINDS = ("convolution", "concatenation", "pooling", "top_k", "identity", "template", "mystery")


def network() -> Graph:
    graph = kit.small_graph()
    inner = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("y", "template_output", (320, 0), (Source("x"),)),
    )
    more = [
        Layer("best", "top_k", (640, 320), (Source("conv"),), {"count": "2"}),
        Layer("places", "identity", (960, 320), (Source("best", "indices"),)),
        Layer("block", "template", (320, 320), (Source("input"),), {"template": "pair"}),
        Layer("far", "element_wise", (1600, 0), (Source("input"), Source("conv"))),
    ]
    comments = (Frame("f", "Encoder", "", "", (272, -64, 304, 160)), Frame("g", "All", "", "", (240, -96, 700, 600)))
    return Graph([*graph, *more], name="made", frames=comments, templates=[Template("pair", inner)])


def hover(canvas: Canvas) -> None:
    """Move the pointer onto every port and away from it."""
    scene, items = canvas.viewer.scene(), canvas.projection
    for item in [items[name] for name in items.layers]:
        for dot in (*item.inputs, *item.outputs):
            for kind in (QEvent.Type.GraphicsSceneHoverEnter, QEvent.Type.GraphicsSceneHoverLeave):
                scene.sendEvent(dot, QGraphicsSceneHoverEvent(kind))


def seen(canvas: Canvas) -> dict[str, object]:
    """What is shown, by what shows it."""
    items, found = canvas.projection, {}
    hover(canvas)
    for name in sorted(items.layers):
        item = items[name]
        found[f"look of {name}"] = (item.look, item.layout)
        found[f"state of {name}"] = (item.pos(), item.isVisible(), item.isSelected(), item.zValue(), item.toolTip())
        found[f"index of {name}"] = (items.entry(name).look, items.entry(name).bounds(), items.shown_for(name))
        for dot in (*item.inputs, *item.outputs):
            tip = dot.toolTip() if item.isVisible() else ""  # the pointer does not get onto a hidden one
            found[f"port {dot.index} of {name}, input {dot.is_input}"] = (tip, dot.center(), dot.grayed)
    for edge in list(items.links):
        link = items.link(*edge.key)
        ends = (link.source.node.layer, link.source.index, link.target.node.layer, link.target.index)
        found[f"link {edge.key}"] = (ends, link.label, link.label_fits, link.isVisible(), link.on_path, link.points)
        found[f"line of {edge.key}"] = [
            (round(link.path().elementAt(n).x), round(link.path().elementAt(n).y))
            for n in range(link.path().elementCount())
        ]
    for key in canvas.context.document.graph.frames:
        item = items.frame(key)
        members = item.members if item.frame.collapsed else ()
        found[f"frame {key}"] = (item.frame, item.seen, item.isVisible(), item.isSelected(), members)
    far = items.collect_far()
    while not items.collect_blocks():
        pass
    for what, rects in {**far.blocks, "selected": far.selected, "training": far.training}.items():
        found[f"far {what}"] = sorted(rect.getRect() for rect in rects)
    for what, rects in far.ghosts.items():
        found[f"far ghosts {what}"] = sorted(rect.getRect() for rect in rects)
    found["far problems"] = sorted((rect.getRect(), problem) for rect, problem in far.problems)
    found["extent"] = items.extent()
    return {key: value for key, value in found.items() if value != []}


def random_edit(document: Document, canvas: Canvas, dice: Random, step: int) -> None:
    graph, members = document.graph, canvas.projection.members
    names, one, two = list(graph.layers), dice.choice(list(graph.layers)), dice.choice(list(graph.layers))
    key = dice.choice(list(graph.frames) or ["none"])
    output = Source(one, "indices" if graph[one].type == "top_k" and dice.random() < 0.5 else "")
    place = (16 * dice.randrange(100), 16 * dice.randrange(-10, 30))
    edits = {
        "add": lambda: commands.add_layer(graph, Layer(f"new_{step}", dice.choice(KINDS), place)),
        "remove": lambda: commands.remove_layers(graph, [one], heal=step % 2 == 1),
        "connect": lambda: commands.connect(graph, output, two, dice.randrange(2)),
        "cut": lambda: commands.disconnect(graph, one, 0, close_gap=step % 2 == 1),
        "rename": lambda: commands.rename_layer(graph, one, f"renamed_{step}"),
        "move": lambda: commands.move_layers(graph, {one: place}),
        "size": lambda: commands.set_params(graph, {"input": {"dims": f"{16 * (1 + step % 3)}x48x3"}}),
        "change": lambda: commands.set_params(graph, {one: {"features": str(1 + step), "count": "3"}}),
        "activate": lambda: commands.set_activation(
            graph, [one], dice.choice((None, ActivationSpec("relu"), ActivationSpec("leaky_relu")))
        ),
        "shorten": lambda: commands.collapse_layers(graph, [one], not graph[one].collapsed),
        "bypass": lambda: bypass(graph, document.inference, [one]),
        "bend": lambda: routes.set_route(graph, "cat", 1, [place, (560, 240)][: dice.randrange(3)]),
        "collapse": lambda: frames.collapse(graph, [], [key], members),
        "move frame": lambda: frames.move_frame(graph, key, (*place, 304, 160), {}, []),
        "paste": lambda: commands.paste(graph, [graph[n] for n in {one, two}], keep_links=True),
    }
    what = dice.choice([*edits, "collapse", "change", "size", "undo", "undo", "redo", "select", "inspect"])
    if what in edits:
        try:
            document.do(edits[what]())
        except (DiagnosticError, KeyError):  # refused, or of a layer or frame that is not there
            return
    elif what == "undo":
        document.undo()
    elif what == "redo":
        document.redo()
    elif what == "select":
        canvas.context.select(tuple(dice.sample(names, min(len(names), dice.randrange(3)))))
    else:
        name, items = dice.choice([*names, ""]), canvas.projection
        canvas.context.inspected.emit(name)  # as the Channel Inspector does when another layer is chosen in it
        assert [n for n in items.layers if items[n].look.inspected] == [name] * bool(name)


@pytest.mark.parametrize(("eager", "seed"), [(True, 3), (False, 14)])
def test_a_canvas_that_was_edited_shows_what_one_shows_that_is_opened_anew(qtbot, monkeypatch, eager, seed):
    if not eager:
        monkeypatch.setattr("app.ui.canvas.projection.EAGER", 3)
    canvas, fresh = kit.open_canvas(qtbot, network()), kit.open_canvas(qtbot, Graph())
    document, dice, log = canvas.context.document, Random(seed), []
    for step in range(STEPS):
        random_edit(document, canvas, dice, step)
        log.append(document.history.undo_title)
        if step % 4:
            hover(canvas)
            continue
        fresh.context.set_document(Document(document.graph.copy(), fresh.context.registry, parent=fresh.context))
        fresh.context.select(canvas.context.selection)
        fresh.context.inspected.emit(canvas.projection.inspected)
        found, wanted = seen(canvas), seen(fresh)
        keys = sorted(found.keys() | wanted.keys())
        apart = [f"{k}: {found.get(k)} but anew {wanted.get(k)}" for k in keys if found.get(k) != wanted.get(k)]
        assert not apart, "\n".join([*apart, f"after {log[-6:]}"])


def test_a_layer_that_was_selected_in_a_collapsed_frame_is_not_in_front_of_others(qtbot):
    """Before the frame is collapsed or after it."""
    canvas = kit.open_canvas(qtbot, network())
    document, items = canvas.context.document, canvas.projection
    usual = items["conv"].zValue()
    canvas.context.select(("conv",))
    assert items["conv"].zValue() > usual
    document.do(lambda g: frames.collapse(g, [], ["f"], items.members))
    canvas.context.select(("conv",))
    document.undo()
    canvas.context.select(("free",))
    assert items["conv"].zValue() == usual
    assert not items["conv"].isSelected()


def test_instances_without_a_template_are_not_counted_as_instances_of_one(qtbot):
    canvas = kit.open_canvas(qtbot, network())
    document, items = canvas.context.document, canvas.projection
    for name in ("one", "two"):
        document.do(lambda g, name=name: commands.add_layer(g, Layer(name, "template", (0, 700))))
    assert [items[name].look.summary for name in ("block", "one", "two")] == ["pair", "", ""]
    document.do(lambda g: commands.set_params(g, {"two": {"template": "pair"}}))
    assert [items[name].look.summary for name in ("block", "one", "two")] == ["pair ×2", "", "pair ×2"]


def test_every_layer_is_measured_in_the_end_also_if_some_are_added_meanwhile(qtbot, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    graph = network()
    for number in range(30):  # far from the view
        graph.apply(commands.add_layer(graph, Layer(f"l{number}", "identity", (300 * number, 9000))))
    canvas = kit.open_canvas(qtbot, graph, (300, 200))
    items, document = canvas.projection, canvas.context.document
    assert not items.measured
    document.do(lambda g: commands.add_layer(g, Layer("one_more", "identity", (0, 12000))))
    assert not items.measured
    qtbot.waitUntil(lambda: not items.busy)
    blocks = [rect for rects in items.collect_far().blocks.values() for rect in rects]
    entries = [items.entry(name) for name in items.layers]
    assert all(entry.layout.block.translated(entry.pos()) in blocks for entry in entries)


def test_all_selected_layers_stay_selected_when_items_far_from_the_view_are_removed(qtbot, monkeypatch):
    for name, value in (("EAGER", 0), ("BUDGET", 2)):
        monkeypatch.setattr(f"app.ui.canvas.projection.{name}", value)
    canvas = kit.open_canvas(qtbot, network(), (300, 200))
    items, viewer = canvas.projection, canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    chosen = ("conv", "free", "cat", "out")
    canvas.context.select(chosen)
    viewer.go(QPointF(9000, 9000))
    items._trimming.stop()
    items._trim()
    assert {item.layer for item in viewer.selected_items()} == set(chosen)
    assert "places" not in {item.layer for item in viewer.layer_items()}


def test_two_layers_that_are_renamed_in_one_step_keep_their_items_through_undo(qtbot):
    canvas = kit.open_canvas(qtbot, network())
    document, items = canvas.context.document, canvas.projection
    before = [items["conv"], items["cat"]]
    with document.group("Rename two"):
        for old, new in (("conv", "first"), ("cat", "second")):
            document.do(lambda g, old=old, new=new: commands.rename_layer(g, old, new))
    for names, step in ((("first", "second"), document.undo), (("conv", "cat"), document.redo)):
        assert [items[name] for name in names] == before
        kit.check(canvas, document)
        step()
    assert [items[name] for name in ("first", "second")] == before
    kit.check(canvas, document)
