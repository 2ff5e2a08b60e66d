"""One module of torch, imported and compared with what torch computes."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Symbol
from designer.importers.imported import Imported
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.original import TorchOriginal
from designer.importers.report import ImportReport, Outcome
from designer.importers.verification import Feeds, difference, run_document
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions

GOAL = 1e-5  # relative difference


class Trial(NamedTuple):
    """What became of a module: what is wrong, and the operators of which the document only has the call."""

    fault: str = ""
    kept: tuple[str, ...] = ()
    imported: bool = True

    @property
    def converted(self) -> bool:
        return self.imported and not self.kept


def tried(module: nn.Module, inputs: tuple[Tensor, ...], registry: Registry) -> Trial:
    """Import a module and compare the document with it. It has no fault if it agrees, or says what it does not have.

    Compared are random values, as in every import, and `inputs`, also as a part of a larger batch if the document has an open one.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if not _is_steady(module, inputs):
            return Trial(imported=False)
        try:
            found = import_module(module, list(inputs), registry)
        except DiagnosticError:
            return Trial(imported=False)
        report = found.verified(registry).report
        kept = [item for item in report.outcomes if item.outcome is Outcome.OPAQUE]
        reasons = "; ".join(f"{item.type}: {item.reason}" for item in kept)
        fault = _fault(found, report, inputs, registry)
        return Trial(f"{fault} {reasons}" if fault else "", tuple(item.type for item in kept))


def _fault(found: Imported, report: ImportReport, inputs: tuple[Tensor, ...], registry: Registry) -> str:
    original = found.original
    if not isinstance(original, TorchOriginal):
        return "" if report.opaque and report.not_compared_because else "it is not compared"
    if report.max_rel_difference is None and not report.not_compared_because:
        return "it is not compared"
    if report.max_rel_difference is not None and report.max_rel_difference > GOAL:
        return f"{report.comparison()} in {report.cases}"
    differences = (_difference(found, original, _feeds(original, inputs, larger), registry) for larger in (False, True))
    return next(filter(None, differences), "")


def _is_steady(module: nn.Module, inputs: tuple[Tensor, ...]) -> bool:
    """Whether torch computes anything, and the same every time."""
    results = []
    try:
        for seed in range(2):
            torch.manual_seed(seed)
            results.append(pytree.tree_leaves(module(*(tensor.clone() for tensor in inputs))))
        tensors = [pair for pair in zip(*results, strict=True) if isinstance(pair[0], Tensor)]
        return all(torch.allclose(one, other, equal_nan=True) for one, other in tensors)
    except (RuntimeError, ValueError, IndexError, NotImplementedError):
        return False


def _feeds(original: TorchOriginal, inputs: tuple[Tensor, ...], larger: bool) -> Feeds:
    feeds = {}
    for (name, (shape, _)), tensor in zip(original.inputs.items(), inputs, strict=True):
        array = tensor.numpy()
        batch = larger and shape and isinstance(shape[0], Symbol)
        feeds[name] = np.concatenate([array, -array[::-1], array]) if batch else array
    return feeds


def _difference(found: Imported, original: TorchOriginal, feeds: Feeds, registry: Registry) -> str:
    """How the document differs from the module, on torch: ONNX Runtime rounds small values of some functions."""
    try:
        expected = original.run(feeds)
    except (RuntimeError, ValueError, IndexError):  # the module may not take a larger batch
        return ""
    try:
        made = run_document(found.graph, registry, found.weights, feeds, found.options or RunOptions(engine="torch"))
    except DiagnosticError as error:
        return f"the document does not run: {error}"
    for name, array in expected.items():
        _, relative = difference(made[name], array)
        if relative > GOAL or made[name].dtype.kind != array.dtype.kind:
            kinds = [f"{item.shape} {item.dtype}" for item in (array, made[name])]
            return f"'{name}' differs by {relative:.3g}: {' and '.join(kinds)}"
    return ""
