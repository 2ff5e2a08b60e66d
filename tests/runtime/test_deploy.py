"""The network as it is deployed."""

from __future__ import annotations

from runtime_networks import analysed, layer, unet

from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.operators.api import Operator, Port, Role, TensorType
from designer.operators.deploy import deploy
from designer.operators.registry import load


class TestLoss(Operator, type="test_only_loss", role=Role.LOSS):
    __test__ = False
    inputs = (Port("x"), Port("target"))

    def infer(self, inputs):
        return TensorType(())


def registry_with_loss():
    registry = load(entry_points=False)
    registry.register(TestLoss)
    return registry


def test_analysis_layers_vanish(runtime_registry):
    graph = analysed()
    made = deploy(graph, runtime_registry)
    assert "noise" not in made
    assert "mix" not in made
    assert made["enc 1"].inputs == (Source("image"),)
    assert made["result"].inputs == (Source("out"),)
    assert graph == analysed()


def test_nothing_to_remove(runtime_registry):
    assert deploy(unet(), runtime_registry) == unet()


def test_analysis_behind_analysis(runtime_registry):
    graph = Graph(
        [
            layer("image", "input"),
            layer("a", "noise", "image"),
            layer("b", "noise", "a"),
            layer("c", "mix", "b,image"),
            layer("result", "output", "c"),
            layer("strange", "from_the_future", "c"),
        ]
    )
    made = deploy(graph, runtime_registry)
    assert list(made.layers) == ["image", "result", "strange"]
    assert made["result"].inputs == made["strange"].inputs == (Source("image"),)


def test_losses_go_with_what_only_they_need():
    graph = Graph(
        [
            layer("image", "input"),
            layer("wanted", "input"),
            layer("conv", "convolution", "image"),
            layer("scaled", "identity", "wanted"),
            layer("noisy", "noise", "scaled"),
            layer("loss", "test_only_loss", "conv,noisy"),
            layer("weighted", "identity", "loss"),
            layer("result", "output", "conv"),
            layer("unfinished", "convolution", "conv"),
        ]
    )
    made = deploy(graph, registry_with_loss())
    assert set(made.layers) == {"image", "conv", "result", "unfinished"}
