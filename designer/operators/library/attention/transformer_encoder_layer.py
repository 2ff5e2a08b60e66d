"""Transformer encoder layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.attention._attention import attention_flops, multi_head
from designer.operators.shapes import divisible, known

_NORMS = ("norm1", "norm2")


class TransformerEncoderLayer(
    op.Operator,
    type="transformer_encoder_layer",
    title="Transformer encoder layer",
    category=op.Category.ATTENTION,
    synonyms=("transformer", "encoder block", "vit", "bert"),
):
    """Self-attention and a feed-forward network, each with a residual connection and layer normalization."""

    inputs = (op.Port("x", rank=3, dtypes=op.FLOATS),)

    heads: int = op.param(default=8, min=1, max=1024, doc="Number of heads; must divide the number of features.")
    hidden: int = op.param(default=2048, min=1, max=1_000_000, doc="Hidden size of the feed-forward network.")
    activation_function: str = op.param(
        default="relu", choices=("relu", "gelu"), doc="Activation function of the feed-forward network."
    )
    norm_first: bool = op.param(
        default=False, doc="Normalize before attention and feed-forward network instead of after."
    )
    dropout: float = op.param(default=0.1, min=0.0, max=1.0, step=0.05, doc="Dropout probability in training.")
    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to variances to avoid division by 0.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 5, 8)),), {"heads": 2, "hidden": 6}),
        op.Example(
            (op.TensorType((op.BATCH, 4, 6)),),
            {"heads": 3, "hidden": 5, "norm_first": True, "activation_function": "gelu"},
            "normalization first",
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        known(inputs[0], 1)
        divisible("features", known(inputs[0], 2), self.heads, "heads")
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {
            "d_model": inputs[0].dim(2),
            "nhead": self.heads,
            "dim_feedforward": self.hidden,
            "dropout": self.dropout,
            "activation": self.activation_function,
            "layer_norm_eps": self.epsilon,
            "batch_first": True,
            "norm_first": self.norm_first,
        }
        return op.TorchModule("torch.nn.TransformerEncoderLayer", kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x: op.OnnxValue = op.OnnxInput(0)
        kind = inputs[0]
        if self.norm_first:
            x = op.OnnxNode("Add", (x, self._attention(self._norm(x, "norm1"), kind)))
            return op.OnnxNode("Add", (x, self._network(self._norm(x, "norm2"))))
        x = self._norm(op.OnnxNode("Add", (x, self._attention(x, kind))), "norm1")
        return self._norm(op.OnnxNode("Add", (x, self._network(x))), "norm2")

    def _norm(self, x: op.OnnxValue, name: str) -> op.OnnxValue:
        tensors = (x, op.OnnxWeight(f"{name}_scale"), op.OnnxWeight(f"{name}_bias"))
        return op.OnnxNode("LayerNormalization", tensors, {"axis": -1, "epsilon": self.epsilon})

    def _attention(self, x: op.OnnxValue, kind: op.TensorType) -> op.OnnxValue:
        names = ("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias")
        return multi_head((x, x, x), (kind.dim(1),) * 3, kind.dim(2), self.heads, names)

    def _network(self, x: op.OnnxValue) -> op.OnnxValue:
        hidden = op.OnnxNode(
            "Add", (op.OnnxNode("MatMul", (x, _turned("linear1_kernel"))), op.OnnxWeight("linear1_bias"))
        )
        active = op.OnnxNode("Relu" if self.activation_function == "relu" else "Gelu", (hidden,))
        return op.OnnxNode(
            "Add", (op.OnnxNode("MatMul", (active, _turned("linear2_kernel"))), op.OnnxWeight("linear2_bias"))
        )

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        size = inputs[0].dim(2)
        norms = [
            op.Weight(f"{name}_{ours}", (size,), f"{name}.{torch}", init=init)
            for name in _NORMS
            for ours, torch, init in (("scale", "weight", "ones"), ("bias", "bias", "zeros"))
        ]
        return (
            op.Weight("in_proj_weight", (3 * size, size), "self_attn.in_proj_weight", init="xavier"),
            op.Weight("in_proj_bias", (3 * size,), "self_attn.in_proj_bias", init="zeros"),
            op.Weight("out_proj_weight", (size, size), "self_attn.out_proj.weight", fan_in=size),
            op.Weight("out_proj_bias", (size,), "self_attn.out_proj.bias", init="zeros"),
            op.Weight("linear1_kernel", (self.hidden, size), "linear1.weight", fan_in=size),
            op.Weight("linear1_bias", (self.hidden,), "linear1.bias", fan_in=size),
            op.Weight("linear2_kernel", (size, self.hidden), "linear2.weight", fan_in=self.hidden),
            op.Weight("linear2_bias", (size,), "linear2.bias", fan_in=self.hidden),
            *norms,
        )

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        batch, length, size = inputs[0].concrete()
        return batch * (attention_flops(length, length, size) + 4 * length * size * self.hidden)

    def summary(self) -> str:
        return f"{self.heads} heads · {self.hidden}"


def _turned(name: str) -> op.OnnxValue:
    return op.OnnxNode("Transpose", (op.OnnxWeight(name),), {"perm": (1, 0)})
