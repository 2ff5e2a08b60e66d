"""A camera as a source: always its latest image, however long the network takes."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import deque
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designer.files.settings import CAMERA
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.opencv import opencv
from designer.texts import tr

SILENT = 5.0  # seconds without an image after which a camera counts as silent


class CameraDevice(Protocol):
    """The part of `cv2.VideoCapture` that is used."""

    def isOpened(self) -> bool: ...

    def read(self) -> tuple[bool, Any]: ...

    def get(self, prop: int, /) -> float: ...

    def release(self) -> None: ...


def camera_name(path: Path | str) -> str | None:
    """The device that `camera:NAME` represents: a number, or a device's path; None for a file."""
    text = str(path)
    return text.removeprefix(CAMERA) if text.startswith(CAMERA) else None


class Camera:
    """Reads images in a separate thread and keeps the latest; images are numbered.

    `name` is a number or the path of a device. A video file can replace a device: it plays at its own speed, in a loop.
    Network addresses are rejected, because opening a document must not connect anywhere. Raises DiagnosticError.
    """

    def __init__(self, name: str, device: CameraDevice | None = None) -> None:
        self.name = name
        self._pause = 0.0  # between the images of a file
        self._device = device if device is not None else self._open()
        if not self._device.isOpened():
            raise self._missing()
        self._fresh = threading.Condition()
        self._pixels: NDArray[np.uint8] | None = None
        self._number = 0
        self._arrivals: deque[float] = deque(maxlen=30)
        self._stopped = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._take, name=f"camera {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Release the device; this can take as long as one image."""
        self._stopped.set()
        self._thread.join(SILENT)
        with contextlib.suppress(Exception):
            self._device.release()

    @property
    def fps(self) -> float:
        """Measured images per second; 0 before the second image."""
        times = list(self._arrivals)
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0.0

    def latest(self, after: int = 0) -> tuple[int, NDArray[np.uint8]]:
        """Number and pixels (H x W x 3, RGB) of the latest image after number `after`; waits for it."""
        with self._fresh:
            self._fresh.wait_for(lambda: self._number > after or self._ended, SILENT)
            number, pixels = self._number, self._pixels
        if pixels is None or number <= after:
            raise DiagnosticError.of(
                "camera-silent",
                tr("the camera {name} does not send images", name=self.name),
                remedy=tr("check its connection and whether another program uses it, then play again"),
            )
        return number, np.ascontiguousarray(pixels[:, :, ::-1])

    # --- the thread --------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        misses = 0
        try:
            while not self._stopped.is_set() and misses < 3:
                whole, pixels = self._device.read()
                if not whole or pixels is None:
                    misses += 1
                    if self._pause:
                        self._device.release()
                        self._device = self._open()
                    continue
                misses = 0
                with self._fresh:
                    self._pixels, self._number = pixels, self._number + 1
                    self._arrivals.append(monotonic())
                    self._fresh.notify_all()
                if self._pause:
                    self._stopped.wait(self._pause)
        finally:
            with self._fresh:
                self._ended = True
                self._fresh.notify_all()

    def _open(self) -> CameraDevice:
        cv = opencv()
        if re.fullmatch(r"\d{1,3}", self.name):
            number: CameraDevice = cv.VideoCapture(int(self.name))
            return number
        path = Path(self.name)
        if "://" in self.name or not path.exists():
            raise self._missing()
        device: CameraDevice = cv.VideoCapture(str(path))
        if path.is_file():
            self._pause = 1 / min(max(device.get(cv.CAP_PROP_FPS), 1.0), 240.0)
        return device

    def _missing(self) -> DiagnosticError:
        present = ", ".join(str(p) for p in sorted(Path("/dev").glob("video*"))[:8])
        return DiagnosticError.of(
            "no-camera",
            tr("the camera {name} does not exist or is in use", name=self.name),
            remedy=(f"choose one of {present}" if present else "connect a camera; none was found")
            + ", and check that no other program uses it and that you have permission",
        )
