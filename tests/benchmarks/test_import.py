"""Opening ONNX files to look at them: document, types and layout. Netron was measured on the machine of docs/records."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from designer.files.document import parse_document, write_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.inlining import inline
from designer.operators.registry import default_registry

pytest.importorskip("pytest_benchmark")

NETRON = {1_000: 3.0, 3_000: 4.5, 10_000: 15.9}  # seconds until the first picture
LARGE = 100_000


def deep_network(nodes: int) -> onnx.ModelProto:
    """Residual blocks of five nodes with 3 x 3 convolutions of eight channels."""
    found, tensors, x = [], [], "x"
    random = np.random.default_rng(0)
    for number in range(nodes // 5):
        name, scope = f"layers.{number}", f"/layers/layers.{number}"
        kernel = random.standard_normal((8, 8, 3, 3)).astype(np.float32)
        tensors.append(numpy_helper.from_array(kernel, f"{name}.conv.weight"))
        tensors.append(numpy_helper.from_array(np.zeros(8, np.float32), f"{name}.conv.bias"))
        reads = [x, f"{name}.conv.weight", f"{name}.conv.bias"]
        found += [
            helper.make_node("Conv", reads, [f"c{number}"], name=f"{scope}/conv/Conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{number}"], [f"r{number}"], name=f"{scope}/act/Relu"),
            helper.make_node("Tanh", [f"r{number}"], [f"t{number}"], name=f"{scope}/Tanh"),
            helper.make_node("Mul", [f"r{number}", f"t{number}"], [f"m{number}"], name=f"{scope}/Mul"),
            helper.make_node("Add", [x, f"m{number}"], [f"a{number}"], name=f"{scope}/Add"),
        ]
        x = f"a{number}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8, "h", "w"]) for name in ("x", x)]
    graph = helper.make_graph(found, "deep", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("nodes", NETRON)
def test_opening_an_onnx_file(benchmark, report, nodes: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    onnx.save(deep_network(nodes), path)
    registry = default_registry()
    import_onnx(path, registry, ImportOptions())  # imports the libraries
    times: list[float] = []
    opened_graphs: list[Graph] = []

    def opened() -> None:
        started = perf_counter()
        found = import_onnx(path, registry, ImportOptions())
        times.append(perf_counter() - started)
        opened_graphs.append(found.graph)

    benchmark.pedantic(opened, rounds=3)
    assert len(inline(opened_graphs[-1], registry)) >= nodes  # equal blocks are instances of a template
    seconds = median(times)
    report.ratio(
        f"opening an ONNX file of {nodes:,} nodes", seconds, "s", peer=NETRON[nodes], peer_name="Netron", target=0.25
    )


def test_a_document_of_100_000_layers_opens(benchmark, report) -> None:
    layers = [Layer("layer_0", "input", params={"dims": "8x8x3"})]
    layers += [
        Layer(f"layer_{number}", "identity", (16 * number, 0), (Source(f"layer_{number - 1}"),))
        for number in range(1, LARGE)
    ]
    data = write_document(Graph(layers))

    def opened() -> float:
        started = perf_counter()
        reading = parse_document(data)
        assert reading.graph is not None
        assert len(reading.graph) == LARGE
        return perf_counter() - started

    seconds = benchmark.pedantic(opened, rounds=1)
    report.value(f"reading a document of {LARGE:,} layers", seconds, "s", target=10)
