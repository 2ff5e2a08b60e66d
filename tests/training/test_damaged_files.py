"""Files that programs of the user keep or write, damaged in every way: each counts as absent or is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.profiling import operator_times, peaks, profile_files
from designer.training import mirror, remote_agent, run_registry, sweep
from designer.training.run_folder import Notes, RunFolder
from exporters import generated_folder, tensorrt

CONTENTS = {
    "empty": b"",
    "cut off": b'{"key": {"a',
    "no text": b"\x00\xff\xfe",
    "a list": b"[1, 2]",
    "a number": b"7",
    "text": b'"key"',
    "null": b"null",
    "other fields": b'{"unknown": {"a": 1}, "schema": 12}',
    "fields of other types": b'{"key": 5, "files": 5, "generator": [], "trials": 3, "settings": "x", "folder": 1, "pid": {}}',
    "too deep": b"[" * 200_000,
    "objects too deep": b'{"key":' * 200_000,
    "a number too large": b'{"key": 1e999, "pid": 1e999}',
}
DAMAGED = pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)


@DAMAGED
def test_damaged_stores_of_measurements_are_empty_and_replaced(tmp_path: Path, content: bytes) -> None:
    store = tmp_path / "peaks.json"
    store.write_bytes(content)
    assert isinstance(peaks.load_store(store), dict)
    assert peaks.kept("key", store) is None
    assert operator_times._kept(store, "key") == {}
    peaks.save_store(store, "key", operator_times.KeptTimes({}))
    assert set(peaks.load_store(store)) >= {"key"}


@DAMAGED
def test_damaged_files_of_runs_count_as_absent(tmp_path: Path, content: bytes) -> None:
    run = RunFolder(tmp_path / "runs" / "a")
    run.path.mkdir(parents=True)
    for name in ("config.json", "status.json", "notes.json", "remote.json", "process.json", "control"):
        (run.path / name).write_bytes(content)
    assert (run.settings(), run.status(), run.remote(), run.process()) == ({}, None, None, 0)
    assert remote_agent.process(run.path) == 0
    assert run.notes() == Notes()
    assert mirror.command(run) is None
    (run.project / "project.json").write_bytes(content)
    assert run.weight_names() == {}


@DAMAGED
def test_damaged_entries_of_the_list_of_runs_are_left_out(tmp_path: Path, content: bytes) -> None:
    run_registry.remember(tmp_path / "runs" / "a", None)
    (run_registry.registry_folder() / "damaged.json").write_bytes(content)
    assert [Path(known.folder).name for known in run_registry.known_runs()] == ["a"]


@DAMAGED
def test_damaged_plans_profiles_and_descriptions_are_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / sweep.PLAN).write_bytes(content)
    with pytest.raises(DiagnosticError, match="has no sweep"):
        sweep.Sweep.read(tmp_path)
    profile = tmp_path / "a.profile.json"
    profile.write_bytes(content)
    with pytest.raises(DiagnosticError, match=r"a\.profile\.json"):
        profile_files.load_profile(profile)
    engine = tmp_path / "a.engine"
    engine.touch()
    tensorrt.description_of(engine).write_bytes(content)
    with pytest.raises(DiagnosticError, match=r"its description .* cannot be read"):
        tensorrt.read_engine_file(engine)
    marker = tmp_path / generated_folder.MARKER
    marker.write_bytes(content)
    assert generated_folder.read_marker(marker, generated_folder.Marker) is None
