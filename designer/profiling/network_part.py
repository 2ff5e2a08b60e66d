"""The part of a network that is profiled."""

from __future__ import annotations

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime.api import Part
from designer.runtime.network import output_layers
from designer.runtime.plan import PartStep, make_plan
from designer.texts import tr


def whole_part(inference: Inference) -> tuple[Part, tuple[Source, ...], tuple[str, ...]]:
    """All layers that the outputs need as one part, its results, and the inputs that feed it."""
    plan = make_plan(inference, [Source(n) for n in output_layers(inference)])
    parts = [step for step in plan.steps if isinstance(step, PartStep)]
    if len(parts) != 1 or len(plan.steps) != 1:
        raise DiagnosticError(
            Diagnostic(
                "nothing-to-profile",
                tr("the network has no layer that an engine runs between its inputs and outputs"),
                remedy=tr("add layers, and connect them to an output"),
            )
        )
    return parts[0].part, parts[0].wanted, plan.inputs
