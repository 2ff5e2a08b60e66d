"""The overhead of launching a step: the shortest time of any step, measured on steps that have next to nothing to do."""

from __future__ import annotations

from statistics import median

import numpy as np

from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.profiling.network_part import whole_part
from designer.profiling.quantities import Quantity, measured, unavailable
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines

STEPS = 8
RUNS = 20


def launch_overhead(options: RunOptions) -> Quantity:
    """The median time in ms of additions of 4 x 4 numbers with an engine."""
    layers = [Layer("image", "input", params={"dims": "4x4x1"})]
    for number in range(STEPS):
        source = Source(layers[-1].name)
        layers.append(Layer(f"sum_{number}", "element_wise", inputs=(source, source), params={"operation": "add"}))
    layers.append(Layer("result", "output", inputs=(Source(layers[-1].name),)))
    inference = Inference(Graph(layers), load(entry_points=False))
    part, wanted, _ = whole_part(inference)
    feeds = {Source("image"): np.ones((1, 1, 4, 4), np.float32)}
    timer = default_engines().step_timer(inference, Weights(), options, part, wanted, feeds)
    times = [median(s.seconds) / len(s.layers) for s in timer.layers(RUNS, 3, lambda: None) if s.seconds and s.layers]
    if not times:
        return unavailable("the engine reports no times of small steps")
    return measured(median(times) * 1e3, f"median of {len(times)} additions of 4 x 4 numbers")
