"""Export of TensorRT engines. Engines are code, so only those that this program built on this computer are opened again."""

from __future__ import annotations

import hashlib
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from designer.files.atomic import write_atomic
from designer.files.digest_list import add_digests, list_path, read_digests
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.runtime.engines import trt
from designer.runtime.engines.fusion import layer_of
from designer.runtime.engines.trt_build import ShapeRange, build_engine
from designer.runtime.engines.trt_layers import EngineLayer, owner_of
from designer.runtime.provenance import provenance
from designer.texts import tr
from designer.units import dims_text
from exporters.interface import Interface, ModelInput, interface_of, replace_model
from exporters.onnx import export_onnx

SUFFIX = ".engine"
Extent = tuple[int, int]  # height, width


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The sizes of the first image, and other options of the builder. Sizes that are None are that of the document."""

    smallest: Extent | None = None
    largest: Extent | None = None
    batch: int = 1  # the largest
    sparse: bool = False
    timing_cache: Path | None = None  # a file that is read if it exists, and written


class EngineFile(msgspec.Struct):
    """The description of an engine, in the file next to it."""

    sha256: str
    package: str
    version: str
    network: str
    inputs: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]  # smallest, best, largest shape
    sparse: bool
    seconds: float
    trtexec: str  # the command that builds an equal engine
    layers: tuple[EngineLayer, ...]
    provenance: dict[str, str]
    model_sha256: str = ""  # of the ONNX model next to it


def built_list() -> Path:
    """The engines that were built on this computer."""
    return list_path("built-engines")


def description_of(path: Path) -> Path:
    """The file that describes the engine at `path`."""
    return path.with_name(f"{path.name}.json")


def export_tensorrt(
    graph: Graph,
    registry: Registry,
    weights: Weights,
    path: Path,
    options: EngineOptions,
    onnx_file: Path | None = None,
    *,
    convert: Callable[[Any], Any] | None = None,
) -> EngineFile:
    """Build an engine at `path`, with its description and its ONNX model next to it.

    `convert` changes the precision of the model, and `onnx_file` is a model of the network in another precision, which is built instead.

    Raises DiagnosticError if TensorRT is missing or refuses layers, which the error names, and if the file of the model is one that
    this function did not write; nothing is written then.
    """
    if path.suffix != SUFFIX:
        raise DiagnosticError.of(
            "unknown-format",
            tr("a TensorRT engine is written to a file that ends with {suffix}", suffix=SUFFIX),
            file=str(path),
            remedy=tr("choose another name"),
        )
    missing = trt.unavailable()
    if missing is not None:
        raise DiagnosticError(missing)
    model = path.with_suffix(".onnx")
    with tempfile.TemporaryDirectory(prefix="layerwright-engine-") as folder:
        report = export_onnx(graph, registry, weights, Path(folder) / "model.onnx", convert)
        if onnx_file is not None:
            report = replace_model(report, onnx_file)
        shapes = _shapes(interface_of(report, graph, registry), options)
        data = report.path.read_bytes()
    _check_replaced(model, data, path)
    built = build_engine(
        data, shapes, sparse=options.sparse, timing_cache=_timing_cache(options), owner=_owner(data, graph, registry)
    )
    found = EngineFile(
        _digest(built.data),
        built.package,
        built.version,
        graph.name,
        {name: (shape.smallest, shape.best, shape.largest) for name, shape in shapes.items()},
        options.sparse,
        built.seconds,
        trtexec_command(built.package, model, path, shapes, options),
        built.layers,
        provenance(graph.name, graph, weights).texts(),
        _digest(data),
    )
    write_atomic(model, data)
    write_atomic(path, built.data)
    write_atomic(description_of(path), msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    add_digests(built_list(), [found.sha256])
    if options.timing_cache is not None:
        write_atomic(options.timing_cache, built.timing_cache)
    return found


def _check_replaced(model: Path, data: bytes, path: Path) -> None:
    """Raise DiagnosticError if `model` has other content than `data` and than the last export to `path` wrote."""
    try:
        present = _digest(model.read_bytes())
        if present == _digest(data):
            return
        if present == msgspec.json.decode(description_of(path).read_bytes(), type=EngineFile).model_sha256:
            return
    except FileNotFoundError:
        if not model.exists():
            return
    except (OSError, msgspec.DecodeError, RecursionError):
        pass
    raise DiagnosticError.of(
        "file-in-the-way",
        tr(
            "the model of the engine is written to {model}, which exists and was not written with this engine",
            model=model,
        ),
        file=str(model),
        remedy=tr("choose another name for the engine, or move the model away"),
    )


def read_engine_file(path: Path) -> EngineFile:
    """The description of an engine that this program built. Raises DiagnosticError for any other file."""
    try:
        digest = _digest(path.read_bytes())
        found = msgspec.json.decode(description_of(path).read_bytes(), type=EngineFile)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _foreign(path, tr("its description {file} cannot be read", file=description_of(path).name)) from error
    if digest != found.sha256:
        raise _foreign(path, tr("it is not the engine that {file} describes", file=description_of(path).name))
    if digest not in read_digests(built_list()):
        raise _foreign(path, tr("it was not built on this computer"))
    return found


def _foreign(path: Path, reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "foreign-engine",
        tr("{path} is refused, because engines are code: {reason}", path=path, reason=reason),
        file=str(path),
        remedy=tr("build it again with layerwright export tensorrt"),
    )


def _shapes(interface: Interface, options: EngineOptions) -> dict[str, ShapeRange]:
    """The shapes of every input. Open heights and widths of further images follow the first one in proportion."""
    first = next((entry.drawn[2:] for entry in interface.inputs if entry.image and entry.shape[2] is None), None)
    if first is None and (options.smallest or options.largest):
        raise _bad_sizes(tr("the network runs at one size only"), tr("leave the sizes out"))
    found = {}
    for entry in interface.inputs:
        small, best, large = (
            _sized(entry, first, target, batch)
            for target, batch in ((options.smallest, 1), (None, 1), (options.largest, options.batch))
        )
        if any(not a <= b <= c for a, b, c in zip(small, best, large, strict=True)):
            sizes = tr("{small}, {best}, {large}", small=dims_text(small), best=dims_text(best), large=dims_text(large))
            raise _bad_sizes(
                tr("the smallest, the document's and the largest size of '{name}' do not increase: ", name=entry.name)
                + sizes,
                tr("choose sizes around that of the document"),
            )
        found[entry.name] = ShapeRange(small, best, large)
    return found


def _sized(entry: ModelInput, first: Sequence[int] | None, target: Extent | None, batch: int) -> tuple[int, ...]:
    """The shape of an input when the first image has the size `target`, or that of the document."""
    shape = list(entry.drawn)
    if entry.shape[0] is None:
        shape[0] = batch
    if entry.image and entry.shape[2] is None and target is not None and first is not None:
        for axis, (size, whole) in enumerate(zip(target, first, strict=True), 2):
            scaled, rest = divmod(size * entry.drawn[axis], whole)
            if rest or scaled % entry.multiple:
                values = {"name": entry.name, "size": f"{target[1]}x{target[0]}", "multiple": entry.multiple}
                if tuple(entry.drawn[2:]) == tuple(first):
                    text = tr(
                        "'{name}' cannot have the size {size}: heights and widths are multiples of {multiple}", **values
                    )
                else:  # its size follows that of the first image
                    text = tr(
                        "'{name}' cannot follow a first image of {size}: its heights and widths are multiples of {multiple}",
                        **values,
                    )
                raise _bad_sizes(text, tr("choose other sizes"))
            shape[axis] = scaled
    return tuple(shape)


def _bad_sizes(message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of("bad-sizes", message, remedy=remedy)


def trtexec_command(
    package: str, model: Path, path: Path, shapes: Mapping[str, ShapeRange], options: EngineOptions
) -> str:
    """The command line that builds an equal engine with the tool of TensorRT or of TensorRT-RTX."""
    tool = "tensorrt_rtx" if package == trt.RTX else "trtexec"
    words = [tool, f"--onnx={model}", f"--saveEngine={path}", "--stronglyTyped", "--noTF32"]
    for option, which in (("minShapes", "smallest"), ("optShapes", "best"), ("maxShapes", "largest")):
        sizes = (f"{name}:{'x'.join(map(str, getattr(shape, which)))}" for name, shape in shapes.items())
        words.append(f"--{option}={','.join(sizes)}")
    words += ["--sparsity=enable"] if options.sparse else []
    words += [f"--timingCacheFile={options.timing_cache}"] if options.timing_cache is not None else []
    return shlex.join([*words, "--profilingVerbosity=detailed"])


def _owner(data: bytes, graph: Graph, registry: Registry) -> Callable[[str], str]:
    """The layer of a node: by its name, or by the tensor that it computes, as in models that were imported."""
    import onnx

    known = inline(graph, registry).layers
    tensors = {node.name: [layer_of(name) for name in node.output] for node in onnx.load_from_string(data).graph.node}

    def owner(node: str) -> str:
        names = (owner_of(node), node, *tensors.get(node, ()))
        return next((name for name in names if name in known), "")

    return owner


def _timing_cache(options: EngineOptions) -> bytes | None:
    """The content of the timing cache; empty for a new one, None for none."""
    path = options.timing_cache
    if path is None:
        return None
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        message = tr("the timing cache {path} cannot be read: {reason}", path=path, reason=error.strerror or error)
        raise DiagnosticError.of("cannot-read", message, file=str(path), remedy=tr("choose another file")) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
