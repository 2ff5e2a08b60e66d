"""What comparing networks is made of: one noisy picture for all, figures against the clean one, worst regions, a table.

The command line and the window share it. Nothing here knows how a network is run.
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
from designer.units import digits, dims_text

if TYPE_CHECKING:
    from analysis_layers.noise import Noise

Picture = NDArray[np.float32]  # 1 x C x H x W

IN_LEVELS = ("gaussian", "uniform")  # kinds whose strength is told in levels of 255
CROP = 64  # pixels of the worst region's side
ENLARGED = 3
LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Figures:
    """PSNR in dB and SSIM of one picture against the clean one, and how long the network took (not known: nan)."""

    psnr: float
    ssim: float
    milliseconds: float = nan


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture for a page: the whole and the region where the variants are worst, enlarged, as PNG; empty: it failed."""

    name: str
    whole: bytes
    part: bytes


@dataclass(frozen=True, slots=True)
class Row:
    """One picture with one noise. `figures` are of what went in, then of each variant; `worst` is (row, column)."""

    name: str
    noise: str
    figures: tuple[Figures, ...]
    worst: tuple[int, int]
    shown: tuple[Shown, ...] = ()


def read_noise(text: str, seed: int) -> Noise | None:
    """`gaussian:25` as a noise layer's operator; gaussian and uniform count in levels of 255, the others like `scale`."""
    from analysis_layers.noise import KINDS, Noise

    if not text:
        return None
    kind, _, strength = text.partition(":")
    try:
        scale = float(strength) / (255 if kind in IN_LEVELS else 1)
        if kind not in KINDS or not 0 <= scale <= 100:
            raise ValueError
    except ValueError:
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                f"--noise {text}: write KIND:STRENGTH",
                remedy=f"for instance gaussian:25; kinds are {', '.join(KINDS)}",
            )
        ) from None
    return Noise(kind=kind, scale=scale, seed=seed)


def disturbed(clean: Picture, noise: Noise | None) -> Picture:
    """The one picture that every variant gets. Values beyond 0..1 stay, as they do in training and with a Noise layer."""
    return noise.evaluate([clean])[0] if noise is not None else clean


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder by name, or the one file."""
    from designer.runtime.images import IMAGES

    if folder.is_file():
        IMAGES.reader(folder)
        return [folder]
    found = sorted(p for p in folder.glob("*") if IMAGES.reads(p))
    if not found:
        raise DiagnosticError(
            Diagnostic(
                "no-pictures",
                "there are no pictures in the folder" if folder.is_dir() else "there is no such folder",
                file=str(folder),
                remedy=f"choose a folder with {IMAGES.read_choices} files",
            )
        )
    return found


def check_comparable(name: str, output: str, made: Picture, like: Picture) -> None:
    """Raise DiagnosticError unless the output is a picture of the size and channels of the input."""
    if made.shape != like.shape:
        shape = dims_text(made.shape)
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                f"the output '{output}' of {name} is {shape}, not a picture like its input",
                layer=output,
                remedy="compare networks whose output has the size and channels of their input",
            )
        )


def figures(reference: Picture, made: Picture, milliseconds: float = nan) -> Figures:
    from designer.metrics import psnr, ssim

    return Figures(psnr(reference, made), ssim(reference, made), milliseconds)


def squared_error(reference: Picture, results: Iterable[Picture]) -> NDArray[np.float64]:
    """H x W: the sum of the squared errors of all results and channels, values clipped to 0..1; 1 where there is no number."""
    total = np.zeros(reference.shape[2:])
    for item in results:
        error = np.square(np.clip(item, 0, 1) - np.clip(reference, 0, 1), dtype=np.float64)[0]
        total += np.nan_to_num(error, nan=1.0).sum(0)
    return total


def measured(
    name: str,
    noise: str,
    clean: Picture,
    noisy: Picture,
    results: Sequence[Picture | None],
    times: Sequence[float],
    titles: Sequence[str] = (),
) -> Row:
    """The figures of one picture; with `titles` (of what went in, then of the variants) its pictures for a page too.

    A variant that failed has None among the results, and figures that are nan.
    """
    from designer.metrics import worst_region

    made = [result for result in results if result is not None]
    found = [figures(clean, noisy)]
    for result, spent in zip(results, times, strict=True):
        found.append(figures(clean, result, spent) if result is not None else Figures(nan, nan))
    worst = worst_region(squared_error(clean, made or [noisy]), CROP)
    shown: tuple[Shown, ...] = ()
    if titles:
        pictures = (clean, noisy, *results)
        shown = tuple(_shown(n, p, worst) for n, p in zip(("clean", *titles), pictures, strict=True))
    return Row(name, noise, tuple(found), worst, shown)


def headings(columns: Sequence[str], rows: Sequence[Row], *, times: bool = True) -> list[str]:
    """Titles of the table's columns: PSNR and SSIM of each column, then with `times` those of the variants."""
    first = ["picture", "noise"] if _several(rows) else ["picture"]
    return [
        *first,
        *(text for name in columns for text in (f"{name} PSNR (dB)", "SSIM")),
        *(f"{name} (ms)" for name in columns[1:] if times),
    ]


