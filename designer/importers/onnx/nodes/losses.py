"""Losses that are part of the computation of a file."""

from __future__ import annotations

from designer.graph.model import Source
from designer.graph.types import DataType
from designer.importers.onnx.conversion import Conversion, OnnxOp
from designer.importers.onnx.nodes.table import converts
from designer.operators.params import Value


@converts("NegativeLogLikelihoodLoss")
def negative_log_likelihood(c: Conversion, op: OnnxOp) -> None:
    c.finish(_loss(c, op, c.source(op.inputs[0])))


@converts("SoftmaxCrossEntropyLoss")
def cross_entropy(c: Conversion, op: OnnxOp) -> None:
    (logarithms,) = c.add("activation", [op.inputs[0]], activation=("log_softmax", {"axis": 1}))
    if len(op.outputs) > 1:
        c.put(op.outputs[1], logarithms)
    c.finish(_loss(c, op, logarithms))


def _loss(c: Conversion, op: OnnxOp, logarithms: Source) -> Source:
    """The negative logarithm at the class of each position, weighted and reduced."""
    target: str | Source = op.inputs[1]
    if c.type_of(op.inputs[1]).dtype is not DataType.INT64:
        (target,) = c.add("cast", [target], {"target": "int64"})
    ignored = op.attribute("ignore_index")
    kept: Source | None = None
    if ignored is not None:
        (mark,) = c.add("tensor_constant", [], _integer(ignored))
        (kept,) = c.add("compare", [target, mark], {"operation": "not_equal"})
        (zero,) = c.add("tensor_constant", [], _integer(0))
        (target,) = c.add("where", [kept, target, zero])
    (index,) = c.add("unsqueeze", [target], {"axis": 1})
    (picked,) = c.add("gather", [logarithms, index], {"axis": 1, "mode": "elements"})
    (picked,) = c.add("squeeze", [picked], {"axes": (1,)})
    (loss,) = c.add("unary", [picked], {"function": "neg"})
    weight = _weights(c, op, index, kept)
    if weight is not None:
        (loss,) = c.add("element_wise", [loss, weight], {"operation": "multiply"})
    reduction = op.attribute("reduction", "mean")
    if reduction == "none":
        return loss
    total: dict[str, Value] = {"operation": "sum" if reduction == "sum" or weight is not None else "mean"}
    (made,) = c.add("reduce", [loss], {**total, "axes": (), "keep": False})
    if reduction == "mean" and weight is not None:
        (norm,) = c.add("reduce", [weight], {"operation": "sum", "axes": (), "keep": False})
        (made,) = c.add("element_wise", [made, norm], {"operation": "divide"})
    return made


def _weights(c: Conversion, op: OnnxOp, index: Source, kept: Source | None) -> Source | None:
    """The weight of each position: that of its class, 0 for ignored ones; None if all are 1."""
    weight: Source | None = None
    if op.input(2):
        rank = c.builder.types[index].rank
        shape: dict[str, Value] = {"shape": (1, -1, *(1,) * (rank - 2)), "keep_batch": False}
        (table,) = c.add("reshape", [op.inputs[2]], shape)
        target = tuple(
            size if axis != 1 and isinstance(size, int) else -1
            for axis, size in enumerate(c.builder.types[index].shape)
        )
        (wide,) = c.add("expand", [table], {"shape": target})
        (picked,) = c.add("gather", [wide, index], {"axis": 1, "mode": "elements"})
        (weight,) = c.add("squeeze", [picked], {"axes": (1,)})
    if kept is None:
        return weight
    (mask,) = c.add("cast", [kept], {"target": "float32"})
    return mask if weight is None else c.add("element_wise", [weight, mask], {"operation": "multiply"})[0]


def _integer(value: int) -> dict[str, Value]:
    return {"shape": (1,), "dtype": "int64", "numbers": str(value)}
