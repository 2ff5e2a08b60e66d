"""Commands one after the other in a folder: what each prints and writes is recorded and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_kit import Run, layerwright
from page_text import page_lines
from PIL import Image
from recorded import check_lines, rounded
from test_profile_reports import GRAPH, made
from test_recorded_reports import everything

from app.cli import compare_request, console
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.files.weights import random_weights, required_weights, save_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.profiling.profile_files import save_profile
from designer.runtime.api import RunResult
from designer.runtime.images import write_image
from designer.runtime.session import Session
from designer.training.sweep import Sweep, Trial
from designer.training.watched_run import RunState

__all__ = ["layerwright"]

pytest.importorskip("onnxruntime")

TIMES = (
    (re.compile(r"\b[\d.,]+(e[-+]?\d+)? (ns|µs|us|ms|s|min)\b"), "<time>"),
    (re.compile(r"[\d.,]+(e[-+]?\d+)? (images|frames) per second"), r"<rate> \2 per second"),
    (re.compile(r"\([\d.]+ times( as fast)?\)"), r"(<ratio> times\1)"),
    (re.compile(r"│ +-?[\d.]+% │ +[\d.e-]+ │"), "│ <share> │ <deviation> │"),
    (re.compile(r"[\d.e-]+ RMS"), "<error> RMS"),
    (re.compile(r"original: [\d.e-]+ \([\d.e-]+ relative\)"), "original: <difference>"),
    (re.compile(r"FP16; [\d.]+ KiB"), "FP16; <size>"),
    (re.compile(r"[0-9a-f]{12,}"), "<digest>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(T[\d:+Z.]*)?"), "<date>"),
)
CHANGING = re.compile(r"date|sha256|share$|deviation$|rms|first$|difference$|bytes$|producer")  # keys of JSON


def plain(text: str, folder: Path, measured: bool = True) -> str:
    """What a command printed, without what depends on the machine, the day and the width of a table. `measured`: also times."""
    text = text.replace(str(folder), "<folder>")
    for pattern, shown in TIMES if measured else TIMES[-2:]:
        text = pattern.sub(shown, text)
    return rounded("\n".join(re.sub(r"[━─]+", "─", line.rstrip()) for line in text.strip().splitlines()))


def facts(value: Any, path: str = "") -> list[str]:
    """The values of JSON, one object a line."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return [f"{path}: {', '.join(map(number, value))}"]
    inner = value.items() if isinstance(value, dict) else [(f"[{number}]", item) for number, item in enumerate(value)]
    plain_ones = [
        f"{key} {'<...>' if CHANGING.search(key) and item else number(item)}"
        for key, item in inner
        if not isinstance(item, dict | list) and not key.startswith("version.")
    ]
    found = [f"{path}: {'; '.join(plain_ones)}"] if plain_ones else []
    for key, item in inner:
        if isinstance(item, dict | list):
            found += facts(item, f"{path}.{key}".strip(".").replace(".[", "["))
    return found


def number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def described(path: Path) -> list[str]:
    """What a command wrote, as text."""
    if path.is_dir():
        return [f"{name}: {line}" for name in sorted(p.name for p in path.iterdir()) for line in described(path / name)]
    if path.suffix == ".json":
        return facts(json.loads(path.read_text()))
    if path.suffix == ".npy" and path.parent.name in ("imported", "pruned"):
        return ["written"]
    if path.suffix == ".html":
        return page_lines(path)
    if path.suffix in (".png", ".npy"):
        array = np.load(path) if path.suffix == ".npy" else np.asarray(Image.open(path))
        return [f"{array.dtype} {array.shape}, mean {array.mean():.3g}"]
    if path.suffix in (".xml", ".csv"):
        return path.read_text().splitlines()
    return ["written"]


