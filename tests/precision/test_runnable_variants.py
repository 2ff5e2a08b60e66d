"""Graph passes and sparsity of variants apply wherever a network runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
from restoration_networks import restoring_unet, restoring_weights
from runtime_networks import RELU, layer

from app.computations import Compared, blame_between
from app.engine.protocol import Asked, OpenRequest, ProfileRequest, RunRequest, SetInputRequest
from app.engine.worker import Worker
from designer.files.document import write_document
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.metrics import psnr
from designer.passes.optimized_session import OptimizedSession
from designer.passes.passes import PASSES
from designer.precision.deployed_session import variant_session
from designer.precision.measure import measure_variants
from designer.precision.variants import runnable_variant
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image
from designer.runtime.preview import Preview
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder
from designer.surgery.sparsity import candidates, check_sparse
from exporters.variants import variant_model

IMAGE = np.random.default_rng(1).random((1, 3, 16, 16), np.float32)
TORCH = RunOptions("torch", threads=1)
OPTIMIZED = Variant("optimized", passes=tuple(PASSES))


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Two convolutions, each with a normalization and an activation as layers."""
    layers = [layer("image", "input", dims="16x16x3")]
    before = "image"
    for number in (1, 2):
        layers.append(layer(f"conv_{number}", "convolution", before, features=8))
        layers.append(layer(f"norm_{number}", "batch_normalization", f"conv_{number}"))
        layers.append(layer(f"act_{number}", "activation", f"norm_{number}", RELU))
        before = f"act_{number}"
    layers.append(layer("last", "convolution", before, features=3))
    layers.append(layer("result", "output", "last"))
    return Graph(layers, name="blocks")


@pytest.fixture(scope="module")
def weights(graph, registry) -> Weights:
    return fill_missing(Weights(), required_weights(Inference(graph, registry)), 3)


@pytest.fixture
def opened(graph, weights, tmp_path):
    """A worker, and a function that opens the network with options of a variant and answers a request."""
    save_weights(tmp_path / "weights", weights.tensors)
    write_image(tmp_path / "image.png", IMAGE)
    (tmp_path / "shared").mkdir()
    shared = SharedFolder(tmp_path / "shared")
    worker = Worker(shared, lambda event: None)

    def ask(request):
        return worker.answer(Asked(1, request))

    def open_(**more):
        text = write_document(graph).decode()
        ask(OpenRequest(text, str(tmp_path / "weights"), engine="torch", threads=1, **more))
        ask(SetInputRequest("image", str(tmp_path / "image.png")))

        def run(*capture):
            reply = ask(RunRequest(capture=capture))
            arrays = {name: shared.get(handle).copy() for name, handle in {**reply.outputs, **reply.captures}.items()}
            return arrays, [layer for step in reply.steps for layer in step.layers]

        return ask, run

    return open_


def test_a_run_applies_the_passes_and_hidden_layers_stay_those_of_the_document(opened):
    _, plain = opened()
    expected, _ = plain()
    ask, run = opened(passes=tuple(PASSES))
    found, layers = run()
    assert layers == ["conv_1", "conv_2", "last"]
    np.testing.assert_allclose(found["result"], expected["result"], atol=1e-5)
    captured, layers = run("norm_1", "act_1")
    assert "norm_1" in layers
    assert captured["norm_1"].min() < 0 <= captured["act_1"].min()
    rows = ask(ProfileRequest(iterations=1)).profile.runs[0].operators
    assert not {row.name for row in rows} & {"norm_1", "act_1"}


def test_a_session_after_passes_follows_all_changes(graph, weights, registry):
    full = Session(graph, registry, weights, TORCH)
    full.set_input("image", IMAGE, is_image=True)
    optimized = OptimizedSession(full, tuple(PASSES))
    assert optimized.current() is optimized.current()

    def check() -> None:
        np.testing.assert_allclose(optimized.current().run().outputs["result"], full.run().outputs["result"], atol=1e-5)

    check()
    full.set_param("conv_2", "features", "8")
    full.set_param("norm_1", "eps", "0.1")
    check()
    full.set_weights(Weights({key: array * np.float32(0.5) for key, array in weights.tensors.items()}))
    check()
    full.set_input("image", 1 - IMAGE, is_image=True)
    check()


def test_passes_do_not_run_again_for_another_image_or_a_slider(registry, monkeypatch):
    layers = [
        layer("image", "input", dims="16x16x3"),
        layer("noise", "noise", "image", scale="0.05"),
        layer("same", "activation", "noise", RELU),
        layer("conv", "convolution", "same", features=3),
        layer("result", "output", "conv"),
    ]
    graph = Graph(layers, name="noisy")
    made = fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)
    full = Session(graph, registry, made, TORCH)
    full.set_input("image", IMAGE, is_image=True)
    optimized = OptimizedSession(full, tuple(PASSES))
    before = optimized.current().run().outputs["result"]
    monkeypatch.setattr("designer.passes.optimized_session.optimize", None)
    full.set_param("noise", "scale", "0.2")
    full.set_input("image", 1 - IMAGE, is_image=True)
    found = optimized.current().run().outputs["result"]
    np.testing.assert_allclose(found, full.run().outputs["result"], atol=1e-5)
    assert np.abs(found - before).max() > 0.01


