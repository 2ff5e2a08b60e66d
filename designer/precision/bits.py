"""How many bits the layers of a network need: what a number format of one layer does to the image, and choices for all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import required_weights
from designer.metrics import result_psnr
from designer.operators.deploy import deploy
from designer.runtime.api import Progress, RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.interrupt import current
from designer.runtime.number_formats import FLOAT32, FORMATS
from designer.runtime.session import Session
from designer.texts import tr

LADDER = ("float32", "float16", "int8", "int6", "int4", "int2")
POINTS = 12  # choices that are measured
EQUAL = 200.0  # dB, reported for equal images


@dataclass(frozen=True)
class LayerBits:
    """A layer, the number of its weights, and PSNR in dB against FP32 by format, if only this layer has the format.

    `vectors` of the weights are in tensors of one dimension.
    """

    layer: str
    weights: int
    psnr: Mapping[str, float]
    vectors: int = 0


@dataclass(frozen=True)
class SizePoint:
    """A choice of formats for all layers: bytes of the weights, and PSNR in dB of the result against FP32."""

    bytes: int
    psnr: float
    formats: Mapping[str, str]


class BitsMeasurement:
    """Runs a network with its inputs in many choices of formats; only layers behind a change run again.

    The network and the inputs are those of `session`, without analysis layers.
    """

    def __init__(self, session: Session) -> None:
        engine = next(engine for engine in default_engines() if engine.formats)
        options = RunOptions(engine.name, threads=session.options.threads, agreed=session.options.agreed)
        graph = deploy(session.graph, session.registry)
        self._shapes: dict[str, list[tuple[int, ...]]] = {}  # of the weights by layer
        self._session = Session(graph, session.registry, session.weights, options)
        for layer in session.fed_layers():
            if layer in graph:  # targets of the losses are not deployed
                fed = session.fed(layer)
                self._session.set_input(layer, fed.array, is_image=fed.is_image)
        for key, weight in required_weights(self._session.inference).items():
            self._shapes.setdefault(key.layer, []).append(weight.shape)
        self.layers = tuple(name for name in self._session.inference.graph.order()[0] if name in self._shapes)
        self._exact = self._result({})

    def psnr(self, formats: Mapping[str, str]) -> float:
        """PSNR in dB of the first output against FP32, up to EQUAL."""
        return min(result_psnr(self._exact, self._result(formats)), EQUAL)

    def bytes(self, formats: Mapping[str, str]) -> int:
        """The size of the weights in these formats."""
        bits = sum(self._bits(name, formats.get(name, FLOAT32.name)) for name in self._shapes)
        return -(-bits // 8)

    def _bits(self, layer: str, format: str) -> int:
        return sum(map(FORMATS[format].weight_bits, self._shapes[layer]))

    def layer_bits(self, progress: Progress | None = None) -> list[LayerBits]:
        """What each format below FP32 does to the result, layer by layer."""
        found = []
        for number, name in enumerate(self.layers):
            if progress is not None:
                progress(number, len(self.layers), tr("Measuring {layer}", layer=name))
            values = {format: self.psnr({name: format}) for format in LADDER[1:]}
            shapes = self._shapes[name]
            vectors = sum(shape[0] for shape in shapes if len(shape) == 1)
            found.append(LayerBits(name, sum(map(prod, shapes)), values, vectors))
        return found

    def points(self, layers: list[LayerBits], progress: Progress | None = None) -> list[SizePoint]:
        """Choices from FP32 to the smallest formats, measured: each step is the one that costs the least error per byte saved.

        Formats that save nothing are left out: normalizations, and biases, have more bits with integers than in FP16.
        """
        errors = {item.layer: [0.0, *(10 ** (-item.psnr[format] / 10) for format in LADDER[1:])] for item in layers}
        level = dict.fromkeys(errors, 0)
        choices: list[dict[str, str]] = [{}]

        def saved(name: str) -> int:
            now = level[name]
            return self._bits(name, LADDER[now]) - self._bits(name, LADDER[now + 1]) if now + 1 < len(LADDER) else 0

        def cost(name: str) -> float:
            now = level[name]
            return (errors[name][now + 1] - errors[name][now]) / saved(name)

        while open_ := [name for name in level if saved(name) > 0]:
            level[min(open_, key=cost)] += 1
            choices.append({name: LADDER[now] for name, now in level.items() if now})
        chosen = sorted({round(i) for i in np.linspace(0, len(choices) - 1, POINTS)})
        found = []
        for number, index in enumerate(chosen):
            if progress is not None:
                progress(
                    number,
                    len(chosen),
                    tr("Measuring choice {number} of {count}", number=number + 1, count=len(chosen)),
                )
            formats = choices[index]
            found.append(SizePoint(self.bytes(formats), self.psnr(formats), formats))
        return found

    def _result(self, formats: Mapping[str, str]) -> NDArray[np.float32]:
        current().check()
        # A format for every layer, so that the plan has single layers also where all are FP32.
        every = {**dict.fromkeys(self._session.inference.graph.layers, FLOAT32.name), **formats}
        self._session.set_formats(every)
        return next(iter(self._session.run().outputs.values()))
