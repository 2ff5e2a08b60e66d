"""What a snapshot of a run says."""

from __future__ import annotations

from dataclasses import replace

from designer.training.health import Health, Problem
from designer.training.run_folder import Notes, RunFolder
from designer.training.watched_run import RunSnapshot


def test_a_snapshot_has_the_title_of_its_notes_and_the_settings_that_can_differ(run: RunFolder) -> None:
    shot = RunSnapshot(run, settings={"lr": 1, "width.a": 0}, changed={"width.a": "8"})
    assert shot.title == "a"
    assert replace(shot, notes=Notes("Mine")).title == "Mine"
    assert shot.compared == {"lr": 1, "width.a": "8"}
    assert replace(shot, health=(Health(1), Health(2, stopped_by=Problem("a", "dead", 1)))).stopped_by == Problem(
        "a", "dead", 1
    )
