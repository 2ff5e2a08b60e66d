"""Types shared by session, engines, worker and command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from designer.files.settings import DEFAULT_ENGINE, LAYOUTS, PRECISIONS
from designer.files.weights import Weights
from designer.graph.model import Source
from designer.runtime.finite import NonFinite
from designer.texts import tr

__all__ = [
    "AUTO",
    "LAYOUTS",
    "ONE_TILE",
    "PRECISIONS",
    "Array",
    "Compiled",
    "CompiledForWeights",
    "Part",
    "Progress",
    "RunOptions",
    "RunResult",
    "Step",
    "Tensor",
]

Array = NDArray[np.float32]
Tensor = NDArray[Any]
Progress = Callable[[int, int, str], None]  # steps done, total steps, current step

AUTO = -1
ONE_TILE = -2


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a network is run. `threads` 0 means all cores of the machine.

    `tile` is the side in pixels of the tiles in which images are run, 0: always whole, AUTO: in tiles if memory requires it.
    ONE_TILE: the network is a tile itself, with little memory.
    `agreed` are the SHA-256 digests of the sources of custom layers that the user allowed to run.
    `formats` are pairs of a layer and its number format, for layers that do not compute in `precision`; see
    `EngineDescriptor.formats`.
    `weights_as_inputs`: for weights that change often; engines that can compile parts once for all weights, which then run slower.
    """

    engine: str = DEFAULT_ENGINE
    precision: str = "fp32"
    layout: str = "nchw"
    device: str = "cpu"
    threads: int = 0
    agreed: tuple[str, ...] = ()
    tile: int = AUTO
    formats: tuple[tuple[str, str], ...] = ()
    weights_as_inputs: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run: a group of layers run together by an engine, or one analysis layer in numpy.

    `cached` steps did not run because nothing that they depend on changed; their `milliseconds` are 0. Results of `dropped`
    steps exceeded the memory limit and are not kept, so the next run computes them again.
    """

    layers: tuple[str, ...]
    engine: str  # its name, or "numpy" for an analysis layer
    milliseconds: float
    cached: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """Outputs by output layer, captured tensors by source, and the steps.

    Arrays are N x C x H x W float32; outputs are cropped if `tiling` padded the input. They are shared with the session's
    cache: never write to them.
    """

    outputs: Mapping[str, Array]
    captures: Mapping[Source, Array] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    milliseconds: float = 0.0
    weights_note: str = ""  # for instance "random weights (seed 0)", displayed with the result
    note: str = ""  # further notes for the user, for instance which results were too large to be kept
    coarse: int = 0  # not 0: computed on inputs of 1 / `coarse` of the width and height, see preview.py
    hidden: Mapping[str, NonFinite] = field(
        default_factory=dict
    )  # by layer: values that are NaN or infinite, not captured

    def notes(self) -> tuple[str, ...]:
        """What the user must know about the result, one sentence each."""
        layer = next(iter(self.hidden), "")
        made = (
            tr("'{layer}' computes values that are NaN or infinite: finite results can be wrong", layer=layer)
            if layer
            else ""
        )
        return tuple(note for note in (self.weights_note, self.note, made) if note)


class Compiled(Protocol):
    """A group of layers compiled by an engine. Feeds and results are keyed by tensor (producer and port).

    A first output always has the key `Source(layer)` with an empty port. Feeds are C-contiguous float32 (or the inferred
    element type), N x C x H x W, any batch size, read-only. Results are fresh arrays that nothing writes to later.
    """

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]: ...


@runtime_checkable
class CompiledForWeights(Compiled, Protocol):
    """A compiled part that can run with other weights, see `RunOptions.weights_as_inputs`."""

    def with_weights(self, weights: Weights) -> CompiledForWeights:
        """The part with weights of the same shapes. Raises DiagnosticError if one is missing."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A group of layers for one engine, in execution order, and the tensors that it reads from outside.

    `feeds` are the outputs of inputs, analysis layers and other parts, never of layers of this part.
    """

    layers: tuple[str, ...]
    feeds: tuple[Source, ...]
