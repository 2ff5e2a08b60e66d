"""Which fixes are offered for images that are not square, in their order, and with which numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_fixes import end, image, layer, offered

from designer.graph.graph import Graph
from designer.graph.model import GRID
from designer.operators.fix_texts import nearest

TALL = [image(dims="32x12x3"), image("small", "8x6x3"), layer("x", "element_wise", "in", "small"), *end("x")]


def made(layers, code="shape-mismatch") -> dict[str, dict[str, tuple[str, ...]]]:
    """The parameters that differ from the network before, by title and layer."""
    return {
        fix.title: {
            name: {k: v for k, v in after.params.items() if before is None or before.params.get(k) != v}
            for name, (before, after) in fix.edit.layers.items()
            if after is not None and (before is None or before.params != after.params)
        }
        for fix in offered(Graph(layers), code)
    }


CASES = {
    "one size is a multiple of the other": (
        TALL,
        {
            "Upsample 'small' by 4x2": {"factor": "4x2"},
            "Pool 'in' by 4x2": {"size": "4x2", "stride": "4x2"},
            "Crop 'in' to the size of 'small'": {},
            "Pad 'small' to the size of 'in'": {"top": "3", "bottom": "3", "left": "12", "right": "12"},
            "Resize 'small' to 32x12": {"size": "32x12"},
            "Resize 'in' to 8x6": {"size": "8x6"},
        },
    ),
    "neither covers the other": (
        [image(dims="32x12x3"), image("small", "8x16x3"), layer("x", "element_wise", "in", "small"), *end("x")],
        {"Resize 'small' to 32x12": {"size": "32x12"}, "Resize 'in' to 8x16": {"size": "8x16"}},
    ),
    "odd differences": (
        [image("small", "15x7x3"), image(dims="20x12x3"), layer("x", "element_wise", "small", "in"), *end("x")],
        {
            "Crop 'in' to the size of 'small'": {},
            "Pad 'small' to the size of 'in'": {"top": "2", "bottom": "3", "left": "2", "right": "3"},
            "Resize 'small' to 20x12": {"size": "20x12"},
            "Resize 'in' to 15x7": {"size": "15x7"},
        },
    ),
    "channels": (
        [
            image(),
            layer("c", "convolution", "in", features="8"),
            layer("i", "identity", "c"),
            layer("x", "element_wise", "in", "i"),
            *end("x"),
        ],
        {
            "Set the features of 'c' to 3, as 'in' has": {"features": "3"},
            "Insert a 1x1 convolution that gives 'i' 3 channels": {"features": "3", "kernel": "1x1"},
            "Insert a 1x1 convolution that gives 'in' 8 channels": {"features": "8", "kernel": "1x1"},
        },
    ),
    "vectors": (
        [
            image(),
            layer("f", "flatten", "in"),
            layer("g", "fully_connected", "f", features="5"),
            layer("h", "fully_connected", "f", features="7"),
            layer("x", "element_wise", "g", "h"),
            *end("x"),
        ],
        {
            "Set the features of 'h' to 5, as 'g' has": {"features": "5"},
            "Set the features of 'g' to 7, as 'h' has": {"features": "7"},
            "Insert a fully connected layer that gives 'h' 5 values": {"features": "5"},
            "Insert a fully connected layer that gives 'g' 7 values": {"features": "7"},
        },
    ),
    "two missing axes": (
        [image(), layer("f", "flatten", "in"), layer("c", "convolution", "f"), *end("c")],
        {"Reshape 'f' to rank 4": {"shape": "576,1,1"}},
    ),
    "one axis too many": (
        [
            layer("in", "tensor_input", shape="5,1,8"),
            layer("a", "multi_head_attention", "in", heads="2"),
            layer("out", "output", "a", analysis_view="tensor"),
        ],
        {
            "Squeeze 'in' to rank 3": {"axes": "2"},
            "Flatten 'in' to rank 3": {"start_axis": "2", "end_axis": "-1"},
        },
    ),
    "one axis too many behind a batch of one": (
        [
            layer("in", "tensor_input", shape="1,5,1,8", batch="false"),
            layer("a", "multi_head_attention", "in", heads="2"),
            layer("out", "output", "a", analysis_view="tensor"),
        ],
        {
            "Squeeze 'in' to rank 3": {"axes": "2"},
            "Flatten 'in' to rank 3": {"start_axis": "2", "end_axis": "-1"},
        },
    ),
    "one missing axis": (
        [image(), layer("f", "flatten", "in", start_axis="1", end_axis="2"), layer("c", "convolution", "f"), *end("c")],
        {"Give 'f' a new axis 1": {"axis": "1"}},
    ),
    "groups of a normalization": (
        [image(dims="16x12x6"), layer("g", "group_normalization", "in", groups="4"), *end("g")],
        {"Set groups to 3": {"groups": "3"}, "Set groups to 2": {"groups": "2"}},
    ),
    "groups and features": (
        [image(dims="16x12x6"), layer("c", "convolution", "in", groups="3", features="8"), *end("c")],
        {
            "Set features to 9": {"features": "9"},
            "Set groups to 2": {"groups": "2"},
            "Reset groups to 1": {"groups": "1"},
        },
    ),
    "window": (
        [image(), layer("c", "convolution", "in", kernel="5x31", padding="valid"), *end("c")],
        {
            "Set padding to same": {"padding": "same"},
            "Set kernel to 5x12": {"kernel": "5x12"},
            "Reset kernel to 3x3": {"kernel": "3x3"},
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fixes_of_shapes_in_their_order(case):
    layers, expected = CASES[case]
    found = made(layers)
    assert list(found) == list(expected)
    for title, wanted in expected.items():
        (params,) = found[title].values()
        assert {name: params[name] for name in wanted} == wanted


def test_inserted_layers_read_what_was_read_and_those_behind_make_room():
    layers = [replace(each, position=(480 * (each.name != "in"), 64 * (each.name == "x"))) for each in TALL]
    graph = Graph(layers)
    for fix in offered(graph, "shape-mismatch"):
        new = next(after for before, after in fix.edit.layers.values() if before is None)
        (link,) = [index for index, s in enumerate(fix.edit.layers["x"][1].inputs) if s.layer == new.name]
        assert new.inputs[0] == graph["x"].inputs[link]
        assert fix.edit.layers["x"][1].inputs[1 - link] == graph["x"].inputs[1 - link]
        start = graph[new.inputs[0].layer].position[0]
        assert new.position[0] >= start + 18 * GRID
        run = fix.edit.layers["x"][1].position[0] - 480
        assert run == max(0, new.position[0] + 18 * GRID - 480)
        if run:
            assert fix.edit.layers["out_0"][1].position[0] == 480 + run


def test_an_output_is_added_right_of_its_layer():
    ends = [replace(layer(name, "convolution", "in"), position=place) for name, place in
            (("a", (320, 48)), ("b", (640, -32)))]  # fmt: skip
    fixes = offered(Graph([image(), *ends]), "no-output")
    assert [fix.title for fix in fixes] == ["Add an output after 'b'", "Add an output after 'a'"]
    added = fixes[0].edit.layers["output_0"][1]
    assert (added.position, [str(s) for s in added.inputs]) == ((640 + 18 * GRID, -32), ["b"])


def test_an_output_of_a_loss_is_not_offered():
    layers = [image(), image("target"), layer("loss", "l1_loss", "in", "target")]
    titles = [fix.title for fix in offered(Graph(layers), "only-training")]
    assert titles == []


def test_a_network_that_can_only_train_gets_an_output():
    layers = [
        image(), image("clean"), layer("net", "convolution", "in", features="3"), layer("loss", "l1_loss", "net", "clean"),
        layer("unread", "identity", "net"),
    ]  # fmt: skip
    assert [fix.title for fix in offered(Graph(layers), "only-training")] == ["Add an output after 'unread'"]


def test_of_unknown_outputs_only_their_links_are_removed():
    layers = [
        image(dims="16x12x4"),
        layer("s", "split", "in", parts="2"),
        layer("x", "concatenation", "s:y1", "s:none", "in"),
        *end("x"),
    ]
    titles = [fix.title for fix in offered(Graph(layers), "unknown-port")]
    assert [t for t in titles if t.startswith("Remove")] == ["Remove the connection from 's:none'"]


def test_what_is_read_already_is_offered_only_if_nothing_is_free_and_one_fits():
    conv = layer("c", "convolution", "in", features="3")
    used = [image(), conv, layer("m", "modulo", "c"), *end("m")]
    assert [f.title for f in offered(Graph(used), "missing-input")] == ["Connect 'in' to 'b'"]
    assert [f.title for f in offered(Graph([*used, image("free")]), "missing-input")] == ["Connect 'free' to 'b'"]
    two = [image(), conv, layer("d", "identity", "in"), layer("m", "modulo", "c")]
    two += [layer("s", "element_wise", "m", "d"), *end("s")]
    assert offered(Graph(two), "missing-input") == ()


@pytest.mark.parametrize(
    ("read", "offered_"),
    [
        ("", ["s", "s:y1", "s:y2"]),
        ("s", ["s:y1", "s:y2"]),
        ("s:y1", ["s", "s:y2"]),
        ("s:y1 s:y2", ["s"]),
        ("s s:y1 s:y2", []),  # several are read already, so that none is meant
    ],
)
def test_each_output_of_a_layer_is_free_by_itself(read, offered_):
    """`m` lacks its second input, and what it reads first is read by nothing else."""
    layers = [image(dims="16x12x9"), layer("s", "split", "in", parts="3")]
    ends = []
    for number, source in enumerate(read.split()):
        layers.append(layer(f"r{number}", "identity", source))
        ends += end(f"r{number}")
    layers += [image("own", "16x12x3"), layer("m", "modulo", "own"), *end("m")]
    layers += [replace(each, name=f"end_{number}") for number, each in enumerate(ends)]
    found = [fix.title for fix in offered(Graph(layers), "missing-input")]
    assert found == [f"Connect '{source}' to 'b'" for source in offered_]


@pytest.mark.parametrize(
    ("read", "meant", "free"),
    [
        ("splt", ["split", "split_b"], ["split:y1"]),
        ("splt:y1", ["split:y1", "split_b:y1"], ["split", "split_b"]),
        ("splt:y2", ["split", "split_b:y2"], ["split:y1", "split_b"]),  # the first has no such output
        ("splt:z", ["split", "split_b"], ["split:y1"]),
        ("split_bb:y1", ["split_b:y1", "split:y1"], ["split", "split_b"]),
        ("behin:y1", [], ["split", "split:y1", "split_b"]),  # a link from there would close a loop
    ],
)
def test_a_link_to_a_misspelt_layer_reads_the_same_output_of_the_one_that_is_meant(read, meant, free):
    layers = [
        image(dims="16x12x12"),
        layer("split", "split", "in", parts="2"),
        layer("split_b", "split", "in", parts="3"),
        layer("it", "concatenation", "in", read),
        layer("behind", "split", "it", parts="2"),
        *end("behind"),
    ]
    found = {fix.title: fix.edit.layers["it"][1].inputs for fix in offered(Graph(layers), "unknown-source")}
    expected = {f"Read '{source}' instead of '{read}'": f"in {source}" for source in meant}
    expected |= {f"Connect '{source}' to 'x'": f"in {source}" for source in free}
    expected[f"Remove the connection from '{read}'"] = "in"
    assert [(title, " ".join(map(str, inputs))) for title, inputs in found.items()] == list(expected.items())


def test_one_number_is_a_square_but_no_cube():
    for kind, shape, text, square in (("convolution", "3,8,8", "5", True), ("convolution_3d", "3,8,8,8", "5", False)):
        layers = [layer("in", "tensor_input", shape=shape), layer("c", kind, "in", kernel=text), *end("c")]
        titles = [fix.title for fix in offered(Graph(layers), "bad-parameter")]
        assert ("Set kernel to 5x5" in titles) == square
        assert not any("5x5x5" in title for title in titles)
        assert titles[-1] == f"Reset kernel to {'3x3' if square else '3x3x3'}"


@pytest.mark.parametrize(
    ("word", "names", "meant"),
    [
        ("relu", ["relu6", "relu"], ["relu"]),
        ("rel", ["relu6", "tanh", "relu"], ["relu", "relu6"]),  # the most similar first
        ("relu_of_another_program", ["gelu", "relu", "tanh"], ["relu"]),  # the word begins with the name
        ("re", ["reshape_or_else", "gelu"], ["reshape_or_else"]),  # the name begins with the word
        ("conv", ["conv_dddd", "conv_bb", "conv_ccc", "conv_a"], ["conv_a", "conv_bb", "conv_ccc"]),  # three at most
        ("xyz", ["relu"], []),
        ("", ["relu"], []),
        ("relu", [], []),
    ],
)
def test_the_names_that_a_word_may_mean(word, names, meant):
    assert nearest(word, names) == meant