class Terminal:
    """Runs commands in a folder and writes down what each prints and writes."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self.folder = run, folder
        self.lines: list[str] = []
        self.measured = True  # times and rates are, so they differ from run to run

    def __call__(self, *words: object, reads: Callable[[str], bool] = lambda name: True) -> str:
        """Run a command. Of the files that it writes those are read for which `reads` is true."""
        before = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*") if path.is_file()}
        done = self._run(*words)
        self.lines += ["", f"$ layerwright {' '.join(map(str, words))}"]
        for title, text in (("", done.out), ("! ", done.err)):
            shown = plain(text, self.folder, self.measured)
            if text is done.out and shown.startswith(("{", "[")):
                shown = "\n".join(facts(json.loads(text)))
            self.lines += [f"{title}{line}" for line in shown.splitlines()]
        if done.code:
            self.lines.append(f"= exit status {done.code}")
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and before.get(path) != path.stat().st_mtime_ns:
                name = path.relative_to(self.folder).as_posix()
                found = described(path) if reads(name) else []
                self.lines += [f"> {name}: {plain(line, self.folder, self.measured)}" for line in found]
        return done.out

    def check(self, name: str) -> None:
        check_lines(f"cli/{name}.txt", [line.replace(str(self.folder), "<folder>") for line in self.lines[1:]])


RELU = ActivationSpec("relu", {"alpha": "0.0"})


def layer(name: str, type_: str, inputs: str = "", activation: ActivationSpec | None = None, **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs.split(",")) if inputs else ()
    return Layer(name, type_, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=activation)


def block() -> Template:
    """Two convolutions that are used twice."""
    return Template(
        "block",
        (
            layer("x", "template_input"),
            layer("first", "convolution", "x", RELU, features=4, kernel="3x3"),
            layer("second", "convolution", "first", features=4, kernel="3x3"),
            layer("y", "template_output", "second"),
        ),
    )


def denoiser(**image: object) -> Graph:
    """A denoiser with blocks, behind noise and mixed with its input."""
    return Graph(
        [
            layer("image", "input", dims="32x24x3", **image),
            layer("noise", "noise", "image", kind="gaussian", scale="0.1", seed="3"),
            layer("wide", "convolution", "noise", RELU, features=4, kernel="3x3"),
            layer("a", "template", "wide", template="block"),
            layer("b", "template", "a", template="block"),
            layer("narrow", "convolution", "b", features=3, kernel="1x1"),
            layer("mix", "mix", "narrow,noise", selection="v_split", amount="0.25"),
            layer("result", "output", "mix"),
        ],
        templates=[block()],
        name="denoiser",
    )


def two() -> Graph:
    """Two inputs, two outputs and a training branch."""
    return Graph(
        [
            layer("left", "input", dims="16x12x1"),
            layer("right", "input", dims="16x12x1"),
            layer("target", "input", dims="16x12x1"),
            layer("difference", "element_wise", "left,right", operation="subtract"),
            layer("edges", "image_gradient", "difference"),
            layer("loss", "l1_loss", "difference,target"),
            layer("first", "output", "difference"),
            layer("second", "output", "edges"),
        ],
        name="two",
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    registry = default_registry()
    save_document(denoiser(tiling=8), tmp_path / "denoiser.xml")
    save_document(two(), tmp_path / "two.xml")
    needed = required_weights(Inference(denoiser(), registry))
    save_weights(tmp_path / "weights", random_weights(needed, 0).tensors)
    settings = Settings(
        weights="weights", variants=(Variant("half", precision="fp16"), Variant("in torch", engine="torch"))
    )
    save_settings(settings, settings_path(tmp_path / "denoiser.xml"))
    ys, xs = np.mgrid[:28, :40] / np.float32(40)
    for place, factor in (("images", 1.0), ("clean", 0.9)):
        (tmp_path / place).mkdir()
        for number, (height, width) in enumerate(((24, 32), (28, 40), (24, 32))):
            picture = np.stack([xs, ys, (xs + ys) / 2])[None, :, :height, :width] * (factor - 0.3 * number)
            write_image(tmp_path / place / f"{number}.png", picture.astype(np.float32))
    (tmp_path / "images" / ".hidden.png").write_bytes(b"")
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", np.linspace(0, 1 + 2 * number, 192, dtype=np.float32).reshape(1, 1, 12, 16))
    return tmp_path


@pytest.fixture
def terminal(layerwright: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Comparisons take 1/1024 s for each part of a network that a run computes."""
    monkeypatch.chdir(folder)
    for stream in (console.out, console.err):
        monkeypatch.setattr(stream, "_width", 200)
    clock = SimpleNamespace(seconds=0.0)
    run = Session.run

    def timed(self: Session, *given: Any, **named: Any) -> RunResult:
        result = run(self, *given, **named)
        clock.seconds += sum(not step.cached for step in result.steps) / 1024
        return result

    monkeypatch.setattr(Session, "run", timed)
    monkeypatch.setattr(compare_request, "perf_counter", lambda: clock.seconds)
    return Terminal(layerwright, folder)


