"""What the document knows of the layers that ran: bytes and work are those of the sizes, the batch and the precision that were fed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.analysis.layer_infos import LayerInfo, layer_infos
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.api import Category
from designer.operators.registry import default_registry
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, ProfileRun

FLOPS, BYTES = 5e10, 1e10  # a second
Shape = tuple[int, ...]


def network() -> Graph:
    part = (
        Layer("x", "template_input"),
        Layer("inner", "convolution", inputs=(Source("x"),), params={"features": "2", "kernel": "3x3"}),
        Layer("y", "template_output", inputs=(Source("inner"),)),
    )
    return Graph(
        [
            Layer("a", "input", params={"dims": "16x8x3"}),
            Layer("b", "input", params={"dims": "16x8x3"}),
            Layer("sum", "element_wise", inputs=(Source("a"), Source("b")), params={"operation": "add"}),
            Layer("conv", "convolution", inputs=(Source("sum"),), params={"features": "4", "kernel": "3x3"}),
            Layer("block", "template", inputs=(Source("conv"),), params={"template": "part"}),
            Layer("strange", "of_a_plugin", inputs=(Source("conv"),)),
            Layer("out", "output", inputs=(Source("block"),)),
        ],
        templates=[Template("part", part)],
    )


def expected(height: int, width: int, batch: int, size: int) -> dict[str, tuple[str, int | None, float]]:
    """The shape of each layer, the bytes of its outputs, and its seconds."""
    pixels = height * width

    def of(channels: int, read: int, weights: int = 0, operations: int = 0) -> tuple[str, int, float]:
        """Channels of the output, and channels and weights that are read."""
        made = batch * channels * pixels * size
        moved = made + batch * read * pixels * size + weights * size
        seconds = batch * operations * pixels / FLOPS + moved / BYTES
        return f"N x {channels} x {height} x {width}", made, seconds

    return {
        "a": of(3, 0),
        "b": of(3, 0),
        "sum": of(3, 6),
        "conv": of(4, 3, 3 * 4 * 9 + 4, 2 * 3 * 4 * 9),
        "block": of(2, 2),
        "block.x": of(4, 4),
        "block.inner": of(2, 4, 4 * 2 * 9 + 2, 2 * 4 * 2 * 9),
        "block.y": of(2, 2),
        "strange": ("unknown", None, 0.0),
        "out": of(2, 2),
    }


@pytest.mark.parametrize(
    ("fed", "precision", "size"),
    [
        ({}, "fp32", (8, 16, 1, 4)),
        ({"a": (1, 3, 10, 20), "b": (3, 3, 10, 20)}, "fp32", (10, 20, 3, 4)),
        ({"b": (4, 3, 10, 20), "a": (1, 3, 10, 20)}, "fp32", (10, 20, 4, 4)),
        ({"a": (2, 3, 12, 6), "b": (2, 3, 12, 6), "gone": (1, 3, 9, 9), "conv": (1, 2, 3, 4)}, "fp16", (12, 6, 2, 2)),
        ({"a": (), "b": (5,)}, "bf16", (8, 16, 5, 2)),
    ],
)
def test_bytes_and_work_are_those_of_what_was_fed(
    fed: Mapping[str, Shape], precision: str, size: tuple[int, int, int, int]
) -> None:
    graph, registry = network(), default_registry()
    found = layer_infos(graph, registry, fed, precision)
    assert {name: (info.shape, info.memory) for name, info in found.items()} == {
        name: values[:2] for name, values in expected(*size).items()
    }
    seconds = {name: values[2] for name, values in expected(*size).items()}
    assert {name: info.weight for name, info in found.items()} == pytest.approx(seconds)
    assert all(info.measured is None for info in found.values())
    assert graph == network(), "the document keeps its sizes"


def test_titles_and_categories_are_those_of_the_operators() -> None:
    found = layer_infos(network(), default_registry(), {})
    assert {name: (info.type, info.title, info.category) for name, info in found.items()} == {
        "a": ("input", "Input", Category.INPUT_OUTPUT),
        "b": ("input", "Input", Category.INPUT_OUTPUT),
        "sum": ("element_wise", "Element-wise", Category.ELEMENT_WISE),
        "conv": ("convolution", "Convolution", Category.CONVOLUTION),
        "block": ("identity", "Identity", Category.DEVELOPMENT),
        "block.x": ("identity", "Identity", Category.DEVELOPMENT),
        "block.inner": ("convolution", "Convolution", Category.CONVOLUTION),
        "block.y": ("identity", "Identity", Category.DEVELOPMENT),
        "strange": ("of_a_plugin", "of_a_plugin", None),
        "out": ("output", "Output", Category.INPUT_OUTPUT),
    }


def chain() -> Graph:
    return Graph(
        [
            Layer("a", "input", params={"dims": "16x8x3"}),
            Layer("one", "convolution", inputs=(Source("a"),), params={"features": "4", "kernel": "3x3"}),
            Layer("two", "batch_normalization", inputs=(Source("one"),)),
            Layer("three", "convolution", inputs=(Source("two"),), params={"features": "2", "kernel": "1x1"}),
            Layer("out", "output", inputs=(Source("three"),)),
        ]
    )


def run(source: ValueSource, *rows: OperatorProfile) -> ProfileRun:
    return ProfileRun("onnxruntime", "fp32", "nchw", "cpu", 1, "16x8", 9.0, 0.1, rows, source=source)


def test_layers_that_ran_as_one_share_its_time_by_their_work() -> None:
    graph, registry = chain(), default_registry()
    rows = (
        OperatorProfile(("one", "two"), "convolution + batch_normalization", time_ms=5.0),
        OperatorProfile(("three",), "convolution", time_ms=3.0),
    )
    found = layer_infos(graph, registry, {}, "fp32", run(ValueSource.MEASURED, *rows))
    work = {name: found[name].weight for name in ("one", "two")}
    whole = sum(work.values())
    times = {name: info.measured for name, info in found.items()}
    assert times == {
        "a": None,
        "one": pytest.approx(5 * work["one"] / whole),
        "two": pytest.approx(5 * work["two"] / whole),
        "three": pytest.approx(3.0),
        "out": None,
    }
    assert times["one"] > times["two"] > 0
    others = [source for source in ValueSource if source is not ValueSource.MEASURED]
    for source in others:
        modelled = layer_infos(graph, registry, {}, "fp32", run(source, *rows))
        assert modelled == layer_infos(graph, registry, {}), source
    assert isinstance(found["one"], LayerInfo)
