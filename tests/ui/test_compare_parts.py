"""Parts of Side by Side without engines: choices of noise, and the names in a vote."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PIL.Image import fromarray
from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QFileDialog
from pytestqt.qtbot import QtBot
from side_kit import network

import samples
from analysis_layers.noise import KINDS, RANDOM
from app.engine.protocol import OpenRequest
from app.reports.comparison import LETTERS, ImageMetrics, Row
from app.reports.votes import EQUAL, LEFT, RIGHT, Vote, VoteTrial
from app.ui.compare import folder_view, runner
from app.ui.compare.folder_run import FolderRun, Kept, best, conditions_of
from app.ui.compare.folder_view import FolderView
from app.ui.compare.metrics_view import VALUES, MetricsView
from app.ui.compare.model import MOST, NoiseChoice, SideModel, provenance_of
from app.ui.compare.runner import Made, _Lane, _Work
from app.ui.compare.setup import Setup
from app.ui.compare.variant_row import title_of_source
from app.ui.compare.variants import Variant, VariantChoice, probable_weights
from app.ui.compare.vote_view import VoteView
from app.ui.document.document import Document
from app.ui.engine.inputs import photographs
from app.ui.widgets.background import Background
from designer.files.document import read_document
from designer.files.settings import save_settings, settings_path
from designer.files.variants import Variant as SavedVariant
from designer.graph.commands import set_params, set_property
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


def test_a_scale_means_something_for_the_noise_also_after_none() -> None:
    blur = NoiseChoice("blur", 5.0)
    assert blur.of_kind("gaussian").scale == blur.of_kind("").of_kind("gaussian").scale == 25 / 255
    fine = NoiseChoice("uniform", 0.03)
    assert fine.of_kind("").of_kind("gaussian") == NoiseChoice("gaussian", 0.03)
    assert fine.of_kind("").of_kind("blur").scale == 1.5
    assert replace(fine, kind="").of_kind("").scale == 0.03


def test_the_title_of_the_values_follows_the_pointer(qtbot: QtBot) -> None:
    model = SideModel(default_registry())
    model.noisy = np.zeros((1, 3, 4, 5), np.float32)
    view = MetricsView(model)
    qtbot.addWidget(view)
    for place, title in ((None, "Value at pointer"), ((2, 3), "Value at 2, 3"), (None, "Value at pointer")):
        view.probe(place)
        header = view.table.horizontalHeaderItem(VALUES)
        value = view.table.item(0, VALUES)
        assert header is not None
        assert value is not None
        assert header.text() == title
        assert bool(value.text()) is (place is not None)


def test_weights_that_were_written_again_are_read_again(qtbot: QtBot, tmp_path: Path) -> None:
    lane = _Lane(QObject())
    asked: list[object] = []

    def ask(request: OpenRequest, *_: object, **__: object) -> object:
        asked.append(request)
        lane.client.opened = SimpleNamespace(request=request)
        return lane.client.opened

    lane.client = SimpleNamespace(ask=ask, opened=None)
    lane._lend = lambda *_: None
    work = SimpleNamespace(progress=None)
    (tmp_path / "folder").mkdir()
    for path, file in ((tmp_path / "a.npz", tmp_path / "a.npz"), (tmp_path / "folder", tmp_path / "folder" / "w.npy")):
        file.write_bytes(b"first")
        variant = Variant("A", OpenRequest("text", str(path)), "in", "out", 3, "a.xml", "")
        for count in (1, 1):
            lane.run(variant, np.zeros(1), work)
            assert len(asked) == count
        file.write_bytes(b"second")
        lane.run(variant, np.zeros(1), work)
        assert len(asked) == 2
        state = file.stat()
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))  # as large as before
        for _ in range(2):
            lane.run(variant, np.zeros(1), work)
            assert len(asked) == 3
        if path.is_dir():
            (path / "more.npy").write_bytes(b"more")
            lane.run(variant, np.zeros(1), work)
            assert len(asked) == 4
        asked.clear()
    lane.run(Variant("A", OpenRequest("text", str(tmp_path / "gone")), "in", "out", 3, "a.xml", ""), np.zeros(1), work)
    assert len(asked) == 1


class Client:
    """An engine whose answers the test gives. `lent` are the images that it holds."""

    def __init__(self) -> None:
        self.opened: Any = None
        self.busy = False
        self.asked: list[SimpleNamespace] = []
        self.lent: list[str] = []

    def ask(self, request: Any, _owner: object, done: Any, refused: Any, progress: Any = None) -> Any:
        call = SimpleNamespace(request=request, done=done, refused=refused, cancelled=False)
        call.cancel = lambda: setattr(call, "cancelled", True)
        self.asked.append(call)
        return call

    def putting(self) -> Any:
        return lambda picture: self.lent.append("image") or "image"

    def take(self, handle: str) -> None:
        self.lent.remove(handle)

    def cancel(self) -> None:
        self.busy, self.opened = False, None


class Lane:
    """An engine process of a comparison. `told` is what it says of its variant."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot, self.client, self.told = qtbot, Client(), list[Any]()
        self.owner = QObject()
        self.lane = _Lane(self.owner)
        self.lane.client = self.client
        self.variant = Variant("A", OpenRequest("text", None), "in", "out", 3, "a.xml", "")

    def run(self) -> None:
        work = _Work(self.told.append, lambda found: self.told.append([d.message for d in found]), lambda event: None)
        self.lane.run(self.variant, np.zeros((1, 3, 2, 2), np.float32), work)

    def open(self, *, missing: str = "", lent: bool = True) -> None:
        call = self.client.asked[-1]
        self.client.opened = call
        call.done(SimpleNamespace(missing=missing))
        if lent and not missing:
            self.qtbot.waitUntil(lambda: self.client.asked[-1] is not call)

    def requests(self) -> list[str]:
        found = [type(call.request).__name__.removesuffix("Request") for call in self.client.asked]
        self.client.asked = self.client.asked[-2:]
        return found


