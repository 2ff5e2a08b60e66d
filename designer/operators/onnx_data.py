"""What an operator is in ONNX, as data: nodes that name their inputs by object, so that no operator invents names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPSET = 20


class OnnxValue:
    """Anything that a node can read."""


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
    """A constant: nested tuples of numbers (or a plain number) and numpy's name of the element type."""

    values: Any
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class OnnxNode(OnnxValue):
    """One node of the default domain. As a value it is its first output; `OnnxItem` picks another.

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
    """A vector of whole numbers, as shapes, axes and pads are given."""
    return OnnxConstant(tuple(values), "int64")


def scalar(value: float) -> OnnxConstant:
    """A float32 constant of rank 0."""
    return OnnxConstant(float(value))
