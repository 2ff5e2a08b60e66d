"""Parts of the ONNX export on their own: open sizes, differences of models, formats of nodes, and folders of files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import load
from designer.runtime.number_formats import BFLOAT16, FLOAT16, FLOAT32, FORMATS
from exporters.generated_folder import MARKER, GeneratedFolder, Marker, read_marker, stage_of, swap
from exporters.int8 import Int8Report
from exporters.mixed import PrecisionReport, formatted
from exporters.onnx import check_model, export_onnx
from exporters.onnx_formats import with_formats
from exporters.onnx_origin import _rename, _unique
from exporters.onnx_sizes import OpenSizes, _difference, _tiling
from exporters.variants import variant_conversion

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper

REGISTRY = load(entry_points=False)


# --- open sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (OpenSizes(1), "Accepts any height and width"),
        (OpenSizes(2), "Accepts any height and width that are multiples of 2"),
        (OpenSizes(0, "conv", "it is fixed"), "Height and width are fixed because of 'conv': it is fixed"),
        (OpenSizes(0, reason="no input"), "Height and width are fixed: no input"),
    ],
)
def test_open_sizes_as_text(sizes, text):
    assert str(sizes) == text


@pytest.mark.parametrize(("text", "multiple"), [("8", 8), ("1", 1), ("0", 1), ("", 1), ("x", 1), ("-4", 1)])
def test_the_multiple_of_an_input(text, multiple):
    assert _tiling(layer("image", "input", tiling=text)) == multiple
    assert _tiling(layer("image", "input")) == 1


def chain(*layers, **params):
    made = [layer("image", "input", **params)]
    for name, kind, more in layers:
        made.append(layer(name, kind, made[-1].name, **more))
    return [*made, layer("result", "output", made[-1].name)]


def exported(layers, folder):
    return export_onnx(Graph(layers, name="net"), REGISTRY, Weights(), folder / "m.onnx")


def test_sizes_that_differ_from_the_first_inputs_have_names_of_their_own(tmp_path):
    layers = [
        layer("first", "input", dims="12x8x3"),
        layer("second", "input", dims="24x8x3"),
        layer("narrow", "pooling", "second", operation="max", size="2x1", stride="2x1"),
        layer("sum", "element_wise", "first,narrow", operation="add"),
        layer("big", "upsample", "sum", factor="1x2"),
        layer("mean", "global_pooling", "sum"),
        layer("a", "output", "big"),
        layer("b", "output", "sum"),
        layer("c", "output", "mean"),
    ]
    report = exported(layers, tmp_path)
    assert report.sizes == OpenSizes(1)
    assert report.inputs == {"first": "N x 3 x height x width", "second": "N x 3 x height x second_width"}
    assert report.outputs == {"a": "N x 3 x a_height x width", "b": "N x 3 x height x width", "c": "N x 3 x 1 x 1"}


def test_an_image_of_another_proportion_is_named(tmp_path):
    layers = [
        layer("first", "input", dims="257x257x1"),
        layer("second", "input", dims="7x5x1"),
        layer("mean", "global_pooling", "second"),
        layer("sum", "element_wise", "first,mean", operation="add"),
        layer("result", "output", "sum"),
    ]
    report = exported(layers, tmp_path)
    assert (report.sizes.multiple, report.sizes.layer) == (0, "second")
    assert "not a simple fraction of that of 'first'" in report.sizes.reason


def test_an_image_of_one_pixel_stays_one_pixel(tmp_path):
    layers = [
        layer("first", "input", dims="12x8x3"),
        layer("offset", "input", dims="1x1x3"),
        layer("sum", "element_wise", "first,offset", operation="add"),
        layer("result", "output", "sum"),
    ]
    assert exported(layers, tmp_path).inputs == {"first": "N x 3 x height x width", "offset": "N x 3 x 1 x 1"}


def test_the_report_lists_what_is_left_out_and_the_shapes_of_fixed_files(tmp_path):
    layers = [
        *chain(("flat", "reshape", {"shape": "3,96"}), dims="12x8x3"),
        layer("spare", "activation", "image"),
        layer("unused", "input", dims="4x4x1"),
    ]
    report = exported(layers, tmp_path)
    assert (report.inputs, report.outputs) == ({"image": "N x 3 x 8 x 12"}, {"result": "N x 3 x 96"})
    assert sorted(report.left_out) == ["spare", "unused"]
    model = onnx.load(report.path)
    assert report.opset == model.opset_import[0].version
    assert model.doc_string == "net, written by Layerwright"


def one_node(*names, kind="Relu", constants=(), value=1.0):
    nodes = [helper.make_node(kind, ["x"], [name], name=f"{name}/{kind}") for name in names]
    tensors = [numpy_helper.from_array(np.full(2, value, np.float32), f"{name}/kernel") for name in constants]
    return helper.make_model(helper.make_graph(nodes, "g", [], [], tensors))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (one_node("a", "b"), one_node("a", "b"), ""),
        (one_node("a", "b"), one_node("a", "c"), "b"),
        (one_node("a"), one_node("a", "b"), "b"),
        (one_node("a", "b"), one_node("a"), "b"),
        (one_node("a", constants="a"), one_node("a", constants="a", value=2.0), "a"),
        (one_node("a", constants="ab"), one_node("a", constants="a"), "b"),
        (one_node("a", constants="a"), one_node("a", constants="ab"), "b"),
        (one_node("a", constants="ab"), one_node("a", constants="ba"), ""),
    ],
)
def test_the_first_layer_that_differs_between_models(one, other, expected):
    assert _difference(one, other) == expected


def test_a_model_that_onnx_rejects_is_named():
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], []))
    with pytest.raises(DiagnosticError) as failed:
        check_model(model, "net")
    assert failed.value.diagnostics[0].message.startswith("'net' does not pass the ONNX checker: ")


# --- formats -------------------------------------------------------------------------------------------------------


def typed_chain():
    """x -> a (Mul) -> b (Neg) -> y (Abs), and a shape that is computed from `a`."""
    nodes = [
        helper.make_node("Mul", ["x", "a/factor"], ["a"], name="a/Mul"),
        helper.make_node("Neg", ["a"], ["b"], name="b/Neg"),
        helper.make_node("Shape", ["a"], ["s/shape"], name="s/Shape"),
        helper.make_node("Reshape", ["b", "s/shape"], ["r"], name="r/Reshape"),
        helper.make_node("Abs", ["r"], ["y"], name="y/Abs"),
    ]
    entries = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("x", "y", "a")]
    factor = numpy_helper.from_array(np.array([3, 1e6, 0.1], np.float32), "a/factor")
    graph = helper.make_graph(nodes, "g", entries[:1], entries[1:], [factor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def converted(formats, otherwise=FLOAT32, computing=(FLOAT16,)):
    found = with_formats(typed_chain(), lambda name: formats.get(name, otherwise), computing)
    onnx.checker.check_model(found.model, full_check=True)
    return found


def types(model):
    made = onnx.shape_inference.infer_shapes(model).graph
    return {entry.name: entry.type.tensor_type.elem_type for entry in (*made.input, *made.value_info, *made.output)}


def test_a_chain_in_one_format_has_casts_at_its_ends_only():
    found = converted({}, FLOAT16)
    casts = [(node.input[0], node.output[0]) for node in found.model.graph.node if node.op_type == "Cast"]
    assert casts == [("x", "x/float16"), ("y/float16", "y"), ("a/float16", "a")]
    assert found.casts == 3
    assert found.in_float32 == ()
    kinds = types(found.model)
    assert (kinds["x"], kinds["y"], kinds["a"], kinds["b"]) == (1, 1, 1, TensorProto.FLOAT16)
    assert [tensor.name for tensor in found.model.graph.initializer] == ["a/factor/float16"]


def test_bfloat16_is_stored_and_computed_in_float32_unless_the_runtime_computes_in_it():
    found = converted({"b": BFLOAT16})
    assert found.in_float32 == ("b",)
    assert found.casts == 4  # its input and its result are rounded, and both are read as float32
    kinds = types(found.model)
    assert (kinds["b"], kinds["b/float32"]) == (TensorProto.BFLOAT16, TensorProto.FLOAT)
    native = converted({"b": BFLOAT16}, computing=(FLOAT16, BFLOAT16))
    assert (native.in_float32, native.casts) == ((), 2)


def test_integer_formats_of_layers_are_left_to_float32():
    integer = next(one for one in FORMATS.values() if one.is_integer)
    found = converted({"a": integer, "b": integer})
    assert (found.casts, found.in_float32) == (0, ())


def test_the_model_that_is_given_is_not_changed():
    model = typed_chain()
    before = model.SerializeToString()
    with_formats(model, lambda name: FLOAT16)
    assert model.SerializeToString() == before


def test_native_bfloat16_needs_an_opset_that_has_it():
    plain = formatted(typed_chain(), "bf16", {}, native=False)
    native = formatted(typed_chain(), "bf16", {}, native=True)
    single = formatted(typed_chain(), "fp32", {"b": "bfloat16"}, native=True)
    half = formatted(typed_chain(), "fp16", {}, native=True)
    versions = [one.model.opset_import[0].version for one in (plain, native, single, half)]
    assert versions == [20, 22, 22, 20]
    assert set(plain.in_float32) >= {"a", "b", "y"}
    assert native.in_float32 == ()


def test_variants_say_what_is_done_to_their_model():
    graph = Graph(chain(dims="8x8x1"), name="net")
    assert variant_conversion(None, graph, REGISTRY) is None
    assert variant_conversion(Variant("v", "fp32"), graph, REGISTRY) is None
    single = variant_conversion(Variant("v", "fp32", {"b": "float16"}), graph, REGISTRY)
    assert types(single(typed_chain()))["b"] == TensorProto.FLOAT16
    half = variant_conversion(Variant("v", "fp16", {"b": "float32"}), graph, REGISTRY)
    made = types(half(typed_chain()))
    assert (made["b"], made["r"]) == (TensorProto.FLOAT, TensorProto.FLOAT16)
    brain = [
        variant_conversion(Variant("v", "bf16"), graph, REGISTRY, tensorrt=flag)(typed_chain())
        for flag in (False, True)
    ]
    assert [model.opset_import[0].version for model in brain] == [20, 22]
    integer = next(name for name, one in FORMATS.items() if one.is_integer)
    for wrong in (Variant("v", "fp16", {"b": integer}), Variant("v", "fp8")):
        with pytest.raises(DiagnosticError, match="the variant 'v' has layers in integer formats"):
            variant_conversion(wrong, graph, REGISTRY)


@pytest.mark.parametrize(("tensorrt", "form"), [(False, "openvino"), (True, "tensorrt")])
def test_calibrated_variants_get_the_form_of_the_runtime(tensorrt, form, monkeypatch):
    seen = []
    monkeypatch.setattr("exporters.variants.int8_model", lambda model, graph, registry, variant: seen.append(variant))
    graph = Graph(chain(dims="8x8x1"), name="net")
    for recipe in (CalibrationRecipe("folder", form="openvino"), None):
        variant_conversion(Variant("v", "int8", calibration=recipe), graph, REGISTRY, tensorrt=tensorrt)(None)
    assert seen[0].calibration.form == form
    assert seen[1].calibration is None


def test_reports_as_json():
    result = SimpleNamespace(
        target="mixed", psnr_db=51.23456, budget_db=50.0, met=True, kept={"a": "sensitive"}, overflow={"b": 7e4},
        underflow={"c": 0.25}, nonfinite={"d": 3}, bf16_db=None, layers=9,
    )  # fmt: skip
    validation = SimpleNamespace(images=("x.png",), skipped={"y.txt": "no image"})
    made = PrecisionReport(result, validation, SimpleNamespace(bytes=77), 4, ("e",)).as_dict()
    assert json.loads(json.dumps(made)) == {
        "precision": "mixed", "psnr_db": 51.235, "budget_db": 50.0, "budget_met": True,
        "kept": [{"layer": "a", "reason": "sensitive"}], "overflow": [{"layer": "b", "magnitude": 7e4}],
        "underflow": [{"layer": "c", "share": 0.25}], "nonfinite": [{"layer": "d", "values": 3}], "bf16_psnr_db": None,
        "in_float32": ["e"], "layers": 9, "images": ["x.png"], "skipped": [{"file": "y.txt", "reason": "no image"}], "bytes": 77,
    }  # fmt: skip
    result.psnr_db = result.bf16_db = float("inf")
    made = PrecisionReport(result, validation, SimpleNamespace(bytes=77), 4, ()).as_dict()
    assert (made["psnr_db"], made["bf16_psnr_db"]) == (None, None)


@pytest.mark.parametrize(("method", "percentile"), [("percentile", 99.5), ("minmax", None)])
def test_the_report_and_the_variant_of_int8(method, percentile):
    recipe = CalibrationRecipe("folder", 8, "", method, 99.5, "tensorrt")
    sensitivity = [SimpleNamespace(layer="b", alone_db=30.12345, without_db=float("inf"))]
    result = SimpleNamespace(
        psnr_db=33.33333, met=False, quantized=("a", "b"), kept={"c": "it is last"}, sensitivity=sensitivity
    )
    images = SimpleNamespace(names=("x.png",), skipped={"y": "no"}, feeds=[{"image": np.zeros((1, 3, 20, 30))}])
    report = Int8Report(recipe, 40.0, "float16", images, result, 10, 40)
    assert json.loads(json.dumps(report.as_dict())) == {
        "precision": "int8", "form": "tensorrt", "psnr_db": 33.333, "budget_db": 40.0, "budget_met": False,
        "quantized": ["a", "b"], "kept": [{"layer": "c", "format": "float16", "reason": "it is last"}],
        "sensitivity": [{"layer": "b", "alone_db": 30.123, "without_db": None}],
        "calibration": {
            "method": method, "percentile": percentile, "size": [20, 30], "images": ["x.png"],
            "skipped": [{"file": "y", "reason": "no"}],
        },
        "bytes": 10, "bytes_fp32": 40,
    }  # fmt: skip
    variant = report.variant("mine")
    assert (variant.name, variant.precision, variant.formats) == ("mine", "int8", {"c": "float16"})
    assert (variant.reasons, variant.calibration) == ({"c": "it is last"}, recipe)


# --- names of imported files ----------------------------------------------------------------------------------------


def test_only_names_that_are_free_are_restored():
    nodes = [
        helper.make_node("Relu", ["x"], ["m"]),
        helper.make_node("Neg", ["m", "w"], ["n"]),
        helper.make_node("Abs", ["n"], ["y"]),
    ]
    entries = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(
        nodes, "g", entries[:1], entries[1:], [numpy_helper.from_array(np.ones(1, np.float32), "w")]
    )
    graph.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [1]))
    _rename(graph, {"m": "old", "n": "y", "w": "weight", "x": "in", "y": "out", "gone": "there"})
    assert [list(node.input) + list(node.output) for node in graph.node] == [
        ["x", "old"],
        ["old", "weight", "n"],
        ["n", "y"],
    ]
    assert (graph.initializer[0].name, graph.value_info[0].name) == ("weight", "old")
    assert (graph.input[0].name, graph.output[0].name) == ("x", "y")
    _rename(graph, {"n": ""})
    assert graph.node[1].output[0] == "n"


@pytest.mark.parametrize("taken", ["x", "m", "n", "y", "w"])
def test_a_name_that_any_value_has_is_not_given_again(taken):
    nodes = [
        helper.make_node("Add", ["x", "w"], ["m"]),
        helper.make_node("Abs", ["m"], ["n"]),
        helper.make_node("Neg", ["n"], ["y"]),
    ]
    entries = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    weight = numpy_helper.from_array(np.ones(1, np.float32), "w")
    for old in ("m", "n", "w"):
        graph = helper.make_graph(nodes, "g", entries[:1], entries[1:], [weight])
        before = graph.SerializeToString()
        _rename(graph, {old: taken})
        assert graph.SerializeToString() == before


def test_items_of_which_there_is_one():
    words = ["a", "bb", "cc", "ddd", ""]
    assert _unique(words, lambda word: str(len(word)) if word else "") == {"1": "a", "3": "ddd"}


# --- folders -------------------------------------------------------------------------------------------------------


def generate(target: Path, **files: str) -> None:
    with GeneratedFolder(target) as stage:
        for name, text in files.items():
            stage.write(name.replace("__", "/"), text)
        stage.mark({"more": 1})
        stage.install()


def tree(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file() and p.name != MARKER}


def test_files_that_are_not_made_any_more_are_removed(tmp_path):
    target = tmp_path / "out"
    generate(target, a="1", b__c="2", b__d="3")
    assert tree(target) == {"a": "1", "b/c": "2", "b/d": "3"}
    (target / "mine").write_text("mine")
    generate(target, a="4", b__c="2", e="5")
    assert tree(target) == {"a": "4", "b/c": "2", "e": "5", "mine": "mine"}
    marker = json.loads((target / MARKER).read_text())
    assert (marker["generator"], marker["format"], marker["more"], sorted(marker["files"])) == (
        "layerwright",
        1,
        1,
        ["a", "b/c", "e"],
    )
    (target / "e").unlink()
    generate(target, a="6")
    assert tree(target) == {"a": "6", "mine": "mine"}
    (target / "a").write_text("edited")
    with pytest.raises(DiagnosticError, match="was changed after it was generated"):
        generate(target, b="7")
    assert tree(target) == {"a": "edited", "mine": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_another_program_is_kept(tmp_path):
    target = tmp_path / "out"
    generate(target, a="1")
    marker = json.loads((target / MARKER).read_text())
    (target / MARKER).write_text(json.dumps(marker | {"generator": "another"}))
    assert read_marker(target / MARKER, Marker) is None
    with pytest.raises(DiagnosticError, match="has other files"):
        generate(target, a="2")
    empty = tmp_path / "empty"
    empty.mkdir()
    generate(empty, a="3")
    assert tree(empty) == {"a": "3"}


def test_without_install_nothing_is_changed_and_nothing_remains(tmp_path):
    target = tmp_path / "out"
    generate(target, a="1")
    stale = stage_of(target)
    assert stale == tmp_path / ".out.part"
    stale.mkdir()
    (stale / "old").write_text("from a process that was killed")
    with GeneratedFolder(target) as stage:
        stage.write("a", "2")
        stage.copy("a", "b/copy")
        assert sorted(path.name for path in stage.path.rglob("*") if path.is_file()) == ["a", "copy"]
    assert tree(target) == {"a": "1"}
    assert not stale.exists()


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=["disk", "keys"])
@pytest.mark.parametrize("moment", range(9))
def test_an_interrupted_export_leaves_the_earlier_one_and_the_marker_is_the_last_file(
    tmp_path, monkeypatch, error, moment
):
    """Whoever finds the new marker finds all files that it lists."""
    target = tmp_path / "out"
    generate(target, a="1", gone="2", z="3")
    before, marker = tree(target), (target / MARKER).read_bytes()
    rename, moves = os.rename, []

    def watched(source, destination):
        if len(moves) == moment:
            raise error
        moves.append(Path(destination))
        rename(source, destination)
        if (target / MARKER).exists() and (target / MARKER).read_bytes() != marker:
            assert tree(target) == {"a": "4", "new": "5", "sub/z": "6", "z": "7"}

    monkeypatch.setattr("exporters.generated_folder.os.rename", watched)
    files = {"a": "4", "new": "5", "sub__z": "6", "z": "7"}
    refused = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else DiagnosticError
    with pytest.raises(refused):
        generate(target, **files)
    monkeypatch.undo()
    assert (tree(target), (target / MARKER).read_bytes()) == (before, marker)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    generate(target, **files)
    assert tree(target) == {"a": "4", "new": "5", "sub/z": "6", "z": "7"}


def test_an_interrupted_swap_restores_old_files_and_removes_new_ones(tmp_path, monkeypatch):
    target, new, old = (tmp_path / name for name in ("target", "new", "old"))
    for folder, files in ((target, {"a": "1", "gone": "2", "z": "3"}), (new, {"a": "4", "b": "5", "z": "6"})):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    rename = os.rename

    def fails(source, destination):
        if Path(source) == new / "z":
            raise OSError(28, "full")
        rename(source, destination)

    monkeypatch.setattr("exporters.generated_folder.os.rename", fails)
    with pytest.raises(OSError, match="full"):
        swap(target, new, old, ["a", "b", "gone", "z"])
    assert tree(target) == {"a": "1", "gone": "2", "z": "3"}
    monkeypatch.undo()
    for name, text in {"a": "4", "b": "5", "z": "6"}.items():
        (new / name).write_text(text)
    swap(target, new, tmp_path / "older", ["a", "b", "gone", "z"])
    assert tree(target) == {"a": "4", "b": "5", "z": "6"}


def test_a_model_whose_shapes_contradict_each_other_is_explained() -> None:
    """The checker of the onnx package raises one error for what is declared wrong, and another for what does not fit."""
    entry, left = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    wrong = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 7])
    for nodes, end in (
        ([helper.make_node("Relu", ["x"], ["y"])], wrong),
        ([helper.make_node("Relu", ["x"], ["y"], unknown=1)], left),
        ([helper.make_node("MatMul", ["x", "x"], ["y"])], left),
    ):
        made = helper.make_model(
            helper.make_graph(nodes, "g", [entry], [end]), opset_imports=[helper.make_opsetid("", 20)]
        )
        with pytest.raises(DiagnosticError) as caught:
            check_model(made, "net")
        (finding,) = caught.value.diagnostics
        assert finding.code == "onnx-invalid"
        assert finding.message.startswith("'net' does not pass the ONNX checker: ")
        assert "\n" not in finding.message
        assert finding.remedy
