"""Write a page of training samples as an image: what the network sees, and the target below it.

python samples.py DATA_OPTIONS --output page.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

import data
from config import HERE, parse
from images import DataError
from objective import place

COLUMNS, ROWS = 6, 2
SIDE = 128  # pixels of each image on the page
GAP = 4


def image_of(values: torch.Tensor) -> Image.Image:
    """An image of C x H x W values in 0..1; classes H x W become gray levels, and a single class its number."""
    if values.dim() == 3 and values.shape[0] in (1, 3, 4):
        array = (values.clamp(0, 1).numpy() * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)
        return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array[..., :3])
    if values.dim() >= 2:
        plane = values.reshape(-1, *values.shape[-2:])[0].float()
        return Image.fromarray((plane / max(float(plane.max()), 1.0) * 255).numpy().astype(np.uint8))
    made = Image.new("L", (SIDE, SIDE))
    text = " ".join(f"{value:g}" for value in values.reshape(-1)[:4].tolist())
    ImageDraw.Draw(made).text((SIDE // 2, SIDE // 2), text, fill=255, anchor="mm", font_size=SIDE // 4)
    return made


def page(samples: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Image.Image:
    """The inputs in rows, each above its target."""
    step = SIDE + GAP
    rows = -(-len(samples) // COLUMNS)
    made = Image.new("RGB", (COLUMNS * step + GAP, rows * 2 * step + GAP * (rows + 1)), (40, 40, 40))
    for number, (first, second) in enumerate(samples):
        inputs, targets = place((first[None], second[None]), torch.device("cpu"))
        row, column = divmod(number, COLUMNS)
        for line, values in enumerate((inputs[0][0], targets[0][0])):
            shown = image_of(values)
            scale = SIDE / max(shown.size)
            size = (max(1, round(shown.width * scale)), max(1, round(shown.height * scale)))
            shown = shown.convert("RGB").resize(size, Image.Resampling.NEAREST)
            made.paste(shown, (GAP + column * step, GAP + (2 * row + line) * step + row * GAP))
    return made


def main(argv: Sequence[str] | None = None) -> int:
    command = parse(argv, __doc__ or "")
    try:
        samples, _, _ = data.open_data(command.config(), HERE / "cache")
        try:
            made = page([samples[number] for number in range(COLUMNS * ROWS)])
        finally:
            samples.close()
        made.save(Path(command.output or "samples.png"))
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
