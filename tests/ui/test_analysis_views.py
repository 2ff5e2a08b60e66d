"""Views of an analysis without an engine: cells of the overview, controls of inputs and frames, and what outputs show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from analysis_kit import SILENT
from PySide6.QtCore import QMimeData, QModelIndex, QPersistentModelIndex, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMenu,
    QPushButton,
    QSlider,
    QSplitter,
    QStyle,
    QStyleOptionViewItem,
    QTabWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shown_state import named, of_tree

from app.engine.protocol import RunStep, TraceReply
from app.reports.comparison import ms_text
from app.ui.analysis import analysis_panel, image_input, report
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.display import MODES, Display, DisplayBar, DisplayMode
from app.ui.analysis.faults import Faults
from app.ui.analysis.heat import HeatDelegate, HeatLegend
from app.ui.analysis.image_input import ImageInput
from app.ui.analysis.input_row import THUMBNAIL, InputRow
from app.ui.analysis.layer_infos import LayerInfo
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.analysis.output_view import OutputView
from app.ui.analysis.overview_model import (
    COUNT,
    ENGINE,
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
from app.ui.analysis.report import PAGES, seen_in
from app.ui.analysis.transport import SPEEDS, Transport
from app.ui.document.document import Document
from app.ui.engine.analysis import AnalysisController, analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.inputs import image_of, photographs
from app.ui.engine.playback import Track
from app.ui.engine.provenance import provenance_of
from app.ui.engine.result import AnalysisResult, Phase
from app.ui.widgets import run_choices, theme
from app.ui.widgets.heat import heat_color
from app.ui.widgets.image_view import SplitMode
from app.ui.widgets.overlays import CrossOverlay
from app.ui.widgets.run_choices import Choice
from designer.files.document import DOCUMENTS
from designer.files.variants import Variant
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
        name: [column for column in range(COUNT) if at.siblingAtColumn(column).data(ROLE.ForegroundRole) is not None]
        for name, at in found.items()
    }
    inside = sorted((ENGINE, STATE))
    assert {name: columns for name, columns in muted.items() if columns} == {
        "mix": list(range(COUNT)),
        "first": inside,
        "second": inside,
    }
    assert found["mix"].data(ROLE.ForegroundRole) == found["first"].siblingAtColumn(STATE).data(ROLE.ForegroundRole)
    assert found["mix"].data(ROLE.ForegroundRole) == theme.color("muted")
    for role, columns in (
        (HEAT, {TIME, MEMORY}),
        (ROLE.DecorationRole, {LAYER}),
        (ROLE.FontRole, {SHAPE, TIME, MEMORY}),
    ):
        assert {c for c in range(COUNT) if found["noise"].siblingAtColumn(c).data(role) is not None} == columns
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
    """Of two inputs and two outputs, one behind a Mix; nothing runs: the engine never answers, and is there at once."""
    layers = [
        Layer("a", "input", params={"dims": "16x8x3"}),
        Layer("b", "input", params={"dims": "16x8x3"}),
        Layer("mix", "mix", inputs=(Source("a"), Source("b")), params={"selection": "v_split", "amount": "0.25"}),
        Layer("y", "output", inputs=(Source("mix"),)),
        Layer("z", "output", inputs=(Source("b"),)),
    ]
    context = Context(default_registry())
    engine = context.engine = EngineClient(command=SILENT)
    context.set_document(Document(Graph(layers), context.registry, parent=context))
    yield analysis_of(context)
    engine.close(kill=True)


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
    for frames in (1, 9, 10, 19, 20, 305):
        step = replace(track, frames=frames, position=0, names=("x",) * frames)
        analysis.playback.tracks["a"] = step
        analysis.playback.changed.emit("a")
        assert slider.pageStep() == max(1, frames // 10)
    analysis.playback.tracks["a"] = track
    analysis.playback.changed.emit("a")
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


def test_controls_of_frames_are_the_same_whatever_source_was_there_before(
    qtbot: QtBot, analysis: AnalysisController
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    followed = Transport("a", analysis.playback, window)
    window.show()
    tracks = [replace(track) for track, *_ in TRACKS.values()]
    tracks += [replace(track, playing=not track.playing) for track in tracks]
    tracks += [replace(tracks[0], error="It cannot be read."), *tracks[::-3], *tracks[1::2]]
    for track in tracks:
        analysis.playback.tracks["a"] = track
        analysis.playback.changed.emit("a")
        fresh = Transport("a", analysis.playback, window)
        fresh.setVisible(not track.error)
        assert named("", of_tree(followed)) == named("", of_tree(fresh))
        fresh.hide()
        names = {part: followed.findChild(QWidget, f"analysis.input.a.{part}") for part in ("previous", "play", "next")}
        assert {part: each.accessibleName() for part, each in names.items()} == {
            part: f"{each.toolTip()}: a" for part, each in names.items()
        }


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
    assert (track.loop, track.every, track.position) == (False, True, 0)
    for way in ("loop", "every", "loop", "every"):
        before = (track.loop, track.every)
        press(way)
        after = (track.loop != (way == "loop"), track.every != (way == "every"))
        assert after == before
        qtbot.keyClick(box, Qt.Key.Key_Up)
        assert (track.loop != (way == "loop"), track.every != (way == "every")) == before
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
    for ratio in (2.0, 1.5, 1.0):  # as large on every screen, with all of its pixels
        monkeypatch.setattr(QWidget, "devicePixelRatioF", lambda widget, ratio=ratio: ratio)
        playback.looked.emit("a", photo, (np.kron(preview, np.ones((9, 9, 1), np.uint8)), "80 x 40", True))
        picture = row.findChild(QLabel, "analysis.input.a.thumbnail").pixmap()
        assert picture.deviceIndependentSize().toTuple() == (THUMBNAIL.width(), THUMBNAIL.width() / 2)
        assert picture.toImage().pixelColor(2, 2).red() == 255
        assert picture.toImage().pixelColor(picture.width() - 3, 2).red() == 0
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


def test_a_mix_flickers_only_where_it_is_seen_whatever_changes(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    """Edits, undo and another document, while the panel is seen and while it is hidden."""
    first = analysis.context.document
    second = Document(first.graph.copy(), analysis.context.registry, parent=analysis.context)

    def select(text: str) -> None:
        analysis.context.document.do(lambda g: set_params(g, {"mix": {"selection": text}}))

    steps: list[tuple[Any, bool]] = [
        (lambda: select("flicker"), True),
        (lambda: select("blend"), False),
        (first.undo, True),
        (lambda: analysis.context.set_document(second), False),
    ]
    for shown in (True, False):
        panel.setVisible(shown)
        for act, flickers in steps:
            act()
            assert panel.flicker.running is (flickers and shown)
        analysis.context.set_document(first)
        panel.setVisible(True)
        assert panel.flicker.running
        while first.undo() is not None:
            pass
        assert not panel.flicker.running


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
    larger = dict(outputs, z=np.full((1, 3, 16, 32), 0.75, np.float32))
    analysis.result = AnalysisResult(larger)
    analysis.result_changed.emit()  # an output of another size is marked where that pixel is
    assert {name: view.view.overlays for name, view in views.items()} == dict(marks, z=(CrossOverlay(11, 7),))
    assert [view.view.note for view in views.values()] == ["", ""]
    analysis.result = AnalysisResult(outputs, note="random weights", nonfinite={"z": 0.5})
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


def test_the_chosen_output_stays_chosen_when_an_output_is_renamed(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    """Also with the adjusted display of the renamed one."""
    tabs, document = panel.findChild(QTabWidget, "analysis.outputs"), analysis.context.document
    for name, chosen in product("yz", "yz"):
        view = panel._outputs[name]
        view.display_bar.show_display(Display(exposure=2.0))
        view._adjust.setChecked(name == chosen)
        tabs.setCurrentWidget(panel._outputs[chosen])
        document.do(lambda graph, name=name: rename_layer(graph, name, "other"))
        assert tabs.tabText(tabs.currentIndex()) == ("other" if chosen == name else chosen)
        after = panel._outputs["other"]
        assert (after.display_bar.display.exposure, after._adjust.isChecked()) == (2.0, name == chosen)
        document.undo()
        assert tabs.tabText(tabs.currentIndex()) == chosen


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


# --- the panel around the outputs -------------------------------------------------------------------------------------

RAN = AnalysisResult(steps=(RunStep(("mix",), "numpy", 4.0), RunStep(("y",), "-", 0.0, cached=True)), milliseconds=4.0)
WORD = "It is a problem."
CHOOSE = "Attention: It is a problem. Choose weights, or look at it with random ones."
PHASES: list[
    tuple[Any, ...]
] = [  # phase, message, result, whether it is stale: the status, the notice and its buttons, whether Stop is enabled
    (Phase.IDLE, "", None, False, "Not launched", "", "", False),
    (Phase.IDLE, "left over", RAN, False, "Not launched", "", "", False),
    (Phase.RUNNING, "Running", None, False, "Running", "", "", True),
    (Phase.RUNNING, "Running", RAN, False, "4.00 ms · re-ran mix", "", "", False),
    (Phase.RUNNING, "Running", RAN, True, "Running", "", "", True),
    (
        Phase.RUNNING,
        "Running",
        replace(RAN, coarse=4),
        False,
        "preview at 1/4, the full image follows · 4.00 ms · re-ran mix",
        "",
        "",
        True,
    ),
    (Phase.READY, "5 ms", RAN, False, "5 ms", "", "", False),
    (Phase.READY, "5 ms", RAN, True, "5 ms", "", "", False),
    (Phase.BLOCKED, WORD, RAN, True, "", f"Attention: {WORD}", "", False),
    (Phase.WEIGHTS, WORD, None, False, "", CHOOSE, "weights file random", False),
    (Phase.FAILED, WORD, None, False, "", f"Problem: {WORD}", "restart", False),
    (Phase.STOPPED, "Stopped.", RAN, True, "Stopped.", "", "", False),
]


def test_each_phase_has_its_status_notice_and_buttons(panel: AnalysisPanel, analysis: AnalysisController) -> None:
    keys = ("restart", "weights", "file", "random", "sizes", "precision")

    def shown() -> tuple[object, ...]:
        found = [panel.findChild(QPushButton, f"analysis.notice.{key}") for key in keys]
        return (
            panel.findChild(QLabel, "analysis.status").text(),
            panel._notice.text,
            " ".join(key for key, button in zip(keys, found, strict=True) if button.isVisible()),
            panel.findChild(QPushButton, "analysis.stop").isEnabled(),
            panel.findChild(QPushButton, "analysis.launch").isEnabled(),
        )

    for phase, message, result, stale, status, notice, buttons, stop in PHASES:
        analysis.phase, analysis.message, analysis.result, analysis.stale = phase, message, result, stale
        analysis.phase_changed.emit(phase)
        assert shown() == (status, notice, buttons, stop, True)
        assert panel._notice.isVisible() == bool(notice)
        analysis.phase, analysis.message, analysis.result, analysis.stale = Phase.IDLE, "", None, False
        analysis.phase_changed.emit(Phase.IDLE)
        assert shown() == ("Not launched", "", "", False, True)


def test_buttons_of_the_notice_do_what_they_say(
    panel: AnalysisPanel, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[object] = []
    document = analysis.context.document
    monkeypatch.setattr(analysis_panel, "ask_weights_folder", lambda *args: called.append(("folder", *args)))
    monkeypatch.setattr(analysis_panel, "ask_weights_file", lambda *args: called.append(("file", *args)))
    monkeypatch.setattr(analysis, "launch", lambda: called.append("launch"))
    monkeypatch.setattr(panel._sizes, "fix", lambda: called.append("fix") or len(called) > 3)
    document.change_settings(precision="fp16")
    for key, expected in (
        ("weights", [("folder", panel, document, analysis.choose_weights)]),
        ("file", [("file", panel, document, analysis.choose_weights)]),
        ("sizes", ["fix"]),  # it could not be mended
        ("precision", ["launch"]),
        ("sizes", ["fix", "launch"]),
    ):
        count = len(called)
        panel.findChild(QPushButton, f"analysis.notice.{key}").click()
        assert called[count:] == expected
    assert document.settings.precision == "fp32"


def test_a_refused_precision_is_offered_another_where_a_restart_is_of_no_use(
    panel: AnalysisPanel, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = analysis.context.document
    here = (Choice("cpu", "CPU"), Choice("gpu:0", "GPU", "there is none"))
    some = (Choice("fp32", "FP32"), Choice("fp16", "FP16", "not by this engine"))
    monkeypatch.setattr(run_choices, "devices", lambda engine: here)
    monkeypatch.setattr(run_choices, "precisions", lambda engine, device: some)
    for device, precision, refused in (
        ("cpu", "fp32", False),
        ("cpu", "fp16", True),
        ("gpu:0", "fp16", False),  # the device is the problem
        ("cpu", "fp16", True),
    ):
        document.change_settings(device=device, precision=precision)
        assert panel._precision_refused() == refused
        analysis.phase, analysis.message = Phase.FAILED, WORD
        analysis.phase_changed.emit(Phase.FAILED)
        visible = {key: panel._notice._made[key].isVisible() for key in ("precision", "restart")}
        assert visible == {"precision": refused, "restart": not refused}
        assert panel._notice.text == f"Problem: {WORD}"
    # a variant has a precision of its own, which the settings of the network do not change
    document.change_settings(variants=(Variant("fast", precision="fp16"),), variant="fast")
    assert not panel._precision_refused()
    document.change_settings(variant="")
    assert panel._precision_refused()


def test_the_note_of_an_output_is_about_its_own_values(panel: AnalysisPanel, analysis: AnalysisController) -> None:
    image = np.zeros((1, 3, 8, 16), np.float32)
    for broken in ({"y": 0.25}, {"z": 0.5}, {}):
        analysis.result = AnalysisResult({"y": image, "z": image}, note="random weights", nonfinite=broken)
        analysis.result_changed.emit()
        for layer in ("y", "z"):
            share = f"; {100 * broken[layer]:.1f} % of the values are NaN or infinite" if layer in broken else ""
            assert panel._outputs[layer].view.note == f"random weights{share}"


def test_a_size_that_is_refused_is_said_also_where_that_is_known_after_the_failure(
    panel: AnalysisPanel, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit that makes every size work is offered while it can be made, and only for a failure."""
    rules, asked = panel._sizes, []
    known = {"refusal": "", "fixable": True}
    monkeypatch.setattr(rules, "request", lambda **_: None)
    monkeypatch.setattr(rules, "refusal", lambda sizes: asked.append(sizes) or known["refusal"])
    monkeypatch.setattr(type(rules), "fixable", property(lambda _: known["fixable"]))
    monkeypatch.setattr(analysis.inputs, "shapes", {"a": (1, 3, 8, 16), "b": (1, 5)})

    def shown() -> tuple[str, set[str]]:
        made = panel._notice._made.items()
        return panel._notice.text, {key for key, button in made if button.isVisible()}

    analysis.phase, analysis.message = Phase.FAILED, WORD
    analysis.phase_changed.emit(Phase.FAILED)
    plain = (f"Problem: {WORD}", {"restart"})
    assert shown() == plain
    assert asked[-1] == {"a": (8, 16)}
    offer = ("Attention: Not 16 x 8. Pad and crop the image in the network, or choose another.", {"sizes"})
    for refusal, fixable, expected in (
        ("Not 16 x 8", True, offer),
        ("Not 16 x 8", False, plain),
        ("Not 16 x 8", True, offer),
        ("", True, plain),
    ):
        known.update(refusal=refusal, fixable=fixable)
        rules.changed.emit()
        assert shown() == expected
    known.update(refusal="Not 16 x 8")
    analysis.phase, analysis.message = Phase.READY, ""
    analysis.phase_changed.emit(Phase.READY)
    rules.changed.emit()
    assert shown() == ("", set())


