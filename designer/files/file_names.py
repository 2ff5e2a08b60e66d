"""Names of files and folders that are proposed for a network."""

from __future__ import annotations

from pathlib import Path

LONGEST = 60  # characters of a proposed name: 240 bytes at most


def file_name(proposed: str) -> str:
    """A name made from a network's, which is any text, as the name of one file or folder in one folder."""
    suffix = Path(proposed).suffix
    stem = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in proposed.removesuffix(suffix))
    return f"{stem.strip(' .')[:LONGEST] or 'network'}{suffix if suffix[1:].isalnum() else ''}"
