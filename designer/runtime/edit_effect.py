"""What an edit of a network and its weights does to the results: the function is kept, or by how much it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designer.graph.model import Source
from designer.metrics import psnr, result_psnr
from designer.operators.references import Restoration, restorations
from designer.runtime.session import Session
from designer.texts import tr

KEPT = 1e-4  # largest difference of an output of a kept function, relative to its largest value
ROUNDING = float(np.finfo(np.float32).eps)  # a smaller difference is kept: an output may be 0 everywhere

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EditEffect:
    """The largest absolute `difference` of the outputs. `kept`: it is due to rounding only.

    `before` and `after` are PSNRs in dB against the clean image; without one, `after` is the PSNR against the result before the
    edit, and `before` is None. Both are None if outputs have other shapes than before.
    """

    difference: float
    kept: bool
    before: float | None = None
    after: float | None = None

    def __str__(self) -> str:
        if self.kept:
            return tr("function kept (difference {difference})", difference=f"{self.difference:.1g}")
        if self.before is not None and self.after is not None:
            return tr(
                "changed: {before} -> {after} dB on this image", before=f"{self.before:.2f}", after=f"{self.after:.2f}"
            )
        if self.after is not None:
            return tr("changed: {after} dB to the result before, on this image", after=f"{self.after:.2f}")
        return tr("changed: the outputs have other shapes")


def edit_effect(before: Session, after: Session) -> EditEffect:
    """Run both sessions, which were fed with the same data, and compare their outputs."""
    results = [_run(session) for session in (before, after)]
    (one, clean_one), (other, clean_other) = results
    pairs = [(one[name], other[name]) for name in one if name in other]
    if not pairs or any(a.shape != b.shape for a, b in pairs) or one.keys() != other.keys():
        return EditEffect(np.inf, False)
    differences = [_difference(a, b) for a, b in pairs]
    difference = float(np.max([found for found, _ in differences]))  # NaN if one is
    if all(found <= max(KEPT * largest, ROUNDING) for found, largest in differences):
        return EditEffect(difference, True)
    if clean_one is not None and clean_other is not None:
        return EditEffect(difference, False, clean_one, clean_other)
    return EditEffect(difference, False, None, min(result_psnr(a, b) for a, b in pairs))


def _difference(a: Floats, b: Floats) -> tuple[float, float]:
    """The largest difference of an output, NaN if it is not finite in one of them, and the largest finite value before."""
    finite, equal = np.isfinite(a), (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.where(equal, 0, a).astype(np.float64) - np.where(equal, 0, b)
    return float(np.abs(apart).max(initial=0.0)), float(np.abs(a).max(where=finite, initial=0.0))


def _run(session: Session) -> tuple[Mapping[str, Floats], float | None]:
    """The outputs, and the PSNR of the first one that has a clean image."""
    measured: tuple[Restoration, ...] = restorations(session.inference, session.output_layers())[:1]
    wanted: list[Source] = [source for item in measured for source in (item.result, item.clean)]
    result = session.run(wanted)
    if not wanted:
        return result.outputs, None
    restored, clean = (session.unpadded(source, result.captures[source]) for source in wanted)
    return result.outputs, psnr(clean, restored)
