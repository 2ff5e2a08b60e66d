"""Three-dimensional convolution."""

from __future__ import annotations

from designer.operators import api as op
from designer.operators.library.convolution._filter import (
    PADDING,
    PADDING_MODES,
    Filter,
    FilterOperator,
    pads_of,
    summary,
)


def _dhw(size: op.Size3D) -> tuple[int, int, int]:
    return (size.channels, size.height, size.width)


class Convolution3d(
    FilterOperator,
    type="convolution_3d",
    title="Convolution 3D",
    category=op.Category.CONVOLUTION,
    synonyms=("conv3d", "volume filter", "video filter"),
):
    """Apply learned filters to a volume of shape N x C x D x H x W, for instance a video."""

    inputs = (op.Port("x", rank=5, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of filters (output channels).")
    kernel: op.Size3D = op.param(
        default=op.Size3D(3, 3, 3), min=1, max=1024, doc="Filter size, width x height x depth."
    )
    stride: op.Size3D = op.param(default=op.Size3D(1, 1, 1), min=1, max=1024, doc="Stride.")
    padding: str = op.param(default="same", choices=PADDING, doc="Amount of padding: same, valid (none), or explicit.")
    padding_tuple: op.Size3D = op.param(
        default=op.Size3D(0, 0, 0), min=0, max=4096, visible_when=("padding", "tuple"), doc="Padding on each side."
    )
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    dilation: op.Size3D = op.param(default=op.Size3D(1, 1, 1), min=1, max=1024, doc="Distance between filter taps.")
    groups: int = op.param(default=1, min=1, max=65536, doc="Number of channel groups that are convolved separately.")
    padding_mode: str = op.param(
        default="zeros",
        choices=PADDING_MODES,
        visible_when=("padding", ("same", "tuple")),
        doc="Values of the padding.",
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 3, 4, 5, 6)),), {"features": 4}),
        op.Example(
            (op.TensorType((op.BATCH, 4, 4, 5, 6)),),
            {
                "features": 2,
                "kernel": op.Size3D(2, 3, 2),
                "stride": op.Size3D(2, 1, 1),
                "groups": 2,
                "apply_bias": False,
            },
            "even kernel",
        ),
        op.Example(
            (op.TensorType((op.BATCH, 2, 4, 5, 6)),), {"features": 2, "padding_mode": "replicate"}, "edge border"
        ),
    )

    def filter(self, x: op.TensorType) -> Filter:
        kernel, dilation = _dhw(self.kernel), _dhw(self.dilation)
        return Filter(
            self.features,
            kernel,
            _dhw(self.stride),
            dilation,
            pads_of(self.padding, _dhw(self.padding_tuple), kernel, dilation),
            self.groups,
            self.apply_bias,
            self.padding_mode,
        )

    def summary(self) -> str:
        return summary(self.kernel, self.stride, op.Size3D(1, 1, 1), self.features)
