"""The one place that imports ONNX Runtime."""

from __future__ import annotations

from typing import Any


def runtime() -> Any:
    """The module `onnxruntime`. Raises ImportError where it is not installed.

    `designer/__init__.py` switched its telemetry off before.
    """
    import onnxruntime

    return onnxruntime
