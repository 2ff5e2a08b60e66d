"""Undeclared ONNX operators."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from designer.operators import api as op
from designer.operators.code_text import CodeError, literal
from designer.texts import tr

_SIDE = re.compile(r"([HW])(?:([*/])([1-9]\d{0,3}))?")
MAX_MODEL = 64 * 2**20  # bytes of an imported graph
_NO_TORCH = "not available in torch; only ONNX Runtime can run it"


class Opaque(
    op.Operator,
    type="opaque",
    title="ONNX operator",
    category=op.Category.DEVELOPMENT,
    synonyms=("onnx node", "unknown", "imported", "foreign"),
):
    """An operator of an ONNX file for which there is no layer type, or several that belong together.

    It runs if ONNX Runtime supports the operator, and is exported to ONNX unchanged. What has no attributes as text (the body
    of a loop, texts as constants) is imported as a `model`, which is used instead of name and attributes. torch and PyTorch projects do not
    support it. Its output shapes cannot be inferred: declare them, otherwise the types of the following layers are unknown. H and W are
    the height and width of the first image that it reads.
    """

    op_type: str = op.param(default="Identity", doc="Name of the ONNX operator.")
    domain: str = op.param(default="", doc="Domain of the operator; empty for standard operators.")
    attributes: str = op.param(
        default="",
        multiline=True,
        doc="Attributes, one per line: name=value with a number, a text, or a list of these.",
    )
    input_count: int = op.param(default=1, min=0, max=1000, doc="Number of inputs.")
    output_count: int = op.param(default=1, min=1, max=64, doc="Number of outputs.")
    shapes: str = op.param(
        default="",
        multiline=True,
        doc="Types of the outputs, one per line, as in N x 3 x 8 x 8, N x 3 x H x W/2 or N x 10 int64.",
    )
    opset: int = op.param(
        default=0, min=0, max=1000, extension=True, doc="Version of the domain that defines the operator; 0: any."
    )
    model: str = op.param(
        default="", extension=True, multiline=True, doc="An imported ONNX graph: zlib-compressed, as base64 text."
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
                "op_type",
                tr("'{op_type}' is not a valid name of an ONNX operator", op_type=self.op_type[:60]),
                tr("enter it as in the ONNX file"),
            )
        for parameter, look in (("attributes", attributes_of), ("shapes", types_of), ("model", unpacked)):
            try:
                look(getattr(self, parameter))
            except CodeError as error:
                yield op.Fault(parameter, str(error), error.remedy)

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        image = next((kind for kind in inputs if kind.rank == 4), None)
        types = tuple(declared.sized(image) for declared in types_of(self.shapes))
        if len(types) != self.output_count:
            raise op.ShapeError(
                tr(
                    "the ONNX operator {op_type} declares {count} of {output_count} output shapes",
                    op_type=self.op_type,
                    count=len(types),
                    output_count=self.output_count,
                ),
                remedy=tr("enter one line for each output, as in N x 3 x 8 x 8"),
                code="shape-not-declared",
            )
        return types

    @property
    def follows_image(self) -> bool:
        """Whether the sizes of outputs are declared for images of any size."""
        return any(isinstance(dim, Side) for declared in types_of(self.shapes) for dim in declared.shape)

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        reads = tuple(op.OnnxInput(index) for index in range(len(inputs)))
        node: op.OnnxNode | op.OnnxGraph
        if self.model:
            node = op.OnnxGraph(unpacked(self.model), reads, self.output_count)
        else:
            attributes = attributes_of(self.attributes)
            node = op.OnnxNode(self.op_type, reads, attributes, self.output_count, self.domain, self.opset)
        return (node, *(op.OnnxItem(node, index) for index in range(1, self.output_count)))

    def summary(self) -> str:
        return (f"{self.domain}.{self.op_type}" if self.domain else self.op_type)[:40]


def packed(model: bytes) -> str:
    """A serialized ONNX model as the text of the parameter `model`."""
    return base64.b64encode(zlib.compress(model, 9)).decode("ascii")


@lru_cache(maxsize=64)
def unpacked(text: str) -> bytes:
    """The serialized ONNX model in the text of the parameter `model`. Raises CodeError for other text, and above MAX_MODEL."""
    try:
        data = base64.b64decode(text, validate=True)
        reader = zlib.decompressobj()
        found = reader.decompress(data, MAX_MODEL) if text else b""
        if reader.unconsumed_tail or (text and not reader.eof):
            raise ValueError
    except (ValueError, zlib.error):
        raise CodeError(tr("the model is damaged or too large"), tr("import the ONNX file again")) from None
    return found


@lru_cache(maxsize=256)
def attributes_of(text: str) -> Mapping[str, Any]:
    """Parse attributes from lines `name=value`."""
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise CodeError(
                tr("line {number} of the attributes is not name=value", number=number),
                tr("enter one attribute per line: axis=1"),
            )
        if name in found:
            raise CodeError(
                tr("line {number} of the attributes repeats '{name}'", number=number, name=name),
                tr("remove one of the lines"),
            )
        found[name] = literal(value)
        items = found[name] if isinstance(found[name], list | tuple) else [found[name]]
        if isinstance(found[name], list | tuple):
            found[name] = tuple(found[name])
        kinds = {float if isinstance(item, float) else type(item) for item in items}
        if not kinds <= {int, float} and kinds != {str}:
            raise CodeError(
                tr(
                    "line {number} of the attributes: the value of '{name}' is not a number or a text",
                    number=number,
                    name=name,
                ),
                tr("enter a number, a quoted text, or a list of either"),
            )
    return found


class Side(NamedTuple):
    """The size of an axis of an image, times a number and divided by one, rounded down."""

    axis: int
    times: int = 1
    over: int = 1

    def __str__(self) -> str:
        """The size as in `Opaque.shapes`."""
        name = "H" if self.axis == 2 else "W"
        return f"{name}*{self.times}" if self.times > 1 else f"{name}/{self.over}" if self.over > 1 else name


class DeclaredType(NamedTuple):
    """The type of an output; sizes may follow those of an image."""

    shape: tuple[op.Dim | Side, ...]
    dtype: op.DataType

    def sized(self, image: op.TensorType | None) -> op.TensorType:
        """The type where the operator reads `image`. Raises ShapeError without an image, and where nothing would be left."""
        dims: list[op.Dim] = []
        for dim in self.shape:
            if isinstance(dim, Side):
                if image is None:
                    raise op.ShapeError(
                        tr("the declared size '{size}' needs an input N x C x H x W", size=str(dim)),
                        remedy=tr("enter a number, or connect an image"),
                    )
                dim = image.dim(dim.axis) * dim.times // dim.over
                if dim < 1:
                    raise op.ShapeError(tr("the output would be empty"), remedy=tr("use a larger input"))
            dims.append(dim)
        return op.TensorType(tuple(dims), self.dtype)


@lru_cache(maxsize=256)
def types_of(text: str) -> tuple[DeclaredType, ...]:
    """Parse types of tensors from lines such as `N x 3 x H x 8 int64`, or `scalar`."""
    return tuple(_type(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _type(number: int, line: str) -> DeclaredType:
    rule = f"enter dimensions and, unless float32, one of {', '.join(op.DataType)}: N x 10 int64"
    head, _, last = line.rpartition(" ")
    dtype = op.DataType.FLOAT32
    if last in tuple(op.DataType):
        line, dtype = head, op.DataType(last)
    if line.strip() == "scalar":
        return DeclaredType((), dtype)
    dims: list[op.Dim | Side] = []
    for part in (p.strip() for p in line.split("x")):
        if part.isascii() and part.isdigit() and 0 < len(part) < 10 and int(part) > 0:
            dims.append(int(part))
        elif part == "N":
            dims.append(op.Symbol(part))
        elif side := _SIDE.fullmatch(part):
            number_of = int(side[3] or 1)
            dims.append(Side(2 if side[1] == "H" else 3, *((number_of, 1) if side[2] == "*" else (1, number_of))))
        else:
            raise CodeError(
                tr("line {number} of the shapes: '{part}' is not a dimension", number=number, part=part[:40]), rule
            )
    return DeclaredType(tuple(dims), dtype)
