"""Inputs of the analysis: every kind of file through the window, drag and drop, menus and keys of the whole window."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
cv2 = pytest.importorskip("cv2")
import analysis_kit as kit
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QMenu, QPushButton, QToolButton
from pytestqt.qtbot import QtBot
from test_playback import identity
from video_files import make_video, picture_of
from window_kit import show

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.image_input import ImageInput
from app.ui.analysis.input_row import dropped_file
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.inputs import layers_of
from app.ui.engine.result import Phase
from app.ui.shell.window import MainWindow
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.api import Role
from designer.runtime.images import IMAGES, ArrayFormat, read_image
from designer.runtime.network import input_layers

pytestmark = pytest.mark.gui
WAIT = kit.WAIT
ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient) -> kit.Launched:
    launched = kit.Launched(qtbot, engine)
    launched.open(identity())
    launched.panel = AnalysisPanel(launched.context)  # type: ignore[attr-defined]
    qtbot.addWidget(launched.panel)  # type: ignore[attr-defined]
    launched.panel.resize(900, 700)  # type: ignore[attr-defined]
    launched.panel.show()  # type: ignore[attr-defined]
    return launched


def written(folder: Path, kind: str) -> tuple[Path, np.ndarray]:
    """A file by a library that is not ours, and the values that the network must get."""
    rng = np.random.default_rng(7)
    path = folder / f"a.{kind.partition('-')[0]}"
    if kind in ("png-16", "tiff-16"):
        pixels = rng.integers(0, 65536, (48, 64, 3), dtype=np.uint16)
        cv2.imwrite(str(path), np.ascontiguousarray(pixels[:, :, ::-1]))
        return path, pixels.astype(np.float32) / np.float32(65535)
    if kind == "tiff-float":
        pixels = rng.normal(0, 3, (48, 64, 3)).astype(np.float32)
        cv2.imwrite(str(path), np.ascontiguousarray(pixels[:, :, ::-1]))
        return path, pixels
    if kind == "exr":
        pixels = rng.normal(0, 3, (48, 64, 3)).astype(np.float16)
        openexr = pytest.importorskip("OpenEXR")
        openexr.File({"type": openexr.scanlineimage}, {"RGB": pixels}).write(str(path))
        return path, pixels.astype(np.float32)
    if kind == "npy":
        pixels = rng.normal(0, 3, (48, 64, 3)).astype(np.float32)
        np.save(path, pixels.transpose(2, 0, 1)[None])
        return path, pixels
    pixels = picture_of(9)
    options = [cv2.IMWRITE_WEBP_QUALITY, 101] if kind == "webp" else []
    cv2.imwrite(str(path), np.ascontiguousarray(pixels[:, :, ::-1]), options)
    return path, pixels.astype(np.float32) / np.float32(255)


@pytest.mark.parametrize("kind", ["png", "png-16", "bmp", "webp", "tiff", "tiff-16", "tiff-float", "exr", "npy"])
def test_every_kind_of_file_reaches_the_network_exactly(bench: kit.Launched, tmp_path: Path, kind: str) -> None:
    path, values = written(tmp_path, kind)
    bench.analysis.inputs.set_file("input_0", path)
    bench.analysis.launch()
    bench.wait(Phase.READY)
    assert bench.analysis.result is not None
    np.testing.assert_array_equal(bench.analysis.result.outputs["output_0"][0].transpose(1, 2, 0), values)
    size = bench.panel.findChild(QLabel, "analysis.input.input_0.size")
    if kind in ("tiff-float", "exr", "npy"):
        assert "drawn within 0 … 1" in size.text()
    else:
        bench.qtbot.waitUntil(lambda: size.text() == "64 x 48", timeout=WAIT)


def test_a_registered_format_is_in_the_dialog_and_can_be_dropped(
    bench: kit.Launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.levels"
    path.write_text("0.25")
    assert not _taken(bench, path)
    monkeypatch.setattr(IMAGES, "formats", list(IMAGES.formats))
    IMAGES.register(
        ArrayFormat("Levels", (".levels",), lambda path: np.full((48, 64), float(path.read_text()), np.float32))
    )
    filters: list[str] = []
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: (filters.append(a[3]) or "", ""))
    bench.panel.findChild(QPushButton, "analysis.input.input_0.open").click()
    assert [".levels" in text for text in filters[0].split(";;")] == [True, True, False, False, False]
    assert _taken(bench, path)
    assert float(read_image(path, 1).mean()) == 0.25


def _taken(bench: kit.Launched, path: Path) -> bool:
    """Whether the panel accepts the drag of a file."""
    data, left = QMimeData(), Qt.MouseButton.LeftButton
    data.setUrls([QUrl.fromLocalFile(str(path))])
    where = bench.panel.rect().center()
    enter = QDragEnterEvent(where, Qt.DropAction.CopyAction, data, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(bench.panel, enter)
    return enter.isAccepted()


def test_a_video_dropped_on_the_panel_feeds_the_first_input(bench: kit.Launched, tmp_path: Path) -> None:
    clip = make_video(tmp_path / "clip.mkv", 4)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(clip))])
    where, copy = bench.panel.rect().center(), Qt.DropAction.CopyAction
    enter = QDragEnterEvent(where, copy, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(bench.panel, enter)
    assert enter.isAccepted()
    drop = QDropEvent(QPointF(where), copy, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(bench.panel, drop)
    bench.qtbot.waitUntil(lambda: bench.analysis.playback.tracks["input_0"].frames == 4, timeout=WAIT)
    assert "input_1" not in bench.analysis.playback.tracks


def test_the_thumbnail_of_a_playlist_follows_it(bench: kit.Launched, tmp_path: Path) -> None:
    folder = tmp_path / "shots"
    folder.mkdir()
    for number, level in enumerate((40, 200)):
        cv2.imwrite(str(folder / f"{number}.png"), np.full((48, 64, 3), level, np.uint8))
    bench.analysis.inputs.set_file("input_0", folder)
    bench.analysis.launch()
    bench.wait(Phase.READY)
    thumbnail = bench.panel.findChild(QLabel, "analysis.input.input_0.thumbnail")

    def level() -> int:
        image = thumbnail.pixmap().toImage()
        return image.pixelColor(image.rect().center()).red()

    assert level() == 40
    bench.analysis.playback.step("input_0", 1)
    bench.qtbot.waitUntil(lambda: level() == 200, timeout=WAIT)


def test_patterns_have_their_pictures_in_the_menu(bench: kit.Launched) -> None:
    menu = bench.panel.findChild(QToolButton, "analysis.input.input_0.photographs").menu()
    assert isinstance(menu, QMenu)
    patterns = {action.text(): action for action in menu.actions() if not action.icon().isNull()}
    assert set(patterns) == {"zone plate", "gradient", "edges", "noise"}
    patterns["edges"].trigger()
    bench.analysis.launch()
    bench.wait(Phase.READY)


def test_keys_and_menu_of_the_window(qtbot: QtBot, empty_window: MainWindow, tmp_path: Path) -> None:
    document, window = tmp_path / "two.xml", empty_window
    save_document(identity(), document)
    window.activateWindow()
    window.files.open(document)
    window.start_engine_client()

    def enabled(name: str) -> bool:
        return window.actions_[name].isEnabled()

    def press(keys: str) -> None:
        window.activateWindow()
        window.canvas.viewer.setFocus()
        QApplication.processEvents()
        QTest.keySequence(window.canvas.viewer, keys)

    qtbot.waitUntil(lambda: window.context.has_document, timeout=WAIT)
    assert not enabled("analysis.next")
    assert "hoose one in Analysis" in window.actions_["analysis.export_video"].toolTip()
    window.run_analysis()
    analysis = analysis_of(window.context)
    analysis.inputs.set_file("input_0", make_video(tmp_path / "clip.mkv", 4))
    qtbot.waitUntil(lambda: enabled("analysis.next") and enabled("analysis.export_video"), timeout=WAIT)
    track = analysis.playback.tracks["input_0"]
    qtbot.waitUntil(lambda: track.shown == 0, timeout=WAIT)
    press("Alt+PgDown")
    qtbot.waitUntil(lambda: track.shown == 1, timeout=WAIT)
    press("Alt+PgUp")
    qtbot.waitUntil(lambda: track.shown == 0, timeout=WAIT)
    press("Ctrl+Space")
    assert track.playing
    press("Ctrl+Space")
    assert not track.playing
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)


def test_the_process_of_the_window_decodes_nothing() -> None:
    code = (
        "import app.ui.shell.window, app.ui.analysis.analysis_panel, app.ui.shell.export.video, app.ui.analysis.transport, sys, json;"
        "print(json.dumps(sorted({'cv2', 'OpenEXR', 'torch', 'onnxruntime'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_inputs_and_outputs_keep_their_order_when_one_is_renamed_or_restored(empty_window):
    window = empty_window
    window.files.new()
    analysis, document = analysis_of(window.context), window.context.document
    for name in ("a", "b", "c"):
        document.do(lambda g, n=name: commands.add_layer(g, Layer(n, "input", (0, 0))))
        document.do(lambda g, n=name: commands.add_layer(g, Layer(f"{n}_out", "output", (240, 0), (Source(n),))))

    def ends() -> list[str]:
        inputs = layers_of(document.graph, document.registry, Role.INPUT)
        assert inputs == input_layers(document.graph, document.inference)
        return [*inputs, *analysis.output_layers()]

    assert ends() == ["a", "b", "c", "a_out", "b_out", "c_out"]
    document.do(lambda g: commands.remove_layers(g, ["a", "a_out"]))
    assert ends() == ["b", "c", "b_out", "c_out"]
    window.context.undo()
    assert ends() == ["a", "b", "c", "a_out", "b_out", "c_out"]
    document.do(lambda g: commands.rename_layer(g, "a", "ab"))
    document.do(lambda g: commands.rename_layer(g, "a_out", "ab_out"))
    assert ends() == ["ab", "b", "c", "ab_out", "b_out", "c_out"]


def test_the_image_is_that_of_an_input_that_is_selected_alone_in_the_file_itself(empty_window: MainWindow) -> None:
    """Inside of a template, a layer may be called as an input of the file is."""
    part = Template(
        "part", (Layer("input_0", "template_input"), Layer("y", "template_output", inputs=(Source("input_0"),)))
    )
    layers = [
        Layer("input_0", "input", params={"dims": "8x8x3"}),
        Layer("input_1", "input", params={"dims": "8x8x3"}),
        Layer("use", "template", inputs=(Source("input_0"),), params={"template": "part"}),
        Layer("end", "output", inputs=(Source("use"),)),
        Layer("end_1", "output", inputs=(Source("input_1"),)),
    ]
    window = show(empty_window, Graph(layers, templates=[part]))
    image = ImageInput(window.context, window)
    for selected, layer in ((("input_1",), "input_1"), (("input_0", "input_1"), ""), (("use",), ""), ((), "")):
        window.context.select(selected)
        assert image.layer() == layer
    assert window.context.enter("use")
    window.context.select(("input_0",))
    assert image.layer() == ""


def test_the_first_file_of_a_drag_that_can_feed_an_input_is_taken(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    here = {name: QUrl.fromLocalFile(str(tmp_path / name)) for name in ("a.txt", "b.png", "c.npy", "folder")}
    far = QUrl("https://example.org/d.png")
    for urls, taken in (
        ([], None),
        ([here["a.txt"]], None),
        ([far], None),
        ([here["a.txt"], here["c.npy"], here["b.png"]], "c.npy"),
        ([far, here["b.png"]], "b.png"),
        ([here["a.txt"], here["folder"]], "folder"),
    ):
        data = QMimeData()
        data.setText("b.png")
        data.setUrls(urls)
        assert dropped_file(data) == (tmp_path / taken if taken is not None else None)
