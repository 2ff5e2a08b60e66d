"""Export of networks to ONNX: the deployed graph with its weights, open batch size and, if possible, open height and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Symbol
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.operators.training_branch import no_output
from designer.runtime.api import Part
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.network import check_runnable, output_layers, role_of
from designer.runtime.provenance import provenance
from designer.texts import tr
from designer.units import dims_text
from exporters.onnx_origin import origin_of
from exporters.onnx_sizes import OpenSizes, open_sizes


@dataclass(frozen=True, slots=True)
class OnnxReport:
    """The content of an exported file.

    `inputs` and `outputs` map names in the file to shapes as text, batch first ("N x 3 x 96 x 128"), with "height" and
    "width" if these are open.
    """

    path: Path
    inputs: dict[str, str]
    outputs: dict[str, str]
    nodes: int
    bytes: int
    opset: int
    left_out: tuple[str, ...]  # analysis layers, losses and layers that only they need
    sizes: OpenSizes  # the possible heights and widths, or the layer that fixes them
    weights_note: str = ""


def export_onnx(
    graph: Graph, registry: Registry, weights: Weights, path: Path | str, convert: Callable[[Any], Any] | None = None
) -> OnnxReport:
    """Write `graph` to `path` atomically, with open height and width if no layer prevents it.

    `convert` changes the model before it is checked; values and nodes are named by layers, as in `onnx_model.py`.

    Inputs and outputs have the names of their layers. The file must pass `onnx.checker` with strict shape inference. Scale,
    shift and padding of an input are not part of the model but of its metadata, like the provenance; two exports differ only
    in its date (see `provenance.written_at`). Raises DiagnosticError if the network cannot run, ONNX cannot express it, or
    `path` has another suffix.
    """
    return ONNX_MODELS.writer(path)(graph, registry, weights, Path(path), convert)


def _write(
    graph: Graph, registry: Registry, weights: Weights, target: Path, convert: Callable[[Any], Any] | None
) -> OnnxReport:
    origin = origin_of(graph, registry, weights) if convert is None else None
    if origin is not None and origin.is_unedited(graph, weights):
        return _write_imported(origin.model, weights, target)
    deployed = deploy(graph, registry)
    inference = Inference(deployed, registry)
    outputs = output_layers(inference)
    if not outputs:
        raise DiagnosticError(no_output(graph, registry))
    check_runnable(inference, outputs)
    needed = deployed.upstream(outputs)
    order = [name for name in deployed.order()[0] if name in needed]
    feeds = tuple(Source(name) for name in order if role_of(inference, name) is Role.INPUT)
    part = Part(tuple(name for name in order if Source(name) not in feeds), feeds)
    wanted = [Source(name) for name in outputs]
    try:
        version = metadata.version("layerwright")
    except metadata.PackageNotFoundError:
        version = ""

    def build(sized: Inference) -> Any:
        found = _properties(graph, inference, feeds, weights)
        return build_model(sized, part, wanted, weights, metadata=found, producer_version=version)

    model = build(inference)
    sizes = open_sizes(model, deployed, registry, feeds, wanted, build)
    model.doc_string = f"{graph.name}, written by Layerwright"
    if convert is not None:
        model = convert(model)
    if origin is not None:
        origin.restore_names(model, deployed, registry)
    data = serialized(model)
    check_model(model, graph.name)
    write_atomic(target, data)
    return OnnxReport(
        target,
        _shapes(inference, feeds, model.graph.input),
        _shapes(inference, wanted, model.graph.output),
        len(model.graph.node),
        len(data),
        model.opset_import[0].version,
        tuple(name for name in graph.layers if name not in needed),
        sizes,
        weights.note,
    )


def _write_imported(model: Any, weights: Weights, target: Path) -> OnnxReport:
    """Write an imported model as it was, with the present weights."""
    data = serialized(model)
    write_atomic(target, data)
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [entry for entry in model.graph.input if entry.name not in stored]
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    return OnnxReport(
        target,
        _entries(inputs),
        _entries(model.graph.output),
        len(model.graph.node),
        len(data),
        opset,
        (),
        OpenSizes(0, as_imported=True),
        weights.note,
    )


def _entries(entries: Sequence[Any]) -> dict[str, str]:
    return {
        entry.name: dims_text([dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim])
        for entry in entries
    }


def _properties(graph: Graph, inference: Inference, feeds: tuple[Source, ...], weights: Weights) -> dict[str, str]:
    """Metadata for programs that run the file."""
    found = {"name": graph.name, "user_version_tag": graph.properties.get("user_version_tag", "")}
    found |= provenance(graph.name, graph, weights).texts()
    for feed in feeds:
        params = inference.graph[feed.layer].params
        for name in ("scale", "shift", "tiling"):
            if name in params:
                found[f"{feed.layer}.{name}"] = params[name]
    return found


def check_model(model: Any, name: str) -> None:
    """Run the checker of the onnx package. Raises DiagnosticError, because an error is a bug of an operator's declaration."""
    import onnx

    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        lines = str(error).strip().splitlines()
        raise DiagnosticError.of(
            "onnx-invalid",
            tr(
                "'{name}' does not pass the ONNX checker: {lines}",
                name=name,
                lines=(lines or ["no reason given"])[0][:300],
            ),
            remedy=tr("export the PyTorch project instead, and report this layer as a bug"),
        ) from error


def _shapes(inference: Inference, sources: Sequence[Source], entries: Any) -> dict[str, str]:
    """Shapes in the file, by layer."""
    found = {}
    for source, entry in zip(sources, entries, strict=True):
        dims = [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim]
        (kind, *_) = inference.states[source.layer].outputs or ()
        found[str(source)] = str(kind.with_shape(*(Symbol(d) if isinstance(d, str) else d for d in dims)))
    return found


Write = Callable[[Graph, Registry, Weights, Path, Callable[[Any], Any] | None], OnnxReport]
ONNX_MODELS: FormatTable[None, Write] = FormatTable(
    "ONNX models", (Format("ONNX model", (".onnx",), write=_write, package="onnx"),)
)
