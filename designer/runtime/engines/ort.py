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


def session_options(severity: int) -> Any:
    """Options of a session that logs what has at least this severity (0 to 4), and computes INT8 as it is defined.

    Without the option, sums of products saturate on x86 processors that lack VNNI.
    """
    options = runtime().SessionOptions()
    options.log_severity_level = severity
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def quantization() -> Any:
    """The package `onnxruntime.quantization`. Raises ImportError."""
    from onnxruntime import quantization

    return quantization


def reason_of(error: Exception) -> str:
    """The message of an exception of ONNX Runtime in one line, without its numbers and the lines of its sources."""
    text = str(error).strip()
    return _NOISE.sub(" ", text.splitlines()[0]).strip()[:300] if text else type(error).__name__
