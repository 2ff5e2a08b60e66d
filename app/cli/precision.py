"""`layerwright precision`: convert a network to a smaller number format and write an ONNX file."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from app.cli.options import FileArgument, SeedOption, WeightsOption
from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.units import binary

if TYPE_CHECKING:
    from designer.runtime.input_data import Extent
    from exporters.int8 import Int8Report


class Target(StrEnum):
    """Number formats of `--to`."""

    INT8 = "int8"


class Method(StrEnum):
    """How INT8 ranges follow from the calibration images."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"


class Form(StrEnum):
    """The runtime that an INT8 file is for."""

    ONNXRUNTIME = "onnxruntime"
    TENSORRT = "tensorrt"


def precision(
    file: FileArgument,
    to: Annotated[Target, typer.Option("--to", help="The number format.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .onnx file to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    calibration: Annotated[
        Path | None, typer.Option(metavar="DIR", help="int8: a folder of images like those that the network will get.")
    ] = None,
    budget_db: Annotated[
        float | None,
        typer.Option(min=0, help="PSNR against FP32 that must be reached; sensitive layers stay in float for it."),
    ] = None,
    method: Annotated[Method, typer.Option(help="int8: range of a tensor.")] = Method.MINMAX,
    percentile: Annotated[
        float, typer.Option(min=50, max=100, help="int8: per cent of the values inside of the range.")
    ] = 99.99,
    images: Annotated[int, typer.Option(min=1, help="int8: largest number of images that are used.")] = 32,
    size: Annotated[
        str, typer.Option(metavar="HxW", help="int8: size of the middle of each image; default: the input's.")
    ] = "",
    form: Annotated[
        Form, typer.Option(help="int8: the runtime. OpenVINO takes that of onnxruntime.")
    ] = Form.ONNXRUNTIME,
    report: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a report as .json.")] = None,
) -> None:
    """Convert a network to a smaller number format and write an ONNX file. Exit status 1 if the budget is not met."""
    from rich.progress import Progress

    from app.opened_network import load_weights_for, open_network
    from designer.precision.int8 import Calibration
    from exporters.int8 import Int8Request, export_int8
    from exporters.onnx import ONNX_MODELS

    ONNX_MODELS.writer(output)  # rejects unknown formats before anything is read
    if calibration is None:
        raise DiagnosticError.of(
            "bad-option",
            "--to int8 needs images that show the range of the values",
            remedy="give --calibration with a folder of images",
        )
    network = open_network(file)
    tensors = load_weights_for(network, weights, random_weights)
    request = Int8Request(
        calibration, images, _size(size), Calibration(method.value, percentile), form.value, budget_db
    )
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task("", total=None)
        made = export_int8(
            network.graph, network.registry, tensors, output, request,
            lambda done, total, text: bar.update(task, completed=done, total=total, description=text),
        )  # fmt: skip
    if report is not None:
        write_atomic(report, (json.dumps(made.as_dict(), indent=2, allow_nan=False) + "\n").encode())
    for line in _summary(made):
        out.print(line, highlight=False)
    out.print(f"wrote {output}" + (f" and {report}" if report is not None else ""), highlight=False)
    if not made.result.met:
        err.print(
            f"the budget of {budget_db:g} dB is not met: {made.result.psnr_db:.2f} dB is the best choice of layers that was found"
            "; use more or other calibration images, or choose fp16",
            highlight=False,
        )
        raise typer.Exit(1)


def _summary(made: Int8Report) -> list[str]:
    result, images = made.result, made.images
    lines = [f"skipped {name}: {reason}" for name, reason in images.skipped.items()]
    used = f"{len(images.names)} images used" + (f", {len(images.skipped)} skipped" if images.skipped else "")
    lines.append(used)
    lines += [f"{layer} stays in float: {reason}" for layer, reason in result.kept.items()]
    lines.append(
        f"{result.psnr_db:.2f} dB against FP32; {len(result.quantized)} layers in INT8;"
        f" {binary(made.bytes)} instead of {binary(made.bytes_fp32)}"
    )
    return lines


def _size(text: str) -> Extent | None:
    """Parse `--size`. Raises DiagnosticError for other text than HxW."""
    if not text:
        return None
    parts = text.split("x")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() and 0 < int(part) <= 2**16 for part in parts):
        return int(parts[0]), int(parts[1])
    raise DiagnosticError.of(
        "bad-option", f"--size: '{text[:40]}' is not a size", remedy="give HxW, for instance 256x256"
    )
