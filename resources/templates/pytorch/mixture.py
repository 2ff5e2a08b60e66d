"""Patches of photos, and of synthetic images where there are few photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from config import PROJECT, Config
from images import PREFETCHED, WORKERS, DataError, ImageFiles, Samples, find_images, image_entry, scaled_cut, turn
from synthetic import SyntheticImages

FEW = 16  # with fewer photos than this, synthetic images are added


class Mixture(Samples):
    """Samples from patches of all photos and synthetic images, each equally often."""

    def __init__(self, config: Config, photos: ImageFiles, synthetic: SyntheticImages) -> None:
        super().__init__(config.seed)
        self.config = config
        self.photos = photos
        self.synthetic = synthetic

    def patch(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """A random patch for sample `number`, as H x W x C bytes."""
        chosen = int(rng.integers(len(self.photos) + len(self.synthetic)))
        if chosen < len(self.photos):
            image = self.photos.load(chosen)[1]
        else:
            image = self.synthetic.load(chosen - len(self.photos), number)
        return turn(rng, scaled_cut(rng, image, self.config.patch))[0]

    def area(self) -> int:
        """Pixels of all images."""
        return self.photos.area() + self.synthetic.area()

    def broken_names(self) -> list[str]:
        return self.photos.broken_names()

    def counts(self) -> tuple[int, int]:
        return len(self.photos), len(self.synthetic)

    def prepare(self, number: int) -> None:
        self.synthetic.prepare(number)

    def close(self) -> None:
        self.synthetic.close()


def open_mixture(config: Config, cache: Path) -> tuple[ImageFiles, SyntheticImages, list[Path]]:
    """The photos and the synthetic images for training, and the photos that are held out for validation."""
    images = find_images(config.data) if config.data else []
    if config.validation:
        held_out = find_images(config.validation, "--validation")
        if not held_out:
            raise DataError(
                f"there are no images in {config.validation}; add images to the folder, or leave out --validation"
            )
    else:
        held_out = images[::10][: len(images) // 10]
        images = [path for number, path in enumerate(images) if number % 10 or number // 10 >= len(held_out)]
    made = max(0, FEW - len(images)) if config.synthetic < 0 else config.synthetic
    if not config.data and config.synthetic <= 0:
        raise DataError("there are no training images; use --data FOLDER, or --synthetic N for synthetic images only")
    if not images and not made:
        raise DataError(f"there are no images in {config.data}; add images to the folder, or use --synthetic 16")
    channels = image_entry(PROJECT["inputs"])["shape"][0]
    photos = ImageFiles(images, channels)
    if len(photos) and photos.broken.all():
        photos.usable(0)
    reading = config.batch * (1 + PREFETCHED * (config.workers if config.workers >= 0 else WORKERS))
    synthetic = SyntheticImages(made, channels, config.patch, config.seed, config.refresh, cache, images, reading)
    return photos, synthetic, held_out
