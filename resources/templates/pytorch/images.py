"""Images from folders, random patches of them, and batches that depend only on the seed and the step."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset, Sampler

from config import PROJECT
from metrics import IGNORED

ENDINGS = {".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
SCALES = (1.0, 1.0, 0.75, 0.5)  # some patches are cropped larger and downscaled, for variety and sharpness
KEPT_BYTES = 1 << 30  # size of the cache of decoded images of one process
WORKERS = 4  # processes that load data for a GPU
PREFETCHED = 4  # batches that each of them reads ahead
UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)  # what Pillow raises for broken files


class DataError(Exception):
    """The images cannot be used; the message says why and what to do."""


def find_images(folder: str | Path, option: str = "--data") -> list[Path]:
    """The images in `folder` and its subfolders, sorted by name."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; use {option} with a folder of images")
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())


@contextmanager
def opened_image(path: Path) -> Iterator[Image.Image]:
    """An image file, opened as a stream: Pillow 13 garbles uncompressed gray TIFF files that are turned if it gets their path."""
    with path.open("rb") as stream, Image.open(stream) as opened:
        yield opened


def load_image(path: Path, channels: int) -> np.ndarray:
    """Load an image as H x W x channels, 8 bits per value, upright by its EXIF orientation."""
    mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels)
    if mode is None:
        raise DataError(
            f"the network takes {channels} channels, but images have 1, 3 or 4; give the input one of these"
        )
    try:
        with opened_image(path) as opened:
            array = np.asarray(eight_bits(ImageOps.exif_transpose(opened)).convert(mode))
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read as an image ({error}); remove it from the folder") from error
    return array.reshape(array.shape[0], array.shape[1], channels)


def eight_bits(image: Image.Image) -> Image.Image:
    """A gray image of 16 bits as one of 8 bits; `convert` would clip its values at 255."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image).clip(0, 65535) / 257 + 0.5).astype(np.uint8))


def image_size(path: Path) -> tuple[int, int]:
    """Height and width of an upright image, from the header of the file."""
    with opened_image(path) as opened:
        # Pillow reports the upright size of TIFF files.
        turned = opened.format != "TIFF" and opened.getexif().get(0x0112, 1) >= 5
        return (opened.width, opened.height) if turned else (opened.height, opened.width)


def image_entry(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first of these inputs, targets or outputs that is an image. Raises DataError if none is one."""
    for entry in entries:
        if len(entry["shape"]) == 3:
            return entry
    shape = " x ".join(map(str, ("N", *entries[0]["shape"])))
    raise DataError(
        f"'{entries[0]['name']}' of the network is {shape}, but the data are images N x C x H x W; "
        "change open_data() and sample() in data.py"
    )


def check_patch(side: int) -> None:
    """Raise DataError if the network does not take patches of this size."""
    multiple = image_entry(PROJECT["inputs"])["multiple"]
    if side % multiple:
        raise DataError(f"--patch must be a multiple of {multiple} for this network, not {side}")


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """Convert H x W x C bytes to C x H x W values in 0..1."""
    return torch.from_numpy(np.array(array.transpose(2, 0, 1), np.float32, order="C")) / 255.0


def save_image(image: torch.Tensor, path: Path) -> None:
    """Write C x H x W values, clipped to 0..1, as an 8-bit image of 1, 3 or 4 channels. Others never read half a file."""
    array = (image.clamp(0, 1).cpu().numpy().transpose(1, 2, 0) * 255 + 0.5).astype(np.uint8)
    if array.shape[2] not in (1, 3, 4):
        raise DataError(f"an output with {array.shape[2]} channels is not an image; use the tensors of run() instead")
    kind = Image.registered_extensions().get(path.suffix.lower())
    if kind is None:
        raise DataError(f"{path} does not end like the name of an image; use .png")
    part = path.with_name(path.name + ".part")
    Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(part, kind)
    part.replace(path)


class BadMask(DataError):
    """A mask that does not fit the network, which is not skipped as a file that cannot be read is."""


class ImageFiles:
    """Images by number, decoded when they are needed and kept in memory as far as they fit.

    Images that cannot be read are marked in `broken`, which all loading processes share, and replaced by the next one.
    """

    def __init__(self, paths: Sequence[Path], channels: int, classes: int = 0) -> None:
        """`classes`: the images are masks with so many classes."""
        self.paths = list(paths)
        self.channels = channels
        self.classes = classes
        self.broken = torch.zeros(len(self.paths), dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call, unused-ignore]
        self.sizes = [self._size(number) for number in range(len(self.paths))]
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._kept_bytes = 0

    def __len__(self) -> int:
        return len(self.paths)

    def broken_names(self) -> list[str]:
        """Names of the images that could not be read so far."""
        return [str(self.paths[int(number)]) for number in self.broken.nonzero()]

    def area(self) -> int:
        """Pixels of all images."""
        return sum(height * width for height, width in self.sizes)

    def usable(self, number: int) -> int:
        """`number`, or the next image that can be read."""
        for offset in range(len(self)):
            candidate = (number + offset) % len(self)
            if not self.broken[candidate]:
                return candidate
        raise DataError(f"none of the {len(self)} images can be read, such as {self.paths[0]}; choose another folder")

    def load(self, number: int) -> tuple[int, np.ndarray]:
        """Image `number`, or else the next one that can be read, with its number."""
        while True:
            number = self.usable(number)
            try:
                return number, self._decoded(number)
            except BadMask:
                raise
            except DataError:
                if self.channels not in (1, 3, 4) and not self.classes:
                    raise
                self.broken[number] = True

    def _decoded(self, number: int) -> np.ndarray:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        path = self.paths[number]
        array = load_mask(path, self.classes) if self.classes else load_image(path, self.channels)
        self._kept[number] = array
        self._kept_bytes += array.nbytes
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        return array

    def _size(self, number: int) -> tuple[int, int]:
        try:
            return image_size(self.paths[number])
        except UNREADABLE:
            self.broken[number] = True
            return 0, 0


