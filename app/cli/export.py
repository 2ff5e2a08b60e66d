"""`layerwright export`: export a network to other formats."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out, print_json
from app.cli.options import FileArgument, JsonOption, SeedOption, VariantOption, WeightsOption, extent, one_each, pairs
from designer.files.settings import Settings, find_settings, read_settings
from designer.graph.diagnostics import DiagnosticError
from designer.units import duration

if TYPE_CHECKING:
    from app.variant import OpenedVariant

ModelOption = Annotated[
    Path | None,
    typer.Option("--onnx", help="A model of this network by `layerwright precision`, instead of FP32 or a variant."),
]


class Edited(Enum):
    """What happens to edited files of a project."""

    refuse = "refuse"
    keep = "keep"
    replace = "replace"


export = typer.Typer(no_args_is_help=True, add_completion=False, help="Export a network to another format.")


@export.command("pytorch")
def export_pytorch(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the project.")],
    name: Annotated[str, typer.Option("--name", help="Class name of the model; default: the network's name.")] = "",
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="denoising, restoration, super-resolution, segmentation or classification; by default what the network suggests.",
        ),
    ] = "",
    edited: Annotated[
        Edited,
        typer.Option(
            "--edited", help="What happens to edited files that the export changes; refuse prints their diff."
        ),
    ] = Edited.refuse,
    weights: WeightsOption = None,
) -> None:
    """Write a PyTorch training project, or update one. Task and recipe in the document's settings are the defaults.

    With --weights, initial_weights.pt in the project has them.
    """
    from app.opened_network import load_weights_for, open_network
    from exporters.pytorch import EditedFilesError, Training, class_name, export_initial_weights, export_project

    network = open_network(file)
    stored = find_settings(file)
    settings = read_settings(stored).settings if stored is not None else Settings()
    training = Training.of(settings, task)
    tensors = load_weights_for(network, weights, None) if weights is not None else None
    try:
        model = name or class_name(network.graph.name)
        paths = export_project(network.graph, network.registry, output, model, training, edited=edited.value)
    except EditedFilesError as error:
        out.print("\n".join(error.diffs.values()), highlight=False, markup=False)
        raise
    if tensors is not None:
        paths = (*paths, export_initial_weights(network.graph, network.registry, tensors, output))
    for path in paths:
        out.print(str(path), highlight=False)


@export.command("onnx")
def export_onnx_file(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .onnx file to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    variant: VariantOption = "",
) -> None:
    """Write an ONNX file that onnx.checker accepts."""
    from app.opened_network import open_network
    from app.variant import open_variant
    from designer.runtime.api import RunOptions
    from exporters.onnx import ONNX_MODELS, export_onnx
    from exporters.variants import variant_conversion

    ONNX_MODELS.writer(output)  # refuses unknown formats before anything is read
    network = open_network(file)
    opened = open_variant(network, variant, weights, random_weights, RunOptions())
    tensors, graph = opened.weights, opened.network.graph
    convert = variant_conversion(opened.variant, graph, network.registry)
    report = export_onnx(graph, network.registry, tensors, output, convert)
    out.print(f"wrote {output}" + (f" with {tensors.note}" if tensors.note else ""))
    out.print(str(report.sizes), highlight=False)


@export.command("deploy")
def export_deploy(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PATH",
            help="Image or .npy file for the check. Default: the middle of that in the settings.",
        ),
    ] = None,
    variant: VariantOption = "",
    onnx_file: ModelOption = None,
) -> None:
    """Write a folder that runs the network in Python, C++ and Triton, with checks and measured values."""
    from exporters.deploy import export_deployment
    from exporters.variants import variant_conversion

    opened = _deployed(file, weights, random_weights, variant, onnx_file)
    graph, registry, tensors = opened.network.graph, opened.network.registry, opened.weights
    given = one_each("--input", pairs("--input", inputs))
    convert = variant_conversion(opened.variant, graph, registry)
    examples = _examples(opened)
    found = export_deployment(graph, registry, tensors, output, given, onnx_file, examples=examples, convert=convert)
    for name, difference in found.measured.outputs.items():
        out.print(f"{name}: largest difference to PyTorch {difference.difference:.2g}", highlight=False)
    out.print(f"{duration(found.measured.milliseconds)} per run with ONNX Runtime", highlight=False)
    out.print(f"wrote {output}" + (f" with {tensors.note}" if tensors.note else ""), highlight=False)
    out.print(str(found.model.sizes), highlight=False)


@export.command()
def tensorrt(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .engine file to write.")],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    smallest: Annotated[str, typer.Option("--min-size", metavar="WxH", help="Smallest size of the first image.")] = "",
    largest: Annotated[str, typer.Option("--max-size", metavar="WxH", help="Largest size of the first image.")] = "",
    batch: Annotated[int, typer.Option("--max-batch", min=1, help="Largest batch.")] = 1,
    sparse: Annotated[bool, typer.Option("--sparse", help="Allow kernels for weights with 2:4 sparsity.")] = False,
    timing_cache: Annotated[
        Path | None, typer.Option("--timing-cache", help="Timing cache to use and update (not with TensorRT-RTX).")
    ] = None,
    variant: VariantOption = "",
    onnx_file: ModelOption = None,
) -> None:
    """Build a TensorRT engine and list its layers. The size of the document is the one that it is optimized for."""
    from app.reports.engine_table import engine_lines
    from exporters.tensorrt import EngineOptions, export_tensorrt
    from exporters.variants import variant_conversion

    opened = _deployed(file, weights, random_weights, variant, onnx_file)
    graph, registry, tensors = opened.network.graph, opened.network.registry, opened.weights
    convert = variant_conversion(opened.variant, graph, registry, tensorrt=True)
    options = EngineOptions(extent("--min-size", smallest), extent("--max-size", largest), batch, sparse, timing_cache)
    found = export_tensorrt(graph, registry, tensors, output, options, onnx_file, convert=convert)
    for line in engine_lines(found):
        out.print(line, highlight=False)
    out.print(f"wrote {output}" + (f" with {tensors.note}" if tensors.note else ""), highlight=False)
    out.print(found.trtexec, highlight=False)


def _examples(opened: OpenedVariant) -> dict[str, Path]:
    """An image for each input layer that has one: of the settings, else one on which the variant was calibrated."""
    from designer.files.settings import find_settings, read_settings
    from designer.precision.image_set import image_files
    from designer.runtime.network import input_layers

    network, variant = opened.network, opened.variant
    settings = find_settings(network.path)
    chosen = read_settings(settings).settings.input_files if settings is not None else {}
    calibrated = image_files(Path(variant.calibration.folder)) if variant and variant.calibration else []
    found = {}
    for layer in input_layers(network.graph, network.inference):
        candidates = [Path(chosen[layer])] if layer in chosen else []
        existing = next((path for path in (*candidates, *calibrated) if path.is_file()), None)
        if existing is not None:
            found[layer] = existing
    return found


def _deployed(
    file: Path, weights: Path | None, seed: int | None, variant: str, onnx_file: Path | None
) -> OpenedVariant:
    """The network of an export, as a variant. Raises DiagnosticError for a variant and an ONNX file."""
    from app.opened_network import open_network
    from app.variant import open_variant
    from designer.runtime.api import RunOptions

    if variant and onnx_file is not None:
        raise DiagnosticError.of(
            "bad-option", "--variant and --onnx both choose the model", remedy="use only one of them"
        )
    return open_variant(open_network(file), variant, weights, seed, RunOptions())


def engine_layers(
    file: Annotated[Path, typer.Argument(metavar="FILE.engine")],
    json: JsonOption = False,
) -> None:
    """List the layers of a TensorRT engine that this program built: precisions, and the layers of the network in each."""
    import msgspec

    from app.reports.engine_table import engine_lines
    from designer.runtime.engines import trt
    from exporters.tensorrt import read_engine_file

    found = read_engine_file(file)
    note = trt.version_note(found.package, found.version)
    if note:
        err.print(f"note: {note}", style="yellow", highlight=False)
    if json:
        print_json(msgspec.to_builtins(found))
        return
    for line in engine_lines(found):
        out.print(line, highlight=False)
    out.print(found.trtexec, highlight=False)
