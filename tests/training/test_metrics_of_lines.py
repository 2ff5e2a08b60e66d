"""Curves from lines of metrics, and settings that differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from designer.training.metrics import Curves, MetricsFile, settings_differences


def test_each_number_of_a_line_is_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    numbers = {
        "epoch": 1.0,
        "time": 2.0,
        "elapsed": 3.0,
        "loss": 4.0,
        "learning_rate": 5.0,
        "throughput": 6.0,
        "memory": 7.0,
    }
    line = {"step": 5, **numbers, "losses": {"l1": 8.0}, "validation": {"psnr": 9.0, "loss": None}, "new": 1}
    path.write_text(
        '{"schema": 1, "total_steps": 9, "task": "denoise", "on_training": true}\n' + json.dumps(line) + "\n"
    )
    file = MetricsFile(path)
    assert file.read()
    curves = file.curves
    assert {name: curves.last(name) for name in curves.values} == {
        **numbers,
        "losses.l1": 8.0,
        "validation.psnr": 9.0,
        "validation.loss": None,
    }
    assert curves.validated == ("validation.psnr", "validation.loss")
    assert (curves.total_steps, curves.task, curves.on_training, curves.skipped) == (9, "denoise", True, 0)
    with path.open("a") as stream:
        stream.write(
            '{"step": 6, "loss": -Infinity, "time": Infinity, "epoch": NaN, "losses": {"l1": NaN}}\n{"step": "7"}\n'
        )
    assert file.read()
    assert file.curves.steps.tolist() == [5, 6]
    assert [file.curves.points(name)[0].tolist() for name in ("loss", "time", "epoch", "losses.l1")] == [[5.0]] * 4
    assert (file.curves.skipped, file.curves.task, file.curves.on_training) == (1, "denoise", True)
    with path.open("a") as stream:
        stream.write('{"schema": 2, "total_steps": "x"}\n{"broken\n')
    assert file.read()
    assert (file.curves.total_steps, file.curves.skipped) == (9, 2)


def test_settings_in_which_any_run_differs_are_listed_in_their_order() -> None:
    first = {"lr": 1, "batch": 8, "same": 3}
    assert settings_differences([first, {**first, "lr": 2, "amp": True}, first]) == {
        "lr": [1, 2, 1],
        "amp": [None, True, None],
    }
    assert settings_differences([first]) == settings_differences([]) == {}


def curves(**columns: list[float]) -> Curves:
    count = max(map(len, columns.values()), default=0)
    return Curves(np.arange(count), {f"validation.{name}": np.array(values) for name, values in columns.items()})
