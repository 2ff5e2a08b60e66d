"""The torch programs of networks whose names, shared weights and repeated parts need care, as recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from operator_oracles import REGISTRY
from recorded import check_recorded

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.graph.types import TensorType
from designer.operators.api import Activation, Operator, Port
from designer.operators.inlining import inline
from designer.operators.registry import load
from designer.operators.torch_data import TorchCall, TorchExpr, TorchInput, TorchItem, TorchMethod, TorchModule
from designer.operators.torch_program import (
    Local,
    Program,
    Submodule,
    TensorAttribute,
    TorchStep,
    build_program,
    locals_of,
    with_locals,
    with_releases,
)


def layer(name: str, kind: str, *inputs: str, activation: str = "", **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    spec = ActivationSpec(activation, {}) if activation else None
    return Layer(name, kind, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=spec)


def image(name: str = "in", dims: str = "8x6x4") -> Layer:
    return layer(name, "input", dims=dims)


BLOCK = Template(
    "block",
    (
        layer("x", "template_input"),
        layer("c", "convolution", "x", features=4, kernel="1x1", activation="prelu"),
        layer("y", "template_output", "c"),
    ),
)
POINT = {"features": 4, "kernel": "1x1"}
NETWORKS: dict[str, tuple[Graph, tuple[str, ...], tuple[str, ...]]] = {
    "names that Python or the program needs": (
        Graph(
            [
                image("input"),
                layer("F", "convolution", "input", **POINT),
                layer("self", "unary", "F", function="abs"),
                layer("a b", "convolution", "self", **POINT),
                layer("a_b", "unary", "a b", function="neg"),
                layer("a-b", "element_wise", "a_b", "input"),
                layer("torch", "convolution", "a-b", **POINT),
                layer("lambda", "convolution", "torch", activation="prelu", **POINT),
                layer("lambda_activation", "convolution", "lambda", activation="prelu", **POINT),
                layer("a_b_linear", "convolution", "lambda_activation", activation="silu", **POINT),
                layer("z", "convolution", "input", activation="prelu", **POINT),
                layer("z_activation", "convolution", "z", **POINT),
                layer("k.b", "identity", "z_activation", activation="prelu"),
                layer("k b", "unary", "k.b", function="abs"),
                layer("end", "output", "a_b_linear"),
            ]
        ),
        ("input",),
        ("a_b_linear", "end", "F", "k b"),
    ),
    "activations that read their input several times": (
        Graph(
            [
                image(),
                *(
                    layer(f"a{number}", "convolution", "in", activation=kind, **POINT)
                    for number, kind in enumerate(sorted(REGISTRY.activations))
                ),
                *(
                    layer(f"b{number}", "identity", "in", activation=kind)
                    for number, kind in enumerate(sorted(REGISTRY.activations))
                ),
            ]
        ),
        ("in",),
        tuple(f"{start}{number}" for start in "ab" for number in range(len(REGISTRY.activations))),
    ),
    "instances that share weights": (
        Graph(
            [
                image(),
                *(
                    layer(name, "template", source, template="block", shared_weights=shared, activation="prelu")
                    for name, source, shared in (("p", "in", "true"), ("q", "p", "true"), ("r", "q", "false"))
                ),
                layer("out", "output", "r"),
            ],
            templates=[BLOCK],
        ),
        ("in",),
        ("out",),
    ),
    "several outputs, and parts that nothing reads": (
        Graph(
            [
                image(),
                layer("s", "split", "in", parts=2, axis=1, activation="relu"),
                layer("second", "unary", "s:y1", function="abs"),
                layer("unread", "unary", "second", function="neg"),
                layer("flat", "reshape", "in", shape="8,24"),
                layer("steps", "lstm", "flat", hidden=5),
                layer("top", "top_k", "flat", k=2),
                layer("scaled", "scale_shift", "second", scale=2.0),
                layer("learned", "parameter", shape="4,6,8"),
                layer("sum", "element_wise", "in", "learned", activation="mish"),
                layer("twice", "element_wise", "sum", "sum"),
                layer("learned_value", "convolution", "twice", **POINT),
            ]
        ),
        ("in",),
        ("second", "steps", "steps:hidden", "top:indices", "top", "scaled", "twice", "s:y0", "learned_value"),
    ),
}


def text(value: object) -> str:
    """An expression as text."""
    match value:
        case Local(name):
            return name
        case Submodule(attribute, key, args):
            return f"self.{attribute}{f'[{key}]' if key else ''}({', '.join(map(text, args))})"
        case TensorAttribute(attribute):
            return f"self.{attribute}"
        case TorchCall(path, args, kwargs):
            return f"{path}({', '.join([*map(text, args), *named(kwargs)])})"
        case TorchMethod(method, target, args, kwargs):
            return f"{text(target)}.{method}({', '.join([*map(text, args), *named(kwargs)])})"
        case TorchItem(item, index):
            return f"{text(item)}[{index}]"
        case tuple() | list():
            return f"[{', '.join(map(text, value))}]"
    return repr(value)


def named(kwargs: Mapping[str, object]) -> list[str]:
    return [f"{name}={text(value)}" for name, value in kwargs.items()]


def content(value: object) -> str:
    if isinstance(value, Mapping):
        return str({name: content(module) for name, module in value.items()})
    return f"{value.path}({', '.join(named(value.kwargs))})" if isinstance(value, TorchModule) else repr(value)


def lines_of(program: Program) -> Iterator[str]:
    """All that a program has."""
    yield f"  reads { ({str(source): name for source, name in program.inputs.items()}) }"
    yield from (f"  self.{a.name} of {a.layer}: {content(a.content)}" for a in program.attributes)
    for step in program.steps:
        yield f"  {step.layer}: {step.target} = {text(step.value)} | {step.type} | {' '.join(step.release)}"
    yield f"  returns { ({str(source): name for source, name in program.outputs.items()}) }"
    yield from (f"  {w.layer} {w.tensor}: {w.key} {w.weight.shape}" for w in program.weights)


def program_of(graph: Graph, feeds: tuple[str, ...], wanted: tuple[str, ...]) -> Program:
    inference = Inference(inline(graph, REGISTRY), REGISTRY)
    assert [str(d) for d in inference.diagnostics()] == []
    layers = [name for name in inference.graph.order()[0] if name not in feeds]
    return build_program(inference, layers, list(map(Source.parse, feeds)), list(map(Source.parse, wanted)))


def test_programs_of_networks() -> None:
    lines: list[str] = []
    for name, (graph, feeds, wanted) in NETWORKS.items():
        lines += [name, *lines_of(program_of(graph, feeds, wanted))]
    check_recorded("operators/programs.txt", "\n".join([*lines, ""]))


A, B = Local("a"), Local("b")
ONE, TWO = TorchInput(0), TorchInput(1)
CALL = TorchCall("torch.abs", (ONE,))
ITEM = TorchItem(CALL, 0)
DECLARED: dict[str, tuple[TorchExpr, str]] = {
    "a part that is read twice is computed once": (
        TorchCall("torch.add", (CALL, CALL)),
        "it_part = torch.abs(a); it = torch.add(it_part, it_part)",
    ),
    "items of one result compute it once": (
        TorchCall("torch.add", (TorchItem(CALL, 0), TorchItem(CALL, 1))),
        "it_part = torch.abs(a); it = torch.add(it_part[0], it_part[1])",
    ),
    "one item that is read twice": (
        TorchCall("torch.add", (ITEM, ITEM)),
        "it_part = torch.abs(a); it = torch.add(it_part[0], it_part[0])",
    ),
    "an item whose value is read elsewhere": (
        TorchCall("torch.add", (ITEM, TorchMethod("sum", ITEM))),
        "it_part = torch.abs(a); it = torch.add(it_part[0], it_part[0].sum())",
    ),
    "a method has its arguments": (
        TorchMethod("clamp", ONE, (TWO,), {"max": CALL}),
        "it = a.clamp(b, max=torch.abs(a))",
    ),
    "inputs in a list": (TorchCall("torch.cat", ([ONE, TWO, ONE],), {"dim": 1}), "it = torch.cat([a, b, a], dim=1)"),
    "an input as it is": (TWO, ""),
    "modules have names if there are several": (
        TorchModule("torch.nn.ReLU", args=(TorchModule("torch.nn.Tanh", name="t"),), name="r"),
        "it = self.it[r](self.it[t](a))",
    ),
    "one module with a name": (TorchModule("torch.nn.ReLU", name="r"), "it = self.it[r](a)"),
    "an input that is not connected": (TorchInput(2), "it reads input 2, which is not connected"),
    "two modules without a name": (
        TorchModule("torch.nn.ReLU", args=(TorchModule("torch.nn.Tanh"),)),
        "several of its modules have the same name",
    ),
    "a module without a name next to one with a name": (
        TorchModule("torch.nn.ReLU", args=(TorchModule("torch.nn.Tanh"),), name="r"),
        "several of its modules have the same name",
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_an_operator_declares_becomes_steps(name: str) -> None:
    declared, expected = DECLARED[name]

    class Declared(Operator, type="declared", title="Declared"):
        """Has the torch data of the case."""

        inputs = (Port("a"), Port("b"))

        def infer(self, inputs: tuple[TensorType, ...]) -> TensorType:  # type: ignore[override]
            return inputs[0]

        def torch(self, inputs: tuple[TensorType, ...]) -> TorchExpr:  # type: ignore[override]
            return declared

    registry = load(entry_points=False)
    registry.register(Declared)
    graph = Graph([image("a"), image("b"), layer("it", "declared", "a", "b")])
    try:
        program = build_program(Inference(graph, registry), ["it"], [Source("a"), Source("b")], [Source("it")])
        found = "; ".join(f"{step.target} = {text(step.value)}" for step in program.steps)
        assert program.outputs == {Source("it"): "it" if found else "b"}
    except DiagnosticError as error:
        (finding,) = error.diagnostics
        assert (finding.code, finding.layer) == ("bad-torch-data", "it")
        found = finding.message.removeprefix("the torch declaration of 'it' is wrong: ")
    assert found == expected


@pytest.mark.parametrize(("before", "steps"), [("convolution", ["it_linear", "it"]), ("identity", ["it"])])
def test_what_an_activation_reads_twice_is_computed_once(before: str, steps: list[str]) -> None:
    class Twice(Activation, type="twice", title="Twice"):
        """Reads its input twice."""

        def torch(self, inputs: tuple[TensorType, ...]) -> TorchExpr:  # type: ignore[override]
            return TorchCall("torch.mul", (TorchInput(0), TorchCall("torch.abs", (TorchInput(0),))))

        def infer(self, inputs: tuple[TensorType, ...]) -> TensorType:  # type: ignore[override]
            return inputs[0].with_dim(1, 2)  # of another size than its input

    registry = load(entry_points=False)
    registry.register(Twice)
    params = POINT if before == "convolution" else {}
    graph = Graph([image(), layer("it", before, "in", activation="twice", **params)])
    program = build_program(Inference(graph, registry), ["it"], [Source("in")], [Source("it")])
    types = ["N x 4 x 6 x 8"] * (len(steps) - 1) + ["N x 2 x 6 x 8"]
    assert [(step.target, str(step.type)) for step in program.steps] == list(zip(steps, types, strict=True))
    read = "it_linear" if before == "convolution" else "in_"
    assert text(program.steps[-1].value) == f"torch.mul({read}, torch.abs({read}))"
    assert program.steps[-1].release == (read,)


def test_layers_that_cannot_be_computed_are_named() -> None:
    graph = Graph([image(), layer("c", "convolution", "in", features=3, groups=2), layer("d", "identity", "c")])
    inference = Inference(graph, REGISTRY)
    for name, code, words in (
        ("c", "shape-mismatch", "groups"),
        ("d", "not-runnable", "the shape of 'd' is unknown"),
    ):
        with pytest.raises(DiagnosticError) as error:
            build_program(inference, [name], [Source("in"), Source("c")], [])
        (finding,) = error.value.diagnostics
        assert (finding.code, finding.layer) == (code, name)
        assert words in finding.message
    with pytest.raises(DiagnosticError) as error:
        build_program(Inference(Graph([image(), image("b")]), REGISTRY), [], [Source("in")], [Source("b")])
    assert [(d.code, d.layer, d.message) for d in error.value.diagnostics] == [
        ("no-such-tensor", "b", "'b' is not computed by these layers")
    ]


EXPRESSIONS: list[tuple[object, str, str, str]] = [
    ((A, B, A), "ab", "[a, b, a]", "[X, Y, X]"),
    (Submodule("m", "k", (A, (B,))), "ab", "self.m[k](a, [b])", "self.m[k](X, [Y])"),
    (TorchCall("torch.f", (A,), {"c": B}), "ab", "torch.f(a, c=b)", "torch.f(X, c=Y)"),
    (TorchMethod("f", A, (B, 1), {"c": A}), "ab", "a.f(b, 1, c=a)", "X.f(Y, 1, c=X)"),
    ([A, TensorAttribute("w"), 2, TorchItem(B, 1)], "ab", "[a, self.w, 2, b[1]]", "[X, self.w, 2, Y[1]]"),
    (
        Submodule("m", "", (TorchItem(TorchCall("torch.f", (B,), {"x": TorchMethod("g", A)}), 0),)),
        "ba",
        "self.m(torch.f(b, x=a.g())[0])",
        "self.m(torch.f(Y, x=X.g())[0])",
    ),
]


@pytest.mark.parametrize(("value", "order", "before", "after"), EXPRESSIONS, ids=[e[2] for e in EXPRESSIONS])
def test_locals_of_an_expression_and_their_replacement(value: object, order: str, before: str, after: str) -> None:
    assert (text(value), "".join(locals_of(value))) == (before, order)
    other = with_locals(value, {"a": "X", "b": "Y", "c": "Z"})
    assert (type(other), text(other)) == (type(value), after)
    assert text(with_locals(value, {})) == before


def test_locals_are_released_after_the_last_step_that_reads_them() -> None:
    def step(target: str, *reads: str) -> TorchStep:
        return TorchStep("l", target, TorchCall("torch.f", tuple(map(Local, reads))))

    steps = [
        step("a", "in"),
        step("b", "a"),
        step("lost", "b"),
        step("c", "a", "b"),
        step("d", "c", "in"),
        step("e", "c"),
    ]
    found = with_releases(steps, {"d", "b", "e"})
    assert [(s.target, s.release) for s in found] == [
        ("a", ()),
        ("b", ()),
        ("c", ("a",)),
        ("d", ("in",)),
        ("e", ("c",)),
    ]
