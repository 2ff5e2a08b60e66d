"""Opens ONNX files. Whatever a file claims is checked before memory is allocated for it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.files.regular import check_regular
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

if TYPE_CHECKING:
    import onnx_ir as ir

OLDEST_OPSET = 7
MAX_FILE = 2**31 - 1  # bytes: the limit of protobuf; larger models have external data
MAX_NODES = 1_000_000
MAX_NESTING = 32  # of graphs in graphs
_DEFAULT = ("", "ai.onnx")


def read_proto(path: Path) -> Any:
    """The file as protobuf, without the data of external tensors.

    Raises DiagnosticError for damaged files, unsupported versions, and external data outside the folder.
    """
    proto = _parsed(path)
    check_opsets(proto, path)
    _check_graph(proto.graph, path, path.parent.resolve())
    return proto


def model_of(proto: Any, path: Path) -> ir.Model:
    """The model, with functions inlined and nodes in topological order. Tensors in external files are read when used.

    Raises DiagnosticError for cyclic graphs.
    """
    import onnx_ir as ir

    if proto.functions:
        proto = _inlined(proto, path)
    try:
        model = ir.from_proto(proto)
    except Exception as error:  # onnx_ir raises almost anything for inconsistent files
        raise refused(path, "bad-onnx", tr("is not a valid ONNX model: {reason}", reason=_first(error))) from None
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            value.const_value.base_dir = path.parent
    try:
        model.graph.sort()
    except ValueError:
        raise refused(
            path, "cyclic-onnx", tr("has nodes that depend on their own output, but the graph must be acyclic")
        ) from None
    return model


def refused(path: Path, code: str, what: str, remedy: str = "") -> DiagnosticError:
    """The error that refuses a file: `<path> <what>`."""
    remedy = remedy or tr("export the model again, and check it with onnx.checker")
    return DiagnosticError(Diagnostic(code, f"{path.name} {what}", file=str(path), remedy=remedy))


def _parsed(path: Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    check_regular(path)
    if path.stat().st_size > MAX_FILE:
        raise refused(
            path, "file-too-large", tr("is larger than 2 GB"), tr("save the model with its tensors as external data")
        )
    try:
        proto = onnx.load_model(path, load_external_data=False)
    except DecodeError:
        raise refused(path, "bad-onnx", tr("is not an ONNX file, or it is truncated")) from None
    except OSError as error:
        raise refused(
            path,
            "cannot-read",
            tr("cannot be read: {reason}", reason=error.strerror or error),
            tr("check the path and your permissions"),
        ) from None
    if not proto.graph.node and not proto.graph.output:
        raise refused(path, "bad-onnx", tr("contains no graph"))
    return proto


def check_opsets(proto: Any, path: Path) -> None:
    """Raise DiagnosticError unless the versions of the standard operators are supported."""
    from onnx import defs

    newest = defs.onnx_opset_version()
    versions = [entry.version for entry in proto.opset_import if entry.domain in _DEFAULT] or [newest]
    if not OLDEST_OPSET <= min(versions) <= max(versions) <= newest:
        found = next(version for version in versions if not OLDEST_OPSET <= version <= newest)
        raise refused(
            path,
            "onnx-opset",
            tr(
                "uses opset {found}, but opsets {OLDEST_OPSET} to {newest} can be imported",
                found=found,
                OLDEST_OPSET=OLDEST_OPSET,
                newest=newest,
            ),
            tr("export the model with a supported opset, or convert it with onnx.version_converter"),
        )


def _inlined(proto: Any, path: Path) -> Any:
    from onnx import inliner

    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # pybind11 raises classes of its own
        raise refused(
            path, "bad-onnx", tr("has functions that cannot be inlined: {reason}", reason=_first(error))
        ) from None


def _check_graph(graph: Any, path: Path, folder: Path, depth: int = 0) -> None:
    """Check names, and the size of every tensor, in a graph and the graphs in it."""
    if depth > MAX_NESTING or len(graph.node) > MAX_NODES:
        raise refused(path, "too-large", tr("has too many nodes, or graphs nested too deeply"))
    made: set[str] = {entry.name for entry in graph.input}
    for tensor in graph.initializer:
        check_tensor(tensor, path, folder)
        made.add(tensor.name)
    for node in graph.node:
        if not all(isinstance(name, str) for name in (node.name, node.op_type, node.domain, *node.input, *node.output)):
            raise refused(path, "bad-onnx", tr("has a name that is not UTF-8"))
        for name in node.output:
            if name and name in made:
                raise refused(path, "bad-onnx", tr("has two values with the name '{name}'", name=name[:80]))
            made.add(name)
        for tensor in _tensors(node):
            check_tensor(tensor, path, folder)
        for inner in _graphs(node):
            _check_graph(inner, path, folder, depth + 1)


def _tensors(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def check_tensor(tensor: Any, path: Path, folder: Path) -> None:
    """Raise DiagnosticError unless the data of a tensor has the size of its shape."""
    from onnx import TensorProto

    name = tensor.name[:80]
    if any(size < 0 for size in tensor.dims):
        raise refused(path, "bad-onnx", tr("has the tensor '{name}' with a negative dimension", name=name))
    count = prod(tensor.dims)
    bits = _bits(tensor.data_type)
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        needed, found = -(-count * bits // 8), _external_bytes(tensor, path, folder)
    elif tensor.HasField("raw_data"):
        needed, found = -(-count * bits // 8), len(tensor.raw_data)
    else:
        needed, found = _stored(tensor, count)
    if bits and needed != found:
        raise refused(
            path,
            "onnx-data",
            tr(
                "has the tensor '{name}' of {count} elements, which needs {needed} bytes, but its data has {found}",
                name=name,
                count=count,
                needed=needed,
                found=found,
            ),
        )


def _bits(data_type: int) -> int:
    """Bits of one element; 0 for texts and unknown types."""
    import onnx_ir as ir

    try:
        return int(ir.DataType(data_type).bitwidth)
    except (ValueError, TypeError):
        return 0


def _stored(tensor: Any, count: int) -> tuple[int, int]:
    """Needed and found numbers of values in the typed fields, as bytes of one element each."""
    from onnx import TensorProto as Kind

    fields = {Kind.FLOAT: ("float_data", 1), Kind.DOUBLE: ("double_data", 1), Kind.INT64: ("int64_data", 1)}
    fields |= {Kind.COMPLEX64: ("float_data", 2), Kind.COMPLEX128: ("double_data", 2), Kind.STRING: ("string_data", 1)}
    fields |= {Kind.UINT32: ("uint64_data", 1), Kind.UINT64: ("uint64_data", 1)}
    name, each = fields.get(tensor.data_type, ("int32_data", 1))
    per_value = 8 // _bits(tensor.data_type) if 0 < _bits(tensor.data_type) < 8 else 1
    return -(-count * each // per_value), len(getattr(tensor, name))


def _external_bytes(tensor: Any, path: Path, folder: Path) -> int:
    """The number of bytes that an external file has for a tensor. The file must be below the folder of the model."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    file = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not file.is_relative_to(folder):
        raise refused(
            path,
            "onnx-data",
            tr(
                "keeps the tensor '{name}' in '{location}', but external data must be inside the folder of the model",
                name=tensor.name[:80],
                location=location[:120],
            ),
            tr("move the data next to the model and save it again with relative locations"),
        )
    if not file.is_file():
        raise refused(
            path,
            "onnx-data",
            tr("keeps the tensor '{name}' in '{location}', which is missing", name=tensor.name[:80], location=location),
            tr("copy that file next to the model"),
        )
    try:
        offset = int(entries.get("offset", "0"))
        available: int = file.stat().st_size - offset
        length = int(entries.get("length", str(available)))
        if offset < 0 or (length < 0 and "length" in entries):
            raise ValueError
    except ValueError:
        raise refused(
            path, "onnx-data", tr("has the tensor '{name}' with an invalid offset or length", name=tensor.name[:80])
        ) from None
    return max(0, min(length, available))


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
