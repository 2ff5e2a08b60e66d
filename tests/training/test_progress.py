"""The progress protocol and the record of a run."""

from __future__ import annotations

import json

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.training.progress import Stepped, Validated, parse_line
from designer.training.runs import collect, command, read_run

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


def test_record_of_a_run_that_went_back(tmp_path):
    psnr = {"event": "validation", "psnr": 30.0, "noisy_psnr": 20.0}
    lines = [
        line(step=1),
        "UserWarning: something",
        json.dumps({"event": "checkpoint", "step": 1, "path": "x"}),
        line(step=2, loss=9.0),
        line(step=2, loss=3.0),
        json.dumps(psnr | {"step": 2}),
        json.dumps(psnr | {"step": 3, "psnr": 31.5, "on_training": True}),
        json.dumps({"event": "stopped", "step": 3, "steps": 10, "message": "stopped"}),
    ]
    record = collect(tmp_path, lines)
    assert [event.loss for event in record.losses] == [0.5, 3.0]
    assert record.validations[-1] == Validated(3, 31.5, 20.0, True)
    assert record.gain == 11.5
    assert record.saved_step == 1
    assert record.message == "stopped"
    assert not record.can_resume  # the checkpoint is gone
    assert record.weights is None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "last.pt").write_bytes(b"")
    assert record.can_resume
    assert command("py", None, {"noise": "25", "data": "/a b"}) == [
        "py", "train.py", "--noise", "25", "--data", "/a b", "--json-progress",
    ]  # fmt: skip


def test_a_folder_without_a_log(tmp_path):
    with pytest.raises(DiagnosticError) as caught:
        read_run(tmp_path)
    assert caught.value.diagnostics[0].code == "no-training-log"