def input_rows(panel: AnalysisPanel) -> list[str]:
    """The inputs in the order in which their rows are seen."""
    found = [row for row in panel.findChildren(InputRow) if row.isVisible()]
    return [row.objectName().rpartition(".")[2] for row in sorted(found, key=lambda row: row.y())]


def test_rows_and_tabs_are_those_of_the_inputs_and_outputs_that_there_are(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    document, tabs = analysis.context.document, panel.findChild(QTabWidget, "analysis.outputs")

    def seen() -> tuple[list[str], list[str]]:
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        return input_rows(panel), [tabs.tabText(tab) for tab in range(tabs.count())]

    assert seen() == (["a", "b"], ["y", "z"])
    document.do(lambda g: rename_layer(g, "b", "photo"))
    assert seen() == (["a", "photo"], ["y", "z"])
    document.do(lambda g: remove_layers(g, ["photo", "z"]))
    assert seen() == (["a"], ["y"])
    document.do(lambda g: remove_layers(g, ["y"]))
    assert seen()[1] == ["none"]
    empty = tabs.currentWidget()
    assert isinstance(empty, OutputView)
    assert empty.view._empty.startswith("The network has no output layer.")
    for _ in range(3):
        document.undo()
    assert seen() == (["a", "b"], ["y", "z"])
    display = Display(exposure=2.0)
    for view in panel._outputs.values():
        view.display_bar.show_display(display)
    layers = [Layer("a", "input", params={"dims": "8x8x3"}), Layer("y", "output", inputs=(Source("a"),))]
    other = Document(Graph(layers), analysis.context.registry, parent=analysis.context)
    analysis.context.set_document(other)
    assert seen() == (["a"], ["y"])
    assert tabs.currentWidget().display_bar.display == Display()  # that of the other network was its own
    document.do(lambda g: add_layer(g, Layer("q", "output", inputs=(Source("a"),))))
    assert seen() == (["a"], ["y"])
    other.do(lambda g: add_layer(g, Layer("q", "output", inputs=(Source("a"),))))
    assert seen() == (["a"], ["q", "y"])


def test_keys_go_through_frames_where_there_are_some(
    panel: AnalysisPanel, qtbot: QtBot, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(analysis.playback, "step_all", steps.append)
    keys = [Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Comma, Qt.Key.Key_Period, Qt.Key.Key_A]
    for key in keys:
        qtbot.keyClick(panel, key)
    assert steps == []
    analysis.playback.tracks["a"] = Track(Path("v.mp4"), "video", frames=9)
    for key in keys:
        qtbot.keyClick(panel, key)
    assert steps == [-1, 1, -1, 1]
    paused: list[bool] = []
    monkeypatch.setattr(analysis.playback, "pause", lambda: paused.append(True))
    panel.hide()
    assert paused == [True]
    analysis.playback.tracks.clear()


def test_a_file_that_is_dropped_outside_of_the_rows_feeds_the_first_input(
    panel: AnalysisPanel, analysis: AnalysisController, tmp_path: Path
) -> None:
    def drop(name: str) -> tuple[bool, bool]:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(tmp_path / name))])
        rest = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        enter, leave = QDragEnterEvent(QPoint(3, 3), *rest), QDropEvent(QPointF(3, 3), *rest)
        for event in (enter, leave):
            event.ignore()
        panel.dragEnterEvent(enter)
        panel.dropEvent(leave)
        return enter.isAccepted(), leave.isAccepted()

    before = analysis.inputs.path("b")
    assert drop("a.txt") == (False, False)
    assert drop("a.png") == (True, True)
    assert (analysis.inputs.path("a"), analysis.inputs.path("b")) == (tmp_path / "a.png", before)
    analysis.context.document.do(lambda g: remove_layers(g, ["a", "b"]))
    assert drop("b.png") == (False, False)


