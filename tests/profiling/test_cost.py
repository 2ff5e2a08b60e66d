"""Costs against torch's own counter and against hand-made figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.files.document import read_document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import BATCH, DataType, TensorType
from designer.operators.inlining import inline
from designer.operators.live_cost import LiveCost
from designer.profiling.cost import cost_table
from designer.profiling.live_memory import WEIGHTS, live_tensors


def test_shapes_are_known(small_inference):
    assert not small_inference.diagnostics()


def test_figures_of_one_convolution(small_inference):
    table = cost_table(small_inference)
    row = table.rows["conv a"]
    pixels = 32 * 24
    assert row.flops == 2 * pixels * 8 * 3 * 9
    assert row.learned == 8 * 3 * 9 + 8
    group = table.group(["conv a"])
    assert group.bytes_read == 4 * (3 * pixels + 8 * 3 * 9 + 8)
    assert group.bytes_written == 4 * 8 * pixels


def test_half_precision_halves_bytes_and_batch_scales_work(small_inference):
    one, half = cost_table(small_inference).total(), cost_table(small_inference, precision="fp16").total()
    assert half.bytes_read * 2 == one.bytes_read
    assert half.flops == one.flops
    assert cost_table(small_inference, batch=3).total().flops == 3 * one.flops


def test_tensors_inside_a_group_are_not_moved(small_inference):
    table = cost_table(small_inference)
    pixels = 32 * 24
    apart = [table.group([n]) for n in ("conv_c", "sum")]
    fused = table.group(["conv_c", "sum"])
    assert fused.flops == sum(c.flops for c in apart)
    assert fused.bytes_written == apart[1].bytes_written  # conv_c's result stays inside
    assert fused.bytes_read == apart[0].bytes_read + apart[1].bytes_read - 4 * 3 * pixels


def test_a_tensor_that_is_read_inside_and_outside_of_a_group_is_written(profiling_registry):
    def convolution(name, before, features):
        return Layer(name, "convolution", inputs=(Source(before),), params={"features": str(features), "kernel": "1x1"})

    layers = [convolution("a", "image", 2), convolution("b", "a", 5), convolution("c", "a", 7)]
    graph = Graph([Layer("image", "input", params={"dims": "8x4x3"}), *layers])
    table = cost_table(Inference(graph, profiling_registry))
    assert table.group(["a", "b"]).bytes_written == 4 * (2 + 5) * 8 * 4
    assert table.group(["a", "b", "c"]).bytes_written == 4 * (5 + 7) * 8 * 4


@pytest.mark.parametrize(("precision", "size"), [("fp32", 4), ("fp16", 2), ("bf16", 2)])
def test_integers_have_their_own_size_in_every_precision(small_inference, precision, size):
    table = cost_table(small_inference, precision=precision, batch=3)
    for dtype, expected in (
        (DataType.FLOAT32, size),
        (DataType.INT64, 8),
        (DataType.INT32, 4),
        (DataType.UINT8, 1),
        (DataType.BOOL, 1),
    ):
        assert table.bytes_of(TensorType((5, 7), dtype)) == 35 * expected
        assert table.bytes_of(TensorType((BATCH, 7), dtype)) == 21 * expected


def test_layers_that_nobody_reads_write_their_bytes(profiling_registry):
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3"}),
            Layer("kept", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x1"}),
            Layer("unread", "convolution", inputs=(Source("kept"),), params={"features": "5", "kernel": "1x1"}),
        ]
    )
    table = cost_table(Inference(graph, profiling_registry), batch=3)
    assert table.group(["unread"]).bytes_written == 4 * 3 * 5 * 8 * 4
    assert table.group(["kept", "unread"]).bytes_written == 4 * 3 * 5 * 8 * 4
    assert table.group(["kept"]).bytes_written == 4 * 3 * 2 * 8 * 4


def test_a_tensor_read_twice_by_a_group_is_moved_once(small_inference):
    table = cost_table(small_inference)
    assert table.group(["conv_c", "sum"]).bytes_read == table.group(["conv_c"]).bytes_read + 4 * 3 * 32 * 24


def test_flops_equal_torchs_counter(small_inference, small_weights):
    pytest.importorskip("torch")
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from designer.profiling.network_part import whole_part
    from designer.runtime.api import RunOptions
    from designer.runtime.engines.torch_engine import TorchEngine

    part, wanted, _ = whole_part(small_inference)
    compiled = TorchEngine(small_inference, small_weights, RunOptions(engine="torch", threads=1)).compile(part, wanted)
    for batch in (1, 2):
        with FlopCounterMode(display=False) as counter:
            compiled.run_torch([torch.zeros(batch, 3, 24, 32)])
        assert counter.get_total_flops() == cost_table(small_inference, batch=batch).total().flops


@pytest.mark.parametrize(
    ("params", "batch", "products"),
    [({"batch": "4"}, 4, 4), ({"batch": "1"}, 1, 1), ({}, 4, 4)],
    ids=["fixed", "one", "open"],
)
def test_a_batch_multiplies_the_operations_once(profiling_registry, params, batch, products):
    """Whether the inputs have it or the run; what does not depend on the batch is not multiplied."""
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3", **params}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x1"}),
            Layer("flat", "flatten", inputs=(Source("conv"),)),
            Layer("dense", "fully_connected", inputs=(Source("flat"),), params={"features": "5"}),
            Layer("left", "parameter", params={"shape": "6,7"}),
            Layer("right", "parameter", params={"shape": "7,2"}),
            Layer("fixed", "matmul", inputs=(Source("left"), Source("right"))),
        ]
    )
    inference = Inference(graph, profiling_registry)
    assert not inference.diagnostics()
    flops = {name: row.flops for name, row in cost_table(inference, batch=batch).rows.items() if row.flops}
    assert flops == {
        "conv": products * 2 * 32 * 3 * 2,
        "dense": products * 2 * 64 * 5,
        "fixed": 2 * 6 * 7 * 2,
    }


def test_parts_of_an_image_that_become_a_batch_count(profiling_registry):
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3", "batch": "1"}),
            Layer("parts", "reshape", inputs=(Source("image"),), params={"shape": "4,3,4,2", "keep_batch": "false"}),
            Layer("conv", "convolution", inputs=(Source("parts"),), params={"features": "2", "kernel": "1x1"}),
        ]
    )
    inference = Inference(graph, profiling_registry)
    assert not inference.diagnostics()
    assert cost_table(inference).rows["conv"].flops == 2 * 32 * 3 * 2
    assert LiveCost(inference).of("conv").flops == 2 * 32 * 3 * 2


@pytest.mark.parametrize("name", ["denoiser", "dncnn", "oidn_like"])
def test_flops_of_the_samples_equal_torchs_counter(name, profiling_registry):
    """On torch's meta device: shapes only, nothing is computed."""
    pytest.importorskip("torch")
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from designer.files.document import parse_document
    from designer.operators.deploy import deploy
    from designer.operators.torch_program import build_program
    from designer.profiling.network_part import whole_part
    from designer.runtime.engines.torch_engine import Interpreter, build_module

    data = (Path(__file__).resolve().parents[2] / "samples" / f"{name}.xml").read_bytes()
    inference = Inference(deploy(parse_document(data).graph, profiling_registry), profiling_registry)
    part, wanted, inputs = whole_part(inference)
    program = build_program(inference, part.layers, part.feeds, wanted)
    module = build_module(program).to("meta")
    feeds = [torch.zeros(inference.states[n].outputs[0].concrete(1), device="meta") for n in inputs]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        Interpreter(module, program)(feeds)
    total = cost_table(inference).total()
    assert counter.get_total_flops() == total.flops
    assert sum(p.numel() for p in module.parameters()) == total.parameters