def test_a_session_of_runs(terminal: Terminal) -> None:
    terminal("check", "denoiser.xml")
    terminal("check", "two.xml", "--json")
    run = ("run", "denoiser.xml", "--threads", 1)
    terminal(*run)
    terminal(*run, "--input", "image=images/1.png")
    terminal(
        *run,
        "--input",
        "image=images/1.png",
        "--output",
        "result=a.png",
        "--output",
        "result=a.npy",
        "--capture",
        "b=b.npy",
    )
    terminal(
        *run, "--input", "image=images/1.png", "--variant", "half", "--iterations", 3, "--capture", "a.first=inside.npy"
    )
    terminal(*run, "--input", "image=images/1.png", "--variant", "other")
    terminal(*run, "--input", "image=images/1.png", "--output", "noise=a.png")
    terminal(*run, "--input", "noise=images/1.png")
    terminal(*run, "--input", "image=absent.png")
    terminal(*run, "--input", "image=images/1.png", "--weights", "absent")
    terminal(*run, "--input", "image=images/1.png", "--tile", 8, "--output", "result=tiles.npy")
    terminal(*run, "--input", "image=images", "--output", "result=made")
    terminal(*run, "--input", "image=images", "--output", "result=made")
    (terminal.folder / "images" / "damaged.png").write_bytes(b"no image")
    terminal(*run, "--input", "image=images", "--output", "result=made")
    terminal(*run, "--input", "image=images", "--output", "result=made", "--capture", "b=c.npy")
    terminal(*run, "--input", "image=images/1.png", "--output", "result=again.png", "--cluster", "auto")
    pair = ("run", "two.xml", "--threads", 1, "--input", "right=1.npy", "--input", "left=0.npy")
    terminal(
        *pair,
        "--output",
        "second=second.npy",
        "--capture",
        "difference=made.npy",
        "--capture",
        "edges:dy=down.npy",
        "--output",
        "first=first.npy",
    )
    terminal(*pair, "--output", "first=first.npy", "--input", "target=0.npy")
    terminal("run", "two.xml", "--input", "left=0.npy", "--output", "first=first.npy")
    terminal(
        "video",
        "denoiser.xml",
        "--input",
        "image=clean",
        "--output",
        "result=frames",
        "--from",
        1,
        "--npy",
        "--threads",
        1,
    )
    terminal("video", "denoiser.xml", "--input", "image=clean", "--output", "result=frames2", "--from", 7)
    terminal.check("runs")


def test_a_session_of_comparisons(terminal: Terminal) -> None:
    compare = ("compare", "denoiser.xml", "denoiser.xml", "--images", "images", "--threads", 1)
    terminal(*compare, "--noise", "gaussian:25/255", "--noise", "poisson:0.1", "--seed", 5, "--variant", "", "--variant", "half",
             "--json", "noises.json", "--report", "noises.html")  # fmt: skip
    terminal(*compare, "--json", "first.json", "--engine", "torch")
    terminal(
        *compare,
        "--clean",
        "clean",
        "--json",
        "clean.json",
        "--engine",
        "torch",
        "--engine",
        "onnxruntime",
        "--layout",
        "nhwc",
    )
    terminal(*compare, "--noise", "gaussian:25/255", "--clean", "clean")
    terminal(*compare, "--noise", "rain:1")
    terminal(*compare, "--engine", "torch", "--engine", "torch", "--engine", "torch")
    terminal("compare", "denoiser.xml", "two.xml", "--images", "images")
    terminal("compare", "denoiser.xml", "--images", "weights")
    terminal("compare", "denoiser.xml", "--images", "absent")
    (terminal.folder / "clean" / "1.png").unlink()
    terminal(*compare, "--clean", "clean")
    terminal(
        "blame", "denoiser.xml", "--a", "fp32", "--b", "bf16", "--input", "images/0.png", "--threads", 1, "--rows", 2
    )
    terminal("blame", "denoiser.xml", "--a", "fp32", "--b", "half", "--input", "image=images/0.png", "--json")
    terminal("blame", "two.xml", "--a", "fp32", "--b", "bf16", "--input", "left=0.npy")
    terminal("passes", "denoiser.xml", "--input", "image=images/0.png", "--threads", 1, "-o", "passes.onnx")
    terminal("passes", "denoiser.xml", "--pass", "nothing")
    terminal.check("comparisons")


