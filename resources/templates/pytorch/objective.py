"""The network and its losses as one module: what training differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import data
import losses
import model
from config import PROJECT

INPUTS = PROJECT["inputs"]
LOSSES = PROJECT["losses"]  # names of the losses of the document; empty: losses.py compares the first output
TARGETS = PROJECT["targets"]  # targets of the losses of the document
SHARED = PROJECT["shared"]  # modules of the network whose weights the losses share
FROZEN = PROJECT["frozen"]  # tensors of the network that are not trained

COMPARED = f"the losses ({', '.join(LOSSES)})" if LOSSES else f"the first output, '{PROJECT['outputs'][0]['name']}',"


class ObjectiveError(Exception):
    """data.py does not match the network and its losses; the message says what to change."""


class Objective(torch.nn.Module):
    """Forward pass of the network and its losses, which are always computed in full precision."""

    def __init__(
        self,
        network: torch.nn.Module | None = None,
        loss: torch.nn.Module | None = None,
        amp_dtype: torch.dtype | None = None,
    ) -> None:
        """`amp_dtype` is the type of mixed precision, or None."""
        super().__init__()
        self.network = model.NetworkClass() if network is None else network
        self.loss = losses.Losses() if loss is None else loss
        self.amp_dtype = amp_dtype
        for name, parameter in self.network.named_parameters():
            if name in FROZEN:
                parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> Objective:
        """Set the mode; frozen layers stay as they are in inference."""
        super().train(mode)
        for name in FROZEN:
            if "." in name:
                self.network.get_submodule(name.rpartition(".")[0]).eval()
        return self

    def forward(
        self, inputs: tuple[torch.Tensor, ...], targets: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The first output, and the losses by name."""
        check_fit(inputs, targets)
        prepared = [prepare(tensor, entry) for tensor, entry in zip(inputs, INPUTS, strict=True)]
        prepared = [t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in prepared]
        with torch.autocast(prepared[0].device.type, dtype=self.amp_dtype, enabled=self.amp_dtype is not None):
            if LOSSES:
                training: Any = self.network.forward_training
                result, read = training(*prepared)
            else:
                result, read = self.network(*prepared), ()
        output = (next(iter(result.values())) if isinstance(result, dict) else result).float()
        if LOSSES:
            taps = [tensor.float() if tensor.is_floating_point() else tensor for tensor in read]
            wanted = [prepare(target.float(), entry) for target, entry in zip(targets, TARGETS, strict=False)]
            values = self.loss(*taps, *wanted, *(getattr(self.network, name) for name in SHARED))
        else:
            values = self.loss(output, targets[0])
        named = values if isinstance(values, dict) else {LOSSES[0]: values}
        return output, {name: value.mean() for name, value in named.items()}


def place(
    pair: Sequence[torch.Tensor], device: torch.device
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """The inputs and targets of a batch of data.py, on the device."""
    first, second = (tensor.to(device, non_blocking=True) for tensor in pair)
    inputs, targets = data.sample(first, second)
    return inputs, targets if isinstance(targets, tuple) else (targets,)


def prepare(tensor: torch.Tensor, entry: dict[str, Any]) -> torch.Tensor:
    """Scale image values in 0..1 as an input layer takes them."""
    scale, shift = float(entry["scale"]), float(entry["shift"])
    return tensor if (scale, shift) == (1.0, 0.0) else tensor * scale + shift


def check_fit(inputs: tuple[torch.Tensor, ...], targets: tuple[torch.Tensor, ...]) -> None:
    """Raise ObjectiveError if data.py does not match the network and its losses."""
    names = [entry["name"] for entry in INPUTS]
    if len(inputs) != len(names):
        raise ObjectiveError(
            f"the network has {len(names)} inputs ({', '.join(names)}), but sample() in data.py returns {len(inputs)}; "
            "change it to return one tensor for each input"
        )
    if not TARGETS:
        return
    names = [entry["name"] for entry in TARGETS]
    if len(targets) != len(names):
        raise ObjectiveError(
            f"the losses have {len(names)} targets ({', '.join(names)}), but sample() in data.py returns {len(targets)}; "
            "change it to return a tuple with one tensor for each target"
        )
    for entry, target in zip(TARGETS, targets, strict=True):
        if target.dim() != len(entry["shape"]) + 1 or list(target.shape[1:2]) != entry["shape"][:1]:
            shape = " x ".join(map(str, ("N", *entry["shape"])))
            raise ObjectiveError(
                f"the target '{entry['name']}' is {shape} in the network, but "
                f"sample() in data.py returns {tuple(target.shape)}; change it to return a target of this shape"
            )
