"""The progress protocol."""

from __future__ import annotations

import json

import pytest

from designer.training.progress import MAX_LINE, Stepped, parse_line

STEP = {"event": "step", "step": 5, "steps": 10, "loss": 0.5, "lr": 1e-3, "seconds": 2, "steps_per_second": 2.5}


def line(**values):
    return json.dumps(STEP | values)


def test_an_event_and_what_is_left():
    event = parse_line(line(added_later="kept out") + "\n")
    assert event == Stepped(5, 10, 0.5, 1e-3, 2, 2.5)
    assert event.seconds_left == 2


@pytest.mark.parametrize(
    "text",
    [
        "", "a warning", "{", "[1]", "{}", '{"event": 1}', '{"event": "other"}', '{"event": "step"}', "[" * 100_000,
        "{" * 100_000, line(step="5"), line(step=True), line(steps=10**400), line(step=-1), line(loss=float("nan")), line(loss=None), line(lr=[1]),
        '{"event": "start", "held_out": [1], "step": 0, "steps": 1, "parameters": 1, "pictures": 0, "made_up": 1, "device": ""}',
    ],
)  # fmt: skip
def test_other_lines_are_no_events(text):
    assert parse_line(text) is None


def test_nothing_is_left_of_an_unknown_speed():
    assert parse_line(line(steps_per_second=0)).seconds_left is None
    assert parse_line(line(step=10)).seconds_left == 0
    assert parse_line(line(step=2, steps=9, steps_per_second=0.5)).seconds_left == 14


def test_a_line_is_an_event_up_to_its_longest_length():
    short = line(added_later="")
    assert parse_line(line(added_later="x" * (MAX_LINE - len(short)))) is not None
    assert parse_line(line(added_later="x" * (MAX_LINE - len(short) + 1))) is None
    assert parse_line(f"  {short}\n") is not None
