"""Plots of a run: curves of loss and metrics, and a validation image before and after.

python plots.py runs/001
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from config import PROJECT

TITLES = {"psnr": "PSNR in dB", "ssim": "SSIM", "accuracy": "accuracy", "iou": "mean IoU", "loss": "loss"}


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The entries of metrics.jsonl, one per logged step."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()[1:]
    return [json.loads(line) for line in lines if line.endswith("}")]


def smoothed(values: list[float], keep: float = 0.95) -> list[float]:
    """Exponential moving average."""
    result: list[float] = []
    for value in values:
        result.append(keep * result[-1] + (1 - keep) * value if result else value)
    return result


def curves(run: Path, target: Path) -> None:
    """Plot loss and validation over the steps."""
    entries = read_metrics(run)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [entry["step"] for entry in entries]
    losses = [entry["loss"] for entry in entries]
    left.plot(steps, losses, alpha=0.3, label="loss")
    left.plot(steps, smoothed(losses), label="running mean")
    names = list(entries[-1]["losses"]) if entries else []
    for name in names if len(names) > 1 else ():
        left.plot(steps, smoothed([entry["losses"][name] for entry in entries]), linewidth=1, label=name)
    scale = "log" if min(losses, default=1) > 0 else "linear"
    left.set(xlabel="step", ylabel="loss", yscale=scale, title="Training loss")
    left.legend()
    checked = [entry for entry in entries if "validation" in entry]
    shown = next((name for name in TITLES if checked and name in checked[-1]["validation"]), "loss")
    steps = [entry["step"] for entry in checked]
    right.plot(steps, [entry["validation"].get(shown) for entry in checked], marker=".", label="network")
    if shown == "psnr" and "noisy_psnr" in checked[-1]["validation"]:
        right.plot(steps, [entry["validation"]["noisy_psnr"] for entry in checked], linestyle="--", label="input")
    right.set(xlabel="step", ylabel=TITLES[shown], title="Validation")
    right.legend()
    figure.savefig(target, dpi=120)


def before_after(run: Path, target: Path) -> None:
    """Plot input, output and target of the first validation image side by side, if the run has images."""
    folders = sorted((run / "validation").glob("step_*"))
    names = sorted(path.name for path in folders[-1].iterdir()) if folders else []
    if not names:
        return
    parts = {"Input": run / "validation" / "inputs", "Network": folders[-1], "Target": run / "validation" / "targets"}
    images = {
        title: np.asarray(Image.open(path / names[0])) for title, path in parts.items() if (path / names[0]).exists()
    }
    height, width = images["Network"].shape[:2]
    figure = Figure(figsize=(4 * len(images), 0.5 + 4 * min(2.0, height / width)), layout="constrained")
    for axis, (title, image) in zip(np.atleast_1d(figure.subplots(1, len(images))), images.items(), strict=True):
        axis.imshow(image, cmap="gray", vmin=0, vmax=255)
        axis.set_title(title)
        axis.set_axis_off()
    figure.suptitle(f"{PROJECT['model']}: {names[0]}")
    figure.savefig(target, dpi=120)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the run")
    args = parser.parse_args(argv)
    try:
        curves(args.run, args.run / "curves.png")
        before_after(args.run, args.run / "before_after.png")
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
