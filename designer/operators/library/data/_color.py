"""Color spaces, converted through sRGB values in 0..1."""

from __future__ import annotations

from designer.operators.formula import Formula, Operand, matrix, weighted

SPACES = ("rgb", "bgr", "ycbcr", "gray", "hsv", "lab", "linear_rgb")
LUMA = (0.299, 0.587, 0.114)
_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041))
_FROM_XYZ = ((3.2404542, -1.5371385, -0.4985314), (-0.969266, 1.8760108, 0.041556), (0.0556434, -0.2040259, 1.0572252))
_WHITE = (0.95047, 1.0, 1.08883)  # D65
_CUT = (6 / 29) ** 3


def channels_of(space: str) -> int:
    return 1 if space == "gray" else 3


def to_rgb(f: Formula, x: Operand, space: str) -> Operand:
    """An image of `space` as RGB."""
    match space:
        case "bgr":
            return _swapped(f, x)
        case "gray":
            return f.channels([x, x, x])
        case "ycbcr":
            rows = ((1.0, 0.0, 1.402), (1.0, -0.344136286, -0.714136286), (1.0, 1.772, 0.0))
            return matrix(f, x, rows, (-0.701, 0.529136286, -0.886))
        case "hsv":
            return _from_hsv(f, x)
        case "lab":
            return from_linear(f, _lab_to_linear(f, x))
        case "linear_rgb":
            return from_linear(f, x)
    return x


def from_rgb(f: Formula, x: Operand, space: str) -> Operand:
    """An RGB image in `space`."""
    match space:
        case "bgr":
            return _swapped(f, x)
        case "gray":
            return weighted(f, x, LUMA)
        case "ycbcr":
            rows = (LUMA, (-0.168735892, -0.331264108, 0.5), (0.5, -0.418687589, -0.081312411))
            return matrix(f, x, rows, (0.0, 0.5, 0.5))
        case "hsv":
            return _to_hsv(f, x)
        case "lab":
            return _linear_to_lab(f, to_linear(f, x))
        case "linear_rgb":
            return to_linear(f, x)
    return x


def to_linear(f: Formula, x: Operand) -> Operand:
    """Linearize sRGB; values below 0 use the linear segment."""
    curve = f.power(f.div(f.add(f.maximum(x, 0.0), 0.055), 1.055), 2.4)
    return f.where(f.less(x, 0.04045), f.div(x, 12.92), curve)


def from_linear(f: Formula, x: Operand) -> Operand:
    curve = f.sub(f.mul(f.power(f.maximum(x, 1e-8), 1 / 2.4), 1.055), 0.055)
    return f.where(f.less(x, 0.0031308), f.mul(x, 12.92), curve)


def _swapped(f: Formula, x: Operand) -> Operand:
    return f.channels([f.channel(x, index) for index in (2, 1, 0)])


def _to_hsv(f: Formula, x: Operand) -> Operand:
    r, g, b = (f.channel(x, index) for index in range(3))
    value = f.maximum(f.maximum(r, g), b)
    spread = f.sub(value, f.minimum(f.minimum(r, g), b))
    flat = f.less(spread, 1e-8)
    safe = f.where(flat, f.add(f.mul(spread, 0.0), 1.0), spread)
    sixth = f.div(f.sub(g, b), safe)
    of_red = f.sub(sixth, f.mul(f.floor(f.div(sixth, 6.0)), 6.0))
    of_green = f.add(f.div(f.sub(b, r), safe), 2.0)
    of_blue = f.add(f.div(f.sub(r, g), safe), 4.0)
    hue = f.where(f.equal(value, r), of_red, f.where(f.equal(value, g), of_green, of_blue))
    nothing = f.mul(hue, 0.0)
    saturation = f.div(spread, f.maximum(value, 1e-8))
    return f.channels([f.where(flat, nothing, f.div(hue, 6.0)), f.where(flat, nothing, saturation), value])


def _from_hsv(f: Formula, x: Operand) -> Operand:
    hue, saturation, value = (f.channel(x, index) for index in range(3))
    amount = f.mul(value, saturation)

    def part(shift: float) -> Operand:
        place = f.add(f.mul(hue, 6.0), shift)
        place = f.sub(place, f.mul(f.floor(f.div(place, 6.0)), 6.0))
        ramp = f.minimum(f.minimum(place, f.sub(4.0, place)), 1.0)
        return f.sub(value, f.mul(amount, f.maximum(ramp, 0.0)))

    return f.channels([part(5.0), part(3.0), part(1.0)])


def _linear_to_lab(f: Formula, x: Operand) -> Operand:
    parts = []
    for row, white in zip(_TO_XYZ, _WHITE, strict=True):
        ratio = f.div(weighted(f, x, row), white)
        root = f.power(f.maximum(ratio, 1e-8), 1 / 3)
        line = f.add(f.mul(ratio, 841 / 108), 4 / 29)
        parts.append(f.where(f.less(ratio, _CUT), line, root))
    fx, fy, fz = parts
    lightness = f.sub(f.mul(fy, 116.0), 16.0)
    return f.channels([lightness, f.mul(f.sub(fx, fy), 500.0), f.mul(f.sub(fy, fz), 200.0)])


def _lab_to_linear(f: Formula, x: Operand) -> Operand:
    lightness, a, b = (f.channel(x, index) for index in range(3))
    fy = f.div(f.add(lightness, 16.0), 116.0)
    parts = []
    for root, white in zip((f.add(fy, f.div(a, 500.0)), fy, f.sub(fy, f.div(b, 200.0))), _WHITE, strict=True):
        cube = f.mul(f.mul(root, root), root)
        line = f.mul(f.sub(root, 4 / 29), 108 / 841)
        parts.append(f.mul(f.where(f.less(root, 6 / 29), line, cube), white))
    return matrix(f, f.channels(parts), _FROM_XYZ)
