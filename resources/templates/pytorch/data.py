"""Training data: random patches of photos, and synthetic images if there are few photos.

Each batch depends only on the seed and the step, so a resumed run continues exactly.

For a network with several inputs, change `sample` below. It must return one tensor for each input of the network, in
the order of `forward`, and the target of the first output. train.py checks their number.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

PROJECT = json.loads(Path(__file__).with_name("project.json").read_text("utf-8"))
ENDINGS = {".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
FEW = 16  # with fewer photos than this, synthetic images are added
SCALES = (1.0, 1.0, 0.75, 0.5)  # some patches are cropped larger and downscaled, for variety and sharpness
KEPT_BYTES = 1 << 30  # size of the cache of decoded photos


class DataError(Exception):
    """The images cannot be used; the message says why and what to do."""


def sample(clean: torch.Tensor, noise: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """The network's inputs (one tensor each) and the target, from clean patches and noise of the same shape.

    Both are N x C x H x W; image values are in 0..1. A tuple has one target for each entry of "targets" in
    project.json: the input layers that only losses read.
    """
    return (clean + noise,), clean


def prepare(image: torch.Tensor, number: int = 0) -> torch.Tensor:
    """Scale image values in 0..1 for input `number` of the network."""
    entry = PROJECT["inputs"][number]
    return image * entry["scale"] + entry["shift"]


def prepare_target(target: torch.Tensor, number: int = 0) -> torch.Tensor:
    """Scale target `number` for the losses, with the scale and shift of its input layer."""
    entry = PROJECT["targets"][number]
    return target.to(torch.float32) * entry["scale"] + entry["shift"]


def psnr(a: torch.Tensor, b: torch.Tensor) -> float:
    """Peak signal-to-noise ratio in dB of values clipped to 0..1."""
    error = torch.mean((a.clamp(0, 1) - b.clamp(0, 1)) ** 2).item()
    return 10 * math.log10(1 / max(error, 1e-12))


def find_images(folder: Path) -> list[Path]:
    """The images in `folder` and its subfolders, sorted by name."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; use --data with a folder of images")
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())


def load_image(path: Path, channels: int) -> np.ndarray:
    """Load an image as H x W x channels, 8 bits per value, upright by its EXIF orientation."""
    mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels)
    if mode is None:
        raise DataError(f"the network takes {channels} channels, but images have 1, 3 or 4; change data.py")
    try:
        with Image.open(path) as opened:
            array = np.asarray(ImageOps.exif_transpose(opened).convert(mode))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read as an image ({error}); remove it from the folder") from error
    return array.reshape(array.shape[0], array.shape[1], channels)


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """Convert H x W x C bytes to C x H x W values in 0..1."""
    return torch.from_numpy(np.array(array.transpose(2, 0, 1), np.float32, order="C")) / 255.0


def dead_leaves(rng: np.random.Generator, size: int, channels: int) -> np.ndarray:
    """A synthetic image: overlapping disks of all sizes, some shaded, some striped (dead leaves model).

    Its edges have the statistics of photos, so networks can learn from such images.
    """
    big = size * 2  # drawn at twice the size, then downscaled for smooth edges
    image = np.empty((big, big, channels), np.float32)
    image[:] = rng.random(channels)
    for _ in range(rng.integers(60, 400)):
        # The density of disks falls with the cube of their radius, between 4 pixels and half the image.
        u = rng.random()
        small, large = 4.0, big / 2
        radius = (u * large**-2 + (1 - u) * small**-2) ** -0.5
        x, y = rng.random(2) * big
        left, right = max(0, int(x - radius)), min(big, int(x + radius) + 1)
        top, bottom = max(0, int(y - radius)), min(big, int(y + radius) + 1)
        if left >= right or top >= bottom:
            continue
        dx = np.arange(left, right, dtype=np.float32)[None, :] - x
        dy = np.arange(top, bottom, dtype=np.float32)[:, None] - y
        inside = dx * dx + dy * dy <= radius * radius
        gray = rng.random()
        color = np.clip(gray + rng.normal(0, rng.choice((0.02, 0.15, 0.4)), channels), 0, 1).astype(np.float32)
        kind = rng.random()
        shade = np.zeros_like(dx + dy)
        if kind < 0.4:
            shade = (dx * rng.normal() + dy * rng.normal()) / radius * 0.2
        elif kind < 0.6:
            angle, period = rng.random() * np.pi, rng.uniform(4, 24)
            along = dx * np.cos(angle) + dy * np.sin(angle)
            shade = np.sin(along * (2 * np.pi / period)) * rng.uniform(0.03, 0.2)
        disc = np.clip(color + shade[:, :, None], 0, 1)
        image[top:bottom, left:right][inside] = disc[inside]
    small_image = image.reshape(size, 2, size, 2, channels).mean((1, 3))
    return (small_image * 255 + 0.5).astype(np.uint8)


