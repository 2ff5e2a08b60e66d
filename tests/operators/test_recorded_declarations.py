"""What every operator declares, for its examples and for parameters and inputs near them, as recorded.

Conformance compares torch and ONNX with each other; here a change of both at once, of a number of operations, an initial value, a
summary, a bound or a default shows as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from near_examples import changed_inputs, changed_params
from operator_oracles import REGISTRY
from recorded import check_lines, number

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Operator, Role
from designer.operators.onnx_data import OnnxConstant, OnnxGraph, OnnxInput, OnnxItem, OnnxNode, OnnxWeight
from designer.operators.torch_data import (
    TorchCall,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
)

KINDS = {cls.type: cls for cls in (*REGISTRY, *REGISTRY.activations.values())}
LETTERS = "abcdefghij"  # the inputs
MANY = 12  # elements of a tuple from which only their digest is recorded
PARTS = re.compile(r"\w+|\W")
FRACTION = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
LONG = 200  # characters of a text from which only its digest is recorded


def shown(value: object, seen: dict[int, int] | None = None) -> str:
    """An expression of torch or ONNX, or a value in it, as text; what is read again is `#` and its number."""
    seen = {} if seen is None else seen
    if isinstance(value, (TorchCall, TorchMethod, OnnxNode)):
        if id(value) in seen:
            return f"#{seen[id(value)]}"
        seen[id(value)] = len(seen)
    match value:
        case TorchInput(index) | OnnxInput(index):
            return LETTERS[index]
        case TorchModule():
            given = [*(f"{name}={shown(item, seen)}" for name, item in value.kwargs.items())]
            own = f" {value.name}" if value.name else ""
            return f"{short(value.path)}[{', '.join(given)}]{own}{rest(value, 'path kwargs args name')}{listed(value.args, None, seen)}"
        case TorchParameter():
            return f"self.{value.name}{rest(value, 'name')}"
        case TorchCall(path, args, kwargs):
            return f"{short(path)}{listed(args, kwargs, seen)}"
        case TorchMethod(method, target, args, kwargs):
            return f"{shown(target, seen)}.{method}{listed(args, kwargs, seen)}"
        case TorchItem(item, index) | OnnxItem(item, index):
            return f"{shown(item, seen)}[{shown(index, seen)}]"
        case TorchName(path):
            return short(path)
        case OnnxWeight(name):
            return f"self.{name}"
        case OnnxConstant(values, dtype):
            return f"{'' if dtype == 'float32' else dtype}{shown(values, seen)}"
        case OnnxNode():
            return f"{value.op}{listed(value.inputs, value.attributes, seen)}{rest(value, 'op inputs attributes')}"
        case OnnxGraph():
            return f"graph of {len(value.model)} bytes{listed(value.inputs, None, seen)}{rest(value, 'model inputs')}"
        case tuple() | list():
            if len(value) > MANY:
                return f"{len(value)} values {digest(repr(value))}"
            return f"({', '.join(shown(item, seen) for item in value)})"
        case float():
            return number(value)
        case np.ndarray():
            return shown(value.tolist())
    return "-" if value is None else str(value)


def short(path: str) -> str:
    return path.removeprefix("torch.").replace("nn.functional.", "F.")


def listed(args: Any, kwargs: Mapping[str, Any] | None, seen: dict[int, int]) -> str:
    found = [shown(item, seen) for item in args]
    found += [f"{name}={shown(item, seen)}" for name, item in (kwargs or {}).items()]
    return f"({', '.join(found)})"


def rest(value: Any, known: str) -> str:
    """The other fields that are not as usual."""
    found = []
    for field in fields(value):
        held = getattr(value, field.name)
        if field.name not in known.split() and held != field.default:
            found.append(f"{field.name}={shown(held)}")
    return "{" + ", ".join(found) + "}" if found else ""


def digest(text: str) -> str:
    """A few digits of the text with its fractions rounded."""
    return hashlib.sha256(FRACTION.sub(lambda found: f"{float(found[0]):.3f}", text).encode()).hexdigest()[:8]


def difference(before: str, now: str) -> str:
    """What replaces what between the beginning and the end that two texts share; the new text if that is shorter."""
    a, b = PARTS.findall(before), PARTS.findall(now)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    text = f"[{''.join(a[start : len(a) - end])} => {''.join(b[start : len(b) - end])}] at {start}"
    return text if len(text) < len(now) else now


def brief(text: str) -> str:
    """A text of one line; of a long one the begin and a digest."""
    text = text.replace("\n", "|")
    return text if len(text) <= LONG else f"{text[:LONG]}... {digest(text)}"


def each(values: Any) -> str:
    seen: dict[int, int] = {}
    return "; ".join(shown(item, seen) for item in values) if isinstance(values, tuple) else shown(values)


def declared(cls: type[Operator], params: Mapping[str, Any], inputs: tuple[TensorType, ...]) -> dict[str, str]:
    """All that an operator declares for these inputs; nothing if it refuses them."""
    operator = cls(**params)
    if any(operator.faults()):
        return {}
    try:
        outputs = operator.infer_checked(inputs)
    except ShapeError:
        return {}
    found = {"": " and ".join(map(str, outputs))}
    for kind in ("torch", "onnx"):
        try:
            found[kind] = brief(each(getattr(operator, kind)(inputs)))
        except NotImplementedError:
            found[kind] = ""
    cost = operator.cost(inputs, outputs)
    found["cost"] = f"{cost.flops} {cost.bytes_read} {cost.bytes_written} {cost.parameters}"
    found["weights"] = "; ".join(
        f"{w.name} {w.shape} {w.torch} {w.init} {w.fan_in}{'' if w.trainable else ' fixed'}" for w in operator.weights(inputs)
    )  # fmt: skip
    found["summary"], found["base"] = operator.summary(), operator.base_name()
    for name, ports in (("in", operator.input_ports()), ("out", operator.output_ports())):
        found[name] = ", ".join(f"{port.name}{rest(port, 'name doc')}" for port in ports)
    found["labels"] = brief(
        "; ".join(
            f"{port.name} {operator.labels(port.name)}"
            for port in operator.output_ports()
            if operator.labels(port.name)
        )
    )
    if cls.role is Role.ANALYSIS:
        found["options"] = "; ".join(
            f"{o.param} {o.kind} {o.label}{rest(o, 'param kind label')}" for o in operator.options()
        )
        found["reach"] = str(operator.reach())
        found["values"] = values_of(operator, inputs)
        found["down"] = ", ".join(f"{n} {dict(operator.scaled_down(n))}" for n in (2, 3))
    return found


def values_of(operator: Operator, inputs: tuple[TensorType, ...]) -> str:
    """Mean, deviation and first and last value of what an analysis layer computes."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(0.4, 0.5, kind.concrete(2)).astype(np.float32) for kind in inputs]
    found = []
    try:
        made = operator.evaluate(arrays)
    except DiagnosticError as error:
        return str(error)
    for array in made:
        flat = array.astype(np.float64).reshape(-1)
        found.append(
            f"{array.dtype}{array.shape} " + " ".join(f"{x:.5f}" for x in (flat.mean(), flat.std(), flat[0], flat[-1]))
        )
    return "; ".join(found)


