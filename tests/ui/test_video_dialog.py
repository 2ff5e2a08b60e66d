"""What the dialog of Export Video offers for the inputs that have frames; nothing is exported."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from engine_kit import ScriptedEngine
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.engine.protocol import ExportVideoRequest, OpenRequest
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.playback import Track
from app.ui.shell.export import video
from app.ui.shell.export.video import VideoExportDialog
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

FOLDER = Track(Path("/photos"), "folder", frames=7)
VIDEO = Track(Path("/films/street.mp4"), "video", frames=12, fps=30.0)
SHORT = Track(Path("/films/short.mp4"), "video", frames=3, fps=10.0)
CAMERA = Track(Path("camera:0"), "camera", fps=15.0)
UNKNOWN = Track(Path("/films/long.mp4"), "video")


@pytest.mark.parametrize(
    ("tracks", "frames", "fps", "name"),
    [
        ((VIDEO,), 12, 30.0, "street_net.mkv"),
        ((FOLDER,), 7, 25.0, "photos_net.mkv"),
        ((FOLDER, VIDEO), 7, 30.0, "photos_net.mkv"),
        ((VIDEO, SHORT, FOLDER), 3, 30.0, "street_net.mkv"),
        ((CAMERA, UNKNOWN, SHORT), 3, 10.0, "short_net.mkv"),
        ((CAMERA,), 0, 25.0, "result.mkv"),
        ((), 0, 25.0, "result.mkv"),
    ],
)
def test_the_frames_are_those_that_all_inputs_have(
    qtbot: QtBot, tmp_path: Path, tracks: tuple[Track, ...], frames: int, fps: float, name: str
) -> None:
    context = Context(default_registry())
    context.engine = ScriptedEngine()  # type: ignore[assignment]
    layers = [Layer("image", "input", params={"dims": "16x8x3"}), Layer("one", "output", inputs=(Source("image"),))]
    context.set_document(Document(Graph(layers, name="net"), context.registry, parent=context))
    analysis_of(context).playback.tracks = {f"input_{number}": track for number, track in enumerate(tracks)}
    dialog = VideoExportDialog(context)
    qtbot.addWidget(dialog)
    dialog.show()
    assert (dialog.start.value(), dialog.stop.value(), dialog.stop.maximum()) == (1, max(frames, 1), max(frames, 1))
    assert dialog.fps.value() == fps
    assert Path(dialog.target.text()).name == name
    assert dialog.export.isEnabled() is bool(frames)
    assert ("No input is a folder or a video" in dialog.message.text()) is (not frames)
    assert not dialog.output.isVisible(), "there is one output"
    if frames > 1:
        dialog.stop.setValue(2)
        dialog.start.setValue(2)
        assert dialog.export.isEnabled()
        dialog.start.setValue(3)
        assert not dialog.export.isEnabled()
        assert "Swap them" in dialog.message.text()
        dialog.stop.setValue(3)
        assert dialog.export.isEnabled()
    for number, kind in enumerate(dialog._kinds):
        dialog.kind.setCurrentIndex(number)
        assert Path(dialog.target.text()).suffix == kind.suffix
        assert dialog.fps.isVisible() is bool(kind.suffix)
        assert dialog.quality.isVisible() is (kind.codec == "mjpeg")


def test_an_export_asks_for_all_inputs_the_chosen_output_and_what_its_kind_needs(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context(default_registry())
    context.engine = ScriptedEngine()  # type: ignore[assignment]
    names = ("first", "second")
    layers = [Layer(f"image_{name}", "input", params={"dims": "16x8x3"}) for name in names]
    layers += [Layer(name, "output", inputs=(Source(f"image_{name}"),)) for name in names]
    document = Document(Graph(layers, name="net"), context.registry, parent=context)
    files = {"image_first": str(tmp_path / "a.mp4"), "image_second": str(tmp_path / "photos")}
    document.restore_settings(input_files=files)
    context.set_document(document)
    analysis_of(context).playback.tracks = {"image_first": VIDEO, "image_second": FOLDER}
    engines: list[ScriptedEngine] = []

    def engine(_parent: QObject) -> ScriptedEngine:
        engines.append(ScriptedEngine())
        engines[-1].close = lambda *, kill: None  # type: ignore[attr-defined]
        return engines[-1]

    monkeypatch.setattr(video, "EngineClient", engine)
    dialog = VideoExportDialog(context)
    qtbot.addWidget(dialog)
    dialog.show()
    assert [dialog.output.itemText(row) for row in range(dialog.output.count())] == list(names)
    dialog.output.setCurrentText("second")
    dialog.start.setValue(2)
    dialog.stop.setValue(5)
    dialog.fps.setValue(12.5)
    dialog.quality.setValue(70)
    for number, kind in enumerate(dialog._kinds):
        dialog.kind.setCurrentIndex(number)
        target = tmp_path / f"made{kind.suffix}"
        dialog.target.setText(str(target))
        dialog.export.click()
        opening, request = engines[-1].requests()
        assert isinstance(opening, OpenRequest)
        moving = bool(kind.suffix)
        assert request == ExportVideoRequest(
            files, {"second": str(target)}, 1, 5, 12.5 if moving else 0.0, kind.codec if moving else "",
            70 if kind.codec == "mjpeg" else 0, ".png" if moving else kind.codec, request.token,
        )  # fmt: skip
        assert len(request.token) == 16
        dialog.cancel.click()
        assert dialog.message.text() == "Cancelled. Nothing was written."
    assert len(engines) == len(dialog._kinds)
