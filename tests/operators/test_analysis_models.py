"""Every analysis layer against a small model of its description, pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, cos, exp, factorial, floor, pi, sqrt

import numpy as np
import pytest

from analysis_layers import degrade
from analysis_layers.difference import Difference
from analysis_layers.histogram import Histogram
from analysis_layers.mix import Mix
from analysis_layers.noise import Noise, gaussian_field, scale_text, uniform_field
from analysis_layers.recipe import NAMES, RecipeError, parse
from analysis_layers.statistics import Statistics
from analysis_layers.watch import Watch
from analysis_layers.zero_embed import ZeroEmbed
from designer.graph.diagnostics import DiagnosticError
from designer.metrics import psnr, ssim
from designer.operators.api import BATCH, Operator, ShapeError, TensorType, image


def photons(mean: float, uniform: float, normal: float) -> int:
    """The number of photons: the Poisson distribution inverted, or its expansion for large means."""
    if mean > 16:
        return max(0, round(mean + sqrt(mean) * normal + (normal**2 - 1) / 6))
    total, count = exp(-mean), 0
    while uniform >= total and count < 79:
        count += 1
        total += exp(-mean) * mean**count / factorial(count)
    return count


@pytest.mark.parametrize("mono", [False, True])
@pytest.mark.parametrize("scale", [0.9, 0.3, 0.17, 0.04])
def test_poisson_noise_counts_photons(scale: float, mono: bool) -> None:
    x = np.linspace(-0.5, 2.0, 2 * 3 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
    made = Noise(kind="poisson", scale=scale, seed=4, mono=mono).evaluate([x])[0]
    shape = (2, 1, 5, 7) if mono else x.shape
    uniform, normal = (np.broadcast_to(field(4, shape), x.shape) for field in (uniform_field, gaussian_field))
    expected = [
        photons(max(float(value), 0.0) / scale**2, float(u), float(n)) * scale**2
        for value, u, n in zip(x.ravel(), uniform.ravel(), normal.ravel(), strict=True)
    ]
    assert made.dtype == np.float32
    np.testing.assert_allclose(made.ravel(), expected, rtol=1e-5, atol=1e-6)
    assert (made[x <= 0] == 0).all()


def test_a_bright_pixel_has_no_fewer_photons_than_none() -> None:
    x = np.full((1, 1, 2, 2), 20.0, np.float32)
    normal = np.array([-9.0, -4.0, 0.0, 4.0], np.float32).reshape(x.shape)
    made = degrade.poisson(x, 1.0, np.full(x.shape, 0.5, np.float32), normal).ravel().tolist()
    assert made == [photons(20, 0.5, z) for z in normal.ravel().tolist()]
    assert made[0] == 0


def test_the_poisson_distribution_is_inverted_up_to_its_far_end() -> None:
    x = np.full((1, 1, 1, 3), 16.0, np.float32)
    uniform = np.array([0.0, 1 - 2**-24, 0.5], np.float32).reshape(x.shape)
    made = degrade.poisson(x, 1.0, uniform, np.full(x.shape, 9.0, np.float32))
    assert made.ravel().tolist() == [photons(16.0, float(u), 9.0) for u in uniform.ravel()]
    assert made.max() > 35
    just_above = degrade.poisson(np.nextafter(x, np.float32(17)), 1.0, uniform, np.zeros(x.shape, np.float32))
    assert just_above.ravel().tolist() == [16.0] * 3


@pytest.mark.parametrize("kind", ["poisson", "jpeg", "blur"])
def test_a_scale_of_0_changes_no_bit(kind: str) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 9, 7)).astype(np.float32)
    np.testing.assert_array_equal(Noise(kind=kind, scale=0.0).evaluate([x])[0], x)


WAVES = np.array([[cos((2 * n + 1) * k * pi / 16) * (0.5 if k else 8**-0.5) for n in range(8)] for k in range(8)])


def quantized(plane: np.ndarray, scale: float, table: tuple[tuple[int, ...], ...], level: float) -> np.ndarray:
    """A plane whose 8 x 8 blocks went through the quantized DCT; the last rows and columns are repeated up to 8."""
    height, width = plane.shape
    wide = np.pad(plane.astype(np.float64), ((0, -height % 8), (0, -width % 8)), mode="edge") - level
    steps = np.array(table) * 10 * scale / 255
    for top, left in product(range(0, wide.shape[0], 8), range(0, wide.shape[1], 8)):
        block = wide[top : top + 8, left : left + 8]
        wide[top : top + 8, left : left + 8] = WAVES.T @ (np.rint(WAVES @ block @ WAVES.T / steps) * steps) @ WAVES
    return (wide + level)[:height, :width]


def halved(plane: np.ndarray) -> np.ndarray:
    wide = np.pad(plane, ((0, plane.shape[0] % 2), (0, plane.shape[1] % 2)), mode="edge")
    return (wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2]) / 4


def doubled(plane: np.ndarray) -> np.ndarray:
    """Each value three quarters of the nearest and a quarter of the next nearest, first along rows, then columns."""
    for _ in range(2):
        plane = plane.T
        rows = [
            0.75 * plane[i] + 0.25 * plane[min(max(i + (1 if odd else -1), 0), len(plane) - 1)]
            for i in range(len(plane))
            for odd in (0, 1)
        ]
        plane = np.array(rows)
    return plane


def jpeg_of(x: np.ndarray, scale: float, subsampling: str) -> np.ndarray:
    red, green, blue = x.astype(np.float64)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    cb, cr = (blue - luma) / 1.772, (red - luma) / 1.402
    luma = quantized(luma, scale, degrade._LUMA_STEPS, 128 / 255)
    colors = []
    for plane in (cb, cr):
        if subsampling == "4:2:0":
            small = quantized(halved(plane), scale, degrade._CHROMA_STEPS, 0.0)
            colors.append(doubled(small)[: plane.shape[0], : plane.shape[1]])
        else:
            colors.append(quantized(plane, scale, degrade._CHROMA_STEPS, 0.0))
    cb, cr = colors
    red, blue = luma + 1.402 * cr, luma + 1.772 * cb
    return np.array([red, (luma - 0.299 * red - 0.114 * blue) / 0.587, blue])


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:4:4"])
@pytest.mark.parametrize(("height", "width"), [(16, 24), (13, 21), (9, 30)])
@pytest.mark.parametrize("scale", [0.037, 0.43])
def test_jpeg_noise_of_a_color_image(subsampling: str, height: int, width: int, scale: float) -> None:
    x = np.random.default_rng(height).random((2, 3, height, width), np.float32)
    x[1] *= np.linspace(0, 1, width, dtype=np.float32)
    made = Noise(kind="jpeg", scale=scale, subsampling=subsampling).evaluate([x])[0]
    for number in range(2):
        error = np.abs(made[number] - jpeg_of(x[number], scale, subsampling))
        assert np.median(error) < 1e-5
        assert (error > 1e-4).mean() < 0.02  # a value halfway between two steps


@pytest.mark.parametrize("shape", [(2, 1, 11, 9), (1, 4, 8, 8), (1, 3, 10), (1, 3, 2, 9, 8)])
def test_jpeg_noise_of_what_is_not_a_color_image(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    made = Noise(kind="jpeg", scale=0.13).evaluate([x])[0]
    assert made.shape == shape
    planes = zip(made.reshape(-1, *shape[-2:]), x.reshape(-1, *shape[-2:]), strict=True)
    for found, plane in planes:
        np.testing.assert_allclose(found, quantized(plane, 0.13, degrade._LUMA_STEPS, 128 / 255), atol=1e-4)


def mixed(selection: str, a: float, b: float, y: int, x: int, size: tuple[int, int], **given: float) -> float:
    height, width = size
    amount, cell, gain = given["amount"], int(given["cell"]), given["gain"]
    return {
        "v_split": a if x < amount * width else b,
        "h_split": a if y < amount * height else b,
        "checkerboard": b if (y // cell + x // cell) % 2 else a,
        "blend": a * (1 - amount) + b * amount,
        "difference": abs(a - b),
        "signed_difference": 0.5 + gain * (a - b) / 2,
        "amplified_difference": gain * abs(a - b),
        "flicker": b if given["phase"] else a,
        "custom": a - 2 * b + amount * x / (width - 1) + 10 * y / (height - 1),
    }[selection]


SELECTIONS = (
    "v_split", "h_split", "checkerboard", "blend", "difference", "signed_difference", "amplified_difference",
    "flicker", "custom",
)  # fmt: skip


@pytest.mark.parametrize("channels", [(3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_mix_is_its_formula(selection: str, channels: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.random((2, count, 5, 8), np.float32) for count in channels)
    for amount, phase in ((0.3, False), (0.0, True), (1.0, False), (0.5, True)):
        given = {"amount": amount, "cell": 3, "gain": 4.0, "phase": phase}
        layer = Mix(selection=selection, recipe="a - 2 * b + alpha * x + 10 * y", **given)
        made = layer.evaluate([a, b])[0]
        assert (made.shape, made.dtype) == ((2, 3, 5, 8), np.float32)
        for n, c, y, x in np.ndindex(2, 3, 5, 8):
            one, other = float(a[n, c % channels[0], y, x]), float(b[n, c % channels[1], y, x])
            expected = mixed(selection, one, other, y, x, (5, 8), **given)
            assert made[n, c, y, x] == pytest.approx(expected, abs=1e-5), (n, c, y, x)


@pytest.mark.parametrize("kind", ["absolute", "signed", "squared"])
@pytest.mark.parametrize(("gain", "peak"), [(1.0, 1.0), (2.5, 4.0)])
def test_the_map_and_the_metrics_of_a_difference(kind: str, gain: float, peak: float) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.normal(1, 1.5, (3, 2, 13, 14)).astype(np.float32) for _ in range(2))
    b[1] = a[1]
    found, decibels, similar = Difference(kind=kind, gain=gain, peak=peak).evaluate([a, b])
    expected = {"absolute": np.abs(a - b), "signed": a - b, "squared": (a - b) ** 2}[kind] * gain
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert decibels.shape == similar.shape == (3, 1, 1, 1)
    for n in range(3):
        assert decibels[n, 0, 0, 0] == pytest.approx(psnr(a[n : n + 1], b[n : n + 1], peak), rel=1e-6)
        assert similar[n, 0, 0, 0] == pytest.approx(ssim(a[n : n + 1], b[n : n + 1], peak), rel=1e-6)
    types = Difference().infer([image(2), image(2)])
    metric = TensorType((BATCH, 1, 1, 1))
    assert types == (image(2), metric, metric)


@pytest.mark.parametrize(("ranges", "low", "high"), [(5, -1.0, 1.5), (1, 0.0, 1.0), (7, 100.0, 101.0), (64, 0.0, 1.0)])
def test_the_shares_of_a_histogram(ranges: int, low: float, high: float) -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(low - 1, high + 1, (3, 2, 50)).astype(np.float32)
    x[0, 0, :4] = np.nan, np.inf, -np.inf, low
    x[2] = np.nan
    shares = Histogram(ranges=ranges, low=low, high=high).evaluate([x])[1]
    assert shares.shape == (3, 1, 1, ranges)
    for sample in range(3):
        values = [float(value) for value in x[sample].ravel() if not np.isnan(value)]
        counts = [0] * ranges
        for value in values:
            place = 0 if value < low else ranges - 1 if value >= high else floor((value - low) / (high - low) * ranges)
            counts[place] += 1
        expected = [count / max(1, len(values)) for count in counts]
        np.testing.assert_allclose(shares[sample, 0, 0], expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 2, 4, 5), (2, 7), (4,)])
def test_the_statistics_of_each_sample(shape: tuple[int, ...]) -> None:
    x = np.maximum(np.random.default_rng(8).normal(1, 2, shape), 0).astype(np.float32)
    same, found = Statistics().evaluate([x])
    assert same is x
    for sample in range(shape[0]):
        values = [float(value) for value in np.ravel(x[sample])]
        mean = sum(values) / len(values)
        deviation = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        expected = [mean, deviation, min(values), max(values), values.count(0.0) / len(values)]
        np.testing.assert_allclose(found[sample, 0, 0], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("keep_only", [False, True])
@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3, 4), (1, 5, 2, 2, 2)])
def test_channels_that_are_zero(shape: tuple[int, ...], keep_only: bool) -> None:
    x = np.random.default_rng(9).random(shape, np.float32) + 1
    before = x.copy()
    made = ZeroEmbed(channels=(1, 4), keep_only=keep_only).evaluate([x])[0]
    np.testing.assert_array_equal(x, before)
    for channel in range(5):
        zero = (channel in (1, 4)) != keep_only
        np.testing.assert_array_equal(made[:, channel], 0 if zero else before[:, channel])


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ([-1.0, 2.0, 0.0], ""),
        ([0.0, 2.5, 3.0], "bounds"),
        ([0.0, 0.0, -1.5], "bounds"),
        ([np.nan, 1.0, np.nan], "finite"),
        ([0.0, np.inf, np.nan], "both"),
    ],
)
def test_what_stops_a_watched_run(finite: bool, bounds: bool, values: list[float], broken: str) -> None:
    x = np.array([[values]], np.float32)
    layer = Watch(finite=finite, bounds=bounds, low=-1.0, high=2.0)
    bad = [value for value in values if finite and not np.isfinite(value)]
    what = "is NaN or infinite"
    if not bad and bounds:
        bad, what = [value for value in values if value < -1 or value > 2], "is outside -1..2"
    assert bool(bad) == ((finite and broken in ("finite", "both")) or (bounds and broken in ("bounds", "both")))
    if not bad:
        assert layer.evaluate([x])[0] is x
        return
    with pytest.raises(DiagnosticError) as caught:
        layer.evaluate([x])
    place = next(i for i, value in enumerate(values) if value in bad or (np.isnan(value) and what[3] == "N"))
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    (found,) = caught.value.diagnostics
    assert found.message == f"the value {values[place]:g} at (0, 0, {place}) {what}{more}"
    assert (found.code, found.remedy) == ("watch-stopped", "check the layers before it, or change the bounds")


TABLE, LINE, VOLUME = TensorType((BATCH, 4)), TensorType((BATCH,)), TensorType((BATCH, 3, 8, 8, 8))


@pytest.mark.parametrize(
    ("layer", "inputs", "port", "message"),
    [
        (Noise(kind="jpeg"), [TABLE], "x", "jpeg requires height and width, not N x 4"),
        (Noise(kind="blur"), [TABLE], "x", "blur requires height and width, not N x 4"),
        (Watch(bounds=True, low=2.0, high=1.0), [TABLE], None, "the lower bound 2 must not exceed the upper bound 1"),
        (Histogram(low=1.0, high=1.0), [TABLE], None, "the end of the ranges, 1, must be above their start, 1"),
        (Histogram(low=3.0, high=-1.0), [TABLE], None, "the end of the ranges, -1, must be above their start, 3"),
        (ZeroEmbed(channels=(1, 4)), [TABLE], "x", "channel 4 is out of range for 4 channels"),
        (Mix(selection="blend"), [TABLE, VOLUME], "b", "a of N x 4 and b of N x 3 x 8 x 8 x 8 must have the same size"),
        (Mix(), [TensorType((1, 3, 8, 8)), TensorType((2, 3, 8, 8))], "b",
         "a of 1 x 3 x 8 x 8 and b of 2 x 3 x 8 x 8 must have the same size"),
        (Mix(selection="blend"), [TensorType((BATCH, 2)), TensorType((BATCH, 3))], "b",
         "a of N x 2 and b of N x 3 must have the same size"),
        (Mix(selection="checkerboard"), [TABLE, TABLE], "a", "checkerboard requires height and width, not N x 4"),
        (Mix(selection="custom", recipe="a + y"), [TABLE, TABLE], "a", "x and y require height and width, not N x 4"),
        (Mix(selection="custom", recipe="x"), [TABLE, TABLE], "a", "x and y require height and width, not N x 4"),
        (Mix(selection="custom", recipe="a +"), [TABLE, TABLE], None, "the recipe, at column 4: this is not a formula"),
    ],
)  # fmt: skip
def test_refusals_of_shapes_and_parameters(
    layer: Operator, inputs: list[TensorType], port: str | None, message: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        layer.infer(inputs)
    assert str(caught.value).startswith(message)
    assert caught.value.port == port
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("layer", "inputs", "index"),
    [
        (Noise(kind="gaussian"), [LINE], 0),
        (Noise(kind="blur"), [image(3)], 0),
        (Watch(low=2.0, high=1.0), [TABLE], 0),
        (Watch(bounds=True, low=1.0, high=1.0), [TABLE], 0),
        (ZeroEmbed(channels=(0, 3)), [TABLE], 0),
        (Mix(selection="blend"), [LINE, LINE], 0),
        (Mix(), [image(1), image(3)], 1),
        (Mix(), [image(3), image(1)], 0),
        (Mix(selection="custom", recipe="a * alpha"), [TABLE, TABLE], 0),
        (Mix(selection="custom", recipe="x + y"), [image(3), image(3)], 0),
    ],
)
def test_the_output_has_the_shape_of_an_input(layer: Operator, inputs: list[TensorType], index: int) -> None:
    assert layer.infer(inputs) == inputs[index]


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "salt_and_pepper", "poisson", "speckle"])
def test_one_noise_for_all_channels_of_anything(kind: str) -> None:
    for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (1, 2, 2, 3, 4)):
        x = np.full(shape, 0.5, np.float32)
        made = Noise(kind=kind, scale=0.3, seed=2, mono=True).evaluate([x])[0]
        assert (made.shape, made.dtype) == (shape, np.float32)
        one = shape if len(shape) == 1 else (shape[0], 1, *shape[2:])
        alone = Noise(kind=kind, scale=0.3, seed=2).evaluate([np.full(one, 0.5, np.float32)])[0]
        np.testing.assert_array_equal(made, np.broadcast_to(alone, shape))


@pytest.mark.parametrize("mean", [-0.25, 0.0, 0.4])
@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_an_offset_is_added_to_additive_noise(kind: str, mean: float) -> None:
    x = np.random.default_rng(0).random((1, 2, 3, 5), np.float32)
    field = gaussian_field(3, x.shape) if kind == "gaussian" else 2 * uniform_field(3, x.shape) - 1
    made = Noise(kind=kind, scale=0.5, mean=mean, seed=3).evaluate([x])[0]
    np.testing.assert_allclose(made, x + 0.5 * field + mean, atol=1e-6)


def test_salt_and_pepper_replace_the_ends_of_a_uniform_field() -> None:
    x = np.random.default_rng(0).random((2, 3, 9, 5), np.float32) * 0.5 + 0.25
    chance = uniform_field(6, x.shape)
    made = Noise(kind="salt_and_pepper", scale=0.4, seed=6).evaluate([x])[0]
    np.testing.assert_array_equal(made, np.where(chance < 0.2, 0, np.where(chance >= np.float32(0.8), 1, x)))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (1, 1, 4, 5)])
def test_fields_are_cached_and_read_only(shape: tuple[int, ...]) -> None:
    words = np.random.Philox(11).random_raw(ceil(np.prod(shape) / 2)).astype("<u8").view("<u4")
    field = uniform_field(11, shape)
    np.testing.assert_array_equal(field.ravel(), (words[: field.size] // 256).astype(np.float64) / 2**24)
    assert gaussian_field(11, shape) is gaussian_field(11, shape)
    for each in (field, gaussian_field(11, shape)):
        assert (each.shape, each.dtype, each.flags.writeable) == (shape, np.float32, False)


@pytest.mark.parametrize(
    ("kind", "scale", "text"),
    [
        ("gaussian", 25 / 255, "25/255"),
        ("uniform", 1 / 255, "1/255"),
        ("speckle", 50 / 255, "50/255"),
        ("poisson", 10 / 255, "10/255"),
        ("gaussian", 0.0, "0"),
        ("gaussian", 25.001 / 255, "0.0980431"),
        ("salt_and_pepper", 51 / 255, "0.2"),
        ("jpeg", 51 / 255, "0.2"),
        ("blur", 1.0, "1"),
    ],
)
def test_the_scale_as_text(kind: str, scale: float, text: str) -> None:
    assert scale_text(kind, scale) == text
    assert Noise(kind=kind, scale=scale).summary() == f"{kind.replace('_', ' ')} {text}"


def formulas() -> Iterator[tuple[str, float]]:
    """Recipes of single operations, and their values for a = -2.5, b = 3, alpha = 0.25."""
    a, b, alpha = -2.5, 3.0, 0.25
    yield from (
        ("a + b", a + b), ("a - b", a - b), ("a * b", a * b), ("a / b", a / b), ("b ** 3", 27), ("a % b", a % b),
        ("b % a", b % a), ("-a", -a), ("+a", a), ("a < b", 1), ("b < a", 0), ("a <= a", 1), ("b <= a", 0),
        ("a > b", 0), ("b > a", 1), ("a >= a", 1), ("a >= b", 0), ("a == a", 1), ("a == b", 0), ("a != b", 1),
        ("a != a", 0), ("abs(a)", 2.5), ("sqrt(b)", sqrt(b)), ("exp(alpha)", exp(alpha)), ("log(b)", np.log(b)),
        ("sin(a)", np.sin(a)), ("cos(a)", np.cos(a)), ("floor(a)", -3), ("round(a)", -2), ("round(b + 0.75)", 4),
        ("sign(a)", -1), ("min(a, b)", a), ("max(a, b)", b), ("clip(a, -1, 1)", -1), ("clip(b, -1, 1)", 1),
        ("where(a, 1, 2)", 1), ("where(0, 1, 2)", 2), ("where(a > 0, 1, 2)", 2), ("2 - 3 - 4", -5),
        ("a - (b - alpha)", a - b + alpha), ("2 ** 3 ** 2", 512), ("alpha", alpha), ("1e3", 1000), ("  a  ", a),
    )  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), list(formulas()))
def test_every_operation_of_a_recipe(text: str, expected: float) -> None:
    recipe = parse(text, NAMES)
    found = recipe(a=np.array(-2.5), b=3.0, alpha=0.25)
    assert found.dtype == np.float32
    assert float(found) == pytest.approx(expected, rel=1e-6)
    assert recipe.names == {name for name in ("a", "b", "alpha") if name in text.replace("(", " ").split()} or (
        recipe.names <= set(NAMES) and all(name in text for name in recipe.names)
    )


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("", "the recipe is empty", "enter a formula"),
        ("a\nb", "the recipe has more than one line", "enter one formula on one line"),
        ("a\rb", "the recipe has more than one line", "enter one formula on one line"),
        ("a" * 1001, "the recipe has 1001 characters, more than 1000", "shorten the recipe"),
        ("  a + ", "the recipe, at column 6: this is not a formula", "check brackets and operators; use a, b"),
        ("a + c", "the recipe, at column 5: 'c' is not known", "use a, b, alpha, x, y"),
        ("a < b < 1", "the recipe, at column 1: only one comparison at a time", "write (a > 0) * (a < 1)"),
        ("a + True", "the recipe, at column 5: only numbers are allowed here", "use a, b"),
        ("a + 'b'", "the recipe, at column 5: only numbers are allowed here", "use a, b"),
        ("a + 4e38", "the recipe, at column 5: this number is too large", "use a number below 3e38"),
        ("a + 1" + "0" * 400, "the recipe, at column 5: this number is too large", "use a number below 3e38"),
        ("tan(a)", "the recipe, at column 1: the function 'tan' is not known", "use abs, sqrt"),
        ("a.b(1)", "the recipe, at column 1: only plain functions can be called", "use abs, sqrt"),
        ("abs(a, b)", "the recipe, at column 1: abs takes 1 value", "write abs(a)"),
        ("min(a)", "the recipe, at column 1: min takes 2 values", "write min(a, b)"),
        ("clip(a, b)", "the recipe, at column 1: clip takes 3 values", "write clip(a, b, c)"),
        ("abs(*a)", "the recipe, at column 1: abs takes 1 value", "write abs(a)"),
        ("abs(a, out=b)", "the recipe, at column 1: abs takes 1 value", "write abs(a)"),
        ("a.b", "the recipe, at column 1: dots and square brackets are not allowed", "use a, b"),
        ("a[0]", "the recipe, at column 1: dots and square brackets are not allowed", "use a, b"),
        ("a and b", "the recipe, at column 1: and / or is not allowed", "use a, b"),
        ("a if b else 1", "the recipe, at column 1: if ... else is not allowed", "use a, b"),
        ("[a]", "the recipe, at column 1: a list is not allowed", "use a, b"),
        ("lambda: a", "the recipe, at column 1: a lambda is not allowed", "use a, b"),
        ("a | b", "the recipe, at column 1: this operator is not allowed", "use a, b"),
        ("not a", "the recipe, at column 1: this sign is not allowed", "use a, b"),
        ("a in b", "the recipe, at column 1: this is not allowed", "use a, b"),
        ("-" * 33 + "a", "the recipe, at column 34: more than 32 levels deep", "simplify the formula"),
    ],
)  # fmt: skip
def test_what_a_recipe_must_not_contain(text: str, found: str, remedy: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(text, NAMES)
    assert str(caught.value) == found
    assert caught.value.remedy.startswith(remedy)
    assert parse("-" * 32 + "a", NAMES)(a=1.0) == 1


def test_a_recipe_of_numbers_that_are_not_defined_is_silent() -> None:
    found = parse("where(a < 0, log(a), exp(a) * 1e38)", NAMES)(a=np.array([-1.0, 90.0], np.float32))
    assert np.isnan(found[0])
    assert np.isinf(found[1])
    assert found.dtype == parse("1", NAMES)().dtype == parse("a < 1", NAMES)(a=2.0).dtype == np.float32


def test_labels_and_options_of_measuring_layers() -> None:
    assert Histogram(ranges=3).labels("shares") == ("[0, 0.3333)", "[0.3333, 0.6667)", "[0.6667, 1)")
    assert Histogram(ranges=2, low=-10.0, high=0.5).labels("shares") == ("[-10, -4.75)", "[-4.75, 0.5)")
    ranges, low, high = Histogram().options()
    assert (ranges.param, ranges.min, ranges.max, ranges.step) == ("ranges", 1, 256, 1)
    assert [(each.param, each.step) for each in (low, high)] == [("low", 0.1), ("high", 0.1)]
    kind, gain = Difference().options()
    assert (kind.param, tuple(kind.choices)) == ("kind", ("absolute", "signed", "squared"))
    assert (gain.param, gain.min, gain.max, gain.step) == ("gain", 0.0, 20.0, 0.5)
    with pytest.raises(ShapeError) as caught:
        Difference().infer([image(3, 8, 8), image(3, 8, 9)])
    assert caught.value.port == "b"
