"""Pictures in tiles: equal to the whole wherever the pieces meet, and refused with a reason where that cannot be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import check_recorded
from runtime_networks import analysed, chain, layer, pixels, unet, unet_weights

import samples
from designer.files.document import read_document
from designer.files.weights import Weights, fill_missing, load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.operators.api import Role
from designer.operators.inlining import inline
from designer.runtime import tiles
from designer.runtime.api import AUTO, RunOptions
from designer.runtime.interrupt import Interrupt, InterruptedRunError
from designer.runtime.plan import PartStep
from designer.runtime.session import Session
from designer.runtime.tiles import Tiling, peak_bytes

pytest.importorskip("onnxruntime")
pytest.importorskip("torch").set_num_threads(1)
ENGINES = ("onnxruntime", "torch")


def weights_for(graph, registry) -> Weights:
    needed = required_weights(Inference(inline(graph, registry), registry))
    return fill_missing(Weights(), needed, 0) if needed else Weights()


def pair(graph, registry, side, *shape, weights=None, engine="torch", **feeds):
    """The same network untiled and in tiles."""
    made = []
    for tile in (0, side):
        options = RunOptions(engine=engine, threads=1, tile=tile)
        session = Session(graph, registry, weights or weights_for(graph, registry), options)
        for name, array in (feeds or {"image": pixels(*shape)}).items():
            session.set_input(name, array, is_image=False)
        made.append(session)
    return made


def conv(number, kernel="3x3", **params):
    return (f"conv_{number}", "convolution", {"features": 4, "kernel": kernel, **params})


def check(whole, tiled, captures=()):
    sources = [Source(name) for name in captures]
    first, second = whole.run(sources), tiled.run(sources)
    assert "tiles" in second.note
    assert "tiles" not in first.note
    for name, array in first.outputs.items():
        np.testing.assert_allclose(second.outputs[name], array, atol=1e-5)
    for source, array in first.captures.items():
        np.testing.assert_allclose(second.captures[source], array, atol=1e-5)
    return first, second


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("side", [16, 40, 64])
def test_a_unet_with_skips(runtime_registry, engine, side):
    whole, tiled = pair(unet(), runtime_registry, side, 72, 104, weights=unet_weights(), engine=engine)
    first, second = check(whole, tiled, ["enc 1", "down", "plus"])
    assert [step.layers for step in first.steps] == [step.layers for step in second.steps]


def test_noise_is_drawn_once_for_all_tiles(runtime_registry):
    whole, tiled = pair(analysed(), runtime_registry, 32, 72, 104, weights=unet_weights())
    first, second = check(whole, tiled, ["noise"])
    assert first.captures[Source("noise")].tobytes() == second.captures[Source("noise")].tobytes()
    for session in (whole, tiled):
        session.set_param("mix", "amount", "0.3")
    again = tiled.run()
    assert [step.cached for step in again.steps] == [True, True, False]
    np.testing.assert_allclose(again.outputs["result"], whole.run().outputs["result"], atol=1e-5)


CHAINS = {
    "convolutions": (conv(1, "5x3"), conv(2), conv(3, "7x7")),
    "stride and nearest": (conv(1, stride="2x2"), conv(2), ("up", "upsample", {"factor": "2x2", "method": "nearest"})),
    "stride and bilinear": (conv(1, stride="4x2"), ("up", "upsample", {"factor": "4x2", "method": "bilinear"}), conv(2)),
    "even kernels": (conv(1, "4x4", stride="2x2"), conv(2, "2x2")),
    "valid": (conv(1, "5x5", padding="valid"), conv(2, padding="valid", stride="2x2")),
    "dilation": (conv(1, dilation="3x2"), conv(2, dilation="2x4")),
    "transposed": (conv(1, stride="2x2"), ("up", "transposed_convolution", {"features": 3, "kernel": "4x4", "stride": "2x2"})),
    "shuffles": (("deep", "space_to_depth", {"block_size": "4"}), conv(1, features=16), ("wide", "depth_to_space", {"block_size": "4"})),
    "enlarged": (conv(1), ("up", "depth_to_space", {"block_size": "2"}), conv(2)),
    "mirrored border": (conv(1, "5x5", padding_mode="reflect"), conv(2, padding_mode="replicate")),
    "standardized weights": (("conv", "weight_standardization", {"features": 2, "kernel": "7x3", "stride": "2x1", "dilation": "1x2"}),),
    "blur": (("blur", "gaussian_blur", {"sigma": "1.5"}), conv(1)),
    "local contrast": (("norm", "local_contrast_normalization", {"size": "5"}),),
    "pooling": (("a", "pooling", {"operation": "average", "size": "3x3", "stride": "2x2"}), ("b", "pooling", {"operation": "lp", "size": "2x2", "stride": "1x1"})),
    "batch norm": (conv(1), ("norm", "batch_normalization", {}), conv(2)),
    "cut border": (conv(1), ("crop", "crop", {"left": 3, "top": 2, "right": 1, "bottom": 4}), conv(2)),
    "multiple": (conv(1), ("multiple", "pad_to_multiple", {"multiple": "8"}), conv(2)),
    "unpooling": (conv(1, stride="2x2"), ("wide", "unpooling", {"size": "2x2"}), conv(2)),
    "gaps": (("up", "transposed_convolution", {"features": 2, "kernel": "1x1", "stride": "3x2"}), conv(1), ("edges", "image_gradient", {})),
    "border cut off while enlarging": (
        ("up", "transposed_convolution", {"features": 3, "kernel": "3x4", "padding": "tuple", "padding_tuple": "2x3"}), conv(1)
    ),
    "mirrored, border not read": (conv(1, "2x2", dilation="2x2", stride="2x2", padding_mode="reflect"), ("edges", "image_gradient", {})),
    "added border": (("pad", "padding", {"left": 3, "top": 2, "right": 5, "bottom": 4, "mode": "reflect"}), conv(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("shape", "side"), [((64, 96), 16), ((50, 61), 16), ((200, 228), 72)])
def test_chains(runtime_registry, name, shape, side):
    if name == "shuffles" and shape[0] % 4:
        shape = (52, 60)
    whole, tiled = pair(chain(*CHAINS[name]), runtime_registry, side, *shape)
    check(whole, tiled)


def test_sizes_that_no_stride_divides(runtime_registry):
    for height in range(61, 66):
        whole, tiled = pair(
            chain(conv(1, stride="2x2"), conv(2, stride="2x2"), conv(3)), runtime_registry, 16, height, 70
        )
        check(whole, tiled)


def test_padding_to_a_multiple_and_several_inputs(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="64x48x3", tiling="8"),
            layer("mask", "input", dims="32x24x1", tiling="4"),
            layer("conv", "convolution", "image", ActivationSpec("softmax", {}), features=4, stride="2x2"),
            layer("cat", "concatenation", "conv,mask", axis="1"),
            layer("up", "upsample", "cat", factor="2x2", method="bilinear"),
            layer("result", "output", "up"),
        ]
    )
    feeds = {"image": pixels(61, 83), "mask": pixels(31, 42, channels=1)}
    whole, tiled = pair(graph, runtime_registry, 24, **feeds)
    first, _ = check(whole, tiled)
    assert first.outputs["result"].shape[2:] == (61, 83)


@pytest.mark.parametrize("name", ["denoiser.xml", "oidn_like.xml", "residual_blocks.xml"])
def test_the_samples(runtime_registry, name):
    graph = read_document(samples.path(name)).graph
    folder = samples.path(name).parent / "weights" / name.removesuffix(".xml")
    weights = weights_for(graph, runtime_registry)
    if folder.is_dir():
        weights = load_weights(folder, required_weights(Inference(inline(graph, runtime_registry), runtime_registry)))
    inputs = {
        item.name: pixels(160, 224, channels=int(item.params["dims"].split("x")[2]))
        for item in graph
        if item.type == "input"
    }
    whole, tiled = pair(graph, runtime_registry, 64, weights=weights, engine="onnxruntime", **inputs)
    check(whole, tiled)


def test_a_tile_of_which_a_crop_leaves_nothing(runtime_registry):
    graph = chain(
        ("pad", "pad_to_multiple", {"multiple": 5}),
        ("conv", "depthwise_convolution", {"kernel": "1x2"}),
        ("depth", "space_to_depth", {"block_size": 2}),
        ("crop", "crop", {"left": 1, "top": 2, "right": 3, "bottom": 1}),
        size="27x19x4",
    )
    sides = pair(graph, runtime_registry, 4, image=pixels(19, 27, channels=4))
    check(*sides)
    check(*sides, ["depth"])


def test_a_batch_is_kept(runtime_registry):
    whole, tiled = pair(unet(), runtime_registry, 32, 64, 64, 2, weights=unet_weights())
    assert check(whole, tiled)[1].outputs["result"].shape == (2, 3, 64, 64)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batches", [(1, 3), (3, 1)])
def test_one_image_can_be_added_to_each_of_a_batch(runtime_registry, engine, batches):
    fixed = {1: "1", 3: "0"}  # 0: any number of images
    graph = Graph(
        [
            layer("first", "input", dims="48x40x3", batch=fixed[batches[0]]),
            layer("second", "input", dims="48x40x3", batch=fixed[batches[1]]),
            layer("conv", "convolution", "first", features=3, kernel="3x3"),
            layer("sum", "element_wise", "conv,second", operation="add"),
            layer("result", "output", "sum"),
        ]
    )
    feeds = {name: pixels(40, 48, count) for name, count in zip(("first", "second"), batches, strict=True)}
    sides = pair(graph, runtime_registry, 16, engine=engine, **feeds)
    assert check(*sides)[1].outputs["result"].shape == (3, 3, 40, 48)


GLOBAL = {
    "global pooling": (conv(1), ("mean", "global_pooling", {})),
    "instance norm": (conv(1), ("norm", "instance_normalization", {})),
    "group norm": (conv(1), ("norm", "group_normalization", {"groups": 2})),
    "adaptive": (("pool", "adaptive_pooling", {"size": "4x4"}),),
    "flatten": (("flat", "flatten", {}), ("dense", "fully_connected", {"features": 4})),
    "resize": (("size", "resize", {"size": "40x30"}),),
    "wrapped border": (("wrapped", "depthwise_convolution", {"kernel": "7x7", "padding_mode": "circular"}),),
    "turned": (("turned", "permute", {"axes": "0,1,3,2"}),),
    "repeated": (("repeated", "tile", {"repeats": "1,1,2,2"}),),
    "chosen rows": (("chosen", "selector", {"indices": "7,-1,3", "axis": "2"}),),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_what_reads_the_whole_picture_is_refused_by_name(runtime_registry, name):
    graph = chain(*GLOBAL[name])
    _, tiled = pair(graph, runtime_registry, 16, 48, 64)
    with pytest.raises(DiagnosticError) as caught:
        tiled.run()
    (found,) = caught.value.diagnostics
    assert found.code == "not-tileable"
    assert found.layer == next(n for n, t, _ in GLOBAL[name] if t != "convolution")
    assert found.remedy


def part_of(session) -> PartStep:
    return next(step for step in session.plan().steps if isinstance(step, PartStep))


def tiling_text(graph, registry) -> str:
    """The stride and the surrounding pixels of the first part in tiles, or why it is refused."""
    session = Session(graph, registry, weights_for(graph, registry), RunOptions(engine="torch", threads=1))
    try:
        tiling = Tiling(session.inference, part_of(session))
    except DiagnosticError as error:
        return error.diagnostics[0].message
    units = [tiling.unit(axis) for axis in (0, 1)]
    return f"multiples of {units}, around {[tiling.around(axis) for axis in (0, 1)]}"


INPUTS = (
    ("image",), ("image", "other"), ("image", "other", "image"), ("gray",), ("color",), ("small", "image"), ("image", "gray"),
)  # fmt: skip


def test_every_operator_in_tiles_or_the_reason_why_not(runtime_registry):
    lines = []
    for cls in runtime_registry:
        for inputs in INPUTS if cls.role is Role.COMPUTE else ():
            sizes = {"image": "48x40x4", "other": "48x40x4", "gray": "48x40x1", "color": "48x40x3", "small": "24x20x4"}
            graph = Graph(
                [
                    *(layer(name, "input", dims=sizes[name]) for name in dict.fromkeys(inputs)),
                    layer("it", cls.type, ",".join(inputs)),
                    layer("conv", "convolution", "it", features=2, kernel="3x5"),
                    layer("result", "output", "conv"),
                ]
            )
            if Inference(graph, runtime_registry).states["conv"].outputs is not None:
                lines.append(f"{cls.type} of {', '.join(inputs)}: {tiling_text(graph, runtime_registry)}")
                break
    check_recorded("tiles/operators.txt", "\n".join([*lines, ""]))


MEETING = {
    "a part that is not of images": [
        layer("vector", "tensor_input", shape="1,4"),
        layer("dense", "fully_connected", "vector", features=4),
        layer("result", "output", "dense"),
    ],
    "an image and another without its border": [
        layer("image", "input", dims="48x40x3"),
        layer("mask", "input", dims="44x36x3"),
        layer("conv", "convolution", "image", features=3, kernel="5x5", padding="valid"),
        layer("both", "concatenation", "conv,mask", axis="1"),
        layer("result", "output", "both"),
    ],
    "a half and a third of the size": [
        layer("image", "input", dims="48x36x3"),
        layer("half", "pooling", "image", size="2x2", stride="2x2"),
        layer("third", "pooling", "image", size="3x3", stride="3x3"),
        layer("wide half", "upsample", "half", factor="2x2"),
        layer("wide third", "upsample", "third", factor="3x3"),
        layer("sum", "element_wise", "wide half,wide third", operation="add"),
        layer("result", "output", "sum"),
    ],
    "one pixel for all": [
        layer("image", "input", dims="48x40x3"),
        layer("color", "input", dims="1x1x3"),
        layer("sum", "element_wise", "image,color", operation="add"),
        layer("conv", "convolution", "sum", features=3, kernel="3x3"),
        layer("result", "output", "conv"),
    ],
    "an image in an output that is passed through": [
        layer("image", "input", dims="48x40x3"),
        layer("conv", "convolution", "image", features=3, kernel="3x3"),
        layer("first", "output", "conv"),
        layer("next", "convolution", "conv", features=3, kernel="5x1"),
        layer("second", "output", "next"),
    ],
}  # fmt: skip


def test_where_images_of_several_sizes_meet(runtime_registry):
    lines = [f"{name}: {tiling_text(Graph(layers), runtime_registry)}" for name, layers in MEETING.items()]
    check_recorded("tiles/sizes_that_meet.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize("order", ["color,image,line", "image,line,color", "line,color,image"])
@pytest.mark.parametrize("captures", [(), ("gain", "row", "sum")])
def test_inputs_of_one_pixel_or_line_belong_to_every_tile(runtime_registry, order, captures):
    sizes = {"image": "48x40x3", "color": "1x1x3", "line": "48x1x3"}
    graph = Graph(
        [
            *(layer(name, "input", dims=sizes[name]) for name in order.split(",")),
            layer("gain", "convolution", "color", ActivationSpec("sigmoid", {}), features=3, kernel="1x1"),
            layer("norm", "global_pooling", "gain"),
            layer("row", "convolution", "line", features=3, kernel="5x1"),
            layer("wide", "convolution", "image", features=3, kernel="3x5"),
            layer("scaled", "element_wise", "wide,gain", operation="multiply"),
            layer("more", "element_wise", "scaled,norm", operation="add"),
            layer("sum", "element_wise", "more,row", operation="add"),
            layer("end", "convolution", "sum", features=2, kernel="3x3", stride="2x2"),
            layer("result", "output", "end"),
            layer("single", "output", "gain"),
        ]
    )
    feeds = {"image": pixels(40, 48), "color": pixels(1, 1), "line": pixels(1, 48)}
    check(*pair(graph, runtime_registry, 16, **feeds), captures)


def test_an_engine_that_fails_in_a_tile_says_so(runtime_registry, monkeypatch):
    _, tiled = pair(chain(conv(1)), runtime_registry, 16, 48, 64)
    failed = DiagnosticError.of("out-of-memory", "not enough memory", layer="conv_1", remedy="close other programs")

    def run(*_):
        raise failed

    monkeypatch.setattr(tiled, "tile_session", lambda graph: SimpleNamespace(set_input=lambda *_, **__: None, run=run))
    with pytest.raises(DiagnosticError) as caught:
        tiled.run()
    (found,) = caught.value.diagnostics
    assert found == replace(failed.diagnostics[0], message="in tiles: not enough memory")


def test_overlap_is_the_receptive_field(runtime_registry):
    whole, _ = pair(chain(conv(1), conv(2, "5x5"), conv(3)), runtime_registry, 16, 64, 64)
    tiling = Tiling(whole.inference, part_of(whole))
    assert tiling.around(0) == (4, 4)
    assert tiling.unit(0) == 1
    deep, _ = pair(unet(), runtime_registry, 16, 64, 64, weights=unet_weights())
    assert Tiling(deep.inference, part_of(deep)).unit(1) == 4


def test_memory_decides_where_nobody_does(runtime_registry):
    graph, weights = unet(), unet_weights()
    whole = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1))
    whole.set_input("image", pixels(256, 256), is_image=False)
    first = whole.run()
    assert first.note == ""
    estimate = peak_bytes(whole.inference, part_of(whole), 1)
    assert estimate > 8 * 256 * 256 * 4
    small = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1), memory=int(estimate / 3))
    small.set_input("image", pixels(256, 256), is_image=False)
    second = small.run()
    assert "tiles" in second.note
    np.testing.assert_allclose(second.outputs["result"], first.outputs["result"], atol=1e-5)
    assert small.options.tile == AUTO
    tiny = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1), memory=10_000)
    tiny.set_input("image", pixels(256, 256), is_image=False)
    with pytest.raises(DiagnosticError) as caught:
        tiny.run()
    assert caught.value.diagnostics[0].code == "out-of-memory"


def test_tiles_take_no_more_memory_than_they_gain_from(runtime_registry, monkeypatch):
    graph = chain(conv(1), conv(2, "5x5"), conv(3))
    weights = weights_for(graph, runtime_registry)
    session = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1), memory=1 << 40)
    session.set_input("image", pixels(250, 510), is_image=False)
    whole = session.run()
    assert whole.note == ""
    needed = peak_bytes(session.inference, part_of(session), 1)
    monkeypatch.setattr(tiles, "WHOLE", needed / 2)
    monkeypatch.setattr(tiles, "USUAL", needed / 10)
    session.invalidate()
    reported = []
    result = session.run(progress=lambda done, total, text: reported.append(total))
    assert (
        result.note == "run in 15 tiles of up to 104 x 104 pixels"
    )  # a tenth of the area, less the surrounding pixels
    assert max(reported) == 15
    np.testing.assert_allclose(result.outputs["result"], whole.outputs["result"], atol=1e-5)
    monkeypatch.setattr(tiles, "USUAL", 1)  # tiles that would consist of overlaps only
    session.invalidate()
    assert "tiles of up to 64 x 64" in session.run().note


def test_tiles_of_more_images_are_smaller(runtime_registry):
    graph = chain(conv(1), conv(2, "5x5"), conv(3))
    weights = weights_for(graph, runtime_registry)
    sides = []
    for count in (1, 4):
        session = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1), memory=8_000_000)
        session.set_input("image", pixels(300, 400, count), is_image=False)
        sides.append(int(session.run().note.split()[-2]))
        needed = peak_bytes(session.inference, part_of(session), count) * (sides[-1] + 8) ** 2 / (300 * 400)
        assert 0.8 * 8_000_000 < needed <= 8_000_000
    assert sides[0] > 1.8 * sides[1]


@pytest.mark.parametrize("count", [1, 3])
def test_what_cannot_be_cut_runs_whole_although_it_is_large(runtime_registry, monkeypatch, count):
    graph = chain(*GLOBAL["instance norm"])
    session = Session(
        graph, runtime_registry, weights_for(graph, runtime_registry), RunOptions(engine="torch", threads=1)
    )
    session.set_input("image", pixels(96, 128, count), is_image=False)
    monkeypatch.setattr(tiles, "WHOLE", 1)
    assert session.run().note == ""


def test_tiles_are_equal_in_size(runtime_registry):
    """A narrow rest would be cut as large as the others, to share what is compiled."""
    whole, _ = pair(chain(conv(1)), runtime_registry, 16, 64, 100)
    assert [t.core for t in Tiling(whole.inference, part_of(whole)).tiles(1, 96)] == [(0, 50), (50, 100)]


def test_a_run_in_tiles_tells_progress_and_can_be_given_up(runtime_registry):
    _, tiled = pair(unet(), runtime_registry, 32, 64, 96, weights=unet_weights())
    reported = []
    tiled.run(progress=lambda done, total, text: reported.append((done, total, text)))
    assert [t[:2] for t in reported[1:7]] == [(n, 6) for n in range(6)]
    assert reported[1][2].endswith("tile 1 of 6")
    tiled.invalidate()
    asked = Interrupt()
    with pytest.raises(InterruptedRunError):
        tiled.run(progress=lambda done, total, text: asked.ask() if "tile 3" in text else None, interrupt=asked)


def test_what_neither_fits_nor_can_be_cut_is_refused_with_both_reasons(runtime_registry):
    graph = chain(*GLOBAL["instance norm"])
    weights = weights_for(graph, runtime_registry)
    for memory, fits in ((100_000, False), (600_000, True)):
        session = Session(graph, runtime_registry, weights, RunOptions(engine="torch", threads=1), memory=memory)
        session.set_input("image", pixels(96, 128), is_image=False)
        if fits:  # above the share that is taken without thought, below what there is
            assert session.run().note == ""
            continue
        with pytest.raises(DiagnosticError) as caught:
            session.run()
        (found,) = caught.value.diagnostics
        assert (found.code, found.layer) == ("out-of-memory", "norm")
        assert "reads the whole image at once" in found.message
        assert found.message.endswith("it needs about 384 KiB, 97.7 KiB are free")
