"""Export of imported ONNX files: the file itself if its document was not edited, else with the names of its unedited parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_proto
from designer.importers.onnx.origin import restored
from designer.importers.onnx.versions import with_opset
from designer.operators.api import Role
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.runtime.network import role_of, type_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """The file that a document was imported from, with the present weights, and what its import makes."""

    model: ModelProto
    imported: Imported

    def is_unedited(self, graph: Graph, weights: Weights) -> bool:
        """Whether the document is what the import makes. Positions, frames and values of weights do not count as edits."""
        if _computed(self.imported.graph) != _computed(graph):
            return False
        return all(
            key in weights.tensors and np.array_equal(array, weights.tensors[key], equal_nan=True)
            for key, array in self.imported.weights.tensors.items()
        )

    def restore_names(self, exported: ModelProto, graph: Graph, registry: Registry) -> None:
        """Give the parts of an exported model that were not edited their names, attributes and metadata in the file.

        Nodes keep them whose layer has the type and parameters that it was imported with, and is one node in both models. The
        opset is that of the file if the operators are the same there.
        """
        model, report = self.model, self.imported.report
        for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            setattr(exported, name, getattr(model, name))
        with_opset(exported, _version(model))
        exported.ir_version = max(exported.ir_version, model.ir_version)
        exported.graph.name = model.graph.name
        exported.graph.doc_string = model.graph.doc_string
        # those of the export come last: the scale of an input and the provenance in an earlier export are outdated
        entries = {entry.key: entry.value for entry in (*model.metadata_props, *exported.metadata_props)}
        del exported.metadata_props[:]
        for key, value in entries.items():
            exported.metadata_props.add(key=key, value=value)
        kept = _unedited_layers(self.imported.graph, graph, registry)
        values = self._restore_nodes(exported, kept)
        stored = {tensor.name: tensor for tensor in model.graph.initializer}
        tensors = {tensor.name: tensor for tensor in exported.graph.initializer}
        for name, place in report.weights.items():
            layer, _, tensor = place.rpartition(".")
            found = tensors.get(f"{layer}/{tensor}")
            if found is not None and name in stored and found.dims == stored[name].dims:
                values[found.name] = name
        _rename(exported.graph, values)

    def _restore_nodes(self, exported: ModelProto, kept: set[str]) -> dict[str, str]:
        """Restore names, attributes and metadata of nodes; the result maps names of values to those in the file."""
        versions = [_version(self.model), _version(exported)]
        originals = _unique(self.model.graph.node, lambda node: node.name)
        nodes = _unique(exported.graph.node, lambda node: node.name.partition("/")[0])
        owners = _unique(self.imported.report.outcomes, lambda item: item.layers[0] if len(item.layers) == 1 else "")
        values: dict[str, str] = {}
        for layer in kept & nodes.keys() & owners.keys():
            node, original = nodes[layer], originals.get(owners[layer].node)
            if original is None or (node.op_type, node.domain) != (original.op_type, original.domain):
                continue
            if len(node.input) == len(original.input) and len({_since(node, version) for version in versions}) == 1:
                del node.attribute[:]
                node.attribute.extend(original.attribute)
            node.name, node.doc_string = original.name, original.doc_string
            node.metadata_props.extend(original.metadata_props)
            values.update(zip(node.output, original.output, strict=False))
        return values


def origin_of(graph: Graph, registry: Registry, weights: Weights) -> Origin | None:
    """The file that a document was imported from; None if it was not, or cannot be imported any more."""
    model = restored(graph, weights)
    if model is None:
        return None
    inference = Inference(graph, registry)
    sizes = {
        name: type_of(inference, Source(name)).concrete()
        for name in graph.layers
        if role_of(inference, name) is Role.INPUT
    }
    try:
        return Origin(model, import_proto(model, Path(graph.name), registry, ImportOptions(sizes=sizes)))
    except DiagnosticError:
        return None


def _unedited_layers(before: Graph, after: Graph, registry: Registry) -> set[str]:
    """The layers inside and outside of templates that have the same type, parameters and activation in both graphs."""
    one, other = (inline(graph, registry).layers for graph in (before, after))
    return {
        name
        for name, layer in one.items()
        if name in other and _bare(replace(layer, inputs=())) == _bare(replace(other[name], inputs=()))
    }


def _unique(items: Iterable[T], key: Callable[[T], str]) -> dict[str, T]:
    """Items by a key that no other item has; not those whose key is empty."""
    found: dict[str, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return {name: same[0] for name, same in found.items() if name and len(same) == 1}


def _version(model: ModelProto) -> int:
    return next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def _since(node: NodeProto, version: int) -> int:
    """The version in which the operator of a node got its present form; 0 for other domains."""
    from onnx import defs

    try:
        return int(defs.get_schema(node.op_type, version, node.domain).since_version)
    except defs.SchemaError:
        return 0


def _rename(graph: GraphProto, values: Mapping[str, str]) -> None:
    """Rename values, except where the name is taken."""
    taken = {entry.name for entry in (*graph.input, *graph.output, *graph.initializer)}
    taken |= {name for node in graph.node for name in (*node.input, *node.output)}
    ends = {entry.name for entry in (*graph.input, *graph.output)}
    chosen = {old: new for old, new in values.items() if new and old not in ends and new not in taken}
    for node in graph.node:
        node.input[:] = [chosen.get(name, name) for name in node.input]
        node.output[:] = [chosen.get(name, name) for name in node.output]
    for entry in (*graph.initializer, *graph.value_info):
        entry.name = chosen.get(entry.name, entry.name)


def _computed(graph: Graph) -> dict[str, dict[str, Layer]]:
    """The layers of a network and of its templates, as far as they change what it computes."""
    inside = {name: {layer.name: _bare(layer) for layer in item.layers} for name, item in graph.templates.items()}
    return {**inside, "": {layer.name: _bare(layer) for layer in graph}}


def _bare(layer: Layer) -> Layer:
    """What a layer computes."""
    return replace(layer, position=(0, 0), attributes={}, children=())
