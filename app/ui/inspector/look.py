"""How values become colors: the map, magnify and shift, logarithmic steps, one scale for all channels or one for each."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, gcd, log1p

import numpy as np

from app.ui.widgets import theme
from app.ui.widgets.render import DECADES, Floats, Pixels, signed_pixels

SEQUENTIAL = frozenset({"viridis", "gray"})  # run from low to high; the other maps have zero in their middle
SAMPLES = 65536  # values that a fitted range is taken from, at most
CHECK = 3  # pixels of a check's side
OUTLIERS = 0.5  # per cent of the values at either end that may lie outside of a fitted range


@dataclass(frozen=True, slots=True)
class Look:
    """(value + shift) * gain, -1..1 over the map. With `each`, value is first fitted to its own channel's range."""

    palette: str = "green / red"
    gain: float = 1.0
    shift: float = 0.0
    log: bool = False
    each: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """The gain and shift with which nearly all values lie within -1..1."""

    gain: float = 1.0
    shift: float = 0.0


def sample_of(values: Floats) -> Floats:
    """At most about SAMPLES of the finite values, of all columns alike."""
    flat, width = values.reshape(-1), max(1, values.shape[-1])
    step = max(1, flat.size // SAMPLES)
    while gcd(step, width) > 1:
        step += 1
    sample = flat[::step]
    found: Floats = sample[np.isfinite(sample)]
    return found


def fit(values: Floats, palette: str) -> Fit:
    """For a map with zero in its middle zero stays there; a sequential map goes from the low to the high values."""
    sample = sample_of(values)
    if not sample.size:
        return Fit()
    if palette in SEQUENTIAL:
        low, high = (float(v) for v in np.percentile(sample, (OUTLIERS, 100 - OUTLIERS)))
        middle = -(low + high) / 2
        return Fit(2.0 / (high - low), middle) if high > low else Fit(1.0, middle)
    extreme = float(np.percentile(np.abs(sample), 100 - OUTLIERS))
    if extreme <= 0:  # a few values among zeros
        extreme = float(np.abs(sample).max())
    return Fit(1.0 / extreme) if extreme > 0 else Fit()


def pixels(plane: Floats, look: Look, own: Fit | None = None) -> Pixels:
    """One channel's colors; `own` is the channel's fit where the look asks for one scale for each.

    What is not finite is checkered: no map has that.
    """
    gain = look.gain if own is None else own.gain * look.gain
    shift = look.shift if own is None else own.shift + look.shift / own.gain
    found = signed_pixels(plane, look.palette, gain, shift, log=look.log)
    finite = np.isfinite(plane)
    if not finite.all():
        down, across = np.nonzero(~finite)
        inks = np.array([theme.color("muted").rgb(), theme.color("sunken").rgb()], np.uint32)
        found[down, across] = inks[(down // CHECK + across // CHECK) % 2]
    return found


def value_at(place: float, look: Look) -> float:
    """The value that has the color at `place`, -1..1 along the map; with `each` in shares of the channel's range."""
    if look.log:
        place = float(np.sign(place)) * expm1(abs(place) * log1p(10.0**DECADES)) / 10.0**DECADES
    return place / look.gain - look.shift
