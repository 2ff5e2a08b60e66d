"""Damaged files: whatever the bytes are, the reader answers with findings, and never with half a network."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designer.files.document import parse_document, write_document
from designer.graph.diagnostics import Severity

GOOD = Path(__file__).parent.parent / "data" / "good"


def check(data: bytes) -> None:
    reading = parse_document(data)
    failed = any(d.severity is Severity.ERROR for d in reading.diagnostics)
    assert (reading.graph is None) == failed
    if reading.graph is not None:
        assert parse_document(write_document(reading.graph)).graph == reading.graph


@pytest.mark.parametrize("name", ["everything.xml", "unet_2022.nv-neural-model", "loose/untidy.xml"])
def test_every_cut_is_answered(name: str) -> None:
    data = (GOOD / name).read_bytes()
    for end in range(0, len(data), 17):
        check(data[:end])


@pytest.mark.parametrize("seed", range(60))
def test_changed_bytes_are_answered(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray((GOOD / "everything.xml").read_bytes())
    for _ in range(chance.randint(1, 12)):
        data[chance.randrange(len(data))] = chance.choice(b"<>&\"'=/ abx:\x00\xff0")
    check(bytes(data))


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_answered(data: bytes) -> None:
    check(data)
