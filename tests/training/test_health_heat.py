"""The health of layers as colors: scales, ends, and layers that are displayed as one."""

from __future__ import annotations

from math import log

import pytest

from designer.training.health import METRICS, Health, HealthHeat, Problem, health_at, health_heat

HEALTH = Health(
    30,
    {
        "conv": {"gradient": 100.0, "dead": 0.5},
        "unet.a": {"gradient": 1.0, "dead": 0.125},
        "unet.b": {"gradient": 1e-9, "dead": 0.25},
        "out": {"gradient": None},
        "hidden": {"gradient": 1e6, "dead": 1.0},
    },
    (Problem("unet.b", "dead", 7), Problem("unet.a", "frozen", 9), Problem("hidden", "exploding", 1)),
)


def in_sight(layer: str) -> str:
    return "" if layer == "hidden" else layer.partition(".")[0]


def test_a_logarithmic_scale_spans_at_most_six_orders_of_magnitude():
    heat = health_heat(HEALTH, "gradient", lambda layer: "" if layer == "hidden" else layer)
    assert heat.values == {"conv": 100.0, "unet.a": 1.0, "unet.b": 1e-9}
    assert heat.logarithmic
    assert heat.title == "Gradient norm"
    assert heat.ends == ("0.000100", "100")
    assert heat.share("conv") == 1.0
    assert heat.share("unet.a") == pytest.approx(4 / 6)
    assert heat.share("unet.b") == 0.0


def test_a_narrow_logarithmic_scale_starts_at_the_smallest_positive_value():
    heat = HealthHeat("", {"a": 0.0, "b": 2.0, "c": 4.0, "d": 32.0}, {}, logarithmic=True)
    assert heat.ends == ("2.00", "32.0")
    assert [heat.share(name) for name in "abcd"] == [0.0, 0.0, pytest.approx(log(2) / log(16)), 1.0]
    assert HealthHeat("", {"a": 3.0}, {}, logarithmic=True).share("a") == 1.0


def test_zeros_alone_are_the_smallest_value_of_a_logarithmic_scale():
    assert HealthHeat("", {"a": 0.0, "b": 0.0}, {}, logarithmic=True).share("a") == 0.0


def test_a_linear_scale_starts_at_zero():
    heat = health_heat(HEALTH, "dead")
    assert not heat.logarithmic
    assert heat.ends == ("0", "1.00")
    assert [heat.share(name) for name in ("conv", "unet.a", "hidden")] == [0.5, 0.125, 1.0]
    assert HealthHeat("", {"a": 0.0}, {}).share("a") == 0.0
    assert HealthHeat("", {"a": 0.5, "b": 0.25}, {}).share("b") == 0.5


def test_layers_displayed_as_one_have_the_largest_value_and_the_first_problem():
    heat = health_heat(HEALTH, "dead", in_sight)
    assert heat.values == {"conv": 0.5, "unet": 0.25}
    assert heat.problems == {"unet": "dead units since step 7"}
    assert health_heat(HEALTH, "gradient", in_sight).values == {"conv": 100.0, "unet": 1.0}  # the first is larger


def test_another_text_shows_the_problems_only():
    heat = health_heat(HEALTH, "problems")
    assert heat.title == "Problems of the run"
    assert heat.values == {}
    assert not heat.logarithmic
    assert heat.problems["hidden"] == "exploding gradient or weights since step 1"
    assert Problem("a", "added later", 3).text == "added later since step 3"


def test_which_metrics_are_logarithmic():
    assert {name: metric.logarithmic for name, metric in METRICS.items()} == {
        "gradient": True,
        "update": True,
        "activation": True,
        "dead": False,
        "saturated": False,
    }


def test_the_measurement_at_a_step_is_the_last_one_that_is_not_after_it():
    measured = [Health(10), Health(20), Health(30)]
    assert [found.step for found in (health_at(measured, 10), health_at(measured, 29), health_at(measured))] == [
        10,
        20,
        30,
    ]
    assert health_at(measured, 9) is None
    assert health_at([]) is None
