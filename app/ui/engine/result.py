"""What a run brought to the window, and the phases an analysis goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.protocol import RunReply, RunStep
from designer.runtime.shared import Handle
from designer.texts import tr
from designer.units import digits, duration

Array = NDArray[np.float32]


class Phase(StrEnum):
    """The state of the analysis, which determines what is shown next to the image."""

    IDLE = "idle"  # not launched
    RUNNING = "running"
    READY = "ready"
    BLOCKED = "blocked"  # the network or its inputs cannot be run as they are; it goes on when that is mended
    WEIGHTS = "weights"  # the user must choose weights, or agree to random ones
    FAILED = "failed"  # the engine died or refused
    STOPPED = "stopped"  # the user stopped it


@dataclass(frozen=True, eq=False)
class AnalysisResult:
    """Tensors are N x C x H x W (or of another rank), read-only and mapped; keys are layer names and sources as text."""

    outputs: Mapping[str, Array] = field(default_factory=dict)
    captures: Mapping[str, Array] = field(default_factory=dict)
    steps: tuple[RunStep, ...] = ()
    milliseconds: float = 0.0  # in the engine
    latency: float = 0.0  # milliseconds from the request to this result
    note: str = ""  # where the weights come from when not from a file
    coarse: int = 0  # not 0: computed at 1 / `coarse` of the width and height; the full result follows
    nonfinite: Mapping[str, float] = field(default_factory=dict)  # share of values that are NaN or infinite, by layer
    weights: str = ""  # what the engine used, and the SHA-256 of its file
    weights_sha256: str = ""

    def note_of(self, output: str) -> str:
        """The note on the image of an output: the origin of the weights, and values that are NaN or infinite."""
        share = self.nonfinite.get(output, 0.0)
        broken = tr("{share} % of the values are NaN or infinite", share=digits(100 * share)) if share else ""
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
        preview = tr("preview at 1/{factor}, the full image follows", factor=self.coarse) + " · " if self.coarse else ""
        return f"{preview}{duration(self.milliseconds)} · {what}"


def result_of(
    reply: RunReply, take: Callable[[Handle], NDArray[Any]], before: AnalysisResult | None, latency: float
) -> AnalysisResult:
    """The result in a reply. `take` maps a handle's array; captures that did not change are those of `before`."""
    captures = {name: take(handle) for name, handle in reply.captures.items()}
    if before is not None:
        captures |= {name: before.captures[name] for name in reply.same}
    return AnalysisResult(
        {name: take(handle) for name, handle in reply.outputs.items()},
        captures,
        reply.steps,
        reply.milliseconds,
        latency,
        reply.note,
        reply.coarse,
        {name: found.share for name, found in reply.nonfinite.items()},
        reply.weights,
        reply.weights_sha256,
    )
