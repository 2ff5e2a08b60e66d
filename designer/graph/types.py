"""Tensor types and the small value types that parameters are made of.

Shapes are N x C x H x W in memory; texts in files and in the window (`Size2D`, `Size3D`) are width first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from designer.texts import tr
from designer.units import dims_text


class ShapeError(Exception):
    """A rule about shapes, ranks or data types was broken.

    The message is one sentence that names the rule and the values, for instance
    "kernel 7x7 does not fit an input of 5x5". `port` is the input port to mark, `remedy` what to do, `code` that of the
    diagnostic. For an error inside a template, `template` and `inner` are the template and its layer.
    """

    def __init__(
        self,
        message: str,
        *,
        port: str | None = None,
        remedy: str = "",
        code: str = "shape-mismatch",
        template: str | None = None,
        inner: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.port = port
        self.remedy = remedy
        self.template = template
        self.inner = inner


class DataType(StrEnum):
    """Element type of a tensor; the values are the names that numpy and torch share."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT64 = "float64"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    UINT64 = "uint64"
    UINT32 = "uint32"
    UINT16 = "uint16"
    UINT8 = "uint8"
    BOOL = "bool"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self.value]

    @property
    def is_float(self) -> bool:
        return self in (DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT64)


_ITEMSIZE = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dimension that is known only by name, such as the batch size `N`."""

    name: str

    def __str__(self) -> str:
        return self.name


Dim = int | Symbol
BATCH = Symbol("N")


@dataclass(frozen=True, slots=True)
class ImageShape:
    """The four dimensions of an image tensor; all but the batch are numbers."""

    n: Dim
    c: int
    h: int
    w: int


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type of one tensor."""

    shape: tuple[Dim, ...]
    dtype: DataType = DataType.FLOAT32

    @property
    def rank(self) -> int:
        return len(self.shape)

    def image(self) -> ImageShape:
        """The dimensions as N, C, H, W. Raises ShapeError unless the rank is 4 and C, H and W are numbers."""
        if len(self.shape) != 4:
            raise ShapeError(tr("the shape must be that of an image (N x C x H x W), not {self}", self=self))
        n, c, h, w = self.shape
        if isinstance(c, Symbol) or isinstance(h, Symbol) or isinstance(w, Symbol):
            raise ShapeError(
                tr("channels, height and width must be known numbers, not {self}", self=self),
                remedy=tr("keep the batch on the first axis, for instance with Permute"),
            )
        return ImageShape(n, c, h, w)

    def dim(self, axis: int) -> int:
        """The dimension at `axis` (negative counts from the end). Raises ShapeError if it is symbolic or does not exist."""
        if not -self.rank <= axis < self.rank:
            raise ShapeError(
                tr("axis {axis} does not exist in {self} (rank {rank})", axis=axis, self=self, rank=self.rank)
            )
        value = self.shape[axis]
        if isinstance(value, Symbol):
            raise ShapeError(
                tr("dimension {axis} of {self} must be a known number", axis=axis, self=self),
                remedy=tr("use an axis with a known size"),
            )
        return value

    def with_shape(self, *shape: Dim) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DataType) -> TensorType:
        return TensorType(self.shape, dtype)

    def with_dim(self, axis: int, value: Dim) -> TensorType:
        dims = list(self.shape)
        dims[axis] = value
        return TensorType(tuple(dims), self.dtype)

    def bind(self, **symbols: int) -> TensorType:
        """Replace symbols by numbers: `t.bind(N=2)`."""
        dims = tuple(symbols.get(d.name, d) if isinstance(d, Symbol) else d for d in self.shape)
        return TensorType(dims, self.dtype)

    def concrete(self, batch: int = 1) -> tuple[int, ...]:
        """The shape as numbers, with every symbol replaced by `batch`."""
        return tuple(batch if isinstance(d, Symbol) else d for d in self.shape)

    def elements(self, batch: int = 1) -> int:
        return prod(self.concrete(batch))

    def nbytes(self, batch: int = 1) -> int:
        return self.elements(batch) * self.dtype.itemsize

    def __str__(self) -> str:
        dims = dims_text(self.shape)
        return dims if self.dtype is DataType.FLOAT32 else f"{dims} {self.dtype.value}"


_SIZE2D = re.compile(r"(-?\d{1,9})x(-?\d{1,9})\Z", re.ASCII)
_SIZE3D = re.compile(r"(-?\d{1,9})x(-?\d{1,9})x(-?\d{1,9})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Size2D:
    """Width and height, written `3x3`, width first."""

    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Size2D:
        match = _SIZE2D.match(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not a size; write width x height as in 3x3")
        return cls(int(match[1]), int(match[2]))

    @property
    def hw(self) -> tuple[int, int]:
        """(height, width), the order of torch and ONNX."""
        return (self.height, self.width)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


@dataclass(frozen=True, slots=True, order=True)
class Size3D:
    """Width, height and channels (or depth), written `256x256x3`."""

    width: int
    height: int
    channels: int

    @classmethod
    def parse(cls, text: str) -> Size3D:
        match = _SIZE3D.match(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not a size; write width x height x channels as in 256x256x3")
        return cls(int(match[1]), int(match[2]), int(match[3]))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}x{self.channels}"
