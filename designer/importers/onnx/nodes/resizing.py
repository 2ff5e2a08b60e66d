"""Resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from designer.graph.types import Size2D, Symbol
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.table import converts
from designer.operators.params import Value


@converts("Resize", "Upsample")
def resize(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    if kind.rank != 4:
        raise UnsupportedError("it is not the size of an image")
    height, width = _target(c, op, kind.shape)
    old_height, old_width = kind.dim(2), kind.dim(3)
    axes = (old_height, height), (old_width, width)
    whole = height % old_height == 0 and width % old_width == 0
    shrunk = [(old, new) for old, new in axes if new < old]
    smooth = bool(op.attribute("antialias", 0) and shrunk)  # larger images are the same without
    method, corners = _method(op, smooth)
    nearest = not whole and method == "nearest" and _same_positions(c, op, axes)
    if _is_old(op) and any(old % new for old, new in shrunk) and not nearest:
        raise UnsupportedError("before opset 11 a smaller image has its pixels from positions that are rounded up")
    if op.attribute("coordinate_transformation_mode", "") == "pytorch_half_pixel" and any(n == 1 for _, n in shrunk):
        raise UnsupportedError("pytorch_half_pixel samples a single pixel at another position than torch")
    if not (whole and corners) and not nearest and not _exact(c, op, kind.shape[2:], method):
        raise UnsupportedError("its factors are not ratios of sizes")
    if whole:
        params: dict[str, Value] = {"factor": Size2D(width // old_width, height // old_height)}
        type = "upsample"
    else:
        params, type = {"size": Size2D(width, height), "antialias": smooth}, "resize"
    c.one(type, op.inputs[:1], {**params, "method": method, "align_corners": corners})


def _target(c: Conversion, op: OnnxOp, shape: tuple[int | Symbol, ...]) -> tuple[int, int]:
    """Height and width of the output."""
    sizes = op.input(3)
    if op.attribute("axes") or op.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnsupportedError("it resizes chosen axes or keeps the ratio of the sides")
    if sizes:
        dims = c.dims(sizes)
        if tuple(dims[:2]) not in (tuple(shape[:2]), (1, shape[1])):
            raise UnsupportedError("it resizes the batch or the channels")
        wanted = dims[2:]
    else:
        scales = _scales(c, op)
        if scales is None or tuple(scales[:2]) != (1.0, 1.0):
            raise UnsupportedError("its factors are not constant, or not of height and width only")
        wanted = tuple(
            int(_resized(size, factor)) if isinstance(size, int) else size
            for size, factor in zip(shape[2:], scales[2:], strict=True)
        )
    if any(isinstance(size, Symbol) or size < 1 for size in wanted):
        raise UnsupportedError("the size of its output is not known")
    height, width = wanted
    return height, width  # type: ignore[return-value]


def _scales(c: Conversion, op: OnnxOp) -> Sequence[float] | None:
    """The factors of all axes; None if they are not constant."""
    return op.attribute("scales") or c.numbers(op.input(1 if _is_old(op) else 2))


def _is_old(op: OnnxOp) -> bool:
    """Whether the rules are those before opset 11."""
    return op.op_type == "Upsample" or op.opset < 11


def _resized(size: int, factor: float) -> float:
    """The size times the factor in float32, as ONNX Runtime has it: seven pixels are 0.7 of ten."""
    return float(np.float32(size) * np.float32(factor))


def _exact(c: Conversion, op: OnnxOp, sizes: Sequence[int | Symbol], method: str) -> bool:
    """Whether the factors, with which positions are computed, are the ratios of the sizes; to float32 where pixels are mixed."""
    scales = () if op.input(3) else _scales(c, op) or ()
    return all(
        (size * factor if method == "nearest" else _resized(size, factor)).is_integer()
        for size, factor in zip(sizes, scales[2:], strict=False)
        if isinstance(size, int)
    )


def _same_positions(c: Conversion, op: OnnxOp, axes: Sequence[tuple[int, int]]) -> bool:
    """Whether factors choose the pixels that torch and ONNX Runtime choose for the sizes before and after, for each axis.

    Computed in float32, as they do. Before opset 11, positions of a smaller image are rounded up.
    """
    scales = () if op.input(3) else _scales(c, op) or ()
    if not scales:
        return False
    for (old, new), factor in zip(axes, scales[2:], strict=True):
        places, scale = np.arange(new, dtype=np.float32), np.float32(factor)
        chosen = np.minimum((np.ceil if _is_old(op) and factor < 1 else np.floor)(places / scale), old - 1)
        by_ratio = np.floor(places * (np.float32(old) / np.float32(new)))
        by_factor = np.floor(places / (np.float32(new) / np.float32(old)))
        if any(not np.array_equal(chosen, np.minimum(other, old - 1)) for other in (by_ratio, by_factor)):
            return False
    return True


def _method(op: OnnxOp, smooth: bool) -> tuple[str, bool]:
    """Interpolation, and whether corners are aligned. Raises UnsupportedError for what torch does not have.

    Where torch smooths, it leaves out what is outside of the image, and has another cubic coefficient.
    """
    mode = op.attribute("mode", "nearest")
    rounding, coefficient = op.attribute("nearest_mode", "round_prefer_floor"), op.attribute("cubic_coeff_a", -0.75)
    outside = op.attribute("exclude_outside", 0)
    if _is_old(op):
        if mode != "nearest":
            raise UnsupportedError("before opset 11 it samples at other positions")
        return "nearest", False
    coordinates = op.attribute("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        floor = coordinates == "asymmetric" and rounding == "floor"
        if not floor:
            raise UnsupportedError(f"nearest with {coordinates} samples at other positions than torch")
        return "nearest", False
    if coordinates not in ("half_pixel", "pytorch_half_pixel", "align_corners") or (outside and not smooth):
        raise UnsupportedError(f"{mode} with {coordinates} samples at other positions than torch")
    if smooth and not outside:
        raise UnsupportedError("its antialias repeats the border of the image, which that of torch leaves out")
    expected = -0.5 if smooth else -0.75
    if mode == "cubic" and abs(coefficient - expected) > 1e-7:
        raise UnsupportedError(f"its cubic coefficient is not {expected}")
    return {"linear": "bilinear", "cubic": "bicubic"}[mode], coordinates == "align_corners"


@converts("GridSample")
def grid_sample(c: Conversion, op: OnnxOp) -> None:
    modes = {
        "linear": "bilinear",
        "bilinear": "bilinear",
        "cubic": "bicubic",
        "bicubic": "bicubic",
        "nearest": "nearest",
    }
    params: dict[str, Value] = {
        "method": modes[op.attribute("mode", "linear")],
        "border": op.attribute("padding_mode", "zeros"),
        "align_corners": bool(op.attribute("align_corners", 0)),
    }
    c.one("grid_sample", op.inputs, params)
