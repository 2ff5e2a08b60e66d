"""Every operator on every engine at the values that break engines: NaN, and integers at the ends of their range.

Results are those of torch, or the engine says so: it refuses the layer, or lists it as one that may drop NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from operator_oracles import (
    COMPUTE,
    LAYER,
    REGISTRY,
    Case,
    Network,
    Runner,
    network,
    random_inputs,
    randomise,
    runner,
    weights_of,
)

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import BATCH, DataType, TensorType
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.skipped_nan import drops_nan

Arrays = Sequence[NDArray[Any]]
ENGINES = load_engines(installed=False)
NAMES = [engine.name for engine in ENGINES if engine.name in ("onnxruntime", "openvino")]
# Where a kernel has NaN, torch multiplies them with the zeros of the padding; engines skip these.
NAN_TIMES_PADDING = "dynamic_convolution-1-one_axis,_with_bias"
FLOATS = [
    case
    for case in COMPUTE
    if "onnx" not in case.subject.exceptions
    and case.name != NAN_TIMES_PADDING
    and any(kind.dtype.is_float for kind in case.types)
]


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest) -> str:
    problem = ENGINES.problem(ENGINES.get(request.param))
    if problem is not None:
        pytest.skip(f"{problem.message}: {problem.remedy}")
    return str(request.param)


def results(engine: str, net: Network, module: Runner, *inputs: Arrays) -> list[Arrays]:
    """What the engine computes of each of the inputs; nothing if it refuses the layer or an input by name."""
    made = ENGINES.make(net.inference, weights_of(module), RunOptions(engine=engine, threads=1))
    try:
        compiled = made.compile(Part((LAYER,), net.feeds), net.outputs)
        found = [compiled.run(dict(zip(net.feeds, arrays, strict=True))) for arrays in inputs]
    except DiagnosticError as error:
        if any(diagnostic.code != "not-in-engine" or not diagnostic.layer for diagnostic in error.diagnostics):
            raise
        return []
    return [[arrays[source] for source in net.outputs] for arrays in found]


def damaged(case: Case, seed: int, share: float) -> list[torch.Tensor]:
    """Inputs of which a share is NaN; with an odd seed the others are valid for roots and logarithms.

    A batch of one, for which OpenVINO has compiled a layer before it runs; another takes as long again.
    """
    make = torch.Generator().manual_seed(seed)
    found = []
    for value in random_inputs(case.types, 1, seed):
        numbers = value.abs() * 0.3 + 0.1 if seed % 2 and value.is_floating_point() else value
        gone = torch.rand(value.shape, generator=make) < share
        found.append(numbers.masked_fill(gone, torch.nan) if value.is_floating_point() else value)
    return found


@pytest.mark.parametrize("case", FLOATS, ids=lambda case: case.name)
def test_an_operator_keeps_nan_or_is_known_to_drop_them(engine: str, case: Case) -> None:
    net = network(case)
    if drops_nan(net.inference, LAYER, ENGINES.get(engine)):
        return
    module = runner(case, net=net)
    randomise(module)
    inputs = [damaged(case, seed, share) for seed, share in enumerate((0.1, 0.5, 1.0))]
    made = results(engine, net, module, *([value.numpy() for value in values] for values in inputs))
    for arrays, values in zip(made, inputs, strict=False):  # none where the layer is refused
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [result.detach().numpy() for result in module(*values)]
        for array, right in zip(arrays, expected, strict=True):
            finite = np.isfinite(array) & ~np.isinf(right)
            np.testing.assert_allclose(array[finite], right[finite], rtol=1e-3, atol=1e-4)


INTEGERS = (DataType.INT64, DataType.INT32, DataType.INT16, DataType.INT8, DataType.UINT8)
OPERATIONS = [
    *(("element_wise", {"operation": name}) for name in ("add", "subtract", "multiply", "squared_difference")),
    *(("bitwise", {"operation": name}) for name in ("and", "or", "xor")),
    *(("compare", {"operation": name}) for name in ("less", "greater", "equal", "greater_or_equal")),
]
EXTREMES = [("element_wise", {"operation": name}) for name in ("minimum", "maximum")]
SHIFTS = [("bitwise", {"operation": name}) for name in ("shift_left", "shift_right")]
REMAINDERS = [("modulo", {"sign": name}) for name in ("divisor", "dividend")]
TARGETS = (DataType.INT64, DataType.INT32, DataType.INT8, DataType.UINT8, DataType.BOOL, DataType.FLOAT32)


def integers(kind: DataType, seed: int) -> NDArray[np.integer]:
    """The ends of the range, small numbers, and others.

    int64 stays within 53 bits, in which ONNX Runtime computes remainders. OpenVINO takes -2**31 as false.
    """
    info = np.iinfo(kind.value)
    low, high = max(info.min + (info.bits == 32), -(2**52)), min(info.max, 2**52)
    dice = np.random.default_rng(seed)
    ends = [low, low + 1, high, high - 1, 0, 1, 2, 3, *([-1, -2] if low < 0 else [7, 8])]
    others = dice.integers(low, high, 48 - len(ends), dtype=kind.value)
    return dice.permutation(np.array([*ends, *others], kind.value)).reshape(4, 3, 4)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_right_at_the_ends_of_their_range_or_refused(engine: str, kind: DataType) -> None:
    one, other = integers(kind, 0), integers(kind, 1)
    extremes = EXTREMES if kind is not DataType.INT16 else []
    shifts = SHIFTS if kind is DataType.UINT8 else []
    for name, params in (*OPERATIONS, *extremes, *shifts):
        check(engine, name, params, [one, other])
    for name, params in REMAINDERS if kind in (DataType.INT64, DataType.INT32) else []:
        check(engine, name, params, [one, np.where(other == 0, 5, other)])
    for target in TARGETS:
        check(engine, "cast", {"target": target.value}, [one])


def test_log1p_is_accurate_near_0(engine: str) -> None:
    ends = [0.0, -1.0, -2.0, 1e-30, 0.5, -0.5, 1.0, 3.0, 1e30, np.inf, np.nan]
    x = np.array([*ends, *(sign * 10.0**-power for power in range(1, 12) for sign in (1, -1))], np.float32)[None]
    case = Case(REGISTRY.operators["unary"](function="log1p"), (TensorType((BATCH, x.size), DataType.FLOAT32),))
    net = network(case)
    module = runner(case, net=net)
    with np.errstate(invalid="ignore", divide="ignore"):
        right = np.log1p(x)
    made = [arrays[0] for arrays in results(engine, net, module, [x])]
    for found in (module(torch.from_numpy(x))[0].numpy(), *made):
        np.testing.assert_allclose(found, right, rtol=1e-6)


def check(engine: str, name: str, params: dict[str, str], inputs: Sequence[NDArray[np.integer]]) -> None:
    """An operator of integers gives what torch gives, or is refused by name."""
    types = [TensorType((BATCH, *array.shape[1:]), DataType(array.dtype.name)) for array in inputs]
    case = Case(REGISTRY.operators[name](**params), tuple(types))
    net = network(case)
    module = runner(case, net=net)
    with torch.no_grad():
        (right,) = (result.numpy() for result in module(*map(torch.from_numpy, inputs)))
    for (made,) in results(engine, net, module, inputs):
        np.testing.assert_array_equal(made, right, f"{name} {params} of {inputs[0].dtype}")


INDEXED = [
    ("gather", {"axis": "1", "mode": "elements", "wrap": "true"}, (2, 4)),
    ("gather", {"axis": "1", "mode": "slices", "wrap": "true"}, (2, 4)),
    ("embedding", {"vocabulary": "4", "features": "3"}, ()),
    *(("scatter", {"axis": "1", "reduction": name}, (2, 4)) for name in ("none", "add", "mul", "min", "max")),
]


@pytest.mark.parametrize("index", [4, -5, 2**33])
@pytest.mark.parametrize(("name", "params", "shape"), INDEXED, ids=str)
def test_an_index_out_of_range_is_an_error(
    name: str, params: dict[str, str], shape: tuple[int, ...], index: int
) -> None:
    indices = np.array([1, 2, 0, index])
    if params.get("mode") != "slices":
        indices = indices.reshape(2, 2)
    x = np.ones(shape, np.float32)
    arrays = {"gather": [x, indices], "embedding": [indices], "scatter": [x, indices, np.ones((2, 2), np.float32)]}[
        name
    ]
    types = tuple(TensorType(array.shape, DataType(array.dtype.name)) for array in arrays)
    case = Case(REGISTRY.operators[name](**params), types)
    net = network(case)
    module = runner(case, net=net)
    for engine in ENGINES:
        if not ENGINES.problem(engine):
            made = ENGINES.make(net.inference, weights_of(module), RunOptions(engine=engine.name, threads=1))
            with pytest.raises(DiagnosticError, match=f"'{LAYER}'") as raised:
                made.compile(Part((LAYER,), net.feeds), net.outputs).run(dict(zip(net.feeds, arrays, strict=True)))
            if engine.name == "openvino":  # it is checked before: what OpenVINO itself does depends on the threads
                assert "is out of range" in str(raised.value)
