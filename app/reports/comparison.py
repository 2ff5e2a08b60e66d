"""Comparison of networks: a common input, metrics against a reference, worst regions, a table.

Shared by the command line and the window, and independent of how networks run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designer.files.tables import as_cells
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr
from designer.units import digits, dims_text

if TYPE_CHECKING:
    from analysis_layers.noise import Noise

ImageArray = NDArray[np.float32]  # 1 x C x H x W

CROP = 64  # pixels of the worst region's side
ENLARGED = 3
THUMBNAIL = 320  # pixels of the longer side of an image in a table of many
LETTERS = "ABCD"
CLEAN = "the clean image"


@dataclass(frozen=True, slots=True)
class ImageMetrics:
    """PSNR in dB and SSIM of one image against the reference, and the run time; unknown values are nan.

    `failure` says why a variant has no result; it is empty if it has one.
    """

    psnr: float
    ssim: float
    milliseconds: float = nan
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """An image of a page as WebP: the whole, reduced, and the worst region. Both are empty if the variant failed."""

    name: str
    whole: bytes
    part: bytes


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of the metrics: the clean image, or the result of a variant (`column`), or none."""

    picture: ImageArray | None = None
    title: str = ""
    column: int | None = None  # 1 is the first variant

    @classmethod
    def clean(cls, picture: ImageArray) -> Reference:
        return cls(picture, CLEAN)

    @classmethod
    def first(cls, results: Sequence[ImageArray | None], titles: Sequence[str]) -> Reference:
        """The first of several variants; none if it failed or is the only one."""
        if len(results) < 2 or results[0] is None:
            return cls()
        return cls(results[0], titles[0], 1)

    @classmethod
    def of(cls, clean: ImageArray | None, results: Sequence[ImageArray | None], titles: Sequence[str]) -> Reference:
        """The clean image if there is one in the size of the results, else the first variant."""
        sizes = {result.shape for result in results if result is not None}
        return cls.clean(clean) if clean is not None and sizes <= {clean.shape} else cls.first(results, titles)


@dataclass(frozen=True, slots=True)
class Row:
    """One image with one noise. `figures` are the metrics of the input and of each variant; `worst` is (row, column)."""

    name: str
    noise: str
    figures: tuple[ImageMetrics, ...]
    worst: tuple[int, int]
    shown: tuple[Shown, ...] = ()
    reference: str = ""  # title of the reference; empty without one
    scale: int = 1  # by which the results, and for their comparison the input, are larger than the images


def read_noise(text: str, seed: int) -> Noise | None:
    """`gaussian:25/255` or `gaussian:0.1` as a Noise layer with that kind and scale; None for an empty text."""
    from analysis_layers.noise import SCALES, Noise

    if not text:
        return None
    kind, _, amount = text.partition(":")
    number, slash, divisor = amount.partition("/")
    try:
        scale = float(number) / float(divisor if slash else 1)
        if kind not in SCALES or not 0 <= scale <= 100:
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                tr("--noise {value}: write KIND:SCALE", value=text),
                remedy=tr("for instance gaussian:25/255; kinds are {kinds}", kinds=", ".join(SCALES)),
            )
        ) from None
    if scale > SCALES[kind].most:
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                tr(
                    "--noise {value}: the scale of {kind} is at most {most:g}",
                    value=text,
                    kind=kind,
                    most=SCALES[kind].most,
                ),
                remedy=tr("write {kind}:25/255 for 25 levels of an 8-bit image", kind=kind),
            )
        )
    return Noise(kind=kind, scale=scale, seed=seed)


def disturbed(clean: ImageArray, noise: Noise | None) -> ImageArray:
    """The image that every variant gets. Values outside 0..1 are kept, as in training and with a Noise layer."""
    return noise.evaluate([clean])[0] if noise is not None else clean


def images_in(folder: Path) -> list[Path]:
    """The images of a folder by name, or the one file."""
    from designer.runtime.images import IMAGES

    if folder.is_file():
        IMAGES.reader(folder)
        return [folder]
    found = sorted(p for p in folder.glob("*") if IMAGES.reads(p) and p.is_file() and not p.name.startswith("."))
    if not found:
        raise DiagnosticError(
            Diagnostic(
                "no-pictures",
                tr("the folder has no images") if folder.is_dir() else tr("the folder does not exist"),
                file=str(folder),
                remedy=tr("choose a folder with {read_choices} files", read_choices=IMAGES.read_choices),
            )
        )
    return found


