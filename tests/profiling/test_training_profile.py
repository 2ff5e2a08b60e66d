"""The profile of a training step: the exported project in a process of its own, and the four verdicts."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from app.engine import training_profile
from app.engine.training_profile import profile_training, training_step
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.profiling.quantities import measured
from designer.profiling.schema import RunPeaks
from designer.runtime.api import RunOptions

OPTIONS = RunOptions(engine="torch", threads=1)


def graph(*more: Layer) -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "32x32x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3", "kernel": "3x3"}),
            Layer("result", "output", inputs=(Source("conv"),)),
        ]
    )


def test_a_step_of_the_exported_project(profiling_registry, monkeypatch):
    peaks = RunPeaks(measured(1e9), measured(1e9), measured(1e9))
    monkeypatch.setattr(training_profile, "machine_peaks", lambda options: None)
    monkeypatch.setattr(training_profile, "run_peaks", lambda _: peaks)
    roofs = []
    monkeypatch.setattr(training_profile, "_verdict", lambda *given: roofs.append(given[3]) or ("compute", "measured"))
    step = profile_training(graph(), profiling_registry, OPTIONS, batch=2, patch=16, steps=3)
    assert step.batch == 2
    assert min(step.data_ms, step.forward_ms, step.backward_ms, step.optimizer_ms) > 0
    parts = step.data_ms + step.forward_ms + step.backward_ms + step.optimizer_ms + step.waiting_ms
    assert parts == pytest.approx(step.step_ms, rel=0.25)  # medians of different steps
    operations = 3 * 2 * (2 * 16 * 16 * 3 * 27)  # three passes over two patches of 16 x 16
    assert roofs == [pytest.approx(operations / 1e9 * 1e3)]


def test_a_project_that_cannot_be_trained_says_why(profiling_registry):
    unlearned = Graph(
        [Layer("image", "input", params={"dims": "32x32x3"}), Layer("pool", "pooling", inputs=(Source("image"),)),
         Layer("result", "output", inputs=(Source("pool"),))]
    )  # fmt: skip
    with pytest.raises(DiagnosticError, match="no trainable weights"):
        profile_training(unlearned, profiling_registry, OPTIONS, batch=2, patch=16, steps=1)


@pytest.mark.parametrize(
    ("data", "forward", "step", "roofs", "verdict"),
    [
        (40.0, 20.0, 100.0, (1.0, 2.0), "input"),
        (1.0, 20.0, 100.0, (1.0, 2.0), "waiting"),
        (1.0, 60.0, 100.0, (2.0, 1.0), "compute"),
        (1.0, 60.0, 100.0, (1.0, 2.0), "memory"),
    ],
)
def test_four_verdicts(data, forward, step, roofs, verdict):
    times = {"data": data, "forward": forward, "backward": 15.0, "optimizer": 5.0, "step": step}
    found = training_step(times, 4, *roofs)
    assert found.verdict == verdict
    assert found.waiting_ms == pytest.approx(step - data - forward - 20.0)


def test_why_the_process_of_a_training_step_ended(profiling_registry, monkeypatch):
    found = []
    slow = subprocess.TimeoutExpired("train", 9)
    for ended in (
        SimpleNamespace(returncode=1, stderr="Traceback\n  a line\nValueError: the data are wrong\n", stdout="{}"),
        SimpleNamespace(returncode=1, stderr="", stdout="first\nlast"),
        SimpleNamespace(returncode=-9, stderr=" ", stdout=""),
        slow,
    ):

        def run(*_, ended=ended, **__):
            if ended is slow:
                raise ended
            return ended

        monkeypatch.setattr(training_profile.subprocess, "run", run)
        with pytest.raises(DiagnosticError) as caught:
            profile_training(graph(), profiling_registry, OPTIONS, batch=2, patch=16, steps=3)
        found.append(caught.value.diagnostics[0].message)
    begin = found[0].removesuffix("ValueError: the data are wrong")
    assert found == [
        f"{begin}ValueError: the data are wrong", f"{begin}last", f"{begin}it ended with status -9",
        f"{begin}3 steps took longer than {training_profile.LIMIT} s",
    ]  # fmt: skip


def test_a_step_with_code_that_was_not_agreed_to_is_not_run(profiling_registry, monkeypatch):
    monkeypatch.setattr(training_profile.subprocess, "run", lambda *_, **__: pytest.fail("it ran"))
    custom = Graph([*graph(), Layer("own", "custom", inputs=(Source("image"),))])
    with pytest.raises(DiagnosticError) as caught:
        profile_training(custom, profiling_registry, OPTIONS, batch=2, patch=16, steps=3)
    assert [found.code for found in caught.value.diagnostics] == ["not-agreed"]
