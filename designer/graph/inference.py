"""Incremental shape inference and diagnostics of a whole network.

Only layers downstream of a change are inferred again, and only while results differ. The module uses operators through the
`Lookup` protocol, which `designer.operators.registry.Registry` implements. A lookup that depends on more than a layer's own
text (for instances of templates) is a `GraphLookup`, made for one graph.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Protocol, TypeVar, runtime_checkable

from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity, errors
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.ranks import Ranks
from designer.graph.types import ShapeError, Symbol, TensorType
from designer.texts import tr

Result = TypeVar("Result")
Steps = Generator[None, None, Result]  # work that can be interrupted
PAUSE = 64  # layers between two pauses
REMEMBERED = 10_000  # combinations of an operator and input types whose result is kept


class PortLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def variadic(self) -> bool: ...
    @property
    def optional(self) -> bool: ...


class OperatorLike(Protocol):
    def input_ports(self) -> Sequence[PortLike]: ...
    def output_ports(self) -> Sequence[PortLike]: ...
    def infer_checked(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]: ...


class ReadLike(Protocol):
    @property
    def operator(self) -> OperatorLike | None: ...
    @property
    def activation(self) -> OperatorLike | None: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...


class Lookup(Protocol):
    def read(self, layer: Layer) -> ReadLike: ...


class GraphLookup(Lookup, Protocol):
    """A lookup that knows the graph.

    `stale` names the layers to read again after a change in addition to the changed ones, `findings` the problems beyond
    single layers.
    """

    def stale(self, change: ChangeSet) -> set[str]: ...
    def findings(self, inference: Inference) -> Sequence[Diagnostic]: ...


@runtime_checkable
class Binding(Lookup, Protocol):
    """A lookup that can be bound to a graph."""

    def for_graph(self, graph: Graph) -> GraphLookup: ...


@dataclass(frozen=True, slots=True)
class LayerState:
    """The inferred state of one layer.

    `outputs` is None if the types are unknown, because of the layer's own `diagnostics` or because of another layer; then
    `because_of` names the nearest layer upstream that has the problem. `inputs` are the input types, one per connected
    port, and `before_activation` is the type of the first output without the attached activation.
    """

    outputs: tuple[TensorType, ...] | None = None
    inputs: tuple[TensorType, ...] = ()
    before_activation: TensorType | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    because_of: str | None = None

    @property
    def ok(self) -> bool:
        return self.outputs is not None


@dataclass(slots=True)
class _Parsed:
    layer: Layer
    read: ReadLike


class _Results:
    """States without diagnostics by operator and input types, of which a large network has few.

    Keys are identities, because hashing types takes as long as inferring simple layers. Equal types are therefore made
    one object, and entries keep alive what their keys identify.
    """

    def __init__(self) -> None:
        self._types: dict[TensorType, TensorType] = {}
        self._states: dict[tuple[int, ...], tuple[ReadLike, LayerState]] = {}

    def get(self, read: ReadLike, inputs: Sequence[TensorType]) -> LayerState | None:
        found = self._states.get((id(read), *map(id, inputs)))
        return found[1] if found is not None else None

    def put(self, read: ReadLike, state: LayerState) -> LayerState:
        """Keep a state; the same with types that are shared."""
        if state.outputs is None or not all(_plain(t) for t in state.outputs):
            return state
        if len(self._states) >= REMEMBERED:
            self._states.clear()
            self._types.clear()
        state = replace(state, outputs=tuple(self._types.setdefault(t, t) for t in state.outputs))
        self._states[id(read), *map(id, state.inputs)] = read, state
        return state


def _plain(tensor: TensorType) -> bool:
    """Whether the sizes are plain numbers: those of a proof of the valid sizes note every comparison."""
    return all(type(size) is int or isinstance(size, Symbol) for size in tensor.shape)


def finish(steps: Steps[Result]) -> Result:
    """Run all steps and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


