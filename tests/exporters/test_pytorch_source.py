"""The generated module: readable, legal whatever things are called, and equal to the network on the canvas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from pytorch_networks import RELU, imported, lint, load_source, node, seeded, set_weights, small

import samples
from designer.files.document import read_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Source
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.pytorch import class_name, generate_source
from exporters.pytorch.source import module_source, network_module

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

HOSTILE = [
    "class", "l", "nn", "F", "torch", "self", "forward", "train", "state_dict", "print", "a b", "a_b", "a-b", "1x", "é",
    "__init__", "_modules", "import os;os.abort()", "x=1#", "\u202eabc", "lambda", "O", "None", "match", "{0}", "%s", "]",
    "super().__init__()", "\\N{DIGIT ONE}".replace("\\", ""),
]  # fmt: skip

BREAKOUT = chr(34) * 3 + chr(10) + "raise SystemExit"


def sample_graph(name):
    graph = read_document(samples.path(f"{name}.xml")).graph
    assert graph is not None
    return graph


def run_session(graph, registry, weights, arrays, engine="onnxruntime"):
    session = Session(graph, registry, weights, RunOptions(engine=engine, threads=1))
    for name, array in arrays.items():
        session.set_input(name, array, is_image=False)
    return session.run().outputs


@pytest.mark.parametrize("name", ["denoiser", "dncnn", "oidn_like"])
@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_same_weights_same_output(registry, name, engine):
    graph = sample_graph(name)
    weights = seeded(graph, registry)
    array = np.random.default_rng(0).random((1, 3, 32, 64), np.float32)
    (expected,) = run_session(graph, registry, weights, {"input_image": array}, engine).values()
    made = network_module(graph, registry)
    model = getattr(load_source(module_source(made, name)), name)()
    set_weights(model, made.program, weights)
    with torch.inference_mode():
        result = model.eval()(torch.from_numpy(array)).numpy()
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_state_dict_keys_are_layer_names(registry):
    source = generate_source(sample_graph("dncnn"), registry, "Residual")
    keys = set(load_source(source).Residual().state_dict())
    assert {"conv_0.weight", "conv_0.bias", "conv_noise.weight", "norm_1.running_mean"} <= keys


def test_analysis_layers_vanish(registry):
    plain = generate_source(sample_graph("denoiser"), registry, "net")
    assert generate_source(sample_graph("denoiser_analyze"), registry, "net") == plain


@pytest.mark.parametrize("name", samples.DOCUMENTS)
def test_samples_are_clean_python_that_needs_torch_alone(registry, tmp_path, name):
    source = generate_source(sample_graph(name), registry, name)
    (tmp_path / "model.py").write_text(source, "utf-8")
    assert imported(source) == {"torch"}
    assert lint(tmp_path / "model.py") == ""
    assert "# N x " in source


def hostile_graph():
    """A chain in which every layer has a name that means something else somewhere."""
    layers = [node("input", "input", dims="6x5x3")]
    last = "input"
    for name in HOSTILE:
        layers.append(node(name, "convolution", last, activation=RELU, features=3, kernel="1x1"))
        last = name
    return Graph([*layers, node("return", "output", last)], name=BREAKOUT)


def test_hostile_names(registry, tmp_path):
    graph = hostile_graph()
    made = network_module(graph, registry)
    source = module_source(made, class_name("class"))
    (tmp_path / "model.py").write_text(source, "utf-8")
    assert lint(tmp_path / "model.py") == ""
    weights = seeded(graph, registry, 3)
    model = load_source(source).Class()
    set_weights(model, made.program, weights)
    array = np.random.default_rng(1).random((2, 3, 5, 6), np.float32)
    (expected,) = run_session(graph, registry, weights, {"input": array}).values()
    with torch.inference_mode():
        np.testing.assert_allclose(model(torch.from_numpy(array)).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("denoiser", "Denoiser"),
        ("my net!", "MyNet"),
        ("class", "Class"),
        ("residual_uNet_x2", "ResidualUNetX2"),
        ("nn", "Nn"),
        ("3d", "layer_3d"),
        ("F", "F_"),
    ],
)
def test_class_names(registry, name, expected):
    assert class_name(name) == expected
    assert hasattr(load_source(generate_source(small(), registry, name)), expected)


def test_several_inputs_and_outputs_in_the_documents_order(registry):
    graph = Graph(
        [
            node("second", "input", dims="4x4x2"),
            node("a first", "input", dims="4x4x2"),
            node("minus", "element_wise", "a first", "second", operation="subtract"),
            node("times", "element_wise", "a first", "second", operation="multiply"),
            node("z", "output", "minus"),
            node("b out", "output", "times"),
        ]
    )
    model = load_source(generate_source(graph, registry, "two")).Two()
    a, b = torch.rand(1, 2, 4, 4), torch.rand(1, 2, 4, 4)
    result = model(a, b)  # a document's layers are sorted by name
    assert list(result) == ["b out", "z"]
    torch.testing.assert_close(result["z"], a - b)
    torch.testing.assert_close(result["b out"], a * b)


def test_attached_weights_constants_and_even_kernels(registry):
    graph = Graph(
        [
            node("image", "input", dims="8x8x3"),
            node("conv", "convolution", "image", activation=ActivationSpec("prelu", {}), features=4, kernel="4x4"),
            node("fill", "input_cst", dims="8x8x4", value="0.25"),
            node("held", "input_cst", dims="8x8x4", source="weights"),
            node("sum", "element_wise", "conv", "fill", "held"),
            node("out", "output", "sum"),
        ]
    )
    weights = seeded(graph, registry, 5)
    made = network_module(graph, registry)
    model = load_source(module_source(made, "net")).net()
    assert {"conv.weight", "conv.bias", "conv_activation.weight", "held_value"} == set(model.state_dict())
    set_weights(model, made.program, weights)
    array = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    (expected,) = run_session(graph, registry, weights, {"image": array}).values()
    with torch.inference_mode():
        np.testing.assert_allclose(model(torch.from_numpy(array)).numpy(), expected, atol=1e-5)


def test_selection_reads_its_neighbours_as_arguments(registry):
    graph = sample_graph("denoiser")
    source = generate_source(graph, registry, "part", ["concat_1", "conv_enc_2", "conv_enc_3", "conv_res_1a"])
    part = load_source(source).Part()
    assert set(dict(part.named_children())) == {"conv_enc_2", "conv_enc_3", "conv_res_1a"}
    result = part(torch.rand(1, 32, 8, 8), torch.rand(1, 32, 8, 8))
    assert {name: tuple(value.shape) for name, value in result.items()} == {
        "conv_enc_3": (1, 56, 8, 8),  # read by a layer outside
        "conv_res_1a": (1, 56, 8, 8),
    }


def test_selection_of_one_layer_and_of_an_input(registry):
    graph = sample_graph("denoiser_analyze")
    one = load_source(generate_source(graph, registry, "one", ["conv_enc_1", "noise_0"])).One()
    assert one(torch.rand(1, 3, 4, 4)).shape == (1, 16, 4, 4)
    with_input = load_source(generate_source(graph, registry, "one", ["input_image", "conv_enc_1"])).One()
    assert with_input(torch.rand(1, 3, 4, 4)).shape == (1, 16, 4, 4)


@pytest.mark.parametrize(
    ("graph", "selection", "code"),
    [
        (Graph([node("image", "input")]), None, "no-output"),
        (Graph([node("c", "input_cst"), node("out", "output", "c")]), None, "no-input"),
        (Graph([node("image", "input"), node("odd", "what_is_this", "image"), node("o", "output", "odd")]), None, "unknown-operator"),
        (Graph([node("conv", "convolution"), node("o", "output", "conv")]), None, "missing-input"),
        (Graph([node("image", "input"), node("noise", "noise", "image")]), ["noise"], "nothing-to-generate"),
        (Graph([node("image", "input"), node("conv", "convolution", "image", stride="0x0")]), ["conv"], "bad-parameter"),
    ],
)  # fmt: skip
def test_what_cannot_be_generated_says_why(registry, graph, selection, code):
    with pytest.raises(DiagnosticError) as caught:
        generate_source(graph, registry, "net", selection)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].remedy


@pytest.mark.parametrize("selection", [None, ["after"], ["last"], ["after", "last"], ["conv", "last"]])
def test_a_faulty_layer_is_named_even_if_only_layers_behind_it_are_generated(registry, selection):
    """The errors are those of the layer itself, and no others."""
    faulty = node("conv", "convolution", "image", stride="0x0", features="x")
    after = [node("after", "identity", "conv"), node("last", "identity", "after"), node("o", "output", "last")]
    graph = Graph([node("image", "input"), faulty, *after])
    with pytest.raises(DiagnosticError) as caught:
        generate_source(graph, registry, "net", selection)
    found = sorted((d.code, d.layer, d.parameter) for d in caught.value.diagnostics)
    assert found == [("bad-parameter", "conv", "features"), ("bad-parameter", "conv", "stride")]


def test_generating_source_never_imports_torch():
    code = (
        "import sys, samples; from designer.files.document import read_document\n"
        "from designer.operators.registry import load; from exporters.pytorch import generate_source\n"
        "graph = read_document(samples.path('denoiser.xml')).graph\n"
        "assert 'class Denoiser' in generate_source(graph, load(entry_points=False), 'denoiser')\n"
        "assert not {'torch', 'onnx', 'onnxruntime', 'PySide6'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=samples.FOLDER.parent)


def test_unused_results_are_left_out(registry):
    graph = small()
    made = network_module(graph, registry, ["down", "up"])
    assert [step.target for step in made.program.steps] == ["down", "up"]
    assert made.outputs == (Source("up"),)


@pytest.mark.parametrize(
    ("selection", "reads", "results"),
    [
        (["cut"], ["image"], ["cut", "cut:y1", "cut:y2"]),
        (["cut", "left"], ["image"], ["cut:y1", "cut:y2", "left"]),
        (["cut", "left", "right"], ["image"], ["cut:y2", "left", "right"]),  # nobody reads the third part
        (["left", "sum"], ["cut", "right"], ["left", "sum"]),  # left is also read outside
        (["left", "right", "sum", "other"], ["cut", "cut:y1"], ["other", "sum"]),
        (["image", "cut"], ["image"], ["cut", "cut:y1", "cut:y2"]),
        (["sum", "result"], ["left", "right"], ["result"]),
    ],
)
def test_a_selection_returns_what_is_read_outside_or_by_nobody(registry, selection, reads, results):
    graph = Graph(
        [
            node("image", "input", dims="8x6x6"),
            node("cut", "split", "image", sizes="2,2,2"),
            node("left", "scale_shift", "cut", scale=5),
            node("right", "scale_shift", "cut:y1", scale=2),
            node("sum", "element_wise", "left", "right"),
            node("other", "scale_shift", "left", scale=3),
            node("result", "output", "sum"),
            node("second", "output", "other"),
        ]
    )
    module = network_module(graph, registry, selection)
    assert [str(source) for source in module.inputs] == reads
    assert [str(source) for source in module.outputs] == results
