"""What every operator declares or refuses if many of its parameters and sizes differ from those of an example, as recorded.

`test_recorded_parameter_pairs.py` changes two parameters of an example; a rule for three of them, for other ranks or for sizes that are
equal to a limit shows here. All that is declared is a digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from recorded import check_lines
from test_recorded_declarations import KINDS, declared, digest
from test_recorded_refusals import refusal

from designer.graph.types import Size2D, Size3D, TensorType
from designer.operators.api import Operator, Role
from designer.operators.params import ParamError, Parameter

TRIES, ACCEPTED, IN_LINE = 120, 24, 6


def other_value(draw: Random, parameter: Parameter, value: Any, rank: int) -> Any:
    """A value of a parameter, near its bounds or small; it can be out of bounds."""
    low = int(parameter.info.min) if parameter.info.min is not None else -3
    small = [max(low, 1), max(low, 1) + 1, 2, 3, 4]
    match parameter.kind:
        case "bool":
            return draw.random() < 0.5
        case "choice":
            return draw.choice(parameter.info.choices)
        case "int":
            return draw.choice([low, value, value + 1, -1, -2, *small])
        case "float":
            return draw.choice([value, 0.5, 0.25, 2.0, 1.0, 0.0])
        case "size2d" | "size2d?":
            return Size2D(draw.choice(small), draw.choice(small))
        case "size3d":
            return Size3D(draw.choice(small), draw.choice(small), draw.choice(small))
        case "ints":
            length = draw.choice([rank - 2, rank - 2, rank, rank, len(value), len(value), 0, 1, 2])
            return tuple(draw.choice([low, low + 1, 0, 1, 2, 3, -1]) for _ in range(max(length, 0)))
        case "floats":
            return tuple(draw.choice([0.5, 1.0, 2.0]) for _ in range(draw.choice([len(value), len(value), 1, 3])))
    return value


def other_inputs(draw: Random, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """The inputs with some sizes exchanged for others, everywhere where they are."""
    found = list(inputs)
    for size in sorted({dim for kind in inputs for dim in kind.shape if isinstance(dim, int)}):
        if draw.random() < 0.4:
            new = draw.choice([1, 2, size + 1, size + 2, 2 * size, 3 * size])
            for place, kind in enumerate(found):
                if draw.random() < 0.9:
                    found[place] = kind.with_shape(*(new if dim == size else dim for dim in kind.shape))
    if len(found) > 1 and draw.random() < 0.1:
        found.append(found[-1])
    if len(found) > 1 and draw.random() < 0.1:
        found.pop()
    return tuple(found)


def cases(cls: type[Operator]) -> Iterator[str]:
    """What is declared or refused, until enough has been accepted."""
    draw = Random(cls.type)
    accepted = 0
    for _ in range(TRIES):
        example = draw.choice(cls.examples)
        inputs = other_inputs(draw, example.inputs)
        params = dict(example.params)
        often = draw.choice([0.15, 0.3, 0.6])
        for parameter in cls.parameters:
            if draw.random() > often:
                continue
            value = params.get(parameter.name, parameter.default)
            new = other_value(draw, parameter, value, inputs[0].rank if inputs else 2)
            try:
                parameter.check(new)
            except ParamError:
                continue
            params[parameter.name] = new
        found = declared(cls, params, inputs)
        found.pop("values", "")
        yield "; ".join(f"{name} {text}" for name, text in found.items()) or refusal(cls, params, inputs)
        accepted += bool(found)
        if accepted == ACCEPTED:
            return


def test_many_parameters_and_sizes_that_differ_from_an_example() -> None:
    lines = []
    for cls in KINDS.values():
        if cls.role is Role.ANALYSIS or not cls.examples:
            continue
        found = list(cases(cls))
        parts = [found[start : start + IN_LINE] for start in range(0, len(found), IN_LINE)]
        lines.append(f"{cls.type} {len(found)}: {' '.join(digest('|'.join(part)) for part in parts)}")
    check_lines("operators/random_declarations.txt", lines)
