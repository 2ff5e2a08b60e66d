"""Problems, statistics and scales of health."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.training.health import KINDS, METRICS, Health, HealthFile, HealthHeat, Problem
from designer.training.watched_run import RunState


def test_problems_statistics_and_states_have_their_titles() -> None:
    assert {kind: Problem("conv", kind, 30).text for kind in (*KINDS, "new_kind")} == {
        "not_finite": "NaN or infinite values since step 30",
        "exploding": "exploding gradient or weights since step 30",
        "vanishing": "vanishing gradient since step 30",
        "dead": "dead units since step 30",
        "frozen": "weights do not change since step 30",
        "saturated": "saturated units since step 30",
        "new_kind": "new_kind since step 30",
    }
    assert {metric.id: metric.title for metric in METRICS.values()} == {
        "gradient": "Gradient norm",
        "update": "Update-to-weight ratio",
        "activation": "Mean absolute activation",
        "dead": "Share of dead units",
        "saturated": "Share of saturated values",
    }
    assert [(state.value, state.text, state.trains) for state in RunState] == [
        ("starting", "starting", True),
        ("running", "running", True),
        ("paused", "paused", True),
        ("stopped", "stopped", False),
        ("finished", "finished", False),
        ("failed", "failed", False),
        ("ended", "interrupted", False),
        ("missing", "deleted", False),
    ]


@pytest.mark.parametrize(
    ("values", "logarithmic", "ends", "shares"),
    [
        ({}, False, ("0", "0"), []),
        ({}, True, ("1.00", "1.00"), []),
        ({"a": 0.0}, True, ("1.00", "1.00"), [0.0]),
        ({"a": 5.0}, True, ("5.00", "5.00"), [1.0]),
        ({"a": 1.0, "b": 100.0, "c": 10.0, "d": 0.0}, True, ("1.00", "100"), [0.0, 1.0, 0.5, 0.0]),
        ({"a": 1e-9, "b": 1.0}, True, ("0.00000100", "1.00"), [0.0, 1.0]),
        ({"a": 2.0, "b": 8.0}, False, ("0", "8.00"), [0.25, 1.0]),
    ],
)
def test_scales_of_health(
    values: dict[str, float], logarithmic: bool, ends: tuple[str, str], shares: list[float]
) -> None:
    heat = HealthHeat("", values, {}, logarithmic)
    assert heat.ends == ends
    assert [heat.share(name) for name in values] == pytest.approx(shares)
    assert (heat.text(0.25), heat.signed) == ("0.250", False)


def test_measurements_of_a_resumed_run_replace_all_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "health.jsonl"
    path.write_text("".join(f'{{"step": {step}}}\n' for step in (10, 20, 30)))
    file = HealthFile(path)
    assert file.read()
    with path.open("a") as stream:
        stream.write('{"step": 15}\n{"step": 25}\n')
    assert file.read()
    assert [health.step for health in file.measured] == [10, 15, 25]
    assert all(health == Health(health.step) for health in file.measured)
