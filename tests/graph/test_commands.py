"""What each command makes of a graph, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from designer.graph import commands, frames, routes
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import MAX_NAME, ActivationSpec, Frame, Layer, Source, check_layer_name, unwritable


@pytest.fixture
def graph() -> Graph:
    """in -> a -> b -> join; in -> join"""
    return Graph(
        [
            Layer("in", "tiny_input"),
            Layer("a", "tiny_convolution", (16, 0), (Source("in"),)),
            Layer("b", "tiny_convolution", (32, 0), (Source("a"),)),
            Layer("join", "tiny_join", (48, 0), (Source("b"), Source("in"))),
        ]
    )


def inputs(graph: Graph, name: str) -> list[str | None]:
    return [None if s is None else str(s) for s in graph[name].inputs]


def check_reversible(graph: Graph, edit: Edit) -> None:
    before = graph.copy()
    graph.apply(edit)
    after = graph.copy()
    graph.apply(edit.reversed())
    assert graph == before
    graph.apply(edit)
    assert graph == after


def refused(code: str, call: object, *args: object) -> str:
    assert callable(call)
    with pytest.raises(DiagnosticError) as caught:
        call(*args)
    (finding,) = caught.value.diagnostics
    assert finding.code == code
    assert finding.remedy
    return finding.message


def test_a_layer_is_added_under_a_free_and_legal_name(graph: Graph) -> None:
    check_reversible(graph, commands.add_layer(graph, Layer("c", "tiny_join")))
    assert "c" in graph
    refused("duplicate-name", commands.add_layer, graph, Layer("a", "x"))
    for name in ("", " ", "a/b", "..", "x" * 1000, "a,b", "a:b", 'a"b', "a\nb"):
        refused("bad-name", commands.add_layer, graph, Layer(name, "x"))


def test_a_loop_of_any_length_is_refused_and_every_other_connection_made() -> None:
    names = "abcde"
    graph = Graph(
        [Layer("a", "t"), *(Layer(name, "t", inputs=(Source(names[at]),)) for at, name in enumerate(names[1:]))]
    )
    for at, reader in enumerate(names):
        for source in names[at:]:
            refused("cycle", commands.connect, graph, Source(source), reader, 0)
        for source in names[:at]:
            check_reversible(graph, commands.connect(graph, Source(source), reader, 1))


def test_removing_takes_the_links_along(graph: Graph) -> None:
    check_reversible(graph, commands.remove_layers(graph, ["b", "nobody", "b"]))
    assert inputs(graph, "join") == [None, "in"]


def test_removing_can_heal_the_links(graph: Graph) -> None:
    check_reversible(graph, commands.remove_layers(graph, ["a", "b"], heal=True))
    assert inputs(graph, "join") == ["in", "in"]


def test_connecting_replaces_and_refuses_loops(graph: Graph) -> None:
    check_reversible(graph, commands.connect(graph, Source("a", "y"), "join", 0))
    assert inputs(graph, "join") == ["a:y", "in"]
    check_reversible(graph, commands.connect(graph, Source("a"), "join", 3))
    assert inputs(graph, "join") == ["a:y", "in", None, "a"]
    assert "loop" in refused("cycle", commands.connect, graph, Source("join"), "a", 0)
    refused("cycle", commands.connect, graph, Source("a"), "a", 0)
    refused("no-such-layer", commands.connect, graph, Source("nobody"), "a", 0)
    refused("no-such-layer", commands.connect, graph, Source("a"), "nobody", 0)
    refused("no-such-port", commands.connect, graph, Source("a"), "join", -1)


def test_disconnecting_leaves_a_gap_or_closes_it(graph: Graph) -> None:
    gap = graph.copy()
    check_reversible(gap, commands.disconnect(gap, "join", 0))
    assert inputs(gap, "join") == [None, "in"]
    check_reversible(graph, commands.disconnect(graph, "join", 0, close_gap=True))
    assert inputs(graph, "join") == ["in"]
    assert not commands.disconnect(graph, "join", 9)
    assert not commands.disconnect(graph, "join", -1)


@pytest.mark.parametrize(
    ("source", "consumer", "index", "expected"),
    [
        ("a", "join", 1, {"join": ["b", "a"]}),  # the same port: another source
        ("in", "join", 0, {"join": ["in", None]}),  # another port of the same layer
        ("in", "b", 0, {"join": ["b", None], "b": ["in"]}),  # another layer
    ],
)
def test_a_link_is_moved(graph: Graph, source: str, consumer: str, index: int, expected: dict[str, list[str]]) -> None:
    edit = commands.move_link(graph, ("join", 1), Source(source), consumer, index)
    check_reversible(graph, edit)
    assert {name: inputs(graph, name) for name in expected} == {
        name: list(filter(None, found)) if found[-1] is None else found for name, found in expected.items()
    }
    assert edit.layers.keys() == expected.keys()


def test_a_moved_link_can_close_the_gap_that_it_leaves(graph: Graph) -> None:
    graph.apply(commands.connect(graph, Source("a"), "join", 2))
    graph.apply(commands.move_link(graph, ("join", 0), Source("b"), "join", 2, close_gap=True))
    assert inputs(graph, "join") == ["in", "b"]


def test_a_layer_is_added_with_one_link(graph: Graph) -> None:
    after = commands.add_connected(graph, Layer("c", "tiny_convolution"), Source("b"), None)
    before = commands.add_connected(graph, Layer("d", "tiny_convolution"), None, ("join", 1))
    alone = commands.add_connected(graph, Layer("e", "tiny_convolution"), None, None)
    for edit in (after, before, alone):
        check_reversible(graph, edit)
    assert (inputs(graph, "c"), inputs(graph, "d"), inputs(graph, "e")) == (["b"], [], [])
    assert inputs(graph, "join") == ["b", "d"]


def test_resetting_parameters_is_nothing_where_they_have_their_defaults(graph: Graph) -> None:
    assert not commands.reset_params(graph, {"a": {}}, {})
    edit = commands.reset_params(graph, {"a": {"size": "3"}, "b": {}}, {})
    assert edit.layers.keys() == {"a"}
    check_reversible(graph, edit)
    assert graph["a"].params == {"size": "3"}


def test_a_layer_is_put_into_a_link(graph: Graph) -> None:
    check_reversible(graph, commands.insert_on_link(graph, Layer("mid", "tiny_convolution"), "b", 0))
    assert inputs(graph, "b") == ["mid"]
    assert inputs(graph, "mid") == ["a"]
    refused("no-link", commands.insert_on_link, graph, Layer("x", "t"), "in", 0)


def test_renaming_takes_the_links_along(graph: Graph) -> None:
    edit = commands.rename_layer(graph, "in", "picture")
    before = graph.copy()
    change = graph.apply(edit)
    assert change.renamed == {"in": "picture"}
    assert inputs(graph, "a") == ["picture"]
    assert inputs(graph, "join") == ["b", "picture"]
    back = graph.apply(edit.reversed())
    assert back.renamed == {"picture": "in"}
    assert graph == before
    assert not commands.rename_layer(graph, "a", "a")
    refused("duplicate-name", commands.rename_layer, graph, "a", "b")
    refused("bad-name", commands.rename_layer, graph, "a", "b/c")
    refused("no-such-layer", commands.rename_layer, graph, "nobody", "x")


def test_a_layer_that_reads_itself_is_renamed() -> None:
    """A file can have such a loop; it is an error of the network."""
    loop = Graph([Layer("a", "tiny_convolution", (16, 0), (Source("a"),))])
    check_reversible(loop, commands.rename_layer(loop, "a", "b"))
    assert list(loop.layers) == ["b"]
    assert inputs(loop, "b") == ["b"]


def test_only_a_rename_is_told_as_one(graph: Graph) -> None:
    """Replacing layers at the same place by others is not a rename."""
    edit = commands.remove_layers(graph, ["a"]).then(Edit("", {"z": (None, Layer("z", "tiny_convolution", (16, 0)))}))
    assert graph.apply(edit).renamed == {}


def test_moving_skips_what_stays(graph: Graph) -> None:
    edit = commands.move_layers(graph, {"a": (16, 0), "b": (64, 64)})
    assert set(edit.layers) == {"b"}
    check_reversible(graph, edit)
    refused("no-such-layer", commands.move_layers, graph, {"nobody": (0, 0)})


def test_parameters_activation_properties_and_frames(graph: Graph) -> None:
    check_reversible(graph, commands.set_params(graph, {"a": {"features": "7"}, "b": {"features": "7"}}))
    assert graph["a"].params == {"features": "7"}
    check_reversible(graph, commands.set_activation(graph, ["a"], ActivationSpec("tiny_relu")))
    assert graph["a"].activation == ActivationSpec("tiny_relu")
    check_reversible(graph, commands.set_activation(graph, ["a"], None))
    check_reversible(graph, commands.set_property(graph, "author_notes", "text"))
    assert graph.copy().properties["author_notes"] == "text"
    check_reversible(graph, frames.set_frame(graph, "f", Frame("f", "title")))
    check_reversible(graph, frames.set_frame(graph, "f", None))
    refused("no-such-layer", commands.set_params, graph, {"nobody": {"x": "1"}})
    refused("no-such-layer", commands.set_activation, graph, ["nobody"], None)


def test_text_that_no_file_can_hold_is_refused_where_it_is_typed(graph: Graph) -> None:
    refused("unwritable-text", commands.set_params, graph, {"a": {"recipe": "a\x00b"}})
    refused("unwritable-text", commands.set_property, graph, "author_notes", "\ud800")
    refused("unwritable-text", frames.set_frame, graph, "f", Frame("f", text="\x0b"))
    refused("bad-name", commands.add_layer, graph, Layer("a\ud800", "x"))


def test_pasted_layers_get_free_names_and_keep_links_among_them(graph: Graph) -> None:
    check_reversible(graph, commands.paste(graph, [graph["a"], graph["b"]], (16, 32)))
    assert set(graph.layers) == {"in", "a", "b", "join", "a_0", "b_0"}
    assert inputs(graph, "a_0") == []
    assert inputs(graph, "b_0") == ["a_0"]
    assert graph["b_0"].position == (48, 32)
    check_reversible(graph, commands.paste(graph, [graph["a_0"], graph["b_0"]], keep_links=True))
    assert inputs(graph, "b_1") == ["a_1"]
    check_reversible(graph, commands.paste(graph, [graph["a"]], keep_links=True))
    assert inputs(graph, "a_2") == ["in"]


def test_a_copy_of_a_hidden_layer_is_visible(graph: Graph) -> None:
    """Its frame is not copied, and the document into which it is pasted may have another of the same id."""
    graph.apply(commands.paste(graph, [graph["a"].folded_into("frame_0"), replace(graph["b"], attributes={"k": "v"})]))
    assert (graph["a_0"].attributes, graph["b_0"].attributes) == ({}, {"k": "v"})


def test_a_pasted_name_never_takes_the_name_of_another_pasted_layer() -> None:
    graph = Graph([Layer("a", "t")])
    pasted = [Layer("a", "t"), Layer("a_0", "t", inputs=(Source("a"),))]
    graph.apply(commands.paste(graph, pasted))
    assert set(graph.layers) == {"a", "a_0", "a_1"}
    copy = {"a_0", "a_1"}
    reader = next(n for n in copy if graph[n].inputs)
    assert inputs(graph, reader) == list(copy - {reader})


def test_pasting_a_layer_with_a_long_name_stays_within_the_limit() -> None:
    graph = Graph([Layer("n" * 128, "t")])
    graph.apply(commands.paste(graph, list(graph)))
    assert max(len(n) for n in graph.layers) <= 128
    assert len(graph) == 2


def test_a_layer_of_the_graph_is_put_into_a_link(graph: Graph) -> None:
    graph.apply(commands.add_layer(graph, Layer("free", "tiny_relu", (5, 6))))
    check_reversible(graph, commands.insert_on_link(graph, graph["free"], "join", 1))
    assert inputs(graph, "join") == ["b", "free"]
    assert inputs(graph, "free") == ["in"]
    assert graph["free"].position == (5, 6)
    refused("bad-name", commands.insert_on_link, graph, Layer("x/y", "t"), "b", 0)
    refused("no-link", commands.insert_on_link, graph, Layer("x", "t"), "join", 2)
    refused("no-link", commands.insert_on_link, graph, Layer("x", "t"), "join", -1)


def test_the_last_input_that_a_layer_can_have(graph: Graph) -> None:
    assert len(commands.connect(graph, Source("a"), "join", 1023).layers["join"][1].inputs) == 1024  # type: ignore[union-attr]
    refused("no-such-port", commands.connect, graph, Source("a"), "join", 1024)


def test_layers_and_links_are_deleted_together(graph: Graph) -> None:
    graph.apply(commands.connect(graph, Source("a"), "join", 2))
    links = [("join", 0), ("join", 1), ("b", 0)]
    edit = commands.delete(graph, [], links, variadic=lambda name, index: name == "join")
    assert edit.title == "Delete 3 links"
    check_reversible(graph, edit)
    assert inputs(graph, "join") == ["a"]
    assert inputs(graph, "b") == []


def test_links_of_deleted_layers_and_gaps_of_fixed_ports(graph: Graph) -> None:
    graph.apply(commands.connect(graph, Source("a"), "join", 2))
    edit = commands.delete(graph, ["b"], [("join", 1), ("b", 0)], variadic=lambda name, index: False)
    assert edit.title == "Delete b"
    check_reversible(graph, edit)
    assert inputs(graph, "join") == [None, None, "a"]
    one = commands.delete(graph, [], [("join", 2)], variadic=lambda name, index: False)
    assert one.title == "Delete link"
    assert commands.remove_layers(graph, ["a", "in"]).title == "Delete 2 layers"


def test_healing_skips_open_inputs_and_ends_at_layers_without_inputs(graph: Graph) -> None:
    graph.apply(commands.disconnect(graph, "join", 0))
    graph.apply(commands.add_connected(graph, Layer("last", "tiny_relu"), Source("join"), None))
    healed = graph.copy()
    healed.apply(commands.remove_layers(graph, ["join"], heal=True))
    assert inputs(healed, "last") == ["in"]
    healed.apply(commands.remove_layers(healed, ["in"], heal=True))
    assert (inputs(healed, "last"), inputs(healed, "a")) == ([], [])


def test_a_parameter_of_attached_activations(graph: Graph) -> None:
    spec = ActivationSpec("tiny_relu", {"alpha": "0.1", "beta": "2"})
    graph.apply(commands.set_activation(graph, ["a", "b"], spec))
    edit = commands.set_activation_param(graph, ["b", "join"], "alpha", "0.5")
    check_reversible(graph, edit)
    assert edit.layers.keys() == {"b"}
    assert graph["b"].activation == ActivationSpec("tiny_relu", {"alpha": "0.5", "beta": "2"})
    assert graph["a"].activation == spec
    assert edit.title == "Change alpha of the activation of 2 layers"
    assert commands.set_activation_param(graph, ["a"], "alpha", "1").title == "Change alpha of the activation of a"
    assert edit.merge_key != commands.set_activation_param(graph, ["b"], "alpha", "0.5").merge_key
    assert edit.merge_key != commands.set_activation_param(graph, ["b", "join"], "beta", "0.5").merge_key
    refused("unwritable-text", commands.set_activation_param, graph, ["a"], "alpha", "\x00")
    refused("unwritable-text", commands.set_activation, graph, ["a"], ActivationSpec("x", {"y": "\x00"}))


def test_activations_are_reset_only_where_there_are_any(graph: Graph) -> None:
    graph.apply(commands.set_activation(graph, ["a"], ActivationSpec("tiny_relu", {"alpha": "0.1"})))
    graph.apply(commands.set_params(graph, {"a": {"features": "7"}, "b": {"features": "7"}}))
    edit = commands.reset_params(graph, {"b": {"features": "4"}}, {"a": {"alpha": "0"}, "b": {"alpha": "0"}})
    check_reversible(graph, edit)
    assert graph["a"].activation == ActivationSpec("tiny_relu", {"alpha": "0"})
    assert graph["a"].params == {"features": "7"}
    assert (graph["b"].activation, graph["b"].params) == (None, {"features": "4"})
    assert edit.title == "Reset parameters of 2 layers"
    assert commands.reset_params(graph, {"a": {}}, {}).title == "Reset parameters of a"


def test_parameters_are_set_and_removed_one_by_one(graph: Graph) -> None:
    graph.apply(commands.set_params(graph, {"a": {"features": "7", "kernel": "5"}}))
    edit = commands.set_params(graph, {"a": {"kernel": None, "valid": ""}}, merge_key="slider")
    assert (edit.merge_key, edit.title) == ("slider", "Change kernel, valid of a")
    check_reversible(graph, edit)
    assert graph["a"].params == {"features": "7", "valid": ""}


@pytest.mark.parametrize(
    ("after", "changed", "key", "title"),
    [
        ({"seed": 2, "batch_size": 4}, {"seed": (1, 2)}, "settings seed", "Change seed"),
        ({"seed": 2, "batch_size": 5}, None, "settings batch size and seed", "Change batch size and seed"),
        ({"seed": 2, "color": "x"}, None, "", "Change color and seed"),
        ({"seed": 1}, {}, "settings ", "Change "),
    ],
)
def test_settings_that_change(after, changed, key, title) -> None:
    edit = commands.set_settings({"seed": 1, "batch_size": 4, "color": "red"}, after)
    assert (edit.merge_key, edit.title) == (key, title)
    if changed is not None:
        assert edit.settings == changed


def test_layers_are_collapsed_and_expanded(graph: Graph) -> None:
    kept = Layer("c", "tiny", attributes={"lw:other": "x"})
    graph.apply(commands.add_layer(graph, kept))
    edit = commands.collapse_layers(graph, ["a", "c"], True)
    assert edit.title == "Collapse 2 layers"
    check_reversible(graph, edit)
    assert graph["a"].collapsed
    assert graph["c"].collapsed
    assert graph["c"].attributes["lw:other"] == "x"
    edit = commands.collapse_layers(graph, ["c"], False)
    assert edit.title == "Expand c"
    graph.apply(edit)
    assert graph["c"] == kept
    assert graph["a"].collapsed


def test_declarations_of_the_document_are_not_pasted_again() -> None:
    graph = Graph(attributes={"xmlns:x": "urn:x", "other": "1"})
    attributes = {"xmlns:x": "urn:x", "xmlns:y": "urn:y", "other": "1", "x:color": "red"}
    graph.apply(commands.paste(graph, [Layer("a", "t", attributes=attributes)]))
    assert graph["a"].attributes == {"xmlns:y": "urn:y", "other": "1", "x:color": "red"}
    other = Graph(attributes={"xmlns:x": "urn:another"})
    other.apply(commands.paste(other, [Layer("a", "t", attributes=attributes)]))
    assert other["a"].attributes == attributes


def test_names_and_links_of_copies() -> None:
    graph = Graph([Layer("conv_9", "t"), Layer("conv_0", "t"), Layer("12", "pool"), Layer("12_0", "t")])
    copies = [
        Layer("conv_9", "t", (1, 2), (Source("gone"), None, Source("conv_0", "y"), None)),
        Layer("12", "pool", (3, 4)),
        Layer("conv_0", "t", (5, 6)),
    ]
    edit = commands.paste(graph, copies, (10, -20), keep_links=True)
    assert edit.title == "Paste 3 layers"
    graph.apply(edit)
    assert [layer.name for layer in graph][4:] == ["conv_1", "pool_0", "conv_2"]
    assert inputs(graph, "conv_1") == [None, None, "conv_2:y"]
    assert [graph[name].position for name in ("conv_1", "pool_0", "conv_2")] == [(11, -18), (13, -16), (15, -14)]
    assert commands.paste(graph, copies[:1]).title == "Paste layer"


def test_replaced_layers_must_be_legal(graph: Graph) -> None:
    edit = commands.replace_layers(graph, {"a": None, "b": Layer("b", "other"), "new": Layer("new", "t")}, "Title", {})
    check_reversible(graph, edit)
    assert "a" not in graph
    assert graph["b"].type == "other"
    refused("bad-name", commands.replace_layers, graph, {"x/y": Layer("x/y", "t")}, "", {})
    refused("unwritable-text", commands.replace_layers, graph, {"b": Layer("b", "t", params={"p": "\x00"})}, "", {})


def test_which_rule_a_name_breaks(graph: Graph) -> None:
    assert commands.name_rule(graph, "free") is None
    assert commands.name_rule(graph, "a") == "the name 'a' is used by another layer"
    assert commands.name_rule(graph, "a/b")


def test_parameters_of_a_layer_and_of_its_activation_are_reset_in_one_edit() -> None:
    before = Layer("a", "t", params={"p": "2"}, activation=ActivationSpec("elu", {"alpha": "2"}))
    graph = Graph([before])
    graph.apply(commands.reset_params(graph, {"a": {"p": "1"}}, {"a": {"alpha": "1"}}))
    assert (graph["a"].params, graph["a"].activation) == ({"p": "1"}, ActivationSpec("elu", {"alpha": "1"}))


def test_links_keep_their_waypoints_ports_and_order_in_every_command() -> None:
    graph = Graph(
        [
            Layer("in", "tiny_input"),
            Layer("two", "tiny_split", (160, 0), (Source("in"),)),
            Layer("join", "tiny_join", (320, 0), (Source("in"), Source("two", "y1"), Source("two"))),
            Layer("other", "tiny_join", (480, 0), (Source("join"), Source("two", "y1"), Source("in"))),
        ]
    )
    graph.apply(routes.set_route(graph, "join", 1, [(200, 200)]))
    # the same link again
    again = commands.connect(graph, Source("two", "y1"), "join", 1)
    assert not again
    assert routes.routes_of(again.layers["join"][1]) == {1: ((200, 200),)}
    # a link that moves to another layer leaves a gap or closes it
    for close_gap, left in ((False, ["join", None, "in"]), (True, ["join", "in"])):
        made = graph.copy()
        edit = commands.move_link(made, ("other", 1), Source("two", "y1"), "join", 3, close_gap=close_gap)
        assert edit.title == "Move link to join"
        check_reversible(made, edit)
        assert inputs(made, "other") == left
        assert inputs(made, "join") == ["in", "two:y1", "two", "two:y1"]
        assert routes.routes_of(made["join"]) == {1: ((200, 200),)}
    # a layer in a link reads the output that the link read
    made = graph.copy()
    check_reversible(made, commands.insert_on_link(made, Layer("new", "tiny_convolution"), "other", 1))
    assert inputs(made, "new") == ["two:y1"]
    assert inputs(made, "other") == ["join", "new", "in"]
    # layers that feed one consumer are removed together, whose other links stay
    made = graph.copy()
    check_reversible(made, commands.remove_layers(made, ["two", "join"], heal=True))
    assert inputs(made, "other") == ["in", "in", "in"]
    made = graph.copy()
    check_reversible(made, commands.remove_layers(made, ["two", "join"]))
    assert inputs(made, "other") == [None, None, "in"]


@pytest.mark.parametrize(
    ("layers", "links", "title", "left"),
    [
        ([], [("join", 0)], "Delete link", [None, "in"]),
        ([], [("join", 0), ("b", 0)], "Delete 2 links", [None, "in"]),
        (["a"], [("join", 0)], "Delete a", [None, "in"]),
        (["a", "b"], [("join", 1)], "Delete 2 layers", []),
    ],
)
def test_titles_of_deleting(graph: Graph, layers, links, title, left) -> None:
    edit = commands.delete(graph, layers, links, variadic=lambda *_: False)
    assert edit.title == title
    check_reversible(graph, edit)
    assert inputs(graph, "join") == left


def test_waypoints_follow_only_layers_that_move_by_the_same_offset(graph: Graph) -> None:
    for consumer in ("a", "b", "join"):
        graph.apply(routes.set_route(graph, consumer, 0, [(8, 8)]))
    check_reversible(graph, commands.move_layers(graph, {"in": (16, 0), "a": (32, 0), "b": (48, 0), "join": (48, 16)}))
    assert {n: routes.routes_of(graph[n]).get(0) for n in ("a", "b", "join")} == {
        "a": ((24, 8),),
        "b": ((24, 8),),
        "join": ((8, 8),),
    }


def test_titles_count_layers_and_name_parameters(graph: Graph) -> None:
    texts = {name: {"features": "8", "bias": "1"} for name in ("a", "b", "join")}
    assert commands.set_params(graph, texts).title == "Change bias, features of 3 layers"
    assert commands.set_params(graph, {"a": texts["a"]}).title == "Change bias, features of a"
    assert commands.set_activation(graph, ["a"], ActivationSpec("relu")).title == "Set activation"
    assert commands.set_activation(graph, ["a"], None).title == "Remove activation"
    assert commands.move_layers(graph, {"a": (0, 16), "in": (0, 0)}).title == "Move"
    assert commands.move_layers(graph, {"a": (0, 16), "b": (0, 0)}).title == "Move 2 layers"
    assert commands.paste(graph, [graph["a"]]).title == "Paste layer"
    assert commands.paste(graph, [graph["a"], graph["b"]]).title == "Paste 2 layers"


def test_what_the_parts_of_a_network_say_about_themselves() -> None:
    assert check_layer_name("x" * MAX_NAME) is None
    for name in ("x" * (MAX_NAME + 1), "a\x85b", "a\x7fb", "a\x9fb", "a\ufffeb", "a\uffffb", " a", "a ", "."):
        assert check_layer_name(name), name
    for name in ("a\xa0b", "é", "a.b", "..."):
        assert check_layer_name(name) is None, name
    assert [unwritable(text) for text in ("a\tb\n\r", "a\x0b", "\ufffe", "\uffff", "\ud800")] == [
        None,
        "U+000B",
        "U+FFFE",
        "U+FFFF",
        "U+D800",
    ]
    assert (Frame("f", "Title").content, Frame("f", "Title", "text").content) == ("Title", "Title\ntext")
    layer = Layer("a", "t", attributes={"lw:frozen": "true", "lw:folded": "f"})
    assert layer.folded_into("g").attributes == {"lw:frozen": "true", "lw:folded": "g"}
    assert layer.folded_into("").attributes == {"lw:frozen": "true"}
    assert layer.folded_into("f") is layer


def test_an_empty_property_is_kept_and_only_one_without_a_value_is_removed() -> None:
    graph = Graph()
    graph.apply(Edit("", properties={"description": (None, ""), "author": (None, "me")}))
    assert graph.properties["description"] == ""
    graph.apply(Edit("", properties={"author": ("me", None)}))
    assert "author" not in graph.properties
    assert graph.properties["description"] == ""


def test_open_ports_behind_the_last_link_are_dropped() -> None:
    """For every combination of links and open ports, and every input that is set or removed."""
    for before in product((None, Source("a"), Source("b", "y")), repeat=3):
        layer = Layer("x", "t", inputs=before)
        for index, source in product(range(6), (None, Source("c"))):
            wanted = [before[i] if i < 3 else None for i in range(6)]
            wanted[index] = source
            while wanted and wanted[-1] is None:
                wanted.pop()
            assert layer.with_input(index, source).inputs == tuple(wanted)
        assert layer.inputs == before
