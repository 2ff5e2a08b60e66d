"""Networks of ONNX with the forms that exporters use: inputs, constants, patterns, kept nodes, definitions and modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model, random

Node = onnx.NodeProto


def node(op: str, reads: str, makes: str, name: str = "", **attributes: Any) -> Node:
    """A node; its inputs and outputs are separated by spaces, `_` is one that is left out."""
    inputs, outputs = ([part if part != "_" else "" for part in text.split()] for text in (reads, makes))
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def typed(kind: int, **shapes: Sequence[int | str]) -> list[Any]:
    return [helper.make_tensor_value_info(name, kind, list(shape)) for name, shape in shapes.items()]


def inputs() -> onnx.ModelProto:
    """Every kind of input; names that layers cannot have, and an output with the name that a layer would have."""
    nodes = [
        node("Relu", "image", "bright", "relu"),
        node("Exp", "photo", "relu_1", "relu"),
        node("Neg", "volume", "v"),
        node("Cast", "ids", "i", to=FLOAT),
        node("Cast", "flags", "f", to=FLOAT),
        node("Mul", "scalar vector", "product", "vector"),
        node("Relu", "a,b", "c,d"),
        node("Exp", "wide", "tall"),
        node("Concat", "rows none", "joined", axis=1),
    ]
    shapes: dict[str, Sequence[int | str]] = {
        "image": ["n", 3, 10, 12], "photo": [1, 4, 6, 8], "volume": ["n", 2, 3, 4, 5], "scalar": [], "vector": [7],
        "a,b": ["n", 5], "wide": [2, 3, 4, 5], "rows": [2, 3], "none": [2, 0],
    }  # fmt: skip
    ends = ("bright", "relu_1", "v", "i", "f", "product", "c,d", "tall", "joined")
    proto = model(nodes, shapes, {**dict.fromkeys(ends), "rows": [2, 3]}, producer="forms")
    proto.producer_version = "1.2"
    proto.graph.input.extend(typed(TensorProto.INT64, ids=["n", 4]))
    proto.graph.input.extend(typed(TensorProto.BOOL, flags=[2, 3, 4, 5]))
    return proto


def constants() -> onnx.ModelProto:
    """Constants of every form and type; small ones are parameters, large ones weights."""
    zeros = np.array([0.0, -0.0, 0.0], np.float32)
    nodes = [
        node("Constant", "", "tensor", "/part/tensor", value=numpy_helper.from_array(random(3, 4))),
        node("Constant", "", "float", "/part/float", value_float=0.25),
        node("Constant", "", "floats", value_floats=[0.5, -1.5, 2.0]),
        node("Constant", "", "int", value_int=3),
        node("Constant", "", "ints", value_ints=[3, 1]),
        node("Constant", "", "large", value=numpy_helper.from_array(random(3, 17, seed=1))),
        node("Mul", "x float", "a", "/part/Mul"),
        node("Add", "a floats", "b", "/part/Add"),
        node("Sub", "b signed", "c"),
        node("Add", "c equal", "d", "/part/Equal"),
        node("Reshape", "d ints", "e"),
        node("MatMul", "e row", "y"),
        node("MatMul", "tensor_t large", "z"),
        node("Transpose", "tensor", "tensor_t"),
        node("Cast", "int", "whole", to=TensorProto.INT32),
        node("Add", "numbers whole", "more"),
        node("Where", "mask numbers more", "chosen"),
        node("Add", "x module/table.0", "t", "/other/Add"),
        node("Add", "t module/table.0", "u", "/third/Add"),
        node("Slice", "large begin end _ steps", "part"),
        node("Constant", "", "matrix", value=numpy_helper.from_array(random(3, 2, seed=5))),
        node("Gemm", "x matrix gemm.bias", "g", "/last/Gemm"),
        node("MatMul", "tensor_t part", "v", "/last/MatMul"),
    ]
    weights = {
        "signed": zeros, "equal": np.full(3, 0.1, np.float32), "row": random(1, 2, seed=2),
        "mask": np.array([True, False]), "module/table.0": random(20, 3, seed=3)[:20].reshape(20, 1, 3),
        "unused": random(40), "begin": np.array([0, 1]), "end": np.array([3, 10]), "steps": np.array([1, 3]),
        "gemm.bias": random(2, seed=6),
    }  # fmt: skip
    ends = dict.fromkeys(("y", "z", "u", "g", "v", "unused"))
    proto = model(nodes, {"x": [1, 3]}, ends, weights)
    proto.graph.input.extend(typed(TensorProto.INT32, numbers=[2]))
    proto.graph.output.extend(typed(TensorProto.INT32, chosen=[2]))
    return proto


def value(name: str, number: float, form: int) -> list[Node]:
    """A constant as one of the two forms of a Constant node."""
    if form:
        return [node("Constant", "", name, value_float=number)]
    return [node("Constant", "", name, value=numpy_helper.from_array(np.array([number], np.float32)))]


def functions() -> onnx.ModelProto:
    """Activations that exporters write as several nodes, their constants as nodes, factors and terms in the other order."""
    nodes: list[Node] = []
    numbers = {
        "root": 1 / sqrt(2), "one": 1.0, "half": 0.5, "three": 3.0, "c": 0.044715, "k": sqrt(2 / pi), "back": sqrt(2),
    }  # fmt: skip
    for form, (name, number) in enumerate(numbers.items()):
        nodes += value(name, number, form % 2)
    nodes += [
        node("Sigmoid", "x", "s", "/act/Sigmoid"),
        node("Mul", "s x", "silu", "/act/Mul"),
        node("Mul", "root silu", "g1", "/exact/Mul"),
        node("Erf", "g1", "g2", "/exact/Erf"),
        node("Add", "one g2", "g3", "/exact/Add"),
        node("Mul", "half silu", "g4", "/exact/Half"),
        node("Mul", "g3 g4", "exact", "/exact/Last"),
        node("Pow", "exact three", "t1", "/tanh/Pow"),
        node("Mul", "c t1", "t2", "/tanh/Mul"),
        node("Add", "t2 exact", "t3", "/tanh/Add"),
        node("Mul", "k t3", "t4", "/tanh/Scale"),
        node("Tanh", "t4", "t5", "/tanh/Tanh"),
        node("Add", "one t5", "t6", "/tanh/One"),
        node("Mul", "half t6", "t7", "/tanh/Half"),
        node("Mul", "t7 exact", "tanh", "/tanh/Last"),
        node("Div", "tanh back", "d1"),
        node("Erf", "d1", "d2"),
        node("Add", "d2 one", "d3"),
        node("Mul", "d3 tanh", "d4"),
        node("Mul", "half d4", "y"),
        node("Sigmoid", "y", "s1"),
        node("Mul", "s1 s1", "square"),
        node("Sigmoid", "square", "s2"),
        node("Mul", "square half", "s3"),
        node("Mul", "s3 s2", "z"),
    ]
    return model(nodes, {"x": ["n", 3, 4, 5]}, {"z": None})


def layers() -> onnx.ModelProto:
    """Layers that exporters write as several nodes: axes as inputs, constants as nodes, terms in the other order, near misses."""
    axes = {"last": np.array([-1]), "middle": np.array([1]), "both": np.array([-2, -1])}
    nodes: list[Node] = [*value("two", 2.0, 1), *value("eps", 0.25, 0), node("Constant", "", "ends", value_ints=[-1])]
    nodes += [
        node("Constant", "", "scale", value=numpy_helper.from_array(random(6))),
        node("Constant", "", "shift", value=numpy_helper.from_array(random(6, seed=1))),
        node("ReduceMean", "x last", "m", "/norm/Mean"),
        node("Sub", "x m", "c", "/norm/Sub"),
        node("Mul", "c c", "p", "/norm/Square"),
        node("ReduceMean", "p ends", "v", "/norm/Variance"),
        node("Add", "v eps", "ve", "/norm/Epsilon"),
        node("Sqrt", "ve", "r", "/norm/Sqrt"),
        node("Div", "c r", "n", "/norm/Div"),
        node("Mul", "scale n", "ns", "/norm/Scale"),
        node("Add", "shift ns", "a", "/norm/Shift"),
        node("Pow", "a two", "q", "/rms/Pow"),
        node("ReduceMean", "q last", "u", "/rms/Mean"),
        node("Add", "u eps", "ue", "/rms/Add"),
        node("Sqrt", "ue", "w", "/rms/Sqrt"),
        node("Div", "a w", "b0", "/rms/Div"),
        node("Mul", "b0 rms.weight", "b1", "/rms/Mul"),
        node("Add", "b1 rms.shift", "b", "/rms/Shift"),
        node("MatMul", "b fc.weight", "fm", "/fc/MatMul"),
        node("Add", "fc.bias fm", "f", "/fc/Add"),
        node("MatMul", "f fc.weight", "g0", "/two/MatMul"),
        node("Add", "g0 matrix", "g", "/two/Add"),
        node("ReduceMean", "g middle", "h", "/miss/Mean"),
        node("Sub", "g h", "i", "/miss/Sub"),
        node("Mul", "i i", "j", "/miss/Square"),
        node("ReduceMean", "j both", "k", "/miss/Variance"),
        node("Add", "k eps", "l", "/miss/Epsilon"),
        node("Sqrt", "l", "o", "/miss/Sqrt"),
        node("Div", "i o", "y", "/miss/Div"),
    ]
    weights = {
        "fc.weight": random(6, 6, seed=2), "fc.bias": random(6, seed=3), "matrix": random(4, 6, seed=4),
        "rms.weight": random(6, seed=5), "rms.shift": random(6, seed=6),
    }  # fmt: skip
    return model(nodes, {"x": ["n", 4, 6]}, {"y": None}, {**axes, **weights})


def attention() -> onnx.ModelProto:
    """Attention in its forms: scaled by a factor in front of the product or behind, with a mask, and what is not attention."""
    nodes: list[Node] = [*value("root", 2.0, 0), *value("factor", 0.3, 1)]
    turned = {"perm": [0, 1, 3, 2]}

    def block(name: str, x: str, *, scale: str = "", mask: str = "", axis: int = -1, right: bool = False) -> str:
        scores = f"{name}_s"
        made = [node("Transpose", x, f"{name}_k", f"/{name}/Transpose", **turned)]
        made.append(node("MatMul", f"{x} {name}_k", scores, f"/{name}/Scores"))
        if scale:
            kind, operands = scale.split(":")
            made.append(node(kind, operands.replace("@", scores), f"{scores}c", f"/{name}/Scale"))
            scores = f"{scores}c"
        if mask:
            made.append(node("Add", mask.replace("@", scores), f"{scores}m", f"/{name}/Mask"))
            scores = f"{scores}m"
        made.append(node("Softmax", scores, f"{name}_w", f"/{name}/Softmax", axis=axis))
        made.append(node("MatMul", f"{x} {name}_w" if right else f"{name}_w {x}", f"{name}_y", f"/{name}/Result"))
        nodes.extend(made)
        return f"{name}_y"

    x = block("plain", "x")
    x = block("divided", x, scale="Div:@ root")
    x = block("scaled", x, scale="Mul:@ factor", mask="@ mask")
    x = block("masked", x, mask="mask @", axis=3)
    x = block("rows", x, axis=2)
    x = block("scaled_by_values", x, scale="Mul:@ mask")
    x = block("factor_in_front", x, scale="Mul:factor @")
    x = block("weights_behind", x, right=True)
    nodes += [  # a linear layer and attention share their first two nodes
        node("MatMul", f"{x} keys", "both_s", "/both/Scores"),
        node("Add", "both_s vector", "both_m", "/both/Mask"),
        node("Softmax", "both_m", "both_w", "/both/Softmax", axis=-1),
        node("MatMul", "both_w values", "both_y", "/both/Result"),
        node("Add", "both_y offset", "y", "/both/Add"),
    ]
    weights = {
        "mask": random(4, 4, seed=1), "keys": random(4, 5, seed=2), "vector": random(5, seed=3),
        "values": random(5, 4, seed=4), "offset": random(4, seed=5),
    }  # fmt: skip
    return model(nodes, {"x": [2, 3, 4, 4]}, {"y": None}, weights)


def shuffles() -> onnx.ModelProto:
    """Blocks of pixels as reshapes around a permutation, by constants as nodes, and blocks that are not square."""
    nodes = [
        node("Constant", "", "six", value_ints=[-1, 2, 2, 2, 3, 4]),
        node("Constant", "", "four", value=numpy_helper.from_array(np.array([-1, 2, 6, 8], np.int64))),
        node("Reshape", "x six", "a", "/up/Reshape"),
        node("Transpose", "a", "b", "/up/Transpose", perm=[0, 1, 4, 2, 5, 3]),
        node("Reshape", "b four", "c", "/up/Reshape_1"),
        node("Reshape", "c down", "d", "/down/Reshape"),
        node("Transpose", "d", "e", "/down/Transpose", perm=[0, 1, 3, 5, 2, 4]),
        node("Reshape", "e eight", "f", "/down/Reshape_1"),
        node("Reshape", "f tall", "g", "/tall/Reshape"),
        node("Transpose", "g", "h", "/tall/Transpose", perm=[0, 1, 4, 2, 5, 3]),
        node("Reshape", "h twelve", "y", "/tall/Reshape_1"),
    ]
    weights = {
        "down": np.array([-1, 2, 3, 2, 4, 2]), "eight": np.array([-1, 8, 3, 4]),
        "tall": np.array([-1, 2, 4, 1, 3, 4]), "twelve": np.array([-1, 2, 12, 4]),
    }  # fmt: skip
    return model(nodes, {"x": ["n", 8, 3, 4]}, {"y": None}, weights)


def domains() -> onnx.ModelProto:
    """Operators of the standard by its long name, and operators of other domains with the same names."""
    nodes = [
        node("Relu", "x", "a", domain="ai.onnx"),
        node("Sigmoid", "a", "b", domain="ai.onnx"),
        node("Mul", "a b", "c", domain="ai.onnx"),
        node("Sigmoid", "c", "d"),
        node("Mul", "c d", "e", domain="com.example"),
        node("FastGelu", "e", "f", domain="com.microsoft"),
        node("Gelu", "f", "g", domain="com.microsoft"),
        node("Sparkle", "g", "y", "sparkle", domain="org.other", amount=3),
        node("Relu", "y", "z", domain="com.example"),
        node("Sigmoid", "z", "gate", domain="com.example"),
        node("Mul", "z gate", "w"),
        node("Twin", "w w", "t", "twin", domain="org.other"),
        node("Maybe", "t _ w", "m", "maybe", domain="org.other"),
        node("Second", "m", "_ s", "second", domain="org.other"),
    ]
    versions = {"ai.onnx": 20, "com.example": 2, "com.microsoft": 1, "org.other": 4}
    proto = model(nodes, {"x": [2, 3]}, {key: [2, 3] for key in "yeztms"}, domains=versions)
    proto.graph.value_info.extend(typed(FLOAT, gate=[2, 3]))  # it is read once, as the gate of a SiLU would be
    return proto


def graph(
    name: str, nodes: Sequence[Node], ends: Sequence[Any], entries: Sequence[Any] = (), stored: Any = ()
) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, list(entries), list(ends), list(stored))


def kept() -> onnx.ModelProto:
    """Nodes that are kept: with missing and constant inputs, unused outputs, graphs, sequences, and an older opset of the file."""
    step = typed(FLOAT, **{"state": [3], "row": [3]})
    local = numpy_helper.from_array(np.full(3, 0.5, np.float32), "local")
    body = graph(
        "body",
        [node("Add", "state row", "sum"), node("Mul", "sum local", "half"), node("Mul", "half outer", "next"), node("Identity", "next", "out")],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in ("next", "out")], step, [local],
    )  # fmt: skip
    nodes = [
        node("Det", "m", "d", "determinant"),
        node("ReverseSequence", "m lengths", "r", "reverse", batch_axis=1, time_axis=0),
        node("Unique", "x", "u _ _ counts", "unique", axis=0),
        node("Exp", "row", "outer", "exp"),
        node("Scan", "row m", "last all", "scan", body=body, num_scan_inputs=1),
        node("SequenceConstruct", "m m", "seq", "sequence"),
        node("SequenceAt", "seq one", "second", "at"),
        node("SequenceAt", "seq zero_th", "first", "first"),
        node("QuantizeLinear", "x scale zero", "q", "quantize"),
        node("DequantizeLinear", "q scale zero", "back", "dequantize"),
        node("MaxUnpool", "x places", "pool", "unpool", kernel_shape=[1, 2], strides=[1, 2]),
        node("Hardmax", "stack", "hard", "hardmax", axis=1),
        node("StringNormalizer", "texts", "small", "texts"),
    ]
    shapes: dict[str, Sequence[int | str]] = {"m": [3, 3], "x": [1, 1, 2, 4], "row": [3], "stack": [2, 3, 4]}
    weights = {
        "lengths": np.array([3, 2, 1]), "one": np.array(1), "zero_th": np.array(0), "scale": np.array(0.02, np.float32),
        "zero": np.array(3, np.uint8), "places": np.arange(8).reshape(1, 1, 2, 4) * 2,
    }  # fmt: skip
    ends = ("d", "r", "last", "all", "second", "first", "back", "pool", "hard")
    return model(nodes[:-1], shapes, dict.fromkeys(ends), weights, opset=11)


def batches() -> onnx.ModelProto:
    """Values that depend on the batch: layers that follow it, sizes that are moved around, and nodes that are kept."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "first", axis=0),
        node("Unsqueeze", "first zeros", "n"),
        node("Concat", "n minus", "flat", axis=0),
        node("Reshape", "x flat", "rows", "rows"),
        node("Concat", "n two", "wide", axis=0),
        node("Expand", "table wide", "spread", "spread"),
        node("QuantizeLinear", "x scale point", "q", "quantize"),
        node("MaxPool", "q", "half", "half", kernel_shape=[2, 3], strides=[2, 3]),
        node("DequantizeLinear", "half scale point", "small", "dequantize"),
    ]
    weights = {
        "zero": np.array(0), "zeros": np.array([0]), "minus": np.array([-1]), "two": np.array([2, 3]),
        "table": random(1, 2, 3), "scale": np.array(0.02, np.float32), "point": np.array(3, np.uint8),
    }  # fmt: skip
    ends = ("rows", "spread", "small")
    return model(nodes, {"x": ["n", 3, "h", "w"], "last": ["n", 2]}, {**dict.fromkeys(ends), "last": ["n", 2]}, weights)


