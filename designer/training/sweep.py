"""Sweeps: the trials of a grid or random search over settings of training and widths of layers, and their results."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from designer.files.atomic import make_folder, write_atomic
from designer.files.tables import as_cells, write_text
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.texts import tr
from designer.training.metrics import Curves
from designer.training.run_folder import RunFolder
from designer.training.watched_run import RunState, WatchedRun

WIDTH = "width."  # width.conv_1 is the number of features of the layer conv_1
MOST_TRIALS = 10_000
DRAWS = 20  # per trial of a random search, until it differs from the others
PLAN = "sweep.json"
WHOLE = (  # options of train.py that are whole numbers
    "batch",
    "patch",
    "epochs",
    "steps",
    "warmup",
    "early_stopping",
    "validate_every",
    "seed",
    "synthetic",
    "refresh",
    "workers",
    "threads",
)
SCORES = ("psnr", "iou", "accuracy")  # of the tasks; otherwise the validation loss counts


@dataclass(frozen=True)
class Axis:
    """The values that a sweep gives to a setting: a list, or a range that a random search draws from on a log scale."""

    name: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Parse `noise=15,25` or `lr=1e-4..1e-2`. Raises DiagnosticError."""
        text = text.strip()
        name, _, right = (
            text.rpartition("=") if text.startswith(WIDTH) else text.partition("=")
        )  # layers can have a "="
        name = name.strip() if name.startswith(WIDTH) else name.strip().replace("-", "_")
        low, dots, high = right.partition("..")
        values = tuple(value.strip() for value in right.split(","))
        if not name or not all(values) or len(set(values)) < len(values):
            raise _bad_axis(text, tr("it needs a name and different values"))
        if not dots:
            return cls(name, values)
        try:
            ends = float(low), float(high)
        except ValueError:
            raise _bad_axis(text, tr("the ends of a range are numbers")) from None
        if not 0 < ends[0] < ends[1] < math.inf:
            raise _bad_axis(text, tr("a range goes from a positive number to a larger one")) from None
        return cls(name, (), *ends)

    def draw(self, source: random.Random) -> str:
        """One of the values; of a range one that is uniform on a log scale, a whole number where the setting is one."""
        if self.values:
            return source.choice(self.values)
        value = math.exp(source.uniform(math.log(self.low), math.log(self.high)))
        return str(round(value)) if self.name.startswith(WIDTH) or self.name in WHOLE else f"{value:.4g}"


def _bad_axis(text: str, reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-sweep",
        tr("'{text}' cannot be searched: {reason}", text=text[:80], reason=reason),
        remedy=tr("for instance --grid noise=15,25 --grid width.conv_1=16,32, or with --random lr=1e-4..1e-2"),
    )


