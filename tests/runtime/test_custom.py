"""Custom layers: refused until agreed to, run by torch, their errors reported with the line; opaque ONNX operators."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from designer.files.agreements import agree, agreed, agreements_path, not_agreed
from designer.files.document import parse_document, write_document
from designer.files.weights import WeightKey, Weights, load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.code_text import CodeError, agreement_text, arguments, digest, literal, parse_code
from designer.operators.registry import load
from designer.precision.emulation import Emulation
from designer.runtime.api import RunOptions
from designer.runtime.engines.custom_module import check_agreed
from designer.runtime.session import Session
from designer.texts import visible

REGISTRY = load(entry_points=False)
VALUE = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
GAIN = """class Gain(nn.Module):
    def __init__(self, gain=1.0, *, shift=0.0):
        super().__init__()
        self.gain, self.shift = gain, shift

    def forward(self, x):
        return x * self.gain + self.shift
"""
CONV = """import torch.nn as layers

class Conv(layers.Module):
    def __init__(self, features):
        super().__init__()
        self.conv = layers.Conv2d(3, features, 3, padding=1)
        self.register_buffer("factor", torch.tensor(0.5))

    def forward(self, x):
        return self.conv(x) * self.factor
"""


def network(params: Mapping[str, str], kind: str = "custom", activation: ActivationSpec | None = None) -> Graph:
    mine = Layer("mine", kind, inputs=(Source("image"),), params=params, activation=activation)
    image = Layer("image", "input", params={"dims": "8x8x3", "tiling": "0"})
    return Graph([image, mine, Layer("result", "output", inputs=(Source("mine"),))], name="own")


def run(graph: Graph, engine: str = "torch", weights: Weights | None = None, trust: bool = True) -> np.ndarray:
    allowed = tuple(digest(text) for text in not_agreed(graph, REGISTRY, ())) if trust else ()
    session = Session(graph, REGISTRY, weights or Weights(), RunOptions(engine, threads=1, agreed=allowed))
    session.set_input("image", VALUE, is_image=False)
    return session.run().outputs["result"]


def refused(graph: Graph, **how: Any) -> Any:
    with pytest.raises(DiagnosticError) as caught:
        run(graph, **how)
    (finding,) = caught.value.diagnostics
    assert finding.layer == "mine"
    assert finding.remedy
    return finding


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_runs_what_was_agreed_to(engine: str) -> None:
    graph = network({"source": GAIN, "class_name": "Gain", "arguments": "2.0, shift=-1"})
    np.testing.assert_array_equal(run(graph, engine), VALUE * np.float32(2) - np.float32(1))
    relu = network({"source": GAIN, "class_name": "Gain"}, activation=ActivationSpec("relu"))
    np.testing.assert_array_equal(run(relu, engine), np.maximum(VALUE, 0))


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_nothing_runs_without_agreement(engine: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    graph = network({"source": f"open({str(mark)!r}, 'w').close()\n{GAIN}", "class_name": "Gain"})
    found = refused(graph, engine=engine, trust=False)
    assert (found.code, found.layer, found.parameter) == ("not-agreed", "mine", "source")
    assert not mark.exists()
    run(graph, engine)
    assert mark.exists()


TWO = f"{GAIN}\nclass Other(nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
@pytest.mark.parametrize("other", [{"class_name": "Other"}, {"arguments": "3.0"}, {"arguments": "shift=5"}])
def test_another_class_or_another_call_is_another_agreement(engine: str, other: dict[str, str]) -> None:
    known = {"source": TWO, "class_name": "Gain", "arguments": "2.0"}
    agree(not_agreed(network(known), REGISTRY))
    changed = network({**known, **other})
    (text,) = not_agreed(changed, REGISTRY)
    assert text.startswith(TWO)
    assert next(iter(other.values())) in text.splitlines()[-1]
    session = Session(changed, REGISTRY, Weights(), RunOptions(engine, threads=1, agreed=tuple(agreed())))
    session.set_input("image", VALUE, is_image=False)
    with pytest.raises(DiagnosticError, match="not-agreed"):
        session.run()


def test_another_text_is_another_agreement() -> None:
    graph = network({"source": GAIN, "class_name": "Gain"})
    text = agreement_text(GAIN, "Gain", (), {})
    assert not_agreed(graph, REGISTRY) == {text: "mine"}
    agree([text])
    assert not_agreed(graph, REGISTRY) == {}
    assert agreed() == {digest(text)}
    changed = network({"source": f"{GAIN}\n", "class_name": "Gain"})
    assert list(not_agreed(changed, REGISTRY)) == [agreement_text(f"{GAIN}\n", "Gain", (), {})]
    agreements_path().write_bytes(b"\xff not a digest\n" + digest(text).encode())
    assert agreed() == {digest(text)}
    agreements_path().unlink()
    agreements_path().mkdir()
    assert agreed() == frozenset()
    with pytest.raises(DiagnosticError, match="cannot-save"):
        agree([GAIN])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_text_survives_the_file_byte_for_byte(newline: str) -> None:
    text = f'class Gain(nn.Module):{newline}\tlabel = "<&\'>  \u00e9\u2028"{newline}{newline}'
    data = write_document(network({"source": text, "class_name": "Gain"}))
    reading = parse_document(data)
    assert reading.graph is not None
    assert reading.graph["mine"].params["source"] == text
    assert write_document(reading.graph) == data
    assert data.count(b"\n") == len(data.splitlines()), "no line break inside an attribute"


def test_weights_are_declared_bound_and_never_made_up(tmp_path: Path) -> None:
    params = {"source": CONV, "class_name": "Conv", "arguments": "features=3"}
    finding = refused(network(params))
    assert "2 learned tensors" in finding.message
    assert "conv.weight 3x3x3x3; conv.bias 3" in finding.remedy
    wrong = refused(network({**params, "tensors": "conv.weight 3x3x5x5\nconv.bias 3"}), weights=_zeros(5))
    assert "has the shape 3x3x3x3" in wrong.message

    graph = network({**params, "tensors": "conv.weight 3x3x3x3\nconv.bias 3"})
    needed = required_weights(Inference(graph, REGISTRY))
    assert [key.tensor for key in needed] == ["conv.weight", "conv.bias"]
    rng = np.random.default_rng(1)
    tensors = {key.tensor: rng.standard_normal(w.shape).astype(np.float32) for key, w in needed.items()}
    for name, array in tensors.items():
        np.save(tmp_path / f"mine_{name}.npy", array)
    torch.save({f"mine.{name}": torch.from_numpy(array) for name, array in tensors.items()}, tmp_path / "w.pt")
    image, kernel, bias = map(torch.from_numpy, (VALUE, tensors["conv.weight"], tensors["conv.bias"]))
    expected = torch.nn.functional.conv2d(image, kernel, bias, padding=1).numpy() * 0.5
    for source in (tmp_path, tmp_path / "w.pt"):
        loaded = load_weights(source, needed)
        assert loaded.complete
        np.testing.assert_allclose(run(graph, weights=loaded), expected, rtol=1e-6, atol=1e-6)


def _zeros(size: int) -> Weights:
    kernel = np.zeros((3, 3, size, size), np.float32)
    return Weights({WeightKey("mine", "conv.weight"): kernel, WeightKey("mine", "conv.bias"): np.zeros(3, np.float32)})


BODY = "class Gain(nn.Module):\n    def forward(self, x):\n        {}\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (BODY.format("return x / [][1]"), ("line 3", "IndexError")),
        (BODY.format("raise SystemExit(3)"), ("line 3", "SystemExit")),
        (BODY.format("return x.reshape(7)"), ("line 3", "RuntimeError")),
        (BODY.format("return [x]"), ("list", "not a tensor")),
        (BODY.format("return x[:, :, 1:]"), ("1x3x7x8", "1x3x8x8 is declared")),
        (BODY.format("return x > 0"), ("torch.bool", "float32 is declared")),
        (f"\nboom()\n{GAIN}", ("line 2", "NameError")),
        ("class Gain:\n    pass\n", ("not a torch.nn.Module",)),
        (f"class Odd(Exception):\n    def __str__(self):\n        return 1 / 0\nraise Odd\n{GAIN}", ("line 4", "Odd")),
        (
            "class Gain(nn.Module):\n    def __init__(self, needed):\n        pass\n",
            ("could not be constructed", "needed"),
        ),
        ("class Gain(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(1, 1)\n", ("line 3",)),
    ],
)
def test_a_mistake_in_the_text_names_its_line(source: str, words: tuple[str, ...]) -> None:
    finding = refused(network({"source": source, "class_name": "Gain"}), engine="onnxruntime")
    assert finding.code == "custom-failed"
    for word in words:
        assert word in finding.message


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"source": "class Gain(nn.Module:\n    pass"}, ("line 1", "source")),
        ({"source": "x = 1\n\ndef f(:\n"}, ("line 3",)),
        ({"source": "class Other(nn.Module): pass"}, ("no class 'Gain'", "Other")),
        ({"source": "from __future__ import annotations\n" + GAIN}, ("line 1", "__future__")),
        ({"source": "class Gain: pass\n" + "(" * 500}, ("source",)),
        ({"source": GAIN, "arguments": "open('x')"}, ("plain value",)),
        ({"source": GAIN, "arguments": "**{}"}, ("**",)),
        ({"source": GAIN, "arguments": "1) + f(2"}, ("not a list of values",)),
        ({"source": GAIN, "arguments": "1, 2, 3="}, ("arguments",)),
        ({"source": GAIN, "tensors": "conv.weight 3xx3"}, ("line 1", "not a shape")),
        ({"source": GAIN, "tensors": "a 1\na 2"}, ("line 2", "repeats")),
        ({"source": GAIN, "tensors": "../up 1"}, ("not a valid name",)),
    ],
)
def test_the_text_is_only_parsed_while_editing(params: dict[str, str], words: tuple[str, ...]) -> None:
    inference = Inference(network({"class_name": "Gain", **params}), REGISTRY)
    finding = inference.diagnostics()[0]
    assert finding.layer == "mine"
    assert finding.parameter in params
    for word in words:
        assert word in finding.message
    assert inference.states["result"].because_of == "mine"


def test_declared_shapes() -> None:
    def shape(**params: str) -> str:
        inference = Inference(network({"source": GAIN, "class_name": "Gain", **params}), REGISTRY)
        state = inference.states["mine"]
        return str(state.outputs[0]) if state.outputs else state.diagnostics[0].message

    assert shape() == "N x 3 x 8 x 8"
    assert shape(result="scaled", channels="5", scale="0.5") == "N x 5 x 4 x 4"
    assert shape(result="shape", shape="10") == "N x 10"
    assert "empty" in shape(result="shape", shape="")
    assert "below 1" in shape(result="scaled", scale="0.1")
    assert "x2" in shape(input_count="2")


def test_values_are_literals_only() -> None:
    assert arguments('1, -2.5, "a", (1, [2, None]), on=True') == ((1, -2.5, "a", (1, [2, None])), {"on": True})
    assert literal("[1, 2]") == [1, 2]
    for text in ("x", "1 + 1", "f'{1}'", "{1: 2}", "-'a'", "-True", "b'1'", "1j", "lambda: 1", "[*()]", "1\0"):
        with pytest.raises(CodeError):
            literal(text)
    assert parse_code("a = 1\nclass B: pass\ndef c(): d = 2").names == {"a", "B", "c"}


def test_nothing_in_a_text_can_hide() -> None:
    assert visible("a\r\n\tb  # \u00e9") == "a\n\tb  # \u00e9"
    assert visible("x = 1 # \u202e\u2066 \x1b[2K\r\u2028") == "x = 1 # \\u202e\\u2066 \\u001b[2K\\u000d\\u2028"


def opaque(**params: str) -> Graph:
    return network(params, "opaque")


def test_opaque_runs_where_onnx_runtime_knows_it() -> None:
    known = opaque(op_type="LeakyRelu", attributes="alpha=0.25", shapes="N x 3 x 8 x 8")
    np.testing.assert_allclose(run(known, "onnxruntime"), np.where(VALUE > 0, VALUE, VALUE * 0.25), rtol=1e-6)
    other = opaque(op_type="QuickGelu", domain="com.microsoft", attributes="alpha=1.0", shapes="N x 3 x 8 x 8")
    np.testing.assert_allclose(run(other, "onnxruntime"), VALUE / (1 + np.exp(-VALUE)), rtol=1e-5, atol=1e-6)


def test_opaque_says_why_it_cannot_run() -> None:
    unknown = opaque(op_type="Frobnicate", domain="org.example", shapes="N x 3 x 8 x 8")
    finding = refused(unknown, engine="onnxruntime")
    assert "Frobnicate" in finding.message
    assert refused(unknown, engine="torch").code == "not-in-torch"
    no_shape = Inference(opaque(op_type="Frobnicate"), REGISTRY)
    assert no_shape.diagnostics()[0].code == "shape-not-declared"
    assert no_shape.states["result"].because_of == "mine"
    for params in ({"attributes": "axis"}, {"attributes": "axis=f()"}, {"shapes": "N x ?"}, {"op_type": "a b"}):
        assert Inference(opaque(**params), REGISTRY).diagnostics()[0].parameter in params


def test_opaque_goes_into_onnx_as_it_came(tmp_path: Path) -> None:
    import onnx

    from exporters.onnx import export_onnx

    graph = opaque(op_type="QuickGelu", domain="com.microsoft", attributes="alpha=1.5", shapes="N x 3 x 8 x 8")
    export_onnx(graph, REGISTRY, Weights(), tmp_path / "net.onnx")
    (node,) = [n for n in onnx.load(tmp_path / "net.onnx").graph.node if n.domain]
    assert (node.op_type, node.domain, node.attribute[0].f) == ("QuickGelu", "com.microsoft", 1.5)


def test_every_layer_that_was_not_agreed_to_is_reported() -> None:
    graph = network({"source": GAIN, "class_name": "Gain"})
    inference = Inference(graph, REGISTRY)
    with pytest.raises(DiagnosticError) as caught:
        check_agreed(inference, ["image", "mine", "mine"], ())
    assert [found.layer for found in caught.value.diagnostics] == ["mine", "mine"]
    check_agreed(inference, ["image"], ())


def test_emulated_formats_run_what_was_agreed_to() -> None:
    graph = network({"source": GAIN, "class_name": "Gain", "arguments": "2.0"})
    agree(not_agreed(graph, REGISTRY))
    emulation = Emulation(graph, REGISTRY, Weights(), RunOptions(threads=1, agreed=tuple(agreed())))
    emulation.feed({"image": VALUE})
    (made,) = emulation.run().values()
    np.testing.assert_array_equal(made, VALUE * np.float32(2))


MANY = "class Gain(nn.Module):\n    def __init__(self):\n        super().__init__()\n        for n in range({}):\n            setattr(self, f'p{{n}}', nn.Parameter(torch.zeros(n + 1, 2)))\n\n    def forward(self, x):\n        return x\n"
SOURCE, ARGUMENTS = "correct the source or the arguments", "add to the tensors, one per line: "
MISTAKES = {
    "an inner function": (
        {"source": "def deep(x):\n    raise ValueError('first\\nsecond')\n" + BODY.format("return deep(x)")},
        "failed: line 2 of its source: ValueError: first", SOURCE, "source",
    ),
    "a long text": ({"source": BODY.format("raise ValueError('x' * 400)")}, f"failed: line 3 of its source: ValueError: {'x' * 300}", SOURCE, "source"),
    "no text": ({"source": BODY.format("raise ValueError")}, "failed: line 3 of its source: ValueError", SOURCE, "source"),
    "a library": ({"source": BODY.format("import json; return json.loads('')")},
                  "failed: line 3 of its source: JSONDecodeError: Expecting value: line 1 column 1 (char 0)", SOURCE, "source"),
    "text that it runs": (
        {"source": "\nexec('a = 1\\nb = 2\\n= 2')\n" + GAIN},
        "could not be constructed: line 2 of its source: SyntaxError: invalid syntax (<string>, line 3)", SOURCE, "source",
    ),
    "syntax that only the compiler refuses": (
        {"source": GAIN + "\nreturn 3\n"},
        "could not be constructed: line 9 of its source: SyntaxError: 'return' outside function (<source of mine>, line 9)", SOURCE, "source",
    ),
    "another shape": (
        {"source": BODY.format("return x[:, :1]")}, "forward returned a tensor of 1x1x8x8, but 1x3x8x8 is declared",
        "correct the source or the declared result", "result",
    ),
    "another type": ({"source": BODY.format("return x > 0")}, "forward returned torch.bool, but float32 is declared", "convert it: .float()", "source"),
    "no tensor": ({"source": BODY.format("return (x,)")}, "forward returned tuple, not a tensor", "return one tensor", "source"),
    "one tensor": ({"source": MANY.format(1)}, "the module has 1 learned tensor that the layer does not declare", f"{ARGUMENTS}p0 1x2", "tensors"),
    "eight tensors": (
        {"source": MANY.format(8)}, "the module has 8 learned tensors that the layer does not declare",
        ARGUMENTS + "; ".join(f"p{n} {n + 1}x2" for n in range(8)), "tensors",
    ),
    "nine tensors": (
        {"source": MANY.format(9)}, "the module has 9 learned tensors that the layer does not declare",
        ARGUMENTS + "; ".join(f"p{n} {n + 1}x2" for n in range(8)) + " ...", "tensors",
    ),
    "a tensor that is not there": (
        {"source": MANY.format(2), "tensors": "q 1x2"}, "the module has no tensor 'q'", "declare tensors that it has: p0, p1", "tensors",
    ),
    "one of many tensors": (
        {"source": MANY.format(12), "tensors": "q 1x2"}, "the module has no tensor 'q'",
        "declare tensors that it has: p0, p1, p10, p11, p2, p3, p4, p5", "tensors",
    ),
    "a tensor of a module without any": (
        {"source": MANY.format(0), "tensors": "q 1x2"}, "the module has no tensor 'q'", "declare tensors that it has: none", "tensors",
    ),
    "a tensor of another shape": (
        {"source": MANY.format(1), "tensors": "p0 2x2"}, "its tensor 'p0' has the shape 1x2", "declare that shape", "tensors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_said_about_a_mistake(name: str) -> None:
    params, message, remedy, parameter = MISTAKES[name]
    graph = network({**params, "class_name": "Gain"})
    needed = required_weights(Inference(graph, REGISTRY))
    weights = Weights({key: np.zeros(weight.shape, np.float32) for key, weight in needed.items()})
    finding = refused(graph, weights=weights)
    assert (finding.code, finding.message, finding.remedy, finding.parameter) == (
        "custom-failed", f"the custom layer 'mine': {message}", remedy, parameter
    )  # fmt: skip


def test_the_shape_of_a_result_goes_with_the_batch() -> None:
    graph = network({"source": GAIN, "class_name": "Gain", "arguments": "2.0"})
    allowed = tuple(digest(text) for text in not_agreed(graph, REGISTRY, ()))
    session = Session(graph, REGISTRY, Weights(), RunOptions("torch", threads=1, agreed=allowed))
    session.set_input("image", np.repeat(VALUE, 3, 0), is_image=False)
    np.testing.assert_allclose(session.run().outputs["result"], np.repeat(VALUE * 2, 3, 0))


def test_an_imported_operator_that_nothing_runs_is_to_be_replaced() -> None:
    finding = refused(opaque(op_type="Frobnicate", domain="org.example", shapes="N x 3 x 8 x 8"), engine="onnxruntime")
    assert (finding.code, finding.remedy) == ("engine-failed", "replace or remove 'mine'")
    assert finding.message.startswith("ONNX Runtime could not prepare the layers mine: ")


RANDOM = """class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("values", torch.rand(8))

    def forward(self, x):
        return x * 0 + self.values
