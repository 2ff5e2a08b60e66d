"""Runs a network on a video or folder of images and writes another one, for `layerwright video` and the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from app.engine.frames import operator_of
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.animation import Animation
from designer.runtime.provenance import noise_layers, provenance
from designer.runtime.session import Session
from designer.runtime.sources import SourceInfo, Sources, kind_of
from designer.runtime.video_formats import VIDEOS
from designer.runtime.video_writer import FolderWriter, VideoWriter
from designer.texts import tr

Progress = Callable[[int, int, str], None]
FOLDER_FPS = 25.0  # of a video made from a folder of images


@dataclass(frozen=True)
class VideoJob:
    """What to read and what to write, by layer. A target with a suffix is a video, a name without one is a folder.

    Frames are `start` to before `stop`. `fps` 0 keeps the rate of the first video. `kind` is the suffix of files in folders.
    """

    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    start: int = 0
    stop: int | None = None
    fps: float = 0.0
    codec: str = ""
    quality: int = 0
    kind: str = ".png"
    token: str = ""  # names what is half done, see `part_of`


@dataclass(frozen=True)
class VideoDone:
    """What was written; `notes` are sentences for the user."""

    frames: int
    fps: float
    seconds: float
    notes: tuple[str, ...] = field(default=())


def moves(path: Path) -> bool:
    """Whether a source has frames: a video, a folder or a camera."""
    return kind_of(path) in ("video", "folder", "camera")


def process(session: Session, job: VideoJob, progress: Progress | None = None) -> VideoDone:
    """Run every frame and write what comes out. Targets appear at the end or not at all. DiagnosticError."""
    live = [layer for layer, path in job.inputs.items() if kind_of(path) == "camera"]
    if live:
        raise _wrong(
            "no-end",
            tr("the input '{live}' is a camera, which has no end", live=live[0]),
            tr("feed a video or a folder"),
        )
    sources, animation = Sources(), Animation(session)
    try:
        infos = {layer: sources.info(path) for layer, path in job.inputs.items()}
        notes: list[str] = []
        frames = _range(job, infos, notes)
        fps = job.fps or next((i.fps for i in infos.values() if i.kind == "video"), FOLDER_FPS)
        if not job.fps and any(i.variable for i in infos.values()):
            notes.append(f"the video has a variable frame rate; it is written at {fps:.3g} frames per second")
        started = perf_counter()
        origin = provenance(
            session.graph.name, session.graph, session.weights, session.options, **noise_layers(session.inference)
        )
        with ExitStack() as stack:
            writers: dict[str, VideoWriter | FolderWriter] = {}
            for layer, path in job.outputs.items():
                writers[layer] = _writer(path, fps, job, origin.comment())
                stack.push(writers[layer].__exit__)
            for count, frame in enumerate(frames):
                if progress is not None:
                    progress(count, len(frames), f"frame {frame}")
                for layer, path in job.inputs.items():
                    if count == 0 or infos[layer].frames > 1:
                        taken = sources.take(path, operator_of(session, layer), frame)
                        session.set_input(layer, taken.array, is_image=taken.is_image)
                animation.show(frame)
                result = session.run()
                for layer, writer in writers.items():
                    writer.write(result.outputs[layer], _name(infos, frame))
            if progress is not None:
                progress(len(frames), len(frames), "")
        notes.extend(dict.fromkeys(note for w in writers.values() if (note := w.note)))
        notes.extend(result.notes())
        return VideoDone(len(frames), fps, perf_counter() - started, tuple(notes))
    finally:
        animation.show(0)
        sources.release()


def _range(job: VideoJob, infos: Mapping[str, SourceInfo], notes: list[str]) -> range:
    lengths = {layer: info.frames for layer, info in infos.items() if info.kind in ("video", "folder")}
    if not lengths:
        raise _wrong(
            "no-frames", tr("none of the inputs is a video or a folder"), tr("give one, for instance --input in=a.mp4")
        )
    shortest = min(lengths.values())
    if shortest < max(lengths.values()):
        counts = ", ".join(f"{layer} {count}" for layer, count in lengths.items())
        notes.append(f"the inputs have different numbers of frames ({counts}); the shortest one determines the length")
    stop = shortest if job.stop is None else min(job.stop, shortest)
    if not 0 <= job.start < stop:
        raise _wrong(
            "no-frames",
            tr(
                "the range from {start} to before {part} has no frames; the input has {shortest}",
                start=job.start,
                part=stop if job.stop is None else job.stop,
                shortest=shortest,
            ),
            tr("choose a start from 0 to {shortest} and an end after it", shortest=shortest - 1),
        )
    return range(job.start, stop)


def _writer(path: Path, fps: float, job: VideoJob, comment: str) -> VideoWriter | FolderWriter:
    if path.suffix:
        return VIDEOS.writer(path)(path, fps, job.codec, job.quality, job.token)
    return FolderWriter(path, job.kind, job.token, comment)


def _name(infos: Mapping[str, SourceInfo], frame: int) -> str:
    """The name of the first folder's file, so that results are named like their sources."""
    names = next((info.names for info in infos.values() if info.names), ())
    return Path(names[frame]).stem if names else f"frame_{frame:05d}"


def _wrong(code: str, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, message, remedy=remedy))
