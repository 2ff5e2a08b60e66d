"""One operator as a network of its own: its program in torch, its ONNX model, and random inputs for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import BATCH, DataType, TensorType
from designer.operators.api import Activation, Example, Operator, Role, TorchSource
from designer.operators.code_text import agreement_text, digest
from designer.operators.registry import Read, Registry, load
from designer.operators.torch_program import Program, build_program
from designer.runtime.api import Part
from designer.runtime.engines.torch_engine import Interpreter, build_module

LAYER = "it"
REGISTRY = load(entry_points=False)
TORCH_TYPES = {
    DataType.FLOAT32: torch.float32,
    DataType.FLOAT16: torch.float16,
    DataType.BFLOAT16: torch.bfloat16,
    DataType.FLOAT64: torch.float64,
    DataType.INT64: torch.int64,
    DataType.INT32: torch.int32,
    DataType.INT16: torch.int16,
    DataType.INT8: torch.int8,
    DataType.UINT64: torch.uint64,
    DataType.UINT32: torch.uint32,
    DataType.UINT16: torch.uint16,
    DataType.UINT8: torch.uint8,
    DataType.BOOL: torch.bool,
}


@dataclass(frozen=True)
class Case:
    """An operator with parameters and input types; an activation under test sits on an identity layer."""

    operator: Operator
    types: tuple[TensorType, ...]
    activation: Activation | None = None
    name: str = ""

    @property
    def subject(self) -> Operator:
        return self.activation if self.activation is not None else self.operator


def cases_of(cls: type[Operator]) -> list[Case]:
    """The examples of a declaration."""
    found = []
    for number, example in enumerate(cls.examples):
        made = cls(**example.params)
        name = f"{cls.type}-{number}" + (f"-{example.name.replace(' ', '_')}" if example.name else "")
        found.append(case_of(made, example.inputs, name))
    return found


def case_of(made: Operator, types: Sequence[TensorType], name: str = "") -> Case:
    if isinstance(made, Activation):
        return Case(REGISTRY.operators["identity"](), tuple(types), made, name)
    return Case(made, tuple(types), None, name)


def example(case: Case) -> Example:
    return Example(case.types, case.subject.values())


ALL = [case for cls in (*REGISTRY, *REGISTRY.activations.values()) for case in cases_of(cls)]
COMPUTE = [case for case in ALL if case.subject.role in (Role.COMPUTE, Role.OUTPUT)]
TORCH = [case for case in ALL if case.subject.role in (Role.COMPUTE, Role.OUTPUT, Role.LOSS)]


@cache
def _feed(kind: TensorType) -> Read:
    """An input layer of any type; its class takes longer to make than a network to infer."""

    class Feed(Operator, type="test_feed", role=Role.INPUT):
        inputs = ()

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            return kind

    return Read(Feed(), None)


@dataclass
class Feeds:
    """The registry plus input layers of any type."""

    registry: Registry
    types: dict[str, TensorType] = field(default_factory=dict)

    def read(self, layer: Layer) -> Read:
        kind = self.types.get(layer.name)
        return self.registry.read(layer) if kind is None else _feed(kind)


@dataclass(frozen=True)
class Network:
    inference: Inference
    feeds: tuple[Source, ...]
    outputs: tuple[Source, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        return self.inference.states[LAYER].outputs or ()

    def program(self) -> Program:
        return build_program(self.inference, [LAYER], self.feeds, self.outputs)

    def onnx(self, weights: Weights) -> Any:
        from designer.runtime.engines.onnx_model import build_model

        return build_model(self.inference, Part((LAYER,), self.feeds), self.outputs, weights)


def network(case: Case) -> Network:
    """Feeds, and one layer that reads them."""
    lookup = Feeds(REGISTRY, {f"in_{i}": kind for i, kind in enumerate(case.types)})
    spec = None
    if case.activation is not None:
        spec = ActivationSpec(case.activation.type, case.activation.texts())
    elif case.operator.default_activation:
        spec = ActivationSpec(case.operator.default_activation)
    feeds = tuple(Source(name) for name in lookup.types)
    layer = Layer(LAYER, case.operator.type, inputs=feeds, params=case.operator.texts(), activation=spec)
    inference = Inference(Graph([*(Layer(feed.layer, "test_feed") for feed in feeds), layer]), lookup)
    found = inference.diagnostics()
    assert not found, found
    ports = [port.name for port in case.operator.output_ports()]
    return Network(inference, feeds, tuple(Source(LAYER, p if i else "") for i, p in enumerate(ports)))


class Runner(torch.nn.Module):
    """The program as a module whose state dict has the program's keys."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        own = [a.content for a in program.attributes if isinstance(a.content, TorchSource)]
        agreed = [digest(agreement_text(c.text, c.path, c.positional, c.kwargs)) for c in own]  # our own examples
        self.inner = build_module(program, agreed)
        self.program = program

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return Interpreter(self.inner, self.program)(inputs)


