"""Import of checkpoints: `.pth`, `.pt` and `.safetensors`. They are read without running code from them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from designer.importers.checkpoints.architectures import Recognized, recognize
from designer.importers.checkpoints.skeleton import skeleton
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.loading import read_state
from designer.operators.registry import Registry
from designer.texts import tr

if TYPE_CHECKING:
    import torch

SIDE = 64  # height and width that a recognized architecture is traced at, if it allows them


def import_checkpoint(path: Path, registry: Registry, options: ImportOptions) -> Imported:
    """The network of a recognized architecture, else a skeleton of layers without links.

    Raises DiagnosticError for files that are damaged or contain code.
    """
    state = read_state(path)
    found = recognize(state) if find_spec("spandrel") is not None else None
    if found is not None:
        made = import_module(
            found.module, [_example(found, options)], registry, name=path.stem, progress=options.progress
        )
        report = msgspec.structs.replace(made.report, source=path.name, facts=found.facts())
        return Imported(made.graph, made.weights, report, made.original, made.options)
    made = skeleton(state, registry, path.stem)
    note = tr("the architecture is unknown: the layers have no links")
    if find_spec("spandrel") is None:
        note = tr(
            "{note}; pip install 'layerwright[torch-import]' recognizes many architectures of image networks", note=note
        )
    report = msgspec.structs.replace(
        made.report, source=path.name, facts=note, not_compared_because=tr("the links are missing")
    )
    return Imported(made.graph, made.weights, report)


def _example(found: Recognized, options: ImportOptions) -> torch.Tensor:
    """An image that the architecture takes."""
    import torch

    given = next(iter(options.sizes.values()), None)
    if given is not None:
        return torch.rand(given)
    side = max(SIDE, found.smallest)
    side = -(-side // found.multiple) * found.multiple
    return torch.rand(1, found.channels[0], side, side)
