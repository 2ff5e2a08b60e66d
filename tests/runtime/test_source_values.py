"""What few runs reach: cameras that files replace, weights that layers share, missing packages, and tensors without a size."""

from __future__ import annotations

import builtins
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runtime_networks import chain, layer, pixels

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import TensorType
from designer.operators.api import Operator
from designer.runtime import camera as camera_module
from designer.runtime import layer_reach, machine, nonfinite
from designer.runtime.api import RunOptions
from designer.runtime.camera import Camera
from designer.runtime.input_data import check_fed
from designer.runtime.layer_weights import weights_of
from designer.runtime.preview import Preview
from designer.runtime.reach import CHANNELS, COLUMNS, ROWS, UnknownReachError
from designer.runtime.session import Session


def said(act: Any) -> tuple[str, str, str, str | None]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.remedy, found.layer


# --- cameras -----------------------------------------------------------------------------------------------------


class Device:
    """A device of OpenCV: what was opened, and the rate of a file."""

    def __init__(self, opened: Any, fps: float) -> None:
        self.opened, self.fps = opened, fps

    def get(self, prop: int) -> float:
        assert prop == 5
        return self.fps


@pytest.mark.parametrize(
    ("fps", "pause"), [(25.0, 0.04), (0.0, 1.0), (-1.0, 1.0), (0.5, 1.0), (240.0, 1 / 240), (1000.0, 1 / 240)]
)
def test_a_file_in_place_of_a_camera_plays_at_its_rate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fps: float, pause: float
) -> None:
    fake = SimpleNamespace(CAP_PROP_FPS=5, VideoCapture=lambda what: Device(what, fps))
    monkeypatch.setattr(camera_module, "opencv", lambda: fake)
    (tmp_path / "a.mkv").write_bytes(b"")
    made = object.__new__(Camera)
    for name, opened, expected in (
        (str(tmp_path / "a.mkv"), str(tmp_path / "a.mkv"), pause), ("0", 0, 0.0), ("012", 12, 0.0), (str(tmp_path), str(tmp_path), 0.0)
    ):  # fmt: skip
        made.name, made._pause = name, 0.0
        assert made._open().opened == opened
        assert made._pause == pytest.approx(expected)
    for name in ("http://camera.example/a", str(tmp_path / "gone"), "1234"):
        made.name = name
        code, message, remedy, _ = said(made._open)
        assert (code, message) == ("no-camera", f"the camera {name} does not exist or is in use")
        assert remedy.endswith(", and check that no other program uses it and that you have permission")


@pytest.mark.parametrize("present", [(), ("video10", "video0", "video2"), tuple(f"video{n}" for n in range(10))])
def test_the_cameras_of_the_machine_are_named(monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...]) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        camera_module.Path,
        "glob",
        lambda self, text: asked.append((str(self), text)) or [Path("/dev") / n for n in present],
    )
    made = object.__new__(Camera)
    made.name = "7"
    (found,) = made._missing().diagnostics
    names = ", ".join(f"/dev/{name}" for name in sorted(present)[:8])
    first = f"choose one of {names}" if names else "connect a camera; none was found"
    assert found.remedy == f"{first}, and check that no other program uses it and that you have permission"
    assert asked == [(str(Path("/dev")), "video*")]


@pytest.mark.parametrize(
    ("times", "fps"),
    [((), 0.0), ((3.0,), 0.0), ((3.0, 3.0), 0.0), ((3.0, 3.5), 2.0), ((1.0, 1.25, 2.0, 3.0), 1.5)],
)
def test_the_rate_of_a_camera_is_that_between_its_images(times: tuple[float, ...], fps: float) -> None:
    made = object.__new__(Camera)
    made._arrivals = times
    assert made.fps == fps


# --- inputs and weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 1, 2, 3])
def test_data_has_the_fixed_batch_of_its_input(runtime_registry: Any, batch: int) -> None:
    operator = runtime_registry.read(layer("image", "input", dims="6x4x3", batch=batch)).operator
    for count in (1, 2, 3):
        if batch in (0, count):
            check_fed("image", operator, pixels(4, 6, batch=count))
        else:
            assert said(lambda count=count: check_fed("image", operator, pixels(4, 6, batch=count))) == (
                "input-shape", f"the input 'image' needs a batch of {batch}, not {count}",
                "choose data with that many images, or change the input's batch", "image",
            )  # fmt: skip


