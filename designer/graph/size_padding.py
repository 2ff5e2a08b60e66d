"""An edit that pads inputs and crops the outputs that depend on them, so that a network accepts other sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from designer.graph.arrangement import GAP, NODE_WIDTH, make_room
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.naming import unique_name
from designer.graph.types import Size2D
from designer.texts import tr

PAD = "pad_to_valid_size"
CROP = "crop_padding"
STEP = NODE_WIDTH + GAP  # from a layer to the one that is inserted behind it


@dataclass(frozen=True, slots=True)
class Padding:
    """How an input is padded: to the next multiple plus remainder that is at least the minimum."""

    multiple: Size2D
    remainder: Size2D
    minimum: Size2D


@dataclass(frozen=True, slots=True)
class Cropping:
    """How an output layer is cropped: the input whose padding it shows, and its scale as fractions."""

    input: str
    multiply: Size2D
    divide: Size2D


def pad_and_crop(graph: Graph, pads: Mapping[str, Padding], crops: Mapping[str, Cropping]) -> Edit:
    """Insert a padding layer behind each input of `pads` and a cropping layer before each output of `crops`."""
    room = _room(graph, pads, crops)
    made = graph.copy()
    made.apply(room)
    names: dict[str, str] = {}
    edits: dict[str, tuple[Layer | None, Layer | None]] = {}
    taken = dict.fromkeys(graph.layers)

    def add(kind: str, behind: tuple[int, int], inputs: tuple[Source | None, ...], **params: Size2D) -> str:
        name = unique_name(kind, taken)
        taken[name] = None
        layer = Layer(name, kind, behind, inputs, {key: str(value) for key, value in params.items()})
        edits[name] = (None, layer)
        return name

    for source, padding in pads.items():
        x, y = made[source].position
        names[source] = name = add(
            PAD,
            (x + STEP, y),
            (Source(source),),
            multiple=padding.multiple,
            remainder=padding.remainder,
            minimum=padding.minimum,
        )
        for consumer in made.consumers(source):
            before, reader = edits.get(consumer, (made[consumer], made[consumer]))
            assert reader is not None
            inputs = tuple(Source(name) if s is not None and s.layer == source else s for s in reader.inputs)
            edits[consumer] = (before, replace(reader, inputs=inputs))
    for output, crop in crops.items():
        before, reader = edits.get(output, (made[output], made[output]))
        assert reader is not None
        x, y = reader.position
        inputs = (reader.inputs[0], Source(crop.input), Source(names[crop.input]))
        name = add(CROP, (x - STEP, y), inputs, multiply=crop.multiply, divide=crop.divide)
        edits[output] = (before, reader.with_input(0, Source(name)))
    return room.then(Edit("", edits), tr("Accept Every Size"))


def _room(graph: Graph, pads: Collection[str], crops: Collection[str]) -> Edit:
    """Move what is behind the inputs right by the width of a layer, and the outputs by that of two."""
    made = graph.copy()
    total = Edit("")
    for names in (graph.downstream(pads) - set(pads), set(crops)):
        held = {key: [x.name for x in made if _inside(x.position, frame)] for key, frame in made.frames.items()}
        edit = make_room(made, names, STEP, held)
        made.apply(edit)
        total = total.then(edit)
    return total


def _inside(position: tuple[int, int], frame: Frame) -> bool:
    x, y, width, height = frame.rect
    return x <= position[0] < x + width and y <= position[1] < y + height
