"""Recipes: what they compute, what they refuse, and that nothing in them is ever run as Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_layers.recipe import MAX_LENGTH, RecipeError, parse

A = np.array([[0.25, -1.0], [2.0, 0.0]], np.float32)
B = np.array([[1.0, 0.5], [-0.5, 0.0]], np.float32)
ALPHA = 0.25


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * (1 - alpha) + b * alpha", A * 0.75 + B * 0.25),
        ("alpha * (a - b)", 0.25 * (A - B)),
        ("  -a + +b ", B - A),
        ("abs(a - b) * 2", np.abs(A - B) * 2),
        ("min(a, b)", np.minimum(A, B)),
        ("clip(a, 0, 1)", np.clip(A, 0, 1)),
        ("where(a > b, a, 0)", np.where(A > B, A, 0)),
        ("where(a, 7, b)", np.where(A != 0, 7, B)),  # whatever is not 0 counts as true: 0.25, -1 and 2
        ("(a >= 0) * 1", (A >= 0).astype(np.float32)),
        ("a ** 2", A**2),
        ("clip(a, b, alpha)", np.clip(A, B, 0.25)),
        ("3", np.float32(3)),
    ],
)
def test_value(text: str, expected: np.ndarray) -> None:
    result = parse(text)(a=A, b=B, alpha=ALPHA)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_division_by_zero_is_silent_and_ieee() -> None:
    result = parse("a / b")(a=A, b=B, alpha=0.0)
    assert np.isnan(result[1, 1])


@pytest.mark.parametrize(
    ("text", "column", "word"),
    [
        ("", None, "empty"),
        ("a +", 4, "not a formula"),
        ("a\0b", None, "not a formula"),
        ("  a b", 5, "not a formula"),
        ("a ) b", 3, "not a formula"),
        ("a + q", 5, "'q'"),
        ("__import__('os').system('true')", 1, "function"),
        ("a.shape", 1, "dots"),
        ("a[0]", 1, "square brackets"),
        ("(lambda: a)()", 1, "plain functions"),
        ("a if b else a", 1, "if ... else"),
        ("a and b", 1, "and / or"),
        ("max(a)", 1, "takes 2 values"),
        ("where(a, b)", 1, "takes 3 values"),
        ("clip(a, b)", 1, "takes 3 values"),
        ("sign(a, b)", 1, "takes 1 value"),
        ("max(a, b, alpha=1)", 1, "takes 2 values"),
        ("max(*a)", 1, "takes 2 values"),
        ("a + 'text'", 5, "numbers"),
        ("a + True", 5, "numbers"),
        ("a < b < a", 1, "one comparison"),
        ("a + 1e999", 5, "too large"),
        ("a + " + "9" * 500, 5, "too large"),
        ("-" * 60 + "a", 34, "levels deep"),
        ("(" * 400 + "a" + ")" * 400, None, ""),
        ("a\n+ b", None, "one line"),
        ("a\0", None, ""),
        ("a" * (MAX_LENGTH + 1), None, "characters"),
        ("f'{a}'", 1, "text"),
        ("(a := b)", 2, "assignment"),
        ("[x for x in a]", 1, "not allowed"),
        ("a @ b", 1, "this operator"),
        ("not a", 1, "this sign"),
    ],
)
def test_refusal_names_column_and_remedy(text: str, column: int | None, word: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(text)
    assert word in str(caught.value)
    assert caught.value.remedy
    assert str(caught.value).startswith("the recipe")
    if column is not None:
        assert caught.value.column == column
        assert f"column {column}" in str(caught.value)


def test_texts_and_numbers_up_to_the_limits_are_accepted() -> None:
    assert parse("1" + " " * (MAX_LENGTH - 1))(a=A, b=B, alpha=0.0) == 1
    assert np.isfinite(parse("3.4028234e38")(a=A, b=B, alpha=0.0))
    with pytest.raises(RecipeError):
        parse("3.4028235e38")


def test_columns_count_characters_not_bytes() -> None:
    with pytest.raises(RecipeError) as caught:
        parse("a + é")
    assert caught.value.column == 5
    with pytest.raises(RecipeError) as caught:
        parse("  é + a")
    assert caught.value.column == 3
    # wide letters of an input method are read as a and b; each has three bytes
    for text, column in (
        ("ａ + ｂ * foo", 9),
        (" min(ａ, ｂ, 3)", 2),
        ("ａ + (ｂ // 2)", 6),
        ("ａ * ａ ** ａ - ２", 14),
    ):
        with pytest.raises(RecipeError) as caught:
            parse(text)
        assert caught.value.column == column, text


def test_more_names_can_be_allowed() -> None:
    assert parse("y + y", ("x", "y")).names == {"y"}
    assert parse("x + y", ("x", "y"))(x=1.0, y=2.0) == 3
    with pytest.raises(RecipeError, match="'a' is not known"):
        parse("a", ("x", "y"))


@settings(max_examples=300, database=None, derandomize=True, deadline=None)
@given(st.text(alphabet="ab alph()+-*/%<>=.,0123456789e'\"[]{}:_é\\\t", max_size=60))
def test_any_text_gives_a_value_or_a_refusal(text: str) -> None:
    try:
        recipe = parse(text)
    except RecipeError:
        return
    recipe(a=A, b=B, alpha=ALPHA)
