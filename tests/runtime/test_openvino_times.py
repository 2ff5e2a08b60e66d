"""Which layers the kernels of OpenVINO are timed with, for kernels that the test makes up. Nothing runs."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from runtime_networks import layer

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.runtime.api import Part
from designer.runtime.engines.fusion import Node
from designer.runtime.engines.openvino_engine import OpenVinoTimer, _nearest


@pytest.fixture(scope="module")
def timer(runtime_registry) -> OpenVinoTimer:
    """That of a chain of convolutions, functions and layers without work, with a constant at its end."""
    layers = [
        layer("image", "input", dims="4x4x3"),
        layer("first", "convolution", "image", features=3),
        layer("root", "unary", "first", function="sqrt"),
        layer("same", "identity", "root"),
        layer("second", "convolution", "same", features=3),
        layer("square", "unary", "second", function="square"),
        layer("number", "tensor_constant", shape="1"),
        layer("sum", "element_wise", "square,number", operation="add"),
        layer("result", "output", "sum"),
    ]
    inference = Inference(Graph(layers), runtime_registry)
    assert not inference.diagnostics()
    made = object.__new__(OpenVinoTimer)
    made.engine = SimpleNamespace(inference=inference)  # type: ignore[assignment]
    made.part = Part(("first", "root", "same", "second", "square", "number", "sum"), (Source("image"),))
    return made


def joined(timer: OpenVinoTimer, *kernels: str) -> list[str]:
    """The layers of each kernel, given as `name operation reads,reads : its layers`; those in brackets do not run."""
    nodes, ran, executed = [], [], set()
    for text in kernels:
        words, _, layers = text.strip("()").partition(":")
        name, kind, reads = (*words.split(), "")[:3]
        nodes.append(Node(kind, name, tuple(reads.split(",")), (name,)))
        ran.append(dict.fromkeys(layers.split()))
        executed |= set() if text.startswith("(") else {name}
    timer._join_renamed(nodes, ran, executed)
    return [" ".join(sorted(each)) for each in ran]


ALL = (
    "k1 Convolution image:first",
    "k2 Math k1:root",
    "k3 Convolution k2:second",
    "k4 Math k3:square",
    "k5 Eltwise k4:sum",
)


@pytest.mark.parametrize(
    ("kernels", "layers"),
    [
        pytest.param(ALL, ["first", "root", "second", "square", "sum"], id="every kernel has its layer"),
        pytest.param(
            (ALL[0], "r Reorder k1:", "k2 Math r:root", *ALL[2:]),
            ["first", "root", "root", "second", "square", "sum"],
            id="a change of the layout counts to what reads it",
        ),
        pytest.param(
            (ALL[0], "r Reorder k1:", "k2 Math r:root", "k3 Convolution r:second", *ALL[3:]),
            ["first", "root", "root", "second", "square", "sum"],
            id="to the first that reads it",
        ),
        pytest.param(
            (ALL[0], "r Reorder k1:", "s Reorder r:", "k2 Math s:root", *ALL[2:]),
            ["first", "root", "root", "root", "second", "square", "sum"],
            id="several changes of the layout",
        ),
        pytest.param(
            (*ALL[:3], "(k4 Math k3:square)", ALL[4]),
            ["first", "root", "second", "square", "sum"],
            id="a function that does not run is computed in place",
        ),
        pytest.param(
            (*ALL[:2], "(k3 Convolution k2:second)", *ALL[3:]),
            ["first", "root", "second", "second square", "sum"],
            id="a layer with weights that does not run counts to the next one",
        ),
        pytest.param(
            (*ALL[:2], "(k3 Convolution k2:second)", "(k4 Math k3:square)", ALL[4]),
            ["first", "root", "second", "square", "second sum"],
            id="to the next one that runs",
        ),
        pytest.param(
            (*ALL[:3], ALL[4]), ["first", "root", "second", "square sum"], id="a name that is lost counts to the next"
        ),
        pytest.param(ALL[:4], ["first", "root", "second", "square sum"], id="to the one before where there is none"),
        pytest.param(
            (*ALL[:1], *ALL[2:]), ["first", "root second", "square", "sum"], id="a layer that passes its input through"
        ),
        pytest.param(
            (*ALL[:3], "(k4 Math k3:square)", ALL[4], "m Multiply k5:"),
            ["first", "root", "second", "square", "square sum", ""],
            id="a kernel of an unknown layer, which may be any that does not run",
        ),
        pytest.param(
            (*ALL[:3], "(k4 Math k3:square)", ALL[4], "(m Multiply k5:)"),
            ["first", "root", "second", "square", "sum", ""],
            id="one that does not run",
        ),
        pytest.param(
            (*ALL[:3], "(k4 Math k3:square)", ALL[4], "m Reorder k5:"),
            ["first", "root", "second", "square", "sum", ""],
            id="a change of the layout at the end",
        ),
        pytest.param(
            ("k1 Convolution image:first root", *ALL[2:]),
            ["first root", "second", "square", "sum"],
            id="several layers of a kernel",
        ),
        pytest.param(
            ("k1 Convolution image:first", "k0 Convolution k1:first", ALL[1], ALL[4]),
            ["first", "first", "root", "second square sum"],
            id="several kernels of a layer",
        ),
        pytest.param(("m Multiply image:",), [""], id="no kernel has a layer"),
    ],
)
def test_layers_whose_names_are_lost_count_to_a_neighbor(timer, kernels, layers):
    assert joined(timer, *kernels) == layers


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_layers_come_first(seed, down):
    dice = random.Random(seed)
    layers = [
        Layer(f"n{i}", "x", inputs=tuple(Source(f"n{j}") for j in range(i) if dice.random() < 0.2)) for i in range(20)
    ]
    graph = Graph(layers)
    inference: Any = SimpleNamespace(graph=graph)
    among = {f"n{i}" for i in range(20) if i % 3}
    for name in graph.layers:
        distance, front, far = {name: 0}, {name}, 0
        while front:
            far += 1
            front = {o for n in front for o in (graph.consumers(n) if down else graph[n].producers())} - distance.keys()
            distance.update(dict.fromkeys(front, far))
        found = list(_nearest(inference, name, among, down=down))
        assert sorted(found) == sorted(among & distance.keys() - {name})
        assert [distance[other] for other in found] == sorted(distance[other] for other in found)


def test_kernels_of_a_compiled_model(timer, monkeypatch):
    """All but inputs, outputs and constants, with what they read and the layers of the part that they fuse."""

    def kernel(name: str, kind: str, fused: str, *reads: str) -> Any:
        def text(value: str) -> Any:
            return SimpleNamespace(astype=lambda to: value if to is str else None)

        nodes = [SimpleNamespace(get_friendly_name=lambda read=read: read) for read in reads]
        outputs = [SimpleNamespace(get_node=lambda node=node: node) for node in nodes]
        return SimpleNamespace(
            get_rt_info=lambda: {"layerType": text(kind), "originalLayersNames": text(fused)},
            get_friendly_name=lambda: name,
            inputs=lambda: [SimpleNamespace(get_source_output=lambda made=made: made) for made in outputs],
        )

    kernels = [
        kernel("image", "Input", "image"),
        kernel("w", "Const", "first/kernel"),
        kernel("first", "Convolution", "first/Conv,root/Sqrt,first/Add,image/Mul", "image", "w"),
        kernel("r", "Reorder", "", "first"),
        kernel("second", "Convolution", "second/Conv:y,other/Relu", "r", "w"),
        kernel("result", "Output", "second", "second"),
    ]
    model = SimpleNamespace(get_runtime_model=lambda: SimpleNamespace(get_ordered_ops=lambda: kernels))
    request = SimpleNamespace(get_compiled_model=lambda: model)
    seen: list[Any] = []
    monkeypatch.setattr(timer, "_join_renamed", lambda *each: seen.append(each))
    executed = {"first"}
    found, ran = timer._kernels(request, executed)
    assert found == [
        Node("Convolution", "first", ("image", "w"), ("first",)),
        Node("Reorder", "r", ("first",), ("r",)),
        Node("Convolution", "second", ("r", "w"), ("second",)),
    ]
    assert [list(each) for each in ran] == [["first", "root"], [], ["second"]]
    assert seen == [(found, ran, executed)]
