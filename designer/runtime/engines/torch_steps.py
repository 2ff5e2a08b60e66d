"""Each step of a torch program by itself, on random tensors. Shapes come from torch's device "meta", which computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from designer.operators.torch_program import Attribute, Program, TorchStep, locals_of
from designer.runtime.engine_api import PreparedStep, SingleStep
from designer.runtime.engines.torch_engine import Evaluate, Interpreter, Values

if TYPE_CHECKING:
    import torch

Mode = Callable[[], AbstractContextManager[Any]]


class _ReadValues:
    """The values of locals by slot. `read` has those that were read."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.read: dict[int, Any] = {}

    def __getitem__(self, slot: int) -> Any:
        value = self.read[slot] = self._values[slot]
        return value

    def __setitem__(self, slot: int, value: Any) -> None:
        self._values[slot] = value


def single_steps(
    program: Program, interpreter: Interpreter, shapes: torch.nn.Module, inputs: Sequence[torch.Tensor], mode: Mode
) -> list[SingleStep]:
    """The steps of `interpreter` for tensors like `inputs`. `shapes` is its module on the device "meta"; steps run in `mode`."""
    attributes: dict[str, list[Attribute]] = {}
    for attribute in program.attributes:
        attributes.setdefault(attribute.layer, []).append(attribute)
    values = _ReadValues([*(tensor.to("meta") for tensor in inputs), *[None] * (interpreter.count - len(inputs))])
    found = []
    with mode():
        steps = zip(program.steps, interpreter.steps, Interpreter(shapes, program).steps, strict=True)
        for step, (_, evaluate, _, layer), (target, shape_of, _, _) in steps:
            values.read = {}
            values[target] = made = shape_of(cast(Values, values))
            read = values.read
            found.append(
                SingleStep(
                    layers=(layer,),
                    what="torch",
                    key=_key(step, attributes.get(layer, ()), read),
                    bytes=_bytes([*read.values(), made]),
                    prepare=partial(_prepared, evaluate, read, interpreter.count, mode),
                )
            )
    return found


def _key(step: TorchStep, own: Sequence[Attribute], read: Mapping[int, Any]) -> str:
    """The expression with numbers for names, the modules and parameters of its layer, and the types of what it reads."""
    text = repr(step.value)
    names = dict.fromkeys((*locals_of(step.value), *(attribute.name for attribute in own)))
    for number, name in enumerate(names):
        text = text.replace(repr(name), f"#{number}")
    return f"{text} {[attribute.content for attribute in own]} {[_type(value) for value in read.values()]}"


def _prepared(evaluate: Evaluate, read: Mapping[int, Any], count: int, mode: Mode) -> PreparedStep:
    values: Values = [None] * count
    for slot, value in read.items():
        values[slot] = random_like(value)

    def run() -> float:
        with mode():
            began = perf_counter()
            evaluate(values)
            return perf_counter() - began

    return PreparedStep(run, lambda: [value.sum() for value in values if hasattr(value, "sum")])


def random_like(value: Any) -> Any:
    """Random numbers in the shape and strides of a tensor without data; zeros for integers.

    The strides of axes of size 1 count too: by them torch decides whether a matrix product of several axes is one product.
    """
    import torch

    if isinstance(value, tuple | list):
        return [random_like(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    span = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True) if size > 1)
    make = torch.rand if value.is_floating_point() else torch.zeros
    return make(span, dtype=value.dtype).as_strided(value.shape, value.stride())


def _type(value: Any) -> str:
    if isinstance(value, tuple | list):
        return str([_type(item) for item in value])
    return f"{value.dtype} {tuple(value.shape)} {value.stride()}" if hasattr(value, "stride") else repr(value)


def _bytes(values: Sequence[Any]) -> int:
    return sum(_bytes(value) if isinstance(value, tuple | list) else getattr(value, "nbytes", 0) for value in values)
