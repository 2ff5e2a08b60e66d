"""The sizes that networks accept and the edit that makes them accept every size, as recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator

from recorded import check_recorded
from size_networks import networks

from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.operators.size_contract import size_contract
from designer.operators.size_fix import accept_every_size, is_free, obstacle

REGISTRY = load(entry_points=False)


def layer(name: str, kind: str, *inputs: str, **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    return Layer(name, kind, inputs=sources, params={key: str(value) for key, value in params.items()})


def image(name: str = "image", dims: str = "32x24x3") -> Layer:
    return layer(name, "input", dims=dims)


MORE = {
    "single pixels without a variance": [image(), layer("n", "instance_normalization", "image"), layer("out", "output", "n")],
    "single pixels and multiples": [
        image(), layer("s", "space_to_depth", "image", block_size=4), layer("n", "instance_normalization", "s"),
        layer("out", "output", "n"),
    ],
    "one size only": [image(), layer("f", "fully_connected", "image", features=5), layer("out", "output", "f")],
    "a fixed width": [
        image(), layer("f", "fully_connected", "image", features=5, flatten="false"), layer("out", "output", "f"),
    ],
    "a minimum": [
        image(), layer("c", "convolution", "image", kernel="7x3", padding="valid"), layer("out", "output", "c"),
    ],
    "width only": [
        image(), layer("p", "pooling", "image", size="2x1", stride="2x1"), layer("u", "upsample", "p", factor="2x1"),
        layer("a", "element_wise", "image", "u"), layer("out", "output", "a"),
    ],
    "two outputs of different scale": [
        image(), layer("s", "space_to_depth", "image", block_size=2), layer("u", "upsample", "image", factor="3x2"),
        layer("small", "output", "s"), layer("large", "output", "u"),
    ],
    "two inputs of one size": [
        image(), image("other"), layer("a", "element_wise", "image", "other"),
        layer("s", "space_to_depth", "a", block_size=2), layer("out", "output", "s"),
    ],
    "two inputs, one of twice the size": [
        image(), image("half", "16x12x3"), layer("u", "upsample", "half", factor="2x2"),
        layer("a", "concatenation", "image", "u"), layer("out", "output", "a"),
    ],
    "height and width are exchanged": [
        image(dims="24x24x3"), layer("t", "permute", "image", axes="0,1,3,2"), layer("a", "element_wise", "image", "t"),
        layer("out", "output", "a"),
    ],
    "an output of numbers": [
        image(), layer("g", "global_pooling", "image"), layer("s", "space_to_depth", "image", block_size=2),
        layer("classes", "output", "g"), layer("out", "output", "s"),
    ],
    "a training branch": [
        image(), image("target", "31x23x3"), layer("s", "crop", "target"), layer("l", "l1_loss", "image", "s"),
        layer("out", "output", "image"),
    ],
    "no output": [image(), layer("s", "space_to_depth", "image", block_size=2)],
    "invalid": [image(), layer("s", "space_to_depth", "image", block_size=5), layer("out", "output", "s")],
}  # fmt: skip


def changes(edit: Edit) -> Iterator[str]:
    for name, (before, after) in sorted(edit.layers.items()):
        if after is None:
            yield f"  {name} is removed"
        elif before is None or (before.inputs, before.params) != (after.inputs, after.params):
            usual = before.params if before is not None else {}
            params = {key: text for key, text in after.params.items() if usual.get(key) != text}
            yield f"  {name}: {after.type}({', '.join(map(str, after.inputs))}) {params}"


def text_of(graph: Graph) -> Iterator[str]:
    contract = size_contract(graph, REGISTRY)
    for item in contract.inputs:
        for side, rule in (("height", item.height), ("width", item.width)):
            yield f"  {item.layer} {side}: {json.dumps(rule.as_dict())}"
        if item.with_inputs:
            yield f"  {item.layer} with {', '.join(item.with_inputs)}"
    yield from (f"  coupled: {pair}" for pair in contract.coupled)
    if contract.exceptions:
        yield f"  exceptions: {contract.exceptions}"
    if contract.problem is not None:
        yield f"  problem: {contract.problem}"
    yield f"  free: {is_free(contract)}; obstacle: {obstacle(contract)!r}"
    try:
        yield from changes(accept_every_size(graph, REGISTRY, contract))
    except DiagnosticError as error:
        yield f"  {error.diagnostics[0]}"


def test_sizes_and_the_edit_for_every_size() -> None:
    cases = {name: graph for name, graph in networks() if "random" not in name}
    cases |= {name: Graph(layers) for name, layers in MORE.items()}
    lines = [line for name, graph in cases.items() for line in (name, *text_of(graph))]
    check_recorded("sizes.txt", "\n".join([*lines, ""]))
