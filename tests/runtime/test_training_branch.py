"""The training branch: what belongs to it, and that nothing but training knows of it."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import layer, pixels

from designer.files.weights import random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.template import Template
from designer.operators.deploy import deploy
from designer.operators.training_branch import loss_ends, missing_output, training_branch, training_layers
from designer.profiling.measure import profile_session
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx
from exporters.pytorch.losses import losses_of

ONE = RunOptions(threads=1)
NETWORK = {"image", "noise", "conv", "result"}
BRANCH = {"clean", "scaled", "difference", "side", "sideways", "both", "shown"}


def trained(*more) -> Graph:
    """A convolution with a loss of its output layer, a side head with another, and a picture of the losses' sum."""
    return Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("clean", "input", dims="16x12x3"),
            layer("noise", "noise", "image", scale="0.1"),
            layer("conv", "convolution", "noise", features=3, kernel="3x3"),
            layer("result", "output", "conv"),
            layer("scaled", "identity", "clean"),
            layer("difference", "l1_loss", "result,scaled"),
            layer("side", "convolution", "conv", features=3, kernel="1x1"),
            layer("sideways", "mse_loss", "side,clean", weight="0.5"),
            layer("both", "element_wise", "difference,sideways", operation="add"),
            layer("shown", "output", "both"),
            *more,
        ],
        name="trained",
    )


@pytest.fixture
def registry(runtime_registry):
    return runtime_registry


def session_of(graph, registry) -> Session:
    return Session(graph, registry, random_weights(required_weights(Inference(graph, registry)), 0), ONE)


def code_of(call):
    with pytest.raises(DiagnosticError) as caught:
        call()
    return caught.value.diagnostics[0].code


def test_what_belongs_to_it(registry):
    graph = trained()
    assert training_branch(graph, registry) == BRANCH
    assert training_layers(Inference(graph, registry)) == BRANCH
    assert loss_ends(graph, registry) == ("both",)
    assert set(deploy(graph, registry).layers) == {"image", "conv", "result"}


def test_an_input_that_inference_reads_too_does_not(registry):
    graph = trained(layer("used", "convolution", "clean"))
    assert training_branch(graph, registry) == BRANCH - {"clean"}


def test_no_losses_no_branch(registry):
    graph = Graph([item for item in trained() if item.name in NETWORK])
    assert training_branch(graph, registry) == frozenset()
    assert loss_ends(graph, registry) == ()


@pytest.mark.parametrize("seed", range(12))
def test_the_branch_is_what_only_losses_need_in_any_network(registry, seed):
    """Against the definition: losses and what follows them, then each layer that only these read, until none is left."""
    random = np.random.default_rng(seed)
    made, roles = [], {}
    for number in range(14):
        kind = random.choice(["identity", "element_wise", "l1_loss", "output"], p=[0.4, 0.25, 0.2, 0.15])
        count = 2 if kind in ("element_wise", "l1_loss") else 1
        sources = [f"n{n}" for n in random.integers(0, number, count)] if number > 1 else []
        name = f"n{number}"
        roles[name] = kind if sources else "input"
        made.append(layer(name, roles[name], ",".join(sources)) if sources else layer(name, "input", dims="8x8x3"))
    made.append(layer("open", "l1_loss", "n3,removed"))
    roles["open"] = "l1_loss"
    graph = Graph([made[n] for n in random.permutation(len(made))])
    readers = {name: {item.name for item in made if name in item.producers()} for name in roles}
    found = {name for name, kind in roles.items() if kind == "l1_loss"}
    while more := {name for source in found for name in readers[source]} - found:
        found |= more
    while more := {n for n in roles if readers[n] and readers[n] <= found and roles[n] != "output"} - found:
        found |= more
    assert training_branch(graph, registry) == found
    assert training_layers(Inference(graph, registry)) == found


def test_losses_inside_of_a_template(registry):
    """A block that compares its result with a target: who feeds the target is part of the training branch."""
    block = Template(
        "judged",
        (
            layer("picture", "template_input"),
            layer("target", "template_input"),
            layer("conv", "convolution", "picture", features=3, kernel="3x3"),
            layer("y", "template_output", "conv"),
            layer("far", "l1_loss", "conv,target"),
        ),
    )
    graph = Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("clean", "input", dims="16x12x3"),
            layer("block", "template", "image,clean", template="judged"),
            layer("result", "output", "block"),
        ],
        templates=[block],
    )
    assert not Inference(graph, registry).diagnostics()
    assert training_branch(graph, registry) == {"clean"}
    session = session_of(graph, registry)
    session.set_input("image", pixels(12, 16), is_image=True)
    assert set(session.run().outputs) == {"result"}
    assert [str(s) for s in losses_of(graph, registry).targets] == ["clean"]


