"""Finds operators in the library packages, the entry-point group and the user's plugin folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from designer import plugins
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.inference import GraphLookup
from designer.graph.model import ActivationSpec, Layer
from designer.operators.api import Activation, Operator, Role
from designer.operators.params import ParamError, Value
from designer.operators.ports import Port
from designer.plugins import load_each, plugin_files, plugin_folder, walk
from designer.texts import tr

if TYPE_CHECKING:
    from designer.graph.graph import Graph

ENTRY_POINT_GROUP = "layerwright.operators"
PACKAGES = ("designer.operators.library", "analysis_layers")
REMEMBERED = 10_000  # texts of layers whose operators are kept; a dragged slider makes new ones
Text = tuple[str, frozenset[tuple[str, str]]]  # type and parameters


@dataclass(frozen=True, slots=True)
class Read:
    """The typed operator and activation of a layer; None if the type is unknown or a parameter is invalid."""

    operator: Operator | None
    activation: Activation | None
    diagnostics: tuple[Diagnostic, ...] = ()
    declared: type[Operator] | None = None  # also if a parameter is invalid

    @property
    def input_ports(self) -> tuple[Port, ...]:
        """The input ports; those of the class if a parameter is invalid."""
        if self.operator is not None:
            return self.operator.input_ports()
        return self.declared.inputs if self.declared is not None else ()


@dataclass
class Registry:
    """Operators and activations by type name. `diagnostics` lists the plugins that could not be used, with reasons."""

    operators: dict[str, type[Operator]] = field(default_factory=dict)
    activations: dict[str, type[Activation]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _aliases: dict[str, str] = field(default_factory=dict)
    _read: dict[tuple[Text, Text | None], Read] = field(default_factory=dict, repr=False, compare=False)

    def register(self, cls: type[Operator]) -> None:
        """Add one declaration. Raises ValueError if the type is taken."""
        self._read.clear()
        table: dict[str, type[Operator]] = self.operators
        if issubclass(cls, Activation):
            if cls.type in self.activations:
                raise ValueError(f"activation '{cls.type}' is declared twice: {self.activations[cls.type]} and {cls}")
            self.activations[cls.type] = cls
            return
        for name in (cls.type, *cls.replaces):
            if name in table or name in self._aliases:
                raise ValueError(f"operator '{name}' is declared twice: by {cls.__module__} and by another module")
        table[cls.type] = cls
        for name in cls.replaces:
            self._aliases[name] = cls.type

    def register_module(self, module: ModuleType) -> None:
        """Add every declaration that is defined in `module`."""
        for value in list(vars(module).values()):
            if (
                isinstance(value, type)
                and issubclass(value, Operator)
                and value.type
                and value.__module__ == module.__name__
            ):
                self.register(value)

    def take(self, loaded: object) -> None:
        """Add the object of an entry point: a module with declarations, or a declaration."""
        if isinstance(loaded, ModuleType):
            self.register_module(loaded)
        elif isinstance(loaded, type) and issubclass(loaded, Operator):
            self.register(loaded)

    def get(self, type_name: str) -> type[Operator] | None:
        return self.operators.get(self._aliases.get(type_name, type_name))

    def role(self, type_name: str) -> Role | None:
        """The role of layers of a type; None for an unknown one."""
        cls = self.get(type_name)
        return cls.role if cls is not None else None

    def __iter__(self) -> Iterator[type[Operator]]:
        return iter(sorted(self.operators.values(), key=lambda cls: cls.type))

    def for_graph(self, graph: Graph) -> GraphLookup:
        """The lookup for layers of `graph` and its templates."""
        from designer.operators.templates import TemplateLookup

        return TemplateLookup(self, graph)

    def read(self, layer: Layer) -> Read:
        """The typed operator and activation of `layer`, or diagnostics that name the parameter and the rule.

        Layers of the same text without diagnostics share one result.
        """
        spec = layer.activation
        key = _text(layer.type, layer.params), _text(spec.type, spec.params) if spec is not None else None
        known = self._read.get(key)
        if known is not None:
            return known
        read = self._read_anew(layer)
        if not read.diagnostics:
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            self._read[key] = read
        return read

    def _read_anew(self, layer: Layer) -> Read:
        found: list[Diagnostic] = []
        cls = self.get(layer.type)
        operator: Operator | None = None
        if cls is None:
            found.append(
                Diagnostic(
                    "unknown-operator",
                    tr("the operator type '{type}' is unknown; the layer is preserved", type=layer.type),
                    layer=layer.name,
                    remedy=tr("install the plugin that provides it, or replace the layer"),
                )
            )
        else:
            operator = build(cls, layer.params, layer.name, found)
            if operator is not None:
                found.extend(_faults(operator, layer.name))
        activation: Activation | None = None
        if layer.activation is not None:
            activation = self._activation(layer.activation, layer.name, found)
            if cls is not None and cls.role is Role.ANALYSIS:
                found.append(
                    Diagnostic(
                        "activation-on-analysis",
                        tr(
                            "{title} is an analysis layer and cannot have an attached activation",
                            title=cls.title,
                        ),
                        layer=layer.name,
                        parameter="activation",
                        remedy=tr("remove the activation, or add an activation layer after it"),
                    )
                )
        elif cls is not None and cls.default_activation:
            found.append(
                Diagnostic(
                    "no-activation",
                    tr("{title} does nothing without an activation", title=cls.title),
                    layer=layer.name,
                    parameter="activation",
                    remedy=tr(
                        "choose an activation, for instance {default_activation}",
                        default_activation=cls.default_activation,
                    ),
                )
            )
        return Read(operator, activation, tuple(found), cls)

    def _activation(self, spec: ActivationSpec, layer: str, found: list[Diagnostic]) -> Activation | None:
        cls = self.activations.get(spec.type)
        if cls is None:
            found.append(
                Diagnostic(
                    "unknown-activation",
                    tr("the activation '{type}' is unknown", type=spec.type),
                    layer=layer,
                    parameter="activation",
                    remedy=tr("choose one of {activations}", activations=", ".join(sorted(self.activations))),
                )
            )
            return None
        made = build(cls, spec.params, layer, found)
        return made if isinstance(made, Activation) else None


def _text(type_name: str, params: Mapping[str, str]) -> Text:
    return type_name, frozenset(params.items())


def build(cls: type[Operator], texts: Mapping[str, str], layer: str, found: list[Diagnostic]) -> Operator | None:
    """An operator from parameter texts; None if one is invalid. Diagnostics are added to `found`."""
    values: dict[str, Value] = {}
    wrong = False
    for name, text in texts.items():
        parameter = cls.parameter(cls.renamed.get(name, name))
        if parameter is None:
            found.append(
                Diagnostic(
                    "unknown-parameter",
                    tr("{title} has no parameter '{name}'; it is preserved but not used", title=cls.title, name=name),
                    Severity.WARNING,
                    layer=layer,
                    parameter=name,
                    remedy=tr("correct its name, or remove it"),
                )
            )
            continue
        try:
            values[parameter.name] = parameter.parse(text)
        except ParamError as error:
            wrong = True
            found.append(
                Diagnostic(
                    "bad-parameter",
                    tr("parameter '{name}': {error}", name=name, error=error),
                    layer=layer,
                    parameter=name,
                    remedy=tr("the default is {format}", format=parameter.format(parameter.default) or tr("empty")),
                )
            )
    return None if wrong else cls(**values)


def _faults(operator: Operator, layer: str) -> Iterator[Diagnostic]:
    """Diagnostics from `Operator.faults`; an exception of a plugin becomes a diagnostic too."""
    try:
        for parameter, message, remedy in operator.faults():
            yield Diagnostic("bad-parameter", message, layer=layer, parameter=parameter, remedy=remedy)
    except Exception as error:
        message = tr(
            "the operator '{type}' failed while it was checked: {name}: {error}",
            type=operator.type,
            name=type(error).__name__,
            error=error,
        )
        yield Diagnostic("broken-operator", message, layer=layer, remedy=tr("fix the plugin that provides it"))


def load(plugin_folders: Iterable[Path] = (), *, entry_points: bool = True) -> Registry:
    """A new registry: the library, installed plugins, then every `.py` file in `plugin_folders`."""
    registry = Registry()
    for package in PACKAGES:
        for module in walk(package):
            registry.register_module(module)
    if entry_points:
        registry.diagnostics += load_each(plugins.entry_points(ENTRY_POINT_GROUP), registry.take)
    registry.diagnostics += load_each(plugin_files(plugin_folders), registry.register_module)
    return registry


@lru_cache(maxsize=1)
def default_registry() -> Registry:
    """The registry of this process, loaded once: library, entry points and the user's plugin folder."""
    return load([plugin_folder()])
