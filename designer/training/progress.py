"""The lines that a generated train.py prints with --json-progress, one JSON object each, as typed events."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

MAX_LINE = 1 << 20  # characters; a longer line is not one of ours


@dataclass(frozen=True, slots=True)
class Started:
    """Training begins, at `step` when it goes on. `held_out` names the photographs kept for validation."""

    step: int
    steps: int
    parameters: int
    pictures: int
    made_up: int
    device: str
    held_out: tuple[str, ...] = ()
    recipe: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step was made; a few a second are told. `seconds` since the start of this process.

    `loss` is the sum of `losses`, which are by name.
    """

    step: int
    steps: int
    loss: float
    lr: float
    seconds: float
    steps_per_second: float
    losses: dict[str, float] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """Until the last step at the present speed."""
        return (self.steps - self.step) / self.steps_per_second if self.steps_per_second > 0 else None


@dataclass(frozen=True, slots=True)
class Validated:
    """Mean losses by name, and mean PSNR in dB of the network's output and of the noisy pictures.

    The PSNR is None where the target is no picture. `on_training`: not of unseen pictures.
    """

    step: int
    psnr: float | None = None
    noisy_psnr: float | None = None
    on_training: bool = False
    losses: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint and the weights were written."""

    step: int
    path: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody stopped the run; it can be resumed."""

    step: int
    steps: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The last step was made; `weights` is the folder for the designer."""

    step: int
    steps: int
    weights: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Training cannot go on, and why."""

    message: str


Event = Started | Stepped | Validated | Saved | Stopped | Done | Failed

_EVENTS: dict[str, type[Event]] = {
    "start": Started,
    "step": Stepped,
    "validation": Validated,
    "checkpoint": Saved,
    "stopped": Stopped,
    "done": Done,
    "error": Failed,
}


def parse_line(line: str) -> Event | None:
    """The event in a line; None for anything else that a process may print (warnings, a person's own prints).

    Fields that are not known are left out, so that later scripts can say more.
    """
    text = line.strip()
    if not text.startswith("{") or len(text) > MAX_LINE:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = _EVENTS.get(data.get("event", "")) if isinstance(data.get("event", ""), str) else None
    if kind is None:
        return None
    values = {name: data[name] for name in kind.__dataclass_fields__ if name in data}
    if any(not _fits(kind.__dataclass_fields__[name].type, value) for name, value in values.items()):
        return None
    if "held_out" in values:
        values["held_out"] = tuple(values["held_out"])
    try:
        return kind(**values)
    except TypeError:  # a field is missing
        return None


def _fits(annotation: Any, value: Any) -> bool:
    """Whether a JSON value has the type that the field is annotated with (annotations are text here)."""
    if annotation == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation in ("float", "float | None"):
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if annotation == "bool":
        return isinstance(value, bool)
    if annotation == "str":
        return isinstance(value, str)
    if annotation == "tuple[str, ...]":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if annotation == "dict[str, float]":
        return isinstance(value, dict) and all(_fits("float", item) for item in value.values())
    return isinstance(value, dict)