def test_a_loop_has_an_end(registry):
    graph = Graph([layer("a", "identity", "b"), layer("b", "identity", "a"), layer("loss", "l1_loss", "a,b")])
    assert "loss" in training_branch(graph, registry)


def test_inference_needs_neither_targets_nor_the_branchs_weights(registry):
    graph = trained()
    needed = required_weights(Inference(graph, registry))
    assert {key.layer for key in needed} == {"conv"}
    session = session_of(graph, registry)
    session.set_input("image", pixels(12, 16), is_image=True)
    result = session.run()
    assert set(result.outputs) == {"result"}
    assert not BRANCH & {name for step in result.steps for name in step.layers}
    assert code_of(lambda: session.run([Source("side")])) == "training-only"
    plain = Graph([item for item in graph if item.name in NETWORK])
    alone = session_of(plain, registry)
    alone.set_input("image", pixels(12, 16), is_image=True)
    assert np.array_equal(alone.run().outputs["result"], result.outputs["result"])


def test_onnx_and_profile_leave_it_out(registry, tmp_path):
    graph = trained()
    session = session_of(graph, registry)
    report = export_onnx(graph, registry, session.weights, tmp_path / "net.onnx")
    assert set(report.inputs) == {"image"}
    assert set(report.outputs) == {"result"}
    assert set(report.left_out) >= BRANCH
    (run,) = profile_session(session, 1, warmup=0).runs
    assert not BRANCH & {name for row in run.operators for name in row.layers}


def test_a_network_of_a_training_branch_alone_says_so(registry, tmp_path):
    graph = Graph([item for item in trained() if item.name not in ("result", "shown", "difference", "both")])
    session = session_of(graph, registry)
    assert code_of(session.run) == "only-training"
    assert code_of(lambda: export_onnx(graph, registry, session.weights, tmp_path / "net.onnx")) == "only-training"
    assert code_of(lambda: profile_session(session, 1)) == "only-training"
    assert not (tmp_path / "net.onnx").exists()


def test_what_training_adds_up_is_behind_all_losses_that_are_combined(registry):
    """Outputs that show a loss do not combine it."""
    layers = [
        layer("image", "input", dims="16x12x3"),
        layer("conv", "convolution", "image", features=3, kernel="3x3"),
        layer("result", "output", "conv"),
        layer("b", "l1_loss", "conv,image"),
        layer("a", "mse_loss", "conv,image"),
        layer("sum", "element_wise", "a,b"),
        layer("c", "mse_loss", "conv,image"),
        layer("shown", "output", "sum"),
        layer("also", "output", "c"),
    ]
    assert loss_ends(Graph(layers), registry) == ("c", "sum")
    assert loss_ends(Graph([item for item in layers if item.name not in ("sum", "shown")]), registry) == ("a", "b", "c")
    assert loss_ends(Graph(layers[:3]), registry) == ()


def test_a_loss_in_any_template_makes_a_branch(registry):
    plain = Template("plain", (layer("x", "template_input"), layer("y", "template_output", "x")))
    judged = Template(
        "judged",
        (
            layer("x", "template_input", index="0"),
            layer("z", "template_input", index="1"),
            layer("l", "l1_loss", "x,z"),
            layer("y", "template_output", "l"),
        ),
    )
    layers = [
        layer("image", "input", dims="16x12x3"),
        layer("clean", "input", dims="16x12x3"),
        layer("first", "template", "image", template="plain"),
        layer("result", "output", "first"),
        layer("loss", "template", "first,clean", template="judged"),
    ]
    for templates in ([plain, judged], [judged, plain]):
        assert training_branch(Graph(layers, templates=templates), registry) == {"clean", "loss"}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("image conv", "no-output"), ("image conv result", None), ("image", None), ("conv", None), ("image conv loss", "no-output"),
    ],
)  # fmt: skip
def test_a_network_without_an_output_has_a_note(names, code, registry):
    every = {
        item.name: item
        for item in (
            layer("image", "input", dims="16x12x3"),
            layer("conv", "convolution", "image", features=3),
            layer("result", "output", "conv"),
            layer("loss", "l1_loss", "conv,image"),
        )
    }
    found = missing_output(Graph([every[name] for name in names.split()]), registry)
    expected = "only-training" if "loss" in names else code
    assert (found and (found.code, found.severity)) == (expected and (expected, Severity.INFO))
