"""Sample documents, photographs with their licenses, and trained weights."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PHOTOGRAPHS = FOLDER / "photographs"
HELD_OUT = FOLDER / "held_out" / "chelsea.png"  # not in the training data of any of the weights

# The documents by name, starting with the one to open first, and the folders of their weights.
DOCUMENTS = ("denoiser_analyze", "denoiser", "dncnn", "oidn_like", "residual_blocks")
# Networks without weights that a new document can start from.
STARTING_POINTS = (
    "denoiser",
    "residual_unet",
    "dncnn",
    "upscaler_x2",
    "segmenter",
    "digit_classifier",
    "vision_transformer",
    "autoencoder",
)
_WEIGHTS = {"denoiser_analyze": "denoiser", "denoiser": "denoiser", "dncnn": "dncnn"}


def path(name: str) -> Path:
    """A file of the samples: `path("denoiser.xml")`."""
    return FOLDER / name


def documents() -> list[Path]:
    """The sample documents, starting with the one to open first."""
    return [FOLDER / f"{name}.xml" for name in DOCUMENTS]


def includes(document: Path) -> bool:
    """Whether a file is in the folder of the samples, in which nothing is written."""
    return FOLDER in Path(os.path.realpath(document)).parents


def starting_point(name: str) -> Path:
    """The file of a starting point."""
    return FOLDER / "starting_points" / f"{name}.xml"


def weights(document: str) -> Path | None:
    """The folder with trained weights of a sample document (name without suffix); None if there are none."""
    name = _WEIGHTS.get(document)
    found = FOLDER / "weights" / name if name is not None else None
    return found if found is not None and found.is_dir() else None
