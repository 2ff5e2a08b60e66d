"""Comparing two networks: every kind of difference, renames where they are plain, and the text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.graph import commands, frames
from designer.graph.compare import ValueDifference, compare, edit_between, shown
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.graph.template import Template

CONV = {"features": "8", "kernel": "3x3"}


def network() -> Graph:
    return Graph(
        [
            Layer("in", "input", params={"dims": "64x64x3"}),
            Layer("a", "convolution", (320, 0), (Source("in"),), CONV, ActivationSpec("leaky_relu", {"alpha": "0.1"})),
            Layer("b", "convolution", (640, 0), (Source("a"),), CONV),
            Layer("out", "output", (960, 0), (Source("b"),)),
        ]
    )


def edited(*edits) -> Graph:
    graph = network()
    for command in edits:
        graph.apply(command(graph))
    return graph


def test_a_summary_counts_one_and_many():
    one, two = (
        compare(Graph(), Graph(templates=[Template(name, ()) for name in names], frames=[Frame(n) for n in names]))
        for names in (("t",), ("t", "u"))
    )
    assert one.summary() == "1 template; 1 frame"
    assert two.summary() == "2 templates; 2 frames"


def test_equal_networks_have_no_difference():
    found = compare(network(), network())
    assert not found
    assert found.text() == ""
    assert found.summary() == "no differences"


def test_added_and_removed():
    after = edited(
        lambda g: commands.add_layer(g, Layer("new", "identity", (0, 640))),
        lambda g: commands.remove_layers(g, ["b"], heal=True),
    )
    found = compare(network(), after)
    assert (found.added, found.removed, found.renamed) == (("new",), ("b",), {})
    assert found.rewired == {"out": (ValueDifference("input 1", "b", "a"),)}
    assert "+ new (identity)" in found.lines()
    assert "- b (convolution)" in found.lines()
    assert "    input 1: b → a" in found.lines()
    assert found.summary() == "layers: 1 added, 1 removed, 1 changed"


def test_parameters_activation_and_type():
    after = edited(
        lambda g: commands.set_params(g, {"a": {"features": "16"}}),
        lambda g: Edit(
            "x", {"b": (g["b"], replace(g["b"], type="identity", params={"kernel": "3x3", "stride": "2x2"}))}
        ),
        lambda g: Edit(
            "x", {"a": (g["a"], replace(g["a"], activation=ActivationSpec("leaky_relu", {"alpha": "0.2"})))}
        ),
    )
    found = compare(network(), after)
    assert found.changed == {
        "a": (ValueDifference("features", "8", "16"), ValueDifference("activation.alpha", "0.1", "0.2")),
        "b": (
            ValueDifference("type", "convolution", "identity"),
            ValueDifference("features", "8", None),
            ValueDifference("stride", None, "2x2"),
        ),
    }
    assert not found.rewired
    assert "    features: 8 → 16" in found.lines()
    assert "    features: 8 is gone" in found.lines()
    assert "    stride: 2x2 is new" in found.lines()


def test_a_rename_is_seen_and_its_readers_are_not_rewired():
    after = edited(lambda g: commands.rename_layer(g, "a", "first"))
    found = compare(network(), after)
    assert found.renamed == {"a": "first"}
    assert not any((found.added, found.removed, found.rewired, found.changed))
    assert found.lines() == ["= a renamed to first"]


def test_renamed_and_moved_layers_in_a_row_are_seen():
    after = edited(
        lambda g: commands.rename_layer(g, "a", "first"),
        lambda g: commands.rename_layer(g, "b", "second"),
        lambda g: commands.move_layers(g, {"first": (0, 160), "second": (0, 320)}),
    )
    found = compare(network(), after)
    assert found.renamed == {"a": "first", "b": "second"}
    assert found.moved == {"first": ((320, 0), (0, 160)), "second": ((640, 0), (0, 320))}
    assert not found.rewired


def test_where_two_could_be_meant_nothing_counts_as_renamed():
    before = Graph([Layer("in", "input"), Layer("x", "identity", (1, 0), (Source("in"),))])
    after = Graph(
        [
            Layer("in", "input"),
            Layer("y", "identity", (2, 0), (Source("in"),)),
            Layer("z", "identity", (3, 0), (Source("in"),)),
        ]
    )
    found = compare(before, after)
    assert (found.added, found.removed, found.renamed) == (("y", "z"), ("x",), {})


def test_moves_alone_change_nothing_that_counts():
    found = compare(network(), edited(lambda g: commands.move_layers(g, {"a": (0, 160)})))
    assert found
    assert not found.means
    assert found.lines() == ["> a moved from 320,0 to 0,160"]


def test_frames_properties_templates_and_foreign_parts():
    block = Template("block", (Layer("i", "template_input"), Layer("o", "template_output", (320, 0), (Source("i"),))))
    other = Template(
        "block", (Layer("i", "template_input"), Layer("k", "identity", (160, 0), (Source("i"),)), block.layers[1])
    )
    before, after = network(), network()
    before.apply(Edit("x", templates={"block": (None, block), "old": (None, replace(block, name="old"))}))
    after.apply(Edit("x", templates={"block": (None, other), "new": (None, replace(block, name="new"))}))
    before.apply(frames.set_frame(before, "f", Frame("f", "Encoder")))
    after.apply(frames.set_frame(after, "f", Frame("f", "Decoder", "why", "", (16, 0, 320, 160))))
    after.apply(commands.set_property(after, "author_notes", "line\nline"))
    after.foreign = (Foreign("<!-- mine -->"),)
    found = compare(before, after)
    assert found.templates_added == ("new",)
    assert found.templates_removed == ("old",)
    assert found.templates["block"].added == ("k",)
    names = [d.name for d in found.frames]
    assert names == ["Encoder, title", "Encoder, text", "Encoder, place"]
    text = found.text()
    assert "author_notes: line⏎line is new" in text
    assert "<!-- mine -->" in text
    assert "~ template block\n    + k (identity)" in text
    assert found.means


def test_a_collapsed_frame_without_layers_is_a_difference():
    before, after = Graph(frames=[Frame("f", "Note")]), Graph(frames=[Frame("f", "Note", collapsed=True)])
    assert compare(before, after).lines() == ["~ frame Note, collapsed: no → yes"]


def test_another_order_of_what_is_kept_is_a_difference():
    before, after = network(), network()
    before.foreign = (Foreign("<!-- one -->"), Foreign("<!-- two -->"))
    after.foreign = before.foreign[::-1]
    found = compare(before, after)
    assert found
    assert "<!-- two -->⏎<!-- one -->" in found.text()


def test_a_comparison_back_is_the_reverse():
    after = edited(
        lambda g: commands.add_layer(g, Layer("new", "identity", (0, 640))),
        lambda g: commands.rename_layer(g, "a", "first"),
        lambda g: commands.set_params(g, {"b": {"features": "16"}}),
    )
    forth, back = compare(network(), after), compare(after, network())
    assert (forth.added, forth.removed) == (back.removed, back.added)
    assert {new: old for old, new in forth.renamed.items()} == dict(back.renamed)
    assert forth.changed["b"] == tuple(ValueDifference(d.name, d.after, d.before) for d in back.changed["b"])


def test_the_edit_between_two_networks_leads_there_and_back():
    after = edited(
        lambda g: commands.add_layer(g, Layer("new", "identity", (0, 640))),
        lambda g: commands.rename_layer(g, "a", "first"),
        lambda g: commands.set_params(g, {"b": {"features": "16"}}),
        lambda g: frames.set_frame(g, "f", Frame("f", "Encoder")),
        lambda g: commands.set_property(g, "author_notes", "mine"),
        lambda g: Edit("x", templates={"block": (None, Template("block"))}),
    )
    graph = network()
    edit = edit_between(graph, after, "Reload")
    assert edit.renamed == {"a": "first"}
    graph.apply(edit)
    assert graph == after
    graph.apply(edit.reversed())
    assert graph == network()
    assert not edit_between(graph, network(), "Nothing")
    after.foreign = (Foreign("<!-- mine -->"),)
    assert edit_between(graph, after, "Reload") is None


def test_a_whole_network_under_other_names_in_other_places():
    def chain(prefix: str, y: int) -> Graph:
        layers = [Layer("in", "input")]
        for number in range(60):
            source = (Source(layers[-1].name),)
            layers.append(Layer(f"{prefix}{number}", "convolution", (number * 320, y), source, CONV))
        return Graph(layers)

    found = compare(chain("a", 0), chain("b", 16))
    assert found.renamed == {f"a{n}": f"b{n}" for n in range(60)}
    assert not found.added
    assert not found.rewired


def test_the_inside_of_a_template_that_only_moved_means_nothing():
    def with_template(place: int, *frames: Frame) -> Graph:
        graph = network()
        inside = Template("block", (Layer("k", "identity", (place, 0)),), frames=frames)
        graph.apply(Edit("x", templates={"block": (None, inside)}))
        return graph

    found = compare(with_template(0), with_template(320))
    assert found
    assert not found.means
    assert not found.without_moves()
    framed = compare(with_template(0), with_template(0, Frame("f", "Inside")))
    assert "~ template block\n    ~ frame Inside: frame is new" in framed.text()
    assert framed.without_moves()


def test_the_order_of_what_a_template_has_is_not_part_of_it():
    layers = [Layer(name, "identity") for name in "ab"]
    frames_ = [Frame(name, name) for name in "fg"]
    one = Graph(templates=[Template("block", tuple(layers), frames=tuple(frames_))])
    two = Graph(templates=[Template("block", tuple(reversed(layers)), frames=tuple(reversed(frames_)))])
    assert one == two
    assert not compare(one, two)
    assert [frame.id for frame in two.templates["block"].frames] == ["f", "g"]


def layer(**changes) -> Layer:
    return replace(Layer("a", "relu"), **changes)


def difference(before: Layer, after: Layer) -> list[str]:
    found = compare(Graph([before]), Graph([after]))
    return [str(each) for each in (*found.changed.get("a", ()), *found.rewired.get("a", ()))]


SPEC = ActivationSpec("leaky_relu", {"alpha": "0.1"}, {"lw:x": "1"}, (Foreign("<one/>"),))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (layer(activation=None), layer(activation=SPEC), ["activation: leaky_relu is new"]),
        (layer(activation=SPEC), layer(activation=None), ["activation: leaky_relu is gone"]),
        (layer(activation=SPEC), layer(activation=ActivationSpec("elu")), ["activation: leaky_relu → elu"]),
        (
            layer(activation=SPEC),
            layer(activation=replace(SPEC, params={"alpha": "0.2"}, attributes={}, children=(Foreign("<two/>"),))),
            [
                "activation.alpha: 0.1 → 0.2",
                "activation.lw:x: 1 is gone",
                "activation: kept element: <one/> is gone",
                "activation: kept element: <two/> is new",
            ],
        ),
        (layer(children=(Foreign("<x/>"),)), layer(), ["kept element: <x/> is gone"]),
        (layer(), layer(children=(Foreign("<x/>"),)), ["kept element: <x/> is new"]),
        (
            layer(children=(Foreign("<x/>"), Foreign("<y/>"))),
            layer(children=(Foreign("<y/>"), Foreign("<x/>"))),
            ["kept element: <x/>⏎<y/> → <y/>⏎<x/>"],
        ),
        (layer(inputs=()), layer(inputs=(None, Source("b", "y"))), ["input 2: b:y is new"]),
        (layer(inputs=(Source("b"), Source("c"))), layer(inputs=(Source("b"),)), ["input 2: c is gone"]),
        (layer(inputs=(Source("b"),)), layer(inputs=(Source("b", "y"),)), ["input 1: b → b:y"]),
        (layer(type="elu"), layer(params={"p": ""}), ["type: elu → relu", "p: (empty) is new"]),
    ],
)  # fmt: skip
def test_every_difference_of_a_layer_is_named(before: Layer, after: Layer, expected: list[str]) -> None:
    assert difference(before, after) == expected


def test_every_difference_of_frames_is_named():
    one, other = Frame("f", "Old", "text", "#fff", (1, 2, 3, 4)), Frame("f", "New", "more", "#000", (1, 2, 3, 5))
    found = compare(Graph(frames=[one, Frame("gone")]), Graph(frames=[other, Frame("new", "Fresh")]))
    assert [str(each) for each in found.frames] == [
        "Old, title: Old → New",
        "Old, text: text → more",
        "Old, color: #fff → #000",
        "Old, place: 1,2 3x4 → 1,2 3x5",
        f"{Frame('gone').title or 'gone'}: frame is gone",
        "Fresh: frame is new",
    ]


def test_long_and_empty_values_are_shown_in_one_line():
    assert shown(None) == shown("") == "(empty)"
    assert shown("x" * 60) == "x" * 60
    assert shown("x" * 61) == "x" * 57 + "..."
    assert shown("a\nb") == "a⏎b"


def test_a_new_copy_of_a_layer_that_is_still_there_is_not_a_rename():
    before = Graph([Layer("a", "relu", (0, 0)), Layer("b", "elu", (9, 9), (Source("a"),))])
    after = Graph([Layer("a", "relu", (5, 5)), Layer("z", "relu", (0, 0))])
    found = compare(before, after)
    assert (found.added, found.removed, found.renamed) == (("z",), ("b",), {})
    assert found.moved == {"a": ((0, 0), (5, 5))}
    assert found.types == {"z": "relu", "b": "elu"}
    assert found.summary() == "layers: 1 added, 1 removed, 1 moved"


def test_what_only_moved_means_nothing():
    moved = compare(Graph([Layer("a", "t")]), Graph([Layer("a", "t", (1, 0))]))
    assert moved
    assert not moved.means
    assert not moved.without_moves()
    template = Template("t", (Layer("x", "t"),))
    inside = compare(
        Graph(templates=[template]), Graph(templates=[replace(template, layers=(Layer("x", "t", (1, 0)),))])
    )
    assert inside
    assert not inside.means
    assert not inside.without_moves()
    deeper = compare(
        Graph(templates=[template]), Graph(templates=[replace(template, layers=(Layer("x", "u", (1, 0)),))])
    )
    assert deeper.means
    assert deeper.without_moves().templates["t"].moved == {}
    assert deeper.text() == "~ template t\n    ~ x\n        type: t → u\n    > x moved from 0,0 to 1,0\n"


def test_a_layer_that_differs_in_several_ways_counts_once():
    after = edited(
        lambda g: commands.rename_layer(g, "a", "first"),
        lambda g: commands.set_params(g, {"b": {"features": "16"}}),
        lambda g: commands.connect(g, Source("in"), "b", 0),
        lambda g: commands.move_layers(g, {"b": (0, 160)}),
    )
    found = compare(network(), after)
    assert found.rewired == {"b": (ValueDifference("input 1", "a", "in"),)}  # the old name of a renamed producer
    assert found.summary() == "layers: 1 renamed, 1 changed, 1 moved"
    assert found.lines() == [
        "= a renamed to first",
        "~ b",
        "    features: 8 → 16",
        "    input 1: a → in",
        "> b moved from 640,0 to 0,160",
    ]


def test_templates_whose_contents_differ_are_counted():
    one = Graph(templates=[Template("t", (Layer("x", "relu"),)), Template("u"), Template("gone")])
    other = Graph(templates=[Template("t", (Layer("x", "elu"),)), Template("u")])
    assert compare(one, other).summary() == "2 templates"
    assert compare(one, other).templates.keys() == {"t"}


@pytest.mark.parametrize("count", [(2, 1), (1, 2), (2, 2)])
def test_equal_layers_without_a_plain_partner_are_not_renamed(count: tuple[int, int]):
    """Neither by their inputs nor, where several are at one position, by that."""
    for place in (lambda number: (number, 0), lambda number: (0, 0)):
        before, after = (
            Graph(
                [
                    Layer("in", "input"),
                    *(Layer(f"{name}{i}", "relu", place(i + start), (Source("in"),)) for i in range(n)),
                ]
            )
            for name, n, start in zip("xy", count, (0, 9), strict=True)
        )
        found = compare(before, after)
        assert not found.renamed
        assert (len(found.removed), len(found.added)) == count


def test_templates_that_came_went_or_changed_mean_something_beside_those_that_only_moved():
    def template(name: str, kind: str = "t", place: int = 0) -> Template:
        return Template(name, (Layer("x", kind, (place, 0)),))

    one, two = Graph(templates=[template("a")]), Graph(templates=[template("a"), template("b")])
    for before, after, text in ((one, two, "+ template b\n"), (two, one, "- template b\n")):
        found = compare(before, after)
        assert found.means
        assert found.without_moves().text() == found.text() == text
    for moved, changed in (("a", "b"), ("b", "a")):
        found = compare(two, Graph(templates=[template(moved, place=9), template(changed, "u")]))
        assert found.means
        assert list(found.templates) == ["a", "b"]
        assert found.without_moves().text() == f"~ template {changed}\n    ~ x\n        type: t → u\n"


def test_renamed_layers_are_followed_to_all_their_readers():
    def tree(prefix: str) -> Graph:
        def made(name: str, kind: str, *inputs: str) -> Layer:
            return Layer(prefix + name, kind, inputs=tuple(Source(prefix + each) for each in inputs))

        return Graph(
            [made("root", "input"), made("l", "relu", "root"), made("r", "relu", "l"), made("s", "elu", "l"),
             made("t", "relu", "r"), made("u", "relu", "s"), made("v", "add", "u", "t")]
        )  # fmt: skip

    before, after = tree("old "), tree("new ")
    for place, each in enumerate(after):  # only the inputs tell the layers of one type apart
        after.apply(commands.move_layers(after, {each.name: (16 * (9 - place), 32)}))
    found = compare(before, after)
    assert found.renamed == {f"old {name}": f"new {name}" for name in ("root", "l", "r", "s", "t", "u", "v")}
    assert not any((found.added, found.removed, found.changed, found.rewired))
