"""Shapes and findings of a whole network, and that an edit looks at no more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from tiny_operators import tiny_registry

from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import DataType, ShapeError, Symbol, TensorType
from designer.operators.api import Operator, Port, param
from designer.operators.registry import Registry


def layer(layer_name: str, kind: str, *inputs: str | None, **params: str) -> Layer:
    sources = tuple(None if i is None else Source.parse(i) for i in inputs)
    return Layer(layer_name, f"tiny_{kind}", inputs=sources, params=params)


def infer(tiny: Registry, *layers: Layer) -> Inference:
    return Inference(Graph(layers), tiny)


def shape(inference: Inference, name: str) -> str | None:
    outputs = inference.states[name].outputs
    return None if outputs is None else ", ".join(str(t) for t in outputs)


def findings(inference: Inference) -> list[tuple[str | None, str, str | None]]:
    return [(d.layer, d.code, d.port) for d in inference.diagnostics()]


def test_shapes_flow_from_the_input(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input", dims="10x8x3"),
        layer("a", "convolution", "in", features="6", valid="true"),
        layer("split", "split", "a"),
        layer("join", "join", "split:y1", "split", "a"),
    )
    assert findings(inference) == []
    assert shape(inference, "a") == "N x 6 x 6 x 8"
    assert shape(inference, "split") == "N x 3 x 6 x 8, N x 3 x 6 x 8"
    assert shape(inference, "join") == "N x 12 x 6 x 8"


def test_a_tensor_has_one_name_and_a_type(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input", dims="10x8x5"),
        layer("split", "split", "in"),
        layer("open", "convolution"),
        Layer("strange", "of_a_plugin", inputs=(Source("in"),)),
    )
    assert inference.tensors("split") == (Source("split"), Source("split", "y1"))
    assert inference.tensor(Source("split", "y0")) == Source("split")
    assert inference.tensor(Source("split", "y1")) == Source("split", "y1")
    assert inference.tensor(Source("strange")) == Source("strange")
    types = {text: inference.type_of(Source.parse(text)) for text in ("in", "split", "split:y0", "split:y1")}
    assert {text: str(found) for text, found in types.items()} == {
        "in": "N x 5 x 8 x 10",
        "split": "N x 3 x 8 x 10",
        "split:y0": "N x 3 x 8 x 10",
        "split:y1": "N x 2 x 8 x 10",
    }


@pytest.mark.parametrize("text", ["split:y2", "open", "strange", "strange:y", "nobody", "nobody:y"])
def test_a_tensor_that_is_not_known_has_no_type(tiny: Registry, text: str) -> None:
    inference = infer(
        tiny,
        layer("in", "input", dims="10x8x4"),
        layer("split", "split", "in"),
        layer("open", "convolution"),
        Layer("strange", "of_a_plugin", inputs=(Source("in"),)),
    )
    assert inference.type_of(Source.parse(text)) is None


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("split:y2", "unknown-port", "choose one of y0, y1"),
        ("nobody", "no-such-layer", "choose an existing layer"),
        ("nobody:y", "no-such-layer", "choose an existing layer"),
        ("strange:y", "unknown-operator", ""),
    ],
)
def test_a_name_of_no_tensor_is_refused_with_the_reason(tiny: Registry, text: str, code: str, words: str) -> None:
    inference = infer(
        tiny, layer("in", "input", dims="10x8x4"), layer("split", "split", "in"), Layer("strange", "of_a_plugin")
    )
    with pytest.raises(DiagnosticError) as raised:
        inference.tensor(Source.parse(text))
    assert raised.value.diagnostics[0].code == code
    assert words in raised.value.diagnostics[0].remedy


def test_an_attached_activation_has_the_last_word(tiny: Registry) -> None:
    good = commands.set_activation(Graph([layer("in", "input", dims="4x4x6")]), ["in"], ActivationSpec("tiny_half"))
    inference = Inference(Graph([layer("in", "input", dims="4x4x6")]), tiny)
    inference.update(inference.graph.apply(good))
    assert shape(inference, "in") == "N x 3 x 4 x 4"
    assert str(inference.states["in"].before_activation) == "N x 6 x 4 x 4"
    inference.update(inference.graph.apply(commands.set_params(inference.graph, {"in": {"dims": "4x4x5"}})))
    assert findings(inference) == [("in", "shape-mismatch", None)]


def test_the_first_bad_layer_has_the_finding_and_the_rest_is_unknown_because_of_it(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input"),
        layer("bad", "convolution", "in", kernel="99", valid="true"),
        layer("next", "convolution", "bad"),
        layer("last", "join", "next", "in"),
    )
    assert findings(inference) == [("bad", "shape-mismatch", "x")]
    assert inference.states["next"].because_of == "bad"
    assert inference.states["last"].because_of == "bad"


@pytest.mark.parametrize(
    ("broken", "code", "port"),
    [
        (layer("x", "warp", "in"), "unknown-operator", None),
        (layer("x", "convolution", "in", features="many"), "bad-parameter", None),
        (layer("x", "convolution", "in", features="5000"), "bad-parameter", None),
        (layer("x", "convolution"), "missing-input", "x"),
        (layer("x", "add", "in"), "missing-input", "b"),
        (layer("x", "add", None, "in"), "missing-input", "a"),
        (layer("x", "join", "in", None, "in"), "missing-input", "inputs"),
        (layer("x", "convolution", "nobody"), "unknown-source", "x"),
        (layer("x", "convolution", "in:z"), "unknown-port", "x"),
        (layer("x", "convolution", "in", "in"), "shape-mismatch", None),
        (layer("x", "convolution", "flat"), "shape-mismatch", "x"),
        (layer("x", "convolution", "x"), "cycle", None),
        (layer("x", "split", "thin"), "empty-tensor", None),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_every_problem_has_its_code_and_port(tiny: Registry, broken: Layer, code: str, port: str | None) -> None:
    inference = infer(
        tiny,
        layer("in", "input"),
        layer("flat", "flatten", "in"),
        layer("thin", "input", dims="4x4x1"),
        broken,
        layer("after", "join", "x", "in"),
    )
    assert findings(inference) == [("x", code, port)]
    assert inference.diagnostics()[0].remedy or code in ("shape-mismatch",)
    assert inference.states["after"].because_of == "x"
    assert inference.states["in"].ok


def test_an_unknown_activation_is_a_finding(tiny: Registry) -> None:
    inference = infer(tiny, Layer("in", "tiny_input", activation=ActivationSpec("swoosh")))
    assert findings(inference) == [("in", "unknown-activation", None)]


def test_an_unknown_parameter_only_warns(tiny: Registry) -> None:
    inference = infer(tiny, layer("in", "input", colour="red"))
    assert [d.severity for d in inference.diagnostics()] == [Severity.WARNING]
    assert inference.states["in"].ok


def test_a_loop_is_told_on_its_layers_only(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input"),
        layer("a", "join", "in", "c"),
        layer("b", "convolution", "a"),
        layer("c", "convolution", "b"),
        layer("behind", "convolution", "c"),
        layer("between", "convolution", "behind"),
        layer("d", "join", "between", "e"),
        layer("e", "convolution", "d"),
    )
    assert [d.layer for d in inference.diagnostics()] == ["a", "b", "c", "d", "e"]
    assert inference.states["behind"].because_of == "c"
    assert inference.states["between"].because_of == "c"
    inference.update(inference.graph.apply(commands.disconnect(inference.graph, "a", 1)))
    inference.update(inference.graph.apply(commands.disconnect(inference.graph, "d", 1)))
    assert findings(inference) == []
    assert shape(inference, "e") == "N x 4 x 8 x 8"


def test_an_operator_that_fails_is_a_finding_and_the_rest_goes_on(tiny: Registry) -> None:
    class Broken(Operator, type="broken"):
        inputs = ()

        def infer(self, inputs: object) -> tuple[()]:
            raise ZeroDivisionError("division by zero")

    registry = Registry(dict(tiny.operators), dict(tiny.activations))
    registry.register(Broken)
    inference = infer(registry, Layer("x", "broken"), layer("in", "input"))
    assert findings(inference) == [("x", "broken-operator", None)]
    assert inference.states["in"].ok


# --- incremental ------------------------------------------------------------------------------------------------


def chain(tiny: Registry, length: int) -> Inference:
    layers = [layer("in", "input"), layer("n0", "convolution", "in")]
    layers += [layer(f"n{i}", "convolution", f"n{i - 1}") for i in range(1, length)]
    return infer(tiny, *layers)


def edit(inference: Inference, change: Edit) -> frozenset[str]:
    return inference.update(inference.graph.apply(change))


def test_an_edit_that_changes_no_type_stops_there(tiny: Registry) -> None:
    inference = chain(tiny, 100)
    assert edit(inference, commands.set_params(inference.graph, {"n50": {"kernel": "5"}})) == frozenset()
    assert inference.last_inferred == 1


def test_an_edit_that_changes_a_type_goes_as_far_as_it_matters(tiny: Registry) -> None:
    inference = chain(tiny, 100)
    changed = edit(inference, commands.set_params(inference.graph, {"n50": {"features": "9"}}))
    assert changed == {"n50", "n51"}  # n51 has another input, its output is the same
    assert inference.last_inferred == 3
    assert str(inference.states["n51"].inputs[0]) == "N x 9 x 8 x 8"


def test_a_move_infers_nothing(tiny: Registry) -> None:
    inference = chain(tiny, 10)
    assert edit(inference, commands.move_layers(inference.graph, {"n5": (99, 99)})) == frozenset()
    assert inference.last_inferred == 0


def test_removing_and_putting_back(tiny: Registry) -> None:
    inference = chain(tiny, 5)
    before = dict(inference.states)
    gone = commands.remove_layers(inference.graph, ["n1"])
    assert edit(inference, gone) == {"n2", "n3", "n4"}
    assert "n1" not in inference.states
    edit(inference, gone.reversed())
    assert inference.states == before


def test_a_missing_producer_that_appears_is_noticed(tiny: Registry) -> None:
    inference = infer(tiny, layer("a", "convolution", "late"))
    assert findings(inference) == [("a", "unknown-source", "x")]
    edit(inference, commands.add_layer(inference.graph, layer("late", "input")))
    assert findings(inference) == []


def test_outputs_that_only_change_their_names_are_noticed(tiny: Registry) -> None:
    """A layer's type changes; its outputs have the same types under other names."""
    inference = infer(tiny, layer("in", "input"), layer("a", "add", "in", "in"), layer("b", "join", "a:y"))
    assert findings(inference) == []
    before = inference.graph["a"]
    after = Layer("a", "tiny_split", inputs=before.inputs[:1])
    edit(inference, Edit("", {"in": (inference.graph["in"], layer("in", "input", dims="8x8x6")), "a": (before, after)}))
    assert findings(inference) == [("b", "unknown-port", "inputs")]


