"""ONNX files with open height and width: what torch computes at each size, or the layer that does not allow it."""

from __future__ import annotations

import numpy as np
import pytest
from operator_oracles import TORCH, Case
from runtime_networks import layer, pixels, unet, unet_weights

import samples
from designer.files.document import read_document
from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.types import ShapeError, TensorType
from designer.operators.inlining import inline
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
REGISTRY = load(entry_points=False)


def weights_for(graph: Graph) -> Weights:
    needed = required_weights(Inference(inline(graph, REGISTRY), REGISTRY))
    return random_weights(needed, 0) if needed else Weights()


def chain(*layers: tuple[str, dict[str, object]], size: str = "32x24x3") -> Graph:
    made = [layer("image", "input", dims=size)]
    for type_, params in layers:
        made.append(layer(type_, type_, made[-1].name, **params))
    return Graph([*made, layer("result", "output", made[-1].name)], name="chain")


CONV = ("convolution", {"features": 8})
OPEN = {
    "u-net": unet(),
    "denoiser": read_document(samples.path("denoiser.xml")).graph,
    "oidn_like": read_document(samples.path("oidn_like.xml")).graph,
    "residual_blocks": read_document(samples.path("residual_blocks.xml")).graph,
    "sizes inside": chain(
        CONV,
        ("group_normalization", {"groups": 4}),
        ("pad_to_multiple", {"multiple": 8, "mode": "reflect"}),
        ("space_to_depth", {"block_size": 2}),
        ("depth_to_space", {"block_size": 2}),
        ("unpooling", {"size": "2x3"}),
        ("crop", {"left": 1, "bottom": 2}),
        ("resize", {"size": "40x30", "method": "nearest"}),
    ),
    "pooled": chain(CONV, ("adaptive_pooling", {"size": "1x1"}), ("flatten", {}), ("fully_connected", {"features": 5})),
    "style": chain(CONV, ("gram_matrix", {})),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_three_sizes_agree_with_torch(name, tmp_path):
    graph = OPEN[name]
    weights = unet_weights() if name == "u-net" else weights_for(graph)
    report = export_onnx(graph, REGISTRY, weights, tmp_path / "open.onnx")
    assert report.sizes.multiple, report.sizes
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    exported = onnxruntime.InferenceSession(tmp_path / "open.onnx", options, providers=["CPUExecutionProvider"])
    session = Session(graph, REGISTRY, weights, RunOptions(engine="torch", threads=1, tile=0))
    channels = {item.name: int(item.params["dims"].split("x")[2]) for item in graph if item.type == "input"}
    step = max(report.sizes.multiple, 8 if name in ("u-net", "denoiser") else 1)
    for rows, columns in ((3, 5), (7, 2), (4, 4)):
        height, width = rows * step, columns * step
        if step == 1:
            height, width = 17 + rows, 19 + columns
        feeds = {n: pixels(height, width, channels=c, batch=2) for n, c in channels.items() if n in report.inputs}
        for feed, array in feeds.items():
            session.set_input(feed, array, is_image=False)
        expected = session.run().outputs
        for output, made in zip(report.outputs, exported.run(None, feeds), strict=True):
            scale = max(1.0, np.abs(expected[output]).max())
            np.testing.assert_allclose(made, expected[output], atol=2e-5 * scale)


BROADCAST = {  # two images, W x H x C
    "one pixel": ("32x24x3", "1x1x3"),
    "a column": ("32x24x3", "1x24x3"),
    "a row": ("32x24x3", "32x1x3"),
    "one channel": ("32x24x3", "32x24x1"),
    "as large": ("32x24x3", "32x24x3"),
    "a column and a row": ("1x24x3", "32x1x3"),
}


@pytest.mark.parametrize("case", BROADCAST)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("tiling", [0, 8])
def test_images_of_one_pixel_stay_so_while_others_grow(case, order, tiling, tmp_path):
    """Whichever of them is the first input, and also if the sizes grow by multiples of the present ones."""
    names = ("a", "b")[::order]
    dims = dict(zip(names, BROADCAST[case], strict=True))
    multiples = {name: 0 if "1" in text.split("x")[:2] else tiling for name, text in dims.items()}
    graph = Graph(
        [
            *(layer(name, "input", dims=dims[name], tiling=multiples[name]) for name in "ab"),
            layer("both", "element_wise", ",".join(names), operation="multiply"),
            layer("result", "output", "both"),
        ],
        name="broadcast",
    )
    report = export_onnx(graph, REGISTRY, Weights(), tmp_path / "broadcast.onnx")
    assert report.sizes.multiple == max(1, *multiples.values()), report.sizes
    exported = onnxruntime.InferenceSession(tmp_path / "broadcast.onnx", providers=["CPUExecutionProvider"])
    feeds, symbols = {}, {}
    for name, text in dims.items():
        width, height, channels = map(int, text.split("x"))
        feeds[name] = pixels(40 if height > 1 else 1, 16 if width > 1 else 1, channels=channels, batch=1)
        symbols[name] = ["height" if height > 1 else 1, "width" if width > 1 else 1]
    assert {entry.name: entry.shape[2:] for entry in exported.get_inputs()} == symbols
    assert exported.get_outputs()[0].shape[2:] == ["height", "width"]
    (made,) = exported.run(None, feeds)
    np.testing.assert_allclose(made, feeds["a"] * feeds["b"], atol=1e-6)


FIXED = {
    "fully_connected": (CONV, ("fully_connected", {"features": 5})),
    "adaptive_pooling": (CONV, ("adaptive_pooling", {"size": "4x4"})),
    "pooling": (CONV, ("pooling", {"size": "3x3", "stride": "2x2", "padding": "1x1", "ceil_mode": "true"})),
    "layer_normalization": (CONV, ("layer_normalization", {"shape": "8,24,32"})),
    "reshape": (("reshape", {"shape": "3,768"}),),
}


@pytest.mark.parametrize("name", FIXED)
def test_the_layer_that_fixes_the_size_is_named(name, tmp_path):
    graph = chain(*FIXED[name])
    report = export_onnx(graph, REGISTRY, weights_for(graph), tmp_path / "fixed.onnx")
    assert (report.sizes.multiple, report.sizes.layer) == (0, name)
    assert f"because of '{name}'" in str(report.sizes)
    assert "height" not in report.inputs["image"]


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        ((("flatten", {"start_axis": 2}),), "N x 3 x result_2"),
        ((("flatten", {"start_axis": 2}), ("permute", {"axes": "0,2,1"})), "N x result_1 x 3"),
        ((("permute", {"axes": "0,2,3,1"}),), "N x result_1 x result_height x 3"),
        (
            (
                ("flatten", {"start_axis": 2}),
                ("permute", {"axes": "0,2,1"}),
                (
                    "positional_encoding",
                    {"kind": "learned", "max_length": 200},
                ),  # it does not run at a much larger size
            ),
            "N x result_1 x 3",
        ),
    ],
    ids=["flat", "tokens", "channels last", "tokens of a limited number"],
)
def test_outputs_that_are_not_images_are_open_along_the_axes_that_follow_the_size(steps, shape, tmp_path):
    graph = chain(*steps, size="9x8x3")
    report = export_onnx(graph, REGISTRY, weights_for(graph), tmp_path / "open.onnx")
    assert (report.sizes.multiple, report.inputs) == (1, {"image": "N x 3 x height x width"})
    assert report.outputs == {"result": shape}
    exported = onnxruntime.InferenceSession(tmp_path / "open.onnx", providers=["CPUExecutionProvider"])
    (made,) = exported.run(None, {"image": pixels(6, 7, channels=3, batch=1)})
    assert made.size == 3 * 42


