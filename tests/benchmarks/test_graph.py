"""Editing, opening and saving a network of 1,000 layers."""

from __future__ import annotations

from itertools import count

import pytest

from designer.files.document import parse_document, write_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import load

pytest.importorskip("pytest_benchmark")

LAYERS = 1000


@pytest.fixture(scope="module")
def library():
    return load(entry_points=False)


@pytest.fixture
def large() -> Graph:
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, LAYERS):
        before = Source(layers[-1].name)
        kind = ("convolution", "batch_normalization", "element_wise", "identity")[number % 4]
        inputs = (before, Source(layers[-2].name)) if kind == "element_wise" and number > 1 else (before,)
        activation = ActivationSpec("relu") if kind == "convolution" else None
        params = {"features": "32"} if kind == "convolution" else {}
        layers.append(Layer(f"n{number:04d}", kind, (16 * number, 0), inputs, params, activation))
    return Graph(layers)


def test_inference_from_scratch(benchmark, large, library) -> None:
    inference = benchmark(Inference, large, library)
    assert sum(state.ok for state in inference.states.values()) > LAYERS // 2


def test_an_edit_that_reaches_every_layer(benchmark, report, large, library) -> None:
    inference = Inference(large, library)
    sizes = count(65)

    def edit() -> None:
        command = commands.set_params(large, {"in": {"dims": f"{next(sizes)}x64x3"}})
        inference.update(large.apply(command))

    benchmark(edit)
    report.median(f"edit that reaches all {LAYERS:,} layers", target=50)
    assert inference.last_inferred == LAYERS


def test_inserting_and_removing_a_layer(benchmark, large, library) -> None:
    inference = Inference(large, library)

    def edit() -> None:
        command = commands.insert_on_link(large, Layer("new", "identity"), "n0501", 0)
        inference.update(large.apply(command))
        assert inference.last_inferred < 5
        inference.update(large.apply(command.reversed()))

    benchmark(edit)


def test_opening(benchmark, large) -> None:
    data = write_document(large)
    reading = benchmark(parse_document, data)
    assert reading.graph == large


def test_saving(benchmark, large) -> None:
    assert parse_document(benchmark(write_document, large)).graph == large
