"""Everything that measuring and predicting returns, from given clocks, loads, counters and peaks, compared with recorded texts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from profiling_networks import RELU, layer_
from recorded import check_recorded

from designer.files.weights import random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.graph.template_commands import make_template
from designer.graph.types import Size2D
from designer.profiling import measure as measuring
from designer.profiling import predicted_here
from designer.profiling.configurations import AS_OPENED, Grid
from designer.profiling.cost import cost_table
from designer.profiling.counters import CounterResult
from designer.profiling.measure import NO_PEAKS, configurations, in_turns, measure
from designer.profiling.model import CalibratedModel, CalibrationPoint
from designer.profiling.operator_times import OperatorTimes
from designer.profiling.peaks import Peaks
from designer.profiling.quantities import Quantity, measured, unavailable
from designer.profiling.schema import ProfileRun
from designer.profiling.what_if import predicted_run, training_memory
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import Sample
from designer.runtime.engine_registry import default_engines
from designer.runtime.session import Session

PEAKS = Peaks(
    measured(100e9, "matmul"), measured(80e9, "copy in the cache"), measured(20e9, "copy"), 1 << 20, measured(0.5),
    "2026-01-01T00:00:00+00:00", "onnxruntime", "fp32", 1, {"tf32": measured(5e9)}, measured(0.001, "additions"),
)  # fmt: skip
LAYERS = ("conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum")


def text(value: Any) -> str:
    """A value in one line, without digits that depend on the processor."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Quantity):
        shown = "-" if value.value is None else f"{value.value:.5g}"
        return f"{shown} {value.source}{f' ({value.reason})' if value.reason else ''}"
    if is_dataclass(value):
        parts = (f"{each.name}={text(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {text(each)}' for key, each in value.items())}}}"
    return str(value)


def described(run: ProfileRun) -> Iterator[str]:
    """Every field of a run and of its operators, those with their defaults left out."""
    for each in fields(ProfileRun):
        value = getattr(run, each.name)
        if each.name == "provenance":
            value = [key for key in value if not key.startswith("version.")]
        if each.name == "turns":
            value = bool(value)
        if each.name == "operators":
            for row in value:
                shown = {f.name: getattr(row, f.name) for f in fields(row) if getattr(row, f.name) != f.default}
                yield f"  {text({k: v for k, v in shown.items() if k != 'parameters' and v != ()})}"
        elif value != each.default:
            yield f"{each.name}: {text(value)}"


class Clock:
    """A timer with given times in s: of every run of the network, and of each step, which become longer from block to block."""

    def __init__(self, whole: float, steps: dict[tuple[str, ...], tuple[float, str]]) -> None:
        self._whole, self._steps = whole, steps
        self._factors = itertools.cycle((1.0, 1.1, 0.9, 1.05))

    def whole(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[float]:
        for _ in range(runs + warmup):
            tick()
        return [self._whole * next(self._factors) for _ in range(runs)]

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        for _ in range(runs + warmup):
            tick()
        factors = [next(self._factors) for _ in range(runs)]
        return [Sample(layers, [seconds * f for f in factors], what) for layers, (seconds, what) in self._steps.items()]


def steps(scale: float = 1e-3) -> dict[tuple[str, ...], tuple[float, str]]:
    """`conv_c` and `sum` are one step, `up` has none, and a conversion belongs to no layer."""
    return {
        ("conv a",): (1.0 * scale, "gemm"),
        ("pool",): (0.25 * scale, ""),
        ("conv_b",): (2.0 * scale, "winograd"),
        ("cat",): (0.01 * scale, "copy"),
        ("conv_c", "sum"): (3.0 * scale, "gemm, add"),
        (): (0.5 * scale, "reorder"),
    }


@pytest.fixture
def clocks(monkeypatch):
    """Lets the engines have timers that are made by a function of the options, and the machine be quiet."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setattr(measuring, "busy_times", lambda: None)
    monkeypatch.setattr(measuring, "foreign_load", lambda before: measured(0.25, "other programs"))
    monkeypatch.setattr(measuring, "energy_counter", lambda device: "no energy counter here")
    monkeypatch.setattr(measuring, "measure_peaks", lambda options: PEAKS)

    def use(make: Callable[[RunOptions], Clock]) -> None:
        monkeypatch.setattr(type(default_engines()), "step_timer", lambda self, i, w, options, *rest: make(options))

    return use


def session(graph: Graph, registry, **options) -> Session:
    weights = replace(random_weights(required_weights(Inference(graph, registry)), 0), note="random weights (seed 0)")
    return Session(graph, registry, weights, RunOptions("onnxruntime", threads=2, **options))


def profiled(
    opened: Session, iterations: int, grid: Grid = AS_OPENED, limit: int | None = None, **more
) -> tuple[list[str], list[Any]]:
    """The runs as text, with what was handed over on the way; and the progress."""
    lines: list[str] = []
    seen: list[Any] = []

    def partial(profile) -> None:
        lines.append(
            f"handed over: {[(run.configuration, run.iterations, text(run.time_ms), run.partial) for run in profile.runs]}"
        )

    found = configurations(opened, iterations, grid, **{"warmup": 3, **more})
    profile = measure(in_turns(found, limit or 10**9), progress=lambda *step: seen.append(step), on_profile=partial)
    for number, run in enumerate(profile.runs):
        lines += ["", f"--- run {number}: {run.configuration}", *described(run)]
    return lines, seen


def test_a_run_is_as_recorded(small_graph, profiling_registry, clocks):
    """With a fused step, a layer without a step, time of no layer, steps that take longer than the network, and noise as input."""
    clocks(lambda options: Clock(5e-3, steps()))
    lines, seen = profiled(session(small_graph, profiling_registry), 6, peaks=PEAKS)
    check_recorded("profiles/run.txt", "\n".join([*lines, "", *(" ".join(map(str, step)) for step in seen), ""]))


@pytest.mark.parametrize("most", [2, 5, 6])
def test_so_many_layers_are_named_in_a_note(small_graph, profiling_registry, clocks, monkeypatch, most):
    """Six operators are above the roof, and six have no time; dots say that there are more."""
    low = replace(PEAKS, compute=measured(1e6), memory=measured(1e5), cache=measured(1e5))
    monkeypatch.setattr(measuring, "MOST_NAMED", most)
    names = ["conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"]
    for present, title in ((names[:6], "above the roof"), (names[6:], "without time in this run")):
        clocks(lambda options, present=present: Clock(9e-3, {(name,): (0.5, "") for name in present}))
        found = configurations(session(small_graph, profiling_registry), 6, peaks=low, warmup=1)
        (run,) = measure(in_turns(found, 10**9)).runs
        (note,) = [note for note in run.notes if note.startswith(title)]
        assert note.rpartition(": ")[2] == ", ".join(names[:6][:most]) + (" ..." if most < 6 else "")


@pytest.mark.parametrize(
    ("launch_ms", "named"), [(None, "conv a, pool, conv_b, cat, conv_c + sum"), (1e-6, "conv a, pool, conv_b, cat, conv_c + sum"),
                             (250.0, "conv a, conv_c + sum"), (1e6, "")],
)  # fmt: skip
def test_what_is_faster_than_a_launch_is_not_above_the_roof(small_graph, profiling_registry, clocks, launch_ms, named):
    """The overhead of a launch bounds the smaller operators first, and work cannot be above a roof of that kind."""
    launch = unavailable("not measured") if launch_ms is None else measured(launch_ms)
    low = replace(PEAKS, compute=measured(1e6), memory=measured(1e6), cache=measured(1e6), launch=launch)
    clocks(lambda options: Clock(9e-3, steps(1e-6)))
    found = configurations(session(small_graph, profiling_registry), 6, peaks=low, warmup=1)
    (run,) = measure(in_turns(found, 10**9)).runs
    notes = [note.rpartition(": ")[2] for note in run.notes if note.startswith("above the roof")]
    assert notes == ([named] if named else [])
    assert {row.bound for row in run.operators if row.name not in named} <= {"launch", ""}


@pytest.mark.parametrize("inside", [False, True])
def test_analysis_layers_of_templates_are_left_out_by_their_names_in_the_instance(
    small_graph, profiling_registry, clocks, inside
):
    """Only what deployment removes is named; the instance itself and its other layers are profiled."""
    noisy = replace(layer_("noise_0", "noise"), inputs=small_graph["conv_b"].inputs)
    behind = small_graph["conv_b"].with_input(0, Source("noise_0"))
    graph = Graph([*(x for x in small_graph if x.name != "conv_b"), behind, noisy])
    graph.apply(make_template(graph, ["conv_b", "up", *(["noise_0"] if inside else [])], "Part"))
    (found,) = configurations(session(graph, profiling_registry), 6)
    assert found.notes == (f"left out, as in deployment: {'Part_0.' if inside else ''}noise_0",)


def test_a_run_whose_steps_leave_time_is_as_recorded(small_graph, profiling_registry, clocks, monkeypatch):
    """On a busy machine with an energy counter, with a capture of the input, an analysis layer, and peaks that are too low."""
    joules = itertools.count(0.0, 2.0)
    seconds = itertools.count(0.0, 0.5)
    monkeypatch.setattr(measuring, "energy_counter", lambda device: lambda: next(joules))
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(measuring, "foreign_load", lambda before: measured(12.4, "other programs"))
    low = replace(
        PEAKS, compute=measured(1e6), memory=measured(1e5), cache=measured(1e5), foreign=unavailable("no /proc")
    )
    monkeypatch.setattr(measuring, "measure_peaks", lambda options: low)
    monkeypatch.setattr(measuring, "_kept_peaks", lambda options, store: None)
    monkeypatch.setattr(measuring, "keep", lambda *_: None)
    monkeypatch.setattr(measuring, "machine_peaks", lambda options, store: low)
    clocks(lambda options: Clock(9e-3, steps()))
    noisy = layer_("noise_0", "noise", "image")
    layers = [replace(x, inputs=noisy.inputs) if x.name != "conv a" else x.with_input(0, layer_("", "", "noise_0").inputs[0])
              for x in small_graph if x.name in ("conv a",)]  # fmt: skip
    graph = Graph([*(x for x in small_graph if x.name != "conv a"), *layers, noisy], name="noisy")
    opened = session(graph, profiling_registry)
    opened.set_input("image", np.zeros((2, 3, 24, 32), np.float32), is_image=False)
    lines, seen = profiled(opened, 3)
    check_recorded("profiles/busy_run.txt", "\n".join([*lines, "", *(" ".join(map(str, step)) for step in seen), ""]))


def test_a_run_that_does_not_settle_says_so(small_graph, profiling_registry, clocks, monkeypatch):
    """Two operators change their order from run to run, also in one more block."""

    class Restless(Clock):
        def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
            found = super().layers(runs, warmup, tick)
            swapped = {("conv a",): [0.005, 0.001], ("conv_b",): [0.001, 0.005]}
            return [replace(each, seconds=(swapped.get(each.layers, each.seconds[:2]) * runs)[:runs]) for each in found]

    moments = itertools.count(0.0, 1.0)
    monkeypatch.setattr(measuring, "perf_counter", lambda: next(moments))
    monkeypatch.setattr(measuring, "MOST_EXTRA", 1)
    clocks(lambda options: Restless(2e-2, steps()))
    lines, seen = profiled(session(small_graph, profiling_registry), 16, peaks=PEAKS)
    notes = [line for line in lines if line.startswith(("notes", "iterations", "handed over"))]
    check_recorded(
        "profiles/restless_run.txt", "\n".join([*notes, *(" ".join(map(str, step)) for step in seen[-4:]), ""])
    )


def test_runs_of_several_configurations_are_as_recorded(small_graph, profiling_registry, clocks):
    """Two layouts in turns, at two sizes and batches, in two groups."""
    clocks(lambda options: Clock(5e-3, steps(1e-3 if options.layout == "nchw" else 0.5e-3)))
    grid = Grid(layouts=("nhwc",), batches=(1, 3), sizes=(Size2D(32, 24), Size2D(64, 48)))
    lines, seen = profiled(session(small_graph, profiling_registry), 2, grid, peaks=PEAKS, limit=3 * 10**6)
    known = (
        "handed over",
        "---",
        "time_ms",
        "inputs",
        "flops",
        "iterations",
        "peak_memory",
        "turns",
        "notes",
        "overhead",
    )
    lines = [line for line in lines if line.startswith(known)]
    check_recorded(
        "profiles/configurations.txt", "\n".join([*lines, "", *(" ".join(map(str, step)) for step in seen[::4]), ""])
    )


def test_a_run_with_hardware_counters_is_as_recorded(small_graph, profiling_registry, clocks, monkeypatch):
    clocks(lambda options: Clock(5e-3, steps()))
    monkeypatch.setattr(measuring, "machine_of", lambda options: measuring.this_machine())
    opened = session(small_graph, profiling_registry)
    used = {
        "conv a": {"tensor_core": measured(61.0, "ncu"), "memory_throughput": measured(20.0, "ncu"), "occupancy": measured(33.0, "ncu")},
        "conv_b": {"tensor_core": measured(5.0, "ncu"), "memory_throughput": unavailable("no DRAM"), "occupancy": measured(44.0, "ncu")},
    }  # fmt: skip
    asked = []

    def counters(inference, options, batch):
        asked.append((inference.graph.name, options.device, batch))
        return CounterResult(used)

    (found,) = configurations(opened, 2, counters=counters, peaks=PEAKS)
    on_gpu = replace(found, options=replace(found.options, device="cuda:0"), batch=4)
    (run,) = measure([[on_gpu]]).runs
    (here,) = measure([[found]]).runs
    assert asked == [("small", "cuda:0", 4), ("small", "cpu", 1)]
    said: list[str] = []
    measure([[found]], progress=lambda done, total, text: said.append(text))
    assert list(dict.fromkeys(said)) == ["preparing", "reading hardware counters", "whole network", "operators"]
    rows = [
        f"{row.name}: {text([row.tensor_core, row.memory_throughput, row.occupancy])}"
        for each in (run, here)
        for row in each.operators
    ]
    check_recorded("profiles/counters.txt", "\n".join([f"'{run.counters}' '{here.counters}'", *rows, ""]))
    missing = replace(on_gpu, counters=lambda *_: CounterResult(reason="ncu was not found"))
    assert measure([[missing]]).runs[0].counters == "ncu was not found"
    with pytest.raises(DiagnosticError) as refused:
        measure([[replace(missing, require_counters=True)]])
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("no-counters", "ncu was not found")
    assert diagnostic.remedy == "follow the message, or profile without --counters require"
    assert measure([[replace(on_gpu, counters=None)]]).runs[0].counters == "hardware counters were not read"


def blocks(registry) -> Graph:
    """Convolutions of every kind with activations and normalizations, views, shared inputs, and a vector at the end."""
    graph = Graph(
        [
            layer_("image", "input", dims="32x24x3"),
            layer_("first", "convolution", "image", features=16, kernel="3x3"),
            layer_("norm", "batch_normalization", "first"),
            layer_("bend", "activation", "norm", RELU),
            layer_("each", "depthwise_convolution", "bend", RELU, kernel="3x3"),
            layer_("half", "convolution", "each", RELU, features=24, kernel="3x3", stride="2x2"),
            layer_("large", "transposed_convolution", "half", features=16, kernel="2x2", stride="2x2"),
            layer_("both", "element_wise", "large,each", operation="add"),
            layer_("mean", "global_pooling", "both"),
            layer_("flat", "flatten", "mean"),
            layer_("scores", "fully_connected", "flat", features=10),
            layer_("shares", "activation", "scores", ActivationSpec("softmax")),
            layer_("result", "output", "shares", analysis_view="tensor"),
        ],
        name="blocks",
    )
    assert not Inference(graph, registry).diagnostics()
    return graph


def test_predictions_by_data_sheets_are_as_recorded(profiling_registry, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    graph = blocks(profiling_registry)
    lines = []
    for machine, precision, batch, size in (("t4", "fp16", 4, Size2D(512, 384)), ("EPYC 9654", "fp32", 1, None)):
        options = RunOptions("torch", precision, "nhwc", threads=7)
        run = predicted_run(graph, profiling_registry, options, batch=batch, size=size, machine=machine)
        lines += ["", f"--- {machine}", *described(run)]
    check_recorded("profiles/data_sheets.txt", "\n".join([*lines, ""]))


MODEL = CalibratedModel(
    "here",
    "test calibration",
    {
        "convolution": (CalibrationPoint((3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0), CalibrationPoint((4.0, 4.0, 8.0, 9.0, 0.0, 0.0), 20.0)),
        "element_wise": (CalibrationPoint((14.0,), 0.5), CalibrationPoint((17.0,), 0.75)),
        "relu": (CalibrationPoint((14.0,), 1.0),),
        "pooling": (CalibrationPoint((14.0,), 2.0),),
        "fully_connected": (CalibrationPoint((4.0, 3.0, 4.0, 0.0, 0.0, 2.0), 30.0),),
    },
    0.001,
    replace(NO_PEAKS, flops_per_s=measured(50e9), memory_bytes_per_s=measured(10e9)),
    fused=("activation", "relu", "batch_normalization"),
    run_ms=0.25,
)  # fmt: skip


@pytest.mark.parametrize("most", [2, 3, 4])
def test_so_many_modelled_layers_are_named(profiling_registry, monkeypatch, most):
    found = OperatorTimes((Sample(("first",), [0.004]),), frozenset(("each", "half", "mean")))
    monkeypatch.setattr(predicted_here, "MOST_NAMED", most)
    monkeypatch.setattr(predicted_here, "machine_peaks", lambda *_: PEAKS)
    monkeypatch.setattr(predicted_here, "calibrated", lambda *_: MODEL)
    monkeypatch.setattr(predicted_here, "_times", lambda *_: found)
    run = predicted_run(blocks(profiling_registry), profiling_registry, RunOptions("onnxruntime", threads=3))
    named = ["each", "half", "mean"]
    assert [name for name in named if name not in [row.name for row in run.operators]] == []
    assert run.notes[-1].rpartition(": ")[2] == ", ".join(named[:most]) + (" ..." if most < 3 else "")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "some",
            OperatorTimes(
                (Sample(("norm",), [0.002], "bn"), Sample(("first",), [0.004], "conv"), Sample(("large", "both"), [0.003], "deconv"),
                 Sample((), [0.0005], "reorder")),
                frozenset(("image", "bend", "each", "half", "mean", "scores", "shares")), 9, 4, 2.0,
            ),
        ),
        ("busy", OperatorTimes((Sample(("first",), [0.004]),), frozenset(), 1, 1, 31.0)),
        ("none", OperatorTimes()),
        (
            "apart",
            OperatorTimes(
                (Sample((), [0.0005, 0.0001], "reorder"), Sample(("shares",), [0.001], "softmax"), Sample((), [0.0002], "copy"),
                 Sample(("each", "both"), [0.003, 0.002, 0.009], "one kernel"), Sample(("first", "norm", "bend"), [0.002], "conv")),
                frozenset(("half", "large", "mean")), 5, 2, 5.0,
            ),
        ),
    ],
)  # fmt: skip
def test_predictions_for_this_machine_are_as_recorded(profiling_registry, monkeypatch, tmp_path, name, found):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    kept, options = tmp_path / "peaks.json", RunOptions("onnxruntime", threads=3)
    asked = []

    def answer(made, *given):
        asked.append(given)
        return made

    monkeypatch.setattr(predicted_here, "machine_peaks", lambda *given: answer(PEAKS, *given))
    monkeypatch.setattr(predicted_here, "calibrated", lambda options, registry, store: answer(MODEL, options, store))
    monkeypatch.setattr(predicted_here, "_times", lambda inference, *given: answer(found, *given))
    run = predicted_run(blocks(profiling_registry), profiling_registry, options, batch=2, store=kept, progress=print)
    assert asked[:2] == [(options, 2, kept, print), (options, kept)]
    assert asked[2:] == ([(options, kept)] if name != "busy" else [])
    check_recorded(f"profiles/here_{name}.txt", "\n".join([*described(run), ""]))


def test_costs_and_the_memory_of_training_are_as_recorded(profiling_registry):
    inference = Inference(blocks(profiling_registry), profiling_registry)
    lines = []
    for precision, batch in (("fp32", 1), ("bf16", 3)):
        table = cost_table(inference, precision=precision, batch=batch)
        lines += [f"--- {precision}, batch {batch}: {text(table.total())}"]
        for name, row in table.rows.items():
            lines.append(f"{name}: {text({f.name: getattr(row, f.name) for f in fields(row) if f.name != 'layer'})}")
            lines.append(f"  alone {text(table.group([name]))}")
        lines.append(f"first to bend: {text(table.group(['first', 'norm', 'bend']))}")
        lines.append(f"large and both: {text(table.group(['large', 'both']))}")
        for optimizer in ("sgd", "adamw"):
            memory = training_memory(table, optimizer)
            lines += [f"training with {memory.optimizer}: {memory.total}", *(f"  {text(row)}" for row in memory.rows)]
    check_recorded("profiles/costs.txt", "\n".join([*lines, ""]))
