"""Inputs and outputs of a deployed model: names in the file, sizes, and the pre-processing of each input."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Any

import msgspec

from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.types import Size3D
from designer.runtime.input_data import factors, tiling
from designer.runtime.network import operator_of
from designer.texts import tr
from designer.units import dims_text


class DeployedInput(msgspec.Struct, frozen=True):
    """An input of the model. `shape` has None for open sizes; `multiple` is that of height and width after padding."""

    name: str  # in the file
    layer: str
    shape: tuple[int | None, ...]
    image: bool
    channels: int = 0
    height: int | None = None  # None: any multiple of `multiple`
    width: int | None = None
    scale: float = 1.0
    shift: float = 0.0
    multiple: int = 1


class DeployedOutput(msgspec.Struct, frozen=True):
    """An output of the model, with the layer that computes it."""

    name: str
    layer: str
    shape: tuple[int | None, ...]


class Interface(msgspec.Struct, frozen=True):
    """Inputs and outputs in the order of the file."""

    inputs: tuple[DeployedInput, ...]
    outputs: tuple[DeployedOutput, ...]

    @property
    def batched(self) -> bool:
        """Whether the first axis of every input and output is an open batch."""
        shapes = [*(entry.shape for entry in self.inputs), *(entry.shape for entry in self.outputs)]
        return all(shape and shape[0] is None for shape in shapes)


def read_interface(
    model: Any, inference: Inference, inputs: Sequence[str], outputs: Sequence[str], multiple: int
) -> Interface:
    """The interface of an ONNX model of the deployed network `inference` with its input and output layers in order.

    `multiple` is the one that the model demands of heights and widths. Raises DiagnosticError for elements other than float32.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    entries = [entry for entry in model.graph.input if entry.name not in stored]
    return Interface(
        tuple(_input(entry, layer, inference, multiple) for entry, layer in zip(entries, inputs, strict=True)),
        tuple(
            DeployedOutput(entry.name, layer, _shape(entry, layer))
            for entry, layer in zip(model.graph.output, outputs, strict=True)
        ),
    )


def _input(entry: Any, layer: str, inference: Inference, multiple: int) -> DeployedInput:
    shape = _shape(entry, layer)
    operator = operator_of(inference, layer)
    dims = getattr(operator, "dims", None)
    if not isinstance(dims, Size3D):
        return DeployedInput(entry.name, layer, shape, image=False)
    scale, shift = factors(operator)
    return DeployedInput(
        entry.name,
        layer,
        shape,
        True,
        dims.channels,
        shape[2],
        shape[3],
        scale,
        shift,
        lcm(max(multiple, 1), *tiling(operator)),
    )


def _shape(entry: Any, layer: str) -> tuple[int | None, ...]:
    from onnx import TensorProto

    kind = entry.type.tensor_type
    if kind.elem_type != TensorProto.FLOAT:
        raise DiagnosticError.of(
            "not-deployable",
            tr(
                "'{layer}' has elements of type {type}, but a deployment folder needs float32 inputs and outputs",
                layer=layer,
                type=TensorProto.DataType.Name(kind.elem_type).lower(),
            ),
            layer=layer,
            remedy=tr("export the ONNX model instead"),
        )
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)


def shape_text(shape: tuple[int | None, ...]) -> str:
    """`N x 3 x height x width` of a shape with open sizes."""
    names = ("N", "C", "height", "width") if len(shape) == 4 else ("N", *("?" for _ in shape[1:]))
    return dims_text([name if size is None else size for name, size in zip(names, shape, strict=True)])
