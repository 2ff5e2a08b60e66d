"""Images of a folder as feeds of a network, for calibration and validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.types import Size3D
from designer.operators.api import Operator
from designer.runtime.api import Array
from designer.runtime.images import IMAGES, read_image
from designer.runtime.input_data import Extent, InputData, check_fed, prepare
from designer.runtime.network import input_layers, operator_of
from designer.texts import tr
from designer.units import dims_text

T = TypeVar("T")


@dataclass(frozen=True)
class ImageSet:
    """Feeds by input layer, one for each image that was used. `skipped` maps names of files to the reason."""

    names: tuple[str, ...]
    feeds: tuple[Mapping[str, NDArray[Any]], ...]
    skipped: Mapping[str, str]


def read_image_set(inference: Inference, folder: Path, *, count: int, size: Extent | None = None) -> ImageSet:
    """The first `count` images of a folder by name, as the network reads them: the middle `size` (height, width) of each.

    The default size is that of the input. Smaller images and damaged files are skipped. Raises DiagnosticError if the network
    has another input than one image, or the folder has no image that can be used.
    """
    layer, operator, dims = image_input(inference)
    height, width = size or (dims.height, dims.width)

    def prepared(image: Array) -> Mapping[str, NDArray[Any]]:
        top, left = (image.shape[2] - height) // 2, (image.shape[3] - width) // 2
        if top < 0 or left < 0:
            needed, found = dims_text((width, height)), dims_text(image.shape[:1:-1])
            message = tr("{found} pixels are fewer than {needed}", found=found, needed=needed)
            raise DiagnosticError.of("wrong-size", message, remedy=tr("choose a smaller size"))
        middle = image[:, :, top : top + height, left : left + width].copy()
        check_fed(layer, operator, middle)
        return {layer: prepare(operator, InputData(middle, True, 0))}

    feeds, skipped = read_images(folder, dims.channels, prepared, count=count)
    return ImageSet(tuple(feeds), tuple(feeds.values()), skipped)


def image_files(folder: Path) -> list[Path]:
    """The images of a folder by name, without hidden files; none if it is missing."""
    found = (path for path in folder.glob("*") if IMAGES.reads(path) and not path.name.startswith("."))
    return sorted(path for path in found if path.is_file())


def read_images(
    folder: Path, channels: int, use: Callable[[Array], T], *, count: int
) -> tuple[dict[str, T], dict[str, str]]:
    """What `use` makes of the first `count` images of a folder (1 x C x H x W), by file, and the reasons of skipped files.

    Files that cannot be read, or for which `use` raises DiagnosticError, are skipped. Raises DiagnosticError if all are.
    """
    paths = image_files(folder)
    if not paths:
        raise DiagnosticError.of(
            "no-images",
            tr("the folder has no images") if folder.is_dir() else tr("the folder does not exist"),
            file=str(folder),
            remedy=tr("choose a folder with {choices} files", choices=IMAGES.read_choices),
        )
    found: dict[str, T] = {}
    skipped: dict[str, str] = {}
    for path in paths:
        if len(found) == count:
            break
        try:
            found[path.name] = use(read_image(path, channels))
        except DiagnosticError as error:
            skipped[path.name] = error.diagnostics[0].message
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:3])
        raise DiagnosticError.of(
            "no-images",
            tr("none of the {count} images can be used: {reasons}", count=len(skipped), reasons=reasons),
            file=str(folder),
            remedy=tr("choose other images, or a smaller size"),
        )
    return found, skipped


def image_input(inference: Inference) -> tuple[str, Operator, Size3D]:
    """The only input of a network, its operator and size. Raises DiagnosticError if there are others, or it is not an image."""
    inputs = input_layers(inference.graph, inference)
    operators = [operator_of(inference, name) for name in inputs]
    dims = [getattr(operator, "dims", None) for operator in operators]
    if len(dims) == 1 and isinstance(dims[0], Size3D):
        return inputs[0], operators[0], dims[0]
    raise DiagnosticError.of(
        "not-one-image",
        tr("the network has the inputs {names}, but a folder of images feeds one image input", names=", ".join(inputs)),
        remedy=tr("choose a network with one image input"),
    )
