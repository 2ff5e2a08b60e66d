"""Blind votes: fair trials, the sign test, and what is saved."""

from __future__ import annotations

import json
from random import Random

import pytest

from app.reports.votes import EQUAL, LEFT, RIGHT, Vote, VoteTrial, as_csv, as_json, make_trials, results, sign_test
from designer.files.tables import as_cells
from designer.runtime.provenance import Provenance


def test_pairs_and_pictures_come_equally_often_and_in_both_orders() -> None:
    trials = make_trials("ABC", [(300, 200), (64, 48)], 60, 100, Random(1))
    seen = [(frozenset((t.left, t.right)), t.picture) for t in trials]
    assert len(trials) == 60
    assert {seen.count(place) for place in set(seen)} == {10}  # 3 pairs x 2 pictures
    assert {(t.left, t.right) for t in trials} == {(a, b) for a in "ABC" for b in "ABC" if a != b}
    for trial in trials:
        assert trial.square is not None
        x, y, side = trial.square
        width, height = ((300, 200), (64, 48))[trial.picture]
        assert side == 100
        assert 0 <= x <= max(0, width - side)
        assert 0 <= y <= max(0, height - side)
    assert make_trials("AB", [(8, 8)], 5, 0, Random(2))[0].square is None
    assert make_trials("ABC", [(9, 9)], 9, 4, Random(3)) == make_trials("ABC", [(9, 9)], 9, 4, Random(3))


@pytest.mark.parametrize("seed", range(4))
def test_a_vote_that_ends_early_has_shown_pairs_and_pictures_equally_often(seed: int) -> None:
    trials = make_trials("ABC", [(9, 9), (9, 9)], 20, 0, Random(seed))
    places = {(frozenset((t.left, t.right)), t.picture) for t in trials}
    assert len(places) == 6
    for count in range(1, 21):
        seen = [(frozenset((t.left, t.right)), t.picture) for t in trials[:count]]
        assert {seen.count(place) for place in places} <= {count // 6, count // 6 + 1}


def test_nobody_can_foresee_which_pair_or_side_comes_next() -> None:
    votes = [make_trials("ABC", [(9, 9), (9, 9)], 12, 0, Random(seed)) for seed in range(60)]
    for place in range(12):  # in each of the two turns
        assert len({(frozenset((v[place].left, v[place].right)), v[place].picture) for v in votes}) == 6
        assert len({(v[place].left, v[place].right) for v in votes}) == 6
    turns = [[(frozenset((t.left, t.right)), t.picture) for t in v] for v in votes]
    assert any(turn[:6] != turn[6:] for turn in turns)


def test_the_sign_test_is_the_exact_binomial_one() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 5) == 1.0
    assert sign_test(10, 0) == pytest.approx(2 / 2**10)
    assert sign_test(9, 1) == pytest.approx(2 * (1 + 10) / 2**10)
    assert sign_test(1, 9) == sign_test(9, 1)
    assert sign_test(15, 5) == pytest.approx(0.04138947, abs=1e-7)


def test_votes_count_for_the_variant_not_for_the_side() -> None:
    votes = [
        Vote(VoteTrial(0, "A", "B"), LEFT, 1.0),
        Vote(VoteTrial(0, "B", "A"), RIGHT, 1.0),
        Vote(VoteTrial(1, "B", "A"), LEFT, 2.5),
        Vote(VoteTrial(1, "A", "B"), EQUAL, 1.0),
        Vote(VoteTrial(1, "C", "A", (3, 4, 5)), RIGHT, 1.0),
    ]
    first, second = results(votes)
    assert (first.a, first.b, first.wins_a, first.wins_b, first.ties) == ("A", "B", 2, 1, 1)
    assert (second.a, second.b, second.wins_a, second.wins_b, second.p) == ("A", "C", 1, 0, 1.0)
    names = {"A": "A one", "B": 'B "two", again', "C": "C three"}
    lines = as_csv(votes, ["p.png", "q.png"], names).splitlines()
    assert lines[0] == "trial,image,x,y,side,left,right,answer,preferred,seconds"
    assert lines[2].endswith('"B ""two"", again",A one,right,A one,1.00')
    assert lines[5].startswith("5,q.png,3,4,5,C three,A one,right,A one")
    found = json.loads(as_json(votes, ["p.png", "q.png"], names, 7, {"A one": Provenance("a.xml", "0" * 64)}))
    assert found["provenance"]["A one"]["document"] == "a.xml"
    assert "sign test" in found["test"]
    assert found["seed"] == 7
    assert found["pairs"][0]["a_preferred"] == 2
    assert found["votes"][3]["preferred"] is None
    assert [vote["image"] for vote in found["votes"]] == [f"{'pq'[vote.trial.picture]}.png" for vote in votes]


def test_no_name_becomes_a_formula_of_a_spreadsheet():
    votes = [Vote(VoteTrial(0, "A", "B"), EQUAL, 1.0)]
    (_, line) = as_csv(votes, ["=1+1.png"], {"A": "@a", "B": "-b"}).splitlines()
    assert line == "1,'=1+1.png,,,,'@a,'-b,=,,1.00"
    assert as_cells(["-", "-1.5", "+inf", 3, "=", "=A1", "\n=A1", "plain"]) == [
        "-", "-1.5", "+inf", 3, "=", "'=A1", "'\n=A1", "plain"
    ]  # fmt: skip


def test_repeated_votes_on_one_image_are_not_more_evidence() -> None:
    """Ten equal votes on one image say no more than one; on ten images they are significant."""
    one = [Vote(VoteTrial(0, "A", "B"), LEFT, 1.0)] * 10
    (found,) = results(one)
    assert (found.wins_a, found.views_a, found.p) == (10, 1, 1.0)
    (found,) = results([Vote(VoteTrial(number, "A", "B"), LEFT, 1.0) for number in range(10)])
    assert (found.wins_a, found.views_a) == (10, 10)
    assert found.p == pytest.approx(2 / 2**10)
    places = [(0, None), (0, (0, 0, 8)), (0, (0, 4, 8)), (0, (4, 0, 8)), (0, (0, 0, 4)), (1, (0, 0, 8))]
    (found,) = results([Vote(VoteTrial(image, "A", "B", square), LEFT, 1.0) for image, square in places * 3])
    assert (found.wins_a, found.views_a, found.p) == (18, 6, 2 / 2**6), "each square of an image is a view"
    mixed = [*one, Vote(VoteTrial(0, "A", "B"), RIGHT, 1.0), Vote(VoteTrial(1, "B", "A"), LEFT, 1.0)]
    (found,) = results(mixed)
    assert (found.wins_a, found.wins_b, found.views_a, found.views_b, found.p) == (10, 2, 1, 1, 1.0)


def test_a_few_votes_may_be_on_any_image_and_pair() -> None:
    """No image or pair is left out for being the last, however few votes there are; none is asked twice as often as another."""
    places = {(frozenset(pair), image) for pair in ("AB", "AC", "BC") for image in range(4)}
    seen: set[tuple[frozenset[str], int]] = set()
    for seed in range(60):
        count = 1 + seed % 15
        trials = make_trials("ABC", [(20, 10)] * 4, count, 0, Random(seed))
        asked = [(frozenset((trial.left, trial.right)), trial.picture) for trial in trials]
        assert len(asked) == count
        times = [asked.count(place) for place in places]
        assert max(times) - min(times) <= 1
        if count <= 9:
            seen.update(asked)
    assert seen == places
