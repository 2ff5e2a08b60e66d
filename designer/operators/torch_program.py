"""Builds a program from the torch data of a network's layers: attributes of a module, and forward steps in order.

The torch engine runs a program and the PyTorch exporter prints it; neither needs the operators.
Names of attributes and locals are created here: unique, valid and the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.naming import free_identifier, identifiers
from designer.graph.template import INSTANCE
from designer.graph.types import TensorType
from designer.operators.api import Operator, Weight
from designer.operators.registry import Read
from designer.operators.torch_data import (
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchParameter,
    modules,
    uses,
    uses_input,
    walk,
)
from designer.operators.torch_faults import bad_data, check_shared, unknown_shape
from designer.texts import tr

# Names that generated code imports, and names that linters reject for variables.
RESERVED_LOCALS = frozenset({"F", "I", "O", "l", "nn", "self", "torch"})


@dataclass(frozen=True)
class Local(TorchExpr):
    """The value of an earlier step, or an input."""

    name: str


@dataclass(frozen=True)
class Submodule(TorchExpr):
    """A call of `self.<attribute>`, or of `self.<attribute>[key]` where the attribute is a ModuleDict."""

    attribute: str
    key: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class TensorAttribute(TorchExpr):
    """The tensor `self.<attribute>`."""

    attribute: str


@dataclass(frozen=True)
class Attribute:
    """The content of `self.<name>`: a module, several by name (a ModuleDict), or a tensor."""

    name: str
    layer: str
    content: TorchModule | Mapping[str, TorchModule] | TorchParameter


@dataclass(frozen=True)
class TorchStep:
    """`target = value`. `release` are the locals that no later step reads."""

    layer: str
    target: str
    value: TorchExpr
    type: TensorType | None = None
    release: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoundWeight:
    """A tensor of a weights file and its key in the module's state dict."""

    layer: str
    tensor: str
    key: str
    weight: Weight


@dataclass(frozen=True)
class Program:
    """A module as data. `inputs` and `outputs` map tensors to locals; `inputs` is in the order of the feeds."""

    attributes: tuple[Attribute, ...]
    inputs: Mapping[Source, str]
    steps: tuple[TorchStep, ...]
    outputs: Mapping[Source, str]
    weights: tuple[BoundWeight, ...]


def build_program(
    inference: Inference,
    layers: Sequence[str],
    feeds: Sequence[Source],
    wanted: Sequence[Source],
) -> Program:
    """The program of `layers` (in execution order), which reads `feeds` and returns `wanted`.

    Raises DiagnosticError for a layer without a known shape. Values that nothing reads are not computed.
    """
    walker = _Walker(inference, layer_names(inference))
    inputs = {(key := inference.tensor(feed)): walker.input(key) for feed in feeds}
    for layer in layers:
        walker.layer(layer)
    outputs: dict[Source, str] = {}
    for source in wanted:
        key = inference.tensor(source)
        value = walker.values.get(key)
        if value is None:
            raise DiagnosticError.of(
                "no-such-tensor",
                tr("'{source}' is not computed by these layers", source=source),
                layer=source.layer,
            )
        outputs[key] = value
    steps = with_releases(walker.steps, set(outputs.values()))
    return Program(tuple(walker.attributes), inputs, steps, outputs, tuple(walker.weights))


def layer_names(inference: Inference) -> dict[str, str]:
    """Layer -> identifier, for attributes and locals.

    Layers with weights are named first, because their names are keys of state dicts and must not depend on other layers.
    Layers that share weights have one name, that of the weights.
    """
    weighted = [layer for layer in inference.graph if _has_weights(inference, layer.name)]
    owners = identifiers(layer.weights_name for layer in weighted)
    names = {layer.name: owners[layer.weights_name] for layer in weighted}
    taken = set(owners.values())
    for layer in sorted(inference.graph.layers):
        if layer not in names:
            names[layer] = free_identifier(layer, taken)
    return names


def _has_weights(inference: Inference, layer: str) -> bool:
    state, read = inference.states[layer], cast(Read, inference.read(layer))
    if read.operator is None or state.outputs is None:
        return False
    before = state.before_activation
    attached = read.activation is not None and before is not None and bool(read.activation.weights((before,)))
    return attached or bool(read.operator.weights(state.inputs))


