"""Patterns of nodes that become one layer, and near misses that must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model, random, saved
from recorded import check_recorded

from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx, import_proto
from designer.importers.onnx.original import OnnxOriginal
from designer.importers.verification import run_document
from designer.operators.registry import Registry

Pattern = tuple[list[Any], dict[str, np.ndarray]]


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def gelu(half: str) -> Pattern:
    """The exact form, with the factor 0.5 first, last, or before the factor x."""
    start = [
        helper.make_node("Div", ["x", "root"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["a"]),
    ]
    ends = {
        "first": [helper.make_node("Mul", ["x", "half"], ["h"]), helper.make_node("Mul", ["h", "a"], ["y"])],
        "last": [helper.make_node("Mul", ["x", "a"], ["h"]), helper.make_node("Mul", ["h", "half"], ["y"])],
        "before x": [helper.make_node("Mul", ["a", "half"], ["h"]), helper.make_node("Mul", ["h", "x"], ["y"])],
    }[half]
    return [*start, *ends], {"root": number(sqrt(2)), "one": number(1), "half": number(0.5)}


def tanh_gelu() -> Pattern:
    nodes = [
        helper.make_node("Pow", ["x", "three"], ["p"]),
        helper.make_node("Mul", ["p", "c"], ["pc"]),
        helper.make_node("Add", ["x", "pc"], ["s"]),
        helper.make_node("Mul", ["s", "k"], ["sk"]),
        helper.make_node("Tanh", ["sk"], ["t"]),
        helper.make_node("Add", ["t", "one"], ["a"]),
        helper.make_node("Mul", ["x", "a"], ["xa"]),
        helper.make_node("Mul", ["xa", "half"], ["y"]),
    ]
    numbers = {"three": 3, "c": 0.044715, "k": sqrt(2 / np.pi), "one": 1, "half": 0.5}
    return nodes, {name: number(value) for name, value in numbers.items()}


def silu() -> Pattern:
    return [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])], {}


def layer_norm() -> Pattern:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["c"]),
        helper.make_node("Pow", ["c", "two"], ["p"]),
        helper.make_node("ReduceMean", ["p"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["ve"]),
        helper.make_node("Sqrt", ["ve"], ["s"]),
        helper.make_node("Div", ["c", "s"], ["n"]),
        helper.make_node("Mul", ["n", "norm.weight"], ["nw"]),
        helper.make_node("Add", ["nw", "norm.bias"], ["y"]),
    ]
    weights = {"two": number(2), "eps": number(1e-5), "norm.weight": random(8), "norm.bias": random(8, seed=1)}
    return nodes, weights


def rms_norm() -> Pattern:
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["p"]),
        helper.make_node("ReduceMean", ["p"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["ve"]),
        helper.make_node("Sqrt", ["ve"], ["s"]),
        helper.make_node("Div", ["x", "s"], ["n"]),
        helper.make_node("Mul", ["n", "norm.weight"], ["y"]),
    ]
    return nodes, {"two": number(2), "eps": number(1e-5), "norm.weight": random(8)}


def linear() -> Pattern:
    nodes = [helper.make_node("MatMul", ["x", "fc.weight"], ["m"]), helper.make_node("Add", ["fc.bias", "m"], ["y"])]
    return nodes, {"fc.weight": random(8, 8), "fc.bias": random(8, seed=1)}


def attention() -> Pattern:
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["x", "k"], ["s"]),
        helper.make_node("Div", ["s", "root"], ["d"]),
        helper.make_node("Softmax", ["d"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["y"]),
    ]
    return nodes, {"root": number(sqrt(8))}


def masked_attention() -> Pattern:
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["x", "k"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["d"]),
        helper.make_node("Add", ["d", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["y"]),
    ]
    return nodes, {"scale": number(0.3), "mask": random(4, 4, seed=3)}


def shuffle() -> Pattern:
    nodes = [
        helper.make_node("Reshape", ["x", "eight"], ["e"]),
        helper.make_node("Reshape", ["e", "six"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 4, 2, 5, 3]),
        helper.make_node("Reshape", ["t", "four"], ["y"]),
    ]
    sizes = {"eight": np.array([2, 8, 2, 4]), "six": np.array([2, 2, 2, 2, 2, 4]), "four": np.array([2, 2, 4, 8])}
    return nodes, sizes


def unshuffle() -> Pattern:
    nodes = [
        helper.make_node("Reshape", ["x", "six"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 5, 2, 4]),
        helper.make_node("Reshape", ["t", "four"], ["y"]),
    ]
    return nodes, {"six": np.array([-1, 2, 2, 2, 4, 2]), "four": np.array([-1, 8, 2, 4])}


CASES: list[tuple[str, Pattern, str]] = [
    ("gelu", gelu("last"), "gelu"),
    ("gelu, half first", gelu("first"), "gelu"),
    ("tanh gelu", tanh_gelu(), "gelu"),
    ("silu", silu(), "silu"),
    ("layer norm", layer_norm(), "layer_normalization"),
    ("rms norm", rms_norm(), "rms_normalization"),
    ("linear", linear(), "fully_connected"),
    ("unshuffle", unshuffle(), "space_to_depth"),
]


def imported(pattern: Pattern, folder: Path, registry: Registry, outputs: dict[str, Any] | None = None) -> Imported:
    nodes, weights = pattern
    proto = model(nodes, {"x": ["n", 2, 4, 8]}, outputs or {"y": None}, weights, opset=17)
    return import_onnx(saved(proto, folder), registry, ImportOptions()).verified(registry)


def layers(found: Imported) -> list[str]:
    plain = [layer for layer in found.graph if layer.type not in ("input", "output", "tensor_constant")]
    return [layer.activation.type if layer.activation else layer.type for layer in plain]


@pytest.mark.parametrize(("pattern", "type"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pattern_becomes_one_layer(pattern: Pattern, type: str, tmp_path: Path, registry: Registry) -> None:
    found = imported(pattern, tmp_path, registry)
    assert layers(found) == [type]
    assert found.report.known == len(pattern[0])
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference < 1e-5


def test_attention_becomes_one_layer(tmp_path: Path, registry: Registry) -> None:
    found = imported(attention(), tmp_path, registry)
    assert "scaled_dot_product_attention" in layers(found)
    assert "softmax" not in layers(found)
    assert found.report.agrees


def test_attention_of_an_older_opset_normalizes_over_several_axes_by_default(
    tmp_path: Path, registry: Registry
) -> None:
    nodes, weights = attention()
    del nodes[3].attribute[:]
    proto = model(nodes, {"x": ["n", 2, 4, 8]}, {"y": None}, weights, opset=11)
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions()).verified(registry)
    assert "scaled_dot_product_attention" not in layers(found)
    assert found.report.agrees


def test_a_product_with_the_softmax_behind_the_values_is_no_attention(tmp_path: Path, registry: Registry) -> None:
    """As channels attend to each other: the values, C x (H W), times a softmax over the columns of the result."""
    nodes, weights = attention()
    nodes[-1] = helper.make_node("MatMul", ["k", "p"], ["y"])
    found = imported((nodes, weights), tmp_path, registry)
    assert "scaled_dot_product_attention" not in layers(found)
    assert found.report.opaque == 0
    assert found.report.agrees
    assert found.report.max_rel_difference is not None


def other_number(pattern: Callable[[], Pattern], name: str) -> Pattern:
    nodes, weights = pattern()
    return nodes, {**weights, name: weights[name] * np.float32(1.01)}


@pytest.mark.parametrize(
    "pattern",
    [
        other_number(lambda: gelu("last"), "root"),
        other_number(lambda: gelu("last"), "half"),
        other_number(tanh_gelu, "c"),
        other_number(layer_norm, "two"),
    ],
    ids=["root", "half", "cubic", "power"],
)
def test_other_numbers_are_another_computation(pattern: Pattern, tmp_path: Path, registry: Registry) -> None:
    found = imported(pattern, tmp_path, registry)
    assert len(layers(found)) > 3
    assert found.report.agrees


def test_a_pattern_whose_inside_is_read_elsewhere_stays_as_it_is(tmp_path: Path, registry: Registry) -> None:
    found = imported(silu(), tmp_path, registry, {"y": None, "s": None})
    assert layers(found) == ["sigmoid", "element_wise"]
    assert found.report.agrees


@pytest.mark.parametrize(
    ("pattern", "inside", "types"),
    [
        (layer_norm(), "n", ["layer_normalization", "element_wise", "element_wise"]),
        (layer_norm(), "nw", ["layer_normalization", "element_wise"]),
        (rms_norm(), "n", ["rms_normalization", "element_wise"]),
    ],
    ids=["layer norm, scale", "layer norm, shift", "rms norm, scale"],
)
def test_a_normalization_ends_where_its_value_is_an_output(
    pattern: Pattern, inside: str, types: list[str], tmp_path: Path, registry: Registry
) -> None:
    found = imported(pattern, tmp_path, registry, {"y": None, inside: None})
    assert layers(found) == types
    assert found.report.agrees


INSIDE = [
    pytest.param(pattern, node.output[0], id=f"{name}-{node.output[0]}")
    for name, pattern in [*((name, pattern) for name, pattern, _ in CASES), ("attention", attention())]
    for node in pattern[0][:-1]
]


@pytest.mark.parametrize(("pattern", "inside"), INSIDE)
def test_every_value_inside_of_a_pattern_can_be_read_elsewhere(
    pattern: Pattern, inside: str, tmp_path: Path, registry: Registry
) -> None:
    for outputs, more in (
        ({"y": None, inside: None}, []),
        ({"y": None, "z": None}, [helper.make_node("Neg", [inside], ["z"])]),
    ):
        found = imported(([*pattern[0], *more], pattern[1]), tmp_path, registry, outputs)
        assert found.report.opaque == 0
        assert found.report.agrees
        assert found.report.max_rel_difference is not None


def changed(pattern: Pattern, output: str, inputs: list[str]) -> Pattern:
    """The pattern with other inputs of the node that makes `output`."""
    nodes = [helper.make_node("Neg", ["x"], ["z"])]
    for node in pattern[0]:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.output[0] == output:
            copy.input[:] = inputs
        nodes.append(copy)
    return nodes, pattern[1]


def repeated(pattern: Pattern, product: str) -> Pattern:
    """The pattern with one factor of the product that makes `product` twice: `half`, else x."""
    nodes, weights = pattern
    place = next(place for place, node in enumerate(nodes) if node.output[0] == product)
    factor, other = sorted(nodes[place].input, key=["half", "x", "a"].index)
    twice = [helper.make_node("Mul", [other, factor], ["z"]), helper.make_node("Mul", ["z", factor], [product])]
    return [*nodes[:place], *twice, *nodes[place + 1 :]], weights


def with_weight(pattern: Pattern, **weights: np.ndarray) -> Pattern:
    """The pattern with other constants."""
    return pattern[0], {**pattern[1], **{name.replace("_", "."): array for name, array in weights.items()}}


NEAR_MISSES = {
    "a bias for every position": (with_weight(linear(), fc_bias=random(4, 8)), "opaque"),
    "a bias for every channel": (with_weight(linear(), fc_bias=random(2, 1, 1)), "opaque"),
    "a bias of a single number": (with_weight(linear(), fc_bias=random(1)), "opaque"),
    "a matrix for every channel": (with_weight(linear(), fc_weight=random(2, 8, 8)), "fully_connected"),
    "a gate by another value": (changed(silu(), "y", ["z", "s"]), "silu"),
    "gelu times another value": (changed(gelu("last"), "h", ["z", "a"]), "gelu"),
    "gelu, half of another value": (changed(gelu("first"), "h", ["z", "half"]), "gelu"),
    "gelu, halved twice": (repeated(gelu("before x"), "h"), "gelu"),
    "gelu times the value twice": (repeated(gelu("last"), "h"), "gelu"),
    "tanh gelu times the value twice": (repeated(tanh_gelu(), "xa"), "gelu"),
    "tanh gelu, cube of another value": (changed(tanh_gelu(), "p", ["z", "three"]), "gelu"),
    "tanh gelu plus another value": (changed(tanh_gelu(), "s", ["z", "pc"]), "gelu"),
    "tanh gelu times another value": (changed(tanh_gelu(), "xa", ["z", "a"]), "gelu"),
    "centered by the mean of another value": (changed(layer_norm(), "m", ["z"]), "layer_normalization"),
    "the mean minus the value": (changed(layer_norm(), "c", ["m", "x"]), "layer_normalization"),
    "another value divided": (changed(layer_norm(), "n", ["z", "s"]), "layer_normalization"),
    "divided by the value": (changed(layer_norm(), "n", ["s", "c"]), "layer_normalization"),
    "another value divided by its mean of squares": (changed(rms_norm(), "n", ["z", "s"]), "rms_normalization"),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_pattern_of_several_values_is_another_computation(name: str, tmp_path: Path, registry: Registry) -> None:
    pattern, type = NEAR_MISSES[name]
    found = imported(pattern, tmp_path, registry)
    assert type not in layers(found)
    assert found.report.opaque == 0
    assert found.report.agrees
    assert found.report.max_rel_difference is not None


def test_a_node_that_fits_two_patterns_belongs_to_the_first(tmp_path: Path, registry: Registry) -> None:
    """The product with a constant plus a constant is a layer of its own, not the scores and the mask of an attention."""
    nodes = [
        helper.make_node("MatMul", ["x", "keys"], ["s"]),
        helper.make_node("Add", ["s", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "values"], ["y"]),
    ]
    weights = {"keys": random(8, 8), "mask": random(8, seed=1), "values": random(8, 5, seed=2)}
    found = imported((nodes, weights), tmp_path, registry)
    assert layers(found) == ["fully_connected", "softmax", "fully_connected"]
    assert (found.report.known, found.report.nodes) == (4, 4)
    assert found.report.agrees
    assert found.report.max_rel_difference is not None


SIBLINGS = {
    "Add": ("Sub", "Mul"), "Sub": ("Add",), "Mul": ("Div", "Add"), "Div": ("Mul",), "ReduceMean": ("ReduceSum", "ReduceMax"),
    "Sqrt": ("Abs",), "Erf": ("Tanh",), "Tanh": ("Erf",), "Sigmoid": ("Tanh",), "Softmax": ("LogSoftmax",),
}  # fmt: skip
OTHER_ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "ReduceMean": [{"axes": axes} for axes in ([-2], [-2, -1], [-1, -3], [3], [1])] + [{"axes": [-1], "keepdims": 0}],
    "Softmax": [{"axis": axis} for axis in (1, 2, 3, -2)],
    "Transpose": [{"perm": list(perm)} for perm in ((0, 1, 3, 2), (0, 2, 3, 1), (0, 1, 4, 2, 3, 5), (0, 1, 2, 4, 3, 5), (1, 0, 3, 5, 2, 4))],
}  # fmt: skip
Change = tuple[str, Pattern]


def replaced(pattern: Pattern, place: int, *nodes: Any) -> Pattern:
    return [*pattern[0][:place], *nodes, *pattern[0][place + 1 :]], pattern[1]


def changes(pattern: Pattern) -> Iterator[Change]:
    """The pattern with one node or one constant changed."""
    yield "as it is", pattern
    made = {node.output[0] for node in pattern[0]} | {"x"}
    for place, node in enumerate(pattern[0]):
        name = f"{node.op_type} {node.output[0]}"
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if len(node.input) == 2:
            yield f"{name}, inputs exchanged", replaced(pattern, place, again(node, node.input[::-1]))
        for kind in SIBLINGS.get(node.op_type, ()):
            yield (
                f"{name}, {kind}",
                replaced(pattern, place, helper.make_node(kind, node.input, node.output, **attributes)),
            )
        if node.op_type == "Pow":
            yield (
                f"{name}, a product",
                replaced(pattern, place, helper.make_node("Mul", [node.input[0]] * 2, node.output)),
            )
        for other in OTHER_ATTRIBUTES.get(node.op_type, ()):
            yield (
                f"{name}, {other}",
                replaced(pattern, place, helper.make_node(node.op_type, node.input, node.output, **other)),
            )
        for number_, given in enumerate(node.input):
            if given in made:
                inputs = [*node.input[:number_], "z", *node.input[number_ + 1 :]]
                turned = helper.make_node("Neg", [given], ["z"])
                yield f"{name}, {given} with the other sign", replaced(pattern, place, turned, again(node, inputs))
    for name, array in pattern[1].items():
        if array.dtype == np.float32:
            arrays = {
                "larger": array * np.float32(1.01),
                "inverse": 1 / array,
                "as a vector": np.resize(array, 8),
                "of five axes": array[(None,) * 5],
            }
            arrays["of a single number"] = np.full((1, 1), array.flat[0])
        else:
            arrays = {
                "exchanged": np.concatenate([array[:-2], array[:-3:-1]]),
                "with the rest left open": np.concatenate([array[:-1], [-1]]),
            }
        for title, other_ in arrays.items():
            yield f"{name} {title}", (pattern[0], {**pattern[1], name: other_.astype(array.dtype)})


def again(node: Any, inputs: Iterable[str]) -> Any:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = list(inputs)
    return copy


ALL = {
    "gelu": gelu("last"), "gelu, half first": gelu("first"), "tanh gelu": tanh_gelu(), "silu": silu(), "layer norm": layer_norm(), "rms norm": rms_norm(),
    "linear": linear(), "attention": attention(), "masked attention": masked_attention(), "shuffle": shuffle(), "unshuffle": unshuffle(),
}  # fmt: skip


def test_patterns_with_one_change_compute_what_their_nodes_do(registry: Registry) -> None:
    """All in one model; which of them are still one layer is recorded."""
    x = random(2, 2, 4, 8)
    nodes, weights, titles, wanted = list[Any](), dict[str, np.ndarray](), dict[str, str](), dict[str, np.ndarray]()
    for pattern in ALL:
        for change, (own, constants) in changes(ALL[pattern]):
            try:
                one = model(own, {"x": x.shape}, {"y": None}, constants, opset=17)
                (value,) = ReferenceEvaluator(one).run(None, {"x": x})
            except Exception:  # sizes that do not fit
                continue
            if not np.all(np.isfinite(value)):
                continue
            prefix = f"v{len(titles)}."
            for node in own:
                copy = again(node, [given if given == "x" else f"{prefix}{given}" for given in node.input])
                copy.output[:] = [f"{prefix}{output}" for output in node.output]
                nodes.append(copy)
            weights |= {f"{prefix}{name}": array for name, array in constants.items()}
            titles[f"{prefix}y"], wanted[f"{prefix}y"] = f"{pattern}: {change}", value
    proto = model(nodes, {"x": x.shape}, dict.fromkeys(titles), weights, opset=17)
    found = import_proto(proto, Path("patterns.onnx"), registry, ImportOptions())
    assert isinstance(found.original, OnnxOriginal)
    made = run_document(found.graph, registry, found.weights, {"x": x})
    lines, wrong = [], []
    for name, title in titles.items():
        value = made[found.original.outputs[name]]
        if value.shape != wanted[name].shape or not np.allclose(value, wanted[name], rtol=1e-4, atol=1e-4):
            wrong.append(title)
        lines.append(f"{title}: {', '.join(above(found, found.original.outputs[name]))}")
    assert wrong == []
    check_recorded("imports/onnx_changed_patterns.txt", "\n".join([*lines, ""]))


def above(found: Imported, name: str) -> list[str]:
    """The types of the layers that an output depends on, without inputs and constants, in the order of the document."""
    waiting, seen = [name], set[str]()
    while waiting:
        layer = waiting.pop()
        if layer not in seen:
            seen.add(layer)
            waiting.extend(found.graph[layer].producers())
    kept = (layer for layer in found.graph if layer.name in seen)
    plain = [layer for layer in kept if layer.type not in ("input", "tensor_input", "output", "tensor_constant")]
    return [layer.activation.type if layer.activation else layer.type for layer in plain]
