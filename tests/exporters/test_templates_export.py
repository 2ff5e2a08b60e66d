"""Templates in what is exported: classes in PyTorch, scoped names in ONNX, and the same numbers everywhere."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from pytorch_networks import lint, load_source, node, set_weights
from template_networks import by_hand, nested, seeded, weights_by_hand

import samples
from designer.files.document import read_document
from designer.files.weights import WeightKey, load_weights, required_weights, torch_keys
from designer.graph import commands, template_commands
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx
from exporters.pytorch import export_project, generate_source
from exporters.pytorch.source import module_source, network_module

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

PICTURE = np.random.default_rng(1).random((2, 3, 12, 16), dtype=np.float32)


def blocks() -> Graph:
    graph = read_document(samples.path("residual_blocks.xml")).graph
    assert graph is not None
    return graph


def generated(graph, registry, weights, name="Net"):
    module = network_module(graph, registry, name=name)
    model = getattr(load_source(module_source(module, name)), name)()
    set_weights(model, module.program, weights)
    return model.eval()


def run(model, array):
    with torch.inference_mode():
        return model(torch.from_numpy(array)).numpy()


def expected(graph, registry, weights, array, name="in"):
    session = Session(graph, registry, weights, RunOptions(threads=1))
    session.set_input(name, array, is_image=False)
    (output,) = session.run().outputs.values()
    return output


def test_source_equals_the_network_and_the_one_written_by_hand(registry):
    weights = seeded(nested(), registry)
    made = run(generated(nested(), registry, weights), PICTURE)
    plain = run(generated(by_hand(), registry, weights_by_hand(weights)), PICTURE)
    np.testing.assert_allclose(made, expected(nested(), registry, weights, PICTURE), atol=1e-6, rtol=0)
    np.testing.assert_allclose(made, plain, atol=1e-6, rtol=0)


def test_a_class_for_each_template_and_a_submodule_for_each_instance(registry):
    source = generate_source(blocks(), registry, "Denoiser")
    assert [line for line in source.splitlines() if line.startswith("class ")] == [
        "class ResidualBlock(nn.Module):",
        "class ResidualGroup(nn.Module):",
        "class Denoiser(nn.Module):",
    ]
    model = load_source(source).Denoiser()
    assert type(model.group_1.block_2).__name__ == "ResidualBlock"
    assert "group_1.block_2.conv_1.weight" in model.state_dict()
    weights = seeded(blocks(), registry)
    array = np.random.default_rng(0).random((1, 3, 24, 32), dtype=np.float32)
    made = run(generated(blocks(), registry, weights), array)
    np.testing.assert_allclose(made, expected(blocks(), registry, weights, array, "input_image"), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "names", [("res 1", "res-1"), ("res-1", "res_1", "res 1"), ("1", "layer_1", "layer 1")], ids=str
)
def test_weights_are_found_for_instances_whose_names_become_the_same_identifier(registry, names):
    """Every tensor of the generated module belongs to the layer that it was set for, also in an inner instance of such a name."""
    ends = (node("x", "template_input"), node("y", "template_output", names[-1]))
    inner = [node("conv 1", "convolution", "x", features=3), node("conv-1", "convolution", "conv 1", features=3)]
    inner = Template("inner", (ends[0], *inner, node("y", "template_output", "conv-1")))
    reads = dict(zip(names, ("x", *names), strict=False))
    outer = Template("outer", (ends[0], *(node(n, "template", r, template="inner") for n, r in reads.items()), ends[1]))
    layers = [node("in", "input", dims="16x12x3")]
    for name in names:
        layers.append(node(name, "template", layers[-1].name, template="outer"))
    graph = Graph([*layers, node("out", "output", names[-1])], templates=[inner, outer])
    weights = seeded(graph, registry)
    state = generated(graph, registry, weights).state_dict()
    keys = torch_keys(required_weights(Inference(graph, registry)))
    assert state.keys() <= keys.keys()
    assert sorted(keys[name] for name in state) == sorted(weights.tensors)
    for name, tensor in state.items():
        np.testing.assert_array_equal(tensor.numpy(), weights.tensors[WeightKey(*keys[name])], err_msg=name)


def test_shared_weights_are_in_the_state_dict_once(registry):
    model = generated(nested(), registry, seeded(nested(), registry))
    keys = list(model.state_dict())
    assert len(keys) == len(required_weights(Inference(nested(), registry)))
    assert [k for k in keys if "residual" in k] == [
        f"residual.conv_{n}.{t}" for n in (1, 2) for t in ("weight", "bias")
    ]
    made = model(torch.from_numpy(PICTURE)).sum()
    made.backward()
    assert model.residual.conv_1.weight.grad.abs().sum() > 0


def test_nested_shared_modules_reach_every_depth(registry):
    """A shared template that holds a shared template, used through one that is not."""
    inner = Template(
        "inner",
        (
            node("x", "template_input"),
            node("conv", "convolution", "x", features=3),
            node("y", "template_output", "conv"),
        ),
    )
    middle = Template(
        "middle",
        (
            node("x", "template_input"),
            node("i", "template", "x", template="inner", shared_weights="true"),
            node("own", "template", "i", template="inner"),
            node("y", "template_output", "own"),
        ),
    )
    outer = Template(
        "outer",
        (
            node("x", "template_input"),
            node("m", "template", "x", template="middle", shared_weights="true"),
            node("y", "template_output", "m"),
        ),
    )
    graph = Graph(
        [
            node("in", "input", dims="16x12x3"),
            node("o1", "template", "in", template="outer"),
            node("o2", "template", "o1", template="outer"),
            node("m", "template", "o2", template="middle", shared_weights="true"),
            node("out", "output", "m"),
        ],
        templates=[inner, middle, outer],
    )
    weights = seeded(graph, registry)
    assert {k.layer for k in weights.tensors} == {"inner.conv", "middle.own.conv"}
    made = run(generated(graph, registry, weights), PICTURE)
    np.testing.assert_allclose(made, expected(graph, registry, weights, PICTURE), atol=1e-6, rtol=0)


def test_instances_fed_with_other_channels_get_a_class_of_their_own(registry):
    block = Template(
        "block",
        (
            node("x", "template_input"),
            node("conv", "convolution", "x", features=4),
            node("y", "template_output", "conv"),
        ),
    )
    graph = Graph(
        [
            node("in", "input", dims="16x12x3"),
            node("a", "template", "in", template="block"),
            node("b", "template", "a", template="block"),
            node("small", "pooling", "b", size="2x2", stride="2x2"),
            node("c", "template", "small", template="block"),
            node("out", "output", "c"),
        ],
        templates=[block],
    )
    source = generate_source(graph, registry, "Block")
    assert "class Block_2(nn.Module):" in source  # the network has the first name
    assert "class Block_3(nn.Module):" in source
    assert "class Block_4(nn.Module):" not in source
    assert source.count("a tensor") == 2  # b and c are the same class, for two sizes
    weights = seeded(graph, registry)
    made = run(generated(graph, registry, weights, "Block"), PICTURE)
    np.testing.assert_allclose(made, expected(graph, registry, weights, PICTURE), atol=1e-6, rtol=0)


def test_shared_instances_with_attached_activations_keep_these_apart(registry):
    graph = nested()
    spec = ActivationSpec("prelu")
    graph.apply(commands.set_params(graph, {"a": {"shared_weights": "true"}}))
    graph.apply(commands.set_activation(graph, ["a", "b"], spec))
    graph.apply(commands.connect(graph, Source("b"), "c", 0))
    weights = seeded(graph, registry)
    for number, key in enumerate(k for k in weights.tensors if k.tensor == "activation_slope"):
        weights.tensors[key][:] = 0.1 + number
    made = run(generated(graph, registry, weights), PICTURE)
    np.testing.assert_allclose(made, expected(graph, registry, weights, PICTURE), atol=1e-6, rtol=0)


@pytest.mark.parametrize("network", [nested, blocks])
def test_a_switch_that_is_off_is_as_good_as_none(registry, network):
    """Instances that say that they do not share their weights have weights of their own."""
    graph = network()
    for name in ("", *graph.templates):
        inside = graph.inside(name) if name else graph
        unsaid = [x.name for x in inside if x.type == "template" and "shared_weights" not in x.params]
        edit = commands.set_params(inside, {at: {"shared_weights": "false"} for at in unsaid})
        graph.apply(template_commands.edit_template(graph, name, edit) if name else edit)
    assert graph != network()
    assert not Inference(graph, registry).diagnostics()
    assert generate_source(graph, registry, "Net") == generate_source(network(), registry, "Net")
    assert required_weights(Inference(graph, registry)) == required_weights(Inference(network(), registry))


def test_a_selected_instance_is_shown_with_its_class(registry, tmp_path):
    source = generate_source(blocks(), registry, "Part", {"group_2"})
    assert "self.group_2 = ResidualGroup()" in source
    assert "def forward(self, group_1: torch.Tensor) -> torch.Tensor:" in source
    (tmp_path / "model.py").write_text(generate_source(nested(), registry, "Net"))
    assert lint(tmp_path / "model.py") == ""


def test_analysis_layers_inside_vanish(registry):
    graph = nested()
    template = graph.templates["residual"]
    layers = [replace(x, inputs=(Source("n"),)) if x.name == "conv_1" else x for x in template.layers]
    layers.append(Layer("n", "noise", inputs=(Source("x"),), params={"scale": "0.5"}))
    graph.apply(template_commands.set_template(graph, replace(template, layers=tuple(layers))))
    assert generate_source(graph, registry, "Net") == generate_source(nested(), registry, "Net")


def test_a_loss_inside_is_trained_and_not_deployed(registry, tmp_path):
    block = Template(
        "block",
        (
            node("x", "template_input", index=0),
            node("target", "template_input", index=1),
            node("conv", "convolution", "x", features=3),
            node("loss", "l1_loss", "conv", "target"),
            node("y", "template_output", "conv"),
        ),
    )
    graph = Graph(
        [
            node("in", "input", dims="16x12x3"),
            node("wanted", "input", dims="16x12x3"),
            node("b", "template", "in", "wanted", template="block"),
            node("out", "output", "b"),
        ],
        templates=[block],
    )
    weights = seeded(graph, registry)
    source = generate_source(graph, registry, "Net")
    assert "self.b_conv = nn.Conv2d" in source
    assert "wanted" not in source
    files = {path.name for path in export_project(graph, registry, tmp_path / "project", "Net")}
    assert "losses.py" in files
    made = run(generated(graph, registry, weights), PICTURE)
    np.testing.assert_allclose(made, expected(graph, registry, weights, PICTURE), atol=1e-6, rtol=0)


def test_a_loss_outside_may_read_an_instance(registry, tmp_path):
    graph = nested()
    graph.apply(commands.add_layer(graph, node("target", "input", dims="16x12x8")))
    graph.apply(commands.add_layer(graph, node("loss", "l1_loss", "b", "target")))
    export_project(graph, registry, tmp_path / "project", "Net")
    info = json.loads((tmp_path / "project" / "project.json").read_text())
    assert info["losses"] == ["loss"]
    text = (tmp_path / "project" / "model.py").read_text()
    assert "b = " in text
    model = load_source(text).Net()
    _, taps = model.forward_training(torch.from_numpy(PICTURE))
    assert tuple(taps[0].shape) == (2, 8, 12, 16)


def test_the_project_tells_which_file_each_tensor_is(registry, tmp_path):
    graph = nested()
    export_project(graph, registry, tmp_path / "project", "Net")
    info = json.loads((tmp_path / "project" / "project.json").read_text())
    model = load_source((tmp_path / "project" / "model.py").read_text()).Net()
    assert set(info["weights"]) == set(model.state_dict())
    assert info["weights"]["residual.conv_1.weight"] == "residual_conv_1_kernel"
    weights = seeded(graph, registry)
    module = network_module(graph, registry)
    set_weights(model, module.program, weights)
    needed = required_weights(Inference(graph, registry))
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    (tmp_path / "weights").mkdir()
    for key, stem in info["weights"].items():
        np.save(tmp_path / "weights" / f"{stem}.npy", model.state_dict()[key].numpy())
    for source in ("weights.pt", "weights"):
        loaded = load_weights(tmp_path / source, needed)
        assert loaded.complete, source
        assert not [r for r in loaded.reports if r.status.value != "bound"]
        for key, array in weights.tensors.items():
            np.testing.assert_array_equal(loaded.tensors[key], array)


def test_onnx_has_scoped_names_and_the_same_numbers(registry, tmp_path):
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    weights = seeded(nested(), registry)
    path = tmp_path / "net.onnx"
    export_onnx(nested(), registry, weights, path)
    names = {item.name for item in onnx.load(path).graph.initializer}
    assert {"a.conv_1/kernel", "residual.conv_1/kernel", "c.r.conv_2/bias"} <= names
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (made,) = session.run(None, {"in": PICTURE})
    np.testing.assert_allclose(made, expected(nested(), registry, weights, PICTURE), atol=1e-6, rtol=0)
