"""How operators of torch become layers of the library, by subject."""

from __future__ import annotations

from designer.importers.pytorch.nodes import activations, arithmetic, learned, pooling, reshaping
from designer.importers.pytorch.nodes.table import CONVERTERS

__all__ = ["CONVERTERS", "activations", "arithmetic", "learned", "pooling", "reshaping"]
