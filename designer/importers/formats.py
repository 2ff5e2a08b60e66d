"""The formats that can be imported, by suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from designer.files.formats import Format, FormatTable
from designer.operators.registry import Registry

if TYPE_CHECKING:
    from designer.importers.imported import Imported


@dataclass(frozen=True)
class ImportOptions:
    """How a file is imported. `sizes` are the shapes of inputs by name, for dimensions that the file leaves open.

    `progress(done, total, text)` may raise to cancel.
    """

    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    progress: Callable[[int, int, str], None] | None = None


Import = Callable[[Path, Registry, ImportOptions], "Imported"]


def _onnx(path: Path, registry: Registry, options: ImportOptions) -> Imported:
    from designer.importers.onnx.importing import import_onnx

    return import_onnx(path, registry, options)


def _checkpoint(path: Path, registry: Registry, options: ImportOptions) -> Imported:
    from designer.importers.checkpoints.importing import import_checkpoint

    return import_checkpoint(path, registry, options)


IMPORTS: FormatTable[Import, None] = FormatTable(
    "models of other programs",
    (
        Format("ONNX model", (".onnx",), _onnx, package="onnx"),
        Format("PyTorch checkpoint", (".pth", ".pt", ".safetensors"), _checkpoint, package="torch"),
    ),
)
