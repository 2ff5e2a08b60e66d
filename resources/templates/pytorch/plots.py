"""Plots of a training run: curves of loss and PSNR, and a photo before and after.

python plots.py                                             curves.png from log.jsonl
python plots.py --picture photo.jpg --noise 25         before_after.png
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import data
import torch
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent


def read_log(path: Path) -> dict[str, list[dict]]:
    """Read the entries of the log by event. For steps repeated by a resumed run, the last entry is used."""
    found: dict[str, dict[int, dict]] = {"step": {}, "validation": {}}
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["event"] in found:
            found[entry["event"]][entry["step"]] = entry
    return {event: [entries[step] for step in sorted(entries)] for event, entries in found.items()}


def smoothed(values: list[float], keep: float = 0.95) -> list[float]:
    """Exponential moving average."""
    result, mean = [], None
    for value in values:
        mean = value if mean is None else keep * mean + (1 - keep) * value
        result.append(mean)
    return result


def curves(log: Path, target: Path) -> None:
    """Plot loss and PSNR over the steps."""
    entries = read_log(log)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [entry["step"] for entry in entries["step"]]
    losses = [entry["loss"] for entry in entries["step"]]
    left.plot(steps, losses, alpha=0.3, label="loss")
    left.plot(steps, smoothed(losses), label="running mean")
    names = data.PROJECT["losses"]
    for name in names if len(names) > 1 else ():
        left.plot(steps, smoothed([entry["losses"][name] for entry in entries["step"]]), linewidth=1, label=name)
    scale = "log" if min(losses, default=1) > 0 else "linear"
    left.set(xlabel="step", ylabel="loss" if names else "L1 loss", yscale=scale, title="Training loss")
    left.legend()
    steps = [entry["step"] for entry in entries["validation"]]
    if entries["validation"] and "psnr" not in entries["validation"][-1]:  # the target is not an image
        for name in names:
            right.plot(steps, [entry["losses"][name] for entry in entries["validation"]], marker=".", label=name)
        right.set(xlabel="step", ylabel="loss", title="Validation losses")
        right.legend()
        figure.savefig(target, dpi=120)
        return
    right.plot(steps, [entry["psnr"] for entry in entries["validation"]], marker=".", label="network")
    right.plot(steps, [entry["noisy_psnr"] for entry in entries["validation"]], linestyle="--", label="noisy image")
    seen = any(entry["on_training"] for entry in entries["validation"])
    title = "PSNR on training images" if seen else "PSNR on validation images"
    right.set(xlabel="step", ylabel="PSNR in dB", title=title)
    right.legend()
    figure.savefig(target, dpi=120)


def before_after(noisy: torch.Tensor, output: torch.Tensor, original: torch.Tensor, target: Path) -> None:
    """Plot the noisy image, the output and the original side by side (each C x H x W, values in 0..1)."""
    height, width = original.shape[-2:]
    figure = Figure(figsize=(12, 0.5 + 4 * min(2.0, height / width)), layout="constrained")
    clean = original.clamp(0, 1)
    named = (("Noisy", noisy), ("Network", output), ("Original", original))
    for axis, (name, image) in zip(figure.subplots(1, 3), named, strict=True):
        shown = image.clamp(0, 1)
        axis.imshow(shown.cpu().permute(1, 2, 0).numpy().squeeze(), cmap="gray", vmin=0, vmax=1)
        axis.set_title(name if name == "Original" else f"{name}: {data.psnr(shown, clean):.2f} dB")
        axis.set_axis_off()
    figure.savefig(target, dpi=120)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, default=HERE / "log.jsonl")
    parser.add_argument("--picture", type=Path, help="photo for before_after.png")
    parser.add_argument("--noise", type=float, default=25.0, help="noise level 0..255 for --picture")
    parser.add_argument("--weights", type=Path, default=HERE / "weights.pt")
    parser.add_argument("--output", type=Path, help="output image")
    args = parser.parse_args(argv)
    try:
        if args.picture is None:
            curves(args.log, args.output or HERE / "curves.png")
            return 0
        import infer

        network = infer.load_network(args.weights, torch.device("cpu"))
        clean = data.to_tensor(data.load_image(args.picture, data.PROJECT["inputs"][0]["shape"][0]))[None]
        noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0)) * (args.noise / 255)
        inputs, original = data.sample(clean, noise)
        original = original[0] if isinstance(original, tuple) else original
        output = next(iter(infer.run(network, list(inputs)).values()))
        before_after(inputs[0][0], output[0], original[0], args.output or HERE / "before_after.png")
    except (OSError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
