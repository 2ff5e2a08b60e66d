"""What the engine is fed with, which edits it is sent, and what is measured of its results."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from app.engine.protocol import SetFormatsRequest, SetParamRequest, UpdateRequest
from app.reports.quality import Quality
from app.ui.document.document import Document
from app.ui.engine import inputs as inputs_module
from app.ui.engine.inputs import cameras, default_picture, layers_of, pattern_thumbnail, photographs, title_of
from app.ui.engine.network_inputs import NetworkInputs
from app.ui.engine.pending_edits import PendingEdits
from app.ui.engine.quality import LiveQuality, qualities
from app.ui.engine.result import AnalysisResult
from designer.files.document import parse_document
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.metrics import psnr, ssim
from designer.operators.api import Role
from designer.operators.registry import default_registry
from designer.runtime.patterns import make_pattern


def network() -> Graph:
    """Three inputs, two of which have a size of an image that is a photograph, noise and a convolution."""
    return Graph(
        [
            Layer("photo", "input", params={"dims": "8x8x3"}),
            Layer("gray", "input", (0, 160), params={"dims": "8x8x1"}),
            Layer("deep", "input", (0, 320), params={"dims": "8x8x4"}),
            Layer("noise", "noise", (320, 0), (Source("photo"),), {"scale": "0.1", "seed": "1"}),
            Layer("second", "noise", (480, 0), (Source("noise"),), {"scale": "0.2"}),
            Layer("conv", "convolution", (640, 0), (Source("second"),), {"features": "4"}),
            Layer("result", "output", (960, 0), (Source("conv"),)),
        ]
    )


@pytest.fixture
def document(qapp: object) -> Document:
    return Document(network(), default_registry())


# --- files of inputs --------------------------------------------------------------------------------------------------


class Fed:
    """The inputs of a document, and what they said since."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.inputs = NetworkInputs(document)
        self.inputs.set_document(document)
        self.said: list[str] = []
        self.inputs.changed.connect(lambda: self.said.append("changed"))
        self.inputs.run_wanted.connect(lambda: self.said.append("run"))
        document.changed.connect(self.inputs.follow)

    def heard(self) -> list[str]:
        said, self.said = self.said, []
        return said

    def waits(self) -> list[str]:
        return [layer for layer, _ in self.inputs.take()]


@pytest.fixture
def fed(document: Document) -> Fed:
    return Fed(document)


def test_files_of_inputs_are_chosen_or_the_sample_photo(fed: Fed, tmp_path: Path) -> None:
    inputs, document = fed.inputs, fed.document
    sample = photographs()[0]
    assert photographs() == tuple(sorted(photographs()))
    assert {layer: inputs.path(layer) for layer in (*inputs.layers(), "conv", "absent")} == {
        "deep": None, "gray": sample, "photo": sample, "conv": None, "absent": None
    }  # fmt: skip
    inputs.feed_all()
    assert inputs.take() == [("gray", sample), ("photo", sample)]
    assert inputs.take() == [], "it counts as given"
    file = tmp_path / "one.png"
    inputs.set_file("photo", file)
    assert document.settings.input_files == {"photo": str(file)}
    assert fed.heard() == [], "the settings say it"
    inputs.set_file("deep", tmp_path / "two.npy")
    assert document.settings.input_files == {"photo": str(file), "deep": str(tmp_path / "two.npy")}
    inputs.set_file("photo", file)  # perhaps another file of the same name
    assert (fed.heard(), inputs.take()) == (["changed", "run"], [("photo", file)])
    inputs.feed_frames(["photo", "gray", "absent", "conv"])
    assert (fed.heard(), inputs.take()) == (["run"], [("gray", sample), ("photo", file)])
    inputs.feed({"gray"})
    inputs.feed({"deep"})
    assert fed.heard() == ["changed", "run"] * 2
    assert fed.waits() == ["deep", "gray"]
    inputs.feed_frames(["photo"])
    inputs.feed_frames(["gray"])
    assert fed.waits() == ["gray", "photo"], "those that wait go on waiting"
    inputs.set_file("photo", tmp_path / "three.png")
    assert document.settings.input_files["photo"] == str(tmp_path / "three.png")
    alone = NetworkInputs(document)
    assert (alone.layers(), alone.path("photo")) == ((), None)
    alone.set_file("photo", file)
    assert alone.take() == []


