"""Computations of a network by what users call them: a precision, an engine, a variant, an ONNX file or another document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.opened_network import OpenedNetwork, load_weights_for, open_network
from designer.files.document import DOCUMENTS
from designer.files.settings import find_settings, read_settings
from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.importers.formats import ImportOptions
from designer.operators.deploy import deploy
from designer.precision.blame import Blame, Computation, blame
from designer.precision.computations import EngineComputation, FileComputation, names_in_file
from designer.precision.variants import VARIANT_PRECISIONS, run_options
from designer.runtime.api import Progress, RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.number_formats import FORMATS
from designer.runtime.session import Session
from designer.texts import tr

REFERENCE = "torch"  # computes in FP32 what emulated precisions round


@dataclass(frozen=True)
class Compared:
    """A network, its weights, the files of its inputs by layer, and how it runs; `other_weights` are those of another document."""

    network: OpenedNetwork
    weights: Weights
    inputs: Mapping[str, Path]
    options: RunOptions
    other_weights: Path | None = None


def blame_between(compared: Compared, a: str, b: str, progress: Progress | None = None) -> Blame:
    """The blame for the difference between two computations of a network, by name."""
    base = _computation(compared, "fp32")
    one, other = (_named(compared, base, name) for name in (a, b))
    return blame(base.operators([one, other]), one, other, base.inputs(), base.outputs, progress)


def _named(compared: Compared, base: EngineComputation, name: str) -> Computation:
    path = Path(name)
    if path.suffix.lower() == ".onnx":
        return _file(compared, base, path)
    if DOCUMENTS.reads(path):
        network = open_network(path)
        weights = load_weights_for(network, compared.other_weights, None)
        return _computation(replace(compared, network=network, weights=weights), "fp32")
    return _computation(compared, name)


def _computation(compared: Compared, name: str) -> EngineComputation:
    network = compared.network
    graph = deploy(network.graph, network.registry)
    options = run_options(_variant(network, name), replace(compared.options, engine=REFERENCE), graph)
    session = Session(graph, network.registry, compared.weights, options)
    for layer, path in compared.inputs.items():
        session.set_input_file(layer, path)
    return EngineComputation(session)


def _variant(network: OpenedNetwork, name: str) -> Variant:
    """The variant that a name means: one of the document, a precision, a number format of all layers, or an engine."""
    settings = find_settings(network.path)
    stored = read_settings(settings).settings.variants if settings is not None else ()
    found = next((variant for variant in stored if variant.name == name), None)
    if found is not None:
        return found
    if name in VARIANT_PRECISIONS:
        return Variant(name, precision=name)
    if name in FORMATS:
        return Variant(name, formats=dict.fromkeys(network.graph.layers, name))
    engines = default_engines().engines
    if name in engines:
        return Variant(name, engine=name)
    names = [*(variant.name for variant in stored), *VARIANT_PRECISIONS, *FORMATS, *engines]
    raise DiagnosticError.of(
        "no-such-variant",
        tr("'{name}' is not a variant, a precision or an engine", name=name),
        remedy=tr("choose one of {names}, or an .onnx file or a document", names=", ".join(names)),
    )


def _file(compared: Compared, base: EngineComputation, path: Path) -> FileComputation:
    """An ONNX file: one that was exported, or the one that the document was imported from."""
    from designer.importers.onnx.importing import import_proto
    from designer.importers.onnx.model_file import read_proto

    proto = read_proto(path)
    names = names_in_file(base, proto, {})
    if len(names) <= 1 + len(compared.inputs):  # others than inputs and outputs have names of their own
        imported = import_proto(proto, path, compared.network.registry, ImportOptions())
        values = {node.name or node.output[0]: node.output[0] for node in proto.graph.node}
        made = {}
        for outcome in imported.report.outcomes:  # in the order of the file: the last node of a layer makes its result
            if outcome.layers and outcome.node in values:
                made[Source(outcome.layers[-1])] = values[outcome.node]
        names = names_in_file(base, proto, made)
    return FileComputation(proto, names)
