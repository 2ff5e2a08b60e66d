"""Frames in templates, collapsed nodes and frames, and kept views go through files unchanged; old files stay as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from designer.files.document import parse_document, write_document
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import dissolve, edit_template, make_template

OLD = Path(__file__).parents[1] / "data" / "good" / "unet_2022.nv-neural-model"


def network() -> Graph:
    template = Template(
        "block",
        (
            Layer("in", "template_input"),
            Layer("act", "activation", (160, 0), (Source("in"),)),
            Layer("out", "template_output", (320, 0), (Source("act"),)),
        ),
        frames=(Frame("frame_0", "Inside", "why", rect=(0, -48, 200, 120)),),
    )
    layers = (
        Layer("a", "identity"),
        Layer("b", "template", (160, 0), (Source("a"),), {"template": "block"}),
        Layer("c", "identity", (320, 0), (Source("b"),)),
    )
    return Graph(layers, templates=(template,), frames=(Frame("f", "Outside", rect=(-16, -16, 100, 100)),))


def again(graph: Graph) -> Graph:
    data = write_document(graph)
    reading = parse_document(data)
    assert reading.diagnostics == ()
    assert reading.graph is not None
    assert write_document(reading.graph) == data
    return reading.graph


def test_frames_of_templates_and_what_is_collapsed_come_back() -> None:
    graph = network()
    graph.apply(commands.collapse_layers(graph, ["a", "b"], True))
    graph.apply(frames.set_frame(graph, "f", replace(graph.frames["f"], collapsed=True)))
    graph.apply(edit_template(graph, "block", commands.collapse_layers(graph.inside("block"), ["act"], True)))
    found = again(graph)
    assert found == graph
    assert [layer.name for layer in found if layer.collapsed] == ["a", "b"]
    assert found.frames["f"].collapsed
    assert found.templates["block"].frames[0].title == "Inside"
    assert found.inside("block")["act"].collapsed


def test_expanding_leaves_nothing_in_the_file() -> None:
    graph = network()
    before = write_document(graph)
    graph.apply(commands.collapse_layers(graph, ["a"], True))
    assert write_document(graph) != before
    graph.apply(commands.collapse_layers(graph, ["a"], False))
    assert write_document(graph) == before


def test_files_of_the_old_tool_have_nothing_of_it() -> None:
    data = OLD.read_bytes()
    graph = parse_document(data).graph
    assert graph is not None
    assert write_document(graph) == data
    name = next(iter(graph.layers))
    graph.apply(commands.collapse_layers(graph, [name], True))
    graph.apply(commands.collapse_layers(graph, [name], False))
    assert write_document(graph) == data


def test_frames_go_with_their_layers_into_a_template_and_out() -> None:
    graph = network()
    graph.apply(frames.set_frame(graph, "g", Frame("g", "Pair", rect=(150, -32, 220, 100))))
    graph.apply(make_template(graph, ["b", "c"], "pair"))
    assert [frame.title for frame in graph.templates["pair"].frames] == ["Pair"]
    assert set(graph.frames) == {"f"}
    graph.apply(dissolve(graph, "pair_0"))
    assert sorted(frame.title for frame in graph.frames.values()) == ["Outside", "Pair"]


def test_a_frame_of_a_file_that_does_not_declare_the_prefix_is_a_frame_at_once():
    """It was kept as text, and became a frame once saving had declared the prefix."""
    text = '<NetworkModel name="n" version="2"><lw:Frame id="f" title="T" color="" rect="0,0,64,64" /></NetworkModel>'
    read = parse_document(text.encode()).graph
    assert list(read.frames) == ["f"]
    again = parse_document(write_document(read)).graph
    assert again.frames == read.frames