def test_inputs_follow_edits(fed: Fed) -> None:
    inputs, document = fed.inputs, fed.document
    for layer in inputs.layers():
        inputs.was_fed(layer, (1, 3, 8, 8))
        inputs.was_refused(layer, (Diagnostic("cannot-read", f"{layer} is broken"),))
    fed.waits()
    fed.said.clear()
    document.do(lambda g: commands.set_params(g, {"conv": {"features": "8"}}))
    document.do(lambda g: commands.move_layers(g, {"photo": (0, 640)}))
    assert (fed.heard(), fed.waits()) == ([], [])
    document.do(lambda g: commands.set_params(g, {"photo": {"dims": "16x8x3"}}))
    assert (fed.heard(), fed.waits()) == (["changed"], ["photo"])
    document.do(lambda g: commands.rename_layer(g, "photo", "image"))
    assert (fed.heard(), fed.waits()) == (["changed"], ["image"])
    document.do(lambda g: commands.add_layer(g, Layer("new", "input", params={"dims": "8x8x3"})))
    assert (fed.heard(), fed.waits()) == (["changed"], ["new"])
    document.do(lambda g: commands.remove_layers(g, ["deep"]))
    assert (fed.heard(), fed.waits()) == (["changed"], [])
    assert inputs.errors.keys() == inputs.shapes.keys() == {"gray"}
    inputs.set_document(document)
    assert (inputs.errors, inputs.shapes, fed.heard()) == ({}, {}, [])


def test_an_input_that_only_losses_read_is_fed_once_inference_reads_it(fed: Fed) -> None:
    inputs, document = fed.inputs, fed.document
    document.do(lambda g: commands.add_layer(g, Layer("clean", "input", params={"dims": "8x8x3"})))
    document.do(lambda g: commands.add_layer(g, Layer("loss", "l1_loss", inputs=(Source("conv"), Source("clean")))))
    assert "clean" not in inputs.layers()
    inputs.was_refused("clean", (Diagnostic("cannot-read", "it is broken"),))
    fed.waits()
    fed.said.clear()
    document.do(lambda g: commands.connect(g, Source("clean"), "noise", 0))
    assert "clean" in inputs.layers()
    assert fed.heard() == ["changed"]
    assert fed.waits() == ["clean"]
    document.undo()
    assert (fed.heard(), fed.waits(), inputs.errors) == (["changed"], [], {})


@pytest.mark.parametrize(
    ("code", "error"), [("cannot-read", "It is broken."), ("cancelled", ""), ("engine-crashed", "")]
)
def test_an_input_that_was_refused_waits_and_says_why(fed: Fed, code: str, error: str) -> None:
    """A cancelled or dead engine is not a fault of the file."""
    inputs = fed.inputs
    inputs.was_refused("photo", (Diagnostic(code, "it is broken"), Diagnostic("note", "a note")))
    assert inputs.errors == ({"photo": error} if error else {})
    assert fed.heard() == (["changed"] if error else [])
    assert fed.waits() == ["photo"]
    inputs.was_fed("photo", (1, 3, 4, 6))
    assert (inputs.errors, inputs.shapes, fed.heard()) == ({}, {"photo": (1, 3, 4, 6)}, ["changed"] if error else [])
    inputs.was_fed("photo", (1, 3, 4, 8))
    assert (inputs.shapes, fed.heard()) == ({"photo": (1, 3, 4, 8)}, [])
    inputs.was_refused("photo", (Diagnostic("cannot-read", "it is broken"),))
    inputs.set_file("photo", Path("/photos/other.png"))
    assert inputs.errors == {}


