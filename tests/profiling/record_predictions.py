"""Records the operator times and run times that `test_predicted_here.py` checks the prediction with.

    PYTHONPATH=.:tests/profiling python tests/profiling/record_predictions.py

One thread, in processor time, so that other programs on the machine do not count. Run it again when a key changes, which includes
the torch data of an operator.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median

from generated_networks import generated_network

from designer.files.document import parse_document
from designer.graph.inference import Inference
from designer.operators.deploy import deploy
from designer.operators.registry import Registry, load
from designer.profiling import operator_times
from designer.profiling.predicted_here import step_timer
from designer.runtime import engine_api
from designer.runtime.api import RunOptions
from designer.runtime.engines import ort_steps, torch_steps, torch_timing

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = ("denoiser", "dncnn", "oidn_like", "residual_blocks")
GENERATED = range(10)
ROUNDS, RUNS = 3, 8


def recorded_file(engine: str) -> Path:
    return Path(__file__).parent / "recorded" / f"{engine}.json"


def networks(registry: Registry) -> dict[str, Inference]:
    graphs = {name: deploy(parse_document((SAMPLES / f"{name}.xml").read_bytes()).graph, registry) for name in NAMES}
    graphs |= {f"generated_{seed}": generated_network(seed) for seed in GENERATED}
    return {name: Inference(graph, registry) for name, graph in graphs.items()}


def main() -> None:
    for module in (torch_timing, torch_steps, ort_steps, engine_api):
        module.perf_counter = time.thread_time
    operator_times.BUSY_PERCENT = 100.0
    found = networks(load(entry_points=False))
    for engine in ("torch", "onnxruntime"):
        options = RunOptions(engine=engine, threads=1)
        record = {name: recorded(inference, options) for name, inference in found.items()}
        recorded_file(engine).parent.mkdir(exist_ok=True)
        recorded_file(engine).write_text(json.dumps(record, indent=1) + "\n")


def recorded(inference: Inference, options: RunOptions) -> dict[str, object]:
    """The median time of a run in ms, and of each operator by itself in s, measured in turns."""
    timer = step_timer(inference, options, 1)
    runs: list[float] = []
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "peaks.json"
            operator_times.operator_times(timer, "here", store)
            kept = json.loads(store.with_name("operators.json").read_text())["here"]["seconds"]
        for key, value in kept.items():
            seconds.setdefault(key, []).append(value)
        runs += timer.whole(RUNS, 1, lambda: None)
    return {"run_ms": median(runs) * 1e3, "seconds": {key: median(values) for key, values in seconds.items()}}


if __name__ == "__main__":
    main()
