"""Times ONNX Runtime's kernels with its profiler and assigns them to layers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.runtime.engine_api import Sample, SingleStep, StepTimer
from designer.runtime.engines.fusion import KernelGroup, Node, groups
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.engines.ort import WRONG, runtime, session_options
from designer.runtime.engines.ort_steps import single_steps
from designer.runtime.machine import threads

if TYPE_CHECKING:
    from onnx import ModelProto


class OrtTimer(StepTimer):
    """Times groups of kernels with ONNX Runtime's profiler, FP32 on the CPU."""

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        part, options = self.part, self.engine.options
        model = self._model()
        with tempfile.TemporaryDirectory(prefix="layerwright-profile-") as folder:
            settings = self._settings()
            settings.enable_profiling = True
            settings.profile_file_prefix = str(Path(folder) / "run")
            optimized = Path(folder) / "optimized.onnx"
            settings.optimized_model_filepath = str(optimized)
            session = runtime().InferenceSession(
                serialized(model), settings, providers=["CPUExecutionProvider"], disabled_optimizers=[*WRONG]
            )
            fed = {}
            for value, source in zip(session.get_inputs(), part.feeds, strict=True):
                array = self.feeds[source]
                if options.layout == "nhwc" and array.ndim == 4:
                    array = array.transpose(0, 2, 3, 1)
                fed[value.name] = np.ascontiguousarray(array)
            for _ in range(warmup + runs):
                session.run(None, fed)
                tick()
            events = json.loads(Path(session.end_profiling()).read_text())
            found = groups(_nodes(model.graph.node), _nodes(_loaded(optimized).graph.node), part.layers)
        return samples(events, found, warmup)

    def single_steps(self) -> list[SingleStep]:
        """The kernels of the model as ONNX Runtime optimizes it for the sizes of the feeds."""
        model = self._model()
        sizes = self._symbolic_sizes(model)
        with tempfile.TemporaryDirectory(prefix="layerwright-profile-") as folder:
            settings = self._settings()
            path = Path(folder) / "optimized.onnx"
            settings.optimized_model_filepath = str(path)
            for name, size in sizes.items():
                settings.add_free_dimension_override_by_name(name, size)
            runtime().InferenceSession(
                serialized(model), settings, providers=["CPUExecutionProvider"], disabled_optimizers=[*WRONG]
            )
            optimized = _loaded(path, weights=True)
        found = groups(_nodes(model.graph.node), _nodes(optimized.graph.node), self.part.layers)
        return single_steps(optimized, found, sizes, threads(self.engine.options))

    def _model(self) -> ModelProto:
        engine = self.engine
        return build_model(engine.inference, self.part, self.wanted, engine.weights, layout=engine.options.layout)

    def _settings(self) -> Any:
        ort = runtime()
        settings = session_options(3)
        settings.intra_op_num_threads = threads(self.engine.options)
        settings.inter_op_num_threads = 1
        settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        return settings

    def _symbolic_sizes(self, model: ModelProto) -> dict[str, int]:
        """The size of each symbolic dimension of the inputs in the feeds. It is the first one, which no layout moves."""
        found = {}
        for value, source in zip(model.graph.input, self.part.feeds, strict=True):
            dimensions = value.type.tensor_type.shape.dim
            if dimensions and dimensions[0].dim_param:
                found[dimensions[0].dim_param] = self.feeds[source].shape[0]
        return found


def samples(events: Sequence[Mapping[str, Any]], found: Sequence[KernelGroup], warmup: int) -> list[Sample]:
    """Times of each run by group of kernels; the last sample, without layers, has the kernels of no group."""
    by_kernel = {name: index for index, group in enumerate(found) for name in group.kernels}
    strange: dict[str, None] = {}
    sums = [0.0] * (len(found) + 1)
    times: list[list[float]] = [[] for _ in sums]
    run = 0
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            kernel = name.removesuffix("_kernel_time")
            index = by_kernel.get(kernel, len(found))
            if index == len(found):
                strange[kernel] = None
            sums[index] += float(event["dur"]) * 1e-6
        elif name == "model_run":
            if run >= warmup:
                for series, total in zip(times, sums, strict=True):
                    series.append(total)
            sums = [0.0] * len(sums)
            run += 1
    result = [Sample(g.layers, series, ", ".join(g.ops)) for g, series in zip(found, times, strict=False)]
    return [*result, Sample((), times[-1], ", ".join(strange))]


def _nodes(nodes: Sequence[Any]) -> list[Node]:
    return [Node(n.op_type, n.name, tuple(n.input), tuple(n.output)) for n in nodes]


def _loaded(path: Path, *, weights: bool = False) -> ModelProto:
    import onnx

    return onnx.load(str(path), load_external_data=weights)
