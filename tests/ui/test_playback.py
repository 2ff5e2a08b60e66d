"""Folders, videos and cameras as inputs: real files, the real engine, real clicks and keys."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("cv2")
import analysis_kit as kit
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QComboBox, QFileDialog, QLabel, QMenu, QSlider, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from video_files import make_uneven_video, make_video, picture_of

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from app.ui.engine.playback import Track
from app.ui.engine.result import Phase
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go
WAIT = kit.WAIT


def identity() -> Graph:
    """Two inputs straight to two outputs: what comes out is what was decoded."""
    registry = default_registry()

    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        cls = registry.get(kind)
        assert cls is not None
        return Layer(name, kind, inputs=tuple(Source(i) for i in inputs), params={**cls().texts(all=False), **params})

    return Graph(
        [
            layer("input_0", "input", dims="64x48x3", tiling="0"),
            layer("input_1", "input", dims="64x48x3", tiling="0"),
            layer("output_0", "output", "input_0"),
            layer("output_1", "output", "input_1"),
        ]
    )


class Bench(kit.Launched):
    """A panel on a document with two inputs."""

    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        super().__init__(qtbot, engine)
        self.panel = AnalysisPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(900, 700)
        self.panel.show()
        self.open(identity())

    @property
    def track(self) -> Track:
        return self.analysis.playback.tracks["input_0"]

    def find(self, name: str, kind: type = QWidget) -> QWidget:
        found = self.panel.findChild(kind, f"analysis.input.input_0.{name}")
        assert found is not None, name
        return found

    def click(self, name: str) -> None:
        button = self.find(name, QAbstractButton)
        assert button.isVisible(), name
        assert button.isEnabled(), name
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def text(self, name: str) -> str:
        found = self.find(name, QLabel)
        assert isinstance(found, QLabel)
        return found.text()

    def feed(self, path: Path | str, layer: str = "input_0") -> None:
        self.analysis.inputs.set_file(layer, Path(path))

    def known(self) -> None:
        self.qtbot.waitUntil(lambda: self.track.frames > 0, timeout=WAIT)

    def run(self) -> None:
        self.analysis.launch()
        self.wait(Phase.READY)

    def output(self, layer: str = "output_0") -> np.ndarray:
        assert self.analysis.result is not None
        return np.rint(self.analysis.result.outputs[layer][0].transpose(1, 2, 0) * 255).astype(np.uint8)

    def shows(self, frame: int, layer: str = "output_0") -> None:
        """Wait for the result that is this frame's."""

        def is_it() -> bool:
            return self.analysis.result is not None and np.array_equal(self.output(layer), picture_of(frame))

        self.qtbot.waitUntil(is_it, timeout=WAIT)


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient) -> Bench:
    return Bench(qtbot, engine)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_video(tmp_path / "clip.mkv", 30, fps=25)


def pictures(folder: Path, count: int) -> Path:
    from designer.runtime.images import write_image

    folder.mkdir()
    for index in range(count):
        pixels = picture_of(index).astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255)
        write_image(folder / f"shot{index + 8}.png", pixels)  # shot8, shot9, shot10: by number, not by letters
    return folder


def test_a_video_is_opened_and_stepped_through(bench: Bench, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *args, **kw: (str(clip), ""))
    assert not bench.find("transport").isVisible()
    bench.click("open")
    bench.known()
    assert bench.text("file") == "clip.mkv"
    assert "64 x 48" in bench.text("size")
    assert "25 fps" in bench.text("size")
    assert bench.find("thumbnail", QLabel).pixmap().width() > 0
    bench.run()
    bench.shows(0)
    bench.click("next")
    bench.shows(1)
    bench.click("next")
    bench.shows(2)
    assert "frame 3 / 30" in bench.text("frame")
    bench.click("previous")
    bench.shows(1)
    bench.qtbot.keyClick(bench.panel, Qt.Key.Key_PageUp)
    bench.shows(0)
    bench.qtbot.keyClick(bench.panel, Qt.Key.Key_PageUp)
    bench.shows(29)  # around the beginning
    bench.qtbot.keyClick(bench.panel, Qt.Key.Key_PageDown)
    bench.shows(0)