def test_names_and_images_of_inputs(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, registry = document.graph, document.registry
    assert layers_of(graph, registry, Role.INPUT) == ("deep", "gray", "photo")
    assert layers_of(graph, registry, Role.OUTPUT) == ("result",)
    assert layers_of(Graph(), registry, Role.INPUT) == ()
    assert default_picture(graph, registry, "conv") is None
    titles = {
        "/photos/one.png": "one.png", "/clips/shots": "shots", "camera:2": "camera 2",
        "pattern:zone_plate": "zone plate", "under_score.png": "under_score.png",
    }  # fmt: skip
    assert {path: title_of(Path(path)) for path in titles} == titles
    image = pattern_thumbnail("checkerboard")
    assert (image.width(), image.height()) == (96, 72)
    drawn = make_pattern("checkerboard", 3, 72, 96)[0]
    for x, y in ((0, 0), (50, 7), (95, 71)):
        assert image.pixelColor(x, y).getRgb()[:3] == tuple(np.rint(drawn[:, y, x] * 255).astype(int))

    class Devices:
        def __init__(self, folder: str) -> None:
            assert folder == "/dev"

        def glob(self, pattern: str) -> list[Path]:
            assert pattern == "video*"
            return [Path(f"/dev/{name}") for name in ("video10", "video2", "video0", "videox", "video")]

    monkeypatch.setattr(inputs_module, "Path", Devices)
    for platform, found in (("linux", ("0", "2", "10")), ("win32", ("0", "1")), ("darwin", ("0", "1"))):
        monkeypatch.setattr(inputs_module.sys, "platform", platform)
        assert cameras() == found
        monkeypatch.undo()
        monkeypatch.setattr(inputs_module, "Path", Devices)


# --- edits that wait ----------------------------------------------------------------------------------------------------


class Worker:
    """What the engine knows, by the requests that it was sent."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.edits = PendingEdits()
        self.graph = document.graph.copy()
        self.formats: dict[str, str] = {}
        self.edits.opened(document)
        self.told: list[bool] = []
        document.changed.connect(lambda change: self.told.append(self.edits.note(change, document)))

    def send(self) -> str:
        """The kinds of the requests that were needed."""
        kinds = []
        for request in self.edits.requests(self.document):
            match request:
                case UpdateRequest(text):
                    parsed = parse_document(text.encode()).graph
                    assert parsed is not None
                    self.graph = parsed
                    kinds.append("update")
                case SetParamRequest(layer, name, text):
                    assert self.graph[layer].params[name] != text, "it is known"
                    self.graph.apply(commands.set_params(self.graph, {layer: {name: text}}))
                    kinds.append(f"{layer}.{name}={text}")
                case SetFormatsRequest(formats):
                    self.formats = formats
                    kinds.append("formats")
        assert self.known(self.graph) == self.known(self.document.graph)
        assert self.edits.requests(self.document) == []
        return " ".join(kinds)

    @staticmethod
    def known(graph: Graph) -> dict[str, object]:
        return {
            layer.name: (layer.type, layer.inputs, dict(layer.params), layer.activation, layer.bypassed)
            for layer in graph
        }


def set_values(document: Document, layer: str, **values: str | None) -> None:
    document.do(lambda g: commands.set_params(g, {layer: values}))


def skip(document: Document, layer: str) -> None:
    document.do(bypass(document.graph, document.inference, [layer]))


def test_values_of_analysis_layers_are_sent_alone(document: Document) -> None:
    worker = Worker(document)
    assert worker.send() == ""
    set_values(document, "noise", scale="0.3")
    set_values(document, "noise", scale="0.4")
    set_values(document, "second", scale="0.5")
    assert worker.told == [True, True, True]
    assert worker.send() == "noise.scale=0.4 second.scale=0.5"
    set_values(document, "noise", scale="0.6", seed="2")
    set_values(document, "noise", scale="0.4")
    assert worker.send() == "noise.seed=2", "the scale is what is known"
    set_values(document, "noise", scale="0.1")
    document.undo()
    assert worker.send() == ""
    document.do(lambda g: commands.move_layers(g, {"noise": (320, 320)}))
    assert (worker.told[-1], worker.send()) == (True, "")
    worker.edits.note_formats({"conv": "int8"})
    worker.edits.note_formats({"conv": "fp16"})
    set_values(document, "noise", scale="0.9")
    assert worker.send() == "formats noise.scale=0.9"
    assert worker.formats == {"conv": "fp16"}
    worker.edits.note_formats({})
    worker.edits.opened(document)
    set_values(document, "noise", scale="0.8")
    worker.edits.opened(document)
    worker.graph = document.graph.copy()
    assert worker.send() == "", "the whole document was given"


EDITS = {
    "a parameter that computes": lambda d: set_values(d, "conv", features="8"),
    "an analysis layer and a convolution": lambda d: d.do(
        lambda g: commands.set_params(g, {"noise": {"scale": "0.7"}, "conv": {"features": "8"}})
    ),
    "a parameter more": lambda d: set_values(d, "second", seed="5"),
    "a parameter less": lambda d: set_values(d, "noise", seed=None),
    "a bypass": lambda d: skip(d, "noise"),
    "a layer more": lambda d: d.do(lambda g: commands.add_layer(g, Layer("more", "identity"))),
    "a layer less": lambda d: d.do(lambda g: commands.remove_layers(g, ["result"])),
    "a link less": lambda d: d.do(lambda g: commands.disconnect(g, "second", 0)),
    "another name": lambda d: d.do(lambda g: commands.rename_layer(g, "noise", "n")),
    "an activation": lambda d: d.do(lambda g: commands.set_activation(g, ["conv"], ActivationSpec("relu"))),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_other_edit_is_sent_as_the_whole_document(document: Document, name: str) -> None:
    worker = Worker(document)
    set_values(document, "second", scale="0.6")
    EDITS[name](document)
    worker.edits.note_formats({"conv": "int8"})
    assert worker.told == [True, False]
    set_values(document, "second", scale="0.4")
    assert worker.told[-1] is False, "the document waits"
    assert worker.send() == "update formats"
    set_values(document, "second", scale="0.3")
    assert (worker.told[-1], worker.send()) == (True, "second.scale=0.3")
    while document.undo():
        pass
    assert worker.send() == "update"


def test_an_activation_of_an_analysis_layer_is_sent_with_the_document(document: Document) -> None:
    document.do(lambda g: commands.set_activation(g, ["noise"], ActivationSpec("relu")))
    edits, told = PendingEdits(), list[bool]()
    edits.opened(document)
    document.changed.connect(lambda change: told.append(edits.note(change, document)))
    set_values(document, "noise", scale="0.5")
    assert told == [False]
    assert [type(request) for request in edits.requests(document)] == [UpdateRequest]


def test_values_of_a_bypassed_layer_are_sent_with_the_document(document: Document) -> None:
    worker = Worker(document)
    skip(document, "noise")
    worker.send()
    set_values(document, "noise", scale="0.5")
    assert worker.send() == "update"
    skip(document, "noise")
    set_values(document, "noise", scale="0.6")
    assert worker.send() == "update", "the end of the bypass is not known yet"
    set_values(document, "noise", scale="0.7")
    assert worker.send() == "noise.scale=0.7"


@pytest.mark.parametrize("seed", range(4))
def test_the_engine_knows_the_document_after_any_edits(document: Document, seed: int) -> None:
    worker, chance = Worker(document), random.Random(seed)
    steps = [
        lambda: set_values(document, "noise", scale=f"0.{chance.randrange(1, 9)}"),
        lambda: set_values(document, "second", scale=f"0.{chance.randrange(1, 9)}"),
        lambda: set_values(document, "noise", seed=chance.choice(["1", "2"])),
        lambda: set_values(document, "conv", features=chance.choice(["4", "8"])),
        lambda: skip(document, "noise"),
        document.undo,
        document.redo,
        worker.send,
        worker.send,
    ]
    for _ in range(60):
        chance.choice(steps)()
    worker.send()


# --- what is measured -----------------------------------------------------------------------------------------------------


class Shown(QObject):
    """An analysis whose results the test gives."""

    result_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.result: AnalysisResult | None = None

    def restorations(self) -> list[Any]:
        return [
            SimpleNamespace(result=Source("conv"), clean=Source("image"), output="out"),
            SimpleNamespace(result=Source("other", 1), clean=Source("image"), output="second"),
        ]

    def show(self, result: AnalysisResult | None) -> None:
        self.result = result
        self.result_changed.emit()


def images(seed: int, height: int = 24, width: int = 32) -> np.ndarray:
    return np.random.default_rng(seed).random((1, 3, height, width), np.float32)


def a_result(seed: int = 1, **more: Any) -> AnalysisResult:
    captures = {"conv": images(seed), "image": images(0)}
    return AnalysisResult({"out": images(9, 16, 20)}, captures, **more)


def test_what_is_measured_has_no_padding_and_a_clean_image_of_its_size(qapp: object) -> None:
    analysis = Shown()
    assert qualities(analysis) == {}  # type: ignore[arg-type]
    analysis.result = made = a_result()
    (output,) = found = qualities(analysis)  # type: ignore[arg-type]
    assert output == "out"
    quality = found["out"]
    assert (quality.result, quality.clean) == ("conv", "image")
    result, clean = made.captures["conv"][..., :16, :20], made.captures["image"][..., :16, :20]
    assert [np.array_equal(*pair) for pair in zip(quality.images, (result, clean), strict=True)] == [True, True]
    assert quality.text() == f"PSNR {psnr(clean, result):.2f} dB, SSIM {ssim(clean, result):.4f}: conv against image"
    analysis.result = AnalysisResult(
        {**made.outputs, "second": images(2, 24, 32)}, {**made.captures, "other:1": images(3)}
    )
    assert list(qualities(analysis)) == (["out", "second"] if str(Source("other", 1)) == "other:1" else ["out"])
    for other in (
        a_result(coarse=2),
        AnalysisResult({}, made.captures),
        AnalysisResult(made.outputs, {"conv": images(1)}),
        AnalysisResult(made.outputs, {"image": images(1)}),
        AnalysisResult(made.outputs, {"conv": images(1, 48, 64), "image": images(0)}),
        AnalysisResult(made.outputs, {"conv": images(1)[0], "image": images(0)[0]}),
    ):
        analysis.result = other
        assert qualities(analysis) == {}  # type: ignore[arg-type]


def test_texts_of_an_earlier_result_are_not_current(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = Shown()
    live = LiveQuality(analysis, analysis)  # type: ignore[arg-type]
    told: list[tuple[dict[str, str], bool]] = []
    live.changed.connect(lambda: told.append((dict(live.texts), live.current)))
    assert (live.texts, live.current) == ({}, True)
    made = [a_result(seed) for seed in (1, 2, 3)]
    texts = []
    for each in made:
        analysis.result = each
        texts.append({name: quality.text() for name, quality in qualities(analysis).items()})  # type: ignore[arg-type]
    analysis.result = None
    for each in made:
        analysis.show(each)
        assert not live.current
    assert told == [({}, False)] * 3, "each is said to be out of date at once"
    qtbot.waitUntil(lambda: live.current)
    assert live.texts == texts[2] != texts[1]
    assert [text for text, current in told if current] == [texts[2]], "the one between is not measured"
    analysis.show(None)
    assert told[-1] == ({}, True)

    def broken(self: Quality) -> str:
        raise ValueError("too small")

    analysis.show(made[0])
    qtbot.waitUntil(lambda: live.current)
    monkeypatch.setattr(Quality, "text", broken)
    analysis.show(made[1])
    assert (live.texts, live.current) == (texts[0], False)
    qtbot.waitUntil(lambda: live.current)
    assert live.texts == {}
