"""Layers of the networks in these tests."""

from __future__ import annotations

from designer.graph.model import ActivationSpec, Layer, Source

RELU = ActivationSpec("relu", {"alpha": "0.0"})


def layer_(name, type_, inputs="", activation=None, **params):
    sources = tuple(Source.parse(s) for s in inputs.split(",") if s)
    return Layer(name, type_, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=activation)