def test_controls_are_next_to_the_image_where_the_panel_is_wide(panel: AnalysisPanel) -> None:
    split = panel.findChild(QSplitter, "analysis.split")
    horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
    assert split.orientation() is horizontal
    for size, orientation in (
        ((759, 600), vertical),
        ((760, 600), horizontal),
        ((900, 901), vertical),
        ((900, 900), horizontal),
    ):
        panel.resize(*size)
        assert split.orientation() is orientation
        QApplication.processEvents()
        image, controls = split.sizes()
        if orientation is horizontal:
            assert abs(controls - 340) <= 20
        else:
            assert 0.45 <= image / (image + controls) <= 0.65
        split.setSizes([image - 40, controls + 40])
        kept = split.sizes()
        assert kept != [image, controls]
        panel.resize(size[0], size[1] + (1 if orientation is vertical else -1))  # the user's shares stay
        assert abs(split.sizes()[1] - kept[1]) <= 4


def test_dragging_a_split_line_is_one_change_until_it_is_released(
    panel: AnalysisPanel, analysis: AnalysisController
) -> None:
    document = analysis.context.document
    views = panel._outputs

    def amount() -> str:
        return document.graph["mix"].params["amount"]

    for drag, text in ((0.3, "0.3"), (0.41249, "0.412"), (0.66666, "0.667")):
        views["y"].split_moved.emit(drag)
        assert amount() == text
    views["z"].split_moved.emit(0.9)  # no Mix is above it
    assert amount() == "0.667"
    views["y"].split_released.emit()
    views["y"].split_moved.emit(0.125)
    document.undo()
    assert amount() == "0.667"
    document.undo()
    assert amount() == "0.25"


