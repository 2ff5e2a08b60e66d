"""Multi-head attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.attention._attention import attention_flops, multi_head
from designer.operators.shapes import divisible, known, same_shape
from designer.texts import tr


class MultiHeadAttention(
    op.Operator,
    type="multi_head_attention",
    title="Multi-head attention",
    category=op.Category.ATTENTION,
    synonyms=("mha", "self attention", "cross attention", "transformer"),
):
    """Attention with several heads and learned input and output projections. Tensors are N x length x features.

    With only the query connected it is self-attention; an unconnected value defaults to the key.
    """

    inputs = (
        op.Port("query", rank=3, dtypes=op.FLOATS),
        op.Port("key", rank=3, dtypes=op.FLOATS, optional=True),
        op.Port("value", rank=3, dtypes=op.FLOATS, optional=True),
    )

    heads: int = op.param(default=8, min=1, max=1024, doc="Number of heads; must divide the number of features.")
    apply_bias: bool = op.param(default=True, doc="Use biases in the projections.")
    causal: bool = op.param(default=False, doc="Each query attends only to keys at its position or before.")
    dropout: float = op.param(
        default=0.0, min=0.0, max=1.0, step=0.05, doc="Dropout probability of attention weights in training."
    )
    examples = (
        op.Example((op.TensorType((op.BATCH, 5, 8)),), {"heads": 2}),
        op.Example(
            (op.TensorType((op.BATCH, 5, 6)), op.TensorType((op.BATCH, 4, 6))),
            {"heads": 3, "apply_bias": False},
            "cross",
        ),
        op.Example((op.TensorType((op.BATCH, 2, 4)),) * 3, {"heads": 1, "dropout": 0.1}, "one head"),
        op.Example(
            (op.TensorType((op.BATCH, 5, 8)), op.TensorType((op.BATCH, 6, 8))), {"heads": 2, "causal": True}, "causal"
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        query = inputs[0]
        known(query, 1, "query")
        features = known(query, 2, "query")
        divisible("features", features, self.heads, "heads", "query")
        for port, other in zip(("key", "value"), inputs[1:], strict=False):
            known(other, 1, port)
            if other.shape[0] != query.shape[0] or other.shape[2] != query.shape[2]:
                raise op.ShapeError(
                    tr(
                        "{port} {other} and query {query} may differ in the length (axis 1) only",
                        port=port,
                        other=other,
                        query=query,
                    ),
                    port=port,
                    remedy=tr("make the last axes equal, for instance with Fully connected"),
                )
        if len(inputs) == 3:
            same_shape(inputs[1], inputs[2], "value")
        return query

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {"embed_dim": inputs[0].dim(2), "num_heads": self.heads}
        if self.dropout:
            kwargs["dropout"] = self.dropout
        if not self.apply_bias:
            kwargs["bias"] = False
        kwargs["batch_first"] = True
        last = len(inputs) - 1
        query, key = op.TorchInput(0), op.TorchInput(min(1, last))
        arguments: tuple[Any, ...] = (query, key, op.TorchInput(last), None, False)
        if self.causal:
            # a queries x keys mask of any length, on any device; true entries are masked
            everything = slice(None)
            rows = op.TorchCall("torch.ones_like", (op.TorchItem(query, (0, everything, slice(None, 1))),))
            columns = op.TorchCall("torch.ones_like", (op.TorchItem(key, (0, everything, 0)),))
            later = op.TorchCall("torch.triu", (op.TorchCall("torch.mul", (rows, columns)),), {"diagonal": 1})
            arguments = (*arguments, op.TorchMethod("to", later, (op.TorchName("torch.bool"),)))
        return op.TorchItem(op.TorchModule("torch.nn.MultiheadAttention", kwargs, arguments), 0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        last = len(inputs) - 1
        places = (0, min(1, last), last)
        biases = ("in_proj_bias", "out_proj_bias") if self.apply_bias else ("", "")
        return multi_head(
            [op.OnnxInput(place) for place in places],
            [inputs[place].dim(1) for place in places],
            inputs[0].dim(2),
            self.heads,
            ("in_proj_weight", biases[0], "out_proj_weight", biases[1]),
            self.causal,
        )

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        size = inputs[0].dim(2)
        into = op.Weight("in_proj_weight", (3 * size, size), "in_proj_weight", init="xavier")
        out = op.Weight("out_proj_weight", (size, size), "out_proj.weight", fan_in=size)
        if not self.apply_bias:
            return (into, out)
        bias = op.Weight("in_proj_bias", (3 * size,), "in_proj_bias", init="zeros")
        return (into, bias, out, op.Weight("out_proj_bias", (size,), "out_proj.bias", init="zeros"))

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        batch, queries, size = inputs[0].concrete()
        return batch * attention_flops(queries, inputs[min(1, len(inputs) - 1)].dim(1), size)

    def summary(self) -> str:
        return f"{self.heads} heads{' · causal' if self.causal else ''}"
