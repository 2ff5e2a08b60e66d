"""Reading and writing documents."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from designer.files import limits
from designer.files.atomic import write_atomic
from designer.files.disk_watch import digest_of
from designer.files.formats import Format, FormatTable
from designer.files.reader import NAMESPACE, PREFIX, check_root, read_records
from designer.files.schema import check_schema
from designer.files.writer import write_tree
from designer.files.xml_tree import XmlError, parse_xml
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.texts import tr


@dataclass(frozen=True)
class Reading:
    """The result of reading a document. `graph` is None if there is an error: a broken file is never opened in part.

    `lines` maps each layer to its line in the file, and `<template>/<layer>` each layer of a template. `digest` is that of the
    file's bytes, "" if they were not read from a file.
    """

    graph: Graph | None
    diagnostics: tuple[Diagnostic, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    file: str = ""
    digest: str = ""


def parse_document(data: bytes, file: str = "", validate: bool = True) -> Reading:
    """Parse the document in `data`. Never raises; `file` is the name in diagnostics.

    `validate` also checks the XSD, which loads lxml. Without it, all rules that the graph relies on are still checked. A
    file that equals its canonical form byte for byte and has no foreign parts satisfies the XSD by construction, so the check is
    skipped.
    """
    try:
        root, outside = parse_xml(data, prefixes={PREFIX: NAMESPACE})
    except XmlError as error:
        return _failed(Diagnostic(error.code, error.message, line=error.line, remedy=error.remedy), file)
    wrong = check_root(root)
    if wrong is not None:
        return _failed(wrong, file)
    found = read_records(root, outside)
    diagnostics = list(found.diagnostics)
    graph = found.graph
    if validate and not is_canonical(graph, data):
        # The reader's diagnostics are clearer: the schema only adds those of other lines.
        known = {d.line for d in diagnostics if d.severity is Severity.ERROR}
        extra = [d for d in check_schema(data) if d.line not in known]
        diagnostics.extend(extra)
        if extra:
            graph = None
    return Reading(graph, tuple(_in_file(d, file) for d in diagnostics), found.lines, file)


def read_document(path: str | os.PathLike[str]) -> Reading:
    """Read a document in one of the formats of `DOCUMENTS`. Never raises."""
    try:
        return DOCUMENTS.reader(path)(Path(path))
    except DiagnosticError as error:
        return Reading(None, error.diagnostics, {}, str(path))


def write_document(graph: Graph) -> bytes:
    """The document as bytes in canonical form. Raises DiagnosticError for characters that XML cannot store."""
    return write_tree(graph).encode("utf-8")


def save_document(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write the document atomically in the format of the path's suffix.

    Raises DiagnosticError ("cannot-save", "unknown-format") and keeps the old file on failure.
    """
    write_atomic(path, DOCUMENTS.writer(path)(graph))


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises XmlError with code, message and remedy."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            what = tr("a folder") if stat.S_ISDIR(info.st_mode) else tr("not a regular file")
            raise XmlError("cannot-read", tr("{path} is {what}", path=path, what=what), tr("choose a file"))
        if info.st_size > limit:
            raise XmlError(
                "file-too-large",
                tr("{path} has {st_size} bytes, the limit is {limit}", path=path, st_size=info.st_size, limit=limit),
                tr("this is not a Layerwright file; choose another"),
            )
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise XmlError(
            "cannot-read",
            tr("{path} cannot be read: {reason}", path=path, reason=reason),
            tr("check the path and your permissions"),
        ) from None


def _read_model(path: Path) -> Reading:
    try:
        data = read_bounded(path, limits.MAX_DOCUMENT_BYTES)
    except XmlError as error:
        return _failed(Diagnostic(error.code, error.message, remedy=error.remedy), str(path))
    return replace(parse_document(data, str(path)), digest=digest_of(data))


DOCUMENTS: FormatTable[Callable[[Path], Reading], Callable[[Graph], bytes]] = FormatTable(
    "networks",
    (
        Format("Network", (".xml",), _read_model, write_document),
        Format("Network of the 2022 tool", (".nv-neural-model",), _read_model, write_document),
    ),
)


def is_canonical(graph: Graph | None, data: bytes) -> bool:
    if (
        graph is None
        or graph.foreign
        or graph.attributes
        or graph.templates
        or any(_has_foreign(layer) for layer in graph)
    ):
        return False
    try:
        return write_document(graph) == data
    except DiagnosticError:  # characters that XML cannot store
        return False


def _has_foreign(layer: Layer) -> bool:
    spec = layer.activation
    return bool(layer.attributes or layer.children or (spec is not None and (spec.attributes or spec.children)))


def _failed(diagnostic: Diagnostic, file: str) -> Reading:
    return Reading(None, (_in_file(diagnostic, file),), {}, file)


def _in_file(diagnostic: Diagnostic, file: str) -> Diagnostic:
    return replace(diagnostic, file=file or None)
