"""Records of what a window shows: texts in `tests/data/recorded/window`, which a test compares with what the window shows now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from icon_names import icon_name, named_cells
from recorded import check_lines
from shown_state import Shown

DIGEST = re.compile(r"[0-9a-f]{12,}|(?<=imported )[0-9a-f]{8}")
ELSEWHERE = re.compile(  # what depends on the machine and on the day
    r"/[^\s'\"<>,)]*/(?P<file>[^\s'\",)/]*)"  # paths
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"
    r"|\b\d\d:\d\d(?::\d\d)?\b"
)
IMAGES = (" painted", " image", " icon")


def lines(
    shown: Shown, without: Iterable[str] = (), since: Mapping[str, object] | None = None, *, icons: bool = False
) -> list[str]:
    """What a window shows, one place a line; with `icons`, drawing and color of the icons of buttons and cells.

    Left out are images, what nearly every widget has, places that begin with one of `without`, and what `since`, which it
    showed before, has too.
    """
    left_out = tuple(without)

    def counts(place: str, value: object) -> bool:
        kind = place.partition("#")[0]
        plain = (kind.endswith(" enabled") and value == "True") or (
            kind.endswith((" text", " placeholder", " icon")) and not value
        )
        named = icons and kind.endswith(" icon") and not kind.endswith(" QToolButton icon")  # Qt's own buttons
        image = kind.endswith(IMAGES) and not named
        return not (plain or image or place.startswith(left_out))

    def text(place: str, value: object) -> object:
        if not icons:
            return value
        return icon_name(str(value)) if place.partition("#")[0].endswith(" icon") else named_cells(str(value))

    before = since or {}
    found = [
        f"{place}: {text(place, value)}"
        for place, value in shown.items()
        if (counts(place, value) or (place in before and counts(place, before[place]))) and before.get(place) != value
    ]
    gone = [f"{place}: (gone)" for place, value in before.items() if place not in shown and counts(place, value)]
    return [plain(line) for line in (*found, *gone)]


def plain(line: str) -> str:
    """A line without what depends on the machine and on the day."""
    return ELSEWHERE.sub(_elsewhere, DIGEST.sub("<...>", line)).replace("\n", "\\n")


def compare(name: str, found: list[str]) -> None:
    """Fails with the lines that differ from the record `window/name`, apart from the last digits of fractions."""
    check_lines(f"window/{name}.txt", found)


def _elsewhere(found: re.Match[str]) -> str:
    return f"<folder>/{found['file']}" if found["file"] is not None else "<...>"
