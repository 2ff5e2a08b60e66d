"""2:4 sparsity: at most two of every four weights along the input channels are not zero (Mishra et al. 2021, arXiv:2104.08378).

Sparse Tensor Cores skip the zeros. Channels are first permuted, so that fewer large weights meet in a group of four (Pool and Yu
2021, NeurIPS); the network computes the same with permuted channels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.api import Operator
from designer.operators.inlining import inline
from designer.operators.library.convolution.convolution import Convolution
from designer.operators.library.linear.fully_connected import FullyConnected
from designer.operators.live_cost import LiveCost
from designer.operators.registry import Registry
from designer.surgery.channels import ChannelMap, Numbers, WeightAxis
from designer.texts import tr, trn
from designer.units import percent

PATTERN = "2:4"
GROUP, KEPT = 4, 2
LEAST_CHANNELS = 256  # of inputs and outputs: with fewer, libraries choose dense kernels (TensorRT#3849, #4065)
LARGEST_GAIN = 0.15  # of the time of a convolutional network, end to end
PASSES = 6  # over all pairs of groups
SWAP_VALUES = 1e8  # values that one pass compares; of larger kernels it samples rows

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layer with a kernel. `reason` says why it cannot be pruned, empty if it can; `work` is its share of the operations."""

    layer: str
    key: WeightKey
    inputs: int
    outputs: int
    work: float
    reason: str = ""

    @property
    def gains(self) -> bool:
        """Whether sparse Tensor Cores can be faster for this layer."""
        return not self.reason and min(self.inputs, self.outputs) >= LEAST_CHANNELS


@dataclass(frozen=True, slots=True)
class PrunedKernel:
    """A kernel that was pruned: the share of its magnitude that is kept, with and without the permutation."""

    layer: str
    kept: float
    kept_unpermuted: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """Pruned weights, of the same network."""

    weights: Weights
    kernels: tuple[PrunedKernel, ...]


def candidates(graph: Graph, registry: Registry) -> tuple[Candidate, ...]:
    """The convolutions and fully connected layers of a network, with templates replaced by their layers."""
    inference = Inference(inline(graph, registry), registry)
    costs = LiveCost(inference)
    costs.count()
    total = max(costs.total().flops, 1)
    found = []
    for name in inference.graph.order()[0]:
        operator = inference.read(name).operator
        if not inference.states[name].ok or not isinstance(operator, Convolution | FullyConnected):
            continue
        work = costs.of(name)
        share = work.flops / total if work is not None else 0.0
        kernel = next(w for w in operator.weights(inference.states[name].inputs) if w.name == "kernel")
        outputs, inputs = kernel.shape[:2]
        key = WeightKey(inference.graph[name].weights_name, "kernel")
        found.append(Candidate(name, key, inputs, outputs, share, _obstacle(operator, inputs)))
    return tuple(found)


def _obstacle(operator: Operator, inputs: int) -> str:
    if isinstance(operator, Convolution) and operator.groups > 1:
        return tr("a grouped convolution reads few channels at a time")
    if inputs % GROUP:
        return tr("{count} input channels are not a multiple of 4", count=inputs)
    return ""


def expected_gain(found: Sequence[Candidate]) -> str:
    """What sparse Tensor Cores can gain, for the user to read before anything is retrained."""
    faster = [one for one in found if one.gains]
    if not faster:
        return tr(
            "2:4 sparsity gains no speed here: no layer has {least} or more input and output channels, so libraries "
            "choose dense kernels. It costs accuracy.",
            least=LEAST_CHANNELS,
        )
    share = sum(one.work for one in faster)
    return trn(
        "2:4 sparsity saves at most {gain} of the time on sparse Tensor Cores: {count} layer with {share} of the operations "
        "has {least} or more input and output channels.",
        "2:4 sparsity saves at most {gain} of the time on sparse Tensor Cores: {count} layers with {share} of the operations "
        "have {least} or more input and output channels.",
        len(faster),
        gain=percent(min(share / 2, LARGEST_GAIN)),
        share=percent(share),
        least=LEAST_CHANNELS,
    )


def mask_of(kernel: Array) -> NDArray[np.bool_]:
    """True for the two largest magnitudes of every four along the input channels (axis 1)."""
    groups = np.abs(kernel).reshape(len(kernel), -1, GROUP, *kernel.shape[2:])
    order = np.argsort(groups, axis=2, kind="stable")
    mask = np.zeros(groups.shape, bool)
    np.put_along_axis(mask, order[:, :, GROUP - KEPT :], True, axis=2)
    return mask.reshape(kernel.shape)


