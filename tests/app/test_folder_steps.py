"""Every step of a job on folders and videos, with stand-ins that list what they are asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from job_kit import ListedSession, Log, listed_animation, listed_sources, tensor

from app.engine import folder_job, frames, video_job
from app.engine.folder_job import (
    AHEAD,
    JOURNAL,
    FolderJob,
    Frame,
    Journal,
    check_usable,
    opened_journal,
    process_folders,
    skipped_files,
    source_of,
    targets_of,
    throughput,
    unfinished,
)
from app.engine.frames import Playing
from app.engine.protocol import DescribeInputRequest, ReleaseInputRequest, SetInputRequest
from app.engine.video_job import VideoJob, process
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.images import write_image
from designer.runtime.shared import SharedFolder
from designer.runtime.sources import SourceInfo


def refusal(call: Callable[..., object], *arguments: Any) -> Diagnostic:
    with pytest.raises(DiagnosticError) as failed:
        call(*arguments)
    return failed.value.diagnostics[0]


# --- names and journals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stems", "names"),
    [
        ("a b c", "a b c"),
        ("a a b", "a_00000 a_00001 b"),
        ("a b a a_00002", "a_00000 b a_00002_ a_00002"),
        ("a a a_00001 a_00001_", "a_00000 a_00001__ a_00001 a_00001_"),
        ("a a_00001 a_00001 a", "a_00000 a_00001_00001 a_00001_00002 a_00003"),
        ("x_00001 x x x_00001", "x_00001_00000 x_00001 x_00002 x_00001_00003"),
    ],
)
def test_names_of_results_differ(stems: str, names: str) -> None:
    assert folder_job._result_names(stems.split()) == names.split()


def picture(path: Path, value: int = 0) -> Path:
    path.parent.mkdir(exist_ok=True)
    write_image(path, tensor(value / 255))
    return path


def test_the_lines_of_a_journal(tmp_path: Path) -> None:
    image, folder = picture(tmp_path / "in" / "a.png"), tmp_path / "out"
    os.utime(image, ns=(5_000_000_001, 7_000_000_003))
    frame = Frame(0, "a", {"x": image, "noise": Path("pattern:noise")})
    journal = Journal(folder, "the key")
    assert (folder / JOURNAL).read_bytes() == b'{"key":"the key"}\n'
    journal.add(frame)
    line = f'{{"name":"a","files":[[{image.stat().st_size},7000000003],[0,0]]}}\n'.encode()
    assert (folder / JOURNAL).read_bytes() == b'{"key":"the key"}\n' + line
    assert Journal(folder, "the key").finished == {"a": [(image.stat().st_size, 7_000_000_003), (0, 0)]}
    os.utime(image, ns=(5_000_000_001, 7_000_000_004))  # of equal size, but written again
    assert not Journal(folder, "the key").has(frame)
    (folder / JOURNAL).write_bytes(b'{"key":"the key"}\nno json\n' + line + line[:-1])
    assert list(Journal(folder, "the key").finished) == ["a"]
    assert (folder / JOURNAL).read_bytes() == b'{"key":"the key"}\nno json\n' + line
    (folder / JOURNAL).write_bytes(b'{"key":"the key"}\n' + line[:-1])  # whole but for its end: it does not count
    assert Journal(folder, "the key").finished == {}


@pytest.mark.parametrize(
    ("files", "key", "refused"),
    [
        ({}, "key", False),
        ({"a.png": b"x"}, "key", True),
        ({JOURNAL: b'{"key":"key"}\n', "a.png": b"x"}, "key", False),
        ({JOURNAL: b'{"key":"key"}\n', "a.png": b"x"}, "other", True),
        ({JOURNAL: b'{"key":"key"}\n'}, "other", True),
        ({JOURNAL: b"", "a.png": b"x"}, "key", True),
        ({JOURNAL: b"text\n"}, "key", True),
    ],
)
def test_a_folder_with_other_content_is_refused(
    tmp_path: Path, files: dict[str, bytes], key: str, refused: bool
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if not refused:
        assert Journal(folder, key).finished == {}
        return
    found = refusal(Journal, folder, key)
    assert (found.code, found.file) == ("folder-not-empty", str(folder))
    assert found.message == f"{folder} has other files, or results of another network or run"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_outputs_never_share_a_folder(tmp_path: Path) -> None:
    images, out = tmp_path / "in", tmp_path / "out"
    images.mkdir()
    for outputs, layer, other in (
        ({"a": images}, "a", "x"),
        ({"a": out / ".." / "in"}, "a", "x"),
        ({"a": out, "b": tmp_path / "in" / ".." / "out"}, "b", "a"),
    ):
        found = refusal(opened_journal, FolderJob({"x": images}, outputs), "key")
        folder = outputs[layer]
        assert (found.code, found.layer, found.file) == ("folder-in-use", layer, str(folder))
        assert found.message == f"'{layer}' cannot be written to {folder}, the folder of '{other}'"
        assert not out.exists()
    for same in (tmp_path / "." / "in" / ".." / "in", tmp_path / "link"):
        if same.name == "link":
            same.symlink_to(images, target_is_directory=True)
        for read, written in ((images, same), (same, images)):
            found = refusal(opened_journal, FolderJob({"x": read}, {"a": written}), "key")
            assert (found.code, found.layer, found.file) == ("folder-in-use", "a", str(written))
    opened_journal(FolderJob({"x": images}, {"a": out, "b": tmp_path / "more"}), "key")
    assert [path.name for path in out.iterdir()] == [JOURNAL]
    assert list((tmp_path / "more").iterdir()) == []
    opened_journal(FolderJob({"a": images, "b": images}, {"out": tmp_path / "again"}), "key")  # one folder feeds both


def test_what_an_image_is_called_and_when_it_is_finished(tmp_path: Path) -> None:
    image, mask = picture(tmp_path / "in" / "a.png"), picture(tmp_path / "mask.png")
    job = FolderJob({"mask": mask, "x": image.parent}, {"one": tmp_path / "1", "two": tmp_path / "2"}, kind=".npy")
    frame, other = Frame(0, "a", {"mask": mask, "x": image}), Frame(1, "b", {"mask": mask, "x": image})
    assert source_of(frame, job) == str(image)
    assert targets_of(frame, job) == [tmp_path / "1" / "a.npy", tmp_path / "2" / "a.npy"]
    journal = opened_journal(job, "key")
    journal.add(frame)
    journal = Journal(tmp_path / "1", "key")
    assert unfinished([frame, other], job, journal) == [frame, other]
    targets_of(frame, job)[0].touch()
    assert unfinished([frame, other], job, journal) == [frame, other]
    targets_of(frame, job)[1].touch()
    assert unfinished([frame, other], job, journal) == [other]
    check_usable({"a": "why"}, [frame, other])
    check_usable({}, [])
    found = refusal(check_usable, {"a": "the first", "b": "the second"}, [frame, other])
    assert (found.code, found.message) == ("no-images", "no image can be used: the first")
    (skipped,) = skipped_files({"a.png": "it is broken"})
    assert (skipped.code, skipped.message, skipped.file) == ("skipped", "it is broken", "a.png")
    assert skipped.remedy == "repair the file and repeat the command"


# --- folders -------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The calls of a job in order; one thread reads and writes."""
    found: Log = []
    for module in (folder_job, video_job):
        monkeypatch.setattr(module, "Animation", listed_animation(found))
        monkeypatch.setattr(module, "noise_layers", lambda inference: {"noise": "n"})
        monkeypatch.setattr(
            module, "provenance", lambda *each, **more: SimpleNamespace(comment=lambda: f"{each[0]} {more}")
        )
        monkeypatch.setattr(module, "Sources", listed_sources([] if module is folder_job else found))
    monkeypatch.setattr(folder_job, "physical_cores", lambda: 1)
    return found