def scale_of(made: ImageArray, picture: ImageArray) -> int:
    """By which whole number `made` is wider and higher than `picture`, 1 for equal sizes; 0 if it has other channels or sides."""
    scale = made.shape[-1] // picture.shape[-1] if made.ndim == picture.ndim == 4 else 0
    height, width = picture.shape[-2:]
    return scale if made.shape == (*picture.shape[:-2], scale * height, scale * width) else 0


def check_comparable(
    name: str, output: str, made: ImageArray, picture: ImageArray, other: ImageArray | None = None
) -> None:
    """Raise DiagnosticError unless the output is an image like the input or a larger one, in the size of another result."""
    if not scale_of(made, picture):
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                tr(
                    "the output '{output}' of {name} is {shape}, not an image like its input",
                    output=output,
                    name=name,
                    shape=dims_text(made.shape),
                ),
                layer=output,
                remedy=tr(
                    "compare networks whose output has the channels of their input, and its size or a whole multiple of it"
                ),
            )
        )
    if other is not None and other.shape != made.shape:
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                tr(
                    "the output '{output}' of {name} is {size} pixels, that of others {size2}",
                    output=output,
                    name=name,
                    size=pixels_text(made),
                    size2=pixels_text(other),
                ),
                layer=output,
                remedy=tr("compare networks that enlarge the image by the same factor"),
            )
        )


def enlarged(picture: ImageArray, made: ImageArray) -> ImageArray:
    """The image in the size of what a network made of it, by bicubic interpolation; as it is where the sizes are equal."""
    from PIL import Image

    height, width = made.shape[-2:]
    if picture.shape[-2:] == (height, width):
        return picture
    channels = [Image.fromarray(channel).resize((width, height), Image.Resampling.BICUBIC) for channel in picture[0]]
    return np.stack([np.asarray(channel, np.float32) for channel in channels])[None]


def pixels_text(picture: ImageArray) -> str:
    """Width and height: `640 x 480`."""
    return f"{picture.shape[-1]} x {picture.shape[-2]}"


def clean_version(path: Path, clean: Path) -> Path:
    """The clean version of an image: `clean` itself, or the file of the same name in that folder."""
    found = clean / path.name if clean.is_dir() else clean
    if not found.is_file():
        raise DiagnosticError(
            Diagnostic(
                "no-clean-image",
                tr("there is no clean version of {name} in {clean}", name=path.name, clean=clean),
                file=str(path),
                remedy=tr("name each clean image like the noisy one, or leave the image out"),
            )
        )
    return found


def read_clean(path: Path, clean: Path, noisy: ImageArray) -> ImageArray:
    """The clean version of the image in `path`: the file `clean`, or the one of the same name in that folder.

    Raises DiagnosticError where there is none, and where its size is neither that of `noisy` nor a whole multiple of it.
    """
    from designer.runtime.images import read_image

    file = clean_version(path, clean)
    found = read_image(file, noisy.shape[1])
    if not scale_of(found, noisy):
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                tr(
                    "the clean image is {sizes} pixels, the noisy one {sizes2}",
                    sizes=pixels_text(found),
                    sizes2=pixels_text(noisy),
                ),
                file=file.name,
                remedy=tr("choose the clean version of the same image"),
            )
        )
    return found


def check_same_size(clean: ImageArray, made: ImageArray, file: str) -> None:
    """Raise DiagnosticError unless a clean image has the size of the results."""
    if clean.shape != made.shape:
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                tr(
                    "the clean image is {sizes} pixels, the results are {sizes2}",
                    sizes=pixels_text(clean),
                    sizes2=pixels_text(made),
                ),
                file=file,
                remedy=tr("choose the clean version in the size of the results"),
            )
        )


def figures(reference: ImageArray, made: ImageArray, milliseconds: float = nan) -> ImageMetrics:
    from designer.metrics import psnr, ssim

    return ImageMetrics(psnr(reference, made), ssim(reference, made), milliseconds)


