"""Gradients to an input and weights as they are used, against torch's autograd on a network written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runtime_networks import analysed, layer, pixels, plain_torch_unet, unet, unet_weights

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Source
from designer.runtime.api import RunOptions
from designer.runtime.engines.torch_engine import TorchEngine
from designer.runtime.gradient import gradient
from designer.runtime.layer_weights import weights_of
from designer.runtime.session import Session

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
OUT = Source("out")


def session_of(graph, registry, array=None, is_image=False, weights=None, engine="torch", **options) -> Session:
    made = Session(graph, registry, weights or unet_weights(), RunOptions(engine=engine, threads=1, **options))
    made.set_input("image", pixels() if array is None else array, is_image=is_image)
    return made


def by_hand(array, pick=lambda y: y.sum()):
    x = torch.from_numpy(np.array(array)).requires_grad_()
    pick(plain_torch_unet(unet_weights()).eval()(x)).backward()
    return x.grad.numpy()


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"engine": "torch"}, ""),
        ({"engine": "torch", "layout": "nhwc"}, ""),
        ({"engine": "onnxruntime"}, ""),
    ],
)
def test_gradient_of_the_sum(runtime_registry, options, note):
    if options["engine"] == "onnxruntime":
        pytest.importorskip("onnxruntime")
    found = gradient(session_of(unet(), runtime_registry, **options), OUT, "image")
    np.testing.assert_allclose(found.array, by_hand(pixels()), atol=1e-5)
    assert found.note == note


def test_gradient_of_one_value_and_of_one_pixel(runtime_registry):
    session = session_of(unet(), runtime_registry)
    one = gradient(session, OUT, "image", (1, 7, 12)).array
    np.testing.assert_allclose(one, by_hand(pixels(), lambda y: y[:, 1, 7, 12].sum()), atol=1e-6)
    pixel = gradient(session, OUT, "image", (None, 7, 12)).array
    np.testing.assert_allclose(pixel, by_hand(pixels(), lambda y: y[:, :, 7, 12].sum()), atol=1e-6)


def test_gradient_inside_the_network_and_with_an_activation(runtime_registry):
    w = unet_weights()
    x = torch.from_numpy(pixels()).requires_grad_()
    kernel, bias = (torch.from_numpy(w.tensors[WeightKey("enc 1", t)]) for t in ("kernel", "bias"))
    torch.relu(torch.nn.functional.conv2d(x, kernel, bias, padding=1)).sum().backward()
    found = gradient(session_of(unet(), runtime_registry), Source("enc 1"), "image")
    np.testing.assert_allclose(found.array, x.grad.numpy(), atol=1e-5)


def test_gradient_with_padding_belongs_to_the_pixels_that_were_fed(runtime_registry):
    array = pixels(22, 29)
    session = session_of(unet(tiling=8), runtime_registry, array)

    def pad(x):
        return torch.nn.functional.pad(x, (0, 3, 0, 2), mode="replicate")

    x = torch.from_numpy(array).requires_grad_()
    plain_torch_unet(unet_weights()).eval()(pad(x))[:, :, :22, :29].sum().backward()
    found = gradient(session, Source("result"), "image").array
    assert found.shape == array.shape
    np.testing.assert_allclose(found, x.grad.numpy(), atol=1e-5)


def test_gradient_is_to_the_values_that_the_network_reads(runtime_registry):
    session = session_of(unet(scale=2.0, shift=-1.0), runtime_registry, is_image=True)
    np.testing.assert_allclose(gradient(session, OUT, "image").array, by_hand(pixels() * 2 - 1), atol=1e-5)


def test_gradient_goes_through_analysis_layers_and_says_so(runtime_registry):
    session = session_of(analysed(), runtime_registry)
    noisy = session.run([Source("noise")]).captures[Source("noise")]
    found = gradient(session, Source("result"), "image")
    np.testing.assert_allclose(found.array, by_hand(noisy), atol=1e-5)
    assert found.note == "passed through 'noise', 'mix' as if they were identities"


def test_gradient_of_what_cannot_be(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("other", "input", dims="8x8x3"),
            layer("rounded", "unary", "image", function="floor"),
            layer("result", "output", "rounded"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), RunOptions(engine="torch", threads=1))
    session.set_input("image", pixels(8, 8), is_image=False)
    assert not gradient(session, Source("result"), "image").array.any()
    for source, name, at, code in (
        ("result", "other", None, "no-path"),
        ("result", "rounded", None, "no-such-input"),
        ("result", "image", (0, 8, 0), "outside"),
        ("result", "image", (3, 0, 0), "outside"),
        ("nothing", "image", None, "no-such-layer"),
    ):
        with pytest.raises(DiagnosticError) as caught:
            gradient(session, Source(source), name, at)
        assert caught.value.diagnostics[0].code == code
        assert caught.value.diagnostics[0].remedy


def test_results_of_runs_stay_the_same_bits_after_a_gradient(runtime_registry):
    session = session_of(analysed(), runtime_registry)
    before = session.run().outputs["result"].copy()
    gradient(session, OUT, "image")
    assert session.run().outputs["result"].tobytes() == before.tobytes()
    session.invalidate()
    assert session.run().outputs["result"].tobytes() == before.tobytes()


def test_weights_of_a_layer(runtime_registry):
    weights = unet_weights()
    session = session_of(unet(), runtime_registry)
    found = weights_of(session, "enc_2")
    assert list(found) == ["kernel", "bias"]
    np.testing.assert_array_equal(found["kernel"], weights.tensors[WeightKey("enc_2", "kernel")])
    assert weights_of(session, "pool") == {}
    with pytest.raises(DiagnosticError, match="no layer 'nothing'"):
        weights_of(session, "nothing")


def test_weights_of_an_attached_activation(runtime_registry):
    graph = Graph([layer("image", "input", dims="8x8x3"), layer("conv", "convolution", "image", ActivationSpec("prelu", {}), features=4), layer("result", "output", "conv")])  # fmt: skip
    tensors = {("conv", "kernel"): (4, 3, 3, 3), ("conv", "bias"): (4,), ("conv", "activation_slope"): (4,)}
    session = Session(
        graph,
        runtime_registry,
        Weights({WeightKey(*key): np.ones(shape, np.float32) for key, shape in tensors.items()}),
        RunOptions(engine="torch"),
    )
    assert sorted(weights_of(session, "conv")) == sorted(name for _, name in tensors)


@pytest.mark.parametrize(("is_image", "factor"), [(True, 3.0), (False, 1.0)])
def test_only_images_are_scaled_before_the_network(runtime_registry, is_image, factor):
    """The slope of a square is twice the value that the network reads."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3", scale="3", shift="0.5"),
            layer("square", "unary", "image", function="square"),
            layer("result", "output", "square"),
        ]
    )
    array = pixels(4, 5)
    found = gradient(session_of(graph, runtime_registry, array, is_image, Weights()), Source("result"), "image")
    expected = 2 * (array * 3 + 0.5 if is_image else array)
    np.testing.assert_allclose(found.array, expected, rtol=1e-5)
    one = gradient(
        session_of(graph, runtime_registry, array, is_image, Weights()), Source("square"), "image", (2, 1, 3)
    )
    assert np.argwhere(one.array).tolist() == [[0, 2, 1, 3]]
    assert one.array[0, 2, 1, 3] == pytest.approx(expected[0, 2, 1, 3], rel=1e-5)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_gradient_in_another_precision_than_the_run_says_so(runtime_registry, precision):
    session = session_of(unet(), runtime_registry, engine="emulated", precision=precision)
    found = gradient(session, OUT, "image")
    assert found.note == f"computed in fp32, the run is in {precision}"
    np.testing.assert_allclose(found.array, by_hand(pixels()), atol=1e-5)


def test_a_gradient_says_both_what_it_passed_and_in_which_precision_the_run_is(runtime_registry):
    session = session_of(analysed(), runtime_registry, engine="emulated", precision="fp16")
    found = gradient(session, OUT, "image")
    assert found.note == "passed through 'noise' as if they were identities; computed in fp32, the run is in fp16"


@pytest.mark.parametrize("options", [{}, {"layout": "nhwc"}, {"precision": "fp16", "engine": "emulated"}])
def test_gradients_are_computed_in_fp32_and_channels_first(runtime_registry, monkeypatch, options):
    """The other options are those of the session, and so are the network and its weights."""
    session = session_of(unet(), runtime_registry, **options)
    made = []

    def engine(*given):
        made.append(given)
        return TorchEngine(*given)

    monkeypatch.setattr("designer.runtime.gradient.TorchEngine", engine)
    gradient(session, OUT, "image")
    used = replace(session.options, precision="fp32", layout="nchw")
    assert made == [(session.inference, session.weights, used)]
