"""The torch engine beyond what all engines share: the program it runs, memory, devices, precision, failures."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import layer, pixels, plain_unet, unet, unet_weights

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.operators.api import (
    Operator,
    TensorType,
    TorchCall,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
)
from designer.operators.registry import load
from designer.operators.torch_program import Local, TensorAttribute, build_program, layer_names
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.engines.torch_engine import Interpreter, TorchEngine, _evaluator, build_module, resolve

torch = pytest.importorskip("torch")
from torch.overrides import TorchFunctionMode

torch.set_num_threads(1)


def engine(inference, weights=None, **kw) -> TorchEngine:
    return TorchEngine(inference, weights or Weights(), RunOptions(engine="torch", threads=1, **kw))


def part_of(inference, *feeds) -> Part:
    sources = tuple(Source(f) for f in feeds)
    order = inference.graph.order()[0]
    return Part(tuple(n for n in order if n not in feeds), sources)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)]
)
def test_a_precision_is_the_type_of_all_weights(runtime_registry, precision, dtype, layout):
    inference = Inference(unet(), runtime_registry)
    made = engine(inference, unet_weights(), precision=precision, layout=layout)
    compiled = made.compile(part_of(inference, "image"), [Source("out")])
    tensors = [*compiled.module.parameters(), *compiled.module.buffers()]
    assert {tensor.dtype for tensor in tensors if tensor.is_floating_point()} == {dtype}
    kernel = compiled.module.enc_2.weight
    np.testing.assert_allclose(
        kernel.detach().float().numpy(), unet_weights().tensors[WeightKey("enc_2", "kernel")], rtol=1e-2, atol=1e-4
    )
    assert kernel.is_contiguous(memory_format=torch.channels_last) == (layout == "nhwc")
    assert compiled.dtype == dtype


def test_channels_last_is_channels_last_inside(runtime_registry):
    inference = Inference(unet(), runtime_registry)
    compiled = engine(inference, unet_weights(), layout="nhwc").compile(part_of(inference, "image"), [Source("out")])
    assert compiled.module.enc_2.weight.is_contiguous(memory_format=torch.channels_last)
    picture = torch.from_numpy(pixels()).contiguous(memory_format=torch.channels_last)
    (result,) = compiled.run_torch([picture])
    assert result.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(result.numpy(), plain_unet(unet_weights())(pixels()), atol=1e-5)


def test_values_are_dropped_when_nothing_reads_them(runtime_registry):
    chain = [layer("image", "input", dims="4x4x1")]
    for number in range(6):
        source = "image" if not number else f"step_{number - 1}"
        chain.append(layer(f"step_{number}", "element_wise", f"{source},{source}", operation="add"))
    inference = Inference(Graph(chain), runtime_registry)
    part = part_of(inference, "image")
    program = build_program(inference, part.layers, part.feeds, [Source("step_5")])
    assert [step.release for step in program.steps] == [("image",), *((f"step_{n}",) for n in range(5))]
    alive: list[weakref.ref] = []
    most = 0

    class Watch(TorchFunctionMode):
        """Counts the results of calls of torch that are alive after each call."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            nonlocal most
            made = function(*args, **(kwargs or {}))
            alive.append(weakref.ref(made))
            most = max(most, sum(1 for ref in alive if ref() is not None))
            return made

    interpreter, image = Interpreter(build_module(program), program), torch.ones(1, 1, 4, 4)
    with Watch():
        (result,) = interpreter([image])
    assert float(result[0, 0, 0, 0]) == 64
    assert most == 2  # what is read and what is made


def test_a_value_read_twice_by_an_activation_is_computed_once(runtime_registry):
    class Twice(load(entry_points=False).activations["relu"].__mro__[1], type="twice", title="Twice"):
        """x * x, which reads x twice."""

        def torch(self, inputs):
            return TorchCall("torch.mul", (TorchInput(0), TorchInput(0)))

    registry = load(entry_points=False)
    registry.register(Twice)
    graph = Graph(
        [
            layer("image", "input", dims="4x4x1"),
            layer("conv", "convolution", "image", ActivationSpec("twice"), features=2, kernel="1x1"),
        ]
    )
    inference = Inference(graph, registry)
    program = build_program(inference, ["conv"], [Source("image")], [Source("conv")])
    assert [step.target for step in program.steps] == ["conv_linear", "conv"]


def test_names_of_layers_with_weights_do_not_depend_on_others(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="4x4x1"),
            layer("a b", "convolution", "image", features=2),
            layer("a_b", "identity", "a b"),
        ]
    )
    assert layer_names(Inference(graph, runtime_registry)) == {"a b": "a_b", "a_b": "a_b_2", "image": "image"}


def test_names_do_not_depend_on_the_order_of_the_layers(runtime_registry):
    layers = [
        layer("image", "input", dims="4x4x1"),
        *(layer(name, "convolution", "image", features=2) for name in ("w x", "w-x")),
        *(layer(name, "identity", "w x") for name in ("p q", "p-q", "p_q", "w_x")),
    ]
    names = layer_names(Inference(Graph(layers), runtime_registry))
    assert len(set(names.values())) == len(layers)
    for turn in range(1, len(layers)):
        for order in (layers[turn:] + layers[:turn], (layers[turn:] + layers[:turn])[::-1]):
            assert layer_names(Inference(Graph(order), runtime_registry)) == names


