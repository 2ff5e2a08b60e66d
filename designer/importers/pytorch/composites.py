"""Groups of nodes of a trace that are one layer of the library: attention modules of torch.nn, and statements of generated code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from designer.importers.pytorch.conversion import Constant, Conversion, TraceNode, UnsupportedError, Value
from designer.importers.pytorch.program import is_number, line_of, module_calls, shapes_of
from designer.importers.templates import Scope
from designer.operators.api import Operator
from designer.operators.params import Value as Param

if TYPE_CHECKING:
    from torch.fx import Node

Convert = Callable[["Composite", Conversion], Value]


@dataclass(frozen=True)
class Composite:
    """Nodes that follow each other. `label` and `scope` are those of their layer, `prefix` is that of their tensors' names."""

    nodes: tuple[Node, ...]
    convert: Convert
    label: str
    scope: Scope = ()
    prefix: str = ""

    @property
    def end(self) -> Node:
        """The only node that is read outside. Raises UnsupportedError if there are several."""
        own = set(self.nodes)
        read = [node for node in self.nodes if not is_number(node) and any(user not in own for user in node.users)]
        if len(read) != 1:
            raise UnsupportedError("several of its tensors are read")
        return read[0]

    def step(self) -> TraceNode:
        """The group as one node."""
        end = self.end
        return TraceNode(end.name, self.label, {}, shapes_of(end), self.label, self.scope, line_of(end))

    def reads(self, c: Conversion) -> list[tuple[Node, Value]]:
        """The tensors from outside that are not those of the module, in the order of their use; once for every node that reads them."""
        own = set(self.nodes)
        found = []
        for node in self.nodes:
            for item in node.all_input_nodes:
                value = c.values.get(item.name)
                learned = isinstance(value, Constant) and value.name.startswith(self.prefix)
                if item not in own and not learned and not is_number(item):
                    found.append((node, c.plain(value)))
        return found

    def check(self, allowed: Collection[str]) -> None:
        """Raise UnsupportedError if the nodes have operators that are not `allowed`."""
        others = {operator_of(node) for node in self.nodes if not is_number(node)} - set(allowed) - {""}
        if others:
            raise UnsupportedError(f"it also has {', '.join(sorted(others))}")

    def tensor(self, c: Conversion, name: str) -> Constant:
        """A learned tensor of the module. Raises UnsupportedError if the nodes do not read it."""
        own = set(self.nodes)
        for item in (item for node in self.nodes for item in node.all_input_nodes if item not in own):
            value = c.values.get(item.name)
            if isinstance(value, Constant) and value.name == f"{self.prefix}{name}":
                return c.weight(value)
        raise UnsupportedError(f"it does not read '{name}'")

    def named(self, *operators: str) -> list[Node]:
        """The nodes of these operators of aten."""
        return [node for node in self.nodes if operator_of(node) in operators]

    def layer(self, c: Conversion, type: str, inputs: Sequence[Value], params: dict[str, Param]) -> Value:
        """The layer, with the tensors that its operator has in torch."""
        operator = c.builder.registry.operators[type](**params)
        assert isinstance(operator, Operator)
        weights = operator.weights([c.builder.types[item.source] for item in inputs])
        tensors = {item.name: self.tensor(c, item.torch) for item in weights}
        return c.layer(type, inputs, params, weights=tensors, shape=inputs[0].shape)


def operator_of(node: Node) -> str:
    """The name of an operator of aten; empty for other nodes."""
    schema = getattr(node.target, "_schema", None)
    return str(schema.name).rpartition("::")[2] if schema is not None else ""


def module_composites(nodes: Sequence[Node]) -> Iterator[Composite]:
    """The calls of modules of torch.nn that are one layer, the outermost ones."""

    def call_of(node: Node) -> tuple[str, str, Scope] | None:
        for kind, path, scope in module_calls(node):
            if kind in _MODULES:
                return kind, path, scope
        return None

    calls = [node for node in nodes if node.op == "call_function"]
    for call, members in groupby(calls, call_of):
        if call is not None:
            kind, path, scope = call
            yield Composite(tuple(members), _MODULES[kind], path, scope[:-1], f"{path}." if path else "")


def _single(items: Sequence[Value]) -> Value:
    if len({item.source for item in items}) != 1:
        raise UnsupportedError("it has a mask")
    return items[0]


