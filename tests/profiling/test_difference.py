"""Differences of two runs, and sweeps over batches and sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.profiling.difference import RowDifference, configuration_differences, difference, differences
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.profiling.sweep import images_per_second, sweeps


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


def test_runs_of_two_profiles_are_paired_by_configuration_or_else_by_batch_and_size():
    one, two = run(row("a", 1.0)), run(row("a", 2.0), batch=2)
    other, large = run(row("a", 4.0), engine="other"), replace(run(row("a", 4.0)), size="64x64")

    def pairs(before: tuple[ProfileRun, ...], after: tuple[ProfileRun, ...]) -> list[tuple[ProfileRun, ProfileRun]]:
        machine = Machine("c", 1)
        return [(d.before, d.after) for d in differences(Profile(machine, "n", before), Profile(machine, "n", after))]

    assert pairs((one, two), (two, other, large)) == [(two, two), (one, other)]
    assert pairs((one,), (two, other, large)) == [(one, other)]
    assert pairs((large,), (one, two)) == []
    assert pairs((one, other), (run(row("a", 3.0), engine="third"), other)) == [(other, other)]


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


@pytest.mark.parametrize(
    ("spreads", "iterations", "noise_ms"),
    [
        ((0.1, 0.1), (25, 25), 0.157628726),  # 3 * sqrt(2) * 1.253 * (0.2 / 1.349) / sqrt(25)
        ((0.3, 0.0), (25, 4), 0.334381023),
        ((0.0, 0.3), (25, 4), 0.835952557),
        ((0.3, None), (0, 0), 1.671905115),
        ((None, None), (25, 25), 0.04),  # 1 % of the longer time
    ],
)
@pytest.mark.parametrize("longer", [0, 1])
def test_noise_is_three_standard_errors_of_the_difference(spreads, iterations, noise_ms, longer):
    times = (4.0, 3.0) if longer == 0 else (3.0, 4.0)
    before, after = (
        run(row("a", ms, spread), iterations=n, spread_ms=spread)
        for ms, spread, n in zip(times, spreads, iterations, strict=True)
    )
    found = difference(before, after)
    assert found.rows[0].noise_ms == pytest.approx(noise_ms)
    assert found.total.noise_ms == pytest.approx(noise_ms)
    assert found.total.difference_ms == pytest.approx(times[1] - times[0])


def test_the_errors_of_rows_that_are_joined_add_up_as_squares():
    before = run(row("a", 1.0, 0.3), row("b", 2.0, 0.4))
    after = run(row("a b", 3.0, 0.0))
    (found,) = difference(before, after).rows
    assert found.noise_ms == pytest.approx(3 * 1.253 * 2 * 0.5 / 1.349 / 5)


def test_a_difference_as_large_as_the_noise_is_none():
    assert RowDifference(("a",), 1.0, 1.5, 0.5).verdict == "none"
    assert RowDifference(("a",), 1.5, 1.0, 0.5).verdict == "none"
    assert RowDifference(("a",), 1.0, 1.5, 0.25).verdict == "slower"
    assert RowDifference(("a",), None, 1.5, 0.25).difference_ms == 1.5
    assert RowDifference(("a",), 1.5, None, 0.25).difference_ms == -1.5


def test_rows_are_sorted_by_the_size_of_the_difference_in_either_direction():
    before = run(row("a", 1.0), row("b", 9.0), row("c", 5.0))
    after = run(row("a", 3.0), row("b", 5.0), row("c", 5.5))
    assert [r.layers for r in difference(before, after).rows] == [("b",), ("a",), ("c",)]


def test_runs_in_turns_are_not_in_doubt():
    first, second = run(row("a", 1.0)), run(row("a", 2.0))
    assert "not measured in turns" in difference(first, second).doubt
    one, other = replace(first, turns="1"), replace(second, turns="1")
    assert difference(one, other).doubt == ""
    assert "not measured in turns" in difference(one, replace(other, turns="2")).doubt
    assert "not measured in turns" in difference(one, second).doubt
    assert difference(replace(one, load=measured(5.0)), other).doubt == ""
    assert "6 % of the cores" in difference(replace(one, load=measured(6.0)), other).doubt
    assert "7 % of the cores" in difference(one, replace(other, load=measured(7.0))).doubt
    for loads in ((8.0, 2.0), (2.0, 8.0)):
        both = [replace(each, load=measured(load)) for each, load in zip((one, other), loads, strict=True)]
        assert "8 % of the cores" in difference(*both).doubt


def test_configurations_are_compared_with_the_first_of_the_same_batch_and_size():
    runs = (
        run(row("a", 1.0)),
        run(row("a", 2.0), batch=2),
        run(row("a", 3.0), engine="onnxruntime"),
        run(row("a", 4.0), engine="onnxruntime", batch=2),
        replace(run(row("a", 5.0), engine="openvino"), size="16x16"),
        run(row("a", 6.0), engine="openvino"),
    )
    found = configuration_differences(Profile(Machine("c", 1), "n", runs))
    assert [(pair.before.time_ms, pair.after.time_ms) for pair in found] == [(1.0, 3.0), (2.0, 4.0), (1.0, 6.0)]


def test_texts_of_sweeps():
    runs = [run(batch=batch, time_ms=4.0 * batch) for batch in (8, 2)]
    (batches,) = sweeps(runs, "batch")
    assert (batches.unit, batches.axis, batches.title) == ("images/s", "batch", "torch fp32 nchw cpu 8x8")
    assert [(batches.label(r), batches.position(r)) for r in batches.runs] == [("2", 2.0), ("8", 8.0)]
    (sizes,) = sweeps([replace(run(time_ms=1.0, batch=3), size=size) for size in ("40x30", "100x5")], "size")
    assert (sizes.unit, sizes.axis, sizes.title) == ("Mpixel/s", "size", "torch fp32 nchw cpu batch 3")
    assert [(sizes.label(r), sizes.position(r)) for r in sizes.runs] == [("100x5", 500.0), ("40x30", 1200.0)]
    assert [sizes.throughput(r) for r in sizes.runs] == pytest.approx([1.5, 3.6])


def test_the_knee_reaches_ninety_percent_of_the_throughput():
    def knee(first_ms):
        return sweeps([run(batch=1, time_ms=first_ms), run(batch=2, time_ms=20.0)], "batch")[0].knee.batch

    assert knee(11.1) == 1
    assert knee(11.2) == 2


def test_the_last_of_several_runs_at_one_batch_counts():
    runs = [run(batch=batch, time_ms=ms) for batch, ms in ((1, 1.0), (2, 2.0), (1, 3.0))]
    assert [r.time_ms for r in sweeps(runs, "batch")[0].runs] == [3.0, 2.0]
    assert sweeps([runs[0], runs[2]], "batch") == []
    assert images_per_second(run(batch=3, time_ms=6.0)) == 500.0
    assert images_per_second(replace(runs[0], time_ms=None)) == 0.0


@pytest.mark.parametrize("field", ["precision", "layout", "device", "size"])
def test_runs_of_other_configurations_are_other_sweeps(field):
    runs = [run(batch=1, time_ms=1.0), replace(run(batch=2, time_ms=1.0), **{field: "16x4"})]
    assert sweeps(runs, "batch") == []
