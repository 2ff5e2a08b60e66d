"""One run of a session: step by step, each either taken from earlier results or computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, cast

import numpy as np

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime.api import Array, Step
from designer.runtime.feeding import crop, frozen
from designer.runtime.interrupt import current
from designer.runtime.looking import agree
from designer.runtime.network import operator_of, tensors
from designer.runtime.plan import AnalysisStep, PartStep
from designer.runtime.results import Result, fingerprint, layer_text
from designer.runtime.tiles import Tiling, tiling_of

if TYPE_CHECKING:
    from designer.runtime.session import Session

Progress = Callable[[int, int, str], None]


class Run:
    """One run of a session. `keys` are those of the results it used, `notes` what the person should know."""

    def __init__(self, session: Session, capture: Sequence[Source]) -> None:
        self.session = session
        self.capture = capture
        self.plan, self.prints = session.planned(capture)
        self.values: dict[Source, Array] = {}
        self.versions: dict[Source, str] = {}
        self.cropped: set[Source] = set()
        self.keys: set[str] = set()
        self.steps: list[Step] = []
        self.notes: dict[str, None] = {}
        self.progress: Progress | None = None

    def go(self, progress: Progress | None) -> tuple[dict[str, Array], dict[Source, Array], tuple[Step, ...]]:
        session, total = self.session, len(self.plan.steps)
        self.progress = progress
        for name in self.plan.inputs:
            version, array = session.fed_input(name)
            self.versions[Source(name)], self.values[Source(name)] = version, array
        for number, step in enumerate(self.plan.steps):
            current().check()
            if progress is not None:
                progress(number, total, _title(step))
            self.steps.append(self._part(step) if isinstance(step, PartStep) else self._analysis(step))
        if progress is not None:
            progress(total, total, "")
        session.forget(len(self.prints))
        outputs = {name: self._output(Source(name)) for name in session.output_layers()}
        captures = {source: self._value(session.source(source)) for source in self.capture}
        return outputs, captures, tuple(self.steps)

    def _part(self, step: PartStep) -> Step:
        session, part, prints = self.session, step.part, self.prints[step]
        versions = [self.versions[feed] for feed in part.feeds]
        key, group = fingerprint(prints.key, versions), fingerprint(prints.group, versions)
        tiled = None
        if session.results.get(key) is None:
            tiled = tiling_of(session, step, prints.key, self._batch(step))
        near = tiled is None and session.results.get(key) is None
        found = self._near(step, group, versions) if near else None
        compute = (
            partial(self._in_tiles, step, *tiled) if tiled is not None else partial(self._compute, step, prints.key)
        )
        done = found or self._do(key, part.layers, session.engine.name, compute, group)
        note = session.by_torch.get(prints.key)
        if note is None:
            return done
        self.notes[note] = None
        return replace(done, engine="torch")

    def _compute(self, step: PartStep, print_: str) -> Mapping[Source, Array]:
        made = self.session.compile(step, print_).run({feed: self.values[feed] for feed in step.part.feeds})
        return cast(Mapping[Source, Array], made)

    def _in_tiles(self, step: PartStep, tiling: Tiling, side: int) -> Mapping[Source, Array]:
        counts = [len(tiling.tiles(axis, side)) for axis in (0, 1)]
        total = counts[0] * counts[1]
        self.notes[f"run in {total} tiles of {side} x {side} pixels, to fit into memory"] = None

        def tell(done: int, total: int) -> None:
            current().check()
            if self.progress is not None:
                self.progress(done, total, f"{_title(step)}, tile {done + 1} of {total}")

        made = tiling.run({feed: self.values[feed] for feed in step.part.feeds}, side, tell)
        return cast(Mapping[Source, Array], made)

    def _batch(self, step: PartStep) -> int:
        return max((len(self.values[feed]) for feed in step.part.feeds), default=1)

    def _near(self, step: PartStep, group: str, versions: list[str]) -> Step | None:
        """Take the step's tensors from a run that brings their neighbours; None where the step should run as it is.

        That is so while values still change (nothing was kept for these), and where bits would differ.
        """
        session, started = self.session, perf_counter()
        before = session.results.like(group)
        looked_at = {self.plan.origin[session.source(source)] for source in self.capture} & set(step.wanted)
        if before is None or not looked_at:
            return None
        batch = self._batch(step)
        for wide, prints in session.widened(step, looked_at, batch):
            key = fingerprint(prints.key, versions)
            result = session.results.get(key)
            cached = result is not None
            if result is None:
                made = {source: frozen(array) for source, array in self._compute(wide, prints.key).items()}
                known = before[1]
                if not agree(known.tensors, made):
                    session.differs.add(prints.key)
                    continue
                # What was known stays the same object with the same version: nothing that depends on it runs again.
                held = {source: known.tensors.get(source, array) for source, array in made.items()}
                marks = {source: known.versions.get(source) or fingerprint(key, str(source)) for source in made}
                result = Result(held, marks, group)
                session.results.put(key, result)
            self.keys.update((key, before[0]))
            self.values.update(result.tensors)
            self.versions.update(result.versions)
            spent = 0.0 if cached else (perf_counter() - started) * 1000
            return Step(step.part.layers, session.engine.name, spent, cached)
        return None

    def _analysis(self, step: AnalysisStep) -> Step:
        session = self.session
        feeds = {feed: self.values[feed] for feed in step.feeds}
        if step.late:
            feeds = {feed: self._cropped(feed) for feed in feeds}
            self.cropped.update(tensors(session.inference, step.layer))
        versions = [(self.versions[feed], feeds[feed].shape) for feed in step.feeds]
        key = fingerprint(layer_text(session.inference.graph[step.layer]), versions)

        def compute() -> Mapping[Source, Array]:
            return evaluate(session.inference, step.layer, [feeds[feed] for feed in step.feeds])

        return self._do(key, (step.layer,), "numpy", compute)

    def _do(
        self,
        key: str,
        layers: tuple[str, ...],
        engine: str,
        compute: Callable[[], Mapping[Source, Array]],
        group: str = "",
    ) -> Step:
        results = self.session.results
        started = perf_counter()
        result = results.get(key)
        cached = result is not None
        if result is None:
            made = {source: frozen(array) for source, array in compute().items()}
            result = Result(made, {source: fingerprint(key, str(source)) for source in made}, group)
            results.put(key, result)
        self.keys.add(key)
        self.values.update(result.tensors)
        self.versions.update(result.versions)
        return Step(layers, engine, 0.0 if cached else (perf_counter() - started) * 1000, cached)

    def _value(self, source: Source) -> Array:
        return self.values[self.plan.origin[source]]

    def _output(self, source: Source) -> Array:
        return self._cropped(self.plan.origin[source])

    def _cropped(self, source: Source) -> Array:
        array = self.values[source]
        if source in self.cropped:
            return array
        padding = self.session.padding(source)
        return array if padding is None else crop(array, *padding)


def evaluate(inference: Inference, layer: str, inputs: Sequence[Array]) -> dict[Source, Array]:
    """The outputs of an analysis layer, float32; whatever its code raises becomes a DiagnosticError that names it."""
    operator = operator_of(inference, layer)
    try:
        made = operator.evaluate(inputs)
    except DiagnosticError as error:  # a layer does not know its own name
        raise DiagnosticError(replace(d, layer=d.layer or layer) for d in error.diagnostics) from error
    except Exception as error:  # the code of a plugin may raise anything
        raise DiagnosticError(
            Diagnostic(
                "analysis-failed",
                f"the analysis layer '{layer}' failed: {type(error).__name__}: {error}",
                layer=layer,
                remedy="change its parameters, or remove it",
            )
        ) from error
    arrays = (np.ascontiguousarray(array, dtype=np.float32) for array in made)
    return dict(zip(tensors(inference, layer), arrays, strict=True))


def _title(step: PartStep | AnalysisStep) -> str:
    if isinstance(step, AnalysisStep):
        return step.layer
    layers = step.part.layers
    return layers[0] if len(layers) == 1 else f"{layers[0]} ... {layers[-1]}"
