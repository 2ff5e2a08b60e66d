"""Computations of a network that can be blamed for a difference: by an engine, or by an ONNX file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.operators.api import Role
from designer.precision.blame import Computation, Operator, Step
from designer.runtime.api import Part, Tensor
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.machine import physical_cores
from designer.runtime.network import inputs_of, passes_through, role_of
from designer.runtime.plan import PartStep
from designer.runtime.session import Session
from designer.texts import tr

if TYPE_CHECKING:
    from onnx import ModelProto

QUANTIZED = "_DequantizeLinear_Output"  # what ONNX Runtime's quantizer appends to names of tensors


class EngineComputation(Computation):
    """A network without analysis layers, computed layer by layer with the engine of `session`, which has its inputs.

    `rewritten` are layers whose results are not those of the document, because graph passes merged others into them.
    """

    def __init__(self, session: Session, rewritten: Collection[str] = ()) -> None:
        self._session = session
        self._rewritten = frozenset(rewritten)
        inference = session.inference
        plan = session.plan()
        self.outputs = tuple(dict.fromkeys(plan.origin.values()))
        needed = inference.graph.upstream([source.layer for source in self.outputs])
        self.layers = tuple(
            name
            for name in inference.graph.order()[0]
            if name in needed and role_of(inference, name) is not Role.INPUT and not passes_through(inference, name)
        )

    @property
    def tensors(self) -> Collection[Source]:
        kept = [name for name in self.layers if name not in self._rewritten]
        return {source for name in kept for source in self._session.inference.tensors(name)}

    def inputs(self) -> dict[Source, Tensor]:
        """The inputs as the network reads them."""
        return {Source(name): self._session.fed_input(name)[1] for name in self._session.plan().inputs}

    def aliases(self) -> dict[Source, list[Source]]:
        """Tensors with equal values by the one that is computed: those of layers that pass it through follow."""
        inference = self._session.inference
        found = {source: [source] for source in (*self.inputs(), *self.tensors)}
        for name in inference.graph.order()[0]:
            if inference.states[name].ok and passes_through(inference, name):
                source = inputs_of(inference, inference.graph[name])[0]
                group = next((group for group in found.values() if source in group), None)
                if group is not None:
                    group.append(Source(name))
        return found

    def operators(self, others: Iterable[Computation]) -> list[Operator]:
        """The operators that other computations have too, in their order here.

        Raises DiagnosticError if the results of the network are not among them.
        """
        common = set(self.tensors).intersection(*(other.tensors for other in others))
        missing = [source for source in self.outputs if source not in common]
        if missing:
            raise DiagnosticError.of(
                "not-comparable",
                tr("not all computations have the tensor '{tensor}'", tensor=str(missing[0])),
                layer=missing[0].layer,
                remedy=tr("compare computations of the same network, with the same names of layers"),
            )
        found = []
        for name in self.layers:
            makes = tuple(source for source in self._session.inference.tensors(name) if source in common)
            if makes:
                found.append(Operator(name, makes))
        return found

    def step(self, makes: tuple[Source, ...], known: Collection[Source]) -> Step:
        inference = self._session.inference
        layers: set[str] = set()
        reads: dict[Source, None] = {}
        stack = [source.layer for source in makes]
        while stack:
            name = stack.pop()
            if name in layers:
                continue
            layers.add(name)
            for source in inputs_of(inference, inference.graph[name]):
                if source in known:
                    reads[source] = None
                elif role_of(inference, source.layer) is Role.INPUT:
                    raise _unknown(source, name)
                else:
                    stack.append(source.layer)
        order = tuple(name for name in inference.graph.order()[0] if name in layers)
        step = PartStep(Part(order, tuple(reads)), makes)
        compiled = self._session.compile(step, self._session.part_print(step))
        return Step(tuple(reads), lambda values: compiled.run({source: values[source] for source in reads}))


class FileComputation(Computation):
    """An ONNX model, run by ONNX Runtime with `threads`, 0: all cores. `names` are the names of tensors of the network in it.

    Of a quantized tensor it takes the quantized values, so that their rounding belongs to the operator that makes them.
    """

    def __init__(self, model: ModelProto, names: Mapping[Source, str], threads: int = 0) -> None:
        from onnx import shape_inference
        from onnx.utils import Extractor

        model = shape_inference.infer_shapes(model)
        self._threads = threads or physical_cores()
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._extractor = Extractor(model)
        stored = {tensor.name for tensor in model.graph.initializer}
        self._inputs = {entry.name for entry in model.graph.input} - stored
        known = self._makers.keys() | self._inputs
        quantized = {source: name + QUANTIZED for source, name in names.items() if name not in self._inputs}
        self._names = {source: name for source, name in names.items() if name in known}
        self._names |= {source: name for source, name in quantized.items() if name in known}

    @property
    def tensors(self) -> Collection[Source]:
        return self._names.keys()

    def step(self, makes: tuple[Source, ...], known: Collection[Source]) -> Step:
        sources = {self._names[source]: source for source in known if source in self._names}
        reads: dict[str, Source] = {}
        seen: set[str] = set()
        stack = [self._names[source] for source in makes]
        wanted = set(stack)
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in sources and name not in wanted:
                reads[name] = sources[name]
            elif name in self._makers:
                stack.extend(self._makers[name].input)
            elif name in self._inputs:
                raise _unknown(Source(name), makes[0].layer)
        names = [self._names[source] for source in makes]
        model = self._extractor.extract_model(list(reads), names)
        session = inference_session(model.SerializeToString(), self._threads)
        kinds = {entry.name: _dtype(entry.type) for entry in session.get_inputs()}

        def run(values: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
            feeds = {name: np.asarray(values[source], kinds[name]) for name, source in reads.items()}
            made = session.run(names, feeds)
            return {source: _float32(array) for source, array in zip(makes, made, strict=True)}

        return Step(tuple(reads.values()), run)


def names_in_file(network: EngineComputation, model: ModelProto, others: Mapping[Source, str]) -> dict[Source, str]:
    """The names in a model of the tensors of a network: their own, or those in `others`, for files that were imported."""
    made = {name for node in model.graph.node for name in node.output} | {entry.name for entry in model.graph.input}
    found = {}
    for source, aliases in network.aliases().items():
        candidates = [*map(str, aliases), *(others[alias] for alias in aliases if alias in others)]
        name = next((name for name in candidates if name in made), None)
        if name is not None:
            found[source] = name
    return found


def _dtype(kind: str) -> Any:
    """The NumPy type of a type of ONNX Runtime such as `tensor(float16)`."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


def _float32(array: Tensor) -> Tensor:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _unknown(source: Source, layer: str) -> DiagnosticError:
    return DiagnosticError.of(
        "not-comparable",
        tr("'{layer}' reads '{source}', which the other computation does not have", layer=layer, source=str(source)),
        layer=layer,
        remedy=tr("compare computations of the same network"),
    )
