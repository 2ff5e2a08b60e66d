"""Parameters, FLOPs and memory of a network while it is edited, per layer and in total, from the declarations.

Only layers whose state changed are counted again. All values are in FP32 at the sizes in the document, for a batch of one where an
input leaves it open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import cast

from designer.graph.inference import Inference, LayerState
from designer.graph.model import Layer
from designer.operators.api import Operator, Weight
from designer.operators.library.development.template import TemplateInstance
from designer.operators.registry import Read

Tensor = tuple[str, str]  # owner of the weights (a layer, or a template's layer if instances share them), tensor
ITEM = 4  # bytes of an FP32 value


@dataclass(frozen=True, slots=True)
class Work:
    """The cost of one layer with its attached activation.

    `flops` counts as torch's FlopCounterMode does: two for each multiply-add of convolutions and matrix products.
    `outputs` are the bytes of its outputs, `weights` those of its tensors, and `learned` the number of trained values.
    `shared` has (bytes, trained values) of tensors that other instances of a template also use; `weights` and `learned`
    include them.
    """

    flops: int = 0
    learned: int = 0
    weights: int = 0
    outputs: int = 0
    shared: Mapping[Tensor, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over layers; shared weights count once. `unknown` is the number of layers without known shapes."""

    flops: int = 0
    learned: int = 0
    weights: int = 0
    outputs: int = 0
    layers: int = 0
    unknown: int = 0

    @property
    def memory(self) -> int:
        """Bytes of the weights and of all layers' outputs."""
        return self.weights + self.outputs


def layer_work(layer: Layer, read: Read, state: LayerState) -> Work | None:
    """The cost of a layer; None while shapes are unknown."""
    operator = read.operator
    if operator is None or state.outputs is None:
        return None
    if layer.bypassed:
        return Work(outputs=sum(tensor.nbytes() for tensor in state.outputs))
    before = state.outputs
    if read.activation is not None and state.before_activation is not None:
        before = (state.before_activation, *state.outputs[1:])
    flops = operator.flops(state.inputs, before)
    outputs = sum(tensor.nbytes() for tensor in state.outputs)
    shared: dict[Tensor, tuple[int, int]] = {}
    if isinstance(operator, TemplateInstance):
        flops = operator.cost(state.inputs, before).flops
        weights, learned, shared = _instance(layer, operator, state)
        outputs = _inner_outputs(operator, state) or outputs
    else:
        weights, learned = _sizes(operator.weights(state.inputs))
    if read.activation is not None and before:
        flops += read.activation.flops(before[:1], state.outputs[:1])
        more, trained = _sizes(read.activation.weights(before[:1]))
        weights, learned = weights + more, learned + trained
    return Work(flops, learned, weights, outputs, shared)


def _sizes(tensors: Iterable[Weight]) -> tuple[int, int]:
    """(bytes, trained values) of tensors."""
    sizes = [(prod(w.shape), w.trainable) for w in tensors]
    return ITEM * sum(n for n, _ in sizes), sum(n for n, trainable in sizes if trainable)


def _instance(
    layer: Layer, operator: TemplateInstance, state: LayerState
) -> tuple[int, int, dict[Tensor, tuple[int, int]]]:
    """(bytes, trained values) of an instance's weights, and those of them that other instances may use."""
    if operator.body is None:
        return 0, 0, {}
    tensors = {(o, w.name): w for o, w in operator.body.tensors(state.inputs, layer.name, operator)}
    weights, learned = _sizes(tensors.values())
    own = f"{layer.name}."
    return weights, learned, {key: _sizes([w]) for key, w in tensors.items() if not key[0].startswith(own)}


def _inner_outputs(operator: TemplateInstance, state: LayerState) -> int:
    """Bytes of the outputs of the layers inside; ports pass their input through."""
    if operator.body is None:
        return 0
    inside = operator.body.infer(state.inputs)
    total = 0
    for name, inner in inside.states.items():
        read = cast(Read, inside.read(name))
        if (
            inner.outputs is None
            or read.operator is None
            or read.operator.type in ("template_input", "template_output")
        ):
            continue
        if isinstance(read.operator, TemplateInstance):
            total += _inner_outputs(read.operator, inner)
        else:
            total += sum(tensor.nbytes() for tensor in inner.outputs)
    return total


class LiveCost:
    """The cost of the layers of a network that is edited. `note` changed layers, then `count` until none is waiting."""

    def __init__(self, inference: Inference, names: Iterable[str] | None = None) -> None:
        """`names`: the layers to count, by default all of the network."""
        self._inference = inference
        self._work: dict[str, Work | None] = {}
        self._waiting: dict[str, None] = dict.fromkeys(inference.graph.layers if names is None else names)
        self.counted = 0  # number of counts so far

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def note(self, names: Iterable[str]) -> None:
        """Mark layers that were added or removed, or whose state changed."""
        self._waiting.update(dict.fromkeys(names))

    def count(self, most: int = 1_000_000_000) -> bool:
        """Count up to `most` waiting layers; returns whether others are still waiting."""
        graph, inference = self._inference.graph, self._inference
        for name in list(self._waiting)[:most]:
            del self._waiting[name]
            layer, state = graph.get(name), inference.states.get(name)
            if layer is None or state is None:
                self._work.pop(name, None)
                continue
            read = cast(Read, inference.read(name))
            self._work[name] = layer_work(layer, read, state) if isinstance(read.operator, Operator) else None
            self.counted += 1
        return bool(self._waiting)

    def of(self, name: str) -> Work | None:
        """The cost of one layer; None while it is unknown."""
        if name in self._waiting:
            layer, state = self._inference.graph.get(name), self._inference.states.get(name)
            if layer is None or state is None:
                return None
            return layer_work(layer, cast(Read, self._inference.read(name)), state)
        return self._work.get(name)

    def total(self, without: Collection[str] = (), names: Iterable[str] | None = None) -> Total:
        """The sum over the counted layers, or over `names`, except those in `without`."""
        chosen = self._work if names is None else list(names)
        flops = learned = weights = outputs = layers = unknown = 0
        shared: dict[Tensor, tuple[int, int]] = {}
        for name in chosen:
            if name in without:
                continue
            work = self.of(name)
            layers += 1
            if work is None:
                unknown += 1
                continue
            flops, learned = flops + work.flops, learned + work.learned
            weights, outputs = weights + work.weights, outputs + work.outputs
            for tensor, (size, count) in work.shared.items():
                if tensor in shared:
                    weights, learned = weights - size, learned - count
                shared[tensor] = (size, count)
        return Total(flops, learned, weights, outputs, layers, unknown)
