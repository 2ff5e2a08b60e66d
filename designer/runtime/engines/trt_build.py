"""Builds TensorRT engines from ONNX models, strongly typed: the precision of every tensor is the one in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.engines.trt import RTX, collector, library, package, reason_of
from designer.runtime.engines.trt_layers import EngineLayer, Owner, owner_of, read_layers
from designer.texts import tr

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShapeRange:
    """The smallest, the optimized and the largest shape of an input."""

    smallest: Dims
    best: Dims
    largest: Dims


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """A serialized engine with its layers. `timing_cache` is empty for TensorRT-RTX, which compiles on the user's GPU."""

    data: bytes
    layers: tuple[EngineLayer, ...]
    package: str
    version: str
    seconds: float
    timing_cache: bytes = b""


def build_engine(
    model: bytes,
    shapes: Mapping[str, ShapeRange],
    *,
    sparse: bool = False,
    timing_cache: bytes | None = None,
    owner: Owner = owner_of,
) -> BuiltEngine:
    """Build an engine of an ONNX model. `sparse` lets it use kernels for weights with 2:4 sparsity, `owner` has the layer of a node.

    FP32 is computed as FP32, not as TF32. Raises DiagnosticError with the layers that TensorRT refuses.
    """
    trt = library()
    began = perf_counter()
    if timing_cache is not None and package() == RTX:
        raise DiagnosticError.of(
            "no-timing-cache",
            tr("TensorRT-RTX has no timing cache: it chooses kernels on the GPU that runs the engine"),
            remedy=tr("leave the timing cache out, or install the package tensorrt"),
        )
    log = collector(trt)
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    if not parser.parse(model) or parser.num_errors:
        raise DiagnosticError(_refusals(parser, log, owner))
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.clear_flag(trt.BuilderFlag.TF32)
    if sparse:
        config.set_flag(trt.BuilderFlag.SPARSE_WEIGHTS)
    if timing_cache is not None:
        config.set_timing_cache(config.create_timing_cache(timing_cache), True)
    _add_profile(builder, config, network, shapes)
    built = builder.build_serialized_network(network, config)
    if built is None:
        raise _failed(tr("TensorRT does not build the network: {reason}", reason=reason_of(log)))
    cache = bytes(config.get_timing_cache().serialize()) if timing_cache is not None else b""
    seconds = perf_counter() - began
    return BuiltEngine(bytes(built), read_layers(log.details, owner), package(), str(trt.__version__), seconds, cache)


def _add_profile(builder: Any, config: Any, network: Any, shapes: Mapping[str, ShapeRange]) -> None:
    inputs = [network.get_input(number) for number in range(network.num_inputs)]
    if all(-1 not in tuple(tensor.shape) for tensor in inputs):
        return
    profile = builder.create_optimization_profile()
    for tensor in inputs:
        given = shapes[tensor.name]
        profile.set_shape(tensor.name, given.smallest, given.best, given.largest)
    if config.add_optimization_profile(profile) < 0:
        raise _failed(tr("TensorRT refuses the sizes of the inputs"))


def _refusals(parser: Any, log: Any, owner: Owner) -> list[Diagnostic]:
    """The errors of the parser, each at the layer whose node it refuses."""
    found = []
    errors = [parser.get_error(number) for number in range(parser.num_errors)]
    for error in errors:
        node = error.node_name()
        if not node:
            continue  # an error of the file, not of a layer
        what = f"{error.node_operator()}: {error.desc()}" if error.node_operator() else error.desc()
        found.append(
            Diagnostic(
                "not-in-tensorrt",
                tr("TensorRT cannot run '{layer}' ({what})", layer=owner(node) or node, what=what[:200]),
                layer=owner(node) or None,
                remedy=tr("replace the layer, or run the network with another engine"),
            )
        )
    return found or list(_failed(tr("TensorRT cannot read the model: {reason}", reason=reason_of(log))).diagnostics)


def _failed(message: str) -> DiagnosticError:
    return DiagnosticError.of(
        "tensorrt-failed", message, remedy=tr("use other sizes, or run the network with another engine")
    )
