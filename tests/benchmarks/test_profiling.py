"""What profiling costs and how far its values can be trusted.

`make bench` measures at full size; an ordinary test run goes through the same code once, small. Times are only comparable on
a quiet machine: the header of the table has the load.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest
from generated_networks import generated_network

from designer.files.document import parse_document
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.inference import Inference
from designer.graph.types import Size2D
from designer.operators.deploy import deploy
from designer.operators.registry import Registry, load
from designer.operators.torch_program import build_program
from designer.profiling.cost import cost_table
from designer.profiling.machine import Machine
from designer.profiling.measure import Measurement, measure, measure_peaks, peaks_key, sized
from designer.profiling.network_part import whole_part
from designer.profiling.peaks import Peaks, save_store
from designer.profiling.profile_files import load_profile, save_profile
from designer.profiling.schema import TIE, OperatorProfile, Profile, ProfileRun
from designer.profiling.what_if import predicted_run
from designer.runtime.api import RunOptions

pytest.importorskip("pytest_benchmark")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from designer.runtime.engines.torch_engine import Interpreter, build_module

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = ("denoiser", "dncnn", "oidn_like", "residual_blocks")
ENGINES = ("onnxruntime", "torch")
FIRST = 10
SMALL = Size2D(32, 32)


@pytest.fixture(scope="module")
def registry():
    return load(entry_points=False)


@pytest.fixture(scope="module")
def samples(registry) -> dict[str, Inference]:
    found = {}
    for name in NAMES:
        graph = parse_document((SAMPLES / f"{name}.xml").read_bytes()).graph
        found[name] = Inference(deploy(graph, registry), registry)
    return found


def measurement(inference: Inference, engine: str, iterations: int, peaks=None) -> Measurement:
    weights = fill_missing(Weights(), required_weights(inference), 0)
    return Measurement(inference, weights, RunOptions(engine=engine), iterations=iterations, peaks=peaks)


@cache
def peaks_of(options: RunOptions) -> Peaks:
    return measure_peaks(options)


@pytest.mark.bench
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_sum_to_the_whole_and_profiling_costs_little(benchmark, report, samples, registry, engine):
    inference, iterations = samples["denoiser"], 40
    if benchmark.disabled:
        inference, iterations = sized(inference.graph, registry, SMALL), 4
    peaks = peaks_of(RunOptions(engine=engine))
    first, second = measure([[measurement(inference, engine, iterations, peaks) for _ in range(2)]]).runs
    report.value(f"{engine}: profiling adds", first.overhead.value, "%", target=10)
    report.value(f"{engine}: rows against the whole", 100 * abs(first.rows_ms / first.time_ms - 1), "%", target=5)
    outside = sum(row.time_ms for row in first.operators if not row.layers)
    report.value(f"{engine}: time in no operator", 100 * outside / first.time_ms, "%", target=5)
    report.value(
        f"{engine}: first {FIRST} operators, other places in a second profile", unlike(first, second), "", target=0
    )
    report.value(f"{engine}: those beyond the noise", swapped(first, second), "", target=0)
    report.value(f"{engine}: other programs during the run", first.load.value or 0.0, "%", target=5)
    benchmark.pedantic(lambda: measure([[measurement(inference, engine, 4, peaks)]]), rounds=1)


def unlike(one: ProfileRun, other: ProfileRun) -> float:
    """How many of the first ten ranks have other operators in another profile."""
    first, second = (run.by_saving()[:FIRST] for run in (one, other))
    return float(sum(a.layers != b.layers for a, b in zip(first, second, strict=True)))


def swapped(one: ProfileRun, other: ProfileRun) -> float:
    """How many pairs of the first ten operators have another order in another profile, and savings that differ by more than the noise."""
    places = {row.layers: place for place, row in enumerate(other.by_saving())}
    rows = {row.layers: row for row in other.operators}
    return float(
        sum(
            places[above.layers] > places[below.layers]
            and (_apart(above, below) or _apart(rows[above.layers], rows[below.layers]))
            for above, below in combinations(one.by_saving()[:FIRST], 2)
        )
    )


def _apart(one: OperatorProfile, other: OperatorProfile) -> bool:
    savings = [row.saving_ms or 0.0 for row in (one, other)]
    noise = max(row.spread_ms or 0.0 for row in (one, other))
    return abs(savings[0] - savings[1]) > max(2 * TIE * max(savings), noise)


def test_flops_equal_torchs_counter(benchmark, report, samples):
    from torch.utils.flop_counter import FlopCounterMode

    differences = 0
    for inference in samples.values():
        part, wanted, inputs = whole_part(inference)
        program = build_program(inference, part.layers, part.feeds, wanted)
        feeds = [torch.zeros(inference.states[name].outputs[0].concrete(1), device="meta") for name in inputs]
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            Interpreter(build_module(program).to("meta"), program)(feeds)
        differences += abs(counter.get_total_flops() - cost_table(inference).total().flops)
    assert differences == 0
    report.value("FLOPs of the samples that differ from torch's counter", differences, "FLOP", target=0)
    benchmark.pedantic(lambda: [cost_table(inference) for inference in samples.values()], rounds=1)


def test_a_report_of_3000_operators_is_read(benchmark, report, tmp_path):
    count = 30 if benchmark.disabled else 3000
    rows = tuple(
        OperatorProfile(
            (f"layer_{n}",), "convolution", 0.1 + n % 7, 0.01, inputs=("N x 8 x 8 x 8",), outputs=("N x 8 x 8 x 8",)
        )
        for n in range(count)
    )
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", sum(row.time_ms for row in rows), 0.1, rows)
    path = tmp_path / "profile.json"
    save_profile(path, Profile(Machine("a processor", 2), "large", (run,)))

    def read():
        return load_profile(path).runs[0].by_saving()

    found = benchmark(read)
    assert len(found) == count
    report.median("read a profile of 3,000 operators and sort it", target=1000)


@pytest.mark.parametrize("engine", ENGINES)
def test_predicted_times(benchmark, report, samples, registry, engine, tmp_path):
    if benchmark.disabled:
        groups, rounds = {"samples": [sized(samples["denoiser"].graph, registry, SMALL)]}, 1
    else:
        generated = [Inference(generated_network(seed), registry) for seed in range(10)]
        groups, rounds = {"samples": [*samples.values()], "generated networks": generated}, 3
    options = RunOptions(engine=engine)
    peaks = peaks_of(options)
    save_store(tmp_path / "peaks.json", peaks_key(options), peaks)
    for group, networks in groups.items():
        errors = [deviation(inference, registry, options, peaks, tmp_path, rounds) for inference in networks]
        report.value(f"{engine}, {group}: median deviation of the predicted time", median(errors), "%", target=25)
        report.value(f"{engine}, {group}: largest deviation of the predicted time", max(errors), "%", target=25)
    last = networks[-1]
    benchmark.pedantic(lambda: predicted(last, registry, options, tmp_path), rounds=1)


def predicted(inference: Inference, registry: Registry, options: RunOptions, folder: Path) -> float:
    return predicted_run(inference.graph, registry, options, store=folder / "peaks.json").time_ms


def deviation(
    inference: Inference, registry: Registry, options: RunOptions, peaks: Peaks, folder: Path, rounds: int
) -> float:
    """The deviation in percent of the predicted time from the measured one: medians of both, taken in turns."""
    times, predictions = [], []
    for _ in range(rounds):
        (folder / "operators.json").unlink(missing_ok=True)  # each prediction measures all operators
        predictions.append(predicted(inference, registry, options, folder))
        (run,) = measure([[measurement(inference, options.engine, 2 if rounds == 1 else 10, peaks)]]).runs
        times.append(run.time_ms)
    error = 100 * abs(median(predictions) / median(times) - 1)
    print(
        f"{options.engine} {inference.graph.name}: predicted {median(predictions):.3g} ms, measured {median(times):.3g} ms, "
        f"{error:.0f} %, other programs {run.load.value or 0.0:.0f} %",
        file=sys.stderr,
    )
    return error
