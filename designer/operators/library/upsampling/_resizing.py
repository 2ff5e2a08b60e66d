"""Interpolation with identical results in torch and ONNX."""

from __future__ import annotations

from typing import Any

from designer.operators import api as op

METHODS = ("nearest", "bilinear", "bicubic")
_LAST_EXACT_FACTOR = 40


def torch_mode(method: str, factor: op.Size2D | None = None) -> str:
    """torch's name of a method; `factor` if the image is upsampled by an integer factor.

    "nearest" multiplies by the reciprocal in single precision, which selects wrong pixels for factors of 41 and more. For
    integer factors "nearest-exact" selects the same pixels and is not sensitive to rounding.
    """
    if method == "nearest" and factor is not None and max(factor.hw) > _LAST_EXACT_FACTOR:
        return "nearest-exact"
    return method


def onnx_enlarged(method: str, align_corners: bool, factor: op.Size2D) -> op.OnnxValue:
    """Upsample the first input by an integer factor."""
    attributes = _attributes(method, align_corners)
    # All four axes have a scale: with `axes`, ONNX Runtime's transpose optimizer fails.
    scales = op.OnnxConstant((1.0, 1.0, *(float(f) for f in factor.hw)))
    return op.OnnxNode("Resize", (op.OnnxInput(0), None, scales), attributes)


def onnx_resized(
    method: str, align_corners: bool, size: op.Size2D, channels: int, antialias: bool = False
) -> op.OnnxValue:
    """Resize the first input, which has `channels` channels, to a size."""
    if method == "nearest":
        return _nearest(_nearest(op.OnnxInput(0), 2, size.height), 3, size.width)
    attributes = _attributes(method, align_corners)
    if antialias:
        # torch excludes pixels outside, and uses another cubic
        attributes.update(antialias=1, exclude_outside=1)
        if method == "bicubic":
            attributes["cubic_coeff_a"] = -0.5
    x: op.OnnxValue = op.OnnxInput(0)
    if method == "bicubic":
        # ONNX Runtime does not support cubic downsampling in NHWC; a Reshape stops its transpose optimizer.
        x = op.OnnxNode("Reshape", (x, op.int64(-1, 1, 0, 0)))
    batch_and_channels = op.OnnxNode("Shape", (x,), {"start": 0, "end": 2})
    sizes = op.OnnxNode("Concat", (batch_and_channels, op.int64(*size.hw)), {"axis": 0})
    resized = op.OnnxNode("Resize", (x, None, None, sizes), attributes)
    return op.OnnxNode("Reshape", (resized, op.int64(-1, channels, 0, 0))) if method == "bicubic" else resized


def _attributes(method: str, align_corners: bool) -> dict[str, Any]:
    if method == "nearest":
        return {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    place = "align_corners" if align_corners else "half_pixel"
    if method == "bilinear":
        return {"mode": "linear", "coordinate_transformation_mode": place}
    return {"mode": "cubic", "coordinate_transformation_mode": place, "cubic_coeff_a": -0.75}


def _nearest(x: op.OnnxValue, axis: int, count: int) -> op.OnnxValue:
    """Select `count` pixels along an axis like torch: floor(index * (size / count)) in single precision.

    Resize divides by count / size instead, which rounds to the previous pixel for one of 25 pairs of sizes.
    """
    size = op.OnnxNode("Shape", (op.OnnxInput(0),), {"start": axis, "end": axis + 1})
    step = op.OnnxNode("Div", (op.OnnxNode("Cast", (size,), {"to": 1}), op.scalar(float(count))))
    places = op.OnnxNode("Floor", (op.OnnxNode("Mul", (op.OnnxConstant(tuple(map(float, range(count)))), step)),))
    inside = op.OnnxNode("Min", (op.OnnxNode("Cast", (places,), {"to": 7}), op.OnnxNode("Sub", (size, op.int64(1)))))
    return op.OnnxNode("Gather", (x, inside), {"axis": axis})
