"""Parts of a PyTorch project on their own: text of expressions, the suggested task, recipes, and data for the scripts."""

from __future__ import annotations

import inspect
import json
import math

import pytest
from runtime_networks import layer

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec
from designer.operators.registry import load
from designer.operators.torch_data import TorchCall, TorchItem, TorchMethod, TorchModule, TorchName, TorchParameter
from designer.operators.torch_program import Local, Submodule, TensorAttribute
from exporters.pytorch.project import Training, _diff, _smaller, project_files
from exporters.pytorch.source import class_name, generate_source, network_module
from exporters.pytorch.subnetworks import ModuleReference, _class_name
from exporters.pytorch.tasks import (
    TASKS,
    ends_in_softmax,
    for_task,
    scale_of,
    suggested_task,
    task_named,
    task_of_network,
    with_recipe,
)
from exporters.pytorch.text import _DEFAULTS, expression, literal, module_text, quoted, tensor_text

REGISTRY = load(entry_points=False)
A, B, C = Local("a"), Local("b"), Local("c")


# --- text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (3, "3"),
        (0.1, "0.1"),
        (1e-12, "1e-12"),
        (math.inf, 'float("inf")'),
        (-math.inf, 'float("-inf")'),
        (math.nan, 'float("nan")'),
        ("same", '"same"'),
        ('a"b', "'a\"b'"),
        ("it's", '"it\'s"'),
        ((2,), "(2,)"),
        ((), "()"),
        ((1, (2.5, "x")), '(1, (2.5, "x"))'),
        ([1, [2]], "[1, [2]]"),
        (TorchName("torch.float32"), "torch.float32"),
        (TorchName("torch.nn.functional.relu"), "F.relu"),
        (TorchName("torch.nn.ReLU"), "nn.ReLU"),
    ],
)
def test_constants_as_text(value, text):
    assert literal(value) == text


def test_other_values_have_no_text():
    with pytest.raises(TypeError, match="cannot be written as torch source"):
        literal({1, 2})
    assert quoted("a\n'") == '"a\\n\'"'


def call(name, *args, **kwargs):
    return TorchCall(f"torch.{name}", args, kwargs)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (call("sub", A, call("sub", B, C)), "a - (b - c)"),
        (call("sub", call("sub", A, B), C), "a - b - c"),
        (call("mul", call("add", A, B), C), "(a + b) * c"),
        (call("mul", A, call("add", B, C)), "a * (b + c)"),
        (call("add", A, call("mul", B, C)), "a + b * c"),
        (call("div", A, call("mul", B, C)), "a / (b * c)"),
        (call("div", call("mul", A, B), C), "a * b / c"),
        (call("mul", A, -2.0), "a * (-2.0)"),
        (call("add", A, B, alpha=2), "torch.add(a, b, alpha=2)"),
        (call("add", A), "torch.add(a)"),
        (call("cat", [A, B], 1), "torch.cat([a, b], 1)"),
        (call("nn.functional.pad", A, (1, 2)), "F.pad(a, (1, 2))"),
        (TorchMethod("reshape", call("add", A, B), (-1,)), "(a + b).reshape(-1)"),
        (TorchMethod("sum", A, (), {"dim": 1, "keepdim": True}), "a.sum(dim=1, keepdim=True)"),
        (TorchItem(call("mul", A, B), 0), "(a * b)[0]"),
        (TorchItem(A, (Ellipsis, slice(None, 3), slice(1, None, 2), 0)), "a[..., :3, 1::2, 0]"),
        (TorchItem(A, (slice(None),)), "a[:,]"),
        (Submodule("conv", "", (A,)), "self.conv(a)"),
        (Submodule("block", "act", (A, B)), 'self.block["act"](a, b)'),
        (TensorAttribute("gain"), "self.gain"),
        ((A,), "(a,)"),
        ((A, B), "(a, b)"),
        ([(A, 1), call("div", A, B)], "[(a, 1), a / b]"),
        (call("nn.functional.pad", A, [1, -2], value=-1.5), "F.pad(a, [1, -2], value=-1.5)"),
        (call("add", -1.0, A), "(-1.0) + a"),
        (call("mul", -math.inf, A), 'float("-inf") * a'),
        (call("relu", -1.0), "torch.relu(-1.0)"),
        (call("stack", [call("add", A, B), C]), "torch.stack([a + b, c])"),
        (TorchItem(A, slice(None, None, -1)), "a[::-1]"),
        (TorchItem(A, (slice(-3, -1), slice(2, None))), "a[-3:-1, 2:]"),
        (TorchItem(TorchItem(A, -1), (0, 1)), "a[-1][0, 1]"),
        (TorchMethod("to", TorchMethod("sum", A), (TorchName("torch.int64"),)), "a.sum().to(torch.int64)"),
        (TorchMethod("masked_fill", A, (call("ge", A, B), -2.0)), "a.masked_fill(torch.ge(a, b), -2.0)"),
        (Submodule("block", 'a"b', (call("sub", A, B),)), "self.block['a\"b'](a - b)"),
        (ModuleReference("self.shared"), "self.shared"),
        (ModuleReference("shared", ()), "shared()"),
        (ModuleReference("self.shared", (A, ModuleReference("other"))), "self.shared(a, other)"),
    ],
)
def test_expressions_have_the_parentheses_that_they_need(value, text):
    assert expression(value) == text


