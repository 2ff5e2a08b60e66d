"""Which picture feeds which input layer: the person's choice, else a sample photograph."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImage, QImageIOHandler, QImageReader

from app.ui.analysis.render import picture_pixels, to_image
from designer.files.settings import PATTERN
from designer.graph.graph import Graph
from designer.operators.api import Role
from designer.operators.registry import Registry
from designer.operators.training_branch import training_branch
from designer.runtime.patterns import PATTERNS, make_pattern

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp")
FILTER = "Pictures and tensors (*.png *.jpg *.jpeg *.tif *.tiff *.webp *.bmp *.npy);;All files (*)"
THUMBNAIL = QSize(96, 72)


def layers_of(graph: Graph, registry: Registry, role: Role) -> tuple[str, ...]:
    """Names of the layers of a role that inference has, in the document's order."""
    found = []
    for layer in graph:
        cls = registry.get(layer.type)
        if cls is not None and cls.role is role:
            found.append(layer.name)
    training = training_branch(graph, registry)
    return tuple(name for name in found if name not in training)


@lru_cache(maxsize=1)
def photographs() -> tuple[Path, ...]:
    """The sample photographs that come with the program, by name."""
    import samples

    folder = Path(next(iter(samples.__path__))) / "photographs"
    return tuple(sorted(p for p in folder.glob("*") if p.suffix.lower() in PICTURES))


def default_picture(graph: Graph, layer: str) -> Path | None:
    """A photograph for an input of one or three channels that nothing was chosen for."""
    dims = graph[layer].params.get("dims", "").split("x")
    if len(dims) == 3 and dims[2] in ("1", "3"):
        return next(iter(photographs()), None)
    return None


def title_of(path: Path) -> str:
    """A file's name, or the pattern's in words."""
    text = str(path)
    return text.removeprefix(PATTERN).replace("_", " ") if text.startswith(PATTERN) else path.name


def thumbnail(path: Path) -> tuple[QImage | None, str]:
    """A small picture of a file and its size as text; without a picture the text says why there is none."""
    if str(path).startswith(PATTERN):
        name = str(path).removeprefix(PATTERN)
        if name not in PATTERNS:
            return None, "no such pattern"
        drawn = make_pattern(name, 3, THUMBNAIL.height(), THUMBNAIL.width())
        return to_image(picture_pixels(drawn[0])), "at the size of dims"
    if path.suffix.lower() == ".npy":
        return None, "tensor"
    reader = QImageReader(str(path))
    reader.setAutoTransform(True)
    reader.setDecideFormatFromContent(True)
    size = reader.size()
    if not size.isValid():
        return None, "no preview"
    turned = bool(reader.transformation() & QImageIOHandler.Transformation.TransformationRotate90)
    reader.setScaledSize(size.scaled(THUMBNAIL * 2, Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    shown = size.transposed() if turned else size
    return (None if image.isNull() else image), f"{shown.width()} x {shown.height()}"
