"""Results computed another way: by definition, by brute force, or with figures from the literature."""

from __future__ import annotations

import colorsys
import itertools
import math

import numpy as np
import pytest
import torch
from operator_oracles import case_of, made, random, result, runner

from analysis_layers.difference import Difference
from analysis_layers.histogram import Histogram
from analysis_layers.statistics import Statistics
from analysis_layers.watch import Watch
from analysis_layers.zero_embed import ZeroEmbed
from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import BATCH, Symbol, TensorType
from designer.metrics import psnr, ssim

# --- losses ------------------------------------------------------------------------------------------------------


def test_losses_of_pictures_by_definition() -> None:
    x, t = random(2, 3, 5, 6), random(2, 3, 5, 6, seed=1)
    error = (x - t).double()
    expected = {
        "l1_loss": error.abs().mean(),
        "mse_loss": (error**2).mean(),
        "charbonnier_loss": (error**2 + 1e-6).sqrt().mean(),
        "huber_loss": torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5).mean(),
        "gradient_loss": (error[:, :, 1:] - error[:, :, :-1]).abs().mean()
        + (error[..., 1:] - error[..., :-1]).abs().mean(),
    }
    for name, value in expected.items():
        assert result(made(name), x, t)[0].item() == pytest.approx(value.item(), rel=1e-5), name
        halved = result(made(name, weight=0.5), x, t)[0].item()
        assert halved == pytest.approx(value.item() / 2, rel=1e-5), name


def test_cross_entropy_and_binary_cross_entropy_by_definition() -> None:
    scores = random(3, 4, 2, 2) * 5
    labels = torch.randint(0, 4, (3, 2, 2), generator=torch.Generator().manual_seed(1))
    shares = scores.double().softmax(1)
    right = shares.gather(1, labels[:, None])
    assert result(made("cross_entropy_loss"), scores, labels)[0].item() == pytest.approx(-right.log().mean().item())
    answers = (random(3, 4, 2, 2, seed=2) > 0.5).float()
    p = scores.double().sigmoid()
    expected = -(answers * p.log() + (1 - answers) * (1 - p).log()).mean()
    assert result(made("bce_loss"), scores, answers)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    plain = result(made("bce_loss", logits=False), scores.sigmoid(), answers)[0].item()
    assert plain == pytest.approx(expected.item(), rel=1e-4)


def test_ctc_by_trying_every_path() -> None:
    """The probability of a target is the sum over all paths that spell it: 4 steps of 3 classes are 81 paths."""
    steps, classes, blank = 4, 3, 0
    scores = random(1, steps, classes) * 3
    target = torch.tensor([[1, 2]])
    logs = scores.double().log_softmax(2)[0]
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        spelled = [s for s, _ in itertools.groupby(path) if s != blank]
        if spelled == [1, 2]:
            total += math.exp(sum(logs[i, s].item() for i, s in enumerate(path)))
    loss = result(made("ctc_loss", reduction="sum"), scores, target)[0].item()
    assert loss == pytest.approx(-math.log(total), rel=1e-5)
    longer = torch.cat([scores, random(1, 3, classes, seed=5)], dim=1)
    cut = result(made("ctc_loss", reduction="sum"), longer, target, torch.tensor([4]), torch.tensor([2]))[0].item()
    assert cut == pytest.approx(loss, rel=1e-5)


