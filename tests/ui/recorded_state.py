"""Records of what a window shows: texts in `tests/data/recorded`, which a test compares with what the window shows now.

`RECORD=1 pytest ...` writes the records of the tests that run anew; the difference is read before it is committed.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path

import pytest
from shown_state import Shown

FOLDER = Path(__file__).parents[1] / "data" / "recorded" / "window"
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
FRACTION = re.compile(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")
TOLERANCE = 0.02  # by which fractions may differ: processors round differently
DIGEST = re.compile(r"[0-9a-f]{12,}|(?<=imported )[0-9a-f]{8}")
ELSEWHERE = re.compile(  # what depends on the machine and on the day
    r"/[^\s'\"<>,)]*/(?P<file>[^\s'\",)/]*)"  # paths
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"
    r"|\b\d\d:\d\d(?::\d\d)?\b"
)
IMAGES = (" painted", " image", " icon")


def lines(shown: Shown, without: Iterable[str] = (), since: Mapping[str, object] | None = None) -> list[str]:
    """What a window shows, one place a line.

    Left out are images, what nearly every widget has, places that begin with one of `without`, and what `since`, which it
    showed before, has too.
    """
    left_out = tuple(without)

    def counts(place: str, value: object) -> bool:
        kind = place.partition("#")[0]
        plain = (kind.endswith(" enabled") and value == "True") or (
            kind.endswith((" text", " placeholder")) and not value
        )
        return not (plain or kind.endswith(IMAGES) or place.startswith(left_out))

    before = since or {}
    found = [
        f"{place}: {value}"
        for place, value in shown.items()
        if (counts(place, value) or (place in before and counts(place, before[place]))) and before.get(place) != value
    ]
    gone = [f"{place}: (gone)" for place, value in before.items() if place not in shown and counts(place, value)]
    return [ELSEWHERE.sub(_elsewhere, DIGEST.sub("<...>", line)).replace("\n", "\\n") for line in (*found, *gone)]


def compare(name: str, found: list[str]) -> None:
    """Fail with the lines that differ from the record `name`, or write it if `RECORD` is set."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("RECORD"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*found, ""]), "utf-8")
        return
    expected = path.read_text("utf-8").splitlines()
    alike = [before if same(before, now) else now for before, now in zip_longest(expected, found, fillvalue="")]
    if len(expected) != len(found) or alike != expected:
        kept = {line: line for line in expected}
        now = [kept.get(line) or next((e for e in expected if same(e, line)), line) for line in found]
        changes = difflib.unified_diff(expected, now, "recorded", "shown", lineterm="", n=0)
        pytest.fail("\n".join([f"the window shows something else than {path.name} (RECORD=1 writes it)", *changes]))


def same(before: str, now: str) -> bool:
    """Whether two texts are equal but for the last digits of fractions."""
    if before == now:
        return True
    a, b = NUMBER.split(before), NUMBER.split(now)
    return len(a) == len(b) and all(x == y or _close(x, y) for x, y in zip(a, b, strict=True))


def _close(a: str, b: str) -> bool:
    fractions = FRACTION.fullmatch(a) and FRACTION.fullmatch(b)
    return bool(fractions) and math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=1e-4)


def _elsewhere(found: re.Match[str]) -> str:
    return f"<folder>/{found['file']}" if found["file"] is not None else "<...>"
