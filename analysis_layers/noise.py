"""Noise that is identical on every engine and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import TYPE_CHECKING

from designer.operators import api as op
from designer.operators.params import Value
from designer.texts import mark, tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

LEVELS = 255  # of an 8-bit image: noise is often given as 25/255


@dataclass(frozen=True, slots=True)
class Scale:
    """What `scale` measures for a kind of noise; `usual` is proposed if the kind before measured something else."""

    measure: str
    doc: str
    usual: float
    most: float = 1.0  # of the slider


_DEVIATION = "values"
SCALES = {
    "gaussian": Scale(_DEVIATION, mark("Standard deviation of the noise, for instance 25/255"), 25 / LEVELS),
    "uniform": Scale(_DEVIATION, mark("Half the range of the noise, for instance 25/255"), 25 / LEVELS),
    "salt_and_pepper": Scale("share", mark("Share of the values that become 0 or 1"), 0.05),
    "poisson": Scale(
        _DEVIATION,
        mark("Standard deviation at brightness 1, which is 1 / scale² photons; it falls with the brightness"),
        0.1,
    ),
    "speckle": Scale(_DEVIATION, mark("Standard deviation of the factor that each value is multiplied by"), 0.1),
    "jpeg": Scale("steps", mark("Size of the quantization steps: 0.02 is quality 90, 0.1 is 50, 0.5 is 10"), 0.1),
    "blur": Scale("pixels", mark("Standard deviation of the blur in pixels"), 1.5, 10.0),
}
KINDS = tuple(SCALES)
RANDOM = KINDS[:5]
SUBSAMPLINGS = ("4:2:0", "4:4:4")


class Noise(
    op.Operator,
    type="noise",
    title="Noise",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("gaussian noise", "grain", "disturb", "salt and pepper", "random", "shot noise", "compression", "blur"),
):
    """Add noise to a tensor, to test the robustness of a network.

    Gaussian adds values with the standard deviation `scale`, uniform adds values between -scale and scale, salt and
    pepper sets the fraction `scale` of the values to 0 or 1. Poisson counts 1 / scale^2 photons at brightness 1, so the
    standard deviation there is `scale`. Speckle multiplies by values around 1 with the standard deviation `scale`. JPEG
    quantizes the DCT of 8 x 8 blocks like a JPEG file: three channels as YCbCr with the given subsampling of Cb and Cr,
    others one by one; 0.1 is quality 50. Blur is Gaussian with a standard deviation of `scale` pixels. The same seed gives the same noise at the same size; animated noise increments the seed every frame.
    """

    inputs = (op.Port("x", dtypes=op.FLOATS),)

    kind: str = op.param(default="gaussian", choices=KINDS, doc="Kind of noise.")
    scale: float = op.param(
        default=0.1,
        min=0.0,
        max=100.0,
        step=0.01,
        doc="Strength: standard deviation, half the range, fraction of pixels, or blur in pixels.",
    )
    subsampling: str = op.param(
        default="4:2:0",
        choices=SUBSAMPLINGS,
        visible_when=("kind", "jpeg"),
        extension=True,
        doc="Resolution of the color in a JPEG file: 4:2:0 halves it in both directions.",
    )
    mean: float = op.param(
        default=0.0, step=0.01, visible_when=("kind", ("gaussian", "uniform")), doc="Offset added to each value."
    )
    seed: int = op.param(
        default=0, min=0, max=2**31 - 1, visible_when=("kind", RANDOM), doc="The same seed gives the same noise."
    )
    mono: bool = op.param(default=False, visible_when=("kind", RANDOM), doc="The same noise in all channels.")
    animate: bool = op.param(
        default=False,
        visible_when=("kind", RANDOM),
        extension=True,
        doc="Use a new seed for every frame during analysis in the window; otherwise `seed`.",
    )
    examples = (
        op.Example((op.image(),)),
        op.Example((op.image(),), {"kind": "uniform", "scale": 0.5, "mean": 0.1, "mono": True}),
        op.Example((op.image(),), {"kind": "salt_and_pepper", "seed": 7}),
        op.Example((op.image(),), {"kind": "poisson", "scale": 0.2}),
        op.Example((op.image(),), {"kind": "speckle", "mono": True}),
        op.Example((op.image(),), {"kind": "jpeg"}),
        op.Example((op.image(),), {"kind": "jpeg", "subsampling": "4:4:4"}),
        op.Example((op.image(),), {"kind": "blur", "scale": 1.5}),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.kind in ("jpeg", "blur") and inputs[0].rank < 3:
            raise op.ShapeError(
                tr("{kind} requires height and width, not {inputs}", kind=self.kind, inputs=inputs[0]),
                port="x",
                remedy=tr("choose gaussian"),
            )
        return inputs[0]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        from analysis_layers import degrade

        x = inputs[0]
        if self.kind == "jpeg":
            return (degrade.jpeg(x, self.scale, halved=self.subsampling == "4:2:0"),)
        if self.kind == "blur":
            return (degrade.blur(x, self.scale),)
        shape = (x.shape[0], 1, *x.shape[2:]) if self.mono and x.ndim > 1 else x.shape
        if self.kind == "salt_and_pepper":
            chance = uniform_field(self.seed, shape)
            result = np.where(chance < self.scale / 2, np.float32(0), x)
            result = np.where(chance >= 1 - self.scale / 2, np.float32(1), result)
            return (result.astype(np.float32, copy=False),)
        if self.kind == "poisson":
            return (degrade.poisson(x, self.scale, uniform_field(self.seed, shape), gaussian_field(self.seed, shape)),)
        if self.kind == "speckle":
            return (np.multiply(x, 1 + gaussian_field(self.seed, shape) * np.float32(self.scale), dtype=np.float32),)
        field = gaussian_field(self.seed, shape) if self.kind == "gaussian" else uniform_field(self.seed, shape) * 2 - 1
        disturbance = field * np.float32(self.scale)
        if self.mean:
            disturbance += np.float32(self.mean)
        return (np.add(x, disturbance, dtype=np.float32),)

    def reach(self) -> int:
        return {"jpeg": 16 if self.subsampling == "4:2:0" else 7, "blur": ceil(3 * self.scale)}.get(self.kind, 0)

    def scaled_down(self, factor: int) -> dict[str, float]:
        return {"scale": self.scale / factor} if self.kind == "blur" else {}

    def also_set(self, param: str, value: Value) -> Mapping[str, Value]:
        """Another kind keeps the scale if it measures the same."""
        if param != "kind" or SCALES[str(value)].measure == SCALES[self.kind].measure:
            return {}
        return {"scale": SCALES[str(value)].usual}

    def options(self) -> tuple[op.Option, ...]:
        scale = SCALES[self.kind]
        return (
            op.Option("kind", "choice", "Kind", choices=KINDS),
            op.Option("scale", "float", "Scale", min=0.0, max=scale.most, step=0.01, doc=scale.doc),
            op.Option("subsampling", "choice", "Subsampling", choices=SUBSAMPLINGS),
            op.Option("mean", "float", "Mean", min=-1.0, max=1.0, step=0.01),
            op.Option("seed", "int", "Seed", min=0, max=2**31 - 1, step=1),
            op.Option("mono", "bool", "Monochrome"),
            op.Option("animate", "bool", "Animate"),
        )

    def summary(self) -> str:
        return f"{self.kind.replace('_', ' ')} {scale_text(self.kind, self.scale)}"


def scale_text(kind: str, scale: float) -> str:
    """`25/255` for whole levels of an 8-bit image, else a decimal number."""
    levels = round(scale * LEVELS)
    if levels and SCALES[kind].measure == _DEVIATION and abs(scale * LEVELS - levels) < 1e-6:
        return f"{levels}/{LEVELS}"
    return f"{scale:g}"


# Only the generator's raw bits are used: NumPy guarantees their stability, but not that of its distributions. The
# fields do not depend on the strength, so dragging a slider does not generate them again; two are cached for networks with two noise layers.


def _bits(seed: int, count: int) -> NDArray[np.uint64]:
    import numpy as np

    return np.random.Philox(seed).random_raw(count).astype(np.uint64, copy=False)


@lru_cache(maxsize=2)
def uniform_field(seed: int, shape: tuple[int, ...]) -> Array:
    """Uniform values in [0, 1), read-only."""
    import numpy as np

    count = prod(shape)
    words = _bits(seed, -(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]
    field = (words >> 8).astype(np.float32) * np.float32(2**-24)
    field = field.reshape(shape)
    field.flags.writeable = False
    return field


@lru_cache(maxsize=2)
def gaussian_field(seed: int, shape: tuple[int, ...]) -> Array:
    """Standard normal values, read-only (Box-Muller, computed in double precision)."""
    import numpy as np

    count = prod(shape)
    half = -(-count // 2)
    words = _bits(seed, half).astype("<u8", copy=False).view("<u4").reshape(half, 2)
    radius = np.sqrt(-2.0 * np.log((words[:, 0] + 0.5) * 2.0**-32))
    angle = words[:, 1] * (2.0 * np.pi * 2.0**-32)
    pairs = np.empty((half, 2), np.float32)
    pairs[:, 0] = radius * np.cos(angle)
    pairs[:, 1] = radius * np.sin(angle)
    field = pairs.reshape(-1)[:count].reshape(shape)
    field.flags.writeable = False
    return field
