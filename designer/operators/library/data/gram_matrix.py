"""Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class GramMatrix(
    op.Operator,
    type="gram_matrix",
    title="Gram matrix",
    category=op.Category.DATA,
    synonyms=("style", "correlation", "covariance", "style transfer"),
):
    """The Gram matrix N x C x C: products of all pairs of channels, summed over the positions; describes the style of an image."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    normalize: bool = op.param(default=True, doc="Divide by the number of values per sample.")
    examples = (op.Example((op.image(3, 4, 5),)), op.Example((op.image(2, 3, 3),), {"normalize": False}, "plain sums"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        return inputs[0].with_shape(x.n, x.c, x.c)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        rows = op.TorchMethod("flatten", op.TorchInput(0), (2,))
        products = op.TorchCall("torch.matmul", (rows, op.TorchMethod("transpose", rows, (1, 2))))
        if not self.normalize:
            return products
        return op.TorchCall("torch.div", (products, op.TorchMethod("numel", op.TorchItem(op.TorchInput(0), 0))))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x = inputs[0].image()
        rows = op.OnnxNode("Reshape", (op.OnnxInput(0), op.int64(0, x.c, -1)))
        products = op.OnnxNode("MatMul", (rows, op.OnnxNode("Transpose", (rows,), {"perm": (0, 2, 1)})))
        if not self.normalize:
            return products
        values = op.OnnxNode("ReduceProd", (op.OnnxNode("Shape", attributes={"start": 1}),), {"keepdims": 0})
        return op.OnnxNode("Div", (products, op.OnnxNode("Cast", (values,), {"to": 1})))

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * inputs[0].image().c * inputs[0].elements()
