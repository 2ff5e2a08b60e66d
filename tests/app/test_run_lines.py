"""What `layerwright run` does for every kind of request, and all lines that it prints, with runs that the test plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.cli import run_request as module
from app.cli.run_request import RunArguments, run_network
from app.engine.folder_job import FolderJob
from app.engine.video_job import VideoJob
from designer.files.document import save_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.runtime.api import RunOptions

OPTIONS = RunOptions(engine="torch", threads=2)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), {"features": "3"}),
        Layer("result", "output", (640, 0), (Source("conv"),)),
    ]
    save_document(Graph(layers), tmp_path / "net.xml")
    return tmp_path / "net.xml"


class Ran:
    """A session whose runs take the given milliseconds."""

    def __init__(self, *times: float, note: str = "", weights_note: str = "") -> None:
        self.times = iter(times)
        self.log: list[Any] = []
        self.options = OPTIONS
        self.graph = self.weights = self.inference = SimpleNamespace(sha256="of the weights")
        self.notes = (weights_note, note)

    def set_input_file(self, name: str, path: Path) -> None:
        self.log.append((name, path))

    def invalidate(self) -> None:
        self.log.append("invalidate")

    def run(self, capture: tuple[Source, ...]) -> Any:
        self.log.append(("run", *map(str, capture)))
        outputs = {"result": np.zeros((1, 3, 4, 6), np.float32), "second": np.zeros((1, 1, 2, 2), np.float32)}
        captures = {source: np.zeros((1, 5, 4, 8), np.float32) for source in capture}
        return SimpleNamespace(
            milliseconds=next(self.times), outputs=outputs, captures=captures, weights_note=self.notes[0], note=self.notes[1]
        )  # fmt: skip

    def padding(self, source: Source) -> Any:
        return ((4, 6), (8, 16)) if source.layer == "conv" else None


class Written:
    """Files that are written, with their comments, and the checks for values that are not finite."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[tuple[Any, ...]] = []
        self.checked: list[Any] = []
        monkeypatch.setattr(module, "noise_layers", lambda inference: {"noise": "none"})
        monkeypatch.setattr(
            module,
            "provenance",
            lambda name, graph, weights, options, noise: SimpleNamespace(comment=lambda: f"{name} {noise}"),
        )
        monkeypatch.setattr(module, "write_array", lambda path, array, comment: self.files.append((path, array.shape, comment)))  # fmt: skip
        monkeypatch.setattr(module, "_warn_of_nonfinite", lambda session, result: self.checked.append(session))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


def test_one_run_writes_its_outputs_and_captured_layers(written: Written) -> None:
    session = Ran(8.0, note="a note", weights_note="random weights (seed 3)")
    files = [Path(name) for name in ("one.png", "two.png", "three.npy", "four.npy", "five.npy")]
    request = RunArguments(
        Path("nets/net.xml"), inputs={"image": Path("in.png"), "other": Path("in.npy")},
        outputs=(("result", files[0]), ("second", files[1]), ("result", files[2])),
        captures=(("conv", files[3]), ("last:1", files[4])),
    )  # fmt: skip
    assert list(module._run_once(session, request)) == [  # type: ignore[arg-type]
        "note: random weights (seed 3)",
        "note: a note",
        "result -> one.png  1 x 3 x 4 x 6",
        "second -> two.png  1 x 1 x 2 x 2",
        "result -> three.npy  1 x 3 x 4 x 6",
        "conv -> four.npy  1 x 5 x 4 x 8  (of the input padded from 6 x 4 to 16 x 8)",
        f"{Source.parse('last:1')} -> five.npy  1 x 5 x 4 x 8",
        "torch fp32: 8.00 ms, including the time to build the network",
    ]
    assert session.log == [
        ("image", Path("in.png")),
        ("other", Path("in.npy")),
        ("run", "conv", str(Source.parse("last:1"))),
    ]
    comment = "net.xml none"
    shapes = [(1, 3, 4, 6), (1, 1, 2, 2), (1, 3, 4, 6), (1, 5, 4, 8), (1, 5, 4, 8)]
    assert written.files == [(path, shape, comment) for path, shape in zip(files, shapes, strict=True)]
    assert written.checked == [session]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((900.0, 2.0, 8.0), "median 5.00 ms of 2"),
        ((900.0, 8.0, 4.0, 2.0), "median 4.00 ms of 3"),
    ],
)
def test_several_runs_are_timed_without_the_first(written: Written, times: tuple[float, ...], said: str) -> None:
    session = Ran(*times)
    request = RunArguments(Path("net.xml"), inputs={}, captures=(), iterations=len(times) - 1, variant="half")
    assert list(module._run_once(session, request)) == [  # type: ignore[arg-type]
        "nothing was written: give --output NAME=PATH or --capture LAYER=PATH",
        f"torch half: {said}",
    ]
    assert session.log == [("run",), *["invalidate", ("run",)] * (len(times) - 1)]
    assert written.files == []


