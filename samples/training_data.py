"""Makes the images with labels that the starting points are trained with: python samples/training_data.py FOLDER.

digits/  gray, 28 x 28, one folder for each of ten classes
shapes/  five kinds of shapes on a background, 128 x 128, in inputs/ and targets/ (masks)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

DIGITS = 300  # images of each class
SCENES = 1200
KINDS = 5  # of shapes: circle, triangle, square, star and bar; class 0 is the background


def background(rng: np.random.Generator, side: int) -> Image.Image:
    """A smooth random color image."""
    coarse = rng.integers(0, 256, (int(rng.integers(2, 7)),) * 2 + (3,), np.uint8)
    return Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)


def digit(rng: np.random.Generator, number: int, side: int) -> Image.Image:
    """A digit as a gray mask: random size, angle and position."""
    large = Image.new("L", (side * 4, side * 4))
    font = ImageFont.load_default(float(rng.uniform(0.65, 1.0) * side * 4))
    center = tuple(side * 2 + rng.uniform(-0.1, 0.1, 2) * side * 4)
    width = int(rng.integers(0, max(2, side // 6)))
    ImageDraw.Draw(large).text(center, str(number), 255, font, anchor="mm", stroke_width=width)
    turned = large.rotate(float(rng.uniform(-20, 20)), Image.Resampling.BILINEAR)
    return turned.resize((side, side), Image.Resampling.BOX).filter(
        ImageFilter.GaussianBlur(float(rng.uniform(0, 0.8)))
    )


def noisy(rng: np.random.Generator, image: Image.Image, level: float) -> Image.Image:
    """An image with Gaussian noise of a random level."""
    values = np.asarray(image, np.float32)
    return Image.fromarray((values + rng.normal(0, rng.uniform(0, level), values.shape)).clip(0, 255).astype(np.uint8))


def outline(rng: np.random.Generator, kind: int) -> list[tuple[float, float]]:
    """The corners of a shape of one kind, around the origin."""
    corners = {2: 3, 3: 4, 4: 10, 5: 4}.get(kind, 40)
    angles = np.arange(corners) * 2 * np.pi / corners + rng.uniform(0, 2 * np.pi)
    radii = np.ones(corners)
    if kind == 4:  # a star
        radii[1::2] = 0.45
    points = np.stack([np.cos(angles), np.sin(angles)], 1) * radii[:, None]
    if kind == 5:  # a bar
        turn = rng.uniform(0, np.pi)
        box = np.array([(-1, -0.25), (1, -0.25), (1, 0.25), (-1, 0.25)])
        points = box @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return [(float(x), float(y)) for x, y in points]


def scene(rng: np.random.Generator, side: int) -> tuple[Image.Image, Image.Image]:
    """An image with shapes, and its mask."""
    image, mask = background(rng, side), Image.new("L", (side, side))
    for _ in range(int(rng.integers(2, 6))):
        kind = int(rng.integers(1, KINDS + 1))
        center, radius = rng.uniform(0.1, 0.9, 2) * side, rng.uniform(0.12, 0.3) * side
        corners = [(center[0] + x * radius, center[1] + y * radius) for x, y in outline(rng, kind)]
        color = tuple(rng.integers(0, 256, 3).tolist())
        ImageDraw.Draw(image).polygon(corners, fill=color)
        ImageDraw.Draw(mask).polygon(corners, fill=kind)
    return noisy(rng, image, 15), mask


def make_digits(folder: Path, rng: np.random.Generator, side: int) -> None:
    """Write the images of ten classes."""
    for number in range(10):
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        for index in range(DIGITS):
            noisy(rng, digit(rng, number, side), 25).save(folder / str(number) / f"{index:03}.png")


def main(target: Path) -> None:
    """Write all folders; the same images every time."""
    rng = np.random.default_rng(0)
    make_digits(target / "digits", rng, 28)
    for part in ("inputs", "targets"):
        (target / "shapes" / part).mkdir(parents=True, exist_ok=True)
    for index in range(SCENES):
        for part, image in zip(("inputs", "targets"), scene(rng, 128), strict=True):
            image.save(target / "shapes" / part / f"{index:03}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
