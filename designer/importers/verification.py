"""Comparison of an imported document with its original on seeded inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designer.files.settings import DEFAULT_ENGINE
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.importers.report import TOLERANCE, UNBOUNDED, ComparedCase
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from designer.texts import tr
from designer.units import dims_text

Feeds = Mapping[str, NDArray[Any]]
SEED = 1
NAMED = 5  # layers in a message


class Original(Protocol):
    """What was imported, run by its own runtime. Feeds and results have the names of the document's layers."""

    def cases(self) -> Sequence[Mapping[str, tuple[tuple[int, ...], str]]]:
        """Inputs to compare with: for each input its shape and element type; the size of the document first.

        Later cases have another batch or size, where the original allows it.
        """

    def size_bound(self, case: Mapping[str, tuple[tuple[int, ...], str]], weights: Weights) -> Sequence[str]:
        """The layers of the document that have other values if the original is imported with inputs of these sizes."""

    def run(self, feeds: Feeds) -> Feeds:
        """The outputs of the original. Any exception is the reason why the two are not compared."""


def seeded_feeds(case: Mapping[str, tuple[tuple[int, ...], str]], seed: int = SEED) -> dict[str, NDArray[Any]]:
    """Random values: uniform in 0..1 for floating-point inputs, as images are; 0 and 1 for others."""
    random = np.random.default_rng(seed)
    feeds: dict[str, NDArray[Any]] = {}
    for name, (shape, dtype) in case.items():
        kind = np.dtype(dtype)
        values = random.random(shape) if kind.kind == "f" else random.integers(0, 2, shape)
        feeds[name] = np.asarray(values, kind)
    return feeds


def compare(
    graph: Graph, registry: Registry, weights: Weights, original: Original, options: RunOptions | None = None
) -> dict[str, Any]:
    """The fields of a report about the comparison. Never raises: what fails is the reason in `not_compared_because`."""
    cases: list[ComparedCase] = []
    reason = size_note = ""
    for case in original.cases():
        feeds = seeded_feeds(case)
        found: ComparedCase | None = None
        refused = False
        try:
            expected = original.run(feeds)
            refused = True
            found = _compare_case(graph, registry, weights, expected, feeds, options)
        except Exception as error:  # the original is run by a foreign runtime, which may raise anything
            reason = reason or _reason(error)
            if not cases:
                break
        differs = refused if found is None else found.max_rel_difference > TOLERANCE
        agreed = bool(cases) and cases[0].max_rel_difference <= TOLERANCE
        if agreed and differs and (layers := original.size_bound(case, weights)):
            size_note = _size_note(cases[0], layers)
        elif found is not None:
            cases.append(found)
    if not cases:
        return {"not_compared_because": reason or "the original has no size to run at"}
    worst = max(cases, key=lambda item: item.max_rel_difference)
    return {
        "cases": tuple(cases),
        "size_note": size_note,
        "max_abs_difference": max(item.max_abs_difference for item in cases),
        "max_rel_difference": worst.max_rel_difference,
    }


def _size_note(agreed: ComparedCase, layers: Sequence[str]) -> str:
    names = ", ".join(f"'{name}'" for name in layers[:NAMED])
    return tr(
        "the document is right only for inputs of {sizes}: the original computes values of {layers} from the size; import it again for another size",
        sizes=", ".join(map(dims_text, agreed.inputs.values())),
        layers=names if len(layers) <= NAMED else tr("{names} and more layers", names=names),
    )


def changed_layers(
    graphs: tuple[Graph, Graph], weights: tuple[Weights, Weights], registry: Registry, inputs: Collection[str]
) -> list[str]:
    """The layers of the first of two imports that compute something else in the second one. `inputs` may have other sizes."""
    before, after = (inline(graph, registry) for graph in graphs)
    changed = [layer.name for layer in before if layer.name not in inputs and _differs(layer, after.get(layer.name))]
    for key, array in weights[0].tensors.items():
        found = weights[1].tensors.get(key)
        if found is None or not np.array_equal(array, found, equal_nan=True):
            changed.append(key.layer)
    return list(dict.fromkeys(changed))


def _differs(layer: Layer, other: Layer | None) -> bool:
    """Whether a layer computes something else, or reads other layers."""
    return other is None or replace(other, position=layer.position) != layer


def _compare_case(
    graph: Graph, registry: Registry, weights: Weights, expected: Feeds, feeds: Feeds, options: RunOptions | None
) -> ComparedCase:
    found = run_document(graph, registry, weights, feeds, options)
    worst, absolute, relative = "", 0.0, 0.0
    for name, array in expected.items():
        one, other = difference(found[name], array)
        absolute = max(absolute, one)
        if other >= relative:
            worst, relative = name, other
    return ComparedCase({name: array.shape for name, array in feeds.items()}, absolute, relative, worst)


def run_document(
    graph: Graph, registry: Registry, weights: Weights, feeds: Feeds, options: RunOptions | None = None
) -> dict[str, NDArray[Any]]:
    """The outputs of a document. Raises DiagnosticError if it cannot run."""
    session = Session(graph, registry, weights, options or RunOptions(engine=DEFAULT_ENGINE))
    for name, array in feeds.items():
        session.set_input(name, array, is_image=False)
    return dict(session.run().outputs)


def difference(found: NDArray[Any], expected: NDArray[Any]) -> tuple[float, float]:
    """The largest absolute difference, also relative to the largest magnitude in `expected`.

    UNBOUNDED for other shapes, and where only one of the two is NaN or infinite.
    """
    if found.shape != expected.shape:
        return UNBOUNDED, UNBOUNDED
    one, other = (np.asarray(array, np.float64) for array in (found, expected))
    finite = np.isfinite(one) & np.isfinite(other)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if not np.all(finite | same):
        return UNBOUNDED, UNBOUNDED
    with np.errstate(invalid="ignore"):  # infinite values that are equal
        largest = float(np.max(np.abs(one - other), where=finite, initial=0.0))
    scale = float(np.max(np.abs(other), where=finite, initial=0.0))
    return largest, min(largest / scale, UNBOUNDED) if largest and scale else largest


def _reason(error: Exception) -> str:
    if isinstance(error, DiagnosticError):
        return error.diagnostics[0].message
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
