"""The command line. It knows no Qt; each command is a thin layer over the same parts that the window uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from app.cli.console import FileArgument, err, of_the_system, out, show
from app.cli.documents import documents
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
export = typer.Typer(no_args_is_help=True, help="Write a network in another form.")
app.add_typer(export, name="export")
app.registered_commands += documents.registered_commands

WeightsOption = Annotated[Path | None, typer.Option("--weights", help="Folder of .npy or .bin, .safetensors, .pt.")]
SeedOption = Annotated[
    int | None, typer.Option("--random-weights", metavar="SEED", help="Fill missing weights, seeded.")
]
EngineOption = Annotated[str, typer.Option(help="onnxruntime or torch.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, fp16 or bf16.")]
LayoutOption = Annotated[str, typer.Option(help="nchw or nhwc.")]
DeviceOption = Annotated[str, typer.Option(help="cpu or cuda.")]
ThreadsOption = Annotated[int, typer.Option(help="0: all cores.")]
TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-custom",
        metavar="SHA256|ask",
        help="Let custom layers run: by the digest of their source, or after showing it and asking.",
    ),
]


def main() -> None:
    """Run the command line; findings end it with status 1, a wrong command line with 2."""
    try:
        app()
    except DiagnosticError as error:
        show(error.diagnostics)
        raise SystemExit(1) from None
    except BrokenPipeError:
        raise SystemExit(1) from None  # who read our output is gone: there is nobody to tell
    except (OSError, MemoryError) as error:
        show((of_the_system(error),))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        err.print("stopped")
        raise SystemExit(130) from None


@app.command()
def check(file: FileArgument, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Show shapes and problems of a network; exit status 1 when there are errors."""
    from app.cli.opened_network import open_network

    try:
        network = open_network(file, strict=False)
    except DiagnosticError as error:
        if as_json:
            out.print_json(json.dumps({"layers": [], "diagnostics": [d.as_dict() for d in error.diagnostics]}))
            raise typer.Exit(1) from None
        raise
    if as_json:
        out.print_json(json.dumps(network.as_dict()))
    else:
        table = Table(title=f"{network.graph.name}: {len(network.graph)} layers", title_justify="left")
        for heading in ("layer", "type", "output", "parameters"):
            table.add_column(heading, justify="right" if heading == "parameters" else "left")
        for row in network.rows():
            kind = f"{row.type} (training)" if row.training else row.type
            table.add_row(row.layer, kind, row.shape, f"{row.parameters:,}" if row.parameters else "")
        out.print(table)
        show(network.diagnostics)
        total = sum(row.parameters for row in network.rows())
        problems = sum(1 for d in network.diagnostics if d.severity is Severity.ERROR)
        branch = sum(1 for row in network.rows() if row.training)
        if branch:
            out.print(f"{branch} of the layers are the training branch: left out of inference, ONNX and deployment")
        out.print(f"{total:,} parameters, {problems} error{'s' if problems != 1 else ''}")
    if network.has_errors:
        raise typer.Exit(1)


@app.command()
def run(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    inputs: Annotated[list[str] | None, typer.Option("--input", metavar="NAME=PATH", help="npy or picture.")] = None,
    outputs: Annotated[list[str] | None, typer.Option("--output", metavar="NAME=PATH", help="npy or picture.")] = None,
    capture: Annotated[list[str] | None, typer.Option("--capture", metavar="LAYER=PATH")] = None,
    engine: EngineOption = "onnxruntime",
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    iterations: Annotated[int, typer.Option(min=1, help="Run so often and tell the median time.")] = 1,
    tile: Annotated[str, typer.Option(help="auto, off, or the side of a tile in pixels, for large pictures.")] = "auto",
    trust_custom: TrustOption = None,
) -> None:
    """Run a network on pictures or .npy tensors; videos and folders go through it frame by frame."""
    from app.cli.run import RunRequest, run_network, tile_of
    from designer.runtime.api import RunOptions

    options = RunOptions(
        engine=engine, precision=precision, layout=layout, device=device, threads=threads, tile=tile_of(tile)
    )
    request = RunRequest(
        file,
        weights,
        random_weights,
        pairs("--input", inputs),
        pairs("--output", outputs),
        pairs("--capture", capture),
        options,
        iterations,
        trust_custom or (),
    )
    for line in run_network(request):
        out.print(line, markup=False, highlight=False)