@pytest.mark.parametrize(
    ("path", "kwargs", "text"),
    [
        ("Conv2d", {"in_channels": 3, "out_channels": 8, "kernel_size": (3, 3), "stride": (1, 1), "padding": (1, 1), "bias": True}, "nn.Conv2d(3, 8, kernel_size=3, padding=1)"),
        ("Conv2d", {"in_channels": 3, "out_channels": 8, "kernel_size": (3, 1), "stride": (1, 2), "dilation": (2, 2), "groups": 2, "bias": False}, "nn.Conv2d(3, 8, kernel_size=(3, 1), stride=(1, 2), dilation=2, groups=2, bias=False)"),
        ("Conv1d", {"in_channels": 3, "out_channels": 8, "kernel_size": (3,), "stride": (1,), "padding": (2,)}, "nn.Conv1d(3, 8, kernel_size=3, padding=2)"),
        ("ConvTranspose2d", {"in_channels": 3, "out_channels": 8, "kernel_size": (2, 2), "stride": (2, 2), "output_padding": (0, 0)}, "nn.ConvTranspose2d(3, 8, kernel_size=2, stride=2)"),
        ("MaxPool2d", {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": False}, "nn.MaxPool2d(kernel_size=2)"),
        ("AvgPool2d", {"kernel_size": (2, 2), "stride": (1, 1), "count_include_pad": False}, "nn.AvgPool2d(kernel_size=2, stride=1, count_include_pad=False)"),
        ("BatchNorm2d", {"num_features": 8, "eps": 1e-5, "momentum": 0.1, "affine": False}, "nn.BatchNorm2d(8, affine=False)"),
        ("LayerNorm", {"normalized_shape": (4, 4), "eps": 1e-6}, "nn.LayerNorm((4, 4), eps=1e-06)"),
        ("GroupNorm", {"num_groups": 2, "num_channels": 8, "eps": 1e-5}, "nn.GroupNorm(2, 8)"),
        ("Linear", {"in_features": 4, "out_features": 5, "bias": True}, "nn.Linear(4, 5)"),
        ("PReLU", {"num_parameters": 8}, "nn.PReLU(num_parameters=8)"),
        ("BatchNorm1d", {"num_features": 8, "eps": 1e-3, "momentum": 0.1, "affine": True}, "nn.BatchNorm1d(8, eps=0.001)"),
        ("BatchNorm3d", {"num_features": 8, "eps": 1e-5, "momentum": 0.5, "affine": True}, "nn.BatchNorm3d(8, momentum=0.5)"),
        ("BatchNorm3d", {"num_features": 8, "eps": 1e-3, "momentum": 0.1, "affine": False}, "nn.BatchNorm3d(8, eps=0.001, affine=False)"),
        ("Bilinear", {"in1_features": 2, "in2_features": 3, "out_features": 4, "bias": False}, "nn.Bilinear(in1_features=2, in2_features=3, out_features=4, bias=False)"),
        ("Bilinear", {"in1_features": 2, "in2_features": 3, "out_features": 4, "bias": True}, "nn.Bilinear(in1_features=2, in2_features=3, out_features=4)"),
        ("Conv3d", {"in_channels": 3, "out_channels": 8, "kernel_size": (3, 3, 3), "stride": (1, 1, 1), "padding": (1, 1, 1), "dilation": (1, 1, 1)}, "nn.Conv3d(3, 8, kernel_size=3, padding=1, dilation=1)"),
        ("Conv3d", {"in_channels": 3, "out_channels": 8, "kernel_size": (1, 3, 3), "stride": (2, 2, 2), "padding": (0, 0, 0), "groups": 1, "bias": False}, "nn.Conv3d(3, 8, kernel_size=(1, 3, 3), stride=2, bias=False)"),
        ("Conv2d", {"in_channels": 1, "out_channels": 1, "kernel_size": (2, 2), "stride": (2, 2)}, "nn.Conv2d(1, 1, kernel_size=2, stride=2)"),
        ("ConvTranspose2d", {"in_channels": 3, "out_channels": 8, "kernel_size": (2, 2), "stride": (1, 1), "padding": (0, 0), "output_padding": (1, 1), "groups": 3}, "nn.ConvTranspose2d(3, 8, kernel_size=2, output_padding=1, groups=3)"),
        ("Dropout", {"p": 0.5}, "nn.Dropout(0.5)"),
        ("Embedding", {"num_embeddings": 5, "embedding_dim": 4, "padding_idx": 0}, "nn.Embedding(5, 4, padding_idx=0)"),
        ("GRU", {"input_size": 3, "hidden_size": 4, "num_layers": 2}, "nn.GRU(3, 4, num_layers=2)"),
        ("LSTM", {"input_size": 3, "hidden_size": 4, "bidirectional": True}, "nn.LSTM(3, 4, bidirectional=True)"),
        ("RNN", {"input_size": 3, "hidden_size": 4, "nonlinearity": "relu"}, 'nn.RNN(3, 4, nonlinearity="relu")'),
        ("GroupNorm", {"num_groups": 2, "num_channels": 8, "eps": 1e-6, "affine": False}, "nn.GroupNorm(2, 8, eps=1e-06, affine=False)"),
        ("Linear", {"in_features": 4, "out_features": 5, "bias": False}, "nn.Linear(4, 5, bias=False)"),
        ("LPPool2d", {"norm_type": 2.0, "kernel_size": (3, 3), "stride": (3, 3)}, "nn.LPPool2d(norm_type=2.0, kernel_size=3)"),
        ("MaxPool2d", {"kernel_size": (2, 2), "stride": (1, 1), "padding": (1, 1), "dilation": (2, 2), "ceil_mode": True}, "nn.MaxPool2d(kernel_size=2, stride=1, padding=1, dilation=2, ceil_mode=True)"),
        ("AvgPool2d", {"kernel_size": (2, 3), "stride": (2, 3), "padding": (0, 0), "ceil_mode": True, "count_include_pad": True}, "nn.AvgPool2d(kernel_size=(2, 3), ceil_mode=True)"),
        ("MultiheadAttention", {"embed_dim": 8, "num_heads": 2, "batch_first": True}, "nn.MultiheadAttention(8, 2, batch_first=True)"),
        ("PixelShuffle", {"upscale_factor": 2}, "nn.PixelShuffle(2)"),
        ("PixelUnshuffle", {"downscale_factor": 2}, "nn.PixelUnshuffle(2)"),
        ("Upsample", {"scale_factor": (2.0, 2.0), "mode": "nearest"}, "nn.Upsample(scale_factor=2.0)"),
        ("Upsample", {"scale_factor": (2.0, 3.0), "mode": "bilinear", "align_corners": False}, 'nn.Upsample(scale_factor=(2.0, 3.0), mode="bilinear", align_corners=False)'),
        ("ZeroPad2d", {"padding": (1, 1, 1, 1)}, "nn.ZeroPad2d(padding=1)"),
        ("ZeroPad2d", {"padding": (1, 2, 1, 2)}, "nn.ZeroPad2d(padding=(1, 2, 1, 2))"),
        ("ConstantPad1d", {"padding": (1, 1), "value": -1.0}, "nn.ConstantPad1d(padding=(1, 1), value=-1.0)"),
    ],
)  # fmt: skip
def test_modules_leave_out_what_is_torchs_default(path, kwargs, text):
    assert module_text(TorchModule(f"torch.nn.{path}", kwargs)) == text


@pytest.mark.parametrize("path", sorted(_DEFAULTS))
def test_an_argument_that_is_left_out_has_the_default_of_torch(path):
    """Sizes are pairs here, and one number in torch."""
    torch = pytest.importorskip("torch")
    parameters = inspect.signature(getattr(torch.nn, path.rpartition(".")[2])).parameters
    for name, value in _DEFAULTS[path].items():
        if name in parameters:
            default = parameters[name].default
            assert (value, set(value)) == (value, {default}) if isinstance(value, tuple) else value == default, name
            assert isinstance(value, bool) == isinstance(default, bool), name


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TorchParameter("w", (2, 3)), "torch.zeros((2, 3))"),
        (TorchParameter("w", (2,), 0.25), "torch.full((2,), 0.25)"),
        (TorchParameter("w", (2,), 3), "torch.full((2,), 3.0)"),
        (TorchParameter("w", (), 3, dtype="int64"), "torch.full((), 3, dtype=torch.int64)"),
        (TorchParameter("w", (2,), uniform=0.5), "torch.empty((2,)).uniform_(-0.5, 0.5)"),
        (TorchParameter("w", (2, 1), (1.0, 2.0)), "torch.tensor((1.0, 2.0), dtype=torch.float32).reshape((2, 1))"),
        (TorchParameter("w", (1,), -math.inf), 'torch.full((1,), float("-inf"))'),
        (TorchParameter("w", (2,), 0.0), "torch.full((2,), 0.0)"),
        (TorchParameter("w", (), True, dtype="bool"), "torch.full((), True, dtype=torch.bool)"),
        (TorchParameter("w", (2,), dtype="int64"), "torch.zeros((2,))"),
        (TorchParameter("w", (2,), [1, 0], dtype="int8"), "torch.tensor([1, 0], dtype=torch.int8).reshape((2,))"),
    ],
)
def test_initial_values_of_tensors(data, text):
    assert tensor_text(data) == text


