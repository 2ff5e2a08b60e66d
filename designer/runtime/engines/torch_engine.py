"""Runs parts of a network with torch by interpreting the program that torch_program.py builds from their torch data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.torch_data import (
    TorchCall,
    TorchExpr,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
    TorchSource,
)
from designer.operators.torch_program import Local, Program, Submodule, TensorAttribute, build_program
from designer.runtime.api import Compiled, Part, RunOptions
from designer.runtime.engine_api import Engine
from designer.runtime.engines.custom_module import make_custom
from designer.runtime.engines.onnx_model import weight
from designer.runtime.engines.torch_memory import keep_freed_memory
from designer.runtime.interrupt import current
from designer.runtime.machine import threads
from designer.texts import tr

if TYPE_CHECKING:
    import torch

    from designer.runtime.api import Tensor

Values = list[Any]  # values of the locals during a run, by slot
Evaluate = Callable[[Values], Any]


class TorchEngine(Engine):
    """torch in inference mode, on the CPU or a CUDA device. The layout "nhwc" is torch's channels_last memory format."""

    def __init__(self, inference: Inference, weights: Weights, options: RunOptions) -> None:
        super().__init__(inference, weights, options)
        self.device = _device(options.device)
        if self.device.type == "cpu":
            keep_freed_memory()

    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        import torch

        program = build_program(self.inference, part.layers, part.feeds, wanted)
        module = bound_module(program, self.weights, self.options.agreed)
        dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[self.options.precision]
        channels_last = self.options.layout == "nhwc"
        module.to(device=self.device, dtype=dtype)
        if channels_last:
            to_channels_last(module)
        return TorchCompiled(module, program, part, self.device, dtype, channels_last, threads(self.options))


