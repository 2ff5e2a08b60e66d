"""What is asked of the engine, and when it may be asked at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.engine.inputs import layers_of
from designer.files.agreements import agreed
from designer.files.settings import Settings
from designer.graph.diagnostics import Diagnostic, errors
from designer.graph.model import Source
from designer.operators.api import Role
from designer.texts import tr

_OPENED_WITH = ("engine", "precision", "layout", "device", "threads", "tile", "weights", "random_seed")
OF_WEIGHT_FILES = ("cannot-read", "unknown-format", "wrong-shape", "bad-torch-data", "too-large")  # codes of `open`


def open_request(settings: Settings, text: str) -> OpenRequest:
    """Opens the network of a document's text with the document's settings."""
    return OpenRequest(
        text,
        settings.weights or None,
        settings.random_seed,
        settings.engine,
        settings.precision,
        settings.layout,
        settings.device,
        settings.threads,
        settings.tile,
        tuple(sorted(agreed())),
    )


def difference(before: Settings, after: Settings) -> tuple[bool, set[str]]:
    """Whether the network must be opened anew, and the layers whose input file is another one."""
    old, new = before.input_files, after.input_files
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return any(getattr(before, name) != getattr(after, name) for name in _OPENED_WITH), changed


def outermost(document: Document, path: str) -> str:
    """The layer of the document itself that `path` is, or that it is inside of; `path` where there is none."""
    places = [len(path), *(i for i, letter in enumerate(path) if letter == ".")]
    return next((path[:i] for i in places if path[:i] in document.graph), path)


def runnable(document: Document, sources: Iterable[str]) -> list[str]:
    """Those of `sources` that an inference of the document has, each once; `instance.layer` is inside of a template."""
    outer = {name: outermost(document, Source.parse(name).layer) for name in sources}
    return [name for name, layer in outer.items() if layer in document.graph and layer not in document.training]


def blocked(document: Document, input_path: Callable[[str], Path | None]) -> Diagnostic | None:
    """Why the network cannot be run."""
    outputs = layers_of(document.graph, document.registry, Role.OUTPUT)
    if not outputs:
        return Diagnostic("no-output", tr("the network has no output layer"), remedy=tr("add one and connect it"))
    upstream = document.graph.upstream(outputs)
    for name in upstream:
        state = document.inference.states.get(name)
        found = errors(state.diagnostics) if state is not None else ()
        if found:
            return found[0]
    for name in layers_of(document.graph, document.registry, Role.INPUT):
        if name in upstream and input_path(name) is None:
            return Diagnostic(
                "input-missing",
                tr("the input '{name}' has no image", name=name),
                layer=name,
                remedy=tr("choose one in Inputs"),
            )
    return None
