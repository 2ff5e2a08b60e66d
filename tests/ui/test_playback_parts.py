"""Inputs that have frames, with an engine that answers when the test says so, and a clock that the test sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
from engine_kit import ScriptedEngine
from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot

from app.engine.protocol import (
    DescribeInputReply,
    DescribeInputRequest,
    ReleaseInputRequest,
    SetInputReply,
    SetInputRequest,
)
from app.ui.document.document import Document
from app.ui.engine import playback as module
from app.ui.engine.network_inputs import NetworkInputs
from app.ui.engine.playback import Playback, Track
from app.ui.engine.result import AnalysisResult, Phase
from designer.graph.commands import add_layer, remove_layers
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.runtime.sources import SourceInfo

pytestmark = pytest.mark.gui
NAMES = ("a", "b", "c")


def network() -> Graph:
    """Three inputs straight to three outputs."""
    inputs = [Layer(name, "input", params={"dims": "8x8x3"}) for name in NAMES]
    outputs = [Layer(f"out_{name}", "output", inputs=(Source(name),)) for name in NAMES]
    return Graph([*inputs, *outputs])


class Stage(QObject):
    """A playback whose clock is `now`; `tick` is what its timer does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.now = 1000.0
        monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        self.engine = ScriptedEngine()
        self.inputs = NetworkInputs(self)
        self.playback = Playback(self.inputs, lambda: self.engine, self)  # type: ignore[arg-type,return-value]
        registry = default_registry()
        self.document = Document(network(), registry, parent=self)
        self.inputs.set_document(self.document)
        self.document.settings_changed.connect(self.inputs.changed)
        self.document.changed.connect(self.inputs.follow)
        self.runs = 0
        self.inputs.run_wanted.connect(self._count)
        self.told: list[str] = []
        self.playback.changed.connect(self.told.append)

    def _count(self) -> None:
        self.runs += 1

    @property
    def timer(self) -> QTimer:
        (timer,) = self.playback.findChildren(QTimer)
        return timer

    def choose(self, **files: Path | str) -> None:
        """Files for inputs; the other ones keep theirs."""
        chosen = self.document.settings.input_files
        self.document.change_settings(input_files={**chosen, **{name: str(path) for name, path in files.items()}})

    def track(self, name: str = "a") -> Track:
        return self.playback.tracks[name]

    def video(self, name: str = "a", frames: int = 10, fps: float = 10.0, times: tuple[float, ...] = ()) -> Track:
        """A video that the engine has described."""
        self.choose(**{name: f"/clips/{name}.mp4"})
        info = SourceInfo("video", frames, fps, 64, 48, frames / fps, "h264", bool(times), times)
        self.engine.next(DescribeInputRequest).finish(DescribeInputReply(info))
        return self.track(name)

    def fed(self) -> list[str]:
        """The inputs that are to be fed since the last time."""
        return [layer for layer, _ in self.inputs.take()]

    def feed(self, name: str, frame: int, **values: object) -> None:
        """The engine has taken a frame."""
        self.playback.fed(name, SetInputReply((1, 3, 8, 8), frame, **values))  # type: ignore[arg-type]

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.timer.stop()
        self.timer.timeout.emit()

    def follow(self, phase: Phase) -> None:
        self.playback.follow_phase(phase)