def test_findings_say_where_and_what_to_do() -> None:
    finding = Diagnostic("code", "it broke", layer="a", port="x", line=7, file="f.xml", remedy="mend it")
    assert str(finding) == "error [code] f.xml:7: layer 'a', port 'x': it broke - mend it"
    assert finding.as_dict()["severity"] == "error"
    assert str(Diagnostic("c", "m", Severity.INFO)) == "info [c] m"
    assert str(Diagnostic("c", "m", line=3)) == "error [c] line 3: m"


def test_errors_come_first_then_the_names(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input", dims="10x8x3"),
        layer("a warns", "convolution", "in", strange="1"),
        layer("z is open", "convolution"),
        layer("b is open", "convolution"),
    )
    assert [name for name, *_ in findings(inference)] == ["b is open", "z is open", "a warns"]


def test_layers_of_the_same_text_and_types_are_inferred_once(tiny: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    inferred = 0
    infer_checked = Operator.infer_checked

    def counted(self: Operator, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        nonlocal inferred
        inferred += 1
        return infer_checked(self, inputs)

    monkeypatch.setattr(Operator, "infer_checked", counted)
    names = ["in", *(f"c{number}" for number in range(100))]
    chain = [layer(name, "convolution", before, features="6") for before, name in pairwise(names)]
    graph = Graph([layer("in", "input", dims="10x8x6"), *chain])
    inference = Inference(graph, tiny)
    assert shape(inference, "c99") == "N x 6 x 8 x 10"
    assert inferred == 2
    change = graph.apply(commands.set_params(graph, {"in": {"dims": "12x8x6"}}))
    assert inference.update(change) == frozenset(names)
    assert shape(inference, "c99") == "N x 6 x 8 x 12"
    assert inferred == 4


def test_results_are_shared_between_layers_of_equal_types_only(tiny: Registry) -> None:
    """Every element type of a shape stays what it is, whichever was inferred before, also for the layers behind."""
    shapes = ((), (1,), (2, 3), (Symbol("N"), 3, 8, 8))

    class Made(Operator, type="made"):
        inputs = ()
        shape: int = param(default=0)
        dtype: str = param(default="float32")

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            return TensorType(shapes[self.shape], DataType(self.dtype))

    class Kept(Operator, type="kept"):
        inputs = (Port("x"),)

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            return inputs[0]

    tiny.register(Made)
    tiny.register(Kept)
    types = [(number, kind) for number in range(len(shapes)) for kind in DataType] * 2
    made = [
        Layer(f"made_{n}", "made", params={"shape": str(number), "dtype": kind.value})
        for n, (number, kind) in enumerate(types)
    ]
    kept = [Layer(f"kept_{n}", "kept", inputs=(Source(f"made_{n}"),)) for n in range(len(types))]
    inference = infer(tiny, *made, *kept)
    assert not findings(inference)
    for n, (number, kind) in enumerate(types):
        expected = (TensorType(shapes[number], kind),)
        assert inference.states[f"made_{n}"].outputs == expected
        assert (inference.states[f"kept_{n}"].inputs, inference.states[f"kept_{n}"].outputs) == (expected, expected)
    first, again = (inference.states[f"kept_{n}"].outputs or () for n in (0, len(types) // 2))
    assert first[0] is again[0], "equal types are one object"


def test_a_network_with_the_states_of_an_equal_one_infers_only_what_an_edit_changes(tiny: Registry) -> None:
    chain = [layer(f"c{n + 1}", "convolution", f"c{n}", features="6") for n in range(1, 5)]
    inference = infer(tiny, layer("c1", "input", dims="10x8x6"), *chain)
    copy = inference.graph.copy()
    other = Inference(copy, tiny, empty=True)
    other.adopt(inference)
    assert other.states == inference.states
    other.update(copy.apply(commands.set_params(copy, {"c4": {"features": "7"}})))
    assert other.last_inferred == 2
    assert (shape(other, "c5"), shape(other, "c4")) == ("N x 6 x 8 x 10", "N x 7 x 8 x 10")
    assert shape(inference, "c4") == "N x 6 x 8 x 10"


def test_a_layer_behind_a_broken_one_has_not_the_result_of_an_equal_layer_without_it(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input"),
        layer("open", "convolution"),
        layer("whole", "join", "in"),
        layer("part", "join", "open", "in"),
        layer("behind", "join", "in", "part"),
    )
    assert shape(inference, "whole") == "N x 3 x 8 x 8"
    for name in ("part", "behind"):
        assert (shape(inference, name), inference.states[name].because_of) == (None, "open")
    assert [str(t) for t in inference.states["part"].inputs] == ["N x 3 x 8 x 8"]
    assert findings(inference) == [("open", "missing-input", "x")]


def test_findings_follow_every_edit(tiny: Registry) -> None:
    inference = infer(
        tiny,
        layer("in", "input", dims="10x8x4"),
        layer("split", "split", "in"),
        layer("a", "convolution", "split:y1"),
        layer("b", "convolution", "in"),
    )
    change = inference.graph.apply(commands.set_params(inference.graph, {"in": {"dims": "10x8x6"}}))
    assert inference.update(change) == {"in", "split", "a", "b"}
    assert str(inference.states["a"].inputs[0]) == "N x 3 x 8 x 10"
    assert inference.last_inferred == 4
    change = inference.graph.apply(commands.set_params(inference.graph, {"b": {"features": "x"}}))
    assert inference.update(change) == {"b"}
    assert [d.layer for d in inference.diagnostics()] == ["b"]
    change = inference.graph.apply(commands.remove_layers(inference.graph, ["b"]))
    inference.update(change)
    assert inference.diagnostics() == ()
    assert "b" not in inference.states


def test_states_of_another_inference_replace_what_was_found_before(tiny: Registry) -> None:
    graph = Graph([layer("in", "input"), layer("open", "convolution"), layer("next", "convolution", "open")])
    whole = Inference(graph, tiny)
    expected = whole.diagnostics()
    assert [d.code for d in expected] == ["missing-input"]
    fresh = Inference(graph.copy(), tiny, empty=True)
    assert fresh.diagnostics() == ()
    fresh.adopt(whole)
    assert fresh.diagnostics() == expected
    assert fresh.states == whole.states


def test_a_rewired_network_is_inferred_in_its_new_order(tiny: Registry) -> None:
    """Every layer is inferred once, after its producers, whatever order the names and the links before had."""
    names = ["a", "b", "c", "d"]
    graph = Graph([layer("in", "input"), *(layer(n, "convolution", "in") for n in names), layer("end", "join", *names)])
    inference = Inference(graph, tiny)
    for order in (["d", "c", "b", "a"], ["b", "d", "a", "c"], ["c", "a", "d", "b"]):
        for name in names:
            edit(inference, commands.connect(graph, Source("in"), name, 0))
        for producer, consumer in pairwise(order):
            edit(inference, commands.connect(graph, Source(producer), consumer, 0))
        for size in ("16x16x3", "8x8x3"):
            edit(inference, commands.set_params(graph, {"in": {"dims": size}}))
            assert inference.last_inferred == 6
            assert inference.states == Inference(graph, tiny).states


def test_a_layer_of_a_loop_keeps_its_own_findings(tiny: Registry) -> None:
    inference = infer(tiny, layer("a", "convolution", "b", nothing="1"), layer("b", "convolution", "a"))
    assert {(d.layer, d.code) for d in inference.diagnostics()} == {
        ("a", "cycle"),
        ("a", "unknown-parameter"),
        ("b", "cycle"),
    }


def test_the_first_of_several_open_inputs_is_named(tiny: Registry) -> None:
    class Three(Operator, type="three"):
        inputs = (Port("a"), Port("b"), Port("c"))

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            raise ShapeError("they differ", port="b", template="block", inner="conv", code="template-error", remedy="r")

    registry = tiny_registry()
    registry.register(Three)
    three = Layer("x", "three", inputs=(None, None, Source("in")))
    inference = Inference(Graph([layer("in", "input"), three]), registry)
    assert findings(inference)[0] == ("x", "missing-input", "a")
    edit(inference, commands.connect(inference.graph, Source("in"), "x", 0))
    assert findings(inference) == [("x", "missing-input", "b")]
    edit(inference, commands.connect(inference.graph, Source("in"), "x", 1))
    (found,) = inference.diagnostics()
    assert found == Diagnostic(
        "template-error", "they differ", layer="x", port="b", remedy="r", template="block", inner="conv"
    )


def test_an_attached_activation_changes_the_first_output_only(tiny: Registry) -> None:
    split = Layer("split", "tiny_split", inputs=(Source("in"),), activation=ActivationSpec("tiny_half"))
    inference = infer(tiny, layer("in", "input", dims="8x8x8"), split, layer("join", "join", "split", "split:y1"))
    assert shape(inference, "split") == "N x 2 x 8 x 8, N x 4 x 8 x 8"
    assert str(inference.states["split"].before_activation) == "N x 4 x 8 x 8"
    assert shape(inference, "join") == "N x 6 x 8 x 8"


def test_readers_of_a_named_output_notice_another_name_of_an_equal_tensor() -> None:
    class Halves(Operator, type="halves"):
        outputs = (Port("first"), Port("second"))

        def infer(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
            half = inputs[0].with_dim(1, inputs[0].dim(1) // 2)
            return half, half

    registry = tiny_registry()
    registry.register(Halves)
    graph = Graph([layer("in", "input", dims="8x8x8"), layer("s", "split", "in"), layer("j", "join", "s", "s:y1")])
    inference = Inference(graph, registry)
    for kind, expected in (("halves", [("j", "unknown-port", "inputs")]), ("tiny_split", [])):
        before = graph["s"]
        edit(inference, Edit("", {"s": (before, Layer("s", kind, inputs=before.inputs))}))
        assert findings(inference) == expected
        assert inference.states == Inference(graph, registry).states


def test_a_layer_waits_for_a_producer_that_was_behind_it(tiny: Registry) -> None:
    graph = Graph([layer("in", "input"), layer("a", "join", "in"), layer("d", "convolution", "in", kernel="1")])
    inference = Inference(graph, tiny)
    edit(inference, commands.connect(graph, Source("d"), "a", 1))
    edit(inference, commands.set_params(graph, {"in": {"dims": "16x16x3"}}))
    assert findings(inference) == []
    assert shape(inference, "a") == "N x 7 x 16 x 16"
    edit(inference, commands.disconnect(graph, "a", 1))
    edit(inference, commands.connect(graph, Source("a"), "d", 0))
    edit(inference, commands.set_params(graph, {"in": {"dims": "4x4x3"}}))
    assert shape(inference, "d") == "N x 4 x 4 x 4"
