"""Figures while editing: equal to the profiler's, counted again only where something changed, shared weights once."""

from __future__ import annotations

from math import prod

import pytest
from template_networks import nested

import samples
from designer.files.document import read_document
from designer.files.weights import required_weights
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.inlining import inline
from designer.operators.live_cost import LiveCost
from designer.operators.registry import default_registry
from designer.operators.training_branch import training_branch
from designer.profiling.cost import cost_table

REGISTRY = default_registry()


def counted(graph: Graph) -> LiveCost:
    live = LiveCost(Inference(graph, REGISTRY))
    assert not live.count()
    return live


@pytest.mark.parametrize("path", samples.documents(), ids=lambda p: p.stem)
def test_figures_of_the_samples_are_the_profilers(path):
    graph = read_document(path).graph
    flat = Inference(inline(graph, REGISTRY), REGISTRY)
    table, total = cost_table(flat), counted(graph).total(training_branch(graph, REGISTRY))
    assert total.flops == table.total().flops > 0
    needed = required_weights(Inference(graph, REGISTRY))
    assert total.weights == sum(4 * prod(w.shape) for w in needed.values())
    assert total.learned == sum(prod(w.shape) for w in needed.values() if w.trainable)
    assert total.unknown == 0


def test_shared_weights_count_once_and_work_each_time():
    graph = nested()
    total, live = counted(graph).total(), counted(graph)
    needed = required_weights(Inference(graph, REGISTRY))
    assert total.learned == sum(prod(w.shape) for w in needed.values() if w.trainable)
    apart = sum(work.learned for name in graph.layers if (work := live.of(name)) is not None)
    assert apart > total.learned  # `b` and a part of `c` share
    assert total.flops == cost_table(Inference(inline(graph, REGISTRY), REGISTRY)).total().flops
    # of a selection, too
    assert live.total(names=["b", "c"]).learned < live.of("b").learned + live.of("c").learned


def test_by_hand():
    layers = [
        Layer("in", "input", params={"dims": "16x12x3", "tiling": "1"}),
        Layer("c", "convolution", inputs=(Source("in"),), params={"features": "8"}, activation=ActivationSpec("prelu")),
        Layer("bad", "convolution", inputs=(Source("c"),), params={"features": "many"}),
        Layer("behind", "identity", inputs=(Source("bad"),)),
    ]
    live = counted(Graph(layers))
    work = live.of("c")
    pixels = 16 * 12
    assert work.flops == 2 * pixels * 8 * 3 * 9
    assert work.learned == 8 * 3 * 9 + 8 + 8  # a slope for each channel
    assert work.weights == 4 * work.learned
    assert work.outputs == 4 * 8 * pixels
    assert live.of("bad") is None
    total = live.total()
    assert (total.layers, total.unknown) == (4, 2)
    assert total.outputs == 4 * (8 + 3) * pixels
    assert total.memory == total.outputs + total.weights


def test_an_activation_counts_on_its_own_and_the_layer_before_it_as_it_was():
    """A gate halves the channels of the result, not those that the convolution computes."""
    layers = [
        Layer("in", "input", params={"dims": "16x12x3", "tiling": "1"}),
        Layer("plain", "convolution", inputs=(Source("in"),), params={"features": "8"}),
        Layer("gated", "convolution", inputs=(Source("in"),), params={"features": "8"}, activation=ActivationSpec("glu", {"axis": "1"})),
        Layer("gate", "activation", inputs=(Source("plain"),), activation=ActivationSpec("glu", {"axis": "1"})),
        Layer("norm", "batch_normalization", inputs=(Source("in"),)),
        Layer("dense", "fully_connected", inputs=(Source("in"),), params={"features": "8"}),
        Layer("half", "fully_connected", inputs=(Source("in"),), params={"features": "8"}, activation=ActivationSpec("glu", {"axis": "1"})),
        Layer("of_dense", "activation", inputs=(Source("dense"),), activation=ActivationSpec("glu", {"axis": "1"})),
        Layer("off", "convolution", inputs=(Source("in"),), params={"features": "3"}, attributes={BYPASSED: "true"}),
        Layer("off_curve", "convolution", inputs=(Source("in"),), params={"features": "3"}, attributes={BYPASSED: "true"},
              activation=ActivationSpec("prelu")),
    ]  # fmt: skip
    live, pixels = counted(Graph(layers)), 16 * 12
    plain, gated, gate, norm = (live.of(name) for name in ("plain", "gated", "gate", "norm"))
    assert gated.flops == plain.flops + gate.flops
    assert plain.flops == 2 * pixels * 8 * 3 * 9
    assert (plain.outputs, gated.outputs) == (4 * 8 * pixels, 4 * 4 * pixels)
    assert gated.weights == plain.weights == 4 * (8 * 3 * 9 + 8)
    assert (norm.weights, norm.learned) == (4 * 4 * 3, 2 * 3), "statistics are not trained"
    assert live.of("half").flops == live.of("dense").flops + live.of("of_dense").flops
    for name in ("off", "off_curve"):
        work = live.of(name)
        assert (work.flops, work.learned, work.weights, work.outputs) == (0, 0, 0, 4 * 3 * pixels)


