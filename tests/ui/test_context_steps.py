"""Ways through templates: what is shown and selected after every step, and after undo wherever one is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView
from app.ui.engine.context import Context
from designer.graph import commands
from designer.graph.edits import Edit
from designer.graph.frames import set_frame
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.graph.template_commands import edit_template, rename_template
from designer.operators.registry import default_registry

CONV = {"features": "4"}


def network() -> Graph:
    """Two instances of `outer`, in which there are two of `middle`, with one of `inner` each."""

    def template(name: str, *layers: Layer) -> Template:
        last = layers[-1].name if layers else "x"
        return Template(
            name, (Layer("x", "template_input"), *layers, Layer("y", "template_output", (960, 0), (Source(last),)))
        )

    return Graph(
        [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("a", INSTANCE, (320, 0), (Source("image"),), {"template": "outer"}),
            Layer("b", INSTANCE, (640, 0), (Source("a"),), {"template": "outer"}),
            Layer("result", "output", (960, 0), (Source("b"),)),
        ],
        templates=[
            template("inner", Layer("conv", "convolution", (320, 0), (Source("x"),), CONV)),
            template("middle", Layer("deep", INSTANCE, (320, 0), (Source("x"),), {"template": "inner"})),
            template(
                "outer",
                Layer("m1", INSTANCE, (320, 0), (Source("x"),), {"template": "middle"}),
                Layer("m2", INSTANCE, (640, 0), (Source("m1"),), {"template": "middle"}),
            ),
        ],
    )


class Walk:
    """A context, and what it said since: `shown` documents and selections."""

    def __init__(self) -> None:
        self.context = Context(default_registry())
        self.context.set_document(Document(network(), self.context.registry, parent=self.context))
        self.said: list[str] = []
        self.context.document_changed.connect(lambda _: self.said.append("shown"))
        self.context.selection_changed.connect(lambda names: self.said.append(f"selected {' '.join(names)}".strip()))
        self.context.message.connect(lambda level, text: self.said.append(f"{level}: {text}"))

    def heard(self) -> list[str]:
        said, self.said = self.said, []
        return said

    def place(self) -> str:
        """Where one is: names of instances, or of a template that no instance led to."""
        return "/".join(step.instance or f":{step.template}" for step in self.context.scope)

    def go(self, *names: str) -> None:
        self.context.set_scope(())
        for name in names:
            assert self.context.enter(name)
        self.said.clear()


@pytest.fixture
def walk(qtbot: QtBot) -> Walk:
    return Walk()


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_the_instance_that_one_comes_from_is_selected(walk: Walk, levels: int) -> None:
    """That in the level that is shown then, however many are left at once."""
    context = walk.context
    walk.go("b", "m2", "deep")
    context.select(("conv",))
    walk.said.clear()
    assert context.set_scope(context.scope[:levels])
    assert context.selection == (("b", "m2", "deep")[levels],)
    assert walk.heard() == ["shown", f"selected {context.selection[0]}"]
    assert walk.place() == "/".join(("b", "m2", "deep")[:levels])
    assert context.set_scope(context.scope)
    assert walk.heard() == [], "one is there already"


def test_another_branch_is_entered_with_nothing_selected(walk: Walk) -> None:
    context = walk.context
    walk.go("b", "m2", "deep")
    kept = context._views[0]
    assert context.set_scope((ScopeStep("b", "outer"), ScopeStep("m1", "middle")))
    assert walk.place() == "b/m1"
    assert context._views[0] is kept, "the level that both share stays open"
    assert walk.heard() == ["shown", "selected"]
    assert not context.set_scope((ScopeStep("b", "outer"), ScopeStep("gone", "middle")))
    assert (walk.place(), walk.heard()) == ("b/m1", [])
    assert not context.set_scope((ScopeStep("b", "middle"),))
    assert walk.place() == "b/m1"
    assert context.set_scope((ScopeStep("", "inner"),))
    assert walk.place() == ":inner"
    assert context.path_of("conv") == ""
    assert context.leave()
    assert (walk.place(), context.selection) == ("", ())
    assert not context.leave()


def test_only_the_views_of_the_shown_way_are_kept(walk: Walk) -> None:
    """Those of a way that leads nowhere, and those that were left, are deleted: each would follow every edit."""
    context = walk.context

    def kept() -> list[TemplateView]:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        return context.findChildren(TemplateView)

    assert context.set_scope((ScopeStep("b", "outer"), ScopeStep("m1", "middle")))
    assert kept() == context._views
    assert not context.set_scope((ScopeStep("a", "outer"), ScopeStep("m1", "middle"), ScopeStep("gone", "inner")))
    assert kept() == context._views
    assert context.set_scope((ScopeStep("b", "outer"), ScopeStep("m2", "middle")))
    assert kept() == context._views
    assert len(context._views) == 2
    assert context.set_scope(())
    assert kept() == []


def test_undo_shows_where_the_step_was(walk: Walk) -> None:
    """One stays where it is seen, leaves templates until it is, or hears in which template it was."""
    context, root = walk.context, walk.context.root

    def inside(template: str, layer: str, **params: str) -> None:
        edit = commands.set_params(root.graph.inside(template), {layer: params})
        assert root.do(lambda g: edit_template(g, template, edit))

    def outside() -> None:
        assert root.do(lambda g: commands.move_layers(g, {"result": (1280, root.history.undo_title is None)}))

    for steps, start, end, said in (
        (lambda: inside("inner", "conv", kernel="5x5"), ("a", "m1", "deep"), "a/m1/deep", []),
        (
            lambda: inside("inner", "conv", kernel="5x5"),
            ("a", "m1"),
            "a/m1",
            ["info: That was in the template 'inner'"],
        ),
        (lambda: inside("inner", "conv", kernel="5x5"), (), "", []),
        (outside, ("a", "m1", "deep"), "", ["shown", "selected a"]),
        (outside, (), "", []),
    ):
        walk.go()
        steps()
        for act in (context.undo, context.redo, context.undo):
            walk.go(*start)
            act()
            assert walk.place() == end
            assert walk.heard() == said
    root.do(
        lambda g: edit_template(g, "outer", commands.move_layers(g.inside("outer"), {"m1": (320, 160)}))
    )  # seen two levels above
    walk.go("a", "m1", "deep")
    context.undo()
    assert walk.place() == "a"
    assert context.selection == ("m1",)


OUTSIDE: dict[str, tuple[Callable[[Graph], Edit], bool]] = {  # and whether it is seen on the canvas
    "added": (lambda g: commands.add_layer(g, Layer("more", "identity")), True),
    "removed": (lambda g: commands.remove_layers(g, ["result"]), True),
    "renamed": (lambda g: commands.rename_layer(g, "result", "end"), True),
    "rewired": (lambda g: commands.connect(g, Source("a"), "result", 0), True),
    "reconfigured": (lambda g: commands.set_params(g, {"image": {"dims": "32x8x3"}}), True),
    "moved": (lambda g: commands.move_layers(g, {"result": (1280, 0)}), True),
    "framed": (lambda g: set_frame(g, "f", Frame("f", "Start", rect=(0, 0, 100, 100))), True),
    "collapsed": (lambda g: commands.collapse_layers(g, ["result"], True), True),
    "settings": (lambda g: Edit("Set", {}, settings={"weights": ("", "/w")}), False),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_undo_leaves_templates_for_every_kind_of_step_that_is_seen_outside(walk: Walk, name: str) -> None:
    make, seen = OUTSIDE[name]
    assert walk.context.root.do(make)
    for act in (walk.context.undo, walk.context.redo):
        walk.go("a", "m1")
        act()
        assert (walk.place(), walk.heard()) == (("", ["shown", "selected a"]) if seen else ("a/m1", []))


def test_the_shortest_way_leads_into_a_template(walk: Walk) -> None:
    context = walk.context
    assert [step.instance for step in context.way_to("outer")] == ["a"]
    assert [step.instance for step in context.way_to("inner")] == ["a", "m1", "deep"]
    context.root.do(lambda g: commands.add_layer(g, Layer("near", INSTANCE, (0, 320), (), {"template": "middle"})))
    assert [step.instance for step in context.way_to("inner")] == ["near", "deep"]
    context.root.do(lambda g: commands.remove_layers(g, ["a", "b", "near"]))
    assert context.way_to("inner") == (ScopeStep("", "inner"),)


def test_names_of_the_engine_are_layers_in_sight_at_every_level(walk: Walk) -> None:
    context = walk.context
    paths = ("a.m1.deep.conv", "a.m2.deep.conv", "b.m1.deep.conv", "b", "image", "gone", "a.m1.gone")
    sight = {
        (): ("a", "a", "b", "b", "image", "", "a"),
        ("a",): ("m1", "m2", "", "", "", "", "m1"),
        ("a", "m1"): ("deep", "", "", "", "", "", ""),
        ("a", "m1", "deep"): ("conv", "", "", "", "", "", ""),
    }
    for names, wanted in sight.items():
        walk.go(*names)
        assert tuple(context.in_sight(path) for path in paths) == wanted
        around = ".".join(names)
        for layer in context.document.graph.layers:
            path = context.path_of(layer)
            assert path == (f"{around}.{layer}" if around else layer)
            assert context.in_sight(path) == layer
            scope, name = context.find(path) or ((), "")
            assert ([step.instance for step in scope], name) == (list(names), layer)
    walk.go("b")
    context.reveal("a.m2.deep.conv")
    assert walk.place() == "a/m2/deep"
    context.reveal("nowhere")
    assert walk.place() == "a/m2/deep"


def after(walk: Walk, edit: Callable[[Graph], Edit], *paths: str) -> list[str]:
    """Where the layers are in the engine after an edit, and where they were after it was taken back."""
    context, changes = walk.context, []
    context.root.changed.connect(changes.append)
    assert context.root.do(edit)
    found = [context.path_after(path, changes[-1]) for path in paths]
    for old, new in zip(paths, found, strict=True):
        assert (not new) or context.find(new) is not None
        back = changes[-1].renamed.keys() | changes[-1].renamed_inside.keys()
        assert back or new in (old, "")
    context.undo()
    returned = [path and context.path_after(path, changes[-1]) for path in found]
    assert returned == [path if new else "" for path, new in zip(paths, found, strict=True)]
    context.root.changed.disconnect(changes.append)
    return found


def test_the_name_in_the_engine_follows_every_edit(walk: Walk) -> None:
    """Renamed layers at any level, a renamed template, layers that are gone, and names that another layer takes."""
    deep, shallow, other = "a.m1.deep.conv", "a.m1", "b.m2.deep.conv"
    paths = (deep, shallow, other, "image", "gone", "a.gone", "image.conv")

    def inside(template: str, make: Callable[[Graph], Edit]) -> Callable[[Graph], Edit]:
        return lambda g: edit_template(g, template, make(g.inside(template)))

    def rename(old: str, new: str) -> Callable[[Graph], Edit]:
        return lambda g: commands.rename_layer(g, old, new)

    nothing = ["", "", ""]
    assert after(walk, rename("a", "front"), *paths) == [
        "front.m1.deep.conv", "front.m1", other, "image", *nothing,
    ]  # fmt: skip
    assert after(walk, rename("image", "photo"), *paths) == [deep, shallow, other, "photo", *nothing]
    assert after(walk, inside("outer", rename("m1", "first")), *paths) == [
        "a.first.deep.conv", "a.first", other, "image", *nothing,
    ]  # fmt: skip
    assert after(walk, inside("middle", rename("deep", "d")), *paths) == [
        "a.m1.d.conv", shallow, "b.m2.d.conv", "image", *nothing,
    ]  # fmt: skip
    assert after(walk, inside("inner", rename("conv", "a")), *paths) == [
        "a.m1.deep.a", shallow, "b.m2.deep.a", "image", *nothing,
    ]  # fmt: skip
    assert after(walk, lambda g: rename_template(g, "middle", "core"), *paths) == [
        deep,
        shallow,
        other,
        "image",
        *nothing,
    ]
    assert after(walk, lambda g: commands.move_layers(g, {"a": (0, 640)}), *paths) == [
        deep, shallow, other, "image", *nothing,
    ]  # fmt: skip
    context, changes = walk.context, []
    context.root.changed.connect(changes.append)
    context.root.do(lambda g: commands.remove_layers(g, ["a"]))
    assert [context.path_after(path, changes[-1]) for path in paths] == ["", "", other, "image", *nothing]
    context.undo()
    context.root.do(inside("inner", lambda g: commands.remove_layers(g, ["conv"])))
    assert [context.path_after(path, changes[-1]) for path in paths] == ["", shallow, "", "image", *nothing]
    context.undo()

    def renamed_at_once(g: Graph) -> Edit:
        """A template and a layer in it get other names in one step."""
        first = rename_template(g, "inner", "heart")
        copy = g.copy()
        copy.apply(first)
        return first.then(edit_template(copy, "heart", commands.rename_layer(copy.inside("heart"), "conv", "c")))

    assert after(walk, renamed_at_once, deep, other) == ["a.m1.deep.c", "b.m2.deep.c"]
    root = context.root
    root.do(rename("a", "front"))
    assert context.path_after("a", changes[-1]) == "front"
    before = changes[-1]
    root.do(lambda g: commands.add_layer(g, Layer("a", "output")))
    assert context.path_after("front", changes[-1]) == "front"
    assert context.path_after("a", before) == "front", "another layer that has the old name is not followed"


def test_a_file_is_shown_where_it_was_left(walk: Walk) -> None:
    context, first = walk.context, walk.context.root
    second = Document(network(), context.registry, parent=context)
    roots: list[Document] = []
    context.root_changed.connect(lambda root: (roots.append(root), walk.said.append("root")))
    walk.go("a", "m2")
    context.select(("deep",))
    walk.said.clear()
    context.set_document(second)
    assert (walk.place(), context.selection, context.document) == ("", (), second)
    assert walk.heard() == ["root", "shown", "selected"]
    assert context.enter("b")
    context.set_document(first)
    assert (walk.place(), context.selection) == ("a/m2", ())
    context.set_document(second)
    assert walk.place() == "b"
    first.do(lambda g: commands.remove_layers(g, ["a"]))
    assert walk.place() == "b", "an edit of a file that is not shown"
    context.set_document(first)
    assert walk.place() == "", "the way that it was left at leads nowhere now"
    assert roots == [second, first, second, first]


def test_the_selection_and_the_scope_follow_edits(walk: Walk) -> None:
    context, root = walk.context, walk.context.root
    context.select(("b", "image"))
    walk.said.clear()
    root.do(lambda g: commands.rename_layer(g, "b", "back"))
    assert (context.selection, walk.heard()) == (("back", "image"), ["selected back image"])
    root.do(lambda g: commands.remove_layers(g, ["image"]))
    assert (context.selection, walk.heard()) == (("back",), ["selected back"])
    root.do(lambda g: commands.move_layers(g, {"back": (0, 640)}))
    root.do(lambda g: commands.rename_layer(g, "a", "front"))
    assert (context.selection, walk.heard()) == (("back",), [])
    walk.go("back", "m1", "deep")
    context.select(("conv",))
    walk.said.clear()
    root.do(lambda g: commands.rename_layer(g, "back", "b"))
    assert (walk.place(), context.selection, walk.heard()) == ("b/m1/deep", ("conv",), [])
    context.document.do(lambda g: commands.rename_layer(g, "conv", "c"))
    assert (context.selection, walk.heard()) == (("c",), ["selected c"])
    root.do(
        lambda g: edit_template(g, "outer", commands.remove_layers(g.inside("outer"), ["m1"]))
    )  # what is around stays
    assert (walk.place(), context.selection, walk.heard()) == ("b", (), ["shown", "selected"])
    root.do(lambda g: commands.remove_layers(g, ["b"]))
    assert (walk.place(), walk.heard()) == ("", ["shown", "selected"])


def test_a_way_that_leads_nowhere_half_way_changes_nothing(walk: Walk) -> None:
    context = walk.context
    steps = (ScopeStep("b", "outer"), ScopeStep("m1", "middle"), ScopeStep("deep", "inner"))
    for broken in (1, 2):
        way = (*steps[:broken], ScopeStep("gone", "inner"))
        assert not context.set_scope(way)
        assert (walk.place(), walk.heard()) == ("", [])
    assert context.set_scope(steps)
    assert walk.place() == "b/m1/deep"
    for level in ("b/m1", "b", ""):
        assert context.leave()
        assert walk.place() == level
        assert context.selection == ({"b/m1": "deep", "b": "m1", "": "b"}[level],)
    assert not context.leave()


def test_a_layer_that_is_named_like_a_template_does_not_hide_it(walk: Walk) -> None:
    context = walk.context
    context.root.do(lambda g: commands.add_layer(g, Layer("inner", "identity", (0, 640))))
    assert context.enter("inner")
    assert (walk.place(), context.document.graph.get("conv") is not None) == (":inner", True)
    context.set_scope(())
    assert not context.enter("image")
    assert not context.enter("absent")
    assert walk.place() == ""


def test_what_no_document_and_the_inspected_layer_are(walk: Walk) -> None:
    empty = Context(default_registry())
    assert not empty.has_document
    with pytest.raises(RuntimeError, match="no document is open yet"):
        _ = empty.root
    assert walk.context.has_document
    order: list[str] = []
    walk.context.inspected.connect(lambda _: order.append(walk.context.inspected_layer))
    walk.context.inspected.emit("a.m1")
    walk.context.inspected.emit("")
    assert order == ["a.m1", ""]


def test_nothing_is_selected_or_in_sight_while_something_else_is_shown(walk: Walk) -> None:
    context = walk.context
    seen: list[tuple[str, ...]] = []
    context.document_changed.connect(lambda _: seen.append(context.selection))
    context.select(("a",))
    context.enter("a")
    context.select(("m1",))
    context.leave()
    assert (seen, context.selection) == ([(), ()], ("a",))
    assert context.set_scope((ScopeStep("", "inner"),))
    assert (context.in_sight("conv"), context.path_of("conv"), context.paths(("conv", "x"))) == ("", "", ())
