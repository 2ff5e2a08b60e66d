"""Differences of two runs, and sweeps over batches and sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.profiling.difference import difference, differences
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.profiling.sweep import sweeps


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


@pytest.mark.parametrize("swapped", [False, True])
def test_chains_of_rows_that_share_layers_are_joined(swapped):
    before = run(row("a", 1.0), row("b x", 2.0), row("c", 4.0), row("d", 8.0))
    after = run(row("a b", 1.0), row("x c", 2.0), row("d", 4.0))
    runs = (after, before) if swapped else (before, after)
    rows = {frozenset(r.layers): (r.before_ms, r.after_ms) for r in difference(*runs).rows}
    expected = {frozenset("abxc"): (7.0, 3.0), frozenset("d"): (8.0, 4.0)}
    assert rows == {layers: times[::-1] if swapped else times for layers, times in expected.items()}


def test_layers_of_one_run_only_are_said():
    rows = {r.layers: r.verdict for r in difference(run(row("a", 1.0)), run(row("b", 1.0))).rows}
    assert rows == {("a",): "only before", ("b",): "only after"}


def test_a_busy_machine_puts_a_difference_in_doubt():
    quiet = run(row("a", 1.0))
    busy = replace(quiet, load=measured(40.0))
    assert difference(quiet, quiet).doubt == ""
    assert "40 % of the cores" in difference(quiet, busy).doubt


def test_runs_of_two_profiles_are_paired_by_configuration():
    machine = Machine("c", 1)
    before = Profile(machine, "n", (run(row("a", 1.0)), run(row("a", 2.0), batch=2)))
    after = Profile(machine, "n", (run(row("a", 4.0), batch=2), run(row("a", 4.0), engine="other")))
    (found,) = differences(before, after)
    assert found.before.batch == found.after.batch == 2
    assert len(differences(Profile(machine, "n", before.runs[:1]), after)) == 2


def test_the_knee_is_the_smallest_batch_near_the_largest_throughput():
    times = {1: 10.0, 4: 20.0, 16: 70.0, 64: 275.0}
    runs = [run(batch=batch, time_ms=ms) for batch, ms in times.items()] + [run(engine="alone", time_ms=1.0)]
    (sweep,) = sweeps(runs, "batch")
    assert [r.batch for r in sweep.runs] == [1, 4, 16, 64]
    assert sweep.throughput(sweep.runs[1]) == pytest.approx(200)
    assert sweep.knee.batch == 16
    assert sweeps(runs, "size") == []


def test_sizes_are_compared_by_pixels_per_second():
    times = {"1000x1000": 50.0, "100x50": 1.0, "4000x1000": 210.0, "not an image": 9.0, "": 3.0}
    (sweep,) = sweeps([replace(run(time_ms=ms), size=size) for size, ms in times.items()], "size")
    assert [sweep.label(r) for r in sweep.runs] == ["100x50", "1000x1000", "4000x1000"]
    assert [sweep.throughput(r) for r in sweep.runs] == pytest.approx([5.0, 20.0, 4000 / 210])
    assert sweep.knee.size == "1000x1000"


def test_predicted_runs_and_runs_with_other_threads_are_no_part_of_a_measured_sweep():
    runs = [run(batch=1, time_ms=1.0), run(batch=2, time_ms=2.0)]
    others = [
        replace(run(batch=4, time_ms=1.0), source=ValueSource.MODELLED),
        replace(run(batch=8, time_ms=1.0), threads=7),
    ]
    (sweep,) = sweeps([*runs, *others], "batch")
    assert list(sweep.runs) == runs
