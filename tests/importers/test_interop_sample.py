"""A sample of the ONNX backend tests; `make interop` runs all of them."""

from __future__ import annotations

from collections import Counter

from app.checks.interop import outcome_of, page, stored_cases
from designer.operators.registry import Registry


def test_stored_backend_cases_run(registry: Registry) -> None:
    cases = list(stored_cases())[::2]
    outcomes = [outcome_of(case, registry) for case in cases]
    counts = Counter(item.outcome for item in outcomes)
    assert len(outcomes) > 5
    assert [
        item
        for item in outcomes
        if item.outcome == "refused" and "equence" not in item.name and "radient" not in item.name
    ] == []
    assert counts["known"] > 0
    assert "| layers of the library |" in page(outcomes)
