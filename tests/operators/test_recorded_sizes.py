"""The sizes that a set of networks accepts, and the edit after which they accept every size, as recorded."""

from __future__ import annotations

from operator_oracles import REGISTRY
from recorded import check_recorded
from size_texts import contract_lines, edit_lines

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.size_contract import size_contract
from designer.operators.size_fix import accept_every_size


def layer(name: str, kind: str, *inputs: str, activation: ActivationSpec | None = None, **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    texts = {key: str(value) for key, value in params.items()}
    return Layer(name, kind, inputs=sources, params=texts, activation=activation)


def image(dims: str, name: str = "in") -> Layer:
    return layer(name, "input", dims=dims)


def output(source: str, name: str = "out") -> Layer:
    return layer(name, "output", source)


def window(name: str, source: str, kernel: str, stride: str = "1x1") -> Layer:
    return layer(name, "convolution", source, features=4, kernel=kernel, stride=stride, padding="valid")


def blocks(name: str, source: str, size: int) -> Layer:
    return layer(name, "space_to_depth", source, block_size=size)


SLOPES = ActivationSpec("prelu", {"per_channel": "true"})
PLAIN_SLOPE = ActivationSpec("prelu", {"per_channel": "false"})
NETWORKS: dict[str, list[Layer]] = {
    "an odd size": [
        image("33x25x3"),
        window("a", "in", "3x3", "2x2"),
        layer("b", "upsample", "a", factor="2x2"),
        window("cut", "in", "2x2"),
        layer("sum", "element_wise", "b", "cut"),
        output("sum"),
    ],
    "a smallest size": [image("32x24x3"), window("a", "in", "9x5"), output("a")],
    "blocks of 6 and of 4": [
        image("36x24x3"),
        blocks("a", "in", 6),
        layer("b", "depth_to_space", "a", block_size=2),
        blocks("c", "b", 4),
        output("c"),
    ],
    "a matrix for all values": [image("8x6x3"), layer("f", "fully_connected", "in", features=5), output("f")],
    "a slope for each value": [image("8x6x3"), layer("f", "flatten", "in", activation=SLOPES), output("f")],
    "one slope": [image("8x6x3"), layer("f", "flatten", "in", activation=PLAIN_SLOPE), output("f")],
    "two images that are added": [
        image("16x12x3"),
        image("16x12x3", "other"),
        layer("sum", "element_wise", "in", "other"),
        layer("p", "pooling", "sum", size="2x2", stride="2x2"),
        layer("u", "upsample", "p", factor="2x2"),
        layer("j", "concatenation", "sum", "u"),
        output("j"),
    ],
    "two images by themselves": [
        image("16x12x3"),
        image("8x8x3", "other"),
        blocks("p", "in", 2),
        window("q", "other", "3x3"),
        output("p"),
        output("q", "second"),
    ],
    "two images, one of half the size": [
        image("16x12x3"),
        image("8x6x3", "other"),
        blocks("p", "in", 2),
        layer("j", "concatenation", "p", "other"),
        output("j"),
    ],
    "one pixel has no variance": [image("32x24x3"), layer("n", "instance_normalization", "in"), output("n")],
    "pixels in pairs": [
        image("32x24x3"),
        layer("p", "pooling", "in", size="2x1", stride="2x1"),
        layer("n", "instance_normalization", "p"),
        output("n"),
    ],
    "pixels in columns": [
        image("32x24x3"),
        layer("p", "pooling", "in", size="1x3", stride="1x3"),
        layer("n", "instance_normalization", "p"),
        output("n"),
    ],
    "no size": [image("32x24x3"), layer("g", "convolution", "in", features=3, groups=2), output("g")],
    "a layer of unknown meaning": [
        image("8x6x3"),
        layer("o", "opaque", "in", op_type="Mystery", shapes="N x 3 x 6 x 8"),
        output("o"),
    ],
    "its own size is not valid": [
        image("33x25x3"),
        blocks("s", "in", 5),
        blocks("d", "in", 3),
        output("s"),
        output("d", "second"),
    ],
    "a size that is none of the usual": [image("33x25x3"), blocks("s", "in", 7), blocks("d", "in", 11), output("s")],
    "the image and its transpose": [
        image("16x12x3"),
        layer("t", "permute", "in", axes="0,1,3,2"),
        layer("s", "element_wise", "in", "t"),
        output("s"),
    ],
    "an output that is not an image": [
        image("64x48x3"),
        window("c", "in", "7x5", "2x2"),
        layer("g", "global_pooling", "c"),
        layer("f", "flatten", "g"),
        output("f"),
        output("c", "map"),
    ],
    "losses, and layers that lead nowhere": [
        image("16x12x3"),
        blocks("s", "in", 5),
        layer("l", "mse_loss", "s", "s"),
        blocks("t", "in", 4),
    ],
    "a size that is enlarged and one that is not": [
        image("16x12x3"),
        layer("u", "upsample", "in", factor="3x2"),
        blocks("s", "u", 4),
        output("s"),
    ],
    "a division by its own size": [
        image("16x12x3"),
        layer("c", "global_pooling", "in"),
        layer("s", "element_wise", "in", "c"),
        layer("r", "reshape", "s", shape="3,-1"),
        output("r"),
    ],
    "an output of one row, and one of a fixed size": [
        image("16x12x3"),
        blocks("s", "in", 4),
        layer("m", "reduce", "s", operation="mean", axes="2", keep="true"),
        layer("a", "adaptive_pooling", "s", size="2x2"),
        layer("u", "upsample", "s", factor="4x4"),
        output("m"),
        output("a", "fixed"),
        output("u", "whole"),
    ],
    "an output of one column": [
        image("15x12x3"),
        layer("p", "pooling", "in", size="3x2", stride="3x2"),
        blocks("s", "p", 5),
        layer("m", "reduce", "s", operation="max", axes="3", keep="true"),
        output("m"),
    ],
    "every size": [image("16x12x3"), layer("c", "convolution", "in", features=2), output("c")],
}


def test_sizes_of_networks_and_their_fix() -> None:
    lines = []
    for name, layers in NETWORKS.items():
        graph = Graph(layers)
        contract = size_contract(graph, REGISTRY)
        lines += [name, *contract_lines(contract)]
        try:
            lines += [*edit_lines(accept_every_size(graph, REGISTRY, contract))]
        except DiagnosticError as error:
            lines.append(f"  {error}")
    check_recorded("operators/sizes.txt", "\n".join([*lines, ""]))


def test_sizes_that_are_not_named_are_those_of_the_reference() -> None:
    """Of a network whose own size is not valid, the reference is another size."""
    contract = size_contract(Graph(NETWORKS["its own size is not valid"]), REGISTRY)
    assert contract.reference == {"in": (15, 15)}
    assert contract.accepts({})
    assert contract.accepts({"in": (30, 15)})
    refusal = contract.refusal({"in": (30, 16)})
    assert refusal is not None
    assert refusal.layer in ("s", "d")
    both = size_contract(Graph(NETWORKS["two images that are added"]), REGISTRY)
    assert [both.accepts({"in": size}) for size in ((12, 16), (24, 16))] == [True, False]
    assert both.accepts({"in": (24, 18), "other": (24, 18)})
