"""Which image feeds which input layer: the user's choice, else a sample photograph."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage

from app.ui.widgets.render import picture_pixels, to_image
from designer.files.settings import CAMERA, PATTERN
from designer.graph.graph import Graph
from designer.operators.api import Role, Size3D
from designer.operators.registry import Registry
from designer.operators.training_branch import training_branch
from designer.runtime.images import IMAGES
from designer.runtime.patterns import make_pattern
from designer.texts import tr

THUMBNAIL = QSize(96, 72)
Pixels = NDArray[np.uint8]


def layers_of(graph: Graph, registry: Registry, role: Role) -> tuple[str, ...]:
    """Names of the layers of a role that inference has, sorted as in a saved document."""
    kinds = {kind for kind in graph.types if registry.role(kind) is role}
    found = sorted(layer.name for layer in graph if layer.type in kinds) if kinds else []
    training = training_branch(graph, registry) if found else ()
    return tuple(name for name in found if name not in training)


@lru_cache(maxsize=1)
def photographs() -> tuple[Path, ...]:
    """The sample photographs that come with the program, by name."""
    import samples

    folder = Path(next(iter(samples.__path__))) / "photographs"
    return tuple(sorted(p for p in folder.glob("*") if IMAGES.reads(p)))


def default_picture(graph: Graph, registry: Registry, layer: str) -> Path | None:
    """A photograph for an input of one or three channels that nothing was chosen for."""
    dims = getattr(registry.read(graph[layer]).operator, "dims", None)  # other inputs have no size of an image
    if isinstance(dims, Size3D) and dims.channels in (1, 3):
        return next(iter(photographs()), None)
    return None


def title_of(path: Path) -> str:
    """A file's name, or the pattern or the camera in words."""
    text = str(path)
    if text.startswith(CAMERA):
        return tr("camera {name}", name=text.removeprefix(CAMERA))
    return text.removeprefix(PATTERN).replace("_", " ") if text.startswith(PATTERN) else path.name


@lru_cache(maxsize=8)
def pattern_thumbnail(name: str) -> QImage:
    """A test image, small."""
    drawn = make_pattern(name, 3, THUMBNAIL.height(), THUMBNAIL.width())
    return to_image(picture_pixels(drawn[0]))


def image_of(pixels: Pixels | None) -> QImage | None:
    """An image that owns its memory, of H x W x 3 bytes."""
    if pixels is None:
        return None
    rows = np.ascontiguousarray(pixels)
    height, width = rows.shape[:2]
    return QImage(rows.data, width, height, width * 3, QImage.Format.Format_RGB888).copy()


def cameras() -> tuple[str, ...]:
    """Numbers of the cameras that the system shows; elsewhere than on Linux the first two are guessed."""
    if sys.platform.startswith("linux"):
        found = (p.name.removeprefix("video") for p in Path("/dev").glob("video*"))
        return tuple(sorted((n for n in found if n.isdecimal()), key=int))
    return ("0", "1")
