"""Rates, loads and blocks of runs computed from given clocks and files, and what is kept of them."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from profiling_networks import layer_

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Size2D
from designer.profiling import calibration, gpu, launch, measure, peaks
from designer.profiling import operator_times as times_module
from designer.profiling.calibration import CHANNELS, KERNELS, calibrate
from designer.profiling.counters import (
    DRAM,
    DURATION,
    TENSOR,
    WARPS,
    KernelCounters,
    kernels_of_table,
    layer_utilization,
)
from designer.profiling.layer_work import LayerWork
from designer.profiling.measure import NO_PEAKS, Ticks, Timing, remeasured, run_peaks, sized
from designer.profiling.operator_times import operator_times
from designer.profiling.peaks import Peaks, best_rate, foreign_load, last_level_cache
from designer.profiling.quantities import Quantity, measured, modelled, unavailable
from designer.profiling.schema import OperatorProfile
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import PreparedStep, Sample, SingleStep


def made_peaks(compute=1.0, cache=2.0, memory=3.0, foreign=0.0) -> Peaks:
    return Peaks(
        measured(compute), measured(cache), measured(memory), 7, measured(foreign), "a day", "torch", "fp32", 2,
        {"tf32": measured(5.0)}, measured(0.25),
    )  # fmt: skip


# --- blocks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iterations", "blocks"),
    [
        (1, [1]),
        (3, [1, 1, 1]),
        (4, [1, 1, 1, 1]),
        (10, [3, 3, 2, 2]),
        (100, [25] * 4),
        (101, [21, 20, 20, 20, 20]),
        (126, [21] * 6),
    ],
)
def test_iterations_in_blocks_of_equal_length(iterations, blocks):
    assert measure._blocks(iterations) == blocks


class Fixed:
    """A timer with the numbers of runs and of warm-up runs that it was asked for."""

    def __init__(self):
        self.calls = []

    def whole(self, runs, warmup, tick):
        self.calls.append(("whole", runs, warmup))
        return [0.5] * runs

    def layers(self, runs, warmup, tick):
        self.calls.append(("layers", runs, warmup))
        return [Sample(("a",), [0.25] * runs, "kernel"), Sample(("a",), [0.125] * runs, "other")]


def test_a_block_is_metered_with_its_warm_up_and_the_largest_load_counts(monkeypatch):
    joules = itertools.count(100.0, 40.0)
    monkeypatch.setattr(measure, "energy_counter", lambda device: lambda: next(joules))
    moments = itertools.count(0.0, 0.5)
    monkeypatch.setattr(measure, "perf_counter", lambda: next(moments))
    loads = iter((measured(7.0), measured(9.0), measured(2.0), unavailable("too short")))
    monkeypatch.setattr(measure, "foreign_load", lambda before: next(loads))
    timer, timing = Fixed(), Timing()
    for _ in range(4):
        measure._time_block(timer, timing, 3, 2, Ticks(99, None), "cpu")
    assert timer.calls == [("whole", 3, 2), ("layers", 3, 2)] * 4
    assert (timing.joules, timing.metered, timing.metered_runs) == (160.0, 2.0, 20)
    assert timing.load == measured(9.0)
    assert timing.whole == [0.5] * 12
    assert {key: sample.seconds for key, sample in timing.samples.items()} == {
        (("a",), "kernel"): [0.25] * 12,
        (("a",), "other"): [0.125] * 12,
    }


def test_progress_ends_at_the_total():
    found = []
    tick = Ticks(3, lambda *each: found.append(each))
    tick.say("preparing")
    with tick.text("runs"):
        for _ in range(5):
            tick()
    assert found == [(0, 3, "preparing"), (1, 3, "runs"), (2, 3, "runs"), *[(3, 3, "runs")] * 3]


def test_rows_that_take_longer_than_the_network_are_scaled_with_the_time_of_no_layer():
    rows = (
        OperatorProfile(("a",), "convolution", 6.0, 0.5, roof_ms=2.0, saving_ms=4.0),
        OperatorProfile(("b",), "pooling", 2.0, roof_ms=None, saving_ms=None),
    )
    fitted = measure.fit_rows(rows, [Sample((), [0.001, 0.002, 0.009], "copy"), Sample((), [0.0], "")], 5.0, 0.25)
    assert [row.time_ms for row in fitted] == pytest.approx([3.0, 1.0, 1.0])
    assert (fitted[0].spread_ms, fitted[0].saving_ms) == pytest.approx((0.25, 1.0))
    assert (fitted[1].spread_ms, fitted[1].saving_ms) == (None, None)
    assert (fitted[2].layers, fitted[2].spread_ms, fitted[2].kernels) == ((), 0.25, "copy")


def test_throughputs_of_scaled_rows_are_those_of_the_scaled_time():
    row = OperatorProfile(
        ("a",), "convolution", 8.0, roof_ms=3.95, saving_ms=4.05,
        memory_throughput=measured(30.0), compute_throughput=modelled(40.0, "rate"),
    )  # fmt: skip
    (fitted,) = measure.fit_rows((row,), [], 4.0, None)
    assert (fitted.compute_throughput, fitted.memory_throughput) == (modelled(80.0, "rate"), measured(30.0))
    assert fitted.at_roof  # 1.3 % from it


@pytest.mark.parametrize(("whole_ms", "count"), [(10.0, 1), (10.02, 1), (10.03, 2)])
def test_time_outside_of_operators_has_a_row_from_two_thousandths(whole_ms, count):
    assert len(measure.fit_rows((OperatorProfile(("a",), "", 10.0),), [], whole_ms, None)) == count


def test_the_overhead_is_in_percent_and_never_negative():
    timing = Timing(whole=[0.4, 0.2])
    timing.add([Sample(("a",), [0.3, 0.1]), Sample(("b",), [0.2, 0.15]), Sample(("c",), [])])
    assert measure.profiling_overhead(timing).value == pytest.approx(25.0)
    timing.whole = [0.5]
    assert measure.profiling_overhead(timing).value == 0.0


# --- inputs ------------------------------------------------------------------------------------------------------


def test_other_inputs_are_scaled_by_the_factors_of_the_first(profiling_registry):
    graph = Graph(
        [
            layer_("a_image", "input", dims="32x24x3"),
            layer_("half", "input", dims="16x12x5"),
            layer_("tiny", "input", dims="1x1x2"),
            layer_("a", "convolution", "a_image", features=2, kernel="1x1"),
            layer_("b", "convolution", "half", features=2, kernel="1x1"),
            layer_("c", "convolution", "tiny", features=2, kernel="1x1"),
            layer_("ra", "output", "a"),
            layer_("rb", "output", "b"),
            layer_("rc", "output", "c"),
        ]
    )
    found = sized(graph, profiling_registry, Size2D(64, 6)).graph
    assert [found[name].params["dims"] for name in ("a_image", "half", "tiny")] == ["64x6x3", "32x3x5", "2x1x2"]
    assert sized(graph, profiling_registry, None).graph["a_image"].params["dims"] == "32x24x3"
    assert graph["a_image"].params["dims"] == "32x24x3"


def test_inputs_that_are_not_images_have_no_size_and_fix_no_batch(profiling_registry):
    graph = Graph(
        [
            layer_("table", "tensor_input", shape="7,5", batch="false"),
            layer_("numbers", "tensor_input", shape="5"),
            layer_("image", "input", dims="32x24x3"),
            layer_("a", "fully_connected", "numbers", features=2),
            layer_("b", "fully_connected", "image", features=2),
            layer_("c", "fully_connected", "table", features=2),
            layer_("ra", "output", "a"),
            layer_("rb", "output", "b"),
            layer_("rc", "output", "c"),
        ]
    )
    found = sized(graph, profiling_registry, Size2D(64, 48))
    assert not found.diagnostics()
    assert found.graph["image"].params["dims"] == "64x48x3"
    assert measure.fixed_batch(found) == 0
    names = ("table", "numbers", "image")
    values, batch, _ = measure._feeds(found, names, {}, 16)
    assert (batch, [values[Source(name)].shape[0] for name in names]) == (16, [7, 16, 16])
    given = {"table": np.ones((7, 5), np.float32), "numbers": np.ones((2, 5), np.float32)}
    values, batch, noise = measure._feeds(found, names, given, 16)
    assert (batch, noise, values[Source("image")].shape) == (2, ["image"], (2, 3, 48, 64))


def test_inputs_without_data_are_noise_of_the_batch_of_the_others(profiling_registry):
    graph = Graph(
        [
            layer_("image", "input", dims="8x4x3"),
            layer_("mask", "input", dims="8x4x1"),
            layer_("both", "concatenation", "image,mask"),
            layer_("result", "output", "both"),
        ]
    )
    inference = sized(graph, profiling_registry, None)
    given = np.ones((5, 1, 4, 8), np.float32)
    values, batch, noise = measure._feeds(inference, ("image", "mask"), {"mask": given}, 2)
    assert (batch, noise, list(values)) == (5, ["image"], [Source("image"), Source("mask")])
    assert values[Source("mask")] is given
    assert values[Source("image")].shape == (5, 3, 4, 8)
    assert 0 <= values[Source("image")].min() < values[Source("image")].max() < 1
    values, batch, noise = measure._feeds(inference, ("image", "mask"), {}, 2)
    assert (batch, noise, values[Source("mask")].shape) == (2, ["image", "mask"], (2, 1, 4, 8))
    assert measure._size({Source("v"): np.ones((2, 3)), **values}) == "8x4"
    assert measure._size({}) == ""


# --- peaks -------------------------------------------------------------------------------------------------------


def test_the_peaks_of_a_run_are_those_of_the_machine():
    found = run_peaks(made_peaks(foreign=20.0))
    assert (found.flops_per_s, found.cache_bytes_per_s, found.memory_bytes_per_s) == tuple(map(measured, (1, 2, 3)))
    assert (found.cache_bytes, found.launch_ms, found.others) == (7, measured(0.25), {"tf32": measured(5.0)})
    assert found.date == "a day"
    assert "20 % of the cores" in found.note
    assert run_peaks(made_peaks(foreign=5.0)).note == ""
    unknown = replace(made_peaks(), foreign=unavailable("no /proc"))
    assert run_peaks(unknown).note == "load of other programs unknown: no /proc"
    assert not unknown.busy


def test_the_larger_of_two_measurements_of_each_peak_counts(monkeypatch, tmp_path):
    fresh = replace(made_peaks(2.0, 1.0, 9.0), memory=unavailable("failed"))
    monkeypatch.setattr(measure, "measure_peaks", lambda options: fresh)
    store = tmp_path / "peaks.json"
    options = RunOptions("torch", threads=1)
    found = remeasured(options, made_peaks(1.0, 2.0, 3.0), store)
    assert [each.value for each in (found.compute, found.cache, found.memory)] == [2.0, 2.0, 3.0]
    assert peaks.kept(measure.peaks_key(options), store) == found


@pytest.mark.parametrize(
    ("known", "fresh", "kept"),
    [(0.25, 0.75, 0.25), (0.75, 0.25, 0.25), (None, 0.5, 0.5), (0.5, None, 0.5), (None, None, None)],
)
def test_the_smaller_of_two_overheads_of_a_launch_counts(monkeypatch, tmp_path, known, fresh, kept):
    before, after = (
        replace(made_peaks(), launch=unavailable("none") if value is None else measured(value))
        for value in (known, fresh)
    )
    monkeypatch.setattr(measure, "measure_peaks", lambda options: after)
    assert remeasured(RunOptions(), before, tmp_path / "peaks.json").launch.value == kept


def test_the_rate_is_that_of_the_fastest_call_after_a_first(monkeypatch):
    moments = iter([0.0, 0.0, 5.0, 5.0, 6.0, 6.0, 8.0, 8.0, 8.0, 8.5, 9.0])
    monkeypatch.setattr(peaks.time, "perf_counter", lambda: next(moments))
    calls = []
    # end at 1.0; three calls of 5, 1 and 2 s, then the time is over
    assert best_rate(lambda: calls.append(1), 12.0, seconds=1.0) == 12.0
    assert len(calls) == 4


def test_calls_go_on_until_the_time_is_over(monkeypatch):
    clock = itertools.count(0.0, 0.25)
    monkeypatch.setattr(peaks.time, "perf_counter", lambda: next(clock))
    calls = []
    assert best_rate(lambda: calls.append(1), 1.0, seconds=4.0, least=1) == 4.0
    assert len(calls) > 4


def test_the_load_of_other_programs_is_a_share_of_all_cores(monkeypatch):
    monkeypatch.setattr(peaks.os, "cpu_count", lambda: 4)
    after = (30.0, 12.0, 105.0)  # 20 core-seconds, 4 of them ours, in 5 s on 4 cores
    monkeypatch.setattr(peaks, "busy_times", lambda: after)
    assert foreign_load((10.0, 8.0, 100.0)).value == 80.0
    assert foreign_load((29.0, 8.0, 100.0)).value == 0.0
    assert "too short" in foreign_load((10.0, 8.0, 104.96)).reason
    assert foreign_load((10.0, 8.0, 104.9)).value > 0
    assert "does not report" in foreign_load(None).reason


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        (["48K", "1280K", "30M"], 30 * 2**20),
        (["1G", "512K"], 2**30),
        (["4096"], 4096),
        (["odd", "32K\n"], 32 * 2**10),
        ([], 0),
    ],
)
def test_the_largest_cache(monkeypatch, tmp_path, sizes, found):
    for number, text in enumerate(sizes):
        (tmp_path / f"index{number}").mkdir()
        (tmp_path / f"index{number}" / "size").write_text(text)
    monkeypatch.setattr(peaks, "Path", lambda _: tmp_path)
    assert last_level_cache() == found


@pytest.mark.parametrize(
    ("cache_bytes", "copied", "reason"),
    [
        (128 << 20, [32 << 20, 512 << 20], "copy of 32 MiB"),
        (2 << 20, [1 << 20, 64 << 20], "copy of 1 MiB"),
        (480 << 20, [120 << 20, 960 << 20], "copy of 120 MiB"),
        (200 << 20, [50 << 20, 512 << 20], "copy of 50 MiB"),
        (0, [4 << 20, 64 << 20], "16 MiB assumed"),
    ],
)
def test_the_best_of_several_measurements_on_a_busy_machine(monkeypatch, cache_bytes, copied, reason):
    rates = iter([(5.0, "one"), (9.0, "two"), (7.0, "three")])
    monkeypatch.setattr(peaks, "last_level_cache", lambda: cache_bytes)
    monkeypatch.setattr(peaks, "_compute_peak", lambda *_: next(rates))
    sizes = []
    copies = iter([1.0, 20.0, 3.0, 10.0, 2.0, 30.0])
    monkeypatch.setattr(peaks, "copy_rate", lambda total, *_: sizes.append(total) or next(copies))
    loads = itertools.chain([50.0, 50.0, 50.0], itertools.repeat(11.0))
    monkeypatch.setattr(peaks, "foreign_load", lambda before: measured(next(loads)))
    found = peaks.measure_cpu("torch", 3)
    assert (found.compute, found.cache.value, found.memory.value) == (measured(9.0, "two"), 3.0, 30.0)
    assert sizes == copied * 3
    assert reason in found.cache.reason
    assert (found.cache_bytes, found.threads, found.foreign.value) == (cache_bytes or 16 << 20, 3, 11.0)


@pytest.mark.parametrize(("seconds", "count"), [(0.5, 3), (2.0, 2), (4.0, 1)])
def test_a_busy_machine_is_not_measured_again_after_some_seconds(monkeypatch, seconds, count):
    clock = itertools.count(0, seconds)
    monkeypatch.setattr(peaks, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    tries = []
    monkeypatch.setattr(peaks, "_compute_peak", lambda *_: tries.append(1) or (5.0, "one"))
    monkeypatch.setattr(peaks, "copy_rate", lambda *_: 1.0)
    monkeypatch.setattr(peaks, "busy_times", lambda: None)
    monkeypatch.setattr(peaks, "foreign_load", lambda before: measured(50.0))
    peaks.measure_cpu("torch", 1)
    assert len(tries) == count


def test_a_quiet_machine_is_measured_once(monkeypatch):
    monkeypatch.setattr(peaks, "_compute_peak", lambda *_: (5.0, "one"))
    monkeypatch.setattr(peaks, "copy_rate", lambda *_: 1.0)
    monkeypatch.setattr(peaks, "foreign_load", lambda before: calls.append(1) or measured(5.0))
    calls = []
    peaks.measure_cpu("torch", 1)
    assert len(calls) == 2  # after the first try, and of the whole


def test_the_load_of_a_measurement_is_that_from_its_begin_on(monkeypatch):
    """That of each try decides about another one."""
    clock = itertools.count(1)
    asked = []
    monkeypatch.setattr(peaks, "busy_times", lambda: next(clock))
    monkeypatch.setattr(peaks, "_compute_peak", lambda *_: (5.0, "one"))
    monkeypatch.setattr(peaks, "copy_rate", lambda *_: 1.0)
    monkeypatch.setattr(peaks, "foreign_load", lambda before: asked.append(before) or measured(50.0 + before))
    found = peaks.measure_cpu("torch", 2, tries=3)
    assert asked == [2, 3, 4, 1]
    assert found.foreign.value == 51.0


# --- operators one by one ----------------------------------------------------------------------------------------


def step(layers, what, key, seconds, size=8) -> SingleStep:
    return SingleStep(tuple(layers.split()), what, key, size, lambda: PreparedStep(lambda: next(seconds), lambda: None))


class Steps:
    def __init__(self, *steps):
        self.single_steps = lambda: list(steps)


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(times_module, "foreign_load", lambda _: measured(0.0))


@pytest.mark.usefixtures("quiet")
def test_steps_of_the_same_layers_are_one_sample(tmp_path):
    once = itertools.repeat(0.5)
    found = operator_times(
        Steps(
            step("a b", "gemm", "1", once),
            step("c", "", "2", itertools.repeat(0.125)),
            step("a b", "bias", "3", itertools.repeat(0.25)),
            step("a b", "gemm", "1", once),
        ),
        "here",
        tmp_path / "peaks.json",
    )
    assert [(each.layers, each.seconds, each.what) for each in found.samples] == [
        (("a", "b"), [1.25], "gemm, bias"),
        (("c",), [0.125], ""),
    ]


@pytest.mark.usefixtures("quiet")
def test_the_time_of_a_step_is_the_median_after_a_first_run(tmp_path, monkeypatch):
    monkeypatch.setattr(times_module, "SECONDS", 0.0)
    seconds = iter([9.0, 3.0, 1.0, 2.0])  # the first run is not counted; three are the least
    (sample,) = operator_times(Steps(step("a", "", "1", seconds)), "here", tmp_path / "peaks.json").samples
    assert sample.seconds == [2.0]
    monkeypatch.setattr(times_module, "SECONDS", 1e9)
    runs = []
    counted = (runs.append(1) or 0.5 for _ in itertools.count())
    operator_times(Steps(step("a", "", "2", counted)), "here", tmp_path / "peaks.json")
    assert len(runs) == 16


@pytest.mark.usefixtures("quiet")
def test_a_layer_of_which_one_step_is_missing_has_no_sample(tmp_path):
    once = itertools.repeat(0.5)
    steps = Steps(
        step("a", "", "1", once), step("a", "", "2", once, times_module.LARGEST + 1), step("b", "", "1", once)
    )
    found = operator_times(steps, "here", tmp_path / "peaks.json")
    assert ([each.layers for each in found.samples], found.missing) == ([("b",)], {"a"})
    limit = Steps(step("a", "", "2", once, times_module.LARGEST))
    assert not operator_times(limit, "here", tmp_path / "peaks.json").missing


@pytest.mark.usefixtures("quiet")
def test_the_oldest_times_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(times_module, "MOST_KEPT", 2)
    store = tmp_path / "peaks.json"
    for key in "123":
        operator_times(Steps(step("a", "", key, itertools.repeat(0.5))), "here", store)
    reports = []
    steps = [step("a", "", key, itertools.repeat(0.25)) for key in "1234"]
    found = operator_times(Steps(*steps), "here", store, lambda *each: reports.append(each[:2]))
    assert (found.different, found.fresh) == (4, 2)
    assert reports == [(0, 2), (1, 2)]


# --- counters, calibration, the GPU ------------------------------------------------------------------------------


def test_kernels_count_by_their_duration_and_missing_metrics_are_named():
    names = {"tensor_core": TENSOR, "occupancy": WARPS}
    kernels = [
        KernelCounters("lw1", {DURATION: 3.0, TENSOR: 10.0, WARPS: 40.0, DRAM: 1.0}),
        KernelCounters("lw0", {TENSOR: 70.0}),
        KernelCounters("lw1", {DURATION: 1.0, TENSOR: 50.0}),
        KernelCounters("lw2", {TENSOR: 50.0}),
        KernelCounters("lw2", {TENSOR: 60.0}),
    ]
    found = layer_utilization(kernels, ["first", "second"], names).layers
    assert set(found) == {"first", "second"}
    assert found["second"]["tensor_core"] == measured(20.0, f"{TENSOR} (ncu, kernel replay, mean by duration)")
    assert found["second"]["occupancy"].value == 40.0
    assert found["second"]["memory_throughput"] == unavailable("this chip has no such counter")
    assert found["first"]["tensor_core"] == measured(70.0, f"{TENSOR} (ncu, kernel replay)")
    assert found["first"]["occupancy"] == unavailable(f"ncu has no value of {WARPS} here")
    third = layer_utilization(kernels, ["first", "second", "third"], names).layers["third"]
    assert third["tensor_core"] == unavailable(f"ncu has no value of {TENSOR} here")  # without durations


@pytest.mark.parametrize("text", ["nan", "n/a", "", "inf"])
def test_a_counter_without_a_number_is_unavailable(text):
    page = f'==PROF== done\n"ID","Kernel Name","{TENSOR}","{DURATION}"\n"","","%","ns"\n"0","lw0","{text}","1,024"\n"1","gemm","5","1"\n'
    found = kernels_of_table(page, [TENSOR, DURATION])
    assert found == [KernelCounters("lw0", {DURATION: 1024.0})]
    used = layer_utilization(found, ["first"], {"tensor_core": TENSOR}).layers["first"]
    assert used["tensor_core"] == unavailable(f"ncu has no value of {TENSOR} here")


def test_calibration_divides_the_time_of_a_layer_by_its_work(profiling_registry, monkeypatch):
    monkeypatch.setattr(calibration, "CHANNELS", ((3, 16), (64, 3)))
    asked = []

    def times(inference, options):
        smallest = inference.graph["in"].params["dims"] == "1x1x1"
        if not smallest:
            asked.append(inference.graph)
        return dict.fromkeys(inference.graph.layers, 0.5 if smallest else 2.5)

    monkeypatch.setattr(calibration, "_times", times)
    options = RunOptions(engine="onnxruntime", threads=1)
    found = calibrate(options, profiling_registry, NO_PEAKS, sides=(8,))
    convolutions = found.kinds["convolution"]
    assert len(convolutions) == 2 * len(KERNELS) * 2  # two counted layers each
    # 16 to 3 channels, and 3 to 16, at 1x1: 2 x 64 x 3 x 16 operations
    assert [point.ms_per_unit for point in convolutions[:2]] == pytest.approx([2.0 / (2 * 64 * 48 * 1e-9)] * 2)
    assert (convolutions[0].sizes[0], convolutions[1].sizes[1]) == (4.0, 4.0)
    (addition,) = found.kinds["element_wise"]
    assert addition.ms_per_unit == pytest.approx(2.0 / (3 * 4 * 32 * 64 * 1e-6))
    assert (found.launch_ms, found.measured_peaks) == (0.5, NO_PEAKS)
    same = LayerWork("layer", "element_wise", 0, 3 * 4 * 32 * 64, addition.sizes)
    assert found.work_ms(same) == pytest.approx(2.5)  # as measured: the launch counts once
    assert found.fused == ("activation", "relu", "batch_normalization")
    assert calibrate(replace(options, engine="torch"), profiling_registry, NO_PEAKS, sides=(8,)).fused == ()
    first = asked[0]
    assert [first[name].params["features"] for name in ("c0", "c1", "c2", "c3")] == ["16", "3", "16", "3"]
    assert first["in"].params["dims"] == "8x8x3"


def test_the_time_of_a_layer_is_that_of_all_its_steps_but_not_of_fused_ones(profiling_registry, monkeypatch):
    asked = []

    class Timer:
        def layers(self, *arguments):
            return [
                Sample(("c0",), [0.004, 0.001, 0.002], "Conv"),
                Sample(("c0",), [0.0005, 0.0005, 9.0], "Relu"),
                Sample(("c1", "c2"), [0.5] * 3, "Conv"),
                Sample(("c2",), [0.001] * 3, "Conv"),
                Sample(("c3",), [], "Conv"),
                Sample((), [0.7] * 3, "Reorder"),
            ]

    class Engines:
        def step_timer(self, inference, weights, options, part, wanted, feeds):
            asked.append(({str(feed): array.shape for feed, array in feeds.items()}, options, set(part.layers)))
            return Timer()

    monkeypatch.setattr(calibration, "default_engines", Engines)
    options = RunOptions(engine="onnxruntime", threads=1)
    inference = Inference(next(iter(calibration._cases((8,)))).graph, profiling_registry)
    assert calibration._times(inference, options) == pytest.approx({"c0": 2.5, "c2": 1.0})
    ((feeds, used, layers),) = asked
    assert (used, {"c0", "c1", "c2"} <= layers) == (options, True)
    assert [shape[2:] for shape in feeds.values()] == [(8, 8)]


def test_convolutions_of_too_many_operations_are_not_calibrated():
    cases = sum(case.counted == ("c1", "c2") for case in calibration._cases((160,)))
    small = [(a, b, k) for a, b in CHANNELS for k in KERNELS if 2 * 160 * 160 * a * b * k * k <= 0.5e9]
    assert cases == len(small) < len(CHANNELS) * len(KERNELS)


FAKE = """#!/bin/sh
[ "$1" = --query-gpu=utilization.gpu ] && [ "$2" = --format=csv,noheader,nounits ] && [ "$3" = --id=GPU-12ab ] && printf '{output}' || exit 1
"""


@pytest.mark.skipif(os.name != "posix", reason="the tool is a shell script")
@pytest.mark.parametrize(
    ("output", "first", "load"),
    [
        (" 37 \\n 99\\n", "37", measured(37.0)),
        ("", "", None),
        ("[N/A]\\n", "[N/A]", None),
    ],
)
def test_a_gpu_by_nvidia_smi(tmp_path, monkeypatch, output, first, load):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(FAKE.format(output=output))
    tool.chmod(0o755)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: str(tool) if name == "nvidia-smi" else None)
    assert gpu.nvidia_smi("utilization.gpu", "GPU-12ab") == first
    assert gpu.nvidia_smi("unknown", "GPU-12ab") == ""
    found: Quantity = gpu._foreign("GPU-12ab")
    assert found.value == (load.value if load else None)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    assert gpu.nvidia_smi("utilization.gpu") == ""


def test_the_second_gpu_has_its_own_energy_counter(monkeypatch):
    pynvml = pytest.importorskip("pynvml")
    torch = pytest.importorskip("torch")
    from designer.profiling.energy import energy_counter, energy_of

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda number: number)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTotalEnergyConsumption", lambda handle: 1000 * (handle + 5))
    assert [energy_counter(device)() for device in ("cuda", "cuda:0", "cuda:1")] == [5.0, 5.0, 6.0]
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", {"GPU-12ab": 7}.__getitem__)
    properties = SimpleNamespace(uuid="12ab")  # CUDA_VISIBLE_DEVICES chose another GPU as the first one
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert energy_counter("cuda")() == 12.0
    assert energy_of(1.0, 0.2, 4, 100).joules.value == 0.25
    for joules, seconds in ((1.0, 0.19), (0.0, 1.0)):
        assert "too short" in energy_of(joules, seconds, 1, 1).watts.reason


def test_the_processor_is_named_as_the_system_does(monkeypatch, tmp_path):
    from designer.profiling import machine

    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel\t\t: 143\nmodel name\t: Some CPU: 3 GHz \nmodel name\t: another\n")
    monkeypatch.setattr(machine, "Path", lambda _: info)
    assert machine.cpu_name() == "Some CPU: 3 GHz"
    found = machine.this_machine(gpu="a GPU", extra={"driver": "9"})
    assert (found.cpu, found.gpu, found.cores) == ("Some CPU: 3 GHz", "a GPU", os.cpu_count())
    assert found.versions == {**machine.this_machine().versions, "driver": "9"}
    assert {"python", "numpy"} <= found.versions.keys()
    monkeypatch.setattr(machine, "Path", lambda _: Path(tmp_path / "absent"))
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    assert machine.cpu_name() == "x86_64"


@pytest.mark.parametrize(
    ("type_", "reads", "counted"),
    [
        ("element_wise", ["before", "in"], "it"),
        ("concatenation", ["before", "in"], "it"),
        ("pooling", ["before"], "it"),
        ("relu", ["pooled"], "it"),
    ],
)
def test_the_layers_that_calibration_times(profiling_registry, type_, reads, counted):
    case = calibration._chain(type_, dict(calibration.SINGLE).get(type_, {}), 6, 8)
    assert [source.layer for source in case.graph["it"].inputs] == reads
    assert case.counted == (counted,)
    assert case.graph["before"].params["features"] == "6"
    assert case.graph["in"].params["dims"] == "8x8x6"
    assert not Inference(case.graph, profiling_registry).diagnostics()


def test_the_best_of_several_runs_by_the_events_of_the_device(monkeypatch):
    """With a fake clock, as there is no GPU here: the first call warms up, and a run is divided by its calls."""
    clock = 0.0
    calls = iter([500.0, *[9.0] * 4, *[5.0] * 4, *[7.0] * 4])  # milliseconds

    def work():
        nonlocal clock
        clock += next(calls)

    class Event:
        def record(self):
            self.at = clock

        def synchronize(self): ...

        def elapsed_time(self, end):
            return end.at - self.at

    monkeypatch.setattr(gpu, "new_event", Event)
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    assert gpu.best_seconds(work, runs=3, repeat=4) == pytest.approx(0.005)
    assert next(calls, None) is None


@pytest.mark.parametrize(
    ("samples", "ms", "count"),
    [
        ([Sample((f"sum_{n}",), [0.001 * (n + 1), 0.009, 0.0]) for n in range(8)], 4.5, 8),
        ([Sample(tuple(f"sum_{n}" for n in range(8)), [0.016, 0.5, 0.008])], 2.0, 1),  # the engine fused them
        ([Sample(("sum_0",), [0.004]), Sample((), [0.5], "Reorder"), Sample(("sum_1",), [])], 4.0, 1),
        ([Sample((), [0.5]), Sample(("sum_1",), [])], None, 0),
    ],
)
def test_the_overhead_of_a_launch_is_the_median_of_small_steps(monkeypatch, samples, ms, count):
    asked = []

    class Timer:
        def layers(self, runs, warmup, tick):
            tick()
            asked.append((runs, warmup))
            return samples

    class Engines:
        def step_timer(self, inference, weights, options, part, wanted, feeds):
            asked.append((options, len(part.layers), {str(s): array.shape for s, array in feeds.items()}))
            return Timer()

    monkeypatch.setattr(launch, "default_engines", Engines)
    options = RunOptions("onnxruntime", threads=1)
    found = launch.launch_overhead(options)
    assert asked == [(options, asked[0][1], {"image": (1, 1, 4, 4)}), (20, 3)]
    assert asked[0][1] >= 8
    if ms is None:
        assert found == unavailable("the engine reports no times of small steps")
    else:
        assert found.value == pytest.approx(ms)
        assert found == measured(found.value, f"median of {count} additions of 4 x 4 numbers")


def test_the_compute_peak_is_that_of_the_fastest_kernel(monkeypatch):
    made = []

    def kernel(name, flops):
        def make(threads, size):
            made.append((name, threads, size))
            return name, flops

        return make

    kernels = {"slow": kernel("slow", 5.0), "fast": kernel("fast", 9.0), "third": kernel("third", 7.0)}
    monkeypatch.setattr(peaks, "default_engines", lambda: {"torch": SimpleNamespace(kernels=kernels)})
    seconds = []
    monkeypatch.setattr(peaks, "best_rate", lambda work, amount, *, seconds: asked(work, amount, seconds))

    def asked(work, amount, limit):
        seconds.append(limit)
        return amount * 1e9

    assert peaks._compute_peak("torch", 3, 0.5, 64) == (9e9, "fast in torch, fp32, 3 threads")
    assert made == [(name, 3, 64) for name in kernels]
    assert seconds == [0.25] * 3


def test_a_store_keeps_what_else_was_measured_and_needs_no_writable_folder(tmp_path):
    path = tmp_path / "new" / "store.json"
    peaks.save_store(path, "one", made_peaks(1.0))
    peaks.save_store(path, "two", made_peaks(2.0))
    assert {key: peaks.kept(key, path).compute.value for key in ("one", "two")} == {"one": 1.0, "two": 2.0}
    assert peaks.kept("three", path) is None
    assert [each.name for each in path.parent.iterdir()] == ["store.json"]
    (tmp_path / "file").write_text("mine")
    peaks.save_store(tmp_path / "file" / "store.json", "one", made_peaks())
    assert (tmp_path / "file").read_text() == "mine"
    for content in ("[1]", "7", "null", '"text"', "{", "[" * 100_000):
        path.write_text(content)
        assert peaks.load_store(path) == {}
    assert peaks.load_store(tmp_path / "nowhere.json") == {}
    peaks.keep("busy", made_peaks(foreign=5.1), path)
    assert peaks.load_store(path) == {}
    peaks.keep("quiet", made_peaks(foreign=5.0), path)
    assert list(peaks.load_store(path)) == ["quiet"]


def test_what_was_calibrated_is_kept_for_its_engine_layout_and_precision(monkeypatch, tmp_path, profiling_registry):
    monkeypatch.setattr(calibration, "machine_peaks", lambda options, store: made_peaks())
    monkeypatch.setattr(calibration, "peaks_key", lambda options: f"{options.engine} {options.threads}")
    calls = []

    def calibrated_now(options, registry, run_peaks):
        calls.append((options, run_peaks.flops_per_s.value))
        return calibration.CalibratedModel(str(len(calls)), "", {}, 0.5, NO_PEAKS)

    monkeypatch.setattr(calibration, "calibrate", calibrated_now)
    store = tmp_path / "peaks.json"
    options = RunOptions("onnxruntime", threads=1)
    others = [replace(options, layout="nhwc"), replace(options, precision="bf16"), replace(options, threads=2)]
    for _ in range(2):
        names = [calibration.calibrated(each, profiling_registry, store).name for each in (options, *others)]
        assert names == ["1", "2", "3", "4"]
    assert calls == [(each, 1.0) for each in (options, *others)]
    assert (tmp_path / "models.json").exists()
    assert not store.exists()
    (tmp_path / "models.json").write_text("{}")
    assert calibration.calibrated(options, profiling_registry, store).name == "5"
