"""`layerwright run` and `layerwright video`: run a network on files and write its outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from app.cli.options import (
    DeviceOption,
    EngineOption,
    FileArgument,
    LayoutOption,
    PrecisionOption,
    SeedOption,
    ThreadsOption,
    TrustOption,
    VariantOption,
    WeightsOption,
    one_each,
    pairs,
)
from designer.files.settings import DEFAULT_ENGINE
from designer.runtime.images import ARRAYS
from designer.runtime.sources import INPUTS
from designer.runtime.video_formats import VIDEOS

if TYPE_CHECKING:
    from app.cli.run_request import RunArguments


def run(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=PATH", help=f"{INPUTS.read_choices}, or a folder")
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="NAME=PATH",
            help=f"{ARRAYS.write_choices}; of videos and folders: {VIDEOS.write_choices}",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None, typer.Option("--capture", metavar="LAYER=PATH", help=ARRAYS.write_choices)
    ] = None,
    engine: EngineOption = DEFAULT_ENGINE,
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    variant: VariantOption = "",
    iterations: Annotated[
        int,
        typer.Option(
            min=1, help="Number of timed runs; the median is reported. Above 1, a run before them is not timed."
        ),
    ] = 1,
    tile: Annotated[
        str, typer.Option(help="Tiling of large images: auto, off, or the side of a tile in pixels.")
    ] = "auto",
    measure: Annotated[
        bool, typer.Option("--throughput", help="Measure images per second on a folder instead of writing.")
    ] = False,
    against: Annotated[
        str, typer.Option(metavar="NAME", help="With --throughput: an engine or a variant that is measured too.")
    ] = "",
    cluster: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Run a folder on the Ray cluster at this address.")
    ] = "",
    trust_custom: TrustOption = None,
) -> None:
    """Run a network on images or .npy tensors, or on every image of folders and videos. Folders are resumed."""
    from app.cli.run_request import RunArguments, tile_of
    from designer.runtime.api import RunOptions

    options = RunOptions(
        engine=engine, precision=precision, layout=layout, device=device, threads=threads, tile=tile_of(tile)
    )
    request = RunArguments(
        file,
        weights,
        random_weights,
        one_each("--input", pairs("--input", inputs)),
        pairs("--output", outputs),
        pairs("--capture", capture),
        options,
        iterations,
        trust_custom or (),
        throughput=measure,
        against=against,
        cluster=cluster,
        variant=variant,
    )
    _print(request)


def video(
    file: FileArgument,
    inputs: Annotated[list[str], typer.Option("--input", metavar="NAME=PATH", help="A video, a folder, or an image.")],
    outputs: Annotated[list[str], typer.Option("--output", "-o", metavar="NAME=PATH", help=VIDEOS.write_choices)],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    start: Annotated[int, typer.Option("--from", min=0, metavar="FRAME", help="First frame, counted from 0.")] = 0,
    stop: Annotated[int | None, typer.Option("--to", min=1, metavar="FRAME", help="Stop before this frame.")] = None,
    fps: Annotated[
        float, typer.Option(min=0, max=1000, help="Frame rate of the output; 0 keeps that of the input.")
    ] = 0,
    codec: Annotated[str, typer.Option(help="ffv1 (lossless), mpeg4, vp9 or mjpeg; default: by file suffix.")] = "",
    quality: Annotated[
        int, typer.Option(min=0, max=100, help="Quality from 1 to 100 for mjpeg; 0 is the default.")
    ] = 0,
    tensors: Annotated[
        bool, typer.Option("--npy", help="Write .npy files with full precision into folders instead of PNG.")
    ] = False,
    engine: EngineOption = DEFAULT_ENGINE,
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    variant: VariantOption = "",
    trust_custom: TrustOption = None,
) -> None:
    """Run a network on a video or a folder of images, frame by frame. Sound is dropped."""
    from app.cli.run_request import RunArguments
    from app.engine.video_job import VideoJob
    from designer.runtime.api import RunOptions

    options = RunOptions(engine=engine, precision=precision, layout=layout, device=device, threads=threads)
    job = VideoJob({}, {}, start, stop, fps, codec, quality, ".npy" if tensors else ".png")
    request = RunArguments(
        file, weights, random_weights, one_each("--input", pairs("--input", inputs)), pairs("--output", outputs), (), options,
        trust=trust_custom or (), variant=variant, video=job,
    )  # fmt: skip
    _print(request)


def _print(request: RunArguments) -> None:
    """Run and print one line per result, with a progress bar for frames. Lines are also printed before an error."""
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from app.cli.run_request import run_network

    lines: list[str] = []
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("", total=None)

            def progress(done: int, total: int, text: str) -> None:
                bar.update(task, completed=done, total=total, description=text)

            lines.extend(run_network(replace(request, progress=progress)))
    finally:
        for line in lines:
            out.print(line, highlight=False)
