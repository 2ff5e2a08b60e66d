"""Export of a deployment folder: the ONNX model with code that runs it in Python, C++ and Triton, and a check of all of it.

The folder is written completely or not at all: everything is made next to the target, the generated Python code runs the model
there, and its results must equal those of the network in torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.profiling.machine import cpu_name
from designer.runtime.api import Array, RunOptions
from designer.runtime.images import IMAGES, read_image, read_npy, to_uint8, write_npy
from designer.runtime.patterns import make_pattern
from designer.runtime.provenance import provenance
from designer.runtime.session import Session
from designer.texts import tr
from designer.units import binary, duration
from exporters.deploy import sources
from exporters.generated_folder import GeneratedFolder
from exporters.interface import Interface, ModelInput, ModelOutput, interface_of, precision_of, replace_model
from exporters.markdown import code
from exporters.onnx import OnnxReport, export_onnx

ANY = 1e30  # a tolerance that only values that are not finite exceed
TOLERANCE = 1e-4  # of FP32, times the largest value of an output
LEAST = 1e-6  # tolerance of an output of values near 0, which are rounded as the larger values before them were
LARGEST_CHECK = 512  # pixels of a side of generated check images
TEMPLATES = (
    *(f"python/{name}" for name in ("check.py", "processing.py", "requirements.txt", "run.py")),
    *(f"cpp/{name}" for name in ("CMakeLists.txt", "main.cpp", "processing.h", "tensor.h")),
)


class Check(msgspec.Struct):
    """Files of inputs and what they show, the outputs of the FP32 network for them, and the largest difference of each that counts as equal."""

    inputs: list[str]
    contents: list[str]
    outputs: list[str]
    tolerances: list[float]


class Difference(msgspec.Struct):
    """Of an output and that of the FP32 network: the largest difference, whether it is accepted, and the PSNR of values clipped to 0..1."""

    difference: float
    psnr_db: float
    ok: bool


class Measured(msgspec.Struct):
    """What the generated `check.py` prints."""

    outputs: dict[str, Difference]
    milliseconds: float
    ok: bool


@dataclass(frozen=True, slots=True)
class Deployment:
    """A written deployment folder."""

    folder: Path
    model: OnnxReport
    interface: Interface
    measured: Measured


def export_deployment(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    folder: Path,
    inputs: Mapping[str, Path] | None = None,
    onnx_file: Path | None = None,
    *,
    examples: Mapping[str, Path] | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Deployment:
    """Write a deployment folder of `graph`. `inputs` are files for input layers, for the check.

    Other inputs get the middle of their image in `examples`, or generated data where it is missing, smaller, or cannot be read.

    `convert` changes the precision of the model, and `onnx_file` is a model of the network in another precision, which is deployed
    instead. Their check allows a half more than the difference to FP32 that is measured here.

    An earlier deployment is replaced unless one of its files was edited. Raises DiagnosticError if the network cannot be
    exported, if its results differ from those in torch, or if the folder cannot be written; nothing is changed then.
    """
    with GeneratedFolder(folder) as stage:
        other = onnx_file is not None or convert is not None
        report = export_onnx(graph, registry, weights, stage.make("model.onnx"), convert)
        if onnx_file is not None:
            report = replace_model(report, onnx_file)
        precision = precision_of(report.path)
        interface = interface_of(report, graph, registry)
        _check_elements(interface)
        files = _CheckFiles(dict(inputs or {}), examples or {})
        check = _write_check(stage, deploy(graph, registry), registry, weights, interface, files)
        _write_sources(stage, graph.name, interface)
        exact = check.tolerances
        if other:
            check.tolerances = [ANY] * len(exact)
        information: dict[str, Any] = {
            "name": graph.name,
            "model": "model.onnx",
            "precision": precision,
            **msgspec.to_builtins(interface),
            "check": msgspec.to_builtins(check),
            "provenance": provenance(graph.name, graph, weights).texts(),
        }
        stage.mark(information)
        measured = _measure(stage.path)
        if other:
            found = (output.difference for output in measured.outputs.values())
            check.tolerances = [max(1.5 * one, least) for one, least in zip(found, exact, strict=True)]
            information["check"] = msgspec.to_builtins(check)
        information["measured"] = {**msgspec.to_builtins(measured), "processor": cpu_name()}
        stage.write("README.md", _readme(graph.name, precision, report, interface, check, measured))
        stage.mark(information)
        stage.install()
    return Deployment(folder, report, interface, measured)


def _check_elements(interface: Interface) -> None:
    """Raise DiagnosticError for elements other than float32, which the code for C++ and Triton does not have."""
    entries: list[ModelInput | ModelOutput] = [*interface.inputs, *interface.outputs]
    for entry in entries:
        if entry.dtype != "float32":
            raise DiagnosticError.of(
                "not-deployable",
                tr(
                    "'{layer}' has elements of type {type}, but a deployment folder needs float32 inputs and outputs",
                    layer=entry.layer,
                    type=entry.dtype,
                ),
                layer=entry.layer,
                remedy=tr("export the ONNX model instead"),
            )


# --- the check -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CheckFiles:
    """Files by input layer: whole, and those of which the middle is enough."""

    given: Mapping[str, Path]
    examples: Mapping[str, Path]


def _write_check(
    stage: GeneratedFolder,
    deployed: Graph,
    registry: Registry,
    weights: Weights,
    interface: Interface,
    data: _CheckFiles,
) -> Check:
    """Write inputs for the check and the outputs of the network in torch, padded as the generated code does."""
    unknown = [name for name in data.given if name not in {entry.layer for entry in interface.inputs}]
    if unknown:
        raise DiagnosticError.of(
            "no-such-layer",
            tr("'{name}' is not an input of the network", name=unknown[0]),
            layer=unknown[0],
            remedy=tr("choose {names}", names=", ".join(entry.layer for entry in interface.inputs)),
        )
    layers = {layer.name: layer for layer in deployed}
    for entry in interface.inputs:
        if entry.image:
            layers[entry.layer] = layers[entry.layer].with_param("tiling", str(entry.multiple))
    padding = Graph(layers.values(), name=deployed.name)
    session = Session(padding, registry, weights, RunOptions(engine="torch"))
    files, contents = [], []
    for number, entry in enumerate(interface.inputs, 1):
        array, is_image, content = _check_input(entry, data)
        contents.append(content)
        session.set_input(entry.layer, array, is_image=is_image)
        files.append(f"check/input_{number}{_suffix(entry) if is_image else '.npy'}")
        _write_input(stage.make(files[-1]), array)
    result = session.run()
    expected = [result.outputs[entry.layer] for entry in interface.outputs]
    outputs = [f"check/output_{number}.npy" for number in range(1, len(expected) + 1)]
    for file, array in zip(outputs, expected, strict=True):
        write_npy(stage.make(file), array)
    largest = (float(np.abs(array).max(where=np.isfinite(array), initial=0.0)) for array in expected)
    return Check(files, contents, outputs, [max(TOLERANCE * value, LEAST) for value in largest])


def _check_input(entry: ModelInput, data: _CheckFiles) -> tuple[Array, bool, str]:
    """Data of an input, whether it is an image (8-bit values), and what it shows."""
    given = data.given.get(entry.layer)
    if given is not None and (not entry.image or given.suffix.lower() == ".npy"):
        return read_npy(given), False, given.name
    if not entry.image:
        return np.random.default_rng(0).standard_normal(entry.drawn).astype(np.float32), False, "random values"
    if given is not None:
        image, content = read_image(given, entry.channels), given.name
    else:
        image, content = _example(entry, data.examples.get(entry.layer)) or _pattern(entry)
    if _suffix(entry) == ".npy":
        return np.repeat(image, entry.shape[0] or 1, axis=0), False, content
    return to_uint8(image).transpose(2, 0, 1)[None].astype(np.float32) / np.float32(255), True, content


def _example(entry: ModelInput, file: Path | None) -> tuple[Array, str] | None:
    """The middle of an image, and its name; None if it cannot be used."""
    if file is None or not IMAGES.reads(file):
        return None
    try:
        image = read_image(file, entry.channels)
    except DiagnosticError:
        return None
    height, width = (
        fixed or min(size, LARGEST_CHECK)
        for size, fixed in zip(image.shape[2:], (entry.height, entry.width), strict=True)
    )
    top, left = (image.shape[2] - height) // 2, (image.shape[3] - width) // 2
    if top < 0 or left < 0:
        return None
    return image[:, :, top : top + height, left : left + width], f"the middle of {file.name}"


def _pattern(entry: ModelInput) -> tuple[Array, str]:
    _, channels, *extent = entry.drawn
    height, width = (
        size if fixed is not None else min(size, max(LARGEST_CHECK // entry.multiple, 1) * entry.multiple)
        for size, fixed in zip(extent, (entry.height, entry.width), strict=True)
    )
    return make_pattern("zone_plate", channels, height, width), "a test pattern"


def _suffix(entry: ModelInput) -> str:
    """The format of check images that Python and C++ read; batches and other channels are arrays."""
    return ".npy" if (entry.shape[0] or 1) > 1 else {1: ".pgm", 3: ".ppm"}.get(entry.channels, ".npy")


def _write_input(path: Path, array: Array) -> None:
    if path.suffix == ".npy":
        write_npy(path, array)
        return
    from PIL import Image

    pixels = to_uint8(array)
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(path)


def _measure(folder: Path) -> Measured:
    """Run the generated `check.py`. Raises DiagnosticError if it fails or the results differ."""
    command = [sys.executable, str(folder / "python" / "check.py"), "--json"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    remedy = tr("export the ONNX model instead, and report this network as a bug")
    try:
        measured = msgspec.json.decode(done.stdout, type=Measured)
    except msgspec.DecodeError:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:300]
        message = tr("the generated code does not run the model: {reason}", reason=reason)
        raise DiagnosticError.of("deploy-failed", message, remedy=remedy) from None
    if not measured.ok:
        wrong = {name: found for name, found in measured.outputs.items() if not found.ok}
        name, worst = max(wrong.items(), key=lambda item: item[1].difference)
        message = tr(
            "the output '{name}' of the exported model differs by {difference} from the network in torch",
            name=name,
            difference=f"{worst.difference:.2g}",
        )
        raise DiagnosticError.of("deploy-differs", message, remedy=remedy)
    return measured


# --- files ---------------------------------------------------------------------------------------------------------


def _write_sources(stage: GeneratedFolder, name: str, interface: Interface) -> None:
    templates = resources.files("resources") / "templates" / "deploy"
    for file in TEMPLATES:
        stage.write(file, templates.joinpath(file).read_text("utf-8"))
    stage.write("cpp/network.h", sources.network_header(interface))
    model = sources.triton_name(name)
    stage.write(f"triton/{model}/config.pbtxt", sources.triton_config(model, interface))
    stage.copy("model.onnx", f"triton/{model}/1/model.onnx")


def _readme(
    name: str, precision: str, report: OnnxReport, interface: Interface, check: Check, measured: Measured
) -> str:
    template = (resources.files("resources") / "templates" / "deploy" / "README.md").read_text("utf-8")
    results = " ".join(f"result_{number}.npy" for number in range(1, len(interface.outputs) + 1))
    return sources.readme(
        template,
        {
            "NETWORK_NAME": name.strip() or "Network",
            "PRECISION": precision,
            "INPUT_LIST": sources.input_list(interface),
            "SIZES": str(report.sizes),
            "MEASURED": _measured_text(report, check, measured),
            "CHECK_INPUTS": " ".join(check.inputs),
            "RESULTS": results,
            "TRITON": sources.triton_text(interface),
        },
    )


def _measured_text(report: OnnxReport, check: Check, measured: Measured) -> str:
    rows = [
        "| output | largest difference to FP32 in PyTorch | accepted | PSNR |",
        "|---|---|---|---|",
        *(
            f"| {code(n)} | {d.difference:.2g} | {accepted:.2g} | {d.psnr_db:.1f} dB |"
            for (n, d), accepted in zip(measured.outputs.items(), check.tolerances, strict=True)
        ),
        "",
        "`python python/check.py` repeats the check. Median time for "
        f"{', '.join(f'{f} ({c})' for f, c in zip(check.inputs, check.contents, strict=True))} with pre- and post-processing on {cpu_name()}: {duration(measured.milliseconds)}. "
        f"The model has {report.nodes} nodes and takes {binary(report.bytes)}.",
    ]
    return "\n".join(rows)