def squared_error(reference: ImageArray, results: Iterable[ImageArray]) -> NDArray[np.float64]:
    """H x W: the sum of the squared errors of all results and channels, values clipped to 0..1; 1 where a value is NaN."""
    total = np.zeros(reference.shape[2:])
    for item in results:
        error = np.square(np.clip(item, 0, 1) - np.clip(reference, 0, 1), dtype=np.float64)[0]
        total += np.nan_to_num(error, nan=1.0).sum(0)
    return total


def measured(
    name: str,
    noise: str,
    reference: Reference,
    noisy: ImageArray,
    results: Sequence[ImageArray | None],
    times: Sequence[float],
    titles: Sequence[str] = (),
    failures: Sequence[str] = (),
) -> Row:
    """The figures of one image; with `titles` (of the input, then of the variants) its images for a page too.

    A variant that failed has None among the results, the reason among `failures`, and figures that are nan. So have the reference
    itself and all without a reference; the input is measured against clean images only.
    """
    from designer.metrics import worst_region

    made = [result for result in results if result is not None]
    scale = scale_of(made[0], noisy) if made else 1
    noisy = enlarged(noisy, made[0]) if made else noisy
    is_clean = reference.picture is not None and reference.column is None
    found = [
        figures(reference.picture, noisy) if is_clean and reference.picture is not None else ImageMetrics(nan, nan)
    ]
    for column, (result, spent) in enumerate(zip(results, times, strict=True), 1):
        if result is None:
            why = failures[column - 1] if failures else ""
            found.append(ImageMetrics(nan, nan, spent, why or tr("it has no result")))
        elif reference.picture is None or column == reference.column:
            found.append(ImageMetrics(nan, nan, spent))
        else:
            found.append(figures(reference.picture, result, spent))
    worst = worst_region(
        squared_error(noisy if reference.picture is None else reference.picture, made or [noisy]), CROP
    )
    shown: tuple[Shown, ...] = ()
    if titles:
        pictures = [(titles[0], noisy), *zip(titles[1:], results, strict=True)]
        if is_clean:
            pictures.insert(0, ("clean", reference.picture))
        shown = tuple(_shown(n, p, worst) for n, p in pictures)
    return Row(name, noise, tuple(found), worst, shown, reference.title, scale)


def reference_text(rows: Sequence[Row]) -> str:
    """What the metrics of a table are measured against, as a sentence."""
    titles = list(dict.fromkeys(row.reference for row in rows))
    scales = sorted({row.scale for row in rows} - {1})
    grown = f" The input is enlarged {' and '.join(map(str, scales))} times by bicubic interpolation." if scales else ""
    if not any(titles):
        remedy = (
            "choose the clean images in the size of the results" if scales else "add noise, or choose the clean images"
        )
        return f"PSNR and SSIM need a reference: {remedy}.{grown}"
    against = " or ".join(t or "nothing" for t in titles)
    return f"PSNR and SSIM are measured against {against}, values clipped to 0..1.{grown}"


def headings(columns: Sequence[str], rows: Sequence[Row], *, times: bool = True) -> list[str]:
    """Titles of the table's columns: PSNR and SSIM of each column, then with `times` those of the variants."""
    first = ["image", "noise"] if _several(rows) else ["image"]
    return [
        *first,
        *(text for name in columns for text in (f"{name} PSNR (dB)", "SSIM")),
        *(f"{name} (ms)" for name in columns[1:] if times),
    ]


def summary(columns: Sequence[str], rows: Sequence[Row], *, times: bool = True) -> Iterator[list[str]]:
    """The table: for each noise a row an image, then mean and deviation."""
    several = _several(rows)
    for noise in dict.fromkeys(row.noise for row in rows):
        part = [row for row in rows if row.noise == noise]
        first = [noise] if several else []
        for row in part:
            yield [row.name, *first, *_texts(row.figures, times)]
        for title, found in (("mean", means(part)), ("deviation", deviations(part))):
            yield [title, *first, *_texts(found, times)]


def means(rows: Sequence[Row]) -> tuple[ImageMetrics, ...]:
    """Means of each column without infinite PSNR, or infinity if there is no other value."""
    return tuple(_combined(fmean, column) for column in _columns(rows))


def deviations(rows: Sequence[Row]) -> tuple[ImageMetrics, ...]:
    """Standard deviations of the whole population."""
    return tuple(_combined(pstdev, column) for column in _columns(rows))


