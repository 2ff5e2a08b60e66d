"""What loading weights found out, as findings for people."""

from __future__ import annotations

from collections.abc import Iterable

from designer.files.weight_types import WeightReport, Weights, WeightStatus
from designer.graph.diagnostics import Diagnostic, Severity
from designer.texts import tr
from designer.units import dims_text


def weight_diagnostics(weights: Weights) -> tuple[Diagnostic, ...]:
    """A finding for every tensor that is not simply bound: "missing-weight", "wrong-shape", "unexpected-weight"."""
    return tuple(_finding(report) for report in weights.reports if report.status is not WeightStatus.BOUND)


def shape_text(shape: Iterable[int] | None) -> str:
    """`32 x 3 x 3 x 3`; "a single number" for a tensor without dimensions."""
    return "no shape" if shape is None else dims_text(shape, "a single number")


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
            remedy=tr("choose weights that fit this network, or choose random weights for what is missing"),
        )
    if report.status is WeightStatus.WRONG_SHAPE:
        return Diagnostic(
            "wrong-shape",
            tr(
                "'{tensor}' of '{layer}' must be {shape_text}, the file has {shape_text2}",
                tensor=tensor,
                layer=layer,
                shape_text=shape_text(report.needed),
                shape_text2=shape_text(report.found),
            ),
            layer=layer,
            parameter=tensor,
            file=report.source or None,
            remedy=tr("choose weights that were trained with this network, or change the layer back"),
        )
    name = f"{layer}.{tensor}" if layer else tensor
    return Diagnostic(
        "unexpected-weight",
        tr(
            "the weights hold '{name}' ({shape_text}), which no layer needs; it is not used",
            name=name,
            shape_text=shape_text(report.found),
        ),
        Severity.WARNING,
        file=report.source or None,
        remedy=tr("nothing needs to be done if a layer was removed on purpose"),
    )
