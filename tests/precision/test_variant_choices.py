"""Choices of variants: how each runs, its formats and names, its size, and which layers INT8 leaves in float."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, log10
from types import SimpleNamespace

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.precision import variants
from designer.precision.int8 import Fidelity, Quantizer, Sensitivity, chosen_layers, quantize
from designer.precision.measure import weight_bytes
from designer.precision.variants import (
    BY_HAND,
    PASSES,
    SPARSITIES,
    VARIANT_PRECISIONS,
    added,
    base_format,
    changed,
    find_variant,
    free_name,
    is_deployed,
    is_emulated,
    removed,
    run_options,
    with_formats,
    with_pass,
)
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.number_formats import FORMATS, OF_PRECISION

BASE = RunOptions("torch", "fp32", "nhwc", "cpu", 3)
GRAPH = Graph(
    [
        layer("image", "input", dims="5x4x3"),
        layer("a", "convolution", "image", None, features="4", kernel="3x1"),
        layer("b", "convolution", "a", None, features="2", kernel="1x1"),
        layer("result", "output", "b"),
    ]
)
RECIPE = CalibrationRecipe("images")

# --- how a variant runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "engine", "precision", "layout", "formats"),
    [
        (Variant("v"), "torch", "fp32", "nhwc", {}),
        (Variant("v", engine="onnxruntime"), "onnxruntime", "fp32", "nhwc", {}),
        (Variant("v", "bf16"), "emulated", "bf16", "nchw", {}),  # a processor computes in FP32
        (Variant("v", "bf16", engine="onnxruntime"), "emulated", "bf16", "nchw", {}),
        (Variant("v", "fp16", {"a": "float32"}), "emulated", "fp16", "nchw", {"a": "float32"}),
        (Variant("v", formats={"b": "int4"}), "emulated", "fp32", "nchw", {"b": "int4"}),
        (Variant("v", "int8"), "emulated", "fp32", "nchw", dict.fromkeys(("image", "a", "b", "result"), "int8")),
        (
            Variant("v", "int8", {"a": "float16"}),
            "emulated", "fp32", "nchw", {"image": "int8", "a": "float16", "b": "int8", "result": "int8"},
        ),
    ],
)  # fmt: skip
def test_the_options_of_a_variant(variant, engine, precision, layout, formats):
    pytest.importorskip("torch")
    found = run_options(variant, BASE, GRAPH)
    emulated = engine == "emulated"
    assert is_emulated(found) is emulated
    if not emulated:
        assert found.engine == engine
    assert (found.precision, found.layout, found.threads, found.device) == (precision, layout, 3, "cpu")
    assert dict(found.formats) == formats


@pytest.mark.parametrize(
    ("variant", "named"),
    [
        (Variant("v", "fp31"), "'fp31'"),
        (Variant("v", formats={"a": "int8", "b": "int9"}), "'int9'"),
        (Variant("v", sparsity="1:4"), "'1:4'"),
    ],
)
def test_what_a_variant_uses_must_be_known(variant, named):
    with pytest.raises(DiagnosticError, match=f"the variant 'v' .*{named}"):
        run_options(variant, BASE, GRAPH)


def test_names_of_precisions_and_of_number_formats_are_not_mixed_up():
    """Only "int8" is both; a layer has "float16" where a variant has "fp16"."""
    for name in {*VARIANT_PRECISIONS, *FORMATS, *OF_PRECISION}:
        for variant, known in ((Variant("v", name), VARIANT_PRECISIONS), (Variant("v", formats={"a": name}), FORMATS)):
            if name in known:
                assert run_options(variant, BASE, GRAPH)
                continue
            with pytest.raises(DiagnosticError) as refused:
                run_options(variant, BASE, GRAPH)
            assert refused.value.diagnostics[0].code == "unknown-precision"


@pytest.mark.parametrize(
    ("change", "deployed"),
    [
        ({}, True),
        ({"precision": "fp16"}, False),
        ({"calibration": None}, False),
        ({"calibration": replace(RECIPE, form="onnxruntime")}, True),
        ({"calibration": replace(RECIPE, form="tensorrt")}, False),
        ({"engine": "onnxruntime"}, True),
        ({"engine": "torch"}, False),
        ({"formats": {"a": "float32", "b": "int8"}}, True),
        ({"formats": {"a": "float16"}}, False),
    ],
)
def test_which_variants_onnx_runtime_computes_as_exported(change, deployed):
    assert is_deployed(replace(Variant("v", "int8", calibration=RECIPE), **change)) is deployed


# --- formats, passes, names --------------------------------------------------------------------------------------


def test_formats_that_were_found_are_marked_when_they_change():
    found = Variant("v", "int8", {"a": "float32", "b": "float32"}, reasons={"a": "first layer", "b": "sensitive"})
    made = with_formats(found, {"a": "float32", "c": "float16"})
    assert made.formats == {"a": "float32", "c": "float16"}
    assert made.reasons == {"a": "first layer", "b": BY_HAND, "c": BY_HAND}
    assert with_formats(found, {"a": "float32", "b": "float32", "c": "int8"}).reasons == found.reasons
    assert with_formats(Variant("v"), {"c": "float16"}).reasons == {}
    formats = {"int8": "int8", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
    assert {precision: base_format(Variant("v", precision)) for precision in formats} == formats


def test_passes_are_in_the_order_in_which_they_run():
    names = list(PASSES)
    variant = with_pass(with_pass(Variant("v"), names[2], True), names[0], True)
    assert variant.passes == (names[0], names[2])
    assert with_pass(variant, names[0], False).passes == (names[2],)
    assert with_pass(variant, names[0], True) == variant


def test_names_of_variants_stay_different():
    some = tuple(Variant(name) for name in ("a", "a 2", "b"))
    assert [free_name(some, name) for name in ("a", "b", "c")] == ["a 3", "b 2", "c"]
    assert [each.name for each in added(some, Variant("a", "bf16"))] == ["a", "a 2", "b", "a 3"]
    assert added(some, Variant("a", "bf16"))[-1].precision == "bf16"
    assert [each.name for each in removed(some, "a")] == ["a 2", "b"]
    made = changed(some, "a 2", Variant("new", "fp16"))
    assert [(each.name, each.precision) for each in made] == [("a", "fp32"), ("new", "fp16"), ("b", "fp32")]
    assert changed(some, "b", Variant("b", "fp16"))[2].precision == "fp16"
    for name, message in (("a", "already a variant 'a'"), ("  ", "needs a name")):
        with pytest.raises(DiagnosticError, match=message):
            changed(some, "b", Variant(name))
    assert find_variant(some, "b") is some[2]
    assert find_variant([Variant("B"), Variant("b", "fp16"), Variant("bc")], "b").precision == "fp16"
    with pytest.raises(DiagnosticError, match="'a', 'a 2', 'b'"):
        find_variant(some, "c")


@pytest.mark.parametrize(
    ("variant", "size"),
    [
        (Variant("v"), 4 * (36 + 4 + 8 + 2)),
        (Variant("v", "bf16"), 2 * (36 + 4 + 8 + 2)),
        (Variant("v", "int8"), 36 + 8 + 4 * (4 + 2)),  # biases have 32 bits
        (Variant("v", "int8", {"a": "float16"}), 2 * 40 + 8 + 4 * 2),
        (Variant("v", formats={"b": "int4"}), 4 * 40 + 4 + 4 * 2),
        (Variant("v", formats={"a": "int5"}), 23 + 4 * 4 + 4 * 10),  # 180 bits are 22.5 bytes
    ],
)
def test_the_bytes_of_the_weights(registry, variant, size):
    assert weight_bytes(variant, Inference(GRAPH, registry)) == size


# --- INT8 --------------------------------------------------------------------------------------------------------


def model_of(*nodes, constants=(), shape=(1, 4, 6, 6)):
    """An ONNX model of `(operator, inputs, output)` with 4 channels, and convolutions of 3x3."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    made, weights = [], []
    for operator, inputs, output in nodes:
        names = inputs.split(",")
        if operator == "Conv":
            array = np.random.default_rng(len(weights)).normal(0, 0.2, (4, 4, 3, 3)).astype(np.float32)
            weights.append(onnx.numpy_helper.from_array(array, f"{output}.w"))
            names.append(f"{output}.w")
        made.append(
            helper.make_node(operator, names, [output], output, **({"pads": [1] * 4} if operator == "Conv" else {}))
        )
    weights += [onnx.numpy_helper.from_array(np.ones((1, 4, 1, 1), np.float32), name) for name in constants]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("in", nodes[-1][2])]
    graph = helper.make_graph(made, "net", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


FEEDS = [{"in": np.random.default_rng(number).random((1, 4, 6, 6), np.float32)} for number in range(3)]


def test_both_ends_and_residual_additions_stay_in_float():
    model = model_of(
        ("Sigmoid", "in", "before"),
        ("Conv", "before", "first"),
        ("Conv", "before", "second"),
        ("Add", "first,one", "shifted"),
        ("Conv", "shifted", "middle"),
        ("Relu", "middle", "bent"),
        ("Add", "bent,second", "sum"),
        ("Conv", "sum", "late"),
        ("Conv", "late", "last"),
        ("Tanh", "last", "out"),
        constants=["one"],
    )
    quantizer = Quantizer(model, FEEDS)
    assert quantizer.kept_by_default() == {
        "first": "first layer", "second": "first layer", "last": "last layer", "sum": "residual addition"
    }  # fmt: skip
    operators = {node.name: node.op_type for node in quantizer.quantized(["middle"]).graph.node}
    read = {name for node in quantizer.quantized(["middle"]).graph.node if node.name == "middle" for name in node.input}
    assert all("DequantizeLinear" in name for name in read)
    assert operators["late"] == "Conv"
    read = {name for node in quantizer.quantized(["middle"]).graph.node if node.name == "late" for name in node.input}
    assert not any("DequantizeLinear" in name for name in read)
    variant = Variant("v", "int8", {"middle": "float32", "late": "float16"})
    assert not {"middle", "late"} & set(chosen_layers(quantizer, variant))
    assert {"first", "last"} <= set(chosen_layers(quantizer, variant))


def test_the_addition_of_a_constant_is_not_residual():
    model = model_of(
        ("Conv", "in", "first"),
        ("Sigmoid", "first", "bent"),
        ("Add", "bent,one", "shifted"),
        ("Conv", "shifted", "last"),
        ("Tanh", "last", "out"),
        constants=["one"],
    )
    quantizer = Quantizer(model, FEEDS)
    assert quantizer.layers == ("first", "shifted", "last")
    assert quantizer.kept_by_default() == {"first": "first layer", "last": "last layer"}


def test_the_error_of_a_layer_is_what_it_adds_and_what_it_saves():
    assert Sensitivity("a", 20.0, 30.0).error == pytest.approx(0.01 - 0.001)
    assert Sensitivity("a", inf, 40.0).error == pytest.approx(-0.0001)


class Choices:
    """A quantizer of the layers a to d, of which `a` stays in float; a model is the set of its INT8 layers."""

    layers = ("a", "b", "c", "d")

    def kept_by_default(self):
        return {"a": "first layer"}

    def quantized(self, layers):
        return frozenset(layers)


@dataclass
class Measured:
    """Each INT8 layer adds its part to the squared error."""

    errors: dict[str, float]
    asked: list[tuple[str, int | None]] = field(default_factory=list)

    def psnr(self, model, count=None):
        self.asked.append(("".join(sorted(model)), count))
        return -10 * log10(sum(self.errors[name] for name in model)) if model else inf


@pytest.mark.parametrize(
    ("budget", "quantized", "kept", "met"),
    [
        (None, "bcd", "", True),
        (9.0, "bcd", "", True),
        (15.0, "bd", "c", True),  # c adds most
        (25.0, "d", "cb", True),
        (35.0, "d", "cb", False),
    ],
)
def test_the_most_sensitive_layers_stay_in_float_until_the_budget_is_met(budget, quantized, kept, met):
    fidelity = Measured({"b": 1e-2, "c": 1e-1, "d": 1e-3})
    reports = []
    found = quantize(Choices(), fidelity, budget, lambda *each: reports.append(each[:2]))
    assert (set(found.model), found.quantized, found.met) == (set(quantized), tuple(quantized), met)
    assert found.kept == {"a": "first layer", **dict.fromkeys(kept, "sensitive")}
    assert found.psnr_db == pytest.approx(-10 * log10(sum(fidelity.errors[name] for name in quantized)))
    assert [(item.layer, round(item.alone_db, 6)) for item in found.sensitivity] == [("b", 20), ("c", 10), ("d", 30)]
    alone, without = [text for text, _ in fidelity.asked[:6:2]], [text for text, _ in fidelity.asked[1:6:2]]
    assert (alone, without) == (["b", "c", "d"], ["cd", "bd", "bc"])
    assert all(count is not None for _, count in fidelity.asked[:6])
    assert all(count is None for _, count in fidelity.asked[6:])
    assert reports[:3] == [(0, 3), (1, 3), (2, 3)]
    assert reports[3:] == [(number, 3) for number in range(len(kept) + 1)]


def test_the_best_choice_counts_if_the_budget_is_missed():
    class Odd(Measured):
        """INT8 everywhere is better than parts of it."""

        def psnr(self, model, count=None):
            return 30.0 if len(model) == 3 else 20.0

    found = quantize(Choices(), Odd({}), 40.0)
    assert (found.psnr_db, set(found.model), found.met) == (30.0, {"b", "c", "d"}, False)


def test_the_fidelity_is_that_of_the_mean_squared_error_of_the_first_outputs():
    pytest.importorskip("onnxruntime")
    plain = model_of(("Identity", "in", "out"))
    fidelity = Fidelity(plain, [{"in": np.full((1, 4, 6, 6), value, np.float32)} for value in (0.2, 0.4, 0.5)])
    assert fidelity.psnr(plain) == inf
    squared = model_of(("Mul", "in,in", "out"))
    errors = [(0.2 - 0.04) ** 2, (0.4 - 0.16) ** 2, (0.5 - 0.25) ** 2]
    assert fidelity.psnr(squared) == pytest.approx(-10 * log10(sum(errors) / 3), abs=1e-3)
    assert fidelity.psnr(squared, 2) == pytest.approx(-10 * log10(sum(errors[:2]) / 2), abs=1e-3)


@pytest.mark.parametrize(
    ("variant", "code", "named", "known"),
    [
        (Variant("v", "fp13"), "unknown-precision", "'fp13'", VARIANT_PRECISIONS),
        (Variant("v", formats={"a": "fp9"}), "unknown-precision", "'fp9'", tuple(FORMATS)),
        (Variant("v", sparsity="most"), "unknown-sparsity", "'most'", SPARSITIES),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(variant, code, named, known) -> None:
    with pytest.raises(DiagnosticError) as refused:
        run_options(variant, BASE, GRAPH)
    (found,) = refused.value.diagnostics
    assert found.code == code
    assert named in found.message
    assert found.remedy == f"choose one of {', '.join(known)}"


class Devices:
    """Engines with the devices of another machine: torch has a GPU that computes FP16, the others a processor only."""

    def __init__(self, real):
        self.real, self.engines = real, real.engines

    def __iter__(self):
        return iter(self.real)

    def get(self, name):
        known = {
            ("torch", "cuda:0"): ("fp32", "fp16"),
            ("torch", "cpu"): ("fp32",),
            ("onnxruntime", "cpu"): ("fp32", "bf16"),
        }
        devices = {
            device: SimpleNamespace(precisions=found) for (engine, device), found in known.items() if engine == name
        }
        return SimpleNamespace(device=devices.get)


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:1"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_a_precision_is_emulated_where_the_device_is_missing_or_computes_in_another(
    monkeypatch, engine, device, precision
):
    monkeypatch.setattr(variants, "default_engines", lambda: Devices(default_engines()))
    found = run_options(Variant("v", precision), replace(BASE, engine=engine, device=device), GRAPH)
    computed = [("torch", "cuda:0", "fp16"), ("onnxruntime", "cpu", "bf16")]
    if precision == "fp32" or (engine, device, precision) in computed:
        assert (found.engine, found.device, found.layout) == (engine, device, "nhwc")
    else:
        assert (found.engine, found.device, found.layout) == ("emulated", "cpu", "nchw")
    assert found.precision == precision
