"""What several selected layers have in common: parameters, their texts, attached activations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.ui.widgets.texts import tr, trn
from designer.graph.commands import set_params
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import INSTANCE, PARAMETER
from designer.operators.api import Operator
from designer.operators.params import ParamError, Parameter
from designer.operators.registry import Registry


def with_activation_param(graph: Graph, *, names: tuple[str, ...], name: str, text: str) -> Edit:
    """The edit that gives the activations attached to `names` this text of a parameter."""
    edits: dict[str, tuple[Layer | None, Layer | None]] = {}
    for layer in (graph[n] for n in names):
        if layer.activation is not None:
            spec = replace(layer.activation, params={**layer.activation.params, name: text})
            edits[layer.name] = (layer, replace(layer, activation=spec))
    where = names[0] if len(names) == 1 else trn("{count} layer", "{count} layers", len(names))
    key = f"activation parameter {name} of {', '.join(names)}"
    return Edit(tr("Change {name} of the activation of {where}", name=name, where=where), edits, merge_key=key)


def with_param(graph: Graph, registry: Registry, names: Sequence[str], name: str, text: str) -> Edit:
    """The edit that gives layers this text of a parameter. One beyond the 2022 tool's is written only where it is not the default."""
    key = f"parameter {name} of {', '.join(names)}"
    edit = set_params(graph, {n: {name: text} for n in names}, merge_key=key)
    layers = dict(edit.layers)
    for layer_name in names:
        before, after = layers[layer_name]
        cls = registry.get(graph[layer_name].type)
        parameter = cls.parameter(name) if cls is not None else None
        if parameter is not None and after is not None and parameter.info.extension and _means(parameter, text):
            rest = {n: t for n, t in after.params.items() if n != name}
            layers[layer_name] = (before, replace(after, params=rest))
    return replace(edit, layers=layers)


def reset_all(graph: Graph, registry: Registry, names: Iterable[str]) -> Edit:
    """The edit that gives every known parameter of layers, and of their activations, its default.

    Which template an instance is one of stays, and so does what no declaration knows.
    """
    edits: dict[str, tuple[Layer | None, Layer | None]] = {}
    for layer in (graph[n] for n in names):
        cls, spec = registry.get(layer.type), layer.activation
        after = layer
        if cls is not None:
            kept = {PARAMETER} if layer.type == INSTANCE else set()
            after = replace(after, params=_defaults(cls, layer.params, kept))
        attached = registry.activations.get(spec.type) if spec is not None else None
        if spec is not None and attached is not None:
            after = replace(after, activation=replace(spec, params=_defaults(attached, spec.params, set())))
        if after != layer:
            edits[layer.name] = (layer, after)
    where = next(iter(edits)) if len(edits) == 1 else trn("{count} layer", "{count} layers", len(edits))
    return Edit(tr("Reset parameters of {where}", where=where), edits)


def _defaults(cls: type[Operator], texts: Mapping[str, str], kept: set[str]) -> dict[str, str]:
    """Texts that mean the defaults. A text that means its default already stays as it is written."""
    found: dict[str, str] = {}
    for name, text in texts.items():
        parameter = cls.parameter(cls.renamed.get(name, name))
        if parameter is None or name in kept or _means(parameter, text):
            found[name] = text
        elif not parameter.info.extension:
            found[name] = parameter.format(parameter.default)
    return found


def _means(parameter: Parameter, text: str) -> bool:
    try:
        return parameter.parse(text) == parameter.default
    except ParamError:
        return False


def activation_type(layer: Layer) -> str:
    """The type of the attached activation; empty without one."""
    return layer.activation.type if layer.activation is not None else ""


def text_of(cls: type[Operator] | None, texts: Mapping[str, str], parameter: Parameter) -> str:
    """The layer's text of a parameter, also under an older name; the default where the file says nothing."""
    if parameter.name in texts:
        return texts[parameter.name]
    older = [old for old, new in cls.renamed.items() if new == parameter.name] if cls is not None else []
    return next((texts[old] for old in older if old in texts), parameter.format(parameter.default))


def shared_parameters(classes: list[type[Operator] | None]) -> list[Parameter]:
    """Parameters that all classes declare alike (name, kind, choices and bounds)."""
    known = [cls for cls in classes if cls is not None]
    if not known or len(known) < len(classes):
        return []
    keys = [{_key(p) for p in cls.parameters} for cls in known[1:]]
    return [p for p in known[0].parameters if all(_key(p) in other for other in keys)]


def with_templates(parameters: list[Parameter], templates: Iterable[str]) -> list[Parameter]:
    """The parameters of template instances, with the document's templates as the choices of which one."""
    names = tuple(sorted(templates))
    return [
        replace(p, kind="choice", info=replace(p.info, choices=("", *names))) if p.name == PARAMETER and names else p
        for p in parameters
    ]


def _key(parameter: Parameter) -> tuple[object, ...]:
    info = parameter.info
    return (parameter.name, parameter.kind, info.choices, info.min, info.max)
