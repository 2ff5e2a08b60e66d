"""The graph passes, in the order in which they run, and their application to a network.

Each pass keeps the function of the network up to rounding (`edit_effect` compares the outputs on an input). Memory traffic is
modelled as if every layer read its inputs from memory and wrote its results there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.commands import remove_layers
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.types import DataType
from designer.operators.api import Operator, Role
from designer.operators.registry import Registry
from designer.passes.rewriting import Rewriting, Subject, alone, moved_activation, shared_again
from designer.profiling.cost import cost_table
from designer.runtime.api import Part, RunOptions
from designer.runtime.engines.pytorch import TORCH
from designer.runtime.network import inputs_of, operator_of, output_layers, passes_through, role_of
from designer.surgery.operations import Patient, fold_batch_normalization
from designer.texts import mark, tr

MAX_CONSTANT = 1 << 20  # elements of a folded constant
_CONSTANTS = ("tensor_constant", "parameter")
_FUSES = ("convolution", "depthwise_convolution", "transposed_convolution", "separable_convolution", "fully_connected")


@dataclass(frozen=True)
class Pass:
    """A rewriting by its name in files and on the command line; `run` returns the network after it and the number of rewritings."""

    name: str
    title: str
    tip: str
    run: Callable[[Subject], tuple[Subject, int]]


@dataclass(frozen=True)
class Traffic:
    """Tensors that layers read or write, and their bytes in FP32 with the weights, for one image of the document's size."""

    accesses: int
    bytes: int


@dataclass(frozen=True)
class PassResult:
    """What a pass did: the number of rewritings, and the traffic before and after."""

    name: str
    count: int
    before: Traffic
    after: Traffic


@dataclass(frozen=True)
class Optimized:
    """A network after passes, its weights, and what each pass did."""

    graph: Graph
    weights: Weights
    results: tuple[PassResult, ...]


def optimize(graph: Graph, registry: Registry, weights: Weights, names: Iterable[str] | None = None) -> Optimized:
    """`graph`, which must have no templates, after the passes `names` in their order in PASSES, by default all.

    Analysis layers, losses, inputs and outputs stay. Raises DiagnosticError for an unknown pass.
    """
    wanted = set(PASSES) if names is None else _known(names)
    subject = Subject.of(graph, registry, weights)
    results = []
    before = traffic(subject)
    for each in PASSES.values():
        if each.name in wanted:
            subject, count = each.run(subject)
            after = traffic(subject)
            results.append(PassResult(each.name, count, before, after))
            before = after
    return Optimized(subject.graph, subject.weights, tuple(results))


def rewritten_layers(graph: Graph, weights: Weights, optimized: Optimized) -> frozenset[str]:
    """The layers whose results passes changed, because they merged others into them. `graph` and `weights` are those before."""
    changed = {key.layer for key, value in optimized.weights.tensors.items() if value is not weights.tensors.get(key)}
    return frozenset(
        layer.name
        for layer in optimized.graph
        if layer.name in graph
        and (layer.weights_name in changed or replace(layer, inputs=graph[layer.name].inputs) != graph[layer.name])
    )


def chosen(only: Collection[str] = (), without: Collection[str] = ()) -> tuple[str, ...]:
    """Names of passes: `only` these, or all but `without`. Raises DiagnosticError for an unknown pass."""
    included, excluded = _known(only) or set(PASSES), _known(without)
    return tuple(name for name in PASSES if name in included - excluded)


def traffic(subject: Subject) -> Traffic:
    """The modelled traffic of the layers that the outputs need."""
    inference = subject.inference
    needed = subject.graph.upstream(output_layers(inference))
    table = cost_table(inference)
    accesses = moved = 0
    for name, row in table.rows.items():
        if name in needed and role_of(inference, name) is Role.COMPUTE:
            accesses += len(row.inputs) + len(row.outputs)
            moved += sum(table.bytes_of(kind) for kind in (*row.inputs, *row.outputs)) + row.weight_bytes
    return Traffic(accesses, moved)


def _known(names: Iterable[str]) -> set[str]:
    found = set(names)
    unknown = sorted(found - PASSES.keys())
    if unknown:
        raise DiagnosticError.of(
            "unknown-pass",
            tr("there is no graph pass '{name}'", name=unknown[0]),
            remedy=tr("choose one of {names}", names=", ".join(PASSES)),
        )
    return found


