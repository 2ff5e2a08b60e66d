"""What one pixel depends on: by formula, and against not-a-numbers that are put into the input, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runtime_networks import chain, layer, pixels, unet, unet_weights

from designer.files.document import read_document
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.operators.inlining import inline
from designer.operators.torch_data import TorchCall, TorchExpr, TorchInput, TorchMethod, TorchModule
from designer.runtime.api import RunOptions
from designer.runtime.gradient import gradient
from designer.runtime.reach import obstacle
from designer.runtime.receptive import receptive
from designer.runtime.session import Session

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
RESULT = Source("result")
DATA = Path(__file__).parents[1] / "data"


def session_of(graph, registry, height=24, width=32, **feeds) -> Session:
    needed = required_weights(Inference(inline(graph, registry), registry))
    weights = fill_missing(Weights(), needed, 0) if needed else Weights()
    session = Session(graph, registry, weights, RunOptions(engine="torch", threads=1))
    for name, array in (feeds or {"image": pixels(height, width)}).items():
        session.set_input(name, array, is_image=False)
    return session


def poisoned(session, y, x):
    """The box found by running with one row or one column of not-a-numbers at a time."""
    fed = session.fed("image").array.copy()

    def reached(place):
        array = fed.copy()
        array[place] = np.nan
        session.set_input("image", array, is_image=False)
        return bool(np.isnan(session.run().outputs["result"][0, :, y, x]).any())

    rows = [r for r in range(fed.shape[2]) if reached(np.s_[:, :, r])]
    columns = [c for c in range(fed.shape[3]) if reached(np.s_[:, :, :, c])]
    session.set_input("image", fed, is_image=False)
    if not rows or not columns:
        return (0, 0, 0, 0)
    return (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)


def conv(number, kernel="3x3", **params):
    return (f"conv_{number}", "convolution", {"features": 2, "kernel": kernel, **params})


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_stack_of_convolutions_sees_two_pixels_more_each(runtime_registry, count):
    session = session_of(chain(*(conv(n) for n in range(count))), runtime_registry)
    found = receptive(session, RESULT, 12, 16, "image")
    assert found.box == (16 - count, 12 - count, 17 + count, 13 + count)
    assert (found.source, found.note) == ("computed", "")
    corner = receptive(session, RESULT, 0, 31, "image")
    assert corner.box == (31 - count, 0, 32, 1 + count)


CHAINS = {
    "stride": (conv(1, stride="2x2"), conv(2, "5x3", stride="2x1"), conv(3)),
    "dilation": (conv(1, dilation="3x2"), conv(2, dilation="1x2", stride="2x2")),
    "even kernels": (conv(1, "4x2"), conv(2, "2x4", stride="2x2")),
    "valid": (conv(1, "5x5", padding="valid"), conv(2, "3x3", padding="valid", stride="2x2")),
    "max pooling": (conv(1), ("pool", "pooling", {"operation": "max", "size": "3x2", "stride": "2x2"}), conv(2)),
    "average pooling": (("pool", "pooling", {"operation": "average", "size": "2x2", "stride": "2x2"}), conv(1)),
    "lp pooling": (("pool", "pooling", {"operation": "lp", "size": "2x2", "stride": "2x2"}), conv(1)),
    "nearest": (conv(1, stride="2x2"), ("up", "upsample", {"factor": "2x3", "method": "nearest"}), conv(2)),
    "bilinear": (conv(1, stride="2x2"), ("up", "upsample", {"factor": "2x2", "method": "bilinear"}), conv(2)),
    "bicubic": (("up", "upsample", {"factor": "2x2", "method": "bicubic"}), conv(2)),
    "transposed": (("up", "transposed_convolution", {"features": 2, "kernel": "4x3", "stride": "2x3"}), conv(1)),
    "transposed, gaps": (("up", "transposed_convolution", {"features": 2, "kernel": "2x1", "stride": "3x3"}),),
    "transposed, dilated": (
        ("up", "transposed_convolution", {"features": 2, "kernel": "3x2", "stride": "2x2", "dilation": "2x3"}),
    ),
    "shuffles": (
        ("deep", "space_to_depth", {"block_size": "2"}),
        conv(1, features=8),
        ("wide", "depth_to_space", {"block_size": "2"}),
    ),
    "mirrored border": (conv(1, "7x5", padding_mode="reflect"),),
    "wrapped border": (conv(1, "7x5", padding_mode="circular"),),
    "padding": (("pad", "padding", {"left": 3, "top": 1, "right": 0, "bottom": 2, "mode": "replicate"}), conv(1)),
    "blur": (("blur", "gaussian_blur", {"sigma": "1.0"}),),
    "standardized weights": (
        ("conv", "weight_standardization", {"features": 2, "kernel": "7x3", "stride": "2x1", "dilation": "1x2"}),
    ),
    "local contrast": (("norm", "local_contrast_normalization", {"size": "5"}),),
    "separable": (("sep", "separable_convolution", {"features": 2, "kernel": "5x3"}),),
    "turned": (conv(1, "5x3"), ("turned", "permute", {"axes": "0,1,3,2"}), conv(2, "3x1")),
    "channels last and back": (
        conv(1),
        ("last", "permute", {"axes": "0,2,3,1"}),
        ("bent", "unary", {"operation": "square"}),
        ("back", "permute", {"axes": "0,3,1,2"}),
        conv(2),
    ),
    "tiles": (conv(1), ("tiled", "tile", {"repeats": "1,1,2,3"}), conv(2)),
    "chosen channels": (conv(1), ("chosen", "selector", {"indices": "1,0"}), conv(2)),
    "chosen rows": (conv(1), ("chosen", "selector", {"indices": "7,-1,3", "axis": 2}), conv(2)),
    "multiple": (conv(1), ("multiple", "pad_to_multiple", {"multiple": "7"}), conv(2)),
    "unpooling": (conv(1, stride="3x2"), ("wide", "unpooling", {"size": "3x2"}), conv(2)),
    "smaller": (conv(1), ("size", "resize", {"size": "13x10"}), conv(2)),
    "larger": (("size", "resize", {"size": "53x41", "method": "bicubic"}), conv(2)),
    "nearest size": (conv(1), ("size", "resize", {"size": "20x14", "method": "nearest"})),
    "smoothed": (conv(1), ("size", "resize", {"size": "13x10", "antialias": "true"})),
    "smoothed, cubic": (conv(1), ("size", "resize", {"size": "11x7", "antialias": "true", "method": "bicubic"})),
    "enlarged to a size": (("size", "upsample", {"fixed_upscale": "50x31", "method": "bilinear"}), conv(1)),
    "cut": (conv(1), ("cut", "crop", {"left": 3, "top": 2, "right": 5, "bottom": 1}), conv(2)),
    "global": (conv(1), ("norm", "instance_normalization", {})),
}


@pytest.mark.parametrize("name", CHAINS)
def test_boxes_are_exact(runtime_registry, name):
    session = session_of(chain(*CHAINS[name]), runtime_registry)
    height, width = session.run().outputs["result"].shape[2:]
    for y, x in ((0, 0), (height // 2, width // 2), (height // 2 + 1, width // 3), (height - 1, width - 1)):
        found = receptive(session, RESULT, y, x, "image")
        assert found.source == "computed"
        assert found.box == poisoned(session, y, x), (y, x)


@pytest.mark.parametrize(
    "sized",
    [
        ("size", "resize", {"size": "21x9", "align_corners": "true"}),
        ("up", "upsample", {"factor": "2x3", "method": "bilinear", "align_corners": "true"}),
    ],
)
def test_boxes_between_aligned_corners_are_those_of_the_gradient(runtime_registry, sized):
    """torch multiplies some pixels by 0 there, which not-a-numbers survive."""
    session = session_of(chain(conv(1), sized), runtime_registry)
    height, width = session.run().outputs["result"].shape[2:]
    for y, x in ((0, 0), (height // 2, width // 3), (height - 1, width - 1)):
        slope = gradient(session, RESULT, "image", (None, y, x)).array != 0
        rows, columns = (np.flatnonzero(slope.any(axis=axes)) for axes in ((0, 1, 3), (0, 1, 2)))
        found = receptive(session, RESULT, y, x, "image")
        assert (found.box, found.source) == ((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1), "computed")


def test_a_unet_with_skips(runtime_registry):
    session = Session(unet(), runtime_registry, unet_weights(), RunOptions(engine="torch", threads=1))
    session.set_input("image", pixels(), is_image=False)
    for y, x in ((11, 14), (12, 17), (0, 31)):
        assert receptive(session, Source("out"), y, x, "image").box == poisoned(session, y, x)
    assert receptive(session, Source("enc 1"), 5, 6, "image").box == (5, 4, 8, 7)


def test_rows_that_are_channels_on_one_of_two_paths(runtime_registry):
    """A sum of an image whose rows are channels, and of the same image turned back: the latter reads a channel, the former all."""
    cube = [layer("image", "input", dims="6x6x6"), layer("turned", "permute", "image", axes="0,2,1,3")]
    both = [
        layer("back", "permute", "turned", axes="0,2,1,3"),
        layer("sum", "element_wise", "back,turned", operation="add"),
        layer("result", "output", "sum"),
    ]
    for layers in (
        [*cube, *both],
        [*cube, both[0], layer("sum", "element_wise", "turned,back", operation="add"), both[2]],
    ):
        session = session_of(Graph(layers), runtime_registry, image=pixels(6, 6, channels=6))
        for y, x in ((0, 0), (2, 3), (5, 1)):
            found = receptive(session, RESULT, y, x, "image")
            assert (found.box, found.source) == (poisoned(session, y, x), "computed")
            assert found.box == (x, 0, x + 1, 6)


def test_what_reads_whole_pictures_says_so(runtime_registry):
    session = session_of(chain(*CHAINS["global"]), runtime_registry)
    found = receptive(session, RESULT, 3, 4, "image")
    assert found.box == (0, 0, 32, 24)
    assert found.note == "'norm' reads the whole image"


def test_a_pixel_that_depends_on_nothing(runtime_registry):
    graph = chain(("pad", "padding", {"left": 4, "top": 0, "right": 0, "bottom": 0, "mode": "constant"}))
    found = receptive(session_of(graph, runtime_registry), RESULT, 3, 2, "image")
    assert found.box == (0, 0, 0, 0)
    assert "does not depend on 'image'" in found.note


def test_pixels_of_the_padding_are_those_of_the_edge(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3", tiling="16"),
            layer("conv", "convolution", "image", features=2, kernel="3x3"),
            layer("result", "output", "conv"),
        ]
    )
    session = session_of(graph, runtime_registry, 24, 30)
    assert receptive(session, Source("conv"), 31, 31, "image").box == (29, 23, 30, 24)


def test_what_is_not_known_is_measured(runtime_registry):
    same = ("same", "reshape", {"shape": "2,24,32"})
    session = session_of(chain(conv(1), same, conv(2)), runtime_registry)
    found = receptive(session, RESULT, 12, 16, "image")
    assert (found.box, found.source) == ((14, 10, 19, 15), "measured")
    assert "'same'" in found.note
    blur = ("noise", "noise", {"kind": "blur", "scale": "1.0"})
    session = session_of(chain(blur, conv(1), same, conv(2)), runtime_registry)
    found = receptive(session, RESULT, 12, 16, "image")
    assert (found.box, found.source) == ((11, 7, 22, 18), "measured")
    # Behind a stride of two columns, a column of the blur is two columns of the image.
    same = ("same", "reshape", {"shape": "2,24,16"})
    session = session_of(chain(conv(1, stride="2x1"), blur, same), runtime_registry)
    found = receptive(session, RESULT, 12, 8, "image")
    assert (found.box, found.source) == ((9, 8, 24, 17), "measured")


def test_unpooling_reads_the_windows_of_its_reference(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("conv", "convolution", "image", features=3, kernel="5x5"),
            layer("pool", "pooling", "image"),
            layer("wide", "unpooling", "pool,conv"),
            layer("result", "output", "wide"),
        ]
    )
    session = session_of(graph, runtime_registry)
    assert receptive(session, RESULT, 9, 13, "image").box == (10, 6, 16, 12)


def test_a_blur_before_a_border_up_to_a_multiple(runtime_registry):
    """What analysis layers read is counted."""
    graph = read_document(DATA / "receptive_blur.xml").graph
    session = session_of(graph, runtime_registry, **{"in": pixels(16, 16, channels=1)})
    found = receptive(session, Source("out"), 8, 8, "in")
    assert (found.box, found.source) == ((2, 2, 15, 15), "computed")


def test_analysis_layers_reach_as_far_as_they_say(runtime_registry):
    blur = ("noise", "noise", {"kind": "blur", "scale": "1.0"})
    session = session_of(chain(blur, conv(1)), runtime_registry)
    assert receptive(session, RESULT, 12, 16, "image").box == (12, 8, 21, 17)
    grain = ("noise", "noise", {"kind": "gaussian"})
    session = session_of(chain(grain, conv(1)), runtime_registry)
    assert receptive(session, RESULT, 12, 16, "image").box == (15, 11, 18, 14)


def test_attached_activations_that_mix_channels_reach_no_farther(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("conv", "convolution", "image", ActivationSpec("softmax", {}), features=4),
            layer("result", "output", "conv"),
        ]
    )
    assert receptive(session_of(graph, runtime_registry), RESULT, 5, 5, "image").box == (4, 4, 7, 7)


def test_places_that_are_not_there(runtime_registry):
    session = session_of(chain(conv(1)), runtime_registry)
    for y, x in ((24, 0), (0, 32), (-1, 0)):
        with pytest.raises(DiagnosticError, match="has no pixel"):
            receptive(session, RESULT, y, x, "image")
    with pytest.raises(DiagnosticError, match="no input layer"):
        receptive(session, RESULT, 0, 0, "conv_1")


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (TorchMethod("permute", TorchInput(0), (0, 1, 3, 2)), "it changes the order of the axes"),
        (TorchMethod("transpose", TorchInput(0), (2, 3)), "it changes the order of the axes"),
        (
            TorchCall("torch.tanh", (TorchMethod("transpose", TorchInput(0), (2, 3)),)),
            "it changes the order of the axes",
        ),
        (
            TorchCall("torch.nn.functional.pad", (TorchInput(0), (1, 1)), {"mode": "circular"}),
            "its border wraps around",
        ),
        (TorchModule("torch.nn.Conv2d", {"padding_mode": "circular"}), "its border wraps around"),
        (TorchCall("torch.nn.functional.pad", (TorchInput(0), (1, 1)), {"mode": "reflect"}), ""),
        (TorchMethod("clamp", TorchInput(0), (0, 1)), ""),
    ],
)
def test_layers_that_cannot_run_on_crops_say_why(expr: TorchExpr, reason: str) -> None:
    assert obstacle(expr) == reason
