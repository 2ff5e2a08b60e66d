"""Open heights and widths of ONNX files: whether a network's ONNX model is the same at other sizes.

Operators return their ONNX data for the sizes in the document. The model is built at other sizes too. If all nodes and
constants are equal, nothing depends on the size; otherwise the layer that differs is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import lcm
from typing import TYPE_CHECKING, Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import Size3D
from designer.operators.registry import Registry
from designer.runtime.network import check_runnable, operator_of, type_of
from designer.texts import tr

if TYPE_CHECKING:
    from onnx import ModelProto

Build = Callable[[Inference], "ModelProto"]
GROWTH = ((1, 2), (2, 1), (5, 3))  # steps by which height and width grow
LARGEST_STEP = 256
FAR = 512  # pixels by which a size is larger in which even results of coarse layers change


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """Heights and widths must be multiples of `multiple`; 0 if they are fixed, because of `layer` and `reason`.

    `as_imported`: the file is an imported one, whose sizes were not examined.
    """

    multiple: int
    layer: str = ""
    reason: str = ""
    as_imported: bool = False

    def __str__(self) -> str:
        if self.as_imported:
            return tr("Heights and widths are those of the imported file, which is exported as it was")
        if not self.multiple:
            because = tr(" because of '{layer}'", layer=self.layer) if self.layer else ""
            return tr("Height and width are fixed{because}: {reason}", because=because, reason=self.reason)
        if self.multiple > 1:
            return tr("Accepts any height and width that are multiples of {multiple}", multiple=self.multiple)
        return tr("Accepts any height and width")


def open_sizes(
    model: ModelProto, graph: Graph, registry: Registry, feeds: Sequence[Source], wanted: Sequence[Source], build: Build
) -> OpenSizes:
    """Replace height and width of the inputs and outputs of `model` by symbols if the model does not depend on them.

    `build` builds the model at the sizes of an inference. The symbols of the first input that is larger
    than one pixel are "height" and "width".
    """
    images = [feed for feed in feeds if graph[feed.layer].type == "input"]
    base = Inference(graph, registry)
    if not images:
        return OpenSizes(0, reason="no input is an image")
    blame = OpenSizes(0, images[0].layer, "the network does not run at any other size that was tried")
    first = _reference(base, images)
    step = lcm(*(_tiling(graph[image.layer]) for image in images))
    while step <= LARGEST_STEP:
        if first[0] % step == 0 and first[1] % step == 0:
            try:
                others = [
                    Inference(_grown(graph, base, images, step, rows, columns), registry) for rows, columns in GROWTH
                ]
                for other in others:
                    check_runnable(other, [source.layer for source in wanted])
                different = next((found for other in others if (found := _difference(model, build(other)))), "")
            except DiagnosticError as error:
                blame = _blamed(error.diagnostics[0])
                if error.diagnostics[0].code == "wrong-weight-shape":  # no size but the drawn one has such weights
                    return blame
            else:
                if not different:
                    far = _far(graph, base, images, step, registry, wanted)
                    _name_dimensions(model, [base, *others, *far], images, wanted)
                    return OpenSizes(step)
                title = operator_of(base, different).title
                return OpenSizes(0, different, f"{title} is written for one size")
        step *= 2
    return blame


def _far(
    graph: Graph, base: Inference, images: Sequence[Source], step: int, registry: Registry, wanted: Sequence[Source]
) -> list[Inference]:
    """The network at a much larger size, if it runs there: layers that divide and round change few sizes by a few pixels."""
    steps = -(-FAR // step)
    try:
        found = Inference(_grown(graph, base, images, step, steps, 2 * steps), registry)
        check_runnable(found, [source.layer for source in wanted])
    except DiagnosticError:
        return []
    return [found]


def _blamed(found: Diagnostic) -> OpenSizes:
    return OpenSizes(0, found.layer or "", found.message)


def _tiling(layer: Layer) -> int:
    text = layer.params.get("tiling", "0")
    return max(int(text), 1) if text.isdigit() else 1


def _extent(inference: Inference, source: Source) -> tuple[int, int]:
    shape = type_of(inference, source).concrete(1)
    return shape[2], shape[3]


def _references(inference: Inference, images: Sequence[Source]) -> list[Source]:
    """The image to whose height, and that to whose width, the others are in proportion: the first of more than one pixel."""
    return [next((i for i in images if _extent(inference, i)[axis] > 1), images[0]) for axis in range(2)]


def _reference(inference: Inference, images: Sequence[Source]) -> tuple[int, int]:
    tall, wide = _references(inference, images)
    return _extent(inference, tall)[0], _extent(inference, wide)[1]


def _grown(graph: Graph, base: Inference, images: Sequence[Source], step: int, rows: int, columns: int) -> Graph:
    """The network with larger inputs, all in the same proportion; those of one pixel stay, unless all have one."""
    layers = {layer.name: layer for layer in graph}
    references = _references(base, images)
    growth = (rows * step, columns * step)
    for image in images:
        _, channels, *extent = type_of(base, image).concrete(1)
        sizes = []
        for size, reference, whole, more in zip(extent, references, _reference(base, images), growth, strict=True):
            if size == 1 < whole:
                sizes.append(1)
                continue
            if size * more % whole:
                raise DiagnosticError.of(
                    "other-proportion",
                    tr("its size is not a simple fraction of that of '{layer}'", layer=reference.layer),
                    layer=image.layer,
                    remedy=tr("make the sizes of the inputs multiples of each other"),
                )
            sizes.append(size + size * more // whole)
        layers[image.layer] = layers[image.layer].with_param("dims", str(Size3D(sizes[1], sizes[0], channels)))
    return Graph(layers.values(), name=graph.name)


def _difference(one: ModelProto, other: ModelProto) -> str:
    """The first layer whose nodes or constants differ, or ""."""
    for mine, theirs in zip_longest(one.graph.node, other.graph.node):
        if mine != theirs:
            return _layer((mine or theirs).name)
    constants = {entry.name: entry for entry in other.graph.initializer}
    for entry in one.graph.initializer:
        if constants.pop(entry.name, None) != entry:
            return _layer(entry.name)
    return _layer(next(iter(constants), ""))


def _layer(name: str) -> str:
    return name.partition("/")[0]


def _name_dimensions(
    model: ModelProto, inferences: Sequence[Inference], images: Sequence[Source], wanted: Sequence[Source]
) -> None:
    """Set symbols for dimensions that differ between the sizes; those equal to the reference's share its symbols."""
    references = _references(inferences[0], images)
    entries = {entry.name: entry for entry in model.graph.input}
    pairs: list[tuple[Any, Source]] = [(entries[str(image)], image) for image in images if str(image) in entries]
    pairs += zip(model.graph.output, wanted, strict=True)
    for entry, source in pairs:
        shapes = [type_of(inference, source).concrete(1) for inference in inferences]
        image = len(shapes[0]) == 4
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if len(set(sizes)) == 1:
                continue
            dim = entry.type.tensor_type.shape.dim[axis]
            if image and axis > 1:
                reference, symbol = references[axis - 2], ("height", "width")[axis - 2]
                same = all(_extent(i, reference)[axis - 2] == size for i, size in zip(inferences, sizes, strict=True))
                dim.dim_param = symbol if same else f"{source.layer}_{symbol}"
            else:  # such as the number of the tokens that an image becomes
                dim.dim_param = f"{source.layer}_{axis}"
