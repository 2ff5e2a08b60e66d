"""Emulated number formats: what true half precision computes, per layer, with the ranges of the values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import samples
from designer.files.document import read_document
from designer.files.weights import Weights, fill_missing, load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import Registry, default_registry
from designer.precision.emulation import Emulation, RangeObserver
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.engines.rounded_torch import EMULATED
from designer.runtime.engines.torch_engine import TorchEngine
from designer.runtime.number_formats import BFLOAT16, FLOAT16, FORMATS
from designer.runtime.rounding import Rounding, rounded
from designer.runtime.session import Session

PHOTOGRAPH = np.random.default_rng(3).random((1, 3, 32, 48), np.float32)


def denoiser() -> tuple[Graph, Weights]:
    folder = Path(samples.__file__).parent
    graph = read_document(folder / "denoiser.xml").graph
    assert graph is not None
    return graph, load_weights(folder / "weights" / "denoiser", required_weights(Inference(graph, default_registry())))


@pytest.fixture(scope="module")
def emulation() -> Emulation:
    made = Emulation(*_with_registry(denoiser()), RunOptions(threads=1))
    made.feed({"input_image": PHOTOGRAPH})
    return made


def _with_registry(found: tuple[Graph, Weights]) -> tuple[Graph, Registry, Weights]:
    return found[0], default_registry(), found[1]


def exact(emulation: Emulation, precision: str) -> np.ndarray:
    """The output of torch with tensors and weights of the precision."""
    session = emulation.session
    options = RunOptions("torch", precision, threads=1)
    engine = TorchEngine(session.inference, session.weights, options)
    (step,) = session.plan().steps
    (feed,) = step.part.feeds
    (made,) = engine.compile(step.part, step.wanted).run({feed: session.fed_input(feed.layer)[1]}).values()
    return made


@pytest.mark.parametrize(("precision", "last_place"), [("fp16", 2**-11), ("bf16", 2**-8)])
def test_emulated_precision_has_the_error_of_true_half_precision(
    emulation: Emulation, precision: str, last_place: float
) -> None:
    (single,) = emulation.run().values()
    (found,) = emulation.run(precision).values()
    expected = exact(emulation, precision)
    assert np.square(found - single).mean() == pytest.approx(np.square(expected - single).mean(), rel=0.05)
    assert np.abs(found - expected).max() <= 3 * last_place  # processors add in another order and round between
    assert np.mean(found != expected) < 0.3
    assert np.array_equal(single, exact(emulation, "fp32"))
    assert not np.array_equal(found, single)


def test_layers_of_another_format_are_rounded_alone(emulation: Emulation) -> None:
    layers = emulation.layers
    (single,) = emulation.run().values()
    kept = dict.fromkeys(layers, "float32")
    (none,) = emulation.run("fp16", kept).values()
    assert np.array_equal(none, single)
    (all_of_them,) = emulation.run("fp32", dict.fromkeys(layers, "float16")).values()
    assert np.array_equal(all_of_them, *emulation.run("fp16").values())
    (one,) = emulation.run("fp32", {layers[2]: "float16"}).values()
    assert 0 < np.abs(one - single).max() < np.abs(all_of_them - single).max()


def test_fewer_bits_give_larger_errors(emulation: Emulation) -> None:
    (single,) = emulation.run().values()
    errors = []
    for bits in (16, 8, 6, 4, 2):
        (found,) = emulation.run("fp32", dict.fromkeys(emulation.layers, f"int{bits}")).values()
        errors.append(float(np.square(found - single).mean()))
    assert errors == sorted(errors)


def test_the_padding_of_an_input_is_cropped_off_in_every_precision() -> None:
    graph, weights = denoiser()
    image = replace(graph["input_image"], params={**graph["input_image"].params, "tiling": "8"})
    padded = Graph(
        [image if item.name == image.name else item for item in graph.layers.values()], templates=graph.templates
    )
    made = Emulation(padded, default_registry(), weights, RunOptions(threads=1))
    picture = PHOTOGRAPH[:, :, :29, :42]
    made.feed({"input_image": picture})
    whole = Emulation(graph, default_registry(), weights, RunOptions(threads=1))
    whole.feed({"input_image": np.pad(picture, ((0, 0), (0, 0), (0, 3), (0, 6)), "edge")})
    for precision in ("fp32", "fp16"):
        (found,), (expected,) = made.run(precision).values(), whole.run(precision).values()
        assert np.array_equal(found, expected[:, :, :29, :42])


def scaled(scale: float, more: float = 1.0) -> Emulation:
    """An input that is scaled twice."""
    graph = Graph(
        [
            Layer("picture", "input", params={"dims": "4x4x1"}),
            Layer("large", "scale_shift", inputs=(Source("picture"),), params={"scale": f"{scale:g}"}),
            Layer("after", "scale_shift", inputs=(Source("large"),), params={"scale": f"{more:g}"}),
            Layer("result", "output", inputs=(Source("after"),)),
        ]
    )
    made = Emulation(graph, default_registry(), Weights(), RunOptions(threads=1))
    made.feed({"picture": np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 1, 4, 4)})
    return made


def test_overflow_is_found_with_layer_and_magnitude() -> None:
    seen = RangeObserver()
    (found,) = scaled(1e5).run("fp16", observe=seen).values()
    assert np.isinf(found).any()
    assert seen.ranges["large"].largest == pytest.approx(1e5)
    assert seen.ranges["large"].overflowed == int(np.isinf(found).sum())
    assert seen.ranges["after"].nonfinite == 2 * seen.ranges["large"].overflowed  # of its product and its sum
    assert not seen.ranges["after"].overflowed


def test_underflow_is_found_and_bfloat16_has_none() -> None:
    seen, wide = RangeObserver(), RangeObserver()
    emulation = scaled(1e-9)
    emulation.run("fp16", observe=seen)
    emulation.run("bf16", observe=wide)
    assert seen.ranges["large"].underflowed == 15
    assert seen.ranges["large"].smallest == pytest.approx(1e-9 / 15)
    assert not wide.ranges["large"].underflowed


def test_rounding_is_that_of_torch() -> None:
    values = torch.tensor([1.0, 1 + 2**-11, 65519.0, 65520.0, 2**-25, 2**-24, -0.1])
    assert torch.equal(rounded(values, FLOAT16), values.half().float())
    assert torch.equal(rounded(values, BFLOAT16), values.bfloat16().float())
    fourth = rounded(torch.tensor([[-7.0, 3.4], [0.0, 0.7]]), FORMATS["int4"], axis=0)
    assert torch.allclose(fourth, torch.tensor([[-7.0, 3.0], [0.0, 0.7]]))
    assert torch.equal(rounded(torch.zeros(3), FORMATS["int2"]), torch.zeros(3))
    values = torch.tensor([-1.0, 0.0, 3.4, 6.6, 14.0])  # 16 values from -1 to 14
    assert torch.equal(rounded(values, FORMATS["int4"]), torch.tensor([-1.0, 0.0, 3.0, 7.0, 14.0]))
    values = torch.tensor([10.0, 14.6, 15.0])  # and from 0
    assert torch.equal(rounded(values, FORMATS["int4"]), torch.tensor([10.0, 15.0, 15.0]))


def block(kind: str, **params: str) -> tuple[Graph, Weights]:
    graph = Graph(
        [
            Layer("picture", "input", params={"dims": "8x8x3"}),
            Layer("conv", kind, inputs=(Source("picture"),), params=params, activation=ActivationSpec("relu")),
            Layer("result", "output", inputs=(Source("conv"),)),
        ]
    )
    return graph, fill_missing(Weights(), required_weights(Inference(graph, default_registry())), 0)


@pytest.mark.parametrize("kind", ["convolution", "transposed_convolution"])
def test_a_layer_with_integers_is_rounded_as_runtimes_do(kind: str) -> None:
    """Its input, its weights for each output channel, and once its result behind the activation; the bias stays."""
    graph, weights = block(kind, features="4", kernel_size="3x3")
    picture = PHOTOGRAPH[:, :, :8, :8]
    made = Emulation(graph, default_registry(), weights, RunOptions(threads=1))
    made.feed({"picture": picture})
    (found,) = made.run("fp32", {"conv": "int8"}).values()
    tensors = {key.tensor: torch.from_numpy(value) for key, value in weights.tensors.items()}
    kernel, bias = tensors["kernel"], tensors["bias"]
    int8 = FORMATS["int8"]
    read = rounded(torch.from_numpy(picture), int8)
    if kind == "convolution":
        expected = torch.conv2d(read, rounded(kernel, int8, axis=0), bias, padding=1)
    else:
        expected = torch.conv_transpose2d(read, rounded(kernel, int8, axis=1), bias, 2, 1, 1)
    torch.testing.assert_close(torch.from_numpy(found), rounded(expected.relu(), int8), atol=1e-6, rtol=0)


def test_other_engines_refuse_formats_of_layers() -> None:
    graph, weights = denoiser()
    options = RunOptions("torch", formats=(("conv_1", "float16"),))
    with pytest.raises(DiagnosticError) as caught:
        Session(graph, default_registry(), weights, options)
    assert caught.value.diagnostics[0].code == "format-unavailable"


def test_the_engine_runs_a_session_of_the_document() -> None:
    graph, weights = denoiser()
    results = []
    for options in (RunOptions(EMULATED.name, threads=1), RunOptions("torch", threads=1)):
        session = Session(graph, default_registry(), weights, options)
        session.set_input("input_image", PHOTOGRAPH, is_image=True)
        results.append(next(iter(session.run().outputs.values())))
    assert np.array_equal(*results)
    assert default_engines().get(EMULATED.name).formats == tuple(FORMATS)


def test_each_float_result_of_an_operation_with_several_is_rounded() -> None:
    values = torch.tensor([0.3, 0.1, 0.2])
    with Rounding(lambda: "layer", lambda _: FLOAT16):
        found, order = torch.sort(values)
        (sums,) = torch._foreach_add([values], 0.0)
    assert torch.equal(found, values.sort().values.half().float())
    assert order.tolist() == [1, 2, 0]
    assert torch.equal(sums, values.half().float())
