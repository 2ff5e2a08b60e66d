"""Videos and folders through a network by the command line and the engine process: each frame is what `run` gives for it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")

from engine_peer import Peer
from video_files import make_uneven_video, make_video, picture_of

from app.cli import main as cli
from app.engine.folder_job import JOURNAL
from app.engine.protocol import (
    DescribeInputRequest,
    ExportVideoRequest,
    ReleaseInputRequest,
    RunRequest,
    SetInputRequest,
)
from app.engine.video_job import VideoJob, _range, process
from designer.files.document import parse_document
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.operators.registry import default_registry
from designer.runtime.api import RunOptions
from designer.runtime.images import to_uint8, write_image
from designer.runtime.session import Session
from designer.runtime.sources import SourceInfo
from designer.runtime.video import VideoReader

ROOT = Path(__file__).parents[2]
NETWORK = """<?xml version="1.0"?>
<NetworkModel name="two" version="2" user_version_tag="1">
	<Layer name="conv" type="convolution" edit_pos="160,0" input="clip">
		<Parameters apply_bias="true" features="3" kernel="3x3" padding="same" padding_tuple="0x0" stride="1x1" />
	</Layer>
	<Layer name="clip" type="input" edit_pos="0,0">
		<Parameters dims="64x48x3" rgba="false" scale="1.0" shift="0" tiling="0" />
	</Layer>
	<Layer name="still" type="input" edit_pos="0,90">
		<Parameters dims="64x48x3" rgba="false" scale="1.0" shift="0" tiling="0" />
	</Layer>
	<Layer name="mix" type="mix" edit_pos="320,0" input="conv,still">
		<Parameters amount="0.5" recipe="a * (1 - alpha) + b * alpha" selection="blend" />
	</Layer>
	<Layer name="out" type="output" edit_pos="480,0" input="mix" />
