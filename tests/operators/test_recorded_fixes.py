"""Everything that is offered for a finding, as recorded: the titles in their order, and what each of them changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from recorded import check_recorded
from test_fixes import CASES, HALF, PART, REGISTRY, end, findings, image, layer
from test_recorded_declarations import digest

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Foreign, Layer, Source
from designer.graph.template import Template
from designer.operators.fixes import Fix, FixTrial, fixes
from designer.operators.inside import InsideInference

NET = Template(
    "net",
    (layer("a", "template_input"), layer("c", "convolution", "a", features="2"), layer("r", "template_output", "c")),
)
SPLIT = layer("s", "split", "in", sizes="1,2,3,4", parts="4")
SIX = image(dims="16x12x6")
KEPT: dict[str, Any] = {"attributes": {"note": "of another program"}, "children": (Foreign("<more/>"),)}
MORE: dict[str, list[Layer]] = {
    "an activation that another program wrote, with a wrong number": [
        image(), layer("c", "convolution", "in", activation=ActivationSpec("elu", {"alpha": "one"}, **KEPT)), *end("c")],
    "an activation that another program wrote, with an unknown parameter": [
        image(), layer("c", "convolution", "in", activation=ActivationSpec("elu", {"alfa": "2", "more": "1"}, **KEPT)), *end("c")],
    "a misspelt activation that another program wrote": [
        image(), layer("c", "convolution", "in", activation=ActivationSpec("leaky_rlu", {"slope": "0.1", "alpha": "1"}, **KEPT)),
        *end("c")],
    "an activation like nothing": [image(), layer("c", "convolution", "in", activation=ActivationSpec("qqq")), *end("c")],
    "a parameter that the layer and its activation have": [
        image(), layer("c", "leaky_relu", "in", alpha="x", activation=ActivationSpec("elu", {"alpha": "y"})), *end("c")],
    "an activation on an analysis layer": [
        image(), layer("h", "histogram", "in", activation=ActivationSpec("relu")), *end("in")],
    "truth values of other languages": [
        image(), layer("c", "convolution", "in", apply_bias=" Yes "), layer("d", "convolution", "c", apply_bias="off"),
        layer("e", "convolution", "d", apply_bias="maybe"), *end("e")],
    "choices in capitals": [image(), layer("c", "convolution", "in", padding="SAME", padding_mode="refl"), *end("c")],
    "a choice like nothing": [image(), layer("c", "convolution", "in", padding="qqq"), *end("c")],
    "numbers with more": [
        image(), layer("c", "convolution", "in", features="about 12", kernel="3", stride="2X2", dilation="1x2x3"), *end("c")],
    "fractions": [
        image(), layer("d", "dropout", "in", probability="1.5"), layer("e", "dropout", "d", probability="-0.1"),
        layer("f", "scale_shift", "e", scale="a 2,5"), layer("g", "convolution", "f", features="2.6"), *end("g")],
    "a size that may be empty": [
        image(), layer("u", "upsample", "in", fixed_upscale="20"), layer("v", "upsample", "u", fixed_upscale="wide"), *end("v")],
    "a volume in another form": [
        image(dims="16x12"), image("b", "16"), image("d", "16x0x3"), layer("e", "input_cst", dims="a 4 b 5 c 6"), *end("in", "b", "d", "e")],
    "lists of numbers": [
        image(), layer("p", "permute", "in", axes="0;2;3;1"), layer("s", "split", "in", sizes="1,x", parts="2"), *end("p", "s")],
    "a negative list": [image(), layer("t", "tile", "in", repeats="1,-1,2,2"), *end("t")],
    "unknown parameters near others": [
        image(), layer("c", "convolution", "in", feature="8", kernel_size="3x3", strid="many", features="4"), *end("c")],
    "an unknown operator with parameters": [
        image(), layer("c", "convolutoin", "in", features="8", kernel="three", other="1"), *end("c")],
    "an operator by its title": [image(), layer("c", "Batch Normalization", "in", epsilon="0.1"), *end("c")],
    "an unknown operator with an activation": [
        image(), layer("c", "conv", "in", activation=ActivationSpec("relu")), *end("c")],
    "a template with a name like others": [image(), layer("t", "template", "in", template="parts"), *end("t")],
    "a template with another name": [image(), layer("t", "template", "in", template="qqq"), *end("t")],
    "ports of a template in the network": [
        layer("a", "template_input"), layer("c", "convolution", "a"), layer("b", "template_output", "c")],
    "a source with another name and a port": [
        image(dims="16x12x10"), layer("split", "split", "in", parts="2"), layer("c", "convolution", "splitt:y2"),
        layer("d", "convolution", "spli:y7"), *end("c", "d")],
    "a source whose name is that of a layer behind": [
        image(), layer("c1", "convolution", "c3"), layer("c2", "convolution", "c1"), *end("c2")],
    "open ports of layers of one kind": [
        image(), layer("a", "convolution", "in", features="3"), layer("b", "flatten", "in"), layer("m", "matmul", "b", None),
        layer("x", "concatenation", None, "a"), *end("m", "x")],
    "an open port whose fitting outputs are all read": [
        image(), layer("a", "convolution", "in", features="3"), layer("x", "element_wise", "a"), *end("a", "x")],
    "an open port far from two outputs": [
        replace(image(), position=(0, 0)), replace(layer("right", "identity", "in"), position=(900, 0)),
        replace(layer("left", "identity", "in"), position=(100, 0)), replace(layer("x", "identity"), position=(500, 0)), *end("x")],
    "a loop of three with a branch": [
        image(), layer("a", "element_wise", "in", "c"), layer("b", "identity", "a"), layer("c", "element_wise", "b", "in"), *end("c")],
    "an output port by another name": [image(), layer("c", "convolution", "in:y"), layer("t", "top_k", "in"),
                                       layer("d", "identity", "t:index"), *end("c", "d")],
    "one image larger in one direction only": [
        image(), image("b", "8x24x3"), layer("x", "concatenation", "in", "b"), *end("x")],
    "three sizes, the first of them the smallest": [
        image(dims="8x6x3"), image("b", "16x12x3"), image("c", "24x12x3"), layer("x", "element_wise", "in", "b", "c"), *end("x")],
    "vectors of different sizes": [
        image(), layer("f", "fully_connected", "in", features="7"), layer("g", "fully_connected", "in", features="5"),
        layer("x", "element_wise", "f", "g"), *end("x")],
    "rows of different sizes": [
        layer("a", "tensor_input", shape="5,4"), layer("b", "tensor_input", shape="6,4"), layer("x", "element_wise", "a", "b"), *end("x")],
    "an image for a sequence": [image(dims="16x1x3"), layer("l", "gru", "in"), *end("l")],
    "a vector for an image": [image(), layer("f", "fully_connected", "in", features="7"), layer("c", "convolution", "f"), *end("c")],
    "integers for fractions": [
        layer("a", "tensor_input", shape="3,8,8", dtype="int64"), layer("c", "convolution", "a"), *end("c")],
    "a kernel as large as the image": [
        image(dims="4x6x3"), layer("c", "convolution", "in", kernel="4x7", padding="valid", dilation="1x1"), *end("c")],
    "a dilated kernel": [
        image(dims="4x6x3"), layer("c", "convolution", "in", kernel="3x3", padding="valid", dilation="3x1"), *end("c")],
    "groups and features": [image(dims="8x8x6"), layer("c", "convolution", "in", groups="3", features="8"), *end("c")],
    "groups of one channel": [image(dims="8x8x1"), layer("c", "convolution", "in", groups="4"), *end("c")],
    "axes that are too large": [image(), layer("x", "concatenation", "in", "in", axis="7"), layer("f", "flatten", "in", start_axis="5"),
                                layer("r", "softmax", "in", axis="6"), *end("x", "f", "r")],
    "patches": [image(dims="10x9x3"), layer("s", "space_to_depth", "in", block_size="4"), *end("s")],
    "blocks of channels": [image(dims="10x9x3"), layer("s", "depth_to_space", "in", block_size="2"), *end("s")],
    "losses only": [image(), image("t"), layer("l", "l1_loss", "in", "t"), layer("m", "mse_loss", "in", "t")],
    "an output behind every end": [
        replace(image(), position=(0, 0)), replace(layer("b", "identity", "in"), position=(300, 0)),
        replace(layer("a", "identity", "in"), position=(300, 90)), replace(layer("c", "histogram", "in"), position=(900, 0))],
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
    if function is not None and (function.attributes or function.children):
        attached += f" and {dict(function.attributes)} {[child.xml for child in function.children]}"
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


def inside_texts(layers: list[Layer]) -> Iterator[str]:
    """What is offered if the layers are those of a template, opened through an instance: the titles, and a digest of the changes."""
    ports = {"input": "template_input", "output": "template_output"}
    starts = {
        layer_.name: Inference(Graph([layer_]), REGISTRY).type_of(Source(layer_.name))
        for layer_ in layers
        if layer_.type == "input"
    }
    kept = []
    for layer_ in layers:
        if layer_.type in ports:
            params = {key: text for key, text in layer_.params.items() if key not in ("dims", "tiling")}
            layer_ = replace(layer_, type=ports[layer_.type], params=params)
        kept.append(layer_)
    graph = Graph([], templates=[PART, NET, Template("opened", tuple(kept))]).inside("opened")
    inference = InsideInference(graph, REGISTRY, {name: kind for name, kind in starts.items() if kind is not None})
    trial = FixTrial(graph, REGISTRY, inference)
    for finding in inference.diagnostics():
        offered = fixes(graph, REGISTRY, inference, finding, trial)
        assert offered == fixes(graph, REGISTRY, inference, finding)
        titles = "; ".join(fix.title for fix in offered)
        yield f"  {finding.code} {finding.layer}: {titles} {digest(' '.join(line for fix in offered for line in changed(fix)))}"


def test_all_that_is_offered_inside_of_a_template() -> None:
    cases = {name: case[0] for name, case in CASES.items()} | MORE
    cases["parameters of ports"] = [
        replace(image(), params={"dims": "16x12x3", "colour": "red"}), layer("c", "convolution", "in"), layer("y", "output", "c", inde="1"),
    ]  # fmt: skip
    lines = [line for name, layers in cases.items() for line in (name, *inside_texts(layers))]
    check_recorded("operators/fixes_inside.txt", "\n".join([*lines, ""]))
