"""What the figures of reports draw is recorded: every line, bar and text with its place and color."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_text import figure_lines
from page_text import page_lines
from PIL import Image
from recorded import check_lines
from test_recorded_reports import everything

from app.reports import analysis_report, comparison, comparison_page, profile_figures
from app.reports.comparison import ImageMetrics, Reference, Row, Shown
from app.reports.page import Page
from app.reports.profile_figures import draw, figure_png, save_figure
from app.reports.provenance_table import add_machine
from app.reports.tour import Tour, channel_grid
from designer.graph.diagnostics import DiagnosticError
from designer.profiling.quantities import measured, unavailable
from designer.profiling.schema import Profile, ProfileRun, RunPeaks
from designer.profiling.sweep import sweeps
from designer.runtime.provenance import Provenance

RNG = np.random.default_rng(8)


# --- figures of profiles -------------------------------------------------------------------------------------------


def runs() -> dict[str, ProfileRun]:
    """A run with everything, and those that lack something."""
    first = everything().runs[0]
    rows = [replace(row, precision="fp16" if number else "") for number, row in enumerate(first.operators)]
    rows.append(replace(rows[-1], layers=("second",), time_ms=0.05, flops=9_000_000, bytes=3_000_000, bound="cache"))
    rows.append(replace(rows[-1], layers=("third",), time_ms=7.0, flops=0))
    full = replace(first, operators=tuple(rows))
    peaks = RunPeaks(measured(1e12), unavailable("no"), measured(8e10), 1 << 24)
    return {
        "everything": full,
        "no bandwidth of the memory": replace(full, peaks=peaks),
        "no peak": replace(full, peaks=replace(peaks, flops_per_s=unavailable("no"))),
        "nothing known": replace(full, peaks=None, peak_memory=None, training=None),
        "no operators": replace(full, operators=(), peak_memory=None),
    }


def test_every_figure_of_a_profile() -> None:
    lines: list[str] = []
    for title, run in runs().items():
        for name in profile_figures._DRAWN:
            lines += ["", f"# {name}: {title}", *figure_lines(draw(name, run, f"{title} of all"))]
    found = everything().runs
    for axis in ("batch", "size"):
        for sweep in sweeps([*found, replace(found[1], batch=8, time_ms=40.0), replace(found[2], size="24x16")], axis):
            lines += ["", f"# {axis}: {sweep.title}", *figure_lines(draw(axis, sweep.runs[0], "a sweep", sweep))]
    check_lines("reports/figures.txt", [line.rstrip() for line in lines[1:]])


def test_a_figure_of_a_page_has_no_title_and_the_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    class Drawn:
        def savefig(self, stream: Any, *, format: str, dpi: int) -> None:
            stream.write(f"{format} {dpi}".encode())

    monkeypatch.setattr(profile_figures, "draw", lambda *each: asked.append(each) or Drawn())
    run, sweep = runs()["everything"], object()
    assert figure_png("batch", run, sweep) == b"png 110"  # type: ignore[arg-type]
    save_figure(tmp_path / "a.PDF", "batch", run, "a title", sweep)  # type: ignore[arg-type]
    assert asked == [("batch", run, "", sweep), ("batch", run, "a title", sweep)]
    assert (tmp_path / "a.PDF").read_bytes() == b"pdf 150"
    with pytest.raises(DiagnosticError) as failed:
        save_figure(tmp_path / "a.gif", "batch", run, "a title")
    (found,) = failed.value.diagnostics
    assert (found.code, found.message) == ("bad-suffix", "'a.gif' is not a .png, .svg or .pdf file")


# --- comparisons ---------------------------------------------------------------------------------------------------

PIXEL = b"\x89PNG"
COLUMNS = ["gaussian:0.1", "A a network of a long name", "B two"]


def row(name: str, noise: str, *metrics: ImageMetrics, **more: Any) -> Row:
    return Row(name, noise, metrics, (3, 7), **more)


def shown(*names: str, failed: str = "") -> tuple[Shown, ...]:
    return tuple(Shown(name, b"" if name == failed else PIXEL, b"" if name == failed else PIXEL) for name in names)


def situations() -> dict[str, list[Row]]:
    """Rows with a clean image, without a reference, with a variant that failed, and of networks that enlarge."""
    one = (ImageMetrics(20.5, 0.5), ImageMetrics(30.25, 0.75, 12.5), ImageMetrics(inf, 1.0, 1234.5))
    two = (ImageMetrics(18.5, 0.25), ImageMetrics(33.25, 0.875, 14.5), ImageMetrics(40.0, nan, 1300.0))
    none = (ImageMetrics(nan, nan), ImageMetrics(nan, nan, 3.0), ImageMetrics(41.0, 0.9, nan))
    failed = (*one[:2], ImageMetrics(nan, nan, 5.0, "it has no output"))
    clean, names = "the clean image", ("clean", *COLUMNS)
    return {
        "one image": [row("a.png", "n", *one, shown=shown(*names), reference=clean)],
        "two images and noises": [
            row("a.png", "n", *one, shown=shown(*names), reference=clean),
            row("b.png", "n", *two, shown=shown(*names), reference=clean),
            row("a.png", "m", *two, reference=clean),
        ],
        "no reference": [row("a.png", "", *none[:1], *none[:1], *none[:1], shown=shown(*COLUMNS))] * 2,
        "the first network": [row("a.png", "", *none, shown=shown(*COLUMNS), reference="A one", scale=2)],
        "a failed one": [
            row("a.png", "n", *failed, shown=shown(*names, failed="B two"), reference=clean),
            row("b.png", "n", *one, shown=shown(*names, failed="clean"), reference=clean, scale=4),
        ],
        "several references": [
            row("a.png", "", *one, reference=clean, scale=2), row("b.png", "", *none, scale=3), row("c.png", "", *two, reference="A one")
        ],
    }  # fmt: skip


@pytest.fixture
def plotted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were written."""
    from matplotlib.figure import Figure

    found: list[Any] = []
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, stream, **more: found.append((figure, more)) or stream.write(PIXEL)
    )
    return found


