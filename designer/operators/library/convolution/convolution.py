"""Two-dimensional convolution."""

from __future__ import annotations

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    Port,
    Size2D,
    TensorType,
    image,
    param,
)
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
    category=Category.CONVOLUTION,
    synonyms=("conv", "conv2d", "filter"),
):
    """Slide learned filters over an image: every output channel is one filter's response.

    With padding "same" the output is the input's size divided by the stride, rounded up, at every input size: the padding
    is dilation * (kernel - 1) in all, the smaller half at the left and top.
    """

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    features: int = param(
        default=32, min=1, max=65536, doc="Number of filters, which is the number of output channels."
    )
    kernel: Size2D = param(default=Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Step between filter positions, width x height.")
    padding: str = param(default="same", choices=PADDING, doc="How the border is filled.")
    padding_tuple: Size2D = param(
        default=Size2D(0, 0),
        min=0,
        max=4096,
        visible_when=("padding", "tuple"),
        doc="Pixels added on each side: width left and right, height top and bottom.",
    )
    apply_bias: bool = param(default=True, doc="Add a learned number to every output channel.")
    dilation: Size2D = param(
        default=Size2D(1, 1), min=1, max=1024, extension=True, doc="Distance between the filter's taps, width x height."
    )
    groups: int = param(
        default=1,
        min=1,
        max=65536,
        extension=True,
        doc="Split channels into this many groups that do not see each other.",
    )
    padding_mode: str = param(
        default="zeros",
        choices=PADDING_MODES,
        extension=True,
        visible_when=("padding", ("same", "tuple")),
        doc="What the border is filled with.",
    )
    examples = (
        Example((image(3, 8, 10),), {"features": 4}),
        Example(
            (image(4, 9, 7),), {"features": 6, "kernel": Size2D(5, 3), "stride": Size2D(2, 1), "groups": 2}, "grouped"
        ),
        Example(
            (image(2, 9, 9),), {"features": 3, "kernel": Size2D(2, 4), "stride": Size2D(2, 2)}, "even kernel, same"
        ),
        Example((image(3, 9, 9),), {"features": 3, "padding": "valid", "dilation": Size2D(2, 3), "apply_bias": False}),
        Example((image(2, 6, 6),), {"features": 3, "padding": "tuple", "padding_tuple": Size2D(2, 1)}, "own padding"),
        Example(
            (image(2, 6, 7),), {"features": 2, "kernel": Size2D(5, 5), "padding_mode": "reflect"}, "mirrored border"
        ),
        Example(
            (image(2, 6, 7),), {"features": 2, "kernel": Size2D(4, 3), "padding_mode": "circular"}, "wrapped border"
        ),
        Example((image(2, 6, 7),), {"features": 2, "kernel": Size2D(4, 3), "padding_mode": "replicate"}, "edge border"),
    )

    def filter(self, x: TensorType) -> Filter:
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
        return summary(self.kernel, self.stride, Size2D(1, 1), self.features)
