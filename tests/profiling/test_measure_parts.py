"""Parts of measuring and predicting on their own: turns, peaks and their keys, memory, steps alone, and networks that are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.profiling import counters, energy, gpu, measure, predicted_here
from designer.profiling import operator_times as times_module
from designer.profiling import peaks as peaks_module
from designer.profiling.cost import cost_table
from designer.profiling.machine import Machine, this_machine
from designer.profiling.measure import Measurement, in_turns
from designer.profiling.operator_times import OperatorTimes, operator_times
from designer.profiling.peaks import Peaks
from designer.profiling.profile_files import MAX_BYTES, load_profile, save_profile, to_json
from designer.profiling.quantities import measured, unavailable
from designer.profiling.roofline import place
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun, RunPeaks
from designer.profiling.sweep import of_one_network
from designer.profiling.what_if import predicted_run
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import PreparedStep, SingleStep
from designer.runtime.engine_registry import default_engines
from designer.runtime.interrupt import Interrupt, InterruptedRunError, interruptible
from designer.runtime.machine import threads

OPTIONS = RunOptions("onnxruntime", layout="nhwc", threads=3)
PEAKS = Peaks(measured(1.0), measured(2.0), measured(3.0), 7, measured(0.0), "a day", "torch", "fp32", 2)


# --- turns -------------------------------------------------------------------------------------------------------------


class Active:
    """A measurement of some blocks, which settles after some more."""

    def __init__(self, name, blocks, extra, log):
        self.name, self.blocks, self.extra, self.log = name, blocks, extra, log

    def block(self):
        if self.blocks:
            self.blocks -= 1
            self.log.append(self.name)
        return self.blocks > 0

    def settled(self):
        return self.extra <= 0

    def extra_block(self):
        self.extra -= 1
        self.log.append(f"{self.name}+")


@pytest.mark.parametrize(
    ("blocks", "extra", "ran"),
    [
        ((2, 2), (0, 0), "a b | a b"),
        ((3, 1), (0, 0), "a b | a | a"),
        ((1, 1), (2, 0), "a b | a+ b+ | a+ b+"),
        ((1, 1), (0, 1), "a b | a+ b+"),
    ],
)
def test_every_configuration_has_its_turn_until_all_have_settled(monkeypatch, blocks, extra, ran):
    monkeypatch.setattr(measure, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(measure, "MOST_EXTRA", 0)
    moments = iter([0.0, 10.0, *([9.0] * 99)])
    monkeypatch.setattr(measure, "perf_counter", lambda: next(moments))
    log = []
    active = [Active(name, *each, log) for name, *each in zip("ab", blocks, extra, strict=True)]
    for _ in measure._turns(active):
        log += ["|"]
    assert " ".join(log) == ran


@pytest.mark.parametrize(("seconds", "limit"), [(1.0, 3.0), (100.0, 20.0)])
def test_more_blocks_take_three_times_as_long_at_most_or_20_seconds(monkeypatch, seconds, limit):
    clock = [0.0]
    monkeypatch.setattr(measure, "perf_counter", lambda: clock[0])

    class Slow(Active):
        def block(self):
            clock[0] += seconds
            return super().block()

        def extra_block(self):
            clock[0] += limit / 4
            super().extra_block()

    log = []
    list(measure._turns([Slow("a", 1, 99, log)]))
    assert log == ["a", *["a+"] * 4]


# --- peaks and memory --------------------------------------------------------------------------------------------------


def test_peaks_are_kept_for_processor_threads_engine_and_layout():
    version = this_machine().versions["onnxruntime"]
    assert measure.peaks_key(OPTIONS) == f"{measure.cpu_name()} | 3 threads | onnxruntime {version} | nhwc"
    every = replace(OPTIONS, threads=0)
    assert f"| {threads(every)} threads |" in measure.peaks_key(every)


def test_peaks_of_a_gpu_are_those_of_its_precision(monkeypatch):
    monkeypatch.setattr(gpu, "gpu_key", lambda device, precision: f"key of {device} {precision}")
    monkeypatch.setattr(
        gpu, "measure_gpu", lambda device, precision: replace(PEAKS, engine=device, precision=precision)
    )
    monkeypatch.setattr(gpu, "gpu_versions", lambda device: (f"card of {device}", {"driver": "9"}))
    monkeypatch.setattr(gpu, "free_gpu_memory", {"cuda": 500, "cuda:0": 600, "cuda:1": 1000}.__getitem__)
    monkeypatch.setattr(measure, "measure_cpu", lambda engine, count: replace(PEAKS, engine=engine, threads=count))
    monkeypatch.setattr(measure, "launch_overhead", lambda options: measured(0.5, f"{options.engine} {options.device}"))
    options = replace(OPTIONS, device="cuda:1", precision="bf16")
    assert measure.peaks_key(options) == "key of cuda:1 bf16 | nhwc"
    found = measure.measure_peaks(options)
    assert (found.engine, found.precision, found.launch) == ("cuda:1", "bf16", measured(0.5, "onnxruntime cuda:1"))
    here = measure.measure_peaks(OPTIONS)
    assert (here.engine, here.threads, here.launch) == ("onnxruntime", 3, measured(0.5, "onnxruntime cpu"))
    machine = measure.machine_of(options)
    assert (machine.gpu, machine.versions["driver"]) == ("card of cuda:1", "9")
    assert measure.machine_of(OPTIONS).gpu == ""
    assert (measure.free_device_memory("cuda:1"), measure.free_device_memory("cpu") > 1000) == (1000, True)


def test_half_of_what_is_free_on_the_device_is_used(small_inference, small_weights, monkeypatch):
    asked = []
    first = Measurement(small_inference, small_weights, replace(OPTIONS, device="cuda:1"))
    needed = measure._memory(first)
    monkeypatch.setattr(measure, "free_device_memory", lambda device: asked.append(device) or 4 * needed + 2)
    assert [len(group) for group in in_turns([first] * 5)] == [2, 2, 1]
    assert asked == ["cuda:1"]
    assert [len(group) for group in in_turns([first] * 5, limit=needed - 1)] == [1] * 5
    for limit in (2 * needed, 3 * needed - 1):  # what a group leaves is not added to the next one
        assert [len(group) for group in in_turns([first] * 7, limit=limit)] == [2, 2, 2, 1]
    assert [len(group) for group in in_turns([first] * 5, limit=5 * needed)] == [5]


def test_notes_of_a_configuration_stay_where_groups_were_measured_one_after_the_other(small_inference, small_weights):
    first = Measurement(small_inference, small_weights, OPTIONS, notes=("left out: a",))
    needed = measure._memory(first)
    groups = in_turns([first, replace(first, notes=("left out: b", "more"))], limit=needed)
    notes = [each.notes for group in groups for each in group]
    assert [each[:-1] for each in notes] == [("left out: a",), ("left out: b", "more")]
    assert all(
        each[-1].startswith("the 2 configurations need ") and "2 groups were measured" in each[-1] for each in notes
    )
    assert [each.notes for group in in_turns([first], limit=needed) for each in group] == [("left out: a",)]


def test_kept_peaks_are_those_of_what_was_measured_so_far(small_inference, small_weights, monkeypatch, tmp_path):
    class Timer:
        def whole(self, runs, warmup, tick):
            return [0.5] * runs

        def layers(self, runs, warmup, tick):
            return []

    monkeypatch.setattr(type(default_engines()), "step_timer", lambda *_: Timer())
    monkeypatch.setattr(measure, "energy_counter", lambda device: "none")
    stores = []
    monkeypatch.setattr(measure, "_kept_peaks", lambda options, store: stores.append(store))
    monkeypatch.setattr(measure, "machine_peaks", lambda options, store: stores.append(store) or PEAKS)
    store = tmp_path / "peaks.json"
    made = measure.RunMeasurement(Measurement(small_inference, small_weights, OPTIONS, iterations=2, store=store))
    made.block()
    assert made.partial().peaks == measure.NO_PEAKS
    assert made.result().peaks == measure.run_peaks(PEAKS)
    assert stores == [store, store]
    monkeypatch.setattr(measure, "_kept_peaks", lambda options, store: PEAKS)
    again = measure.RunMeasurement(Measurement(small_inference, small_weights, OPTIONS, iterations=1))
    assert not again.block()
    assert again.partial().peaks == measure.run_peaks(PEAKS)
    assert again.partial().partial == "ended after 1 iterations, before the order of the first operators settled"
    given = replace(PEAKS, compute=measured(77.0))
    own = measure.RunMeasurement(Measurement(small_inference, small_weights, OPTIONS, iterations=1, peaks=given))
    own.block()
    assert own.result().peaks.flops_per_s.value == 77.0
    with pytest.raises(DiagnosticError, match="0 iterations cannot be timed"):
        measure.RunMeasurement(Measurement(small_inference, small_weights, OPTIONS, iterations=0))


def test_the_energy_of_a_run_counts_the_runs_of_the_warm_up(small_inference, small_weights, monkeypatch):
    used = [7.0]  # joules before the measurement

    class Timer:
        def whole(self, runs, warmup, tick):
            used[0] += 3.0 * (runs + warmup)
            return [0.5] * runs

        def layers(self, runs, warmup, tick):
            used[0] += 1000.0
            return []

    monkeypatch.setattr(type(default_engines()), "step_timer", lambda *_: Timer())
    monkeypatch.setattr(measure, "energy_counter", lambda device: lambda: used[0])
    monkeypatch.setattr(energy, "LEAST_SECONDS", 0.0)
    made = measure.RunMeasurement(Measurement(small_inference, small_weights, OPTIONS, iterations=2, peaks=PEAKS))
    while made.block():
        pass
    found = made.result()
    assert found.iterations == 2
    assert found.energy.joules.value == pytest.approx(3.0)


def test_the_size_of_a_run_is_that_of_its_first_image():
    volume, vector = np.zeros((1, 2, 3, 4, 5), np.float32), np.zeros((1, 9), np.float32)
    image, more = np.zeros((2, 3, 6, 7), np.float32), np.zeros((2, 1, 8, 9), np.float32)
    arrays = {Source("volume"): volume, Source("vector"): vector, Source("image"): image, Source("more"): more}
    assert measure._size(arrays) == "7x6"
    assert measure._size({Source("volume"): volume, Source("vector"): vector}) == measure._size({}) == ""


# --- steps alone -------------------------------------------------------------------------------------------------------


def test_the_inputs_of_a_step_are_read_before_each_run_but_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(times_module, "foreign_load", lambda _: measured(0.0))
    monkeypatch.setattr(times_module, "SECONDS", 0.0)
    log = []
    step = SingleStep(
        ("a",), "", "1", 8, lambda: PreparedStep(lambda: log.append("run") or 0.5, lambda: log.append("read"))
    )
    operator_times(SimpleNamespace(single_steps=lambda: [step]), "here", tmp_path / "peaks.json")
    assert log == ["run", *["read", "run"] * 3]


def test_a_step_that_cannot_run_by_itself_is_missing_and_a_canceled_prediction_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(times_module, "foreign_load", lambda _: measured(0.0))

    def refused():
        raise DiagnosticError.of("x", "x", remedy="x")

    steps = [
        SingleStep(("a",), "", "1", 8, refused),
        SingleStep(("b",), "", "2", 8, lambda: PreparedStep(refused, lambda: None)),
        SingleStep(("c",), "", "3", 8, lambda: PreparedStep(lambda: 0.5, lambda: None)),
    ]
    said = []
    timer = SimpleNamespace(single_steps=lambda: steps)
    found = operator_times(timer, "here", tmp_path / "peaks.json", lambda *step: said.append(step))
    assert said == [(number, 3, "measuring operators one by one") for number in range(3)]
    assert (found.missing, [each.layers for each in found.samples], found.fresh) == ({"a", "b"}, [("c",)], 3)
    kept = json.loads((tmp_path / "operators.json").read_text())
    assert len(kept["here"]["seconds"]) == 1
    interrupt = Interrupt()
    interrupt.ask()
    other = SingleStep(("d",), "", "4", 8, lambda: PreparedStep(lambda: 0.5, lambda: None))
    with interruptible(interrupt), pytest.raises(InterruptedRunError):
        operator_times(SimpleNamespace(single_steps=lambda: [other]), "here", tmp_path / "peaks.json")


def test_without_new_steps_the_load_of_the_machine_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(times_module, "foreign_load", lambda _: measured(0.0))
    step = SingleStep(("a",), "", "1", 8, lambda: PreparedStep(lambda: 0.5, lambda: None))
    for load, fresh in ((0.0, 1), (80.0, 0)):
        monkeypatch.setattr(times_module, "foreign_load", lambda _, load=load: measured(load))
        found = operator_times(SimpleNamespace(single_steps=lambda: [step]), "here", tmp_path / "peaks.json")
        assert (found.fresh, found.load) == (fresh, 0.0)
    monkeypatch.setattr(times_module, "foreign_load", lambda _: unavailable("unknown"))
    new = replace(step, key="2")
    assert operator_times(SimpleNamespace(single_steps=lambda: [new]), "here", tmp_path / "peaks.json").load == 0.0
    assert len(json.loads((tmp_path / "operators.json").read_text())["here"]["seconds"]) == 2


def test_times_of_steps_are_kept_by_precision_and_an_engine_may_refuse(small_inference, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(predicted_here, "step_timer", lambda inference, options, batch: asked.append(batch) or "timer")
    monkeypatch.setattr(predicted_here, "peaks_key", lambda options: "this machine")
    monkeypatch.setattr(
        predicted_here, "operator_times", lambda *given: asked.append(given) or OperatorTimes(different=5)
    )
    store = tmp_path / "peaks.json"
    found = predicted_here._times(small_inference, replace(OPTIONS, precision="bf16"), 4, store, None)
    assert (found.different, asked) == (5, [4, ("timer", "this machine | bf16", store, None)])

    def refused(*_):
        raise DiagnosticError.of("x", "x", remedy="x")

    monkeypatch.setattr(predicted_here, "operator_times", refused)
    assert predicted_here._times(small_inference, OPTIONS, 1, store, None) == OperatorTimes()
    monkeypatch.setattr(predicted_here, "step_timer", lambda *_: None)
    assert predicted_here._times(small_inference, OPTIONS, 1, store, None) == OperatorTimes()


def test_the_inputs_of_single_steps_have_the_batch(small_inference, monkeypatch):
    asked = []

    class Engines:
        def step_timer(self, inference, weights, options, part, wanted, feeds):
            asked.append((options, weights.complete, {str(s): array.shape for s, array in feeds.items()}))
            return "timer"

    monkeypatch.setattr(predicted_here, "default_engines", Engines)
    assert predicted_here.step_timer(small_inference, OPTIONS, 5) == "timer"
    assert asked == [(OPTIONS, True, {"image": (5, 3, 24, 32)})]
    monkeypatch.setattr(predicted_here, "LARGEST", 5 * 3 * 24 * 32 * 4)
    assert predicted_here.step_timer(small_inference, OPTIONS, 5) == "timer"
    assert predicted_here.step_timer(small_inference, OPTIONS, 6) is None
    assert cost_table(small_inference, batch=5).batch == 5


# --- files, machines, networks -----------------------------------------------------------------------------------------


def run(*rows: OperatorProfile, **more) -> ProfileRun:
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x4", 1.0, None, rows, **more)


def row(layers: str, kinds: str, **parameters) -> OperatorProfile:
    return OperatorProfile(tuple(layers.split()), kinds, 1.0, parameters=parameters)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (run(provenance={"document_sha256": "a"}), run(row("x", "relu"), provenance={"document_sha256": "a"}), True),
        (run(row("x", "relu")), run(row("x", "pooling")), False),
        (
            run(row("x", "relu"), provenance={"document_sha256": ""}),
            run(row("x", "pooling"), provenance={"document_sha256": ""}),
            False,
        ),
        (
            run(row("x", "relu"), provenance={"document_sha256": "a"}),
            run(row("x", "relu"), provenance={"document_sha256": "b"}),
            True,
        ),
        (
            run(row("x y", "relu + pooling", x={"a": "1"})),
            run(row("y", "pooling"), row("x", "relu", x={"a": "1"})),
            True,
        ),  # fused
        (run(row("x", "relu", x={"a": "1"})), run(row("x", "relu", x={"a": "2"})), False),
        (run(row("x", "relu", x={"a": "1"})), run(row("z", "relu", z={"a": "1"})), False),
        (run(row("x", "relu"), learned=5), run(row("x", "relu"), learned=6), False),
        (run(row("x", "relu"), row("", "")), run(row("x", "relu")), True),  # time outside of operators
        (run(row("x", "relu")), replace(run(row("x", "relu")), size="64x64", batch=4), True),
    ],
)
def test_which_runs_are_of_one_network(one, other, same):
    assert of_one_network(one, other) is same
    assert of_one_network(other, one) is same


def test_a_file_of_more_than_64_mebibytes_is_not_read(tmp_path, monkeypatch):
    profile = Profile(Machine("c", 1), "net", (run(row("x", "relu")),))
    path = tmp_path / "a.json"
    save_profile(path, profile)
    assert load_profile(path) == profile
    assert MAX_BYTES == 64 << 20
    monkeypatch.setattr("designer.profiling.profile_files.MAX_BYTES", path.stat().st_size)
    assert load_profile(path) == profile
    monkeypatch.setattr("designer.profiling.profile_files.MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(DiagnosticError) as refused:
        load_profile(path)
    (found,) = refused.value.diagnostics
    assert (found.code, found.file) == ("bad-profile", str(path))
    assert found.message == "this is not a profile: the file has more than 0 MiB"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "it is not complete JSON (Input data was truncated)"),
        ("[]", "its schema is not 'layerwright-profile'"),
        ('{"schema": "other"}', "its schema is not 'layerwright-profile'"),
        ('{"schema": "layerwright-profile", "version": 9}', "its version is 9, but only 1 to 2 can be read"),
        ('{"schema": "layerwright-profile", "version": 1, "records": []}', "it has no runs"),
        (
            '{"schema": "layerwright-profile", "version": 2, "network": "n", "machine": {"cpu": "c", "cores": 1}, "runs": []}',
            "it has no runs",
        ),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_with_the_file(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DiagnosticError) as refused:
        load_profile(path)
    (found,) = refused.value.diagnostics
    assert (found.code, found.message, found.file) == ("bad-profile", f"this is not a profile: {message}", str(path))
    assert found.remedy == "choose a .json file that `layerwright profile`, Save Profile or `make gpu-check` wrote"


def test_a_missing_profile_is_said_with_the_reason(tmp_path):
    with pytest.raises(DiagnosticError, match="this is not a profile: it cannot be read: No such file or directory"):
        load_profile(tmp_path / "nowhere.json")


def test_numbers_are_written_with_nine_digits_and_runs_are_numbered(tmp_path):
    one, other = (
        run(row("x", "relu")),
        replace(run(OperatorProfile(("y",), "relu", 1 / 3)), provenance={"by": "me"}, engine="openvino"),
    )
    profile = Profile(Machine("a processor", 1), "net", (one, other))
    save_profile(tmp_path / "a.csv", profile)
    text = (tmp_path / "a.csv").read_text()
    assert ",0.333333333," in text
    assert "2 net, openvino fp32 nchw batch 1 8x4 on a processor" in "".join(
        each.read_text() for each in tmp_path.iterdir()
    )
    assert json.loads(to_json(profile))["runs"][1]["engine"] == "openvino"


def test_a_machine_may_have_an_unknown_number_of_cores():
    assert Machine("c", 0).cores == 0
    with pytest.raises(ValueError, match="0 cores or more"):
        Machine("c", -1)


def test_the_kernels_of_ncu_are_not_waited_for_longer_than_five_minutes(monkeypatch, tmp_path):
    def late(command, **more):
        raise subprocess.TimeoutExpired(command, more["timeout"])

    monkeypatch.setattr(counters.subprocess, "run", late)
    found = counters.read_counters(["python"], ["a"], (8, 0), "/usr/bin/ncu")
    assert found.reason == "ncu did not finish within 300 s; use a smaller image"
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    assert counters.read_counters(["python"], ["a"], (8, 0)).reason == counters.NO_NCU
    assert counters.read_counters(["python"], ["a"], (6, 1), "/usr/bin/ncu").reason == (
        "the counters of compute capability 6.1 are not known; this version knows 7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, "
        "11.0, 12.0, 12.1"
    )


def test_work_of_nothing_has_no_roof():
    peaks = RunPeaks(measured(1e9), measured(1e9), measured(1e9), 0)
    for placed in (place(1.0, 0, 0, peaks), place(1.0, 5, 5, replace(peaks, flops_per_s=measured(0.0)))):
        assert (placed.bound, placed.roof_ms, placed.saving_ms) == ("", None, None)
    assert place(1.0, 0, 0, replace(peaks, launch_ms=measured(0.25))).bound == "launch"
    assert place(0.0, 5, 5, peaks).compute == unavailable("the time was too short to measure")
    unknown = replace(peaks, memory_bytes_per_s=unavailable("not here"))
    assert place(1.0, 5, 5, unknown).memory == unavailable("not here")
    assert place(1.0, 5, 5, unknown).roof_ms is None


def test_a_network_without_shapes_is_not_predicted(profiling_registry):
    with pytest.raises(DiagnosticError) as refused:
        predicted_run(Graph([]), profiling_registry, OPTIONS, machine="T4")
    (found,) = refused.value.diagnostics
    assert (found.code, found.message, found.remedy) == (
        "not-modelled", "the shapes of the network are not known", "fix its problems first"
    )  # fmt: skip


def test_another_system_reports_its_load_by_psutil_or_not_at_all(monkeypatch):
    monkeypatch.setattr(peaks_module.sys, "platform", "darwin")
    fake = SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=7.0, system=2.5, idle=99.0))
    monkeypatch.setitem(sys.modules, "psutil", fake)
    busy, mine, _ = peaks_module.busy_times()
    assert busy == 9.5
    assert mine > 0
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert peaks_module.busy_times() is None
    assert peaks_module.foreign_load(None).reason == "this system does not report how busy it is"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one on other systems")
def test_peaks_are_kept_in_the_cache_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert peaks_module.default_store() == tmp_path / "layerwright" / "peaks.json"
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert peaks_module.default_store() == tmp_path / "layerwright" / "peaks.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert peaks_module.default_store() == tmp_path / "home" / ".cache" / "layerwright" / "peaks.json"
