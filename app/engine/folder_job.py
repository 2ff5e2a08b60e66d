"""Runs a network on every image of folders and writes folders, for `layerwright run`: prefetched, and resumed after an interruption.

A journal in the first output folder lists the finished files. Broken files are skipped and reported.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import msgspec

from app.engine.frames import operator_of
from designer.files.atomic import make_folder, write_atomic
from designer.files.variants import Variant
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.api import Operator
from designer.runtime.animation import Animation
from designer.runtime.api import Array
from designer.runtime.images import write_array
from designer.runtime.machine import physical_cores
from designer.runtime.provenance import digest_of, noise_layers, provenance
from designer.runtime.session import Session
from designer.runtime.sources import SourceData, Sources, kind_of, playlist
from designer.texts import tr

JOURNAL = "layerwright-run.jsonl"
AHEAD = 8  # images that are read before they are needed, and results that wait to be written
MEASURED = 500  # images in the time that is stated

Progress = Callable[[int, int, str], None]
Read = Future[dict[str, SourceData]]
Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True)
class FolderJob:
    """Folders or single files by input layer, folders by output layer. Images are those from `start` to before `stop`."""

    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    start: int = 0
    stop: int | None = None
    kind: str = ".png"


@dataclass(frozen=True, slots=True)
class Frame:
    """One image to run: its number, the name of its results without suffix, and the file of each input."""

    number: int
    name: str
    files: Mapping[str, Path]


@dataclass(frozen=True)
class FolderDone:
    """How many images were run now and before, and why others were skipped, by file."""

    written: int
    before: int
    skipped: Mapping[str, str]
    seconds: float
    notes: tuple[str, ...] = field(default=())


class _Header(msgspec.Struct):
    """The first line of a journal: what computed the results."""

    key: str


class _Line(msgspec.Struct):
    """A finished image: the name of its results, and size and time of its files."""

    name: str
    files: list[tuple[int, int]]


def is_folder_job(inputs: Iterable[Path], outputs: Iterable[Path]) -> bool:
    """Whether everything that moves is a folder of images, and everything that is written is a folder."""
    kinds = {kind_of(path) for path in inputs}
    return "folder" in kinds and not kinds & {"video", "camera"} and not any(path.suffix for path in outputs)


def frames_of(job: FolderJob) -> list[Frame]:
    """The images of a job, as many as the shortest folder has. Raises DiagnosticError if there are none."""
    folders = {layer: playlist(path) for layer, path in job.inputs.items() if kind_of(path) == "folder"}
    first = next(iter(folders.values()))
    count = min(len(names) for names in folders.values())
    numbers = range(count)[job.start : job.stop]
    if not numbers:
        raise DiagnosticError.of(
            "no-frames",
            tr("the range has no images; the folders have {count}", count=count),
            remedy=tr("choose a smaller start"),
        )
    names = _result_names([Path(first[number]).stem for number in range(count)])
    return [
        Frame(
            number,
            names[number],
            {layer: path / folders[layer][number] if layer in folders else path for layer, path in job.inputs.items()},
        )
        for number in numbers
    ]


def _result_names(stems: Sequence[str]) -> list[str]:
    """Different names of results for files with these names, of which some may be equal: a.png and a.jpg."""
    counts = Counter(stems)
    taken = {stem for stem, count in counts.items() if count == 1}
    names = []
    for number, stem in enumerate(stems):
        name = stem
        if counts[stem] > 1:
            name = f"{stem}_{number:05d}"
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names


def job_key(session: Session, weights_digest: str, variant: Variant | None = None) -> str:
    """What results depend on besides the images: the network, its weights, and how it is run. `variant` is that of the session."""
    o = session.options
    return "|".join(
        (
            digest_of(session.graph),
            weights_digest,
            o.engine,
            o.precision,
            o.layout,
            str(o.formats),
            session.weights.note,
            *(
                (repr((variant.calibration, sorted(variant.formats.items()))),)
                if variant is not None and variant.calibration is not None
                else ()
            ),
        )
    )


class Journal:
    """The finished images of a job. A line that was cut off by a crash does not count."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder / JOURNAL
        present = folder.is_dir() and any(folder.iterdir())
        lines = self._path.read_bytes().splitlines(keepends=True) if self._path.exists() else []
        if present and (not lines or _decoded(lines[0], _Header) != _Header(key)):
            raise DiagnosticError.of(
                "folder-not-empty",
                tr("{folder} has other files, or results of another network or run", folder=folder),
                file=str(folder),
                remedy=tr("choose a new folder"),
            )
        found = (_decoded(line, _Line) for line in lines[1:] if line.endswith(b"\n"))
        self.finished = {line.name: line.files for line in found if line is not None}
        make_folder(folder)
        if not lines:
            write_atomic(self._path, msgspec.json.encode(_Header(key)) + b"\n")
        elif not lines[-1].endswith(b"\n"):
            write_atomic(self._path, b"".join(lines[:-1]))

    def has(self, frame: Frame) -> bool:
        return self.finished.get(frame.name) == _states(frame)

    def add(self, frame: Frame) -> None:
        with self._path.open("ab") as stream:
            stream.write(msgspec.json.encode(_Line(frame.name, _states(frame))) + b"\n")


