"""Metrics of images, masks and classes. Image values are in 0..1."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch.nn.functional import conv2d

IGNORED = 255  # class of pixels of a mask that do not count


def psnr(output: torch.Tensor, target: torch.Tensor) -> float:
    """Peak signal-to-noise ratio in dB of values clipped to 0..1."""
    error = torch.mean((output.clamp(0, 1) - target.clamp(0, 1)) ** 2).item()
    return 10 * math.log10(1 / max(error, 1e-12))


def ssim(output: torch.Tensor, target: torch.Tensor) -> float:
    """Structural similarity of N x C x H x W: Gaussian window of 11 x 11, only windows inside the image.

    Smaller images use the largest odd window that fits. Source: Wang et al. 2004.
    """
    side = min(11, *output.shape[-2:])
    side -= 1 - side % 2
    places = torch.arange(side, dtype=torch.float64, device=output.device) - side // 2
    curve = torch.exp(-0.5 * (places / 1.5) ** 2)
    curve = (curve / curve.sum()).to(output.dtype)
    channels = output.shape[1]
    down, across = (curve.reshape(shape).expand(channels, 1, *shape[2:]) for shape in ((1, 1, -1, 1), (1, 1, 1, -1)))

    def mean(values: torch.Tensor) -> torch.Tensor:
        return conv2d(conv2d(values, down, groups=channels), across, groups=channels)

    x, y = output.clamp(0, 1), target.clamp(0, 1)
    mean_x, mean_y = mean(x), mean(y)
    var_x, var_y = mean(x * x) - mean_x**2, mean(y * y) - mean_y**2
    both = mean(x * y) - mean_x * mean_y
    c1, c2 = 0.01**2, 0.03**2
    ratio = (2 * mean_x * mean_y + c1) * (2 * both + c2) / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    return ratio.mean().item()


def psnr_y(output: torch.Tensor, target: torch.Tensor, border: int) -> float:
    """PSNR of the luma (BT.601) of N x C x H x W without a border: the convention of super-resolution."""
    inner = slice(border, -border or None)
    return psnr(*(_luma(image.clamp(0, 1))[..., inner, inner] for image in (output, target)))


def _luma(image: torch.Tensor) -> torch.Tensor:
    if image.shape[1] != 3:
        return image
    weights = torch.tensor([65.481, 128.553, 24.966], dtype=image.dtype, device=image.device)
    return ((image * weights[:, None, None]).sum(1, keepdim=True) + 16) / 255


def accuracy(scores: torch.Tensor, classes: torch.Tensor) -> float:
    """Share of the predictions (largest of N x K scores, or N x K x H x W) that are right."""
    right = scores.argmax(1) == classes
    return (right[classes != IGNORED] if classes.dim() > 1 else right).float().mean().item()


def pixel_accuracy(scores: torch.Tensor, masks: torch.Tensor) -> Ratio:
    """Share of the pixels that count whose prediction (largest of N x K x H x W scores) is right. Masks have N x H x W classes."""
    counted = masks != IGNORED
    right = (scores.argmax(1) == masks) & counted
    return Ratio(right.sum().double()[None], counted.sum().double()[None])


class Ratio(NamedTuple):
    """A metric whose parts and wholes are added over all images before they are divided, such as IoU: one value for each class."""

    part: torch.Tensor
    whole: torch.Tensor

    def value(self) -> float:
        """The mean of the ratios whose whole is not 0; 0 if there are none."""
        found = (self.part / self.whole)[self.whole > 0]
        return found.mean().item() if found.numel() else 0.0


def iou(scores: torch.Tensor, masks: torch.Tensor) -> Ratio:
    """Intersection over union of each class. Scores are N x K x H x W, masks have N x H x W classes."""
    counted = masks != IGNORED
    predicted, wanted = scores.argmax(1)[counted], masks[counted].long()
    count = scores.shape[1]
    table = torch.bincount(wanted * count + predicted, minlength=count * count).reshape(count, count).double()
    both = table.diagonal()
    return Ratio(both, table.sum(0) + table.sum(1) - both)
