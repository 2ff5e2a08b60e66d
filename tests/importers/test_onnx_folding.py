"""Nodes that depend on constants or on shapes only: their values are those of the reference implementation of onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import random
from onnx_node_cases import CASES, NodeCase, integers, ints, number

from designer.graph.types import Symbol
from designer.importers.onnx.folding import CODES, NotFoldedError, can_fold, fold

WHOLE = {"a": ints(-7, 7, -6, 0), "b": ints(2, -2, 3, 5)}
FURTHER = [
    NodeCase("Identity", WHOLE, order=["a"]),
    NodeCase("Div", WHOLE),
    NodeCase("Sub", WHOLE),
    NodeCase("Min", WHOLE),
    NodeCase("Max", WHOLE),
    NodeCase("ReduceProd", {"x": ints(3, 4, 5)}, attributes={"keepdims": 0}),
    NodeCase("ReduceSum", {"x": integers(3, 4, dtype=np.int32)}, {"axes": ints(-1)}),
    NodeCase("Range", {"start": number(9, np.int64), "limit": number(2, np.int64), "delta": number(-3, np.int64)}),
    NodeCase("Range", {"start": number(0.5), "limit": number(2.5), "delta": number(0.75)}),
    NodeCase("ConstantOfShape", {"shape": ints(2, 3)}),
    NodeCase("Flatten", {"x": random(2, 3, 4)}),
    NodeCase("Flatten", {"x": random(2, 3, 4)}, attributes={"axis": 2}),
    NodeCase("Flatten", {"x": random(2, 3, 4)}, attributes={"axis": 0}),
    NodeCase("Reshape", {"x": random(2, 3)}, {"shape": ints(3, 2)}, {"allowzero": 1}),
    NodeCase("Reshape", {"x": random(2, 3)}, {"shape": ints(0, -1)}),
    NodeCase("Slice", {"x": random(4, 10)}, {"s": ints(3), "e": ints(-10), "axes": ints(1), "steps": ints(-1)}),
    NodeCase("Slice", {"x": random(4, 10)}, {"s": ints(3), "e": ints(-11), "axes": ints(1), "steps": ints(-1)}),
    NodeCase("Slice", {"x": random(4, 3, 5)}, {"starts": ints(1), "ends": ints(3)}),
    NodeCase("ReduceSum", {"x": random(2, 3)}, {"axes": ints()}, {"noop_with_empty_axes": 1}),
    NodeCase("ReduceSum", {"x": random(2, 3)}, {"axes": ints()}),
    NodeCase("Concat", {"a": random(2, 3), "b": random(2, 1)}, attributes={"axis": 1}),
    *(
        NodeCase("Cast", {"x": random(5) * np.float32(9)}, attributes={"to": code})
        for code in (1, 3, 5, 6, 7, 9, 10, 11)
    ),
    *(NodeCase("Cast", {"x": integers(5, low=0, high=9)}, attributes={"to": code}) for code in (2, 4, 12, 13)),
]
FOLDED = [case for case in (*CASES, *FURTHER) if can_fold(case.op) and case.outputs == 1 and not case.by_runtime]


@pytest.mark.parametrize("case", FOLDED, ids=str)
def test_a_node_of_constants_is_folded_to_its_value(case: NodeCase) -> None:
    values = {**case.feeds, **case.weights}
    (expected,) = ReferenceEvaluator(case.model()).run(None, dict(case.feeds))
    order = list(values) if case.order is None else case.order
    found = fold(case.op, case.opset, case.attributes, [values[name] if name else None for name in order])
    assert isinstance(found, np.ndarray), "a single number too"
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_value_of_a_constant_of_shape_has_its_type() -> None:
    found = fold("ConstantOfShape", 20, {"value": ints(7)}, [ints(2, 3)])
    assert found.dtype == np.int64
    assert found.tolist() == [[7, 7, 7], [7, 7, 7]]


N = Symbol("N")
SHAPE = np.array([N, 3, 4], object)
BYTES = np.zeros(2**13, np.uint8)


def test_codes_of_element_types_are_those_of_onnx() -> None:
    assert {name: np.dtype(name) for name in CODES} == {
        name: helper.tensor_dtype_to_np_dtype(code) for name, code in CODES.items()
    }
    assert len(CODES) == 12


@pytest.mark.parametrize(
    ("op", "attributes", "inputs", "expected"),
    [
        ("Gather", {}, [SHAPE, ints(2, 0)], [4, N]),
        ("Slice", {}, [SHAPE, ints(1), ints(3)], [3, 4]),
        ("Concat", {"axis": 0}, [ints(-1), SHAPE], [-1, N, 3, 4]),
        ("Cast", {"to": 7}, [SHAPE], [N, 3, 4]),
        ("Equal", {}, [SHAPE, ints(-1, 3, 3)], [False, True, False]),
        ("Where", {}, [np.array([True, False, True]), SHAPE, ints(5, 6, 7)], [N, 6, 4]),
        ("Squeeze", {}, [SHAPE[:1]], N),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shapes_with_the_batch_are_moved_around(
    op: str, attributes: dict[str, Any], inputs: Any, expected: Any
) -> None:
    assert fold(op, 20, attributes, inputs).tolist() == expected


@pytest.mark.parametrize(
    ("op", "attributes", "inputs"),
    [
        ("Mul", {}, [SHAPE, ints(2)]),
        ("Equal", {}, [SHAPE, ints(1, 3, 3)]),
        ("Cast", {"to": 1}, [SHAPE]),
        ("Cast", {"to": 8}, [ints(1)]),
        ("Reshape", {}, [random(6), SHAPE]),
        ("Where", {}, [SHAPE, ints(1), ints(2)]),
        ("Relu", {}, [random(3)]),
        ("Add", {}, [ints(1, 2), ints(1, 2, 3)]),
        ("ConstantOfShape", {}, [ints(2**13, 2**13)]),
        ("ConstantOfShape", {}, [ints(-1)]),
        ("Tile", {}, [ints(1), ints(2**25)]),
        ("Expand", {}, [ints(1), ints(2**25)]),
        ("Range", {}, [number(0, np.int64), number(2**25, np.int64), number(1, np.int64)]),
        ("Tile", {}, [BYTES[:, None], ints(1, 2**12)]),
        ("Concat", {"axis": 0}, [np.broadcast_to(np.uint8(0), 2**24), np.zeros(1, np.uint8)]),
        ("Add", {}, [BYTES[:, None], BYTES[None]]),
        ("Where", {}, [BYTES[:, None] > 0, BYTES[None], BYTES[:1]]),
        ("Equal", {}, [SHAPE[:1], np.array([Symbol("M")], object)]),
        ("Slice", {}, [random(4), SHAPE[:1], ints(3)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_that_are_not_known_or_too_large_are_not_folded(
    op: str, attributes: dict[str, Any], inputs: Any
) -> None:
    with pytest.raises(NotFoldedError):
        fold(op, 20, attributes, inputs)


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Div", [np.array([1.0, -1.0, 0.0], np.float32), np.zeros(3, np.float32)], [np.inf, -np.inf, np.nan]),
        ("Sqrt", [np.array([-1.0, 4.0], np.float32)], [np.nan, 2.0]),
        ("Mul", [np.array([3e38, 2.0], np.float32), np.array([10.0, 3.0], np.float32)], [np.inf, 6.0]),
        ("Sub", [np.array([np.inf], np.float32), np.array([np.inf], np.float32)], [np.nan]),
    ],
)
def test_infinite_values_and_those_that_are_not_numbers_are_folded_without_a_warning(
    op: str, inputs: list[Any], expected: list[float]
) -> None:
    np.testing.assert_array_equal(fold(op, 20, {}, inputs), np.array(expected, np.float32))
