"""Export of imported ONNX files: the file itself if its document was not edited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_proto
from designer.importers.onnx.origin import restored
from designer.operators.api import Role
from designer.operators.registry import Registry
from designer.runtime.network import role_of, type_of

if TYPE_CHECKING:
    from onnx import ModelProto


def unedited_model(graph: Graph, registry: Registry, weights: Weights) -> ModelProto | None:
    """The imported model with the present weights, if the document is what its import makes; else None.

    Positions, frames and values of weights do not count as edits.
    """
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
        found = import_proto(model, Path(graph.name), registry, ImportOptions(sizes=sizes))
    except DiagnosticError:
        return None
    if _computed(found.graph) != _computed(graph):
        return None
    kept = all(
        key in weights.tensors and np.array_equal(array, weights.tensors[key], equal_nan=True)
        for key, array in found.weights.tensors.items()
    )
    return model if kept else None


def _computed(graph: Graph) -> dict[str, dict[str, Layer]]:
    """The layers of a network and of its templates, as far as they change what it computes."""
    inside = {name: {layer.name: _bare(layer) for layer in item.layers} for name, item in graph.templates.items()}
    return {**inside, "": {layer.name: _bare(layer) for layer in graph}}


def _bare(layer: Layer) -> Layer:
    """What a layer computes."""
    return replace(layer, position=(0, 0), attributes={}, children=())