def load_mask(path: Path, classes: int) -> np.ndarray:
    """Load a mask, upright as images are, as H x W x 1 class numbers; its pixels are gray values or indices of a palette."""
    try:
        with opened_image(path) as opened:
            mask = np.asarray(ImageOps.exif_transpose(opened))
            mode = opened.mode
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read as an image ({error}); remove it from the folder") from error
    if mask.ndim != 2:
        raise BadMask(f"{path} is an image of the mode {mode}; masks are gray or palette images of class numbers")
    highest = int(mask[mask != IGNORED].max(initial=0))
    if highest >= classes:
        raise BadMask(f"{path} has the class {highest}, but the network has the classes 0 to {classes - 1}")
    return mask.astype(np.uint8)[:, :, None]


def resized(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """H x W x C bytes at another size, antialiased."""
    if image.shape[:2] == (height, width):
        return image
    whole = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    return np.asarray(whole.resize((width, height), Image.Resampling.BILINEAR)).reshape(height, width, -1)


def cut(rng: np.random.Generator, image: np.ndarray, side: int) -> np.ndarray:
    """A random square of H x W x C; an image that is too small is mirrored at its borders."""
    return cut_together(rng, [image], side)[0]


def cut_together(rng: np.random.Generator, images: Sequence[np.ndarray], side: int) -> list[np.ndarray]:
    """The same random square of images of the same size."""
    height, width = images[0].shape[:2]
    grow = ((0, max(0, side - height)), (0, max(0, side - width)), (0, 0))
    if min(height, width) < side:
        images = [np.pad(image, grow, mode="symmetric") for image in images]
        height, width = images[0].shape[:2]
    top, left = rng.integers(height - side + 1), rng.integers(width - side + 1)
    return [image[top : top + side, left : left + side] for image in images]


def scaled_cut(rng: np.random.Generator, image: np.ndarray, side: int) -> np.ndarray:
    """A random square, some of them cut larger and downscaled to `side`."""
    channels = image.shape[2]
    wide = round(side / float(rng.choice(SCALES)))
    if wide > min(image.shape[:2]) or channels not in (1, 3, 4):  # only these can be downscaled
        wide = side
    patch = cut(rng, image, wide)
    if wide == side:
        return patch
    whole = Image.fromarray(patch[:, :, 0] if channels == 1 else patch)
    return np.asarray(whole.resize((side, side), Image.Resampling.BOX)).reshape(side, side, channels)


def turn(rng: np.random.Generator, *images: np.ndarray) -> list[np.ndarray]:
    """All images turned by the same multiple of 90 degrees, and half of the time flipped."""
    turns, flip = int(rng.integers(4)), rng.random() < 0.5
    turned = (np.rot90(image, turns) for image in images)
    return [image[:, ::-1] if flip else image for image in turned]


# only denoising restoration super-resolution
def image_views(
    inputs: tuple[torch.Tensor, ...], output: torch.Tensor, targets: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """Images (C x H x W in 0..1) of the first sample of a validation: inputs, targets and output, as far as they are images."""
    named = {"inputs": inputs[0], "targets": targets[0], "output": output}
    return {name: tensor[0] for name, tensor in named.items() if tensor.dim() == 4 and tensor.shape[1] in (1, 3)}


# only all
class Samples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Training samples by number. A sample depends only on the seed and its number, so a resumed run continues exactly."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.make(np.random.default_rng((self.seed, number)), number)

    def make(self, rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Sample `number`, with a random generator of its own."""
        raise NotImplementedError

    def broken_names(self) -> list[str]:
        """Names of the files that could not be read so far."""
        return []

    def counts(self) -> tuple[int, int]:
        """The number of images, and of synthetic images."""
        raise NotImplementedError

    def prepare(self, number: int) -> None:
        """Called by the main process before sample `number` is used, to make later ones ahead."""

    def close(self) -> None:
        """End what `prepare` began."""


class Steps(Sampler[list[int]]):
    """The sample numbers of every step from `first` to `last`; each of `processes` gets its part of the batch."""

    def __init__(self, first: int, last: int, batch: int, rank: int = 0, processes: int = 1) -> None:
        self.steps = range(first, last)
        self.batch = batch
        self.part = batch // processes
        self.offset = rank * self.part

    def __iter__(self) -> Iterator[list[int]]:
        for step in self.steps:
            start = step * self.batch + self.offset
            yield list(range(start, start + self.part))

    def __len__(self) -> int:
        return len(self.steps)


def loader(samples: Samples, steps: Steps, workers: int, pinned: bool) -> DataLoader[Any]:
    """Batches of all steps, made by `workers` processes (0: by this one)."""
    return DataLoader(
        samples,
        batch_sampler=steps,
        num_workers=workers,
        pin_memory=pinned,
        worker_init_fn=_begin_worker if workers else None,
        prefetch_factor=PREFETCHED if workers else None,
        generator=torch.Generator(),  # so that the random numbers of the network do not depend on the loader
    )


def _begin_worker(number: int) -> None:
    """Ctrl+C is for the main process, which then ends the workers."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
