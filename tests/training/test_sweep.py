"""The trials of a sweep, the folder that identifies it, and its results."""

from __future__ import annotations

import ast
import csv
import json
import math
import os
from importlib import resources
from pathlib import Path

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.training import trainer
from designer.training.run_folder import RunFolder
from designer.training.sweep import PLAN, WHOLE, Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState
from designer.training.watched_sweep import best_trial, read_sweep, sweep_of


def axes(*texts: str) -> list[Axis]:
    return [Axis.parse(text) for text in texts]


def test_a_grid_has_all_combinations():
    found = trials(axes("noise=15,25", "width.a=8,16"))
    assert [trial.title for trial in found] == [
        "noise 15, width.a 8",
        "noise 15, width.a 16",
        "noise 25, width.a 8",
        "noise 25, width.a 16",
    ]
    assert [trial.network for trial in found] == ["a-8", "a-16", "a-8", "a-16"]
    assert found[1].options == {"noise": "15"}


def test_a_random_search_repeats_and_stays_within_its_ranges():
    found = trials(axes("lr=1e-4..1e-2", "width.a=4..64", "noise=15,25"), 40)
    assert found == trials(axes("lr=1e-4..1e-2", "width.a=4..64", "noise=15,25"), 40)
    rates = sorted(float(trial.values["lr"]) for trial in found)
    assert 1e-4 <= rates[0] < 5e-4
    assert 2e-3 < rates[-1] <= 1e-2
    assert all(4 <= int(trial.widths["a"]) <= 64 for trial in found)
    assert len({trial.title for trial in found}) == len(found)


def test_ranges_are_drawn_on_a_logarithmic_scale():
    found = trials(axes("lr=1e-5..1e-1"), 300)
    powers = [math.floor(math.log10(float(trial.values["lr"]))) for trial in found]
    for power in (-5, -4, -3, -2):
        assert 45 <= powers.count(power) <= 105, power
    assert 45 <= sum(int(trial.widths["a"]) < 4 for trial in trials(axes("width.a=1..256", "lr=1..2"), 300)) <= 105


def test_settings_that_are_whole_numbers_are_drawn_as_such():
    config = resources.files("resources") / "templates" / "pytorch" / "config.py"
    (fields,) = (node.body for node in ast.parse(config.read_text()).body if getattr(node, "name", "") == "Config")
    annotated = [field for field in fields if isinstance(field, ast.AnnAssign)]
    assert set(WHOLE) == {field.target.id for field in annotated if field.annotation.id == "int"}
    for name in WHOLE:
        assert all(8 <= int(trial.values[name]) <= 64 for trial in trials(axes(f"{name}=8..64"), 20))


def test_a_random_search_of_values_does_not_repeat_a_combination():
    assert len({trial.title for trial in trials(axes("noise=15,25", "lr=0.1,0.2"), 3)}) == 3
    assert len(trials(axes("noise=15,25"), 9)) == 2


def test_a_random_search_has_as_many_different_trials_as_there_are():
    """Draws that repeat a trial do not count, and the size of the space does not matter."""
    assert len(trials(axes("width.a=16..32"), 10)) == 10
    assert {trial.widths["a"] for trial in trials(axes("width.a=4..6"), 10)} == {"4", "5", "6"}
    many = ",".join(map(str, range(200)))
    found = trials(axes(f"noise={many}", f"lr={many}"), 50)
    assert len({trial.title for trial in found}) == 50


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        (" weight-decay = 0.1, 0.2 ", "weight_decay", ("0.1", "0.2")),
        (" width.conv-1=8,16", "width.conv-1", ("8", "16")),
        ("width.a=b=8", "width.a=b", ("8",)),
        ("x=a=b", "x", ("a=b",)),
    ],
)
def test_names_and_values_of_axes(text, name, values):
    assert Axis.parse(text) == Axis(name, values)


@pytest.mark.parametrize("text", ["noise", "noise=", "=1", "noise=1,,2", "lr=0..1", "lr=2..1", "lr=a..b", "lr=1..inf"])
def test_bad_axes_are_named(text):
    with pytest.raises(DiagnosticError, match="cannot be searched"):
        Axis.parse(text)


def test_endless_grids_are_refused():
    many = ",".join(map(str, range(200)))
    with pytest.raises(DiagnosticError, match="10000 trials"):
        trials(axes(f"noise={many}", f"lr={many}"))


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DiagnosticError, match="other files"):
        Sweep(tmp_path, tuple(trials(axes("noise=1")))).open("digest")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_folders_of_options_are_those_of_the_command_and_not_of_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"data": "photos", "validation": "", "noise": "25", "amp": True}
    assert trainer.with_absolute_paths(options) == {**options, "data": str(tmp_path / "photos")}


