"""Data for super-resolution: patches of photos and of synthetic images, downscaled for the input.

For a network with several inputs or with other targets, change `sample` below. It returns one tensor for each input of
the network, in the order of `forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from config import PROJECT, Config
from images import DataError, check_patch, image_entry, image_views, load_image, to_tensor
from metrics import psnr, psnr_y, ssim
from mixture import Mixture, open_mixture
from resizing import resize_bicubic

BEST = "psnr"  # the metric that chooses the best checkpoint
SCALE: int = PROJECT["scale"]
SHOWN = 8  # images of a validation
LONGEST = 512  # side of the largest validation image
views = image_views  # what a validation writes


def sample(small: torch.Tensor, large: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's inputs (one tensor each) and the target, both N x C x H x W with values in 0..1.

    A tuple has one target for each entry of "targets" in project.json: the input layers that only losses read.
    """
    return (small,), large


def measure(
    output: torch.Tensor, targets: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...]
) -> dict[str, float]:
    """Metrics of a validation image, also of bicubic interpolation. `psnr_y` is the usual convention of the field."""
    if output.shape != targets[0].shape:
        return {}
    enlarged = resize_bicubic(inputs[0], *targets[0].shape[-2:])
    values = {"psnr": psnr(output, targets[0]), "ssim": ssim(output, targets[0])}
    return {**values, "psnr_y": psnr_y(output, targets[0], SCALE), "bicubic_psnr": psnr(enlarged, targets[0])}


class SmallAndLarge(Mixture):
    """Small and large patches, both C x H x W."""

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        large = to_tensor(self.patch(rng, number))
        return downscaled(large), large


def downscaled(large: torch.Tensor) -> torch.Tensor:
    """C x H x W downscaled and rounded to 8 bits, as small images are usually made."""
    small = resize_bicubic(large[None], large.shape[-2] // SCALE, large.shape[-1] // SCALE)[0]
    return (small * 255).round().clamp(0, 255) / 255


def open_data(config: Config, cache: Path) -> tuple[SmallAndLarge, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; the validation pairs with names; and whether these are training images, as no others exist."""
    if config.patch % SCALE:
        raise DataError(f"--patch must be a multiple of {SCALE}, because the network enlarges {SCALE} times")
    check_patch(config.patch // SCALE)
    photos, synthetic, held_out = open_mixture(config, cache)
    shown = [pair for path in (held_out or photos.paths)[:SHOWN] for pair in validation_pair(path)]
    return SmallAndLarge(config, photos, synthetic), shown, not held_out


def epoch_steps(samples: SmallAndLarge, config: Config) -> int:
    """Steps per epoch, after which as many pixels were used as all images have."""
    return max(1, -(-samples.area() // (config.patch**2 * config.batch)))


def validation_pair(path: Path) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """A validation image, small and large; nothing if it cannot be read."""
    entry = image_entry(PROJECT["inputs"])
    multiple = entry["multiple"] * SCALE
    try:
        array = load_image(path, entry["shape"][0])[:LONGEST, :LONGEST]
    except DataError:
        return []
    height, width = (side - side % multiple for side in array.shape[:2])
    if not height or not width:
        raise DataError(f"{path} is smaller than {multiple} x {multiple} pixels; remove it")
    large = to_tensor(array[:height, :width])
    return [(path.stem, downscaled(large)[None], large[None])]
