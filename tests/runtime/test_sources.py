"""Sources of inputs: which file or frame is read, how many stay open, and when they are closed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import layer, pixels

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.runtime import sources as module
from designer.runtime.images import write_image, write_npy
from designer.runtime.input_data import check_fed
from designer.runtime.network import operator_of
from designer.runtime.sources import SourceInfo, Sources, playlist
from designer.runtime.video import VideoInfo


def operator(registry, type_="input", **params):
    graph = Graph([layer("it", type_, **params)])
    return operator_of(Inference(graph, registry), "it")


@pytest.fixture
def folder(tmp_path) -> Path:
    for number in range(3):
        write_image(tmp_path / f"{number}.png", np.full((1, 3, 4, 6), number / 255, np.float32))
    return tmp_path


@pytest.mark.parametrize(("frame", "found"), [(None, 0), (0, 0), (2, 2), (7, 2), (-1, 0)])
def test_a_frame_of_a_folder_is_one_of_its_files(folder, frame, found):
    taken = Sources().take(folder, None, frame)
    assert (taken.frame, taken.is_image, taken.array.shape) == (found, True, (1, 3, 4, 6))
    assert round(float(taken.array[0, 0, 0, 0]) * 255) == found


def test_the_channels_and_sizes_are_those_of_the_input(runtime_registry, folder):
    gray = operator(runtime_registry, dims="5x7x1")
    assert Sources().take(folder / "0.png", gray).array.shape == (1, 1, 4, 6)
    assert Sources().take(Path("pattern:gradient"), gray).array.shape == (1, 1, 7, 5)
    assert Sources().take(Path("pattern:gradient"), None).array.shape == (1, 3, 256, 256)
    write_npy(folder / "last.npy", pixels(4, 6)[0].transpose(1, 2, 0))
    taken = Sources().take(folder / "last.npy", operator(runtime_registry, dims="6x4x3"))
    assert (taken.array.shape, taken.is_image) == ((1, 3, 4, 6), False)
    np.testing.assert_array_equal(taken.array, pixels(4, 6))


def test_tensors_have_the_type_of_their_input(runtime_registry, tmp_path):
    write_npy(tmp_path / "x.npy", np.array([[1.0, 2.0, 3.0]]))
    whole = operator(runtime_registry, "tensor_input", shape="3", dtype="int64")
    taken = Sources().take(tmp_path / "x.npy", whole)
    assert (taken.array.dtype, taken.array.shape, taken.is_image) == (np.int64, (1, 3), False)
    assert Sources().take(tmp_path / "x.npy", None).array.dtype == np.float32


class Reader:
    """A video of ten frames of 6 x 4 pixels in the color of their number, whose durations differ."""

    def __init__(self, path, opened):
        opened.append(self)
        self.path, self.open = path, True
        self.info = VideoInfo(10, 12.5, 6, 4, 0.8, "none", variable=True)

    def read(self, number):
        assert self.open
        return np.full((4, 6, 3), (number, 2 * number, 3 * number), np.uint8)

    def time(self, number):
        return number**2 / 100

    def close(self):
        self.open = False


@pytest.fixture
def opened(monkeypatch):
    found: list[Reader] = []
    monkeypatch.setattr(type(module.VIDEOS), "reader", lambda self, path: lambda path: Reader(path, found))
    return found


def test_a_video_and_its_frames(opened, tmp_path):
    sources, path = Sources(), tmp_path / "a.mp4"
    assert sources.info(path) == SourceInfo(
        "video", 10, 12.5, 6, 4, 0.8, "none", True, tuple(n**2 / 100 for n in range(10))
    )
    taken = sources.take(path, None, 5)
    assert (taken.frame, taken.is_image, taken.array.shape) == (5, True, (1, 3, 4, 6))
    np.testing.assert_allclose(taken.array[0, :, 0, 0] * 255, [5, 10, 15])
    assert sources.take(path, None).frame == 0
    assert len(opened) == 1


def test_only_a_video_whose_frames_differ_in_duration_has_times(opened, tmp_path):
    sources, path = Sources(), tmp_path / "a.mp4"
    reader = sources.video(path)
    reader.info = VideoInfo(10, 12.5, 6, 4, 0.8, "none", variable=False)
    assert sources.info(path) == SourceInfo("video", 10, 12.5, 6, 4, 0.8, "none")


def test_the_video_used_longest_ago_is_closed(opened, tmp_path):
    sources = Sources()
    paths = [tmp_path / f"{name}.mp4" for name in "abcde"]
    for path in paths[:4]:
        sources.video(path)
    sources.video(paths[0])
    sources.video(paths[4])
    assert {reader.path.stem: reader.open for reader in opened} == {
        "a": True,
        "b": False,
        "c": True,
        "d": True,
        "e": True,
    }
    assert sources.video(paths[0]) is opened[0]
    sources.video(paths[1])
    assert len(opened) == 6
    sources.release(frozenset({str(paths[0])}))
    assert [reader.path.stem for reader in opened if reader.open] == ["a"]
    sources.release()
    assert not opened[0].open


def test_a_file_that_changed_is_opened_again(opened, tmp_path):
    sources, path = Sources(), tmp_path / "a.mp4"
    path.write_bytes(b"one")
    os.utime(path, ns=(1000, 1000))
    first = sources.video(path)
    assert sources.video(path) is first
    os.utime(path, ns=(1000, 2000))
    second = sources.video(path)
    assert second is not first
    path.write_bytes(b"longer")
    os.utime(path, ns=(1000, 2000))
    assert sources.video(path) is not second


class Eye:
    """A camera that sends image after image."""

    fps = 7.5

    def __init__(self, name):
        self.name, self.asked, self.open = name, [], True

    def latest(self, after=0):
        self.asked.append(after)
        return after + 3, np.full((4, 6, 3), (10, 20, 30), np.uint8)

    def close(self):
        self.open = False


def test_a_camera_gives_an_image_after_the_last_one(monkeypatch):
    eyes = {}
    monkeypatch.setattr(module, "Camera", lambda name: eyes.setdefault(name, Eye(name)))
    sources, path = Sources(), Path("camera:2")
    assert sources.info(path) == SourceInfo("camera", 0, 7.5, 6, 4)
    assert [sources.take(path, None).frame for _ in range(3)] == [3, 6, 9]
    assert eyes["2"].asked == [0, 0, 3, 6]
    np.testing.assert_allclose(sources.take(path, None).array[0, :, 0, 0] * 255, [10, 20, 30], rtol=1e-5)
    assert sources.camera_fps(path) == 7.5
    sources.take(Path("camera:/dev/video5"), None)
    sources.release(frozenset({"camera:2"}))
    assert {name: eye.open for name, eye in eyes.items()} == {"2": True, "/dev/video5": False}
    sources.release()
    assert not eyes["2"].open
    assert sources.take(path, None).frame == 3  # counted anew


def test_folders_without_images_or_with_too_many(folder, monkeypatch, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    (empty / "notes.txt").touch()
    (empty / ".hidden.png").touch()
    (empty / "folder.png").mkdir()
    with pytest.raises(DiagnosticError, match="the folder has no images") as caught:
        playlist(empty)
    assert caught.value.diagnostics[0].file == str(empty)
    monkeypatch.setattr(module, "MAX_PLAYLIST", 3)
    assert len(playlist(folder)) == 3
    monkeypatch.setattr(module, "MAX_PLAYLIST", 2)
    with pytest.raises(DiagnosticError, match="the folder has 3 images"):
        playlist(folder)
    with pytest.raises(DiagnosticError, match="cannot-read"):
        playlist(folder / "absent")


@pytest.mark.parametrize(
    ("params", "shape", "named"),
    [
        ({}, (1, 3, 4), "needs a tensor N x C x H x W, not 1 x 3 x 4"),
        ({}, (1, 3, 4, 0), "not 1 x 3 x 4 x 0"),
        ({}, (1, 2, 4, 6), r"needs 3 channels \(dims 6x4x3\), but the data has 2"),
        ({"batch": "2"}, (3, 3, 4, 6), "needs a batch of 2, not 3"),
    ],
)
def test_data_that_does_not_fit_an_image_input(runtime_registry, params, shape, named):
    made = operator(runtime_registry, dims="6x4x3", **params)
    check_fed("it", made, np.zeros((2, 3, 9, 9), np.float32))
    with pytest.raises(DiagnosticError, match=named) as caught:
        check_fed("it", made, np.zeros(shape, np.float32))
    assert caught.value.diagnostics[0].layer == "it"


def test_data_that_does_not_fit_a_tensor_input(runtime_registry):
    made = operator(runtime_registry, "tensor_input", shape="3")
    check_fed("it", made, np.zeros((2, 5), np.float32))
    for shape in ((3,), (1, 3, 1), (0, 3)):
        with pytest.raises(DiagnosticError, match="input-shape"):
            check_fed("it", made, np.zeros(shape, np.float32))


def test_files_of_a_folder_are_in_natural_order(tmp_path):
    """Numbers by value, letters without regard to their case, equal ones by name; digits of other scripts are letters."""
    names = (
        "2.png", "010.png", "10.png", "123456789012345678.png", "A1.png", "a1.png", "a1b2.png", "a1b10.png", "a02.png",
        "A3.PNG", "a10.npy", "a10.png", "a.png", "b7.png", "b\u00b2.png", "b\u0663.png", "c2.png", "c2a3.png",
        "c2\u00b23.png", "c2\u06613.png",
    )  # fmt: skip
    for name in (*reversed(names), "notes.txt", ".3.png"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "4.png").mkdir()
    assert [ascii(name) for name in playlist(tmp_path)] == [ascii(name) for name in names]
