"""Noise and mix by their own words in the design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_layers.mix import SELECTIONS, Mix
from analysis_layers.noise import Noise
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import ShapeError, image
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

GREY = np.full((1, 3, 64, 96), 0.5, np.float32)


def test_gaussian_noise_has_its_moments() -> None:
    result = Noise(scale=0.2, mean=0.1, seed=3).evaluate([GREY])[0] - GREY
    assert abs(result.mean() - 0.1) < 0.01
    assert abs(result.std() - 0.2) < 0.01
    assert len(np.unique(result)) > 10_000


def test_uniform_noise_stays_in_its_range() -> None:
    result = Noise(kind="uniform", scale=0.2).evaluate([GREY])[0] - GREY
    assert result.min() >= -0.2001
    assert result.max() <= 0.2001
    assert abs(result.std() - 0.2 / 3**0.5) < 0.01


def test_salt_and_pepper_sets_the_share_to_black_and_white() -> None:
    result = Noise(kind="salt_and_pepper", scale=0.3).evaluate([GREY])[0]
    assert set(np.unique(result)) == {0.0, 0.5, 1.0}
    assert abs((result == 0).mean() - 0.15) < 0.02
    assert abs((result == 1).mean() - 0.15) < 0.02


def test_the_same_numbers_for_ever() -> None:
    """First values of seed 0: a change here changes every person's pictures."""
    shape = (1, 1, 1, 4)
    zero = np.zeros(shape, np.float32)
    gaussian = Noise(scale=1.0).evaluate([zero])[0].ravel()
    uniform = Noise(kind="uniform", scale=1.0).evaluate([zero])[0].ravel()
    words = np.random.Philox(0).random_raw(2).astype("<u8").view("<u4").astype(np.float64)
    radius = np.sqrt(-2 * np.log((words[::2] + 0.5) / 2**32))
    angle = words[1::2] / 2**32 * 2 * np.pi
    np.testing.assert_allclose(gaussian[::2], radius * np.cos(angle), rtol=1e-5)
    np.testing.assert_allclose(gaussian[1::2], radius * np.sin(angle), rtol=1e-5)
    np.testing.assert_allclose(uniform, words / 2**31 - 1, atol=1e-6)
    np.testing.assert_allclose(gaussian, FIRST_GAUSSIAN, rtol=1e-5)


FIRST_GAUSSIAN = [1.991135, 0.1764478, -0.01749296, 0.3581553]


def test_seed_and_mono() -> None:
    first, same, other = (Noise(seed=s).evaluate([GREY])[0] for s in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    mono = Noise(mono=True).evaluate([GREY])[0]
    assert np.array_equal(mono[:, 0], mono[:, 2])
    assert not np.array_equal(first[:, 0], first[:, 2])


def test_no_noise_changes_nothing() -> None:
    for kind in ("gaussian", "uniform", "salt_and_pepper"):
        assert np.array_equal(Noise(kind=kind, scale=0.0).evaluate([GREY])[0], GREY)


@settings(max_examples=60, database=None, derandomize=True, deadline=None)
@given(st.floats(0, 1), st.integers(1, 40), st.integers(1, 30))
def test_splits_follow_the_formula(amount: float, width: int, height: int) -> None:
    a = np.zeros((1, 2, height, width), np.float32)
    b = np.ones((1, 2, height, width), np.float32)
    upright = Mix(selection="v_split", amount=amount).evaluate([a, b])[0]
    expected = np.broadcast_to(~(np.arange(width) < amount * width), a.shape)
    assert np.array_equal(upright, expected.astype(np.float32))
    level = Mix(selection="h_split", amount=amount).evaluate([a, b])[0]
    expected = np.broadcast_to(~(np.arange(height) < amount * height)[:, None], a.shape)
    assert np.array_equal(level, expected.astype(np.float32))


def test_blend_difference_and_recipes() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 1, 3, 4, 5), np.float32)
    assert np.allclose(Mix(selection="blend", amount=0.25).evaluate([a, b])[0], a * 0.75 + b * 0.25)
    assert np.allclose(Mix(selection="difference").evaluate([a, b])[0], np.abs(a - b))
    custom = Mix(selection="custom", amount=0.5, recipe="alpha * (a - b)")
    assert np.allclose(custom.evaluate([a, b])[0], 0.5 * (a - b), atol=1e-7)
    first = Mix(selection="custom", amount=0.25)
    assert np.allclose(first.evaluate([a, b])[0], a * 0.75 + b * 0.25, atol=1e-6)
    constant = Mix(selection="custom", recipe="0.5").evaluate([a, b])[0]
    assert constant.shape == a.shape


def test_options_follow_the_selection() -> None:
    for selection in SELECTIONS:
        shown = [option.param for option in Mix(selection=selection).options()]
        assert ("recipe" in shown) is (selection == "custom")
    assert [o.param for o in Noise().options()][:2] == ["kind", "scale"]


def test_a_bad_recipe_is_found_while_editing() -> None:
    with pytest.raises(ShapeError, match=r"recipe, at column 5: 'c' is not known") as caught:
        Mix(selection="custom", recipe="a + c").infer_checked((image(), image()))
    assert caught.value.remedy
    Mix(selection="blend", recipe="a + c").infer_checked((image(), image()))


def test_sizes_must_agree() -> None:
    with pytest.raises(ShapeError, match="must have the same size"):
        Mix().infer_checked((image(3, 8, 8), image(3, 8, 9)))
    with pytest.raises(ShapeError, match="must have the same size"):
        Mix().infer_checked((image(3), image(2)))
    assert Mix().infer_checked((image(1), image(3)))[0].shape[1] == 3


def test_a_run_names_the_layer_that_watched() -> None:
    registry = load(entry_points=False)
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "4x4x1"}),
            Layer("guard", "watch", inputs=(Source("in"),)),
            Layer("out", "output", inputs=(Source("guard"),)),
        ]
    )
    session = Session(graph, registry, Weights(), RunOptions(threads=1))
    session.set_input("in", np.full((1, 1, 4, 4), np.inf, np.float32), picture=False)
    with pytest.raises(DiagnosticError) as caught:
        session.run()
    assert [(d.code, d.layer) for d in caught.value.diagnostics] == [("watch-stopped", "guard")]