"""


def test_random_buffers_are_those_of_the_layer_and_its_text_in_every_run() -> None:
    """Two layers of the same class differ; a run leaves the generator of the program as it was."""

    def result(name: str, source: str = RANDOM) -> np.ndarray:
        image = Layer("image", "input", params={"dims": "8x8x3", "tiling": "0"})
        mine = Layer(name, "custom", inputs=(Source("image"),), params={"source": source, "class_name": "Gain"})
        return run(Graph([image, mine, Layer("result", "output", inputs=(Source(name),))], name="own"))

    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other, changed = result("one"), result("one"), result("two"), result("one", RANDOM + "# more\n")
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first[0, 0, 0])) == 8
    for different in (other, changed):
        assert not np.isin(first[0, 0, 0], different[0, 0, 0]).any()


def test_an_error_of_ours_inside_of_the_code_stays_as_it_is() -> None:
    from designer.runtime.engines.custom_module import _guarded

    def refused() -> None:
        raise DiagnosticError.of("out-of-memory", "there is not enough memory")

    with pytest.raises(DiagnosticError) as caught:
        _guarded("mine", "file", "failed", refused)
    assert caught.value.diagnostics[0].code == "out-of-memory"
    with pytest.raises(DiagnosticError, match=r"the custom layer 'mine': failed: SystemExit: 3"):
        _guarded("mine", "file", "failed", lambda: sys.exit(3))
    with pytest.raises(KeyboardInterrupt):
        _guarded("mine", "file", "failed", lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
    assert _guarded("mine", "file", "failed", lambda: 7) == 7


def test_the_batch_of_a_result_is_that_of_the_first_input() -> None:
    source = "class Sum(nn.Module):\n    def forward(self, x, y):\n        return x + y\n"
    mine = {"source": source, "class_name": "Sum", "input_count": "2"}
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3", "tiling": "0"}),
            Layer("one", "input", params={"dims": "8x8x3", "tiling": "0", "batch": "1"}),
            Layer("mine", "custom", inputs=(Source("image"), Source("one")), params=mine),
            Layer("result", "output", inputs=(Source("mine"),)),
        ],
        name="own",
    )
    allowed = tuple(digest(text) for text in not_agreed(graph, REGISTRY, ()))
    session = Session(graph, REGISTRY, Weights(), RunOptions("torch", threads=1, agreed=allowed))
    images = np.concatenate([VALUE, VALUE * 2, VALUE * 3])
    session.set_input("image", images, is_image=False)
    session.set_input("one", VALUE, is_image=False)
    np.testing.assert_allclose(session.run().outputs["result"], images + VALUE, rtol=1e-6)
