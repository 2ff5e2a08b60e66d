"""Colors of all spaces, also dark and saturated ones: the formulas give what the standards define.

sRGB: IEC 61966-2-1. L*a*b*: CIE 15, with the matrix that follows from the primaries of sRGB and the white D65. Y'CbCr: full range of
BT.601. HSV: the module colorsys of Python.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from designer.operators.library.data._color import SPACES, channels_of, from_linear, from_rgb, to_linear, to_rgb

Array = NDArray[np.float64]


class NumpyFormula:
    """Computes a formula with numpy in float64."""

    def add(self, a: Any, b: Any) -> Array:
        return np.add(a, b)

    def sub(self, a: Any, b: Any) -> Array:
        return np.subtract(a, b)

    def mul(self, a: Any, b: Any) -> Array:
        return np.multiply(a, b)

    def div(self, a: Any, b: Any) -> Array:
        return np.divide(a, b)

    def power(self, a: Any, exponent: float) -> Array:
        return np.power(a, exponent)

    def maximum(self, a: Any, b: Any) -> Array:
        return np.maximum(a, b)

    def minimum(self, a: Any, b: Any) -> Array:
        return np.minimum(a, b)

    def less(self, a: Any, b: Any) -> Any:
        return np.less(a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return np.equal(a, b)

    def where(self, condition: Any, a: Any, b: Any) -> Array:
        return np.where(condition, a, b)

    def exp(self, a: Any) -> Array:
        return np.exp(a)

    def log(self, a: Any) -> Array:
        return np.log(a)

    def floor(self, a: Any) -> Array:
        return np.floor(a)

    def channel(self, a: Any, index: int) -> Array:
        return np.asarray(a[:, index : index + 1])

    def channels(self, parts: Sequence[Any]) -> Array:
        return np.concatenate(parts, axis=1)


F = NumpyFormula()
LEVELS = (0.0, 1e-5, 5e-4, 0.002, 0.0031, 0.0032, 0.01, 0.04, 0.041, 0.09, 0.2, 0.5, 0.8, 1.0)
COLORS = np.array(list(product(LEVELS, repeat=3)))


def image(colors: Array) -> Array:
    """Colors, one a row, as an image of one column."""
    return colors.T[None, :, :, None]


def colors(image: Array) -> Array:
    return image[0, :, :, 0].T


def linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def primaries() -> Array:
    """RGB to XYZ, from the chromaticities of red, green and blue and the white."""
    white = np.array([0.95047, 1.0, 1.08883])
    columns = np.array([[x / y, 1.0, (1 - x - y) / y] for x, y in ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))]).T
    return columns * np.linalg.solve(columns, white)


def lab(color: Array) -> tuple[float, float, float]:
    xyz = primaries() @ np.array([linear(value) for value in color]) / (0.95047, 1.0, 1.08883)
    fx, fy, fz = (t ** (1 / 3) if t > (6 / 29) ** 3 else t * (29 / 6) ** 2 / 3 + 4 / 29 for t in xyz)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def luma(color: Array) -> float:
    return float(0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2])


REFERENCES = {
    "rgb": tuple,
    "bgr": lambda c: (c[2], c[1], c[0]),
    "gray": lambda c: (luma(c),),
    "ycbcr": lambda c: (luma(c), (c[2] - luma(c)) / 1.772 + 0.5, (c[0] - luma(c)) / 1.402 + 0.5),
    "hsv": lambda c: colorsys.rgb_to_hsv(*c),
    "lab": lab,
    "linear_rgb": lambda c: tuple(map(linear, c)),
}


def reference(space: str) -> Array:
    return np.array([REFERENCES[space](color) for color in COLORS])


@pytest.mark.parametrize("space", SPACES)
def test_a_color_in_another_space_is_that_of_the_standard(space: str) -> None:
    found = colors(from_rgb(F, image(COLORS), space))
    expected = reference(space)
    assert found.shape == expected.shape == (len(COLORS), channels_of(space))
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol={"lab": 2e-4}.get(space, 1e-8))


@pytest.mark.parametrize("space", [space for space in SPACES if space != "gray"])
def test_a_color_comes_back_from_another_space(space: str) -> None:
    found = colors(to_rgb(F, image(reference(space)), space))
    np.testing.assert_allclose(found, COLORS, rtol=2e-5, atol=2e-6)


def test_a_gray_value_is_that_of_all_channels() -> None:
    found = colors(to_rgb(F, image(COLORS[:, :1]), "gray"))
    np.testing.assert_array_equal(found, COLORS[:, [0, 0, 0]])


def test_dark_colors_are_on_the_line_below_the_cube_root() -> None:
    """L* of 0.15 % of the white is 1.4 on the line; the cube root would give less than 0."""
    dark = np.full((1, 3), 0.02)
    ((lightness, a, b),) = colors(from_rgb(F, image(dark), "lab"))
    assert lightness == pytest.approx(903.2963 * 0.02 / 12.92, rel=1e-5)
    assert (a, b) == pytest.approx((0, 0), abs=1e-3)
    ((lightness, _, _),) = colors(from_rgb(F, image(np.zeros((1, 3))), "lab"))
    assert lightness == pytest.approx(0, abs=1e-9)


def test_values_outside_of_the_range_stay_on_the_straight_parts() -> None:
    values = np.array([-0.5, -0.001, 1.5])
    found = to_linear(F, image(np.repeat(values[:, None], 3, 1)))
    np.testing.assert_allclose(found[0, 0, :, 0], [-0.5 / 12.92, -0.001 / 12.92, linear(1.5)], rtol=1e-12)
    back = from_linear(F, found)
    np.testing.assert_allclose(back[0, 0, :, 0], values, rtol=1e-9)


def test_gray_colors_have_no_hue_and_no_saturation() -> None:
    grays = np.repeat(np.array(LEVELS)[:, None], 3, 1)
    found = colors(from_rgb(F, image(grays), "hsv"))
    np.testing.assert_array_equal(found, np.stack([0 * grays[:, 0], 0 * grays[:, 0], grays[:, 0]], 1))


def test_a_hue_outside_of_the_circle_is_the_same_color() -> None:
    hsv = np.array([(hue / 24, 0.75, 0.5) for hue in range(24)])
    expected = np.array([colorsys.hsv_to_rgb(*color) for color in hsv])
    for turns in (-2, -1, 0, 1):
        np.testing.assert_allclose(colors(to_rgb(F, image(hsv + np.array([turns, 0, 0])), "hsv")), expected, atol=1e-9)