def test_a_session_of_profiles_and_sweeps(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: everything())
    monkeypatch.setattr("app.engine.training_profile.profile_training", lambda *_: everything().runs[0].training)
    terminal.measured = False
    terminal("profile", "denoiser.xml", "--json", "profile.json", reads=lambda name: False)
    other = replace(everything(), runs=tuple(replace(run, layout="nhwc") for run in everything().runs[1:2]))
    save_profile(terminal.folder / "other.json", other)
    terminal("profile", "denoiser.xml", "--against", "other.json", "--html", "profile.html", "--training")
    save_document(GRAPH, terminal.folder / "net.xml")
    slow, fast = made(), made((1.0, 3.0), engine="onnxruntime")
    runs = (slow, fast, made((1.5, 4.0), engine="openvino"))
    monkeypatch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: replace(everything(), runs=runs))
    terminal("profile", "net.xml", "--random-weights", 0)
    terminal.measured = True
    terminal("profile", "denoiser.xml", "--json", "profile.txt")
    terminal("profile", "denoiser.xml", "--html", "profile.txt")
    terminal("profile", "denoiser.xml", "--engine", "torch,steam")
    states = iter(
        [
            (RunState.FINISHED, "well"),
            (RunState.FAILED, "the loss is not finite"),
            (RunState.STOPPED, ""),
            (RunState.ENDED, ""),
        ]
    )

    def conduct(sweep: Sweep, waiting: list[Trial], place: object, ended: Callable[..., None]) -> None:
        assert str(place) == "Place(parallel=3, cluster='')"
        for trial in waiting:
            ended(trial, *next(states))

    monkeypatch.setattr("app.engine.sweep_process.conduct", conduct)
    sweep = (
        "sweep",
        "denoiser.xml",
        "--grid",
        "noise=15,25",
        "--grid",
        "lr=0.1,0.2",
        "--output",
        "sweep",
        "--parallel",
        3,
    )
    terminal(*sweep, "--data", "images", "--steps", 5, reads=lambda name: name.endswith("results.csv"))
    terminal(*sweep[:2], "--grid", "noise", "--output", "sweep")
    terminal(*sweep[:2], "--grid", "width.nothing=4", "--output", "other")
    terminal.check("profiles")


def test_a_session_of_conversions(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("exporters.sparse_sweep.no_sweep", lambda: "there is no GPU")
    folder = terminal.folder
    terminal("export", "onnx", "denoiser.xml", "--output", "net.onnx", reads=lambda name: False)
    terminal("import", "net.onnx", "-o", "imported.xml", reads=lambda name: False)
    terminal(
        "import",
        "net.onnx",
        "-o",
        "again.xml",
        "--weights",
        "imported",
        "--report",
        "import.json",
        reads=lambda name: name == "import.json",
    )
    terminal("import", "pytorch", "-o", "module.xml")
    terminal("export", "onnx", "two.xml", "--output", "two.onnx", reads=lambda name: False)
    terminal("import", "two.onnx", "-o", "two again.xml", reads=lambda name: False)
    graph = denoiser(tiling=8)
    save_document(Graph([replace(each, params={**each.params, "features": "5"}) if each.name == "wide" else each for each in graph],
                        name="denoiser", templates=graph.templates.values()), folder / "edited.xml")  # fmt: skip
    terminal("diff", "denoiser.xml", "edited.xml")
    terminal("diff", "denoiser.xml", "edited.xml", "--json")
    terminal("diff", "denoiser.xml", "denoiser.xml")
    terminal("sizes", "denoiser.xml")
    terminal(
        "precision",
        "denoiser.xml",
        "--to",
        "fp16",
        "--validate",
        "images",
        "-o",
        "half.onnx",
        "--report",
        "half.json",
        "--threads",
        1,
    )
    terminal("precision", "denoiser.xml", "--to", "fp16", "-o", "half.xml")
    terminal("prune", "denoiser.xml")
    terminal(
        "prune",
        "denoiser.xml",
        "-o",
        "pruned",
        "--report",
        "pruned.json",
        "--validate",
        "images",
        reads=lambda name: name == "pruned.json",
    )
    terminal("prune", "denoiser.xml", "-o", "pruned")
    terminal("convert", "denoiser.xml", "copy.nv-neural-model", reads=lambda name: False)
    terminal("convert", "denoiser.xml", "copy.onnx")
    save_document(Graph([layer("image", "input", dims="8x6x3"), layer("own", "custom", "image"), layer("result", "output", "own")]),
                  folder / "own.xml")  # fmt: skip
    run = ("run", "own.xml", "--input", "image=images/0.png")
    terminal(*run)
    terminal(*run, "--trust-custom", "all")
    terminal(*run, "--trust-custom", "0" * 64)
    terminal.check("conversions")
