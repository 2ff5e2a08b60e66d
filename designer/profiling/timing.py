"""Profiles a network: the time of the whole, the times of its steps, and the machine's peaks, as one record.

What is profiled is the network as it would be deployed: analysis layers and losses are left out, and the record says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.operators.training_branch import no_output
from designer.profiling.assemble import Run, assemble
from designer.profiling.cost import cost_table
from designer.profiling.machine import cpu_name, this_machine
from designer.profiling.peaks import Peaks, cached, measure_cpu
from designer.profiling.report import Record
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_api import Sample
from designer.runtime.engine_registry import default_engines
from designer.runtime.machine import threads
from designer.runtime.network import output_layers
from designer.runtime.plan import PartStep, make_plan
from designer.runtime.provenance import Provenance, provenance
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    from designer.runtime.api import Array
    from designer.runtime.session import Session

Progress = Callable[[int, int, str], None]
WARMUP = 2
SEED = 0
NOTEWORTHY = 0.01  # part of the time


def profile(
    session: Session,
    iterations: int = 10,
    *,
    warmup: int = WARMUP,
    progress: Progress | None = None,
    store: Path | None = None,
    peaks: Peaks | None = None,
) -> Record:
    """Profile the network of `session` at the size of what it was fed; inputs that have no data get seeded noise.

    `progress(done, total, text)` is called after every run. `peaks` replaces the measured peaks; `store` is the file that
    keeps them. Raises DiagnosticError like `Session.run`.
    """
    if not session.output_layers():
        raise DiagnosticError(no_output(session.graph, session.registry))
    graph = deploy(session.inference.graph, session.registry)
    inference = Inference(graph, session.registry)
    feeds: dict[str, Array] = {}
    for name in graph.layers:
        try:
            feeds[name] = session.fed_input(name)[1]
        except DiagnosticError:
            continue  # no input layer, or one without data
    left_out = [n for n in session.inference.graph.layers if n not in graph]
    notes = [f"left out, as in deployment: {', '.join(left_out)}"] if left_out else []
    return profile_network(
        inference,
        session.registry,
        session.weights,
        session.options,
        feeds,
        iterations,
        warmup=warmup,
        progress=progress,
        store=store,
        peaks=peaks,
        notes=notes,
        origin=provenance(session.graph.name, session.graph, session.weights, session.options),
    )


def profile_network(
    inference: Inference,
    registry: Registry,
    weights: Weights,
    options: RunOptions,
    feeds: Mapping[str, Array],
    iterations: int,
    *,
    warmup: int = WARMUP,
    progress: Progress | None = None,
    store: Path | None = None,
    peaks: Peaks | None = None,
    notes: list[str] | None = None,
    origin: Provenance | None = None,
) -> Record:
    """Profile a network without analysis layers whose shapes fit `feeds`.

    `origin` is the provenance of a network that was changed for this, by deployment for instance.
    """
    if iterations < 1:
        raise DiagnosticError(
            Diagnostic(
                "bad-iterations",
                tr("{iterations} iterations cannot be timed", iterations=iterations),
                remedy=tr("choose 1 or more"),
            )
        )
    part, wanted, inputs = whole_part(inference)
    notes = list(notes or ())
    values, batch = _feeds(inference, inputs, feeds, notes)
    total = 2 * (iterations + warmup) + 1
    done = 0

    def tick(text: str) -> Callable[[], None]:
        def step() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, total, text)

        return step

    if progress is not None:
        progress(0, total, "preparing")
    timer = default_engines().step_timer(inference, weights, options, part, wanted, values)
    whole = timer.whole(iterations, warmup, tick("whole network"))
    samples = timer.layers(iterations, warmup, tick("layers"))
    if peaks is None:
        if progress is not None:
            progress(done, total, "measuring the machine's peaks")
        peaks = machine_peaks(options, store)
    tick("peaks")()
    samples = _attributed(samples, notes)
    table = cost_table(inference, precision=options.precision, batch=batch)
    gpu: str = ""
    extra: dict[str, str] = {}
    if options.device != "cpu":
        from designer.profiling.gpu import gpu_versions

        gpu, extra = gpu_versions(options.device)
    run = Run(
        network=inference.graph.name,
        options=options_texts(options),
        iterations=iterations,
        warmup=warmup,
        inputs={n: dims_text(a.shape) for n, a in ((s.layer, v) for s, v in values.items())},
        weights_note=weights.note,
        notes=tuple(notes),
        provenance=origin or provenance(inference.graph.name, inference.graph, weights, options),
    )
    return assemble(table, samples, whole, peaks, this_machine(gpu=gpu, extra=extra), run)


def options_texts(options: RunOptions) -> dict[str, str]:
    """The options as a record holds them; `threads` as the number that is used."""
    return {
        "engine": options.engine,
        "precision": options.precision,
        "layout": options.layout,
        "device": options.device,
        "threads": str(threads(options)),
    }


def whole_part(inference: Inference) -> tuple[Part, tuple[Source, ...], tuple[str, ...]]:
    """All layers that the outputs need as one part, what it gives, and the inputs that feed it."""
    plan = make_plan(inference, [Source(n) for n in output_layers(inference)])
    parts = [step for step in plan.steps if isinstance(step, PartStep)]
    if len(parts) != 1 or len(plan.steps) != 1:
        raise DiagnosticError(
            Diagnostic(
                "nothing-to-profile",
                tr("the network has no layer that an engine runs between its inputs and outputs"),
                remedy=tr("add layers, and connect them to an output"),
            )
        )
    return parts[0].part, parts[0].wanted, plan.inputs


def _feeds(
    inference: Inference, inputs: tuple[str, ...], feeds: Mapping[str, Array], notes: list[str]
) -> tuple[dict[Source, Array], int]:
    """What each input gets, by tensor, and the batch size."""
    given = [feeds[n].shape[0] for n in inputs if n in feeds]
    batch = given[0] if given else 1
    rng = np.random.default_rng(SEED)
    values: dict[Source, Array] = {}
    noise = []
    for name in inputs:
        if name in feeds:
            values[Source(name)] = feeds[name]
            continue
        outputs = inference.states[name].outputs
        assert outputs is not None  # make_plan has checked that the network runs
        values[Source(name)] = rng.random(outputs[0].concrete(batch), np.float32)
        noise.append(name)
    if noise:
        notes.append(f"inputs of seeded noise at the document's size: {', '.join(noise)}")
    return values, batch


def _attributed(samples: list[Sample], notes: list[str]) -> list[Sample]:
    """Samples that belong to layers; the time of others becomes a note, so that it is not lost in silence."""
    other = [s for s in samples if not s.layers and s.seconds]
    rest = sum(median(s.seconds) for s in other)
    total = sum(median(s.seconds) for s in samples if s.seconds)
    if total > 0 and rest / total > NOTEWORTHY:
        names = ", ".join(dict.fromkeys(s.what for s in other))
        notes.append(f"{100 * rest / total:.0f} % of the steps' time is in kernels of no layer: {names}")
    return [s for s in samples if s.layers]


def machine_peaks(options: RunOptions, store: Path | None = None) -> Peaks:
    """The peaks of this machine for an engine, from the cache or measured now (about a second)."""
    if options.device != "cpu":
        from designer.profiling.gpu import gpu_key

        key = gpu_key(options.device, options.precision)
    else:
        version = this_machine().versions.get(default_engines().get(options.engine).package, "?")
        key = f"{cpu_name()} | {threads(options)} threads | {options.engine} {version}"
    return cached(key, lambda: measure_peaks(options), store)


def measure_peaks(options: RunOptions) -> Peaks:
    """The peaks of what `options` would run on, measured now."""
    if options.device != "cpu":
        from designer.profiling.gpu import measure_gpu

        return measure_gpu(options.device, options.precision)
    return measure_cpu(options.engine, threads(options))
