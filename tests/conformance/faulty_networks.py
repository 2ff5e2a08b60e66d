"""Twenty networks, and faults as exporters make them: planted into one layer, they must be found there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
from numpy.typing import NDArray
from runtime_networks import RELU, layer

from designer.files.weight_random import random_weights
from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer
from designer.operators.registry import Registry

NETWORKS = 20
SIDE = 24
FILTERS = ("convolution", "transposed_convolution")
NORMALIZATIONS = ("batch_normalization", "group_normalization", "instance_normalization")

Planted = tuple[Graph, Weights]
Arrays = dict[WeightKey, NDArray[np.float32]]


def faulty_network(seed: int, registry: Registry) -> Planted:
    """An encoder and decoder with skips and normalizations, of the kinds, widths and depth that `seed` chooses."""
    dice = Random(seed)
    layers = [layer("image", "input", dims=f"{SIDE}x{SIDE}x3")]
    end = "image"
    skips: list[tuple[str, int]] = []

    def add(kind: str, inputs: str, act: object = None, **params: object) -> str:
        layers.append(layer(f"{kind}_{len(layers)}", kind, inputs, act, **params))
        return layers[-1].name

    def block(width: int) -> str:
        kernel = dice.choice(("3x3", "5x5"))
        made = add("convolution", end, dice.choice((RELU, None)), features=width, kernel=kernel)
        if dice.random() < 0.6:
            kind = dice.choice(NORMALIZATIONS)
            made = add(kind, made, **({"groups": 2} if kind == "group_normalization" else {}))
        return made

    width = dice.choice((4, 6, 8))
    depth = dice.choice((1, 2))
    for level in range(depth):
        end = block(width << level)
        skips.append((end, width << level))
        end = add("pooling", end, operation=dice.choice(("max", "average")), size="2x2", stride="2x2")
    end = block(width << depth)
    inner = block(width << depth)
    end = add("element_wise", f"{end},{inner}", operation="add")
    for skip, count in reversed(skips):
        if dice.random() < 0.5:
            end = add("transposed_convolution", end, features=count, kernel="4x4", stride="2x2")
        else:
            end = add("upsample", end, factor="2x2", method=dice.choice(("nearest", "bilinear")))
        end = add("concatenation", f"{end},{skip}", axis=1)
        end = block(count)
    end = add("convolution", end, features=3, kernel="3x3")
    layers.append(layer("result", "output", end))
    graph = Graph(layers, name=f"network {seed}")
    weights = random_weights(required_weights(Inference(graph, registry)), seed)
    scaled = {
        key: np.float32(2.4) * array if key.tensor == "kernel" else array for key, array in weights.tensors.items()
    }
    return graph, Weights(scaled)


def planted(network: Planted, dice: Random, kind: str) -> tuple[str, Planted] | None:
    """The name of a layer and the network with a fault in it; None if no layer can have a fault of this kind."""
    graph, weights = network
    plant, types = FAULTS[kind]
    fitting = [item for item in graph if item.type in types]
    if not fitting:
        return None
    chosen = dice.choice(fitting)
    return chosen.name, plant(graph.copy(), dict(weights.tensors), chosen)


def _channel_order(graph: Graph, tensors: Arrays, chosen: Layer) -> Planted:
    for name, axis in (("kernel", 1 if chosen.type == "transposed_convolution" else 0), ("bias", 0)):
        key = WeightKey(chosen.name, name)
        if key in tensors:
            tensors[key] = np.roll(tensors[key], 1, axis)
    return graph, Weights(tensors)


def _epsilon(graph: Graph, tensors: Arrays, chosen: Layer) -> Planted:
    graph.apply(set_params(graph, {chosen.name: {"epsilon": "1e-3"}}))
    return graph, Weights(tensors)


def _rounding(graph: Graph, tensors: Arrays, chosen: Layer) -> Planted:
    key = WeightKey(chosen.name, "kernel")
    bits = np.ascontiguousarray(tensors[key]).view(np.uint32)
    tensors[key] = (bits & np.uint32(0xFFFF0000)).view(np.float32)  # as bfloat16, cut off instead of rounded
    return graph, Weights(tensors)


def _transposed_kernel(graph: Graph, tensors: Arrays, chosen: Layer) -> Planted:
    key = WeightKey(chosen.name, "kernel")
    tensors[key] = np.ascontiguousarray(tensors[key].swapaxes(2, 3))
    return graph, Weights(tensors)


FAULTS: dict[str, tuple[Callable[[Graph, Arrays, Layer], Planted], tuple[str, ...]]] = {
    "channel order": (_channel_order, FILTERS),
    "epsilon": (_epsilon, NORMALIZATIONS),
    "rounding": (_rounding, FILTERS),
    "transposed kernel": (_transposed_kernel, FILTERS),
}


def faults(registry: Registry, count: int) -> Iterator[tuple[str, Planted, str, Planted]]:
    """Names of faults, networks, layers, and the networks with the faults in these layers; kinds and networks take turns."""
    networks = [faulty_network(seed, registry) for seed in range(NETWORKS)]
    kinds = tuple(FAULTS)
    for number in range(count):
        network = networks[number % NETWORKS]
        dice = Random(number)
        turn = number // NETWORKS + number
        found = next(filter(None, (planted(network, dice, kinds[(turn + i) % len(kinds)]) for i in range(len(kinds)))))
        yield f"{number}: {kinds[turn % len(kinds)]}", network, *found
