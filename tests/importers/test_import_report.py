"""The report of an import: its counts, sentences, warnings and JSON text."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from designer.importers.report import (
    TOLERANCE,
    UNBOUNDED,
    ComparedCase,
    ImportReport,
    NodeOutcome,
    Outcome,
    counted,
    named_tensors,
    report_json,
)

OUTCOMES = (
    NodeOutcome("a", "Conv", Outcome.KNOWN, ("c",)),
    NodeOutcome("b", "Relu", Outcome.KNOWN, ("c", "r")),
    NodeOutcome("b", "Relu", Outcome.KNOWN, ("c", "r")),
    NodeOutcome("shape", "Shape", Outcome.FOLDED),
    NodeOutcome("det", "Det", Outcome.OPAQUE, ("det",), "Det is not an operator of the library"),
    NodeOutcome("gather", "Gather", Outcome.FOLDED),
)


def test_nodes_are_counted_by_what_became_of_them() -> None:
    assert counted(OUTCOMES) == {"nodes": 6, "known": 3, "opaque": 1, "folded": 2, "outcomes": OUTCOMES}
    assert counted(()) == {"nodes": 0, "known": 0, "opaque": 0, "folded": 0, "outcomes": ()}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "0 nodes: 0 known, 0 opaque, 0 folded\nnot compared with the original: "),
        (
            {"nodes": 1, "known": 1, "not_compared_because": "the links are missing"},
            "1 node: 1 known, 0 opaque, 0 folded\nnot compared with the original: the links are missing",
        ),
        (
            {
                "facts": "SRVGG, scale 2", "nodes": 9, "known": 4, "opaque": 3, "folded": 2, "templates": {"block": 2, "head": 1},
                "max_abs_difference": 0.0, "max_rel_difference": 0.0, "warnings": ("one", "two"), "size_note": "one size",
            },
            "SRVGG, scale 2\n9 nodes: 4 known, 3 opaque, 2 folded\ntemplate block: 2 instances\ntemplate head: 1 instances\n"
            "equal to the original, bit for bit\nwarning: one\nwarning: two\nwarning: one size",
        ),
        (
            {"max_abs_difference": 1e-9, "max_rel_difference": 0.0, "warnings": ("only",)},
            "0 nodes: 0 known, 0 opaque, 0 folded\nlargest difference to the original: 1e-09 (0 relative)\nwarning: only",
        ),
        (
            {"max_abs_difference": 0.5, "max_rel_difference": 0.0625},
            "0 nodes: 0 known, 0 opaque, 0 folded\nlargest difference to the original: 0.5 (0.0625 relative)",
        ),
        (
            {"max_abs_difference": UNBOUNDED, "max_rel_difference": UNBOUNDED},
            "0 nodes: 0 known, 0 opaque, 0 folded\n"
            "differs from the original in the shape of an output, or in values that are NaN or infinite",
        ),
    ],
    ids=["nothing", "not compared", "equal", "nearly equal", "different", "not comparable"],
)  # fmt: skip
def test_the_summary_has_facts_counts_templates_the_comparison_and_warnings(
    fields: dict[str, Any], expected: str
) -> None:
    assert ImportReport("model.onnx", **fields).summary() == expected


@pytest.mark.parametrize(
    ("relative", "agrees"),
    [(None, True), (0.0, True), (TOLERANCE, True), (TOLERANCE * 1.01, False), (UNBOUNDED, False)],
)
def test_a_document_agrees_up_to_the_tolerance(relative: float | None, agrees: bool) -> None:
    assert TOLERANCE == 1e-4
    assert ImportReport("a", max_rel_difference=relative).agrees is agrees


def test_the_note_about_the_size_follows_the_warnings() -> None:
    assert ImportReport("a").notes() == ()
    assert ImportReport("a", size_note="size").notes() == ("size",)
    assert ImportReport("a", warnings=("w",)).notes() == ("w",)
    assert ImportReport("a", warnings=("w", "v"), size_note="size").notes() == ("w", "v", "size")


def test_tensors_are_named_by_their_first_place_and_copies_are_warned_about() -> None:
    tensors = {"w": ("a.kernel", "b.kernel", "c.kernel"), "b": ("a.bias",), "v": ("d.kernel", "e.kernel")}
    assert named_tensors(tensors, ["before"]) == {
        "weights": {"w": "a.kernel", "b": "a.bias", "v": "d.kernel"},
        "warnings": (
            "before",
            "the original has one tensor 'w' for a.kernel, b.kernel, c.kernel; the document has copies",
            "the original has one tensor 'v' for d.kernel, e.kernel; the document has copies",
        ),
    }
    assert named_tensors({}, ()) == {"weights": {}, "warnings": ()}


@pytest.mark.parametrize(("count", "more"), [(5, None), (6, 1), (9, 4)])
def test_only_the_first_five_copies_are_named(count: int, more: int | None) -> None:
    tensors = {f"w{number}": (f"a{number}.kernel", f"b{number}.kernel") for number in range(count)}
    warnings = named_tensors({"single": ("s.kernel",), **tensors}, ())["warnings"]
    assert [text.split("'")[1] for text in warnings[:5]] == [f"w{number}" for number in range(5)]
    expected = [] if more is None else [f"{more} more tensors of the original have copies"]
    assert list(warnings[5:]) == expected


def test_the_report_as_json_has_every_field() -> None:
    report = ImportReport(
        source="model.onnx", producer="pytorch 2.9", opset=20, facts="facts", **counted(OUTCOMES[-3:]), templates={"block": 2},
        max_abs_difference=0.5, max_rel_difference=0.25, size_note="size", warnings=("w",), weights={"conv.weight": "c.kernel"},
        cases=(ComparedCase({"x": (1, 3, 8, 8)}, 0.5, 0.25, "y"),),
    )  # fmt: skip
    text = report_json(report)
    assert text.endswith(b"\n}\n")
    assert b'\n  "source": "model.onnx"' in text
    nodes = [
        {"node": "shape", "type": "Shape", "outcome": "folded", "layers": [], "reason": ""},
        {
            "node": "det", "type": "Det", "outcome": "opaque", "layers": ["det"],
            "reason": "Det is not an operator of the library",
        },
        {"node": "gather", "type": "Gather", "outcome": "folded", "layers": [], "reason": ""},
    ]  # fmt: skip
    assert json.loads(text) == {
        "source": "model.onnx", "producer": "pytorch 2.9", "opset": 20, "facts": "facts", "nodes": 3, "known": 0,
        "opaque": 1, "folded": 2, "templates": {"block": 2}, "max_abs_difference": 0.5, "max_rel_difference": 0.25,
        "not_compared_because": "", "size_note": "size", "warnings": ["w"], "weights": {"conv.weight": "c.kernel"},
        "cases": [
            {"inputs": {"x": [1, 3, 8, 8]}, "max_abs_difference": 0.5, "max_rel_difference": 0.25, "output": "y"}
        ],
        "outcomes": nodes,
    }  # fmt: skip


def test_a_difference_that_is_not_comparable_is_a_number_in_json() -> None:
    assert sys.float_info.max == UNBOUNDED
    text = report_json(ImportReport("a", max_abs_difference=UNBOUNDED, max_rel_difference=UNBOUNDED))
    assert json.loads(text)["max_rel_difference"] == sys.float_info.max
