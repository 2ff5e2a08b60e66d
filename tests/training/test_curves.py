"""The columns of the metrics of a run: gaps, groups, durations, ratings, and lines that are not JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from designer.training.metrics import Curves, MetricsFile
from designer.training.sweep import best_value, rate


def curves(**columns: list[float]) -> Curves:
    steps = columns.pop("steps", list(range(1, 1 + max(map(len, columns.values())))))
    return Curves(np.array(steps), {name.replace("__", "."): np.array(values) for name, values in columns.items()})


def written(path: Path, *lines: object) -> MetricsFile:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    file = MetricsFile(path)
    file.read()
    return file


def test_points_are_the_steps_that_have_a_value():
    found = curves(steps=[2, 5, 9], loss=[4.0, np.nan, 1.0])
    assert [each.tolist() for each in found.points("loss")] == [[2.0, 9.0], [4.0, 1.0]]
    assert found.last("loss") == 1.0
    assert [len(each) for each in found.points("memory")] == [0, 0]
    assert found.last("memory") is None
    assert curves(loss=[3.0, np.nan]).last("loss") == 3.0


def test_the_duration_of_a_step_is_that_of_the_latest_ones():
    found = curves(steps=[1, 3, 5, 9], elapsed=[0.0, 10.0, 11.0, 13.0])
    assert found.seconds_per_step() == pytest.approx(13 / 8)
    assert found.seconds_per_step(lines=3) == pytest.approx(3 / 6)
    assert found.seconds_per_step(lines=2) == pytest.approx(0.5)
    assert curves(steps=range(1, 102), elapsed=[0.0] * 51 + [2.0 * n for n in range(1, 51)]).seconds_per_step() == 2.0


@pytest.mark.parametrize(
    ("steps", "elapsed"),
    [([1], [1.0]), ([1, 2], [3.0, 3.0]), ([1, 2], [3.0, 2.0]), ([4, 4], [1.0, 2.0]), ([1, 2], [np.nan, 2.0])],
)
def test_the_duration_of_a_step_is_unknown_without_two_steps_and_time_between_them(steps, elapsed):
    assert curves(steps=steps, elapsed=elapsed).seconds_per_step() is None


def test_two_steps_are_enough_for_a_duration():
    assert curves(steps=[3, 4], elapsed=[1.0, 1.25]).seconds_per_step() == 0.25


def test_groups_have_a_column_per_name_and_gaps_where_a_line_lacks_it(tmp_path):
    found = written(
        tmp_path / "metrics.jsonl",
        {"step": 1, "loss": 3.0, "losses": {"l1": 2.0}},
        {"step": 2, "losses": {"l1": 1.5, "ssim": 0.5}, "validation": {"psnr": 20.0, "loss": None}},
        {"step": 4, "loss": 2.0, "learning_rate": 0.1, "epoch": 0.5, "memory": 7.0, "throughput": 9.0, "time": 5.0},
    ).curves
    expected = {
        "loss": [3.0, None, 2.0],
        "losses.l1": [2.0, 1.5, None],
        "losses.ssim": [None, 0.5, None],
        "validation.psnr": [None, 20.0, None],
        "validation.loss": [None, None, None],
        "learning_rate": [None, None, 0.1],
        "epoch": [None, None, 0.5],
        "memory": [None, None, 7.0],
        "throughput": [None, None, 9.0],
        "time": [None, None, 5.0],
        "elapsed": [None, None, None],
    }
    assert {
        name: [None if np.isnan(value) else value for value in values] for name, values in found.values.items()
    } == expected
    assert found.validated == ("validation.psnr", "validation.loss")


def test_columns_that_start_or_end_later_are_filled_with_gaps(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = written(path, {"step": 1, "losses": {"l1": 2.0}}, {"step": 2, "losses": {"l1": 1.0}})
    with path.open("a") as stream:
        stream.write('{"step": 3, "losses": {"mse": 5.0}}\n')
    assert file.read()
    assert file.curves.steps.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(file.curves.values["losses.l1"], [2.0, 1.0, np.nan])
    np.testing.assert_array_equal(file.curves.values["losses.mse"], [np.nan, np.nan, 5.0])


def test_infinite_values_are_gaps_and_broken_lines_are_counted_in_every_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = written(path, '{"step": 1, "loss": -Infinity, "losses": {"l1": NaN}}', "broken", "", '{"step": "2"}')
    assert file.curves.steps.tolist() == [1]
    assert np.isnan(file.curves.values["loss"]).all()
    assert file.curves.skipped == 2
    with path.open("a") as stream:
        stream.write("broken too\n")
    file.read()
    assert file.curves.skipped == 3


def test_a_file_that_was_emptied_is_a_change(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = written(path, {"schema": 1, "total_steps": 5}, {"step": 1, "loss": 2.0})
    assert not file.read()
    path.write_text("")
    assert file.read()
    assert (len(file.curves.steps), file.curves.total_steps) == (0, 0)


def test_a_header_is_kept_and_the_last_one_counts(tmp_path):
    path = tmp_path / "metrics.jsonl"
    file = written(
        path,
        {"schema": 1, "total_steps": 5, "task": "a"},
        {"step": 1},
        {"schema": 1, "total_steps": 9, "task": "b", "on_training": True},
    )
    with path.open("a") as stream:
        stream.write('{"step": 2}\n')
    file.read()
    assert (file.curves.total_steps, file.curves.task, file.curves.on_training) == (9, "b", True)
    with path.open("a") as stream:
        stream.write('{"schema": "broken"}\n{"step": 3}\n')
    file.read()
    assert (file.curves.total_steps, file.curves.task, file.curves.skipped) == (9, "b", 0)


@pytest.mark.parametrize(
    ("columns", "best", "rating"),
    [
        ({"validation__loss": [3.0, 1.0, 2.0]}, ("loss", 1.0), -1.0),
        ({"validation__psnr": [20.0, 30.0, 25.0], "validation__loss": [0.1, 0.1, 0.1]}, ("psnr", 30.0), 30.0),
        ({"validation__iou": [0.5, 0.75], "validation__accuracy": [0.9, 0.8]}, ("iou", 0.75), 0.75),
        ({"validation__accuracy": [0.9, 0.8]}, ("accuracy", 0.9), 0.9),
        ({"validation__psnr": [np.inf, np.nan], "validation__loss": [2.0, np.inf]}, ("loss", 2.0), -2.0),
        ({"loss": [1.0], "validation__other": [2.0]}, ("", None), None),
        ({"validation__loss": [0.0, -2.0]}, ("loss", -2.0), 2.0),
    ],
)
def test_scores_are_better_if_larger_and_losses_if_smaller(columns, best, rating):
    assert best_value(curves(**columns)) == best
    assert rate(curves(**columns)) == rating
