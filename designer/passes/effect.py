"""Comparison of a network before and after graph passes, on the user's input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.passes.passes import Optimized
from designer.runtime.api import RunOptions
from designer.runtime.edit_effect import EditEffect, edit_effect
from designer.runtime.network import input_layers
from designer.runtime.session import Session


def pass_effect(
    graph: Graph,
    optimized: Optimized,
    registry: Registry,
    weights: Weights,
    options: RunOptions,
    files: Mapping[str, Path] | None = None,
) -> EditEffect:
    """How much the outputs differ after passes. Inputs without a file get noise."""
    sessions = [
        Session(graph, registry, weights, options),
        Session(optimized.graph, registry, optimized.weights, options),
    ]
    for session in sessions:
        _feed(session, files or {})
    return edit_effect(*sessions)


def _feed(session: Session, files: Mapping[str, Path]) -> None:
    for layer in files:
        session.set_input_file(layer, files[layer])
    for layer in input_layers(session.graph, session.inference):
        state = session.inference.states[layer]
        if layer not in files and state.outputs is not None:
            values = np.random.default_rng(0).random(state.outputs[0].concrete(), np.float32)
            session.set_input(layer, values, is_image=False)
