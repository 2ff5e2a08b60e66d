"""Measuring profiles on the CPU: rows that sum to the whole, sweeps, partial runs, and operators at the roof."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import Size2D
from designer.profiling import measure as measuring
from designer.profiling.configurations import AS_OPENED, Grid
from designer.profiling.cost import cost_table
from designer.profiling.difference import configuration_differences, difference
from designer.profiling.measure import (
    Timing,
    configurations,
    fit_rows,
    in_turns,
    measure,
    profile_session,
    profiling_overhead,
)
from designer.profiling.peaks import Peaks
from designer.profiling.predicted_here import step_timer
from designer.profiling.quantities import ValueSource, measured, unavailable
from designer.profiling.quantities import measured as figure
from designer.profiling.roofline import place
from designer.profiling.rows import OUTSIDE, operator_rows
from designer.profiling.schema import OperatorProfile, RunPeaks, mean_utilization, ranked
from designer.profiling.what_if import predicted_run
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import Sample
from designer.runtime.engine_registry import default_engines
from designer.runtime.session import Session
from designer.units import binary

PEAKS = Peaks(
    figure(100e9),
    figure(80e9),
    figure(20e9),
    1 << 20,
    figure(0.5),
    "2026-01-01T00:00:00+00:00",
    "onnxruntime",
    "fp32",
    1,
)
LAYERS = {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}


@pytest.fixture
def session(small_graph, profiling_registry, small_weights):
    def make(engine="torch", graph=None, **options):
        options = RunOptions(engine=engine, threads=1, **options)
        return Session(graph or small_graph, profiling_registry, small_weights, options)

    return make


def profiled(session, iterations=3, grid=AS_OPENED, **more):
    return profile_session(session, iterations, grid, **{"warmup": 1, "peaks": PEAKS, **more})


@pytest.mark.parametrize(
    ("engine", "layout"), [("torch", "nchw"), ("torch", "nhwc"), ("onnxruntime", "nchw"), ("onnxruntime", "nhwc")]
)
def test_rows_sum_to_the_time_of_the_whole_and_have_every_layer_once(session, engine, layout):
    run = profiled(session(engine, layout=layout)).runs[0]
    names = [name for row in run.operators for name in row.layers]
    assert sorted(names) == sorted(LAYERS)
    assert run.rows_ms == pytest.approx(run.time_ms, rel=0.05)
    assert sum(run.share(row) for row in run.operators) == pytest.approx(100)
    assert sum(row.flops for row in run.operators) == run.flops
    assert all(row.saving_ms is None or row.saving_ms >= 0 for row in run.operators)
    assert (run.engine, run.layout, run.batch, run.size, run.iterations) == (engine, layout, 1, "32x24", 3)
    assert not run.partial


def row(time_ms, **more):
    return OperatorProfile(("a",), "convolution", time_ms, **more)


def test_time_outside_of_operators_becomes_a_row():
    rows = fit_rows((row(2.0), row(1.0)), [Sample((), [0.0005], "Reorder")], 4.0, 0.1)
    assert rows[-1].layers == ()
    assert rows[-1].summary == OUTSIDE
    assert rows[-1].time_ms == pytest.approx(1.0)
    assert rows[-1].kernels == "Reorder"


def test_rows_that_profiling_made_longer_are_scaled_alike():
    rows = fit_rows((row(3.0, roof_ms=2.9, saving_ms=0.1), row(1.0, spread_ms=0.4)), [], 3.2, 0.1)
    assert [r.time_ms for r in rows] == pytest.approx([2.4, 0.8])
    assert rows[0].saving_ms == 0.0
    assert rows[1].spread_ms == pytest.approx(0.32)


def test_the_overhead_is_that_of_the_fastest_runs():
    timing = Timing(whole=[0.5, 0.1, 0.3])
    timing.add([Sample(("a",), [0.3, 0.08]), Sample(("b",), [0.4, 0.03])])
    assert profiling_overhead(timing).value == pytest.approx(10.0)
    assert "no run" in profiling_overhead(Timing()).reason


def test_utilization_without_a_gpu(session):
    first = profiled(session()).runs[0].operators[0]
    assert first.tensor_core.source is ValueSource.UNAVAILABLE
    assert "NVIDIA" in first.tensor_core.reason
    assert "NVIDIA" in first.occupancy.reason
    assert first.memory_throughput.source is ValueSource.MODELLED
    assert first.compute_throughput.value > 0


def test_a_step_without_kernels_uses_nothing_and_a_chip_without_a_counter_is_modelled(small_inference):
    table = cost_table(small_inference)
    samples = [Sample(("conv a",), [0.01]), Sample(("pool",), [0.01])]
    counted = {
        ("conv a",): {
            "tensor_core": measured(60.0),
            "occupancy": measured(50.0),
            "memory_throughput": unavailable("this chip has no such counter"),
        }
    }
    conv, pool = operator_rows(table, samples, peaks(), counted, "")
    assert (pool.tensor_core.value, pool.occupancy.value) == (0.0, 0.0)
    assert conv.memory_throughput.source is ValueSource.MODELLED
    assert mean_utilization((conv, pool))["tensor_core"].value == pytest.approx(30.0)
    (without,) = operator_rows(table, samples[:1], peaks(), {}, "ncu was not found")
    assert without.tensor_core.reason == "ncu was not found"


def test_the_size_of_the_input_counts(session):
    opened = session()
    opened.set_input("image", np.zeros((1, 3, 48, 64), np.float32), is_image=True)
    run = profiled(opened, 1).runs[0]
    assert run.inputs == {"image": "1 x 3 x 48 x 64"}
    assert run.size == "64x48"
    assert run.flops == 4 * (2 * 24 * 32 * 8 * 27 + 2 * 12 * 16 * 8 * 72 + 2 * 24 * 32 * 3 * 400)
    assert not any("noise" in note for note in run.notes)


def test_every_combination_of_batch_and_size_is_one_run(session):
    profile = profiled(session(), 1, Grid(batches=(1, 3), sizes=(Size2D(32, 24), Size2D(64, 48))))
    assert [(run.batch, run.size) for run in profile.runs] == [(1, "32x24"), (3, "32x24"), (1, "64x48"), (3, "64x48")]
    first = profile.runs[0].flops
    assert [run.flops for run in profile.runs] == [first, 3 * first, 4 * first, 12 * first]
    assert profile.runs[1].operators[0].outputs == ("N x 8 x 24 x 32",)


def test_a_batch_that_the_network_fixes_counts(session, small_graph):
    graph = small_graph.copy()
    graph.apply(set_params(graph, {"image": {"batch": "3"}}))
    first, other = (profiled(session(graph=one), 1).runs[0] for one in (small_graph, graph))
    assert (other.batch, other.flops, other.inputs) == (3, 3 * first.flops, {"image": "3 x 3 x 24 x 32"})
    found = predicted_run(graph, session().registry, RunOptions("torch"), machine="T4")
    assert (found.batch, found.flops) == (3, other.flops)


def test_only_the_inputs_that_the_network_reads_set_the_batch(session, small_graph):
    """The first input has data of three samples, but no output needs it."""
    spare = Layer("spare", "tensor_input", params={"shape": "4"})
    graph = Graph([spare, *small_graph, Layer("unread", "identity", inputs=(Source("spare"),))], name="spare")
    made = session(graph=graph)
    made.set_input("spare", np.zeros((3, 4), np.float32), is_image=False)
    (run,) = profiled(made, 1).runs
    assert (run.batch, run.inputs) == (1, {"image": "1 x 3 x 24 x 32"})


def test_only_the_inputs_that_the_network_reads_count_as_memory(session, small_graph):
    unread = Layer("unread", "input", params={"dims": "4x4x3"})
    found = configurations(session(graph=Graph([*small_graph, unread])), 1, Grid())
    more = [replace(each, feeds={**each.feeds, "unread": np.zeros((64, 3, 4, 4), np.float32)}) for each in found]
    assert [measuring._memory(each) for each in more] == [measuring._memory(each) for each in found]


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_inputs_of_integers_without_data_are_indices(profiling_registry, engine):
    graph = Graph(
        [
            Layer("words", "tensor_input", params={"shape": "6", "dtype": "int64"}),
            Layer("vectors", "embedding", inputs=(Source("words"),), params={"vocabulary": "2", "features": "4"}),
            Layer("result", "output", inputs=(Source("vectors"),)),
        ]
    )
    weights = fill_missing(Weights(), required_weights(Inference(graph, profiling_registry)), 0)
    made = Session(graph, profiling_registry, weights, RunOptions(engine, threads=1))
    run = profiled(made, 1, Grid(batches=(2,))).runs[0]
    assert (run.batch, run.inputs) == (2, {"words": "2 x 6"})
    assert "vectors" in {name for row in run.operators for name in row.layers}
    timer = step_timer(Inference(graph, profiling_registry), made.options, 2)
    assert timer is not None
    assert timer.whole(1, 0, lambda: None)


def test_analysis_layers_are_left_out_and_named(session, small_graph):
    noisy = Layer("noise_0", "noise", inputs=(Source("image"),))
    layers = [layer.with_input(0, Source("noise_0")) if layer.name == "conv a" else layer for layer in small_graph]
    run = profiled(session(graph=Graph([*layers, noisy], name="noisy"))).runs[0]
    assert any("noise_0" in note for note in run.notes)
    assert {name for r in run.operators for name in r.layers} == LAYERS


def test_progress_counts_to_the_end(session):
    seen = []
    profiled(session("onnxruntime"), 6, Grid(batches=(1, 2)), progress=lambda *step: seen.append(step[:2]))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_what_was_measured_so_far_is_handed_over_and_marked_partial(session):
    seen = []
    whole = profiled(session("onnxruntime"), 8, Grid(batches=(1, 2)), on_profile=seen.append)
    assert [len(profile.runs) for profile in seen] == [2, 2, 2]
    first = seen[0].runs[0]
    assert first.partial == "ended after 2 of 8 iterations"
    assert first.time_ms > 0
    assert {name for r in first.operators for name in r.layers} == LAYERS
    assert not any(run.partial for run in whole.runs)


def test_many_iterations_are_handed_over_in_small_blocks(session):
    seen = []
    profiled(session(), 110, on_profile=lambda profile: seen.append(profile.runs[0].iterations))
    assert seen[:4] == [22, 44, 66, 88]


def test_memory_over_time_and_what_exists_at_the_peak(session):
    run = profiled(session()).runs[0]
    image, wide, pooled = 4 * 3 * 24 * 32, 4 * 8 * 24 * 32, 4 * 8 * 12 * 16
    weights = 4 * (8 * 28 + 8 * 73 + 3 * 400)
    held = {r.name: r.memory_bytes for r in run.operators}
    assert held["conv a"] == weights + image + wide
    assert held["pool"] == weights + image + wide + pooled
    assert held["cat"] == weights + image + wide + wide + 2 * wide
    assert run.peak_memory.bytes == held["cat"]
    assert run.operators[run.peak_memory.operator].name == "cat"
    assert next(iter(run.peak_memory.tensors)) == "cat"


def test_precisions_and_layouts_are_measured_in_turns_with_those_of_the_session(session):
    grid = Grid(precisions=("bf16", "fp32"), layouts=("nhwc",))
    options = [(found.precision, found.layout) for found in grid.options(session().options)]
    assert options == [("fp32", "nchw"), ("fp32", "nhwc"), ("bf16", "nchw"), ("bf16", "nhwc")]
    runs = profiled(session(), 4, Grid(layouts=("nhwc",))).runs
    assert [run.layout for run in runs] == ["nchw", "nhwc"]
    assert runs[0].turns == runs[1].turns != ""
    with pytest.raises(DiagnosticError, match="precision-unavailable"):
        profiled(session(), 4, Grid(precisions=("bf16",)))


def test_configurations_that_do_not_fit_in_memory_together_are_measured_one_after_the_other(session):
    found = configurations(session(), 1, Grid(batches=(1, 2, 4, 64)))
    groups = in_turns(found, limit=10**6)
    assert [[each.batch for each in group] for group in groups] == [[1, 2, 4], [64]]
    assert all("2 groups" in each.notes[-1] for group in groups for each in group)
    weights, at_the_peak = 4 * (8 * 28 + 8 * 73 + 3 * 400), 4 * 24 * 32 * (3 + 4 * 8)
    total = sum(2 * weights + batch * at_the_peak for batch in (1, 2, 4, 64))
    assert f"need {binary(total)} together" in groups[0][0].notes[-1]
    first, *_, last = measure([[replace(each, peaks=PEAKS) for each in group] for group in groups]).runs
    assert first.turns
    assert not last.turns
    before, after = (replace(run, load=measured(0.0)) for run in (first, last))
    assert "not measured in turns" in difference(before, after).doubt
    assert in_turns(found, limit=10**9) == [found]


def test_other_engines_are_measured_in_turns(session):
    seen, steps = [], []
    profile = profiled(
        session(),
        8,
        Grid(engines=("onnxruntime",), batches=(1, 2)),
        on_profile=seen.append,
        progress=lambda *s: steps.append(s),
    )
    runs = [("torch", 1), ("onnxruntime", 1), ("torch", 2), ("onnxruntime", 2)]
    assert [(run.engine, run.batch) for run in profile.runs] == runs
    assert {run.iterations for run in profile.runs} == {8}
    first = seen[0].runs
    assert [(run.engine, run.iterations, bool(run.partial)) for run in first] == [
        ("torch", 2, True),
        ("onnxruntime", 2, True),
    ] * 2
    assert len({run.turns for run in profile.runs}) == 1
    assert profile.runs[0].turns
    assert [done for done, _, _ in steps] == sorted(done for done, _, _ in steps)
    assert steps[-1][0] == steps[-1][1]
    compared = configuration_differences(profile)
    quiet = [replace(run, load=measured(0.0)) for run in profile.runs]
    assert difference(quiet[0], quiet[1]).doubt == ""
    assert [(found.before.engine, found.after.engine, found.after.batch) for found in compared] == [
        ("torch", "onnxruntime", 1),
        ("torch", "onnxruntime", 2),
    ]


def saves(name, saving_ms, time_ms=20.0):
    return replace(row(time_ms, saving_ms=saving_ms), layers=(name,), type=name)


def test_neighbors_within_the_tie_keep_their_running_order():
    rows = [saves("a", 9.6), saves("b", 3.0), saves("c", 10.0), saves("d", 9.2), saves("e", 8.9), saves("f", 0.0, 5.0)]
    rows += [saves("g", 0.0, 5.2), saves("h", 0.0, 9.0), saves("i", None, 1.0)]
    assert "".join(r.name for r in ranked(rows)) == "acdebhfgi"
    chain = [saves(str(number), 10 * 0.96**number) for number in reversed(range(9))]
    names = [int(r.name) for r in ranked(chain)]
    assert names == [2, 1, 0, 5, 4, 3, 8, 7, 6]  # a rank spans at most 10 %


def test_equal_work_within_its_spread_ranks_by_its_median():
    def norm(name, saving_ms, spread_ms):
        return replace(saves(name, saving_ms, 10 + saving_ms), type="normalization", spread_ms=spread_ms)

    noisy = [norm("a", 7.0, 1.0), saves("b", 7.8), norm("c", 9.5, 1.0), norm("d", 8.8, 1.0)]
    assert "".join(r.name for r in ranked(noisy)) == "acdb"
    quiet = [replace(row, spread_ms=0.1) for row in noisy]
    assert "".join(r.name for r in ranked(quiet)) == "cdba"
    far = [
        norm("a", 2.0, 9.0),
        saves("b", 5.0),
        norm("c", 9.0, 9.0),
    ]  # a quick look: the median would be a number of neither
    assert "".join(r.name for r in ranked(far)) == "cba"


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"summary": "3x3"},
        {"inputs": ("N x 3",)},
        {"outputs": ("N x 3",)},
        {"flops": 9},
        {"bytes": 9},
        {"type": "other"},
    ],
)
def test_only_equal_work_counts_alike(other):
    rows = [
        replace(saves(name, saving, 10 + saving), type="normalization", spread_ms=1.0)
        for name, saving in zip("acd", (7.0, 9.5, 8.8), strict=True)
    ]
    rows = [replace(rows[0], **other), saves("b", 7.8), *rows[1:]]
    assert "".join(r.name for r in ranked(rows)) == ("cdba" if other else "acdb")


@pytest.mark.parametrize(("spread", "order"), [(0.24, "cba"), (0.26, "abc"), (9.0, "abc")])
def test_a_time_further_from_the_median_than_two_spreads_is_its_own(spread, order):
    """The times are 10.0, 10.5 and 11.0 ms, all within a tenth of the median."""
    rows = [
        replace(saves(n, s, t), type="norm", spread_ms=spread)
        for n, s, t in zip("abc", (4.0, 5.0, 6.0), (10.0, 10.5, 11.0), strict=True)
    ]
    assert "".join(r.name for r in ranked(rows)) == order


def test_a_time_further_from_the_median_than_a_tenth_is_its_own():
    rows = [
        replace(saves(n, s, t), type="norm", spread_ms=9.0)
        for n, s, t in zip("abc", (4.0, 5.0, 6.0), (9.0, 10.0, 11.1), strict=True)
    ]
    assert "".join(r.name for r in ranked(rows)) == "cab"  # a and b have the median


class Clock:
    """A timer whose operators take the times in `orders`, one dictionary for each run, over and over."""

    def __init__(self, names, orders):
        self.names, self.orders, self.blocks = names, itertools.cycle(orders), []

    def whole(self, runs, warmup, tick):
        self.blocks.append(runs)
        return [0.1] * runs

    def layers(self, runs, warmup, tick):
        times = [next(self.orders) for _ in range(runs)]
        return [Sample((name,), [run[name] for run in times]) for name in self.names]


@pytest.mark.parametrize(
    ("iterations", "differ", "load", "extra"),
    [(12, False, 0.0, 0), (12, True, 0.0, 2), (12, True, 40.0, 0), (10, True, 0.0, 2), (9, True, 0.0, 0)],
)
def test_runs_are_added_until_the_first_operators_keep_their_order(
    session, monkeypatch, iterations, differ, load, extra
):
    """The order of two operators is another one in every second run, until the clock of the test ends the additional blocks."""
    names = sorted(LAYERS)
    times = dict.fromkeys(names, 0.001) | {names[0]: 0.02, names[1]: 0.01}
    swapped = times | {names[0]: 0.01, names[1]: 0.02}
    clock = Clock(names, [times, swapped if differ else times])
    monkeypatch.setattr(type(default_engines()), "step_timer", lambda *_: clock)
    moments = itertools.count(0.0, 1.0)
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(moments))
    monkeypatch.setattr(measuring, "EXTRA_SECONDS", 2.5)
    monkeypatch.setattr(measuring, "foreign_load", lambda before: measured(load))
    run = profiled(session(), iterations).runs[0]
    assert sum(clock.blocks[4:]) == run.iterations - iterations == extra * 3
    assert any("did not settle" in note for note in run.notes) is bool(extra)


def peaks(flops=1e9, memory=1e9, cache=10e9, cache_bytes=1000, launch_ms=0.01):
    return RunPeaks(measured(flops), measured(memory), measured(cache), cache_bytes, measured(launch_ms))


@pytest.mark.parametrize(
    ("flops", "moved", "bound", "roof_ms"),
    [
        (10**9, 100, "compute", 1000.0),
        (0, 10**6, "memory", 1.0),
        (0, 500, "launch", 0.01),
        (0, 500_000, "cache", 0.05),
    ],
)
def test_what_bounds_a_step(flops, moved, bound, roof_ms):
    cache_bytes = 2_000_000 if bound == "cache" else 1000
    placed = place(2 * roof_ms, flops, moved, peaks(cache_bytes=cache_bytes))
    assert placed.bound == bound
    assert placed.roof_ms == pytest.approx(roof_ms)
    assert placed.saving_ms == pytest.approx(roof_ms)


@pytest.mark.parametrize("time_ms", [1000.0, 1020.0, 400.0])
def test_a_saving_is_never_negative(time_ms):
    assert place(time_ms, 10**9, 0, peaks()).saving_ms == 0.0


def test_peaks_that_a_run_exceeds_are_measured_again(session, monkeypatch, tmp_path):
    low = replace(PEAKS, compute=figure(1e3), memory=figure(1.0))
    monkeypatch.setattr(
        measuring, "measure_peaks", lambda options: calls.append(options) or (low, PEAKS)[len(calls) - 1]
    )
    calls = []
    run = profiled(session(), peaks=None, store=tmp_path / "peaks.json").runs[0]
    assert len(calls) == 2
    assert run.peaks.flops_per_s.value == 100e9
    assert not any(note.startswith("above the roof") for note in run.notes)


def test_operators_that_stay_above_the_roof_are_named(session):
    slow = replace(PEAKS, compute=figure(1e3), memory=figure(1.0), cache_bytes=0)
    (note,) = [note for note in profiled(session(), peaks=slow).runs[0].notes if note.startswith("above the roof")]
    assert set(note.rpartition(": ")[2].split(", ")) == LAYERS


def test_no_iterations_are_an_error(session):
    with pytest.raises(DiagnosticError, match="bad-iterations"):
        profiled(session(), 0)


def test_a_network_without_work_is_an_error(session):
    graph = Graph([Layer("a", "input", params={"dims": "8x8x3"}), Layer("b", "output", inputs=(Source("a"),))])
    with pytest.raises(DiagnosticError, match="nothing-to-profile"):
        profiled(session(graph=graph))
