"""Parts of the engines one by one: names in ONNX models, what is refused, options of sessions, and what is timed."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.weights import WeightKey, Weights, random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import DataType, Symbol, TensorType
from designer.runtime.api import Part
from designer.runtime.engines import kernels, onnx_model, ort_engine, pytorch, torch_memory, trt, trt_build
from designer.runtime.engines.ort_steps import Value
from designer.runtime.interrupt import Interrupt, InterruptedRunError, interruptible

onnx = pytest.importorskip("onnx")
helper = onnx.helper


def said(act: Any) -> tuple[str, str, str, str | None]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.remedy, found.layer


# --- ONNX models -------------------------------------------------------------------------------------------------


def test_every_name_of_a_graph_and_of_the_graphs_in_it_is_renamed():
    info = lambda name: helper.make_tensor_value_info(name, 1, [2])  # noqa: E731
    inner = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["inside"], name="n")], "inner", [], [info("inside")]
    )
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["inside 2"])], "other", [], [info("inside 2")])
    node = helper.make_node("If", ["c", ""], ["y"], name="if", then_branch=inner)
    several = helper.make_attribute("several", [other, inner])
    node.attribute.append(several)
    weight = onnx.numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph([node], "graph", [info("x"), info("c")], [info("y")], [weight], value_info=[info("v")])
    sparse = graph.sparse_initializer.add()
    sparse.values.name = "s"
    onnx_model.rename_values(graph, {"x": "image", "y": "made"}, "p")

    def names(found: Any) -> list[Any]:
        parts: list[Any] = [
            [entry.name for entry in found.input], [entry.name for entry in found.output],
            [entry.name for entry in found.initializer], [entry.name for entry in found.value_info],
            [entry.values.name for entry in found.sparse_initializer],
        ]  # fmt: skip
        for each in found.node:
            parts.append((each.name, list(each.input), list(each.output)))
            for attribute in each.attribute:
                inside = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                parts += [names(graph) for graph in inside]
        return parts

    add = [[], ["p/inside"], [], [], [], ("p/n", ["image", "p/w"], ["p/inside"])]
    neg = [[], ["p/inside 2"], [], [], [], ("", ["image"], ["p/inside 2"])]
    found = names(graph)
    assert found[:6] == [
        ["image", "p/c"], ["made"], ["p/w"], ["p/v"], ["p/s"], ("p/if", ["p/c", ""], ["made"])
    ]  # fmt: skip
    assert found[6:] == [add, neg, add]


def test_weights_that_a_model_lacks():
    key = WeightKey("conv", "kernel")
    weights = Weights({key: np.zeros((2, 3), np.float32)})
    assert onnx_model.weight(weights, key, (2, 3)) is weights.tensors[key]
    assert onnx_model.weight(weights, key, None) is weights.tensors[key]
    remedy = "choose a weights folder that has it, or random weights with a seed"
    assert said(lambda: onnx_model.weight(Weights(), key, (4, 5, 6))) == (
        "missing-weight", "the weights of 'conv' lack 'kernel' of shape 4 x 5 x 6", remedy, "conv"
    )  # fmt: skip
    assert said(lambda: onnx_model.weight(Weights(), key, None))[1] == "the weights of 'conv' lack 'kernel'"
    assert said(lambda: onnx_model.weight(weights, key, (4, 3))) == (
        "wrong-weight-shape", "'kernel' of 'conv' has the shape 2 x 3, but the layer needs 4 x 3",
        "choose the weights that belong to this network, or change the layer's parameters back", "conv",
    )  # fmt: skip


def test_a_model_that_is_too_large_says_its_size():
    limit = onnx_model.MAX_BYTES
    model = lambda size: SimpleNamespace(ByteSize=lambda: size, SerializeToString=lambda: b"model")  # noqa: E731
    assert onnx_model.serialized(model(limit)) == b"model"
    assert said(lambda: onnx_model.serialized(model(limit + 1))) == (
        "model-too-large", "the network takes 2.1 GB as ONNX, more than the 2.1 GB that one file can hold",
        "run it with the torch engine", None,
    )  # fmt: skip
    assert "takes 5.0 GB" in said(lambda: onnx_model.serialized(model(5_000_000_000)))[1]


def test_inputs_and_outputs_of_models_have_the_names_of_tensors(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"),
            layer("parts", "split", "image", axis="1", sizes="1,2"),
            layer("same", "identity", "image"),
            layer("conv", "convolution", "image", features="2", kernel="1x1"),
            layer("result", "output", "conv"),
        ],
        name="my network",
    )
    inference = Inference(graph, runtime_registry)
    weights = random_weights(required_weights(inference), 0)
    part = Part(("parts", "same", "conv"), (Source("image"),))
    second = inference.tensors("parts")[1]
    wanted = [second, Source("conv"), Source("conv"), Source("image"), Source("parts"), Source("same")]
    expected = {
        "nchw": [str(second), "conv", "conv/output", "image/output", str(inference.tensors("parts")[0]), "same"],
        "nhwc": [f"{second}/nhwc", "conv/nhwc", "conv/nhwc", "image", f"{inference.tensors('parts')[0]}/nhwc", "same/nhwc"],
    }  # fmt: skip
    made = onnx_model.build_model(inference, part, wanted, weights, metadata={"a": "b"}, producer_version="1.2")
    assert [value.name for value in made.graph.output] == expected["nchw"]
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.name, made.producer_name, made.producer_version) == ("my network", "layerwright", "1.2")
    assert [(entry.key, entry.value) for entry in made.metadata_props] == [("a", "b")]
    assert [(entry.domain, entry.version) for entry in made.opset_import] == [("", onnx_model.OPSET)]
    dims = lambda value: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]  # noqa: E731
    assert [dims(value) for value in made.graph.output] == [
        ["N", 2, 4, 6], ["N", 2, 4, 6], ["N", 2, 4, 6], ["N", 3, 4, 6], ["N", 1, 4, 6], ["N", 3, 4, 6]
    ]  # fmt: skip
    last = onnx_model.build_model(inference, part, [Source("conv"), second], weights, layout="nhwc")
    onnx.checker.check_model(last, full_check=True)
    assert [value.name for value in last.graph.output] == ["conv/nhwc", f"{second}/nhwc"]
    assert [dims(value) for value in (*last.graph.input, *last.graph.output)] == [
        ["N", 4, 6, 3], ["N", 4, 6, 2], ["N", 4, 6, 2]
    ]  # fmt: skip
    assert (last.producer_version, list(last.metadata_props)) == ("", [])
    inputs, keys = onnx_model.build_model_of_weights(inference, part, [Source("conv")], weights, layout="nhwc")
    onnx.checker.check_model(inputs, full_check=True)
    assert [(value.name, dims(value)) for value in inputs.graph.input] == [
        ("image", ["N", 4, 6, 3]), ("conv/kernel", [2, 3, 1, 1]), ("conv/bias", [2])
    ]  # fmt: skip
    assert keys == {name: WeightKey("conv", name.partition("/")[2]) for name in ("conv/kernel", "conv/bias")}
    assert not {tensor.name for tensor in inputs.graph.initializer} & keys.keys()


def test_the_highest_version_of_each_domain_is_required(runtime_registry):
    graph = Graph([layer("image", "input", dims="6x4x3"), layer("result", "output", "image")])
    builder = onnx_model._Builder(Inference(graph, runtime_registry), Weights())
    for domain, version in (("", 3), ("ai.onnx", 99), ("mine", 2), ("mine", 1), ("", 98)):
        builder.require(domain, version)
    assert builder.opsets == {"": 99, "mine": 2}
    assert [builder.fresh("a") for _ in range(3)] == ["a", "a_1", "a_2"]
    assert [onnx_model._attribute(value) for value in (True, False, (1, 2), 0.5, "x")] == [1, 0, [1, 2], 0.5, "x"]
    assert type(onnx_model._attribute(True)) is int


# --- OpenVINO ----------------------------------------------------------------------------------------------------


def node(op: str, reads: str = "x", makes: str = "y", name: str = "", **attributes: Any) -> Any:
    return helper.make_node(op, reads.split(","), makes.split(","), name=name or f"{makes}/{op}", **attributes)


def test_nodes_that_openvino_computes_differently():
    from designer.runtime.engines import openvino_engine as module

    resize, lrn, mod = (
        "it ignores the antialiasing of Resize",
        "its local response normalization is wrong for constants other than 1",
        "its remainder exceeds the divisor where the quotient is large",
    )
    cases = [
        (node("Resize", antialias=1), resize), (node("Resize", antialias=0), ""), (node("Resize"), ""),
        (node("LRN", size=3, bias=2.0), lrn), (node("LRN", size=3, bias=0.5), lrn), (node("LRN", size=3, bias=1.0), ""),
        (node("Mod", fmod=1), mod), (node("Mod", fmod=0), ""), (node("Add"), ""),
    ]  # fmt: skip
    assert [module._difference(each) for each, _ in cases] == [expected for _, expected in cases]
    shapes = {"one": (4, 1, 3, 3), "three": (4, 3, 3, 3)}
    convolutions = [
        (node("Conv", "x,one"), True), (node("Conv", "x,three"), False), (node("Conv", "x,one", group=4), False),
        (node("Conv", "x,one", group=1), True), (node("ConvTranspose", "x,one"), False), (node("Conv", "x,computed"), False),
    ]  # fmt: skip
    assert [module._reads_one_channel(each, shapes) for each, _ in convolutions] == [e for _, e in convolutions]
    divided, other = node("Div", "a,b", "q", "it/Div"), node("Div", "a,constant", "r", "it/Div_1")
    producers = {"q": divided, "r": other, "s": node("Mul", "a,b", "s", "it/Mul")}
    floors = [
        (node("Floor", "q", "y", "it/Floor"), True), (node("Floor", "q", "y", "that/Floor"), False),
        (node("Floor", "r", "y", "it/Floor"), False), (node("Floor", "s", "y", "it/Floor"), False),
        (node("Ceil", "q", "y", "it/Ceil"), False), (node("Floor", "x", "y", "it/Floor"), False),
    ]  # fmt: skip
    assert [module._rounds_a_quotient(each, producers, {"constant": ()}) for each, _ in floors] == [
        e for _, e in floors
    ]
    for keep, expected in ((0, True), (1, False)):
        made = {"m": node("ReduceMax", "x", "m", keepdims=keep), "r": node("Reshape", "m,shape", "r")}
        assert module._normalizes_a_reduction(node("InstanceNormalization", "r,s,b"), made) is expected
        assert not module._normalizes_a_reduction(node("Relu", "r"), made)


def model_of(*nodes: Any, outputs: str = "y") -> Any:
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs.split(",")]
    return SimpleNamespace(graph=helper.make_graph(nodes, "g", [], ends))


def test_values_that_openvino_would_merge_are_outputs_too():
    from designer.runtime.engines.openvino_engine import _keep_apart

    cases = [
        ([node("ReduceMean", "x", "m"), node("Add", "m,c")], ["y", "m"]),
        ([node("ReduceMean", "x", "y")], ["y"]),
        ([node("Pad", "x", "p"), node("ConvTranspose", "p,w")], ["y", "p"]),
        ([node("Pad", "x", "p"), node("Conv", "p,w")], ["y"]),
        ([node("MatMul", "x,w", "m"), node("Identity", "m", "i"), node("Dropout", "i", "d"), node("PRelu", "d,s")], ["y", "m"]),
        ([node("Unsqueeze", "x", "u"), node("ReduceSum", "u", "r"), node("Neg", "r")], ["y", "r", "u"]),
        ([node("Relu", "x", "u"), node("Identity", "u", "i"), node("PRelu", "i,s")], ["y"]),
        ([node("MaxPool", "x", "m"), node("Abs", "m")], ["y", "m"]),
        ([node("MaxPool", "x", "m"), node("Conv", "m,w", "c"), node("Mul", "c,m")], ["y", "m"]),
        ([node("MaxPool", "x", "m"), node("Conv", "m,w", "c"), node("Relu", "m", "r"), node("Concat", "c,r")], ["y"]),
    ]  # fmt: skip
    for nodes, expected in cases:
        model = model_of(*nodes)
        _keep_apart(model)
        assert [value.name for value in model.graph.output] == expected
        _keep_apart(model)
        assert len(model.graph.output) == len(expected)


def test_the_compiler_of_openvino_that_crashes_is_not_used():
    from designer.runtime.engines.openvino_engine import _attends_and_branches

    attention = [node("Softmax", "x", "s"), node("MatMul", "s,v", "m")]
    for kind, expected in (("Sub", True), ("Div", True), ("Add", False)):
        for readers in ("d,d", "d,m"):
            branching = [node(kind, "m,c", "d"), node("Mul", readers)]
            assert _attends_and_branches(model_of(*attention, *branching)) is expected
            assert not _attends_and_branches(model_of(attention[0], *branching))
        assert not _attends_and_branches(model_of(*attention, node(kind, "m,c", "d"), node("Mul", "d,c")))


def test_nan_of_an_operator_stays_behind_its_own_activation_alone():
    from designer.runtime.engines.openvino_engine import _keep_nan

    nodes = [node("Log", "x", "a"), node("Relu", "a", "b", "b/Relu"), node("Neg", "b", "c"), node("Relu", "c", "d"), node("Log", "d", "e"), node("Relu", "e", "y")]  # fmt: skip
    model = model_of(*nodes)
    _keep_nan(model, {"b", "d"})
    assert [(each.op_type, list(each.input), list(each.output)) for each in model.graph.node] == [
        ("Log", ["x"], ["a"]), ("Relu", ["a"], ["b/Relu:dropped"]), ("IsNaN", ["a"], ["b/Relu:nan"]),
        ("Where", ["b/Relu:nan", "a", "b/Relu:dropped"], ["b"]), ("Neg", ["b"], ["c"]), ("Relu", ["c"], ["d"]),
        ("Log", ["d"], ["e"]), ("Relu", ["e"], ["y"]),
    ]  # fmt: skip


def test_indices_and_integers_in_range():
    from designer.runtime.engines.openvino_engine import _check_range, _Indices

    for axis, size, batch in ((0, 3, 3), (1, 5, 1), (-1, 5, 2)):
        indices = _Indices("take", Source("i"), TensorType((Symbol("N"), 5)), axis)
        indices.check(np.array([[-size, 0], [size - 1, 1]]), batch)
        for wrong in (-size - 1, size):
            assert said(lambda i=indices, w=wrong, b=batch: i.check(np.array([[0, w]]), b)) == (
                "engine-failed", f"index {wrong} is out of range: the axis has {size} values",
                f"use indices from {-size} to {size - 1}", "take",
            )  # fmt: skip
    for values in ([], [-(2**31), 2**31 - 1], [0]):
        _check_range("it", np.array(values, np.int64))
    for values in ([2**31], [-(2**31) - 1, 0]):
        assert said(lambda v=values: _check_range("it", np.array(v, np.int64))) == (
            "not-in-engine", "OpenVINO cannot run 'it': it computes with 32 bits, and the integers exceed them",
            "choose another engine in Network Settings", "it",
        )  # fmt: skip


# --- ONNX Runtime ------------------------------------------------------------------------------------------------


def test_why_onnx_runtime_failed():
    one, more = Part(("a",), ()), Part(("a", "b", "c"), ())
    failed = ort_engine._failed
    memory = ("out-of-memory", "there was not enough memory: ONNX Runtime could not run the network",
              "use a smaller image, capture fewer layers, or close other programs", None)  # fmt: skip
    for error in (MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")):
        assert said(lambda e=error: (_ for _ in ()).throw(failed("could not run", one, e))) == memory
    cases = [
        (one, "no luck", None, "ONNX Runtime could not run the layers a: no luck", "run the network with the torch engine", "a"),
        (more, "no luck", None, "ONNX Runtime could not run the layers a ... c: no luck", "run the network with the torch engine", "a"),
        (more, "Node 'b/Conv' failed", None, "ONNX Runtime could not run the layers a ... c: Node 'b/Conv' failed",
         "run the network with the torch engine", "b"),
        (more, "no luck", "c", "ONNX Runtime could not run the layers a ... c: no luck", "replace or remove 'c'", "a"),
        (Part(("conv", "c_1", "c_10"), ()), "Node 'c_10/Conv' failed", None,
         "ONNX Runtime could not run the layers conv ... c_10: Node 'c_10/Conv' failed", "run the network with the torch engine",
         "c_10"),
    ]  # fmt: skip
    for part, text, foreign, message, remedy, name in cases:
        (found,) = failed("could not run", part, RuntimeError(text), foreign).diagnostics
        assert (found.code, found.message, found.remedy, found.layer) == ("engine-failed", message, remedy, name)


def test_the_options_of_a_session(monkeypatch, tmp_path):
    made = []

    class Options:
        def add_session_config_entry(self, *entry):
            self.entry = entry

    fake = SimpleNamespace(
        SessionOptions=Options, ExecutionMode=SimpleNamespace(ORT_SEQUENTIAL="sequential"), RunOptions=SimpleNamespace,
        GraphOptimizationLevel=SimpleNamespace(ORT_ENABLE_ALL="all", ORT_ENABLE_BASIC="basic"),
        InferenceSession=lambda *args, **more: made.append((args, more)) or "session",
    )  # fmt: skip
    monkeypatch.setattr(ort_engine, "runtime", lambda: fake)
    monkeypatch.setattr("designer.runtime.engines.ort.runtime", lambda: fake)
    assert ort_engine.inference_session(b"model", 3) == "session"
    ort_engine.inference_session(b"other", arena=False, simplified=tmp_path / "a.onnx")
    common = {
        "log_severity_level": 3, "entry": ("session.x64quantprecision", "1"), "inter_op_num_threads": 1,
        "execution_mode": "sequential",
    }  # fmt: skip
    (first, second) = ((args[0], vars(args[1])) for args, _ in made)
    assert first == (
        b"model",
        common | {"intra_op_num_threads": 3, "enable_cpu_mem_arena": True, "graph_optimization_level": "all"},
    )
    assert second == (
        b"other",
        common | {"intra_op_num_threads": 0, "enable_cpu_mem_arena": False, "graph_optimization_level": "basic",
                  "optimized_model_filepath": str(tmp_path / "a.onnx")},
    )  # fmt: skip
    wrong = {
        "providers": ["CPUExecutionProvider"],
        "disabled_optimizers": ["Pad_Fusion", "LayerNormFusionL1", "LayerNormFusionL2"],
    }
    assert [more for _, more in made] == [wrong, wrong]
    assert vars(ort_engine._run_options()) == {"log_severity_level": 3}


KIND = TensorType((Symbol("N"), 2))


def test_a_run_that_fails_is_given_to_the_reference_unless_it_was_given_up():
    part, ends = Part(("a",), (Source("x"),)), [(Source("a"), KIND)]
    feeds = {Source("x"): np.ones((3, 2))}

    class Evaluator:
        def run(self, names, given):
            assert names is None
            assert [(name, array.dtype, array.shape) for name, array in given.items()] == [("x", np.float32, (3, 2))]
            return [np.asfortranarray(given["x"], np.float64) + 1]

    def reference(evaluator):
        return ort_engine.ReferenceCompiled(evaluator, part, [(Source("x"), KIND)], ends)

    def compiled(stand_in):
        session = SimpleNamespace(io_binding=lambda: (_ for _ in ()).throw(RuntimeError("no luck")))
        return ort_engine.OrtCompiled(session, part, [(Source("x"), KIND)], ends, ["a"], "nchw", lambda: stand_in)

    (result,) = compiled(reference(Evaluator())).run(feeds).values()
    assert (result.dtype, result.flags.c_contiguous, result.tolist()) == (np.float32, True, [[2, 2]] * 3)
    assert said(lambda: compiled(None).run(feeds))[1] == "ONNX Runtime could not run the layers a: no luck"
    failing = SimpleNamespace(run=lambda *_: (_ for _ in ()).throw(KeyError("k")))
    assert said(lambda: compiled(reference(failing)).run(feeds))[1] == "ONNX Runtime could not run the layers a: 'k'"
    asked = Interrupt()
    asked.ask()
    for made in (compiled(reference(Evaluator())), reference(failing)):
        with interruptible(asked), pytest.raises(InterruptedRunError):
            made.run(feeds)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_arrays_of_a_run_are_bound_in_the_layout_of_the_model(layout):
    """Images change their axes in NHWC, tables and scalars do not; what the run writes comes back in NCHW."""
    image, table = TensorType((Symbol("N"), 3, 4, 5)), TensorType((Symbol("N"), 7))
    asked, log = Interrupt(), []

    class Binding:
        def bind_input(self, name, device, number, dtype, shape, address):
            log.append(("in", name, device, number, dtype, tuple(shape)))

        def bind_output(self, name, device, number, dtype, shape, address):
            log.append(("out", name, device, number, dtype, tuple(shape)))

    def run(binding, options):
        assert options.terminate is False
        asked.ask()
        assert options.terminate is True, "the run that goes on is the one that is given up"

    session = SimpleNamespace(io_binding=Binding, run_with_iobinding=run)
    sources = (Source("image"), Source("table"))
    feeds = {sources[0]: np.ones((2, 3, 4, 5), np.float64), sources[1]: np.ones((2, 7))}
    made = ort_engine.OrtCompiled(
        session, Part(("a",), sources), list(zip(sources, (image, table), strict=True)),
        [(Source("picture"), image), (Source("numbers"), table)], ["p", "n"], layout, lambda: None,
    )  # fmt: skip
    with interruptible(asked):
        results = made.run(feeds, {"w": np.ones((3, 2), np.float16)})
    shape = (2, 3, 4, 5) if layout == "nchw" else (2, 4, 5, 3)
    kinds = [("in", "w", np.float16, (3, 2)), ("in", "image", np.float32, shape), ("in", "table", np.float32, (2, 7)),
             ("out", "p", np.float32, shape), ("out", "n", np.float32, (2, 7))]  # fmt: skip
    assert log == [(way, name, "cpu", 0, dtype, dims) for way, name, dtype, dims in kinds]
    assert {str(source): array.shape for source, array in results.items()} == {
        "picture": (2, 3, 4, 5),
        "numbers": (2, 7),
    }


def test_the_bytes_and_random_numbers_of_a_value():
    for dtype, size in (("float32", 4), ("float16", 2), ("int64", 8), ("bool", 1), ("float64", 8)):
        value = Value((2, 3), np.dtype(dtype))
        made = value.random()
        assert (value.bytes, made.dtype, made.shape) == (6 * size, np.dtype(dtype), (2, 3))
        assert made.any() == dtype.startswith("float")
        np.testing.assert_array_equal(made, value.random())


def test_a_key_has_all_that_changes_the_time_of_a_kernel():
    from designer.runtime.engines.ort_steps import _key

    constant = lambda array: onnx.numpy_helper.from_array(array, "c")  # noqa: E731
    x = {"x": Value((2, 3), np.dtype("float32"))}
    base = lambda: _key(node("Conv", "x,c", group=1), {"c": constant(np.ones((2, 2), np.float32))}, x)  # noqa: E731
    others = [
        _key(node("Conv", "x,c", group=2), {"c": constant(np.ones((2, 2), np.float32))}, x),
        _key(node("Pad", "x,c", group=1), {"c": constant(np.ones((2, 2), np.float32))}, x),
        _key(node("Conv", "x,c", group=1), {"c": constant(np.ones((2, 3), np.float32))}, x),
        _key(node("Conv", "x,c", group=1), {"c": constant(np.ones((2, 2), np.int64))}, x),
        _key(node("Conv", "x,c", group=1), {"c": constant(np.zeros((2, 2), np.int64))}, x),
        _key(node("Conv", "x,c", group=1), {"c": constant(np.ones((2, 2), np.float32))}, {"x": Value((2, 4), np.dtype("float32"))}),
        _key(node("Conv", "x,c", group=1, domain="mine"), {"c": constant(np.ones((2, 2), np.float32))}, x),
    ]  # fmt: skip
    assert len({base(), *others}) == 8
    same = _key(node("Conv", "x,c", "z", "other name", group=1), {"c": constant(np.zeros((2, 2), np.float32))}, x)
    assert same == base()


# --- kernels and devices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "side"), [(16, 8), (64, 8), (128, 16)])
def test_what_the_kernels_of_onnx_engines_compute(size, side):
    asked: list[Any] = []
    made = kernels.onnx_kernels(lambda model, feeds, threads: asked.append((model, feeds, threads)) or len)
    assert list(made) == ["matrix product", "convolution"]
    assert made["matrix product"](2, size) == (len, 2.0 * size**3)
    assert made["convolution"](3, size) == (len, 2.0 * side * side * 64 * 64 * 9)
    (product, fed, threads), (convolution, given, count) = asked
    assert (threads, count) == (2, 3)
    assert (fed["x"].shape, given["x"].shape) == ((size, size), (1, 64, side, side))
    graphs = [onnx.load_model_from_string(model).graph for model in (product, convolution)]
    assert [[n.op_type for n in graph.node] for graph in graphs] == [["MatMul"], ["Conv"]]
    assert [tuple(graph.initializer[0].dims) for graph in graphs] == [(size, size), (64, 64, 3, 3)]
    (attribute,) = graphs[1].node[0].attribute
    assert (attribute.name, list(attribute.ints)) == ("pads", [1, 1, 1, 1])


def test_what_the_kernels_of_torch_compute():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        run, flop = pytorch.matrix_product(1, 24)
        assert (run().shape, flop, torch.get_num_threads()) == ((24, 24), 2.0 * 24**3, 1)
        for size, side in ((16, 8), (128, 16)):
            run, flop = pytorch.convolution(2, size)
            assert (run().shape, flop, torch.get_num_threads()) == (
                (1, 64, side, side), 2.0 * side * side * 64 * 64 * 9, 2
            )  # fmt: skip
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("version", "cards", "expected"),
    [
        (None, ["a"], (0, "PyTorch is not installed")),
        ("2.9.0+cpu", ["a"], (0, "the installed PyTorch supports only the CPU")),
        ("2.9.0+cu130", ["a", "b"], (2, "")),
        ("2.9.0", [], (0, "no NVIDIA GPU or driver was found")),
        ("2.9.0", None, (0, "no NVIDIA GPU or driver was found")),
    ],
)
def test_the_devices_of_torch_are_counted_without_torch(monkeypatch, tmp_path, version, cards, expected):
    for name in cards or ():
        (tmp_path / "gpus" / name).mkdir(parents=True)
    if cards == []:
        (tmp_path / "gpus").mkdir()
    asked = []

    def of_package(name):
        if version is None:
            raise pytorch.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(pytorch.metadata, "version", of_package)
    monkeypatch.setattr(pytorch, "Path", lambda text: asked.append(text) or tmp_path / "gpus")
    assert pytorch.cuda_devices.__wrapped__() == expected
    assert asked in ([], ["/proc/driver/nvidia/gpus"])


def test_freed_memory_is_kept_on_linux_alone(monkeypatch):
    calls = []

    def library(results):
        return lambda name: SimpleNamespace(mallopt=lambda *args: calls.append(args) or next(results))

    keep = torch_memory.keep_freed_memory.__wrapped__
    monkeypatch.setattr(torch_memory, "sys", SimpleNamespace(platform="linux"))
    for results, kept in (((1, 1), True), ((1, 0), False), ((0, 1), False)):
        calls.clear()
        monkeypatch.setattr(torch_memory.ctypes, "CDLL", library(iter(results)))
        assert keep() is kept
        assert calls == [(-1, 256 << 20), (-3, 32 << 20)][: 1 + results[0]]
    monkeypatch.setattr(torch_memory.ctypes, "CDLL", lambda name: SimpleNamespace())
    assert keep() is False
    monkeypatch.setattr(torch_memory, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(torch_memory.ctypes, "CDLL", lambda name: pytest.fail("it has no such library"))
    assert keep() is False


# --- TensorRT ----------------------------------------------------------------------------------------------------


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(trt.util, "find_spec", lambda name: name if name in names else None)


def test_which_package_of_tensorrt_is_used(monkeypatch):
    for names, used, missing in (
        (("tensorrt", "tensorrt_rtx"), "tensorrt", False), (("tensorrt_rtx",), "tensorrt_rtx", False),
        (("tensorrt",), "tensorrt", False), ((), "tensorrt", True),
    ):  # fmt: skip
        installed(monkeypatch, *names)
        assert trt.package() == used
        found = trt.unavailable()
        assert (found is not None) is missing
        if found is not None:
            assert (found.code, found.message, found.remedy) == (
                "engine-unavailable",
                "TensorRT is not installed",
                trt.REMEDY,
            )
            assert said(trt.library)[:2] == ("engine-unavailable", "TensorRT is not installed")
            assert trt.version_note("tensorrt", "1") == ""
    installed(monkeypatch, "tensorrt_rtx")
    for error in (ImportError("x" * 400), OSError("x" * 400), RuntimeError("x" * 400)):
        monkeypatch.setattr(trt, "import_module", lambda name, error=error: (_ for _ in ()).throw(error))
        assert said(trt.library) == (
            "engine-unavailable", f"tensorrt_rtx cannot be loaded: {'x' * 300}", trt.REMEDY, None
        )  # fmt: skip
    monkeypatch.setattr(trt, "import_module", lambda name: SimpleNamespace(__version__="1.2", name=name))
    assert trt.library().name == "tensorrt_rtx"
    assert trt.version_note("tensorrt_rtx", "1.2") == ""
    for built in (("tensorrt", "1.2"), ("tensorrt_rtx", "1.3")):
        assert trt.version_note(*built) == (
            f"the engine was built with {built[0]} {built[1]}, but tensorrt_rtx 1.2 is installed, which refuses it: build it again"
        )  # fmt: skip


SEVERITY = SimpleNamespace(INTERNAL_ERROR=0, ERROR=1, WARNING=2, INFO=3, VERBOSE=4)


class Logger:
    Severity = SEVERITY

    def __init__(self) -> None:
        self.began = True


def test_messages_of_tensorrt_are_sorted():
    log = trt.collector(SimpleNamespace(ILogger=Logger))
    assert log.began
    assert trt.reason_of(log) == "it gives no reason"
    for severity in range(5):
        log.log(severity, f" message {severity} {'x' * 400}")
    assert [text[:10] for text in log.errors] == [" message 0", " message 1"]
    assert [text[:10] for text in log.details] == [" message 2", " message 3", " message 4"]
    assert trt.reason_of(log) == ("message 0 " + "x" * 400)[:300]


class Parser:
    """Refuses the errors that it is given."""

    errors: tuple[Any, ...] = ()

    def __init__(self, network: Any, log: Any) -> None:
        self.num_errors = len(self.errors)

    def parse(self, model: bytes) -> bool:
        return not self.errors

    def get_error(self, number: int) -> Any:
        name, operator, text = self.errors[number]
        return SimpleNamespace(node_name=lambda: name, node_operator=lambda: operator, desc=lambda: text)


class Config:
    def __init__(self, calls: list[Any]) -> None:
        self.calls, self.cache = calls, b""

    def clear_flag(self, flag):
        self.calls.append(("clear", flag))

    def set_flag(self, flag):
        self.calls.append(("set", flag))

    def create_timing_cache(self, data):
        return data

    def set_timing_cache(self, cache, ignore):
        self.calls.append(("cache", cache, ignore))

    def get_timing_cache(self):
        return SimpleNamespace(serialize=lambda: b"new cache")

    def add_optimization_profile(self, profile):
        self.calls.append(("profile", profile))
        return 0 if profile else -1


def fake_trt(calls: list[Any], shapes: dict[str, tuple[int, ...]], built: bytes | None = b"engine", errors=()) -> Any:
    inputs = [SimpleNamespace(name=name, shape=shape) for name, shape in shapes.items()]
    network = SimpleNamespace(num_inputs=len(inputs), get_input=lambda number: inputs[number])
    config = Config(calls)

    class Profile(list):
        def set_shape(self, *args):
            self.append(args)

    class Builder:
        def __init__(self, log):
            self.log = log

        def create_network(self, flags):
            calls.append(("network", flags))
            return network

        def create_builder_config(self):
            return config

        def create_optimization_profile(self):
            return Profile()

        def build_serialized_network(self, *args):
            calls.append(("verbosity", config.profiling_verbosity))
            assert args == (network, config)
            if built is None:
                self.log.log(1, "no kernel")
            return built

    return SimpleNamespace(
        ILogger=Logger, Builder=Builder, OnnxParser=type("P", (Parser,), {"errors": tuple(errors)}), __version__="10.9",
        NetworkDefinitionCreationFlag=SimpleNamespace(STRONGLY_TYPED=3), ProfilingVerbosity=SimpleNamespace(DETAILED="detailed"),
        BuilderFlag=SimpleNamespace(TF32="tf32", SPARSE_WEIGHTS="sparse"),
    )  # fmt: skip


def test_what_an_engine_is_built_with(monkeypatch):
    calls: list[Any] = []
    ranges = {"a": trt_build.ShapeRange((1, 2), (3, 2), (5, 2)), "b": trt_build.ShapeRange((4,), (4,), (4,))}
    clock = iter((10.0, 12.5) * 9)
    monkeypatch.setattr(trt_build, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(trt_build, "package", lambda: "tensorrt")
    monkeypatch.setattr(trt_build, "library", lambda: fake_trt(calls, {"a": (-1, 2), "b": (4,)}))
    made = trt_build.build_engine(b"model", ranges, sparse=True, timing_cache=b"")
    assert (made.data, made.layers, made.package, made.version, made.seconds, made.timing_cache) == (
        b"engine", (), "tensorrt", "10.9", 2.5, b"new cache"
    )  # fmt: skip
    profile = ("profile", [("a", (1, 2), (3, 2), (5, 2)), ("b", (4,), (4,), (4,))])
    assert calls == [
        ("network", 8),
        ("clear", "tf32"),
        ("set", "sparse"),
        ("cache", b"", True),
        profile,
        ("verbosity", "detailed"),
    ]
    calls.clear()
    monkeypatch.setattr(trt_build, "library", lambda: fake_trt(calls, {"a": (1, 2), "b": (4,)}))
    assert trt_build.build_engine(b"model", ranges).timing_cache == b""
    assert calls == [("network", 8), ("clear", "tf32"), ("verbosity", "detailed")]
    remedy = "use other sizes, or run the network with another engine"
    monkeypatch.setattr(trt_build, "library", lambda: fake_trt(calls, {}, built=None))
    assert said(lambda: trt_build.build_engine(b"model", {})) == (
        "tensorrt-failed", "TensorRT does not build the network: no kernel", remedy, None
    )  # fmt: skip
    errors = [("a/Conv", "Conv", "no" * 200), ("", "", "the file"), ("b/Odd", "", "unknown"), ("strange", "X", "y")]
    monkeypatch.setattr(trt_build, "library", lambda: fake_trt(calls, {}, errors=errors))
    owner = lambda name: "" if name == "strange" else name.partition("/")[0]  # noqa: E731
    with pytest.raises(DiagnosticError) as caught:
        trt_build.build_engine(b"model", {}, owner=owner)
    assert [(d.code, d.message, d.layer) for d in caught.value.diagnostics] == [
        ("not-in-tensorrt", f"TensorRT cannot run 'a' ({('Conv: ' + 'no' * 200)[:200]})", "a"),
        ("not-in-tensorrt", "TensorRT cannot run 'b' (unknown)", "b"),
        ("not-in-tensorrt", "TensorRT cannot run 'strange' (X: y)", None),
    ]
    monkeypatch.setattr(trt_build, "library", lambda: fake_trt(calls, {}, errors=[("", "", "the file")]))
    assert said(lambda: trt_build.build_engine(b"model", {})) == (
        "tensorrt-failed", "TensorRT cannot read the model: it gives no reason", remedy, None
    )  # fmt: skip
    monkeypatch.setattr(trt_build, "package", lambda: "tensorrt_rtx")
    for cache in (b"", b"old"):
        assert said(lambda c=cache: trt_build.build_engine(b"model", {}, timing_cache=c)) == (
            "no-timing-cache", "TensorRT-RTX has no timing cache: it chooses kernels on the GPU that runs the engine",
            "leave the timing cache out, or install the package tensorrt", None,
        )  # fmt: skip


def test_the_timer_of_tensorrt_has_the_layers_of_the_part(monkeypatch):
    from designer.runtime.engines import tensorrt_engine as module
    from designer.runtime.engines.trt_layers import EngineLayer

    monkeypatch.setattr(trt, "library", lambda: SimpleNamespace(IProfiler=object))
    layers = (EngineLayer("fused", "kgen", "fp32", ("a", "other", "b"), ("a/Conv",)),)
    context = SimpleNamespace(profiler=None)
    times = iter(range(1, 99))

    class Made(module.TensorRtCompiled):
        def __init__(self) -> None:
            self._feeds = [(Source("y"), TensorType((4,))), (Source("x"), KIND)]

        def context(self, batch):
            assert batch == 3
            return SimpleNamespace(layers=layers), context

        def run(self, feeds):
            assert feeds == given
            for name in ("fused", "reformat"):
                context.profiler.report_layer_time(name, next(times))

    given = {Source("y"): np.ones(4), Source("x"): np.ones((3, 2))}
    engine, ticks = SimpleNamespace(compile=lambda *_: Made()), []
    timer = module.TensorRtTimer(engine, Part(("a", "b"), ()), [Source("b")], given)
    found = timer.layers(2, 1, lambda: ticks.append(1))
    assert [(s.layers, s.seconds, s.what) for s in found] == [
        (("a", "b"), [0.003, 0.005], "kgen"), ((), [0.004, 0.006], "reformat")
    ]  # fmt: skip
    assert len(ticks) == 3


def test_where_tensorrt_runs(monkeypatch):
    from designer.runtime.engines import tensorrt_engine as module

    installed(monkeypatch, "tensorrt")
    for count, expected in ((1, None), (0, "there is no NVIDIA GPU that PyTorch can use")):
        monkeypatch.setattr(module, "cuda_devices", lambda count=count: (count, ""))
        found = module._unavailable()
        assert (found and found.message) == expected
        assert found is None or (found.code, found.remedy) == ("engine-unavailable", "choose another engine")
    installed(monkeypatch)
    for count in (0, 1):
        monkeypatch.setattr(module, "cuda_devices", lambda count=count: (count, ""))
        assert module._unavailable().message == "TensorRT is not installed"
    torch = pytest.importorskip("torch")
    names = {"FLOAT": torch.float32, "INT64": torch.int64, "INT32": torch.int32, "BOOL": torch.bool}
    assert {name: module.torch_type(SimpleNamespace(name=name)) for name in names} == names


def test_why_torch_failed():
    pytest.importorskip("torch")
    from designer.runtime.engines.torch_engine import TorchCompiled

    made = object.__new__(TorchCompiled)
    made._part = Part(("first", "second"), ())
    smaller, other = "use a smaller image or a smaller network", "run the network with ONNX Runtime"
    cases = [
        ("second", " lost\nmore", ("engine-failed", "torch could not run the layer 'second': lost", other, "second")),
        (None, "CUDA out of memory", ("out-of-memory", "torch could not run the layer 'first': CUDA out of memory", smaller, "first")),
        (None, " ", ("engine-failed", "torch could not run the layer 'first': RuntimeError", other, "first")),
        (None, "x" * 400, ("engine-failed", f"torch could not run the layer 'first': {'x' * 300}", other, "first")),
    ]  # fmt: skip
    for running, text, expected in cases:
        made.interpreter = SimpleNamespace(layer=running)
        (found,) = made._failed(RuntimeError(text)).diagnostics
        assert (found.code, found.message, found.remedy, found.layer) == expected


def test_random_tensors_of_single_steps_have_shapes_types_and_strides():
    torch = pytest.importorskip("torch")
    from designer.runtime.engines.torch_steps import _bytes, _type, random_like

    meta = lambda *shape, **more: torch.empty(*shape, device="meta", **more)  # noqa: E731
    turned = meta(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for value in (
        meta(2, 3),
        turned,
        meta(3, dtype=torch.int64),
        meta(2, 1, 4).transpose(0, 2),
        meta(()),
        meta(4, dtype=torch.float16),
    ):
        made = random_like(value)
        assert (made.shape, made.dtype, made.stride(), made.device.type) == (
            value.shape,
            value.dtype,
            value.stride(),
            "cpu",
        )
        if value.is_floating_point():
            assert made.min() >= 0
            assert made.max() <= 1
        else:
            assert not made.any()
    assert random_like((3, "a", None)) == [3, "a", None]
    values = [meta(2, 3), [meta(4, dtype=torch.float64), (meta(1),)], 7]
    assert _bytes(values) == 24 + 32 + 4
    assert _type(meta(2, 3)) == "torch.float32 (2, 3) (3, 1)"
    assert _type([meta(1), 3]) == "['torch.float32 (1,) (1,)', '3']"


def test_a_single_step_is_timed_in_seconds_without_its_preparation(monkeypatch):
    torch = pytest.importorskip("torch")
    from designer.runtime.engines import torch_steps

    entered, given = [], []

    @contextmanager
    def mode():
        entered.append("in")
        yield
        entered.append("out")

    times = iter([10.0, 10.25, 20.0, 20.5])
    monkeypatch.setattr(torch_steps, "perf_counter", lambda: next(times))
    read = {2: torch.empty(3, 4, device="meta")}
    run = torch_steps._prepared(lambda values: given.append(list(values)), read, 4, mode)
    assert given == []
    assert [run.run(), run.run()] == [0.25, 0.5]
    assert [[getattr(value, "shape", None) for value in values] for values in given] == [[None, None, (3, 4), None]] * 2
    assert given[0][2] is given[1][2]
    assert entered == ["in", "out"] * 2


def graph_bytes() -> bytes:
    info = lambda name: helper.make_tensor_value_info(name, 1, [2])  # noqa: E731
    weight = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    nodes = [helper.make_node("Add", ["a", "w"], ["b"], name="n"), helper.make_node("Neg", ["b"], ["c"])]
    graph = helper.make_graph(nodes, "inner", [info("a")], [info("b"), info("c")], [weight])
    opsets = [helper.make_opsetid("", 99), helper.make_opsetid("mine", 4)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def test_the_nodes_of_a_graph_become_nodes_of_the_model(runtime_registry):
    from designer.operators.onnx_data import OnnxGraph, OnnxInput, OnnxItem

    graph = Graph([layer("image", "input", dims="6x4x3"), layer("result", "output", "image")])
    for wanted, names in ((["it", "it:1"], ["it", "it:1"]), (["", "it:1"], ["it/graph/b", "it:1"])):
        builder = onnx_model._Builder(Inference(graph, runtime_registry), Weights())
        data = OnnxGraph(graph_bytes(), (OnnxInput(1),), outputs=2)
        walk = onnx_model._Walk(builder, "it", SimpleNamespace(weights=lambda types: ()), (), ["first", "second"])
        assert walk.emit([OnnxItem(data, 0), OnnxItem(data, 1)], wanted) == names
        assert [(n.op_type, n.name, list(n.input), list(n.output)) for n in builder.nodes] == [
            ("Add", "it/graph/n", ["second", "it/graph/w"], names[:1]), ("Neg", "", names[:1], names[1:]),
        ]  # fmt: skip
        assert [tensor.name for tensor in builder.initializers] == ["it/graph/w"]
        assert builder.opsets == {"": 99, "mine": 4}
    strange = onnx_model._Walk(builder, "it", SimpleNamespace(weights=lambda types: ()), (), [])
    with pytest.raises(TypeError, match="layer 'it': 3 is not ONNX data"):
        strange.value(3)


def test_what_onnx_cannot_express_says_what_to_do(runtime_registry):
    from designer.graph.types import ShapeError

    def operator(error: Exception) -> Any:
        return SimpleNamespace(title="Made", onnx=lambda types: (_ for _ in ()).throw(error))

    assert said(lambda: onnx_model._data(operator(NotImplementedError()), (), "it")) == (
        "not-in-onnx", "'it' (Made) cannot be expressed in ONNX",
        "run the network with the torch engine, or export it as a PyTorch project", "it",
    )  # fmt: skip
    error = ShapeError("it is odd", remedy="make it even")
    assert said(lambda: onnx_model._data(operator(error), (), "it")) == (
        "not-in-onnx",
        "it is odd",
        "make it even",
        "it",
    )
    graph = Graph([layer("image", "input", dims="6x4x3"), layer("bad", "convolution", "image", kernel="99x99", padding="valid"), layer("result", "output", "bad")])  # fmt: skip
    inference = Inference(graph, runtime_registry)
    with pytest.raises(DiagnosticError) as caught:
        onnx_model.build_model(inference, Part(("bad",), (Source("image"),)), [Source("bad")], Weights())
    assert {found.layer for found in caught.value.diagnostics} == {"bad"}


def test_the_indices_that_openvino_does_not_check(runtime_registry):
    from designer.runtime.engines.openvino_engine import OpenVinoEngine

    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"),
            layer("numbers", "tensor_input", shape="2", dtype="int64"),
            layer("same", "identity", "image"),
            layer("result", "output", "same"),
        ]
    )
    engine = object.__new__(OpenVinoEngine)
    engine.inference = Inference(graph, runtime_registry)
    table = onnx.numpy_helper.from_array(np.zeros((7, 5), np.float32), "table")
    kinds = {"Gather": [], "GatherElements": []}
    for op, found in kinds.items():
        nodes = [
            node(op, "table,numbers", "a", "same/Gather", axis=1), node(op, "table,numbers", "b", "same/Gather"),
            node(op, "image,numbers", "c", "same/Gather", axis=3), node(op, "computed,numbers", "d", "same/Gather"),
            node(op, "table,other", "e", "same/Gather"), node("Add", "table,numbers", "f", "same/Add"),
        ]  # fmt: skip
        model = SimpleNamespace(graph=helper.make_graph(nodes, "g", [], [], [table]))
        part = Part(("same",), (Source("image"), Source("numbers")))
        found += [(i.layer, str(i.source), i.kind.concrete(2)[i.axis], i.axis) for i in engine._indices(model, part)]
    assert kinds["Gather"] == [("same", "numbers", 5, 1), ("same", "numbers", 7, 0), ("same", "numbers", 6, 3)]
    assert kinds["GatherElements"] == kinds["Gather"]
    types = {"uint8": "saturates", "int8": "saturates", "int32": "large", "int64": "large", "int16": "", "float32": ""}
    for dtype, word in types.items():
        network = Graph([layer("x", "tensor_input", shape="2", dtype=dtype), layer("it", "identity", "x")])
        engine.inference = Inference(network, runtime_registry)
        for op in ("Add", "Sub", "Mul", "BitShift"):
            assert ("saturates" in engine._integer_difference(node(op, "x,x", "it"), "it")) == (word == "saturates")
        assert ("large integers" in engine._integer_difference(node("Mod", "x,x", "it"), "it")) == (word == "large")
        assert engine._integer_difference(node("Add", "x,x", "it/Add:y"), "it") == ""
        assert engine._integer_difference(node("Neg", "x", "it"), "it") == ""


def test_every_layer_that_openvino_computes_differently_is_refused(runtime_registry):
    from designer.runtime.engines.openvino_engine import OpenVinoEngine

    graph = Graph([layer("x", "tensor_input", shape="2"), layer("b", "identity", "x"), layer("a", "identity", "b")])
    engine = object.__new__(OpenVinoEngine)
    engine.inference = Inference(graph, runtime_registry)
    nodes = [
        node("Cast", "x", "i", "b/Cast"), node("GatherElements", "x,i", "b", "b/GatherElements"),
        node("Mod", "b,b", "m", "a/Mod", fmod=1), node("GatherElements", "x,x", "a", "a/GatherElements"),
    ]  # fmt: skip
    with pytest.raises(DiagnosticError) as caught:
        engine._check_results(SimpleNamespace(graph=helper.make_graph(nodes, "g", [], [])))
    assert [(d.layer, d.message.partition(": ")[2]) for d in caught.value.diagnostics] == [
        ("a", "its remainder exceeds the divisor where the quotient is large"),
        ("b", "it crashes where a computed index is out of range"),
    ]
    engine._check_results(SimpleNamespace(graph=helper.make_graph(nodes[:1], "g", [], [])))


def test_the_timer_of_openvino_sums_the_kernels_of_a_layer(monkeypatch):
    from datetime import timedelta

    from designer.runtime.engines import openvino_engine as module
    from designer.runtime.engines.fusion import Node

    status = SimpleNamespace(EXECUTED="ran", NOT_RUN="not run")
    number = iter(range(1, 99))

    def kernel(name: str, microseconds: int, state: str = "ran") -> Any:
        return SimpleNamespace(node_name=name, status=state, Status=status, real_time=timedelta(microseconds=microseconds), cpu_time=timedelta(seconds=9))  # fmt: skip

    request = SimpleNamespace(profiling_info=[])

    def run(feeds: Any) -> None:
        n = next(number)
        request.profiling_info = [
            kernel("one", n),
            kernel("two", 10 * n),
            kernel("three", 100 * n),
            kernel("four", 7, "not run"),
        ]

    asked = []
    compiled = SimpleNamespace(request=lambda batch: request, batch=lambda feeds: 2, run=run)
    engine = object.__new__(module.OpenVinoEngine)
    engine.prepare = lambda *args: asked.append(args) or compiled
    timer = module.OpenVinoTimer(engine, Part(("a", "b"), ()), (Source("b"),), {})
    nodes = [Node("Conv", "one", (), ("one",)), Node("Add", "two", ("one",), ("two",)), Node("Relu", "three", ("two",), ("three",)), Node("Neg", "four", (), ("four",))]  # fmt: skip
    seen = []
    ran = [{"a": None}, {"a": None}, {"b": None}, {"c": None}]
    monkeypatch.setattr(timer, "_kernels", lambda made, executed: seen.append((made, executed)) or (nodes, ran))
    ticks = []
    found = timer.layers(2, 1, lambda: ticks.append(1))
    assert [(s.layers, [round(t * 1e6) for t in s.seconds], s.what) for s in found] == [
        (("a",), [22, 33], "Conv, Add"), (("b",), [200, 300], "Relu")
    ]  # fmt: skip
    assert (len(ticks), asked[0][2], seen) == (3, {"PERF_COUNT": True}, [(request, {"one", "two", "three"})])
    assert module._properties(5) == {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 5, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False, "ENABLE_HYPER_THREADING": True,
    }  # fmt: skip


# --- imported operators, times of kernels, and runs of TensorRT ------------------------------------------------------


def imported(registry: Any, op: str, layout: str = "nchw", before: str = "", **options: Any) -> tuple[Any, Part, Any]:
    """The ONNX Runtime engine for a network with an imported operator, perhaps behind a convolution, and its part."""
    from designer.runtime.api import RunOptions

    reads = before or "image"
    middle = [layer(before, "convolution", "image", features=3)] if before else []
    graph = Graph(
        [
            layer("image", "input", dims="4x2x3"), *middle,
            layer("mine", "opaque", reads, op_type=op, attributes="alpha=0.25", shapes="N x 3 x 2 x 4"),
            layer("result", "output", "mine"),
        ]
    )  # fmt: skip
    inference = Inference(graph, registry)
    weights = random_weights(required_weights(inference), seed=1)
    engine = ort_engine.OrtEngine(inference, weights, RunOptions("onnxruntime", layout=layout, threads=1, **options))
    return engine, Part((*([before] if before else []), "mine"), (Source("image"),)), graph


def failing_session(*_: Any, **__: Any) -> Any:
    raise RuntimeError("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel")


def test_what_onnx_runtime_cannot_prepare_is_run_by_the_reference(runtime_registry, monkeypatch):
    engine, part, _ = imported(runtime_registry, "LeakyRelu")
    array = np.random.default_rng(2).normal(size=(2, 3, 2, 4)).astype(np.float32)
    expected = np.where(array > 0, array, array * np.float32(0.25))
    feeds = {Source("image"): array}
    plain = engine.compile(part, [Source("mine")])
    assert isinstance(plain, ort_engine.OrtCompiled)
    np.testing.assert_allclose(plain.run(feeds)[Source("mine")], expected, rtol=1e-6)
    monkeypatch.setattr(ort_engine, "inference_session", failing_session)
    slow = engine.compile(part, [Source("mine")])
    assert isinstance(slow, ort_engine.ReferenceCompiled)
    found = slow.run(feeds)
    assert list(found) == [Source("mine")]
    np.testing.assert_allclose(found[Source("mine")], expected, rtol=1e-6)


def test_the_reference_computes_values_of_the_same_types_as_onnx_runtime(runtime_registry, monkeypatch):
    """Indices are integers and answers are truth values, also those of one operator with results of two types."""
    from designer.runtime.api import RunOptions

    operators = {
        "classes": ("ArgMax", "axis=1\nkeepdims=1", ["N x 1 x 2 x 4 int64"]),
        "large": ("IsInf", "", ["N x 3 x 2 x 4 bool"]),
        "plain": ("LeakyRelu", "alpha=0.25", ["N x 3 x 2 x 4"]),
        "pool": ("MaxPool", "kernel_shape=[2, 2]\nstrides=[2, 2]", ["N x 3 x 1 x 2", "N x 3 x 1 x 2 int64"]),
    }
    graph = Graph(
        [
            layer("image", "input", dims="4x2x3"),
            *(
                layer(
                    name,
                    "opaque",
                    "image",
                    op_type=op,
                    attributes=text,
                    output_count=len(kinds),
                    shapes="\n".join(kinds),
                )
                for name, (op, text, kinds) in operators.items()
            ),
        ]
    )
    inference = Inference(graph, runtime_registry)
    engine = ort_engine.OrtEngine(inference, Weights(), RunOptions("onnxruntime", threads=1))
    part = Part((*operators,), (Source("image"),))
    wanted = [source for name in operators for source in inference.tensors(name)]
    array = np.random.default_rng(2).normal(size=(2, 3, 2, 4)).astype(np.float32)
    array[0, 1, 0, 2], array[1, 2, 1, 3] = np.inf, -np.inf
    plain = engine.compile(part, wanted)
    monkeypatch.setattr(ort_engine, "inference_session", failing_session)
    slow = engine.compile(part, wanted)
    assert (type(plain), type(slow)) == (ort_engine.OrtCompiled, ort_engine.ReferenceCompiled)
    expected, found = (made.run({Source("image"): array}) for made in (plain, slow))
    assert list(found) == wanted
    assert [found[source].dtype.name for source in wanted] == ["int64", "bool", "float32", "float32", "int64"]
    for source in wanted:
        np.testing.assert_array_equal(found[source], expected[source], err_msg=str(source), strict=True)


def test_the_reference_runs_imported_operators_in_their_own_layout_only(runtime_registry, monkeypatch):
    """Its models are N x C x H x W, and it has no weights as inputs."""
    monkeypatch.setattr(ort_engine, "inference_session", failing_session)
    remedy = "replace or remove 'mine'"
    for more in ({"layout": "nhwc"}, {"before": "conv", "weights_as_inputs": True}):
        engine, part, _ = imported(runtime_registry, "LeakyRelu", **more)
        layers = " ... ".join(part.layers)
        assert said(lambda e=engine, p=part: e.compile(p, [Source("mine")])) == (
            "engine-failed", f"ONNX Runtime could not prepare the layers {layers}: no kernel", remedy, part.layers[0]
        )  # fmt: skip
    engine, part, _ = imported(runtime_registry, "LeakyRelu", before="conv")
    assert isinstance(engine.compile(part, [Source("mine")]), ort_engine.ReferenceCompiled)
    alone = Part(("conv",), (Source("image"),))
    assert said(lambda: engine.compile(alone, [Source("conv")])) == (
        "engine-failed", "ONNX Runtime could not prepare the layers conv: no kernel", "run the network with the torch engine", "conv"
    )  # fmt: skip
    monkeypatch.setattr(ort_engine, "_reference", lambda model: None)
    assert said(lambda: engine.compile(part, [Source("mine")]))[2] == remedy

    def refused(*_: Any, **__: Any) -> Any:
        raise DiagnosticError.of("model-too-large", "the model is too large", remedy="use a smaller one")

    monkeypatch.setattr(ort_engine, "serialized", refused)
    assert said(lambda: engine.compile(part, [Source("mine")]))[:2] == ("model-too-large", "the model is too large")


def test_a_session_has_the_threads_and_the_arena_of_the_options(runtime_registry, monkeypatch):
    from designer.runtime.api import ONE_TILE

    made = []

    def session(model, count, *, arena):
        made.append((count, arena))
        return SimpleNamespace()

    monkeypatch.setattr(ort_engine, "inference_session", session)
    for tile in (0, 64, ONE_TILE):
        engine, part, _ = imported(runtime_registry, "LeakyRelu", tile=tile)
        engine.compile(part, [Source("mine")])
    assert made == [(1, True), (1, True), (1, False)]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("as_inputs", [False, True])
def test_layouts_and_weights_of_a_part_do_not_change_its_results(runtime_registry, layout, as_inputs):
    from designer.runtime.api import CompiledForWeights, RunOptions

    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"), layer("conv", "convolution", "image", features=5, kernel="3x3"),
            layer("flat", "flatten", "conv"), layer("result", "output", "conv"),
        ]
    )  # fmt: skip
    inference = Inference(graph, runtime_registry)
    needed = required_weights(inference)
    first, second = (random_weights(needed, seed=seed) for seed in (1, 2))
    options = RunOptions("onnxruntime", layout=layout, threads=1, weights_as_inputs=as_inputs)
    engine = ort_engine.OrtEngine(inference, first, options)
    compiled = engine.compile(Part(("conv", "flat"), (Source("image"),)), [Source("flat"), Source("conv")])
    assert isinstance(compiled, CompiledForWeights) == as_inputs
    array = np.random.default_rng(2).random((2, 3, 4, 6), np.float32)
    padded = np.pad(array, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))

    def by_hand(weights):
        kernel, bias = (weights.tensors[WeightKey("conv", name)] for name in ("kernel", "bias"))
        return np.einsum("nchwij,ocij->nohw", windows, kernel) + bias[:, None, None]

    for weights in (first, second) if as_inputs else (first,):
        found = (compiled.with_weights(weights) if as_inputs else compiled).run({Source("image"): array})
        np.testing.assert_allclose(found[Source("conv")], by_hand(weights), atol=1e-5)
        np.testing.assert_allclose(found[Source("flat")], by_hand(weights).reshape(2, -1), atol=1e-5)
        assert list(found) == [Source("flat"), Source("conv")]


def test_a_request_to_stop_ends_the_call_of_onnx_runtime(monkeypatch):
    """The run itself asks to be stopped, as another thread would."""
    asked, seen = Interrupt(), []

    class Binding:
        def bind_input(self, *given):
            seen.append(given[:3])

        bind_output = bind_input

    class Stopped:
        def io_binding(self):
            return Binding()

        def run_with_iobinding(self, binding, options):
            assert not getattr(options, "terminate", False)
            asked.ask()
            seen.append(options.terminate)
            raise RuntimeError("Exiting due to terminate flag being set to true.")

    fake = SimpleNamespace(RunOptions=SimpleNamespace)
    monkeypatch.setattr(ort_engine, "runtime", lambda: fake)
    ends = [(Source("a"), KIND)]
    compiled = ort_engine.OrtCompiled(
        Stopped(), Part(("a",), ()), [(Source("x"), KIND)], ends, ["a:y"], "nchw", lambda: 1 / 0
    )
    with interruptible(asked), pytest.raises(InterruptedRunError):
        compiled.run({Source("x"): np.ones((3, 2), np.float32)})
    assert seen == [("x", "cpu", 0), ("a:y", "cpu", 0), True]


def test_a_kernel_is_timed_without_the_cost_of_a_call(monkeypatch):
    from designer.runtime.engines import ort_steps

    opsets = [helper.make_opsetid("", 20)]
    model = SimpleNamespace(graph=model_of(node("Relu", name="relu")).graph, opset_import=opsets, ir_version=9)
    values = {"x": Value((2, 3), np.dtype("float32")), "y": Value((2, 3), np.dtype("float32"))}
    asked, times = [], iter([0.75, 0.5, 0.25, 0.5 + 1e-9])
    monkeypatch.setattr(ort_steps, "_overhead", lambda threads: asked.append(threads) or 0.5)
    monkeypatch.setattr(ort_steps, "_session", lambda model, threads: asked.append((model.graph.node[0].name, threads)))
    given = []
    monkeypatch.setattr(ort_steps, "_call", lambda session, arrays: given.append(arrays) or (lambda: next(times)))
    step = ort_steps._prepared(model, model.graph.node[0], ["x"], {}, values, 3)
    assert [step.run() for _ in range(4)] == [0.25, ort_steps.SHORTEST, ort_steps.SHORTEST, ort_steps.SHORTEST]
    assert asked == [("relu", 3), 3]
    assert sorted(given[0]) == ["x", "y"]
    assert step.read() == [given[0]["x"].sum()]
    assert given[0]["x"].shape == (2, 3)
    with pytest.raises(KeyError):
        ort_steps._prepared(model, model.graph.node[0], ["gone"], {}, values, 3)


def test_the_steps_of_a_model_have_layers_bytes_and_keys():
    from designer.runtime.engines.fusion import KernelGroup
    from designer.runtime.engines.ort_steps import single_steps

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "second"),
        helper.make_node("Add", ["r", "r"], ["y"], "third"),
    ]
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 2, 4, 5]) for n in ("x", "y")]
    kernel = helper.make_tensor("w", onnx.TensorProto.FLOAT, (2, 2, 3, 3), [0.5] * 36)
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:], [kernel]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=9,
    )  # fmt: skip
    group = KernelGroup()
    group.layers, group.kernels[:] = ("conv", "relu"), ["first", "second"]
    idle, *steps = single_steps(model, [group], {"N": 3}, 1)
    assert (idle.layers, idle.what, idle.key, idle.bytes) == ((), "", "run", 0)
    assert [(s.layers, s.what) for s in steps] == [
        (("conv", "relu"), "Conv"), (("conv", "relu"), "Relu"), ((), "Add")
    ]  # fmt: skip
    image = 3 * 2 * 4 * 5 * 4
    assert [s.bytes for s in steps] == [2 * image, 2 * image, 2 * image]
    assert len({s.key for s in steps}) == 3
    prepared = steps[2].prepare()
    assert prepared.run() > 0
    assert len(prepared.read()) == 1


def test_a_tensor_whose_size_depends_on_values_is_left_out():
    from designer.runtime.engines.ort_steps import _values

    kinds = onnx.TensorProto
    nodes = [helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kinds.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", kinds.FLOAT, ["N", 3])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    single = np.dtype(np.float32)
    assert _values(model, {"N": 5}) == {"x": Value((5, 3), single), "y": Value((5, 3), single)}


def test_steps_with_omitted_inputs_and_outputs_and_with_whole_numbers_run_alone():
    from designer.runtime.engines.ort_steps import single_steps

    kinds = onnx.TensorProto
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "", "", "h0"], ["", "h"], "lstm", hidden_size=3),
        helper.make_node("TopK", ["h", "k"], ["v", "index"], "top"),
        helper.make_node("Cast", ["index"], ["half"], "cast", to=kinds.FLOAT16),
        helper.make_node("Clip", ["half", "", "most"], ["y"], "clip"),
    ]
    constants = [
        helper.make_tensor("w", kinds.FLOAT, (1, 12, 2), [0.5] * 24),
        helper.make_tensor("r", kinds.FLOAT, (1, 12, 3), [0.25] * 36),
        helper.make_tensor("k", kinds.INT64, (1,), [2]),
        helper.make_tensor("most", kinds.FLOAT16, (), np.array([1], np.float16).tobytes(), raw=True),
    ]
    ends = [
        helper.make_tensor_value_info("x", kinds.FLOAT, [5, "N", 2]),
        helper.make_tensor_value_info("h0", kinds.FLOAT, [1, "N", 3]),
    ]
    last = helper.make_tensor_value_info("y", kinds.FLOAT16, [1, "N", 2])
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends, [last], constants),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
    )
    _, *steps = single_steps(model, [], {"N": 7}, 1)
    assert [(s.what, s.bytes) for s in steps] == [
        ("LSTM", (5 * 7 * 2 + 7 * 3 + 7 * 3) * 4), ("TopK", 7 * 3 * 4 + 7 * 2 * (4 + 8)), ("Cast", 7 * 2 * 8 + 7 * 2 * 2),
        ("Clip", 7 * 2 * 2 * 2),
    ]  # fmt: skip
    for step, reads in zip(steps, (2, 1, 1, 1), strict=True):
        prepared = step.prepare()
        assert prepared.run() > 0
        assert len(prepared.read()) == reads
    model.graph.initializer[2].CopyFrom(helper.make_tensor("k", kinds.INT64, (1,), [1]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", kinds.FLOAT16, [1, "N", 1]))
    _, *others = single_steps(model, [], {"N": 7}, 1)
    assert [one.key == other.key for one, other in zip(steps, others, strict=True)] == [True, False, False, False]


def test_a_model_says_which_version_of_the_program_made_it(runtime_registry):
    graph = Graph([layer("image", "input", dims="6x4x3"), layer("result", "output", "image")], name="net")
    for version, metadata in (("1.2.3", {"a": "b"}), ("", None)):
        builder = onnx_model._Builder(Inference(graph, runtime_registry), Weights())
        made = onnx_model._packed(builder, [], [], metadata, version)
        assert (made.producer_name, made.producer_version) == (onnx_model.PRODUCER, version)
        assert {entry.key: entry.value for entry in made.metadata_props} == (metadata or {})
        assert made.graph.name == "net"
    unnamed = onnx_model._Builder(Inference(Graph(list(graph), name=""), runtime_registry), Weights())
    assert onnx_model._packed(unnamed, [], []).graph.name == "network"


class TrtContext:
    """The execution context of an engine that doubles its only input."""

    def __init__(self, works: bool = True) -> None:
        self.works, self.shapes, self.addresses, self.streams = works, {}, {}, []
        self.engine = SimpleNamespace(get_tensor_dtype=lambda name: SimpleNamespace(name="FLOAT"))

    def set_input_shape(self, name, shape):
        self.shapes[name] = shape

    def get_tensor_shape(self, name):
        assert name == "a:y"
        return [*self.shapes["x"]]

    def set_tensor_address(self, name, address):
        self.addresses[name] = address

    def execute_async_v3(self, stream):
        import ctypes

        self.streams.append(stream)
        if self.works:
            shape = self.shapes["x"]
            views = [
                np.ctypeslib.as_array(ctypes.cast(self.addresses[n], ctypes.POINTER(ctypes.c_float)), shape)
                for n in ("x", "a:y")
            ]
            views[1][:] = views[0] * 2
        return self.works


class InputOnly(TrtContext):
    """Keeps a copy of what its input of another type has in memory."""

    def __init__(self, kind, seen):
        super().__init__()
        self.kind, self.seen = np.dtype(kind), seen

    def execute_async_v3(self, stream):
        import ctypes

        count = int(np.prod(self.shapes["x"]))
        read = ctypes.string_at(self.addresses["x"], count * self.kind.itemsize)
        self.seen.append(np.frombuffer(read, self.kind).reshape(self.shapes["x"]))
        return True


def test_tensorrt_reads_and_writes_tensors_of_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    from designer.runtime.engines import tensorrt_engine as module

    waited = []
    stream = SimpleNamespace(cuda_stream=7, synchronize=lambda: waited.append(1))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    built = []
    monkeypatch.setattr(module, "build_engine", lambda model, shapes: built.append((model, shapes)) or "built")
    contexts = []
    monkeypatch.setattr(module, "engine_context", lambda made: contexts.append(TrtContext()) or contexts[-1])
    compiled = object.__new__(module.TensorRtCompiled)
    compiled._model, compiled._device, compiled._contexts = b"model", "cpu", {}
    compiled._feeds, compiled._results = [(Source("x"), KIND)], [(Source("a"), "a:y")]
    for count in (3, 1, 3):
        array = np.arange(2 * count).reshape(2, count).T  # neither contiguous nor float32
        found = compiled.run({Source("x"): array})
        assert list(found) == [Source("a")]
        np.testing.assert_array_equal(found[Source("a")], array * np.float32(2))
        assert found[Source("a")].dtype == np.float32
    assert [model for model, _ in built] == [b"model", b"model"], "one engine for each size of a batch"
    assert [(s["x"].smallest, s["x"].best, s["x"].largest) for _, s in built] == [((3, 2),) * 3, ((1, 2),) * 3]
    assert [context.streams for context in contexts] == [[7, 7], [7]]
    assert len(waited) == 3
    compiled._feeds = [(Source("table"), TensorType((5, 2))), (Source("x"), KIND), (Source("y"), KIND)]
    array = np.ones((4, 2), np.float32)
    compiled.run({Source("table"): np.ones((5, 2), np.float32), Source("x"): array, Source("y"): array})
    assert {name: sizes.best for name, sizes in built[-1][1].items()} == {"table": (5, 2), "x": (4, 2), "y": (4, 2)}
    assert list(compiled._contexts) == [3, 1, 4], "the first axis of the table is no batch"
    for kind in (DataType.FLOAT16, DataType.INT64, DataType.BOOL):
        given, seen = np.arange(6).reshape(3, 2).astype(kind.value), []
        compiled._feeds = [(Source("x"), TensorType((Symbol("N"), 2), kind))]
        compiled._contexts = {3: ("built", InputOnly(kind.value, seen))}
        compiled.run({Source("x"): given.astype(np.float64)})
        np.testing.assert_array_equal(seen[0], given, strict=True)
    compiled._feeds = [(Source("x"), KIND)]
    compiled._contexts = {2: ("built", TrtContext(works=False))}
    assert said(lambda: compiled.run({Source("x"): np.ones((2, 2), np.float32)})) == (
        "engine-failed", "TensorRT did not run the network", "choose another engine in Network Settings", None
    )  # fmt: skip


@pytest.mark.parametrize(("engine", "context"), [(True, True), (True, False), (False, False)])
def test_an_engine_that_this_machine_cannot_run(monkeypatch, engine, context):
    from designer.runtime.engines import tensorrt_engine as module

    made = SimpleNamespace(create_execution_context=lambda: "context" if context else None)
    taken = []

    def runtime(log):
        return SimpleNamespace(
            deserialize_cuda_engine=lambda data: taken.append((log, data)) or (made if engine else None)
        )

    monkeypatch.setattr(trt, "library", lambda: SimpleNamespace(Runtime=runtime))
    monkeypatch.setattr(trt, "collector", lambda library: "log")
    monkeypatch.setattr(trt, "reason_of", lambda log: f"of the {log}")
    act = lambda: module.engine_context(SimpleNamespace(data=b"data"))  # noqa: E731
    if context:
        assert act() == "context"
    else:
        assert said(act)[:2] == ("engine-failed", "TensorRT cannot run the engine on this machine: of the log")
    assert taken == [("log", b"data")]


def test_sizes_of_an_engine_are_set_for_open_inputs_only():
    shape = trt_build.ShapeRange((1, 3), (2, 3), (4, 3))
    shapes = {"x": shape, "y": trt_build.ShapeRange((5,), (5,), (5,))}
    for fixed, index in ((True, 0), (False, 0), (False, 1), (False, -1)):
        inputs = [SimpleNamespace(name="y", shape=(5,)), SimpleNamespace(name="x", shape=(1 if fixed else -1, 3))]
        network = SimpleNamespace(num_inputs=2, get_input=inputs.__getitem__)
        sizes, added = [], []
        profile = SimpleNamespace(set_shape=lambda *given, sizes=sizes: sizes.append(given))
        builder = SimpleNamespace(create_optimization_profile=lambda profile=profile: profile)
        config = SimpleNamespace(add_optimization_profile=lambda p, added=added, index=index: added.append(p) or index)
        act = lambda b=builder, c=config, n=network: trt_build._add_profile(b, c, n, shapes)  # noqa: E731
        if index < 0:
            assert said(act)[:2] == ("tensorrt-failed", "TensorRT refuses the sizes of the inputs")
        else:
            act()
        assert added == ([] if fixed else [profile])
        assert sizes == ([] if fixed else [("y", (5,), (5,), (5,)), ("x", (1, 3), (2, 3), (4, 3))])


def test_the_telemetry_of_openvino_stays_hidden_during_its_import_only(monkeypatch):
    import sys

    from designer.runtime.engines import openvino_engine as module

    made = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "openvino", made)
    load = module._openvino.__wrapped__
    for before in (None, "telemetry"):
        if before is None:
            monkeypatch.delitem(sys.modules, module.TELEMETRY, raising=False)
        else:
            monkeypatch.setitem(sys.modules, module.TELEMETRY, before)
        assert load() is made
        assert sys.modules.get(module.TELEMETRY, None) == before
        assert (module.TELEMETRY in sys.modules) == (before is not None)


def test_values_and_attributes_of_nodes():
    from designer.operators.api import OnnxInput, OnnxItem, OnnxNode

    made = OnnxNode("Split", (OnnxInput(0),), outputs=2)
    assert onnx_model._place(made) == (id(made), 0)
    assert onnx_model._place(OnnxItem(made, 1)) == (id(made), 1)
    assert onnx_model._place(OnnxInput(0)) is None
    assert [onnx_model._attribute(value) for value in (True, False, (1, 2), "a", 2.5, [3])] == [
        1,
        0,
        [1, 2],
        "a",
        2.5,
        [3],
    ]
    tensor = onnx_model._attribute(np.array([[1.5, 2]], np.float32))
    assert onnx.numpy_helper.to_array(tensor).tolist() == [[1.5, 2]]


class OrtModule:
    """ONNX Runtime, whose sessions keep the model as it is and report 10 µs more for every kernel of a run."""

    ExecutionMode = SimpleNamespace(ORT_SEQUENTIAL="sequential")
    GraphOptimizationLevel = SimpleNamespace(ORT_ENABLE_ALL="all", ORT_ENABLE_BASIC="basic", ORT_DISABLE_ALL="none")

    class SessionOptions:
        def __init__(self) -> None:
            self.entries, self.sizes = [], {}

        def add_session_config_entry(self, *entry):
            self.entries.append(entry)

        def add_free_dimension_override_by_name(self, name, size):
            self.sizes[name] = size

    def __init__(self) -> None:
        self.sessions, self.fed = [], []

    def InferenceSession(self, model, settings, **more):
        from pathlib import Path

        self.sessions.append((settings, more))
        Path(settings.optimized_model_filepath).write_bytes(model)
        loaded = onnx.load_model_from_string(model)

        def end_profiling():
            import json

            events, clock = [], 0
            for _ in self.fed:
                for kernel in loaded.graph.node:
                    clock += 10
                    events.append({"cat": "Node", "name": f"{kernel.name}_kernel_time", "dur": clock})
                    events.append({"cat": "Node", "name": f"{kernel.name}_fence_before", "dur": 1000})
                events.append({"cat": "Session", "name": "model_run", "dur": 5000})
            path = Path(f"{settings.profile_file_prefix}.json")
            path.write_text(json.dumps(events))
            return str(path)

        return SimpleNamespace(
            get_inputs=lambda: loaded.graph.input, run=lambda names, fed: self.fed.append((names, fed)),
            end_profiling=end_profiling,
        )  # fmt: skip


def ort_timer(registry: Any, layout: str, count: int) -> Any:
    from designer.runtime.api import RunOptions
    from designer.runtime.engines.ort_timing import OrtTimer

    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"), layer("vector", "tensor_input", shape="5"),
            layer("0", "unary", "image", function="abs"), layer("1", "unary", "0", function="sin"),
            layer("2", "unary", "vector", function="abs"), layer("result", "output", "1"),
        ]
    )  # fmt: skip
    inference = Inference(graph, registry)
    engine = ort_engine.OrtEngine(inference, Weights(), RunOptions("onnxruntime", layout=layout, threads=count))
    feeds = {
        Source("image"): np.random.default_rng(0).random((2, 3, 4, 6), np.float32),
        Source("vector"): np.ones((2, 5)),
    }
    part = Part(("0", "1", "2"), (Source("image"), Source("vector")))
    return OrtTimer(engine, part, [Source("1"), Source("2")], feeds)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_kernels_of_onnx_runtime_are_timed_as_they_run(runtime_registry, monkeypatch, layout):
    from designer.runtime.engines import ort, ort_timing

    fake, ticks = OrtModule(), []
    monkeypatch.setattr(ort_timing, "runtime", lambda: fake)
    monkeypatch.setattr(ort, "runtime", lambda: fake)
    timer = ort_timer(runtime_registry, layout, 3)
    found = timer.layers(2, 1, lambda: ticks.append(1))
    assert len(ticks) == len(fake.fed) == 3
    *groups, rest = found
    assert (rest.layers, rest.seconds, rest.what) == ((), [0, 0], "")
    assert [group.layers for group in groups] == [("0",), ("1",), ("2",)]
    turned = layout == "nhwc"
    kinds = [["Transpose", "Abs"], ["Sin", "Transpose"], ["Abs"]] if turned else [["Abs"], ["Sin"], ["Abs"]]
    assert [group.what for group in groups] == [", ".join(kind) for kind in kinds]
    for number, group in enumerate(groups if not turned else (), 1):
        assert group.seconds == pytest.approx([1e-5 * (3 * run + number) for run in (1, 2)]), "without the first run"
    ((settings, more),) = fake.sessions
    assert more == {
        "providers": ["CPUExecutionProvider"], "disabled_optimizers": ["Pad_Fusion", "LayerNormFusionL1", "LayerNormFusionL2"]
    }  # fmt: skip
    assert settings.entries == [("session.x64quantprecision", "1")]
    assert (settings.log_severity_level, settings.intra_op_num_threads, settings.inter_op_num_threads) == (3, 3, 1)
    assert (settings.execution_mode, settings.graph_optimization_level, settings.enable_profiling) == (
        "sequential",
        "all",
        True,
    )
    names, fed = fake.fed[0]
    assert names is None
    image = timer.feeds[Source("image")]
    expected_image = image.transpose(0, 2, 3, 1) if layout == "nhwc" else image
    np.testing.assert_array_equal(fed["image"], expected_image)
    assert fed["image"].flags.c_contiguous
    assert fed["vector"].shape == (2, 5)


def test_single_kernels_have_the_sizes_of_the_feeds(runtime_registry, monkeypatch):
    from designer.runtime.engines import ort, ort_timing

    fake, given = OrtModule(), []
    monkeypatch.setattr(ort_timing, "runtime", lambda: fake)
    monkeypatch.setattr(ort, "runtime", lambda: fake)
    monkeypatch.setattr(ort_timing, "single_steps", lambda *all_of_it: given.append(all_of_it) or ["steps"])
    assert ort_timer(runtime_registry, "nchw", 2).single_steps() == ["steps"]
    ((model, groups, sizes, count),) = given
    assert (len(sizes), *sizes.values(), count) == (1, 2, 2)
    assert [group.layers for group in groups] == [("0",), ("1",), ("2",)]
    assert [node.op_type for node in model.graph.node] == ["Abs", "Sin", "Abs"]
    ((settings, more),) = fake.sessions
    assert settings.sizes == sizes
    assert (settings.intra_op_num_threads, settings.graph_optimization_level) == (2, "all")
    assert more["disabled_optimizers"] == ["Pad_Fusion", "LayerNormFusionL1", "LayerNormFusionL2"]


class Port:
    def __init__(self, names: set[str]) -> None:
        self.names = names


class OpenVinoCore:
    """OpenVINO, whose requests double the first input and count what they are asked."""

    def __init__(self) -> None:
        self.models, self.compiled, self.shapes, self.requests = [], [], [], []

    def read_model(self, model):
        self.models.append(model)
        names = [Port({"image", "alias"}), Port({"second"})]
        return SimpleNamespace(inputs=names, reshape=lambda given: self.shapes.append([*given.values()]))

    def compile_model(self, model, device, properties):
        self.compiled.append((device, dict(properties)))
        return SimpleNamespace(create_infer_request=self.request)

    def request(self):
        made = SimpleNamespace(fed={}, results={}, canceled=0, asked=None)
        made.model_inputs = [SimpleNamespace(names={"image", "alias"})]  # the second one was folded away
        made.set_tensor = made.fed.__setitem__
        made.set_output_tensor = made.results.__setitem__

        def infer():
            if made.asked is not None:
                made.asked.ask()
            made.results[0][:] = made.fed["image"] * 2
            made.results[1][:] = len(made.fed["image"])

        def cancel():
            made.canceled += 1

        made.infer, made.cancel = infer, cancel
        self.requests.append(made)
        return made


def test_a_part_is_compiled_by_openvino_for_each_size_of_a_batch(runtime_registry, monkeypatch):
    from designer.runtime.engines import openvino_engine as module

    core = OpenVinoCore()
    monkeypatch.setattr(module, "_core", lambda: core)
    tensor = lambda array, shared_memory: array if shared_memory else None  # noqa: E731
    monkeypatch.setattr(module, "_openvino", lambda: SimpleNamespace(Tensor=tensor))
    monkeypatch.setattr(module, "_partial_shape", lambda kind, batch: kind.concrete(batch))
    graph = Graph(
        [
            layer("image", "input", dims="4x2x3"), layer("second", "input", dims="4x2x1", batch=1),
            layer("a", "unary", "image", function="abs"), layer("b", "element_wise", "a,second", operation="add"),
            layer("result", "output", "b"), layer("other", "output", "a"),
        ]
    )  # fmt: skip
    inference = Inference(graph, runtime_registry)
    part = Part(("a", "b"), (Source("second"), Source("image")))
    properties = module._properties(3)
    assert properties == {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 3, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False, "ENABLE_HYPER_THREADING": True,
    }  # fmt: skip
    checked = []
    indices = SimpleNamespace(source=Source("second"), check=lambda array, batch: checked.append((array.shape, batch)))
    made = module.OpenVinoCompiled(inference, part, [Source("b"), Source("a")], b"model", properties, [indices])
    assert (core.models, core.compiled, core.shapes) == (
        [b"model"],
        [("CPU", properties)],
        [[(1, 1, 2, 4), (1, 3, 2, 4)]],
    )
    second = np.ones((1, 1, 2, 4), np.float32)
    for count in (3, 1, 3):
        image = np.random.default_rng(count).random((2, 3, 4, count)).transpose(3, 1, 0, 2)  # float64, not contiguous
        found = made.run({Source("second"): second, Source("image"): image})
        assert list(found) == [Source("b"), Source("a")]
        np.testing.assert_array_equal(found[Source("b")], image.astype(np.float32) * 2)
        assert found[Source("a")].shape == (count, 3, 2, 4)
        assert (found[Source("a")] == count).all()
        assert {array.dtype for array in found.values()} == {np.dtype(np.float32)}
    assert core.shapes[1:] == [[(1, 1, 2, 4), (3, 3, 2, 4)]], "once for each size"
    assert len(core.requests) == 2
    assert all(list(request.fed) == ["image"] for request in core.requests)
    assert checked == [((1, 1, 2, 4), 3), ((1, 1, 2, 4), 1), ((1, 1, 2, 4), 3)]
    assert [request.canceled for request in core.requests] == [0, 0]
    asked = core.requests[0].asked = Interrupt()
    with interruptible(asked):
        made.run({Source("second"): second, Source("image"): np.ones((1, 3, 2, 4), np.float32)})
    assert [request.canceled for request in core.requests] == [1, 0]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_models_have_an_output_for_each_wanted_tensor(runtime_registry, layout):
    """Also for one that passes through, and in the usual layout for an input and for a tensor that is wanted twice."""
    graph = Graph(
        [
            layer("image", "input", dims="4x2x3"), layer("vector", "tensor_input", shape="5"),
            layer("same", "identity", "image"), layer("a", "unary", "image", function="abs"),
            layer("also", "identity", "a"), layer("v", "unary", "vector", function="abs"), layer("result", "output", "also"),
        ]
    )  # fmt: skip
    inference = Inference(graph, runtime_registry)
    part = Part(("same", "a", "also", "v"), (Source("image"), Source("vector")))
    turned = layout == "nhwc"
    names = ("same", "a", "also", "v") if turned else ("image", "same", "a", "also", "a", "v", "vector")
    wanted = [Source(name) for name in names]
    model = onnx_model.build_model(inference, part, wanted, Weights(), layout=layout)
    onnx.checker.check_model(model)
    assert [output.name for output in model.graph.output] == (
        ["same/nhwc", "a/nhwc", "also/nhwc", "v"]
        if turned
        else ["image/output", "same", "a", "also", "a/output", "v", "vector/output"]
    )
    rng = np.random.default_rng(0)
    image, vector = rng.normal(size=(2, 3, 2, 4)).astype(np.float32), rng.normal(size=(2, 5)).astype(np.float32)
    fed = {"image": np.ascontiguousarray(image.transpose(0, 2, 3, 1)) if turned else image, "vector": vector}
    session = ort_engine.inference_session(model.SerializeToString(), 1)
    values = {
        "image": image,
        "same": image,
        "a": np.abs(image),
        "also": np.abs(image),
        "v": np.abs(vector),
        "vector": vector,
    }
    for found, name in zip(session.run(None, fed), names, strict=True):
        value = values[name]
        value = value.transpose(0, 2, 3, 1) if turned and value.ndim == 4 else value
        np.testing.assert_array_equal(found, value)
