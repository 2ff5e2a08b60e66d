"""Tiles of many networks, recorded: units, surroundings, cuts and cores, layers that prevent a cut, memory and sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from recorded import check_lines
from runtime_networks import layer

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.runtime import tiles
from designer.runtime.plan import PartStep, make_plan
from designer.runtime.tiles import Tiling, Tilings, peak_bytes

RELU = ActivationSpec("relu", {"alpha": "0.0"})


def chain(*kinds: tuple[str, dict[str, Any]], size: str = "45x37x2", last: ActivationSpec | None = None) -> Graph:
    layers = [layer("image", "input", dims=size)]
    for number, (kind, params) in enumerate(kinds):
        layers.append(layer(f"{number}", kind, layers[-1].name, **params))
    return Graph([*layers, layer("result", "output", layers[-1].name, last)])


def conv(kernel: str, stride: str = "1x1", **more: Any) -> tuple[str, dict[str, Any]]:
    return "convolution", {"features": 2, "kernel": kernel, "stride": stride} | more


def pool(size: str, stride: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "pooling", {"size": size, "stride": stride, **more}


def up(factor: str, method: str = "nearest") -> tuple[str, dict[str, Any]]:
    return "upsample", {"factor": factor, "method": method}


def unet() -> Graph:
    return Graph(
        [
            layer("image", "input", dims="45x37x2"),
            layer("a", "convolution", "image", RELU, features=2, kernel="3x3"),
            layer("down", "pooling", "a", size="2x2", stride="2x2"),
            layer("b", "convolution", "down", features=2, kernel="5x3"),
            layer("up", "upsample", "b", factor="2x2", method="bilinear"),
            layer("fit", "crop", "a", left=1, top=1),
            layer("sum", "element_wise", "up,fit", operation="add"),
            layer("first", "output", "sum"),
            layer("second", "output", "b"),
        ]
    )


def with_vector(first: bool) -> Graph:
    """An image and a pixel for the whole image, which also has an output."""
    return Graph(
        [
            layer("image", "input", dims="45x37x2"),
            layer("one", "input", dims="1x1x2"),
            layer("mixed", "convolution", "one", features=2, kernel="1x1"),
            layer("blurred", "convolution", "image", features=2, kernel="5x3"),
            layer("0", "element_wise", "mixed,blurred" if first else "blurred,mixed", operation="multiply"),
            layer("result", "output", "0"),
            layer("pixel", "output", "mixed"),
        ]
    )


def with_row(order: str) -> Graph:
    """An image, and a row that is added to each of its rows."""
    first, last = order.split(",")
    sizes = {"image": "45x37x2", "row": "45x1x2"}
    return Graph(
        [
            layer(first, "input", dims=sizes[first]),
            layer(last, "input", dims=sizes[last]),
            layer("0", "element_wise", order, operation="add"),
            layer("1", "convolution", "0", features=2, kernel="3x5"),
            layer("result", "output", "1"),
        ]
    )


def with_parameter(shape: str) -> Graph:
    """An image and a learned tensor, which is the same in every tile."""
    return Graph(
        [
            layer("image", "input", dims="45x37x2"),
            layer("learned", "parameter", shape=shape),
            layer("blurred", "convolution", "image", features=2, kernel="3x3"),
            layer("0", "element_wise", "blurred,learned", operation="add"),
            layer("result", "output", "0"),
        ]
    )


NETWORKS: dict[str, Graph] = {
    "a learned pixel": with_parameter("1,2,1,1"),
    "a learned image": with_parameter("1,2,37,45"),
    "a row first": with_row("row,image"),
    "a row last": with_row("image,row"),
    "one convolution": chain(conv("3x5")),
    "a large kernel": chain(conv("15x9"), conv("7x3")),
    "strides": chain(conv("3x3", "2x2"), conv("3x5", "1x2"), conv("5x3", "2x1")),
    "stride three": chain(conv("3x3", "3x3", padding="valid"), conv("3x3")),
    "dilated": chain(conv("3x3", dilation="4x3"), conv("3x3", "2x2", dilation="2x1")),
    "pooling and nearest": chain(pool("2x2", "2x2"), conv("3x3"), up("2x2")),
    "average without padding": chain(pool("3x2", "2x3", operation="average", padding="1x0"), conv("3x3")),
    "to other scales": chain(up("3x2"), pool("2x3", "2x3"), conv("3x3")),
    "bilinear": chain(conv("3x3", "2x2"), up("2x2", "bilinear"), conv("1x1")),
    "bicubic": chain(up("2x3", "bicubic"), conv("3x3")),
    "transposed": chain(("transposed_convolution", {"features": 2, "kernel": "4x4", "stride": "2x2"}), conv("3x3")),
    "zeros between pixels": chain(("unpooling", {"size": "2x3"}), conv("3x3")),
    "blocks": chain(("space_to_depth", {"block_size": "2"}), conv("3x3", features=8), ("depth_to_space", {"block_size": "2"}), size="46x36x4"),
    "cropped": chain(conv("3x3"), ("crop", {"left": 17, "top": 2, "right": 5, "bottom": 13})),
    "cropped at the end": chain(("crop", {"left": 0, "top": 0, "right": 23, "bottom": 19}), conv("3x3", "2x2")),
    "mirrored border": chain(conv("5x3", padding_mode="reflect"), conv("3x3")),
    "repeated border": chain(("padding", {"left": 4, "top": 1, "right": 2, "bottom": 3, "mode": "replicate"}), conv("5x5", "2x2")),
    "zeros around": chain(("padding", {"left": 1, "top": 3, "right": 0, "bottom": 2}), conv("3x3", padding="valid")),
    "multiples": chain(("pad_to_multiple", {"multiple": "4", "mode": "replicate"}), conv("3x3", "2x2")),
    "blurred": chain(("gaussian_blur", {"sigma": "1.0"}), ("image_gradient", {})),
    "an output with an activation": chain(conv("3x3", "2x2"), last=RELU),
    "two outputs": unet(),
    "a pixel first": with_vector(True),
    "a pixel last": with_vector(False),
    "small": chain(conv("3x3"), size="9x7x2"),
    "wrapped border": chain(conv("3x3", padding_mode="circular")),
    "another order": chain(("permute", {"order": "0,1,3,2"}), conv("3x3")),
    "statistics": chain(conv("3x3"), ("instance_normalization", {})),
    "to a size": chain(("resize", {"size": "20x20"}), conv("3x3")),
    "two scales": Graph(
        [
            layer("image", "input", dims="45x37x2"), layer("large", "input", dims="90x90x2"),
            layer("a", "pooling", "large", size="2x2", stride="2x2"), layer("b", "crop", "a", bottom=8),
            layer("sum", "element_wise", "image,b", operation="add"), layer("result", "output", "sum"),
        ]
    ),
}  # fmt: skip
SIDES = (8, 13, 24)


def part_of(registry: Any, graph: Graph) -> tuple[Inference, PartStep]:
    inference = Inference(graph, registry)
    outputs = [Source(name) for name in graph.layers if graph[name].type == "output"]
    (step,) = (step for step in make_plan(inference, outputs).steps if isinstance(step, PartStep))
    return inference, step


def message(error: DiagnosticError) -> str:
    return "; ".join(f"{d.code} at {d.layer}: {d.message}" for d in error.diagnostics)


def span(window: tuple[int, int]) -> str:
    return f"{window[0]}..{window[1]}"


def lines_of(registry: Any, graph: Graph) -> Iterator[str]:
    inference, step = part_of(registry, graph)
    peaks = [peak_bytes(inference, step, batch) for batch in (1, 3)]
    yield f"  {', '.join(map(str, step.wanted))}: memory {peaks[0]:.0f}, of three {peaks[1]:.0f}"
    try:
        made = Tiling(inference, step)
    except DiagnosticError as error:
        yield f"  {message(error)}"
        return
    for axis, name in enumerate(("rows", "columns")):
        scales = ", ".join(f"{source} {scale}" for source, scale in made.scales[axis].items())
        pixel = f", one pixel {', '.join(sorted(map(str, made.single[axis])))}" if made.single[axis] else ""
        before, behind = made.around(axis)
        yield f"  {name}: {made.base[axis]}, unit {made.unit(axis)}, around {before} {behind}, scales {scales}{pixel}"
        for side in SIDES:
            try:
                found = made.tiles(axis, side)
            except DiagnosticError as error:
                yield f"    {side}: {message(error)}"
                continue
            yield f"    {side}: {', '.join(f'{span(t.core)} in {span(t.cut)}' for t in found)}"
        yield f"    cuts: {', '.join(cuts(made, axis))}"
    for limit in (0.0, 0.01, 0.1, 0.3, 2.0):
        try:
            yield f"  {limit:g} of the memory: {made.side_for(limit * peaks[0], 1)}, {made.side_for(limit * peaks[1], 3)}"
        except DiagnosticError as error:
            yield f"  {limit:g} of the memory: {error.diagnostics[0].message}"


def cuts(made: Tiling, axis: int) -> Iterator[str]:
    """The layers that prevent cuts around the middle of the image, from close ones to those of half of the image."""
    size, unit = made.base[axis], made.unit(axis)
    start = size // 2 // unit * unit
    core = (start, min(start + unit, size))
    wanted = made._wanted(axis, core)
    if not wanted:
        return
    walk = made._walk(axis, wanted)
    for more in range(0, size // 2, max(1, size // 6)):
        for cut in ((start - more, core[1] + more), (start - more, size), (0, core[1] + more)):
            if 0 <= cut[0] < cut[1] <= size:
                yield f"{span(cut)} {made._seam(axis, cut, walk) or 'fits'}"


def test_tiles_are_as_recorded(runtime_registry: Any) -> None:
    lines = []
    for name, graph in NETWORKS.items():
        lines += [name, *lines_of(runtime_registry, graph)]
    check_lines("runtime/tiles.txt", lines)


def side_of(tilings: Tilings, step: PartStep) -> str:
    try:
        found = tilings.of(step, "key", 2)
    except DiagnosticError as error:
        return f"({message(error)})"
    return "whole" if found is None else f"tiles of {found[1]}"


def test_who_runs_in_tiles_is_as_recorded(runtime_registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every request, limit and amount of free memory: the side of the tiles, whole, or why neither works."""
    lines = []
    for name in ("strides", "statistics"):
        inference, step = part_of(runtime_registry, NETWORKS[name])
        peak = peak_bytes(inference, step, 2)
        for always, free in ((peak * 2, peak), (0, peak * 2), (0, peak), (0, peak / 4), (0, peak / 100)):
            monkeypatch.setattr(tiles, "ALWAYS_WHOLE", always)
            monkeypatch.setattr(tiles, "free_memory", lambda free=free: int(free))
            for whole in (peak * 4, peak / 2):
                monkeypatch.setattr(tiles, "WHOLE", whole)
                for memory in (0, peak * 2, peak / 3):
                    found = [
                        f"{tile} {side_of(Tilings(inference, tile, int(memory)), step)}"
                        for tile in (tiles.AUTO, 0, tiles.ONE_TILE, 8, 37, 45)
                    ]
                    about = f"free {free / peak:g}, most {whole / peak:g}, memory {memory / peak:.2g}"
                    lines.append(f"{name}, {'small' if always else 'large'}, {about}: {', '.join(found)}")
    check_lines("runtime/tilings.txt", lines)
