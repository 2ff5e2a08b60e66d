"""Documents that once gave different results in different places: the same on every engine, in both layouts, and exported.

Beside `tests/data/agreement/NAME.xml` a NAME.json may hold inputs and the right outputs; inputs are random without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pytorch_networks import load_source
from trials import RUNS, refused, run_onnx

from designer.files.document import read_document
from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.inlining import inline
from designer.operators.registry import Registry, load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx
from exporters.pytorch.source import module_source, network_module

DOCUMENTS = sorted((Path(__file__).parents[1] / "data" / "agreement").glob("*.xml"))
Outputs = dict[str, Any]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load(entry_points=False)


def by_engine(engine: str, layout: str) -> Callable[..., Outputs]:
    def run(graph: Graph, registry: Registry, weights: Weights, inputs: Outputs, folder: Path) -> Outputs:
        session = Session(graph, registry, weights, RunOptions(engine=engine, layout=layout, threads=1))
        for name, array in inputs.items():
            session.set_input(name, array, is_image=False)
        return dict(session.run().outputs)

    return run


def as_onnx(graph: Graph, registry: Registry, weights: Weights, inputs: Outputs, folder: Path) -> Outputs:
    path = folder / "exported.onnx"
    report = export_onnx(graph, registry, weights, path)
    return dict(zip(report.outputs, run_onnx(path.read_bytes(), [inputs[name] for name in report.inputs]), strict=True))


def as_source(graph: Graph, registry: Registry, weights: Weights, inputs: Outputs, folder: Path) -> Outputs:
    module = network_module(graph, registry, name="Exported")
    network = load_source(module_source(module, "Exported")).Exported().eval()
    state = network.state_dict()
    for bound in module.program.weights:
        state[bound.key] = torch.from_numpy(np.array(weights.tensors[bound.layer, bound.tensor]))
    network.load_state_dict(state)
    with torch.no_grad():
        made = network(*(torch.from_numpy(inputs[source.layer]) for source in module.inputs))
    results: list[torch.Tensor] = list(made.values()) if isinstance(made, dict) else [made]
    return {str(source): value.numpy() for source, value in zip(module.outputs, results, strict=True)}


WAYS = {f"{engine} {layout}": by_engine(engine, layout) for engine, layout in RUNS}
WAYS |= {"exported ONNX": as_onnx, "exported torch": as_source}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_gives_one_result(path: Path, way: str, registry: Registry, tmp_path: Path) -> None:
    graph, weights, inputs, right = opened(path, registry)
    if not right:
        right = WAYS["torch nchw"](graph, registry, weights, inputs, tmp_path)
    try:
        made = WAYS[way](graph, registry, weights, inputs, tmp_path)
    except DiagnosticError as error:
        if not all(refused(found) for found in error.diagnostics):
            raise
        pytest.skip(str(error))
    assert made.keys() == right.keys()
    for name, array in made.items():
        np.testing.assert_allclose(array, right[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("side", [4, 8, 16])
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_has_no_seams(path: Path, side: int, registry: Registry) -> None:
    graph, weights, inputs, _ = opened(path, registry)
    whole, tiled = (Session(graph, registry, weights, RunOptions(engine="torch", threads=1, tile=n)) for n in (0, side))
    for name, array in inputs.items():
        whole.set_input(name, array, is_image=False)
        tiled.set_input(name, array, is_image=False)
    try:
        made = tiled.run().outputs
    except DiagnosticError as error:
        (found,) = error.diagnostics
        assert found.code == "not-tileable"
        assert found.layer in graph
        return
    for name, array in whole.run().outputs.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-6, atol=1e-6)


def opened(path: Path, registry: Registry) -> tuple[Graph, Weights, Outputs, Outputs]:
    """A document with random weights, its inputs and the right outputs, where they are written down."""
    graph = read_document(path).graph
    weights = random_weights(required_weights(Inference(inline(graph, registry), registry)), 0)
    inputs, right = known(path)
    for layer in graph:
        if layer.type == "input" and layer.name not in inputs:
            width, height, channels = map(int, layer.params["dims"].split("x"))
            inputs[layer.name] = np.random.default_rng(0).random((2, channels, height, width), np.float32)
    return graph, weights, inputs, right


def known(path: Path) -> tuple[Outputs, Outputs]:
    """Inputs and right outputs, where they are written down."""
    sidecar = path.with_suffix(".json")
    if not sidecar.exists():
        return {}, {}
    text = json.loads(sidecar.read_text("utf-8"))
    inputs, outputs = (
        {name: np.array(v, np.float32) for name, v in text[key].items()} for key in ("inputs", "outputs")
    )
    return inputs, outputs
