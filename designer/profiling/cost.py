"""What each layer costs by its declaration: operations, bytes moved and learned values, for the shapes of an inference.

FLOPs count as `torch.utils.flop_counter.FlopCounterMode` does: two for each multiply-add of convolutions and matrix
products, nothing for element-wise work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import TensorType
from designer.operators.api import Activation, Cost, Operator

ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


@dataclass(frozen=True)
class LayerCost:
    """One layer's work. `inputs` and `outputs` are types, `weight_bytes` the size of its weights in the run's precision."""

    layer: str
    type: str
    summary: str
    parameters: Mapping[str, str]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    sources: tuple[Source, ...]
    flops: int
    weight_bytes: int
    learned: int


@dataclass(frozen=True)
class CostTable:
    """The costs of all layers whose shapes are known, in running order. `item_bytes` is the size of one number."""

    graph: Graph
    rows: Mapping[str, LayerCost]
    item_bytes: int
    batch: int

    def group(self, layers: Iterable[str]) -> Cost:
        """The cost of layers that run as one: tensors that stay inside the group are neither read nor written."""
        names = [n for n in layers if n in self.rows]
        inside = set(names)
        read: dict[Source, int] = {}
        written = 0
        flops = weights = 0
        for name in names:
            row = self.rows[name]
            flops, weights = flops + row.flops, weights + row.weight_bytes
            for source, tensor in zip(row.sources, row.inputs, strict=False):
                if source.layer not in inside:
                    read[source] = self.bytes_of(tensor)
            readers = self.graph.consumers(name)
            if not readers or any(r not in inside for r in readers):
                written += sum(self.bytes_of(t) for t in row.outputs)
        return Cost(flops, sum(read.values()) + weights, written, self._learned(names))

    def _learned(self, names: Iterable[str]) -> int:
        """Learned values of layers; those that several layers share count once."""
        return sum({self.graph[name].weights_name: self.rows[name].learned for name in names}.values())

    def bytes_of(self, tensor: TensorType) -> int:
        item = self.item_bytes if tensor.dtype.is_float else tensor.dtype.itemsize
        return tensor.elements(self.batch) * item

    def total(self) -> Cost:
        """The sum over the layers run one by one (every layer reads its inputs and writes its outputs)."""
        parts = [self.group([name]) for name in self.rows]
        return Cost(
            sum(p.flops for p in parts),
            sum(p.bytes_read for p in parts),
            sum(p.bytes_written for p in parts),
            self._learned(self.rows),
        )


def cost_table(inference: Inference, *, precision: str = "fp32", batch: int = 1) -> CostTable:
    """Costs of every layer of `inference` whose shapes are known; layers with problems are left out."""
    item = ITEM_BYTES[precision]
    order, _ = inference.graph.order()
    rows: dict[str, LayerCost] = {}
    for name in order:
        state = inference.states[name]
        read = inference.read(name)
        if state.outputs is None or not isinstance(read.operator, Operator):
            continue
        layer = inference.graph[name]
        before = (state.before_activation or state.outputs[0], *state.outputs[1:])
        cost = read.operator.cost(_sized(state.inputs, batch), _sized(before, batch))
        stored = sum(prod(w.shape) for w in read.operator.weights(state.inputs))
        learned = cost.parameters
        summary = read.operator.summary()
        parameters = dict(layer.params)
        if isinstance(read.activation, Activation) and state.before_activation is not None:
            extra = read.activation.weights(before[:1])
            stored += sum(prod(w.shape) for w in extra)
            learned += sum(prod(w.shape) for w in extra if w.trainable)
            parameters["activation"] = read.activation.type
        rows[name] = LayerCost(
            name,
            layer.type,
            summary,
            parameters,
            state.inputs,
            state.outputs,
            tuple(s for s in layer.inputs if s is not None),
            cost.flops,
            stored * item,
            learned,
        )
    return CostTable(inference.graph, rows, item, batch)


def _sized(kinds: Iterable[TensorType], batch: int) -> tuple[TensorType, ...]:
    """The types with numbers only: a tensor of a fixed batch is not multiplied."""
    return tuple(kind.with_shape(*kind.concrete(batch)) for kind in kinds)
