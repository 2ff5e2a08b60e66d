"""How torch evaluates the expressions of a program, which devices it takes, and what is timed on a GPU, which the test plays."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runtime_networks import chain, pixels

from designer.files.weights import WeightKey, Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.torch_data import TorchCall, TorchItem, TorchMethod, TorchName
from designer.operators.torch_program import Local, Submodule, TensorAttribute
from designer.runtime.api import Part, RunOptions

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from designer.runtime.engines import torch_engine, torch_timing

A, B = Local("a"), Local("b")
SLOTS = {"b": 0, "a": 1}


def said(act: Any) -> tuple[str, str, str, str | None]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.remedy, found.layer


# --- expressions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "given"),
    [
        ((A,), {}, (("of a",), {})),
        ((3,), {}, ((3,), {})),
        ((A, B), {}, (("of a", "of b"), {})),
        ((), {}, ((), {})),
        ((A,), {"dim": 1}, (("of a",), {"dim": 1})),
        ((A, 2), {"dim": (1, 2)}, (("of a", 2), {"dim": (1, 2)})),
        ((), {"other": B}, ((), {"other": "of b"})),
        ((A,), {"other": B, "dim": 1}, (("of a",), {"other": "of b", "dim": 1})),
        (([A, B],), {}, ((["of a", "of b"],), {})),
        (((A, [B, 3]), 4), {}, ((["of a", ["of b", 3]], 4), {})),
        ((), {"parts": [A, 2]}, ((), {"parts": ["of a", 2]})),
        ((1,), {"parts": [(1, 2), (3, [B])]}, ((1,), {"parts": [(1, 2), [3, ["of b"]]]})),
        ((1,), {"parts": [(1, 2), (3, 4)], "dim": 0}, ((1,), {"parts": [(1, 2), (3, 4)], "dim": 0})),
    ],
)
def test_arguments_of_a_call_are_evaluated_wherever_they_are(args: Any, kwargs: Any, given: Any) -> None:
    call = torch_engine._call(lambda *a, **k: (a, k), args, kwargs, torch.nn.Module(), SLOTS)
    assert call(["of b", "of a"]) == given
    assert call(["of b", "of a"]) == given


def test_every_kind_of_expression_is_evaluated() -> None:
    module = torch.nn.Module()
    module.double = lambda x: x * 2
    module.register_buffer("table", torch.arange(3.0))
    module.parts = torch.nn.ModuleDict({"one": torch.nn.Flatten(0), "two": torch.nn.Softmax(0)})
    values = [torch.tensor([5.0, 1.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])]
    cases = [
        (A, values[1]),
        (TensorAttribute("table"), module.table),
        (Submodule("double", "", (B,)), values[0] * 2),
        (Submodule("parts", "one", (A,)), torch.tensor([1.0, 2.0, 3.0, 4.0])),
        (Submodule("parts", "two", (B,)), torch.softmax(values[0], 0)),
        (TorchCall("torch.sub", (B, A), {"alpha": 2}), values[0] - 2 * values[1]),
        (TorchMethod("sum", A, (), {"dim": 1, "keepdim": True}), torch.tensor([[3.0], [7.0]])),
        (TorchMethod("add", A, (B,)), values[0] + values[1]),
        (TorchItem(A, (slice(None), 1)), torch.tensor([2.0, 4.0])),
        (TorchItem(TorchCall("torch.sort", (B,)), 1), torch.tensor([1, 0])),
        (TorchCall("torch.cat", ([B, TensorAttribute("table")],)), torch.tensor([5.0, 1.0, 0.0, 1.0, 2.0])),
    ]
    for expr, expected in cases:
        made = torch_engine._evaluator(expr, module, SLOTS)(values)
        assert torch.equal(made, expected), expr
    assert torch_engine._evaluator(TorchName("torch.float64"), module, SLOTS)(values) is torch.float64
    assert torch_engine._evaluator((1, "a", None), module, SLOTS)(values) == (1, "a", None)
    module.table = torch.ones(1)  # as after `with_weights`
    assert torch_engine._evaluator(TensorAttribute("table"), module, SLOTS)(values) is module.table
    for name in ("__class__", "_to", "two words"):
        act = lambda name=name: torch_engine._evaluator(TorchMethod(name, A), module, SLOTS)  # noqa: E731
        assert said(act) == (
            "bad-torch-data",
            f"'{name}' is not a public method of a tensor",
            "correct the operator",
            None,
        )


# --- devices and errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2])
def test_devices_that_exist(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert torch_engine._device("cpu") == torch.device("cpu")
    for name, number in (("cuda", 0), ("cuda:0", 0), ("cuda:1", 1), ("cuda:2", 2)):
        if number < count:
            assert torch_engine._device(name) == torch.device(name)
        else:
            assert said(lambda name=name: torch_engine._device(name)) == (
                "device-unavailable", f"torch does not find the device '{name}'", "choose the device cpu", None
            )  # fmt: skip
    for name in ("nothing", "", "meta", "mps", "cuda:x"):
        assert said(lambda name=name: torch_engine._device(name)) == (
            "unknown-device", f"'{name}' is not a device", "choose cpu, cuda or cuda:<number>", None
        )  # fmt: skip


def made_part(registry: Any, *layers: Any, options: RunOptions, size: str = "6x4x3") -> tuple[Any, Any, Part]:
    """The engine, its compiled part, and the part of a chain of layers."""
    graph = chain(*layers, size=size)
    inference = Inference(graph, registry)
    weights = fill_missing(Weights({}), required_weights(inference), 3)
    engine = torch_engine.TorchEngine(inference, weights, options)
    part = Part(tuple(name for name, *_ in layers), (Source("image"),))
    return engine, engine.compile(part, [Source(layers[-1][0])]), part


CONV = ("conv", "convolution", {"features": 4, "kernel": "3x3"})
RELU = ("relu", "unary", {"function": "abs"})


def test_an_error_of_torch_with_autograd_names_the_layer(runtime_registry: Any) -> None:
    _, compiled, _ = made_part(runtime_registry, CONV, options=RunOptions("torch", threads=1))
    feeds = {Source("image"): torch.zeros(1, 5, 4, 6)}
    code, message, remedy, layer = said(lambda: compiled.differentiable(feeds))
    assert (code, remedy, layer) == ("engine-failed", "run the network with ONNX Runtime", "conv")
    assert message.startswith("torch could not run the layer 'conv': Given groups=1")
    result = compiled.differentiable({Source("image"): torch.ones(2, 3, 4, 6, requires_grad=True)})
    assert list(result) == [Source("conv")]
    assert result[Source("conv")].requires_grad
    assert said(lambda: compiled.run({Source("image"): np.zeros((1, 5, 4, 6), np.float32)}))[:2] == (code, message)


def test_a_module_without_a_declared_tensor_is_a_fault_of_the_operator() -> None:
    bound = SimpleNamespace(layer="conv", tensor="kernel", key="conv.weight", weight=SimpleNamespace(shape=(2, 3)))
    program = SimpleNamespace(weights=[bound])
    weights = Weights({WeightKey("conv", "kernel"): np.full((2, 3), 7, np.float32)})
    expected = (
        "bad-torch-data", "the torch module of 'conv' has no tensor 'conv.weight' of the declared shape",
        "correct the operator's weights() or torch()", "conv",
    )  # fmt: skip
    for shape in (None, (3, 2), (6,), (1, 2, 3)):
        module = torch.nn.Module()
        module.conv = torch.nn.Module()
        if shape is not None:
            module.conv.register_parameter("weight", torch.nn.Parameter(torch.zeros(shape)))
        assert said(lambda module=module: torch_engine._bind(module, program, weights)) == expected
    module = torch.nn.Module()
    module.conv = torch.nn.Module()
    module.conv.register_parameter("weight", torch.nn.Parameter(torch.zeros(2, 3)))
    torch_engine._bind(module, program, weights)
    assert (module.conv.weight == 7).all()
    assert module.conv.weight.requires_grad


def test_the_number_of_threads_is_that_of_the_options_in_each_run(runtime_registry: Any, monkeypatch: Any) -> None:
    _, compiled, _ = made_part(runtime_registry, RELU, options=RunOptions("torch", threads=3))
    present, asked = [1], []

    def choose(count: int) -> None:
        asked.append(count)
        present[0] = count

    monkeypatch.setattr(torch, "get_num_threads", lambda: present[0])
    monkeypatch.setattr(torch, "set_num_threads", choose)
    for _ in range(2):
        compiled.run({Source("image"): pixels(4, 6)})
    assert asked == [3]
    present[0] = 8  # another part was run in between
    compiled.run({Source("image"): pixels(4, 6)})
    assert asked == [3, 3]


# --- timing ------------------------------------------------------------------------------------------------------


class Gpu:
    """The parts of `torch.cuda` that a timer uses; the clock in ms advances with every step that is marked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.now = 0.0
        log = self.log.append
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: log("synchronize"))
        monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: log(f"sleep {cycles}"), raising=False)
        monkeypatch.setattr(torch_timing, "new_event", lambda: Event(self))
        nvtx = SimpleNamespace(range_push=lambda name: log(f"push {name}"), range_pop=lambda: log("pop"))
        monkeypatch.setattr(torch.cuda, "nvtx", nvtx)
        profiler = SimpleNamespace(start=lambda: log("start"), stop=lambda: log("stop"))
        monkeypatch.setattr(torch.cuda, "profiler", profiler)


