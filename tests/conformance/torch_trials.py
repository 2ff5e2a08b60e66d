"""One module of torch, imported and compared with what torch computes."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Symbol
from designer.importers.imported import Imported
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.original import TorchOriginal
from designer.importers.report import Outcome
from designer.importers.verification import Feeds, difference, run_document
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions

GOAL = 1e-5  # relative difference


def fault(module: nn.Module, inputs: tuple[Tensor, ...], registry: Registry) -> str:
    """What is wrong with the import of a module; empty if it agrees, or if the import says what it does not have.

    Compared are random values, as in every import, and `inputs`, also as a part of a larger batch if the document has an open one.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if not _is_steady(module, inputs):
            return ""
        try:
            found = import_module(module, list(inputs), registry)
        except DiagnosticError:
            return ""
        report = found.verified(registry).report
        kept = "; ".join(f"{item.type}: {item.reason}" for item in report.outcomes if item.outcome is Outcome.OPAQUE)
        if report.max_rel_difference is None:
            return (
                "" if report.opaque and report.not_compared_because else f"not compared: {report.not_compared_because}"
            )
        if report.max_rel_difference > GOAL:
            return f"{report.comparison()} in {report.cases} {kept}"
        original = found.original
        assert isinstance(original, TorchOriginal)
        for larger in (False, True):
            difference_ = _difference(found, original, _feeds(original, inputs, larger), registry)
            if difference_:
                return f"{difference_} {kept}"
    return ""


def _is_steady(module: nn.Module, inputs: tuple[Tensor, ...]) -> bool:
    """Whether torch computes anything, and the same every time."""
    results = []
    for seed in range(2):
        torch.manual_seed(seed)
        try:
            results.append(pytree.tree_leaves(module(*(tensor.clone() for tensor in inputs))))
        except (RuntimeError, ValueError, IndexError, NotImplementedError):
            return False
    tensors = [pair for pair in zip(*results, strict=True) if isinstance(pair[0], Tensor)]
    return all(torch.allclose(one, other, equal_nan=True) for one, other in tensors)


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
