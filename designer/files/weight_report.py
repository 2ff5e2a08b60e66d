"""Diagnostics about loaded weights."""

from __future__ import annotations

from collections.abc import Iterable

from designer.files.weight_types import WeightReport, Weights, WeightStatus
from designer.graph.diagnostics import Diagnostic, Severity
from designer.texts import tr
from designer.units import dims_text


def weight_diagnostics(weights: Weights) -> tuple[Diagnostic, ...]:
    """A diagnostic for every tensor that is not bound: "missing-weight", "wrong-shape", "unexpected-weight"."""
    return tuple(_finding(report) for report in weights.reports if report.status is not WeightStatus.BOUND)


def shape_text(shape: Iterable[int] | None) -> str:
    """`32 x 3 x 3 x 3`; "a scalar" for a tensor without dimensions."""
    return "no shape" if shape is None else dims_text(shape, "a scalar")


def _finding(report: WeightReport) -> Diagnostic:
    layer, tensor = report.key
    if report.status is WeightStatus.MISSING:
        return Diagnostic(
            "missing-weight",
            tr(
                "the weights have no '{tensor}' for '{layer}' ({shape_text})",
                tensor=tensor,
                layer=layer,
                shape_text=shape_text(report.needed),
            ),
            layer=layer,
            parameter=tensor,
            file=report.source or None,
            remedy=tr("choose weights of this network, or use random values for missing weights"),
        )
    if report.status is WeightStatus.WRONG_SHAPE:
        return Diagnostic(
            "wrong-shape",
            tr(
                "'{tensor}' of '{layer}' must be {needed}, but the file has {found}",
                tensor=tensor,
                layer=layer,
                needed=shape_text(report.needed),
                found=shape_text(report.found),
            ),
            layer=layer,
            parameter=tensor,
            file=report.source or None,
            remedy=tr("choose weights that were trained with this network, or restore the layer's parameters"),
        )
    name = f"{layer}.{tensor}" if layer else tensor
    return Diagnostic(
        "unexpected-weight",
        tr(
            "the weights contain '{name}' ({shape_text}), which no layer uses; it is ignored",
            name=name,
            shape_text=shape_text(report.found),
        ),
        Severity.WARNING,
        file=report.source or None,
        remedy=tr("ignore this if a layer was removed on purpose"),
    )