def violations(kernel: Array) -> int:
    """The number of groups of four with more than two values that are not zero."""
    groups = kernel.reshape(len(kernel), -1, GROUP, *kernel.shape[2:])
    return int(((groups != 0).sum(axis=2) > KEPT).sum())


def check_sparse(found: Sequence[Candidate], weights: Weights) -> dict[str, int]:
    """The violations of each layer that can be pruned: every group of four of every kernel is counted."""
    return {one.layer: violations(weights.tensors[one.key]) for one in found if not one.reason}


def prune(graph: Graph, registry: Registry, weights: Weights, found: Sequence[Candidate]) -> Pruned:
    """Permute channels, then set the two smallest of every four weights of the `found` layers that can be pruned to zero."""
    kernels = [one for one in found if not one.reason]
    permuted = _Permutation(graph, registry, weights, {one.key for one in kernels}).tensors
    tensors = dict(permuted)
    pruned = []
    for one in kernels:
        mask = mask_of(permuted[one.key])
        tensors[one.key] = permuted[one.key] * mask
        plain = weights.tensors[one.key]
        kept = _share(permuted[one.key], mask)
        pruned.append(PrunedKernel(one.layer, kept, _share(plain, mask_of(plain))))
    return Pruned(replace(weights, tensors=tensors, note=_note(weights.note), sha256=""), tuple(pruned))


def sparse_weights(graph: Graph, registry: Registry, weights: Weights) -> Weights:
    """`weights` if they are 2:4 sparse, else pruned ones. Raises DiagnosticError if no layer can be pruned, or weights are missing."""
    found = candidates(graph, registry)
    if all(one.reason for one in found):
        raise nothing_to_prune(found)
    missing = [one for one in found if one.key not in weights.tensors]
    if missing:
        raise DiagnosticError.of(
            "weights-missing",
            tr("'{layer}' has no weights to prune", layer=missing[0].layer),
            layer=missing[0].layer,
            remedy=tr("choose weights of this network"),
        )
    if not any(check_sparse(found, weights).values()):
        return weights
    return replace(prune(graph, registry, weights, found).weights, sha256=weights.sha256)


def nothing_to_prune(found: Sequence[Candidate]) -> DiagnosticError:
    """The error for a network of which no layer can be pruned."""
    reasons = "; ".join(f"'{one.layer}': {one.reason}" for one in found[:5])
    return DiagnosticError.of(
        "nothing-to-prune",
        tr("no layer can be pruned: {reasons}", reasons=reasons or tr("no layer has a kernel")),
        remedy=tr("use numbers of channels that are multiples of 4"),
    )


def _note(note: str) -> str:
    return "; ".join(text for text in (note, tr("2:4 sparse")) if text)


def _share(kernel: Array, mask: NDArray[np.bool_]) -> float:
    total = float(np.abs(kernel).sum())
    return float(np.abs(kernel[mask]).sum()) / total if total else 1.0


# --- permutation ---------------------------------------------------------------------------------------------------


