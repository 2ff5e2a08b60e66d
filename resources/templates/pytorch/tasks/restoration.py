"""Data for the restoration of image pairs: inputs and targets of the same names and sizes.

For a network with several inputs or with other targets, change `sample` below. It returns one tensor for each input of
the network, in the order of `forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from config import PROJECT, Config
from images import Samples, check_patch, cut_together, to_tensor, turn
from metrics import psnr, ssim
from pairs import PairFiles, open_pairs

BEST = "psnr"  # the metric that chooses the best checkpoint
SHOWN = 8  # images of a validation
LONGEST = 512  # side of the largest validation image


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


def views(
    inputs: tuple[torch.Tensor, ...], output: torch.Tensor, targets: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """Images (C x H x W in 0..1) of the first sample of a validation: inputs, targets and output, as far as they are images."""
    named = {"inputs": inputs[0], "targets": targets[0], "output": output}
    return {name: tensor[0] for name, tensor in named.items() if tensor.dim() == 4 and tensor.shape[1] in (1, 3)}


class Pairs(Samples):
    """Patches of inputs and targets, C x H x W."""

    def __init__(self, config: Config, files: PairFiles) -> None:
        super().__init__(config.seed)
        self.files = files
        self.patch = config.patch

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        image, target = self.files.load(int(rng.integers(len(self.files))))
        image, target = turn(rng, *cut_together(rng, [image, target], self.patch))
        return to_tensor(image), to_tensor(target)

    def broken_names(self) -> list[str]:
        return self.files.inputs.broken_names()

    def counts(self) -> tuple[int, int]:
        return len(self.files), 0


def open_data(config: Config, cache: Path) -> tuple[Pairs, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; the validation pairs with names; and whether these are training images, as no others exist."""
    check_patch(config.patch)
    entry = PROJECT["inputs"][0]
    channels = entry["shape"][0], (PROJECT["targets"] or PROJECT["outputs"])[0]["shape"][0]
    files, held_out = open_pairs(config, *channels)
    shown = [
        (name, to_tensor(image)[None], to_tensor(target)[None])
        for name, image, target in (held_out or files).whole(SHOWN, LONGEST, entry["multiple"])
    ]
    return Pairs(config, files), shown, held_out is None


def epoch_steps(samples: Pairs, config: Config) -> int:
    """Steps per epoch, after which as many pixels were used as all images have."""
    return max(1, -(-samples.files.inputs.area() // (config.patch**2 * config.batch)))
