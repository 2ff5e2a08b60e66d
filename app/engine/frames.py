"""Requests of the engine process about pictures, videos and cameras. They decode here: frames do not pass the window."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.engine.protocol import BadRequestError, Params, text_of, whole_of
from designer.operators.api import Operator
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder
from designer.runtime.sources import Sources, is_deep, kind_of, small

THUMBNAIL = (192, 144)


class Playing:
    """Holds the sources of the inputs open between frames."""

    def __init__(self, shared: SharedFolder) -> None:
        self._shared = shared
        self._sources = Sources()
        self._paths: dict[str, str] = {}  # what feeds each input layer

    def only(self, layers: Collection[str]) -> None:
        """Another network: let go of what fed inputs that it does not have."""
        self._paths = {layer: path for layer, path in self._paths.items() if layer in layers}
        self._sources.release(frozenset(self._paths.values()))

    def feed(self, session: Session, layer: str, params: Params) -> dict[str, Any]:
        """`{layer, path, frame?, preview?}`: feed an input. What moves tells the number of its frame and, if wished, gives a
        thumbnail; deep files tell their range."""
        path, frame = Path(text_of(params, "path")), params.get("frame")
        if frame is not None and type(frame) is not int:
            raise BadRequestError("'frame' must be a whole number or null")
        before, self._paths[layer] = self._paths.get(layer), str(path)
        if before is not None and before != str(path):
            self._sources.release(frozenset(self._paths.values()))
        if kind_of(path) in ("video", "camera", "folder"):
            taken = self._sources.take(path, operator_of(session, layer), frame)
            session.set_input(layer, taken.array, picture=taken.picture)
            told: dict[str, Any] = {"frame": taken.frame}
            if kind_of(path) == "camera":
                told["fps"] = self._sources.camera_fps(path)
            if params.get("preview"):
                told["preview"] = self._shared.put(small(taken.array, *THUMBNAIL))
            return told
        session.set_input_file(layer, path)
        if is_deep(path):
            values = session.fed_input(layer)[1]
            finite = values[np.isfinite(values)]
            return {"range": [float(finite.min()), float(finite.max())]} if finite.size else {}
        return {}

    def describe(self, number: Any, params: Params) -> dict[str, Any]:
        """`{path, frame?, preview?}` -> what the source is, and a thumbnail of a frame as a handle of H x W x 3 bytes."""
        path = Path(text_of(params, "path"))
        try:
            info = self._sources.info(path)
            found = info.as_dict()
            if params.get("preview", True):
                taken = self._sources.take(path, None, whole_of(params, "frame", 0))
                found["preview"] = self._shared.put(small(taken.array, *THUMBNAIL))
                if info.kind not in ("video", "camera"):
                    found["width"], found["height"] = taken.array.shape[3], taken.array.shape[2]
            return found
        finally:  # a camera that sends nothing must not stay on
            self._sources.release(frozenset(self._paths.values()))

    def release(self, number: Any, params: Params) -> dict[str, Any]:
        """`{layer}`: let go of what feeds an input, so that a camera is switched off. What was fed stays."""
        self._paths.pop(text_of(params, "layer"), None)
        self._sources.release(frozenset(self._paths.values()))
        return {}


def operator_of(session: Session, layer: str) -> Operator | None:
    known = session.graph.get(layer)
    return session.registry.read(known).operator if known is not None else None


def export_video(session: Session, params: Params, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """`{inputs: {layer: path}, outputs: {layer: path}, start, stop, fps, codec, quality, kind}` -> what was written."""
    from app.engine.video_job import VideoJob, process

    stop, fps = params.get("stop"), params.get("fps", 0)
    if stop is not None and type(stop) is not int:
        raise BadRequestError("'stop' must be a whole number or null")
    if not isinstance(fps, int | float):
        raise BadRequestError("'fps' must be a number")
    job = VideoJob(
        _paths(params, "inputs"),
        _paths(params, "outputs"),
        whole_of(params, "start", 0),
        stop,
        float(fps),
        text_of(params, "codec", ""),
        whole_of(params, "quality", 0),
        text_of(params, "kind", ".png"),
        "".join(c for c in text_of(params, "token", "") if c in "0123456789abcdef")[:32],
    )
    done = process(session, job, progress)
    return {"frames": done.frames, "fps": done.fps, "seconds": done.seconds, "notes": list(done.notes)}


def _paths(params: Params, name: str) -> Mapping[str, Path]:
    found = params.get(name)
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise BadRequestError(f"'{name}' must map layers to paths")
    return {layer: Path(path) for layer, path in found.items()}
