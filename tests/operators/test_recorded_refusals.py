"""Every sentence with which an operator refuses inputs and parameters that are near those of its examples, as recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from near_examples import changed_inputs, changed_params
from operator_oracles import REGISTRY
from recorded import check_files, check_recorded

from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Operator

KINDS = [*REGISTRY, *REGISTRY.activations.values()]
NUMBERS = re.compile(r"-?(N|\d+)( ?[x,] ?(N|\d+))*")
GENERIC = (" needs rank ", " needs its input ", "put a Convert type layer before it, or")  # of ports, in test_bad_input


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
    check_files(
        "operators",
        [
            *declared,
            "code_texts.txt",
            "random_declarations.txt",
            "random_fixes.txt",
            "random_sizes.txt",
            "findings_inside.txt",
            "random_templates.txt",
            "new_layers.txt",
            "analysis_pairs.txt",
            "pairs.txt",
            "findings.txt",
            "fixes.txt",
            "fixes_inside.txt",
            "programs.txt",
            "refusals.txt",
            "sizes.txt",
        ],
    )