def test_a_sparse_variant_has_pruned_weights(graph, weights, registry, opened):
    ready = runnable_variant(Variant("sparse", sparsity="2:4"), graph, registry, weights, TORCH)
    found = candidates(graph, registry)
    assert set(check_sparse(found, ready.weights).values()) == {0}
    again = runnable_variant(Variant("sparse", sparsity="2:4"), graph, registry, ready.weights, TORCH)
    assert again.weights is ready.weights
    dense, _ = opened()[1]()
    sparse, _ = opened(sparsity="2:4")[1]()
    assert np.abs(dense["result"] - sparse["result"]).max() > 0
    with pytest.raises(DiagnosticError, match="'1:2', which is not known"):
        runnable_variant(Variant("x", sparsity="1:2"), graph, registry, weights, TORCH)


def test_a_variant_that_cannot_run_gets_its_reason_and_the_others_are_measured(graph, weights, registry):
    session = Session(graph, registry, weights, TORCH)
    session.set_input("image", IMAGE, is_image=True)
    variants = [Variant("pruned", sparsity="1:2"), OPTIMIZED]
    itself, pruned, optimized = measure_variants(session, TORCH, variants, variant_model, lambda *_: None)
    assert "'1:2', which is not known" in pruned.error
    assert (pruned.bytes, pruned.name) == (0, "pruned")
    assert not itself.error
    assert not optimized.error
    assert optimized.psnr > 80


def test_blame_compares_before_and_after_passes(graph, weights, registry):
    compared = Compared(
        graph, registry, weights, TORCH, lambda s: s.set_input("image", IMAGE, is_image=True), (OPTIMIZED,)
    )
    same = blame_between(compared, "fp32", "optimized")
    assert same.rms < 1e-5
    assert same.first is None


def test_calibrated_int8_runs_in_onnx_runtime_between_analysis_layers(registry, tmp_path):
    plain = restoring_unet(4, 32)
    layers = [
        layer("image", "input", dims="32x32x3", tiling=4),
        layer("noise", "noise", "image", scale="0.05"),
        *(
            replace(each, inputs=tuple(Source("noise") if s == Source("image") else s for s in each.inputs))
            for each in plain
            if each.name not in ("image", "result")
        ),
        layer("mix", "mix", "sum,noise"),
        layer("result", "output", "mix"),
    ]
    graph = Graph(layers, name="noisy")
    write_image(tmp_path / "a.png", np.random.default_rng(0).random((1, 3, 33, 38), np.float32))
    variant = Variant("int8", "int8", {"last": "float32"}, calibration=CalibrationRecipe(str(tmp_path)))
    session = Session(graph, registry, restoring_weights(plain, registry), TORCH)
    session.set_input_file("image", tmp_path / "a.png")
    itself, int8 = measure_variants(session, TORCH, [variant], variant_model, lambda *_: None)
    assert not int8.error
    assert not int8.emulated
    assert int8.milliseconds > 0
    assert 20 < int8.psnr < 80
    assert int8.clean_psnr == pytest.approx(itself.clean_psnr, abs=2)
    assert int8.clean_psnr != itself.clean_psnr
    ready = runnable_variant(variant, graph, registry, session.weights, TORCH)
    deployed = variant_session(ready, registry, variant, TORCH)
    deployed.set_input_file("image", tmp_path / "a.png")
    whole = session.run().outputs["result"]
    assert psnr(whole, deployed.run().outputs["result"]) == pytest.approx(int8.psnr, abs=0.01)  # noise and Mix run too
    preview = Preview(deployed, 2)
    first = preview.run().outputs["result"]
    assert first.shape == (1, 3, 33, 38)
    deployed.set_weights(fill_missing(Weights(), required_weights(deployed.inference), 1))
    assert not np.array_equal(preview.run().outputs["result"], first)
    made = session.run([Source("sum"), Source("image")]).captures
    assert made[Source("image")].shape != (1, 3, 33, 38)
    shown = [made[Source(name)][:, :, :33, :38] for name in ("image", "sum")]
    assert itself.clean_psnr == pytest.approx(psnr(*shown), abs=1e-6)  # of the image, without its padding


def test_emulated_int8_is_as_far_from_fp32_as_what_is_deployed(registry, tmp_path):
    graph = restoring_unet(4, 32)
    picture = np.random.default_rng(0).random((1, 3, 32, 32), np.float32)
    write_image(tmp_path / "a.png", picture)
    variant = Variant("int8", "int8", {"last": "float32"}, calibration=CalibrationRecipe(str(tmp_path)))
    session = Session(graph, registry, restoring_weights(graph, registry), TORCH)
    session.set_input_file("image", tmp_path / "a.png")
    _, deployed = measure_variants(session, TORCH, [variant], variant_model, lambda *_: None)
    assert not deployed.emulated
    ready = runnable_variant(variant, graph, registry, session.weights, TORCH)
    emulated = Session(ready.graph, registry, ready.weights, ready.options)
    emulated.set_input_file("image", tmp_path / "a.png")
    one, other = (each.run().outputs["result"] for each in (session, emulated))
    assert psnr(one, other) == pytest.approx(deployed.psnr, abs=2)