def _heads(group: Composite, size: int) -> int:
    """The number of heads, from the size of one in the attention of the module."""
    attention = group.named("scaled_dot_product_attention", "bmm", "baddbmm")
    if not attention:
        raise UnsupportedError("it has no attention")
    shape = attention[0].all_input_nodes[0].meta["val"].shape
    if operator_of(attention[0]) == "baddbmm" or any(attention[0].args[3:]):
        raise UnsupportedError("it has a mask")
    return size // int(shape[-1])


_HEADS = (
    *("transpose", "linear", "unflatten", "unsqueeze", "squeeze", "contiguous", "select", "view", "reshape", "permute"),
    *("split_with_sizes", "scaled_dot_product_attention"),
)
_ATTENTION = (*_HEADS, "mul", "bmm", "softmax", "mean")  # the latter where it returns its weights
_TRANSFORMER = (*_HEADS, "layer_norm", "add", "relu", "gelu", "dropout")


def _transformer_layer(group: Composite, c: Conversion) -> Value:
    group.check(_TRANSFORMER)
    x = _single([value for _, value in group.reads(c)])
    norms, active = group.named("layer_norm"), group.named("relu", "gelu")
    if x.rank != 3 or len(norms) != 2 or len(active) != 1 or active[0].args[1:] or active[0].kwargs:
        raise UnsupportedError("it has other parts")
    if norms[0].args[4:] != norms[1].args[4:]:
        raise UnsupportedError("its normalizations differ")
    if operator_of(group.named("linear")[0].all_input_nodes[0]) != "transpose":
        raise UnsupportedError("its first axis is the sequence")
    dropouts = {float(node.args[1]) for node in group.named("dropout")}  # type: ignore[arg-type]
    params: dict[str, Param] = {
        "heads": _heads(group, x.size(2)),
        "hidden": int(group.tensor(c, "linear1.weight").tensor.shape[0]),
        "activation_function": operator_of(active[0]),
        "norm_first": group.nodes[0] is norms[0],
        "dropout": dropouts.pop() if len(dropouts) == 1 else 0.0,
        "epsilon": float(norms[0].args[4]) if len(norms[0].args) > 4 else 1e-5,  # type: ignore[arg-type]
    }
    return group.layer(c, "transformer_encoder_layer", [x], params)


def _attention(group: Composite, c: Conversion) -> Value:
    """Query, key and value are transposed first, each on its own unless they are one tensor."""
    group.check(_ATTENTION)
    reads = [value for node, value in group.reads(c) if operator_of(node) == "transpose"]
    if not 1 <= len(reads) <= 3 or len(reads) != len(group.reads(c)) or reads[0].rank != 3:
        raise UnsupportedError("its first axis is the sequence, or it has a mask")
    size = reads[0].size(2)
    bias = any(isinstance(c.values.get(n.name), Constant) and c.values[n.name].name.endswith("in_proj_bias")
               for node in group.nodes for n in node.all_input_nodes)  # fmt: skip
    return group.layer(c, "multi_head_attention", reads, {"heads": _heads(group, size), "apply_bias": bias})


def is_positional(operators: Collection[str], before: Collection[str]) -> bool:
    """Whether a statement of generated code with these operators, and the one before it, is a positional encoding."""
    waves = {"cos", "sin", "stack", "flatten", "add"} == set(operators) and {"ones_like", "cumsum"} <= set(before)
    return waves or set(operators) - {"sym_size"} == {"narrow", "add"}


def positional_encoding(group: Composite, c: Conversion) -> Value:
    """Sinusoids of a table of speeds, or a learned table."""
    x = _single([value for _, value in group.reads(c)])
    if not group.named("stack"):
        table = group.tensor(c, "table")
        length = int(table.tensor.shape[1])
        return group.layer(c, "positional_encoding", [x], {"kind": "learned", "max_length": length})
    speeds = group.tensor(c, "speeds").array()
    base = float(f"{float(speeds[1]) ** (-x.size(2) / 2):.6g}") if len(speeds) > 1 else 10000.0
    expected = base ** (-np.arange(0, x.size(2), 2) / x.size(2))
    if speeds.shape != expected.shape or not np.allclose(speeds, expected, rtol=1e-6):
        raise UnsupportedError("its wavelengths are not a geometric series")
    return group.layer(c, "positional_encoding", [x], {"base": base})


_MODULES: dict[str, Convert] = {
    "torch.nn.modules.transformer.TransformerEncoderLayer": _transformer_layer,
    "torch.nn.modules.activation.MultiheadAttention": _attention,
}
