"""Analysis > Export Video: the file holds what the network gives for each frame, or there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("cv2")
import analysis_kit as kit
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget
from pytestqt.qtbot import QtBot
from video_files import make_video, picture_of

from app.ui.engine.client import EngineClient
from app.ui.shell.export.video import VideoExportDialog, kinds
from designer.graph.commands import set_params
from designer.runtime.images import read_image, to_uint8
from designer.runtime.video import VideoReader

pytestmark = pytest.mark.gui
WAIT = kit.WAIT


class Bench(kit.Launched):
    """An analysis that plays a video, and the dialog."""

    def __init__(self, qtbot: QtBot, engine: EngineClient, folder: Path, frames: int = 8) -> None:
        super().__init__(qtbot, engine)
        self.folder = folder
        self.document = self.open(kit.small_network())
        self.document.do(lambda graph: set_params(graph, {"noise_0": {"scale": "0.0"}}))
        self.clip = make_video(folder / "clip.mkv", frames)
        self.analysis.inputs.set_file("input_0", self.clip)
        self.qtbot.waitUntil(lambda: self.analysis.playback.tracks["input_0"].frames > 0, timeout=WAIT)
        self.launch_random()
        self.dialog = VideoExportDialog(self.context)
        qtbot.addWidget(self.dialog)
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        self.dialog.show()

    def expected(self, frame: int) -> np.ndarray:
        """What the analysis shows for a frame."""
        self.analysis.playback.seek("input_0", frame)
        self.qtbot.waitUntil(lambda: self.analysis.playback.tracks["input_0"].shown == frame, timeout=WAIT)
        assert self.analysis.result is not None
        return to_uint8(self.analysis.result.outputs["output_0"])

    def export(self, kind: int, name: str) -> Path:
        self.dialog.kind.setCurrentIndex(kind)
        target = self.folder / name
        self.dialog.target.setText(str(target))
        self.qtbot.mouseClick(self.dialog.export, Qt.MouseButton.LeftButton)
        return target

    def wait_until_it_writes(self) -> None:
        self.qtbot.waitUntil(lambda: any(p.name.startswith(".lw-") for p in self.folder.iterdir()), timeout=WAIT)

    def finished(self) -> str:
        self.qtbot.waitUntil(self.dialog.export.isEnabled, timeout=WAIT)
        return self.dialog.message.text()


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    return Bench(qtbot, engine, tmp_path)


@pytest.fixture
def long_bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    """With a clip whose export takes long enough to be cancelled."""
    return Bench(qtbot, engine, tmp_path, 800)


def test_a_lossless_video_holds_what_the_analysis_shows(bench: Bench) -> None:
    assert Path(bench.dialog.target.text()).suffix == ".mkv"
    assert (bench.dialog.start.value(), bench.dialog.stop.value(), bench.dialog.fps.value()) == (1, 8, 25.0)
    bench.dialog.start.setValue(3)
    target = bench.export(0, "made.mkv")
    assert bench.dialog.cancel.isEnabled()
    assert bench.dialog.findChild(QProgressBar, "export_video.progress").isVisible()
    assert "6 frames" in bench.finished()
    assert "random" in bench.dialog.message.text().lower()
    with VideoReader(target) as made:
        assert (made.info.frames, made.info.fps) == (6, 25.0)
        for index in (0, 5):
            np.testing.assert_array_equal(made.read(index), bench.expected(index + 2))


def test_a_folder_of_pictures(bench: Bench) -> None:
    target = bench.export(4, "made")
    assert "8 frames" in bench.finished()
    assert len(list(target.iterdir())) == 8
    expected = bench.expected(7)
    np.testing.assert_array_equal(to_uint8(read_image(target / "frame_00007.png")), expected)


def test_a_file_that_is_there_is_named_before_it_is_replaced(bench: Bench) -> None:
    bench.dialog.target.setText(str(bench.clip))
    assert "will be overwritten" in bench.dialog.message.text()
    bench.dialog.target.setText(str(bench.folder / "new.mkv"))
    assert bench.dialog.message.text() == ""


def test_the_kind_decides_the_ending_and_what_can_be_set(bench: Bench) -> None:
    for index, (_, ending, codec) in enumerate(kinds()):
        bench.dialog.kind.setCurrentIndex(index)
        assert Path(bench.dialog.target.text()).suffix == ending
        assert bench.dialog.quality.isVisible() == (codec == "mjpeg")
        assert bench.dialog.fps.isVisible() == bool(ending)


def test_cancel_leaves_nothing(long_bench: Bench) -> None:
    before = sorted(p.name for p in long_bench.folder.iterdir())
    long_bench.export(0, "made.mkv")
    long_bench.wait_until_it_writes()
    long_bench.qtbot.mouseClick(long_bench.dialog.cancel, Qt.MouseButton.LeftButton)
    assert "Cancelled" in long_bench.dialog.message.text()
    assert sorted(p.name for p in long_bench.folder.iterdir()) == before
    long_bench.dialog.stop.setValue(8)
    long_bench.export(0, "made.mkv")
    assert "8 frames" in long_bench.finished()  # and once more, whole


def test_closing_cancels(long_bench: Bench) -> None:
    before = sorted(p.name for p in long_bench.folder.iterdir())
    long_bench.export(4, "made")
    long_bench.wait_until_it_writes()
    long_bench.dialog.close()
    assert sorted(p.name for p in long_bench.folder.iterdir()) == before


def test_closing_the_window_cancels(long_bench: Bench) -> None:
    window = QWidget()
    long_bench.qtbot.addWidget(window)
    window.show()
    long_bench.dialog.close()
    long_bench.dialog = VideoExportDialog(long_bench.context, window)
    long_bench.dialog.show()
    before = sorted(p.name for p in long_bench.folder.iterdir())
    long_bench.export(0, "made.mkv")
    long_bench.wait_until_it_writes()
    window.close()
    assert sorted(p.name for p in long_bench.folder.iterdir()) == before


def test_what_is_wrong_is_told(bench: Bench) -> None:
    bench.export(0, "none/made.mkv")
    assert "No such file" in bench.finished()
    bench.dialog.start.setValue(5)
    bench.dialog.stop.setValue(4)
    bench.export(0, "made.mkv")
    assert "after the last frame" in bench.dialog.message.text()
    for child in bench.dialog.findChildren(QWidget):
        if child.objectName().startswith("export_video.") and not isinstance(child, QLabel):
            assert child.accessibleName() or child.objectName().rpartition(".")[2] in ("export", "cancel", "show"), (
                child
            )


def test_without_a_video_the_dialog_says_what_to_do(qtbot: QtBot, engine: EngineClient) -> None:
    launched = kit.Launched(qtbot, engine)
    launched.open(kit.small_network())
    dialog = VideoExportDialog(launched.context)
    qtbot.addWidget(dialog)
    assert not dialog.export.isEnabled()
    assert "Choose one in Analysis" in dialog.message.text()


def test_the_frames_are_those_of_the_file(bench: Bench) -> None:
    with VideoReader(bench.clip) as video:
        np.testing.assert_array_equal(video.read(3), picture_of(3))
