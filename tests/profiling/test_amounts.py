"""Amounts of several rows together: groups of rows, and what the layers of a network are colored with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from designer.profiling.counters import is_range, last_line
from designer.profiling.energy import energy_of
from designer.profiling.grouping import combined, group_rows, precision_shares
from designer.profiling.heat import METRICS, heat
from designer.profiling.machine import Machine
from designer.profiling.quantities import Quantity, ValueSource, measured, unavailable
from designer.profiling.roofline import above_roof, bandwidth_for, saving_at
from designer.profiling.schema import (
    OperatorProfile,
    PeakMemory,
    Profile,
    ProfileRun,
    RunPeaks,
    TrainingStep,
    mean_utilization,
)


def row(*layers, time_ms=1.0, **more) -> OperatorProfile:
    return OperatorProfile(layers, "convolution", time_ms, **more)


def run(*rows) -> ProfileRun:
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", None, None, rows)


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("memory_bytes", (100, 300, 200), 300),  # one after the other
        ("memory_bytes", (100, None, 200), 200),
        ("memory_bytes", (None, None, None), None),
        ("roof_ms", (0.5, 0.25, 0.0), 0.75),
        ("roof_ms", (0.5, None, 0.0), None),
        ("saving_ms", (0.5, 0.25, 0.0), 0.75),
        ("saving_ms", (0.5, None, 0.0), None),
        ("flops", (1, 2, 3), 6),
        ("bytes", (1, 2, 3), 6),
        ("learned", (1, 2, 3), 6),
        ("bound", ("compute", "memory", "compute"), "memory"),
    ],
)
def test_rows_combined(field, values, expected):
    rows = [row(str(number), time_ms=1.0 + (number == 1), **{field: value}) for number, value in enumerate(values)]
    total = combined(rows)
    assert getattr(total, field) == expected
    assert (total.layers, total.time_ms) == (("0", "1", "2"), 4.0)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("flops", {"block": 5, "b": 2, "c": 4}), ("time", {"block": 0.003, "b": 0.001, "c": 0.001})],
)
def test_a_row_counts_once_for_an_instance_that_shows_several_of_its_layers(metric, expected):
    rows = (
        row("block/a", "block/b", "b", flops=2),
        row("block/a", time_ms=2.0, flops=3),
        row("hidden/x", "c", flops=4),
    )
    shown = {"block": "block", "hidden": ""}
    found = heat(run(*rows), METRICS[metric], lambda layer: shown.get(layer.partition("/")[0], layer))
    assert found.values == pytest.approx(expected)


def test_amounts_that_do_not_add_up_are_the_largest():
    rows = (row("block/a", roof_ms=0.5), row("block/b", time_ms=3.0, roof_ms=1.0), row("block/c"))
    assert heat(run(*rows), METRICS["roof"], lambda layer: "block").values == {"block": 3.0}


def test_rows_by_key_in_the_order_of_their_first_row():
    rows = [row("a", time_ms=2.0), row("b", time_ms=4.0), row("c", time_ms=1.0)]
    groups = group_rows(rows, lambda each: "even" if each.name in ("b",) else "odd")
    assert [(group.key, group.total.time_ms, group.total.layers) for group in groups] == [
        ("odd", 3.0, ("a", "c")),
        ("even", 4.0, ("b",)),
    ]
    assert groups[0].rows == (rows[0], rows[2])
    assert groups[0].total.type == "convolution"


def test_shares_of_precisions():
    rows = (row("a", time_ms=3.0, flops=10), row("b", time_ms=1.0, flops=60, precision="int8"), row("c", flops=10))
    assert precision_shares(run(*rows)) == {"fp32": (80.0, 25.0), "int8": (20.0, 75.0)}
    assert precision_shares(run(row("a"))) == {"fp32": (100.0, 0.0)}


def test_rates_and_sums_of_rows_and_runs():
    one = row("a", time_ms=4.0, flops=6000, bytes=2000, roof_ms=2.5, saving_ms=0.0)
    other = row("b", "c", time_ms=12.0, bytes=500, roof_ms=3.0, saving_ms=9.0)
    assert (one.flops_per_s, one.bytes_per_s, one.intensity, one.distance) == (1.5e6, 5e5, 3.0, 1.6)
    assert (one.at_roof, other.at_roof, row("d").at_roof) == (True, False, False)
    none = row("d", time_ms=0.0, flops=5)
    assert (none.flops_per_s, none.bytes_per_s, none.intensity, none.distance) == (None, None, None, None)
    assert other.name == "b + c"
    both = replace(run(one, other, OperatorProfile((), "", 4.0)), time_ms=30.0, flops=6000)
    assert (both.rows_ms, both.bytes, both.roof_ms, both.flops_per_s) == (20.0, 2500, 5.5, 2e5)
    assert both.share(other) == 60.0
    assert run(one, row("d")).roof_ms is None
    assert run().roof_ms is None
    assert run().flops_per_s is None
    assert run().share(one) == 0.0


def test_the_chip_and_the_title_of_a_run():
    both = Profile(Machine("a processor", 4, "a GPU"), "net", (run(),))
    on_gpu = replace(run(), device="cuda:0")
    assert [both.chip(found) for found in (run(), on_gpu)] == ["a processor", "a GPU"]
    assert both.chip(replace(on_gpu, device="H100", source=ValueSource.MODELLED)) == "H100"
    assert both.chip(replace(run(), source=ValueSource.MODELLED)) == "a processor"
    assert Profile(Machine("a processor", 4), "net", (on_gpu,)).chip(on_gpu) == "a processor"
    assert both.title(run()) == "net, torch fp32 nchw batch 1 8x8 on a processor"
    assert replace(run(), size="").configuration == "torch fp32 nchw batch 1"
    assert both.machine.device({"device": "cuda"}) == "a GPU"
    assert both.machine.device({}) == both.machine.device({"device": "cpu"}) == "a processor"


def test_the_phases_of_a_training_step():
    step = TrainingStep(4, 21.0, 1.0, 2.0, 3.0, 4.0, 5.0, "input", "why")
    assert step.phases == {"data": 4.0, "forward": 1.0, "backward": 2.0, "optimizer": 3.0, "waiting": 5.0}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (("measured", "measured"), ("measured", "same")),
        (("measured", "modelled"), ("modelled", "same")),
        (("modelled", "modelled"), ("modelled", "same")),
    ],
)
def test_mean_utilization_of_rows_that_took_time(sources, expected):
    rows = [
        row(name, time_ms=ms, occupancy=Quantity(value, ValueSource(source), "same"))
        for name, ms, value, source in zip("ab", (1.0, 4.0), (10.0, 60.0), sources, strict=True)
    ]
    ignored = [
        row("c", time_ms=0.0, occupancy=unavailable("x")),
        OperatorProfile((), "", 9.0, occupancy=unavailable("y")),
    ]
    found = mean_utilization([*rows, *ignored])["occupancy"]
    assert (found.value, found.source, found.reason) == (50.0, *expected)


def test_mean_utilization_without_rows_or_with_several_reasons():
    assert mean_utilization([])["occupancy"] == unavailable("no operator was timed")
    rows = [row(name, occupancy=measured(value, name)) for name, value in (("a", 10.0), ("b", 30.0))]
    assert mean_utilization(rows)["occupancy"] == measured(20.0, "mean weighted by time")


def test_values_that_no_profile_has():
    for value in (1e101, -1e101, float("nan"), float("-inf")):
        with pytest.raises(ValueError, match="value must be from"):
            measured(value)
    assert measured(-1e99).value == -1e99
    with pytest.raises(ValueError, match="index of an operator"):
        replace(run(row("a")), peak_memory=PeakMemory(8, 1))
    assert replace(run(row("a"), row("b")), peak_memory=PeakMemory(8, 1)).peak_memory.operator == 1
    with pytest.raises(ValueError, match="batch must be 1"):
        replace(run(), batch=0)


@pytest.mark.parametrize(
    ("moved", "cache_bytes", "where"),
    [
        (0, 100, "memory"),
        (1, 100, "cache"),
        (50, 100, "cache"),
        (51, 100, "memory"),
        (1, 0, "memory"),
        (50, 101, "cache"),
    ],
)
def test_work_that_fits_half_of_the_cache_has_its_bandwidth(moved, cache_bytes, where):
    peaks = RunPeaks(measured(1.0), measured(2.0), measured(3.0), cache_bytes)
    assert bandwidth_for(moved, peaks) == (measured({"memory": 2.0, "cache": 3.0}[where]), where)
    assert bandwidth_for(moved, replace(peaks, cache_bytes_per_s=unavailable("none")))[1] == "memory"


def test_steps_at_and_above_the_roof():
    assert [saving_at(100.0, roof_ms) for roof_ms in (96.0, 97.0, 98.0, 100.0, 120.0)] == [4.0, 0.0, 0.0, 0.0, 0.0]
    for time_ms, spread_ms, roof_ms, above in (
        (96.9, None, 100.0, True),
        (97.1, 0.0, 100.0, False),
        (96.0, 2.0, 100.0, False),
        (1.0, None, None, False),
    ):
        assert above_roof(time_ms, spread_ms, roof_ms) is above


@pytest.mark.parametrize(
    ("name", "found"), [("lw0", True), ("lw12", True), ("lw", False), ("low", False), ("xlw1", False)]
)
def test_ranges_of_layers_are_told_from_other_ranges(name, found):
    assert is_range(name) is found


def test_the_last_line_of_a_program_is_its_reason():
    assert last_line("a\n  b  \n\n") == "b"
    assert last_line("x" * 300) == "x" * 200
    assert last_line(" \n") == "it printed nothing"


@pytest.mark.parametrize(("joules", "seconds", "known"), [(3.0, 0.2, True), (3.0, 0.19, False), (0.0, 1.0, False)])
def test_energy_needs_time_for_its_counter(joules, seconds, known):
    found = energy_of(joules, seconds, 2, 100)
    assert (found.joules.value is not None, found.watts.value is not None) == (known, known)
