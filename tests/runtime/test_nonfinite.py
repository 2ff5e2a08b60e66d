"""NaN and infinite values: seen in results, and traced to the layer that made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runtime_networks import analysed, layer, pixels, unet, unet_weights

from designer.files.weights import WeightKey, Weights, random_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Source
from designer.graph.template import Template
from designer.runtime import nonfinite as module
from designer.runtime.api import RunOptions
from designer.runtime.finite import nonfinite
from designer.runtime.nonfinite import trace_nonfinite
from designer.runtime.session import Session

pytest.importorskip("onnxruntime")
pytest.importorskip("torch").set_num_threads(1)
ENGINES = ("onnxruntime", "torch")


def session_of(graph, registry, engine="torch", weights=None, array=None) -> Session:
    session = Session(graph, registry, weights or Weights(), RunOptions(engine=engine, threads=1))
    session.set_input("image", pixels() if array is None else array, is_image=False)
    return session


def logarithm(value="-0.5") -> Graph:
    """A logarithm of what may lie below 0, and layers that carry it on."""
    return Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("lower", "scale_shift", "image", scale="1.0", shift=value),
            layer("log", "unary", "lower", function="log"),
            layer("after", "unary", "log", function="abs"),
            layer("result", "output", "after"),
        ]
    )


def test_counts_of_a_tensor():
    array = np.zeros((2, 3, 4, 5), np.float32)
    assert nonfinite(array) is None
    assert nonfinite(np.full((4,), 1e30, np.float32)) is None  # the sum of squares overflows, the values are fine
    array[0, 0, 0, :2] = np.nan
    array[1, 2, 3, 4] = -np.inf
    found = nonfinite(array)
    assert (found.nan, found.inf, found.total, found.kind) == (2, 1, 120, "nan")
    assert found.share == 3 / 120
    assert nonfinite(array[:, :, ::2, ::-1]).nan == 2
    assert nonfinite(np.array([np.inf], np.float32)).kind == "inf"
    assert nonfinite(np.zeros((0, 3), np.float32)) is None
    assert nonfinite(np.zeros((3,), np.int64)) is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("together", [1, module.TOGETHER])
def test_every_output_of_a_layer_is_checked(runtime_registry, monkeypatch, engine, together):
    """Values that are not finite are in the second part of the image only, which another layer reads."""
    monkeypatch.setattr(module, "TOGETHER", together)
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("steep", "scale_shift", "image", scale="1.0", shift="-0.5"),
            layer("parts", "split", "steep", axis="1", sizes="1,2"),
            layer("root", "unary", "parts:y1", function="sqrt"),
            layer("result", "output", "root"),
        ]
    )
    session = session_of(graph, runtime_registry, engine)
    trace = trace_nonfinite(session)
    assert (trace.layer, trace.checked) == ("root", ("image", "steep", "parts", "root"))
    assert trace.found.nan == (pixels()[:, 1:] < 0.5).sum()
    array = np.full_like(pixels(), 2)
    session.set_input("image", array, is_image=False)
    trace = trace_nonfinite(session)
    assert (trace.layer, trace.found) == (None, None)
    assert trace.checked == ("image", "steep", "parts", "root", "result")


def test_a_further_output_of_a_layer_may_make_them(runtime_registry):
    """The PSNR of equal images is infinite, and their difference map is 0."""
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("quality", "difference", "image,image"),
            layer("result", "output", "quality"),
        ]
    )
    session = session_of(graph, runtime_registry)
    trace = trace_nonfinite(session)
    assert (trace.layer, trace.checked, trace.note) == ("quality", ("image", "quality"), "")
    assert (trace.found.nan, trace.found.inf, trace.found.total) == (0, 1, 1)
    assert not session.run().outputs["result"].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_layer_that_made_them_is_found(runtime_registry, engine):
    session = session_of(logarithm(), runtime_registry, engine)
    trace = trace_nonfinite(session)
    assert trace.layer == "log"
    assert trace.found.kind == "nan"
    assert trace.found.share == pytest.approx((pixels() < 0.5).mean(), abs=1e-6)
    assert trace.checked[-1] == "log"
    assert trace.note == ""


def test_a_network_that_is_well(runtime_registry):
    trace = trace_nonfinite(session_of(analysed(), runtime_registry, weights=unet_weights()))
    assert trace.layer is None
    assert trace.found is None
    assert {"image", "noise", "enc 1", "mix", "result"} <= set(trace.checked)


def test_the_input_may_bring_them(runtime_registry):
    array = pixels()
    array[0, 0, 3, 3] = np.inf
    trace = trace_nonfinite(session_of(unet(), runtime_registry, weights=unet_weights(), array=array))
    assert trace.layer == "image"
    assert trace.found.kind == "inf"
    assert trace.note == "the input data already contains them"


def test_weights_may_be_the_cause(runtime_registry):
    weights = unet_weights()
    broken = dict(weights.tensors)
    broken[WeightKey("enc_2", "bias")] = broken[WeightKey("enc_2", "bias")].copy()
    broken[WeightKey("enc_2", "bias")][1] = np.nan
    trace = trace_nonfinite(session_of(unet(), runtime_registry, weights=Weights(broken)))
    assert trace.layer == "enc_2"
    assert trace.note == "not all of its weights are finite: bias"


def test_a_few_tensors_at_a_time_find_the_same(runtime_registry, monkeypatch):
    monkeypatch.setattr(module, "TOGETHER", 1)
    session = session_of(logarithm(), runtime_registry)
    assert trace_nonfinite(session).layer == "log"


def test_inside_a_template(runtime_registry):
    body = (
        layer("x", "template_input"),
        layer("lower", "scale_shift", "x", scale="1.0", shift="-0.5"),
        layer("root", "unary", "lower", function="sqrt"),
        layer("y", "template_output", "root"),
    )
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("block", "template", "image", template="rooted"),
            layer("result", "output", "block"),
        ],
        templates=[Template("rooted", body)],
    )
    trace = trace_nonfinite(session_of(graph, runtime_registry))
    assert trace.layer == "block.root"
    assert trace.found.kind == "nan"


def pooled(operation="max") -> Graph:
    """A convolution, pooling, and a convolution behind it."""
    return Graph(
        [
            layer("image", "input", dims="32x24x3"),
            layer("before", "convolution", "image", features=2),
            layer("pool", "pooling", "before", operation=operation),
            layer("after", "convolution", "pool", features=3),
            layer("result", "output", "after"),
        ]
    )


def with_nan(graph, registry, *owners) -> Weights:
    needed = required_weights(Inference(graph, registry))
    tensors = {key: np.array(array) for key, array in random_weights(needed, 0).tensors.items()}
    for key, array in tensors.items():
        if key.layer in owners:
            array.flat[0] = np.nan
    return Weights(tensors)


def test_what_onnx_runtime_drops_is_said(runtime_registry):
    """Its maxima skip NaN: a finite result of damaged data would look right."""
    array = pixels()
    array[0, 0, 3, 3] = np.nan
    for engine, wrong in (("onnxruntime", True), ("torch", False)):
        weights = with_nan(pooled(), runtime_registry)
        note = session_of(pooled(), runtime_registry, engine, weights, array).run().note
        assert ("may drop the NaN of 'image' in 'pool'" in note) is wrong
        weights = with_nan(pooled(), runtime_registry, "before")
        note = session_of(pooled(), runtime_registry, engine, weights).run().note
        assert ("may drop the NaN of 'before' in 'pool'" in note) is wrong


def test_what_torch_drops_is_said(runtime_registry):
    """torch 2.13 attends to nothing where a query has NaN: its result is 0."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3"),
            layer("attention", "scaled_dot_product_attention", "image,image,image", causal="true"),
            layer("result", "output", "attention"),
        ]
    )
    array = np.random.default_rng(0).random((1, 3, 4, 5), np.float32)
    array[0, 0, 3, 3] = np.nan
    for engine, wrong in (("torch", True), ("emulated", True), ("onnxruntime", False)):
        note = session_of(graph, runtime_registry, engine, Weights(), array).run().note
        assert ("may drop the NaN of 'image' in 'attention'" in note) is wrong


