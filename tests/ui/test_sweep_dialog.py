"""The dialog of a sweep: what can be searched, what its plan gives or lacks, and what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDialogButtonBox, QLineEdit, QPushButton, QSpinBox, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.engine.training import StartRequest, SweepRequest, default_project
from app.ui.train.sweep_dialog import MOST_AXES, SweepDialog
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui

OFFERED = {  # titles in their order, by name; the layers with features come last
    "lr": "Learning rate",
    "noise": "Noise",
    "batch": "Batch",
    "patch": "Patch",
    "steps": "Steps",
    "seed": "Seed",
    "weight_decay": "Weight decay",
    "ema": "Moving average",
    "optimizer": "Optimizer",
    "clip": "Gradient clipping",
    "width.conv": "Features of conv",
    "width.last": "Features of last",
}
MISSING = {
    "denoising": set(),
    "restoration": {"noise"},
    "segmentation": {"noise"},
    "super-resolution": {"noise"},
    "classification": {"noise", "patch"},
}


class Opened:
    """The open dialog and what it requested."""

    def __init__(self, qtbot: QtBot, folder: Path, task: str = "denoising") -> None:
        layers = [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
            Layer("act", "relu", inputs=(Source("conv"),)),
            Layer("last", "convolution", inputs=(Source("act"),), params={"features": "3"}),
            Layer("output", "output", inputs=(Source("last"),)),
        ]
        self.qtbot = qtbot
        self.document = Document(Graph(layers), default_registry(), path=folder / "net.xml")
        self.base = StartRequest(folder / "net_pytorch", {"steps": "12"}, task)
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.dialog = SweepDialog(self.document, self.base, self.window)
        self.requests: list[SweepRequest] = []
        self.dialog.requested.connect(self.requests.append)
        self.dialog.open()

    def find(self, kind: type, name: str) -> QWidget:
        found = self.dialog.findChild(kind, f"sweep.{name}")
        assert found is not None, name
        return found

    def write(self, name: str, text: str) -> None:
        line = self.find(QLineEdit, name)
        assert isinstance(line, QLineEdit)
        line.clear()
        self.qtbot.keyClicks(line, text)

    def choose(self, name: str, value: str) -> None:
        """With the keyboard, which skips what is disabled."""
        box = self.find(QComboBox, name)
        assert isinstance(box, QComboBox)
        self.qtbot.keyClick(box, Qt.Key.Key_Home)
        for _ in range(box.count()):
            if box.currentData() == value:
                return
            self.qtbot.keyClick(box, Qt.Key.Key_Down)
        raise AssertionError(f"{value} cannot be chosen")

    def click(self, kind: type, name: str) -> None:
        self.qtbot.mouseClick(self.find(kind, name), Qt.MouseButton.LeftButton)

    def says(self) -> tuple[str, str, bool]:
        """What the plan gives or lacks, the problem of its values, and whether it can be started."""
        return self.dialog.count.text(), self.dialog.message.text(), self.dialog.start.isEnabled()

    @property
    def settings(self) -> list[str]:
        return [row.setting.currentData() for row in self.dialog.rows]

    @property
    def visible(self) -> set[str]:
        names = {"trials": QSpinBox, "parallel": QSpinBox, "address": QLineEdit, "folder": QLineEdit}
        return {name for name, kind in names.items() if self.find(kind, name).isVisible()}


@pytest.fixture
def opened(qtbot: QtBot, tmp_path: Path) -> Opened:
    return Opened(qtbot, tmp_path)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether the library is installed."""
    return lambda there: monkeypatch.setattr("app.ui.train.sweep_dialog.find_spec", lambda name: there or None)


@pytest.mark.parametrize("task", MISSING)
def test_settings_of_the_task_and_features_of_layers_can_be_searched(qtbot: QtBot, tmp_path: Path, task: str) -> None:
    opened = Opened(qtbot, tmp_path, task)
    box = opened.dialog.rows[0].setting
    offered = {box.itemData(row): box.itemText(row) for row in range(box.count())}
    assert list(offered.items()) == [item for item in OFFERED.items() if item[0] not in MISSING[task]]


def test_each_added_setting_is_another_one(opened: Opened) -> None:
    names = list(OFFERED)
    assert opened.settings == names[:1]
    for number in range(1, MOST_AXES):
        assert opened.find(QPushButton, "add").isEnabled()
        opened.click(QPushButton, "add")
        assert opened.settings == names[: number + 1]
    assert not opened.find(QPushButton, "add").isEnabled()
    opened.click(QToolButton, "remove_2")
    assert opened.settings == [names[0], *names[2:MOST_AXES]]
    opened.click(QPushButton, "add")
    assert opened.settings == [names[0], *names[2:MOST_AXES], names[1]]  # the one that was free again


