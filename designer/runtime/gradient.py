"""Gradients of a tensor with respect to an input, computed by torch autograd over the plan of a run.

Always in FP32 and N x C x H x W, whatever the session uses. Analysis layers run in numpy, outside autograd: the gradient
passes to their first input as through an identity, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.operators.api import Role
from designer.runtime.api import Array
from designer.runtime.engines.torch_engine import TorchCompiled, TorchEngine
from designer.runtime.input_data import Extent, cropped, factors, padded_extent
from designer.runtime.network import evaluate, operator_of, role_of
from designer.runtime.plan import AnalysisStep, PartStep, Plan, make_plan
from designer.runtime.session import Session
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    import torch

Place = tuple[int | None, int, int]  # channel (None: all), y, x


@dataclass(frozen=True, slots=True)
class Gradient:
    """`array` is N x C x H x W at the size of the input data; `note` lists approximations."""

    array: Array
    note: str = ""


def gradient(session: Session, of: Source, layer: str, at: Place | None = None) -> Gradient:
    """The gradient of the sum of a tensor, or of its values at one position, with respect to the output of an input layer."""
    return _Backward(session, of, layer).go(at)


class _Backward:
    def __init__(self, session: Session, of: Source, layer: str) -> None:
        self.session = session
        self.of = session.source(of)
        self.layer = layer
        session.input_operator(layer)
        options = replace(session.options, precision="fp32", layout="nchw")
        self.engine = TorchEngine(session.inference, session.weights, options)
        self.plan: Plan = make_plan(session.inference, (self.of,))
        if layer not in self.plan.inputs:
            raise DiagnosticError.of(
                "no-path",
                tr("'{of}' does not depend on the input '{layer}'", of=of, layer=layer),
                layer=layer,
                remedy=tr("choose a layer downstream of the input"),
            )
        self.values: dict[Source, torch.Tensor] = {}
        self.cropped: set[Source] = set()
        self.passed: list[str] = []

    def go(self, at: Place | None) -> Gradient:
        import torch

        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            leaf = self._feed()
            for step in self.plan.steps:
                if isinstance(step, PartStep):
                    compiled = cast(TorchCompiled, self.engine.compile(step.part, step.wanted))
                    self.values.update(compiled.differentiable({feed: self.values[feed] for feed in step.part.feeds}))
                else:
                    self._analysis(step)
            value = self.values[self.plan.origin[self.of]]
            if role_of(self.session.inference, self.of.layer) is Role.OUTPUT:
                value = self._shown(self.plan.origin[self.of])
            target = self._place(value, at).sum()
            notes = []
            if not target.requires_grad:
                found = torch.zeros_like(leaf)
                notes.append(tr("no layer on the path has a gradient"))
            else:
                (made,) = torch.autograd.grad(target, leaf, allow_unused=True)
                found = torch.zeros_like(leaf) if made is None else made
        if self.passed:
            names = ", ".join(f"'{name}'" for name in self.passed)
            notes.append(f"passed through {names} as if they were identities")
        if self.session.options.precision != "fp32":
            notes.append(f"computed in fp32, the run is in {self.session.options.precision}")
        return Gradient(found.detach().cpu().numpy().astype(np.float32, copy=False), "; ".join(notes))

    def _feed(self) -> torch.Tensor:
        """Set the values of the inputs; returns the leaf of `layer` at the size of its data, padded within autograd."""
        import torch

        device = self.engine.device
        leaf: torch.Tensor | None = None
        for name in self.plan.inputs:
            _, array = self.session.fed_input(name)
            value = torch.from_numpy(np.require(array, requirements=("C", "W"))).to(device)
            if name == self.layer:
                operator = operator_of(self.session.inference, name)
                fed = self.session.fed(name)
                scale, shift = factors(operator) if fed.is_image else (1.0, 0.0)
                leaf = torch.from_numpy(fed.array * np.float32(scale) + np.float32(shift)).to(device)
                leaf.requires_grad_()
                (h, w), (full_h, full_w) = fed.extent, padded_extent(operator, fed.extent)
                value = leaf
                if (h, w) != (full_h, full_w):
                    rows = torch.arange(full_h, device=device).clamp(max=h - 1)
                    columns = torch.arange(full_w, device=device).clamp(max=w - 1)
                    value = leaf[:, :, rows][:, :, :, columns]
            self.values[Source(name)] = value
        assert leaf is not None
        return leaf

    def _analysis(self, step: AnalysisStep) -> None:
        """The layer's values, with the autograd graph of its first input."""
        import torch

        inference = self.session.inference
        reads = [self._shown(feed) if step.late else self.values[feed] for feed in step.feeds]
        arrays = [np.ascontiguousarray(value.detach().cpu().numpy()) for value in reads]
        for array in arrays:
            array.flags.writeable = False
        made = evaluate(inference, step.layer, arrays)
        if step.late:
            self.cropped.update(inference.tensors(step.layer))
        self.passed.append(step.layer)
        first = reads[0] if reads else None
        for source, array in made.items():
            value = torch.from_numpy(np.require(array, requirements=("C", "W")))
            if first is not None:
                value = value.to(first.device)
                if value.shape == first.shape:
                    value = value + (first - first.detach())
            self.values[source] = value

    def _shown(self, source: Source) -> torch.Tensor:
        """A tensor without the padding of the input."""
        value, padding = self.values[source], self.session.padding(source)
        if source in self.cropped or padding is None:
            return value
        original, padded = padding
        return _cut(value, original, padded)

    def _place(self, value: torch.Tensor, at: Place | None) -> torch.Tensor:
        if at is None:
            return value
        channel, y, x = at
        sizes = tuple(value.shape)
        inside = len(sizes) == 4 and 0 <= y < sizes[2] and 0 <= x < sizes[3]
        if not inside or (channel is not None and not 0 <= channel < sizes[1]):
            shape = dims_text(sizes)
            raise DiagnosticError.of(
                "outside",
                tr(
                    "'{of}' of {shape} has no value at channel {channel}, y {y}, x {x}",
                    of=self.of,
                    shape=shape,
                    channel=channel,
                    y=y,
                    x=x,
                ),
                layer=self.of.layer,
                remedy=tr("choose a pixel of the tensor; tensors without height and width support only the sum"),
            )
        return value[:, :, y, x] if channel is None else value[:, channel, y, x]


def _cut(value: torch.Tensor, original: Extent, padded: Extent) -> torch.Tensor:
    """As `input_data.crop`, for a torch tensor."""
    if value.dim() != 4:
        return value
    height, width = cropped(value.shape[2:], original, padded)
    return value[:, :, :height, :width]
