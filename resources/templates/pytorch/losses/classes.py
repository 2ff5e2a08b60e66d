"""What training minimizes, because the document has no losses: the cross-entropy of scores and classes."""

from __future__ import annotations

import torch
from torch import nn

from config import PROJECT
from metrics import IGNORED


class Losses(nn.Module):
    """The cross-entropy; of a network that returns probabilities, their negative logarithm."""

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        """Losses by name; training minimizes their sum."""
        scores = output if output.dim() == target.dim() + 1 else output.flatten(1)
        if scores.shape[:1] + scores.shape[2:] != target.shape:
            raise ValueError(
                f"the network's output is {' x '.join(map(str, ('N', *output.shape[1:])))}, but the classes of the task "
                f"'{PROJECT['task']}' are {' x '.join(map(str, ('N', *target.shape[1:])))}; make an output with scores for "
                "each of them, or choose another task"
            )
        ignored = IGNORED if target.dim() > 1 else -1  # only masks have pixels that do not count
        if PROJECT["probabilities"]:
            total = nn.functional.nll_loss(scores.clamp_min(1e-8).log(), target, ignore_index=ignored, reduction="sum")
        else:
            total = nn.functional.cross_entropy(scores, target, ignore_index=ignored, reduction="sum")
        return {"cross_entropy": total / (target != ignored).sum().clamp_min(1)}  # 0 where no pixel counts
