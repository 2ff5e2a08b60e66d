"""How nodes of ONNX become layers of the library: a converter for each operator, by subject."""

from __future__ import annotations

from designer.importers.onnx.nodes import (
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
from designer.importers.onnx.nodes.table import CONVERTERS

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
