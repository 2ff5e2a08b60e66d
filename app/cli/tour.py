"""`layerwright tour`: the whole loop without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out


def tour(
    outdir: Annotated[Path, typer.Argument(metavar="OUTDIR")],
    steps: Annotated[int, typer.Option(min=1, help="Steps of the short training.")] = 150,
) -> None:
    """Play the whole loop without a window: design, export, train, reload, run, look. Writes an HTML page."""
    from app.reports.tour import run_tour

    page = run_tour(outdir, out, steps=steps)
    out.print(f"open {page}", markup=False)
