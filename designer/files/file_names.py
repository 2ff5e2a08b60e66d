"""Names of files and folders that are proposed for a network."""

from __future__ import annotations

from pathlib import Path

LONGEST, LONGEST_SUFFIX = 60, 12  # characters of a proposed name


def file_name(proposed: str) -> str:
    """A name made from a network's, which is any text, as the name of one file or folder in one folder."""
    suffix = Path(proposed).suffix
    if not (suffix[1:].isascii() and suffix[1:].isalnum() and len(suffix) <= LONGEST_SUFFIX):
        suffix = ""  # a part of the name such as `.5 small`
    stem = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in proposed.removesuffix(suffix))
    return f"{stem.strip(' .')[:LONGEST] or 'network'}{suffix}"
