"""What is imported, compared with recorded texts: layers with their parameters, names, templates, frames and the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from document_texts import layer_text
from onnx_models import random, saved, small_network
from onnx_networks import NETWORKS
from onnx_node_cases import CASES, KEPT, REFUSED
from recorded import check_files, check_recorded, graph_lines, rounded

from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import Template
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx, import_proto
from designer.importers.onnx.original import OnnxOriginal
from designer.importers.report import Outcome
from designer.operators.library.development.opaque import unpacked
from designer.operators.registry import Registry

ENDS = ("input", "tensor_input", "output")
TORCH_CALLS = (
    "vectors",
    "merged",
    "kept_merged",
    "fixed_vectors",
    "kept_vectors",
    "images",
    "kept_images",
    "fixed_images",
    "further_vectors",
    "further_images",
)
TORCH = ("diffusion", "lstm", "shared", "unet", "vit")


def placed_text(layer: Layer, registry: Registry) -> str:
    """A layer with its position; the model that an opaque layer keeps is printed below it."""
    packed = layer.params.get("model", "")
    plain = replace(layer, params={key: text for key, text in layer.params.items() if key != "model"})
    inner = model_lines(onnx.load_from_string(unpacked(packed))) if packed else []
    return "\n".join([f"  {layer_text(plain, registry)} at {layer.position}", *(f"      {line}" for line in inner)])


def model_lines(model: onnx.ModelProto) -> list[str]:
    """A model, with the versions of domains that do not depend on the installed packages."""
    opsets = [f"{entry.domain} {entry.version}" for entry in model.opset_import if entry.domain]
    return [*opsets, *graph_lines(model.graph)]


def report_text(found: Imported) -> str:
    """The report without what depends on the installed packages, and how the original is run."""
    report, original = found.report, found.original
    assert isinstance(original, OnnxOriginal)
    text = [f"{report.source} by {report.producer!r}, opset {report.opset}: {report.counts()}"]
    text += [
        f"  {item.node!r} {item.type}: {item.outcome.value} {item.layers} {item.reason}" for item in report.outcomes
    ]
    text += [f"  {name} is {place}" for name, place in report.weights.items()]
    text += [f"  {name} {count} times" for name, count in report.templates.items()]
    text += [f"  warning: {warning}" for warning in report.warnings]
    text += [f"  input {name} is {layer}" for name, layer in original.inputs.items()]
    text += [f"  output {name} is {layer}" for name, layer in original.outputs.items()]
    text += [f"  without elements: {name} {array.shape} {array.dtype}" for name, array in original.empty.items()]
    text += [f"  compared at {dict(case)}" for case in original.cases()]
    return "\n".join(text)


def lines(graph: Graph | Template, registry: Registry) -> Iterator[str]:
    layers = graph.layers if isinstance(graph, Template) else list(graph)
    frames = graph.frames if isinstance(graph, Template) else graph.frames.values()
    yield from (f"  {layer_text(layer, registry)}" for layer in layers)
    yield from (f"  frame {frame.title!r} {frame.rect}" for frame in frames)


def document_text(found: Imported, registry: Registry) -> str:
    """The document, the shapes of its weights, and the report without what depends on the installed packages."""
    graph, report = found.graph, found.report
    text = [graph.name, *lines(graph, registry)]
    for template in graph.templates.values():
        text += [f"template {template.name}", *lines(template, registry)]
    text += [f"weight {key.layer}.{key.tensor}: {array.shape}" for key, array in sorted(found.weights.tensors.items())]
    text += [f"{name} is {place}" for name, place in report.weights.items()]
    text += [report.counts(), f"{report.templates}", *report.warnings]
    kept = (item for item in report.outcomes if item.outcome is not Outcome.KNOWN)
    text += [f"{item.type}: {item.outcome.value} {', '.join(item.layers)} {item.reason}" for item in kept]
    return rounded("\n".join([*text, ""]))


def blocks() -> onnx.ModelProto:
    """Three modules that are equal but for their weights, the last of which has those of the first, in nested scopes."""
    nodes, weights = [], {}
    for place, own in enumerate(("a", "b", "a")):
        scope = f"/stage/block.{place}"
        for name, read, made in (("first", f"x{place}", f"c{place}"), ("second", f"r{place}", f"d{place}")):
            weights |= {f"{own}.{name}.weight": random(4, 4, 3, 3), f"{own}.{name}.bias": random(4)}
            reads = [read, f"{own}.{name}.weight", f"{own}.{name}.bias"]
            nodes.append(onnx.helper.make_node("Conv", reads, [made], f"{scope}/{name}/Conv", pads=[1, 1, 1, 1]))
            if name == "first":
                nodes.append(onnx.helper.make_node("Relu", [made], [f"r{place}"], f"{scope}/Relu"))
        nodes.append(onnx.helper.make_node("Add", [f"d{place}", f"x{place}"], [f"x{place + 1}"], f"{scope}/Add"))
    entry = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4, "height", "width"])
        for name in ("x0", "x3")
    ]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(nodes, "blocks", entry[:1], entry[1:], stored)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)


ONNX = {"blocks": blocks, "small": small_network}


@pytest.mark.parametrize("name", ONNX)
def test_the_document_of_an_onnx_model(name: str, registry: Registry) -> None:
    found = import_proto(ONNX[name](), Path("model.onnx"), registry, ImportOptions())
    check_recorded(f"imports/onnx_{name}.txt", document_text(found, registry))


@pytest.mark.parametrize("name", TORCH)
def test_the_document_of_a_torch_module(name: str, registry: Registry) -> None:
    pytest.importorskip("torch")
    import torch_models

    from designer.importers.pytorch.importing import import_module

    check_recorded(
        f"imports/torch_{name}.txt", document_text(import_module(*torch_models.build(name), registry), registry)
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_in_the_forms_of_exporters(name: str, registry: Registry, tmp_path: Path) -> None:
    """The document with positions, frames and kept nodes, the report, and whether it computes the same."""
    found = import_onnx(saved(NETWORKS[name](), tmp_path), registry, ImportOptions())
    graph = found.graph
    text = [graph.name, *(placed_text(layer, registry) for layer in graph)]
    text += [f"  frame {key} {frame.title!r} {frame.rect}" for key, frame in graph.frames.items()]
    for template in graph.templates.values():
        text += [f"template {template.name}", *(placed_text(layer, registry) for layer in template.layers)]
    text += [f"property {name} of {len(value) > 100}" for name, value in graph.properties.items()]
    text += [
        f"weight {key.layer}.{key.tensor}: {array.shape} {float(array.sum()):.4f}"
        for key, array in sorted(found.weights.tensors.items())
    ]
    check_recorded(f"imports/onnx/{name}.txt", rounded("\n".join([*text, report_text(found), ""])))
    report = found.verified(registry).report
    if name == "domains":
        assert report.not_compared_because.startswith("ONNX Runtime cannot run")
    else:
        assert report.max_rel_difference is not None, report.not_compared_because
        assert report.max_rel_difference < 1e-5


def test_the_layers_of_single_onnx_nodes(registry: Registry) -> None:
    text = []
    for case in (*CASES, *KEPT, *(case for case, _ in REFUSED)):
        found = import_proto(case.model(), Path("node.onnx"), registry, ImportOptions())
        made = [layer_text(layer, registry) for layer in found.graph if layer.type not in ENDS]
        reasons = [item.reason for item in found.report.outcomes if item.reason]
        text += [f"{case} | {' | '.join(line for line in made if ': opaque(' not in line)}{'; '.join(reasons)}"]
    check_recorded("imports/onnx_nodes.txt", rounded("\n".join([*text, ""])))


def test_no_other_import_is_recorded() -> None:
    names = [*(f"onnx_{name}" for name in (*ONNX, "nodes")), *(f"torch_{name}" for name in TORCH)]
    own = [
        "bad_onnx.txt",
        *(f"torch_many_{name}.txt" for name in TORCH_CALLS),
        "onnx_changed_patterns.txt",
        "onnx_groups.txt",
        "random_modules.txt",
        "onnx_open_nodes.txt",
        "onnx_values.txt",
        "onnx_versions.txt",
        "torch_broken.txt",
        "torch_calls.txt",
        "torch_whole.txt",
        *(f"onnx/{name}.txt" for name in NETWORKS),
    ]
    check_files("imports", [*own, *(f"{name}.txt" for name in names)])
