"""Random edits inside and outside of templates, with undo and redo: what is shown is always what would be worked out afresh."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scope_kit import check_views

import samples
from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.files.document import parse_document, read_document, write_document
from designer.graph import commands, frames, template_commands
from designer.graph.bypass import bypass
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Frame, Source
from designer.graph.naming import unique_name
from designer.graph.template import INPUT, OUTPUT
from designer.operators.default_layers import default_layer
from designer.operators.registry import default_registry

TYPES = ("convolution", "identity", "element_wise", "pooling", "template_input", "template_output")


def check(context: Context, canvas: Canvas) -> None:
    root = context.root
    assert root.inference.states == Inference(root.graph, context.registry).states
    assert root.instances == root.graph.instance_counts()
    check_views(context)
    graph = context.document.graph
    assert set(canvas.projection.layers) == set(graph.layers)
    for layer in graph:
        item = canvas.projection[layer.name]
        assert (item.pos().x(), item.pos().y()) == layer.position
        assert item.isVisible() == (item.folded is None)
    assert all(name in graph for name in context.selection)


def edit(document: Document, pick: random.Random, canvas: Canvas) -> None:
    """One random edit, which may be refused."""
    graph = document.graph
    names = sorted(graph.layers)
    some = pick.sample(names, min(len(names), pick.randint(1, 3))) if names else []
    one = some[0] if some else ""

    def command(g: Graph):
        kind = pick.randrange(15)
        if kind == 0 or not names:
            made = default_layer(
                g, document.registry, pick.choice(TYPES), (pick.randrange(0, 640, 16), pick.randrange(0, 320, 16))
            )
            return commands.add_layer(g, made)
        if kind == 1:
            return commands.remove_layers(g, some, heal=pick.random() < 0.5)
        if kind in (2, 3):
            return commands.connect(g, Source(pick.choice(names)), one, pick.randrange(2))
        if kind == 4:
            return commands.disconnect(g, one, 0)
        if kind == 5:
            return commands.rename_layer(g, one, unique_name("r", g.layers))
        if kind == 6:
            return commands.set_params(g, {one: {"features": str(pick.choice((8, 16, 32)))}})
        if kind == 7:
            return commands.move_layers(g, {one: (pick.randrange(0, 640, 16), 64)})
        if kind == 8:
            return template_commands.make_template(g, some, unique_name("t", g.templates))
        if kind == 9:
            return template_commands.dissolve_all(g, some)
        if kind == 10 and g.templates:
            return commands.add_layer(g, template_commands.new_instance(g, pick.choice(sorted(g.templates)), (0, 240)))
        if kind == 11:
            return (
                template_commands.move_port(g, one, 1)
                if g[one].type in (INPUT, OUTPUT)
                else commands.collapse_layers(g, some, pick.random() < 0.5)
            )
        if kind == 12:
            key = unique_name("f", g.frames)
            return frames.set_frame(g, key, Frame(key, "x", rect=(0, 0, 480, 320)))
        if kind == 13:
            return template_commands.paste_with_templates(g, [g[n] for n in some], list(g.templates.values()))
        if g.frames:
            return frames.collapse(g, [], [pick.choice(sorted(g.frames))], canvas.projection.members)
        return bypass(g, document.inference, some)

    if names and pick.random() < 0.1:
        template = pick.choice(sorted(document.root.graph.templates) or [""])
        document.root.do(lambda g: template_commands.rename_template(g, template, unique_name("n", g.templates)))
    else:
        document.do(command)


def step(context: Context, canvas: Canvas, pick: random.Random) -> None:
    what = pick.random()
    graph = context.document.graph
    if what < 0.55:
        edit(context.document, pick, canvas)
    elif what < 0.65:
        edit(context.root, pick, canvas) if not context.scope else context.root.do(
            lambda g: (
                commands.disconnect(g, pick.choice(sorted(g.layers)), 0) if len(g) else commands.remove_layers(g, [])
            )
        )
    elif what < 0.75:
        context.undo()
    elif what < 0.82:
        context.redo()
    elif what < 0.93:
        found = sorted(x.name for x in graph if x.type == "template") or sorted(graph.templates)
        if found:
            context.enter(pick.choice(found))
    else:
        context.leave()


@given(st.lists(st.integers(0, 2**32 - 1), min_size=5, max_size=40))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_shown_is_as_if_worked_out_afresh(qapp, seeds):
    context = Context(default_registry())
    graph = read_document(samples.path("residual_blocks.xml")).graph
    before = graph.copy()
    canvas = Canvas(context)
    context.set_document(Document(graph, context.registry, parent=context))
    try:
        for seed in seeds:
            step(context, canvas, random.Random(seed))
            check(context, canvas)
        root = context.root
        found = parse_document(write_document(root.graph))
        assert found.graph == root.graph
        while context.root.history.redo_title is not None:
            context.redo()
        after = root.graph.copy()
        while context.root.history.undo_title is not None:
            context.undo()
        check(context, canvas)
        assert root.graph == before
        assert root.history.is_clean
        while context.root.history.redo_title is not None:
            context.redo()
        check(context, canvas)
        assert root.graph == after
    finally:
        canvas.deleteLater()
        context.deleteLater()
        qapp.sendPostedEvents(None, 52)
