"""Measures profiles: what the window, `layerwright profile` and `make gpu-check` call.

The network is profiled as it is deployed, without analysis layers and losses. Runs of the whole network, without a profiler, alternate in blocks
with runs in which the engine times every step, so that a change of clock rate or load affects both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil, inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack
from uuid import uuid4

import numpy as np

from designer.files.weights import Weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import BATCH, Size2D, Size3D
from designer.operators.deploy import deploy
from designer.operators.library.input_output.input import Input
from designer.operators.registry import Registry
from designer.operators.training_branch import no_output
from designer.profiling.configurations import AS_OPENED, Grid
from designer.profiling.cost import CostTable, cost_table
from designer.profiling.counters import CounterResult
from designer.profiling.energy import energy_counter, energy_of, no_energy
from designer.profiling.launch import launch_overhead
from designer.profiling.live_memory import WEIGHTS, live_tensors
from designer.profiling.machine import Machine, cpu_name, this_machine
from designer.profiling.network_part import whole_part
from designer.profiling.peaks import BUSY_PERCENT, Peaks, busy_times, cached, foreign_load, keep, measure_cpu
from designer.profiling.quantities import Quantity, ValueSource, measured, unavailable
from designer.profiling.roofline import above_roof, saving_at, spread
from designer.profiling.rows import Counted, operator_rows, outside_row, peak_memory
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun, RunPeaks, ranked
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import Sample
from designer.runtime.engine_registry import default_engines
from designer.runtime.input_data import noise
from designer.runtime.machine import free_memory, threads
from designer.runtime.network import input_layers, operator_of
from designer.runtime.provenance import Provenance, provenance, written_at
from designer.texts import tr
from designer.units import binary, dims_text

if TYPE_CHECKING:
    from designer.runtime.api import Array
    from designer.runtime.session import Session

Progress = Callable[[int, int, str], None]
OnProfile = Callable[[Profile], None]
CounterSource = Callable[[Inference, RunOptions, int], CounterResult]
BLOCKS = 4  # at least
LARGEST_BLOCK = 25  # iterations
WARMUP = 2
FIRST = 10  # operators whose order must settle
SETTLED_FROM = 10  # iterations: fewer are a quick look
MOST_EXTRA = 3  # times the duration of the requested iterations, until the order settles
EXTRA_SECONDS = 20.0
SEED = 0
WITHOUT_WORK = ("output", "identity")  # an identity is also what the ports of a template become
STEPS = 1000  # of the progress of one configuration
MOST_NAMED = 20  # layers in a note
NOTEWORTHY = 0.002  # share of the whole network that gets a row
ON_CPU = "only NVIDIA GPUs have this counter; the run used the processor"
NOT_READ = "hardware counters were not read"


class Timer(Protocol):
    def whole(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[float]: ...
    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]: ...


@dataclass
class Timing:
    """Times of a run in s. `joules` and `metered` are the energy and duration of the `metered_runs` runs of the whole network."""

    whole: list[float] = field(default_factory=list)
    samples: dict[tuple[tuple[str, ...], str], Sample] = field(default_factory=dict)
    load: Quantity | None = None
    joules: float = 0.0
    metered: float = 0.0
    metered_runs: int = 0

    def add(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            known = self.samples.setdefault((sample.layers, sample.what), Sample(sample.layers, [], sample.what))
            known.seconds.extend(sample.seconds)


@dataclass(frozen=True)
class Measurement:
    """One configuration to measure: a deployed network at some size with feeds, and how often it runs.

    `peaks` replaces those of the machine, `checks` are added to the run. `counters` reads hardware counters; with `require_counters`
    it is an error if it cannot.
    """

    inference: Inference
    weights: Weights
    options: RunOptions
    feeds: Mapping[str, Array] = field(default_factory=dict)
    batch: int = 1
    iterations: int = 10
    warmup: int = WARMUP
    peaks: Peaks | None = None
    store: Path | None = None  # where peaks are kept
    counters: CounterSource | None = None
    require_counters: bool = False
    notes: tuple[str, ...] = ()
    checks: Mapping[str, Quantity] = field(default_factory=dict)
    origin: Provenance | None = None


def profile_session(
    session: Session,
    iterations: int = 10,
    grid: Grid = AS_OPENED,
    *,
    progress: Progress | None = None,
    on_profile: OnProfile | None = None,
    **more: Unpack[Details],
) -> Profile:
    """Profile the network of `session` in every configuration of `grid`, in turns as far as they fit in memory together.

    The inputs are those of the session, or seeded noise where they have no data and where the grid has batches or sizes. `on_profile` is
    called during the measurement with what was measured so far, marked partial. Raises DiagnosticError like `Session.run`.
    """
    found = configurations(session, iterations, grid, **more)
    return measure(in_turns(found), progress=progress, on_profile=on_profile)


class Details(TypedDict, total=False):
    """Fields of `Measurement` that all configurations share."""

    warmup: int
    peaks: Peaks | None
    store: Path | None
    counters: CounterSource | None
    require_counters: bool


def configurations(
    session: Session, iterations: int, grid: Grid = AS_OPENED, **more: Unpack[Details]
) -> list[Measurement]:
    """The network of `session` in every configuration of `grid`; that of the session is the first one."""
    if not session.output_layers():
        raise DiagnosticError(no_output(session.graph, session.registry))
    graph = deploy(session.inference.graph, session.registry)
    left_out = [name for name in session.inference.graph.layers if name not in graph]
    notes = (tr("left out, as in deployment: {layers}", layers=", ".join(left_out)),) if left_out else ()
    origin = provenance(session.graph.name, session.graph, session.weights, session.options)
    first = Measurement(
        Inference(graph, session.registry),
        session.weights,
        session.options,
        iterations=iterations,
        notes=notes,
        origin=origin,
        **more,
    )
    found = (
        [
            replace(first, inference=inference, batch=batch)
            for inference in (sized(graph, session.registry, size) for size in (grid.sizes or (None,)))
            for batch in (grid.batches or (1,))
        ]
        if grid.batches or grid.sizes
        else [replace(first, feeds=_fed(session, graph))]
    )
    return [replace(each, options=options) for each in found for options in grid.options(session.options)]


def in_turns(measurements: Sequence[Measurement], limit: int | None = None) -> list[list[Measurement]]:
    """Groups that fit in memory together, to be measured in turns. `limit` in bytes is half of what is free.

    Where one group is not enough, all runs have a note.
    """
    if limit is None:
        limit = free_device_memory(measurements[0].options.device) // 2
    groups: list[list[Measurement]] = []
    total = room = 0
    for measurement in measurements:
        needed = _memory(measurement)
        total += needed
        if not groups or needed > room:
            groups.append([])
            room = limit
        groups[-1].append(measurement)
        room -= needed
    if len(groups) == 1:
        return groups
    note = tr(
        "the {count} configurations need {total} together, more than half of the free memory: {groups} groups were measured one after "
        "the other, so compare runs of different groups with care",
        count=len(measurements),
        total=binary(total),
        groups=len(groups),
    )
    return [[replace(each, notes=(*each.notes, note)) for each in group] for group in groups]


def _memory(measurement: Measurement) -> int:
    """Bytes that a compiled configuration holds, roughly: its tensors at the peak, and weights twice, as engines keep copies in their order."""
    inference = measurement.inference
    batch = _batch(inference, _read(whole_part(inference)[2], measurement.feeds), measurement.batch)
    table = cost_table(inference, precision=measurement.options.precision, batch=batch)
    held = live_tensors(table, [(name,) for name, row in table.rows.items() if row.sources])
    return max((sum(tensors.values()) + tensors.get(WEIGHTS, 0) for tensors in held), default=0)


def measure(
    groups: Sequence[Sequence[Measurement]], *, progress: Progress | None = None, on_profile: OnProfile | None = None
) -> Profile:
    """Measure configurations of one network: one group after the other, and those of a group in turns.

    Turns are blocks of runs, so a change of clock rate or load affects all configurations of a group alike. Their runs have equal `turns`.
    """
    runs: list[ProfileRun] = []
    first = groups[0][0]
    network = first.inference.graph.name
    machine = machine_of(first.options)
    count = sum(map(len, groups))
    shares = [0.0] * count  # of each configuration that is done

    def reporter(number: int) -> Progress | None:
        title = f"{number + 1}/{count}: " if count > 1 else ""

        def report(done: int, total: int, text: str) -> None:
            assert progress is not None
            shares[number] = done / total
            progress(round(sum(shares) * STEPS), count * STEPS, title + text)

        return report if progress is not None else None

    for group in groups:
        active = [RunMeasurement(each, reporter(len(runs) + place)) for place, each in enumerate(group)]
        for _ in _turns(active):
            if on_profile is not None:
                on_profile(Profile(machine, network, (*runs, *(each.partial() for each in active))))
        turns = uuid4().hex if len(active) > 1 else ""
        runs += [replace(each.result(), turns=turns) for each in active]
    return Profile(machine, network, tuple(runs))


def _turns(active: Sequence[RunMeasurement]) -> Iterator[None]:
    """Measure blocks in turns: those that were requested, then more until the first operators keep their order. Yields between the turns."""
    began = perf_counter()
    while sum(each.block() for each in active):  # not any(): each has its turn
        yield
    now = perf_counter()
    end = now + min(MOST_EXTRA * (now - began), EXTRA_SECONDS)
    while not all(each.settled() for each in active) and perf_counter() < end:
        yield
        for each in active:
            each.extra_block()


class RunMeasurement:
    """The measurement of one configuration, block by block."""

    def __init__(self, measurement: Measurement, progress: Progress | None = None) -> None:
        _check_iterations(measurement.iterations)
        inference, options = measurement.inference, measurement.options
        part, wanted, inputs = whole_part(inference)
        values, batch, unfed = _feeds(inference, inputs, measurement.feeds, measurement.batch)
        self._measurement = measurement
        self._blocks = _blocks(measurement.iterations)
        self._done = 0
        runs = sum(self._blocks) + measurement.warmup + len(self._blocks) - 1
        self._tick = Ticks(2 * runs + 1, progress)
        self._tick.say(tr("preparing"))
        self._timer: Timer = default_engines().step_timer(inference, measurement.weights, options, part, wanted, values)
        self._table = cost_table(inference, precision=options.precision, batch=batch)
        self._timing = Timing()
        self._counted = self._read_counters(batch)
        self._peaks = measurement.peaks or _kept_peaks(options, measurement.store)
        notes = (tr("inputs of seeded noise: {inputs}", inputs=", ".join(unfed)),) if unfed else ()
        total = self._table.total()
        self._base = ProfileRun(
            engine=options.engine,
            precision=options.precision,
            layout=options.layout,
            device=options.device,
            batch=batch,
            size=_size(values),
            time_ms=None,
            spread_ms=None,
            operators=(),
            threads=threads(options),
            warmup=measurement.warmup,
            date=written_at(),
            inputs={source.layer: dims_text(array.shape) for source, array in values.items()},
            flops=total.flops,
            learned=total.parameters,
            weights=measurement.weights.note,
            notes=(*measurement.notes, *notes),
            checks=measurement.checks,
            provenance=_origin(measurement).texts(),
        )

    def _read_counters(self, batch: int) -> CounterResult:
        measurement = self._measurement
        if measurement.counters is None:
            return CounterResult(reason=NOT_READ)
        self._tick.say(tr("reading hardware counters"))
        counted = measurement.counters(measurement.inference, measurement.options, batch)
        if counted.reason and measurement.require_counters:
            remedy = tr("follow the message, or profile without --counters require")
            raise DiagnosticError(Diagnostic("no-counters", counted.reason, remedy=remedy))
        return counted

    def block(self) -> bool:
        """Measure the next block; whether there is another one."""
        if self._done < len(self._blocks):
            self._time(self._blocks[self._done], self._measurement.warmup if self._done == 0 else 1)
            self._done += 1
        return self._done < len(self._blocks)

    def extra_block(self) -> None:
        """Measure a block beyond the iterations that were requested."""
        self._time(self._blocks[0], 1)

    def _time(self, runs: int, warmup: int) -> None:
        _time_block(self._timer, self._timing, runs, warmup, self._tick, self._measurement.options.device)

    def settled(self) -> bool:
        """Whether the first operators have the same order by every other run as by the runs between.

        More runs are of no use after a few iterations, which are a quick look, and on a busy machine, where the order does not settle.
        """
        load = self._timing.load
        busy = load is not None and (load.value or 0.0) > BUSY_PERCENT
        return busy or self._measurement.iterations < SETTLED_FROM or self._first(0) == self._first(1)

    def _first(self, start: int) -> list[tuple[str, ...]]:
        """The layers of the first operators by every second run."""
        samples = [replace(each, seconds=each.seconds[start::2]) for each in self._timing.samples.values()]
        peaks = run_peaks(self._peaks) if self._peaks is not None else NO_PEAKS
        return [row.layers for row in ranked(operator_rows(self._table, samples, peaks, {}, ""))[:FIRST]]

    def partial(self) -> ProfileRun:
        """What was measured so far, marked partial."""
        done, wanted = len(self._timing.whole), self._measurement.iterations
        options = self._measurement.options
        run = _run(self._base, self._table, self._timing, self._peaks, self._counted, options)
        text = (
            tr("ended after {done} of {wanted} iterations", done=done, wanted=wanted)
            if done < wanted
            else tr("ended after {done} iterations, before the order of the first operators settled", done=done)
        )
        return replace(run, partial=text)

    def result(self) -> ProfileRun:
        """The run, with the peaks of the machine. Peaks that the run exceeds are measured again."""
        options, store = self._measurement.options, self._measurement.store
        peaks = self._peaks
        if peaks is None:
            self._tick.say(tr("measuring the peaks of the machine"))
            peaks = machine_peaks(options, store)
        run = _run(self._base, self._table, self._timing, peaks, self._counted, options)
        exceeded = any(above_roof(row.time_ms, row.spread_ms, row.roof_ms) for row in run.operators)
        if exceeded and self._measurement.peaks is None:
            self._tick.say(tr("measuring the peaks of the machine again"))
            peaks = remeasured(options, peaks, store)
            run = _run(self._base, self._table, self._timing, peaks, self._counted, options)
        self._tick()
        notes = list(run.notes)
        fast = [
            row.name
            for row in run.operators
            if row.bound != "launch" and above_roof(row.time_ms, row.spread_ms, row.roof_ms)
        ]
        if fast:
            names = ", ".join(fast[:MOST_NAMED]) + (" ..." if len(fast) > MOST_NAMED else "")
            notes.append(
                tr(
                    "above the roof, with fewer operations or bytes than counted or peaks measured too low: {layers}",
                    layers=names,
                )
            )
        if not self.settled():
            notes.append(
                tr(
                    "the order of the first {count} operators did not settle in {runs} runs; measure again with more",
                    count=FIRST,
                    runs=run.iterations,
                )
            )
        return replace(run, notes=tuple(notes))


def _time_block(timer: Timer, timing: Timing, runs: int, warmup: int, tick: Ticks, device: str) -> None:
    """One block of runs of the whole network, and one of runs with times of the steps."""
    before = busy_times()
    with tick.text(tr("whole network")), _metered(timing, device, runs + warmup):
        timing.whole += timer.whole(runs, warmup, tick)
    with tick.text(tr("operators")):
        timing.add(timer.layers(runs, warmup, tick))
    load = foreign_load(before)
    if load.value is not None and (timing.load is None or load.value > (timing.load.value or 0.0)):
        timing.load = load


@contextmanager
def _metered(timing: Timing, device: str, runs: int) -> Iterator[None]:
    read = energy_counter(device)
    if isinstance(read, str):
        yield
        return
    before, began = read(), perf_counter()
    yield
    timing.metered += perf_counter() - began
    timing.joules += read() - before
    timing.metered_runs += runs


def _run(
    base: ProfileRun,
    table: CostTable,
    timing: Timing,
    peaks: Peaks | None,
    counted: CounterResult,
    options: RunOptions,
) -> ProfileRun:
    """The run from what was measured so far."""
    kept = run_peaks(peaks) if peaks is not None else NO_PEAKS
    samples = list(timing.samples.values())
    no_counters = ON_CPU if options.device == "cpu" else counted.reason
    utilization: Counted = {(layer,): values for layer, values in counted.layers.items()}
    rows = operator_rows(table, samples, kept, utilization, no_counters)
    whole_ms = median(timing.whole) * 1e3
    stray = [sample for sample in samples if sample.seconds and not sample.layers]
    rows = fit_rows(rows, stray, whole_ms, spread(timing.whole))
    notes = [*base.notes, *([kept.note] if kept.note else [])]
    ran = {name for row in rows for name in row.layers}
    absent = [
        name for name, row in table.rows.items() if name not in ran and row.sources and row.type not in WITHOUT_WORK
    ]
    if absent:
        names = ", ".join(absent[:MOST_NAMED]) + (" ..." if len(absent) > MOST_NAMED else "")
        notes.append(tr("without time in this run: {layers}", layers=names))
    if timing.load is not None and (timing.load.value or 0.0) > BUSY_PERCENT:
        notes.append(
            tr(
                "other programs used {load:.0f} % of the cores during the run; close them and measure again",
                load=timing.load.value,
            )
        )
    read = energy_counter(options.device)
    energy = (
        no_energy(read)
        if isinstance(read, str)
        else energy_of(timing.joules, timing.metered, timing.metered_runs, base.flops)
    )
    return replace(
        base,
        time_ms=whole_ms,
        spread_ms=spread(timing.whole),
        operators=rows,
        iterations=len(timing.whole),
        peaks=kept,
        load=timing.load or base.load,
        overhead=profiling_overhead(timing),
        counters=no_counters,
        peak_memory=peak_memory(table, rows),
        energy=energy,
        notes=tuple(notes),
    )


def fit_rows(
    rows: tuple[OperatorProfile, ...], stray: Sequence[Sample], whole_ms: float, whole_spread_ms: float | None
) -> tuple[OperatorProfile, ...]:
    """Rows whose sum is the time of the whole network.

    Time of the whole network that no row has becomes a row without layers. If the rows take longer than the network, because the
    profiler adds time to each step, all are scaled by the same factor. `stray` are times of kernels of no layer.
    """
    summed = sum(row.time_ms for row in rows) + sum(median(sample.seconds) for sample in stray) * 1e3
    factor = whole_ms / summed if summed > whole_ms else 1.0
    if factor < 1.0:
        rows = tuple(_scaled(row, factor) for row in rows)
    outside_ms = whole_ms - sum(row.time_ms for row in rows)
    if outside_ms > NOTEWORTHY * whole_ms:
        kernels = ", ".join(dict.fromkeys(sample.what for sample in stray if sample.what))
        rows = (*rows, outside_row(outside_ms, whole_spread_ms, kernels))
    return rows


def profiling_overhead(timing: Timing) -> Quantity:
    """What profiling adds to a run in percent: of the fastest runs, because other programs disturb the median of both."""
    profiled = [sum(steps) for steps in zip(*(s.seconds for s in timing.samples.values() if s.seconds), strict=False)]
    if not profiled or not timing.whole:
        return unavailable("no run was profiled")
    added = 100 * (min(profiled) / min(timing.whole) - 1)
    return measured(max(0.0, added), "sum of the steps in the fastest profiled run over the fastest run of the network")


def _scaled(row: OperatorProfile, factor: float) -> OperatorProfile:
    time_ms = row.time_ms * factor
    saving_ms = row.saving_ms
    if saving_ms and row.roof_ms is not None:
        saving_ms = saving_at(time_ms, row.roof_ms)
    return replace(
        row,
        time_ms=time_ms,
        spread_ms=None if row.spread_ms is None else row.spread_ms * factor,
        saving_ms=saving_ms,
        memory_throughput=_in_time(row.memory_throughput, factor),
        compute_throughput=_in_time(row.compute_throughput, factor),
    )


def _in_time(found: Quantity, factor: float) -> Quantity:
    """A throughput that follows from the time of a step, after the time was scaled; a hardware counter stays."""
    if found.value is None or found.source is not ValueSource.MODELLED:
        return found
    return replace(found, value=found.value / factor)


# --- networks and inputs -----------------------------------------------------------------------------------------


def sized(graph: Graph, registry: Registry, size: Size2D | None) -> Inference:
    """The network with its first image input at `size`, and other images scaled by the same factors; None: as it is."""
    result, inference = graph.copy(), Inference(graph, registry)
    factors: tuple[float, float] | None = None
    for name in input_layers(graph, inference) if size is not None else ():
        dims = getattr(operator_of(inference, name), "dims", None)
        if not isinstance(dims, Size3D):
            continue  # not an image
        assert size is not None
        factors = factors or (size.width / dims.width, size.height / dims.height)
        changed = Size3D(max(1, round(dims.width * factors[0])), max(1, round(dims.height * factors[1])), dims.channels)
        result.apply(set_params(result, {name: {"dims": str(changed)}}))
    return Inference(result, registry)


def fixed_batch(inference: Inference) -> int:
    """The batch that the images of a network have, whatever is asked for; 0: any."""
    operators = (operator_of(inference, name) for name in input_layers(inference.graph, inference))
    return max((operator.batch for operator in operators if isinstance(operator, Input)), default=0)


def _fed(session: Session, graph: Graph) -> dict[str, Array]:
    feeds: dict[str, Array] = {}
    for name in graph.layers:
        try:
            feeds[name] = session.fed_input(name)[1]
        except DiagnosticError:
            continue  # not an input layer, or one without data
    return feeds


def _feeds(
    inference: Inference, inputs: tuple[str, ...], feeds: Mapping[str, Array], batch: int
) -> tuple[dict[Source, Array], int, list[str]]:
    """The tensor of each input, the batch size, and the inputs that get seeded noise."""
    batch = _batch(inference, _read(inputs, feeds), batch)
    rng = np.random.default_rng(SEED)
    values: dict[Source, Array] = {}
    unfed = []
    for name in inputs:
        if name in feeds:
            values[Source(name)] = feeds[name]
            continue
        outputs = inference.states[name].outputs
        assert outputs is not None  # make_plan has checked that the network runs
        values[Source(name)] = noise(outputs[0], batch, rng)
        unfed.append(name)
    return values, batch, unfed


def _read(inputs: tuple[str, ...], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The given tensors of the inputs that the network reads."""
    return {name: feeds[name] for name in inputs if name in feeds}


