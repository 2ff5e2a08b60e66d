"""Inputs that have frames: folders, videos and cameras. The clock is here; pictures are decoded in the engine's process."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.ui.engine.result import Phase
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.sources import kind_of, playlist

if TYPE_CHECKING:
    from app.ui.engine.analysis import AnalysisController

MOVING = ("folder", "video", "camera")
FOLDER_FPS = 2.0  # pictures a second of a folder that is played
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
    sent: int = 0  # the camera's own number of the picture that was taken last; 0: it was switched off since
    playing: bool = False
    loop: bool = True
    every: bool = False  # every frame, however long the network takes
    speed: float = 1.0
    dropped: int = 0
    origin: tuple[float, int] = (0.0, 0)  # when playing began, and with which frame
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=120))

    @property
    def rate(self) -> float:
        """Frames a second that are wanted."""
        return (self.fps or FOLDER_FPS) * self.speed

    @property
    def achieved(self) -> float:
        """Frames a second that really arrived of late; 0 where there are too few to tell."""
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
    looked = Signal(str, Path, object)  # layer, file, (H x W x 3 bytes, size as text)

    def __init__(self, analysis: AnalysisController) -> None:
        super().__init__(analysis)
        self._analysis = analysis
        self.tracks: dict[str, Track] = {}
        self.ranges: dict[str, tuple[float, float]] = {}  # values of still inputs that may lie outside of 0..1
        self._timer = QTimer(self, singleShot=True, timeout=self._tick)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        analysis.inputs_changed.connect(self._follow)
        analysis.result_changed.connect(self._arrived)
        analysis.phase_changed.connect(self._on_phase)

    @property
    def playing(self) -> bool:
        """Whether any input plays."""
        return any(track.playing for track in self.tracks.values())

    @property
    def ends(self) -> bool:
        """Whether there is an input whose frames come to an end: a folder or a video."""
        return any(track.kind != "camera" for track in self.tracks.values())

    @property
    def milliseconds(self) -> float:
        """What the network took for the frames that are shown."""
        return self._analysis.result.milliseconds if self._analysis.result is not None else 0.0

    @property
    def _busy(self) -> bool:
        return self._analysis.phase is Phase.RUNNING

    # --- what a person does ------------------------------------------------------------------------------------------

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
        """Ask for the thumbnail of a still file that the window cannot draw; `looked` brings it."""
        self._analysis.engine.request(
            "describe_input", {"path": str(path)}, lambda r: self._looked(layer, path, r), lambda _: None
        )

    def _looked(self, layer: str, path: Path, reply: Mapping[str, Any]) -> None:
        preview = self._analysis.engine.take(reply["preview"]) if reply.get("preview") else None
        self.looked.emit(layer, path, (preview, f"{reply.get('width')} x {reply.get('height')}"))

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
            if self._analysis.phase not in (Phase.RUNNING, Phase.READY):
                self._analysis.launch()
            self._timer.start(0)
        elif track.kind == "camera":
            self._release(layer)
        self.changed.emit(layer)

    def step(self, layer: str, by: int) -> None:
        """Another frame or file: the next or the one before, around the ends; a camera takes one picture."""
        track = self.tracks.get(layer)
        if track is None:
            return
        if track.kind == "camera":
            self._analysis.feed_frames([layer])
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
            self._analysis.feed_frames([layer])

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

    # --- what the controller tells ------------------------------------------------------------------------------------

    def wish(self, layer: str) -> dict[str, Any]:
        """What `set_input` is told beside the path."""
        track = self.tracks.get(layer)
        if track is None:
            return {}
        shown = not track.playing  # a thumbnail that changes with every frame would only flicker
        return {"preview": shown} if track.kind == "camera" else {"frame": track.position, "preview": shown}

    def fed(self, layer: str, reply: Mapping[str, Any]) -> None:
        """The engine has taken a frame, or a still picture."""
        handle = reply.get("preview")
        preview = self._analysis.engine.take(handle) if handle else None  # taken in any case: that frees it
        low, high = reply.get("range") or (0.0, 1.0)
        if (low, high) != self.ranges.get(layer, (0.0, 1.0)):
            self.ranges[layer] = (low, high)
            self.changed.emit(layer)
        track = self.tracks.get(layer)
        frame = reply.get("frame")
        if track is None or not isinstance(frame, int):
            return
        track.preview = track.preview if preview is None else preview
        if track.kind == "camera":
            if track.playing and track.sent:
                track.dropped += max(0, frame - track.sent - 1)
            track.sent = frame if track.playing else 0
            track.fps = float(reply.get("fps") or 0.0)
            frame = track.position = track.position + 1
            if not track.playing:
                self._release(layer)
        track.fed = frame

    # --- the sources --------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Have a track for each input whose source has frames."""
        before, self.tracks = self.tracks, {}
        for layer in self._analysis.input_layers():
            path = self._analysis.input_path(layer)
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
                if layer in before and before[layer].kind == "camera":
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
            self._analysis.engine.request(
                "describe_input",
                {"path": str(path)},
                lambda r: self._described(layer, track, r),
                self._refused(layer, track),
            )
        return track

    def _described(self, layer: str, track: Track, reply: Mapping[str, Any]) -> None:
        handle = reply.get("preview")
        preview = self._analysis.engine.take(handle) if handle else None
        if self.tracks.get(layer) is not track:
            return
        track.preview = preview
        track.frames, track.fps = int(reply.get("frames", 0)), float(reply.get("fps", 0.0))
        track.width, track.height = int(reply.get("width", 0)), int(reply.get("height", 0))
        track.codec, track.times = str(reply.get("codec", "")), tuple(reply.get("times") or ())
        track.position = min(track.position, max(track.frames - 1, 0))
        self.changed.emit(layer)

    def _refused(self, layer: str, track: Track) -> Any:
        def told(found: tuple[Diagnostic, ...]) -> None:
            if self.tracks.get(layer) is track:
                track.error = placed_text(found[0])
                self.changed.emit(layer)

        return told

    def _release(self, layer: str) -> None:
        """Switch the camera off; the picture that was taken stays."""
        if layer in self.tracks:
            self.tracks[layer].sent = 0
        if self._analysis.engine.running:
            self._analysis.engine.request("release_input", {"layer": layer})

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
            self._analysis.feed_frames(moved)
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

    def _arrived(self) -> None:
        """A result is there: note which frames it shows, and go on."""
        if self._analysis.result is None:
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

    def _on_phase(self, phase: str) -> None:
        if Phase(phase) in (*HALTED, Phase.IDLE):
            self.pause()
        elif self.playing and not self._busy and not self._timer.isActive():
            self._timer.start(0)