def opened_journal(job: FolderJob, key: str) -> Journal:
    """The journal of a job, and its folders made. Raises DiagnosticError where results would replace other files."""
    layers: dict[Path, str] = {path.resolve(): layer for layer, path in job.inputs.items()}
    for layer, path in job.outputs.items():
        other = layers.setdefault(path.resolve(), layer)
        if other != layer:
            raise DiagnosticError.of(
                "folder-in-use",
                tr(
                    "'{layer}' cannot be written to {folder}, the folder of '{other}'",
                    layer=layer,
                    folder=path,
                    other=other,
                ),
                layer=layer,
                file=str(path),
                remedy=tr("choose another folder"),
            )
    journal = Journal(next(iter(job.outputs.values())), key)
    for folder in job.outputs.values():
        make_folder(folder)
    return journal


def check_usable(skipped: Mapping[str, str], frames: Sequence[Frame]) -> None:
    """Raise DiagnosticError if all images of a job were skipped."""
    if skipped and len(skipped) == len(frames):
        raise DiagnosticError.of(
            "no-images",
            tr("no image can be used: {reason}", reason=next(iter(skipped.values()))),
            remedy=tr("choose other images"),
        )


def targets_of(frame: Frame, job: FolderJob) -> list[Path]:
    """The files of the results of an image, in the order of the output layers."""
    return [folder / f"{frame.name}{job.kind}" for folder in job.outputs.values()]


def source_of(frame: Frame, job: FolderJob) -> str:
    """The file that identifies an image: that of the first folder, since a single file feeds all images."""
    return str(next(path for layer, path in frame.files.items() if path != job.inputs[layer]))


def unfinished(frames: Iterable[Frame], job: FolderJob, journal: Journal) -> list[Frame]:
    """The images without results: those that are not in the journal, and those with other outputs or another kind of files before."""
    return [
        frame for frame in frames if not (journal.has(frame) and all(path.exists() for path in targets_of(frame, job)))
    ]


def _decoded(line: bytes, kind: type[Record]) -> Record | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError:
        return None


def _states(frame: Frame) -> list[tuple[int, int]]:
    """Size and time of the files of an image; of a pattern, zeros."""
    found = []
    for path in frame.files.values():
        state = path.stat() if path.exists() else None
        found.append((state.st_size, state.st_mtime_ns) if state is not None else (0, 0))
    return found


def prefetched(frames: Iterable[Frame], operators: Mapping[str, Operator | None]) -> Iterator[tuple[Frame, Read]]:
    """The images in order, up to `AHEAD` of them read in advance by one thread per core."""

    def read(frame: Frame) -> dict[str, SourceData]:
        sources = Sources()
        return {layer: sources.take(path, operators[layer]) for layer, path in frame.files.items()}

    with ThreadPoolExecutor(physical_cores()) as pool:
        waiting: deque[tuple[Frame, Read]] = deque()
        try:
            for frame in frames:
                waiting.append((frame, pool.submit(read, frame)))
                if len(waiting) > AHEAD:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            for _, future in waiting:
                future.cancel()


