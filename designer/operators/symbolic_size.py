"""Sizes that record how they are used, so that one shape inference is valid for many sizes.

A `SymbolicSize` behaves as an int and knows itself as a polynomial in step counts k >= 0 (a size is `period * k + first`).
Shape inference computes with it as usual. Each comparison narrows the `Region` of step counts that give the same answer, so the
result holds for the whole region: this is a proof by execution (concolic execution, Sen et al. 2005), not a sample. Nothing can
be done with such a size that escapes the record: whatever needs a plain number narrows the region to the present step count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from math import gcd
from typing import Any

Monomial = tuple[int, ...]  # the exponent of each variable
Terms = dict[Monomial, int]


class RefinePeriod(BaseException):
    """A division is not the same for all step counts: the caller multiplies the period of `variable` by `factor`."""

    def __init__(self, variable: int, factor: int) -> None:
        super().__init__(f"variable {variable} by {factor}")
        self.variable = variable
        self.factor = factor


@dataclass(slots=True)
class Region:
    """The step counts for which an execution takes the same path: `low[v] <= k[v] <= high[v]`, where None is infinity.

    `place` is what the caller executes, and `coupled` collects the places where a result depends on several variables together.
    """

    steps: tuple[int, ...]
    low: list[int] = field(default_factory=list)
    high: list[int | None] = field(default_factory=list)
    place: str = ""
    coupled: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.low = [0] * len(self.steps)
        self.high = [None] * len(self.steps)

    def size(self, variable: int, period: int, first: int) -> int:
        """The size `period * k + first` of a variable; it is an int to everything that computes with it."""
        unit = tuple(int(index == variable) for index in range(len(self.steps)))
        made: Any = SymbolicSize(self, {unit: period, (0,) * len(self.steps): first})
        return made  # type: ignore[no-any-return]

    def narrow(self, variable: int, low: int, high: int | None) -> None:
        self.low[variable] = max(self.low[variable], low)
        present = self.high[variable]
        if high is not None and (present is None or high < present):
            self.high[variable] = high

    def pin(self, variables: set[int]) -> None:
        """From here on the result holds for the present step counts of `variables` only."""
        for variable in variables:
            self.narrow(variable, self.steps[variable], self.steps[variable])
        if len(variables) > 1:
            self.coupled.setdefault(self.place, set()).update(variables)

    def value(self, terms: Mapping[Monomial, int]) -> int:
        total = 0
        for monomial, factor in terms.items():
            for step, exponent in zip(self.steps, monomial, strict=True):
                factor *= step**exponent
            total += factor
        return total

    def sign(self, terms: Terms) -> int:
        """-1, 0 or 1 at the present step counts; the region is narrowed to where the sign is the same."""
        value = self.value(terms)
        sign = (value > 0) - (value < 0)
        variables = _variables(terms)
        constant = terms.get((0,) * len(self.steps), 0)
        if not variables or (constant * sign > 0 and all(factor * sign > 0 for factor in terms.values() if factor)):
            return sign
        if len(variables) > 1:
            self.pin(variables)
            return sign
        (variable,) = variables
        coefficients = [
            terms.get(tuple(e if v == variable else 0 for v in range(len(self.steps))), 0)
            for e in range(1 + max(monomial[variable] for monomial in terms))
        ]
        self.narrow(variable, *_same_sign(coefficients, self.steps[variable], sign))
        return sign


def _same_sign(coefficients: list[int], step: int, sign: int) -> tuple[int, int | None]:
    """(low, high) around `step` where the polynomial has this sign."""
    if len(coefficients) == 2:
        constant, slope = coefficients
        if sign == 0:
            return step, step
        if slope * sign > 0:  # it moves away from zero: from the first step count behind the root
            return -(constant * sign) // (slope * sign) + 1, None
        return 0, (constant * sign - 1) // -(slope * sign)
    shifted = _shifted(coefficients, step)
    if sign and all(factor * sign >= 0 for factor in shifted):
        return step, None
    return step, step


def _shifted(coefficients: list[int], step: int) -> list[int]:
    """The coefficients in t of the polynomial in k = step + t."""
    result = [0]
    for coefficient in reversed(coefficients):  # Horner's scheme
        longer = [step * factor for factor in result] + [0]
        result = [a + b for a, b in zip_longest(longer, [0, *result], fillvalue=0)]
        result[0] += coefficient
    return result


def _variables(terms: Mapping[Monomial, int]) -> set[int]:
    return {v for monomial, factor in terms.items() if factor for v, exponent in enumerate(monomial) if exponent}


class SymbolicSize:
    """An int that records its use; see the module. Made by `Region.size`."""

    __slots__ = ("region", "terms")

    def __init__(self, region: Region, terms: Terms) -> None:
        self.region = region
        self.terms = terms

    # isinstance(size, int) holds, while C code has to ask `__index__` and cannot read a number unseen
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def __int__(self) -> int:
        """The number itself; the result of the execution holds for it only."""
        self.region.pin(_variables(self.terms))
        return self.region.value(self.terms)

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(int(self), name)

    def __round__(self, digits: int = 0) -> Any:
        return self if digits >= 0 else round(int(self), digits)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:  # for messages: not a use as a number
        return str(self.region.value(self.terms))

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.region.value(self.terms), spec)

    def slope(self, variable: int) -> int:
        """By how much the size grows with one step of a variable."""
        return self.terms.get(tuple(int(v == variable) for v in range(len(self.region.steps))), 0)

    # --- arithmetic ------------------------------------------------------------------------------------------------

    def _constant(self, value: int) -> Terms:
        return {(0,) * len(self.region.steps): value}

    def _terms_of(self, other: object) -> Terms | None:
        if type(other) is SymbolicSize:
            return other.terms
        return self._constant(int(other)) if isinstance(other, int) else None

    def _made(self, terms: Terms) -> Any:
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        if not _variables(kept):
            return next(iter(kept.values()), 0)
        return SymbolicSize(self.region, kept)

    def _sum(self, other: object, sign: int, own: int = 1) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return own * float(self) + sign * other if isinstance(other, float) else NotImplemented
        total = {monomial: own * factor for monomial, factor in self.terms.items()}
        for monomial, factor in terms.items():
            total[monomial] = total.get(monomial, 0) + sign * factor
        return self._made(total)

    def __add__(self, other: object) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: object) -> Any:
        return self._sum(other, 1, -1)

    def __neg__(self) -> Any:
        return self._made({monomial: -factor for monomial, factor in self.terms.items()})

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __mul__(self, other: object) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return float(self) * other if isinstance(other, float) else NotImplemented
        product: Terms = {}
        for one, factor in self.terms.items():
            for two, times in terms.items():
                monomial = tuple(a + b for a, b in zip(one, two, strict=True))
                product[monomial] = product.get(monomial, 0) + factor * times
        return self._made(product)

    __rmul__ = __mul__

    def __divmod__(self, other: object) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return divmod(float(self), other) if isinstance(other, float) else NotImplemented
        if _variables(terms):
            return self._ratio(terms, other)
        divisor = terms.get((0,) * len(self.region.steps), 0)
        if divisor == 0:
            raise ZeroDivisionError("division by zero")
        zero = (0,) * len(self.region.steps)
        inexact = {m: f for m, f in self.terms.items() if m != zero and f % divisor}
        mixed = self.terms.get(zero, 0) % divisor != 0 or bool(inexact)
        variables = _variables(self.terms)
        if mixed and len(variables) > 1:  # the remainder depends on the residues of several sizes together
            self.region.coupled.setdefault(self.region.place, set()).update(variables)
        if inexact:
            monomial = next(iter(inexact))
            variable = next(v for v, exponent in enumerate(monomial) if exponent)
            raise RefinePeriod(variable, abs(divisor) // gcd(divisor, inexact[monomial]))
        quotient = {m: f // divisor for m, f in self.terms.items()}
        return self._made(quotient), self.terms.get(zero, 0) % divisor

    def _ratio(self, terms: Terms, other: Any) -> Any:
        """Divided by another symbolic size: exact for its multiples, else the numbers themselves."""
        monomial, factor = next((m, f) for m, f in terms.items() if f)
        times, rest = divmod(self.terms.get(monomial, 0), factor)
        if rest == 0 and {m: times * f for m, f in terms.items() if times} == self.terms:
            return times, 0
        return divmod(int(self), int(other))

    def __rdivmod__(self, other: object) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return divmod(other, float(self)) if isinstance(other, float) else NotImplemented
        return SymbolicSize(self.region, terms)._ratio(self.terms, self)

    def __floordiv__(self, other: object) -> Any:
        both = self.__divmod__(other)
        return both if both is NotImplemented else both[0]

    def __mod__(self, other: object) -> Any:
        both = self.__divmod__(other)
        return both if both is NotImplemented else both[1]

    def __rfloordiv__(self, other: object) -> Any:
        both = self.__rdivmod__(other)
        return both if both is NotImplemented else both[0]

    def __rmod__(self, other: object) -> Any:
        both = self.__rdivmod__(other)
        return both if both is NotImplemented else both[1]

    def __truediv__(self, other: Any) -> Any:
        return int(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self)

    def __pow__(self, other: int) -> Any:
        return int(self) ** other

    # --- comparison ------------------------------------------------------------------------------------------------

    def _sign(self, other: object) -> int | None:
        """The sign of the difference; None for something that is not a number."""
        terms = self._terms_of(other)
        if terms is None:
            return (float(self) > other) - (float(self) < other) if isinstance(other, float) else None
        difference = dict(self.terms)
        for monomial, factor in terms.items():
            difference[monomial] = difference.get(monomial, 0) - factor
        return self.region.sign({m: f for m, f in difference.items() if f})

    def __eq__(self, other: object) -> bool:
        return self._sign(other) == 0

    def __lt__(self, other: object) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign < 0

    def __le__(self, other: object) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign <= 0

    def __gt__(self, other: object) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign > 0

    def __ge__(self, other: object) -> bool:
        sign = self._sign(other)
        return NotImplemented if sign is None else sign >= 0

    def __bool__(self) -> bool:
        return self != 0
