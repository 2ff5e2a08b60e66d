"""Videos as numbered frames. Frames are H x W x 3 bytes, RGB, turned upright."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from designer.files.regular import check_regular
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.opencv import MAX_PIXELS, opencv
from designer.texts import tr

Frame = NDArray[np.uint8]

KEEP_BYTES = 48 << 20  # decoded frames kept, so that stepping back does not decode from the last key frame each time
KEEP = 48  # ... and their number
BACK = (0, 12, 48, 250)  # frames before the requested one at which to retry a seek that was too late


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """Properties of a video. `variable`: frames have different durations, and `fps` is the mean."""

    frames: int
    fps: float
    width: int
    height: int
    seconds: float
    codec: str
    variable: bool


class _Table(NamedTuple):
    """By frame in display order: the time stamp of the stream, and milliseconds since the first frame."""

    stamps: list[float]
    milliseconds: list[float]


class VideoReader:
    """Exact access to the frames of a file by number, starting at 0, in display order.

    The packets of the stream are listed once, without decoding, so frames are found by their time stamps even if their
    durations differ or the file states a wrong number. Raises DiagnosticError if the file is not a video.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._cv = opencv()
        _check_readable(self.path)
        self._table, self._exact = self._listed()
        self._capture = self._opened()
        self._next = 0  # the frame that is decoded next
        self._last = 0  # the frame that was requested last
        self._kept: OrderedDict[int, Frame] = OrderedDict()
        first = self.read(0)
        fps = float(self._capture.get(self._cv.CAP_PROP_FPS)) or 25.0
        times, count = self._table.milliseconds, len(self._table.stamps)
        gaps = [b - a for a, b in pairwise(times)]
        usual = median(gaps) if gaps else 1000 / fps
        variable = any(abs(gap - usual) > max(2.0, 0.1 * usual) for gap in gaps)
        if count > 1 and times[-1] > 0 and (variable or not 0.01 < fps < 1000):
            fps = (count - 1) * 1000 / times[-1]
        code = int(self._capture.get(self._cv.CAP_PROP_FOURCC))
        codec = "".join(c for c in (chr(code >> s & 255) for s in (0, 8, 16, 24)) if c.isprintable()).strip()
        seconds = (times[-1] + usual) / 1000 if times[-1] > 0 else count / fps
        self.info = VideoInfo(count, fps, first.shape[1], first.shape[0], seconds, codec, variable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; nothing can be read afterwards."""
        self._capture.release()
        self._kept.clear()

    def time(self, index: int) -> float:
        """The time of a frame in seconds since the first one."""
        return self._table.milliseconds[index] / 1000

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """The frames from `start` (inclusive) to `stop` (exclusive)."""
        for index in range(start, self.info.frames if stop is None else min(stop, self.info.frames)):
            yield self.read(index)

    def read(self, index: int) -> Frame:
        """One frame, read-only. Raises DiagnosticError if it does not exist or cannot be decoded."""
        count = len(self._table.stamps)
        if not 0 <= index < count:
            raise self._wrong(
                "no-such-frame",
                tr("the video has the frames 0 to {count}, not {index}", count=count - 1, index=index),
                tr("choose another frame"),
            )
        known = self._kept.get(index)
        if known is not None:
            self._kept.move_to_end(index)
            self._last = index
            return known
        if not self._next <= index <= self._next + BACK[1]:
            # Stepping back usually continues, so decode a few earlier frames too.
            self._seek(index, BACK[1:] if index == self._last - 1 else BACK)
        self._last = index
        while self._next <= index:
            self._grab()
            number = self._next - 1  # larger if the decoder skipped a damaged frame
            if number >= index - BACK[1]:
                self._keep(number, self._retrieved())
        if index not in self._kept:
            raise self._damaged(index)
        return self._kept[index]

    # --- decoding ----------------------------------------------------------------------------------------------------

    def _opened(self) -> Any:
        capture = self._cv.VideoCapture(str(self.path), self._cv.CAP_FFMPEG)
        if not capture.isOpened():
            raise self._wrong(
                "not-a-video",
                tr("the file is not a supported video"),
                tr("choose an MP4, MKV, WebM, AVI or MOV file"),
            )
        width, height = (int(capture.get(p)) for p in (self._cv.CAP_PROP_FRAME_WIDTH, self._cv.CAP_PROP_FRAME_HEIGHT))
        if width * height > MAX_PIXELS:
            capture.release()
            raise self._wrong(
                "picture-too-large",
                tr(
                    "its frames have {width} x {height} pixels, the limit is {MAX_PIXELS:.0f} million",
                    width=width,
                    height=height,
                    MAX_PIXELS=MAX_PIXELS / 1e6,
                ),
                tr("make the video smaller"),
            )
        return capture

    def _listed(self) -> tuple[_Table, bool]:
        """The time stamps of all packets, and whether they identify the frames."""
        cv = self._cv
        capture = self._opened()
        found: list[tuple[float, float]] = []
        try:
            capture.set(cv.CAP_PROP_FORMAT, -1)  # raw packets, not decoded
            while capture.grab():
                found.append((capture.get(cv.CAP_PROP_PTS), capture.get(cv.CAP_PROP_POS_MSEC)))
        finally:
            capture.release()
        if not found:
            raise self._wrong("not-a-video", tr("the file has no frames"), tr("choose another video"))
        found.sort()
        shown = [pair for pair in found if pair[0] >= 0] or found  # negative: needed for decoding, not displayed
        stamps = [stamp for stamp, _ in shown]
        if len(set(stamps)) < len(stamps):
            return _Table([float(i) for i in range(len(found))], [0.0] * len(found)), False
        return _Table(stamps, [at - shown[0][1] for _, at in shown]), True

    def _grab(self) -> None:
        """Decode the next frame, and set `_next` to the frame after it by its time stamp."""
        if not self._capture.grab():
            raise self._damaged(self._next)
        if self._exact:
            at = self._capture.get(self._cv.CAP_PROP_PTS)
            place = bisect.bisect_left(self._table.stamps, at)
            if place == len(self._table.stamps) or self._table.stamps[place] != at:
                self._exact = False  # time stamps of decoder and packets differ: count from the start instead
            else:
                self._next = place
        self._next += 1

    def _retrieved(self) -> Frame:
        whole, pixels = self._capture.retrieve()
        if not whole or pixels is None:
            raise self._damaged(self._next - 1)
        frame: Frame = self._cv.cvtColor(pixels, self._cv.COLOR_BGR2RGB)
        frame.flags.writeable = False
        return frame

    def _keep(self, number: int, frame: Frame) -> None:
        self._kept[number] = frame
        while len(self._kept) > KEEP or (len(self._kept) > 2 and len(self._kept) * frame.nbytes > KEEP_BYTES):
            self._kept.popitem(last=False)

    def _seek(self, index: int, tries: tuple[int, ...]) -> None:
        """Move decoding to `index` or before it."""
        if self._exact:
            for back in tries:
                goal = max(0, index - back)
                self._capture.set(self._cv.CAP_PROP_POS_FRAMES, self._library_index(goal))
                if not self._capture.grab():
                    break
                at = self._capture.get(self._cv.CAP_PROP_PTS)
                place = bisect.bisect_left(self._table.stamps, at)
                if place == len(self._table.stamps) or self._table.stamps[place] != at:
                    self._exact = False
                    break
                if place <= index:
                    self._next = place + 1
                    if place >= index - BACK[1]:
                        self._keep(place, self._retrieved())
                    return
                if goal == 0:
                    break
        self._capture.release()
        self._capture = self._opened()
        self._next = 0

    def _library_index(self, index: int) -> int:
        """The frame number that the library computes for the time of frame `index`."""
        rate = float(self._capture.get(self._cv.CAP_PROP_FPS))
        return int(self._table.milliseconds[index] / 1000 * rate + 0.5) if rate > 0 else index

    def _damaged(self, index: int) -> DiagnosticError:
        return self._wrong(
            "damaged-video",
            tr("frame {index} cannot be decoded: the file is truncated or damaged there", index=index),
            tr("stop before that frame, or repair the file"),
        )

    def _wrong(self, code: str, message: str, remedy: str) -> DiagnosticError:
        return DiagnosticError.of(code, message, file=str(self.path), remedy=remedy)


def _check_readable(path: Path) -> None:
    """Raise DiagnosticError with the reason of the system, because OpenCV does not say why a file cannot be opened."""
    check_regular(path)
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise DiagnosticError.of(
            "cannot-read",
            tr("the video cannot be opened: {strerror}", strerror=error.strerror or error),
            file=str(path),
            remedy=tr("check the path and your permissions"),
        ) from None
