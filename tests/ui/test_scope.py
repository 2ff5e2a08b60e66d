"""The inside of a template as a document: it follows the file, and what it commits is a step of the file's history."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from scope_kit import check_views

import samples
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView, find_layer
from app.ui.engine.context import Context
from designer.files.document import read_document
from designer.graph import commands, template_commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.inlining import inline
from designer.operators.registry import default_registry


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    graph = read_document(samples.path("residual_blocks.xml")).graph
    context.set_document(Document(graph, context.registry, parent=context))
    yield context
    context.deleteLater()


def test_entering_shows_the_layers_with_the_types_that_the_instance_is_fed_with(context):
    assert context.enter("group_1")
    assert context.scope == (ScopeStep("group_1", "residual_group"),)
    assert context.document is not context.root
    block = next(layer.name for layer in context.document.graph if layer.type == "template")
    assert context.enter(block)
    assert context.path_of("conv_1") == f"group_1.{block}.conv_1"
    assert str(context.document.inference.states["conv_1"].outputs[0]) == "N x 32 x 256 x 256"
    assert context.find(f"group_1.{block}.conv_1") == (context.scope, "conv_1")
    check_views(context)
    assert context.leave()
    assert context.selection == (block,)
    assert context.leave()
    assert not context.leave()
    assert context.selection == ("group_1",)


def test_an_edit_inside_is_a_step_of_the_file(context):
    root = context.root
    context.enter("residual_block")
    view = context.document
    assert view.do(lambda g: commands.set_params(g, {"conv_1": {"features": "48"}}))
    assert root.graph.inside("residual_block")["conv_1"].params["features"] == "48"
    assert view.history.undo_title == "Change features of conv_1 in residual_block"
    assert not root.history.is_clean
    check_views(context)
    view.undo()
    assert view.graph["conv_1"].params["features"] != "48"
    assert root.history.is_clean
    check_views(context)


def test_what_happens_outside_reaches_the_types_inside(context):
    context.enter("group_1")
    source = context.root.graph["group_1"].inputs[0].layer
    context.root.do(lambda g: commands.set_params(g, {source: {"features": "16"}}))
    check_views(context)
    context.root.do(lambda g: commands.disconnect(g, "group_1", 0))
    assert "unknown-feed" in {d.code for d in context.document.diagnostics()}
    check_views(context)


def test_names_are_followed_and_what_is_gone_is_left(context):
    context.enter("group_1")
    root = context.root
    root.do(lambda g: template_commands.rename_template(g, "residual_group", "rg"))
    root.do(lambda g: commands.rename_layer(g, "group_1", "first"))
    assert context.scope == (ScopeStep("first", "rg"),)
    check_views(context)
    root.undo()
    root.undo()
    assert context.scope == (ScopeStep("group_1", "residual_group"),)
    root.do(lambda g: commands.remove_layers(g, ["group_1"]))
    assert context.document is root


def test_a_renamed_layer_stays_selected(context):
    context.enter("residual_block")
    context.select(("conv_1",))
    context.document.do(lambda g: commands.rename_layer(g, "conv_1", "front"))
    assert context.selection == ("front",)
    context.document.undo()
    assert context.selection == ("conv_1",)
    check_views(context)


def test_a_rename_outside_leaves_the_selection_inside(context):
    context.root.do(lambda g: commands.rename_layer(g, "conv_head", "conv_1"))
    context.enter("residual_block")
    context.select(("conv_1",))
    context.document.undo()
    assert "conv_head" in context.root.graph
    assert context.selection == ("conv_1",)


def test_a_file_is_shown_where_it_was_left(context):
    first = context.root
    context.enter("group_1")
    second = Document(first.graph.copy(), context.registry, parent=context)
    context.set_document(second)
    assert context.scope == ()
    context.set_document(first)
    assert context.scope == (ScopeStep("group_1", "residual_group"),)
    block = next(layer.name for layer in context.document.graph if layer.type == "template")
    context.enter(block)
    deeper = context.scope
    assert len(deeper) == 2
    for mine, other in ((deeper, ()), (deeper[:1], deeper[:1]), ((), deeper), (deeper, deeper[:1])):
        assert context.set_scope(mine)  # wherever it was left the last time
        context.set_document(second)
        assert context.set_scope(other)
        context.set_document(first)
        assert context.scope == mine
        context.set_document(second)
        assert context.scope == other
        context.set_document(first)


def test_paths_of_the_engine_lead_to_layers_and_back(qtbot, context):
    context.enter("group_1")
    assert context.paths(("block_1",)) == ("group_1.block_1",)
    assert context.in_sight("group_1.block_2.conv_1") == "block_2"
    assert context.in_sight("group_2.block_2.conv_1") == ""
    with qtbot.waitSignal(context.reveal_requested) as asked:
        context.reveal("group_2.block_1.conv_2")
    assert asked.args == ["conv_2"]
    assert context.scope == (ScopeStep("group_2", "residual_group"), ScopeStep("block_1", "residual_block"))
    context.enter("residual_block")
    assert context.paths(("conv_1",)) == ()
    assert context.in_sight("conv_1") == ""
    assert context.find("nobody.conv_1") is None


def test_a_layer_renamed_inside_stays_selected_through_undo_and_redo(context):
    """Two instances of the template: the view of either one follows; the other layers are alike but not mistaken for it."""
    root = context.root
    for instance in ("group_1", "group_2"):
        assert context.enter(instance)
        assert context.enter(next(layer.name for layer in context.document.graph if layer.type == "template"))
        context.select(("conv_1",))
        assert context.document.do(lambda g: commands.rename_layer(g, "conv_1", "first"))
        assert context.selection == ("first",)
        check_views(context)
        context.undo()
        assert context.selection == ("conv_1",)
        context.redo()
        assert context.selection == ("first",)
        context.undo()
        check_views(context)
        context.set_scope(())
    assert "conv_1" in root.graph.inside("residual_block")


def test_a_copy_in_the_place_of_a_removed_layer_is_not_taken_for_it(context):
    context.enter("residual_block")
    view = context.document
    heard = []
    view.changed.connect(lambda change: heard.append(dict(change.renamed)))
    before = view.graph["conv_1"]
    edit = commands.remove_layers(view.graph, ["conv_1"])
    after = view.graph.copy()
    after.apply(edit)
    copy = replace(before, name="other")
    assert view.do(edit.then(commands.add_layer(after, copy)))
    assert heard == [{}]
    check_views(context)


def test_an_instance_renamed_inside_a_template_keeps_the_view_behind_it_open(context):
    context.enter("group_1")
    block = next(layer.name for layer in context.document.graph if layer.type == "template")
    context.enter(block)
    root = context.root
    rename = commands.rename_layer(root.graph.inside("residual_group"), block, "renamed")
    assert root.do(lambda g: template_commands.edit_template(g, "residual_group", rename))
    assert [step.instance for step in context.scope] == ["group_1", "renamed"]
    check_views(context)
    context.root.undo()
    assert [step.instance for step in context.scope] == ["group_1", block]
    check_views(context)


def test_a_renamed_template_is_followed_also_where_another_is_alike(context):
    root = context.root
    inner = root.graph.templates["residual_block"]
    assert root.do(lambda g: template_commands.set_template(g, replace(inner, name="twin")))
    context.enter("residual_block")
    twice = template_commands.rename_template(root.graph, "residual_block", "block")
    after = root.graph.copy()
    after.apply(twice)
    assert root.do(twice.then(template_commands.rename_template(after, "twin", "double")))
    assert context.scope[-1].template == "block"
    root.undo()
    assert context.scope[-1].template == "residual_block"
    root.redo()
    assert context.scope[-1].template == "block"
    check_views(context)


# --- what a view shares with its file --------------------------------------------------------------------------------

HAPPENS = {
    "clean_changed": lambda root, folder: root.do(lambda g: commands.move_layers(g, {"group_1": (16, 16)})),
    "path_changed": lambda root, folder: root.mark_saved(folder / "other.xml"),
    "settings_changed": lambda root, folder: root.change_settings(weights="some.safetensors"),
}


def enter(context, depth: int) -> None:
    for _ in range(depth):
        name = "group_1" if context.document is context.root else None
        name = name or next(layer.name for layer in context.document.graph if layer.type == "template")
        assert context.enter(name)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("signal", HAPPENS)
def test_a_view_reports_what_happens_to_its_file(qtbot, context, tmp_path, signal, depth):
    enter(context, depth)
    with qtbot.waitSignal(getattr(context.document, signal), timeout=0):
        HAPPENS[signal](context.root, tmp_path)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_view_has_the_path_the_settings_and_the_history_of_its_file(context, tmp_path, depth):
    enter(context, depth)
    view, root = context.document, context.root
    view.mark_saved(tmp_path / "saved.xml")
    assert root.path == view.path == tmp_path / "saved.xml"
    assert view.title == root.title == "saved.xml"
    view.change_settings(weights="w.safetensors")
    assert root.settings is view.settings
    assert root.settings.weights == "w.safetensors"
    assert view.history is root.history
    assert not root.history.is_clean
    view.undo()
    assert root.settings.weights == ""
    view.redo()
    assert view.settings.weights == "w.safetensors"
    view.undo()
    view.keep("view.1", "0,0,1")
    assert root.graph.properties["view.1"] == "0,0,1"
    assert view.root is root
    assert view.instances is root.instances
    for name, value in (("path", tmp_path), ("settings", root.settings)):
        with pytest.raises(AttributeError):
            setattr(view, name, value)
    before = root.graph.copy()
    conv = next(layer.name for layer in view.graph if layer.type == "convolution")
    with view.group("Two steps"):
        for features in ("5", "6"):
            assert view.do(lambda g, text=features: commands.set_params(g, {conv: {"features": text}}))
    assert root.history.undo_title == f"Two steps in {view.template}"
    view.undo()
    assert root.graph == before


OUTSIDE = {
    "another input size": lambda g: commands.set_params(g, {"input": {"dims": "48x32x3"}}),
    "other features": lambda g: commands.set_params(g, {"conv_head": {"features": "7"}}),
    "the instance is cut off": lambda g: commands.disconnect(g, "group_1", 0),
    "one more instance": lambda g: commands.paste(g, [g["group_2"]], keep_links=False),
    "an instance less": lambda g: commands.remove_layers(g, ["group_2"]),
    "more uses of every template": lambda g: commands.paste(
        g, [replace(template_commands.new_instance(g, name, (0, 900)), name=f"use_of_{name}") for name in g.templates]
    ),
    "only a loss is left": lambda g: commands.remove_layers(g, [x.name for x in g if x.type == "output"]),
    "the output is removed": lambda g: commands.remove_layers(g, [x.name for x in g if x.type == "output"]),
}


def facts(view) -> dict[str, object]:
    """What depends on the file, by layer."""
    counts = {x.name: view.instances[x.params.get("template", "")] if x.type == "template" else 0 for x in view.graph}
    return {n: (view.inference.states.get(n), n in view.training, counts[n]) for n in view.graph.layers}


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("name", OUTSIDE)
def test_every_layer_whose_state_changes_is_reported(context, name, depth):
    if name == "only a loss is left":  # then all layers are for training
        last = next(layer.inputs[0] for layer in context.root.graph if layer.type == "output")
        loss = Layer("loss", "l1_loss", (0, 900), (last, Source("input")))
        assert context.root.do(lambda g: commands.add_layer(g, loss))
    enter(context, depth)
    view, said = context.document, set()
    view.states_changed.connect(said.update)
    for step in (lambda: context.root.do(OUTSIDE[name]), context.root.undo, context.root.redo):
        before = facts(view)
        said.clear()
        step()
        assert context.document is view
        after = facts(view)
        assert {n for n in after.keys() & before.keys() if after[n] != before[n]} <= said
        if name == "only a loss is left":
            assert {facts[1] for facts in before.values()} != {facts[1] for facts in after.values()}
        if name == "more uses of every template" and depth == 1:
            assert {n for n in before if after[n][2] != before[n][2]}
        check_views(context)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_edit_that_is_refused_changes_nothing_and_says_why(qtbot, context, depth):
    enter(context, depth)
    document, before = context.document, context.root.graph.copy()
    names = [layer.name for layer in document.graph][:2]
    with qtbot.waitSignal(document.refused, timeout=0) as refused:
        assert document.do(lambda g: commands.rename_layer(g, *names)) is False
    assert refused.args[0]
    assert context.root.graph == before
    assert document.do(lambda g: commands.rename_layer(g, names[0], "free_name")) is True
    assert "free_name" in document.graph


def test_an_instance_inside_a_template_is_reported_when_its_own_template_changes(context):
    enter(context, 1)
    view, seen = context.document, []
    inner = next(layer.name for layer in view.graph if layer.type == "template")
    template = view.graph[inner].params["template"]
    view.changed.connect(seen.append)
    conv = next(x.name for x in context.root.graph.inside(template) if x.type == "convolution")
    context.root.do(
        lambda g: template_commands.edit_template(
            g, template, commands.set_params(g.inside(template), {conv: {"bias": "false"}})
        )
    )
    (change,) = seen
    assert inner in change.reconfigured
    seen.clear()
    context.root.do(lambda g: commands.move_layers(g, {"group_1": (16, 16)}))
    assert not any(inner in change.reconfigured for change in seen)


def nested() -> Graph:
    """Instances of a template in another one, with names that contain dots and begin like others."""
    inner = (
        Layer("p", "template_input"),
        Layer("deep.in", "identity", (160, 0), (Source("p"),)),
        Layer("q", "template_output", (320, 0), (Source("deep.in"),)),
    )
    outer = (
        Layer("x", "template_input"),
        Layer("i", "template", (320, 0), (Source("x"),), {"template": "inner"}),
        Layer("i.j", "template", (640, 0), (Source("i"),), {"template": "inner"}),
        Layer("y", "template_output", (960, 0), (Source("i.j"),)),
    )
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("a", "template", (320, 0), (Source("image"),), {"template": "outer"}),
        Layer("a.b", "template", (640, 0), (Source("a"),), {"template": "outer"}),
        Layer("a.b.c", "identity", (960, 0), (Source("a.b"),)),
        Layer("out", "output", (1280, 0), (Source("a.b.c"),)),
        Layer("i", "template", (960, 320), (Source("a.b"),), {"template": "inner"}),
        Layer("loss", "l1_loss", (1280, 320), (Source("i"), Source("image"))),
    ]
    return Graph(layers, templates=[Template("inner", inner), Template("outer", outer)])


@pytest.mark.parametrize(
    ("left", "edit", "found"),
    [
        ("a i", None, "a i"),
        ("a i", lambda g: commands.remove_layers(g, ["a"]), ""),  # also where the whole network has an `i` too
        ("a i", lambda g: commands.remove_layers(g, ["i"]), "a i"),
        ("a i", lambda g: commands.rename_layer(g, "a", "other"), ""),
        (
            "a i",
            lambda g: template_commands.edit_template(g, "outer", commands.remove_layers(g.inside("outer"), ["i"])),
            "a",
        ),
        ("a i", lambda g: commands.set_params(g, {"a": {"template": "inner"}}), ""),
        ("a.b i.j", lambda g: commands.remove_layers(g, ["a"]), "a.b i.j"),
        ("i", lambda g: commands.remove_layers(g, ["a", "a.b"]), "i"),
    ],
)
def test_a_file_that_was_changed_elsewhere_is_shown_as_far_as_it_was_left(context, left, edit, found):
    whole = Document(nested(), context.registry, parent=context)
    other = context.root
    context.set_document(whole)
    for name in left.split():
        assert context.enter(name)
    context.set_document(other)
    if edit is not None:
        assert whole.do(edit)
    context.set_document(whole)
    assert [step.instance for step in context.scope] == found.split()
    assert (context.document is context.root) is not bool(found)


def test_every_path_of_the_engine_leads_to_its_layer():
    graph = nested()
    paths = list(inline(graph, default_registry()).layers)
    assert "a.b.i.j.deep.in" in paths
    for path in paths:
        found = find_layer(graph, path)
        assert found is not None, path
        scope, name = found
        assert ".".join((*(step.instance for step in scope), name)) == path
        inside = graph.inside(scope[-1].template) if scope else graph
        assert name in inside, path


def test_every_path_of_the_engine_is_that_of_one_layer_in_sight_at_every_level(qapp):
    """The layer itself, or the instance around it, also where the names of others begin like theirs."""
    graph = nested()
    context = Context(default_registry())
    context.set_document(Document(graph, context.registry, parent=context))
    ways = {path: find_layer(graph, path) for path in inline(graph, context.registry).layers}
    for scope in sorted({way[:depth] for way, _ in ways.values() for depth in range(len(way) + 1)}):
        assert context.set_scope(scope)
        for path, (way, name) in ways.items():
            steps = (*(step.instance for step in way), name)
            expected = steps[len(scope)] if way[: len(scope)] == scope else ""
            assert context.in_sight(path) == expected, (scope, path)
            assert (context.path_of(expected) == path) is (expected == name and way == scope)
        assert context.in_sight("absent") == ""


@pytest.mark.parametrize("order", list(permutations("ABC")))
def test_the_way_into_a_template_is_the_shortest_one(qapp, order):
    """Through the first instances on it, whatever the order of templates in the network."""

    def template(name: str, *inner: str) -> Template:
        instances = (Layer(f"in_{each}", "template", params={"template": each}) for each in inner)
        return Template(name, (Layer("x", "template_input"), Layer("y", "template_output"), *instances))

    templates = (template("A", "B"), template("B", "T"), template("C", "D", "T"), template("D", "T"))
    layers = [Layer(f"{name.lower()}_{n}", "template", params={"template": name}) for name in order for n in (1, 2)]
    context = Context(default_registry())
    graph = Graph(layers, templates=(*templates, template("T"), template("unused", "alone"), template("alone")))
    context.set_document(Document(graph, context.registry, parent=context))
    expected = {
        "A": (ScopeStep("a_1", "A"),),
        "B": (ScopeStep("b_1", "B"),),
        "D": (ScopeStep("c_1", "C"), ScopeStep("in_D", "D")),
        "T": (ScopeStep("b_1", "B"), ScopeStep("in_T", "T")),
        "alone": (ScopeStep("", "alone"),),
    }
    if order.index("C") < order.index("B"):
        expected["T"] = (ScopeStep("c_1", "C"), ScopeStep("in_T", "T"))
    for name, way in expected.items():
        assert context.way_to(name) == way
        assert context.set_scope(way)
    without = [layer for layer in layers if layer.params["template"] != "B"]
    graph = Graph(without, templates=(*templates, template("T")))
    context.set_document(Document(graph, context.registry, parent=context))
    assert context.way_to("T") == (ScopeStep("c_1", "C"), ScopeStep("in_T", "T"))
    assert context.way_to("B") == (ScopeStep("a_1", "A"), ScopeStep("in_B", "B"))


def test_the_inside_of_an_instance_is_trained_only_where_the_instance_is(qapp):
    """One in the training branch, and one of the same name inside of a template, which is not in it."""
    root = Document(nested(), default_registry())
    trained, outer = (TemplateView(root, ScopeStep(*step)) for step in (("i", "inner"), ("a", "outer")))
    inner = TemplateView(outer, ScopeStep("i", "inner"))
    assert trained.training == frozenset(trained.graph.layers)
    assert not outer.training
    assert not inner.training
    for document in (inner, outer, trained, root):
        document.deleteLater()