@app.command()
def video(
    file: FileArgument,
    inputs: Annotated[list[str], typer.Option("--input", metavar="NAME=PATH", help="Video, folder, or one picture.")],
    outputs: Annotated[
        list[str], typer.Option("--output", metavar="NAME=PATH", help="A .mkv, .mp4, .webm, .avi or .mov, or a folder.")
    ],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    start: Annotated[int, typer.Option("--from", min=0, metavar="FRAME", help="The first frame; 0 is the first.")] = 0,
    stop: Annotated[int | None, typer.Option("--to", min=1, metavar="FRAME", help="Up to before this one.")] = None,
    fps: Annotated[float, typer.Option(min=0, max=1000, help="Frames a second to write; 0 keeps the video's.")] = 0,
    codec: Annotated[str, typer.Option(help="ffv1 (lossless), mpeg4, vp9 or mjpeg; else by the ending.")] = "",
    quality: Annotated[int, typer.Option(min=0, max=100, help="1..100, for mjpeg; 0: as it is.")] = 0,
    tensors: Annotated[bool, typer.Option("--npy", help="Folders get .npy with full precision, not PNG.")] = False,
    engine: EngineOption = "onnxruntime",
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Put a video, or a folder of pictures, through a network, frame by frame. Sound is not kept."""
    from rich.progress import Progress

    from app.cli.run import RunRequest, run_network
    from app.engine.video_job import VideoJob
    from designer.runtime.api import RunOptions

    options = RunOptions(engine=engine, precision=precision, layout=layout, device=device, threads=threads)
    job = VideoJob({}, {}, start, stop, fps, codec, quality, ".npy" if tensors else ".png")
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task("frames", total=None)
        request = RunRequest(
            file, weights, random_weights, pairs("--input", inputs), pairs("--output", outputs), {}, options,
            trust=trust_custom or (), video=job, progress=lambda done, total, text: bar.update(task, completed=done, total=total),
        )  # fmt: skip
        lines = list(run_network(request))
    for line in lines:
        out.print(line, markup=False, highlight=False)


def pairs(option: str, texts: list[str] | None) -> dict[str, Path]:
    """`NAME=PATH` texts as a mapping; refuses anything else with the rule."""
    found: dict[str, Path] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise DiagnosticError(
                Diagnostic(
                    "bad-option", f"{option} {text}: write NAME=PATH", remedy=f"for instance {option} input=a.png"
                )
            )
        found[name] = Path(path)
    return found


@export.command("pytorch")
def export_pytorch(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", help="Folder for the project.")],
    name: Annotated[str, typer.Option("--name", help="Class name of the model.")],
) -> None:
    """Write a PyTorch training project."""
    from app.cli.opened_network import open_network
    from exporters.pytorch import export_project

    network = open_network(file)
    for path in export_project(network.graph, network.registry, output, name):
        out.print(str(path), markup=False, highlight=False)


@export.command("onnx")
def export_onnx_file(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", help="The .onnx file to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
) -> None:
    """Write an ONNX file that onnx.checker accepts."""
    from app.cli.opened_network import load_weights_for, open_network
    from exporters.onnx import export_onnx

    network = open_network(file)
    tensors = load_weights_for(network, weights, random_weights)
    export_onnx(network.graph, network.registry, tensors, output)
    out.print(f"wrote {output}" + (f" with {tensors.note}" if tensors.note else ""), markup=False)


@app.command()
def profile(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    json_out: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the record here.")] = None,
    iterations: Annotated[int, typer.Option(min=1)] = 10,
    engine: EngineOption = "onnxruntime",
    precision: PrecisionOption = "fp32",
    layout: LayoutOption = "nchw",
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Time every operator and compare it with what the machine can do."""
    from app.cli.profile import profile_network
    from designer.runtime.api import RunOptions

    options = RunOptions(engine=engine, precision=precision, layout=layout, device=device, threads=threads)
    for part in profile_network(file, weights, random_weights, json_out, iterations, options, trust_custom or ()):
        out.print(part)


@app.command()
def compare(
    files: Annotated[list[Path], typer.Argument(metavar="A B ...", help="Model files; one may stand twice.")],
    images: Annotated[Path, typer.Option("--images", metavar="DIR", help="A folder of pictures, or one.")],
    noise: Annotated[
        list[str] | None,
        typer.Option(help="KIND:STRENGTH, for instance gaussian:25 (of 255); may stand several times."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the noise.")] = 0,
    weights: Annotated[list[Path] | None, typer.Option("--weights", help="Once for all, or once for each.")] = None,
    random_weights: SeedOption = None,
    engine: Annotated[list[str] | None, typer.Option(help="Once for all, or once for each.")] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="OUT.html", help="Write a page.")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", metavar="OUT.json", help="Write the figures.")] = None,
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Compare networks on the same pictures with the same noise: PSNR and SSIM against the clean pictures."""
    from app.cli import compare as comparing
    from app.reports import comparison
    from designer.files.atomic import write_atomic
    from designer.runtime.api import RunOptions

    request = comparing.CompareRequest(
        files, images, noise or (), seed, weights or (), random_weights, engine or (), RunOptions(threads=threads), report,
        trust_custom or (),
    )  # fmt: skip
    columns, rows = comparing.compare(request, lambda text: err.print(text, markup=False, highlight=False))
    for name in dict.fromkeys(row.noise for row in rows):
        part = [row for row in rows if row.noise == name]
        table = Table(title=name if name != columns[0] else None)
        for index, heading in enumerate(comparison.headings(columns, part, times=False)):
            table.add_column(heading, justify="right" if index else "left", no_wrap=index == 0)
        for line in comparison.summary(columns, part, times=False):
            table.add_row(*line)
        out.print(table)
    times = zip(columns[1:], comparison.means(rows)[1:], strict=True)
    out.print(
        "mean time: " + ", ".join(f"{name} {comparison.ms_text(f.milliseconds)} ms" for name, f in times), markup=False
    )
    if report is not None:
        from app.reports.comparison_page import write_report

        write_report(report, " and ".join(columns[1:]), columns, rows)
        out.print(f"wrote {report}", markup=False, highlight=False)
    if json_out is not None:
        write_atomic(json_out, f"{comparing.to_json(request, columns, rows)}\n".encode())
        out.print(f"wrote {json_out}", markup=False, highlight=False)


@app.command()
def tour(
    outdir: Annotated[Path, typer.Argument(metavar="OUTDIR")],
    steps: Annotated[int, typer.Option(min=1, help="Steps of the short training.")] = 150,
) -> None:
    """Play the whole loop without a window: design, export, train, reload, run, look. Writes an HTML page."""
    from app.reports.tour import run_tour

    page = run_tour(outdir, out, steps=steps)
    out.print(f"open {page}", markup=False)


if __name__ == "__main__":
    main()
