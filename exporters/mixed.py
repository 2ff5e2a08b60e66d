"""Export of networks to strongly typed ONNX files in FP16, BF16 or mixed precision, validated on a folder of images."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.precision.emulation import Emulation
from designer.precision.mixed import PrecisionResult, Validation, choose_precision, validate
from designer.runtime.api import Progress, RunOptions
from designer.runtime.number_formats import BFLOAT16, FLOAT16, OF_PRECISION, format_of
from exporters.onnx import ONNX_MODELS, OnnxReport, export_onnx
from exporters.onnx_formats import FormattedModel, with_formats


@dataclass(frozen=True)
class PrecisionReport:
    """What was written and why. `in_float32` are layers that store their format, but compute in float32."""

    result: PrecisionResult
    validation: Validation
    written: OnnxReport
    casts: int
    in_float32: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values; a PSNR of None means equal results."""
        result, validation = self.result, self.validation
        return {
            "precision": result.target,
            "psnr_db": _number(result.psnr_db),
            "budget_db": result.budget_db,
            "budget_met": result.met,
            "kept": [{"layer": layer, "reason": reason} for layer, reason in result.kept.items()],
            "overflow": [{"layer": layer, "magnitude": size} for layer, size in result.overflow.items()],
            "underflow": [{"layer": layer, "share": share} for layer, share in result.underflow.items()],
            "nonfinite": [{"layer": layer, "values": count} for layer, count in result.nonfinite.items()],
            "bf16_psnr_db": _number(result.bf16_db) if result.bf16_db is not None else None,
            "in_float32": list(self.in_float32),
            "layers": result.layers,
            "images": list(validation.images),
            "skipped": [{"file": name, "reason": reason} for name, reason in validation.skipped.items()],
            "bytes": self.written.bytes,
        }


def export_precision(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    path: Path,
    target: str,
    images: Path,
    *,
    budget_db: float | None = None,
    keep: Collection[str] = (),
    native: bool = False,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> PrecisionReport:
    """Write `graph` in the precision `target` (see `designer.precision.mixed`) to `path` atomically.

    Raises DiagnosticError if the network cannot run or be exported, or no image can be used.
    """
    ONNX_MODELS.writer(path)  # rejects other suffixes before anything runs
    validation = validate(Emulation(graph, registry, weights, options), images, progress)
    result = choose_precision(validation, target, budget_db, keep, progress)
    made: list[FormattedModel] = []

    def convert(model: Any) -> Any:
        made.append(formatted(model, result.precision, result.formats, native=native))
        return made[0].model

    written = export_onnx(graph, registry, weights, path, convert)
    return PrecisionReport(result, validation, written, made[0].casts, made[0].in_float32)


def formatted(model: Any, precision: str, formats: Mapping[str, str], *, native: bool = False) -> FormattedModel:
    """`model` with layers in `precision`, or in the formats of single layers.

    ONNX Runtime has no BF16 kernels on processors: tensors are then stored in BF16 and computed in float32. With `native`,
    operators compute in BF16, as TensorRT does.
    """
    otherwise = OF_PRECISION[precision]
    computing = (FLOAT16, BFLOAT16) if native else (FLOAT16,)
    if native and (otherwise is BFLOAT16 or BFLOAT16.name in formats.values()):
        from onnx import version_converter

        model = version_converter.convert_version(model, 22)  # the first in which Conv has BF16
    return with_formats(model, lambda layer: format_of(layer, formats, otherwise), computing)


def _number(db: float) -> float | None:
    return round(db, 3) if isfinite(db) else None
