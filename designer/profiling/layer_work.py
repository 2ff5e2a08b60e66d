"""The work of a layer as a performance model sees it: its kind, operations, bytes and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2, prod

from designer.profiling.cost import CostTable, LayerCost

FREE = frozenset({"input", "output", "identity", "dropout", "dropout_2d", "drop_path", "tensor_input", "template_input",
                  "template_output"})  # fmt: skip
VIEWS = frozenset({"reshape", "flatten", "squeeze", "unsqueeze"})
ALIASES = VIEWS | {
    "output",
    "identity",
    "template_input",
    "template_output",
}  # their outputs are the memory of their inputs
KINDS = {
    "convolution_1d": "convolution",
    "convolution_3d": "convolution",
    "separable_convolution": "convolution",
    "leaky_relu": "relu",
    "prelu": "relu",
    "relu6": "relu",
    "hard_tanh": "relu",
    "threshold": "relu",
    "linear_blend": "element_wise",
    "scale_shift": "element_wise",
    "adaptive_pooling": "pooling",
    "global_pooling": "pooling",
    "resize": "upsample",
    "space_to_depth": "depth_to_space",
    "group_normalization": "instance_normalization",
    "layer_normalization": "instance_normalization",
    "rms_normalization": "instance_normalization",
    "log_softmax": "softmax",
}
"""Operator types that are modelled as another type; a type that was not calibrated is modelled as `element_wise`."""

MISALIGNED = 2.0


@dataclass(frozen=True)
class LayerWork:
    """`sizes` are logarithms: of channels, reduction and pixels of an operator with FLOPs and whether
    its channels fill blocks of 16, or of the bytes of another one."""

    layer: str
    kind: str
    flops: int
    bytes: int
    sizes: tuple[float, ...]


def layer_works(table: CostTable) -> Iterator[LayerWork]:
    """The work of every layer, its attached activation separately. Layers that move no data are left out."""
    for name, row in table.rows.items():
        if row.type not in FREE and row.type not in VIEWS and row.outputs:
            yield _work(table, name, row)
        activation = row.parameters.get("activation")
        if activation and row.type != "activation":
            moved = 2 * sum(table.bytes_of(kind) for kind in row.outputs)
            yield LayerWork(name, KINDS.get(activation, activation), 0, moved, (log2(max(moved, 1)),))


def _work(table: CostTable, name: str, row: LayerCost) -> LayerWork:
    cost = table.group([name])
    moved = cost.bytes_read + cost.bytes_written
    kind = KINDS.get(row.type, row.type)
    if kind == "activation":
        kind = KINDS.get(row.parameters.get("activation", ""), row.parameters.get("activation", "relu"))
    if not row.flops:
        return LayerWork(name, kind, 0, moved, (log2(max(moved, 1)),))
    output = row.outputs[0].concrete(table.batch)
    channels = output[1] if len(output) > 2 else output[-1]
    pixels = max(prod(output) // max(channels, 1), 1)
    reduction = row.flops / (2 * max(prod(output), 1))
    read = row.inputs[0].concrete(table.batch)
    depth = read[1] if len(read) > 2 else read[-1]
    if kind == "convolution" and reduction < depth and depth == channels:
        kind = "depthwise_convolution"
    sizes = (log2(max(depth, 1)), log2(max(channels, 1)), log2(max(reduction, 0.5)), log2(pixels))
    return LayerWork(name, kind, row.flops, moved, (*sizes, _misaligned(depth), _misaligned(channels)))


def _misaligned(channels: int) -> float:
    """A distance for channels that do not fill the blocks of 16 in which engines compute."""
    return MISALIGNED if channels % 16 else 0.0
