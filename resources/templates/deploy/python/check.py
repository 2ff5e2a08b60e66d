"""Check that the model computes here what it computed when it was exported.

    python check.py                                    runs the model on the files in check/
    python check.py --results result.npy ...           checks files that another program wrote for the same inputs

Exit status 1 if an output differs by more than its tolerance in deploy.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from math import inf, isfinite, log10
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from processing import Array
from run import HERE, Network

RUNS = 10
LARGEST = sys.float_info.max  # JSON has no infinity


def compare(result: Array, expected: Array) -> dict[str, float]:
    """The largest difference, and the PSNR in dB of values clipped to 0..1 (999 if they are equal).

    Arrays of other shapes, and values that are NaN or infinite, differ by LARGEST.
    """
    difference = float(np.abs(result - expected).max(initial=0.0)) if result.shape == expected.shape else inf
    if not isfinite(difference):
        return {"difference": LARGEST, "psnr_db": 0.0}
    error = float(np.mean(np.square(result.clip(0, 1).astype(np.float64) - expected.clip(0, 1))))
    psnr = 999.0 if error == 0 else -10 * log10(error)
    return {"difference": difference, "psnr_db": psnr}


def measure(network: Network, files: list[Path]) -> tuple[list[Array], float]:
    """Outputs and the median time in milliseconds, including pre- and post-processing."""
    results = list(network.run_files(files).values())
    times = []
    for _ in range(RUNS):
        began = perf_counter()
        network.run_files(files)
        times.append((perf_counter() - began) * 1000)
    return results, median(times)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", nargs="+", type=Path, metavar="NPY", help="outputs of another program, in order")
    parser.add_argument("--json", action="store_true", help="print the measured values as JSON")
    args = parser.parse_args(argv)
    found: dict[str, Any] = {}
    information = json.loads((HERE / "deploy.json").read_text("utf-8"))
    check = information["check"]
    if args.results is not None:
        results = [np.load(path, allow_pickle=False) for path in args.results]
    else:
        results, found["milliseconds"] = measure(Network(), [HERE / file for file in check["inputs"]])
    names = [output["name"] for output in information["outputs"]]
    expected = [np.load(HERE / file, allow_pickle=False) for file in check["outputs"]]
    found["outputs"] = {
        name: compare(result, right) for name, result, right in zip(names, results, expected, strict=True)
    }
    for entry, tolerance in zip(found["outputs"].values(), check["tolerances"], strict=True):
        entry["ok"] = entry["difference"] <= tolerance
    found["ok"] = all(entry["ok"] for entry in found["outputs"].values())
    if args.json:
        print(json.dumps(found))
    else:
        for (name, entry), tolerance in zip(found["outputs"].items(), check["tolerances"], strict=True):
            print(
                f"{name}: {'equal' if entry['ok'] else 'DIFFERENT'} within {tolerance:.2g}: "
                f"largest difference {entry['difference']:.2g}, PSNR {entry['psnr_db']:.1f} dB"
            )
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
