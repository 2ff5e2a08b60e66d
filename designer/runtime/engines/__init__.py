"""Engines: what turns groups of layers into something that runs. Their libraries are imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.api import ENGINES, Engine, RunOptions

if TYPE_CHECKING:
    from designer.files.weights import Weights
    from designer.graph.inference import Inference


def make_engine(inference: Inference, weights: Weights, options: RunOptions) -> Engine:
    """The engine that `options` names; DiagnosticError when there is none or it cannot serve the options."""
    if options.engine == "onnxruntime":
        from designer.runtime.engines.ort_engine import OrtEngine

        return OrtEngine(inference, weights, options)
    if options.engine == "torch":
        from designer.runtime.engines.torch_engine import TorchEngine

        return TorchEngine(inference, weights, options)
    raise DiagnosticError(
        Diagnostic(
            "unknown-engine", f"there is no engine '{options.engine}'", remedy=f"choose one of {', '.join(ENGINES)}"
        )
    )