@pytest.fixture
def stage(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def images(folder: Path, count: int) -> Path:
    folder.mkdir()
    for index in range(count):
        (folder / f"image{index}.png").touch()
    return folder


# --- what a user does -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("playing", [(), ("a",), ("b",), ("a", "b")])
def test_play_all_pauses_all_where_any_plays(stage: Stage, playing: tuple[str, ...]) -> None:
    tracks = [stage.video("a"), stage.video("b")]
    for name in playing:
        stage.playback.play(name)
    assert stage.playback.playing == bool(playing)
    stage.playback.play_all()
    assert [track.playing for track in tracks] == [not playing] * 2
    stage.playback.play_all()
    assert [track.playing for track in tracks] == [bool(playing)] * 2
    stage.playback.pause()
    assert [track.playing for track in tracks] == [False] * 2


@pytest.mark.parametrize(
    ("phase", "launches"),
    [(phase, phase not in (Phase.RUNNING, Phase.READY)) for phase in Phase],
)
def test_playing_launches_the_analysis_where_it_does_not_run(stage: Stage, phase: Phase, launches: bool) -> None:
    stage.video()
    stage.follow(phase)
    launched: list[None] = []
    stage.playback.launch_wanted.connect(lambda: launched.append(None))
    stage.told.clear()
    stage.playback.play("a")
    stage.playback.play("a")  # it plays already
    assert len(launched) == launches
    assert stage.told == ["a"]
    assert (stage.timer.isActive(), stage.timer.interval()) == (True, 0)
    stage.playback.pause()
    assert stage.told == ["a", "a"]


@pytest.mark.parametrize("phase", Phase)
def test_a_halted_analysis_pauses_what_plays(stage: Stage, phase: Phase) -> None:
    stage.follow(Phase.READY)
    stage.video()
    stage.playback.play("a")
    stage.timer.stop()
    stage.follow(phase)
    assert stage.track().playing == (phase in (Phase.RUNNING, Phase.READY))
    assert stage.timer.isActive() == (phase is Phase.READY)  # while it runs the result brings the next frame


def test_a_video_of_unknown_length_does_not_play(stage: Stage) -> None:
    stage.choose(a="/clips/a.mp4")
    stage.playback.play("a")
    stage.playback.step("a", 1)
    stage.playback.seek("a", 1)
    assert not stage.track().playing
    assert stage.track().position == 0
    stage.playback.play("nothing")
    stage.playback.step("nothing", 1)
    stage.playback.seek("nothing", 1)
    stage.playback.set_way("nothing", loop=False)
    assert stage.fed() == []


@pytest.mark.parametrize("loop", [True, False])
def test_playing_at_the_end_begins_anew_without_a_loop(stage: Stage, loop: bool) -> None:
    track = stage.video(frames=5)
    stage.playback.set_way("a", loop=loop)
    stage.playback.seek("a", 4)
    stage.playback.play("a")
    assert track.position == (4 if loop else 0)
    assert track.origin == (stage.now, track.position)
    stage.playback.pause()
    stage.playback.seek("a", 3)
    stage.playback.play("a")
    assert track.position == 3


@pytest.mark.parametrize(("start", "by", "end"), [(0, 1, 1), (4, 1, 0), (0, -1, 4), (3, -1, 2), (1, 7, 3)])
def test_a_step_goes_around_both_ends_and_pauses(stage: Stage, start: int, by: int, end: int) -> None:
    track = stage.video(frames=5)
    stage.playback.seek("a", start)
    stage.playback.play("a")
    stage.fed()
    stage.playback.step("a", by)
    assert (track.position, track.playing) == (end, False)
    assert stage.fed() == ["a"]


def test_all_step_together(stage: Stage, tmp_path: Path) -> None:
    stage.video("a", frames=5)
    stage.choose(b=images(tmp_path / "shots", 3))
    stage.choose(c="camera:0")
    stage.fed()
    stage.playback.step_all(-1)
    assert (stage.track("a").position, stage.track("b").position) == (4, 2)
    assert stage.fed() == ["a", "b", "c"]


@pytest.mark.parametrize(("frame", "position"), [(3, 3), (-4, 0), (4, 4), (5, 4), (99, 4)])
def test_seeking_stays_within_the_frames_and_playing_goes_on_from_there(
    stage: Stage, frame: int, position: int
) -> None:
    track = stage.video(frames=5)
    stage.playback.seek("a", 2)
    stage.playback.play("a")
    stage.fed()
    runs, stage.now = stage.runs, stage.now + 5
    stage.told.clear()
    stage.playback.seek("a", frame)
    assert stage.told == ["a"]
    assert (track.position, track.playing, track.origin) == (position, True, (stage.now, position))
    assert stage.fed() == ["a"]
    assert stage.runs == runs + 1
    stage.playback.seek("a", frame)
    assert stage.fed() == []  # it is there
    assert stage.runs == runs + 1


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({"loop": False}, (False, True, 2.0)),
        ({"every": False}, (True, False, 2.0)),
        ({"speed": 0.5}, (True, True, 0.5)),
        ({}, (True, True, 2.0)),
    ],
)
def test_one_way_of_playing_changes_and_the_others_stay(
    stage: Stage, change: dict[str, bool | float], after: tuple[bool, bool, float]
) -> None:
    track = stage.video(frames=50)
    stage.playback.set_way("a", loop=True, every=True, speed=2.0)
    stage.playback.seek("a", 3)
    track.dropped = 7
    track.arrivals.extend((1.0, 2.0))
    stage.now += 9
    stage.told.clear()
    stage.playback.set_way("a", **change)  # type: ignore[arg-type]
    assert (track.loop, track.every, track.speed) == after
    assert (track.dropped, list(track.arrivals), track.origin) == (0, [], (stage.now, 3))
    assert stage.told == ["a"]


