"""Data for segmentation: images, and masks of the same names and sizes whose pixels are class numbers.

For other inputs or targets, change `sample` below. It returns one tensor for each input of the network, in the order of
`forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from config import PROJECT, Config
from images import check_patch, image_entry, to_tensor
from metrics import IGNORED, Ratio, iou, pixel_accuracy
from pairs import PairSamples, open_pairs

BEST = "iou"  # the metric that chooses the best checkpoint
CLASSES: int = PROJECT["outputs"][0]["shape"][0]
SHOWN = 32  # images of a validation
LONGEST = 512  # side of the largest validation image


def sample(image: torch.Tensor, mask: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's input N x C x H x W, and the classes N x H x W; N x 1 x H x W for losses of the document."""
    return (image,), mask[:, None].float() if PROJECT["targets"] else mask


def measure(
    output: torch.Tensor, targets: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...]
) -> dict[str, float | Ratio]:
    """Metrics of a validation image."""
    mask = targets[0].reshape(len(output), *output.shape[2:])
    return {"iou": iou(output, mask), "accuracy": pixel_accuracy(output, mask)}


def views(
    inputs: tuple[torch.Tensor, ...], output: torch.Tensor, targets: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """Images (C x H x W in 0..1) of the first sample of a validation: input, and classes as gray levels."""
    classes = {"targets": targets[0][0].reshape(1, *output.shape[2:]), "output": output[0].argmax(0, keepdim=True)}
    gray = {name: values.float() / max(1, CLASSES - 1) for name, values in classes.items()}
    return {"inputs": inputs[0][0], **gray} if inputs[0].shape[1] in (1, 3) else gray


def as_classes(mask: np.ndarray) -> torch.Tensor:
    """H x W class numbers; those that the network does not have do not count."""
    classes = torch.from_numpy(np.ascontiguousarray(mask[:, :, 0]).astype(np.int64))
    return torch.where(classes < CLASSES, classes, IGNORED)


def open_data(config: Config, cache: Path) -> tuple[PairSamples, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; the validation pairs with names; and whether these are training images, as no others exist."""
    check_patch(config.patch)
    entry = image_entry(PROJECT["inputs"])
    files, held_out = open_pairs(config, entry["shape"][0], 0, CLASSES)
    shown = [
        (name, to_tensor(image)[None], as_classes(mask)[None])
        for name, image, mask in (held_out or files).whole(SHOWN, LONGEST, entry["multiple"])
    ]
    return PairSamples(config, files, as_classes), shown, held_out is None


def epoch_steps(samples: PairSamples, config: Config) -> int:
    """Steps per epoch, after which as many pixels were used as all images have."""
    return max(1, -(-samples.files.inputs.area() // (config.patch**2 * config.batch)))
