"""Titles, refusals, random trials and results of sweeps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.training.metrics import Curves
from designer.training.run_folder import RunFolder
from designer.training.sweep import Axis, Result, Sweep, Trial, best_value, rate, trials
from designer.training.watched_run import RunSnapshot, RunState
from designer.training.watched_sweep import SweepSnapshot, best_trial


def test_a_sweep_is_named_after_its_settings(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path / "folder", tuple(trials([Axis("lr", ("1", "2")), Axis("width.a", ("8",))])))
    assert SweepSnapshot(sweep, RunState.RUNNING).title == "Sweep of lr, width.a"
    assert SweepSnapshot(replace(sweep, trials=()), RunState.RUNNING).title == "folder"


EXAMPLE = "for instance --grid noise=15,25 --grid width.conv_1=16,32, or with --random lr=1e-4..1e-2"


@pytest.mark.parametrize(
    ("action", "text", "reason"),
    [
        (lambda: Axis.parse("noise"), "noise", "it needs a name and different values"),
        (lambda: Axis.parse(f"lr={'1,' * 60}"), f"lr={'1,' * 60}"[:80], "it needs a name and different values"),
        (lambda: Axis.parse("lr=a..1"), "lr=a..1", "the ends of a range are numbers"),
        (lambda: Axis.parse("lr=2..1"), "lr=2..1", "a range goes from a positive number to a larger one"),
        (lambda: trials([]), "", "each setting is searched once"),
        (lambda: trials([Axis("a", ("1",)), Axis("a", ("2",))]), "a, a", "each setting is searched once"),
        (
            lambda: trials([Axis("b", ("1",)), Axis("a", (), 1, 2)]),
            "a",
            "a grid needs values; only a random search takes a range",
        ),
        (lambda: trials([Axis("a", ("1",)), Axis("b", (), 1, 2)], 10_001), "a, b", "it has more than 10000 trials"),
        (lambda: Trial(1, {"width.a": "x"}).graph(Graph()), "width.a=x", "widths are whole numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_says_why_and_how(action: Callable[[], object], text: str, reason: str) -> None:
    assert refusal(action) == ("bad-sweep", f"'{text}' cannot be searched: {reason}", None, EXAMPLE)


def test_folders_of_sweeps_say_what_is_wrong_with_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    sweep = Sweep(tmp_path, (Trial(1, {"lr": "1"}),))
    path = str(tmp_path)
    assert refusal(lambda: sweep.open("digest")) == (
        "folder-not-empty",
        f"{path} has another sweep or other files",
        path,
        "choose an empty folder; the same command with the same network continues a sweep",
    )
    assert refusal(lambda: Sweep.read(tmp_path)) == (
        "no-sweep",
        f"{path} has no sweep",
        path,
        "choose the folder of a sweep, which has a file sweep.json",
    )
    graph = Graph([Layer("a", "identity")])
    assert refusal(lambda: Trial(1, {"width.a": "8"}).graph(graph)) == (
        "bad-sweep",
        "width.a: no layer with features has that name",
        None,
        "name a layer such as a convolution, of the network itself and not of a template",
    )


def test_random_trials_are_those_of_every_other_version() -> None:
    """A sweep is continued only if the same trials are drawn again."""
    ranges = [
        Axis("lr", (), 1e-4, 1e-2),
        Axis("batch", (), 1, 64),
        Axis("width.a", (), 4, 64),
        Axis("noise", ("1", "2")),
    ]
    assert [list(trial.values.values()) for trial in trials(ranges, 4, 3)] == [
        ["0.0002992", "10", "11", "2"],
        ["0.001784", "1", "4", "2"],
        ["0.0003301", "3", "63", "2"],
        ["0.001208", "10", "12", "1"],
    ]
    lists = [Axis("a", ("1", "2", "3")), Axis("b", ("4", "5"))]
    assert [trial.title for trial in trials(lists)] == [f"a {a}, b {b}" for a in "123" for b in "45"]
    assert [trial.title for trial in trials(lists, 3, 5)] == ["a 3, b 4", "a 2, b 4", "a 3, b 5"]
    assert [trial.number for trial in trials(lists, 99)] == [1, 2, 3, 4, 5, 6]


def curves(**columns: list[float]) -> Curves:
    count = max(map(len, columns.values()), default=0)
    return Curves(np.arange(count), {f"validation.{name}": np.array(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("columns", "best"),
    [
        ({}, ("", None)),
        ({"loss": [3.0, 1.0, 2.0]}, ("loss", 1.0)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75], "iou": [0.25, 0.125], "psnr": [20.0, 30.0, 25.0]}, ("psnr", 30.0)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75], "iou": [0.25, 0.125]}, ("iou", 0.25)),
        ({"loss": [1.0], "accuracy": [0.5, 0.75]}, ("accuracy", 0.75)),
        ({"psnr": [np.nan, np.inf], "loss": [-np.inf, 2.0]}, ("loss", 2.0)),
    ],
)
def test_the_metric_that_decides_and_its_best_value(
    columns: dict[str, list[float]], best: tuple[str, float | None]
) -> None:
    assert best_value(curves(**columns)) == best
    assert rate(curves(**columns)) == (best[1] if best[0] != "loss" or best[1] is None else -best[1])


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("loss", [0.5, 0.25, None], 0.25),
        ("psnr", [30.0, 20.0, 25.0, None], 30.0),
        ("accuracy", [0.0, None, -1.0], 0.0),
        ("loss", [0.5, 0.25, 0.25], 0.25),  # of equal ones the first
        ("psnr", [None, None], None),
        ("psnr", [], None),
    ],
)
def test_the_best_trial_is_the_same_as_in_the_results_in_every_order(
    metric: str, values: list[float | None], best: float | None, tmp_path: Path
) -> None:
    shots = [
        RunSnapshot(RunFolder(tmp_path / str(n)), curves=curves(**({} if value is None else {metric: [value]})))
        for n, value in enumerate(values)
    ]
    for turn in itertools.permutations(shots):
        found = best_trial(turn)
        results = [
            Result(Trial(n, {}), shot.folder, None, 0, *best_value(shot.curves)) for n, shot in enumerate(turn, 1)
        ]
        first = min(results, key=lambda result: result.order, default=None)
        if best is None:
            assert found is None
        else:
            assert found is not None
            assert first is not None
            assert (best_value(found.curves)[1], found.folder) == (best, first.run)


def test_results_are_ordered_by_value_and_then_by_number(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)

    def order(metric: str, *values: float | None) -> list[int]:
        results = [Result(Trial(n, {}), run, None, 0, metric, value) for n, value in enumerate(values)]
        return [result.trial.number for result in sorted(results, key=lambda result: result.order)]

    assert order("loss", 0.5, None, 0.25, 0.5, 0.0) == [4, 2, 0, 3, 1]
    assert order("psnr", 20.0, None, 30.0, 20.0, -5.0, 0.0) == [2, 0, 3, 5, 4, 1]
    row = Result(Trial(12, {"lr": "1"}), run, None).row()
    assert list(row.items()) == [
        ("trial", "trial_012"),
        ("lr", "1"),
        ("state", "waiting"),
        ("metric", ""),
        ("value", None),
        ("step", 0),
        ("message", ""),
        ("run", str(tmp_path)),
    ]


def test_a_sweep_has_at_most_ten_thousand_trials() -> None:
    values = tuple(map(str, range(10_000)))
    assert len(trials([Axis("a", values)])) == 10_000
    found = refusal(lambda: trials([Axis("a", (*values, "more"))]))
    assert found[1] == "'a' cannot be searched: it has more than 10000 trials"
    assert len(trials([Axis("a", values), Axis("b", ("1", "2"))], 3)) == 3


def test_a_folder_that_cannot_be_listed_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    path = str(tmp_path)
    assert refusal(lambda: Sweep(tmp_path, (Trial(1, {"lr": "1"}),)).open("digest")) == (
        "cannot-read",
        f"{path} cannot be read: Permission denied",
        path,
        "choose another folder",
    )
    assert not (tmp_path / "sweep.json").exists()