def test_every_page_and_plot_of_a_comparison(tmp_path: Path, plotted: list[Any]) -> None:
    lines: list[str] = []
    origin = {"A one": Provenance("a.xml", "0" * 64, engine="torch", date="today", versions={})}
    for title, rows in situations().items():
        plotted.clear()
        comparison_page.write_report(tmp_path / "a.html", title, COLUMNS, rows, origin)
        lines += ["", f"# {title}", *page_lines(tmp_path / "a.html")]
        lines += [line for figure, _ in plotted for line in figure_lines(figure)]
        enlarged = (tmp_path / "a.html").read_text().count('class=enlarged width="192"')
        lines.append(f"enlarged: {enlarged}")
    inks = comparison_page.Inks("#101010", "#202020", "#303030", ("#400000", "#500000"))
    plotted.clear()
    assert comparison_page.plot(COLUMNS, situations()["a failed one"], inks, (4.0, 2.0)) == PIXEL
    ((figure, more),) = plotted
    assert (tuple(figure.get_size_inches()), more["facecolor"], more["format"]) == ((4.0, 2.0), "#101010", "png")
    lines += ["", "# other colors", *figure_lines(figure)]
    check_lines("reports/comparisons.txt", [line.rstrip() for line in lines[1:]])


def test_values_of_a_comparison_have_their_provenance(tmp_path: Path) -> None:
    origin = {"A": Provenance("a.xml", "0" * 64, engine="torch", date="today", versions={})}
    for suffix in (".json", ".csv"):
        path = tmp_path / f"c{suffix}"
        comparison_page.COMPARISONS.writer(path)(path, "t", COLUMNS, situations()["one image"], origin)
    assert json.loads((tmp_path / "c.json").read_text())["provenance"] == {"A": origin["A"].texts()}
    about = json.loads((tmp_path / "c.csv.provenance.json").read_text())
    assert about["provenance"] == {"A": origin["A"].texts()}


