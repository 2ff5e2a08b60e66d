"""Builds documents layer by layer: names, links, types, weights, layout and frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey, Weights
from designer.graph.arrangement import around, assumed_box
from designer.graph.graph import Graph
from designer.graph.layout import LayerBox, arrange
from designer.graph.model import ActivationSpec, Frame, Layer, Source, check_layer_name
from designer.graph.naming import free_identifier
from designer.graph.types import ShapeError, TensorType
from designer.importers.templates import ModuleClass, Scope, Tensors, moved_key, with_templates
from designer.operators.api import Activation, Operator
from designer.operators.params import ParamError, Value
from designer.operators.registry import Registry
from designer.texts import tr
from designer.units import dims_text

MAX_LEVEL = 10


@dataclass
class GraphBuilder:
    """Collects the layers of a new document in topological order; types are inferred as layers are added.

    `scopes` has the path of modules of each layer, which become templates or comment frames, `classes` the modules that become
    templates in any case, and `weights` the tensors by key.
    """

    registry: Registry
    name: str = "network"
    layers: dict[str, Layer] = field(default_factory=dict)
    types: dict[Source, TensorType] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    classes: Mapping[Scope, ModuleClass] = field(default_factory=dict)
    weights: dict[WeightKey, NDArray[np.float32]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    repeats: dict[str, int] = field(default_factory=dict)
    tensors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _outputs: dict[str, tuple[Source, ...]] = field(default_factory=dict)
    _tensors: dict[str, tuple[WeightKey, ...]] = field(default_factory=dict)
    _origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _origin: dict[WeightKey, str] = field(default_factory=dict)

    def reserve(self, names: Sequence[str]) -> None:
        """Keep `names` free for layers that are added with `exact`, such as inputs and outputs."""
        self._taken.update(name for name in names if check_layer_name(name) is None)

    def add(
        self,
        type: str,
        inputs: Sequence[Source | None] = (),
        params: Mapping[str, Value] | None = None,
        *,
        name: str = "",
        exact: bool = False,
        activation: tuple[str, Mapping[str, Value]] | None = None,
        weights: Mapping[str, NDArray[np.float32]] | None = None,
        origins: Sequence[str] = (),
        scope: Scope = (),
        attributes: Mapping[str, str] | None = None,
    ) -> tuple[Source, ...]:
        """Add a layer and return its outputs. `name` is a proposal; with `exact` it is kept if it is a legal layer name.

        `origins` are the names of all its tensors in the original, "" for none: layers with the same ones share their weights.
        Raises ShapeError or ParamError if the operator does not take these inputs or parameters; nothing is added then.
        """
        operator = self._operator(type, params or {})
        types = [self.types[source] for source in inputs if source is not None]
        outputs = operator.infer_checked(types)
        needed = {weight.name: weight.shape for weight in operator.weights(types)}
        spec = None
        if activation is not None:
            function = self._activation(*activation)
            own = function.weights((outputs[0],))
            needed |= {f"{function.weight_prefix}{weight.name}": weight.shape for weight in own}
            spec = ActivationSpec(function.type, function.texts(all=False))
            (first,) = function.infer_checked((outputs[0],))
            outputs = (first, *outputs[1:])
        _check_weights(needed, weights or {})
        chosen = self._free(name or operator.base_name(), exact)
        self.layers[chosen] = Layer(
            chosen, type, (0, 0), tuple(inputs), operator.texts(all=False), spec, dict(attributes or {})
        )
        self.scopes[chosen] = scope
        self._tensors[chosen] = tuple(WeightKey(chosen, key) for key in weights or {})
        if weights and len(origins) == len(weights) and all(origins):
            self._origins[chosen] = tuple(origins)
        for key, array in (weights or {}).items():
            self.weights[WeightKey(chosen, key)] = np.asarray(array, np.float32, order="C")  # keeps rank 0
        self.name_weights(chosen, dict(zip(weights or (), origins, strict=False)))
        ports = operator.output_ports()
        sources = tuple(Source(chosen, port.name if index else "") for index, port in enumerate(ports))
        self._outputs[chosen] = sources
        self.types.update(zip(sources, outputs, strict=True))
        return sources

    def attach(
        self,
        source: Source,
        activation: tuple[str, Mapping[str, Value]],
        weights: Mapping[str, NDArray[np.float32]],
        origins: Sequence[str] = (),
    ) -> bool:
        """Attach an activation to the layer of a tensor; nothing is done if it is not its first output, or has one already.

        `origins` are the names of its tensors in the original: without all of them the layer shares its weights with no other.
        """
        layer = self.layers[source.layer]
        if source.port or layer.activation is not None:
            return False
        function = self._activation(*activation)
        before = self.types[source]
        needed = {f"{function.weight_prefix}{weight.name}": weight.shape for weight in function.weights((before,))}
        (after,) = function.infer_checked((before,))
        _check_weights(needed, weights)
        self.layers[layer.name] = replace(layer, activation=ActivationSpec(function.type, function.texts(all=False)))
        self.types[source] = after
        for key, array in weights.items():
            self.weights[WeightKey(layer.name, key)] = np.asarray(array, np.float32, order="C")
        known = self._origins.pop(layer.name, ())
        if len(known) == len(self._tensors[layer.name]) and len(origins) == len(weights) and all(origins):
            self._origins[layer.name] = (*known, *origins)
        self._tensors[layer.name] += tuple(WeightKey(layer.name, key) for key in weights)
        self.name_weights(layer.name, dict(zip(weights, origins, strict=False)))
        return True

    def name_weights(self, layer: str, origins: Mapping[str, str]) -> None:
        """Record the names of tensors of a layer in the original; "" for none."""
        self._origin.update((WeightKey(layer, tensor), origin) for tensor, origin in origins.items() if origin)

    def outputs(self, layer: str) -> tuple[Source, ...]:
        """The outputs of a layer that was added."""
        return self._outputs[layer]

    def mark(self) -> int:
        """The present state, for `rollback`."""
        return len(self.layers)

    def rollback(self, mark: int) -> None:
        """Remove the layers that were added after `mark`."""
        while len(self.layers) > mark:
            name, _ = self.layers.popitem()
            del self.scopes[name]
            self._taken.discard(name)
            for source in self._outputs.pop(name):
                del self.types[source]
            for key in self._tensors.pop(name):
                del self.weights[key]
                self._origin.pop(key, None)
            self._origins.pop(name, None)

    def _operator(self, type: str, params: Mapping[str, Value]) -> Operator:
        cls = self.registry.get(type)
        if cls is None:
            raise ParamError(tr("there is no operator '{type}'", type=type))
        return _checked(cls, params)

    def _activation(self, type: str, params: Mapping[str, Value]) -> Activation:
        made = _checked(self.registry.activations[type], params)
        assert isinstance(made, Activation)
        return made

    def _free(self, name: str, exact: bool) -> str:
        if exact and check_layer_name(name) is None and name not in self.layers:
            self._taken.add(name)
            return name
        return free_identifier(name, self._taken)

    def finish(self) -> tuple[Graph, Weights]:
        """The document with positions, frames and templates, and its weights.

        `moved` then maps layers to their names in instances of templates, `owners` to the names of their weights, `repeats` counts
        the instances, and `tensors` maps the names of tensors in the original to `<layer>.<tensor>` of all their copies.
        """
        tensors = {
            name: Tensors(tuple((key.tensor, self.weights[key].shape) for key in keys), self._origins.get(name, ()))
            for name, keys in self._tensors.items()
        }
        found = with_templates(self.layers, self.scopes, tensors, self.classes)
        self.moved, self.owners, self.repeats = found.moved, found.owners, found.counts
        self.tensors = self._named(found.owners)
        weights = Weights({moved_key(key, found.owners): array for key, array in self.weights.items()})
        self.types.update((new, self.types[old]) for old, new in found.renamed.items() if old in self.types)
        positions, boxes = self._laid_out(found.layers)
        templates = []
        for template in found.templates:
            inside, _ = self._laid_out({layer.name: layer for layer in template.layers})
            templates.append(replace(template, layers=_at(template.layers, inside)))
        frames = self._frames(positions, boxes, found.scopes)
        return Graph(_at(found.layers.values(), positions), name=self.name, frames=frames, templates=templates), weights

    def _named(self, owners: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        places: dict[str, dict[str, None]] = {}
        for key, origin in self._origin.items():
            moved = moved_key(key, owners)
            places.setdefault(origin, {})[f"{moved.layer}.{moved.tensor}"] = None
        return {origin: tuple(texts) for origin, texts in places.items()}

    def _laid_out(self, layers: Mapping[str, Layer]) -> tuple[dict[str, tuple[int, int]], dict[str, LayerBox]]:
        boxes = self._boxes(layers)
        return arrange(Graph(layers.values()), boxes), boxes

    def _boxes(self, layers: Mapping[str, Layer]) -> dict[str, LayerBox]:
        sizes: dict[str, int] = {}
        for name, layer in layers.items():
            kind = self.types.get(Source(name))
            sides = [dim for dim in kind.shape[2:] if isinstance(dim, int)] if kind is not None else []
            below = (sizes[producer] for producer in layer.producers() if producer in sizes)
            sizes[name] = sides[0] * sides[1] if len(sides) == 2 else min(below, default=0)
        largest = max(sizes.values(), default=1)
        levels = {n: min(MAX_LEVEL, round(log(largest / size, 4))) if size else 0 for n, size in sizes.items()}
        return {name: assumed_box(layer, levels[name]) for name, layer in layers.items()}

    def _frames(
        self, positions: Mapping[str, tuple[int, int]], boxes: Mapping[str, LayerBox], scopes: Mapping[str, Scope]
    ) -> list[Frame]:
        """A frame for each scope of several layers, unless its rectangle would contain layers of other scopes."""
        members: dict[Scope, list[str]] = {}
        for name, scope in scopes.items():
            for depth in range(1, len(scope) + 1):
                members.setdefault(scope[:depth], []).append(name)
        if not members:
            return []
        names = sorted(positions, key=lambda name: positions[name])
        corners = np.array([positions[name] for name in names], np.float64)
        ends = corners + np.array([(boxes[name].width, boxes[name].height) for name in names])
        widest = float(np.max(ends[:, 0] - corners[:, 0]))
        frames: list[Frame] = []
        for scope, inside in members.items():
            if not 1 < len(inside) < len(names):
                continue
            rect = around({name: positions[name] for name in inside}, boxes)
            low = np.array(rect[:2])
            high = low + np.array(rect[2:])
            near = slice(*np.searchsorted(corners[:, 0], (low[0] - widest, high[0])))
            if int(np.sum(np.all((corners[near] < high) & (ends[near] > low), axis=1))) == len(inside):
                frames.append(Frame(f"scope_{len(frames)}", ".".join(scope), rect=rect))
        return frames


def _at(layers: Iterable[Layer], positions: Mapping[str, tuple[int, int]]) -> tuple[Layer, ...]:
    return tuple(replace(layer, position=positions[layer.name]) for layer in layers)


def _check_weights(needed: Mapping[str, tuple[int, ...]], given: Mapping[str, NDArray[np.float32]]) -> None:
    for name, shape in needed.items():
        found = given.get(name)
        if found is None or tuple(found.shape) != tuple(shape):
            has = tr("no values") if found is None else dims_text(found.shape)
            raise ShapeError(
                tr(
                    "the tensor '{name}' needs the shape {shape} but has {has}",
                    name=name,
                    shape=dims_text(shape),
                    has=has,
                )
            )


def _checked(cls: type[Operator], params: Mapping[str, Value]) -> Operator:
    """An operator with `params`. Raises ParamError for unknown parameters, values out of bounds and broken rules."""
    for name, value in params.items():
        parameter = cls.parameter(name)
        if parameter is None:
            raise ParamError(tr("{title} has no parameter '{name}'", title=cls.title, name=name))
        parameter.check(value)
    operator = cls(**params)
    fault = next(iter(operator.faults()), None)
    if fault is not None:
        raise ParamError(fault.message)
    return operator
