"""A run for hardware counters: this module starts `ncu`, and runs the network in the process that ncu watches.

Weights are seeded random values, because the counters do not depend on them. Needs torch and numpy only, for `make gpu-check`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.process import module_command
from designer.files.document import parse_document, write_document
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.inference import Inference
from designer.operators.registry import default_registry
from designer.profiling.counters import RANGE, CounterResult, read_counters
from designer.profiling.measure import SEED
from designer.profiling.network_part import whole_part
from designer.runtime.api import RunOptions
from designer.runtime.engines.pytorch import TORCH
from designer.runtime.input_data import noise

ON_CPU = "hardware counters need an NVIDIA GPU; choose the device cuda"
ONLY_TORCH = "hardware counters are read with the engine torch only; choose it"


def count(inference: Inference, options: RunOptions, batch: int) -> CounterResult:
    """Read the counters of a deployed network on the device of `options`."""
    if options.device == "cpu":
        return CounterResult(reason=ON_CPU)
    if options.engine != TORCH.name:
        return CounterResult(reason=ONLY_TORCH)
    import torch

    with tempfile.TemporaryDirectory(prefix="layerwright-counted-") as folder:
        document = Path(folder) / "network.xml"
        document.write_bytes(write_document(inference.graph))
        command = module_command(
            "app.engine.counted_run",
            str(document),
            f"--precision={options.precision}",
            f"--layout={options.layout}",
            f"--device={options.device}",
            f"--batch={batch}",
            *(f"--agreed={digest}" for digest in options.agreed),
        )
        capability = torch.cuda.get_device_capability(torch.device(options.device))
        return read_counters(command, whole_part(inference)[0].layers, capability)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the network once, between the start and stop of the profiler."""
    from designer.runtime.engines.torch_engine import TorchEngine
    from designer.runtime.engines.torch_timing import TorchTimer

    given = _arguments(arguments)
    reading = parse_document(given.document.read_bytes(), str(given.document), validate=False)
    assert reading.graph is not None, reading.diagnostics
    inference = Inference(reading.graph, default_registry())
    part, wanted, _ = whole_part(inference)
    options = RunOptions(
        engine=TORCH.name,
        precision=given.precision,
        layout=given.layout,
        device=given.device,
        agreed=tuple(given.agreed),
    )
    weights = fill_missing(Weights(source="none"), required_weights(inference), SEED)
    rng = np.random.default_rng(SEED)
    feeds = {}
    for source in part.feeds:
        kind = inference.type_of(source)
        assert kind is not None
        feeds[source] = noise(kind, given.batch, rng)
    timer = TorchTimer(TorchEngine(inference, weights, options), part, wanted, feeds)
    numbers = {layer: number for number, layer in enumerate(part.layers)}
    timer.counted(lambda layer: f"{RANGE}{numbers[layer]}")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--layout", default="nchw")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--agreed", action="append", default=[])
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