def test_the_first_times_are_those_of_a_preview_until_the_full_ones_come(
    qtbot: QtBot, analysis: AnalysisController
) -> None:
    panel = NetworkOverviewPanel(analysis.context)
    qtbot.addWidget(panel)
    panel.resize(600, 400)
    panel.show()

    def time_after(milliseconds: float, coarse: int) -> str:
        steps = (RunStep(("mix",), "numpy", milliseconds), RunStep(("z",), "numpy", 1.0))
        analysis.result = AnalysisResult(steps=steps, milliseconds=milliseconds + 1.0, coarse=coarse)
        analysis.result_changed.emit()
        summary = panel.findChild(QLabel, "network_overview.summary").text()
        shown = cells(panel.model.find("mix"))[TIME]
        largest = panel.model.largest[0]
        assert shown == number(largest)
        assert f"{duration(largest + 1.0)} · all 2 layers" in summary
        return shown

    assert time_after(3.0, 4) == number(3.0)
    assert time_after(40.0, 0) == number(40.0)
    assert time_after(2.0, 4) == number(40.0)
    assert time_after(50.0, 0) == number(50.0)
    assert time_after(2.0, 2) == number(50.0)
    analysis.result = None
    analysis.result_changed.emit()
    assert panel.model.rowCount() == 0
    assert not panel.tree.isVisible()


