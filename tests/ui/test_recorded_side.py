"""A session with Side by Side: what its window shows after each step is recorded, and every metric is computed again from the images."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import inf, isnan, log10
from pathlib import Path
from random import Random

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.gui, pytest.mark.timeout(300)]

from engine_here import EngineHere
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QFileDialog, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines
from shown_state import named, of_tree
from side_kit import WAIT, network, photograph

import samples
from app.reports.comparison import CROP, ImageArray
from app.ui.compare import runner
from app.ui.compare.model import CLEAN, INPUT
from app.ui.compare.variants import VariantChoice
from app.ui.compare.window import SideWindow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import file_dialogs
from app.ui.widgets.background import Background
from app.ui.widgets.image_view import ImageView
from designer.files.document import read_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.operators.registry import default_registry

LEFT = Qt.MouseButton.LeftButton
FAST = Settings(engine="onnxruntime", threads=1)
LEFT_OUT = re.compile(  # engines of this machine, our samples, the room that texts take, and places that were left
    r"^side side\.variant\.[A-D]\.(engine|device|precision) item \d+: "
    r"|^side side\.(variant\.[A-D]\.network|picture) item \d+: .*(\(sample\)|\.jpg)"
    r"|^side side\.zoom text|^side QLabel|: \(gone\)$"
)
GOES = re.compile(r"^side side\.(grid\S* (shows|says)|single (shows|says)|split (shows|says)|figures\.table row)")


def mean_of(picture: ImageArray, size: int) -> ImageArray:
    """The mean of size x size pixels with zeros around the image, as the networks compute it."""
    rim = size // 2
    padded = np.pad(picture.astype(np.float64), ((0, 0), (0, 0), (rim, rim), (rim, rim)))
    height, width = picture.shape[2:]
    shifted = [padded[..., y : y + height, x : x + width] for y in range(size) for x in range(size)]
    return np.mean(shifted, axis=0).astype(np.float32)


def decibels(reference: ImageArray, made: ImageArray) -> float:
    """PSNR of values that are clipped to 0..1."""
    error = np.mean((np.clip(reference, 0, 1).astype(np.float64) - np.clip(made, 0, 1)) ** 2)
    return -10 * log10(error) if error else inf


def similarity(reference: ImageArray, made: ImageArray) -> float:
    """SSIM with a Gaussian window of 1.5 pixels, by an own sum of shifted images."""
    places = np.arange(-5, 6)
    line = np.exp(-(places**2) / 4.5)
    line /= line.sum()

    def blurred(plane: np.ndarray) -> np.ndarray:
        height, width = plane.shape
        rows = sum(w * plane[k : height - 10 + k] for k, w in enumerate(line))
        return sum(w * rows[:, k : width - 10 + k] for k, w in enumerate(line))  # type: ignore[no-any-return]

    values = []
    for a, b in zip(np.clip(reference[0], 0, 1).astype(float), np.clip(made[0], 0, 1).astype(float), strict=True):
        ma, mb = blurred(a), blurred(b)
        va, vb, both = blurred(a * a) - ma * ma, blurred(b * b) - mb * mb, blurred(a * b) - ma * mb
        values.append(
            ((2 * ma * mb + 1e-4) * (2 * both + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4))).mean()
        )
    return float(np.mean(values))


class Session:
    """A Side by Side window with one open document. `step` writes down what a step changes."""

    def __init__(self, qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.qtbot, self.folder, self._patch = qtbot, folder, monkeypatch
        made = runner.Made

        def timed(picture: ImageArray, milliseconds: float, *rest: object) -> runner.Made:
            return made(picture, milliseconds if isnan(milliseconds) else 4.25, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(runner, "Made", timed)
        monkeypatch.setattr(runner, "EngineClient", EngineHere)
        monkeypatch.setattr(file_dialogs, "_saved_in", [folder])  # by no other test
        registry = default_registry()
        context = Context(registry)
        self.sizes = {}
        for name, size in (("same", 1), ("smooth", 3), ("wide", 7)):
            self.network(name, size)
        self.network("half", 2, stride=2)
        self.network("gray", 3, channels=1)
        graph = read_document(folder / "same.xml").graph
        assert graph is not None
        self.document = Document(graph, registry, folder / "same.xml", parent=context)
        self.document.change_settings(engine="onnxruntime", threads=1)
        context.set_document(self.document)
        self.open = [self.document]
        self.window = SideWindow(context, lambda: list(self.open))
        qtbot.addWidget(self.window)
        self.window.resize(1300, 900)
        self.other = QWidget()
        qtbot.addWidget(self.other)
        self.model = self.window.model
        self.model.picture = photograph(folder / "picture.png", size=(200, 150))
        self.model.choices = [VariantChoice(self.document), VariantChoice(folder / "smooth.xml")]
        self.lines: list[str] = []
        self._computed: list[ImageArray] = []  # results that are as they must be
        self._similar: list[tuple[ImageArray, ImageArray, float]] = []
        self._before = self._state()
        self.window.show()
        qtbot.waitExposed(self.window)

    def network(self, name: str, size: int, stride: int = 1, channels: int = 3) -> None:
        path = network(self.folder, name, size, stride, channels)
        save_settings(FAST, settings_path(path))
        self.sizes[name] = size

    # --- steps -------------------------------------------------------------------------------------------------

    def step(self, what: str, act: Callable[[], object]) -> None:
        act()
        self.rest()
        now = self._state()
        found = [line.removeprefix("side ") for line in lines(now, since=self._before) if self._counts(line)]
        gone = [place for place in self._before if place not in now and GOES.match(place)]
        self.lines += ["", f"# {what}", *found, *(f"{place.removeprefix('side ')}: (gone)" for place in gone)]
        for place in gone:
            del self._before[place]
        self._before |= now  # what is on a page that is not shown has not changed
        self.check(what)

    def rest(self) -> None:
        window = self.window

        def quiet() -> bool:
            QCoreApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            waits = any(t.isActive() and t.isSingleShot() and t.interval() <= 300 for t in window.findChildren(QTimer))
            busy = any(job.running for job in window.findChildren(Background))
            return not (waits or busy or self.model.busy or window.folder_run.running)

        self.qtbot.waitUntil(lambda: quiet() and quiet(), timeout=WAIT)

    def _state(self) -> dict[str, object]:
        facts = [*of_tree(self.window), ("title", self.window.windowTitle())]
        return {**named("side", facts), **named("side", self._images())}

    def _images(self) -> Iterator[tuple[str, object]]:
        """What each visible image view shows: its size, the mean of its colors, overlays, and what is said without an image."""
        for view in self.window.findChildren(ImageView):
            if not view.isVisibleTo(self.window) or view.objectName() == "side.folder.plot":
                continue
            image = view.image
            if image is None:
                yield f"{view.objectName()} says", view._empty
                continue
            pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)[
                :, : image.width(), 2::-1
            ]
            means = [f"{v:.1f}" for v in pixels.reshape(-1, 3).mean(0)]
            yield f"{view.objectName()} shows", f"{image.width()} x {image.height()}, mean {' '.join(means)}"
            texts = [f"{type(each).__name__} {_overlay(each)}" for each in view.overlays]
            yield f"{view.objectName()} over it", "; ".join(texts)

    def _counts(self, line: str) -> bool:
        return not LEFT_OUT.search(line)

    def find(self, name: str) -> QWidget:
        found = self.window.findChild(QWidget, name)
        assert found is not None, name
        assert found.isVisible(), name
        return found

    def click(self, name: str, *, where: QPoint | None = None) -> None:
        button = self.find(name)
        assert button.isEnabled(), name
        area = where or (QPoint(8, button.height() // 2) if isinstance(button, QAbstractButton) else QPoint())
        self.step(f"click {name}", lambda: QTest.mouseClick(button, LEFT, pos=area))

    def key(self, text: str) -> None:
        self.step(f"key {text}", lambda: QTest.keySequence(self.window, text))

    def choose(self, name: str, text: str) -> None:
        combo = self.find(name)
        assert isinstance(combo, QComboBox)
        index = combo.findText(text, Qt.MatchFlag.MatchStartsWith)
        assert index >= 0, (name, text, [combo.itemText(i) for i in range(combo.count())])

        def choose() -> None:
            combo.setCurrentIndex(index)
            combo.activated.emit(index)

        self.step(f"choose {name}: {text}", choose)

    def answer(self, path: Path | None) -> None:
        """What the next dialogs for files answer; where they begin is written down."""
        name = str(path) if path is not None else ""

        def file(parent: object, title: str = "", start: str = "", *rest: object) -> tuple[str, str]:
            self.lines.append(f"asks {title} in {self._named(start)}")
            return name, ""

        def folder(parent: object, title: str = "", start: str = "", *rest: object) -> str:
            return file(parent, title, start)[0]

        self._patch.setattr(QFileDialog, "getOpenFileName", file)
        self._patch.setattr(QFileDialog, "getExistingDirectory", folder)
        self._patch.setattr(QFileDialog, "getSaveFileName", file)

    def _named(self, start: str) -> str:
        known = {self.folder: "<documents>", samples.PHOTOGRAPHS: "<photographs>", Path.home(): "<home>"}
        for path, name in known.items():
            start = start.replace(str(path), name)
        return start or "(nowhere)"

    def select(self, row: int) -> None:
        table = self.window.figures.table
        item = table.item(row, 0)
        assert item is not None
        place = table.visualItemRect(item).center()
        self.step(f"select row {row}", lambda: QTest.mouseClick(table.viewport(), LEFT, pos=place))

    def point(self, x: int, y: int) -> None:
        view = self.window.pictures.shown_view()
        assert view is not None
        assert view.image is not None
        target = view._target()
        place = target.topLeft() + QPointF(
            (x + 0.5) * target.width() / view.image.width(), (y + 0.5) * target.height() / view.image.height()
        )
        self.step(f"point at {x}, {y}", lambda: QTest.mouseMove(view, place.toPoint()))

    def activate(self) -> None:
        """Another window of the program was used, and then this one again."""
        self.other.show()
        self.other.activateWindow()
        self.qtbot.waitUntil(lambda: not self.window.isActiveWindow())
        self.window.activateWindow()
        self.qtbot.waitUntil(self.window.isActiveWindow)
        self.other.hide()

    # --- what the metrics must be ----------------------------------------------------------------------------------

    def check(self, what: str) -> None:
        """Every metric that is shown is that of the images, which are computed here from the chosen files."""
        model, table = self.model, self.window.figures.table
        if model.noisy is None or not model.made:
            return
        images: dict[str, ImageArray] = {INPUT: model.noisy}
        if model.clean is not None and model.knows_clean:
            images[CLEAN] = model.clean
        for key in model.made:
            variant = model.compared["ABCD".index(key)]
            assert variant is not None
            images[key] = made = model.made[key].picture
            if not any(made is known for known in self._computed):  # of an earlier step
                tolerance = 2e-2 if "half" in variant.name or "fp16" in variant.name.lower() else 2e-6
                expected = mean_of(model.noisy, self.sizes[variant.document.removesuffix(".xml")])
                np.testing.assert_allclose(made, expected, atol=tolerance, err_msg=f"{what} {key}")
                self._computed.append(made)
        reference = images[CLEAN] if CLEAN in images else images[min(model.made)]
        keys = [INPUT, *([CLEAN] if model.knows_clean else []), *"ABCD"[: len(model.choices)]]
        assert table.rowCount() == len(keys), what
        for row, key in enumerate(keys):
            if key not in model.measured.figures:
                continue
            cells = [table.item(row, column).text().removeprefix("★ ") for column in range(6)]  # type: ignore[union-attr]
            if key == min(model.made) and CLEAN not in images:
                assert cells[1:3] + cells[4:5] == ["reference", "-", "-"], f"{what}: {key} is measured against itself"
                continue
            self._check_number(f"{what} {key} psnr", cells[1], decibels(reference, images[key]), 0.006)
            self._check_number(f"{what} {key} ssim", cells[2], self._similarity(reference, images[key]), 6e-5)
            if cells[4] != "-":
                x, y = model.measured.regions[key][0]
                part = (..., slice(y, y + CROP), slice(x, x + CROP))
                self._check_number(f"{what} {key} worst", cells[4], decibels(reference[part], images[key][part]), 0.006)

    def _similarity(self, reference: ImageArray, made: ImageArray) -> float:
        """SSIM, computed once for two images that are shown over several steps."""
        pair = [each for each in self._similar if each[0] is reference and each[1] is made]
        if not pair:
            pair.append((reference, made, similarity(reference, made)))
            self._similar += pair
        return pair[0][2]

    def _check_number(self, what: str, text: str, expected: float, tolerance: float) -> None:
        found = inf if "∞" in text or text in ("inf", "equal") else float(text)
        assert found == expected or abs(found - expected) <= tolerance, (what, text, expected)


def _overlay(each: object) -> str:
    fields = [getattr(each, name, None) for name in ("left", "top", "right", "bottom", "x", "y", "label", "text")]
    return " ".join(str(f) for f in fields if f not in (None, ""))


@pytest.fixture
def session(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    (tmp_path / "documents").mkdir()
    made = Session(qtbot, tmp_path / "documents", monkeypatch)
    yield made
    made.window.close()


def test_choices_and_images(session: Session) -> None:
    window, folder = session.window, session.folder
    session.step("begin", window.begin)
    session.point(50, 12)
    session.click("side.region.next")
    session.click("side.region.next")
    session.click("side.region.back")
    session.select(3)
    session.click("side.region.next")
    for key in ("S", "F", "X", "X", "2", "1", "R", "N", "D", "3", "Ctrl+1", "Ctrl+0", "G", "W", "Shift+W"):
        session.key(key)
    session.click("side.with_input")
    session.click("side.with_clean")
    session.key("D")
    session.choose("side.against", "A")
    session.click("side.signed")
    session.step("gain", lambda: (window.bar.gain.set_value(20.0), window.bar.gain.changed.emit(20.0)))
    session.click("side.add")
    session.choose("side.against", "C")
    session.answer(folder / "wide.xml")
    session.choose("side.variant.C.network", "Choose a file...")
    session.choose("side.variant.A.weights", "random")
    session.answer(None)
    session.choose("side.variant.A.weights", "Choose a folder...")
    (folder / "numbers").mkdir()
    session.answer(folder / "numbers")
    session.choose("side.variant.C.weights", "Choose a folder...")
    session.choose("side.variant.C.weights", "Choose a folder...")
    session.key("F")
    session.choose("side.first", "C")
    session.choose("side.second", "Input")
    session.click("side.swap")
    session.click("side.automatic")
    session.click("side.automatic")
    session.key("G")
    session.select(1)
    session.choose("side.noise", "none")
    session.click("side.variant.B.remove")
    session.key("S")
    session.answer(folder / "picture.png")  # the image itself, so that A equals it
    session.choose("side.clean", "Choose a file...")
    session.answer(photograph(folder / "other.png", 3, (130, 100)))
    session.choose("side.picture", "Choose a file...")
    session.choose("side.noise", "salt and pepper")
    session.key("G")
    session.step("seed", lambda: (window.setup.seed.setValue(7), window.setup.seed.editingFinished.emit()))
    session.step("scale", lambda: (window.setup.scale.set_value(0.2), window.setup.scale.released.emit()))
    compare("side_choices", session.lines)


def test_documents_folders_and_votes(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    window, folder, model = session.window, session.folder, session.model
    session.step("begin", window.begin)
    session.select(3)
    session.click("side.region.next")
    session.click("side.add")
    session.choose("side.noise", "none")
    session.click("side.variant.A.remove")
    graph = read_document(folder / "wide.xml").graph
    assert graph is not None
    opened = Document(graph, session.document.registry, folder / "wide.xml", parent=session.document)
    opened.change_settings(engine="onnxruntime", threads=1, variants=(Variant("plain"), Variant("quick", "fp16")))
    session.open.append(opened)
    session.step("a document was opened", session.activate)
    session.choose("side.variant.B.network", "wide.xml (open)")
    opened.change_settings(variants=(Variant("other"),))
    session.step("its variants were changed", session.activate)
    session.open.remove(opened)
    session.step("it was closed", session.activate)
    session.choose("side.noise", "gaussian")
    images = folder / "images"
    (images / "inner").mkdir(parents=True)
    for number, size in enumerate(((60, 50), (90, 64))):
        photograph(images / f"{number}.png", number, size)
    (images / "2.png").write_bytes(b"not an image")
    session.step("folder", lambda: window.tabs.setCurrentWidget(window.folder))
    session.answer(None)
    session.click("side.folder.browse")
    session.answer(images)
    session.click("side.folder.browse")
    session.click("side.folder.start")
    session.answer(None)
    session.click("side.folder.json")
    session.answer(folder / "table.csv")
    session.click("side.folder.csv")
    session.step("look at the first", lambda: window.folder.table.cellDoubleClicked.emit(0, 0))
    session.step("look at the mean", lambda: window.folder.table.cellDoubleClicked.emit(2, 0))
    session.answer(images / "inner")
    session.click("side.folder.browse")
    session.click("side.folder.start")
    monkeypatch.setattr("app.ui.compare.vote_view.SystemRandom", lambda: Random(3))
    session.step("vote", lambda: window.tabs.setCurrentWidget(window.voting))
    session.step("count", lambda: window.voting.count.setValue(3))
    session.click("side.voting.start")
    session.click("side.vote.left")
    session.step("equal", lambda: QTest.keyClick(window.vote.grid.panes["2"], Qt.Key.Key_Equal))
    session.step("right", lambda: QTest.keyClick(window.vote.grid.panes["1"], Qt.Key.Key_2))
    session.answer(images)
    session.step("folder", lambda: window.tabs.setCurrentWidget(window.folder))
    session.click("side.folder.browse")
    session.click("side.folder.start")
    session.step("vote", lambda: window.tabs.setCurrentWidget(window.voting))
    session.choose("side.voting.pictures", window.voting.pictures.itemText(1))
    session.choose("side.voting.part", "random squares")
    session.step("count", lambda: window.voting.count.setValue(4))
    session.click("side.voting.start")
    session.click("side.vote.right")
    session.step("stop", lambda: QTest.keyClick(window.vote.grid.panes["1"], Qt.Key.Key_Escape))
    session.answer(folder / "votes.csv")
    session.click("side.voting.csv")
    session.answer(folder / "none" / "votes.json")
    session.click("side.voting.json")
    session.click("side.run")
    session.answer(None)
    session.key("Ctrl+R")
    session.answer(folder / "page.html")
    session.key("Ctrl+R")
    for name in ("table.csv", "votes.csv", "page.html"):
        rows = [line for line in (folder / name).read_text().splitlines() if not line.startswith("#")]
        session.lines.append(f"{name}: {rows[0][:90]}")
    compare("side_folders", session.lines)
    window.folder_run.start(images)
    assert window.folder_run.running
    window.close()
    assert not window.folder_run.running
    assert not model.busy
