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
from designer.runtime.input_data import cropped, tiling
from designer.runtime.network import type_of

if TYPE_CHECKING:
    from designer.runtime.session import Session

FACTORS = (2, 4, 8)
AIM = 45.0  # target of a coarse run in ms
SMALLEST = 32  # smallest reduced side, in pixels
MULTIPLE = 64  # a reduced size stays a multiple of this, or of the power of two that divides the full size


def factor_for(milliseconds: float) -> int:
    """The factor by which to reduce width and height of a run that takes `milliseconds`."""
    return next((factor for factor in FACTORS if milliseconds / factor**2 <= AIM), FACTORS[-1])


class Preview:
    """The network of `session` at 1 / `factor` of its size; it follows all changes of the session."""

    def __init__(self, session: Session, factor: int) -> None:
        self.factor = factor
        self.full = session
        self._weights = session.weights
        self._revision = -1
        self._serials: dict[str, int] = {}
        keep = session.results.keep_bytes // 4
        self._small = session.empty_copy(keep)

    def run(self, capture: Sequence[Source] = (), progress: Progress | None = None) -> RunResult:
        """As `Session.run`; also raises DiagnosticError if the network cannot run at the reduced size."""
        self._follow()
        result = self._small.run(capture, progress)
        outputs = {name: self._enlarged(array, Source(name), True) for name, array in result.outputs.items()}
        captures = {source: self._enlarged(array, source, False) for source, array in result.captures.items()}
        return replace(result, outputs=outputs, captures=captures, coarse=self.factor)

    def _follow(self) -> None:
        full, small = self.full, self._small
        if full.weights is not self._weights:
            self._weights = full.weights
            small.options = replace(small.options, weights_as_inputs=True)  # they will change again soon
            small.set_weights(full.weights, full.weight_prints)
        if full.revision == self._revision:
            return
        small.set_graph(_reduced_graph(full, self.factor))
        if small.options.formats != full.options.formats:
            small.set_formats(dict(full.options.formats))
        for name in full.fed_layers():
            fed = full.fed(name)
            if self._serials.get(name) != fed.serial:
                array = fed.array
                if array.ndim == 4:  # other tensors have no size to reduce
                    tiles = tiling(small.input_operator(name))
                    height, width = (_reduced(n, self.factor, t) for n, t in zip(fed.extent, tiles, strict=True))
                    array = resized(array, height, width)
                small.set_input(name, array, is_image=fed.is_image)
                self._serials[name] = fed.serial
        self._revision = full.revision

    def _enlarged(self, array: Array, source: Source, shown: bool) -> Array:
        if array.ndim != 4:
            return array
        inference = self.full.inference
        where = self.full.source(source)
        wanted = type_of(inference, where).concrete(len(array))
        if len(wanted) != 4:
            return array
        height, width = wanted[2:]
        padding = self.full.padding(where) if shown else None
        if padding is not None:
            height, width = cropped((height, width), *padding)
        return enlarged(array, height, width)


def enlarged(array: Array, height: int, width: int) -> Array:
    """N x C x H x W at another size, each value repeated."""
    if array.shape[2:] == (height, width):
        return array
    n, c, h, w = array.shape
    if height % h == 0 and width % w == 0:  # several times faster
        blocks = np.broadcast_to(array[:, :, :, None, :, None], (n, c, h, height // h, w, width // w))
        return blocks.reshape(n, c, height, width)
    rows, columns = (np.arange(n) * m // n for n, m in zip((height, width), array.shape[2:], strict=True))
    return array[:, :, rows[:, None], columns]


def resized(array: Array, height: int, width: int) -> Array:
    """N x C x H x W downscaled, each value the mean of the pixels that it covers."""
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
    """A reduced side that can be halved as often as the full one; with a `tile`, padding ensures this."""
    wanted = min(size, max(SMALLEST, round(size / factor)))
    multiple = 1 if tile > 1 else min(MULTIPLE, size & -size, 1 << (wanted.bit_length() - 1))
    return min(size, max(round(wanted / multiple), 1) * multiple)


def _reduced_graph(session: Session, factor: int) -> Graph:
    """The document, with pixel-based parameters of analysis layers converted to the reduced size."""
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
