"""Pre- and post-processing: from an image file to the arrays that the model reads, and from its outputs to files.

Images are 1 x C x H x W float32 arrays. The constants of each input (scale, shift, multiple) are in deploy.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Array = NDArray[np.float32]
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


class InputError(Exception):
    """A file that the network cannot read."""


def read(path: Path, entry: dict[str, Any]) -> tuple[Array, bool]:
    """The values of a file for the input `entry`, and whether they are an image; .npy files are used unchanged."""
    if path.suffix.lower() == ".npy":
        return np.ascontiguousarray(np.load(path, allow_pickle=False), np.float32), False
    if not entry["image"]:
        raise InputError(f"{path}: the input '{entry['name']}' is not an image; give an .npy file")
    return read_image(path, entry["channels"]), True


def read_image(path: Path, channels: int) -> Array:
    """The image with values 0..1: gray for 1 channel, RGB for 3, RGB and opacity for 4."""
    modes = {1: "RGB", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise InputError(f"{path}: an image has 1, 3 or 4 channels, the input has {channels}; give an .npy file")
    # From a stream: Pillow 13 garbles uncompressed gray TIFF files that are turned if it gets their path.
    with path.open("rb") as stream, Image.open(stream) as opened:
        image = ImageOps.exif_transpose(opened)
        if image.mode.startswith("I"):  # 16 bits, which `convert` would clip at 255
            gray = np.asarray(image).clip(0, 65535).astype(np.float32)[:, :, None] / np.float32(65535)
            pixels = np.repeat(gray, 3, axis=2)
            pixels = pixels if channels < 4 else np.concatenate([pixels, np.ones_like(gray)], axis=2)
        else:
            pixels = np.asarray(image.convert(modes[channels]), np.float32) / np.float32(255)
    if channels == 1:
        equal = bool((pixels == pixels[:, :, :1]).all())
        pixels = pixels[:, :, :1] if equal else (pixels @ LUMA)[:, :, None]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def prepare(array: Array, entry: dict[str, Any], *, is_image: bool) -> Array:
    """The array that the model reads: images are scaled and shifted, then padded by repeating the last row and column."""
    if not entry["image"]:
        return array
    if array.ndim != 4 or array.shape[1] != entry["channels"]:
        shape = " x ".join(map(str, array.shape))
        raise InputError(f"the input '{entry['name']}' needs N x {entry['channels']} x H x W, not {shape}")
    if is_image:
        array = array * np.float32(entry["scale"]) + np.float32(entry["shift"])
    below, right = (-size % entry["multiple"] for size in array.shape[2:])
    array = np.pad(array, ((0, 0), (0, 0), (0, below), (0, right)), mode="edge")
    for size, needed, axis in zip(array.shape[2:], (entry["height"], entry["width"]), ("height", "width"), strict=True):
        if needed is not None and size != needed:
            raise InputError(f"the input '{entry['name']}' needs the {axis} {needed}, not {size}; resize the image")
    return array


def crop(output: Array, size: tuple[int, int], padded: tuple[int, int]) -> Array:
    """The part of an output that belongs to an input of `size`; outputs of another scale are cropped in proportion."""
    if output.ndim != 4:
        return output
    height, width = (max(1, round(n * s / p)) for n, s, p in zip(output.shape[2:], size, padded, strict=True))
    return output[:, :, :height, :width]


def write(path: Path, output: Array) -> None:
    """Write an output as .npy file, or the first image of N x C x H x W, clipped to 0..1."""
    if path.suffix.lower() == ".npy":
        np.save(path, output)
        return
    if output.ndim != 4 or output.shape[1] not in (1, 3, 4):
        raise InputError(f"{path}: an output of shape {output.shape} is not an image; write an .npy file")
    pixels = (np.nan_to_num(output[0]).clip(0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(path)