def test_a_setting_has_underscores_and_a_width_keeps_the_name_of_its_layer():
    assert Axis.parse(" batch-size = 4, 8 ") == Axis("batch_size", ("4", "8"))
    assert Axis.parse("width.conv-1=4") == Axis("width.conv-1", ("4",))
    assert Axis.parse("lr=1e-4..0.01") == Axis("lr", (), 1e-4, 0.01)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("noise=5,5", "'noise=5,5' cannot be searched: it needs a name and different values"),
        ("lr=a..b", "'lr=a..b' cannot be searched: the ends of a range are numbers"),
        ("lr=1..1", "'lr=1..1' cannot be searched: a range goes from a positive number to a larger one"),
        ("lr=-1..1", "'lr=-1..1' cannot be searched: a range goes from a positive number to a larger one"),
    ],
)
def test_the_reason_names_the_axis_first(text, reason):
    with pytest.raises(DiagnosticError) as caught:
        Axis.parse(text)
    assert str(caught.value.diagnostics[0].message) == reason


def test_what_cannot_be_searched_together_is_refused():
    with pytest.raises(DiagnosticError, match="'lr' cannot be searched: a grid needs values"):
        trials(axes("noise=1,2", "lr=1..2"))
    with pytest.raises(DiagnosticError, match="'lr, lr' cannot be searched: each setting is searched once"):
        trials(axes("lr=1", "lr=2"))
    with pytest.raises(DiagnosticError, match="each setting is searched once"):
        trials([])
    with pytest.raises(DiagnosticError, match="10000 trials"):
        trials(axes("lr=1..2"), 10_001)
    many = ",".join(map(str, range(100)))
    assert len(trials(axes(f"noise={many}", f"lr={many}"))) == 10_000
    assert len(trials(axes("lr=1..2"), 10_000)) <= 10_000


def test_another_seed_draws_other_trials():
    one, other = (trials(axes("lr=1e-4..1e-2", "noise=1,2"), 8, seed) for seed in (1, 2))
    assert [trial.values for trial in one] != [trial.values for trial in other]
    grid = axes("noise=1,2,3,4,5,6,7,8,9")
    assert [t.title for t in trials(grid, 4, 1)] != [t.title for t in trials(grid, 4, 2)]
    assert [t.number for t in trials(grid, 4, 1)] == [1, 2, 3, 4]


def test_the_parts_of_a_trial():
    trial = Trial(7, {"lr": "0.1", "width.a": "8", "width.b": "16"})
    assert trial.name == "trial_007"
    assert trial.title == "lr 0.1, width.a 8, width.b 16"
    assert trial.widths == {"a": "8", "b": "16"}
    assert trial.options == {"lr": "0.1"}
    assert trial.network == "a-8_b-16"
    assert Trial(1, {"lr": "0.1"}).network == "network"
    sweep = Sweep(Path("folder"), (trial,), {"lr": "1", "steps": "5", "amp": False})
    assert sweep.arguments(trial) == {"lr": "0.1", "steps": "5", "amp": False}
    assert sweep.run(trial).path == Path("folder/a-8_b-16/runs/trial_007")
    assert sweep.project(trial) == Path("folder/a-8_b-16")


def test_the_network_of_a_trial_has_its_widths():
    graph = Graph(
        [
            Layer("a", "convolution", params={"features": "4", "filter_size": "3"}),
            Layer("b", "convolution", params={"features": "5"}),
            Layer("relu", "relu"),
        ]
    )
    changed = Trial(1, {"lr": "0.1", "width.b": "16"}).graph(graph)
    assert {name: changed[name].params.get("features") for name in ("a", "b")} == {"a": "4", "b": "16"}
    assert graph["b"].params["features"] == "5"
    for width in ("1.5", "-3", "²", ""):
        with pytest.raises(DiagnosticError, match=r"'width.b=.*' cannot be searched: widths are whole numbers"):
            Trial(1, {"width.b": width}).graph(graph)
    for name in ("relu", "none"):
        with pytest.raises(DiagnosticError, match=f"width.{name}: no layer with features has that name"):
            Trial(1, {f"width.{name}": "8"}).graph(graph)


def plan(folder: Path, *texts: str, **options: str | bool) -> Sweep:
    sweep = Sweep(folder, tuple(trials(axes(*texts))), options)
    sweep.open("digest")
    return sweep


def test_a_sweep_is_continued_only_with_the_same_plan(tmp_path):
    folder = tmp_path / "new" / "sweep"
    sweep = plan(folder, "noise=1,2", steps="5", amp=True)
    assert Sweep.read(folder) == sweep
    (folder / "network").mkdir()
    sweep.open("digest")
    for other, digest in (
        (sweep, "another"),
        (Sweep(folder, sweep.trials, {"steps": "6", "amp": True}), "digest"),
        (Sweep(folder, sweep.trials[:1], sweep.options), "digest"),
    ):
        with pytest.raises(DiagnosticError, match="has another sweep") as caught:
            other.open(digest)
        assert caught.value.diagnostics[0].file == str(folder)
    assert Sweep.read(folder) == sweep
    with pytest.raises(DiagnosticError, match="has no sweep") as caught:
        Sweep.read(tmp_path)
    assert caught.value.diagnostics[0].file == str(tmp_path)
    assert PLAN in caught.value.diagnostics[0].remedy


