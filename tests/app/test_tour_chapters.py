"""Every chapter of the tour, with what it measures and trains played by the test: all that the page and the console say."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from rich.console import Console

import samples
from app.opened_network import open_network
from app.reports import tour as module
from app.reports.page import Page
from app.reports.provenance_table import add_machine, add_provenance
from app.reports.tour import Tour, channel_grid, run_tour
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.metrics import psnr
from designer.profiling.schema import Machine, OperatorProfile, Profile, ProfileRun
from designer.runtime.images import read_image


class Recorded(Page):
    """A page, and what was put on it in order."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.said: list[tuple[Any, ...]] = []

    def heading(self, text: str) -> None:
        self.said.append(("heading", text))
        super().heading(text)

    def text(self, text: str) -> None:
        self.said.append(("text", text))
        super().text(text)

    def code(self, text: str) -> None:
        self.said.append(("code", text))
        super().code(text)

    def picture(self, path: Path, caption: str) -> None:
        self.said.append(("picture", path, caption))
        super().picture(path, caption)

    def table(self, headings: Any, rows: Any, numbers: Any = ()) -> None:
        self.said.append(("table", tuple(headings), [tuple(row) for row in rows], tuple(numbers)))
        super().table(headings, rows, numbers)

    def of(self, kind: str) -> list[Any]:
        return [said[1] if len(said) == 2 else said[1:] for said in self.said if said[0] == kind]


@pytest.fixture
def tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tour:
    monkeypatch.setattr(module, "Page", Recorded)
    return Tour(tmp_path, Console(quiet=True), 40)


def page(tour: Tour) -> Recorded:
    assert isinstance(tour.page, Recorded)
    return tour.page


def test_the_design_is_changed_and_undone(tour: Tour) -> None:
    tour.design()
    said = page(tour).said
    network = open_network(samples.path("denoiser.xml"))
    assert (tour.folder / "denoiser.xml").read_bytes() == samples.path("denoiser.xml").read_bytes()
    assert [kind for kind, *_ in said] == ["text"] * (len(said) - 1) + ["table"]
    first, *findings, last = page(tour).of("text")
    before = ", ".join(map(str, network.inference.states["conv_enc_2"].outputs or ()))
    start, _, rest = first.partition(f" from {before} to ")
    assert start == (
        f"{network.graph.name} has {len(network.graph)} layers. Setting features of conv_enc_2 to 64 changes its output"
    )
    after, _, rest = rest.partition("; ")
    assert after == before.replace(" 56 ", " 64 ") != before
    number = int(rest.removesuffix(" layers were inferred again."))
    assert 0 < number < len(network.graph)
    assert 0 < len(findings) <= 3
    assert all(text.startswith("With a stride of 3x3: ") for text in findings)
    assert last == "Everything undone and saved: the file is byte for byte the sample."
    ((headings, rows, numbers),) = page(tour).of("table")
    assert (headings, numbers) == (("layer", "type", "output", "parameters"), (3,))
    assert [row[0] for row in rows] == [row.layer for row in network.rows()]
    assert {len(row) for row in rows} == {4}
    assert [bool(row[3]) for row in rows] == [bool(row.parameters) for row in network.rows()]
    (of_conv,) = (row for row in rows if row[0] == "conv_enc_2")
    assert of_conv[1] == "convolution"


def test_a_file_that_is_not_the_sample_is_said(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "save_document", lambda graph, path: path.write_bytes(b"other"))
    tour.design()
    assert page(tour).of("text")[-1] == "Everything undone and saved: the file is NOT the sample."


def test_the_project_is_written_and_shown(tour: Tour) -> None:
    tour.export()
    names, code = page(tour).said
    written = sorted(p.name for p in tour.project.iterdir() if p.is_file())
    assert sorted(names[1].removeprefix("Written: ").split(", ")) == written
    assert "train.py" in written
    lines = (tour.project / "model.py").read_text().splitlines()
    assert code == ("code", "\n".join(lines[:60]))
    assert len(lines) > 60
    assert "class Denoiser" in "\n".join(lines)


