"""What commands of the canvas do where layers, links and frames are selected together, some of them hidden, as recorded text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPointF
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from recorded_state import compare

from app.ui.canvas import layer_clipboard
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.structure import Structure
from designer.graph import commands, frames
from designer.graph.arrangement import Side
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.routes import set_route

# layers, links and frames that are selected
SELECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "link and layer": (("b",), ("d",), ()),
    "two links": ((), ("c", "d"), ()),
    "open frame and link": ((), ("d",), ("f",)),
    "two frames": ((), (), ("f", "g")),
    "open frame, a layer in it and one next to it": (("b", "c"), (), ("f",)),
    "collapsed frame and layer": (("b",), (), ("g",)),
    "collapsed frame and what is hidden in it": (("h",), (), ("g",)),
    "collapsed frame, what is hidden in another one, and a link": (("m",), ("d",), ("g",)),
    "hidden and shown": (("h", "b", "c"), (), ()),
    "hidden": (("h",), (), ()),
    "bypassed and not": (("s", "b"), (), ()),
    "frozen and not": (("z", "c"), (), ()),
    "bypassed": (("s",), (), ()),
    "frozen": (("z",), (), ()),
    "first and last": (("a", "e", "c"), (), ()),
    "collapsed and not": (("t", "b"), (), ()),
}
SIZED = ("make a template", "duplicate", "duplicate keeping links", "lay out", "add a frame", "align", "distribute")


def network() -> Graph:
    conv = {"features": "3", "kernel": "3x3", "padding": "same"}
    layers = [
        Layer("a", "input", (0, 0), params={"dims": "16x16x3"}),
        Layer("b", "identity", (320, 16), (Source("a"),)),
        Layer("c", "convolution", (640, 0), (Source("b"),), conv),
        Layer("d", "element_wise", (960, 0), (Source("c"), Source("b"))),
        Layer("e", "output", (1280, 0), (Source("d"),)),
        Layer("s", "convolution", (320, 320), (Source("a"),), conv, None, {"lw:bypassed": "true"}),
        Layer("z", "convolution", (640, 320), (Source("s"),), conv, None, {"lw:frozen": "true"}),
        Layer("t", "identity", (960, 320), (Source("z"),), attributes={"lw:collapsed": "true"}),
        Layer("h", "identity", (320, 640), (Source("a"),)),
        Layer("m", "identity", (960, 640), (Source("h"),)),
    ]
    boxes = (
        Frame("f", "Open", "Text", "", (600, -80, 272, 240)),
        Frame("g", "Closed", rect=(288, 592, 272, 208)),
        Frame("k", "Other", rect=(928, 592, 272, 208)),
    )
    graph = Graph(layers, frames=boxes)
    graph.apply(set_route(graph, "d", 0, [(900, 208)]))
    return graph


class Bench:
    """A canvas on which a command is done to each selection, and undone."""

    def __init__(self, qtbot: QtBot) -> None:
        self.canvas = kit.open_canvas(qtbot, network())
        self.context = self.canvas.context
        self.structure = Structure(self.context, self.canvas)
        projection, document = self.canvas.projection, self.context.document
        document.do(lambda g: frames.collapse(g, [], ["g", "k"], projection.members))
        assert projection.hides("h")
        assert projection.hides("m")
        document.history.mark_clean()
        self.canvas.viewer.pointer = lambda: QPointF(600, 1200)
        self.searched: list[str] = []
        self.canvas.open_search = self._search
        document.refused.connect(lambda found: self.canvas.messages.append(("refused", found[0].message)))

    def _search(self, place: QPointF, join: Callable[..., object] | None, accepts: object = None) -> None:
        self.searched.append(f"search {'' if join is None else join.__qualname__.removeprefix('Canvas.')}")

    def select(self, layers: tuple[str, ...], links: tuple[str, ...], boxes: tuple[str, ...]) -> None:
        canvas = self.canvas
        canvas.viewer.select_items([])
        self.context.select(())
        self.context.select(layers)
        for name in links:
            link = canvas.projection.link(name, 0)
            assert link is not None
            link.setSelected(True)
        for key in boxes:
            frame = canvas.projection.frame(key)
            assert frame is not None
            frame.setSelected(True)
        canvas.selection_state_changed.emit()

    def state(self, *, sized: bool = False) -> dict[str, str]:
        """With `sized`, without what depends on the sizes of fonts."""
        canvas, graph = self.canvas, self.context.document.graph
        found = {}
        for layer in graph:
            parts = (layer.type, "" if sized else layer.position, " ".join(map(str, layer.inputs)), dict(layer.params))
            found[f"layer {layer.name}"] = " | ".join(map(str, (*parts, dict(layer.attributes))))
        for frame in graph.frames.values():
            rect = "" if sized else frame.rect
            found[f"frame {frame.title}"] = f"{frame.text} | {rect} | {frame.collapsed} | {frame.folded}"
        for template in graph.templates.values():
            found[f"template {template.name}"] = " ".join(sorted(layer.name for layer in template.layers))
        found["selection"] = " ".join(sorted(self.context.selection))
        found["selected links"] = " ".join(sorted(link.key[0] for link in canvas.viewer.selected_links()))
        found["selected frames"] = " ".join(sorted(item.frame.title for item in canvas.viewer.selected_frames()))
        editors = canvas.viewer.viewport().findChildren(InlineEditor)
        found["editor"] = " ".join(repr(e.field.toPlainText()) for e in editors if e.isVisible())
        found["undo"] = str(self.context.document.history.undo_title)
        copied = layer_clipboard.pasted().layers if QGuiApplication.clipboard().text() else ()
        found["clipboard"] = " ".join(sorted(copied))
        return found

    def lines(self, name: str, act: Callable[[], object]) -> list[str]:
        """What a command changes; the network is as before afterwards."""
        QGuiApplication.clipboard().clear()
        self.canvas.messages.clear()
        self.searched.clear()
        document, sized = self.context.document, name in SIZED
        before, saved = self.state(sized=sized), document.graph.copy()
        act()
        after = self.state(sized=sized)
        found = []
        for place in sorted(before | after):
            old, new = before.get(place, "none"), after.get(place, "none")
            if old != new:
                found.append(
                    f"{place}: {'gone' if place not in after else new if place not in before else f'{old} -> {new}'}"
                )
        found += [f"{severity}: {text}" for severity, text in self.canvas.messages] + self.searched
        for editor in self.canvas.viewer.viewport().findChildren(InlineEditor):
            editor.discard()
        if document.graph != saved:
            document.undo()
            assert document.graph == saved, f"{name} is one step"
        return found

    def commands(self) -> dict[str, Callable[[], object]]:
        canvas, routes = self.canvas, self.canvas.routes
        return {
            "delete": canvas.delete_selection,
            "delete and heal": partial(canvas.delete_selection, heal=True),
            "cut": canvas.cut_selection,
            "copy": canvas.copy_selection,
            "duplicate": canvas.duplicate_selection,
            "duplicate keeping links": partial(canvas.duplicate_selection, keep_links=True),
            "rename": canvas.rename_selection,
            "bypass": canvas.bypass_selection,
            "freeze": canvas.freeze_selection,
            "align": partial(canvas.align, Side.BOTTOM),
            "distribute": partial(canvas.distribute, vertical=False),
            "lay out": canvas.arrange,
            "add a frame": canvas.add_frame,
            "collapse": self.structure.collapse,
            "make a template": partial(self.structure._make, "made"),
            "add an operator": canvas.quick_add,
            "add a point": routes.add,
            "remove a point": routes.remove,
            "straighten": routes.straighten,
            "all": canvas.select_all,
        }


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    return Bench(qtbot)


def test_commands_with_layers_links_and_frames_selected_together(bench: Bench) -> None:
    found: list[str] = []
    for what, selected in SELECTIONS.items():
        found += ["", f"# {what}"]
        idle = []
        for name, act in bench.commands().items():
            bench.select(*selected)
            lines = bench.lines(name, act)
            found += [f"{name}: {line}" for line in lines]
            if not lines:
                idle.append(name)
        found.append(f"nothing: {', '.join(idle)}")
    kit.check_indexes(bench.canvas)
    compare("canvas_mixed_selections", found)


def test_frames_stay_if_the_layers_selected_with_them_cannot_be_deleted(bench: Bench, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DiagnosticError((Diagnostic("needed", "it is needed"),))

    with monkeypatch.context() as patch:
        patch.setattr(commands, "delete", refuse)
        for selected in ((("b",), (), ("f",)), ((), ("d",), ("g", "f")), (("b",), ("d",), ())):
            bench.select(*selected)
            assert bench.lines("delete", bench.canvas.delete_selection) == ["refused: it is needed"]
            assert bench.lines("cut", bench.canvas.cut_selection)[-1] == "refused: it is needed"
    bench.select((), (), ("f",))
    assert "frame Open: gone" in bench.lines("delete", bench.canvas.delete_selection)


def test_what_space_and_a_note_do_depends_on_the_pointer_first_and_then_on_the_selection(
    bench: Bench, monkeypatch
) -> None:
    canvas, viewer = bench.canvas, bench.canvas.viewer
    viewer.zoom_by(1 / viewer.zoom)
    viewer.go(QPointF(640, 100))
    link = canvas.projection.link("e", 0)
    assert link is not None
    on_link = link.path().pointAtPercent(0.5)
    notes: list[QPointF] = []
    monkeypatch.setattr(
        canvas, "_rect_at", lambda center, width, height: notes.append(center) or (0, 2000, width, height)
    )
    searched: list[tuple[QPointF, str]] = []
    canvas.open_search = lambda place, join, accepts=None: searched.append(
        (place, "" if join is None else join.__qualname__)
    )
    center = viewer.visible_center()
    last = canvas.projection["c"]
    inserted, reading = "Canvas._insert.<locals>.join", "Canvas._reading.<locals>.join"
    for place, layers, at, join in (
        (None, (), center, ""),
        (None, ("b", "c"), canvas._beside(last), reading),
        (None, ("b", "h", "c", "m"), canvas._beside(last), reading),
        (QPointF(700, 420), (), QPointF(700, 420), ""),
        (QPointF(700, 420), ("b", "c"), canvas._beside(last), reading),
        (QPointF(700, 420), ("h",), QPointF(700, 420), ""),
        (on_link, (), None, inserted),
        (on_link, ("b", "c"), None, inserted),
    ):
        viewer.pointer = lambda place=place: place
        bench.select(layers, (), ())
        viewer.go(QPointF(640, 100))
        searched.clear()
        canvas.quick_add()
        ((found, how),) = searched
        assert how == join, (place, layers)
        if at is not None:
            assert found == at, (place, layers)
        else:
            assert (found - on_link).manhattanLength() < 8
        viewer.go(QPointF(640, 100))
        notes.clear()
        canvas.add_note()
        assert notes == [place if place is not None else center]
        for editor in viewer.viewport().findChildren(InlineEditor):
            editor.discard()
        bench.context.document.undo()


def test_actions_follow_when_all_of_a_network_that_is_hidden_is_selected(bench: Bench) -> None:
    """Only collapsed frames are selected then, and the selection of layers stays empty."""
    canvas, document = bench.canvas, bench.context.document
    document.do(
        lambda g: commands.remove_layers(g, [n for n in g.layers if not canvas.projection.hides(n)], heal=False)
    )
    told: list[list[str]] = []
    bench.select((), (), ())
    canvas.selection_state_changed.connect(
        lambda: told.append(sorted(item.frame.title for item in canvas.viewer.selected_frames()))
    )
    canvas.select_all()
    assert bench.context.selection == ()
    assert told[-1] == ["Closed", "Other"]
    assert canvas.has_selection