def test_while_frames_play_the_overview_follows_less_often(qtbot: QtBot, analysis: AnalysisController) -> None:
    panel = NetworkOverviewPanel(analysis.context)
    qtbot.addWidget(panel)
    panel.show()

    def bring(milliseconds: float) -> str:
        analysis.result = AnalysisResult(steps=(RunStep(("mix",), "numpy", milliseconds),))
        analysis.result_changed.emit()
        return cells(panel.model.find("mix"))[TIME]

    assert bring(1.0) == number(1.0)
    track = Track(Path("v.mp4"), "video", frames=9, playing=True)
    analysis.playback.tracks["a"] = track
    assert analysis.playback.playing
    panel._calm.setInterval(30)
    assert bring(2.0) == number(1.0)
    assert panel._calm.isActive()
    panel._calm.setInterval(60_000)  # of the next start, which would put the values off again
    panel._calm.start(30)
    restarted = []
    panel._calm.start = lambda *time: restarted.append(time)
    assert bring(3.0) == number(1.0)
    del panel._calm.start
    assert restarted == []
    qtbot.waitUntil(lambda: cells(panel.model.find("mix"))[TIME] == number(3.0))
    assert bring(4.0) == number(3.0)
    track.playing = False
    assert bring(5.0) == number(5.0)
    assert not panel._calm.isActive()
    analysis.playback.tracks.clear()