class Trial(Struct, frozen=True):
    """One run of a sweep: its number from 1, and its values by the names of the axes."""

    number: int
    values: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the folder of the run."""
        return f"trial_{self.number:03}"

    @property
    def title(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.values.items())

    @property
    def widths(self) -> dict[str, str]:
        """Features by the name of the layer."""
        return {name.removeprefix(WIDTH): value for name, value in self.values.items() if name.startswith(WIDTH)}

    @property
    def options(self) -> dict[str, str]:
        """Values that are options of train.py."""
        return {name: value for name, value in self.values.items() if not name.startswith(WIDTH)}

    @property
    def network(self) -> str:
        """The name of the project of this trial in the folder of the sweep: trials of equal widths share it."""
        return "_".join(f"{name}-{value}" for name, value in self.widths.items()) or "network"

    def graph(self, graph: Graph) -> Graph:
        """The network with the widths of this trial. Raises DiagnosticError for a layer that does not exist or has no features."""
        for name, width in self.widths.items():
            if not (width.isascii() and width.isdecimal()):
                raise _bad_axis(f"{WIDTH}{name}={width}", tr("widths are whole numbers"))
            if name not in graph or "features" not in graph[name].params:
                raise DiagnosticError.of(
                    "bad-sweep",
                    tr("{axis}: no layer with features has that name", axis=WIDTH + name),
                    remedy=tr("name a layer such as a convolution, of the network itself and not of a template"),
                )
        changed = graph.copy()
        changed.apply(set_params(changed, {name: {"features": value} for name, value in self.widths.items()}))
        return changed


def trials(axes: Sequence[Axis], drawn: int = 0, seed: int = 0) -> list[Trial]:
    """All combinations of the values, or `drawn` different random ones. Raises DiagnosticError."""
    names = [axis.name for axis in axes]
    if not axes or len(set(names)) < len(names):
        raise _bad_axis(", ".join(names), tr("each setting is searched once"))
    ranges = [axis for axis in axes if not axis.values]
    if ranges and not drawn:
        raise _bad_axis(ranges[0].name, tr("a grid needs values; only a random search takes a range"))
    total = math.inf if ranges else math.prod(len(axis.values) for axis in axes)
    if (drawn or total) > MOST_TRIALS:
        raise _bad_axis(", ".join(names), tr("it has more than {most} trials", most=MOST_TRIALS))
    found: Iterable[tuple[str, ...]]
    if drawn and total > MOST_TRIALS:
        found = _drawn(axes, drawn, seed)
    else:
        found = itertools.product(*(axis.values for axis in axes))
        if drawn:
            every = list(found)
            found = random.Random(seed).sample(every, min(drawn, len(every)))
    return [Trial(number, dict(zip(names, values, strict=True))) for number, values in enumerate(found, 1)]


def _drawn(axes: Sequence[Axis], count: int, seed: int) -> Iterable[tuple[str, ...]]:
    """`count` different combinations; fewer if the ranges hardly have more."""
    source, found = random.Random(seed), dict[tuple[str, ...], None]()
    for _ in range(DRAWS * count):
        found[tuple(axis.draw(source) for axis in axes)] = None
        if len(found) == count:
            break
    return found


class _Plan(Struct, frozen=True):
    """`sweep.json`: what identifies a sweep."""

    document: str  # a digest
    options: dict[str, str | bool]
    trials: list[Trial]


@dataclass(frozen=True)
class Sweep:
    """A sweep in a folder: one project for each network, whose runs are the trials."""

    folder: Path
    trials: tuple[Trial, ...]
    options: Mapping[str, str | bool] = field(default_factory=dict)

    def open(self, document: str) -> None:
        """Begin the sweep, or continue it if the folder has it already. Raises DiagnosticError for any other content."""
        plan = msgspec.json.encode(_Plan(document, dict(self.options), list(self.trials)))
        path = self.folder / PLAN
        try:
            known = path.read_bytes() if path.exists() else None
            occupied = self.folder.is_dir() and any(self.folder.iterdir())
        except OSError as error:
            raise DiagnosticError.of(
                "cannot-read",
                tr("{path} cannot be read: {strerror}", path=self.folder, strerror=error.strerror or error),
                file=str(self.folder),
                remedy=tr("choose another folder"),
            ) from error
        if occupied and known != plan:
            raise DiagnosticError.of(
                "folder-not-empty",
                tr("{path} has another sweep or other files", path=self.folder),
                file=str(self.folder),
                remedy=tr("choose an empty folder; the same command with the same network continues a sweep"),
            )
        make_folder(self.folder)
        write_atomic(path, plan)

    @classmethod
    def read(cls, folder: Path) -> Sweep:
        """The sweep in a folder. Raises DiagnosticError."""
        try:
            plan = msgspec.json.decode((folder / PLAN).read_bytes(), type=_Plan)
        except (OSError, ValueError, RecursionError) as error:
            raise DiagnosticError.of(
                "no-sweep",
                tr("{path} has no sweep", path=folder),
                file=str(folder),
                remedy=tr("choose the folder of a sweep, which has a file {name}", name=PLAN),
            ) from error
        return cls(folder, tuple(plan.trials), plan.options)

    @property
    def job(self) -> RunFolder:
        """The process that runs the sweep, with the files of a run: `process.json`, `status.json`, `control` and `output.log`."""
        return RunFolder(self.folder)

    def project(self, trial: Trial) -> Path:
        return self.folder / trial.network

    def run(self, trial: Trial) -> RunFolder:
        return RunFolder(self.project(trial) / "runs" / trial.name)

    def arguments(self, trial: Trial) -> dict[str, str | bool]:
        """The options of train.py for a trial."""
        return {**self.options, **trial.options}

    def results(self) -> list[Result]:
        """The trials with their results, best first; those without a validation follow."""
        return sorted((self._result(trial) for trial in self.trials), key=lambda result: result.order)

    def _result(self, trial: Trial) -> Result:
        run = self.run(trial)
        if not run.path.is_dir():
            return Result(trial, run, None)
        watched = WatchedRun(run)
        watched.read()
        shot = watched.snapshot
        metric, value = best_value(shot.curves)
        return Result(trial, run, shot.state, shot.step, metric, value, shot.message)

    def write(self) -> list[Result]:
        """Write the results as results.csv and results.json, and return them. Raises DiagnosticError ("cannot-save")."""
        rows = self.results()
        tables = [result.row() for result in rows]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(as_cells(tables[0]))
        writer.writerows(as_cells("" if value is None else value for value in row.values()) for row in tables)
        write_text(self.folder / "results.csv", stream.getvalue())
        write_text(self.folder / "results.json", f"{json.dumps(tables, indent=2)}\n")
        return rows


@dataclass(frozen=True)
class Result:
    """What a trial gave. `value` is that of `metric` at its best validation; a `state` of None: it has not started."""

    trial: Trial
    run: RunFolder
    state: RunState | None
    step: int = 0
    metric: str = ""
    value: float | None = None
    message: str = ""

    @property
    def order(self) -> tuple[bool, float, int]:
        """Sorts the best result first. Losses are better if they are smaller."""
        rating = _rating(self.metric, self.value)
        return rating is None, -(rating or 0.0), self.trial.number

    def row(self) -> dict[str, Any]:
        state = self.state.value if self.state is not None else "waiting"
        found = {"metric": self.metric, "value": self.value, "step": self.step, "message": self.message}
        return {"trial": self.trial.name, **self.trial.values, "state": state, **found, "run": str(self.run.path)}


def best_value(curves: Curves) -> tuple[str, float | None]:
    """The metric that decides, and its best validation value; None without a finite one."""
    for name in (*SCORES, "loss"):
        values = curves.points(f"validation.{name}")[1]
        values = values[np.isfinite(values)]
        if len(values):
            return name, float(values.min() if name == "loss" else values.max())
    return "", None


def rate(curves: Curves) -> float | None:
    """How good the best validation is: larger is better; None without one."""
    return _rating(*best_value(curves))


def _rating(metric: str, value: float | None) -> float | None:
    return -value if value is not None and metric == "loss" else value