def test_shared_weights_count_once(profiling_registry):
    path = Path(__file__).parents[1] / "data" / "agreement" / "shared_parameters_count.xml"
    graph = inline(read_document(path).graph, profiling_registry)
    table = cost_table(Inference(graph, profiling_registry))
    assert table.total().parameters == 84
    assert table.group(["n0.c", "n1.c"]).parameters == 84
    (held, *_) = live_tensors(table, [(name,) for name, cost in table.rows.items() if cost.sources])
    assert held[WEIGHTS] == 4 * 84


def test_totals_add_up_over_layers_that_differ_in_what_they_read_and_write(profiling_registry):
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3"}),
            Layer("wide", "convolution", inputs=(Source("image"),), params={"features": "7", "kernel": "3x1"}),
            Layer("narrow", "convolution", inputs=(Source("wide"),), params={"features": "2", "kernel": "1x1"}),
        ]
    )
    table = cost_table(Inference(graph, profiling_registry), precision="fp16", batch=5)
    pixels, wide, narrow = 5 * 8 * 4, 3 * 7 * 3 + 7, 7 * 2 + 2
    total = table.total()
    assert total.flops == 2 * pixels * (3 * 7 * 3 + 7 * 2)
    assert total.bytes_read == 2 * (pixels * (3 + 7) + wide + narrow)
    assert total.bytes_written == 2 * pixels * (3 + 7 + 2)  # the input layer writes its image too
    assert total.parameters == wide + narrow


def test_the_weights_of_an_attached_activation_count(profiling_registry):
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3"}),
            Layer(
                "conv",
                "convolution",
                inputs=(Source("image"),),
                params={"features": "7", "kernel": "1x1"},
                activation=ActivationSpec("prelu"),
            ),
        ]
    )
    row = cost_table(Inference(graph, profiling_registry), precision="bf16").rows["conv"]
    assert row.learned == 3 * 7 + 7 + 7
    assert row.weight_bytes == 2 * row.learned
    assert row.parameters["activation"] == "prelu"


def test_buffers_are_moved_but_not_learned(profiling_registry):
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x4x3"}),
            Layer("norm", "batch_normalization", inputs=(Source("image"),)),
        ]
    )
    row = cost_table(Inference(graph, profiling_registry)).rows["norm"]
    assert (row.learned, row.weight_bytes) == (2 * 3, 4 * 4 * 3)
