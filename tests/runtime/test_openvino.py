"""OpenVINO as an engine: true FP32, layers it cannot run are named, and nothing is reported to its makers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import layer, pixels, unet, unet_weights

from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.interrupt import Interrupt, InterruptedRunError
from designer.runtime.plan import PartStep, make_plan
from designer.runtime.session import Session

if importlib.util.find_spec("openvino") is None:  # importing it here would start its telemetry
    pytest.skip("OpenVINO is not installed", allow_module_level=True)
ROOT = Path(__file__).parents[2]
OPTIONS = RunOptions(engine="openvino", threads=1)
SILENT = """
import sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.posix_spawn"):
        sys.stderr.write(f"{event} {arguments}")
        import os
        os._exit(7)

sys.addaudithook(watch)
sys.path.insert(0, "tests/runtime")
from runtime_networks import pixels, unet, unet_weights
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

session = Session(unet(), load(entry_points=False), unet_weights(), RunOptions(engine="openvino", threads=1))
session.set_input("image", pixels(), is_image=False)
assert session.run().steps[0].engine == "openvino"
assert "openvino_telemetry" not in sys.modules
"""


def compiled(graph, registry, weights, *wanted):
    inference = Inference(graph, registry)
    (step,) = make_plan(inference, [Source.parse(name) for name in wanted]).steps
    assert isinstance(step, PartStep)
    return load_engines(installed=False).make(inference, weights, OPTIONS).compile(step.part, step.wanted)


def check_with_torch(graph, registry, weights, array):
    """OpenVINO gives what torch gives."""
    found = []
    for engine in ("openvino", "torch"):
        session = Session(graph, registry, weights, RunOptions(engine=engine, threads=1))
        session.set_input("image", array, is_image=False)
        found.append(session.run().outputs["result"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_nothing_is_sent_and_nothing_is_written_to_the_home_folder(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "TF_BUILD", "JENKINS_URL")}
    environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SILENT], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_one_compiled_part_serves_batches_of_any_size(runtime_registry):
    part = compiled(unet(), runtime_registry, unet_weights(), "result")
    single = part.run({Source("image"): pixels(seed=1)})[Source("out")]
    several = part.run({Source("image"): np.concatenate([pixels(seed=1), pixels(seed=2)])})[Source("out")]
    again = part.run({Source("image"): pixels(seed=1)})[Source("out")]
    assert (single.shape, several.shape) == ((1, 3, 24, 32), (2, 3, 24, 32))
    np.testing.assert_allclose(several[:1], single, atol=1e-5)
    np.testing.assert_array_equal(again, single)


def test_hidden_layers_are_captured_as_by_onnx_runtime(runtime_registry):
    captures = [Source("enc 1"), Source("norm"), Source("cat")]
    found = {}
    for engine in ("onnxruntime", "openvino"):
        session = Session(unet(), runtime_registry, unet_weights(), RunOptions(engine=engine, threads=1))
        session.set_input("image", pixels(), is_image=False)
        found[engine] = session.run(captures)
    for source in captures:
        ours, theirs = found["openvino"].captures[source], found["onnxruntime"].captures[source]
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def mixed(kind: str, **params: str) -> Graph:
    """A layer that OpenVINO refuses between two that it takes."""
    return Graph(
        [
            layer("image", "input", dims="16x16x3"),
            layer("before", "identity", "image"),
            layer("clip", "activation", "before", ActivationSpec("relu")),
            layer("the one", kind, "clip", **params),
            layer("after", "element_wise", "the one,the one", operation="add"),
            layer("result", "output", "after"),
        ]
    )


@pytest.mark.parametrize(
    ("sign", "reason"), [("dividend", "remainder exceeds the divisor"), ("divisor", "the remainder of a multiple")]
)
def test_remainders_are_refused(runtime_registry, sign, reason):
    """OpenVINO 2026.4: 16 as the remainder of 2.5e8 and 0.44; a number instead of 0 as its remainder by itself."""
    graph = Graph(
        [
            layer("image", "input", dims="16x16x3"),
            layer("rest", "modulo", "image,image", sign=sign),
            layer("result", "output", "rest"),
        ]
    )
    with pytest.raises(DiagnosticError, match=reason):
        compiled(graph, runtime_registry, Weights(), "result")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_remainders_of_integers_are_refused(runtime_registry, dtype):
    graph = Graph(
        [
            layer("numbers", "tensor_input", shape="4", dtype=dtype),
            layer("more", "tensor_input", shape="4", dtype=dtype),
            layer("rest", "modulo", "numbers,more", sign="divisor"),
            layer("result", "output", "rest"),
        ]
    )
    with pytest.raises(DiagnosticError, match="its remainder of large integers is wrong") as caught:
        compiled(graph, runtime_registry, Weights(), "result")
    assert [found.layer for found in caught.value.diagnostics] == ["rest"]


@pytest.mark.parametrize(
    ("kind", "operation", "dtype", "refused"),
    [
        ("element_wise", "subtract", "uint8", True),
        ("element_wise", "squared_difference", "int8", True),
        ("element_wise", "maximum", "uint8", False),
        ("element_wise", "subtract", "int16", False),
        ("bitwise", "shift_left", "uint8", True),
        ("bitwise", "xor", "uint8", False),
    ],
)
def test_arithmetic_of_bytes_is_refused_where_it_saturates(runtime_registry, kind, operation, dtype, refused):
    """OpenVINO 2026.4: 0 as the difference of 1 and 2, instead of 255 (openvino issues 35639 and 35650)."""
    graph = Graph(
        [
            layer("numbers", "tensor_input", shape="4", dtype=dtype),
            layer("the one", kind, "numbers,numbers", operation=operation),
            layer("result", "output", "the one"),
        ]
    )
    if not refused:
        compiled(graph, runtime_registry, Weights(), "result")
        return
    with pytest.raises(DiagnosticError, match="saturates") as caught:
        compiled(graph, runtime_registry, Weights(), "result")
    assert [found.layer for found in caught.value.diagnostics] == ["the one"]


@pytest.mark.parametrize(
    ("inserting", "axes", "keep"),
    [
        (layer("more", "unsqueeze", "image", axis=-1), "1", "true"),
        (layer("more", "unsqueeze", "image", axis=2), "0", "true"),
        (layer("more", "unsqueeze", "image", axis=-1), "-2", "false"),
        (layer("more", "reshape", "image", shape="3,4,5,1"), "1", "true"),
    ],
)
def test_an_inserted_axis_before_a_reduction(runtime_registry, inserting, axes, keep):
    """OpenVINO 2026.4 inserts the axis behind the reduction, in the wrong place."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3"),
            inserting,
            layer("same", "identity", "more"),
            layer("mean", "reduce", "same", axes=axes, keep=keep),
            layer("result", "output", "mean"),
        ]
    )
    array = np.random.default_rng(0).random((1, 3, 4, 5), np.float32)
    session = Session(graph, runtime_registry, Weights(), OPTIONS)
    session.set_input("image", array, is_image=False)
    place = int(inserting.params.get("axis", "-1")) % 5
    right = np.expand_dims(array, place).mean(int(axes), keepdims=keep == "true")
    np.testing.assert_allclose(session.run().outputs["result"], right, rtol=1e-5)


