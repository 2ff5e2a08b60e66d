"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.library.normalization._affine import affine_onnx, affine_weights, running_weights
from designer.operators.shapes import known
from designer.texts import tr

_MODULES = {2: "torch.nn.BatchNorm1d", 3: "torch.nn.BatchNorm1d", 4: "torch.nn.BatchNorm2d", 5: "torch.nn.BatchNorm3d"}


class BatchNormalization(
    op.Operator,
    type="batch_normalization",
    title="Batch normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("batchnorm", "batchnorm2d", "bn", "batch norm"),
):
    """Normalize each channel to mean 0 and variance 1, then apply a learned scale and bias.

    Training uses the statistics of the batch and updates their running mean, which inference uses. Without running
    statistics, inference also uses those of the batch, so results depend on the other samples of the batch.
    """

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance to avoid division by 0.")
    momentum: float = op.param(
        default=0.1, min=0.0, max=1.0, doc="Weight of the latest batch in the running statistics; training only."
    )
    affine: bool = op.param(default=True, doc="Apply a learned scale and bias.")
    track_running_stats: bool = op.param(
        default=True, extension=True, doc="Keep running statistics for inference; otherwise use those of the batch."
    )
    examples = (
        op.Example((op.image(4),)),
        op.Example((op.TensorType((5, 3)),), {"epsilon": 0.01}, "table"),
        op.Example((op.image(4),), {"affine": False}, "without scale and shift"),
        op.Example((op.image(4),), {"track_running_stats": False}, "statistics of the batch"),
        op.Example(
            (op.TensorType((5, 3)),), {"track_running_stats": False, "affine": False}, "table, statistics of the batch"
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        known(x, 1)
        others = prod(d for axis, d in enumerate(x.shape) if axis != 1 and isinstance(d, int))
        if not self.track_running_stats and others == 1:
            raise op.ShapeError(
                tr("a single value has no statistics"),
                port="x",
                remedy=tr("enable track_running_stats, or use a larger input"),
            )
        return x

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {"num_features": inputs[0].dim(1), "eps": self.epsilon, "momentum": self.momentum}
        if not self.affine:
            kwargs["affine"] = False
        if not self.track_running_stats:
            kwargs["track_running_stats"] = False
        return op.TorchModule(_MODULES[inputs[0].rank], kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if not self.track_running_stats:
            return self._onnx_of_batch(inputs[0])
        affine = affine_onnx(inputs[0].dim(1), self.affine)
        tensors = (op.OnnxInput(0), *affine, op.OnnxWeight("mean"), op.OnnxWeight("variance"))
        return op.OnnxNode("BatchNormalization", tensors, {"epsilon": self.epsilon})

    def _onnx_of_batch(self, x: op.TensorType) -> op.OnnxValue:
        """BatchNormalization in training mode is optional for ONNX runtimes, so its formula is written out."""
        axes = op.int64(*(axis for axis in range(x.rank) if axis != 1))
        centered = op.OnnxNode("Sub", (op.OnnxInput(0), op.OnnxNode("ReduceMean", (op.OnnxInput(0), axes))))
        variance = op.OnnxNode("ReduceMean", (op.OnnxNode("Mul", (centered, centered)), axes))
        deviation = op.OnnxNode("Sqrt", (op.OnnxNode("Add", (variance, op.scalar(self.epsilon))),))
        result = op.OnnxNode("Div", (centered, deviation))
        if not self.affine:
            return result
        column = op.int64(x.dim(1), *(1,) * (x.rank - 2))
        scale, bias = (op.OnnxNode("Reshape", (op.OnnxWeight(name), column)) for name in ("scale", "bias"))
        return op.OnnxNode("Add", (op.OnnxNode("Mul", (result, scale)), bias))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        shape = (inputs[0].dim(1),)
        return (
            *(affine_weights(shape) if self.affine else ()),
            *(running_weights(shape) if self.track_running_stats else ()),
        )
