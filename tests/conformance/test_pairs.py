"""Each operator before and after each other one, on every engine, in both layouts, and exported."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from pairs import names, pairs_from
from trials import disagreements

SAMPLE = 1  # pairs that begin with an operator in `make test`; all of them in `make conformance`
SLOW = "openvino"  # takes half of the time, and a quarter of the sample


@pytest.mark.parametrize("first", names())
def test_pairs_agree(first: str, every_pair: bool) -> None:
    pairs = pairs_from(first) if every_pair else islice(pairs_from(first, random.Random(first)), SAMPLE)
    without = "" if every_pair or not names().index(first) % 4 else SLOW
    assert not [found for pair in pairs for found in disagreements(pair, without=without)]
