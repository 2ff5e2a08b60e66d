"""How nodes of ONNX become layers of the library: a converter for each operator, by subject."""

from __future__ import annotations

from importers.onnx.nodes import (
    activations,
    arithmetic,
    attention,
    indexing,
    learned,
    losses,
    pooling,
    recurrent,
    reshaping,
    resizing,
)
from importers.onnx.nodes.table import CONVERTERS

__all__ = [
    "CONVERTERS",
    "activations",
    "arithmetic",
    "attention",
    "indexing",
    "learned",
    "losses",
    "pooling",
    "recurrent",
    "reshaping",
    "resizing",
]