def test_scrubbing(bench: Bench, clip: Path) -> None:
    bench.feed(clip)
    bench.known()
    bench.run()
    slider = bench.find("scrub", QSlider)
    assert isinstance(slider, QSlider)
    assert (slider.minimum(), slider.maximum()) == (0, 29)
    slider.setFocus()
    bench.qtbot.keyClick(slider, Qt.Key.Key_End)
    bench.shows(29)
    bench.qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 3, slider.height() // 2))
    bench.qtbot.waitUntil(lambda: bench.track.shown == bench.track.position != 29, timeout=WAIT)
    bench.shows(bench.track.position)
    bench.qtbot.keyClick(slider, Qt.Key.Key_Home)
    bench.shows(0)


def test_playing_goes_on_pauses_and_counts(bench: Bench, clip: Path) -> None:
    bench.feed(clip)
    bench.known()
    bench.click("play")  # launches, too
    seen: set[int] = set()
    bench.analysis.result_changed.connect(lambda: seen.add(bench.track.shown))
    bench.qtbot.waitUntil(lambda: len(seen) > 8, timeout=WAIT)
    assert "of 25 fps" in bench.text("figures")
    assert "dropped" in bench.text("figures")
    bench.click("play")
    bench.wait(Phase.READY)
    assert not bench.track.playing
    bench.shows(bench.track.shown)
    resting = bench.track.position
    with bench.qtbot.waitSignal(bench.analysis.result_changed, timeout=WAIT):  # what makes a playing track go on
        bench.analysis.again()
    assert bench.analysis.phase is Phase.READY
    assert bench.track.position == resting


def test_every_frame_is_shown_when_it_is_wished(bench: Bench, clip: Path) -> None:
    bench.feed(clip)
    bench.known()
    bench.run()
    combo = bench.find("speed", QComboBox)
    assert isinstance(combo, QComboBox)
    combo.setFocus()
    bench.qtbot.keyClick(combo, Qt.Key.Key_End)  # four times as fast: more than the engine and this machine manage
    assert bench.track.speed == 4.0
    bench.click("every")
    bench.click("loop")
    assert not bench.track.loop
    order: list[int] = []
    bench.analysis.result_changed.connect(lambda: order.append(bench.track.shown))
    bench.click("play")
    bench.qtbot.waitUntil(lambda: not bench.track.playing, timeout=WAIT)  # it ends at the end
    bench.shows(29)
    assert order == list(range(1, 30))
    assert bench.track.dropped == 0
    bench.click("play")  # at the end it begins anew
    bench.qtbot.waitUntil(lambda: bench.track.position < 29, timeout=WAIT)
    bench.click("play")


def test_what_comes_too_late_is_dropped_and_counted(bench: Bench, tmp_path: Path) -> None:
    bench.feed(make_video(tmp_path / "fast.mkv", 200, fps=500))
    bench.known()
    bench.run()
    bench.click("loop")
    shown: list[int] = []
    bench.analysis.result_changed.connect(lambda: shown.append(bench.track.shown))
    bench.click("play")
    bench.qtbot.waitUntil(lambda: not bench.track.playing, timeout=WAIT)
    bench.shows(199)
    assert shown == sorted(shown)
    assert shown[-1] == 199
    assert bench.track.dropped == 199 - len(set(shown))
    assert bench.track.dropped > 0
    assert f"{bench.track.dropped} dropped" in bench.text("figures")


def test_a_loop_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.feed(make_video(tmp_path / "short.mkv", 5, fps=50))
    bench.known()
    shown: list[int] = []
    bench.analysis.result_changed.connect(lambda: shown.append(bench.track.shown))
    bench.click("play")
    bench.qtbot.waitUntil(lambda: sum(b < a for a, b in pairwise(shown)) >= 3, timeout=WAIT)
    bench.click("play")


