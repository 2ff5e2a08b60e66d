"""Symbolic sizes compute as the integers that they stand for, and texts of parameters are read by their rules."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from designer.graph.types import Size2D, Size3D
from designer.operators.code_text import (
    MAX_LITERALS,
    MAX_SOURCE,
    CodeError,
    agreement_text,
    arguments,
    check_class,
    literal,
    parse_code,
)
from designer.operators.params import ParamError, _ints
from designer.operators.registry import load
from designer.operators.symbolic_size import RefinePeriod, Region, SymbolicSize

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "gt", "ge", "eq", "ne")
}


def whole(value: Any) -> Any:
    return int(value) if isinstance(value, SymbolicSize) else value


def result(function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    try:
        return whole(function(one, other))
    except ZeroDivisionError:
        return ZeroDivisionError


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [0, 1, 2, 3, 7, 14, 20, -4, 2.5, 14.0])
def test_arithmetic_with_numbers(name: str, other: float) -> None:
    for period, first, step in ((1, 0, 0), (1, 2, 12), (3, 2, 4), (12, 2, 1), (7, 0, 2)):
        number = period * step + first
        for reflected in (False, True):
            size: Any = Region((step,)).size(0, period, first)
            pair, plain = ((other, size), (other, number)) if reflected else ((size, other), (number, other))
            try:
                found = result(BINARY[name], *pair)
            except RefinePeriod:
                assert name in ("floordiv", "mod")
                continue
            assert found == result(BINARY[name], *plain), (period, first, step, reflected)


@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_with_another_size(name: str) -> None:
    for one, two in ((0, 0), (3, 5), (12, 4), (5, 15), (1, 3)):
        region = Region((one, two))
        sizes: tuple[Any, Any] = (region.size(0, 1, 0), region.size(1, 1, 0))
        assert result(BINARY[name], *sizes) == result(BINARY[name], one, two)
        double = Region((one + 1,)).size(0, 2, 0)
        assert result(BINARY[name], double, double) == result(BINARY[name], 2 * one + 2, 2 * one + 2)


def test_signs_powers_and_truth() -> None:
    for number in (0, 1, 6):
        size: Any = Region((number,)).size(0, 1, 0)
        shifted = size - 4
        assert whole(abs(shifted)) == abs(number - 4)
        assert whole(-shifted) == 4 - number
        assert whole(+size) == number
        assert bool(size) is bool(number)
        assert size**2 == number**2
        assert (size != "text") is True
        with pytest.raises(TypeError):
            _ = size < "text"


def test_a_division_that_is_not_exact_asks_for_the_period_that_makes_it_so() -> None:
    for period, divisor, factor in ((1, 8, 8), (6, 4, 2), (6, 9, 3), (1, -3, 3)):
        size: Any = Region((5,)).size(0, period, 1)
        with pytest.raises(RefinePeriod) as caught:
            _ = size // divisor
        assert (caught.value.variable, caught.value.factor) == (0, factor)


def test_sources_and_their_limits() -> None:
    line = "class A: pass\n"
    assert parse_code(line + "#" * (MAX_SOURCE - len(line))).classes == ("A",)
    with pytest.raises(CodeError, match="the source has 200001 characters, the limit is 200000"):
        parse_code("#" * (MAX_SOURCE + 1))
    with pytest.raises(CodeError, match="line 2 of the source: "):
        parse_code("a = 1\nclass (")
    with pytest.raises(CodeError, match="line 3 of the source imports from __future__"):
        parse_code("\n\nfrom __future__ import annotations")
    code = parse_code("import torch\nfrom a import b\nx, (y, z) = 1, (2, 3)\nif x:\n    w = 1\nasync def f(): v = 1\n")
    assert (code.classes, code.names) == ((), {"x", "y", "z", "w", "f"})
    check_class("class A: pass\nclass B: pass", "B")
    other = (
        "class A: pass\ndef C(): pass",
        "import C\nclass A: pass",
        "class A: pass\nC = A",
        "def f():\n  class C: pass\nclass A: pass",
    )
    cases = (("class A: pass\nclass B: pass", "A, B"), ("x = 1", "none"), *((text, "A") for text in other))
    for text, known in cases:
        with pytest.raises(CodeError) as caught:
            check_class(text, "C")
        assert str(caught.value) == f"the source defines no class 'C' (it defines: {known})"


def test_values_and_their_limits() -> None:
    long = "1," * (MAX_LITERALS // 2)
    assert len(arguments(long)[0]) == MAX_LITERALS // 2
    with pytest.raises(CodeError, match="the arguments have 10001 characters, the limit is 10000"):
        arguments(long + "1")
    assert literal(f"'{'x' * (MAX_LITERALS - 2)}'") == "x" * (MAX_LITERALS - 2)
    with pytest.raises(CodeError, match="the value has 10001 characters"):
        literal(f"'{'x' * (MAX_LITERALS - 1)}'")
    assert literal(" +3 ") == 3
    assert literal("-2.5") == -2.5
    assert arguments("a=-1, b=(True,)") == ((), {"a": -1, "b": (True,)})
    with pytest.raises(CodeError, match=r"contain \*\*"):
        arguments("**x")
    for text in ("1)(2", "1).x(", "*[1]"):
        with pytest.raises(CodeError):
            arguments(text)
    text = agreement_text("source", "Gain", (1, "a\nb"), {"on": True})
    assert text == "source\n\n# The layer is made by 'Gain' with (1, 'a\\nb', on=True)"


@pytest.mark.parametrize(
    ("type_name", "parameter", "text", "value"),
    [
        ("convolution", "features", "+7", 7),
        ("convolution", "features", "7.0", None),
        ("convolution", "features", "٣", None),
        ("convolution", "features", "1" * 19, None),
        ("convolution", "kernel", "5x3", Size2D(5, 3)),
        ("convolution", "kernel", "5", None),
        ("convolution", "kernel", "5x3x1", None),
        ("convolution", "apply_bias", "false", False),
        ("convolution", "apply_bias", "False", None),
        ("input", "dims", "16x12x3", Size3D(16, 12, 3)),
        ("permute", "axes", "0,3,1,2", (0, 3, 1, 2)),
        ("permute", "axes", "0,,1", None),
        ("dropout", "probability", ".25", 0.25),
        ("dropout", "probability", "2.5e-1", 0.25),
        ("dropout", "probability", "0,25", None),
        ("dropout", "probability", "nan", None),
        ("dropout", "probability", "inf", None),
        ("upsample", "fixed_upscale", "", None),
        ("upsample", "fixed_upscale", "5x3", Size2D(5, 3)),
    ],
)
def test_texts_of_parameters(type_name: str, parameter: str, text: str, value: object) -> None:
    from designer.graph.model import Layer

    registry = load(entry_points=False)
    read = registry.read(Layer("x", type_name, params={parameter: text}))
    if value is None and text:
        assert [d.code for d in read.diagnostics] == ["bad-parameter"]
    else:
        assert read.diagnostics == ()
        assert read.operator is not None
        assert getattr(read.operator, parameter) == value


def test_the_most_digits_of_a_whole_number() -> None:
    assert _ints("9" * 18) == (10**18 - 1,)
    assert _ints(" ") == ()
    with pytest.raises(ParamError, match="at most 18 digits"):
        _ints("1," + "9" * 19)
