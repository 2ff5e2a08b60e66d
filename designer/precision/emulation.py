"""Runs of a deployed network with results rounded to number formats, layer by layer, and the ranges of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.runtime.api import Array, RunOptions
from designer.runtime.engines.rounded_torch import EMULATED, EmulatedEngine
from designer.runtime.input_data import crop
from designer.runtime.number_formats import FLOAT16
from designer.runtime.plan import PartStep
from designer.runtime.session import Session

if TYPE_CHECKING:
    import torch

    from designer.runtime.rounding import Observe

_REDUCTIONS = frozenset({"sum", "mean", "var", "std", "var_mean", "norm", "linalg_vector_norm"})
_PRODUCTS = frozenset({"addmm", "mm", "bmm", "baddbmm"})


def _terms(operator: str, args: Sequence[Any], result: torch.Tensor) -> int:
    """The number of values that one value of `result` is a sum of."""
    if operator in _REDUCTIONS:
        return int(args[0].numel()) // max(result.numel(), 1)
    if operator == "convolution":
        weight, transposed, groups = args[1], args[6], args[8]
        return int(weight.numel()) // (int(weight.shape[1]) * groups if transposed else int(weight.shape[0]))
    if operator in _PRODUCTS:
        return int(args[-1].shape[-2])
    return 1


@dataclass
class LayerRange:
    """The values of a layer's operators before rounding, over all runs that were observed.

    `largest` is the greatest finite magnitude, `smallest` the least above 0. Counts are of values that rounding made infinite
    (`overflowed`) or 0 (`underflowed`), and that were NaN or infinite before. `terms` is the length of its longest sum.
    """

    largest: float = 0.0
    smallest: float = float("inf")
    values: int = 0
    overflowed: int = 0
    underflowed: int = 0
    nonfinite: int = 0
    terms: int = 1


class RangeObserver:
    """Collects the ranges of the layers of emulated runs; given to `Emulation.run`."""

    def __init__(self) -> None:
        self.ranges: dict[str, LayerRange] = {}

    def __call__(
        self, layer: str, operator: str, args: tuple[Any, ...], before: torch.Tensor, after: torch.Tensor
    ) -> None:
        if not before.numel():
            return
        found = self.ranges.setdefault(layer, LayerRange())
        magnitude = before.abs()
        found.values += before.numel()
        largest = float(magnitude.max())
        if not isfinite(largest):
            finite = magnitude.isfinite()
            found.nonfinite += before.numel() - int(finite.sum())
            magnitude = magnitude.where(finite, 0)
            largest = float(magnitude.max())
        found.largest = max(found.largest, largest)
        if largest > FLOAT16.largest:  # every other format has a wider range
            found.overflowed += int((before.isfinite() & ~after.isfinite()).sum())
        smallest = float(magnitude.where(magnitude > 0, inf).min())
        found.smallest = min(found.smallest, smallest)
        if smallest < FLOAT16.smallest:
            found.underflowed += int(((magnitude > 0) & (after == 0)).sum())
        found.terms = max(found.terms, _terms(operator, args, before))


class Emulation:
    """A network without templates, analysis layers and losses, to be run in any formats. Not thread-safe."""

    def __init__(self, graph: Graph, registry: Registry, weights: Weights, options: RunOptions | None = None) -> None:
        """`options` are those for threads and custom layers; precision and formats are arguments of `run`."""
        given = options if options is not None else RunOptions()
        self._options = RunOptions(EMULATED.name, threads=given.threads, agreed=given.agreed)
        self.session = Session(deploy(graph, registry), registry, weights, self._options)
        self.layers = tuple(self.session.inference.graph.layers)

    def feed(self, images: Mapping[str, Path | Array]) -> None:
        """Set the inputs by layer: image or tensor files, or images as N x C x H x W in 0..1."""
        for layer, image in images.items():
            if isinstance(image, Path):
                self.session.set_input_file(layer, image)
            else:
                self.session.set_input(layer, image, is_image=True)

    def run(
        self, precision: str = "fp32", formats: Mapping[str, str] | None = None, observe: Observe | None = None
    ) -> dict[str, Array]:
        """The outputs by layer, with results rounded to `precision`, or to `formats` of single layers.

        Raises DiagnosticError if the network cannot run.
        """
        session = self.session
        options = RunOptions(
            EMULATED.name,
            precision,
            threads=self._options.threads,
            agreed=self._options.agreed,
            formats=tuple((formats or {}).items()),
        )
        engine = EmulatedEngine(session.inference, session.weights, options)
        plan = session.plan()
        values = {Source(name): session.fed_input(name)[1] for name in plan.inputs}
        for step in plan.steps:
            assert isinstance(step, PartStep)  # a deployed network has no analysis layers
            compiled = engine.compile(step.part, step.wanted)
            compiled.observe = observe
            values.update(compiled.run({feed: values[feed] for feed in step.part.feeds}))
        outputs = {}
        for source, origin in plan.origin.items():
            padding = session.padding(origin)
            outputs[source.layer] = values[origin] if padding is None else crop(values[origin], *padding)
        return outputs
