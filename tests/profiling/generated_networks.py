"""Image-to-image networks with random sizes, as users build them: encoders and decoders, residual chains, plain chains."""

from __future__ import annotations

import random

from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source

RELU = ActivationSpec("relu")


def generated_network(seed: int) -> Graph:
    """The same seed makes the same network."""
    dice = random.Random(seed)
    make = (_encoder_decoder, _residual, _plain)[seed % 3]
    layers = [_layer("in", "input", (), dims=f"{dice.choice((96, 128, 192))}x{dice.choice((96, 128, 160))}x3")]
    last = make(dice, layers)
    return Graph([*layers, _layer("out", "output", (last,))], name=f"generated_{seed}")


def _encoder_decoder(dice: random.Random, layers: list[Layer]) -> str:
    features, kernel = dice.choice((16, 24, 32)), dice.choice((3, 5))
    depth = dice.randint(1, 3)
    skips, last = [], "in"
    for level in range(depth):
        last = _convolution(layers, last, features << level, kernel if level == 0 else 3, RELU)
        skips.append(last)
        last = _add(layers, "pooling", (last,), operation="max", size="2x2", stride="2x2")
    last = _convolution(layers, last, features << depth, 3, RELU)
    for level in reversed(range(depth)):
        last = _add(layers, "upsample", (last,), factor="2x2")
        last = _add(layers, "concatenation", (last, skips[level]))
        last = _convolution(layers, last, features << level, 3, RELU)
    return _convolution(layers, last, 3, 3)


def _residual(dice: random.Random, layers: list[Layer]) -> str:
    features, kernel = dice.choice((24, 32, 48, 64)), dice.choice((1, 3))
    last = _convolution(layers, "in", features, 3)
    for _ in range(dice.randint(2, 5)):
        inner = _convolution(layers, last, features, 3, RELU)
        inner = _convolution(layers, inner, features, kernel)
        last = _add(layers, "element_wise", (inner, last), operation="add")
    return _convolution(layers, last, 3, 3)


def _plain(dice: random.Random, layers: list[Layer]) -> str:
    last = "in"
    for _ in range(dice.randint(3, 7)):
        last = _convolution(layers, last, dice.choice((16, 32, 48, 64)), dice.choice((1, 3, 3, 5)))
        if dice.random() < 0.5:
            last = _add(layers, "batch_normalization", (last,))
        name = f"activation_{len(layers)}"
        layers.append(Layer(name, "activation", inputs=(Source(last),), activation=RELU))
        last = name
    return _convolution(layers, last, 3, 3)


def _convolution(
    layers: list[Layer], source: str, features: int, kernel: int, activation: ActivationSpec | None = None
) -> str:
    layer = _layer(f"conv_{len(layers)}", "convolution", (source,), features=features, kernel=f"{kernel}x{kernel}")
    layers.append(Layer(layer.name, layer.type, inputs=layer.inputs, params=layer.params, activation=activation))
    return layer.name


def _add(layers: list[Layer], type_: str, sources: tuple[str, ...], **parameters: str) -> str:
    layers.append(_layer(f"{type_}_{len(layers)}", type_, sources, **parameters))
    return layers[-1].name


def _layer(name: str, type_: str, sources: tuple[str, ...], **parameters: object) -> Layer:
    inputs = tuple(Source(source) for source in sources)
    return Layer(name, type_, inputs=inputs, params={key: str(value) for key, value in parameters.items()})
