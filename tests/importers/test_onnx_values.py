"""What the conversion of a node reads of each kind of value, as recorded: numbers, sizes, a layer, or why it has none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx_models import random
from recorded import check_recorded

from designer.graph.model import Source
from designer.graph.types import BATCH, TensorType
from designer.importers.builder import GraphBuilder
from designer.importers.onnx import conversion
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError, foldable, plain_cast
from designer.operators.registry import Registry

QUESTIONS: dict[str, Callable[[Conversion, str], Any]] = {
    "known": Conversion.known,
    "constant": Conversion.constant,
    "numbers": Conversion.numbers,
    "scalar": Conversion.scalar,
    "dims": Conversion.dims,
    "target": lambda c, name: c.target(node("Reshape", "x", name), 1),
    "ints": Conversion.ints,
    "weight": Conversion.weight,
    "symbolic": Conversion.is_symbolic,
    "fixed": Conversion.is_constant,
    "type": Conversion.type_of,
    "folds": lambda c, name: foldable(c, node("Neg", name)),
    "cast": lambda c, name: plain_cast(c, node("CastLike", "x", name)).attributes,
}
VALUES = (
    "x", "symbols", "vector", "fractions", "number", "short", "bytes", "flags", "flag", "stored", "stored number", "doubles", "halves", "texts",
    "sum", "sum of symbols", "sum of x",
    "sum of sums", "long", "not folded", "inner", "shapeless", "nothing",
)  # fmt: skip


class Stored:
    """An initializer of a file."""

    def __init__(self, array: Any, kind: str) -> None:
        self.array, self.shape = array, array.shape
        self.dtype = type("Kind", (), {"name": kind})

    def numpy(self) -> Any:
        return self.array


def node(kind: str, *inputs: str, output: str = "y", **attributes: Any) -> OnnxOp:
    return OnnxOp(f"/net/{kind}", kind, "", 20, inputs, (output,), attributes)


def example(registry: Registry) -> Conversion:
    c = Conversion(GraphBuilder(registry), 20)
    c.current = node("Identity", "x")
    (c.sources["x"],) = c.builder.add("input", (), {}, name="x")
    c.sources["shapeless"] = Source("elsewhere")
    c.arrays["symbols"] = np.array([BATCH, 3, -1], object)
    c.arrays["vector"] = np.array([2, 3])
    c.arrays["fractions"] = np.array([0.5, 1.5], np.float32)
    c.arrays["number"] = np.array(7)
    c.arrays |= {"short": np.array([4, 5], np.int32), "bytes": np.array([200], np.uint8)}
    c.arrays |= {"flags": np.array([True, False]), "flag": np.array(True)}
    kinds = {"stored": (random(2, 2), "FLOAT"), "stored number": (np.array([0.5], np.float32), "FLOAT")}
    kinds |= {"doubles": (np.array([1.5, 2.0]), "DOUBLE"), "halves": (np.array([1.5], np.float16), "FLOAT16")}
    kinds |= {"texts": (np.array(["a"], object), "STRING")}
    c.tensors |= {name: Stored(*pair) for name, pair in kinds.items()}
    sums = {"sum": "number", "sum of symbols": "symbols", "sum of x": "x", "sum of sums": "sum", "long": "vector"}
    c.deferred |= {name: node("Add", "number", other, output=name) for name, other in sums.items()}
    c.deferred["not folded"] = node("Sparkle", "number", output="not folded")
    c.embedded["inner"] = node("Sparkle", "x", output="inner")
    return c


def text(value: Any) -> str:
    if isinstance(value, conversion.Tensor):
        return f"weight {value.name!r} {text(value.array)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {' '.join(map(str, value.reshape(-1).tolist()))}"
    return repr(value) if not isinstance(value, TensorType) else f"{value} {value.dtype.value}"


def answer(question: Callable[[], Any]) -> str:
    try:
        return text(question())
    except UnsupportedError as error:
        return f"refused: {error}"


def layer_of(c: Conversion, name: str) -> str:
    source = c.source(name)
    layer = c.builder.layers[source.layer]
    again = c.source(name) == source
    return f"{source} {layer.type} {dict(layer.params)}{'' if again else ', another one the second time'}"


def test_every_question_about_every_kind_of_value(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MAX_SMALL", 2)
    lines = []
    for name in VALUES:
        lines.append(name)
        for title, question in QUESTIONS.items():
            c = example(registry)
            c.declared = {"y": TensorType((2, 5))}
            before = set(c.arrays)
            found = answer(lambda question=question, c=c, name=name: question(c, name))  # type: ignore[misc]
            kept = f", keeps {sorted(c.arrays.keys() - before)}" if c.arrays.keys() - before else ""
            lines.append(f"  {title}: {found}{kept}")
        c = example(registry)
        try:
            lines.append(f"  layer: {layer_of(c, name)}")
        except (UnsupportedError, KeyError) as error:
            lines.append(f"  layer: refused: {error}")
    check_recorded("imports/onnx_values.txt", "\n".join([*lines, ""]))


def test_a_value_that_is_too_large_to_be_folded_is_made_by_its_layer(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "MAX_SMALL", 1)
    c = example(registry)
    around, made = c.current, c.made
    asked = []

    def convert(op: OnnxOp) -> None:
        asked.append(op.outputs[0])
        c.current, c.made = op, []
        if op.outputs[0] == "long":
            c.one("identity", ["x"])

    c.convert_now = convert
    assert str(c.source("long")) == "net_Add"
    assert c.source("long") is c.sources["long"]
    assert (c.current, c.made) == (around, made)
    with pytest.raises(UnsupportedError, match=r"^'not folded' is of a type that no layer can have$"):
        c.source("not folded")
    assert asked == ["long", "not folded"]


def test_an_attempt_is_undone_with_the_names_that_it_gave(registry: Registry) -> None:
    c = example(registry)
    names, layers = dict(c.sources), list(c.builder.layers)
    mark = c.mark()
    c.add("identity", ["number"])
    c.put("made", c.add("identity", ["x"])[0])
    c.put("", c.sources["made"])
    assert set(c.sources) - set(names) == {"number", "made"}
    c.rollback(mark)
    assert c.sources == names
    assert list(c.builder.layers) == layers