@pytest.mark.parametrize(
    ("name", "expected"), [("my_net", "MyNet"), ("u-net v2", "UNetV2"), ("F", "F_"), ("torch", "Torch")]
)
def test_classes_have_the_name_of_the_network(name, expected):
    assert class_name(name) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("residual_block", "ResidualBlock"),
        ("resNetBlock", "ResNetBlock"),
        ("ABC__def 2x", "ABCDef2x"),
        ("3 x", "3X"),
        ("größe", "GrE"),
        ("é_-", "Template"),
    ],
)
def test_the_class_of_a_template_has_its_words_with_capitals(template, expected):
    assert _class_name(template) == expected


# --- tasks ---------------------------------------------------------------------------------------------------------


def network(*layers, size="24x16x3"):
    """A chain of layers between an input and an output."""
    made = [layer("image", "input", dims=size)]
    for number, (kind, params) in enumerate(layers):
        made.append(layer(f"l{number}", kind, made[-1].name, **params))
    return Graph([*made, layer("result", "output", made[-1].name)], name="net")


def convolution(features, **params):
    return "convolution", {"features": features, "kernel": "3x3", **params}


@pytest.mark.parametrize(
    ("graph", "task", "scale"),
    [
        (network(convolution(3)), "denoising", 1),
        (network(convolution(1)), "restoration", 1),
        (network(convolution(3), size="24x16x1"), "restoration", 1),
        (network(convolution(4)), "restoration", 1),
        (network(convolution(2)), "denoising", 1),
        (network(convolution(12), ("depth_to_space", {"block_size": "2"})), "super-resolution", 2),
        (network(convolution(27), ("depth_to_space", {"block_size": "3"})), "super-resolution", 3),
        (network(convolution(4), ("depth_to_space", {"block_size": "2"})), "denoising", 2),
        (network(("upsample", {"factor": "2x3"})), "denoising", 1),
        (network(convolution(3, stride="2x2")), "denoising", 1),
        (network(("global_pooling", {}), ("flatten", {}), ("fully_connected", {"features": "7"})), "classification", 1),
        (network(("reduce", {"axes": "1,2,3", "keep": "false"})), "denoising", 1),
    ],
)  # fmt: skip
def test_the_task_follows_from_the_shapes(graph, task, scale):
    module = network_module(graph, REGISTRY)
    assert suggested_task(module, None).name == task
    assert task_of_network(graph, REGISTRY).name == task
    assert scale_of(module) == scale


