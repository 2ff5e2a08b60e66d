"""The table of converters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from designer.importers.pytorch.conversion import Conversion, TraceNode

Converter = Callable[[Conversion, TraceNode], Any]
CONVERTERS: dict[str, Converter] = {}


def converts(*operators: str) -> Callable[[Converter], Converter]:
    """Register a converter for operators of torch.ops.aten, in-place forms included.

    It returns the Value of the node, or a tuple for operators with several results. It raises UnsupportedError, ShapeError
    or ParamError if the library cannot express the node.
    """

    def register(function: Converter) -> Converter:
        for operator in operators:
            CONVERTERS[operator] = function
        return function

    return register