# --- the passes -----------------------------------------------------------------------------------------------------


def _fold_normalizations(subject: Subject) -> tuple[Subject, int]:
    """Multiply the scales of batch normalizations into the kernels before them."""
    count, before = 0, subject.graph
    for name in [layer.name for layer in before if layer.type == "batch_normalization"]:
        apart = subject
        for changed in (name, *subject.graph[name].producers()):
            apart = alone(apart, changed)
        patient = Patient(apart.graph, subject.registry, apart.weights)
        try:
            operation = fold_batch_normalization(patient, name)
        except DiagnosticError:
            continue  # another layer reads the convolution, or there is none
        graph = apart.graph.copy()
        graph.apply(operation.edit)
        subject = Subject.of(graph, subject.registry, operation.weights)
        count += 1
    return (shared_again(subject, before), count) if count else (subject, 0)


def _fold_constants(subject: Subject) -> tuple[Subject, int]:
    """Compute what depends on constants only."""
    inference = subject.inference
    constant = {layer.name for layer in subject.graph if layer.type in _CONSTANTS}
    folded = []
    for name in subject.graph.order()[0]:
        sources = inputs_of(inference, subject.graph[name])
        if sources and all(source.layer in constant for source in sources) and _can_be_constant(subject, name):
            constant.add(name)
            folded.append(name)
    ends = [n for n in folded if any(reader not in constant for reader in subject.graph.consumers(n))]
    if not ends:
        return subject, 0
    order = tuple(name for name in subject.graph.order()[0] if name in constant)
    engine = TORCH.engine(inference, subject.weights, RunOptions(TORCH.name))
    made = engine.compile(Part(order, ()), [Source(name) for name in ends]).run({})
    work = Rewriting()
    for name in ends:
        array = np.asarray(made[Source(name)], np.float32)
        shape = ",".join(str(side) for side in array.shape)
        work.changed[name] = Layer(name, "parameter", params={"shape": shape}, position=subject.graph[name].position)
        work.weights[WeightKey(name, "value")] = array
    return _without_unread(work.applied(subject), constant - set(ends)), len(ends)


def _can_be_constant(subject: Subject, name: str) -> bool:
    state = subject.inference.states[name]
    kind = state.outputs[0] if state.outputs is not None and len(state.outputs) == 1 else None
    return (
        kind is not None
        and role_of(subject.inference, name) is Role.COMPUTE
        and kind.dtype is DataType.FLOAT32
        and kind.rank > 0
        and all(isinstance(side, int) for side in kind.shape)
        and kind.elements(1) <= MAX_CONSTANT
    )


def _without_unread(subject: Subject, names: Collection[str]) -> Subject:
    """The network without those of `names` that nothing reads any more."""
    graph = subject.graph.copy()
    while unread := [name for name in names if name in graph and not graph.consumers(name)]:
        graph.apply(remove_layers(graph, unread))
    return Subject.of(graph, subject.registry, subject.weights)


def _drop_identities(subject: Subject) -> tuple[Subject, int]:
    """Remove layers that pass their input through unchanged."""
    work = Rewriting()
    for name in subject.graph.order()[0]:
        known = subject.inference.states[name].ok and role_of(subject.inference, name) is Role.COMPUTE
        if known and passes_through(subject.inference, name):
            work.replaced[name] = inputs_of(subject.inference, subject.graph[name])[0]
    return (work.applied(subject), len(work.replaced)) if work else (subject, 0)


def _merge_equal_layers(subject: Subject) -> tuple[Subject, int]:
    """Compute layers of the same parameters, weights and inputs once."""
    work = Rewriting()
    first: dict[tuple[object, ...], str] = {}
    for name in subject.graph.order()[0]:
        layer = subject.graph[name]
        if not subject.inference.states[name].ok or role_of(subject.inference, name) is not Role.COMPUTE:
            continue
        operator = operator_of(subject.inference, name)
        inputs = tuple(work.source(source) for source in inputs_of(subject.inference, layer))
        params = tuple(operator.texts().items())
        key = (layer.type, params, str(layer.activation), inputs, _digest(subject, layer))
        known = first.setdefault(key, name)
        if known != name and len(operator.output_ports()) == 1:
            work.replaced[name] = Source(known)
    return (work.applied(subject), len(work.replaced)) if work else (subject, 0)


