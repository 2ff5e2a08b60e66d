"""Plots of a run: curves of loss and metrics, and a validation image before and after.

python plots.py runs/001
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from config import HERE

TITLES = {"psnr": "PSNR in dB", "ssim": "SSIM", "iou": "mean IoU", "accuracy": "accuracy", "loss": "loss"}


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The entries of metrics.jsonl, one per logged step."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()[1:]
    return [json.loads(line) for line in lines if line.endswith("}")]


def smoothed(values: list[float], keep: float = 0.95) -> list[float]:
    """Exponential moving average; the first values weigh as much as others (as in Adam, Kingma and Ba 2015)."""
    result: list[float] = []
    total = weight = 0.0
    for value in values:
        total, weight = keep * total + (1 - keep) * value, keep * weight + 1 - keep
        result.append(total / weight)
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
    if checked:
        right.legend()
    else:
        right.set(xticks=[], yticks=[], ylabel="")
        right.text(0.5, 0.5, "not validated yet", ha="center", va="center", transform=right.transAxes)
    figure.savefig(target, dpi=120)


def before_after(run: Path, target: Path) -> None:
    """Plot input, output and target of the first validation image side by side, if the run has images."""
    folders = sorted((run / "validation").glob("step_*"), key=lambda path: (len(path.name), path.name))
    names = sorted(path.name for path in folders[-1].iterdir()) if folders else []
    if names:
        parts = {
            "Input": run / "validation" / "inputs",
            "Network": folders[-1],
            "Target": run / "validation" / "targets",
        }
        files = {title: folder / names[0] for title, folder in parts.items() if (folder / names[0]).exists()}
        side_by_side({title: np.asarray(Image.open(file)) for title, file in files.items()}, target)


def side_by_side(images: dict[str, np.ndarray], target: Path, titles: Mapping[str, str] | None = None) -> None:
    """Plot images of 8 bits; `titles` replaces their names."""
    height, width = images["Network"].shape[:2]
    figure = Figure(figsize=(4 * len(images), 0.5 + 4 * min(2.0, height / width)), layout="constrained")
    for axis, (title, image) in zip(np.atleast_1d(figure.subplots(1, len(images))), images.items(), strict=True):
        axis.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255)
        axis.set_title((titles or {}).get(title, title))
        axis.set_axis_off()
    figure.savefig(target, dpi=120)


def other_photo(photo: Path, noise: float, weights: Path, target: Path) -> None:
    """Plot a photo before and after the network, with noise."""
    import torch

    import infer
    from metrics import psnr

    (clean,) = infer.load_inputs([photo])
    noisy = clean + torch.randn(clean.shape, generator=torch.Generator().manual_seed(0)) * (noise / 255)
    output = next(iter(infer.run(infer.load_network(weights, torch.device("cpu")), [noisy]).values()))
    named = {"Input": noisy, "Network": output, "Original": clean}
    titles = {
        name: f"{name}: {psnr(image, clean):.2f} dB" for name, image in named.items() if image.shape == clean.shape
    }
    shown = {name: (image[0].clamp(0, 1) * 255 + 0.5).byte().permute(1, 2, 0).numpy() for name, image in named.items()}
    side_by_side(shown, target, titles)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of the run")
    parser.add_argument("--picture", type=Path, help="photo for before_after.png")
    parser.add_argument("--noise", type=float, default=25.0, help="noise level 0..255 for --picture")
    parser.add_argument("--weights", type=Path, default=HERE / "weights.pt")
    parser.add_argument("--output", type=Path, help="output image")
    args = parser.parse_args(argv)
    runs = sorted((HERE / "runs").glob("*/metrics.jsonl"), key=lambda path: path.stat().st_mtime)
    run = args.run or (runs[-1].parent if runs else HERE)
    try:
        if args.picture is not None:
            other_photo(args.picture, args.noise, args.weights, args.output or HERE / "before_after.png")
        else:
            curves(run, args.output or run / "curves.png")
            before_after(run, run / "before_after.png")
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
