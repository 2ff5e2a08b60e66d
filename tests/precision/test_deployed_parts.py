"""Parts of calibrated INT8 and of measured variants on their own: options of sessions, ranges of parts, and values by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan
from types import SimpleNamespace

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.files.weights import WeightKey, Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.metrics import psnr, result_psnr, ssim
from designer.precision import deployed_session, int8
from designer.precision import measure as measuring
from designer.precision.computations import EngineComputation, FileComputation, names_in_file
from designer.precision.deployed_session import DeployedSession, QuantizedEngine, variant_session
from designer.precision.emulation import Emulation
from designer.precision.int8 import Quantizer, quantized_variant
from designer.precision.measure import VariantMeasurement, measure_variants
from designer.precision.mixed import choose_precision, validate
from designer.precision.normalization import normalization_groups
from designer.precision.variants import RunnableVariant, find_variant, own_weights
from designer.runtime.api import ONE_TILE, Part, RunOptions
from designer.runtime.images import write_image
from designer.runtime.plan import PartStep
from designer.runtime.session import Session

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")

RELU = ActivationSpec("relu")
IMAGE = np.random.default_rng(1).random((1, 3, 6, 8), np.float32)
TORCH = RunOptions("torch", threads=1)


def noisy() -> Graph:
    """Two convolutions between Noise and Mix, and a Noise between them."""
    return Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("noise", "noise", "image", scale="0.05"),
            layer("a", "convolution", "noise", RELU, features="4", kernel="3x3"),
            layer("more", "noise", "a", scale="0.01"),
            layer("again", "noise", "more", scale="0.01"),
            layer("b", "convolution", "again", None, features="3", kernel="3x3"),
            layer("mix", "mix", "b,noise"),
            layer("result", "output", "mix"),
        ],
        name="noisy",
    )


def filled(graph: Graph, registry) -> Weights:
    return fill_missing(Weights(), required_weights(Inference(graph, registry)), 3)


# --- calibrated INT8 as a session --------------------------------------------------------------------------------------


VARIANT = Variant("v", "int8", {"a": "float32"}, calibration=CalibrationRecipe("images"))
RANGES = SimpleNamespace(data={"image": "range of the image", "a": "range of a", "b": "range of b"})


def test_only_what_onnx_runtime_computes_as_exported_gets_a_session_of_its_own(registry, monkeypatch):
    monkeypatch.setattr(deployed_session, "_calibrated", lambda *_: RANGES)
    graph = noisy()
    ready = RunnableVariant(graph, filled(graph, registry), TORCH)
    options = RunOptions("torch", layout="nhwc", threads=2)
    for variant in (None, Variant("v", "bf16"), replace(VARIANT, calibration=None), replace(VARIANT, engine="torch")):
        found = variant_session(ready, registry, variant, options)
        assert (type(found), found.options, found.weights) == (Session, options, ready.weights)
    assert type(variant_session(ready, registry, VARIANT, options)) is DeployedSession


def test_all_sessions_of_a_calibrated_variant_share_one_calibration(registry, monkeypatch):
    asked = []

    def calibrated(graph, registry, weights, options, variant):
        asked.append((graph.name, options, variant))
        return RANGES

    monkeypatch.setattr(deployed_session, "_calibrated", calibrated)
    graph = noisy()
    weights = filled(graph, registry)
    given = RunOptions("torch", "bf16", "nhwc", "cuda:0", threads=2, formats=(("a", "int4"),), agreed=("x",))
    made = DeployedSession(graph, registry, weights, given, VARIANT, keep_bytes=12345)
    plain = RunOptions("onnxruntime", "fp32", "nchw", "cpu", threads=2, agreed=("x",))
    assert made.options == replace(plain, precision="int8")
    assert asked == [("noisy", plain, VARIANT)]
    assert made.results.keep_bytes == 12345
    copied = made.empty_copy(777)
    small = Graph(
        [replace(each, params={**each.params, "dims": "4x4x3"}) if each.name == "image" else each for each in graph]
    )
    tile = made.tile_session(small)
    assert len(asked) == 1
    for found, expected, keep in ((copied, made.options, 777), (tile, replace(made.options, tile=ONE_TILE), 0)):
        assert (type(found), found.options, found.results.keep_bytes) == (DeployedSession, expected, keep)
        assert (found._ranges, found._variant, found.weights) == (RANGES, VARIANT, weights)
    assert tile.graph["image"].params["dims"] == "4x4x3"
    engine = made.make_engine()
    assert (engine.name, type(engine.engine)) == ("onnxruntime", QuantizedEngine)


class Quantizers:
    """A quantizer that remembers what it was asked for, and returns the model with a mark."""

    layers = ("a", "b")

    def __init__(self, asked):
        self.asked = asked

    def __call__(self, model, feeds, recipe, *, ranges):
        assert any(
            tensor.name.endswith("/kernel") for tensor in model.graph.initializer
        )  # not inputs, which are not quantized
        self.asked.append((feeds, recipe, dict(ranges.data)))
        return self

    def quantized(self, layers):
        self.asked.append(list(layers))
        return "quantized"


def test_a_part_behind_analysis_layers_has_the_ranges_of_the_deployed_tensor(registry, monkeypatch):
    graph = noisy()
    inference = Inference(graph, registry)
    asked = []
    monkeypatch.setattr(deployed_session, "Quantizer", Quantizers(asked))
    options = replace(TORCH, engine="onnxruntime", weights_as_inputs=True)
    engine = QuantizedEngine(inference, filled(graph, registry), options, VARIANT, RANGES)
    assert not engine.options.weights_as_inputs
    part = Part(("b",), (Source("again"),))
    assert engine.model(part, [Source("b")]) == "quantized"
    assert asked == [
        ((), VARIANT.calibration, {**RANGES.data, "again": "range of a"}),
        ["b"],
    ]
    assert set(RANGES.data) == {"image", "a", "b"}  # those of other parts are not changed
    asked.clear()
    engine.model(Part(("a",), (Source("noise"),)), [Source("a")])
    assert asked[0][2] == {**RANGES.data, "noise": "range of the image"}
    asked.clear()
    known = SimpleNamespace(data={**RANGES.data, "again": "its own"})
    QuantizedEngine(inference, filled(graph, registry), options, VARIANT, known).model(part, [Source("b")])
    assert asked[0][2]["again"] == "its own"
    asked.clear()
    engine._ranges = SimpleNamespace(data={})
    engine.model(part, [Source("b")])
    assert asked[0][2] == {}


def test_a_part_without_products_is_not_quantized(registry, monkeypatch):
    graph = Graph([layer("image", "input", dims="8x6x3"), layer("p", "pooling", "image"), layer("o", "output", "p")])
    monkeypatch.setattr(deployed_session, "Quantizer", None)
    engine = QuantizedEngine(
        Inference(graph, registry), Weights(), replace(TORCH, engine="onnxruntime"), VARIANT, RANGES
    )
    made = engine.model(Part(("p",), (Source("image"),)), [Source("p")])
    assert [node.op_type for node in made.graph.node if node.op_type != "Identity"] == ["MaxPool"]


def test_calibration_is_that_of_the_deployed_network_on_the_images(registry, tmp_path, monkeypatch):
    for number in range(3):
        write_image(tmp_path / f"{number}.png", np.random.default_rng(number).random((1, 3, 6, 8), np.float32))
    asked = []

    def made(model, feeds, recipe):
        asked.append((model, feeds, recipe))
        return SimpleNamespace(ranges="the ranges")

    monkeypatch.setattr(deployed_session, "Quantizer", made)
    graph = noisy()
    recipe = CalibrationRecipe(str(tmp_path), count=2)
    variant = replace(VARIANT, calibration=recipe)
    options = replace(TORCH, engine="onnxruntime")
    assert deployed_session._calibrated(graph, registry, filled(graph, registry), options, variant) == "the ranges"
    ((model, feeds, used),) = asked
    assert used == recipe
    assert [set(each) for each in feeds] == [{"image"}] * 2
    assert [each["image"].shape for each in feeds] == [(1, 3, 6, 8)] * 2
    assert not np.array_equal(feeds[0]["image"], feeds[1]["image"])
    assert [node.op_type for node in model.graph.node if node.op_type == "Conv"] == ["Conv"] * 2
    empty = Graph(
        [layer("image", "input", dims="8x6x3"), layer("n", "noise", "image"), layer("o", "output", "n")], name="bare"
    )
    with pytest.raises(DiagnosticError, match="'bare' has no convolution"):
        deployed_session._calibrated(empty, registry, Weights(), options, variant)


# --- quantizers --------------------------------------------------------------------------------------------------------


def model_of(kinds: str, name: str = "net"):
    """A chain of operators on 4 channels: `in` to `y0`, `y1`, ..."""
    helper = onnx.helper
    nodes, stored, before = [], [], "in"
    for number, kind in enumerate(kinds.split()):
        weight = f"w{number}"
        reads = [before, weight] if kind in ("Conv", "MatMul", "Mul", "Add") else [before]
        if len(reads) == 2:
            shape = {"Conv": (4, 4, 1, 1), "MatMul": (6, 6)}.get(kind, (1, 4, 1, 1))
            array = np.random.default_rng(number).normal(0, 0.4, shape).astype(np.float32)
            stored.append(onnx.numpy_helper.from_array(array, weight))
        before = f"y{number}"
        more = {"MaxPool": {"kernel_shape": [1, 1]}, "Transpose": {"perm": [0, 1, 3, 2]}}.get(kind, {})
        nodes.append(helper.make_node(kind, reads, [before], before, **more))
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, 4, 6, 6)) for n in ("in", before)]
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:], stored)
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="a program"
    )
    made.producer_version = "3.1"
    return made


FEEDS = [{"in": np.random.default_rng(number).normal(0, 1, (1, 4, 6, 6)).astype(np.float32)} for number in range(3)]


def pairs(model) -> int:
    return sum(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in model.graph.node)


@pytest.mark.parametrize(
    ("kinds", "layers", "chosen", "quantized"),
    [
        ("Conv Relu Conv", "y0 y2", "y2", {"y1", "y2"}),
        ("Conv MaxPool Conv", "y0 y2", "y2", {"y1", "y2"}),  # it hands INT8 values on
        ("Conv MaxPool Sigmoid Conv", "y0 y3", "y3", {"y3"}),
        ("Conv MaxPool Sigmoid Conv", "y0 y3", "y0", {"y0"}),
        ("MatMul Transpose MatMul", "y0 y2", "y0 y2", {"y0", "y1", "y2"}),
        ("Conv Sigmoid Mul Tanh Conv", "y0 y2 y4", "y2", {"y2"}),
        ("Conv Sigmoid Add Tanh Conv", "y0 y2 y4", "y2 y4", {"y2", "y4"}),
    ],
)
def test_layers_that_are_chosen_and_what_hands_their_values_on_are_int8(kinds, layers, chosen, quantized):
    quantizer = Quantizer(model_of(kinds), FEEDS)
    assert quantizer.layers == tuple(layers.split())
    assert set(quantizer._chosen(chosen.split())) == quantized
    assert pairs(quantizer.quantized(chosen.split())) > 0
    assert pairs(quantizer.quantized([])) == 0  # not all
    assert pairs(quantizer.model) == 0


def branching(text: str):
    """Operators such as `Conv a>b` or `Split a>b,c`, on 2 channels and 4 before a split or behind a Concat."""
    helper, steps = onnx.helper, [step.split() for step in text.split("; ")]
    channels, nodes, stored = {"in": 4}, [], []
    for kind, names in steps:
        reads, makes = (part.split(",") for part in names.split(">"))
        count = sum(channels[name] for name in reads) if kind == "Concat" else channels[reads[0]] // len(makes)
        channels |= dict.fromkeys(makes, count)
        more = {"axis": 1} if kind in ("Split", "Concat") else {}
        if kind == "Conv":
            array = np.random.default_rng(len(nodes)).normal(0, 0.4, (count, count, 1, 1)).astype(np.float32)
            stored.append(onnx.numpy_helper.from_array(array, f"w{len(nodes)}"))
            reads.append(f"w{len(nodes)}")
        nodes.append(helper.make_node(kind, reads, makes, makes[0], **more))
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, channels[n], 6, 6)) for n in ("in", makes[0])]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


TWO_WAYS = "Relu in>r; Split r>a,b; Conv a>c; Conv b>d; Concat c,d>e; LeakyRelu e>f; Conv f>g"


@pytest.mark.parametrize(
    ("text", "chosen", "quantized"),
    [
        (TWO_WAYS, "c", "r a c"),
        (TWO_WAYS, "d", "r a d"),  # which reads the second output of the split
        (TWO_WAYS, "g", "e f g"),  # what is joined has another reader in front
        (TWO_WAYS, "c d", "r a c d"),
        (TWO_WAYS, "d g", "r a d e f g"),
        ("Conv in>a; Relu a>r; Sigmoid r>s; Conv r>c; Add c,s>e; Conv e>f", "f", "f"),
        ("Conv in>a; Relu a>r; Sigmoid r>s; Conv r>c; Add c,s>e; Conv e>f", "c", "r c"),  # one of two readers is enough
    ],
)
def test_what_hands_values_on_along_branches_is_int8_where_a_reader_is(text, chosen, quantized):
    quantizer = Quantizer(branching(text), FEEDS)
    assert set(quantizer._chosen(chosen.split())) == set(quantized.split())


def test_a_quantizer_keeps_what_the_file_says_about_itself_and_uses_the_ranges_of_another():
    model = model_of("Conv MaxPool Conv")
    quantizer = Quantizer(model, FEEDS)
    assert (quantizer.model.producer_name, quantizer.model.producer_version) == ("a program", "3.1")
    with pytest.raises(DiagnosticError, match="'bare' has no convolution and no matrix product"):
        Quantizer(model_of("Relu Add", "bare"), FEEDS)
    same = Quantizer(model, (), ranges=quantizer.ranges)
    assert same.quantized(["y0", "y2"]).graph == quantizer.quantized(["y0", "y2"]).graph
    longer = Quantizer(model_of("Conv MaxPool Conv Conv"), (), ranges=quantizer.ranges)
    assert longer.layers == ("y0", "y2", "y3")
    assert set(longer._chosen(["y2", "y3"])) == {"y1", "y2"}  # nothing is known about `y3`


def test_the_method_and_the_percentile_of_a_recipe_are_those_of_the_calibrator():
    rare = [{"in": feeds["in"].copy()} for feeds in FEEDS]
    rare[1]["in"][0, 0, 0, 0] = 90.0

    def largest(**options) -> float:
        made = Quantizer(model_of("Conv Conv"), rare, CalibrationRecipe(**options)).ranges
        return float(np.abs(made.data["in"].range_value).max())

    assert largest() == largest(method="minmax") == 90.0
    assert 1.0 < largest(method="percentile", percentile=90.0) < largest(method="percentile", percentile=99.0) < 20.0


def test_progress_of_a_calibration_counts_images():
    steps = []
    Quantizer(model_of("Conv Conv"), FEEDS, progress=lambda *step: steps.append(step))
    assert steps == [(0, 3, "Calibrating"), (1, 3, "Calibrating"), (2, 3, "Calibrating")]


@pytest.mark.parametrize(
    ("recipe", "message", "remedy"),
    [
        (
            CalibrationRecipe("x", method="best"),
            "'best' is not known for calibration",
            "choose one of minmax, percentile",
        ),
        (
            CalibrationRecipe("x", form="coreml"),
            "'coreml' is not known for calibration",
            "choose one of onnxruntime, tensorrt",
        ),
        (CalibrationRecipe("x", size="wide"), "'wide' is not a size", "for instance 256x256"),
    ],
)
def test_a_recipe_of_a_newer_version_is_refused_by_name(registry, recipe, message, remedy):
    with pytest.raises(DiagnosticError) as caught:
        int8.calibration_images(Inference(noisy(), registry), recipe)
    (found,) = caught.value.diagnostics
    assert found.code == "bad-calibration"
    assert found.message.startswith(message)
    assert found.remedy == remedy


def test_a_variant_without_calibration_or_with_other_integers_has_no_quantized_model(registry):
    inference = Inference(noisy(), registry)
    with pytest.raises(DiagnosticError) as caught:
        quantized_variant(None, inference, Variant("mine", "int8"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "not-calibrated",
        "the ranges of the variant 'mine' were not calibrated on images",
    )
    odd = replace(VARIANT, name="mine", formats={"a": "int6", "b": "int4", "c": "int8", "d": "float16"})
    with pytest.raises(DiagnosticError) as caught:
        quantized_variant(None, inference, odd)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "not-in-onnx", "the variant 'mine' has layers in int4, but ONNX Runtime computes only INT8"
    )  # fmt: skip


# --- measured variants -------------------------------------------------------------------------------------------------


def plain(**image) -> Graph:
    return Graph(
        [
            layer("image", "input", dims="16x12x3", **image),
            layer("noise", "noise", "image", scale="0.1", seed="3"),
            layer("conv", "convolution", "noise", None, features="3", kernel="3x3"),
            layer("result", "output", "conv"),
        ],
        name="plain",
    )


@pytest.fixture
def opened(registry):
    graph = plain(tiling="8")
    session = Session(graph, registry, filled(graph, registry), TORCH)
    session.set_input("image", np.random.default_rng(1).random((1, 3, 13, 15), np.float32), is_image=True)
    return session


def test_variants_are_compared_with_fp32_and_with_the_clean_image(opened, tmp_path):
    save_weights(tmp_path / "other", filled(opened.graph, opened.registry).tensors)
    halved = Weights({key: array / 2 for key, array in opened.weights.tensors.items()})
    save_weights(tmp_path / "halved", halved.tensors)
    variants = [
        Variant("same", weights=str(tmp_path / "other")),
        Variant("halved", weights=str(tmp_path / "halved")),
        Variant("half", "fp16"),
        Variant("int", "int8"),
        Variant("missing", weights=str(tmp_path / "nowhere")),
        Variant("unknown", "fp3"),
    ]
    steps = []
    base = RunOptions("torch", "bf16", threads=1, formats=(("conv", "int2"),))
    found = {
        each.name: each
        for each in measure_variants(opened, base, variants, lambda *_: b"", lambda *step: steps.append(step))
    }
    assert steps == list(enumerate(["", "same", "halved", "half", "int", "missing", "unknown"]))
    exact = opened.run().outputs["result"]
    clean = opened.fed("image").array
    itself = found[""]
    assert isnan(itself.psnr)
    assert isnan(itself.ssim)
    assert (itself.clean_psnr, itself.clean_ssim) == pytest.approx((psnr(clean, exact), ssim(clean, exact)), rel=1e-4)
    assert (itself.emulated, itself.bytes) == (False, 4 * (3 * 3 * 9 + 3))
    assert itself.milliseconds > 0
    assert found["same"].psnr == inf
    assert found["same"].ssim == pytest.approx(1)
    other = Session(opened.graph, opened.registry, halved, TORCH)
    other.set_input("image", clean, is_image=True)
    made = other.run().outputs["result"]
    assert found["halved"].psnr == pytest.approx(result_psnr(exact, made), rel=1e-4)
    assert found["halved"].ssim == pytest.approx(ssim(exact, made), rel=1e-4)
    assert found["halved"].clean_psnr == pytest.approx(psnr(clean, made), rel=1e-4)
    for name, size in (("half", 2 * 84), ("int", 81 + 4 * 3)):
        assert found[name].emulated
        assert isnan(found[name].milliseconds)
        assert found[name].bytes == size
        assert 20 < found[name].psnr < 100
    assert "nowhere" in found["missing"].error
    assert "'fp3'" in found["unknown"].error
    for name in ("missing", "unknown"):
        assert found[name] == replace(VariantMeasurement(name, error=found[name].error), psnr=found[name].psnr, ssim=found[name].ssim,
                                      clean_psnr=found[name].clean_psnr, clean_ssim=found[name].clean_ssim,
                                      milliseconds=found[name].milliseconds)  # fmt: skip


@pytest.mark.parametrize("sides", [(4,), (16, 4), (2, 16, 16, 4)], ids=str)
def test_scores_have_no_ssim_and_are_not_clipped(registry, sides):
    graph = Graph(
        [
            layer("numbers", "tensor_input", shape=",".join(map(str, sides))),
            layer("scores", "fully_connected", "numbers", None, features="2", flatten="false"),
            layer("result", "output", "scores", analysis_view="tensor"),
        ]
    )
    session = Session(graph, registry, filled(graph, registry), TORCH)
    session.set_input("numbers", np.full((1, *sides), 50.0, np.float32), is_image=False)
    _, coarse = measure_variants(
        session, TORCH, [Variant("coarse", formats={"scores": "int2"})], lambda *_: b"", lambda *_: None
    )
    exact = session.run().outputs["result"]
    emulated = Session(
        graph, registry, session.weights, RunOptions("emulated", threads=1, formats=(("scores", "int2"),))
    )
    emulated.set_input("numbers", np.full((1, *sides), 50.0, np.float32), is_image=False)
    assert coarse.psnr == pytest.approx(result_psnr(exact, emulated.run().outputs["result"]))
    assert isnan(coarse.ssim)
    assert isnan(coarse.clean_psnr)


def test_a_network_is_run_twice_and_the_second_time_counts(opened, monkeypatch):
    runs = []
    original = Session.run

    def run(self, *arguments, **more):
        found = original(self, *arguments, **more)
        runs.append(found)
        return replace(found, milliseconds=100.0 * len(runs))

    monkeypatch.setattr(Session, "run", run)
    (itself,) = measure_variants(opened, TORCH, [], lambda *_: b"", lambda *_: None)
    assert itself.milliseconds == 200.0
    assert [step.cached for step in runs[1].steps if "conv" in step.layers] == [False]


def test_a_deployed_model_is_timed_in_its_second_run(opened, monkeypatch):
    clock = iter((5.0, 5.25))
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(clock))
    ran = []

    class Runtime:
        def get_inputs(self):
            return [SimpleNamespace(name="the image")]

        def run(self, names, feeds):
            ran.append((names, {key: array.shape for key, array in feeds.items()}))
            (array,) = feeds.values()
            return [array * np.float32(0.5)]

    monkeypatch.setattr(measuring, "inference_session", lambda model, threads: Runtime())
    variant = Variant("int", "int8", calibration=CalibrationRecipe("images"))
    asked = []

    def export(ready, registry, variant):
        asked.append((ready.graph.name, variant.name))
        return b"model"

    _, deployed = measure_variants(opened, TORCH, [variant], export, lambda *_: None)
    assert not deployed.error
    assert asked == [("plain", "int")]
    assert ran == [(None, {"the image": (1, 3, 16, 16)})] * 2  # padded
    assert (deployed.milliseconds, deployed.emulated) == (250.0, False)
    noise = opened.run([Source("noise")]).captures[Source("noise")][:, :, :13, :15]
    exact, clean = opened.run().outputs["result"], opened.fed("image").array
    assert deployed.psnr == pytest.approx(result_psnr(exact, noise / 2), rel=1e-4)
    assert deployed.clean_psnr == pytest.approx(psnr(clean, noise / 2), rel=1e-4)


@pytest.mark.parametrize("name", ["seen", "other"])
def test_outputs_of_a_deployed_model_are_cropped_with_and_without_an_analysis_layer_behind(registry, monkeypatch, name):
    """The first output by name is compared, whatever the other one is."""
    layers = [*plain(tiling="8"), layer("change", "difference", "conv,image"), layer(name, "output", "change")]
    graph = Graph(layers, name="plain")
    session = Session(graph, registry, filled(graph, registry), TORCH)
    image = np.random.default_rng(1).random((1, 3, 13, 15), np.float32)
    session.set_input("image", image, is_image=True)
    halved = Session(graph, registry, halves(session.weights), TORCH)
    halved.set_input("image", image, is_image=True)
    conv = Source("conv")
    padded = halved.run([conv]).captures[conv]

    class Runtime:
        def get_inputs(self):
            return [SimpleNamespace(name="the image")]

        def run(self, names, feeds):
            return [padded] * 2

    monkeypatch.setattr(measuring, "inference_session", lambda model, threads: Runtime())
    variant = Variant("int", "int8", calibration=CalibrationRecipe("images"))
    _, deployed = measure_variants(session, TORCH, [variant], lambda *_: b"model", lambda *_: None)
    exact, made = session.run().outputs, halved.run().outputs
    first = next(iter(exact))
    assert (deployed.error, deployed.emulated, first) == ("", False, min(name, "result"))
    assert deployed.psnr == pytest.approx(result_psnr(exact[first], made[first]), rel=1e-4)
    assert deployed.ssim == pytest.approx(ssim(exact[first], made[first]), rel=1e-4)


def halves(weights):
    return Weights({key: array / 2 for key, array in weights.tensors.items()})


# --- the rest ----------------------------------------------------------------------------------------------------------


def test_weights_of_a_variant_may_have_more_tensors_but_no_fewer(opened, tmp_path):
    halved = {key: array / 2 for key, array in opened.weights.tensors.items()}
    more = {**halved, WeightKey("unread", "kernel"): np.ones((2, 2), np.float32)}
    fewer = dict(list(halved.items())[:-1])
    for name, tensors in (("halved", halved), ("more", more), ("fewer", fewer)):
        save_weights(tmp_path / name, tensors)

    def own(name):
        variant = Variant("v", weights=str(tmp_path / name) if name else "")
        return own_weights(variant, opened.graph, opened.registry, opened.weights)

    assert own("") is opened.weights
    for name in ("halved", "more"):
        found = own(name).tensors
        assert found.keys() == halved.keys()
        assert all(np.array_equal(found[key], array) for key, array in halved.items())
    with pytest.raises(DiagnosticError):
        own("fewer")


def test_there_is_no_variant_to_choose():
    with pytest.raises(DiagnosticError) as caught:
        find_variant([], "a")
    (found,) = caught.value.diagnostics
    assert (found.message, found.remedy) == ("the network has no variant 'a'", "add it in the Variants panel")


def test_progress_of_a_validation_counts_the_images_that_were_run(registry, tmp_path):
    for name, size in (("a.png", (12, 16)), ("b.png", (4, 4)), ("c.png", (12, 16)), ("d.png", (12, 20))):
        write_image(tmp_path / name, np.random.default_rng(1).random((1, 3, *size), np.float32))
    graph = Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("half", "pooling", "image", size="8x8", stride="8x8"),
            layer("result", "output", "half"),
        ]
    )
    steps = []
    found = validate(
        Emulation(graph, registry, Weights(), RunOptions(threads=1)), tmp_path, lambda *step: steps.append(step)
    )
    assert list(found.images) == list(found.expected)
    assert steps == [(number, 0, "Running in FP32") for number in (0, 1, 1, 2)]  # the second one is too small
    assert (list(found.images), list(found.skipped)) == (["a.png", "c.png", "d.png"], ["b.png"])
    assert found.ranges["half"].values > 0


def test_emulation_takes_the_threads_and_the_agreed_texts_and_leaves_the_rest(registry):
    given = RunOptions("onnxruntime", "bf16", "nhwc", "cuda:0", threads=3, agreed=("x",), formats=(("conv", "int4"),))
    made = Emulation(plain(), registry, filled(plain(), registry), given)
    assert made.session.options == RunOptions("emulated", threads=3, agreed=("x",))
    assert set(made.layers) == {"image", "conv", "result"}
    image = np.random.default_rng(1).random((1, 3, 13, 15), np.float32)
    made.feed({"image": image})
    whole = made.run()["result"]
    assert whole.shape == (1, 3, 13, 15)
    coarse = made.run("fp32", {"conv": "int2"})["result"]
    assert np.abs(coarse - whole).max() > 1e-3
    np.testing.assert_array_equal(made.run()["result"], whole)


def groups(registry, *layers) -> set[frozenset[str]]:
    graph = Graph([layer("image", "input", dims="8x4x3"), *layers, layer("result", "output", layers[-1].name)])
    return set(normalization_groups(Inference(graph, registry)).values())


def test_the_default_of_a_reduction_is_the_mean_and_an_activation_ends_a_normalization(registry):
    def layers(activation=None):
        return (
            layer("mean", "reduce", "image", axes="1"),
            layer("less", "element_wise", "image,mean", activation, operation="subtract"),
            layer("square", "unary", "less", None, function="square"),
            layer("variance", "reduce", "square", axes="1"),
            layer("over", "element_wise", "less,variance", None, operation="divide"),
        )

    assert groups(registry, *layers()) == {frozenset({"mean", "less", "square", "variance", "over"})}
    found = groups(registry, *layers(RELU))
    assert not any("mean" in group and "over" in group for group in found)


def test_two_normalizations_in_a_row_are_two_groups(registry):
    found = groups(
        registry,
        layer("m1", "reduce", "image", operation="norm", axes="1"),
        layer("d1", "element_wise", "image,m1", None, operation="divide"),
        layer("m2", "reduce", "d1", operation="l1_norm", axes="1"),
        layer("d2", "element_wise", "d1,m2", None, operation="divide"),
        layer("after", "scale_shift", "d2", None, scale="2"),
    )
    assert found == {frozenset({"m1", "d1"}), frozenset({"m2", "d2"})}


def test_a_file_is_cut_at_the_tensors_that_are_known(registry):
    graph = Graph(
        [
            layer("in", "input", dims="6x6x4"),
            layer("y0", "convolution", "in", None, features="4", kernel="1x1", apply_bias="false"),
            layer("y1", "activation", "y0", RELU),
            layer("y2", "convolution", "y1", None, features="4", kernel="1x1", apply_bias="false"),
            layer("out", "output", "y2"),
        ]
    )
    session = Session(graph, registry, filled(graph, registry), TORCH)
    session.set_input("in", FEEDS[0]["in"], is_image=False)
    network = EngineComputation(session)
    model = model_of("Conv Relu Conv")
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = "imported"
    names = names_in_file(network, model, {Source("y0"): "imported", Source("y1"): "nowhere"})
    assert names == {Source("in"): "in", Source("y0"): "imported", Source("y1"): "y1", Source("y2"): "y2"}
    made = FileComputation(model, names, 1)
    known = {Source("in"), Source("y0"), Source("y1"), Source("y2")}
    one = made.step((Source("y1"),), known)
    assert one.reads == (Source("y0"),)
    array = FEEDS[1]["in"]
    np.testing.assert_array_equal(one.run({Source("y0"): array})[Source("y1")], np.maximum(array, 0))
    both = made.step((Source("y1"),), {Source("in"), Source("y2")})
    assert both.reads == (Source("in"),)
    with pytest.raises(DiagnosticError) as caught:
        made.step((Source("y1"),), {Source("y2")})
    (found,) = caught.value.diagnostics
    assert (found.code, found.layer, found.message) == (
        "not-comparable", "y1", "'y1' reads 'in', which the other computation does not have"
    )  # fmt: skip
    with pytest.raises(DiagnosticError, match="'y0' reads 'in', which the other computation does not have"):
        network.step((Source("y1"),), {Source("y2")})
    assert network.step((Source("y1"),), {Source("in")}).reads == (Source("in"),)
    assert isinstance(session.plan().steps[0], PartStep)


def test_several_parts_between_analysis_layers_are_emulated_as_they_cannot_be_exported(registry):
    """Noise between two convolutions: the deployed model computes both, so what is between them cannot run there."""
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("a", "convolution", "image", None, features="3", kernel="3x3"),
            layer("mix", "mix", "a,image"),
            layer("b", "convolution", "mix", None, features="3", kernel="3x3"),
            layer("result", "output", "b"),
        ]
    )
    session = Session(graph, registry, filled(graph, registry), TORCH)
    session.set_input("image", IMAGE, is_image=True)
    asked = []
    _, found = measure_variants(session, TORCH, [VARIANT], lambda *given: asked.append(given) or b"", lambda *_: None)
    assert not asked
    assert (found.emulated, found.error) == (True, "")
    assert isnan(found.milliseconds)


def test_files_are_inputs_of_an_emulation_too(registry, tmp_path):
    made = Emulation(plain(), registry, filled(plain(), registry), RunOptions(threads=1))
    image = np.random.default_rng(1).integers(0, 256, (1, 3, 12, 16)).astype(np.float32) / 255
    write_image(tmp_path / "a.png", image)
    made.feed({"image": tmp_path / "a.png"})
    from_file = made.run()["result"]
    made.feed({"image": image})
    np.testing.assert_allclose(from_file, made.run()["result"], atol=1e-6)


def test_large_sums_stay_in_float32(registry, tmp_path):
    """Of 32 channels with 3x3 numbers each, above 512; as many terms of smaller values do not."""
    write_image(tmp_path / "a.png", np.full((1, 3, 12, 16), 1.0, np.float32))

    def kept(features: int, factor: float) -> dict[str, str]:
        graph = Graph(
            [
                layer("image", "input", dims="16x12x3"),
                layer("wide", "convolution", "image", None, features=str(features), kernel="1x1", apply_bias="false"),
                layer("sum", "convolution", "wide", None, features="3", kernel="3x3", apply_bias="false"),
                layer("small", "scale_shift", "sum", None, scale="0.0005"),
                layer("result", "output", "small"),
            ]
        )
        needed = required_weights(Inference(graph, registry))
        weights = Weights({key: np.full(each.shape, factor, np.float32) for key, each in needed.items()})
        found = validate(Emulation(graph, registry, weights, RunOptions(threads=1)), tmp_path)
        return dict(choose_precision(found, "mixed", 10.0).kept)

    reason = "values up to 864 are sums of 288 terms, which FP16 cannot add reliably"
    assert kept(32, 1.0) == {"sum": reason}
    assert kept(28, 1.2) == {}  # 252 terms
    assert kept(32, 0.75) == {}  # 486


@pytest.mark.parametrize("kinds", ["Conv", "Conv Relu Conv"])
def test_a_network_of_first_and_last_layers_has_nothing_to_quantize(kinds):
    quantizer = Quantizer(model_of(kinds), FEEDS)
    with pytest.raises(DiagnosticError) as caught:
        int8.quantize(quantizer, None)
    (found,) = caught.value.diagnostics
    assert found.code == "nothing-to-quantize"
    assert found.message == (
        "all layers that could be INT8 are first or last ones or residual additions, which stay in float"
    )
    assert found.remedy == "choose another precision, or a deeper network"


def test_the_only_layer_that_can_be_int8_saves_all_of_the_error():
    model = model_of("Conv Relu Conv Relu Conv")
    quantizer = Quantizer(model, FEEDS)
    found = int8.quantize(quantizer, int8.Fidelity(model, FEEDS))
    (only,) = found.sensitivity
    assert (only.layer, found.quantized) == ("y2", ("y2",))
    assert only.without_db > 90  # no layer is INT8
    assert 10 < only.alone_db < 70
    assert set(found.kept) == {"y0", "y4"}
