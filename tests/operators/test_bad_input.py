"""Every operator refuses what it cannot take: with a sentence, on the right port, at once and without memory."""

from __future__ import annotations

import tracemalloc

import pytest
from operator_oracles import REGISTRY

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import DataType, ShapeError, TensorType
from designer.operators.api import Operator, image
from designer.operators.library.development.opaque import packed
from designer.operators.params import ParamError

DECLARATIONS = [*REGISTRY, *REGISTRY.activations.values()]
WITH_INPUTS = [cls for cls in DECLARATIONS if cls.inputs and cls.examples and cls.examples[0].inputs]


def first(cls: type[Operator]) -> tuple[Operator, tuple[TensorType, ...]]:
    example = cls.examples[0]
    return cls(**example.params), example.inputs


def refusal(operator: Operator, inputs: tuple[TensorType, ...]) -> ShapeError:
    with pytest.raises(ShapeError) as caught:
        operator.infer_checked(inputs)
    assert caught.value.message
    return caught.value


@pytest.mark.parametrize("cls", DECLARATIONS, ids=lambda cls: cls.type)
def test_parameters_out_of_bounds(cls: type[Operator]) -> None:
    for parameter in cls.parameters:
        texts = ["x" if parameter.kind not in ("str",) else None]
        if parameter.kind in ("int", "float"):
            texts += [str(int(b) + d) for b, d in ((parameter.info.min, -1), (parameter.info.max, 1)) if b is not None]
            texts += ["nan", "1e999", "", "0x10", "１２a"]
        if parameter.kind.startswith("size2d"):
            texts += ["3", "3x3x3", "-1x1000000000000"]
        for text in texts:
            if text is not None:
                with pytest.raises(ParamError):
                    parameter.parse(text)
        found = REGISTRY.read(Layer("it", cls.type, params={parameter.name: "\0"})).diagnostics
        assert parameter.kind == "str" or cls not in REGISTRY or found[0].parameter == parameter.name


@pytest.mark.parametrize("cls", WITH_INPUTS, ids=lambda cls: cls.type)
def test_missing_and_surplus_connections(cls: type[Operator]) -> None:
    operator, inputs = first(cls)
    ports = operator.input_ports()
    needed = [port for port in ports if not port.optional]
    error = refusal(operator, inputs[: len(needed) - 1])
    assert error.port == needed[-1].name
    assert "needs its input" in error.message
    if not ports[-1].variadic:
        everything = (*inputs, *(inputs[-1],) * (len(ports) + 1 - len(inputs)))
        assert "takes" in refusal(operator, everything).message


@pytest.mark.parametrize("cls", WITH_INPUTS, ids=lambda cls: cls.type)
def test_wrong_ranks_and_types(cls: type[Operator]) -> None:
    operator, inputs = first(cls)
    for index, port in enumerate(operator.input_ports()[: len(inputs)]):
        if port.rank is not None:
            wrong = TensorType((2,) * 7, inputs[index].dtype)
            error = refusal(operator, (*inputs[:index], wrong, *inputs[index + 1 :]))
            assert error.port == port.name
            assert "rank" in error.message
        if port.dtypes:
            other = next(dtype for dtype in (DataType.UINT8, DataType.FLOAT64) if dtype not in port.dtypes)
            wrong = inputs[index].with_dtype(other)
            error = refusal(operator, (*inputs[:index], wrong, *inputs[index + 1 :]))
            assert error.port == port.name
            assert other.value in error.message


@pytest.mark.parametrize("cls", WITH_INPUTS, ids=lambda cls: cls.type)
def test_huge_and_empty_dimensions_take_no_memory(cls: type[Operator]) -> None:
    operator, inputs = first(cls)
    tracemalloc.start()
    try:
        for size in (0, 1, 2**31, 2**62):
            for index, kind in enumerate(inputs):
                for axis in range(1, kind.rank):
                    wild = (*inputs[:index], kind.with_dim(axis, size), *inputs[index + 1 :])
                    try:
                        outputs = operator.infer_checked(wild)
                        operator.cost(wild, outputs)
                        operator.summary()
                    except ShapeError:
                        continue
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_a_network_says_which_layer_and_port() -> None:
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            Layer("cat", "concatenation", inputs=(Source("in"), Source("small"))),
            Layer("small", "pooling", inputs=(Source("in"),)),
            Layer("after", "convolution", inputs=(Source("cat"),)),
        ]
    )
    states = Inference(graph, REGISTRY).states
    assert [d.port for d in states["cat"].diagnostics] == ["x"]
    assert states["after"].because_of == "cat"
    assert not states["after"].diagnostics


@pytest.mark.parametrize("sides", [{"top": 4, "bottom": 2}, {"left": 7}, {"left": 3, "right": 5}])
def test_a_crop_leaves_a_pixel(sides: dict[str, int]) -> None:
    crop, x = REGISTRY.operators["crop"], image(3, 6, 7)
    assert refusal(crop(**sides), (x,)).message == "no pixels of the 7x6 image are left"
    assert crop(top=3, bottom=2, left=2, right=4).infer_checked((x,)) == (image(3, 1, 1),)


MODEL = packed(bytes(range(256)))


@pytest.mark.parametrize(
    "text",
    [MODEL[:-8], MODEL[8:], MODEL[:-1], MODEL[:40] + MODEL[44:], "no base64?"],
    ids=["no end", "no beginning", "no whole byte", "a gap", "another text"],
)
def test_a_damaged_model_of_an_opaque_layer_is_a_fault(text: str) -> None:
    opaque = REGISTRY.operators["opaque"]
    assert not list(opaque(op_type="Loop", model=MODEL).faults())
    (fault,) = opaque(op_type="Loop", model=text).faults()
    assert (fault.parameter, fault.message) == ("model", "the model is damaged or too large")
