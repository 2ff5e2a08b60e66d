"""Seeded random weights for networks without trained ones."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from designer.files.weight_types import WeightKey, WeightReport, Weights, WeightStatus
from designer.operators.api import Weight

if TYPE_CHECKING:
    from numpy.typing import NDArray


def random_weights(needed: Mapping[WeightKey, Weight], seed: int) -> Weights:
    """Random values for every tensor by its declared `init`. A tensor depends only on the seed and its key."""
    return fill_missing(Weights(), needed, seed)


def fill_missing(weights: Weights, needed: Mapping[WeightKey, Weight], seed: int) -> Weights:
    """`weights` with seeded random tensors for those missing or of the wrong shape. The note reports how many."""
    tensors = {k: t for k, t in weights.tensors.items() if k in needed and t.shape == needed[k].shape}
    filled = dict.fromkeys(key for key in needed if key not in tensors)
    if not filled:
        return weights
    source = f"random (seed {seed})"
    for key in filled:
        tensors[key] = random_tensor(key, needed[key], seed)
    before = {report.key: report for report in weights.reports}
    reports = [
        WeightReport(
            key, WeightStatus.BOUND, weight.shape, weight.shape, source if key in filled else _source(before, key)
        )
        for key, weight in needed.items()
    ]
    reports.extend(r for r in weights.reports if r.status is WeightStatus.UNEXPECTED)
    if len(filled) == len(needed):
        note = f"random weights (seed {seed})"
    else:
        note = f"{len(filled)} of {len(needed)} tensors random (seed {seed})"
    note = "; ".join(filter(None, (weights.note, note)))
    return Weights(tensors, tuple(reports), weights.source, note, weights.sha256)


def random_tensor(key: WeightKey, weight: Weight, seed: int) -> NDArray[np.float32]:
    """A random tensor that depends only on the seed, the layer name and the tensor name."""
    if weight.init == "zeros":
        return np.zeros(weight.shape, np.float32)
    if weight.init == "ones":
        return np.ones(weight.shape, np.float32)
    if weight.init.startswith("constant:"):
        return np.full(weight.shape, float(weight.init.partition(":")[2]), np.float32)
    name = zlib.crc32(f"{key.layer}.{key.tensor}".encode())
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed & 0xFFFFFFFFFFFFFFFF, name])))
    if weight.init == "normal" or weight.init.startswith("normal_but:"):
        values = np.asarray(generator.standard_normal(weight.shape, np.float32))
        if weight.init != "normal":
            values[int(weight.init.partition(":")[2])] = 0
        return values
    if weight.init == "kaiming":
        bound = sqrt(1 / max(1, weight.fan_in))
    elif weight.init == "xavier":
        bound = sqrt(6 / sum(weight.shape))
    else:
        raise ValueError(f"weight '{weight.name}' declares the unknown initialization '{weight.init}'")
    return np.asarray((generator.random(weight.shape, np.float32) * 2 - 1) * np.float32(bound))


def _source(reports: Mapping[WeightKey, WeightReport], key: WeightKey) -> str:
    return reports[key].source if key in reports else ""
