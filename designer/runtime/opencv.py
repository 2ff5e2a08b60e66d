"""OpenCV, imported only when a video or floating-point image is read. Never in the GUI process."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

MAX_PIXELS = 100_000_000  # of one image: 1.2 GB as float32 RGB


def opencv() -> Any:
    """The `cv2` module, silent and with our pixel limit. Raises DiagnosticError if it is not installed."""
    known: ModuleType | None = sys.modules.get("cv2")
    if known is not None:
        return known
    # OpenCV reads these on import. Our diagnostics replace its messages about damaged files.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(MAX_PIXELS))
    try:
        import cv2
    except ImportError as error:
        raise DiagnosticError.of(
            "no-opencv",
            tr("videos and float TIFF files need OpenCV, which cannot be loaded: {error}", error=error),
            remedy=tr("install it: pip install opencv-python-headless"),
        ) from error
    cv2.setNumThreads(1)  # it only decodes and converts here; the cores are for the engine
    return cv2