class Training:
    """A training that prints lines and ends with a status."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, project: Path, *events: dict[str, Any], status: int = 0
    ) -> None:
        self.stdout = io.StringIO("".join(json.dumps(event) + "\n" for event in events))
        self.returncode = status
        self.bars: list[tuple[int, str]] = []
        self.command: list[str] = []
        self.options: dict[str, Any] = {}
        project.mkdir()
        for name in ("curves", "before_after"):
            (project / f"{name}.png").write_bytes(name.encode())
        monkeypatch.setattr(module.subprocess, "Popen", self.start)
        training = self

        class Bar:
            def __init__(self, console: Console) -> None: ...

            def __enter__(self) -> Bar:
                return self

            def __exit__(self, *_: object) -> None: ...

            def add_task(self, title: str, total: int) -> int:
                training.bars.append((total, title))
                return 7

            def update(self, task: int, completed: int, description: str) -> None:
                assert task == 7
                training.bars.append((completed, description))

        monkeypatch.setattr(module, "Progress", Bar)

    def start(self, command: list[str], **options: Any) -> Training:
        self.command, self.options = command, options
        return self

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None: ...


def stepped(step: int, loss: float) -> dict[str, Any]:
    return {"event": "step", "step": step, "steps": 40, "loss": loss, "lr": 1e-3, "seconds": 1.0, "steps_per_second": 2.0}  # fmt: skip


def validated(step: int, denoised: float | None, noisy: float | None) -> dict[str, Any]:
    return {"event": "validation", "step": step, "psnr": denoised, "noisy_psnr": noisy}


def test_a_training_is_followed_and_shown(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [stepped(1, 0.5), validated(30, 24.256, 20.125), stepped(30, 0.12345), validated(40, None, 20.0)]
    training = Training(monkeypatch, tour.project, *events, validated(40, 25.0, 20.1))
    tour.train()
    arguments = (
        "--noise 25 --steps 40 --batch 8 --validate-every 30 --threads 2 --json-progress"
    ).split()  # fmt: skip
    assert training.command == [sys.executable, "train.py", "--data", str(samples.PHOTOGRAPHS), *arguments]
    assert training.options == {"cwd": tour.project, "stdout": subprocess.PIPE, "text": True}
    assert training.bars == [(40, "training"), (1, "training, loss 0.5000"), (30, "training, loss 0.1235")]
    assert page(tour).said == [
        ("code", " ".join(["python train.py --data photographs", *arguments])),
        ("table", ("step", "noisy PSNR (dB)", "PSNR (dB)"), [("30", "20.12", "24.26"), ("40", "20.10", "25.00")], (0, 1, 2)),
        ("picture", tour.folder / "training_curves.png", "Training: loss and PSNR"),
        ("picture", tour.folder / "training_before_after.png", "Training: noisy, denoised, original"),
    ]  # fmt: skip
    assert (tour.folder / "training_curves.png").read_bytes() == b"curves"
    assert (tour.folder / "training_before_after.png").read_bytes() == b"before_after"
    assert tour.trained == tour.project / "weights"


@pytest.mark.parametrize(
    ("events", "status", "message", "remedy"),
    [
        ([{"event": "error", "message": "no images"}], 0, "no images", "see the project's log"),
        ([stepped(1, 0.5)], 3, "train.py ended with status 3", "run it in that folder and read its output"),
    ],
)
def test_a_training_that_fails_says_why(
    tour: Tour, monkeypatch: pytest.MonkeyPatch, events: list[Any], status: int, message: str, remedy: str
) -> None:
    Training(monkeypatch, tour.project, *events, status=status)
    with pytest.raises(DiagnosticError) as caught:
        tour.train()
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.remedy) == ("training-failed", message, remedy)
    assert found.file == (str(tour.project / "train.py") if status else None)
    assert tour.trained is None


class Ran:
    """A session that the test answers for: `log` is what it was given."""

    log: ClassVar[list[tuple[Any, ...]]] = []
    clean = read_image(samples.HELD_OUT)

    def __init__(self, graph: Any, registry: Any, weights: Weights, options: Any) -> None:
        assert options is module.OPTIONS
        self.amount = ""
        self.better = 0.01 if weights is TRAINED else 0.005
        self.log.append(("open", len(graph), "trained" if weights is TRAINED else "sample"))

    def set_input(self, layer: str, image: Any, *, is_image: bool) -> None:
        assert np.array_equal(image, self.clean)
        self.log.append(("input", layer, is_image))

    def set_param(self, layer: str, name: str, text: str) -> None:
        self.amount = text if name == "amount" else self.amount
        self.log.append(("set", layer, name, text))

    def run(self, capture: tuple[Source, ...] = ()) -> Any:
        self.log.append(("run", *map(str, capture)))
        padded = np.pad(self.clean + 0.1, ((0, 0), (0, 0), (0, 3), (0, 5)))
        hidden = np.random.default_rng(0).standard_normal((1, 5, 4, 6)).astype(np.float32)
        steps = [(("noise_0",), self.amount == "0.5"), (("mix_0", "other"), False), (("last",), False)]
        return SimpleNamespace(
            captures={Source("noise_0"): padded, Source("conv_2s"): hidden},
            outputs={"output_image": self.clean + (0.5 if self.amount == "0.5" else self.better)},
            weights_note="random" if self.better == 0.005 else "",
            steps=[SimpleNamespace(layers=layers, cached=cached) for layers, cached in steps],
            milliseconds=12.0 if self.amount == "0.5" else 3456.0,
        )


TRAINED = Weights()


@pytest.mark.parametrize("trained", [True, False])
def test_results_are_compared_and_a_hidden_layer_is_shown(
    tour: Tour, monkeypatch: pytest.MonkeyPatch, trained: bool
) -> None:
    sample = Weights()

    def load(network: Any, location: Path, _: object) -> Weights:
        assert location in (tour.project / "weights", samples.weights("denoiser_analyze"))
        return TRAINED if location == tour.project / "weights" else sample

    monkeypatch.setattr("designer.runtime.session.Session", Ran)
    monkeypatch.setattr(module, "load_weights_for", load)
    images: dict[str, np.ndarray] = {}
    monkeypatch.setattr("designer.runtime.images.write_image", lambda path, image: images.update({path.name: image}))
    Ran.log = log = []
    tour.trained = tour.project / "weights" if trained else None
    assert tour.look() is sample
    network = open_network(samples.path("denoiser_analyze.xml"))
    titles = ["trained in this tour"] * trained + ["sample weights"]
    expected: list[tuple[Any, ...]] = []
    for title in titles:
        expected += [
            ("open", len(network.graph), title.split()[0]),
            ("input", "input_image", True),
            ("set", "noise_0", "scale", str(25 / 255)),
            ("set", "mix_0", "amount", "1.0"),
            ("run", "noise_0", "conv_2s"),
        ]
    assert log == [*expected, ("set", "mix_0", "amount", "0.5"), ("run",)]
    clean = Ran.clean
    texts = [f"{samples.HELD_OUT.name} with Gaussian noise of 25/255; this photo is not in the training set."]
    before = psnr(clean + 0.1, clean)
    for title in titles:
        after = psnr(clean + (0.01 if title.startswith("trained") else 0.005), clean)
        note = " - random" if title == "sample weights" else ""
        texts.append(f"{title}: {before:.2f} dB before, {after:.2f} dB after: {after - before:+.2f} dB{note}")
    texts.append("Moving Mix ran mix_0, other; last again: 12.0 ms, a full run takes 3.46 s.")
    assert page(tour).of("text")[:-1] == texts[:-1]
    assert page(tour).of("text")[-1] == texts[-1]
    assert page(tour).of("picture") == [
        (tour.folder / "noisy.png", "The noisy image"),
        (tour.folder / "denoised.png", "Denoised"),
        (tour.folder / "split.png", "Mix: denoised left, noisy right"),
        (tour.folder / "channels.png", "Channels of conv_2s: green positive, red negative"),
    ]
    hidden = np.random.default_rng(0).standard_normal((1, 5, 4, 6)).astype(np.float32)
    shown = {"noisy": clean + 0.1, "denoised": clean + 0.005, "split": clean + 0.5, "channels": channel_grid(hidden)}
    assert images.keys() == {f"{name}.png" for name in shown}
    for name, image in shown.items():
        assert np.allclose(images[f"{name}.png"], np.clip(image, 0, 1), atol=1e-6), name
    assert list(tour.origin) == titles
    for found in tour.origin.values():
        assert "gaussian" in str(found)
        assert "denoiser_analyze.xml" in str(found)


def test_operators_are_timed_and_listed(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(OperatorProfile((f"layer_{n}",), "convolution", 1.0 + n, saving_ms=float(n)) for n in range(14))
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "16x8", 105.0, 0.0, rows, notes=("a note",))
    weights, asked = Weights(), []

    def measure(session: Any, iterations: int) -> Profile:
        asked.append((session, iterations))
        return Profile(Machine("Test CPU", 2), "net", (run,))

    monkeypatch.setattr("designer.profiling.measure.profile_session", measure)
    monkeypatch.setattr("designer.runtime.session.Session", lambda graph, registry, *given: (len(graph), *given))
    tour.profile(weights)
    size = len(open_network(samples.path("denoiser.xml")).graph)
    assert asked == [((size, weights, module.OPTIONS), 5)]
    title, table, summary, *_, note = page(tour).said
    assert title == ("text", Profile(Machine("Test CPU", 2), "net", (run,)).title(run))
    assert [row[0] for row in table[2]] == [f"layer_{n}" for n in range(13, 1, -1)], "the largest saving first"
    assert table[1][:5] == ("layers", "hyperparameters", "type", "output", "time")
    assert [row[4] for row in table[2]][:2] == ["14.0 ms", "13.0 ms"]
    assert table[3] == tuple(range(4, len(table[1]))), "all but the first four columns are numbers"
    assert summary[1].startswith("whole network 105 ms")
    assert note == ("text", "a note")


def test_the_model_is_written(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, asked = Weights(), []

    def write(graph: Any, registry: Any, given: Weights, target: Path) -> None:
        asked.append((len(graph), given is weights, target))
        target.write_bytes(bytes(3 << 20))

    monkeypatch.setattr("exporters.onnx.export_onnx", write)
    tour.onnx(weights)
    size = len(open_network(samples.path("denoiser.xml")).graph)
    assert asked == [(size, True, tour.folder / "denoiser.onnx")]
    assert page(tour).said == [("text", "Wrote denoiser.onnx, 3.00 MiB, accepted by onnx.checker.")]


def test_weights_are_those_of_the_sample_or_random(tour: Tour, monkeypatch: pytest.MonkeyPatch) -> None:
    network = open_network(samples.path("denoiser_analyze.xml"))
    monkeypatch.setattr(module, "weights_location", lambda *_: None)
    found = tour._sample_weights(network)
    again = tour._sample_weights(network)
    assert found.tensors.keys() == again.tensors.keys()
    assert all(np.array_equal(array, again.tensors[key]) for key, array in found.tensors.items()), "seeded"
    assert {key.layer for key in found.tensors} > {"conv_enc_2", "conv_2s"}


def test_the_chapters_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Page", Recorded)
    done: list[Any] = []
    weights = Weights()
    made: list[Tour] = []

    def design(self: Tour) -> None:
        made.append(self)
        done.append("design")

    monkeypatch.setattr(Tour, "design", design)
    for name in ("export", "train"):
        monkeypatch.setattr(Tour, name, lambda self, name=name: done.append(name))
    monkeypatch.setattr(Tour, "look", lambda self: weights)
    for name in ("profile", "onnx"):
        monkeypatch.setattr(Tour, name, lambda self, given, name=name: done.append((name, given is weights)))
    moments = iter(float(number**2) for number in range(12))
    monkeypatch.setattr(module, "perf_counter", lambda: next(moments))
    text = io.StringIO()
    folder = tmp_path / "new" / "tour"
    index = run_tour(folder, Console(file=text, width=200), steps=9)
    assert index == folder / "index.html"
    assert done == ["design", "export", "train", ("profile", True), ("onnx", True)]
    (tour,) = made
    assert (tour.folder, tour.steps, tour.project, tour.page.title) == (
        folder, 9, folder / "project", "Layerwright: a tour"
    )  # fmt: skip
    chapters = ["Design", "Export a PyTorch project", "Train it", "Reload, run, look inside", "Profile", "Export ONNX"]
    assert text.getvalue().splitlines() == [f"{title}: {4 * n + 1:.1f} s" for n, title in enumerate(chapters)]
    alone = Recorded("")
    alone.heading("Networks")
    add_provenance(alone, tour.origin)
    add_machine(alone)
    assert page(tour).said == [*(("heading", title) for title in chapters), *alone.said]
    assert alone.of("heading") == ["Networks", "Machine and versions"]
    assert "Export ONNX" in index.read_text()


def test_channels_are_tiles_of_one_image() -> None:
    """A second way to compute it, with a row that is not full and values beyond the largest ones."""
    tensor = np.random.default_rng(3).standard_normal((1, 5, 4, 6)).astype(np.float32)
    grid = channel_grid(tensor, columns=3, gap=2)
    assert grid.shape == (1, 3, 2 * 6 - 2, 3 * 8 - 2)
    top = float(np.quantile(np.abs(tensor[0]), 0.995))
    expected = np.full(grid.shape[1:], 0.2)
    for index in range(5):
        for y in range(4):
            for x in range(6):
                value = tensor[0, index, y, x] / top
                at = (index // 3 * 6 + y, index % 3 * 8 + x)
                expected[:, at[0], at[1]] = (max(-value, 0), max(value, 0), 0)
    assert np.allclose(grid[0], expected)
    assert not np.isnan(channel_grid(np.zeros((1, 1, 2, 2), np.float32))).any()
    assert channel_grid(np.zeros((1, 9, 2, 2), np.float32)).shape == (1, 3, 2 * 4 - 2, 8 * 4 - 2)
