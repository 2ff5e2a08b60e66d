"""Where the results of an analysis come from."""

from __future__ import annotations

from app.ui.engine.analysis import AnalysisController
from app.ui.engine.context import Context
from designer.operators.api import Operator
from designer.runtime.provenance import Provenance, digest_of, run_provenance


def provenance_of(context: Context, analysis: AnalysisController) -> Provenance:
    """Of the result that is shown, else of a run with the settings as they are."""
    document, result = context.root, analysis.result
    read = {layer.name: document.inference.read(layer.name).operator for layer in document.graph}
    noises = {n: o for n, o in read.items() if isinstance(o, Operator) and o.type == "noise"}
    unsaved = "" if document.history.is_clean else " (with unsaved changes)"
    return run_provenance(
        f"{document.title}{unsaved}",
        digest_of(document.graph),
        result.weights if result is not None else "",
        result.weights_sha256 if result is not None else "",
        document.settings,
        noise="; ".join(f"{name}: {noise.summary()}" for name, noise in noises.items()),
        noise_seed="; ".join(f"{name}: {noise.values()['seed']}" for name, noise in noises.items()),
    )