@pytest.mark.parametrize(
    ("activation", "following"),
    [
        *((name, layer("then", "identity", "largest")) for name in ("silu", "gelu", "hard_swish", "mish", "relu")),
        ("", layer("then", "unary", "largest", function="abs")),
        ("", layer("then", "pooling", "largest", operation="lp", norm=3, size="2x2", stride="2x2")),
    ],
)
def test_a_function_of_the_largest_values_of_a_convolution(runtime_registry, activation, following):
    """OpenVINO 2026.4 applies functions before the pooling, also those of which the largest values are not of the largest ones."""
    graph = Graph(
        [
            layer("image", "input", dims="16x16x3"),
            layer("conv", "convolution", "image", features=4, kernel="3x3"),
            layer("norm", "batch_normalization", "conv"),
            layer(
                "largest",
                "pooling",
                "norm",
                ActivationSpec(activation) if activation else None,
                operation="max",
                size="2x2",
                stride="2x2",
            ),
            following,
            layer("result", "output", "then"),
        ]
    )
    weights = random_weights(required_weights(Inference(graph, runtime_registry)), seed=3)
    array = 3 * np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    check_with_torch(graph, runtime_registry, weights, array)


@pytest.mark.parametrize("bias", ["true", "false"])
def test_slopes_per_channel_after_a_product_of_matrices(runtime_registry, bias):
    """OpenVINO 2026.4 takes the slopes along the last axis if it has as many elements as there are channels."""
    graph = Graph(
        [
            layer("image", "input", dims="8x8x4"),
            layer(
                "dense",
                "fully_connected",
                "image",
                ActivationSpec("prelu", {}),
                features=4,
                flatten="false",
                apply_bias=bias,
            ),
            layer("result", "output", "dense"),
        ]
    )
    weights = random_weights(required_weights(Inference(graph, runtime_registry)), seed=1)
    slopes = next(key for key in weights.tensors if "slope" in str(key))
    weights = Weights({**weights.tensors, slopes: np.array([0.1, 0.5, 2, 3], np.float32)})
    array = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    check_with_torch(graph, runtime_registry, weights, array)