def test_a_layer_that_is_captured_twice_is_computed_once(written: Written) -> None:
    session = Ran(8.0)
    captures = (("last", Path("a.npy")), ("last", Path("b.npy")))
    lines = list(module._run_once(session, RunArguments(Path("net.xml"), captures=captures)))  # type: ignore[arg-type]
    assert session.log == [("run", "last")]
    assert [line.split("  ")[0] for line in lines[:2]] == ["last -> a.npy", "last -> b.npy"]
    assert len(lines) == 3


def test_frames_are_written_with_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    done = SimpleNamespace(notes=("a note",), seconds=2.0, frames=50, fps=23.976)
    monkeypatch.setattr(module, "process", lambda *given: asked.append(given) or done)
    job = VideoJob({}, {}, 3, 9, 12.0, "vp9", 7, ".npy")
    request = RunArguments(
        Path("net.xml"), inputs={"image": Path("in.mkv")}, outputs=(("result", Path("out.mkv")),), video=job, progress=print
    )  # fmt: skip
    assert list(module._run_frames("session", request)) == [  # type: ignore[arg-type]
        "note: a note",
        "result -> out.mkv",
        "50 frames at 23.98 frames per second; 40.0 ms per frame, including reading and writing",
    ]
    whole = replace(job, inputs={"image": Path("in.mkv")}, outputs={"result": Path("out.mkv")})
    assert asked == [("session", whole, print)]
    with pytest.raises(DiagnosticError) as caught:
        list(module._run_frames("session", replace(request, outputs=())))  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("no-output", "a video or a folder needs --output")


class Opened:
    """A variant as it is opened: which session it gives is said."""

    note = "emulated"
    variant = "the variant"
    weights = "the weights"

    def __init__(self, options: RunOptions = OPTIONS) -> None:
        self.options = options
        self.network = SimpleNamespace(graph="the graph")

    def session(self, options: RunOptions) -> Any:
        return SimpleNamespace(options=options, made="by the variant")

    def _replace(self, options: RunOptions) -> Opened:
        return Opened(options)


