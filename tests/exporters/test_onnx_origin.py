"""Edits of imported documents: what counts as one, and which nodes of the file get their names back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import random, saved, small_network
from pytorch_networks import node
from template_networks import nested, seeded

from designer.files.weights import WeightKey, Weights
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx
from designer.importers.report import ImportReport, NodeOutcome, Outcome
from exporters import onnx_origin
from exporters.onnx_origin import Origin, origin_of

NOTHING = onnx.ModelProto()


def origin(graph: Graph, weights: Weights) -> Origin:
    return Origin(NOTHING, Imported(graph, weights, ImportReport("a file")))


def with_layer(graph: Graph, name: str, **changes: object) -> Graph:
    return Graph(
        [replace(layer, **changes) if layer.name == name else layer for layer in graph],
        templates=graph.templates.values(),
    )


def inside(graph: Graph, name: str, **changes: object) -> Graph:
    """The network with another layer in its template `residual`."""
    template = graph.templates["residual"]
    layers = tuple(replace(layer, **changes) if layer.name == name else layer for layer in template.layers)
    return Graph(
        graph, templates=[replace(template, layers=layers), *(t for t in graph.templates.values() if t is not template)]
    )


EDITS = {
    "nothing": (lambda graph: graph.copy(), True),
    "a position": (lambda graph: with_layer(graph, "head", position=(70, 80)), True),
    "an attribute": (lambda graph: with_layer(graph, "head", attributes={"color": "red"}), True),
    "a position in a template": (lambda graph: inside(graph, "conv_1", position=(70, 80)), True),
    "a parameter": (lambda graph: with_layer(graph, "head", params={"features": "8", "kernel": "5x5"}), False),
    "an activation": (lambda graph: with_layer(graph, "head", activation=ActivationSpec("relu")), False),
    "an input": (lambda graph: with_layer(graph, "out", inputs=graph["head"].inputs), False),
    "a type": (lambda graph: with_layer(graph, "head", type="transposed_convolution"), False),
    "a parameter in a template": (lambda graph: inside(graph, "conv_1", params={"features": "8", "kernel": "5x5"}), False),
    "a layer more": (lambda graph: Graph([*graph, Layer("more", "identity")], templates=graph.templates.values()), False),
    "a layer less": (lambda graph: Graph([x for x in graph if x.name != "out"], templates=graph.templates.values()), False),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_changes_the_computation_is_an_edit_of_the_document(edit, registry):
    change, unedited = EDITS[edit]
    graph = nested()
    weights = seeded(graph, registry)
    assert origin(graph, weights).is_unedited(change(graph), weights) is unedited


def test_a_weight_that_the_import_reads_otherwise_is_an_edit():
    one, other = WeightKey("a", "kernel"), WeightKey("b", "kernel")
    arrays = {one: np.array([1.0, np.nan], np.float32), other: np.array([3.0], np.float32)}
    graph = Graph([node("a", "identity")])
    found = origin(graph, Weights(arrays))
    for tensors, unedited in (
        (arrays, True),
        ({key: array.copy() for key, array in arrays.items()}, True),
        ({**arrays, WeightKey("c", "bias"): np.ones(1, np.float32)}, True),  # of a layer that the import does not have
        ({one: arrays[one]}, False),
        ({other: arrays[other]}, False),
        ({}, False),
        ({**arrays, other: np.array([4.0], np.float32)}, False),
        ({**arrays, one: np.array([1.0, 2.0], np.float32)}, False),
        ({**arrays, other: np.array([3.0, 3.0], np.float32)}, False),
    ):
        assert found.is_unedited(graph, Weights(tensors)) is unedited, tensors


def test_a_file_that_cannot_be_imported_any_more_has_no_origin(registry, tmp_path, monkeypatch):
    found = import_onnx(saved(small_network(), tmp_path), registry, ImportOptions())
    asked = []
    original = onnx_origin.import_proto
    monkeypatch.setattr(onnx_origin, "import_proto", lambda *arguments: asked.append(arguments) or original(*arguments))
    known = origin_of(found.graph, registry, found.weights)
    assert known is not None
    assert known.is_unedited(found.graph, found.weights)
    (_, path, _, options) = asked[0]
    assert path.name == found.graph.name
    assert options.sizes == {"image": (1, 3, 64, 64)}  # of the document, with its batch
    assert origin_of(Graph(found.graph, name="plain"), registry, found.weights) is None
    damaged = found.graph.copy()
    damaged.properties["onnx"] = "AAAA"
    assert origin_of(damaged, registry, found.weights) is None
    unknown = small_network()
    unknown.graph.node[0].op_type = "Conv"
    del unknown.graph.node[0].input[1:]
    monkeypatch.setattr(onnx_origin, "restored", lambda *_: unknown)
    assert origin_of(found.graph, registry, found.weights) is None


def made(kind, reads, gives, name, domain="", *, words="", **attributes):
    found = helper.make_node(kind, reads.split(), gives.split(), name=name, domain=domain, **attributes)
    if words:
        found.doc_string = f"about {words}"
        found.metadata_props.add(key="from", value=words)
    return found


def model(nodes, opset, domain=""):
    graph = helper.make_graph(nodes, "g", [], [])
    opsets = [helper.make_opsetid(domain, opset), helper.make_opsetid("org.example", 1)]
    return helper.make_model(graph, opset_imports=opsets)


# layer -> the node of the file, the exported node, and the exported node afterwards; None: it stays
CASES = {
    "conv": (
        made("Conv", "x w", "c", "/conv", words="conv", kernel_shape=[3, 3], strides=[1, 1]),
        made("Conv", "x w", "conv", "conv/Conv", strides=[1, 1], group=1),
        made("Conv", "x w", "conv", "/conv", words="conv", kernel_shape=[3, 3], strides=[1, 1]),
    ),
    "own": (
        made("Special", "x", "s", "/own", "org.example", words="own", alpha=2.0),
        made("Special", "x", "own", "own/Special", "org.example", beta=1.0),
        made("Special", "x", "own", "/own", "org.example", words="own", alpha=2.0),
    ),
    "soft": (  # opset 13 has another axis by default
        made("Softmax", "x", "soft_out", "/soft"),
        made("Softmax", "x", "soft", "soft/Softmax", axis=2),
        made("Softmax", "x", "soft", "/soft", axis=2),
    ),
    "clip": (
        made("Clip", "x low", "cl", "/clip", words="clip"),
        made("Clip", "x low high", "clip", "clip/Clip"),
        made("Clip", "x low high", "clip", "/clip", words="clip"),
    ),
    "cut": (
        made("TopK", "x k", "best places", "/cut", axis=1),
        made("TopK", "x k", "cut cut:y1", "cut/TopK", axis=2),
        made("TopK", "x k", "cut cut:y1", "/cut", axis=1),
    ),
    "domain": (made("Gelu", "x", "ge", "/gelu", "com.microsoft"), made("Gelu", "x", "domain", "domain/Gelu"), None),
    "type": (made("Relu", "x", "re", "/relu"), made("LeakyRelu", "x", "type", "type/LeakyRelu"), None),
    "edited": (made("Elu", "x", "el", "/elu"), made("Elu", "x", "edited", "edited/Elu"), None),
    "gone": (None, made("Selu", "x", "gone", "gone/Selu"), None),
}  # fmt: skip
SEVERAL = [made("Mul", "x y", "m", "several/Mul"), made("Add", "m x", "several", "several/Add")]
SAME = [made("Tanh", "x", "t1", "/same"), made("Tanh", "x", "t2", "/same")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_unedited_nodes_get_their_names_attributes_and_metadata_back(domain):
    """Not nodes of another operator or opset, and not those that are several nodes or names in one of the models."""
    names = {layer: case[0].name for layer, case in CASES.items() if case[0] is not None} | {"gone": "/gone"}
    outcomes = [NodeOutcome(name, "", Outcome.KNOWN, (layer,)) for layer, name in names.items()]
    outcomes += [
        NodeOutcome("/several", "Mul", Outcome.KNOWN, ("several",)),
        NodeOutcome("/same", "Tanh", Outcome.KNOWN, ("same",)),
        NodeOutcome("/pair", "Sigmoid", Outcome.KNOWN, ("pair", "second")),
        NodeOutcome("/twice", "Sin", Outcome.KNOWN, ("twice",)),
        NodeOutcome("/again", "Cos", Outcome.KNOWN, ("twice",)),
    ]
    others = [
        made("Mul", "x y", "m0", "/several"), *SAME, made("Sigmoid", "x", "p0", "/pair"), made("Sin", "x", "si", "/twice")
    ]  # fmt: skip
    alone = [
        made("Tanh", "x", "same", "same/Tanh"),
        made("Sigmoid", "x", "pair", "pair/Sigmoid"),
        made("Sin", "x", "twice", "twice/Sin"),
    ]
    file = model([*(case[0] for case in CASES.values() if case[0] is not None), *others], 11, domain)
    exported = model([*(case[1] for case in CASES.values()), *SEVERAL, *alone], 20)
    report = ImportReport("a file", outcomes=tuple(outcomes))
    kept = {*CASES, "several", "same", "pair", "second", "twice"} - {"edited"}
    values = Origin(file, Imported(Graph([]), Weights(), report))._restore_nodes(exported, kept)
    assert values == {"conv": "c", "own": "s", "soft": "soft_out", "clip": "cl", "cut": "best", "cut:y1": "places"}
    expected = [after if after is not None else before for _, before, after in CASES.values()]
    for found, wanted in zip(exported.graph.node, [*expected, *SEVERAL, *alone], strict=True):
        if not found.doc_string:
            found.ClearField("doc_string")  # an empty text that was set is none
        assert found == wanted


def test_an_edited_file_keeps_the_newer_ir_version_and_its_opset(registry, tmp_path):
    file, exported = model([], 17), model([], 13)
    entries = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
    file.graph.node.extend([made("Relu", "x", "r", "/relu"), made("Relu", "r", "q", "/relu2")])
    file.graph.initializer.extend(numpy_helper.from_array(random(2, 3), name) for name in ("w", "v"))
    exported.graph.node.extend([made("Relu", "x", "a", "a/Relu"), made("Relu", "a", "b", "b/Relu")])
    exported.graph.input.extend(entries)
    exported.graph.initializer.append(numpy_helper.from_array(random(2, 3), "a/kernel"))
    exported.graph.initializer.append(numpy_helper.from_array(random(3, 2), "b/kernel"))  # was transposed
    report = ImportReport(
        "a file",
        outcomes=tuple(
            NodeOutcome(f"/relu{n}", "Relu", Outcome.KNOWN, (layer,)) for n, layer in (("", "a"), ("2", "b"))
        ),
        weights={"w": "a.kernel", "v": "b.kernel", "u": "c.kernel"},
    )
    layers = [
        node("a", "activation", activation=ActivationSpec("relu")),
        node("b", "activation", "a", activation=ActivationSpec("relu")),
    ]
    for mine, theirs in ((8, 9), (9, 8)):
        file.ir_version, made_ = mine, onnx.ModelProto()
        made_.CopyFrom(exported)
        made_.ir_version = theirs
        graph = Graph(layers)
        edited = graph.copy()
        edited.apply(commands.set_activation(edited, ["b"], ActivationSpec("elu")))
        Origin(file, Imported(graph, Weights(), report)).restore_names(made_, edited, registry)
        assert (made_.ir_version, made_.opset_import[0].version) == (9, 17)
        assert [(n.name, n.output[0]) for n in made_.graph.node] == [("/relu", "r"), ("b/Relu", "b")]
        assert list(made_.graph.node[1].input) == ["r"]
        assert [tensor.name for tensor in made_.graph.initializer] == ["w", "b/kernel"]
