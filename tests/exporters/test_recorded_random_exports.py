"""Random networks with templates, shared weights, losses and several inputs and outputs: all that is exported of them, as recorded.

The random numbers are the same in every run.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from pytorch_networks import node, seeded
from recorded import check_recorded, onnx_text, rounded

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import FROZEN, ActivationSpec, Layer
from designer.graph.template import Template
from designer.operators.registry import Registry
from exporters.interface import interface_of, precision_of
from exporters.mixed import formatted
from exporters.onnx import export_onnx
from exporters.pytorch import generate_source, project_files
from exporters.tensorrt import EngineOptions, _shapes

onnx = pytest.importorskip("onnx")

ACTIVE = ("relu", "prelu", "elu", "silu", "gelu")


def template(name: str, *layers: Layer, last: str, inputs: int = 1) -> Template:
    ports = [node(f"p{number}", "template_input") for number in range(inputs)]
    return Template(name, (*ports, *layers, node("end", "template_output", last)))


TEMPLATES = (
    template("my block", node("c", "convolution", "p0", features=6, activation=ActivationSpec("prelu", {})),
             node("n", "batch_normalization", "c"), last="n"),
    template("twice", node("a", "template", "p0", template="my block"), node("b", "template", "a", template="my block", shared_weights="true"),
             last="b"),
    template("gate", node("g", "convolution", "p1", features=6, kernel="1x1", activation=ActivationSpec("sigmoid", {})),
             node("m", "element_wise", "p0", "g", operation="multiply"), last="m", inputs=2),
)  # fmt: skip


def network(seed: int) -> Graph:
    """Layers of 6 channels that fit each other, behind an image or two, with one or two outputs and sometimes losses."""
    draw = Random(seed)
    names = [
        "x",
        "self",
        "a b",
        "in",
        "F",
        "out put",
        "class",
        "1st",
        "deep.er",
        "conv-1",
        "my_block",
        "y",
        "data",
        "mean",
    ]
    draw.shuffle(names)
    layers = [node(names.pop(), "input", dims=draw.choice(["16x12x3", "8x8x1"]), scale=2.0, tiling=draw.choice([1, 2]))]
    first = layers[0].name
    layers.append(node(names.pop(), "convolution", first, features=6, activation=ActivationSpec("relu", {})))
    usable = [layers[-1].name]
    if draw.random() < 0.4:
        layers.append(node(names.pop(), "tensor_input", shape="6,1,1"))
        usable.append(layers[-1].name)
    for number in range(draw.randint(3, 7)):
        name = names.pop() if names and draw.random() < 0.7 else f"l{number}"
        images = [
            item
            for item in usable
            if item != (layers[2].name if layers[2:] and layers[2].type == "tensor_input" else "")
        ]
        one, two = draw.choice(images[-3:]), draw.choice(usable)
        active = ActivationSpec(draw.choice(ACTIVE), {}) if draw.random() < 0.4 else None
        kind = draw.choice(
            ["conv", "block", "twice", "gate", "sum", "split", "norm", "down", "noise", "frozen", "mean", "shared"]
        )
        made = {
            "conv": node(name, "convolution", one, features=6, kernel=draw.choice(["3x3", "2x2"]), activation=active),
            "block": node(name, "template", one, template="my block", activation=active),
            "shared": node(name, "template", one, template="my block", shared_weights="true"),
            "twice": node(name, "template", one, template="twice"),
            "gate": node(name, "template", one, one, template="gate"),
            "sum": node(name, "element_wise", one, two, operation=draw.choice(["add", "multiply"]), activation=active),
            "split": node(name, "split", one, parts=2),
            "norm": node(name, "group_normalization", one, groups=2, activation=active),
            "down": node(name, "pooling", one),
            "noise": node(name, "noise", one),
            "frozen": replace(node(name, draw.choice(["depthwise_convolution", "template"]), one, template="my block"), attributes={FROZEN: "true"}),
            "mean": node(name, "global_pooling", one),
        }[kind]  # fmt: skip
        layers.append(made)
        if kind == "split":
            layers.append(node(f"{name}_2", "concatenation", f"{name}:y1", name))
            usable.append(f"{name}_2")
        elif kind not in ("down", "mean"):
            usable.append(name)
        else:
            layers.append(node(f"{name}_o", "output", name))
    layers.append(node("result", "output", usable[-1]))
    if draw.random() < 0.5:
        layers.append(node("wanted", "input", scale=0.5, dims=layers[0].params["dims"].rpartition("x")[0] + "x6"))
        end = next(
            item for item in reversed(usable) if item != (layers[2].name if layers[2].type == "tensor_input" else "")
        )
        layers.append(node("loss", draw.choice(["l1_loss", "mse_loss"]), end, "wanted", weight=0.5))
    return Graph(layers, templates=TEMPLATES, name=f"net {seed}")


def exported(seed: int, registry: Registry, path: Path) -> list[str]:
    graph = network(seed)
    lines = [f"=== network {seed}"]
    problems = [str(d) for d in Inference(graph, registry).diagnostics() if d.severity.name == "ERROR"]
    if problems:
        return [*lines, *problems]
    try:
        files = project_files(graph, registry, "Net")
    except DiagnosticError as error:
        return [*lines, str(error)]
    information = json.loads(files.pop("project.json"))
    for key in ("provenance", "files", "generator"):
        information.pop(key)
    lines += [f"{key} = {json.dumps(value)}" for key, value in information.items()]
    lines += [files["model.py"].decode(), files["losses.py"].decode() if information["losses"] else ""]
    chosen = sorted(layer.name for layer in graph if layer.type not in ("input", "output", "tensor_input"))[::2]
    try:
        part = generate_source(graph, registry, "Part", chosen).partition("class Part")[2]
        lines += [f"selection {chosen}", part]
    except DiagnosticError as error:
        lines.append(f"selection {chosen}: {error}")
    weights = Weights({key: np.full_like(array, 0.5) for key, array in seeded(graph, registry).tensors.items()})
    report = export_onnx(graph, registry, weights, path)
    lines += [onnx_text(onnx.load(path)).partition("graph")[2], f"{report.sizes}; left out: {report.left_out}"]
    interface = interface_of(report, graph, registry)
    lines += [f"{entry}" for entry in (*interface.inputs, *interface.outputs)]
    for options in (EngineOptions(), EngineOptions((2, 8), (24, 32), 4)):
        try:
            lines.append(str(_shapes(interface, options)))
        except DiagnosticError as error:
            lines.append(str(error))
    halves = dict.fromkeys([layer.name for layer in graph][1::3], "float32")
    model = formatted(onnx.load(path), "fp16", halves)
    kept = [n for n in model.model.graph.node if n.op_type == "Cast"]
    lines.append(f"{model.casts} casts: {[(n.name, n.input[0], n.output[0]) for n in kept]}")
    onnx.save(model.model, path)
    return [*lines, precision_of(path)]


def test_all_that_is_exported_of_random_networks(registry: Registry, tmp_path: Path) -> None:
    lines = [line for seed in range(18) for line in exported(seed, registry, tmp_path / "model.onnx")]
    assert sum(line.startswith("model = ") for line in lines) > 12
    check_recorded("random_exports.txt", rounded("\n".join([*lines, ""])))
