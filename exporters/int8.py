"""Export of networks to INT8 ONNX files, calibrated on a folder of images."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.files.atomic import write_atomic
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.precision.image_set import ImageSet
from designer.precision.int8 import Fidelity, Int8Result, calibrate, quantize, quantized_variant
from designer.runtime.api import Progress
from designer.runtime.engines.onnx_model import serialized
from designer.runtime.input_data import Extent
from designer.runtime.number_formats import FLOAT32, FORMATS, format_of
from exporters.onnx import ONNX_MODELS, check_model, export_onnx
from exporters.onnx_formats import with_formats

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class Int8Report:
    """What was quantized and how. `format` is that of the layers that are not INT8; `bytes` are those of the file."""

    recipe: CalibrationRecipe
    budget_db: float | None
    format: str
    images: ImageSet
    result: Int8Result
    bytes: int
    bytes_fp32: int

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values; a PSNR of None means equal images."""
        recipe, result = self.recipe, self.result
        return {
            "precision": "int8",
            "form": recipe.form,
            "psnr_db": _number(result.psnr_db),
            "budget_db": self.budget_db,
            "budget_met": result.met,
            "quantized": list(result.quantized),
            "kept": [
                {"layer": layer, "format": self.format, "reason": reason} for layer, reason in result.kept.items()
            ],
            "sensitivity": [
                {"layer": item.layer, "alone_db": _number(item.alone_db), "without_db": _number(item.without_db)}
                for item in result.sensitivity
            ],
            "calibration": {
                "method": recipe.method,
                "percentile": recipe.percentile if recipe.method == "percentile" else None,
                "size": list(_size(self.images)),
                "images": list(self.images.names),
                "skipped": [{"file": name, "reason": reason} for name, reason in self.images.skipped.items()],
            },
            "bytes": self.bytes,
            "bytes_fp32": self.bytes_fp32,
        }

    def variant(self, name: str) -> Variant:
        """The variant of the network that the export found."""
        kept = self.result.kept
        return Variant(name, "int8", dict.fromkeys(kept, self.format), reasons=dict(kept), calibration=self.recipe)


def quantize_network(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    recipe: CalibrationRecipe,
    *,
    budget_db: float | None = None,
    format: str = FLOAT32.name,
    progress: Progress | None = None,
) -> tuple[bytes, Int8Report]:
    """An INT8 model in the QDQ form, which passes `onnx.checker`. Layers that are not INT8 get the number format `format`.

    PSNR is that of the INT8 layers. Raises DiagnosticError if the network cannot be exported or quantized, or there is no image to
    calibrate with.
    """
    import onnx

    inference = Inference(deploy(graph, registry), registry)
    with tempfile.TemporaryDirectory() as folder:
        plain = export_onnx(graph, registry, weights, Path(folder) / "fp32.onnx")
        model = onnx.load(plain.path)
    calibrated = calibrate(model, inference, recipe, progress)
    result = quantize(calibrated.quantizer, Fidelity(model, calibrated.feeds), budget_db, progress)
    made = _in_formats(result.model, dict.fromkeys(result.kept, format))
    check_model(made, graph.name)
    data = serialized(made)
    return data, Int8Report(recipe, budget_db, format, calibrated.images, result, len(data), plain.bytes)


def export_int8(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    path: Path,
    recipe: CalibrationRecipe,
    *,
    budget_db: float | None = None,
    format: str = FLOAT32.name,
    progress: Progress | None = None,
) -> Int8Report:
    """Write the model of `quantize_network` to `path` atomically."""
    ONNX_MODELS.writer(path)  # rejects other suffixes before anything runs
    data, report = quantize_network(
        graph, registry, weights, recipe, budget_db=budget_db, format=format, progress=progress
    )
    write_atomic(path, data)
    return report


def int8_model(model: ModelProto, graph: Graph, registry: Registry, variant: Variant) -> ModelProto:
    """The exported model of a network as a calibrated INT8 variant. Raises DiagnosticError as `quantized_variant`."""
    quantized = quantized_variant(model, Inference(deploy(graph, registry), registry), variant)
    return _in_formats(
        quantized, {layer: name for layer, name in variant.formats.items() if not FORMATS[name].is_integer}
    )


def _in_formats(model: ModelProto, formats: dict[str, str]) -> ModelProto:
    """The quantized model with the format of each layer that is not INT8."""
    if set(formats.values()) <= {FLOAT32.name}:
        return model
    made: ModelProto = with_formats(model, lambda layer: format_of(layer, formats, FLOAT32)).model
    return made


def _number(db: float) -> float | None:
    return round(db, 3) if isfinite(db) else None


def _size(images: ImageSet) -> Extent:
    (array, *_) = images.feeds[0].values()
    return array.shape[2], array.shape[3]