@pytest.mark.parametrize(
    "path", ["os.system", "torch", "torch._C", "torch.nn.__class__", "torch.os.system()", "torch.no_such"]
)
def test_only_public_names_below_torch(path):
    with pytest.raises(DiagnosticError) as caught:
        resolve(path)
    assert caught.value.diagnostics[0].code == "bad-torch-data"


@pytest.mark.parametrize("expression", [TorchMethod("_foo"), TorchMethod("__class__"), TorchModule("os.system")])
def test_declarations_cannot_reach_outside(expression):
    class Sly(Operator, type="sly", title="Sly"):
        """Wants more than it may have."""

        def infer(self, inputs):
            return inputs[0]

        def torch(self, inputs):
            return expression

    registry = load(entry_points=False)
    registry.register(Sly)
    inference = Inference(Graph([layer("image", "input", dims="4x4x1"), layer("sly", "sly", "image")]), registry)
    with pytest.raises(DiagnosticError) as caught:
        engine(inference).compile(Part(("sly",), (Source("image"),)), [Source("sly")])
    assert caught.value.diagnostics[0].code == "bad-torch-data"


def test_failure_names_the_layer():
    class Liar(Operator, type="liar", title="Liar"):
        """Its torch data fails."""

        def infer(self, inputs):
            return TensorType(inputs[0].shape)

        def torch(self, inputs):
            return TorchMethod("view", TorchInput(0), (7, 7, 7))

    registry = load(entry_points=False)
    registry.register(Liar)
    graph = Graph([layer("image", "input", dims="4x4x1"), layer("liar", "liar", "image")])
    inference = Inference(graph, registry)
    compiled = engine(inference).compile(Part(("liar",), (Source("image"),)), [Source("liar")])
    with pytest.raises(DiagnosticError) as caught:
        compiled.run({Source("image"): pixels(4, 4)[:, :1]})
    assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].layer) == ("engine-failed", "liar")


@pytest.mark.parametrize(
    ("device", "precision", "code"),
    [
        ("cuda:99", "fp32", "device-unavailable"),
        ("cuda:x", "fp32", "unknown-device"),
        ("mps", "fp32", "device-unavailable"),
        ("cpu", "fp16", "precision-unavailable"),
    ],
)
def test_devices_and_precisions_that_are_not_there(runtime_registry, device, precision, code):
    options = RunOptions(engine="torch", device=device, precision=precision)
    with pytest.raises(DiagnosticError) as caught:
        load_engines(installed=False).make(Inference(unet(), runtime_registry), Weights(), options)
    assert caught.value.diagnostics[0].code == code


def test_missing_and_misshapen_weights(runtime_registry):
    inference = Inference(unet(), runtime_registry)
    weights = unet_weights()
    part = part_of(inference, "image")
    for tensors, code in (
        ({k: v for k, v in weights.tensors.items() if k != WeightKey("dec", "kernel")}, "missing-weight"),
        ({**weights.tensors, WeightKey("dec", "kernel"): np.zeros((1, 2, 3, 3), np.float32)}, "wrong-weight-shape"),
    ):
        with pytest.raises(DiagnosticError) as caught:
            engine(inference, Weights(tensors)).compile(part, [Source("out")])
        assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].layer) == (code, "dec")


def test_importing_the_engine_does_not_import_torch():
    code = "import sys, designer.runtime.engines.torch_engine; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


X, Y = Local("x"), Local("y")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (TorchCall("torch.add", (X, Y)), [11.0, 22.0]),
        (TorchCall("torch.add", (X, Y), {"alpha": 2}), [21.0, 42.0]),
        (TorchCall("torch.add", (X,), {"other": Y}), [11.0, 22.0]),
        (TorchCall("torch.add", (X,), {"other": Y, "alpha": 2}), [21.0, 42.0]),
        (TorchCall("torch.add", (X,), {"other": 3}), [4.0, 5.0]),
        (TorchCall("torch.stack", ([X, Y],), {"dim": 1}), [[1.0, 10.0], [2.0, 20.0]]),
        (TorchCall("torch.zeros_like", (X,), {"dtype": TorchName("torch.int8")}), [0, 0]),
        (TorchMethod("add", X, (Y,), {"alpha": 3}), [31.0, 62.0]),
        (TorchMethod("add", X, (), {"other": TorchItem(Y, 1), "alpha": 2}), [41.0, 42.0]),
        (TorchItem(TorchCall("torch.max", (Y, 0)), 1), 1),
        (TorchCall("torch.mul", (X, TensorAttribute("scale"))), [5.0, 10.0]),
    ],
    ids=str,
)
def test_arguments_of_a_call_are_values_or_expressions(expression, value) -> None:
    module = torch.nn.Module()
    module.scale = torch.tensor(5.0)
    made = _evaluator(expression, module, {"x": 0, "y": 1})([torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])])
    assert made.tolist() == value
