"""Values of analysis layers, computed by hand, and what they show about themselves."""

from __future__ import annotations

import re
from math import ceil, cos, exp, pi

import numpy as np
import pytest

from analysis_layers.difference import Difference
from analysis_layers.histogram import Histogram
from analysis_layers.mix import Mix
from analysis_layers.noise import KINDS, RANDOM, Noise, scale_text
from analysis_layers.snapshot import Snapshot
from analysis_layers.statistics import STATISTICS, Statistics
from analysis_layers.watch import Watch
from analysis_layers.zero_embed import ZeroEmbed
from designer.graph.diagnostics import DiagnosticError
from designer.operators.api import BATCH, ShapeError, TensorType, image

A = np.array([[[[0.0, 0.5, 1.0]]], [[[0.25, 0.25, 2.0]]]], np.float32)
B = np.array([[[[0.5, 0.25, 1.0]]], [[[0.5, 0.0, 1.0]]]], np.float32)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("absolute", [[2.0, 1.0, 0.0], [1.0, 1.0, 4.0]]),
        ("signed", [[-2.0, 1.0, 0.0], [-1.0, 1.0, 4.0]]),
        ("squared", [[1.0, 0.25, 0.0], [0.25, 0.25, 4.0]]),
    ],
)
def test_maps_of_differences(kind: str, expected: list[list[float]]) -> None:
    found = Difference(kind=kind, gain=4.0).evaluate([A, B])[0]
    assert found[:, 0, 0].tolist() == expected


def test_psnr_of_each_image_depends_on_the_peak() -> None:
    for peak in (1.0, 2.0):
        a, b = np.clip(A, 0, peak).astype(np.float64), np.clip(B, 0, peak).astype(np.float64)
        expected = [10 * np.log10(peak**2 / ((x - y) ** 2).mean()) for x, y in zip(a, b, strict=True)]
        found = Difference(peak=peak).evaluate([A, B])[1]
        assert found.shape == (2, 1, 1, 1)
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-5)


def test_values_are_counted_in_ranges_that_include_their_start() -> None:
    x = np.array([[-9.0, -1.0, -0.51, -0.5], [0.0, 0.49, 0.5, 1.0], [np.nan, np.inf, 7.0, 0.75]], np.float32)
    layer = Histogram(ranges=4, low=-1.0, high=1.0)
    same, shares = layer.evaluate([x])
    assert same is x
    assert shares.shape == (3, 1, 1, 4)
    assert shares[:, 0, 0].tolist() == [[0.75, 0.25, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1.0]]
    ends = np.array([[-np.inf, np.inf, np.nan, 0.0, -np.inf]], np.float32)
    assert layer.evaluate([ends])[1].ravel().tolist() == [0.5, 0, 0.25, 0.25]
    assert layer.labels("shares") == ("[-1, -0.5)", "[-0.5, 0)", "[0, 0.5)", "[0.5, 1)")
    assert layer.labels("y") == ()
    assert Histogram(low=1.0, high=1.0).labels("shares") == ()
    assert Histogram().evaluate([np.full((1, 3), np.nan, np.float32)])[1].sum() == 0
    assert layer.summary() == "4 · -1..1"
    for low, high in ((1.0, 1.0), (2.0, 1.0)):
        with pytest.raises(ShapeError, match="must be above their start"):
            Histogram(low=low, high=high).infer([image()])


