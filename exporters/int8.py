"""Export of networks to INT8 ONNX files, calibrated on a folder of images."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from designer.files.atomic import write_atomic
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.precision.image_set import ImageSet, read_image_set
from designer.precision.int8 import Calibration, Int8Result, Judge, Quantizer, quantize
from designer.runtime.api import Progress
from designer.runtime.engines.forms import ONNX_RUNTIME
from designer.runtime.engines.onnx_model import serialized
from designer.runtime.input_data import Extent
from exporters.onnx import ONNX_MODELS, check_model, export_onnx

IMAGES = 32


@dataclass(frozen=True)
class Int8Request:
    """What to quantize for: a folder of images, the runtime, and the PSNR in dB against FP32 that must be reached."""

    images: Path
    count: int = IMAGES
    size: Extent | None = None  # height, width; None: those of the input
    calibration: Calibration = field(default_factory=Calibration)
    form: str = ONNX_RUNTIME
    budget_db: float | None = None


@dataclass(frozen=True)
class Int8Report:
    """What was written, and on which images it was calibrated and measured."""

    request: Int8Request
    images: ImageSet
    result: Int8Result
    bytes: int
    bytes_fp32: int

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values; a PSNR of None means equal images."""
        request, result = self.request, self.result
        return {
            "precision": "int8",
            "form": request.form,
            "psnr_db": _number(result.psnr_db),
            "budget_db": request.budget_db,
            "budget_met": result.met,
            "quantized": list(result.quantized),
            "kept": [{"layer": layer, "reason": reason} for layer, reason in result.kept.items()],
            "sensitivity": [
                {"layer": item.layer, "alone_db": _number(item.alone_db), "without_db": _number(item.without_db)}
                for item in result.sensitivity
            ],
            "calibration": {
                "method": request.calibration.method,
                "percentile": request.calibration.percentile if request.calibration.method == "percentile" else None,
                "size": list(_size(self.images)),
                "images": list(self.images.names),
                "skipped": [{"file": name, "reason": reason} for name, reason in self.images.skipped.items()],
            },
            "bytes": self.bytes,
            "bytes_fp32": self.bytes_fp32,
        }


def export_int8(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    path: Path,
    request: Int8Request,
    progress: Progress | None = None,
) -> Int8Report:
    """Write an INT8 model in the QDQ form to `path` atomically; it passes `onnx.checker`.

    Raises DiagnosticError if the network cannot be exported or quantized, or there is no image to calibrate with.
    """
    import onnx

    ONNX_MODELS.writer(path)  # rejects other suffixes before anything runs
    images = read_image_set(
        Inference(deploy(graph, registry), registry), request.images, count=request.count, size=request.size
    )
    with tempfile.TemporaryDirectory() as folder:
        plain = export_onnx(graph, registry, weights, Path(folder) / "fp32.onnx")
        model = onnx.load(plain.path)
    stored = {tensor.name for tensor in model.graph.initializer}
    (name,) = (
        entry.name for entry in model.graph.input if entry.name not in stored
    )  # imported models keep their names
    feeds = [{name: array} for one in images.feeds for array in one.values()]
    quantizer = Quantizer(model, feeds, request.calibration, form=request.form, progress=progress)
    result = quantize(quantizer, Judge(model, feeds), request.budget_db, progress)
    check_model(result.model, graph.name)
    data = serialized(result.model)
    write_atomic(path, data)
    return Int8Report(request, images, result, len(data), plain.bytes)


def _number(db: float) -> float | None:
    return round(db, 3) if isfinite(db) else None


def _size(images: ImageSet) -> Extent:
    (array, *_) = images.feeds[0].values()
    return array.shape[2], array.shape[3]
