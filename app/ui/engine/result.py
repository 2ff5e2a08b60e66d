"""What a run brought to the window, and the phases an analysis goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ui.widgets.texts import tr
from designer.units import digits, duration

Array = NDArray[np.float32]


class Phase(StrEnum):
    """Where the analysis stands; what is shown besides the picture follows from it."""

    IDLE = "idle"  # not launched
    RUNNING = "running"
    READY = "ready"
    BLOCKED = "blocked"  # the network or its inputs cannot be run as they are; it goes on when that is mended
    WEIGHTS = "weights"  # the person must choose weights, or agree to random ones
    FAILED = "failed"  # the engine died or refused
    STOPPED = "stopped"  # the person stopped it


@dataclass(frozen=True, slots=True)
class RunStep:
    """A group of layers that the engine ran together, or one analysis layer."""

    layers: tuple[str, ...]
    engine: str
    milliseconds: float
    cached: bool
    dropped: bool = False  # its results are above the memory for kept ones: the next run computes it again


@dataclass(frozen=True)
class AnalysisResult:
    """Tensors are N x C x H x W (or of another rank), read-only and mapped; keys are layer names and sources as text."""

    outputs: Mapping[str, Array] = field(default_factory=dict)
    captures: Mapping[str, Array] = field(default_factory=dict)
    steps: tuple[RunStep, ...] = ()
    milliseconds: float = 0.0  # in the engine
    latency: float = 0.0  # milliseconds from the wish to here
    note: str = ""  # where the weights come from when not from a file
    coarse: int = 0  # not 0: computed at 1 / `coarse` of the width and height; the full result follows
    nonfinite: Mapping[str, float] = field(default_factory=dict)  # share of values that are no numbers, where there are

    def note_of(self, output: str) -> str:
        """What stands on the picture of an output: where the weights come from, and values that are no numbers."""
        share = self.nonfinite.get(output, 0.0)
        broken = tr("{share} % of the values are no numbers", share=digits(100 * share)) if share else ""
        return "; ".join(text for text in (self.note, broken) if text)

    def summary(self) -> str:
        """One line: time, and what was run again."""
        ran = [name for step in self.steps if not step.cached for name in step.layers]
        total = sum(len(step.layers) for step in self.steps)
        if not ran:
            what = tr("nothing had to run again")
        elif len(ran) == total:
            what = tr("all {total} layers", total=total)
        elif len(ran) <= 3:
            what = tr("re-ran {names}", names=", ".join(ran))
        else:
            what = tr("re-ran {count} of {total} layers", count=len(ran), total=total)
        preview = (
            tr("preview at 1/{factor}, the full picture follows", factor=self.coarse) + " · " if self.coarse else ""
        )
        return f"{preview}{duration(self.milliseconds)} · {what}"


def result_of(
    reply: Mapping[str, Any],
    take: Callable[[Mapping[str, Any]], NDArray[Any]],
    before: AnalysisResult | None,
    latency: float,
) -> AnalysisResult:
    """The result in a reply of `run`. `take` maps a handle's array; captures that did not change are those of `before`."""
    outputs = {str(name): take(handle) for name, handle in (reply.get("outputs") or {}).items()}
    captures = {str(name): take(handle) for name, handle in (reply.get("captures") or {}).items()}
    if before is not None:
        captures |= {name: before.captures[name] for name in reply.get("same") or ()}
    spent, note = float(reply.get("milliseconds", 0.0)), str(reply.get("note") or "")
    broken = {str(name): float(found.get("share", 0.0)) for name, found in (reply.get("nonfinite") or {}).items()}
    coarse = int(reply.get("coarse") or 0)
    return AnalysisResult(outputs, captures, steps_of(reply.get("steps")), spent, latency, note, coarse, broken)


def steps_of(found: Any) -> tuple[RunStep, ...]:
    """Steps from the plain data of a reply."""
    return tuple(
        RunStep(
            tuple(str(name) for name in item.get("layers", ())),
            str(item.get("engine", "")),
            float(item.get("milliseconds", 0.0)),
            bool(item.get("cached", False)),
            bool(item.get("dropped", False)),
        )
        for item in found or ()
    )
