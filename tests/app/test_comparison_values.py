"""Comparisons of networks: what can be compared, the noise that is read, means, and the sentence about the reference."""

from __future__ import annotations

from itertools import product
from math import inf, isnan, nan, sqrt
from pathlib import Path

import numpy as np
import pytest

from analysis_layers.noise import SCALES
from app.reports.comparison import (
    ImageMetrics,
    Row,
    check_comparable,
    check_same_size,
    deviations,
    disturbed,
    headings,
    means,
    pixels_text,
    read_clean,
    read_noise,
    reference_text,
    summary,
)
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.images import write_image


def image(height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(height).random((1, channels, height, width), np.float32)


def refusal(act: object) -> Diagnostic:
    with pytest.raises(DiagnosticError) as caught:
        act()  # type: ignore[operator]
    (found,) = caught.value.diagnostics
    return found


def test_outputs_are_images_like_the_input_in_the_size_of_the_other_results() -> None:
    small = image(4, 6)
    for made, other in ((small, None), (image(8, 12), None), (image(12, 18), image(12, 18)), (small, image(4, 6))):
        check_comparable("net", "out", made, small, other)
    for made, shape in (
        (image(4, 6, 1), "1 x 1 x 4 x 6"),
        (image(8, 6), "1 x 3 x 8 x 6"),
        (image(2, 3), "1 x 3 x 2 x 3"),
        (image(4, 6)[0], "3 x 4 x 6"),
    ):
        found = refusal(lambda made=made: check_comparable("net.xml", "out", made, small))
        assert found.code == "not-comparable"
        assert found.message == f"the output 'out' of net.xml is {shape}, not an image like its input"
        assert found.layer == "out"
        assert "its size or a whole multiple of it" in found.remedy
    found = refusal(lambda: check_comparable("net.xml", "out", image(8, 12), small, small))
    assert found.message == "the output 'out' of net.xml is 12 x 8 pixels, that of others 6 x 4"
    assert (found.code, found.layer) == ("not-comparable", "out")
    assert found.remedy == "compare networks that enlarge the image by the same factor"
    for mine, theirs in product(range(1, 5), repeat=2):  # also where one is a multiple of the other
        made, other = image(4 * mine, 6 * mine), image(4 * theirs, 6 * theirs)
        if mine == theirs:
            check_comparable("net", "out", made, small, other)
        else:
            found = refusal(lambda pair=(made, other): check_comparable("net", "out", pair[0], small, pair[1]))
            sizes = f"is {pixels_text(made)} pixels, that of others {pixels_text(other)}"
            assert found.message == f"the output 'out' of net {sizes}"
    check_same_size(small, image(4, 6), "a.png")
    for height, width in ((8, 12), (8, 6), (4, 12), (6, 4)):
        found = refusal(lambda size=(height, width): check_same_size(small, image(*size), "a.png"))
        assert found.message == f"the clean image is 6 x 4 pixels, the results are {width} x {height}"
        assert (found.code, found.file) == ("not-comparable", "a.png")
    assert pixels_text(image(4, 6)) == "6 x 4"


def test_the_clean_image_has_the_size_of_the_noisy_one_or_a_multiple(tmp_path: Path) -> None:
    for name, size in (("a.png", (4, 6)), ("b.png", (8, 12)), ("c.png", (8, 6))):
        write_image(tmp_path / name, image(*size))
    noisy = image(4, 6)
    assert read_clean(Path("x/a.png"), tmp_path, noisy).shape == (1, 3, 4, 6)
    assert read_clean(Path("x/b.png"), tmp_path, noisy).shape == (1, 3, 8, 12)
    assert read_clean(Path("x/z.png"), tmp_path / "a.png", noisy).shape == (1, 3, 4, 6)
    assert read_clean(Path("x/a.png"), tmp_path, noisy[:, :1]).shape == (1, 1, 4, 6)
    found = refusal(lambda: read_clean(Path("x/c.png"), tmp_path, noisy))
    assert found.message == "the clean image is 6 x 8 pixels, the noisy one 6 x 4"
    assert (found.code, found.file) == ("not-comparable", "c.png")
    found = refusal(lambda: read_clean(Path("x/other.png"), tmp_path / "c.png", noisy))
    assert (found.code, found.file, found.remedy) == (
        "not-comparable",
        "c.png",
        "choose the clean version of the same image",
    )
    found = refusal(lambda: read_clean(Path("x/d.png"), tmp_path, noisy))
    assert (found.code, found.file) == ("no-clean-image", "x/d.png")
    assert found.message == f"there is no clean version of d.png in {tmp_path}"


@pytest.mark.parametrize(
    ("text", "kind", "scale"),
    [
        ("gaussian:25/255", "gaussian", 25 / 255),
        ("gaussian:0.1", "gaussian", 0.1),
        ("gaussian:0", "gaussian", 0.0),
        ("uniform:1/4", "uniform", 0.25),
        ("salt_and_pepper:0.05", "salt_and_pepper", 0.05),
    ],
)
def test_noise_is_a_kind_and_its_scale(text: str, kind: str, scale: float) -> None:
    noise = read_noise(text, 7)
    assert noise is not None
    assert (noise.kind, noise.scale, noise.seed) == (kind, scale, 7)
    clean = image(8, 8)
    made = disturbed(clean, noise)
    assert np.array_equal(made, noise.evaluate([clean])[0])
    assert np.array_equal(made, clean) == (scale == 0)
    assert disturbed(clean, None) is clean


@pytest.mark.parametrize("text", ["gaussian", "gaussian:", "gaussian:x", "fog:0.1", "gaussian:1/0", "gaussian:-1", "gaussian:101", "gaussian:nan", ":0.1"])  # fmt: skip
def test_other_noise_is_refused_with_the_kinds(text: str) -> None:
    found = refusal(lambda: read_noise(text, 0))
    assert (found.code, found.message) == ("bad-option", f"--noise {text}: write KIND:SCALE")
    assert found.remedy == f"for instance gaussian:25/255; kinds are {', '.join(SCALES)}"


def test_a_scale_beyond_its_kind_is_refused() -> None:
    assert read_noise("", 0) is None
    for kind, scale in SCALES.items():
        noise = read_noise(f"{kind}:{scale.most:g}", 0)
        assert noise is not None
        assert noise.scale == scale.most
        if scale.most < 100:
            found = refusal(lambda kind=kind, scale=scale: read_noise(f"{kind}:{scale.most + 0.5:g}", 0))
            most = f"{scale.most:g}"
            assert found.message == f"--noise {kind}:{scale.most + 0.5:g}: the scale of {kind} is at most {most}"
            assert found.remedy == f"write {kind}:25/255 for 25 levels of an 8-bit image"


def row(name: str, noise: str, *figures: ImageMetrics, **more: object) -> Row:
    return Row(name, noise, figures, (0, 0), **more)  # type: ignore[arg-type]


def test_means_and_deviations_are_of_the_finite_values() -> None:
    rows = [
        row("a", "", ImageMetrics(30.0, 0.5), ImageMetrics(inf, 1.0, 4.0), ImageMetrics(nan, nan, nan, "broken")),
        row("b", "", ImageMetrics(34.0, 0.9), ImageMetrics(40.0, 0.8, 8.0), ImageMetrics(nan, nan, nan, "broken")),
        row("c", "", ImageMetrics(32.0, 0.7), ImageMetrics(inf, 0.6, 6.0), ImageMetrics(nan, nan, nan, "broken")),
    ]
    first, second, third = means(rows)
    assert (first.psnr, first.ssim) == (32.0, pytest.approx(0.7))
    assert isnan(first.milliseconds)
    assert (second.psnr, second.ssim, second.milliseconds) == (40.0, pytest.approx(0.8), 6.0)
    assert all(isnan(value) for value in (third.psnr, third.ssim, third.milliseconds))
    spread = deviations(rows)
    assert (spread[0].psnr, spread[0].ssim) == (pytest.approx(sqrt(8 / 3)), pytest.approx(sqrt(0.08 / 3)))
    assert (spread[1].psnr, spread[1].milliseconds) == (0.0, pytest.approx(sqrt(8 / 3)))
    (same,) = means([row("a", "", ImageMetrics(inf, 1.0))])
    assert same.psnr == inf, "no finite value is known"


def test_the_table_has_a_column_for_the_noise_where_there_are_several() -> None:
    figures = (ImageMetrics(30.0, 0.5), ImageMetrics(36.125, 0.75, 4.0))
    failed = (ImageMetrics(30.0, 0.5), ImageMetrics(nan, nan, nan, "broken"))
    one, two = [row("a", "low", *figures)], [row("a", "low", *figures), row("a", "high", *failed)]
    titles = ("noisy", "net")
    common = ["noisy PSNR (dB)", "SSIM", "net PSNR (dB)", "SSIM"]
    assert headings(titles, one) == ["image", *common, "net (ms)"]
    assert headings(titles, two) == ["image", "noise", *common, "net (ms)"]
    assert headings(titles, one, times=False) == ["image", *common]
    values = ["30.00", "0.5000", "36.12", "0.7500", "4.00"]
    deviation = ["0.00", "0.0000", "0.00", "0.0000", "0.00"]
    assert list(summary(titles, one)) == [
        ["a", *values], ["mean", *values], ["deviation", *deviation[:4], "0"]
    ]  # fmt: skip
    assert next(summary(titles, one, times=False)) == ["a", *values[:4]]
    found = list(summary(titles, two))
    assert [line[:2] for line in found] == [
        [name, noise] for noise in ("low", "high") for name in ("a", "mean", "deviation")
    ]
    assert found[3][2:] == ["30.00", "0.5000", "failed", "-", "-"]
    assert found[4][2:] == ["30.00", "0.5000", "-", "-", "-"]
    assert {len(line) for line in found} == {len(headings(titles, two))}


@pytest.mark.parametrize(
    ("references", "scales", "text"),
    [
        (["the clean image"], [1], "PSNR and SSIM are measured against the clean image, values clipped to 0..1."),
        (["first", "first", "the clean image"], [1, 1, 1], "PSNR and SSIM are measured against first or the clean image, values clipped to 0..1."),
        (["", "first"], [1, 1], "PSNR and SSIM are measured against nothing or first, values clipped to 0..1."),
        ([""], [1], "PSNR and SSIM need a reference: add noise, or choose the clean images."),
        (["", ""], [4, 2], "PSNR and SSIM need a reference: choose the clean images in the size of the results. The input is enlarged 2 and 4 times by bicubic interpolation."),
        (["first", "first"], [1, 2], "PSNR and SSIM are measured against first, values clipped to 0..1. The input is enlarged 2 times by bicubic interpolation."),
    ],
)  # fmt: skip
def test_the_reference_is_said_with_what_the_input_is_enlarged_by(
    references: list[str], scales: list[int], text: str
) -> None:
    rows = [row("a", "", reference=name, scale=scale) for name, scale in zip(references, scales, strict=True)]
    assert reference_text(rows) == text