def test_integers_of_more_than_32_bits_are_refused(runtime_registry):
    """OpenVINO computes int64 as int32."""
    graph = Graph(
        [
            layer("numbers", "tensor_input", shape="2", dtype="int64"),
            layer("largest", "element_wise", "numbers,numbers", operation="maximum"),
            layer("result", "output", "largest"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), OPTIONS)
    session.set_input("numbers", np.array([[-(2**31), 2**31 - 1]]), is_image=False)
    assert session.run().outputs["result"].tolist() == [[-(2**31), 2**31 - 1]]
    session.set_input("numbers", np.array([[0, 2**31]]), is_image=False)
    with pytest.raises(DiagnosticError, match="32 bits") as caught:
        session.run()
    assert caught.value.diagnostics[0].layer == "numbers"


def test_numbers_of_half_precision_are_rounded_or_refused(runtime_registry):
    """OpenVINO 2026.4 computes with what a conversion rounds as if it were not there."""
    layers = [
        layer("image", "input", dims="8x8x3"),
        layer("half", "cast", "image", target="float16"),
        layer("same", "identity", "half"),
        layer("single", "cast", "same", target="float32"),
        layer("truth", "cast", "half", target="bool"),
    ]
    graph = Graph([*layers, layer("result", "output", "same")])
    array = 300 * np.random.default_rng(0).random((1, 3, 8, 8), np.float32)
    session = Session(graph, runtime_registry, Weights(), OPTIONS)
    session.set_input("image", array, is_image=False)
    np.testing.assert_array_equal(session.run().outputs["result"], array.astype(np.float16))
    further = Graph([*layers, layer("result", "output", "single"), layer("other", "output", "truth")])
    with pytest.raises(DiagnosticError, match="half precision") as caught:
        compiled(further, runtime_registry, Weights(), "result", "other")
    assert {found.layer for found in caught.value.diagnostics} == {"single", "truth"}


@pytest.mark.parametrize("features", ["1", "6"])
def test_a_convolution_of_one_channel_to_one_column_is_refused(runtime_registry, features):
    """It reads values that it does not have, with OpenVINO 2026.4 (random networks 1878 and 709251 of the conformance run)."""
    params = {"features": features, "kernel": "3x3", "stride": "6x1"}
    for width, refused in (("4", True), ("8", False)):
        graph = Graph(
            [
                layer("image", "input", dims=f"{width}x4x1"),
                layer("narrow", "convolution", "image", **params),
                layer("result", "output", "narrow"),
            ]
        )
        weights = random_weights(required_weights(Inference(graph, runtime_registry)), 0)
        if not refused:
            compiled(graph, runtime_registry, weights, "result")
            continue
        with pytest.raises(DiagnosticError) as caught:
            compiled(graph, runtime_registry, weights, "result")
        assert [found.layer for found in caught.value.diagnostics] == ["narrow"]


@pytest.mark.parametrize(("keep", "refused"), [("false", ["norm"]), ("true", [])])
def test_a_group_normalization_of_a_reduction_is_refused(runtime_registry, keep, refused):
    """All values of it were wrong with OpenVINO 2026.4 (random network 2937 of the conformance run)."""
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("most", "reduce", "image", axes="1", operation="max", keep=keep),
            layer("norm", "group_normalization", "most", groups="1", affine="false"),
            layer("result", "output", "norm"),
        ]
    )
    try:
        compiled(graph, runtime_registry, Weights(), "result")
        found = []
    except DiagnosticError as error:
        found = [diagnostic.layer for diagnostic in error.diagnostics]
    assert found == refused


@pytest.mark.parametrize(
    ("kind", "params", "reason"),
    [
        ("padding", {"mode": "circular"}, "Pad"),
        ("resize", {"size": "8x8", "antialias": "true"}, "antialiasing"),
        ("local_response_normalization", {"bias": "2.0"}, "response"),
    ],
)
def test_a_layer_that_it_cannot_run_is_named_among_others(runtime_registry, kind, params, reason):
    with pytest.raises(DiagnosticError) as caught:
        compiled(mixed(kind, **params), runtime_registry, Weights(), "result")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.layer) == ("not-in-engine", "the one")
    assert "OpenVINO" in finding.message
    assert reason in finding.message
    assert "another engine" in (finding.remedy or "")


def test_the_second_of_two_layers_is_named(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="16x16x3"),
            layer("clip", "activation", "image", ActivationSpec("relu")),
            layer("the one", "padding", "clip", mode="circular"),
            layer("result", "output", "the one"),
        ]
    )
    with pytest.raises(DiagnosticError) as caught:
        compiled(graph, runtime_registry, Weights(), "result")
    assert [found.layer for found in caught.value.diagnostics] == ["the one"]


def test_a_run_is_given_up_when_asked(runtime_registry):
    session = Session(unet(), runtime_registry, unet_weights(), OPTIONS)
    session.set_input("image", pixels(), is_image=False)
    interrupt = Interrupt()
    interrupt.ask()
    with pytest.raises(InterruptedRunError):
        session.run(interrupt=interrupt)
    assert session.run().outputs["result"].shape == (1, 3, 24, 32)