def test_damaged_weights_that_another_layer_shares_are_the_cause(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="32x24x3"),
            replace(layer("shares", "convolution", "image", features=3), weights_of="owner"),
            layer("pool", "pooling", "shares", operation="max"),
            layer("owner", "convolution", "pool", features=3),
            layer("result", "output", "owner"),
        ]
    )
    note = session_of(graph, runtime_registry, "onnxruntime", with_nan(graph, runtime_registry, "owner")).run().note
    assert "may drop the NaN of 'shares' in 'pool'" in note


@pytest.mark.parametrize(
    ("engine", "dropping"),
    [
        ("onnxruntime", layer("it", "arg_extreme", "image")),
        ("onnxruntime", layer("it", "top_k", "image", axis=1, k=2)),
        ("onnxruntime", layer("it", "hardmax", "image")),
        ("openvino", layer("it", "identity", "image", activation=ActivationSpec("relu"))),
        ("openvino", layer("it", "compare", "image", operation="greater")),
    ],
)
def test_indices_and_attached_activations_may_drop_nan_too(runtime_registry, engine, dropping):
    pytest.importorskip(engine)
    array = pixels()
    array[0, 0, 3, 3] = np.nan
    graph = Graph([layer("image", "input", dims="32x24x3"), dropping, layer("result", "output", "it")])
    assert "may drop the NaN of 'image' in 'it'" in session_of(graph, runtime_registry, engine, array=array).run().note


