"""Sessions that compute calibrated INT8 as it is deployed: ONNX Runtime runs parts that are quantized with the ranges of the calibration."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.precision.int8 import Quantizer, calibration_images, chosen_layers, is_quantizable, nothing_to_quantize
from designer.precision.variants import INT8, RunnableVariant, is_deployed
from designer.runtime.api import ONE_TILE, Part, RunOptions
from designer.runtime.checked_engine import CheckedEngine
from designer.runtime.engine_registry import default_engines
from designer.runtime.engines.forms import ONNX_RUNTIME
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.engines.ort_engine import OrtEngine
from designer.runtime.network import role_of
from designer.runtime.plan import PartStep
from designer.runtime.results import KEEP_BYTES
from designer.runtime.session import Session

if TYPE_CHECKING:
    from onnx import ModelProto


def variant_session(
    ready: RunnableVariant, registry: Registry, variant: Variant | None, options: RunOptions
) -> Session:
    """A session for a variant: calibrated INT8 is computed as it is deployed, where ONNX Runtime computes it; others as `options` say.

    Raises DiagnosticError if the variant cannot be calibrated.
    """
    if variant is None or not is_deployed(variant):
        return Session(ready.graph, registry, ready.weights, options)
    return DeployedSession(ready.graph, registry, ready.weights, options, variant)


class DeployedSession(Session):
    """Runs a calibrated variant. Its `options` have the precision INT8, which no engine takes from the settings."""

    def __init__(
        self,
        graph: Graph,
        registry: Registry,
        weights: Weights,
        options: RunOptions,
        variant: Variant,
        ranges: Any = None,
        *,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        plain = replace(options, engine=ONNX_RUNTIME, precision="fp32", layout="nchw", device="cpu", formats=())
        self._variant = variant
        self._ranges = ranges if ranges is not None else _calibrated(graph, registry, weights, plain, variant)
        super().__init__(graph, registry, weights, plain, keep_bytes=keep_bytes)
        self.options = replace(plain, precision=INT8)

    def make_engine(self) -> CheckedEngine:
        engine = QuantizedEngine(self.inference, self.weights, self.options, self._variant, self._ranges)
        return CheckedEngine(default_engines().get(ONNX_RUNTIME), engine, self.inference)

    def empty_copy(self, keep_bytes: int) -> Session:
        return self._session(self.graph, self.options, keep_bytes)

    def tile_session(self, graph: Graph) -> Session:
        return self._session(graph, replace(self.options, tile=ONE_TILE), 0)

    def _session(self, graph: Graph, options: RunOptions, keep_bytes: int) -> Session:
        return DeployedSession(
            graph, self.registry, self.weights, options, self._variant, self._ranges, keep_bytes=keep_bytes
        )


class QuantizedEngine(OrtEngine):
    """ONNX Runtime with the layers of a variant in INT8. `ranges` are those of the tensors of the deployed network."""

    def __init__(
        self, inference: Inference, weights: Weights, options: RunOptions, variant: Variant, ranges: Any
    ) -> None:
        super().__init__(inference, weights, replace(options, weights_as_inputs=False))  # they are quantized
        self._variant = variant
        self._ranges = ranges

    def model(self, part: Part, wanted: Sequence[Source]) -> ModelProto:
        plain = super().model(part, wanted)
        if not is_quantizable(plain):
            return plain
        ranges = copy(self._ranges)
        ranges.data = dict(ranges.data)
        for feed in part.feeds:  # behind an analysis layer, which is not deployed
            origin = str(_deployed(self.inference, feed))
            if origin in ranges.data:
                ranges.data.setdefault(str(feed), ranges.data[origin])
        quantizer = Quantizer(plain, (), self._variant.calibration, ranges=ranges)
        return quantizer.quantized(chosen_layers(quantizer, self._variant))


def _deployed(inference: Inference, source: Source) -> Source:
    """The tensor that `source` is without analysis layers."""
    while role_of(inference, source.layer) is Role.ANALYSIS:
        first = next(iter(inference.graph[source.layer].inputs), None)
        if first is None:
            break
        source = first
    return source


def _calibrated(graph: Graph, registry: Registry, weights: Weights, options: RunOptions, variant: Variant) -> Any:
    """The ranges of the tensors of the deployed network on the images of a variant."""
    recipe = variant.calibration
    assert recipe is not None
    session = Session(deploy(graph, registry), registry, weights, options)
    images = calibration_images(session.inference, recipe)
    (layer,) = images.feeds[0]
    session.set_input(layer, images.feeds[0][layer], is_image=False)
    step = next((step for step in session.plan().steps if isinstance(step, PartStep)), None)
    if step is None:
        raise nothing_to_quantize(graph.name)
    model = build_model(session.inference, step.part, step.wanted, weights)
    feeds = [{str(step.part.feeds[0]): feed[layer]} for feed in images.feeds]
    return Quantizer(model, feeds, recipe).ranges
