"""Inputs and outputs of an exported model: names in the file, sizes, and the pre-processing of each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

import msgspec

from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Size3D
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.runtime.input_data import factors, tiling
from designer.runtime.network import operator_of, output_layers, role_of, type_of
from designer.texts import tr
from designer.units import dims_text
from exporters.onnx import OnnxReport

Shape = tuple[int | None, ...]  # None is an open size


class ModelInput(msgspec.Struct, frozen=True):
    """An input of the model. `drawn` is its shape in the document with a batch of 1; `multiple` is that of open sizes."""

    name: str  # in the file
    layer: str
    dtype: str
    shape: Shape
    drawn: tuple[int, ...]
    image: bool
    channels: int = 0
    height: int | None = None  # None: any multiple of `multiple`
    width: int | None = None
    scale: float = 1.0
    shift: float = 0.0
    multiple: int = 1


class ModelOutput(msgspec.Struct, frozen=True):
    """An output of the model, with the layer that computes it."""

    name: str
    layer: str
    dtype: str
    shape: Shape


class Interface(msgspec.Struct, frozen=True):
    """Inputs and outputs in the order of the file."""

    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelOutput, ...]

    @property
    def batched(self) -> bool:
        """Whether the first axis of every input and output is an open batch."""
        shapes = [*(entry.shape for entry in self.inputs), *(entry.shape for entry in self.outputs)]
        return all(shape and shape[0] is None for shape in shapes)


def interface_of(report: OnnxReport, graph: Graph, registry: Registry) -> Interface:
    """The interface of the ONNX file that was exported from `graph`."""
    import onnx

    model = onnx.load(report.path, load_external_data=False)
    inference = Inference(deploy(graph, registry), registry)
    outputs = output_layers(inference)
    needed = inference.graph.upstream(outputs)
    order = [name for name in inference.graph.order()[0] if name in needed]
    layers = [name for name in order if role_of(inference, name) is Role.INPUT]
    stored = {tensor.name for tensor in model.graph.initializer}
    entries = [entry for entry in model.graph.input if entry.name not in stored]
    images = [name for name in layers if _is_image(inference, name)]
    first = type_of(inference, Source(images[0])).concrete(1)[2:] if images else ()
    return Interface(
        tuple(
            _input(e, layer, inference, report.sizes.multiple, first) for e, layer in zip(entries, layers, strict=True)
        ),
        tuple(
            ModelOutput(e.name, layer, _dtype(e), _shape(e))
            for e, layer in zip(model.graph.output, outputs, strict=True)
        ),
    )


def replace_model(report: OnnxReport, onnx_file: Path) -> OnnxReport:
    """Put another ONNX file of the same network, such as one in INT8, in the place of the exported one.

    Raises DiagnosticError if the file cannot be read, or has other inputs and outputs.
    """
    import onnx

    try:
        data = onnx_file.read_bytes()
        model = onnx.load_from_string(data)
        onnx.checker.check_model(model)
    except Exception as error:  # onnx and protobuf raise their own classes
        system = error.strerror if isinstance(error, OSError) else None
        reason = system or (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DiagnosticError.of(
            "not-a-model",
            tr("{path} is not a valid ONNX file: {reason}", path=onnx_file, reason=reason),
            file=str(onnx_file),
            remedy=tr("write it with layerwright precision"),
        ) from error
    stored = {tensor.name for tensor in model.graph.initializer}
    names = [entry.name for entry in model.graph.input if entry.name not in stored]
    if names != list(report.inputs) or [entry.name for entry in model.graph.output] != list(report.outputs):
        raise DiagnosticError.of(
            "other-model",
            tr("{path} has other inputs and outputs than the network", path=onnx_file),
            file=str(onnx_file),
            remedy=tr("choose an ONNX file that was made from this network"),
        )
    write_atomic(report.path, data)
    return replace(report, nodes=len(model.graph.node), bytes=len(data))


def precision_of(path: Path) -> str:
    """The number formats in which a model computes: `FP32`, `FP16`, `INT8 + FP32`."""
    import onnx

    model = onnx.load(path)
    kinds = {onnx.TensorProto.DataType.Name(tensor.data_type) for tensor in model.graph.initializer}
    names = {"FLOAT": "FP32", "FLOAT16": "FP16", "BFLOAT16": "BF16"}
    found = {title for kind, title in names.items() if kind in kinds}
    if any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        found.add("INT8")
    return " + ".join(sorted(found, reverse=True)) or "FP32"


def _is_image(inference: Inference, layer: str) -> bool:
    return isinstance(getattr(operator_of(inference, layer), "dims", None), Size3D)


def _input(entry: Any, layer: str, inference: Inference, multiple: int, first: Sequence[int]) -> ModelInput:
    """An input of the model; `multiple` is that of the first image, whose height and width are `first`.

    The sizes of further images follow those of the first in proportion, and so do their multiples.
    """
    shape, dtype = _shape(entry), _dtype(entry)
    drawn = type_of(inference, Source(layer)).concrete(1)
    operator = operator_of(inference, layer)
    dims = getattr(operator, "dims", None)
    if not isinstance(dims, Size3D):
        return ModelInput(entry.name, layer, dtype, shape, drawn, image=False)
    scale, shift = factors(operator)
    steps = (max(multiple * size // whole, 1) for size, whole in zip(drawn[2:], first, strict=True))
    total = lcm(*steps, *tiling(operator))
    return ModelInput(
        entry.name, layer, dtype, shape, drawn, True, dims.channels, shape[2], shape[3], scale, shift, total
    )


def _shape(entry: Any) -> Shape:
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in entry.type.tensor_type.shape.dim)


def _dtype(entry: Any) -> str:
    from onnx import helper

    return str(helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type))


def shape_text(shape: Shape) -> str:
    """`N x 3 x height x width` of a shape with open sizes."""
    names = ("N", "C", "height", "width") if len(shape) == 4 else ("N", *("?" for _ in shape[1:]))[: len(shape)]
    return dims_text([name if size is None else size for name, size in zip(names, shape, strict=True)])
