"""Commands on templates: what they change, what they refuse, and that every one can be undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from designer.graph import commands, routes
from designer.graph import frames as frame_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import BYPASSED, FROZEN, ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template, closure, enclosing, recursion, would_recur
from designer.graph.template_commands import (
    STEP,
    dissolve,
    dissolve_all,
    edit_template,
    make_template,
    move_port,
    new_instance,
    new_port,
    paste_with_templates,
    remove_template,
    rename_template,
    set_template,
)


def plain(name: str, *inputs: str, kind: str = "tiny") -> Layer:
    return Layer(name, kind, inputs=tuple(Source.parse(i) for i in inputs))


def instance(name: str, template: str, *inputs: str) -> Layer:
    return Layer(name, "template", inputs=tuple(Source.parse(i) for i in inputs), params={"template": template})


def pair() -> Template:
    """Two inputs, two outputs."""
    return Template(
        "pair",
        (
            Layer("a", "template_input", params={"index": "0"}),
            Layer("b", "template_input", params={"index": "1"}),
            plain("mid", "a", "b"),
            Layer("first", "template_output", inputs=(Source("mid"),), params={"index": "0"}),
            Layer("second", "template_output", inputs=(Source("mid", "y1"),), params={"index": "1"}),
        ),
    )


@pytest.fixture
def graph() -> Graph:
    return Graph(
        [
            plain("in"),
            plain("left", "in"),
            plain("right", "in"),
            instance("p", "pair", "left", "right"),
            plain("reads_first", "p"),
            plain("reads_second", "p:second"),
        ],
        templates=[pair()],
    )


def committed(graph: Graph, command: Callable[[Graph], Edit]) -> Graph:
    """The graph after a command, after checking that undo and redo work; the original is left as it was."""
    before = graph.copy()
    history = History(graph.copy())
    history.commit(command(history.graph))
    after = history.graph.copy()
    history.undo()
    assert history.graph == before
    history.redo()
    assert history.graph == after
    return after


def code(command: Callable[[], Edit]) -> str:
    with pytest.raises(DiagnosticError) as caught:
        command()
    (finding,) = caught.value.diagnostics
    assert finding.remedy
    return finding.code


def test_templates_are_part_of_what_is_equal_and_copied(graph: Graph) -> None:
    other = graph.copy()
    assert other == graph
    other.apply(remove_template(Graph(templates=[pair()]), "pair"))
    assert other != graph
    assert "pair" in graph.templates


def test_an_edit_that_does_not_fit_is_refused(graph: Graph) -> None:
    edit = set_template(graph, Template("more"))
    graph.apply(edit)
    with pytest.raises(ValueError, match="template 'more'"):
        graph.apply(edit)


def test_adding_and_removing(graph: Graph) -> None:
    with_more = committed(graph, lambda g: set_template(g, Template("more")))
    assert set(with_more.templates) == {"pair", "more"}
    assert set(committed(with_more, lambda g: remove_template(g, "more")).templates) == {"pair"}
    assert code(lambda: remove_template(graph, "pair")) == "template-in-use"
    assert code(lambda: remove_template(graph, "gone")) == "unknown-template"


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "x" * 200])
def test_bad_names_are_refused(graph: Graph, name: str) -> None:
    assert code(lambda: set_template(graph, Template(name))) == "bad-name"
    assert code(lambda: rename_template(graph, "pair", name)) == "bad-name"


def test_renaming_is_followed_by_instances_everywhere(graph: Graph) -> None:
    graph.apply(set_template(graph, Template("outer", (instance("p", "pair"),))))
    after = committed(graph, lambda g: rename_template(g, "pair", "couple"))
    assert set(after.templates) == {"couple", "outer"}
    assert after["p"].params["template"] == "couple"
    assert after.templates["outer"].uses() == ("couple",)
    assert after.templates["couple"].name == "couple"
    assert code(lambda: rename_template(graph, "pair", "outer")) == "duplicate-name"


def test_a_template_never_uses_itself(graph: Graph) -> None:
    itself = Template("pair", (instance("again", "pair"),))
    assert code(lambda: set_template(graph, itself)) == "recursive-template"
    graph.apply(set_template(graph, Template("outer", (instance("p", "pair"),))))
    through = Template("pair", (instance("again", "outer"),))
    assert code(lambda: set_template(graph, through)) == "recursive-template"
    templates = {"pair": through, "outer": graph.templates["outer"]}
    assert recursion(templates, "pair") == ("pair", "outer", "pair")
    assert closure(templates, "outer") == ["outer", "pair"]
    assert closure({"pair": through}, "pair") == ["pair", "outer"], "also a template that is missing"
    assert closure({}, "pair") == ["pair"]


def test_instances_using_a_template_are_found_also_while_it_is_missing(graph: Graph) -> None:
    """An edit can remove a template that others still use; the instances of those have to be checked again."""
    graph.apply(set_template(graph, Template("outer", (instance("p", "pair"),))))
    graph.apply(commands.add_layer(graph, instance("deep", "outer")))
    using = graph.instances_using(["pair"])
    assert using == {layer.name for layer in graph if layer.type == "template"} > {"deep"}
    assert graph.instances_using(["outer"]) == {"deep"}
    removal = Edit("Remove", templates={"pair": (graph.templates["pair"], None)})
    graph.apply(removal)
    assert graph.instances_using(["pair"]) == using
    graph.apply(removal.reversed())
    assert graph.instances_using(["pair"]) == using


def test_editing_a_template_is_editing_a_network(graph: Graph) -> None:
    edit = commands.set_params(graph.inside("pair"), {"mid": {"size": "3"}}, merge_key="drag")
    made = edit_template(graph, "pair", edit)
    assert made.merge_key == "pair/drag"
    after = committed(graph, lambda g: edit_template(g, "pair", edit))
    assert after.inside("pair")["mid"].params == {"size": "3"}
    assert after.layers == graph.layers


def test_instances_follow_a_port_that_is_renamed(graph: Graph) -> None:
    edit = commands.rename_layer(graph.inside("pair"), "second", "result")
    after = committed(graph, lambda g: edit_template(g, "pair", edit))
    assert after["reads_second"].inputs == (Source("p", "result"),)
    assert after["reads_first"].inputs == (Source("p"),)
    renamed_first = commands.rename_layer(graph.inside("pair"), "first", "zero")
    assert edit_template(graph, "pair", renamed_first).layers == {}


def test_instances_follow_ports_that_change_places(graph: Graph) -> None:
    inside = graph.inside("pair")
    swap = commands.set_params(inside, {"a": {"index": "5"}, "first": {"index": "5"}})
    after = committed(graph, lambda g: edit_template(g, "pair", swap))
    assert after["p"].inputs == (Source("right"), Source("left"))
    assert after["reads_first"].inputs == (Source("p", "first"),)
    assert after["reads_second"].inputs == (Source("p"),)


def test_instances_inside_of_other_templates_follow_too(graph: Graph) -> None:
    outer = Template("outer", (plain("s"), instance("p", "pair", "s", "s"), plain("r", "p:second")))
    graph.apply(set_template(graph, outer))
    edit = commands.rename_layer(graph.inside("pair"), "second", "result")
    after = committed(graph, lambda g: edit_template(g, "pair", edit))
    assert after.inside("outer")["r"].inputs == (Source("p", "result"),)


def test_a_port_that_is_gone_is_not_replaced_by_another(graph: Graph) -> None:
    edit = commands.remove_layers(graph.inside("pair"), ["first", "a"])
    after = committed(graph, lambda g: edit_template(g, "pair", edit))
    assert after["p"].inputs == (Source("right"),)
    assert after["reads_first"].inputs == (Source("p", "first"),)
    assert after["reads_second"].inputs == (Source("p"),)


def test_layers_become_a_template_and_layers_again() -> None:
    graph = Graph([plain("in"), plain("a", "in"), plain("b", "a", "in"), plain("end", "b:y1", "b"), plain("side", "a")])
    after = committed(graph, lambda g: make_template(g, ["a", "b"], "block"))
    template = after.templates["block"]
    assert set(after.layers) == {"in", "block_0", "end", "side"}
    assert after["block_0"].inputs == (Source("in"),)
    assert template.inputs == ("in",)
    outputs = {graph_source: port for port in template.outputs for graph_source in after.inside("block")[port].inputs}
    assert {str(s) for s in outputs if s is not None} == {"b:y1", "b", "a"}
    assert after.inside("block")["b"].inputs == (Source("a"), Source("in"))
    back = committed(after, lambda g: dissolve(g, "block_0"))
    names = {"a": "block_0.a", "b": "block_0.b"}
    renamed = graph
    for old, new in names.items():
        renamed.apply(commands.rename_layer(renamed, old, new))
    assert {layer.name: layer.inputs for layer in back} == {layer.name: layer.inputs for layer in renamed}
    assert "block" in back.templates


def test_frames_around_the_layers_of_a_new_template_move_inside() -> None:
    """Frames that hold other layers, or none, stay."""
    places = {"in": (0, 0), "a": (100, 40), "b": (200, 80), "after": (300, 60)}
    reads = {"in": (), "a": ("in",), "b": ("a",), "after": ("b",)}
    graph = Graph(
        [replace(plain(name, *reads[name]), position=place) for name, place in places.items()],
        frames=[
            Frame("both", "Both", rect=(100, 40, 100, 40)),
            Frame("more", "More", rect=(100, 40, 200, 40)),
            Frame("left", "Left", rect=(50, 40, 49, 40)),
            Frame("below", "Below", rect=(100, 81, 100, 40)),
        ],
    )
    made = committed(graph, lambda g: make_template(g, ["a", "b"], "ab"))
    assert [frame.id for frame in made.templates["ab"].frames] == ["both"]
    assert made.frames.keys() == {"more", "left", "below"}


def test_a_selection_with_a_hole_is_refused() -> None:
    graph = Graph([plain("a"), plain("b", "a"), plain("c", "b")])
    assert code(lambda: make_template(graph, ["a", "c"], "block")) == "cycle"
    assert code(lambda: make_template(graph, [], "block")) == "nothing-selected"
    assert code(lambda: make_template(graph, ["a"], "a.b")) == "bad-name"


def test_what_nobody_reads_becomes_an_output() -> None:
    graph = Graph([plain("a"), plain("b", "a")])
    after = committed(graph, lambda g: make_template(g, ["a", "b"], "block"))
    assert after.templates["block"].outputs == ("b_2",)
    assert after["block_0"].inputs == ()


def linked() -> Graph:
    """A network in which layers are read inside and outside of most selections, by several ports, or not at all."""
    return Graph(
        [
            plain("in"),
            plain("a", "in"),
            plain("b", "a", "in"),
            plain("c", "b", "b:y1"),
            plain("d", "a:y1", "c"),
            plain("e", "c"),
            plain("f", "d:y1", "b:y1"),
        ]
    )


SELECTIONS = [[name for place, name in enumerate("abcdef") if number & 1 << place] for number in range(1, 64)]


@pytest.mark.parametrize("names", SELECTIONS, ids="".join)
def test_every_selection_has_the_ports_that_its_links_need(names: list[str]) -> None:
    """What it reads outside, what is read outside and what nobody reads; dissolving the instance links the layers as before."""
    graph = linked()
    between = graph.downstream(names) & graph.upstream(names) - set(names)
    if between:
        assert code(lambda: make_template(graph, names, "block")) == "cycle"
        return
    after = committed(graph, lambda g: make_template(g, names, "block"))
    inside = {layer.name: layer for layer in after.templates["block"].layers}
    outer = {source for name in graph.layers if name not in names for source in graph[name].inputs}
    read = {source for name in names for source in graph[name].inputs if source.layer not in names}
    results = {source for source in outer if source.layer in names}
    results |= {Source(name) for name in names if not graph.consumers(name)}
    assert {inside[port].inputs[0] for port in after.templates["block"].outputs} == results
    assert len(after.templates["block"].outputs) == len(results)
    assert set(after["block_0"].inputs) == read
    assert len(after["block_0"].inputs) == len(after.templates["block"].inputs) == len(read)
    dissolved = committed(after, lambda g: dissolve(g, "block_0"))

    def now(name: str) -> str:
        return f"block_0.{name}" if name in names else name

    assert {layer.name: layer.inputs for layer in dissolved} == {
        now(layer.name): tuple(Source(now(source.layer), source.port) for source in layer.inputs) for layer in graph
    }


def test_dissolving_keeps_attached_activations(graph: Graph) -> None:
    spec = ActivationSpec("relu")
    graph.apply(commands.set_activation(graph, ["p"], spec))
    graph.apply(edit_template(graph, "pair", commands.set_activation(graph.inside("pair"), ["second"], spec)))
    after = committed(graph, lambda g: dissolve(g, "p"))
    assert (after["p"].type, after["p"].activation, after["p"].inputs) == ("identity", spec, (Source("p.mid"),))
    assert after["reads_first"].inputs == (Source("p"),)
    assert after["reads_second"].inputs == (Source("p.second"),)
    assert (after["p.second"].type, after["p.second"].inputs) == ("identity", (Source("p.mid", "y1"),))


def test_only_instances_can_be_dissolved(graph: Graph) -> None:
    assert code(lambda: dissolve(graph, "left")) == "no-instance"
    assert code(lambda: dissolve(graph, "gone")) == "no-instance"
    graph.apply(commands.add_layer(graph, plain("p.mid")))
    assert code(lambda: dissolve(graph, "p")) == "duplicate-name"


def test_dissolving_keeps_what_is_collapsed_the_waypoints_and_what_is_frozen() -> None:
    """Frames get unused ids, and what they hide follows; layers of an instance that is hidden itself are hidden too."""
    inside = [
        Layer("x", "template_input", (0, 16)),
        Layer("a", "tiny", (0, 0), (Source("x"),)).folded_into("frame_0"),
        routes.with_routes(Layer("b", "tiny", (64, 0), (Source("x"), Source("a"))), {1: ((32, 8),)}),
        Layer("c", "tiny", (64, 64), (Source("a"),)).folded_into("removed"),
        Layer("y", "template_output", (96, 0), (Source("b"),)),
    ]
    held = [
        Frame("frame_0", rect=(0, 0, 9, 9), collapsed=True, folded="frame_1"),
        Frame("frame_1", rect=(0, 0, 64, 64)),
    ]
    frozen = {FROZEN: "true"}
    graph = Graph(
        [plain("in"), replace(instance("p", "t", "in"), position=(160, 320), attributes=frozen)],
        frames=[Frame("frame_0")],
        templates=[Template("t", tuple(inside), frames=tuple(held))],
    )
    after = committed(graph, lambda g: dissolve(g, "p"))
    assert {key: (frame.rect[:2], frame.folded) for key, frame in after.frames.items()} == {
        "frame_0": ((0, 0), ""),
        "frame_1": ((160, 320), "frame_2"),
        "frame_2": ((160, 320), ""),
    }
    assert [after[name].folded for name in ("p.a", "p.b", "p.c")] == ["frame_1", "", ""]
    assert routes.routes_of(after["p.b"]) == {1: ((192, 328),)}
    assert after["p.a"].frozen
    assert after["p.b"].frozen
    graph.apply(Edit("", {"p": (graph["p"], instance("p", "t", "in").folded_into("frame_0"))}))
    after = committed(graph, lambda g: dissolve(g, "p"))
    assert [after[name].folded for name in ("p.a", "p.b", "p.c")] == ["frame_1", "frame_0", "frame_0"]
    assert [after.frames[key].folded for key in ("frame_1", "frame_2")] == ["frame_2", "frame_0"]
    assert not after["p.a"].frozen


def test_a_bypassed_instance_is_not_dissolved(graph: Graph) -> None:
    graph.apply(Edit("", {"p": (graph["p"], replace(graph["p"], attributes={BYPASSED: "true"}))}))
    assert code(lambda: dissolve(graph, "p")) == "bypass"


def test_names_of_ports_and_templates_are_legal() -> None:
    """A layer's name can consist of its number alone, and a template's name can be as long as the limit."""
    made = committed(Graph([plain("_5"), plain("a", "_5")]), lambda g: make_template(g, ["a"], "t"))
    assert made.templates["t"].inputs == ("x",)
    long = "t" * 128
    graph = Graph([plain("in")], templates=[Template(long)])
    after = committed(graph, lambda g: paste_with_templates(g, [instance("i", long)], [replace(pair(), name=long)]))
    assert after["i"].params["template"] == f"{'t' * 120}_2"
    assert after.templates.keys() == {long, f"{'t' * 120}_2"}


def test_merged_and_grouped_edits_keep_templates(graph: Graph) -> None:
    history = History(graph)
    before = graph.copy()
    with history.group("two"):
        history.commit(set_template(graph, Template("more")))
        history.commit(rename_template(graph, "more", "much"))
    assert set(graph.templates) == {"pair", "much"}
    history.undo()
    assert graph == before
    for size in ("1", "2", "3"):
        edit = commands.set_params(graph.inside("pair"), {"mid": {"size": size}}, merge_key="k")
        change = history.commit(edit_template(graph, "pair", edit))
        assert change.templates == {"pair"}
    history.undo()
    assert graph == before


def test_pasted_instances_bring_their_templates(graph: Graph) -> None:
    other = Graph([plain("in")])
    after = committed(other, lambda g: paste_with_templates(g, [graph["p"]], [pair()]))
    assert after.templates == {"pair": pair()}
    again = committed(after, lambda g: paste_with_templates(g, [graph["p"]], [pair()]))
    assert again.templates == after.templates
    assert {layer.name for layer in again} == {"in", "p", "p_0"}


def test_a_pasted_template_never_replaces_one_of_the_same_name(graph: Graph) -> None:
    theirs = Template("pair", (Layer("y", "template_output"),))
    outer = Template("outer", (instance("i", "pair"), Layer("y", "template_output", inputs=(Source("i"),))))
    graph.apply(set_template(graph, outer))
    after = committed(graph, lambda g: paste_with_templates(g, [instance("o", "outer")], [theirs, outer]))
    assert after["o"].params["template"] == "outer_2"
    assert after.templates["outer_2"].uses() == ("pair_2",)
    assert after.templates["pair_2"].layers == theirs.layers
    assert after.templates["pair"] == pair()


def test_a_pasted_template_is_not_renamed_to_another_that_is_pasted(graph: Graph) -> None:
    theirs = Template("pair", (Layer("y", "template_output"),))
    second = Template("pair_2", (Layer("z", "template_output"),))
    layers = [instance("i", "pair"), instance("j", "pair_2")]
    for templates in ([theirs, second], [second, theirs]):
        after = committed(graph, lambda g, made=templates: paste_with_templates(g, layers, made))
        assert (after["i"].params["template"], after["j"].params["template"]) == ("pair_3", "pair_2")
        assert {name: template.layers for name, template in after.templates.items()} == {
            "pair": pair().layers, "pair_2": second.layers, "pair_3": theirs.layers,
        }  # fmt: skip


def test_everything_that_uses_a_renamed_template_is_renamed_in_any_order(graph: Graph) -> None:
    chain = [Template("pair", (Layer("y", "template_output"),))]
    for name in ("b", "c", "d"):
        inner = (instance("i", chain[-1].name), Layer("y", "template_output", inputs=(Source("i"),)))
        chain.append(Template(name, inner))
    for templates in (chain, chain[::-1], [chain[2], chain[0], chain[3], chain[1]]):
        after = committed(graph, lambda g, made=templates: paste_with_templates(g, [instance("o", "d")], made))
        assert after["o"].params["template"] == "d_2"
        assert {name: template.uses() for name, template in after.templates.items()} == {
            "pair": (), "pair_2": (), "b_2": ("pair_2",), "c_2": ("b_2",), "d_2": ("c_2",)
        }  # fmt: skip


def test_a_layer_inside_knows_its_instances() -> None:
    assert enclosing("group.block.conv") == ("group.block.conv", "group.block", "group")
    assert enclosing("conv") == ("conv",)
    assert enclosing(".a") == (".a",)


def test_renames_inside_are_carried_by_the_edit_and_by_its_reverse(graph: Graph) -> None:
    edit = edit_template(graph, "pair", commands.rename_layer(graph.inside("pair"), "mid", "middle"))
    assert edit.renamed_inside == {"pair": {"mid": "middle"}}
    assert edit.reversed().renamed_inside == {"pair": {"middle": "mid"}}
    change = graph.apply(edit)
    assert change.renamed_inside == {"pair": {"mid": "middle"}}
    renamed = rename_template(graph, "pair", "two")
    assert renamed.renamed_templates == {"pair": "two"}
    graph.apply(renamed)
    again = edit_template(graph, "two", commands.rename_layer(graph.inside("two"), "middle", "core"))
    total = edit.then(renamed).then(again)
    assert total.renamed_templates == {"pair": "two"}
    assert total.renamed_inside == {"pair": {"mid": "core"}}
    assert total.reversed().renamed_inside == {"two": {"core": "mid"}}
    assert total.reversed().renamed_templates == {"two": "pair"}
    back = commands.rename_layer(graph.inside("two"), "middle", "mid")
    assert not edit.then(renamed).then(edit_template(graph, "two", back)).renamed_inside


def test_layers_of_the_whole_network_are_refused(graph: Graph) -> None:
    with pytest.raises(DiagnosticError, match="is an input or output of the whole network"):
        make_template(graph, ["in", "left"], "t", whole=["in"])


def test_several_instances_dissolve_in_one_step(graph: Graph) -> None:
    graph.apply(commands.add_layer(graph, instance("q", "pair", "left", "right")))
    before = graph.copy()
    edit = dissolve_all(graph, ["p", "q"])
    assert edit.title == "Dissolve 2 instances"
    graph.apply(edit)
    assert {"p.mid", "q.mid"} <= graph.layers.keys()
    graph.apply(edit.reversed())
    assert graph == before


def test_ports_are_added_behind_the_others_and_moved(graph: Graph) -> None:
    inside = graph.inside("pair")
    port = new_port(inside, "template_input", (0, 0), {})
    assert (port.name, port.params["index"]) == ("in_0", "2")
    graph.apply(edit_template(graph, "pair", move_port(inside, "b", -1)))
    assert graph.templates["pair"].inputs == ("b", "a")
    assert graph["p"].inputs == (Source("right"), Source("left"))
    assert not move_port(graph.inside("pair"), "b", -1)


def test_the_layers_of_a_new_template_are_placed(graph: Graph) -> None:
    def placed(inside: Graph) -> dict[str, tuple[int, int]]:
        return {name: (16 * number, 0) for number, name in enumerate(sorted(inside.layers))}

    graph.apply(make_template(graph, ["left", "right"], "t", placed=placed))
    layers = graph.templates["t"].layers
    assert [layer.position for layer in layers] == [(16 * number, 0) for number in range(len(layers))]


def test_ports_of_a_new_template_are_named_after_what_they_read() -> None:
    graph = Graph(
        [
            plain("input_0", kind="input"),
            plain("photo", kind="input"),
            plain("two", "photo"),
            plain("conv_0", "input_0", "photo", "two:y1", "two"),
            plain("conv_1", "conv_0", "photo"),
            plain("outside", "conv_1:y", "photo", "conv_0"),
            plain("late", "conv_1"),
        ]
    )
    after = committed(graph, lambda g: make_template(g, ["conv_1", "conv_0"], "block"))
    template = after.templates["block"]
    assert template.inputs == ("x", "photo", "two_y1", "two")
    assert {layer.name: [str(s) for s in layer.inputs] for layer in template.layers if layer.type == "tiny"} == {
        "conv_0": ["x", "photo", "two_y1", "two"],
        "conv_1": ["conv_0", "photo"],
    }
    assert [str(s) for s in after["block_0"].inputs] == ["input_0", "photo", "two:y1", "two"]
    outputs = {x.name: str(x.inputs[0]) for x in template.layers if x.type == "template_output"}
    reads = [str(s) for s in after["outside"].inputs]
    assert reads[1] == "photo"
    first = template.outputs[0]
    found = [outputs[s.partition(":")[2] or first] for s in (reads[0], reads[2], str(after["late"].inputs[0]))]
    assert found == ["conv_1:y", "conv_0", "conv_1"]
    assert len(set(template.outputs)) == 3
    assert {x.params["index"] for x in template.layers if x.type == "template_output"} == {"0", "1", "2"}


def test_names_of_ports_do_not_collide_with_layers_inside_or_with_each_other() -> None:
    graph = Graph([plain("a_1"), plain("a_2"), plain("x", "a_1", "a_2"), plain("end", "x")])
    template = committed(graph, lambda g: make_template(g, ["x"], "t")).templates["t"]
    assert template.inputs == ("a", "a_2")
    same = Graph([plain("tiny_0"), plain("tiny_1"), plain("x", "tiny_0", "tiny_1")])
    template = committed(same, lambda g: make_template(g, ["x"], "t")).templates["t"]
    assert template.inputs == ("x_2", "x_3")


def test_the_instance_is_where_the_first_layer_was_and_ports_are_around_the_layers() -> None:
    graph = Graph(
        [
            Layer("in", "tiny", (0, 0)),
            Layer("one", "tiny", (300, 70), (Source("in"),)),
            Layer("other", "tiny", (500, 20), (Source("one"),)),
            Layer("end", "tiny", (900, 0), (Source("other"),)),
        ]
    )
    after = committed(graph, lambda g: make_template(g, ["other", "one"], "t"))
    assert after["t_0"].position == (300, 70)
    assert {x.name: x.position for x in after.templates["t"].layers} == {
        "in": (300 - STEP, 20),
        "other_2": (500 + STEP, 20),
        "one": (300, 70),
        "other": (500, 20),
    }


def test_ports_are_around_layers_that_run_back() -> None:
    """Neither the first nor the last layer is at an end; two inputs and two outputs are below each other."""
    graph = Graph(
        [
            Layer("in", "tiny", (0, 0)),
            Layer("in_2", "tiny", (0, 90)),
            Layer("a", "tiny", (300, 70), (Source("in"), Source("in_2"))),
            Layer("b", "tiny", (100, 40), (Source("a"),)),
            Layer("c", "tiny", (700, 20), (Source("b"),)),
            Layer("d", "tiny", (400, 50), (Source("c"), Source("a"))),
            Layer("end", "tiny", (900, 0), (Source("d"), Source("c"))),
        ]
    )
    after = committed(graph, lambda g: make_template(g, ["d", "b", "c", "a"], "t"))
    assert after["t_0"].position == (300, 70)
    assert after["t_0"].inputs == (Source("in"), Source("in_2"))
    made = after.templates["t"]
    ports = [*made.inputs, *made.outputs]
    places = {x.name: x.position for x in made.layers}
    assert [places.pop(port) for port in ports] == [
        (100 - STEP, 20), (100 - STEP, 20 + STEP), (700 + STEP, 20), (700 + STEP, 20 + STEP),
    ]  # fmt: skip
    assert places == {name: graph[name].position for name in "abcd"}


def test_names_of_instances_of_long_names_do_not_end_in_a_space_before_the_number() -> None:
    for letters in (118, 119, 120):
        name = f"{'t' * letters} {'u' * 9}"[:128].rstrip()
        stem = name[:120].rstrip()
        made = make_template(Graph([plain("a"), plain(f"{stem}_0")]), ["a"], name)
        assert [n for n, (before, _) in made.layers.items() if before is None] == [f"{stem}_1"]
        assert new_instance(Graph(), name, (0, 0)).name == f"{stem}_0"
        copies = commands.paste(Graph([plain(f"{stem}")]), [plain(f"{name}")], (0, 0))
        copies = copies.then(commands.paste(Graph([plain(name)]), [plain(name)], (0, 0)))
        assert f"{stem}_0" in copies.layers or f"{stem}_2" in copies.layers or f"{stem}_1" in copies.layers


def test_an_identity_that_keeps_an_activation_has_no_template(graph: Graph) -> None:
    relu = ActivationSpec("relu")
    graph.apply(commands.set_activation(graph, ["p"], relu))
    after = committed(graph, lambda g: dissolve(g, "p"))
    assert (after["p"].type, after["p"].params, after["p"].activation) == ("identity", {}, relu)
    assert [str(s) for s in after["p"].inputs] == ["p.mid"]
    assert [str(s) for s in after["reads_first"].inputs] == ["p"]
    assert [str(s) for s in after["reads_second"].inputs] == ["p.mid:y1"]


def test_a_renamed_template_is_renamed_in_its_instances_only() -> None:
    inner = Template("inner", (plain("a"),))
    outer = Template("outer", (instance("i", "inner"), instance("k", "kept"), plain("a")))
    kept = Template("kept", (plain("a"),))
    odd = Layer("odd", "tiny", params={"template": "inner"})
    graph = Graph(
        [instance("one", "inner"), instance("other", "kept"), plain("x"), odd], templates=[inner, outer, kept]
    )
    edit = rename_template(graph, "inner", "new")
    assert edit.layers.keys() == {"one"}
    assert edit.templates.keys() == {"inner", "new", "outer"}
    after = committed(graph, lambda g: rename_template(g, "inner", "new"))
    assert {layer.name: dict(layer.params) for layer in after} == {
        "one": {"template": "new"},
        "other": {"template": "kept"},
        "x": {},
        "odd": {"template": "inner"},
    }
    assert [layer.params.get("template") for layer in after.templates["outer"].layers] == [None, "new", "kept"]
    assert after.templates["new"].layers == inner.layers
    assert not rename_template(graph, "inner", "inner")
    with pytest.raises(DiagnosticError, match="a template 'kept' already exists"):
        rename_template(graph, "inner", "kept")
    with pytest.raises(DiagnosticError, match="there is no template 'none'"):
        rename_template(graph, "none", "new")


def test_a_template_in_use_is_not_removed() -> None:
    inner = Template("inner", (plain("a"),))
    outer = Template("outer", (instance("i", "inner"),))
    graph = Graph([instance("one", "inner")], templates=[inner, outer])
    with pytest.raises(DiagnosticError, match="the template 'inner' is used by 'one' and 1 more"):
        remove_template(graph, "inner")
    graph.apply(commands.remove_layers(graph, ["one"]))
    with pytest.raises(DiagnosticError, match="the template 'inner' is used by 'outer > i'"):
        remove_template(graph, "inner")
    after = committed(graph, lambda g: remove_template(g, "outer"))
    assert committed(after, lambda g: remove_template(g, "inner")).templates == {}


def test_a_new_template_keeps_what_its_layers_had() -> None:
    """Waypoints inside, the positions within a frame, the names of weights, and which output is the first."""
    graph = Graph(
        [
            Layer("in", "tiny", (0, 0)),
            Layer("alone", "tiny", (160, 160), (Source("in"),)),
            Layer("one", "tiny", (160, 0), (Source("in"),)),
            Layer("two", "tiny", (320, 0), (Source("one"), Source("in"))),
            Layer("end", "tiny", (640, 0), (Source("two", "y1"),)),
        ],
        frames=[Frame("f", rect=(150, -10, 30, 30))],
    )
    graph.apply(routes.set_route(graph, "two", 0, [(200, 200)]))
    graph.apply(routes.set_route(graph, "end", 0, [(500, 500)]))
    edit = make_template(
        graph, ["alone", "one", "two"], "t", placed=lambda inside: dict.fromkeys(inside.layers, (0, 0))
    )
    assert edit.renamed == {name: f"t_0.{name}" for name in ("alone", "one", "two")}
    after = committed(graph, lambda _: edit)
    made = {layer.name: layer for layer in after.templates["t"].layers}
    assert routes.routes_of(made["two"]) == {0: ((200, 200),)}
    assert {name: made[name].position for name in ("alone", "one", "two")} == {
        "alone": (160, 160),
        "one": (160, 0),
        "two": (320, 0),
    }
    assert [str(made[port].inputs[0]) for port in after.templates["t"].outputs] == ["two:y1", "alone"]
    assert after["end"].inputs == (Source("t_0"),)
    assert after.frames == {}


def test_dissolved_layers_are_moved_to_their_instance_on_both_axes() -> None:
    inside = (
        Layer("x", "template_input", (100, 20), params={"index": "0"}),
        Layer("a", "tiny", (300, 60), (Source("x"),)),
        Layer("y", "template_output", (500, 20), (Source("a", "y1"),), {"index": "0"}),
    )
    graph = Graph(
        [plain("in"), replace(instance("p", "t", "in"), position=(500, 300)), plain("end", "p")],
        templates=[Template("t", inside)],
    )
    after = committed(graph, lambda g: dissolve(g, "p"))
    assert after["p.a"].position == (700, 340)
    assert after["p.a"].inputs == (Source("in"),)
    assert after["end"].inputs == (Source("p.a", "y1"),)


def test_instances_keep_surplus_inputs_and_follow_a_port_renamed_with_a_pasted_template(graph: Graph) -> None:
    graph.apply(Edit("", {"p": (graph["p"], replace(graph["p"], inputs=(*graph["p"].inputs, Source("in"))))}))
    swapped = committed(graph, lambda g: edit_template(g, "pair", move_port(g.inside("pair"), "b", -1)))
    assert [str(s) for s in swapped["p"].inputs] == ["right", "left", "in"]
    inside = graph.inside("pair")
    rename = commands.rename_layer(inside, "second", "other")
    inside.apply(rename)
    both = rename.then(paste_with_templates(inside, [instance("i", "brought")], [Template("brought")]))
    after = committed(graph, lambda g: edit_template(g, "pair", both))
    assert after.templates["pair"].outputs == ("first", "other")
    assert after["reads_second"].inputs == (Source("p", "other"),)
    assert "brought" in after.templates


def test_frames_inside_a_template_are_edited_like_those_of_a_network(graph: Graph) -> None:
    edit = frame_commands.add_frame(graph.inside("pair"), (0, 0, 64, 64), "Note")
    after = committed(graph, lambda g: edit_template(g, "pair", edit))
    assert [frame.title for frame in after.templates["pair"].frames] == ["Note"]
    moved = frame_commands.set_frame(after.inside("pair"), "frame_0", None)
    assert committed(after, lambda g: edit_template(g, "pair", moved)).templates == graph.templates


def test_names_indices_and_places_of_new_ports_and_instances() -> None:
    long = "t" * 128
    layer = new_instance(Graph([plain(f"{'t' * 120}_0")], templates=[Template(long)]), long, (3, 4))
    assert (layer.name, layer.position, layer.params) == (f"{'t' * 120}_1", (3, 4), {"template": long})
    ports = [("c", "10"), ("a", "9"), ("b", "2")]
    inside = Graph([Layer(name, "template_input", params={"index": index}) for name, index in ports])
    assert Template("t", tuple(inside)).inputs == ("b", "a", "c")
    assert new_port(inside, "template_input", (0, 0), {}).params == {"index": "11"}
    assert new_port(inside, "template_output", (0, 0), {}).params == {"index": "0"}
    for name, step, order in (
        ("c", -1, ("b", "c", "a")),
        ("c", -5, ("c", "b", "a")),
        ("b", 1, ("a", "b", "c")),
        ("b", 9, ("a", "c", "b")),
        ("b", -1, ("b", "a", "c")),
        ("c", 1, ("b", "a", "c")),
    ):
        made = inside.copy()
        edit = move_port(made, name, step)
        made.apply(edit)
        assert Template("t", tuple(made)).inputs == order, (name, step)
        assert bool(edit) == (order != ("b", "a", "c"))
    graph = Graph([plain("tiny_0"), plain("a", "tiny_0:y1", "tiny_0")])
    made = committed(graph, lambda g: make_template(g, ["a"], "t"))
    assert made.templates["t"].inputs == ("x_y1", "x")


def test_the_path_of_a_template_that_uses_itself() -> None:
    def uses(name: str, *others: str) -> Template:
        return Template(name, tuple(instance(f"i{n}", other) for n, other in enumerate(others)))

    templates = {t.name: t for t in (uses("a", "x", "b"), uses("b", "c"), uses("c", "d", "a"), uses("x"), uses("d"))}
    assert recursion(templates, "a") == ("a", "b", "c", "a")
    assert recursion(templates, "b") == ("b", "c", "a", "b")
    assert recursion(templates, "x") == ()
    assert would_recur(templates, ["x", "d"], "a") == "x"
    assert would_recur({"a": templates["a"], "b": uses("b", "c"), "c": uses("c")}, ["c"], "a") == "c"
    assert would_recur(templates, ["e"], "a") == ""
    assert enclosing("a.b.c") == ("a.b.c", "a.b", "a")
