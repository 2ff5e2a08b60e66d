"""What training minimizes, because the document has no losses: the mean absolute difference of output and target."""

from __future__ import annotations

import torch
from torch import nn

from config import PROJECT


class Losses(nn.Module):
    """The L1 difference."""

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        """Losses by name; training minimizes their sum."""
        if output.shape != target.shape:
            wanted = " x ".join(map(str, ("N", *target.shape[1:])))
            remedy = f"make an output of the shape {wanted}"
            if output.dim() == target.dim() and output.shape[2:] == target.shape[2:]:
                remedy = f"give the output {target.shape[1]} channels"
            raise ValueError(
                f"the network's output is {' x '.join(map(str, ('N', *output.shape[1:])))}, but the target of the task "
                f"'{PROJECT['task']}' is {wanted}; {remedy}, or choose another task"
            )
        return {"l1": nn.functional.l1_loss(output, target)}
