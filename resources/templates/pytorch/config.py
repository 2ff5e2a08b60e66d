"""Settings of a training run. Every field of `Config` is an option of train.py: `weight_decay` is `--weight-decay`."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
PROBLEMS = ("not_finite", "exploding", "vanishing", "dead", "frozen", "saturated")
HERE = Path(__file__).resolve().parent
PROJECT: dict[str, Any] = json.loads((HERE / "project.json").read_text("utf-8"))


def count(text: str) -> int:
    """Parse an integer of at least 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least 1")
    return int(text)


def from_zero(text: str) -> int:
    """Parse an integer of at least 0."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least 0")
    return int(text)


def rate(text: str) -> float:
    """Parse a learning rate."""
    value = _float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a learning rate between 0 and 1")
    return value


def positive(text: str) -> float:
    """Parse a number of at least 0."""
    value = _float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 0")
    return value


def fraction(text: str) -> float:
    """Parse a number from 0 to 1, without 1."""
    value = _float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 1 (without 1)")
    return value


def levels(text: str) -> tuple[float, float]:
    """The lowest and highest value of a range: "25" is 25 to 25, "0-55" is 0 to 55. Raises ValueError."""
    found = re.fullmatch(r"([\d.]+(?:e-?\d+)?)(?:-([\d.]+(?:e-?\d+)?))?", text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a number or a range such as 0-55")
    low, high = float(found[1]), float(found[2] or found[1])
    if not low <= high < math.inf:
        raise ValueError(f"'{text}' is not a range, because {low:g} is larger than {high:g}")
    return low, high


def noise_level(text: str) -> str:
    """Check one or two noise levels of 255."""
    try:
        valid = levels(text)[1] <= 255
    except ValueError:
        valid = False
    if not valid:
        message = f"'{text}' is not a noise level; use a level such as 25 or a range such as 0-55, within 0..255"
        raise argparse.ArgumentTypeError(message)
    return text.strip()


def shot_level(text: str) -> str:
    """Check one or two levels of shot noise."""
    try:
        valid = levels(text)[1] <= 1
    except ValueError:
        valid = False
    if not valid:
        message = (
            f"'{text}' is not a level of shot noise; use one such as 0.01 or a range such as 0.001-0.02, within 0..1"
        )
        raise argparse.ArgumentTypeError(message)
    return text.strip()


def path(text: str) -> str:
    """An absolute path, so that a run can be resumed from another folder."""
    return str(Path(text).resolve()) if text else ""


def problems(text: str) -> str:
    """Check kinds of problems that monitor.py reports."""
    wrong = [name for name in text.split(",") if name and name not in PROBLEMS]
    if wrong:
        raise argparse.ArgumentTypeError(f"'{wrong[0]}' is not one of {', '.join(PROBLEMS)}")
    return text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def setting(
    default: T, about: str, parse: Callable[[str], Any] | None = None, choices: Sequence[str] | None = None
) -> T:
    """A field with a description, how its text on the command line is parsed, and the texts that are valid."""
    metadata = {"about": about, "parse": parse or type(default), "choices": choices}
    made: T = field(default=default, metadata=metadata)
    return made


@dataclass(frozen=True)
class Config:
    """The settings with their defaults."""

    # Data
    # only denoising super-resolution classification
    data: str = setting("", "folder with training images", path)
    # only restoration segmentation
    inputs: str = setting("", "folder with input images", path)
    targets: str = setting("", "folder with the targets, of the same names as the inputs", path)
    # only all
    validation: str = setting("", "folder with validation images (default: every tenth image)", path)
    # only denoising
    noise: str = setting(
        "25", "level of Gaussian noise, of 255, or a range such as 0-55 for blind denoising", noise_level
    )
    noise_model: str = setting("gaussian", "kind of noise", choices=("gaussian", "poisson-gaussian"))
    shot: str = setting("0.01", "shot noise of poisson-gaussian: variance at brightness 1, or a range", shot_level)
    # only denoising super-resolution
    synthetic: int = setting(-1, "number of synthetic images (default: fill up to 16 images)", from_zero)
    refresh: int = setting(0, "replace a synthetic image by a new one after this many patches (0: never)", from_zero)
    # only denoising restoration segmentation super-resolution
    patch: int = setting(64, "size of the training patches in pixels", count)
    # only classification
    flip: bool = setting(False, "also train with mirrored images")
    # only all
    batch: int = setting(16, "samples per step, of all processes together", count)
    workers: int = setting(-1, "processes that load data (default: 1 for a CPU, 4 for a GPU)", from_zero)

    # Length and optimizer
    epochs: int = setting(100, "passes over the images", count)
    steps: int = setting(0, "number of steps, instead of --epochs", count)
    optimizer: str = setting("adamw", "optimizer", choices=("adamw", "sgd"))
    lr: float = setting(1e-3, "peak learning rate, with cosine decay to 0", rate)
    warmup: int = setting(-1, "steps of linear warm-up (default: a tenth of the run, at most 100)", from_zero)
    weight_decay: float = setting(1e-4, "weight decay", positive)
    momentum: float = setting(0.9, "momentum of sgd", fraction)
    clip: float = setting(1.0, "largest norm of the gradient (0: no clipping)", positive)
    ema: float = setting(0.0, "decay of the moving average of the weights, such as 0.999 (0: none)", fraction)
    early_stopping: int = setting(0, "stop after this many validations without improvement (0: never)", from_zero)
    monitor: bool = setting(True, "measure the health of the layers, and keep a trail of the weights")
    stop_on: str = setting(
        "not_finite", "problems of a layer that stop the run, separated by commas; see monitor.py", problems
    )
    validate_every: int = setting(250, "steps between validations and checkpoints", count)
    seed: int = setting(0, "the same seed gives the same run on the same machine", from_zero)

    # Start and constraints
    from_weights: str = setting("", "weights to start from: a run, a .pt file, or a folder of .npy files", path)
    sparse_2_4: bool = setting(False, "keep the zeros of the 2:4-pruned weights of --from-weights")

    # Machine
    device: str = setting("", "cpu, cuda, cuda:1, ... (default: cuda if there is one)")
    threads: int = setting(0, "threads on the CPU (0: all)", from_zero)
    amp: bool = setting(False, "mixed precision (float16 on cuda, bfloat16 on cpu)")
    compile: bool = setting(False, "compile the network with torch.compile")
    tensorboard: bool = setting(True, "write TensorBoard events if the package is installed")


@dataclass(frozen=True)
class Command:
    """A parsed command line: the settings that it has, and what is not a setting of the run."""

    given: Mapping[str, Any]
    run: str
    output: str
    resume: bool
    json_progress: bool

    def config(self, saved: Mapping[str, Any] | None = None) -> Config:
        """The settings: those of the command line before those of a resumed run before the defaults."""
        known = {entry.name for entry in fields(Config)}
        values = {name: value for name, value in (saved or {}).items() if name in known}
        if "epochs" in self.given:
            values["steps"] = 0
        return Config(**{**values, **self.given})


def parse(argv: Sequence[str] | None, description: str) -> Command:
    """Parse the command line of train.py."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--run", default="", help="folder of the run (default: the next number in runs/)")
    parser.add_argument("--output", default="", help="like --run, but a run that is in the folder is replaced")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue exactly from the last checkpoint; options extend or change the run",
    )
    parser.add_argument(
        "--json-progress", action="store_true", help="print one JSON object per line instead of a progress bar"
    )
    for entry in fields(Config):
        option, about = f"--{entry.name.replace('_', '-')}", entry.metadata["about"]
        if isinstance(entry.default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=about)
            continue
        shown = "" if entry.default in ("", -1, 0) or "default" in about else f" (default {entry.default})"
        parser.add_argument(
            option,
            type=entry.metadata["parse"],
            choices=entry.metadata["choices"],
            default=argparse.SUPPRESS,
            help=f"{about}{shown}".replace("%", "%%"),
        )
    given = vars(parser.parse_args(argv))
    run, output, resume, json_progress = (given.pop(name) for name in ("run", "output", "resume", "json_progress"))
    if "epochs" in given and "steps" in given:
        parser.error("--epochs and --steps are two ways to give the length; use one of them")
    if run and output:
        parser.error("--run and --output both name the folder of the run; use one of them")
    return Command(given, path(run), path(output), resume, json_progress)
