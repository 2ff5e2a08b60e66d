"""Videos that tests make for themselves, with a library that is not ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def picture_of(index: int, height: int = 48, width: int = 64) -> np.ndarray:
    """A frame that encodes its number: H x W x 3 RGB bytes, no two alike for 250 of them."""
    y, x = np.mgrid[:height, :width]
    return np.stack([(x * 2 + index) % 256, (y * 4 + index * 3) % 256, np.full_like(x, index)], -1).astype(np.uint8)


def make_video(path: Path, frames: int = 24, code: str = "FFV1", fps: float = 25, size=(64, 48)) -> Path:
    """A video of `picture_of` frames, width x height."""
    from designer.runtime.opencv import opencv

    cv = opencv()
    writer = cv.VideoWriter(str(path), cv.CAP_FFMPEG, cv.VideoWriter.fourcc(*code), fps, size)
    assert writer.isOpened()
    for index in range(frames):
        writer.write(np.ascontiguousarray(picture_of(index, size[1], size[0])[:, :, ::-1]))
    writer.release()
    return path


def make_uneven_video(path: Path, times: list[int], fps: float = 25) -> Path:
    """Frames that are shown at `times` (in 1 / fps), so that they last differently long. The ending must be .mkv."""
    from designer.runtime.opencv import opencv

    cv = opencv()
    even = make_video(path.with_suffix(".avi"), len(times), "MJPG", fps)
    source = cv.VideoCapture(str(even), cv.CAP_FFMPEG)
    source.set(cv.CAP_PROP_FORMAT, -1)
    raw = [cv.VIDEOWRITER_PROP_RAW_VIDEO, 1]
    writer = cv.VideoWriter(str(path), cv.CAP_FFMPEG, cv.VideoWriter.fourcc(*"MJPG"), fps, (64, 48), raw)
    for time in times:
        whole, packet = source.read()
        assert whole
        writer.set(cv.VIDEOWRITER_PROP_PTS, time)
        writer.set(cv.VIDEOWRITER_PROP_KEY_FLAG, 1)
        writer.write(packet)
    writer.release()
    source.release()
    even.unlink()
    return path
