"""Differences of two runs and sweeps over batches."""

from __future__ import annotations

import pytest

from designer.profiling.difference import difference, differences
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.profiling.sweep import images_per_second, knee, sweeps


def row(layers, time_ms, spread_ms=0.01):
    return OperatorProfile(tuple(layers.split()), "convolution", time_ms, spread_ms)


def run(*rows, engine="torch", batch=1, iterations=25, time_ms=None, spread_ms=0.01):
    time_ms = sum(r.time_ms for r in rows) if time_ms is None else time_ms
    return ProfileRun(engine, "fp32", "nchw", "cpu", batch, "8x8", time_ms, spread_ms, rows, iterations=iterations)


def test_a_difference_within_the_noise_is_none():
    found = difference(run(row("a", 10.0, 1.0), row("b", 5.0)), run(row("a", 11.0, 1.0), row("b", 2.0)))
    verdicts = {r.layers: r.verdict for r in found.rows}
    assert verdicts == {("a",): "none", ("b",): "faster"}
    assert found.rows[0].layers == ("b",)  # the largest difference is first
    assert found.total.verdict == "faster"


def test_noise_shrinks_with_the_number_of_iterations():
    few, many = (
        difference(run(row("a", 1.0, 0.1), iterations=n), run(row("a", 1.1, 0.1), iterations=n)) for n in (4, 400)
    )
    assert few.rows[0].verdict == "none"
    assert many.rows[0].verdict == "slower"


def test_layers_that_one_engine_fused_are_joined():
    before = run(row("conv", 3.0), row("relu", 1.0), row("pool", 1.0))
    after = run(row("conv relu", 2.0), row("pool", 1.0), OperatorProfile((), "", 0.5))
    rows = {r.layers: r for r in difference(before, after).rows}
    assert rows["conv", "relu"].before_ms == 4.0
    assert rows["conv", "relu"].after_ms == 2.0
    assert rows["pool",].verdict == "none"
    assert rows[()].verdict == "only after"


def test_layers_of_one_run_only_are_said():
    rows = {r.layers: r.verdict for r in difference(run(row("a", 1.0)), run(row("b", 1.0))).rows}
    assert rows == {("a",): "only before", ("b",): "only after"}


def test_runs_of_two_profiles_are_paired_by_configuration():
    machine = Machine("c", 1)
    before = Profile(machine, "n", (run(row("a", 1.0)), run(row("a", 2.0), batch=2)))
    after = Profile(machine, "n", (run(row("a", 4.0), batch=2), run(row("a", 4.0), engine="other")))
    (found,) = differences(before, after)
    assert found.before.batch == found.after.batch == 2
    assert len(differences(Profile(machine, "n", before.runs[:1]), after)) == 2


def test_the_knee_is_the_smallest_batch_near_the_largest_throughput():
    times = {1: 10.0, 4: 20.0, 16: 70.0, 64: 275.0}
    (sweep,) = sweeps(
        [run(batch=batch, time_ms=ms) for batch, ms in times.items()] + [run(engine="alone", time_ms=1.0)]
    )
    assert [r.batch for r in sweep.runs] == [1, 4, 16, 64]
    assert images_per_second(sweep.runs[1]) == pytest.approx(200)
    assert knee(sweep.runs).batch == 16
