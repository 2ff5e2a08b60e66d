"""A finding with the network around it, and the small edits that ideas for a fix consist of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from designer.graph import commands, routes
from designer.graph.arrangement import GAP, NODE_WIDTH, make_room
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import GRID, ActivationSpec, Layer, Source
from designer.graph.naming import unique_name
from designer.graph.types import TensorType
from designer.operators.api import Operator, Port
from designer.operators.registry import Read, Registry
from designer.texts import tr


class Idea(NamedTuple):
    """An edit that might fix a finding. `opens` is a layer that it leaves with an open port."""

    title: str
    edit: Edit
    opens: str | None = None


class InsertedLayer(NamedTuple):
    """A layer to insert into the link at input `at`; `others` are its further inputs."""

    at: int
    type: str
    params: Mapping[str, str]
    others: tuple[Source, ...] = ()


class ConnectedInput(NamedTuple):
    """One connected input of a layer: its index, source, port name, and type if it is known."""

    at: int
    source: Source
    port: str
    type: TensorType | None


@dataclass(frozen=True)
class Case:
    """One finding and the network that has it."""

    graph: Graph
    registry: Registry
    inference: Inference
    finding: Diagnostic

    @property
    def layer(self) -> Layer | None:
        """The layer that the finding is about."""
        return self.graph.get(self.finding.layer or "")

    def operator(self, name: str) -> Operator | None:
        return cast(Read, self.inference.read(name)).operator

    def cls(self, layer: Layer) -> type[Operator] | None:
        return self.registry.get(layer.type)

    def ports(self, layer: Layer) -> tuple[Port, ...]:
        operator, cls = self.operator(layer.name), self.cls(layer)
        return operator.input_ports() if operator is not None else cls.inputs if cls is not None else ()

    def connected(self, layer: Layer) -> list[ConnectedInput]:
        """The connected inputs in their order."""
        ports = self.ports(layer)
        found = []
        for index, source in enumerate(layer.inputs):
            if source is not None:
                port = ports[min(index, len(ports) - 1)].name if ports else ""
                found.append(ConnectedInput(index, source, port, self.inference.type_of(source)))
        return found

    def outputs(self, name: str) -> Iterator[tuple[str, TensorType]]:
        """The outputs of a layer whose types are known, by the name of the port."""
        state, operator = self.inference.states.get(name), self.operator(name)
        if state is not None and state.outputs is not None and operator is not None:
            yield from zip((p.name for p in operator.output_ports()), state.outputs, strict=False)

    # --- edits -----------------------------------------------------------------------------------------------

    def set_param(self, layer: Layer, name: str, text: str) -> Edit:
        return commands.set_params(self.graph, {layer.name: {name: text}})

    def change(self, layer: Layer, **values: object) -> Edit:
        """An edit that changes fields of a layer."""
        return Edit(tr("Fix"), {layer.name: (self.graph[layer.name], replace(layer, **values))})  # type: ignore[arg-type]

    def insert(self, consumer: Layer, *wanted: InsertedLayer) -> Edit:
        """Insert new layers into links of one layer."""
        taken = dict.fromkeys(self.graph.layers)
        layers: dict[str, tuple[Layer | None, Layer | None]] = {}
        inputs = consumer.inputs
        for index, type_name, params, others in wanted:
            cls, source = self.registry.get(type_name), consumer.inputs[index]
            if cls is None or source is None or source.layer not in self.graph:
                return Edit(tr("Fix"))
            name = unique_name(type_name, taken)
            taken[name] = None
            start, end = self.graph[source.layer].position, consumer.position
            place = (
                max(_middle(start[0], end[0]), start[0] + NODE_WIDTH + GAP),
                _middle(start[1], end[1]) + 8 * GRID * len(layers),
            )
            texts = {**cls().texts(all=False), **params}
            layers[name] = (None, Layer(name, type_name, place, (source, *others), texts))
            inputs = (*inputs[:index], Source(name), *inputs[index + 1 :])
        after = routes.rewired(consumer, inputs)
        right = max(made.position[0] for _, made in layers.values() if made is not None) + NODE_WIDTH + GAP
        run = -(-(right - consumer.position[0]) // GRID) * GRID
        if run > 0:
            moved = make_room(self.graph, self.graph.downstream([consumer.name]), run, {}).layers
            after = replace(after, position=(after.position[0] + run, after.position[1]))
            layers = {**moved, **layers}
        return Edit(tr("Fix"), {**layers, consumer.name: (consumer, after)})

    def with_activation(self, layer: Layer, spec: ActivationSpec | None) -> Edit:
        return self.change(layer, activation=spec)


def _middle(a: int, b: int) -> int:
    """The middle of two positions, on the grid."""
    return round((a + b) / 2 / GRID) * GRID