@pytest.mark.parametrize(("task", "shape"), [("classification", "N x K"), ("segmentation", "N x K x H x W")])
def test_tasks_of_classes_refuse_an_output_of_one_number_per_sample(task, shape):
    graph = network(("reduce", {"axes": "1,2,3", "keep": "false"}))
    with pytest.raises(DiagnosticError) as caught:
        project_files(graph, REGISTRY, "net", Training(task))
    (found,) = caught.value.diagnostics
    assert found.code == "wrong-output"
    assert found.layer in graph
    assert found.layer in found.message
    assert shape in found.remedy


def test_restoration_needs_one_input():
    layers = [
        layer("image", "input", dims="24x16x3"), layer("noise", "input", dims="24x16x1"),
        layer("joined", "concatenation", "image,noise", axis="1"),
        layer("gray", "convolution", "joined", features="1", kernel="3x3"), layer("result", "output", "gray"),
    ]  # fmt: skip
    assert task_of_network(Graph(layers), REGISTRY).name == "denoising"


def with_loss(spatial):
    layers = [
        layer("image", "input", dims="24x16x3"),
        layer("scores", "convolution", "image", features="5", kernel="3x3"),
    ]
    last = "scores"
    if not spatial:
        layers += [layer("pooled", "global_pooling", "scores"), layer("flat", "flatten", "pooled")]
        last = "flat"
    layers.append(layer("target", "tensor_input", shape="16,24" if spatial else "", dtype="int64"))
    layers += [layer("loss", "cross_entropy_loss", f"{last},target"), layer("result", "output", last)]
    return Graph(layers, name="classes")


