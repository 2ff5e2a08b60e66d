"""Profile files: JSON of the schema in `schema.py`, and CSV tables. Files of version 1 are read too."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from designer.files.formats import Format, FormatTable
from designer.files.tables import as_cells, write_table, write_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.profiling.schema import SCHEMA, UTILIZATION, VERSION, OperatorProfile, Profile, ProfileRun
from designer.profiling.version1 import RecordV1, profile_of
from designer.texts import tr

MAX_BYTES = 64 * 2**20


def load_profile(path: Path) -> Profile:
    """Read a profile. Raises DiagnosticError ("bad-profile") that says what is wrong and where."""
    return PROFILES.reader(path)(path)


def save_profile(path: Path, profile: Profile) -> None:
    """Write a profile in the format of the suffix. Raises DiagnosticError if the file cannot be written."""
    PROFILES.writer(path)(path, profile)


def to_json(profile: Profile) -> str:
    return json.dumps(asdict(profile), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _read_json(path: Path) -> Profile:
    import msgspec

    try:
        if path.stat().st_size > MAX_BYTES:
            raise _bad(tr("the file has more than {MAX_BYTES} MiB", MAX_BYTES=MAX_BYTES >> 20), str(path))
        data = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise _bad(tr("it cannot be read: {strerror}", strerror=error.strerror or error), str(path)) from None
    except (ValueError, RecursionError) as error:
        raise _bad(tr("it is not complete JSON ({error})", error=error), str(path)) from None
    return from_json(data, str(path))


def from_json(data: object, file: str = "") -> Profile:
    """A profile from parsed JSON, with every field validated."""
    import msgspec  # here: `make gpu-check` writes profiles on machines that have only torch and numpy

    from designer.files.json_text import problem_of

    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _bad(tr("its schema is not '{SCHEMA}'", SCHEMA=SCHEMA), file)
    version = data.get("version")
    try:
        if version == 1:
            records = msgspec.convert(data.get("records"), tuple[RecordV1, ...])
            if not records:
                raise _bad(tr("it has no runs"), file)
            return profile_of(records)
        if version != VERSION:
            message = tr(
                "its version is {version!r}, but only 1 to {VERSION} can be read", version=version, VERSION=VERSION
            )
            raise _bad(message, file)
        profile = msgspec.convert(data, Profile)
    except (ValueError, RecursionError, OverflowError) as error:
        raise _bad(problem_of(error), file) from None
    if not profile.runs:
        raise _bad(tr("it has no runs"), file)
    return profile


def _bad(message: str, file: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic(
            "bad-profile",
            tr("this is not a profile: {message}", message=message),
            file=file or None,
            remedy=tr("choose a .json file that `layerwright profile`, Save Profile or `make gpu-check` wrote"),
        )
    )


COLUMNS: tuple[tuple[str, Callable[[ProfileRun, OperatorProfile], object]], ...] = (
    ("layers", lambda _, row: row.name),
    ("type", lambda _, row: row.type),
    ("hyperparameters", lambda _, row: row.summary),
    ("inputs", lambda _, row: "; ".join(row.inputs)),
    ("outputs", lambda _, row: "; ".join(row.outputs)),
    ("time_ms", lambda _, row: _cell(row.time_ms)),
    ("spread_ms", lambda _, row: _cell(row.spread_ms)),
    ("share_percent", lambda run, row: _cell(run.share(row))),
    ("flops", lambda _, row: row.flops),
    ("bytes", lambda _, row: row.bytes),
    ("flops_per_s", lambda _, row: _cell(row.flops_per_s)),
    ("bytes_per_s", lambda _, row: _cell(row.bytes_per_s)),
    ("memory_bytes", lambda _, row: "" if row.memory_bytes is None else row.memory_bytes),
    ("bound", lambda _, row: row.bound),
    ("roof_ms", lambda _, row: _cell(row.roof_ms)),
    ("times_roof", lambda _, row: _cell(row.distance)),
    ("saving_ms", lambda _, row: _cell(row.saving_ms)),
    ("engine", lambda run, _: run.engine),
    ("precision", lambda run, row: row.precision or run.precision),
    ("layout", lambda run, _: run.layout),
    ("device", lambda run, _: run.device),
    ("batch", lambda run, _: run.batch),
    ("size", lambda run, _: run.size),
)
"""Columns of the CSV table; each utilization follows with its source."""


def to_csv(*runs: ProfileRun) -> str:
    """The operators of runs as one table, those of a run in the order of optimization priority."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(
        [*(name for name, _ in COLUMNS), *(f"{key}{part}" for key in UTILIZATION for part in ("", "_source"))]
    )
    for run in runs:
        for row in run.by_saving():
            cells: list[object] = [make(run, row) for _, make in COLUMNS]
            for key in UTILIZATION:
                used = getattr(row, key)
                cells += [_cell(used.value), used.source.value]
            writer.writerow(as_cells(cells))
    return buffer.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _write_json(path: Path, profile: Profile) -> None:
    write_text(path, to_json(profile))


def _write_csv(path: Path, profile: Profile) -> None:
    made_from = {f"{number} {profile.title(run)}": run.provenance for number, run in enumerate(profile.runs, 1)}
    write_table(path, to_csv(*profile.runs), made_from)


PROFILES: FormatTable[Callable[[Path], Profile], Callable[[Path, Profile], None]] = FormatTable(
    "profiles",
    (
        Format("Profile", (".json",), _read_json, _write_json),
        Format("CSV table", (".csv",), write=_write_csv),
    ),
)