@pytest.mark.parametrize(
    ("columns", "clean", "failing", "scale"),
    [
        (1, True, (), 1), (1, False, (), 1), (1, False, (0,), 1), (1, True, (), 2), (3, True, (1,), 1), (3, False, (), 1),
        (3, False, (1,), 2), (3, False, (0,), 1), (3, True, (0, 1, 2), 1),
    ],
)  # fmt: skip
def test_what_is_measured_of_an_image(columns: int, clean: bool, failing: tuple[int, ...], scale: int) -> None:
    """Against metrics that name their images, which a table of a few rules has."""
    noisy = RNG.random((1, 3, 70, 80), np.float32)
    results = [None if n in failing else RNG.random((1, 3, 70 * scale, 80 * scale), np.float32) for n in range(columns)]
    titles = ["A", "B", "C"][:columns]
    picture = RNG.random((1, 3, 70 * scale, 80 * scale), np.float32) if clean else None
    reference = Reference.of(picture, results, titles)
    times, failures = [1.0, 2.0, 3.0][:columns], ["why a", "why b", ""][:columns]
    found = comparison.measured("x.png", "n", reference, noisy, results, times, ["input", *titles], failures)
    made = [result for result in results if result is not None]
    grown = comparison.enlarged(noisy, made[0]) if made else noisy
    first = results[0] if columns > 1 else None
    against = picture if picture is not None else first
    expected = [
        comparison.figures(picture, grown) if clean and against is picture and grown.shape == picture.shape else None
    ]
    for n, result in enumerate(results):
        known = result is not None and against is not None and against is not result
        expected.append(comparison.figures(against, result, times[n]) if known else None)
    for n, (figure, wanted) in enumerate(zip(found.figures, expected, strict=True)):
        if wanted is not None:
            assert (figure.psnr, figure.ssim) == (wanted.psnr, wanted.ssim)
        else:
            assert np.isnan([figure.psnr, figure.ssim]).all()
        spent = nan if n == 0 else times[n - 1]
        np.testing.assert_equal(figure.milliseconds, spent)
        failed = n > 0 and results[n - 1] is None
        assert figure.failure == ((failures[n - 1] or "it has no result") if failed else "")
    title = "the clean image" if against is picture and clean else "A" if against is not None else ""
    assert (found.name, found.noise, found.reference, found.scale) == ("x.png", "n", title, scale if made else 1)
    names = ["clean"] * (against is picture and clean) + ["input", *titles]
    assert [each.name for each in found.shown] == names
    images = [*([picture] if names[0] == "clean" else []), grown, *results]
    for each, image in zip(found.shown, images, strict=True):
        if image is None:
            assert (each.whole, each.part) == (b"", b"")
            continue
        y, x = found.worst
        np.testing.assert_array_equal(pixels(each.part), bytes_of(image[..., y : y + 64, x : x + 64]))
        np.testing.assert_array_equal(pixels(each.whole), bytes_of(comparison.thumbnail(image)))
    total = np.zeros(grown.shape[2:])
    for result in made or [noisy]:
        base = against if against is not None else grown
        total += ((result.astype(np.float64) - base) ** 2)[0].sum(0)
    best = max(
        ((y, x) for y in range(total.shape[0] - 63) for x in range(total.shape[1] - 63))
        if scale == 1
        else [found.worst],
        key=lambda at: total[at[0] : at[0] + 64, at[1] : at[1] + 64].sum(),
    )
    y, x = found.worst
    assert total[y : y + 64, x : x + 64].sum() >= 0.98 * total[best[0] : best[0] + 64, best[1] : best[1] + 64].sum()


def pixels(data: bytes) -> np.ndarray:
    """An encoded image as H x W x C bytes."""
    with Image.open(io.BytesIO(data)) as image:
        found = np.asarray(image.convert("RGB"))
    return found


