"""An engine in numpy: slow, simple, and limited to the ONNX operators below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.runtime.engine_api import Engine, EngineDescriptor, Part, Sample, StepTimer, Tensor, requires
from designer.runtime.engines.onnx_model import build_model


def conv(x: Any, w: Any, b: Any = None, *, pads: Any, strides: Any, dilations: Any, group: int, **_: Any) -> Any:
    """A convolution as ONNX defines it, on N x C x H x W."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    size = [dilation * (kernel - 1) + 1 for dilation, kernel in zip(dilations, w.shape[2:], strict=True)]
    windows = sliding_window_view(x, size, axis=(2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    groups = zip(np.split(windows, group, 1), np.split(w, group, 0), strict=True)
    made = np.concatenate([np.einsum("nchwij,fcij->nfhw", part, kernel, optimize=True) for part, kernel in groups], 1)
    return made if b is None else made + b[:, None, None]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Concat": lambda *values, axis: np.concatenate(values, axis),
    "Conv": conv,
    "Div": np.divide,
    "Identity": np.copy,
    "Mul": np.multiply,
    "Relu": lambda x: np.maximum(x, 0),
    "Sub": np.subtract,
    "Tanh": np.tanh,
}


class NumpyEngine(Engine):
    """Compiles the ONNX model that other engines use, and rejects operators that are not in `FUNCTIONS`."""

    def compile(self, part: Part, wanted: Sequence[Source]) -> NumpyCompiled:
        model = build_model(self.inference, part, wanted, self.weights)
        for node in model.graph.node:
            if node.op_type not in FUNCTIONS:
                layer = layer_of(node)
                message = f"the NumPy engine cannot run '{layer}': it does not support {node.op_type}"
                raise DiagnosticError.of("not-in-engine", message, layer=layer, remedy="choose another engine")
        return NumpyCompiled(model, part, wanted)


class NumpyCompiled:
    """A compiled model whose nodes are numpy functions."""

    def __init__(self, model: Any, part: Part, wanted: Sequence[Source]) -> None:
        from onnx import helper, numpy_helper

        self.feeds = part.feeds
        self.results = dict(zip(wanted, (value.name for value in model.graph.output), strict=True))
        self.constants = {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}
        self.steps = [
            (node, FUNCTIONS[node.op_type], {a.name: helper.get_attribute_value(a) for a in node.attribute})
            for node in model.graph.node
        ]

    def run(
        self, feeds: Mapping[Source, Tensor], done: Callable[[str], None] = lambda layer: None
    ) -> dict[Source, Tensor]:
        """Run the model; `done` is called with the layer after each step."""
        values = {**self.constants, **{str(source): feeds[source] for source in self.feeds}}
        for node, function, attributes in self.steps:
            values[node.output[0]] = function(*(values[name] for name in node.input), **attributes)
            done(layer_of(node))
        return {source: values[name] for source, name in self.results.items()}


class NumpyTimer(StepTimer):
    """Times layers with Python's clock."""

    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        compiled = self.engine.compile(self.part, self.wanted)
        assert isinstance(compiled, NumpyCompiled)
        samples: dict[str, Sample] = {}
        for number in range(warmup + runs):
            clock = [("", perf_counter())]
            compiled.run(self.feeds, partial(_note, clock))
            seconds: dict[str, float] = {}
            for (_, before), (layer, after) in pairwise(clock):
                seconds[layer] = seconds.get(layer, 0.0) + after - before
            for layer, spent in seconds.items() if number >= warmup else ():
                samples.setdefault(layer, Sample((layer,), [], "numpy")).seconds.append(spent)
            tick()
        return list(samples.values())


def _note(clock: list[tuple[str, float]], layer: str) -> None:
    clock.append((layer, perf_counter()))


def layer_of(node: Any) -> str:
    """The layer of an ONNX node, a prefix of the node's name."""
    return str(node.name).partition("/")[0].partition(":")[0]


def matrix_product(threads: int, size: int) -> tuple[Callable[[], object], float]:
    """Multiply two `size` x `size` matrices; numpy chooses the number of threads."""
    a, b = np.ones((size, size), np.float32), np.ones((size, size), np.float32)
    return lambda: a @ b, 2.0 * size**3


NUMPY = EngineDescriptor(
    name="numpy_example",
    title="NumPy (example)",
    package="layerwright-example",
    engine=NumpyEngine,
    step_timer=NumpyTimer,
    kernels={"matrix product": matrix_product},
    available=requires("onnx", remedy="pip install onnx"),
)