def test_a_video_whose_frames_last_differently_long(bench: Bench, tmp_path: Path) -> None:
    bench.feed(make_uneven_video(tmp_path / "uneven.mkv", [0, 1, 2, 30, 31, 32]))
    bench.known()
    assert "uneven" in bench.text("size")
    track = bench.track
    track.origin = (100.0, 0)
    assert [track.due(100.0 + t / 25) for t in (0, 1.5, 2.5, 29, 30.5, 32.5, 90)] == [0, 1, 2, 2, 3, 5, 6]
    bench.run()
    bench.click("next")
    bench.qtbot.waitUntil(lambda: bench.track.shown == 1, timeout=WAIT)
    assert "0:00.04" in bench.text("frame")


def test_a_folder_is_a_playlist(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pictures(tmp_path / "shots", 3)
    (folder / "notes.txt").write_text("no picture")
    began: list[str] = []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *args: began.append(args[2]) or str(folder))
    bench.feed(folder / "shot9.png")
    bench.click("folder")
    assert began == [str(folder)]
    assert bench.text("frame") == "1 / 3  shot8.png"
    assert bench.text("size") == "3 images"
    bench.run()
    bench.shows(0)
    bench.click("next")
    bench.shows(1)
    assert bench.text("frame") == "2 / 3  shot9.png"
    bench.click("next")
    bench.shows(2)
    assert bench.text("frame") == "3 / 3  shot10.png"
    bench.click("next")
    bench.shows(0)
    bench.click("previous")
    bench.shows(2)
    assert not bench.find("every").isVisible()


def test_two_inputs_step_together_by_key_and_alone_by_button(bench: Bench, tmp_path: Path, clip: Path) -> None:
    bench.feed(clip)
    bench.feed(pictures(tmp_path / "shots", 4), "input_1")
    bench.known()
    bench.run()
    bench.qtbot.keyClick(bench.panel, Qt.Key.Key_PageDown)
    bench.shows(1)
    bench.shows(1, "output_1")
    bench.click("next")
    bench.shows(2)
    bench.shows(1, "output_1")


def test_a_folder_dropped_on_the_row(bench: Bench, tmp_path: Path) -> None:
    folder = pictures(tmp_path / "shots", 2)
    row = bench.panel.findChild(QWidget, "analysis.input.input_1")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(folder))])
    row.dropEvent(
        QDropEvent(
            QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )
    )
    assert bench.analysis.playback.tracks["input_1"].frames == 2


