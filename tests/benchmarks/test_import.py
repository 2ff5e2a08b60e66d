"""Opening ONNX files to look at them, in the window. Netron was measured on the machine of docs/records."""

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
from designer.operators.inlining import inline

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, QEventLoop, QObject
from PySide6.QtWidgets import QApplication
from window_kit import open_window

from app.ui.shell.window import MainWindow

SIZE = (1400, 900)
SMALL = 100  # nodes in an ordinary test run
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


class FirstPaint(QObject):
    """Notes that the canvas is painted with an imported document."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.seen = False
        window.canvas.viewer.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.seen |= event.type() is QEvent.Type.Paint and self._window.context.root.imported is not None
        return False


def first_picture(window: MainWindow, path: Path, *, expected: bool) -> float:
    """Seconds from the request until the canvas is painted, layout included. The window has an empty network before and after.

    With `expected` the process of the import was started when the dialog opened, and is ready when a file is chosen.
    """
    if expected:
        window.files.expect([path])
        spare = window.models.imports._spare
        assert spare is not None
        while not spare.canReadLine():
            spare.waitForReadyRead(1000)
    painted = FirstPaint(window)
    started = perf_counter()
    window.files.open(path)
    while not painted.seen:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    seconds = perf_counter() - started
    document = window.context.root
    assert document.imported is not None
    assert document.imported.comparing, "the picture does not wait for the comparison"
    assert (
        len(inline(document.graph, document.registry)) >= document.imported.report.nodes
    )  # equal blocks are templates
    window.files.close()
    while window.models.imports.runs:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    return seconds


@pytest.mark.parametrize("nodes", NETRON)
def test_opening_an_onnx_file(benchmark, report, qtbot, nodes: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    onnx.save(deep_network(SMALL if benchmark.disabled else nodes), path)
    window = open_window(qtbot, tmp_path, size=SIZE)
    window.files.new()
    chosen = [first_picture(window, path, expected=True) for _ in range(1 if benchmark.disabled else 3)]
    cold = benchmark.pedantic(first_picture, (window, path), {"expected": False}, rounds=1)
    what = f"first picture of an ONNX file of {nodes:,} nodes"
    report.ratio(what, median(chosen), "s", peer=NETRON[nodes], peer_name="Netron", target=0.25)
    report.value(f"{what}, without a process started ahead", cold, "s", target=NETRON[nodes])


def test_a_document_of_100_000_layers_opens(benchmark, report) -> None:
    count = SMALL if benchmark.disabled else LARGE
    layers = [Layer("layer_0", "input", params={"dims": "8x8x3"})]
    layers += [
        Layer(f"layer_{number}", "identity", (16 * number, 0), (Source(f"layer_{number - 1}"),))
        for number in range(1, count)
    ]
    data = write_document(Graph(layers))

    def opened() -> float:
        started = perf_counter()
        reading = parse_document(data)
        assert reading.graph is not None
        assert len(reading.graph) == count
        return perf_counter() - started

    seconds = benchmark.pedantic(opened, rounds=1)
    report.value(f"reading a document of {LARGE:,} layers", seconds, "s", target=10)
