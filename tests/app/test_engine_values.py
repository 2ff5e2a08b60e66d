"""Values by hand of the jobs of the engine process: phases of training, frames of videos and folders, and replies."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

from app.engine import queries, runs
from app.engine.folder_job import FolderJob, Frame, Journal, Throughput, frames_of, is_folder_job, job_key, prefetched
from app.engine.frames import Playing
from app.engine.protocol import DescribeInputRequest, ReleaseInputRequest, SetInputRequest
from app.engine.runs import Progress, Runs
from app.engine.training_profile import _roofs, training_step
from app.engine.video_job import VideoJob, _name, _range, moves
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.operators.deploy import deploy
from designer.operators.registry import default_registry
from designer.profiling.quantities import measured, unavailable
from designer.profiling.schema import RunPeaks
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image, write_npy
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder
from designer.runtime.sources import SourceInfo

RNG = np.random.default_rng(5)

# --- training ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "step", "roofs", "verdict", "reason"),
    [
        (30.0, 100.0, (9.0, 8.0), "input", "30.0 % of the step"),
        (29.0, 100.0, (9.0, 8.0), "compute", "peak take 9.00 ms, bytes 8.00 ms"),
        (29.0, 100.0, (8.0, 9.0), "memory", "peak take 8.00 ms, bytes 9.00 ms"),
        (29.0, 100.0, (9.0, 9.0), "compute", ""),
        (29.0, 130.0, (9.0, 8.0), "waiting", "30.0 % of the step"),  # 39 of 130 ms
        (29.0, 128.0, (9.0, 8.0), "compute", ""),
    ],
)
def test_what_bounds_a_training_step(data, step, roofs, verdict, reason):
    times = {"data": data, "forward": 20.0, "backward": 32.0, "optimizer": 10.0, "step": step}
    found = training_step(times, 7, *roofs)
    assert (found.batch, found.step_ms, found.data_ms, found.forward_ms, found.backward_ms, found.optimizer_ms) == (
        7, step, data, 20.0, 32.0, 10.0
    )  # fmt: skip
    assert found.waiting_ms == pytest.approx(step - data - 62.0)
    assert found.verdict == verdict
    assert reason in found.reason


def test_phases_that_overlap_leave_no_waiting():
    times = {"data": 10.0, "forward": 40.0, "backward": 50.0, "optimizer": 10.0, "step": 100.0}
    assert training_step(times, 1, 1.0, 0.0).waiting_ms == 0.0


def network(**image) -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3", **image}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x1"}),
            Layer("result", "output", inputs=(Source("conv"),)),
        ],
        name="net",
    )


def test_the_backward_pass_is_twice_the_forward_pass():
    inference = Inference(network(), default_registry())
    peaks = RunPeaks(measured(1e9), measured(1e6), measured(9e9))
    flops = 2 * 5 * 32 * 2 * 3
    moved = 4 * 5 * 32 * (3 + 2 + 3 + 2 + 2) + 4 * (6 + 2)  # the input and the output layer count too
    compute_ms, memory_ms = _roofs(inference, 5, peaks)
    assert compute_ms == pytest.approx(3 * flops / 1e6)
    assert memory_ms == pytest.approx(3 * moved / 1e3)
    unknown = replace(peaks, flops_per_s=unavailable("x"), memory_bytes_per_s=unavailable("x"))
    assert _roofs(inference, 5, unknown) == (0.0, 0.0)


# --- videos and folders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop", "found"),
    [(0, None, range(7)), (3, None, range(3, 7)), (2, 5, range(2, 5)), (2, 99, range(2, 7)), (6, 7, range(6, 7))],
)
def test_frames_end_with_the_shortest_input(start, stop, found):
    infos = {"a": SourceInfo("video", 9), "b": SourceInfo("folder", 7), "c": SourceInfo("image", 1)}
    notes: list[str] = []
    assert _range(VideoJob({}, {}, start, stop), infos, notes) == found
    (note,) = notes
    assert "(a 9, b 7)" in note
    del infos["b"]
    notes.clear()
    _range(VideoJob({}, {}, 0, None), infos, notes)
    assert notes == []


@pytest.mark.parametrize(("start", "stop"), [(7, None), (-1, None), (3, 3), (4, 2)])
def test_a_range_without_frames(start, stop):
    with pytest.raises(DiagnosticError, match="no-frames"):
        _range(VideoJob({}, {}, start, stop), {"a": SourceInfo("video", 7)}, [])
    with pytest.raises(DiagnosticError, match="none of the inputs"):
        _range(VideoJob({}, {}), {"a": SourceInfo("image", 1)}, [])


def test_results_are_named_like_the_first_folder():
    infos = {"a": SourceInfo("video", 3), "b": SourceInfo("folder", 2, names=("x.tar.png", "y.jpg"))}
    assert [_name(infos, frame) for frame in (0, 1)] == ["x.tar", "y"]
    assert _name({"a": infos["a"]}, 42) == "frame_00042"


def folder_of(path: Path, *names: str) -> Path:
    path.mkdir()
    for number, name in enumerate(names):
        write_image(path / name, RNG.random((1, 3, 4 + number, 8), np.float32))
    return path


def test_images_of_several_folders_go_together(tmp_path):
    one = folder_of(tmp_path / "one", "a.png", "b.jpg", "b.png", "c.png")
    other = folder_of(tmp_path / "other", "1.png", "2.png", "3.png")
    single = one / "a.png"
    job = FolderJob({"x": one, "y": other, "z": single}, {"out": tmp_path / "out"})
    found = frames_of(job)
    assert [(frame.number, frame.name) for frame in found] == [(0, "a"), (1, "b_00001"), (2, "b_00002")]
    assert found[1].files == {"x": one / "b.jpg", "y": other / "2.png", "z": single}
    assert [frame.number for frame in frames_of(replace(job, start=1, stop=2))] == [1]
    assert [frame.name for frame in frames_of(replace(job, start=2))] == ["b_00002"]
    with pytest.raises(DiagnosticError, match="the folders have 3"):
        frames_of(replace(job, start=3))
    assert [list(map(str, data.result()["x"].array.shape[2:])) for _, data in prefetched(found, dict.fromkeys("xyz"))] == [
        ["4", "8"], ["5", "8"], ["6", "8"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "outputs", "found"),
    [
        (["folder"], ["out"], True),
        (["folder", "a.png"], ["out", "more"], True),
        (["a.png"], ["out"], False),
        (["folder", "a.mp4"], ["out"], False),
        (["folder", "camera:0"], ["out"], False),
        (["folder"], ["out", "x.mp4"], False),
    ],
)
def test_which_jobs_are_of_folders(tmp_path, inputs, outputs, found):
    (tmp_path / "folder").mkdir()
    paths = [Path(name) if ":" in name else tmp_path / name for name in inputs]
    assert is_folder_job(paths, [tmp_path / name for name in outputs]) is found
    assert [moves(path) for path in paths] == [path.suffix != ".png" for path in paths]


def test_a_journal_knows_files_by_size_and_time(tmp_path):
    image = folder_of(tmp_path / "in", "a.png") / "a.png"
    frame, pattern = Frame(0, "a", {"x": image}), Frame(1, "p", {"x": Path("pattern:noise")})
    journal = Journal(tmp_path / "out", "key")
    assert not journal.has(frame)
    journal.add(frame)
    journal.add(pattern)
    again = Journal(tmp_path / "out", "key")
    assert again.has(frame)
    assert again.has(pattern)
    assert not again.has(replace(frame, name="b"))
    image.write_bytes(image.read_bytes() + b"x")
    changed = Journal(tmp_path / "out", "key")
    assert not changed.has(frame)
    changed.add(frame)
    assert Journal(tmp_path / "out", "key").has(frame)
    with pytest.raises(DiagnosticError, match="folder-not-empty"):
        Journal(tmp_path / "out", "another key")


def session_of(**image) -> Session:
    weights = {("conv", "kernel"): RNG.random((2, 3, 1, 1), np.float32), ("conv", "bias"): np.zeros(2, np.float32)}
    from designer.files.weights import WeightKey

    made = Weights({WeightKey(*key): array for key, array in weights.items()})
    return Session(network(**image), default_registry(), made, RunOptions("torch", threads=1))


def test_results_depend_on_network_weights_and_configuration():
    session = session_of()
    keys = {job_key(session, "digest"), job_key(session, "other"), job_key(session_of(scale="2"), "digest")}
    options = session.options
    for change in (
        {"engine": "onnxruntime"},
        {"precision": "fp16"},
        {"layout": "nhwc"},
        {"formats": (("conv", "int8"),)},
    ):
        session.options = replace(options, **change)
        keys.add(job_key(session, "digest"))
    assert len(keys) == 7
    session.options = replace(options, threads=3)
    assert job_key(session, "digest") in keys
    noted = session_of()
    noted.set_weights(replace(noted.weights, note="random weights"))
    assert job_key(noted, "digest") not in keys
    assert job_key(session, "digest", Variant("half", "fp16", {"conv": "int8"})) == job_key(session, "digest")
    variant = Variant("small", "int8", calibration=CalibrationRecipe("photos"))
    recipes = (
        variant,
        replace(variant, formats={"conv": "float32"}),
        replace(variant, calibration=CalibrationRecipe("x")),
    )
    assert len({job_key(session, "digest", one) for one in recipes} - keys) == 3


def test_rates_of_many_images():
    found = Throughput("torch", 20, 5.0)
    assert (found.rate, found.seconds_of_many) == (4.0, 125.0)


# --- replies -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path) -> SharedFolder:
    (tmp_path / "shared").mkdir()
    return SharedFolder(tmp_path / "shared")


def test_the_range_of_deep_images_is_of_the_values_that_the_network_reads(tmp_path, shared):
    playing, session = Playing(shared), session_of(scale="2", shift="0.5", tiling="8")
    array = RNG.random((1, 3, 5, 6), np.float32) + 1
    array[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    array[0, 1, 1, 1], array[0, 2, 2, 2] = -3.0, 9.0
    write_npy(tmp_path / "a.npy", array)
    reply = playing.feed(session, SetInputRequest("image", str(tmp_path / "a.npy")))
    assert (reply.shape, reply.range, reply.frame, reply.preview) == ((1, 3, 8, 8), (-3.0, 9.0), None, None)
    write_image(tmp_path / "a.png", array[:, :, 1:])
    reply = playing.feed(session, SetInputRequest("image", str(tmp_path / "a.png")))
    assert (reply.shape, reply.range) == ((1, 3, 8, 8), None)
    write_npy(tmp_path / "nan.npy", np.full((1, 3, 5, 6), np.nan, np.float32))
    assert playing.feed(session, SetInputRequest("image", str(tmp_path / "nan.npy"))).range is None


def test_a_frame_of_a_folder_and_its_thumbnail(tmp_path, shared):
    folder = folder_of(tmp_path / "in", "a.png", "b.png", "c.png")
    playing, session = Playing(shared), session_of()
    reply = playing.feed(session, SetInputRequest("image", str(folder), frame=2, preview=True))
    assert (reply.shape, reply.frame, reply.fps) == ((1, 3, 6, 8), 2, 0.0)
    assert shared.get(reply.preview).shape == (6, 8, 3)
    assert playing.feed(session, SetInputRequest("image", str(folder), frame=1)).preview is None
    described = playing.describe(DescribeInputRequest(str(folder), frame=1, preview=True))
    info = described.info
    assert (info.kind, info.frames, info.names) == ("folder", 3, ("a.png", "b.png", "c.png"))
    assert (info.width, info.height) == (8, 5)
    assert shared.get(described.preview).shape == (5, 8, 3)
    assert playing.describe(DescribeInputRequest(str(folder), preview=False)).preview is None
    playing.release(ReleaseInputRequest("image"))


@pytest.mark.parametrize("shape", [(), (5,), (6, 8), (0, 3, 6, 8), (1, 2, 3, 6, 8)])
def test_a_tensor_that_is_not_an_image_has_no_thumbnail(tmp_path, shared, shape):
    folder = tmp_path / "in"
    folder.mkdir()
    write_npy(folder / "a.npy", np.zeros(shape, np.float32))
    for path in (folder / "a.npy", folder):
        found = Playing(shared).describe(DescribeInputRequest(str(path), preview=True))
        assert (found.preview, found.info.width, found.info.height) == (None, 0, 0)


def test_a_folder_of_tensors_feeds_an_input_without_a_thumbnail(tmp_path, shared):
    layers = [
        Layer("table", "tensor_input", params={"shape": "5"}),
        Layer("out", "output", inputs=(Source("table"),)),
    ]
    session = Session(Graph(layers), default_registry(), Weights(), RunOptions("torch", threads=1))
    folder = tmp_path / "in"
    folder.mkdir()
    write_npy(folder / "a.npy", np.zeros((2, 5), np.float32))
    reply = Playing(shared).feed(session, SetInputRequest("table", str(folder), frame=0, preview=True))
    assert (reply.shape, reply.frame, reply.preview) == ((2, 5), 0, None)


@pytest.mark.parametrize(("channels", "opacity"), [(1, False), (2, True), (3, False), (4, True)])
def test_an_image_with_opacity_is_described_as_such(tmp_path, shared, channels, opacity):
    write_image(tmp_path / "x.png", RNG.random((1, channels, 400, 300), np.float32))
    found = Playing(shared).describe(DescribeInputRequest(str(tmp_path / "x.png"), preview=True))
    assert (found.info.width, found.info.height, found.info.opacity) == (300, 400, opacity)
    assert shared.get(found.preview).shape == (134, 100, 3)  # every third pixel


def test_progress_is_reported_from_a_tenth_of_a_second(monkeypatch):
    moments = iter([10.0, 10.09, 10.1, 10.15, 10.19, 10.21, 10.25])
    monkeypatch.setattr(runs.time, "monotonic", lambda: next(moments))
    sent = []
    report = Progress(sent.append, 7)
    for done in range(6):
        report(done, 6, f"step {done}")
    assert [(event.done, event.total, event.text) for event in sent] == [(1, 6, "step 1"), (4, 6, "step 4")]


def test_handles_are_taken_back_if_one_cannot_be_written(shared, monkeypatch):
    found = Runs(shared)
    arrays = {"a": np.zeros(3, np.float32), "b": np.ones((2, 2), np.float32)}
    first, second = found.handed_over(arrays, {"c": np.full(1, 7, np.float32)})
    assert {name: shared.get(handle).tolist() for name, handle in (first | second).items()} == {
        "a": [0, 0, 0], "b": [[1, 1], [1, 1]], "c": [7]
    }  # fmt: skip
    before = set(shared.path.iterdir())
    put, full = shared.put, DiagnosticError.of("shared-memory", "full", remedy="free it")

    def fails(array):
        if array[0] == 9:
            raise full
        return put(array)

    monkeypatch.setattr(shared, "put", fails)
    with pytest.raises(DiagnosticError, match="full"):
        found.handed_over({"a": np.zeros(2, np.float32)}, {"b": np.full(1, 9, np.float32)})
    assert set(shared.path.iterdir()) == before


@pytest.mark.parametrize(("value", "plain"), [(nan, None), (inf, 999.0), (41.5, 41.5), (0.0, 0.0), (-3.0, -3.0)])
def test_numbers_in_replies_are_those_of_json(value, plain):
    assert queries._plain(value) == plain


def test_a_target_of_losses_is_not_fed_to_the_deployed_network():
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "4x3x1"}),
            Layer("target", "input", params={"dims": "4x3x1"}),
            Layer("result", "output", inputs=(Source("image"),)),
            Layer("loss", "mse_loss", inputs=(Source("image"), Source("target"))),
        ]
    )
    session = Session(graph, default_registry(), Weights(), RunOptions("torch", threads=1))
    for layer in ("image", "target"):
        session.set_input(layer, np.ones((1, 1, 3, 4), np.float32), is_image=True)
    other = Session(deploy(graph, default_registry()), default_registry(), Weights(), RunOptions("torch", threads=1))
    queries._compared(session, ()).feed(other)
    assert other.fed_layers() == ("image",)
