"""Rows made of times and costs: single steps, fused steps, time outside of steps, and the memory at each of them."""

from __future__ import annotations

import pytest
from profiling_networks import RELU, layer_

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.profiling.cost import cost_table
from designer.profiling.live_memory import WEIGHTS, live_tensors
from designer.profiling.quantities import ValueSource, measured, unavailable
from designer.profiling.rows import OUTSIDE, operator_rows, outside_row, peak_memory
from designer.profiling.schema import OperatorProfile, RunPeaks
from designer.runtime.engine_api import Sample

PIXELS = 32 * 24
WEIGHT_BYTES = 4 * (3 * 8 * 9 + 8 + 8 * 8 * 9 + 8 + 16 * 3 * 25)
STEPS = [("conv a",), ("pool",), ("conv_b",), ("up",), ("cat",), ("conv_c",), ("sum",)]
# 10 GFLOP/s, 1 GB/s of memory and 4 GB/s of a cache of 16 KiB, 0.001 ms for a launch
PEAKS = RunPeaks(measured(10e9), measured(1e9), measured(4e9), 1 << 14, measured(0.001))


def test_the_row_of_a_fused_step(small_inference):
    table = cost_table(small_inference)
    samples = [
        Sample(("image",), []),
        Sample(("conv_c", "sum"), [0.003, 0.001, 0.002, 0.009, 0.002], "kernel_1"),
        Sample((), [0.5]),
    ]
    counted = {("conv_c", "sum"): {"occupancy": measured(40.0), "memory_throughput": measured(30.0)}}
    (row,) = operator_rows(table, samples, PEAKS, counted, "")
    flops = 2 * PIXELS * 3 * 16 * 25
    moved = 4 * (16 * PIXELS + 3 * PIXELS + 16 * 3 * 25 + 3 * PIXELS)
    assert (row.layers, row.type, row.kernels) == (("conv_c", "sum"), "convolution + element_wise", "kernel_1")
    assert (row.time_ms, row.spread_ms) == pytest.approx((2.0, 0.5))
    assert (row.inputs, row.outputs) == (("N x 16 x 24 x 32", "N x 3 x 24 x 32"), ("N x 3 x 24 x 32",))
    assert (row.flops, row.bytes, row.learned) == (flops, moved, 16 * 3 * 25)
    assert set(row.parameters) == {"conv_c", "sum"}
    assert row.parameters["conv_c"]["kernel"] == "5x5"
    assert row.summary == f"{table.rows['conv_c'].summary}; {table.rows['sum'].summary}"
    assert row.bound == "compute"
    assert row.roof_ms == pytest.approx(flops / 10e9 * 1e3)
    assert row.saving_ms == pytest.approx(2.0 - flops / 10e9 * 1e3)
    assert (row.occupancy, row.memory_throughput) == (measured(40.0), measured(30.0))
    assert row.tensor_core == measured(0.0, "the step launched no kernel")
    assert row.compute_throughput.value == pytest.approx(100 * flops / 0.002 / 10e9)
    assert row.memory_bytes == 4 * (3 + 3) * PIXELS + WEIGHT_BYTES  # the image and the sum; no step made `cat`


