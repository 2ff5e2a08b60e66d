"""What every operator declares or refuses if two of its parameters differ from those of an example, as recorded.

`test_recorded_declarations.py` changes one parameter at a time in full; a parameter that has an effect only together with another
shows here, as the digest of all that is declared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from near_examples import changed_params
from recorded import check_lines
from test_recorded_declarations import KINDS, declared, digest
from test_recorded_refusals import refusal

from designer.graph.types import TensorType
from designer.operators.api import Operator, Role

EXAMPLES = 2  # of each operator
VALUES = 2  # of each parameter, besides that of the example


def all_declared(cls: type[Operator], params: dict[str, Any], inputs: tuple[TensorType, ...]) -> str:
    found = declared(cls, params, inputs)
    return "; ".join(f"{name} {text}" for name, text in found.items()) or refusal(cls, params, inputs)


def changed(cls: type[Operator], params: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The first values of each parameter that an example can have instead."""
    found: dict[str, list[Any]] = defaultdict(list)
    for title, other in changed_params(cls, dict(params)):
        name = title.partition("=")[0]
        if len(found[name]) < VALUES or cls.parameter(name).kind == "choice":  # type: ignore[union-attr]
            found[name].append(other[name])
    return found


def pair_lines(cls: type[Operator]) -> Iterator[str]:
    """For each pair of parameters the digest of what is declared for all of their values."""
    for place, example in enumerate(cls.examples[:EXAMPLES]):
        params = dict(example.params)
        others = changed(cls, params)
        texts = []
        for a, b in combinations(others, 2):
            both = [{**params, a: one, b: other} for one in others[a] for other in others[b]]
            texts.append(f"{a}+{b} {digest('|'.join(all_declared(cls, p, example.inputs) for p in both))}")
        yield from (f"  {place}: {text}" for text in texts)


def analysis_lines(cls: type[Operator]) -> Iterator[str]:
    """For each pair of parameters what an analysis layer computes for all of their values, and the digest of the rest."""
    example = cls.examples[0]
    params = dict(example.params)
    others = changed(cls, params)
    for a, b in combinations(others, 2):
        yield f"  {a}+{b}"
        for one, other in ((one, other) for one in others[a] for other in others[b]):
            both = {**params, a: one, b: other}
            found = declared(cls, both, example.inputs)
            values = found.pop("values", "")
            rest = digest("; ".join(f"{name} {text}" for name, text in found.items()))
            yield f"    {one} {other}: {f'{values} {rest}' if values else refusal(cls, both, example.inputs)}"


def test_two_parameters_that_differ_from_an_example() -> None:
    lines, analysis = [], []
    for cls in KINDS.values():
        if cls.role is Role.ANALYSIS:
            analysis += [cls.type, *analysis_lines(cls)]
        elif found := list(pair_lines(cls)):
            lines += [cls.type, *found]
    check_lines("operators/pairs.txt", lines)
    check_lines("operators/analysis_pairs.txt", analysis)
