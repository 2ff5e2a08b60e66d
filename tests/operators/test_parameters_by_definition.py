"""Parameters that change what an operator computes, against figures worked out here."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from operator_oracles import REGISTRY, case_of, made, random, randomise, result, runner

from designer.files.weight_random import random_tensor
from designer.files.weights import WeightKey
from designer.graph.types import BATCH, DataType, ShapeError, Size2D, Size3D, TensorType


def test_pooling_with_gaps_and_with_a_divisor_of_its_own() -> None:
    x = torch.arange(36.0).reshape(1, 1, 6, 6)
    wide = result(made("pooling", dilation=Size2D(3, 2), stride=Size2D(1, 1)), -x)[0]
    assert torch.equal(wide[0, 0], -x[0, 0, :4, :3])  # of -x the first value of a window is the largest
    sums = result(made("pooling", operation="average", divisor_override=1), x)[0]
    assert sums[0, 0, 0].tolist() == [0 + 1 + 6 + 7, 2 + 3 + 8 + 9, 4 + 5 + 10 + 11]


@pytest.mark.parametrize(
    ("name", "kernel", "dilation", "pads"),
    [
        ("convolution_1d", 4, 1, [(1, 2)]),
        ("convolution", Size2D(4, 2), Size2D(1, 3), [(1, 2), (1, 2)]),  # (before, after) of rows, then of columns
        ("depthwise_convolution", Size2D(2, 6), Size2D(1, 1), [(2, 3), (0, 1)]),
        ("separable_convolution", Size2D(2, 3), Size2D(3, 2), [(2, 2), (1, 2)]),
        ("weight_standardization", Size2D(4, 3), Size2D(1, 1), [(1, 1), (1, 2)]),
        ("convolution_3d", Size3D(2, 3, 4), Size3D(1, 1, 1), [(1, 2), (1, 1), (0, 1)]),
    ],
)
def test_same_padding_has_the_smaller_half_before(
    name: str, kernel: Any, dilation: Any, pads: list[tuple[int, int]]
) -> None:
    x = random(2, 3, *(9 for _ in pads))
    padded = torch.nn.functional.pad(x, [pad for pair in reversed(pads) for pad in pair])
    results = []
    for padding, image in (("same", x), ("valid", padded)):
        operator = made(name, padding=padding, kernel=kernel, dilation=dilation)
        module = runner(case_of(operator, [TensorType((BATCH, *image.shape[1:]))]))
        with torch.no_grad():
            randomise(module)
            results.append(module(image)[0])
    assert results[0].shape[2:] == x.shape[2:]
    assert torch.allclose(*results, atol=1e-6)


def test_upscaling_with_aligned_corners_keeps_the_corners() -> None:
    x = torch.tensor([[[[0.0, 3.0]]]])
    larger = result(
        made("upscale_concat", factor=Size2D(2, 1), method="bilinear", align_corners=True), x, torch.zeros(1, 1, 1, 4)
    )[0]
    assert larger[0, 0, 0].tolist() == pytest.approx([0, 1, 2, 3])


@pytest.mark.parametrize(
    "factor", [Size2D(41, 1), Size2D(1, 41), Size2D(47, 2), Size2D(3, 83), Size2D(41, 47)], ids=str
)
def test_large_factors_repeat_every_pixel_as_often(factor: Size2D) -> None:
    x = torch.arange(7.0 * 9).reshape(1, 1, 7, 9)
    expected = x.repeat_interleave(factor.height, 2).repeat_interleave(factor.width, 3)
    assert torch.equal(result(made("upsample", factor=factor), x)[0], expected)
    joined = result(made("upscale_concat", factor=factor), x, torch.zeros_like(expected))[0]
    assert torch.equal(joined, torch.cat((expected, torch.zeros_like(expected)), 1))


@pytest.mark.parametrize(
    ("sigma", "size", "taps"),
    [
        (0.05, 0, 3),
        (0.5, 0, 5),
        (1.0, 0, 9),
        (1.1, 0, 11),
        (31.75, 0, 255),
        (31.8, 0, 255),
        (100.0, 0, 255),
        (100.0, 7, 7),
    ],
)
def test_a_blur_reaches_four_deviations_but_not_more_than_127_pixels(sigma: float, size: int, taps: int) -> None:
    blur, types = made("gaussian_blur", sigma=sigma, size=size), [TensorType((BATCH, 2, 3, 5))]
    assert blur.flops(types, blur.infer_checked(types)) == 2 * taps * 2 * (2 * 3 * 5)  # rows, then columns
    x = torch.zeros(1, 1, 3, 301)
    x[..., 150] = 1
    row = result(made("gaussian_blur", sigma=sigma, size=size), x)[0][0, 0, 1]
    assert int((row > 0).sum()) == min(taps, 301) or sigma < 1
    assert float(row.sum()) == pytest.approx(1, abs=1e-5)


def test_softplus_is_straight_above_its_threshold() -> None:
    x = torch.tensor([[-1.0, 0.4, 0.6]])
    soft = REGISTRY.activations["softplus"](beta=2.0, threshold=1.0)
    expected = [math.log1p(math.exp(-2.0)) / 2, math.log1p(math.exp(0.8)) / 2, 0.6]
    assert result(soft, x)[0][0].tolist() == pytest.approx(expected)


def test_normalization_by_the_batch_or_by_what_was_remembered() -> None:
    x = random(3, 2, 4, 5)
    batch = result(made("batch_normalization", track_running_stats=False), x)[0]
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
    assert torch.allclose(batch, (x - mean) / (variance + 1e-5).sqrt(), atol=1e-5)
    fresh = result(made("instance_normalization", track_running_stats=True), x)[0]
    assert torch.allclose(fresh, x, atol=1e-4)  # before training it remembers mean 0 and variance 1


def test_batch_statistics_need_more_than_one_value() -> None:
    norm = made("batch_normalization", track_running_stats=False)
    with pytest.raises(ShapeError, match="single value") as caught:
        norm.infer_checked([TensorType((BATCH, 3))])
    assert "track_running_stats" in caught.value.remedy


def test_weighted_classes_by_definition() -> None:
    scores = random(4, 3) * 4
    labels = torch.tensor([0, 2, 1, 2])
    weights = torch.tensor([0.5, 2.0, 1.0]).double()
    logs = scores.double().log_softmax(1)
    each = -logs.gather(1, labels[:, None])[:, 0] * weights[labels]
    weighted = made("cross_entropy_loss", class_weights=(0.5, 2.0, 1.0))
    assert result(weighted, scores, labels)[0].item() == pytest.approx((each.sum() / weights[labels].sum()).item())
    with pytest.raises(ShapeError, match="3 class weights"):
        weighted.infer_checked([TensorType((BATCH, 5)), TensorType((BATCH,), DataType.INT64)])


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("sides", [(), (3,), (2, 3), (2, 2, 3)])
def test_the_weights_of_positive_targets_are_those_of_their_channels(sides: tuple[int, ...], logits: bool) -> None:
    scores, answers = random(2, 3, *sides) * 4 - 2, (random(2, 3, *sides, seed=1) > 0.5).float()
    p = scores.double().sigmoid()
    yes = torch.tensor([3.0, 1.0, 0.5]).double().reshape(3, *(1 for _ in sides))
    expected = -(yes * answers * p.log() + (1 - answers) * (1 - p).log()).mean()
    loss = made("bce_loss", pos_weight=(3.0, 1.0, 0.5), logits=logits)
    x = scores if logits else p.float()
    assert result(loss, x, answers)[0].item() == pytest.approx(expected.item(), rel=1e-5)
    with pytest.raises(ShapeError, match="3 numbers of pos_weight"):
        loss.infer_checked([TensorType((BATCH, 4))] * 2)


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("hidden", ["nothing", "by the mask", "what comes later"])
def test_scaled_attention_by_definition(scale: float, hidden: str) -> None:
    query, key, value = random(1, 2, 5, 4), random(1, 2, 5, 4, seed=1), random(1, 2, 5, 3, seed=2)
    mask = torch.full((1, 1, 5, 5), 0.0 if hidden == "nothing" else -math.inf).triu(1)
    scores = query @ key.transpose(2, 3) * (scale or 4**-0.5) + mask
    attention = made("scaled_dot_product_attention", scale=scale, causal=hidden == "what comes later")
    inputs = (query, key, value, mask) if hidden == "by the mask" else (query, key, value)
    assert torch.allclose(result(attention, *inputs)[0], scores.softmax(3) @ value, atol=1e-5)


def test_padding_of_an_embedding_is_one_of_its_numbers() -> None:
    faults = list(made("embedding", vocabulary=7, padding_idx=7).faults())
    assert [fault.parameter for fault in faults] == ["padding_idx"]
    assert "0 to 6" in faults[0].remedy
    embedding = made("embedding", vocabulary=7, features=2, padding_idx=6)
    assert not list(embedding.faults())
    (table,) = embedding.weights([TensorType((BATCH,), DataType.INT64)])
    start = random_tensor(WeightKey("words", "table"), table, seed=0)
    assert not start[6].any()
    assert start[:6].all()


@pytest.mark.parametrize(
    ("equation", "shapes", "products"),
    [
        ("ij,jk->ik", ((2, 3), (3, 5)), (2 * 3 * 5,)),
        ("ij,jk,kl->il", ((2, 3), (3, 5), (5, 7)), (2 * 3 * 5, 2 * 5 * 7)),  # j is summed before l comes
        ("ij,jk,kl->jl", ((2, 3), (3, 5), (5, 7)), (2 * 3 * 5, 3 * 5 * 7)),
        ("i,j,k->", ((2,), (3,), (5,)), (2 * 3, 5)),
        ("bi,bi,bj->bj", ((4, 2), (4, 2), (4, 3)), (4 * 2, 4 * 3)),
    ],
)
def test_a_sum_of_products_is_counted_pair_by_pair(
    equation: str, shapes: tuple[tuple[int, ...], ...], products: tuple[int, ...]
) -> None:
    types = [TensorType(shape) for shape in shapes]
    einsum = made("einsum", equation=equation)
    assert einsum.flops(types, einsum.infer_checked(types)) == sum(2 * product for product in products)
