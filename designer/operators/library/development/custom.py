"""Custom layers: torch modules whose source is in the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import ClassVar

from designer.operators import api as op
from designer.operators.code_text import CodeError, agreement_text, arguments, check_class
from designer.texts import tr

SOURCE = '''class Custom(nn.Module):
    """Say what the layer does."""

    def __init__(self, gain=1.0):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return x * self.gain
'''
SCALED = """class Halve(nn.Module):
    def __init__(self, channels, features):
        super().__init__()
        self.conv = nn.Conv2d(channels, features, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x)
"""


class Custom(
    op.Operator,
    type="custom",
    title="Custom module",
    category=op.Category.DEVELOPMENT,
    synonyms=("own", "python", "torch", "nn.module", "code", "script"),
):
    """Run a custom torch module. Its source is part of the document and of the generated project.

    The source is only displayed and parsed until you agree to exactly this text; then the engine runs it in a separate
    process. A changed text requires your consent again. Consent is stored on your computer, never in the document. ONNX
    does not support such layers: torch runs them, and the PyTorch project includes them unchanged.
    """

    source: str = op.param(
        default=SOURCE,
        multiline=True,
        doc="Python source of the class; torch, nn and F are available without an import.",
    )
    class_name: str = op.param(default="Custom", doc="Name of the class in the source.")
    arguments: str = op.param(default="", doc="Constructor arguments as plain values: 3, 0.5, features=8.")
    input_count: int = op.param(default=1, min=1, max=16, doc="Number of tensors that forward takes.")
    result: str = op.param(
        default="same",
        choices=("same", "scaled", "shape"),
        doc="Shape of the result: like the first input, a scaled image, or an explicit shape.",
    )
    channels: int = op.param(
        default=0,
        min=0,
        max=65536,
        visible_when=("result", "scaled"),
        doc="Channels of the result; 0: those of the input.",
    )
    scale: float = op.param(
        default=1.0,
        min=0.001,
        max=64.0,
        visible_when=("result", "scaled"),
        doc="Scale of height and width from input to result, rounded down.",
    )
    shape: tuple[int, ...] = op.param(
        default=(1,), min=1, max=1048576, visible_when=("result", "shape"), doc="Shape of the result without the batch."
    )
    tensors: str = op.param(
        default="",
        multiline=True,
        doc="Tensors of the weights, one per line: name in the state dict and shape, as in conv.weight 8x3x3x3.",
    )
    examples = (
        op.Example((op.image(),), {"arguments": "gain=0.5"}),
        op.Example(
            (op.image(3, 8, 6),),
            {
                "source": SCALED,
                "class_name": "Halve",
                "arguments": "3, features=5",
                "result": "scaled",
                "channels": 5,
                "scale": 0.5,
                "tensors": "conv.weight 5x3x3x3\nconv.bias 5",
            },
            "with weights",
        ),
    )
    exceptions: ClassVar[Mapping[str, str]] = {
        "random": "the source is not declared; results are checked at run time",
        "flops": "the cost of custom code is not known",
        "onnx": "ONNX does not support Python; torch runs the layer",
        "onnx_random": "ONNX does not support Python; torch runs the layer",
    }

    def input_ports(self) -> tuple[op.Port, ...]:
        if self.input_count == 1:
            return (op.Port("x", dtypes=op.FLOATS),)
        return tuple(op.Port(f"x{number + 1}", dtypes=op.FLOATS) for number in range(self.input_count))

    def faults(self) -> Iterable[op.Fault]:
        for parameter, look in (
            ("source", lambda: check_class(self.source, self.class_name)),
            ("arguments", lambda: arguments(self.arguments)),
            ("tensors", lambda: declared(self.tensors)),
        ):
            try:
                look()
            except CodeError as error:
                yield op.Fault(parameter, str(error), error.remedy)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        first = inputs[0]
        if self.result == "same":
            return first
        if self.result == "shape":
            if not self.shape:
                raise op.ShapeError(
                    tr("the shape of the result is empty"), remedy=tr("enter it without the batch, as in 8,16,16")
                )
            return op.TensorType((op.BATCH, *self.shape))
        known = first.image()
        scale = Fraction(str(self.scale))  # of the decimal number, so that 0.1 of 10 is 1
        height, width = (size * scale.numerator // scale.denominator for size in (known.h, known.w))
        return first.with_shape(known.n, self.channels or known.c, height, width)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        positional, named = arguments(self.arguments)
        reads = tuple(op.TorchInput(index) for index in range(len(inputs)))
        return op.TorchSource(
            self.class_name,
            named,
            reads,
            text=self.source,
            positional=positional,
            outputs=(self.infer(inputs),),
        )

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        return declared(self.tensors)

    @property
    def agreement(self) -> str:
        """The text that the user must agree to before the layer runs."""
        return agreement_text(self.source, self.class_name, *arguments(self.arguments))

    def summary(self) -> str:
        return self.class_name[:40]


@lru_cache(maxsize=256)
def declared(text: str) -> tuple[op.Weight, ...]:
    """Parse lines such as `conv.weight 8x3x3x3`; a third word `buffer` marks a tensor that is not learned."""
    rule = "enter one per line: name and shape, as in conv.weight 8x3x3x3"
    found: dict[str, op.Weight] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        name, sizes, kind = words[0], words[1] if len(words) > 1 else "", words[2:]
        dims = sizes.split("x") if sizes else []
        if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
            raise CodeError(
                tr(
                    "line {number} of the tensors: '{name}' is not a valid name of a state dict",
                    number=number,
                    name=name[:60],
                ),
                rule,
            )
        if not all(d.isdigit() and d.isascii() and 0 < len(d) < 10 and int(d) > 0 for d in dims):
            raise CodeError(
                tr("line {number} of the tensors: '{sizes}' is not a shape", number=number, sizes=sizes[:60]), rule
            )
        if kind not in ([], ["buffer"]):
            raise CodeError(
                tr("line {number} of the tensors: '{kind}' is not valid", number=number, kind=" ".join(kind)[:60]),
                rule,
            )
        if name in found:
            raise CodeError(
                tr("line {number} of the tensors repeats '{name}'", number=number, name=name),
                tr("remove one of the lines"),
            )
        shape = tuple(int(d) for d in dims)
        init = "kaiming" if len(shape) > 1 else "zeros" if name.endswith(("bias", "mean")) else "ones"
        found[name] = op.Weight(name, shape, name, init, prod(shape[1:]), trainable=not kind)
    return tuple(found.values())
