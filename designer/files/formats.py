"""File formats as tables: the suffixes of each format, its title, and what reads and writes it.

Dialogs, drag-and-drop, the command line and messages read these tables, so a format is registered in one place. Functions
that read and write import heavy libraries when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

R = TypeVar("R")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Format(Generic[R, W]):
    """One format. `read` or `write` is None where it is not supported.

    `suffixes` are in lower case with the dot, the usual one first. `package` is a large package that reading imports: the
    window leaves such files to the engine's process.
    """

    title: str
    suffixes: tuple[str, ...]
    read: R | None = None
    write: W | None = None
    package: str = ""


class FormatTable(Generic[R, W]):
    """The formats of one subject, a plural such as "networks".

    `tables` are included with all that is registered in them. `folder` says which files a folder may hold in place of a
    single file.
    """

    def __init__(
        self,
        subject: str,
        formats: Iterable[Format[R, W]] = (),
        *,
        tables: Sequence[FormatTable[Any, Any]] = (),
        folder: FormatTable[Any, Any] | None = None,
    ) -> None:
        self.subject = subject
        self.formats: list[Format[R, W]] = []
        self.tables = tables
        self._folder = folder
        for format in formats:
            self.register(format)

    def register(self, format: Format[R, W]) -> None:
        """Add a format. ValueError where one of its suffixes has another format already."""
        taken = [suffix for suffix in format.suffixes if self.find(f"name{suffix}") is not None]
        if taken:
            raise ValueError(f"{self.subject}: {', '.join(taken)} has a format already")
        self.formats.append(format)

    def __iter__(self) -> Iterator[Format[R, W]]:
        yield from self.formats
        for table in self.tables:
            yield from table

    @property
    def title(self) -> str:
        """The subject as a title."""
        return self.subject[:1].upper() + self.subject[1:]

    @property
    def readable(self) -> tuple[Format[R, W], ...]:
        return tuple(format for format in self if format.read is not None)

    @property
    def writable(self) -> tuple[Format[R, W], ...]:
        return tuple(format for format in self if format.write is not None)

    @property
    def read_suffixes(self) -> tuple[str, ...]:
        return tuple(suffix for format in self.readable for suffix in format.suffixes)

    @property
    def write_suffixes(self) -> tuple[str, ...]:
        return tuple(suffix for format in self.writable for suffix in format.suffixes)

    def find(self, path: str | os.PathLike[str]) -> Format[R, W] | None:
        """The format of a path, by its suffix in upper or lower case."""
        suffix = Path(path).suffix.lower()
        return next((format for format in self if suffix in format.suffixes), None)

    def reads(self, path: str | os.PathLike[str]) -> bool:
        found = self.find(path)
        return found is not None and found.read is not None

    def writes(self, path: str | os.PathLike[str]) -> bool:
        found = self.find(path)
        return found is not None and found.write is not None

    def reader(self, path: str | os.PathLike[str]) -> R:
        """What reads `path`. DiagnosticError ("unknown-format") names the suffixes that exist."""
        found = self.find(path)
        if found is None or found.read is None:
            raise self._refused(path, tr("read from"), self.read_choices)
        return found.read

    def writer(self, path: str | os.PathLike[str]) -> W:
        """What writes `path`. DiagnosticError ("unknown-format") names the suffixes that exist."""
        found = self.find(path)
        if found is None or found.write is None:
            raise self._refused(path, tr("written to"), self.write_choices)
        return found.write

    @property
    def read_choices(self) -> str:
        """What can be read, for messages: ".safetensors or .pt, or a folder of .npy files"."""
        return self._choices(self.read_suffixes, self._folder.read_suffixes if self._folder is not None else ())

    @property
    def write_choices(self) -> str:
        """What can be written, for messages."""
        return self._choices(self.write_suffixes, self._folder.write_suffixes if self._folder is not None else ())

    def _choices(self, suffixes: Sequence[str], inside: Sequence[str]) -> str:
        return alternatives(suffixes) + (f", or a folder of {alternatives(inside)} files" if inside else "")

    def _refused(self, path: str | os.PathLike[str], done: str, choices: str) -> DiagnosticError:
        path = Path(path)
        files = f"'{path.suffix}' files" if path.suffix else "files without a suffix"
        message = f"{path.name}: {self.subject} cannot be {done} {files}"
        return DiagnosticError(
            Diagnostic("unknown-format", message, file=str(path), remedy=tr("use {choices}", choices=choices))
        )


def alternatives(words: Sequence[str]) -> str:
    """ "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
