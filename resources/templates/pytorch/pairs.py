"""Pairs of images in two folders: inputs, and targets or masks of the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from config import Config
from images import DataError, ImageFiles, Samples, cut_together, find_images, to_tensor, turn


class PairFiles:
    """Inputs and targets of the same names. A pair of which one cannot be read is replaced by the next one."""

    def __init__(self, inputs: ImageFiles, targets: ImageFiles) -> None:
        self.inputs, self.targets = inputs, targets
        targets.broken |= inputs.broken
        inputs.broken = targets.broken
        for number, (size, other) in enumerate(zip(inputs.sizes, targets.sizes, strict=True)):
            if size != other and not inputs.broken[number]:
                (height, width), (tall, wide) = size, other
                raise DataError(
                    f"{targets.paths[number]} has {wide} x {tall} pixels, but {inputs.paths[number]} has {width} x {height}; "
                    "inputs and targets must have the same size"
                )

    def __len__(self) -> int:
        return len(self.inputs)

    def load(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Input and target of pair `number`, or else of the next pair that can be read."""
        while True:
            number, image = self.inputs.load(number)
            found, target = self.targets.load(number)
            if found == number:
                return image, target
            number = found

    def whole(self, count: int, longest: int, multiple: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Names, inputs and targets of the first pairs, cropped to at most `longest` and to a multiple."""
        for number in [number for number in range(len(self)) if not self.inputs.broken[number]][:count]:
            image, target = self.load(number)
            height, width = (min(side, longest) // multiple * multiple for side in image.shape[:2])
            if not height or not width:
                path = self.inputs.paths[number]
                raise DataError(f"{path} is smaller than {multiple} x {multiple} pixels; remove it")
            yield self.inputs.paths[number].stem, image[:height, :width], target[:height, :width]


class PairSamples(Samples):
    """Patches of inputs C x H x W, and of targets as `convert` makes tensors of them."""

    def __init__(self, config: Config, files: PairFiles, convert: Callable[[np.ndarray], torch.Tensor]) -> None:
        super().__init__(config.seed)
        self.files = files
        self.patch = config.patch
        self.convert = convert

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        image, target = self.files.load(int(rng.integers(len(self.files))))
        image, target = turn(rng, *cut_together(rng, [image, target], self.patch))
        return to_tensor(image), self.convert(target)

    def broken_names(self) -> list[str]:
        return self.files.inputs.broken_names()

    def counts(self) -> tuple[int, int]:
        return len(self.files), 0


def open_pairs(
    config: Config, channels: int, target_channels: int, classes: int = 0
) -> tuple[PairFiles, PairFiles | None]:
    """The pairs for training and those that are held out for validation; None if there are too few to hold some out."""
    pairs = find_pairs(config.inputs, config.targets)
    if config.validation:
        folder = Path(config.validation)
        held_out = find_pairs(str(folder / "inputs"), str(folder / "targets"), "--validation")
    else:
        held_out = pairs[::10][: len(pairs) // 10]
        pairs = [pair for number, pair in enumerate(pairs) if number % 10 or number // 10 >= len(held_out)]

    def opened(found: list[tuple[Path, Path]]) -> PairFiles:
        inputs = ImageFiles([path for path, _ in found], channels)
        made = PairFiles(inputs, ImageFiles([path for _, path in found], target_channels, classes))
        inputs.usable(0)
        return made

    return opened(pairs), opened(held_out) if held_out else None


def find_pairs(inputs: str, targets: str, option: str = "--inputs and --targets") -> list[tuple[Path, Path]]:
    """The images of two folders that have the same path below them, without the ending."""
    if not inputs or not targets:
        raise DataError("there are no training images; use --inputs FOLDER and --targets FOLDER")
    found, others = (_by_name(folder, find_images(folder, option)) for folder in (inputs, targets))
    missing = sorted(str(name) for name in found.keys() ^ others.keys())
    if missing or not found:
        names = ", ".join(missing[:5]) or "there are no images"
        raise DataError(f"{inputs} and {targets} must have images of the same names; without a partner: {names}")
    return [(path, others[name]) for name, path in sorted(found.items())]


def _by_name(folder: str, paths: list[Path]) -> dict[Path, Path]:
    """Images by their path in the folder, without the ending. Raises DataError if two differ only in the ending."""
    found: dict[Path, Path] = {}
    for path in paths:
        other = found.setdefault(path.relative_to(folder).with_suffix(""), path)
        if other != path:
            raise DataError(f"{other} and {path} have the same name; remove one of them")
    return found