def process_folders(session: Session, job: FolderJob, key: str, progress: Progress | None = None) -> FolderDone:
    """Run all images that are not finished. Raises DiagnosticError if nothing can be run or written."""
    frames = frames_of(job)
    journal = opened_journal(job, key)
    rest = unfinished(frames, job, journal)
    started = perf_counter()
    run = _FolderRun(session, job, journal)
    with ThreadPoolExecutor(physical_cores()) as pool:
        for count, (frame, read) in enumerate(prefetched(rest, run.operators), len(frames) - len(rest)):
            if progress is not None:
                progress(count, len(frames), frame.name)
            run.frame(frame, read, pool)
        run.finish(0)
    check_usable(run.skipped, frames)
    return FolderDone(run.written, len(frames) - len(rest), run.skipped, perf_counter() - started, tuple(run.notes))


class _FolderRun:
    """Runs images one after the other and writes their results in threads; the journal has those that are on disk."""

    def __init__(self, session: Session, job: FolderJob, journal: Journal) -> None:
        self.operators = {layer: operator_of(session, layer) for layer in job.inputs}
        self.skipped: dict[str, str] = {}
        graph = session.graph
        noise = noise_layers(session.inference)
        self._comment = provenance(graph.name, graph, session.weights, session.options, **noise).comment()
        self.notes: dict[str, None] = {}
        self.written = 0
        self._session = session
        self._animation = Animation(session)
        self._job = job
        self._journal = journal
        self._writing: deque[tuple[Frame, list[Future[None]]]] = deque()

    def frame(self, frame: Frame, read: Read, pool: ThreadPoolExecutor) -> None:
        try:
            results = self._run(frame, read.result())
        except DiagnosticError as error:
            self.skipped[source_of(frame, self._job)] = error.diagnostics[0].message
            return
        targets = zip(targets_of(frame, self._job), self._job.outputs, strict=True)
        self._writing.append(
            (frame, [pool.submit(write_array, path, results[layer], self._comment) for path, layer in targets])
        )
        self.finish(AHEAD)

    def _run(self, frame: Frame, data: Mapping[str, SourceData]) -> Mapping[str, Array]:
        for layer, taken in data.items():
            self._session.set_input(layer, taken.array, is_image=taken.is_image)
        self._animation.show(frame.number)
        result = self._session.run()
        self.notes.update(dict.fromkeys(result.notes()))
        return result.outputs

    def finish(self, waiting: int) -> None:
        """Wait until at most `waiting` images are not written. Raises the DiagnosticError of a file that cannot be written."""
        while len(self._writing) > waiting:
            frame, futures = self._writing.popleft()
            for future in futures:
                future.result()
            self._journal.add(frame)
            self.written += 1


# --- throughput ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Throughput:
    """Images per second of one way to run the network, without reading and writing."""

    title: str
    images: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.images / self.seconds

    @property
    def seconds_of_many(self) -> float:
        return MEASURED / self.rate


def throughput(sessions: Mapping[str, Session], job: FolderJob, progress: Progress | None = None) -> list[Throughput]:
    """Run the same images with every session in turn, image by image, so that other load on the machine hits all alike."""
    frames = frames_of(job)
    times = dict.fromkeys(sessions, 0.0)
    first = next(iter(sessions.values()))
    operators = {layer: operator_of(first, layer) for layer in job.inputs}
    count = 0
    skipped: dict[str, str] = {}
    for number, (frame, read) in enumerate(prefetched(frames, operators)):
        if progress is not None:
            progress(number, len(frames), frame.name)
        spent = dict.fromkeys(sessions, 0.0)
        try:
            data = read.result()
            if not count:  # the first run also builds the network
                for session in sessions.values():
                    _run_once(session, data)
            for title, session in sessions.items():
                began = perf_counter()
                _run_once(session, data)
                spent[title] = perf_counter() - began
        except DiagnosticError as error:  # a broken file, or one that the network cannot run
            skipped[source_of(frame, job)] = error.diagnostics[0].message
            continue
        times = {title: times[title] + spent[title] for title in sessions}
        count += 1
    check_usable(skipped, frames)
    return [Throughput(title, count, seconds) for title, seconds in times.items()]


def _run_once(session: Session, data: Mapping[str, SourceData]) -> None:
    session.invalidate()
    for layer, taken in data.items():
        session.set_input(layer, taken.array, is_image=taken.is_image)
    session.run()


def skipped_files(skipped: Mapping[str, str]) -> Sequence[Diagnostic]:
    """The skipped files as diagnostics."""
    return [
        Diagnostic("skipped", reason, file=name, remedy=tr("repair the file and repeat the command"))
        for name, reason in skipped.items()
    ]