def test_an_activation_of_a_layer_with_several_outputs_counts_for_the_first_one():
    curve = ActivationSpec("prelu")
    layers = [
        Layer("in", "input", params={"dims": "16x12x8", "tiling": "1"}),
        Layer("plain", "split", inputs=(Source("in"),), params={"sizes": "2,6"}),
        Layer("bent", "split", inputs=(Source("in"),), params={"sizes": "2,6"}, activation=curve),
        Layer("first", "activation", inputs=(Source("plain", 0),), activation=curve),
    ]
    live = counted(Graph(layers))
    plain, bent, first = (live.of(name) for name in ("plain", "bent", "first"))
    assert first.learned == 2
    assert (bent.flops, bent.learned, bent.weights) == (plain.flops + first.flops, first.learned, first.weights)
    assert bent.outputs == plain.outputs == 4 * 16 * 12 * 8


def test_a_layer_that_waits_is_counted_as_it_is_now():
    layers = [
        Layer("in", "input", params={"dims": "16x12x3"}),
        Layer("c", "convolution", inputs=(Source("in"),), params={"features": "8"}),
        Layer("d", "identity", inputs=(Source("c"),)),
    ]
    graph = Graph(layers)
    history, inference = History(graph), Inference(graph, REGISTRY)
    live = LiveCost(inference)

    def follow(change):
        live.note(inference.update(change) | change.computed | change.removed)

    history.subscribe(follow)
    live.count()
    before = live.of("c")
    history.commit(commands.set_params(graph, {"c": {"features": "4"}}))
    assert live.waiting
    assert live.of("c").learned == 4 * 3 * 9 + 4 != before.learned
    assert live.total().learned == 4 * 3 * 9 + 4
    assert live.total(without=["c"]).learned == 0
    assert live.total(names=["c", "d"]).layers == 2
    assert not live.count()
    history.commit(commands.remove_layers(graph, ["d"]))
    assert live.of("d") is None
    live.count()
    assert live.of("d") is None
    assert live.total().layers == 2


def test_instances_count_the_layers_inside_and_shared_weights_of_any_name():
    """The template's name starts with that of an instance, as the name of another layer may too."""
    template = Template(
        "common",
        (
            Layer("x", "template_input"),
            Layer("conv", "convolution", inputs=(Source("x"),), params={"features": "3"}, activation=ActivationSpec("relu")),
            Layer("same", "identity", inputs=(Source("conv"),)),
            Layer("y", "template_output", inputs=(Source("same"),)),
        ),
    )  # fmt: skip
    shared = {"template": "common", "shared_weights": "true"}
    layers = [
        Layer("in", "input", params={"dims": "16x12x3", "tiling": "1"}),
        Layer("c", "template", inputs=(Source("in"),), params=shared),
        Layer("com", "template", inputs=(Source("c"),), params=shared),
        Layer("own", "template", inputs=(Source("com"),), params={"template": "common"}),
    ]
    graph = Graph(layers, templates=[template])
    live = LiveCost(Inference(graph, REGISTRY.for_graph(graph)))
    live.count()
    learned, pixels = 3 * 3 * 9 + 3, 16 * 12
    works = [live.of(name) for name in ("c", "com", "own")]
    assert [work.learned for work in works] == [learned] * 3
    assert [sorted(work.shared) for work in works] == [[("common.conv", "bias"), ("common.conv", "kernel")]] * 2 + [[]]
    assert [work.outputs for work in works] == [4 * 3 * pixels * 2] * 3, "ports pass on what is there"
    total = live.total()
    assert total.learned == 2 * learned
    assert total.weights == 4 * 2 * learned
    assert total.outputs == 4 * 3 * pixels * 7
    assert live.total(names=["c", "own"]).learned == 2 * learned


def test_only_what_changed_is_counted_again():
    layers = [Layer("in", "input", params={"dims": "16x12x3"})]
    for i in range(50):
        source = Source(f"c{i - 1}" if i else "in")
        layers.append(Layer(f"c{i}", "convolution", inputs=(source,), params={"features": "4"}))
    graph = Graph(layers)
    history, inference = History(graph), Inference(graph, REGISTRY)
    live = LiveCost(inference)

    def follow(change):
        live.note(inference.update(change) | change.computed | change.removed)

    history.subscribe(follow)
    live.count()
    before = live.counted
    history.commit(commands.set_params(graph, {"c30": {"apply_bias": "false"}}))
    assert live.waiting
    live.count()
    assert live.counted - before == 1
    history.commit(commands.set_params(graph, {"c30": {"features": "6"}}))
    live.count()
    assert live.counted - before == 3  # itself and its reader
    assert live.total() == counted(graph).total()
    history.commit(commands.remove_layers(graph, ["c49", "c48"]))
    live.count()
    assert live.total() == counted(graph).total()
    history.undo()
    live.count()
    assert live.total() == counted(graph).total()


def test_counting_in_parts_gives_the_same():
    graph = nested()
    live = LiveCost(Inference(graph, REGISTRY))
    assert live.of("a") == counted(graph).of("a")  # what waits is counted when it is asked for
    while live.count(1):
        pass
    assert live.total() == counted(graph).total()


def test_leaving_layers_out_is_naming_the_others():
    """All figures: also the numbers of layers that are counted and of those that are unknown."""
    graph = nested()
    graph.apply(commands.add_layer(graph, Layer("bad", "convolution", params={"features": "many"})))
    live, names = counted(graph), list(graph.layers)
    assert live.total().unknown == 1
    for number in range(2 ** len(names)):
        left = [name for place, name in enumerate(names) if number >> place & 1]
        others = [name for name in names if name not in left]
        assert live.total(without=left) == live.total(names=others)
        assert live.total(without=left, names=names[1:]) == live.total(names=[n for n in others if n != names[0]])
        assert live.total(names=others).layers == len(others)
