"""The ONNX form of an operator as data: nodes refer to their inputs as objects, so operators need no tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPSET = 20


class OnnxValue:
    """Base of everything that a node can read."""


@dataclass(frozen=True, eq=False)
class OnnxInput(OnnxValue):
    """The layer's input number `index`."""

    index: int = 0


@dataclass(frozen=True, eq=False)
class OnnxWeight(OnnxValue):
    """One of the layer's weights, by the name in `Operator.weights`."""

    name: str


@dataclass(frozen=True, eq=False)
class OnnxConstant(OnnxValue):
    """A constant: nested tuples of numbers (or a plain number) and the numpy name of the element type."""

    values: Any
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class OnnxNode(OnnxValue):
    """One node. As a value it is its first output; `OnnxItem` selects another.

    None among the inputs is an omitted optional input.
    """

    op: str
    inputs: tuple[OnnxValue | None, ...] = (OnnxInput(0),)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    opset: int = 0  # the version of the domain that the node needs at least


@dataclass(frozen=True, eq=False)
class OnnxGraph(OnnxValue):
    """The nodes of an ONNX model (as bytes), whose graph has the inputs `inputs`. As a value it is its first output."""

    model: bytes
    inputs: tuple[OnnxValue, ...]
    outputs: int = 1


@dataclass(frozen=True, eq=False)
class OnnxItem(OnnxValue):
    """Output number `index` of a node or graph with several outputs."""

    node: OnnxNode | OnnxGraph
    index: int


def int64(*values: int) -> OnnxConstant:
    """An int64 vector, for shapes, axes and pads."""
    return OnnxConstant(tuple(values), "int64")


def scalar(value: float) -> OnnxConstant:
    """A float32 constant of rank 0."""
    return OnnxConstant(float(value))
