"""Padding of inputs and cropping of outputs: which layers read what afterwards, and where everything is."""

from __future__ import annotations

from test_commands import check_reversible

from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.size_padding import STEP, Cropping, Padding, pad_and_crop
from designer.graph.types import Size2D


def test_two_inputs_and_two_outputs_are_padded_and_cropped_by_their_own_rules() -> None:
    graph = Graph(
        [
            Layer("left", "input", (0, 0)),
            Layer("right", "input", (0, 160)),
            Layer("add", "add", (320, 0), (Source("left"), Source("right"), Source("left"))),
            Layer("sum", "output", (640, 0), (Source("add", "y1"),)),
            Layer("copy", "output", (640, 160), (Source("right"),)),
            Layer("crop_padding_0", "relu", (960, 320)),
        ],
        frames=[
            Frame("inputs", rect=(-16, -16, 200, 300)),
            Frame("ends", rect=(600, -16, 160, 300)),
            Frame("all", rect=(-32, -32, 900, 320)),
        ],
    )
    pads = {
        "left": Padding(Size2D(8, 4), Size2D(1, 0), Size2D(16, 12)),
        "right": Padding(Size2D(2, 2), Size2D(0, 0), Size2D(2, 2)),
    }
    crops = {
        "sum": Cropping("left", Size2D(2, 3), Size2D(1, 1)),
        "copy": Cropping("right", Size2D(1, 1), Size2D(4, 5)),
    }
    edit = pad_and_crop(graph, pads, crops)
    assert edit.title == "Accept Every Size"
    check_reversible(graph, edit)
    reads = {layer.name: [str(source) for source in layer.inputs] for layer in graph}
    assert reads == {
        "left": [],
        "right": [],
        "pad_to_valid_size_0": ["left"],
        "pad_to_valid_size_1": ["right"],
        "add": ["pad_to_valid_size_0", "pad_to_valid_size_1", "pad_to_valid_size_0"],
        "crop_padding_1": ["add:y1", "left", "pad_to_valid_size_0"],
        "crop_padding_2": ["pad_to_valid_size_1", "right", "pad_to_valid_size_1"],
        "sum": ["crop_padding_1"],
        "copy": ["crop_padding_2"],
        "crop_padding_0": [],
    }
    assert graph["pad_to_valid_size_0"].params == {"multiple": "8x4", "remainder": "1x0", "minimum": "16x12"}
    assert graph["pad_to_valid_size_1"].params == {"multiple": "2x2", "remainder": "0x0", "minimum": "2x2"}
    assert graph["crop_padding_1"].params == {"multiply": "2x3", "divide": "1x1"}
    assert graph["crop_padding_2"].params == {"multiply": "1x1", "divide": "4x5"}
    assert {layer.name: layer.position for layer in graph} == {
        "left": (0, 0),
        "right": (0, 160),
        "pad_to_valid_size_0": (STEP, 0),
        "pad_to_valid_size_1": (STEP, 160),
        "add": (320 + STEP, 0),
        "crop_padding_1": (640 + STEP, 0),
        "crop_padding_2": (640 + STEP, 160),
        "sum": (640 + 2 * STEP, 0),
        "copy": (640 + 2 * STEP, 160),
        "crop_padding_0": (960, 320),
    }
    assert {key: frame.rect for key, frame in graph.frames.items()} == {
        "inputs": (-16, -16, 200, 300),
        "ends": (600 + 2 * STEP, -16, 160, 300),
        "all": (-32, -32, 900 + 2 * STEP, 320),
    }
