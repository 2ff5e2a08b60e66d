"""Documents to begin with, photographs with their licences, and trained weights."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PHOTOGRAPHS = FOLDER / "photographs"
HELD_OUT = FOLDER / "held_out" / "chelsea.png"  # no weights here were trained with this photograph

# The documents by name, the one to open first in front, and the folders of the weights that belong to them.
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
    """The sample documents, the one to open first in front."""
    return [FOLDER / f"{name}.xml" for name in DOCUMENTS]


def starting_point(name: str) -> Path:
    """The file of a starting point."""
    return FOLDER / "starting_points" / f"{name}.xml"


def weights(document: str) -> Path | None:
    """The folder with trained weights for a sample document (name without ending); None where there are none."""
    name = _WEIGHTS.get(document)
    found = FOLDER / "weights" / name if name is not None else None
    return found if found is not None and found.is_dir() else None
