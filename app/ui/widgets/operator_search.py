"""Search for operators in titles, type names, synonyms and descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designer.operators.api import Operator
from designer.texts import tr_data

_NO_MATCH = 99


def search(operators: Iterable[type[Operator]], query: str, recent: Sequence[str] = ()) -> list[type[Operator]]:
    """The operators that contain every word of `query`, best matches first; ties by `recent`, then by title."""
    words = query.casefold().split()
    found: list[tuple[int, int, str, type[Operator]]] = []
    for cls in operators:
        score = max((_score(cls, word) for word in words), default=0)
        if score < _NO_MATCH:
            used = recent.index(cls.type) if cls.type in recent else len(recent)
            found.append((score, used, cls.title, cls))
    return [cls for *_, cls in sorted(found, key=lambda item: item[:3])]


def _score(cls: type[Operator], word: str) -> int:
    names = (cls.title.casefold(), cls.type, cls.type.replace("_", ""))
    synonyms = tuple(s.casefold() for s in cls.synonyms)
    if word in names:
        return 0
    if word in synonyms:
        return 1
    if any(n.startswith(word) for n in names):
        return 2
    if any(s.startswith(word) for s in synonyms):
        return 3
    if any(word in n for n in names):
        return 4
    if any(word in s for s in synonyms):
        return 5
    if word in tr_data(cls.help()).casefold() or word in tr_data(cls.category.value).casefold():
        return 6
    return _NO_MATCH