def test_a_camera_is_switched_off_when_it_is_paused_or_replaced(stage: Stage) -> None:
    stage.choose(a="camera:0", b="camera:1", c="camera:2")

    def released() -> list[str]:
        return [request.layer for request in stage.engine.requests(ReleaseInputRequest)]

    stage.playback.play("a")
    assert stage.track().playing
    stage.feed("a", 5)
    assert stage.track().sent == 5
    assert released() == []
    stage.playback.play("a", False)
    assert released() == ["a"]
    assert stage.track().sent == 0
    stage.choose(b="/photos/one.png")
    assert released() == ["a", "b"]
    stage.document.do(lambda g: remove_layers(g, ["c", "out_c"]))
    assert released() == ["a", "b", "c"]
    stage.engine.running = False
    stage.choose(a="/photos/one.png")
    assert len(released()) == 3  # the process that held it is gone


# --- what the engine is given and says --------------------------------------------------------------------------------


def test_an_input_is_fed_with_its_file_or_the_frame_that_is_wanted(stage: Stage, tmp_path: Path) -> None:
    stage.video("a", frames=9)
    stage.playback.seek("a", 4)
    stage.choose(b="camera:1")
    still, clip, camera = Path("/photos/one.png"), Path("/clips/a.mp4"), Path("camera:1")
    stage.playback.fed("c", SetInputReply((1, 3, 8, 8)))
    assert stage.playback.request("c", still) == SetInputRequest("c", str(still))
    assert stage.playback.request("a", clip) == SetInputRequest("a", str(clip), 4, True)
    assert stage.playback.request("b", camera) == SetInputRequest("b", str(camera), None, True)
    stage.playback.play_all()
    assert stage.playback.request("a", clip) == SetInputRequest("a", str(clip), 4, False)
    assert stage.playback.request("b", camera) == SetInputRequest("b", str(camera), None, False)


def test_the_range_of_a_file_is_that_of_the_latest_one(stage: Stage) -> None:
    def fed(found: tuple[float, float] | None) -> None:
        stage.playback.fed("a", SetInputReply((1, 3, 8, 8), range=found))

    fed(None)
    fed((0.0, 1.0))
    assert stage.playback.ranges == {}
    assert stage.told == []
    fed((-2.0, 3.0))
    fed((-2.0, 3.0))
    assert stage.playback.ranges == {"a": (-2.0, 3.0)}
    fed(None)
    assert stage.playback.ranges == {"a": (0.0, 1.0)}
    assert stage.told == ["a"] * 3


def test_a_preview_stays_until_another_one_comes(stage: Stage) -> None:
    track = stage.video()
    assert track.preview is None
    first = np.zeros((4, 6, 3), np.uint8)
    stage.feed("a", 2, preview=stage.engine.give("first", first))
    assert track.preview is first
    assert track.fed == 2
    stage.feed("a", 3)
    assert track.preview is first
    assert track.fed == 3


