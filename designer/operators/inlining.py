"""The network as engines, exporters and weights files see it: templates replaced by layers, bypassed layers by identities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, Layer, Source
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, Template, closure, enclosing
from designer.operators.api import Role
from designer.operators.registry import Registry
from designer.operators.templates import TemplateLookup
from designer.texts import tr

PLAIN = "identity"
MAX_LAYERS = 200_000  # of a network without templates


def inline(graph: Graph, registry: Registry, which: Callable[[Template], bool] | None = None) -> Graph:
    """A copy of `graph` in which each instance is replaced by layers named `<instance>.<layer>`.

    The instance's name remains as an identity of its first output with its attached activation; ports become identities
    too, and bypassed layers identities of the input that they pass through. Layers that share weights have the common name
    in `weights_of`. With `which`, only instances of these templates, and of those with bypassed layers, are replaced.
    Instances that cannot be replaced (an unknown template, one that uses itself) stay; type checking reports them. Raises
    DiagnosticError if a name is taken.
    """
    if is_flat(graph):
        return graph.copy()
    lookup = TemplateLookup(registry, graph)
    templates = graph.templates

    def wanted(template: Template) -> bool:
        used = [templates[name] for name in closure(templates, template.name) if name in templates]
        return which is None or which(template) or any(x.bypassed for item in used for x in item.layers)

    def body(layer: Layer) -> Template | None:
        if layer.type != INSTANCE or layer.bypassed:
            return None
        found = lookup.body(layer.params.get(PARAMETER, ""))
        usable = found is not None and found.expands and bool(found.template.outputs)
        return found.template if found is not None and usable and wanted(found.template) else None

    expansion = _Expansion(body)
    for layer in graph:
        expansion.layer(layer, graph.layers, "", "")
    made = Graph(
        expansion.made.values(),
        attributes=graph.attributes,
        foreign=graph.foreign,
        frames=graph.frames.values(),
        templates=graph.templates.values() if any(x.type == INSTANCE for x in expansion.made.values()) else (),
    )
    made.properties = dict(graph.properties)
    return _without_bypassed(made, registry)


def is_flat(graph: Graph) -> bool:
    """Whether a network has neither instances of templates nor bypassed layers."""
    return not any(layer.type == INSTANCE or layer.bypassed for layer in graph)


def _without_bypassed(graph: Graph, registry: Registry) -> Graph:
    """A network with identities in place of bypassed layers. A layer that cannot pass an input through stays: an error."""
    bypassed = [
        layer for layer in graph if layer.bypassed and registry.role(layer.type) not in (Role.INPUT, Role.OUTPUT)
    ]
    if not bypassed:
        return graph
    inference = Inference(graph, registry)
    passed = {layer.name: inference.passed_input(layer.name) for layer in bypassed}
    plain = {name for name, source in passed.items() if source is not None}
    layers: list[Layer] = []
    for layer in graph:
        inputs = tuple(Source(s.layer) if s is not None and s.layer in plain else s for s in layer.inputs)
        source = passed.get(layer.name)
        if source is not None:
            read = Source(source.layer) if source.layer in plain else source
            rest = {k: v for k, v in layer.attributes.items() if k != BYPASSED}
            layer = replace(layer, type=PLAIN, params={}, activation=None, inputs=(read,), attributes=rest)
        elif inputs != layer.inputs:
            layer = replace(layer, inputs=inputs)
        layers.append(layer)
    result = Graph(
        layers,
        attributes=graph.attributes,
        foreign=graph.foreign,
        frames=graph.frames.values(),
        templates=graph.templates.values() if any(x.type == INSTANCE for x in layers) else (),
    )
    result.properties = dict(graph.properties)
    return result


def inlined(inference: Inference) -> Inference:
    """The inference of the network without templates and bypassed layers; `inference` itself if it is flat."""
    if not isinstance(inference.lookup, TemplateLookup) or is_flat(inference.graph):
        return inference
    registry = inference.lookup.registry
    return Inference(inline(inference.graph, registry), registry)


class Declaration(NamedTuple):
    """Where a layer of the network without templates is declared: the template, "" for the document, and the layer there."""

    template: str
    layer: Layer


def declarations(graph: Graph) -> dict[str, Declaration]:
    """The declaration of every layer of the network without templates; instances of one template have those of its layers."""
    found: dict[str, Declaration] = {}
    waiting: list[tuple[str, tuple[str, ...], Iterable[Layer]]] = [("", ("",), graph)]
    for prefix, path, layers in waiting:
        for layer in layers:
            found[prefix + layer.name] = Declaration(path[-1], layer)
            used = layer.params.get(PARAMETER, "") if layer.type == INSTANCE and not layer.bypassed else ""
            if used in graph.templates and used not in path:
                waiting.append((f"{prefix}{layer.name}.", (*path, used), graph.templates[used].layers))
    return found


def renamed_path(graph: Graph, edit: Edit, path: str) -> str:
    """The name that a layer of the network without templates has after `edit`, which has not been applied to `graph` yet."""
    layers: Mapping[str, Layer] = graph.layers
    names, start = edit.renamed, 0
    while True:
        owner = next((name for name in enclosing(path[start:]) if name in layers), None)
        if owner is None:
            return path
        name = names.get(owner, owner)
        path = path[:start] + name + path[start + len(owner) :]
        start += len(name) + 1
        layer = layers[owner]
        template = graph.templates.get(layer.params.get(PARAMETER, "")) if layer.type == INSTANCE else None
        if template is None or start > len(path):
            return path
        layers, names = {item.name: item for item in template.layers}, edit.renamed_inside.get(template.name, {})


def inlined_source(graph: Graph, source: Source) -> Source:
    """The tensor of the inlined network that corresponds to `source` in the document `graph`."""
    layer = graph.get(source.layer)
    if layer is None or layer.type != INSTANCE or not source.port:
        return source
    template = graph.templates.get(layer.params.get(PARAMETER, ""))
    return _output(template, source) if template is not None else source


def _output(template: Template, source: Source) -> Source:
    ports = template.outputs
    if not source.port or source.port not in ports:
        return source
    return Source(source.layer) if source.port == ports[0] else Source(f"{source.layer}.{source.port}")


class _Expansion:
    """Collects layers. `body` returns the template of an instance that is to be replaced, otherwise None."""

    def __init__(self, body: Callable[[Layer], Template | None]) -> None:
        self.body = body
        self.made: dict[str, Layer] = {}

    def add(self, layer: Layer) -> None:
        if layer.name in self.made:
            raise DiagnosticError.of(
                "template-name-clash",
                tr(
                    "'{name}' is the name of a layer inside an instance and of another layer",
                    name=layer.name,
                ),
                layer=layer.name,
                remedy=tr("rename the layer or the instance"),
            )
        self.made[layer.name] = layer
        if len(self.made) > MAX_LAYERS:
            raise DiagnosticError.of(
                "too-large",
                tr(
                    "the network has more than {MAX_LAYERS} layers, including those of its templates",
                    MAX_LAYERS=MAX_LAYERS,
                ),
                remedy=tr("use fewer instances, or smaller templates"),
            )

    def layer(self, layer: Layer, around: Mapping[str, Layer], prefix: str, owner: str) -> None:
        """Add a layer of a network whose layers are `around`; `prefix` and `owner` are prefixes of names and weight names."""
        name, weights = prefix + layer.name, owner + layer.name
        inputs = tuple(None if s is None else self._source(s, around, prefix) for s in layer.inputs)
        moved = replace(layer, name=name, inputs=inputs, weights_of=weights if weights != name else "")
        layer = (
            moved if moved != layer else layer
        )  # an unchanged layer stays the same object, which makes comparing fast
        template = self.body(layer)
        if template is None:
            self.add(layer)
            return
        self._ports(layer, template)
        shared = layer.params.get("shared_weights", "").strip() == "true"
        inner_owner = f"{template.name if shared else weights}."
        inside = {item.name: item for item in template.layers}
        for item in template.layers:
            if item.type == INPUT:
                self._input(item, layer, template, inner_owner)
            elif item.type == OUTPUT:
                self.layer(replace(item, type=PLAIN, params={}), inside, f"{name}.", inner_owner)
            else:
                self.layer(item, inside, f"{name}.", inner_owner)

    def _source(self, source: Source, around: Mapping[str, Layer], prefix: str) -> Source:
        producer = around.get(source.layer)
        template = self.body(producer) if producer is not None else None
        moved = Source(prefix + source.layer, source.port)
        return moved if template is None else _output(template, moved)

    def _ports(self, instance: Layer, template: Template) -> None:
        first = Source(f"{instance.name}.{template.outputs[0]}")
        self.add(replace(instance, type=PLAIN, params={}, inputs=(first,)))

    def _input(self, port: Layer, instance: Layer, template: Template, owner: str) -> None:
        index = template.inputs.index(port.name)
        source = instance.inputs[index] if index < len(instance.inputs) else None
        name = f"{instance.name}.{port.name}"
        weights = owner + port.name
        self.add(
            replace(
                port,
                name=name,
                type=PLAIN,
                params={},
                inputs=(source,) if source is not None else (),
                weights_of=weights if weights != name else "",
            )
        )
