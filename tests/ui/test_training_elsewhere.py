"""Runs on another machine and sweeps, from the window. `ssh` and the trainer are stand-ins; the processes are real."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox
from training_kit import WAIT, elsewhere, end_processes, exported, stand_in_project, training

from app.engine import sweep_process
from app.ui.engine.training import StartRequest
from designer.training.run_folder import RunFolder
from designer.training.ssh_host import configured_hosts
from designer.training.watched_run import RunState

pytestmark = [
    pytest.mark.gui,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for ssh is a shell script"),
]
__all__ = ["elsewhere", "exported", "training"]


def widget(window, panel: str, name: str):
    return window.docks.panel(panel).findChild(object, name)


def wait_for(qtbot, condition) -> None:
    qtbot.waitUntil(lambda: bool(condition()), timeout=WAIT)


# --- another machine -------------------------------------------------------------------------------------------


def test_hosts_of_the_configuration_and_of_included_files_are_offered(tmp_path):
    (tmp_path / "more").write_text('Host = "cluster node"\nHost b\n')
    (tmp_path / "config").write_text("# Host commented\nInclude mo*\nhost a !b *.lab\n  HostName x\nHost a 'c\n")
    assert configured_hosts(tmp_path / "config") == ["a", "cluster node", "b"]
    assert configured_hosts(tmp_path / "missing") == []


def test_a_run_on_a_host_is_watched_and_survives_the_connection(window, training, exported, elsewhere, qtbot):
    panel = window.docks.panel("training")
    panel.place.refresh()
    box = widget(window, "training", "training.where")
    assert [box.itemText(number) for number in range(box.count())] == ["This machine", "elsewhere", "other"]
    assert not widget(window, "training", "training.where.python").isVisibleTo(panel)
    box.setCurrentText("elsewhere")
    panel.place.python_line.setText(sys.executable)
    panel.project.setText(str(exported))
    for name in ("data", "noise"):
        panel.form.set_text(name, "")
    panel.form.set_text("steps", "100000")
    qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)
    wait_for(qtbot, lambda: training.runs or training.problem)
    assert not training.problem
    (run,) = training.runs
    wait_for(qtbot, lambda: run.snapshot.state is RunState.RUNNING and run.snapshot.step > 1)
    state = widget(window, "training", "training.state")
    wait_for(qtbot, lambda: state.text().startswith("running on elsewhere"))
    elsewhere.touch()
    wait_for(qtbot, lambda: "The run goes on there" in widget(window, "training", "training.message").text())
    assert run.snapshot.state is RunState.RUNNING
    assert run.snapshot.seconds_left is None, "nothing is known of the run since the connection was lost"
    assert "left" not in state.text()
    elsewhere.unlink()
    wait_for(qtbot, lambda: not run.snapshot.message)
    wait_for(qtbot, lambda: "left" in state.text())
    training.send(run, "stop")
    wait_for(qtbot, lambda: run.snapshot.state is RunState.STOPPED and not run.folder.process())
    step = run.snapshot.step
    training.resume(run, {"steps": str(step + 2)})
    wait_for(qtbot, lambda: run.snapshot.state is RunState.FINISHED)
    assert run.snapshot.step == step + 2
    assert run.snapshot.host == "elsewhere"


@pytest.mark.parametrize(
    ("host", "said"),
    [("unknown", "unknown cannot be reached: ssh: Could not resolve"), ("-x", "is not the name of a host")],
)
def test_a_host_that_cannot_be_used_is_named(window, training, exported, elsewhere, qtbot, host, said):
    training.start(StartRequest(exported, {}, host=host, python=sys.executable))
    wait_for(qtbot, lambda: said in training.problem)
    assert not training.runs


def test_without_ssh_the_message_says_what_to_install(window, training, exported, elsewhere, qtbot, monkeypatch):
    monkeypatch.setenv("PATH", "")
    training.start(StartRequest(exported, {}, host="elsewhere"))
    wait_for(qtbot, lambda: "ssh cannot be started" in training.problem)
    assert "OpenSSH" in training.problem


# --- sweeps ----------------------------------------------------------------------------------------------------


@pytest.fixture
def sweeps(training, tmp_path, monkeypatch):
    """The folder of a sweep whose trainer is the stand-in."""
    monkeypatch.setattr(
        "app.engine.sweep_job.export_project", lambda graph, registry, target, *rest: stand_in_project(target)
    )
    yield tmp_path / "sweep"
    for snapshot in training.sweeps.values():
        snapshot.sweep.job.send("stop")
        for trial in snapshot.sweep.trials:
            end_processes(snapshot.sweep.project(trial))


def open_dialog(window, qtbot, folder: Path):
    panel = window.docks.panel("training")
    panel.form.set_text("data", "")
    qtbot.mouseClick(panel.sweep, Qt.MouseButton.LeftButton)
    dialog = window.findChild(object, "sweep")
    dialog.folder.setText(str(folder))
    return dialog


def test_a_sweep_runs_in_its_own_process_and_its_trials_are_a_group(window, training, sweeps, qtbot, monkeypatch):
    window.docks.panel("training").form.set_text("steps", "12")
    dialog = open_dialog(window, qtbot, sweeps)
    assert not dialog.start.isEnabled()
    assert dialog.count.text() == "Enter the values of each setting"
    dialog.rows[0].values.setText("0.1, 0.2")
    dialog.add_row("width.conv", "3")
    assert dialog.count.text() == "2 trials"
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    wait_for(qtbot, lambda: training.sweeps or training.problem)
    assert not training.problem
    (snapshot,) = training.sweeps.values()
    assert snapshot.sweep.job.process() not in (0, os.getpid())
    wait_for(qtbot, lambda: next(iter(training.sweeps.values())).state is RunState.FINISHED and len(training.runs) == 2)
    wait_for(qtbot, lambda: all(run.snapshot.state is RunState.FINISHED for run in training.runs))
    panel = window.docks.panel("training_runs")
    model = panel.model
    (row,) = model.items
    group = model.index_of(row)
    assert group.data() == "Sweep of lr, width.conv"
    wait_for(qtbot, lambda: group.siblingAtColumn(1).data() == "finished, 2 of 2")
    assert model.rowCount(group) == 2
    panel.table.setCurrentIndex(group)
    assert list(training.chosen) == row.runs
    assert not widget(window, "training_runs", "training_runs.sweep").isVisible()  # nothing left to stop or continue
    titles = [
        model.headerData(n, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole) for n in range(model.columnCount())
    ]
    assert titles[-1] == "lr"
    group = model.index_of(model.items[0])
    cells = [model.index(n, model.columnCount() - 1, group) for n in range(2)]
    assert [cell.data() for cell in cells] == ["0.1", "0.2"]
    assert all(cell.data(Qt.ItemDataRole.ForegroundRole) for cell in cells)
    training.delete(training.runs[0])
    assert [snapshot.folder for snapshot in training.sweeps.values()] == [sweeps]
    panel.table.setCurrentIndex(model.index_of(model.items[0]))
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Yes)
    qtbot.mouseClick(widget(window, "training_runs", "training_runs.delete"), Qt.MouseButton.LeftButton)
    assert not sweeps.exists()
    assert not model.items


def test_a_sweep_is_stopped_and_continued(window, training, sweeps, qtbot):
    window.docks.panel("training").form.set_text("steps", "300")
    dialog = open_dialog(window, qtbot, sweeps)
    dialog.rows[0].values.setText("0.1, 0.2")
    qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    wait_for(qtbot, lambda: training.runs and training.runs[0].snapshot.step > 1)
    panel, button = window.docks.panel("training_runs"), widget(window, "training_runs", "training_runs.sweep")
    panel.table.setCurrentIndex(panel.model.index_of(panel.model.items[0]))
    assert button.text() == "Stop Sweep"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_for(qtbot, lambda: next(iter(training.sweeps.values())).state is RunState.STOPPED)
    (run,) = training.runs
    assert run.folder.checkpoint is not None
    wait_for(qtbot, lambda: button.text() == "Continue Sweep" and not RunFolder(sweeps).process())
    (first,) = run.folder.metrics.read_text().splitlines()[1:2]
    place = sweeps / sweep_process.PLACE
    place.write_bytes(msgspec.json.encode(sweep_process.Place(parallel=2)))
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    wait_for(qtbot, lambda: len(training.runs) == 2)
    assert msgspec.json.decode(place.read_bytes()) == {
        "parallel": 2,
        "cluster": "",
    }  # it continues where it was started
    assert run.folder.metrics.read_text().splitlines()[1] == first  # it was resumed


@pytest.mark.parametrize(
    ("values", "said"), [("1,,2", "different values"), ("1e-4..1e-2", "only a random search takes a range")]
)
def test_a_plan_that_cannot_run_is_named_in_the_dialog(window, training, sweeps, qtbot, values, said):
    dialog = open_dialog(window, qtbot, sweeps)
    dialog.rows[0].values.setText(values)
    assert said in dialog.message.text()
    assert not dialog.start.isEnabled()
    assert dialog.drawn.minimum() == dialog.parallel.minimum() == 1
    dialog.search.setCurrentIndex(1)
    dialog.search.chosen.emit("random")
    assert dialog.start.isEnabled() == (".." in values)
    dialog.reject()
