"""Random parameters and inputs: an operator agrees with torch on meta tensors, or it refuses with a ShapeError."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from operator_oracles import REGISTRY, Case, assert_onnx_agrees, case_of, dtype_of, meta, network, runner

from designer.graph.types import DataType, ShapeError, Size2D, Size3D, Symbol, TensorType
from designer.operators.api import MAX_ELEMENTS, Category, Operator, Role
from designer.operators.params import Parameter

DECLARATIONS = [
    cls
    for cls in (*REGISTRY, *REGISTRY.activations.values())
    if cls.role in (Role.COMPUTE, Role.OUTPUT, Role.LOSS) and "random" not in cls.exceptions
]
EXAMPLES = 60  # cases of an operator
ENOUGH = 30  # of them that torch is asked about
QUIET: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
}
LARGE = (1000, 65_536, 1_000_003)


def whole(parameter: Parameter, small: bool) -> st.SearchStrategy[int]:
    low, high = int(parameter.info.min or 0), int(parameter.info.max or 16)
    near = st.integers(max(low, -8), min(high, max(low, 0) + 7))
    return near if small else st.one_of(near, near, near, st.integers(low, high), st.sampled_from([low, high]))


def value_of(parameter: Parameter, small: bool) -> st.SearchStrategy[Any]:
    number = whole(parameter, small)
    match parameter.kind:
        case "bool":
            return st.booleans()
        case "choice":
            return st.sampled_from(parameter.info.choices)
        case "int":
            return number
        case "float":
            low = parameter.info.min if parameter.info.min is not None else -10.0
            high = parameter.info.max if parameter.info.max is not None else 10.0
            return st.floats(low, high, allow_subnormal=False)
        case "size2d":
            return st.builds(Size2D, number, number)
        case "size2d?":
            return st.one_of(st.none(), st.builds(Size2D, number, number))
        case "size3d":
            return st.builds(Size3D, number, number, number)
        case "floats":
            low = parameter.info.min if parameter.info.min is not None else -10.0
            return st.lists(st.floats(low, 10.0, allow_subnormal=False), max_size=5).map(tuple)
        case "ints":
            return st.lists(number, max_size=5).map(tuple)
    return st.just(parameter.default)


@st.composite
def tensors(draw: st.DrawFn, kind: TensorType, small: bool) -> TensorType:
    dims = list(kind.shape)
    for index, dim in enumerate(dims):
        if not isinstance(dim, Symbol) and draw(st.integers(0, 3)) == 0:
            dims[index] = draw(st.integers(1, 12)) if small or draw(st.integers(0, 3)) else draw(st.sampled_from(LARGE))
    if draw(st.integers(0, 11)) == 0 and len(dims) > 1:
        dims.pop()
    elif draw(st.integers(0, 11)) == 0:
        dims.append(3)
    dtype = kind.dtype if small or draw(st.integers(0, 7)) else draw(st.sampled_from(list(DataType)))
    return TensorType(tuple(dims), dtype)


@st.composite
def random_case(draw: st.DrawFn, cls: type[Operator], small: bool) -> Case | None:
    """Parameters near an example's, inputs near an example's; None when the operator refuses them."""
    start = draw(st.sampled_from(cls.examples))
    values = {**cls(**start.params).values()}
    for parameter in cls.parameters:
        if draw(st.integers(0, 2)) == 0:
            values[parameter.name] = draw(value_of(parameter, small))
    as_declared = len(start.inputs) > 1 and draw(st.booleans())  # several inputs drawn one by one rarely fit together
    types = [kind if as_declared else draw(tensors(kind, small)) for kind in start.inputs]
    if types and draw(st.integers(0, 15)) == 0:
        types.append(types[-1])
    if types and draw(st.integers(0, 15)) == 0:
        types.pop()
    operator = cls(**values)
    if any(operator.faults()):
        return None
    if any(kind.elements() > MAX_ELEMENTS for kind in types):
        return None
    try:
        outputs = operator.infer_checked(types)
    except ShapeError as error:
        if error.message and not error.message.endswith("."):
            return None
        raise
    if any(isinstance(d, int) and d < 1 for t in outputs for d in t.shape):
        return None  # the network's check of all outputs refuses empty ones
    return case_of(operator, types)


@pytest.mark.parametrize("cls", DECLARATIONS, ids=lambda cls: cls.type)
def test_agrees_with_torch_or_refuses(cls: type[Operator]) -> None:
    agreed = 0
    walks = cls.category is Category.RECURRENT

    @settings(max_examples=15 if walks else EXAMPLES, **QUIET)
    @given(random_case(cls, small=walks or cls.type == "bilinear"))  # torch walks their steps or features even on meta
    def check(case: Case | None) -> None:
        nonlocal agreed
        if case is None or agreed >= ENOUGH:
            return
        net = network(case)
        results = runner(case, "meta", net=net)(*meta(case.types, 2))
        for ours, theirs in zip(net.types, results, strict=True):
            assert ours.concrete(2) == tuple(theirs.shape)
            assert ours.dtype == dtype_of(theirs)
        agreed += 1

    check()
    assert agreed >= 3, "almost every case was refused: the rule may be too strict"


@pytest.mark.parametrize("cls", [c for c in DECLARATIONS if c.role is not Role.LOSS], ids=lambda cls: cls.type)
def test_onnx_agrees_with_torch(cls: type[Operator]) -> None:
    if "onnx" in cls.exceptions or "onnx_random" in cls.exceptions:
        pytest.skip(cls.exceptions.get("onnx") or cls.exceptions["onnx_random"])

    @settings(max_examples=9, **QUIET)
    @given(random_case(cls, small=True))
    def check(case: Case | None) -> None:
        if case is None or any(t.dtype not in (DataType.FLOAT32, DataType.INT64, DataType.BOOL) for t in case.types):
            return
        types = network(case).types
        if sum(t.elements() for t in (*case.types, *types)) > 100_000:
            return
        assert_onnx_agrees(case, examples=False)

    with torch.no_grad():
        check()


def other_values(parameter: Parameter) -> list[Any]:
    """A few values that differ from the default."""
    match parameter.kind:
        case "bool":
            return [not parameter.default]
        case "choice":
            return [choice for choice in parameter.info.choices if choice != parameter.default]
        case "int" | "float":
            step = 1 if parameter.kind == "int" else 0.3
            largest = parameter.info.max if parameter.info.max is not None else math.inf
            return [parameter.default + (step if parameter.default + step <= largest else -step)]
        case "size2d" | "size2d?":
            return [Size2D(2, 3)]
    return []


@pytest.mark.parametrize(
    "cls",
    [c for c in DECLARATIONS if c.role is not Role.LOSS and not {"onnx", "onnx_random"} & set(c.exceptions)],
    ids=lambda cls: cls.type,
)
def test_onnx_agrees_with_torch_where_one_parameter_differs_from_an_example(cls: type[Operator]) -> None:
    """Few random cases change one parameter only, and some parameters count with others only."""
    for start in cls.examples:
        for parameter in cls.parameters:
            for value in other_values(parameter):
                operator = cls(**{**start.params, parameter.name: value})
                try:
                    outputs = () if any(operator.faults()) else operator.infer_checked(start.inputs)
                except ShapeError:
                    continue
                if outputs and all(dim for tensor in outputs for dim in tensor.shape):
                    assert_onnx_agrees(case_of(operator, start.inputs), examples=False)


def test_randomness_finds_a_rule_that_forgets_dilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of the depthwise convolution have no dilation, so only random parameters can see this mistake."""
    from designer.operators.library.convolution import _filter

    right = _filter.window_output
    monkeypatch.setattr(_filter, "window_output", lambda size, k, s, pads, d=1: right(size, k, s, pads))
    monkeypatch.setattr(sys.modules[__name__], "EXAMPLES", 300)  # so that this does not depend on chance
    monkeypatch.setitem(QUIET, "phases", (Phase.generate,))  # the smallest mistake is not of interest
    with pytest.raises((AssertionError, RuntimeError, ExceptionGroup)):
        test_agrees_with_torch_or_refuses(REGISTRY.operators["depthwise_convolution"])
