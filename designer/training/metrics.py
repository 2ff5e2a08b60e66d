"""The metrics of a training run: `metrics.jsonl`, read as it grows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from designer.training.growing_file import GrowingFile

MAX_STEP = (1 << 63) - 1
Values = NDArray[np.float64]
_NUMBERS = ("epoch", "time", "elapsed", "loss", "learning_rate", "throughput", "memory")
_NONFINITE = re.compile(rb"(?<=[:\[,\s])-?(?:NaN|Infinity)\b")  # what Python's json writes, and JSON lacks
_HEADER_START = b'{"schema"'
_VALIDATION = "validation."


class MetricsHeader(Struct, frozen=True):
    """The first line of the file; an extended run adds another one."""

    schema: int
    total_steps: int = 0
    task: str = ""
    on_training: bool = False


class MetricsLine(Struct, frozen=True):
    """One training step. `elapsed` counts the seconds of training, so changes of the clock do not matter."""

    step: Annotated[int, Meta(ge=-MAX_STEP, le=MAX_STEP)]
    epoch: float | None = None
    time: float | None = None
    elapsed: float | None = None
    loss: float | None = None
    learning_rate: float | None = None
    throughput: float | None = None
    memory: float | None = None
    losses: dict[str, float | None] | None = None
    validation: dict[str, float | None] | None = None


_LINE = msgspec.json.Decoder(MetricsLine)
_HEADER = msgspec.json.Decoder(MetricsHeader)
_EMPTY = np.empty(0)


@dataclass(frozen=True, eq=False)
class Curves:
    """The metrics by name, one value per entry of `steps`; NaN where a line has none.

    Validation metrics are called `validation.psnr` and so on, terms of the loss `losses.l1`. `on_training`: validation uses training
    images, because no others were held out.
    """

    steps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    values: Mapping[str, Values] = field(default_factory=dict)
    total_steps: int = 0
    task: str = ""
    on_training: bool = False
    skipped: int = 0  # lines that could not be read

    def points(self, name: str) -> tuple[Values, Values]:
        """Steps and values of one metric, without the lines that lack it."""
        values = self.values.get(name, _EMPTY)
        present = ~np.isnan(values)
        return self.steps[: len(values)][present].astype(float), values[present]

    def last(self, name: str) -> float | None:
        """The latest value of a metric."""
        values = self.points(name)[1]
        return float(values[-1]) if len(values) else None

    def seconds_per_step(self, lines: int = 50) -> float | None:
        """The mean duration of the latest steps; None if it is unknown."""
        steps, elapsed = self.points("elapsed")
        steps, elapsed = steps[-lines:], elapsed[-lines:]
        if len(steps) < 2 or steps[-1] <= steps[0] or elapsed[-1] <= elapsed[0]:
            return None
        return float((elapsed[-1] - elapsed[0]) / (steps[-1] - steps[0]))

    @property
    def validated(self) -> tuple[str, ...]:
        """The names of the validation metrics."""
        return tuple(name for name in self.values if name.startswith(_VALIDATION))


class MetricsFile:
    """Reads `metrics.jsonl` as it grows; broken lines are counted.

    A step that is not after the previous one starts a resumed part, which replaces what followed its checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self._file = GrowingFile(path)
        self.curves = Curves()

    def read(self) -> bool:
        """Read what was appended. Returns whether `curves` changed; raises OSError if the file cannot be read."""
        restarted, data = self._file.read()
        if restarted:
            self.curves = Curves()
        if data:
            self._take(data)
        return restarted or bool(data)

    def _take(self, data: list[bytes]) -> None:
        known = self.curves
        headers = [line for line in data if line.startswith(_HEADER_START)]
        lines, skipped = _decode([line for line in data if not line.startswith(_HEADER_START)] if headers else data)
        header = _header(headers[-1]) if headers else None
        about = header if header is not None else known
        steps = np.fromiter((line.step for line in lines), np.int64, len(lines))
        kept, values = known.steps, dict(known.values)
        for start, end in pairwise([*_starts(steps), len(lines)]):
            kept, values = _appended(kept, values, steps[start:end], lines[start:end])
        self.curves = Curves(kept, values, about.total_steps, about.task, about.on_training, known.skipped + skipped)


def _starts(steps: NDArray[np.int64]) -> list[int]:
    """Where the increasing parts of `steps` begin."""
    return [0, *(np.flatnonzero(np.diff(steps) <= 0) + 1).tolist()] if len(steps) else []


def _appended(
    steps: NDArray[np.int64], values: dict[str, Values], new: NDArray[np.int64], lines: list[MetricsLine]
) -> tuple[NDArray[np.int64], dict[str, Values]]:
    """The columns with `lines`, whose steps increase, in place of known lines from their first step on."""
    keep = int(np.searchsorted(steps, new[0]))
    columns: dict[str, Values] = {name: np.array([_number(getattr(line, name)) for line in lines]) for name in _NUMBERS}
    for group in ("losses", "validation"):
        for name in dict.fromkeys(key for line in lines for key in getattr(line, group) or ()):
            found = ((getattr(line, group) or {}).get(name) for line in lines)
            columns[f"{group}.{name}"] = np.array([_number(value) for value in found])
    made = {}
    for name in dict.fromkeys((*values, *columns)):
        before = values.get(name, np.full(len(steps), np.nan))[:keep]
        made[name] = np.concatenate((before, columns.get(name, np.full(len(new), np.nan))))
    return np.concatenate((steps[:keep], new)), made


def _number(value: float | None) -> float:
    return value if value is not None else np.nan


def _header(line: bytes) -> MetricsHeader | None:
    try:
        return _HEADER.decode(line)
    except (ValueError, RecursionError):
        return None


def _decode(data: list[bytes]) -> tuple[list[MetricsLine], int]:
    """The readable lines, and the number of others."""
    try:
        return _LINE.decode_lines(b"\n".join(data)), 0
    except (ValueError, RecursionError):
        found = [_line(line) for line in data if line.strip()]
        return [line for line in found if line is not None], sum(1 for line in found if line is None)


def _line(text: bytes) -> MetricsLine | None:
    try:
        return _LINE.decode(_NONFINITE.sub(b"null", text))
    except (ValueError, RecursionError):
        return None


def settings_differences(configs: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings in which runs differ: by name, one value per run; None where a run lacks it."""
    names = dict.fromkeys(name for config in configs for name in config)
    found = {name: [config.get(name) for config in configs] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}
