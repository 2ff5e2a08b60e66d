"""What is asked of the engine, and when it may be asked at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.document.template_view import find_layer
from app.ui.engine.inputs import layers_of
from designer.files.agreements import agreed
from designer.files.document import write_document
from designer.files.settings import Settings
from designer.files.variants import Variant
from designer.graph.diagnostics import Diagnostic, errors
from designer.graph.model import Source
from designer.graph.template import enclosing
from designer.operators.api import Role
from designer.precision.variants import DENSE, run_options
from designer.runtime.api import RunOptions
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


def variant_options(document: Document) -> RunOptions:
    """How the current variant of a document runs. Raises DiagnosticError for a precision that is not known here."""
    settings = document.settings
    base = RunOptions(
        settings.engine, settings.precision, settings.layout, settings.device, settings.threads, tile=settings.tile
    )
    variant = settings.current_variant
    return base if variant is None else run_options(variant, base, document.graph)


def open_variant(document: Document, weights: Path | None = None) -> OpenRequest:
    """Opens the network of a document as its current variant, with other `weights`. Raises DiagnosticError as `variant_options`."""
    options, variant = variant_options(document), document.settings.current_variant
    chosen = weights or (variant.weights if variant is not None else "")
    request = open_request(document.settings, write_document(document.graph).decode())
    request = with_variant(request, options, variant)
    return msgspec.structs.replace(request, weights=str(chosen)) if chosen else request


def with_variant(request: OpenRequest, options: RunOptions, variant: Variant | None) -> OpenRequest:
    """The request with the options that run a variant, its graph passes and its sparsity."""
    return msgspec.structs.replace(
        request,
        engine=options.engine,
        precision=options.precision,
        layout=options.layout,
        device=options.device,
        formats=dict(options.formats),
        passes=variant.passes if variant is not None else (),
        sparsity=variant.sparsity if variant is not None else DENSE,
    )


def run_settings(settings: Settings) -> tuple[object, ...]:
    """The settings that results of the network depend on, apart from its variants."""
    return (*(getattr(settings, name) for name in _OPENED_WITH), settings.input_files)


def difference(before: Settings, after: Settings) -> tuple[bool, set[str]]:
    """Whether the network must be opened anew, and the layers whose input file is another one."""
    old, new = before.input_files, after.input_files
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    other = any(getattr(before, name) != getattr(after, name) for name in _OPENED_WITH)
    return other or _without_formats(before) != _without_formats(after), changed


def _without_formats(settings: Settings) -> tuple[Variant | None, bool]:
    """The current variant as far as the network must be opened for it: with which engine, but not which formats it computes in, and why."""
    variant = settings.current_variant
    return (
        (None, False) if variant is None else (replace(variant, formats={}, reasons={}, name=""), bool(variant.formats))
    )


def outermost(document: Document, path: str) -> str:
    """The layer of the document itself that `path` is, or that it is inside of; `path` where there is none."""
    return next((name for name in enclosing(path) if name in document.graph), path)


def runnable(document: Document, sources: Iterable[str]) -> list[str]:
    """Those of `sources` that an inference of the document has, each once; `instance.layer` is inside of a template."""
    layers = {name: Source.parse(name).layer for name in sources}
    there = {name: layer for name, layer in layers.items() if find_layer(document.graph, layer) is not None}
    return [name for name, layer in there.items() if outermost(document, layer) not in document.training]


def blocked(document: Document, input_path: Callable[[str], Path | None]) -> Diagnostic | None:
    """Why the network cannot be run."""
    outputs = layers_of(document.graph, document.registry, Role.OUTPUT)
    if not outputs:
        return Diagnostic("no-output", tr("the network has no output layer"), remedy=tr("add one and connect it"))
    upstream = document.graph.upstream(outputs)
    for layer in document.graph:  # always the same problem first
        state = document.inference.states.get(layer.name) if layer.name in upstream else None
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
