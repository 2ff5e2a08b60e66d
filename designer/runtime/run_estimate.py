"""An estimate of the next run's time from earlier times of its steps."""

from __future__ import annotations

from collections.abc import Iterable

from designer.graph.graph import Graph
from designer.runtime.api import Step
from designer.runtime.plan import PartStep, Plan


class RunEstimate:
    """`changed` are the layers that changed since the last run; steps downstream of them run again."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self._took: dict[tuple[str, ...], float] = {}

    def learn(self, steps: Iterable[Step]) -> None:
        """Store the times of a complete run."""
        self._took |= {step.layers: step.milliseconds for step in steps if not step.cached}
        self.changed.clear()

    def of(self, graph: Graph, plan: Plan) -> float | None:
        """Milliseconds of the steps that run again; None if one of them has never run."""
        known = [name for name in self.changed if name in graph]
        below = graph.downstream(known) | set(known)
        total = 0.0
        for step in plan.steps:
            layers = step.part.layers if isinstance(step, PartStep) else (step.layer,)
            if below.isdisjoint(layers):
                continue
            took = self._took.get(layers)
            if took is None:
                return None
            total += took
        return total
