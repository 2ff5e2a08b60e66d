"""Networks with templates on real engines: as if every layer had been written out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from template_networks import by_hand, nested, seeded, weights_by_hand

from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph import commands, template_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.inlining import inline
from designer.operators.registry import load
from designer.operators.torch_program import build_program
from designer.runtime.api import Part, RunOptions
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.engines.torch_engine import build_module
from designer.runtime.session import Session

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
torch.set_num_threads(1)

ENGINES = ["onnxruntime", "torch"]
PICTURE = np.random.default_rng(1).random((2, 3, 12, 16), dtype=np.float32)


@pytest.fixture(scope="module")
def library():
    return load(entry_points=False)


def session_of(graph, registry, weights, engine="onnxruntime"):
    session = Session(graph, registry, weights, RunOptions(engine=engine, threads=1))
    session.set_input("in", PICTURE, is_image=False)
    return session


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_network_that_was_written_out_by_hand(library, engine):
    weights = seeded(nested(), library)
    names = {"a": "a_prelu", "b": "b_add", "b:s": "b_conv_1", "c": "r2_add", "c:y": "r2_add", "c:z": "r2_conv_1"}
    result = session_of(nested(), library, weights, engine).run([Source.parse(name) for name in names])
    plain = session_of(by_hand(), library, weights_by_hand(weights), engine).run([Source(n) for n in names.values()])
    np.testing.assert_allclose(result.outputs["out"], plain.outputs["out"], atol=1e-6, rtol=0)
    for ours, theirs in names.items():
        np.testing.assert_allclose(
            result.captures[Source.parse(ours)], plain.captures[Source(theirs)], atol=1e-6, rtol=0, err_msg=ours
        )


def flat(registry):
    inference = Inference(inline(nested(), registry), registry)
    order = [n for n in inference.graph.order()[0] if n != "in"]
    return inference, order


def test_shared_weights_are_one_module_of_torch(library):
    inference, order = flat(library)
    program = build_program(inference, order, [Source("in")], [Source("out"), Source("c")])
    keys = set(build_module(program).state_dict())
    assert {k for k in keys if "residual" in k} == {
        f"residual_conv_{n}.{t}" for n in (1, 2) for t in ("weight", "bias")
    }
    assert len(keys) == len(required_weights(inference))
    calls = [step.layer for step in program.steps if "'residual_conv_1'" in repr(step.value)]
    assert calls == ["b.conv_1", "c.r2.conv_1"]


def test_shared_tensors_that_belong_to_no_module_are_one_in_torch(library):
    inside = (
        Layer("x", "template_input"),
        Layer("s", "scale_shift", inputs=(Source("x"),), params={"learned": "true"}),
        Layer("y", "template_output", inputs=(Source("s"),)),
    )
    shared = {"template": "part", "shared_weights": "true"}
    layers = [
        Layer("in", "input", params={"dims": "16x12x3", "tiling": "0"}),
        Layer("a", "template", inputs=(Source("in"),), params=shared),
        Layer("b", "template", inputs=(Source("a"),), params=shared),
        Layer("out", "output", inputs=(Source("b"),)),
    ]
    graph = Graph(layers, templates=[Template("part", inside)])
    scale, bias = (np.array(v, np.float32).reshape(3, 1, 1) for v in ((0.5, -1.0, 2.0), (0.25, 0.0, -1.0)))
    tensors = {WeightKey("part.s", "scale"): scale, WeightKey("part.s", "bias"): bias}
    assert seeded(graph, library).tensors.keys() == tensors.keys()
    expected = (PICTURE * scale + bias) * scale + bias
    for engine in ENGINES:
        result = session_of(graph, library, Weights(tensors), engine).run([])
        np.testing.assert_allclose(result.outputs["out"], expected, atol=1e-6, rtol=0, err_msg=engine)


def test_shared_weights_are_one_initializer_in_onnx(library):
    inference, order = flat(library)
    weights = seeded(nested(), library)
    model = build_model(inference, Part(tuple(order), (Source("in"),)), [Source("out"), Source("c")], weights)
    names = [item.name for item in model.graph.initializer]
    assert names.count("residual.conv_1/kernel") == 1
    readers = [node.name for node in model.graph.node if "residual.conv_1/kernel" in node.input]
    assert readers == ["b.conv_1/Conv", "c.r2.conv_1/Conv"]
    assert "c.r.conv_1/kernel" in names


@pytest.mark.parametrize("engine", ENGINES)
def test_edits_of_templates_and_instances_reach_a_session(library, engine):
    graph = nested()
    weights = seeded(graph, library)
    session = session_of(graph, library, weights, engine)
    session.run()
    inside = graph.inside("residual")
    graph.apply(
        template_commands.edit_template(
            graph, "residual", commands.set_params(inside, {"add": {"operation": "multiply"}})
        )
    )
    session.set_graph(graph)
    fresh = session_of(graph, library, weights, engine)
    np.testing.assert_array_equal(session.run([Source("c")]).captures[Source("c")],
                                  fresh.run([Source("c")]).captures[Source("c")])  # fmt: skip
    session.set_param("a", "shared_weights", "true")
    graph.apply(commands.set_params(graph, {"a": {"shared_weights": "true"}}))
    fresh = session_of(graph, library, weights, engine)
    np.testing.assert_array_equal(session.run([Source("a")]).captures[Source("a")],
                                  fresh.run([Source("a")]).captures[Source("a")])  # fmt: skip


def test_what_an_edit_does_not_touch_is_kept(library):
    graph = nested()
    session = session_of(graph, library, seeded(graph, library))
    assert not any(step.cached for step in session.run().steps)
    graph.apply(commands.set_property(graph, "author_notes", "an edit that changes no number"))
    session.set_graph(graph)
    assert [step.cached for step in session.run().steps] == [True]


def test_a_session_refuses_an_impossible_edit_and_stays_as_it_was(library):
    graph = nested()
    session = session_of(graph, library, seeded(graph, library))
    expected = session.run().outputs["out"]
    clash = graph.copy()
    clash.apply(commands.add_layer(clash, Layer("a.conv_1", "identity", inputs=(Source("in"),))))
    with pytest.raises(DiagnosticError, match="template-name-clash"):
        session.set_graph(clash)
    assert session.graph == graph
    np.testing.assert_array_equal(session.run().outputs["out"], expected)


def test_a_missing_tensor_is_told_at_the_instance(library):
    weights = seeded(nested(), library)
    some = {k: v for k, v in weights.tensors.items() if k.layer != "c.r.conv_1"}
    with pytest.raises(DiagnosticError) as caught:
        session_of(nested(), library, Weights(some)).run()
    (finding,) = caught.value.diagnostics
    assert finding.layer == "c"
    assert "'c.r.conv_1'" in finding.message


def test_a_broken_template_stops_the_run_with_its_reason(library):
    graph = nested()
    graph.apply(commands.set_params(graph, {"c": {"template": "gone"}}))
    with pytest.raises(DiagnosticError) as caught:
        session_of(graph, library, seeded(nested(), library)).run()
    assert [(d.code, d.layer) for d in caught.value.diagnostics] == [("unknown-template", "c")]


@pytest.mark.parametrize("engine", ENGINES)
def test_analysis_layers_work_inside_of_templates(library, engine):
    graph = nested()
    template = graph.templates["residual"]
    watched = [
        replace(layer, inputs=(Source("noise"),)) if layer.name == "conv_1" else layer for layer in template.layers
    ]
    noise = Layer("noise", "noise", inputs=(Source("x"),), params={"scale": "0.5"})
    noisy = graph.copy()
    noisy.apply(template_commands.set_template(noisy, replace(template, layers=(*watched, noise))))
    weights = seeded(graph, library)
    with_noise = session_of(noisy, library, weights, engine).run().outputs["out"]
    without = session_of(graph, library, weights, engine).run().outputs["out"]
    assert np.abs(with_noise - without).max() > 1e-3


def test_profiles_name_the_layers_inside(library):
    from designer.profiling.measure import profile_session

    (run,) = profile_session(session_of(nested(), library, seeded(nested(), library), "torch"), 1).runs
    assert {"a.conv_1", "c.r2.conv_1"} <= {name for row in run.operators for name in row.layers}
