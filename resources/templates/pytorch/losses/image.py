"""What training minimizes, because the document has no losses: the mean absolute difference of output and target."""

from __future__ import annotations

import torch
from torch import nn


class Losses(nn.Module):
    """The L1 difference."""

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        """Losses by name; training minimizes their sum."""
        if output.shape != target.shape:
            raise ValueError(
                f"the network's output is {tuple(output.shape)}, but the target that sample() in data.py returns is "
                f"{tuple(target.shape)}; change it to return a target of the output's shape"
            )
        return {"l1": nn.functional.l1_loss(output, target)}
