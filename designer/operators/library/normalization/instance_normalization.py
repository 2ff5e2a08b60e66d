"""Instance normalization."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from designer.operators import api as op
from designer.operators.library.normalization._affine import affine_onnx, affine_weights, running_weights
from designer.operators.shapes import known
from designer.texts import tr

_MODULES = {3: "torch.nn.InstanceNorm1d", 4: "torch.nn.InstanceNorm2d", 5: "torch.nn.InstanceNorm3d"}


class InstanceNormalization(
    op.Operator,
    type="instance_normalization",
    title="Instance normalization",
    category=op.Category.NORMALIZATION,
    synonyms=("instancenorm", "style transfer", "contrast normalization"),
):
    """Normalize each channel of each sample to mean 0 and variance 1.

    With running statistics, inference uses those collected in training, like batch normalization.
    """

    inputs = (op.Port("x", rank=(3, 4, 5), dtypes=op.FLOATS),)

    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance to avoid division by 0.")
    affine: bool = op.param(default=False, doc="Apply a learned scale and bias.")
    track_running_stats: bool = op.param(
        default=False, extension=True, doc="Keep running statistics for inference; otherwise use those of each sample."
    )
    momentum: float = op.param(
        default=0.1,
        min=0.0,
        max=1.0,
        extension=True,
        visible_when=("track_running_stats", True),
        doc="Weight of the latest batch in the running statistics; training only.",
    )
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.TensorType((op.BATCH, 4, 5)),), {"affine": True, "epsilon": 0.01}, "sequence"),
        op.Example((op.image(3, 4, 5),), {"track_running_stats": True, "momentum": 0.2}, "running statistics"),
        op.Example((op.image(3, 4, 5),), {"track_running_stats": True, "affine": True}, "running statistics, scaled"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        known(x, 1)
        if prod(known(x, axis) for axis in range(2, x.rank)) == 1:
            raise op.ShapeError(
                tr("a channel with a single value cannot be normalized"), port="x", remedy=tr("use a larger input")
            )
        return x

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {"num_features": inputs[0].dim(1), "eps": self.epsilon, "affine": self.affine}
        if self.track_running_stats:
            kwargs.update(momentum=self.momentum, track_running_stats=True)
        return op.TorchModule(_MODULES[inputs[0].rank], kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        affine = affine_onnx(inputs[0].dim(1), self.affine)
        if self.track_running_stats:
            tensors = (op.OnnxInput(0), *affine, op.OnnxWeight("mean"), op.OnnxWeight("variance"))
            return op.OnnxNode("BatchNormalization", tensors, {"epsilon": self.epsilon})
        return op.OnnxNode("InstanceNormalization", (op.OnnxInput(0), *affine), {"epsilon": self.epsilon})

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        shape = (inputs[0].dim(1),)
        return (
            *(affine_weights(shape) if self.affine else ()),
            *(running_weights(shape) if self.track_running_stats else ()),
        )
