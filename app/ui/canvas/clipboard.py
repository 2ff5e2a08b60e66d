"""Copies of layers as the text of a model file, so that they travel between documents, windows and messages."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer

MIME = "application/x-layerwright-network+xml"


def copy(graph: Graph, names: Iterable[str]) -> None:
    """Put layers on the clipboard. Links from outside are kept in the text; pasting decides about them."""
    from designer.files.document import write_document

    part = Graph((graph[n] for n in names), name=graph.name)
    data = write_document(part)
    mime = QMimeData()
    mime.setData(MIME, data)
    mime.setText(data.decode("utf-8"))
    QGuiApplication.clipboard().setMimeData(mime)


def can_paste() -> bool:
    """Whether the clipboard looks like layers; cheap."""
    mime = QGuiApplication.clipboard().mimeData()
    return mime is not None and (mime.hasFormat(MIME) or "<NetworkModel" in mime.text()[:4096])


def pasted() -> list[Layer]:
    """The layers on the clipboard. Raises DiagnosticError when there are none or the text cannot be read."""
    from designer.files.document import parse_document

    mime = QGuiApplication.clipboard().mimeData()
    data = bytes(mime.data(MIME).data()) if mime is not None and mime.hasFormat(MIME) else b""
    if not data and mime is not None:
        data = mime.text().encode()
    if b"<NetworkModel" not in data:
        raise DiagnosticError(
            Diagnostic("nothing-to-paste", "the clipboard holds no layers", remedy="copy layers with Ctrl+C first")
        )
    reading = parse_document(data, "clipboard", validate=False)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return list(reading.graph)