class Batches:
    """Batches of noisy patches. `batch(step)` depends only on the seed and the step."""

    def __init__(
        self,
        images: list[Path],
        *,
        channels: int,
        patch: int,
        batch: int,
        noise: tuple[float, float],
        seed: int,
        synthetic: int | None = None,
    ) -> None:
        """`noise` is the range of standard deviations in 0..1; `synthetic` the number of synthetic images (None: as needed)."""
        made = max(0, FEW - len(images)) if synthetic is None else synthetic
        if not images and not made:
            raise DataError("there are no training images; add images to the folder, or use --synthetic 16")
        self.images = images
        self.channels = channels
        self.patch = patch
        self.size = batch
        self.noise = noise
        self.seed = seed
        rng = np.random.default_rng((seed, 0xD1))
        self.made = [dead_leaves(rng, max(256, patch), channels) for _ in range(made)]
        self._kept: OrderedDict[Path, np.ndarray] = OrderedDict()
        self._kept_bytes = 0
        self._worker = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[tuple[torch.Tensor, torch.Tensor]]] | None = None

    def epoch_steps(self) -> int:
        """Steps per epoch, after which as many pixels were used as all images have."""
        area = sum(array.shape[0] * array.shape[1] for array in self.made)
        for path in self.images:
            try:
                with Image.open(path) as opened:
                    area += opened.width * opened.height
            except (OSError, Image.DecompressionBombError) as error:
                raise DataError(f"{path} cannot be read as an image ({error}); remove it") from error
        return max(1, -(-area // (self.patch**2 * self.size)))

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(clean, noise) of `step`, both N x C x H x W. The next batch is prepared in the background."""
        if self._ahead is not None and self._ahead[0] == step:
            result = self._ahead[1].result()
        else:
            result = self._make(step)
        self._ahead = (step + 1, self._worker.submit(self._make, step + 1))
        return result

    def close(self) -> None:
        """Stop preparing batches."""
        self._worker.shutdown(cancel_futures=True)

    def _make(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng((self.seed, step))
        clean = torch.stack([to_tensor(self._patch(rng)) for _ in range(self.size)])
        # High noise levels are more frequent, because they are harder.
        low, high = self.noise
        sigma = torch.from_numpy((low + (high - low) * rng.random(self.size) ** 0.7).astype(np.float32))
        noise = torch.from_numpy(rng.standard_normal(clean.shape, dtype=np.float32))
        return clean, noise * sigma[:, None, None, None]

    def _patch(self, rng: np.random.Generator) -> np.ndarray:
        number = int(rng.integers(len(self.images) + len(self.made)))
        image = self._photo(number) if number < len(self.images) else self.made[number - len(self.images)]
        height, width = image.shape[:2]
        cut = round(self.patch / float(rng.choice(SCALES)))
        if cut > min(height, width) or self.channels not in (1, 3, 4):  # only these can be downscaled
            cut = self.patch
        if min(height, width) < cut:
            grow = ((0, max(0, cut - height)), (0, max(0, cut - width)), (0, 0))
            image = np.pad(image, grow, mode="symmetric")
            height, width = image.shape[:2]
        top, left = rng.integers(height - cut + 1), rng.integers(width - cut + 1)
        patch = image[top : top + cut, left : left + cut]
        if cut != self.patch:
            uncut = Image.fromarray(patch[:, :, 0] if self.channels == 1 else patch)
            patch = np.asarray(uncut.resize((self.patch, self.patch), Image.Resampling.BOX))
            patch = patch.reshape(self.patch, self.patch, self.channels)
        patch = np.rot90(patch, int(rng.integers(4)))
        return patch[:, ::-1] if rng.random() < 0.5 else patch

    def _photo(self, number: int) -> np.ndarray:
        path = self.images[number]
        if path in self._kept:
            self._kept.move_to_end(path)
            return self._kept[path]
        array = load_image(path, self.channels)
        self._kept[path] = array
        self._kept_bytes += array.nbytes
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        return array
