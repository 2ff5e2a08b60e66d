"""Random networks, whole and broken in one place: their findings, the fixes with positions, their valid sizes and their cost, as recorded.

The random numbers are the same in every run; what they reach is compared completely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from operator_oracles import REGISTRY
from recorded import check_recorded
from size_texts import contract_lines, edit_lines
from test_recorded_fixes import text_of

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.code_text import CodeError, agreement_text, arguments, check_class, digest, literal, parse_code
from designer.operators.fixes import fixes
from designer.operators.library.development.custom import declared
from designer.operators.size_contract import size_contract
from designer.operators.size_fix import accept_every_size

KINDS: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    ("convolution", {"features": ("4", "6", "8"), "kernel": ("3x3", "1x5", "2x2"), "stride": ("1x1", "2x1", "2x2"), "padding": ("same", "valid")}),
    ("pooling", {"size": ("2x2", "3x2"), "stride": ("2x2", "1x2"), "ceil_mode": ("true", "false")}),
    ("upsample", {"factor": ("2x2", "1x3")}),
    ("transposed_convolution", {"features": ("4", "6"), "kernel": ("2x2", "3x3"), "stride": ("2x2", "1x1")}),
    ("space_to_depth", {"block_size": ("2", "3")}),
    ("depth_to_space", {"block_size": ("2",)}),
    ("batch_normalization", {}),
    ("instance_normalization", {}),
    ("group_normalization", {"groups": ("2", "3")}),
    ("padding", {"left": ("1", "0"), "top": ("2",), "mode": ("constant", "reflect")}),
    ("crop", {"left": ("1",), "bottom": ("2", "0")}),
    ("resize", {"size": ("8x6", "12x12")}),
    ("depthwise_convolution", {"kernel": ("3x3", "2x2"), "padding": ("same", "valid")}),
    ("global_pooling", {}),
    ("unary", {"function": ("abs", "exp")}),
    ("template", {"template": ("halved", "kept")}),
    ("pad_to_multiple", {"multiple": ("2", "4")}),
    ("slice", {"axis": ("2", "3"), "start": ("1",), "step": ("1", "2")}),
)  # fmt: skip
JOINED = ("element_wise", "concatenation", "crop", "matmul", "upscale_concat")
TEMPLATES = (
    Template("halved", (
        Layer("x", "template_input"),
        Layer("c", "convolution", inputs=(Source("x"),), params={"features": "4", "stride": "2x2"}),
        Layer("y", "template_output", inputs=(Source("c"),)),
    )),
    Template("kept", (
        Layer("x", "template_input"),
        Layer("c", "convolution", inputs=(Source("x"),), params={"features": "6", "kernel": "3x3"}),
        Layer("y", "template_output", inputs=(Source("c"),)),
    )),
)  # fmt: skip


def network(draw: Random) -> list[Layer]:
    """An image, layers behind it, some of which join two, and an output; from left to right on the canvas."""
    sides = draw.choice(["16x12", "24x24", "33x25", "8x10"])
    layers = [Layer("in", "input", (0, 0), params={"dims": f"{sides}x{draw.choice([1, 3, 4, 6])}"})]
    for number in range(draw.randint(2, 6)):
        sources = [layer.name for layer in layers]
        first = Source(draw.choice(sources[-2:]))
        place = (320 * (number + 1), 64 * draw.randint(-2, 2))
        active = ActivationSpec(draw.choice(["relu", "prelu", "elu"])) if draw.random() < 0.3 else None
        if draw.random() < 0.3 and len(sources) > 1:
            kind = draw.choice(JOINED)
            other = Source(draw.choice(sources))
            layers.append(Layer(f"{kind}_{number}", kind, place, (first, other), {}, activation=active))
            continue
        kind, choices = draw.choice(KINDS)
        params = {name: draw.choice(values) for name, values in choices.items()}
        layers.append(Layer(f"{kind}_{number}", kind, place, (first,), params, activation=active))
    last = layers[-1]
    layers.append(Layer("out", "output", (last.position[0] + 320, 0), (Source(last.name),)))
    return layers


def broken(draw: Random, layers: list[Layer]) -> list[Layer]:
    """The network with one mistake as users make it."""
    place = draw.randrange(1, len(layers))
    layer = layers[place]
    source = layer.inputs[0]
    assert source is not None
    name = source.layer
    mistakes = {
        "no input": replace(layer, inputs=()),
        "a misspelt source": replace(layer, inputs=(Source(name[:-1]), *layer.inputs[1:])),
        "a source that does not exist": replace(layer, inputs=(Source("nothing"), *layer.inputs[1:])),
        "an output that does not exist": replace(layer, inputs=(Source(name, "z"), *layer.inputs[1:])),
        "an input too many": replace(layer, inputs=(*layer.inputs, Source("in"))),
        "a gap": replace(layer, inputs=(None, *layer.inputs)),
        "a misspelt type": replace(layer, type=layer.type[:-2]),
        "an unknown activation": replace(layer, activation=ActivationSpec("reluu")),
        "a misspelt parameter": replace(layer, params={**layer.params, "featuers": "5", "kernel_size": "3x3"}),
        "a wrong number": replace(layer, params=dict.fromkeys(layer.params, "-7")),
        "a wrong word": replace(layer, params={name: f"{text}!" for name, text in layer.params.items()}),
        "a loop": replace(layer, inputs=(Source(layers[-2].name), *layer.inputs[1:])),
        "the first image": replace(layer, inputs=(*layer.inputs[1:], Source("in"))),
        "a large number": replace(layer, params={name: text.replace("2", "31") for name, text in layer.params.items()}),
    }
    changed = draw.choice(list(mistakes.values()))
    return [changed if other is layer else other for other in layers]


def finding_text(d: Diagnostic) -> str:
    place = ".".join(filter(None, (d.template, d.layer, d.port, d.parameter)))
    return f"  {d.severity.name.lower()} {d.code} {place}{f' at {d.inner}' if d.inner else ''}: {d.message}; {d.remedy}"


def offered(graph: Graph) -> Iterator[str]:
    """Findings, and what each fix changes, with the positions of layers that it adds or moves."""
    inference = Inference(graph, REGISTRY)
    for finding in inference.diagnostics():
        yield finding_text(finding)
        for fix in fixes(graph, REGISTRY, inference, finding):
            yield f"    {fix.title} [{fix.edit.title}]"
            for name, (before, after) in sorted(fix.edit.layers.items()):
                if after is None:
                    yield f"      {name} is removed"
                elif before is None or text_of(before) != text_of(after):
                    yield f"      {name}: {text_of(after)} at {after.position}"
                elif before.position != after.position:
                    yield f"      {name} at {after.position}"


def shapes(graph: Graph) -> Iterator[str]:
    inference = Inference(graph, REGISTRY)
    for layer in graph:
        yield f"  {text_of(layer)} as {layer.name}: {inference.type_of(Source(layer.name))}"


def test_findings_and_fixes_of_broken_networks() -> None:
    lines = []
    for seed in range(70):
        draw = Random(seed)
        whole = network(draw)
        graph = Graph(broken(draw, whole) if seed % 5 else whole, templates=TEMPLATES)
        lines += [f"network {seed}", *shapes(graph), *offered(graph)]
    check_recorded("operators/random_fixes.txt", "\n".join([*lines, ""]))


def test_valid_sizes_of_random_networks() -> None:
    lines = []
    for seed in range(1000, 1100):
        layers = network(Random(seed))
        graph = Graph(layers, templates=TEMPLATES)
        if any(d.severity.name == "ERROR" for d in Inference(graph, REGISTRY).diagnostics()):
            continue
        contract = size_contract(graph, REGISTRY)
        if all(item.height.is_free and item.width.is_free for item in contract.inputs) and not contract.coupled:
            continue
        lines += [f"network {seed}", *(f"  {text_of(layer)}" for layer in layers), *contract_lines(contract)]
        try:
            lines += edit_lines(accept_every_size(graph, REGISTRY, contract))
        except DiagnosticError as error:
            lines.append(f"  {error}")
        if len(lines) > 600:
            break
    check_recorded("operators/random_sizes.txt", "\n".join([*lines, ""]))


SOURCES = {
    "classes and names": "import os\nfrom a import b\nX, (Y, *Z) = 1, (2, 3)\ndef f(): inner = 1\nasync def g(): pass\nclass A: w = 1\nclass B(A): pass\nfor i in []: j = 1\nwith f() as h: pass\nif (k := 1): pass\nL: int = 3\nM += 1\n",
    "nothing": "",
    "a wrong line": "class A:\n    pass\nclass B(:\n    pass\n",
    "a future": "x = 1\nfrom __future__ import annotations\n",
    "too long": "#" * 200_001,
    "only a function": "def A(): pass",
    "inside of a function": "def f():\n    class A: pass\n",
}  # fmt: skip
ARGUMENTS = (
    "", "1", "1, 2.5, 'a', True, None", "-1, +2, --3, -True", "(1, 2), [3, [4]], ()", "a=1, b='x'", "1, a=2", "x", "1 + 2",
    "*[1]", "**{'a': 1}", "f(1)", "1)(", "{1: 2}", "b'1'", "1j", "...", "a=1, a=2", "a=1, 2", "'\\d'", "1 # comment", "\n1,\n",
    "9" * 10_001, "1_000", "float('nan')", "1e999", "'" + "x" * 100 + "' + y",
)  # fmt: skip
LITERALS = (
    "3",
    " 0.5 ",
    "'text'",
    "[1, (2, -3)]",
    "x",
    "1 + 1",
    "",
    "{}",
    "None",
    "1,",
    "9" * 10_001,
    "-'a'",
    "True",
    "f'x'",
)


TENSORS = (
    "", "conv.weight 8x3x3x3\n\n conv.bias 8 ", "norm.running_mean 4 buffer\nnorm.running_var 4 buffer\nnorm.weight 4", "number", "a.0.b 2x3",
    "a b c", "a 3x0", "a 3xx3", "a 3 buffers", "a 3 buffer more", "a 3\na 4", "1 2", "a- 3", ".a 3", "a 1234567890", "a ²", "scale 2x1 buffer",
)  # fmt: skip


def answer(call: object, *given: object) -> str:
    try:
        return str(call(*given))  # type: ignore[operator]
    except CodeError as error:
        return f"{error}; {error.remedy}"


def test_the_text_of_custom_layers_is_read_without_running_it() -> None:
    lines = []
    for name, text in SOURCES.items():
        try:
            code = parse_code(text)
            lines.append(f"{name}: {code.classes} {sorted(code.names)}")
        except CodeError as error:
            lines.append(f"{name}: {error}; {error.remedy}")
        lines.append(f"  class A: {answer(check_class, text, 'A')}")
    lines += [f"f({text[:40]}) = {answer(arguments, text)}".replace("\n", "\\n") for text in ARGUMENTS]
    lines += [f"{text[:40]!r} = {answer(literal, text)}" for text in LITERALS]
    lines += [f"{text!r} = {answer(declared, text)}" for text in TENSORS]
    lines.append(answer(check_class, "class A: pass", "B" * 100))
    lines.append(agreement_text("class A: pass", "A", (1, "x"), {"b": [2], "c": "text"}).replace("\n", "\\n"))
    lines += [digest("class A: pass"), digest("\ud800")]
    check_recorded("operators/code_texts.txt", "\n".join([*lines, ""]))
