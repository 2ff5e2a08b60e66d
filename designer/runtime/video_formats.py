"""The formats of videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from designer.files.formats import Format, FormatTable
from designer.runtime.images import ARRAYS
from designer.runtime.video import VideoReader
from designer.runtime.video_writer import DEFAULT_CODECS, VideoWriter

_CONTAINERS = (
    ("MPEG-4 video", (".mp4",)),
    ("M4V video", (".m4v",)),
    ("Matroska video", (".mkv",)),
    ("WebM video", (".webm",)),
    ("AVI video", (".avi",)),
    ("QuickTime video", (".mov",)),
    ("MPEG video", (".mpg", ".mpeg")),
    ("Ogg video", (".ogv",)),
    ("Windows Media video", (".wmv",)),
    ("Flash video", (".flv",)),
    ("GIF animation", (".gif",)),
    ("MPEG transport stream", (".ts", ".m2ts")),
)
VIDEOS: FormatTable[Callable[[Path], VideoReader], type[VideoWriter]] = FormatTable(
    "videos",
    (
        Format(title, suffixes, VideoReader, VideoWriter if suffixes[0] in DEFAULT_CODECS else None)
        for title, suffixes in _CONTAINERS
    ),
    folder=ARRAYS,
)
