"""Imports the architectures of `spandrel` with random weights: `python -m app.checks.torch_interop FILE [NAME ...]`.

Each architecture is made with its default or documented arguments (with fewer repetitions of equal blocks), traced, and
compared with the module at two batches or sizes. Every one runs in a process of its own with a limit of time.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

GOAL = 1e-5
LIMIT = 240.0  # seconds for one architecture


@dataclass(frozen=True)
class Example:
    """How an architecture is made: its class in spandrel, arguments, and the input."""

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = (1, 3, 32, 32)
    others: tuple[tuple[int, ...], ...] = ()  # further inputs


EXAMPLES: dict[str, Example] = {
    "ATD": Example(
        "ATD",
        {"depths": (2, 2), "num_heads": (6, 6), "upscale": 2, "upsampler": "pixelshuffledirect", "category_size": 64},
    ),
    "AuraSR": Example(
        "AuraSR",
        {
            "dim": 16,
            "image_size": 64,
            "input_image_size": 16,
            "style_network": {"dim_in": 32, "dim_out": 32, "depth": 2},
        },
        (1, 3, 16, 16),
    ),
    "CRAFT": Example("CRAFT", {"depths": [2, 2], "num_heads": [6, 6]}),
    "Compact": Example("Compact"),
    "DAT": Example("DAT", {"depth": [2, 2], "num_heads": [2, 2]}),
    "DCTLSA": Example("DCTLSA"),
    "DITN": Example("DITN", {"ITL_blocks": 2, "SAL_blocks": 2}),
    "DRCT": Example("DRCT", {"depths": (2, 2), "num_heads": (6, 6), "upscale": 2, "upsampler": "pixelshuffle"}),
    "DRUNet": Example("DRUNet", {"nb": 2}, (1, 1, 32, 32)),
    "DnCNN": Example("DnCNN", {}, (1, 1, 32, 32)),
    "ESRGAN": Example("ESRGAN", {"num_blocks": 3}),
    "FBCNN": Example("FBCNN", {"nb": 2}),
    "FDAT": Example("FDAT", {"num_groups": 2}),
    "FFTformer": Example("FFTformer", {"num_blocks": [1, 1, 1], "num_refinement_blocks": 1}),
    "GFPGAN": Example("GFPGAN", {}, (1, 3, 512, 512)),
    "GRL": Example("GRL", {"depths": [2, 2], "num_heads_window": [3, 3], "num_heads_stripe": [3, 3]}, (1, 3, 64, 64)),
    "HAT": Example(
        "HAT",
        {"depths": (2, 2), "num_heads": (6, 6), "window_size": 8, "upscale": 2, "upsampler": "pixelshuffle"},
    ),
    "HVICIDNet": Example("HVICIDNet"),
    "IPT": Example("IPT", {"num_layers": 2}, (1, 3, 48, 48)),
    "KBNet": Example(
        "KBNet_s", {"width": 16, "middle_blk_num": 1, "enc_blk_nums": [1, 1, 1, 1], "dec_blk_nums": [1, 1, 1, 1]}
    ),
    "LaMa": Example("LaMa", {"in_nc": 4}, (1, 3, 64, 64), ((1, 1, 64, 64),)),
    "MMRealSR": Example("MMRealSR", {"num_in_ch": 3, "num_out_ch": 3, "num_block": 2}),
    "MixDehazeNet": Example("MixDehazeNet", {}, (1, 3, 64, 64)),
    "MoESR": Example("MoESR", {"n_blocks": 2}),
    "MoSR": Example("MoSR", {"n_block": 4}),
    "NAFNet": Example("NAFNet", {"enc_blk_nums": [1, 1], "dec_blk_nums": [1, 1]}),
    "OmniSR": Example("OmniSR"),
    "PLKSR": Example("PLKSR", {"n_blocks": 4}),
    "RealPLKSR": Example("RealPLKSR", {"n_blocks": 4}),
    "RCAN": Example("RCAN", {"n_resgroups": 2, "n_resblocks": 3}),
    "RGT": Example("RGT", {"depth": [2, 2], "num_heads": [2, 2]}),
    "RealCUGAN": Example("UpCunet2x", {}, (1, 3, 32, 32)),
    "RestoreFormer": Example("RestoreFormer", {}, (1, 3, 512, 512)),
    "RetinexFormer": Example("RetinexFormer"),
    "SAFMN": Example("SAFMN", {"dim": 36}),
    "SAFMNBCIE": Example("SAFMNBCIE", {"dim": 36, "n_blocks": 2, "num_layers": 2}),
    "SCUNet": Example("SCUNet", {"config": [2, 2, 2, 2, 2, 2, 2]}, (1, 3, 64, 64)),
    "SPAN": Example("SPAN", {"num_in_ch": 3, "num_out_ch": 3}),
    "SeemoRe": Example("SeemoRe", {"num_layers": 2}),
    "SwiftSRGAN": Example("SwiftSRGAN", {"num_blocks": 4}),
    "Swin2SR": Example(
        "Swin2SR", {"depths": [2, 2], "num_heads": [6, 6], "window_size": 8, "upsampler": "pixelshuffle"}
    ),
    "SwinIR": Example(
        "SwinIR", {"depths": [2, 2], "num_heads": [6, 6], "window_size": 8, "upscale": 2, "upsampler": "pixelshuffle"}
    ),
    "Uformer": Example("Uformer", {"img_size": 128}, (1, 3, 128, 128)),
}


@dataclass(frozen=True)
class ArchitectureOutcome:
    """What became of an architecture: counts of nodes, the difference, and why it is not equal."""

    name: str
    nodes: int = 0
    opaque: int = 0
    difference: float | None = None
    cases: int = 0
    reason: str = ""

    @property
    def imported(self) -> bool:
        return self.difference is not None and self.difference <= GOAL

    def row(self) -> str:
        """A row of the table of the record."""
        difference = "" if self.difference is None else f"{self.difference:.1e}"
        result = "yes" if self.imported else "no"
        reason = self.reason.replace("|", "/").replace("\n", " ")[:200]
        return f"| {self.name} | {result} | {self.nodes} | {self.opaque} | {difference} | {self.cases} | {reason} |"


def made(name: str) -> Any:
    """The module of an architecture with random weights."""
    import importlib

    import torch

    from designer.importers.checkpoints.architectures import spandrel, with_folded_parts

    spandrel()
    torch.manual_seed(0)
    folder = "PLKSR" if name == "RealPLKSR" else name
    package = importlib.import_module(f"spandrel.architectures.{folder}")
    module = getattr(package, EXAMPLES[name].kind)(**EXAMPLES[name].arguments)
    return with_folded_parts(module.eval())


def outcome_of(name: str) -> ArchitectureOutcome:
    """Import one architecture."""
    import torch

    from designer.graph.diagnostics import DiagnosticError
    from designer.importers.pytorch.importing import import_module
    from designer.operators.registry import default_registry

    registry = default_registry()
    try:
        module = made(name)
        inputs = [torch.rand(shape) for shape in (EXAMPLES[name].shape, *EXAMPLES[name].others)]
        report = import_module(module, inputs, registry).verified(registry).report
    except DiagnosticError as error:
        return ArchitectureOutcome(name, reason=error.diagnostics[0].message)
    except Exception as error:  # a defect of the program is an outcome too
        return ArchitectureOutcome(name, reason=f"{type(error).__name__}: {str(error)[:160]}")
    kept = sorted({f"{item.type}: {item.reason}" for item in report.outcomes if item.reason})
    reason = report.not_compared_because or "; ".join(report.warnings) or "; ".join(kept)
    return ArchitectureOutcome(name, report.nodes, report.opaque, report.max_rel_difference, len(report.cases), reason)


def _answer(name: str, queue: Any) -> None:
    import torch

    torch.set_num_threads(1)
    queue.put(outcome_of(name))


def limited(name: str) -> ArchitectureOutcome:
    """`outcome_of` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    process = context.Process(target=_answer, args=(name, queue))
    process.start()
    try:
        found: ArchitectureOutcome = queue.get(timeout=LIMIT)
    except Empty:
        found = ArchitectureOutcome(name, reason=f"not finished after {LIMIT:g} s")
    finally:
        process.kill()
        process.join()
    return found


def table(outcomes: Iterable[ArchitectureOutcome]) -> str:
    """The section of the record."""
    found = list(outcomes)
    good = sum(1 for item in found if item.imported)
    head = [
        "# Architectures of spandrel",
        "",
        f"{good} of {len(found)} architectures with random weights are imported and agree to {GOAL:g} (relative).",
        "Made with default or documented arguments and fewer repetitions of equal blocks (`app/checks/torch_interop.py`).",
        "",
        "| architecture | equal | nodes | other than library layers | difference | cases | reason |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(item.row() for item in found), ""])


def main(target: str, *names: str) -> None:
    """Import all architectures, or those given, and write the table after each."""
    found = []
    for name in names or EXAMPLES:
        found.append(limited(name))
        print(found[-1].row(), flush=True)
        Path(target).write_text(table(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
