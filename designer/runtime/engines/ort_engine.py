"""Runs parts of a network with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.graph.types import Symbol, TensorType
from designer.runtime.api import ONE_TILE, Compiled, Part
from designer.runtime.engine_api import Engine
from designer.runtime.engines.onnx_model import build_model, build_model_of_weights, serialized, weight
from designer.runtime.engines.ort import WRONG, reason_of, runtime, session_options
from designer.runtime.interrupt import current
from designer.runtime.machine import threads
from designer.runtime.network import type_of
from designer.texts import tr

if TYPE_CHECKING:
    from onnx import ModelProto

    from designer.runtime.api import Tensor

_QUIET = 3  # errors only: ONNX Runtime writes warnings about its own fusions to stderr


class OrtEngine(Engine):
    """ONNX Runtime on the CPU, FP32. Each compiled part has its own packed copy of the weights."""

    def model(self, part: Part, wanted: Sequence[Source]) -> ModelProto:
        """What runs for a part. Raises DiagnosticError as `build_model`."""
        return build_model(self.inference, part, wanted, self.weights, layout=self.options.layout)

    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        feeds = [(feed, type_of(self.inference, feed)) for feed in part.feeds]
        results = [(self.inference.tensor(s), type_of(self.inference, s)) for s in wanted]
        keys: dict[str, WeightKey] = {}
        if self.options.weights_as_inputs:
            model, keys = build_model_of_weights(self.inference, part, wanted, self.weights, layout=self.options.layout)
        else:
            model = self.model(part, wanted)

        def stand_in() -> Compiled | None:
            imported = not keys and any(self.inference.graph[name].type == "opaque" for name in part.layers)
            evaluator = _reference(model) if imported and self.options.layout == "nchw" else None
            return ReferenceCompiled(evaluator, part, feeds, results) if evaluator is not None else None

        try:
            session = inference_session(serialized(model), threads(self.options), arena=self.options.tile != ONE_TILE)
        except DiagnosticError:
            raise
        except Exception as error:  # ONNX Runtime raises its own subclasses of Exception
            reference = stand_in()
            if reference is None:
                foreign = next((n for n in part.layers if self.inference.graph[n].type == "opaque"), None)
                raise _failed("could not prepare", part, error, foreign) from error
            return reference
        names = [output.name for output in model.graph.output]
        compiled = OrtCompiled(session, part, feeds, results, names, self.options.layout, stand_in)
        needed = {name: (key, self.weights.tensors[key].shape) for name, key in keys.items()}
        return OrtCompiledForWeights(compiled, needed, self.weights) if keys else compiled


class OrtCompiled:
    """A compiled part. ONNX Runtime writes results directly into new numpy arrays."""

    def __init__(
        self,
        session: Any,
        part: Part,
        feeds: Sequence[tuple[Source, TensorType]],
        results: Sequence[tuple[Source, TensorType]],
        names: Sequence[str],
        layout: str,
        stand_in: Callable[[], Compiled | None],
    ) -> None:
        self._session = session
        self._stand_in = stand_in
        self._part = part
        self._feeds = [(source, str(source), kind, layout == "nhwc" and kind.rank == 4) for source, kind in feeds]
        self._results = [
            (source, name, kind, layout == "nhwc" and kind.rank == 4)
            for (source, kind), name in zip(results, names, strict=True)
        ]

    def run(self, feeds: Mapping[Source, Tensor], weights: Mapping[str, Tensor] | None = None) -> dict[Source, Tensor]:
        """`weights` are those that are inputs of the model."""
        try:
            return self._run(feeds, weights or {})
        except Exception as error:
            current().check()
            reference = self._stand_in()
            if reference is None:
                raise _failed("could not run", self._part, error) from error
            return reference.run(feeds)

    def _run(self, feeds: Mapping[Source, Tensor], weights: Mapping[str, Tensor]) -> dict[Source, Tensor]:
        binding = self._session.io_binding()
        batch = 1
        held = []  # the binding has only addresses, so the arrays must stay alive until the end of the run
        for name, array in weights.items():
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        for source, name, kind, swap in self._feeds:
            array = feeds[source]
            if kind.shape and isinstance(kind.shape[0], Symbol):
                batch = array.shape[0]
            if swap:
                array = array.transpose(0, 2, 3, 1)
            array = np.asarray(array, dtype=kind.dtype.value, order="C")  # keeps rank 0
            held.append(array)
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        made: dict[Source, Tensor] = {}
        for source, name, kind, swap in self._results:
            shape = kind.concrete(batch)
            if swap:
                shape = (shape[0], shape[2], shape[3], shape[1])
            result = np.empty(shape, kind.dtype.value)
            binding.bind_output(name, "cpu", 0, result.dtype.type, shape, result.ctypes.data)
            made[source] = result.transpose(0, 3, 1, 2) if swap else result
        options = _run_options()
        with current().hook(lambda: setattr(options, "terminate", True)):
            self._session.run_with_iobinding(binding, options)
        return made


class OrtCompiledForWeights:
    """A compiled part whose weights are inputs: `needed` has their keys and shapes by name."""

    def __init__(
        self, compiled: OrtCompiled, needed: Mapping[str, tuple[WeightKey, tuple[int, ...]]], weights: Weights
    ) -> None:
        self._compiled = compiled
        self._needed = needed
        self._arrays = {name: np.ascontiguousarray(weight(weights, *entry)) for name, entry in needed.items()}

    def with_weights(self, weights: Weights) -> OrtCompiledForWeights:
        return OrtCompiledForWeights(self._compiled, self._needed, weights)

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        return self._compiled.run(feeds, self._arrays)


class ReferenceCompiled:
    """A part with imported operators that ONNX Runtime does not have, run by the slow reference implementation of onnx."""

    def __init__(
        self,
        evaluator: Any,
        part: Part,
        feeds: Sequence[tuple[Source, TensorType]],
        results: Sequence[tuple[Source, TensorType]],
    ) -> None:
        self._evaluator = evaluator
        self._part = part
        self._feeds = feeds
        self._results = results

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        given = {str(source): np.asarray(feeds[source], dtype=kind.dtype.value) for source, kind in self._feeds}
        try:
            found = self._evaluator.run(None, given)
        except Exception as error:  # operators of the reference implementation raise anything
            current().check()
            raise _failed("could not run", self._part, error) from error
        pairs = zip(self._results, found, strict=True)
        return {source: np.ascontiguousarray(array, dtype=kind.dtype.value) for (source, kind), array in pairs}


def _reference(model: Any) -> Any | None:
    """The reference implementation for a model; None if it does not have the operators either."""
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(model)
    except Exception:  # it raises many classes for models that it cannot run
        return None


def _run_options() -> Any:
    options = runtime().RunOptions()
    options.log_severity_level = _QUIET
    return options


def inference_session(model: bytes, count: int = 0, *, arena: bool = True, simplified: Path | None = None) -> Any:
    """A session on the CPU with `count` threads, 0: all cores. `simplified` is a file for the model without redundant nodes.

    That file has only operators of ONNX: constants are folded, and normalizations merged into convolutions.
    """
    ort = runtime()
    options = session_options(_QUIET)
    options.intra_op_num_threads = count
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = arena  # faster from the second run on, but keeps up to twice the memory
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    if simplified is not None:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(simplified)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"], disabled_optimizers=[*WRONG])


def _failed(what: str, part: Part, error: Exception, foreign: str | None = None) -> DiagnosticError:
    """The error for the user; `foreign` is a layer with an imported operator."""
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return DiagnosticError.of(
            "out-of-memory",
            tr("there was not enough memory: ONNX Runtime {what} the network", what=what),
            remedy=tr("use a smaller image, capture fewer layers, or close other programs"),
        )
    span = part.layers[0] if len(part.layers) == 1 else f"{part.layers[0]} ... {part.layers[-1]}"
    layer = next((name for name in part.layers if f"'{name}/" in str(error)), part.layers[0] if part.layers else None)
    return DiagnosticError.of(
        "engine-failed",
        tr("ONNX Runtime {what} the layers {span}: {first}", what=what, span=span, first=reason_of(error)),
        layer=layer,
        remedy=tr("run the network with the torch engine")
        if foreign is None
        else tr("replace or remove '{foreign}'", foreign=foreign),
    )
