"""Coarse-to-fine preview: runs the network on downscaled inputs while the user drags a slider.

It uses a separate session, so that cached results at full size stay valid. Results are enlarged to the full size by repeating
values, so that positions in images keep their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.operators.api import Operator, Role
from designer.operators.params import format_value
from designer.runtime.api import Array, Progress, RunResult
from designer.runtime.feeding import cropped, tiling
from designer.runtime.network import type_of

if TYPE_CHECKING:
    from designer.runtime.session import Session

FACTORS = (2, 4, 8)
AIM = 45.0  # ms that a coarse run may take
SMALLEST = 32  # pixels that a reduced side keeps
MULTIPLE = 64  # a reduced size keeps this power of two, or what the full size has of it


def factor_for(milliseconds: float) -> int:
    """By how much to reduce width and height of a run that takes so long."""
    return next((factor for factor in FACTORS if milliseconds / factor**2 <= AIM), FACTORS[-1])


class Preview:
    """The network of `session` at 1 / `factor` of its size; it follows whatever changes there."""

    def __init__(self, session: Session, factor: int) -> None:
        self.factor = factor
        self._full = session
        self._weights = session.weights
        self._revision = -1
        self._serials: dict[str, int] = {}
        keep = session.results.keep_bytes // 4
        self._small = type(session)(session.graph, session.registry, session.weights, session.options, keep_bytes=keep)

    def run(self, capture: Sequence[Source] = (), progress: Progress | None = None) -> RunResult:
        """As `Session.run`; DiagnosticError also where the network cannot run at the reduced size."""
        self._follow()
        result = self._small.run(capture, progress)
        outputs = {name: self._enlarged(array, Source(name), True) for name, array in result.outputs.items()}
        captures = {source: self._enlarged(array, source, False) for source, array in result.captures.items()}
        return replace(result, outputs=outputs, captures=captures, coarse=self.factor)

    def _follow(self) -> None:
        full, small = self._full, self._small
        if full.weights is not self._weights:
            self._weights = full.weights
            small.set_weights(full.weights)
        if full.revision == self._revision:
            return
        small.set_graph(_reduced_graph(full, self.factor))
        for name in full.fed_layers():
            fed = full.fed(name)
            if self._serials.get(name) != fed.serial:
                operator = small.input_operator(name)
                height, width = (_reduced(n, self.factor, t) for n, t in zip(fed.extent, tiling(operator), strict=True))
                small.set_input(name, resized(fed.array, height, width), picture=fed.picture)
                self._serials[name] = fed.serial
        self._revision = full.revision

    def _enlarged(self, array: Array, source: Source, shown: bool) -> Array:
        if array.ndim != 4:
            return array
        inference = self._full.inference
        where = self._full.source(source)
        wanted = type_of(inference, where).concrete(len(array))
        if len(wanted) != 4:
            return array
        height, width = wanted[2:]
        padding = self._full.padding(where) if shown else None
        if padding is not None:
            height, width = cropped((height, width), *padding)
        return enlarged(array, height, width)


def enlarged(array: Array, height: int, width: int) -> Array:
    """N x C x H x W at another size, each value repeated."""
    if array.shape[2:] == (height, width):
        return array
    n, c, h, w = array.shape
    if height % h == 0 and width % w == 0:  # several times as fast
        blocks = np.broadcast_to(array[:, :, :, None, :, None], (n, c, h, height // h, w, width // w))
        return blocks.reshape(n, c, height, width)
    rows, columns = (np.arange(n) * m // n for n, m in zip((height, width), array.shape[2:], strict=True))
    return array[:, :, rows[:, None], columns]


def resized(array: Array, height: int, width: int) -> Array:
    """N x C x H x W made smaller, each value the mean of what it covers."""
    n, c, h, w = array.shape
    if h % height == 0 and w % width == 0:
        blocks = array.reshape(n, c, height, h // height, width, w // width)
        return np.ascontiguousarray(blocks.mean(axis=(3, 5), dtype=np.float32))
    from PIL import Image

    planes = [
        np.asarray(Image.fromarray(plane).resize((width, height), Image.Resampling.BOX))
        for plane in array.reshape(n * c, h, w)
    ]
    return np.stack(planes).reshape(n, c, height, width)


def _reduced(size: int, factor: int, tile: int) -> int:
    """A reduced side that the network can divide as often as the full one; padding takes care where there is a `tile`."""
    wanted = min(size, max(SMALLEST, round(size / factor)))
    multiple = 1 if tile > 1 else min(MULTIPLE, size & -size, 1 << (wanted.bit_length() - 1))
    return min(size, max(round(wanted / multiple), 1) * multiple)


def _reduced_graph(session: Session, factor: int) -> Graph:
    """The document with analysis layers that count in pixels told about the smaller ones."""
    graph = session.graph.copy()
    for layer in session.graph:
        operator = session.registry.read(layer).operator
        if (
            isinstance(operator, Operator)
            and operator.role is Role.ANALYSIS
            and (other := operator.scaled_down(factor))
        ):
            graph.apply(set_params(graph, {layer.name: {name: format_value(value) for name, value in other.items()}}))
    return graph
