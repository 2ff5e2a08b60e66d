"""After any edits, a canvas shows what a new canvas shows of the same network: nothing of what was before is left, nothing is missing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainterPath

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.layout_boxes import arranged
from designer.graph import commands, frames, routes, template_commands
from designer.graph.bypass import bypass
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import INPUT, INSTANCE, Template
from designer.graph.template_commands import new_instance, new_port

STEPS, EVERY = 60, 6
KINDS = ("convolution", "concatenation", "pooling", "element_wise", "output", "mystery", "l1_loss", "lstm")


def network() -> Graph:
    """Two branches, a template that is used twice, a loss, a frame and layers in the way of links."""
    conv = {"features": "8", "kernel": "3x3", "padding": "same"}
    inner = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("inner", "convolution", (320, 0), (Source("x"),), conv),
        Layer("y", "template_output", (640, 0), (Source("inner"),), {"index": "0"}),
    )
    return Graph(
        [
            Layer("image", "input", params={"dims": "64x48x3"}),
            Layer("conv", "convolution", (320, 0), (Source("image"),), conv, ActivationSpec("relu")),
            Layer("one", INSTANCE, (640, 0), (Source("conv"),), {"template": "block"}),
            Layer("two", INSTANCE, (960, 0), (Source("one"),), {"template": "block"}),
            Layer("cat", "concatenation", (1280, 0), (Source("two"), Source("conv"), Source("image"))),
            Layer("out", "output", (1600, 0), (Source("cat"),)),
            Layer("target", "input", (1280, 320), params={"dims": "64x48x19"}),
            Layer("loss", "l1_loss", (1600, 320), (Source("cat"), Source("target"))),
            Layer("loose", "convolution", (640, 320), (), conv),
        ],
        name="network",
        frames=[Frame("f", "Encoder", "text", "", (272, -64, 608, 160))],
        templates=[Template("block", inner)],
    )


def lines_of(path: QPainterPath) -> list[tuple[float, float]]:
    return [(round(path.elementAt(n).x, 3), round(path.elementAt(n).y, 3)) for n in range(path.elementCount())]


def shown(canvas: Canvas) -> dict[str, object]:
    """Everything that a canvas shows and knows of its network."""
    items, found = canvas.projection, dict[str, object]()
    far = items.collect_far()
    while not items.collect_blocks():
        pass
    for name in items.layers:
        item, entry = items[name], items.entry(name)
        found[f"{name} look"] = item.look
        found[f"{name} place"] = (item.pos().toTuple(), item.layout, item.isVisible(), item.toolTip())
        found[f"{name} index"] = (entry.look, entry.bounds(), entry.folded.frame.id if entry.folded is not None else "")
        for kind, dots in (("input", item.inputs), ("output", item.outputs)):
            found[f"{name} {kind}s"] = [
                (dot.look, dot.pos().toTuple(), dot.toolTip(), dot.grayed, len(dot.links), dot.carried())
                for dot in dots
            ]
    for edge in list(items.links):
        link = items.link(*edge.key)
        straight = QPainterPath()
        if link is not None:
            link.add_lines(straight)
        found[f"link {edge.key}"] = (edge.source, items.ends(edge)) if link is None else (
            edge.source, items.ends(edge), link.key, link.label, link.label_fits, link.isVisible(), lines_of(link.path()), lines_of(straight)
        )  # fmt: skip
    for item in canvas.viewer.scene().items():
        if hasattr(item, "grip"):
            what = (item.frame, item.seen.getRect(), item.toolTip(), sorted(item.members), item.isVisible())
            found[f"frame {item.frame.id}"] = what
    found["extent"] = items.extent().getRect()
    found["shut"] = sorted(item.frame.id for item in items.collapsed_frames)
    for left in range(-400, 2400, 400):
        area = QRectF(left, -200, 500, 420)
        found[f"within {left}"] = sorted(items.within(area))
    found["blocks"] = sorted((kind.value, rect.getRect()) for kind, rects in far.blocks.items() for rect in rects)
    found["ghosts"] = sorted((kind.value, rect.getRect()) for kind, rects in far.ghosts.items() for rect in rects)
    found["problems"] = sorted((rect.getRect(), problem) for rect, problem in far.problems)
    found["training"] = sorted(rect.getRect() for rect in far.training)
    found["far links"] = sorted(lines_of(far.links))
    found["hint"] = canvas._hint.isHidden()
    return found


def check_areas(canvas: Canvas) -> None:
    """Every link is found wherever it is painted."""
    items = canvas.projection
    for edge in list(items.links):
        link = items.link(*edge.key)
        for share in range(11) if link is not None and link.isVisible() else ():
            place = link.path().pointAtPercent(share / 10)
            assert edge in items._edges.near(QRectF(place.x() - 1, place.y() - 1, 2, 2)), edge.key


def edits(dice: Random, canvas: Canvas) -> dict[str, Callable[[Graph], Edit]]:
    """One of each kind of edit, for layers at random."""
    document = canvas.context.document
    graph, members = document.graph, canvas.projection.members
    names, ids = list(graph.layers), list(graph.frames)
    one, two = dice.choice(names), dice.choice(names)
    place = (16 * dice.randrange(-40, 160), 16 * dice.randrange(-10, 30))
    number = dice.randrange(1000)
    some = dice.sample(names, min(len(names), dice.randrange(1, 4)))
    made = {
        "add": lambda g: commands.add_layer(g, Layer(f"new_{number}", dice.choice(KINDS), place)),
        "remove": lambda g: commands.remove_layers(g, [one], heal=number % 2 == 1),
        "connect": lambda g: commands.connect(g, Source(one), two, number % 2),
        "cut": lambda g: commands.disconnect(g, one, 0, close_gap=number % 2 == 1),
        "rename": lambda g: commands.rename_layer(g, one, f"renamed_{number}"),
        "move": lambda g: commands.move_layers(g, {one: place}),
        "move several": lambda g: commands.move_layers(g, {name: (place[0], 96 * n) for n, name in enumerate(some)}),
        "set features": lambda g: commands.set_params(g, {one: {"features": str(1 + number)}}),
        "set the size": lambda g: commands.set_params(g, {one: {"dims": f"{8 * (1 + number % 9)}x48x3"}}),
        "attach": lambda g: commands.set_activation(g, [one], ActivationSpec("relu") if number % 3 else None),
        "paste": lambda g: commands.paste(g, [g[one]], keep_links=True),
        "collapse": lambda g: frames.collapse(g, some, [], members),
        "bypass": lambda g: bypass(g, document.inference, [one]),
        "freeze": lambda g: freeze(g, [one]),
        "bend": lambda g: routes.set_route(g, one, 0, [place, (place[0] + 160, place[1])], "Bend"),
        "lay out": lambda g: arranged(document, canvas.projection, some if number % 2 else None),
        "frame": lambda g: frames.add_frame(g, (*place, 480, 320), f"frame {number}"),
        "instance": lambda g: commands.add_layer(g, new_instance(g, dice.choice(list(g.templates)), place)),
        "make a template": lambda g: template_commands.make_template(g, some, f"made_{number}"),
        "dissolve": lambda g: template_commands.dissolve(g, one),
        "insert": lambda g: commands.insert_on_link(g, Layer(f"new_{number}", "convolution", place), one, 0),
    }
    if ids:
        chosen = dice.choice(ids)
        made |= {
            "collapse a frame": lambda g: frames.collapse(g, [], [chosen], members),
            "move a frame": lambda g: frames.move_frame(g, chosen, (*place, 400, 240), {}, []),
            "write in a frame": lambda g: frames.write_frame(g, chosen, f"title {number}\ntext"),
            "remove a frame": lambda g: frames.remove_frames(g, [chosen]),
        }
    return made


def inside(graph: Graph, template: str, what: str, number: int) -> Edit:
    """An edit of a template, as an edit of the network around it."""
    inner = graph.inside(template)
    if what == "add":
        edit = commands.add_layer(inner, Layer(f"in_{number}", "convolution", (16 * number, 160)))
    elif what == "add a port":
        edit = commands.add_layer(inner, new_port(inner, INPUT, (0, 16 * number), {}))
    else:
        ports = graph.templates[template].inputs
        edit = commands.rename_layer(inner, ports[0], f"port_{number}") if ports else Edit("Nothing")
    return template_commands.edit_template(graph, template, edit)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_canvas_after_edits_is_like_a_new_one(qtbot, monkeypatch, seed, lazy):
    """`lazy`: items are made when they are needed, as in a large network; the comparison makes all, so it is at the end."""
    if lazy:
        for name, value in (("EAGER", 0), ("BUDGET", 8), ("FEW", 2)):
            monkeypatch.setattr(f"app.ui.canvas.projection.{name}", value)
    dice = Random(seed)
    canvas = kit.open_canvas(qtbot, network())
    context, log = canvas.context, []
    for step in range(1, STEPS + 1):
        document = context.document
        chosen = edits(dice, canvas)
        name = dice.choice([*chosen, "undo", "undo", "redo", "enter", "leave", "inside"])
        if name == "undo":
            document.undo()
        elif name == "redo":
            document.redo()
        elif name == "leave":
            context.leave()
        elif name == "enter":
            instances = [layer.name for layer in document.graph if layer.type == INSTANCE]
            if instances:
                context.enter(dice.choice(instances))
        elif name == "inside":
            if len(document.graph) > 3 and context.root.graph.templates:
                template = dice.choice(sorted(context.root.graph.templates))
                what = dice.choice(("add", "add a port", "rename a port"))
                context.root.do(partial(inside, template=template, what=what, number=step))
        else:
            with suppress(DiagnosticError, KeyError):  # not every edit is possible
                document.do(chosen[name])
        log.append(name)
        if step % (STEPS if lazy else EVERY):
            continue
        fresh = kit.open_canvas(qtbot, context.root.graph.copy())
        assert fresh.context.set_scope(context.scope)
        qtbot.waitUntil(lambda fresh=fresh: not (canvas.projection.busy or fresh.projection.busy))
        wanted, found = shown(fresh), shown(canvas)
        if lazy:  # from afar, links without items are straight
            del wanted["far links"], found["far links"]
        wrong = [
            f"{place}: {found.get(place)} is {wanted.get(place)}"
            for place in found | wanted
            if found.get(place) != wanted.get(place)
        ]
        assert not wrong, f"after {log}:\n" + "\n".join(wrong[:6])
        check_areas(canvas)
        fresh.close()
