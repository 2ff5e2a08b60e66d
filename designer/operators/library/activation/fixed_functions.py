"""Activations without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from designer.operators import api as op


class FixedFunction(op.Activation):
    """Base of activations without parameters: `function` is the path of the torch function, `node` the ONNX data."""

    function: ClassVar[str]
    node: ClassVar[op.OnnxValue]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(self.function)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return self.node


class HardSigmoid(FixedFunction, type="hard_sigmoid", title="Hard sigmoid"):
    """min(max(x + 3, 0), 6) / 6."""

    function = "torch.nn.functional.hardsigmoid"
    node = op.OnnxNode("HardSigmoid", attributes={"alpha": 1 / 6, "beta": 0.5})


class HardSwish(FixedFunction, type="hard_swish", title="Hard swish", synonyms=("hardswish",)):
    """x * min(max(x + 3, 0), 6) / 6."""

    function = "torch.nn.functional.hardswish"
    node = op.OnnxNode("HardSwish")


class Mish(FixedFunction, type="mish", title="Mish"):
    """x * tanh(log(1 + exp(x)))."""

    function = "torch.nn.functional.mish"
    node = op.OnnxNode("Mul", (op.OnnxInput(0), op.OnnxNode("Tanh", (op.OnnxNode("Softplus"),))))


class Relu6(FixedFunction, type="relu6", title="ReLU6"):
    """min(max(x, 0), 6)."""

    function = "torch.nn.functional.relu6"
    node = op.OnnxNode("Clip", (op.OnnxInput(0), op.scalar(0.0), op.scalar(6.0)))


class Selu(FixedFunction, type="selu", title="SELU"):
    """A scaled ELU that preserves mean 0 and variance 1."""

    function = "torch.nn.functional.selu"
    node = op.OnnxNode("Selu")


class Sigmoid(FixedFunction, type="sigmoid", title="Sigmoid", synonyms=("logistic",)):
    """1 / (1 + exp(-x))."""

    function = "torch.sigmoid"
    node = op.OnnxNode("Sigmoid")


class Silu(FixedFunction, type="silu", title="SiLU", synonyms=("swish",)):
    """x * sigmoid(x), also called swish."""

    function = "torch.nn.functional.silu"
    node = op.OnnxNode("Mul", (op.OnnxInput(0), op.OnnxNode("Sigmoid")))


class Softsign(FixedFunction, type="softsign", title="Softsign"):
    """x / (1 + |x|), between -1 and 1."""

    function = "torch.nn.functional.softsign"
    node = op.OnnxNode("Softsign")


class Tanh(FixedFunction, type="tanh", title="Tanh", synonyms=("hyperbolic tangent",)):
    """The hyperbolic tangent."""

    function = "torch.tanh"
    node = op.OnnxNode("Tanh")
