"""Parts of a deployment folder on their own: the data of the check, the interface, and the generated texts."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace as replaced
from PIL import Image
from runtime_networks import layer

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import load
from designer.runtime.images import read_image, read_npy, write_image, write_npy
from exporters.deploy import deployment
from exporters.deploy.deployment import Check, Difference, Measured
from exporters.deploy.sources import (
    c_string,
    input_list,
    network_header,
    readme,
    triton_config,
    triton_name,
    triton_text,
)
from exporters.interface import (
    Interface,
    ModelInput,
    ModelOutput,
    interface_of,
    precision_of,
    replace_model,
    shape_text,
)
from exporters.onnx import OnnxReport, export_onnx
from exporters.onnx_sizes import OpenSizes
from exporters.tensorrt import EngineOptions, _shapes, description_of, read_engine_file

onnx = pytest.importorskip("onnx")
REGISTRY = load(entry_points=False)

PHOTO = ModelInput(
    "photo", "photo", "float32", (None, 3, None, None), (1, 3, 24, 36), True, 3, None, None, 2.0, -0.5, 4
)
GUIDE = ModelInput('a "guide"', "guide", "float32", (None, 1, 12, 18), (1, 1, 12, 18), True, 1, 12, 18)
VECTOR = ModelInput("été", "vector", "float32", (None, 5), (1, 5), image=False)
SCORES = ModelOutput("scores", "scores", "float32", (None, 10))
MAP = ModelOutput("map", "map", "float32", (None, 4, None, 7))
INTERFACE = Interface((PHOTO, GUIDE, VECTOR), (SCORES, MAP))


# --- texts ---------------------------------------------------------------------------------------------------------


def test_the_header_has_the_constants_of_every_input():
    lines = network_header(INTERFACE).splitlines()
    start = lines.index("inline const std::vector<Input> inputs = {")
    assert lines[start + 1 : start + 8] == [
        '    {"photo", true, 3, 0, 0, 2.0f, -0.5f, 4},',
        '    {"a \\"guide\\"", true, 1, 12, 18, 1.0f, 0.0f, 1},',
        '    {"\\303\\251t\\303\\251", false, 0, 0, 0, 1.0f, 0.0f, 1},',
        "};",
        "inline const std::vector<const char*> outputs = {",
        '    "scores",',
        '    "map",',
    ]


def test_triton_gets_a_queue_for_open_batches_only():
    text = triton_config("net", INTERFACE)
    assert text.splitlines() == [
        'name: "net"',
        'platform: "onnxruntime_onnx"',
        "max_batch_size: 8",
        "input [",
        '  { name: "photo" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] },',
        '  { name: "a \\"guide\\"" data_type: TYPE_FP32 dims: [ 1, 12, 18 ] },',
        '  { name: "\\303\\251t\\303\\251" data_type: TYPE_FP32 dims: [ 5 ] }',
        "]",
        "output [",
        '  { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] },',
        '  { name: "map" data_type: TYPE_FP32 dims: [ 4, -1, 7 ] }',
        "]",
        "dynamic_batching {",
        "  max_queue_delay_microseconds: 2000",
        "}",
    ]
    assert "batches of up to 8 images" in triton_text(INTERFACE)


@pytest.mark.parametrize("fixed", ["input", "output", "scalar"])
def test_one_fixed_batch_of_any_input_or_output_rules_batches_out(fixed):
    inputs, outputs = (PHOTO, VECTOR), (SCORES, MAP)
    if fixed == "input":
        inputs = (PHOTO, msgspec_replace(VECTOR, shape=(1, 5)))
    else:
        outputs = (SCORES, msgspec_replace(MAP, shape=(1, 4) if fixed == "output" else ()))
    interface = Interface(inputs, outputs)
    assert not interface.batched
    text = triton_config("net", interface)
    assert "max_batch_size: 0" in text
    assert "dims: [ -1, 3, -1, -1 ]" in text
    assert "dynamic_batching" not in text
    assert "one request at a time" in triton_text(interface)


def msgspec_replace(entry, **fields):
    import msgspec

    return msgspec.structs.replace(entry, **fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("small unet", "small_unet"),
        ("a/b\\c..d", "a_b_c_d"),
        ("_x-1_", "x-1"),
        ("été", "t"),
        ("..", "network"),
        ("", "network"),
    ],
)
def test_names_of_triton_models(name, expected):
    assert triton_name(name) == expected


def test_literals_of_c_are_ascii():
    assert c_string('a"b\\c\n\t é') == '"a\\"b\\\\c\\n\\t \\303\\251"'


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((None, 3, None, None), "N x 3 x height x width"),
        ((2, None, 8, None), "2 x C x 8 x width"),
        ((None, 7, None), "N x 7 x ?"),
        ((None,), "N"),
        ((), "scalar"),
    ],
)
def test_shapes_of_the_readme(shape, text):
    assert shape_text(shape) == text


def test_the_readme_lists_inputs_before_outputs():
    assert input_list(INTERFACE).splitlines() == [
        "- input `photo`: N x 3 x height x width",
        '- input `a "guide"`: N x 1 x 12 x 18',
        "- input `été`: N x 5",
        "- output `scores`: N x 10",
        "- output `map`: N x 4 x height x 7",
    ]


def test_values_of_the_readme_are_not_searched_for_placeholders():
    assert readme("# NAME\nSIZE, NAME", {"NAME": "SIZE \\1", "SIZE": "3"}) == "# SIZE \\1\n3, SIZE \\1"


def test_measured_values_are_a_table_with_the_files_and_what_they_show(monkeypatch, tmp_path):
    monkeypatch.setattr(deployment, "cpu_name", lambda: "a processor")
    report = OnnxReport(tmp_path / "m.onnx", {}, {}, 17, 3_500_000, 20, (), OpenSizes(4))
    check = Check(["check/input_1.ppm", "check/input_2.npy"], ["a.png", "random values"], ["o.npy"], [0.00025, 0.01])
    measured = Measured(
        {"scores": Difference(0.00012345, 61.26, True), "m`p": Difference(0.0, float("inf"), True)}, 12.34, True
    )
    assert deployment._measured_text(report, check, measured).splitlines() == [
        "| output | largest difference to FP32 in PyTorch | accepted | PSNR |",
        "|---|---|---|---|",
        "| `scores` | 0.00012 | 0.00025 | 61.3 dB |",
        "| `m'p` | 0 | 0.01 | inf dB |",
        "",
        "`python python/check.py` repeats the check. Median time for check/input_1.ppm "
        "(a.png), check/input_2.npy (random values) with pre- and post-processing on a processor: 12.3 ms. "
        "The model has 17 nodes and takes 3.34 MiB.",
    ]
    text = deployment._readme(" ", "INT8 + FP32", report, INTERFACE, check, measured)
    assert text.startswith("# Network")
    assert "check/input_1.ppm check/input_2.npy" in text
    assert "result_1.npy result_2.npy" in text
    assert "result_3.npy" not in text
    assert "INT8 + FP32" in text
    assert "Accepts any height and width that are multiples of 4" in text


# --- the data of the check -----------------------------------------------------------------------------------------


def data(given=None, examples=None):
    return deployment._CheckFiles(given or {}, examples or {})


def test_a_check_without_files_has_a_test_pattern_that_fits_the_multiple():
    wide = msgspec_replace(PHOTO, drawn=(1, 3, 1000, 36), multiple=24)
    array, is_image, content = deployment._check_input(wide, data())
    assert (array.shape, array.dtype, is_image, content) == ((1, 3, 504, 36), np.float32, True, "a test pattern")
    np.testing.assert_array_equal(array * 255, np.round(array * 255))
    fixed = msgspec_replace(PHOTO, shape=(None, 3, 1000, None), drawn=(1, 3, 1000, 700), height=1000)
    assert deployment._check_input(fixed, data())[0].shape == (1, 3, 1000, 512)
    coarse = msgspec_replace(PHOTO, drawn=(1, 3, 1400, 700), multiple=700)
    assert deployment._check_input(coarse, data())[0].shape == (1, 3, 700, 700)


@pytest.mark.parametrize(
    ("channels", "batch", "suffix", "is_image"),
    [
        (1, None, ".pgm", True),
        (3, 1, ".ppm", True),
        (4, None, ".npy", False),
        (2, None, ".npy", False),
        (3, 2, ".npy", False),
    ],
)
def test_images_of_the_check_are_files_that_cpp_reads_or_arrays(channels, batch, suffix, is_image, tmp_path):
    entry = msgspec_replace(
        PHOTO, channels=channels, shape=(batch, channels, None, None), drawn=(batch or 1, channels, 12, 20)
    )
    array, found, _ = deployment._check_input(entry, data())
    assert deployment._suffix(entry) == suffix
    assert (array.shape, found) == ((batch or 1, channels, 12, 20), is_image)
    deployment._write_input(tmp_path / f"a{suffix}", array)
    if suffix == ".npy":
        np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), array)
    else:
        np.testing.assert_allclose(read_image(tmp_path / f"a{suffix}", channels), array, atol=1e-6)


def test_given_files_are_used_whole_and_arrays_unchanged(tmp_path):
    image = np.random.default_rng(1).integers(0, 256, (1, 3, 20, 30)).astype(np.float32) / 255
    write_image(tmp_path / "p.png", image)
    array, is_image, content = deployment._check_input(PHOTO, data({"photo": tmp_path / "p.png"}))
    assert (is_image, content) == (True, "p.png")
    np.testing.assert_allclose(array, image, atol=1e-6)
    values = np.full((1, 3, 8, 12), 7.5, np.float32)
    for name in ("v.npy", "V.NPY"):
        write_npy(tmp_path / name, values)
        array, is_image, content = deployment._check_input(PHOTO, data({"photo": tmp_path / name}))
        assert (is_image, content) == (False, name)
        np.testing.assert_array_equal(array, values)
    vector = np.arange(5, dtype=np.float32)[None]
    write_npy(tmp_path / "vector.npy", vector)
    array, is_image, _ = deployment._check_input(VECTOR, data({"vector": tmp_path / "vector.npy"}))
    assert not is_image
    np.testing.assert_array_equal(array, vector)
    random, is_image, content = deployment._check_input(VECTOR, data())
    assert (random.shape, random.dtype, is_image, content) == ((1, 5), np.float32, False, "random values")
    assert random.std() > 0


def test_examples_of_the_wrong_kind_or_too_small_are_not_used(tmp_path):
    write_image(tmp_path / "small.png", np.zeros((1, 3, 11, 40), np.float32))
    write_image(tmp_path / "narrow.png", np.zeros((1, 3, 40, 17), np.float32))
    (tmp_path / "clip.mkv").write_bytes(b"")
    write_npy(tmp_path / "values.npy", np.zeros((1, 1, 20, 20), np.float32))
    for name in ("small.png", "narrow.png", "clip.mkv", "absent.png"):
        assert deployment._example(GUIDE, tmp_path / name) is None, name
    assert deployment._example(GUIDE, None) is None
    write_image(tmp_path / "exact.png", np.full((1, 1, 12, 18), 0.5, np.float32))
    image, content = deployment._example(GUIDE, tmp_path / "exact.png")
    assert (image.shape, content) == ((1, 1, 12, 18), "the middle of exact.png")


def test_names_of_files_that_belong_to_no_input_are_refused(tmp_path):
    with pytest.raises(DiagnosticError) as failed:
        deployment._write_check(None, Graph([], name="x"), REGISTRY, Weights(), INTERFACE, data({"guidance": tmp_path}))
    (found,) = failed.value.diagnostics
    assert (found.code, found.layer, found.remedy) == ("no-such-layer", "guidance", "choose photo, guide, vector")


@pytest.mark.parametrize("inputs", [True, False])
def test_elements_of_inputs_and_of_outputs_must_be_float32(inputs):
    wrong = msgspec_replace(VECTOR if inputs else MAP, dtype="int64")
    interface = Interface((PHOTO, wrong), (SCORES,)) if inputs else Interface((PHOTO,), (SCORES, wrong))
    with pytest.raises(DiagnosticError) as failed:
        deployment._check_elements(interface)
    assert failed.value.diagnostics[0].layer == wrong.layer
    deployment._check_elements(INTERFACE)


# --- the interface of a model --------------------------------------------------------------------------------------


def several_inputs(large: str) -> Graph:
    """Two images, one twice as large as the other, which comes first if its name does; and a vector."""
    return Graph(
        [
            layer(large, "input", dims="48x72x3", scale="2.0", shift="-1.0", tiling="6"),
            layer("half", "input", dims="24x36x1"),
            layer("vector", "tensor_input", shape="5"),
            layer("pooled", "pooling", large, operation="max", size="2x2"),
            layer("joined", "concatenation", "pooled,half", axis="1"),
            layer("blocks", "space_to_depth", "joined", block_size="4"),
            layer("twice", "scale_shift", "vector", scale="2.0"),
            layer("result", "output", "blocks"),
            layer("other", "output", "twice"),
            layer("unused", "input", dims="8x8x1"),
        ],
        name="several",
    )


@pytest.mark.parametrize(("name", "multiple"), [("whole", 12), ("all", 24)])
def test_the_interface_has_the_inputs_that_are_needed_with_their_preprocessing(name, multiple, tmp_path):
    graph = several_inputs(name)
    report = export_onnx(graph, REGISTRY, Weights(), tmp_path / "m.onnx")
    assert report.sizes == OpenSizes(multiple)
    found = interface_of(report, graph, REGISTRY)
    inputs = {entry.layer: entry for entry in found.inputs}
    assert list(inputs) == sorted(inputs)
    large, half, vector = inputs[name], inputs["half"], inputs["vector"]
    assert (large.shape, large.drawn) == ((None, 3, None, None), (1, 3, 72, 48))
    assert (large.scale, large.shift, large.multiple, large.channels) == (2.0, -1.0, 24, 3)
    assert (half.scale, half.shift, half.multiple, half.channels) == (1.0, 0.0, 12, 1)
    assert (vector.image, vector.shape, vector.drawn) == (False, (None, 5), (1, 5))
    assert [(entry.layer, entry.shape) for entry in found.outputs] == [
        ("other", (None, 5)),
        ("result", (None, 64, None, None)),
    ]


def test_the_interface_of_a_network_of_one_size_has_the_multiples_of_its_inputs(tmp_path):
    graph = Graph(
        [
            layer("image", "input", dims="20x36x1", tiling="8"),
            layer("flat", "flatten", "image"),
            layer("scores", "fully_connected", "flat", features="2"),
            layer("result", "output", "scores"),
        ],
        name="fixed",
    )
    weights = fill_missing(Weights(), required_weights(Inference(graph, REGISTRY)), 0)
    report = export_onnx(graph, REGISTRY, weights, tmp_path / "m.onnx")
    assert report.sizes.multiple == 0
    (entry,) = interface_of(report, graph, REGISTRY).inputs
    assert (entry.shape, entry.drawn) == ((None, 1, 40, 24), (1, 1, 40, 24))
    assert (entry.height, entry.width, entry.multiple) == (40, 24, 8)


def stored(folder, name, **kinds):
    """A model with an initializer of each kind."""
    from onnx import helper, numpy_helper

    entry = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("x", "y")]
    tensors = [
        numpy_helper.from_array(
            np.ones(2, onnx.helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, kind))), tensor
        )
        for tensor, kind in kinds.items()
    ]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", entry[:1], entry[1:], tensors)
    path = folder / name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({}, "FP32"),
        ({"a": "INT64"}, "FP32"),
        ({"a": "FLOAT"}, "FP32"),
        ({"a": "FLOAT16"}, "FP16"),
        ({"a": "FLOAT16", "b": "FLOAT"}, "FP32 + FP16"),
        ({"a": "BFLOAT16"}, "BF16"),
    ],
)
def test_the_precision_of_a_model_is_that_of_its_weights(kinds, expected, tmp_path):
    assert precision_of(stored(tmp_path, "m.onnx", **kinds)) == expected


def test_another_model_replaces_the_exported_one_with_its_size(tmp_path):
    report = OnnxReport(stored(tmp_path, "a.onnx"), {"x": "2"}, {"y": "2"}, 9, 9, 20, (), OpenSizes(1))
    other = stored(tmp_path, "b.onnx", w="FLOAT")
    found = replace_model(report, other)
    assert (found.nodes, found.bytes) == (1, other.stat().st_size)
    assert report.path.read_bytes() == other.read_bytes()
    for wrong in ({"inputs": {"z": "2"}}, {"outputs": {"z": "2"}}, {"inputs": {"x": "2", "z": "2"}}):
        with pytest.raises(DiagnosticError, match="other inputs and outputs"):
            replace_model(replace(report, **wrong), other)


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_a_model_with_its_ends_in_another_order_is_another_one(tmp_path, which):
    """Programs feed inputs and read outputs by their places too."""
    from onnx import TensorProto, helper

    ends = {"inputs": ["x", "v", "w"], "outputs": ["y", "z"]}
    entries = {key: [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ends[key]] for key in ends}
    nodes = [helper.make_node("Sum", ends["inputs"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    graph = helper.make_graph(nodes, "g", entries["inputs"], entries["outputs"])
    path = tmp_path / "other.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    same = {key: dict.fromkeys(names, "2") for key, names in ends.items()}
    report = OnnxReport(stored(tmp_path, "a.onnx"), same["inputs"], same["outputs"], 9, 9, 20, (), OpenSizes(1))
    before = report.path.read_bytes()
    for names in permutations(ends[which]):
        given = replace(report, **{which: dict.fromkeys(names, "2")})
        if list(names) == ends[which]:
            assert replace_model(given, path).nodes == 2
            assert report.path.read_bytes() == path.read_bytes()
            report.path.write_bytes(before)
        else:
            with pytest.raises(DiagnosticError, match="other inputs and outputs"):
                replace_model(given, path)
            assert report.path.read_bytes() == before


def test_the_types_of_inputs_and_outputs_are_those_of_their_arrays(tmp_path):
    """Of arrays in numpy, not of what a file stores them as."""
    types = ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
    layers = [layer(f"x_{kind}", "tensor_input", shape="2", dtype=kind) for kind in types]
    layers += [layer(f"y_{kind}", "output", f"x_{kind}") for kind in types]
    graph = Graph(layers, name="types")
    interface = interface_of(export_onnx(graph, REGISTRY, Weights(), tmp_path / "types.onnx"), graph, REGISTRY)
    assert {entry.layer: entry.dtype for entry in interface.inputs} == {f"x_{kind}": kind for kind in types}
    assert {entry.layer: entry.dtype for entry in interface.outputs} == {f"y_{kind}": kind for kind in types}


# --- sizes of TensorRT engines --------------------------------------------------------------------------------------


def test_further_images_follow_the_first_in_proportion():
    guide = msgspec_replace(GUIDE, shape=(2, 1, None, None), drawn=(2, 1, 12, 18), height=None, width=None, multiple=2)
    interface = Interface((VECTOR, PHOTO, guide), (SCORES,))
    found = _shapes(interface, EngineOptions((16, 36), (48, 72), 5))
    assert {name: (s.smallest, s.best, s.largest) for name, s in found.items()} == {
        "été": ((1, 5), (1, 5), (5, 5)),
        "photo": ((1, 3, 16, 36), (1, 3, 24, 36), (5, 3, 48, 72)),
        'a "guide"': ((2, 1, 8, 18), (2, 1, 12, 18), (2, 1, 24, 36)),
    }
    plain = _shapes(interface, EngineOptions())
    assert plain["photo"].smallest == plain["photo"].largest == (1, 3, 24, 36)
    any_size = msgspec_replace(PHOTO, multiple=1)
    assert _shapes(Interface((any_size, guide), (SCORES,)), EngineOptions(largest=(28, 36)))["photo"].largest[2] == 28
    for height in (25, 26):  # half of 25 is not a whole number, half of 26 is odd
        with pytest.raises(DiagnosticError, match=f"cannot follow a first image of 36x{height}: .* multiples of 2"):
            _shapes(Interface((any_size, guide), (SCORES,)), EngineOptions(largest=(height, 36)))


@pytest.mark.parametrize(
    ("entry", "options", "words"),
    [
        (GUIDE, EngineOptions(smallest=(12, 18)), "runs at one size only"),
        (GUIDE, EngineOptions(largest=(12, 18)), "runs at one size only"),
        (
            PHOTO,
            EngineOptions(largest=(26, 36)),
            "'photo' cannot have the size 36x26: heights and widths are multiples of 4",
        ),
        (PHOTO, EngineOptions(smallest=(28, 36)), "do not increase: 1 x 3 x 28 x 36, 1 x 3 x 24 x 36, 1 x 3 x 24 x 36"),
        (PHOTO, EngineOptions(largest=(24, 32)), "do not increase"),
    ],
)
def test_sizes_that_an_engine_cannot_have(entry, options, words):
    with pytest.raises(DiagnosticError) as failed:
        _shapes(Interface((entry,), (SCORES,)), options)
    assert words in failed.value.diagnostics[0].message


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sha256": 3}', "[" * 100_000, None])
def test_an_engine_without_a_readable_description_is_refused(text, tmp_path):
    path = tmp_path / "net.engine"
    path.write_bytes(b"code")
    if text is not None:
        description_of(path).write_text(text)
    with pytest.raises(DiagnosticError, match=r"its description net\.engine\.json cannot be read"):
        read_engine_file(path)


@pytest.mark.parametrize(
    ("printed", "error", "code", "words"),
    [
        (
            '{"outputs": {"a": {"difference": 2.5, "psnr_db": 9, "ok": true}, "b": {"difference": 1.5, "psnr_db": 1, "ok": false}}, "milliseconds": 2, "ok": false}',
            "", "deploy-differs", "the output 'b' of the exported model differs by 1.5 from the network in torch",
        ),
        ("", "Traceback\nImportError: no runtime\n", "deploy-failed", "does not run the model: ImportError: no runtime"),
        ("almost {}", "", "deploy-failed", "does not run the model: no reason given"),
    ],
)  # fmt: skip
def test_a_check_that_fails_says_why(printed, error, code, words, monkeypatch, tmp_path):
    done = SimpleNamespace(stdout=printed, stderr=error)
    monkeypatch.setattr(deployment.subprocess, "run", lambda *arguments, **options: done)
    with pytest.raises(DiagnosticError) as failed:
        deployment._measure(tmp_path)
    (found,) = failed.value.diagnostics
    assert found.code == code
    assert words in found.message


@pytest.mark.parametrize(("width", "height"), [(41, 30), (18, 31), (40, 12), (18, 12)])
def test_the_example_of_the_check_is_the_middle_of_an_image(tmp_path, width, height):
    ramp = (np.arange(height)[:, None] * 5 + np.arange(width)[None, :]).astype(np.uint8)
    Image.fromarray(ramp).save(tmp_path / "large.png")
    image, content = deployment._example(GUIDE, tmp_path / "large.png")
    top, left = (height - 12) // 2, (width - 18) // 2
    np.testing.assert_array_equal(np.round(image[0, 0] * 255), ramp[top : top + 12, left : left + 18])
    assert content == "the middle of large.png"


@pytest.mark.parametrize(("fixed", "used"), [((520, None), (520, 512)), ((None, 530), (512, 530)), ((None, None), (512, 512)),
                                             ((520, 530), (520, 530)), ((8, 600), (8, 600)), ((541, 8), None)])  # fmt: skip
def test_only_open_sizes_of_an_example_are_limited(tmp_path, fixed, used):
    entry = replaced(GUIDE, height=fixed[0], width=fixed[1])
    ramp = (np.arange(540)[:, None] * 7 + np.arange(620)[None, :]).astype(np.uint8)
    Image.fromarray(ramp).save(tmp_path / "large.png")
    found = deployment._example(entry, tmp_path / "large.png")
    if used is None:
        assert found is None
        return
    top, left = (540 - used[0]) // 2, (620 - used[1]) // 2
    expected = ramp[top : top + used[0], left : left + used[1]]
    np.testing.assert_array_equal(np.round(found[0][0, 0] * 255), expected)
