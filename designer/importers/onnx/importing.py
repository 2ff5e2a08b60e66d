"""Import of an ONNX file: inputs, nodes in topological order, outputs."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.model import check_layer_name
from designer.graph.types import BATCH, DataType, Dim, ShapeError, Size3D, Symbol, TensorType
from designer.importers.builder import GraphBuilder
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.conversion import (
    Conversion,
    OnnxOp,
    UnsupportedError,
    check_attributes,
    foldable,
    plain_cast,
)
from designer.importers.onnx.definitions import definition
from designer.importers.onnx.model_file import model_of, read_proto, refused
from designer.importers.onnx.nodes import CONVERTERS
from designer.importers.onnx.nodes.table import PATTERNS
from designer.importers.onnx.opaque import add_opaque, data_type
from designer.importers.onnx.origin import ORIGIN, packed_origin
from designer.importers.onnx.original import Case, OnnxOriginal
from designer.importers.onnx.patterns import find_patterns
from designer.importers.onnx.scopes import scope_of
from designer.importers.report import ImportReport, Outcome, counted, named_tensors
from designer.importers.templates import moved_outcome
from designer.operators.params import ParamError
from designer.operators.registry import Registry
from designer.texts import tr
from designer.units import dims_text

IMAGE_SIDE, LENGTH, CHANNELS = 64, 16, 3  # sizes of open dimensions: height and width, other axes, channels
# What a converter raises for values of other types or sizes than the standard demands; a file can contain anything.
UNEXPECTED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, MemoryError)
STEP = 32  # that a second size is larger by


class ModelInput(NamedTuple):
    """An input of the model: its type in the document, and which dimensions the file leaves open."""

    name: str
    type: TensorType
    open: tuple[bool, ...]


def import_onnx(path: Path, registry: Registry, options: ImportOptions) -> Imported:
    """Import an ONNX file. Raises DiagnosticError if it is damaged, or if a node cannot even be kept as opaque."""
    with _without_collector():
        proto = read_proto(path)
        _check_sizes(proto, path, options.sizes)
        found = import_proto(proto, path, registry, options)
        origin = packed_origin(proto, found, path.parent)
    if origin:
        found.graph.properties[ORIGIN] = origin
    return found


def _check_sizes(proto: Any, path: Path, sizes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise DiagnosticError for a size of an input that the file does not have, or that has other sizes there."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    known = {entry.name: entry.type.tensor_type.shape.dim for entry in proto.graph.input if entry.name not in stored}
    for name, size in sizes.items():
        if name and name not in known:
            raise refused(
                path,
                "onnx-input",
                tr("has no input '{name}'", name=name[:80]),
                tr("choose {names}", names=", ".join(known) or "-"),
            )
        dims = known.get(name, ())
        fixed = [dim.dim_value for dim in dims]  # 0: open
        if name and (len(fixed) != len(size) or any(a not in (0, b) for a, b in zip(fixed[1:], size[1:], strict=True))):
            raise refused(
                path,
                "onnx-input",
                tr(
                    "has the input '{name}' of the shape {shape}, which cannot be {size}",
                    name=name[:80],
                    shape=dims_text([dim.dim_value or dim.dim_param or "?" for dim in dims]),
                    size=dims_text(size),
                ),
                tr("choose sizes only for dimensions that the file leaves open"),
            )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Without garbage collection: an import makes many objects and drops few, so a collection only costs time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def import_proto(proto: Any, path: Path, registry: Registry, options: ImportOptions) -> Imported:
    """Import a model that was read from `path`."""
    model = model_of(proto, path)
    found = _attempt(model, path, registry, options, open_batch=True)
    if isinstance(found, Imported) and not found.report.opaque:
        return found
    again = _attempt(model, path, registry, options, open_batch=False) if _has_batch(model) else found
    best = min((found, again), key=lambda item: item.report.opaque if isinstance(item, Imported) else 10**9)
    if isinstance(best, DiagnosticError):
        raise best
    if best is not found:
        note = tr("the document has a batch of 1: layers of the library cannot express some nodes for other batches")
        return replace(best, report=msgspec.structs.replace(best.report, warnings=(*best.report.warnings, note)))
    return best


def _has_batch(model: Any) -> bool:
    """Whether an input has a batch that the document may leave open or not."""
    shapes = [value.shape for value in model.graph.inputs if value.shape is not None and len(value.shape)]
    return any(not isinstance(shape[0], int) or (len(shape) == 4 and shape[0] == 1) for shape in shapes)


def _attempt(
    model: Any, path: Path, registry: Registry, options: ImportOptions, *, open_batch: bool
) -> Imported | DiagnosticError:
    """The import with batches of any size, or of one; or why it fails."""
    try:
        return _imported(model, path, registry, options, open_batch)
    except DiagnosticError as error:
        return error
    except (ShapeError, ParamError, *UNEXPECTED) as error:
        reason = error.message if isinstance(error, ShapeError) else str(error)
        return refused(path, "bad-onnx", tr("cannot be imported: {reason}", reason=reason[:300]))


def _imported(model: Any, path: Path, registry: Registry, options: ImportOptions, open_batch: bool) -> Imported:
    graph = model.graph
    entries = [
        _input(value, path, options, open_batch) for value in graph.inputs if value.name not in graph.initializers
    ]
    builder = GraphBuilder(registry, _title(graph.name, path))
    builder.reserve([entry.name for entry in entries] + [value.name or "" for value in graph.outputs])
    c = Conversion(builder, model.opset_imports.get("", 1))
    for name, value in graph.initializers.items():
        if value.const_value is not None:
            c.tensors[name] = value.const_value
    for entry in entries:
        if 0 in entry.type.shape:  # it has one value only
            shape = [dim if isinstance(dim, int) else 0 for dim in entry.type.shape]
            c.arrays[entry.name] = np.zeros(shape, entry.type.dtype.value)
        else:
            _add_input(c, entry)
    empty = dict(c.arrays)
    entries = [entry for entry in entries if entry.name not in empty]
    c.declared = _declared(graph)
    _convert_all(c, model, path, options)
    outputs = _add_outputs(c, [value.name or "" for value in graph.outputs], path)
    document, weights = builder.finish()
    outcomes = tuple(moved_outcome(item, builder.moved) for item in c.outcomes.values())
    report = ImportReport(
        source=path.name,
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))),
        opset=c.opset,
        templates=builder.repeats,
        **named_tensors(builder.tensors, _warnings(model)),
        **counted(outcomes),
    )
    names = {entry.name: c.sources[entry.name].layer for entry in entries}
    original = OnnxOriginal(path, names, outputs, _cases(entries, names), empty, document, registry)
    original.again = lambda sizes: import_onnx(path, registry, ImportOptions(sizes))
    return Imported(document, weights, report, original)


def operations(model: Any) -> list[OnnxOp]:
    """The nodes of the model in topological order; recognized patterns are one operation."""
    patterns = find_patterns(model.graph)
    found = []
    for node in model.graph:
        if id(node) in patterns.replaced:
            pattern = patterns.replaced[id(node)]
            if pattern is not None:
                found.append(pattern)
            continue
        found.append(_operation(node, model))
    return found


def _operation(node: Any, model: Any) -> OnnxOp:
    from onnx_ir import AttributeType

    attributes = {}
    for name, attribute in node.attributes.items():
        if attribute.type in (AttributeType.GRAPH, AttributeType.GRAPHS):
            attributes[name] = attribute
        elif attribute.type is AttributeType.TENSOR:
            attributes[name] = attribute.value.numpy() if attribute.value.dtype.name != "STRING" else attribute
        else:
            attributes[name] = attribute.value
    outputs = [value.name or "" for value in node.outputs]
    while outputs and (
        not outputs[-1]
        or not (node.outputs[len(outputs) - 1].uses() or node.outputs[len(outputs) - 1].is_graph_output())
    ):
        if len(outputs) == 1:
            break
        outputs.pop()
    domain = "" if node.domain == "ai.onnx" else node.domain
    return OnnxOp(
        node.name or "",
        node.op_type,
        domain,
        model.opset_imports.get(node.domain, 1),
        tuple((value.name or "") if value is not None else "" for value in node.inputs),
        tuple(outputs),
        attributes,
        scope_of(node),
        (node,),
    )


def _convert_all(
    c: Conversion,
    model: Any,
    path: Path,
    options: ImportOptions,
) -> None:
    def convert(op: OnnxOp) -> None:
        if op.domain != PATTERNS:
            _convert(c, op, path)
        elif _convert_known(c, op):
            for node in op.nodes:
                step(_operation(node, model))

    def step(op: OnnxOp) -> None:
        plain = plain_cast(c, op)
        if foldable(c, plain) or op.op_type == "Constant":
            _defer(c, plain)
        else:
            convert(op)

    c.convert_now = convert
    steps = operations(model)
    for number, op in enumerate(steps):
        if options.progress is not None and number % 256 == 0:
            options.progress(number, len(steps), op.name)
        step(op)


def _defer(c: Conversion, op: OnnxOp) -> None:
    """Note a node that depends on known values only: it is folded where it is used."""
    c.made = []
    (output,) = op.outputs
    if op.op_type == "Constant":
        value = next(iter(op.attributes.values()), None)
        if isinstance(value, np.ndarray | int | float | tuple | list) and not _is_text(value):
            c.arrays[output] = _constant(value)
        else:
            c.embedded[output] = op
    else:
        c.deferred[output] = op
    c.record(op, Outcome.FOLDED)


def _is_text(value: Any) -> bool:
    return isinstance(value, tuple | list) and any(isinstance(item, str | bytes) for item in value)


def _constant(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value
    sample = value[0] if isinstance(value, tuple | list) and value else value
    return np.asarray(value, np.float32 if isinstance(sample, float) else np.int64)


def _convert_known(c: Conversion, op: OnnxOp) -> str:
    """Convert a node to layers of the library. The result is empty, or why it is not possible; nothing is added then."""
    c.current, c.made = op, []
    converter = CONVERTERS.get((op.domain, op.op_type))
    if converter is None:
        return f"{op.op_type} is not an operator of the library"
    mark = c.mark()
    try:
        converter(c, op)
        if op.domain != PATTERNS and not op.attributes.keys() <= op.asked:
            check_attributes(op)
    except (UnsupportedError, ShapeError, ParamError) as error:
        c.rollback(mark)
        return (error.message if isinstance(error, ShapeError) else str(error)) or type(error).__name__
    except UNEXPECTED as error:
        c.rollback(mark)
        return f"its inputs or attributes are not as expected: {type(error).__name__}: {error}"[:200]
    c.record(op, Outcome.KNOWN)
    return ""


def _convert_definition(c: Conversion, op: OnnxOp) -> bool:
    """Convert a node to the layers of its definition in the standard, if it has one and all of these are known."""
    model = definition(c, op)
    if model is None:
        return False
    mark, made = c.mark(), list[str]()
    own = op.name.strip("/").rpartition("/")[2] or op.op_type
    for node in model.graph:
        inner = replace(_operation(node, model), name=op.name or op.op_type, scope=(*op.scope, own))
        plain = plain_cast(c, inner)
        if foldable(c, plain) or inner.op_type == "Constant":
            _defer(c, plain)
        elif _convert_known(c, inner) and not _convert_definition(c, inner):
            c.rollback(mark)
            made = []
            break
        made += c.made
    for node in model.graph:
        c.outcomes.pop(id(node), None)  # it is not a node of the file
    if not made:
        return False
    c.made = made
    c.record(op, Outcome.KNOWN)
    return True


def _convert(c: Conversion, op: OnnxOp, path: Path) -> None:
    """Convert one node: to layers of the library if possible, else to an opaque layer."""
    reason = _convert_known(c, op)
    if not reason or _convert_definition(c, op):
        return
    mark = c.mark()
    try:
        add_opaque(c, op, reason)
    except (UnsupportedError, ShapeError, ParamError) as error:
        c.rollback(mark)
        raise DiagnosticError(
            Diagnostic(
                "onnx-node",
                tr(
                    "{path}: the node '{name}' ({op_type}) cannot be imported: {reason}",
                    path=path.name,
                    name=op.name or op.outputs[0],
                    op_type=op.op_type,
                    reason=error.message if isinstance(error, ShapeError) else str(error),
                ),
                file=str(path),
                remedy=tr("remove or replace the node, and export the model again"),
            )
        ) from None


# --- inputs and outputs -------------------------------------------------------------------------------------------


def _input(value: Any, path: Path, options: ImportOptions, open_batch: bool) -> ModelInput:
    name = value.name
    dtype = _element_type(value)
    if dtype is None or value.shape is None:
        raise DiagnosticError(
            Diagnostic(
                "onnx-input",
                tr(
                    "{path}: the input '{name}' is not a tensor of numbers with a known rank", path=path.name, name=name
                ),
                file=str(path),
                remedy=tr("export the model with tensors as inputs"),
            )
        )
    given = options.sizes.get(name) or (options.sizes.get("") if len(options.sizes) == 1 else None)
    sizes = [dim if isinstance(dim, int) else None for dim in value.shape]
    left_open = tuple(size is None for size in sizes)
    dims: list[Dim] = []
    for axis, size in enumerate(sizes):
        if size is not None:
            dims.append(size)
        elif axis == 0:
            dims.append(BATCH if open_batch else 1)
        else:
            dims.append(given[axis] if given is not None and axis < len(given) else _usual(axis, len(sizes)))
    if open_batch and len(dims) == 4 and dims[0] == 1 and dtype is DataType.FLOAT32:
        dims[0] = BATCH  # an image: a batch of one
    if any(isinstance(dim, int) and dim < 0 for dim in dims):
        raise DiagnosticError(
            Diagnostic(
                "onnx-input",
                tr("{path}: the input '{name}' has a negative dimension", path=path.name, name=name),
                file=str(path),
                remedy=tr("export the model again, and check it with onnx.checker"),
            )
        )
    return ModelInput(name, TensorType(tuple(dims), dtype), left_open)


def _element_type(value: Any) -> DataType | None:
    """The element type of a tensor; None for other types, for sequences and for values of an unknown type."""
    import onnx_ir as ir

    return data_type(int(value.dtype)) if isinstance(value.type, ir.TensorType) else None


def _usual(axis: int, rank: int) -> int:
    if rank == 4:
        return CHANNELS if axis == 1 else IMAGE_SIDE
    return LENGTH


def _add_input(c: Conversion, entry: ModelInput) -> None:
    kind = entry.type
    shape = tuple(dim for dim in kind.shape if isinstance(dim, int))
    batch = bool(kind.shape) and isinstance(kind.shape[0], Symbol)
    single = kind.rank == 4 and kind.shape[0] == 1
    if (batch or single) and kind.rank == 4 and kind.dtype is DataType.FLOAT32 and max(shape) <= 65536:
        channels, height, width = shape[-3:]
        params: dict[str, Any] = {"dims": Size3D(width, height, channels), "batch": int(single)}
        made = c.builder.add("input", (), params, name=entry.name, exact=True)
    else:
        params = {"shape": shape, "batch": batch, "dtype": kind.dtype.value}
        made = c.builder.add("tensor_input", (), params, name=entry.name, exact=True)
    c.put(entry.name, made[0])
    if batch and c.batch is None:
        c.batch = made[0]
    c.opened |= batch and not entry.open[0]


def _add_outputs(c: Conversion, names: Iterable[str], path: Path) -> dict[str, str]:
    """Add the output layers; the result maps names in the file to layers."""
    found: dict[str, str] = {}
    for name in names:
        c.current = None
        try:
            source = c.source(name)
            kind = c.builder.types[source]
            view = "image" if kind.rank == 4 and kind.dtype is DataType.FLOAT32 else "tensor"
            made = c.builder.add("output", [source], {"analysis_view": view}, name=name, exact=True)
        except (UnsupportedError, ShapeError, ParamError, KeyError) as error:
            raise DiagnosticError(
                Diagnostic(
                    "onnx-output",
                    tr(
                        "{path}: the output '{name}' cannot be imported: {error}",
                        path=path.name,
                        name=name,
                        error=error,
                    ),
                    file=str(path),
                    remedy=tr("export the model with tensors of numbers as outputs"),
                )
            ) from None
        found[name] = made[0].layer
    return found


def _declared(graph: Any) -> dict[str, TensorType]:
    """The types that the file declares for values, as far as layers can have them."""
    found: dict[str, TensorType] = {}
    batch = {str(value.shape[0]) for value in graph.inputs if value.shape and not isinstance(value.shape[0], int)}
    for value in (*graph.outputs, *(output for node in graph for output in node.outputs)):
        dtype = _element_type(value)
        if value.shape is None or dtype is None:
            continue
        dims: list[Dim | None] = [
            dim if isinstance(dim, int) else BATCH if axis == 0 and str(dim) in batch else None
            for axis, dim in enumerate(value.shape)
        ]
        if all(dim is not None and dim != 0 for dim in dims):
            found[value.name] = TensorType(tuple(dim for dim in dims if dim is not None), dtype)
    return found


def _cases(entries: Iterable[ModelInput], names: Mapping[str, str]) -> list[Case]:
    """Shapes to compare at: the document's, another batch, and another size, where the file leaves these open."""
    entries = list(entries)

    def case(batch: int, more: int) -> dict[str, tuple[tuple[int, ...], str]]:
        found = {}
        for entry in entries:
            shape = list(entry.type.concrete(batch if entry.open and entry.open[0] else 1))
            if entry.type.rank == 4:
                shape = [size + more if axis > 1 and entry.open[axis] else size for axis, size in enumerate(shape)]
            found[names[entry.name]] = (tuple(shape), entry.type.dtype.value)
        return found

    cases: list[Case] = [case(1, 0)]
    for other in (case(2, 0), case(1, STEP)):
        if other not in cases:
            cases.append(other)
    return cases


def _title(name: str | None, path: Path) -> str:
    return name if name and check_layer_name(name) is None else path.stem


def _warnings(model: Any) -> Iterable[str]:
    kinds = {node.op_type for node in model.graph}
    if "SpaceToDepth" in kinds and (model.producer_name or "") == "pytorch":
        yield tr(
            "the file has SpaceToDepth nodes from PyTorch: exporters before 2026 wrote PixelUnshuffle with the wrong order of "
            "channels (pytorch#186080); compare the results with the original module"
        )
    domains = {node.domain for node in model.graph} - {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}
    for domain in sorted(filter(None, domains)):
        yield tr(
            "the domain '{domain}' is unknown: its operators are preserved, but run only where ONNX Runtime has them",
            domain=domain,
        )
    sizes = [
        prod(value.shape)
        for value in model.graph.inputs
        if value.shape and all(isinstance(d, int) for d in value.shape)
    ]
    if sizes and max(sizes) > 2**30:
        yield tr("an input has more than 2^30 elements")
