"""Where the results of an analysis come from."""

from __future__ import annotations

from app.ui.engine.analysis import AnalysisController
from app.ui.engine.context import Context
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.operators.inlining import inlined
from designer.runtime.provenance import Provenance, digest_of, noise_layers, run_provenance


def provenance_of(context: Context, analysis: AnalysisController) -> Provenance:
    """Of the result that is shown, else of a run with the settings as they are."""
    document, result = context.root, analysis.result
    unsaved = "" if document.history.is_clean else " (with unsaved changes)"
    return run_provenance(
        f"{document.title}{unsaved}",
        digest_of(document.graph),
        result.weights if result is not None else "",
        result.weights_sha256 if result is not None else "",
        document.settings,
        **noise_layers(_as_run(document.inference)),
    )


def _as_run(inference: Inference) -> Inference:
    """The network without templates; as it is where it was edited after the run so that it cannot run."""
    try:
        return inlined(inference)
    except DiagnosticError:
        return inference
