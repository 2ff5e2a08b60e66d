"""Types of tensors, and the small values of parameters."""

from __future__ import annotations

import pytest

from designer.graph.model import Layer
from designer.graph.template import port_index
from designer.graph.types import BATCH, DataType, ShapeError, Size2D, Size3D, Symbol, TensorType


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float16", 2), ("int64", 8), ("bool", 1)])
def test_bytes_are_elements_times_their_size(dtype: str, size: int) -> None:
    kind = TensorType((BATCH, 3, 4, 5), DataType(dtype))
    assert kind.concrete(2) == (2, 3, 4, 5)
    assert (kind.elements(), kind.elements(2)) == (60, 120)
    assert kind.nbytes(2) == 120 * size


@pytest.mark.parametrize("text", ["3x5", " 3x5 ", "-1x5", "123456789x5"])
def test_sizes_are_read(text: str) -> None:
    width, height = map(int, text.split("x"))
    assert Size2D.parse(text) == Size2D(width, height)
    assert Size3D.parse(f"{text.strip()}x7") == Size3D(width, height, 7)


@pytest.mark.parametrize("text", ["", "3", "3x", "3 x 5", "3x5x7x9", "3.0x5", "1234567890x5", "٣x٥x٧", "3X5"])
def test_other_texts_are_not_sizes(text: str) -> None:
    for kind in (Size2D, Size3D):
        with pytest.raises(ValueError, match="is not a size"):
            kind.parse(text)


@pytest.mark.parametrize(
    ("text", "index"), [("2", 2), (" 2 ", 2), ("999999999", 999999999), ("1000000000", 0), ("-1", 0), ("٣", 0), ("", 0)]
)
def test_the_index_of_a_port_is_a_whole_number(text: str, index: int) -> None:
    assert port_index(Layer("x", "template_input", params={"index": text})) == index


def test_dimensions_of_an_image_are_numbers() -> None:
    shape = TensorType((BATCH, 3, 4, 5)).image()
    assert (shape.n, shape.c, shape.h, shape.w) == (BATCH, 3, 4, 5)
    with pytest.raises(ShapeError, match="must be that of an image"):
        TensorType((3, 4, 5)).image()
    for axis in (1, 2, 3):
        with pytest.raises(ShapeError, match="must be known numbers"):
            TensorType((BATCH, 3, 4, 5)).with_dim(axis, BATCH).image()


def test_one_dimension() -> None:
    kind = TensorType((BATCH, 3, 5))
    assert [kind.dim(axis) for axis in (1, 2, -1, -2)] == [3, 5, 5, 3]
    for axis in (3, -4):
        with pytest.raises(ShapeError, match=f"axis {axis} does not exist in N x 3 x 5 \\(rank 3\\)"):
            kind.dim(axis)
    for axis in (0, -3):
        with pytest.raises(ShapeError, match=f"dimension {axis} of N x 3 x 5 must be a known number"):
            kind.dim(axis)


def test_changed_types_keep_the_rest() -> None:
    kind = TensorType((BATCH, 3, 5), DataType.INT64)
    assert kind.with_shape(7) == TensorType((7,), DataType.INT64)
    assert kind.with_dim(-1, 9) == TensorType((BATCH, 3, 9), DataType.INT64)
    assert kind.with_dtype(DataType.BOOL) == TensorType((BATCH, 3, 5), DataType.BOOL)
    assert kind.bind(N=2, M=4) == TensorType((2, 3, 5), DataType.INT64)
    assert kind.bind(M=4) == kind
    assert [str(kind), str(kind.with_dtype(DataType.FLOAT32))] == ["N x 3 x 5 int64", "N x 3 x 5"]
    assert (Size2D(3, 5).hw, str(Size2D(3, 5)), str(Size3D(3, 5, 7))) == ((5, 3), "3x5", "3x5x7")


def test_what_each_element_type_is_and_how_it_is_shown() -> None:
    floats = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
    integers = {"int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1}
    sizes = {**floats, **integers, "bool": 1}
    assert {kind.value: kind.itemsize for kind in DataType} == sizes
    assert {kind.value for kind in DataType if kind.is_float} == floats.keys()
    for kind in DataType:
        shown = "N x 3" if kind is DataType.FLOAT32 else f"N x 3 {kind.value}"
        assert str(TensorType((BATCH, 3), kind)) == shown


def test_every_symbol_is_the_batch() -> None:
    kind = TensorType((3, BATCH, Symbol("M")))
    assert kind.concrete(2) == (3, 2, 2)
    assert kind.bind(M=7).shape == (3, BATCH, 7)
    assert (kind.elements(2), kind.nbytes(2)) == (12, 48)
    assert kind.dim(0) == kind.dim(-3) == 3
    for axis in (1, 3, -4):
        with pytest.raises(ShapeError):
            kind.dim(axis)
