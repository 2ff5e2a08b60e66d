"""Reach, receptive fields and gradients of small networks whose answers follow by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runtime_networks import layer, pixels

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.runtime.api import RunOptions
from designer.runtime.gradient import gradient
from designer.runtime.layer_reach import layer_reach, reached
from designer.runtime.reach import CHANNELS, COLUMNS, ROWS, UnknownReachError
from designer.runtime.receptive import receptive
from designer.runtime.session import Session

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def boxes(graph, registry, of, y, x) -> tuple[dict[str, tuple], str]:
    """First and last row, first and last column, and the channels of every tensor that a pixel depends on."""
    found, whole = reached(Inference(graph, registry), Source.parse(of), y, x)
    return {
        str(source): (
            *(int(n) for axis in (ROWS, COLUMNS) for n in (box[axis][0], box[axis][-1])),
            *([box[CHANNELS].tolist()] if CHANNELS in box else []),
        )
        for source, box in found.items()
    }, whole


def conv(name, before, kernel, **params):
    return layer(name, "convolution", before, features=3, kernel=f"{kernel}x{kernel}", **params)


@pytest.mark.parametrize("kernels", [(5, 3), (3, 5)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_paths_of_different_reach_are_joined(runtime_registry, kernels, order):
    branches = [conv("a", "image", kernels[0]), conv("b", "image", kernels[1])]
    graph = Graph(
        [
            layer("image", "input", dims="20x16x3"),
            *(branches[i] for i in order),
            layer("sum", "element_wise", "a,b" if order[0] else "b,a", operation="add"),
            layer("all", "element_wise", "image,sum", operation="add"),
        ]
    )
    found, whole = boxes(graph, runtime_registry, "all", 7, 9)
    assert (found["image"][:4], whole) == ((5, 9, 7, 11), "")
    assert found["a"][:4] == found["b"][:4] == (7, 7, 9, 9)
    corner, _ = boxes(graph, runtime_registry, "all", 0, 19)
    assert corner["image"][:4] == (0, 2, 17, 19)


@pytest.mark.parametrize(
    ("grown", "size", "inputs"),
    [
        (layer("t", "transposed_convolution", "image", features=4, kernel="2x2", stride="2x2"), (8, 6), "image"),
        (layer("t", "upsample", "image", factor="2x2", method="nearest"), (8, 6), "image"),
        (layer("t", "element_wise", "image,one", operation="multiply"), (4, 3), "image,one"),
        (layer("t", "element_wise", "one,image", operation="multiply"), (4, 3), "image,one"),
    ],
)
def test_an_attached_activation_does_not_change_what_a_layer_with_another_size_than_its_input_reads(
    runtime_registry, grown, size, inputs
):
    width, height = size
    images = [layer("image", "input", dims="4x3x4"), layer("one", "input", dims="1x1x4")][: 1 + inputs.count(",")]
    plain, bent = (
        Inference(Graph([*images, made]), runtime_registry)
        for made in (grown, replace(grown, activation=ActivationSpec("relu")))
    )
    assert not bent.diagnostics()
    for axis, count in ((ROWS, height), (COLUMNS, width)):
        for place in range(count):
            one, other = (layer_reach(each, "t", 0, axis, np.array([place])) for each in (plain, bent))
            assert {port: places.tolist() for port, places in one.places.items()} == {
                port: places.tolist() for port, places in other.places.items()
            }
            assert all(places.size for places in other.places.values())


def test_every_output_of_a_layer_has_its_own_reach(runtime_registry):
    graph = Graph([layer("image", "input", dims="20x16x4"), layer("parts", "split", "image", axis="1", parts="2")])
    inference = Inference(graph, runtime_registry)
    ports = inference.tensors("parts")
    assert len(ports) == 2
    for port in ports:
        found, whole = reached(inference, port, 1, 2)
        assert (found[Source("image")][ROWS].tolist(), found[Source("image")][COLUMNS].tolist(), whole) == (
            [1],
            [2],
            "",
        )


@pytest.mark.parametrize("kind", ["instance_normalization", "pooling", "noise"])
def test_rows_that_were_channels(runtime_registry, kind):
    """A permutation makes rows of channels; a normalization reads whole images of all channels."""
    graph = Graph(
        [
            layer("image", "input", dims="20x16x12"),
            layer("m", kind, "image", **({"size": "3x3", "stride": "1x1"} if kind == "pooling" else {})),
            layer("turned", "permute", "m", axes="0,2,1,3"),
        ]
    )
    inference = Inference(graph, runtime_registry)
    assert inference.states["turned"].ok, inference.diagnostics()
    found, whole = reached(inference, Source("turned"), 3, 9)
    assert (found[Source("m")][CHANNELS].tolist(), found[Source("m")][COLUMNS].tolist()) == ([3], [9])
    channels = found[Source("image")].get(CHANNELS, np.array([]))  # unknown behind a pooling
    assert channels.tolist() == (list(range(12)) if whole else [3] if kind == "noise" else [])
    columns = range(20) if whole else [9, 10, 11] if kind == "pooling" else [9]
    assert found[Source("image")][COLUMNS].tolist() == list(columns)
    assert whole == ("m" if kind == "instance_normalization" else "")


def test_a_layer_whose_activation_reads_the_whole_image(runtime_registry):
    for axis in ("2", "3"):
        graph = Graph(
            [
                layer("image", "input", dims="20x16x3"),
                layer("conv", "convolution", "image", ActivationSpec("softmax", {"axis": axis}), features=2),
            ]
        )
        inference = Inference(graph, runtime_registry)
        if inference.states["conv"].outputs is None:
            pytest.skip("the activation has no axis")
        found, whole = boxes(graph, runtime_registry, "conv", 3, 4)
        assert whole == "conv"
        assert found["image"][:4] == (0, 15, 0, 19)


def test_a_normalization_reads_everything_before_a_convolution(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="20x16x3"),
            conv("first", "image", 3),
            layer("norm", "instance_normalization", "first"),
            conv("second", "norm", 3),
        ]
    )
    found, whole = boxes(graph, runtime_registry, "second", 3, 4)
    assert whole == "norm"
    assert found["norm"][:4] == (2, 4, 3, 5)
    assert found["first"][:4] == found["image"][:4] == (0, 15, 0, 19)
    assert boxes(graph, runtime_registry, "first", 3, 4)[1] == ""


@pytest.mark.parametrize(
    ("kind", "scale", "reach"), [("gaussian", "1.0", 0), ("blur", "0.5", 2), ("blur", "2.0", 6), ("jpeg", "0.1", 16)]
)
def test_analysis_layers_in_rows_and_columns(runtime_registry, kind, scale, reach):
    graph = Graph(
        [
            layer("image", "input", dims="60x50x3"),
            layer("noise", "noise", "image", kind=kind, scale=scale),
            conv("conv", "noise", 3),
        ]
    )
    found, _ = boxes(graph, runtime_registry, "conv", 25, 30)
    around = reach + 1
    assert found["image"][:4] == (25 - around, 25 + around, 30 - around, 30 + around)
    inference = Inference(graph, runtime_registry)
    channels = layer_reach(inference, "noise", 0, CHANNELS, np.array([1]))
    assert channels.places[0].tolist() == [1]
    assert channels.axes == {0: CHANNELS}
    both = Graph(
        [
            layer("image", "input", dims="60x50x3"),
            layer("other", "input", dims="60x50x3"),
            layer("mix", "mix", "image,other"),
        ]
    )
    found, _ = boxes(both, runtime_registry, "mix", 5, 6)
    assert found["image"][:4] == found["other"][:4] == (5, 5, 6, 6)


def test_an_optional_input_that_is_open_is_not_counted(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="20x16x3"),
            layer("unknown", "reshape", "image", shape="3,16,20"),
            conv("after", "unknown", 3),
        ]
    )
    with pytest.raises(UnknownReachError, match=r"^unknown$"):
        reached(Inference(graph, runtime_registry), Source("after"), 3, 3)


# --- receptive fields that are measured --------------------------------------------------------------------------


def session_of(graph, registry, array, name="image", is_image=False) -> Session:
    needed = required_weights(Inference(graph, registry))
    made = Session(graph, registry, fill_missing(Weights(), needed, 0), RunOptions("torch", threads=1))
    made.set_input(name, array, is_image=is_image)
    return made


def measured(*layers, size="32x24x3") -> Graph:
    chained = [layer("image", "input", dims=size)]
    for name, kind, params in layers:
        chained.append(layer(name, kind, chained[-1].name, **params))
    return Graph(
        [*chained, layer("same", "reshape", chained[-1].name, shape="3,24,32"), layer("result", "output", "same")]
    )


BLUR = {"kind": "blur", "scale": "1.0"}  # reaches three pixels


def test_measured_boxes_add_up_analysis_layers_and_end_at_the_border(runtime_registry):
    graph = measured(("a", "noise", BLUR), ("b", "noise", {**BLUR, "scale": "0.5"}))
    session = session_of(graph, runtime_registry, pixels())
    for (y, x), box in {(12, 16): (11, 7, 22, 18), (1, 30): (25, 0, 32, 7), (23, 0): (0, 18, 6, 24)}.items():
        found = receptive(session, Source("result"), y, x, "image")
        assert (found.box, found.source) == (box, "measured")
        assert found.note == (
            "the receptive field of 'same' is unknown; pixels without influence at the current values are not counted"
        )


def test_an_analysis_layer_of_unknown_reach_reads_everything(runtime_registry):
    graph = measured(("first", "unary", {"function": "abs"}), ("a", "snapshot", {}))
    session = session_of(graph, runtime_registry, pixels())
    assert session.inference.read("a").operator.reach() is None
    found = receptive(session, Source("result"), 12, 16, "image")
    assert (found.source, found.box) == ("measured", (0, 0, 32, 24))
    other = measured(("first", "unary", {"function": "abs"}))
    behind = Graph([*other, layer("behind", "noise", "same", **BLUR), layer("more", "output", "behind")])
    found = receptive(session_of(behind, runtime_registry, pixels()), Source("result"), 12, 16, "image")
    assert found.box == (16, 12, 17, 13)


def test_a_pixel_without_influence_has_an_empty_box(runtime_registry):
    graph = measured(("zero", "unary", {"function": "floor"}))
    found = receptive(session_of(graph, runtime_registry, pixels()), Source("result"), 12, 16, "image")
    assert (found.box, found.source) == ((0, 0, 0, 0), "measured")


def test_measured_boxes_count_every_image_of_a_batch_and_both_signs(runtime_registry):
    graph = measured(("act", "unary", {"function": "abs"}), ("cut", "clip", {"low": "0.5", "high": "9"}))
    if Inference(graph, runtime_registry).states["cut"].outputs is None:
        graph = measured(("act", "unary", {"function": "abs"}))
    array = pixels(batch=2) - np.float32(0.5)
    array[0, :, 12, 16], array[1, :, 12, 16] = -0.1, -0.9
    found = receptive(session_of(graph, runtime_registry, array), Source("result"), 12, 16, "image")
    assert found.box == (16, 12, 17, 13)


# --- gradients ---------------------------------------------------------------------------------------------------


def padded_network(tiling="4") -> Graph:
    """Factors of 2 and 3 with noise between them, and two analysis layers before the output."""
    return Graph(
        [
            layer("image", "input", dims="6x5x3", tiling=tiling),
            layer("two", "scale_shift", "image", scale="2.0", shift="0.0"),
            layer("noise", "noise", "two", scale="0.1"),
            layer("three", "scale_shift", "noise", scale="3.0", shift="0.0"),
            layer("mix", "mix", "three,two"),
            layer("seen", "snapshot", "mix"),
            layer("result", "output", "seen"),
            layer("plain", "output", "three"),
        ]
    )


def repeats(size: int, full: int) -> np.ndarray:
    """How often each of `size` pixels is in an image that repeats the last one up to `full`."""
    return np.array([*[1] * (size - 1), full - size + 1])


@pytest.mark.parametrize(("height", "width"), [(5, 6), (8, 8), (8, 5), (7, 8)])
def test_gradients_of_padded_inputs(runtime_registry, height, width):
    session = session_of(padded_network(), runtime_registry, pixels(height, width, batch=2))
    full = [-(-side // 4) * 4 for side in (height, width)]
    counts = np.multiply.outer(repeats(height, full[0]), repeats(width, full[1]))
    cases = {
        "two": 2 * counts,
        "noise": 2 * counts,
        "three": 6 * counts,
        "plain": 6.0,
        "mix": 6.0,
        "seen": 6.0,
        "result": 6.0,
    }
    for name, expected in cases.items():
        found = gradient(session, Source(name), "image")
        assert found.array.shape == (2, 3, height, width)
        np.testing.assert_allclose(found.array, np.broadcast_to(expected, found.array.shape), rtol=1e-5, err_msg=name)
    assert gradient(session, Source("two"), "image").note == ""
    assert gradient(session, Source("three"), "image").note == "passed through 'noise' as if they were identities"
    assert gradient(session, Source("result"), "image").note == (
        "passed through 'noise', 'mix', 'seen' as if they were identities"
    )


@pytest.mark.parametrize("channel", [None, 0, 2])
def test_the_gradient_at_a_position_is_that_of_every_image(runtime_registry, channel):
    session = session_of(padded_network("0"), runtime_registry, pixels(5, 6, batch=2))
    found = gradient(session, Source("three"), "image", (channel, 1, 4)).array
    expected = np.zeros((2, 3, 5, 6), np.float32)
    expected[:, slice(None) if channel is None else channel, 1, 4] = 6
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "at", [(3, 0, 0), (-1, 0, 0), (0, 5, 0), (0, -1, 0), (0, 0, 6), (0, 0, -1), (None, 5, 0), (None, 0, 6)]
)
def test_positions_that_a_tensor_lacks(runtime_registry, at):
    session = session_of(padded_network("0"), runtime_registry, pixels(5, 6))
    with pytest.raises(DiagnosticError) as caught:
        gradient(session, Source("three"), "image", at)
    (found,) = caught.value.diagnostics
    assert (found.code, found.layer) == ("outside", "three")
    assert found.message == f"'three' of 1 x 3 x 5 x 6 has no value at channel {at[0]}, y {at[1]}, x {at[2]}"


@pytest.mark.parametrize("is_image", [True, False])
def test_the_gradient_is_to_the_values_that_are_read(runtime_registry, is_image):
    graph = Graph(
        [
            layer("image", "input", dims="4x3x3", scale="10.0", shift="1.0", tiling="4"),
            layer("square", "element_wise", "image,image", operation="multiply"),
            layer("result", "output", "square"),
            layer("other", "input", dims="4x3x3"),
            layer("both", "element_wise", "square,other", operation="add"),
            layer("flat", "unary", "other", function="floor"),
            layer("mixed", "element_wise", "flat,square", operation="add"),
        ]
    )
    array = pixels(3, 4)
    session = session_of(graph, runtime_registry, array, is_image=is_image)
    found = gradient(session, Source("result"), "image")
    read = array * 10 + 1 if is_image else array
    np.testing.assert_allclose(found.array, 2 * read, rtol=1e-5)
    session.set_input("other", pixels(4, 4), is_image=True)
    counts = repeats(3, 4).reshape(-1, 1)
    np.testing.assert_allclose(gradient(session, Source("mixed"), "image").array, 2 * read * counts, rtol=1e-5)
    zero = gradient(session, Source("flat"), "other")
    assert not zero.array.any()


def test_notes_of_a_gradient_without_a_path(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="4x3x3"),
            layer("large", "compare", "image", operation="greater"),
            layer("number", "cast", "large", target="float32"),
            layer("noise", "noise", "number"),
            layer("result", "output", "noise"),
        ]
    )
    session = session_of(graph, runtime_registry, pixels(3, 4))
    found = gradient(session, Source("number"), "image")
    assert not found.array.any()
    assert found.note == "no layer on the path has a gradient"
    found = gradient(session, Source("result"), "image")
    assert found.note == "no layer on the path has a gradient; passed through 'noise' as if they were identities"
    other = session_of(Graph([*graph, layer("other", "input", dims="4x3x3")]), runtime_registry, pixels(3, 4))
    with pytest.raises(DiagnosticError) as caught:
        gradient(other, Source("number"), "other")
    (d,) = caught.value.diagnostics
    assert (d.code, d.layer, d.message) == ("no-path", "other", "'number' does not depend on the input 'other'")
