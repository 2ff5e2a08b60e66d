"""Noise and mix by their own words in the design."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_oracles import ALL, Case, random_inputs

import samples
from analysis_layers.mix import SELECTIONS, Mix
from analysis_layers.noise import KINDS, SCALES, Noise, scale_text
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import BATCH, Role, ShapeError, TensorType, image
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


def test_one_noise_for_all_channels_needs_channels() -> None:
    vector = np.zeros(7, np.float32)
    for kind in ("gaussian", "uniform", "salt_and_pepper"):
        made = Noise(kind=kind, mono=True).evaluate([vector])[0]
        assert made.shape == vector.shape


def test_salt_and_pepper_are_equally_frequent_and_all_of_it_at_1() -> None:
    grey = np.full((1, 1, 200, 200), 0.5, np.float32)
    made = Noise(kind="salt_and_pepper", scale=0.4).evaluate([grey])[0]
    assert [np.mean(made == value).round(2) for value in (0, 0.5, 1)] == pytest.approx([0.2, 0.6, 0.2], abs=0.01)
    assert set(np.unique(Noise(kind="salt_and_pepper", scale=1.0).evaluate([grey])[0])) == {0, 1}


def test_noise_of_an_image_needs_height_and_width() -> None:
    for kind in ("jpeg", "blur"):
        volume = TensorType((BATCH, 8, 8))
        assert Noise(kind=kind).infer([volume]) == volume
        with pytest.raises(ShapeError):
            Noise(kind=kind).infer([TensorType((BATCH, 8))])


def test_no_noise_changes_nothing() -> None:
    for kind in KINDS:
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


def test_a_split_spreads_what_has_one_channel_or_one_pixel() -> None:
    a, b = np.zeros((1, 1, 1, 1), np.float32), np.arange(30, dtype=np.float32).reshape(1, 2, 3, 5) + 1
    for selection, kept in (("v_split", np.s_[..., 2:]), ("h_split", np.s_[:, :, 2:])):
        made = Mix(selection=selection, amount=0.4).evaluate([a, b])[0]
        assert made.shape == b.shape
        assert np.array_equal(made[kept], b[kept])
        assert np.count_nonzero(made) == b[kept].size


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


def test_the_slider_of_the_seed_reaches_every_seed() -> None:
    seed = next(option for option in Noise().options() if option.param == "seed")
    assert (seed.min, seed.max, seed.step) == (0, 2**31 - 1, 1)


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
    session.set_input("in", np.full((1, 1, 4, 4), np.inf, np.float32), is_image=False)
    with pytest.raises(DiagnosticError) as caught:
        session.run()
    assert [(d.code, d.layer) for d in caught.value.diagnostics] == [("watch-stopped", "guard")]


@pytest.mark.parametrize("level", [0.02, 0.5, 4.0])
@pytest.mark.parametrize("scale", [0.05, 0.5])
def test_poisson_has_the_moments_of_counts(level: float, scale: float) -> None:
    x = np.full((1, 3, 128, 96), level, np.float32)
    result = Noise(kind="poisson", scale=scale, seed=4).evaluate([x])[0].astype(np.float64)
    counts = result / scale**2
    assert np.allclose(counts, np.rint(counts), atol=1e-3)
    assert counts.min() >= 0
    mean = level / scale**2
    assert counts.mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / x.size) + 0.01)
    assert counts.var() == pytest.approx(mean, rel=0.05)
    none = np.mean(counts == 0)
    assert none == pytest.approx(np.exp(-mean), abs=0.01)


def test_another_kind_of_noise_keeps_a_scale_of_the_same_meaning() -> None:
    gaussian = Noise(scale=0.3)
    assert gaussian.also_set("kind", "uniform") == {}
    assert gaussian.also_set("seed", 3) == {}
    assert gaussian.also_set("kind", "blur") == {"scale": 1.5}
    assert Noise(kind="blur", scale=4.0).also_set("kind", "gaussian") == {"scale": 25 / 255}
    docs = {Noise(kind=kind).options()[1].doc for kind in KINDS}
    assert len(docs) == len(KINDS)
    assert all(0 < scale.usual < scale.most for scale in SCALES.values())


def test_levels_of_an_8_bit_image_are_written_as_such() -> None:
    texts = [scale_text("gaussian", 25 / 255), scale_text("gaussian", 0.1), scale_text("gaussian", 0.0)]
    assert texts == ["25/255", "0.1", "0"]
    assert scale_text("blur", 1.0) == "1"  # pixels
    assert Noise(scale=25 / 255).summary() == "gaussian 25/255"


def test_speckle_grows_with_brightness() -> None:
    x = np.concatenate([GREY, GREY * 0, GREY * 4])
    result = Noise(kind="speckle", scale=0.2).evaluate([x])[0] - x
    assert result[0].std() == pytest.approx(0.1, rel=0.05)
    assert not result[1].any()
    assert result[2].std() == pytest.approx(0.4, rel=0.05)


def test_jpeg_blocks_against_scipy_free_oracle() -> None:
    """One block computed by the definition of the transform, coefficient by coefficient."""
    rng = np.random.default_rng(0)
    x = rng.random((1, 1, 8, 8), np.float32)
    made = Noise(kind="jpeg", scale=0.1).evaluate([x])[0][0, 0]
    from PIL import Image

    from analysis_layers.degrade import _CHROMA_STEPS, _LUMA_STEPS

    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", quality=50)  # libjpeg takes the tables of the standard as they are
    luma, chroma = Image.open(file).quantization.values()
    assert np.array_equal(np.ravel(_LUMA_STEPS), luma)
    assert np.array_equal(np.ravel(_CHROMA_STEPS), chroma)

    shifted = x[0, 0].astype(np.float64) * 255 - 128
    back = np.full((8, 8), 128.0)
    n = np.arange(8)
    for v in range(8):
        for u in range(8):
            across, down = np.cos((2 * n + 1) * u * np.pi / 16), np.cos((2 * n + 1) * v * np.pi / 16)
            base = np.outer(down, across) * (0.5 if u else 8**-0.5) * (0.5 if v else 8**-0.5)
            back += np.rint((shifted * base).sum() / _LUMA_STEPS[v][u]) * _LUMA_STEPS[v][u] * base
    np.testing.assert_allclose(made, back / 255, atol=1e-5)
    odd = Noise(kind="jpeg", scale=0.1).evaluate([rng.random((2, 3, 13, 21), np.float32)])[0]
    assert odd.shape == (2, 3, 13, 21)


@pytest.mark.parametrize(("subsampling", "pillow"), [("4:4:4", 0), ("4:2:0", 2)])
@pytest.mark.parametrize("size", [(64, 96), (53, 77)])
def test_jpeg_noise_of_a_photo_is_that_of_a_file(subsampling: str, pillow: int, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(samples.PHOTOGRAPHS / "coffee.jpg") as file:
        photo = np.asarray(file.convert("RGB"))[100 : 100 + size[0], 200 : 200 + size[1]]
    stream = io.BytesIO()
    image.fromarray(photo).save(stream, "JPEG", quality=50, subsampling=pillow)
    expected = np.asarray(image.open(stream), np.float64)
    x = (photo.transpose(2, 0, 1)[None] / 255).astype(np.float32)
    made = Noise(kind="jpeg", scale=0.1, subsampling=subsampling).evaluate([x])[0][0].transpose(1, 2, 0) * 255
    error = np.abs(np.clip(made, 0, 255) - expected)
    assert error.mean() < 1.0  # of 255; a file rounds to whole levels in between
    assert np.abs(photo - expected).mean() > 3 * error.mean()
    other = Noise(kind="jpeg", scale=0.1, subsampling="4:2:0" if pillow == 0 else "4:4:4").evaluate([x])[0]
    assert np.abs(np.clip(other[0].transpose(1, 2, 0) * 255, 0, 255) - expected).mean() > 1.3 * error.mean()


def test_blur_keeps_the_mean_and_spreads_a_point() -> None:
    point = np.zeros((1, 1, 31, 41), np.float32)
    point[0, 0, 15, 20] = 1
    spread = Noise(kind="blur", scale=2.0).evaluate([point])[0][0, 0].astype(np.float64)
    assert spread.sum() == pytest.approx(1, abs=1e-5)
    ys, xs = np.mgrid[:31, :41]
    assert (spread * (xs - 20) ** 2).sum() == pytest.approx(4, rel=0.06)
    assert (spread * (ys - 15) ** 2).sum() == pytest.approx(4, rel=0.06)
    np.testing.assert_allclose(Noise(kind="blur", scale=3.0).evaluate([GREY])[0], GREY, atol=1e-6)
    with pytest.raises(ShapeError, match="height and width"):
        Noise(kind="blur").infer_checked((TensorType((BATCH, 5)),))


def test_more_ways_to_mix() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 1, 3, 7, 9), np.float32)
    board = Mix(selection="checkerboard", cell=2).evaluate([a, b])[0]
    for y in range(7):
        for x in range(9):
            assert np.array_equal(board[..., y, x], (b if (y // 2 + x // 2) % 2 else a)[..., y, x])
    assert np.allclose(Mix(selection="amplified_difference", gain=3.0).evaluate([a, b])[0], 3 * np.abs(a - b))
    assert np.allclose(Mix(selection="signed_difference", gain=1.0).evaluate([a, b])[0], 0.5 + (a - b) / 2)
    assert np.array_equal(Mix(selection="flicker").evaluate([a, b])[0], a)
    assert np.array_equal(Mix(selection="flicker", phase=True).evaluate([a, b])[0], b)
    recipe = Mix(selection="custom", amount=0.5, recipe="where(x < alpha, a, b) * y").evaluate([a, b])[0]
    shown = np.where(np.linspace(0, 1, 9) < 0.5, a, b) * np.linspace(0, 1, 7)[:, None]
    np.testing.assert_allclose(recipe, shown, rtol=1e-5)
    with pytest.raises(ShapeError, match="height and width"):
        Mix(selection="custom", recipe="a * x").infer_checked((TensorType((BATCH, 5)), TensorType((BATCH, 5))))


def test_new_parameters_are_written_only_when_set() -> None:
    assert not {"cell", "gain", "phase"} & set(Mix().texts(all=False))
    assert Mix(cell=8).texts(all=False)["cell"] == "8"


ANALYSIS = [case for case in ALL if case.operator.role is Role.ANALYSIS]


@pytest.mark.parametrize("case", ANALYSIS, ids=lambda case: case.name)
def test_results_have_the_types_that_inference_says(case: Case) -> None:
    values = [value.numpy() for value in random_inputs(case.types, 2)]
    made = case.operator.evaluate(values)
    types = case.operator.infer_checked(case.types)
    assert [value.shape for value in made] == [kind.concrete(2) for kind in types]
    assert [value.dtype for value in made] == [kind.dtype.value for kind in types]
