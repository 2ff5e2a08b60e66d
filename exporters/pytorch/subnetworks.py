"""Templates as classes in generated source: one for each template, or for each of its variants.

An instance is a submodule of the class that uses it. Shared weights are those of one module, an attribute of the whole
network with the template's name; classes in between get it as an argument of `forward`, so that a state dict contains it
only once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.naming import free_identifier
from designer.graph.template import INPUT, INSTANCE, PARAMETER, Template, closure
from designer.graph.types import TensorType
from designer.operators.api import Role
from designer.operators.deploy import without_analysis
from designer.operators.inlining import inline, is_flat
from designer.operators.library.development.template import TemplateInstance
from designer.operators.registry import Read, Registry
from designer.operators.torch_data import TorchCall, TorchExpr, TorchItem, TorchMethod, TorchModule
from designer.operators.torch_program import (
    RESERVED_LOCALS,
    Attribute,
    BoundWeight,
    Program,
    Submodule,
    build_program,
)
from designer.texts import tr


@dataclass(frozen=True)
class ModuleReference(TorchExpr):
    """A module that is an argument of `forward`, or `self.<attribute>`, as text; with `args` a call of it."""

    text: str
    args: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Subnetwork:
    """A template as a class. `needs` are the templates whose shared modules `forward` gets, as template -> argument.

    `several`: it is used with tensors of different shapes, so its text contains no shapes.
    """

    name: str
    template: str
    inference: Inference
    program: Program
    inputs: tuple[Source, ...]
    outputs: tuple[Source, ...]
    needs: Mapping[str, str]
    several: bool = False


def prepared(graph: Graph, registry: Registry) -> Graph:
    """`graph` for generating source: templates without analysis layers, and layers that share weights marked.

    Templates with a loss inside are replaced by their layers, because they differ between training and deployment.
    """
    if is_flat(graph):
        return graph
    templates = graph.templates

    def trains(template: Template) -> bool:
        used = [templates[name] for name in closure(templates, template.name) if name in templates]
        return any(registry.role(layer.type) is Role.LOSS for item in used for layer in item.layers)

    kept = inline(graph, registry, trains)
    made = Graph(
        (_marked(layer) for layer in kept),
        attributes=kept.attributes,
        templates=(
            replace(item, layers=tuple(_marked(x) for x in without_analysis(graph.inside(item.name), registry)))
            for item in kept.templates.values()
        ),
    )
    made.properties = dict(kept.properties)
    return made


def _marked(layer: Layer) -> Layer:
    shared = layer.type == INSTANCE and layer.params.get("shared_weights", "").strip() == "true"
    return replace(layer, weights_of=layer.params.get(PARAMETER, "")) if shared else layer


@dataclass(frozen=True)
class WithClasses:
    """A program with instances as modules of their `classes`, each after the classes that it uses.

    `given` are the templates whose shared modules `forward` gets, as template -> argument; `shared` has the class of each
    template with shared weights.
    """

    program: Program
    classes: tuple[Subnetwork, ...]
    given: Mapping[str, str]
    shared: Mapping[str, Subnetwork]


def with_classes(
    inference: Inference,
    layers: Sequence[str],
    program: Program,
    taken: Iterable[str],
    elsewhere: Collection[str] = (),
) -> WithClasses:
    """The program with its classes. `taken` are names that no class can have.

    The shared modules of the templates `elsewhere` belong to another module and are arguments of `forward`.
    """
    classes = _Classes(set(taken))
    made, calls = classes.finish(inference, layers, program, whole=True, elsewhere=elsewhere)
    given = {template: text for template, text in calls.items() if template in elsewhere}
    return WithClasses(made, _used(made, classes.made.values()), given, classes.shared)


def _used(program: Program, classes: Iterable[Subnetwork]) -> tuple[Subnetwork, ...]:
    """The classes that are constructed, without those of modules that are arguments."""
    found: list[Subnetwork] = []
    programs = [program]
    for item in reversed([*classes]):
        if any(_constructs(user, item.name) for user in programs):
            found.append(item)
            programs.append(item.program)
    return tuple(reversed(found))


def _constructs(program: Program, name: str) -> bool:
    contents = (attribute.content for attribute in program.attributes)
    return any(isinstance(content, TorchModule) and content.path == name for content in contents)


def same_class(one: Subnetwork, other: Subnetwork) -> bool:
    """Whether two classes have the same text except for their names."""
    return repr(_behavior(one.program)) == repr(_behavior(other.program))


@dataclass
class _Classes:
    """Creates classes. `made` are the classes by their behavior; `shared` is the class of each shared template."""

    taken: set[str]
    made: dict[str, Subnetwork] = field(default_factory=dict)
    known: dict[tuple[str, tuple[TensorType, ...]], str] = field(default_factory=dict)
    shared: dict[str, Subnetwork] = field(default_factory=dict)

    def of(self, operator: TemplateInstance, types: tuple[TensorType, ...]) -> Subnetwork:
        """The class of an instance with the input types `types`."""
        key = (operator.template, types)
        if key not in self.known:
            self.known[key] = self._class(operator, types)
        return self.made[self.known[key]]

    def _class(self, operator: TemplateInstance, types: tuple[TensorType, ...]) -> str:
        assert operator.body is not None
        template, inference = operator.body.template, operator.body.infer(types)
        needed = inference.graph.upstream(template.outputs)
        layers = [n for n in inference.graph.order(needed)[0] if inference.graph[n].type != INPUT]
        feeds, ends = tuple(map(Source, template.inputs)), tuple(map(Source, template.outputs))
        program = build_program(inference, layers, feeds, ends)
        program, needs = self.finish(inference, layers, program, whole=False)
        signature = repr((template.name, _behavior(program), needs))
        present = self.made.get(signature)
        if present is not None:
            self.made[signature] = replace(present, several=True)
        else:
            name = free_identifier(_class_name(template.name), self.taken)
            self.made[signature] = Subnetwork(name, template.name, inference, program, feeds, ends, needs)
        return signature

    def finish(
        self,
        inference: Inference,
        layers: Sequence[str],
        program: Program,
        *,
        whole: bool,
        elsewhere: Collection[str] = (),
    ) -> tuple[Program, dict[str, str]]:
        """The program with instances as modules of their classes, and the text of each shared module.

        Shared modules are attributes of the `whole` network, except those of the templates `elsewhere`; the class of a
        template gets them as arguments.
        """
        for layer in layers:
            operator = _instance(inference, layer)
            if operator is not None and operator.shared_weights:
                self._share(layer, operator, inference.states[layer].inputs)
        children, shared = self._children(inference, program)
        used = {attribute.name for attribute in program.attributes if attribute.name not in shared}
        if not whole or elsewhere:  # they are arguments, so their names must differ from the locals
            used |= {*program.inputs.values(), *(step.target for step in program.steps), *RESERVED_LOCALS}
        wanted = {*shared.values(), *(template for child in children.values() for template in child.needs)}
        names = {template: free_identifier(template, used) for template in sorted(wanted)}
        own = {template for template in names if whole and template not in elsewhere}
        calls = {template: f"self.{name}" if template in own else name for template, name in names.items()}

        def call(node: Submodule) -> TorchExpr:
            child = children.get(node.attribute)
            if child is None:
                return node
            args = (*node.args, *(ModuleReference(calls[template]) for template in child.needs))
            if node.attribute in shared:
                return ModuleReference(calls[shared[node.attribute]], args)
            return replace(node, args=args)

        attributes = [
            replace(a, content=TorchModule(children[a.name].name)) if a.name in children else a
            for a in program.attributes
            if a.name not in shared
        ]
        weights = [w for w in program.weights if w.key.partition(".")[0] not in children]
        for name, child in children.items():
            if name not in shared:
                weights += _moved(child, next(a.layer for a in attributes if a.name == name), name)
        attributes += [Attribute(names[t], t, TorchModule(self.shared[t].name)) for t in names if t in own]
        weights += [weight for t, name in names.items() if t in own for weight in _moved(self.shared[t], t, name)]
        steps = tuple(replace(step, value=_mapped(step.value, call)) for step in program.steps)
        made = replace(program, attributes=tuple(attributes), steps=steps, weights=tuple(weights))
        return made, calls

    def _children(self, inference: Inference, program: Program) -> tuple[dict[str, Subnetwork], dict[str, str]]:
        """The classes of attributes that are instances, and the templates of those with shared weights."""
        children: dict[str, Subnetwork] = {}
        shared: dict[str, str] = {}
        for attribute in program.attributes:
            operator = _instance(inference, attribute.layer)
            if operator is None or not _is_instance(attribute):
                continue
            children[attribute.name] = self.of(operator, inference.states[attribute.layer].inputs)
            if operator.shared_weights:
                shared[attribute.name] = operator.template
        return children, shared

    def _share(self, layer: str, operator: TemplateInstance, types: tuple[TensorType, ...]) -> None:
        child = self.of(operator, types)
        first = self.shared.setdefault(operator.template, child)
        if first.name != child.name:
            raise DiagnosticError.of(
                "shared-shape",
                tr(
                    "'{layer}' cannot share the weights of the template '{template}' in PyTorch, because its "
                    "input requires layers of another shape than that of another instance",
                    layer=layer,
                    template=operator.template,
                ),
                layer=layer,
                remedy=tr("connect tensors of the same shape to both, or do not share the weights"),
            )


def _instance(inference: Inference, layer: str) -> TemplateInstance | None:
    operator = cast(Read, inference.read(layer)).operator
    return operator if isinstance(operator, TemplateInstance) and operator.body is not None else None


def _is_instance(attribute: Attribute) -> bool:
    """Whether an attribute is an instance itself, not its attached activation."""
    return isinstance(attribute.content, TorchModule) and attribute.content.path.startswith("template.")


def _moved(child: Subnetwork, layer: str, attribute: str) -> list[BoundWeight]:
    """The weights of a class as those of its instance `layer` at `attribute`."""
    return [replace(w, layer=f"{layer}.{w.layer}", key=f"{attribute}.{w.key}") for w in child.program.weights]


def _behavior(program: Program) -> object:
    """Everything in the text of a class except its name and shapes."""
    attributes = [(attribute.name, attribute.content) for attribute in program.attributes]
    return attributes, program.inputs, [(step.target, step.value) for step in program.steps], program.outputs


def _class_name(template: str) -> str:
    """`residual_block` -> `ResidualBlock`, not necessarily a valid identifier."""
    words = re.split(r"[\W_]+", template, flags=re.ASCII)
    return "".join(word[:1].upper() + word[1:] for word in words) or "Template"


def _mapped(value: Any, call: Callable[[Submodule], TorchExpr]) -> Any:
    """An expression with its calls of submodules replaced."""
    if isinstance(value, Submodule):
        return call(replace(value, args=_mapped(value.args, call)))
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, call) for item in value)
    if isinstance(value, TorchCall):
        kwargs = {k: _mapped(v, call) for k, v in value.kwargs.items()}
        return replace(value, args=_mapped(value.args, call), kwargs=kwargs)
    if isinstance(value, TorchMethod):
        kwargs = {k: _mapped(v, call) for k, v in value.kwargs.items()}
        return replace(value, target=_mapped(value.target, call), args=_mapped(value.args, call), kwargs=kwargs)
    if isinstance(value, TorchItem):
        return replace(value, value=_mapped(value.value, call))
    return value
