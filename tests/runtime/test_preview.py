"""A coarse picture first: what it costs, what it shows, and that full results do not change by it. Runs given up."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from runtime_networks import analysed, layer, pixels, unet, unet_weights

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.runtime.api import RunOptions, Step
from designer.runtime.engines import ort_engine
from designer.runtime.interrupt import Interrupt, InterruptedRunError
from designer.runtime.preview import Preview, enlarged, factor_for, resized
from designer.runtime.run_estimate import RunEstimate
from designer.runtime.session import Session

pytest.importorskip("onnxruntime")
pytest.importorskip("torch").set_num_threads(1)
ENGINES = ("onnxruntime", "torch")


def session_of(registry, graph=None, height=64, width=128, engine="torch", weights=None, layout="nchw") -> Session:
    options = RunOptions(engine=engine, threads=1, layout=layout)
    session = Session(graph or analysed(), registry, weights or unet_weights(), options)
    session.set_input("image", pixels(height, width), is_image=False)
    return session


def test_how_much_is_reduced_follows_from_the_time():
    assert [factor_for(ms) for ms in (50, 180, 181, 720, 721, 1e6)] == [2, 2, 4, 4, 8, 8]


def test_reducing_is_the_mean_and_enlarging_repeats():
    array = np.arange(2 * 4 * 6, dtype=np.float32).reshape(1, 2, 4, 6)
    small = resized(array, 2, 3)
    np.testing.assert_allclose(small[0, 0, 0, 0], array[0, 0, :2, :2].mean())
    np.testing.assert_array_equal(enlarged(small, 4, 6), small.repeat(2, 2).repeat(2, 3))
    uneven = resized(pixels(31, 45), 10, 15)
    assert uneven.shape == (1, 3, 10, 15)
    np.testing.assert_allclose(uneven.mean(), pixels(31, 45).mean(), atol=0.02)
    back = enlarged(uneven, 31, 45)
    assert back.shape == (1, 3, 31, 45)
    np.testing.assert_array_equal(back[..., 0, 0], uneven[..., 0, 0])
    np.testing.assert_array_equal(back[..., -1, -1], uneven[..., -1, -1])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_preview_is_the_network_on_the_reduced_picture(runtime_registry, engine):
    session = session_of(runtime_registry, unet(), engine=engine)
    full = session.run([Source("enc 1")])
    found = Preview(session, 2).run([Source("enc 1")])
    assert found.coarse == 2
    assert full.coarse == 0
    small = session_of(runtime_registry, unet(), engine=engine)
    small.set_input("image", resized(pixels(64, 128), 32, 64), is_image=False)
    wanted = small.run([Source("enc 1")])
    np.testing.assert_array_equal(found.outputs["result"], enlarged(wanted.outputs["result"], 64, 128))
    capture = found.captures[Source("enc 1")]
    np.testing.assert_array_equal(capture, enlarged(wanted.captures[Source("enc 1")], 64, 128))


@pytest.mark.parametrize("engine", ENGINES)
def test_full_results_are_the_same_bits_with_previews_between(runtime_registry, engine):
    session, plain = (session_of(runtime_registry, engine=engine) for _ in range(2))
    preview = Preview(session, 2)
    session.run()
    for scale in ("0.2", "0.3", "0.1"):
        session.set_param("noise", "scale", scale)
        plain.set_param("noise", "scale", scale)
        before = preview.run().outputs["result"]
        full = session.run()
        assert full.outputs["result"].tobytes() == plain.run().outputs["result"].tobytes()
        assert before.shape == full.outputs["result"].shape
    assert all(step.cached for step in session.run().steps)


def test_a_preview_follows_every_kind_of_change(runtime_registry):
    session = session_of(runtime_registry, unet())
    preview = Preview(session, 2)
    first = preview.run().outputs["result"]
    assert all(step.cached for step in preview.run().steps)
    session.set_input("image", pixels(64, 128, seed=1), is_image=False)
    second = preview.run().outputs["result"]
    assert not np.array_equal(first, second)
    session.set_weights(unet_weights(seed=5))
    third = preview.run().outputs["result"]
    assert not np.array_equal(second, third)
    graph = session.graph.copy()
    session.set_graph(analysed())
    assert not np.array_equal(third, preview.run().outputs["result"])
    session.set_graph(graph)
    np.testing.assert_array_equal(third, preview.run().outputs["result"])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_preview_of_changed_weights_is_a_run_on_the_reduced_picture(runtime_registry, layout):
    made, small = (session_of(runtime_registry, unet(), engine="onnxruntime", layout=layout) for _ in range(2))
    small.set_input("image", resized(pixels(64, 128), 32, 64), is_image=False)
    preview = Preview(made, 2)
    preview.run()
    for seed in (5, 6):
        for each in (made, small):
            each.set_weights(unet_weights(seed=seed))
        found, wanted = preview.run().outputs["result"], small.run().outputs["result"]
        np.testing.assert_allclose(found, enlarged(wanted, 64, 128), rtol=1e-4, atol=1e-5)


def test_weights_that_change_are_compiled_once(runtime_registry, monkeypatch):
    """The time machine changes the weights at every step; the full result at its end is that of a session of these weights."""
    compiled = []
    real = ort_engine.inference_session

    def inference_session(*given, **named):
        compiled.append(given)
        return real(*given, **named)

    monkeypatch.setattr(ort_engine, "inference_session", inference_session)
    session = session_of(runtime_registry, engine="onnxruntime")
    session.run()
    preview = Preview(session, 2)
    preview.run()
    steps = [unet_weights(seed=seed) for seed in range(1, 6)]
    counts, coarse = [], []
    for weights in steps:
        compiled.clear()
        session.set_weights(weights)
        coarse.append(preview.run().outputs["result"])
        counts.append(len(compiled))
    assert counts[0] > 0
    assert counts[1:] == [0, 0, 0, 0]
    for weights, found in zip(steps, coarse, strict=True):
        fresh = Preview(session_of(runtime_registry, engine="onnxruntime", weights=weights), 2)
        np.testing.assert_allclose(found, fresh.run().outputs["result"], rtol=1e-4, atol=1e-5)
    plain = session_of(runtime_registry, engine="onnxruntime", weights=steps[-1]).run()
    np.testing.assert_array_equal(session.run().outputs["result"], plain.outputs["result"])


def test_weights_that_lack_a_tensor_are_named_when_they_are_exchanged(runtime_registry):
    session = session_of(runtime_registry, engine="onnxruntime")
    preview = Preview(session, 2)
    for seed in (1, 2):
        session.set_weights(unet_weights(seed=seed))
        preview.run()
    tensors = dict(unet_weights().tensors)
    tensors.pop(next(key for key in tensors if key.layer == "down"))
    session.set_weights(Weights(tensors))
    with pytest.raises(DiagnosticError, match="down"):
        preview.run()


def test_a_preview_computes_again_only_what_a_change_reaches(runtime_registry):
    session = session_of(runtime_registry)
    preview = Preview(session, 2)
    preview.run()
    for name, param, text in (("mix", "amount", "0.3"), ("noise", "scale", "0.3"), ("mix", "amount", "0.7")):
        session.set_param(name, param, text)
        ran = [layer for step in preview.run().steps if not step.cached for layer in step.layers]
        assert ("enc 1" in ran) == (name == "noise")
        assert ran[-1] == "mix"
    session.set_input("image", pixels(64, 128, seed=1), is_image=False)
    assert not any(step.cached for step in preview.run().steps)


def test_padded_inputs_come_out_at_the_size_of_the_picture(runtime_registry):
    session = session_of(runtime_registry, unet(tiling=8), 61, 83)
    full = session.run().outputs["result"]
    assert full.shape == (1, 3, 61, 83)
    assert Preview(session, 2).run().outputs["result"].shape == full.shape
    assert Preview(session, 8).run().outputs["result"].shape == full.shape


def test_sizes_stay_divisible_as_often_as_the_full_one(runtime_registry):
    session = session_of(runtime_registry, unet(), 60, 100)  # 15 x 25 behind both halvings
    for factor in (2, 4, 8):
        assert Preview(session, factor).run().outputs["result"].shape == (1, 3, 60, 100)


def test_what_counts_in_pixels_is_scaled_down(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="128x64x3"),
            layer("noise", "noise", "image", kind="blur", scale="4.0"),
            layer("mix", "mix", "image,noise", selection="checkerboard", cell="16"),
            layer("result", "output", "mix"),
        ]
    )
    session = session_of(runtime_registry, graph, weights=Weights())
    found = Preview(session, 2).run([Source("noise")])
    small = session_of(runtime_registry, graph, weights=Weights())
    small.set_input("image", resized(pixels(64, 128), 32, 64), is_image=False)
    small.set_param("noise", "scale", "2.0")
    small.set_param("mix", "cell", "8")
    np.testing.assert_array_equal(found.outputs["result"], enlarged(small.run().outputs["result"], 64, 128))


def test_a_network_that_needs_its_size_refuses(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="128x64x3"),
            layer("flat", "flatten", "image"),
            layer("full", "fully_connected", "flat", features="4"),
            layer("result", "output", "full"),
        ]
    )
    from designer.files.weights import fill_missing, required_weights
    from designer.graph.inference import Inference

    weights = fill_missing(Weights(), required_weights(Inference(graph, runtime_registry)), 0)
    session = session_of(runtime_registry, graph, weights=weights)
    session.run()
    with pytest.raises(DiagnosticError):
        Preview(session, 2).run()


def test_what_the_next_run_will_take(runtime_registry):
    session = session_of(runtime_registry)
    assert session.expected() is None  # nothing has run yet
    session.run()
    assert session.expected() == 0.0
    took = {step.layers: step.milliseconds for step in session.run().steps}
    assert set(took.values()) == {0.0}
    session.estimate.learn([Step(layers, "", 10.0 * (n + 1)) for n, layers in enumerate(took)])
    session.set_param("mix", "amount", "0.3")
    assert session.expected() == pytest.approx(10.0 * len(took))  # the last step
    session.set_param("noise", "scale", "0.3")
    assert session.expected() == pytest.approx(sum(10.0 * (n + 1) for n in range(len(took))))
    session.run()
    assert session.expected() == 0.0
    assert RunEstimate().of(session.graph, session.plan()) == 0.0  # nothing changed


class Late(Interrupt):
    """Asked to end as soon as an engine listens, so that the run is ended in the middle."""

    def hook(self, function):
        threading.Timer(0.0, self.ask).start()
        return super().hook(function)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_can_be_given_up_and_done_again(runtime_registry, engine):
    session, plain = (session_of(runtime_registry, engine=engine) for _ in range(2))
    asked = Interrupt()
    asked.ask()
    with pytest.raises(InterruptedRunError):
        session.run(interrupt=asked)
    assert session.run(interrupt=Interrupt()).outputs["result"].tobytes() == plain.run().outputs["result"].tobytes()


def test_onnx_runtime_ends_in_the_middle(runtime_registry):
    chain = [layer("image", "input", dims="512x512x8")]
    for number in range(40):
        chain.append(layer(f"conv_{number}", "convolution", chain[-1].name, features=32, kernel="5x5"))
    graph = Graph([*chain, layer("result", "output", chain[-1].name)])
    from designer.files.weights import fill_missing, required_weights
    from designer.graph.inference import Inference

    weights = fill_missing(Weights(), required_weights(Inference(graph, runtime_registry)), 0)
    session = Session(graph, runtime_registry, weights, RunOptions(threads=1))
    session.set_input("image", pixels(512, 512, channels=8), is_image=False)
    with pytest.raises(InterruptedRunError):
        session.run(interrupt=Late())


def test_tensors_without_height_and_width_are_not_reduced(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="64x64x3"),
            layer("level", "tensor_input", shape="5"),
            layer("result", "output", "image"),
            layer("same", "output", "level"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), RunOptions(engine="torch", threads=1))
    session.set_input("image", pixels(64, 64), is_image=False)
    session.set_input("level", np.arange(5, dtype=np.float32)[None], is_image=False)
    outputs = Preview(session, 2).run().outputs
    assert outputs["same"].tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0]]
    assert outputs["result"].shape == (1, 3, 64, 64)
