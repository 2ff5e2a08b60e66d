"""Data for denoising: patches of photos and of synthetic images, with noise.

For a network with several inputs or with other targets, change `sample` below. It returns one tensor for each input of
the network, in the order of `forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from config import PROJECT, Config, levels
from images import DataError, check_patch, image_entry, image_views, load_image, to_tensor
from metrics import psnr, ssim
from mixture import Mixture, open_mixture

BEST = "psnr"  # the metric that chooses the best checkpoint
SHOWN = 8  # images of a validation
LONGEST = 512  # side of the largest validation image
views = image_views  # what a validation writes


def sample(clean: torch.Tensor, noise: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's inputs (one tensor each) and the target, from clean patches and noise of the same shape.

    Both are N x C x H x W; image values are in 0..1. A tuple has one target for each entry of "targets" in
    project.json: the input layers that only losses read.
    """
    return (clean + noise,), clean


def measure(
    output: torch.Tensor, targets: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...]
) -> dict[str, float]:
    """Metrics of a validation image, if the target is an image of the same size."""
    if output.shape != targets[0].shape:
        return {}
    values = {"psnr": psnr(output, targets[0]), "ssim": ssim(output, targets[0])}
    return {**values, "noisy_psnr": psnr(inputs[0], targets[0])} if inputs[0].shape == output.shape else values


class NoisyPatches(Mixture):
    """Clean patches and noise, both C x H x W."""

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        clean = to_tensor(self.patch(rng, number))
        return clean, noise_like(clean, rng, self.config)


def noise_like(clean: torch.Tensor, rng: np.random.Generator, config: Config) -> torch.Tensor:
    """Noise for a clean image. High levels of a range are more frequent, because they are harder."""
    low, high = levels(config.noise)
    level = low + (high - low) * rng.random() ** 0.7
    low, high = levels(config.shot)
    shot = low + (high - low) * rng.random()
    return torch.from_numpy(rng.standard_normal(clean.shape, np.float32)) * deviation(clean, level, shot, config)


def deviation(clean: torch.Tensor, level: float, shot: float, config: Config) -> torch.Tensor | float:
    """Standard deviation of the noise; with shot noise, the variance grows with the brightness."""
    if config.noise_model == "poisson-gaussian":
        return ((level / 255) ** 2 + shot * clean).sqrt()
    return level / 255


def open_data(config: Config, cache: Path) -> tuple[NoisyPatches, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; the validation pairs with names; and whether these are training images, as no others exist."""
    check_patch(config.patch)
    photos, synthetic, held_out = open_mixture(config, cache)
    chosen = enumerate((held_out or photos.paths)[:SHOWN])
    shown = [pair for number, path in chosen for pair in validation_pair(path, number, config)]
    return NoisyPatches(config, photos, synthetic), shown, not held_out


def epoch_steps(samples: NoisyPatches, config: Config) -> int:
    """Steps per epoch, after which as many pixels were used as all images have."""
    return max(1, -(-samples.area() // (config.patch**2 * config.batch)))


def validation_pair(path: Path, number: int, config: Config) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """A validation image with fixed noise; nothing if it cannot be read."""
    entry = image_entry(PROJECT["inputs"])
    try:
        array = load_image(path, entry["shape"][0])[:LONGEST, :LONGEST]
    except DataError:
        if entry["shape"][0] not in (1, 3, 4):
            raise
        return []
    height, width = (side - side % entry["multiple"] for side in array.shape[:2])
    if not height or not width:
        raise DataError(f"{path} is smaller than {entry['multiple']} x {entry['multiple']} pixels; remove it")
    low, high = levels(config.noise)
    level = 25.0 if low <= 25 <= high else high
    clean = to_tensor(array[:height, :width])
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(number))
    noise = noise * deviation(clean, level, levels(config.shot)[1], config)
    return [(path.stem, clean[None], noise[None])]
