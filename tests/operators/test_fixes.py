"""Fixes of type checking: each kind on a network that has its problem, and random networks that never get worse."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from gettext import NullTranslations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer import texts
from designer.graph.diagnostics import Severity
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.fixes import Fix, fixes, key
from designer.operators.registry import default_registry
from designer.operators.training_branch import missing_output

REGISTRY = default_registry()


def source(text: str) -> Source:
    return Source.parse(text)


def layer(
    name: str, type_name: str, *inputs: str | None, activation: ActivationSpec | None = None, **params: str
) -> Layer:
    return Layer(
        name,
        type_name,
        inputs=tuple(source(i) if i is not None else None for i in inputs),
        params=params,
        activation=activation,
    )


def image(name: str = "in", dims: str = "16x12x3") -> Layer:
    return layer(name, "input", dims=dims, tiling="1")


def end(*names: str) -> list[Layer]:
    return [layer(f"out_{i}", "output", name) for i, name in enumerate(names)]


HALF = {"size": "2x2", "stride": "2x2"}
MISSPELT = layer("c", "convolution", "in", padding="sane")
OTHER_SIZE = [image(), image("big", "17x13x3"), layer("x", "concatenation", "in", "big"), *end("x")]
SCALED = [image(), layer("p", "pooling", "in", **HALF), layer("x", "concatenation", "in", "p"), *end("x")]
FEATURES = [image(), layer("c", "convolution", "in", features="8"), layer("x", "element_wise", "in", "c"), *end("x")]
PART = Template("part", (layer("a", "template_input"), layer("b", "template_output", "a")))

# (layers, templates, code of the finding, one of the fixes that are offered)
CASES = {
    "crop": (OTHER_SIZE, "shape-mismatch", "Crop 'big' to the size of 'in'"),
    "pad": (OTHER_SIZE, "shape-mismatch", "Pad 'in' to the size of 'big'"),
    "resize": (OTHER_SIZE, "shape-mismatch", "Resize 'in' to 17x13"),
    "upsample": (SCALED, "shape-mismatch", "Upsample 'p' by 2x2"),
    "pool": (SCALED, "shape-mismatch", "Pool 'in' by 2x2"),
    "drop": (OTHER_SIZE, "shape-mismatch", "Remove the connection from 'big'"),
    "factor": (
        [
            image(),
            layer("p", "pooling", "in", size="4x4", stride="4x4"),
            layer("x", "upscale_concat", "p", "in", factor="2x2"),
            *end("x"),
        ],
        "shape-mismatch",
        "Set factor to 4x4",
    ),
    "features": (
        [
            image(),
            layer("a", "convolution", "in", features="8"),
            layer("b", "convolution", "in", features="16"),
            layer("r", "identity", "b"),
            layer("x", "element_wise", "a", "r"),
            *end("x"),
        ],
        "shape-mismatch",
        "Set the features of 'b' to 8, as 'a' has",
    ),
    "1x1 convolution": (FEATURES, "shape-mismatch", "Insert a 1x1 convolution that gives 'in' 8 channels"),
    "flatten": (
        [image(), layer("l", "lstm", "in"), *end("l")],
        "shape-mismatch",
        "Flatten 'in' to rank 3",
    ),
    "convert": (
        [image(), layer("w", "compare", "in", "in"), layer("c", "convolution", "w"), *end("c")],
        "shape-mismatch",
        "Convert 'w' to float32",
    ),
    "window": (
        [image(), layer("c", "convolution", "in", kernel="31x31", padding="valid"), *end("c")],
        "shape-mismatch",
        "Set padding to same",
    ),
    "smaller window": (
        [image(), layer("p", "pooling", "in", size="40x40", stride="1x1"), *end("p")],
        "shape-mismatch",
        "Set size to 16x12",
    ),
    "groups": (
        [image(), layer("c", "convolution", "in", features="6", groups="2"), *end("c")],
        "shape-mismatch",
        "Set groups to 3",
    ),
    "blocks": (
        [image(dims="15x12x3"), layer("s", "space_to_depth", "in"), *end("s")],
        "shape-mismatch",
        "Pad 'in' to a multiple of 2",
    ),
    "axis": (
        [image(), layer("x", "concatenation", "in", "in", axis="6"), *end("x")],
        "shape-mismatch",
        "Set axis to 3",
    ),
    "surplus": (
        [image(), layer("c", "convolution", "in", "in"), *end("c")],
        "shape-mismatch",
        "Remove the connection from 'in'",
    ),
    "nearest number": (
        [image(), layer("c", "convolution", "in", features="0"), *end("c")],
        "bad-parameter",
        "Set features to 1",
    ),
    "one number for a size": (
        [image(), layer("c", "convolution", "in", kernel="5"), *end("c")],
        "bad-parameter",
        "Set kernel to 5x5",
    ),
    "nearest choice": ([image(), MISSPELT, *end("c")], "bad-parameter", "Set padding to same"),
    "truth value": (
        [image(), layer("c", "convolution", "in", apply_bias="yes"), *end("c")],
        "bad-parameter",
        "Set apply bias to true",
    ),
    "reset": (
        [image(), layer("c", "convolution", "in", features="many"), *end("c")],
        "bad-parameter",
        "Reset features to 32",
    ),
    "odd": (
        [image(), layer("g", "gaussian_blur", "in", size="4"), *end("g")],
        "shape-mismatch",
        "Set size to 5",
    ),
    "parameter of the activation": (
        [
            image(),
            layer("c", "convolution", "in", activation=ActivationSpec("leaky_relu", {"negative_slope": "steep"})),
            *end("c"),
        ],
        "bad-parameter",
        "Reset negative slope to 0.01 of the activation",
    ),
    "unknown parameter": (
        [image(), layer("c", "convolution", "in", featurs="8"), *end("c")],
        "unknown-parameter",
        "Rename 'featurs' to 'features'",
    ),
    "parameter of nothing": (
        [image(), layer("c", "convolution", "in", zzz="8"), *end("c")],
        "unknown-parameter",
        "Remove 'zzz'",
    ),
    "unknown activation": (
        [image(), layer("c", "convolution", "in", activation=ActivationSpec("leakyrelu")), *end("c")],
        "unknown-activation",
        "Use Leaky ReLU instead",
    ),
    "no activation": ([image(), layer("a", "activation", "in"), *end("a")], "no-activation", "Attach ReLU"),
    "template input outside": (
        [image(), layer("t", "template_input"), *end("in", "t")],
        "outside-template",
        "Make it an input of the network",
    ),
    "activation on analysis": (
        [image(), layer("n", "noise", "in", activation=ActivationSpec("relu")), *end("n")],
        "activation-on-analysis",
        "Remove the activation",
    ),
    "unknown operator": (
        [image(), layer("c", "conv2d", "in", features="8"), *end("c")],
        "unknown-operator",
        "Change its type to 'convolution'",
    ),
    "connect": (
        [image(), layer("c", "convolution"), *end("c")],
        "missing-input",
        "Connect 'in' to 'x'",
    ),
    "connect the last port": (
        [image(), image("other"), layer("m", "modulo", "in"), *end("m")],
        "missing-input",
        "Connect 'other' to 'b'",
    ),
    "open port": (
        [image(), layer("x", "element_wise", None, "in", "in"), *end("x")],
        "missing-input",
        "Move the connections up to the open port",
    ),
    "unknown source": (
        [image("input_0"), layer("c", "convolution", "inptu_0"), *end("c")],
        "unknown-source",
        "Read 'input_0' instead of 'inptu_0'",
    ),
    "lost source": (
        [image(), layer("x", "concatenation", "in", "gone"), *end("x")],
        "unknown-source",
        "Remove the connection from 'gone'",
    ),
    "unknown port": (
        [image(), layer("c", "convolution", "in:z"), *end("c")],
        "unknown-port",
        "Read the output",
    ),
    "loop": (
        [
            image(),
            layer("a", "element_wise", "in", "in", "b"),
            layer("b", "convolution", "a", features="3"),
            *end("b"),
        ],
        "cycle",
        "Remove the connection from 'b'",
    ),
    "no output": (
        [image(), layer("c", "convolution", "in")],
        "no-output",
        "Add an output after 'c'",
    ),
    "unknown template": (
        [image(), layer("t", "template", "in", template="prat"), *end("t")],
        "unknown-template",
        "Use the template 'part'",
    ),
}  # fmt: skip


def findings(graph: Graph) -> list:
    silent = missing_output(graph, REGISTRY)
    return [*Inference(graph, REGISTRY).diagnostics(), *([silent] if silent is not None else [])]


def keys(graph: Graph) -> Counter:
    return Counter(key(d) for d in findings(graph))


def offered(graph: Graph, code: str) -> tuple[Fix, ...]:
    finding = next(d for d in findings(graph) if d.code == code)
    return fixes(graph, REGISTRY, Inference(graph, REGISTRY), finding)


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_fix(case):
    layers, code, title = CASES[case]
    graph = Graph(layers, templates=[PART])
    before, start = keys(graph), graph.copy()
    found = offered(graph, code)
    assert graph == start  # trying changes nothing
    chosen = [fix for fix in found if fix.title.startswith(title)]
    assert chosen, [fix.title for fix in found]
    for fix in found:
        trial = graph.copy()
        history = History(trial)
        history.commit(fix.edit)
        after = keys(trial)
        assert after.total() < before.total(), fix.title
        assert not [k for k in after if k not in before and k[0] != "missing-input"], fix.title
        assert history.undo_title == fix.title
        history.undo()
        assert trial == start
    assert len({fix.title for fix in found}) == len(found)


def test_a_finding_that_is_gone_has_no_fix():
    graph = Graph([image(), layer("c", "convolution", "in", features="0"), *end("c")])
    finding = findings(graph)[0]
    mended = Graph([image(), layer("c", "convolution", "in", features="1"), *end("c")])
    assert fixes(mended, REGISTRY, Inference(mended, REGISTRY), finding) == ()


def test_one_of_two_equal_findings_can_be_fixed_alone():
    unknown = {"foo": "1"}
    graph = Graph([image(), layer("x", "convolution", "in", activation=ActivationSpec("relu", unknown), **unknown)])
    twice = [d for d in findings(graph) if d.code == "unknown-parameter"]
    assert len(twice) == 2
    assert len({key(d) for d in twice}) == 1
    titles = [fix.title for fix in offered(graph, "unknown-parameter")]
    assert titles == ["Remove 'foo'", "Remove 'foo' of the activation"]


def test_nothing_is_offered_that_breaks_another_layer():
    """Another number of features would help the sum, but a target of a fixed size behind it reads them too."""
    layers = [
        image(),
        layer("c", "convolution", "in", features="8"),
        layer("fixed", "element_wise", "c", "eight"),
        layer("eight", "input", dims="16x12x8", tiling="1"),
        layer("x", "element_wise", "in", "c"),
        *end("x", "fixed"),
    ]
    titles = [fix.title for fix in offered(Graph(layers), "shape-mismatch")]
    assert not [t for t in titles if t.startswith("Set the features")]
    assert [t for t in titles if t.startswith("Insert a 1x1")]


def test_inserted_layers_stand_between_and_get_free_names():
    graph = Graph([*OTHER_SIZE, layer("crop_0", "identity", "in")])
    fix = next(f for f in offered(graph, "shape-mismatch") if f.title.startswith("Crop"))
    added = [after for before, after in fix.edit.layers.values() if before is None]
    assert [a.name for a in added] == ["crop_1"]
    assert all(c % 16 == 0 for c in added[0].position)


def test_the_three_nearest_outputs_are_suggested_for_an_open_port():
    sources = [replace(image(f"in_{distance}"), position=(-100 * distance, 0)) for distance in (4, 2, 5, 3, 1)]
    graph = Graph([*sources, layer("x", "modulo", "in_5"), *end("x")])
    titles = [fix.title for fix in offered(graph, "missing-input")]
    assert titles == [f"Connect 'in_{distance}' to 'b'" for distance in (1, 2, 3)]


def test_an_output_layer_is_not_suggested_for_an_open_port():
    new = layer("new", "convolution")
    assert [f.title for f in offered(Graph([image(), *end("in"), new]), "missing-input")] == ["Connect 'in' to 'x'"]
    two = Graph([image(), layer("c", "convolution", "in"), *end("c"), new])  # either of the two that are read
    assert not [f for f in offered(two, "missing-input") if f.title.startswith("Connect")]


def test_the_first_three_outputs_of_a_layer_are_suggested_for_an_unknown_one():
    graph = Graph(
        [image(dims="16x12x6"), layer("s", "split", "in", parts="6"), layer("c", "convolution", "s:rest"), *end("c")]
    )
    titles = [fix.title for fix in offered(graph, "unknown-port")]
    assert [title for title in titles if title.startswith("Read")] == [
        f"Read the output 'y{number}' of 's'" for number in range(3)
    ]


TYPES = sorted(cls.type for cls in REGISTRY if cls.category.value not in ("Analysis", "Training"))
TEXTS = st.sampled_from(
    ["0", "1", "2", "3", "7", "-1", "3x3", "2x2", "99x99", "same", "valid", "true", "add", "x", "1,2"]
)


@st.composite
def networks(draw):
    """Networks of any operators, with any texts, half of whose links do not fit."""
    layers = [image(), image("other", "9x7x4")]
    for number in range(draw(st.integers(1, 5))):
        cls = REGISTRY.get(draw(st.sampled_from(TYPES)))
        names = [x.name for x in layers] + ["gone"]
        count = draw(st.integers(0, 3))
        inputs = tuple(draw(st.sampled_from(["", *names])) or None for _ in range(count))
        params = dict(cls().texts(all=False))
        for parameter in cls.parameters:
            if draw(st.integers(0, 3)) == 0:
                params[parameter.name] = draw(TEXTS)
        layers.append(layer(f"l{number}", cls.type, *inputs, **params))
    return Graph(layers)


@settings(max_examples=60, deadline=None)
@given(networks())
def test_a_fix_never_makes_a_network_worse(graph):
    inference = Inference(graph, REGISTRY)
    before, start = keys(graph), graph.copy()
    for finding in findings(graph)[:4]:
        for fix in fixes(graph, REGISTRY, inference, finding):
            trial = graph.copy()
            trial.apply(fix.edit)
            after = keys(trial)
            assert after.total() < before.total(), fix.title
            assert after[key(finding)] < before[key(finding)]
            new = after - before
            assert not new or (finding.code == "cycle" and {k[0] for k in new} == {"missing-input"})
    assert graph == start


def test_what_is_missing_at_the_end_is_a_note_not_a_problem():
    found = missing_output(Graph([image(), layer("c", "convolution", "in")]), REGISTRY)
    assert found is not None
    assert found.severity is Severity.INFO
    assert missing_output(Graph([image()]), REGISTRY) is None
    assert missing_output(Graph([image(), *end("in")]), REGISTRY) is None


def test_fixes_name_operators_in_the_language_of_the_user():
    class Shouted(NullTranslations):
        def gettext(self, message):
            return message if "{" in message else message.upper()

    before = texts.take(Shouted())
    try:
        for case, expected in (
            ("unknown activation", "Use LEAKY RELU instead"),
            ("no activation", "Attach RELU"),
            ("template input outside", "MAKE IT AN INPUT OF THE NETWORK"),
        ):
            layers, code, _ = CASES[case]
            assert expected in [fix.title for fix in offered(Graph(layers), code)]
    finally:
        texts.take(before)
