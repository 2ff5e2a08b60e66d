"""One-dimensional convolution."""

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


class Convolution1d(
    FilterOperator,
    type="convolution_1d",
    title="Convolution 1D",
    category=op.Category.CONVOLUTION,
    synonyms=("conv1d", "temporal convolution", "sequence filter"),
):
    """Apply learned filters along a sequence of shape N x C x L."""

    inputs = (op.Port("x", rank=3, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of filters (output channels).")
    kernel: int = op.param(default=3, min=1, max=1024, doc="Filter size, length.")
    stride: int = op.param(default=1, min=1, max=1024, doc="Stride.")
    padding: str = op.param(default="same", choices=PADDING, doc="Amount of padding: same, valid (none), or explicit.")
    padding_tuple: int = op.param(
        default=0, min=0, max=4096, visible_when=("padding", "tuple"), doc="Padding on each side."
    )
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    dilation: int = op.param(default=1, min=1, max=1024, doc="Distance between filter taps.")
    groups: int = op.param(default=1, min=1, max=65536, doc="Number of channel groups that are convolved separately.")
    padding_mode: str = op.param(
        default="zeros",
        choices=PADDING_MODES,
        visible_when=("padding", ("same", "tuple")),
        doc="Values of the padding.",
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 3, 9)),), {"features": 4}),
        op.Example(
            (op.TensorType((op.BATCH, 4, 9)),), {"features": 6, "kernel": 4, "stride": 2, "groups": 2}, "even kernel"
        ),
        op.Example(
            (op.TensorType((op.BATCH, 2, 9)),),
            {"features": 3, "padding_mode": "reflect", "dilation": 2},
            "mirrored border",
        ),
    )

    def filter(self, x: op.TensorType) -> Filter:
        kernel, dilation = (self.kernel,), (self.dilation,)
        return Filter(
            self.features,
            kernel,
            (self.stride,),
            dilation,
            pads_of(self.padding, (self.padding_tuple,), kernel, dilation),
            self.groups,
            self.apply_bias,
            self.padding_mode,
        )

    def summary(self) -> str:
        return summary(self.kernel, self.stride, 1, self.features)