def _batch(inference: Inference, feeds: Mapping[str, Array], batch: int) -> int:
    """The batch of the first fed tensor whose batch is open, else that of the images, else `batch`."""
    kinds = ((array, (inference.states[name].outputs or ())[:1]) for name, array in feeds.items())
    given = [array.shape[0] for array, kind in kinds if kind and BATCH in kind[0].shape[:1]]
    return given[0] if given else fixed_batch(inference) or batch


def _size(values: Mapping[Source, Array]) -> str:
    image = next((array for array in values.values() if array.ndim == 4), None)
    return f"{image.shape[3]}x{image.shape[2]}" if image is not None else ""


def _origin(measurement: Measurement) -> Provenance:
    graph = measurement.inference.graph
    return measurement.origin or provenance(graph.name, graph, measurement.weights, measurement.options)


def _check_iterations(iterations: int) -> None:
    if iterations < 1:
        message = tr("{iterations} iterations cannot be timed", iterations=iterations)
        raise DiagnosticError(Diagnostic("bad-iterations", message, remedy=tr("choose 1 or more")))


def _blocks(iterations: int) -> list[int]:
    """Iterations of each block, as equal as possible; what a canceled run loses is at most the last block."""
    count = min(max(BLOCKS, ceil(iterations / LARGEST_BLOCK)), iterations)
    return [iterations // count + (number < iterations % count) for number in range(count)]


class Ticks:
    """Counts runs and reports them as progress."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0
        self._text = ""

    def __call__(self) -> None:
        self._done = min(self._done + 1, self._total)  # blocks until the order settles are not in the total
        self.say(self._text)

    def say(self, text: str) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total, text)

    @contextmanager
    def text(self, text: str) -> Iterator[None]:
        self._text = text
        yield


# --- machine and peaks -------------------------------------------------------------------------------------------


def machine_of(options: RunOptions) -> Machine:
    """This machine, with the GPU that `options` use."""
    if options.device == "cpu":
        return this_machine()
    from designer.profiling.gpu import gpu_versions

    gpu, versions = gpu_versions(options.device)
    return this_machine(gpu=gpu, extra=versions)


def free_device_memory(device: str) -> int:
    """Bytes that are free where `device` keeps its tensors."""
    if device == "cpu":
        return free_memory()
    from designer.profiling.gpu import free_gpu_memory

    return free_gpu_memory(device)


def machine_peaks(options: RunOptions, store: Path | None = None) -> Peaks:
    """The peaks of this machine for an engine, kept or measured now (about a second)."""
    return cached(peaks_key(options), lambda: measure_peaks(options), store)


def remeasured(options: RunOptions, known: Peaks, store: Path | None = None) -> Peaks:
    """The larger of `known` and of peaks measured now: a peak can only be measured too low, the overhead of a launch too high."""
    fresh = measure_peaks(options)
    best = replace(
        fresh,
        compute=_larger(known.compute, fresh.compute),
        cache=_larger(known.cache, fresh.cache),
        memory=_larger(known.memory, fresh.memory),
        launch=min(known.launch, fresh.launch, key=lambda found: inf if found.value is None else found.value),
    )
    keep(peaks_key(options), best, store)
    return best


def _larger(one: Quantity, other: Quantity) -> Quantity:
    return max(one, other, key=lambda found: found.value or 0.0)


def _kept_peaks(options: RunOptions, store: Path | None) -> Peaks | None:
    from designer.profiling.peaks import kept

    return kept(peaks_key(options), store)


def peaks_key(options: RunOptions) -> str:
    if options.device != "cpu":
        from designer.profiling.gpu import gpu_key

        return f"{gpu_key(options.device, options.precision)} | {options.layout}"
    version = this_machine().versions.get(default_engines().get(options.engine).package, "?")
    return f"{cpu_name()} | {threads(options)} threads | {options.engine} {version} | {options.layout}"


def measure_peaks(options: RunOptions) -> Peaks:
    """The peaks of what `options` run on, measured now."""
    if options.device != "cpu":
        from designer.profiling.gpu import measure_gpu

        peaks = measure_gpu(options.device, options.precision)
    else:
        peaks = measure_cpu(options.engine, threads(options))
    return replace(peaks, launch=launch_overhead(options))


def run_peaks(peaks: Peaks) -> RunPeaks:
    """The peaks as a profile has them."""
    return RunPeaks(
        peaks.compute,
        peaks.memory,
        peaks.cache,
        peaks.cache_bytes,
        peaks.launch,
        others=peaks.others,
        date=peaks.date,
        note=peaks.note,
    )


_UNMEASURED = unavailable("the peaks of the machine were not measured")
NO_PEAKS = RunPeaks(_UNMEASURED, _UNMEASURED, _UNMEASURED)