def class_lines(cls: type[Operator]) -> Iterator[str]:
    yield f"{cls.type}: {cls.title}, {cls.category.name}, {cls.role.value}{rest_of_class(cls)}"
    for parameter in cls.parameters:
        info = {k.name: getattr(parameter.info, k.name) for k in fields(parameter.info) if k.name != "doc"}
        more = ", ".join(f"{name} {value}" for name, value in info.items() if value not in (None, "", (), False))
        yield brief(f"  {parameter.name}: {parameter.kind} {parameter.format(parameter.default)!r} {more}".rstrip())


def rest_of_class(cls: type[Operator]) -> str:
    names = ("icon", "synonyms", "replaces", "renamed", "default_activation")
    return "".join(f", {name} {getattr(cls, name)}" for name in names if getattr(cls, name))


def telling(name: str) -> bool:
    """Whether a change of an input differs much from the others: an axis of odd size, and integers."""
    return not name.endswith(("=1", "=2", "0", "=N", "bool", "float16"))


def lines_of(cls: type[Operator]) -> Iterator[str]:
    """The class, every example, and of what is near an example that in which it differs."""
    yield from class_lines(cls)
    said: set[tuple[str, str]] = set()
    for place, example in enumerate(cls.examples):
        plain = declared(cls, example.params, example.inputs)
        yield f"  {place}: {' '.join(map(str, example.inputs))} {dict(example.params) if len(str(example.params)) < LONG else ''}"
        yield from (f"    {name}: {text}" for name, text in plain.items() if text)
        near = [
            (name, dict(example.params), inputs)
            for name, inputs in changed_inputs(example.inputs)
            if place < 2 and telling(name)
        ]
        near += [(name, params, example.inputs) for name, params in changed_params(cls, dict(example.params))]
        for name, params, inputs in near:
            found = declared(cls, params, inputs)
            other = {key: text for key, text in found.items() if text != plain.get(key)}
            if other:
                text = " | ".join(
                    f"{key} {difference(plain.get(key, ''), text)}".strip() for key, text in other.items()
                )
                if (name, text) not in said:
                    said.add((name, text))
                    yield f"    {brief(name)} -> {text}"


@pytest.mark.parametrize("category", sorted({cls.category.name for cls in KINDS.values()}))
def test_what_operators_declare(category: str) -> None:
    chosen = [cls for cls in KINDS.values() if cls.category.name == category]
    check_lines(f"operators/declared/{category.lower()}.txt", [line for cls in chosen for line in lines_of(cls)])
