"""Checks engines: exceptions and invalid results become errors that name the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import numpy as np

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Symbol, TensorType
from designer.runtime.api import Compiled, CompiledForWeights, Part, Tensor
from designer.runtime.engine_api import Engine, EngineDescriptor, PreparedStep, Sample, SingleStep, StepTimer
from designer.runtime.interrupt import InterruptedRunError, current
from designer.runtime.network import type_of
from designer.texts import tr

T = TypeVar("T")
REMEDY = "choose another engine, or fix this one"


class CheckedEngine:
    """An engine whose errors name it and whose results have the inferred shapes and element types."""

    def __init__(self, descriptor: EngineDescriptor, engine: Engine, inference: Inference) -> None:
        self.descriptor = descriptor
        self.engine = engine
        self._inference = inference

    @property
    def name(self) -> str:
        return self.descriptor.name

    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        feeds = {feed: type_of(self._inference, feed) for feed in part.feeds}
        results = {self._inference.tensor(s): type_of(self._inference, s) for s in wanted}
        compiled = guarded(self.descriptor, "prepare", part.layers, lambda: self.engine.compile(part, wanted))
        kind = _CheckedForWeights if isinstance(compiled, CompiledForWeights) else _CheckedCompiled
        return kind(self.descriptor, compiled, part, feeds, results)


class _CheckedCompiled:
    def __init__(
        self,
        descriptor: EngineDescriptor,
        compiled: Compiled,
        part: Part,
        feeds: Mapping[Source, TensorType],
        results: Mapping[Source, TensorType],
    ) -> None:
        self._descriptor = descriptor
        self._compiled = compiled
        self._part = part
        self._feeds = feeds
        self._results = results

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        made = guarded(self._descriptor, "run", self._part.layers, lambda: self._compiled.run(feeds))
        batch = next(
            (len(feeds[s]) for s, kind in self._feeds.items() if kind.shape and isinstance(kind.shape[0], Symbol)), 1
        )
        for source, kind in self._results.items():
            wrong = _wrong(made, source, kind, batch)
            if wrong:
                raise DiagnosticError.of(
                    "wrong-result",
                    tr(
                        "the engine {title} returned {wrong} for '{source}', which is {described}",
                        title=self._descriptor.title,
                        wrong=wrong,
                        source=source,
                        described=_described(kind.concrete(batch), kind.dtype.value),
                    ),
                    layer=source.layer,
                    remedy=REMEDY,
                )
        return made


class _CheckedForWeights(_CheckedCompiled):
    def with_weights(self, weights: Weights) -> CompiledForWeights:
        compiled = cast(CompiledForWeights, self._compiled)
        return _CheckedForWeights(
            self._descriptor, compiled.with_weights(weights), self._part, self._feeds, self._results
        )


class CheckedTimer:
    """A step timer whose errors name the engine and whose samples refer to layers of the part."""

    def __init__(self, descriptor: EngineDescriptor, timer: StepTimer, part: Part) -> None:
        self._descriptor = descriptor
        self._timer = timer
        self._part = part

    def whole(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[float]:
        layers = self._part.layers
        return guarded(self._descriptor, "time", layers, lambda: self._timer.whole(runs, warmup, tick))

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        layers = self._part.layers
        samples = guarded(self._descriptor, "profile", layers, lambda: self._timer.layers(runs, warmup, tick))
        strange = [name for sample in samples for name in sample.layers if name not in layers]
        if strange:
            message = tr(
                "the engine {title} timed the layer '{strange}', which is not in the part",
                title=self._descriptor.title,
                strange=strange[0],
            )
            raise DiagnosticError.of("wrong-result", message, remedy=REMEDY)
        return samples

    def single_steps(self) -> list[SingleStep]:
        steps = guarded(self._descriptor, "take apart", self._part.layers, self._timer.single_steps)
        return [replace(step, prepare=partial(self._prepare, step)) for step in steps]

    def _prepare(self, step: SingleStep) -> PreparedStep:
        made = guarded(self._descriptor, "prepare", step.layers, step.prepare)
        return replace(made, run=lambda: guarded(self._descriptor, "run", step.layers, made.run))


def guarded(descriptor: EngineDescriptor, verb: str, layers: Sequence[str], work: Callable[[], T]) -> T:
    """Return `work()`. Exceptions other than our own become a DiagnosticError that names the engine."""
    try:
        return work()
    except (DiagnosticError, InterruptedRunError):
        raise
    except Exception as error:  # engines are third-party code and may raise anything
        current().check()
        span = "" if not layers else f" '{layers[0]}'" if len(layers) == 1 else f" '{layers[0]}' ... '{layers[-1]}'"
        raise DiagnosticError.of(
            "engine-failed",
            tr(
                "the engine {title} could not {verb}{span}: {reason_of}",
                title=descriptor.title,
                verb=verb,
                span=span,
                reason_of=reason_of(error),
            ),
            layer=layers[0] if layers else None,
            remedy=REMEDY,
        ) from error


def broken(descriptor: EngineDescriptor, reason: str) -> Diagnostic:
    """The diagnostic for an engine whose declaration does not work."""
    message = tr("the engine {title} is broken: {reason}", title=descriptor.title, reason=reason)
    return Diagnostic("broken-plugin", message, remedy=tr("fix or remove the plugin that provides it"))


def reason_of(error: BaseException) -> str:
    """The class of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def _wrong(made: object, source: Source, kind: TensorType, batch: int) -> str:
    """What is wrong with a result; "" if it is correct."""
    if not isinstance(made, Mapping) or source not in made:
        return "nothing"
    array = made[source]
    if not isinstance(array, np.ndarray):
        return tr("a {name}", name=type(array).__name__)
    # Reduced precisions leave an engine as float32.
    right_type = array.dtype.kind == "f" if kind.dtype.is_float else array.dtype == np.dtype(kind.dtype.value)
    if array.shape == kind.concrete(batch) and right_type:
        return ""
    return _described(array.shape, array.dtype.name)


def _described(shape: Sequence[int], dtype: str) -> str:
    return f"{' x '.join(str(size) for size in shape) or 'a scalar'} of {dtype}"
