"""Run the trained network on an image.

    python infer.py photo.png --output result.png
    python infer.py photo.png --weights runs/001
    python infer.py photo.jpg --noise 25 --output clean.png     (adds noise first, and prints the PSNR)

Classifiers print the classes, segmenters write class numbers as gray values. A network with several inputs takes several images of the same size, in the order of its `forward`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import model
from config import HERE, PROJECT
from images import DataError, image_entry, load_image, resized, save_image, to_tensor
from metrics import psnr
from objective import prepare
from storage import StorageError, read_weights


def load_network(weights: Path, device: torch.device) -> torch.nn.Module:
    """Load the network with trained weights: a run, a checkpoint, a state dict, or a folder of .npy files."""
    if not weights.exists():
        raise DataError(f"there are no weights at {weights}; run train.py first, or use --weights FILE")
    network = model.NetworkClass()
    network.load_state_dict(read_weights(weights))
    network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.eval()


def run(network: torch.nn.Module, images: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Run the network; returns outputs by name. Images are N x C x H x W in 0..1, padded to the network's multiple; outputs are cropped."""
    height, width = images[0].shape[-2:]
    inputs = []
    for entry, image in zip(PROJECT["inputs"], images, strict=True):
        below, right = -height % entry["multiple"], -width % entry["multiple"]
        padded = torch.nn.functional.pad(image, (0, right, 0, below), mode="replicate")
        inputs.append(prepare(padded, entry))
    with torch.inference_mode():
        result = network(*inputs)
    outputs = result if isinstance(result, dict) else {PROJECT["outputs"][0]["name"]: result}
    padded_size = inputs[0].shape[-2:]
    cropped = {}
    for name, output in outputs.items():
        if output.dim() == 4:  # outputs of another size are cropped in proportion
            output = output[
                ..., : -(-output.shape[2] * height // padded_size[0]), : -(-output.shape[3] * width // padded_size[1])
            ]
        cropped[name] = output
    return cropped


def load_inputs(paths: list[Path]) -> list[torch.Tensor]:
    """One image for each input, 1 x C x H x W in 0..1; for classification, in the size of the input."""
    entries = PROJECT["inputs"]
    if len(paths) != len(entries):
        names = ", ".join(entry["name"] for entry in entries)
        raise DataError(f"the network takes {len(entries)} images ({names}), not {len(paths)}")
    arrays = [load_image(path, image_entry([entry])["shape"][0]) for path, entry in zip(paths, entries, strict=True)]
    if PROJECT["task"] == "classification":
        shapes = [entry["shape"] for entry in entries]
        arrays = [resized(array, *shape[1:]) for array, shape in zip(arrays, shapes, strict=True)]
    if len({array.shape[:2] for array in arrays}) > 1:
        raise DataError("the images have different sizes; resize them to the same size")
    return [to_tensor(array)[None] for array in arrays]


def write_output(output: torch.Tensor, path: Path) -> str:
    """Write an output (of one image) as an image, a mask of class numbers, or nothing; returns what to print."""
    if PROJECT["task"] == "classification" or output.dim() != 4:
        best = output.flatten().topk(min(3, output.numel()))
        return ", ".join(
            f"class {place} ({value:.3f})" for value, place in zip(*map(torch.Tensor.tolist, best), strict=True)
        )
    if PROJECT["task"] == "segmentation":
        save_image(output[0].argmax(0, keepdim=True) / 255, path)
    else:
        save_image(output[0], path)
    return str(path)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="+", type=Path, help="one image for each input of the network")
    parser.add_argument("--output", type=Path, default=Path("output.png"), help="output image")
    parser.add_argument("--weights", type=Path, default=HERE / "weights.pt", help="state dict, checkpoint or run")
    parser.add_argument("--noise", type=float, default=0.0, help="add Gaussian noise of this level (0..255) first")
    parser.add_argument("--seed", type=int, default=0, help="seed of the added noise")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    try:
        device = torch.device(args.device)
        network = load_network(args.weights, device)
        clean = load_inputs(args.images)
        generator = torch.Generator().manual_seed(args.seed)
        noisy = [image + torch.randn(image.shape, generator=generator) * (args.noise / 255) for image in clean]
        outputs = run(network, [image.to(device) for image in noisy])
        for number, (name, output) in enumerate(outputs.items()):
            path = args.output if not number else args.output.with_stem(f"{args.output.stem}_{number + 1}")
            print(f"{name}: {write_output(output.cpu(), path)}")
            if args.noise and output.shape == clean[0].shape:
                after = psnr(output.cpu(), clean[0])
                print(f"PSNR {psnr(noisy[0], clean[0]):.2f} dB before, {after:.2f} dB after")
    except (DataError, StorageError, OSError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
