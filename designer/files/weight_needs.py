"""The weights that a network requires, from its inferred shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from designer.files import limits
from designer.files.weight_types import WeightKey
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.naming import identifier, identifiers
from designer.operators.api import Operator, Weight
from designer.operators.inlining import inlined
from designer.operators.training_branch import training_layers
from designer.texts import tr
from designer.units import dims_text

ACTIVATION_PREFIX = "activation_"
MAX_PARTS = 8  # of a layer's name, up to which every split is tried
MAX_PATH = 64  # parts of a layer's name that can be nested modules


def required_weights(inference: Inference) -> dict[WeightKey, Weight]:
    """The weights of all layers with known shapes in topological order, including attached activations.

    Layers of the training branch are excluded. Weights inside templates are named `<instance>.<layer>`, or
    `<template>.<layer>` if they are shared. Raises DiagnosticError if they exceed `limits.MAX_WEIGHT_BYTES`.
    """
    inference = inlined(inference)
    training = training_layers(inference)
    needed: dict[WeightKey, Weight] = {}
    total = 0
    order, _ = inference.graph.order()
    for name in order:
        state = inference.states[name]
        if not state.ok or name in training:
            continue
        read = inference.read(name)
        found: list[Weight] = []
        if isinstance(read.operator, Operator):
            found.extend(read.operator.weights(state.inputs))
        if isinstance(read.activation, Operator) and state.before_activation is not None:
            own = read.activation.weights((state.before_activation,))
            found.extend(replace(w, name=f"{ACTIVATION_PREFIX}{w.name}") for w in own)
        for weight in found:
            key = WeightKey(inference.graph[name].weights_name, weight.name)
            if key in needed:  # shared
                continue
            needed[key] = weight
            total += 4 * prod(weight.shape)
            if total > limits.MAX_WEIGHT_BYTES:
                raise DiagnosticError(_too_large(name, weight))
    return needed


def torch_keys(needed: Mapping[WeightKey, Weight]) -> dict[str, WeightKey]:
    """The keys that a state dict of the generated module can have for `needed`.

    Tensors of a submodule are `<attribute>.<torch name>`, tensors of the module itself `<attribute>_<torch name>`. In generated
    source an instance of a template is a submodule, so that `<instance>.<layer>` are two attributes. Names of instances and
    layers can contain periods, so other splits of a name are accepted if they are unambiguous.
    """
    attributes = identifiers({key.layer for key in needed})
    result: dict[str, WeightKey] = {}
    for key, weight in needed.items():
        suffix = "_activation" if key.tensor.startswith(ACTIVATION_PREFIX) else ""
        result[f"{attributes[key.layer]}{suffix}.{weight.torch}"] = key
        result.setdefault(f"{attributes[key.layer]}{suffix}_{weight.torch}", key)
    nested = _paths({key.layer for key in needed if key.layer.count(".") < MAX_PATH})
    for key, weight in needed.items():
        if key.layer not in nested:
            continue
        suffix = "_activation" if key.tensor.startswith(ACTIVATION_PREFIX) else ""
        for between in "._":
            result.setdefault(f"{nested[key.layer]}{suffix}{between}{weight.torch}", key)
    others: dict[str, set[WeightKey]] = {}
    for key, weight in needed.items():
        suffix = "_activation" if key.tensor.startswith(ACTIVATION_PREFIX) else ""
        for path in _partings(key.layer):
            for between in "._":
                others.setdefault(f"{path}{suffix}{between}{weight.torch}", set()).add(key)
    for text, keys in others.items():
        if len(keys) == 1:
            result.setdefault(text, *keys)
    return result


def _partings(name: str) -> Iterator[str]:
    """The attribute paths that a layer's name can mean, for every choice of periods that separate instance and layer."""
    parts = name.split(".")
    if not 2 < len(parts) <= MAX_PARTS:
        return
    for stops in product((".", "_"), repeat=len(parts) - 1):
        text = "".join(f"{stop}{part}" for stop, part in zip(("", *stops), parts, strict=True))
        yield ".".join(identifier(part) for part in text.split("."))


def _paths(layers: Collection[str]) -> dict[str, str]:
    """Layer -> its attribute path, with one attribute per part of the name between periods."""
    first = identifiers({name.partition(".")[0] for name in layers})
    inner: dict[str, set[str]] = {}
    for name in layers:
        head, _, rest = name.partition(".")
        inner.setdefault(head, set()).update([rest] if rest else [])
    below = {head: _paths(rest) for head, rest in inner.items() if rest}
    found = {}
    for name in layers:
        head, _, rest = name.partition(".")
        found[name] = f"{first[head]}.{below[head][rest]}" if rest else first[head]
    return found


def _too_large(layer: str, weight: Weight) -> Diagnostic:
    shape = dims_text(weight.shape)
    return Diagnostic(
        "too-large",
        tr(
            "with the tensor '{name}' ({shape}) the weights would take more than {MAX_WEIGHT_BYTES} GiB",
            name=weight.name,
            shape=shape,
            MAX_WEIGHT_BYTES=limits.MAX_WEIGHT_BYTES // 2**30,
        ),
        layer=layer,
        remedy=tr("check the number of features and the size of the layer's input"),
    )
