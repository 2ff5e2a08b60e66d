"""`layerwright precision`: convert a network to a smaller number format and write an ONNX file."""

from __future__ import annotations

import json
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from app.cli.options import FileArgument, SeedOption, TrustOption, WeightsOption, extent
from designer.files.atomic import write_atomic
from designer.files.tables import JSON
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.engines import forms
from designer.units import binary

if TYPE_CHECKING:
    from exporters.int8 import Int8Report
    from exporters.mixed import PrecisionReport


class Target(StrEnum):
    """Number formats of `--to`. Mixed is FP16 with layers that stay in FP32, int8+fp16 is INT8 with layers that stay in FP16."""

    FP16 = "fp16"
    BF16 = "bf16"
    MIXED = "mixed"
    INT8 = "int8"
    INT8_FP16 = "int8+fp16"


INTEGERS = {Target.INT8: "float32", Target.INT8_FP16: "float16"}  # and the format of the layers that are not INT8


class Method(StrEnum):
    """How INT8 ranges follow from the calibration images."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"


class Form(StrEnum):
    """The runtime that an INT8 or BF16 file is for."""

    ONNXRUNTIME = forms.ONNX_RUNTIME
    TENSORRT = forms.TENSORRT


def precision(
    file: FileArgument,
    to: Annotated[Target, typer.Option("--to", help="The number format.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .onnx file to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            "--validate",
            metavar="DIR",
            help="fp16, bf16, mixed: a folder of images on which the result is compared with FP32.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="LAYER", help="fp16, bf16, mixed: a layer that stays in FP32. Repeatable."),
    ] = None,
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
        str,
        typer.Option(metavar="WxH", help="int8: width x height of the middle of each image; default: the input's."),
    ] = "",
    form: Annotated[
        Form, typer.Option(help="int8, bf16: the runtime. OpenVINO takes that of onnxruntime.")
    ] = Form.ONNXRUNTIME,
    report: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a report as .json.")] = None,
    threads: Annotated[int, typer.Option(help="fp16, bf16, mixed: number of threads; 0 uses all cores.")] = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Convert a network to a smaller number format, judged on your own images, and write an ONNX file.

    Exit status 1 if the budget is not met.
    """
    from rich.progress import Progress

    from app.cli.trust import with_trust
    from app.opened_network import load_weights_for, open_network
    from designer.runtime.api import RunOptions
    from exporters.onnx import ONNX_MODELS

    ONNX_MODELS.writer(output)  # rejects unknown formats before anything is read
    if report is not None:
        JSON.writer(report)
    _check_folder(to, calibration, validation)
    if to in INTEGERS and keep:
        raise DiagnosticError.of(
            "bad-option",
            f"--keep {keep[0]}: --to {to.value} finds the layers that stay in float itself",
            remedy="give --budget-db, or choose the formats of a variant in the window",
        )
    network = open_network(file)
    tensors = load_weights_for(network, weights, random_weights)
    options = with_trust(network, RunOptions(threads=threads), trust_custom or ())
    made: Int8Report | PrecisionReport
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total or None, description=text)

        if to in INTEGERS:
            from designer.files.variants import CalibrationRecipe
            from exporters.int8 import export_int8

            assert calibration is not None
            extent("--size", size)  # rejects other text by the name of the option
            recipe = CalibrationRecipe(str(calibration), images, size, method.value, percentile, form.value)
            made = export_int8(
                network.graph, network.registry, tensors, output, recipe, budget_db=budget_db, format=INTEGERS[to],
                progress=progress,
            )  # fmt: skip
        else:
            from exporters.mixed import export_precision

            assert validation is not None
            made = export_precision(
                network.graph, network.registry, tensors, output, to.value, validation, budget_db=budget_db,
                keep=keep or (), native=form is Form.TENSORRT, options=options, progress=progress,
            )  # fmt: skip
    if report is not None:
        write_atomic(report, (json.dumps(made.as_dict(), indent=2, allow_nan=False) + "\n").encode())
    for line in _lines(made):
        out.print(line, highlight=False)
    out.print(f"wrote {output}" + (f" and {report}" if report is not None else ""), highlight=False)
    if not made.result.met:
        err.print(
            f"the budget of {made.as_dict()['budget_db']:g} dB is not met: {made.result.psnr_db:.2f} dB is the best that was found"
            f"; {_ADVICE[to]}",
            highlight=False,
        )
        raise typer.Exit(1)


_ADVICE = {
    Target.FP16: "use --to mixed, which keeps layers in FP32",
    Target.BF16: "use --to fp16 or --to mixed, which have more digits",
    Target.MIXED: "use a smaller budget",
    Target.INT8: "use more or other calibration images, or choose fp16",
    Target.INT8_FP16: "use more or other calibration images, or choose fp16",
}


def _check_folder(to: Target, calibration: Path | None, validation: Path | None) -> None:
    """Raise DiagnosticError without the folder of images that a number format needs."""
    if to in INTEGERS and calibration is None:
        raise DiagnosticError.of(
            "bad-option",
            f"--to {to.value} needs images that show the range of the values",
            remedy="give --calibration with a folder of images",
        )
    if to not in INTEGERS and validation is None:
        raise DiagnosticError.of(
            "bad-option",
            f"--to {to.value} needs images on which the result is compared with FP32",
            remedy="give --validate with a folder of images",
        )


def _lines(made: Int8Report | PrecisionReport) -> list[str]:
    from exporters.int8 import Int8Report

    return _summary(made) if isinstance(made, Int8Report) else _precision_summary(made)


def _precision_summary(made: PrecisionReport) -> list[str]:
    result, used = made.result, made.validation
    lines = [f"skipped {name}: {reason}" for name, reason in used.skipped.items()]
    lines.append(f"{len(used.images)} images used" + (f", {len(used.skipped)} skipped" if used.skipped else ""))
    lines += [
        f"{layer} has {count} values that are NaN or infinite in FP32" for layer, count in result.nonfinite.items()
    ]
    lines += [
        f"{layer} overflows in {result.precision.upper()}: values up to {magnitude:.4g}"
        for layer, magnitude in result.overflow.items()
        if layer not in result.kept
    ]
    lines += [
        f"{layer}: {share:.2%} of the values become 0" for layer, share in result.underflow.items() if share > 0.01
    ]
    lines += [f"{layer} stays in FP32: {reason}" for layer, reason in result.kept.items()]
    if result.bf16_db is not None:
        lines.append(f"BF16 has the range of FP32 and reaches {result.bf16_db:.2f} dB: --to bf16")
    quality = f"{result.psnr_db:.2f} dB against FP32" if result.psnr_db != inf else "equal to FP32"
    rounded = result.layers - len(result.kept)
    lines.append(
        f"{quality}; {rounded} of {result.layers} layers in {result.precision.upper()}; {binary(made.written.bytes)}"
    )
    return lines


def _summary(made: Int8Report) -> list[str]:
    result, images = made.result, made.images
    lines = [f"skipped {name}: {reason}" for name, reason in images.skipped.items()]
    used = f"{len(images.names)} images used" + (f", {len(images.skipped)} skipped" if images.skipped else "")
    lines.append(used)
    lines += [f"{layer} stays in {made.format}: {reason}" for layer, reason in result.kept.items()]
    lines.append(
        f"{result.psnr_db:.2f} dB against FP32; {len(result.quantized)} layers in INT8;"
        f" {binary(made.bytes)} instead of {binary(made.bytes_fp32)}"
    )
    return lines
