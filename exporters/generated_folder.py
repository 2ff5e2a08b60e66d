"""Folders of generated files: they appear completely or not at all, and edited files are recognized.

`deploy.json` lists the SHA-256 of every file, so that a later export replaces what this program wrote and never what was edited.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from designer.files.atomic import make_folder, write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

GENERATOR = "layerwright"
MARKER = "deploy.json"


MarkerT = TypeVar("MarkerT", bound="Marker")


def stage_of(target: Path) -> Path:
    """Where the files of `target` are made, next to it. It remains only if the process is killed."""
    return target.with_name(f".{target.name}.part")


class GeneratedFolder:
    """Collects files next to `target`; `install` moves them there. Without it nothing is changed.

    Raises DiagnosticError at the start if the target has files that are not from this program or were edited.
    """

    def __init__(self, target: Path) -> None:
        self.target = target.absolute()
        self.path = stage_of(self.target)

    def __enter__(self) -> Self:
        self._check_target()
        shutil.rmtree(self.path, ignore_errors=True)
        make_folder(self.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def make(self, file: str) -> Path:
        """The path of a new file, with its folder."""
        make_folder((self.path / file).parent)
        return self.path / file

    def write(self, file: str, text: str) -> None:
        write_atomic(self.make(file), text.encode("utf-8"))

    def copy(self, file: str, other: str) -> None:
        try:
            shutil.copyfile(self.path / file, self.make(other))
        except OSError as error:
            raise self._refused(error) from error

    def mark(self, information: Mapping[str, Any]) -> None:
        """Write the marker: `information` and the digests of the files."""
        files = {file: _digest(self.path / file) for file in self._files()}
        found = {"generator": GENERATOR, "format": 1, **information, "files": files}
        self.write(MARKER, json.dumps(found, indent=2) + "\n")

    def install(self) -> None:
        """Move all files to the target, the marker last, and remove files of an earlier export that are not made any more."""
        try:
            if not self.target.exists():
                os.rename(self.path, self.target)
                return
            files = {*self._files(), *self._earlier()}
            swap(self.target, self.path, self.path / ".replaced", [*sorted(files), MARKER])
        except OSError as error:
            raise self._refused(error) from error

    def _files(self) -> list[str]:
        found = (path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())
        return sorted(file for file in found if file != MARKER)

    def _earlier(self) -> dict[str, str]:
        """Names and digests of the files of an earlier export in the target."""
        marker = read_marker(self.target / MARKER, Marker)
        return marker.files if marker is not None else {}

    def _check_target(self) -> None:
        try:
            present = list(os.scandir(self.target)) if self.target.exists() else []
        except OSError as error:
            raise self._refused(error) from error
        earlier = self._earlier()
        if present and not earlier:
            raise DiagnosticError.of(
                "folder-not-empty",
                tr("{target} has other files; nothing was changed", target=self.target),
                file=str(self.target),
                remedy=tr("choose an empty or a new folder"),
            )
        for file, digest in sorted(earlier.items()):
            path = self.target / file
            if path.is_file() and _digest(path) != digest:
                raise DiagnosticError.of(
                    "file-in-the-way",
                    tr("{path} was changed after it was generated and would be overwritten", path=path),
                    file=str(path),
                    remedy=tr("choose another folder, or move the file away"),
                )

    def _refused(self, error: OSError) -> DiagnosticError:
        return DiagnosticError.of(
            "cannot-export",
            tr(
                "{target} cannot be written: {reason}; nothing was changed there",
                target=self.target,
                reason=error.strerror or error,
            ),
            file=str(self.target),
            remedy=tr("choose a writable folder on a disk with free space"),
        )


class Marker(msgspec.Struct):
    """What an export reads of the marker of an earlier one: digests of its files."""

    generator: str
    files: dict[str, str]


def read_marker(path: Path, kind: type[MarkerT]) -> MarkerT | None:
    """The marker of an earlier export by this program, or None. It lists only files in its folder."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, RecursionError):
        return None
    found.files = {name: digest for name, digest in found.files.items() if _is_inside(name)}
    return found if found.generator == GENERATOR else None


def _is_inside(name: str) -> bool:
    """Whether a relative path stays in its folder, on every system."""
    path = PureWindowsPath(name)
    return bool(path.parts) and not path.anchor and ".." not in path.parts


def swap(target: Path, new: Path, old: Path, names: Sequence[str]) -> None:
    """Replace the files `names` of `target` by those of `new`, or remove them. After an error or Ctrl+C the old ones are restored.

    `old` is a new folder on the same disk, which holds the old files.
    """
    moved: list[str] = []
    try:
        for name in names:
            for folder in (old, target):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (target / name).exists():
                os.rename(target / name, old / name)
            moved.append(name)
            if (new / name).exists():
                os.rename(new / name, target / name)
    except BaseException:
        for name in names:
            if (old / name).exists():
                os.replace(old / name, target / name)
            elif name in moved:
                (target / name).unlink(missing_ok=True)
        raise


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