def summary(columns: Sequence[str], rows: Sequence[Row], *, times: bool = True) -> Iterator[list[str]]:
    """The table: for each noise a row a picture, then mean and deviation."""
    several = _several(rows)
    for noise in dict.fromkeys(row.noise for row in rows):
        part = [row for row in rows if row.noise == noise]
        first = [noise] if several else []
        for row in part:
            yield [row.name, *first, *_texts(row.figures, times)]
        for title, found in (("mean", means(part)), ("deviation", deviations(part))):
            yield [title, *first, *_texts(found, times)]


def means(rows: Sequence[Row]) -> tuple[Figures, ...]:
    """Of each column; infinite PSNR is left out, and infinity where there is no other."""
    return tuple(Figures(*(_over(fmean, values) for values in column)) for column in _columns(rows))


def deviations(rows: Sequence[Row]) -> tuple[Figures, ...]:
    """Standard deviations of the whole population."""
    return tuple(Figures(*(_over(pstdev, values) for values in column)) for column in _columns(rows))


def as_dict(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, Any]:
    """Plain data for JSON; what is infinite or not known is None."""

    def plain(found: Sequence[Figures]) -> list[dict[str, float | None]]:
        return [{"psnr": _finite(f.psnr), "ssim": _finite(f.ssim), "ms": _finite(f.milliseconds)} for f in found]

    noises = dict.fromkeys(row.noise for row in rows)
    parts = {noise: [row for row in rows if row.noise == noise] for noise in noises}
    return {
        "columns": list(columns),
        "pictures": [
            {"name": r.name, "noise": r.noise, "figures": plain(r.figures), "worst": {"x": r.worst[1], "y": r.worst[0]}}
            for r in rows
        ],
        "mean": {noise: plain(means(part)) for noise, part in parts.items()},
        "deviation": {noise: plain(deviations(part)) for noise, part in parts.items()},
    }


def as_csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """The table as comma-separated values, quoted where a name needs it."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(as_cells(headings(columns, rows)))
    writer.writerows(as_cells(row) for row in summary(columns, rows))
    return text.getvalue()


def psnr_text(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else "-" if value != value else "inf"


def ssim_text(value: float) -> str:
    return f"{value:.4f}" if isfinite(value) else "-"


def ms_text(value: float) -> str:
    """Three significant digits, never an exponent."""
    return digits(value) if isfinite(value) else "-"


def _texts(found: Sequence[Figures], times: bool) -> list[str]:
    pairs = [text for f in found for text in (psnr_text(f.psnr), ssim_text(f.ssim))]
    return [*pairs, *(ms_text(f.milliseconds) for f in found[1:] if times)]


def _several(rows: Sequence[Row]) -> bool:
    return len({row.noise for row in rows}) > 1


def _columns(rows: Sequence[Row]) -> list[tuple[list[float], list[float], list[float]]]:
    columns = zip(*(row.figures for row in rows), strict=True)
    return [([f.psnr for f in c], [f.ssim for f in c], [f.milliseconds for f in c]) for c in columns]


def _over(measure: Any, values: Sequence[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    return float(measure(finite)) if finite else values[0] if values else nan


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _shown(name: str, picture: Picture | None, worst: tuple[int, int]) -> Shown:
    if picture is None:
        return Shown(name, b"", b"")
    row, column = worst
    part = picture[..., row : row + CROP, column : column + CROP].repeat(ENLARGED, -1).repeat(ENLARGED, -2)
    return Shown(name, encoded(picture), encoded(part))


def encoded(picture: Picture) -> bytes:
    """A PNG of the first one or three channels."""
    from designer.runtime.images import encode_image

    count = picture.shape[1]
    return encode_image(picture if count in (1, 3) else picture[:, : 3 if count > 3 else 1])
