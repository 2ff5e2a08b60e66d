"""Two-dimensional convolution."""

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


class Convolution(
    FilterOperator,
    type="convolution",
    title="Convolution",
    category=op.Category.CONVOLUTION,
    synonyms=("conv", "conv2d", "filter"),
):
    """Apply learned filters to an image; each output channel is the response of one filter.

    With padding "same", the output size is the input size divided by the stride, rounded up. The total padding is
    dilation * (kernel - 1) for every input size, the smaller half on the left and top.
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of filters (output channels).")
    kernel: op.Size2D = op.param(default=op.Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=1024, doc="Stride, width x height.")
    padding: str = op.param(default="same", choices=PADDING, doc="Amount of padding: same, valid (none), or explicit.")
    padding_tuple: op.Size2D = op.param(
        default=op.Size2D(0, 0),
        min=0,
        max=4096,
        visible_when=("padding", "tuple"),
        doc="Padding on each side: width left and right, height top and bottom.",
    )
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    dilation: op.Size2D = op.param(
        default=op.Size2D(1, 1),
        min=1,
        max=1024,
        extension=True,
        doc="Distance between filter taps, width x height.",
    )
    groups: int = op.param(
        default=1,
        min=1,
        max=65536,
        extension=True,
        doc="Number of channel groups that are convolved separately.",
    )
    padding_mode: str = op.param(
        default="zeros",
        choices=PADDING_MODES,
        extension=True,
        visible_when=("padding", ("same", "tuple")),
        doc="Values of the padding.",
    )
    examples = (
        op.Example((op.image(3, 8, 10),), {"features": 4}),
        op.Example(
            (op.image(4, 9, 7),),
            {"features": 6, "kernel": op.Size2D(5, 3), "stride": op.Size2D(2, 1), "groups": 2},
            "grouped",
        ),
        op.Example(
            (op.image(2, 9, 9),),
            {"features": 3, "kernel": op.Size2D(2, 4), "stride": op.Size2D(2, 2)},
            "even kernel, same",
        ),
        op.Example(
            (op.image(3, 9, 9),), {"features": 3, "padding": "valid", "dilation": op.Size2D(2, 3), "apply_bias": False}
        ),
        op.Example(
            (op.image(2, 6, 6),), {"features": 3, "padding": "tuple", "padding_tuple": op.Size2D(2, 1)}, "own padding"
        ),
        op.Example(
            (op.image(2, 6, 7),),
            {"features": 2, "kernel": op.Size2D(5, 5), "padding_mode": "reflect"},
            "mirrored border",
        ),
        op.Example(
            (op.image(2, 6, 7),),
            {"features": 2, "kernel": op.Size2D(4, 3), "padding_mode": "circular"},
            "wrapped border",
        ),
        op.Example(
            (op.image(2, 6, 7),), {"features": 2, "kernel": op.Size2D(4, 3), "padding_mode": "replicate"}, "edge border"
        ),
    )

    def filter(self, x: op.TensorType) -> Filter:
        kernel, dilation = self.kernel.hw, self.dilation.hw
        return Filter(
            self.features,
            kernel,
            self.stride.hw,
            dilation,
            pads_of(self.padding, self.padding_tuple.hw, kernel, dilation),
            self.groups,
            self.apply_bias,
            self.padding_mode,
        )

    def summary(self) -> str:
        return summary(self.kernel, self.stride, op.Size2D(1, 1), self.features)
