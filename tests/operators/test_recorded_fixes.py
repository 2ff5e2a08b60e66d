"""Everything that is offered for a finding, as recorded: the titles in their order, and what each of them changes."""

from __future__ import annotations

from collections.abc import Iterator

from recorded import check_recorded
from test_fixes import CASES, HALF, PART, REGISTRY, end, findings, image, layer

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import Template
from designer.operators.fixes import Fix, fixes

NET = Template(
    "net",
    (layer("a", "template_input"), layer("c", "convolution", "a", features="2"), layer("r", "template_output", "c")),
)
SPLIT = layer("s", "split", "in", sizes="1,2,3,4", parts="4")
SIX = image(dims="16x12x6")
MORE: dict[str, list[Layer]] = {
    "an output with no similar name": [image(dims="16x12x10"), SPLIT, layer("c", "convolution", "s:zzz"), *end("c")],
    "an output with a similar name": [image(), layer("l", "lstm", "f"), layer("f", "flatten", "in", end_axis="2"),
                                      layer("r", "fully_connected", "l:stat"), *end("r")],
    "unknown outputs of several": [image(dims="16x12x10"), SPLIT,
                                   layer("x", "concatenation", "s:y7", "in", "s:zzz"), *end("x")],
    "three sizes": [image(), image("b", "20x12x3"), image("c", "9x7x3"), layer("x", "concatenation", "in", "b", "c"), *end("x")],
    "the same size twice, then a multiple": [image(), image("b"), image("c", "64x24x3"),
                                             layer("x", "element_wise", "in", "b", "c"), *end("x")],
    "the same height": [image(dims="32x12x3"), image("b"), layer("x", "element_wise", "in", "b"), *end("x")],
    "two open ports": [image(), layer("x", "element_wise", None, "in", None, "in"), *end("x")],
    "the beginning of an activation": [image(), layer("c", "convolution", "in", activation=ActivationSpec("soft")), *end("c")],
    "a large factor": [image(dims="4x4x3"), image("b", "1024x4x3"), layer("x", "element_wise", "in", "b"), *end("x")],
    "two element types": [image(), layer("k", "cast", "in", target="int64"), layer("x", "concatenation", "in", "k"), *end("x")],
    "three element types": [image(), layer("k", "cast", "in", target="int64"), layer("h", "cast", "in", target="int32"),
                            layer("x", "element_wise", "in", "k", "h"), *end("x")],
    "an axis of 1": [image(dims="16x12x1"), layer("l", "lstm", "in"), *end("l")],
    "two axes of 1": [image(dims="1x12x1"), layer("b", "batch_normalization", "in"), layer("l", "embedding", "b"), *end("l")],
    "features behind several layers": [
        image(), layer("c", "convolution", "in", features="8"), layer("d", "dropout", "c"), layer("i", "identity", "d"),
        layer("x", "element_wise", "in", "i"), *end("x"),
    ],
    "features behind too many layers": [
        image(), layer("c", "convolution", "in", features="8"),
        *(layer(f"i{n}", "identity", f"i{n - 1}" if n else "c") for n in range(12)),
        layer("x", "element_wise", "in", "i11"), *end("x"),
    ],
    "features of an unknown operator": [image(), layer("u", "nothing", "in"), layer("x", "element_wise", "in", "u"), *end("x")],
    "channels of inputs": [image(), image("b", "16x12x5"), layer("x", "element_wise", "in", "b"), *end("x")],
    "heads": [image(), layer("f", "flatten", "in", start_axis="2"), layer("m", "multi_head_attention", "f", heads="5"), *end("m")],
    "parts": [SIX, layer("s", "split", "in", parts="4"), *end("s")],
    "groups of a normalization": [SIX, layer("s", "group_normalization", "in", groups="5"), *end("s")],
    "an odd window": [SIX, layer("s", "ssim_loss", "in", "in", window="4"), *end("in")],
    "a pooling window": [image(), layer("p", "pooling", "in", size="30x3", stride="1x1"), *end("p")],
    "a transposed convolution": [SIX, layer("c", "transposed_convolution", "in", groups="4", features="6"), *end("c")],
    "blocks of three": [image(dims="10x11x3"), layer("s", "space_to_depth", "in", block_size="3"), *end("s")],
    "a negative axis": [image(), layer("x", "concatenation", "in", "in", axis="-7"), *end("x")],
    "only a loss": [image(), image("t"), layer("c", "convolution", "in", features="3"), layer("l", "l1_loss", "c", "t")],
    "a loop of two": [image(), layer("a", "element_wise", "in", "b"), layer("b", "identity", "a"), *end("b")],
    "a loop of one": [image(), layer("a", "element_wise", "in", "a"), *end("a")],
    "a number too large": [image(), layer("c", "convolution", "in", features="70000"), *end("c")],
    "a size too small": [image(), layer("p", "pooling", "in", size="0x3"), *end("p")],
    "a size of another form": [image(), layer("p", "pooling", "in", size="3 by 3"), *end("p")],
    "a factor instead of layers": [
        image(), layer("p", "pooling", "in", size="4x2", stride="4x2"), layer("x", "upscale_concat", "p", "in"), *end("x")],
    "a misspelt activation": [image(), layer("c", "convolution", "in", activation=ActivationSpec("rellu")), *end("c")],
    "a parameter of an activation": [
        image(), layer("c", "convolution", "in", activation=ActivationSpec("elu", {"alfa": "2"})), *end("c")],
    "an operator with a synonym": [image(), layer("c", "maxpool", "in", **HALF), *end("c")],
    "a template without an input": [image(), layer("t", "template", template="part"), *end("t")],
    "no template": [image(), layer("t", "template", "in", template=""), *end("t")],
    "a matrix": [image(), layer("f", "flatten", "in"), layer("u", "upsample", "f"), *end("u")],
    "one sample with axes of 1": [layer("t", "tensor_input", shape="1,1,12,1", batch="false"), layer("l", "lstm", "t"), *end("l")],
    "a vector of one sample": [layer("t", "tensor_input", shape="1,1,7", batch="false"), layer("l", "fully_connected", "t"),
                               layer("p", "pooling", "t"), *end("l", "p")],
    "features behind the first of two inputs": [
        image(), layer("c", "convolution", "in", features="8"), layer("d", "convolution", "in", features="5"),
        layer("k", "crop", "c", "d"), layer("x", "element_wise", "in", "k"), *end("x"),
    ],
    "an instance with an input too many": [image(), layer("t", "template", "in", "in", template="part"), *end("t")],
    "shared weights of two shapes": [
        image(), image("b", "16x12x5"), layer("t", "template", "in", template="net", shared_weights="true"),
        layer("u", "template", "b", template="net", shared_weights="true"), *end("t", "u"),
    ],
    "no output and two ends": [image(), layer("a", "convolution", "in"), layer("b", "split", "in", parts="3")],
}  # fmt: skip