def runner(case: Case, device: str = "cpu", *, net: Network | None = None) -> Runner:
    with torch.device(device):
        return Runner((net or network(case)).program()).eval()


def meta(types: Sequence[TensorType], batch: int) -> list[torch.Tensor]:
    """Tensors without memory."""
    return [torch.empty(t.concrete(batch), dtype=TORCH_TYPES[t.dtype], device="meta") for t in types]


def random_inputs(types: Sequence[TensorType], batch: int, seed: int = 0) -> list[torch.Tensor]:
    """Normal numbers; whole numbers are 0 or 1, so that they are valid as indices."""
    make = torch.Generator().manual_seed(seed)
    found = []
    for kind in types:
        shape = kind.concrete(batch)
        if kind.dtype.is_float:
            found.append(torch.randn(shape, generator=make, dtype=torch.float32).to(TORCH_TYPES[kind.dtype]))
        else:
            found.append(torch.randint(0, 2, shape, generator=make).to(TORCH_TYPES[kind.dtype]))
    return found


def randomise(module: Runner, seed: int = 0) -> None:
    """Every tensor gets random values; running variances stay positive."""
    make = torch.Generator().manual_seed(seed)
    for name, value in module.inner.state_dict().items():
        if value.is_floating_point():
            fresh = torch.randn(value.shape, generator=make) * 0.5
            value.copy_(fresh.abs() + 0.5 if name.endswith("var") else fresh)


def weights_of(module: Runner) -> Weights:
    state = module.inner.state_dict()
    return Weights(
        {
            WeightKey(bound.layer, bound.tensor): np.ascontiguousarray(state[bound.key].numpy())
            for bound in module.program.weights
        }
    )


def dtype_of(tensor: torch.Tensor) -> DataType:
    return next(ours for ours, theirs in TORCH_TYPES.items() if theirs == tensor.dtype)


def assert_onnx_agrees(case: Case, *, examples: bool = True) -> None:
    """ONNX's own check passes and ONNX Runtime gives torch's result, at two batch sizes."""
    import onnx
    import onnxruntime

    net = network(case)
    module = runner(case, net=net)
    randomise(module)
    model = net.onnx(weights_of(module))
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        inputs = random_inputs(case.types, batch, seed=batch)
        with torch.no_grad():
            expected = [result.detach() for result in module(*inputs)]
        feeds = {f"in_{i}": value.numpy() for i, value in enumerate(inputs)}
        got = session.run(None, feeds)
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected, strict=True):
            assert ours.dtype == theirs.numpy().dtype
            assert not examples or np.isfinite(theirs.numpy()).mean() > 0.2, "the example does not compute numbers"
            finite = np.abs(theirs[theirs.isfinite()].numpy().astype(float))
            rounding = max(2e-5, 1e-6 * finite.max(initial=0.0))  # of what a difference of large values leaves
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-5, atol=rounding)


def made(name: str, **params: Any) -> Operator:
    """An operator with these parameters."""
    return REGISTRY.operators[name](**params)


def result(operator: Operator, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """What torch gives for these inputs."""
    types = [TensorType((BATCH, *x.shape[1:]) if x.dim() else (), dtype_of(x)) for x in inputs]
    with torch.no_grad():
        return [value.detach() for value in runner(case_of(operator, types))(*inputs)]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Numbers from 0 to 1."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))
