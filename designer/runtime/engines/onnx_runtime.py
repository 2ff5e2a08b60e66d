"""ONNX Runtime as an engine: FP32 on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from designer.runtime.engine_api import EngineDescriptor, requires
from designer.runtime.engines.kernels import onnx_kernels
from designer.runtime.engines.ort import runtime, session_options
from designer.runtime.engines.ort_engine import OrtEngine
from designer.runtime.engines.ort_timing import OrtTimer

DROP_NAN = frozenset({
    "ArgMax", "ArgMin", "GRU", "GlobalMaxPool", "GridSample", "Hardmax", "LSTM", "MaxPool", "RNN", "ReduceMax", "ReduceMin",
    "TopK",
})  # fmt: skip


def _run(model: bytes, feeds: dict[str, NDArray[np.float32]], threads: int) -> Callable[[], object]:
    ort = runtime()
    options = session_options(3)
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


ONNX_RUNTIME = EngineDescriptor(
    name="onnxruntime",
    title="ONNX Runtime",
    package="onnxruntime",
    engine=OrtEngine,
    step_timer=OrtTimer,
    kernels=onnx_kernels(_run),
    available=requires("onnxruntime", "onnx", remedy="pip install onnxruntime onnx"),
    layouts=("nchw", "nhwc"),
    skips_nan=DROP_NAN,
    stand_in="torch",
)
