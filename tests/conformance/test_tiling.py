"""Random chains of layers, run whole and in tiles: the same, or refused with the layer in the way."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

REGISTRY = load(entry_points=False)
Made = tuple[str, dict[str, str]]


@st.composite
def sized(draw: st.DrawFn, most: int, least: int = 1) -> str:
    return f"{draw(st.integers(least, most))}x{draw(st.integers(least, most))}"


def layer(kind: str, **params: st.SearchStrategy[str]) -> st.SearchStrategy[Made]:
    return st.tuples(st.just(kind), st.fixed_dictionaries(params))


def one_of(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


COUNT = one_of("2", "3")
BORDER = one_of("zeros", "reflect", "replicate", "circular")
PADDING = one_of("same", "valid", "tuple")
FACTOR = one_of("1x2", "2x2", "3x2", "2x3")
LAYERS = st.one_of(
    layer(
        "convolution", features=COUNT, kernel=sized(5), stride=sized(3), dilation=sized(3), padding=PADDING,
        padding_tuple=sized(2, 0), padding_mode=BORDER,
    ),
    layer(
        "transposed_convolution", features=COUNT, kernel=sized(5), stride=sized(3), dilation=sized(2), padding=PADDING,
        padding_tuple=sized(2, 0), output_padding=sized(1, 0),
    ),
    layer("depthwise_convolution", kernel=sized(5), padding_mode=BORDER),
    layer("separable_convolution", features=COUNT, kernel=sized(4)),
    layer(
        "pooling", operation=one_of("max", "average", "lp"), size=sized(4), stride=sized(3), padding=sized(1, 0),
        ceil_mode=one_of("true", "false"), count_include_pad=one_of("true", "false"),
    ),
    layer("upsample", factor=FACTOR, method=one_of("nearest", "bilinear", "bicubic")),
    layer("unpooling", size=FACTOR),
    layer("space_to_depth", block_size=one_of("2")),
    layer("depth_to_space", block_size=one_of("2")),
    layer(
        "padding", mode=one_of("constant", "reflect", "replicate", "circular"), left=one_of("0", "2"), top=one_of("1", "3"),
        right=one_of("0", "1"), bottom=one_of("0", "2"), value=one_of("0.5"),
    ),
    layer("crop", left=one_of("0", "1"), top=one_of("0", "2"), right=one_of("0", "3"), bottom=one_of("0", "1")),
    layer("pad_to_multiple", multiple=one_of("2", "4", "5"), mode=one_of("zeros", "replicate", "reflect")),
    layer("gaussian_blur", sigma=one_of("0.5", "1.0")),
    layer("image_gradient"),
    layer("local_contrast_normalization", size=one_of("3", "5")),
)  # fmt: skip


def test_chains_have_no_seams(tiling_seeds: range) -> None:
    @seed(tiling_seeds.start)
    @settings(max_examples=len(tiling_seeds), deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        made=st.lists(LAYERS, min_size=1, max_size=4),
        height=st.integers(9, 45),
        width=st.integers(9, 45),
        side=st.sampled_from([4, 8, 13, 16]),
    )
    def check(made: list[Made], height: int, width: int, side: int) -> None:
        check_chain(made, height, width, side)

    check()


def check_chain(made: list[Made], height: int, width: int, side: int) -> None:
    """The chain's result in tiles is that of the whole image, or the layer that prevents it is named."""
    layers = [Layer("image", "input", params={"dims": f"{width}x{height}x4"})]
    for number, (kind, params) in enumerate(made):
        layers.append(Layer(f"{kind}_{number}", kind, inputs=(Source(layers[-1].name),), params=params))
    graph = Graph([*layers, Layer("result", "output", inputs=(Source(layers[-1].name),))])
    inference = Inference(graph, REGISTRY)
    assume(not inference.diagnostics())
    needed = required_weights(inference)
    weights = random_weights(needed, 0) if needed else Weights()
    array = np.random.default_rng(0).random((1, 4, height, width), np.float32)
    results = []
    for tile in (0, side):
        session = Session(graph, REGISTRY, weights, RunOptions(engine="torch", threads=1, tile=tile))
        session.set_input("image", array, is_image=False)
        try:
            results.append(session.run().outputs["result"])
        except DiagnosticError as error:
            assert tile
            (found,) = error.diagnostics
            assert found.code == "not-tileable"
            assert found.layer in graph
            return
    whole, tiled = results
    kinds = {kind for kind, params in made if kind != "upsample" or params["method"] != "nearest"}
    # Deviations that divide can be small, and the coordinates between pixels are FP32: their errors grow with the size.
    tolerance = 1e-4 if kinds & {"local_contrast_normalization", "upsample"} else 1e-5
    np.testing.assert_allclose(tiled, whole, rtol=tolerance, atol=tolerance * max(1.0, np.abs(whole).max()))
