"""The one place that imports ONNX Runtime."""

from __future__ import annotations

from typing import Any


def runtime() -> Any:
    """The module `onnxruntime`, whose telemetry `designer/__init__.py` switched off. Raises ImportError."""
    import onnxruntime

    return onnxruntime


def quantization() -> Any:
    """The package `onnxruntime.quantization`. Raises ImportError."""
    from onnxruntime import quantization

    return quantization
