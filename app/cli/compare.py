"""`layerwright compare`: compare networks on the same images with the same noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from app.cli.console import err, out
from app.cli.options import SeedOption, ThreadsOption, TrustOption
from app.reports.page import PAGES
from designer.files.tables import JSON

if TYPE_CHECKING:
    from app.reports.comparison import Row


def compare(
    files: Annotated[
        list[Path], typer.Argument(metavar="A B ...", help="Model files; a file can be given more than once.")
    ],
    images: Annotated[Path, typer.Option("--images", metavar="DIR", help="An image or a folder of images.")],
    noise: Annotated[
        list[str] | None,
        typer.Option(help="KIND:SCALE as in a Noise layer, for instance gaussian:25/255. Repeatable."),
    ] = None,
    clean: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Clean images with the same file names, if --images are noisy or small."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise.")] = 0,
    weights: Annotated[
        list[Path] | None, typer.Option("--weights", help="Weights, once for all networks or once for each.")
    ] = None,
    random_weights: SeedOption = None,
    engine: Annotated[list[str] | None, typer.Option(help="Engine, once for all networks or once for each.")] = None,
    precision: Annotated[
        list[str] | None, typer.Option(help="Precision (fp32, fp16, bf16), once for all networks or once for each.")
    ] = None,
    layout: Annotated[
        list[str] | None, typer.Option(help="nchw or nhwc, once for all networks or once for each.")
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="cpu or cuda, once for all networks or once for each.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A variant of the network, once for all or once for each; an empty name for the network itself.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="OUT", help=f"Write a report: {PAGES.write_choices}.")
    ] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help=f"Write the values: {JSON.write_choices}.")
    ] = None,
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Compare networks on the same images with the same noise: PSNR and SSIM relative to the clean images.

    Without --noise and --clean, networks are compared to the first one. Networks that enlarge are measured against
    --clean images in the size of their results, next to bicubic interpolation.
    """
    from app.cli import compare_request
    from app.reports import comparison
    from designer.runtime.api import RunOptions

    for path, table in ((report, PAGES), (json_out, JSON)):
        if path is not None:
            table.writer(path)  # refuses unknown formats before anything runs
    request = compare_request.CompareArguments(
        files, images, clean, noise or (), seed, weights or (), random_weights, engine or (), RunOptions(threads=threads), report,
        trust_custom or (), precision or (), layout or (), device or (), variant or (),
    )  # fmt: skip
    found = compare_request.compare(request, lambda text: err.print(text, highlight=False))
    columns, rows, origin = found
    for name in dict.fromkeys(row.noise for row in rows):
        out.print(_table(name, columns, [row for row in rows if row.noise == name]))
    out.print(comparison.reference_text(rows))
    times = [(n, f.milliseconds) for n, f in zip(columns[1:], comparison.means(rows)[1:], strict=True)]
    measured = [f"{name} {comparison.ms_text(time)} ms" for name, time in times if not isnan(time)]
    if measured:
        out.print("mean time: " + ", ".join(measured))
    if report is not None:
        from app.reports.comparison_page import write_report

        write_report(report, " and ".join(columns[1:]), columns, rows, origin)
        out.print(f"wrote {report}", highlight=False)
    if json_out is not None:
        JSON.writer(json_out)(json_out, f"{compare_request.to_json(request, found)}\n")
        out.print(f"wrote {json_out}", highlight=False)


def _table(noise: str, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    from app.reports import comparison

    table = Table(title=noise if noise != columns[0] else None)
    for index, heading in enumerate(comparison.headings(columns, rows, times=False)):
        table.add_column(heading, justify="right" if index else "left", no_wrap=index == 0)
    for line in comparison.summary(columns, rows, times=False):
        table.add_row(*line)
    return table