@pytest.mark.parametrize(("spatial", "task"), [(True, "segmentation"), (False, "classification")])
def test_classes_are_those_of_pixels_or_of_images(spatial, task):
    assert task_of_network(with_loss(spatial), REGISTRY).name == task


def sequence(*layers, losses=()):
    """Scores of 5 classes for each of 8 places, from the first of two inputs."""
    made = [layer("signal", "input", dims="8x1x3"), layer("second", "tensor_input", shape="8", dtype="int64")]
    made += [
        layer("read", "convolution", "signal", features="5", kernel="3x1"),
        layer("row", "squeeze", "read", axes="2"),
    ]
    made += layers
    return Graph([*made, layer("result", "output", made[-1].name, analysis_view="tensor"), *losses], name="sequence")


@pytest.mark.parametrize(
    ("graph", "task"),
    [
        (sequence(), "denoising"),
        (sequence(losses=[layer("loss", "cross_entropy_loss", "row,second")]), "classification"),
        (sequence(losses=[layer("loss", "cross_entropy_loss", "row,second"), layer("root", "unary", "loss", function="sqrt")]), "classification"),
        (sequence(losses=[layer("loss", "mse_loss", "row,row")]), "denoising"),
        (sequence(layer("shares", "activation", "row", ActivationSpec("softmax"))), "denoising"),
    ],
)  # fmt: skip
def test_sequences_are_classified_only_by_a_loss_of_classes(graph, task):
    assert task_of_network(graph, REGISTRY).name == task


@pytest.mark.parametrize(
    ("first", "last", "ends"), [("softmax", "", True), ("", "softmax", False), ("relu", "softmax", False)]
)
def test_probabilities_are_those_of_the_first_output(first, last, ends):
    def scores(name, function):
        spec = ActivationSpec(function) if function else None
        return layer(name, "convolution", "image", spec, features="5", kernel="1x1")

    layers = [layer("image", "input", dims="24x16x3"), scores("a", first), scores("b", last)]
    graph = Graph([*layers, layer("out", "output", "a"), layer("rest", "output", "b")])
    module = network_module(graph, REGISTRY)
    assert ends_in_softmax(module) is ends
    assert suggested_task(module, None).name == ("segmentation" if ends else "denoising")
    assert json.loads(project_files(graph, REGISTRY, "net")["project.json"])["probabilities"] is ends


