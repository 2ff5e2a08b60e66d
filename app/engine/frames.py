"""Requests about images, videos and cameras. The engine process decodes them, so that frames never pass through the window."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.engine.protocol import (
    DescribeInputReply,
    DescribeInputRequest,
    EmptyReply,
    ExportVideoReply,
    ExportVideoRequest,
    ReleaseInputRequest,
    SetInputReply,
    SetInputRequest,
)
from designer.operators.api import Operator
from designer.runtime.api import Tensor
from designer.runtime.images import IMAGES, with_channels
from designer.runtime.session import Session
from designer.runtime.shared import Handle, SharedFolder
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

    def feed(self, session: Session, request: SetInputRequest) -> SetInputReply:
        """Feed an input layer with a file, or with a frame of what moves."""
        layer, path = request.layer, Path(request.path)
        before, self._paths[layer] = self._paths.get(layer), str(path)
        if before is not None and before != str(path):
            self._sources.release(frozenset(self._paths.values()))
        if kind_of(path) in ("video", "camera", "folder"):
            taken = self._sources.take(path, operator_of(session, layer), request.frame)
            session.set_input(layer, taken.array, is_image=taken.is_image)
            fps = self._sources.camera_fps(path) if kind_of(path) == "camera" else 0.0
            preview = self._thumbnail(taken.array) if request.preview else None
            return SetInputReply(fed_shape(session, layer), taken.frame, fps, preview)
        session.set_input_file(layer, path)
        values_range = None
        if is_deep(path):
            values = session.fed_input(layer)[1]
            finite = values[np.isfinite(values)]
            values_range = (float(finite.min()), float(finite.max())) if finite.size else None
        return SetInputReply(fed_shape(session, layer), range=values_range)

    def describe(self, request: DescribeInputRequest) -> DescribeInputReply:
        """What a source is, and a thumbnail of a frame; a tensor that is not an image has none."""
        path = Path(request.path)
        try:
            info = self._sources.info(path)
            if not request.preview:
                return DescribeInputReply(info)
            if info.kind == "image":
                pixels = IMAGES.reader(path)(path)
                array = with_channels(pixels, 3, str(path))
                info = replace(info, opacity=pixels.ndim == 3 and pixels.shape[2] in (2, 4))
            else:
                array = self._sources.take(path, None, request.frame).array
            preview = self._thumbnail(array)
            if info.kind not in ("video", "camera") and preview is not None:
                info = replace(info, width=array.shape[3], height=array.shape[2])
            return DescribeInputReply(info, preview)
        finally:  # a camera that sends nothing must not stay on
            self._sources.release(frozenset(self._paths.values()))

    def _thumbnail(self, array: Tensor) -> Handle | None:
        return self._shared.put(small(array, *THUMBNAIL)) if array.ndim == 4 and array.size else None

    def release(self, request: ReleaseInputRequest) -> EmptyReply:
        """Let go of what feeds an input; what was fed stays."""
        self._paths.pop(request.layer, None)
        self._sources.release(frozenset(self._paths.values()))
        return EmptyReply()


def fed_shape(session: Session, layer: str) -> tuple[int, ...]:
    """The shape in which the network reads an input."""
    return session.fed_input(layer)[1].shape


def operator_of(session: Session, layer: str) -> Operator | None:
    known = session.graph.get(layer)
    return session.registry.read(known).operator if known is not None else None


def export_video(
    session: Session, request: ExportVideoRequest, progress: Callable[[int, int, str], None]
) -> ExportVideoReply:
    """Run every frame of the inputs and write what comes out."""
    from app.engine.video_job import VideoJob, process

    job = VideoJob(
        {layer: Path(path) for layer, path in request.inputs.items()},
        {layer: Path(path) for layer, path in request.outputs.items()},
        request.start,
        request.stop,
        request.fps,
        request.codec,
        request.quality,
        request.kind,
        request.token,
    )
    done = process(session, job, progress)
    return ExportVideoReply(done.frames, done.fps, done.seconds, done.notes)
