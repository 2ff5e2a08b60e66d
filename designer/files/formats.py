"""Tables of file formats: suffixes, title, reader and writer of each format.

Dialogs, drag-and-drop, the command line and messages use these tables, so that a format is registered in one place. Readers
and writers import large libraries only when called.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

R = TypeVar("R")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Format(Generic[R, W]):
    """One format. `read` or `write` is None if it is not supported.

    `suffixes` are lower case with the dot, the default one first. `package` is a large package that `read` imports: the window
    lets the engine process read such files.
    """

    title: str
    suffixes: tuple[str, ...]
    read: R | None = None
    write: W | None = None
    package: str = ""


class FormatTable(Generic[R, W]):
    """The formats of one subject, a plural noun such as "networks".

    `tables` are included with everything registered in them. `folder` are the formats of files that a folder can contain instead
    of a single file.
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
        """Add a format. Raises ValueError if one of its suffixes is taken."""
        taken = [suffix for suffix in format.suffixes if self.find(f"name{suffix}") is not None]
        if taken:
            raise ValueError(f"{self.subject}: {', '.join(taken)} already has a format")
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
        """The format of a path by its suffix, ignoring case; None if unknown."""
        suffix = Path(path).suffix.lower()
        return next((format for format in self if suffix in format.suffixes), None)

    def stem(self, name: str) -> str:
        """The name of a file without its suffix, if that is one of the table's."""
        return Path(name).stem if self.find(name) is not None else name

    def reads(self, path: str | os.PathLike[str]) -> bool:
        found = self.find(path)
        return found is not None and found.read is not None

    def writes(self, path: str | os.PathLike[str]) -> bool:
        found = self.find(path)
        return found is not None and found.write is not None

    def reader(self, path: str | os.PathLike[str]) -> R:
        """The reader for `path`. Raises DiagnosticError ("unknown-format") that lists the supported suffixes."""
        found = self.find(path)
        if found is None or found.read is None:
            raise self._refused(path, tr("read from"), self.read_choices)
        return found.read

    def writer(self, path: str | os.PathLike[str]) -> W:
        """The writer for `path`. Raises DiagnosticError ("unknown-format") that lists the supported suffixes."""
        found = self.find(path)
        if found is None or found.write is None:
            raise self._refused(path, tr("written to"), self.write_choices)
        return found.write

    @property
    def read_choices(self) -> str:
        """The readable formats for messages: ".safetensors or .pt, or a folder of .npy files"."""
        return self._choices(self.read_suffixes, self._folder.read_suffixes if self._folder is not None else ())

    @property
    def write_choices(self) -> str:
        """The writable formats for messages."""
        return self._choices(self.write_suffixes, self._folder.write_suffixes if self._folder is not None else ())

    def _choices(self, suffixes: Sequence[str], inside: Sequence[str]) -> str:
        return alternatives(suffixes) + (f", or a folder of {alternatives(inside)} files" if inside else "")

    def _refused(self, path: str | os.PathLike[str], done: str, choices: str) -> DiagnosticError:
        path = Path(path)
        files = f"'{path.suffix}' files" if path.suffix else tr("files without a suffix")
        message = tr(
            "{name}: {subject} cannot be {done} {files}", name=path.name, subject=self.subject, done=done, files=files
        )
        return DiagnosticError.of(
            "unknown-format", message, file=str(path), remedy=tr("use {choices}", choices=choices)
        )


def alternatives(words: Sequence[str]) -> str:
    """The words as "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
