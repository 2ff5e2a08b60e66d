"""`layerwright profile`: measure the operators of a network."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app.cli.console import err, out
from app.cli.options import (
    DeviceOption,
    FileArgument,
    SeedOption,
    ThreadsOption,
    TrustOption,
    VariantOption,
    WeightsOption,
)
from app.reports.page import PAGES
from designer.files.settings import DEFAULT_ENGINE
from designer.profiling.configurations import grid_of
from designer.profiling.profile_files import PROFILES, load_profile, save_profile

if TYPE_CHECKING:
    from designer.graph.graph import Graph
    from designer.profiling.schema import Profile


T = TypeVar("T")


class CounterMode(StrEnum):
    """Whether hardware counters are read: if they can be, never, or with an error if they cannot be."""

    AUTO = "auto"
    OFF = "off"
    REQUIRE = "require"


def profile(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="E,E", help="Engines listed by `layerwright engines`; several are measured in turns and compared."
        ),
    ] = DEFAULT_ENGINE,
    precision: Annotated[
        str, typer.Option(metavar="P,P", help="fp32, fp16 or bf16; several are measured in turns and compared.")
    ] = "fp32",
    layout: Annotated[
        str, typer.Option(metavar="L,L", help="nchw or nhwc; several are measured in turns and compared.")
    ] = "nchw",
    device: DeviceOption = "cpu",
    batch: Annotated[str, typer.Option(metavar="1,4,16", help="Batch sizes to measure, separated by commas.")] = "",
    size: Annotated[
        str,
        typer.Option(
            metavar="256x256,512x512", help="Image sizes (width x height) to measure; default: the document's."
        ),
    ] = "",
    counters: Annotated[
        CounterMode, typer.Option(help="Hardware counters of an NVIDIA GPU: if possible, never, or required.")
    ] = CounterMode.AUTO,
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="R", help=f"Write the profile: {PROFILES.write_choices}.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="R", help="Write the profile as an HTML page.")] = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="OTHER.json", help="Compare with another profile.")
    ] = None,
    training: Annotated[
        bool, typer.Option("--training", help="Also measure a training step of the exported project.")
    ] = False,
    iterations: Annotated[int, typer.Option(min=1)] = 10,
    threads: ThreadsOption = 0,
    variant: VariantOption = "",
    trust_custom: TrustOption = None,
) -> None:
    """Time every operator and compare it with the machine's peak performance."""
    from app.cli.trust import with_trust
    from app.engine.counted_run import count
    from app.opened_network import open_network
    from app.variant import open_variant
    from designer.profiling.measure import profile_session
    from designer.runtime.api import RunOptions
    from designer.runtime.session import Session

    if json_out is not None:
        PROFILES.writer(json_out)  # rejects unknown formats before anything is measured
    if html is not None:
        PAGES.writer(html)
    grid = grid_of(
        engines=engine or DEFAULT_ENGINE,
        precisions=precision or "fp32",
        layouts=layout or "nchw",
        batches=batch,
        sizes=size,
    )
    other = load_profile(against) if against is not None else None
    network = open_network(file)
    options = RunOptions(grid.engines[0], grid.precisions[0], grid.layouts[0], device, threads)
    opened = open_variant(network, variant, weights, random_weights, options)
    if opened.note:
        err.print(f"note: {opened.note}", highlight=False)
    options = with_trust(network, opened.options, trust_custom or ())
    latest: list[Profile] = []

    def keep(found: Profile) -> None:
        latest[:] = [found]
        if json_out is not None:
            save_profile(json_out, found)

    session = Session(opened.network.graph, network.registry, opened.weights, options)
    try:
        found = profile_session(
            session,
            iterations,
            replace(grid, engines=grid.engines[1:], precisions=grid.precisions[1:], layouts=grid.layouts[1:]),
            on_profile=keep,
            counters=None if counters is CounterMode.OFF else count,
            require_counters=counters is CounterMode.REQUIRE,
        )
    except KeyboardInterrupt:
        if latest:
            _show(network.graph, latest[0], other, json_out, html)
        err.print("stopped")
        raise typer.Exit(130) from None
    if training:
        from app.engine.training_profile import with_training_step

        found = with_training_step(found, network.graph, network.registry, options)
    keep(found)
    _show(network.graph, found, other, json_out, html)


def _show(graph: Graph, found: Profile, other: Profile | None, json_out: Path | None, html: Path | None) -> None:
    from app.reports.profile_table import WIDE, advice_lines, difference_lines, lines
    from designer.profiling.difference import configuration_differences, differences

    to_other = differences(other, found) if other is not None else []
    compared = [*to_other, *configuration_differences(found)]
    width = out.width if out.is_terminal else WIDE
    for part in lines(found, width):
        out.print(part, width=width)
    for run in found.runs:
        for part in advice_lines(graph, run, found.runs):
            out.print(part)
    if other is not None:
        _say_what_is_not_compared(found, {each.after.configuration for each in to_other})
    for each in compared:
        for part in difference_lines(each):
            out.print(part)
    if json_out is not None:
        out.print(f"wrote {json_out}")
    if html is not None:
        from app.reports.profile_page import write_page

        write_page(html, found, compared)
        out.print(f"wrote {html}")


def _say_what_is_not_compared(found: Profile, compared: set[str]) -> None:
    for run in found.runs:
        if run.configuration not in compared:
            err.print(
                f"note: {run.configuration} is not compared: the other profile has no run with this batch and size, "
                "or several with other configurations; profile both with the same options",
                highlight=False,
            )
