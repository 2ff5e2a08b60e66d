"""The comparison that is shown as a page: networks, settings, figures, images, the worst region, the folder's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from app.reports.comparison import CROP, ENLARGED, ImageArray, Row, encoded, ms_text, psnr_text, region, ssim_text
from app.reports.comparison_page import add_comparison
from app.reports.page import Page
from app.reports.provenance_table import add_machine, add_provenance
from app.ui.compare.model import CLEAN, INPUT, Measured, SideModel, region_psnr
from designer.runtime.provenance import Provenance


@dataclass(frozen=True)
class Comparison:
    """A copy of what a `SideModel` holds, for a thread. Images, titles and figures go by the same keys."""

    networks: dict[str, Provenance]
    picture: str
    noise: str
    seed: int
    titles: dict[str, str]
    pictures: dict[str, ImageArray]
    measured: Measured
    notes: list[str] = field(default_factory=list)
    region: tuple[int, int] | None = None
    gain: float = 8.0
    columns: Sequence[str] = ()
    rows: Sequence[Row] = field(default_factory=list)
    window: bytes = b""


def copy_of(
    model: SideModel,
    region: tuple[int, int] | None,
    gain: float,
    columns: Sequence[str],
    rows: Sequence[Row],
    window: bytes,
) -> Comparison:
    keys = [k for k in (CLEAN, INPUT, *model.keys) if model.pixels(k) is not None and (k != CLEAN or model.knows_clean)]
    pictures = {k: p for k in keys if (p := model.pixels(k)) is not None}
    notes = [f"{model.title(k)}: {model.made[k].note}" for k in model.keys if k in model.made and model.made[k].note]
    notes += [f"{key} failed: {error}" for key, error in zip(model.keys, model.errors, strict=False) if error]
    first = model.measured.regions.get("", ())
    return Comparison(
        model.provenance(),
        model.picture.name if model.picture is not None else "",
        model.noise.text,
        model.noise.seed,
        {k: model.title(k) for k in keys},
        pictures,
        model.measured,
        notes,
        region or (first[0] if first else None),
        gain,
        list(columns),
        list(rows),
        window,
    )


def write_comparison(path: Path, seen: Comparison) -> None:
    """Write the page (work for a thread)."""
    page = Page(" and ".join(seen.networks) or "Comparison")
    noise = (
        f"with {seen.noise} noise (seed {seen.seed}), identical for all variants"
        if seen.noise
        else "without added noise"
    )
    page.text(f"{seen.picture} {noise}. Analysis layers of the networks are passed through.")
    for note in seen.notes:
        page.text(note)
    page.heading("Networks")
    add_provenance(page, seen.networks)
    measured = seen.measured
    if measured.figures:
        page.heading("Metrics")
        page.table(("", "PSNR (dB)", "SSIM", "time (ms)", "worst region (dB)"), _figures(seen), numbers=range(1, 5))
        page.text(
            f"Against {seen.titles.get(measured.reference, measured.reference)}; values clipped to 0..1. * is the best."
        )
    _add_pictures(page, seen)
    if seen.rows:
        page.heading("Folder")
        add_comparison(page, seen.columns, seen.rows)
    if seen.window:
        page.heading("The window")
        page.picture_inside(seen.window, "The window at the time of the report")
    add_machine(page)
    page.write(path)


def _add_pictures(page: Page, seen: Comparison) -> None:
    """All images, the worst region of each, and the differences from the reference."""
    page.heading("Pictures")
    for key, picture in seen.pictures.items():
        page.picture_inside(encoded(picture), seen.titles[key])
    reference = seen.pictures.get(seen.measured.reference)
    if seen.region is not None:
        x, y = seen.region
        page.text(f"The region that begins at x {x}, y {y}, where the variants are worst:")
        for key, picture in seen.pictures.items():
            page.picture_inside(encoded(region(picture, (y, x))), seen.titles[key], width=CROP * ENLARGED)
    if reference is not None:
        page.heading(f"Differences x {seen.gain:g}")
        for key, picture in seen.pictures.items():
            if key not in (seen.measured.reference, INPUT):
                error = np.abs(np.clip(picture, 0, 1) - np.clip(reference, 0, 1)) * np.float32(seen.gain)
                page.picture_inside(encoded(error), seen.titles[key])


def _figures(seen: Comparison) -> list[tuple[str, ...]]:
    measured = seen.measured
    rows: list[tuple[str, ...]] = []
    reference = seen.pictures.get(measured.reference)
    for key, found in measured.figures.items():
        if key == measured.reference:
            rows.append((seen.titles[key], "reference", "-", ms_text(found.milliseconds), "-"))
            continue
        stars = ["* " if key in measured.best(name) else "" for name in ("psnr", "ssim")]
        regions = measured.regions.get(key)
        worst = "-"
        if regions and reference is not None:
            worst = psnr_text(region_psnr(reference, seen.pictures[key], regions[0]))
        rows.append(
            (
                seen.titles[key],
                f"{stars[0]}{psnr_text(found.psnr)}",
                f"{stars[1]}{ssim_text(found.ssim)}",
                ms_text(found.milliseconds),
                worst,
            )
        )
    return rows