def test_a_layer_that_is_renamed_stays_in_the_overview_and_one_that_is_deleted_goes(
    qtbot: QtBot, analysis: AnalysisController
) -> None:
    panel = NetworkOverviewPanel(analysis.context)
    qtbot.addWidget(panel)
    panel.show()
    document = analysis.context.document
    analysis.result = AnalysisResult(steps=(RunStep(("mix", "z"), "numpy", 4.0), RunStep(("y",), "-", 0.0)))
    analysis.result_changed.emit()
    assert list(rows(panel.model)) == ["a", "b", "mix+z", "mix", "z", "y"]
    document.do(lambda g: rename_layer(g, "mix", "blend"))
    assert list(rows(panel.model)) == ["a", "b", "mix+z", "mix", "z", "y"]  # as it ran, until it runs again
    document.do(lambda g: remove_layers(g, ["z"]))
    assert list(rows(panel.model)) == ["a", "b", "blend", "y"]
    document.do(lambda g: rename_layer(g, "blend", "mixed"))
    assert list(rows(panel.model)) == ["a", "b", "mixed", "y"]
    for _ in range(2):
        document.undo()
    assert list(rows(panel.model)) == ["a", "b", "blend+z", "blend", "z", "y"]
    document.do(lambda g: remove_layers(g, ["z"]))
    document.do(lambda g: rename_layer(g, "y", "result"))
    assert list(rows(panel.model)) == ["a", "b", "blend", "result"]
    analysis.result = AnalysisResult(steps=(RunStep(("blend", "result"), "numpy", 4.0),))
    analysis.result_changed.emit()
    assert list(rows(panel.model)) == ["a", "b", "blend+result", "blend", "result"]
    document.do(lambda g: rename_layer(g, "blend", "mix"))
    # nothing was deleted since this run
    assert list(rows(panel.model)) == ["a", "b", "blend+result", "blend", "result"]
    analysis.result = AnalysisResult(steps=(RunStep(("mix", "z"), "numpy", 4.0), RunStep(("result",), "-", 0.0)))
    analysis.result_changed.emit()
    document.do(lambda g: rename_layer(g, "mix", "blend"))
    document.do(lambda g: remove_layers(g, ["blend"]))
    assert list(rows(panel.model)) == ["a", "b", "result"]
    document.undo()  # it comes back under its last name
    assert list(rows(panel.model)) == ["a", "b", "blend", "result"]
    document.undo()
    assert list(rows(panel.model)) == ["a", "b", "mix", "result"]
    analysis.result = AnalysisResult(steps=(RunStep(("mix", "z"), "numpy", 4.0), RunStep(("result",), "-", 0.0)))
    analysis.result_changed.emit()
    document.do(lambda g: add_layer(g, Layer("z", "output", inputs=(Source("b"),))))
    for gone, left in (
        (("mix", "result"), ["a", "b", "z"]),
        (("z", "result"), ["a", "b", "mix"]),
        (("mix", "z"), ["a", "b", "result"]),
        (("mix", "z", "result"), []),
    ):
        document.do(lambda g, gone=gone: remove_layers(g, gone))
        assert list(rows(panel.model)) == left
        assert panel._stack.currentIndex() == bool(left)
        document.undo()
        assert list(rows(panel.model)) == ["a", "b", "mix+z", "mix", "z", "result"]


