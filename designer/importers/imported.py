"""The result of an import."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from designer.files.atomic import write_atomic
from designer.files.document import save_document
from designer.files.weights import Weights, save_weights
from designer.graph.graph import Graph
from designer.importers.report import ImportReport, report_json
from designer.importers.verification import compare
from designer.operators.registry import Registry

if TYPE_CHECKING:
    from designer.importers.verification import Original
    from designer.runtime.api import RunOptions


@dataclass(frozen=True)
class Imported:
    """A document with its weights, the report, and the original to compare with; None if it cannot be run."""

    graph: Graph
    weights: Weights
    report: ImportReport
    original: Original | None = None
    options: RunOptions | None = None  # how the document is run for the comparison; by default with the default engine

    def verified(self, registry: Registry) -> Imported:
        """The import with its comparison in the report."""
        if self.original is None:
            return self
        found = compare(self.graph, registry, self.weights, self.original, self.options)
        return replace(self, report=msgspec.structs.replace(self.report, **found))

    def save(self, output: Path, weights: Path | None, report: Path | None) -> None:
        """Write the document and, where given, the weights and the report as JSON. Raises DiagnosticError ("cannot-save")."""
        if weights is not None:
            save_weights(weights, self.weights.tensors)
        save_document(self.graph, output)
        if report is not None:
            write_atomic(report, report_json(self.report))
