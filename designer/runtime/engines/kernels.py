"""The kernels that calibrate compute, a matrix product and a convolution, as ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.runtime.engine_api import KernelMaker

CONV_CHANNELS = 64

Runner = Callable[[bytes, dict[str, NDArray[np.float32]], int], Callable[[], object]]
"""(model, feeds by name, threads) to a call that runs the model once."""


def onnx_kernels(runner: Runner) -> dict[str, KernelMaker]:
    """A product of two `size` x `size` matrices, and a 3x3 convolution, 64 to 64 channels on (size / 8)^2 pixels."""

    def matrix_product(threads: int, size: int) -> tuple[Callable[[], object], float]:
        x = np.ones((size, size), np.float32)
        return runner(_model("MatMul", x, x), {"x": x}, threads), 2.0 * size**3

    def convolution(threads: int, size: int) -> tuple[Callable[[], object], float]:
        side, c = max(size // 8, 8), CONV_CHANNELS
        x, w = np.ones((1, c, side, side), np.float32), np.ones((c, c, 3, 3), np.float32)
        return runner(_model("Conv", x, w, pads=[1, 1, 1, 1]), {"x": x}, threads), 2.0 * side * side * c * c * 9

    return {"matrix product": matrix_product, "convolution": convolution}


def _model(op: str, x: NDArray[np.float32], w: NDArray[np.float32], **attributes: Any) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    graph = helper.make_graph([node], "kernel", inputs, outputs, [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data
