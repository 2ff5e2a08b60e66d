"""Export of variants: what is done to the ONNX model of a network for the number formats of a variant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from designer.files.variants import Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.precision.variants import INT8, RunnableVariant
from designer.runtime.engines.forms import TENSORRT
from designer.runtime.number_formats import FORMATS, OF_PRECISION
from designer.texts import tr
from exporters.int8 import int8_model
from exporters.mixed import formatted
from exporters.onnx import export_onnx


def variant_model(ready: RunnableVariant, registry: Registry, variant: Variant) -> bytes:
    """The ONNX model of a variant as it is exported. Raises DiagnosticError as `variant_conversion` and `export_onnx`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(ready.graph, registry, ready.weights, path, variant_conversion(variant, ready.graph, registry))
        return path.read_bytes()


def variant_conversion(
    variant: Variant | None, graph: Graph, registry: Registry, *, tensorrt: bool = False
) -> Callable[[Any], Any] | None:
    """What `export_onnx` does to the model of a variant, whose network is `graph`; None if it stays in FP32.

    With `tensorrt` the model is in the form that TensorRT reads. Raises DiagnosticError for integers that were not calibrated.
    """
    if variant is None or (variant.precision == "fp32" and not variant.formats):
        return None
    if variant.precision == INT8:
        if variant.calibration is not None and tensorrt:
            variant = replace(variant, calibration=replace(variant.calibration, form=TENSORRT))
        return lambda model: int8_model(model, graph, registry, variant)
    precision, formats = variant.precision, dict(variant.formats)
    if precision not in OF_PRECISION or any(FORMATS[name].is_integer for name in formats.values()):
        raise DiagnosticError.of(
            "not-in-onnx",
            tr("the variant '{name}' has layers in integer formats, which are emulated here only", name=variant.name),
            remedy=tr("choose FP16, BF16 or a calibrated INT8 variant"),
        )
    return lambda model: formatted(model, precision, formats, native=tensorrt).model
