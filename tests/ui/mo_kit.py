"""A translation as a file, without the gettext tools."""

from __future__ import annotations

import struct


def compiled(messages: dict[str, str]) -> bytes:
    """A .mo file, as msgfmt makes it."""
    pairs = [(k.encode(), v.encode()) for k, v in sorted(messages.items())]
    start = 28 + 16 * len(pairs)
    keys, values, data = [], [], b""
    for at, side in ((keys, 0), (values, 1)):
        for pair in pairs:
            at.append((len(pair[side]), start + len(data)))
            data += pair[side] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, start)
    return head + b"".join(struct.pack("<2I", *entry) for entry in keys + values) + data
