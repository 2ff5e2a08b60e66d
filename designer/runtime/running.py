"""One run of a session: step by step, each either taken from earlier results or computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

import numpy as np

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime.api import Array, Step
from designer.runtime.feeding import crop, frozen
from designer.runtime.network import operator_of, tensors
from designer.runtime.plan import AnalysisStep, PartStep
from designer.runtime.results import fingerprint, layer_text

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

    def go(self, progress: Progress | None) -> tuple[dict[str, Array], dict[Source, Array], tuple[Step, ...]]:
        session, total = self.session, len(self.plan.steps)
        for name in self.plan.inputs:
            version, array = session.fed_input(name)
            self.versions[Source(name)], self.values[Source(name)] = version, array
        for number, step in enumerate(self.plan.steps):
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
        session, part = self.session, step.part
        key = fingerprint(self.prints[step], [self.versions[feed] for feed in part.feeds])

        def compute() -> Mapping[Source, Array]:
            made = session.compile(step, self.prints[step]).run({feed: self.values[feed] for feed in part.feeds})
            return cast(Mapping[Source, Array], made)

        done = self._do(key, part.layers, session.engine.name, compute)
        note = session.by_torch.get(self.prints[step])
        if note is None:
            return done
        self.notes[note] = None
        return replace(done, engine="torch")

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
        self, key: str, layers: tuple[str, ...], engine: str, compute: Callable[[], Mapping[Source, Array]]
    ) -> Step:
        results = self.session.results
        started = perf_counter()
        made = results.get(key)
        cached = made is not None
        if made is None:
            made = {source: frozen(array) for source, array in compute().items()}
            results.put(key, made)
        self.keys.add(key)
        for source, array in made.items():
            self.values[source], self.versions[source] = array, fingerprint(key, str(source))
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
