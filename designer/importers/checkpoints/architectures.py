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
        with_folded_parts(found.model),
        found.architecture.name,
        int(found.scale),
        (int(found.input_channels), int(found.output_channels)),
        int(rules.multiple_of),
        int(rules.minimum),
        license_of(found.architecture),
    )


def with_folded_parts(module: torch.nn.Module) -> torch.nn.Module:
    """The module with convolutions that SPAN merges at every call merged once, so that a trace only reads the result."""
    for part in module.modules():
        if hasattr(part, "update_params") and hasattr(part, "eval_conv"):
            part.update_params()  # type: ignore[operator]
            part.update_params = _nothing  # type: ignore[assignment]
    return module


def _nothing() -> None:
    """Replaces a method whose work is done."""


# Licenses of the code of architectures, by their folder. The wheel of spandrel has no license files; these are the ones next
# to the code in its repository: github.com/chaiNNer-org/spandrel, libs/spandrel/spandrel/architectures/*/__arch/LICENSE, v0.4.2.
_LICENSES = {
    "Apache-2.0": "ATD CRAFT DAT DCTLSA DITN ESRGAN FBCNN IPT LaMa OmniSR RGT SAFMN SAFMNBCIE SCUNet SPAN SeemoRe Swin2SR SwinIR",
    "Apache-2.0, with parts for non-commercial use only": "GFPGAN RestoreFormer",
    "BSD-3-Clause": "Compact MMRealSR",
    "CC-BY-SA-4.0": "AuraSR",
    "CC0-1.0": "SwiftSRGAN",
    "MIT": "DRCT DRUNet DnCNN FDAT FFTformer GRL HAT HVICIDNet KBNet MixDehazeNet MoESR MoSR NAFNet PLKSR RCAN RealCUGAN "
    "RetinexFormer Uformer",
}


def license_of(architecture: Any) -> str:
    """The license of the code of an architecture, as an SPDX identifier where there is one; weights may have another one."""
    folder = type(architecture).__module__.rpartition(".")[2]
    known = (name for name, folders in _LICENSES.items() if folder in folders.split())
    return next(known, tr("unknown"))
