"""PyTorch with every operator's result rounded to a number format: what a network computes in half precision, on any processor.

Processors without instructions for a format take hundreds of times as long for it, or silently compute in float32. This engine
computes in float32 and rounds inputs, weights and each result, like a device that accumulates in float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.weights import Weights
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.naming import free_identifier
from designer.operators.torch_data import TorchMethod, TorchSource
from designer.operators.torch_program import (
    Local,
    Program,
    TorchStep,
    build_program,
    locals_of,
    with_locals,
    with_releases,
)
from designer.runtime.api import Part, RunOptions, Tensor
from designer.runtime.engine_api import Device, EngineDescriptor, requires
from designer.runtime.engines.pytorch import DROP_NAN, convolution, matrix_product
from designer.runtime.engines.torch_engine import TorchCompiled, TorchEngine, bound_module
from designer.runtime.engines.torch_timing import TorchTimer
from designer.runtime.machine import threads
from designer.runtime.number_formats import FLOAT32, FORMATS, OF_PRECISION, NumberFormat, format_of
from designer.texts import mark

if TYPE_CHECKING:
    import torch

    from designer.runtime.rounding import Observe


class EmulatedEngine(TorchEngine):
    """torch in FP32 on the CPU, with results rounded as `options.precision` and `options.formats` say."""

    def __init__(self, inference: Inference, weights: Weights, options: RunOptions) -> None:
        super().__init__(inference, weights, options)
        self._formats = dict(options.formats)
        self._otherwise = OF_PRECISION[options.precision]

    def format_of(self, layer: str) -> NumberFormat:
        return format_of(layer, self._formats, self._otherwise)

    def compile(self, part: Part, wanted: Sequence[Source]) -> EmulatedCompiled:
        program = with_casts(build_program(self.inference, part.layers, part.feeds, wanted), self.format_of)
        module = bound_module(program, self.weights, self.options.agreed)
        _round_weights(module, program, self.format_of)
        return EmulatedCompiled(self, module, program, part)


class EmulatedCompiled(TorchCompiled):
    """A part whose results are rounded. `observe`, if set, sees every result before and after."""

    def __init__(self, engine: EmulatedEngine, module: torch.nn.Module, program: Program, part: Part) -> None:
        import torch

        super().__init__(module, program, part, engine.device, torch.float32, False, threads(engine.options))
        self.observe: Observe | None = None
        self._copies = any(isinstance(attribute.content, TorchSource) for attribute in program.attributes)
        self._known: dict[str, NumberFormat] = {layer: engine.format_of(layer) for layer in part.layers}

    def mode(self) -> AbstractContextManager[Any]:
        """No inference mode, which would pass compound operators on as a whole: their inner results would not be rounded."""
        import torch

        return torch.no_grad()

    def _to_torch(self, array: Tensor) -> torch.Tensor:
        """A tensor on the memory of the array: parts are single layers here, so copies would cost as much as the layers.

        Only the code of custom layers could change its inputs.
        """
        import torch

        if self._copies:
            return super()._to_torch(array)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # results are read-only
            tensor = torch.from_numpy(np.require(array, requirements=["C"]))
        return tensor.to(torch.float32) if tensor.is_floating_point() else tensor

    def interpret(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        from designer.runtime.rounding import Rounding

        rounding = Rounding(lambda: self.interpreter.layer or "", self._known.__getitem__, self.observe)
        with torch.inference_mode(False), torch.no_grad():
            values = [value.clone() if value.is_inference() else value for value in values]  # those of a timer
            with rounding:
                return super().interpret(values)


def with_casts(program: Program, format_of: Callable[[str], NumberFormat]) -> Program:
    """The program with a step wherever a tensor is converted: read by a layer of another format, or made by one with integers.

    Such a layer computes in FP32 until its result leaves it.
    """
    formats = dict.fromkeys(program.inputs.values(), FLOAT32)
    owners = {step.target: step.layer for step in program.steps}
    leaving = {*program.outputs.values()}.union(
        local for step in program.steps for local in locals_of(step.value) if owners.get(local) != step.layer
    )
    taken = {*formats, *owners}
    made: dict[str, str] = {}  # the rounded results of layers with integers
    casts: dict[tuple[str, str], str] = {}
    steps: list[TorchStep] = []

    def convert(layer: str, local: str, to: NumberFormat) -> str:
        target = free_identifier(f"{local}_{to.name}", taken)
        steps.append(TorchStep(layer, target, TorchMethod("clone", Local(made.get(local, local)))))
        return target

    for step in program.steps:
        own = format_of(step.layer)
        names: dict[str, str] = {}
        for local in locals_of(step.value):
            if owners.get(local) == step.layer:
                continue
            if own is FLOAT32 or formats[local] is own:
                names[local] = made.get(local, local)
                continue
            if (local, own.name) not in casts:
                casts[local, own.name] = convert(step.layer, local, own)
            names[local] = casts[local, own.name]
        steps.append(replace(step, value=with_locals(step.value, names)))
        formats[step.target] = own
        if own.is_integer and step.target in leaving:
            made[step.target] = convert(step.layer, step.target, own)
    outputs = {source: made.get(local, local) for source, local in program.outputs.items()}
    return replace(program, steps=with_releases(steps, set(outputs.values())), outputs=outputs)


def _round_weights(module: torch.nn.Module, program: Program, format_of: Callable[[str], NumberFormat]) -> None:
    """Round the tensors of a module. With integers those of one dimension stay: runtimes keep biases in INT32, others in float."""
    import torch

    from designer.runtime.rounding import rounded

    owners = {attribute.name: attribute.layer for attribute in program.attributes}
    transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    with torch.no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if tensor.dtype != torch.float32:
                continue
            own = format_of(owners[name.partition(".")[0]])
            if not own.is_integer:
                tensor.copy_(rounded(tensor, own))
            elif tensor.dim() > 1:
                owner = module.get_submodule(name.rpartition(".")[0])
                tensor.copy_(rounded(tensor, own, axis=1 if isinstance(owner, transposed) else 0))


EMULATED = EngineDescriptor(
    name="emulated",
    title=mark("Emulated Precision"),
    package="torch",
    engine=EmulatedEngine,
    step_timer=TorchTimer,
    kernels={"matrix product": matrix_product, "convolution": convolution},
    available=requires("torch", remedy="pip install torch"),
    devices=(Device("cpu", ("fp32", "fp16", "bf16")),),
    formats=tuple(FORMATS),
    skips_nan=DROP_NAN,
)
