"""Which operators cause the difference between two computations of one network.

Let a and b compute the network, with the results y_a and y_b and the error e = y_b - y_a. In a run whose first operators are
those of b and whose others are those of a, the step from operator k of a to that of b changes the result by d_k. These
steps lead from y_a to y_b, so that they sum to e. The same holds in the other order, where the last operators are those of b.
The share of operator k is <d_k, e> / <e, e> with the mean d_k of both orders. Shares therefore sum to 1; a negative one
belongs to an operator that compensates others. Taking both orders is a Shapley value over two permutations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.runtime.api import Progress, Tensor
from designer.runtime.interrupt import current
from designer.texts import tr
from designer.units import dims_text

DEVIATES = 1e-5  # relative difference that rounding of float32 in another order does not reach

Values = dict[Source, Tensor]


@dataclass(frozen=True)
class Step:
    """An operator as one computation has it: the tensors that it reads, and how it computes those that it makes."""

    reads: tuple[Source, ...]
    run: Callable[[Mapping[Source, Tensor]], Mapping[Source, Tensor]]


class Computation(ABC):
    """A computation of a network that can be cut at tensors."""

    @property
    @abstractmethod
    def tensors(self) -> Collection[Source]:
        """The tensors that it computes."""

    @abstractmethod
    def step(self, makes: tuple[Source, ...], known: Collection[Source]) -> Step:
        """What computes `makes` from tensors in `known`. Raises DiagnosticError if these do not suffice."""


@dataclass(frozen=True)
class Operator:
    """Layers between tensors that both computations have, by the name of the one that computes."""

    layer: str
    makes: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Blamed:
    """The part of one operator in the error. `deviation` is the relative difference of its results for equal inputs."""

    layer: str
    share: float
    deviation: float


@dataclass(frozen=True)
class Blame:
    """The operators in their order of execution. `rms` is the root mean square of the error; `first` the first that deviates."""

    operators: tuple[Blamed, ...]
    rms: float
    first: str | None

    def ranked(self) -> list[Blamed]:
        """The operators, the largest part of the error first; with equal shares those that deviate more."""
        return sorted(self.operators, key=lambda item: (abs(item.share), item.deviation), reverse=True)


def blame(
    operators: Sequence[Operator],
    a: Computation,
    b: Computation,
    inputs: Mapping[Source, Tensor],
    outputs: Sequence[Source],
    progress: Progress | None = None,
) -> Blame:
    """Compare `a` with `b` for `inputs`. Raises DiagnosticError if the results have NaN or infinite values."""
    known = {*inputs, *(source for operator in operators for source in operator.makes)}
    chains = [[run.step(operator.makes, known) for operator in operators] for run in (a, b)]
    total = 4 * len(operators)
    count = 0

    def report(layer: str) -> None:
        nonlocal count
        current().check()
        if progress is not None:
            progress(count, total, layer)
        count += 1

    values = [_all_values(operators, chain, inputs, report) for chain in chains]
    _check_shapes(operators, values)
    with np.errstate(invalid="ignore"):  # infinite values of both, which are refused below
        error = _flat(values[1], outputs) - _flat(values[0], outputs)
    if not np.isfinite(error).all():
        raise _not_finite(operators, values)
    energy = float(error @ error)
    steps = np.zeros((2, len(operators)))
    for index in (0, 1):  # from a to b with the first operators of b, and from b to a with the first operators of a
        changes = _exchanged(operators, chains[index], values[index], values[1 - index], outputs, report)
        steps[index] = [(1 - 2 * index) * float(change @ error) for change in changes]
    shares = steps.mean(0) / energy if energy else np.zeros(len(operators))
    deviations = [_deviation(operator, step, values[0]) for operator, step in zip(operators, chains[1], strict=True)]
    found = tuple(
        Blamed(operator.layer, float(share), deviation)
        for operator, share, deviation in zip(operators, shares, deviations, strict=True)
    )
    rms = float(np.sqrt(energy / error.size)) if error.size else 0.0
    return Blame(found, rms, next((item.layer for item in found if item.deviation > DEVIATES), None))


def _all_values(
    operators: Sequence[Operator], chain: Sequence[Step], inputs: Mapping[Source, Tensor], report: Callable[[str], None]
) -> Values:
    values: Values = dict(inputs)
    for operator, step in zip(operators, chain, strict=True):
        report(operator.layer)
        values.update(step.run(values))
    return values


def _exchanged(
    operators: Sequence[Operator],
    chain: Sequence[Step],
    start: Values,
    other: Values,
    outputs: Sequence[Source],
    report: Callable[[str], None],
) -> Iterator[NDArray[np.float64]]:
    """How the outputs change when the values of one operator after the other become those of `other`, later ones follow `chain`."""
    values = dict(start)
    before = _flat(values, outputs)
    for number, operator in enumerate(operators):
        report(operator.layer)
        changed = _take(values, {source: other[source] for source in operator.makes})
        for step in chain[number + 1 :]:
            if not changed.isdisjoint(step.reads):
                current().check()
                changed |= _take(values, step.run(values))
        after = _flat(values, outputs) if changed else before
        yield after - before
        before = after


def _take(values: Values, made: Mapping[Source, Tensor]) -> set[Source]:
    """Replace values; the tensors that differ from before."""
    changed = {source for source, array in made.items() if not np.array_equal(values[source], array)}
    values.update({source: made[source] for source in changed})
    return changed


def _deviation(operator: Operator, step: Step, values: Values) -> float:
    """The relative difference of what `step` makes of these values from what they have for it."""
    makes = operator.makes
    made = step.run(values)
    wanted = _flat(values, makes)
    difference = float(np.linalg.norm(_flat(made, makes) - wanted))
    size = float(np.linalg.norm(wanted))
    return difference / size if size else difference


def _flat(values: Mapping[Source, Tensor], sources: Sequence[Source]) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(values[source], np.float64).ravel() for source in sources])


def _check_shapes(operators: Sequence[Operator], values: Sequence[Values]) -> None:
    """Raise DiagnosticError for the first operator whose results differ in shape."""
    for operator in operators:
        one, other = ([dims_text(found[source].shape) for source in operator.makes] for found in values)
        if one != other:
            raise DiagnosticError.of(
                "not-comparable",
                tr(
                    "'{layer}' is {one} in one computation and {other} in the other",
                    layer=operator.layer,
                    one=", ".join(one),
                    other=", ".join(other),
                ),
                layer=operator.layer,
                remedy=tr("compare computations of the same network"),
            )


def _not_finite(operators: Sequence[Operator], values: Sequence[Values]) -> DiagnosticError:
    layer = next(
        (
            operator.layer
            for operator in operators
            if any(not np.isfinite(one[source]).all() for one in values for source in operator.makes)
        ),
        None,
    )
    return DiagnosticError.of(
        "not-finite",
        tr("the results of the layer '{layer}' are NaN or infinite, so differences have no size", layer=layer),
        layer=layer,
        remedy=tr("compare precisions that can represent its values"),
    )