@pytest.mark.parametrize("against", ["", "onnxruntime", "half"])
def test_rates_are_relative_to_the_first_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: Path, against: str
) -> None:
    network = module.open_network(document)
    asked: list[Any] = []
    rates = [(40.0, 25.0), (100.0, 10.0)][: 2 if against else 1]

    def measure(sessions: dict[str, Any], job: FolderJob, progress: Any) -> list[Any]:
        asked.append((sessions, job, progress))
        pairs = zip(sessions, rates, strict=True)
        return [
            SimpleNamespace(title=title, rate=rate, seconds_of_many=many, images=7) for title, (rate, many) in pairs
        ]

    opened: list[Any] = []
    monkeypatch.setattr(module, "throughput", measure)
    monkeypatch.setattr(
        module,
        "open_variant",
        lambda *given: opened.append(given) or Opened(replace(given[-1], precision="fp16" if given[1] else "fp32")),
    )
    monkeypatch.setattr(module, "with_trust", lambda network, options, trust: replace(options, threads=len(trust)))
    (tmp_path / "photos").mkdir()
    request = RunArguments(
        document, tmp_path / "w", 3, inputs={"image": tmp_path / "photos"}, options=OPTIONS, against=against,
        trust=("a", "b", "c"), progress=print,
    )  # fmt: skip
    first = SimpleNamespace(options=OPTIONS)
    title = {"onnxruntime": "onnxruntime: onnxruntime fp32", "half": "half: torch fp16"}.get(against, "")
    assert list(module._measure(network, first, request)) == [  # type: ignore[arg-type]
        "torch fp32: 40 images per second; 500 images take 25.0 s",
        *([f"{title}: 100 images per second (2.5 times); 500 images take 10.0 s"] if against else []),
        "measured on 7 images in turn, without reading and writing",
    ]
    ((sessions, job, progress),) = asked
    assert (list(sessions), job, progress) == (
        ["torch fp32", title] if against else ["torch fp32"], FolderJob(request.inputs, {}), print
    )  # fmt: skip
    assert sessions["torch fp32"] is first
    if against == "half":
        assert opened == [(network, "half", tmp_path / "w", 3, OPTIONS)]
    elif against:  # the network itself, whatever variant is measured first
        assert opened == [(network, "", tmp_path / "w", 3, replace(OPTIONS, engine=against))]
    else:
        assert opened == []
    if against:
        assert sessions[title].options.threads == 3, "sources that are agreed to"
    with pytest.raises(DiagnosticError, match="--throughput needs a folder of images"):
        list(module._measure(network, first, replace(request, inputs={"image": tmp_path / "a.png"})))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("image", "once"), ("captures", "once"), ("video", "frames"), ("folder to a video", "frames"),
        ("folder", "folders"), ("cluster", "folders"), ("throughput", "measure"),
    ],
)  # fmt: skip
def test_every_request_is_run_its_way(
    monkeypatch: pytest.MonkeyPatch, document: Path, tmp_path: Path, kind: str, way: str
) -> None:
    """Hidden layers and clusters need the network itself; all else runs what the variant gives."""
    log: list[Any] = []
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").write_bytes(b"")
    for name in ("once", "frames", "folders"):
        monkeypatch.setattr(module, f"_run_{name}", lambda *given, name=name: log.append((name, *given)) or ["a line"])
    monkeypatch.setattr(module, "_measure", lambda *given: log.append(("measure", *given)) or ["a line"])
    opened: list[Any] = []

    def open_variant(*given: Any, **more: Any) -> Opened:
        opened.append((*given, more))
        return Opened()

    monkeypatch.setattr(module, "open_variant", open_variant)
    monkeypatch.setattr(module, "with_trust", lambda network, options, trust: replace(options, threads=len(trust)))
    monkeypatch.setattr(
        module,
        "Session",
        lambda graph, registry, weights, options: SimpleNamespace(options=options, made=f"of {graph} and {weights}"),
    )
    monkeypatch.setattr(module, "is_emulated", lambda options: kind in ("image", "captures"))
    inputs = {"video": tmp_path / "in.mkv", "image": tmp_path / "in.png", "captures": tmp_path / "in.png"}
    outputs = {"folder to a video": tmp_path / "out.mkv", "image": tmp_path / "out.png", "video": tmp_path / "out.mkv"}
    request = RunArguments(
        document, tmp_path / "w", 5, {"image": inputs.get(kind, photos)},
        () if kind in ("captures", "throughput") else (("result", outputs.get(kind, tmp_path / "out")),),
        (("conv", tmp_path / "c.npy"),) if kind == "captures" else (),
        OPTIONS, trust=("a",), variant="half", throughput=kind == "throughput", cluster="here" if kind == "cluster" else "",
    )  # fmt: skip
    lines = list(run_network(request))
    assert lines == ["note: emulated"] * (kind in ("image", "captures")) + ["a line"]
    ((network, *given),) = opened
    assert given == ["half", tmp_path / "w", 5, OPTIONS, {"passes": kind != "captures"}]
    ((name, *arguments),) = log
    assert name == way
    session = arguments[1] if way == "measure" else arguments[0]
    whole = kind in ("cluster", "captures")
    assert session.made == ("of the graph and the weights" if whole else "by the variant")
    assert session.options == replace(OPTIONS, threads=1)
    assert arguments[-1] is request
    if way == "folders":
        assert arguments[1] == "the variant"
    if way == "measure":
        assert arguments[0] is network