def sharing(registry: Any) -> Session:
    """Two layers with the same weights, and one with the weights of its activation."""
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("first", "convolution", "image", features=3),
            Layer("second", "convolution", inputs=(Source("first"),), params={"features": "3"}, weights_of="first"),
            layer("third", "convolution", "second", ActivationSpec("prelu", {}), features=2),
            layer("result", "output", "third"),
        ]
    )
    sizes = {("first", "kernel"): (3, 3, 3, 3), ("first", "bias"): (3,), ("third", "kernel"): (2, 3, 3, 3), ("third", "bias"): (2,), ("third", "activation_slope"): (2,)}  # fmt: skip
    tensors = {WeightKey(*key): np.full(shape, number, np.float32) for number, (key, shape) in enumerate(sizes.items())}
    return Session(graph, registry, Weights(tensors), RunOptions("torch", threads=1))


def test_weights_are_those_of_the_layer_that_owns_them(runtime_registry: Any) -> None:
    session = sharing(runtime_registry)
    tensors = session.weights.tensors
    for name, owner, names in (
        ("first", "first", ["kernel", "bias"]), ("second", "first", ["kernel", "bias"]),
        ("third", "third", ["kernel", "bias", "activation_slope"]),
    ):  # fmt: skip
        found = weights_of(session, name)
        assert list(found) == names
        for tensor, array in found.items():
            assert array is tensors[WeightKey(owner, tensor)]
    assert weights_of(session, "image") == weights_of(session, "result") == {}
    assert said(lambda: weights_of(session, "gone")) == (
        "no-such-layer", "there is no layer 'gone'", "choose an existing layer", None
    )  # fmt: skip


def test_the_cause_of_nan_is_not_guessed_without_weights(
    runtime_registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sharing(runtime_registry)
    broken = {key: array.copy() for key, array in session.weights.tensors.items()}
    broken[WeightKey("first", "bias")][1] = np.nan
    assert nonfinite._cause(session, "second") == ""
    session.set_weights(Weights(broken))
    for name in ("first", "second"):
        assert nonfinite._cause(session, name) == "not all of its weights are finite: bias"
    broken[WeightKey("first", "kernel")][0, 0, 0, 0] = np.inf
    session.set_weights(Weights(broken))
    assert nonfinite._cause(session, "first") == "not all of its weights are finite: kernel, bias"
    assert nonfinite._cause(session, "third") == ""
    assert nonfinite._cause(session, "image") == "the input data already contains them"

    def missing(*_: Any) -> Any:
        raise DiagnosticError(Diagnostic("missing-weight", "it has no weights"))

    monkeypatch.setattr(nonfinite, "weights_of", missing)
    assert nonfinite._cause(session, "first") == ""


# --- the machine -------------------------------------------------------------------------------------------------


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    usual = builtins.__import__

    def load(name: str, *more: Any) -> Any:
        if name in names:
            raise ImportError(name)
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", load)


@pytest.mark.parametrize(("affinity", "count", "cores"), [(6, 8, 6), (None, 8, 8), (None, None, 1), (0, 8, 1)])
def test_cores_without_psutil(
    monkeypatch: pytest.MonkeyPatch, affinity: int | None, count: int | None, cores: int
) -> None:
    monkeypatch.setattr(machine.os, "cpu_count", lambda: count)
    if affinity is None:
        monkeypatch.delattr(machine.os, "sched_getaffinity", raising=False)
    else:
        monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    without(monkeypatch, "psutil")
    assert machine.physical_cores() == cores


def test_free_memory_without_psutil_or_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, 0))
    without(monkeypatch, "psutil")
    assert machine.free_memory() == 8 << 30
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (3 << 30, 0) if kind == resource.RLIMIT_AS else 1 / 0)
    assert machine.free_memory() == 3 << 30


def test_free_memory_where_only_a_part_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    psutil, resource = pytest.importorskip("psutil"), pytest.importorskip("resource")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5000))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (4000, 0))

    def refused() -> Any:
        raise OSError

    monkeypatch.setattr(psutil, "Process", refused)
    assert machine.free_memory() == 4000
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=1500)))
    assert machine.free_memory() == 2500
    without(monkeypatch, "resource")
    assert machine.free_memory() == 5000


# --- layers without a size or reach ------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [ROWS, COLUMNS, CHANNELS])
@pytest.mark.parametrize("reach", [None, 0, 2])
def test_the_reach_of_an_analysis_layer(
    monkeypatch: pytest.MonkeyPatch, runtime_registry: Any, axis: int, reach: Any
) -> None:
    graph = chain(("blur", "gaussian_blur", {"sigma": "1.0"}), size="20x16x3")
    inference = Inference(graph, runtime_registry)
    made = SimpleNamespace(reach=lambda: reach)
    sizes = [(16, 20, 3), None]
    places = np.array([1, 5]) if axis != CHANNELS else np.array([0, 2])
    if reach is None:
        with pytest.raises(UnknownReachError, match=r"^blur$"):
            layer_reach._analysis(made, "blur", axis, places, sizes)
    else:
        found = layer_reach._analysis(made, "blur", axis, places, sizes)
        around = {0: places.tolist(), 2: [0, 1, 2, 3, 4, 5, 6, 7]}[reach if axis != CHANNELS else 0]
        assert {index: read.tolist() for index, read in found.places.items()} == {0: around}
        assert (dict(found.axes), found.steps, found.whole) == ({0: axis}, {0: 1}, "")
    assert layer_reach._size(TensorType((4, 5))) is None
    assert layer_reach._size(inference.states["blur"].inputs[0]) == (16, 20, 3)