def brute_ssim(x: np.ndarray, y: np.ndarray, side: int = 11, sigma: float = 1.5) -> float:
    half = side // 2
    window = np.array([[math.exp(-(i * i + j * j) / (2 * sigma**2)) for i in range(-half, half + 1)]
                       for j in range(-half, half + 1)])  # fmt: skip
    window /= window.sum()
    found = []
    for top in range(x.shape[0] - side + 1):
        for left in range(x.shape[1] - side + 1):
            a, b = x[top : top + side, left : left + side], y[top : top + side, left : left + side]
            ma, mb = (window * a).sum(), (window * b).sum()
            va, vb = (window * (a - ma) ** 2).sum(), (window * (b - mb) ** 2).sum()
            cov = (window * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    return float(np.mean(found))


def test_ssim_by_definition() -> None:
    x, y = random(1, 1, 14, 13), random(1, 1, 14, 13, seed=1) * 0.3
    expected = brute_ssim(x[0, 0].double().numpy(), (x + y)[0, 0].double().numpy())
    assert 0.3 < expected < 0.99
    assert 1 - result(made("ssim_loss"), x, x + y)[0].item() == pytest.approx(expected, abs=1e-4)
    clipped = brute_ssim(*(t[0, 0].clip(0, 1).double().numpy() for t in (x, x + y)))
    assert ssim(x.numpy(), (x + y).numpy()) == pytest.approx(clipped, abs=1e-5)
    assert result(made("ssim_loss"), x, x)[0].item() == pytest.approx(0, abs=1e-5)


def test_training_only_operators_work_while_training_and_vanish_afterwards() -> None:
    x = torch.ones(400, 3, 2, 2)
    for name in ("dropout", "dropout_2d", "drop_path"):
        module = runner(case_of(made(name, probability=0.25), [TensorType((BATCH, 3, 2, 2))]))
        assert torch.equal(module(x)[0], x)
        module.train()
        torch.manual_seed(0)
        trained = module(x)[0]
        assert torch.unique(trained).tolist() == pytest.approx([0.0, 4 / 3])
        assert trained.mean().item() == pytest.approx(1.0, abs=0.1)
        if name == "drop_path":
            assert all(len(torch.unique(sample)) == 1 for sample in trained)
        if name == "dropout_2d":
            assert all(len(torch.unique(channel)) == 1 for sample in trained for channel in sample)


# --- colour ------------------------------------------------------------------------------------------------------


def convert(x: torch.Tensor, source: str, target: str) -> torch.Tensor:
    return result(made("colorconversion", source=source, target=target), x)[0]


def test_hsv_equals_the_standard_library() -> None:
    x = random(1, 3, 6, 7)
    x[0, :, 0, 0] = 0.5  # gray
    x[0, :, 0, 1] = 0  # black
    x[0, :, 0, 2] = torch.tensor([1.0, 0, 0])
    hsv = convert(x, "rgb", "hsv")
    for row, column in itertools.product(range(6), range(7)):
        expected = colorsys.rgb_to_hsv(*x[0, :, row, column].tolist())
        assert hsv[0, :, row, column].tolist() == pytest.approx(expected, abs=1e-6)
    assert torch.allclose(convert(hsv, "hsv", "rgb"), x, atol=1e-6)


def test_known_colours() -> None:
    colours = torch.tensor([[1.0, 1, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]).T.reshape(1, 3, 2, 2)
    lab = convert(colours, "rgb", "lab").reshape(3, 4).T
    known = [[100, 0, 0], [53.24, 80.09, 67.20], [32.30, 79.19, -107.86], [0, 0, 0]]
    assert np.allclose(lab.numpy(), known, atol=0.03)
    ycbcr = convert(colours, "rgb", "ycbcr").reshape(3, 4).T
    known = [[1, 0.5, 0.5], [0.299, 0.331264, 1.0], [0.114, 1.0, 0.418688], [0, 0.5, 0.5]]
    assert np.allclose(ycbcr.numpy(), known, atol=1e-5)
    linear = convert(torch.full((1, 3, 1, 1), 0.5), "rgb", "linear_rgb")
    assert linear.flatten().tolist() == pytest.approx([0.214041] * 3, abs=1e-5)
    assert convert(colours, "rgb", "gray").flatten().tolist() == pytest.approx([1, 0.299, 0.114, 0], abs=1e-6)


@pytest.mark.parametrize("space", ["bgr", "ycbcr", "hsv", "lab", "linear_rgb"])
def test_there_and_back(space: str) -> None:
    x = random(2, 3, 4, 5)
    assert torch.allclose(convert(convert(x, "rgb", space), space, "rgb"), x, atol=2e-5)


# --- others --------------------------------------------------------------------------------------------------------


def test_pooling_norms_by_definition() -> None:
    x = random(1, 1, 4, 4) - 0.5
    for norm in (1, 2, 3):
        blocks = x.reshape(1, 1, 2, 2, 2, 2).permute(0, 1, 2, 4, 3, 5).reshape(1, 1, 2, 2, 4).abs()
        expected = (blocks**norm).sum(-1) ** (1 / norm)
        assert torch.allclose(result(made("pooling", operation="lp", norm=norm), x)[0], expected, atol=1e-6)


def test_positions_by_formula() -> None:
    encoded = result(made("positional_encoding"), torch.zeros(1, 5, 6))[0][0]
    for place, pair in itertools.product(range(5), range(3)):
        angle = place / 10000 ** (2 * pair / 6)
        assert encoded[place, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert encoded[place, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_gram_matrix_by_definition() -> None:
    x = random(2, 3, 4, 5)
    expected = torch.einsum("nchw,ndhw->ncd", x, x) / 60
    assert torch.allclose(result(made("gram_matrix"), x)[0], expected, atol=1e-6)


def test_blur_keeps_a_plain_and_gradient_sees_a_ramp() -> None:
    plain = torch.full((1, 2, 12, 12), 0.3)
    assert torch.allclose(result(made("gaussian_blur", sigma=1.2), plain)[0], plain, atol=1e-6)
    ramp = (torch.arange(6.0) * 0.1).expand(1, 1, 6, 6)
    for kind in ("sobel", "scharr", "prewitt", "central"):
        dx, dy = result(made("image_gradient", kind=kind), ramp)
        assert torch.allclose(dx[..., 1:-1], torch.tensor(0.1), atol=1e-6)
        assert torch.allclose(dy, torch.tensor(0.0), atol=1e-6)


def test_bilinear_work_by_counting() -> None:
    operator = made("bilinear", features=5)
    types = [TensorType((Symbol("N"), 3)), TensorType((Symbol("N"), 4))]
    # for every output: 3 sums of 4 products, then one sum of 3 products
    assert operator.flops(types, operator.infer_checked(types)) == 5 * (3 * 4 * 2 + 3 * 2)


def test_unpooling_puts_maxima_back() -> None:
    reference = random(1, 2, 4, 6)
    pooled = torch.nn.functional.max_pool2d(reference, 2)
    back = result(made("unpooling"), pooled, reference)[0]
    assert torch.equal(torch.where(back != 0, reference, torch.zeros(())), back)
    assert torch.equal(torch.nn.functional.max_pool2d(back, 2), pooled)


def test_pad_to_multiple_works_at_every_size() -> None:
    """The torch form must not depend on the size it was made for: training uses other patches."""
    module = runner(case_of(made("pad_to_multiple", multiple=4), [TensorType((BATCH, 2, 5, 6))]))
    for height, width in ((5, 6), (8, 8), (9, 3), (1, 13)):
        x = random(1, 2, height, width)
        wanted = torch.nn.functional.pad(x, (0, -width % 4, 0, -height % 4), mode="replicate")
        assert torch.equal(module(x)[0], wanted)


# --- analysis layers -------------------------------------------------------------------------------------------------


def test_psnr_by_definition() -> None:
    a = np.zeros((2, 1, 4, 4), np.float32)
    b = a.copy()
    b[1] += 0.1
    assert psnr(a[0], b[0]) == np.inf
    assert psnr(a[1], b[1]) == pytest.approx(20, abs=1e-4)
    shown, decibels, similar = Difference(gain=2.0).evaluate([a, b])
    assert decibels.reshape(-1).tolist() == pytest.approx([np.inf, 20], abs=1e-4)
    assert shown.max() == pytest.approx(0.2)
    assert decibels.shape == similar.shape == (2, 1, 1, 1)
    assert similar[0] == 1
    assert Difference(kind="signed").evaluate([a, b])[0].min() == pytest.approx(-0.1)


def test_histogram_and_statistics() -> None:
    x = np.array([[[[-1.0, 0.0, 0.2, 0.6, 0.9, 2.0, np.nan, np.inf]]]], np.float32)
    same, shares = Histogram(ranges=4).evaluate([x])
    assert same is x
    assert shares[0, 0, 0].tolist() == pytest.approx([3 / 7, 0, 1 / 7, 3 / 7])
    figures = Statistics().evaluate([x[..., :6]])[1][0, 0, 0]
    assert figures.tolist() == pytest.approx([0.45, np.std(x[..., :6]), -1, 2, 1 / 6])


def test_watch_stops_and_says_where() -> None:
    x = np.zeros((1, 2, 3, 4), np.float32)
    assert Watch().evaluate([x])[0] is x
    x[0, 1, 2, 3] = np.nan
    with pytest.raises(DiagnosticError, match=r"value nan at \(0, 1, 2, 3\) is NaN or infinite"):
        Watch().evaluate([x])
    x[0, 1, 2] = 7
    with pytest.raises(DiagnosticError, match=r"is outside -1\.\.1, and 3 more"):
        Watch(bounds=True, low=-1.0, high=1.0).evaluate([x])


def test_zero_embed_mutes_or_solos() -> None:
    x = np.ones((1, 3, 2, 2), np.float32)
    assert ZeroEmbed(channels=(1,)).evaluate([x])[0].sum(axis=(0, 2, 3)).tolist() == [4, 0, 4]
    assert ZeroEmbed(channels=(1,), keep_only=True).evaluate([x])[0].sum(axis=(0, 2, 3)).tolist() == [0, 4, 0]


def test_a_yes_counts_more_also_where_x_holds_probabilities() -> None:
    x, target = random(2, 3), random(2, 3, seed=1)
    by_hand = -(5 * target * torch.log(x) + (1 - target) * torch.log(1 - x)).mean()
    (weighted,) = result(made("bce_loss", logits=False, pos_weight=(5.0,)), x, target)
    torch.testing.assert_close(weighted, by_hand)
    (scores,) = result(made("bce_loss", pos_weight=(5.0,)), torch.logit(x), target)
    torch.testing.assert_close(weighted, scores)
