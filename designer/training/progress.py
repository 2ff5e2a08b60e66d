"""The events that a generated train.py prints with --json-progress, one JSON object per line."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

MAX_LINE = 1 << 20  # characters; a longer line is not one of ours
Count = Annotated[int, Meta(ge=0, le=1 << 53)]  # what a float holds exactly


class Started(Struct, frozen=True, tag_field="event", tag="start"):
    """Training starts, at `step` if it was resumed. `held_out` are the names of the validation images."""

    step: Count
    steps: Count
    parameters: Count
    images: Count = field(name="pictures")
    synthetic: Count = field(name="made_up")
    device: str
    held_out: tuple[str, ...] = ()
    recipe: dict[str, Any] = {}


class Stepped(Struct, frozen=True, tag_field="event", tag="step"):
    """A training step; a few per second are reported. `seconds` since the start of this process.

    `loss` is the sum of `losses`, which are by name.
    """

    step: Count
    steps: Count
    loss: float
    lr: float
    seconds: float
    steps_per_second: float
    losses: dict[str, float] = {}

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last step at the current speed; None if the speed is unknown."""
        return (self.steps - self.step) / self.steps_per_second if self.steps_per_second > 0 else None


class Validated(Struct, frozen=True, tag_field="event", tag="validation"):
    """Mean losses by name, and mean PSNR in dB of the network's output and of the noisy images.

    The PSNR is None if the target is not an image. `on_training`: computed on training images.
    """

    step: Count
    psnr: float | None = None
    noisy_psnr: float | None = None
    on_training: bool = False
    losses: dict[str, float] = {}


class Saved(Struct, frozen=True, tag_field="event", tag="checkpoint"):
    """A checkpoint and the weights were written."""

    step: Count
    path: str


class Stopped(Struct, frozen=True, tag_field="event", tag="stopped"):
    """The user stopped the run; it can be resumed."""

    step: Count
    steps: Count
    message: str = ""


class Done(Struct, frozen=True, tag_field="event", tag="done"):
    """Training is complete; `weights` is the folder with the weights."""

    step: Count
    steps: Count
    weights: str
    message: str = ""


class Failed(Struct, frozen=True, tag_field="event", tag="error"):
    """Training failed; `message` is the reason."""

    message: str


Event = Started | Stepped | Validated | Saved | Stopped | Done | Failed
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def parse_line(line: str) -> Event | None:
    """The event in a line; None for other output of the process, such as warnings.

    Unknown fields are ignored, so that later scripts can add some.
    """
    text = line.strip()
    if not text.startswith("{") or len(text) > MAX_LINE:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
