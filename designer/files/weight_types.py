"""Weights as values: tensors by layer and tensor name, and a report on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class WeightKey(NamedTuple):
    """A weight by layer and tensor name, for instance ("conv_1", "kernel")."""

    layer: str
    tensor: str


class WeightStatus(StrEnum):
    BOUND = "bound"
    MISSING = "missing"
    UNEXPECTED = "unexpected"
    WRONG_SHAPE = "wrong shape"


@dataclass(frozen=True, slots=True)
class WeightReport:
    """The result of loading one tensor. A shape is None if there is none."""

    key: WeightKey
    status: WeightStatus
    needed: tuple[int, ...] | None = None
    found: tuple[int, ...] | None = None
    source: str = ""


@dataclass(frozen=True)
class Weights:
    """Tensors by key, float32, C order.

    `note` is shown with every result unless empty: "random weights (seed 0)", "12 of 30 tensors random (seed 0)", or which of
    several state dicts in a file was loaded.

    `sha256` is what `sha256sum weights.safetensors` prints; for a folder, what `sha256sum *.npy | sha256sum` prints
    for the tensor files that are used. It is empty without a file.
    """

    tensors: Mapping[WeightKey, NDArray[np.float32]] = field(default_factory=dict)
    reports: tuple[WeightReport, ...] = ()
    source: str = ""
    note: str = ""
    sha256: str = ""

    @property
    def title(self) -> str:
        """The source of the tensors for reports: "denoiser.safetensors", "random weights (seed 0)"."""
        return "; ".join(text for text in (PurePath(self.source).name, self.note) if text)

    @property
    def complete(self) -> bool:
        """Whether every required tensor is bound."""
        return not any(r.status in (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE) for r in self.reports)