def bytes_of(image: np.ndarray) -> np.ndarray:
    levels = np.floor(np.clip(image[0].transpose(1, 2, 0), 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)
    return levels if levels.shape[2] == 3 else np.repeat(levels[:, :, :1], 3, axis=2)


def test_errors_of_values_that_are_not_finite_or_out_of_range() -> None:
    reference = np.array([[[[0.5, -2.0, 0.25, 1.0]]]], np.float32)
    results = [np.array([[[[1.5, 0.5, np.nan, 1.0]]]], np.float32), np.array([[[[0.5, 0.0, 0.5, -9.0]]]], np.float32)]
    np.testing.assert_allclose(comparison.squared_error(reference, results), [[0.25, 0.25, 1.0625, 1.0]])


@pytest.mark.parametrize(("channels", "kept"), [(1, [0]), (2, [0]), (3, [0, 1, 2]), (5, [0, 1, 2])])
def test_channels_of_an_image_on_a_page(channels: int, kept: list[int]) -> None:
    image = RNG.random((1, channels, 5, 7), np.float32)
    np.testing.assert_array_equal(pixels(comparison.encoded(image)), bytes_of(image[:, kept]))


def test_an_image_is_enlarged_by_bicubic_interpolation() -> None:
    image = RNG.random((1, 2, 5, 7), np.float32)
    made = comparison.enlarged(image, np.zeros((1, 2, 10, 21), np.float32))
    wanted = [np.asarray(Image.fromarray(each).resize((21, 10), Image.Resampling.BICUBIC)) for each in image[0]]
    np.testing.assert_array_equal(made[0], wanted)
    assert comparison.enlarged(image, np.zeros((1, 9, 5, 7), np.float32)) is image


@pytest.mark.parametrize(
    ("made", "scale"),
    [
        ((1, 3, 4, 6), 1), ((1, 3, 8, 12), 2), ((1, 3, 8, 6), 0), ((1, 3, 4, 12), 0), ((1, 2, 4, 6), 0), ((1, 3, 9, 13), 0),
        ((1, 3, 2, 3), 0), ((3, 4, 6), 0), ((2, 3, 4, 6), 0), ((1, 3, 12, 18), 3),
    ],
)  # fmt: skip
def test_the_scale_of_a_result(made: tuple[int, ...], scale: int) -> None:
    assert comparison.scale_of(np.zeros(made, np.float32), np.zeros((1, 3, 4, 6), np.float32)) == scale


def test_images_of_a_folder_and_their_clean_versions(tmp_path: Path) -> None:
    folder, clean = tmp_path / "in", tmp_path / "clean"
    for each in (folder, clean):
        each.mkdir()
    for name, size in (("b.png", (4, 3)), ("a.png", (6, 5)), (".hidden.png", (4, 3)), ("c.JPG", (4, 3))):
        Image.new("L", size, 100).save(folder / name, "JPEG" if name.endswith("JPG") else "PNG")
    (folder / "d.png").mkdir()
    (folder / "notes.txt").touch()
    assert [path.name for path in comparison.images_in(folder)] == ["a.png", "b.png", "c.JPG"]
    assert comparison.images_in(folder / "b.png") == [folder / "b.png"]
    messages = []
    for call in (
        lambda: comparison.images_in(clean),
        lambda: comparison.images_in(tmp_path / "nothing"),
        lambda: comparison.clean_version(folder / "a.png", clean),
        lambda: comparison.images_in(folder / "notes.txt"),
    ):
        with pytest.raises(DiagnosticError) as failed:
            call()
        (found,) = failed.value.diagnostics
        messages.append((found.code, found.message, found.file))
    assert messages[:3] == [
        ("no-pictures", "the folder has no images", str(clean)),
        ("no-pictures", "the folder does not exist", str(tmp_path / "nothing")),
        ("no-clean-image", f"there is no clean version of a.png in {clean}", str(folder / "a.png")),
    ]
    assert messages[3][0] == "unknown-format"
    Image.new("RGB", (12, 10), (255, 0, 0)).save(clean / "a.png")
    noisy = np.zeros((1, 1, 5, 6), np.float32)
    read = comparison.read_clean(folder / "a.png", clean, noisy)
    assert read.shape == (1, 1, 10, 12)
    np.testing.assert_array_equal(comparison.read_clean(folder / "a.png", clean / "a.png", noisy), read)
    with pytest.raises(DiagnosticError) as failed:
        comparison.read_clean(folder / "a.png", clean, np.zeros((1, 3, 7, 6), np.float32))
    (found,) = failed.value.diagnostics
    assert (found.message, found.file) == ("the clean image is 12 x 10 pixels, the noisy one 6 x 7", "a.png")
    with pytest.raises(DiagnosticError) as failed:
        comparison.check_same_size(read, noisy, "a.png")
    (found,) = failed.value.diagnostics
    assert (found.message, found.file) == ("the clean image is 12 x 10 pixels, the results are 6 x 5", "a.png")
    comparison.check_same_size(noisy, noisy, "a.png")


@pytest.mark.parametrize(
    ("psnr", "text"), [(1.005, "1.00"), (inf, "inf"), (nan, "-"), (-3.0, "-3.00"), (-inf, "inf"), (99.999, "100.00")]
)
def test_metrics_as_text(psnr: float, text: str) -> None:
    assert comparison.psnr_text(psnr) == text
    assert (comparison.ssim_text(0.98765), comparison.ssim_text(nan), comparison.ssim_text(inf)) == ("0.9877", "-", "-")
    assert (comparison.ms_text(1234.5), comparison.ms_text(0.012345), comparison.ms_text(nan)) == (
        "1234",
        "0.0123",
        "-",
    )


# --- pages ---------------------------------------------------------------------------------------------------------


def test_a_page_escapes_everything(tmp_path: Path) -> None:
    page = Page('a < "b"')
    page.heading("1 < 2")
    page.text("'a' & b")
    page.code("<x>\n  y")
    page.picture(tmp_path / 'a"b.png', 'c > "d"')
    page.picture_inside(b"\x89PNG", 'e "f"')
    page.picture_inside(b"RIFFx", "g", width=9)
    page.table(("<h>", "n"), [("<c>", "1"), ("d", "2")], numbers=(1,))
    page.write(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text("utf-8")
    head, _, body = text.partition("</style>")
    assert head.startswith(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>a &lt; &quot;b&quot;</title><style>'
    )
    assert body == (
        "<h1>a &lt; &quot;b&quot;</h1><h2>1 &lt; 2</h2><p>&#x27;a&#x27; &amp; b</p><pre>&lt;x&gt;\n  y</pre>"
        '<figure><img src="a&quot;b.png" alt="c &gt; &quot;d&quot;"><figcaption>c &gt; &quot;d&quot;</figcaption></figure>'
        '<figure><img src="data:image/png;base64,iVBORw==" alt="e &quot;f&quot;"><figcaption>e &quot;f&quot;</figcaption></figure>'
        '<figure><img src="data:image/webp;base64,UklGRng=" alt="g" class=enlarged width="9"><figcaption>g</figcaption></figure>'
        "<table><thead><tr><th>&lt;h&gt;</th><th class=number>n</th></tr></thead><tbody><tr><td>&lt;c&gt;</td><td class=number>1</td></tr>"
        "<tr><td>d</td><td class=number>2</td></tr></tbody></table></html>\n"
    )
    with pytest.raises(DiagnosticError, match="unknown-format"):
        page.write(tmp_path / "p.txt")


@pytest.mark.parametrize("gpu", ["", "a card"])
def test_the_machine_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: str) -> None:
    from designer.profiling.machine import Machine

    monkeypatch.setattr("designer.profiling.machine.this_machine", lambda: Machine("a processor", 3, gpu, "a system"))
    monkeypatch.setattr("app.reports.provenance_table.versions", lambda: {"torch": "2", "numpy": "1"})
    page = Page("t")
    add_machine(page)
    page.write(tmp_path / "p.html")
    cells = [line.strip(" |") for line in _all_lines(tmp_path / "p.html")[-6:]]
    graphics = ["graphics | a card"] if gpu else []
    assert cells[-5 - len(graphics) :] == [
        "processor | a processor",
        "cores | 3",
        "system | a system",
        *graphics,
        "numpy | 1",
        "torch | 2",
    ]


def _all_lines(path: Path) -> list[str]:
    from page_text import Page as Reader

    return [line for line in Reader(path.read_text("utf-8")).lines if line.strip()]


# --- images of an analysis -----------------------------------------------------------------------------------------


def signed(values: np.ndarray) -> np.ndarray:
    """Green above zero and red below, brightest at the largest magnitude."""
    values = np.nan_to_num(values)
    scaled = values / max(float(np.abs(values).max()), 1e-12)
    return bytes_of(np.stack([-scaled, scaled, 0 * scaled])[None].astype(np.float32))


def test_a_tensor_is_green_above_zero_and_red_below() -> None:
    values = np.array([[1.0, -4.0, 2.0], [0.0, np.nan, -0.5]], np.float32)
    np.testing.assert_array_equal(pixels(analysis_report._signed(values)), signed(values))
    assert not pixels(analysis_report._signed(np.zeros((2, 2), np.float32))).any()
    image = RNG.random((1, 3, 4, 5), np.float32)
    np.testing.assert_array_equal(pixels(analysis_report._picture(image, "image")), bytes_of(image))
    np.testing.assert_array_equal(pixels(analysis_report._picture(image - 0.5, "tensor")), signed(image[0, 0] - 0.5))


@pytest.mark.parametrize(
    ("shape", "columns", "down", "across"),
    [
        ((1, 3, 4, 5), 3, 1, 1), ((2, 11, 4, 5), 8, 1, 1), ((1, 2, 256, 128), 2, 2, 2), ((1, 2, 129, 3), 2, 2, 2),
        ((1, 2, 2, 600), 2, 2, 5), ((1, 70, 2, 2), 8, 1, 1), ((1, 1, 128, 128), 1, 1, 1),
    ],
)  # fmt: skip
def test_the_channels_of_a_tensor_on_one_sheet(shape: tuple[int, ...], columns: int, down: int, across: int) -> None:
    tensor = RNG.normal(size=shape).astype(np.float32)
    height, width, count = shape[2] // down, shape[3] // across, min(shape[1], 64)
    sheet = np.zeros((-(-count // columns) * (height + 2), columns * (width + 2)), np.float32)
    for n in range(count):
        y, x = n // columns * (height + 2), n % columns * (width + 2)
        cut = tensor[0, n, : height * down, : width * across]
        sheet[y : y + height, x : x + width] = cut.reshape(height, down, width, across).mean((1, 3))
    made = pixels(analysis_report._sheet(tensor)).astype(int)
    assert made.shape[:2] == sheet.shape
    assert np.abs(made - signed(sheet)).max() <= 1


# --- the tour ------------------------------------------------------------------------------------------------------


def test_channels_of_the_tour_are_next_to_each_other() -> None:
    tensor = np.zeros((1, 5, 2, 3), np.float32)
    tensor[0, :, 0, 0] = (2.0, -1.0, 0.5, -2.0, 1.0)
    grid = channel_grid(tensor, columns=3, gap=1)[0]
    assert grid.shape == (3, 5, 11)
    top = float(np.quantile(np.abs(tensor), 0.995))
    for n, value in enumerate(tensor[0, :, 0, 0]):
        y, x = n // 3 * 3, n % 3 * 4
        np.testing.assert_allclose(grid[:, y, x], (max(-value, 0) / top, max(value, 0) / top, 0), rtol=1e-6)
        assert not grid[:, y + 1, x + 2].any()
    np.testing.assert_array_equal(grid[:, 2], np.float32(0.2))
    np.testing.assert_array_equal(grid[:, :, 3], np.float32(0.2))
    np.testing.assert_array_equal(grid[:, 3, 8:], np.float32(0.2))  # there is no sixth channel
    assert np.isfinite(channel_grid(np.zeros((1, 1, 2, 2), np.float32))).all()


TRAINER = """
import json, sys
from pathlib import Path
Path("words.json").write_text(json.dumps(sys.argv[1:]))
print("a warning")
print('{"event": "step", "step": 1, "steps": 2, "loss": 0.5, "lr": 0.1, "seconds": 1, "steps_per_second": 1}')
print('{"event": "validation", "step": 1, "psnr": 30.126, "noisy_psnr": 20.5}')
print('{"event": "validation", "step": 2}')
print('{"event": "validation", "step": 3, "psnr": 31, "noisy_psnr": 20.5}')
for name in ("curves", "before_after"):
    Path(name + ".png").write_bytes(name.encode())
"""


def tour_of(folder: Path, ending: str) -> Tour:
    from rich.console import Console

    made = Tour(folder, Console(quiet=True), 7)
    made.project.mkdir()
    (made.project / "train.py").write_text(TRAINER + ending)
    return made


def test_the_tour_trains_as_a_user_would(tmp_path: Path) -> None:
    import samples

    tour = tour_of(tmp_path, "")
    tour.train()
    tour.page.write(tmp_path / "p.html")
    lines = _all_lines(tmp_path / "p.html")
    words = "--noise 25 --steps 7 --batch 8 --validate-every 30 --threads 2 --json-progress"
    text = (tmp_path / "p.html").read_text()
    assert f"<pre>python train.py --data photographs {words}</pre>" in text
    assert json.loads((tour.project / "words.json").read_text()) == ["--data", str(samples.PHOTOGRAPHS), *words.split()]
    rows = [line.replace(" |# ", "|") for line in lines if "|#" in line]
    assert rows == ["|step|noisy PSNR (dB)|PSNR (dB)", "|1|20.50|30.13", "|3|20.50|31.00"]
    assert (tmp_path / "training_curves.png").read_bytes() == b"curves"
    assert (tmp_path / "training_before_after.png").read_bytes() == b"before_after"
    assert "Training: loss and PSNR" in text
    assert "Training: noisy, denoised, original" in text
    assert tour.trained == tour.project / "weights"


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ('print(\'{"event": "error", "message": "the loss is NaN"}\')', "the loss is NaN"),
        ("sys.exit(3)", "train.py ended with status 3"),
    ],
)
def test_a_training_of_the_tour_that_fails_says_why(tmp_path: Path, ending: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as failed:
        tour_of(tmp_path, ending).train()
    assert failed.value.diagnostics[0].message == message


def test_profiles_without_peaks_have_no_roofline(tmp_path: Path) -> None:
    """The figures of a page, in their order."""
    from app.reports import profile_page

    asked: list[Any] = []
    found = [*everything().runs, *(replace(run, size="12x8") for run in runs().values())]
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(profile_page, "figure_png", lambda name, run, sweep=None: asked.append((name, run)) or PIXEL)
        profile_page.write_page(tmp_path / "p.html", Profile(everything().machine, "net", tuple(found)))
    expected: list[Any] = []
    for run in found:
        known = run.peaks is not None and run.peaks.flops_per_s.value and run.peaks.memory_bytes_per_s.value
        expected += [("roofline", run)] * bool(known) + [("memory", run)] * (run.peak_memory is not None)
    for axis in ("batch", "size"):
        expected += [(axis, sweep.runs[0]) for sweep in sweeps(found, axis)]
    assert asked == expected
    check_lines("reports/profile_page.txt", page_lines(tmp_path / "p.html"))
