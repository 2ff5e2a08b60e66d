"""Fixes for findings of type checking, as edits. Each one is tried on a copy of the network before it is offered.

A fix removes its finding and adds no new one. The only exception is the removal of a link of a loop, which may leave a
port open if it removes more findings than it adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference, Steps, finish
from designer.operators import fix_links, fix_shapes, fix_texts
from designer.operators.fix_case import Case, Idea
from designer.operators.inside import InsideInference
from designer.operators.registry import Registry
from designer.operators.training_branch import missing_output

MOST = 6  # fixes that are offered for one finding
TRIED = 80  # ideas that are tried for one finding
Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix for a finding: its title and the edit."""

    title: str
    edit: Edit


def fixes(
    graph: Graph, registry: Registry, inference: Inference, diagnostic: Diagnostic, trial: FixTrial | None = None
) -> tuple[Fix, ...]:
    """The edits that fix `diagnostic`, the smallest change first; empty if no idea works.

    Several findings of the same network can share a `trial`.
    """
    return finish(finding_fixes(graph, registry, inference, diagnostic, trial))


def finding_fixes(
    graph: Graph, registry: Registry, inference: Inference, diagnostic: Diagnostic, trial: FixTrial | None = None
) -> Steps[tuple[Fix, ...]]:
    """`fixes` in steps, which are valid only until the network changes."""
    trial = trial if trial is not None else FixTrial(graph, registry, inference)
    yield
    if not trial.has(diagnostic):
        return ()
    found: dict[str, Fix] = {}
    case = Case(graph, registry, inference, diagnostic)
    for number, idea in enumerate(_ideas(case)):
        if number >= TRIED or len(found) >= MOST:
            break
        yield
        edit = Edit(idea.title, idea.edit.layers, properties=idea.edit.properties)
        known = idea.title in found or any(replace(fix.edit, title=idea.title) == edit for fix in found.values())
        if not known and (yield from trial.mends(diagnostic, idea)):
            found[idea.title] = Fix(idea.title, edit)
    return tuple(found.values())


def _ideas(case: Case) -> Iterator[Idea]:
    """Edits that might help, the smallest change first. An idea that cannot be expressed as an edit is omitted."""
    for source in (fix_texts.ideas, fix_links.ideas, fix_shapes.ideas):
        ideas = source(case)
        while True:
            try:
                idea = next(ideas, None)
            except DiagnosticError:  # a command rejected it: a loop, a name
                break
            if idea is None:
                break
            yield idea


class FixTrial:
    """A copy of a network on which edits are tried and undone."""

    def __init__(self, graph: Graph, registry: Registry, inference: Inference) -> None:
        self._graph = graph.copy()
        if isinstance(inference, InsideInference):
            feeds = inference.inside.feeds
            self._inference: Inference = InsideInference(self._graph, registry, feeds, empty=True)
        else:
            self._inference = Inference(self._graph, registry, empty=True)
        self._inference.adopt(inference)
        self._registry = registry
        self._inside = isinstance(inference, InsideInference)
        self._before = self._keys()

    def _keys(self) -> Counter[Key]:
        silent = None if self._inside else missing_output(self._graph, self._registry)
        return Counter(key(d) for d in (*self._inference.diagnostics(), *((silent,) if silent is not None else ())))

    def has(self, diagnostic: Diagnostic) -> bool:
        """Whether the network has this finding."""
        return key(diagnostic) in self._before

    def mends(self, diagnostic: Diagnostic, idea: Idea) -> Steps[bool]:
        """Whether the idea removes the finding without adding another."""
        before = self._before
        if not idea.edit:
            return False
        try:
            change = self._graph.apply(idea.edit)
        except ValueError:  # the edit is about another network
            return False
        yield from self._inference.updating(change)
        after = self._keys()
        yield from self._inference.updating(self._graph.apply(idea.edit.reversed()))
        gone = key(diagnostic)
        if after[gone] >= before[gone]:
            return False
        new = after - before
        opened = Counter(
            {k: n for k, n in new.items() if idea.opens is not None and k[0] == "missing-input" and k[1] == idea.opens}
        )
        return not (new - opened) and (not opened or after.total() < before.total())


def key(diagnostic: Diagnostic) -> Key:
    """The identity of a finding; the values in its message may differ."""
    d = diagnostic
    return (d.code, d.layer, d.port, d.parameter, d.template, d.inner)
