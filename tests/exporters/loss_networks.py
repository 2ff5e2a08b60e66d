"""Networks with a training branch, for the tests of what is exported for training."""

from __future__ import annotations

from typing import Any

from pytorch_networks import RELU, load_source, node

from designer.graph.graph import Graph
from designer.operators.registry import Registry
from exporters.pytorch.losses import CLASS, losses_of
from exporters.pytorch.source import module_source, network_module

PIXELS = "16x16x3"


def restorer(*losses: Any) -> Graph:
    """A picture through two convolutions; `losses` are nodes that compare `tail` or `result` with `clean`."""
    return Graph(
        [
            node("image", "input", dims=PIXELS, tiling=2),
            node("clean", "input", dims=PIXELS),
            node("head", "convolution", "image", activation=RELU, features=8, kernel="3x3"),
            node("tail", "convolution", "head", features=3, kernel="3x3"),
            node("result", "output", "tail"),
            *losses,
        ],
        name="restorer",
    )


def segmenter() -> Graph:
    """Four classes a pixel; the labels come as a picture of class numbers."""
    return Graph(
        [
            node("image", "input", dims=PIXELS),
            node("labels", "input", dims="16x16x1"),
            node("head", "convolution", "image", activation=RELU, features=16, kernel="3x3"),
            node("scores", "convolution", "head", features=4, kernel="1x1"),
            node("result", "output", "scores", analysis_view="labels"),
            node("flat", "squeeze", "labels", axes="1"),
            node("classes", "cast", "flat", target="int64"),
            node("right class", "cross_entropy_loss", "scores", "classes"),
        ],
        name="segmenter",
    )


def speller(steps: int = 8, symbols: int = 3, classes: int = 4) -> Graph:
    """A sequence of `steps` columns, read as `symbols` of `classes` - 1 and a blank (class 0)."""
    return Graph(
        [
            node("signal", "input", dims=f"{steps}x1x{classes}"),
            node("text", "input", dims=f"{symbols}x1x1"),
            node("read", "convolution", "signal", features=classes, kernel="3x1"),
            node("row", "squeeze", "read", axes="2"),
            node("steps", "permute", "row", axes="0, 2, 1"),
            node("result", "output", "steps", analysis_view="tensor"),
            node("line", "squeeze", "text", axes="1, 2"),
            node("symbols", "cast", "line", target="int64"),
            node("spelling", "ctc_loss", "steps", "symbols"),
        ],
        name="speller",
    )


def generated(graph: Graph, registry: Registry) -> tuple[Any, Any]:
    """The network and its losses as modules of the generated sources."""
    losses = losses_of(graph, registry)
    assert losses is not None
    network = load_source(module_source(network_module(graph, registry, taps=losses.taps), "Network")).Network()
    return network, load_source(module_source(losses.module, CLASS)).Losses()


def named(values: Any, name: str) -> dict[str, Any]:
    """Losses by name; a single one comes as it is."""
    return values if isinstance(values, dict) else {name: values}
