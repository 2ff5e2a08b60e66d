"""What is refused and what is said: declarations of engines, images, videos and folders of results. The texts are recorded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from recorded import check_lines
from runtime_networks import layer
from video_files import make_video

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.runtime import video_writer
from designer.runtime.engine_api import Device, EngineDescriptor
from designer.runtime.engines.openvino_engine import _reason
from designer.runtime.engines.torch_engine import _device
from designer.runtime.images import read_image, write_array, write_image
from designer.runtime.layer_weights import weights_of
from designer.runtime.session import Session
from designer.runtime.video import VideoReader
from designer.runtime.video_writer import FolderWriter, VideoWriter

GOOD: dict[str, Any] = {
    "name": "made", "title": "Made", "package": "made", "engine": object, "step_timer": object, "kernels": {"one": min},
    "available": lambda: None,
}  # fmt: skip
WRONG: dict[str, dict[str, Any]] = {
    "a name with capitals": {"name": "Made"},
    "a name that is not a text": {"name": 3},
    "no title": {"title": ""},
    "a package that is not a text": {"package": None},
    "an engine that cannot be called": {"engine": "Made"},
    "a timer that cannot be called": {"step_timer": None},
    "available is not a function": {"available": True},
    "a processor without kernels": {"kernels": {}},
    "a kernel that is not a function": {"kernels": {"one": 1.0}},
    "a graphics card without kernels": {"kernels": {}, "devices": (Device("cuda"),)},
    "no devices": {"devices": ()},
    "a device by name": {"devices": ("cpu",)},
    "an unknown layout": {"layouts": ("nchw", "cnhw")},
    "no layout": {"layouts": ()},
    "an unknown format": {"formats": ("fp16", "fp3")},
}


def said(act: Callable[[], object], folder: Path) -> str:
    try:
        act()
    except DiagnosticError as error:
        return " / ".join(str(found).replace(str(folder), "<folder>") for found in error.diagnostics)
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def test_declarations_of_engines(tmp_path: Path) -> None:
    lines = [
        f"{name}: {said(lambda c=changed: EngineDescriptor(**GOOD | c), tmp_path)}" for name, changed in WRONG.items()
    ]
    lines += [
        f"a device with the precisions {precisions}: {said(lambda p=precisions: Device('cpu', p), tmp_path)}"
        for precisions in ((), ("fp32", "int8"))
    ]
    made = EngineDescriptor(**GOOD | {"devices": (Device("cpu"), Device("cuda", ("fp16",)))})
    lines += [
        f"the device {name!r}: {made.device(name)}".split(", count=")[0]
        for name in ("cpu", "cuda", "cuda:1", "vulkan", "")
    ]
    check_lines("refusals/engines.txt", lines)


ERRORS = {
    "the reason after places in the source": (
        "Exception from src/inference/src/cpp/core.cpp:134:\nException from src/frontends/onnx.cpp:9:\nCheck 'ok' failed at src/x.cpp:80:\n"
        "FrontEnd API failed with GeneralFailure:\n  Node 'conv' has no kernel  \nWhile validating ONNX node\n"
    ),
    "several reasons": "the first\nthe second",
    "nothing but places": "Exception from src/a.cpp:1:\nCheck 'b' failed at src/a.cpp:2:",
    "no text": "",
    "a long text": "x" * 400,
}


def test_the_reason_in_an_error_of_openvino() -> None:
    found = {name: _reason(RuntimeError(text)) for name, text in ERRORS.items()}
    assert found == {
        "the reason after places in the source": "Node 'conv' has no kernel",
        "several reasons": "the first",
        "nothing but places": "Exception from src/a.cpp:1:",
        "no text": "RuntimeError",
        "a long text": "x" * 300,
    }


def test_devices_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    lines = []
    for count in (0, 2):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        lines += [
            f"{name} with {count} cards: {said(lambda name=name: _device(name), tmp_path)}"
            for name in ("cpu", "cuda", "cuda:1", "cuda:2", "meta", "mine")
        ]
    check_lines("refusals/devices.txt", lines)


def images(height: int = 6, width: int = 8, channels: int = 3) -> np.ndarray:
    return np.full((1, channels, height, width), 0.5, np.float32)


def writes(writer: Any, *arrays: np.ndarray) -> None:
    with writer as stream:
        for array in arrays:
            stream.write(array)


def of_writers(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    (folder / "taken.mkv").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "a.txt").write_text("")
    (folder / "file").write_text("")
    for name in ("taken.mkv", "absent/a.mkv", "file/a.mkv", "a.txt"):
        yield f"a video {name}", lambda name=name: writes(VideoWriter(folder / name, 25), images())
    yield "a video of the wrong codec", lambda: VideoWriter(folder / "a.avi", 25, "vp9")
    yield "a quality of another codec", lambda: VideoWriter(folder / "a.avi", 25, "ffv1", 50)
    yield "a video without frames", lambda: writes(VideoWriter(folder / "a.mkv", 25))
    yield "a video of several sizes", lambda: writes(VideoWriter(folder / "a.mkv", 25), images(), images(6, 10))
    yield "a video of two channels", lambda: writes(VideoWriter(folder / "a.mkv", 25), images(channels=2))
    yield "a video of a vector", lambda: writes(VideoWriter(folder / "a.mkv", 25), np.zeros((1, 9), np.float32))
    for name in ("full", "file", "absent/made"):
        yield f"a folder {name}", lambda name=name: writes(FolderWriter(folder / name), images())
    yield "a folder of text", lambda: FolderWriter(folder / "made", ".txt")
    yield "a folder without images", lambda: writes(FolderWriter(folder / "made"))
    yield "a folder of five channels as PNG", lambda: writes(FolderWriter(folder / "made"), images(channels=5))
    yield "an image of two channels", lambda: write_image(folder / "a.jpg", images(channels=2))
    yield "an image of a vector", lambda: write_array(folder / "a.png", np.zeros((1, 9), np.float32))
    yield "an image in an absent folder", lambda: write_image(folder / "absent" / "a.png", images())


def test_results_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    lines = []
    before = set()
    for name, act in of_writers(tmp_path):
        before = before or set(tmp_path.rglob("*"))
        lines.append(f"{name}: {said(act, tmp_path)}")
        assert set(tmp_path.rglob("*")) == before, name
    check_lines("refusals/writers.txt", lines)


def test_a_video_that_cannot_be_finished_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cv2")
    old = make_video(tmp_path / "a.mkv", 3).read_bytes()
    lines = []

    def damaged(path: Path) -> VideoReader:
        raise DiagnosticError.of("not-a-video", "it is damaged", remedy="repair it")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    few = SimpleNamespace(__enter__=lambda self: self, __exit__=lambda *_: None, info=SimpleNamespace(frames=1))
    few_reader = type("Few", (), {"__enter__": lambda _: few, "__exit__": lambda *_: None})
    for name, changed in {
        "frames are missing": ("VideoReader", lambda path: few_reader()),
        "the file is damaged": ("VideoReader", damaged),
        "it cannot be moved": ("os", SimpleNamespace(replace=full)),
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(video_writer, *changed)
            lines.append(
                f"{name}: {said(lambda: writes(VideoWriter(tmp_path / 'a.mkv', 25), images(), images()), tmp_path)}"
            )
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.mkv": old}
    with monkeypatch.context() as patch:
        patch.setattr(video_writer, "os", SimpleNamespace(replace=full))
        lines.append(
            f"a folder cannot be moved: {said(lambda: writes(FolderWriter(tmp_path / 'made'), images()), tmp_path)}"
        )
    with monkeypatch.context() as patch:
        patch.setattr("designer.files.atomic.os", SimpleNamespace(**vars(os) | {"replace": full}))
        lines.append(f"a file in a folder: {said(lambda: writes(FolderWriter(tmp_path / 'made'), images()), tmp_path)}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mkv"]
    check_lines("refusals/unfinished.txt", lines)


def exr(path: Path, channels: dict[str, np.ndarray], **header: Any) -> Path:
    import OpenEXR

    with OpenEXR.File({"type": OpenEXR.scanlineimage, **header}, channels) as file:
        file.write(str(path))
    return path


def test_deep_images_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("OpenEXR")
    cv2 = pytest.importorskip("cv2")
    plane = np.zeros((4, 6), np.float32)
    paths = {
        "two planes of other names": exr(tmp_path / "planes.exr", {"depth": plane, "mask": plane}),
        "cut off": exr(tmp_path / "cut.exr", {"R": plane, "G": plane, "B": plane}),
    }
    paths["cut off"].write_bytes(paths["cut off"].read_bytes()[:300])
    for dtype in ("int16", "float64"):
        paths[f"TIFF of {dtype}"] = tmp_path / f"{dtype}.tiff"
        cv2.imwrite(str(paths[f"TIFF of {dtype}"]), np.zeros((4, 6, 3), dtype))
    paths["no TIFF"] = tmp_path / "none.tiff"
    paths["no TIFF"].write_bytes(b"II*\0" + b"\0" * 40)
    lines = [f"{name}: {said(lambda path=path: read_image(path), tmp_path)}" for name, path in paths.items()]
    small = exr(tmp_path / "small.exr", {"Y": plane})
    monkeypatch.setattr("designer.runtime.deep_images.MAX_PIXELS", 20)
    lines.append(f"too many pixels: {said(lambda: read_image(small), tmp_path)}")
    lines.append(f"too many pixels of a TIFF: {said(lambda: read_image(paths['TIFF of float64']), tmp_path)}")
    monkeypatch.setattr("designer.runtime.deep_images.MAX_PIXELS", 1000)
    monkeypatch.setattr("designer.runtime.deep_images.MAX_VALUES", 20)
    lines.append(f"too many values: {said(lambda: read_image(small), tmp_path)}")
    lines = [re.sub(r"supported: .*? - ", "supported: <reason of the library> - ", line) for line in lines]
    check_lines("refusals/deep_images.txt", lines)


def test_weights_that_are_shown_are_those_of_the_layer_and_of_its_activation(
    runtime_registry: Any, tmp_path: Path
) -> None:
    from designer.files.weights import random_weights, required_weights
    from designer.graph.inference import Inference
    from designer.graph.model import ActivationSpec
    from designer.graph.template import Template

    inner = Template(
        "block",
        (
            layer("x", "template_input"),
            layer("conv", "convolution", "x", ActivationSpec("prelu", {}), features=2, kernel="1x1"),
            layer("norm", "batch_normalization", "conv"),
            layer("y", "template_output", "norm"),
        ),
    )
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("a", "template", "image", template="block"),
            layer("broken", "concatenation", "", axis="7"),
            layer("result", "output", "a"),
        ],
        templates=[inner],
    )
    needed = required_weights(Inference(graph, runtime_registry))
    session = Session(graph, runtime_registry, random_weights(needed, 0) if needed else Weights())
    lines = []
    for name in ("image", "a", "a.conv", "a.norm", "broken", "absent"):
        made: dict[str, np.ndarray] = {}
        lines.append(f"{name}: {said(lambda name=name, made=made: made.update(weights_of(session, name)), tmp_path)}")
        lines += [f"  {key}: {array.shape}, sum {array.sum():.3f}" for key, array in made.items()]
    check_lines("refusals/weights.txt", lines)