class Event:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.at, self.done = gpu, -1.0, False

    def record(self) -> None:
        self.at = self.gpu.now
        self.gpu.now += 1

    def synchronize(self) -> None:
        self.done = True

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


def on_gpu(timer: Any) -> Any:
    timer.device = SimpleNamespace(type="cuda")
    return timer


def timer_of(registry: Any, *layers: Any, options: RunOptions) -> Any:
    engine, _, part = made_part(registry, *layers, options=options)
    array = np.random.default_rng(0).random((2, 3, 4, 6), np.float32)
    return torch_timing.TorchTimer(engine, part, [Source(layers[-1][0])], {Source("image"): array})


def test_a_whole_part_on_a_gpu_is_timed_by_its_events(runtime_registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = on_gpu(timer_of(runtime_registry, RELU, options=RunOptions("torch", threads=1)))
    gpu, ticks = Gpu(monkeypatch), []

    def run(values: Any) -> None:
        assert values is timer.inputs
        gpu.now += 10 * (len(ticks) + 1)

    monkeypatch.setattr(timer.compiled, "run_torch", run)
    assert timer.whole(2, 1, lambda: ticks.append(1)) == pytest.approx([0.021, 0.031])
    assert len(ticks) == 3


def test_layers_on_a_gpu_are_timed_between_their_marks(runtime_registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = on_gpu(timer_of(runtime_registry, CONV, RELU, options=RunOptions("torch", threads=1)))
    gpu, ticks = Gpu(monkeypatch), []
    found = timer.layers(2, 1, lambda: ticks.append(1))
    assert [sample.layers for sample in found] == [("conv",), ("relu",)]
    assert len(ticks) == 3
    assert [sample.what for sample in found] == ["torch", "torch"]
    steps = [layer for layer in timer._marked.layers if layer]
    for sample in found:
        assert sample.seconds == pytest.approx([steps.count(sample.layers[0]) / 1000] * 2), "each mark takes one ms"
    assert gpu.log == ["synchronize", f"sleep {torch_timing.QUEUE_CYCLES}", "synchronize"] * 3


def test_counters_have_a_range_for_each_step(runtime_registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = on_gpu(timer_of(runtime_registry, CONV, RELU, options=RunOptions("torch", threads=1)))
    gpu = Gpu(monkeypatch)
    runs: list[int] = []
    monkeypatch.setattr(timer.compiled, "run_torch", lambda values: runs.append(len(gpu.log)))
    timer.counted(lambda layer: f"range of {layer}")
    assert runs == [0, 0, 0], "warmed up before the counters start"
    names = [name for name in timer._marked.layers if name]
    assert gpu.log[:2] == ["synchronize", "start"]
    assert gpu.log[-2:] == ["synchronize", "stop"]
    between = gpu.log[2:-2]
    assert between == [text for name in names for text in (f"push range of {name}", "pop")]
    assert names == ["conv", "relu"]


class Shapes:
    """A module without data."""

    def __init__(self, agreed: Any) -> None:
        self.log: list[Any] = [agreed]

    def to(self, **given: Any) -> Shapes:
        self.log.append(given)
        return self

    def eval(self) -> Shapes:
        self.log.append("eval")
        return self


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_single_steps_are_those_of_torch_on_the_processor(
    runtime_registry: Any, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    options = RunOptions("torch", "fp16", layout, threads=1, agreed=("a digest",))
    plain = timer_of(runtime_registry, CONV, options=options)
    monkeypatch.setattr(torch_timing, "build_module", lambda program, agreed: Shapes(agreed))
    monkeypatch.setattr(torch_timing, "to_channels_last", lambda module: module.log.append("nhwc"))
    monkeypatch.setattr(torch_timing, "single_steps", lambda *given: given)
    program, interpreter, shapes, inputs, quiet = plain.single_steps()
    assert (program, interpreter, inputs) == (plain._program, plain.compiled.interpreter, plain.inputs)
    assert quiet == plain._quiet
    assert shapes.log == [
        ("a digest",), {"device": "meta", "dtype": torch.float16}, "eval", *(["nhwc"] if layout == "nhwc" else [])
    ]  # fmt: skip
    assert on_gpu(plain).single_steps() == []

    class Other(torch_engine.TorchCompiled):
        pass

    other = timer_of(runtime_registry, CONV, options=options)
    other.compiled.__class__ = Other
    assert other.single_steps() == []


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_what_is_timed_has_the_layout_and_the_precision_of_the_options(
    runtime_registry: Any, layout: str, precision: str
) -> None:
    options = RunOptions("torch", precision, layout, threads=1)
    timer = timer_of(runtime_registry, CONV, RELU, options=options)
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    (image,) = timer.inputs
    assert (image.dtype, tuple(image.shape)) == (dtype, (2, 3, 4, 6))
    assert image.is_contiguous(memory_format=torch.channels_last) == (layout == "nhwc")
    integers = timer._on_device(np.array([[1, 2]]))
    assert (integers.dtype, integers.tolist()) == (torch.int64, [[1, 2]])


def test_runs_to_time_are_exact_and_leave_the_settings_of_torch(
    runtime_registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = timer_of(runtime_registry, RELU, options=RunOptions("torch", threads=2))
    present, asked = [1], []
    monkeypatch.setattr(torch, "get_num_threads", lambda: present[0])
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    matmul = torch.backends.cuda.matmul
    usual = matmul.allow_tf32
    try:
        for before in (True, False):
            matmul.allow_tf32 = before
            with timer._quiet():
                assert torch.is_inference_mode_enabled()
                assert (matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark) == (
                    False, False, True
                )  # fmt: skip
            assert matmul.allow_tf32 is before
            with contextlib.suppress(KeyError), timer._quiet():
                raise KeyError
            assert matmul.allow_tf32 is before
            assert not torch.is_inference_mode_enabled()
    finally:
        matmul.allow_tf32 = usual
    assert asked == [2] * 4
    present[0] = 2
    with timer._quiet():
        pass
    with on_gpu(timer)._quiet():
        pass
    present[0] = 1
    with timer._quiet():
        pass
    assert asked == [2] * 4, "a GPU needs no threads"


def test_types_of_tensors_are_kept_on_the_way_back() -> None:
    for dtype, expected in (
        (torch.float32, np.float32), (torch.float16, np.float32), (torch.bfloat16, np.float32),
        (torch.float64, np.float32), (torch.int64, np.int64), (torch.bool, np.bool_),
    ):  # fmt: skip
        made = torch_engine._to_numpy(torch.tensor([[1, 0]]).to(dtype))
        assert (made.dtype, made.tolist()) == (expected, [[1, 0]])
