"""FP16, BF16 and mixed precision: which layers have to stay in FP32, why, and what the rest does to the user's images.

A layer stays in FP32 if its values leave the range of FP16, if they are large sums, or if it has too great a share in the error
of the result; the layers of one normalization stay together. The verdict is the PSNR of emulated runs against FP32.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from statistics import fmean

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.metrics import result_psnr
from designer.precision.emulation import Emulation, LayerRange, RangeObserver
from designer.precision.image_set import image_input, read_images
from designer.precision.normalization import normalization_groups
from designer.runtime.api import Array, Progress
from designer.runtime.interrupt import current
from designer.runtime.number_formats import FLOAT16, FLOAT32, OF_PRECISION
from designer.texts import tr
from designer.units import digits

MIXED = "mixed"
TARGETS = ("fp16", "bf16", MIXED)
BUDGET_DB = 50.0  # of mixed precision; an error of less than one level of an 8-bit image
LARGE = 512.0  # values above are not summed in FP16: AutoCast of NVIDIA ModelOpt has the same limit (data_max)
LONG_SUM = 256  # terms
IMAGES = 32
SENSITIVITY_IMAGES = 4
LARGEST_SIDE = 1024  # pixels of an image that are used, from its middle


@dataclass(frozen=True)
class Validation:
    """A network with images, and its results in FP32. `skipped` maps names of files to the reason."""

    emulation: Emulation
    input: str
    images: Mapping[str, Array]
    expected: Mapping[str, Mapping[str, Array]]
    skipped: Mapping[str, str]
    ranges: Mapping[str, LayerRange]

    def psnr(self, precision: str, formats: Mapping[str, str], count: int = IMAGES) -> float:
        """The mean PSNR in dB of the first images against FP32; infinity if all results are equal."""
        found = []
        for name, image in list(self.images.items())[:count]:
            current().check()
            self.emulation.feed({self.input: image})
            made = self.emulation.run(precision, formats)
            found += [result_psnr(self.expected[name][layer], array) for layer, array in made.items()]
        finite = [value for value in found if isfinite(value)]
        return fmean(finite) if finite else inf


@dataclass(frozen=True)
class PrecisionResult:
    """The formats of a network and what they cost.

    `kept` are layers that stay in FP32, with the reason; `overflow` maps layers to the largest magnitude, if that leaves the range of
    the target, `underflow` to the share of values that become 0, `nonfinite` to the number of values that are NaN or infinite in FP32.
    `bf16_db` is the PSNR of BF16, if FP16 overflows or misses the budget.
    """

    target: str
    psnr_db: float
    budget_db: float | None
    kept: Mapping[str, str] = field(default_factory=dict)
    overflow: Mapping[str, float] = field(default_factory=dict)
    underflow: Mapping[str, float] = field(default_factory=dict)
    nonfinite: Mapping[str, int] = field(default_factory=dict)
    bf16_db: float | None = None
    layers: int = 0  # that compute

    @property
    def met(self) -> bool:
        return self.budget_db is None or self.psnr_db >= self.budget_db

    @property
    def precision(self) -> str:
        """The precision of all layers that are not kept."""
        return "fp16" if self.target == MIXED else self.target

    @property
    def formats(self) -> dict[str, str]:
        return dict.fromkeys(self.kept, FLOAT32.name)


def validate(emulation: Emulation, folder: Path, progress: Progress | None = None) -> Validation:
    """Run a network in FP32 on the images of a folder. Images that cannot be read or do not fit are skipped.

    Raises DiagnosticError if the network has another input than one image, or no image can be used.
    """
    layer, _, dims = image_input(emulation.session.inference)
    seen = RangeObserver()
    done: list[Mapping[str, Array]] = []

    def use(image: Array) -> tuple[Array, Mapping[str, Array]]:
        image = _middle(image)
        if progress is not None:
            progress(len(done), 0, tr("Running in FP32"))
        emulation.feed({layer: image})
        done.append(emulation.run(observe=seen))
        return image, done[-1]

    found, skipped = read_images(folder, dims.channels, use, count=IMAGES)
    images = {name: image for name, (image, _) in found.items()}
    return Validation(emulation, layer, images, {n: made for n, (_, made) in found.items()}, skipped, seen.ranges)


def choose_precision(
    validation: Validation,
    target: str,
    budget_db: float | None = None,
    keep: Collection[str] = (),
    progress: Progress | None = None,
) -> PrecisionResult:
    """The formats for `target`, one of TARGETS. `keep` are layers that stay in FP32 at the user's request.

    Mixed precision keeps further layers until the PSNR reaches the budget, BUDGET_DB by default.
    """
    emulation, ranges = validation.emulation, validation.ranges
    precision = "fp16" if target == MIXED else target
    limit = OF_PRECISION[precision].largest
    budget = BUDGET_DB if budget_db is None and target == MIXED else budget_db
    for name in keep:
        if name not in emulation.layers:
            raise DiagnosticError.of(
                "no-such-layer",
                tr("there is no layer '{name}' to keep in FP32", name=name),
                layer=name,
                remedy=tr("choose a layer of the network; layers in templates are called <instance>.<layer>"),
            )
    kept = dict.fromkeys(keep, tr("chosen by the user"))
    overflow = {layer: found.largest for layer, found in ranges.items() if found.largest > limit}
    if target == MIXED:
        kept = _readers_of_large_values(validation, _grouped(validation, {**_out_of_range(ranges), **kept}))
    reached = validation.psnr(precision, dict.fromkeys(kept, FLOAT32.name))
    if target == MIXED and budget is not None and reached < budget:
        kept, reached = _kept_for(validation, kept, budget, progress)
    bf16 = None
    if precision == "fp16" and (overflow or (budget is not None and validation.psnr("fp16", {}) < budget)):
        bf16 = validation.psnr("bf16", {})
    return PrecisionResult(
        target,
        reached,
        budget,
        kept,
        overflow,
        _underflow(validation, precision),
        {layer: found.nonfinite for layer, found in ranges.items() if found.nonfinite},
        bf16,
        len(ranges),
    )


def _middle(image: Array) -> Array:
    top, left = ((max(0, side - LARGEST_SIDE)) // 2 for side in image.shape[2:])
    return np.ascontiguousarray(image[:, :, top : top + LARGEST_SIDE, left : left + LARGEST_SIDE])


def _out_of_range(ranges: Mapping[str, LayerRange]) -> dict[str, str]:
    """The layers whose values do not fit into FP16, with the reason."""
    found = {}
    for layer, values in ranges.items():
        largest = digits(values.largest)
        if values.largest > FLOAT16.largest:
            found[layer] = tr(
                "values up to {largest} exceed {limit:g}, the largest FP16 number",
                largest=largest,
                limit=FLOAT16.largest,
            )
        elif values.largest > LARGE and values.terms >= LONG_SUM:
            found[layer] = tr(
                "values up to {largest} are sums of {terms} terms, which FP16 cannot add reliably",
                largest=largest,
                terms=values.terms,
            )
    return found


def _readers_of_large_values(validation: Validation, kept: dict[str, str]) -> dict[str, str]:
    """`kept`, with the layers that would read values from these that do not fit into FP16."""
    emulation = validation.emulation
    while kept:
        seen = RangeObserver()
        for image in validation.images.values():
            emulation.feed({validation.input: image})
            emulation.run("fp16", dict.fromkeys(kept, FLOAT32.name), seen)
        found = {layer: values.largest for layer, values in seen.ranges.items() if values.overflowed}
        if not found.keys() - kept.keys():
            return kept
        more = {
            layer: tr(
                "reads values up to {largest}, which exceed {limit:g}", largest=digits(size), limit=FLOAT16.largest
            )
            for layer, size in found.items()
        }
        kept = _grouped(validation, {**more, **kept})
    return kept


def _grouped(validation: Validation, kept: Mapping[str, str]) -> dict[str, str]:
    """`kept`, with the other layers of the normalizations that they belong to."""
    groups = normalization_groups(validation.emulation.session.inference)
    found = dict(kept)
    for layer in kept:
        for other in sorted(groups.get(layer, ())):
            found.setdefault(other, tr("belongs to the normalization with '{layer}'", layer=layer))
    return found


def _kept_for(
    validation: Validation, kept: Mapping[str, str], budget: float, progress: Progress | None
) -> tuple[dict[str, str], float]:
    """Keep the layers with the largest share of the error, as few as reach the budget; and the PSNR that is reached."""
    shares = _shares(validation, [layer for layer in validation.ranges if layer not in kept], progress)
    order = sorted(shares, key=lambda layer: -shares[layer])

    def first(count: int) -> dict[str, str]:
        more = {layer: tr("has {share:.0%} of the error of the result", share=shares[layer]) for layer in order[:count]}
        return _grouped(validation, {**kept, **more})

    low, high = 0, len(order)  # `low` layers are too few, `high` are enough
    while high - low > 1:
        if progress is not None:
            progress(0, 0, tr("Choosing layers: between {low} and {high}", low=low, high=high))
        middle = (low + high) // 2
        if validation.psnr("fp16", dict.fromkeys(first(middle), FLOAT32.name)) >= budget:
            high = middle
        else:
            low = middle
    found = first(high)
    return found, validation.psnr("fp16", dict.fromkeys(found, FLOAT32.name))


def _shares(validation: Validation, layers: Sequence[str], progress: Progress | None) -> dict[str, float]:
    """The share of each layer in the squared error of the result, if only this layer is rounded to FP16."""
    errors = {}
    for number, layer in enumerate(layers):
        if progress is not None:
            progress(number, len(layers), tr("Rounding only '{layer}'", layer=layer))
        found = validation.psnr("fp32", {layer: FLOAT16.name}, SENSITIVITY_IMAGES)
        errors[layer] = 10 ** (-found / 10) if isfinite(found) else 0.0
    total = sum(errors.values())
    return {layer: error / total if total else 0.0 for layer, error in errors.items()}


def _underflow(validation: Validation, precision: str) -> dict[str, float]:
    """The layers that lose values to 0, and the share of their values that is lost, on the first image."""
    seen = RangeObserver()
    validation.emulation.feed({validation.input: next(iter(validation.images.values()))})
    validation.emulation.run(precision, observe=seen)
    return {layer: values.underflowed / values.values for layer, values in seen.ranges.items() if values.underflowed}