@dataclass
class _Walker:
    inference: Inference
    names: dict[str, str]
    attributes: list[Attribute] = field(default_factory=list)
    steps: list[TorchStep] = field(default_factory=list)
    weights: list[BoundWeight] = field(default_factory=list)
    values: dict[Source, str] = field(default_factory=dict)
    locals: set[str] = field(default_factory=set)
    owned: dict[tuple[str, str], tuple[str, dict[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.attribute_names = set(self.names.values())
        # A layer's local has its identifier, so others must not take it first.
        graph = self.inference.graph
        own = {layer: name for layer, name in sorted(self.names.items()) if not graph[layer].weights_of}
        self.layer_locals = {layer: self._local(name) for layer, name in own.items()}
        for layer in sorted(self.names.keys() - own.keys()):  # their attribute has the name of the weights
            self.layer_locals[layer] = self._local(layer)

    def _local(self, base: str) -> str:
        return free_identifier(base, self.locals, RESERVED_LOCALS)

    def input(self, source: Source) -> str:
        """A local for a tensor from outside."""
        name = self.values[source] = self._tensor_local(source)
        return name

    def _tensor_local(self, source: Source) -> str:
        layer = self.layer_locals[source.layer]
        return layer if not source.port else self._local(f"{layer}_{source.port}")

    def layer(self, name: str) -> None:
        layer = self.inference.graph[name]
        state = self.inference.states[name]
        read = cast(Read, self.inference.read(name))
        if read.operator is None or state.outputs is None:
            raise DiagnosticError(errors(state.diagnostics) or errors(read.diagnostics) or unknown_shape(name))
        reads = [Local(self.values[self.inference.tensor(s)]) for s in layer.inputs if s is not None]
        roots = _expressions(read.operator, state.inputs, name)
        resolved = self._resolve(name, read.operator, state.inputs, roots, reads, self.names[name], "")
        if read.activation is not None and state.before_activation is not None:
            types = (state.before_activation,)
            ends = _expressions(read.activation, types, name)
            argument = resolved[0]
            if not isinstance(argument, Local) and uses_input(tuple(ends)) > 1:
                argument = self._step(name, self._local(f"{self.layer_locals[name]}_linear"), argument, types[0])
            attribute = f"{self.names[name]}_activation"
            prefix = read.activation.weight_prefix
            ended = self._resolve(name, read.activation, types, ends, [argument], attribute, prefix)
            resolved = [ended[0], *resolved[1:]]
        for source, value, kind in zip(self.inference.tensors(name), resolved, state.outputs, strict=True):
            if isinstance(value, Local):
                self.values[source] = value.name
            else:
                self.values[source] = self._step(name, self._tensor_local(source), value, kind).name

    def _step(self, layer: str, target: str, value: TorchExpr, kind: TensorType | None = None) -> Local:
        self.steps.append(TorchStep(layer, target, value, kind))
        return Local(target)

    def add_part(self, layer: str, value: TorchExpr) -> Local:
        """Add a step for a part of a layer's expression that is read more than once."""
        return self._step(layer, self._local(f"{self.layer_locals[layer]}_part"), value)

    def _resolve(
        self,
        layer: str,
        operator: Operator,
        types: Sequence[TensorType],
        roots: Sequence[TorchExpr],
        reads: Sequence[TorchExpr],
        attribute: str,
        prefix: str,
    ) -> list[TorchExpr]:
        """`roots` with inputs, modules and tensors replaced by names; shared parts become separate steps."""
        weights = operator.weights(types)
        graph_layer = self.inference.graph[layer]
        # The attached activation of an instance belongs to the instance, even if the template's weights are shared.
        owner = layer if prefix and graph_layer.type == INSTANCE else graph_layer.weights_name
        known = self.owned.get((owner, prefix)) if weights else None
        if known is not None:  # another layer has the same weights, so the module is the same
            attribute = known[0]
        elif prefix:
            attribute = (
                free_identifier(attribute, self.attribute_names) if any(modules(r) for r in roots) else attribute
            )
        found = _modules(layer, roots)
        several = len(found) > 1 or bool(found and found[0].name)
        held = known[1] if known is not None else {}
        made = self._attributes_of(layer, attribute, found, roots, held, several=several)
        if known is not None:
            check_shared(layer, owner, {a.name: a.content for a in made}, {a.name: a.content for a in self.attributes})
        else:
            self.attributes.extend(made)
            for weight in weights:
                key = held.get(weight.torch) or f"{attribute}.{weight.torch}"
                self.weights.append(BoundWeight(owner, prefix + weight.name, key, weight))
            self.owned[owner, prefix] = (attribute, held)
        resolver = _Resolver(self, layer, roots, reads, attribute, held, several=several)
        return [resolver.resolve(root) for root in roots]

    def _attributes_of(
        self,
        layer: str,
        attribute: str,
        found: Sequence[TorchModule],
        roots: Sequence[TorchExpr],
        held: dict[str, str],
        *,
        several: bool,
    ) -> list[Attribute]:
        """The attributes of a layer's modules and tensors; names of new tensors are added to `held`."""
        made: list[Attribute] = []
        if found:
            made.append(Attribute(attribute, layer, {module.name: module for module in found} if several else found[0]))
        tensors: dict[str, TorchParameter] = {}
        for node in walk(tuple(roots)):
            if isinstance(node, TorchParameter):
                tensors.setdefault(node.name, node)
        for name, tensor in tensors.items():
            if name not in held:
                held[name] = free_identifier(f"{attribute}_{name}", self.attribute_names)
            made.append(Attribute(held[name], layer, tensor))
        return made


class _Resolver:
    """Replaces inputs, modules and tensors of a layer's expressions by names; shared parts become separate steps."""

    def __init__(
        self,
        walker: _Walker,
        layer: str,
        roots: Sequence[TorchExpr],
        reads: Sequence[TorchExpr],
        attribute: str,
        held: Mapping[str, str],
        *,
        several: bool,
    ) -> None:
        self._walker = walker
        self._layer = layer
        self._reads = reads
        self._attribute = attribute
        self._held = held
        self._several = several
        self._counts = uses(tuple(roots))
        # By identity; keeping the node prevents the reuse of its id.
        self._shared: dict[int, tuple[Any, TorchExpr]] = {}

    def resolve(self, node: Any) -> Any:
        if isinstance(node, TorchInput):
            if node.index >= len(self._reads):
                raise DiagnosticError(bad_data(self._layer, f"it reads input {node.index}, which is not connected"))
            return self._reads[node.index]
        if isinstance(node, TorchParameter):
            return TensorAttribute(self._held[node.name])
        if isinstance(node, tuple | list):
            return type(node)(self.resolve(item) for item in node)
        if not isinstance(node, TorchExpr):
            return node
        if id(node) in self._shared:
            return self._shared[id(node)][1]
        made = self._renamed(node)
        if self._counts[id(node)] > 1 and not isinstance(node, TorchItem):
            made = self._walker.add_part(self._layer, made)
            self._shared[id(node)] = (node, made)
        return made

    def _renamed(self, node: TorchExpr) -> TorchExpr:
        if isinstance(node, TorchModule):
            return Submodule(self._attribute, node.name if self._several else "", self.resolve(node.args))
        if isinstance(node, TorchCall):
            return replace(node, args=self.resolve(node.args), kwargs=self._keywords(node.kwargs))
        if isinstance(node, TorchMethod):
            kwargs = self._keywords(node.kwargs)
            return replace(node, target=self.resolve(node.target), args=self.resolve(node.args), kwargs=kwargs)
        if isinstance(node, TorchItem):
            return replace(node, value=self.resolve(node.value))
        raise DiagnosticError(bad_data(self._layer, f"{type(node).__name__} is not known"))

    def _keywords(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.resolve(value) for name, value in kwargs.items()}


def locals_of(value: Any) -> Iterator[str]:
    """The locals that a resolved expression reads, in order."""
    for node in walk(value):
        if isinstance(node, Local):
            yield node.name
        elif isinstance(node, Submodule):
            yield from locals_of(node.args)


def with_locals(value: Any, names: Mapping[str, str]) -> Any:
    """A resolved expression that reads other locals: `names` maps those that it reads to the new ones."""
    if isinstance(value, Local):
        return Local(names.get(value.name, value.name))
    if isinstance(value, tuple | list):
        return type(value)(with_locals(item, names) for item in value)
    if isinstance(value, Submodule):
        return replace(value, args=with_locals(value.args, names))
    if isinstance(value, TorchItem):
        return replace(value, value=with_locals(value.value, names))
    if not isinstance(value, TorchCall | TorchMethod):
        return value
    args, kwargs = with_locals(value.args, names), {key: with_locals(v, names) for key, v in value.kwargs.items()}
    if isinstance(value, TorchMethod):
        return replace(value, target=with_locals(value.target, names), args=args, kwargs=kwargs)
    return replace(value, args=args, kwargs=kwargs)


def with_releases(steps: Sequence[TorchStep], kept: set[str]) -> tuple[TorchStep, ...]:
    """The steps whose results are read or in `kept`, each with the locals that no later step reads."""
    read = set(kept)
    useful: list[TorchStep] = []
    for step in reversed(steps):
        if step.target in read:
            read.update(locals_of(step.value))
            useful.append(step)
    useful.reverse()
    last = {name: index for index, step in enumerate(useful) for name in locals_of(step.value)}
    gone: dict[int, list[str]] = {}
    for name, index in last.items():
        if name not in kept:
            gone.setdefault(index, []).append(name)
    return tuple(replace(step, release=tuple(gone.get(index, ()))) for index, step in enumerate(useful))


def _expressions(operator: Operator, types: Sequence[TensorType], layer: str) -> tuple[TorchExpr, ...]:
    try:
        made = operator.torch(types)
    except NotImplementedError:
        raise DiagnosticError.of(
            "not-in-torch",
            tr("'{layer}' ({title}) cannot be expressed in torch", layer=layer, title=operator.title),
            layer=layer,
            remedy=tr("replace or remove the layer"),
        ) from None
    return made if isinstance(made, tuple) else (made,)


def _modules(layer: str, roots: Sequence[TorchExpr]) -> list[TorchModule]:
    """The layer's modules, whose names must differ."""
    found = modules(tuple(roots))
    names = [module.name for module in found]
    if len(set(names)) != len(names) or (len(names) > 1 and "" in names):
        raise DiagnosticError(bad_data(layer, "several of its modules have the same name"))
    return found