def test_a_layer_that_torch_cannot_express_has_an_unknown_reach(
    monkeypatch: pytest.MonkeyPatch, runtime_registry: Any
) -> None:
    inference = Inference(chain(("conv", "convolution", {"features": 2}), size="20x16x3"), runtime_registry)
    assert layer_reach.layer_reach(inference, "conv", 0, ROWS, np.array([4])).places[0].tolist() == [3, 4, 5]

    def refused(self: Operator, inputs: Any) -> Any:
        raise NotImplementedError

    monkeypatch.setattr(type(inference.read("conv").operator), "torch", refused)
    with pytest.raises(UnknownReachError, match=r"^conv$"):
        layer_reach.layer_reach(inference, "conv", 0, ROWS, np.array([4]))


def test_padding_is_cut_off_tensors_with_a_height_only() -> None:
    torch = pytest.importorskip("torch")
    from designer.runtime.gradient import _cut

    assert _cut(torch.zeros(1, 3, 16, 24), (13, 20), (16, 24)).shape == (1, 3, 13, 20)
    assert _cut(torch.zeros(1, 3, 8, 12), (13, 20), (16, 24)).shape == (1, 3, 6, 10)
    for shape in ((5,), (2, 3), (2, 16, 24)):
        value = torch.zeros(shape)
        assert _cut(value, (13, 20), (16, 24)) is value


