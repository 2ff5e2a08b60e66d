"""In-place operators and views: what a write changes besides the tensor that it is called on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from designer.importers.pytorch.conversion import Constant, Conversion, Repeated, TraceNode, UnsupportedError, Value
from designer.importers.pytorch.nodes.arithmetic import aligned, number
from designer.importers.pytorch.nodes.reshaping import sliced
from designer.texts import tr

if TYPE_CHECKING:
    from torch.fx import Node

_RESHAPES = ("view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "alias", "contiguous", "detach")
_FAR = 2**31 - 1


@dataclass
class Aliases:
    """Which nodes are views of which; writes are put through to the tensors that share memory and are read later."""

    conversion: Conversion
    views: dict[str, tuple[Node, TraceNode]] = field(default_factory=dict)  # view -> its base, and how it is made

    def source(self, step: TraceNode) -> Any:
        """The tensor that `copy_` writes, with the shape of the target."""
        c = self.conversion
        target, source = step.get("self"), step.get("src")
        if isinstance(source, int | float):
            source = number(c, source)
        value = c.value(source)
        wanted = target.tensor.shape if isinstance(target, Constant) else c.value(target).shape
        if tuple(wanted) != value.shape:
            zeros = c.layer("scale_shift", [target], {"scale": 0.0}, shape=c.value(target).shape)
            values, shape = aligned(c, zeros, value)
            return c.layer("element_wise", values, {"operation": "add"}, shape=shape)
        return value

    def note(self, node: Node, step: TraceNode) -> None:
        """Remember views, and put writes through. Raises UnsupportedError, and changes nothing, if a write cannot be put through."""
        first = node.args[0] if node.args else None
        if not hasattr(first, "name"):
            return
        schema = node.target._schema  # type: ignore[union-attr]
        if schema.is_mutable:
            written: dict[str, Value] = {}
            self._assign(first, self.conversion.values[node.name], node, written)
            self.conversion.values.update(written)
            for name in written:
                self.views.pop(name, None)
        elif schema.returns and schema.returns[0].alias_info is not None:
            self.views[node.name] = (first, step)  # type: ignore[assignment]

    def _assign(self, target: Any, value: Value, writer: Node, written: dict[str, Value]) -> None:
        c = self.conversion
        before = c.values.get(target.name)
        if isinstance(before, Constant) and before.name and target.op == "placeholder":
            raise UnsupportedError(tr("the module changes its own tensor '{name}' when it runs", name=before.name))
        written[target.name] = value
        for name, (base, _) in self.views.items():
            other = name not in written and name != writer.name
            if base.name == target.name and other and _read_later(_node(target, name), writer):
                raise UnsupportedError(tr("it writes to a tensor of which '{name}' is a view", name=name))
        if target.name not in self.views:
            return
        base, step = self.views[target.name]
        if not _read_later(base, writer, besides=target) and base.name not in self.views:
            return
        self._assign(base, self._put(base, step, value), writer, written)

    def _put(self, base: Node, step: TraceNode, value: Value) -> Value:
        """The base with a view of it replaced by `value`."""
        c = self.conversion
        item = c.values[base.name]
        if not isinstance(item, Value | Constant | Repeated):
            raise UnsupportedError("it writes to a view of several tensors")
        x = c.value(item)
        if step.op in _RESHAPES:
            return c.reshaped(value, x.shape)
        if step.op in ("transpose", "t", "permute"):
            return c.permuted(value, _inverse(step, x.rank))
        if step.op not in ("slice", "select") or step.get("step", 1) != 1:
            raise UnsupportedError(f"it writes to a tensor through {step.op}")
        place = step.get("dim", 0) % x.rank
        length = x.size(place)
        if step.op == "select":
            start = step.get("index") % length
            end = start + 1
            value = c.reshaped(value, (*value.shape[:place], 1, *value.shape[place:]))
        else:
            start, end, _ = slice(step.get("start", 0), step.get("end", _FAR)).indices(length)
        parts = [value]
        if start > 0:
            parts.insert(0, sliced(c, x, place, 0, start))
        if end < length:
            parts.append(sliced(c, x, place, end, _FAR))
        if len(parts) == 1:
            return value
        return c.layer("concatenation", parts, {"axis": x.axis(place)}, shape=x.shape)


def _inverse(step: TraceNode, rank: int) -> list[int]:
    """The order of axes that undoes a transpose or a permutation."""
    if step.op == "permute":
        order = [axis % rank for axis in step.get("dims")]
        return [order.index(axis) for axis in range(rank)]
    order = list(range(rank))
    one, other = step.get("dim0", 0) % rank, step.get("dim1", 1) % rank
    order[one], order[other] = other, one
    return order


def _node(near: Node, name: str) -> Node | None:
    return next((node for node in near.graph.nodes if node.name == name), None)


def _read_later(node: Node | None, writer: Node, besides: Node | None = None) -> bool:
    """Whether a node is read after `writer`."""
    return node is not None and any(user is not besides and user > writer for user in node.users)
