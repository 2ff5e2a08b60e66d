"""`layerwright profile`: measure the operators of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out
from app.cli.options import (
    DeviceOption,
    EngineOption,
    FileArgument,
    LayoutOption,
    PrecisionOption,
    SeedOption,
    ThreadsOption,
    TrustOption,
    WeightsOption,
)
from designer.files.settings import DEFAULT_ENGINE
from designer.profiling.report import RECORDS, save_records


def profile(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help=f"Write the record: {RECORDS.write_choices}.")
    ] = None,
    iterations: Annotated[int, typer.Option(min=1)] = 10,
    engine: EngineOption = DEFAULT_ENGINE,
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Time every operator and compare it with the machine's peak performance."""
    from app.cli.opened_network import load_weights_for, open_network
    from app.cli.trust import with_trust
    from app.reports.profile_table import lines
    from designer.profiling.timing import profile as timed
    from designer.runtime.api import RunOptions
    from designer.runtime.session import Session

    if json_out is not None:
        RECORDS.writer(json_out)  # refuses unknown formats before anything is timed
    network = open_network(file)
    tensors = load_weights_for(network, weights, random_weights)
    options = RunOptions(engine=engine, precision=precision, layout=layout, device=device, threads=threads)
    options = with_trust(network, options, trust_custom or ())
    record = timed(Session(network.graph, network.registry, tensors, options), iterations)
    for part in lines(record):
        out.print(part)
    if json_out is not None:
        save_records(json_out, [record])
        out.print(f"wrote {json_out}")