def test_images_of_a_camera_are_counted_and_those_between_are_dropped(stage: Stage) -> None:
    stage.choose(a="camera:0")
    track = stage.track()
    stage.feed("a", 40, fps=30.0)  # one image while nothing plays: the camera is switched off again
    assert (track.position, track.fed, track.fps, track.dropped, track.sent) == (1, 1, 30.0, 0, 0)
    assert [request.layer for request in stage.engine.requests(ReleaseInputRequest)] == ["a"]
    stage.playback.play("a")
    for number, dropped in ((90, 0), (91, 0), (95, 3), (96, 3), (99, 5), (99, 5), (2, 5), (4, 6)):  # it may begin anew
        stage.feed("a", number, fps=15.0)
        assert (track.dropped, track.sent) == (dropped, number)
    assert (track.position, track.fed, track.fps) == (9, 9, 15.0)
    assert len(stage.engine.requests(ReleaseInputRequest)) == 1


def test_frames_that_a_result_shows_are_counted_while_they_play(stage: Stage) -> None:
    track = stage.video(fps=25.0)
    stage.playback.show(AnalysisResult(milliseconds=12.0))
    assert stage.playback.milliseconds == 12.0
    stage.told.clear()
    stage.feed("a", 0)
    stage.playback.show(AnalysisResult())
    assert (track.shown, list(track.arrivals), stage.told) == (0, [], ["a"])
    stage.playback.play("a")
    stage.timer.stop()
    for frame in range(1, 9):
        stage.now += 0.5
        stage.feed("a", frame)
        stage.playback.show(AnalysisResult())
        assert track.achieved == (2.0 if frame > 1 else 0.0)
        assert track.shown == frame
        assert stage.timer.isActive()
        stage.timer.stop()
    assert track.achieved == 2.0  # of the latest two seconds
    stage.playback.show(AnalysisResult())  # of something else than a frame
    assert track.achieved == 2.0
    stage.now += 60
    stage.feed("a", 9)
    stage.playback.show(AnalysisResult())
    assert track.achieved == 0.0  # a rate needs two frames
    stage.playback.show(None)
    assert stage.playback.milliseconds == 0.0
    stage.playback.pause()
    track.dropped = 4
    track.arrivals.extend((stage.now, stage.now + 1))
    assert track.achieved > 0
    for times, achieved in (
        ([5.0, 5.0], 0.0),
        ([5.0, 5.0, 5.5], 4.0),
        ([1.0, 4.0, 4.5], 2.0),
        ([3.0, 5.0], 0.5),
        ([], 0.0),
    ):
        track.arrivals.clear()
        track.arrivals.extend(times)
        assert track.achieved == achieved
    stage.playback.play("a")
    assert (track.achieved, track.dropped) == (0.0, 0)


def test_a_still_image_is_looked_at_by_the_engine(stage: Stage) -> None:
    found: list[tuple[object, ...]] = []
    stage.playback.looked.connect(lambda *args: found.append(args))
    path = Path("/photos/one.png")
    for answer in range(3):
        stage.playback.look("c", path)
        call = stage.engine.next(DescribeInputRequest)
        assert call.request == DescribeInputRequest(str(path))
        pixels = np.zeros((4, 6, 3), np.uint8)
        info = SourceInfo("image", 1, 0.0, 60, 40, opacity=True)
        if answer == 0:
            call.finish(DescribeInputReply(info, stage.engine.give("preview", pixels)))
            assert found.pop() == ("c", path, (pixels, "60 x 40", True))
        elif answer == 1:
            call.finish(DescribeInputReply(info))
            assert found.pop() == ("c", path, (None, "no preview", False))
        else:
            call.fail((Diagnostic("cannot-read", "it is not there"),))
            assert found.pop() == ("c", path, (None, "no preview", False))


# --- the sources ------------------------------------------------------------------------------------------------------


