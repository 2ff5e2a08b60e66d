"""What is compared: a network, weights and the way it is run, ready to be sent to an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.document.weights_dialog import probable_folder, weights_folder
from app.ui.engine.inputs import layers_of
from app.ui.engine.requests import open_request, with_variant
from designer.files.document import DOCUMENTS, read_document, write_document
from designer.files.settings import Settings, find_settings, read_settings
from designer.files.variants import Variant as SavedVariant
from designer.graph.diagnostics import Diagnostic, DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.types import Size3D
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.precision.variants import find_variant, is_deployed, run_options
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.engines.forms import ONNX_RUNTIME
from designer.runtime.provenance import digest_of
from designer.texts import tr

RANDOM = "random"  # as `weights` of a choice: seeded random numbers


@dataclass(frozen=True, slots=True)
class VariantChoice:
    """The choices for one variant. Empty texts: as the document's settings say."""

    source: Document | Path
    weights: str = ""  # a folder or file, or RANDOM
    engine: str = ""
    precision: str = ""
    device: str = ""
    variant: str = ""  # one of the network's settings, by name

    @property
    def path(self) -> Path | None:
        """The file of the document."""
        return self.source if isinstance(self.source, Path) else self.source.path

    @property
    def title(self) -> str:
        """The document's name without its suffix."""
        if self.path is not None:
            return DOCUMENTS.stem(self.path.name)
        return self.source.graph.name if isinstance(self.source, Document) else ""

    @property
    def full_title(self) -> str:
        """With what is chosen otherwise than the settings say."""
        weights = Path(self.weights).name if self.weights else ""
        engine = default_engines().title(self.engine)
        detail = ", ".join(text for text in (self.variant, weights, engine, self.device, self.precision) if text)
        return f"{self.title} ({detail})" if detail else self.title


@dataclass(frozen=True)
class Variant:
    """A network ready to be opened in an engine; `opening` opens it. `document` is the name of its file."""

    name: str
    opening: OpenRequest
    input: str
    output: str
    channels: int
    document: str
    document_sha256: str


def make_variant(choice: VariantChoice, letter: str, registry: Registry) -> Variant:
    """Raises DiagnosticError if the network does not exist or does not have one input and an output."""
    graph, settings = _source(choice.source)
    found = find_variant(settings.variants, choice.variant) if choice.variant else None
    settings = _chosen(settings, choice, found)
    digest = digest_of(graph)
    graph = deploy(graph, registry)
    inference = Inference(graph, registry)
    inputs, outputs = layers_of(graph, registry, Role.INPUT), layers_of(graph, registry, Role.OUTPUT)
    wrong = errors(inference.diagnostics())
    if wrong:
        raise DiagnosticError(wrong)
    if len(inputs) != 1 or not outputs:
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                tr(
                    "{title} has {inputs} inputs and {outputs} outputs",
                    title=choice.title,
                    inputs=len(inputs),
                    outputs=len(outputs),
                ),
                remedy=tr("compare networks with one input and an output"),
            )
        )
    dims = getattr(inference.read(inputs[0]).operator, "dims", None)
    channels = dims.channels if isinstance(dims, Size3D) else 3
    text = write_document(graph).decode()
    opening = open_request(settings, text)
    if found is not None:
        base = RunOptions(settings.engine, settings.precision, settings.layout, settings.device)
        opening = with_variant(opening, run_options(found, base, graph), found)
        if is_deployed(found) and not found.passes:
            opening = msgspec.structs.replace(
                opening, engine=ONNX_RUNTIME, precision=found.precision, formats={}, deployed=found
            )
    name = choice.source.name if isinstance(choice.source, Path) else choice.source.title
    return Variant(f"{letter} {choice.full_title}", opening, inputs[0], outputs[0], channels, name, digest)


def settings_of(source: Document | Path) -> Settings:
    """The settings of an open document, or of a file."""
    if isinstance(source, Document):
        return source.settings
    path = find_settings(source)
    return read_settings(path).settings if path is not None else Settings()


def probable_weights(choice: VariantChoice) -> str:
    """The folder in which the weights of a choice probably are, as in the dialog for those of a document."""
    chosen = choice.weights if choice.weights != RANDOM else ""
    if chosen:
        return str(Path(chosen).parent)
    if isinstance(choice.source, Document):
        return probable_folder(choice.source)
    graph = read_document(choice.source).graph
    name = graph.name if graph is not None else choice.title
    return weights_folder(settings_of(choice.source).weights, choice.source, name)


def _source(source: Document | Path) -> tuple[Graph, Settings]:
    if isinstance(source, Document):
        return source.graph, source.settings
    reading = read_document(source)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return reading.graph, settings_of(source)


def _chosen(settings: Settings, choice: VariantChoice, variant: SavedVariant | None) -> Settings:
    if variant is not None and variant.weights:
        settings = replace(settings, weights=variant.weights, random_seed=None)
    if choice.weights == RANDOM:
        settings = replace(settings, weights="", random_seed=0)
    elif choice.weights:
        settings = replace(settings, weights=choice.weights, random_seed=None)
    return replace(
        settings,
        engine=choice.engine or settings.engine,
        precision=choice.precision or settings.precision,
        device=choice.device or settings.device,
    )