def test_groups_are_sorted_by_the_memory_of_all_of_their_layers(qtbot: QtBot) -> None:
    model = OverviewModel()
    sizes = {"one": 700, "a": 500, "b": 400, "c": 600, "d": 10}
    infos = {name: LayerInfo("relu", "ReLU", "N", None, size) for name, size in sizes.items()}
    steps = tuple(RunStep(names, "numpy", 1.0) for names in (("one",), ("a", "b"), ("c", "d")))
    model.show(steps, infos)
    for order, names in (
        (Qt.SortOrder.DescendingOrder, ["b", "one", "d"]),
        (Qt.SortOrder.AscendingOrder, ["d", "one", "b"]),
    ):
        model.sort(MEMORY, order)
        assert [model.layer_at(model.index(row, 0)) for row in range(3)] == names
    assert [cells(model.index(row, 0))[MEMORY] for row in range(3)] == [binary(610), binary(700), binary(900)]


def test_what_took_or_made_nothing_has_a_dash(qtbot: QtBot) -> None:
    """Bytes and times of layers alone and in groups: unknown, none and some; steps that took no time, and layers that are unknown."""
    model = OverviewModel()
    infos = {f"{where}{n}": LayerInfo("relu", "ReLU", "N", None, n) for where in ("alone", "in") for n in (None, 0, 5)}
    alone, inside = (tuple(name for name in infos if name.startswith(where)) for where in ("alone", "in"))
    steps = (*(RunStep((name,), "numpy", 0.0) for name in alone), RunStep((*inside, "new"), "numpy", 0.0))
    model.show(steps, infos)
    found = {name: (cells(at)[TIME], cells(at)[MEMORY]) for name, at in rows(model).items()}
    assert found == {
        "aloneNone": ("-", "-"),
        "alone0": ("-", "-"),
        "alone5": ("-", binary(5)),
        "inNone+in0+in5+new": ("-", binary(5)),
        "inNone": ("-", "-"),
        "in0": ("-", "-"),
        "in5": ("-", binary(5)),
        "new": ("-", "-"),
    }
    heat = {
        name: at.siblingAtColumn(column).data(HEAT) for name, at in rows(model).items() for column in (TIME, MEMORY)
    }
    assert {name for name, share in heat.items() if share is not None} == {"alone5", "in5"}


@pytest.mark.parametrize("where", ["picture", "tensor"])
def test_the_menu_of_an_output_is_there_where_something_is_shown(qtbot: QtBot, where: str) -> None:
    view = OutputView("y", lambda: None)  # type: ignore[arg-type,return-value]
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show()
    menu = view.export.menu()
    for values in (None, np.zeros((1, 3, 8, 8), np.float32)):
        view.show_array(values)
        view.view.customContextMenuRequested.emit(QPoint(5, 6))
        assert menu.isVisible() == (values is not None)
        if where == "picture" and values is not None:
            assert menu.pos() == view.view.mapToGlobal(QPoint(5, 6))
        menu.close()
        assert view.export.isEnabled() == (values is not None)


# --- the report and the image of a selected input ---------------------------------------------------------------------


