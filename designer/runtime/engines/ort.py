"""The one place that imports ONNX Runtime."""

from __future__ import annotations

import re
from typing import Any

# Optimizers that change results: zeros of a padding become minus infinity, and any exponent counts as the square of a layer
# normalization. Our own models avoid both, imported operators do not.
WRONG = ("Pad_Fusion", "LayerNormFusionL1", "LayerNormFusionL2")
_NOISE = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : |/onnxruntime_src/\S+:\d+ .*?\) ")


def runtime() -> Any:
    """The module `onnxruntime`, whose telemetry `designer/__init__.py` switched off. Raises ImportError."""
    import onnxruntime

    return onnxruntime


def quantization() -> Any:
    """The package `onnxruntime.quantization`. Raises ImportError."""
    from onnxruntime import quantization

    return quantization


def reason_of(error: Exception) -> str:
    """The message of an exception of ONNX Runtime in one line, without its numbers and the lines of its sources."""
    text = str(error).strip()
    return _NOISE.sub(" ", text.splitlines()[0]).strip()[:300] if text else type(error).__name__
