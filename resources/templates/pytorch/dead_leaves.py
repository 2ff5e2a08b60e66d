"""Dead leaves images: an endless source of training images whose edges and scales have the statistics of photos.

Leaves (ellipses and polygons) of power-law size cover each other; their colors and textures come from photos.
Source: Achddou, Gousseau, Ladjal, "Synthetic images as a regularity prior for image restoration neural networks" (2021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

OVERSAMPLING = 2  # drawn larger, then downscaled, for smooth edges
COVERAGE = 3.0  # mean number of leaves that cover a pixel
TEXTURED_RADIUS = 10  # smaller leaves have one color
TEXTURE_SIZE = 256
TEXTURES = 12  # different textures in an image


def dead_leaves(size: int, rng: np.random.Generator, photos: Sequence[np.ndarray] = ()) -> np.ndarray:
    """Make an image of size x size x 3 bytes; `photos` (H x W x 3 bytes) give colors and textures, otherwise these are random."""
    wide = size * OVERSAMPLING
    palette = _palette(rng, photos)
    textures = [_texture(rng, palette, photos) for _ in range(TEXTURES)]
    image = Image.new("RGB", (wide, wide), _color(rng, palette))
    image.paste(_cover(textures[0], wide))
    draw = ImageDraw.Draw(image)
    smallest, largest = float(2 ** rng.uniform(0.5, 4)), wide / 3
    # The density of radii falls with their cube between the limits.
    mean_area = np.pi * 2 * smallest**2 * np.log(largest / smallest)
    count = min(int(COVERAGE * wide**2 / mean_area), 60_000)
    radii = (smallest**-2 + rng.random(count) * (largest**-2 - smallest**-2)) ** -0.5
    centers = rng.random((count, 2)) * wide
    textured = rng.uniform(0.2, 0.9)
    for radius, (x, y) in zip(radii, centers, strict=True):
        outline = np.add(_outline(rng, radius), (x, y))
        if radius < TEXTURED_RADIUS or rng.random() > textured:
            draw.polygon(outline.ravel().tolist(), fill=_color(rng, palette))
        else:
            _paste(image, outline, textures[rng.integers(TEXTURES)], rng)
    if rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.6)))
    return np.asarray(image.resize((size, size), Image.Resampling.BOX))


def _palette(rng: np.random.Generator, photos: Sequence[np.ndarray]) -> np.ndarray:
    """512 x 3 colors of one photo, with other brightness, contrast, and order of channels; without photos, random ones."""
    if photos:
        pixels = photos[int(rng.integers(len(photos)))].reshape(-1, 3)
        colors: np.ndarray = pixels[rng.integers(len(pixels), size=512)].astype(np.float32) / 255
    else:
        colors = rng.random((512, 1), np.float32) + rng.normal(0, 0.15, (512, 3)).astype(np.float32)
    colors = colors[:, _order(rng)].clip(0, 1) ** rng.uniform(0.6, 1.6)
    tint = 1 + rng.normal(0, 0.08, 3).astype(np.float32)
    return ((colors * tint).clip(0, 1) * 255).astype(np.uint8)


def _order(rng: np.random.Generator) -> np.ndarray:
    """An order of the channels: in half of the cases as they are."""
    return np.arange(3) if rng.random() < 0.5 else rng.permutation(3)


def _color(rng: np.random.Generator, palette: np.ndarray) -> tuple[int, int, int]:
    red, green, blue = palette[rng.integers(len(palette))].tolist()
    return red, green, blue


def _outline(rng: np.random.Generator, radius: float) -> np.ndarray:
    """Points x 2 around the origin: an ellipse, a polygon, or a wavy shape."""
    kind = rng.random()
    points = max(8, min(48, int(radius))) if kind < 0.75 else int(rng.integers(3, 7))
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    if kind >= 0.75:
        angles = np.sort(rng.random(points)) * 2 * np.pi
    distance = np.full(points, radius)
    if 0.45 < kind < 0.75:
        for frequency in rng.integers(2, 7, 2):
            distance = distance * (1 + 0.2 * rng.random() * np.sin(frequency * angles + rng.random() * 6.3))
    shape = np.stack([np.cos(angles), np.sin(angles) * rng.uniform(0.2, 1.0)], 1) * distance[:, None]
    turn = rng.random() * 2 * np.pi
    return shape @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])


def _paste(image: Image.Image, outline: np.ndarray, texture: np.ndarray, rng: np.random.Generator) -> None:
    """Fill an outline with a part of a texture, some with a shade across the leaf."""
    low = np.floor(outline.min(0)).astype(int).clip(0)
    high = np.minimum(np.ceil(outline.max(0)).astype(int), image.size)
    if (high <= low).any():
        return
    width, height = (high - low).tolist()
    mask = Image.new("L", (width, height))
    ImageDraw.Draw(mask).polygon((outline - low).ravel().tolist(), fill=255)
    fill = _cover(texture, max(width, height), rng).crop((0, 0, width, height))
    if rng.random() < 0.4:
        slope_x, slope_y = rng.normal(0, 0.25, 2)
        shade = 1 + np.linspace(-slope_x, slope_x, width)[None, :] + np.linspace(-slope_y, slope_y, height)[:, None]
        fill = Image.fromarray((np.asarray(fill) * shade[:, :, None]).clip(0, 255).astype(np.uint8))
    image.paste(fill, (int(low[0]), int(low[1])), mask)


def _cover(texture: np.ndarray, size: int, rng: np.random.Generator | None = None) -> Image.Image:
    """A square of a texture, shifted at random, mirrored at its borders where it is larger than the texture."""
    top, left = rng.integers(TEXTURE_SIZE, size=2).tolist() if rng is not None else (0, 0)
    rows, columns = (_mirrored(np.arange(start, start + size)) for start in (top, left))
    return Image.fromarray(texture[rows[:, None], columns[None, :]])


def _mirrored(index: np.ndarray) -> np.ndarray:
    index = index % (2 * TEXTURE_SIZE)
    return np.minimum(index, 2 * TEXTURE_SIZE - 1 - index)


def _texture(rng: np.random.Generator, palette: np.ndarray, photos: Sequence[np.ndarray]) -> np.ndarray:
    """TEXTURE_SIZE x TEXTURE_SIZE x 3 bytes: a part of a photo, colored noise, stripes, or a gradient."""
    kind = rng.random()
    if photos and kind < 0.35:
        return _photo_part(rng, photos[int(rng.integers(len(photos)))])
    first, second = (palette[rng.integers(len(palette))].astype(np.float32) for _ in range(2))
    if kind < 0.65:
        weight = _noise(rng, rng.uniform(0.4, 1.6))
        contrast = rng.uniform(0.1, 0.5)
        weight = 0.5 + contrast * weight
    elif kind < 0.85:
        y, x = np.mgrid[:TEXTURE_SIZE, :TEXTURE_SIZE].astype(np.float32)
        angle, period = rng.random() * np.pi, 2 ** rng.uniform(1.5, 6)
        phase = (x * np.cos(angle) + y * np.sin(angle)) / period + rng.uniform(0, 1) * _noise(rng, 1.6)
        weight = 0.5 + rng.uniform(0.1, 0.5) * np.sin(2 * np.pi * phase)
    else:
        weight = np.broadcast_to(np.linspace(0, 1, TEXTURE_SIZE)[None, :], (TEXTURE_SIZE, TEXTURE_SIZE))
    mixed = first + (second - first) * weight[:, :, None]
    return mixed.clip(0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator, decay: float) -> np.ndarray:
    """Noise whose amplitude falls with frequency to the power `decay`, in some images along one direction; standard deviation 1."""
    fy, fx = np.fft.fftfreq(TEXTURE_SIZE)[:, None], np.fft.rfftfreq(TEXTURE_SIZE)[None, :]
    if rng.random() < 0.4:
        turn, stretch = rng.random() * np.pi, rng.uniform(2, 8)
        fx, fy = (fx * np.cos(turn) + fy * np.sin(turn)) * stretch, fy * np.cos(turn) - fx * np.sin(turn)
    amplitude = np.hypot(fx, fy) + 1 / TEXTURE_SIZE
    values = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((TEXTURE_SIZE, TEXTURE_SIZE))) * amplitude**-decay)
    return ((values - values.mean()) / values.std()).astype(np.float32)


def _photo_part(rng: np.random.Generator, photo: np.ndarray) -> np.ndarray:
    """A part of a photo, turned, at another scale, with other contrast and order of channels."""
    side = min(int(TEXTURE_SIZE * rng.uniform(0.4, 1.5)), *photo.shape[:2])
    top, left = (int(rng.integers(length - side + 1)) for length in photo.shape[:2])
    part = np.rot90(photo[top : top + side, left : left + side], int(rng.integers(4)))[:, :, _order(rng)]
    resized = Image.fromarray(np.ascontiguousarray(part)).resize((TEXTURE_SIZE, TEXTURE_SIZE), Image.Resampling.BICUBIC)
    values = np.asarray(resized, np.float32)
    mean = values.mean((0, 1))
    return (mean + (values - mean) * rng.uniform(0.4, 1.3) + rng.normal(0, 15, 3)).clip(0, 255).astype(np.uint8)
