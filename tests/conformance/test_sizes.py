"""Size contracts against torch: each network is built once at its own size and run at all others on the meta device."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from size_networks import networks
from torch_networks import torch_networks

from designer.files.document import read_document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Size3D
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_proto
from designer.operators.deploy import deploy
from designer.operators.inlining import inlined
from designer.operators.registry import load
from designer.operators.size_contract import SizeContract, size_contract
from designer.operators.size_fix import accept_every_size, obstacle
from designer.operators.torch_program import build_program
from designer.operators.training_branch import training_branch
from designer.runtime.engines.torch_engine import Interpreter, build_module

REGISTRY = load(entry_points=False)
SAMPLES = Path(__file__).parents[2] / "samples"
LARGEST = 160


def samples() -> Iterator[tuple[str, Graph]]:
    for path in sorted(SAMPLES.glob("*.xml")):
        if not path.name.endswith(".settings.xml"):
            graph = read_document(path).graph
            assert graph is not None
            yield path.stem, deploy(graph, REGISTRY)  # analysis layers have no form in torch


CASES = {**dict(samples()), **dict(networks())}


class MetaNetwork:
    """A network built at the reference size of its contract; its weights keep their shapes."""

    def __init__(self, graph: Graph, contract: SizeContract) -> None:
        sized = Graph(
            layer.with_param("dims", str(Size3D(size[1], size[0], self._channels(layer.params))))
            if (size := contract.reference.get(layer.name)) is not None
            else layer
            for layer in graph
        )
        sized.templates = graph.templates
        inference = inlined(Inference(sized, REGISTRY))
        training = training_branch(inference.graph, REGISTRY)
        order = [name for name in inference.graph.order()[0] if name not in training]
        self.inputs = [name for name in order if name in contract.reference]
        outputs = [Source(name) for name in order if inference.graph[name].type == "output"]
        feeds = [Source(name) for name in self.inputs]
        layers = [n for n in order if n not in self.inputs and self._computes(inference, n)]
        self.tiling = {name: max(int(graph[name].params.get("tiling", "0") or 0), 1) for name in self.inputs}
        self.channels = {name: self._channels(graph[name].params) for name in self.inputs}
        self.program = build_program(inference, layers, feeds, outputs)
        with torch.device("meta"):
            self.module = build_module(self.program, []).eval()

    @staticmethod
    def _channels(params: object) -> int:
        return Size3D.parse(dict(params).get("dims", "256x256x3")).channels  # type: ignore[call-overload]

    @staticmethod
    def _computes(inference: Inference, name: str) -> bool:
        return inference.states[name].ok

    def runs(self, height: int, width: int) -> bool:
        """Whether torch computes outputs that are not empty at this size of all inputs, padded to their tiling."""
        feeds = [
            torch.empty(
                1, self.channels[n], *(-(-s // self.tiling[n]) * self.tiling[n] for s in (height, width)), device="meta"
            )
            for n in self.inputs
        ]
        try:
            with torch.no_grad():
                results = Interpreter(self.module, self.program)(feeds)
        except (RuntimeError, ValueError, IndexError):
            return False
        return all(result.numel() for result in results)


def sizes(contract: SizeContract, *, everything: bool) -> Iterator[tuple[int, int]]:
    """All pairs up to 160 x 160, or lines along both axes through valid and invalid sizes, and random pairs."""
    if everything:
        yield from ((h, w) for h in range(1, LARGEST + 1) for w in range(1, LARGEST + 1))
        return
    random = Random(1)
    reference = next(iter(contract.reference.values()))
    yield from ((n, reference[1]) for n in range(1, LARGEST + 1, 5))
    yield from ((reference[0], n) for n in range(2, LARGEST + 1, 5))
    yield from ((h, w) for h in range(1, 5) for w in range(1, 5))
    yield from ((random.randint(1, LARGEST), random.randint(1, LARGEST)) for _ in range(24))


def by_rules(contract: SizeContract, height: int, width: int) -> bool:
    """What the rules say; where sizes depend on each other, the contract evaluates the pair."""
    if contract.coupled:
        return contract.accepts(dict.fromkeys(contract.reference, (height, width)))
    fits = all(height in item.height and width in item.width for item in contract.inputs)
    return fits and (height, width) not in contract.exceptions


@pytest.mark.timeout(7200)  # with --all-pairs
@pytest.mark.parametrize("name", CASES)
def test_rules_are_those_of_torch(name: str, every_pair: bool) -> None:
    contract = size_contract(CASES[name], REGISTRY)
    assert contract.problem is None
    assert all(item.height.proven and item.width.proven for item in contract.inputs)
    network = MetaNetwork(CASES[name], contract)
    wrong = [
        f"{width}x{height}: torch {runs}"
        for height, width in sizes(contract, everything=every_pair)
        if (runs := network.runs(height, width)) != by_rules(contract, height, width)
    ]
    assert not wrong, (wrong[:10], len(wrong), [(str(i.height), str(i.width)) for i in contract.inputs])


def module_runs(module: torch.nn.Module, height: int, width: int) -> bool:
    """Whether a module in torch computes an output that is not empty."""
    try:
        with torch.no_grad():
            return bool(module(torch.empty(1, 3, height, width, device="meta")).numel())
    except (RuntimeError, ValueError):
        return False


@pytest.mark.filterwarnings("ignore")  # of the old exporter
@pytest.mark.timeout(7200)  # with --all-pairs
@pytest.mark.parametrize("name", torch_networks())
def test_rules_of_imported_networks_are_those_of_the_original(name: str, every_pair: bool) -> None:
    onnx = pytest.importorskip("onnx")
    make, size = torch_networks()[name]
    module = make().eval()
    stream = io.BytesIO()
    axes = {"x": {0: "N", 2: "H", 3: "W"}}
    torch.onnx.export(
        module,
        (torch.zeros(1, 3, *size),),
        stream,
        dynamo=False,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes=axes,
    )
    proto = onnx.load_from_string(stream.getvalue())
    graph = import_proto(proto, Path("x.onnx"), REGISTRY, ImportOptions({"x": (1, 3, *size)})).graph
    contract = size_contract(graph, REGISTRY)
    module = module.to("meta")
    wrong = [
        f"{width}x{height}"
        for height, width in sizes(contract, everything=every_pair)
        if module_runs(module, height, width) != by_rules(contract, height, width)
    ]
    assert not wrong, (wrong[:10], len(wrong), [(str(i.height), str(i.width)) for i in contract.inputs])


@pytest.mark.parametrize("name", CASES)
def test_the_fix_makes_every_size_work(name: str) -> None:
    contract = size_contract(CASES[name], REGISTRY)
    if obstacle(contract):
        pytest.skip(obstacle(contract))
    graph = CASES[name].copy()
    before = graph.copy()
    edit = accept_every_size(graph, REGISTRY, contract)
    graph.apply(edit)
    network = MetaNetwork(graph, size_contract(graph, REGISTRY))
    assert all(network.runs(h, w) for h, w in list(sizes(contract, everything=False))[::3])
    graph.apply(edit.reversed())
    assert graph == before
