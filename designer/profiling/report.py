"""The record of a profiled run: what was run, on which machine, and what every group of layers took.

A file holds a list of records as JSON. It is read back with every field checked: a record may come from another machine.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from designer.files.formats import Format, FormatTable
from designer.files.tables import as_cells, write_table, write_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.profiling.figures import Figure
from designer.profiling.machine import Machine
from designer.profiling.peaks import Peaks
from designer.texts import tr

SCHEMA = "layerwright-profile"
VERSION = 1
MAX_BYTES = 64 * 2**20

UTILISATION = {
    "tensor_cores": "Tensor Core utilisation",
    "memory": "Memory throughput",
    "occupancy": "SM occupancy",
    "compute": "Compute throughput",
}
Figures = Mapping[str, Figure]


@dataclass(frozen=True)
class Group:
    """Layers that ran as one step of the engine; more than one where the engine fused them.

    `figures` by name: time, spread (s), flops, bytes, parameters, compute_rate (FLOP/s), bandwidth (B/s), intensity, roof,
    saving (s), share (% of the sum of all groups). `utilization` has the keys of `UTILISATION`. `bound` is "compute",
    "memory", "cache" or "". `what` names the engine's kernels where it tells them.
    """

    layers: tuple[str, ...]
    types: tuple[str, ...]
    summary: str
    parameters: Mapping[str, Mapping[str, str]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    figures: Figures
    utilisation: Figures
    bound: str = ""
    what: str = ""

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("layers is empty")

    @property
    def name(self) -> str:
        return " + ".join(self.layers)


@dataclass(frozen=True)
class Record:
    """One profiled run of one network. `total` holds the whole network's figures, with `time` measured on its own."""

    network: str
    date: str
    machine: Machine
    options: Mapping[str, str]  # engine, precision, layout, device, threads
    iterations: int
    warmup: int
    inputs: Mapping[str, str]  # input layer -> shape
    total: Figures
    utilisation: Figures
    groups: tuple[Group, ...]
    peaks: Peaks | None = None
    weights: str = ""  # where they come from when not from a file
    notes: tuple[str, ...] = ()
    checks: Mapping[str, Figure] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)  # `Provenance.texts`

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.warmup < 0:
            raise ValueError("iterations and warmup are 0 or more")

    @property
    def title(self) -> str:
        o = self.options
        return f"{self.network}, {o.get('engine', '?')} {o.get('precision', '?')} {o.get('layout', '?')} on {self.machine.device(o)}"


# --- files -----------------------------------------------------------------------------------------------------


def to_json(records: Sequence[Record]) -> str:
    """The text of a file with these records."""
    data = {"schema": SCHEMA, "version": VERSION, "records": [asdict(r) for r in records]}
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_records(path: Path, records: Sequence[Record]) -> None:
    """Write a file of records in the format of the suffix, whole or not at all; DiagnosticError where it cannot be written."""
    RECORDS.writer(path)(path, records)


def load_records(path: Path) -> tuple[Record, ...]:
    """Read a file of records; DiagnosticError with what is wrong and where for anything else."""
    return RECORDS.reader(path)(path)


def _read_json(path: Path) -> tuple[Record, ...]:
    import msgspec

    try:
        if path.stat().st_size > MAX_BYTES:
            raise _bad(tr("the file has more than {MAX_BYTES} MiB", MAX_BYTES=MAX_BYTES >> 20), str(path))
        data = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise _bad(tr("it cannot be read: {strerror}", strerror=error.strerror or error), str(path)) from None
    except (ValueError, RecursionError):
        raise _bad(tr("it is not JSON text"), str(path)) from None
    return from_json(data, str(path))


def from_json(data: object, file: str = "") -> tuple[Record, ...]:
    """Records from parsed JSON, every field checked."""
    import msgspec  # here: `make gpu-check` writes records on machines that have only torch and numpy

    from designer.files.json_text import problem_of

    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _bad(tr("it does not say schema '{SCHEMA}'", SCHEMA=SCHEMA), file)
    if data.get("version") != VERSION:
        raise _bad(
            tr("its version is {get!r}, this program reads {VERSION}", get=data.get("version"), VERSION=VERSION), file
        )
    if not data.get("records"):
        raise _bad(tr("it holds no records"), file)
    try:
        return msgspec.convert(data["records"], tuple[Record, ...])
    except (ValueError, RecursionError) as error:
        raise _bad(tr("records{problem_of}", problem_of=problem_of(error)), file) from None


def _bad(message: str, file: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic(
            "bad-record",
            tr("this is not a profiling record: {message}", message=message),
            file=file or None,
            remedy=tr("choose a .json file that Save Record or `make gpu-check` wrote"),
        )
    )


# --- table -----------------------------------------------------------------------------------------------------

COLUMNS = ("time", "spread", "share", "flops", "bytes", "compute_rate", "bandwidth", "intensity", "roof", "saving")


def to_csv(record: Record) -> str:
    """The operators' table in base units, one row a group; every figure is followed by its source."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    units = {name: f.unit for g in record.groups for name, f in g.figures.items()}
    header = ["layers", "types", "summary", "inputs", "outputs", "bound"]
    for name in COLUMNS:
        header += [f"{name} [{units.get(name, '')}]", f"{name} source"]
    for name in UTILISATION:
        header += [f"{name} [%]", f"{name} source"]
    writer.writerow(header)
    for group in record.groups:
        row: list[object] = [
            " + ".join(group.layers),
            " + ".join(group.types),
            group.summary,
            "; ".join(group.inputs),
            "; ".join(group.outputs),
            group.bound,
        ]
        for figures, names in ((group.figures, COLUMNS), (group.utilisation, tuple(UTILISATION))):
            for name in names:
                figure = figures.get(name)
                row += ["", "unavailable"] if figure is None else [_number(figure.value), figure.source.value]
        writer.writerow(as_cells(row))
    return buffer.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _write_json(path: Path, records: Sequence[Record]) -> None:
    write_text(path, to_json(records))


def _write_csv(path: Path, records: Sequence[Record]) -> None:
    made_from = {f"{number} {record.title}": record.provenance for number, record in enumerate(records, 1)}
    write_table(path, "\n".join(to_csv(record) for record in records), made_from)


RECORDS: FormatTable[Callable[[Path], tuple[Record, ...]], Callable[[Path, Sequence[Record]], None]] = FormatTable(
    "profiling records",
    (
        Format("Profiling record", (".json",), _read_json, _write_json),
        Format("CSV table", (".csv",), write=_write_csv),
    ),
)
