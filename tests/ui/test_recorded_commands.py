"""What each command of the canvas does to each kind of selection is recorded as text and compared; each edit is one step of undo."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from effects import Effects
from PySide6.QtCore import QPointF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from recorded_state import compare
from window_kit import show, without_pauses

from app.ui.canvas import layer_clipboard
from app.ui.canvas.actions import ACTIONS
from designer.graph import frames
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.routes import set_route
from designer.graph.template import Template

SIZED = (  # where they put layers or the view depends on the sizes of fonts
    *("edit.align_center", "edit.align_right", "edit.align_middle", "edit.align_bottom"),
    *("edit.distribute_horizontal", "edit.distribute_vertical", "edit.lay_out", "edit.lay_out_all", "edit.frame"),
    *("edit.paste", "edit.paste_linked", "edit.duplicate", "edit.duplicate_linked", "edit.note"),
    *(
        "template.make",
        "template.dissolve",
        "view.frame_all",
        "view.frame_selection",
        "template.enter",
        "template.leave",
    ),
    *("edit.connect_to", "edit.connect_from", "edit.rename", "edit.collapse", "edit.add"),
    *(f"select.{word}" for way in ("left", "right", "up", "down") for word in (way, f"extend_{way}")),
    *("select.next", "select.previous", "select.problem", "select.problem_back"),
)
ANYWAY = (
    "view.heat",
    "view.critical",
    "view.store",
    "view.recall",
    "view.zoom",
    "view.frame_all",
    "select.find",
)  # of any selection
SELECTIONS = {
    "nothing": (),
    "one": ("conv",),
    "two": ("low", "conv"),
    "three": ("conv", "low", "sum"),
    "end": ("out",),
    "instance": ("block_1",),
    "instances": ("block_1", "block_2"),
    "bypassed": ("same",),
    "wrong": ("wrong",),
    "link": ("link", "sum", 1),
    "frame": ("frame", "f"),
    "collapsed": ("frame", "g"),
    "frame and layer": ("low", "frame", "f"),
    "port": ("inside", "p"),
    "inside": ("inside", "i"),
}


def network() -> Graph:
    """Layers of every kind: bypassed, wrong, in templates, in an open and a collapsed frame, with a reroute point."""
    conv = {"features": "3", "kernel": "3x3", "padding": "same"}
    inner = (
        Layer("p", "template_input"),
        Layer("q", "template_input", (0, 160)),
        Layer("i", "element_wise", (320, 0), (Source("p"), Source("q"))),
        Layer("o", "template_output", (640, 0), (Source("i"),)),
    )
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("conv", "convolution", (325, 3), (Source("in"),), conv, ActivationSpec("relu")),
        Layer("low", "identity", (352, 320), (Source("in"),)),
        Layer("same", "convolution", (640, 320), (Source("low"),), conv, None, {"lw:bypassed": "true"}),
        Layer("sum", "element_wise", (960, 0), (Source("conv"), Source("low"))),
        Layer("block_1", "template", (1280, 0), (Source("sum"), Source("in")), {"template": "block"}),
        Layer("block_2", "template", (1600, 0), (Source("block_1"), Source("same")), {"template": "block"}),
        Layer("out", "output", (1920, 0), (Source("block_2"),)),
        Layer("hidden", "identity", (960, 640), (Source("low"),)),
        Layer("wrong", "convolution", (1280, 640), (Source("hidden"),), {**conv, "kernel": "0x0"}),
        Layer("another_wrong", "convolution", (1600, 640), (Source("hidden"),), {**conv, "kernel": "0x0"}),
        Layer("third_wrong", "convolution", (1920, 640), (Source("hidden"),), {**conv, "kernel": "0x0"}),
    ]
    both = (Frame("f", "Open", "Text", "", (288, -64, 272, 208)), Frame("g", "Closed", rect=(928, 576, 272, 208)))
    graph = Graph(layers, frames=both, templates=(Template("block", inner), Template("block_2", inner)))
    graph.apply(set_route(graph, "sum", 1, [(640, 208), (800, 208)]))
    return graph


def select(window, what: tuple) -> None:
    context, canvas = window.context, window.canvas
    inside = what[:1] == ("inside",)
    if bool(context.scope) != inside:
        context.set_scope(()) if context.scope else context.enter("block_1")
    canvas.viewer.select_items([])
    names = tuple(n for n in what if isinstance(n, str) and n in context.document.graph.layers)
    context.select(names)
    if "link" in what:
        canvas.viewer.select_link(canvas.projection.link(*what[-2:]))
    elif "frame" in what:
        canvas.projection.frame(what[-1]).setSelected(True)
        canvas.selection_state_changed.emit()


@pytest.fixture
def window(empty_window):
    window = show(empty_window, network())
    document = window.context.document
    document.do(lambda g: frames.collapse(g, [], ["g"], window.canvas.projection.members))
    assert window.canvas.projection.hides("hidden")
    window.canvas.context = window.context
    window.setUpdatesEnabled(False)  # to paint it took a third of the time
    without_pauses(window)
    return show(window, document.graph.copy())


@pytest.mark.parametrize("kind", SELECTIONS)
def test_what_each_command_does_with_a_selection(window, kind):
    effects = Effects(window)
    what, viewer, root = SELECTIONS[kind], window.canvas.viewer, window.context.root
    layer_clipboard.copy(network(), ["conv"])
    copied = QGuiApplication.clipboard().text()
    viewer.pointer = lambda: QPointF(400, 900)  # where the pointer is depends on the screen
    found: list[str] = []
    disabled: dict[str, list[str]] = {}
    for declared in (declared for group in ACTIONS for declared in group.actions):
        name = declared.id
        if kind != "nothing" and name.startswith(ANYWAY):
            continue
        select(window, what)
        viewer.zoom_by(0.5 / viewer.zoom)
        viewer.go(QPointF(800, 320))
        QApplication.processEvents()
        action = window.actions_[name]
        if not action.isEnabled():
            disabled.setdefault(action.statusTip().partition(" - ")[2], []).append(name)
            continue
        before, clean, saved = root.graph.copy(), root.history.is_clean, dict(root.graph.properties)
        lines = effects.of(action.trigger, sized=name in SIZED)
        found += [f"{name}: {line}" for line in lines or ["nothing"]]
        effects.close()
        scope = window.context.scope
        if root.graph != before and root.graph.properties == saved:
            after = root.graph.copy()
            kit.check(window.canvas, window.context.document)
            window.context.undo()
            assert root.graph == before, f"{name} is one step"
            assert root.history.is_clean is clean
            window.context.redo()
            assert root.graph == after, name
            window.context.undo()
            window.context.set_scope(scope if all(s.template in root.graph.templates for s in scope) else ())
            kit.check(window.canvas, window.context.document)
        for key in root.graph.properties.keys() - saved.keys():
            root.keep(key, None)
        if name.startswith("view.heat"):
            window.actions_["view.heat_none"].trigger()
        QGuiApplication.clipboard().setText(copied)
    found += [f"{reason}: {' '.join(names)}" for reason, names in sorted(disabled.items())]
    compare(f"commands_{kind.replace(' ', '_')}", found)
