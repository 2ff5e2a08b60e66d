"""Input data of a network: sizes, scale and shift of images, padding to `tiling` and cropping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Layer
from designer.graph.types import Size2D, Size3D, Symbol, TensorType
from designer.operators.api import Operator
from designer.runtime.api import Array, Tensor
from designer.texts import tr
from designer.units import dims_text

Extent = tuple[int, int]  # height, width


@dataclass(frozen=True, slots=True)
class InputData:
    """The data of one input layer. `serial` is unique for each array. The extent is 1 x 1 if the rank is not 4."""

    array: Tensor
    is_image: bool
    serial: int

    @property
    def extent(self) -> Extent:
        return (self.array.shape[2], self.array.shape[3]) if self.array.ndim == 4 else (1, 1)


def as_batch(array: Array, channels: int) -> Array:
    """A single image of an `.npy` file as a batch of one: C x H x W, H x W x C or H x W; anything else unchanged."""
    if array.ndim == 2 and channels == 1:
        return array[None, None]
    if array.ndim == 3 and array.shape[0] == channels:
        return array[None]
    if array.ndim == 3 and array.shape[2] == channels:
        return np.ascontiguousarray(array.transpose(2, 0, 1)[None])
    return array


def input_dtype(operator: Operator) -> str:
    """The NumPy name of the element type of an input layer."""
    (kind,) = operator.infer_checked(())
    return kind.dtype.value


def check_fed(layer: str, operator: Operator, array: Tensor) -> None:
    """Raise DiagnosticError unless `array` fits the input layer.

    Images need rank 4 and the layer's number of channels, other tensors the rank of its shape. Empty arrays are rejected.
    """
    dims = getattr(operator, "dims", None)
    if not isinstance(dims, Size3D):
        _check_tensor(layer, operator, array)
        return
    if array.ndim != 4 or 0 in array.shape:
        shape = dims_text(array.shape)
        raise DiagnosticError.of(
            "input-shape",
            tr("the input '{layer}' needs a tensor N x C x H x W, not {shape}", layer=layer, shape=shape),
            layer=layer,
            remedy=tr("choose an image, or an .npy file with four dimensions"),
        )
    batch = getattr(operator, "batch", 0)
    if batch and len(array) != batch:
        raise DiagnosticError.of(
            "input-shape",
            tr("the input '{layer}' needs a batch of {batch}, not {count}", layer=layer, batch=batch, count=len(array)),
            layer=layer,
            parameter="batch",
            remedy=tr("choose data with that many images, or change the input's batch"),
        )
    if array.shape[1] != dims.channels:
        raise DiagnosticError.of(
            "input-channels",
            tr(
                "the input '{layer}' needs {channels} channels (dims {dims}), but the data has {shape}",
                layer=layer,
                channels=dims.channels,
                dims=dims,
                shape=array.shape[1],
            ),
            layer=layer,
            parameter="dims",
            remedy=tr("choose data with that many channels, or change the input's dims"),
        )


def _check_tensor(layer: str, operator: Operator, array: Tensor) -> None:
    (kind,) = operator.infer_checked(())
    if array.ndim != kind.rank or 0 in array.shape:
        raise DiagnosticError.of(
            "input-shape",
            tr(
                "the input '{layer}' needs a tensor {kind}, not {shape}",
                layer=layer,
                kind=kind,
                shape=dims_text(array.shape),
            ),
            layer=layer,
            remedy=tr("choose an .npy file with that number of dimensions"),
        )


def noise(kind: TensorType, batch: int, source: np.random.Generator) -> Tensor:
    """A tensor of a type for an input without data: uniform from 0 to 1, and 0 where it has integers, which may be indices."""
    shape, dtype = kind.concrete(batch), np.dtype(kind.dtype.value)
    return source.random(shape, np.float32).astype(dtype, copy=False) if kind.dtype.is_float else np.zeros(shape, dtype)


def padded_extent(operator: Operator, extent: Extent) -> Extent:
    """Height and width rounded up to the input's `tiling`."""
    tile = tiling(operator)
    return (-(-extent[0] // tile[0]) * tile[0], -(-extent[1] // tile[1]) * tile[1])


def tiling(operator: Operator) -> Extent:
    value = getattr(operator, "tiling", 0)
    tile = value.hw if isinstance(value, Size2D) else (int(value or 0), int(value or 0))
    return (max(1, tile[0]), max(1, tile[1]))


def sized(layer: Layer, operator: Operator | None, fed: InputData) -> Layer:
    """The input layer with the size of its data, including padding."""
    if operator is None:
        return layer
    dims = getattr(operator, "dims", None)
    if not isinstance(dims, Size3D):
        (kind,) = operator.infer_checked(())
        sizes = tuple(zip(kind.shape, fed.array.shape, strict=True))
        shape = ",".join(str(size) for dim, size in sizes if not isinstance(dim, Symbol))
        return (
            layer if layer.params.get("shape", "") == shape else replace(layer, params={**layer.params, "shape": shape})
        )
    height, width = padded_extent(operator, fed.extent)
    return replace(layer, params={**layer.params, "dims": str(Size3D(width, height, dims.channels))})


def prepare(operator: Operator, fed: InputData) -> Tensor:
    """The array that the network reads: an image is scaled and shifted, then padded by repeating the edge."""
    array = fed.array
    scale, shift = factors(operator)
    if fed.is_image and (scale, shift) != (1.0, 0.0):
        array = array * np.float32(scale) + np.float32(shift)
    (height, width), (full_height, full_width) = fed.extent, padded_extent(operator, fed.extent)
    if (height, width) != (full_height, full_width):
        array = np.pad(array, ((0, 0), (0, 0), (0, full_height - height), (0, full_width - width)), mode="edge")
    return array


def factors(operator: Operator) -> tuple[float, float]:
    """Scale and shift of an input layer."""
    return float(getattr(operator, "scale", 1.0)), float(getattr(operator, "shift", 0.0))


def crop(array: Array, original: Extent, padded: Extent) -> Array:
    """A view of `array` (rank 4, N x C x H x W) without the padding, in proportion to its size."""
    if original == padded or array.ndim != 4:
        return array
    height, width = cropped(array.shape[2:], original, padded)
    return array[:, :, :height, :width]


def cropped(extent: Sequence[int], original: Extent, padded: Extent) -> Extent:
    """The height and width of a tensor without the padding."""
    height, width = (max(1, round(n * o / p)) for n, o, p in zip(extent, original, padded, strict=True))
    return height, width


def frozen(array: Array) -> Array:
    """`array`, or a read-only view of it."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
