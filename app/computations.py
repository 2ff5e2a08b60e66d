"""Computations of a network by what users call them: a precision, an engine, a variant, an ONNX file or another document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.opened_network import load_weights_for, open_network
from designer.files.document import DOCUMENTS
from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.importers.formats import ImportOptions
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.precision.blame import Blame, Computation, blame
from designer.precision.computations import EngineComputation, FileComputation, names_in_file
from designer.precision.variants import VARIANT_PRECISIONS, own_weights, runnable_variant
from designer.runtime.api import Progress, RunOptions, Tensor
from designer.runtime.engine_registry import default_engines
from designer.runtime.number_formats import FORMATS
from designer.runtime.session import Session
from designer.texts import tr

REFERENCE = "torch"  # computes in FP32 what emulated precisions round
PLAIN = Variant("fp32", precision="fp32")  # the network itself; a variant of a document can have this name too
ONNX = ".onnx"
VARIANT = "variant:"  # before the name of a variant that would mean something else by itself


@dataclass(frozen=True)
class Compared:
    """A network, its weights, what feeds its inputs, and its variants; `other_weights` are those of another document."""

    graph: Graph
    registry: Registry
    weights: Weights
    options: RunOptions
    feed: Callable[[Session], None]
    variants: Sequence[Variant] = ()
    other_weights: Path | None = None


def blame_between(compared: Compared, a: str, b: str, progress: Progress | None = None) -> Blame:
    """The blame for the difference between two computations of a network, by name."""
    base = _computation(compared, PLAIN)
    one, other = (_named(compared, base, name) for name in (a, b))
    return blame(base.operators([one, other]), one, other, base.inputs(), base.outputs, progress)


def tensors_of(compared: Compared, names: Sequence[str], source: Source) -> list[Tensor]:
    """One tensor of a network in several computations."""
    base = _computation(compared, PLAIN)
    inputs = base.inputs()
    steps = [_named(compared, base, name).step((source,), inputs) for name in names]
    return [step.run(inputs)[source] for step in steps]


def computation_titles(variants: Sequence[Variant]) -> dict[str, str]:
    """What a computation can be called, besides ONNX files and documents, and its title on screen."""
    precisions = {name: name.upper() for name in VARIANT_PRECISIONS}
    integers = {name: name.upper() for name, found in FORMATS.items() if found.is_integer}
    engines = {e.name: e.title for e in default_engines() if not e.formats and e.available() is None}
    return {
        **precisions,
        **integers,
        **engines,
        **{variant_name(each.name): tr("{name} (variant)", name=each.name) for each in variants},
    }


def variant_name(name: str) -> str:
    """What the computation of a variant is called: its name, after `variant:` if that is also a precision, an engine or a file."""
    taken = (
        name in VARIANT_PRECISIONS
        or name in FORMATS
        or name in default_engines().engines
        or name.startswith(VARIANT)
        or Path(name).suffix.lower() == ONNX
        or DOCUMENTS.reads(Path(name))
    )
    return f"{VARIANT}{name}" if taken else name


def _named(compared: Compared, base: EngineComputation, name: str) -> Computation:
    if name in map(variant_name, (each.name for each in compared.variants)):
        return _computation(compared, _variant(compared, name))
    path = Path(name)
    if path.suffix.lower() == ONNX:
        return _file(compared, base, path)
    if DOCUMENTS.reads(path):
        network = open_network(path)
        weights = load_weights_for(network, compared.other_weights, None)
        return _computation(replace(compared, graph=network.graph, weights=weights), PLAIN)
    return _computation(compared, _variant(compared, name))


def _computation(compared: Compared, variant: Variant) -> EngineComputation:
    graph = deploy(compared.graph, compared.registry)
    base = replace(compared.options, engine=REFERENCE)
    weights = own_weights(variant, graph, compared.registry, compared.weights)
    ready = runnable_variant(variant, graph, compared.registry, weights, base)
    session = Session(ready.graph, compared.registry, ready.weights, ready.options)
    compared.feed(session)
    return EngineComputation(session, ready.rewritten)


def _variant(compared: Compared, name: str) -> Variant:
    """The variant that a name means: one of the document, a precision, a number format of all layers, or an engine."""
    found = next((variant for variant in compared.variants if variant_name(variant.name) == name), None)
    if found is not None:
        return found
    if name in VARIANT_PRECISIONS:
        return Variant(name, precision=name)
    if name in FORMATS:
        graph = deploy(compared.graph, compared.registry)
        return Variant(name, formats=dict.fromkeys(graph.layers, name))
    if name in default_engines().engines:
        return Variant(name, engine=name)
    raise DiagnosticError.of(
        "no-such-variant",
        tr("'{name}' is not a precision, an engine or a variant", name=name),
        remedy=tr(
            "choose one of {names}, an .onnx file or a document", names=", ".join(computation_titles(compared.variants))
        ),
    )


def _file(compared: Compared, base: EngineComputation, path: Path) -> FileComputation:
    """An ONNX file: one that was exported, or the one that the document was imported from."""
    from designer.importers.onnx.importing import import_proto
    from designer.importers.onnx.model_file import read_proto

    proto = read_proto(path)
    names = names_in_file(base, proto, {})
    if len(names) <= len(base.inputs()) + len(base.outputs):  # all others have names of their own
        imported = import_proto(proto, path, compared.registry, ImportOptions())
        values = {node.name or node.output[0]: node.output[0] for node in proto.graph.node}
        made = {  # the last node of a layer, in the order of the file, makes its result
            Source(outcome.layers[-1]): values[outcome.node]
            for outcome in imported.report.outcomes
            if outcome.layers and outcome.node in values
        }
        names = names_in_file(base, proto, made)
    return FileComputation(proto, names, compared.options.threads)
