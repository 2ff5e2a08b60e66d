"""Automatic layout: turns node sizes into one edit and keeps frames around their layers."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import log

from app.ui.canvas.layer_index import LayerEntry, LayerIndex
from app.ui.canvas.node_look import node_look
from app.ui.canvas.projection import Projection
from app.ui.document.document import Document
from designer.graph.arrangement import lay_out
from designer.graph.edits import Edit
from designer.graph.layout import LayerBox, arrange

MAX_LEVEL = 10


def arranged(document: Document, projection: Projection, names: Collection[str] | None = None) -> Edit:
    """Lay out `names` (default: all layers) and fit the frames around their layers again."""
    graph = document.graph
    levels = levels_of(document)
    chosen = list(graph.layers) if names is None else list(names)
    held = {frame: inside for frame in graph.frames if (inside := projection.held(frame))}
    measured = {*chosen, *(n for inside in held.values() for n in inside)}
    boxes = {n: box_of(projection.entry(n), levels[n]) for n in measured}
    return lay_out(graph, boxes, chosen, held)


def laid_out(document: Document) -> dict[str, tuple[int, int]]:
    """Positions for all layers of a document that is not on the canvas."""
    index = LayerIndex(partial(node_look, document))
    index.put(document.graph)
    levels = levels_of(document)
    boxes = {name: box_of(index.measured(name), levels[name]) for name in document.graph.layers}
    return arrange(document.graph, boxes)


def levels_of(document: Document) -> dict[str, int]:
    """The number of times each layer's image was downsampled by two. Tensors without height and width take their producer's level."""
    graph, states = document.graph, document.inference.states
    sizes: dict[str, int] = {}
    order, cyclic = graph.order()
    for name in (*order, *cyclic):
        outputs = states[name].outputs if name in states else None
        shape = outputs[0].shape if outputs else ()
        sides = [d for d in shape[2:] if isinstance(d, int) and d > 0]
        if len(sides) == 2:
            sizes[name] = sides[0] * sides[1]
        else:
            sizes[name] = min((sizes[p] for p in graph[name].producers() if p in sizes), default=0)
    largest = max(sizes.values(), default=1)
    return {n: min(MAX_LEVEL, round(log(largest / size, 4))) if size else 0 for n, size in sizes.items()}


def box_of(entry: LayerEntry, level: int = 0) -> LayerBox:
    """The layout's box of a node; its height includes the shape text below it."""
    look, place = entry.seen
    outputs = {port.name: y for port, (_, y) in zip(look.outputs, place.outputs, strict=True)}
    if look.outputs:
        outputs[""] = place.outputs[0][1]
    return LayerBox(
        place.box.united(place.tab).width(),
        max(place.box.height(), place.bounds.bottom()),
        tuple(y for _, y in place.inputs),
        outputs,
        level,
    )
