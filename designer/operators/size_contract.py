"""The input sizes that a network accepts, exactly and from the graph alone, with the layer that causes each rule.

A size is valid if shape inference finds no problem and every weight keeps its shape. Shape inference runs with symbolic sizes
(`symbolic_size`), so each run covers all sizes that take the same path through the rules of the layers. The sizes of an axis are
divided into residue classes as divisions require, and the outcomes of all classes make an eventually periodic set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm
from random import Random
from typing import Literal, cast

from designer.graph.diagnostics import Diagnostic, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer
from designer.graph.types import ShapeError, Size3D, TensorType
from designer.operators.api import Activation, Operator, Role, Weight
from designer.operators.inlining import inline
from designer.operators.library.development.opaque import Opaque
from designer.operators.ports import Port, check_ports
from designer.operators.registry import Registry
from designer.operators.symbolic_size import RefinePeriod, Region
from designer.operators.training_branch import training_branch
from designer.texts import tr
from designer.units import dims_text

AxisName = Literal["height", "width"]
AXES: tuple[AxisName, AxisName] = ("height", "width")
LARGEST = 65_536  # the limit of an input's dims
MAX_PERIOD = 4096  # above this, residue classes are not divided any further
MAX_RUNS = 1000  # of shape inference, for one axis
SMALL = (2, 3, 4, 8)  # sizes below which height and width may depend on each other
SPOT_CHECKS = 12  # pairs of height and width that are checked against the rules of both axes
REFERENCES = (256, 224, 128, 64, 512, 192, 320, 384, 96)  # sizes to begin with if the network's own size is invalid

Size = tuple[int, int]  # height, width
Sizes = Mapping[str, Size]  # by input layer


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a size is invalid: the first layer whose rule is broken, and the rule."""

    layer: str
    message: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One rule of an axis: what it excludes, the layer that excludes it, and what happens at an example size."""

    rule: Literal["multiple_of", "minimum", "maximum"]
    layer: str
    size: int
    message: str


@dataclass(frozen=True, slots=True)
class SizeRule:
    """The valid sizes of one axis: from `minimum` on those with `size % multiple_of` in `remainders`, and the sizes in `others`.

    If only some sizes are valid, `remainders` is empty and `others` lists them. `proven` is False if a rule could not be
    followed for all sizes up to 65536; then the rule is what was found by trying the smaller sizes.
    """

    multiple_of: int = 1
    remainders: tuple[int, ...] = (0,)
    minimum: int = 1
    others: tuple[int, ...] = ()
    causes: tuple[Cause, ...] = ()
    proven: bool = True

    def __contains__(self, size: int) -> bool:
        return size in self.others or (size >= self.minimum and size % self.multiple_of in self.remainders)

    @property
    def is_free(self) -> bool:
        return self.remainders == (0,) and self.multiple_of == 1 and self.minimum == 1

    @property
    def smallest(self) -> int | None:
        """The smallest valid size; None if there is none."""
        return min([*self.others, *([self.minimum] if self.remainders else [])], default=None)

    @property
    def because(self) -> tuple[str, ...]:
        """The layers that cause the rule."""
        return tuple(dict.fromkeys(cause.layer for cause in self.causes))

    def __str__(self) -> str:
        if not self.remainders:
            listed = ", ".join(map(str, self.others))
            return tr("only {sizes}", sizes=listed) if self.others else tr("no size")
        if self.multiple_of == 1:
            text = tr("any size") if self.minimum == 1 else tr("at least {minimum}", minimum=self.minimum)
        else:
            if self.remainders == (0,):
                text = tr("multiples of {number}", number=self.multiple_of)
            else:
                rest = ", ".join(map(str, self.remainders))
                text = tr("multiples of {number} plus {rest}", number=self.multiple_of, rest=rest)
            if self.minimum > self.multiple_of:
                text = tr("{text}, at least {minimum}", text=text, minimum=self.minimum)
        if self.others:
            text = tr("{text}, and {sizes}", text=text, sizes=", ".join(map(str, self.others)))
        return text

    def as_dict(self) -> dict[str, object]:
        """The rule as JSON values. A finite set has its greatest common divisor, minimum and maximum."""
        finite = not self.remainders
        return {
            "multiple_of": (gcd(*self.others) or None) if finite else self.multiple_of,
            "remainders": [0] if finite else list(self.remainders),
            "minimum": min(self.others, default=None) if finite else self.minimum,
            "maximum": max(self.others, default=None) if finite else None,
            "others": list(self.others),
            "because": list(self.because),
            "rules": [{"rule": c.rule, "layer": c.layer, "example": c.size, "message": c.message} for c in self.causes],
            "proven": self.proven,
            "text": str(self),
        }


@dataclass(frozen=True, slots=True)
class InputSizes:
    """The rules of one input. `with_inputs` are the inputs that must have the same size."""

    layer: str
    height: SizeRule
    width: SizeRule
    with_inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizeContract:
    """The valid sizes of all inputs. `coupled` has (layer, message) for sizes that depend on each other.

    Without such layers, a height and a width are valid together if each is, except for the pairs in `exceptions`. Where sizes
    are coupled, the rule of an axis holds while the other sizes are those of `reference`. `accepts` is exact for every combination.
    """

    inputs: tuple[InputSizes, ...]
    reference: Sizes
    coupled: tuple[tuple[str, str], ...]
    problem: Failure | None  # why no valid size was found
    probe: SizeProbe
    exceptions: tuple[Size, ...] = ()  # pairs of height and width that are invalid although both are valid

    def accepts(self, sizes: Sizes) -> bool:
        """Whether the network runs at these sizes; inputs that are not named keep those of `reference`."""
        return self.refusal(sizes) is None

    def refusal(self, sizes: Sizes) -> Failure | None:
        """Why the network does not run at these sizes; None if it does."""
        return self.probe.failure({**self.reference, **sizes})

    def of(self, layer: str) -> InputSizes | None:
        return next((item for item in self.inputs if item.layer == layer), None)

    def as_dict(self) -> dict[str, object]:
        return {
            "inputs": [
                {
                    "layer": item.layer,
                    "height": item.height.as_dict(),
                    "width": item.width.as_dict(),
                    "with_inputs": list(item.with_inputs),
                }
                for item in self.inputs
            ],
            "exceptions": [{"height": h, "width": w} for h, w in self.exceptions],
            "coupled": [{"because": layer, "message": message} for layer, message in self.coupled],
            "reference": {layer: {"height": h, "width": w} for layer, (h, w) in self.reference.items()},
            "problem": None
            if self.problem is None
            else {"because": self.problem.layer, "message": self.problem.message},
        }


# --- one execution of shape inference ------------------------------------------------------------------------------


class SizeProbe:
    """Shape inference of the part of a network that its outputs need, at any sizes of its inputs."""

    def __init__(self, graph: Graph, registry: Registry) -> None:
        flat = inline(graph, registry)
        training = training_branch(flat, registry)
        outputs = [x.name for x in flat if registry.role(x.type) is Role.OUTPUT and x.name not in training]
        ends = outputs or [x.name for x in flat if x.name not in training and not flat.consumers(x.name)]
        needed = flat.upstream(ends) - training
        self.graph = Graph([layer for layer in flat if layer.name in needed])
        self.outputs = tuple(outputs)
        self.places = {name: number for number, name in enumerate(self.graph.order()[0])}
        self.own: dict[str, Size] = {}
        self.expected: dict[tuple[str, bool], tuple[tuple[int, ...], ...]] = {}
        self.sizes: Sizes = {}
        self.region: Region | None = None
        self._lookup = _Lookup(self, registry)
        for layer in self.graph:
            operator = registry.read(layer).operator
            dims = getattr(operator, "dims", None)
            if operator is not None and operator.role is Role.INPUT and isinstance(dims, Size3D):
                self.own[layer.name] = (dims.height, dims.width)

    def run(self, sizes: Sizes, region: Region | None = None) -> tuple[Failure | None, Inference]:
        """The first problem at these sizes, and all shapes. With a `region` the sizes are symbolic."""
        self.sizes, self.region = sizes, region
        inference = Inference(self.graph, self._lookup)
        wrong = [d for state in inference.states.values() for d in errors(state.diagnostics)]
        if region is not None and any(d.code == "broken-operator" for d in wrong):
            return self._plain(sizes, region)
        if not wrong:
            return None, inference
        first = min(wrong, key=lambda d: self.places.get(d.layer or "", len(self.places)))
        return Failure(first.layer or "", first.message), inference

    def _plain(self, sizes: Sizes, region: Region) -> tuple[Failure | None, Inference]:
        """The same with plain numbers, for an operator that cannot compute with symbolic sizes; it holds for these only."""
        region.pin(set(range(len(region.steps))))
        return self.run({layer: (int(str(height)), int(str(width))) for layer, (height, width) in sizes.items()})

    def failure(self, sizes: Sizes) -> Failure | None:
        return self.run(sizes)[0]

    def expect(self, sizes: Sizes) -> None:
        """From now on weights must have the shapes that they have at these sizes."""
        self.expected = {}
        _, inference = self.run(sizes)
        for name in self.graph.layers:
            read = cast(_Read, inference.read(name))
            for operator in (read.operator, read.activation):
                if operator is not None and operator.fixed is not None:
                    self.expected[name, operator is read.activation] = operator.fixed


class _Sized:
    """An operator whose inputs may have symbolic sizes; its weights must keep their shapes."""

    def __init__(self, operator: Operator, layer: str, probe: SizeProbe) -> None:
        self.operator = operator
        self.layer = layer
        self.probe = probe
        self.fixed: tuple[tuple[int, ...], ...] | None = None  # what must not change, of the last run

    def input_ports(self) -> tuple[Port, ...]:
        return self.operator.input_ports()

    def output_ports(self) -> tuple[Port, ...]:
        return self.operator.output_ports()

    def infer_checked(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        probe, operator = self.probe, self.operator
        if probe.region is not None:
            probe.region.place = self.layer
        size = probe.sizes.get(self.layer)
        if size is not None:
            dims = cast(Size3D, operator.values()["dims"])
            operator = replace(operator, dims=Size3D(size[1], size[0], dims.channels))  # type: ignore[type-var]
        check_ports(operator.title, operator.input_ports(), inputs)
        result = operator.infer(inputs)
        self._check_fixed(operator, inputs)
        return result if isinstance(result, tuple) else (result,)

    def _check_fixed(self, operator: Operator, inputs: Sequence[TensorType]) -> None:
        """Weights, and what an opaque operator declares its outputs for, are made for certain shapes."""
        if isinstance(operator, Opaque):
            ends = [2 if operator.follows_image and t.rank == 4 else t.rank for t in inputs]
            self.fixed = tuple(cast("tuple[int, ...]", t.shape[1:end]) for t, end in zip(inputs, ends, strict=True))
            names = tuple(port.name for port in operator.input_ports())
        else:
            weights: tuple[Weight, ...] = operator.weights(inputs)
            self.fixed = tuple(w.shape for w in weights)
            names = tuple(w.name for w in weights)
        expected = self.probe.expected.get((self.layer, isinstance(operator, Activation)))
        if expected is None or expected == self.fixed:
            return
        name, wanted, found = next((n, e, f) for n, e, f in zip(names, expected, self.fixed, strict=True) if e != f)
        if isinstance(operator, Opaque):
            raise ShapeError(
                tr("its shapes are only known for {wanted} at '{name}'", wanted=dims_text(wanted), name=name)
            )
        raise ShapeError(
            tr(
                "its weight '{name}' is {wanted} and would have to be {found}",
                name=name,
                wanted=dims_text(wanted),
                found=dims_text(found),
            )
        )


@dataclass(frozen=True, slots=True)
class _Read:
    operator: _Sized | None
    activation: _Sized | None
    diagnostics: tuple[Diagnostic, ...]


class _Lookup:
    """Reads the layers of a probe, each once."""

    def __init__(self, probe: SizeProbe, registry: Registry) -> None:
        self._probe = probe
        self._registry = registry
        self._known: dict[str, _Read] = {}

    def read(self, layer: Layer) -> _Read:
        if layer.name not in self._known:
            read = self._registry.read(layer)
            made = (
                _Sized(o, layer.name, self._probe) if o is not None else None for o in (read.operator, read.activation)
            )
            operator, activation = made
            self._known[layer.name] = _Read(operator, activation, errors(read.diagnostics))
        return self._known[layer.name]


# --- the valid sizes along one axis --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """Sizes with the same outcome: `first`, `first + period`, ... up to `last` (None: without end)."""

    first: int
    period: int
    last: int | None
    failure: Failure | None

    def __contains__(self, size: int) -> bool:
        inside = size >= self.first and (self.last is None or size <= self.last)
        return inside and (size - self.first) % self.period == 0


Variables = Sequence[tuple[str, int]]  # (input, axis) pairs that vary together


def _segments(probe: SizeProbe, variables: Variables, reference: Sizes) -> tuple[list[Segment], bool]:
    """The outcome for every size of `variables`, the others as in `reference`, and whether it is proven."""
    found: list[Segment] = []
    classes = [(1, 1)]  # (first size, period)
    runs = 0
    while classes:
        first, period = classes.pop()
        step = 0
        try:
            while first + step * period <= LARGEST:
                runs += 1
                if runs > MAX_RUNS:
                    return found, False
                region = Region((step,))
                size = region.size(0, period, first)
                failure, _ = probe.run(_with(reference, variables, size), region)
                high = region.high[0]
                last = None if high is None else first + high * period
                found.append(Segment(first + step * period, period, last, failure))
                if high is None:
                    break
                step = high + 1
        except RefinePeriod as refine:
            if period * refine.factor > MAX_PERIOD:
                return found, False
            found = [s for s in found if s.period != period or s.first % period != first % period]
            classes += [(first + n * period, period * refine.factor) for n in range(refine.factor)]
    return found, True


def _with(reference: Sizes, variables: Variables, size: int) -> Sizes:
    sizes = {layer: list(pair) for layer, pair in reference.items()}
    for layer, axis in variables:
        sizes[layer][axis] = size
    return {layer: (h, w) for layer, (h, w) in sizes.items()}


def _rule(probe: SizeProbe, variables: Variables, reference: Sizes) -> SizeRule:
    segments, proven = _segments(probe, variables, reference)
    if not proven:
        return _tried(probe, variables, reference)
    endless = [s for s in segments if s.last is None]
    period = lcm(*(s.period for s in endless))
    start = max((s.first for s in endless), default=1)
    outcomes: dict[int, Failure | None] = {}
    for segment in segments:
        end = start + 2 * period if segment.last is None else min(segment.last, start + 2 * period)
        outcomes.update(dict.fromkeys(range(segment.first, end + 1, segment.period), segment.failure))
    rule = _periodic(outcomes, start, period)
    causes = (_at_example(cause, probe, variables, reference) for cause in rule.causes)
    return replace(rule, causes=tuple(causes))


def _at_example(cause: Cause, probe: SizeProbe, variables: Variables, reference: Sizes) -> Cause:
    """A cause with the message of its example size; that of its segment has the numbers of another size."""
    failure = probe.failure(_with(reference, variables, cause.size))
    assert failure is not None
    return replace(cause, message=failure.message) if failure.layer == cause.layer else cause


def _periodic(outcomes: Mapping[int, Failure | None], start: int, period: int) -> SizeRule:
    """The shortest description of sizes that repeat with `period` from `start` on."""
    valid = [False] + [outcomes[n] is None for n in range(1, start + 2 * period)]
    cycle = valid[start : start + period]
    for shorter in (p for p in range(1, period + 1) if period % p == 0):
        if cycle == (cycle[:shorter] * (period // shorter)):
            period = shorter
            break
    while start > 1 and valid[start - 1] == valid[start - 1 + period]:
        start -= 1
    remainders = tuple(sorted(n % period for n in range(start, start + period) if valid[n]))
    minimum = next((n for n in range(start, start + period) if valid[n]), 1)
    others = tuple(n for n in range(1, start) if valid[n])
    rule = SizeRule(period if remainders else 1, remainders, minimum if remainders else 1, others)
    return replace(rule, causes=tuple(_causes(rule, outcomes)))


def _causes(rule: SizeRule, outcomes: Mapping[int, Failure | None]) -> Iterator[Cause]:
    """One cause for each layer and rule, with the smallest invalid size above the minimum (below it: the largest) as example."""
    known: dict[tuple[str, str], Cause] = {}
    below = rule.smallest or 1
    for size, failure in sorted(outcomes.items(), key=lambda item: (item[0] < below, abs(item[0] - below))):
        if failure is None:
            continue
        if not rule.remainders:
            kind: Literal["multiple_of", "minimum", "maximum"] = "minimum" if size < below else "maximum"
        else:
            kind = "minimum" if size % rule.multiple_of in rule.remainders else "multiple_of"
        if kind == "multiple_of" and size < below and any(c.rule == "multiple_of" for c in known.values()):
            continue  # too small as well: the layer that is named would be the one for which it is too small
        known.setdefault((kind, failure.layer), Cause(kind, failure.layer, size, failure.message))
    yield from known.values()


def _tried(probe: SizeProbe, variables: Variables, reference: Sizes) -> SizeRule:
    """The sizes that were valid among the first ones, for a layer whose rule cannot be followed."""
    outcomes = {n: probe.failure(_with(reference, variables, n)) for n in range(1, 513)}
    found = _periodic({**outcomes, 513: outcomes[512], 514: outcomes[512]}, 512, 1)
    return replace(found, proven=False)


# --- the whole contract --------------------------------------------------------------------------------------------


def size_contract(graph: Graph, registry: Registry) -> SizeContract:
    """The exact sizes that the inputs of `graph` can have. Needs neither weights nor an engine."""
    probe = SizeProbe(graph, registry)
    reference, problem = _reference(probe)
    if problem is not None:
        return SizeContract((), probe.own, (), problem, probe)
    probe.expect(reference)
    groups, coupled = _groups(probe, reference)
    found: dict[str, InputSizes] = {}
    for names in groups:
        height, width = (_rule(probe, [(name, axis) for name in names], reference) for axis in (0, 1))
        for name in names:
            found[name] = InputSizes(name, height, width, tuple(n for n in names if n != name))
    inputs = tuple(found[name] for name in probe.own)
    contract = SizeContract(inputs, reference, coupled, None, probe)
    if coupled:
        exceptions = _exceptions(contract, groups)
        return contract if exceptions is None else replace(contract, coupled=(), exceptions=exceptions)
    return replace(contract, coupled=tuple(_disagreements(contract, groups)))


def _reference(probe: SizeProbe) -> tuple[Sizes, Failure | None]:
    """Valid sizes to begin with: the network's own ones, or the first square that works."""
    own = dict(probe.own)
    problem = probe.failure(own)
    if problem is None:
        return own, None
    for size in (*REFERENCES, *range(1, 257)):
        squares = dict.fromkeys(own, (size, size))
        if probe.failure(squares) is None:
            return squares, None
    return own, problem