def test_inputs_whose_source_has_frames_have_a_track(stage: Stage, tmp_path: Path) -> None:
    others: list[tuple[str, ...]] = []
    stage.playback.sources_changed.connect(lambda: others.append(tuple(stage.playback.tracks)))
    shots = images(tmp_path / "shots", 12)
    stage.choose(a=shots, b="camera:2", c="/clips/c.mp4")
    assert others == [("a", "b", "c")]
    assert sorted(stage.told) == ["a", "b", "c"]
    assert [(t.kind, t.path, t.loop) for t in map(stage.track, NAMES)] == [
        ("folder", shots, True),
        ("camera", Path("camera:2"), False),
        ("video", Path("/clips/c.mp4"), True),
    ]
    assert stage.track("a").frames == 12
    assert stage.track("a").names[1:3] == ("image1.png", "image2.png")
    assert stage.playback.ends
    before = dict(stage.playback.tracks)
    stage.told.clear()
    stage.inputs.changed.emit()
    assert stage.playback.tracks == before  # the same objects, and nothing is said
    assert (stage.told, len(others)) == ([], 1)
    stage.choose(a="/photos/one.png", c="pattern:checkerboard")
    assert others[1:] == [("b",)]
    assert not stage.playback.ends, "a camera has no end"
    assert sorted(stage.told) == ["a", "c"]
    assert stage.track("b") is before["b"]
    assert not stage.playback.ends
    stage.document.do(lambda g: add_layer(g, Layer("d", "input", params={"dims": "8x8x3"})))
    assert stage.track("b") is before["b"]


def test_a_video_that_was_replaced_is_not_described_any_more(stage: Stage) -> None:
    stage.choose(a="/clips/old.mp4")
    call = stage.engine.next(DescribeInputRequest)
    assert not call.cancelled
    stage.choose(a="/clips/new.mp4")
    assert call.cancelled
    assert stage.engine.requests(DescribeInputRequest) == [DescribeInputRequest("/clips/new.mp4")]


def test_what_the_engine_knows_of_a_video_is_in_its_track(stage: Stage) -> None:
    stage.choose(a="/clips/a.mp4")
    track = stage.track()
    stage.told.clear()
    pixels, times = np.zeros((4, 6, 3), np.uint8), (0.0, 0.5, 2.0)
    info = SourceInfo("video", 3, 24.0, 64, 48, 2.1, "vp9", True, times)
    stage.engine.next(DescribeInputRequest).finish(DescribeInputReply(info, stage.engine.give("preview", pixels)))
    assert (track.frames, track.fps, track.width, track.height) == (3, 24.0, 64, 48)
    assert (track.codec, track.times) == ("vp9", times)
    assert track.preview is pixels
    assert stage.told == ["a"]


def test_a_video_that_cannot_be_read_says_why_and_is_read_again_when_it_is_chosen_again(stage: Stage) -> None:
    stage.choose(a="/clips/a.mp4")
    stage.told.clear()
    stage.engine.next(DescribeInputRequest).fail((Diagnostic("cannot-read", "it is broken", remedy="repair it"),))
    assert stage.track().error == "It is broken. Repair it."
    assert stage.told == ["a"]
    stage.inputs.feed({"a"})
    assert stage.track().error == ""
    assert len(stage.engine.requests(DescribeInputRequest)) == 1


def test_a_folder_without_images_says_so(stage: Stage, tmp_path: Path) -> None:
    stage.choose(a=images(tmp_path / "empty", 0))
    assert "no images" in stage.track().error
    assert stage.track().frames == 0


# --- the clock --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "moments"),
    [
        # seconds after the last tick: position, dropped so far
        ({}, [(0.05, 0, 0), (0.06, 1, 0), (0.3, 4, 2), (0.0, 4, 2)]),
        ({"speed": 2.0}, [(0.06, 1, 0), (0.3, 7, 5)]),
        ({"speed": 0.5}, [(0.11, 0, 0), (0.1, 1, 0), (0.2, 2, 0)]),
        ({"every": True}, [(0.5, 1, 0), (0.09, 1, 0), (0.02, 2, 0), (5.0, 3, 0)]),
        ({}, [(0.95, 9, 8), (0.1, 0, 8), (0.15, 1, 8)]),
        ({"loop": False}, [(0.95, 9, 8), (0.1, 9, 8)]),
        ({"loop": False}, [(7.0, 9, 8), (7.0, 9, 8)]),
        ({"loop": True}, [(1.25, 2, 11)]),
    ],
)
def test_the_frame_of_a_moment_is_asked_for(
    stage: Stage, way: dict[str, float], moments: list[tuple[float, int, int]]
) -> None:
    track = stage.video(frames=10, fps=10.0)
    stage.follow(Phase.READY)
    stage.playback.set_way("a", **way)  # type: ignore[arg-type]
    stage.playback.play("a")
    stage.fed()
    for seconds, position, dropped in moments:
        before = track.position
        stage.tick(seconds)
        assert (track.position, track.dropped) == (position, dropped)
        assert stage.fed() == (["a"] if position != before else [])
        assert stage.timer.isActive() == track.playing
    assert track.playing or not way["loop"]


