"""Architectures that `spandrel` recognizes from the names and shapes of tensors (extra `layerwright[torch-import]`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

if TYPE_CHECKING:
    import torch


class Recognized(NamedTuple):
    """What a checkpoint contains: the module with its weights, and facts to show."""

    module: torch.nn.Module
    architecture: str
    scale: int
    channels: tuple[int, int]  # of the input and of the output
    multiple: int  # of height and width
    smallest: int  # height and width
    license: str

    def facts(self) -> str:
        """The facts in one sentence."""
        rule = tr("multiples of {number}", number=self.multiple) if self.multiple > 1 else tr("any size")
        return tr(
            "{architecture}, scale {scale}, {before} to {after} channels, {rule}; license of the architecture: {license}",
            architecture=self.architecture,
            scale=self.scale,
            before=self.channels[0],
            after=self.channels[1],
            rule=rule,
            license=self.license,
        )


@cache
def spandrel() -> Any:
    """The package. Raises DiagnosticError if it is not installed.

    torchvision wheels for CUDA do not load their operators next to a torch for the CPU, and its import fails. spandrel uses
    only functions of torchvision in Python, so the missing declarations are made first.
    """
    if find_spec("spandrel") is None:
        raise DiagnosticError.of(
            "no-package",
            tr("recognizing checkpoints requires the package spandrel, which is not installed"),
            remedy=tr("install it with pip install 'layerwright[torch-import]'"),
        )
    _declare_operators()
    import spandrel as package

    return package


def _declare_operators() -> None:
    import sys

    import torch

    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)


_LIBRARIES: list[Any] = []  # a library that is dropped takes its declarations with it


def recognize(state: Mapping[str, torch.Tensor]) -> Recognized | None:
    """The architecture of a state dict with its weights; None if it is unknown."""
    package = spandrel()
    try:
        found = package.ModelLoader(device="cpu").load_from_state_dict(dict(state))
    except package.UnsupportedModelError:
        return None
    rules = found.size_requirements
    return Recognized(
        found.model,
        found.architecture.name,
        int(found.scale),
        (int(found.input_channels), int(found.output_channels)),
        int(rules.multiple_of),
        int(rules.minimum),
        license_of(found.architecture),
    )


def license_of(architecture: Any) -> str:
    """The license of the code of an architecture, as its package declares; `unknown` if there is no file."""
    from importlib.resources import files

    folder = files(type(architecture).__module__)
    names = sorted((item.name for item in folder.joinpath("__arch").iterdir()), key=str.lower)
    for name in names:
        if name.upper().startswith("LICENSE"):
            text = folder.joinpath("__arch").joinpath(name).read_text("utf-8")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            return lines[0][:80] if lines else "unknown"
    return "unknown"
