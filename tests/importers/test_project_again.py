"""Exported projects that are imported again have the layers, names, templates and weights of their document."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from inspect import signature
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
import torch_models
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from surgery_networks import REGISTRY, Builder

from designer.files.document import read_document
from designer.files.weights import required_weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.naming import identifier
from designer.graph.template import Template
from designer.graph.template_commands import edit_template, make_template, move_port
from designer.importers.imported import Imported
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.loading import load_module
from designer.operators.deploy import without_observers
from designer.operators.registry import Registry
from exporters.pytorch import export_initial_weights, export_project, generate_source

SAMPLES = Path(__file__).parents[2] / "samples"
DOCUMENTS = [
    str(path.relative_to(SAMPLES).with_suffix(""))
    for path in sorted((*SAMPLES.glob("*.xml"), *SAMPLES.glob("starting_points/*.xml")))
    if not path.name.endswith(".settings.xml")
]


def small(graph: Graph) -> Graph:
    """The network for images of at most 64 x 64 pixels, so that the test is fast."""
    made = graph.copy()
    images = [layer for layer in graph if layer.type == "input" and int(layer.params["dims"].partition("x")[0]) > 64]
    made.apply(
        set_params(graph, {layer.name: {"dims": f"64x64x{layer.params['dims'].split('x')[2]}"} for layer in images})
    )
    return made


def again(graph: Graph, registry: Registry, folder: Path) -> tuple[Imported, torch.nn.Module]:
    """The document of the code that is generated for a network, and the module."""
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(generate_source(graph, registry, "Net"))
    module = load_module("model.py:Net", folder)
    inputs = [layer for layer in sorted(graph, key=lambda item: item.name) if layer.type == "input"]
    sizes = [tuple(map(int, layer.params["dims"].split("x"))) for layer in inputs]
    examples = [torch.rand(1, channels, height, width) for width, height, channels in sizes]
    return import_module(module, examples, registry), module


def shown(layers: list[Layer]) -> dict[str, object]:
    """Type, links, attached activation and template of each layer by its name in Python; the code has its parameters."""
    return {
        identifier(layer.name): (
            layer.type,
            [source and (identifier(source.layer), source.port) for source in layer.inputs],
            layer.activation and layer.activation.type,
            layer.params.get("template", ""),
        )
        for layer in layers
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_come_back(name: str, registry: Registry, tmp_path: Path) -> None:
    read = read_document(SAMPLES / f"{name}.xml").graph
    assert read is not None
    graph = small(without_observers(read, registry))
    found, module = again(graph, registry, tmp_path)
    needed = graph.upstream([layer.name for layer in graph if layer.type == "output"])
    assert shown(list(found.graph)) == shown([graph[name] for name in needed])
    assert found.graph.templates.keys() == graph.templates.keys()
    for key, template in graph.templates.items():
        assert shown(list(found.graph.templates[key].layers)) == shown(list(template.layers))
    assert generate_source(found.graph, registry, "Net") == (tmp_path / "model.py").read_text()
    stored = {key: np.asarray(value) for key, value in module.state_dict().items()}
    assert {(f"{key.layer}.{key.tensor}") for key in found.weights.tensors} == set(found.report.weights.values())
    assert len(found.weights.tensors) == sum(not key.endswith("num_batches_tracked") for key in stored)


@pytest.mark.parametrize("name", ["unet", "vit", "diffusion", "lstm"])
def test_an_imported_module_is_exported_with_its_weights(name: str, registry: Registry, tmp_path: Path) -> None:
    module, inputs = torch_models.build(name)
    found = import_module(module, inputs, registry)
    export_project(found.graph, registry, tmp_path / "project", "Net")
    path = export_initial_weights(found.graph, registry, found.weights, tmp_path / "project")
    (tmp_path / "project" / "model.py").rename(tmp_path / "net_again.py")
    made = load_module("net_again.py:Net", tmp_path)
    made.load_state_dict(torch.load(path, weights_only=True))
    named = dict(zip(signature(module.forward).parameters, inputs, strict=True))
    with torch.no_grad():
        torch.testing.assert_close(made.eval()(**named), module(*inputs))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_random_networks_come_back(seed: int) -> None:
    """The code that is generated for the imported document is that of the original, so names, order and arguments are equal."""
    kinds = (
        "conv",
        "norm",
        "depthwise",
        "grouped",
        "transposed",
        "pool",
        "relu",
        "add",
        "concat",
        "group norm",
        "split",
    )
    graph = Builder(seed, kinds).made()
    with TemporaryDirectory() as folder:
        found, _ = again(graph, REGISTRY, Path(folder))
        assert generate_source(found.graph, REGISTRY, "Net") == Path(folder, "model.py").read_text()
        weighted = {key: tensor.shape for key, tensor in found.weights.tensors.items()}
        assert weighted == {key: item.shape for key, item in required_weights(Inference(graph, REGISTRY)).items()}


def with_templates(graph: Graph, draw: Random) -> Graph:
    """The network with neighboring layers in templates, also inside of each other, whose inputs are in any order."""
    made = graph.copy()
    for number in range(3):
        name = f"part{number}"
        edits = list(one_output(made, name))
        if edits:
            most = max(len(template.inputs) for _, template in edits)
            made.apply(draw.choice([edit for edit, template in edits if number or len(template.inputs) == most]))
            for port in draw.sample(made.templates[name].inputs, len(made.templates[name].inputs)):
                made.apply(edit_template(made, name, move_port(made.inside(name), port, 1)))
    return made


def one_output(graph: Graph, name: str) -> Iterator[tuple[Edit, Template]]:
    """Templates of neighboring layers; the order of several outputs would be that of the code."""
    order = [name for name in graph.order()[0] if graph[name].type not in ("input", "output")]
    for start, count in itertools.product(range(len(order)), range(2, 7)):
        with suppress(DiagnosticError):  # something outside lies between them
            edit = make_template(graph, order[start : start + count], name)
            _, template = edit.templates[name]
            if template is not None and len(template.outputs) == 1:
                yield edit, template


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_random_templates_come_back_with_their_ports(seed: int) -> None:
    graph = with_templates(Builder(seed, ("conv", "relu", "add", "add", "add", "concat")).made(), Random(seed))
    with TemporaryDirectory() as folder:
        found, _ = again(graph, REGISTRY, Path(folder))
        assert generate_source(found.graph, REGISTRY, "Net") == Path(folder, "model.py").read_text()
        needed = graph.upstream([layer.name for layer in graph if layer.type == "output"])
        assert shown(list(found.graph)) == shown([graph[name] for name in needed])
        for name, template in graph.templates.items():
            assert found.graph.templates[name].inputs == tuple(map(identifier, template.inputs))


def test_the_inputs_of_templates_come_back_in_every_order(tmp_path: Path) -> None:
    conv = {"features": "3", "kernel": "1x1"}
    layers = [Layer("image", "input", params={"dims": "8x8x3"})]
    layers += [Layer(name, "convolution", inputs=(Source("image"),), params=conv) for name in "abc"]
    templates, read = [], "image"
    for number, ports in enumerate(itertools.permutations("pqr")):
        inside = [Layer(port, "template_input", params={"index": str(place)}) for place, port in enumerate(ports)]
        inside += [
            Layer("first", "element_wise", inputs=(Source("p"), Source("q")), params={"operation": "subtract"}),
            Layer("second", "element_wise", inputs=(Source("first"), Source("r")), params={"operation": "multiply"}),
            Layer("result", "template_output", inputs=(Source("second"),), params={"index": "0"}),
        ]
        templates.append(Template(f"part{number}", tuple(inside)))
        inputs = tuple(Source("abc"["pqr".index(port)]) for port in ports)
        layers.append(Layer(f"use{number}", "template", inputs=inputs, params={"template": f"part{number}"}))
        sources = (Source(read), Source(f"use{number}"))
        layers.append(Layer(f"sum{number}", "element_wise", inputs=sources, params={"operation": "add"}))
        read = f"sum{number}"
    graph = Graph([*layers, Layer("out", "output", inputs=(Source(read),))], templates=templates)
    found, _ = again(graph, REGISTRY, tmp_path)
    assert shown(list(found.graph)) == shown(list(graph))
    for template in templates:
        assert found.graph.templates[template.name].inputs == template.inputs


@pytest.mark.parametrize(
    ("nested", "last", "function"),
    [
        *(
            (nested, last, function)
            for nested, last in ((False, "own"), (True, ""))
            for function in ("", "tanh", "prelu")
        ),
        *((True, last, "tanh") for last in ("own", "shared")),
    ],
)
def test_instances_that_share_their_weights_come_back(nested: bool, last: str, function: str, tmp_path: Path) -> None:
    """Also where every learned layer has an activation in its statement; instances have the names of their results."""

    def conv(name: str, source: str) -> Layer:
        spec = ActivationSpec(function, {}) if function else None
        return Layer(name, "convolution", inputs=(Source(source),), params={"features": "4"}, activation=spec)

    def instance(name: str, source: str, template: str, shared: bool = False) -> Layer:
        return Layer(
            name,
            "template",
            inputs=(Source(source),),
            params={"template": template} | ({"shared_weights": "true"} if shared else {}),
        )

    def end(source: str) -> Layer:
        return Layer("y", "template_output", inputs=(Source(source),))

    x = Layer("x", "template_input")
    inner = Template("inner", (x, conv("k", "x"), end("k")))
    block = Template(
        "block", (x, instance("use", "x", "inner") if nested else conv("use", "x"), conv("c", "use"), end("c"))
    )
    layers = [Layer("in_", "input", params={"dims": "6x5x4"}), instance("one", "in_", "block", True)]
    layers += [Layer("half", "scale_shift", inputs=(Source("one"),), params={"scale": "0.5"})]
    layers += [instance("two", "half", "block", True)]
    layers += [instance("three", "two", "block", last == "shared")] if last else []
    layers += [Layer("out", "output", inputs=(Source(layers[-1].name),))]
    graph = Graph(layers, templates=[inner, block] if nested else [block])
    found, _ = again(graph, REGISTRY, tmp_path)
    assert shown(list(found.graph)) == shown(list(graph))
    assert [layer.params.get("shared_weights", "") for layer in found.graph if layer.type == "template"] == [
        layer.params.get("shared_weights", "") for layer in layers if layer.type == "template"
    ]
    assert found.weights.tensors.keys() == required_weights(Inference(graph, REGISTRY)).keys()
    assert found.report.warnings == ()
    assert generate_source(found.graph, REGISTRY, "Net") == (tmp_path / "model.py").read_text()


@pytest.mark.parametrize("kernel", ["4x2", "2x4", "1x6"])
def test_a_border_in_the_statement_of_a_convolution_belongs_to_it(kernel: str, tmp_path: Path) -> None:
    """PyTorch has no "same" for even kernels: rows and columns get another border, and each end of them."""
    image = Layer("in", "input", params={"dims": "9x8x3"})
    params = {"features": "3", "kernel": kernel, "padding": "same"}
    conv = Layer("c", "convolution", inputs=(Source("in"),), params=params)
    graph = Graph([image, conv, Layer("out", "output", inputs=(Source("c"),))])
    (tmp_path / "model.py").write_text(generate_source(graph, REGISTRY, "Net"))
    found = import_module(load_module("model.py:Net", tmp_path), [torch.rand(1, 3, 8, 9)], REGISTRY)
    assert [layer.type for layer in found.graph] == ["input", "convolution", "output"]
    assert found.verified(REGISTRY).report.agrees


@pytest.mark.parametrize(
    ("written", "edited"),
    [('mode="constant")', 'mode="constant", value=0.5)'), ("nn.Conv2d(", "nn.ConvTranspose2d(")],
    ids=["other values", "transposed"],
)
def test_a_border_in_the_statement_of_a_convolution_is_a_layer_if_it_cannot_have_it(
    written: str, edited: str, tmp_path: Path
) -> None:
    image = Layer("in", "input", params={"dims": "9x8x3"})
    conv = Layer(
        "c", "convolution", inputs=(Source("in"),), params={"features": "3", "kernel": "4x2", "padding": "same"}
    )
    graph = Graph([image, conv, Layer("out", "output", inputs=(Source("c"),))])
    source = generate_source(graph, REGISTRY, "Net")
    assert written in source
    (tmp_path / "model.py").write_text(source.replace(written, edited))
    found = import_module(load_module("model.py:Net", tmp_path), [torch.rand(1, 3, 8, 9)], REGISTRY)
    assert [layer.type for layer in found.graph][:2] == ["input", "padding"]
    assert found.verified(REGISTRY).report.agrees


def chain(*layers: tuple[str, dict[str, str], ActivationSpec | None], shape: str) -> Graph:
    """Layers in a row behind a tensor of this shape for each sample."""
    made = [Layer("x", "tensor_input", params={"shape": shape, "batch": "true", "dtype": "float32"})]
    for number, (kind, params, activation) in enumerate(layers):
        made.append(Layer(f"part{number}", kind, inputs=(Source(made[-1].name),), params=params, activation=activation))
    return Graph([*made, Layer("y", "output", inputs=(Source(made[-1].name),), params={"analysis_view": "tensor"})])


def activated(type: str, **params: str) -> tuple[str, dict[str, str], ActivationSpec | None]:
    return "fully_connected", {"features": "8", "flatten": "false"}, ActivationSpec(type, params)


SEQUENCES: dict[str, Graph] = {
    "transformers": chain(
        ("transformer_encoder_layer", {"heads": "2", "hidden": "12", "dropout": "0.25", "epsilon": "0.1"}, None),
        (
            "transformer_encoder_layer",
            {"heads": "4", "hidden": "6", "norm_first": "true", "activation_function": "gelu", "dropout": "0.0"}, None,
        ),
        ("positional_encoding", {"base": "500.0"}, None),
        ("positional_encoding", {"kind": "learned", "max_length": "33"}, None),
        shape="5,8",
    ),
    "activations": chain(
        activated("leaky_relu", negative_slope="0.25"), activated("elu", alpha="0.5"), activated("celu", alpha="2.5"),
        activated("gelu", approximate="tanh"), activated("softplus", beta="2.0", threshold="5.0"),
        activated("threshold", threshold="0.25", value="-1.0"), activated("prelu", per_channel="false"), activated("softmax", axis="2"),
        activated("hard_tanh", min_value="-0.5", max_value="0.75"), activated("softshrink", amount="0.125"),
        activated("glu", axis="2"), activated("silu"), activated("mish"), activated("log_softmax", axis="1"),
        shape="5,8",
    ),
    "values": chain(
        ("unary", {"function": "abs"}, None),
        ("reduce", {"operation": "mean", "axes": "2", "keep": "true"}, None), ("dropout", {"probability": "0.375"}, None),
        ("layer_normalization", {"axis": "-2", "epsilon": "0.25"}, None), ("expand", {"shape": "-1,-1,3"}, None),
        ("permute", {"axes": "0,2,1"}, None), ("slice", {"axis": "2", "start": "1", "end": "4", "step": "1"}, None),
        ("lstm", {"hidden": "4", "layers": "2", "bidirectional": "true"}, None),
        shape="5,8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_parameters_come_back(name: str, registry: Registry, tmp_path: Path) -> None:
    """Every layer and activation has the values that it was exported with."""
    graph = SEQUENCES[name]
    assert not errors(Inference(graph, registry).diagnostics())
    (tmp_path / "model.py").write_text(generate_source(graph, registry, "Net"))
    module = load_module("model.py:Net", tmp_path)
    found = import_module(module, [torch.rand(2, 5, 8)], registry)

    def values(layers: Graph) -> dict[str, object]:
        reads = {layer.name: registry.read(layer) for layer in layers if layer.type not in ("tensor_input", "output")}
        return {
            key: (
                read.operator and (read.operator.type, read.operator.values()),
                read.activation and read.activation.values(),
            )
            for key, read in reads.items()
        }

    assert values(found.graph) == values(graph)
    assert found.report.opaque == 0