@pytest.mark.parametrize(
    ("changes", "code", "message", "remedy"),
    [
        ({"against": "torch"}, "bad-option", "--against needs --throughput", "give --throughput too, or use layerwright compare"),
        ({"inputs": {}}, "input-missing", "the input 'image' has no file", "give --input image=picture.png"),
        ({"inputs": {"other": Path("a.png")}}, "no-such-layer", "--input: there is no input 'other'", "choose: image"),
        ({"outputs": (("conv", Path("a.png")),)}, "no-such-layer", "--output: there is no output 'conv'", "choose: result"),
        (
            {"captures": (("gone:1", Path("a.npy")),)}, "no-such-layer", "--capture: there is no layer 'gone'",
            "choose: conv, image, result",
        ),
        ({"cluster": "here", "outputs": (("result", Path("o.png")),)}, "no-frames", "--cluster runs folders of images", "give --input NAME=FOLDER and --output NAME=FOLDER"),
        ({"cluster": "here"}, "no-frames", "--cluster runs folders of images", "give --input NAME=FOLDER and --output NAME=FOLDER"),
        (
            {"inputs": {"image": Path("a.mkv")}, "outputs": (("result", Path("a.mkv")), ("result", Path("b.abc")))},
            "unknown-format", None, None,
        ),
        (
            {"inputs": {"image": Path("a.mkv")}, "outputs": (("result", Path("folder")), ("result", Path("b.abc")))},
            "unknown-format", None, None,
        ),
        (
            {"inputs": {"image": Path("a.mkv")}, "captures": (("conv", Path("a.npy")),)}, "no-output",
            "--capture works only for single images", "use --output, or give --input one image",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, document: Path, changes: dict[str, Any], code: str, message: str, remedy: str
) -> None:
    monkeypatch.setattr(module, "open_variant", lambda *_, **__: Opened())
    monkeypatch.setattr(module, "Session", lambda *_: SimpleNamespace(options=OPTIONS))
    monkeypatch.setattr(module, "is_emulated", lambda options: False)
    request = replace(RunArguments(document, inputs={"image": Path("a.png")}, options=OPTIONS), **changes)
    with pytest.raises(DiagnosticError) as caught:
        list(run_network(request))
    (found,) = caught.value.diagnostics
    if message is None:
        assert (found.code, "b.abc" in f"{found.file} {found.message}") == (code, True)
    else:
        assert (found.code, found.message, found.remedy) == (code, message, remedy)


def test_layers_inside_of_templates_can_be_captured(tmp_path: Path) -> None:
    inner = (
        Layer("x", "template_input"),
        Layer("conv", "convolution", (320, 0), (Source("x"),), {"features": "3"}),
        Layer("y", "template_output", (640, 0), (Source("conv"),)),
    )
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("block", INSTANCE, (320, 0), (Source("image"),), {"template": "pair"}),
        Layer("result", "output", (640, 0), (Source("block"),)),
    ]
    save_document(Graph(layers, templates=[Template("pair", inner)]), tmp_path / "net.xml")
    network = module.open_network(tmp_path / "net.xml")
    request = RunArguments(tmp_path / "net.xml", inputs={"image": Path("a.png")})
    for name in ("block.conv", "block", "image", "block.conv:1"):
        module._check_request(network, replace(request, captures=((name, Path("a.npy")),)))
    for name in ("conv", "block.gone"):
        with pytest.raises(DiagnosticError, match=f"--capture: there is no layer '{name}'"):
            module._check_request(network, replace(request, captures=((name, Path("a.npy")),)))
