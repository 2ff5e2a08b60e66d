"""Engines against plain torch, and the models that are built for ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import LEAKY, layer, pixels, plain_unet, unet, unet_weights

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.engines.onnx_model import build_model, serialized
from designer.runtime.engines.ort import reason_of
from designer.runtime.machine import physical_cores, threads
from designer.runtime.plan import PartStep, make_plan

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
torch.set_num_threads(1)

LIBRARY = load_engines(installed=False)
ENGINES = [(e.name, layout) for e in LIBRARY if e.available() is None for layout in e.layouts]


def options(engine="onnxruntime", layout="nchw", **kw) -> RunOptions:
    return RunOptions(engine=engine, layout=layout, threads=1, **kw)


def whole(inference, *targets) -> PartStep:
    (step,) = make_plan(inference, [Source.parse(t) for t in targets]).steps
    assert isinstance(step, PartStep)
    return step


@pytest.mark.parametrize(("engine", "layout"), ENGINES)
@pytest.mark.parametrize("batch", [1, 3])
def test_result_is_that_of_plain_torch(runtime_registry, engine, layout, batch):
    inference, weights = Inference(unet(), runtime_registry), unet_weights()
    step = whole(inference, "result", "norm", "plus")
    compiled = LIBRARY.make(inference, weights, options(engine, layout)).compile(step.part, step.wanted)
    array = pixels(batch=batch)
    array.flags.writeable = False
    made = compiled.run({Source("image"): array})
    assert set(made) == {Source("out"), Source("norm"), Source("plus")}
    plain = plain_unet(weights)
    assert made[Source("out")].shape == (batch, 3, 24, 32)
    np.testing.assert_allclose(made[Source("out")], plain(array), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(made[Source("plus")], plain(array, "plus"), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_results_are_fresh_arrays(runtime_registry, engine):
    inference = Inference(unet(), runtime_registry)
    step = whole(inference, "result")
    compiled = LIBRARY.make(inference, unet_weights(), options(engine)).compile(step.part, step.wanted)
    first = compiled.run({Source("image"): pixels(seed=1)})[Source("out")]
    kept = first.copy()
    compiled.run({Source("image"): pixels(seed=2)})
    np.testing.assert_array_equal(first, kept)


def test_weights_of_an_attached_activation(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="6x5x3"),
            layer("conv", "convolution", "image", ActivationSpec("prelu", {}), features=4, kernel="3x3"),
            layer("result", "output", "conv"),
        ]
    )
    inference = Inference(graph, runtime_registry)
    rng = np.random.default_rng(0)
    needed = {"kernel": (4, 3, 3, 3), "bias": (4,)}
    (slope,) = runtime_registry.read(graph["conv"]).activation.weights((inference.states["conv"].before_activation,))
    needed[f"activation_{slope.name}"] = slope.shape
    weights = Weights({WeightKey("conv", n): rng.normal(0, 1, s).astype(np.float32) for n, s in needed.items()})
    step = whole(inference, "result")
    array = pixels(5, 6)
    made = LIBRARY.make(inference, weights, options()).compile(step.part, step.wanted).run({Source("image"): array})
    w = {k.tensor: torch.from_numpy(a) for k, a in weights.tensors.items()}
    x = torch.nn.functional.conv2d(torch.from_numpy(array), w["kernel"], w["bias"], padding=1)
    expected = torch.nn.functional.prelu(x, w[f"activation_{slope.name}"].reshape(-1))
    np.testing.assert_allclose(made[Source("conv")], expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_model_is_valid_and_named_after_layers(runtime_registry, layout):
    import onnx

    inference = Inference(unet(), runtime_registry)
    step = whole(inference, "result", "enc 1")
    model = build_model(inference, step.part, step.wanted, unet_weights(), layout=layout)
    onnx.checker.check_model(model, full_check=True)
    assert [v.name for v in model.graph.input] == ["image"]
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_param == "N"
    assert [d.dim_value for d in dims[1:]] == ([3, 24, 32] if layout == "nchw" else [24, 32, 3])
    names = {i.name for i in model.graph.initializer}
    assert {"enc 1/kernel", "enc 1/bias", "norm/mean"} <= names
    assert any(node.name == "enc 1/Conv" for node in model.graph.node)
    assert model.producer_name == "layerwright"
    every = [name for node in model.graph.node for name in node.output]
    assert len(every) == len(set(every))


def test_an_output_layer_can_be_part_of_a_model(runtime_registry):
    import onnx
    import onnxruntime

    inference = Inference(unet(), runtime_registry)
    layers = tuple(name for name in inference.graph.order()[0] if name != "image")
    part = Part(layers, (Source("image"),))
    model = build_model(inference, part, [Source("result"), Source("out"), Source("image")], unet_weights())
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(serialized(model), providers=["CPUExecutionProvider"])
    array = pixels()
    result, out, image = session.run(None, {"image": array})
    np.testing.assert_array_equal(result, out)
    np.testing.assert_array_equal(image, array)


def found(call) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        call()
    assert all(d.message and d.remedy for d in caught.value.diagnostics)
    return [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_missing_and_wrong_weights_are_named(runtime_registry, engine):
    inference = Inference(unet(), runtime_registry)
    step = whole(inference, "result")
    tensors = dict(unet_weights().tensors)
    del tensors[WeightKey("dec", "bias")]
    with pytest.raises(DiagnosticError, match=r"dec.*bias|bias.*dec"):
        LIBRARY.make(inference, Weights(tensors), options(engine)).compile(step.part, step.wanted)
    tensors[WeightKey("dec", "bias")] = np.zeros(5, np.float32)
    with pytest.raises(DiagnosticError, match="dec"):
        LIBRARY.make(inference, Weights(tensors), options(engine)).compile(step.part, step.wanted)


def test_options_that_cannot_be_served(runtime_registry):
    inference, weights = Inference(unet(), runtime_registry), unet_weights()
    assert found(lambda: LIBRARY.make(inference, weights, options(precision="fp16"))) == ["precision-unavailable"]
    assert found(lambda: LIBRARY.make(inference, weights, options(precision="fp7"))) == ["unknown-precision"]
    assert found(lambda: LIBRARY.make(inference, weights, options(layout="nhcw"))) == ["unknown-layout"]
    assert found(lambda: LIBRARY.make(inference, weights, options(device="cuda"))) == ["device-unavailable"]
    assert found(lambda: LIBRARY.make(inference, weights, options("no_such_engine"))) == ["unknown-engine"]
    assert found(lambda: LIBRARY.make(inference, weights, RunOptions(threads=-1))) == ["bad-threads"]


def test_a_feed_of_another_size_is_an_error_that_names_the_layers(runtime_registry):
    inference = Inference(unet(), runtime_registry)
    step = whole(inference, "result")
    compiled = LIBRARY.make(inference, unet_weights(), options()).compile(step.part, step.wanted)
    assert found(lambda: compiled.run({Source("image"): pixels(16, 16)})) == ["engine-failed"]


def test_leaky_relu_is_the_relu_with_a_slope(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="4x4x3"),
            layer("pass", "identity", "image", LEAKY),
            layer("result", "output", "pass"),
        ]
    )
    inference = Inference(graph, runtime_registry)
    step = whole(inference, "result")
    array = pixels(4, 4) - 0.5
    made = LIBRARY.make(inference, Weights(), options()).compile(step.part, step.wanted).run({Source("image"): array})
    np.testing.assert_allclose(made[Source("pass")], np.where(array > 0, array, array * 0.1), atol=1e-7)


def test_threads():
    assert threads(RunOptions(threads=3)) == 3
    assert threads(RunOptions()) == physical_cores() >= 1


def test_the_reason_of_onnx_runtime_has_no_lines_of_its_sources():
    error = RuntimeError(
        "[ONNXRuntimeError] : 1 : FAIL : Load model from m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:256 "
        "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&) Unsupported model IR version: 14\n"
    )
    assert reason_of(error) == "Load model from m.onnx failed: Unsupported model IR version: 14"
