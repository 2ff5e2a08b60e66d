"""Blind votes between variants: sides, preferences, and the significance of the result."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from random import Random

from designer.files.formats import Format, FormatTable
from designer.files.tables import as_cells, write_table, write_text
from designer.runtime.provenance import Provenance, texts_of

LEFT, RIGHT, EQUAL = "left", "right", "="
TEST = (
    "two-sided sign test (exact binomial); repeated votes on the same image or square count once, as their majority, "
    "and those without a preference are left out"
)


@dataclass(frozen=True, slots=True)
class VoteTrial:
    """The keys of the variants on the left and right. `square` is (left, top, side) of the region shown; None: all."""

    picture: int
    left: str
    right: str
    square: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer to a trial: LEFT, RIGHT or EQUAL."""

    trial: VoteTrial
    answer: str
    seconds: float

    @property
    def preferred(self) -> str:
        """The key of the variant that was preferred, empty for none."""
        return {LEFT: self.trial.left, RIGHT: self.trial.right}.get(self.answer, "")


@dataclass(frozen=True, slots=True)
class PairResult:
    """How often each of two variants was preferred, and the p-value of the sign test. Repeated votes on the same view are not
    independent, so the test counts each view once."""

    a: str
    b: str
    wins_a: int
    wins_b: int
    ties: int
    views_a: int  # different images or squares on which `a` was preferred more often
    views_b: int
    p: float


def make_trials(
    keys: Sequence[str], sizes: Sequence[tuple[int, int]], count: int, side: int, rng: Random
) -> list[VoteTrial]:
    """`count` trials over images of these (width, height): every pair and image as often as the others, in random
    order, each pair in random order too. `side` > 0 shows a random square of that many pixels."""
    pairs = list(combinations(keys, 2))
    places = [(pair, picture) for picture in range(len(sizes)) for pair in pairs]
    wanted: list[tuple[tuple[str, str], int]] = []
    while len(wanted) < count:
        turn = list(places)
        rng.shuffle(turn)
        wanted += turn
    trials = []
    for pair, picture in wanted[:count]:
        left, right = rng.sample(pair, 2)
        width, height = sizes[picture]
        square = None
        if side:
            square = (rng.randint(0, max(0, width - side)), rng.randint(0, max(0, height - side)), side)
        trials.append(VoteTrial(picture, left, right, square))
    return trials


def sign_test(wins_a: int, wins_b: int) -> float:
    """The p-value: the probability of a split at least this uneven without any preference; 1 without votes."""
    total, few = wins_a + wins_b, min(wins_a, wins_b)
    return min(1.0, 2 * sum(comb(total, k) for k in range(few + 1)) / 2**total) if total else 1.0


def results(votes: Sequence[Vote]) -> list[PairResult]:
    """One for each pair that was voted on."""
    found = []
    pairs = sorted({tuple(sorted((v.trial.left, v.trial.right))) for v in votes})
    for a, b in pairs:
        of_pair = [v for v in votes if {v.trial.left, v.trial.right} == {a, b}]
        mine = [v.preferred for v in of_pair]
        leads = Counter[object]()  # of `a` over `b`, by view
        for vote in of_pair:
            leads[vote.trial.picture, vote.trial.square] += (vote.preferred == a) - (vote.preferred == b)
        views_a, views_b = sum(n > 0 for n in leads.values()), sum(n < 0 for n in leads.values())
        p = sign_test(views_a, views_b)
        found.append(PairResult(a, b, mine.count(a), mine.count(b), mine.count(""), views_a, views_b, p))
    return found


def as_csv(votes: Sequence[Vote], pictures: Sequence[str], names: dict[str, str]) -> str:
    """One line per vote; `names` are those of the variants by key."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("trial", "image", "x", "y", "side", "left", "right", "answer", "preferred", "seconds"))
    for number, vote in enumerate(votes, 1):
        trial = vote.trial
        square = trial.square or ("", "", "")
        shown = (names[trial.left], names[trial.right], vote.answer, names.get(vote.preferred, ""))
        writer.writerow(as_cells((number, pictures[trial.picture], *square, *shown, f"{vote.seconds:.2f}")))
    return text.getvalue()


def as_json(
    votes: Sequence[Vote],
    pictures: Sequence[str],
    names: dict[str, str],
    seed: int,
    origin: Mapping[str, Provenance],
) -> str:
    """The votes and what follows from them; `origin` is by variant's name."""
    made = {
        "provenance": texts_of(origin),
        "seed": seed,
        "test": TEST,
        "pairs": [
            {
                "a": names[r.a],
                "b": names[r.b],
                "a_preferred": r.wins_a,
                "b_preferred": r.wins_b,
                "ties": r.ties,
                "a_views": r.views_a,
                "b_views": r.views_b,
                "p": r.p,
            }
            for r in results(votes)
        ],
        "votes": [
            {
                "image": pictures[v.trial.picture],
                "square": list(v.trial.square) if v.trial.square else None,
                "left": names[v.trial.left],
                "right": names[v.trial.right],
                "answer": v.answer,
                "preferred": names.get(v.preferred),
                "seconds": round(v.seconds, 2),
            }
            for v in votes
        ],
    }
    return json.dumps(made, indent=2)


def _write_csv(
    path: Path,
    votes: Sequence[Vote],
    pictures: Sequence[str],
    names: dict[str, str],
    seed: int,
    origin: Mapping[str, Provenance],
) -> None:
    write_table(path, as_csv(votes, pictures, names), texts_of(origin))


def _write_json(
    path: Path,
    votes: Sequence[Vote],
    pictures: Sequence[str],
    names: dict[str, str],
    seed: int,
    origin: Mapping[str, Provenance],
) -> None:
    write_text(path, f"{as_json(votes, pictures, names, seed, origin)}\n")


Write = Callable[[Path, Sequence[Vote], Sequence[str], dict[str, str], int, Mapping[str, Provenance]], None]
VOTES: FormatTable[None, Write] = FormatTable(
    "votes",
    (Format("CSV table", (".csv",), write=_write_csv), Format("JSON values", (".json",), write=_write_json)),
)
