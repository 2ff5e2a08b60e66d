"""An ONNX operator that we do not know, kept whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from designer.operators import api as op
from designer.operators.code_text import CodeError, literal
from designer.texts import tr

_NO_TORCH = "torch does not know it; only ONNX Runtime may"


class Opaque(
    op.Operator,
    type="opaque",
    title="ONNX operator",
    category=op.Category.DEVELOPMENT,
    synonyms=("onnx node", "unknown", "imported", "foreign"),
):
    """Keep an operator of an ONNX file that this program has no layer for.

    It runs where ONNX Runtime knows the operator, and goes into ONNX files as it came. Torch and the PyTorch project cannot
    have it. What it gives cannot be computed here: declare the shapes of its results, or what follows stays unknown.
    """

    op_type: str = op.param(default="Identity", doc="Name of the ONNX operator.")
    domain: str = op.param(default="", doc="Its domain; empty for ONNX's own operators.")
    attributes: str = op.param(
        default="", multiline=True, doc="Its attributes, one a line: name=value, with numbers, texts or lists of these."
    )
    input_count: int = op.param(default=1, min=1, max=64, doc="How many tensors it reads.")
    output_count: int = op.param(default=1, min=1, max=64, doc="How many tensors it gives.")
    shapes: str = op.param(
        default="",
        multiline=True,
        doc="What it gives, one tensor a line, as in N x 3 x 8 x 8 or N x 10 int64.",
    )
    examples = (
        op.Example((op.image(),), {"op_type": "LeakyRelu", "attributes": "alpha=0.25", "shapes": "N x 3 x 8 x 8"}),
        op.Example(
            (op.image(4),),
            {
                "op_type": "Split",
                "attributes": "axis=1\nnum_outputs=2",
                "output_count": 2,
                "shapes": "Nx2x8x8\nNx2x8x8",
            },
            "several outputs",
        ),
        op.Example(
            (op.image(),),
            {"op_type": "Gelu", "domain": "com.microsoft", "shapes": "N x 3 x 8 x 8"},
            "another domain",
        ),
    )
    exceptions: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("meta", "state_dict", "flops", "source", "onnx", "random", "onnx_random"), _NO_TORCH
    )

    def input_ports(self) -> tuple[op.Port, ...]:
        return tuple(op.Port(f"x{n + 1}" if self.input_count > 1 else "x") for n in range(self.input_count))

    def output_ports(self) -> tuple[op.Port, ...]:
        return tuple(op.Port(f"y{n + 1}" if self.output_count > 1 else "y") for n in range(self.output_count))

    def faults(self) -> Iterable[op.Fault]:
        if not self.op_type.isidentifier():
            yield op.Fault(
                "op_type", f"'{self.op_type[:60]}' is no name of an ONNX operator", "write it as in the ONNX file"
            )
        for parameter, look in (("attributes", attributes_of), ("shapes", types_of)):
            try:
                look(getattr(self, parameter))
            except CodeError as error:
                yield op.Fault(parameter, str(error), error.remedy)

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        types = types_of(self.shapes)
        if len(types) != self.output_count:
            raise op.ShapeError(
                tr(
                    "what the ONNX operator {op_type} gives is not declared: {count} of {output_count} shapes",
                    op_type=self.op_type,
                    count=len(types),
                    output_count=self.output_count,
                ),
                remedy=tr("write one line for each of its outputs, as in N x 3 x 8 x 8"),
                code="shape-not-declared",
            )
        return types

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        reads = tuple(op.OnnxInput(index) for index in range(len(inputs)))
        node = op.OnnxNode(self.op_type, reads, attributes_of(self.attributes), self.output_count, self.domain)
        return (node, *(op.OnnxItem(node, index) for index in range(1, self.output_count)))

    def summary(self) -> str:
        return (f"{self.domain}.{self.op_type}" if self.domain else self.op_type)[:40]


@lru_cache(maxsize=256)
def attributes_of(text: str) -> Mapping[str, Any]:
    """The attributes of lines `name=value`."""
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise CodeError(
                tr("line {number} of the attributes is no name=value", number=number),
                tr("write one attribute a line: axis=1"),
            )
        if name in found:
            raise CodeError(
                tr("line {number} of the attributes names '{name}' again", number=number, name=name),
                tr("remove one of the lines"),
            )
        found[name] = literal(value)
        items = found[name] if isinstance(found[name], list | tuple) else [found[name]]
        if isinstance(found[name], list | tuple):
            found[name] = tuple(found[name])
        kinds = {float if isinstance(item, float) else type(item) for item in items}
        if not kinds <= {int, float} and kinds != {str}:
            raise CodeError(
                tr("line {number} of the attributes: '{name}' is neither numbers nor texts", number=number, name=name),
                tr("write a number, a text in quotes, or a list of one of them"),
            )
    return found


@lru_cache(maxsize=256)
def types_of(text: str) -> tuple[op.TensorType, ...]:
    """The tensor types of lines such as `N x 3 x 8 x 8 int64`; a scalar is the word scalar."""
    return tuple(_type(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _type(number: int, line: str) -> op.TensorType:
    rule = f"write dimensions and, unless float32, one of {', '.join(op.DataType)}: N x 10 int64"
    head, _, last = line.rpartition(" ")
    dtype = op.DataType.FLOAT32
    if last in tuple(op.DataType):
        line, dtype = head, op.DataType(last)
    if line.strip() == "scalar":
        return op.TensorType((), dtype)
    dims: list[op.Dim] = []
    for part in (p.strip() for p in line.split("x")):
        if part.isascii() and part.isdigit() and 0 < len(part) < 10 and int(part) > 0:
            dims.append(int(part))
        elif part == "N":
            dims.append(op.Symbol(part))
        else:
            raise CodeError(
                tr("line {number} of the shapes: '{part}' is no dimension", number=number, part=part[:40]), rule
            )
    return op.TensorType(tuple(dims), dtype)
