"""`layerwright run` and `layerwright video`: feed a network with files and write what comes out."""

from __future__ import annotations

from typing import Annotated

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
    WeightsOption,
    one_each,
    pairs,
)
from designer.files.settings import DEFAULT_ENGINE
from designer.runtime.images import ARRAYS
from designer.runtime.sources import INPUTS
from designer.runtime.video_formats import VIDEOS


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
    iterations: Annotated[int, typer.Option(min=1, help="Run this often and report the median time.")] = 1,
    tile: Annotated[str, typer.Option(help="auto, off, or the side of a tile in pixels, for large pictures.")] = "auto",
    trust_custom: TrustOption = None,
) -> None:
    """Run a network on pictures or .npy tensors; videos and folders go through it frame by frame."""
    from app.cli.run_request import RunRequest, run_network, tile_of
    from designer.runtime.api import RunOptions

    options = RunOptions(
        engine=engine, precision=precision, layout=layout, device=device, threads=threads, tile=tile_of(tile)
    )
    request = RunRequest(
        file,
        weights,
        random_weights,
        one_each("--input", pairs("--input", inputs)),
        pairs("--output", outputs),
        pairs("--capture", capture),
        options,
        iterations,
        trust_custom or (),
    )
    for line in run_network(request):
        out.print(line, markup=False, highlight=False)


def video(
    file: FileArgument,
    inputs: Annotated[list[str], typer.Option("--input", metavar="NAME=PATH", help="Video, folder, or one picture.")],
    outputs: Annotated[list[str], typer.Option("--output", metavar="NAME=PATH", help=VIDEOS.write_choices)],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    start: Annotated[int, typer.Option("--from", min=0, metavar="FRAME", help="The first frame; 0 is the first.")] = 0,
    stop: Annotated[int | None, typer.Option("--to", min=1, metavar="FRAME", help="Up to before this one.")] = None,
    fps: Annotated[float, typer.Option(min=0, max=1000, help="Frames a second to write; 0 keeps the video's.")] = 0,
    codec: Annotated[str, typer.Option(help="ffv1 (lossless), mpeg4, vp9 or mjpeg; else by the ending.")] = "",
    quality: Annotated[int, typer.Option(min=0, max=100, help="1..100, for mjpeg; 0: as it is.")] = 0,
    tensors: Annotated[bool, typer.Option("--npy", help="Folders get .npy with full precision, not PNG.")] = False,
    engine: EngineOption = DEFAULT_ENGINE,
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Put a video, or a folder of pictures, through a network, frame by frame. Sound is not kept."""
    from rich.progress import Progress

    from app.cli.run_request import RunRequest, run_network
    from app.engine.video_job import VideoJob
    from designer.runtime.api import RunOptions

    options = RunOptions(engine=engine, precision=precision, layout=layout, device=device, threads=threads)
    job = VideoJob({}, {}, start, stop, fps, codec, quality, ".npy" if tensors else ".png")
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task("frames", total=None)
        request = RunRequest(
            file, weights, random_weights, one_each("--input", pairs("--input", inputs)), pairs("--output", outputs), (), options,
            trust=trust_custom or (), video=job, progress=lambda done, total, text: bar.update(task, completed=done, total=total),
        )  # fmt: skip
        lines = list(run_network(request))
    for line in lines:
        out.print(line, markup=False, highlight=False)