def test_sources_that_cannot_be_used_say_why(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    bench.feed(tmp_path / "empty")
    assert "no images" in bench.text("problem")
    assert not bench.find("transport").isVisible()
    (tmp_path / "broken.mp4").write_text("hello")
    bench.feed(tmp_path / "broken.mp4")
    bench.qtbot.waitUntil(lambda: "not a supported video" in bench.text("problem"), timeout=WAIT)
    assert "broken.mp4" in bench.text("problem")
    bench.feed(make_video(tmp_path / "good.mkv", 3))
    bench.known()
    assert not bench.find("problem").isVisible()
    bench.run()
    bench.shows(0)


def test_a_camera_that_is_not_there_is_told(bench: Bench) -> None:
    menu = bench.find("camera", QToolButton).menu()
    menu.aboutToShow.emit()
    assert any("number" in action.text() for action in menu.actions())
    bench.feed("camera:97")
    assert bench.text("file") == "camera 97"
    bench.analysis.launch()
    bench.wait(Phase.BLOCKED)
    assert "camera 97 does not exist" in bench.text("problem")
    assert "camera" in bench.text("problem")


def test_a_camera_plays_without_a_slider(bench: Bench, tmp_path: Path) -> None:
    """A video file replaces the device, behind the same class."""
    device = make_video(tmp_path / "device.mkv", 20, fps=30)
    bench.feed(f"camera:{device}")
    assert not bench.find("scrub").isVisible()
    assert not bench.find("previous").isVisible()
    bench.run()  # takes one picture
    assert bench.text("frame") == "image 1"
    bench.click("next")
    bench.qtbot.waitUntil(lambda: bench.text("frame") == "image 2", timeout=WAIT)
    numbers: list[int] = []
    bench.analysis.result_changed.connect(lambda: numbers.append(bench.track.position))
    bench.click("play")
    bench.qtbot.waitUntil(lambda: len(numbers) > 6, timeout=WAIT)
    assert "camera" in bench.text("figures")
    assert "fps" in bench.text("figures")
    bench.click("play")
    bench.wait(Phase.READY)
    assert any(np.array_equal(bench.output(), picture_of(i)) for i in range(20))


def test_playing_ends_with_the_document_and_with_the_panel(bench: Bench, clip: Path) -> None:
    bench.feed(clip)
    bench.known()
    bench.click("play")
    bench.qtbot.waitUntil(lambda: bench.track.shown > 1, timeout=WAIT)
    bench.panel.hide()
    assert not bench.track.playing
    bench.panel.show()
    bench.click("play")
    bench.open(identity())
    assert bench.analysis.playback.tracks == {}
    assert not bench.analysis.playback.playing


def test_a_killed_engine_pauses_and_playing_goes_on_with_another(bench: Bench, clip: Path) -> None:
    import os
    import signal

    bench.feed(clip)
    bench.known()
    bench.click("play")
    bench.qtbot.waitUntil(lambda: bench.track.shown > 1, timeout=WAIT)
    os.kill(bench.analysis.engine.pid, signal.SIGKILL)
    bench.wait(Phase.FAILED)
    assert not bench.track.playing
    bench.click("play")
    at = bench.track.position
    bench.qtbot.waitUntil(lambda: bench.track.shown > at, timeout=WAIT)
    bench.click("play")


def test_deep_pictures_have_a_thumbnail_and_tell_their_range(bench: Bench, tmp_path: Path) -> None:
    exr = pytest.importorskip("OpenEXR")
    pixels = np.linspace(-0.5, 6, 48 * 64 * 3, dtype=np.float32).reshape(48, 64, 3)
    exr.File({"type": exr.scanlineimage}, {"RGB": pixels}).write(str(tmp_path / "deep.exr"))
    bench.feed(tmp_path / "deep.exr")
    bench.qtbot.waitUntil(lambda: bench.text("size") == "64 x 48", timeout=WAIT)
    assert bench.find("thumbnail", QLabel).pixmap().width() > 0
    bench.run()
    assert bench.analysis.result is not None
    np.testing.assert_array_equal(bench.analysis.result.outputs["output_0"][0], pixels.transpose(2, 0, 1))
    assert "values -0.5 … 6" in bench.text("size")


def test_memory_of_the_window_and_the_shared_folder_stay_as_they_are(bench: Bench, tmp_path: Path) -> None:
    bench.feed(make_video(tmp_path / "fast.mkv", 120, fps=500))
    bench.known()
    bench.run()
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1

    bench.analysis.result_changed.connect(counted)
    bench.click("every")
    bench.click("play")
    bench.qtbot.waitUntil(lambda: count > 150, timeout=WAIT)
    bench.click("play")
    bench.wait(Phase.READY)
    folder = bench.analysis.engine.folder
    assert folder is not None
    assert len(list(folder.iterdir())) == 0


def test_names_of_all_controls(bench: Bench, clip: Path) -> None:
    bench.feed(clip)
    bench.known()
    for child in bench.find("transport").findChildren(QWidget):
        if isinstance(child, (QAbstractButton, QSlider, QComboBox, QLabel)):
            assert child.objectName().startswith("analysis.input.input_0."), child
            assert child.accessibleName(), child.objectName()
    assert isinstance(bench.find("camera", QToolButton).menu(), QMenu)
