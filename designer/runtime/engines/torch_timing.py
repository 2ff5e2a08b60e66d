"""Times every layer in torch: with a clock after each step on the CPU, with CUDA events on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.graph.model import Source
from designer.operators.torch_program import build_program
from designer.runtime.api import Part
from designer.runtime.engine_api import Engine, Sample, SingleStep, StepTimer
from designer.runtime.engines.torch_engine import Interpreter, TorchCompiled, build_module, to_channels_last
from designer.runtime.engines.torch_steps import single_steps
from designer.runtime.machine import threads

if TYPE_CHECKING:
    import torch

    from designer.runtime.api import Tensor

Mark = Callable[[str], None]
QUEUE_CYCLES = 20_000_000  # about 10 ms


class MarkedInterpreter(Interpreter):
    """Runs the same steps and calls `mark("")` before the first and `mark(layer)` after each."""

    mark: Mark = staticmethod(lambda layer: None)

    @property
    def layers(self) -> list[str]:
        """The layer of every step, in execution order."""
        return [step[3] for step in self.steps]

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        values: list[Any] = [*inputs, *[None] * (self.count - len(inputs))]
        self.mark("")
        for target, evaluate, release, layer in self.steps:
            values[target] = evaluate(values)
            self.mark(layer)
            for slot in release:
                values[slot] = None
        return [values[slot] for slot in self._outputs]


class TorchTimer(StepTimer):
    """Times a part of a network with its inputs already on the device."""

    def __init__(self, engine: Engine, part: Part, wanted: Sequence[Source], feeds: Mapping[Source, Tensor]) -> None:
        import torch

        super().__init__(engine, part, wanted, feeds)
        compiled = engine.compile(part, wanted)
        assert isinstance(compiled, TorchCompiled)
        options = engine.options
        program = build_program(engine.inference, part.layers, part.feeds, wanted)
        self.compiled = compiled
        self._program = program
        self.device = torch.device(options.device)
        self.threads = threads(options)
        self.options = options
        self.inputs = [self._on_device(feeds[source]) for source in program.inputs]
        self._marked = MarkedInterpreter(compiled.module, program)

    def _on_device(self, array: Tensor) -> torch.Tensor:
        import torch

        tensor = torch.from_numpy(np.array(array))
        dtype = self.compiled.dtype if tensor.is_floating_point() else tensor.dtype
        tensor = tensor.to(device=self.device, dtype=dtype)
        if self.options.layout == "nhwc" and tensor.dim() == 4:
            tensor = tensor.to(memory_format=torch.channels_last)
        return tensor

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        """Times by layer, in the order of their first steps."""
        found: dict[str, Sample] = {}
        with self._quiet():
            for number in range(warmup + runs):
                marks = self._cuda_run() if self.device.type == "cuda" else self._cpu_run()
                if number >= warmup:
                    sums: dict[str, float] = {}
                    for layer, seconds in marks:
                        sums[layer] = sums.get(layer, 0.0) + seconds
                    for layer, seconds in sums.items():
                        found.setdefault(layer, Sample((layer,), [], "torch")).seconds.append(seconds)
                tick()
        return list(found.values())

    def whole(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[float]:
        """Seconds of each run of the whole part, without marks; inputs and outputs stay on the device."""

        times: list[float] = []
        with self._quiet():
            for number in range(warmup + runs):
                if self.device.type == "cuda":
                    start, end = new_event(), new_event()
                    start.record()
                    self.compiled.run_torch(self.inputs)
                    end.record()
                    end.synchronize()
                    seconds = start.elapsed_time(end) * 1e-3
                else:
                    began = perf_counter()
                    self.compiled.run_torch(self.inputs)
                    seconds = perf_counter() - began
                if number >= warmup:
                    times.append(seconds)
                tick()
        return times

    def single_steps(self) -> list[SingleStep]:
        """Steps on the CPU. Parts that other engines compile do more than their program says."""
        if self.device.type != "cpu" or type(self.compiled) is not TorchCompiled:
            return []
        shapes = build_module(self._program, self.options.agreed).to(device="meta", dtype=self.compiled.dtype).eval()
        if self.options.layout == "nhwc":
            to_channels_last(shapes)
        return single_steps(self._program, self.compiled.interpreter, shapes, self.inputs, self._quiet)

    def counted(self, range_of: Callable[[str], str]) -> None:
        """One run for hardware counters: an NVTX range `range_of(layer)` for each step, between start and stop of the profiler."""
        import torch

        nvtx: Any = torch.cuda.nvtx
        profiler: Any = torch.cuda.profiler
        with self._quiet():
            for _ in range(3):
                self.compiled.run_torch(self.inputs)
            torch.cuda.synchronize()
            layers = iter([*self._marked.layers, ""])
            profiler.start()

            def mark(done: str) -> None:
                if done:
                    nvtx.range_pop()
                name = next(layers)
                if name:
                    nvtx.range_push(range_of(name))

            self._marked.mark = mark
            self._marked(self.inputs)
            torch.cuda.synchronize()
            profiler.stop()

    def _cpu_run(self) -> list[tuple[str, float]]:
        clock: list[tuple[str, float]] = []
        self._marked.mark = lambda layer: clock.append((layer, perf_counter()))
        self._marked(self.inputs)
        return [(layer, end - start) for (_, start), (layer, end) in pairwise(clock)]

    def _cuda_run(self) -> list[tuple[str, float]]:
        import torch

        events: list[tuple[str, Any]] = []

        def mark(layer: str) -> None:
            event = new_event()
            event.record()
            events.append((layer, event))

        self._marked.mark = mark
        torch.cuda.synchronize()
        # The GPU waits first, so that the queue is full when it starts; otherwise times would include the launch overhead
        # of Python.
        getattr(torch.cuda, "_sleep", lambda cycles: None)(QUEUE_CYCLES)
        self._marked(self.inputs)
        torch.cuda.synchronize()
        return [(layer, start.elapsed_time(end) * 1e-3) for (_, start), (layer, end) in pairwise(events)]

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Inference mode with the selected threads and without TF32, which is not FP32."""
        import torch

        if self.device.type == "cpu" and torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_tf32
        matmul.allow_tf32 = False
        try:
            with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False, benchmark=True):
                yield
        finally:
            matmul.allow_tf32 = before


def new_event() -> Any:
    """A CUDA event that can be timed."""
    import torch

    make: Any = torch.cuda.Event
    return make(enable_timing=True)
