"""Peaks, the roof, and what happens on a busy machine."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

import msgspec
import pytest

from designer.profiling import measure as measuring
from designer.profiling import peaks as peaks_module
from designer.profiling.launch import launch_overhead
from designer.profiling.measure import NO_PEAKS, measure_peaks, run_peaks
from designer.profiling.peaks import Peaks, cached, copy_rate, foreign_load, measure_cpu
from designer.profiling.quantities import measured
from designer.profiling.roofline import place, spread
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines


def made_peaks(compute=100e9, cache=80e9, memory=20e9, cache_bytes=1 << 20, foreign=0.0):
    return Peaks(
        measured(compute),
        measured(cache),
        measured(memory),
        cache_bytes,
        measured(foreign),
        "2026-01-01T00:00:00+00:00",
        "torch",
        "fp32",
        2,
    )


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_peaks_of_this_machine_are_plausible(engine):
    found = measure_cpu(engine, 1, seconds=0.02, size=256)
    assert found.compute.value > 1e8
    assert found.cache.value > 1e8
    assert found.memory.value > 1e8
    assert msgspec.convert(msgspec.to_builtins(found), Peaks) == found


def test_copy_rate_counts_reading_and_writing():
    assert copy_rate(2**20, 2, 0.01) > 1e8


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_all_threads_count(monkeypatch, threads):
    monkeypatch.setattr(peaks_module, "best_rate", lambda work, amount, seconds: amount)
    assert copy_rate(2**24, threads, 0.01) == 2**24


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("total", [1, 2**12, 2**18, 2**21, 2**23 + 2**20])
def test_the_rate_of_a_copy_counts_every_byte_that_is_read_and_written(monkeypatch, threads, total):
    """Copies of small buffers are repeated, so that starting the threads does not count."""
    copied = []
    monkeypatch.setattr(peaks_module.np, "copyto", lambda to, source: copied.append(to.nbytes + source.nbytes))

    def rate(work, amount, *, seconds):
        work()
        assert seconds == 0.01
        return amount

    monkeypatch.setattr(peaks_module, "best_rate", rate)
    assert copy_rate(total, threads, 0.01) == sum(copied)
    assert len(set(copied)) == 1
    assert len(copied) % threads == 0
    assert (len(copied) == threads) == (copied[0] * 2 > 4 * 2**20)


def test_the_overhead_of_a_launch_is_one_of_the_peaks(monkeypatch):
    monkeypatch.setattr(measuring, "measure_cpu", lambda engine, threads: made_peaks())
    assert run_peaks(measure_peaks(RunOptions("torch", threads=1))).launch_ms.value > 0


def _spin(until: float) -> None:
    while time.perf_counter() < until:
        pass


@pytest.mark.skipif(peaks_module.busy_times() is None, reason="the system does not report it")
def test_foreign_load_is_seen():
    spinner = multiprocessing.get_context("spawn").Process(target=_spin, args=(time.perf_counter() + 30,))
    spinner.start()
    try:
        assert peaks_module.busy_times() is not None
        before = peaks_module.busy_times()
        for _ in range(40):
            time.sleep(0.1)  # the value is a mean over time: there is no event to wait for
            load = foreign_load(before)
            if load.value is not None and load.value > peaks_module.BUSY_PERCENT:
                break
        assert load.value > peaks_module.BUSY_PERCENT
    finally:
        spinner.kill()
        spinner.join()
        spinner.close()
    busy = made_peaks(foreign=load.value)
    assert "busy machine" in busy.note


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/stat is a file of Linux")
def test_waiting_for_disks_and_guests_are_not_busy_time(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 4000 500 6 7 8 60 10\ncpu0 50 10 15 2000 250 3 3 4 30 5\n")
    monkeypatch.setattr(peaks_module, "Path", lambda _: stat)
    busy, mine, _ = peaks_module.busy_times()
    assert busy == 171 / os.sysconf("SC_CLK_TCK")
    assert mine > 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/stat is a file of Linux")
@pytest.mark.parametrize("text", [None, "cpu  1 x 3\n"])
def test_a_load_that_the_system_does_not_report_is_unknown(tmp_path, monkeypatch, text):
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    monkeypatch.setattr(peaks_module, "Path", lambda _: stat)
    assert peaks_module.busy_times() is None
    for before in (None, (0.0, 0.0, 0.0)):
        found = foreign_load(before)
        assert (found.value, found.reason) == (None, "this system does not report how busy it is")


def test_peaks_are_kept_unless_the_machine_was_busy(tmp_path):
    store = tmp_path / "deep" / "peaks.json"
    calls = []

    def measure(foreign):
        def run():
            calls.append(foreign)
            return made_peaks(foreign=foreign)

        return run

    assert cached("m", measure(50.0), store).busy
    assert not store.exists()
    assert not cached("m", measure(1.0), store).busy
    assert cached("m", measure(2.0), store).foreign.value == 1.0
    assert calls == [50.0, 1.0]
    store.write_text("{ not json")
    assert cached("m", measure(3.0), store).foreign.value == 3.0
    store.write_text('{"m": {"compute": 7}}')
    assert cached("m", measure(4.0), store).foreign.value == 4.0
    store.write_text('{"m": {"compute": {"value": 1%s, "unit": "FLOP/s", "source": "measured"}}}' % ("0" * 308 + "0"))
    assert cached("m", measure(5.0), store).foreign.value == 5.0


def test_compute_and_memory_bound():
    peaks = run_peaks(made_peaks())
    heavy = place(2.0, 100_000_000, 1000, peaks)
    assert heavy.bound == "compute"
    assert heavy.roof_ms == pytest.approx(1.0)
    assert heavy.saving_ms == pytest.approx(1.0)
    assert heavy.compute.value == pytest.approx(50.0)
    light = place(2.0, 0, 20_000_000, peaks)
    assert light.bound == "memory"
    assert light.memory.value == pytest.approx(50.0)
    assert light.compute.value == 0.0


@pytest.mark.parametrize(("time_ms", "saving_ms"), [(1.02, 0.0), (1.0305, 0.0), (1.04, 0.04)])
def test_three_percent_of_the_time_count_as_none(time_ms, saving_ms):
    found = place(time_ms, 100_000_000, 1000, run_peaks(made_peaks()))
    assert found.saving_ms == pytest.approx(saving_ms)


def test_small_work_is_compared_with_the_cache():
    peaks = run_peaks(made_peaks())
    assert place(0.01, 0, 400_000, peaks).bound == "cache"
    assert place(0.01, 0, 600_000, peaks).bound == "memory"


def test_more_than_the_peak_is_shown_and_not_clipped():
    fast = place(1.0, 0, 40_000_000, run_peaks(made_peaks()))
    assert fast.memory.value == pytest.approx(200.0)
    assert fast.saving_ms == 0.0


def test_without_peaks_the_reason_is_said():
    placed = place(1.0, 1000, 1000, NO_PEAKS)
    assert placed.roof_ms is None
    assert placed.saving_ms is None
    assert "not measured" in placed.compute.reason


def test_spread_is_robust():
    assert spread([1.0]) is None
    assert spread([1.0, 1.0, 1.0, 1.0, 9.0]) == 0.0
    assert spread([0.001, 0.002, 0.003]) == pytest.approx(0.5)


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_the_overhead_of_a_launch(engine):
    found = launch_overhead(RunOptions(engine=engine, threads=1))
    assert 0 < found.value < 5
    assert "additions" in found.reason


def test_kernels_of_onnx_runtime_use_as_many_threads_as_they_are_asked_for(monkeypatch) -> None:
    ort = pytest.importorskip("onnxruntime")
    kernels, made, seen = default_engines().get("onnxruntime").kernels, ort.InferenceSession, []

    def session(model, options, **more):
        seen.append(options.intra_op_num_threads)
        return made(model, options, **more)

    monkeypatch.setattr(ort, "InferenceSession", session)
    for threads in (1, 2):
        for kernel in kernels.values():
            kernel(threads, 64)
    assert seen == [1] * len(kernels) + [2] * len(kernels)


def test_kernels_of_torch_use_as_many_threads_as_they_are_asked_for(monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    kernels, seen = default_engines().get("torch").kernels, []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    for threads in (1, 2):
        for kernel in kernels.values():
            kernel(threads, 64)
    assert seen == [1] * len(kernels) + [2] * len(kernels)


def test_kernels_of_openvino_use_as_many_threads_as_they_are_asked_for(monkeypatch) -> None:
    openvino = pytest.importorskip("openvino")
    kernels, made, seen = default_engines().get("openvino").kernels, openvino.Core.compile_model, []

    def compiled(core, model, device, properties):
        seen.append(properties["INFERENCE_NUM_THREADS"])
        return made(core, model, device, properties)

    monkeypatch.setattr(openvino.Core, "compile_model", compiled)
    for threads in (1, 2):
        for kernel in kernels.values():
            kernel(threads, 64)
    assert seen == [1] * len(kernels) + [2] * len(kernels)