def test_statistics_are_those_of_each_sample() -> None:
    x = np.array([[[0.0, 0.0, 3.0, -1.0]], [[2.0, 2.0, 2.0, 2.0]]], np.float32)
    same, found = Statistics().evaluate([x])
    assert same is x
    assert Statistics().labels("figures") == STATISTICS
    assert Statistics().labels("y") == ()
    np.testing.assert_allclose(found[0, 0, 0], [0.5, 1.5, -1.0, 3.0, 0.5])
    np.testing.assert_allclose(found[1, 0, 0], [2.0, 0.0, 2.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("layer", "values", "message"),
    [
        (Watch(), [1.0, np.nan, np.inf], r"nan at \(0, 1\) is NaN or infinite, and 1 more"),
        (Watch(), [1.0, 2.0, -np.inf], r"-inf at \(0, 2\) is NaN or infinite$"),
        (Watch(bounds=True, low=-1.0, high=2.0), [-1.0, 2.0, -1.5], r"-1.5 at \(0, 2\) is outside -1\.\.2$"),
        (Watch(bounds=True, low=-1.0, high=2.0), [2.5, 2.0, 3.0], r"2.5 at \(0, 0\) is outside -1\.\.2, and 1 more"),
        (Watch(finite=False, bounds=True, low=-1.0, high=2.0), [np.nan, np.inf, 0.0], r"inf at \(0, 1\) is outside"),
    ],
)
def test_a_watched_value_stops_the_run(layer: Watch, values: list[float], message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        layer.evaluate([np.array([values], np.float32)])
    finding = caught.value.diagnostics[0]
    assert finding.code == "watch-stopped"
    assert re.search(message, finding.message)


def test_what_is_watched_passes_within_its_bounds() -> None:
    for layer, values in (
        (Watch(), [-1e9, 1e9]),
        (Watch(finite=False), [np.nan, np.inf]),
        (Watch(bounds=True, low=-1.0, high=2.0), [-1.0, 2.0]),
        (Watch(finite=False, bounds=True), [np.nan, 1.0]),
    ):
        x = np.array([values], np.float32)
        assert layer.evaluate([x])[0] is x
    assert Watch(bounds=True, low=1.0, high=1.0).infer([image()]) == image()
    assert Watch(low=2.0, high=1.0).infer([image()]) == image()
    with pytest.raises(ShapeError, match="must not exceed"):
        Watch(bounds=True, low=2.0, high=1.0).infer([image()])
    assert [Watch().summary(), Watch(bounds=True, low=-1.0, high=2.5).summary()] == ["finite", "-1..2.5"]


def test_channels_are_zeroed_or_kept_alone() -> None:
    x = np.arange(1.0, 25.0, dtype=np.float32).reshape(2, 4, 3)
    without = ZeroEmbed(channels=(0, 3)).evaluate([x])[0]
    only = ZeroEmbed(channels=(0, 3), keep_only=True).evaluate([x])[0]
    assert (without != 0).any((0, 2)).tolist() == [False, True, True, False]
    np.testing.assert_array_equal(without + only, x)
    assert (only != 0).any((0, 2)).tolist() == [True, False, False, True]
    assert x.all(), "the input is unchanged"
    assert ZeroEmbed(channels=(3,)).infer([image(4)]) == image(4)
    with pytest.raises(ShapeError, match="channel 4 is out of range for 4 channels"):
        ZeroEmbed(channels=(0, 4)).infer([image(4)])
    assert ZeroEmbed(channels=tuple(range(9))).summary() == "without 0,1,2,3,4,5,6,7"
    assert ZeroEmbed(channels=(2,), keep_only=True).summary() == "only 2"


@pytest.mark.parametrize("deviation", [0.3, 1.0, 2.25])
def test_blur_is_the_sum_of_weighted_neighbors(deviation: float) -> None:
    x = np.random.default_rng(0).random((2, 3, 9, 14), np.float32)
    made = Noise(kind="blur", scale=deviation).evaluate([x])[0]
    reach = ceil(3 * deviation)
    shares = {n: exp(-(n**2) / (2 * deviation**2)) for n in range(-reach, reach + 1)}
    total = sum(shares.values()) ** 2
    for row, column in ((0, 0), (4, 7), (8, 1), (2, 13)):
        expected = sum(
            shares[v] * shares[u] / total * x[1, 2, min(max(row + v, 0), 8), min(max(column + u, 0), 13)]
            for v in shares
            for u in shares
        )
        assert made[1, 2, row, column] == pytest.approx(expected, abs=1e-5)


def test_jpeg_of_two_channels_quantizes_each_block() -> None:
    from analysis_layers.degrade import _LUMA_STEPS

    x = np.random.default_rng(1).random((2, 2, 16, 24), np.float32)
    made = Noise(kind="jpeg", scale=0.3).evaluate([x])[0]
    waves = [[cos((2 * n + 1) * k * pi / 16) * (0.5 if k else 8**-0.5) for n in range(8)] for k in range(8)]
    transform, steps = np.array(waves), np.array(_LUMA_STEPS) * (10 * 0.3 / 255)
    for top, left in ((0, 0), (8, 16)):
        block = x[1, 1, top : top + 8, left : left + 8].astype(np.float64) - 128 / 255
        rounded = np.rint(transform @ block @ transform.T / steps) * steps
        back = transform.T @ rounded @ transform + 128 / 255
        np.testing.assert_allclose(made[1, 1, top : top + 8, left : left + 8], back, atol=1e-5)


def test_noise_spreads_its_parameters_as_documented() -> None:
    x = np.random.default_rng(2).random((2, 3, 5, 7), np.float32)
    gaussian = Noise(scale=1.0, seed=9).evaluate([x * 0])[0]
    uniform = Noise(kind="uniform", scale=1.0, seed=9).evaluate([x * 0])[0]
    cases = {
        "gaussian": x + 0.25 * gaussian - 0.5,
        "uniform": x + 0.25 * uniform - 0.5,
        "speckle": x * (1 + 0.25 * gaussian),
        "salt_and_pepper": np.where(uniform < -0.75, 0, np.where(uniform >= 0.75, 1, x)),
    }
    for kind, expected in cases.items():
        made = Noise(kind=kind, scale=0.25, mean=-0.5, seed=9).evaluate([x])[0]
        assert made.dtype == np.float32
        np.testing.assert_allclose(made, expected, atol=1e-6)
    assert not np.array_equal(gaussian[0], gaussian[1]), "every image has its own noise"


@pytest.mark.parametrize("kind", RANDOM)
def test_monochrome_noise_is_equal_in_the_channels_of_an_image_only(kind: str) -> None:
    x = np.full((2, 3, 6, 5), 0.5, np.float32)
    made = Noise(kind=kind, scale=0.4, mono=True).evaluate([x])[0]
    assert np.array_equal(made[:, :1].repeat(3, 1), made)
    assert not np.array_equal(made[0], made[1])
    colored = Noise(kind=kind, scale=0.4).evaluate([x])[0]
    assert not np.array_equal(colored[:, 0], colored[:, 2])


def test_how_far_noise_and_mix_see() -> None:
    assert {kind: Noise(kind=kind, scale=1.5).reach() for kind in KINDS} == {
        **dict.fromkeys(RANDOM, 0),
        "jpeg": 16,
        "blur": 5,
    }
    assert Noise(kind="jpeg", subsampling="4:4:4").reach() == 7
    assert Mix(selection="custom").reach() == 0


def test_what_a_preview_at_a_smaller_size_changes() -> None:
    assert Noise(kind="blur", scale=3.0).scaled_down(4) == {"scale": 0.75}
    assert Noise(scale=3.0).scaled_down(4) == {}
    assert Mix(selection="checkerboard", cell=9).scaled_down(4) == {"cell": 2}
    assert Mix(selection="checkerboard", cell=3).scaled_down(4) == {"cell": 1}
    assert Mix(cell=9).scaled_down(4) == {}


def test_a_checkerboard_starts_with_a_and_is_not_square() -> None:
    a, b = np.zeros((1, 1, 5, 8), np.float32), np.ones((1, 1, 5, 8), np.float32)
    made = Mix(selection="checkerboard", cell=3).evaluate([a, b])[0][0, 0]
    rows = [[0, 0, 0, 1, 1, 1, 0, 0]] * 3 + [[1, 1, 1, 0, 0, 0, 1, 1]] * 2
    assert made.tolist() == rows


def test_one_channel_is_broadcast_in_every_selection() -> None:
    rng = np.random.default_rng(3)
    gray, color = rng.random((2, 1, 4, 6), np.float32), rng.random((2, 3, 4, 6), np.float32)
    for selection in ("v_split", "h_split", "checkerboard", "blend", "difference", "flicker", "custom"):
        for a, b in ((gray, color), (color, gray)):
            made = Mix(selection=selection, amount=0.5, cell=2).evaluate([a, b])[0]
            whole = Mix(selection=selection, amount=0.5, cell=2).evaluate(
                [np.broadcast_to(t, color.shape) for t in (a, b)]
            )
            np.testing.assert_array_equal(made, whole[0])
    with pytest.raises(ShapeError):
        Mix().infer([image(3, 8, 8), TensorType((BATCH, 3, 8, 8, 1))])
    with pytest.raises(ShapeError):
        Mix().infer([image(1, 8, 8), image(3, 9, 8)])
    assert Mix().infer([image(3), image(1)]) == image(3)
    vectors = [TensorType((BATCH, 4))] * 2
    assert Mix(selection="blend").infer(vectors) == vectors[0]
    for selection in ("v_split", "h_split", "checkerboard"):
        with pytest.raises(ShapeError, match=f"{selection.replace('_', ' ')} requires height and width"):
            Mix(selection=selection).infer(vectors)
    assert Mix(selection="custom", recipe="a + b * alpha").infer(vectors) == vectors[0]


def test_summaries() -> None:
    assert Mix(amount=0.25).summary() == "v split 0.25"
    assert Mix(selection="signed_difference").summary() == "signed difference"
    assert Mix(selection="custom", recipe="a").summary() == "a"
    assert Noise(kind="salt_and_pepper", scale=0.05).summary() == "salt and pepper 0.05"
    assert scale_text("uniform", 255 / 255) == "255/255"
    assert scale_text("gaussian", 25.5 / 255) == "0.1"
    assert scale_text("salt_and_pepper", 1.0) == "1"
    assert [Difference().summary(), Difference(kind="signed", gain=2.5).summary()] == ["absolute", "signed x 2.5"]
    assert Snapshot(label="x" * 50).summary() == "x" * 40


def test_the_options_of_each_selection() -> None:
    shown = {
        name: [o.param for o in Mix(selection=name).options()][1:]
        for name in ("v_split", "h_split", "blend", "custom", "checkerboard", "difference", "flicker")
    }
    assert shown == {
        "v_split": ["amount"],
        "h_split": ["amount"],
        "blend": ["amount"],
        "custom": ["amount", "recipe"],
        "checkerboard": ["cell"],
        "difference": [],
        "flicker": ["rate"],
    }
    for name in ("signed_difference", "amplified_difference"):
        assert [o.param for o in Mix(selection=name).options()] == ["selection", "gain"]
    blur, gaussian = (Noise(kind=kind).options()[1] for kind in ("blur", "gaussian"))
    assert (blur.max, gaussian.max) == (10.0, 1.0)
