"""Data for the restoration of image pairs: inputs and targets of the same names and sizes.

For a network with several inputs or with other targets, change `sample` below. It returns one tensor for each input of
the network, in the order of `forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import torch

from config import PROJECT, Config
from images import check_patch, image_entry, image_views, to_tensor
from metrics import psnr, ssim
from pairs import PairSamples, open_pairs

BEST = "psnr"  # the metric that chooses the best checkpoint
SHOWN = 8  # images of a validation
LONGEST = 512  # side of the largest validation image
views = image_views  # what a validation writes


def sample(image: torch.Tensor, target: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's inputs (one tensor each) and the target, both N x C x H x W with values in 0..1.

    A tuple has one target for each entry of "targets" in project.json: the input layers that only losses read.
    """
    return (image,), target


def measure(
    output: torch.Tensor, targets: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...]
) -> dict[str, float]:
    """Metrics of a validation image, if the target is an image of the same size."""
    if output.shape != targets[0].shape:
        return {}
    values = {"psnr": psnr(output, targets[0]), "ssim": ssim(output, targets[0])}
    return {**values, "input_psnr": psnr(inputs[0], targets[0])} if inputs[0].shape == output.shape else values


def open_data(config: Config, cache: Path) -> tuple[PairSamples, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; the validation pairs with names; and whether these are training images, as no others exist."""
    check_patch(config.patch)
    entry = image_entry(PROJECT["inputs"])
    channels = entry["shape"][0], image_entry(PROJECT["targets"] or PROJECT["outputs"])["shape"][0]
    files, held_out = open_pairs(config, *channels)
    shown = [
        (name, to_tensor(image)[None], to_tensor(target)[None])
        for name, image, target in (held_out or files).whole(SHOWN, LONGEST, entry["multiple"])
    ]
    return PairSamples(config, files, to_tensor), shown, held_out is None


def epoch_steps(samples: PairSamples, config: Config) -> int:
    """Steps per epoch, after which as many pixels were used as all images have."""
    return max(1, -(-samples.files.inputs.area() // (config.patch**2 * config.batch)))
