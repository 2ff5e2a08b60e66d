"""In-place operators and views: what a write changes besides the tensor that it is called on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from designer.importers.pytorch.composites import operator_of
from designer.importers.pytorch.conversion import Constant, Conversion, TraceNode, UnsupportedError, Value
from designer.importers.pytorch.nodes.arithmetic import aligned, number
from designer.importers.pytorch.nodes.reshaping import sliced
from designer.importers.pytorch.nodes.table import CONVERTERS
from designer.importers.pytorch.program import is_item
from designer.texts import tr

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

_RESHAPES = ("view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "alias", "contiguous", "detach", "to")
_SPLITS = ("split", "split_with_sizes", "chunk", "tensor_split")
_MAY_COPY = ("contiguous", "reshape", "flatten", "to")
_FAR = 2**31 - 1


class View(NamedTuple):
    """A node that shares the memory of `base`, and how it is made: an operator, or the number of an item of several views."""

    node: Node
    base: Node
    step: TraceNode | int


@dataclass
class Aliases:
    """Which nodes share memory. A write gives new values to the tensors and views of that memory that are read later.

    The result of a write is the tensor that is written, under another name: `tensors` has the first name of each.
    """

    conversion: Conversion
    tensors: dict[str, Node] = field(default_factory=dict)
    names: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))  # first name -> all others
    views: dict[str, View] = field(default_factory=dict)
    taken: dict[str, list[View]] = field(default_factory=lambda: defaultdict(list))  # base -> its views

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

    def note(self, node: Node, step: TraceNode | int) -> None:
        """Remember views, and put writes through. Raises UnsupportedError, and changes nothing, if a write cannot be put through."""
        base = self._first(node)
        if base is None:
            return
        if is_write(node):
            written: dict[str, Any] = {}
            self._write(base, self.conversion.values[node.name], node, written)
            self.rename(node)
            for name, value in written.items():
                self.conversion.values.update(dict.fromkeys((name, *(item.name for item in self.names[name])), value))
        elif _is_view(node, base):
            view = View(node, base, step)
            self.views[node.name] = view
            self.taken[base.name].append(view)

    def rename(self, node: Node) -> None:
        """Remember that a node is the tensor that it writes."""
        base = self._first(node)
        if base is not None:
            self.tensors[node.name] = base
            self.names[base.name].append(node)

    def _first(self, node: Node) -> Node | None:
        """The first name of the tensor that a node gets."""
        given: Any = node.args[0] if node.args else None
        return self.tensors.get(given.name, given) if hasattr(given, "name") else None

    def _write(self, target: Node, value: Any, writer: Node, written: dict[str, Any]) -> None:
        """Collect the new values of a tensor, of what it is a view of, and of their other views."""
        before = self.conversion.values.get(target.name)
        if isinstance(before, Constant) and before.name and target.op == "placeholder":
            raise UnsupportedError(tr("the module changes its own tensor '{name}' when it runs", name=before.name))
        written[target.name] = value
        view = self.views.get(target.name)
        if view is not None and self._is_needed(view, writer):
            self._write(view.base, self._put(view, value), writer, written)
        self._renew(target, writer, written)

    def _renew(self, base: Node, writer: Node, written: dict[str, Any]) -> None:
        """Collect the new values of the views of a tensor that are read later."""
        for view in self.taken[base.name]:
            if view.node.name not in written and self._is_read(view.node, writer):
                written[view.node.name] = self._viewed(view, written[base.name])
                self._renew(view.node, writer, written)

    def _is_read(self, tensor: Node, writer: Node) -> bool:
        """Whether a tensor or a view of it is read after `writer`."""
        return self._is_used(tensor, writer) or any(
            self._is_read(view.node, writer) for view in self.taken[tensor.name]
        )

    def _is_used(self, tensor: Node, writer: Node) -> bool:
        return any(user > writer for node in (tensor, *self.names[tensor.name]) for user in node.users)

    def _is_needed(self, written: View, writer: Node) -> bool:
        """Whether what a written view was taken of is read later, itself or through other views. Items do not overlap."""
        base = written.base
        others = [] if isinstance(written.step, int) else self.taken[base.name]
        if self._is_used(base, writer) or any(
            self._is_read(view.node, writer) for view in others if view is not written
        ):
            return True
        view = self.views.get(base.name)
        return view is not None and self._is_needed(view, writer)

    def _viewed(self, view: View, value: Any) -> Any:
        """The view of a new value of its base."""
        if isinstance(view.step, int):
            return value[view.step]
        step = replace(view.step, arguments={**view.step.arguments, "self": value})
        return CONVERTERS[step.op](self.conversion, step)

    def _put(self, view: View, value: Any) -> Any:
        """The base with a view of it replaced by `value`."""
        c = self.conversion
        item, step = c.values[view.base.name], view.step
        if isinstance(step, int):
            return (*item[:step], value, *item[step + 1 :])
        x = c.value(item)
        if step.op in _RESHAPES:
            return c.reshaped(value, x.shape)
        if step.op in ("transpose", "t", "permute"):
            return c.permuted(value, _inverse(step, x.rank))
        if step.op in _SPLITS:
            return c.layer("concatenation", list(value), {"axis": x.axis(step.get("dim", 0) % x.rank)}, shape=x.shape)
        if step.op not in ("slice", "select") or step.get("step", 1) != 1:
            raise UnsupportedError(f"it writes to a tensor through {step.op}")
        return self._put_part(x, step, value)

    def _put_part(self, x: Value, step: TraceNode, value: Value) -> Value:
        """A tensor with some indices of one axis replaced by `value`."""
        c, place = self.conversion, step.get("dim", 0) % x.rank
        if step.op == "slice" and not step.get("start", 0) and step.get("end", _FAR) >= _FAR:
            return value  # all of an axis, which may be the batch
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


def is_write(node: Node) -> bool:
    """Whether a node changes a tensor that it gets."""
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def _is_view(node: Node, base: Node) -> bool:
    """Whether a node shares the memory of `base`. Some operators copy if they have to."""
    if is_item(node):
        return True
    returns = node.target._schema.returns  # type: ignore[union-attr]
    if not returns or returns[0].alias_info is None:
        return False
    kind = operator_of(node)
    if kind not in _MAY_COPY:
        return True
    made, given = node.meta["val"], base.meta["val"]
    if kind == "contiguous":
        return bool(given.is_contiguous())
    if kind == "to":
        names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
        copies = (dict(zip(names, node.args, strict=False)) | node.kwargs).get("copy", False)
        return bool(made.dtype == given.dtype and not copies)
    return _is_viewable(given, made)


def _is_viewable(given: torch.Tensor, made: torch.Tensor) -> bool:
    """Whether a reshape needs no copy, at the batch of the example: a question about symbols would fix the batch."""
    import torch

    shape, strides, wanted = (
        [size if isinstance(size, int) else int(size.node.hint) for size in sizes]
        for sizes in (given.shape, given.stride(), made.shape)
    )
    try:
        torch.empty_strided(shape, strides, device="meta").view(wanted)
    except RuntimeError:
        return False
    return True