def text_of(layer_: Layer) -> str:
    params = "".join(f" {key}={text!r}" for key, text in sorted(layer_.params.items()))
    function = layer_.activation
    attached = f" -> {function.type} {dict(sorted(function.params.items()))}" if function is not None else ""
    return f"{layer_.type}({', '.join(map(str, layer_.inputs))}){params}{attached}"


def changed(fix: Fix) -> Iterator[str]:
    """A line for each layer that a fix adds, removes or changes; the parameters that differ only."""
    for name, (before, after) in sorted(fix.edit.layers.items()):
        if after is None:
            yield f"      {name} is removed"
            continue
        new = {key: text for key, text in after.params.items() if before is None or before.params.get(key) != text}
        gone = sorted(before.params.keys() - after.params.keys()) if before is not None else []
        same = before is not None and text_of(before) == text_of(after) and before.position != after.position
        if same and before is not None:
            yield f"      {name} moves by {after.position[0] - before.position[0]}, {after.position[1] - before.position[1]}"
        elif before is None or text_of(before) != text_of(after):
            shown = Layer(after.name, after.type, inputs=after.inputs, params=new, activation=after.activation)
            yield f"      {name}: {text_of(shown)}{f' without {gone}' if gone else ''}"


def offered_texts(layers: list[Layer]) -> Iterator[str]:
    graph = Graph(layers, templates=[PART, NET])
    for finding in findings(graph):
        place = ".".join(filter(None, (finding.layer, finding.port, finding.parameter)))
        yield f"  {finding.code} {place}: {finding.message}; {finding.remedy}"
        for fix in fixes(graph, REGISTRY, Inference(graph, REGISTRY), finding):
            yield f"    {fix.title}"
            yield from changed(fix)


def test_all_that_is_offered() -> None:
    cases = {name: case[0] for name, case in CASES.items()} | MORE
    lines = [line for name, layers in cases.items() for line in (name, *offered_texts(layers))]
    check_recorded("operators/fixes.txt", "\n".join([*lines, ""]))
