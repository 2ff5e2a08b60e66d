"""Data for classification: a folder with one folder of images for each class, in the order of their names.

For other inputs or targets, change `sample` below. It returns one tensor for each input of the network, in the order of
`forward`, and the target. train.py checks their number and shapes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from config import PROJECT, Config
from images import DataError, ImageFiles, Samples, find_images, image_entry, resized, to_tensor
from metrics import accuracy

BEST = "accuracy"  # the metric that chooses the best checkpoint
CLASSES: int = PROJECT["outputs"][0]["shape"][0]
TOGETHER = 64  # images of a validation that are run at once


def sample(image: torch.Tensor, label: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's input N x C x H x W, and N classes; for losses of the document, in the shape of their input layer."""
    targets = PROJECT["targets"]
    return (image,), label.float().reshape(len(label), *targets[0]["shape"]) if targets else label


def measure(
    output: torch.Tensor, targets: tuple[torch.Tensor, ...], inputs: tuple[torch.Tensor, ...]
) -> dict[str, float]:
    """Metrics of some validation images."""
    return {"accuracy": accuracy(output.flatten(1), targets[0].reshape(len(output)))}


def views(
    inputs: tuple[torch.Tensor, ...], output: torch.Tensor, targets: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """Images of a validation: none, because the output is not an image."""
    return {}


class Labelled(Samples):
    """Images C x H x W, and the numbers of their classes."""

    def __init__(self, config: Config, photos: ImageFiles, labels: list[int]) -> None:
        super().__init__(config.seed)
        self.photos = photos
        self.labels = labels
        self.flip = config.flip

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        # Every image once per epoch, in an order of the epoch.
        epoch, place = divmod(number, len(self.photos))
        order = np.random.default_rng((self.seed, 0xC1, epoch)).permutation(len(self.photos))
        image, label = self.read(int(order[place]))
        return (image.flip(-1) if self.flip and rng.random() < 0.5 else image), label

    def read(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Image `number` in the size of the network's input, and its class."""
        number, image = self.photos.load(number)
        _, height, width = image_entry(PROJECT["inputs"])["shape"]
        return to_tensor(resized(image, height, width)), torch.tensor(self.labels[number])

    def broken_names(self) -> list[str]:
        return self.photos.broken_names()

    def counts(self) -> tuple[int, int]:
        return len(self.photos), 0


def open_data(config: Config, cache: Path) -> tuple[Labelled, list[tuple[str, torch.Tensor, torch.Tensor]], bool]:
    """The training samples; batches for validation; and whether these are training images, as no others exist."""
    if not config.data:
        raise DataError(
            "there are no training images; use --data with a folder that has a folder of images for each class"
        )
    channels = image_entry(PROJECT["inputs"])["shape"][0]
    images = find_labelled(Path(config.data), "--data")
    if config.validation:
        held_out = find_labelled(Path(config.validation), "--validation")
    else:
        held_out = images[::10][: len(images) // 10]
        images = [image for number, image in enumerate(images) if number % 10 or number // 10 >= len(held_out)]
    samples, others = (
        Labelled(config, ImageFiles([path for path, _ in found], channels), [label for _, label in found])
        for found in (images, held_out or images)
    )
    samples.photos.usable(0)
    numbers = [number for number in range(len(others.photos)) if not others.photos.broken[number]]
    shown = []
    for start in range(0, len(numbers), TOGETHER):
        pairs = [others.read(number) for number in numbers[start : start + TOGETHER]]
        shown.append(
            (str(start), torch.stack([image for image, _ in pairs]), torch.stack([label for _, label in pairs]))
        )
    return samples, shown, not held_out


def find_labelled(folder: Path, option: str) -> list[tuple[Path, int]]:
    """The images with the numbers of their classes."""
    find_images(folder, option)  # refuses what is not a folder
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(classes) != CLASSES:
        raise DataError(
            f"{folder} has {len(classes)} folders, but the network has {CLASSES} classes; use one folder for each class"
        )
    found = [(path, label) for label, inside in enumerate(classes) for path in find_images(inside)]
    if not found:
        raise DataError(f"there are no images in the folders of {folder}; add images to them")
    return found


def epoch_steps(samples: Labelled, config: Config) -> int:
    """Steps per epoch, after which every image was used once."""
    return max(1, -(-len(samples.photos) // config.batch))
