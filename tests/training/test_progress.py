"""The progress protocol."""

from __future__ import annotations

import json

import pytest

from designer.training.progress import Stepped, parse_line

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