def validated(run: RunFolder, loss: float | None, step: int = 3, state: str = "finished") -> None:
    run.path.mkdir(parents=True)
    lines = [{"schema": 1, "total_steps": 9}, {"step": step, "loss": 1.0, "validation": {"loss": loss}}]
    run.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    status = {"state": state, "pid": 0, "step": step, "total_steps": 9, "message": "=said"}
    (run.path / "status.json").write_text(json.dumps(status))


def test_results_are_sorted_and_written_as_tables(tmp_path):
    sweep = plan(tmp_path, "width.a=8,16,32", "lr=0.1,0.2")
    for number, loss in ((2, 0.5), (3, None), (5, 0.25), (6, 0.5)):
        validated(sweep.run(sweep.trials[number - 1]), loss, step=number)
    results = sweep.write()
    assert [result.trial.number for result in results] == [5, 2, 6, 1, 3, 4]
    assert [result.value for result in results] == [0.25, 0.5, 0.5, None, None, None]
    assert [result.metric for result in results] == ["loss", "loss", "loss", "", "", ""]
    assert [result.step for result in results] == [5, 2, 6, 0, 3, 0]
    first = {
        "trial": "trial_005",
        "width.a": "32",
        "lr": "0.1",
        "state": "finished",
        "metric": "loss",
        "value": 0.25,
        "step": 5,
        "message": "=said",
        "run": str(tmp_path / "a-32" / "runs" / "trial_005"),
    }
    assert json.loads((tmp_path / "results.json").read_text())[0] == first
    text = (tmp_path / "results.csv").read_bytes().decode()
    assert "\r" not in text
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == list(first)
    assert rows[0]["value"] == "0.25"
    assert rows[0]["message"] == "'=said"
    assert [row["state"] for row in rows] == ["finished"] * 3 + ["waiting", "finished", "waiting"]
    assert rows[3]["value"] == ""


def job_status(sweep: Sweep, state: str, pid: int, message: str = "") -> None:
    (sweep.folder / "status.json").write_text(json.dumps({"state": state, "pid": pid, "message": message}))


def test_the_state_of_a_sweep_is_that_of_its_process(tmp_path):
    sweep = plan(tmp_path, "lr=0.1,0.2")
    assert read_sweep(tmp_path / "none") is None
    shot = read_sweep(tmp_path)
    assert (shot.state, shot.message, shot.title, shot.folder) == (RunState.ENDED, "", "Sweep of lr", tmp_path)
    sweep.job.log.write_text("first\nno such host\n")
    shot = read_sweep(tmp_path)
    assert (shot.state, shot.message) == (RunState.FAILED, "no such host")
    job_status(sweep, "running", 1 << 22, "trial 1")
    assert read_sweep(tmp_path).state is RunState.ENDED
    job_status(sweep, "stopped", 1 << 22, "by the user")
    assert [read_sweep(tmp_path).state, read_sweep(tmp_path).message] == [RunState.STOPPED, "by the user"]
    job_status(sweep, "failed", 1 << 22, "said itself")
    assert read_sweep(tmp_path).message == "said itself"
    sweep.job.record_process(os.getpid())
    shot = read_sweep(tmp_path)  # the status is that of an earlier process
    assert (shot.state, shot.message) == (RunState.STARTING, "")
    job_status(sweep, "running", os.getpid(), "trial 2")
    shot = read_sweep(tmp_path, shot)
    assert (shot.state, shot.message) == (RunState.RUNNING, "trial 2")


def test_a_trial_knows_its_sweep_and_what_it_changes(tmp_path):
    plan(tmp_path, "width.a=8,16", "lr=0.1", data="/photos", steps="5")
    shot = read_sweep(tmp_path)
    run = shot.sweep.run(shot.sweep.trials[1])
    validated(run, 0.5)
    (run.path / "config.json").write_text(json.dumps({"settings": {"lr": 0.1, "data": "/there"}}))
    assert sweep_of(run.path) == tmp_path
    assert sweep_of(tmp_path / "network" / "runs" / "a" / "deeper") is None
    watched = shot.watch(run)
    watched.read()
    assert watched.snapshot.compared == {"lr": 0.1, "data": "/photos", "width.a": "16"}
    other = shot.watch(RunFolder(tmp_path / "other"))
    assert other.snapshot.compared == {}


def test_the_best_trial_has_the_best_validation(tmp_path):
    sweep = plan(tmp_path, "lr=1,2,3")
    for trial, loss in zip(sweep.trials, (0.5, 0.25, None), strict=True):
        validated(sweep.run(trial), loss)
    shots = []
    for trial in sweep.trials:
        watched = read_sweep(tmp_path).watch(sweep.run(trial))
        watched.read()
        shots.append(watched.snapshot)
    assert best_trial(shots) is shots[1]
    assert best_trial(shots[2:]) is None
