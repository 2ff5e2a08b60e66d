"""The trials of a sweep."""

from __future__ import annotations

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.training import trainer
from designer.training.sweep import Axis, Sweep, trials


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


def test_a_random_search_of_values_does_not_repeat_a_combination():
    assert len({trial.title for trial in trials(axes("noise=15,25", "lr=0.1,0.2"), 3)}) == 3
    assert len(trials(axes("noise=15,25"), 9)) == 2


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
