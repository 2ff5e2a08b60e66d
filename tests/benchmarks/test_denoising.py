"""The sample denoiser on photographs that it was not trained with, against non-local means and BM3D.

The photographs are files of installed packages, cut to their central 384 x 384 pixels. The noise is Gaussian, from
`numpy.random.default_rng(0)`, and not clipped; the PSNR is of values clipped to 0..1. BM3D is the package `bm3d`, for color images;
its license is non-commercial, so it is installed for this measurement only: pip install bm3d scikit-image scikit-learn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

pytest.importorskip("pytest_benchmark")
for package in ("bm3d", "skimage", "sklearn", "onnxruntime"):
    if find_spec(package) is None:  # importing all of them takes seconds
        pytest.skip(f"{package} is not installed", allow_module_level=True)

from PIL import Image

import samples
from designer.files.document import read_document
from designer.files.weights import load_weights, required_weights
from designer.graph.inference import Inference
from designer.metrics import psnr
from designer.operators.registry import default_registry
from designer.runtime.api import Array, RunOptions
from designer.runtime.session import Session

SIGMAS = (15, 25, 50)
SIDE = 384
PHOTOGRAPHS = {
    "chelsea": "skimage/data/chelsea.png",
    "china": "sklearn/datasets/images/china.jpg",
    "flower": "sklearn/datasets/images/flower.jpg",
    "grace_hopper": "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
    "motorcycle": "skimage/data/motorcycle_left.png",
    "coins": "skimage/data/coins.png",
    "retina": "skimage/data/retina.jpg",
}
Denoiser = Callable[[Array, float], Array]  # 1 x 3 x H x W and the standard deviation in 0..1


def photograph(file: str, side: int) -> Array:
    """1 x 3 x H x W in 0..1, a multiple of 8 pixels high and wide."""
    package, _, inside = file.partition("/")
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    with Image.open(Path(spec.origin).parent / inside) as opened:
        image = opened.convert("RGB")
        if min(image.size) > 2 * SIDE:
            image = image.resize((512, 512), Image.Resampling.BOX)
        left, top = (max(0, (length - side) // 2) for length in image.size)
        pixels = np.asarray(image.crop((left, top, left + side, top + side)), np.float32) / 255
    height, width = (min(side, length) // 8 * 8 for length in (image.height, image.width))
    return np.ascontiguousarray(pixels[:height, :width].transpose(2, 0, 1)[None])


def sample_denoiser() -> Denoiser:
    registry = default_registry()
    graph = read_document(samples.path("denoiser.xml")).graph
    assert graph is not None
    weights = load_weights(samples.weights("denoiser"), required_weights(Inference(graph, registry)))
    session = Session(graph, registry, weights, RunOptions())

    def denoise(noisy: Array, sigma: float) -> Array:
        session.set_input("input_image", noisy, is_image=False)
        return next(iter(session.run().outputs.values()))

    return denoise


def nonlocal_means(noisy: Array, sigma: float) -> Array:
    from skimage.restoration import denoise_nl_means

    image = noisy[0].transpose(1, 2, 0)
    found = denoise_nl_means(
        image, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True, channel_axis=2
    )
    return found.transpose(2, 0, 1)[None].astype(np.float32)


def bm3d(noisy: Array, sigma: float) -> Array:
    from bm3d import bm3d_rgb

    image = noisy[0].transpose(1, 2, 0).astype(np.float64)
    return bm3d_rgb(image, sigma).transpose(2, 0, 1)[None].astype(np.float32)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_denoising_of_unseen_photographs(benchmark, report, sigma) -> None:
    names = list(PHOTOGRAPHS)[:1] if benchmark.disabled else list(PHOTOGRAPHS)
    methods = {"NLM": nonlocal_means, "BM3D": bm3d, "ours": sample_denoiser()}
    gains: dict[str, list[float]] = {name: [] for name in ("noisy", *methods)}
    print(f"\nnoise {sigma}/255, PSNR in dB: {', '.join(gains)}", file=sys.stderr)
    for name in names:
        clean = photograph(PHOTOGRAPHS[name], 64 if benchmark.disabled else SIDE)
        noise = np.random.default_rng(0).standard_normal(clean.shape, np.float32)
        noisy = clean + noise * np.float32(sigma / 255)
        gains["noisy"].append(psnr(noisy, clean))
        for title, method in methods.items():
            gains[title].append(psnr(method(noisy, sigma / 255), clean))
        print(f"{name:14}", *(f"{values[-1]:6.2f}" for values in gains.values()), file=sys.stderr)
    means = {title: mean(values) for title, values in gains.items()}
    print(f"{'mean':14}", *(f"{value:6.2f}" for value in means.values()), file=sys.stderr)
    behind = means["BM3D"] - means["ours"]
    report.value(f"denoiser behind BM3D at {sigma}/255, {len(names)} unseen photographs", behind, "dB", target=0)
    report.value(f"denoiser behind NLM at {sigma}/255", means["NLM"] - means["ours"], "dB", target=0)
    benchmark.pedantic(methods["ours"], (noisy, sigma / 255), rounds=1)
