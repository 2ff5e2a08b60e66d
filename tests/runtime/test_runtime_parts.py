"""Small parts that runs share, each against a model or a table: plans, queries, caches, previews, provenance, rounding."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plain_engine import Record, plain_engines
from recorded import check_lines
from runtime_networks import LEAKY, RELU, layer, pixels

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import BATCH, DataType, Size2D, Size3D, TensorType
from designer.operators.api import OnnxInput, OnnxItem, OnnxNode, Operator, Role, ShapeError
from designer.operators.registry import load
from designer.runtime import edit_effect as effects
from designer.runtime import nonfinite as tracing
from designer.runtime import provenance as origins
from designer.runtime import session as sessions
from designer.runtime.api import Part, RunOptions
from designer.runtime.edit_effect import EditEffect, edit_effect
from designer.runtime.finite import nonfinite
from designer.runtime.input_data import (
    InputData,
    as_batch,
    check_fed,
    cropped,
    factors,
    noise,
    padded_extent,
    prepare,
    sized,
    tiling,
)
from designer.runtime.interrupt import Interrupt, current, interruptible
from designer.runtime.neighbors import folded, with_neighbors
from designer.runtime.network import (
    check_runnable,
    evaluate,
    input_layers,
    inputs_of,
    onnx_nodes,
    operator_of,
    output_layers,
    passes_through,
    role_of,
    type_of,
)
from designer.runtime.nonfinite import trace_nonfinite
from designer.runtime.nonfinite_probes import MAKERS, NonfiniteProbes
from designer.runtime.number_formats import FLOAT16, FLOAT32, FORMATS, OF_PRECISION
from designer.runtime.patterns import PATTERNS, make_pattern, pattern_name
from designer.runtime.plan import AnalysisStep, PartStep, make_plan
from designer.runtime.preview import Preview, _reduced, enlarged, resized
from designer.runtime.provenance import Provenance, digest_of, noise_layers, provenance, written_at
from designer.runtime.results import OLD, Result, Results
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder
from designer.runtime.skipped_nan import SkippedNan

PLAIN = RunOptions("plain", threads=1)


@pytest.fixture
def record(monkeypatch) -> Record:
    made = Record()
    engines = plain_engines(made)
    monkeypatch.setattr(sessions, "default_engines", lambda: engines)
    return made


# --- plans -------------------------------------------------------------------------------------------------------


def random_network(seed: int) -> Graph:
    """Layers of every role in a random order of connections."""
    source = random.Random(seed)
    layers = [layer("i0", "input", dims="8x8x3"), layer("i1", "input", dims="8x8x3")]
    for number in range(source.randint(4, 12)):
        kind = source.choice(["activation", "identity", "noise", "mix", "element_wise", "snapshot"])
        one, other = (source.choice(layers).name for _ in range(2))
        reads = f"{one},{other}" if kind in ("mix", "element_wise") else one
        params = {"operation": "add"} if kind == "element_wise" else {}
        layers.append(layer(f"n{number}", kind, reads, RELU if kind == "activation" else None, **params))
    for number, name in enumerate(source.sample([x.name for x in layers], 2)):
        layers.append(layer(f"o{number}", "output", name))
    return Graph(layers)


ANALYSIS = ("noise", "mix", "snapshot")


def origin_of(graph: Graph, name: str) -> str:
    while graph[name].type in ("identity", "output"):
        name = graph[name].inputs[0].layer
    return name


def reads_of(graph: Graph, name: str) -> list[str]:
    found = [source.layer for source in graph[name].inputs]
    return [origin_of(graph, read) for read in found] if graph[name].type in ANALYSIS else found


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_plan_computes_every_needed_layer_once_and_in_order(runtime_registry, seed, single):
    graph = random_network(seed)
    capture = random.Random(seed).choice(list(graph.layers))
    targets = [Source("o0"), Source("o1"), Source(capture), Source("o0")]
    plan = make_plan(Inference(graph, runtime_registry), targets, single=single)
    ends = [origin_of(graph, target.layer) for target in targets]
    assert plan.origin == {target: Source(end) for target, end in zip(targets, ends, strict=True)}
    needed, waiting = set(), list(ends)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += reads_of(graph, name)
    assert set(plan.inputs) == {name for name in needed if graph[name].type == "input"}
    assert len(plan.inputs) == len(set(plan.inputs))
    present, done = set(plan.inputs), list(plan.inputs)
    members = {}
    for step in plan.steps:
        layers = step.part.layers if isinstance(step, PartStep) else (step.layer,)
        members |= dict.fromkeys(layers, layers)
        assert not single or len(layers) == 1
        inside = set()
        for name in layers:
            assert set(reads_of(graph, name)) <= present | inside
            inside.add(name)
            done.append(name)
        if isinstance(step, PartStep):
            outside = [read for name in layers for read in reads_of(graph, name) if read not in layers]
            assert [feed.layer for feed in step.part.feeds] == list(dict.fromkeys(outside))
            present |= {source.layer for source in step.wanted}
        else:
            assert [feed.layer for feed in step.feeds] == reads_of(graph, step.layer)
            present |= set(layers)
    assert sorted(done) == sorted(needed)
    for step in plan.steps:
        if isinstance(step, PartStep):
            readers = {
                read for name in needed if members.get(name) != step.part.layers for read in reads_of(graph, name)
            }
            wanted = {name for name in step.part.layers if name in readers or name in ends}
            assert {source.layer for source in step.wanted} == wanted
            assert len(step.wanted) == len(wanted)
        else:
            below = graph.downstream([step.layer])
            computes = [name for name in below if graph[name].type not in (*ANALYSIS, "identity", "output")]
            assert step.late == (not computes)


def test_every_reason_why_a_network_cannot_run_is_reported_once(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("bad", "convolution", "image", features="-1"),
            layer("open", "element_wise", "image", operation="add"),
            layer("one", "activation", "bad", RELU),
            layer("two", "activation", "bad", RELU),
            layer("o0", "output", "one"),
            layer("o1", "output", "two"),
            layer("o2", "output", "open"),
        ]
    )
    inference = Inference(graph, runtime_registry)
    with pytest.raises(DiagnosticError) as caught:
        make_plan(inference, [Source("o0"), Source("o1"), Source("o2")])
    assert [(d.layer, d.message.partition(": ")[0]) for d in caught.value.diagnostics] == [
        ("bad", "the network cannot run because of 'bad'"),
        ("open", "the network cannot run because of 'open'"),
    ]
    first = inference.states["bad"].diagnostics[0]
    found = caught.value.diagnostics[0]
    assert (found.code, found.parameter, found.remedy) == (first.code, first.parameter, first.remedy)
    assert found.parameter == "features"
    assert caught.value.diagnostics[1].port == inference.states["open"].diagnostics[0].port
    check_runnable(inference, ["image"])
    with pytest.raises(DiagnosticError, match="'bad'"):
        type_of(inference, Source("two"))
    with pytest.raises(DiagnosticError) as caught:
        operator_of(inference, "bad")
    assert [d.parameter for d in caught.value.diagnostics] == ["features"]
    assert role_of(inference, "bad") is None


# --- queries -----------------------------------------------------------------------------------------------------


def test_layers_that_pass_their_input_through(runtime_registry):
    cases = {
        "identity": layer("it", "identity", "image"),
        "identity with an activation": layer("it", "identity", "image", RELU),
        "dropout": layer("it", "dropout", "image"),
        "output": layer("it", "output", "image"),
        "noise": layer("it", "noise", "image", scale="0"),
        "snapshot": layer("it", "snapshot", "image"),
        "activation": layer("it", "activation", "image", RELU),
        "abs": layer("it", "unary", "image", function="abs"),
        "cast to the same type": layer("it", "cast", "image", target="float32"),
        "cast to another type": layer("it", "cast", "image", target="int64"),
        "convolution": layer("it", "convolution", "image", features="3"),
        "input": layer("it", "input", dims="8x8x3"),
    }
    found = {}
    for name, made in cases.items():
        inference = Inference(Graph([layer("image", "input", dims="8x8x3"), made]), runtime_registry)
        found[name] = passes_through(inference, "it")
    assert {name for name, passes in found.items() if passes} >= {"identity", "dropout", "output"}
    assert not {name for name, passes in found.items() if passes} & {
        "identity with an activation", "noise", "snapshot", "activation", "abs", "cast to another type", "convolution",
        "input",
    }  # fmt: skip


class Described(Operator, type="test_described"):
    """An operator whose ONNX data is given; it has two inputs of the same type."""

    inputs = ()
    data = None

    def infer(self, inputs):
        return inputs[0] if inputs else TensorType((1, 3, 8, 8))

    def onnx(self, inputs):
        if self.data is None:
            raise NotImplementedError
        return self.data


X, Y = OnnxInput(0), OnnxInput(1)
SAME = OnnxNode("Identity", (X,))


@pytest.mark.parametrize(
    ("data", "role", "passes"),
    [
        (X, Role.COMPUTE, True),
        (Y, Role.COMPUTE, False),
        (SAME, Role.COMPUTE, True),
        (OnnxNode("Identity", (SAME,)), Role.COMPUTE, True),
        (OnnxNode("Identity", (Y,)), Role.COMPUTE, False),
        (OnnxNode("Identity", (X,), domain="custom"), Role.COMPUTE, False),
        (OnnxNode("Abs", (X,)), Role.COMPUTE, False),
        (None, Role.COMPUTE, False),
        (None, Role.OUTPUT, True),
        (X, Role.OUTPUT, True),
        (X, Role.ANALYSIS, False),
        (X, Role.INPUT, False),
    ],
)
def test_the_onnx_data_decides_whether_a_layer_passes_its_input_through(data, role, passes):
    kind = TensorType((1, 3, 8, 8))
    operator = Described()
    object.__setattr__(operator, "data", data) if "data" in vars(operator) else setattr(type(operator), "data", data)
    type(operator).role = role
    try:
        state = SimpleNamespace(outputs=(kind,), inputs=(kind, kind))
        inference = SimpleNamespace(
            graph={"it": layer("it", "test_described")},
            states={"it": state},
            read=lambda name: SimpleNamespace(operator=operator, diagnostics=()),
        )
        assert passes_through(inference, "it") is passes
        inference.states["it"] = SimpleNamespace(outputs=(TensorType((1, 3, 8, 9)),), inputs=(kind,))
        assert not passes_through(inference, "it")
        inference.states["it"] = SimpleNamespace(outputs=None, inputs=(kind,))
        assert not passes_through(inference, "it")
    finally:
        type(operator).role, type(operator).data = Role.COMPUTE, None


def test_the_nodes_of_an_operator_start_with_those_of_its_first_output():
    shared = OnnxNode("Relu", (X,))
    first, second = OnnxNode("Add", (shared, None, Y)), OnnxNode("Split", (shared,))

    def nodes(data) -> list[str]:
        operator = SimpleNamespace(onnx=lambda types: data)
        return [node.op for node in onnx_nodes(operator, ())]

    assert nodes(shared) == ["Relu"]
    assert nodes(first) == ["Add", "Relu"]
    assert nodes((first, second))[0] == "Add"
    assert sorted(nodes((first, second))) == ["Add", "Relu", "Split"]
    assert sorted(nodes((OnnxItem(second, 0), OnnxItem(second, 1)))) == ["Relu", "Split"]
    assert nodes(X) == []

    def refuses(types):
        raise NotImplementedError

    assert onnx_nodes(SimpleNamespace(onnx=refuses), ()) == []


def test_inputs_and_outputs_are_in_the_order_of_their_names(runtime_registry):
    names = ["b", "c", "a"]
    layers = [made for n in names for made in (layer(f"in {n}", "input", dims="8x8x3"), layer(n, "output", f"in {n}"))]
    inference = Inference(Graph(layers), runtime_registry)
    assert output_layers(inference) == ("a", "b", "c")
    assert input_layers(inference.graph, inference) == ("in a", "in b", "in c")
    assert inputs_of(inference, inference.graph["a"]) == (Source("in a"),)


class Asked(Operator, type="test_asked_analysis", role=Role.ANALYSIS):
    """An analysis layer that does what `act` does."""

    act = None

    def infer(self, inputs):
        return inputs[0]

    def evaluate(self, inputs):
        return type(self).act(inputs)


def raises(error):
    def act(inputs):
        raise error

    return act


def test_what_an_analysis_layer_returns_and_raises(runtime_registry):
    registry = load(entry_points=False)
    registry.register(Asked)
    inference = Inference(
        Graph([layer("image", "input", dims="8x8x3"), layer("it", "test_asked_analysis", "image")]), registry
    )
    x = pixels(8, 8)
    Asked.act = staticmethod(lambda inputs: (inputs[0].astype(np.float64)[..., ::-1],))
    made = evaluate(inference, "it", [x])
    assert list(made) == [Source("it")]
    assert (made[Source("it")].dtype, made[Source("it")].flags.c_contiguous) == (np.float32, True)
    np.testing.assert_array_equal(made[Source("it")], x[..., ::-1])
    cases = [
        (DiagnosticError.of("own", "nameless", remedy="r"), ("own", "it", "nameless", "r")),
        (DiagnosticError.of("own", "named", layer="other"), ("own", "other", "named", "")),
        (
            KeyError("x"),
            ("analysis-failed", "it", "the analysis layer 'it' failed: KeyError: 'x'", "change its parameters, or remove it"),
        ),
    ]  # fmt: skip
    for error, expected in cases:
        Asked.act = staticmethod(raises(error))
        with pytest.raises(DiagnosticError) as caught:
            evaluate(inference, "it", [x])
        (d,) = caught.value.diagnostics
        assert (d.code, d.layer, d.message, d.remedy or "") == expected


# --- caches and neighbors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_kept_results_are_the_latest_within_the_limits(seed):
    """A list, from the least to the most recently used, does the same."""
    source = random.Random(seed)
    limit = source.choice([0, 40, 100, 10_000])
    kept, model = Results(limit), []
    for _ in range(150):
        key = str(source.randrange(40))
        if source.random() < 0.4:
            found = kept.get(key)
            assert (found is not None) == any(k == key for k, _ in model)
            if found is not None:
                model.append(next(model.pop(i) for i, (k, _) in enumerate(model) if k == key))
        elif source.random() < 0.7:
            if not any(k == key for k, _ in model):
                size = source.randrange(1, 9)
                model.append((key, size))
                kept.put(key, Result({Source(key): np.zeros(size, np.uint8)}, {}, group=f"g{size}"))
        else:
            fresh = {str(source.randrange(40)) for _ in range(3)}
            lost = kept.trim(fresh)
            old = [entry for entry in model if entry[0] not in fresh]
            order = old + [entry for entry in model if entry[0] in fresh]
            dropped = []
            while order and (
                sum(size for _, size in order) > limit or len(order) - len([e for e in model if e[0] in fresh]) > OLD
            ):
                dropped.append(order.pop(0))
            assert lost == [Source(key) for key, _ in dropped if key in fresh]
            model = [entry for entry in model if entry not in dropped]
        assert kept.nbytes == sum(size for _, size in model)
        for size in range(1, 9):
            assert [k for k, _ in kept.like(f"g{size}")] == [k for k, s in reversed(model) if s == size]


def chain_of(*kinds) -> Graph:
    layers = [layer("image", "input", dims="8x8x4")]
    params = {"convolution": {"features": "4"}, "element_wise": {"operation": "add"}, "split": {"parts": "2"}}
    for number, kind in enumerate(kinds):
        before = layers[-1].name
        reads = f"{before},image" if kind == "element_wise" else before
        activation = LEAKY if kind == "activation" else None
        layers.append(layer(f"{number} {kind}", kind, reads, activation, **params.get(kind, {})))
    return Graph([*layers, layer("result", "output", layers[-1].name)])


@pytest.mark.parametrize(
    ("kinds", "fold"),
    [
        (("convolution", "batch_normalization"), True),
        (("convolution", "activation"), True),
        (("convolution", "element_wise"), True),
        (("convolution", "convolution"), False),
        (("convolution", "pooling"), False),
        (("convolution", "identity", "activation"), True),
        (("convolution", "dropout", "identity", "pooling"), False),
        (("batch_normalization", "activation"), True),
        (("pooling", "activation"), False),
        (("activation", "activation"), False),
        (("element_wise", "activation"), False),
    ],
)
def test_tensors_that_an_engine_may_fold(runtime_registry, kinds, fold):
    inference = Inference(chain_of(*kinds), runtime_registry)
    assert folded(inference, Source(f"0 {kinds[0]}")) is fold


@pytest.mark.parametrize("names", ["abcd", "dcba", "badc"])
def test_consumers_next_to_and_behind_one_that_passes_its_input_through_are_folded(runtime_registry, names):
    """Whatever the order of the names of the consumers."""
    same, norm, pool, more = names

    def tensor_of(*behind):
        layers = [layer("image", "input", dims="8x8x4"), layer("conv", "convolution", "image", features="4")]
        layers += [layer(same, "identity", "conv"), layer(pool, "pooling", "conv"), *behind]
        return folded(Inference(Graph(layers), runtime_registry), Source("conv"))

    assert tensor_of(layer(norm, "batch_normalization", "conv"), layer(more, "pooling", same))
    assert tensor_of(layer(norm, "batch_normalization", same), layer(more, "pooling", same))
    assert tensor_of(layer(norm, "batch_normalization", more), layer(more, "dropout", same))
    assert not tensor_of(layer(more, "pooling", same), layer(norm, "batch_normalization", more))


def test_one_of_several_consumers_suffices_to_fold(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x4"),
            layer("conv", "convolution", "image", features="4"),
            layer("pool", "pooling", "conv"),
            layer("act", "activation", "conv", RELU),
            layer("more", "pooling", "conv"),
            layer("linear", "linear", "pool", features="3"),
        ]
    )
    inference = Inference(graph, runtime_registry)
    assert folded(inference, Source("conv"))
    assert not folded(inference, Source("pool"))


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("tensors", [1, 2, 2.5, 4, 99])
def test_neighbors_are_in_groups_of_limited_memory(runtime_registry, tensors, batch, careful):
    kinds = ("convolution", "activation", "identity", "convolution", "convolution", "batch_normalization", "activation")
    inference = Inference(chain_of(*kinds), runtime_registry)
    (step,) = make_plan(inference, [Source("result")]).steps
    size = 4 * 4 * 8 * 8 * batch
    names = [name for name in step.part.layers if "identity" not in name]
    if careful:
        names = [name for name in names if not folded(inference, Source(name))]
    groups, room = [[]], tensors * size
    for name in names:
        if room < size and groups[-1]:
            groups.append([])
            room = tensors * size
        groups[-1].append(name)
        room -= size
    for name in names:
        wide = with_neighbors(inference, step, [Source(name)], int(tensors * size), batch, careful=careful)
        near = next(group for group in groups if name in group)
        rest = [source.layer for source in step.wanted if source.layer not in near]
        assert [source.layer for source in wide.wanted] == [*rest, *near]
        assert wide.part == step.part


# --- values that are not finite ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_counts_of_values_that_are_not_finite(dtype, shape):
    array = np.full(shape, 3e4 if dtype == np.float16 else 1e30, dtype)
    assert nonfinite(array) is None
    if not array.size:
        return
    flat = array.reshape(-1).copy()
    flat[-1] = np.nan
    found = nonfinite(flat.reshape(shape))
    assert (found.nan, found.inf, found.total) == (1, 0, array.size)
    flat[0] = -np.inf
    found = nonfinite(flat.reshape(shape).T)
    expected = (0, 1) if array.size == 1 else (1, 1)
    assert (found.nan, found.inf, found.total) == (*expected, array.size)
    assert found.kind == ("inf" if array.size == 1 else "nan")
    assert found.share == sum(expected) / array.size


def makers() -> dict[str, str]:
    """The functions of the layer `unary` that are not defined for all numbers, by their ONNX operator."""
    return {
        "log": "Log", "sqrt": "Sqrt", "exp": "Exp", "acos": "Acos", "asin": "Asin", "acosh": "Acosh", "atanh": "Atanh",
        "cosh": "Cosh", "sinh": "Sinh", "reciprocal": "Reciprocal",
    }  # fmt: skip


def test_operators_that_make_nan_or_infinity():
    assert {
        "Acos", "Acosh", "Asin", "Atanh", "Cosh", "Div", "Exp", "Log", "Mod", "Pow", "Reciprocal", "ReduceLogSum", "Sinh",
        "Sqrt",
    } == MAKERS  # fmt: skip
    assert set(makers().values()) <= MAKERS


def test_layers_whose_values_are_checked(runtime_registry):
    """Of every operator the examples whose result can be NaN although their input is not."""
    lines = []
    for operator in sorted(runtime_registry, key=lambda cls: cls.type):
        for number, example in enumerate(operator.examples):
            made = operator(**dict(example.params))
            try:
                outputs = made.infer_checked(example.inputs)
            except (ShapeError, NotImplementedError):
                continue
            state = SimpleNamespace(outputs=outputs, inputs=example.inputs)
            inference = SimpleNamespace(
                states={"it": state},
                read=lambda name, made=made: SimpleNamespace(operator=made, diagnostics=()),
                tensors=lambda name: (Source(name),),
            )
            if NonfiniteProbes(inference).of(Part(("it",), ()), "form"):
                lines.append(f"{operator.type} {number} {dict(example.params)}")
    check_lines("nonfinite_probes.txt", lines)


def traced(registry, *layers, array=None, weights=None) -> tuple:
    graph = Graph([layer("image", "input", dims="4x4x3"), *layers, layer("result", "output", layers[-1].name)])
    session = Session(graph, registry, weights or Weights(), PLAIN)
    session.set_input("image", pixels(4, 4) if array is None else array, is_image=True)
    return trace_nonfinite(session), session


@pytest.mark.parametrize("together", [1, 4 * 3 * 4 * 4, 2 * 4 * 3 * 4 * 4, 1 << 30])
def test_the_first_layer_of_a_chain_that_makes_nan(runtime_registry, record, monkeypatch, together):
    monkeypatch.setattr(tracing, "TOGETHER", together)
    layers = [layer(name, "unary", before, function=f) for name, before, f in (
        ("a", "image", "abs"), ("b", "a", "abs"), ("c", "b", "log"), ("d", "c", "abs"), ("e", "d", "sqrt"),
    )]  # fmt: skip
    array = pixels(4, 4) + np.float32(0.1)
    array[0, 1, 2, :3] = 0
    aside = layer("aside", "unary", "image", function="log")
    trace, session = traced(runtime_registry, aside, *layers, array=array)
    assert (trace.layer, trace.note) == ("c", "")
    assert (trace.found.nan, trace.found.inf, trace.found.total) == (0, 3, 48)
    assert trace.checked == ("image", "a", "b", "c")
    sizes = [set(wanted) for _, _, wanted in record.ran]
    assert all(wanted <= {"a", "b", "c", "d", "e", "aside"} for wanted in sizes)
    if together == 1 << 30:
        assert len(sizes) == 1
    session.set_input("image", array + 1, is_image=True)
    trace = trace_nonfinite(session)
    assert (trace.layer, trace.found, trace.note) == (None, None, "")
    assert trace.checked == ("image", "a", "b", "c", "d", "e", "result")


def test_the_cause_of_values_that_are_not_finite(runtime_registry, record):
    rng = np.random.default_rng(0)
    good = {"kernel": rng.random((3, 3, 1, 1), np.float32), "bias": rng.random(3, np.float32)}
    conv = layer("conv", "convolution", "image", features="3", kernel="1x1")
    for broken in (["kernel"], ["bias"], ["bias", "kernel"]):
        tensors = {
            WeightKey("conv", name): np.full_like(value, np.inf) if name in broken else value
            for name, value in good.items()
        }
        trace, _ = traced(runtime_registry, conv, weights=Weights(tensors))
        assert trace.layer == "conv"
        names = trace.note.removeprefix("not all of its weights are finite: ").split(", ")
        assert sorted(names) == broken
    array = pixels(4, 4)
    array[0, 0, 0, 0] = np.nan
    trace, _ = traced(
        runtime_registry, conv, array=array, weights=Weights({WeightKey("conv", n): v for n, v in good.items()})
    )
    assert (trace.layer, trace.checked, trace.note) == ("image", ("image",), "the input data already contains them")


def skipping_of(registry, graph, weights=None):
    inference = Inference(graph, registry)
    engine = plain_engines(Record()).get("plain")
    found = SkippedNan(inference, engine)
    if weights is not None:
        found.set_weights(weights)
    return found, inference


def test_every_cause_of_dropped_nan_is_tried(runtime_registry):
    graph = Graph(
        [
            layer("a", "input", dims="8x8x3"),
            layer("b", "input", dims="8x8x3"),
            layer("abs", "unary", "a", function="abs"),
            layer("pool", "pooling", "b", operation="max"),
            layer("again", "pooling", "pool", operation="max"),
            layer("one", "output", "abs"),
            layer("two", "output", "again"),
        ]
    )
    found, inference = skipping_of(runtime_registry, graph)
    (step,) = make_plan(inference, [Source("one"), Source("two")]).steps
    good, bad, infinite = pixels(8, 8), pixels(8, 8), pixels(8, 8)
    bad[0, 2, 7, 7], infinite[0, 0, 0, 0] = np.nan, np.inf
    text = "Plain may drop the NaN of 'b' in 'pool': finite results can be wrong"
    for a, b, expected in (
        (good, good, ""), (bad, good, ""), (bad, bad, text), (good, bad, text), (infinite, infinite, ""), (bad, infinite, ""),
    ):  # fmt: skip
        assert found.note(step.part, "form", {Source("a"): a, Source("b"): b}) == expected


def test_the_layer_whose_weights_are_damaged_must_be_before_the_maximum(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("before", "convolution", "image", features="3"),
            layer("pool", "pooling", "before", operation="max"),
            layer("after", "convolution", "pool", features="3"),
            layer("end", "pooling", "after", operation="max"),
            layer("last", "convolution", "end", features="3"),
            layer("result", "output", "last"),
        ]
    )
    for owner, dropped in (("before", "pool"), ("after", "end"), ("last", ""), ("unknown", "")):
        tensors = {
            WeightKey(owner, "kernel"): np.ones(3, np.float32),
            WeightKey(owner, "bias"): np.full(3, np.nan, np.float32),
        }
        found, inference = skipping_of(runtime_registry, graph, Weights(tensors))
        (step,) = make_plan(inference, [Source("result")]).steps
        expected = f"Plain may drop the NaN of '{owner}' in '{dropped}': finite results can be wrong" if dropped else ""
        assert found.note(step.part, "form", {Source("image"): pixels(8, 8)}) == expected
        of_image = "Plain may drop the NaN of 'image' in 'pool': finite results can be wrong"
        damaged = {Source("image"): np.full_like(pixels(8, 8), np.nan)}
        assert found.note(step.part, "form", damaged) == (expected or of_image)  # weights are named before the data
        assert found.note(step.part, "form", {Source("image"): pixels(8, 8)}) == expected
        found.set_weights(Weights())
        assert found.note(step.part, "form", {Source("image"): pixels(8, 8)}) == ""
        assert found.note(step.part, "form", damaged) == of_image


def test_the_activation_of_a_layer_may_drop_the_nan_of_its_own_weights(runtime_registry):
    for name, activation in (("attached", RELU), ("plain", None)):
        graph = Graph(
            [
                layer("image", "input", dims="8x8x3"),
                layer("conv", "convolution", "image", activation, features="3"),
                layer("result", "output", "conv"),
            ]
        )
        inference = Inference(graph, runtime_registry)
        found = SkippedNan(inference, SimpleNamespace(title="Made", skips_nan=frozenset({"Relu"})))
        found.set_weights(Weights({WeightKey("conv", "bias"): np.full(3, np.nan, np.float32)}))
        (step,) = make_plan(inference, [Source("result")]).steps
        note = found.note(step.part, "form", {Source("image"): pixels(8, 8)})
        text = "Made may drop the NaN of 'conv' in 'conv': finite results can be wrong"
        assert note == (text if name == "attached" else "")


# --- edits -------------------------------------------------------------------------------------------------------


@pytest.fixture
def compared(monkeypatch):
    """The effect of an edit for two results, each a mapping of outputs and perhaps a PSNR to the clean image."""

    def run(one, other, clean_one=None, clean_other=None):
        results = iter(((one, clean_one), (other, clean_other)))
        monkeypatch.setattr(effects, "_run", lambda session: next(results))
        return edit_effect(None, None)

    return run


def image_of(*values) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 1, 1, -1)


def test_the_effect_of_an_edit_in_every_case(compared):
    base = image_of(0.5, 1.0, -2.0)
    assert compared({"a": base}, {"a": base + np.float32(1e-4)}).kept  # 2e-4 is the limit
    assert not compared({"a": base}, {"a": base + np.float32(3e-4)}).kept
    assert not compared({"a": base}, {"a": base - np.float32(3e-4)}).kept
    zero = image_of(0.0, 0.0, 0.0)
    assert compared({"a": zero}, {"a": zero + np.float32(1e-7)}).kept
    assert not compared({"a": zero}, {"a": zero + np.float32(2e-7)}).kept
    worst = compared({"a": base, "b": base}, {"a": base + 1, "b": base - 3}, 30.0, 20.0)
    assert worst == EditEffect(3.0, False, 30.0, 20.0)
    assert str(worst) == "changed: 30.00 -> 20.00 dB on this image"
    assert not compared({"a": base, "b": base}, {"a": base, "b": base - 3}).kept
    assert not compared({"a": base, "b": base}, {"a": base - 3, "b": base}).kept
    shapes = EditEffect(np.inf, False)
    assert compared({"a": base}, {"a": base[..., :2]}) == shapes
    assert compared({"a": base}, {"a": base, "b": base}) == shapes
    assert compared({"a": base, "b": base}, {"a": base}) == shapes
    assert compared({}, {}) == shapes
    assert compared({"a": base}, {"b": base}) == shapes
    for one, other in ((30.0, None), (None, 30.0)):
        found = compared({"a": image_of(0.0, 1.0)}, {"a": image_of(0.1, 1.0)}, one, other)
        assert (found.before, found.after) == (None, pytest.approx(10 * np.log10(2 / 0.01), rel=1e-5))
    pair = compared({"a": image_of(0.0, 1.0), "b": zero}, {"a": image_of(0.1, 1.0), "b": zero + np.float32(0.5)})
    assert pair.after == pytest.approx(10 * np.log10(1 / 0.25), rel=1e-5)  # the worst output
    assert str(pair) == "changed: 6.02 dB to the result before, on this image"
    table = np.array([[0.0, 10.0]], np.float32)  # measured by its own range
    assert compared({"a": table}, {"a": table * 2}).after == pytest.approx(10 * np.log10(100 / 50), rel=1e-5)
    assert str(EditEffect(0.000123, True)) == "function kept (difference 0.0001)"


def test_the_effect_of_an_edit_on_values_that_are_not_finite(compared):
    odd = image_of(np.nan, np.inf, -np.inf, 2.0)
    assert compared({"a": odd}, {"a": odd.copy()}) == EditEffect(0.0, True)
    assert compared({"a": odd}, {"a": odd + image_of(0, 0, 0, 1e-4)}).kept
    assert not compared({"a": odd}, {"a": odd + image_of(0, 0, 0, 1e-3)}).kept
    for other in (
        image_of(0, np.inf, -np.inf, 2),
        image_of(np.nan, -np.inf, -np.inf, 2),
        image_of(np.nan, 0, -np.inf, 2),
    ):
        found = compared({"a": odd}, {"a": other})
        assert not found.kept
        assert not np.isfinite(found.difference)
    finite = image_of(1.0, 2.0)
    found = compared({"a": finite, "b": finite}, {"a": image_of(np.nan, 2.0), "b": finite + 1})
    assert (found.kept, np.isnan(found.difference)) == (False, True)


def test_the_clean_image_of_a_padded_network_is_compared_without_padding(runtime_registry, record):
    def denoiser(bias):
        graph = Graph(
            [
                layer("image", "input", dims="8x8x3", tiling="8"),
                layer("noise", "noise", "image", scale="0.1", seed="1"),
                layer("conv", "convolution", "noise", features="3", kernel="1x1"),
                layer("a result", "output", "conv"),
                layer("other", "convolution", "noise", features="3", kernel="1x1"),
                layer("b result", "output", "other"),
            ]
        )
        tensors = {
            WeightKey(name, tensor): values
            for name, offset in (("conv", bias), ("other", -0.1))
            for tensor, values in (
                ("kernel", np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)),
                ("bias", np.full(3, offset, np.float32)),
            )
        }
        made = Session(graph, runtime_registry, Weights(tensors), PLAIN)
        made.set_input("image", pixels(5, 6), is_image=True)
        return made

    before, after = denoiser(0.0), denoiser(0.2)
    found = edit_effect(before, after)
    values = []
    for session in (before, after):
        shown = session.run([Source("conv")]).captures[Source("conv")][:, :, :5, :6]
        values.append(-10 * np.log10(np.mean((np.clip(shown, 0, 1).astype(np.float64) - pixels(5, 6)) ** 2)))
    assert (found.before, found.after) == (pytest.approx(values[0], rel=1e-5), pytest.approx(values[1], rel=1e-5))
    assert found.difference == pytest.approx(0.2, rel=1e-4)


# --- previews ----------------------------------------------------------------------------------------------------


def area_mean(plane: np.ndarray, height: int, width: int) -> np.ndarray:
    """Each value the mean of the pixels whose centers are in its area."""
    rows, columns = (
        [int((place + 0.5) * count / size) for place in range(size)]
        for size, count in zip(plane.shape, (height, width), strict=True)
    )
    sums, counts = np.zeros((height, width)), np.zeros((height, width))
    for y, x in np.ndindex(*plane.shape):
        sums[rows[y], columns[x]] += plane[y, x]
        counts[rows[y], columns[x]] += 1
    return sums / counts


@pytest.mark.parametrize(("height", "width"), [(4, 6), (2, 3), (3, 5), (4, 4), (3, 6), (5, 7), (4, 5)])
def test_reduced_images_are_means_over_areas(height, width):
    array = np.random.default_rng(0).random((2, 3, 8, 12), np.float32)
    found = resized(array, height, width)
    assert (found.shape, found.dtype) == ((2, 3, height, width), np.float32)
    for n, c in np.ndindex(2, 3):
        np.testing.assert_allclose(found[n, c], area_mean(array[n, c], height, width), atol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(8, 12), (16, 36), (10, 12), (8, 17), (13, 29)])
def test_enlarged_images_repeat_values(height, width):
    array = np.random.default_rng(0).random((2, 3, 8, 12), np.float32)
    found = enlarged(array, height, width)
    assert found.shape == (2, 3, height, width)
    for y, x in np.ndindex(height, width):
        np.testing.assert_array_equal(found[:, :, y, x], array[:, :, y * 8 // height, x * 12 // width])


@pytest.mark.parametrize(
    ("size", "factor", "tile", "reduced"),
    [
        (512, 2, 1, 256), (512, 8, 1, 64), (100, 2, 1, 52), (100, 8, 1, 32), (101, 2, 1, 50), (101, 4, 1, 32),
        (96, 2, 1, 64), (96, 4, 1, 32), (96, 2, 4, 48), (20, 2, 1, 20), (31, 8, 1, 31), (1000, 8, 1, 128), (1000, 8, 8, 125),
        (640, 4, 1, 192), (768, 4, 1, 192), (1920, 2, 1, 960), (1080, 2, 1, 544), (1080, 4, 1, 272), (70, 2, 2, 35),
        (64, 2, 1, 32), (48, 2, 1, 32), (512, 3, 1, 192), (2048, 4, 1, 512), (99, 2, 5, 50),
    ],
)  # fmt: skip
def test_reduced_sides(size, factor, tile, reduced):
    found = _reduced(size, factor, tile)
    wanted = min(size, max(32, round(size / factor)))
    multiple = 1
    while tile <= 1 and multiple < 64 and size % (2 * multiple) == 0 and 2 * multiple <= wanted:
        multiple *= 2
    assert found == min(size, max(round(wanted / multiple), 1) * multiple)
    assert found % multiple == 0
    if (size, factor, tile) in ((512, 2, 1), (96, 2, 4), (20, 2, 1), (70, 2, 2)):
        assert found == reduced


def test_a_preview_is_a_run_on_reduced_inputs_after_every_change(runtime_registry, record):
    graph = Graph(
        [
            layer("image", "input", dims="64x128x3", scale="2.0", tiling="8"),
            layer("conv", "convolution", "image", features="3", kernel="1x1"),
            layer("blur", "noise", "conv", kind="blur", scale="4.0"),
            layer("more", "convolution", "blur", features="3", kernel="1x1"),
            layer("result", "output", "more"),
            layer("numbers", "tensor_input", shape="5"),
            layer("second", "output", "numbers"),
        ]
    )

    def weights(seed):
        rng = np.random.default_rng(seed)
        return Weights({WeightKey(n, t): rng.normal(size=s).astype(np.float32) for n in ("conv", "more")
                        for t, s in (("kernel", (3, 3, 1, 1)), ("bias", (3,)))})  # fmt: skip

    full = Session(graph, runtime_registry, weights(0), PLAIN)
    full.set_input("image", pixels(120, 100), is_image=True)
    full.set_input("numbers", np.arange(5, dtype=np.float32)[None], is_image=False)
    preview = Preview(full, 2)
    assert preview._small.results.keep_bytes == full.results.keep_bytes // 4
    changes = [
        lambda: None,
        lambda: full.set_weights(weights(1)),
        lambda: full.set_formats({"conv": "int4"}),
        lambda: full.set_formats({}),
        lambda: full.set_input("image", pixels(128, 96), is_image=False),
        lambda: full.set_param("blur", "scale", "2.0"),
        lambda: full.set_input("numbers", np.ones((1, 5), np.float32), is_image=False),
        lambda: full.set_input("image", pixels(70, 200), is_image=True),
        lambda: full.set_weights(weights(2)),
    ]
    for number, change in enumerate(changes):
        change()
        fed = full.fed("image")
        height, width = (round(side / 2) for side in fed.extent)
        expected = Session(graph, runtime_registry, full.weights, full.options)
        expected.set_param("blur", "scale", f"{float(full.graph['blur'].params['scale']) / 2}")
        expected.set_input("image", resized(fed.array, height, width), is_image=fed.is_image)
        expected.set_input("numbers", full.fed("numbers").array, is_image=False)
        wanted, reported = expected.run([Source("conv")]), []
        found = preview.run([Source("conv")], lambda *args, seen=reported: seen.append(args))
        assert found.coarse == 2
        assert reported[-1][0] == reported[-1][1] > 0
        shown = full.run([Source("conv")])
        assert found.outputs["result"].shape == shown.outputs["result"].shape
        assert found.captures[Source("conv")].shape == shown.captures[Source("conv")].shape
        for a, b in ((found.outputs["result"], wanted.outputs["result"]),
                     (found.captures[Source("conv")], wanted.captures[Source("conv")])):  # fmt: skip
            np.testing.assert_allclose(a, enlarged(b, *a.shape[2:]), rtol=1e-5, atol=1e-6, err_msg=str(number))
        np.testing.assert_array_equal(found.outputs["second"], full.fed("numbers").array)
        count = len(record.ran)
        preview.run([Source("conv")])
        assert len(record.ran) == count, number  # nothing runs again
    assert preview._small.options.weights_as_inputs
    assert preview._small.weight_prints is full.weight_prints


# --- provenance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "fixed"),
    [("0", "1970-01-01T00:00:00+00:00"), ("1700000000", "2023-11-14T22:13:20+00:00"), ("", ""), ("x", ""), ("-5", ""),
     ("1.5", ""), ("٣", ""), ("1" * 12, "")],
)  # fmt: skip
def test_the_time_of_writing(monkeypatch, epoch, fixed):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    clock = SimpleNamespace(now=_time, fromtimestamp=origins.datetime.fromtimestamp)
    monkeypatch.setattr(origins, "datetime", clock)
    assert written_at() == (fixed or "2026-03-04T05:06:07+00:00")


def _time(zone):
    from datetime import datetime

    return datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=zone)


def test_texts_of_a_provenance(monkeypatch):
    found = Provenance("net.xml", "d", "", "", "torch", versions={"python": "3", "numpy": "2"}, date="today")
    assert found.texts() == {
        "document": "net.xml", "document_sha256": "d", "engine": "torch", "date": "today", "version.python": "3",
        "version.numpy": "2",
    }  # fmt: skip
    assert json.loads(found.comment()) == {"provenance": found.texts()}
    graph = Graph([layer("image", "input", dims="8x8x3"), layer("result", "output", "image")])
    weights = Weights({WeightKey("a", "bias"): np.ones(3, np.float32)}, note="random weights (seed 3)")
    options = RunOptions("plain", "fp16", "nhwc", "cuda:1", 4)
    made = provenance("doc", graph, weights, options, noise="some", noise_seed="9")
    assert (made.document, made.document_sha256, made.weights, made.weights_sha256) == (
        "doc", digest_of(graph), weights.title, weights.sha256
    )  # fmt: skip
    assert (made.engine, made.precision, made.layout, made.device, made.threads, made.noise, made.noise_seed) == (
        "plain", "fp16", "nhwc", "cuda:1", "4", "some", "9"
    )  # fmt: skip
    assert provenance("doc", graph, None, replace(options, threads=0)).threads == "all cores"
    plain = provenance("doc", graph, weights)
    assert (plain.weights, plain.weights_sha256, plain.engine, plain.threads) == (weights.title, weights.sha256, "", "")


def test_every_noise_layer_is_in_the_provenance(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("a", "noise", "image", kind="gaussian", scale="0.1", seed="3"),
            layer("mix", "mix", "a,image"),
            layer("b", "noise", "mix", kind="jpeg", scale="0.5"),
            layer("result", "output", "b"),
        ]
    )
    assert noise_layers(Inference(graph, runtime_registry)) == {
        "noise": "a: gaussian 0.1; b: jpeg 0.5",
        "noise_seed": "a: 3; b: 0",
    }


def test_the_digest_of_a_network_covers_shared_weights_in_any_order():
    layers = [layer("image", "input", dims="8x8x3")]
    layers += [
        replace(layer(n, "convolution", "image", features="3"), weights_of=o) for n, o in (("a", "x"), ("b", "y"))
    ]
    one, other = Graph(layers), Graph([layers[0], layers[2], layers[1]])
    swapped = Graph([layers[0], replace(layers[1], weights_of="y"), replace(layers[2], weights_of="x")])
    alone = Graph([replace(x, weights_of="") for x in layers])
    assert len({digest_of(g) for g in (one, swapped, alone)}) == 3
    assert digest_of(one) == digest_of(one.copy())
    assert digest_of(other) == digest_of(one)


# --- patterns and inputs -----------------------------------------------------------------------------------------


def test_the_noise_pattern_never_changes():
    expected = np.random.Generator(np.random.Philox(0)).random((2, 4, 7))
    np.testing.assert_array_equal(make_pattern("noise", 2, 4, 7)[0], expected.astype(np.float32))
    for name in PATTERNS:
        made = make_pattern(name, 3, 5, 9)
        assert (made.shape, made.dtype) == ((1, 3, 5, 9), np.float32)
        assert made.min() >= 0
        assert made.max() <= 1
        assert make_pattern(name, 1, 1, 1).shape == (1, 1, 1, 1)
        assert np.isfinite(make_pattern(name, 2, 1, 1)).all()
        assert pattern_name(f"pattern:{name}") == name
        assert pattern_name(name) is None
    with pytest.raises(DiagnosticError) as caught:
        pattern_name("pattern:noisy")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("no-such-pattern", "there is no test pattern 'noisy'")
    assert found.remedy == "choose one of zone_plate, gradient, edges, noise"


@pytest.mark.parametrize(("height", "width"), [(33, 50), (40, 24), (16, 16)])
def test_every_pixel_of_the_patterns_by_formula(height, width):
    zones, edges = (make_pattern(name, 1, height, width)[0, 0] for name in ("zone_plate", "edges"))
    for y, x in np.ndindex(height, width):
        r2 = (x - (width - 1) / 2) ** 2 + (y - (height - 1) / 2) ** 2
        assert zones[y, x] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * r2 / min(height, width)), abs=1e-5)
        left = x < width // 2
        if y < height // 2:
            expected = (x // 8 + y // 8) % 2 if left else x - 0.75 * width > 0.1 * (y - 0.25 * height)
        else:
            distance = x if left else abs(y - height // 2)
            expected = int(np.sqrt(distance * 8 + 1)) % 2
        assert edges[y, x] == expected, (y, x)


def operator(registry, kind="input", **params):
    return operator_of(Inference(Graph([layer("it", kind, **params)]), registry), "it")


@pytest.mark.parametrize("value", [None, 0, 1, 4, Size2D(5, 3), Size2D(1, 8), Size2D(0, 2)])
@pytest.mark.parametrize("extent", [(8, 12), (9, 13), (1, 1)])
def test_the_padding_of_an_input(value, extent):
    made = SimpleNamespace(dims=Size3D(5, 7, 2), tiling=value, scale=3.0, shift=-0.5)
    tile = (value.height, value.width) if isinstance(value, Size2D) else (value, value)
    tile = tuple(max(1, side or 0) for side in tile)
    assert tiling(made) == tile
    padded = tuple(next(n for n in range(s, s + each) if n % each == 0) for s, each in zip(extent, tile, strict=True))
    assert padded_extent(made, extent) == padded
    assert factors(made) == (3.0, -0.5)
    assert factors(SimpleNamespace()) == (1.0, 0.0)
    array = np.random.default_rng(0).random((2, 2, *extent), np.float32)
    for is_image in (True, False):
        fed = InputData(array, is_image, 1)
        made_sized = sized(layer("it", "input", dims="5x7x2", batch="2"), made, fed)
        assert made_sized.params == {"dims": f"{padded[1]}x{padded[0]}x2", "batch": "2"}
        found = prepare(made, fed)
        assert found.shape[2:] == padded
        values = array * 3 - np.float32(0.5) if is_image else array
        for y, x in np.ndindex(*padded):
            expected = values[:, :, min(y, extent[0] - 1), min(x, extent[1] - 1)]
            np.testing.assert_allclose(found[:, :, y, x], expected, rtol=1e-6)
    for half in (1, 2):
        size = tuple(max(1, round(n // half * e / p)) for n, e, p in zip(padded, extent, padded, strict=True))
        assert cropped([n // half for n in padded], extent, padded) == size


def test_a_shift_alone_is_added_to_images(runtime_registry):
    array = pixels(3, 4)
    for scale, shift in (("1.0", "0.25"), ("2.0", "0.0"), ("1.0", "0.0")):
        made = operator(runtime_registry, dims="4x3x3", scale=scale, shift=shift)
        expected = array * float(scale) + np.float32(shift)
        np.testing.assert_allclose(prepare(made, InputData(array, True, 0)), expected, rtol=1e-6)
        assert prepare(made, InputData(array, False, 0)) is array


@pytest.mark.parametrize(
    ("params", "shape", "found"),
    [
        ({"dims": "4x3x2"}, (1, 2, 3, 4), None),
        ({"dims": "4x3x2"}, (5, 2, 9, 9), None),
        ({"dims": "4x3x2"}, (2, 3, 4), ("input-shape", None, "the input 'it' needs a tensor N x C x H x W, not 2 x 3 x 4")),
        ({"dims": "4x3x2"}, (1, 2, 0, 4), ("input-shape", None, "the input 'it' needs a tensor N x C x H x W, not 1 x 2 x 0 x 4")),
        ({"dims": "4x3x2"}, (1, 3, 3, 4), ("input-channels", "dims", "the input 'it' needs 2 channels (dims 4x3x2), but the data has 3")),
        ({"dims": "4x3x2", "batch": "2"}, (1, 2, 3, 4), ("input-shape", "batch", "the input 'it' needs a batch of 2, not 1")),
        ({"dims": "4x3x2", "batch": "2"}, (3, 2, 3, 4), ("input-shape", "batch", "the input 'it' needs a batch of 2, not 3")),
        ({"dims": "4x3x2", "batch": "2"}, (2, 2, 3, 4), None),
    ],
)  # fmt: skip
def test_arrays_that_fit_an_input(runtime_registry, params, shape, found):
    made = operator(runtime_registry, **params)
    if found is None:
        check_fed("it", made, np.zeros(shape, np.float32))
        return
    with pytest.raises(DiagnosticError) as caught:
        check_fed("it", made, np.zeros(shape, np.float32))
    (d,) = caught.value.diagnostics
    assert (d.code, d.parameter, d.message, d.layer) == (*found, "it")
    assert d.remedy


def test_tensors_that_fit_an_input_of_any_shape(runtime_registry):
    made = operator(runtime_registry, "tensor_input", shape="3,4", batch="true")
    check_fed("it", made, np.zeros((2, 5, 6), np.float32))
    for shape in ((3, 4), (0, 3, 4), (1, 3, 4, 1)):
        with pytest.raises(DiagnosticError, match="input-shape"):
            check_fed("it", made, np.zeros(shape, np.float32))
    before = layer("it", "tensor_input", shape="3,4", batch="true")
    assert sized(before, made, InputData(np.zeros((2, 5, 6), np.float32), False, 0)).params["shape"] == "5,6"
    assert sized(before, made, InputData(np.zeros((2, 3, 4), np.float32), False, 0)) is before
    assert sized(before, None, InputData(np.zeros((2, 3, 4), np.float32), False, 0)) is before
    with_batch = operator(runtime_registry, "tensor_input", shape="3,4", batch="false")
    assert sized(before, with_batch, InputData(np.zeros((7, 8), np.float32), False, 0)).params["shape"] == "7,8"


def test_tensors_for_inputs_without_data():
    for dtype in (DataType.FLOAT32, DataType.FLOAT16, DataType.INT64, DataType.BOOL):
        kind = TensorType((BATCH, 3), dtype)
        made = noise(kind, 4, np.random.default_rng(0))
        assert (made.shape, made.dtype) == ((4, 3), np.dtype(dtype.value))
        if dtype.is_float:
            expected = np.random.default_rng(0).random((4, 3), np.float32).astype(made.dtype)
            np.testing.assert_array_equal(made, expected)
        else:
            assert not made.any()


@pytest.mark.parametrize(
    ("shape", "channels", "expected"),
    [((4, 5), 1, (1, 1, 4, 5)), ((4, 5), 4, (4, 5)), ((3, 4, 5), 3, (1, 3, 4, 5)), ((3, 4, 3), 3, (1, 3, 4, 3)),
     ((4, 5, 3), 3, (1, 3, 4, 5)), ((4, 5, 3), 5, (4, 5, 3)), ((2, 3, 4, 5), 3, (2, 3, 4, 5)), ((6,), 6, (6,))],
)  # fmt: skip
def test_batches_of_one(shape, channels, expected):
    array = np.random.default_rng(0).random(shape, np.float32)
    made = as_batch(array, channels)
    assert made.shape == expected
    if len(shape) == 3 and len(expected) == 4:
        same = array if shape[0] == channels else array.transpose(2, 0, 1)
        np.testing.assert_array_equal(made[0], same)


# --- interrupts, shared tensors, formats -------------------------------------------------------------------------


def test_every_hook_is_called_and_none_stays():
    asked, calls = Interrupt(), []
    with pytest.raises(ValueError, match="inside"), asked.hook(lambda: calls.append("gone")):
        raise ValueError("inside")
    with asked.hook(lambda: calls.append(1)), asked.hook(lambda: calls.append((2, asked.asked))):
        with asked.hook(lambda: calls.append(3)):
            pass
        asked.ask()
    assert calls == [1, (2, True)]
    asked.ask()
    assert calls == [1, (2, True)]
    outer = Interrupt()
    with interruptible(outer):
        with interruptible(asked):
            assert current() is asked
        with pytest.raises(ValueError, match="inside"), interruptible(asked):
            raise ValueError("inside")
        assert current() is outer
        with interruptible(None):
            assert current() not in (asked, outer)
    assert current() not in (asked, outer)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0)])
def test_shared_tensors_come_back_as_they_were(tmp_path, dtype, shape):
    folder = SharedFolder(tmp_path)
    array = (np.random.default_rng(0).random(shape) * 9).astype(dtype)
    for each in (array, array.T, array[::-1] if array.ndim else array):
        handle = folder.put(each)
        assert (handle.shape, handle.dtype) == (each.shape if each.ndim else handle.shape, dtype)
        found = folder.get(handle)
        np.testing.assert_array_equal(np.reshape(found, each.shape), each)
        assert found.dtype == each.dtype
        if found.size:
            assert not found.flags.writeable
        folder.free(handle)
        folder.free(handle)  # it need not exist
    assert list(tmp_path.iterdir()) == []


def test_tensors_of_other_types_are_not_shared(tmp_path):
    for array in (np.zeros(3, np.complex64), np.array(["a"]), np.array([None])):
        with pytest.raises(ValueError, match="cannot be shared"):
            SharedFolder(tmp_path).put(array)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_bits_of_weights(name):
    bits = int("".join(c for c in name if c.isdigit()))
    integer = name.startswith("int")
    assert FORMATS[name].weight_bits((4, 3, 2)) == 24 * bits
    assert FORMATS[name].weight_bits((5,)) == 5 * (32 if integer else bits)
    assert FORMATS[name].weight_bits(()) == bits


def test_formats_of_precisions():
    assert {name: each.name for name, each in OF_PRECISION.items()} == {
        "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"
    }  # fmt: skip
    assert list(FORMATS) == [
        "float32", "float16", "bfloat16", "int16", "int8", "int7", "int6", "int5", "int4", "int3", "int2"
    ]  # fmt: skip
    assert (FLOAT32.smallest, FLOAT16.smallest, FORMATS["bfloat16"].smallest) == (2.0**-149, 2.0**-24, 2.0**-133)


@pytest.mark.parametrize("name", ["int8", "int4", "int2"])
@pytest.mark.parametrize("low", [-3.0, 0.5, -2.0])
def test_rounding_to_integers_is_that_of_scalar_arithmetic(name, low):
    torch = pytest.importorskip("torch")
    from designer.runtime.rounding import rounded

    bits = FORMATS[name].bits
    values = np.random.default_rng(3).uniform(low, low + 2, (3, 4, 2)).astype(np.float32)
    before = values.copy()
    found = rounded(torch.from_numpy(values), FORMATS[name]).numpy()
    np.testing.assert_array_equal(values, before)
    least, most = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = (most - least) / (2**bits - 1)
    lowest = round(least / scale)
    for value, made in zip(values.ravel(), found.ravel(), strict=True):
        level = min(max(round(float(value) / scale), lowest), lowest + 2**bits - 1)
        assert abs(made - level * scale) < 1e-5 or abs(abs(float(value) / scale % 1) - 0.5) < 1e-3
    for axis in range(3):
        found = rounded(torch.from_numpy(values), FORMATS[name], axis=axis).numpy()
        for index in range(values.shape[axis]):
            mine, made = np.take(values, index, axis), np.take(found, index, axis)
            scale = np.abs(mine).max() / (2 ** (bits - 1) - 1)
            np.testing.assert_allclose(made, np.rint(mine / scale) * scale, atol=1e-5)
    assert rounded(torch.zeros(0), FORMATS[name]).numel() == 0
    whole = torch.from_numpy(values)
    assert rounded(whole, FLOAT32) is whole


def test_torch_need_not_import_its_compiler_to_round_results():
    """It wraps a mode that it does not compile with a function of its compiler, which takes a second to import."""
    pytest.importorskip("torch")
    from designer.runtime.rounding import Rounding

    assert not hasattr(Rounding.__torch_dispatch__, "__wrapped__")


def test_results_of_a_program_are_rounded_and_observed():
    torch = pytest.importorskip("torch")
    from designer.runtime.rounding import Rounding

    x, seen, formats = (
        torch.tensor([[0.1, 0.2], [0.3, 0.7]]),
        [],
        {"half": FLOAT16, "whole": FLOAT32, "int": FORMATS["int4"]},
    )
    at = ["half"]
    with Rounding(lambda: at[0], formats.__getitem__, lambda *entry: seen.append(entry)):
        turned = x.t()
        made = x + x
        at[0] = "whole"
        plain = x * 3
        at[0] = "int"
        product, copied = x * 7, x.clone()
        shaped = x.clone(memory_format=torch.contiguous_format)
        counts = (x > 0.25).sum()
    torch.testing.assert_close(turned, x.t(), rtol=0, atol=0)
    torch.testing.assert_close(made, (x + x).half().float(), rtol=0, atol=0)
    torch.testing.assert_close(plain, x * 3, rtol=0, atol=0)
    torch.testing.assert_close(product, x * 7, rtol=0, atol=0)
    torch.testing.assert_close(shaped, x, rtol=0, atol=0)
    torch.testing.assert_close(copied, torch.round(x / (0.7 / 15)) * (0.7 / 15), rtol=0, atol=1e-6)
    assert counts.dtype == torch.int64
    assert [(entry[0], entry[1]) for entry in seen] == [
        ("half", "add"), ("whole", "mul"), ("int", "mul"), ("int", "clone"), ("int", "clone")
    ]  # fmt: skip
    args, before, after = seen[0][2:]
    assert args[0] is x
    torch.testing.assert_close(before, x + x, rtol=0, atol=0)
    torch.testing.assert_close(after, made, rtol=0, atol=0)


def test_a_late_and_an_early_step_are_steps_of_one_plan(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("early", "noise", "image"),
            layer("act", "activation", "early", RELU),
            layer("late", "mix", "act,early"),
            layer("result", "output", "late"),
        ]
    )
    steps = make_plan(Inference(graph, runtime_registry), [Source("result")]).steps
    assert [(s.layer, s.late) if isinstance(s, AnalysisStep) else s.part.layers for s in steps] == [
        ("early", False), ("act",), ("late", True)
    ]  # fmt: skip
