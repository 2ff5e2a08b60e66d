"""`layerwright tour`: the whole workflow without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out


def tour(
    outdir: Annotated[Path, typer.Argument(metavar="OUTDIR")],
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 150,
) -> None:
    """Run the whole workflow without a window: design, export, train, reload, run, inspect. Writes an HTML page."""
    from app.reports.tour import run_tour

    page = run_tour(outdir, out, steps=steps)
    out.print(f"open {page}")
