"""Patterns of nodes that exporters write for one layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from importers.onnx.conversion import OnnxOp


@dataclass
class Patterns:
    """The nodes that belong to patterns, by identity. The last node of each has the operation, the others None."""

    replaced: dict[int, OnnxOp | None] = field(default_factory=dict)


def find_patterns(graph: Any) -> Patterns:
    return Patterns()
