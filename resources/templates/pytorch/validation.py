"""Validation: metrics and images of the held-out data, and whether training still improves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import data
from config import Config
from images import save_image
from metrics import Ratio
from objective import Objective, place


class Validation:
    """The held-out data, and the best result so far. `on_training`: the data is used for training, because there is no other."""

    def __init__(self, shown: list[tuple[str, torch.Tensor, torch.Tensor]], on_training: bool, config: Config) -> None:
        self.shown = _with_own_names(shown)
        self.on_training = on_training and bool(shown)
        self.patience = config.early_stopping
        self.best = -math.inf
        self.waited = 0

    def run(
        self, objective: Objective, device: torch.device, folder: Path, step: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Mean metrics and losses; the outputs are written to `folder` as images."""
        rows: list[tuple[int, Mapping[str, float | Ratio], dict[str, float]]] = []
        objective.eval()
        with torch.inference_mode():
            for name, first, second in self.shown:
                inputs, targets = place((first, second), device)
                output, losses = objective(inputs, targets)
                terms = {loss: value.item() for loss, value in losses.items()}
                rows.append((len(first), data.measure(output, targets, inputs), terms))
                self._write(folder, name, step, data.views(inputs, output, targets))
        objective.train()
        return mean([(count, metrics) for count, metrics, _ in rows]), mean(
            [(count, terms) for count, _, terms in rows]
        )

    def judge(self, metrics: dict[str, float], losses: dict[str, float]) -> tuple[bool, bool]:
        """Whether this is the best result so far, and whether to stop, because there was none for too long."""
        score = metrics.get(data.BEST, -sum(losses.values()))
        if score > self.best or not self.shown:
            self.best, self.waited = score, 0
            return True, False
        self.waited += 1
        return False, 0 < self.patience <= self.waited

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"best": self.best, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the state of a checkpoint."""
        self.best, self.waited = state["best"], state["waited"]

    def _write(self, folder: Path, name: str, step: int, views: dict[str, torch.Tensor]) -> None:
        """Write one image of each view: validation/inputs/, validation/targets/ and validation/step_000500/."""
        for kind, image in views.items():
            path = folder / "validation" / (f"step_{step:06}" if kind == "output" else kind) / f"{name}.png"
            if kind == "output" or not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                save_image(image, path)


def _with_own_names(
    shown: list[tuple[str, torch.Tensor, torch.Tensor]],
) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """The data, where a name that an earlier image of another folder has gets a number."""
    found: dict[str, tuple[str, torch.Tensor, torch.Tensor]] = {}
    for name, first, second in shown:
        own, number = name, 2
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found[own] = own, first, second
    return [*found.values()]


def mean(rows: Sequence[tuple[int, Mapping[str, float | Ratio]]]) -> dict[str, float]:
    """The mean of each value, weighted by the first entries; ratios are those of the sums."""
    return {name: _mean([(weight, row[name]) for weight, row in rows]) for name in (rows[0][1] if rows else ())}


def _mean(values: Sequence[tuple[int, float | Ratio]]) -> float:
    ratios = [value for _, value in values if isinstance(value, Ratio)]
    if ratios:
        return Ratio(*(torch.stack(tensors).sum(0) for tensors in zip(*ratios, strict=True))).value()
    numbers = [(weight, value) for weight, value in values if not isinstance(value, Ratio)]
    return sum(weight * value for weight, value in numbers) / sum(weight for weight, _ in numbers)