def _digest(subject: Subject, layer: Layer) -> str:
    """A fingerprint of the weights of a layer."""
    found = sha256()
    for key, tensor in sorted(subject.weights.tensors.items()):
        if key.layer == layer.weights_name:
            found.update(key.tensor.encode() + np.ascontiguousarray(tensor).tobytes())
    return found.hexdigest()


def _fuse_activations(subject: Subject) -> tuple[Subject, int]:
    """Compute an activation together with the convolution or fully connected layer before it."""
    pairs: list[tuple[str, str]] = []
    for layer in subject.graph:
        if layer.type != "activation" or not subject.inference.states[layer.name].ok or layer.bypassed:
            continue
        (source,) = inputs_of(subject.inference, layer)
        before = subject.graph[source.layer]
        only = subject.graph.consumers(before.name) == (layer.name,)
        if before.type in _FUSES and before.activation is None and not before.bypassed and only:
            pairs.append((layer.name, before.name))
    apart = subject
    for name, before_name in pairs:
        if moved_activation(apart, apart.graph[name], apart.graph[before_name]):
            apart = alone(apart, before_name)
    work = Rewriting()
    for name, before_name in pairs:
        layer, before = apart.graph[name], apart.graph[before_name]
        work.changed[before_name] = replace(before, activation=layer.activation)
        work.replaced[name] = Source(before_name)
        work.weights.update(moved_activation(apart, layer, before))
    return (shared_again(work.applied(apart), subject.graph), len(work.replaced)) if work else (subject, 0)


def _cancel_permutations(subject: Subject) -> tuple[Subject, int]:
    """Remove pairs of permutations that give the layout before them, such as NCHW to NHWC and back."""
    count = 0
    while True:
        work = Rewriting()
        for layer in subject.graph:
            if layer.type != "permute" or layer.activation is not None or not subject.inference.states[layer.name].ok:
                continue
            (source,) = inputs_of(subject.inference, layer)
            before = subject.graph[source.layer]
            if before.type == "permute" and before.activation is None and before.name not in work.replaced:
                outer, inner = _axes(subject, layer), _axes(subject, before)
                if [inner[axis] for axis in outer] == list(range(len(outer))):
                    work.replaced[layer.name] = inputs_of(subject.inference, before)[0]
        if not work:
            return subject, count
        count += len(work.replaced)
        gone = {subject.graph[name].inputs[0] for name in work.replaced}
        subject = _without_unread(work.applied(subject), [source.layer for source in gone if source is not None])


def _axes(subject: Subject, layer: Layer) -> list[int]:
    operator: Operator = operator_of(subject.inference, layer.name)
    axes: tuple[int, ...] = operator.axes  # type: ignore[attr-defined]
    return [axis % len(axes) for axis in axes]


PASSES = {
    each.name: each
    for each in (
        Pass(
            "fold_constants",
            mark("Fold Constants"),
            mark("Computes once what depends on constants only"),
            _fold_constants,
        ),
        Pass(
            "drop_identities",
            mark("Drop Identities"),
            mark("Removes layers that pass their input through unchanged, such as dropout in inference"),
            _drop_identities,
        ),
        Pass(
            "cancel_permutations",
            mark("Cancel Layout Changes"),
            mark("Removes pairs of permutations that give the layout before them"),
            _cancel_permutations,
        ),
        Pass(
            "merge_equal_layers",
            mark("Merge Equal Layers"),
            mark("Computes layers of the same parameters, weights and inputs once"),
            _merge_equal_layers,
        ),
        Pass(
            "fold_normalizations",
            mark("Fold Batch Normalizations"),
            mark("Multiplies batch normalizations into the convolutions before them"),
            _fold_normalizations,
        ),
        Pass(
            "fuse_activations",
            mark("Fuse Activations"),
            mark("Computes an activation together with the convolution before it, without a tensor in between"),
            _fuse_activations,
        ),
    )
}
