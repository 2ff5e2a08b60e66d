"""The layers that the tensors of a checkpoint belong to, guessed from names and shapes. Their links are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import WeightKey, Weights
from designer.graph.arrangement import around
from designer.graph.graph import Graph
from designer.graph.layout import LayerBox
from designer.graph.model import Frame, Layer
from designer.graph.naming import free_identifier
from designer.importers.imported import Imported
from designer.importers.report import ImportReport, NodeOutcome, Outcome, counted
from designer.importers.windows import size
from designer.operators.params import Value as Param
from designer.operators.registry import Registry

if TYPE_CHECKING:
    import torch

Shapes = Mapping[str, tuple[int, ...]]  # of the tensors of one module, by their last name
STEP_X, STEP_Y, COLUMNS = 300, 180, 8  # canvas units; layers of a group in one row
BOX = LayerBox(240.0, 120.0, (48.0,), {"": 48.0}, 0)
MAX_LAYERS = 50_000


class Guess(NamedTuple):
    """A layer type with parameters, and its tensor for each name in the checkpoint."""

    type: str
    params: Mapping[str, Param]
    tensors: Mapping[str, str]


def guess(shapes: Shapes) -> Guess | None:
    """The layer of a module; None if its tensors are not those of a layer of the library."""
    weight = shapes.get("weight", ())
    bias = {"bias": "bias"} if "bias" in shapes else {}
    if len(weight) in (3, 4, 5) and set(shapes) <= {"weight", "bias"}:
        type = {3: "convolution_1d", 4: "convolution", 5: "convolution_3d"}[len(weight)]
        params: dict[str, Param] = {"features": weight[0], "kernel": size(weight[2:]), "apply_bias": bool(bias)}
        return Guess(type, params, {"weight": "kernel", **bias})
    if len(weight) == 2 and set(shapes) <= {"weight", "bias"}:
        params = {"features": weight[0], "apply_bias": bool(bias), "flatten": False}
        return Guess("fully_connected", params, {"weight": "kernel", **bias})
    if {"running_mean", "running_var"} <= set(shapes):
        names = {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "variance"}
        return Guess(
            "batch_normalization",
            {"affine": bool(weight)},
            {name: key for name, key in names.items() if name in shapes},
        )
    if len(weight) == 1 and set(shapes) == {"weight", "bias"}:
        return Guess("layer_normalization", {}, {"weight": "scale", "bias": "bias"})
    return None


def skeleton(state: Mapping[str, torch.Tensor], registry: Registry, name: str) -> Imported:
    """Layers without links, in frames by the first part of their names; all tensors are kept."""
    modules: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in list(state.items())[:MAX_LAYERS]:
        module, _, last = key.rpartition(".")
        modules.setdefault(module, {})[last] = tensor
    taken: set[str] = set()
    layers: list[Layer] = []
    groups: dict[str, list[str]] = {}
    weights: dict[WeightKey, NDArray[np.float32]] = {}
    outcomes: list[NodeOutcome] = []
    names: dict[str, str] = {}
    for module, tensors in modules.items():
        for made, given in _layers(module, tensors, registry, taken):
            layers.append(made)
            groups.setdefault(module.partition(".")[0], []).append(made.name)
            for last, key in given.items():
                weights[WeightKey(made.name, key)] = tensors[last].detach().float().numpy()
                names[f"{module}.{last}".lstrip(".")] = f"{made.name}.{key}"
            outcomes.append(NodeOutcome(module, made.type, Outcome.KNOWN, (made.name,)))
    placed, frames = _arranged(layers, groups)
    report = ImportReport(source=name, weights=names, **counted(tuple(outcomes)))
    return Imported(Graph(placed, name=name, frames=frames), Weights(weights), report)


def _layers(
    module: str, tensors: Mapping[str, torch.Tensor], registry: Registry, taken: set[str]
) -> list[tuple[Layer, Mapping[str, str]]]:
    shapes = {last: tuple(map(int, tensor.shape)) for last, tensor in tensors.items() if last != "num_batches_tracked"}
    found = guess(shapes)
    if found is not None:
        return [(_layer(registry, found, free_identifier(module or found.type, taken)), found.tensors)]
    return [
        (
            _layer(
                registry,
                Guess("parameter", {"shape": shape}, {}),
                free_identifier(f"{module}.{last}".lstrip("."), taken),
            ),
            {last: "value"},
        )
        for last, shape in shapes.items()
        if shape and 0 not in shape and tensors[last].is_floating_point()
    ]


def _layer(registry: Registry, found: Guess, name: str) -> Layer:
    cls = registry.get(found.type)
    assert cls is not None
    return Layer(name, found.type, params=cls(**found.params).texts(all=False))


def _arranged(layers: list[Layer], groups: Mapping[str, list[str]]) -> tuple[list[Layer], list[Frame]]:
    """Layers in rows, one group after the other."""
    places: dict[str, tuple[int, int]] = {}
    frames = []
    row = 0
    for number, (group, names) in enumerate(groups.items()):
        inside = {
            name: (index % COLUMNS * STEP_X, (row + index // COLUMNS) * STEP_Y) for index, name in enumerate(names)
        }
        rect = around(inside, dict.fromkeys(inside, BOX))
        frames.append(Frame(f"group_{number}", group, rect=rect))
        places |= inside
        row += -(-len(names) // COLUMNS) + 1
    return [replace(layer, position=places[layer.name]) for layer in layers], frames
