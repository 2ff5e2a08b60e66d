"""A layer that a person writes: a torch module whose source is in the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import floor, prod
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
    """Run a torch module of your own. Its source is part of the document and of the generated project.

    The source is shown everywhere and only read, until you agree to this very text: then the engine runs it, in a process of
    its own. Another text is asked for again. What you agreed to is remembered on your machine, never in the document. ONNX
    cannot hold such a layer: torch runs it, and the project for PyTorch has it word for word.
    """

    source: str = op.param(
        default=SOURCE,
        multiline=True,
        doc="Python that defines the class; torch, nn and F are there without an import.",
    )
    class_name: str = op.param(default="Custom", doc="Which class of the source is the layer.")
    arguments: str = op.param(default="", doc="What the class is made with, as plain values: 3, 0.5, features=8.")
    input_count: int = op.param(default=1, min=1, max=16, doc="How many tensors forward takes.")
    result: str = op.param(
        default="same",
        choices=("same", "scaled", "shape"),
        doc="What the result looks like: the first input, an image of another size, or a shape of its own.",
    )
    channels: int = op.param(
        default=0, min=0, max=65536, visible_when=("result", "scaled"), doc="Channels of the result; 0: the input's."
    )
    scale: float = op.param(
        default=1.0,
        min=0.001,
        max=64.0,
        visible_when=("result", "scaled"),
        doc="Height and width of the result as a multiple of the input's, rounded down.",
    )
    shape: tuple[int, ...] = op.param(
        default=(1,), min=1, max=1048576, visible_when=("result", "shape"), doc="Shape of the result without the batch."
    )
    tensors: str = op.param(
        default="",
        multiline=True,
        doc="Tensors that the weights bring, one a line: name in the state dict and shape, as in conv.weight 8x3x3x3.",
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
        "random": "what a person writes is not declared; results are checked when it runs",
        "flops": "the work of a person's code is not known",
        "onnx": "ONNX cannot hold Python; torch runs the layer",
        "onnx_random": "ONNX cannot hold Python; torch runs the layer",
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
                    tr("the shape of the result is empty"), remedy=tr("write it without the batch, as in 8,16,16")
                )
            return op.TensorType((op.BATCH, *self.shape))
        known = first.image()
        height, width = floor(known.h * self.scale), floor(known.w * self.scale)
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
        """What the user agrees to before the layer runs."""
        return agreement_text(self.source, self.class_name, *arguments(self.arguments))

    def summary(self) -> str:
        return self.class_name[:40]


@lru_cache(maxsize=256)
def declared(text: str) -> tuple[op.Weight, ...]:
    """The weights of lines such as `conv.weight 8x3x3x3`; a third word `buffer` says that it is not learned."""
    rule = "write one a line: name and shape, as in conv.weight 8x3x3x3"
    found: dict[str, op.Weight] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        name, sizes, kind = words[0], words[1] if len(words) > 1 else "", words[2:]
        dims = sizes.split("x") if sizes else []
        if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
            raise CodeError(
                tr("line {number} of the tensors: '{name}' is no name of a state dict", number=number, name=name[:60]),
                rule,
            )
        if not all(d.isdigit() and d.isascii() and 0 < len(d) < 10 and int(d) > 0 for d in dims):
            raise CodeError(
                tr("line {number} of the tensors: '{sizes}' is no shape", number=number, sizes=sizes[:60]), rule
            )
        if kind not in ([], ["buffer"]):
            raise CodeError(
                tr("line {number} of the tensors: '{kind}' is not understood", number=number, kind=" ".join(kind)[:60]),
                rule,
            )
        if name in found:
            raise CodeError(
                tr("line {number} of the tensors names '{name}' again", number=number, name=name),
                tr("remove one of the lines"),
            )
        shape = tuple(int(d) for d in dims)
        init = "kaiming" if len(shape) > 1 else "zeros" if name.endswith(("bias", "mean")) else "ones"
        found[name] = op.Weight(name, shape, name, init, prod(shape[1:]), trainable=not kind)
    return tuple(found.values())
