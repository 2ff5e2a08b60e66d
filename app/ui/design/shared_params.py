"""What several selected layers have in common: parameters, their texts, and attached activations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from designer.graph.model import Layer
from designer.graph.template import INSTANCE, PARAMETER
from designer.operators.api import Operator
from designer.operators.params import ParamError, Parameter
from designer.operators.registry import Registry


def text_to_write(cls: type[Operator] | None, name: str, text: str) -> str | None:
    """The text to store for a parameter; None for an extension parameter at its default."""
    parameter = cls.parameter(name) if cls is not None else None
    return None if parameter is not None and parameter.info.extension and _equals(parameter, text) else text


def defaults(
    layers: Iterable[Layer], registry: Registry
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """The default texts of all known parameters of layers and their activations: {layer: {parameter: text}}.

    The template of an instance and undeclared parameters are kept.
    """
    params: dict[str, dict[str, str]] = {}
    activations: dict[str, dict[str, str]] = {}
    for layer in layers:
        cls, spec = registry.get(layer.type), layer.activation
        if cls is not None:
            params[layer.name] = _defaults(cls, layer.params, {PARAMETER} if layer.type == INSTANCE else set())
        attached = registry.activations.get(spec.type) if spec is not None else None
        if spec is not None and attached is not None:
            activations[layer.name] = _defaults(attached, spec.params, set())
    return params, activations


def _defaults(cls: type[Operator], texts: Mapping[str, str], kept: set[str]) -> dict[str, str]:
    """The default texts. A text that already equals its default in value keeps its spelling."""
    found: dict[str, str] = {}
    for name, text in texts.items():
        parameter = cls.parameter(cls.renamed.get(name, name))
        if parameter is None or name in kept or _equals(parameter, text):
            found[name] = text
        elif not parameter.info.extension:
            found[name] = parameter.format(parameter.default)
    return found


def _equals(parameter: Parameter, text: str) -> bool:
    try:
        return parameter.parse(text) == parameter.default
    except ParamError:
        return False


def activation_type(layer: Layer) -> str:
    """The type of the attached activation, or ""."""
    return layer.activation.type if layer.activation is not None else ""


def text_of(cls: type[Operator] | None, texts: Mapping[str, str], parameter: Parameter) -> str:
    """The layer's text of a parameter, also under an older name, or the default of its type if the file has none."""
    if parameter.name in texts:
        return texts[parameter.name]
    older = [old for old, new in cls.renamed.items() if new == parameter.name] if cls is not None else []
    own = (cls.parameter(parameter.name) if cls is not None else None) or parameter
    return next((texts[old] for old in older if old in texts), own.format(own.default))


def shared_parameters(classes: list[type[Operator] | None]) -> list[Parameter]:
    """Parameters that all classes declare with the same name, kind, choices and bounds."""
    known = [cls for cls in classes if cls is not None]
    if not known or len(known) < len(classes):
        return []
    keys = [{_key(p) for p in cls.parameters} for cls in known[1:]]
    return [p for p in known[0].parameters if all(_key(p) in other for other in keys)]


def without_default(parameters: Iterable[Parameter], classes: Iterable[type[Operator] | None]) -> set[str]:
    """The names of the parameters whose default is not the same in all classes that declare them."""
    declared = [(p, cls.parameter(p.name)) for p in parameters for cls in classes if cls is not None]
    return {p.name for p, own in declared if own is not None and own.default != p.default}


def with_templates(parameters: list[Parameter], templates: Iterable[str]) -> list[Parameter]:
    """The parameters of template instances, with the document's templates as choices."""
    names = tuple(sorted(templates))
    return [
        replace(p, kind="choice", info=replace(p.info, choices=("", *names))) if p.name == PARAMETER and names else p
        for p in parameters
    ]


def _key(parameter: Parameter) -> tuple[object, ...]:
    info = parameter.info
    return (parameter.name, parameter.kind, info.choices, info.min, info.max)