def test_the_plan_is_counted_and_what_it_lacks_is_named(opened: Opened) -> None:
    lacks_values = ("Enter the values of each setting", "", False)
    assert opened.says() == lacks_values
    opened.write("values_1", "0.1")
    assert opened.says() == ("1 trial", "", True)
    opened.write("values_1", "0.1, 0.2,0.3")
    assert opened.says() == ("3 trials", "", True)
    opened.click(QPushButton, "add")
    assert opened.says() == lacks_values
    opened.write("values_2", "15, 25")
    assert opened.says() == ("6 trials", "", True)
    opened.choose("setting_2", "lr")  # twice the same
    count, problem, ready = opened.says()
    assert (count, ready) == ("", False)
    assert "each setting is searched once" in problem
    assert opened.dialog.message.isVisible()
    opened.choose("setting_2", "width.last")
    assert opened.says() == ("6 trials", "", True)
    assert not opened.dialog.message.isVisible()
    opened.write("folder", " ")
    assert opened.says() == ("Enter a folder for the sweep", "", False)
    opened.write("folder", "sweep")
    opened.click(QToolButton, "remove_1")
    assert opened.says() == ("2 trials", "", True)
    opened.click(QToolButton, "remove_2")
    assert opened.says() == ("Add a setting", "", False)


def test_random_trials_are_as_many_as_asked_for(opened: Opened) -> None:
    opened.write("values_1", "1e-4..1e-2")
    assert "only a random search takes a range" in opened.says()[1]
    assert opened.visible == {"parallel", "folder"}
    opened.choose("search", "random")
    assert opened.visible == {"trials", "parallel", "folder"}
    assert opened.says() == ("20 trials", "", True)
    trials = opened.find(QSpinBox, "trials")
    assert isinstance(trials, QSpinBox)
    trials.selectAll()
    opened.qtbot.keyClicks(trials, "7")
    assert opened.says() == ("7 trials", "", True)
    opened.write("values_1", "0.1, 0.2")
    assert opened.says() == ("2 trials", "", True)  # there are no more
    opened.choose("search", "grid")
    assert opened.visible == {"parallel", "folder"}
    opened.write("values_1", "1e-2..1e-4")
    assert opened.says()[2] is False


def test_a_cluster_needs_its_library_and_an_address(qtbot: QtBot, tmp_path: Path, ray: Callable[[bool], None]) -> None:
    ray(False)
    here = Opened(qtbot, tmp_path)
    box = here.find(QComboBox, "where")
    assert isinstance(box, QComboBox)
    assert "layerwright[cluster]" in box.itemText(1)
    with pytest.raises(AssertionError):
        here.choose("where", "cluster")
    ray(True)
    there = Opened(qtbot, tmp_path)
    there.write("values_1", "0.1, 0.2")
    there.choose("where", "cluster")
    assert there.visible == {"address", "folder"}
    assert there.says() == ("Enter the address of the cluster", "", False)
    there.write("address", "10.0.0.1:6379 ")
    assert there.says() == ("2 trials", "", True)
    folder = there.find(QLineEdit, "folder")
    assert isinstance(folder, QLineEdit)
    before = folder.text()
    there.write("folder", " ")
    assert there.says() == ("Enter a folder for the sweep", "", False)
    there.write("folder", before)
    there.click(QPushButton, "start")
    assert there.requests[0].cluster == "10.0.0.1:6379"


def test_the_request_is_the_plan_with_what_all_trials_share(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    opened.write("values_1", "0.1, 0.2")
    opened.click(QPushButton, "add")
    opened.choose("setting_2", "width.last")
    opened.write("values_2", "3")
    opened.write("folder", "~/tried ")
    opened.write("address", "of no cluster")
    parallel = opened.find(QSpinBox, "parallel")
    opened.qtbot.keyClick(parallel, Qt.Key.Key_Up)
    opened.click(QPushButton, "start")
    assert not opened.dialog.isVisible()
    (request,) = opened.requests
    assert [trial.values for trial in request.trials] == [
        {"lr": "0.1", "width.last": "3"},
        {"lr": "0.2", "width.last": "3"},
    ]
    assert (request.folder, request.options, request.task) == (tmp_path / "tried", {"steps": "12"}, "denoising")
    assert (request.parallel, request.cluster) == (2, "")


def test_a_cancelled_dialog_requests_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    for cancel in ("button", "key"):
        opened = Opened(qtbot, tmp_path)
        opened.write("values_1", "0.1, 0.2")
        if cancel == "button":
            buttons = opened.dialog.findChild(QDialogButtonBox)
            assert buttons is not None
            qtbot.mouseClick(buttons.button(QDialogButtonBox.StandardButton.Cancel), Qt.MouseButton.LeftButton)
        else:
            qtbot.keyClick(opened.dialog, Qt.Key.Key_Escape)
        assert not opened.dialog.isVisible()
        assert not opened.requests


def test_the_folder_is_new_and_next_to_the_project(qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("net_sweep", "net_sweep_2", "net_sweep_3"):
        opened = Opened(qtbot, tmp_path)
        folder = default_project(opened.document).with_name(name)
        assert opened.dialog.folder.text() == str(folder)
        folder.mkdir(parents=True)
