"""The execution plan for the requested tensors: engine parts and analysis layers.

Layers that depend on the same analysis layers form one part. The parts can therefore always be ordered, the engine gets
groups as large as possible, and a changed analysis parameter affects only parts that depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Role
from designer.runtime.api import Part
from designer.runtime.network import check_runnable, inputs_of, passes_through, role_of

Signature = frozenset[str]


@dataclass(frozen=True, slots=True)
class PartStep:
    """Run `part` with an engine and keep the tensors in `wanted`."""

    part: Part
    wanted: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class AnalysisStep:
    """Evaluate one analysis layer in numpy. `late`: only displayed tensors depend on it, no engine part."""

    layer: str
    feeds: tuple[Source, ...]
    late: bool


@dataclass(frozen=True)
class Plan:
    """Steps in execution order. `origin` maps every wanted tensor to the tensor with its values.

    `inputs` are the input layers that need data.
    """

    steps: tuple[PartStep | AnalysisStep, ...]
    origin: dict[Source, Source]
    inputs: tuple[str, ...]


def make_plan(inference: Inference, targets: Iterable[Source], *, single: bool = False) -> Plan:
    """The plan for `targets`, with parts of `single` layers if what changes is one layer.

    Raises DiagnosticError that names the layers that cannot run.
    """
    aims = tuple(dict.fromkeys(inference.tensor(target) for target in targets))
    check_runnable(inference, [aim.layer for aim in aims])
    reads = _Reads(inference)
    ends = tuple(reads.origin(aim) for aim in aims)
    needed = _needed(reads, ends)
    order = [name for name in inference.graph.order()[0] if name in needed]

    signature: dict[str, Signature] = {}  # the analysis layers upstream of a layer, including itself
    groups: dict[Signature, list[str]] = {}
    for name in order:
        above: Signature = frozenset().union(*(signature[source.layer] for source in reads.of(name)))
        role = role_of(inference, name)
        signature[name] = above | {name} if role is Role.ANALYSIS else above
        if role not in (Role.ANALYSIS, Role.INPUT):
            groups.setdefault(above, []).append(name)

    # A larger signature never feeds a smaller one, and an analysis layer precedes the group with it in its signature.
    late = _late(inference)
    ranked: list[tuple[int, int, PartStep | AnalysisStep]] = [
        (len(signature[name]), 0, AnalysisStep(name, reads.of(name), name in late))
        for name in order
        if role_of(inference, name) is Role.ANALYSIS
    ]
    parts = [(above, [name]) for above, names in groups.items() for name in names] if single else groups.items()
    ranked += [(len(above), 1, _part_step(reads, order, names, ends)) for above, names in parts]
    steps = [step for _, _, step in sorted(ranked, key=lambda entry: entry[:2])]
    inputs = tuple(name for name in order if role_of(inference, name) is Role.INPUT)
    return Plan(tuple(steps), dict(zip(aims, ends, strict=True)), inputs)


class _Reads:
    """The tensors that layers read. Layers that pass their input through run only inside parts, at no cost."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._reads: dict[str, tuple[Source, ...]] = {}

    def origin(self, source: Source) -> Source:
        """The tensor with the values of `source`."""
        key = self.inference.tensor(source)
        while passes_through(self.inference, key.layer):
            key = inputs_of(self.inference, self.inference.graph[key.layer])[0]
        return key

    def of(self, name: str) -> tuple[Source, ...]:
        if name not in self._reads:
            sources = inputs_of(self.inference, self.inference.graph[name])
            if role_of(self.inference, name) is Role.ANALYSIS:
                sources = tuple(self.origin(source) for source in sources)
            self._reads[name] = sources
        return self._reads[name]


def _needed(reads: _Reads, ends: Sequence[Source]) -> set[str]:
    found: set[str] = set()
    stack = [end.layer for end in ends]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(source.layer for source in reads.of(name))
    return found


def _late(inference: Inference) -> set[str]:
    """The analysis layers that no engine part of the whole network can depend on."""
    early: set[str] = set()
    late: set[str] = set()
    for name in reversed(inference.graph.order()[0]):
        role = role_of(inference, name)
        looks = role is Role.ANALYSIS or (role is not None and passes_through(inference, name))
        if name in early or not looks:
            early.update(inference.graph[name].producers())
        elif role is Role.ANALYSIS:
            late.add(name)
    return late


def _part_step(reads: _Reads, order: Sequence[str], layers: Sequence[str], ends: Sequence[Source]) -> PartStep:
    members = set(layers)
    feeds = dict.fromkeys(s for name in layers for s in reads.of(name) if s.layer not in members)
    outside = dict.fromkeys(s for name in order if name not in members for s in reads.of(name) if s.layer in members)
    wanted = dict.fromkeys([*outside, *(end for end in ends if end.layer in members)])
    return PartStep(Part(tuple(layers), tuple(feeds)), tuple(wanted))
