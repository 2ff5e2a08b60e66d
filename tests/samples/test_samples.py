"""The samples: documents as promised, photographs with licences, and weights that do what the README says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import samples
from designer.files.document import read_document, write_document
from designer.files.settings import find_settings, read_settings
from designer.files.weights import load_weights, required_weights
from designer.graph.diagnostics import Severity
from designer.graph.inference import Inference
from designer.graph.model import GRID
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.images import read_image
from designer.runtime.session import Session

NODE = (200, 112)  # the largest a node is drawn, in canvas units
REGISTRY = load(entry_points=False)


def graph_of(name):
    reading = read_document(samples.path(f"{name}.xml"))
    assert reading.graph is not None
    assert not reading.diagnostics
    return reading.graph


def sample_weights(name):
    return load_weights(samples.weights(name), required_weights(Inference(graph_of(name), REGISTRY)))


def psnr(a, b):
    """In dB, of values clipped to 0..1."""
    error = np.mean((np.clip(a, 0, 1).astype(np.float64) - np.clip(b, 0, 1)) ** 2)
    return 10 * np.log10(1 / error)


def noisy_photograph(sigma, seed=0):
    clean = read_image(samples.HELD_OUT)
    noise = np.random.default_rng(seed).standard_normal(clean.shape, np.float32) * np.float32(sigma / 255)
    return clean, clean + noise


@pytest.mark.parametrize("path", samples.documents(), ids=lambda p: p.stem)
def test_document_is_valid_canonical_and_laid_out(path):
    graph = graph_of(path.stem)
    assert graph.name == path.stem
    assert write_document(graph) == path.read_bytes()
    assert not [d for d in Inference(graph, REGISTRY).diagnostics() if d.severity is not Severity.INFO]
    places = [layer.position for layer in graph]
    assert all(x % GRID == 0 and y % GRID == 0 for x, y in places)
    for index, (x, y) in enumerate(places):
        for other_x, other_y in places[index + 1 :]:
            assert abs(x - other_x) >= NODE[0] + 32 or abs(y - other_y) >= NODE[1] + 32
    for producer, _, consumer, _ in graph.links():
        assert graph[producer].position[0] < graph[consumer].position[0]


def test_denoiser_is_built_as_the_guide_says():
    graph = graph_of("denoiser")
    assert set(graph.consumers("input_image")) == {"conv_enc_b", "conv_enc_1", "conv_pre_shuffle"}
    assert graph["conv_2s"].params["stride"] == "2x2"
    assert graph["output_image"].producers() == {"conv_out_0"}


def test_analysis_document_is_the_denoiser_with_noise_and_mix():
    plain, analysed = graph_of("denoiser"), graph_of("denoiser_analyze")
    assert set(analysed.layers) - set(plain.layers) == {"noise_0", "mix_0"}
    assert set(analysed.consumers("input_image")) == {"noise_0", "mix_0"}
    assert set(analysed.consumers("noise_0")) == {"conv_enc_b", "conv_enc_1", "conv_pre_shuffle"}
    # The first input is what an exported network keeps; the second is the photograph before the noise.
    assert [str(source) for source in analysed["mix_0"].inputs] == ["conv_out_0", "input_image"]
    assert analysed["output_image"].producers() == {"mix_0"}


@pytest.mark.parametrize("name", ["denoiser", "denoiser_analyze", "dncnn"])
def test_weights_fit(name):
    weights = sample_weights(name)
    assert weights.complete
    assert not weights.note
    assert not [r for r in weights.reports if r.status.value != "bound"]


@pytest.mark.parametrize(
    ("name", "engine"), [("denoiser", "onnxruntime"), ("denoiser", "torch"), ("dncnn", "onnxruntime")]
)
def test_gains_seven_decibels_on_an_unseen_photograph(name, engine):
    pytest.importorskip(engine)
    clean, noisy = noisy_photograph(25)
    session = Session(graph_of(name), REGISTRY, sample_weights(name), RunOptions(engine=engine, threads=1))
    session.set_input("input_image", noisy, is_image=True)
    result = session.run().outputs["output_image"]
    assert result.shape == clean.shape
    before, after = psnr(noisy, clean), psnr(result, clean)
    print(f"{name}: noisy {before:.2f} dB, denoised {after:.2f} dB")
    assert after - before >= 7


def test_denoiser_leaves_a_clean_photograph_nearly_alone():
    clean, _ = noisy_photograph(0)
    session = Session(graph_of("denoiser"), REGISTRY, sample_weights("denoiser"), RunOptions(threads=1))
    session.set_input("input_image", clean, is_image=True)
    assert psnr(session.run().outputs["output_image"], clean) > 32


@pytest.mark.parametrize("name", ["denoiser", "denoiser_analyze", "dncnn"])
def test_settings_choose_weights_and_a_photograph(name):
    path = find_settings(samples.path(f"{name}.xml"))
    assert path is not None
    settings, findings = read_settings(path)
    assert not findings
    assert Path(settings.weights) == samples.weights(name)
    assert Path(settings.input_files["input_image"]) == samples.HELD_OUT


def test_photographs_have_licences_and_modest_sizes():
    reported = (samples.PHOTOGRAPHS / "LICENCES.md").read_text("utf-8")
    paths = [*samples.PHOTOGRAPHS.glob("*.jpg"), *samples.PHOTOGRAPHS.glob("*.png"), samples.HELD_OUT]
    assert len(paths) >= 6
    for path in paths:
        assert f"{path.name}`" in reported
        assert max(read_image(path).shape[2:]) <= 768
    assert samples.HELD_OUT.parent != samples.PHOTOGRAPHS
    assert not (samples.PHOTOGRAPHS / samples.HELD_OUT.name).exists()
