"""Amounts of several rows together: groups of rows, and what the layers of a network are colored with."""

from __future__ import annotations

import pytest

from designer.profiling.grouping import combined
from designer.profiling.heat import METRICS, heat
from designer.profiling.schema import OperatorProfile, ProfileRun


def row(*layers, time_ms=1.0, **more) -> OperatorProfile:
    return OperatorProfile(layers, "convolution", time_ms, **more)


def run(*rows) -> ProfileRun:
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x8", None, None, rows)


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("memory_bytes", (100, 300, 200), 300),  # one after the other
        ("memory_bytes", (100, None, 200), 200),
        ("memory_bytes", (None, None, None), None),
        ("roof_ms", (0.5, 0.25, 0.0), 0.75),
        ("roof_ms", (0.5, None, 0.0), None),
        ("saving_ms", (0.5, 0.25, 0.0), 0.75),
        ("saving_ms", (0.5, None, 0.0), None),
        ("flops", (1, 2, 3), 6),
        ("bytes", (1, 2, 3), 6),
        ("learned", (1, 2, 3), 6),
        ("bound", ("compute", "memory", "compute"), "memory"),
    ],
)
def test_rows_combined(field, values, expected):
    rows = [row(str(number), time_ms=1.0 + (number == 1), **{field: value}) for number, value in enumerate(values)]
    total = combined(rows)
    assert getattr(total, field) == expected
    assert (total.layers, total.time_ms) == (("0", "1", "2"), 4.0)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("flops", {"block": 5, "b": 2, "c": 4}), ("time", {"block": 0.003, "b": 0.001, "c": 0.001})],
)
def test_a_row_counts_once_for_an_instance_that_shows_several_of_its_layers(metric, expected):
    rows = (
        row("block/a", "block/b", "b", flops=2),
        row("block/a", time_ms=2.0, flops=3),
        row("hidden/x", "c", flops=4),
    )
    shown = {"block": "block", "hidden": ""}
    found = heat(run(*rows), METRICS[metric], lambda layer: shown.get(layer.partition("/")[0], layer))
    assert found.values == pytest.approx(expected)


def test_amounts_that_do_not_add_up_are_the_largest():
    rows = (row("block/a", roof_ms=0.5), row("block/b", time_ms=3.0, roof_ms=1.0), row("block/c"))
    assert heat(run(*rows), METRICS["roof"], lambda layer: "block").values == {"block": 3.0}
