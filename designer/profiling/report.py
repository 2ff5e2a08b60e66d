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
from typing import Any

from designer.files.formats import Format, FormatTable
from designer.files.tables import as_cells, write_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.profiling.figures import UNITS, Figure, Origin
from designer.profiling.machine import Machine
from designer.profiling.peaks import Peaks, peaks_dict, peaks_from

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
    saving (s), share (% of the sum of all groups). `utilisation` has the keys of `UTILISATION`. `bound` is "compute",
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
    weights_note: str = ""
    notes: tuple[str, ...] = ()
    checks: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def title(self) -> str:
        o = self.options
        return f"{self.network}, {o.get('engine', '?')} {o.get('precision', '?')} {o.get('layout', '?')} on {self.machine.device(o)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "network": self.network,
            "date": self.date,
            "machine": asdict(self.machine),
            "options": dict(self.options),
            "iterations": self.iterations,
            "warmup": self.warmup,
            "inputs": dict(self.inputs),
            "weights": self.weights_note,
            "notes": list(self.notes),
            "checks": _plain(self.checks),
            "peaks": None if self.peaks is None else peaks_dict(self.peaks),
            "total": _plain(self.total),
            "utilisation": _plain(self.utilisation),
            "groups": [_group_dict(g) for g in self.groups],
        }


def _plain(figures: Figures) -> dict[str, Any]:
    return {name: figure.as_dict() for name, figure in figures.items()}


def _group_dict(group: Group) -> dict[str, Any]:
    return {
        "layers": list(group.layers),
        "types": list(group.types),
        "summary": group.summary,
        "what": group.what,
        "parameters": {n: dict(p) for n, p in group.parameters.items()},
        "inputs": list(group.inputs),
        "outputs": list(group.outputs),
        "bound": group.bound,
        "figures": _plain(group.figures),
        "utilisation": _plain(group.utilisation),
    }


# --- files -----------------------------------------------------------------------------------------------------


def to_json(records: Sequence[Record]) -> str:
    """The text of a file with these records."""
    data = {"schema": SCHEMA, "version": VERSION, "records": [r.as_dict() for r in records]}
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_records(path: Path, records: Sequence[Record]) -> None:
    """Write a file of records in the format of the suffix, whole or not at all; DiagnosticError where it cannot be written."""
    RECORDS.writer(path)(path, records)


def load_records(path: Path) -> tuple[Record, ...]:
    """Read a file of records; DiagnosticError with what is wrong and where for anything else."""
    return RECORDS.reader(path)(path)


def _read_json(path: Path) -> tuple[Record, ...]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _bad(f"the file has more than {MAX_BYTES >> 20} MiB", str(path))
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise _bad(f"it cannot be read: {error.strerror or error}", str(path)) from None
    except (ValueError, RecursionError):
        raise _bad("it is not JSON text", str(path)) from None
    return from_json(data, str(path))


