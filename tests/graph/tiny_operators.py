"""A handful of operators for tests of the graph: they replace the library, which these tests do not need."""

from __future__ import annotations

from collections.abc import Sequence

from designer.graph.types import ShapeError, Size3D, TensorType
from designer.operators.api import Activation, Operator, Port, Symbol, param
from designer.operators.library.development.template import TemplateInstance
from designer.operators.library.development.template_input import TemplateInput
from designer.operators.library.development.template_output import TemplateOutput
from designer.operators.registry import Registry


class TinyInput(Operator, type="tiny_input"):
    inputs = ()
    dims: Size3D = param(default=Size3D(8, 8, 3), min=1)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType((Symbol("N"), self.dims.channels, self.dims.height, self.dims.width))


class TinyConvolution(Operator, type="tiny_convolution"):
    inputs = (Port("x", rank=4),)
    features: int = param(default=4, min=1, max=1000)
    kernel: int = param(default=3, min=1)
    valid: bool = param(default=False)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        image = inputs[0].image()
        lost = self.kernel - 1 if self.valid else 0
        if lost >= min(image.h, image.w):
            raise ShapeError(f"kernel {self.kernel} does not fit an input of {image.w}x{image.h}", port="x")
        return TensorType((image.n, self.features, image.h - lost, image.w - lost))


class TinyJoin(Operator, type="tiny_join"):
    inputs = (Port("inputs", rank=4, variadic=True),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        first = inputs[0].image()
        if any((t.image().h, t.image().w) != (first.h, first.w) for t in inputs):
            raise ShapeError("all inputs need the same height and width")
        return inputs[0].with_dim(1, sum(t.dim(1) for t in inputs))


class TinyAdd(Operator, type="tiny_add"):
    inputs = (Port("a"), Port("b"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].shape != inputs[1].shape:
            raise ShapeError(f"{inputs[0]} and {inputs[1]} differ", port="b")
        return inputs[0]


class TinySplit(Operator, type="tiny_split"):
    outputs = (Port("y0"), Port("y1"))

    def infer(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        channels = inputs[0].dim(1)
        return inputs[0].with_dim(1, channels - channels // 2), inputs[0].with_dim(1, channels // 2)


class TinyFlatten(Operator, type="tiny_flatten"):
    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        image = inputs[0].image()
        return TensorType((image.n, image.c * image.h * image.w))


class TinyRelu(Activation, type="tiny_relu"):
    alpha: float = param(default=0.0)


class TinyHalf(Activation, type="tiny_half"):
    """Halves the channels, so that it changes the type."""

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0].dim(1) % 2:
            raise ShapeError(f"an even number of channels is needed, not {inputs[0].dim(1)}")
        return inputs[0].with_dim(1, inputs[0].dim(1) // 2)


def tiny_registry() -> Registry:
    registry = Registry()
    declared: tuple[type[Operator], ...] = (
        TinyInput,
        TinyConvolution,
        TinyJoin,
        TinyAdd,
        TinySplit,
        TinyFlatten,
        TinyRelu,
        TinyHalf,
        TemplateInstance,
        TemplateInput,
        TemplateOutput,
    )
    for cls in declared:
        registry.register(cls)
    return registry
