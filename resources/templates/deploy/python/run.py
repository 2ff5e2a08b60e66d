"""Run the network with ONNX Runtime.

    python run.py photo.png --output result.png

A network with several inputs takes one file for each, in the order of deploy.json. Further outputs get a number in their name.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when ONNX Runtime is imported

import onnxruntime
import processing
from processing import Array, InputError

HERE = Path(__file__).resolve().parent.parent


class Network:
    """The model with its pre- and post-processing."""

    def __init__(self, folder: Path = HERE, threads: int = 0) -> None:
        self.information: dict[str, Any] = json.loads((folder / "deploy.json").read_text("utf-8"))
        self.inputs: list[dict[str, Any]] = self.information["inputs"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.x64quantprecision", "1")  # INT8 must not saturate without VNNI
        self.session = onnxruntime.InferenceSession(
            folder / self.information["model"], options, providers=onnxruntime.get_available_providers()
        )

    def run_files(self, files: Sequence[Path]) -> dict[str, Array]:
        """Outputs by name for one file per input."""
        if len(files) != len(self.inputs):
            names = ", ".join(entry["name"] for entry in self.inputs)
            raise InputError(f"the network needs {len(self.inputs)} files ({names}), not {len(files)}")
        read = [processing.read(path, entry) for path, entry in zip(files, self.inputs, strict=True)]
        return self.run([array for array, _ in read], [is_image for _, is_image in read])

    def run(self, arrays: Sequence[Array], are_images: Sequence[bool]) -> dict[str, Array]:
        """Outputs by name. Images have values 0..1; other arrays are used unchanged."""
        feeds = {
            entry["name"]: processing.prepare(array, entry, is_image=is_image)
            for array, entry, is_image in zip(arrays, self.inputs, are_images, strict=True)
        }
        outputs = dict(zip(self.output_names, self.session.run(None, feeds), strict=True))
        image = next((n for n, entry in enumerate(self.inputs) if entry["image"]), None)
        if image is None:
            return outputs
        size, padded = arrays[image].shape[2:], feeds[self.inputs[image]["name"]].shape[2:]
        return {name: processing.crop(output, size, padded) for name, output in outputs.items()}

    @property
    def output_names(self) -> list[str]:
        return [output.name for output in self.session.get_outputs()]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path, help="an image or .npy file for each input")
    parser.add_argument("--output", type=Path, default=Path("result.png"), help="image, or .npy for exact values")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    args = parser.parse_args(argv)
    try:
        network = Network(threads=args.threads)
        began = perf_counter()
        outputs = network.run_files(args.inputs)
        milliseconds = (perf_counter() - began) * 1000
        for number, (name, output) in enumerate(outputs.items(), 1):
            path = args.output if number == 1 else args.output.with_stem(f"{args.output.stem}_{number}")
            processing.write(path, output)
            print(f"{name} -> {path}")
        print(f"{milliseconds:.1f} ms")
    except (InputError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