def test_a_network_without_images_blames_no_layer(tmp_path):
    graph = Graph(
        [
            layer("vector", "tensor_input", shape="5"),
            layer("scores", "fully_connected", "vector", features=3),
            layer("result", "output", "scores"),
        ],
        name="vectors",
    )
    report = export_onnx(graph, REGISTRY, weights_for(graph), tmp_path / "vectors.onnx")
    assert str(report.sizes) == "Height and width are fixed: no input is an image"


# --- no operator writes the size that was drawn into what it gives to torch -----------------------------------------

WITH_SIZED_WEIGHTS = {"custom", "fully_connected", "layer_normalization", "rms_normalization"}
IMAGES = [c for c in TORCH if c.subject.type != "opaque" and any(kind.rank == 4 for kind in c.types)]


def grown(kind: TensorType, first: TensorType, rows: int, columns: int) -> TensorType:
    """An image as large in proportion to the first one as before."""
    if kind.rank != 4:
        return kind
    (height, width), more = kind.concrete(1)[2:], []
    for size, whole, steps in zip((height, width), first.concrete(1)[2:], (rows, columns), strict=True):
        more.append(size + steps * size // whole if size * steps % whole == 0 else size)
    return kind.with_dim(2, more[0]).with_dim(3, more[1])


@pytest.mark.parametrize("case", IMAGES, ids=lambda case: case.name)
def test_torch_data_is_the_same_at_every_size(case: Case) -> None:
    if case.subject.type in WITH_SIZED_WEIGHTS:
        pytest.skip("its weights have the size of the image")
    first = next(kind for kind in case.types if kind.rank == 4)
    height, width = first.concrete(1)[2:]
    here = repr(case.subject.torch(case.types))
    for rows, columns in ((1, 2), (2, 1), (3, 5), (height, width), (height, 2 * width)):
        types = [grown(kind, first, rows, columns) for kind in case.types]
        try:
            case.subject.infer_checked(types)
        except ShapeError:
            continue
        assert repr(case.subject.torch(types)) == here


def test_a_learned_encoding_and_ctc_take_other_lengths() -> None:
    for case in (c for c in TORCH if c.subject.type in ("positional_encoding", "ctc_loss")):
        length = case.types[0].concrete(1)[1]
        other = [case.types[0].with_dim(1, length - 2), *case.types[1:]]
        case.subject.infer_checked(other)
        assert repr(case.subject.torch(other)) == repr(case.subject.torch(case.types))