def numbered(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    return folder


def test_every_step_of_a_job_on_folders(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    images = numbered(tmp_path / "in", "1.png", "2.npy", "200.png", "broken.png", "3.png")
    order = ["1.png", "2.npy", "3.png", "200.png", "broken.png"]
    job = FolderJob({"x": images}, {"x_out": tmp_path / "out", "y_out": tmp_path / "more"}, kind=".npy")
    written: Log = []

    def write(path: Path, array: np.ndarray, comment: str) -> None:
        written.append((path, float(array.flat[0]), comment))
        path.touch()

    class Session(ListedSession):
        def run(self) -> Any:
            found = super().run()
            found.outputs["y_out"] = found.outputs["x_out"] * 2
            return found

    monkeypatch.setattr(folder_job, "write_array", write)
    said: Log = []
    done = process_folders(Session(log), job, "key", lambda *each: said.append(each))
    stems = [Path(name).stem for name in order]
    assert said == [(number, 5, stem) for number, stem in enumerate(stems)]
    assert log == [
        ("input", "x", 1.0, True), ("show", 0), ("run", "", {"x": 1.0}),
        ("input", "x", 2.0, False), ("show", 1), ("run", "", {"x": 2.0}),
        ("input", "x", 3.0, True), ("show", 2), ("run", "", {"x": 3.0}),
        ("input", "x", 200.0, True), ("show", 3), ("run", "", {"x": 200.0}),
    ]  # fmt: skip
    assert (done.written, done.before, done.notes) == (3, 0, ("sum 1", "sum 2", "sum 3"))
    assert done.skipped == {str(images / "200.png"): "first", str(images / "broken.png"): "it is broken"}
    assert done.seconds > 0
    comment = "net {'noise': 'n'}"
    assert written == [
        (tmp_path / folder / f"{value}.npy", times * (value + 1.0), comment)
        for value in (1, 2, 3)
        for folder, times in (("out", 1), ("more", 2))
    ]
    finished = [json.loads(line)["name"] for line in (tmp_path / "out" / JOURNAL).read_text().splitlines()[1:]]
    assert finished == ["1", "2", "3"]
    log.clear(), said.clear(), written.clear()
    done = process_folders(Session(log), job, "key", lambda *each: said.append(each))
    assert (done.written, done.before, len(done.skipped), done.notes) == (0, 3, 2, ())
    assert said == [(3, 5, "200"), (4, 5, "broken")]
    assert [each for each in log if each[0] == "show"] == [("show", 3)]  # the number of the image, not of the run
    job = FolderJob(job.inputs, job.outputs, 3, None, ".npy")
    assert refusal(process_folders, Session(log), job, "key").message == "no image can be used: first"


def test_a_long_job_reads_little_ahead_and_says_early_what_is_finished(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of images that were run, at most AHEAD wait to be written and are not in the journal yet."""
    count = 4 * AHEAD
    images = numbered(tmp_path / "in", *(f"{number}.png" for number in range(count)))
    read: Log = []
    monkeypatch.setattr(folder_job, "Sources", listed_sources(read))
    monkeypatch.setattr(folder_job, "write_array", lambda path, array, comment: None)
    known: list[int] = []

    def look(done: int, total: int, name: str) -> None:
        known.append(len((tmp_path / "out" / JOURNAL).read_text().splitlines()) - 1)
        assert len(read) <= done + AHEAD + 1

    done = process_folders(ListedSession(log), FolderJob({"x": images}, {"x_out": tmp_path / "out"}), "key", look)  # type: ignore[arg-type]
    assert known == [max(0, number - AHEAD) for number in range(count)]
    assert (done.written, len(read)) == (count, count)


def test_a_result_is_in_the_journal_when_all_of_its_files_are_written(tmp_path: Path) -> None:
    images = numbered(tmp_path / "in", *(f"{number}.png" for number in range(AHEAD + 2)))
    job = FolderJob({"x": images}, {"a": tmp_path / "out"})
    journal = opened_journal(job, "key")
    run = folder_job._FolderRun.__new__(folder_job._FolderRun)
    run.written, run._journal, run._writing = 0, journal, folder_job.deque()
    writing: list[Future[None]] = [Future() for _ in range(4)]
    frame = [Frame(number, f"{number}", {"x": images / f"{number}.png"}) for number in range(2)]
    run._writing.extend(((frame[0], writing[:2]), (frame[1], writing[2:])))
    run.finish(2)
    assert run.written == 0
    writing[0].set_result(None)
    writing[1].set_exception(DiagnosticError.of("cannot-save", "the disk is full", remedy="none"))
    assert refusal(run.finish, 1).message == "the disk is full"
    assert (run.written, Journal(tmp_path / "out", "key").finished) == (0, {})
    for future in writing[2:]:
        future.set_result(None)
    run.finish(0)
    assert (run.written, [*Journal(tmp_path / "out", "key").finished]) == (1, ["1"])


def test_sessions_are_timed_image_by_image(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    images = numbered(tmp_path / "in", "1.png", "200.png", "2.png", "broken.png", "3.npy")
    clock = count()
    spent = {"one": 0.5, "other": 0.25}
    now = [0.0]

    def run(session: ListedSession) -> Any:
        now[0] += spent[session.name]
        return ListedSession.run(session)

    monkeypatch.setattr(folder_job, "perf_counter", lambda: now[0] + 0 * next(clock))
    sessions: Any = {name: type("Session", (ListedSession,), {"run": run})(log, name) for name in spent}
    said: Log = []
    found = throughput(sessions, FolderJob({"x": images}, {}), lambda *each: said.append(each))
    assert [(one.title, one.images, one.seconds) for one in found] == [("one", 3, 1.5), ("other", 3, 0.75)]
    assert [(one.rate, one.seconds_of_many) for one in found] == [(2.0, 250.0), (4.0, 125.0)]
    assert said == [(n, 5, name) for n, name in enumerate(("1", "2", "3", "200", "broken"))]
    rounds = [
        [("invalidate", name), ("input", "x", value, value != 3), ("run", name, {"x": value})]
        for value, names in ((1.0, "one other one other"), (2.0, "one other"), (3.0, "one other"), (200.0, "one"))
        for name in names.split()
    ]
    assert log == [each for part in rounds for each in part]  # the first image warms up; a refused one ends at once
    job = FolderJob({"x": images}, {}, start=3)
    assert refusal(throughput, sessions, job).message == "no image can be used: first"


def test_a_network_that_only_one_session_can_run_is_not_timed(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = count()
    monkeypatch.setattr(folder_job, "perf_counter", lambda: float(next(now)))
    images = numbered(tmp_path / "in", "1.png", "2.png")

    def fails_at_two(session: ListedSession) -> Any:
        if session.inputs["x"].flat[0] == 2:
            raise DiagnosticError.of("bad", "it fails", remedy="none")
        return ListedSession.run(session)

    sessions: Any = {
        "a": ListedSession(log, "a"),
        "b": type("Session", (ListedSession,), {"run": fails_at_two})(log, "b"),
    }
    found = throughput(sessions, FolderJob({"x": images}, {}))
    assert [(one.title, one.images, one.seconds) for one in found] == [("a", 1, 1.0), ("b", 1, 1.0)]


# --- inputs that have frames ---------------------------------------------------------------------------------------


@pytest.fixture
def playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Playing, Log, SharedFolder]:
    log: Log = []
    infos = {"a.mp4": SourceInfo("video", 9, 25.0, 640, 480), "camera:0": SourceInfo("camera", 0, 30.0, 320, 200)}
    monkeypatch.setattr(frames, "Sources", listed_sources(log, infos))
    (tmp_path / "shared").mkdir()
    shared = SharedFolder(tmp_path / "shared")
    return Playing(shared), log, shared


class FedSession(ListedSession):
    """The network reads another shape than that of the file."""

    def fed_input(self, layer: str) -> tuple[Any, Any]:
        return self.inputs[layer], np.zeros((1, 3, 8, 16))

    def set_input_file(self, layer: str, path: Path) -> None:
        self.inputs[layer] = tensor(1)
        self.log.append(("file", layer, str(path)))


def test_sources_stay_open_while_they_feed_an_input(playing: tuple[Playing, Log, SharedFolder]) -> None:
    found, log, shared = playing
    session: Any = FedSession([])

    def feed(layer: str, path: str, **more: Any) -> Any:
        log.clear()
        return found.feed(session, SetInputRequest(layer, path, **more))

    reply = feed("a", "a.mp4", frame=4, preview=True)
    assert log == [("take", "a.mp4", None, 4)]
    assert (reply.shape, reply.frame, reply.fps, reply.range) == ((1, 3, 8, 16), 4, 0.0, None)
    assert shared.get(reply.preview).shape == (2, 3, 3)
    reply = feed("b", "camera:0")
    assert log == [("take", "camera:0", None, None)]
    assert (reply.frame, reply.fps, reply.preview) == (57, 12.5, None)
    feed("a", "a.mp4", frame=5)
    assert log == [("take", "a.mp4", None, 5)]  # nothing is closed
    feed("a", "x.png")
    assert log == [("release", ["camera:0", "x.png"])]
    assert session.log[-1] == ("file", "a", "x.png")
    feed("c", "camera:0")
    log.clear()
    found.release(ReleaseInputRequest("b"))
    found.release(ReleaseInputRequest("nothing"))
    assert log == [("release", ["camera:0", "x.png"])] * 2  # c still has the camera
    log.clear()
    found.only({"a": 1, "b": 2}.keys())
    assert log == [("release", ["x.png"])]
    log.clear()
    found.only(())
    assert log == [("release", [])]


def test_a_description_closes_what_nothing_is_fed_from(
    playing: tuple[Playing, Log, SharedFolder], tmp_path: Path
) -> None:
    found, log, shared = playing
    session: Any = FedSession([])
    found.feed(session, SetInputRequest("a", "a.mp4", frame=0))
    for path, frame, size in (("a.mp4", 3, (640, 480)), ("camera:0", 2, (320, 200))):
        log.clear()
        reply = found.describe(DescribeInputRequest(path, frame))
        assert log == [("info", path), ("take", path, None, frame), ("release", ["a.mp4"])]
        assert (reply.info.width, reply.info.height) == size  # of the source, not of the thumbnail
        assert shared.get(reply.preview).shape == (2, 3, 3)
        log.clear()
        assert found.describe(DescribeInputRequest(path, preview=False)).preview is None
        assert log == [("info", path), ("release", ["a.mp4"])]
    (tmp_path / "broken.png").write_text("no image")
    log.clear()
    assert refusal(found.describe, DescribeInputRequest(str(tmp_path / "broken.png"))).code
    assert log == [("info", str(tmp_path / "broken.png")), ("release", ["a.mp4"])]


def test_thumbnails_fit_in_a_wide_rectangle(playing: tuple[Playing, Log, SharedFolder]) -> None:
    found, _, shared = playing
    for height, width, expected in ((144, 192, (144, 192)), (145, 192, (73, 96)), (144, 193, (72, 97))):
        assert shared.get(found._thumbnail(np.zeros((2, 3, height, width), np.float32))).shape[:2] == expected


# --- videos --------------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, log: Log, note: str) -> None:
        self.log, self.note = log, note

    def write(self, array: Any, name: str) -> None:
        self.log.append(("write", float(array.flat[0]), name))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.log.append(("close", kind))


@pytest.fixture
def videos(log: Log, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Videos a.mp4 of 4 and b.mp4 of 3 frames, and what is written."""
    infos = {
        "a.mp4": SourceInfo("video", 4, 12.0), "two.mp4": SourceInfo("video", 2, 10.0), "b.mp4": SourceInfo("video", 3, 30.0, variable=True),
        "f": SourceInfo("folder", 5, names=("k.png", "l.tif", "m.n.png", "o.png", "p.png")), "5.png": SourceInfo("image"),
    }  # fmt: skip
    monkeypatch.setattr(video_job, "Sources", listed_sources(log, infos))
    monkeypatch.setattr(
        video_job, "VIDEOS", SimpleNamespace(writer=lambda path: lambda *each: made(log, "video", each, "dropped"))
    )
    monkeypatch.setattr(video_job, "FolderWriter", lambda *each: made(log, "folder", each, ""))
    return log


def made(log: Log, kind: str, each: tuple[Any, ...], note: str) -> Writer:
    log.append((kind, *each))
    return Writer(log, note)


def test_every_step_of_a_job_on_videos(videos: Log) -> None:
    said: Log = []
    inputs = {"x": Path("f"), "y": Path("5.png"), "z": Path("a.mp4")}
    outputs = {"x_out": Path("out.mkv"), "z_out": Path("out")}
    job = VideoJob(inputs, outputs, 1, 3, 0.0, "ffv1", 80, ".npy", "0f")
    done = process(ListedSession(videos), job, lambda *each: said.append(each))  # type: ignore[arg-type]
    assert said == [(0, 2, "frame 1"), (1, 2, "frame 2"), (2, 2, "")]
    assert videos == [
        ("info", "f"), ("info", "5.png"), ("info", "a.mp4"),
        ("video", Path("out.mkv"), 12.0, "ffv1", 80, "0f"), ("folder", Path("out"), ".npy", "0f", "net {'noise': 'n'}"),
        ("take", "f", None, 1), ("input", "x", 1.0, True), ("take", "5.png", None, 1), ("input", "y", 1.0, True),
        ("take", "a.mp4", None, 1), ("input", "z", 1.0, True),
        ("show", 1), ("run", "", {"x": 1.0, "y": 1.0, "z": 1.0}), ("write", 2.0, "l"), ("write", 2.0, "l"),
        ("take", "f", None, 2), ("input", "x", 2.0, True), ("take", "a.mp4", None, 2), ("input", "z", 2.0, True),
        ("show", 2), ("run", "", {"x": 2.0, "y": 1.0, "z": 2.0}), ("write", 3.0, "m.n"), ("write", 3.0, "m.n"),
        ("close", None), ("close", None), ("show", 0), ("release", []),
    ]  # fmt: skip
    assert (done.frames, done.fps) == (2, 12.0)
    assert done.seconds > 0
    assert done.notes == (
        "the inputs have different numbers of frames (x 5, z 4); the shortest one determines the length", "dropped", "sum 5"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "fps", "found", "notes"),
    [
        (["b.mp4"], 0.0, 30.0, ["the video has a variable frame rate; it is written at 30 frames per second"]),
        (["b.mp4"], 50.0, 50.0, []),
        (["f"], 0.0, 25.0, []),
        (["5.png", "a.mp4"], 0.0, 12.0, []),
    ],
)
def test_the_rate_of_a_video(videos: Log, inputs: list[str], fps: float, found: float, notes: list[str]) -> None:
    job = VideoJob({f"i{n}": Path(name) for n, name in enumerate(inputs)}, {"i0_out": Path("o")}, fps=fps)
    done = process(ListedSession(videos), job)  # type: ignore[arg-type]
    assert done.fps == found
    assert [note for note in done.notes if "rate" in note] == notes


def test_two_frames_are_a_video_and_a_note_of_several_files_is_given_once(videos: Log) -> None:
    inputs = {"x": Path("two.mp4"), "y": Path("b.mp4")}
    job = VideoJob(inputs, {"x_out": Path("x.mkv"), "y_out": Path("y.mkv")})
    done = process(ListedSession(videos), job)  # type: ignore[arg-type]
    taken = [each for each in videos if each[0] in ("take", "write")]
    assert taken == [
        ("take", "two.mp4", None, 0), ("take", "b.mp4", None, 0), *(("write", 1.0, "frame_00000"),) * 2,
        ("take", "two.mp4", None, 1), ("take", "b.mp4", None, 1), *(("write", 2.0, "frame_00001"),) * 2,
    ]  # fmt: skip
    assert (done.frames, done.fps) == (2, 10.0), "the rate of the first video"
    assert done.notes == (
        "the inputs have different numbers of frames (x 2, y 3); the shortest one determines the length",
        "the video has a variable frame rate; it is written at 10 frames per second",
        "dropped",
        "sum 2",
    )


def test_a_video_that_fails_closes_everything(videos: Log) -> None:
    job = VideoJob({"x": Path("a.mp4")}, {"x_out": Path("o.mkv")})

    class Fails(ListedSession):
        def run(self) -> Any:
            raise DiagnosticError.of("bad", "it fails", remedy="none")

    assert refusal(process, Fails(videos), job).message == "it fails"
    assert videos[-3:] == [("close", DiagnosticError), ("show", 0), ("release", [])]
    videos.clear()
    found = refusal(process, Fails(videos), VideoJob({"x": Path("a.mp4"), "y": Path("camera:0")}, {"x_out": Path("o")}))
    assert (found.code, found.message) == ("no-end", "the input 'y' is a camera, which has no end")
    assert videos == []


@pytest.mark.parametrize(("start", "stop", "part"), [(4, None, 4), (2, 2, 2), (9, 7, 7)])
def test_a_range_without_frames_is_named(start: int, stop: int | None, part: int) -> None:
    found = refusal(
        video_job._range, VideoJob({}, {}, start, stop), {"a": SourceInfo("video", 4), "b": SourceInfo("folder", 6)}, []
    )
    assert found.message == f"the range from {start} to before {part} has no frames; the input has 4"
    assert found.remedy == "choose a start from 0 to 3 and an end after it"