def texts() -> onnx.ModelProto:
    """Constants of texts, which no layer can hold, and outputs of nodes that nothing reads."""
    stored = helper.make_tensor("stored", TensorProto.STRING, [3], [b"a", b"b", b"c"])
    nodes = [
        node("Constant", "", "tensor", value=stored),
        node("Constant", "", "words", value_strings=["a", "x", "c"]),
        node("Constant", "", "word", value_string="b"),
        node("Equal", "tensor words", "same", "same"),
        node("Equal", "saved word", "second", "second"),
        node("Cast", "same", "number", to=FLOAT),
        node("Cast", "second", "other", to=FLOAT),
        node("Dropout", "x", "dropped mask", "dropout"),
        node("LayerNormalization", "dropped scale", "normal mean deviation", "norm"),
        node("Split", "normal", "left right rest", "split", axis=1, num_outputs=3),
        node("TopK", "right k", "highest places", "top"),
        node("Cast", "places", "place", to=FLOAT),
        node("Mul", "number other", "product"),
        node("Add", "product place", "y"),
    ]
    weights = {"scale": random(6), "k": np.array([1])}
    proto = model(nodes, {"x": [3, 6]}, {"y": None}, weights)
    proto.graph.output.extend(typed(TensorProto.BOOL, same=[3]))
    proto.graph.initializer.append(helper.make_tensor("saved", TensorProto.STRING, [3], [b"b", b"y", b"b"]))
    return proto


