"""Views of an analysis without an engine: cells of the overview, controls of inputs and frames, and what outputs show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMenu,
    QSlider,
    QStyle,
    QStyleOptionViewItem,
    QTabWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.protocol import RunStep, TraceReply
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.display import MODES, Display, DisplayBar, DisplayMode
from app.ui.analysis.faults import Faults
from app.ui.analysis.heat import HeatDelegate, HeatLegend
from app.ui.analysis.input_row import InputRow
from app.ui.analysis.layer_infos import LayerInfo
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.analysis.output_view import OutputView
from app.ui.analysis.overview_model import (
    COUNT,
    HEAT,
    LAYER,
    MEMORY,
    SHAPE,
    STATE,
    TIME,
    TYPE,
    OverviewModel,
    headers,
)
from app.ui.analysis.transport import SPEEDS, Transport
from app.ui.document.document import Document
from app.ui.engine.analysis import AnalysisController, analysis_of
from app.ui.engine.context import Context
from app.ui.engine.inputs import image_of, photographs
from app.ui.engine.playback import Track
from app.ui.engine.result import AnalysisResult
from app.ui.widgets import theme
from app.ui.widgets.heat import heat_color
from app.ui.widgets.image_view import SplitMode
from app.ui.widgets.overlays import CrossOverlay
from designer.graph.bypass import bypass
from designer.graph.commands import add_layer, remove_layers, rename_layer, set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import Category
from designer.operators.registry import default_registry
from designer.runtime.patterns import PATTERNS
from designer.units import binary, duration, number

pytestmark = pytest.mark.gui
ROLE = Qt.ItemDataRole

# --- the overview -----------------------------------------------------------------------------------------------------

STEPS = (
    RunStep(("input_0",), "-", 0.0),
    RunStep(("noise",), "numpy", 2.0),
    RunStep(("first", "second"), "onnxruntime", 10.0),
    RunStep(("mix",), "numpy", 0.5, cached=True),
    RunStep(("large",), "numpy", 30.0, dropped=True),
)
INFOS = {
    "input_0": LayerInfo("input", "Input", "N x 3", Category.INPUT_OUTPUT, 1000),
    "noise": LayerInfo("noise", "Noise", "N x 4", Category.ANALYSIS, 5000),
    "first": LayerInfo("convolution", "Convolution", "N x 5", Category.CONVOLUTION, 30000, weight=1.0),
    "second": LayerInfo("relu", "ReLU", "N x 6", Category.ACTIVATION, 400, weight=4.0),
    "mix": LayerInfo("mix", "Mix", "N x 7", Category.ANALYSIS, 20000),
    "large": LayerInfo("convolution", "Convolution", "N x 8", Category.CONVOLUTION, 7),
}


def overview() -> OverviewModel:
    """After a run of all layers and another one in which `mix` did not run again."""
    model = OverviewModel()
    model.show(tuple(replace_step(step, cached=False) for step in STEPS), INFOS)
    model.show(STEPS, INFOS)
    return model


def replace_step(step: RunStep, cached: bool) -> RunStep:
    return RunStep(step.layers, step.engine, step.milliseconds, cached, step.dropped)


def rows(model: OverviewModel) -> dict[str, QModelIndex]:
    """The first cells by layer; a group has the names of its layers."""
    found = {}
    for row in range(model.rowCount()):
        at = model.index(row, 0)
        inside = [model.index(number, 0, at) for number in range(model.rowCount(at))]
        found["+".join(model.layer_at(each) for each in inside) or model.layer_at(at)] = at
        found |= {model.layer_at(each): each for each in inside}
    return found


def cells(index: QModelIndex) -> list[str]:
    return [str(index.siblingAtColumn(column).data()) for column in range(COUNT)]


def test_every_cell_of_the_overview_is_of_its_layer(qtbot: QtBot) -> None:
    model = overview()
    assert [model.headerData(column, Qt.Orientation.Horizontal) for column in range(COUNT)] == list(headers())
    assert headers()[TYPE] == "Type"
    assert headers()[SHAPE] == "Output"
    tips = {column: model.headerData(column, Qt.Orientation.Horizontal, ROLE.ToolTipRole) for column in range(COUNT)}
    assert {column for column, tip in tips.items() if tip} == {TIME, MEMORY, STATE}
    assert tips[MEMORY].startswith("Bytes")
    assert tips[STATE].startswith("Whether")
    found = rows(model)
    group = "first … second", "10.0", binary(30400), "run", "N x 6", "2 layers together", "onnxruntime"
    assert {name: cells(index) for name, index in found.items()} == {
        "input_0": ["input_0", "-", binary(1000), "", "N x 3", "Input", "-"],
        "noise": ["noise", number(2.0), binary(5000), "run", "N x 4", "Noise", "numpy"],
        "first+second": [number(10.0) if column == TIME else text for column, text in enumerate(group)],
        "first": ["first", "2", binary(30000), "", "N x 5", "Convolution", ""],
        "second": ["second", "8", binary(400), "", "N x 6", "ReLU", ""],
        "mix": ["mix", number(0.5), binary(20000), "kept", "N x 7", "Mix", "numpy"],
        "large": ["large", number(30.0), binary(7), "not kept", "N x 8", "Convolution", "numpy"],
    }
    heat = {
        name: (at.siblingAtColumn(TIME).data(HEAT), at.siblingAtColumn(MEMORY).data(HEAT)) for name, at in found.items()
    }
    assert heat == {
        "input_0": (None, None),
        "noise": (pytest.approx(2 / 30), pytest.approx(1 / 6)),
        "first+second": (None, None),
        "first": (pytest.approx(2 / 30), 1.0),
        "second": (pytest.approx(8 / 30), pytest.approx(4 / 300)),
        "mix": (pytest.approx(0.5 / 30), pytest.approx(2 / 3)),
        "large": (1.0, pytest.approx(7 / 30000)),
    }
    assert model.largest == (30.0, 30000)
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    at = found["noise"]
    aligned = [
        column for column in range(COUNT) if at.siblingAtColumn(column).data(ROLE.TextAlignmentRole) == int(right)
    ]
    assert aligned == [TIME, MEMORY]
    muted = {
        name
        for name, at in found.items()
        if at.siblingAtColumn(SHAPE).data(ROLE.ForegroundRole) == theme.color("muted")
    }
    assert muted == {"mix"}
    tips = {name: at.data(ROLE.ToolTipRole).split("\n") for name, at in found.items()}
    for name, tip in tips.items():
        assert tip[-1] == f"double-click {'second' if name == 'first+second' else name} to see its channels"
    assert {name for name, tip in tips.items() if "not run again" in tip[0]} == {"mix"}
    assert {name for name, tip in tips.items() if "memory for kept ones" in tip[0]} == {"large"}
    assert {name for name, tip in tips.items() if tip[0] == "2 layers run as one by onnxruntime"} == {
        "first+second",
        "first",
        "second",
    }


def test_rows_that_never_ran_have_no_time(qtbot: QtBot) -> None:
    model = OverviewModel()
    model.show(tuple(replace_step(step, cached=True) for step in STEPS), INFOS)
    assert {cells(index)[TIME] for index in rows(model).values()} == {"-"}


def test_marks_and_faults_of_the_overview_are_painted_where_they_are(qtbot: QtBot) -> None:
    model, changed = overview(), []
    model.dataChanged.connect(lambda first, last, roles: changed.append(model.layer_at(first)))

    def icons() -> dict[str, int]:
        found = {name: at.data(ROLE.DecorationRole) for name, at in rows(model).items()}
        assert found.pop("first+second") is None
        return {name: icon.cacheKey() for name, icon in found.items()}

    plain = icons()
    model.mark("second:port")
    assert {name for name, key in icons().items() if key != plain[name]} == {"second"}
    assert icons()["second"] == theme.icon("eye-outline", "accent").cacheKey()
    changed.clear()
    model.mark("mix")
    assert set(changed) == {"second", "mix"}
    assert {name for name, key in icons().items() if key != plain[name]} == {"mix"}
    changed.clear()
    model.show_faults({"first": "NaN is made here", "mix": "3 % are NaN"})
    assert set(changed) == {"first", "mix"}
    alert = theme.icon("alert-octagon", "error").cacheKey()
    assert {name for name, key in icons().items() if key == alert} == {"first", "mix"}
    found = rows(model)
    assert {name for name, at in found.items() if cells(at)[STATE] == "not finite"} == {"first", "mix"}
    red = {name for name, at in found.items() if at.data(ROLE.ForegroundRole) == theme.color("error")}
    assert red == {"first", "mix"}
    assert found["first"].data(ROLE.ToolTipRole).startswith("NaN is made here")
    changed.clear()
    model.show_faults({"first": "infinity is made here"})
    assert set(changed) == {"first", "mix"}
    assert found["first"].data(ROLE.ToolTipRole).startswith("infinity is made here")
    changed.clear()
    model.show(STEPS, dict(INFOS, noise=replace(INFOS["noise"], memory=9)))
    assert set(changed) >= {"noise", "first"}  # also rows inside of a group
    assert cells(found["noise"])[MEMORY] == binary(9)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("column", range(COUNT))
def test_the_overview_is_sorted_by_values(qtbot: QtBot, column: int, down: bool) -> None:
    model = overview()
    times = {"input_0": 0.0, "noise": 2.0, "first": 2.0, "second": 8.0, "mix": 0.5, "large": 30.0, "first+second": 10.0}
    memory = {name: info.memory for name, info in INFOS.items()} | {"first+second": 30400}
    texts = {name: cells(index)[column] for name, index in rows(model).items()}
    keys = {TIME: times, MEMORY: memory}.get(column, texts)
    kept = {name: QPersistentModelIndex(index) for name, index in rows(model).items()}
    order = Qt.SortOrder.DescendingOrder if down else Qt.SortOrder.AscendingOrder
    model.sort(column, order)
    groups = ["input_0", "noise", "first+second", "mix", "large"]
    inside = sorted(("first", "second"), key=keys.__getitem__, reverse=down)
    assert [model.layer_at(model.index(row, 0)) for row in range(5)] == [
        "second" if name == "first+second" else name for name in sorted(groups, key=keys.__getitem__, reverse=down)
    ]
    group = model.find("first").parent()
    assert [model.layer_at(model.index(row, 0, group)) for row in range(2)] == inside
    for name, index in kept.items():
        assert cells(QModelIndex(index))[LAYER] == ("first … second" if name == "first+second" else name)
    model.sort(-1)
    assert [model.layer_at(model.index(row, 0)) for row in range(5)] == ["input_0", "noise", "second", "mix", "large"]


def test_a_selected_cell_keeps_its_heat_with_readable_text(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    delegate, model = HeatDelegate(parent), overview()
    for name, selected in (("noise", True), ("large", True), ("input_0", False)):
        option = QStyleOptionViewItem()
        option.state |= QStyle.StateFlag.State_Selected
        index = model.find(name).siblingAtColumn(TIME)
        delegate.initStyleOption(option, index)
        assert bool(option.state & QStyle.StateFlag.State_Selected) is not selected
        if selected:
            ground = option.backgroundBrush.color()
            assert ground == heat_color(index.data(HEAT))
            assert theme.contrast(option.palette.text().color(), ground) >= 4.5
    legend = HeatLegend("heat")
    qtbot.addWidget(legend)
    legend.show_ends(("30 ms", "29 KiB"))
    assert "from 0 to 30 ms  ·  29 KiB" in legend.toolTip()
    assert legend.accessibleDescription() == legend.toolTip()
    legend.show_ends(("2 s",))
    assert (
        legend.accessibleDescription()
        == legend.toolTip()
        == "Heat of one layer, from 0 to 2 s; italic values are modelled"
    )


# --- inputs and frames ------------------------------------------------------------------------------------------------


@pytest.fixture
def analysis(qtbot: QtBot) -> Iterator[AnalysisController]:
    """Of two inputs and two outputs, one behind a Mix; nothing runs."""
    layers = [
        Layer("a", "input", params={"dims": "16x8x3"}),
        Layer("b", "input", params={"dims": "16x8x3"}),
        Layer("mix", "mix", inputs=(Source("a"), Source("b")), params={"selection": "v_split", "amount": "0.25"}),
        Layer("y", "output", inputs=(Source("mix"),)),
        Layer("z", "output", inputs=(Source("b"),)),
    ]
    context = Context(default_registry())
    context.set_document(Document(Graph(layers), context.registry, parent=context))
    yield analysis_of(context)
    if context.engine is not None:
        context.engine.close()


TRACKS = {  # what is visible, what is enabled, the tip of Play and the texts of a track
    "counting": (
        Track(Path("v.mp4"), "video"),
        {"previous", "play", "next", "scrub", "speed", "loop", "every"},
        False,
        ["Play (Ctrl+Space)", "The next frame (PgDn)", "counting the frames …"],
    ),
    "video": (
        Track(
            Path("v.mp4"), "video", frames=40, fps=20.0, position=7, playing=True, loop=False, every=True, speed=0.25
        ),
        {"previous", "play", "next", "scrub", "speed", "loop", "every"},
        True,
        ["Pause (Ctrl+Space)", "The next frame (PgDn)", "frame 8 / 40  0:00.35"],
    ),
    "folder": (
        Track(Path("f"), "folder", frames=2, names=("a.png", "b.png"), position=1, speed=4.0),
        {"previous", "play", "next", "scrub", "speed", "loop"},
        True,
        ["Play (Ctrl+Space)", "The next image (PgDn)", "2 / 2  b.png"],
    ),
    "camera": (
        Track(Path("camera:0"), "camera", playing=True),
        {"play", "next", "place"},
        True,
        ["Pause (Ctrl+Space)", "Take one image", "no image taken yet"],
    ),
}


@pytest.mark.parametrize("name", TRACKS)
def test_controls_of_frames_are_those_of_their_source(qtbot: QtBot, analysis: AnalysisController, name: str) -> None:
    track, visible, enabled, texts = TRACKS[name]
    track = replace(track)
    window = QWidget()
    qtbot.addWidget(window)
    transport = Transport("a", analysis.playback, window)
    window.show()
    assert not transport.isVisible()
    analysis.playback.tracks = {"a": track, "b": Track(Path("other"), "video", frames=9)}
    analysis.playback.changed.emit("b")
    assert not transport.isVisible()  # that one is not its own
    analysis.playback.changed.emit("a")
    names = ("previous", "play", "next", "scrub", "speed", "loop", "every", "place")
    parts = {part: transport.findChild(QWidget, f"analysis.input.a.{part}") for part in names}
    assert {part for part, widget in parts.items() if widget.isVisible()} == visible
    for part in ("previous", "play", "next", "scrub"):
        assert parts[part].isEnabled() is enabled
    slider, speed, loop, every = (parts[part] for part in ("scrub", "speed", "loop", "every"))
    assert isinstance(slider, QSlider)
    assert isinstance(speed, QComboBox)
    assert isinstance(loop, QToolButton)
    assert isinstance(every, QCheckBox)
    assert (slider.maximum(), slider.value()) == (max(track.frames - 1, 0), track.position)
    assert (speed.currentText(), loop.isChecked(), every.isChecked()) == (f"{track.speed:g} x", track.loop, track.every)
    frame = transport.findChild(QLabel, "analysis.input.a.frame")
    assert [parts["play"].toolTip(), parts["next"].toolTip(), frame.text()] == texts
    play = theme.icon("pause" if track.playing else "play").cacheKey()
    assert parts["play"].icon().cacheKey() == play  # type: ignore[attr-defined]
    figures = transport.findChild(QLabel, "analysis.input.a.figures")
    assert not figures.isVisible()
    track.arrivals.extend((1.0, 1.5, 2.0))
    track.dropped, analysis.playback.milliseconds = 3, 12.4
    analysis.playback.changed.emit("a")
    rate = "2.0 fps, camera 0.0" if name == "camera" else f"2.0 of {track.rate:.4g} fps"
    assert figures.text() == f"{rate} · network 12 ms · 3 dropped"
    assert figures.isVisible()
    if name != "camera":
        assert (parts["place"].isVisible(), track.kind) == (False, name if name != "counting" else "video")
    else:
        assert parts["place"].text() == "on"  # type: ignore[attr-defined]
    track.error = "It cannot be read."
    analysis.playback.changed.emit("a")
    assert not transport.isVisible()


def test_controls_of_frames_act_on_their_own_input(qtbot: QtBot, analysis: AnalysisController) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    playback = analysis.playback
    tracks = {layer: Track(Path(layer), "video", frames=40, fps=20.0, position=7, speed=1.0) for layer in ("a", "b")}
    playback.tracks = tracks
    transport = Transport("a", playback, window)
    window.show()
    track = tracks["a"]

    def press(name: str) -> None:
        button = transport.findChild(QAbstractButton, f"analysis.input.a.{name}")
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton, pos=QPoint(8, button.height() // 2))

    for name, position in (("next", 8), ("previous", 7), ("previous", 6)):
        press(name)
        assert track.position == position
    qtbot.keyClick(transport.findChild(QSlider, "analysis.input.a.scrub"), Qt.Key.Key_End)
    assert track.position == 39
    press("next")
    assert track.position == 0
    press("loop")
    assert (track.loop, track.every) == (False, False)
    press("every")
    assert (track.loop, track.every) == (False, True)
    box = transport.findChild(QComboBox, "analysis.input.a.speed")
    qtbot.keyClick(box, Qt.Key.Key_Home)
    for speed in SPEEDS:
        if speed != SPEEDS[0]:
            qtbot.keyClick(box, Qt.Key.Key_Down)
            assert track.speed == speed
    other = tracks["b"]
    assert (other.position, other.loop, other.every, other.speed) == (7, True, False, 1.0)


@pytest.fixture
def row(qtbot: QtBot, analysis: AnalysisController) -> InputRow:
    made = InputRow("a", analysis.playback)
    qtbot.addWidget(made)
    made.resize(500, 200)
    made.show()
    return made


def test_every_entry_of_the_menus_chooses_its_own_image(
    row: InputRow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[tuple[str, Path]] = []
    row.chosen.connect(lambda layer, path: chosen.append((layer, path)))
    samples = row.findChild(QToolButton, "analysis.input.a.photographs").menu()
    for action in samples.actions():
        action.trigger()
    expected = [*photographs(), *(Path(f"pattern:{name}") for name in PATTERNS)]
    assert chosen == [("a", path) for path in expected]
    chosen.clear()
    cameras = row.findChild(QToolButton, "analysis.input.a.camera").menu()
    monkeypatch.setattr("app.ui.analysis.input_row.cameras", lambda: ["0", "2"])
    cameras.aboutToShow.emit()
    first, second, _, another = cameras.actions()
    for camera, sure in ((7, True), (8, False)):
        monkeypatch.setattr(QInputDialog, "getInt", lambda *_, camera=camera, sure=sure: (camera, sure))
        another.trigger()
    second.trigger()
    first.trigger()
    assert chosen == [("a", Path(f"camera:{camera}")) for camera in (7, 2, 0)]
    monkeypatch.setattr("app.ui.analysis.input_row.cameras", list)
    cameras.aboutToShow.emit()
    assert [action.isEnabled() for action in cameras.actions() if not action.isSeparator()] == [False, True]
    chosen.clear()
    for name, answer in (("folder", "/images"), ("folder", ""), ("open", "/images/a.png"), ("open", "")):
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_, answer=answer: answer)
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, answer=answer: (answer, ""))
        qtbot.mouseClick(row.findChild(QAbstractButton, f"analysis.input.a.{name}"), Qt.MouseButton.LeftButton)
    assert chosen == [("a", Path("/images")), ("a", Path("/images/a.png"))]


@pytest.mark.parametrize(
    ("present", "folder"), [(Path("/photos/cat.png"), "/photos"), (Path("pattern:edges"), ""), (Path("camera:0"), "")]
)
def test_dialogs_begin_in_the_folder_of_the_present_image(
    row: InputRow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, present: Path, folder: str
) -> None:
    asked: list[str] = []
    row._path = present
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda _p, _t, start: asked.append(start) or "")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda _p, _t, start, _f: (asked.append(start), ("", ""))[1])
    for name in ("folder", "open"):
        qtbot.mouseClick(row.findChild(QAbstractButton, f"analysis.input.a.{name}"), Qt.MouseButton.LeftButton)
    assert asked == [str(Path(folder)) if folder else ""] * 2


def test_a_row_says_what_feeds_its_input(
    row: InputRow, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    playback = analysis.playback
    monkeypatch.setattr(playback, "look", lambda layer, path: looked.append(path))

    def texts() -> list[str]:
        labels = (
            row.findChild(QLabel, f"analysis.input.a.{name}") for name in ("file", "size", "problem", "thumbnail")
        )
        return [label.text() for label in labels]

    row.show_file(None, "")
    assert texts() == ["", "no image chosen", "", "drop a\npicture"]
    row.show_file(Path("pattern:edges"), "")
    assert texts()[1:] == ["at the size of dims", "", ""]
    row.show_file(Path("pattern:unknown"), "No such pattern.")
    assert texts()[1:3] == ["no such pattern", "No such pattern."]
    row.show_file(Path("folder/a.npy"), "")
    assert texts() == ["a.npy", "tensor", "", "npy"]
    row.grab()  # a painted label keeps its tip
    assert row.findChild(QLabel, "analysis.input.a.file").toolTip() == str(Path("folder/a.npy"))
    photo = Path("folder/photo.png")
    row.show_file(photo, "")
    assert looked == [photo]
    preview = np.zeros((40, 80, 3), np.uint8)
    preview[:, :40] = 255
    playback.looked.emit("b", photo, (preview, "9 x 9", True))
    playback.looked.emit("a", Path("before.png"), (preview, "8 x 8", True))
    assert texts()[1] == "tensor"  # those are of another input and of the image before
    playback.looked.emit("a", photo, (preview, "80 x 40", True))
    for shape, dropped in (((1, 3, 40, 80), True), ((1, 4, 40, 80), False), ((1, 1, 40, 80), True)):
        row.show_fed(shape)
        assert texts()[1] == "80 x 40" + (" · opacity is not used" if dropped else "")
        row.grab()
        assert row._size.toolTip() == f"fed as {' x '.join(map(str, shape))}"
    picture = row.findChild(QLabel, "analysis.input.a.thumbnail").pixmap()
    assert picture.width() == 2 * picture.height()
    playback.ranges["a"] = (0.0, 1.5)
    playback.changed.emit("a")
    assert texts()[1] == "80 x 40 · values 0 … 1.5, drawn within 0 … 1 · opacity is not used"
    tracks = {"a": Track(Path("v.mp4"), "video", 40, 25.0, 64, 48, "h264"), "b": Track(Path("w.mp4"), "video")}
    playback.tracks = tracks
    playback.changed.emit("b")
    assert texts()[1].startswith("80 x 40")
    playback.changed.emit("a")
    assert texts()[1] == "64 x 48 · 25 fps · h264"
    row.show_fed((1, 3, 48, 64))
    assert texts()[1] == "64 x 48 · 25 fps · h264"  # the opacity was that of the photo
    playback.tracks["a"] = Track(Path("camera:0"), "camera")
    row.show_file(Path("camera:0"), "")
    assert texts()[1:] == ["live images", "", "camera"]
    playback.tracks["a"].error = "The camera does not answer."
    row.show_file(Path("camera:0"), "")
    assert texts()[2] == "The camera does not answer."
    assert image_of(None) is None
    folder, wide, high = Path("images"), np.full((10, 40, 3), 200, np.uint8), np.full((40, 10, 3), 50, np.uint8)
    track = Track(folder, "folder", 3, names=("a.png", "b.png", "c.png"), position=1)
    playback.tracks["a"] = track
    looked.clear()
    row.show_file(folder, "")
    assert (texts()[0], texts()[1], texts()[2]) == ("images", "3 images", "")
    assert looked == [folder / "b.png"]  # the image that is fed, until the engine brings it

    def is_wide() -> bool:
        shown = row.findChild(QLabel, "analysis.input.a.thumbnail").pixmap()
        return shown.width() > shown.height()

    playback.looked.emit("a", folder / "b.png", (high, "10 x 40", False))
    assert not is_wide()
    playback.looked.emit("a", Path("elsewhere") / "b.png", (wide, "40 x 10", False))
    assert not is_wide()
    playback.looked.emit("a", folder / "b.png", (wide, "40 x 10", False))
    assert is_wide()
    assert texts()[1] == "3 images"
    track.preview, track.position = high, 2
    playback.changed.emit("a")
    assert not is_wide()
    playback.looked.emit("a", folder / "b.png", (wide, "40 x 10", False))  # late
    assert not is_wide()
    assert looked == [folder / "b.png"]


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_every_control_of_the_display_changes_it_and_reset_all_of_them(qtbot: QtBot) -> None:
    bar = DisplayBar("y")
    qtbot.addWidget(bar)
    bar.resize(900, 60)
    bar.show()
    reported: list[Display] = []
    bar.changed.connect(lambda: reported.append(bar.display))

    def write(box: QWidget, text: str) -> None:
        box.selectAll()  # type: ignore[attr-defined]
        qtbot.keyClicks(box, f"{text}\r")

    write(bar.exposure.box, "1.5")
    write(bar.gamma.box, "2")
    qtbot.mouseClick(bar.mark, Qt.MouseButton.LeftButton)
    qtbot.keyClick(bar.mode, Qt.Key.Key_End)
    expected = Display(MODES[-1][0], 1.5, 2.0, True)
    assert reported[-1] == bar.display == expected
    count = len(reported)
    qtbot.mouseClick(bar.findChild(QToolButton, "y.reset_display"), Qt.MouseButton.LeftButton)
    assert reported[count:] == [Display()]
    assert (bar.mode.currentIndex(), bar.mark.isChecked()) == (0, False)
    assert (bar.exposure.value, bar.gamma.value) == (0.0, 1.0)


@pytest.fixture
def panel(qtbot: QtBot, analysis: AnalysisController) -> AnalysisPanel:
    made = AnalysisPanel(analysis.context)
    analysis.context.setParent(made)
    qtbot.addWidget(made)
    made.resize(900, 600)
    made.show()
    return made


def test_each_output_has_its_own_image_note_mark_and_line(panel: AnalysisPanel, analysis: AnalysisController) -> None:
    views = {name: panel.findChild(OutputView, f"analysis.output.{name}") for name in ("y", "z")}
    tabs = panel.findChild(QTabWidget, "analysis.outputs")
    assert [tabs.tabText(tab) for tab in range(tabs.count())] == ["y", "z"]
    assert {name: (view.view.split, view._split[1]) for name, view in views.items()} == {
        "y": (SplitMode.VERTICAL, 0.25),
        "z": (SplitMode.NONE, 0.5),
    }
    outputs = {"y": np.full((1, 3, 8, 16), 0.25, np.float32), "z": np.full((1, 3, 4, 8), 0.75, np.float32)}
    analysis.result = AnalysisResult(outputs, note="random weights", nonfinite={"z": 0.5})
    analysis.result_changed.emit()
    colors = {name: view.view.image.pixelColor(2, 2).red() for name, view in views.items()}
    assert colors == {"y": 64, "z": 191}
    assert views["y"].view.note == "random weights"
    assert views["z"].view.note == "random weights; 50.0 % of the values are NaN or infinite"
    panel._marked.show(((5, 3), (16, 8)))
    marks = {"y": (CrossOverlay(5, 3),), "z": (CrossOverlay(2, 1),)}
    assert {name: view.view.overlays for name, view in views.items()} == marks
    analysis.result_changed.emit()
    assert {name: view.view.overlays for name, view in views.items()} == marks
    panel._quality.texts, panel._quality._told = {"z": "PSNR 30 dB"}, analysis.result
    panel._quality.changed.emit()
    labels = {name: view.findChild(QLabel, f"analysis.output.{name}.quality") for name, view in views.items()}
    assert {name: label.text() for name, label in labels.items()} == {"y": "", "z": "PSNR 30 dB"}
    analysis.stale_changed.emit(True)
    assert all(view.view.dimmed for view in views.values())
    analysis.stale_changed.emit(False)
    assert not any(view.view.dimmed for view in views.values())
    document = analysis.context.document
    for params, split in (
        ({"selection": "h_split", "amount": "0.75"}, (SplitMode.HORIZONTAL, 0.75)),
        ({"selection": "difference"}, (SplitMode.NONE, 0.5)),
        ({"selection": "v_split"}, (SplitMode.VERTICAL, 0.75)),
    ):
        document.do(lambda g, params=params: set_params(g, {"mix": params}))
        assert views["y"]._split == split
    document.do(lambda g: remove_layers(g, ["mix"]))
    assert panel.findChild(OutputView, "analysis.output.y")._split == (SplitMode.NONE, 0.5)
    shapes = analysis.inputs.shapes
    shapes["b"] = (1, 3, 4, 8)
    analysis.result_changed.emit()
    assert panel._fed_sizes() == {"b": (4, 8)}
    sizes = [panel.findChild(QLabel, f"analysis.input.{name}.size").toolTip() for name in ("a", "b")]
    assert sizes[1] == "fed as 1 x 3 x 4 x 8"
    assert sizes[0] != sizes[1]


def test_an_output_keeps_its_tab_and_display_when_others_come_go_and_are_renamed(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    document, tabs = analysis.context.document, panel.findChild(QTabWidget, "analysis.outputs")

    def current() -> tuple[set[str], str, Display]:
        view = tabs.currentWidget()
        return {tabs.tabText(tab) for tab in range(tabs.count())}, view.layer, view.display_bar.display

    display = Display(DisplayMode.MAP, exposure=1.0, mark=True)
    tabs.setCurrentIndex(1)
    view = tabs.currentWidget()
    view.display_bar.show_display(display)
    document.do(lambda g: add_layer(g, Layer("new", "output", inputs=(Source("a"),))))
    assert current() == ({"y", "z", "new"}, "z", display)
    assert tabs.currentWidget() is view
    document.do(lambda g: remove_layers(g, ["y"]))
    assert current() == ({"z", "new"}, "z", display)
    document.do(lambda g: rename_layer(g, "z", "other"))
    assert current() == ({"other", "new"}, "other", display)
    moved: list[float] = []
    tabs.currentWidget().split_moved.connect(moved.append)
    tabs.currentWidget().view.split_moved.emit(0.5)
    assert moved  # a renamed one is connected too
    document.do(lambda g: remove_layers(g, ["other"]))
    assert current() == ({"new"}, "new", Display())


def test_a_recipe_makes_an_output_signed_unless_it_is_bypassed(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    document = analysis.context.document

    def color() -> int:
        values = np.full((1, 3, 8, 16), -0.5, np.float32)
        values[..., :4, :] = 0
        analysis.result = AnalysisResult({"y": values})
        analysis.result_changed.emit()
        return panel.findChild(OutputView, "analysis.output.y").view.image.pixelColor(2, 2).red()

    assert color() == 0
    document.do(lambda g: set_params(g, {"mix": {"selection": "custom", "recipe": "a - b"}}))
    assert color() == 128
    document.do(lambda g: bypass(g, document.inference, ["mix"]))
    assert color() == 0


def test_each_input_has_its_own_file_and_problem(panel: AnalysisPanel, analysis: AnalysisController) -> None:
    rows = {name: panel.findChild(InputRow, f"analysis.input.{name}") for name in ("a", "b")}
    before = analysis.inputs.path("a")
    rows["b"].chosen.emit("b", Path("pattern:edges"))
    assert (analysis.inputs.path("a"), analysis.inputs.path("b")) == (before, Path("pattern:edges"))
    files = [panel.findChild(QLabel, f"analysis.input.{name}.file").toolTip() for name in ("a", "b")]
    assert files == [str(before), "pattern:edges"]
    analysis.inputs.errors["b"] = "It is not an image."
    analysis.inputs.changed.emit()
    problems = [panel.findChild(QLabel, f"analysis.input.{name}.problem").text() for name in ("a", "b")]
    assert problems == ["", "It is not an image."]
    assert panel._inputs_box.isVisible()
    analysis.context.document.do(lambda g: remove_layers(g, ["a", "b"]))
    assert not panel._inputs_box.isVisible()


def test_the_layer_that_made_nan_is_named_with_its_share(qtbot: QtBot, analysis: AnalysisController) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    faults = Faults(analysis, parent)
    analysis.result = AnalysisResult(nonfinite={"y": 0.5, "mix:port": 0.25})
    for kind, word in (("nan", "NaN"), ("inf", "infinity")):
        faults._done(TraceReply("a", kind, 0.125, (), "its input has it"))  # type: ignore[arg-type]
        share = "12.5 % of its values are NaN or infinite"
        assert faults.text == f"{word} is first made by 'a': {share}. Its input has it"
        assert faults.culprit == "a"
        assert faults.layers["a"] == share
        assert faults.layers["y"].startswith("50")
        assert set(faults.layers) == {"a", "y", "mix"}
    faults._done(TraceReply(None, "", 0.0, ()))
    assert (faults.culprit, faults.layers) == ("", {})
    assert "was not found" in faults.text


def test_the_overview_selects_and_marks_what_the_rest_of_the_window_shows(
    qtbot: QtBot, analysis: AnalysisController
) -> None:
    context = analysis.context
    context.inspected.emit("mix")
    context.select(("mix",))
    panel = NetworkOverviewPanel(context)
    qtbot.addWidget(panel)
    panel.resize(600, 400)
    panel.show()
    model, tree = panel.model, panel.tree
    assert not tree.isVisible()
    analysis.result = AnalysisResult(
        steps=(RunStep(("mix", "z"), "numpy", 4.0),), milliseconds=4.0, note="random weights"
    )
    analysis.result_changed.emit()
    assert tree.isVisible()
    assert list(rows(model)) == ["a", "b", "mix+z", "mix", "z", "y"]
    assert model.layer_at(tree.currentIndex()) == "mix"
    eye = theme.icon("eye-outline", "accent").cacheKey()

    def marked() -> set[str]:
        icons = {name: at.data(ROLE.DecorationRole) for name, at in rows(model).items()}
        return {name for name, icon in icons.items() if icon and icon.cacheKey() == eye}

    assert marked() == {"mix"}
    for emit, layer, expected in (
        (context.inspect_requested.emit, "z", {"z"}),
        (context.inspected.emit, "mix:1", {"mix"}),
        (context.inspected.emit, "", set()),
        (context.inspect_requested.emit, "mix", {"mix"}),
    ):
        emit(layer)
        assert marked() == expected
    time, memory = model.largest
    legend, summary = (panel.findChild(QWidget, f"network_overview.{name}") for name in ("legend", "summary"))
    assert legend is not None
    assert f"{duration(time)}  ·  {binary(memory)}" in legend.toolTip()
    assert isinstance(summary, QLabel)
    assert summary.text() == f"{analysis.result.summary()}  ·  random weights"

    def click(name: str) -> None:
        place = tree.visualRect(rows(model)[name]).center()
        qtbot.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=place)

    click("mix+z")  # not one layer
    assert context.selection == ("mix",)
    click("z")
    assert context.selection == ("z",)
    context.select(("a", "b"))
    assert model.layer_at(tree.currentIndex()) == "z"
    context.select(("b",))
    assert model.layer_at(tree.currentIndex()) == "b"
    reported: list[tuple[str, str]] = []
    context.inspect_requested.connect(lambda name: reported.append(("inspect", name)))
    context.reveal_requested.connect(lambda name: reported.append(("reveal", name)))
    for entry, way in enumerate(("inspect", "reveal")):
        tree.customContextMenuRequested.emit(tree.visualRect(rows(model)["z"]).center())
        (menu,) = panel.findChildren(QMenu)
        menu.actions()[entry].trigger()
        menu.close()
        qtbot.waitUntil(lambda: not panel.findChildren(QMenu))
        assert reported.pop() == (way, "z")
    buttons = [panel.findChild(QWidget, f"network_overview.notice.{name}") for name in ("go", "look")]
    for culprit in ("mix", ""):
        panel.faults._set(culprit, f"It is {culprit or 'not known'}.", {"z": "3 % are NaN"})
        assert panel.notice.isVisible()
        assert [button.isVisible() for button in buttons if button is not None] == [bool(culprit)] * 2
    assert cells(model.find("z"))[STATE] == "not finite"
    panel.faults._set("", "", {})
    assert not panel.notice.isVisible()
    tree.collapseAll()
    other = (RunStep(("mix", "y"), "numpy", 4.0), RunStep(("z",), "numpy", 1.0))
    analysis.result = AnalysisResult(steps=other, coarse=2)
    analysis.result_changed.emit()
    assert "mix+z" in rows(model)  # times at a reduced size are not those of the network
    analysis.result = AnalysisResult(steps=other)
    analysis.result_changed.emit()
    assert cells(rows(model)["z"])[TIME] == number(1.0)
    assert tree.isExpanded(rows(model)["mix+y"])
