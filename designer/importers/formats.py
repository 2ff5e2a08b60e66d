"""The formats that can be imported, by suffix, and all files that can be opened as networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.files.document import DOCUMENTS
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


def _program(path: Path, registry: Registry, options: ImportOptions) -> Imported:
    from designer.importers.pytorch.importing import import_saved_program

    return import_saved_program(path, registry, progress=options.progress)


CHECKPOINTS: FormatTable[Import, None] = FormatTable(
    "checkpoints", (Format("PyTorch checkpoint", (".pth", ".pt", ".safetensors"), _checkpoint, package="torch"),)
)
IMPORTS: FormatTable[Import, None] = FormatTable(
    "models of other programs",
    (Format("ONNX model", (".onnx",), _onnx, package="onnx"),),
    tables=(CHECKPOINTS,),
)
# Reading a program can run code that is in it: only in a process of its own, with the user's consent.
PROGRAMS: FormatTable[Import, None] = FormatTable(
    "exported programs", (Format("PyTorch exported program", (".pt2",), _program, package="torch"),)
)
MODELS: FormatTable[Import, None] = FormatTable("models", tables=(IMPORTS, PROGRAMS))
NETWORKS: FormatTable[Any, Any] = FormatTable("networks and models", tables=(DOCUMENTS, IMPORTS, PROGRAMS))