</NetworkModel>
"""


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "two.xml"
    path.write_text(NETWORK)
    return path


@pytest.fixture
def still(tmp_path):
    write_image(tmp_path / "still.png", np.random.default_rng(5).random((1, 3, 48, 64), np.float32))
    return tmp_path / "still.png"


def session_of(text: str = NETWORK) -> Session:
    graph = parse_document(text.encode()).graph
    registry = default_registry()
    needed = required_weights(Inference(graph, registry))
    return Session(graph, registry, fill_missing(Weights(), needed, 3), RunOptions(threads=1))


def expected(session, still, index):
    session.set_input(
        "clip", picture_of(index).astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255), is_image=True
    )
    session.set_input_file("still", still)
    return session.run().outputs["out"]


def layerwright(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


COMMON = ("--random-weights", 3, "--threads", 1)


def test_each_frame_of_a_lossless_result_is_what_run_gives(tmp_path, network, still, monkeypatch, capsys):
    clip = make_video(tmp_path / "clip.mkv", 7)
    code, out, err = layerwright(
        monkeypatch, capsys, "run", network, *COMMON,
        "--input", f"clip={clip}", "--input", f"still={still}", "--output", f"out={tmp_path / 'made.mkv'}",
    )  # fmt: skip
    assert code == 0, err
    assert "7 frames at 25 frames per second" in out
    session = session_of()
    with VideoReader(tmp_path / "made.mkv") as made:
        assert (made.info.frames, made.info.fps) == (7, 25.0)
        for index, frame in enumerate(made.frames()):
            np.testing.assert_array_equal(frame, to_uint8(expected(session, still, index)))


def test_a_range_with_a_rate_and_a_codec(tmp_path, network, still, monkeypatch, capsys):
    clip = make_video(tmp_path / "clip.mkv", 9)
    code, _, err = layerwright(
        monkeypatch, capsys, "video", network, *COMMON, "--from", 2, "--to", 5, "--fps", 10, "--codec", "mjpeg",
        "--quality", 95, "--input", f"clip={clip}", "--input", f"still={still}",
        "--output", f"out={tmp_path / 'made.avi'}",
    )  # fmt: skip
    assert code == 0, err
    session = session_of()
    with VideoReader(tmp_path / "made.avi") as made:
        assert (made.info.frames, made.info.fps, made.info.codec) == (3, 10.0, "MJPG")
        for index, frame in enumerate(made.frames()):
            wanted = to_uint8(expected(session, still, index + 2)).astype(float)
            light = np.array([0.299, 0.587, 0.114])  # colours have half the size in such a file, brightness has not
            assert np.abs((frame - wanted) @ light).mean() < 6


def test_a_folder_keeps_the_names_of_its_pictures(tmp_path, network, still, monkeypatch, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    for index, name in enumerate(["a10.png", "a2.png", "b.png"]):
        write_image(folder / name, picture_of(index).astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255))
    (folder / "notes.txt").write_text("no picture")
    code, out, err = layerwright(
        monkeypatch, capsys, "video", network, *COMMON, "--npy",
        "--input", f"clip={folder}", "--input", f"still={still}", "--output", f"out={tmp_path / 'made'}",
    )  # fmt: skip
    assert code == 0, err
    assert "3 images at" in out
    assert sorted(os.listdir(tmp_path / "made")) == ["a10.npy", "a2.npy", "b.npy", JOURNAL]
    session = session_of()
    for index, name in enumerate(["a10", "a2", "b"]):
        np.testing.assert_array_equal(np.load(tmp_path / "made" / f"{name}.npy"), expected(session, still, index))


def test_what_is_refused_leaves_nothing(tmp_path, network, still, monkeypatch, capsys):
    clip = make_video(tmp_path / "clip.mkv", 4)
    before = sorted(os.listdir(tmp_path))

    def refused(*more):
        code, _, err = layerwright(monkeypatch, capsys, "video", network, *COMMON, "--input", f"still={still}", *more)
        assert code == 1
        assert sorted(os.listdir(tmp_path)) == before
        return err

    assert "the input has 4" in refused("--input", f"clip={clip}", "--output", f"out={tmp_path / 'a.mkv'}", "--from", 4)
    assert "has no end" in refused("--input", "clip=camera:97", "--output", f"out={tmp_path / 'a.mkv'}")
    assert "use .mp4, .mkv, .webm, .avi or .mov, or a folder of" in refused(
        "--input", f"clip={clip}", "--output", f"out={tmp_path / 'a.gif'}"
    )
    assert "cannot contain" in refused(
        "--input", f"clip={clip}", "--output", f"out={tmp_path / 'a.webm'}", "--codec", "ffv1"
    )
    (tmp_path / "broken.mp4").write_text("hello")
    before = sorted(os.listdir(tmp_path))
    assert "not a supported video" in refused(
        "--input", f"clip={tmp_path / 'broken.mp4'}", "--output", f"out={tmp_path / 'a.mkv'}"
    )


def test_an_odd_end_is_told(tmp_path, still):
    """Inputs of different lengths, and frames that last differently long."""
    session = session_of()
    first = make_video(tmp_path / "a.mkv", 9)
    second = make_uneven_video(tmp_path / "b.mkv", [0, 1, 2, 9, 10, 30])
    done = process(session, VideoJob({"clip": first, "still": second}, {"out": tmp_path / "made.mkv"}))
    assert done.frames == 6
    assert any("clip 9, still 6" in note for note in done.notes)
    assert any("variable frame rate" in note for note in done.notes)
    with pytest.raises(DiagnosticError, match="none of the inputs"):
        process(session, VideoJob({"clip": still, "still": still}, {"out": tmp_path / "made.mkv"}))


@pytest.mark.parametrize(
    ("start", "stop", "frames"),
    [
        (0, None, range(3)),
        (1, 2, range(1, 2)),
        (2, 9, range(2, 3)),
        (-1, 2, "from -1 to before 2"),
        (3, None, "from 3 to before 3"),
        (1, 1, "from 1 to before 1"),
        (3, 9, "from 3 to before 9"),
    ],
)
def test_the_frames_of_a_folder_and_a_video(start, stop, frames):
    """The shorter one counts, whichever it is; an image has no end."""
    infos = {"a": SourceInfo("folder", 3), "b": SourceInfo("video", 5), "c": SourceInfo("image", 1)}
    for lengths in (infos, {"a": SourceInfo("folder", 3)}, {"a": SourceInfo("video", 3), "b": SourceInfo("folder", 5)}):
        notes: list[str] = []
        job = VideoJob({}, {}, start=start, stop=stop)
        if isinstance(frames, range):
            assert _range(job, lengths, notes) == frames
        else:
            with pytest.raises(DiagnosticError, match=frames) as refused:
                _range(job, lengths, notes)
            assert refused.value.diagnostics[0].remedy == "choose a start from 0 to 2 and an end after it"
        assert len(notes) == (len(lengths) > 1)


def test_a_fault_halfway_keeps_the_old_video(tmp_path, still):
    session = session_of()
    clip = make_video(tmp_path / "clip.mkv", 6)
    (tmp_path / "made.mkv").write_bytes(b"old")
    seen = []

    def stop(done, total, text):
        seen.append((done, total))
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process(session, VideoJob({"clip": clip, "still": still}, {"out": tmp_path / "made.mkv"}), stop)
    assert seen == [(0, 6), (1, 6), (2, 6), (3, 6)]
    assert (tmp_path / "made.mkv").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["clip.mkv", "made.mkv", "still.png"]


@pytest.fixture
def peer(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    peer = Peer(folder)
    yield peer
    peer.close()


def test_the_engine_process_plays(tmp_path, still, peer):
    clip = make_video(tmp_path / "clip.mkv", 6, fps=30)
    reported = peer.ask(DescribeInputRequest(str(clip), 2))
    assert (reported.info.kind, reported.info.frames, reported.info.fps, reported.info.width) == ("video", 6, 30.0, 64)
    np.testing.assert_array_equal(peer.take(reported.preview), picture_of(2))
    assert peer.open(NETWORK, seed=3).report
    assert peer.ask(SetInputRequest("still", str(still))).shape == (1, 3, 48, 64)
    session = session_of()
    for frame in (0, 1, 2, 5, 3):
        assert peer.ask(SetInputRequest("clip", str(clip), frame)).frame == frame
        made = peer.take(peer.ask(RunRequest()).outputs["out"])
        np.testing.assert_array_equal(made, expected(session, still, frame))
    assert peer.refused(SetInputRequest("clip", str(clip), 6)).code == "no-such-frame"
    assert list((tmp_path / "shared").iterdir()) == []


def test_the_engine_process_takes_a_camera(tmp_path, still, peer):
    device = make_video(tmp_path / "device.mkv", 5, fps=60)  # replaces a device
    peer.open(NETWORK, seed=3)
    first = peer.ask(SetInputRequest("clip", f"camera:{device}"))
    later = peer.ask(SetInputRequest("clip", f"camera:{device}"))
    assert later.frame > first.frame >= 1
    assert later.fps > 0
    missing = peer.refused(SetInputRequest("clip", "camera:97"))
    assert missing.code == "no-camera"
    assert "97" in missing.message
    peer.ask(ReleaseInputRequest("clip"))


def test_values_above_one_are_told(tmp_path, peer):
    array = np.linspace(-1, 6, 3 * 48 * 64, dtype=np.float32).reshape(1, 3, 48, 64)
    np.save(tmp_path / "a.npy", array)
    peer.open(NETWORK, seed=3)
    assert peer.ask(SetInputRequest("clip", str(tmp_path / "a.npy"))).range == (-1.0, 6.0)


def test_a_video_is_exported_by_the_engine_process(tmp_path, still, peer):
    clip = make_video(tmp_path / "clip.mkv", 6)
    peer.open(NETWORK, seed=3)
    inputs = {"clip": str(clip), "still": str(still)}
    reply = peer.ask(ExportVideoRequest(inputs, {"out": str(tmp_path / "made.mkv")}, 1, 4))
    assert reply.frames == 3
    session = session_of()
    with VideoReader(tmp_path / "made.mkv") as made:
        np.testing.assert_array_equal(made.read(2), to_uint8(expected(session, still, 3)))
    wrong = peer.refused(ExportVideoRequest(inputs, {"out": str(tmp_path / "none" / "made.mkv")}))
    assert wrong.code == "cannot-write-video"