def test_nan_that_an_attached_activation_would_drop_is_reported(runtime_registry):
    """OpenVINO's activations turn NaN into numbers, and the layer has no other tensor in which it could be seen."""
    pytest.importorskip("openvino")
    graph = hidden_logarithm()
    attached = [
        layer("log", "unary", "lower", function="log", activation=ActivationSpec("hard_tanh")) if x.name == "log" else x
        for x in graph
    ]
    result = session_of(Graph(attached), runtime_registry, "openvino").run()
    assert list(result.hidden) == ["log"]
    assert result.hidden["log"].share == pytest.approx((pixels() < 0.5).mean(), abs=1e-6)


def test_nothing_is_said_where_no_nan_is_dropped(runtime_registry):
    damaged = pixels()
    damaged[0, 0, 3, 3] = np.nan
    infinite = pixels()
    infinite[0, 0, 3, 3] = np.inf
    for graph, owners, array in (
        (pooled(), ("after",), pixels()),  # behind the maximum
        (pooled("average"), (), damaged),
        (pooled(), (), infinite),
    ):
        weights = with_nan(graph, runtime_registry, *owners)
        assert session_of(graph, runtime_registry, "onnxruntime", weights, array).run().note == ""


def hidden_logarithm() -> Graph:
    """The logarithm of negative values, which the comparison behind it turns into numbers on every engine."""
    made = [
        layer("compared", "compare", "log", operation="greater"),
        layer("number", "cast", "compared", target="float32"),
        layer("result", "output", "number"),
    ]
    return Graph([x for x in logarithm() if x.name not in ("after", "result")] + made)


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_that_a_hidden_layer_computes_is_reported(runtime_registry, engine):
    session = session_of(hidden_logarithm(), runtime_registry, engine)
    for _ in range(2):  # computed, and from the cache
        result = session.run()
        assert np.isfinite(result.outputs["result"]).all()
        assert list(result.hidden) == ["log"]
        assert result.hidden["log"].share == pytest.approx((pixels() < 0.5).mean(), abs=1e-6)
        assert result.notes() == ("'log' computes values that are NaN or infinite: finite results can be wrong",)
    assert trace_nonfinite(session).layer == "log"
    session.set_param("lower", "shift", "0.5")
    assert session.run().notes() == ()


@pytest.mark.parametrize(
    "maker",
    [
        layer("log", "modulo", "image,zero", sign="divisor"),
        layer("log", "reduce", "zero", operation="log_sum"),
    ],
    ids=lambda maker: maker.type,
)
def test_remainders_and_logarithms_of_sums_are_checked_too(runtime_registry, maker):
    zero = layer("zero", "scale_shift", "image", scale="0.0", shift="0.0")
    graph = Graph(
        [x if x.name not in ("lower", "log") else zero if x.name == "lower" else maker for x in hidden_logarithm()]
    )
    result = session_of(graph, runtime_registry).run()
    assert np.isfinite(result.outputs["result"]).all()
    assert list(result.hidden) == ["log"]


def test_nan_in_a_tile_is_reported(runtime_registry):
    tiled = Session(hidden_logarithm(), runtime_registry, Weights(), RunOptions(tile=16, threads=1))
    tiled.set_input("image", pixels(), is_image=False)
    result = tiled.run()
    assert "tiles" in result.note
    assert list(result.hidden) == ["log"]


def test_layers_that_cannot_compute_nan_are_not_checked(runtime_registry):
    session = session_of(unet(), runtime_registry, weights=unet_weights())
    assert [session.probes(step, prints) for step, prints in session.planned(())[1].items()] == [()]
    session = session_of(hidden_logarithm(), runtime_registry)
    assert [session.probes(step, prints) for step, prints in session.planned(())[1].items()] == [(Source("log"),)]
    ((step, prints),) = session.planned([Source("log")])[1].items()
    assert session.probes(step, prints) == (Source("log"),)
    assert dict(session.run([Source("log")]).hidden) == {}  # the user sees it


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tensor_that_was_computed_but_is_not_shown_is_still_reported(runtime_registry, engine):
    """Its values are known from a run that captured it, or that computed it as a neighbor of a captured one."""
    session = session_of(hidden_logarithm(), runtime_registry, engine)
    assert not session.run([Source("log")]).hidden
    assert list(session.run().hidden) == ["log"]  # from the same result
    session = session_of(hidden_logarithm(), runtime_registry, engine)
    session.run()
    for name in ("compared", "number", "lower"):
        result = session.run([Source(name)])  # the first one runs with the neighbors
        assert list(result.hidden) == ["log"]
        assert result.hidden["log"].share == pytest.approx((pixels() < 0.5).mean(), abs=1e-6)
    assert not session.run([Source("log")]).hidden
