"""Predicts a run on this machine: the sum of the operators, each measured by itself; operators that cannot be are modelled.

The network itself does not run. What is not in the sum: tensors that another operator pushed out of the cache or left in it, and
threads that wait for each other between operators.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.registry import Registry
from designer.profiling.calibration import calibrated
from designer.profiling.cost import CostTable
from designer.profiling.layer_work import layer_works
from designer.profiling.measure import MOST_NAMED, ON_CPU, SEED, machine_peaks, peaks_key, run_peaks
from designer.profiling.model import predict
from designer.profiling.network_part import whole_part
from designer.profiling.operator_times import LARGEST, OperatorTimes, operator_times
from designer.profiling.peaks import BUSY_PERCENT
from designer.profiling.quantities import ValueSource
from designer.profiling.rows import operator_rows, outside_row, peak_memory
from designer.profiling.schema import ProfileRun
from designer.runtime.api import Progress, RunOptions
from designer.runtime.checked_engine import CheckedTimer
from designer.runtime.engine_registry import default_engines
from designer.runtime.input_data import noise
from designer.runtime.provenance import written_at
from designer.texts import tr


def predict_here(
    inference: Inference,
    registry: Registry,
    options: RunOptions,
    table: CostTable,
    base: ProfileRun,
    store: Path | None = None,
    progress: Progress | None = None,
) -> ProfileRun:
    """The predicted run of the network of `table` on the processor; `base` gives the configuration."""
    found = _times(inference, options, table.batch, store, progress)
    missing = found.missing if found.samples else frozenset(work.layer for work in layer_works(table))
    peaks = run_peaks(machine_peaks(options, store))
    rows = [replace(row, alone=True) for row in operator_rows(table, found.samples, peaks, {}, ON_CPU)]
    notes = [_measured_note(found)] if rows else []
    if missing:
        model = calibrated(options, registry, store)
        modelled = predict(table, model, base)
        rows += [row for row in modelled.operators if not missing.isdisjoint(row.layers)]
        names = [row.name for row in modelled.operators if not missing.isdisjoint(row.layers)]
        layers = ", ".join(names[:MOST_NAMED]) + (" ..." if len(names) > MOST_NAMED else "")
        notes.append(tr("modelled by the {reason}: {layers}", reason=model.reason, layers=layers))
    order = {name: place for place, name in enumerate(table.rows)}
    rows.sort(key=lambda row: max(order[name] for name in row.layers))
    rows += [outside_row(sum(sample.seconds) * 1e3, None) for sample in found.samples if not sample.layers]
    return replace(
        base,
        time_ms=sum(row.time_ms for row in rows),
        operators=tuple(rows),
        source=ValueSource.MODELLED,
        date=written_at(),
        flops=table.total().flops,
        learned=table.total().parameters,
        peaks=peaks,
        peak_memory=peak_memory(table, rows),
        notes=tuple(notes),
    )


def step_timer(inference: Inference, options: RunOptions, batch: int) -> CheckedTimer | None:
    """The step timer of the network with seeded weights and inputs; None if the inputs are too large to be made."""
    part, wanted, inputs = whole_part(inference)
    kinds = {}
    for name in inputs:
        outputs = inference.states[name].outputs
        assert outputs is not None  # whole_part has checked that the network runs
        kinds[Source(name)] = outputs[0]
    if sum(kind.nbytes(batch) for kind in kinds.values()) > LARGEST:
        return None
    rng = np.random.default_rng(SEED)
    feeds = {source: noise(kind, batch, rng) for source, kind in kinds.items()}
    weights = fill_missing(Weights(), required_weights(inference), SEED)
    return default_engines().step_timer(inference, weights, options, part, wanted, feeds)


def _times(
    inference: Inference, options: RunOptions, batch: int, store: Path | None, progress: Progress | None
) -> OperatorTimes:
    """The times of the operators; none if they cannot run by themselves."""
    timer = step_timer(inference, options, batch)
    if timer is None:
        return OperatorTimes()
    try:
        return operator_times(timer, f"{peaks_key(options)} | {options.precision}", store, progress)
    except DiagnosticError:  # of an engine that cannot take this network apart
        return OperatorTimes()


def _measured_note(found: OperatorTimes) -> str:
    kept = found.different - found.fresh
    note = tr(
        "modelled: the network did not run; {different} different operators were measured one by one ({kept} of them earlier)",
        different=found.different,
        kept=kept,
    )
    if found.load <= BUSY_PERCENT:
        return note
    return f"{note}; " + tr(
        "other programs used {load:.0f} % of the cores, predict again when they are closed", load=found.load
    )