class Inference:
    """The states of all layers of `graph`. Call `update` with every ChangeSet, for instance from `History.subscribe`.

    With `empty=True` nothing is inferred until `refresh` or `refreshing`. If steps are not
    run to the end, the states are invalid.
    """

    def __init__(self, graph: Graph, lookup: Lookup, *, empty: bool = False) -> None:
        self.graph = graph
        self.bound = lookup.for_graph(graph) if isinstance(lookup, Binding) else None
        self.lookup: Lookup = self.bound or lookup
        self._parsed: dict[str, _Parsed] = {}
        self.states: dict[str, LayerState] = {}
        self.last_inferred = 0  # layers that the last update visited
        self._ranks = Ranks(graph)
        self._results = _Results()
        self._found: tuple[Diagnostic, ...] | None = None  # of all layers, once they were asked for
        if not empty:
            self.refresh()

    def refresh(self) -> None:
        """Infer everything from scratch."""
        finish(self.refreshing())

    def refreshing(self) -> Steps[None]:
        """`refresh` in steps."""
        self._found = None
        self._parsed.clear()
        self.states.clear()
        self._ranks.renew()
        yield
        yield from self._run(set(self.graph.layers))

    def adopt(self, other: Inference) -> None:
        """Take the states of an equal network instead of inferring them."""
        self._parsed = dict(other._parsed)
        self.states = dict(other.states)
        self._ranks.adopt(other._ranks)
        self._found = other._found

    def update(self, change: ChangeSet) -> frozenset[str]:
        """Infer the layers that `change` affects. Returns those whose state changed."""
        return finish(self.updating(change))

    def updating(self, change: ChangeSet) -> Steps[frozenset[str]]:
        """`update` in steps."""
        self._found = None
        for name in change.removed:
            self._parsed.pop(name, None)
            self.states.pop(name, None)
        stale = self.bound.stale(change) if self.bound is not None else set()
        for name in stale:
            self._parsed.pop(name, None)
        dirty = {n for n in change.computed | stale if n in self.graph}
        for name in change.removed | change.added:
            dirty.update(n for n in self.graph.consumers(name) if n in self.graph)
        for name in change.reconfigured | stale:  # its outputs may have been renamed
            dirty.update(n for n in self.graph.consumers(name) if any(s and s.port for s in self.graph[n].inputs))
        if change.added or change.removed or change.rewired:
            self._ranks.update(change.removed, change.added | change.rewired)
        return frozenset((yield from self._spread(dirty) if self._ranks.known else self._run(dirty)))

    def read(self, name: str) -> ReadLike:
        """The typed operator of a layer, cached until its text changes."""
        layer = self.graph[name]
        parsed = self._parsed.get(name)
        if parsed is not None:
            if parsed.layer is layer:
                return parsed.read
            old = parsed.layer
            if (old.type, old.params, old.activation) == (layer.type, layer.params, layer.activation):
                parsed.layer = layer
                return parsed.read
        read = self.lookup.read(layer)
        self._parsed[name] = _Parsed(layer, read)
        return read

    # --- queries ---------------------------------------------------------------------------------------------

    def tensors(self, layer: str) -> tuple[Source, ...]:
        """The outputs of a layer in port order, by their canonical names: the first has an empty port.

        Raises DiagnosticError if the layer does not exist, or if its type or parameters cannot be read.
        """
        if layer not in self.graph:
            found = Diagnostic(
                "no-such-layer", tr("there is no layer '{layer}'", layer=layer), remedy=tr("choose an existing layer")
            )
            raise DiagnosticError(found)
        read = self.read(layer)
        if read.operator is None:
            raise DiagnosticError(errors(read.diagnostics) or read.diagnostics)
        return tuple(Source(layer, port.name if i else "") for i, port in enumerate(read.operator.output_ports()))

    def tensor(self, source: Source) -> Source:
        """The canonical name of a tensor: a first output has an empty port. Raises DiagnosticError for unknown tensors."""
        if not source.port and source.layer in self.graph:
            return source
        known = self.tensors(source.layer)
        number = self._port_number(source.layer, source.port)
        if number is None:
            operator = self.read(source.layer).operator
            ports = ", ".join(port.name for port in operator.output_ports()) if operator is not None else ""
            message = tr("'{layer}' has no output '{port}'", layer=source.layer, port=source.port)
            raise DiagnosticError.of(
                "unknown-port", message, layer=source.layer, remedy=tr("choose one of {ports}", ports=ports)
            )
        return known[number]

    def type_of(self, source: Source) -> TensorType | None:
        """The type of a tensor; None if it is unknown or the tensor does not exist."""
        state = self.states.get(source.layer)
        if source.layer not in self.graph or state is None or state.outputs is None:
            return None
        number = self._port_number(source.layer, source.port)
        return state.outputs[number] if number is not None and number < len(state.outputs) else None

    def passed_input(self, name: str) -> Source | None:
        """The input that a layer passes through when bypassed: the first of its only output's type; None if none fits."""
        return self._passed(self.graph[name], self.states[name].outputs or ())

    def _passed(self, layer: Layer, outputs: Sequence[TensorType]) -> Source | None:
        if len(outputs) != 1:
            return None
        return next((s for s in layer.inputs if s is not None and self.type_of(s) == outputs[0]), None)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics, errors first, then by layer name."""
        if self._found is None:
            rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
            found = [d for state in self.states.values() for d in state.diagnostics]
            if self.bound is not None:
                found.extend(self.bound.findings(self))
            self._found = tuple(sorted(found, key=lambda d: (rank[d.severity], d.layer or "", d.code)))
        return self._found

    # --- the pass --------------------------------------------------------------------------------------------

    def _run(self, dirty: set[str]) -> Steps[set[str]]:
        """Infer everything downstream of `dirty`, whose links may form loops."""
        everything = len(dirty) == len(self.graph)
        region = dirty if everything else self.graph.downstream(dirty)
        order, stuck = self.graph.order(None if everything else region)
        changed: set[str] = set()
        self.last_inferred = 0
        if stuck:
            loops = self.graph.loops(stuck)
            for name in stuck:
                if name in loops:
                    self._store(name, self._looped(self.graph[name]), changed)
            behind, _ = self.graph.order(n for n in stuck if n not in loops)
            order += behind
            dirty = dirty | changed | set(behind)
        for name in order:
            layer = self.graph[name]
            if everything or name in dirty or not changed.isdisjoint(layer.producers()):
                self.last_inferred += 1
                self._store(name, self._infer(layer), changed)
                if self.last_inferred % PAUSE == 0:
                    yield
        return changed

    def _spread(self, dirty: set[str]) -> Steps[set[str]]:
        """Infer a network without loops layer by layer, only while results differ."""
        rank = self._ranks
        waiting = [(rank[name], name) for name in dirty]
        heapify(waiting)
        queued = set(dirty)
        changed: set[str] = set()
        self.last_inferred = 0
        while waiting:
            _, name = heappop(waiting)
            self.last_inferred += 1
            self._store(name, self._infer(self.graph[name]), changed)
            if name in changed:
                for consumer in self.graph.consumers(name):
                    if consumer not in queued:
                        queued.add(consumer)
                        heappush(waiting, (rank[consumer], consumer))
            if self.last_inferred % PAUSE == 0:
                yield
        return changed

    def _store(self, name: str, state: LayerState, changed: set[str]) -> None:
        if self.states.get(name) != state:
            self.states[name] = state
            changed.add(name)

    def _looped(self, layer: Layer) -> LayerState:
        finding = Diagnostic(
            "cycle",
            tr("'{name}' depends on its own output", name=layer.name),
            layer=layer.name,
            remedy=tr("remove one of the links of the loop"),
        )
        return LayerState(diagnostics=(*self.read(layer.name).diagnostics, finding))

    def _infer(self, layer: Layer) -> LayerState:
        read = self.read(layer.name)
        if read.diagnostics or layer.bypassed:
            return self._infer_anew(layer, read)
        found = self._first_outputs(layer)
        if found is None:
            return self._infer_anew(layer, read)
        inputs, cause = found
        if cause is not None:
            return LayerState(inputs=tuple(inputs), because_of=cause)
        state = self._results.get(read, inputs)
        if state is None:
            state = self._infer_anew(layer, read)
            if not state.diagnostics:
                state = self._results.put(read, state)
        return state

    def _first_outputs(self, layer: Layer) -> tuple[list[TensorType], str | None] | None:
        """The result of `_inputs` if all inputs are first outputs of existing layers, as nearly all are; else None."""
        types: list[TensorType] = []
        cause: str | None = None
        for source in layer.inputs:
            state = self.states.get(source.layer) if source is not None and not source.port else None
            if source is None or state is None:
                return None
            if state.outputs:
                types.append(state.outputs[0])
            elif state.outputs is None:
                cause = cause or state.because_of or source.layer
            else:
                return None
        return types, cause

    def _infer_anew(self, layer: Layer, read: ReadLike) -> LayerState:
        found = list(read.diagnostics)
        inputs, cause = self._inputs(layer, read.operator, found)
        if read.operator is None or any(d.severity is Severity.ERROR for d in found):
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found))
        if cause is not None:
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found), because_of=cause)
        try:
            outputs = read.operator.infer_checked(inputs)
            before = outputs[0] if outputs else None
            if read.activation is not None and outputs:
                outputs = (read.activation.infer_checked(outputs[:1])[0], *outputs[1:])
        except ShapeError as error:
            found.append(_broken_rule(layer, error))
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found))
        except (
            Exception
        ) as error:  # a bug in an operator's declaration, for instance a plugin's, affects only this layer
            found.append(_broken(layer, error))
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found))
        bad = next((t for t in outputs if any(isinstance(d, int) and d < 1 for d in t.shape)), None)
        if bad is not None:
            message = tr("the output {bad} has a dimension below 1", bad=bad)
            found.append(
                Diagnostic(
                    "empty-tensor", message, layer=layer.name, remedy=tr("use a larger input or a smaller window")
                )
            )
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found))
        if layer.bypassed and self._passed(layer, outputs) is None:
            found.append(_no_bypass(layer))
            return LayerState(inputs=tuple(inputs), diagnostics=tuple(found))
        return LayerState(outputs, tuple(inputs), before, tuple(found))

    def _inputs(
        self, layer: Layer, operator: OperatorLike | None, found: list[Diagnostic]
    ) -> tuple[list[TensorType], str | None]:
        """The input types, and the layer that makes one unknown. Open ports and dangling links become diagnostics."""
        ports = operator.input_ports() if operator is not None else ()
        types: list[TensorType] = []
        cause: str | None = None
        gap: str | None = None
        for index, source in enumerate(layer.inputs):
            port = ports[min(index, len(ports) - 1)].name if ports else f"input {index}"
            if source is None:
                gap = gap or port
                continue
            if gap is not None and ports:
                found.append(_missing(layer.name, gap))
                gap = None
            state = self.states.get(source.layer)
            if source.layer not in self.graph:
                found.append(
                    Diagnostic(
                        "unknown-source",
                        tr("input '{port}' comes from '{layer}', which does not exist", port=port, layer=source.layer),
                        layer=layer.name,
                        port=port,
                        remedy=tr("connect the port to an existing layer"),
                    )
                )
            elif state is None or state.outputs is None:
                cause = cause or (state.because_of if state is not None and state.because_of else source.layer)
            else:
                number = self._port_number(source.layer, source.port)
                if number is None or number >= len(state.outputs):
                    found.append(
                        Diagnostic(
                            "unknown-port",
                            tr(
                                "input '{port}' reads '{source}', but '{layer}' has no such output",
                                port=port,
                                source=source,
                                layer=source.layer,
                            ),
                            layer=layer.name,
                            port=port,
                            remedy=tr("connect one of the outputs of '{layer}'", layer=source.layer),
                        )
                    )
                else:
                    types.append(state.outputs[number])
        return types, cause

    def _port_number(self, layer: str, port: str) -> int | None:
        if not port:
            return 0
        operator = self.read(layer).operator
        names = [p.name for p in operator.output_ports()] if operator is not None else []
        return names.index(port) if port in names else None


def _broken_rule(layer: Layer, error: ShapeError) -> Diagnostic:
    return Diagnostic(
        error.code,
        error.message,
        layer=layer.name,
        port=error.port,
        remedy=error.remedy,
        template=error.template,
        inner=error.inner,
    )


def _broken(layer: Layer, error: Exception) -> Diagnostic:
    return Diagnostic(
        "broken-operator",
        tr(
            "the operator '{type}' failed in shape inference: {name}: {error}",
            type=layer.type,
            name=type(error).__name__,
            error=error,
        ),
        layer=layer.name,
        remedy=tr("change its parameters, or fix the plugin that provides it"),
    )


def _no_bypass(layer: Layer) -> Diagnostic:
    return Diagnostic(
        "bypass",
        tr("the layer is bypassed, but no input has its output shape"),
        layer=layer.name,
        remedy=tr("end the bypass, or change its inputs or parameters"),
    )


def _missing(layer: str, port: str) -> Diagnostic:
    return Diagnostic(
        "missing-input",
        tr("nothing is connected to '{port}'", port=port),
        layer=layer,
        port=port,
        remedy=tr("connect '{port}'", port=port),
    )
