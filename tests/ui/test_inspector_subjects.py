"""What the Channel Inspector shows besides outputs: weights, gradients, items of a batch, tensors of other ranks."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from inspector_kit import Inspecting
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QComboBox, QSpinBox, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import empty

from app.engine.protocol import WeightsRequest
from app.ui.document.document import Document
from app.ui.document.labels import LARGEST, labels_of, read_labels
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from app.ui.inspector.look import Fit, Look
from app.ui.inspector.matrix_view import MatrixView, ticks
from app.ui.inspector.pages import Form, by_filter, page_of
from app.ui.inspector.subject import Kind
from app.ui.inspector.tiles import Tiles
from app.ui.widgets.feature_view import FeatureView
from designer.graph.commands import set_params
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


class Bench(Inspecting):
    SIZE = (900, 600)

    def look_at(self, kind: Kind) -> None:
        self.choose("kind", list(Kind).index(kind))
        self.qtbot.waitUntil(lambda: self.panel.subject.kind is kind and self.panel.page is not None, timeout=kit.WAIT)


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    return Bench.launched(qtbot, engine, tmp_path)


def weights(bench: Bench, layer: str) -> dict[str, np.ndarray]:
    """As the engine reports them."""
    found: list[dict[str, np.ndarray]] = []
    take = bench.analysis.engine.take
    bench.analysis.engine.ask(
        WeightsRequest(layer), bench.panel, lambda r: found.append({n: take(h) for n, h in r.tensors.items()})
    )
    bench.qtbot.waitUntil(lambda: bool(found), timeout=kit.WAIT)
    return found[0]


def test_without_a_layer_the_problem_of_a_network_is_left_to_other_panels(bench: Bench) -> None:
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "x"}}))
    bench.wait(Phase.BLOCKED)
    assert empty(bench.panel).text().startswith("Double-click a layer in the Network Overview")
    bench.context.inspect_requested.emit("conv_h")
    assert empty(bench.panel).text() == bench.analysis.message


def test_filters_are_pictures_with_their_places(bench: Bench) -> None:
    bench.inspect("conv_h")
    bench.look_at(Kind.WEIGHTS)
    real = weights(bench, "conv_h")
    kernel = next(array for array in real.values() if array.ndim == 4)
    page = bench.panel.page
    assert page is not None
    assert page.form is Form.CHANNELS
    assert bench.panel.grid.channels == 8
    assert page.filters is not None
    assert (page.filters.count, page.filters.columns) == (3, 3)
    assert np.array_equal(page.values.reshape(kernel.shape), kernel)
    tensor = bench.panel.findChild(QComboBox, "channel_inspector.tensor")
    assert tensor.isVisible()
    assert "8 x 3 x 5 x 5" in tensor.currentText()
    grid = bench.panel.grid
    rect = grid.tile_rect(2)
    across, down = page.data.shape[2], page.data.shape[1]
    place = QPointF(rect.left() + rect.width() * (6 + 4 + 0.5) / across, rect.top() + rect.height() * 1.5 / down)
    bench.qtbot.mouseMove(grid.viewport(), place.toPoint())
    assert f"filter 2  input channel 1  x 4  y 1   {float(kernel[2, 1, 1, 4]):.3g}" in bench.panel.status_text


def test_the_legend_names_what_is_shown_also_with_a_locked_range(bench: Bench) -> None:
    bench.inspect("conv_h")
    assert bench.panel.legend.toolTip().startswith("value: ")
    bench.click("lock")
    for kind, unit in ((Kind.WEIGHTS, "weight: "), (Kind.GRADIENT, "gradient: "), (Kind.OUTPUT, "value: ")):
        bench.look_at(kind)
        assert bench.panel.legend.toolTip().startswith(unit)


def test_a_transposed_convolution_has_its_filters_by_output_channel(bench: Bench) -> None:
    graph = kit.small_network(8)
    graph.apply(set_params(graph, {"conv_h": {"features": "4", "kernel": "3x2", "groups": "1"}}))
    graph.apply(
        Edit("Another type", {"conv_h": (graph["conv_h"], replace(graph["conv_h"], type="transposed_convolution"))})
    )
    bench.open(graph)
    bench.launch_random()
    bench.inspect("conv_h")
    bench.look_at(Kind.WEIGHTS)
    kernel = next(array for array in weights(bench, "conv_h").values() if array.ndim == 4)
    assert kernel.shape == (3, 4, 2, 3)  # torch: inputs x features
    page = bench.panel.page
    assert page is not None
    assert page.filters is not None
    assert (bench.panel.grid.channels, page.filters.count) == (4, 3)
    assert np.array_equal(page.values.reshape(4, 3, 2, 3), kernel.swapaxes(0, 1))
    parts = np.arange(4 * 3).reshape(4, 3, 1, 1)  # two groups of two inputs and three features
    assert by_filter(parts, 2)[:, :, 0, 0].tolist() == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]


def test_a_bias_is_bars_and_a_layer_without_weights_says_so(bench: Bench) -> None:
    bench.inspect("conv_h")
    bench.look_at(Kind.WEIGHTS)
    bench.choose("tensor", 1)
    assert bench.panel.features.isVisible()
    assert not bench.panel.bar.isEnabled()
    bench.context.inspect_requested.emit("mix_0")
    bench.qtbot.waitUntil(lambda: "'mix_0' has no weights" in empty(bench.panel).text(), timeout=kit.WAIT)


def test_the_gradient_of_a_convolution_is_its_flipped_kernel(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path
) -> None:
    """Of one element it holds the kernel of that channel, so the gradient is known without any gradient."""
    bench = Bench(qtbot, engine)
    graph = kit.small_network(8)
    bench.open(graph)
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    bench.launch_random()
    bench.inspect("conv_h")
    grid = bench.panel.grid
    rect = grid.tile_rect(3)
    place = QPointF(rect.left() + rect.width() * 10.5 / 24, rect.top() + rect.height() * 8.5 / 16)
    qtbot.mouseClick(grid.viewport(), Qt.MouseButton.RightButton, pos=place.toPoint())
    assert bench.panel.probe.pin == (3, 10, 8)
    bench.look_at(Kind.GRADIENT)
    kernel = next(array for array in weights(bench, "conv_h").values() if array.ndim == 4)
    page = bench.panel.page
    assert page is not None
    assert page.size == (24, 16)
    left, top = page.offset
    found = page.data[:, 8 - 2 - top : 8 + 3 - top, 10 - 2 - left : 10 + 3 - left]
    assert np.allclose(found, kernel[3], atol=1e-6)
    assert np.count_nonzero(page.data) == np.count_nonzero(found)
    assert "channel 3  x 10  y 8" in bench.panel.subject.title
    qtbot.mouseClick(bench.panel.findChild(QToolButton, "channel_inspector.unpin"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bench.panel.page is not None and bench.panel.page.offset == (0, 0), timeout=kit.WAIT)
    middle = bench.panel.page.data[:, 4:12, 4:20]
    assert np.allclose(middle, kernel.sum(axis=(0, 2, 3))[:, None, None], atol=1e-5)


def test_the_gradient_of_an_input_to_itself_is_one(bench: Bench) -> None:
    bench.inspect("input_0")
    bench.choose("kind", list(Kind).index(Kind.GRADIENT))
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None or bool(bench.panel.subject.message), timeout=kit.WAIT)
    assert bench.panel.page is not None, bench.panel.subject.message
    assert bench.panel.page.values.shape == (3, 16, 24)
    assert np.all(bench.panel.page.values == 1)


def test_a_gradient_whose_engine_was_killed_is_asked_for_again(bench: Bench) -> None:
    bench.inspect("conv_0")
    os.kill(bench.context.engine.pid, signal.SIGSTOP)  # it cannot answer any more
    bench.choose("kind", list(Kind).index(Kind.GRADIENT))
    os.kill(bench.context.engine.pid, signal.SIGKILL)
    bench.qtbot.waitUntil(lambda: "killed" in bench.panel.subject.reason(), timeout=kit.WAIT)
    assert bench.panel.page is None
    bench.launch_random()
    bench.qtbot.waitUntil(lambda: bench.panel.page is not None, timeout=kit.WAIT)
    assert bench.panel.subject.message == ""


def test_the_item_of_a_batch_is_chosen(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = Bench(qtbot, engine)
    bench.open(kit.small_network(4))
    batch = np.random.default_rng(0).random((3, 3, 16, 24), np.float32)
    np.save(tmp_path / "batch.npy", batch)
    bench.analysis.inputs.set_file("input_0", tmp_path / "batch.npy")
    bench.launch_random()
    bench.inspect("input_0")
    spin = bench.panel.findChild(QSpinBox, "channel_inspector.item")
    assert spin.isVisible()
    assert np.array_equal(bench.panel.page.values, batch[0])
    spin.setFocus()
    qtbot.keyClick(spin, Qt.Key.Key_Up)
    qtbot.keyClick(spin, Qt.Key.Key_Up)
    assert np.array_equal(bench.panel.page.values, batch[2])
    assert bench.panel.grid.channels == 3


def vector_network() -> Graph:
    registry = default_registry()

    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        cls = registry.get(kind)
        assert cls is not None
        return Layer(name, kind, inputs=tuple(Source(i) for i in inputs), params={**cls().texts(all=False), **params})

    return Graph(
        [
            layer("input_0", "input", dims="8x8x3", tiling="0"),
            layer("flat", "flatten", "input_0"),
            layer("dense", "fully_connected", "flat", features="5"),
            layer("output_0", "output", "dense", analysis_view="labels", label_path="names.txt"),
        ]
    )


def test_classes_have_their_names(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("cat\ndog\n\nbird\n", encoding="utf-8")
    bench = Bench(qtbot, engine)
    document = Document(vector_network(), bench.context.registry, path=tmp_path / "net.xml")
    bench.context.set_document(document)
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path, size=(8, 8)))
    bench.launch_random()
    bench.inspect("dense")
    assert bench.panel.features.isVisible()
    assert labels_of(document, "dense") == labels_of(document, "output_0") == ("cat", "dog", "", "bird")
    assert [bench.panel.features.name_of(i) for i in range(5)] == ["0 cat", "1 dog", "2", "3 bird", "4"]
    values = bench.panel.page.values.reshape(-1)
    assert bench.panel.features.top()[0] == int(values.argmax())
    qtbot.mouseMove(bench.panel.features, QPoint(2, 20))
    assert f"feature 0 cat   {float(values[0]):.3g}" in bench.panel.status_text
    bench.look_at(Kind.WEIGHTS)
    assert bench.panel.matrix.isVisible()
    matrix = bench.panel.matrix
    qtbot.mouseMove(matrix, matrix.area().center().toPoint())
    assert "filter 2  input channel" in bench.panel.status_text


def test_labels_of_nobody_s_folder_are_none(tmp_path: Path) -> None:
    document = Document(vector_network(), default_registry(), path=tmp_path / "net.xml")
    assert document.do(lambda g: set_params(g, {"output_0": {"label_path": "~nobody-of-that-name/names.txt"}}))
    assert labels_of(document, "dense") == ()


def test_figures_of_analysis_layers_are_numbers_with_names(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        cls = default_registry().get(kind)
        assert cls is not None
        return Layer(name, kind, inputs=tuple(Source(i) for i in inputs), params={**cls().texts(all=False), **params})

    bench = Bench(qtbot, engine)
    document = bench.open(
        Graph(
            [
                layer("input_0", "input", dims="24x16x3", tiling="0"),
                layer("stat", "statistics", "input_0"),
                layer("histo", "histogram", "stat", ranges="4"),
                layer("diff", "difference", "histo", "input_0"),
                layer("output_0", "output", "diff"),
            ]
        )
    )
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    bench.launch_random()
    bench.inspect("stat:figures")
    assert bench.panel.features.isVisible()
    names = [bench.panel.features.name_of(i) for i in range(5)]
    assert names == ["0 mean", "1 deviation", "2 minimum", "3 maximum", "4 share of zeros"]
    bench.panel.features.resize(500, 200)
    qtbot.mouseMove(bench.panel.features, QPoint(2, 20))
    assert "feature 0 mean   0.5" in bench.panel.status_text
    bench.context.inspect_requested.emit("histo:shares")
    qtbot.waitUntil(lambda: bench.panel.page is not None and bench.panel.page.values.size == 4, timeout=kit.WAIT)
    assert bench.panel.features.name_of(1) == "1 [0.25, 0.5)"
    assert labels_of(document, "histo") == ()
    bench.context.inspect_requested.emit("diff:ssim")
    qtbot.waitUntil(lambda: bench.panel.page is not None and bench.panel.page.values.size == 1, timeout=kit.WAIT)
    assert bench.panel.features.isVisible()


def test_files_of_labels_are_read_with_care(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "none.txt") == ()
    assert read_labels(tmp_path) == ()
    (tmp_path / "odd.txt").write_bytes(b"caf\xe9\n" + b"x" * LARGEST)
    assert read_labels(tmp_path / "odd.txt")[0].startswith("caf")
    (tmp_path / "marked.txt").write_text("cat\ndog\n", "utf-8-sig")
    assert read_labels(tmp_path / "marked.txt") == ("cat", "dog")


def test_pages_of_every_rank() -> None:
    rng = np.random.default_rng(0)
    assert page_of(np.float32(3).reshape(()), Kind.OUTPUT).form is Form.VALUES
    assert page_of(rng.random((2, 10)), Kind.OUTPUT, 1).values.shape == (1, 1, 10)
    sequence = rng.random((2, 7, 11)).astype(np.float32)
    page = page_of(sequence, Kind.OUTPUT, 1)
    assert (page.form, page.items) == (Form.MATRIX, 2)
    assert np.array_equal(page.data[0], sequence[1])
    assert page.axes == ("position", "feature")
    assert page_of(rng.random((1, 2, 3, 4, 5)), Kind.OUTPUT).data.shape == (6, 4, 5)
    assert page_of(rng.random((4, 6)), Kind.WEIGHTS).form is Form.MATRIX
    assert page_of(rng.random((4, 6, 1, 1)), Kind.WEIGHTS).data.shape == (1, 4, 6)
    many = rng.random((4, 10, 3, 3)).astype(np.float32)
    page = page_of(many, Kind.WEIGHTS)
    assert page.data.shape == (4, 3 * 4 - 1, 4 * 4 - 1)
    assert page.filters is not None
    assert page.gaps is not None
    seen = {page.filters.at(x, y) for x in range(15) for y in range(11)} - {None}
    assert len(seen) == 10 * 9
    for x in range(15):
        for y in range(11):
            at = page.filters.at(x, y)
            assert page.gaps[y, x] == (at is None)
            if at is not None:
                assert page.data[2, y, x] == many[2, at[0], at[2], at[1]]
    empty = page_of(np.zeros((1, 2, 30, 40), np.float32), Kind.GRADIENT, cut=True)
    assert empty.data.shape == (2, 30, 40)


@pytest.mark.parametrize("side", [24, 144, 183, 500])
def test_filters_larger_than_their_tile_have_gaps_too(side: int) -> None:
    page = page_of(np.ones((2, 512, 7, 7), np.float32), Kind.WEIGHTS)
    assert page.data.shape == (2, 183, 183)
    tiles = Tiles()
    tiles.show(page.data, page.gaps)
    tiles.set_side(side)
    assert tiles.make([0, 1])
    picture = tiles.picture(1)
    assert picture is not None
    assert max(picture.width(), picture.height()) == min(side, 183)
    tiles.set_look(Look("viridis", each=True))
    assert tiles.fit_of(1) == Fit(1.0, -1.0)  # all values are 1: gaps are not values


def test_labels_are_read_of_plain_files_only(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(tmp_path / "labels.txt")
    assert read_labels(tmp_path / "labels.txt") == ()  # who opened it would wait for ever


def test_a_sequence_is_a_map_with_axes(qtbot: QtBot) -> None:
    view = MatrixView("matrix", "Map")
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show_values(np.arange(35, dtype=np.float32).reshape(5, 7), ("position", "feature"))
    view.show()
    seen: list[object] = []
    view.probed.connect(seen.append)
    area = view.area()
    qtbot.mouseMove(view, QPointF(area.left() + area.width() * 6.5 / 7, area.top() + area.height() * 4.5 / 5).toPoint())
    assert seen[-1] == (4, 6)
    qtbot.mouseMove(view, QPoint(1, 1))
    assert seen[-1] is None
    assert view.image is not None
    assert (view.image.width(), view.image.height()) == (7, 5)
    assert not view.grab().isNull()
    assert ticks(7, 500) == [0, 1, 2, 3, 4, 5, 6]
    assert ticks(1000, 500)[:3] == [0, 100, 200]


def test_a_map_on_a_scale_of_its_own_has_all_colors(qtbot: QtBot) -> None:
    view = MatrixView("matrix", "Map")
    qtbot.addWidget(view)
    view.show_values(np.array([[-0.02, 0.0, 0.02]], np.float32))
    view.set_look(Look(each=True))
    assert view.image is not None
    assert [view.image.pixelColor(x, 0).getRgb()[:3] for x in range(3)] == [(255, 0, 0), (0, 0, 0), (0, 255, 0)]


def test_one_value_is_a_number(qtbot: QtBot) -> None:
    view = FeatureView("features", "Values")
    qtbot.addWidget(view)
    view.resize(600, 200)
    view.show_values(np.full((1, 1), 0.25, np.float32))
    first = view.grab().toImage()
    view.show_values(np.full((1, 1), 0.75, np.float32))
    assert view.grab().toImage() != first
