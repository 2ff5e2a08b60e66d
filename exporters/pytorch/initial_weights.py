"""The trained weights of a document as the state dict of its generated network, to begin with."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from designer.files.atomic import write_atomic
from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from exporters.pytorch.losses import losses_of
from exporters.pytorch.source import network_module

INITIAL_WEIGHTS = "initial_weights.pt"


def export_initial_weights(graph: Graph, registry: Registry, weights: Weights, project: Path) -> Path:
    """Write complete weights to an exported project, for `train.py --from-weights` and `infer.py --weights`; returns the file.

    Raises DiagnosticError if it cannot be written.
    """
    import torch

    losses = losses_of(graph, registry)
    module = network_module(graph, registry, taps=losses.taps if losses is not None else (), name="Network")
    state = {
        bound.key: torch.from_numpy(np.array(weights.tensors[WeightKey(bound.layer, bound.tensor)]))
        for bound in module.program.weights
    }
    stream = BytesIO()
    torch.save(state, stream)
    write_atomic(project / INITIAL_WEIGHTS, stream.getvalue())
    return project / INITIAL_WEIGHTS
