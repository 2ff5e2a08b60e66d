"""What the user reads when something cannot be profiled, predicted or read, compared with recorded texts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from profiling_networks import layer_
from recorded import check_recorded

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import Registry
from designer.profiling import calibration, counters, energy, peaks
from designer.profiling.configurations import grid_of
from designer.profiling.counters import layer_utilization, read_counters
from designer.profiling.difference import difference
from designer.profiling.energy import energy_counter
from designer.profiling.heat import DIFFERENCE, METRICS
from designer.profiling.machine import Machine
from designer.profiling.measure import NO_PEAKS, Measurement, RunMeasurement, Timing, configurations, profiling_overhead
from designer.profiling.network_part import whole_part
from designer.profiling.peaks import Peaks, foreign_load
from designer.profiling.quantities import Quantity, ValueSource, measured, unavailable
from designer.profiling.roofline import place
from designer.profiling.schema import NOT_COUNTED, OperatorProfile, PeakMemory, ProfileRun, mean_utilization
from designer.profiling.version1 import GroupV1, RecordV1, profile_of
from designer.profiling.what_if import predicted_run
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

GROUP = GroupV1(("a",), ("relu",), "", {}, (), (), {"time": measured(-1.0)}, {})
RECORD = RecordV1("net", "", Machine("c", 1), {}, 1, 1, {}, {"time": measured(1.0)}, (GROUP,))


RUN = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", 1.0, 0.01, ())


def run(**more: Any) -> ProfileRun:
    return replace(RUN, **more)


def cases(registry: Registry, small: Graph) -> Iterator[tuple[str, Callable[[], object]]]:
    options = RunOptions("onnxruntime", threads=1)
    image = layer_("image", "input", dims="8x8x3")
    bare = Graph([image, layer_("out", "output", "image")])
    cut = Graph(
        [
            image,
            layer_("a", "convolution", "image"),
            layer_("n", "noise", "a"),
            layer_("b", "convolution", "n"),
            layer_("o", "output", "b"),
        ]
    )
    yield "no layers", lambda: whole_part(Inference(bare, registry))
    yield "an analysis layer between", lambda: whole_part(Inference(cut, registry))
    yield "no output", lambda: configurations(Session(Graph([image]), registry, Weights(), options), 1)
    yield (
        "no iterations",
        lambda: RunMeasurement(Measurement(Inference(small, registry), Weights(), options, iterations=0)),
    )
    for name in ("precisions", "layouts", "batches", "sizes"):
        yield f"wrong {name}", lambda n=name: grid_of(**{n: "1,odd"})  # type: ignore[misc]
    yield "an unknown machine", lambda: predicted_run(small, registry, options, machine="abacus")
    yield "a GPU of this machine", lambda: predicted_run(small, registry, replace(options, device="cuda"))
    yield "no shapes", lambda: predicted_run(Graph([]), registry, options)
    yield "a batch of 0", lambda: run(batch=0)
    yield "a peak at no step", lambda: run(peak_memory=PeakMemory(1, 0))
    yield "a negative time", lambda: OperatorProfile(("a",), "", -1.0)
    yield "a number that is too large", lambda: OperatorProfile(("a",), "", 1.0, flops=10**19)
    yield "a time that is NaN", lambda: run(time_ms=float("nan"))
    yield "a machine with fewer than no cores", lambda: Machine("c", -1)
    yield "a value without a source", lambda: Quantity(None, ValueSource.MEASURED)
    yield "an unavailable value that is known", lambda: Quantity(1.0, ValueSource.UNAVAILABLE, "x")
    yield "no value and no reason", lambda: Quantity(None, ValueSource.UNAVAILABLE)
    yield "a value that is infinite", lambda: measured(float("inf"))
    yield "records of two networks", lambda: profile_of((RECORD, replace(RECORD, network="other")))
    yield "records of two machines", lambda: profile_of((RECORD, replace(RECORD, machine=Machine("d", 1))))
    yield "a record with a negative time", lambda: profile_of((RECORD,))
    yield "a group without layers", lambda: replace(GROUP, layers=())
    yield "a group without a time", lambda: replace(GROUP, figures={})


def test_why_something_is_not_profiled(profiling_registry: Registry, small_graph: Graph) -> None:
    lines = []
    for name, make in cases(profiling_registry, small_graph):
        lines.append(name)
        try:
            make()
        except DiagnosticError as error:
            lines += [f"  {d.code} ({d.layer or d.file or ''}): {d.message}; {d.remedy}" for d in error.diagnostics]
        except ValueError as error:
            lines.append(f"  {error}")
    check_recorded("refused_profiles.txt", "\n".join([*lines, ""]))


def line(name: str, found: object) -> str:
    return f"{name}: {found}"


class Tool:
    """ncu as a function: it ends with a status, prints and writes a report or not."""

    def __init__(self, status: int = 0, out: str = "", err: str = "", error: Exception | None = None) -> None:
        self._done, self._error = SimpleNamespace(returncode=status, stdout=out, stderr=err), error

    def __call__(self, command: list[str], **more: Any) -> Any:
        if self._error is not None:
            raise self._error
        return self._done


def test_why_a_value_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = []
    for name, tool in {
        "late": Tool(error=subprocess.TimeoutExpired("ncu", 300)),
        "not started": Tool(error=FileNotFoundError(2, "No such file")),
        "not permitted": Tool(1, "==ERROR== ERR_NVGPUCTRPERM - no permission"),
        "failed": Tool(9, "one\n", "two\n\n"),
        "silent": Tool(3),
        "no report": Tool(0, "==PROF== nothing\n"),
    }.items():
        monkeypatch.setattr(counters.subprocess, "run", tool)
        lines.append(line(f"ncu {name}", read_counters(["python"], ["a"], (8, 0), "/usr/bin/ncu").reason))
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    lines.append(line("no ncu", read_counters(["python"], ["a"], (8, 0)).reason))
    lines.append(line("an unknown chip", read_counters(["python"], ["a"], (6, 0)).reason))
    lines.append(line("no kernels", layer_utilization([], ["a"], {}).reason))

    monkeypatch.setattr(energy.util, "find_spec", lambda name: None)
    lines.append(line("no NVML", energy_counter("cuda")))
    nvml = ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})  # type: ignore[attr-defined]

    def refuse() -> None:
        raise nvml.NVMLError("Driver Not Loaded")

    nvml.nvmlInit = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(energy.util, "find_spec", lambda name: nvml)
    monkeypatch.setattr("designer.profiling.gpu.gpu_id", lambda device: "0")
    lines.append(line("a broken NVML", energy_counter("cuda")))
    lines.append(line("no RAPL", energy_counter("cpu", tmp_path)))

    def forbidden(path: Path) -> str:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.read_text", forbidden)
        lines.append(line("no permission for RAPL", energy_counter("cpu", Path("/sys/rapl"))))

    quiet = Peaks(measured(1), measured(1), measured(1), 1, measured(5.0), "", "", "", 1)
    lines.append(line("quiet peaks", repr(quiet.note)))
    lines.append(line("busy peaks", replace(quiet, foreign=measured(5.6)).note))
    lines.append(line("peaks of unknown load", replace(quiet, foreign=unavailable("no /proc")).note))
    lines.append(line("no launch", quiet.launch))
    monkeypatch.setattr(peaks, "busy_times", lambda: (1.0, 1.0, 0.04))
    lines.append(line("a short calibration", foreign_load((0.0, 0.0, 0.0))))
    lines.append(line("no load", foreign_load(None)))
    monkeypatch.setattr(peaks, "busy_times", lambda: (1.0, 1.0, 5.0))
    lines.append(line("a load", foreign_load((0.0, 0.0, 0.0))))
    lines.append(line("no runs", profiling_overhead(Timing())))
    lines.append(line("no peaks", NO_PEAKS))
    lines.append(line("not counted", NOT_COUNTED))
    lines.append(line("a step without peaks", place(1.0, 1, 1, NO_PEAKS)))
    lines.append(line("no rows", mean_utilization([])))
    for before, after in (
        (run(load=measured(9.4)), run(load=measured(12.6))),
        (run(), run()),
        (run(turns="a"), run(turns="b")),
        (run(turns="a"), run(turns="a")),
    ):
        lines.append(line("doubt", repr(difference(before, after).doubt)))
    same = run()
    lines.append(line("doubt of a run and itself", repr(difference(same, same).doubt)))
    lines += [
        line(f"metric {each.id}", f"{each.title}, {each.unit}, {each.extensive}")
        for each in (*METRICS.values(), DIFFERENCE)
    ]
    check_recorded("unavailable_values.txt", "\n".join([*lines, ""]))


def test_a_calibration_network_with_problems_is_a_bug(
    profiling_registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = calibration._Case(Graph([layer_("a", "convolution")]), ("a",))
    monkeypatch.setattr(calibration, "_cases", lambda sides: [broken])
    monkeypatch.setattr(calibration, "_times", lambda inference, options: {"it": 1.0})
    with pytest.raises(ValueError, match=r"calibration network: .*missing-input"):
        calibration.calibrate(RunOptions("torch"), profiling_registry, NO_PEAKS)


def test_a_calibration_says_where_it_comes_from(profiling_registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_cases", lambda sides: [])
    monkeypatch.setattr(calibration, "_times", lambda inference, options: {"it": 0.25, "before": 0.5})
    monkeypatch.setattr(calibration, "now", lambda: "today")
    found = calibration.calibrate(RunOptions("openvino"), profiling_registry, NO_PEAKS)
    assert (found.name, found.reason, found.date) == (
        "openvino on this machine", "efficiency of openvino on this machine, calibrated at today", "today"
    )  # fmt: skip
    assert (found.launch_ms, found.kinds, found.run_ms) == (0.25, {}, 0.0)
