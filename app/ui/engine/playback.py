"""Inputs that have frames: folders, videos and cameras. The clock is here; images are decoded in the engine's process."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.engine.protocol import (
    DescribeInputReply,
    DescribeInputRequest,
    ReleaseInputRequest,
    SetInputReply,
    SetInputRequest,
)
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.network_inputs import NetworkInputs
from app.ui.engine.result import AnalysisResult, Phase
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.sources import kind_of, playlist
from designer.texts import tr

MOVING = ("folder", "video", "camera")
FOLDER_FPS = 2.0  # images a second of a folder that is played
MEASURED = 2.0  # seconds over which the frames that arrive are counted
HALTED = (Phase.FAILED, Phase.WEIGHTS, Phase.BLOCKED, Phase.STOPPED)


@dataclass(slots=True, eq=False)
class Track:
    """One input layer whose source has frames. `position` is the frame that is wanted, `shown` the one in the result."""

    path: Path
    kind: str
    frames: int = 0  # 0: not known yet, or without an end
    fps: float = 0.0
    width: int = 0
    height: int = 0
    codec: str = ""
    names: tuple[str, ...] = ()
    times: tuple[float, ...] = ()  # seconds from the first frame, where frames last differently long
    preview: Any = None  # H x W x 3 bytes
    error: str = ""
    position: int = 0
    shown: int = -1
    fed: int = -1
    sent: int = 0  # the camera's own number of the image that was taken last; 0: it was switched off since
    playing: bool = False
    loop: bool = True
    every: bool = False  # every frame, however long the network takes
    speed: float = 1.0
    dropped: int = 0
    origin: tuple[float, int] = (0.0, 0)  # when playing began, and with which frame
    describing: EngineCall[DescribeInputReply] | None = None
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=120))

    @property
    def rate(self) -> float:
        """Frames a second that are wanted."""
        return (self.fps or FOLDER_FPS) * self.speed

    @property
    def achieved(self) -> float:
        """Recently measured frames per second; 0 if there are too few frames."""
        times = [t for t in self.arrivals if t >= self.arrivals[-1] - MEASURED] if self.arrivals else []
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0.0

    def time(self, frame: int) -> float:
        """When a frame is shown, in seconds from the first, at normal speed."""
        return self.times[frame] if frame < len(self.times) else frame / (self.fps or FOLDER_FPS)

    def due(self, now: float) -> int:
        """The frame for this moment, counted on past the end."""
        began, first = self.origin
        at = (now - began) * self.speed + self.time(first)
        if self.times:
            return bisect.bisect_right(self.times, at) - 1 if at < self.times[-1] + 1 / self.fps else self.frames
        return int(at * (self.fps or FOLDER_FPS) + 1e-6)


class Playback(QObject):
    """The tracks of a document's inputs. It asks for a frame only when the engine is free, so frames never queue up:

    what comes too late is dropped and counted, or, with `every`, the video plays slower.
    """

    changed = Signal(str)  # layer: its source, its frame, or how it plays
    sources_changed = Signal()  # other inputs have frames
    looked = Signal(str, Path, object)  # layer, file, (H x W x 3 bytes, size as text, whether it has an opacity)
    launch_wanted = Signal()

    def __init__(self, inputs: NetworkInputs, engine: Callable[[], EngineClient], parent: QObject) -> None:
        super().__init__(parent)
        self._inputs = inputs
        self._engine = engine
        self._phase = Phase.IDLE
        self.milliseconds = 0.0  # what the network took for the frames that are shown
        self.tracks: dict[str, Track] = {}
        self.ranges: dict[str, tuple[float, float]] = {}  # values of still inputs that may lie outside of 0..1
        self._timer = QTimer(self, singleShot=True, timeout=self._tick)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        inputs.changed.connect(self._follow)

    @property
    def playing(self) -> bool:
        """Whether any input plays."""
        return any(track.playing for track in self.tracks.values())

    @property
    def ends(self) -> bool:
        """Whether there is an input whose frames come to an end: a folder or a video."""
        return any(track.kind != "camera" for track in self.tracks.values())

    @property
    def _busy(self) -> bool:
        return self._phase is Phase.RUNNING

    # --- what a user does ------------------------------------------------------------------------------------------

    def play_all(self) -> None:
        """Play all that is paused; pause all where something plays."""
        on = not self.playing
        for layer in list(self.tracks):
            self.play(layer, on)

    def pause(self) -> None:
        """Nothing plays any more."""
        for layer in list(self.tracks):
            self.play(layer, False)

    def step_all(self, by: int) -> None:
        """Step all inputs that have frames: pairs of folders stay together."""
        for layer in list(self.tracks):
            self.step(layer, by)

    def look(self, layer: str, path: Path) -> None:
        """Ask for the thumbnail of a still file, which the window never decodes itself; `looked` brings it."""
        self._engine().ask(
            DescribeInputRequest(str(path)),
            self,
            lambda reply: self._looked(layer, path, reply),
            lambda _: self.looked.emit(layer, path, (None, tr("no preview"), False)),
        )

    def _looked(self, layer: str, path: Path, reply: DescribeInputReply) -> None:
        if reply.preview is None:
            self.looked.emit(layer, path, (None, tr("no preview"), False))
            return
        preview = self._engine().take(reply.preview)
        self.looked.emit(layer, path, (preview, f"{reply.info.width} x {reply.info.height}", reply.info.opacity))

    def play(self, layer: str, on: bool = True) -> None:
        """Play or pause; playing launches the analysis where it is not."""
        track = self.tracks.get(layer)
        if track is None or track.playing == on or (on and not track.frames and track.kind != "camera"):
            return
        track.playing = on
        if on:
            if track.frames and track.position >= track.frames - 1 and not track.loop:
                track.position = 0
            track.dropped = 0
            track.arrivals.clear()
            track.origin = (perf_counter(), track.position)
            if self._phase not in (Phase.RUNNING, Phase.READY):
                self.launch_wanted.emit()
            self._timer.start(0)
        elif track.kind == "camera":
            self._release(layer)
        self.changed.emit(layer)

    def step(self, layer: str, by: int) -> None:
        """Another frame or file: the next or the one before, around the ends; a camera takes one image."""
        track = self.tracks.get(layer)
        if track is None:
            return
        if track.kind == "camera":
            self._inputs.feed_frames([layer])
        elif track.frames:
            self.play(layer, False)
            self.seek(layer, (track.position + by) % track.frames)

    def seek(self, layer: str, frame: int) -> None:
        """Go to a frame; playing goes on from there."""
        track = self.tracks.get(layer)
        if track is None or not track.frames:
            return
        frame = min(max(frame, 0), track.frames - 1)
        track.origin = (perf_counter(), frame)
        if frame != track.position:
            track.position = frame
            self.changed.emit(layer)
            self._inputs.feed_frames([layer])

    def set_way(self, layer: str, *, loop: bool | None = None, every: bool | None = None, speed: float = 0) -> None:
        """Change how a track plays."""
        track = self.tracks.get(layer)
        if track is None:
            return
        track.loop = track.loop if loop is None else loop
        track.every = track.every if every is None else every
        track.speed = speed or track.speed
        track.dropped = 0
        track.arrivals.clear()
        track.origin = (perf_counter(), track.position)
        self.changed.emit(layer)

    # --- what the engine is given and says ----------------------------------------------------------------------------

    def request(self, layer: str, path: Path) -> SetInputRequest:
        """What feeds an input now: a still file, or the frame that is wanted."""
        track = self.tracks.get(layer)
        if track is None:
            return SetInputRequest(layer, str(path))
        shown = not track.playing  # a thumbnail that changes with every frame would only flicker
        return SetInputRequest(layer, str(path), None if track.kind == "camera" else track.position, shown)

    def fed(self, layer: str, reply: SetInputReply) -> None:
        """The engine has taken a frame, or a still image."""
        preview = self._engine().take(reply.preview) if reply.preview is not None else None
        values = reply.range or (0.0, 1.0)
        if values != (0.0, 1.0) or layer in self.ranges:  # also of another file with the same range
            self.ranges[layer] = values
            self.changed.emit(layer)
        track, frame = self.tracks.get(layer), reply.frame
        if track is None or frame is None:
            return
        track.preview = track.preview if preview is None else preview
        if track.kind == "camera":
            if track.playing and track.sent:
                track.dropped += max(0, frame - track.sent - 1)
            track.sent = frame if track.playing else 0
            track.fps = reply.fps
            frame = track.position = track.position + 1
            if not track.playing:
                self._release(layer)
        track.fed = frame

    # --- the sources --------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Have a track for each input whose source has frames."""
        before, self.tracks = self.tracks, {}
        for layer in self._inputs.layers():
            path = self._inputs.path(layer)
            known = before.get(layer)
            if path is None:
                continue
            if known is not None and known.path == path and not known.error:
                self.tracks[layer] = known
                continue
            kind = kind_of(path) if not str(path).startswith("pattern:") else "pattern"
            if kind in MOVING:
                self.tracks[layer] = self._made(layer, path, kind)
        if before != self.tracks:
            self.sources_changed.emit()
        for layer in before.keys() | self.tracks.keys():
            if before.get(layer) is not self.tracks.get(layer):
                gone = before.get(layer)
                if gone is not None and gone.describing is not None:
                    gone.describing.cancel()
                if gone is not None and gone.kind == "camera":
                    self._release(layer)
                self.changed.emit(layer)

    def _made(self, layer: str, path: Path, kind: str) -> Track:
        track = Track(path, kind, loop=kind != "camera")
        if kind == "folder":
            try:
                track.names = playlist(path)
                track.frames = len(track.names)
            except DiagnosticError as error:
                track.error = placed_text(error.diagnostics[0])
        elif kind == "video":
            track.describing = self._engine().ask(
                DescribeInputRequest(str(path)),
                self,
                lambda reply: self._described(layer, track, reply),
                lambda found: self._refused(layer, track, found),
            )
        return track

    def _described(self, layer: str, track: Track, reply: DescribeInputReply) -> None:
        info = reply.info
        track.preview = self._engine().take(reply.preview) if reply.preview is not None else None
        track.frames, track.fps, track.width, track.height = info.frames, info.fps, info.width, info.height
        track.codec, track.times = info.codec, info.times
        track.position = min(track.position, max(track.frames - 1, 0))
        self.changed.emit(layer)

    def _refused(self, layer: str, track: Track, found: Findings) -> None:
        track.error = placed_text(found[0])
        self.changed.emit(layer)

    def _release(self, layer: str) -> None:
        """Switch the camera off; the image that was taken stays."""
        if layer in self.tracks:
            self.tracks[layer].sent = 0
        engine = self._engine()
        if engine.running:
            engine.ask(ReleaseInputRequest(layer), self)

    # --- the clock ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Ask for the frames that are due, of all tracks in one run; come back when the next one is."""
        if not self.playing or self._busy:
            return  # comes back with the result
        now, wait = perf_counter(), 1.0
        moved: list[str] = []
        for layer, track in list(self.tracks.items()):
            if track.playing:
                wait = min(wait, self._advance(layer, track, now, moved))
        if moved:
            self._inputs.feed_frames(moved)
        if self.playing and not self._busy:
            self._timer.start(max(1, round(wait * 1000)))

    def _advance(self, layer: str, track: Track, now: float, moved: list[str]) -> float:
        """Go to the frame that is due and note it in `moved` if it is another one; returns the seconds until the next."""
        if track.kind == "camera":
            moved.append(layer)
            return 0.005
        due = track.due(now)
        if track.every:  # the clock begins anew with each frame
            due = min(due, track.position + 1)
        if due > track.position:
            if due >= track.frames and not track.loop:
                if track.position >= track.frames - 1:
                    self.play(layer, False)
                    return 1.0
                due = track.frames - 1
            track.dropped += due - track.position - 1
            around = due >= track.frames
            track.position = 0 if around and track.times else due % track.frames
            if track.every or around:
                track.origin = (now, track.position)
            moved.append(layer)
        began, first = track.origin
        following = track.position + 1
        return max(0.0, began + (track.time(following) - track.time(first)) / track.speed - now)

    def show(self, result: AnalysisResult | None) -> None:
        """A result is there: note which frames it shows, and go on."""
        self.milliseconds = result.milliseconds if result is not None else 0.0
        if result is None:
            return
        now = perf_counter()
        for layer, track in self.tracks.items():
            if track.fed != track.shown:
                track.shown = track.fed
                if track.playing:
                    track.arrivals.append(now)
                self.changed.emit(layer)
        if self.playing:
            self._timer.start(0)

    def follow_phase(self, phase: Phase) -> None:
        self._phase = phase
        if phase in (*HALTED, Phase.IDLE):
            self.pause()
        elif self.playing and not self._busy and not self._timer.isActive():
            self._timer.start(0)