def definitions() -> onnx.ModelProto:
    """Operators that the standard defines by others, and functions of the file."""
    nodes = [
        node("SwiGLU", "a b", "gate", "/mlp/gate"),
        node("SwiGLU", "gate b", "again", "/mlp/again"),
        node("Twice", "again", "y", "twice", domain="own"),
        node("Twice", "y", "z", "twice more", domain="own"),
    ]
    proto = model(nodes, {"a": ["n", 3], "b": ["n", 3]}, {"y": None, "z": None}, opset=28, domains={"own": 1})
    inner = [node("Neg", "t", "v", "neg"), node("Sub", "t v", "w", "sub")]
    opsets = [helper.make_opsetid("", 28)]
    proto.functions.append(helper.make_function("own", "Twice", ["t"], ["w"], inner, opsets))
    return proto


def modules() -> onnx.ModelProto:
    """Equal modules in modules, by names and by the metadata of exporters; their common weights, and tensors that are read twice."""
    nodes: list[Node] = []
    weights: dict[str, np.ndarray] = {}

    def block(path: str, own: str, x: str, y: str, function: str = "Relu") -> None:
        weights.update({f"{own}.conv.weight": random(4, 4, 1, 1, seed=len(weights)), f"{own}.conv.bias": random(4)})
        names = f"{own}.conv.weight {own}.conv.bias"
        nodes.extend(
            [
                node("Conv", f"{x} {names}", f"{y}c", f"/{path}/conv/Conv"),
                node(function, f"{y}c", f"{y}r", f"/{path}/act/{function}"),
                node("Add", f"{y}r {x}", f"{y}a", f"/{path}/Add"),
                node("Mul", f"{y}a {own}.gain", y, f"/{path}/Mul"),
            ]
        )
        weights[f"{own}.gain"] = random(4, 1, 5, seed=len(weights))

    block("stage.0/block.0", "one", "x", "a")
    block("stage.0/block.1", "two", "a", "b")
    block("stage.1/block.0", "three", "b", "c")
    block("stage.1/block.1", "four", "c", "d")
    block("tail", "five", "d", "e", "Tanh")
    block("last", "five", "e", "f", "Tanh")
    for number, (op, reads) in enumerate((("Neg", "f"), ("Tanh", "h0"), ("Add", "h1 f"))):
        last = node(op, reads, f"h{number}", f"plain_{number}")
        last.metadata_props.add(
            key="pkg.torch.onnx.name_scopes", value=f"['', 'head', 'head.inner', 'head.inner.{op}']"
        )
        nodes.append(last)
    return model(nodes, {"x": ["n", 4, "h", 5]}, {"h2": None, "d": None}, weights)


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    build.__name__: build
    for build in (
        inputs,
        constants,
        functions,
        layers,
        attention,
        shuffles,
        domains,
        kept,
        batches,
        texts,
        definitions,
        modules,
    )
}