def from_json(data: object, file: str = "") -> tuple[Record, ...]:
    """Records from parsed JSON, every field checked."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _bad(f"it does not say schema '{SCHEMA}'", file)
    if data.get("version") != VERSION:
        raise _bad(f"its version is {data.get('version')!r}, this program reads {VERSION}", file)
    records = data.get("records")
    if not isinstance(records, list) or not records:
        raise _bad("it holds no records", file)
    return tuple(record_from_dict(r, file=file, where=f"records[{i}]") for i, r in enumerate(records))


def record_from_dict(data: object, *, file: str = "", where: str = "record") -> Record:
    """One record from plain data (a file, or the engine process); DiagnosticError names the field that is wrong."""
    read = _Reader(file)
    d = read.mapping(data, where)
    machine = read.mapping(d.get("machine"), f"{where}.machine")
    peaks = None
    if d.get("peaks") is not None:
        try:
            peaks = peaks_from(read.mapping(d["peaks"], f"{where}.peaks"))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise _bad(f"{where}.peaks is not a set of peaks ({error})", file) from None
    groups = tuple(
        read.group(g, f"{where}.groups[{i}]") for i, g in enumerate(read.items(d.get("groups"), f"{where}.groups"))
    )
    return Record(
        network=read.text(d.get("network"), f"{where}.network"),
        date=read.text(d.get("date"), f"{where}.date"),
        machine=Machine(
            cpu=read.text(machine.get("cpu"), f"{where}.machine.cpu"),
            cores=read.whole(machine.get("cores"), f"{where}.machine.cores"),
            gpu=read.text(machine.get("gpu", ""), f"{where}.machine.gpu"),
            system=read.text(machine.get("system", ""), f"{where}.machine.system"),
            versions=read.texts(machine.get("versions", {}), f"{where}.machine.versions"),
        ),
        options=read.texts(d.get("options"), f"{where}.options"),
        iterations=read.whole(d.get("iterations"), f"{where}.iterations"),
        warmup=read.whole(d.get("warmup", 0), f"{where}.warmup"),
        inputs=read.texts(d.get("inputs", {}), f"{where}.inputs"),
        total=read.figures(d.get("total"), f"{where}.total"),
        utilisation=read.figures(d.get("utilisation"), f"{where}.utilisation"),
        groups=groups,
        peaks=peaks,
        weights_note=read.text(d.get("weights", ""), f"{where}.weights"),
        notes=tuple(read.text(n, f"{where}.notes") for n in read.items(d.get("notes", []), f"{where}.notes")),
        checks=read.figures(d.get("checks", {}), f"{where}.checks"),
    )


def _bad(message: str, file: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic(
            "bad-record",
            f"this is not a profiling record: {message}",
            file=file or None,
            remedy="choose a .json file that Save Record or `make gpu-check` wrote",
        )
    )


class _Reader:
    """Checked access to parsed JSON; every refusal names the place."""

    def __init__(self, file: str) -> None:
        self.file = file

    def mapping(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _bad(f"{where} is not an object", self.file)
        return value

    def items(self, value: object, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise _bad(f"{where} is not a list", self.file)
        return value

    def text(self, value: object, where: str) -> str:
        if not isinstance(value, str):
            raise _bad(f"{where} is not a text", self.file)
        return value

    def whole(self, value: object, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _bad(f"{where} is not a whole number", self.file)
        return value

    def texts(self, value: object, where: str) -> dict[str, str]:
        return {k: self.text(v, f"{where}.{k}") for k, v in self.mapping(value, where).items()}

    def figure(self, value: object, where: str) -> Figure:
        d = self.mapping(value, where)
        number, unit = d.get("value"), d.get("unit")
        if unit not in UNITS:
            raise _bad(f"{where}.unit is {unit!r}, not one of {', '.join(u or 'empty' for u in UNITS)}", self.file)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
            raise _bad(f"{where}.value is not a number", self.file)
        try:
            origin = Origin(str(d.get("source")))
            return Figure(
                None if number is None else float(number),
                unit,
                origin,
                self.text(d.get("reason", ""), f"{where}.reason"),
            )
        except (ValueError, OverflowError) as error:
            raise _bad(f"{where}: {error}", self.file) from None

    def figures(self, value: object, where: str) -> dict[str, Figure]:
        return {k: self.figure(v, f"{where}.{k}") for k, v in self.mapping(value, where).items()}

    def group(self, value: object, where: str) -> Group:
        d = self.mapping(value, where)
        layers = tuple(self.text(n, f"{where}.layers") for n in self.items(d.get("layers"), f"{where}.layers"))
        if not layers:
            raise _bad(f"{where}.layers is empty", self.file)
        parameters = self.mapping(d.get("parameters", {}), f"{where}.parameters")
        return Group(
            layers=layers,
            types=tuple(self.text(n, f"{where}.types") for n in self.items(d.get("types", []), f"{where}.types")),
            summary=self.text(d.get("summary", ""), f"{where}.summary"),
            parameters={n: self.texts(p, f"{where}.parameters.{n}") for n, p in parameters.items()},
            inputs=tuple(self.text(n, f"{where}.inputs") for n in self.items(d.get("inputs", []), f"{where}.inputs")),
            outputs=tuple(
                self.text(n, f"{where}.outputs") for n in self.items(d.get("outputs", []), f"{where}.outputs")
            ),
            figures=self.figures(d.get("figures"), f"{where}.figures"),
            utilisation=self.figures(d.get("utilisation"), f"{where}.utilisation"),
            bound=self.text(d.get("bound", ""), f"{where}.bound"),
            what=self.text(d.get("what", ""), f"{where}.what"),
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
    write_text(path, "\n".join(to_csv(record) for record in records))


RECORDS: FormatTable[Callable[[Path], tuple[Record, ...]], Callable[[Path, Sequence[Record]], None]] = FormatTable(
    "profiling records",
    (
        Format("Profiling record", (".json",), _read_json, _write_json),
        Format("CSV table", (".csv",), write=_write_csv),
    ),
)