def test_the_report_has_what_is_seen(
    panel: AnalysisPanel, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, document = analysis.context, analysis.context.document
    document.do(lambda g: add_layer(g, Layer("noise", "noise", inputs=(Source("a"),), params={"scale": "0.25"})))
    analysis.inputs.set_file("b", Path("pattern:edges"))
    files = {"a": str(analysis.inputs.path("a")), "b": "pattern:edges"}

    def titled(name: str) -> tuple[str, str, str]:
        operator = document.inference.read(name).operator
        text = operator.summary() or ", ".join(f"{k} {v}" for k, v in document.graph[name].params.items())
        return name, operator.title, text

    before = seen_in(context)
    assert dict(before.inputs) == files
    assert list(before.options) == [titled("mix"), titled("noise")]
    assert (before.outputs, before.inspected, before.overview, before.milliseconds) == ({}, None, (), 0.0)
    assert (before.note, before.window) == ("", b"")
    image = QImage.fromData(seen_in(context, panel).window)
    assert image.size() == panel.size() * panel.devicePixelRatio(), "also of a network that was not run"
    params = {"width": "4", "height": "3", "offset": "2x1x0", "analysis_view": "tensor"}
    document.do(lambda g: set_params(g, {"z": params}))
    y, z, hidden = (np.random.default_rng(n).random((1, 3, 8, 16), np.float32) for n in range(3))
    steps = (
        RunStep(("inside", "mix"), "numpy", 1234.5),
        RunStep(("y",), "onnxruntime", 3.0, cached=True),
        RunStep(("gone",), "numpy", 0.5),
    )
    analysis.result = AnalysisResult({"y": y, "z": z, "gone": y}, {"mix": hidden}, steps, 1238.0, note="random weights")
    analysis.capture = "mix"
    analysis.inputs.shapes.update({"a": (1, 3, 8, 16), "b": (1, 3, 8, 16)})
    seen = seen_in(context, panel)
    assert list(seen.outputs) == ["y", "z", "gone"]
    assert {name: kind for name, (_, kind) in seen.outputs.items()} == {"y": "image", "z": "tensor", "gone": "image"}
    np.testing.assert_array_equal(seen.outputs["y"][0], y)
    np.testing.assert_array_equal(seen.outputs["z"][0], z[:, :, 1:4, 2:6])
    assert seen.inspected is not None
    assert seen.inspected[0] == "mix"
    assert seen.inspected[1] is hidden
    shape = str(document.inference.states["mix"].outputs[0])
    assert list(seen.overview) == [
        ("inside, mix", "numpy", ms_text(1234.5), shape),
        ("y", "onnxruntime", "kept", str(document.inference.states["y"].outputs[0])),
        ("gone", "numpy", ms_text(0.5), ""),
    ]
    assert (seen.milliseconds, seen.note) == (1238.0, "random weights")
    image = QImage.fromData(seen.window)
    assert image.size() == panel.size() * panel.devicePixelRatio()
    assert seen.origin.document == provenance_of(context, analysis).document
    analysis.capture = "y"
    assert seen_in(context).inspected is None
    asked: list[object] = []
    monkeypatch.setattr(report, "ask_path", lambda *args: asked.append(args))
    monkeypatch.setattr(report, "save_report", lambda *args: asked.append(args))
    report.ask_report(panel, context)
    title = DOCUMENTS.stem(context.root.title)
    assert asked == [(panel, "Report", f"{title}_report.html", PAGES)]  # nothing is written without a place
    monkeypatch.setattr(report, "ask_path", lambda *args: Path("place.html"))
    report.ask_report(panel, context)
    assert asked[1:] == [(panel, context, Path("place.html"))]


def test_the_image_of_the_one_selected_input_is_opened(
    panel: AnalysisPanel, analysis: AnalysisController, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, inputs = analysis.context, analysis.inputs
    opener = ImageInput(context, panel)
    asked: list[object] = []
    answers = [Path("pattern:edges"), None]
    monkeypatch.setattr(image_input, "ask_input", lambda *args: asked.append(args) or answers[len(asked) - 1])
    before = inputs.path("b")
    for selection in ((), ("mix",), ("a", "b"), ("y",)):
        context.select(selection)
        assert opener.layer() == ""
        opener.open()
    assert asked == []
    context.select(("b",))
    assert opener.layer() == "b"
    opener.open()
    assert asked == [(panel, "b", before)]
    assert inputs.path("b") == Path("pattern:edges")
    opener.open()
    assert asked[1:] == [(panel, "b", Path("pattern:edges"))]
    assert inputs.path("b") == Path("pattern:edges")
