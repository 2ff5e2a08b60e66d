"""The analysis while a template is shown: layers inside are inspected by their path, edits inside are run."""

from __future__ import annotations

import analysis_kit as kit
import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import template_networks

import samples
from app.engine.protocol import RunStep
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.requests import runnable
from app.ui.engine.result import AnalysisResult
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from designer.files.document import read_document
from designer.graph import commands
from designer.graph.template_commands import edit_template, rename_template
from designer.operators.registry import default_registry


@pytest.fixture
def launched(qtbot, engine):
    bench = kit.Launched(qtbot, engine)
    graph = read_document(samples.path("residual_blocks.xml")).graph
    graph.apply(commands.set_params(graph, {"input_image": {"dims": "24x16x3"}}))
    bench.open(graph)
    bench.launch_random()
    yield bench
    bench.context.deleteLater()


def test_a_layer_inside_is_inspected_and_follows_edits_inside(qtbot, launched):
    context, analysis = launched.context, analysis_of(launched.context)
    panel = ChannelInspectorPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    path = "group_1.block_1.conv_1"

    def shape():
        found = analysis.result.captures.get(path) if analysis.result is not None else None
        return found.shape if found is not None else None

    context.enter("group_1")
    context.enter("block_1")
    context.inspect_requested.emit(context.path_of("conv_1"))
    qtbot.waitUntil(lambda: shape() is not None, timeout=kit.WAIT)
    assert shape()[1] == 32
    before = np.array(analysis.result.captures[path])
    edit = commands.set_params(context.document.graph, {"conv_1": {"kernel": "1x1"}})
    assert context.document.do(edit)
    qtbot.waitUntil(
        lambda: shape() is not None and not np.array_equal(analysis.result.captures[path], before), timeout=kit.WAIT
    )
    context.root.undo()
    qtbot.waitUntil(
        lambda: shape() is not None and np.array_equal(analysis.result.captures[path], before), timeout=kit.WAIT
    )
    assert context.scope[-1].instance == "block_1"


def test_an_edit_inside_reconfigures_the_instances(launched):
    context = launched.context
    changes = []
    context.root.changed.connect(changes.append)
    context.enter("residual_block")
    context.document.do(commands.set_params(context.document.graph, {"conv_1": {"kernel": "5x5"}}))
    assert changes[-1].reconfigured == {"group_1", "group_2"}


def test_the_inspected_layer_inside_follows_renames_and_goes_with_what_it_is_in(qtbot):
    context = Context(default_registry())
    graph = read_document(samples.path("residual_blocks.xml")).graph
    context.set_document(Document(graph, context.registry))
    analysis, root, path = analysis_of(context), context.root, "group_1.block_1.conv_1"
    panel = ChannelInspectorPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    context.inspect_requested.emit(path)
    assert runnable(root, [path, "group_1.block_1.gone", "gone.conv_1", "group_1"]) == [path, "group_1"]
    assert root.do(lambda g: commands.rename_layer(g, "group_1", "front"))
    assert (panel.source, analysis.capture) == ("front.block_1.conv_1",) * 2
    context.enter("residual_block")
    assert context.document.do(lambda g: commands.rename_layer(g, "conv_1", "first"))
    assert (panel.source, analysis.capture) == ("front.block_1.first",) * 2
    assert root.do(lambda g: rename_template(g, "residual_block", "block"))
    assert root.undo()
    assert root.undo()
    assert (panel.source, analysis.capture) == ("front.block_1.conv_1",) * 2
    assert context.document.do(lambda g: commands.remove_layers(g, ["conv_1"], heal=True))
    assert (panel.source, panel.page) == ("", None)
    assert root.undo()
    context.inspect_requested.emit("front.block_1.conv_1")
    assert root.do(lambda g: commands.remove_layers(g, ["front"], heal=True))
    assert (panel.source, panel.page) == ("", None)
    context.deleteLater()


def test_the_inspected_layer_inside_of_a_template_keeps_its_path_through_edits(qtbot, qapp):
    """Its own name, that of an instance around it and that of the template change; then it, or an instance around it, is gone."""
    context = Context(default_registry())
    root = Document(template_networks.nested(), context.registry, parent=context)
    context.set_document(root)
    panel = ChannelInspectorPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    heard = []
    context.inspected.connect(heard.append)

    def inside(template, edit):
        return lambda graph: edit_template(graph, template, edit(graph.inside(template)))

    edits = (
        (inside("residual", lambda g: commands.rename_layer(g, "conv_1", "first")), "c.r.first"),
        (inside("residual", lambda g: commands.rename_layer(g, "conv_2", "second")), "c.r.conv_1"),
        (lambda g: rename_template(g, "residual", "other"), "c.r.conv_1"),
        (lambda g: commands.rename_layer(g, "c", "group"), "group.r.conv_1"),
        (lambda g: commands.rename_layer(g, "a", "conv_1"), "c.r.conv_1"),
        (inside("residual", lambda g: commands.remove_layers(g, ["conv_1"])), ""),
        (inside("residual", lambda g: commands.remove_layers(g, ["conv_2"])), "c.r.conv_1"),
        (lambda g: commands.remove_layers(g, ["c"]), ""),
        (lambda g: commands.remove_layers(g, ["a", "b"]), "c.r.conv_1"),
    )
    for edit, after in edits:
        panel.inspect("c.r.conv_1")
        heard.clear()
        assert root.do(edit)
        assert (panel.source, panel.subjects.layer.currentText()) == (after, after)
        assert heard == ([after] if after != "c.r.conv_1" else [])
        root.undo()
        assert panel.source == ("c.r.conv_1" if after else "")


def test_each_document_keeps_what_was_inspected_last_in_it(qtbot, qapp):
    context = Context(default_registry())
    documents = [Document(template_networks.nested(), context.registry, parent=context) for _ in range(2)]
    context.set_document(documents[0])
    panel = ChannelInspectorPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    last = ["", ""]
    for number, layer in ((0, "head"), (1, "a.conv_1"), (0, "c.r.conv_2"), (1, "head"), (0, "b"), (1, "out")):
        context.set_document(documents[number])
        assert (panel.source, panel.subjects.layer.currentText()) == (last[number], last[number])
        panel.inspect(layer)
        last[number] = layer
    documents[0].do(lambda graph: commands.remove_layers(graph, ["b"]))
    context.set_document(documents[0])
    assert panel.source == ""


def test_the_overview_marks_the_step_of_a_layer_that_is_selected_inside(qtbot, qapp):
    context = Context(default_registry())
    context.set_document(Document(template_networks.nested(), context.registry, parent=context))
    panel, analysis = NetworkOverviewPanel(context), analysis_of(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    paths = ("head", "a.conv_1", "c.r.conv_1", "c.r2.conv_1", "out")
    analysis.result = AnalysisResult(steps=tuple(RunStep((path,), "numpy", 1.0) for path in paths))
    analysis.result_changed.emit()
    for scope, name in (((), "head"), (("c", "r"), "conv_1"), (("c", "r2"), "conv_1"), (("a",), "conv_1"), ((), "out")):
        context.set_scope(())
        for instance in scope:
            context.enter(instance)
        context.select((name,))
        assert panel.model.layer_at(panel.tree.currentIndex()) == ".".join((*scope, name))
