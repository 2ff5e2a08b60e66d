"""The table of converters."""

from __future__ import annotations

from collections.abc import Callable

from designer.importers.onnx.conversion import Conversion, OnnxOp

Converter = Callable[[Conversion, OnnxOp], None]
CONVERTERS: dict[tuple[str, str], Converter] = {}  # (domain, operator)
PATTERNS = "layerwright"  # domain of operations that are recognized patterns of several nodes


def converts(*op_types: str, domain: str = "") -> Callable[[Converter], Converter]:
    """Register a converter. It adds layers and raises UnsupportedError, ShapeError or ParamError if it cannot."""

    def register(function: Converter) -> Converter:
        for op_type in op_types:
            CONVERTERS[domain, op_type] = function
        return function

    return register