def test_a_preview_enlarges_images_only(runtime_registry: Any) -> None:
    """A vector as an output, and an image whose full result has another rank."""
    pytest.importorskip("torch")
    graph = Graph(
        [
            layer("image", "input", dims="128x64x3"),
            layer("half", "pooling", "image", size="2x2", stride="2x2"),
            layer("pooled", "global_pooling", "image"),
            layer("flat", "flatten", "pooled"),
            layer("result", "output", "half"),
            layer("vector", "output", "flat"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), RunOptions("torch", threads=1))
    session.set_input("image", pixels(64, 128, batch=2), is_image=True)
    preview = Preview(session, 2)
    found = preview.run([Source("pooled"), Source("half")])
    shapes = {name: array.shape for name, array in found.outputs.items()}
    assert shapes == {"result": (2, 3, 32, 64), "vector": (2, 3)}
    assert {str(source): array.shape for source, array in found.captures.items()} == {
        "pooled": (2, 3, 1, 1), "half": (2, 3, 32, 64)
    }  # fmt: skip
    assert found.coarse == 2
    full = session.run([Source("pooled")])
    np.testing.assert_allclose(found.outputs["vector"], full.outputs["vector"], rtol=1e-4)
    np.testing.assert_allclose(found.captures[Source("pooled")], full.captures[Source("pooled")], rtol=1e-4)
    half = full.outputs["result"]
    means = half.reshape(2, 3, 16, 2, 32, 2).max(axis=(3, 5))
    assert (found.outputs["result"] <= np.repeat(np.repeat(means, 2, 2), 2, 3) + 1e-6).all()
    image = np.zeros((1, 3, 4, 4), np.float32)
    assert preview._enlarged(image, Source("vector"), True) is image
    vector = np.zeros((2, 3), np.float32)
    assert preview._enlarged(vector, Source("result"), True) is vector


class Writer:
    """OpenCV's writer of videos, which does not open."""

    @staticmethod
    def fourcc(*code: str) -> str:
        return "".join(code)

    def __init__(self, *given: Any) -> None:
        self.given = given

    def isOpened(self) -> bool:
        return False

    def release(self) -> None:
        pass


def test_a_video_that_cannot_be_created_says_its_size_and_codec(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from designer.runtime import video_writer

    made: list[Writer] = []
    fake = SimpleNamespace(
        VideoWriter=type("VideoWriter", (Writer,), {"__init__": lambda self, *given: made.append(self) or setattr(self, "given", given)}),
        CAP_OPENCV_MJPEG="mjpeg", CAP_FFMPEG="ffmpeg", VIDEOWRITER_PROP_QUALITY=1,
    )  # fmt: skip
    monkeypatch.setattr(video_writer, "opencv", lambda: fake)
    for name, quality, backend in (("a.mkv", 0, "ffmpeg"), ("a.avi", 80, "mjpeg")):
        chosen = "mjpeg" if quality else ""
        codec = video_writer.codec_for(tmp_path / name, chosen, quality)
        writer = video_writer.VideoWriter(tmp_path / name, 12.5, chosen, quality)
        code, message, remedy, _ = said(lambda writer=writer: writer.write(pixels(3, 5)))
        title = video_writer.CODECS[codec].title
        assert (code, message, remedy) == (
            "cannot-write-video", f"{name} cannot be written: a video of 6 x 4 pixels with {title} cannot be created there",
            "choose another codec, or another folder",
        )  # fmt: skip
        writer.discard()
        assert made[-1].given[1:] == (backend, video_writer.CODECS[codec].code, 12.5, (6, 4))
        assert list(tmp_path.iterdir()) == []


def test_new_weights_reach_a_preview_once(runtime_registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session takes weights as inputs from then on, and the digests of the full session."""
    pytest.importorskip("torch")
    session = sharing(runtime_registry)
    session.set_input("image", pixels(8, 8), is_image=True)
    preview = Preview(session, 2)
    given: list[Any] = []
    usual = preview._small.set_weights
    monkeypatch.setattr(preview._small, "set_weights", lambda *all_of_it: given.append(all_of_it) or usual(*all_of_it))
    preview.run()
    assert given == []
    for count in (1, 2):
        changed = {key: array + np.float32(count) for key, array in session.weights.tensors.items()}
        session.set_weights(Weights(changed))
        for _ in range(2):
            preview.run()
        assert given[count - 1 :] == [(session.weights, session.weight_prints)]
        assert preview._small.options == RunOptions("torch", threads=1, weights_as_inputs=True)
        assert session.options == RunOptions("torch", threads=1)


@pytest.mark.parametrize("limit", [1, 300, 1000, 1537, 4000, 1 << 28])
def test_tensors_are_checked_in_groups_of_limited_memory(
    runtime_registry: Any, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    kinds = [("a", 2), ("b", 5), ("c", 1), ("d", 1), ("e", 8), ("f", 2)]
    graph = chain(*((name, "convolution", {"features": count}) for name, count in kinds), size="8x6x3")
    session = Session(graph, runtime_registry, Weights(), RunOptions("torch", threads=1))
    monkeypatch.setattr(nonfinite, "TOGETHER", limit)
    sizes = {"image": 3 * 48 * 4} | {name: count * 48 * 4 for name, count in kinds}
    order = list(sizes)
    found = list(nonfinite._groups(session, order))
    assert [name for group in found for name in group] == order
    for number, group in enumerate(found):
        assert len(group) == 1 or sum(sizes[name] for name in group) <= limit
        if number + 1 < len(found):
            assert sum(sizes[name] for name in (*group, found[number + 1][0])) > limit, (
                "no group is smaller than it can be"
            )
    assert list(nonfinite._groups(session, [])) == []


@pytest.mark.parametrize("known", [{}, {"OPENCV_LOG_LEVEL": "DEBUG", "OPENCV_FFMPEG_LOGLEVEL": "32"}])
def test_opencv_is_loaded_silent_and_with_one_thread(monkeypatch: pytest.MonkeyPatch, known: dict[str, str]) -> None:
    """Variables that the user has set stay."""
    import os
    import sys

    from designer.runtime import opencv as module

    names = ("OPENCV_LOG_LEVEL", "OPENCV_FFMPEG_LOGLEVEL", "OPENCV_IO_MAX_IMAGE_PIXELS")
    for name in names:
        monkeypatch.setenv(name, "")  # restored afterwards
        monkeypatch.delenv(name)
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    threads: list[int] = []
    seen: list[dict[str, str]] = []
    usual = builtins.__import__

    def load(name: str, *more: Any) -> Any:
        if name != "cv2":
            return usual(name, *more)
        seen.append({name: os.environ[name] for name in names})
        return SimpleNamespace(setNumThreads=threads.append)

    monkeypatch.setattr(builtins, "__import__", load)
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    made = module.opencv()
    expected = {"OPENCV_LOG_LEVEL": "SILENT", "OPENCV_FFMPEG_LOGLEVEL": "-8", "OPENCV_IO_MAX_IMAGE_PIXELS": "100000000"}
    assert (threads, seen) == ([1], [expected | known])
    monkeypatch.setitem(sys.modules, "cv2", made)
    assert module.opencv() is made
    assert (threads, len(seen)) == ([1], 1)


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'cv2'"), ImportError("libGL.so.1 is missing")])
def test_opencv_that_cannot_be_loaded_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, error: ImportError
) -> None:
    import sys

    from designer.runtime import opencv as module

    usual = builtins.__import__

    def load(name: str, *more: Any) -> Any:
        if name == "cv2":
            raise error
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", load)
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    with pytest.raises(DiagnosticError) as caught:
        module.opencv()
    (found,) = caught.value.diagnostics
    assert (found.code, found.remedy) == ("no-opencv", "install it: pip install opencv-python-headless")
    assert str(error) in found.message
