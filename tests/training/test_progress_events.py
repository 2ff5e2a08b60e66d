"""The fields of each event that a training process prints."""

from __future__ import annotations

import json

import pytest

from designer.training.progress import (
    Done,
    Failed,
    Saved,
    Started,
    Stepped,
    Stopped,
    Validated,
    parse_line,
)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            {"event": "start", "step": 1, "steps": 2, "parameters": 3, "pictures": 4, "made_up": 5, "device": "cpu",
             "held_out": ["a"], "recipe": {"lr": 1}},
            Started(1, 2, 3, 4, 5, "cpu", ("a",), {"lr": 1}),
        ),
        ({"event": "start", "step": 1, "steps": 2, "parameters": 3, "pictures": 4, "made_up": 5, "device": ""},
         Started(1, 2, 3, 4, 5, "")),
        (
            {"event": "step", "step": 1, "steps": 9, "loss": 2, "lr": 3, "seconds": 4, "steps_per_second": 2, "losses": {"a": 1}},
            Stepped(1, 9, 2, 3, 4, 2, {"a": 1}),
        ),
        ({"event": "validation", "step": 1}, Validated(1)),
        (
            {"event": "validation", "step": 1, "psnr": 2, "noisy_psnr": 3, "on_training": True, "losses": {"a": 1}},
            Validated(1, 2, 3, True, {"a": 1}),
        ),
        ({"event": "checkpoint", "step": 1, "path": "p"}, Saved(1, "p")),
        ({"event": "stopped", "step": 1, "steps": 2, "message": "m"}, Stopped(1, 2, "m")),
        ({"event": "done", "step": 1, "steps": 2, "weights": "w", "message": "m"}, Done(1, 2, "w", "m")),
        ({"event": "error", "message": "m"}, Failed("m")),
    ],
)  # fmt: skip
def test_each_event_has_its_fields(line: dict[str, object], event: object) -> None:
    assert parse_line(json.dumps(line)) == event