def as_dict(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, Any]:
    """Plain data for JSON; what is infinite or not known is None."""

    def plain(found: Sequence[ImageMetrics]) -> list[dict[str, float | str | None]]:
        return [
            {"psnr": _finite(f.psnr), "ssim": _finite(f.ssim), "ms": _finite(f.milliseconds)}
            | ({"failure": f.failure} if f.failure else {})
            for f in found
        ]

    noises = dict.fromkeys(row.noise for row in rows)
    parts = {noise: [row for row in rows if row.noise == noise] for noise in noises}
    return {
        "columns": list(columns),
        "images": [
            {
                "name": r.name,
                "noise": r.noise,
                "reference": r.reference or None,
                "scale": r.scale,
                "metrics": plain(r.figures),
                "worst": {"x": r.worst[1], "y": r.worst[0]},
            }
            for r in rows
        ],
        "mean": {noise: plain(means(part)) for noise, part in parts.items()},
        "deviation": {noise: plain(deviations(part)) for noise, part in parts.items()},
    }


def as_csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """One line for each image, noise and column, as comma-separated values; unknown and infinite values as `-`, `inf`."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("image", "noise", "variant", "psnr_db", "ssim", "time_ms", "reference", "failure"))
    for row in rows:
        for name, found in zip(columns, row.figures, strict=True):
            values = (psnr_text(found.psnr), ssim_text(found.ssim), ms_text(found.milliseconds))
            writer.writerow(as_cells((row.name, row.noise, name, *values, row.reference, found.failure)))
    return text.getvalue()


def psnr_text(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "-" if value != value else "inf"


def ssim_text(value: float) -> str:
    return f"{value:.4f}" if isfinite(value) else "-"


def ms_text(value: float) -> str:
    """Three significant digits, never an exponent."""
    return digits(value) if isfinite(value) else "-"


def _texts(found: Sequence[ImageMetrics], times: bool) -> list[str]:
    pairs = [text for f in found for text in (tr("failed") if f.failure else psnr_text(f.psnr), ssim_text(f.ssim))]
    return [*pairs, *(ms_text(f.milliseconds) for f in found[1:] if times)]


def _several(rows: Sequence[Row]) -> bool:
    return len({row.noise for row in rows}) > 1


def _columns(rows: Sequence[Row]) -> list[tuple[list[float], list[float], list[float]]]:
    columns = zip(*(row.figures for row in rows), strict=True)
    return [([f.psnr for f in c], [f.ssim for f in c], [f.milliseconds for f in c]) for c in columns]


def _combined(measure: Any, column: tuple[list[float], list[float], list[float]]) -> ImageMetrics:
    psnr, ssim, milliseconds = (_over(measure, values) for values in column)
    return ImageMetrics(psnr, ssim, milliseconds)


def _over(measure: Any, values: Sequence[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    return float(measure(finite)) if finite else values[0] if values else nan


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _shown(name: str, picture: ImageArray | None, worst: tuple[int, int]) -> Shown:
    if picture is None:
        return Shown(name, b"", b"")
    return Shown(name, encoded(thumbnail(picture)), encoded(region(picture, worst)))


def region(picture: ImageArray, corner: tuple[int, int]) -> ImageArray:
    """The square of CROP pixels that begins at (row, column)."""
    row, column = corner
    return picture[..., row : row + CROP, column : column + CROP]


def thumbnail(picture: ImageArray) -> ImageArray:
    """Means of square blocks, at most THUMBNAIL pixels wide and high; a smaller image as it is. A block never exceeds a narrow image."""
    block = -(-max(picture.shape[2:]) // THUMBNAIL)
    down, across = (min(block, size) for size in picture.shape[2:])
    height, width = picture.shape[2] // down, picture.shape[3] // across
    blocks = picture[..., : height * down, : width * across].reshape(*picture.shape[:2], height, down, width, across)
    means: ImageArray = blocks.mean((3, 5)) if block > 1 else picture
    return means


def encoded(picture: ImageArray) -> bytes:
    """The first one or three channels as a lossless WebP image."""
    from designer.runtime.images import encode_image

    count = picture.shape[1]
    return encode_image(picture if count in (1, 3) else picture[:, : 3 if count > 3 else 1], "WEBP")