class _Permutation:
    """Weights with permuted channels: another order of the channels that a layer computes, in all weights that have them.

    Channels are interchangeable if they appear equally often in the same tensors and weights and no layer fixes them. `tensors`
    has all weights, permuted class by class.
    """

    def __init__(self, graph: Graph, registry: Registry, weights: Weights, sparse: set[WeightKey]) -> None:
        self._map = ChannelMap(Inference(inline(graph, registry), registry))
        self._sparse = sparse
        self.tensors = dict(weights.tensors)
        self._roots = {id(axis): self._map.roots(axis.channels.expanded) for axis in self._map.axes}
        for numbers in self._classes():
            self._permute(numbers)

    def _classes(self) -> list[Numbers]:
        """The sets of interchangeable channels, each in the order of the first tensor that has them."""
        channels = self._map
        seen: dict[int, list[tuple[int, int]]] = defaultdict(list)
        tensors = [channels.roots(tensor.expanded) for tensor in channels.tensors.values()]
        for place, roots in enumerate((*tensors, *self._roots.values())):
            for root, count in zip(*np.unique(roots, return_counts=True), strict=True):
                seen[int(root)].append((place, int(count)))
        fixed = {channels.root(number) for number in channels.fixed}
        classes: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
        for roots in tensors:
            for root in dict.fromkeys(roots.tolist()):
                if root not in fixed and root not in (group := classes[tuple(seen[root])]):
                    group.append(root)
        return [np.array(group, np.int64) for group in classes.values()]

    def _permute(self, numbers: Numbers) -> None:
        rows = [part for axis in self._map.axes if (part := self._rows(axis, numbers)) is not None]
        if not rows or len(numbers) % GROUP:
            return
        order = best_order(np.concatenate(rows))
        if order is None:
            return
        target = dict(zip(numbers.tolist(), numbers[order].tolist(), strict=True))
        for axis in self._map.axes:
            roots = self._roots[id(axis)]
            if axis.key in self.tensors and np.isin(roots, numbers).any():
                self.tensors[axis.key] = np.take(self.tensors[axis.key], _moved(roots, target), axis.axis)

    def _rows(self, axis: WeightAxis, numbers: Numbers) -> Array | None:
        """The magnitudes of a kernel to prune, one column per channel of `numbers`; None if it has no groups of these channels."""
        roots = self._roots[id(axis)]
        if not axis.reads or axis.key not in self._sparse or not (roots == numbers[0]).any():
            return None
        start = int(np.argmax(roots == numbers[0]))
        if start % GROUP or not np.array_equal(roots[start : start + len(numbers)], numbers):
            return None  # the channels are not next to each other, so no group has only them
        kernel = np.abs(np.moveaxis(self.tensors[axis.key], axis.axis, -1))
        columns: Array = kernel.reshape(-1, kernel.shape[-1])[:, start : start + len(numbers)]
        return columns


def _moved(roots: Numbers, target: Mapping[int, int]) -> NDArray[np.int64]:
    """For every position of an axis the position that its values come from."""
    places: dict[int, list[int]] = defaultdict(list)
    for position, root in enumerate(roots.tolist()):
        places[root].append(position)
    index = np.arange(len(roots))
    for root, source in target.items():
        index[places[root]] = places[source]
    return index


def best_order(rows: Array) -> NDArray[np.int64] | None:
    """An order of the columns of `rows` in which more magnitude remains after pruning; None if none was found.

    Greedy: the best exchange of two channels between every pair of groups of four, until no exchange helps.
    """
    count = rows.shape[1]
    pairs = list(combinations(range(count // GROUP), 2))
    most = max(int(SWAP_VALUES / max(len(pairs) * GROUP * GROUP * 2 * GROUP, 1)), 64)
    sample = rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    order = np.arange(count)
    changed = set(range(count // GROUP))
    for _ in range(PASSES):
        last, changed = changed, set()
        for pair in pairs:
            if not last.isdisjoint(pair) and _exchange(sample, order, *pair):
                changed.update(pair)
    better = _kept(rows[:, order]) > _kept(rows)
    return order if better else None


def _exchange(rows: Array, order: NDArray[np.int64], one: int, other: int) -> bool:
    """Exchange the two channels of a pair of groups that keep the most magnitude; whether that helps."""
    a, b = slice(one * GROUP, (one + 1) * GROUP), slice(other * GROUP, (other + 1) * GROUP)
    first, second = order[a], order[b]
    options = [(first, second)]
    for p in range(GROUP):
        for q in range(GROUP):
            left, right = first.copy(), second.copy()
            left[p], right[q] = second[q], first[p]
            options.append((left, right))
    kept = _kept_of_groups(rows, np.array([left for left, _ in options]))
    kept += _kept_of_groups(rows, np.array([right for _, right in options]))
    best = int(np.argmax(kept))
    if kept[best] <= kept[0] * (1 + 1e-6):
        return False
    order[a], order[b] = options[best]
    return True


def _kept_of_groups(rows: Array, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """The magnitude that remains of each group of four columns: their two largest values, from pairwise comparisons."""
    a, b, c, d = (rows[:, column] for column in groups.T)
    first, second = np.maximum(a, b), np.maximum(c, d)
    rest = np.maximum(np.minimum(a, b), np.minimum(c, d))
    largest = np.maximum(first, second)
    largest += np.maximum(np.minimum(first, second), rest)
    kept: NDArray[np.float64] = largest.sum(axis=0, dtype=np.float64)
    return kept


def _kept(rows: Array) -> float:
    groups = np.arange(rows.shape[1]).reshape(-1, GROUP)
    return float(_kept_of_groups(rows, groups).sum())
