"""Labels of values: from the layer itself, or class names from a text file with one label per line (`label_path`)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from app.ui.document.document import Document
from app.ui.widgets.typed_path import typed_path
from designer.graph.model import Source
from designer.operators.api import Role

LARGEST = 1 << 20  # maximum number of bytes read from a file


def labels_of(document: Document, source: str) -> tuple[str, ...]:
    """The labels of a tensor's values, from the layer or from an output layer that reads it; () if the file is invalid."""
    graph, (layer, port) = document.graph, Source.parse(source)
    if layer not in graph:
        return ()
    operator = document.registry.read(graph[layer]).operator
    own = operator.labels(port) if operator is not None else ()
    if own:
        return tuple(own)
    for name in (layer, *graph.consumers(layer)):
        cls = document.registry.get(graph[name].type)
        text = graph[name].params.get("label_path", "").strip()
        if text and cls is not None and cls.role is Role.OUTPUT:
            path = typed_path(text)
            if not path.is_absolute() and document.path is not None:
                path = document.path.parent / path
            return read_labels(path)
    return ()


def read_labels(path: Path) -> tuple[str, ...]:
    """The lines of a text file; () if it cannot be read."""
    try:
        info = path.stat()
        return _read(path, info.st_mtime_ns) if S_ISREG(info.st_mode) else ()  # reading a device or a pipe could block
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> tuple[str, ...]:
    with path.open("rb") as file:
        text = file.read(LARGEST).decode("utf-8-sig", errors="replace")
    return tuple(line.strip() for line in text.splitlines())