def test_the_row_of_one_layer_without_counters(small_inference):
    table = cost_table(small_inference, batch=2)
    (row,) = operator_rows(table, [Sample(("pool",), [0.004])], PEAKS, {}, "no ncu")
    moved = 2 * 4 * (8 * PIXELS + 8 * PIXELS // 4)
    assert (row.time_ms, row.spread_ms, row.summary) == (4.0, None, table.rows["pool"].summary)
    assert (row.bytes, row.bound) == (moved, "memory")
    assert row.roof_ms == pytest.approx(moved / 1e9 * 1e3)
    assert row.saving_ms == pytest.approx(4.0 - moved / 1e9 * 1e3)
    assert row.occupancy == row.tensor_core == unavailable("no ncu")
    assert row.memory_throughput.value == pytest.approx(100 * moved / 0.004 / 1e9)
    assert row.memory_throughput.source is ValueSource.MODELLED


def test_a_fused_step_reads_what_its_first_layers_read_and_makes_what_its_last_layer_makes(small_inference):
    table = cost_table(small_inference)
    (row,) = operator_rows(table, [Sample(("conv a", "pool", "conv_b", "up", "cat"), [0.004])], PEAKS, {}, "")
    assert (row.inputs, row.outputs) == (("N x 3 x 24 x 32",), ("N x 16 x 24 x 32",))
    assert row.type == "convolution + pooling + upsample + concatenation"
    assert (row.name, row.learned) == ("conv a + pool + conv_b + up + cat", 224 + 584)
    assert row.bytes == 4 * (3 * PIXELS + 224 + 584 + 16 * PIXELS)


def test_a_counter_that_the_chip_lacks_is_modelled(small_inference):
    counted = {("pool",): {"memory_throughput": unavailable("not on this chip"), "tensor_core": measured(0.0)}}
    (row,) = operator_rows(cost_table(small_inference), [Sample(("pool",), [0.004])], PEAKS, counted, "")
    assert row.memory_throughput.source is ValueSource.MODELLED


def test_time_outside_of_operators():
    row = outside_row(1.5, 0.25, "copy")
    assert (row.layers, row.type, row.summary) == ((), "", OUTSIDE)
    assert (row.time_ms, row.spread_ms, row.kernels) == (1.5, 0.25, "copy")
    for used in (row.tensor_core, row.memory_throughput, row.occupancy, row.compute_throughput):
        assert used == unavailable("this time is not in any operator")


def test_tensors_exist_from_their_step_to_their_last_reader(small_inference):
    image, full, small = 4 * 3 * PIXELS, 4 * 8 * PIXELS, 2 * 4 * PIXELS
    expected = [
        {"image": image, "conv a": full},
        {"image": image, "conv a": full, "pool": small},
        {"image": image, "conv a": full, "pool": small, "conv_b": small},
        {"image": image, "conv a": full, "conv_b": small, "up": full},
        {"image": image, "conv a": full, "up": full, "cat": 2 * full},
        {"image": image, "cat": 2 * full, "conv_c": image},
        {"image": image, "conv_c": image, "sum": image},
    ]
    found = live_tensors(cost_table(small_inference), STEPS)
    assert found == [{**tensors, WEIGHTS: WEIGHT_BYTES} for tensors in expected]


def test_the_peak_of_the_memory_with_the_largest_tensor_first(small_inference):
    rows = [OperatorProfile(step, "", 1.0) for step in STEPS]
    peak = peak_memory(cost_table(small_inference), [rows[0], outside_row(1.0, None), *rows[1:]])
    assert peak.operator == 4
    assert list(peak.tensors.items()) == [
        ("cat", 4 * 16 * PIXELS),
        ("conv a", 4 * 8 * PIXELS),
        ("up", 4 * 8 * PIXELS),
        ("image", 4 * 3 * PIXELS),
        (WEIGHTS, WEIGHT_BYTES),
    ]
    assert peak.bytes == 4 * 35 * PIXELS + WEIGHT_BYTES
    assert peak_memory(cost_table(small_inference), [outside_row(1.0, None)]) is None


def test_tensors_pass_through_layers_that_no_step_ran(profiling_registry):
    graph = Graph(
        [
            layer_("image", "input", dims="8x4x3"),
            layer_("first", "convolution", "image", RELU, features=5, kernel="1x1"),
            layer_("same", "identity", "first"),
            layer_("second", "convolution", "same", features=2, kernel="1x1"),
            layer_("third", "convolution", "same", features=7, kernel="1x1"),
            layer_("result", "output", "third"),
        ]
    )
    table = cost_table(Inference(graph, profiling_registry))
    weights = 4 * (3 * 5 + 5 + 5 * 2 + 2 + 5 * 7 + 7)
    assert live_tensors(table, [("first",), ("second",), ("third",)]) == [
        {"image": 4 * 96, "first": 4 * 160, WEIGHTS: weights},
        {"first": 4 * 160, "second": 4 * 64, WEIGHTS: weights},
        {"first": 4 * 160, "second": 4 * 64, "third": 4 * 224, WEIGHTS: weights},
    ]
    assert live_tensors(table, [("first", "second"), ("third",)])[0]["first"] == 4 * 160  # also read by the next step


def test_a_result_that_a_later_step_reads_too_exists_until_the_end(profiling_registry):
    graph = Graph(
        [
            layer_("image", "input", dims="8x4x3"),
            layer_("early", "convolution", "image", features=5, kernel="1x1"),
            layer_("inner", "convolution", "early", features=4, kernel="1x1"),
            layer_("late", "convolution", "inner", features=2, kernel="1x1"),
            layer_("result", "output", "early"),
            layer_("other", "output", "late"),
        ]
    )
    table = cost_table(Inference(graph, profiling_registry))
    held = live_tensors(table, [("early",), ("inner",), ("late",)])
    assert [set(tensors) - {WEIGHTS} for tensors in held] == [
        {"image", "early"},
        {"early", "inner"},
        {"early", "inner", "late"},
    ]
    fused = live_tensors(table, [("early", "inner", "late")])[0]
    assert set(fused) - {WEIGHTS} == {"image", "early", "late"}
