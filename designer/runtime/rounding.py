"""Rounding of torch tensors to number formats, of single tensors and of every result of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from designer.runtime.number_formats import FLOAT32, NumberFormat

Observe = Callable[[str, str, tuple[Any, ...], torch.Tensor, torch.Tensor], None]
"""Called with the layer, the operator of torch, its arguments, and a result before and after rounding."""

_FACTORIES = frozenset({"empty", "empty_like", "new_empty", "empty_strided"})  # their values are not results


def rounded(tensor: torch.Tensor, target: NumberFormat, axis: int | None = None) -> torch.Tensor:
    """`tensor` (float32) with every value rounded to `target`, as float32.

    Integers span the range of the tensor and 0, which they represent exactly, as results do in the QDQ form of ONNX; with `axis`
    they are symmetric around 0 with a scale for each index of it, as weights are.
    """
    if target is FLOAT32:
        return tensor
    if not target.is_integer:
        return tensor.to(getattr(torch, target.name)).to(torch.float32)
    if not tensor.numel():
        return tensor
    tiny = torch.finfo(torch.float32).tiny
    found: torch.Tensor
    if axis is None:
        steps = 2**target.bits - 1
        least, most = torch.aminmax(tensor)
        least = least.clamp_max(0)
        scale = (most.clamp_min(0) - least).div_(steps).clamp_min_(tiny)
        lowest = (least / scale).round_()
        found = (tensor / scale).round_().clamp_(lowest, lowest + steps).mul_(scale)
        return found
    magnitude = tensor.abs().amax([other for other in range(tensor.dim()) if other != axis], keepdim=True)
    scale = magnitude.clamp_min_(tiny) / (2 ** (target.bits - 1) - 1)
    found = (tensor / scale).round_().mul_(scale)
    return found


class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds float32 results of torch to the format of the layer that runs: every one to a floating-point format, copies to integers.

    Runtimes compute a layer with integers as a whole and round what leaves it; the program copies that.
    """

    def __init__(
        self, layer: Callable[[], str], formats: Callable[[str], NumberFormat], observe: Observe | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._layer = layer
        self._formats = formats
        self._observe = observe

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, so torch need not import its compiler, for a second, to switch that off."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if func.is_view or name in _FACTORIES:
            return made
        layer = self._layer()
        target = self._formats(layer)
        if target.is_integer and not (name == "clone" and not (kwargs or {}).get("memory_format")):
            target = FLOAT32
        if target is FLOAT32 and self._observe is None:
            return made
        if isinstance(made, torch.Tensor):
            return self._rounded(layer, name, args, made, target)
        if isinstance(made, tuple | list):
            return type(made)(
                self._rounded(layer, name, args, item, target) if isinstance(item, torch.Tensor) else item
                for item in made
            )
        return made

    def _rounded(
        self, layer: str, name: str, args: tuple[Any, ...], made: torch.Tensor, target: NumberFormat
    ) -> torch.Tensor:
        if made.dtype != torch.float32:
            return made
        found = rounded(made, target)
        if self._observe is not None:
            self._observe(layer, name, args, made, found)
        return found
