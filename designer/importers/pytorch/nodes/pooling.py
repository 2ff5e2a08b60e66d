"""Pooling, resizing and sampling of images."""

from __future__ import annotations

from typing import Any

from designer.graph.types import Size2D
from designer.importers.pytorch.conversion import Conversion, Maxima, TraceNode, UnsupportedError, Value
from designer.importers.pytorch.nodes.learned import each
from designer.importers.pytorch.nodes.table import converts
from designer.operators.params import Value as Param


@converts("max_pool2d", "avg_pool2d", "max_pool1d", "avg_pool1d", "lp_pool2d")
def pooling(c: Conversion, node: TraceNode) -> Value:
    flat = node.op.endswith("1d")
    x = c.plain(node.get("self"))
    if x.rank != (3 if flat else 4):
        raise UnsupportedError("its input has no batch")
    count = 1 if flat else 2
    kernel = each(node.get("kernel_size"), count)
    strides = each(node.get("stride") or kernel, count)
    pads, dilations = each(node.get("padding", 0), count), each(node.get("dilation", 1), count)
    if flat:
        kernel, strides, pads, dilations = (
            [one, *rest] for one, rest in ((1, kernel), (1, strides), (0, pads), (1, dilations))
        )
        x = c.layer("unsqueeze", [x], {"axis": 2})
    kind = "max" if node.op.startswith("max") else "average"
    params: dict[str, Param] = {
        "operation": kind,
        "size": Size2D(kernel[1], kernel[0]),
        "stride": Size2D(strides[1], strides[0]),
        "padding": Size2D(pads[1], pads[0]),
        "ceil_mode": bool(node.get("ceil_mode", False)),
    }
    if kind == "max":
        params["dilation"] = Size2D(dilations[1], dilations[0])
    else:
        params["count_include_pad"] = bool(node.get("count_include_pad", True))
        params["divisor_override"] = int(node.get("divisor_override", 0))
    made = c.layer("pooling", [x], params)
    return c.layer("squeeze", [made], {"axes": (2,)}) if flat else made


@converts("max_pool2d_with_indices")
def pooling_with_places(c: Conversion, node: TraceNode) -> tuple[Value, Maxima | None]:
    made, (height, width) = pooling(c, node), each(node.get("kernel_size"), 2)
    if each(node.get("stride") or (height, width), 2) != [height, width] or any(each(node.get("padding", 0), 2)):
        return made, None  # an unpooling has windows next to each other that begin at the corner
    return made, Maxima(c.plain(node.get("self")), (height, width), made.shape)


@converts("max_unpool2d")
def unpooling(c: Conversion, node: TraceNode) -> Value:
    places = node.get("indices")
    if not isinstance(places, Maxima):
        raise UnsupportedError(
            "its indices are not those of a pooling whose windows lie next to each other, without padding"
        )
    height, width = places.window
    return c.layer("unpooling", [c.plain(node.get("self")), places.image], {"size": Size2D(width, height)})


@converts("adaptive_avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool1d", "adaptive_max_pool1d")
def adaptive(c: Conversion, node: TraceNode) -> Any:
    flat = node.op.endswith("1d")
    x = c.plain(node.get("self"))
    if x.rank != (3 if flat else 4):
        raise UnsupportedError("its input has no batch")
    wanted = [int(number) for number in each(node.get("output_size"), 1 if flat else 2)]
    kind = "average" if "avg" in node.op else "max"
    if all(number == 1 for number in wanted):
        made = c.layer("global_pooling", [x], {"operation": kind})
    elif flat:
        image = c.layer("unsqueeze", [x], {"axis": 2})
        made = c.layer("adaptive_pooling", [image], {"operation": kind, "size": Size2D(wanted[0], 1)})
        made = c.layer("squeeze", [made], {"axes": (2,)})
    else:
        made = c.layer("adaptive_pooling", [x], {"operation": kind, "size": Size2D(wanted[1], wanted[0])})
    return (made, None) if kind == "max" else made


_METHODS = {
    "upsample_nearest2d": "nearest",
    "upsample_bilinear2d": "bilinear",
    "upsample_bicubic2d": "bicubic",
    "_upsample_bilinear2d_aa": "bilinear",
    "_upsample_bicubic2d_aa": "bicubic",
}


@converts(*_METHODS)
def resize(c: Conversion, node: TraceNode) -> Value:
    x = c.plain(node.get("input", node.get("self")))
    height, width = (int(size) for size in node.shapes[0][0][2:] if isinstance(size, int))
    old_height, old_width = x.size(2), x.size(3)
    factors = node.get("scale_factors", (node.get("scales_h"), node.get("scales_w")))
    for factor, old, new in zip(factors, (old_height, old_width), (height, width), strict=True):
        if factor is not None and abs(old * float(factor) - new) > 1e-6:
            raise UnsupportedError("its factors are not ratios of sizes")
    smooth = node.op.endswith("_aa")
    method: dict[str, Param] = {"method": _METHODS[node.op], "align_corners": bool(node.get("align_corners", False))}
    if not smooth and height % old_height == 0 and width % old_width == 0:
        return c.layer("upsample", [x], {"factor": Size2D(width // old_width, height // old_height), **method})
    return c.layer("resize", [x], {"size": Size2D(width, height), "antialias": smooth, **method})


@converts("pixel_shuffle", "pixel_unshuffle")
def blocks(c: Conversion, node: TraceNode) -> Value:
    type = "depth_to_space" if node.op == "pixel_shuffle" else "space_to_depth"
    factor = node.get("upscale_factor", node.get("downscale_factor"))
    return c.layer(type, [c.plain(node.get("self"))], {"block_size": factor, "mode": "channel_dominant"})


@converts("grid_sampler", "grid_sampler_2d")
def grid_sample(c: Conversion, node: TraceNode) -> Value:
    params: dict[str, Param] = {
        "method": ("bilinear", "nearest", "bicubic")[node.get("interpolation_mode", 0)],
        "border": ("zeros", "border", "reflection")[node.get("padding_mode", 0)],
        "align_corners": bool(node.get("align_corners", False)),
    }
    return c.layer("grid_sample", [c.plain(node.get("input")), c.plain(node.get("grid"))], params)
