"""The two kernels that calibrate compute: a square matrix product and a 3x3 convolution, in the engine under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CONV_CHANNELS = 64


def matmul_call(engine: str, threads: int, size: int) -> tuple[Callable[[], object], float]:
    """A call that multiplies two `size` x `size` fp32 matrices, and its number of operations."""
    flops = 2.0 * size**3
    if engine == "torch":
        import torch

        torch.set_num_threads(threads)
        a, b = torch.rand(size, size), torch.rand(size, size)
        out = torch.empty(size, size)
        return lambda: torch.mm(a, b, out=out), flops
    a_np, b_np = np.ones((size, size), np.float32), np.ones((size, size), np.float32)
    return _onnx_call("MatMul", {"x": a_np}, {"w": b_np}, {}, threads), flops


def conv_call(engine: str, threads: int, size: int) -> tuple[Callable[[], object], float]:
    """A call of a 3x3 convolution, 64 to 64 channels on (size / 8)^2 pixels, and its number of operations."""
    side, c = max(size // 8, 8), CONV_CHANNELS
    flops = 2.0 * side * side * c * c * 9
    if engine == "torch":
        import torch

        torch.set_num_threads(threads)
        x = torch.rand(1, c, side, side).to(memory_format=torch.channels_last)
        w = torch.rand(c, c, 3, 3).to(memory_format=torch.channels_last)

        def run() -> object:
            with torch.inference_mode():
                return torch.nn.functional.conv2d(x, w, padding=1)

        return run, flops
    x_np, w_np = np.ones((1, c, side, side), np.float32), np.ones((c, c, 3, 3), np.float32)
    return _onnx_call("Conv", {"x": x_np}, {"w": w_np}, {"pads": [1, 1, 1, 1]}, threads), flops


def _onnx_call(
    op: str,
    feeds: dict[str, np.ndarray[Any, Any]],
    constants: dict[str, np.ndarray[Any, Any]],
    attributes: dict[str, Any],
    threads: int,
) -> Callable[[], object]:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    node = helper.make_node(op, [*feeds, *constants], ["y"], **attributes)
    weights = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph([node], "kernel", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)
