"""Which channels belong together: the identity of every channel, from the layer that computes it to all that read it.

Every layer that computes channels (a convolution, a fully connected layer) gives them new numbers, and the layers behind it hand
the numbers on: pooling keeps them, concatenation joins them, flattening repeats them. Where tensors are added, the numbers of
both become one (union-find). So removing a number removes the channel everywhere: from the filters that compute it, from the
normalizations, depthwise filters and additions on its path, and from the filters that read it. Instances of one template have the
same parameters, so what their layers compute is joined too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import TensorType
from designer.operators.api import Activation, Operator, Role
from designer.operators.inlining import Declaration
from designer.operators.library.convolution.convolution import Convolution
from designer.operators.library.convolution.depthwise_convolution import DepthwiseConvolution
from designer.operators.library.convolution.separable_convolution import SeparableConvolution
from designer.operators.library.convolution.transposed_convolution import TransposedConvolution
from designer.operators.library.linear.fully_connected import FullyConnected
from designer.operators.library.normalization.group_normalization import GroupNormalization
from designer.operators.library.shape.concatenation import Concatenation
from designer.operators.library.shape.flatten import Flatten
from designer.operators.library.shape.slice import Slice
from designer.operators.library.shape.split import Split
from designer.operators.library.upsampling.depth_to_space import DepthToSpace
from designer.operators.library.upsampling.space_to_depth import SpaceToDepth
from designer.operators.training_branch import training_layers
from designer.texts import tr

# Each output channel depends on the input channel of the same index only. All their weights have one value per channel.
CHANNELWISE = frozenset(
    """activation adaptive_pooling batch_normalization crop crop_padding dropout dropout_2d drop_path gaussian_blur
    global_pooling identity instance_normalization pad_to_multiple pad_to_valid_size padding pooling resize snapshot
    unary upsample""".split()
)
ADDED = frozenset({"element_wise", "linear_blend"})  # channels of the same index of all inputs are combined
MIXING_ACTIVATIONS = frozenset({"glu", "log_softmax", "softmax"})
# With a channel of zero weight behind these, 0 x infinity or NaN can remain.
UNBOUNDED = frozenset("acos asin atanh cosh exp log log1p reciprocal sinh sqrt".split())
UNBOUNDED_OPERATIONS = frozenset({"divide", "power"})

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels of a tensor along axis 1: their numbers, and how many values each one has (after flattening)."""

    numbers: Numbers
    repeats: Numbers

    @classmethod
    def of(cls, numbers: Numbers) -> Channels:
        return cls(numbers, np.ones(len(numbers), np.int64))

    def repeated(self, times: int) -> Channels:
        return Channels(self.numbers, self.repeats * times)

    @property
    def expanded(self) -> Numbers:
        return np.repeat(self.numbers, self.repeats)


@dataclass(frozen=True, slots=True)
class WeightAxis:
    """One axis of a weight that has a value for every channel of `channels`."""

    key: WeightKey
    axis: int
    channels: Channels
    reads: bool  # whether the layer reads the channels, so that zeros there make it ignore a channel


