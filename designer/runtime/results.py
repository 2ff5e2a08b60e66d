"""A cache of results of earlier runs, keyed by fingerprints of everything that they depend on."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.model import Layer, Source
from designer.runtime.api import Array
from designer.runtime.finite import NonFinite

OLD = 16  # results kept besides those of the last run, so that a dragged slider reuses memory instead of new pages
KEEP_BYTES = 1 << 30  # results kept between runs: about 300 full tensors of 1024 x 1024 pixels with one channel


def fingerprint(*parts: object) -> str:
    """A digest of values that are identified by their `repr`."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def layer_text(layer: Layer) -> tuple[object, ...]:
    """Everything about a layer that its result depends on."""
    spec = layer.activation
    attached = None if spec is None else (spec.type, sorted(spec.params.items()))
    return (layer.name, layer.type, layer.inputs, sorted(layer.params.items()), attached, layer.weights_of)


class WeightPrints:
    """Digests of the weights of layers, each array hashed once."""

    def __init__(self, weights: Weights) -> None:
        self._by_layer: dict[str, list[WeightKey]] = {}
        for key in sorted(weights.tensors):
            self._by_layer.setdefault(key.layer, []).append(key)
        self._tensors = weights.tensors
        self._prints: dict[str, str] = {}

    def of(self, layer: str) -> str:
        if layer not in self._prints:
            digest = hashlib.blake2b(digest_size=16)
            for key in self._by_layer.get(layer, ()):
                array = np.ascontiguousarray(self._tensors[key])
                digest.update(repr((key, array.dtype.str, array.shape)).encode())
                digest.update(array.reshape(-1).view(np.uint8).data)
            self._prints[layer] = digest.hexdigest()
        return self._prints[layer]


class PartPrint(NamedTuple):
    """Digests of a part: `group` of its layers, `key` of its layers and its wanted tensors, `form` as `key` for any weights."""

    group: str
    key: str
    form: str


@dataclass(frozen=True, slots=True)
class Result:
    """Tensors of one step with their versions.

    `group` is equal for results of the same layers on the same values, whatever tensors were wanted; empty for analysis layers.
    """

    tensors: Mapping[Source, Array]
    versions: Mapping[Source, str]
    group: str = ""
    hidden: Mapping[str, NonFinite] = field(default_factory=dict)  # values that are NaN or infinite, by layer

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.tensors.values())


class Results:
    """Results of steps by fingerprint, the least recently used dropped first."""

    def __init__(self, keep_bytes: int = KEEP_BYTES) -> None:
        self.keep_bytes = keep_bytes
        self._entries: OrderedDict[str, Result] = OrderedDict()

    def get(self, key: str) -> Result | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: str, result: Result) -> None:
        self._entries[key] = result

    def like(self, group: str) -> Iterator[tuple[str, Result]]:
        """Keys and results of a group, the latest first."""
        return ((key, entry) for key, entry in reversed(self._entries.items()) if entry.group == group)

    @property
    def nbytes(self) -> int:
        """Bytes of all results."""
        return sum(entry.nbytes for entry in self._entries.values())

    def clear(self) -> None:
        self._entries.clear()

    def trim(self, fresh: set[str]) -> list[Source]:
        """Drop entries above the limits, oldest first; returns the tensors of `fresh` keys that were dropped too."""
        total = self.nbytes
        old = [key for key in self._entries if key not in fresh]
        lost: list[Source] = []
        for number, key in enumerate([*old, *(key for key in self._entries if key in fresh)]):
            if total <= self.keep_bytes and number >= len(old) - OLD:
                break
            entry = self._entries.pop(key)
            total -= entry.nbytes
            if key in fresh:
                lost.extend(entry.tensors)
        return lost
