"""Assigns the kernels of an ONNX model that ONNX Runtime optimized (fused, folded, reordered) to layers.

Values have the names from `onnx_model`: `layer`, `layer:port` or `layer/...`. ONNX Runtime keeps the name of the last value
of a fusion, except in its blocked layout, where the kernel's name contains it (`<value>_nchwc`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_BLOCKED = re.compile(r"_nchwc(_token_\d+)?\Z")
_NO_WORK = {"Identity", "Dropout", "Cast"}
_LAYOUT = {"ReorderInput", "ReorderOutput"}


@dataclass(frozen=True)
class Node:
    """A node of a model: its type, name and the names of the values it reads and writes."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass
class KernelGroup:
    """Kernels that together run `layers`."""

    layers: tuple[str, ...] = ()
    kernels: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)


def layer_of(value: str) -> str:
    """The layer that a value or node belongs to, from its name."""
    return value.partition("/")[0].partition(":")[0]


def groups(original: Sequence[Node], optimized: Sequence[Node], layers: Sequence[str]) -> list[KernelGroup]:
    """Kernels of `optimized` by the layers they run, in execution order; every kernel is in exactly one group."""
    members = set(layers)
    maker = {value: node for node in original for value in node.outputs}
    by_name = {node.name: node for node in original}
    written = [_values(node, maker, by_name) for node in optimized]
    kept = {value for values in written for value in values}
    owner: dict[str, int] = {}  # name of an original node -> kernel that runs it
    for index, node in enumerate(optimized):
        for value in written[index]:
            _claim(value, node.op.removeprefix("Fused"), index, maker, kept, owner)
    _attach_rest(original, maker, owner)

    ran: list[dict[str, None]] = [{} for _ in optimized]
    for node in original:
        if node.name in owner and layer_of(node.name) in members:
            ran[owner[node.name]][layer_of(node.name)] = None
    return kernel_groups(optimized, ran)


def kernel_groups(kernels: Sequence[Node], ran: Sequence[Mapping[str, None]]) -> list[KernelGroup]:
    """Groups of kernels that share layers. `ran` has the layers of each; a conversion without layers joins its consumer."""
    makes = {value: index for index, node in enumerate(kernels) for value in node.outputs}
    home = {index: _home(index, kernels, ran, makes) for index in range(len(kernels))}
    return _merge(kernels, ran, home)


def _values(node: Node, maker: Mapping[str, Node], by_name: Mapping[str, Node]) -> list[str]:
    """The original values that a kernel writes."""
    if node.op in _LAYOUT:
        return []
    found = [value for value in node.outputs if value in maker]
    blocked = _BLOCKED.sub("", node.name)
    if not found and blocked != node.name and blocked in maker:
        found = [blocked]
    if not found and node.name in by_name:  # moving a Transpose renames values but not nodes
        found = list(by_name[node.name].outputs)
    return found


def _claim(value: str, op: str, index: int, maker: Mapping[str, Node], kept: set[str], owner: dict[str, int]) -> None:
    """Assign the nodes that compute `value` to kernel `index`, up to values of other kernels or the main operation."""
    stack = [value]
    while stack:
        node = maker.get(stack.pop())
        if node is None or node.name in owner:
            continue
        owner[node.name] = index
        if node.op != op:
            stack.extend(v for v in node.inputs if v not in kept)


def _attach_rest(original: Sequence[Node], maker: Mapping[str, Node], owner: dict[str, int]) -> None:
    """Assign nodes that were fused into a kernel without a trace to the latest kernel that feeds them."""
    for node in original:
        if node.name not in owner and node.op not in _NO_WORK:
            feeding = [owner[maker[v].name] for v in node.inputs if v in maker and maker[v].name in owner]
            if feeding:
                owner[node.name] = max(feeding)


def _home(index: int, optimized: Sequence[Node], ran: Sequence[Mapping[str, None]], makes: Mapping[str, int]) -> int:
    """The kernel whose group a kernel without layers joins: its consumer, otherwise its producer."""
    if ran[index]:
        return index
    node = optimized[index]
    before = [makes[v] for v in node.inputs if v in makes and ran[makes[v]]]
    after = [i for i, other in enumerate(optimized) if ran[i] and set(node.outputs) & set(other.inputs)]
    near = before or after if node.op != "ReorderInput" else after or before
    return near[0] if near else index


def _merge(optimized: Sequence[Node], ran: Sequence[Mapping[str, None]], home: Mapping[int, int]) -> list[KernelGroup]:
    """Merge kernels that share a layer into one group."""
    leader = dict(home)

    def find(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    first: dict[str, int] = {}
    for index, names in enumerate(ran):
        for name in names:
            other = first.setdefault(name, index)
            if find(other) != find(index):
                leader[find(index)] = find(other)
    found: dict[int, KernelGroup] = {}
    for index, node in enumerate(optimized):
        group = found.setdefault(find(index), KernelGroup())
        group.layers = tuple(dict.fromkeys((*group.layers, *ran[index])))
        group.kernels.append(node.name)
        group.ops.append(node.op)
    return list(found.values())