def test_a_network_of_a_number_for_each_sample_has_the_usual_task():
    made = [layer("x", "tensor_input", shape=""), layer("y", "unsqueeze", "x", axes="1")]
    graph = Graph(
        [*made, layer("f", "fully_connected", "y", features="3"), layer("o", "output", "f", analysis_view="tensor")]
    )
    assert task_of_network(graph, REGISTRY).name == "denoising"


def test_an_unknown_task_is_refused_with_the_known_ones():
    with pytest.raises(DiagnosticError) as refused:
        task_named("cooking")
    (found,) = refused.value.diagnostics
    assert found.message == "'cooking' is not a task of training"
    assert found.remedy == "use one of: denoising, restoration, super-resolution, segmentation, classification"
    assert [task_named(name).template for name in TASKS] == [
        "denoising.py", "restoration.py", "super_resolution.py", "segmentation.py", "classification.py"
    ]  # fmt: skip


TEMPLATE = "first\n# only denoising super-resolution\na\n    # only segmentation\nb\n<!-- only all -->\nlast\n"


@pytest.mark.parametrize(
    ("task", "kept"),
    [("denoising", "first\na\nlast\n"), ("super-resolution", "first\na\nlast\n"), ("segmentation", "first\nb\nlast\n"), ("classification", "first\nlast\n")],
)  # fmt: skip
def test_templates_keep_the_lines_of_a_task(task, kept):
    assert for_task(TEMPLATE, TASKS[task]) == kept


CONFIG = """class Config:
    data: str = setting("", "folder, with images", path)
    model: str = setting(
        "gaussian", "kind")
    lr: float = setting(1e-3, "rate", rate)
    steps: int = setting(0, "steps", count)
    flip: bool = setting(False, "mirrored")
"""


def test_a_recipe_changes_the_defaults_of_its_settings_only():
    recipe = {"data": "a b", "model": "poisson", "lr": "2e-4", "steps": "700", "flip": "True"}
    assert with_recipe(CONFIG, recipe) == (
        CONFIG.replace('setting(""', 'setting("a b"').replace('"gaussian"', '"poisson"').replace("1e-3", "0.0002")
        .replace("setting(0,", "setting(700,").replace("False", "True")
    )  # fmt: skip
    assert with_recipe(CONFIG, {}) == CONFIG
    assert with_recipe(CONFIG.replace("False", "True"), {"flip": "false"}) == CONFIG
    assert with_recipe(CONFIG.replace('setting(""', 'setting("a"'), {"data": ""}) == CONFIG, "an empty text is one"


@pytest.mark.parametrize(
    ("recipe", "code", "words"),
    [
        ({"lr": "fast"}, "bad-setting", "'fast' is not valid for the training setting 'lr'"),
        ({"lr": "nan"}, "bad-setting", "'nan' is not valid for the training setting 'lr'"),
        ({"lr": "-inf"}, "bad-setting", "'-inf' is not valid for the training setting 'lr'"),
        ({"steps": "1.5"}, "bad-setting", "'1.5' is not valid for the training setting 'steps'"),
        ({"flip": "1"}, "bad-setting", "'flip'"),
        ({"data": 'a"b'}, "bad-setting", "'data'"),
        ({"data": "a\\"}, "bad-setting", "'data'"),
        ({"data": "é"}, "bad-setting", "'data'"),
        ({"data": "a\nb"}, "bad-setting", "'data'"),
        ({"data": "a\tb"}, "bad-setting", "'data'"),
        ({"steps": "9" * 400}, "bad-setting", "'steps'"),
        ({"lr": "1e999"}, "bad-setting", "'1e999' is not valid for the training setting 'lr'"),
        ({"zoom": "1", "angle": "2"}, "unknown-setting", "no setting 'angle'"),
    ],
)
def test_wrong_recipes_are_named(recipe, code, words):
    with pytest.raises(DiagnosticError) as failed:
        with_recipe(CONFIG, recipe)
    (found,) = failed.value.diagnostics
    assert found.code == code
    assert words in found.message
    if code == "unknown-setting":
        assert found.remedy == "use one of: data, model, lr, steps, flip"


