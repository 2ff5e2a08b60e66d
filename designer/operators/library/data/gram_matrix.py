"""How channels go together."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    image,
    int64,
    param,
)


class GramMatrix(
    Operator,
    type="gram_matrix",
    title="Gram matrix",
    category=Category.DATA,
    synonyms=("style", "correlation", "covariance", "style transfer"),
):
    """The products of all pairs of channels, summed over the positions: N x C x C, which describes an image's style."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    normalize: bool = param(default=True, doc="Divide by the number of values of a sample.")
    examples = (Example((image(3, 4, 5),)), Example((image(2, 3, 3),), {"normalize": False}, "plain sums"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        return inputs[0].with_shape(x.n, x.c, x.c)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        rows = TorchMethod("flatten", TorchInput(0), (2,))
        products = TorchCall("torch.matmul", (rows, TorchMethod("transpose", rows, (1, 2))))
        if not self.normalize:
            return products
        return TorchCall("torch.div", (products, TorchMethod("numel", TorchItem(TorchInput(0), 0))))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        x = inputs[0].image()
        rows = OnnxNode("Reshape", (OnnxInput(0), int64(0, x.c, -1)))
        products = OnnxNode("MatMul", (rows, OnnxNode("Transpose", (rows,), {"perm": (0, 2, 1)})))
        if not self.normalize:
            return products
        values = OnnxNode("ReduceProd", (OnnxNode("Shape", attributes={"start": 1}),), {"keepdims": 0})
        return OnnxNode("Div", (products, OnnxNode("Cast", (values,), {"to": 1})))

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        x = inputs[0].image()
        return 2 * x.c * x.c * x.h * x.w