@pytest.fixture
def lane(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Lane:
    monkeypatch.setattr(runner, "weights_wanted", lambda reply: reply.missing)
    return Lane(qtbot)


def problem(text: str) -> Diagnostic:
    return Diagnostic("any", text)


def test_an_engine_opens_a_network_once_and_runs_it_again(lane: Lane) -> None:
    lane.run()
    lane.open()
    assert lane.requests() == ["Open", "SetInputTensor", "Run"]
    lane.lane.warm = True
    lane.client.asked.clear()
    lane.run()
    lane.qtbot.waitUntil(lambda: len(lane.client.asked) == 2)
    assert lane.requests() == ["SetInputTensor", "Run"]
    assert lane.lane.warm
    lane.variant = replace(lane.variant, opening=OpenRequest("other", None))
    lane.client.asked.clear()
    lane.run()
    assert lane.requests() == ["Open"]
    assert not lane.lane.warm  # its first run builds it


@pytest.mark.parametrize("first", ["weights", "refused"])
def test_a_network_that_could_not_be_opened_is_opened_again(lane: Lane, first: str) -> None:
    lane.run()
    lane.client.opened = lane.client.asked[-1]
    if first == "weights":
        lane.open(missing="Weights are missing.")
        assert lane.told == [["Weights are missing"]]
    else:
        lane.client.asked[-1].refused((problem("No"),))
        assert lane.told == [["No"]]
    lane.client.asked.clear()
    lane.run()
    assert lane.requests() == ["Open"]


def test_a_refused_image_is_the_reason_whatever_the_run_says(lane: Lane) -> None:
    lane.run()
    lane.open()
    feed, run = lane.client.asked[-2:]
    run.done("result")
    assert lane.told == ["result"]
    feed.refused((problem("The image is too large"),))
    run.done("result of the image before")
    run.refused((problem("There is no image"), problem("The image is too large")))
    assert lane.told[1:] == [["The image is too large"], ["The image is too large", "There is no image"]]


@pytest.mark.parametrize("end", ["stop", "engine", "next"])
def test_an_image_that_nobody_wants_any_more_is_taken_back(lane: Lane, end: str) -> None:
    gate = Event()
    lane.client.putting = lambda: lambda picture: gate.wait(10) and (lane.client.lent.append("image") or "image")  # type: ignore[method-assign]
    lane.run()
    lane.open(lent=False)
    lane.client.asked.clear()
    if end == "stop":
        lane.lane.stop()
    elif end == "engine":
        lane.client.opened = None
    else:
        lane.run()
    gate.set()
    lane.qtbot.waitUntil(lambda: not any(job.running for job in lane.lane.findChildren(Background)))
    QCoreApplication.processEvents()
    assert len(lane.client.lent) == (1 if end == "next" else 0)
    assert lane.told == ([["the engine has ended"]] if end == "engine" else [])
    assert lane.requests() == (["SetInputTensor", "Run"] if end == "next" else [])


def test_stopping_ends_what_is_at_work(lane: Lane) -> None:
    lane.run()
    lane.open()
    lane.client.busy = True
    calls = lane.client.asked[-2:]
    lane.lane.stop()
    assert [call.cancelled for call in calls] == [True, True]
    assert not lane.client.busy


def test_the_plot_of_a_run_before_is_not_shown(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SideModel(default_registry())
    run = FolderRun(model, model)
    view = FolderView(run)
    model.setParent(view)
    qtbot.addWidget(view)
    monkeypatch.setattr(view._plotting, "start", lambda work: None)
    png = io.BytesIO()
    fromarray(np.zeros((4, 6, 3), np.uint8)).save(png, "PNG")
    run.rows = [Row("a.png", "", (), (4, 6))]
    view._draw()
    view._on_plotted(png.getvalue())
    assert view.plot.image.width() == 6
    view._draw()
    run.start(Path("no such folder"))
    assert (run.rows, view.plot.image, view.plot._empty) == ([], None, "Run over a folder to see the plot.")
    view._on_plotted(png.getvalue())
    assert view.plot.image is None


def test_a_plot_that_was_asked_for_meanwhile_is_drawn_after_one_that_failed(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SideModel(default_registry())
    run = FolderRun(model, model)
    view = FolderView(run)
    model.setParent(view)
    qtbot.addWidget(view)
    run.rows = [Row("a.png", "", (), (4, 6))]
    begun = Event()

    def fail(*_: object) -> bytes:
        begun.wait(10)
        raise DiagnosticError.of("no-plot", "the plot failed")

    monkeypatch.setattr(folder_view, "plot", fail)
    view._draw()
    view._draw()  # as after a switch of the theme
    png = io.BytesIO()
    fromarray(np.zeros((4, 6, 3), np.uint8)).save(png, "PNG")
    monkeypatch.setattr(folder_view, "plot", lambda *_: png.getvalue())
    begun.set()
    qtbot.waitUntil(lambda: view.plot.image is not None, timeout=10_000)
    assert view.plot.image.width() == 6


def started_vote(qtbot: QtBot, images: int, names: dict[str, str]) -> VoteView:
    """A vote on the images of a folder that was run with variants of these names; others are chosen now."""
    model = SideModel(default_registry())
    run = FolderRun(model, model)
    view = VoteView(model, run)
    model.setParent(view)
    qtbot.addWidget(view)
    pixels = np.zeros((8, 8), np.uint32)
    run.kept, run.names = [Kept(f"{image}.png", dict.fromkeys(names, pixels)) for image in range(images)], names
    model.choices = [VariantChoice(Path("other.xml")), VariantChoice(Path("new.xml"))]
    view.refresh()
    view.pictures.setCurrentIndex(1)
    view.start()
    return view


def test_a_vote_on_a_folder_names_the_variants_that_the_folder_was_run_with(qtbot: QtBot) -> None:
    view = started_vote(qtbot, 1, {"A": "A mild", "B": "B strong"})
    view.show_votes([Vote(VoteTrial(0, "A", "B", None), LEFT, 1.0)])
    assert view.table.item(0, 0).text() == "A mild / B strong"


def test_the_table_of_a_vote_names_the_preferred_variant_of_each_pair(qtbot: QtBot) -> None:
    view = started_vote(qtbot, 6, {"A": "A mild", "B": "B strong", "C": "C none"})
    answers = {"AB": [LEFT] * 6, "AC": [RIGHT] * 5 + [EQUAL], "BC": [RIGHT] * 6}
    view.show_votes(
        [Vote(VoteTrial(i, *pair), answer, 1.0) for pair, found in answers.items() for i, answer in enumerate(found)]
    )
    shown = [[view.table.item(row, column).text() for column in range(6)] for row in range(view.table.rowCount())]
    assert shown == [
        ["A mild / B strong", "6", "0", "0", "0.0312", "A mild is preferred (p < 0.05)"],  # 2 / 2^6
        ["A mild / C none", "0", "5", "1", "0.0625", "not significant at 5 %"],  # 2 / 2^5
        ["B strong / C none", "0", "6", "0", "0.0312", "C none is preferred (p < 0.05)"],
    ]
    assert all(button.isEnabled() for button in view.save_buttons.values())
    for mine, theirs, wins, better in ((LEFT, RIGHT, ["9", "30"], "A mild"), (RIGHT, LEFT, ["30", "9"], "B strong")):
        votes = [(image, mine) for image in range(9)] + [(9, theirs)] * 30  # one image, however often it is voted on
        view.show_votes([Vote(VoteTrial(image, "A", "B"), answer, 1.0) for image, answer in votes])
        texts = [view.table.item(0, column).text() for column in range(6)]
        assert texts == ["A mild / B strong", *wins, "0", "0.0215", f"{better} is preferred (p < 0.05)"]
    view.show_votes([])
    assert view.table.rowCount() == 0
    assert not any(button.isEnabled() for button in view.save_buttons.values())


@pytest.mark.parametrize("first", ["A", "B"])
@pytest.mark.parametrize(
    ("views", "times", "p", "reading"),
    [
        (6, 1, "0.0312", "{better} is preferred (p < 0.05)"),
        (6, 2, "0.0312", "{better} is preferred (p < 0.05)"),
        (5, 1, "0.0625", "not significant at 5 %"),
        (5, 2, "0.0625", "not significant at 5 %: repeated views count once"),
        (1, 9, "1", "not significant at 5 %: repeated views count once"),
    ],
)
def test_the_reading_of_a_vote_counts_every_view_once(
    qtbot: QtBot, first: str, views: int, times: int, p: str, reading: str
) -> None:
    """Whichever variant is preferred; a view that is repeated does not hide a preference."""
    names = {"A": "A mild", "B": "B strong"}
    view = started_vote(qtbot, views, names)
    trials = [VoteTrial(image, "A", "B", None) for image in range(views)] * times
    view.show_votes([Vote(trial, LEFT if first == "A" else RIGHT, 1.0) for trial in trials])
    wins = [str(views * times), "0"] if first == "A" else ["0", str(views * times)]
    shown = [view.table.item(0, column).text() for column in range(6)]
    assert shown == ["A mild / B strong", *wins, "0", p, reading.format(better=names[first])]


def test_what_is_compared_is_chosen_from_the_lists(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each image and noise writes what it names into the model, once; what cannot be chosen with it is disabled."""
    model = SideModel(default_registry())
    model.picture, model.noise = samples.HELD_OUT, NoiseChoice("")
    setup, changes = Setup(model, list), []
    model.setParent(setup)
    qtbot.addWidget(setup)
    setup.show()
    setup.show_picture()
    setup.changed.connect(lambda: changes.append(model.picture))
    box, known = setup.picture, [samples.HELD_OUT, *photographs()]
    for path in known[1:]:
        qtbot.keyClick(box, Qt.Key.Key_Down)
        assert model.picture == path == changes[-1]
        assert box.currentText() == path.name
    assert len(changes) == len(known) - 1
    own = tmp_path / "own.png"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(own), ""))
    qtbot.keyClick(box, Qt.Key.Key_End)
    assert model.picture == own == changes.pop()
    shown = [box.itemText(row) for row in range(box.count())]
    assert shown == [*(path.name for path in (own, *known)), "", "Choose a file..."]
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    qtbot.keyClick(box, Qt.Key.Key_End)
    assert (model.picture, box.currentText()) == (own, "own.png")
    model.clean_file = tmp_path / "clean.png"
    setup.show_picture()
    names = [setup.clean.itemText(row) for row in range(setup.clean.count())]
    assert names == ["unknown: the first variant is the measure", "clean.png", "", "Choose a file..."]
    qtbot.keyClick(setup.clean, Qt.Key.Key_End)  # and no file
    assert (model.clean_file, setup.clean.currentText()) == (tmp_path / "clean.png", "clean.png")
    qtbot.keyClick(setup.clean, Qt.Key.Key_Home)
    assert model.clean_file is None
    assert setup.clean.count() == 3
    for kind in KINDS:
        qtbot.keyClick(setup.kind, Qt.Key.Key_Down)
        assert model.noise.kind == kind
        fields = (setup.scale, setup.seed, setup.clean)
        assert [field.isEnabled() for field in fields] == [True, kind in RANDOM, False]
        assert setup.clean.currentText() == "the image itself"
    qtbot.keyClick(setup.kind, Qt.Key.Key_Home)
    assert [field.isEnabled() for field in (setup.scale, setup.seed, setup.clean)] == [False, False, True]


def test_variants_are_added_and_removed_by_their_own_buttons(qtbot: QtBot) -> None:
    model = SideModel(default_registry())
    paths = samples.documents()[:3]
    model.choices = [VariantChoice(path) for path in paths[:2]]
    setup, changes = Setup(model, list), []
    model.setParent(setup)
    qtbot.addWidget(setup)
    setup.show()
    setup.show_choices()
    setup.changed.connect(lambda: changes.append([choice.source for choice in model.choices]))

    def can() -> tuple[bool, list[bool]]:
        return setup.add.isEnabled(), [row.remove.isEnabled() for row in setup.rows]

    assert can() == (True, [False, False])
    qtbot.mouseClick(setup.add, Qt.MouseButton.LeftButton)
    assert changes.pop() == [paths[0], paths[1], paths[1]]
    assert can() == (True, [True] * 3)
    setup.rows[2].source.setFocus()
    qtbot.keyClick(setup.rows[2].source, Qt.Key.Key_Down)
    assert changes.pop() == list(paths)
    qtbot.mouseClick(setup.add, Qt.MouseButton.LeftButton)
    assert can() == (False, [True] * MOST)
    assert changes.pop() == [*paths, paths[2]]
    qtbot.mouseClick(setup.rows[1].remove, Qt.MouseButton.LeftButton)
    assert changes.pop() == [paths[0], paths[2], paths[2]]
    assert [row.source.currentText().split()[0] for row in setup.rows] == [paths[row].name for row in (0, 2, 2)]
    qtbot.mouseClick(setup.rows[0].remove, Qt.MouseButton.LeftButton)
    assert changes.pop() == [paths[2], paths[2]]
    assert can() == (True, [False, False])
    assert not changes
    view = MetricsView(model)
    qtbot.addWidget(view)
    for removed, selected in ((0, 3), (2, 3), (3, 2)):
        model.choices = [VariantChoice(path) for path in paths[:2]]
        setup.show_choices()
        setup.add.click()
        setup.add.click()  # three of them are equal
        view.refresh()
        view.table.selectRow(view._keys.index(LETTERS[selected]))
        setup.rows[removed].remove.click()
        view.refresh()
        left = "" if selected == removed else LETTERS[selected - (selected > removed)]
        assert view._key() == left, (removed, selected)


def test_images_keep_their_provenance_when_a_folder_is_run_after_an_edit(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # otherwise each has its own second
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3"}),
            Layer("output", "output", inputs=(Source("conv"),)),
        ]
    )
    model = SideModel(default_registry())
    document = Document(graph, model.registry, parent=model)
    model.choices = [VariantChoice(document), VariantChoice(document)]
    model.compare()
    model.made = {key: Made(np.zeros((1, 3, 8, 16), np.float32), 1.0) for key in "AB"}
    before, conditions = model.provenance(), conditions_of(model, model.compared)
    document.do(lambda graph: set_params(graph, {"conv": {"kernel": "5x5"}}))
    run = FolderRun(model, model)
    run.start(Path("no such folder"))
    assert model.provenance() == before
    assert conditions_of(model, model.compared) == conditions != run.conditions


@pytest.mark.parametrize("end", ["stop", "close", "compare"])
def test_a_result_that_comes_after_the_end_is_not_shown(qtbot: QtBot, end: str) -> None:
    owner = QObject()
    model = SideModel(default_registry(), owner)
    layers = [Layer("image", "input", params={"dims": "16x8x3"}), Layer("output", "output", inputs=(Source("image"),))]
    document = Document(Graph(layers), model.registry, parent=owner)
    model.choices = [VariantChoice(document), VariantChoice(document)]
    model.compare()
    model.busy, model.noisy = True, np.zeros((1, 3, 8, 16), np.float32)
    assert model.errors == ["", ""]
    model._on_made(0, Made(model.noisy, 1.0))
    assert model._drawing
    getattr(model, end)()
    heard: list[str] = []
    for name in ("pictures_changed", "measured_changed", "finished"):
        getattr(model, name).connect(lambda name=name: heard.append(name))
    qtbot.waitUntil(lambda: not any(job.running for job in model.findChildren(Background)))
    QCoreApplication.processEvents()
    assert (model.made, list(model.colours), model.busy, heard) == ({}, [], False, [])
    model.close()


def test_a_variant_that_failed_says_so_after_a_run_over_a_folder(qtbot: QtBot) -> None:
    layers = [Layer("image", "input", params={"dims": "16x8x3"}), Layer("output", "output", inputs=(Source("image"),))]
    model = SideModel(default_registry())
    view = MetricsView(model)
    qtbot.addWidget(view)
    document = Document(Graph(layers), model.registry, parent=view)
    model.choices = [VariantChoice(document), VariantChoice(document)]
    model.compare()
    model.busy = True
    model.made = {"A": Made(np.zeros((1, 3, 8, 16), np.float32), 1.0)}
    model.status[0] = "a note"
    model._on_failed(1, "weights are missing")
    model.stop()
    FolderRun(model, model).start(Path("no such folder"))
    assert (model.status, model.errors) == (["a note", ""], ["", "weights are missing"])
    item = view.table.item(view._keys.index("B"), 1)
    assert item is not None
    assert item.text() == "failed"


def test_a_result_that_equals_the_clean_image_is_the_best_one() -> None:
    def row(*values: float) -> Row:
        return Row("", "", tuple(ImageMetrics(value, 1.0) for value in (20.0, *values)), (0, 0))

    nan, inf = float("nan"), float("inf")
    assert [best(row(*values)) for values in ((30, 31), (inf, 31), (nan, 31), (inf, inf), (nan, 31, 30))] == [
        2,
        1,
        -1,
        -1,
        2,
    ]
    for values in (v for count in range(1, 5) for v in product((29.0, 30.0, 30.001, inf, nan), repeat=count)):
        known = [place for place, value in enumerate(values, 1) if value == value]
        written = {place: f"{values[place - 1]:.2f}" for place in known}
        ahead = [
            p for p in known if all(values[p - 1] > values[q - 1] and written[p] != written[q] for q in known if q != p)
        ]
        assert best(row(*values)) == (ahead[0] if len(known) > 1 and ahead else -1), values


def test_means_over_other_images_are_not_compared(qtbot: QtBot) -> None:
    run = FolderRun(SideModel(default_registry()))
    view = FolderView(run)
    qtbot.addWidget(view)
    run.columns = ["input", "A", "B"]
    view._on_started()
    for values in ((30.0, 31.0), (40.0, 41.0), (20.0, float("nan"))):
        run.rows.append(Row("x", "", tuple(ImageMetrics(value, 1.0) for value in (9.0, *values)), (0, 0)))
        view._on_row(run.rows[-1])
        texts = [view.table.item(len(run.rows), column).text() for column in (3, 5)]
        assert [text.startswith("★") for text in texts] == [False, len(run.rows) < 3]


@pytest.mark.parametrize(
    ("kind", "seed"), [("gaussian", "7"), ("salt_and_pepper", "7"), ("blur", ""), ("jpeg", ""), ("", "")]
)
def test_the_provenance_has_the_seed_of_noise_that_is_random(kind: str, seed: str) -> None:
    variant = Variant("A", OpenRequest("text", "w"), "in", "out", 3, "a.xml", "ab" * 32)
    made = Made(np.zeros((1, 3, 4, 4), np.float32), 1.0, weights="w.npz", weights_sha256="cd" * 32)
    noise = NoiseChoice(kind, 1.5, seed=7)
    origin = provenance_of(variant, made, noise)
    assert (origin.noise_seed, origin.noise) == (seed, noise.text)
    assert (origin.document, origin.document_sha256) == ("a.xml", "ab" * 32)
    assert (origin.weights, origin.weights_sha256) == ("w.npz", "cd" * 32)


def test_every_button_has_a_name_and_says_what_it_does(qtbot: QtBot) -> None:
    model = SideModel(default_registry())
    run = FolderRun(model, model)
    views = [FolderView(run), VoteView(model, run)]
    model.setParent(views[0])
    for view in views:
        qtbot.addWidget(view)
    buttons = [b for view in views for b in view.findChildren(QAbstractButton) if not b.objectName().startswith("qt_")]
    assert len(buttons) > len(views)
    assert [b.objectName() for b in buttons if not (b.accessibleName() or b.text()) or not b.toolTip()] == []


def test_a_network_with_other_channels_says_so(qtbot: QtBot) -> None:
    def network(channels: int) -> Document:
        image = Layer("image", "input", params={"dims": f"16x8x{channels}"})
        return Document(
            Graph([image, Layer("output", "output", inputs=(Source("image"),))]), model.registry, parent=model
        )

    model = SideModel(default_registry())
    model.choices = [VariantChoice(network(channels)) for channels in (3, 1, 3)]
    told: list[int] = []
    model.status_changed.connect(told.append)
    variants = model.make_variants()
    assert [variant is None for variant in variants] == [False, True, False]
    assert model.errors[1].startswith("It takes 1 channels and A ")
    assert "takes 3" in model.errors[1]
    assert (model.errors[0], model.errors[2]) == ("", "")
    assert 1 in told[3:]  # after all were made
    model.deleteLater()


def test_the_dialog_for_weights_begins_where_they_probably_are(qapp: object, tmp_path: Path) -> None:
    path = network(tmp_path, "net")
    graph = read_document(path).graph
    assert graph is not None
    document = Document(graph, default_registry(), path)
    sources: tuple[Document | Path, ...] = (document, path)

    def begins(weights: str = "") -> list[str]:
        return [probable_weights(VariantChoice(source, weights)) for source in sources]

    assert begins() == begins("random") == [str(tmp_path)] * 2
    (tmp_path / "net_pytorch" / "weights").mkdir(parents=True)
    assert begins() == [str(tmp_path / "net_pytorch" / "weights")] * 2
    document.change_settings(weights=str(tmp_path / "trained" / "a.npz"))
    save_settings(document.settings, settings_path(path))
    assert begins() == begins("random") == [str(tmp_path / "trained")] * 2
    assert begins(str(tmp_path / "mine" / "b")) == [str(tmp_path / "mine")] * 2


def test_networks_and_variants_are_offered_as_they_are_when_one_comes_back_to_the_window(qtbot: QtBot) -> None:
    registry = default_registry()
    documents = [Document(Graph(name=name), registry) for name in ("first", "second")]
    shown_documents = documents[:1]
    model = SideModel(registry)
    model.choices = [VariantChoice(documents[0]), VariantChoice(samples.documents()[0])]
    setup = Setup(model, lambda: list(shown_documents))
    model.setParent(setup)
    for document in documents:
        document.setParent(setup)
    qtbot.addWidget(setup)
    setup.show_choices()

    def offered() -> tuple[list[str], list[str]]:
        row, files = setup.rows[0], len(samples.documents())
        sources = [row.source.itemText(number) for number in range(row.source.count())]
        return sources[: -files - 2], [row.variant.itemText(number) for number in range(row.variant.count())]

    names = [title_of_source(document) for document in documents]
    assert offered() == (names[:1], ["none"])
    for variants in (("a",), ("b",), ("b", "c"), ("c", "b"), ()):
        documents[0].change_settings(variants=tuple(SavedVariant(name, "fp16") for name in variants))
        setup.refresh_sources()
        assert offered() == (names[:1], ["none", *variants])
    shown_documents.append(documents[1])
    setup.refresh_sources()
    assert offered()[0] == names
    assert documents[1].do(lambda g: set_property(g, "name", "renamed"))
    setup.refresh_sources()
    assert offered()[0] == [names[0], title_of_source(documents[1])] != names
    rows = list(setup.rows)
    setup.refresh_sources()
    assert setup.rows == rows