def test_it_stops_at_the_end_without_a_loop(stage: Stage) -> None:
    track = stage.video(frames=3, fps=10.0)
    stage.follow(Phase.READY)
    stage.playback.set_way("a", loop=False)
    stage.playback.play("a")
    stage.tick(0.25)
    assert (track.position, track.playing) == (2, True)
    stage.tick(0.04)  # the last frame is seen as long as every other one
    assert track.playing
    stage.tick(0.02)
    assert (track.position, track.playing) == (2, False)
    assert not stage.timer.isActive()


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_the_timer_waits_for_the_next_frame_of_any_track(stage: Stage, speed: float) -> None:
    stage.video("a", frames=100, fps=10.0)
    stage.video("b", frames=100, fps=4.0)
    stage.follow(Phase.READY)
    stage.playback.set_way("a", speed=speed)
    stage.playback.play_all()
    stage.tick(0.01)
    assert stage.timer.interval() == round(1000 * min(0.1 / speed - 0.01, 0.24))
    stage.playback.play("a", False)
    stage.tick(0.04)
    assert stage.timer.interval() == 200
    stage.playback.seek("b", 40)
    stage.tick(0.05)
    assert stage.timer.interval() == 200
    stage.tick(0.45)
    assert stage.timer.interval() == 250


def test_frames_that_last_differently_long_are_shown_as_long(stage: Stage) -> None:
    track = stage.video(frames=4, fps=10.0, times=(0.0, 0.1, 1.1, 1.2))
    stage.follow(Phase.READY)
    stage.playback.play("a")
    seen = []
    for _ in range(14):
        stage.tick(0.1001)
        seen.append(track.position)
    assert seen == [1] * 10 + [2, 3, 0, 1]
    assert [track.time(frame) for frame in range(4)] == [0.0, 0.1, 1.1, 1.2]


def test_nothing_is_asked_for_while_the_network_runs(stage: Stage) -> None:
    track = stage.video(frames=10, fps=10.0)
    stage.follow(Phase.READY)
    stage.playback.play("a")
    stage.follow(Phase.RUNNING)
    stage.fed()
    stage.tick(0.25)
    assert (track.position, stage.fed()) == (0, [])
    assert not stage.timer.isActive()
    stage.follow(Phase.READY)
    stage.tick()
    assert (track.position, track.dropped, stage.fed()) == (2, 1, ["a"])


def test_a_camera_is_asked_for_its_next_image_at_once(stage: Stage) -> None:
    stage.choose(a="camera:0")
    stage.follow(Phase.READY)
    stage.playback.play("a")
    stage.fed()
    stage.tick()
    assert stage.fed() == ["a"]
    assert stage.timer.interval() == 5


def test_a_folder_is_played_with_two_images_a_second(stage: Stage, tmp_path: Path) -> None:
    stage.choose(a=images(tmp_path / "shots", 5))
    stage.follow(Phase.READY)
    track = stage.track()
    stage.playback.play("a")
    stage.tick(0.4)
    assert track.position == 0
    stage.tick(0.2)
    assert track.position == 1
    assert (track.rate, track.time(3)) == (2.0, 1.5)
    stage.playback.set_way("a", speed=4.0)
    assert (track.rate, track.time(3)) == (8.0, 1.5)
