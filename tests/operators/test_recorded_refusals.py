"""Every sentence with which an operator refuses inputs and parameters that are near those of its examples, as recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from operator_oracles import REGISTRY
from recorded import check_files, check_recorded

from designer.graph.types import DataType, ShapeError, Size2D, TensorType
from designer.operators.api import BATCH, Operator
from designer.operators.params import ParamError

KINDS = [*REGISTRY, *REGISTRY.activations.values()]
NUMBERS = re.compile(r"-?(N|\d+)( ?[x,] ?(N|\d+))*")
GENERIC = (" needs rank ", " needs its input ", "put a Convert type layer before it, or")  # of ports, in test_bad_input


def changed_inputs(inputs: tuple[TensorType, ...]) -> Iterator[tuple[str, tuple[TensorType, ...]]]:
    """Each axis of each input with other sizes, and each input with other element types."""
    for number, kind in enumerate(inputs):
        others: list[tuple[str, TensorType]] = []
        for axis, size in enumerate(kind.shape):
            sizes: list[Any] = [1, 2, size + 1, 40 * size] if isinstance(size, int) else [1, 3]
            others += [(f"{axis}={new}", kind.with_dim(axis, new)) for new in dict.fromkeys(sizes) if new != size]
            if isinstance(size, int):
                others.append((f"{axis}=N", kind.with_dim(axis, BATCH)))
        for dtype in (DataType.FLOAT32, DataType.FLOAT16, DataType.INT64, DataType.BOOL):
            if dtype is not kind.dtype:
                others.append((dtype.value, kind.with_dtype(dtype)))
        for name, other in others:
            yield f"{number + 1}:{name}", (*inputs[:number], other, *inputs[number + 1 :])


def changed_params(cls: type[Operator], params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each parameter of an example with other values, as long as they are within its bounds."""
    for parameter in cls.parameters:
        value = params.get(parameter.name, parameter.default)
        others: list[Any] = []
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [0, value + 1, value * 5 + 3, -value - 9]
        elif isinstance(value, float):
            others = [0.0, -value - 0.5, value * 3 + 1]
        elif isinstance(value, Size2D):
            others = [Size2D(value.width + 1, value.height), Size2D(value.width, value.height * 5 + 3), Size2D(1, 1)]
        elif isinstance(value, tuple):
            others = [(), value + value[:1], value[:-1]]
        elif parameter.info.choices:
            others = list(parameter.info.choices)
        for other in others:
            try:
                parameter.check(other)
            except ParamError:
                continue
            if other != value:
                yield f"{parameter.name}={other}", {**params, parameter.name: other}


def refusal(cls: type[Operator], params: dict[str, Any], inputs: tuple[TensorType, ...]) -> str:
    """The sentence, the parameter or port that it names, and the remedy; empty if all is accepted."""
    operator = cls(**params)
    faults = [f"{fault.parameter}: {fault.message}; {fault.remedy}" for fault in operator.faults()]
    if faults:
        return " / ".join(faults)
    try:
        operator.infer_checked(inputs)
    except ShapeError as error:
        sentence = f"{error.port}: {error.message}; {error.remedy}"
        return "" if any(words in sentence for words in GENERIC) else sentence
    return ""


def refusals(cls: type[Operator]) -> Iterator[str]:
    """By example: which changes are refused, and the first of the sentences that are equal but for their numbers."""
    for number, example in enumerate(cls.examples):
        found: dict[str, list[str]] = defaultdict(list)
        changes = [(name, dict(example.params), inputs) for name, inputs in changed_inputs(example.inputs)]
        changes += [(name, params, example.inputs) for name, params in changed_params(cls, dict(example.params))]
        first: dict[str, str] = {}
        for name, params, inputs in changes:
            sentence = refusal(cls, params, inputs)
            if sentence:
                found[first.setdefault(NUMBERS.sub("#", sentence), sentence)].append(name)
        yield from (f"  {number}, {' '.join(names)}: {sentence}" for sentence, names in found.items())


def params_text(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={str(value).partition(chr(10))[0]}" for name, value in params.items())


def test_what_operators_refuse() -> None:
    lines = []
    for cls in KINDS:
        found = list(refusals(cls))
        shown = [" ".join(map(str, (*example.inputs, params_text(example.params)))) for example in cls.examples]
        if found:
            lines += [cls.type, *(f"  # {number}: {text.rstrip()}" for number, text in enumerate(shown)), *found]
    check_recorded("operators/refusals.txt", "\n".join([*lines, ""]))


def test_no_other_text_of_operators_is_recorded() -> None:
    declared = [f"declared/{category.name.lower()}.txt" for category in {cls.category for cls in KINDS}]
    check_files("operators", [*declared, "findings.txt", "fixes.txt", "programs.txt", "refusals.txt", "sizes.txt"])