def _groups(probe: SizeProbe, reference: Sizes) -> tuple[list[tuple[str, ...]], tuple[tuple[str, str], ...]]:
    """The inputs that must have the same size, and the layers at which sizes depend on each other in another way."""
    groups: list[tuple[str, ...]] = [(name,) for name in reference]
    while True:
        coupled = joint_run(probe, reference, groups).region.coupled
        merged = _merged(groups, coupled, reference)
        if merged == groups:
            break
        groups = merged
    return groups, tuple((place, _coupling(groups, variables)) for place, variables in coupled.items())


def _coupling(groups: Sequence[tuple[str, ...]], variables: set[int]) -> str:
    names = [tr("{axis} of '{name}'", axis=AXES[v % 2], name=groups[v // 2][0]) for v in sorted(variables)]
    return tr("{names} depend on each other", names=tr(" and ").join(names))


@dataclass(frozen=True, slots=True)
class Joint:
    """One execution with heights and widths of all groups symbolic: variables 2n and 2n + 1 are those of group n."""

    region: Region
    periods: tuple[int, ...]
    inference: Inference


def joint_run(probe: SizeProbe, reference: Sizes, groups: Sequence[tuple[str, ...]], base: int = 1) -> Joint:
    """Shape inference near `reference` for all sizes of at least `base`, which no size of `reference` is below."""
    own = [reference[group[0]][axis] for group in groups for axis in (0, 1)]
    periods = [1] * len(own)
    while True:
        steps = tuple((size - base) // period for size, period in zip(own, periods, strict=True))
        region = Region(steps)
        symbols = [
            region.size(v, period, size - step * period)
            for v, (size, period, step) in enumerate(zip(own, periods, steps, strict=True))
        ]
        sizes = {name: (symbols[2 * n], symbols[2 * n + 1]) for n, group in enumerate(groups) for name in group}
        try:
            return Joint(region, tuple(periods), probe.run(sizes, region)[1])
        except RefinePeriod as refine:
            periods[refine.variable] *= refine.factor
            if periods[refine.variable] > LARGEST:
                region.coupled.setdefault(region.place, set()).update(range(len(own)))
                return Joint(region, tuple(periods), probe.run(reference)[1])


def _couples(probe: SizeProbe, reference: Sizes, groups: Sequence[tuple[str, ...]], base: int) -> bool:
    """Whether sizes of at least `base` depend on each other, in any residue class."""
    joint = joint_run(probe, reference, groups, base)
    for step in range(max(joint.periods)):
        sizes = {name: (h + step, w + step) for name, (h, w) in reference.items()}
        if joint_run(probe, sizes, groups, base).region.coupled:
            return True
    return False


def _exceptions(contract: SizeContract, groups: Sequence[tuple[str, ...]]) -> tuple[Size, ...] | None:
    """The pairs that are invalid although both sizes are valid, if only small sizes depend on each other; else None."""
    probe, reference = contract.probe, contract.reference
    bases = [b for b in SMALL if b <= min(min(size) for size in reference.values())]
    base = next((b for b in bases if not _couples(probe, reference, groups, b)), None)
    item = contract.inputs[0]
    if base is None or len(groups) > 1 or not (item.height.proven and item.width.proven):
        return None
    found: set[Size] = set()
    for axis, own, other in ((0, item.height, item.width), (1, item.width, item.height)):
        for size in range(1, base):
            held = _with(reference, [(name, axis) for name in groups[0]], size)
            rule = _rule(probe, [(name, 1 - axis) for name in groups[0]], held)
            differing = _differences(rule, other if size in own else SizeRule(remainders=()))
            if differing is None or any(n in rule for n in differing):
                return None
            found |= {(size, n) if axis == 0 else (n, size) for n in differing}
    return tuple(sorted(found))


def _differences(one: SizeRule, other: SizeRule) -> list[int] | None:
    """The sizes that only one of two rules has; None if there is no end of them."""
    start = max(one.minimum, other.minimum, *one.others, *other.others, 1) + 1
    period = lcm(one.multiple_of, other.multiple_of)
    if any((n in one) != (n in other) for n in range(start, start + period)):
        return None
    return [n for n in range(1, start) if (n in one) != (n in other)]


def _merged(groups: list[tuple[str, ...]], coupled: Mapping[str, set[int]], reference: Sizes) -> list[tuple[str, ...]]:
    """Groups of inputs joined whose heights, or whose widths, depend on each other and are equal."""
    for variables in coupled.values():
        for one, two in product(variables, variables):
            a, b = groups[one // 2], groups[two // 2]
            if one // 2 < two // 2 and one % 2 == two % 2 and reference[a[0]] == reference[b[0]]:
                rest = [group for group in groups if group not in (a, b)]
                return [(*a, *b), *rest]
    return groups


def _disagreements(contract: SizeContract, groups: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Spot checks that the rules of both axes together are the rule for both: the first pair for which they are not."""
    random = Random(0)
    for number in range(SPOT_CHECKS):
        sizes: dict[str, Size] = {}
        expected = True
        for group in groups:
            item = contract.of(group[0])
            assert item is not None
            pair = tuple(_some_size(rule, random, valid=number % 2 == 0) for rule in (item.height, item.width))
            expected &= pair[0] in item.height and pair[1] in item.width
            sizes |= dict.fromkeys(group, cast(Size, pair))
        failure = contract.refusal(sizes)
        if (failure is None) != expected:
            shown = ", ".join(f"{w} x {h}" for h, w in sizes.values())
            yield (
                failure.layer if failure is not None else "",
                tr("height and width depend on each other, as {shown} shows", shown=shown),
            )
            return


def _some_size(rule: SizeRule, random: Random, *, valid: bool) -> int:
    size = random.randint(1, 160)
    if valid and rule.remainders:
        return next(n for n in range(max(size, rule.minimum), LARGEST * 2) if n in rule)
    return random.choice(rule.others) if valid and rule.others else size
