"""The configurations of a launch: combinations, and texts such as `1,4,16`."""

from __future__ import annotations

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Size2D
from designer.profiling.configurations import AS_OPENED, Grid, grid_of, sizes_of
from designer.runtime.api import RunOptions

OWN = RunOptions(engine="torch", precision="fp32", layout="nchw", threads=3)


def test_every_combination_once_with_that_of_the_network_first():
    grid = Grid(("onnxruntime", "torch"), ("fp16",), ("nhwc", "nchw"))
    options = grid.options(OWN)
    assert [(o.engine, o.precision, o.layout) for o in options] == [
        ("torch", "fp32", "nchw"),
        ("torch", "fp32", "nhwc"),
        ("torch", "fp16", "nchw"),
        ("torch", "fp16", "nhwc"),
        ("onnxruntime", "fp32", "nchw"),
        ("onnxruntime", "fp32", "nhwc"),
        ("onnxruntime", "fp16", "nchw"),
        ("onnxruntime", "fp16", "nhwc"),
    ]
    assert {o.threads for o in options} == {3}
    assert AS_OPENED.options(OWN) == [OWN]


def test_texts_become_a_grid_without_repetitions():
    grid = grid_of(engines="torch", precisions="fp16, fp32", layouts="nhwc", batches="4, 1,4", sizes="64x32,8x16,64x32")
    assert grid == Grid(("torch",), ("fp16", "fp32"), ("nhwc",), (4, 1), (Size2D(64, 32), Size2D(8, 16)))
    assert grid_of() == AS_OPENED


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"engines": "torch,abacus"}, "engine 'torch,abacus'"),
        ({"precisions": "fp31"}, "precision 'fp31'"),
        ({"layouts": "chwn"}, "layout 'chwn'"),
        ({"batches": "0"}, "batch '0'"),
        ({"batches": "4,65537"}, "batch '4,65537'"),
        ({"batches": "1.5"}, "batch '1.5'"),
        ({"batches": "1,"}, "batch '1,'"),
        ({"sizes": "0x8"}, "size '0x8'"),
        ({"sizes": "8x0"}, "size '8x0'"),
        ({"sizes": "65537x8"}, "size '65537x8'"),
        ({"sizes": "8x65537"}, "size '8x65537'"),
        ({"sizes": "8"}, "size '8'"),
    ],
)
def test_what_cannot_be_read_is_named(options, named):
    with pytest.raises(DiagnosticError, match=named):
        grid_of(**options)


def test_the_smallest_and_largest_values():
    assert grid_of(batches="1,65536").batches == (1, 65536)
    assert sizes_of("1x65536,65536x1") == (Size2D(1, 65536), Size2D(65536, 1))