@dataclass
class ChannelMap:
    """The channels of all tensors of a network without templates.

    `declared` says where its layers come from; layers of the same declaration keep the same parameters. A weight that several
    layers share is in `axes` once. `fixed` says for channel numbers why they cannot be changed, `unbounded` why no channel can be
    added.
    """

    inference: Inference
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    tensors: dict[Source, Channels] = field(default_factory=dict)
    made: dict[str, Channels] = field(default_factory=dict)  # by layer that computes new channels
    axes: list[WeightAxis] = field(default_factory=list)
    fixed: dict[int, str] = field(default_factory=dict)
    unbounded: dict[int, str] = field(default_factory=dict)
    grouped: dict[str, Channels] = field(default_factory=dict)  # depthwise convolutions written with groups
    normalized: dict[str, Channels] = field(default_factory=dict)  # group normalizations: what they read
    cut: dict[str, Channels] = field(default_factory=dict)  # slices and splits of channels: what they read
    _parents: list[int] = field(default_factory=list)
    _places: dict[tuple[WeightKey, int], Channels] = field(default_factory=dict)  # of weights
    _counted: dict[tuple[str, str], Channels] = field(default_factory=dict)  # by declaration

    def __post_init__(self) -> None:
        graph = self.inference.graph
        training = training_layers(self.inference)
        for name in graph.order()[0]:
            if self.inference.states[name].ok:
                self._layer(graph[name], name in training)

    def root(self, number: int) -> int:
        """The number that represents all channels joined with `number`."""
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def roots(self, numbers: Numbers) -> Numbers:
        return np.array([self.root(int(n)) for n in numbers], np.int64)

    def obstacles(self, numbers: set[int]) -> list[str]:
        """Why channels with these root numbers cannot be removed or added."""
        return list(dict.fromkeys(why for number, why in self.fixed.items() if self.root(number) in numbers))

    # --- one layer -------------------------------------------------------------------------------------------------

    def _fresh(self, count: int) -> Channels:
        start = len(self._parents)
        self._parents.extend(range(start, start + count))
        return Channels.of(np.arange(start, start + count))

    def _fix(self, channels: Channels, reason: str) -> None:
        for number in channels.numbers:
            self.fixed.setdefault(int(number), reason)

    def _join(self, one: Channels, other: Channels) -> None:
        for a, b in zip(one.numbers, other.numbers, strict=True):
            self._parents[self.root(int(b))] = self.root(int(a))

    def _layer(self, layer: Layer, training: bool) -> None:
        read = self.inference.read(layer.name)
        operator = read.operator
        assert isinstance(operator, Operator)
        state = self.inference.states[layer.name]
        sources = [self.tensors[self.inference.tensor(s)] for s in layer.inputs if s is not None]
        outputs = state.outputs or ()
        declared = self.declared.get(layer.name)
        bypassed = layer.bypassed or (declared is not None and declared.layer.bypassed)
        rule = None if training or bypassed else self._rule(operator)
        found = rule(layer, operator, sources, state.inputs) if rule is not None else None
        made = [found] if isinstance(found, Channels) else found
        if isinstance(read.activation, Activation) and state.before_activation is not None:
            weights = read.activation.weights((state.before_activation,))
            if read.activation.type in MIXING_ACTIVATIONS or any(w.shape != (1,) for w in weights):
                self._barrier(layer, [*sources, *(made or ())])
                made = None
        if made is None:
            self._barrier(layer, sources)
        for number, (source, tensor) in enumerate(zip(self.inference.tensors(layer.name), outputs, strict=True)):
            count = tensor.shape[1] if tensor.rank > 1 and isinstance(tensor.shape[1], int) else 1
            if made is not None and number < len(made):
                self.tensors[source] = made[number]
            else:
                channels = self._fresh(count)
                self._fix(channels, tr("'{layer}' computes them", layer=layer.name))
                self.tensors[source] = channels

    def _barrier(self, layer: Layer, tensors: Sequence[Channels]) -> None:
        kind = self.inference.read(layer.name).operator
        title = kind.title if isinstance(kind, Operator) else layer.type
        for channels in tensors:
            self._fix(channels, tr("'{layer}' ({title}) needs all of them", layer=layer.name, title=title))

    def _rule(self, operator: Operator) -> Rule | None:
        if operator.role not in (Role.COMPUTE, Role.ANALYSIS):
            return None
        for cls, rule in self._rules().items():
            if isinstance(operator, cls):
                return rule
        if operator.type in CHANNELWISE:
            return self._channelwise
        return self._added if operator.type in ADDED else None

    def _rules(self) -> dict[type[Operator], Rule]:
        return {
            Convolution: self._convolution,
            TransposedConvolution: self._transposed,
            DepthwiseConvolution: self._depthwise,
            SeparableConvolution: self._separable,
            FullyConnected: self._fully_connected,
            Concatenation: self._concatenation,
            Flatten: self._flatten,
            GroupNormalization: self._group_normalization,
            DepthToSpace: self._depth_to_space,
            SpaceToDepth: self._space_to_depth,
            Slice: self._slice,
            Split: self._split,
        }

    def _add_axis(self, layer: Layer, tensor: str, axis: int, channels: Channels, *, reads: bool = False) -> None:
        key = WeightKey(layer.weights_name, tensor)
        shared = self._places.get((key, axis))
        if shared is None:
            self._places[key, axis] = channels
            self.axes.append(WeightAxis(key, axis, channels, reads))
        else:
            self._join_same(layer, shared, channels)

    def _count(self, layer: Layer, channels: Channels) -> None:
        """Note that a parameter of the layer counts these channels: it has the same value in every instance of a template."""
        declared = self.declared.get(layer.name)
        if declared is not None and declared.template:
            other = self._counted.setdefault((declared.template, declared.layer.name), channels)
            self._join_same(layer, other, channels)

    def _join_same(self, layer: Layer, one: Channels, other: Channels) -> None:
        if np.array_equal(one.repeats, other.repeats):
            self._join(one, other)
            return
        for channels in (one, other):
            self._fix(
                channels, tr("another instance of the template has other channels at '{layer}'", layer=layer.name)
            )

    def _filters(self, layer: Layer, made: Channels, sources: Sequence[Channels], out_axis: int = 0) -> Channels:
        """A kernel with one axis for the channels that it computes and the other for those that it reads."""
        self._add_axis(layer, "kernel", out_axis, made)
        self._add_axis(layer, "kernel", 1 - out_axis, sources[0], reads=True)
        self._add_axis(layer, "bias", 0, made)
        return self._computed(layer, made)

    def _computed(self, layer: Layer, made: Channels) -> Channels:
        self.made[layer.name] = made
        self._count(layer, made)
        return made

    def _convolution(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, Convolution)
        if operator.groups == 1:
            return self._filters(layer, self._fresh(operator.features), sources)
        if operator.groups != operator.features or operator.features != types[0].dim(1):
            return None
        self.grouped[layer.name] = sources[0]
        self._count(layer, sources[0])
        return self._per_channel(layer, sources[0])

    def _per_channel(self, layer: Layer, channels: Channels) -> Channels:
        self._add_axis(layer, "kernel", 0, channels)
        self._add_axis(layer, "bias", 0, channels)
        return channels

    def _transposed(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, TransposedConvolution)
        if operator.groups != 1:
            return None
        return self._filters(layer, self._fresh(operator.features), sources, out_axis=1)

    def _depthwise(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, DepthwiseConvolution)
        return self._per_channel(layer, sources[0].repeated(operator.multiplier))

    def _separable(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, SeparableConvolution)
        inner = sources[0].repeated(operator.multiplier)
        made = self._computed(layer, self._fresh(operator.features))
        self._add_axis(layer, "depthwise_kernel", 0, inner)
        self._add_axis(layer, "pointwise_kernel", 0, made)
        self._add_axis(layer, "pointwise_kernel", 1, inner, reads=True)
        self._add_axis(layer, "bias", 0, made)
        return made

    def _fully_connected(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, FullyConnected)
        if not operator.flatten and types[0].rank > 2:
            return None
        read = sources[0].repeated(prod(types[0].dim(axis) for axis in range(2, types[0].rank)))
        return self._filters(layer, self._fresh(operator.features), [read])

    def _concatenation(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, Concatenation)
        if operator.axis % types[0].rank != 1:
            return self._added(layer, operator, sources, types)
        numbers = np.concatenate([s.numbers for s in sources])
        return Channels(numbers, np.concatenate([s.repeats for s in sources]))

    def _flatten(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, Flatten)
        rank = types[0].rank
        start, end = operator.start_axis % rank, operator.end_axis % rank
        if start > 1:
            return sources[0]
        if start < 1:
            return None
        return sources[0].repeated(prod(types[0].dim(axis) for axis in range(2, end + 1)))

    def _channelwise(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        for weight in operator.weights(types):
            self._add_axis(layer, weight.name, 0, sources[0])
        if getattr(operator, "function", "") in UNBOUNDED:
            self._no_new(layer, sources[0])
        return sources[0]

    def _added(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        rank = types[0].rank
        counts = [len(s.expanded) for s in sources]
        if rank < 2 or any(t.rank != rank for t in types):
            return None
        full = [s for s, count in zip(sources, counts, strict=True) if count == max(counts)]
        for source, count in zip(sources, counts, strict=True):
            if count != max(counts):  # broadcast
                self._fix(source, tr("'{layer}' broadcasts it", layer=layer.name))
        if any(not np.array_equal(s.repeats, full[0].repeats) for s in full):
            return None
        for other in full[1:]:
            self._join(full[0], other)
        if getattr(operator, "operation", "") in UNBOUNDED_OPERATIONS:
            self._no_new(layer, full[0])
        return full[0]

    def _no_new(self, layer: Layer, channels: Channels, reason: str = "") -> None:
        for number in channels.numbers:
            self.unbounded.setdefault(int(number), reason or tr("'{layer}' may make it infinite", layer=layer.name))

    def _group_normalization(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, GroupNormalization)
        for weight in operator.weights(types):
            self._add_axis(layer, weight.name, 0, sources[0])
        self._no_new(layer, sources[0], tr("'{layer}' normalizes it together with others", layer=layer.name))
        self.normalized[layer.name] = sources[0]
        self._count(layer, sources[0])
        return sources[0]

    def _depth_to_space(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        """The channels of a block become one, so they are removed together."""
        assert isinstance(operator, DepthToSpace)
        block = operator.block_size**2
        adjacent = operator.mode == "channel_dominant"
        if len(sources[0].numbers) != len(sources[0].expanded):
            return None
        blocks = sources[0].numbers.reshape((-1, block) if adjacent else (block, -1))
        blocks = blocks if adjacent else blocks.T
        for number in range(1, block):
            self._join(Channels.of(blocks[:, 0]), Channels.of(blocks[:, number]))
        if adjacent and block > 1:  # a new channel is added behind each one of a block, but blocks must stay adjacent
            self._no_new(layer, sources[0], tr("'{layer}' needs whole blocks of channels", layer=layer.name))
        return Channels.of(blocks[:, 0])

    def _space_to_depth(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, SpaceToDepth)
        block = operator.block_size**2
        if operator.mode == "channel_dominant":
            return sources[0].repeated(block)
        return Channels(np.tile(sources[0].numbers, block), np.tile(sources[0].repeats, block))

    def _slice(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> Channels | None:
        assert isinstance(operator, Slice)
        if operator.axis % types[0].rank != 1:
            return sources[0] if operator.axis % types[0].rank > 1 else None
        if operator.step != 1 or (sources[0].repeats != 1).any():
            return None
        self.cut[layer.name] = sources[0]
        self._count(layer, sources[0])
        return Channels.of(sources[0].expanded[slice(operator.start, operator.end or None)])

    def _split(
        self, layer: Layer, operator: Operator, sources: Sequence[Channels], types: Sequence[TensorType]
    ) -> list[Channels] | None:
        assert isinstance(operator, Split)
        axis = operator.axis % types[0].rank
        if axis != 1:
            return [sources[0]] * len(operator.output_ports()) if axis > 1 else None
        if (sources[0].repeats != 1).any():  # values of one channel would be separated
            return None
        self.cut[layer.name] = sources[0]
        self._count(layer, sources[0])
        ends = np.cumsum([part.dim(1) for part in operator.infer_checked(types)])
        return [Channels.of(part) for part in np.split(sources[0].expanded, ends[:-1])]


Rule = Callable[[Layer, Operator, Sequence[Channels], Sequence[TensorType]], Channels | list[Channels] | None]
