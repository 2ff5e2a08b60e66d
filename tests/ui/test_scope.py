"""The inside of a template as a document: it follows the file, and what it commits is a step of the file's history."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from scope_kit import check_views

import samples
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from app.ui.engine.context import Context
from designer.files.document import read_document
from designer.graph import commands, template_commands
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
