"""The names of hardware counters, checked for every chip with the library that NVIDIA ships with `ncu-report`."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from designer.profiling.counters import DRAM, DURATION, METRICS, TENSOR_V2

ncu_report = pytest.importorskip("ncu_report")
CHIPS = {
    (7, 0): "GV100",
    (7, 5): "TU104",
    (8, 0): "GA100",
    (8, 6): "GA102",
    (8, 7): "GA10B",
    (8, 9): "AD102",
    (9, 0): "GH100",
    (10, 0): "GB100",
    (10, 3): "GB110",
    (11, 0): "GB10B",
    (12, 0): "GB202",
    (12, 1): "GB20B",
}
Size, Pointer, Text = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_HEAD = [("struct_size", Size), ("private", Pointer)]


class Initialize(ctypes.Structure):
    _fields_ = _HEAD


class ScratchSize(ctypes.Structure):
    _fields_ = [*_HEAD, ("chip", Text), ("availability", Pointer), ("size", Size)]


class Evaluator(ctypes.Structure):
    _fields_ = [
        *_HEAD, ("scratch", Pointer), ("scratch_size", Size), ("chip", Text), ("availability", Pointer), ("image", Pointer),
        ("image_size", Size), ("evaluator", Pointer),
    ]  # fmt: skip


class Convert(ctypes.Structure):
    _fields_ = [*_HEAD, ("evaluator", Pointer), ("name", Text), ("request", Pointer), ("request_size", Size)]


def call(library, function, structure, **values):
    """Call a function of the library and return its filled structure; None if the function fails."""
    filled = structure(ctypes.sizeof(structure), None, **values)
    return None if getattr(library, function)(ctypes.byref(filled)) else filled


@pytest.fixture(scope="module")
def library():
    path = Path(ncu_report.__file__).with_name("libnvperf_host.so")
    if not path.is_file():
        pytest.skip("no nvperf library for this system")
    loaded = ctypes.CDLL(str(path))
    assert call(loaded, "NVPW_InitializeHost", Initialize) is not None
    return loaded


@pytest.fixture
def known(library):
    """Whether a chip has a metric."""
    kept = []

    def check(chip: str, metric: str) -> bool:
        size = call(library, "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", ScratchSize, chip=chip.encode())
        assert size is not None, f"{chip} is not known"
        scratch = ctypes.create_string_buffer(size.size)
        kept.append(scratch)
        evaluator = call(
            library, "NVPW_CUDA_MetricsEvaluator_Initialize", Evaluator, chip=chip.encode(),
            scratch=ctypes.cast(scratch, Pointer), scratch_size=size.size,
        )  # fmt: skip
        request = ctypes.create_string_buffer(16)
        made = call(
            library, "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", Convert, evaluator=evaluator.evaluator,
            name=metric.encode(), request=ctypes.cast(request, Pointer), request_size=16,
        )  # fmt: skip
        return made is not None

    return check


def test_every_chip_of_the_table_has_its_metrics(known):
    assert set(CHIPS) == set(METRICS)
    for capability, metrics in METRICS.items():
        for metric in (DURATION, *metrics.values()):
            assert known(CHIPS[capability], metric), f"{CHIPS[capability]} has no {metric}"
        assert ("memory_throughput" in metrics) == known(CHIPS[capability], DRAM)
        assert (TENSOR_V2 in metrics.values()) == known(CHIPS[capability], TENSOR_V2)
