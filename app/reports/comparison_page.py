"""A comparison as a page: the table, its plot, every image, and an enlarged worst region of each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, isnan
from pathlib import Path

from app.reports.comparison import (
    CROP,
    ENLARGED,
    THUMBNAIL,
    Row,
    as_csv,
    as_dict,
    deviations,
    headings,
    means,
    psnr_text,
    reference_text,
    ssim_text,
    summary,
)
from app.reports.page import Page
from app.reports.provenance_table import add_machine, add_provenance
from designer.files.formats import Format, FormatTable
from designer.files.tables import write_table, write_text
from designer.runtime.provenance import Provenance, texts_of

MARKERS = "osD^v"


@dataclass(frozen=True, slots=True)
class Inks:
    """Colors of a plot as #rrggbb: the ground, words, fine lines, and one for each column."""

    ground: str = "#ffffff"
    text: str = "#1b1d20"
    line: str = "#9298a0"
    columns: tuple[str, ...] = ("#555b63", "#1568c3", "#b35d26", "#18836a", "#a552b8")


PAPER = Inks()


def write_report(
    path: Path, title: str, columns: Sequence[str], rows: Sequence[Row], origin: Mapping[str, Provenance]
) -> None:
    """Write the page; `origin` is by column."""
    page = Page(title)
    add_comparison(page, columns, rows)
    page.heading("Networks")
    add_provenance(page, origin)
    add_machine(page)
    page.write(path)


def add_comparison(page: Page, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Put the table, the plot and the images into a page."""
    titles = headings(columns, rows)
    first = titles.index(f"{columns[0]} PSNR (dB)")
    page.table(titles, list(summary(columns, rows)), numbers=range(first, len(titles)))
    page.text(f"{reference_text(rows)} The deviation is that of the whole population.")
    if len(rows) > 1:
        for noise in dict.fromkeys(row.noise for row in rows):
            part = [row for row in rows if row.noise == noise]
            page.picture_inside(
                plot(columns, part), f"Each line is an image; bars show mean and deviation. {noise}".strip()
            )
    if any(row.shown for row in rows):
        page.text(f"Whole images are reduced to at most {THUMBNAIL} pixels; regions have their own pixels, enlarged.")
    for row in rows:
        page.heading(f"{row.name} {row.noise}".strip())
        extra = (None,) * (len(row.shown) - len(row.figures))  # the clean image has no figures
        for item, figure in zip(row.shown, (*extra, *row.figures), strict=False):
            measured = figure is not None and not isnan(figure.psnr)
            caption = f": {psnr_text(figure.psnr)} dB, SSIM {ssim_text(figure.ssim)}" if figure and measured else ""
            if item.whole:
                page.picture_inside(item.whole, f"{item.name}{caption}")
            else:
                page.text(f"{item.name} failed: {figure.failure}" if figure else f"{item.name} failed.")
        if row.shown:
            y, x = row.worst
            page.text(
                f"The region where the variants differ most from {row.reference or 'the input'}, from x {x}, y {y}:"
            )
        for item in row.shown:
            if item.part:
                page.picture_inside(item.part, item.name, width=CROP * ENLARGED)


def plot(
    columns: Sequence[str], rows: Sequence[Row], inks: Inks = PAPER, size: tuple[float, float] = (9.0, 3.4)
) -> bytes:
    """PSNR and SSIM of every image as a PNG: a line an image, a mark a column, mean and deviation as bars.

    Safe to call from a thread: it uses no global state of matplotlib.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=110, layout="constrained", facecolor=inks.ground)
    FigureCanvasAgg(figure)
    for place, (title, values, mean, spread) in enumerate(_measures(rows)):
        axes = figure.add_subplot(1, 2, place + 1, facecolor=inks.ground)
        axes.set_title(title, color=inks.text, fontsize=10)
        axes.tick_params(colors=inks.text, labelsize=8)
        for side in axes.spines.values():
            side.set_color(inks.line)
        axes.grid(axis="y", color=inks.line, alpha=0.3, linewidth=0.6)
        for line in values:
            for (x0, y0), (x1, y1) in pairwise(enumerate(line)):
                if isfinite(y0) and isfinite(y1):
                    axes.plot((x0, x1), (y0, y1), color=inks.line, alpha=0.5, linewidth=0.7)
        for column in range(len(columns)):
            ink, mark = inks.columns[column % len(inks.columns)], MARKERS[column % len(MARKERS)]
            finite = [line[column] for line in values if isfinite(line[column])]
            axes.plot([column] * len(finite), finite, mark, color=ink, markersize=4, alpha=0.8, linestyle="none")
            if finite:
                axes.errorbar(
                    [column + 0.18], [mean[column]], yerr=[spread[column]], color=ink, fmt=mark, markersize=7, capsize=4
                )
        axes.set_xticks(range(len(columns)), [_short(name) for name in columns])
        axes.set_xlim(-0.5, len(columns) - 0.5)
    made = io.BytesIO()
    figure.savefig(made, format="png", facecolor=inks.ground)
    return made.getvalue()


def _measures(rows: Sequence[Row]) -> list[tuple[str, list[list[float]], list[float], list[float]]]:
    mean, spread = means(rows), deviations(rows)
    return [
        (
            "PSNR (dB)",
            [[f.psnr for f in row.figures] for row in rows],
            [f.psnr for f in mean],
            [f.psnr for f in spread],
        ),
        ("SSIM", [[f.ssim for f in row.figures] for row in rows], [f.ssim for f in mean], [f.ssim for f in spread]),
    ]


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"


def _write_csv(
    path: Path, title: str, columns: Sequence[str], rows: Sequence[Row], origin: Mapping[str, Provenance]
) -> None:
    write_table(path, as_csv(columns, rows), texts_of(origin))


def _write_json(
    path: Path, title: str, columns: Sequence[str], rows: Sequence[Row], origin: Mapping[str, Provenance]
) -> None:
    made = {"provenance": texts_of(origin), **as_dict(columns, rows)}
    write_text(path, f"{json.dumps(made, indent=2)}\n")


Write = Callable[[Path, str, Sequence[str], Sequence[Row], Mapping[str, Provenance]], None]
COMPARISONS: FormatTable[None, Write] = FormatTable(
    "comparisons",
    (
        Format("CSV table", (".csv",), write=_write_csv),
        Format("JSON values", (".json",), write=_write_json),
        Format("HTML page", (".html",), write=write_report),
    ),
)