class TorchCompiled:
    """A compiled part. Not thread-safe, because torch's number of threads applies to the process."""

    def __init__(
        self,
        module: torch.nn.Module,
        program: Program,
        part: Part,
        device: torch.device,
        dtype: torch.dtype,
        channels_last: bool,
        count: int,
    ) -> None:
        self.module = module
        self.interpreter = Interpreter(module, program)
        self._part = part
        self._inputs = tuple(program.inputs)
        self._outputs = tuple(program.outputs)
        self._device = device
        self.dtype = dtype
        self._channels_last = channels_last
        self._threads = count

    def run(self, feeds: Mapping[Source, Tensor]) -> dict[Source, Tensor]:
        import torch

        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        # TF32 would round the mantissa of convolutions to 10 bits.
        cuda = self._device.type == "cuda"  # switching takes as long as a small layer
        exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False) if cuda else nullcontext()
        with self.mode(), exact:
            try:
                values = [self._to_torch(feeds[source]) for source in self._inputs]
                results = self.interpret(values)
                made = [_to_numpy(result) for result in results]
            except RuntimeError as error:  # torch's errors, including out of memory
                raise self._failed(error) from error
        return dict(zip(self._outputs, made, strict=True))

    def run_torch(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the part on tensors that are already on the device, in the order of the part's feeds; for timing."""
        with self.mode():
            return self.interpret(list(values))

    def mode(self) -> AbstractContextManager[Any]:
        """The mode of torch in which the part runs."""
        import torch

        return torch.inference_mode()

    def interpret(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors that the part computes from `values`; engines that compute otherwise override it."""
        return self.interpreter(values)

    def differentiable(self, feeds: Mapping[Source, torch.Tensor]) -> dict[Source, torch.Tensor]:
        """Run the part on tensors that are already on the device, with autograd if it is enabled."""
        try:
            results = self.interpret([feeds[source] for source in self._inputs])
        except RuntimeError as error:
            raise self._failed(error) from error
        return dict(zip(self._outputs, results, strict=True))

    def _to_torch(self, array: Tensor) -> torch.Tensor:
        import torch

        if self._channels_last and array.ndim == 4:
            # A fresh N x H x W x C copy, seen as N x C x H x W, is what torch calls channels_last.
            copy = np.ascontiguousarray(array.transpose(0, 2, 3, 1))
            if not copy.flags.writeable:
                copy = copy.copy()
            tensor = torch.from_numpy(copy).permute(0, 3, 1, 2)
        else:
            tensor = torch.from_numpy(np.require(array, requirements=("C", "W")))
        dtype = self.dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.to(device=self._device, dtype=dtype)

    def _failed(self, error: RuntimeError) -> DiagnosticError:
        layer = self.interpreter.layer or (self._part.layers[0] if self._part.layers else None)
        reason = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        memory = "memory" in reason
        return DiagnosticError.of(
            "out-of-memory" if memory else "engine-failed",
            tr("torch could not run the layer '{layer}': {reason}", layer=layer, reason=reason),
            layer=layer,
            remedy=tr("use a smaller image or a smaller network")
            if memory
            else tr("run the network with ONNX Runtime"),
        )


class Interpreter:
    """Runs a program's steps on a module from `build_module`. Values are dropped as soon as nothing reads them."""

    def __init__(self, module: torch.nn.Module, program: Program) -> None:
        slots: dict[str, int] = {}
        for name in (*program.inputs.values(), *(step.target for step in program.steps)):
            slots.setdefault(name, len(slots))
        self.count = len(slots)
        self.steps = [
            (
                slots[step.target],
                _evaluator(step.value, module, slots),
                tuple(slots[name] for name in step.release),
                step.layer,
            )
            for step in program.steps
        ]
        self._outputs = [slots[name] for name in program.outputs.values()]
        self.layer: str | None = None  # the running layer; after an error the one that failed

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        values: Values = [*inputs, *[None] * (self.count - len(inputs))]
        interrupt = current()
        for target, evaluate, release, layer in self.steps:
            interrupt.check()
            self.layer = layer
            values[target] = evaluate(values)
            for slot in release:
                values[slot] = None
        self.layer = None
        return [values[slot] for slot in self._outputs]


def build_module(program: Program, agreed: Collection[str] = ()) -> torch.nn.Module:
    """A module with the program's attributes and torch's initial values, without `forward`.

    `agreed` are the digests of the sources that are allowed to run, see custom_module.py.
    """
    import torch

    module = torch.nn.Module()
    for attribute in program.attributes:
        content = attribute.content
        if isinstance(content, TorchParameter):
            tensor = _initial(content)
            if content.trainable:
                module.register_parameter(attribute.name, torch.nn.Parameter(tensor))
            else:
                module.register_buffer(attribute.name, tensor, persistent=content.persistent)
        elif isinstance(content, TorchSource):
            module.add_module(attribute.name, make_custom(attribute, content, program, agreed))
        elif isinstance(content, TorchModule):
            module.add_module(attribute.name, _module(content))
        else:
            module.add_module(attribute.name, torch.nn.ModuleDict({k: _module(m) for k, m in content.items()}))
    return module


def bound_module(program: Program, weights: Weights, agreed: Collection[str] = ()) -> torch.nn.Module:
    """The module of a program with its weights, for inference. Raises DiagnosticError for weights that are missing."""
    module = build_module(program, agreed)
    _bind(module, program, weights)
    return module.eval().requires_grad_(False)


def resolve(path: str) -> Any:
    """The object of a path such as "torch.nn.Conv2d". Only public names in `torch` are looked up."""
    import torch

    first, *rest = path.split(".")
    if first != "torch" or not rest or any(not part.isidentifier() or part.startswith("_") for part in rest):
        raise DiagnosticError.of(
            "bad-torch-data",
            tr("'{path}' is not a public name in torch", path=path),
            remedy=tr("correct the operator"),
        )
    found: Any = torch
    for part in rest:
        try:
            found = getattr(found, part)
        except AttributeError:
            raise DiagnosticError.of(
                "bad-torch-data",
                tr("torch {version} has no '{path}'", version=torch.__version__, path=path),
                remedy=tr("install a newer torch, or correct the operator"),
            ) from None
    return found


def _module(data: TorchModule) -> torch.nn.Module:
    made: torch.nn.Module = resolve(data.path)(**{key: _literal(value) for key, value in data.kwargs.items()})
    return made


def _literal(value: Any) -> Any:
    if isinstance(value, TorchName):
        return resolve(value.path)
    if isinstance(value, tuple | list):
        return type(value)(_literal(item) for item in value)
    return value


def _initial(data: TorchParameter) -> torch.Tensor:
    import torch

    if data.uniform:
        return torch.empty(data.shape).uniform_(-data.uniform, data.uniform)
    if data.values is None:
        return torch.zeros(data.shape)
    tensor = torch.tensor(data.values, dtype=getattr(torch, data.dtype))
    return tensor.expand(data.shape).clone() if tensor.dim() == 0 else tensor.reshape(data.shape)


def _bind(module: torch.nn.Module, program: Program, weights: Weights) -> None:
    import torch

    state = module.state_dict(keep_vars=True)
    for bound in program.weights:
        array = weight(weights, WeightKey(bound.layer, bound.tensor), bound.weight.shape)
        target = state.get(bound.key)
        if target is None or tuple(target.shape) != tuple(bound.weight.shape):
            raise DiagnosticError.of(
                "bad-torch-data",
                tr(
                    "the torch module of '{layer}' has no tensor '{key}' of the declared shape",
                    layer=bound.layer,
                    key=bound.key,
                ),
                layer=bound.layer,
                remedy=tr("correct the operator's weights() or torch()"),
            )
        with torch.no_grad():
            target.copy_(torch.from_numpy(np.array(array, dtype=np.float32)))


def to_channels_last(module: torch.nn.Module) -> None:
    """Convert filters to channels_last; `Module.to` would reject tensors of rank 3."""
    import torch

    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.dim() == 4:
            tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)


def _device(name: str) -> torch.device:
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise DiagnosticError.of(
            "unknown-device",
            tr("'{name}' is not a device", name=name),
            remedy=tr("choose cpu, cuda or cuda:<number>"),
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise DiagnosticError.of(
            "device-unavailable",
            tr("torch does not find the device '{name}'", name=name),
            remedy=tr("choose the device cpu"),
        )
    return device


def _to_numpy(tensor: torch.Tensor) -> Tensor:
    import torch

    if tensor.is_floating_point() and tensor.dtype != torch.float32:
        tensor = tensor.float()
    array: Tensor = tensor.cpu().numpy()
    return array


def _evaluator(value: Any, module: torch.nn.Module, slots: Mapping[str, int]) -> Evaluate:
    """A function from the locals' values to the value of an expression."""
    if isinstance(value, Local):
        slot = slots[value.name]
        return lambda values: values[slot]
    if isinstance(value, TensorAttribute):
        name = value.attribute
        return lambda values: getattr(module, name)
    if isinstance(value, Submodule):
        child = getattr(module, value.attribute)
        return _call(child[value.key] if value.key else child, value.args, {}, module, slots)
    if isinstance(value, TorchCall):
        return _call(resolve(value.path), value.args, value.kwargs, module, slots)
    if isinstance(value, TorchMethod):
        return _method(value, module, slots)
    if isinstance(value, TorchItem):
        inner, index = _evaluator(value.value, module, slots), value.index
        return lambda values: inner(values)[index]
    if isinstance(value, TorchName):
        found = resolve(value.path)
        return lambda values: found
    if isinstance(value, tuple | list) and _has_expression(value):
        items = [_evaluator(item, module, slots) for item in value]
        return lambda values: [item(values) for item in items]
    literal = _literal(value)
    return lambda values: literal


def _call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    module: torch.nn.Module,
    slots: Mapping[str, int],
) -> Evaluate:
    if len(args) == 1 and not kwargs:  # the most frequent case
        only = _evaluator(args[0], module, slots)
        return lambda values: function(only(values))
    positional = [_evaluator(arg, module, slots) for arg in args]
    if not any(_has_expression(item) for item in kwargs.values()):
        constant = {key: _literal(item) for key, item in kwargs.items()}
        return lambda values: function(*[arg(values) for arg in positional], **constant)
    named = {key: _evaluator(item, module, slots) for key, item in kwargs.items()}
    return lambda values: function(
        *[arg(values) for arg in positional], **{key: item(values) for key, item in named.items()}
    )


def _method(value: TorchMethod, module: torch.nn.Module, slots: Mapping[str, int]) -> Evaluate:
    name = value.method
    if not name.isidentifier() or name.startswith("_"):
        raise DiagnosticError.of(
            "bad-torch-data",
            tr("'{name}' is not a public method of a tensor", name=name),
            remedy=tr("correct the operator"),
        )
    call = _call(lambda target, *args, **kw: getattr(target, name)(*args, **kw),
                 (value.target, *value.args), value.kwargs, module, slots)  # fmt: skip
    return call


def _has_expression(value: Any) -> bool:
    """Whether a value contains an expression, which is known only at run time."""
    if isinstance(value, tuple | list):
        return any(_has_expression(item) for item in value)
    return isinstance(value, TorchExpr)
