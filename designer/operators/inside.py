"""The inside of a template as a separate network, with the input types of one instance, or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.inference import Inference, LayerState
from designer.graph.model import Layer
from designer.graph.template import INPUT, INSTANCE, OUTPUT
from designer.graph.types import TensorType
from designer.operators.library.development.template import TemplateInstance
from designer.operators.library.development.template_input import TemplateInput
from designer.operators.registry import Read, Registry
from designer.operators.template_faults import misplaced
from designer.operators.templates import TemplateLookup
from designer.texts import tr

Feeds = Mapping[str, TensorType]  # by the name of the input port


class InsideLookup(TemplateLookup):
    """Reads the layers of `graph.inside(name)`, where ports are valid and inputs have the types in `feeds`."""

    def __init__(self, registry: Registry, graph: Graph, feeds: Feeds) -> None:
        super().__init__(registry, graph)
        self.feeds: dict[str, TensorType] = dict(feeds)
        self._fed_anew: set[str] = set()

    def for_graph(self, graph: Graph) -> InsideLookup:
        return self if graph is self.graph else InsideLookup(self.registry, graph, self.feeds)

    def read(self, layer: Layer) -> Read:
        read = self.registry.read(layer)
        found = tuple(misplaced(layer, self.registry.get(layer.type)))
        if found:
            read = replace(read, diagnostics=(*read.diagnostics, *found))
        if isinstance(read.operator, TemplateInput):
            return replace(read, operator=read.operator.carrying(self.feeds.get(layer.name)))
        if isinstance(read.operator, TemplateInstance):
            return self.instance(read, read.operator, layer, self.dotted())
        return read

    def feed(self, feeds: Feeds) -> set[str]:
        """Set the types at the ports; returns the ports whose type changed, which the next update reads again."""
        names = self.feeds.keys() | feeds.keys()
        changed = {name for name in names if self.feeds.get(name) != feeds.get(name)}
        self.feeds = dict(feeds)
        self._fed_anew |= changed
        return changed

    def stale(self, change: ChangeSet) -> set[str]:
        fed, self._fed_anew = self._fed_anew, set()
        return super().stale(change) | {name for name in fed if name in self.graph}

    def findings(self, inference: Inference) -> list[Diagnostic]:
        """A missing output, and shared weights whose shapes differ. Problems of other templates appear where they are used."""
        found = list(self.unshareable(inference))
        if not any(layer.type == OUTPUT for layer in self.graph):
            found.append(
                Diagnostic(
                    "template-without-output",
                    tr("the template '{name}' has no output", name=self.graph.name),
                    remedy=tr("add a template_output layer to it and connect it"),
                    template=self.graph.name,
                )
            )
        return found


class InsideInference(Inference):
    """Shapes and problems inside a template. Layers that read a port of unknown type are unknown, not wrong."""

    def __init__(self, graph: Graph, registry: Registry, feeds: Feeds | None = None, *, empty: bool = False) -> None:
        self.inside = InsideLookup(registry, graph, feeds or {})
        super().__init__(graph, self.inside, empty=empty)

    def feed(self, feeds: Feeds) -> frozenset[str]:
        """Set the types at the ports; returns the layers whose state changed."""
        return self.update(ChangeSet()) if self.inside.feed(feeds) else frozenset()

    def _infer(self, layer: Layer) -> LayerState:
        if layer.type != INPUT or layer.name in self.inside.feeds:
            return super()._infer(layer)
        read = self.read(layer.name)
        found = tuple(d for d in read.diagnostics if isinstance(d, Diagnostic))
        note = Diagnostic(
            "unknown-feed",
            tr("the type of '{name}' is not known here", name=layer.name),
            Severity.INFO,
            layer=layer.name,
            remedy=tr("enter the template through an instance whose port is connected"),
        )
        return LayerState(diagnostics=(*found, note))


def feeds_of(outer: Inference, instance: str, ports: tuple[str, ...]) -> dict[str, TensorType]:
    """The types at the ports of an instance, as far as they are known in the network that contains it."""
    layer = outer.graph.get(instance)
    if layer is None or layer.type != INSTANCE:
        return {}
    found: dict[str, TensorType] = {}
    for port, source in zip(ports, layer.inputs, strict=False):
        tensor = outer.type_of(source) if source is not None else None
        if tensor is not None:
            found[port] = tensor
    return found