# --- data for the scripts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "before", "after", "expected"),
    [
        (1, 16, 8, 2),
        (2, 8, 8, 2),
        (2, 12, 4, 6),
        (4, 4, 8, 2),
        (1, 4, 8, 1),
        (4, 4, 12, 1),
        (2, 9, 4, 2),
        (2, 8, 1, 2),
        (6, 4, 6, 4),
    ],
)
def test_the_factor_of_downsampling_follows_the_sizes(factor, before, after, expected):
    assert _smaller(factor, before, after) == expected


def information(graph):
    return json.loads(project_files(graph, REGISTRY, "Net")["project.json"])


def test_project_data_of_inputs_and_outputs():
    graph = Graph(
        [
            layer("photo", "input", dims="24x16x3", scale="2.0", shift="-0.5"),
            layer("guide", "input", dims="12x8x1", tiling="4"),
            layer("down", "convolution", "photo", features="4", kernel="3x3", stride="2x2"),
            layer("joined", "concatenation", "down,guide", axis="1"),
            layer("up", "upsample", "joined", factor="2x2"),
            layer("b", "output", "up"),
            layer("a", "output", "joined"),
        ],
        name="data",
    )
    found = information(graph)
    assert found["inputs"] == [
        {"name": "guide", "argument": "guide", "shape": [1, 8, 12], "scale": 1.0, "shift": 0.0, "multiple": 4},
        {"name": "photo", "argument": "photo", "shape": [3, 16, 24], "scale": 2.0, "shift": -0.5, "multiple": 2},
    ]
    assert found["outputs"] == [{"name": "a", "shape": [5, 8, 12]}, {"name": "b", "shape": [5, 16, 24]}]
    assert (found["document"], found["model"], found["losses"], found["targets"]) == ("data", "Net", [], [])
    assert found["weights"] == {"down.weight": "down_kernel", "down.bias": "down_bias"}


@pytest.mark.parametrize(
    ("task", "words"), [("denoising", "the mean absolute difference (L1)"), ("segmentation", "the cross-entropy")]
)
def test_the_readme_of_a_document_without_losses_names_the_loss_of_its_task(task, words):
    files = project_files(network(convolution(3)), REGISTRY, "Net", Training(task))
    assert f"so training minimizes {words} of the first output" in files["README.md"].decode()
    assert (b"cross_entropy" in files["losses.py"]) == (task == "segmentation")


def test_losses_and_targets_are_in_the_project_data_and_the_readme():
    files = project_files(with_loss(True), REGISTRY, "Net")
    found = json.loads(files["project.json"])
    assert (found["task"], found["losses"]) == ("segmentation", ["loss"])
    assert [(entry["name"], entry["shape"]) for entry in found["targets"]] == [("target", [16, 24])]
    readme = files["README.md"].decode()
    assert "- `loss`\n\n- target `target`: N x 16 x 24" in readme
    assert "- input `image`: N x 3 x 16 x 24\n- output `result`: N x 5 x 16 x 24" in readme


def test_a_diff_leads_from_the_edited_file_to_the_new_one():
    assert _diff("a.py", b"one\ntwo\n", b"one\n2\n").splitlines() == [
        "--- a.py (edited)", "+++ a.py (new)", "@@ -1,2 +1,2 @@", " one", "-two", "+2",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_constants_of_every_type_are_in_the_source(dtype):
    torch = pytest.importorskip("torch")
    layers = [
        layer("image", "input", dims="3x2x1"),
        layer("mask", "tensor_constant", shape="3", dtype=dtype, numbers="1,0,1"),
        layer("number", "cast", "mask", target="float32")
        if dtype != "float32"
        else layer("number", "identity", "mask"),
        layer("product", "element_wise", "image,number", operation="multiply"),
        layer("result", "output", "product"),
    ]
    names = {}
    exec(generate_source(Graph(layers, name="net"), REGISTRY, "Net"), names)
    assert names["Net"]()(torch.ones(1, 1, 2, 3)).tolist() == [[[[1, 0, 1], [1, 0, 1]]]]
