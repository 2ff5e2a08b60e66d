"""Runs of generated networks with random times: all that is derived from them, as recorded.

The rows come from the costs of the layers, so that operations, bytes and memory are compared as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from generated_networks import generated_network
from recorded import check_lines

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.profiling.advice import Advisable, advise, measured_saving
from designer.profiling.cost import cost_table
from designer.profiling.devices import DEVICES
from designer.profiling.difference import configuration_differences, difference, differences
from designer.profiling.grouping import group_rows, precision_shares
from designer.profiling.heat import METRICS, critical_path, difference_heat, heat, in_scope
from designer.profiling.machine import Machine
from designer.profiling.matching import match_rows
from designer.profiling.model import DataSheetModel, predict
from designer.profiling.profile_files import from_json, to_csv, to_json
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.roofline import above_roof, place, quantile, spread
from designer.profiling.schema import Profile, ProfileRun, ranked
from designer.profiling.sweep import of_one_network, sweeps
from designer.profiling.what_if import OPTIMIZER_STATES, training_memory
from designer.units import digits

MACHINE = Machine("a processor", 2, "a card", "Linux")
BASE = ProfileRun("onnxruntime", "fp32", "nchw", "cpu", 1, "32x24", None, None, (), threads=2, iterations=9)


def run_of(graph: Graph, registry: Registry, draw: Random, **more: object) -> ProfileRun:
    """A run with the rows of a prediction and random times; some layers are one row, and some time is in none."""
    precision = str(more.get("precision", "fp32"))
    table = cost_table(Inference(graph, registry), precision=precision, batch=int(str(more.get("batch", 1))))
    model = DataSheetModel(draw.choice(DEVICES), precision)
    found = predict(table, model, replace(BASE, **{k: v for k, v in more.items() if k != "batch"}))  # type: ignore[arg-type]
    rows = []
    for row in found.operators:
        time_ms = row.time_ms * draw.choice([0.7, 1.0, 1.5, 4.0]) + draw.choice([0.0, 0.01])
        placed = place(time_ms, row.flops, row.bytes, model.peaks())
        rows.append(
            replace(
                row,
                time_ms=time_ms,
                spread_ms=draw.choice([None, 0.0, time_ms / 50]),
                saving_ms=placed.saving_ms,
                bound=placed.bound,
                memory_bytes=row.bytes * 2,
                precision=draw.choice(["", "", "fp16"]),
                occupancy=measured(draw.choice([10.0, 50.0])),
            )
        )
    if len(rows) > 3:
        first, second = rows[1:3]
        joined = replace(first, layers=(*first.layers, *second.layers), time_ms=first.time_ms + second.time_ms)
        rows[1:3] = [joined]
    total = sum(row.time_ms for row in rows) * 1.1
    made = replace(
        found,
        operators=tuple(rows),
        source=ValueSource.MEASURED,
        time_ms=total,
        spread_ms=total / 100,
        device=BASE.device,
    )
    return replace(made, **{key: value for key, value in more.items() if key in ("device", "turns", "load")})  # type: ignore[arg-type]


def shown(value: float | None) -> str:
    return "-" if value is None else digits(value)


def run_lines(run: ProfileRun, graph: Graph, registry: Registry) -> Iterator[str]:
    peaks = run.peaks
    yield f"  {run.configuration} {run.device}: {shown(run.time_ms)} of rows {shown(run.rows_ms)}, roof {shown(run.roof_ms)}, {run.bytes} B, {shown(run.flops_per_s)}"
    yield f"  peaks {peaks.flops_per_s if peaks is not None else None}"
    yield f"  memory {run.peak_memory}"
    for row in run.by_saving():
        numbers = (row.time_ms, row.flops_per_s, row.bytes_per_s, row.intensity, row.distance, run.share(row))
        yield f"    {row.name} | {row.type} | {row.summary} | {' '.join(map(shown, numbers))} | {row.flops} {row.bytes} {row.learned} | {row.bound} {row.at_roof}"
    yield f"  ranked {[row.name for row in ranked(run.operators)]}"
    for group in group_rows(run.operators, lambda row: row.type):
        total = group.total
        yield f"  group {group.key}: {total.layers} {shown(total.time_ms)} {total.flops} {total.bound} {shown(total.roof_ms)} {total.occupancy}"
    yield f"  precisions { ({key: tuple(map(shown, pair)) for key, pair in precision_shares(run).items()}) }"
    for metric in METRICS.values():
        found = heat(run, metric, lambda layer: layer if len(layer) % 3 else "")
        labels = {layer: (found.label(layer), shown(found.share(layer))) for layer in found.values}
        yield f"  heat {metric.id} {found.ends} {labels}"
    yield f"  critical {critical_path(run, graph)}"
    other = Graph([replace(layer, params={**layer.params, "features": "7"}) if layer.type == "convolution" and len(layer.name) % 2 else layer for layer in graph])  # fmt: skip
    matching = match_rows(run, Inference(other, registry))
    yield f"  matched {sorted(matching.rows)}, others {[row.name for row in matching.others]}"


def difference_lines(before: ProfileRun, after: ProfileRun) -> Iterator[str]:
    found = difference(before, after)
    yield f"  difference {shown(found.total.difference_ms)} noise {shown(found.total.noise_ms)} {found.total.verdict}; {found.doubt}"
    for row in found.rows:
        yield f"    {row.layers} {shown(row.before_ms)} {shown(row.after_ms)} noise {shown(row.noise_ms)} {row.verdict}"
    colors = difference_heat(found)
    yield f"    {colors.ends} { ({layer: colors.label(layer) for layer in colors.values}) }"
    scope = in_scope(colors, lambda layer: layer[:3])
    yield f"    { ({layer: (scope.label(layer), shown(scope.share(layer))) for layer in scope.values}) }"


def advice_lines(subject: Advisable, after: ProfileRun) -> Iterator[str]:
    for advice in advise(subject):
        yield f"  advice {advice.rule} {advice.layers}: {advice.message}; {advice.remedy}; {shown(advice.saving_ms)} {advice.reason} {advice.fold} {advice.source.value}"
        if advice.edit is not None:
            for name, (_, layer) in sorted(advice.edit.layers.items()):
                yield f"    {name}: {layer.type if layer else '-'} {dict(layer.params) if layer else ''} {list(map(str, layer.inputs)) if layer else ''}"
            yield f"    {advice.edit.title}"
        saving = measured_saving(advice, subject.run, after)
        yield f"    measured {saving.layers} {shown(saving.difference_ms)} {saving.verdict}"


def network_lines(seed: int, registry: Registry) -> Iterator[str]:
    draw = Random(seed)
    graph = inline(generated_network(seed), registry)
    table = cost_table(Inference(graph, registry), batch=2)
    yield f"=== network {seed}: {table.total()}"
    for name, row in table.rows.items():
        yield f"  {name} {row.type} {row.flops} {row.weight_bytes} {row.learned} {table.group([name])}"
    names = list(table.rows)
    yield f"  groups {table.group(names[:3])} {table.group(names[1:])}"
    for optimizer in OPTIMIZER_STATES:
        memory = training_memory(table, optimizer)
        parts = [(row.layer, row.weights, row.gradients, row.optimizer, row.activations) for row in memory.rows]
        yield f"  {optimizer} {memory.total} {parts if optimizer == 'adam' else ''}"
    first = run_of(graph, registry, draw, turns="a")
    same = run_of(graph, registry, draw, turns="a", load=measured(draw.choice([0.0, 30.0])))
    half = run_of(graph, registry, draw, precision="fp16", device="cuda:0")
    larger = [run_of(graph, registry, draw, batch=batch) for batch in (2, 4, 8)]
    other = run_of(graph, registry, draw, engine="torch", layout="nhwc")
    for run in (first, half):
        yield from run_lines(run, graph, registry)
    yield from difference_lines(first, same)
    yield from difference_lines(first, half)
    settings = {"engine": "onnxruntime", "precision": "fp32", "layout": "nchw"}
    yield from advice_lines(Advisable(graph, first, (*larger, other, half), settings), same)
    yield from advice_lines(Advisable(graph, replace(half, peaks=first.peaks), (same,), settings), same)
    every = [first, *larger, other, half, replace(first, size="64x48", time_ms=9.0)]
    for axis in ("batch", "size"):
        for found in sweeps(every, axis):  # type: ignore[arg-type]
            points = [
                (found.label(run), shown(found.position(run)), shown(found.throughput(run))) for run in found.runs
            ]
            yield f"  sweep {found.title} in {found.unit}: {points}, knee {found.label(found.knee)}"
    yield f"  one network {[of_one_network(first, run) for run in every]}"
    profile = Profile(MACHINE, "net", tuple(every))
    others = Profile(MACHINE, "net", (same, *reversed(larger), half))
    yield f"  pairs {[(one.before.configuration, one.after.configuration) for one in differences(profile, others)]}"
    yield f"  pairs {[(one.before.configuration, one.after.configuration) for one in configuration_differences(profile)]}"
    assert from_json(json.loads(to_json(profile))) == profile
    if seed == 0:
        yield from (f"  {line}" for line in to_csv(first, half).splitlines())


def test_all_that_is_derived_from_runs(profiling_registry: Registry) -> None:
    lines = [line for seed in range(6) for line in network_lines(seed, profiling_registry)]
    check_lines("profiles/random_runs.txt", lines)


def test_roofs_and_spreads() -> None:
    draw = Random(3)
    lines = []
    for number in range(40):
        device = DEVICES[number % len(DEVICES)]
        peaks = DataSheetModel(device, draw.choice(["fp32", "fp16"])).peaks()
        if number % 3 == 0:
            peaks = replace(peaks, cache_bytes=1 << 16, cache_bytes_per_s=measured(5e11))
        flops, moved = draw.choice([0, 10**6, 10**10]), draw.choice([0, 1000, 40_000, 10**8])
        time_ms = draw.choice([0.0, 1e-4, 0.5, 3.0])
        placed = place(time_ms, flops, moved, peaks)
        parts = (placed.roof_ms, placed.saving_ms, placed.compute.value, placed.memory.value)
        lines.append(
            f"{time_ms} {flops} {moved}: {placed.bound} {' '.join(map(shown, parts))} {placed.memory.reason} {above_roof(time_ms, 0.01, placed.roof_ms)}"
        )
        times = sorted(draw.uniform(0, 1) for _ in range(number % 7 + 1))
        lines.append(
            f"  spread {shown(spread(times))} {[shown(quantile(times, part)) for part in (0.0, 0.25, 0.5, 0.9, 1.0)]}"
        )
    check_lines("profiles/roofs.txt", lines)
