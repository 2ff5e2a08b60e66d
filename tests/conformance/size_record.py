"""Compares size contracts with torch at every size and writes the record: `python size_record.py FILE`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from size_trials import CASES, LARGEST

from designer.operators.size_contract import SizeContract

TITLES = {"samples": "Samples and networks to start from", "imported": "Imported from PyTorch through ONNX"}


@dataclass(frozen=True)
class SizeOutcome:
    """How the contract of a network compares with torch. A false yes is a size that torch refuses."""

    group: str
    name: str
    rules: str
    tried: int
    valid: int
    false_yes: int
    false_no: int

    def row(self) -> str:
        return f"| {self.name} | {self.rules} | {self.valid:,} | {self.false_yes} | {self.false_no} |"


def outcome_of(group: str, name: str) -> SizeOutcome:
    """Run one network at every size."""
    import torch

    torch.set_num_threads(1)
    gc.collect()
    gc.disable()  # it would visit the known shapes again and again
    case = CASES[group][name]()
    contract = case.contract
    if contract.problem is not None:
        raise ValueError(f"{name}: {contract.problem.message}")
    tried = case.outcomes(all_pairs=True)
    return SizeOutcome(
        group,
        name,
        _rules(contract),
        len(tried),
        valid=sum(trial.runs for trial in tried),
        false_yes=sum(trial.accepted and not trial.runs for trial in tried),
        false_no=sum(trial.runs and not trial.accepted for trial in tried),
    )


def _rules(contract: SizeContract) -> str:
    """The rules of the first input, as Network Settings says them; all inputs have the same size here."""
    item = contract.inputs[0]
    height, width = str(item.height), str(item.width)
    texts = [height] if height == width else [f"height: {height}", f"width: {width}"]
    if contract.coupled:
        texts.append("depend on each other")
    if contract.exceptions:
        texts.append(f"except {len(contract.exceptions)} pairs")
    if not (item.height.proven and item.width.proven):
        texts.append("not proven")
    return "; ".join(texts)


def page(outcomes: Sequence[SizeOutcome]) -> str:
    """The record as Markdown."""
    count = sum(item.tried for item in outcomes)
    yes, no = (sum(getattr(item, name) for item in outcomes) for name in ("false_yes", "false_no"))
    lines = [
        "# Input sizes",
        "",
        f"Written by `make sizes` on {datetime.now(UTC):%d %B %Y} with torch {version('torch')} and onnx {version('onnx')}.",
        "",
        f"The rules of `layerwright sizes` are compared with torch, which runs each network on the meta device, at all {LARGEST**2:,} sizes",
        f"up to {LARGEST} x {LARGEST}; networks with two inputs have the same size at both. For imported networks torch runs the original",
        "module. Inputs with a tiling are padded to it, so they take any size. A false yes is a size that the rules accept and torch",
        "refuses, a false no the opposite.",
        "",
        "| networks | count | sizes | false yes | false no |",
        "|---|---|---|---|---|",
    ]
    groups = {group: [item for item in outcomes if item.group == group] for group in TITLES}
    for group, found in groups.items():
        sums = [sum(getattr(item, name) for item in found) for name in ("tried", "false_yes", "false_no")]
        lines.append(f"| {TITLES[group]} | {len(found)} | {sums[0]:,} | {sums[1]} | {sums[2]} |")
    lines += [f"| all | {len(outcomes)} | {count:,} | {yes} | {no} |", ""]
    for group, found in groups.items():
        lines += [
            f"## {TITLES[group]}",
            "",
            "| network | rules | valid sizes | false yes | false no |",
            "|---|---|---|---|---|",
        ]
        lines += [*(item.row() for item in found), ""]
    return "\n".join(lines)


def main(target: str) -> int:
    """Compare the networks of the record; 1 if a rule is wrong."""
    cases = [(group, name) for group in TITLES for name in CASES[group]]
    outcomes = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(outcome_of, *zip(*cases, strict=True)):
            print(outcome.row(), flush=True)
            outcomes.append(outcome)
    Path(target).write_text(page(outcomes), "utf-8")
    return int(any(item.false_yes or item.false_no for item in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
