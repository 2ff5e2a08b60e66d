"""Side by Side from the choices to the tables: what each row offers and sends, what a folder's table holds, what keys do."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QColor, QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget
from pytestqt.qtbot import QtBot
from side_kit import WAIT, network, photograph
from window_kit import shown

import samples
from app.engine.protocol import OpenRequest
from app.reports.comparison import ImageMetrics, Reference, Row, as_csv, as_dict, measured
from app.reports.votes import EQUAL, LEFT, RIGHT, VoteTrial
from app.ui.compare import folder_run
from app.ui.compare.folder_run import FolderRun, Kept
from app.ui.compare.folder_view import FolderView
from app.ui.compare.model import CLEAN, INPUT, NoiseChoice, SideModel
from app.ui.compare.pictures import ViewMode
from app.ui.compare.runner import Made
from app.ui.compare.setup import Setup
from app.ui.compare.variant_row import FILE, VariantRow
from app.ui.compare.variants import RANDOM, Variant, VariantChoice, make_variant
from app.ui.compare.vote_page import VotePage
from app.ui.compare.vote_view import SQUARE, VoteView
from app.ui.compare.window import SideWindow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import run_choices
from designer.files.document import read_document
from designer.files.settings import PATTERN
from designer.files.variants import Variant as SavedVariant
from designer.graph import commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.units import digits

pytestmark = pytest.mark.gui
BUTTON = Qt.MouseButton.LeftButton
BEST = "★ "


def document_of(folder: Path, parent: Any, name: str = "net", **settings: Any) -> Document:
    """An open document of a file."""
    graph = read_document(network(folder, name)).graph
    assert graph is not None
    found = Document(graph, default_registry(), folder / f"{name}.xml", parent=parent)
    found.change_settings(**settings)
    return found


# --- one variant -------------------------------------------------------------------------------------------------

SAVED = (SavedVariant("half", "fp16"), SavedVariant("few bits", "int8", weights="/w/other.npz"))


@pytest.fixture
def row(qtbot: QtBot) -> VariantRow:
    return shown(qtbot, VariantRow("B"), 320, 260)


def offered(box: Any) -> list[tuple[str, str]]:
    return [(box.itemText(number), box.itemData(number)) for number in range(box.count())]


def test_each_choice_of_a_variant_is_offered_and_sent_alone(qtbot: QtBot, row: VariantRow, tmp_path: Path) -> None:
    document = document_of(tmp_path, row, variants=SAVED)
    other, sample = network(tmp_path, "other"), samples.documents()[0]
    sent: list[VariantChoice] = []
    row.changed.connect(sent.append)
    full = VariantChoice(document, "/w/mine.npz", "torch", "fp16", "cpu")
    row.show_choice(full, [document, other, sample], removable=True)
    assert offered(row.source)[:3] == [("net.xml (open)", None), ("other.xml", None), (f"{sample.name} (sample)", None)]
    assert offered(row.source)[-1] == ("Choose a file...", FILE)
    tips = [row.source.itemData(number, Qt.ItemDataRole.ToolTipRole) for number in range(3)]
    assert tips == ["", str(other), str(sample)]
    assert offered(row.weights) == [
        ("from the settings", ""),
        ("mine.npz", "/w/mine.npz"),
        ("random (seed 0)", RANDOM),
        ("Choose a folder...", FILE),
    ]
    assert offered(row.variant) == [("none", ""), ("half", "half"), ("few bits", "few bits")]
    engines = [choice.value for choice in run_choices.engines()]
    assert [value for _, value in offered(row.engine)] == ["", *engines]
    assert [value for _, value in offered(row.device)] == ["", *(c.value for c in run_choices.devices("torch"))]
    assert [value for _, value in offered(row.precision)] == [
        "",
        *(c.value for c in run_choices.precisions("torch", "cpu")),
    ]
    boxes = {"weights": row.weights, "variant": row.variant, "engine": row.engine, "device": row.device}
    boxes["precision"] = row.precision
    for name, box in boxes.items():
        assert box.currentData() == getattr(full, name)
    for name, box, value in (
        ("weights", row.weights, RANDOM),
        ("engine", row.engine, "onnxruntime"),
        ("device", row.device, ""),
        ("precision", row.precision, ""),
        ("weights", row.weights, ""),
    ):
        before = sent[-1] if sent else full
        box.setCurrentIndex(box.findData(value))
        box.activated.emit(box.currentIndex())
        assert sent[-1] == replace(before, **{name: value})
        assert box.currentData() == value
    row.show_choice(full, [document, other, sample], removable=True)
    row.variant.setCurrentIndex(2)
    row.variant.activated.emit(2)
    assert sent[-1] == replace(full, variant="few bits", precision="")  # a variant has its own
    assert not row.precision.isEnabled()
    row.variant.setCurrentIndex(0)
    row.variant.activated.emit(0)
    assert sent[-1] == replace(full, variant="", precision="")
    assert row.precision.isEnabled()
    row.show_choice(replace(full, variant="half"), [document, other, sample], removable=True)
    row.source.setCurrentIndex(1)
    row.source.activated.emit(1)
    assert sent[-1] == replace(full, source=other, weights="", variant="")
    assert not row.variant.isEnabled()  # it has no variants
    assert [value for _, value in offered(row.weights)] == ["", RANDOM, FILE]


@pytest.mark.parametrize("engine", ["", "one"])
@pytest.mark.parametrize("device", ["", "gpu"])
def test_devices_and_precisions_are_those_of_the_engine_that_would_run(
    qtbot: QtBot, row: VariantRow, tmp_path: Path, monkeypatch: Any, engine: str, device: str
) -> None:
    document = document_of(tmp_path, row, engine="two", device="cpu")
    monkeypatch.setattr(
        run_choices, "engines", lambda: (run_choices.Choice("one", "One"), run_choices.Choice("two", "Two"))
    )
    monkeypatch.setattr(run_choices, "devices", lambda name: (run_choices.Choice("gpu", f"of {name}"),))
    monkeypatch.setattr(
        run_choices, "precisions", lambda name, there: (run_choices.Choice("fp16", f"of {name} on {there}"),)
    )
    row.show_choice(VariantChoice(document, "", engine, "", device), [document], removable=True)
    runs, there = engine or "two", device or "cpu"
    assert offered(row.engine) == [("from the settings", ""), ("One", "one"), ("Two", "two")]
    assert offered(row.device) == [("from the settings", ""), (f"of {runs}", "gpu")]
    assert offered(row.precision) == [("from the settings", ""), (f"of {runs} on {there}", "fp16")]


def test_a_row_asks_for_files_and_to_be_removed(qtbot: QtBot, row: VariantRow, tmp_path: Path) -> None:
    path = network(tmp_path, "one")
    for removable in (False, True):
        row.show_choice(VariantChoice(path), [path], removable=removable)
        assert row.remove.isEnabled() is removable
    sent: list[object] = []
    row.changed.connect(sent.append)
    with qtbot.waitSignal(row.file_wanted):
        row.source.activated.emit(row.source.count() - 1)
    with qtbot.waitSignal(row.weights_wanted):
        row.weights.chosen.emit(FILE)
    with qtbot.waitSignal(row.removed):
        qtbot.mouseClick(row.remove, BUTTON)
    assert sent == []
    for text, role in (("why", "error"), ("how", "info"), ("", "info")):
        row.show_message(text, role)  # type: ignore[arg-type]
        assert row.state == text


def test_files_that_are_chosen_belong_to_their_variant(qtbot: QtBot, tmp_path: Path, monkeypatch: Any) -> None:
    model = SideModel(default_registry())
    paths = [network(tmp_path, name) for name in ("one", "two")]
    model.choices = [VariantChoice(path, "/w/old", "torch", variant="half") for path in paths]
    model.noise = NoiseChoice(seed=3)
    setup = shown(qtbot, Setup(model, list), 320, 700)
    model.setParent(setup)
    setup.show_choices()
    setup.show_picture()
    changes: list[object] = []
    setup.changed.connect(lambda: changes.append(list(model.choices)))
    third = network(tmp_path, "three")
    for answer, expected in (("", model.choices[1]), (str(third), VariantChoice(third, "", "torch"))):
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, answer=answer: (answer, ""))
        setup.rows[1].source.setCurrentIndex(setup.rows[1].source.count() - 1)
        setup.rows[1].source.activated.emit(setup.rows[1].source.count() - 1)
        assert model.choices == [model.choices[0], expected]
        assert len(changes) == bool(answer)
        assert setup.rows[1].source.currentText() == expected.title + ".xml"  # never "Choose a file..."
    for answer, expected in (("", model.choices[0]), ("/w/new", replace(model.choices[0], weights="/w/new"))):
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_, answer=answer: answer)
        row = setup.rows[0]
        row.weights.setCurrentIndex(row.weights.findData(FILE))
        row.weights.activated.emit(row.weights.currentIndex())
        assert model.choices[0] == expected
        assert row.weights.currentData() == expected.weights
    assert len(changes) == 2
    assert third in setup.sources()
    assert set(samples.documents()) <= set(setup.sources())
    assert setup.seed.value() == 3
    setup.seed.setValue(11)
    setup.seed.editingFinished.emit()
    assert (model.noise.seed, len(changes)) == (11, 3)
    setup.seed.editingFinished.emit()
    assert len(changes) == 3  # nothing is different


def test_each_dialog_for_a_file_begins_where_the_file_in_use_is(qtbot: QtBot, tmp_path: Path, monkeypatch: Any) -> None:
    model = SideModel(default_registry())
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        network(folder, "net")
    model.choices = [VariantChoice(folder / "net.xml", str(folder / "weights" / "last")) for folder in folders]
    setup = shown(qtbot, Setup(model, list), 320, 700)
    model.setParent(setup)
    setup.show_choices()
    asked: list[tuple[str, str]] = []

    def ask(parent: QWidget, title: str, folder: str, kinds: str = "") -> Any:
        assert parent is setup
        asked.append((title, folder))
        return ("", "") if kinds else ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", ask)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", ask)
    for row, folder in zip(setup.rows, folders, strict=True):
        row.file_wanted.emit()
        row.weights_wanted.emit()
        assert asked == [("Network to Compare", str(folder)), ("Folder of weights", str(folder / "weights"))]
        asked.clear()
    noisy, clean = photograph(tmp_path / "one" / "noisy.png"), photograph(tmp_path / "two" / "clean.png")
    model.noise = NoiseChoice("")
    for image, clean_file, begins in (
        (None, None, ("", "")),
        (Path(f"{PATTERN}zone_plate"), None, ("", "")),
        (noisy, None, (str(noisy.parent), str(noisy.parent))),
        (noisy, clean, (str(noisy.parent), str(clean.parent))),
    ):
        model.picture, model.clean_file = image, clean_file
        setup.show_picture()
        setup.picture.activated.emit(setup.picture.count() - 1)
        setup.clean.activated.emit(setup.clean.count() - 1)
        assert asked == [("Image to Compare On", begins[0]), ("Clean Image", begins[1])]
        assert (model.picture, model.clean_file) == (image, clean_file)  # nothing was chosen
        asked.clear()


# --- what is opened ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "opened"),
    [
        ({}, {"weights": "/w/own", "seed": 3, "engine": "torch", "precision": "fp32", "device": "cpu"}),
        ({"weights": "/w/x"}, {"weights": "/w/x", "seed": None}),
        ({"weights": RANDOM}, {"weights": None, "seed": 0}),
        (
            {"engine": "onnxruntime"},
            {"engine": "onnxruntime", "precision": "fp32", "device": "cpu", "weights": "/w/own"},
        ),
        ({"precision": "bf16"}, {"engine": "torch", "precision": "bf16", "device": "cpu"}),
        ({"device": "cuda:0"}, {"engine": "torch", "precision": "fp32", "device": "cuda:0"}),
        ({"variant": "half"}, {"precision": "fp16", "weights": "/w/own", "seed": 3}),
        ({"variant": "few bits"}, {"weights": "/w/other.npz", "seed": None}),
        ({"variant": "few bits", "weights": "/w/x"}, {"weights": "/w/x"}),
    ],
)
def test_each_choice_is_in_the_request_to_the_engine(
    qapp: Any, tmp_path: Path, choice: dict[str, str], opened: dict[str, Any]
) -> None:
    document = document_of(tmp_path, qapp, weights="/w/own", random_seed=3, engine="torch", variants=SAVED)
    made = make_variant(VariantChoice(document, **choice), "C", document.registry)
    assert {name: getattr(made.opening, name) for name in opened} == opened
    assert (made.input, made.output, made.channels, made.document) == ("image", "result", 3, "net.xml")
    assert made.name == f"C {VariantChoice(document, **choice).full_title}"
    document.do(lambda g: commands.add_layer(g, Layer("second", "output", inputs=(Source("image"),))))
    assert make_variant(VariantChoice(document, **choice), "C", document.registry).output == "result", (
        "the first output"
    )
    document.deleteLater()


@pytest.mark.parametrize(
    ("choice", "title"),
    [
        ({}, "net"),
        ({"weights": "/w/mine.npz"}, "net (mine.npz)"),
        ({"weights": RANDOM}, "net (random)"),
        ({"engine": "torch", "device": "cuda:0", "precision": "fp16"}, "net (PyTorch, cuda:0, fp16)"),
        ({"variant": "half", "weights": "/w/a"}, "net (half, a)"),
    ],
)
def test_a_title_says_what_is_chosen_otherwise(choice: dict[str, str], title: str) -> None:
    assert VariantChoice(Path("folder") / "net.xml", **choice).full_title == title


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (1, 0), (0, 0)])
def test_a_network_with_other_ends_is_refused(qapp: Any, inputs: int, outputs: int) -> None:
    layers = [Layer(f"i{n}", "input", params={"dims": "8x8x3"}) for n in range(inputs)]
    layers += [Layer(f"o{n}", "output", inputs=(Source(f"i{n}"),)) for n in range(outputs)]
    document = Document(Graph(layers, name="ends"), default_registry(), parent=qapp)
    with pytest.raises(DiagnosticError) as caught:
        make_variant(VariantChoice(document), "A", document.registry)
    assert caught.value.diagnostics[0].message == f"ends has {inputs} inputs and {outputs} outputs"
    document.deleteLater()


def test_of_several_outputs_the_first_one_by_name_is_compared(qapp: Any) -> None:
    outputs = [Layer(name, "output", inputs=(Source("image"),)) for name in ("second", "first", "third")]
    document = Document(
        Graph([Layer("image", "input", params={"dims": "8x8x3"}), *outputs]), default_registry(), parent=qapp
    )
    made = make_variant(VariantChoice(document), "A", document.registry)
    assert (made.input, made.output) == ("image", "first")
    document.deleteLater()


# --- a folder ------------------------------------------------------------------------------------------------------


class Folder:
    """The table of a folder over a run that the test makes."""

    def __init__(self, qtbot: QtBot) -> None:
        self.model = SideModel(default_registry())
        self.run = FolderRun(self.model, self.model)
        self.view = shown(qtbot, FolderView(self.run), 900, 300)
        self.model.setParent(self.view)

    def begin(self, *names: str) -> None:
        self.run.rows, self.run.paths, self.run.columns = [], [], ["gaussian:0.1", *names]
        self.run.running, self.run.total, self.run.done = True, 3, 0
        self.run.started.emit()

    def add(self, name: str, *values: tuple[float, float, float], failure: str = "") -> Row:
        """One image: PSNR, SSIM and time by column; a variant with NaN failed."""
        figures = tuple(
            ImageMetrics(*value, failure if isnan(value[0]) and failure else "")
            for value in ((20.0, 0.5, nan), *values)
        )
        row = Row(name, "gaussian:0.1", figures, (7, 9), reference="the clean image")
        self.run.rows.append(row)
        self.run.paths.append(Path(name))
        self.run.done += 1
        self.run.row_added.emit(row)
        return row

    def end(self) -> None:
        self.run.running = False
        self.run.finished.emit()

    def texts(self) -> list[list[str]]:
        table = self.view.table
        items = [[table.item(row, column) for column in range(table.columnCount())] for row in range(table.rowCount())]
        return [[item.text() if item is not None else "" for item in row] for row in items]


@pytest.fixture
def folder(qtbot: QtBot) -> Folder:
    return Folder(qtbot)


def test_every_cell_of_the_folder_s_table_is_of_its_image(folder: Folder) -> None:
    view = folder.view
    assert view.table.horizontalHeader().isHidden()
    folder.begin("A one", "B two", "C three")
    titles = [view.table.horizontalHeaderItem(column).text() for column in range(view.table.columnCount())]
    assert titles == [
        "image",
        *("gaussian:0.1\nPSNR (dB)", "SSIM", "A one\nPSNR (dB)", "SSIM", "B two\nPSNR (dB)", "SSIM"),
        *("C three\nPSNR (dB)", "SSIM", "A one\nms", "B two\nms", "C three\nms"),
    ]
    values = {
        "0.png": ((30.0, 0.9, 5.0), (31.0, 0.91, 6.0), (nan, nan, 7.0)),
        "1.png": ((32.0, 0.8, 7.0), (31.5, 0.81, 4.0), (28.0, 0.7, 9.0)),
        "2.png": ((28.0, 0.7, 9.0), (28.0, 0.71, 5.0), (28.0, 0.69, 8.0)),
    }
    best = {"0.png": 1, "1.png": 0, "2.png": None}
    expected = []
    for name, found in values.items():
        folder.add(name, *found, failure="it broke" if name == "0.png" else "")
        metrics = ["20.00", "0.5000"]
        for number, (psnr, ssim, _) in enumerate(found):
            star = BEST if best[name] == number else ""
            failed = isnan(psnr) and name == "0.png"
            metrics += ["failed" if failed else f"{star}{psnr:.2f}", "-" if failed else f"{ssim:.4f}"]
        expected.append([name, *metrics, *(digits(time) for *_, time in found)])
        assert folder.texts()[: len(expected)] == expected
    ends = folder.texts()[3:]
    for (title, measure), texts in zip((("mean", fmean), ("deviation", pstdev)), ends, strict=True):
        numbers = []
        for place in range(3):
            for value, places in ((0, 2), (1, 4)):
                every = [found[place][value] for found in values.values() if not isnan(found[place][value])]
                numbers.append(f"{measure(every):.{places}f}")
        times = [digits(measure([found[place][2] for found in values.values()])) for place in range(3)]
        first = ["20.00", "0.5000"] if title == "mean" else ["0.00", "0.0000"]
        assert [text.removeprefix(BEST) for text in texts] == [title, *first, *numbers, *times]
        assert not any(text.startswith(BEST) for text in texts)  # one variant was not measured on all images
    item = view.table.item(0, 7)
    assert item.toolTip() == "it broke"
    tips = {view.table.item(row, column).toolTip() for row in range(5) for column in range(12)} - {""}
    assert tips == {"it broke"}
    for row in range(5):
        for column in range(12):
            item = view.table.item(row, column)
            assert item.font().bold() is (row > 2 or item.text().startswith(BEST))
            assert item.textAlignment() & (Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft)
    folder.begin("A one")  # another run: nothing stays
    assert folder.texts() == []
    folder.add("0.png", (30.0, 0.9, 5.0))
    assert folder.texts()[0] == ["0.png", "20.00", "0.5000", "30.00", "0.9000", "5.00"]


@pytest.mark.parametrize("inside", ["", "own"])
def test_the_note_counts_images_and_names_what_was_trained_on(folder: Folder, inside: str) -> None:
    seen = "; the sample networks were trained on these photographs" * (not inside)
    folder.begin("A one")
    for count in (1, 2):
        folder.add(str(samples.PHOTOGRAPHS / inside / f"{count}.png"), (20.0 + count, 0.5, 1.0))
        folder.end()
        start = "1 image" if count == 1 else "2 images; deviation of PSNR up to 0.50 dB"
        assert folder.view.note.text() == f"{start}; measured against the clean image{seen}"


def test_the_mean_of_all_images_has_its_best_variant(folder: Folder) -> None:
    folder.begin("A one", "B two")
    folder.add("0.png", (30.0, 0.9, 5.0), (31.0, 0.91, 6.0))
    folder.add("1.png", (33.0, 0.9, 5.0), (31.0, 0.91, 6.0))
    assert [text for text in folder.texts()[2] if text.startswith(BEST)] == [f"{BEST}31.50"]
    folder.add("2.png", (30.0, 0.9, 5.0), (33.0, 0.9, 1.0))
    assert [text for text in folder.texts()[3] if text.startswith(BEST)] == [f"{BEST}31.67"]
    assert folder.texts()[3][5].startswith(BEST)


def test_what_is_said_and_possible_follows_the_run(qtbot: QtBot, folder: Folder, monkeypatch: Any) -> None:
    view, run = folder.view, folder.run

    def state() -> tuple[bool, bool, bool, set[bool]]:
        saves = {button.isEnabled() for button in view.save_buttons.values()}
        return view.start_button.isEnabled(), view.cancel_button.isEnabled(), view.progress.isVisible(), saves

    assert set(view.save_buttons) == {"csv", "json", "html"}
    assert (state(), view.note.text()) == ((True, False, False, {False}), "")
    folder.begin("A one", "B two")
    assert (state(), view.note.text()) == ((False, True, True, {False}), "")
    assert (view.progress.maximum(), view.progress.value()) == (3, 0)
    folder.add("0.png", (30.0, 0.9, 5.0), (31.0, 0.9, 6.0))
    assert (state(), view.note.text(), view.progress.value()) == ((False, True, True, {False}), "", 1)
    folder.add("1.png", (32.0, 0.9, 5.0), (36.0, 0.9, 6.0))
    folder.end()
    told = "2 images; deviation of PSNR up to 2.50 dB; measured against the clean image"
    assert (state(), view.note.text()) == ((True, False, False, {True}), told)
    rows = [
        replace(row, figures=(ImageMetrics(noisy, 0.5), *row.figures[1:]))
        for row, noisy in zip(run.rows, (5.0, 40.0), strict=True)
    ]
    larger = "; the input is enlarged {} times by bicubic interpolation"
    for scales, references, said in (
        ((1, 3), ("A one", ""), "; measured against A one" + larger.format(3)),
        ((4, 2), ("", ""), larger.format(4)),
        ((2, 2), ("A one", "B two"), "; measured against A one, B two" + larger.format(2)),
        ((1, 1), ("B two", "B two"), "; measured against B two"),
    ):
        run.rows = [replace(r, scale=s, reference=n) for r, s, n in zip(rows, scales, references, strict=True)]
        run.finished.emit()
        assert view.note.text() == "2 images; deviation of PSNR up to 2.50 dB" + said
    run.rows = rows[:1]
    run.finished.emit()
    assert view.note.text() == "1 image; measured against the clean image"
    run.rows = rows
    run.finished.emit()
    run.skipped = ["a.png: it is broken", "b.png"]
    run.failures = {"A one": (2, "it has no memory"), "B two": (1, "it broke")}
    run.finished.emit()
    assert view.note.text() == (
        "A one failed on 2 images: it has no memory  B two failed on 1 images: it broke  Left out: a.png: it is broken; b.png"
    )
    run.failures = {}
    run.finished.emit()
    assert view.note.text() == "Left out: a.png: it is broken; b.png"
    run.problem = "There is nothing."
    run.finished.emit()
    assert view.note.text() == "There is nothing."
    wanted: list[Path] = []
    view.picture_wanted.connect(wanted.append)
    for row in range(view.table.rowCount()):
        view.table.cellDoubleClicked.emit(row, 1)
    assert wanted == [Path("0.png"), Path("1.png")]  # mean and deviation are no images
    started: list[Path] = []
    monkeypatch.setattr(run, "start", started.append)
    view.folder.setText("some/folder")
    qtbot.mouseClick(view.start_button, BUTTON)
    qtbot.keyClick(view.folder, Qt.Key.Key_Return)
    assert started == [Path("some/folder")] * 2
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/photos")
    view.findChild(type(view.start_button), "side.folder.browse").click()
    assert view.folder.text() == "/photos"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    view.findChild(type(view.start_button), "side.folder.browse").click()
    assert view.folder.text() == "/photos"
    menu = view.samples.menu()
    for action, path in zip(menu.actions(), (samples.PHOTOGRAPHS, samples.HELD_OUT.parent), strict=True):
        action.trigger()
        assert view.folder.text() == str(path)


def test_the_files_of_a_folder_have_every_value() -> None:
    rows = [
        Row("=a.png", "gaussian:0.1", (ImageMetrics(20.0, 0.5), ImageMetrics(inf, 1.0, 5.0), ImageMetrics(nan, nan, 6.25, "it broke")), (7, 9), reference="A"),
        Row("b.png", "blur:2", (ImageMetrics(21.5, 0.25), ImageMetrics(30.125, 0.75, nan), ImageMetrics(28.0, 0.7, 1.0)), (1, 2)),
    ]  # fmt: skip
    columns = ["input", "A", "B"]
    lines = list(csv.reader(io.StringIO(as_csv(columns, rows))))
    assert lines == [
        ["image", "noise", "variant", "psnr_db", "ssim", "time_ms", "reference", "failure"],
        ["'=a.png", "gaussian:0.1", "input", "20.00", "0.5000", "-", "A", ""],
        ["'=a.png", "gaussian:0.1", "A", "inf", "1.0000", "5.00", "A", ""],
        ["'=a.png", "gaussian:0.1", "B", "-", "-", "6.25", "A", "it broke"],
        ["b.png", "blur:2", "input", "21.50", "0.2500", "-", "", ""],
        ["b.png", "blur:2", "A", "30.12", "0.7500", "-", "", ""],
        ["b.png", "blur:2", "B", "28.00", "0.7000", "1.00", "", ""],
    ]
    found = json.loads(json.dumps(as_dict(columns, rows), allow_nan=False))
    assert found["images"][0] == {
        "name": "=a.png",
        "noise": "gaussian:0.1",
        "reference": "A",
        "scale": 1,
        "metrics": [
            {"psnr": 20.0, "ssim": 0.5, "ms": None},
            {"psnr": None, "ssim": 1.0, "ms": 5.0},
            {"psnr": None, "ssim": None, "ms": 6.25, "failure": "it broke"},
        ],
        "worst": {"x": 9, "y": 7},
    }
    assert found["mean"]["blur:2"][1] == {"psnr": 30.125, "ssim": 0.75, "ms": None}
    assert found["deviation"]["blur:2"][2] == {"psnr": 0.0, "ssim": 0.0, "ms": 0.0}


def test_a_variant_without_a_result_failed_whatever_the_reason() -> None:
    image = np.zeros((1, 3, 8, 8), np.float32)
    for failures, said in (((), "it has no result"), (("", "it broke"), "it broke"), (("", ""), "it has no result")):
        row = measured("a.png", "", Reference.clean(image), image, [image, None], [1.0, nan], failures=failures)
        assert [found.failure for found in row.figures] == ["", "", said]


class FakeRunner:
    """Runs variants without engines: results come when the test says so."""

    def __init__(self, folder: Folder, monkeypatch: Any, count: int) -> None:
        self.folder, self.model, self.run = folder, folder.model, folder.run
        self.model.choices = [VariantChoice(Path(f"{letter}.xml")) for letter in "ABC"[:count]]
        self.variants: list[Variant | None] = [
            Variant(f"{letter} net", OpenRequest("text", letter), "in", "out", 3, f"{letter}.xml", "0" * 64)
            for letter in "ABC"[:count]
        ]
        self.images: list[np.ndarray] = []
        monkeypatch.setattr(self.model, "make_variants", self._make)
        monkeypatch.setattr(self.model.runner, "run", lambda variants, image: self.images.append(image))

    def _make(self, *, shown: bool = False) -> list[Variant | None]:
        self.model.variants = list(self.variants)
        self.model.errors = ["" if variant is not None else "It cannot be read." for variant in self.variants]
        return self.model.variants

    def answer(self, qtbot: QtBot, *results: float | str) -> None:
        """What each variant makes of the present image: an error that is added to it, or why it failed."""
        count = len(self.images)
        qtbot.waitUntil(lambda: len(self.images) > self.answered, timeout=WAIT)
        self.answered += 1
        image = self.images[-1]
        runner = self.model.runner
        for index, result in enumerate(results):
            if isinstance(result, str):
                runner.failed.emit(index, result)
            else:
                runner.made.emit(index, Made((image + result).astype(np.float32), 5.0 + index))
        done = self.run.done
        runner.finished.emit()
        qtbot.waitUntil(lambda: self.run.done > done, timeout=WAIT)
        assert count <= len(self.images)

    answered = 0


def test_a_folder_is_run_image_by_image(qtbot: QtBot, folder: Folder, tmp_path: Path, monkeypatch: Any) -> None:
    fake, run = FakeRunner(folder, monkeypatch, 3), folder.run
    for number in range(3):
        photograph(tmp_path / f"{number}.png", number)
    (tmp_path / "broken.png").write_bytes(b"no image")
    run.start(tmp_path)
    assert (run.running, run.total, run.columns) == (True, 4, ["gaussian:25/255", "A net", "B net", "C net"])
    fake.answer(qtbot, 0.01, 0.1, "it broke")
    fake.answer(qtbot, 0.1, 0.01, 0.02)
    fake.answer(qtbot, "no", "no", "it broke again")
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    assert [row.name for row in run.rows] == ["0.png", "1.png"]
    assert [path.name for path in run.paths] == ["0.png", "1.png"]
    assert [[figure.failure for figure in row.figures] for row in run.rows] == [["", "", "", "it broke"], [""] * 4]
    assert run.failures == {"A net": (1, "no"), "B net": (1, "no"), "C net": (2, "it broke again")}
    assert run.skipped[0] == "2.png"
    assert "broken.png" in run.skipped[1]
    assert (run.done, run.total) == (4, 4)
    assert [[figure.milliseconds for figure in row.figures[1:]] for row in run.rows][1] == [5.0, 6.0, 7.0]
    assert [list(kept.pixels) for kept in run.kept] == [["A", "B"], ["A", "B", "C"]]
    assert list(run.provenance) == ["A net", "B net", "C net"]
    assert run.names == {"A": "A net", "B": "B net", "C": "C net"}
    for row in run.rows:
        assert (row.noise, row.reference) == ("gaussian:25/255", "the clean image")
    fake.variants[1] = None
    run.start(tmp_path)
    assert run.columns == ["gaussian:25/255", "A net", "C net"]
    assert (run.rows, run.failures, run.skipped, run.kept) == ([], {}, [], [])
    fake.answer(qtbot, 0.01)
    folder.model.started.emit()  # the engines are wanted elsewhere
    assert not run.running
    assert len(run.rows) == 1
    folder.model.runner.made.emit(0, Made(fake.images[-1], 1.0))
    folder.model.runner.finished.emit()
    assert len(run.rows) == 1
    fake.variants = [None, None, None]
    run.start(tmp_path)
    assert (run.running, run.problem) == (False, "It cannot be read.")


@pytest.mark.parametrize(("room", "images"), [(1, 1), (2 * 20480, 2), (2 * 20480 + 1, 3)])
def test_only_the_first_images_of_a_folder_are_kept_for_pages_and_votes(
    qtbot: QtBot, folder: Folder, tmp_path: Path, monkeypatch: Any, room: int, images: int
) -> None:
    monkeypatch.setattr(folder_run, "SHOWN", images)
    monkeypatch.setattr(folder_run, "KEPT", room)
    fake, run = FakeRunner(folder, monkeypatch, 2), folder.run
    for number in range(4):
        photograph(tmp_path / f"{number}.png", number, (64, 40))
    run.start(tmp_path)
    for _ in range(4):
        fake.answer(qtbot, 0.01, 0.1)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    shown = [["clean", *run.columns]] * images + [[]] * (4 - images)
    assert [[item.name for item in row.shown] for row in run.rows] == shown
    assert [kept.name for kept in run.kept] == [f"{number}.png" for number in range(images)]
    assert {pixels.nbytes for kept in run.kept for pixels in kept.pixels.values()} == {64 * 40 * 4}


def test_without_noise_the_first_variant_is_the_measure_where_it_has_a_result(
    qtbot: QtBot, folder: Folder, tmp_path: Path, monkeypatch: Any
) -> None:
    fake, run = FakeRunner(folder, monkeypatch, 3), folder.run
    folder.model.noise = NoiseChoice("")
    for number in range(2):
        photograph(tmp_path / f"{number}.png", number)
    run.start(tmp_path)
    fake.answer(qtbot, "no", 0.1, 0.2)
    fake.answer(qtbot, 0.1, "no", 0.2)
    qtbot.waitUntil(lambda: not run.running, timeout=WAIT)
    assert [row.reference for row in run.rows] == ["", "A net"]
    measured_ones = [[not isnan(figure.psnr) for figure in row.figures] for row in run.rows]
    assert measured_ones == [[False] * 4, [False, False, False, True]]


# --- the window ------------------------------------------------------------------------------------------------------


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, monkeypatch: Any) -> SideWindow:
    """A window whose variants are not run."""
    context = Context(default_registry())
    context.set_document(document_of(tmp_path, context))
    made = SideWindow(context)
    context.setParent(made)
    monkeypatch.setattr(made.model, "compare", made.model.started.emit)
    qtbot.addWidget(made)
    made.resize(1200, 800)
    made.show()
    qtbot.waitExposed(made)
    made.begin()
    return made


def test_each_key_does_what_its_tooltip_says(qtbot: QtBot, window: SideWindow, monkeypatch: Any) -> None:
    compared: list[str] = []
    monkeypatch.setattr(window.model, "compare", lambda: compared.append("compare"))
    window.model.choices = [window.model.choices[0]] * 3
    stepped: list[int] = []
    monkeypatch.setattr(window.figures, "step", stepped.append)
    zoomed: list[float] = []
    monkeypatch.setattr(window.bar, "zoom", zoomed.append)
    window._keys()  # with the methods above
    for shortcut in window.findChildren(type(next(iter(window.shortcuts.values()))))[: -len(window.shortcuts)]:
        if shortcut not in window.shortcuts.values():
            shortcut.setEnabled(False)
    pictures = window.pictures
    for key, mode in (("S", ViewMode.SPLIT), ("D", ViewMode.DIFFERENCE), ("G", ViewMode.GRID), ("F", ViewMode.TURNS)):
        window.shortcuts[key].activated.emit()
        assert pictures.mode is mode
        assert f"({key}" in window.bar.modes[mode].toolTip()
    for key, alone in (("N", INPUT), ("R", CLEAN), ("1", "A"), ("2", "B"), ("3", "C"), ("4", "C")):
        window.shortcuts["G"].activated.emit()
        window.shortcuts[key].activated.emit()
        assert pictures.alone == alone
        assert pictures.mode is (ViewMode.GRID if key == "4" else ViewMode.TURNS)  # there is no fourth one
    window.shortcuts["X"].activated.emit()
    assert pictures.alone == pictures.pair[0]
    window.shortcuts["F5"].activated.emit()
    assert compared == ["compare"]
    for key in ("W", "Shift+W"):
        window.shortcuts[key].activated.emit()
    assert stepped == [1, -1]
    for key in ("Ctrl+0", "Ctrl+1", "Ctrl+2"):
        window.shortcuts[key].activated.emit()
    assert zoomed == [0.0, 1.0, 2.0]
    window.shortcuts["Esc"].activated.emit()
    assert not window.isVisible()


def test_the_line_at_the_foot_follows_the_comparison(window: SideWindow) -> None:
    model, run = window.model, window.folder_run
    model.picture = Path("photo.png")

    def state() -> tuple[str, bool, bool, bool]:
        model.finished.emit()
        buttons = (window.stop_button.isEnabled(), window.report_button.isEnabled(), window.progress.isVisible())
        return (window.status.text(), *buttons)

    assert state() == ("", False, False, False)
    model.busy, model.status, model.errors = True, ["", ""], ["", ""]
    assert state() == ("Preparing the image …", True, False, True)
    assert (window.progress.value(), window.progress.maximum()) == (0, 2)
    model.status = ["Running …", ""]
    assert state()[0] == "A: Running …"
    model.made = {"A": Made(np.zeros((1, 3, 4, 6), np.float32), 1.0)}
    model.status = ["", "Timing …"]
    assert state()[0] == "B: Timing …"
    model.status = ["random weights (seed 3)", "Running …"]
    assert state()[0] == "B: Running …"  # what was said of a result does not hide what runs
    assert window.progress.value() == 1
    model.errors = ["", "It broke."]
    state()
    assert window.progress.value() == 2
    model.busy = False
    assert state() == ("1 of 2 variants failed; see the reason at each", False, True, False)
    model.errors = ["", ""]
    model.noisy = np.zeros((1, 3, 4, 6), np.float32)
    assert state() == ("photo.png, 6 x 4, gaussian:25/255, seed 0", False, True, False)
    model.noise = NoiseChoice("")
    assert state()[0] == "photo.png, 6 x 4, no noise added"
    model.problem = "There is no image."
    assert state()[0] == "There is no image."
    model.errors = ["", "It broke."]
    assert state()[0] == "There is no image."  # it keeps all variants from running
    run.running = True
    assert state()[1:] == (True, False, False)
    run.running = False


def test_what_is_compared_first(qtbot: QtBot, tmp_path: Path) -> None:
    context = Context(default_registry())
    own = document_of(tmp_path, context, "own", input_files={"image": str(photograph(tmp_path / "mine.png"))})
    other = document_of(tmp_path, context, "other")
    dncnn = samples.path("dncnn.xml")
    sample = Document(Graph(), context.registry, dncnn, parent=context)
    video = document_of(tmp_path, context, "video", input_files={"image": "film.mp4"})
    made_up = document_of(tmp_path, context, "made up", input_files={"image": f"{PATTERN}bars"})
    for documents, first, second, picture in (
        ([own, other], own, other, tmp_path / "mine.png"),
        ([own], own, dncnn, tmp_path / "mine.png"),
        ([sample], sample, samples.path("denoiser.xml"), samples.HELD_OUT),
        ([], dncnn, samples.path("denoiser.xml"), samples.HELD_OUT),
        ([video], video, dncnn, samples.HELD_OUT),
        ([made_up], made_up, dncnn, Path(f"{PATTERN}bars")),
    ):
        made = SideWindow(context, lambda documents=documents: documents)  # type: ignore[misc]
        qtbot.addWidget(made)
        made._choose_first()
        assert [choice.source for choice in made.model.choices] == [first, second]
        assert made.model.picture == picture
    context.deleteLater()


def test_documents_that_were_opened_renamed_or_closed_meanwhile_are_offered(qtbot: QtBot, tmp_path: Path) -> None:
    context = Context(default_registry())
    documents = [document_of(tmp_path, context, name) for name in ("one", "two")]
    opened = documents[:1]
    window = SideWindow(context, lambda: list(opened))
    context.setParent(window)
    qtbot.addWidget(window)
    window.model.choices = [VariantChoice(documents[0]), VariantChoice(network(tmp_path, "file"))]
    window.setup.show_choices()

    def offered() -> list[list[str]]:
        boxes = [row.source for row in window.setup.rows]
        texts = [[box.itemText(number) for number in range(box.count())] for box in boxes]
        return [[text for text in found if text.endswith("(open)")] for found in texts]

    def activate() -> None:
        QCoreApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))

    window.isActiveWindow = lambda: False  # type: ignore[method-assign]
    opened.append(documents[1])
    activate()
    assert offered() == [["one.xml (open)"]] * 2
    window.isActiveWindow = lambda: True  # type: ignore[method-assign]
    for change, expected in (
        (lambda: None, ["one.xml (open)", "two.xml (open)"]),
        (lambda: documents[1].mark_saved(tmp_path / "new.xml"), ["one.xml (open)", "new.xml (open)"]),
        (lambda: opened.remove(documents[0]), ["new.xml (open)", "one.xml (open)"]),  # it is still compared
        (lambda: opened.remove(documents[1]), ["one.xml (open)"]),
    ):
        change()
        activate()
        assert offered() == [expected] * 2
        assert [row.source.currentText() for row in window.setup.rows] == ["one.xml (open)", "file.xml"]
    variants = window.setup.rows[0].variant
    for names in (
        ["half"],
        ["half", "small"],
        ["half", "tiny"],
        ["tiny"],
        [],
    ):  # also where there are as many as before
        documents[0].change_settings(variants=tuple(SavedVariant(name, "fp16") for name in names))
        activate()
        assert [variants.itemData(row) for row in range(variants.count())] == ["", *names]


class Minimized(QHideEvent):
    """What the window system sends when a window is minimized."""

    def spontaneous(self) -> bool:
        return True


def test_the_window_goes_with_the_main_window_unless_that_is_only_minimized(
    qtbot: QtBot, tmp_path: Path, monkeypatch: Any
) -> None:
    main, other = QWidget(), QWidget()
    qtbot.addWidget(main)
    qtbot.addWidget(other)
    window = SideWindow(Context(default_registry(), main), None, main)
    closed: list[str] = []
    monkeypatch.setattr(window, "close", lambda: closed.append("closed"))
    for watched, event, count in (
        (main, Minimized(), 0),
        (other, QHideEvent(), 0),
        (main, QShowEvent(), 0),
        (main, QHideEvent(), 1),
    ):
        assert not window.eventFilter(watched, event)
        assert len(closed) == count


def test_tables_of_a_folder_and_of_a_vote_get_more_room(qtbot: QtBot, window: SideWindow) -> None:
    def low() -> int:
        return window._upright.sizes()[1]

    few = low()
    for number in (1, 2):
        window.tabs.setCurrentIndex(number)
        assert low() > few + 50
        window.tabs.setCurrentIndex(0)
        assert low() == pytest.approx(few, abs=2)
    assert [window.tabs.tabText(number) for number in range(3)] == ["Metrics", "Folder", "Blind Vote"]


def test_choices_start_a_comparison_and_a_row_of_a_folder_its_image(
    qtbot: QtBot, window: SideWindow, tmp_path: Path
) -> None:
    model = window.model
    for act in (
        lambda: qtbot.mouseClick(window.setup.run, BUTTON),
        lambda: qtbot.mouseClick(window.setup.add, BUTTON),
        lambda: window.folder.picture_wanted.emit(photograph(tmp_path / "other.png")),
    ):
        with qtbot.waitSignal(model.started):
            act()
    assert model.picture == tmp_path / "other.png"
    model.status, model.errors = ["", "", ""], ["", "It broke.", ""]
    model.made = {"A": Made(np.zeros((1, 3, 4, 6), np.float32), 1.0)}
    model.status[0], model.status[2] = "random weights", "Running …"
    for index in range(3):
        model.status_changed.emit(index)
    states = [window.setup.findChild(QLabel, f"side.variant.{letter}.state").accessibleName() for letter in "ABC"]
    assert states == ["warning: random weights", "error: It broke.", "note: Running …"]


# --- the vote ------------------------------------------------------------------------------------------------------


def test_each_answer_is_that_of_its_button_and_key(qtbot: QtBot) -> None:
    page = shown(qtbot, VotePage(), 700, 500)
    pixels = [
        {key: np.full((60, 80), 0xFF000000 + 16 * n + i, np.uint32) for i, key in enumerate("AB")} for n in range(2)
    ]
    pixels[1]["A"][20:, 30:] = 0xFF00FF00
    trials = [VoteTrial(0, "A", "B"), VoteTrial(1, "B", "A", (30, 20, 40)), *[VoteTrial(0, "B", "A")] * 5]
    ended: list[int] = []
    page.ended.connect(lambda: ended.append(len(page.votes)))
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    page.begin(trials, pixels)
    assert (page.progress.maximum(), page.progress.value()) == (7, 0)
    left, right = page.grid.panes["1"], page.grid.panes["2"]
    assert QColor(left.image.pixel(1, 1)) == QColor(0xFF000000)
    assert QColor(right.image.pixel(1, 1)) == QColor(0xFF000001)
    answers = [LEFT, RIGHT, EQUAL, LEFT, RIGHT, EQUAL, EQUAL]
    qtbot.mouseClick(page.answers[LEFT], BUTTON)
    assert (right.image.width(), right.image.height()) == (40, 40)
    assert QColor(right.image.pixel(0, 0)) == QColor(0xFF00FF00)  # the square alone
    qtbot.mouseClick(page.answers[RIGHT], BUTTON)
    qtbot.mouseClick(page.answers[EQUAL], BUTTON)
    for key in (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_0, Qt.Key.Key_Equal):
        assert ended == []
        assert page.progress.value() == len(page.votes)
        qtbot.keyClick(page.grid.panes["2"], key)
    assert [vote.answer for vote in page.votes] == answers
    assert [vote.trial for vote in page.votes] == trials
    assert all(0 < vote.seconds < 30 for vote in page.votes)
    assert ended == [7]
    assert page.progress.value() == 7
    assert page.trial is None
    page.answer(LEFT)
    assert len(page.votes) == 7
    page.begin(trials[:2], pixels)
    assert (page.votes, page.progress.maximum(), page.progress.value()) == ([], 2, 0)
    qtbot.mouseClick(page.stop, BUTTON)
    assert ended == [7, 0]


def test_a_vote_hides_names_and_ends_once(window: SideWindow) -> None:
    def hidden() -> tuple[str, bool, set[bool]]:
        return (
            window.windowTitle(),
            window.stack.currentWidget() is window.vote,
            {shortcut.isEnabled() for shortcut in window.shortcuts.values()},
        )

    def vote(answers: int) -> None:
        pixels = np.zeros((8, 8), np.uint32)
        window.voting._names, window.voting._titles = {"A": "A net", "B": "B net"}, ["one.png"]
        window.voting.begun.emit([VoteTrial(0, "A", "B")] * 2, [{"A": pixels, "B": pixels}])
        assert hidden() == ("Blind Vote - Layerwright", True, {False})
        for _ in range(answers):
            window.vote.answer(LEFT)

    outside = ("Side by Side - Layerwright", False, {True})
    assert hidden() == outside
    vote(2)
    assert (hidden(), len(window.voting.votes)) == (outside, 2)
    vote(1)
    window.vote.stop.click()
    assert (hidden(), len(window.voting.votes)) == (outside, 1)
    shown_votes = window.voting.votes
    window.vote.votes = []
    window.vote.ended.emit()  # nobody votes
    assert window.voting.votes is shown_votes
    assert window.voting.table.item(0, 0).text() == "A net / B net"
    vote(0)
    window.vote.stop.click()
    assert (hidden(), window.voting.votes, window.voting.table.rowCount()) == (outside, [], 0)


def test_the_seconds_of_a_vote_begin_when_its_images_are_shown(qtbot: QtBot, monkeypatch: Any) -> None:
    page, now = shown(qtbot, VotePage(), 700, 500), [100.0]
    monkeypatch.setattr("app.ui.compare.vote_page.perf_counter", lambda: now[0])
    pixels = [{key: np.zeros((8, 8), np.uint32) for key in "AB"}]
    for _ in range(2):
        page.begin([VoteTrial(0, "A", "B")] * 3, pixels)
        for seconds in (2.0, 7.0, 0.5):
            now[0] += seconds
            page.answer(LEFT)
        assert [vote.seconds for vote in page.votes] == [2.0, 7.0, 0.5]
        now[0] += 50


def test_what_can_be_voted_on_follows_the_comparison(qtbot: QtBot) -> None:
    model = SideModel(default_registry())
    run = FolderRun(model, model)
    view = shown(qtbot, VoteView(model, run), 900, 300)
    model.setParent(view)
    begun: list[tuple[Any, Any]] = []
    view.begun.connect(lambda trials, pictures: begun.append((trials, pictures)))

    def state() -> tuple[bool, str, list[str]]:
        model.finished.emit()
        names = [view.pictures.itemText(number) for number in range(2)]
        return view.start_button.isEnabled(), view.note.text(), names

    ready = "Names and metrics are hidden until the end. Keys: 1, 2, = and Esc."
    one, none = "the image that is shown", "a folder (run over one first)"
    assert state() == (False, "Compare two variants first.", [one, none])
    assert not view.pictures.model().item(1).isEnabled()
    model.picture = Path("photo.png")
    model.choices = [VariantChoice(Path(f"{letter}.xml")) for letter in "AB"]
    image = np.zeros((1, 3, 300, 400), np.float32)
    model.made = {letter: Made(image, 1.0) for letter in "AB"}
    model.colours = {letter: np.full((300, 400), number, np.uint32) for number, letter in enumerate("AB")}
    model.compared = [None, None]
    assert state() == (True, ready, [one, none])
    for busy, running in ((True, False), (False, True)):
        model.busy, run.running = busy, running
        assert state()[:2] == (False, "A comparison is running: wait until it is finished.")
    model.busy = run.running = False
    state()
    view.count.setValue(7)
    for part in (0, 1):
        view.part.setCurrentIndex(part)
        qtbot.mouseClick(view.start_button, BUTTON)
        trials, pictures = begun[-1]
        assert len(trials) == 7
        assert pictures == [{key: model.colours[key] for key in "AB"}]
        for trial in trials:
            assert {trial.left, trial.right} == {"A", "B"}
            if part == 0:
                assert trial.square is None
            else:
                x, y, side = trial.square
                assert side == SQUARE
                assert 0 <= x <= 400 - side
                assert 0 <= y <= 300 - side
        assert view._titles == ["photo.png"]
        assert view._names == {"A": "A A", "B": "B B"}
    assert begun[0][0] != begun[1][0]  # of another seed
    run.kept = [Kept("x.png", dict(model.colours)), Kept("y.png", dict(model.colours))]
    run.names = {"A": "A old", "B": "B old"}
    assert state() == (True, ready, [one, "the 2 images of the folder"])
    assert view.pictures.model().item(1).isEnabled()
    view.pictures.setCurrentIndex(1)
    model.finished.emit()
    assert view.pictures.currentIndex() == 1  # what was chosen stays
    qtbot.mouseClick(view.start_button, BUTTON)
    assert view._titles == ["x.png", "y.png"]
    assert view._names == {"A": "A old", "B": "B old"}
    assert {trial.picture for trial in begun[-1][0]} == {0, 1}
    run.kept = []
    model.finished.emit()
    assert view.pictures.currentIndex() == 0
